"""The laboratory: real brokers of several releases, fleets of real clients, chaos with a seed, lies and misbehaviour on purpose.

``python -m tests.real.lab --help``. Its truth comes from running brokers, not from our reading of them: the monitor has to be silent
on lawful chaos, to find what was done on purpose, and to know at quiet points what the brokers say of their groups.
"""

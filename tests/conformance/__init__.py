"""Conformance of client libraries: real clients, real brokers, lawful days; who breaks the group protocol is in docs/conformance.md.

Each library has a small driver program (``drivers/``) that does what it is told by JSON lines.
"""

"""A small world of lawful clients and a lawful coordinator, whose frames the model must find nothing wrong with.

Written from the protocol, for tests only; it shares no code with the model. ``world`` has the clock, the wires and the capture,
``coordinator`` the broker's side, ``client`` the clients', ``history`` puts one random life of a group together; the modules that begin
with ``consumer`` have the same for groups of the consumer protocol (KIP-848). ``dialogue`` holds scripted conversations with a coordinator.
"""

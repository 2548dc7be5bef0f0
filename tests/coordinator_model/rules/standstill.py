"""Groups with the timeouts that consumers have by default, and processes that come to them."""

from __future__ import annotations

from tests.coordinator_model.conversation import Asked, Client, Conversation

PATIENT = {"session_timeout_ms": 45_000, "rebalance_timeout_ms": 300_000}
"""What consumers have by default: no other rule speaks within half a minute."""


def patient(talk: Conversation, *names: str, static: bool = False) -> list[Client]:
    """A settled group with the timeouts that consumers have by default."""
    clients = [talk.client(name, instance_id=f"i-{name}" if static else None) for name in names]
    talk.round(clients, 3, **PATIENT)
    return clients


def replacement(talk: Conversation, name: str) -> Asked:
    """A new process asks to join."""
    client = talk.client(name)
    talk.hand_out_id(client)
    return talk.ask_join(client, **PATIENT)

"""Groups with the timeouts that consumers have by default, and processes that come to them."""

from __future__ import annotations

from tests.coordinator_model.classic import complete
from tests.coordinator_model.conversation import Asked, Client, Conversation

PATIENT = {"session_timeout_ms": 45_000, "rebalance_timeout_ms": 300_000}
"""What consumers have by default: no other rule speaks within half a minute."""


def patient(talk: Conversation, *names: str, static: bool = False) -> list[Client]:
    """A settled group with the timeouts that consumers have by default."""
    clients = [talk.client(name) for name in names]
    for client in clients:
        if static:
            client.instance_id = f"i-{client.name}"
        else:
            talk.hand_out_id(client)
    asked = [talk.ask_join(client, **PATIENT) for client in clients]
    for client in clients:
        client.member_id = client.member_id or f"{client.instance_id}-{client.connection}"
    complete(talk, asked, 3, clients[0], clients)
    talk.sync_all(clients)
    return clients


def replacement(talk: Conversation, name: str) -> Asked:
    """A new process asks to join."""
    client = talk.client(name)
    talk.hand_out_id(client)
    return talk.ask_join(client, **PATIENT)

"""Coordinators that move, and clients that look for them."""

from __future__ import annotations

from tests.coordinator_model.conversation import Client, Conversation


def fail_over(talk: Conversation, clients: list[Client]) -> list[Client]:
    talk.heartbeat(clients[0], 16)
    return [one.reconnected("2") for one in clients]


def searching(talk: Conversation, clients: list[Client], seconds: int) -> None:
    """They ask another broker each second, which names the dead one still."""
    others = [Client(talk, client.name, "2") for client in clients]
    for _ in range(seconds):
        talk.wait(1_000)
        for other in others:
            talk.find_coordinator(other)

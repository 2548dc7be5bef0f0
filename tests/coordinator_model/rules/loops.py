"""Groups whose members come and go."""

from __future__ import annotations

from tests.coordinator_model.classic import complete, live
from tests.coordinator_model.conversation import Client, Conversation


def told_to_rejoin(talk: Conversation, clients: list[Client]) -> None:
    for client in clients:
        talk.heartbeat(client, 27)


def arrives(talk: Conversation, client: Client, others: list[Client], generation: int, reason: str = "") -> None:
    """A new member joins a living group, which rebalances for it."""
    client.member_id = ""
    talk.hand_out_id(client, f"{client.name}-{client.connection}-{generation}")
    new = talk.ask_join(client, reason=reason)
    told_to_rejoin(talk, others)
    asked = [talk.ask_join(other) for other in others]
    complete(talk, (*asked, new), generation, others[0], [*others, client])
    talk.sync_all([*others, client])


def departs(talk: Conversation, client: Client, others: list[Client], generation: int) -> None:
    talk.leave(client)
    told_to_rejoin(talk, others)
    talk.round(others, generation)


def flaps(talk: Conversation, client: Client, others: list[Client], generation: int, times: int, *, every_ms: int = 1_000) -> int:
    for _ in range(times):
        generation += 1
        arrives(talk, client, others, generation, reason="rebalance failed due to 'x'")
        talk.wait(every_ms)
        generation += 1
        departs(talk, client, others, generation)
        talk.wait(every_ms)
    return generation


def restarts(talk: Conversation, clients: list[Client], generation: int, names: list[str] | None = None) -> int:
    """A rolling restart: one after the other leaves and comes back as a new process."""
    for index in range(len(clients)):
        old = clients.pop(0)
        generation += 1
        departs(talk, old, clients, generation)
        talk.close(old)
        new = talk.client((names or [old.name] * 9)[index])
        generation += 1
        arrives(talk, new, clients, generation)
        clients.append(new)
        live(talk, clients, 3)
    return generation


def ghost(talk: Conversation, a: Client, b: Client, generation: int = 4) -> None:
    """A client hangs up while its join is parked; the next generation has it as a member."""
    talk.ask_join(b)
    talk.wait(500)
    talk.close(b)
    asked = talk.ask_join(a)
    talk.joined(asked, generation=generation, leader=a, roster=[a, b])
    talk.call(a, talk.sync_request(a, [a, b]), talk.synced())


def joins_without_sync(talk: Conversation, a: Client, b: Client, times: int, *, reconnect: bool = False) -> Client:
    """Rebalances in which b joins and never asks for its assignment."""
    for generation in range(4, 4 + times):
        asked = [talk.ask_join(a), talk.ask_join(b)]
        complete(talk, asked, generation, a, [a, b])
        talk.call(a, talk.sync_request(a, [a, b]), talk.synced())
        talk.wait(300)
        if reconnect:
            talk.close(b)
            b = b.reconnected()
    return b

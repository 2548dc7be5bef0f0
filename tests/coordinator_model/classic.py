"""Groups of the classic protocol whose members are known, and what becomes of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from coordinator_model import wire
from tests.coordinator_model.conversation import Asked, Client, Conversation


def settled(talk: Conversation, names: Iterable[str] = ("a", "b"), generation: int = 3, **fields: Any) -> list[Client]:
    """A stable group whose membership is known; ``fields`` of its requests to join."""
    clients = [talk.client(name) for name in names]
    talk.round(clients, generation, **fields)
    return clients


def completing_rebalance(talk: Conversation, names: Iterable[str] = ("a", "b"), generation: int = 3, **fields: Any) -> list[Client]:
    """A join phase that has just ended; nobody has asked for an assignment yet."""
    clients = [talk.client(name) for name in names]
    talk.join_all(clients, generation, **fields)
    return clients


def live(talk: Conversation, clients: list[Client], seconds: int) -> None:
    """Seconds, each of which begins with their heartbeats."""
    for _ in range(seconds):
        for client in clients:
            talk.heartbeat(client)
        talk.wait(1_000)


def beat(talk: Conversation, clients: list[Client], seconds: int, error: int = 0) -> None:
    """Seconds, each of which ends with their heartbeats, which are answered so."""
    for _ in range(seconds):
        talk.wait(1_000)
        for client in clients:
            talk.heartbeat(client, error)


def zombie(talk: Conversation, client: Client, error: int, times: int = 5, every_ms: int = 3_000) -> None:
    for _ in range(times):
        talk.heartbeat(client, error)
        talk.wait(every_ms)


def beside(talk: Conversation, living: Client, client: Client, error: int) -> None:
    """A zombie beside a member that lives."""
    for _ in range(5):
        talk.heartbeat(living)
        zombie(talk, client, error, times=1)
    talk.settle()


def left_behind(talk: Conversation) -> Client:
    """A client that still heartbeats at generation 3, while its own member id is at 4."""
    a, b = settled(talk)
    talk.round([a, b], 4)
    old = b.reconnected()
    old.generation = 3
    return old


def replace(talk: Conversation, leader: Client, name: str) -> Client:
    """A process takes over instance id i."""
    client = talk.client(name, instance_id="i")
    talk.joined(talk.ask_join(client), generation=3, leader=leader, roster=[], member_id=f"i-{client.connection}")
    talk.call(client, talk.sync_request(client, []), talk.synced())
    return client


def static_group(talk: Conversation, names: tuple[str, str] = ("lead", "one")) -> tuple[Client, Client]:
    """A leader, and a static member with instance id i."""
    leader, first = talk.client(names[0]), talk.client(names[1], instance_id="i")
    talk.round([leader, first], 3)
    return leader, first


def told_to_rejoin(talk: Conversation, client: Client, seconds: int) -> None:
    for _ in range(seconds):
        talk.heartbeat(client, 27)
        talk.wait(1_000)


def ask_heartbeat(talk: Conversation, client: Client) -> Asked:
    """A Heartbeat, to be answered later."""
    request = wire.HeartbeatRequest(
        group_id=talk.group, generation_id=client.generation, member_id=client.member_id, group_instance_id=client.instance_id
    )
    return talk.ask(client, request)


def complete(talk: Conversation, asked: Iterable[Asked], generation: int, leader: Client, roster: list[Client]) -> None:
    for one in asked:
        talk.joined(one, generation=generation, leader=leader, roster=roster)


def silence(talk: Conversation, others: list[Client], ms: int) -> None:
    """Others live on, one does not."""
    for _ in range(ms // 500):
        talk.wait(500)
        for other in others:
            talk.heartbeat(other)
    talk.wait(ms % 500)


def pauses(talk: Conversation, others: list[Client], paused: Client, ms: int, times: int) -> None:
    """One comes near to the end of its session several times."""
    for _ in range(times):
        silence(talk, others, ms)
        talk.heartbeat(paused)
        live(talk, [*others, paused], 3)


def by_turns(talk: Conversation, one: Client, other: Client, times: int) -> None:
    """Two heartbeat in turn."""
    for _ in range(times):
        talk.wait(1_500)
        talk.heartbeat(other)
        talk.wait(1_500)
        talk.heartbeat(one)

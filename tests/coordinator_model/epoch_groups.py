"""Groups with epochs whose members are known, and what becomes of them."""

from __future__ import annotations

from typing import Any

from coordinator_model import wire
from tests.coordinator_model.classic import settled
from tests.coordinator_model.conversation import Client
from tests.coordinator_model.epochs import Epochs, Parts, foo


def alone(talk: Epochs, epoch: int = 2, *, held: Parts | None = None, instance_id: str | None = None) -> Client:
    """A member that joined and holds everything: two partitions unless given."""
    a = talk.member("a", instance_id)
    talk.joins(a, epoch, foo(0, 1) if held is None else held)
    return a


def joined_pair(talk: Epochs, epoch: int = 2, *, held: Parts | None = None) -> tuple[Client, Client]:
    """A member that holds everything, three partitions unless given, and one that has just joined."""
    a, b = talk.member("a"), talk.member("b")
    talk.joins(a, epoch, foo(0, 1, 2) if held is None else held)
    talk.joins(b, epoch + 1, {})
    return a, b


def pair(talk: Epochs) -> tuple[Client, Client]:
    """Two members that share three partitions at epoch 3."""
    a, b = joined_pair(talk)
    talk.beats(a, 2, foo(0, 1))
    talk.beats(a, 3, owned=foo(0, 1))
    talk.beats(b, 3, foo(2))
    return a, b


def over(talk: Epochs) -> None:
    """Long enough for a breach to be over, short enough for every session."""
    talk.wait(62_000)


def moved(talk: Epochs, client: Client, broker: str = "2") -> Client:
    """The coordinator moves, and the client follows it."""
    talk.refused(client, 16)
    return client.reconnected(broker)


def lives_on(talk: Epochs, member: Client, epoch: int) -> None:
    """For longer than a session, so that each other member is heard of or has expired."""
    for _ in range(14):
        talk.wait(5_000)
        talk.beats(member, epoch)


def newcomer(talk: Epochs) -> tuple[Client, Client]:
    """One member holds everything and is told to give up a partition for the other."""
    a, b = talk.member("a"), talk.member("b")
    talk.joins(a, 2, foo(0, 1, 2))
    talk.beats(a)
    talk.joins(b, 3, {})
    talk.beats(a, 2, foo(0, 1))
    return a, b


def stubborn(talk: Epochs, seconds: int) -> tuple[Client, Client]:
    a, b = newcomer(talk)
    talk.live([a, b], seconds)
    return a, b


def commits_by_id(talk: Epochs, client: Client) -> None:
    """A commit with topic ids, which brokers have since 4.2."""
    talk.wait(20)
    body = wire.OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=client.generation, member_id=client.member_id)
    talk.call(client, body, wire.OffsetCommitResponse(), version=10)


def commits_in_transaction(talk: Epochs, client: Client, *, epoch: int, error: int = 0, **fields: Any) -> None:
    talk.wait(20)
    partition = wire.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=5)
    request = wire.TxnOffsetCommitRequest(
        **{
            "transactional_id": "tx",
            "group_id": talk.group,
            "member_id": client.member_id,
            "generation_id_or_member_epoch": epoch,
            "topics": (wire.TxnOffsetCommitRequestTopic(name="foo", partitions=(partition,)),),
            **fields,
        }
    )
    done = wire.TxnOffsetCommitResponsePartition(partition_index=0, error_code=error)
    reply = wire.TxnOffsetCommitResponse(topics=(wire.TxnOffsetCommitResponseTopic(name="foo", partitions=(done,)),))
    talk.call(client, request, reply)


def upgrade(talk: Epochs, generation: int = 4) -> tuple[list[Client], Client]:
    """A classic group to which a member of the consumer protocol was admitted."""
    classic = settled(talk, generation=generation - 1)
    new = talk.member("new")
    talk.joins(new, generation, {})
    return classic, new


def back_and_forth(talk: Epochs, times: int) -> None:
    clients = settled(talk)
    for turn in range(times):
        if turn % 2 == 0:
            new = talk.member(f"new{turn}")
            talk.joins(new, 10 * turn + 4, {})
            talk.leaves(new)
        else:
            talk.round(clients, 10 * turn + 5)
        talk.wait(1_000)

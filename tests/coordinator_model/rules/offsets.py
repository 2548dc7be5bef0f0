"""Rounds with a plan, and commits of other kinds."""

from __future__ import annotations

from typing import Any

from coordinator_model import wire
from tests.coordinator_model.conversation import Client, Conversation, assignment


def give(talk: Conversation, clients: list[Client], generation: int, partitions: dict[Client, tuple[int, ...]]) -> None:
    """A round in which each member is given partitions of topic t."""
    talk.join_all(clients, generation)
    assign(talk, clients, partitions)


def sharing(talk: Conversation, of_a: tuple[int, ...] = (0, 1), of_b: tuple[int, ...] = (2,)) -> tuple[Client, Client]:
    """Two members in generation 3, each with its partitions of topic t."""
    a, b = talk.client("a"), talk.client("b")
    give(talk, [a, b], 3, {a: of_a, b: of_b})
    return a, b


def assign(talk: Conversation, clients: list[Client], partitions: dict[Client, tuple[int, ...]]) -> None:
    """The second half of such a round."""
    plan = {one: assignment(t=partitions.get(one, ())) for one in clients}
    entries = tuple(wire.SyncGroupRequestAssignment(member_id=one.member_id, assignment=blob) for one, blob in plan.items())
    asked = [talk.ask(one, talk.sync_request(one, [], assignments=entries if one is clients[0] else ())) for one in clients]
    for one in asked:
        reply = wire.SyncGroupResponse(protocol_type="consumer", protocol_name="range", assignment=plan[one.client])
        talk.answer(one, reply)


SIMPLE: dict[str, Any] = {"generation_id_or_member_epoch": -1, "member_id": "", "group_instance_id": None}


def transactional(talk: Conversation, client: Client, *, offset: int = 1, error: int = 0, version: int = 4, **fields: Any) -> None:
    part = wire.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    values: dict[str, Any] = {
        "transactional_id": "tx",
        "group_id": talk.group,
        "topics": (wire.TxnOffsetCommitRequestTopic(name="t", partitions=(part,)),),
    }
    done = wire.TxnOffsetCommitResponsePartition(partition_index=0, error_code=error)
    reply = wire.TxnOffsetCommitResponse(topics=(wire.TxnOffsetCommitResponseTopic(name="t", partitions=(done,)),))
    talk.call(client, wire.TxnOffsetCommitRequest(**{**values, **fields}), reply, version=version)

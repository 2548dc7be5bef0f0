"""What a request says of itself, read into its exchange: whom it names, and what it asks for.

The trap: a request is evidence of what its sender believes, not of what is so; only the answer tells that.
"""

from __future__ import annotations

from hashlib import blake2s
from typing import Any, Final

from coordinator_model.groups.records import Exchange, JoinFacts, LeaveFacts, SyncFacts
from coordinator_model.wire import DecodeError, decode_subscription
from coordinator_model.wire.constants import (
    DELETE_GROUPS,
    FIND_COORDINATOR,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    OFFSET_COMMIT,
    SYNC_GROUP,
    TXN_OFFSET_COMMIT,
)

IDLE_ASSIGNMENT_BYTES: Final = 10  #: version, no topics, no user data: a consumer's assignment of nothing is no longer than that


def _read_member(exchange: Exchange, body: Any) -> None:
    exchange.member_id = body.member_id
    exchange.generation = body.generation_id
    exchange.instance_id = body.group_instance_id


def _read_join(exchange: Exchange, body: Any) -> None:
    exchange.member_id = body.member_id
    exchange.instance_id = body.group_instance_id
    digest = blake2s(digest_size=8)
    for protocol in body.protocols:
        for part in (protocol.name.encode(), protocol.metadata):
            digest.update(len(part).to_bytes(4, "big"))
            digest.update(part)
    rebalance_timeout_ms = body.rebalance_timeout_ms if exchange.api_version >= 1 else body.session_timeout_ms
    exchange.facts = JoinFacts(
        body.session_timeout_ms,
        rebalance_timeout_ms,
        body.protocol_type,
        tuple(protocol.name for protocol in body.protocols),
        digest.digest(),
        body.reason or "",
        _owns(body),
    )


def _owns(body: Any) -> bool:
    """Whether the member may own partitions while it waits: an eager consumer gives up all of them before it asks to join."""
    if body.protocol_type != "consumer":
        return True
    try:
        return any(decode_subscription(protocol.metadata).owned_partitions for protocol in body.protocols)
    except DecodeError:
        return True


def _read_sync(exchange: Exchange, body: Any) -> None:
    _read_member(exchange, body)
    idle = tuple(entry.member_id for entry in body.assignments if len(entry.assignment) <= IDLE_ASSIGNMENT_BYTES)
    exchange.facts = SyncFacts(len(body.assignments), idle, body.protocol_type, body.protocol_name)


def _read_leave(exchange: Exchange, body: Any) -> None:
    named = [(entry.member_id, entry.group_instance_id) for entry in body.members]
    if exchange.api_version < 3:  # LeaveGroup v0-2 names one member (KIP-345 made it a list)
        named = [(body.member_id, None)]
    exchange.facts = LeaveFacts(tuple(named), tuple(entry.reason or "" for entry in body.members))


def _read_commit(exchange: Exchange, body: Any) -> None:
    exchange.member_id = body.member_id
    exchange.generation = body.generation_id_or_member_epoch
    exchange.instance_id = body.group_instance_id


def _read_nothing(exchange: Exchange, body: Any) -> None:
    """A request whose answer matters, not what it asks."""


REQUEST_READERS: Final = {
    JOIN_GROUP: _read_join,
    SYNC_GROUP: _read_sync,
    HEARTBEAT: _read_member,
    LEAVE_GROUP: _read_leave,
    OFFSET_COMMIT: _read_commit,
    TXN_OFFSET_COMMIT: _read_commit,
    FIND_COORDINATOR: _read_nothing,
    DELETE_GROUPS: _read_nothing,
}
MODELLED_API_KEYS: Final = frozenset(REQUEST_READERS)

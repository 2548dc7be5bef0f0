"""Read a request into its exchange: the member it names, and what it asks for.

A request shows what its sender believes. Only the response shows whether that is true.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2s
from typing import Any, Final

from coordinator_model.groups.records import ClientInfo, Exchange, JoinFacts, LeaveFacts, SyncFacts
from coordinator_model.wire import CONSUMER, read_consumer_subscription
from coordinator_model.wire.constants import (
    DELETE_GROUPS,
    DESCRIBE_GROUPS,
    EPOCH_DESCRIPTIONS,
    FIND_COORDINATOR,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    OFFSET_COMMIT,
    OFFSET_DELETE,
    OFFSET_FETCH,
    SYNC_GROUP,
    TXN_OFFSET_COMMIT,
)
from coordinator_model.wire.record import MirrorRecord

IDLE_ASSIGNMENT_BYTES: Final = 10  #: version, no topics, no user data: the size of a consumer's empty assignment


def client_of(record: MirrorRecord) -> ClientInfo:
    """Return the client that sent a request."""
    return ClientInfo(record.client_id, record.client_address, record.client_software, record.connection, record.principal)


def exchange_of(record: MirrorRecord, actor: ClientInfo) -> Exchange:
    """Return the exchange that a request begins, before its content is read."""
    return Exchange(
        (record.connection, record.exchange),
        record.api_key,
        record.api_version,
        "",
        -1,
        None,
        None,
        actor,
        record.broker,
        record.partition,
        record.offset,
        record.at_us,
        record.queued_behind,
        record.correlation_id,
        record.at_us,
    )


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
        *_read_subscriptions(body),
    )


def _read_subscriptions(body: Any) -> tuple[bool, bytes]:
    """Return whether the member may own partitions while it waits, and a digest of its topics, empty if these cannot be read.

    An eager consumer revokes all of its partitions before its JoinGroup.
    """
    offers = (
        [read_consumer_subscription(protocol.metadata) for protocol in body.protocols] if body.protocol_type == CONSUMER else []
    )
    topics: set[str] = set()
    for offer in offers:
        topics.update(() if offer is None else offer.topics)
    if not offers or None in offers:
        return True, b""
    owns = any(offer.owned_partitions for offer in offers if offer is not None)
    return owns, _digest(topics)


def _digest(topics: Iterable[str]) -> bytes:
    return blake2s("\0".join(sorted(topics)).encode(), digest_size=4).digest()


NO_TOPICS: Final = _digest(())
"""The digest of a subscription to nothing: that of a client whose pattern matches no topic which it knows."""


def _read_sync(exchange: Exchange, body: Any) -> None:
    _read_member(exchange, body)
    idle = tuple(entry.member_id for entry in body.assignments if len(entry.assignment) <= IDLE_ASSIGNMENT_BYTES)
    size = sum(len(entry.assignment) for entry in body.assignments)
    exchange.facts = SyncFacts(len(body.assignments), idle, body.protocol_type, body.protocol_name, size)


def _read_leave(exchange: Exchange, body: Any) -> None:
    named = [(entry.member_id, entry.group_instance_id) for entry in body.members]
    if exchange.api_version < 3:  # one member; a list since KIP-345
        named = [(body.member_id, None)]
    exchange.facts = LeaveFacts(tuple(named), tuple(entry.reason or "" for entry in body.members))


def _read_commit(exchange: Exchange, body: Any) -> None:
    exchange.member_id = body.member_id
    exchange.generation = body.generation_id_or_member_epoch
    exchange.instance_id = body.group_instance_id


def _read_nothing(exchange: Exchange, body: Any) -> None:
    """Read nothing: only the response matters."""


REQUEST_READERS: Final = {
    JOIN_GROUP: _read_join,
    SYNC_GROUP: _read_sync,
    HEARTBEAT: _read_member,
    LEAVE_GROUP: _read_leave,
    OFFSET_COMMIT: _read_commit,
    OFFSET_FETCH: _read_nothing,
    OFFSET_DELETE: _read_nothing,
    TXN_OFFSET_COMMIT: _read_commit,
    FIND_COORDINATOR: _read_nothing,
    DELETE_GROUPS: _read_nothing,
    DESCRIBE_GROUPS: _read_nothing,
    **dict.fromkeys(EPOCH_DESCRIPTIONS, _read_nothing),
}
MODELLED_API_KEYS: Final = frozenset(REQUEST_READERS)
BESIDE_MEMBERSHIP: Final = frozenset({DESCRIBE_GROUPS, *EPOCH_DESCRIPTIONS, OFFSET_DELETE, OFFSET_FETCH})
"""Those that concern no membership, and that tools send which are no members: they make no group known."""

ASKED_OF_COORDINATOR: Final = MODELLED_API_KEYS - BESIDE_MEMBERSHIP
"""Those whose answers depend on, or change, who is a member of a group."""

"""What distinguishes consumer, share and Streams groups, and how to read their heartbeats."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from coordinator_model.groups.epochs.records import AWAY_EPOCH, JOIN_EPOCH, LEAVE_EPOCH, partitions_of, topics_of
from coordinator_model.groups.records import Exchange, HeartbeatFacts, Partitions
from coordinator_model.wire.constants import CONSUMER_GROUP_HEARTBEAT, SHARE_GROUP_HEARTBEAT, STREAMS_GROUP_HEARTBEAT

UNCHANGED: Final = HeartbeatFacts()

CONSUMER: Final = "consumer"
SHARE: Final = "share"
STREAMS: Final = "streams"

FEATURES: Final = {CONSUMER: "group.version", SHARE: "share.version", STREAMS: "streams.version"}
"""Type of group → the feature without which brokers refuse it."""


class Kind(NamedTuple):
    """The type of a group."""

    name: str
    api_key: int
    exclusive: bool  #: a partition has one member at a time
    answers_full_requests: bool  #: a full request is answered with the whole assignment
    read_request: Callable[[Any, int], HeartbeatFacts]
    read_assignment: Callable[[Any], Partitions | None]
    is_unchanged: Callable[[Any], bool]  #: of a success: it neither assigns anything nor has a status


def _malformed(body: Any, version: int, *, blank_id_allowed: bool) -> str:
    epoch = body.member_epoch
    instance_id, rack_id = getattr(body, "instance_id", None), body.rack_id
    if not body.member_id.strip() and not (blank_id_allowed and version == 0 and epoch == JOIN_EPOCH):
        return "it names no member"
    if instance_id is not None and not instance_id.strip():
        return "its instance id is blank"
    if rack_id is not None and not rack_id.strip():
        return "its rack is blank"
    if epoch < AWAY_EPOCH:
        return f"there is no epoch {epoch}"
    if epoch == AWAY_EPOCH and instance_id is None:
        return "only a static member can leave for a while, and it names no instance id"
    return ""


def _read_consumer(body: Any, version: int) -> HeartbeatFacts:
    timeout_ms, topics, pattern = body.rebalance_timeout_ms, body.subscribed_topic_names, body.subscribed_topic_regex
    entries = body.topic_partitions
    assignor = body.server_assignor is not None
    names_nothing = topics is None and pattern is None and entries is None and body.rack_id is None
    is_unchanged = timeout_ms == -1 and names_nothing and not assignor
    if is_unchanged and body.member_epoch > JOIN_EPOCH and body.instance_id is None and body.member_id.strip():
        return UNCHANGED  # nearly all are so
    malformed = _malformed(body, version, blank_id_allowed=True)
    if body.member_epoch == JOIN_EPOCH and not malformed:
        malformed = _dirty_join(timeout_ms, entries, subscribed=topics is not None or pattern is not None)
    if is_unchanged and not malformed:
        return UNCHANGED
    return HeartbeatFacts(timeout_ms, topics, pattern, topics_of(entries), malformed, assignor=assignor)


def _dirty_join(timeout_ms: int, entries: Any, *, subscribed: bool) -> str:
    if timeout_ms == -1:
        return "it joins without a rebalance timeout"
    if entries is None:
        return "it joins without the list of its partitions"
    if entries:
        return "it joins with partitions of its own"
    return "" if subscribed else "it joins without a subscription"  # one to nothing will do


def _read_share(body: Any, version: int) -> HeartbeatFacts:
    malformed = _malformed(body, version, blank_id_allowed=False)
    topics = body.subscribed_topic_names
    if not malformed and body.member_epoch < LEAVE_EPOCH:
        malformed = f"there is no epoch {body.member_epoch}"
    if not malformed and body.member_epoch == JOIN_EPOCH and not topics:
        malformed = "it joins without a subscription"
    return UNCHANGED if topics is None and not malformed else HeartbeatFacts(-1, topics, None, None, malformed)


def _read_streams(body: Any, version: int) -> HeartbeatFacts:
    malformed = _malformed(body, version, blank_id_allowed=False)
    lists = body.active_tasks, body.standby_tasks, body.warmup_tasks
    if not malformed and len({one is None for one in lists}) > 1:
        malformed = "it has some lists of tasks, and not all"
    if body.member_epoch == JOIN_EPOCH and not malformed:
        if body.topology is None or body.rebalance_timeout_ms == -1:
            malformed = "it joins without a topology or a rebalance timeout"
        elif any(one is None or one for one in lists):
            malformed = "it joins with tasks of its own, or without their lists"
    elif body.topology is not None and body.member_epoch > JOIN_EPOCH and not malformed:
        malformed = "it has a topology, and does not join"
    owned = topics_of(body.active_tasks, "subtopology_id")
    topics = None
    if body.topology is not None:
        topics = tuple(sorted({topic for part in body.topology.subtopologies for topic in part.source_topics}))
    if topics is None and owned is None and body.rebalance_timeout_ms == -1 and not (malformed or body.shutdown_application):
        return UNCHANGED
    return HeartbeatFacts(body.rebalance_timeout_ms, topics, None, owned, malformed, body.shutdown_application)


def _assignment(body: Any) -> Partitions | None:
    return None if body.assignment is None else partitions_of(body.assignment.topic_partitions)


def _assigns_nothing(body: Any) -> bool:
    return body.assignment is None


def _has_no_status(body: Any) -> bool:
    return body.active_tasks is None and not body.status


def _active_tasks(body: Any) -> Partitions | None:
    return partitions_of(body.active_tasks, "subtopology_id")


KINDS: Final = {
    kind.name: kind
    for kind in (
        Kind(CONSUMER, CONSUMER_GROUP_HEARTBEAT, True, True, _read_consumer, _assignment, _assigns_nothing),
        Kind(SHARE, SHARE_GROUP_HEARTBEAT, False, False, _read_share, _assignment, _assigns_nothing),
        Kind(STREAMS, STREAMS_GROUP_HEARTBEAT, True, False, _read_streams, _active_tasks, _has_no_status),
    )
}
KIND_BY_API: Final = {kind.api_key: kind for kind in KINDS.values()}
"""API key of a heartbeat → the only type of group that accepts it."""


def read_heartbeat(exchange: Exchange, body: Any) -> None:
    """Read a heartbeat into its exchange."""
    exchange.member_id, exchange.generation = body.member_id, body.member_epoch
    exchange.instance_id = getattr(body, "instance_id", None)
    exchange.facts = KIND_BY_API[exchange.api_key].read_request(body, exchange.api_version)

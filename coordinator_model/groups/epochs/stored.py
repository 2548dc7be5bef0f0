"""A group whose members have epochs as plain values for a snapshot.

Values are stored by position, so new ones are only appended, each with a default.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any, Final

from coordinator_model.groups import refused_joins
from coordinator_model.groups.coordinator_records import CoordinatorAddresses
from coordinator_model.groups.epochs.data import EpochGroupData
from coordinator_model.groups.epochs.rebalance_events import EpochEvents
from coordinator_model.groups.epochs.records import (
    NO_PARTITIONS,
    Bump,
    DoubleGrant,
    EpochMember,
    InstanceClaim,
    InstanceUse,
    SessionBounds,
    StatusSpell,
    Unseen,
    by_topic,
)
from coordinator_model.groups.records import ClientInfo, ConnectionState, EpochCommitFacts, Exchange, HeartbeatFacts, Partitions
from coordinator_model.groups.recurring.recurring import Recurring
from coordinator_model.wire import API_NAMES

_OWN: Final = 1
"""First of the slow values. A classic group's first value is a list."""

_PLAIN: Final = (
    "broker", "incarnation", "settled", "learning_because", "born_us", "epoch", "epoch_us", "instances", "storm_since_us",
    "storm_times", "storm_causes", "assignor_failures", "causes", "errors", "topic_names", "conversions", "mixed_since_us",
    "state_since_us", "stirred_us", "instance_uses", "abandoned", "status_spells", "shutdowns", "state",
    "session_bounds", "refused_joins", "returns", "succeeded", "coordinator_changes", "searches", "deleted_us",
    "late_frames", "followed_us", "unseen",
)  # fmt: skip
_read_plain = attrgetter(*_PLAIN)

# What every heartbeat changes; stored with the fast part, as microseconds before the last record.
_FAST: Final = ("epoch_us", "accepted_us", "accepted_asked_us", "proven_us", "last_frame_us", "heartbeat_us", "paused_us")
_SETS: Final = ("granted", "pending", "ever")  #: partitions; of the last also the epochs at which they were assigned
_MEMBER: Final = tuple(known.name for known in fields(EpochMember) if known.name not in (*_FAST, *_SETS, "last_frame"))
_read_member = attrgetter(*_MEMBER)
_read_fast = attrgetter(*_FAST)
_API_KEYS: Final = {name: key for key, name in API_NAMES.items()}
_DEFAULTS: Final = _read_member(EpochMember(""))


def is_own(slow_values: Sequence[Any]) -> bool:
    """Return True if these are values of :func:`slow_values`."""
    return bool(slow_values) and slow_values[0] == _OWN


def incarnation_of_other(slow_values: Sequence[Any]) -> int:
    """Return the incarnation in the values of a classic group."""
    incarnation: int = slow_values[0][4]
    return incarnation


def slow_values(group: EpochGroupData) -> list[Any]:
    """Return what changes only when something happens."""
    topics = sorted({topic for member in group.members.values() for name in _SETS for topic, _ in getattr(member, name) or ()})
    numbers = {topic: number for number, topic in enumerate(topics)}
    return [
        _OWN,
        list(_read_plain(group)),
        list(group.release),
        topics,
        [_member_values(member, numbers) for member in group.members.values()],
        [list(double) for double in group.doubles],
        [list(bump) for bump in group.bumps],
        [list(cause) for cause in group.recent],
        [
            [instance_id, claim.first_us, claim.times, list(claim.frames), claim.last_us]
            for instance_id, claim in group.claims.items()
        ],
        list(group.connections),
        _events_values(group.rebalance_events),
        group.committed_offsets,
        group.addresses.values(),
        group.recurring.values(),
    ]


def _events_values(events: EpochEvents) -> list[Any]:
    return [
        events.current,
        [[*each, holder] for each, holder in events.before.items()],
        [[*each, us] for each, us in events.unheld_us.items()],
        [[*each, *freed] for each, freed in events.free.items()],
        events.freed_us,
        events.known,
        events.lost,
        events.in_sight,
        events.costs,
        events.joiners,
        events.gone,
        events.asked,
    ]


def _events(values: Sequence[Any]) -> EpochEvents:
    current, before, unheld, free, *rest = values
    return EpochEvents(
        current,
        {(topic, number): holder for topic, number, holder in before},
        {(topic, number): us for topic, number, us in unheld},
        {(topic, number): (holder, since_us) for topic, number, holder, since_us in free},
        *rest,
    )


def _member_values(member: EpochMember, numbers: dict[str, int]) -> list[Any]:
    """Return position → value of what differs from a member of which nothing is known, and its partitions."""
    values = {
        place: value for place, (value, default) in enumerate(zip(_read_member(member), _DEFAULTS, strict=True)) if value != default
    }
    granted, pending, ever = (_packed(getattr(member, name), numbers) for name in _SETS)
    stored = [values, granted, pending or None, True if ever == granted and ever is not None else ever]
    later = [[epoch, _packed(_since(member, epoch), numbers)] for epoch in sorted({*(member.ever or {}).values()} - {0})]
    return [*stored, later] if later else stored


def _since(member: EpochMember, epoch: int) -> Partitions:
    """Return what the member was assigned first by an answer with this epoch."""
    return frozenset(partition for partition, since in (member.ever or {}).items() if since == epoch)


def _packed(partitions: Partitions | None, numbers: dict[str, int]) -> list[Any] | None:
    return None if partitions is None else [[numbers[topic], given] for topic, given in by_topic(partitions).items()]


def _unpacked(packed: Sequence[Any] | None, topics: Sequence[str]) -> Partitions | None:
    return None if packed is None else frozenset((topics[number], given) for number, all_ in packed for given in all_)


def fast_values(group: EpochGroupData) -> list[Any]:
    """Return what every heartbeat changes. Members and connections have the order of :func:`slow_values`."""
    base_us = group.last_record_us
    members: list[int | None] = []
    for member in group.members.values():
        members += (base_us - at_us if at_us else None for at_us in _read_fast(member))
        members.append(_API_KEYS.get(member.last_frame))
    lines: list[int] = []
    for line in group.connections.values():
        lines += line.outstanding, base_us - line.last_response_us
    return [members, lines, [_open_values(exchange) for exchange in group.open.values()]]


def _open_values(exchange: Exchange) -> list[Any]:
    """Return an open request with its facts beside it: those of a heartbeat hold a set, which a snapshot has no place for."""
    facts = exchange.facts
    if isinstance(facts, HeartbeatFacts):
        owned = None if facts.owned is None else [[topic, given] for topic, given in by_topic(facts.owned).items()]
        stored_facts: list[Any] = [0, *facts._replace(owned=None), owned]
    elif isinstance(facts, EpochCommitFacts):
        stored_facts = [1, *facts]
    else:
        return [exchange, None]
    exchange.facts = None
    values = [_copy(exchange), stored_facts]
    exchange.facts = facts
    return values


def _copy(exchange: Exchange) -> Exchange:
    given = [getattr(exchange, known.name) for known in fields(Exchange) if known.init]
    return Exchange(*given)


def fill(group: EpochGroupData, slow: Sequence[Any], fast: Sequence[Any]) -> None:
    """Take over what :func:`slow_values` and :func:`fast_values` returned."""
    _own, plain, release, topics, members, doubles, bumps, recent, claims, connections, *later = slow
    if later:
        group.rebalance_events = _events(later[0])
    if len(later) > 1:
        group.committed_offsets = later[1]
    if len(later) > 2:
        group.addresses = CoordinatorAddresses(*later[2])
    if len(later) > 3:
        group.recurring = Recurring.restored(later[3])
    for name, value in zip(_PLAIN, plain, strict=False):
        setattr(group, name, value)
    group.release = release
    group.session_bounds = SessionBounds(*group.session_bounds)
    group.refused_joins = refused_joins.restored(group.refused_joins)
    group.status_spells = {code: StatusSpell(*spell) for code, spell in group.status_spells.items()}
    group.unseen = group.unseen and Unseen(*group.unseen)
    group.instance_uses = {instance_id: InstanceUse(*use) for instance_id, use in group.instance_uses.items()}
    given = iter(fast[0])
    for values, granted, pending, ever, *more in members:
        member = EpochMember("")
        for place, value in values.items():
            setattr(member, _MEMBER[place], value)
        member.actor = ClientInfo(*member.actor)
        member.rejoin_frames = list(member.rejoin_frames)
        member.granted = _unpacked(granted, topics)
        member.pending = _unpacked(pending, topics) or NO_PARTITIONS
        partitions = member.granted if ever is True else _unpacked(ever, topics)
        member.ever = None if partitions is None else dict.fromkeys(partitions, 0)
        for epoch, packed in more[0] if more else ():
            member.ever = {**(member.ever or {}), **dict.fromkeys(_unpacked(packed, topics) or (), epoch)}
        for name in _FAST:
            before_us = next(given)
            default = None if name == "proven_us" else 0
            setattr(member, name, default if before_us is None else group.last_record_us - before_us)
        member.last_frame = API_NAMES.get(next(given), "")
        group.members[member.id] = member
    group.doubles = [DoubleGrant(*double) for double in doubles]
    group.bumps = [Bump(*bump) for bump in bumps]
    group.recent = list(recent)
    group.claims = {
        instance_id: InstanceClaim(first_us, times, frames, last_us) for instance_id, first_us, times, frames, last_us in claims
    }
    numbers = iter(fast[1])
    group.connections = {name: ConnectionState(next(numbers), group.last_record_us - next(numbers)) for name in connections}
    for exchange, facts in fast[2]:
        exchange.facts = exchange.facts if facts is None else _facts(facts)
        group.open[exchange.key] = exchange


def _facts(values: Sequence[Any]) -> HeartbeatFacts | EpochCommitFacts:
    kind, *given = values
    if kind:
        return EpochCommitFacts(*given)
    *plain, owned = given
    partitions = None if owned is None else frozenset((topic, number) for topic, numbers in owned for number in numbers)
    return HeartbeatFacts(*plain)._replace(owned=partitions)

"""What heartbeats contain beside epochs and partitions: subscriptions, and the statuses of a Streams group.

A request contains only what it changes of a subscription, so a missing frame leaves it unknown. A status is why no member gets tasks, or
that the application is to stop.

A client may give up at the first such answer and come back as another member (the Java client does, with a missing source topic), so
statuses are counted over the group.
"""

from __future__ import annotations

from typing import Any, Final

from coordinator_model.groups.epochs.data import EpochGroupData
from coordinator_model.groups.epochs.events import ShutdownAsked, StatusReported, StopIgnored, SubscriptionFlapped
from coordinator_model.groups.epochs.records import JOIN_EPOCH, EpochMember, StatusStreak
from coordinator_model.groups.evidence import epoch_request_evidence, epoch_response_evidence
from coordinator_model.groups.records import Exchange, HeartbeatFacts
from coordinator_model.groups.tracker import NOTHING, Event
from coordinator_model.wire.constants import STREAMS_GROUP_HEARTBEAT

STALE_TOPOLOGY: Final = 0
MISSING_SOURCE_TOPICS: Final = 1
INCORRECTLY_PARTITIONED_TOPICS: Final = 2
MISSING_INTERNAL_TOPICS: Final = 3
SHUTDOWN_APPLICATION: Final = 4
ASSIGNMENT_DELAYED: Final = 5
MISSING_CLIENT_TAGS: Final = 6

PAUSE_US: Final = 30_000_000
PAUSES_US: Final = {MISSING_SOURCE_TOPICS: 60_000_000, ASSIGNMENT_DELAYED: 10_000_000}
"""Status → a pause in getting it after which it begins anew; :data:`PAUSE_US` for the others, two of the longest heartbeat intervals.

Clients give up because of a missing source topic, and are started anew. Each new assignment may be delayed, for seconds.
"""

_NULL_IS_UNCHANGED_SINCE: Final = (4, 2)  #: before, null is no status (KAFKA-19945)

STOPS_WITHIN_US: Final = 60_000_000  #: an application that is asked to stop closes its tasks first
SHUTDOWN_WINDOW_US: Final = 3_600_000_000
_SHUTDOWNS_KEPT: Final = 4


def note_statuses(group: EpochGroupData, exchange: Exchange, member: EpochMember, body: Any) -> tuple[Event, ...]:
    """Take over the statuses in a success."""
    if exchange.api_key != STREAMS_GROUP_HEARTBEAT:
        return NOTHING
    given = body.status
    if given is None and group.release_of(exchange.broker) < _NULL_IS_UNCHANGED_SINCE:
        given = ()
    events = NOTHING if given is None else _take(group, exchange, member, given)
    return events + _ignores_stop(exchange, member)


def _ignores_stop(exchange: Exchange, member: EpochMember) -> tuple[Event, ...]:
    """Return an event if a member goes on that was asked to stop long before its request."""
    is_asked = any(code == SHUTDOWN_APPLICATION for code, _ in member.statuses)
    if not is_asked or exchange.generation == JOIN_EPOCH or not member.shutdown_asked_us:
        member.shutdown_asked_us = exchange.res_us if is_asked else 0
        return NOTHING
    lasts_us = exchange.inv_us - member.shutdown_asked_us
    return (StopIgnored(exchange, member, lasts_us),) if lasts_us > STOPS_WITHIN_US else NOTHING


def _take(group: EpochGroupData, exchange: Exchange, member: EpochMember, given: Any) -> tuple[Event, ...]:
    reported = tuple((one.status_code, one.status_detail) for one in given)
    was_stale = any(code == STALE_TOPOLOGY for code, _ in member.statuses)
    if reported != member.statuses:
        member.statuses = reported
        group.changed = True
    codes = {code for code, _ in reported}
    for code in group.status_streaks.keys() - codes:
        if code != STALE_TOPOLOGY or was_stale:  # the others have the newest topology
            del group.status_streaks[code]
            group.changed = True
    return tuple(StatusReported(exchange, member, code, detail, _streak(group, exchange, code)) for code, detail in reported)


def _streak(group: EpochGroupData, exchange: Exchange, code: int) -> StatusStreak:
    known = group.status_streaks.get(code)
    at_us, frame = exchange.res_us, epoch_response_evidence(exchange)
    if known is None or at_us - known.last_us > PAUSES_US.get(code, PAUSE_US):
        streak = StatusStreak(at_us, at_us, 1, (frame,))
    else:
        streak = StatusStreak(known.first_us, at_us, known.times + 1, (*known.frames[:1], frame))
    group.status_streaks[code] = streak
    return streak


def note_shutdown(group: EpochGroupData, exchange: Exchange, member: EpochMember | None) -> tuple[Event, ...]:
    """Return an event if a member asks that the whole application stop."""
    facts = exchange.facts
    if not isinstance(facts, HeartbeatFacts) or not facts.shutdown or member is None:
        return NOTHING
    since_us = exchange.res_us - SHUTDOWN_WINDOW_US
    kept = tuple((at_us, id_) for at_us, id_ in group.shutdowns if at_us > since_us)
    if any(id_ == member.id for _, id_ in kept):
        return NOTHING  # it repeats what it asked
    group.shutdowns = (*kept[1 - _SHUTDOWNS_KEPT :], (exchange.res_us, member.id))
    group.changed = True
    return (ShutdownAsked(exchange, member, group.shutdowns, epoch_request_evidence(exchange)),)


# ---------------------------------------------------------------------------------------------------- subscriptions

FLAP_WINDOW_US: Final = 900_000_000
_CHANGES_KEPT: Final = 6


def note_subscription(
    group: EpochGroupData, exchange: Exchange, member: EpochMember, kept: EpochMember | None, *, overlapped: bool
) -> tuple[Event, ...]:
    """Take over what the request changed of the subscription.

    :param kept: see :func:`kept_of`.
    """
    facts = exchange.facts
    assert isinstance(facts, HeartbeatFacts)
    topics, pattern = ((), "") if kept is None else (kept.topics, kept.pattern)
    if facts.topics is not None:
        topics = tuple(sorted(set(facts.topics)))
    if facts.pattern is not None:
        pattern = facts.pattern
    before = member.topics, member.pattern
    if (topics, pattern) == before:
        return NOTHING
    group.changed = True
    if overlapped:  # which of two requests came first is not known
        topics, pattern = (topics if topics == before[0] else None), (pattern if pattern == before[1] else None)
    member.topics, member.pattern = topics, pattern
    if kept is not member or (before[0] in {None, topics} and before[1] in {None, pattern}):
        return NOTHING
    group.may_have_raised("changed its subscription", member.id)
    if overlapped:
        return NOTHING
    window_us = exchange.res_us - FLAP_WINDOW_US
    value = ",".join(topics or ()) + ("/" + pattern if pattern else "")
    recent = tuple(change for change in member.changes if change[0] > window_us)
    member.changes = (*recent[-_CHANGES_KEPT:], (exchange.res_us, value))
    return (SubscriptionFlapped(exchange, member, member.changes),)


def kept_of(group: EpochGroupData, exchange: Exchange, known: EpochMember | None) -> EpochMember | None:
    """Return whose subscription counts where a request contains none, None if a new member sends it.

    A member that joins again keeps its own, and the successor of a static member its predecessor's.
    """
    if known is not None and (exchange.generation != JOIN_EPOCH or known.keeps_place):
        return known
    return group.members.get(group.instances.get(exchange.instance_id or "", ""))

"""Family R, Streams and share groups: why nobody gets tasks or partitions, in the coordinator's own words where it gives any."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from coordinator_model.finding import CERTAIN, CLIENT, CONFIG, CONFIRMED, CRITICAL, ERROR, HEURISTIC, INFO, WARNING, Severity
from coordinator_model.groups.epochs.data import EpochGroupData
from coordinator_model.groups.epochs.events import ShutdownAsked, StatusReported, StopIgnored, StreamsJoinRefused
from coordinator_model.groups.epochs.heartbeat_fields import (
    ASSIGNMENT_DELAYED,
    INCORRECTLY_PARTITIONED_TOPICS,
    MISSING_CLIENT_TAGS,
    MISSING_INTERNAL_TOPICS,
    MISSING_SOURCE_TOPICS,
    SHUTDOWN_APPLICATION,
    SHUTDOWN_WINDOW_US,
    STALE_TOPOLOGY,
)
from coordinator_model.groups.epochs.kinds import SHARE
from coordinator_model.groups.epochs.records import EpochMember
from coordinator_model.groups.evidence import client_text, epoch_exchange_evidence
from coordinator_model.rules.base import Breach, Due, about_one, captured, rule, sender_text, timer_rule, who
from coordinator_model.wire import error_name
from coordinator_model.wording import begin, clock, plural, seconds, some

_NOTHING_US: Final = 60_000_000
_NAMED: Final = 3  #: members that a sentence names


class _Cause(NamedTuple):
    """A status that keeps tasks from members."""

    name: str
    text: str
    severity: Severity
    after_us: int = 60_000_000  #: it is normal for so long


_CAUSES: Final = {
    STALE_TOPOLOGY: _Cause("stale topology", "a member has an older version of the application", WARNING),
    MISSING_SOURCE_TOPICS: _Cause("missing source topics", "a source topic does not exist", ERROR),
    INCORRECTLY_PARTITIONED_TOPICS: _Cause("wrong partition counts", "topics have numbers of partitions that do not fit", ERROR),
    MISSING_INTERNAL_TOPICS: _Cause("missing internal topics", "an internal topic does not exist", ERROR),
    # The first delay is 3 s, and an assignment comes at most every 15 s.
    ASSIGNMENT_DELAYED: _Cause("assignment delayed", "the assignment is put off", WARNING, 30_000_000),
    MISSING_CLIENT_TAGS: _Cause("missing client tags", "clients lack tags that the assignor needs", WARNING),
}
"""Status → what it means, and how long it may last. Topics are made, and applications replaced, within a minute."""


def _status_over(group: EpochGroupData, name: str) -> bool:
    return all(_CAUSES[code].name != name for code in group.status_streaks if code in _CAUSES)


@rule("no tasks, with a named cause", ERROR, CERTAIN, CONFIG, over=_status_over)
def R_19(group: EpochGroupData, reported: StatusReported) -> Breach | None:
    """A Streams application does nothing, and the coordinator says why.

    Condition: Answers to heartbeats of a Streams group have had the same status for a minute: 0 stale topology or 6 missing client
        tags (warning), 1 missing source topics, 2 wrong partition counts, 3 missing internal topics; or 5, assignment delayed, for
        30 s (warning).
    Expected: No status, or one that lasts seconds while the application starts.
    Action: Do what the cause says: make the topic named, correct its partitions, stop the old version, set the tags.
    False alarms: A topic that is made later on purpose. Before 4.2 an answer with null ends a status.
    """
    cause, streak = _CAUSES.get(reported.code), reported.streak
    if cause is None or streak.last_us - streak.first_us < cause.after_us:
        return None
    lasts = seconds(streak.last_us - streak.first_us)
    detail = f": “{reported.detail}”" if reported.detail else ""
    stale = _stale(group) if reported.code == STALE_TOPOLOGY else []
    gets = "gets" if len(stale) == 1 else "get"
    concerned = f"{some([who(member) for member in stale], _NAMED)} {gets}" if stale else "its members get"
    return Breach(
        cause.name,
        f"In Streams group {group.name} {cause.text}{detail}; {concerned} no tasks for that since {clock(streak.first_us)}, {lasts} by "
        "now.",
        f"status {reported.code} ({cause.name}) in {streak.times} {plural(streak.times, 'answer')} over {lasts}",
        streak.frames,
        generation=reported.member.epoch,
        severity=cause.severity,
        **about_one(stale),
    )


def _stale(group: EpochGroupData) -> list[EpochMember]:
    """Return the members that have the status of an old topology."""
    return [member for member in group.present_members() if any(code == STALE_TOPOLOGY for code, _ in member.statuses)]


def _asked_to_stop(group: EpochGroupData, reported: StatusReported) -> Breach | None:
    """Return the breach of a request to stop that was not seen; the answers quote who made it."""
    since_us = reported.exchange.res_us - SHUTDOWN_WINDOW_US
    if reported.code != SHUTDOWN_APPLICATION or any(at_us > since_us for at_us, _ in group.shutdowns):
        return None
    detail = f": “{reported.detail}”" if reported.detail else ""
    return Breach(
        "",
        f"The members of Streams group {group.name} are told to stop, at the request of one that was not seen{detail}.",
        f"status {SHUTDOWN_APPLICATION} (shutdown application) in {reported.streak.times} {plural(reported.streak.times, 'answer')}",
        reported.streak.frames,
        generation=reported.member.epoch,
    )


@rule("application told to stop", INFO, CERTAIN, CLIENT, quiet_times=15, also=(_asked_to_stop,))
def R_20(group: EpochGroupData, asked: ShutdownAsked) -> Breach:
    """All instances of a Streams application stop, because one met an error that it holds for fatal.

    Condition: A member's heartbeat asks for it, or answers have status 4 although no such request was seen within an hour. Critical
        if another member asks within an hour: the application was restarted, and fails again.
    Expected: An application that runs.
    Action: Read the log of the member named: it holds the exception that it took for fatal. Mend its cause before the application
        starts again, or it stops again.
    False alarms: None known.
    """
    member, times, ids = asked.member, len(asked.shutdowns), [id_ for _, id_ in asked.shutdowns]
    again = f"; {times} such requests within an hour: the application comes back and fails again" if times > 1 else ""
    others = [other for other in map(group.members.get, ids) if other is not None and other.actor.named != member.actor.named]
    beside = f", and so did {some([who(other) for other in others], _NAMED)}" if others else ""
    return Breach(
        "",
        f"{begin(who(member))} asked the whole application of Streams group {group.name} to stop{beside}{again}.",
        f"a heartbeat with the flag to shut the application down, {times} within an hour",
        (asked.frame,),
        generation=member.epoch,
        severity=CRITICAL if times > 1 else None,
        **about_one([member, *others]),
    )


@timer_rule("share group gets nothing", WARNING, HEURISTIC, CONFIG)
def R_21(group: EpochGroupData) -> Iterator[Due]:
    """Nobody reads the group's topics.

    Condition: No member of a share group has had any partition at the newest epoch for a minute, and each subscribes to topics.
    Expected: Partitions within seconds of the first join.
    Action: Look whether the topics exist, unless the finding says so, and at the log of the share coordinator
        (__share_group_state).
    False alarms: Topics that are made later on purpose.
    """
    members = list(group.present_members()) if group.kind == SHARE else []
    if not members or any(not member.empty_since_us or not member.topics for member in members):
        return
    since_us = max(member.empty_since_us for member in members)

    def describe() -> Breach:
        why = _why_nothing(group, sorted({topic for member in members for topic in member.topics or ()}))
        return Breach(
            "",
            f"No member of share group {group.name} has been assigned anything since {clock(since_us)}: {why}.",
            f"{len(members)} {plural(len(members), 'member')} at epoch {group.epoch} without partitions",
            captured(*(member.granted_frame for member in members[:2])),
            generation=group.epoch,
            **about_one(members),
        )

    yield Due(since_us + _NOTHING_US, "", WARNING, describe)


def _why_nothing(group: EpochGroupData, topics: list[str]) -> str:
    gone = [topic for topic in topics if group.facts.is_deleted(group.cluster, topic)]
    there = [topic for topic in topics if topic not in gone and group.facts.has_topic(group.cluster, topic)]
    if there:
        exist = plural(len(there), "exists", "exist")
        return f"{', '.join(there[:3])} {exist}, so the share coordinator has not made the partitions ready"
    if len(gone) == len(topics):
        return f"{', '.join(gone[:3])} {plural(len(gone), 'does', 'do')} not exist"
    return f"{', '.join(topics[:3])} may not exist, or the share coordinator has not made their partitions ready"


def _has_joined(group: EpochGroupData, client: str) -> bool:
    return any(client_text(member.actor) == client for member in group.present_members())


@rule("topology refused", WARNING, CERTAIN, CONFIG, over=_has_joined)
def R_22(group: EpochGroupData, refused: StreamsJoinRefused) -> Breach:
    """An instance of a Streams application does not start.

    Condition: A well-formed join of a Streams group was answered STREAMS_INVALID_TOPOLOGY, STREAMS_INVALID_TOPOLOGY_EPOCH,
        STREAMS_TOPOLOGY_FENCED, or INVALID_REQUEST, which brokers answer to a topology other than the group's.
    Expected: One topology for all instances, of which the broker can make the internal topics.
    Action: Read the broker's reason, if it gives one. Where this is another application than the group's members are, give it an
        application.id of its own. Where it is a changed version of theirs, stop all instances of the older one before it starts: up
        to 4.4 brokers take a new topology only in an empty group.
    False alarms: None known.
    """
    exchange = refused.exchange
    reason = error_name(exchange.error) + (f": “{refused.text}”" if refused.text else "")
    return Breach.of_sender(
        exchange,
        f"{begin(sender_text(exchange))} cannot join Streams group {group.name}: its topology is refused with {reason}.",
        f"a join with a topology answered {reason}",
        epoch_exchange_evidence(exchange),
        subject=client_text(exchange.actor),  # one that is started anew and refused again has another member id each time
        generation=None,
    )


@rule("goes on after it was told to stop", WARNING, CONFIRMED, CLIENT)
def R_23(group: EpochGroupData, ignored: StopIgnored) -> Breach:
    """An instance of a Streams application runs on while the others stop: it is to take all their tasks, and meets their error.

    Condition: A member has sent heartbeats for more than a minute since it was told first that the application stops (status 4),
        and was not told otherwise.
    Expected: It closes, and leaves.
    Action: Stop that instance; look for a close() that hangs, or a library that does not know the status.
    False alarms: An instance whose state takes more than a minute to close.
    """
    member = ignored.member
    return Breach.of_member(
        member,
        f"{begin(who(member))} goes on in Streams group {group.name} although it was told {seconds(ignored.lasts_us)} ago that the "
        "application stops: the others stop, and it keeps its tasks.",
        f"a heartbeat {seconds(ignored.lasts_us)} after status {SHUTDOWN_APPLICATION} (shutdown application)",
        epoch_exchange_evidence(ignored.exchange),
        generation=member.epoch,
    )

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

_MINUTE_US: Final = 60_000_000
_NAMED: Final = 3  #: members that a sentence names


class _Cause(NamedTuple):
    """A status that keeps tasks from members."""

    name: str
    text: str
    severity: Severity
    normal_us: int = 0  #: for so long it is normal; more than standstill_ms where brokers or deployments end it by themselves


_CAUSES: Final = {
    STALE_TOPOLOGY: _Cause("stale topology", "a member has an older version of the application", WARNING, _MINUTE_US),
    MISSING_SOURCE_TOPICS: _Cause("missing source topics", "a source topic does not exist", ERROR),
    INCORRECTLY_PARTITIONED_TOPICS: _Cause("wrong partition counts", "topics have numbers of partitions that do not fit", ERROR),
    MISSING_INTERNAL_TOPICS: _Cause("missing internal topics", "an internal topic does not exist", ERROR, _MINUTE_US),
    # The first delay is 3 s, and an assignment comes at most every 15 s.
    ASSIGNMENT_DELAYED: _Cause("assignment delayed", "the assignment is put off", WARNING, 30_000_000),
    MISSING_CLIENT_TAGS: _Cause("missing client tags", "clients lack tags that the assignor needs", WARNING, _MINUTE_US),
}
"""Status → what it means, and how long it may last. Applications are replaced, and internal topics made, within a minute."""


def _status_over(group: EpochGroupData, name: str) -> bool:
    return all(_CAUSES[code].name != name for code in group.status_streaks if code in _CAUSES)


@rule("no tasks, with a named cause", ERROR, CERTAIN, CONFIG, over=_status_over)
def R_19(group: EpochGroupData, reported: StatusReported) -> Breach | None:
    """A Streams application does nothing, and the coordinator says why.

    Condition: Answers to heartbeats of a Streams group have had the same status for 20 s (standstill_ms): 1 missing source topics, or
        2 wrong partition counts; a warning until it has lasted a minute. Or for a minute, in which the brokers make internal topics
        and a deployment replaces applications: 3 missing internal topics, 0 stale topology or 6 missing client tags (both a warning).
        Or for 30 s: 5, assignment delayed (a warning).
    Expected: No status, or one that lasts seconds while the application starts.
    Action: Do what the cause says: make the topic named, correct its partitions, stop the old version, set the tags.
    False alarms: A topic that is made later on purpose. Before 4.2 an answer with null ends a status.
    """
    cause, streak = _CAUSES.get(reported.code), reported.streak
    lasts_us = streak.last_us - streak.first_us
    if cause is None or lasts_us < max(cause.normal_us, group.settings.standstill_ms * 1_000):
        return None
    lasts = seconds(lasts_us)
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
        severity=cause.severity if lasts_us >= _MINUTE_US else WARNING,
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

    Condition: No member of a share group has had any partition at the newest epoch for 20 s (standstill_ms), and Metadata answers say
        that none of their topics exists. Or for a minute, in which the share coordinator makes partitions ready.
    Expected: Partitions within seconds of the first join.
    Action: Look whether the topics exist, unless the finding says so, and at the log of the share coordinator
        (__share_group_state).
    False alarms: Topics that are made later on purpose.
    """
    members = list(group.present_members()) if group.kind == SHARE else []
    if not members or any(not member.empty_since_us or not member.topics for member in members):
        return
    since_us = max(member.empty_since_us for member in members)
    topics = sorted({topic for member in members for topic in member.topics or ()})
    gone = all(group.facts.is_deleted(group.cluster, topic) for topic in topics)
    normal_us = group.settings.standstill_ms * 1_000 if gone else _MINUTE_US

    def describe() -> Breach:
        exist = plural(len(topics), "does", "do")
        why = f"{', '.join(topics[:3])} {exist} not exist" if gone else _why_nothing(group, topics)
        return Breach(
            "",
            f"No member of share group {group.name} has been assigned anything since {clock(since_us)}: {why}.",
            f"{len(members)} {plural(len(members), 'member')} at epoch {group.epoch} without partitions",
            captured(*(member.granted_frame for member in members[:2])),
            generation=group.epoch,
            certainty=CONFIRMED if gone else None,
            **about_one(members),
        )

    yield Due(since_us + normal_us, "", WARNING, describe)


def _why_nothing(group: EpochGroupData, topics: list[str]) -> str:
    facts, cluster = group.facts, group.cluster
    there = [topic for topic in topics if facts.has_topic(cluster, topic) and not facts.is_deleted(cluster, topic)]
    if there:
        exist = plural(len(there), "exists", "exist")
        return f"{', '.join(there[:3])} {exist}, so the share coordinator has not made the partitions ready"
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

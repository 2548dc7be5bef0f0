"""Family O: clients that do not go on where their group stood."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from coordinator_model.finding import CERTAIN, CLIENT, CONFIG, CONFIRMED, HEURISTIC, INFO, OPERATOR, WARNING
from coordinator_model.groups.classic.group import ClassicGroup
from coordinator_model.groups.committed_offsets import FASTEST_PER_S, CommittedAhead, CommittedUnread, OffsetsGone, SetBack, Step
from coordinator_model.groups.epochs.data import EpochGroupData
from coordinator_model.groups.evidence import client_text, request_evidence, response_evidence
from coordinator_model.groups.group import GroupModel
from coordinator_model.groups.records import Exchange
from coordinator_model.rules.base import Breach, HeldFinding, rule, the_client, whom
from coordinator_model.wire import error_name
from coordinator_model.wire.constants import NONE
from coordinator_model.wording import begin, clock, counted, plural, seconds, some

_NAMED: Final = 3  # partitions that a sentence names
_RETAINED_US: Final = 60_000_000  #: the shortest offsets.retention.minutes
_WHEN_GONE: Final = (
    "If records must not be skipped, set the offsets to those named here (kafka-consumer-groups.sh --reset-offsets) while the group is "
    "stopped. Raise offsets.retention.minutes of the brokers above the longest time for which the group is empty; else ask who deleted "
    "offsets or made the topic anew."
)
_WHEN_MADE_ANEW: Final = (
    "Ask who made the topic anew. If none of its records must be skipped, set the offsets to its beginning (kafka-consumer-groups.sh "
    "--reset-offsets --to-earliest) while the group is stopped."
)


def _name(exchange: Exchange) -> str:
    return (
        f"Member {exchange.member_id} {whom(exchange.actor)}"
        if exchange.member_id
        else f"A client that is no member {whom(exchange.actor)}"
    )


def _moves(steps: Iterable[Step]) -> str:
    """Return ``t-0 from 4200 to 91000, t-1 to 7 and 4 more partitions``, those first whose step is known."""
    known_first = sorted(steps, key=lambda step: step[2] < 0)
    words = [
        f"{topic}-{partition} {f'from {before} ' if before >= 0 else ''}to {at}" for topic, partition, before, at in known_first
    ]
    more = len(words) - _NAMED
    return ", ".join(words[:_NAMED]) + (f" and {more} more {plural(more, 'partition')}" if more > 0 else "")


def _read_after_all(group: ClassicGroup | EpochGroupData, held: HeldFinding) -> bool:
    """Return True if the answer to a repeated read was captured late."""
    read_us = group.committed_offsets.read_us.get(held.subject)
    return read_us is not None and read_us <= held.opened_us


def offsets_gone(group: GroupModel[Any], gone: OffsetsGone) -> Breach:
    """Return the breach of offsets that were committed and are gone."""
    exchange, until_us = gone.exchange, max(one.committed_s for one in gone.gone) * 1_000_000
    names = some([f"{one.topic}-{one.partition} at {one.offset}" for one in gone.gone], _NAMED)
    why = _why_gone(group, gone, until_us)
    return Breach(
        "",
        f"The offsets of {counted(len(gone.gone), 'partition')} that group {group.name} had committed until {clock(until_us)} are "
        f"gone: {names}.{why.words} auto.offset.reset decides where its members begin: with earliest they read {why.read}, with "
        "latest they skip what came meanwhile.",
        f"OffsetFetch answered with no offset for {counted(len(gone.gone), 'partition')} of which a commit was seen",
        (request_evidence(exchange), response_evidence(exchange, NONE)),
        actor=exchange.actor,
        blame=CONFIG,
        certainty=CERTAIN,
        generation=group.generation,
        action=why.action,
    )


class _Why(NamedTuple):
    """Why offsets are gone, what members then read with ``earliest``, and what to do."""

    words: str
    read: str
    action: str


def _why_gone(group: GroupModel[Any], gone: OffsetsGone, until_us: int) -> _Why:
    made_us = [group.facts.made_anew_us(group.cluster, topic, until_us) for topic in {one.topic for one in gone.gone}]
    seen_us = [one for one in made_us if one is not None]
    if seen_us and len(seen_us) == len(made_us):
        what = plural(len(seen_us), "Its topic was", "Their topics were")
        read = plural(len(seen_us), "the new topic from its beginning", "the new topics from their beginnings")
        return _Why(f" {what} deleted, and made anew at {clock(max(seen_us))}.", read, _WHEN_MADE_ANEW)
    again = f"up to {counted(sum(one.offset for one in gone.gone), 'record')} again"
    empty_us, ended_us = group.usual.empty_us
    if empty_us and ended_us and ended_us - empty_us > _RETAINED_US:
        return _Why(
            f" The group was empty for {seconds(ended_us - empty_us)} since {clock(empty_us)}: retention.", again, _WHEN_GONE
        )
    return _Why("", f"{again} unless the topic was made anew", _WHEN_GONE)


@rule("start position not read", WARNING, CONFIRMED, CLIENT, explained=_read_after_all, also=(offsets_gone,))
def O_10(group: GroupModel[Any], unread: CommittedUnread) -> Breach:
    """A client that could not read the group's offset took that for none, and began where auto.offset.reset says: with latest it
    skips everything in between, with earliest it processes everything again. Its commit hides that.

    Condition: An OffsetFetch was refused for a partition (STALE_MEMBER_EPOCH, UNKNOWN_MEMBER_ID, UNSTABLE_OFFSET_COMMIT or any
        other error), no client of that client id and host read it since, none is being read, and a commit of it was accepted. Or it
        was answered with no offset although a commit of it was seen: the offset is gone. The first 256 partitions of a request are
        watched.
    Expected: A refused OffsetFetch is repeated until it succeeds, before the first record is read.
    Action: Stop the named client before it goes on, set the offsets of the partitions named back to where the group stood
        (kafka-consumer-groups.sh --reset-offsets), and upgrade the client library.
    False alarms: An application that keeps its positions elsewhere and seeks to them although the library's read failed. A topic
        that was deleted and made again has no offsets.
    """
    exchange, fetch = unread.exchange, unread.fetch
    why = error_name(fetch.error)
    times = "" if fetch.times == 1 else f" {fetch.times} times"
    waited_us = exchange.inv_us - fetch.last_us
    return Breach.of_sender(
        exchange,
        f"{_name(exchange)} commits offsets of group {group.name} without knowing where the group stood: its OffsetFetch was "
        f"answered {why}{times}, {seconds(waited_us)} before the commit, and was not repeated. It moves {_moves(unread.steps)}.",
        f"{len(unread.steps)} {plural(len(unread.steps), 'partition')} committed after an OffsetFetch answered {why}",
        (*fetch.frames, request_evidence(exchange), response_evidence(exchange, NONE)),
        subject=client_text(exchange.actor),
    )


@rule("commit far ahead", WARNING, HEURISTIC, CLIENT, suppressed_by=("O-02", "O-10"))
def O_11(group: GroupModel[Any], ahead: CommittedAhead) -> Breach:
    """Records were skipped: the group's offset went further than its members can have read.

    Condition: An accepted commit is ahead of the newest one known of that partition by more than two million records for each
        second since then.
    Expected: Offsets that follow what was read.
    Action: Ask whether somebody sought to the end on purpose. Else compare auto.offset.reset and the topic's retention with the
        offsets named: a group that stood before the oldest record begins anew.
    False alarms: A compacted topic, whose offsets have gaps; an application that seeks.
    """
    exchange = ahead.exchange
    return Breach.of_sender(
        exchange,
        f"{_name(exchange)} moves group {group.name} further ahead than anybody can have read in the {ahead.elapsed_s} s since the "
        f"commit before: {_moves(ahead.steps)}.",
        f"{len(ahead.steps)} {plural(len(ahead.steps), 'partition')} committed more than {FASTEST_PER_S} records per second ahead",
        (request_evidence(exchange), response_evidence(exchange, NONE)),
        subject=client_text(exchange.actor),
    )


@rule("offsets set back", INFO, CERTAIN, OPERATOR)
def O_13(group: GroupModel[Any], back: SetBack) -> Breach:
    """Somebody who is no member set the group back: its members read records again.

    Condition: An accepted OffsetCommit that names no member holds a lower offset than the newest one known of that partition, or
        sets all offsets that its client has set back within the last hour once more. A warning if the same client sets offsets back
        again within an hour.
    Expected: Offsets that are set while the group is stopped, once, by whom it concerns.
    Action: If an operator reset the group on purpose, nothing. Else find the client named: a tool for another cluster, or a mirror
        that copies offsets (MirrorMaker's sync.group.offsets), must not write for a group that is used here.
    False alarms: An application without members that seeks back.
    """
    exchange, recurs = back.exchange, back.times > 1
    records = sum(before - offset for _, _, before, offset in back.steps)
    again = f", {back.times} times by now" if recurs else ""
    when = " while the group was empty" if back.is_empty else ""
    if back.before_us:
        when += f", at {clock(back.before_us)} and to the same offsets once more at {clock(exchange.res_us)}"
    return Breach(
        client_text(exchange.actor),
        f"{begin(the_client(exchange.actor))}, which is no member, set group {group.name} back on "
        f"{counted(len(back.steps), 'partition')}{when}{again}: {_moves(back.steps)}. {counted(records, 'record')} "
        f"{plural(records, 'is', 'are')} read again.",
        f"an OffsetCommit without a member accepted at {clock(exchange.res_us)}, behind earlier offsets of "
        f"{counted(len(back.steps), 'partition')}",
        (request_evidence(exchange), response_evidence(exchange, NONE)),
        actor=exchange.actor,
        severity=WARNING if recurs else None,
    )

"""Family O: clients that do not go on where their group stood."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from coordinator_model.finding import CLIENT, CONFIG, CONFIRMED, HEURISTIC, WARNING
from coordinator_model.groups.classic.group import ClassicGroup
from coordinator_model.groups.committed_offsets import FASTEST_PER_S, CommittedAhead, CommittedUnread, Step
from coordinator_model.groups.epochs.data import EpochGroupData
from coordinator_model.groups.evidence import client_text, request_evidence, response_evidence
from coordinator_model.groups.group import GroupModel
from coordinator_model.groups.records import Exchange
from coordinator_model.rules.base import Breach, HeldFinding, rule, whom
from coordinator_model.wire import error_name
from coordinator_model.wire.constants import NONE
from coordinator_model.wording import plural, seconds

_NAMED: Final = 3  # partitions that a sentence names


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


@rule("start position not read", WARNING, CONFIRMED, CLIENT, explained=_read_after_all)
def O_10(group: GroupModel[Any], unread: CommittedUnread) -> Breach:
    """A client that could not read the group's offset took that for none, and began where auto.offset.reset says: with latest it
    skips everything in between, with earliest it processes everything again. Its commit hides that.

    Condition: An OffsetFetch was refused for a partition (STALE_MEMBER_EPOCH, UNKNOWN_MEMBER_ID, UNSTABLE_OFFSET_COMMIT or any
        other error), or answered with no offset although a commit of it was seen; no client of that client id and host read it
        since, none is being read, and a commit of it was accepted. The first 256 partitions of a request are watched.
    Expected: A refused OffsetFetch is repeated until it succeeds, before the first record is read.
    Action: Stop the named client before it goes on, set the offsets of the partitions named back to where the group stood
        (kafka-consumer-groups.sh --reset-offsets), and upgrade the client library. If there was no offset, look at
        offsets.retention.minutes and at whoever deletes offsets.
    False alarms: An application that keeps its positions elsewhere and seeks to them although the library's read failed. A topic
        that was deleted and made again has no offsets.
    """
    exchange, fetch = unread.exchange, unread.fetch
    why = error_name(fetch.error) if fetch.error else "no offset, although the group had committed one"
    times = "" if fetch.times == 1 else f" {fetch.times} times"
    waited_us = exchange.inv_us - fetch.last_us
    return Breach.of_sender(
        exchange,
        f"{_name(exchange)} commits offsets of group {group.name} without knowing where the group stood: its OffsetFetch was "
        f"answered {why}{times}, {seconds(waited_us)} before the commit, and was not repeated. It moves {_moves(unread.steps)}.",
        f"{len(unread.steps)} {plural(len(unread.steps), 'partition')} committed after an OffsetFetch answered {why}",
        (*fetch.frames, request_evidence(exchange), response_evidence(exchange, NONE)),
        blame=None if fetch.error else CONFIG,
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

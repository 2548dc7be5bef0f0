"""Timeouts: of sessions, of polls, and of the first rebalance of an empty group."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from coordinator_model.advice.advice import Advice, Saving
from coordinator_model.advice.history import LEFT, SILENT, History, Rebalance
from coordinator_model.advice.libraries import words_of
from coordinator_model.advice.membership import SESSIONS_S, SPARE, advice, session_s, session_setting
from coordinator_model.wording import counted

LONGER_SESSION: Final = "longer session timeout"
SHORTER_SESSION: Final = "shorter session timeout"
LONGER_POLL: Final = "longer poll interval"
SHORTER_REBALANCE: Final = "shorter rebalance timeout"
INITIAL_DELAY: Final = "initial rebalance delay"

_POLL_REASON: Final = "poll timeout has expired"
"""Of a Java client since 3.2 that leaves because its application did not poll for ``max.poll.interval.ms``."""

_DELAYS_S: Final = (3.0, 5.0, 10.0, 20.0, 30.0)
_LEAST_SESSION_S: Final = 6.0
"""The broker's default of ``group.min.session.timeout.ms``."""


def longer_session(history: History) -> Iterator[Advice]:
    """Processes that paused, lost their places and went on: with a longer session they had kept them."""
    now_s = session_s(history)
    paused = {n: one.paused_s for n, one in enumerate(history.departures) if one.paused_s is not None and one.back_us is not None}
    crashes = [one for one in history.departures if one.how == SILENT and one.alive_us is None]
    for session in (one for one in SESSIONS_S if one > now_s):
        survived = {number for number, paused_s in paused.items() if paused_s * SPARE < session}
        rebalances = history.without(survived)
        kept = history.kept(survived, rebalances)
        lost = history.lost(rebalances)
        held_s = history.partitions_each * sum(one.paused_s or 0.0 for one in kept)
        later_s = history.partitions_each * (session - now_s) * len(crashes)
        yield advice(
            history,
            LONGER_SESSION,
            session_setting(history, session),
            rebalances,
            Saving(lost.member_seconds, lost.partition_seconds - held_s - later_s),
            assumes=f"{counted(len(kept), 'member')} paused for up to "
            f"{max((one.paused_s or 0.0 for one in kept), default=0.0):.1f} s and went on.",
            costs=f"A crash is noticed after {session:g} s instead of {now_s:g} s: that happened to "
            f"{counted(len(crashes), 'member')} in this "
            f"time, which would have cost {counted(round(later_s), 'partition-second')} more, which is taken off.",
        )


def shorter_session(history: History) -> Iterator[Advice]:
    """Crashed members were noticed when their sessions ended: until then no member had their partitions, and others waited for them."""
    now_s = session_s(history)
    if history.group_type != "classic" or history.session_ms is None:
        return
    for session in (one for one in SESSIONS_S if _LEAST_SESSION_S <= one <= now_s / 1.5):
        sooner_s = now_s - session
        members_s = partitions_s = 0.0
        rebalances: list[int] = []
        for index, rebalance in enumerate(history.rebalances):
            crashed = [
                history.departures[number]
                for number in history.changes[index]
                if number is not None and history.departures[number].rebalance == index
            ]
            crashed = [one for one in crashed if one.how == SILENT and one.alive_us is None]
            if not crashed:
                continue
            unnoticed = [min(sooner_s, max(0.0, (rebalance.ended_us - one.since_us) / 1e6 - session)) for one in crashed]
            waited_s = min(_waited_in_vain_s(rebalance), sooner_s)
            rebalances.append(index)
            members_s += min(waited_s * _idle(rebalance), rebalance.lost.member_seconds)
            partitions_s += min(sum(unnoticed) * history.partitions_each, rebalance.lost.partition_seconds)
        yield advice(
            history,
            SHORTER_SESSION,
            session_setting(history, session),
            rebalances,
            Saving(members_s, partitions_s),
            assumes=f"Members heartbeat every {session / 3:.1f} s or oftener, and none pauses for {session:g} "
            "s: pauses that were survived so far "
            "are not seen in events.",
            costs=f"A member that pauses for longer than {session:g} s loses its place.",
        )


def longer_poll(history: History) -> Iterator[Advice]:
    """Members left because they did not poll in time, and came back when they did."""
    if history.rebalance_ms is None:
        return
    late = {
        number
        for number, one in enumerate(history.departures)
        if one.how == LEFT and _POLL_REASON in one.reason and one.away_s is not None
    }
    rebalances = history.without(late)
    kept = history.kept(late, rebalances)
    lost = history.lost(rebalances)
    longest_s = max((one.away_s or 0.0 for one in kept), default=0.0)
    held_s = history.partitions_each * sum(one.away_s or 0.0 for one in kept)
    needed_ms = round((history.rebalance_ms + longest_s * 1000) * SPARE, -3)
    yield advice(
        history,
        LONGER_POLL,
        f"{words_of(history.software).poll.format(f'{needed_ms:.0f}')}, or fewer records for each poll (max.poll.records)",
        rebalances,
        Saving(lost.member_seconds, lost.partition_seconds - held_s),
        assumes=f"{counted(len(kept), 'member')} left by themselves after {history.rebalance_ms} ms without a poll, and came back within "
        f"{longest_s:.1f} s.",
        costs=f"A member whose application is stuck keeps its partitions for {needed_ms / 1000:,.0f} s, "
        "and holds a join phase up for as long.",
    )


def shorter_rebalance(history: History) -> Iterator[Advice]:
    """Others waited the whole rebalance timeout for a member that never came."""
    if history.rebalance_ms is None or history.group_type != "classic":
        return
    now_s = history.rebalance_ms / 1000
    came_s = max(
        (one.waited_ms / 1000 for each in history.rebalances for one in each.event.waited_for if one.came),
        default=0.0,
    )
    proposed_s = max(2 * came_s, now_s / 10, session_s(history))
    rebalances = [index for index, one in enumerate(history.rebalances) if _waited_in_vain_s(one) > max(proposed_s, 0.8 * now_s)]
    members_s = partitions_s = 0.0
    for rebalance in (history.rebalances[index] for index in rebalances):
        sooner_s = _waited_in_vain_s(rebalance) - proposed_s
        members_s += min(sooner_s * _idle(rebalance), rebalance.lost.member_seconds)
        partitions_s += rebalance.lost.partition_seconds * sooner_s / max(rebalance.took_s, sooner_s)
    if proposed_s < 0.8 * now_s:
        yield advice(
            history,
            SHORTER_REBALANCE,
            words_of(history.software).poll.format(f"{proposed_s * 1000:.0f}"),
            rebalances,
            Saving(members_s, partitions_s),
            assumes=f"No member needs longer than {proposed_s:.1f} s between two polls; the slowest that came "
            f"took {came_s:.1f} s to rejoin.",
            costs=f"A member that needs longer than {proposed_s:.1f} s loses its place.",
        )


def initial_delay(history: History) -> Iterator[Advice]:
    """A group that starts has one rebalance for each member that comes after the delay; a longer delay has one for all."""
    starts = list(_starts(history))
    for delay_s in _DELAYS_S:
        members_s = 0.0
        rebalances: list[int] = []
        for start in starts:
            now_s = history.lost(start).member_seconds
            then_s = _start_costs_s(history, start, delay_s)
            if then_s < now_s:
                rebalances += start
                members_s += now_s - then_s
        yield advice(
            history,
            INITIAL_DELAY,
            f"group.initial.rebalance.delay.ms={delay_s * 1000:.0f} of the brokers",
            rebalances,
            Saving(members_s, 0.0),
            assumes="Members of a group that starts come as far apart as they did.",
            costs=f"It is of all groups of the brokers: each that was empty waits {delay_s:g} s for its first member's partitions.",
        )


def _starts(history: History) -> Iterator[list[int]]:
    """Runs of at least two rebalances by which an empty group came to its members: nothing but new ones came."""
    run: list[int] = []
    for index, rebalance in enumerate(history.rebalances):
        from_none = bool(rebalance.members) and all(one.new for one in rebalance.members)
        goes_on = bool(run) and rebalance.new and all(number is None for number in history.changes[index])
        if goes_on and rebalance.began_us - history.rebalances[run[-1]].ended_us <= _DELAYS_S[-1] * 1e6:
            run.append(index)
            continue
        if len(run) > 1:
            yield run
        run = [index] if from_none and history.group_type == "classic" and rebalance.event.join_ms is not None else []
    if len(run) > 1:
        yield run


def _start_costs_s(history: History, start: list[int], delay_s: float) -> float:
    """Return the member-seconds of a start with another delay, which goes on while members have come in its last step."""
    came = {one.member_id: one.joined_us / 1e6 for index in start for one in history.rebalances[index].new}
    joined = sorted(came.values())
    end_s = joined[0] + delay_s
    while any(end_s - delay_s < one <= end_s for one in joined[1:]):
        end_s += delay_s
    later = [index for index in start if any(came[one.member_id] > end_s for one in history.rebalances[index].new)]
    return sum(end_s - one for one in joined if one <= end_s) + history.lost(later).member_seconds


def _waited_in_vain_s(rebalance: Rebalance) -> float:
    """Return for how long the others waited for a member that never came."""
    return max((one.waited_ms / 1000 for one in rebalance.event.waited_for if not one.came), default=0.0)


def _idle(rebalance: Rebalance) -> int:
    return sum(one.stopped_us > 0 for one in rebalance.members)

"""Who goes and comes back: static membership, no LeaveGroup, restarts together, fewer steps of an autoscaler."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from coordinator_model.advice.advice import Advice, Saving
from coordinator_model.advice.history import LEFT, Departure, History, total
from coordinator_model.advice.libraries import words_of
from coordinator_model.wording import counted

STATIC: Final = "static membership"
NO_LEAVE: Final = "no LeaveGroup at a restart"
TOGETHER: Final = "restart together"
FEWER_STEPS: Final = "fewer scale steps"

SESSIONS_S: Final = (6, 10, 20, 30, 45, 60, 90, 120, 180, 300, 600, 900, 1_800)
"""Session timeouts that are proposed."""

CONSUMER_SESSION_S: Final = 45.0
"""The broker's default of ``group.consumer.session.timeout.ms``."""

SPARE: Final = 1.2
"""By how much a timeout is longer than what it has to outlast."""

_ENOUGH: Final = 0.9
"""Of what the longest session timeout would save."""

_RUN_S: Final = 300.0
"""Restarts, or scale steps, that follow each other within this time belong together."""

_LEAST_RUN: Final = 3
_START_S: Final = 3.5
"""What a group that starts together waits: the broker's default of ``group.initial.rebalance.delay.ms`` and its phases."""


def static_membership(history: History) -> Iterator[Advice]:
    """Members that restart within S keep their places: neither their leave nor their return is a rebalance."""
    words = words_of(history.software)
    if history.group_type == "share" or words.instance_id is None:
        return
    away = {
        number: one.away_s
        for number, one in enumerate(history.departures)
        if one.away_s is not None and one.paused_s is None and one.who.instance_id is None
    }
    now_s = session_s(history)
    found = []
    for session in sorted({now_s, *(one for one in SESSIONS_S if one > now_s)}):
        within = {number for number, away_s in away.items() if away_s * SPARE < session}
        found.append((session, within, history.without(within)))
    most = max(history.lost(rebalances).member_seconds for _, _, rebalances in found)
    chosen_s, within, rebalances = next(one for one in found if history.lost(one[2]).member_seconds >= _ENOUGH * most)
    kept = history.kept(within, rebalances)
    lost = history.lost(rebalances)
    unheld_s = history.partitions_each * sum(one.away_s or 0.0 for one in kept)
    longer = chosen_s > now_s
    crashes = [one for one in history.departures if one.how != LEFT and one.back_us is None]
    found_later = (
        f" A crash is noticed after {chosen_s:g} s instead of {now_s:g} s: that happened to {counted(len(crashes), 'member')}"
        " in this time."
        if longer
        else ""
    )
    yield advice(
        history,
        STATIC,
        f"{words.instance_id}{f'; {session_setting(history, chosen_s)}' if longer else ''}",
        rebalances,
        Saving(lost.member_seconds, lost.partition_seconds - unheld_s),
        assumes=f"{counted(len(kept), 'restart')} took up to {max((one.away_s or 0.0 for one in kept), default=0.0):.1f} s, "
        "known by client id and host. Each process comes back with its own name and the same subscription.",
        costs=f"Partitions of a member that restarts wait for it: {counted(round(unheld_s), 'partition-second')}.{found_later}",
    )


def no_leave(history: History) -> Iterator[Advice]:
    """A member that restarts does not leave: one rebalance less, but without a name the next waits for its session to end."""
    words, session = words_of(history.software), session_s(history)
    restarts = {
        n for n, one in enumerate(history.departures) if one.how == LEFT and one.away_s is not None and one.away_s * SPARE < session
    }
    static = {number for number in restarts if history.departures[number].who.instance_id is not None}
    assumes = "A process that goes down is the one that comes back."
    costs = f"The partitions of a member that goes for good wait until its session ends, {session:g} s."
    if static:
        rebalances = history.without(static)
        kept = history.kept(static, rebalances)
        lost = history.lost(rebalances)
        unheld_s = history.partitions_each * sum(one.away_s or 0.0 for one in kept)
        saved = Saving(lost.member_seconds, lost.partition_seconds - unheld_s)
        yield advice(
            history,
            NO_LEAVE,
            "send no LeaveGroup, and remove no members, for instance ids that come back",
            rebalances,
            saved,
            assumes=assumes,
            costs=costs,
        )
    elif words.no_leave is not None and history.group_type == "classic":
        alone = [number for number in sorted(restarts) if history.changes[history.departures[number].rebalance] == (number,)]
        rebalances = sorted({history.departures[number].rebalance for number in alone})
        waits_s = sum((session - (history.departures[number].away_s or 0.0)) * len(history.newest) for number in alone)
        lost = history.lost(rebalances)
        waiting = f" Each return waits for the old member's session to end: {waits_s:,.0f} member-seconds, which are taken off."
        saved = Saving(lost.member_seconds - waits_s, 0.0)
        yield advice(history, NO_LEAVE, words.no_leave, rebalances, saved, assumes=assumes, costs=costs + waiting)


def restart_together(history: History) -> Iterator[Advice]:
    """A rolling restart has two rebalances for each member; all at once have one."""
    restarts = [
        (one.since_us, number)
        for number, one in enumerate(history.departures)
        if one.how == LEFT and one.away_s is not None and one.away_s < _RUN_S
    ]
    rebalances: list[int] = []
    saved, downtime_s = Saving(), 0.0
    for run in runs(restarts):
        departures = [history.departures[number] for number in run]
        if len({one.who.client_id for one in departures}) < _LEAST_RUN:
            continue
        found = history.without(set(run))
        members = max((len(history.rebalances[index].members) for index in found), default=0)
        partitions = max((history.rebalances[index].partitions or 0 for index in found), default=0)
        down_s = max(one.away_s or 0.0 for one in departures) + _START_S
        once = Saving(members * _START_S, partitions * down_s)
        lost = history.lost(found)
        less = Saving(lost.member_seconds - once.member_seconds, lost.partition_seconds - once.partition_seconds)
        if min(less) > 0:
            rebalances += found
            saved, downtime_s = saved.plus(less), max(downtime_s, down_s)
    yield advice(
        history,
        TOGETHER,
        "stop all members, then start all (strategy Recreate of a Kubernetes Deployment)",
        sorted(set(rebalances)),
        saved,
        assumes="All members are down at the same time, for as long as the slowest of them was.",
        costs=f"Nobody consumes anything for {downtime_s:.1f} s at each such restart, which is taken off.",
    )


def fewer_steps(history: History) -> Iterator[Advice]:
    """Members that came or went for good, one step after the other, could have come or gone in one."""
    steps = []
    for index, changes in enumerate(history.changes):
        rebalance = history.rebalances[index]
        gone = [history.departures[number] for number in changes if number is not None]
        grew_from_none = rebalance.event.from_generation is None or not any(not one.new for one in rebalance.members)
        if changes and not grew_from_none and rebalance.members and all(_for_good(one) for one in gone):
            steps.append((rebalance.began_us, index))
    rebalances: list[int] = []
    saved = least = Saving()
    for run in runs(steps):
        rebalances += run
        saved = saved.plus(_all_but_dearest([history.rebalances[index].lost for index in run]))
        least = least.plus(_all_but_dearest([_but_new(history, index) for index in run]))
    yield advice(
        history,
        FEWER_STEPS,
        "scale in one step: a larger step and a longer cooldown of the autoscaler, or a higher minimum",
        rebalances,
        saved,
        assumes=f"{counted(len(rebalances), 'step')} within {_RUN_S:g} s of each other become one for each "
        "run, which costs what the dearest did. At least: new members wait as long as they did.",
        costs="Members run that the load does not need yet, or any more.",
        least=least,
    )


# --- shared ------------------------------------------------------------------------------------------------------------------


def advice(
    history: History,
    kind: str,
    setting: str,
    rebalances: Sequence[int],
    saved: Saving,
    *,
    assumes: str,
    costs: str,
    least: Saving | None = None,
    most: Saving | None = None,
) -> Advice:
    """Return a piece of advice whose savings are bounded by nothing and by what its rebalances lost."""
    lost = history.lost(rebalances)
    ids = tuple(history.rebalances[index].event.id for index in rebalances)
    saves = saved.within(lost)
    saves_least = saves if least is None else least.within(saves)
    saves_most = saves if most is None else Saving(*map(max, saves, most.within(lost)))
    return Advice(history.cluster, history.group, kind, setting, saves, saves_least, saves_most, lost, ids, assumes, costs)


def session_s(history: History) -> float:
    """Return the session timeout of a group in seconds."""
    return CONSUMER_SESSION_S if history.session_ms is None else history.session_ms / 1000


def session_setting(history: History, session: float) -> str:
    """Return how a session timeout is set: brokers decide on it for members with epochs."""
    if history.group_type != "classic":
        return f"consumer.session.timeout.ms={session * 1000:.0f} of the group (kafka-configs.sh --entity-type groups)"
    return words_of(history.software).session.format(f"{session * 1000:.0f}")


def runs(marked: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Return what follows each other within a time, at least three; of pairs (time, what) in any order."""
    found: list[list[int]] = []
    before_us: int | None = None
    for at_us, what in sorted(marked):
        if before_us is None or at_us - before_us > _RUN_S * 1e6:
            found.append([])
        found[-1].append(what)
        before_us = at_us
    return [one for one in found if len(one) >= _LEAST_RUN]


def _for_good(departure: Departure) -> bool:
    return departure.how == LEFT and departure.back_us is None


def _all_but_dearest(costs: Sequence[Saving]) -> Saving:
    rest = total(costs)
    most = Saving(max(one.member_seconds for one in costs), max(one.partition_seconds for one in costs))
    return Saving(rest.member_seconds - most.member_seconds, rest.partition_seconds - most.partition_seconds)


def _but_new(history: History, index: int) -> Saving:
    """Return what a rebalance cost without what its new members waited, who would have waited all the same."""
    rebalance = history.rebalances[index]
    waited = sum(map(rebalance.idle_s, rebalance.new))
    return Saving(max(0.0, rebalance.lost.member_seconds - waited), rebalance.lost.partition_seconds)

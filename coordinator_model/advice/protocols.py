"""Protocols in which members go on while the group rebalances: cooperative assignors, and the consumer protocol of KIP-848."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from coordinator_model.advice.advice import Advice, Saving
from coordinator_model.advice.history import History, Rebalance
from coordinator_model.advice.libraries import words_of
from coordinator_model.advice.membership import CONSUMER_SESSION_S, advice
from coordinator_model.wording import counted

COOPERATIVE: Final = "cooperative protocol"
CONSUMER_PROTOCOL: Final = "consumer protocol"

HEARTBEAT_S: Final = 5.0
"""The broker's default of ``group.consumer.heartbeat.interval.ms``: a new member waits for its next one."""

_EAGER: Final = frozenset({"range", "roundrobin", "sticky", "RoundRobinAssigner"})


def cooperative(history: History) -> Iterator[Advice]:
    """What stayed with its member stood still all the same, because members give up all before they join."""
    words = words_of(history.software)
    rebalances = _eager(history)
    if words.cooperative is None or not rebalances:
        return
    kept_s = [_kept_s(history.rebalances[index]) for index in rebalances]
    again_s = [_second_half_s(history, index) for index in rebalances]
    offered = any("cooperative-sticky" in one.assignors for one in history.newest)
    saved_s = sum(kept_s) - sum(again_s)
    yield advice(
        history,
        COOPERATIVE,
        f"{words.cooperative}{' alone: the members offer it already, beside ' + _assignor(history) if offered else ''}",
        rebalances,
        Saving(saved_s),
        assumes=f"In {counted(len(rebalances), 'rebalance')} members that rejoined would have gone on with what they kept. What a "
        "new member gets is "
        "handed over in a second rebalance that takes as long.",
        costs=f"New members wait for that second rebalance: {sum(again_s):,.1f} member-seconds, which are taken off."
        + ("" if offered else " The change takes two rolling restarts, the first of which offers both assignors."),
        least=Saving(sum(kept_s) - 2 * sum(again_s)),
        most=Saving(sum(kept_s)),  # new members find places free, and wait for no second rebalance
    )


def consumer_protocol(history: History) -> Iterator[Advice]:
    """Members come to a new epoch one by one, and those that keep partitions go on."""
    words = words_of(history.software)
    rebalances = _eager(history)
    if words.consumer_protocol is None or not rebalances:
        return
    new = sum(len(history.rebalances[index].new) for index in rebalances)
    waits_s = sum(_waits_s(history, index) for index in rebalances)
    lost = history.lost(rebalances)
    yield advice(
        history,
        CONSUMER_PROTOCOL,
        f"{words.consumer_protocol}, with brokers since 4.0",
        rebalances,
        Saving(lost.member_seconds - waits_s),
        assumes=f"Members heartbeat every {HEARTBEAT_S:g} s, the broker's default; "
        f"{counted(new, 'new member')} would wait for that instead "
        "of for all others.",
        costs=f"A new member waits up to {HEARTBEAT_S:g} s for partitions that others give up: "
        f"{waits_s:,.1f} member-seconds, which are taken "
        f"off. A crash is noticed after {CONSUMER_SESSION_S:g} s, unless the brokers' session timeout is shorter.",
        least=Saving(lost.member_seconds - HEARTBEAT_S * new),
        most=Saving(lost.member_seconds),
    )


def _eager(history: History) -> list[int]:
    """Rebalances of consumers in which members that rejoined gave up all before."""
    if history.group_type != "classic":
        return []
    return [index for index, one in enumerate(history.rebalances) if one.event.assignor in _EAGER and (_kept_s(one) > 0 or one.new)]


def _assignor(history: History) -> str:
    return next((one.event.assignor for one in reversed(history.rebalances) if one.event.assignor), "")


def _kept_s(rebalance: Rebalance) -> float:
    return min(sum(rebalance.idle_s(one) for one in rebalance.members if not one.new), rebalance.lost.member_seconds)


def _takers(history: History, index: int) -> int:
    """Return how many new members get what others have to give up; who takes the place of one that goes just now needs no second half."""
    rebalance = history.rebalances[index]
    gone = sum(number is not None and history.departures[number].rebalance == index for number in history.changes[index])
    others = len(rebalance.members) - len(rebalance.new)
    return max(0, len(rebalance.new) - gone) if others else 0


def _second_half_s(history: History, index: int) -> float:
    return _takers(history, index) * history.rebalances[index].took_s


def _waits_s(history: History, index: int) -> float:
    """Return what new members would wait for their first partitions: until the heartbeat after the one with which they join.

    Who comes back soon may get some at once: those of its place that are still free, as each other member takes its part of them with its
    own next heartbeat.
    """
    rebalance = history.rebalances[index]
    departures = [history.departures[number] for number in history.changes[index] if number is not None]
    back = [one.away_s or 0.0 for one in departures if one.back_us and rebalance.began_us <= one.back_us <= rebalance.ended_us]
    takers = max(1, min(round(history.partitions_each), len(rebalance.members) - 1))
    all_taken = [min(1.0, away_s / HEARTBEAT_S) ** takers for away_s in back]
    return HEARTBEAT_S * (sum(all_taken) + max(0, len(rebalance.new) - len(back)))

"""Protocols in which members go on while the group rebalances: cooperative assignors, and the consumer protocol of KIP-848."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from coordinator_model.advice.advice import Advice, Saving
from coordinator_model.advice.history import LEFT, History, Rebalance, total
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
    unheld = total(Saving(0.0, _partitions_lost_s(history, index)) for index in rebalances)
    offered = any("cooperative-sticky" in one.assignors for one in history.newest)
    lost, saved_s = history.lost(rebalances), sum(kept_s) - sum(again_s)
    yield advice(
        history,
        COOPERATIVE,
        f"{words.cooperative}{' alone: the members offer it already, beside ' + _assignor(history) if offered else ''}",
        rebalances,
        Saving(saved_s, lost.partition_seconds - unheld.partition_seconds),
        assumes=f"In {counted(len(rebalances), 'rebalance')} members that rejoined would have gone on with what they kept. What a "
        "new member gets is "
        "handed over in a second rebalance that takes as long.",
        costs=f"New members wait for that second rebalance: {sum(again_s):,.1f} member-seconds, which are taken off."
        + ("" if offered else " The change takes two rolling restarts, the first of which offers both assignors."),
        least=Saving(sum(kept_s) - 2 * sum(again_s), 0.0),
    )


def consumer_protocol(history: History) -> Iterator[Advice]:
    """Members come to a new epoch one by one, and those that keep partitions go on."""
    words = words_of(history.software)
    rebalances = _eager(history)
    if words.consumer_protocol is None or not rebalances:
        return
    new = [len(history.rebalances[index].new) for index in rebalances]
    takes_over = [number for number, index in zip(new, rebalances, strict=True) if not _is_return(history, index)]
    expected_s, most_s = HEARTBEAT_S * (sum(takes_over) + (sum(new) - sum(takes_over)) / 2), HEARTBEAT_S * sum(new)
    lost = history.lost(rebalances)
    gone = [one for one in history.departures if one.rebalance in rebalances]
    handed_s = history.partitions_each * HEARTBEAT_S / 2 * (len(gone) + sum(new))
    found_s = history.partitions_each * sum(CONSUMER_SESSION_S for one in gone if one.how != LEFT and one.alive_us is None)
    yield advice(
        history,
        CONSUMER_PROTOCOL,
        f"{words.consumer_protocol}, with brokers since 4.0",
        rebalances,
        Saving(lost.member_seconds - expected_s, lost.partition_seconds - handed_s - found_s),
        assumes=f"Members heartbeat every {HEARTBEAT_S:g} s, the broker's default; "
        f"{counted(sum(new), 'new member')} would wait for that instead "
        "of for all others.",
        costs=f"A new member waits up to {HEARTBEAT_S:g} s for partitions that others give up: "
        f"{expected_s:,.1f} member-seconds, which are taken "
        f"off. A crash is noticed after {CONSUMER_SESSION_S:g} s, unless the brokers' session timeout is shorter.",
        least=Saving(lost.member_seconds - most_s, 0.0),
    )


def _eager(history: History) -> list[int]:
    """Rebalances of consumers in which members that rejoined gave up all before."""
    if history.group_type != "classic":
        return []
    return [
        index
        for index, one in enumerate(history.rebalances)
        if one.event.get("assignor") in _EAGER and (_kept_s(one) > 0 or one.new)
    ]


def _assignor(history: History) -> str:
    return next((one.event["assignor"] for one in reversed(history.rebalances) if one.event.get("assignor")), "")


def _kept_s(rebalance: Rebalance) -> float:
    return min(sum(one.idle_s for one in rebalance.members if not one.is_new), rebalance.lost.member_seconds)


def _takers(history: History, index: int) -> int:
    """Return how many new members get what others have to give up; who takes the place of one that goes just now needs no second half."""
    rebalance = history.rebalances[index]
    gone = sum(number is not None and history.departures[number].rebalance == index for number in history.changes[index])
    others = len(rebalance.members) - len(rebalance.new)
    return max(0, len(rebalance.new) - gone) if others else 0


def _second_half_s(history: History, index: int) -> float:
    return _takers(history, index) * history.rebalances[index].took_s


def _partitions_lost_s(history: History, index: int) -> float:
    """Return the partition-seconds that a rebalance would cost all the same: of members that went, and of what is handed over."""
    rebalance = history.rebalances[index]
    gone_s = sum(
        (rebalance.ended_us - history.departures[number].since_us) / 1e6
        for number in history.changes[index]
        if number is not None and history.departures[number].rebalance == index
    )
    return history.partitions_each * (gone_s + _second_half_s(history, index))


def _is_return(history: History, index: int) -> bool:
    """Return True if its new members take places that became free a heartbeat ago or less: not all is handed over yet."""
    away = [history.departures[number].away_s for number in history.changes[index] if number is not None]
    return bool(away) and all(one is not None and one <= HEARTBEAT_S for one in away)

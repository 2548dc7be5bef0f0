"""Advice with proof: what other settings would have saved a group, computed from its own published events.

Pure functions of events (``docs/events.md``); ``docs/advice.md`` describes what each kind computes and assumes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from coordinator_model.advice import membership, protocols, timeouts
from coordinator_model.advice.advice import Advice, Saving
from coordinator_model.advice.explained import explained
from coordinator_model.advice.history import History, histories
from coordinator_model.events import GroupEvent

__all__ = ["KINDS", "MOST", "Advice", "Saving", "advise"]

MOST: Final = 3
"""Pieces of advice for one group."""

KINDS: Final[dict[str, Callable[[History], Iterator[Advice]]]] = {
    membership.STATIC: membership.static_membership,
    membership.NO_LEAVE: membership.no_leave,
    timeouts.LONGER_SESSION: timeouts.longer_session,
    timeouts.SHORTER_SESSION: timeouts.shorter_session,
    timeouts.INITIAL_DELAY: timeouts.initial_delay,
    protocols.COOPERATIVE: protocols.cooperative,
    protocols.CONSUMER_PROTOCOL: protocols.consumer_protocol,
    timeouts.LONGER_POLL: timeouts.longer_poll,
    timeouts.SHORTER_REBALANCE: timeouts.shorter_rebalance,
    membership.TOGETHER: membership.restart_together,
    membership.FEWER_STEPS: membership.fewer_steps,
}
"""All kinds of advice. Each gives its proposals, of which the one that saves most counts."""

_LEAST_S: Final = 1.0
_LEAST_PART: Final = 0.05
"""A saving that is less, of what the group lost in all, is none."""


def advise(events: Iterable[GroupEvent], findings: Iterable[Mapping[str, Any]] = ()) -> tuple[Advice, ...]:
    """Return what would have saved groups member-seconds or partition-seconds: at most three pieces for each group, by saving.

    :param events: of any groups, in any order; an event that is there twice counts once.
    :param findings: as published; a time in which one of :data:`explained.EXPLAINS` explains a group's rebalances is left out.
    """
    times = explained(findings)
    counts = (one for one in events if not any(span.covers(one) for span in times.get((one.cluster, one.group), ())))
    return tuple(piece for history in histories(counts) for piece in proposals(history)[:MOST])


def proposals(history: History) -> list[Advice]:
    """Return one piece of advice of each kind that saves something, by saving."""
    lost = history.lost(range(len(history.rebalances)))
    best = [max(kind(history), key=_saving, default=None) for kind in KINDS.values()]
    worth = [piece for piece in best if piece is not None and _is_worth(piece, lost)]
    return sorted(worth, key=_saving, reverse=True)


def _saving(piece: Advice) -> Saving:
    return piece.saves


def _is_worth(piece: Advice, lost: Saving) -> bool:
    """Return True if it saves something that counts, also without what events do not show."""
    bounds = zip(piece.saves, piece.saves_least, lost, strict=True)
    return any(saved >= max(_LEAST_S, _LEAST_PART * most) and least > 0 for saved, least, most in bounds)

"""Spares programs the collection of garbage that is none: a Spark worker that keeps models, a replay while it reads, a command at its ends.

PySpark's worker collects all garbage after each task, and so visits every object of the process. With 10,000 groups kept that was a
quarter of the worker's time: a third of a second after each batch, however little the batch had read. So what has outlived one of those
collections is frozen: set apart, where the next do not look.

What is frozen is still freed as soon as nothing refers to it, but not if it is part of a cycle. So once in :data:`ALL_EVERY`
collections everything is visited, and nothing stays for ever.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

ALL_EVERY: Final = 500

_OLDEST: Final = 2
_SELDOM: Final = 100_000  # objects made, net; Python's default is 700, from 3.13 on 2,000
_turn: Final = itertools.count(1)


@contextlib.contextmanager
def collected_seldom() -> Iterator[None]:
    """For what makes and drops objects by the million, hardly any of them in cycles: it was a twentieth of a replay's time.

    What is left of them is set apart.
    """
    before = gc.get_threshold()
    gc.set_threshold(_SELDOM, *before[1:])
    try:
        yield
    finally:
        gc.freeze()
        gc.set_threshold(*before)


def leave_uncollected() -> None:
    """For a process that ends: Python looks for cycles then, in all that there is. Behind a replay that was a tenth of its time."""
    gc.freeze()


def keep_collections_short() -> None:
    """From now on, in this process; calling it again changes nothing."""
    if _around_collection not in gc.callbacks:
        gc.callbacks.append(_around_collection)


def _around_collection(phase: Literal["start", "stop"], info: dict[str, Any]) -> None:
    if info["generation"] < _OLDEST:
        return
    if phase == "stop":
        gc.freeze()
    elif next(_turn) % ALL_EVERY == 0:
        gc.unfreeze()

"""Collections of garbage: they get short, and yet nothing that could be freed stays for ever."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from streaming import gc_tuning


class Node:
    """Something that can be part of a cycle."""

    other: Node | None = None


def cycle() -> weakref.ref[Node]:
    one, two = Node(), Node()
    one.other, two.other = two, one
    return weakref.ref(one)


@pytest.fixture
def _short() -> Iterator[None]:
    gc_tuning.keep_collections_short()
    gc_tuning.keep_collections_short()
    yield
    gc.callbacks.remove(gc_tuning._around_collection)
    gc.unfreeze()


@pytest.mark.usefixtures("_short")
def test_what_outlives_a_collection_is_not_visited_by_the_next() -> None:
    kept = [Node() for _ in range(1_000)]
    gc.collect()
    assert gc.get_freeze_count() > len(kept)
    assert len(gc.get_objects()) < len(kept)


@pytest.mark.usefixtures("_short")
def test_a_cycle_that_nobody_holds_is_freed_by_the_next_collection() -> None:
    gc.collect()
    lost = cycle()
    assert lost() is not None
    gc.collect()
    assert lost() is None


@pytest.mark.usefixtures("_short")
def test_a_cycle_that_was_frozen_is_freed_in_the_end() -> None:
    kept = Node()
    kept.other = Node()
    kept.other.other = kept
    lost = weakref.ref(kept)
    gc.collect()
    del kept
    gc.collect()
    assert lost() is not None
    for _ in range(gc_tuning.ALL_EVERY):
        gc.collect()
    assert lost() is None


def test_it_is_there_once() -> None:
    program = (
        "import gc; from streaming import gc_tuning\n"
        "for _ in range(3): gc_tuning.keep_collections_short()\n"
        "print(gc.callbacks.count(gc_tuning._around_collection))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1"


def test_pyspark_collects_garbage_after_each_task() -> None:
    """That is what all this is for; once it does not, this can go."""
    assert "gc.collect()" in (Path(pyspark.__file__).parent / "daemon.py").read_text(encoding="utf-8")


def test_what_is_collected_seldom_is_collected_as_before_afterwards() -> None:
    before = gc.get_threshold()
    with gc_tuning.collected_seldom():
        assert gc.get_threshold()[0] > 10 * before[0]
        left = [[]]
    assert gc.get_threshold() == before
    assert not any(found is left for found in gc.get_objects()), "nobody looks there any more"

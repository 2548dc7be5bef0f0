"""A model that is stored and restored after each record says what one says that is not; see ``restored.py``."""

from __future__ import annotations

from pathlib import Path

import pytest

from coordinator_model import groups
from coordinator_model.groups.classic import model as classic_model
from coordinator_model.groups.classic.data import GroupData
from coordinator_model.groups.classic.group import ClassicGroup
from coordinator_model.groups.epochs import stored
from coordinator_model.groups.epochs.data import EpochGroupData
from coordinator_model.groups.group import Group
from tests.coordinator_model import restored
from tests.samples import sampled

RECORDS = 800


@pytest.mark.parametrize("seed", sampled(range(3), [0]))
@pytest.mark.parametrize("kind", restored.KINDS)
def test_a_restore_after_each_record_changes_no_finding_event_or_view(kind: str, seed: int) -> None:
    told = {made_of: restored.difference(records) for made_of, records in restored.conversations(kind, RECORDS, seed)}
    assert len(told) > 1
    assert [f"{made_of} {differs.text}" for made_of, differs in told.items() if differs is not None] == []


SHARED = {"cluster", "counters", "coverage", "disconnections", "facts", "group_events", "loading", "name", "settings"}
PASSING = {"changed", "counted", "slow_changed"}
STORED_APART = {"addresses", "connections", "last_record_us", "members", "open"}


def test_each_attribute_of_a_classic_group_is_stored_or_shared() -> None:
    attributes = {*Group.__slots__, *GroupData.__slots__, *ClassicGroup.__slots__}
    apart = {"descriptions", "generations", "given_up", "recurring", "state"}
    assert attributes - set(classic_model._PLAIN) - SHARED == PASSING | STORED_APART | apart


def test_each_attribute_of_a_group_with_epochs_is_stored_or_shared() -> None:
    apart = {
        "bumps",
        "claims",
        "committed_offsets",
        "doubles",
        "kind",
        "rebalance_events",
        "recent",
        "recurring",
        "release",
        "traits",
    }
    attributes = {*Group.__slots__, *EpochGroupData.__slots__}
    assert attributes - set(stored._PLAIN) - SHARED == PASSING | STORED_APART | apart


def test_nobody_but_the_ways_into_a_group_marks_its_slow_part() -> None:
    """All but a steady heartbeat changes it: a handler that had to say so would forget it some day."""
    folder = Path(groups.__file__).parent
    marking = {
        path.relative_to(folder).as_posix() for path in folder.rglob("*.py") if "slow_changed = True" in path.read_text("utf-8")
    }
    assert marking == {"group.py", "group_model.py", "classic/model.py"}

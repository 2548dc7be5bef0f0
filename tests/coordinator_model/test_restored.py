"""A model that is stored and restored after each record says what one says that is not; see ``restored.py``."""

from __future__ import annotations

from pathlib import Path

import pytest

from coordinator_model import groups
from tests.coordinator_model import restored
from tests.coordinator_model.classic import settled
from tests.coordinator_model.conversation import Conversation
from tests.coordinator_model.epochs import Epochs, foo
from tests.samples import sampled

RECORDS = 800


@pytest.mark.parametrize("seed", sampled(range(3), [0]))
@pytest.mark.parametrize("kind", restored.KINDS)
def test_a_restore_after_each_record_changes_no_finding_event_or_view(kind: str, seed: int) -> None:
    told = {made_of: restored.difference(records) for made_of, records in restored.conversations(kind, RECORDS, seed)}
    assert len(told) > 1
    assert [f"{made_of} {differs.text}" for made_of, differs in told.items() if differs is not None] == []


SHARED = {"cluster", "counters", "coverage", "disconnections", "facts", "group_events", "loading", "name", "settings"}
PASSING = {"changed", "counted", "idle", "slow_changed"}
STORED_APART = {"connections", "last_record_us", "members", "open"}


def test_each_attribute_of_a_group_is_a_field_or_stored_apart_or_shared() -> None:
    classic, epochs = Conversation(), Epochs()
    settled(classic)
    epochs.joins(epochs.member("a"), 2, foo(0))
    for talk, of_its_type in ((classic, set()), (epochs, {"traits"})):
        group, _ = talk.model.groups.opened(("c1", "g"))
        assert vars(group).keys() == SHARED | PASSING | STORED_APART | of_its_type


def test_nobody_but_the_ways_into_a_group_marks_its_slow_part() -> None:
    """All but a steady heartbeat changes it: a handler that had to say so would forget it some day."""
    folder = Path(groups.__file__).parent
    marking = {
        path.relative_to(folder).as_posix() for path in folder.rglob("*.py") if "slow_changed = True" in path.read_text("utf-8")
    }
    assert marking == {"group.py", "classic/model.py"}

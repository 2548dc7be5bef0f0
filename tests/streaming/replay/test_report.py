"""The timeline of a replay: what it says of members that left, and of those that are merely not known any more."""

from __future__ import annotations

import pytest

from streaming.replay.report import GroupHistory, HistoryLine
from tests.coordinator_model.conversation import Conversation
from tests.coordinator_model.test_rules import settled


class Told:
    """A conversation whose story is looked at whenever the test wants."""

    def __init__(self) -> None:
        self.talk = Conversation()
        self._lines: list[HistoryLine] = []
        self._story = GroupHistory(self._lines.append)

    def look(self) -> list[str]:
        """What is new since the last look, state and generation aside."""
        self._lines.clear()
        for group in self.talk.model.changed_groups():
            self._story.group(group, self.talk.now_us)
        return [line.text.plain for line in self._lines]


@pytest.fixture
def told() -> Told:
    return Told()


def test_a_member_that_left_is_gone(told: Told) -> None:
    a, _ = settled(told.talk)
    told.look()
    told.talk.leave(a)
    (line,) = told.look()
    assert f"gone {a.member_id}" in line


def test_members_that_a_gap_made_unknown_are_not_said_to_be_gone_nor_to_join_when_they_are_seen_again(told: Told) -> None:
    a, b = settled(told.talk)
    told.look()
    told.talk.gap()
    (line,) = told.look()
    assert f"not known any more {a.member_id} and {b.member_id}" in line
    assert "gone" not in line
    told.talk.heartbeat(a)
    told.talk.leave(b)
    (line,) = told.look()
    assert f"seen again {a.member_id}" in line
    assert "joined" not in line
    c = told.talk.client("c")
    told.talk.round([a, c], 4)
    (line,) = told.look()
    assert f"joined {c.member_id}" in line
    assert "seen again" not in line


def test_members_of_a_group_that_migrates_are_not_said_to_be_gone(told: Told) -> None:
    a, b = settled(told.talk)
    assert "generation 3" in told.look()[-1]
    told.talk.consumer_heartbeat(told.talk.client("new"))
    (line,) = told.look()
    assert "joined new-id" in line
    assert "epoch 3" in line
    assert a.member_id not in line
    assert b.member_id not in line


def test_an_answer_that_cannot_be_read_makes_nobody_gone(told: Told) -> None:
    a, _ = settled(told.talk)
    told.look()
    told.talk.raw(a, b"\x00")
    (line,) = told.look()
    assert "not known any more" in line
    assert "gone" not in line

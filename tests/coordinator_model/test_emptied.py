"""That the last member of a group goes is an event in groups of all types, whether a rebalance is open or not."""

from __future__ import annotations

import pytest

from coordinator_model.events import NO_MEMBERS, GroupEmptied, GroupEvent, RebalanceFinished
from tests.coordinator_model.classic import settled
from tests.coordinator_model.conversation import Conversation
from tests.coordinator_model.epoch_groups import alone, newcomer
from tests.coordinator_model.epochs import Epochs
from tests.coordinator_model.streams import Shares, Streams


def classic_member_leaves() -> Conversation:
    talk = Conversation()
    (a,) = settled(talk, ("a",))
    talk.wait(1_000)
    talk.leave(a)
    return talk


def classic_session_ends() -> Conversation:
    talk = Conversation()
    settled(talk, ("a",))
    talk.wait(60_000)
    return talk


def consumer_leaves() -> Conversation:
    talk = Epochs()
    a = alone(talk)
    talk.leaves(a)
    return talk


def consumer_session_ends() -> Conversation:
    talk = Epochs()
    alone(talk)
    talk.wait(90_000)
    return talk


def consumer_is_told_that_it_is_none() -> Conversation:
    talk = Epochs()
    talk.refused(alone(talk), 25)
    return talk


def consumer_is_removed() -> Conversation:
    talk = Epochs()
    talk.remove(alone(talk))
    return talk


def static_member_does_not_come_back() -> Conversation:
    talk = Epochs()
    a = alone(talk, instance_id="one")
    talk.leaves(a, -2)
    talk.wait(90_000)
    return talk


def share_member_leaves() -> Conversation:
    talk = Shares()
    a = talk.member("a")
    talk.shares(a, 0, 2, (0, 1))
    talk.shares(a, -1, -1)
    return talk


def streams_member_leaves() -> Conversation:
    talk = Streams()
    a = talk.member("a")
    talk.enters(a, 2, (0, 1))
    talk.works(a, -1, asked=-1)
    return talk


def emptied(talk: Conversation) -> list[GroupEvent]:
    talk.tick()
    events = talk.model.drain_events()
    assert talk.group_json()["state"] == "Empty"
    return [one for one in events if isinstance(one, GroupEmptied) or getattr(one, "ended", "") == NO_MEMBERS]


@pytest.mark.parametrize(
    "ends",
    [
        classic_member_leaves,
        classic_session_ends,
        consumer_leaves,
        consumer_session_ends,
        consumer_is_told_that_it_is_none,
        consumer_is_removed,
        static_member_does_not_come_back,
        share_member_leaves,
        streams_member_leaves,
    ],
)
def test_the_last_member_goes_while_no_rebalance_is_open(ends):
    (event,) = emptied(ends())
    assert isinstance(event, GroupEmptied)


def test_the_record_of_an_open_rebalance_says_that_no_member_is_left(talk: Epochs):
    a, b = newcomer(talk)
    talk.leaves(b)
    talk.leaves(a)
    (event,) = emptied(talk)
    assert isinstance(event, RebalanceFinished)


def test_a_static_member_that_is_away_keeps_its_group(talk: Epochs):
    a = alone(talk, instance_id="one")
    talk.leaves(a, -2)
    assert [event.kind for event in talk.model.drain_events()][-1] == "member_away"

"""An answer is judged again when the reorder window is over: what a frame captured before it has made possible by then is not told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.coordinator_model.classic import left_behind, live, replace, settled, static_group
from tests.coordinator_model.conversation import Client, Conversation
from tests.coordinator_model.epoch_groups import commits_in_transaction
from tests.coordinator_model.epochs import Epochs, foo
from tests.coordinator_model.streams import Shares, Streams, heartbeats

LATE_MS = 300

Begin = Callable[[Any], Callable[[], None]]
"""Lets a coordinator do what is unlawful unless a frame came before; returns what sends that frame."""


@contextmanager
def captured_before(talk: Conversation) -> Iterator[None]:
    """Frames that were captured a while before the newest, and come only now."""
    now_us = talk.now_us
    talk.now_us -= LATE_MS * 1_000
    yield
    assert talk.now_us < now_us
    talk.now_us = now_us


def pair(talk: Epochs) -> tuple[Client, Client]:
    """Two members of a group that was seen from its beginning, a minute and a half later."""
    a, b = talk.member("a", "i-1"), talk.member("b")
    talk.joins(a, 1, foo(0, 1))
    talk.joins(b, 2, {})
    talk.beats(a, 2)
    talk.live([a, b], 90)
    talk.wait(1_000)
    return a, b


def elsewhere(client: Client) -> Client:
    """The same member on another connection."""
    return client.reconnected()


def somebody_joins(talk: Conversation) -> None:
    if isinstance(talk, Epochs):
        heartbeats(talk, talk.member("other"), 0, 2)
    else:
        talk.hand_out_id(talk.client("other"))


def accepted_after_its_end(talk: Epochs) -> Callable[[], None]:
    _, b = pair(talk)
    talk.leaves(b)
    talk.wait(1_000)
    talk.beats(elsewhere(b), 4, epoch=4)
    return lambda: talk.joins(elsewhere(b), 4, {})


def stranger_accepted(talk: Epochs) -> Callable[[], None]:
    pair(talk)
    c = talk.member("c")
    talk.beats(elsewhere(c), 3, epoch=3)
    return lambda: talk.joins(c, 3, {})


def epoch_not_delivered(talk: Epochs) -> Callable[[], None]:
    _, b = pair(talk)
    talk.beats(elsewhere(b), 3, epoch=3)
    return lambda: talk.beats(b, 3, epoch=2)


def commit_at_an_epoch_not_delivered(talk: Epochs) -> Callable[[], None]:
    _, b = pair(talk)
    talk.commits(elsewhere(b), epoch=3)
    return lambda: talk.beats(b, 3, epoch=2)


def instance_id_held_although_released(talk: Epochs) -> Callable[[], None]:
    a, _ = pair(talk)
    talk.leaves(a, -2)
    talk.wait(1_000)
    talk.refused_join(talk.member("third", "i-1"), 111)
    return lambda: talk.joins(talk.member("second", "i-1"), 2, foo(0, 1))


def static_accepted_after_its_end(talk: Epochs) -> Callable[[], None]:
    a, _ = pair(talk)
    talk.leaves(a)
    talk.wait(1_000)
    talk.beats(elsewhere(a), 4, epoch=4)
    return lambda: talk.joins(elsewhere(a), 4, foo(0, 1))


def accepted_after_its_end_with_what_it_owns(talk: Epochs) -> Callable[[], None]:
    _, b = pair(talk)
    talk.leaves(b)
    talk.wait(1_000)
    talk.full(elsewhere(b), 5, {}, owned={})
    return lambda: talk.joins(elsewhere(b), 2, {})


def static_stranger_accepted(talk: Epochs) -> Callable[[], None]:
    pair(talk)
    c = talk.member("c", "i-3")
    talk.beats(elsewhere(c), 3, epoch=3)
    return lambda: talk.joins(c, 3, {})


def stranger_accepted_that_joined_twice(talk: Epochs) -> Callable[[], None]:
    pair(talk)
    c = talk.member("c")
    talk.beats(elsewhere(c), 4, epoch=3)

    def joins_twice() -> None:
        talk.joins(c, 3, {})
        talk.joins(elsewhere(c), 3, {})

    return joins_twice


def epoch_of_two_answers_later(talk: Epochs) -> Callable[[], None]:
    a, _ = pair(talk)
    talk.beats(elsewhere(a), 4, epoch=4)

    def goes_on_by_two() -> None:
        talk.beats(a, 3, epoch=2)
        talk.beats(a, 4, epoch=3)

    return goes_on_by_two


def epoch_of_a_join_that_comes_late(talk: Epochs) -> Callable[[], None]:
    _, b = pair(talk)
    talk.beats(elsewhere(b), 7, epoch=7)
    return lambda: talk.joins(elsewhere(b), 7, {})


def static_commit_at_an_epoch_not_delivered(talk: Epochs) -> Callable[[], None]:
    a, _ = pair(talk)
    talk.commits(elsewhere(a), epoch=3)
    return lambda: talk.beats(a, 3, epoch=2)


def commit_by_topic_id_after_a_join_that_comes_late(talk: Epochs) -> Callable[[], None]:
    _, b = pair(talk)
    talk.commits(elsewhere(b), epoch=4, version=10)
    return lambda: talk.joins(elsewhere(b), 4, {})


def called_unknown_before_its_leave(talk: Epochs) -> Callable[[], None]:
    _, b = pair(talk)
    talk.refused(elsewhere(b), 25)
    return lambda: talk.leaves(b)


def static_called_unknown_before_its_leave(talk: Epochs) -> Callable[[], None]:
    a, _ = pair(talk)
    talk.refused(elsewhere(a), 25)
    return lambda: talk.leaves(a)


def commit_in_a_transaction_at_an_epoch_not_delivered(talk: Epochs) -> Callable[[], None]:
    _, b = pair(talk)
    commits_in_transaction(talk, elsewhere(b), epoch=3)
    return lambda: talk.beats(b, 3, epoch=2)


def accepted_after_its_removal(talk: Epochs) -> Callable[[], None]:
    """An administrator removes the static member."""
    a, _ = pair(talk)
    talk.remove(a)
    talk.wait(1_000)
    talk.beats(elsewhere(a), 4, epoch=4)
    return lambda: talk.joins(elsewhere(a), 4, foo(0, 1))


# ---------------------------------------------------------------------------------------------------- Streams


def instances(talk: Streams) -> tuple[Client, Client]:
    """Two members of a Streams group that was seen from its beginning, a minute and a half later."""
    a, b = talk.member("a"), talk.member("b")
    talk.enters(a, 1, (0, 1))
    talk.enters(b, 2)
    talk.works(a, 2)
    talk.told_for([a, b], 90)
    talk.wait(1_000)
    return a, b


def streams_accepted_after_its_end(talk: Streams) -> Callable[[], None]:
    _, b = instances(talk)
    talk.works(b, -1, asked=-1)
    talk.wait(1_000)
    talk.works(elsewhere(b), 4, asked=4)
    return lambda: talk.enters(elsewhere(b), 4)


def streams_stranger_accepted(talk: Streams) -> Callable[[], None]:
    instances(talk)
    c = talk.member("c")
    talk.works(elsewhere(c), 3, asked=3)
    return lambda: talk.enters(c, 3)


def streams_epoch_not_delivered(talk: Streams) -> Callable[[], None]:
    a, _ = instances(talk)
    talk.works(elsewhere(a), 3, asked=3)
    return lambda: talk.works(a, 3, asked=2)


def streams_commit_at_an_epoch_not_delivered(talk: Streams) -> Callable[[], None]:
    a, _ = instances(talk)
    talk.commits(elsewhere(a), epoch=3)
    return lambda: talk.works(a, 3, asked=2)


def streams_called_unknown_before_its_leave(talk: Streams) -> Callable[[], None]:
    _, b = instances(talk)
    talk.turned_away(elsewhere(b), 25, epoch=2)
    return lambda: talk.works(b, -1, asked=-1)


# ---------------------------------------------------------------------------------------------------- share groups


def sharers(talk: Shares) -> tuple[Client, Client]:
    """Two members of a share group that was seen from its beginning, a minute and a half later."""
    a, b = talk.member("a"), talk.member("b")
    talk.shares(a, 0, 1, (0, 1))
    talk.shares(b, 0, 2, (0, 1))
    talk.shares(a, 1, 2)
    talk.goes_on([a, b], 90)
    talk.wait(1_000)
    return a, b


def sharer_accepted_after_its_end(talk: Shares) -> Callable[[], None]:
    _, b = sharers(talk)
    talk.shares(b, -1, -1)
    talk.wait(1_000)
    talk.shares(elsewhere(b), 4, 4)
    return lambda: talk.shares(elsewhere(b), 0, 4, (0, 1))


def strange_sharer_accepted(talk: Shares) -> Callable[[], None]:
    sharers(talk)
    c = talk.member("c")
    talk.shares(elsewhere(c), 3, 3)
    return lambda: talk.shares(c, 0, 3, (0, 1))


def sharer_epoch_not_delivered(talk: Shares) -> Callable[[], None]:
    a, _ = sharers(talk)
    talk.shares(elsewhere(a), 3, 3)
    return lambda: talk.shares(a, 2, 3)


def sharer_called_unknown_before_its_leave(talk: Shares) -> Callable[[], None]:
    _, b = sharers(talk)
    heartbeats(talk, elsewhere(b), error=25)
    return lambda: talk.shares(b, -1, -1)


# ---------------------------------------------------------------------------------------------------- classic groups


def classic_called_unknown_before_its_leave(talk: Conversation) -> Callable[[], None]:
    a, b = settled(talk)
    live(talk, [a, b], 3)
    talk.heartbeat(elsewhere(b), 25)
    return lambda: talk.leave(b)


def replaced_static_member_let_through(talk: Conversation) -> Callable[[], None]:
    leader, first = static_group(talk)
    replace(talk, leader, "two")
    talk.wait(1_000)
    talk.heartbeat(elsewhere(first))
    return lambda: talk.joined(talk.ask_join(first), generation=3, leader=leader, roster=[])


def stale_generation_accepted(talk: Conversation) -> Callable[[], None]:
    old = left_behind(talk)
    talk.wait(1_000)
    talk.heartbeat(elsewhere(old))
    return lambda: talk.heartbeat(old, 22)


KINDS: dict[tuple[str, type[Conversation]], tuple[Begin, ...]] = {
    ("E-14", Epochs): (
        accepted_after_its_end,
        static_accepted_after_its_end,
        accepted_after_its_end_with_what_it_owns,
        accepted_after_its_removal,
    ),
    ("E-14", Streams): (streams_accepted_after_its_end,),
    ("E-14", Shares): (sharer_accepted_after_its_end,),
    ("E-15", Epochs): (stranger_accepted, static_stranger_accepted, stranger_accepted_that_joined_twice),
    ("E-15", Streams): (streams_stranger_accepted,),
    ("E-15", Shares): (strange_sharer_accepted,),
    ("E-04", Epochs): (epoch_not_delivered, epoch_of_two_answers_later, epoch_of_a_join_that_comes_late),
    ("E-04", Streams): (streams_epoch_not_delivered,),
    ("E-04", Shares): (sharer_epoch_not_delivered,),
    ("E-20", Epochs): (
        commit_at_an_epoch_not_delivered,
        static_commit_at_an_epoch_not_delivered,
        commit_by_topic_id_after_a_join_that_comes_late,
        commit_in_a_transaction_at_an_epoch_not_delivered,
    ),
    ("E-20", Streams): (streams_commit_at_an_epoch_not_delivered,),
    ("E-18", Epochs): (
        instance_id_held_although_released,
        called_unknown_before_its_leave,
        static_called_unknown_before_its_leave,
    ),
    ("E-18", Streams): (streams_called_unknown_before_its_leave,),
    ("E-18", Shares): (sharer_called_unknown_before_its_leave,),
    ("G-02", Conversation): (stale_generation_accepted,),
    ("S-03", Conversation): (replaced_static_member_let_through,),
    ("T-03", Conversation): (classic_called_unknown_before_its_leave,),
}
CONVERSATIONS = [(*of, begin) for of, conversations in KINDS.items() for begin in conversations]


@pytest.mark.parametrize("stored", [False, True], ids=["undisturbed", "restored"])
@pytest.mark.parametrize(("rule", "group", "begin"), CONVERSATIONS)
def test_a_verdict_falls_that_a_late_frame_of_the_same_member_explains(
    rule: str, group: type[Conversation], begin: Begin, *, stored: bool
) -> None:
    talk = group()
    explaining = begin(talk)
    if stored:
        talk.restore()
    with captured_before(talk):
        explaining()
    if stored:
        talk.restore()
    talk.settle()
    talk.wait(2_000)
    assert talk.rules() == []


@pytest.mark.parametrize(("rule", "group", "begin"), CONVERSATIONS)
def test_a_verdict_stands_that_only_a_late_frame_of_another_member_meets(
    rule: str, group: type[Conversation], begin: Begin
) -> None:
    talk = group()
    begin(talk)
    with captured_before(talk):
        somebody_joins(talk)
    talk.settle()
    talk.wait(2_000)
    assert talk.rules() == [rule]


@pytest.mark.parametrize(("rule", "group", "begin"), CONVERSATIONS)
def test_a_verdict_stands_that_a_newer_frame_of_the_same_member_follows(rule: str, group: type[Conversation], begin: Begin) -> None:
    talk = group()
    explaining = begin(talk)
    explaining()
    talk.settle()
    talk.wait(2_000)
    assert rule in talk.rules()

"""An answer is judged again when the reorder window is over: what a frame captured before it has made possible by then is not told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from coordinator_model.coordinator import Coordinator
from tests.coordinator_model.conversation import Client, Conversation
from tests.coordinator_model.epochs import Epochs, foo
from tests.coordinator_model.streams import Streams

LATE_MS = 300

Begin = Callable[[Epochs], Callable[[], None]]
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


def elsewhere(talk: Epochs, client: Client) -> Client:
    """The same member on another connection."""
    other = talk.member(client.name, client.instance_id)
    other.member_id, other.generation = client.member_id, client.generation
    return other


def accepted_after_its_end(talk: Epochs) -> Callable[[], None]:
    _, b = pair(talk)
    talk.leaves(b)
    talk.wait(1_000)
    talk.beats(elsewhere(talk, b), 4, epoch=4)
    return lambda: talk.joins(elsewhere(talk, b), 4, {})


def stranger_accepted(talk: Epochs) -> Callable[[], None]:
    pair(talk)
    c = talk.member("c")
    talk.beats(elsewhere(talk, c), 3, epoch=3)
    return lambda: talk.joins(c, 3, {})


def epoch_not_delivered(talk: Epochs) -> Callable[[], None]:
    _, b = pair(talk)
    talk.beats(elsewhere(talk, b), 3, epoch=3)
    return lambda: talk.beats(b, 3, epoch=2)


def commit_at_an_epoch_not_delivered(talk: Epochs) -> Callable[[], None]:
    _, b = pair(talk)
    talk.commits(elsewhere(talk, b), epoch=3)
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
    talk.beats(elsewhere(talk, a), 4, epoch=4)
    return lambda: talk.joins(elsewhere(talk, a), 4, foo(0, 1))


def accepted_after_its_end_with_what_it_owns(talk: Epochs) -> Callable[[], None]:
    _, b = pair(talk)
    talk.leaves(b)
    talk.wait(1_000)
    talk.full(elsewhere(talk, b), 5, {}, owned={})
    return lambda: talk.joins(elsewhere(talk, b), 2, {})


def static_stranger_accepted(talk: Epochs) -> Callable[[], None]:
    pair(talk)
    c = talk.member("c", "i-3")
    talk.beats(elsewhere(talk, c), 3, epoch=3)
    return lambda: talk.joins(c, 3, {})


def stranger_accepted_that_joined_twice(talk: Epochs) -> Callable[[], None]:
    pair(talk)
    c = talk.member("c")
    talk.beats(elsewhere(talk, c), 4, epoch=3)

    def joins_twice() -> None:
        talk.joins(c, 3, {})
        talk.joins(elsewhere(talk, c), 3, {})

    return joins_twice


def epoch_of_two_answers_later(talk: Epochs) -> Callable[[], None]:
    a, _ = pair(talk)
    talk.beats(elsewhere(talk, a), 4, epoch=4)

    def goes_on_by_two() -> None:
        talk.beats(a, 3, epoch=2)
        talk.beats(a, 4, epoch=3)

    return goes_on_by_two


def epoch_of_a_join_that_comes_late(talk: Epochs) -> Callable[[], None]:
    _, b = pair(talk)
    talk.beats(elsewhere(talk, b), 7, epoch=7)
    return lambda: talk.joins(elsewhere(talk, b), 7, {})


def static_commit_at_an_epoch_not_delivered(talk: Epochs) -> Callable[[], None]:
    a, _ = pair(talk)
    talk.commits(elsewhere(talk, a), epoch=3)
    return lambda: talk.beats(a, 3, epoch=2)


def commit_by_topic_id_after_a_join_that_comes_late(talk: Epochs) -> Callable[[], None]:
    _, b = pair(talk)
    talk.commits(elsewhere(talk, b), epoch=4, version=10)
    return lambda: talk.joins(elsewhere(talk, b), 4, {})


def called_unknown_before_its_leave(talk: Epochs) -> Callable[[], None]:
    _, b = pair(talk)
    talk.refused(elsewhere(talk, b), 25)
    return lambda: talk.leaves(b)


def static_called_unknown_before_its_leave(talk: Epochs) -> Callable[[], None]:
    a, _ = pair(talk)
    talk.refused(elsewhere(talk, a), 25)
    return lambda: talk.leaves(a)


KINDS = {
    "E-14": (accepted_after_its_end, static_accepted_after_its_end, accepted_after_its_end_with_what_it_owns),
    "E-15": (stranger_accepted, static_stranger_accepted, stranger_accepted_that_joined_twice),
    "E-04": (epoch_not_delivered, epoch_of_two_answers_later, epoch_of_a_join_that_comes_late),
    "E-20": (
        commit_at_an_epoch_not_delivered,
        static_commit_at_an_epoch_not_delivered,
        commit_by_topic_id_after_a_join_that_comes_late,
    ),
    "E-18": (instance_id_held_although_released, called_unknown_before_its_leave, static_called_unknown_before_its_leave),
}
CONVERSATIONS = [(rule, begin) for rule, conversations in KINDS.items() for begin in conversations]


@pytest.mark.parametrize("stored", [False, True], ids=["undisturbed", "restored"])
@pytest.mark.parametrize(("rule", "begin"), CONVERSATIONS)
def test_a_verdict_falls_that_a_late_frame_of_the_same_member_explains(rule: str, begin: Begin, *, stored: bool) -> None:
    talk = Epochs()
    explaining = begin(talk)
    if stored:
        talk.model = Coordinator.restore(talk.model.snapshot())
    with captured_before(talk):
        explaining()
    if stored:
        talk.model = Coordinator.restore(talk.model.snapshot())
    talk.settle()
    talk.wait(2_000)
    assert talk.rules() == []


@pytest.mark.parametrize(("rule", "begin"), CONVERSATIONS)
def test_a_verdict_stands_that_only_a_late_frame_of_another_member_meets(rule: str, begin: Begin) -> None:
    talk = Epochs()
    begin(talk)
    with captured_before(talk):
        talk.joins(talk.member("other"), 2, {})
    talk.settle()
    talk.wait(2_000)
    assert talk.rules() == [rule]


@pytest.mark.parametrize(("rule", "begin"), CONVERSATIONS)
def test_a_verdict_stands_that_a_newer_frame_of_the_same_member_follows(rule: str, begin: Begin) -> None:
    talk = Epochs()
    explaining = begin(talk)
    explaining()
    talk.settle()
    talk.wait(2_000)
    assert rule in talk.rules()


def test_a_verdict_about_a_streams_member_falls_like_that_about_any_other() -> None:
    talk = Streams()
    a = talk.member("a")
    talk.joins(a, 1, {})
    talk.live([a], 90)
    other = talk.member("a")
    other.member_id, other.generation = a.member_id, 2
    talk.beats(other, 2)
    with captured_before(talk):
        talk.beats(a, 2, epoch=1)
    talk.settle()
    talk.wait(2_000)
    assert talk.rules() == []

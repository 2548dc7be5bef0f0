"""What a member gave up: answers at the same epoch without an assignment, and answers whose order the capture does not show."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from coordinator_model.finding import Severity
from tests.coordinator_model.conversation import Client
from tests.coordinator_model.epoch_groups import alone, joined_pair
from tests.coordinator_model.epochs import Epochs, foo
from tests.coordinator_model.streams import Streams


def told_within_the_interval(talk: Epochs) -> Client:
    """A member stands at the epoch of the target, drops a topic, and is told to give it up at the same epoch."""
    a = talk.member("a")
    talk.joins(a, 2, {"foo": (0, 1), "bar": (0,)}, "foo", "bar")
    talk.beats(a, 2, foo(0, 1), subscribed_topic_names=("foo",))
    return a


def told_by_a_join(talk: Epochs) -> Client:
    a = alone(talk, held=foo(0, 1, 2))
    talk.joins(talk.member("x"), 3, {})
    talk.beats(a, 2, foo(0, 1))
    return a


def told_twice(talk: Epochs) -> Client:
    """Since 4.2 a second round stays at the epoch of the first."""
    a = alone(talk, held=foo(0, 1, 2, 3))
    talk.joins(talk.member("x"), 3, {})
    talk.beats(a, 2, foo(0, 1, 2))
    talk.beats(a, 2, foo(0, 1), owned=foo(0, 1, 2))
    return a


TOLD: list[tuple[Callable[[Epochs], Client], dict[str, tuple[int, ...]], dict[str, tuple[int, ...]]]] = [
    (told_within_the_interval, foo(0, 1), {"bar": (0,)}),
    (told_by_a_join, foo(0, 1), foo(2)),
    (told_twice, foo(0, 1), foo(2)),
]
"""How a member was told → what it keeps → what it gives up."""


@pytest.mark.parametrize(("told", "keeps", "given_up"), TOLD)
def test_A_12_allows_a_release_answered_at_the_same_epoch_without_an_assignment(
    talk: Epochs, told: Callable[[Epochs], Client], keeps: dict[str, tuple[int, ...]], given_up: dict[str, tuple[int, ...]]
) -> None:
    a = told(talk)
    talk.beats(a, owned=keeps)
    b = talk.member("b")
    talk.joins(b, 4, given_up, *given_up)
    talk.beats(a)
    assert talk.settled_rules() == []


@pytest.mark.parametrize(("told", "keeps", "given_up"), TOLD)
@pytest.mark.parametrize("how", ["still listed", "not listed at all"])
def test_A_12_fires_if_such_an_answer_acknowledges_nothing(
    talk: Epochs,
    told: Callable[[Epochs], Client],
    keeps: dict[str, tuple[int, ...]],
    given_up: dict[str, tuple[int, ...]],
    how: str,
) -> None:
    a = told(talk)
    both = {topic: keeps.get(topic, ()) + given_up.get(topic, ()) for topic in keeps | given_up}
    talk.beats(a, owned=both if how == "still listed" else None)
    b = talk.member("b")
    talk.joins(b, 4, given_up, *given_up)
    talk.beats(a)
    assert talk.settled_rules() == ["A-12"]


@pytest.mark.parametrize(("told", "keeps", "given_up"), TOLD)
def test_R_14_ends_with_a_release_answered_at_the_same_epoch_without_an_assignment(
    talk: Epochs, told: Callable[[Epochs], Client], keeps: dict[str, tuple[int, ...]], given_up: dict[str, tuple[int, ...]]
) -> None:
    a = told(talk)
    talk.beats(a, owned=keeps)
    talk.live([a], 200)
    assert "R-14" not in talk.rules()


@pytest.mark.parametrize(("told", "keeps", "given_up"), TOLD)
def test_R_14_fires_if_such_an_answer_acknowledges_nothing(
    talk: Epochs, told: Callable[[Epochs], Client], keeps: dict[str, tuple[int, ...]], given_up: dict[str, tuple[int, ...]]
) -> None:
    a = told(talk)
    both = {topic: keeps.get(topic, ()) + given_up.get(topic, ()) for topic in keeps | given_up}
    talk.beats(a, owned=both)
    talk.live([a], 200)
    assert (talk.the("R-14").severity, talk.the("R-14").member_id) == (Severity.ERROR, "a-id")


@pytest.mark.parametrize(("owned", "found"), [((0, 1), []), ((0, 1, 2), ["A-12"]), (None, ["A-12"])])
def test_A_12_allows_tasks_released_at_the_same_epoch_without_a_list(
    talk: Streams, owned: tuple[int, ...] | None, found: list[str]
) -> None:
    a, b = talk.member("a"), talk.member("b")
    talk.enters(a, 2, (0, 1, 2))
    talk.enters(b, 3)
    talk.works(a, 2, (0, 1))
    talk.works(a, 2, owned=owned)
    talk.works(b, 3, (2,))
    talk.works(a)
    assert talk.settled_rules() == found


# ---------------------------------------------------------------------------------------------------- answers in reverse


@pytest.mark.parametrize("order", ["as given", "in reverse"])
@pytest.mark.parametrize("told_by", ["heartbeat", "full request", "join"])
def test_A_12_takes_no_assignment_for_the_newest_if_two_answers_cross(talk: Epochs, order: str, told_by: str) -> None:
    """A client that changes its connection has two heartbeats under way; the coordinator told it to give up in the later one."""
    a, b = joined_pair(talk)
    again = a.reconnected()
    whole = {**talk.join_fields(), "owned": foo(0, 1, 2)}
    older = talk.ask_beat(a, 2, **whole)
    newer = (
        talk.ask_beat(again, 0, **talk.join_fields())
        if told_by == "join"
        else talk.ask_beat(again, 2, **(whole if told_by == "full request" else {}))
    )
    answers = [(older, talk.given(a, 2, foo(0, 1, 2))), (newer, talk.given(a, 2, foo(0, 1)))]
    for asked, answer in answers if order == "as given" else reversed(answers):
        talk.answer(asked, answer)
    talk.beats(again, 3, epoch=2, owned=foo(0, 1))
    talk.beats(b, 3, foo(2))
    talk.beats(again)
    assert talk.settled_rules() == []


@pytest.mark.parametrize("order", ["as given", "in reverse"])
def test_A_12_allows_a_release_whose_answer_crosses_the_grant(talk: Epochs, order: str) -> None:
    a, b = joined_pair(talk)
    talk.beats(a, 2, foo(0, 1))
    gives_up = talk.ask_beat(a, owned=foo(0, 1))
    gets = talk.ask_beat(b, 3)
    answers = [(gives_up, talk.given(a, 2)), (gets, talk.given(b, 3, foo(2)))]
    for asked, answer in answers if order == "as given" else reversed(answers):
        talk.answer(asked, answer)
    talk.beats(a)
    talk.beats(a)
    assert talk.settled_rules() == []


def test_A_12_fires_again_once_an_assignment_is_known_after_two_answers_crossed(talk: Epochs) -> None:
    a, b = joined_pair(talk)
    again = a.reconnected()
    older, newer = talk.ask_beat(a, 2), talk.ask_beat(again, 2)
    talk.answer(newer, talk.given(a, 2, foo(0, 1)))
    talk.answer(older, talk.given(a, 2))
    talk.full(again, 2, foo(0, 1, 2), owned=foo(0, 1, 2))
    talk.beats(b, 3, foo(2))
    talk.beats(again)
    assert talk.settled_rules() == ["A-12"]

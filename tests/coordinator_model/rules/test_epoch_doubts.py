"""What may have changed unseen: a subscription within a gap, the release of a coordinator, who holds an instance id."""

from __future__ import annotations

import pytest

from coordinator_model import wire
from tests.coordinator_model.conversation import Client
from tests.coordinator_model.epoch_groups import alone, commits_by_id
from tests.coordinator_model.epochs import Epochs, Parts, foo, shows_release
from tests.coordinator_model.streams import Streams

BOTH: Parts = {"foo": (0, 1), "bar": (0,)}


def since_4_2(talk: Epochs) -> Client:
    a = alone(talk)
    commits_by_id(talk, a)
    return a


def rules_but_of_the_capture(talk: Epochs) -> list[str]:
    return [rule for rule in talk.settled_rules() if not rule.startswith("V")]


# ---------------------------------------------------------------------------------------------------- E-16 after a gap


@pytest.mark.parametrize("lost", ["a gap", "records", "an answer", "a frame that cannot be read"])
def test_E_16_forgets_the_subscription_where_its_change_may_be_lost(talk: Epochs, lost: str) -> None:
    a = since_4_2(talk)
    if lost == "a gap":
        talk.gap()
    elif lost == "records":
        talk.lose(2)
    elif lost == "an answer":
        talk.ask_beat(a, subscribed_topic_names=("foo", "bar"))
    else:
        talk.raw(a, b"\x00", api_key=68, version=1)
    talk.beats(a)
    commits_by_id(talk, a)
    talk.beats(a, 3, BOTH)
    assert rules_but_of_the_capture(talk) == []


@pytest.mark.parametrize("pattern", ["may be set", "may be another"])
def test_E_16_takes_names_for_the_whole_subscription_after_a_gap_only_with_a_join(talk: Epochs, pattern: str) -> None:
    """A request that says nothing of the pattern leaves it as it is."""
    a = talk.member("a")
    talk.joins(a, 2, foo(0, 1), subscribed_topic_regex="" if pattern == "may be set" else "f.*")
    talk.gap()
    talk.full(a, 2, foo(0, 1), owned=foo(0, 1))
    commits_by_id(talk, a)
    talk.beats(a, 3, BOTH)
    assert rules_but_of_the_capture(talk) == []


@pytest.mark.parametrize("known_by", ["a new join", "names and pattern", "names, then a pattern"])
def test_E_16_fires_again_once_the_subscription_is_known_after_a_gap(talk: Epochs, known_by: str) -> None:
    a = since_4_2(talk)
    talk.gap()
    if known_by == "a new join":
        talk.leaves(a)
        talk.joins(a, 3, foo(0, 1))
    elif known_by == "names and pattern":
        talk.beats(a, subscribed_topic_names=("foo",), subscribed_topic_regex="")
    else:
        talk.beats(a, subscribed_topic_names=("foo",))
        talk.beats(a, subscribed_topic_regex="")
    talk.beats(a, 3, BOTH)
    assert rules_but_of_the_capture(talk) == ["E-16"]


def follows(talk: Epochs, who: str, **fields: object) -> Client:
    """A join with names alone, of one that subscribed to a pattern before, or of its successor."""
    a = talk.member("a", "i" if who.startswith("a static") else None)
    talk.joins(a, 2, foo(0, 1), subscribed_topic_regex=".*")
    commits_by_id(talk, a)
    if who == "a static successor":
        talk.leaves(a, -2)
        a = talk.member("b", "i")
    elif who == "a static member that was away":
        talk.leaves(a, -2)
    elif who == "a new process":
        talk.leaves(a)
        a = talk.member("b")
    talk.joins(a, 2, foo(0, 1), **fields)
    return a


JOINS_AGAIN = ("a member", "a static successor", "a static member that was away")


@pytest.mark.parametrize("who", JOINS_AGAIN)
def test_E_16_lets_a_join_without_a_pattern_keep_the_one_before(talk: Epochs, who: str) -> None:
    talk.beats(follows(talk, who), 3, BOTH)
    assert rules_but_of_the_capture(talk) == []


@pytest.mark.parametrize("who", [*JOINS_AGAIN, "a new process"])
def test_E_16_fires_after_a_join_that_takes_the_pattern_back(talk: Epochs, who: str) -> None:
    fields = {} if who == "a new process" else {"subscribed_topic_regex": ""}
    talk.beats(follows(talk, who, **fields), 3, BOTH)
    assert rules_but_of_the_capture(talk) == ["E-16"]


@pytest.mark.parametrize("order", ["as given", "in reverse"])
def test_E_16_takes_no_subscription_for_the_newest_if_two_answers_cross(talk: Epochs, order: str) -> None:
    a = since_4_2(talk)
    again = a.reconnected()
    older = talk.ask_beat(a, 2, subscribed_topic_names=("foo",), subscribed_topic_regex="")
    newer = talk.ask_beat(again, 2, subscribed_topic_names=("foo", "bar"), subscribed_topic_regex="")
    answers = [(older, talk.given(a, 2)), (newer, talk.given(a, 2))]
    for asked, answer in answers if order == "as given" else reversed(answers):
        talk.answer(asked, answer)
    talk.beats(again, 3, BOTH)
    assert rules_but_of_the_capture(talk) == []


def test_E_16_fires_if_crossed_answers_concern_no_subscription(talk: Epochs) -> None:
    a = since_4_2(talk)
    again = a.reconnected()
    older, newer = talk.ask_beat(a, 2), talk.ask_beat(again, 2, subscribed_topic_names=("foo",))
    talk.answer(newer, talk.given(a, 2))
    talk.answer(older, talk.given(a, 2))
    talk.beats(again, 3, BOTH)
    assert rules_but_of_the_capture(talk) == ["E-16"]


# ---------------------------------------------------------------------------------------------------- the coordinator's release


def moves(talk: Epochs, a: Client, how: str) -> Client:
    """The coordinator moves to another broker, which may be of an older release."""
    if how == "told":
        talk.refused(a, 16)
    elif how == "not told":
        talk.close(a)
    a = a.reconnected("2")
    talk.beats(a)
    if how == "and back":
        talk.refused(a, 16)
        a = a.reconnected("1")
        talk.beats(a)
    return a


MOVES = ("told", "not told", "and back")


@pytest.mark.parametrize("how", MOVES)
def test_E_16_allows_topics_to_stay_assigned_once_the_coordinator_may_be_older(talk: Epochs, how: str) -> None:
    a = moves(talk, since_4_2(talk), how)
    talk.beats(a, 3, BOTH)
    assert rules_but_of_the_capture(talk) == []


@pytest.mark.parametrize("how", MOVES)
def test_E_16_fires_once_the_new_coordinator_is_known_to_be_as_new(talk: Epochs, how: str) -> None:
    a = moves(talk, since_4_2(talk), how)
    commits_by_id(talk, a)
    talk.beats(a, 3, BOTH)
    assert rules_but_of_the_capture(talk) == ["E-16"]


@pytest.mark.parametrize("how", MOVES)
def test_P_07_allows_an_older_coordinator_to_fence_a_member_that_joins_again(talk: Epochs, how: str) -> None:
    """Up to 4.1 a member's join was checked like any other epoch (KAFKA-19233)."""
    a = moves(talk, since_4_2(talk), how)
    talk.refused_join(a, 110)
    assert rules_but_of_the_capture(talk) == []


@pytest.mark.parametrize("how", [*MOVES, ""])
def test_P_07_fires_if_a_coordinator_since_4_2_fences_a_member_that_joins_again(talk: Epochs, how: str) -> None:
    a = since_4_2(talk)
    if how:
        a = moves(talk, a, how)
        commits_by_id(talk, a)
        talk.beats(a)
    talk.refused_join(a, 110)
    assert rules_but_of_the_capture(talk) == ["P-07"]


def test_E_16_takes_no_late_answer_of_the_coordinator_before_for_the_release_of_the_new_one(talk: Epochs) -> None:
    a = alone(talk)
    body = wire.OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=2, member_id=a.member_id)
    late = talk.ask(a, body, version=10)
    again = a.reconnected("2")
    talk.beats(again)
    talk.answer(late, wire.OffsetCommitResponse())
    talk.beats(again)
    talk.beats(again, 3, BOTH)
    assert rules_but_of_the_capture(talk) == []


# ---------------------------------------------------------------------------------------------------- E-18: a full Streams group


def test_E_04_allows_a_member_that_had_left_for_a_while_to_have_come_back_unseen(talk: Epochs) -> None:
    a, b = talk.member("a", "i"), talk.member("b")
    talk.joins(b, 1, {})
    talk.joins(a, 2, foo(0))
    talk.beats(b, 2, foo(1))
    talk.leaves(a, -2)
    talk.gap()
    talk.beats(a, 3, epoch=3)
    assert rules_but_of_the_capture(talk) == []


@pytest.mark.parametrize("answered", [foo(0, 1), None], ids=["an assignment", "no assignment"])
def test_E_18_allows_the_removal_of_a_member_that_may_have_been_told_to_give_up_in_answers_out_of_order(
    talk: Epochs,
    answered: dict[str, tuple[int, ...]] | None,
) -> None:
    """Which of two answers is the newer is not known, so neither is what a later, smaller assignment takes."""
    a, b = talk.member("a"), talk.member("b")
    talk.joins(b, 1, {})
    talk.joins(a, 2, foo(0, 1))
    first = talk.ask_beat(a, owned=foo(0, 1))
    again = a.reconnected()
    asked = talk.ask_beat(again, owned=foo(0, 1))
    talk.answer(asked, talk.given(again, 2, answered))
    talk.answer(first, talk.given(a, 2))
    talk.wait(5_000)
    talk.beats(again, 2, foo(0))
    talk.wait(5_000)
    talk.beats(again)
    talk.wait(5_000)
    talk.refused(again, 25)
    assert talk.settled_rules() == []


@pytest.mark.parametrize("how", ["consumer", "classic"])
def test_E_18_allows_an_instance_id_to_be_held_by_a_process_that_died_before_its_join_was_answered(talk: Epochs, how: str) -> None:
    """A container that is started again and again: the one before may have joined, and its session runs."""
    a, c = talk.member("a", "i"), talk.member("c")
    talk.joins(c, 1, {})
    talk.joins(a, 2, foo(0, 1))
    talk.leaves(a, -2)
    talk.wait(1_000)
    dies = talk.member("dies", "i")
    if how == "consumer":
        talk.ask_beat(dies, 0, **talk.join_fields())
    else:
        dies.member_id = ""
        talk.ask_join(dies)
    talk.close(dies)
    talk.wait(1_000)
    talk.refused_join(talk.member("next", "i"), 111)
    assert "E-18" not in talk.settled_rules()


@pytest.mark.parametrize("tasks", [(), (0,), (0, 1)])
def test_E_18_allows_a_full_streams_group_to_refuse_a_member_that_joins_again(talk: Streams, tasks: tuple[int, ...]) -> None:
    """Up to 4.3 the limit counts before it is asked who joins."""
    a = talk.member("a")
    talk.enters(a, 2, tasks)
    talk.works(a)
    talk.refused_entry(a, 81)
    assert rules_but_of_the_capture(talk) == []


@pytest.mark.parametrize("how", ["goes on", "since 4.4", "a consumer"])
def test_E_18_fires_if_a_full_group_refuses_a_member_otherwise(how: str) -> None:
    if how == "a consumer":
        talk = Epochs()
        a = alone(talk)
        talk.beats(a)
        talk.refused_join(a, 81)
    else:
        talk = Streams()
        a = talk.member("a")
        if how == "since 4.4":
            shows_release(talk, a, (4, 4))
        talk.enters(a, 2, (0,))
        talk.works(a)
        if how == "goes on":
            talk.turned_away(a, 81, epoch=2)
        else:
            talk.refused_entry(a, 81)
    assert rules_but_of_the_capture(talk) == ["E-18"]


# ---------------------------------------------------------------------------------------------------- E-18: an instance id taken by a JoinGroup


@pytest.mark.parametrize("answer", ["a success", "none yet"])
def test_E_18_allows_a_fence_while_a_classic_process_joins_under_the_instance_id(talk: Epochs, answer: str) -> None:
    """A JoinGroup takes an instance id from its holder at once, whatever protocol the holder uses; its answer may come later."""
    a = alone(talk, held=foo(0), instance_id="i")
    talk.joins(talk.member("other"), 3, {})
    talk.beats(a)
    classic = talk.client("c", instance_id="i")
    asked = talk.ask_join(classic)
    talk.refused(a, 82)
    if answer == "a success":
        classic.member_id = "c-id"
        reply = {"protocol_type": "consumer", "protocol_name": "range", "leader": "", "member_id": "c-id"}
        talk.answer(asked, wire.JoinGroupResponse(error_code=0, generation_id=3, **reply))
    assert rules_but_of_the_capture(talk) == []


@pytest.mark.parametrize("instance_id", [None, "j"])
def test_E_18_fires_if_the_holder_is_fenced_while_a_classic_process_joins_otherwise(talk: Epochs, instance_id: str | None) -> None:
    a = alone(talk, held=foo(0), instance_id="i")
    talk.beats(a)
    classic = talk.client("c", instance_id=instance_id)
    talk.ask_join(classic)
    talk.refused(a, 82)
    assert rules_but_of_the_capture(talk) == ["E-18"]

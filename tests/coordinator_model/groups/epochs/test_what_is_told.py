"""What is told of a group with epochs happened so: conversions, subscriptions, who gives up, who left, who joined."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from coordinator_model import wire
from tests.coordinator_model.classic import settled
from tests.coordinator_model.conversation import Client, Conversation
from tests.coordinator_model.epoch_groups import alone, joined_pair
from tests.coordinator_model.epochs import Epochs, foo
from tests.coordinator_model.groups.epochs.timed import Timed
from tests.coordinator_model.streams import AnyKind, Shares


def told(talk: Conversation, kind: str) -> list[dict[str, Any]]:
    """The events of a kind, none of which were drained before."""
    return [event.as_json() for event in talk.model.drain_events() if event.kind == kind]


def deleted(talk: Conversation, error: int = 0) -> None:
    talk.wait(1_000)
    talk.delete(error)
    talk.wait(1_000)


# ---------------------------------------------------------------------------------------------------- a group that was deleted


def as_classic(talk: AnyKind) -> None:
    clients = settled(talk, generation=7)
    for client in clients:
        talk.leave(client)


def as_consumer(talk: AnyKind) -> None:
    a = talk.member("consumer")
    talk.joins(a, 2, foo(0))
    talk.beats(a)
    talk.leaves(a)


def as_share(talk: AnyKind) -> None:
    a = talk.member("share")
    talk.shares(a, 0, 2, (0,))
    talk.shares(a, -1, -1)


def as_streams(talk: AnyKind) -> None:
    a = talk.member("streams")
    talk.enters(a, 2, (0,))
    talk.works(a, -1, asked=-1)


AS = {"classic": as_classic, "consumer": as_consumer, "share": as_share, "streams": as_streams}


@pytest.mark.parametrize("before", AS)
@pytest.mark.parametrize("after", AS)
def test_P_12_takes_a_deleted_group_for_no_converted_one(talk: AnyKind, before: str, after: str) -> None:
    AS[before](talk)
    deleted(talk)
    AS[after](talk)
    assert [rule for rule in talk.settled_rules() if rule != "G-05"] == []
    content = talk.group_json()
    assert (content["group_type"], content["generation"] in {2, 7, 8}) == (after, True)


@pytest.mark.parametrize(("before", "after"), [("classic", "consumer"), ("consumer", "classic"), ("classic", "streams")])
@pytest.mark.parametrize("admin", ["", "refused", "before its life"])
def test_P_12_notes_a_conversion_of_a_group_that_was_not_deleted(talk: AnyKind, before: str, after: str, admin: str) -> None:
    if admin == "before its life":
        AS[before](talk)
        deleted(talk)
    AS[before](talk)
    if admin == "refused":
        deleted(talk, 68)
    AS[after](talk)
    assert [rule for rule in talk.settled_rules() if rule != "G-05"] == ["P-12"]


def test_a_consumer_group_that_takes_the_place_of_a_deleted_classic_one_is_stable_at_its_own_epoch(talk: AnyKind) -> None:
    as_classic(talk)
    deleted(talk)
    a = alone(talk, held=foo(0))
    talk.beats(a)
    content = talk.group_json()
    assert (content["state"], content["generation"], content["learning"]) == ("Stable", 2, None)


def enters(talk: AnyKind, kind: str, name: str, epoch: int) -> None:
    """A member joins a group of a type, and gets nothing."""
    client = talk.member(name)
    if kind == "consumer":
        talk.joins(client, epoch, {})
    elif kind == "share":
        talk.shares(client, 0, epoch, ())
    else:
        talk.enters(client, epoch)


@pytest.mark.parametrize(("before", "after"), [("consumer", "share"), ("share", "streams"), ("streams", "consumer")])
def test_a_group_of_another_type_ends_the_open_rebalance_of_the_one_before(talk: AnyKind, before: str, after: str) -> None:
    """It can only be another group of that name: the one before expired unseen."""
    enters(talk, before, "a", 2)
    enters(talk, before, "b", 3)
    talk.model.drain_events()
    talk.wait(1_000)
    AS[after](talk)
    finished = told(talk, "rebalance_finished")
    assert [record["generation"] for record in finished if record["group_type"] == before] == [3]
    assert "P-12" not in talk.rules()


# ---------------------------------------------------------------------------------------------------- share groups revoke nothing


@pytest.mark.parametrize("numbers", [(), (0,), (0, 1)])
@pytest.mark.parametrize("epoch", [3, 4])
def test_a_share_member_whose_assignment_shrinks_gives_nothing_up(talk: Shares, numbers: tuple[int, ...], epoch: int) -> None:
    a, b = talk.member("a"), talk.member("b")
    talk.shares(a, 0, 2, (0, 1, 2))
    talk.shares(b, 0, 3, (0, 1, 2))
    talk.shares(a, 2, 3)
    talk.shares(a, 3, epoch, numbers)
    talk.shares(b, 3, epoch)
    talk.settle()
    content = talk.group_json()
    assert (content["state"], content["waits"], content["waits_for"]) == ("Stable", [], [])
    assert [(member["state"], member["gives_up"]) for member in content["members"]] == [("in sync", 0), ("in sync", 0)]
    assert told(talk, "told_to_give_up") == []
    talk.goes_on([a, b], 200)
    assert [rule for rule in talk.rules() if rule != "R-21"] == []


@pytest.mark.parametrize("numbers", [(), (0,), (0, 1)])
def test_a_consumer_whose_assignment_shrinks_is_asked_to_give_up(talk: Epochs, numbers: tuple[int, ...]) -> None:
    a, _ = joined_pair(talk)
    talk.beats(a, 2, foo(*numbers))
    talk.settle()
    content = talk.group_json()
    assert (content["state"], content["waits_for"]) == ("Reconciling", ["a-id"])
    assert (content["members"][0]["state"], content["members"][0]["gives_up"]) == ("gives partitions up", 3 - len(numbers))


# ---------------------------------------------------------------------------------------------------- partitions that nobody holds


@pytest.mark.parametrize("answered_ms", [10, 1_900, 20_000])
def test_what_a_dead_member_was_given_is_unheld_from_the_answer_on(answered_ms: int) -> None:
    """Its join is its only request. It holds nothing before the answer."""
    talk = Timed()
    a, b = talk.member("a"), talk.member("b")
    talk.at(1_000)
    asked = talk.ask(a, talk.beat_request(a, 0, **talk.join_fields()))
    talk.answer(asked, talk.given(a, 2, foo(0, 1)), after_ms=answered_ms)
    talk.join(b, 30_000, 3)
    for ms in range(35_000, 75_000, 5_000):
        talk.beat(b, ms)
    talk.beat(b, 76_000, 4, foo(0, 1))
    unheld_s = 75.01 - answered_ms / 1_000
    records = [event.as_json() for event in talk.events if event.kind == "rebalance_finished"]
    assert round(sum(record["unheld"]["foo"]["0"] for record in records if record["unheld"]), 3) == round(unheld_s, 3)


# ---------------------------------------------------------------------------------------------------- static members


def static_in_mid_life(talk: Epochs, name: str = "a") -> Client:
    """A static member whose join was not seen; its ordinary heartbeats name no instance id."""
    a = talk.member(name)
    a.generation = 5
    talk.beats(a)
    talk.beats(a)
    return a


@pytest.mark.parametrize("seen", ["in mid-life", "after a gap", "from its join on"])
@pytest.mark.parametrize("crossed", ["", "crossed"])
def test_a_static_member_that_was_replaced_is_not_left_for_a_while(talk: Epochs, seen: str, crossed: str) -> None:
    if seen == "from its join on":
        a = alone(talk, 5, held=foo(0), instance_id="i")
    else:
        a = static_in_mid_life(talk)
        if seen == "after a gap":
            talk.gap()
    a.instance_id = "i"
    b = talk.member("b", "i")
    if crossed:
        left = talk.ask(a, talk.beat_request(a, -2))
        talk.joins(b, 5, foo(0))
        talk.answer(left, talk.given(a, -2))
    else:
        talk.leaves(a, -2)
        talk.joins(b, 5, foo(0))
    talk.settle()
    content = talk.group_json()
    assert [(member["member_id"], member["state"]) for member in content["members"]] == [("b-id", "in sync")]
    assert (content["state"], content["waits"]) == ("Stable", [])


@pytest.mark.parametrize("seen", ["in mid-life", "from its join on"])
@pytest.mark.parametrize("other", [None, "j"])
def test_a_static_member_that_nobody_replaces_is_left_for_a_while(talk: Epochs, seen: str, other: str | None) -> None:
    a = static_in_mid_life(talk) if seen == "in mid-life" else alone(talk, 5, held=foo(0), instance_id="i")
    a.instance_id = "i"
    talk.leaves(a, -2)
    talk.joins(talk.member("b", other), 6, {})
    states = {member["member_id"]: member["state"] for member in talk.group_json()["members"]}
    assert states == {"a-id": "left for a while", "b-id": "in sync"}


# ---------------------------------------------------------------------------------------------------- subscriptions


def in_mid_life(talk: Epochs) -> Client:
    a = talk.member("a")
    a.generation = 2
    talk.beats(a)
    return a


def after_a_gap(talk: Epochs) -> Client:
    a = talk.member("a")
    talk.joins(a, 2, foo(0), "foo", "bar")
    talk.gap()
    talk.beats(a)
    return a


def since_its_join(talk: Epochs) -> Client:
    a = talk.member("a")
    talk.joins(a, 2, foo(0), "foo", "bar")
    return a


SEEN: tuple[Callable[[Epochs], Client], ...] = (in_mid_life, after_a_gap, since_its_join)


@pytest.mark.parametrize("seen", SEEN)
def test_a_repeated_subscription_is_no_change(talk: Epochs, seen: Callable[[Epochs], Client]) -> None:
    a = seen(talk)
    for names in (("foo", "bar"), ("bar", "foo"), ("foo", "bar", "foo")):
        talk.beats(a, subscribed_topic_names=names)
        talk.full(a, a.generation, foo(0), *names, owned=foo(0))
        talk.beats(a, subscribed_topic_names=names, subscribed_topic_regex="")
        talk.beats(a, a.generation + 1)
    assert {event["cause"] for event in told(talk, "rebalance_began")} <= {
        "topics, a pattern or the configuration changed",
        "joined",
    }
    assert talk.group_json()["rebalances"].get("changed its subscription") is None
    assert [rule for rule in talk.settled_rules() if not rule.startswith("V")] == []


@pytest.mark.parametrize("seen", SEEN)
@pytest.mark.parametrize("change", [{"subscribed_topic_names": ("foo",)}, {"subscribed_topic_regex": "f.*"}])
def test_a_changed_subscription_is_told_as_the_cause(
    talk: Epochs, seen: Callable[[Epochs], Client], change: dict[str, Any]
) -> None:
    a = seen(talk)
    talk.beats(a, subscribed_topic_names=("foo", "bar"), subscribed_topic_regex="")
    talk.beats(a, a.generation + 1, **change)
    assert told(talk, "rebalance_began")[-1]["cause"] == "changed its subscription"


# ---------------------------------------------------------------------------------------------------- one JoinGroup, one join


@pytest.mark.parametrize("watched", ["a classic group", "nothing before"])
@pytest.mark.parametrize("restored", ["", "restored in between"])
def test_a_join_group_whose_answer_shows_the_conversion_is_told_once(talk: Epochs, watched: str, restored: str) -> None:
    client = settled(talk)[0] if watched == "a classic group" else talk.client("a", member_id="a-id")
    talk.model.drain_events()
    talk.wait(1_000)
    asked = talk.ask_join(client)
    joined = told(talk, "member_joined")
    if restored:
        talk.restore()
    reply = {"protocol_type": "consumer", "protocol_name": "range", "leader": "", "member_id": client.member_id}
    talk.answer(asked, wire.JoinGroupResponse(error_code=0, generation_id=5, **reply))
    joined += told(talk, "member_joined")
    assert talk.group_json()["group_type"] == "consumer"
    assert [event["member_id"] for event in joined] == [client.member_id]


@pytest.mark.parametrize("times", [1, 3])
def test_each_join_group_after_the_conversion_is_told(talk: Epochs, times: int) -> None:
    client = settled(talk)[0]
    talk.joins(talk.member("new"), 4, {})
    told(talk, "member_joined")
    for _ in range(times):
        talk.heartbeat(client, 27)
        talk.classic_join(client, 4)
    assert [event["member_id"] for event in told(talk, "member_joined")] == [client.member_id] * times

"""Scenarios of groups whose members have epochs, as Kafka's own tests of its coordinator have them."""

from __future__ import annotations

import pytest

from coordinator_model import wire
from coordinator_model.finding import Blame, Severity
from tests.coordinator_model.classic import live, settled
from tests.coordinator_model.conversation import Client
from tests.coordinator_model.epoch_groups import alone, joined_pair, moved, pair
from tests.coordinator_model.epochs import Epochs, foo
from tests.coordinator_model.streams import Shares, Streams


def silent(talk: Epochs, *but: str) -> None:
    assert talk.settled_rules() == list(but)


# ---------------------------------------------------------------------------------------------------- reconciliation


def test_a_full_request_gets_the_whole_assignment(talk: Epochs) -> None:
    a = alone(talk)
    talk.beats(a)
    talk.full(a, 2, foo(0, 1), owned=foo(0, 1))
    silent(talk)


def test_partitions_go_from_two_members_to_a_third(talk: Epochs) -> None:
    a, b, c = (talk.member(name) for name in "abc")
    talk.joins(a, 9, {"foo": (0, 1, 2), "bar": (0,)}, "foo", "bar")
    talk.joins(b, 10, {"foo": (3, 4, 5), "bar": (1, 2)}, "foo", "bar")
    talk.beats(a, 10)
    talk.joins(c, 11, {}, "foo", "bar")
    talk.beats(a, 10, {"foo": (0, 1), "bar": (0,)})
    talk.beats(b, 10, {"foo": (3,), "bar": (2,)})
    talk.beats(c, 11)
    assert talk.group_json()["waits_for"] == ["a-id", "b-id"]
    talk.beats(a, 11, owned={"foo": (0, 1), "bar": (0,)})
    talk.beats(b, 10)
    assert talk.group_json()["waits_for"] == ["b-id"]
    talk.beats(c, 11, {"foo": (2,)})
    talk.beats(b, 11, {"foo": (3,), "bar": (2,)}, owned={"foo": (3,), "bar": (2,)})
    talk.beats(c, 11, {"foo": (2, 4, 5), "bar": (1,)})
    silent(talk)
    assert talk.group_json()["state"] == "Stable"


@pytest.mark.parametrize("epoch", [11, 10], ids=["-4.1", "4.2-"])
def test_a_newer_target_takes_more_while_a_member_gives_up(talk: Epochs, epoch: int) -> None:
    a = alone(talk, 10, held=foo(0, 1, 2))
    talk.joins(talk.member("b"), 11, {})
    talk.beats(a, 10, foo(0, 1))
    talk.beats(a, epoch, foo(0), owned=foo(0, 1))
    talk.beats(a, 12, owned=foo(0))
    silent(talk)


def test_who_does_not_give_up_is_removed(talk: Epochs) -> None:
    a, b = joined_pair(talk)
    talk.beats(a, 2, foo(0, 1))
    talk.live([a, b], 60)
    talk.beats(b, 4, foo(0, 1, 2))
    talk.refused(a, 25)
    talk.settle()
    assert (talk.the("R-14").severity, talk.the("R-14").blame) == (Severity.WARNING, Blame.CLIENT)
    assert talk.rules() == ["R-14"]
    assert talk.group_json()["rebalances"]["removed, did not give partitions up"] == 1


def test_a_repeated_list_with_the_partition_acknowledges_nothing(talk: Epochs) -> None:
    a = alone(talk, held=foo(0, 1, 2))
    talk.joins(talk.member("b"), 3, {})
    talk.beats(a, 2, foo(0, 1))
    talk.beats(a, owned=foo(0, 1, 2))
    silent(talk)
    assert talk.group_json()["members"][0]["gives_up"] == 1


def test_a_smaller_subscription_takes_more_at_the_same_epoch(talk: Epochs) -> None:
    a = talk.member("a")
    talk.joins(a, 2, {"foo": (0, 1), "bar": (0,)}, "foo", "bar")
    talk.joins(talk.member("b"), 3, {})
    talk.beats(a, 2, {"foo": (0,), "bar": (0,)})
    talk.wait(25_000)
    talk.beats(a, 2, foo(0), subscribed_topic_names=("foo",))
    talk.wait(25_000)
    silent(talk, "E-09")


def test_a_release_in_one_frame(talk: Epochs) -> None:
    a, b = joined_pair(talk)
    talk.full(a, 3, foo(0, 1), owned=foo(0, 1))
    talk.beats(b, 3, foo(2))
    talk.beats(a)
    silent(talk)


@pytest.mark.parametrize("epoch", [3, 11])
def test_what_was_taken_comes_back(talk: Epochs, epoch: int) -> None:
    a = alone(talk, held=foo(0, 1, 2))
    talk.joins(talk.member("b"), 3, {})
    talk.beats(a, 2, foo(0, 1))
    talk.beats(a, epoch, foo(0, 1, 2), owned=foo(0, 1))
    talk.beats(a)
    silent(talk)


@pytest.mark.parametrize("newer", [True, False])
def test_topics_that_were_dropped(talk: Epochs, *, newer: bool) -> None:
    a = talk.member("a")
    talk.joins(a, 2, {"foo": (0,), "bar": (0,)}, "foo", "bar")
    if newer:
        talk.wait(20)
        body = wire.OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=2, member_id="a-id")
        talk.call(a, body, wire.OffsetCommitResponse(), version=10)
    talk.full(a, 3, {"foo": (0,), "bar": (0,)}, "foo", owned={"foo": (0,), "bar": (0,)})
    silent(talk, *(["E-16"] if newer else []))


def test_within_the_assignment_interval_a_joiner_gets_nothing_yet(talk: Epochs) -> None:
    a, b = talk.member("a"), talk.member("b")
    talk.joins(a, 2, foo(0, 1))
    talk.joins(b, 2, {})
    talk.beats(b, 3)
    talk.beats(a, 2, foo(0))
    talk.beats(a, 3, owned=foo(0))
    talk.beats(b, 3, foo(1))
    silent(talk)


# ---------------------------------------------------------------------------------------------------- epochs and identity


@pytest.mark.parametrize("instance_id", [None, "i"])
def test_epochs_that_are_refused_and_the_one_that_is_tolerated(talk: Epochs, instance_id: str | None) -> None:
    a = talk.member("a", instance_id)
    talk.joins(a, 99, foo(0, 1))
    talk.beats(a, 100)
    for epoch in (200, 50, 99):
        talk.refused(a, 110, epoch=epoch)
    talk.beats(a, 100, epoch=99, owned=foo(0))
    silent(talk)


@pytest.mark.parametrize("owned", [foo(0, 1), None])
def test_a_reply_that_the_client_did_not_get(talk: Epochs, owned: dict[str, tuple[int, ...]] | None) -> None:
    a = alone(talk)
    talk.beats(a, 3)
    if owned is None:
        talk.refused(a, 110, epoch=2)
    else:
        talk.beats(a, 3, epoch=2, owned=owned)
    silent(talk)


def test_the_tolerance_ends_with_a_write_at_the_same_epoch(talk: Epochs) -> None:
    a = alone(talk)
    talk.beats(a, 3)
    talk.joins(talk.member("b"), 4, {})
    talk.beats(a, 3, foo(0))
    talk.refused(a, 110, epoch=2, owned=foo(0))
    silent(talk)


@pytest.mark.parametrize("accepted", [True, False], ids=["4.2-", "-4.1"])
def test_a_known_member_joins_again(talk: Epochs, *, accepted: bool) -> None:
    a = alone(talk)
    if accepted:
        talk.joins(a, 2, foo(0, 1))
    else:
        talk.refused_join(a, 110)
    silent(talk)


def test_a_join_settles_what_was_to_be_given_up(talk: Epochs) -> None:
    a, b = joined_pair(talk, 100)
    talk.beats(a, 100, foo(0, 1))
    talk.joins(a, 101, foo(0, 1))
    talk.beats(b, 101, foo(2))
    talk.beats(a)
    silent(talk)


def test_a_member_that_waits_joins_again(talk: Epochs) -> None:
    _, b = pair(talk)
    talk.joins(b, 3, foo(2))
    talk.beats(b)
    silent(talk)


@pytest.mark.parametrize("seconds", [50, 65])
def test_a_session_ends_unless_the_group_has_a_longer_one(talk: Epochs, seconds: int) -> None:
    a, b = pair(talk)
    talk.live([b], seconds)
    talk.beats(b, 4, foo(0, 1, 2))
    talk.refused(a, 25)
    talk.settle()
    assert [finding.rule for finding in talk.findings if finding.severity is not Severity.INFO and finding.rule != "E-09"] == []
    assert talk.group_json()["rebalances"]["went silent"] == 1


def test_a_static_member_that_does_not_come_back(talk: Epochs) -> None:
    a, b = talk.member("a", "i"), talk.member("b")
    talk.joins(a, 2, foo(0, 1))
    talk.joins(b, 3, {})
    talk.leaves(a, -2)
    talk.live([b], 50)
    talk.beats(b, 4, foo(0, 1))
    silent(talk)
    assert talk.group_json()["rebalances"]["did not come back"] == 1


def test_a_static_member_comes_back_to_what_it_had(talk: Epochs) -> None:
    a, b = talk.member("a", "i"), talk.member("b")
    talk.joins(a, 2, foo(0, 1))
    talk.joins(b, 3, {})
    talk.beats(a, 3)
    talk.leaves(a, -2)
    talk.live([b], 20)
    again = talk.member("again", "i")
    talk.joins(again, 3, foo(0, 1))
    talk.beats(again)
    talk.live([again, b], 10)
    silent(talk)
    assert talk.group_json()["generation"] == 3


def test_a_static_member_comes_back_with_other_topics(talk: Epochs) -> None:
    a = alone(talk, instance_id="i")
    talk.leaves(a, -2)
    talk.joins(talk.member("again", "i"), 3, {"bar": (0,)}, "bar")
    silent(talk)


def test_another_id_with_a_held_instance_id(talk: Epochs) -> None:
    alone(talk, held=foo(0), instance_id="i")
    talk.refused(talk.member("b", "i"), 82, epoch=2)
    silent(talk)


@pytest.mark.parametrize("served", [False, True])
def test_a_leave_raises_the_epoch_and_ends_the_membership(talk: Epochs, *, served: bool) -> None:
    a, b = pair(talk)
    talk.leaves(a)
    talk.beats(b, 4, foo(0, 1, 2))
    if served:
        talk.beats(a, 3, epoch=3)
    else:
        talk.refused(a, 25, epoch=3)
    silent(talk, *(["E-14"] if served else []))


def test_a_full_group(talk: Epochs) -> None:
    a, _ = pair(talk)
    talk.refused_join(talk.member("c"), 81)
    talk.beats(a)
    silent(talk)


def test_the_first_version_leaves_the_id_to_the_broker(talk: Epochs) -> None:
    alone(talk)
    b = talk.member("b")
    b.member_id = ""
    request = talk.beat_request(b, 0, **talk.join_fields())
    talk.refused(b, 42, epoch=0, **talk.join_fields())
    b.member_id = "0123456789012345678901"
    talk.call(b, request, talk.given(b, 3, {}), version=0)
    silent(talk, "E-05")


def test_an_instance_id_may_be_left_out_once_it_was_said(talk: Epochs) -> None:
    a = alone(talk, held=foo(0), instance_id="i")
    a.instance_id = None
    talk.live([a], 20)
    silent(talk)


def test_a_callback_that_always_throws(talk: Epochs) -> None:
    a, b = joined_pair(talk, held=foo(0, 1))
    talk.beats(a, 2, foo(0))
    talk.live([a, b], 60)
    talk.refused(a, 25)
    talk.joins(a, 5, {})
    silent(talk, "R-14")


def test_the_coordinator_moves_while_a_member_gives_up(talk: Epochs) -> None:
    a, _ = joined_pair(talk, held=foo(0, 1))
    talk.beats(a, 2, foo(0))
    talk.wait(14_000)
    a = moved(talk, a)
    talk.refused(a, 14)
    talk.full(a, 2, foo(0), owned=foo(0, 1))
    talk.wait(20_000)
    silent(talk)


# ---------------------------------------------------------------------------------------------------- patterns, commits


def test_a_pattern_is_resolved_later_and_changed(talk: Epochs) -> None:
    a = talk.member("a")
    talk.joins(a, 1, {}, subscribed_topic_names=None, subscribed_topic_regex="foo.*")
    talk.beats(a)
    talk.beats(a, 2, foo(0, 1))
    talk.beats(a, 3, subscribed_topic_regex="bar.*")
    talk.beats(a, 4, {}, subscribed_topic_regex="", subscribed_topic_names=("foo",))
    silent(talk)
    assert talk.group_json()["rebalances"]["topics, a pattern or the configuration changed"] == 1


def test_a_pattern_without_rights_gets_nothing_for_ever_and_is_named(talk: Epochs) -> None:
    a = talk.member("a")
    talk.joins(a, 1, {}, subscribed_topic_names=None, subscribed_topic_regex="foo.*")
    talk.live([a], 600)
    silent(talk, "A-15")


@pytest.mark.parametrize(("epoch", "error"), [(11, 113), (10, 0), (7, 0), (6, 113)])
def test_commits_at_epochs_since_the_partition_was_assigned(talk: Epochs, epoch: int, error: int) -> None:
    a = alone(talk, 7)
    talk.beats(a, 10)
    talk.commits(a, error, epoch=epoch)
    silent(talk)


# ---------------------------------------------------------------------------------------------------- migration


def mixed(talk: Epochs) -> tuple[Client, Client, Client]:
    """A stable classic group of two to which a member of the consumer protocol was admitted."""
    a, b = settled(talk)
    new = talk.member("new")
    talk.joins(new, 4, {})
    return a, b, new


def test_a_stable_classic_group_is_upgraded(talk: Epochs) -> None:
    a, b, _ = mixed(talk)
    talk.heartbeat(a, 27)
    talk.classic_join(a, 4)
    talk.classic_sync(a)
    talk.heartbeat(a)
    talk.heartbeat(b)
    silent(talk, "P-12")
    assert talk.group_json()["group_type"] == "consumer"


def test_parked_requests_are_answered_when_the_group_is_upgraded(talk: Epochs) -> None:
    a, b = settled(talk)
    join, sync = talk.ask_join(a), talk.ask(b, talk.sync_request(b, []))
    talk.joins(talk.member("new"), 4, {})
    talk.refuse_join(join, 27)
    talk.answer(sync, talk.synced(27))
    silent(talk, "P-12")


def test_an_upgrade_that_is_refused_says_why(talk: Epochs) -> None:
    settled(talk)
    talk.refused_join(talk.member("new"), 69, text="Cannot upgrade: the assignment holds user data")
    silent(talk, "E-10")
    assert "user data" in talk.the("E-10").summary


def test_classic_members_reconcile_with_generations_that_repeat(talk: Epochs) -> None:
    a, _, new = mixed(talk)
    for generation in (3, 4, 4):
        talk.heartbeat(a, 27)
        talk.classic_join(a, generation)
        talk.classic_sync(a, 27 if generation == 3 else 0)
    talk.beats(new, 4, foo(0))
    silent(talk, "P-12")


def test_a_classic_member_that_does_not_join_again_is_removed(talk: Epochs) -> None:
    a, b, new = mixed(talk)
    for _ in range(5):
        talk.heartbeat(a, 27)
        talk.heartbeat(b)
        talk.beats(new)
        talk.wait(4_000)
    talk.heartbeat(a, 25)
    silent(talk, "P-12", "R-08")
    assert talk.the("R-08").severity is Severity.WARNING


@pytest.mark.parametrize("how", ["leaves", "expires"])
def test_the_last_member_of_the_new_protocol_goes_and_the_group_is_classic_again(talk: Epochs, how: str) -> None:
    a, b, new = mixed(talk)
    if how == "leaves":
        talk.leaves(new)
    live(talk, [a, b], 50 if how == "expires" else 1)
    talk.round([a, b], 6)
    silent(talk, "P-12")
    content = talk.group_json()
    assert (content["group_type"], content["state"], content["generation"]) == ("classic", "Stable", 6)
    assert [member["member_id"] for member in content["members"]] == [a.member_id, b.member_id]


def test_the_last_static_member_is_replaced_by_a_classic_one(talk: Epochs) -> None:
    new = talk.member("new", "i")
    talk.joins(new, 4, foo(0))
    talk.leaves(new, -2)
    again = talk.client("again", instance_id="i", member_id="i-2")
    talk.classic_join(again, 4)
    talk.classic_sync(again)
    talk.classic_sync(again)
    talk.heartbeat(again)
    silent(talk)


def test_a_policy_that_forbids_it(talk: Epochs) -> None:
    alone(talk)
    talk.refuse_join(talk.ask_join(talk.client("classic")), 23)
    silent(talk)


def test_empty_groups_are_converted_and_begin_anew(talk: Epochs) -> None:
    a, b = settled(talk)
    talk.leave(a)
    talk.leave(b)
    new = talk.member("new")
    talk.joins(new, 2, foo(0))
    talk.leaves(new)
    c = talk.client("c")
    talk.wait(1_000)
    talk.round([c], 1)
    silent(talk, "P-12")


# ---------------------------------------------------------------------------------------------------- share groups


def test_a_share_group_gets_its_partitions_later(talk: Epochs) -> None:
    a = talk.member("a")
    for epoch, returned, numbers in ((0, 1, ()), (1, 1, None), (1, 2, (0, 1))):
        talk.wait(20)
        request = wire.ShareGroupHeartbeatRequest(
            group_id="g", member_id="a-id", member_epoch=epoch, subscribed_topic_names=("foo",) if epoch == 0 else None
        )
        entry = wire.ShareGroupHeartbeatResponseTopicPartitions(topic_id="fooAAAAAAAAAAAAAAAAAAA", partitions=numbers or ())
        given = None if numbers is None else wire.ShareGroupHeartbeatResponseAssignment(topic_partitions=(entry,))
        reply = wire.ShareGroupHeartbeatResponse(
            member_id="a-id", member_epoch=returned, heartbeat_interval_ms=5_000, assignment=given
        )
        talk.call(a, request, reply)
    silent(talk)
    assert (talk.group_json()["group_type"], talk.group_json()["generation"]) == ("share", 2)


def test_the_epoch_of_a_share_group_does_not_rise_with_each_heartbeat(talk: Shares) -> None:
    """KAFKA-20291, before 4.3: it does."""
    a, b = talk.member("a"), talk.member("b")
    talk.shares(a, 0, 2, (0,))
    talk.shares(b, 0, 3, ())
    talk.shares(a, 2, 3)
    talk.goes_on([a, b], 30)
    assert talk.settled_rules() == []
    for epoch in range(4, 72):
        talk.shares(a, epoch - 1, epoch)
        talk.shares(b, epoch - 1, epoch)
        talk.wait(5_000)
    assert talk.rules() == ["R-16"]


def test_a_heartbeat_of_another_type_is_refused_with_the_types_name(talk: Epochs) -> None:
    alone(talk)
    request = wire.ShareGroupHeartbeatRequest(group_id="g", member_id="x", member_epoch=0, subscribed_topic_names=("foo",))
    talk.call(
        talk.member("x"), request, wire.ShareGroupHeartbeatResponse(error_code=69, error_message="Group g is not a share group.")
    )
    silent(talk, "E-10")
    assert "consumer type" in talk.the("E-10").summary


# ---------------------------------------------------------------------------------------------------- Streams groups


def streams_pair(talk: Streams) -> tuple[Client, Client]:
    """One member has all tasks and is told to give one up for the other."""
    a, b = talk.member("a"), talk.member("b")
    talk.enters(a, 2, (0, 1, 2))
    talk.works(a)
    talk.enters(b, 3)
    talk.works(a, 2, (0, 1))
    return a, b


def test_tasks_move_like_partitions(talk: Streams) -> None:
    a, b = streams_pair(talk)
    talk.settle()
    assert [wait["member_id"] for wait in talk.group_json()["waits"]] == ["a-id"]
    talk.works(a, 3, None, owned=(0, 1))
    talk.works(b, 3, (2,))
    talk.told_for([a, b], 20)
    silent(talk)
    assert (talk.group_json()["group_type"], talk.group_json()["state"], talk.group_json()["waits"]) == ("streams", "Stable", [])


def test_the_first_assignment_of_a_new_group_is_delayed(talk: Streams) -> None:
    a = talk.member("a")
    talk.enters(a, 1, (), (5, "Assignment delayed due to the configured initial rebalance delay."))
    talk.wait(3_000)
    talk.works(a, 2, (0, 1))
    talk.told_for([a], 40)
    silent(talk)


@pytest.mark.parametrize(("code", "normal_s"), [(1, 15), (2, 15), (3, 55)])
def test_topics_that_are_missing_or_do_not_fit_are_named(talk: Streams, code: int, normal_s: int) -> None:
    a = talk.member("a")
    talk.enters(a, 1, (), (code, "payments"))
    talk.told_for([a], normal_s, (code, "payments"))
    assert talk.rules() == []
    talk.told_for([a], 15, (code, "payments"))
    silent(talk, "R-19")
    assert "payments" in talk.the("R-19").summary


def test_a_member_with_an_older_topology_gets_no_tasks(talk: Streams) -> None:
    a, old = talk.member("a"), talk.member("old")
    talk.enters(a, 10, (0, 1), topology=1)
    talk.enters(old, 11, (), (0, "topology epoch 0 is stale"), topology=0)
    for _ in range(14):
        talk.works(a, 11)
        talk.told_for([old], 5, (0, "topology epoch 0 is stale"))
    silent(talk, "R-19")
    assert "older version of the application" in talk.the("R-19").summary


@pytest.mark.parametrize("leaves", ["on", "off"])
def test_a_member_asks_the_application_to_stop(talk: Streams, leaves: str) -> None:
    a, b = talk.member("a"), talk.member("b")
    talk.enters(a, 2, (0,))
    talk.enters(b, 3, (1,))
    if leaves == "on":
        talk.works(a, -1, None, asked=-1, shutdown_application=True)
    else:
        talk.works(a, None, None, (4, "a-id"), shutdown_application=True)
    talk.told_for([b], 10, (4, "a-id"))
    silent(talk, "R-20")
    assert (talk.the("R-20").severity, talk.the("R-20").member_id) == (Severity.INFO, "a-id")


def test_the_epoch_before_is_tolerated_with_tasks_that_the_member_has(talk: Streams) -> None:
    a = talk.member("a")
    talk.enters(a, 99, (0, 1))
    talk.works(a, 100)
    talk.works(a, 100, (0, 1), asked=99, owned=(0, 1))
    talk.turned_away(a, 110, epoch=99)
    talk.turned_away(a, 110, epoch=200)
    talk.turned_away(a, 42, epoch=100, owned=(0, 9))
    silent(talk, "E-08")  # of the task that it was never given


def test_a_stale_epoch_without_its_tasks_must_be_refused(talk: Streams) -> None:
    a = talk.member("a")
    talk.enters(a, 99, (0, 1))
    talk.works(a, 100)
    talk.works(a, 101)
    talk.works(a, 101, asked=98)
    silent(talk, "E-04")


def test_a_full_request_of_a_streams_member_may_be_answered_without_tasks(talk: Streams) -> None:
    a = talk.member("a")
    talk.enters(a, 2, (0, 1))
    talk.works(a, 2, None, owned=(0, 1), rebalance_timeout_ms=60_000)
    silent(talk)


def test_an_empty_streams_group_becomes_classic(talk: Streams) -> None:
    """Since 4.2; the first answer gives the member its id."""
    a = talk.member("a")
    talk.enters(a, 2, (0, 1))
    talk.works(a, -1, asked=-1)
    c = talk.client("c")
    talk.wait(1_000)
    talk.answer(talk.ask_join(c), wire.JoinGroupResponse(error_code=79, member_id="c-1"))
    talk.round([c], 1)
    silent(talk, "P-12")
    assert talk.group_json()["group_type"] == "classic"


def test_a_streams_group_with_members_refuses_a_classic_one(talk: Streams) -> None:
    a = talk.member("a")
    talk.enters(a, 2, (0, 1))
    talk.answer(talk.ask_join(talk.client("c")), wire.JoinGroupResponse(error_code=23))
    silent(talk)
    assert talk.group_json()["group_type"] == "streams"

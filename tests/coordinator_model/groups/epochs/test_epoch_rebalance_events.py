"""What happens in a group whose members have epochs is told once, in order, and its cost is what its frames add up to."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator_model import wire
from coordinator_model.coordinator import Coordinator
from coordinator_model.wire.record import Kind
from tests.coordinator_model.conversation import Client
from tests.coordinator_model.epochs import foo
from tests.coordinator_model.groups.epochs.timed import Timed
from tests.coordinator_model.streams import Streams
from tests.golden import transcript
from tests.samples import sampled


def at_s(second: str) -> str:
    """The conversation begins at 22:13:20."""
    return f"2023-11-14T22:13:{second}Z"


@pytest.fixture
def talk() -> Timed:
    return Timed()


@pytest.fixture
def pair(talk: Timed) -> tuple[Client, Client]:
    """Two members in epoch 3 at 10,010 ms; a has partitions 0 and 1 of foo, b has 2 and 3."""
    a, b = talk.member("a"), talk.member("b")
    talk.join(a, 1_000, 2, foo(0, 1, 2, 3))
    talk.join(b, 2_000, 3)
    talk.beat(a, 6_000, 2, foo(0, 1))
    talk.beat(a, 6_500, 3, owned=foo(0, 1))
    talk.beat(b, 7_000, 3, foo(2, 3))
    return a, b


def test_a_rebalance_is_told_in_order_and_steady_traffic_not_at_all(talk: Timed, pair: tuple[Client, Client]) -> None:
    assert talk.kinds() == [
        "member_joined",
        "rebalance_began",
        "member_served",
        "rebalance_finished",
        "member_joined",
        "rebalance_began",
        "told_to_give_up",
        "gave_up",
        "member_served",
        "rebalance_finished",
    ]
    before = len(talk.events)
    talk.steady(pair, 10_000, 100_000)
    for client in pair:
        talk.commits(client)
    assert talk.kinds(before) == []


@pytest.mark.usefixtures("pair")
def test_who_began_who_was_told_who_gave_up_and_who_got_what(talk: Timed) -> None:
    began, told, gave_up, served = (talk.the(kind) for kind in ("rebalance_began", "told_to_give_up", "gave_up", "member_served"))
    assert (began["cause"], began["member_id"], began["from_generation"], began["generation"]) == ("joined", "b-id", 2, 3)
    assert (told["member_id"], told["partitions"], told["keeps"]) == ("a-id", {"foo": [2, 3]}, 2)
    assert (gave_up["member_id"], gave_up["partitions"], gave_up["keeps"]) == ("a-id", {"foo": [2, 3]}, 2)
    assert (served["member_id"], served["partitions"]) == ("b-id", {"foo": [2, 3]})
    assert {event.group_type for event in talk.events} == {"consumer"}
    for event in talk.events:
        assert event.frame is not None
        record = talk.records[event.frame.offset]
        assert (record.kind, record.at_us) == (Kind.RESPONSE, event.at_us)


@pytest.mark.usefixtures("pair")
def test_who_holds_nothing_costs_and_what_is_given_up_is_unheld_until_another_has_it(talk: Timed) -> None:
    record = talk.the("rebalance_finished")
    assert (record["from_generation"], record["to_generation"], record["took_ms"]) == (2, 3, 5_000)  # 2,010 to 7,010
    assert (record["join_ms"], record["sync_ms"]) == (None, None)
    assert record["cost_member_seconds"] == 5.01  # b from its join at 2,000 on; a consumed what it kept
    assert (record["partitions_moved"], record["partitions_stayed"]) == (2, 2)
    assert record["unheld"] == {"foo": {"2": 0.51, "3": 0.51}}  # from a's request at 6,500 on
    assert (record["ended"], record["last_member"]) == ("every member was served", "b-id")
    b, a = record["members"]
    assert (a["member_id"], a["told_at"], a["acknowledged_at"]) == ("a-id", at_s("26.010000"), at_s("26.500000"))
    assert (a["joined_at"], a["served_at"], a["stopped_at"]) == (None, at_s("26.510000"), None)
    assert (b["joined_at"], b["served_at"], b["told_at"]) == (at_s("22.000000"), at_s("27.010000"), None)


def test_a_dead_member_is_gone_since_its_connection_ended_though_its_session_ends_unseen(
    talk: Timed, pair: tuple[Client, Client]
) -> None:
    a, b = pair
    talk.at(20_000)
    talk.close(b)
    talk.steady((a,), 20_100, 65_000)
    talk.beat(a, 66_000, 4, foo(0, 1, 2, 3))
    record = talk.the("rebalance_finished")
    assert (record["cause"], record["member_id"], record["ended"]) == ("went silent", "b-id", "every member was served")
    assert record["unheld"] == {"foo": {"2": 46.01, "3": 46.01}}
    assert record["cost_member_seconds"] == 0
    [lost] = record["never_came_back"]
    assert (lost["member_id"], lost["stopped_at"]) == ("b-id", "2023-11-14T22:13:40.000000Z")
    assert talk.the("session_over")["silent_since"] == "2023-11-14T22:13:40.000000Z"  # another has its partitions: that shows it
    before = len(talk.events)
    talk.steady((a,), 70_000, 200_000)
    assert talk.kinds(before) == []
    talk.beat(a, 201_000, 5)
    record = talk.the("rebalance_finished")
    assert (record["to_generation"], record["partitions_stayed"], record["unheld"]) == (5, 4, {})
    assert record["never_came_back"] == []


def test_nobody_waits_for_a_member_without_partitions_that_went_silent(talk: Timed) -> None:
    a, b = talk.member("a"), talk.member("b")
    talk.join(a, 1_000, 2, foo(0))
    talk.join(b, 2_000, 3)
    talk.beat(a, 3_000, 3)
    talk.steady((a,), 8_000, 50_000)
    talk.beat(a, 53_000, 4)
    record = talk.the("rebalance_finished")
    assert (record["cause"], record["to_generation"], record["took_ms"]) == ("went silent", 4, 0)
    assert [one["member_id"] for one in record["never_came_back"]] == ["b-id"]


def test_what_nobody_holds_is_counted_up_to_the_end_of_each_record_and_on_in_the_next(
    talk: Timed, pair: tuple[Client, Client]
) -> None:
    a, b = pair
    talk.at(20_000)
    talk.answer(talk.ask(b, talk.beat_request(b, -1)), talk.given(b, -1), after_ms=10)
    talk.beat(a, 24_000, 4)
    assert talk.the("rebalance_finished")["unheld"] == {"foo": {"2": 4.01, "3": 4.01}}
    talk.beat(a, 30_000, 5, foo(0, 1, 2, 3))
    assert talk.the("rebalance_finished")["unheld"] == {"foo": {"2": 6.0, "3": 6.0}}


def test_what_a_static_member_that_is_away_held_is_counted_once_when_it_does_not_come_back(talk: Timed) -> None:
    a, b, c = talk.member("a", "a-0"), talk.member("b"), talk.member("c")
    talk.join(a, 1_000, 2, foo(0))
    talk.join(b, 1_100, 3, foo(1))
    talk.beat(a, 2_000, 3)
    talk.at(20_000)
    talk.answer(talk.ask(a, talk.beat_request(a, -2)), talk.given(a, -2), after_ms=10)
    talk.join(c, 30_000, 4)
    talk.beat(b, 31_000, 4)
    talk.beat(c, 32_000)
    assert talk.the("rebalance_finished")["unheld"] == {"foo": {"0": 11.01}}  # until b, the last, came to epoch 4 at 31,010
    talk.steady((b, c), 35_000, 110_000)
    over = talk.the("session_over")
    assert (over["member_id"], over["silent_since"]) == ("a-id", at_s("40.010000"))
    talk.beat(b, 111_010, 5, foo(0, 1))
    talk.beat(c, 112_000, 5)
    record = talk.the("rebalance_finished")
    assert record["unheld"] == {"foo": {"0": 80.01}}  # since 31,010
    assert [one["instance_id"] for one in record["never_came_back"]] == ["a-0"]


@pytest.mark.parametrize("lines", [0, 1], ids=["frames alone", "frames and a line of the coordinator"])
@pytest.mark.parametrize("join_ms", [52_000, 90_000], ids=["before the session is over for certain", "after it"])
def test_what_the_last_member_held_that_died_is_unheld_until_another_has_it(talk: Timed, lines: int, join_ms: int) -> None:
    a, b = talk.member("a"), talk.member("b")
    talk.join(a, 1_000, 2, foo(0, 1))
    talk.beat(a, 6_000)
    talk.at(51_100)
    for _ in range(lines):
        talk._feed(Kind.EXPIRED, None, a.member_id.encode(), group="g")
    talk.join(b, join_ms, 4, foo(0, 1))
    talk.beat(b, join_ms + 5_000)
    unheld_s = (join_ms + 10 - 6_000) / 1_000
    assert talk.the("rebalance_finished")["unheld"] == {"foo": {"0": unheld_s, "1": unheld_s}}


def test_a_refusal_is_told_once_and_a_connection_that_closes_behind_an_unanswered_leave_not_at_all(
    talk: Timed, pair: tuple[Client, Client]
) -> None:
    a, b = pair
    before = len(talk.events)
    talk.at(20_000)
    for _ in range(3):
        talk.refused(b, 110)
    talk.ask(a, talk.beat_request(a, -1))
    talk.close(a)
    assert talk.kinds(before) == ["member_fenced"]
    talk.close(b)
    assert talk.kinds(before) == ["member_fenced", "connection_closed"]


def test_what_a_member_that_leaves_held_is_unheld_from_its_leave_on(talk: Timed, pair: tuple[Client, Client]) -> None:
    a, b = pair
    talk.at(20_000)
    asked = talk.ask(b, talk.beat_request(b, -1))
    talk.answer(asked, talk.given(b, -1), after_ms=10)
    talk.beat(a, 24_000, 4, foo(0, 1, 2, 3))
    record = talk.the("rebalance_finished")
    assert (record["cause"], record["member_id"], record["never_came_back"]) == ("left", "b-id", [])
    assert record["unheld"] == {"foo": {"2": 4.01, "3": 4.01}}
    assert (record["partitions_moved"], record["partitions_stayed"]) == (2, 2)
    assert talk.the("member_left")["member_id"] == "b-id"


def test_a_static_member_that_is_replaced_keeps_its_partitions_and_begins_nothing(talk: Timed) -> None:
    a = talk.member("a", "a-0")
    talk.join(a, 1_000, 2, foo(0, 1))
    before = len(talk.events)
    talk.at(5_000)
    asked = talk.ask(a, talk.beat_request(a, -2))
    talk.answer(asked, talk.given(a, -2), after_ms=10)
    again = talk.member("b", "a-0")
    talk.join(again, 9_000, 2, foo(0, 1))
    assert talk.kinds(before) == ["member_away", "member_joined", "member_served"]


def test_a_member_that_does_not_give_up_is_fenced_and_named_and_the_others_wait(talk: Timed) -> None:
    a, b = talk.member("a"), talk.member("b")
    talk.join(a, 1_000, 2, foo(0, 1))
    talk.join(b, 2_000, 3)
    talk.beat(a, 3_000, 2, foo(0))
    for ms in range(8_000, 63_000, 5_000):
        talk.beat(a, ms)
        talk.beat(b, ms + 100)
    talk.at(64_000)
    talk.refused(a, 25)
    talk.beat(b, 65_000, 4, foo(0, 1))
    first, second = [event.as_json() for event in talk.events if event.kind == "rebalance_finished"][1:]
    assert (first["cause"], first["ended"]) == ("joined", "the epoch rose again")
    assert first["cost_member_seconds"] == 63.01  # b, from its join at 2,000 until the epoch rose at 65,010
    assert [one["member_id"] for one in first["never_came_back"]] == ["a-id"]
    assert (second["cause"], second["member_id"], second["took_ms"]) == ("fenced", "a-id", 0)
    assert second["cost_member_seconds"] == 0  # nothing is counted twice
    assert talk.the("member_fenced")["error"] == "UNKNOWN_MEMBER_ID"


def test_a_second_join_ends_the_record_of_the_first_and_its_member_is_counted_on(talk: Timed, pair: tuple[Client, Client]) -> None:
    a, _ = pair
    c, d = talk.member("c"), talk.member("d")
    talk.join(c, 20_000, 4)
    talk.join(d, 21_000, 5)
    first = talk.the("rebalance_finished")
    assert (first["to_generation"], first["ended"], first["cost_member_seconds"]) == (4, "the epoch rose again", 1.01)
    talk.beat(a, 22_000, 3, foo(0))
    talk.beat(pair[1], 22_100, 3, foo(2))
    talk.beat(a, 23_000, 5, owned=foo(0))
    talk.beat(pair[1], 23_100, 5, owned=foo(2))
    talk.beat(c, 24_000, 5, foo(1))
    talk.beat(d, 24_100, 5, foo(3))
    second = talk.the("rebalance_finished")
    assert (second["from_generation"], second["to_generation"], second["ended"]) == (4, 5, "every member was served")
    assert second["cost_member_seconds"] == pytest.approx(3.0 + 3.11)  # c since 21,010, d since its join at 21,000
    assert second["unheld"] == {"foo": {"1": 1.01, "3": 1.01}}
    assert (second["partitions_moved"], second["partitions_stayed"]) == (2, 2)


def test_a_member_for_which_nothing_is_left_is_served_with_nothing(talk: Timed) -> None:
    a, b = talk.member("a"), talk.member("b")
    talk.join(a, 1_000, 2, foo(0))
    talk.join(b, 2_000, 3)
    talk.beat(a, 5_000, 3)
    assert talk.kinds()[-2:] == ["member_served", "rebalance_finished"]
    assert talk.the("member_served")["partitions"] == {}
    assert talk.the("rebalance_finished")["cost_member_seconds"] == 3.01


def test_a_join_that_is_answered_with_the_epoch_before_costs_from_its_request_on(talk: Timed) -> None:
    a, b = talk.member("a"), talk.member("b")
    talk.join(a, 1_000, 2, foo(0, 1))
    talk.join(b, 2_000, 2)  # within the interval at which brokers since 4.3 compute assignments
    talk.beat(a, 4_000, 3, foo(0), owned=foo(0))
    talk.beat(b, 5_000, 3, foo(1))
    record = talk.the("rebalance_finished")
    assert (record["cause"], record["member_id"], record["began_at"]) == ("joined", "b-id", at_s("24.010000"))
    assert record["cost_member_seconds"] == 3.01  # b from 2,000 to 5,010


def test_a_member_that_was_served_before_the_epoch_rose_costs_nothing_in_the_next_rebalance(talk: Timed) -> None:
    a, b = talk.member("a"), talk.member("b")
    talk.join(a, 1_000, 2, foo(0))
    talk.join(b, 2_000, 2)
    talk.beat(b, 3_000, 2, foo(1))
    talk.beat(a, 20_000, 3)
    talk.beat(b, 21_000, 3)
    assert talk.the("rebalance_finished")["cost_member_seconds"] == 0


def test_an_epoch_that_overlapping_heartbeats_alone_show_begins_no_rebalance(talk: Timed, pair: tuple[Client, Client]) -> None:
    before = len(talk.events)
    talk.at(11_000)
    first = talk.ask(pair[0], talk.beat_request(pair[0]))
    second = talk.ask(pair[0], talk.beat_request(pair[0]))
    talk.answer(first, talk.given(pair[0], 3), after_ms=200)
    talk.answer(second, talk.given(pair[0], 4), after_ms=100)
    assert talk.kinds(before) == []  # which of them came first is not known, so neither is the member's epoch


def test_a_gap_ends_the_rebalance_and_what_is_held_is_unknown_after_it(talk: Timed, pair: tuple[Client, Client]) -> None:
    a, b = pair
    talk.join(talk.member("c"), 20_000, 4)
    talk.at(21_000)
    talk.gap()
    record = talk.the("rebalance_finished")
    assert (record["ended"], record["unheld"]) == ("frames are missing, or the group was converted", None)
    assert talk.kinds()[-1] == "sight_lost"
    for client in pair:
        talk.beat(client, 25_000, 4)
    assert talk.kinds().count("sight_lost") == 1
    talk.join(talk.member("d"), 30_000, 5)
    talk.beat(a, 31_000, 4, foo(0))
    talk.beat(a, 32_000, 5, owned=foo(0))
    talk.beat(b, 33_000, 5)
    assert talk.the("gave_up")["member_id"] == "a-id"
    assert talk.kinds().count("rebalance_finished") == 3


def test_partitions_of_share_groups_have_no_holder(talk: Timed) -> None:
    entry = wire.ShareGroupHeartbeatResponseTopicPartitions(topic_id="fooAAAAAAAAAAAAAAAAAAA", partitions=(0, 1))
    given = wire.ShareGroupHeartbeatResponseAssignment(topic_partitions=(entry,))
    for number, name in enumerate("ab"):
        client = talk.member(name)
        talk.at(1_000 + number * 1_000)
        request = wire.ShareGroupHeartbeatRequest(
            group_id="g", member_id=client.member_id, member_epoch=0, subscribed_topic_names=("foo",)
        )
        reply = wire.ShareGroupHeartbeatResponse(
            member_id=client.member_id, member_epoch=2 + number, heartbeat_interval_ms=5_000, assignment=given
        )
        talk.call(client, request, reply)
    began, served = talk.the("rebalance_began"), talk.the("member_served")
    assert (began["group_type"], began["cause"], served["partitions"]) == ("share", "joined", {"foo": [0, 1]})
    record = talk.the("rebalance_finished")
    assert (record["partitions_moved"], record["partitions_stayed"], record["unheld"]) == (None, None, None)


def test_the_partitions_of_streams_groups_are_active_tasks() -> None:
    talk = Streams()
    a, b = talk.member("a"), talk.member("b")
    talk.enters(a, 2, (0, 1))
    talk.enters(b, 3)
    talk.works(a, 2, (0,))
    talk.works(a, 3, owned=(0,))
    talk.works(b, 3, (1,))
    events = [event.as_json() for event in talk.model.drain_events()]
    assert [event["kind"] for event in events[4:]] == [
        "member_joined",
        "rebalance_began",
        "told_to_give_up",
        "gave_up",
        "member_served",
        "rebalance_finished",
    ]
    assert (events[6]["partitions"], events[8]["partitions"]) == ({"payments": [1]}, {"payments": [1]})
    record = events[-1]
    assert (record["group_type"], record["partitions_moved"], record["partitions_stayed"]) == ("streams", 1, 1)
    assert list(record["unheld"]) == ["payments"]


NAMES = [name for name in transcript.names() if "consumer" in name or "share" in name or "migration" in name]


SHORT = ("lawful-consumer-falls-silent-4.3.1", "lawful-migration-empty-4.3.1", "violation-epochs-share-gone-accepted-4.2.2")


@pytest.mark.parametrize("name", sampled(NAMES, SHORT))
def test_a_restart_after_any_record_changes_no_event_and_no_cost(name: str) -> None:
    records = transcript.read(name)
    undisturbed, model = (Coordinator(topic="golden", partition=0, settings=transcript.SETTINGS) for _ in range(2))
    pieces = []
    for record in records:
        undisturbed.receive(record)
        model.receive(record)
        pieces += model.drain_events()
        model = Coordinator.restore(model.snapshot(), settings=transcript.SETTINGS)
    expected = [event.as_json() for event in undisturbed.drain_events()]
    assert [event.as_json() for event in pieces] == expected
    assert len({event["id"] for event in expected}) == len(expected)
    assert model.figures()["costs"] == undisturbed.figures()["costs"]


@pytest.mark.parametrize("name", NAMES)
def test_each_rebalance_that_began_is_finished_before_the_next_begins(name: str) -> None:
    open_ = False
    for event in transcript.replayed(name).events:
        if event.kind in {"rebalance_began", "rebalance_finished"}:
            assert (event.kind == "rebalance_began") is not open_
            open_ = not open_


# ------------------------------------------------------------------------------------------------ who held it up


def waits_of(record: dict[str, Any]) -> list[tuple[str, str, int, bool]]:
    return [(one["member_id"], one["why"], one["waited_ms"], one["came"]) for one in record["waited_for"]]


@pytest.mark.usefixtures("pair")
def test_who_gave_partitions_up_was_waited_for_until_then(talk: Timed) -> None:
    assert waits_of(talk.the("rebalance_finished")) == [("a-id", "not given up", 4_490, True)]  # from 2,010 to 6,500


def test_who_did_not_give_up_was_waited_for_until_it_was_fenced(talk: Timed) -> None:
    a, b = talk.member("a"), talk.member("b")
    talk.join(a, 1_000, 2, foo(0, 1))
    talk.join(b, 2_000, 3)
    talk.beat(a, 3_000, 2, foo(0))
    talk.steady((a, b), 8_000, 30_000)
    talk.restore()
    talk.steady((a, b), 30_000, 63_000)
    talk.at(64_000)
    talk.refused(a, 25)
    talk.beat(b, 65_000, 4, foo(0, 1))
    first, second = [event.as_json() for event in talk.events if event.kind == "rebalance_finished"][1:]
    assert waits_of(first) == [("a-id", "not given up", 61_991, False)]
    assert waits_of(second) == []


def test_a_dead_member_was_waited_for_by_one_that_holds_nothing(talk: Timed, pair: tuple[Client, Client]) -> None:
    a, b = pair
    talk.at(20_000)
    talk.close(b)
    c = talk.member("c")
    talk.join(c, 21_000, 4)
    talk.beat(a, 22_000, 4, foo(0, 1))
    for ms in range(26_000, 64_000, 5_000):
        talk.beat(a, ms)
        talk.beat(c, ms + 100)
    talk.beat(a, 65_000, 5)
    first = talk.the("rebalance_finished")
    assert (first["to_generation"], first["ended"]) == (4, "the epoch rose again")
    assert waits_of(first) == [("b-id", "gone", 44_000, False)]  # from 21,010 to 65,010

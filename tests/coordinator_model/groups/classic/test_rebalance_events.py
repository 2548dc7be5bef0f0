"""What happens in a group is told once, in order, and a rebalance's cost is what its frames add up to."""

from __future__ import annotations

import json
from typing import Any

import pytest

from coordinator_model import wire
from coordinator_model.coordinator import Coordinator
from coordinator_model.events import MemberLeft, RebalanceFinished
from coordinator_model.wire.record import Kind, MirrorRecord
from tests.coordinator_model.conversation import START_US, Client, assignment
from tests.coordinator_model.groups.classic.timed import Timed
from tests.golden import transcript


@pytest.fixture
def talk() -> Timed:
    return Timed()


@pytest.fixture
def pair(talk: Timed) -> tuple[Client, Client]:
    """Two members in sync in generation 1 at 2,000 ms; a has partitions 0 and 1, b has 2."""
    a, b = talk.has_id("a"), talk.has_id("b")
    talk.completes([talk.asks_to_join(a, 1_000), talk.asks_to_join(b, 1_200)], 1, 1_500)
    talk.syncs(1_600, {a: (1_900, (0, 1)), b: (2_000, (2,))})
    return a, b


def test_a_rebalance_is_told_in_order_and_steady_traffic_not_at_all(talk: Timed, pair: tuple[Client, Client]) -> None:
    assert talk.kinds() == [
        "rebalance_began",
        "member_joined",
        "member_joined",
        "phase_ended",
        "member_synced",
        "member_synced",
        "phase_ended",
        "member_served",
        "member_served",
        "rebalance_finished",
    ]
    before = len(talk.events)
    for ms in range(3_000, 60_000, 3_000):
        talk.at(ms)
        for client in pair:
            talk.heartbeat(client)
            talk.commit(client)
        talk.tick()
    assert talk.events[before:] == []


@pytest.mark.usefixtures("pair")
def test_the_first_rebalance_costs_what_its_members_waited(talk: Timed) -> None:
    record = talk.finished()
    assert (record["cause"], record["from_generation"], record["to_generation"]) == ("new member", None, 1)
    assert (record["join_ms"], record["sync_ms"], record["took_ms"]) == (500, 400, 1_000)
    assert record["cost_member_seconds"] == 1.7  # a from 1,000 to 1,900, b from 1,200 to 2,000
    assert (record["partitions_moved"], record["partitions_stayed"], record["unheld"]) == (3, 0, {})
    assert record["last_member"] == "b-id"
    assert record["ended"] == "every member was served"
    assert record["waited_for"] == []  # the coordinator waits by itself (group.initial.rebalance.delay.ms)


def test_an_eager_rebalance_stops_everybody(talk: Timed, pair: tuple[Client, Client]) -> None:
    a, b = pair
    talk.at(10_000)
    c = talk.has_id("c")
    joins = [talk.asks_to_join(c, 10_010)]
    talk.told_to_rejoin(a, 11_000)
    joins.insert(0, talk.asks_to_join(a, 11_100))
    talk.told_to_rejoin(b, 12_000)
    joins.insert(1, talk.asks_to_join(b, 12_500))
    talk.completes(joins, 2, 12_600)
    talk.syncs(12_700, {a: (13_000, (0,)), b: (13_100, (2,)), c: (13_200, (1,))})
    record = talk.finished()
    assert (record["cause"], record["member_id"], record["last_member"]) == ("new member", "c-id", "b-id")
    assert (record["join_ms"], record["sync_ms"], record["took_ms"]) == (2_590, 400, 3_190)
    assert record["cost_member_seconds"] == pytest.approx(1.9 + 0.6 + 3.19)  # a, b, c
    assert (record["partitions_moved"], record["partitions_stayed"]) == (1, 2)
    assert record["unheld"] == {"t": {"0": 1.9, "1": 2.1, "2": 0.6}}  # 1 from a's JoinGroup to c's assignment
    told = {one["member_id"]: one["told_at"] for one in record["members"]}
    assert told["c-id"] is None
    assert told["b-id"] == "2023-11-14T22:13:32.000000Z"


def test_members_are_told_with_what_they_said_of_their_configuration(talk: Timed, pair: tuple[Client, Client]) -> None:
    a, _ = pair
    talk.completes([talk.asks_to_join(a, 5_000)], 2, 5_100)
    talk.syncs(5_200, {a: (5_300, (0, 1, 2))})
    record = talk.finished()
    [member] = record["members"]
    assert (member["session_timeout_ms"], member["rebalance_timeout_ms"]) == (10_000, 20_000)
    assert (member["assignors"], member["client_software"], record["assignor"]) == (["range"], "test 1.0", "range")


def test_a_cooperative_rebalance_stops_only_what_moves(talk: Timed, pair: tuple[Client, Client]) -> None:
    a, b = pair
    talk.told_to_rejoin(a, 10_000)
    joins = [talk.asks_to_join(a, 10_100, owned=(0, 1))]
    talk.told_to_rejoin(b, 10_000)
    joins.append(talk.asks_to_join(b, 10_200, owned=(2,)))
    talk.completes(joins, 2, 10_300)
    talk.syncs(10_400, {a: (10_500, (0,)), b: (10_600, (2,))})
    first = talk.finished()
    assert first["cost_member_seconds"] == 0
    assert (first["partitions_moved"], first["partitions_stayed"]) == (1, 2)
    assert first["unheld"] == {"t": {"1": 0.1}}  # a gave it up at 10,500
    joins = [talk.asks_to_join(a, 10_700, owned=(0,))]
    talk.told_to_rejoin(b, 11_000)
    joins.append(talk.asks_to_join(b, 11_100, owned=(2,)))
    talk.completes(joins, 3, 11_200)
    talk.syncs(11_300, {a: (11_400, (0,)), b: (11_500, (1, 2))})
    second = talk.finished()
    assert second["cost_member_seconds"] == 0
    assert (second["partitions_moved"], second["partitions_stayed"]) == (1, 2)
    assert second["unheld"] == {"t": {"1": 0.9}}  # from 10,600, up to which the first counted


def test_what_a_member_that_leaves_held_is_unheld_until_another_is_served(talk: Timed, pair: tuple[Client, Client]) -> None:
    a, b = pair
    talk.at(10_000)
    talk.leave(b, reason="the consumer is being closed")
    talk.told_to_rejoin(a, 11_000)
    join = talk.asks_to_join(a, 11_100)
    talk.completes([join], 2, 11_200)
    talk.syncs(11_300, {a: (11_400, (0, 1, 2))})
    record = talk.finished()
    assert (record["cause"], record["member_id"]) == ("member left", "b-id")
    assert record["cost_member_seconds"] == 0.3
    assert record["unheld"] == {"t": {"0": 0.3, "1": 0.3, "2": 1.4}}
    [left] = [event.as_json() for event in talk.events if event.kind == "member_left"]
    assert (left["member_id"], left["reason"]) == ("b-id", "the consumer is being closed")


def test_what_a_dead_member_held_is_unheld_since_its_connection_ended(talk: Timed, pair: tuple[Client, Client]) -> None:
    a, b = pair
    talk.at(5_000)
    talk.close(b)
    for ms in range(5_000, 15_000, 1_000):
        talk.at(ms)
        talk.heartbeat(a, after_ms=0)
    talk.told_to_rejoin(a, 15_000)
    join = talk.asks_to_join(a, 15_100)
    talk.completes([join], 2, 15_200)
    talk.syncs(15_300, {a: (15_400, (0, 1, 2))})
    record = talk.finished()
    assert (record["cause"], record["member_id"]) == ("session expired", "b-id")
    assert record["cost_member_seconds"] == 0.3
    assert record["unheld"]["t"]["2"] == 10.4
    assert [kind for kind in talk.kinds() if kind in {"connection_closed", "session_over"}] == ["connection_closed", "session_over"]


def test_a_member_that_one_rebalance_did_not_serve_is_counted_on_in_the_next(talk: Timed, pair: tuple[Client, Client]) -> None:
    a, b = pair
    talk.told_to_rejoin(a, 10_000)
    joins = [talk.asks_to_join(a, 10_000)]
    talk.told_to_rejoin(b, 10_000)
    joins.append(talk.asks_to_join(b, 10_000))
    talk.completes(joins, 2, 11_000)
    talk.syncs(11_000, {a: (12_000, (0, 1))})  # b is not answered
    talk.told_to_rejoin(a, 15_000)
    first = talk.finished()
    assert (first["to_generation"], first["ended"]) == (2, "the next rebalance began")
    assert first["cost_member_seconds"] == 2 + 5
    assert first["unheld"] == {"t": {"0": 2.0, "1": 2.0, "2": 5.0}}
    joins = [talk.asks_to_join(a, 15_000), talk.asks_to_join(b.reconnected(), 16_000)]
    talk.completes(joins, 3, 17_000)
    talk.syncs(17_000, {joins[0].client: (18_000, (0, 1)), joins[1].client: (18_000, (2,))})
    second = talk.finished()
    assert second["ended"] == "every member was served"
    assert second["cost_member_seconds"] == 3 + 3  # b since 15,000, up to which the first counted
    assert second["unheld"] == {"t": {"0": 3.0, "1": 3.0, "2": 3.0}}


def test_what_a_member_holds_that_falls_silent_is_unheld_since_its_last_frame(talk: Timed, pair: tuple[Client, Client]) -> None:
    a, b = pair
    talk.at(3_000)
    talk.heartbeat(b, after_ms=0)  # its last frame; the connection stays open
    for ms in range(4_000, 14_000, 1_000):
        talk.at(ms)
        talk.heartbeat(a, after_ms=0)
    talk.told_to_rejoin(a, 14_000)
    join = talk.asks_to_join(a, 14_200)
    talk.completes([join], 2, 14_300)
    talk.syncs(14_400, {a: (14_500, (0, 1, 2))})
    record = talk.finished()
    assert (record["cause"], record["member_id"], record["to_generation"]) == ("session expired", "b-id", 2)
    assert (record["join_ms"], record["sync_ms"], record["took_ms"]) == (300, 200, 500)  # since a is told
    assert record["cost_member_seconds"] == 0.3  # a from 14,200 to 14,500
    assert (record["partitions_moved"], record["partitions_stayed"]) == (1, 2)
    assert record["unheld"] == {"t": {"0": 0.3, "1": 0.3, "2": 11.5}}  # 2 from 3,000 to 14,500
    [lost] = record["never_came_back"]
    assert (lost["member_id"], lost["told_at"], lost["stopped_at"]) == ("b-id", None, "2023-11-14T22:13:23.000000Z")
    assert "connection_closed" not in talk.kinds()


def test_a_leave_that_is_granted_began_the_rebalance_not_one_asked_before(talk: Timed, pair: tuple[Client, Client]) -> None:
    """The broker answers one member's LeaveGroup, and has not yet read another's that crossed the wire before."""
    a, b = pair
    talk.at(10_000)
    talk.ask(a, talk.leave_request(a))
    talk.at(10_500)
    talk.leave(b)
    [began] = [event.as_json() for event in talk.events if event.kind == "rebalance_began" and event.at_us > START_US + 9_000_000]
    assert (began["cause"], began["member_id"]) == ("member left", "b-id")


def test_a_slow_member_costs_those_that_came_before_it_their_time(talk: Timed, pair: tuple[Client, Client]) -> None:
    a, b = pair
    talk.at(5_000)
    c = talk.has_id("c")
    joins = [talk.asks_to_join(one, 5_100) for one in (a, b, c)]
    talk.completes(joins, 2, 5_200)
    talk.syncs(5_300, {a: (5_400, (0,)), b: (5_400, (2,)), c: (5_400, (1,))})
    talk.at(10_000)
    talk.leave(c)
    talk.told_to_rejoin(a, 10_500)
    joins = [talk.asks_to_join(a, 10_600)]
    for ms in range(11_000, 18_000, 1_000):  # b has been told, and processes what it has polled
        talk.told_to_rejoin(b, ms)
    joins.append(talk.asks_to_join(b, 18_600))
    talk.completes(joins, 3, 18_700)
    talk.syncs(18_800, {a: (18_900, (0, 1)), b: (19_000, (2,))})
    record = talk.finished()
    assert (record["cause"], record["member_id"], record["last_member"]) == ("member left", "c-id", "b-id")
    assert record["cost_member_seconds"] == pytest.approx(8.3 + 0.4)  # a from 10,600 to 18,900, b from 18,600 to 19,000
    assert (record["partitions_moved"], record["partitions_stayed"]) == (1, 2)
    assert record["unheld"] == {"t": {"0": 8.3, "1": pytest.approx(8.9, abs=0.002), "2": 0.4}}  # 1 from c's LeaveGroup on
    assert talk.kinds().count("told_to_rejoin") == 2


@pytest.mark.parametrize("lines", [0, 1], ids=["frames alone", "frames and a line of the coordinator"])
@pytest.mark.parametrize("until_ms", [13_900, 30_000], ids=["before the session is over for certain", "after it"])
def test_what_the_last_members_held_that_died_is_unheld_until_another_is_served(
    talk: Timed, pair: tuple[Client, Client], lines: int, until_ms: int
) -> None:
    """Whether the group is known to be empty meanwhile, or not."""
    talk.at(3_000)
    for client in pair:
        talk.heartbeat(client, after_ms=0)
    for ms in range(4_000, until_ms, 1_000):
        talk.at(ms)
        talk.tick()
        for client in pair if lines and ms == 13_000 else ():
            talk.at(ms + 100)
            talk._feed(Kind.EXPIRED, None, client.member_id.encode(), group="g")
    c = talk.has_id("c")
    talk.completes([talk.asks_to_join(c, until_ms + 100)], 3, until_ms + 3_000)
    talk.syncs(until_ms + 3_100, {c: (until_ms + 3_200, (0, 1, 2))})
    unheld_s = (until_ms + 200) / 1_000  # since 3,000
    assert talk.finished()["unheld"] == {"t": {"0": unheld_s, "1": unheld_s, "2": unheld_s}}


def test_who_is_refused_while_a_new_member_joins_ends_no_rebalance_and_what_it_held_is_unheld_until_another_is_served(
    talk: Timed, pair: tuple[Client, Client]
) -> None:
    """A coordinator was started anew, and has ended both sessions; a comes back with a commit beside the JoinGroup of c."""
    a = pair[0]
    talk.at(3_000)
    for client in pair:
        talk.heartbeat(client, after_ms=0)
        talk.close(client)
    talk.wait(10_000)
    for client in pair:
        talk._feed(Kind.EXPIRED, None, client.member_id.encode(), group="g")
    talk.wait(7_000)
    again, c = a.reconnected(), talk.has_id("c")
    commits = talk.ask(again, talk.commit_request(again, {0: 5}))
    joins = [talk.asks_to_join(c, 20_100)]
    talk.at(20_200)
    talk.answer(commits, talk.committed({0: 25}), after_ms=0)
    again.member_id = "a-id-2"
    joins.append(talk.asks_to_join(again, 20_300))
    talk.completes(joins, 4, 21_000)
    talk.syncs(21_100, {c: (21_200, (0, 1)), again: (21_200, (2,))})
    assert talk.kinds().count("rebalance_finished") == 3  # the first one; what lines of the coordinator began and ended; and this
    record = talk.finished()
    assert (record["cause"], record["member_id"], record["took_ms"]) == ("new member", "c-id", 1_100)
    assert record["unheld"] == {"t": {"0": 1.0, "1": 1.0, "2": 18.2}}  # a believed until 20,200 that it held what it had


def test_what_the_only_member_held_that_is_refused_is_unheld_until_another_is_served(talk: Timed) -> None:
    a = talk.has_id("a")
    talk.completes([talk.asks_to_join(a, 1_000)], 1, 1_500)
    talk.syncs(1_600, {a: (1_900, (0, 1))})
    talk.wait(8_100)
    talk.heartbeat(a, 25, after_ms=0)
    a.member_id = "a-id-2"
    talk.completes([talk.asks_to_join(a, 11_000)], 3, 14_000)
    talk.syncs(14_100, {a: (14_200, (0, 1))})
    assert talk.finished()["unheld"] == {"t": {"0": 4.2, "1": 4.2}}


def test_a_static_member_that_comes_back_with_another_subscription_is_unheld_while_it_was_away(talk: Timed) -> None:
    a, b = talk.has_id("a"), talk.client("b", instance_id="b-0")
    first = [talk.asks_to_join(a, 1_000), talk.asks_to_join(b, 1_000)]
    b.member_id = "b-id"
    talk.completes(first, 1, 1_500)
    talk.syncs(1_600, {a: (1_700, (0, 1)), b: (1_700, (2,))})
    talk.at(10_000)
    talk.heartbeat(b, after_ms=0)
    talk.close(b)  # its process is replaced
    again = b.reconnected()
    again.member_id = ""
    joins = [talk.asks_to_join(again, 12_000)]
    again.member_id = "b-id-2"
    talk.told_to_rejoin(a, 12_500)
    joins.insert(0, talk.asks_to_join(a, 12_600))
    talk.completes(joins, 2, 12_700)
    talk.syncs(12_800, {a: (12_900, (0, 1)), again: (13_000, (2,))})
    record = talk.finished()
    assert (record["cause"], record["last_member"]) == ("static member returned", "a-id")
    assert record["cost_member_seconds"] == pytest.approx(1.0 + 0.3)  # b-0 since 12,000, a since 12,600
    assert (record["partitions_moved"], record["partitions_stayed"]) == (0, 3)  # b-0 has what it had, under another member id
    assert record["unheld"] == {"t": {"0": 0.3, "1": 0.3, "2": 3.0}}  # 2 since 10,000, when its connection ended
    assert [one["instance_id"] for one in record["members"]] == ["b-0", None]
    assert record["never_came_back"] == []


def test_a_member_that_was_told_and_did_not_rejoin_is_named_with_the_time_until_which_it_was_one(
    talk: Timed, pair: tuple[Client, Client]
) -> None:
    a, b = pair
    talk.told_to_rejoin(a, 10_000)
    joins = [talk.asks_to_join(a, 10_100)]
    for ms in range(10_500, 30_000, 1_000):
        talk.told_to_rejoin(b, ms)
    talk.completes(joins, 2, 30_200)
    talk.syncs(30_300, {a: (30_400, (0, 1, 2))})
    record = talk.finished()
    assert [one["member_id"] for one in record["members"]] == ["a-id"]
    assert record["never_came_back"] == [
        {
            "member_id": "b-id",
            "instance_id": None,
            "client_id": "b",
            "client_address": "10.0.0.1:40002",
            "told_at": "2023-11-14T22:13:30.500000Z",
            "joined_at": None,
            "served_at": None,
            "stopped_at": "2023-11-14T22:13:50.200000Z",
            "new": False,
        }
    ]
    assert record["unheld"]["t"]["2"] == 0.2
    talk.told_to_rejoin(a, 40_000)
    talk.completes([talk.asks_to_join(a, 40_100)], 3, 40_200)
    talk.syncs(40_300, {a: (40_400, (0, 1, 2))})
    assert talk.finished()["never_came_back"] == []


def test_a_group_whose_last_member_leaves_costs_nothing_until_it_has_members_again(
    talk: Timed, pair: tuple[Client, Client]
) -> None:
    for ms, client in zip((10_000, 10_500), pair, strict=True):
        talk.at(ms)
        talk.leave(client)
    assert talk.finished()["ended"] == "no member is left"
    talk.wait(589_000)
    c = talk.has_id("c")
    talk.completes([talk.asks_to_join(c, 600_100)], 3, 600_200)
    talk.syncs(600_200, {c: (600_300, (0, 1, 2))})
    record = talk.finished()
    assert (record["cost_member_seconds"], record["partitions_moved"], record["unheld"]) == (0.2, 3, {})


def test_a_group_whose_last_member_leaves_costs_nothing_though_another_was_refused_in_a_generation_before(
    talk: Timed, pair: tuple[Client, Client]
) -> None:
    a, b = pair
    talk.at(5_000)
    talk.heartbeat(b, 25, after_ms=0)
    talk.told_to_rejoin(a, 5_100)
    talk.completes([talk.asks_to_join(a, 5_200)], 2, 5_300)
    talk.syncs(5_400, {a: (5_500, (0, 1, 2))})
    assert talk.finished()["unheld"] == {"t": {"0": 0.3, "1": 0.3, "2": 0.5}}
    talk.at(10_000)
    talk.leave(a)
    talk.wait(589_000)
    c = talk.has_id("c")
    talk.completes([talk.asks_to_join(c, 600_100)], 4, 600_200)
    talk.syncs(600_200, {c: (600_300, (0, 1, 2))})
    assert talk.finished()["unheld"] == {}


def test_a_gap_ends_the_rebalance_and_what_is_held_is_unknown_after_it(talk: Timed, pair: tuple[Client, Client]) -> None:
    a, b = pair
    talk.told_to_rejoin(a, 10_000)
    talk.at(11_000)
    talk.gap()
    assert talk.finished()["ended"] == "frames are missing, or the coordinator moved"
    assert talk.kinds()[-1] == "sight_lost"
    talk.at(12_000)
    talk.gap()
    assert talk.kinds().count("sight_lost") == 1
    talk.completes([talk.asks_to_join(a, 13_000), talk.asks_to_join(b, 13_000)], 3, 13_500)
    talk.syncs(13_500, {a: (14_000, (0, 1)), b: (14_000, (2,))})
    record = talk.finished()
    assert (record["to_generation"], record["partitions_moved"], record["unheld"]) == (3, None, None)
    assert talk.kinds().count("sight_regained") == 1


def test_of_a_protocol_that_is_no_consumers_the_partitions_are_unknown(talk: Timed) -> None:
    talk.protocol_type, talk.protocol = "connect", "sessioned"
    a = talk.client("worker")
    talk.round([a], 1)
    [served] = [event.as_json() for event in talk.events if event.kind == "member_served"]
    assert served["partitions"] is None
    record = talk.finished()
    assert (record["partitions_moved"], record["partitions_stayed"], record["unheld"]) == (None, None, None)


def test_a_zombie_is_told_once_and_not_with_each_refused_request(talk: Timed, pair: tuple[Client, Client]) -> None:
    _, b = pair
    before = len(talk.events)
    for ms in range(10_000, 12_000, 100):
        talk.at(ms)
        talk.commit(b, 22)
    assert [event.kind for event in talk.events[before:]] == ["member_fenced"]
    assert talk.events[-1].as_json()["error"] == "ILLEGAL_GENERATION"


def test_a_connection_that_closes_behind_an_unanswered_leave_is_no_event(talk: Timed, pair: tuple[Client, Client]) -> None:
    a, b = pair
    talk.at(10_000)
    talk.ask(b, talk.leave_request(b))
    before = len(talk.events)
    talk.close(b)
    assert talk.events[before:] == []
    talk.close(a)
    assert talk.kinds()[before:] == ["connection_closed"]


def test_an_assignment_that_is_delivered_twice_is_told_once(talk: Timed) -> None:
    a, b = talk.has_id("a"), talk.has_id("b")
    talk.completes([talk.asks_to_join(a, 1_000), talk.asks_to_join(b, 1_000)], 1, 1_500)
    talk.syncs(1_600, {a: (1_700, (0,))})  # b's is not answered
    talk.at(2_000)
    talk.call(a, talk.sync_request(a, []), talk.synced())
    assert (talk.kinds().count("member_synced"), talk.kinds().count("member_served")) == (2, 1)


HOSTILE = ("<script>alert(1)</script>", "\u202eesrever", "a\x00b", 'quo"te\\', "x" * 10_000, "c1/g", "\ud800")


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_data_and_the_id_stays_short(name: str) -> None:
    event, other = (
        MemberLeft.of(
            (name, exchange),
            at_us=START_US,
            cluster="c",
            group=name,
            group_type="classic",
            incarnation=1,
            generation=2,
            frame=None,
            member_id=name,
            instance_id=None,
            client_id=None,
            client_address=None,
            reason=name,
        )
        for exchange in (3, 4)
    )
    assert len(event.id) == len("member_left-") + 16
    assert event.id != other.id
    assert json.loads(json.dumps(event.as_json()))["reason"] == name


def test_a_group_with_a_hostile_name_is_told_of_like_any_other() -> None:
    talk = Timed("<script>\u202e")
    a = talk.client("\u202e<b>" + "x" * 10_000)
    talk.round([a], 1)
    assert {event.group for event in talk.events} == {"<script>\u202e"}
    assert talk.finished()["members"][0]["client_id"] == a.name


WITHOUT_FRAME = {"session_over", "member_dropped", "connection_closed", "sight_lost"}


@pytest.mark.parametrize("name", transcript.names())
def test_each_event_names_the_frame_that_showed_it(name: str) -> None:
    records = {record.offset: record for record in transcript.read(name)}
    for event in transcript.replayed(name).events:
        if event.kind in WITHOUT_FRAME:
            assert event.frame is None
        elif event.frame is None:  # its member fell silent, or its end is no frame
            assert event.kind in {"rebalance_began", "rebalance_finished", "group_emptied"}
        else:
            record = records[event.frame.offset]
            assert (event.frame.partition, record.group) == (0, event.group)
            assert event.kind == "rebalance_began" or record.at_us == event.at_us
            asked = event.kind in {"member_joined", "member_synced"} and event.group_type == "classic"
            assert (record.kind is Kind.REQUEST) == asked or event.kind == "rebalance_began"
            assert event.as_json()["frame"] == {"partition": 0, "offset": record.offset}


SHORT = ("violation-never-rejoins-4.3.1", "violation-same-instance-3.9.2", "violation-follower-never-syncs-3.9.2")


@pytest.mark.parametrize("name", SHORT)
def test_a_restart_after_any_record_changes_no_event_and_no_cost(name: str) -> None:
    records = transcript.read(name)
    undisturbed, model = (Coordinator(topic="golden", partition=0, settings=transcript.SETTINGS) for _ in range(2))
    pieces = []
    for record in records:
        undisturbed.receive(record)
        model.receive(record)
        pieces += model.drain_events()
        model = Coordinator.restore(model.snapshot(), settings=transcript.SETTINGS)
    assert [event.as_json() for event in pieces] == [event.as_json() for event in undisturbed.drain_events()]
    assert model.figures()["costs"] == undisturbed.figures()["costs"] != []
    key = next(iter(model.groups))
    assert model.groups.opened(key)[0].rebalances.costs == undisturbed.groups.opened(key)[0].rebalances.costs


# ---------------------------------------------------------------------------------------------------- the cost, from the frames alone


def costs_of_frames(records: list[MirrorRecord]) -> dict[tuple[int, int], float]:
    """(time of the last SyncGroup success, generation) → member-seconds of each rebalance of eager consumers.

    Connect's workers go on meanwhile. Of each member, from its first JoinGroup since it was last served to its SyncGroup success.
    """
    asked: dict[tuple[str, int], tuple[MirrorRecord, Any]] = {}
    since_us: dict[str, int] = {}
    found: dict[tuple[str, int], tuple[int, int]] = {}
    for record in records:
        if record.kind not in {Kind.REQUEST, Kind.RESPONSE} or record.api_key not in {11, 14}:
            continue
        is_request = record.kind is Kind.REQUEST
        body = wire.decode(record.frame, request=is_request, api_key=record.api_key, api_version=record.api_version).body
        key = (record.connection, record.exchange)
        if is_request:
            asked[key] = record, body
        elif key in asked and not body.error_code:
            request, question = asked[key]
            if record.api_key == 11 and question.protocol_type == wire.CONSUMER:
                since_us.setdefault(body.member_id, request.at_us)
            elif question.member_id in since_us:
                found[question.member_id, question.generation_id] = since_us.pop(question.member_id), record.at_us
    totals: dict[int, list[tuple[int, int]]] = {}
    for (_, generation), span in found.items():
        totals.setdefault(generation, []).append(span)
    return {
        (max(end for _, end in spans), generation): sum(end - begin for begin, end in spans) / 1_000_000
        for generation, spans in totals.items()
    }


CLASSIC = [name for name in transcript.names() if name.startswith("violation-") and not name.startswith("violation-epochs-")]


@pytest.mark.parametrize("name", CLASSIC)
def test_the_cost_of_a_rebalance_is_what_its_frames_add_up_to(name: str) -> None:
    records = transcript.read(name)
    expected = costs_of_frames(records)
    undisturbed = "every member was served"
    before = undisturbed
    for event in transcript.replayed(name).events:
        if not isinstance(event, RebalanceFinished):
            continue
        if event.ended == before == undisturbed and (event.at_us, event.generation) in expected:
            assert event.as_json()["cost_member_seconds"] == pytest.approx(expected[event.at_us, event.generation or 0], abs=1e-6)
        before = event.ended


def test_most_rebalances_of_the_transcripts_are_among_those_whose_cost_is_checked() -> None:
    checked = every = 0
    for name in CLASSIC:
        records = transcript.read(name)
        expected = costs_of_frames(records)
        over = [event for event in transcript.replayed(name).events if isinstance(event, RebalanceFinished)]
        served = [event for event in over if event.ended == "every member was served"]
        every += len(served)
        checked += sum((event.at_us, event.generation) in expected for event in served)
    assert checked > 0.9 * every > 50


# ------------------------------------------------------------------------------------------------ who held it up


def waits_of(record: dict[str, Any]) -> list[tuple[str, str, int, bool]]:
    return [(one["member_id"], one["why"], one["waited_ms"], one["came"]) for one in record["waited_for"]]


def test_who_rejoined_late_was_waited_for_and_not_the_last_to_join(talk: Timed, pair: tuple[Client, Client]) -> None:
    a, b = pair
    talk.at(10_000)
    c = talk.has_id("c")
    joins = [talk.asks_to_join(c, 10_010)]
    joins.insert(0, talk.asks_to_join(a, 11_100))
    talk.stalls(b, 12_000, 35_000)
    joins.insert(1, talk.asks_to_join(b, 35_010))
    talk.at(35_011)
    d = talk.has_id("d")
    joins.append(talk.asks_to_join(d, 35_020))
    talk.completes(joins, 2, 35_030)
    talk.syncs(35_040, {one: (35_050, (number,)) for number, one in enumerate((a, b, c, d))})
    record = talk.finished()
    assert record["last_member"] == "d-id"
    assert waits_of(record) == [("b-id", "not rejoined", 25_000, True), ("a-id", "not rejoined", 1_090, True)]


def test_an_id_that_was_issued_and_not_used_was_waited_for(talk: Timed, pair: tuple[Client, Client]) -> None:
    a, b = pair
    talk.at(9_000)
    talk.has_id("d")
    joins = [talk.asks_to_join(a, 10_000), talk.asks_to_join(b, 10_010)]
    talk.completes(joins, 2, 17_010)
    talk.syncs(17_020, {one: (17_030, (number,)) for number, one in enumerate((a, b))})
    assert waits_of(talk.finished()) == [("d-id", "id not used", 7_010, False)]


def test_who_never_rejoined_was_waited_for_until_it_was_dropped(talk: Timed, pair: tuple[Client, Client]) -> None:
    a, _b = pair
    talk.at(10_000)
    c = talk.has_id("c")
    joins = [talk.asks_to_join(c, 10_010)]
    joins.insert(0, talk.asks_to_join(a, 11_100))
    talk.completes(joins, 2, 15_010)
    talk.syncs(15_040, {a: (15_050, (0,)), c: (15_060, (1,))})
    assert waits_of(talk.finished()) == [("b-id", "not rejoined", 5_000, False), ("a-id", "not rejoined", 1_090, True)]


def test_who_left_began_it_and_is_not_waited_for(talk: Timed, pair: tuple[Client, Client]) -> None:
    a, b = pair
    talk.at(10_000)
    talk.leave(b)
    talk.completes([talk.asks_to_join(a, 14_000)], 2, 14_010)
    talk.syncs(14_020, {a: (14_030, (0, 1, 2))})
    record = talk.finished()
    assert (record["cause"], record["waited_for"]) == ("member left", [])


def test_a_leader_that_assigns_late_was_waited_for(talk: Timed, pair: tuple[Client, Client]) -> None:
    a, b = pair
    talk.at(10_000)
    joins = [talk.asks_to_join(a, 10_010), talk.asks_to_join(b, 10_020)]
    talk.completes(joins, 2, 10_030)
    talk.at(10_100)
    waits = talk.ask(b, talk.sync_request(b, []))
    talk.roster = [a]
    talk.syncs(15_100, {a: (15_110, (0,))})
    talk.answer(waits, wire.SyncGroupResponse(assignment=assignment(t=(1, 2))), after_ms=1)
    assert waits_of(talk.finished()) == [("a-id", "no assignment", 5_000, True)]


def test_who_is_waited_for_survives_a_snapshot_in_the_middle(talk: Timed, pair: tuple[Client, Client]) -> None:
    a, b = pair
    talk.at(10_000)
    c = talk.has_id("c")
    joins = [talk.asks_to_join(c, 10_010), talk.asks_to_join(a, 11_100)]
    talk.stalls(b, 12_000, 20_000)
    talk.restore()
    talk.stalls(b, 20_000, 35_000)
    joins.append(talk.asks_to_join(b, 35_010))
    talk.completes(joins, 2, 35_030)
    talk.syncs(35_040, {one: (35_050, (number,)) for number, one in enumerate((a, b, c))})
    assert waits_of(talk.finished()) == [("b-id", "not rejoined", 25_000, True), ("a-id", "not rejoined", 1_090, True)]


def test_who_joins_is_told_from_who_rejoins(talk: Timed, pair: tuple[Client, Client]) -> None:
    a, b = pair
    talk.at(10_000)
    c = talk.has_id("c")
    joins = [talk.asks_to_join(a, 11_000), talk.asks_to_join(b, 11_100), talk.asks_to_join(c, 10_010)]
    talk.completes(joins, 2, 12_000)
    talk.syncs(12_010, {one: (12_020, (number,)) for number, one in enumerate((a, b, c))})
    joined = [event.as_json() for event in talk.events if event.kind == "member_joined"]
    assert [(one["member_id"], one["new"]) for one in joined] == [
        ("a-id", True),
        ("b-id", True),
        ("a-id", False),
        ("b-id", False),
        ("c-id", True),
    ]
    assert {one["member_id"]: one["new"] for one in talk.finished()["members"]} == {"a-id": False, "b-id": False, "c-id": True}


def test_static_members_that_restart_leave_their_partitions_unheld_until_they_are_served_again(talk: Timed) -> None:
    """Four restarts without a rebalance, each 6.5 s, of a member with two partitions: 52 partition-seconds."""
    a, b = talk.has_id("a"), talk.client("b", instance_id="b-0")
    first = [talk.asks_to_join(a, 1_000), talk.asks_to_join(b, 1_000)]
    b.member_id = "b-id"
    talk.completes(first, 1, 1_500)
    talk.syncs(1_600, {a: (1_700, (2,)), b: (1_700, (0, 1))})
    for number in range(4):
        stopped_ms = 10_000 * (number + 1)
        talk.at(stopped_ms)
        talk.heartbeat(b, after_ms=0)
        talk.close(b)
        b = b.reconnected()
        b.member_id = ""
        join = talk.asks_to_join(b, stopped_ms + 6_000)
        b.member_id = f"b-id-{number}"
        talk.at(stopped_ms + 6_100)
        talk.joined(join, generation=1, leader=a, roster=[a, b])
        talk.at(stopped_ms + 6_200)
        sync = talk.ask(b, talk.sync_request(b, []))
        talk.at(stopped_ms + 6_500)
        reply = wire.SyncGroupResponse(protocol_type="consumer", protocol_name="range", assignment=assignment(t=(0, 1)))
        talk.answer(sync, reply, after_ms=0)
    served = [event.as_json() for event in talk.events if event.kind == "member_served" and event.instance_id == "b-0"]
    assert [one.get("unheld") for one in served] == [None, *[{"t": {"0": 6.5, "1": 6.5}}] * 4]
    assert talk.model.counters.costs["c1", "static member returned"].unheld_us == 52_000_000


def test_a_static_member_that_restarts_in_a_group_first_seen_in_mid_life_begins_no_rebalance_twice(talk: Timed) -> None:
    """It is answered with a generation that heartbeats have shown, which may be another of the same number."""
    a, b = talk.client("a"), talk.client("b")
    for client in (a, b):
        client.member_id, client.instance_id, client.generation = f"{client.name}-1", f"i-{client.name}", 4
        talk.heartbeat(client)
    talk.close(a)
    again = talk.client("a", instance_id="i-a")
    talk.at(10_000)
    asked = talk.ask_join(again)
    talk.joined(asked, generation=4, leader=b, roster=[], member_id="a-2")
    talk.sync_all([again], leader=b)
    for _ in range(4):
        talk.wait(3_000)
        talk.heartbeat(again)
        talk.heartbeat(b)
    assert [kind for kind in talk.kinds() if kind.startswith("rebalance_")] == ["rebalance_began"]
    assert len({event.as_json()["id"] for event in talk.events}) == len(talk.events)

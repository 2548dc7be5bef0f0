"""Clients from Kafka 0.10 on: their JoinGroups begin a rebalance at once, and each library writes its subscription in its own way."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator_model import wire
from coordinator_model.events import State
from coordinator_model.finding import Severity
from tests.coordinator_model.conversation import Asked, Client
from tests.coordinator_model.groups.classic.old_clients import (
    MISLABELLED,
    TOPICS,
    labelled,
    rebalances,
    stands_still,
    written,
)
from tests.coordinator_model.groups.classic.timed import Timed

LAST_ONE_STEP_JOIN = 3
INCONSISTENT_GROUP_PROTOCOL, INVALID_SESSION_TIMEOUT, MEMBER_ID_REQUIRED = 23, 26, 79


@pytest.fixture
def talk() -> Timed:
    return Timed()


def joins(talk: Timed, client: Client, ms: float, version: int = LAST_ONE_STEP_JOIN) -> Asked:
    """An eager member sends its JoinGroup; a new one without a member id."""
    talk.at(ms)
    return talk.ask(client, talk.join_request(client), version=version)


def pair_of(talk: Timed, version: int = LAST_ONE_STEP_JOIN) -> list[Client]:
    """Two members in sync in generation 1, since 4,010 ms."""
    members = [talk.client("a"), talk.client("b")]
    rebalances(talk, [joins(talk, client, 1_000, version) for client in members], 1, 4_000)
    return members


def joins_anew(talk: Timed, client: Client, others: list[Client], generation: int, ms: float) -> None:
    """It joins a living group, whose members rejoin 2 s later."""
    new = joins(talk, client, ms)
    for other in others:
        talk.told_to_rejoin(other, ms + 1_900)
    rebalances(talk, [*(joins(talk, other, ms + 2_000) for other in others), new], generation, ms + 2_010)


def state_of(talk: Timed) -> State:
    return talk.model.groups.opened(("c1", talk.group))[0].state


def first(talk: Timed, kind: str, since: int) -> dict[str, Any]:
    return next(event.as_json() for event in talk.events[since:] if event.kind == kind)


# ------------------------------------------------------------------------------------------------ a JoinGroup before v4


@pytest.mark.parametrize("version", [1, 2, LAST_ONE_STEP_JOIN])
def test_a_JoinGroup_before_v4_begins_the_rebalance_at_once_and_names_its_client(talk: Timed, version: int) -> None:
    a, b = pair_of(talk, version)
    before = len(talk.events)
    c = talk.client("c")
    new = joins(talk, c, 10_000, version)
    assert state_of(talk) is State.PREPARING
    began = first(talk, "rebalance_began", before)
    assert (began["cause"], began["client_id"], began["at"]) == ("new member", "c", "2023-11-14T22:13:30.000000Z")
    for client in (a, b):
        talk.told_to_rejoin(client, 11_900)
    rebalances(talk, [joins(talk, a, 12_000, version), joins(talk, b, 13_900, version), new], 2, 13_980)
    record = talk.finished()
    assert (record["cause"], record["client_id"]) == ("new member", "c")
    assert (record["began_at"], record["join_ms"], record["took_ms"]) == (began["at"], 3_980, 3_990)


def test_a_JoinGroup_of_v4_without_an_id_begins_nothing(talk: Timed) -> None:
    pair_of(talk)
    new = joins(talk, talk.client("c"), 10_000, LAST_ONE_STEP_JOIN + 1)
    talk.refuse_join(new, MEMBER_ID_REQUIRED, "c-id")
    assert state_of(talk) is State.STABLE
    assert talk.kinds().count("rebalance_began") == 1


@pytest.mark.parametrize("error", [INCONSISTENT_GROUP_PROTOCOL, INVALID_SESSION_TIMEOUT])
def test_a_first_JoinGroup_that_is_refused_leaves_the_group_stable(talk: Timed, error: int) -> None:
    pair_of(talk)
    talk.refuse_join(joins(talk, talk.client("c"), 10_000), error)
    assert state_of(talk) is State.STABLE
    record = talk.finished()
    assert (record["ended"], record["to_generation"], record["cost_member_seconds"]) == ("members are served as before", None, 0.0)


def test_a_refused_JoinGroup_does_not_hide_one_that_waits(talk: Timed) -> None:
    pair_of(talk)
    refused = joins(talk, talk.client("c"), 10_000)
    joins(talk, talk.client("d"), 10_000)
    talk.refuse_join(refused, INCONSISTENT_GROUP_PROTOCOL)
    assert state_of(talk) is State.PREPARING


def test_R_07_names_a_client_of_before_v4_that_joins_and_leaves_again_and_again(talk: Timed) -> None:
    members = pair_of(talk)
    for times in range(6):
        ms = 10_000 + 10_000 * times
        visitor = talk.client("c")
        joins_anew(talk, visitor, members, 2 + 2 * times, ms)
        talk.at(ms + 6_000)
        talk.leave(visitor)
        for client in members:
            talk.told_to_rejoin(client, ms + 7_000)
        rebalances(talk, [joins(talk, client, ms + 7_100) for client in members], 3 + 2 * times, ms + 7_200)
    finding = talk.the("R-07")
    assert finding.severity is Severity.ERROR
    assert finding.client_id == "c"
    assert "Started by: new member (6), member left (5)" in finding.observed
    assert talk.rules() == ["R-07"]


# ------------------------------------------------------------------------------------------------ subscriptions with another version


@pytest.mark.parametrize("raw", MISLABELLED.values(), ids=MISLABELLED)
def test_what_there_is_of_a_subscription_is_read_whatever_version_it_names(raw: bytes) -> None:
    found = wire.read_consumer_subscription(raw)
    assert found is not None
    assert (found.topics, found.user_data, found.owned_partitions, found.generation_id) == (TOPICS, b"data", (), -1)


def test_the_partitions_that_a_member_owns_are_read_without_the_fields_after_them() -> None:
    found = wire.read_consumer_subscription(labelled(3, written(1, 4, 5)))
    assert found is not None
    assert [(entry.topic, entry.partitions) for entry in found.owned_partitions] == [("t", (4, 5))]


@pytest.mark.parametrize("raw", [b"", b"\x00\x01", b"\x00\x01\x00\x00\x00\x01\x00\x09t", written(0)[:-1]])
def test_a_subscription_without_its_topics_or_user_data_is_not_read(raw: bytes) -> None:
    assert wire.read_consumer_subscription(raw) is None


@pytest.mark.parametrize("raw", MISLABELLED.values(), ids=MISLABELLED)
def test_R_18_speaks_of_members_that_stopped_and_a_rebalance_costs_what_they_waited_whatever_version_they_name(raw: bytes) -> None:
    talk = stands_still(raw)
    record = talk.finished()
    assert record["cost_member_seconds"] > 80
    assert all(one["stopped_at"] for one in record["members"])
    assert talk.rules() == ["R-18"]
    assert (talk.the("R-18").member_id, talk.the("R-18").count) == ("a-id", 2)


# ------------------------------------------------------------------------------------------------ why a leader rejoins


def sticky(client: Client, data: bytes = b"", topics: tuple[str, ...] = ("t",)) -> dict[str, Any]:
    """What an old consumer offers whose assignor writes other user data in each join, as the sticky one does."""
    offer = wire.ConsumerProtocolSubscription(topics=topics, user_data=data)
    return {"protocols": (wire.JoinGroupRequestProtocol(name="range", metadata=wire.encode_subscription(offer, 0)),)}


class Growing(Timed):
    """Two old sticky consumers, whose leader is ``a``."""

    def __init__(self) -> None:
        super().__init__()
        self.members = [self.client("a"), self.client("b")]
        self.runs(1, 1_000, b"", {"a": (0, 1), "b": (2,)})

    def runs(self, generation: int, ms: float, data: bytes, given: dict[str, tuple[int, ...]], **offer: Any) -> None:
        """All join, the leader first, and are served."""
        asked = []
        for number, client in enumerate(self.members):
            self.at(ms + 100 * number)
            asked.append(self.ask(client, self.join_request(client, **sticky(client, data, **offer)), version=3))
        for client in self.members:
            client.member_id = client.member_id or f"{client.name}-id"
        self.completes(asked, generation, ms + 500)
        self.syncs(ms + 600, {client: (ms + 700, given[client.name]) for client in self.members})

    def causes(self) -> list[str]:
        return [event.as_json()["cause"] for event in self.events if event.kind == "rebalance_finished"]


def test_a_leader_of_before_v4_that_rejoins_did_not_change_its_subscription() -> None:
    talk = Growing()
    talk.runs(2, 10_000, b"2", {"a": (0, 1), "b": (2,)})
    assert talk.causes() == ["new member", "rejoined with the same topics"]


def test_a_leader_of_before_v4_with_other_topics_changed_its_subscription() -> None:
    talk = Growing()
    talk.runs(2, 10_000, b"2", {"a": (0, 1), "b": (2,)}, topics=("t", "u"))
    assert talk.causes() == ["new member", "subscription changed"]


def test_a_leader_that_was_not_seen_to_join_is_not_said_to_have_changed_its_subscription() -> None:
    talk = Growing()
    talk.lose()
    a, b = talk.members
    talk.at(5_000)
    talk.runs(2, 10_000, b"2", {"a": (0, 1), "b": (2,)})
    talk.members = [b, a]
    talk.runs(3, 20_000, b"3", {"a": (0, 1), "b": (2,)})
    assert "subscription changed" not in talk.causes()


def test_partitions_were_added_if_the_next_assignment_is_the_first_to_have_them() -> None:
    talk = Growing()
    talk.runs(2, 10_000, b"2", {"a": (0, 1, 4), "b": (2, 3)})
    talk.runs(3, 20_000, b"3", {"a": (0, 1, 2), "b": (3, 4)})
    assert talk.causes() == ["new member", "partitions were added", "rejoined with the same topics"]
    assert talk.finished()["client_id"] == "a"
    causes = talk.group_json()["rebalances"]
    assert causes == {"new member": 1, "partitions were added": 1, "rejoined with the same topics": 1}


def test_a_topic_was_deleted_if_the_leader_assigns_none_of_it_and_metadata_has_none() -> None:
    talk = Growing()
    talk.topics(t=0)
    talk.runs(2, 10_000, b"2", {"a": (), "b": ()})
    assert talk.causes() == ["new member", "a topic was deleted"]


def test_a_topic_that_is_back_after_a_generation_without_it_was_made_anew() -> None:
    talk = Growing()
    talk.topics(t=0)
    talk.runs(2, 10_000, b"2", {"a": (), "b": ()})
    talk.topics(t=3)
    talk.runs(3, 20_000, b"3", {"a": (0, 1), "b": (2,)})
    assert talk.causes() == ["new member", "a topic was deleted", "a topic was deleted and made anew"]


def test_a_topic_of_which_the_leader_assigns_none_need_not_be_deleted() -> None:
    talk = Growing()
    talk.topics(t=3)
    talk.runs(2, 10_000, b"2", {"a": (), "b": ()})
    assert "a topic was deleted" not in talk.causes()


def test_partitions_that_were_away_for_a_generation_were_not_added() -> None:
    talk = Growing()
    talk.runs(2, 10_000, b"2", {"a": (0, 1), "b": ()})
    talk.runs(3, 20_000, b"3", {"a": (0, 1), "b": (2,)})
    assert "partitions were added" not in talk.causes()


def test_partitions_that_a_new_member_s_assignment_has_first_did_not_cause_its_rebalance() -> None:
    talk = Growing()
    a, b = talk.members
    c = talk.client("c")
    talk.at(10_000)
    new = talk.ask(c, talk.join_request(c, **sticky(c)), version=3)
    asked = [talk.ask(one, talk.join_request(one, **sticky(one, b"2")), version=3) for one in (a, b)]
    c.member_id = "c-id"
    talk.completes([*asked, new], 2, 10_500)
    talk.syncs(10_600, {a: (10_700, (0, 1)), b: (10_700, (2,)), c: (10_700, (3,))})
    assert talk.causes() == ["new member", "new member"]


def test_R_07_does_not_count_the_times_at_which_partitions_were_added() -> None:
    talk = Growing()
    for number in range(6):
        talk.runs(2 + number, 10_000 * (1 + number), b"%d" % number, {"a": (0, 1), "b": tuple(range(2, 4 + number))})
    assert talk.causes()[1:] == ["partitions were added"] * 6
    assert talk.rules() == []


# ------------------------------------------------------------------------------------------------ who began it, and who went


def starters(talk: Timed) -> list[tuple[str, str | None, str | None]]:
    """Cause and client of the newest rebalance, when it began and when it was over."""
    told = [event.as_json() for event in talk.events if event.kind in {"rebalance_began", "rebalance_finished"}]
    return [(one["cause"], one["client_id"], one["member_id"]) for one in told[-2:]]


@pytest.mark.parametrize("version", [LAST_ONE_STEP_JOIN, 9])
def test_the_beginning_and_the_end_of_the_first_rebalance_name_the_same_client(talk: Timed, version: int) -> None:
    clients = [talk.client("a"), talk.client("b"), talk.client("c")]
    if version > LAST_ONE_STEP_JOIN:
        clients = [talk.has_id(client.name) for client in clients]
    rebalances(talk, [joins(talk, client, 1_000 + number, version) for number, client in enumerate(clients)], 1, 4_000)
    began, over = starters(talk)
    assert began == over
    assert began[:2] == ("new member", "a")


def test_the_beginning_and_the_end_of_a_rebalance_for_a_session_that_ended_name_the_same_client(talk: Timed) -> None:
    a, b = pair_of(talk)
    for ms in range(5_000, 21_000, 1_000):
        talk.at(ms)
        if ms < 14_000:
            talk.heartbeat(a)
        talk.tick()
    c = talk.client("c")
    new = joins(talk, c, 22_000)
    rebalances(talk, [joins(talk, a, 22_500), new], 2, 22_600)
    assert starters(talk) == [("session expired", "b", b.member_id)] * 2


def test_who_leaves_while_others_wait_for_it_is_not_said_to_have_been_dropped(talk: Timed) -> None:
    """Its LeaveGroup completes the join phase, and is answered after the JoinGroups that waited for it."""
    a, b = pair_of(talk)
    new = joins(talk, talk.client("c"), 10_000)
    again = joins(talk, a, 10_500)
    talk.at(12_000)
    leave = talk.ask(b, talk.leave_request(b))
    rebalances(talk, [again, new], 2, 12_005)
    talk.answer(leave, talk.left(b))
    record = talk.finished()
    assert record["never_came_back"] == []
    assert record["unheld"]["t"]["1"] == 0.015
    assert (talk.kinds().count("member_left"), talk.kinds().count("member_dropped")) == (1, 0)
    assert not talk.model.counters.evictions


def test_a_static_member_that_another_process_replaces_is_told(talk: Timed) -> None:
    a, b = talk.client("a", instance_id="i-a"), talk.client("b", instance_id="i-b")
    talk.round([a, b], 3)
    before, successor = b.member_id, talk.client("b", instance_id="i-b")
    asked = talk.ask_join(successor)
    talk.joined(asked, generation=3, leader=a, roster=[a, successor], member_id="i-b-new")
    (event,) = [event.as_json() for event in talk.events if event.kind == "member_replaced"]
    assert (event["member_id"], event["instance_id"], event["replaced_by"]) == (before, "i-b", "i-b-new")
    assert event["frame"] == {"partition": 0, "offset": talk.offset - 1}

"""Clients from Kafka 0.10 on: their JoinGroups begin a rebalance at once, and each library writes its subscription in its own way."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator_model.finding import Severity
from coordinator_model.groups.classic.state import State
from tests.coordinator_model.conversation import Asked, Client
from tests.coordinator_model.groups.classic.test_rebalance_events import Timed

LAST_ONE_STEP_JOIN = 3
INCONSISTENT_GROUP_PROTOCOL, INVALID_SESSION_TIMEOUT, MEMBER_ID_REQUIRED = 23, 26, 79


@pytest.fixture
def talk() -> Timed:
    return Timed()


def joins(talk: Timed, client: Client, ms: float, version: int = LAST_ONE_STEP_JOIN) -> Asked:
    """An eager member sends its JoinGroup; a new one without a member id."""
    talk.at(ms)
    return talk.ask(client, talk.join_request(client), version=version)


def rebalances(talk: Timed, asked: list[Asked], generation: int, ms: float) -> None:
    """The coordinator completes the join phase at ``ms``, and all members are served within 10 ms."""
    for one in asked:
        one.client.member_id = one.client.member_id or f"{one.client.name}-id-{generation}"
    talk.completes(asked, generation, ms)
    talk.syncs(ms + 5, {one.client: (ms + 10, (number,)) for number, one in enumerate(asked)})


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
    assert "started by: new member (6), member left (5)" in finding.observed
    assert talk.rules() == ["R-07"]

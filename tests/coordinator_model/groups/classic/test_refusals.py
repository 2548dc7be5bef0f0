"""Which refusals belong together: what makes a zombie is one answer, repeated, at one generation, with nothing missing in between."""

from __future__ import annotations

import pytest

from coordinator_model import wire
from tests.coordinator_model.classic import left_behind, live, replace, settled, static_group
from tests.coordinator_model.conversation import Client, Conversation


def follower(talk: Conversation, name: str) -> Client:
    """A client that was handed its member id before the capture began."""
    return talk.client(name, member_id=f"m-{name}")


# ---------------------------------------------------------------------------------------------------- across a hole


def refused_beside(talk: Conversation, client: Client, error: int, living: list[Client]) -> None:
    talk.heartbeat(client, error)
    for other in living:
        talk.heartbeat(other)
    talk.wait(6_000)


def test_refusals_of_a_generation_are_not_counted_across_a_hole(talk: Conversation) -> None:
    """The JoinGroup that came in between may be in it (false G-01)."""
    old = left_behind(talk)
    a, b = follower(talk, "a"), old.reconnected()
    a.member_id = talk.group_json()["members"][0]["member_id"]
    a.generation = b.generation = 4
    for _ in range(2):
        refused_beside(talk, old, 22, [a, b])
    talk.lose(4)
    talk.joined(talk.ask_join(a), generation=5, leader=a, roster=[a, b])
    talk.call(a, talk.sync_request(a, [a, b]), talk.synced())
    b.generation = 5
    refused_beside(talk, old, 22, [a, b])
    assert talk.settled_rules() == ["V-01"]


def test_refusals_of_a_member_are_not_counted_across_a_hole(talk: Conversation) -> None:
    """A failover that brought the member back for a while may be in it (false M-01)."""
    a, b = settled(talk)
    talk.round([a], 4)  # it did not rejoin in time
    for _ in range(2):
        refused_beside(talk, b, 25, [a])
    talk.lose(4)
    refused_beside(talk, b, 25, [a])
    assert talk.settled_rules() == ["V-01"]


def test_refusals_of_a_member_are_counted_where_nothing_is_missing(talk: Conversation) -> None:
    """The twin of the above."""
    a, b = settled(talk)
    talk.round([a], 4)
    for _ in range(3):
        refused_beside(talk, b, 25, [a])
    assert talk.settled_rules() == ["M-01"]


# ---------------------------------------------------------------------------------------------------- across generations


def test_refusals_at_one_generation_after_the_other_are_not_counted_together(talk: Conversation) -> None:
    """One for each rebalance, to a member whose JoinGroups go over a path that is not captured (false G-01)."""
    a, unseen = talk.client("a"), follower(talk, "unseen")
    talk.hand_out_id(a)
    for generation in (3, 4, 5, 6):
        talk.joined(talk.ask_join(a), generation=generation, leader=a, roster=[a, unseen])
        talk.call(a, talk.sync_request(a, [a, unseen]), talk.synced())
        if unseen.generation > 0:
            talk.heartbeat(unseen, 22)
        unseen.generation = generation
        live(talk, [a, unseen], 8)
    assert talk.settled_rules() == []


# ---------------------------------------------------------------------------------------------------- without a generation


def commits_in_vain(talk: Conversation, client: Client, error: int, living: list[Client]) -> None:
    for _ in range(4):
        talk.commit(client, error, generation_id_or_member_epoch=-1)
        live(talk, living, 5)
    talk.settle()


def test_a_member_that_commits_without_a_generation_is_no_zombie(talk: Conversation) -> None:
    """It also assigns partitions by hand: that such commits are refused says nothing of its generation (false G-01)."""
    a, b = settled(talk)
    live(talk, [a, b], 3)
    commits_in_vain(talk, b, 22, [a, b])
    assert talk.rules() == []


def test_a_former_member_that_commits_without_a_generation_is_no_zombie(talk: Conversation) -> None:
    """It says itself that it is in no generation (false M-01)."""
    a, b = settled(talk)
    live(talk, [a, b], 3)
    talk.leave(b)
    talk.heartbeat(a, 27)
    talk.round([a], 4)
    commits_in_vain(talk, b, 25, [a])
    assert talk.rules() == []


# ---------------------------------------------------------------------------------------------------- captured late


def test_a_refusal_captured_late_does_not_remove_a_member_that_was_served_since(talk: Conversation) -> None:
    """A broker up to 2.2 that hands the group over, and gets it back, says UNKNOWN_MEMBER_ID in between (false T-03)."""
    a, b = settled(talk)
    live(talk, [a, b], 4)
    asked = talk.ask(b, wire.HeartbeatRequest(group_id="g", generation_id=3, member_id=b.member_id), version=2)
    b = b.reconnected()
    live(talk, [a, b], 2)
    talk.answer(asked, wire.HeartbeatResponse(error_code=25))
    assert [(member["member_id"], member["state"]) for member in talk.group_json()["members"]] == [
        (a.member_id, "in sync"),
        (b.member_id, "in sync"),
    ]
    live(talk, [a, b], 3)
    assert talk.settled_rules() == []


def test_a_refusal_captured_in_time_removes_the_member(talk: Conversation) -> None:
    """The twin of the above."""
    a, b = settled(talk)
    live(talk, [a, b], 4)
    talk.heartbeat(b, 25, version=2)
    assert [member["member_id"] for member in talk.group_json()["members"]] == [a.member_id]
    assert talk.settled_rules() == ["T-03"]


# ---------------------------------------------------------------------------------------------------- over a failover


@pytest.mark.parametrize("seen_by", ["heartbeat", "commit"])
def test_a_holder_is_not_settled_any_more_once_the_coordinator_has_moved(talk: Conversation, seen_by: str) -> None:
    """Brokers before 2.6.1 forget a replacement when they load the group: who was replaced is entitled again (false S-03, O-02)."""
    leader, first = static_group(talk)
    live(talk, [leader, first], 2)
    second = replace(talk, leader, "two")
    live(talk, [leader, second], 2)
    leader, first = leader.reconnected("2"), first.reconnected("2")
    if seen_by == "heartbeat":
        talk.heartbeat(leader, 14)
    for _ in range(3):
        talk.commit(first)
        live(talk, [leader, first], 1)
    assert talk.rules() == []

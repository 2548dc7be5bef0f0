"""What an answer to a JoinGroup makes of the facts that were known before: who lives, who holds an instance, which generation is newer."""

from __future__ import annotations

import pytest

from coordinator_model.releases import first_release
from coordinator_model.wire.constants import HEARTBEAT, JOIN_GROUP, OFFSET_COMMIT, SYNC_GROUP
from tests.coordinator_model.classic import complete, live, settled, static_group
from tests.coordinator_model.conversation import Asked, Client, Conversation

OLD_JOIN, OLD_SYNC, OLD_HEARTBEAT, OLD_COMMIT = 5, 3, 3, 7
"""The versions of brokers 2.3: static members, and none of what tells a later release."""


def static(talk: Conversation, name: str) -> Client:
    return talk.client(name, instance_id="i")


# ---------------------------------------------------------------------------------------------------- who lives when a group begins again


def test_a_member_that_left_is_no_reason_against_a_group_that_begins_again(talk: Conversation) -> None:
    """Within the session that it had: a coordinator forgets an empty group that committed nothing at its next check of offsets."""
    a, b = settled(talk, generation=5)
    live(talk, [a, b], 3)
    talk.leave(a)
    talk.leave(b)
    talk.wait(3_000)
    c = talk.client("c")
    talk.round([c], 1)
    live(talk, [c], 3)
    assert talk.rules() == ["G-05"]
    assert "may have been empty in between" in talk.the("G-05").summary


def test_a_member_that_died_within_its_session_is_one(talk: Conversation) -> None:
    """The twin of the above: the coordinator cannot know yet that the member is gone."""
    a, b = settled(talk, generation=5)
    live(talk, [a, b], 3)
    talk.leave(a)
    talk.close(b)
    talk.wait(3_000)
    talk.round([talk.client("c")], 1)
    assert talk.settled_rules() == ["T-09", "G-04"]


@pytest.mark.parametrize("instance_id", [None, "i"])
def test_a_group_that_expired_and_begins_again_at_the_same_generation_is_another(
    talk: Conversation, instance_id: str | None
) -> None:
    """Its static member comes back under its instance id, after the session of the one before was over."""
    a, b = talk.client("a", instance_id=instance_id), talk.client("b")
    talk.round([a, b], 1)
    live(talk, [a, b], 3)
    talk.close(a)
    talk.close(b)
    talk.wait(25_000)
    again, other = talk.client("a", instance_id=instance_id), talk.client("c")
    talk.round([again, other], 1, leader=other)
    live(talk, [again, other], 3)
    assert not {"G-06", "O-06", "S-03"} & set(talk.settled_rules())


def named_by_a_follower(talk: Conversation, *, leader_lives: bool = True) -> tuple[Client, Client]:
    """A capture that begins while the members join: the answer to the leader's request is the answer to none, so its list is not known."""
    leader, follower = talk.client("a", member_id="a-1"), talk.client("b")
    asked = talk.ask_join(follower)
    follower.member_id = "b-1"
    talk.joined(asked, generation=1, leader=leader, roster=[])
    leader.generation = follower.generation = 1
    live(talk, [leader, follower] if leader_lives else [follower], 2)
    return leader, follower


@pytest.mark.parametrize("leader_lives", [True, False])
def test_a_group_of_which_not_all_are_known_and_that_begins_again_at_the_same_generation_is_another(
    talk: Conversation, *, leader_lives: bool
) -> None:
    """No life has two leaders of one generation; one has left, or was never seen, and the other's session may be over."""
    leader, follower = named_by_a_follower(talk, leader_lives=leader_lives)
    if leader_lives:
        talk.leave(leader)
    talk.close(follower)
    talk.wait(25_000)
    again, other = talk.client("a", instance_id=None if leader_lives else "i"), talk.client("c")
    talk.round([again, other], 1, leader=other)
    live(talk, [again, other], 3)
    assert not {"G-06", "O-06", "S-03"} & set(talk.settled_rules())
    assert "began again at generation 1" in talk.the("G-05").summary


def assert_its_static_leader_begins_another(talk: Conversation) -> None:
    """It is answered before the member that joins with it."""
    again, other = talk.client("a", instance_id="i"), talk.client("c")
    talk.round([again, other], 1, leader=again)
    live(talk, [again, other], 3)
    assert not {"G-06", "O-06", "S-03"} & set(talk.settled_rules())
    assert "began again at generation 1" in talk.the("G-05").summary


def test_a_group_is_another_whose_static_leader_is_answered_first_after_the_end_of_its_session(talk: Conversation) -> None:
    """It takes no place over within that generation: nobody held its instance id any more."""
    leader, follower = named_by_a_follower(talk)
    leader.instance_id = "i"
    live(talk, [leader, follower], 1)
    successor = talk.client("a", instance_id="i")
    talk.joined(talk.ask_join(successor), generation=1, leader=leader, roster=[], member_id="a-2")
    live(talk, [successor, follower], 1)
    talk.close(follower)
    talk.wait(25_000)
    assert_its_static_leader_begins_another(talk)


def test_a_group_is_another_whose_static_leader_is_answered_with_a_member_that_has_a_newer_id(talk: Conversation) -> None:
    """When the session of the leader before ends is not known: its join was not captured."""
    leader, follower = named_by_a_follower(talk)
    leader.instance_id = "i"
    live(talk, [leader, follower], 1)
    talk.leave(follower)
    talk.wait(25_000)
    assert_its_static_leader_begins_another(talk)


def test_a_second_leader_beside_a_member_that_lives_is_none_of_another_life(talk: Conversation) -> None:
    """The follower is still served while another client is told that it leads."""
    leader, follower = named_by_a_follower(talk)
    talk.leave(leader)
    talk.wait(25_000)
    live(talk, [follower], 3)
    other = talk.client("c")
    talk.round([other], 1)
    assert "G-06" in talk.settled_rules()


# ---------------------------------------------------------------------------------------------------- overlaps, and clocks that differ


def overlapping(talk: Conversation, behind_ms: int) -> None:
    """A success at generation 6 to a request that is captured so long after generation 7 was, by another clock."""
    a, b = settled(talk, generation=5)
    live(talk, [a, b], 3)
    talk.joined(talk.ask_join(a), generation=7, leader=a, roster=[a, b])
    talk.now_us += behind_ms * 1_000
    talk.joined(talk.ask_join(b.reconnected()), generation=6, leader=a, roster=[])
    talk.settle()


def test_an_answer_that_overlaps_the_newest_generation_by_the_clock_skew_is_no_fall() -> None:
    talk = Conversation(clock_skew_ms=50)
    overlapping(talk, behind_ms=40)
    assert talk.rules() == []


def test_an_answer_beyond_the_clock_skew_is_a_fall() -> None:
    talk = Conversation(clock_skew_ms=50)
    overlapping(talk, behind_ms=60)
    assert talk.rules() == ["G-04"]


# ---------------------------------------------------------------------------------------------------- who holds an instance


def takes_over_in_a_round(talk: Conversation, leader: Client) -> Client:
    """A second process asks for the instance while the leader rejoins, and both are handed the next generation, which nobody syncs."""
    second = static(talk, "two")
    asked = [talk.ask_join(leader), talk.ask_join(second)]
    second.member_id = "i-two"
    complete(talk, asked, 4, leader, [leader, second])
    talk.settle()
    return second


def restarts_unseen(talk: Conversation, clients: list[Client]) -> list[Client]:
    """The coordinator ends, all connections with it, and is back a second later."""
    for client in clients:
        talk.close(client)
    talk.wait(1_000)
    return [client.reconnected() for client in clients]


def test_a_replacement_that_was_never_written_leaves_the_one_before_entitled(talk: Conversation) -> None:
    """What settled the holder before says nothing of its successor: the log still names the former (false S-03, O-02)."""
    leader, first = static_group(talk)
    live(talk, [leader, first], 2)
    second = takes_over_in_a_round(talk, leader)
    leader, first, _ = restarts_unseen(talk, [leader, first, second])
    leader.generation = 3
    for _ in range(3):
        talk.commit(first)
        live(talk, [leader, first], 1)
    assert talk.rules() == []


def test_a_replacement_that_its_own_round_wrote_leaves_the_one_before_outside(talk: Conversation) -> None:
    """The twin of the above: the next leader's SyncGroup writes who holds the instance."""
    leader, first = static_group(talk)
    live(talk, [leader, first], 2)
    second = takes_over_in_a_round(talk, leader)
    talk.sync_all([leader, second])
    leader, first, _ = restarts_unseen(talk, [leader, first, second])
    live(talk, [leader], 1)
    first.generation = 4
    talk.commit(first)
    assert talk.settled_rules() == ["S-03", "O-02"]


def test_a_holder_that_only_the_leader_s_list_names_is_not_settled_by_the_one_before(talk: Conversation) -> None:
    """Its own JoinGroup was on a path that is not captured."""
    leader, first = static_group(talk)
    live(talk, [leader, first], 2)
    unseen = static(talk, "two")
    unseen.member_id = "i-two"
    talk.joined(talk.ask_join(leader), generation=4, leader=leader, roster=[leader, unseen])
    talk.settle()
    leader, first = restarts_unseen(talk, [leader, first])
    leader.generation = 3
    for _ in range(3):
        talk.commit(first)
        live(talk, [leader, first], 1)
    assert talk.rules() == []


def ask_old_join(talk: Conversation, client: Client, **fields: object) -> Asked:
    return talk.ask(client, talk.join_request(client, **fields), version=OLD_JOIN)


def old_sync(talk: Conversation, client: Client, roster: list[Client]) -> None:
    talk.call(client, talk.sync_request(client, roster), talk.synced(), version=OLD_SYNC)


def old_static_group(talk: Conversation) -> tuple[Client, Client]:
    """As ``static_group``, on a broker of which nothing shows that it is newer than 2.3."""
    leader, first = talk.client("lead"), static(talk, "one")
    talk.refuse_join(ask_old_join(talk, leader), 79, "lead-1")
    leader.member_id = "lead-1"
    asked = [ask_old_join(talk, leader), ask_old_join(talk, first)]
    first.member_id = "i-one"
    complete(talk, asked, 3, leader, [leader, first])
    old_sync(talk, leader, [leader, first])
    old_sync(talk, first, [])
    return leader, first


def old_life(talk: Conversation, clients: list[Client], seconds: int) -> None:
    for _ in range(seconds):
        for client in clients:
            talk.heartbeat(client, version=OLD_HEARTBEAT)
        talk.wait(1_000)


def old_commit(talk: Conversation, client: Client) -> None:
    talk.call(client, talk.commit_request(client, {0: 5}), talk.committed({0: 0}), version=OLD_COMMIT)


def replaced_within_the_generation(talk: Conversation, leader: Client) -> Client:
    second = static(talk, "two")
    asked = ask_old_join(talk, second)
    second.member_id, second.generation = "i-two", 3
    talk.joined(asked, generation=3, leader=leader, roster=[])
    old_sync(talk, second, [])
    old_life(talk, [leader, second], 2)
    return second


def test_a_replacement_that_an_old_broker_forgot_over_a_restart_is_undone(talk: Conversation) -> None:
    """Brokers before 2.6.1 do not write a replacement within a generation (KAFKA-10284): false S-03, O-02 after an unseen restart."""
    leader, first = old_static_group(talk)
    old_life(talk, [leader, first], 2)
    second = replaced_within_the_generation(talk, leader)
    leader, first, _ = restarts_unseen(talk, [leader, first, second])
    for _ in range(3):
        old_commit(talk, first)
        old_life(talk, [leader, first], 1)
    assert talk.rules() == []


def test_a_replacement_on_an_old_broker_is_certain_once_a_later_round_wrote_it(talk: Conversation) -> None:
    leader, first = old_static_group(talk)
    second = replaced_within_the_generation(talk, leader)
    asked = [ask_old_join(talk, leader), ask_old_join(talk, second)]
    complete(talk, asked, 4, leader, [leader, second])
    old_sync(talk, leader, [leader, second])
    old_sync(talk, second, [])
    old_life(talk, [leader, second], 1)
    leader, first, _ = restarts_unseen(talk, [leader, first, second])
    old_life(talk, [leader], 1)
    first.generation = 4
    old_commit(talk, first)
    assert talk.settled_rules() == ["S-03", "O-02"]


def test_a_replacement_within_a_generation_is_certain_where_the_broker_is_known_to_write_it(talk: Conversation) -> None:
    """JoinGroup v9 shows a broker since 3.2."""
    leader, first = static_group(talk)
    second = static(talk, "two")
    talk.joined(talk.ask_join(second), generation=3, leader=leader, roster=[], member_id="i-two")
    talk.call(second, talk.sync_request(second, []), talk.synced())
    leader, first, _ = restarts_unseen(talk, [leader, first, second])
    live(talk, [leader], 1)
    talk.commit(first)
    assert talk.settled_rules() == ["S-03", "O-02"]


def test_the_versions_that_these_tests_call_old_are() -> None:
    """None of them tells a release that writes replacements."""
    spoken = {JOIN_GROUP: OLD_JOIN, SYNC_GROUP: OLD_SYNC, HEARTBEAT: OLD_HEARTBEAT, OFFSET_COMMIT: OLD_COMMIT}
    assert {first_release(*pair) for pair in spoken.items()} == {(2, 3)}

"""What is known of a classic group where frames are missing, late, or tell of members that nobody has seen."""

from __future__ import annotations

import pytest

from coordinator_model import wire
from coordinator_model.events import State
from coordinator_model.finding import Status
from coordinator_model.groups.classic.group import ClassicGroup
from coordinator_model.groups.classic.state import SHOWN, WITH_MEMBERS, Observation, after
from coordinator_model.wire.record import Kind
from tests.coordinator_model.classic import live, settled, static_group, told_to_rejoin, zombie
from tests.coordinator_model.conversation import SUBSCRIBED, Asked, Client, Conversation


def group_of(talk: Conversation) -> ClassicGroup:
    group, _ = talk.model.groups.opened(("c1", talk.group))
    assert isinstance(group, ClassicGroup)
    return group


def follower(talk: Conversation, name: str) -> Client:
    """A client that was handed its member id before the capture began."""
    return talk.client(name, member_id=f"m-{name}")


def leader_told(talk: Conversation, asked: Asked, generation: int, roster: dict[str, str | None]) -> None:
    """The leader's answer, with members of whom nothing else may have been seen. ``roster``: member id → instance id."""
    client = asked.client
    client.generation = generation
    members = tuple(
        wire.JoinGroupResponseMember(member_id=id_, group_instance_id=instance_id, metadata=SUBSCRIBED)
        for id_, instance_id in roster.items()
    )
    talk.answer(
        asked,
        wire.JoinGroupResponse(
            generation_id=generation,
            protocol_type="consumer",
            protocol_name="range",
            leader=client.member_id,
            member_id=client.member_id,
            members=members,
        ),
    )


def test_an_answer_that_cannot_be_read_ends_its_request_all_the_same(talk: Conversation) -> None:
    a, _ = settled(talk)
    asked = talk.ask_join(a)
    talk._feed(Kind.RESPONSE, asked, b"\xff")
    group = group_of(talk)
    assert group.open == {}
    assert group.connections[a.connection].outstanding == 0
    talk.wait(120_000)
    assert "R-01" not in talk.rules()  # nobody waits any more


def test_a_refusal_of_nobody_is_no_members(talk: Conversation) -> None:
    settled(talk)
    known = set(group_of(talk).members)
    stranger = talk.client("stranger", generation=3)
    zombie(talk, stranger, 25)
    assert set(group_of(talk).members) == known
    assert talk.rules() == ["T-04"]  # of those that fell silent meanwhile, and of nobody else


def test_a_generation_that_falls_is_allowed_where_the_members_before_are_not_known(talk: Conversation) -> None:
    leader, b, c = (follower(talk, name) for name in ("leader", "b", "c"))
    talk.joined(talk.ask_join(b), generation=5, leader=leader, roster=[])
    talk.call(b, talk.sync_request(b, []), talk.synced())
    talk.wait(1_000)
    talk.joined(talk.ask_join(c), generation=3, leader=leader, roster=[])
    assert talk.settled_rules() == ["G-05"]
    assert "not all members of the earlier generation are known" in talk.the("G-05").summary


def test_a_generation_that_falls_is_allowed_where_a_members_session_timeout_is_not_known(talk: Conversation) -> None:
    leader, c = follower(talk, "leader"), follower(talk, "c")
    leader_told(talk, talk.ask_join(leader), 5, {"never-seen": None, leader.member_id: None})
    talk.call(leader, talk.sync_request(leader, [leader]), talk.synced())
    talk.wait(1_000)
    talk.joined(talk.ask_join(c), generation=3, leader=c, roster=[c])
    assert talk.settled_rules() == ["G-05"]
    assert "not all session timeouts are known" in talk.the("G-05").summary


def test_a_generation_that_falls_for_a_newcomer_while_a_member_is_alive_is_a_breach(talk: Conversation) -> None:
    a, b = settled(talk, generation=5)
    live(talk, [a, b], 2)
    talk.round([talk.client("c")], 3)
    assert "G-04" in talk.settled_rules()
    assert talk.rules() == ["G-04"]


def test_a_member_thought_gone_is_back_when_the_leader_is_told_of_it(talk: Conversation) -> None:
    a, b = settled(talk)
    live(talk, [a], 20)
    assert group_of(talk).members[b.member_id].removed == "silent"
    leader_told(talk, talk.ask_join(a), 4, {a.member_id: None, b.member_id: None})
    assert group_of(talk).members[b.member_id].removed is None
    assert {member["client_id"] for member in talk.group_json()["members"]} == {"a", "b"}


def test_a_list_of_members_captured_after_a_replacement_does_not_undo_it(talk: Conversation) -> None:
    a, b = static_group(talk, ("a", "b"))
    old_id = b.member_id
    leaders, others = talk.ask_join(a), talk.ask_join(b)
    talk.joined(others, generation=4, leader=a, roster=[])
    successor = b.reconnected()
    successor.member_id = ""
    talk.joined(talk.ask_join(successor), generation=4, leader=a, roster=[], member_id="m-new")
    leader_told(talk, leaders, 4, {a.member_id: None, old_id: "i"})  # made before the replacement, captured after it
    group = group_of(talk)
    assert group.instances["i"].member_id == "m-new"
    assert group.newest_generation is not None
    assert group.newest_generation.roster is not None
    assert group.newest_generation.roster["m-new"] == "i"
    live(talk, [a, successor], 3)
    assert talk.settled_rules() == []


def test_a_success_after_being_told_to_rejoin_takes_the_request_back(talk: Conversation) -> None:
    a, b = settled(talk)
    told_to_rejoin(talk, b, 12)
    assert talk.the("R-08").status is not Status.RESOLVED
    live(talk, [a, b], 2)
    assert group_of(talk).members[b.member_id].rejoin_asked_us is None
    assert talk.the("R-08").status is Status.RESOLVED


def test_a_skipped_generation_is_judged_by_the_members_of_whom_enough_is_known(talk: Conversation) -> None:
    a = follower(talk, "a")
    leader_told(talk, talk.ask_join(a), 3, {"never-seen": None, a.member_id: None})
    talk.call(a, talk.sync_request(a, [a]), talk.synced())
    c = follower(talk, "c")
    asked = talk.ask_join(c)
    talk.heartbeat(a)
    talk.joined(asked, generation=5, leader=a, roster=[])
    talk.settle()
    talk.wait(1_000)
    assert "G-08" in talk.rules()


@pytest.mark.parametrize("error", [14, 15, 16])
def test_a_join_under_way_when_its_group_was_deleted_may_be_refused_by_a_coordinator_that_moves(
    talk: Conversation, error: int
) -> None:
    """The model raised a KeyError: the deletion had removed the member."""
    a, _ = settled(talk)
    asked = talk.ask_join(a)
    talk.delete()
    talk.refuse_join(asked, error, a.member_id)
    assert talk.settled_rules() == []
    assert talk.group_json()["members"] == []


def test_a_heartbeat_that_another_broker_accepts_is_a_failover(talk: Conversation) -> None:
    a, b = settled(talk)
    live(talk, [a, b], 3)
    before = group_of(talk).incarnation
    talk.heartbeat(a.reconnected("2"))
    assert (group_of(talk).incarnation, group_of(talk).broker) == (before + 1, "2")


def test_a_generation_is_written_at_its_first_sync_and_not_again_at_each(talk: Conversation) -> None:
    """All connections ended in between: only what was written by then is certain to have survived."""
    a, b = settled(talk)
    talk.round([a, b], 4)
    for client in (a, b):
        talk.close(client)
    talk.wait(2_000)
    a, b = a.reconnected(), b.reconnected()
    stale = talk.ask(a, wire.HeartbeatRequest(group_id="g", generation_id=3, member_id=a.member_id))
    talk.wait(1_000)
    talk.call(b, talk.sync_request(b, []), talk.synced())
    talk.answer(stale, wire.HeartbeatResponse())
    talk.wait(1_000)
    assert talk.rules() == ["G-02"]


def test_nobody_is_a_member_of_a_group_that_was_deleted(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.delete()
    assert [member.id for member in group_of(talk).present_members()] == []
    for client in (a, b):
        talk.heartbeat(client, 25)
    talk.wait(30_000)
    assert talk.rules() == ["E-24"]  # not T-03 of each


def refused(talk: Conversation, client: Client, error: int, times: int, generation: int | None = None) -> None:
    for _ in range(times):
        talk.heartbeat(client, error, generation=generation)
        talk.wait(3_500)


def test_refusals_before_a_hole_do_not_count_with_those_behind_it(talk: Conversation) -> None:
    _, b = settled(talk)
    refused(talk, b, 25, 3)
    talk.lose()
    refused(talk, b, 25, 2)
    assert talk.rules() == ["T-03", "V-01"]


def test_refusals_at_one_generation_do_not_count_with_those_at_another(talk: Conversation) -> None:
    a, b = settled(talk)
    for generation in (4, 5):
        talk.round([a], generation)
    refused(talk, b, 22, 2, generation=3)
    refused(talk, b, 22, 2, generation=4)
    assert talk.rules() == ["T-04"]
    refused(talk, b, 22, 3, generation=4)
    assert "G-01" in talk.rules()


def test_refused_commits_of_no_generation_are_no_refusals_of_the_member(talk: Conversation) -> None:
    _, b = settled(talk)
    for _ in range(5):
        talk.commit(b, 25, generation_id_or_member_epoch=-1)
        talk.wait(3_500)
    assert group_of(talk).members[b.member_id].refusals is None


def test_a_refusal_that_is_captured_late_removes_nobody_who_was_accepted_since(talk: Conversation) -> None:
    _, b = settled(talk)
    asked = talk.ask(b, wire.HeartbeatRequest(group_id="g", generation_id=3, member_id=b.member_id))
    talk.wait(1_000)
    talk.commit(b.reconnected())
    talk.answer(asked, wire.HeartbeatResponse(error_code=25))
    assert group_of(talk).members[b.member_id].present


def test_who_holds_an_instance_is_settled_by_a_sync_and_unsettled_by_a_replacement_and_a_failover(talk: Conversation) -> None:
    """The log knows the holder from its sync on; what is only in the coordinator's memory may be gone after a failover."""
    leader, first = static_group(talk)
    group = group_of(talk)
    instance = group.instances[first.instance_id or ""]
    assert instance.settled_us
    again = talk.client("again", instance_id=first.instance_id)
    asked = talk.ask_join(again)
    again.member_id = "again-1"
    talk.joined(asked, generation=leader.generation, leader=leader, roster=[])
    assert (instance.member_id, instance.settled_us) == ("again-1", 0)
    talk.call(again, talk.sync_request(again, []), talk.synced())
    assert instance.settled_us
    talk.heartbeat(leader, 16)
    assert instance.settled_us == 0


def test_an_answer_shows_the_states_in_which_the_table_gives_it() -> None:
    assert SHOWN[Observation.HEARTBEAT_OK] == (State.COMPLETING, State.STABLE)
    assert SHOWN[Observation.SYNCED] == (State.STABLE,)
    assert SHOWN[Observation.TOLD_TO_REJOIN] == (State.PREPARING,)
    assert {State.PREPARING, State.COMPLETING, State.STABLE} == WITH_MEMBERS


@pytest.mark.parametrize("state", State)
def test_a_join_phase_outlasts_what_may_be_captured_late(state: State) -> None:
    joins = state is State.PREPARING
    assert after(state, Observation.HEARTBEAT_OK) is (
        State.PREPARING if joins else State.COMPLETING if state is State.COMPLETING else State.STABLE
    )
    assert after(state, Observation.SYNCED) is (State.PREPARING if joins else State.STABLE)
    assert after(state, Observation.JOINED) is State.COMPLETING


@pytest.mark.parametrize(
    ("seen", "then"), [(Observation.MEMBER_GONE, State.PREPARING), (Observation.LAST_MEMBER_GONE, State.EMPTY)]
)
def test_a_group_moves_when_a_member_goes_only_if_it_has_members(seen: Observation, then: State) -> None:
    assert {state: after(state, seen) for state in State} == {state: then if state in WITH_MEMBERS else state for state in State}

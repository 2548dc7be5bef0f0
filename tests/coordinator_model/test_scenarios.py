"""The scenarios of the coordinator's own test suite, and some that it lacks, as frames: what the model makes of each.

Each is lawful, so it asserts, besides what it is about, that no error was found; where a scenario is a fault of a client, the rule for it
is demanded. ``test_epoch_scenarios.py`` has those of the newer protocols.
"""

from __future__ import annotations

from typing import Any

import pytest

from coordinator_model import wire
from coordinator_model.finding import Severity
from tests.coordinator_model.classic import beat, complete, completing_rebalance, live, settled, told_to_rejoin
from tests.coordinator_model.conversation import Client, Conversation
from tests.coordinator_model.rules.coordinators import fail_over

SUBSCRIBED_TO_MORE = wire.encode_subscription(wire.ConsumerProtocolSubscription(topics=("t", "u")), version=1)


def no_errors(talk: Conversation) -> None:
    talk.settle()
    assert [finding.summary for finding in talk.findings if finding.severity.rank >= Severity.ERROR.rank] == []


def silent(talk: Conversation) -> None:
    talk.settle()
    assert [finding.summary for finding in talk.findings] == []


def state(talk: Conversation) -> str:
    value: str = talk.group_json()["state"]
    return value


def members(talk: Conversation) -> set[str]:
    return {member["member_id"] for member in talk.group_json()["members"]}


def stable(talk: Conversation, *names: str, generation: int = 1, static: tuple[str, ...] = ()) -> list[Client]:
    clients = [talk.client(name) for name in names]
    for client in clients:
        client.instance_id = f"i-{client.name}" if client.name in static else None
    talk.round(clients, generation)
    return clients


def replacement(
    talk: Conversation,
    name: str,
    leader: Client,
    generation: int,
    *,
    version: int = 9,
    beside: tuple[Client, ...] = (),
    **fields: Any,
) -> Client:
    """A restarted static member takes its instance over, without a rebalance; ``beside`` the other members if it is told that it leads."""
    client = talk.client(name, instance_id=f"i-{name}")
    asked = talk.ask(client, talk.join_request(client, **fields), version=version)
    client.member_id = f"i-{name}-{client.connection}"
    client.generation = generation
    reply = wire.JoinGroupResponse(
        error_code=0,
        generation_id=generation,
        protocol_type="consumer",
        protocol_name="range",
        leader=client.member_id if beside else leader.member_id,
        member_id=client.member_id,
        skip_assignment=bool(beside),
        members=tuple(
            wire.JoinGroupResponseMember(member_id=one.member_id, group_instance_id=one.instance_id)
            for one in ((client, *beside) if beside else ())
        ),
    )
    talk.answer(asked, reply)
    return client


def refused_sync(talk: Conversation, client: Client, error: int, **fields: Any) -> None:
    talk.call(client, talk.sync_request(client, [], **fields), talk.synced(error))


def test_lawful_life_is_silent(talk: Conversation) -> None:
    a, b = settled(talk, generation=1)
    live(talk, [a, b], 30)
    c = talk.client("c")
    talk.hand_out_id(c)
    newcomer = talk.ask_join(c)
    talk.heartbeat(a, 27)
    talk.heartbeat(b, 27)
    again = [talk.ask_join(a), talk.ask_join(b)]
    complete(talk, (*again, newcomer), 2, a, [a, b, c])
    talk.sync_all([a, b, c])
    live(talk, [a, b, c], 30)
    talk.leave(c)
    talk.heartbeat(a, 27)
    talk.heartbeat(b, 27)
    talk.round([a, b], 3)
    live(talk, [a, b], 30)
    talk.leave(a)
    talk.heartbeat(b, 27)
    talk.round([b], 4)
    talk.leave(b)
    talk.wait(120_000)
    assert talk.findings == []
    assert talk.group_json()["state"] == "Empty"


# ---------------------------------------------------------------------------------------------------- join basics


def test_the_first_join_creates_the_group_and_waits_for_the_initial_delay(talk: Conversation) -> None:
    a = talk.client("a")
    talk.hand_out_id(a)
    asked = talk.ask_join(a)
    talk.wait(2_900)
    assert state(talk) == "PreparingRebalance"
    talk.joined(asked, generation=1, leader=a, roster=[a])
    assert state(talk) == "CompletingRebalance"
    assert talk.group_json()["generation"] == 1
    silent(talk)


def test_a_foreign_id_is_unknown_to_an_existing_group(talk: Conversation) -> None:
    a, b = stable(talk, "a", "b")
    stranger = talk.client("s", member_id="not-of-this-group")
    talk.refuse_join(talk.ask_join(stranger), 25, stranger.member_id)
    assert members(talk) == {a.member_id, b.member_id}
    no_errors(talk)


def test_an_unknown_consumer_meets_a_dead_group(talk: Conversation) -> None:
    talk.refuse_join(talk.ask_join(talk.client("a")), 15)
    no_errors(talk)


def test_a_known_member_meets_a_dead_group(talk: Conversation) -> None:
    a, _ = stable(talk, "a", "b")
    talk.refuse_join(talk.ask_join(a), 15, a.member_id)
    assert talk.group_json()["learning"] is not None
    no_errors(talk)


def test_another_protocol_type_is_refused(talk: Conversation) -> None:
    a, b = stable(talk, "a", "b")
    other = talk.client("connect")
    talk.refuse_join(talk.ask_join(other, protocol_type="connect"), 23)
    assert members(talk) == {a.member_id, b.member_id}
    no_errors(talk)


def test_no_common_protocol_is_refused(talk: Conversation) -> None:
    stable(talk, "a", "b")
    other = talk.client("c")
    offers = (wire.JoinGroupRequestProtocol(name="sticky", metadata=b""),)
    talk.refuse_join(talk.ask_join(other, protocols=offers), 23)
    assert state(talk) == "Stable"
    no_errors(talk)


@pytest.mark.parametrize("fields", [{"protocol_type": ""}, {"protocols": ()}], ids=["type", "list"])
def test_an_empty_protocol_type_or_list_is_refused_in_an_empty_group(talk: Conversation, fields: dict[str, Any]) -> None:
    talk.refuse_join(talk.ask_join(talk.client("a"), **fields), 23)
    assert members(talk) == set()
    no_errors(talk)


def test_the_answer_names_the_protocol_type(talk: Conversation) -> None:
    stable(talk, "a")
    assert talk.group_json()["protocol_type"] == "consumer"
    assert talk.group_json()["protocol"] == "range"
    silent(talk)


def test_an_error_names_no_protocol_type(talk: Conversation) -> None:
    a = talk.client("a")
    reply = wire.JoinGroupResponse(
        error_code=25, generation_id=-1, protocol_type=None, protocol_name=None, leader="", member_id="x"
    )
    a.member_id = "x"
    talk.call(a, talk.join_request(a), reply)
    no_errors(talk)


def test_an_issued_id_that_is_not_used_expires(talk: Conversation) -> None:
    a, b = stable(talk, "a", "b")
    late = talk.client("late")
    talk.hand_out_id(late)
    beat(talk, [a, b], 11)
    talk.refuse_join(talk.ask_join(late), 25, late.member_id)
    assert members(talk) == {a.member_id, b.member_id}
    no_errors(talk)


def test_a_waiting_new_member_is_removed_and_the_group_becomes_empty(talk: Conversation) -> None:
    a = talk.client("a")
    talk.hand_out_id(a)
    asked = talk.ask_join(a, rebalance_timeout_ms=400_000)
    talk.wait(300_000)
    talk.refuse_join(asked, 25)
    assert members(talk) == set()
    no_errors(talk)


def test_a_new_member_waits_five_minutes_at_most(talk: Conversation) -> None:
    a, b = stable(talk, "a", "b", generation=2)
    newcomer = talk.client("new")
    talk.hand_out_id(newcomer)
    asked = talk.ask_join(newcomer, rebalance_timeout_ms=600_000)
    beat(talk, [a], 300, 27)
    talk.refuse_join(asked, 25)
    assert newcomer.member_id not in members(talk)
    assert b.member_id not in talk.group_json()["waits_for"]


def test_completion_cancels_the_new_members_timer(talk: Conversation) -> None:
    a, b = stable(talk, "a", "b")
    talk.join_all([a, b, talk.client("c")], 2)
    assert len(members(talk)) == 3
    silent(talk)


def test_after_completion_a_new_member_has_its_own_session(talk: Conversation) -> None:
    a, b = talk.client("a"), talk.client("b")
    talk.round([a, b], 1)
    beat(talk, [a], 14)
    assert "T-04" in talk.rules()
    assert members(talk) == {a.member_id}
    no_errors(talk)


def test_an_issued_id_used_with_an_instance_id_is_an_internal_error(talk: Conversation) -> None:
    a = talk.client("a")
    talk.hand_out_id(a)
    talk.refuse_join(talk.ask_join(a, group_instance_id="i"), -1, a.member_id)
    talk.settle()
    assert {finding.rule for finding in talk.findings} <= {"C-08"}
    assert members(talk) == set()


def test_each_rebalance_increments_the_generation(talk: Conversation) -> None:
    clients = stable(talk, "a", "b")
    for generation in range(2, 8):
        talk.round(clients, generation)
        assert talk.group_json()["generation"] == generation
    no_errors(talk)


# ---------------------------------------------------------------------------------------------------- initial delay


@pytest.mark.parametrize("waits_ms", [3_000, 6_000, 19_000])
def test_the_first_phase_waits_for_more_members_up_to_the_rebalance_timeout(talk: Conversation, waits_ms: int) -> None:
    a, b = talk.client("a"), talk.client("b")
    talk.hand_out_id(a)
    first = talk.ask_join(a)
    talk.wait(waits_ms / 2)
    talk.hand_out_id(b)
    second = talk.ask_join(b)
    talk.wait(waits_ms / 2)
    complete(talk, (first, second), 1, a, [a, b])
    talk.sync_all([a, b])
    assert state(talk) == "Stable"
    no_errors(talk)


# ---------------------------------------------------------------------------------------------------- rejoin rules


def test_an_unchanged_follower_does_not_rebalance(talk: Conversation) -> None:
    a, b = stable(talk, "a", "b", generation=4)
    talk.joined(talk.ask_join(b), generation=4, leader=a, roster=[])
    assert state(talk) == "Stable"
    assert talk.group_json()["generation"] == 4
    silent(talk)


def test_an_unchanged_leader_rebalances(talk: Conversation) -> None:
    a, b = stable(talk, "a", "b", generation=4)
    asked = talk.ask_join(a)
    assert state(talk) == "PreparingRebalance"
    talk.heartbeat(b, 27)
    again = talk.ask_join(b)
    complete(talk, (asked, again), 5, a, [a, b])
    assert talk.group_json()["rebalances"]["leader rejoined"] == 1
    silent(talk)


@pytest.mark.parametrize("synced", [False, True], ids=["completing", "stable"])
def test_a_changed_subscription_rebalances(talk: Conversation, *, synced: bool) -> None:
    a, b = completing_rebalance(talk)
    parked = None
    if synced:
        talk.sync_all([a, b])
    else:
        parked = talk.ask(a, talk.sync_request(a, [a, b]))
    changed = talk.ask_join(b, protocols=(wire.JoinGroupRequestProtocol(name="range", metadata=SUBSCRIBED_TO_MORE),))
    assert state(talk) == "PreparingRebalance"
    if parked is not None:
        talk.answer(parked, talk.synced(27))
    else:
        talk.heartbeat(a, 27)
    again = talk.ask_join(a)
    complete(talk, (changed, again), 4, a, [a, b])
    talk.sync_all([a, b])
    assert talk.group_json()["generation"] == 4
    no_errors(talk)


def test_an_existing_member_does_not_trigger_in_a_stable_group(talk: Conversation) -> None:
    a, b = stable(talk, "a", "b", generation=4)
    other = b.reconnected()
    talk.joined(talk.ask_join(other), generation=4, leader=a, roster=[])
    talk.heartbeat(b)
    assert state(talk) == "Stable"
    silent(talk)


def test_a_member_of_an_emptied_group_is_unknown(talk: Conversation) -> None:
    (a,) = stable(talk, "a", generation=4)
    talk.leave(a)
    assert state(talk) == "Empty"
    talk.refuse_join(talk.ask_join(a), 25, a.member_id)
    no_errors(talk)


def test_completion_drops_dynamic_members_that_did_not_rejoin(talk: Conversation) -> None:
    a, b = stable(talk, "a", "b", generation=4)
    asked = talk.ask_join(a)
    told_to_rejoin(talk, b, 20)
    talk.joined(asked, generation=5, leader=a, roster=[a])
    talk.sync_all([a])
    talk.heartbeat(b, 25)
    assert members(talk) == {a.member_id}
    assert set(talk.settled_rules()) == {"R-08", "R-18"}


def test_a_phase_without_anybody_is_extended_without_a_new_generation(talk: Conversation) -> None:
    a, b = stable(talk, "a", "b", generation=4, static=("a", "b"))
    talk.close(a)
    talk.close(b)
    talk.wait(5_000)
    assert talk.group_json()["generation"] == 4
    a, b = a.reconnected(), b.reconnected()
    asked = [talk.ask_join(a), talk.ask_join(b)]
    complete(talk, asked, 5, a, [a, b])
    talk.sync_all([a, b])
    no_errors(talk)


def test_an_absent_static_member_survives_the_round_at_a_generation_that_is_old(talk: Conversation) -> None:
    a, b = stable(talk, "a", "b", generation=4, static=("b",))
    talk.joined(talk.ask_join(a), generation=5, leader=a, roster=[a, b])
    talk.sync_all([a])
    assert b.member_id in members(talk)
    talk.heartbeat(b, 22)
    no_errors(talk)


def test_completion_waits_for_an_issued_id(talk: Conversation) -> None:
    a, b = stable(talk, "a", "b", generation=4)
    newcomer = talk.client("new")
    talk.hand_out_id(newcomer)
    waiting = [talk.ask_join(a), talk.ask_join(b)]
    talk.wait(2_000)
    last = talk.ask_join(newcomer)
    complete(talk, (*waiting, last), 5, a, [a, b, newcomer])
    talk.sync_all([a, b, newcomer])
    assert len(members(talk)) == 3
    no_errors(talk)


def test_completion_comes_when_an_issued_id_expires(talk: Conversation) -> None:
    a, b = stable(talk, "a", "b", generation=4)
    talk.hand_out_id(talk.client("never-comes"))
    waiting = [talk.ask_join(a), talk.ask_join(b)]
    talk.wait(10_000)
    complete(talk, waiting, 5, a, [a, b])
    talk.sync_all([a, b])
    no_errors(talk)


def test_a_second_member_joins_halfway_and_times_out(talk: Conversation) -> None:
    (a,) = stable(talk, "a", generation=1)
    second = talk.client("b")
    talk.hand_out_id(second)
    talk.close(second)
    waiting = talk.ask_join(a)
    talk.wait(10_000)
    talk.joined(waiting, generation=2, leader=a, roster=[a])
    talk.sync_all([a])
    assert members(talk) == {a.member_id}
    no_errors(talk)


def test_a_session_runs_out_during_a_rebalance(talk: Conversation) -> None:
    a, b, _ = stable(talk, "a", "b", "c", generation=4)
    waiting = [talk.ask_join(a), talk.ask_join(b)]
    talk.wait(10_000)
    complete(talk, waiting, 5, a, [a, b])
    talk.sync_all([a, b])
    beat(talk, [a, b], 5)
    assert members(talk) == {a.member_id, b.member_id}
    no_errors(talk)


# ---------------------------------------------------------------------------------------------------- size limit


def test_a_full_group_refuses_newcomers(talk: Conversation) -> None:
    a, b = stable(talk, "a", "b")
    talk.refuse_join(talk.ask_join(talk.client("c")), 81)
    assert members(talk) == {a.member_id, b.member_id}
    no_errors(talk)


def test_a_full_group_refuses_a_static_newcomer(talk: Conversation) -> None:
    stable(talk, "a", "b", static=("a", "b"))
    other = talk.client("c", instance_id="i-c")
    talk.refuse_join(talk.ask_join(other), 81)
    no_errors(talk)


def test_members_of_a_full_group_rejoin(talk: Conversation) -> None:
    clients = stable(talk, "a", "b")
    talk.refuse_join(talk.ask_join(talk.client("c")), 81)
    talk.round(clients, 2)
    no_errors(talk)


def test_the_last_to_rejoin_an_overfull_group_is_kicked_out(talk: Conversation) -> None:
    a, b, c = stable(talk, "a", "b", "c", generation=4)
    waiting = [talk.ask_join(a), talk.ask_join(b)]
    talk.refuse_join(talk.ask_join(c), 81)
    complete(talk, waiting, 5, a, [a, b])
    talk.sync_all([a, b])
    assert members(talk) == {a.member_id, b.member_id}
    no_errors(talk)


def test_an_overfull_group_rebalances_when_it_is_loaded(talk: Conversation) -> None:
    a, b, c = stable(talk, "a", "b", "c", generation=4)
    a, b, c = fail_over(talk, [a, b, c])
    for one in (a, b, c):
        talk.heartbeat(one, 27)
    waiting = [talk.ask_join(a), talk.ask_join(b)]
    talk.refuse_join(talk.ask_join(c), 81)
    complete(talk, waiting, 5, a, [a, b])
    talk.sync_all([a, b])
    assert members(talk) == {a.member_id, b.member_id}
    no_errors(talk)


# ---------------------------------------------------------------------------------------------------- static members


def test_a_static_member_joins_first(talk: Conversation) -> None:
    (_a,) = stable(talk, "a", static=("a",))
    assert talk.group_json()["members"][0]["instance_id"] == "i-a"
    silent(talk)


def test_a_replaced_members_waiting_join_is_fenced(talk: Conversation) -> None:
    a, b = stable(talk, "a", "b", generation=4, static=("b",))
    old = talk.ask_join(b)
    new = talk.client("b", instance_id="i-b")
    asked = talk.ask_join(new)
    talk.refuse_join(old, 82, b.member_id)
    waiting = talk.ask_join(a)
    talk.joined(asked, generation=5, leader=a, roster=[], member_id="i-b-new")
    talk.joined(waiting, generation=5, leader=a, roster=[a, new])
    talk.sync_all([a, new])
    assert members(talk) == {a.member_id, "i-b-new"}
    no_errors(talk)


def test_a_duplicate_rejoining_with_the_old_id_is_fenced(talk: Conversation) -> None:
    a, b = stable(talk, "a", "b", generation=4, static=("b",))
    new = replacement(talk, "b", a, 4)
    talk.call(new, talk.sync_request(new, []), talk.synced())
    talk.refuse_join(talk.ask_join(b), 82, b.member_id)
    assert new.member_id in members(talk)
    no_errors(talk)


def test_a_duplicates_waiting_sync_is_fenced_and_the_phase_starts_anew(talk: Conversation) -> None:
    a, b = talk.client("a"), talk.client("b", instance_id="i-b")
    talk.join_all([a, b], 4)
    parked = talk.ask(b, talk.sync_request(b, []))
    new = talk.client("b", instance_id="i-b")
    asked = talk.ask_join(new)
    talk.answer(parked, talk.synced(82))
    waiting = talk.ask_join(a)
    talk.joined(asked, generation=5, leader=a, roster=[], member_id="i-b-new")
    talk.joined(waiting, generation=5, leader=a, roster=[a, new])
    talk.sync_all([a, new])
    assert state(talk) == "Stable"
    no_errors(talk)


def test_a_static_member_rejoins_with_its_id(talk: Conversation) -> None:
    a, b = stable(talk, "a", "b", generation=4, static=("b",))
    talk.joined(talk.ask_join(b), generation=4, leader=a, roster=[])
    assert state(talk) == "Stable"
    silent(talk)


@pytest.mark.parametrize("version", [9, 8])
def test_a_restarted_static_leader_is_told_that_it_leads_only_since_v9(talk: Conversation, version: int) -> None:
    a, b = stable(talk, "a", "b", generation=4, static=("a",))
    talk.close(a)
    new = replacement(talk, "a", a, 4, version=version, beside=(b,) if version == 9 else ())
    talk.call(new, talk.sync_request(new, []), talk.synced())
    talk.heartbeat(b)
    talk.heartbeat(new)
    assert talk.group_json()["generation"] == 4
    assert new.member_id in members(talk)
    assert a.member_id not in members(talk)
    no_errors(talk)


def test_a_static_leader_with_its_id_rebalances(talk: Conversation) -> None:
    a, b = stable(talk, "a", "b", generation=4, static=("a",))
    asked = talk.ask_join(a)
    talk.heartbeat(b, 27)
    again = talk.ask_join(b)
    complete(talk, (asked, again), 5, a, [a, b])
    silent(talk)


@pytest.mark.parametrize("error", [15, -1])
def test_a_static_member_meets_a_dead_or_empty_group(talk: Conversation, error: int) -> None:
    a = talk.client("a", instance_id="i-a")
    talk.refuse_join(talk.ask_join(a), error)
    assert members(talk) == set()
    talk.settle()
    assert {finding.rule for finding in talk.findings} <= {"C-08"}


def test_a_static_follower_with_another_protocol_rebalances(talk: Conversation) -> None:
    a, b = stable(talk, "a", "b", generation=4, static=("b",))
    changed = talk.ask_join(b, protocols=(wire.JoinGroupRequestProtocol(name="range", metadata=SUBSCRIBED_TO_MORE),))
    talk.heartbeat(a, 27)
    again = talk.ask_join(a)
    complete(talk, (changed, again), 5, a, [a, b])
    silent(talk)


def test_a_replacement_without_a_change_does_not_rebalance(talk: Conversation) -> None:
    a, b = stable(talk, "a", "b", generation=4, static=("b",))
    talk.close(b)
    new = replacement(talk, "b", a, 4, reason="restart")
    talk.call(new, talk.sync_request(new, []), talk.synced())
    beat(talk, [a, new], 5)
    assert state(talk) == "Stable"
    assert members(talk) == {a.member_id, new.member_id}
    silent(talk)


def test_a_replacement_that_could_not_be_stored_is_rolled_back(talk: Conversation) -> None:
    a, b = stable(talk, "a", "b", generation=4, static=("b",))
    new = talk.client("b", instance_id="i-b")
    reply = wire.JoinGroupResponse(
        error_code=15, generation_id=4, protocol_type="consumer", protocol_name="range", leader=a.member_id, member_id=""
    )
    talk.answer(talk.ask_join(new), reply)
    talk.heartbeat(b)
    talk.heartbeat(a)
    no_errors(talk)


def test_a_static_follower_with_its_id_and_no_change_does_not_rebalance(talk: Conversation) -> None:
    a, b = stable(talk, "a", "b", generation=4, static=("b",))
    talk.joined(talk.ask_join(b), generation=4, leader=a, roster=[])
    talk.call(b, talk.sync_request(b, []), talk.synced())
    silent(talk)


@pytest.mark.parametrize("whose", ["a", "b"], ids=["follower", "leader"])
def test_an_id_that_does_not_match_the_instance_is_fenced(talk: Conversation, whose: str) -> None:
    a, b = stable(talk, "a", "b", generation=4, static=("a", "b"))
    wrong = a.reconnected() if whose == "a" else b.reconnected()
    wrong.instance_id = "i-b" if whose == "a" else "i-a"
    talk.refuse_join(talk.ask_join(wrong), 82, wrong.member_id)
    talk.settle()
    assert {finding.rule for finding in talk.findings} <= {"S-07"}


def test_each_restart_gets_another_id(talk: Conversation) -> None:
    a, b = stable(talk, "a", "b", generation=4, static=("b",))
    ids = {b.member_id}
    for _ in range(3):
        talk.close(b)
        b = replacement(talk, "b", a, 4)
        talk.call(b, talk.sync_request(b, []), talk.synced())
        talk.heartbeat(a)
        talk.wait(8_000)
        talk.heartbeat(b)
        talk.heartbeat(a)
        ids.add(b.member_id)
    assert len(ids) == 4
    no_errors(talk)


def test_a_known_id_with_an_unknown_instance_is_unknown(talk: Conversation) -> None:
    a, b = stable(talk, "a", "b", generation=4)
    talk.refuse_join(talk.ask_join(b, group_instance_id="unheard-of"), 25, b.member_id)
    talk.settle()
    assert {finding.rule for finding in talk.findings if finding.severity.rank >= Severity.ERROR.rank} == set()
    assert a.member_id in members(talk)


@pytest.mark.parametrize("absent", ["b", "a"], ids=["follower", "leader"])
def test_an_absent_static_member_stays_in_the_roster(talk: Conversation, absent: str) -> None:
    a, b = stable(talk, "a", "b", generation=4, static=("a", "b"))
    present, missing = (a, b) if absent == "b" else (b, a)
    changed = talk.ask_join(present, protocols=(wire.JoinGroupRequestProtocol(name="range", metadata=SUBSCRIBED_TO_MORE),))
    beat(talk, [missing], 6, 27)
    talk.joined(changed, generation=5, leader=present, roster=[a, b])
    talk.sync_all([present])
    assert missing.member_id in members(talk)
    assert talk.group_json()["leader"] == present.member_id
    no_errors(talk)


def test_a_static_member_that_does_not_rejoin_holds_up_the_group(talk: Conversation) -> None:
    a, b = stable(talk, "a", "b", generation=4, static=("b",))
    asked = talk.ask_join(a)
    beat(talk, [b], 19, 27)
    assert state(talk) == "PreparingRebalance"
    assert b.member_id in talk.group_json()["waits_for"]
    assert talk.the("R-08").member_id == b.member_id
    talk.wait(1_000)
    talk.joined(asked, generation=5, leader=a, roster=[a, b])
    talk.sync_all([a])
    assert talk.the("R-08").severity is Severity.WARNING


@pytest.mark.parametrize("from_state", ["Stable", "CompletingRebalance"])
def test_a_replacement_with_a_change_or_while_completing_rebalances(talk: Conversation, from_state: str) -> None:
    a, b = talk.client("a"), talk.client("b", instance_id="i-b")
    talk.join_all([a, b], 4)
    if from_state == "Stable":
        talk.sync_all([a, b])
    assert state(talk) == from_state
    talk.close(b)
    new = talk.client("b", instance_id="i-b")
    asked = talk.ask_join(new, protocols=(wire.JoinGroupRequestProtocol(name="range", metadata=SUBSCRIBED_TO_MORE),))
    talk.heartbeat(a, 27)
    again = talk.ask_join(a)
    talk.joined(asked, generation=5, leader=a, roster=[], member_id="i-b-new")
    talk.joined(again, generation=5, leader=a, roster=[a, new])
    talk.sync_all([a, new])
    assert members(talk) == {a.member_id, new.member_id}
    no_errors(talk)


def test_a_replacement_brings_its_own_timeouts(talk: Conversation) -> None:
    a, b = stable(talk, "a", "b", generation=4, static=("b",))
    talk.close(b)
    new = replacement(talk, "b", a, 4, session_timeout_ms=30_000, rebalance_timeout_ms=90_000)
    talk.call(new, talk.sync_request(new, []), talk.synced())
    told = {member["member_id"]: member for member in talk.group_json()["members"]}[new.member_id]
    assert (told["session_timeout_ms"], told["rebalance_timeout_ms"]) == (30_000, 90_000)
    beat(talk, [a], 25)
    assert talk.rules() == ["P-10"]
    no_errors(talk)


# ---------------------------------------------------------------------------------------------------- sync


def test_sync_to_an_unknown_group(talk: Conversation) -> None:
    a = talk.client("a", member_id="m", generation=1)
    refused_sync(talk, a, 25)
    assert members(talk) == set()
    no_errors(talk)


def test_sync_of_an_unknown_member(talk: Conversation) -> None:
    a, b = stable(talk, "a", "b", generation=4)
    stranger = talk.client("s", member_id="stranger", generation=4)
    refused_sync(talk, stranger, 25)
    assert members(talk) == {a.member_id, b.member_id}
    no_errors(talk)


@pytest.mark.parametrize("first", ["leader", "follower"])
def test_follower_and_leader_sync_in_either_order(talk: Conversation, first: str) -> None:
    a, b = completing_rebalance(talk, generation=4)
    if first == "leader":
        talk.call(a, talk.sync_request(a, [a, b]), talk.synced())
        talk.call(b, talk.sync_request(b, []), talk.synced())
    else:
        waiting = talk.ask(b, talk.sync_request(b, []))
        assert state(talk) == "CompletingRebalance"
        talk.call(a, talk.sync_request(a, [a, b]), talk.synced())
        talk.answer(waiting, talk.synced())
    assert state(talk) == "Stable"
    silent(talk)


def test_an_append_that_fails_sends_everybody_back(talk: Conversation) -> None:
    a, b = completing_rebalance(talk, generation=4)
    waiting = [talk.ask(b, talk.sync_request(b, [])), talk.ask(a, talk.sync_request(a, [a, b]))]
    for one in waiting:
        talk.answer(one, talk.synced(15))
    talk.round([a, b], 5)
    assert state(talk) == "Stable"
    no_errors(talk)


def test_the_leader_dies_before_it_syncs(talk: Conversation) -> None:
    a, b = completing_rebalance(talk, generation=4)
    waiting = talk.ask(b, talk.sync_request(b, []))
    talk.close(a)
    talk.wait(10_000)
    talk.answer(waiting, talk.synced(27))
    talk.round([b], 5, leader=b)
    assert members(talk) == {b.member_id}
    no_errors(talk)


def test_an_empty_assignment_is_delivered_as_such(talk: Conversation) -> None:
    a, b = completing_rebalance(talk, generation=4)
    waiting = talk.ask(b, talk.sync_request(b, []))
    talk.call(a, talk.sync_request(a, [a]), talk.synced())
    talk.answer(waiting, wire.SyncGroupResponse(error_code=0, protocol_type="consumer", protocol_name="range", assignment=b""))
    assert state(talk) == "Stable"
    talk.settle()
    assert {finding.rule for finding in talk.findings if finding.blame == "broker"} == set()


def test_a_sync_of_a_version_without_protocol_fields_succeeds(talk: Conversation) -> None:
    a, b = completing_rebalance(talk, generation=4)
    assigned = tuple(wire.SyncGroupRequestAssignment(member_id=one.member_id, assignment=b"a") for one in (a, b))
    for one, plan in ((a, assigned), (b, ())):
        body = wire.SyncGroupRequest(group_id="g", generation_id=4, member_id=one.member_id, assignments=plan)
        talk.call(one, body, wire.SyncGroupResponse(error_code=0, assignment=b"a"), version=3)
    assert state(talk) == "Stable"
    no_errors(talk)


def test_nobody_syncs_and_all_are_kicked_while_heartbeating(talk: Conversation) -> None:
    a, b = completing_rebalance(talk, generation=4)
    beat(talk, [a, b], 19)
    talk.wait(1_100)
    talk.heartbeat(a, 25)
    talk.heartbeat(b, 25)
    assert members(talk) == set()
    assert talk.the("R-02").member_id == a.member_id
    assert talk.the("R-02").severity is Severity.WARNING


def test_a_follower_does_not_sync_and_is_kicked(talk: Conversation) -> None:
    a, b = completing_rebalance(talk, generation=4)
    talk.call(a, talk.sync_request(a, [a, b]), talk.synced())
    beat(talk, [a, b], 19)
    talk.wait(1_100)
    talk.heartbeat(b, 25)
    assert talk.the("R-03").member_id == b.member_id
    assert members(talk) == {a.member_id}


def test_the_leader_does_not_sync_and_the_followers_go_on(talk: Conversation) -> None:
    a, b = completing_rebalance(talk, generation=4)
    waiting = talk.ask(b, talk.sync_request(b, []))
    beat(talk, [a], 20)
    talk.answer(waiting, talk.synced(27))
    talk.heartbeat(a, 25)
    talk.round([b], 5, leader=b)
    assert talk.the("R-02").member_id == a.member_id
    assert members(talk) == {b.member_id}


def test_all_syncs_in_time_and_nothing_times_out(talk: Conversation) -> None:
    clients = stable(talk, "a", "b", "c", generation=4)
    beat(talk, clients, 30)
    assert len(members(talk)) == 3
    silent(talk)


# ---------------------------------------------------------------------------------------------------- heartbeat, leave


@pytest.mark.parametrize(("emptied", "error"), [(False, 25), (False, 15), (True, 25)], ids=["unknown", "dead", "empty"])
def test_a_heartbeat_to_an_unknown_dead_or_empty_group(talk: Conversation, *, emptied: bool, error: int) -> None:
    a = talk.client("a")
    if emptied:
        (a,) = stable(talk, "a", generation=4)
        talk.leave(a)
    a.member_id, a.generation = a.member_id or "m", 4
    talk.heartbeat(a, error)
    assert members(talk) == set()
    no_errors(talk)


def test_a_heartbeat_of_an_unknown_member(talk: Conversation) -> None:
    a, b = stable(talk, "a", "b", generation=4)
    stranger = talk.client("s", member_id="stranger", generation=4)
    talk.heartbeat(stranger, 25)
    assert members(talk) == {a.member_id, b.member_id}
    no_errors(talk)


def test_a_heartbeat_while_preparing_is_told_to_rejoin(talk: Conversation) -> None:
    a, b = stable(talk, "a", "b", generation=4)
    talk.ask_join(a)
    talk.heartbeat(b, 27)
    assert state(talk) == "PreparingRebalance"
    no_errors(talk)


def test_a_heartbeat_while_completing_succeeds(talk: Conversation) -> None:
    a, _ = completing_rebalance(talk, generation=4)
    talk.heartbeat(a)
    assert state(talk) == "CompletingRebalance"
    silent(talk)


def test_heartbeats_keep_the_session(talk: Conversation) -> None:
    a, b = stable(talk, "a", "b", generation=4)
    for _ in range(12):
        talk.wait(7_000)
        talk.heartbeat(a)
        talk.heartbeat(b)
    assert len(members(talk)) == 2
    assert talk.rules() == []
    no_errors(talk)


def test_a_leave_with_a_fenced_instance(talk: Conversation) -> None:
    a, b = stable(talk, "a", "b", generation=4, static=("b",))
    wrong = b.reconnected()
    wrong.member_id = "invalid"
    talk.leave(wrong, 82)
    assert members(talk) == {a.member_id, b.member_id}
    no_errors(talk)


def admin_leave(talk: Conversation, *named: tuple[str, str | None, int]) -> None:
    admin = talk.client("admin")
    body = wire.LeaveGroupRequest(
        group_id="g",
        members=tuple(
            wire.LeaveGroupRequestMemberIdentity(member_id=id_, group_instance_id=instance) for id_, instance, _ in named
        ),
    )
    reply = wire.LeaveGroupResponse(
        members=tuple(
            wire.LeaveGroupResponseMemberResponse(member_id=id_, group_instance_id=instance, error_code=error)
            for id_, instance, error in named
        )
    )
    talk.call(admin, body, reply)


def test_an_operator_removes_a_static_member_by_its_instance(talk: Conversation) -> None:
    a, b = stable(talk, "a", "b", generation=4, static=("b",))
    admin_leave(talk, ("", "i-b", 0))
    assert members(talk) == {a.member_id}
    assert b.member_id not in talk.group_json()["waits_for"]
    no_errors(talk)


def test_an_operator_removes_several_static_members_at_once(talk: Conversation) -> None:
    stable(talk, "a", "b", generation=4, static=("a", "b"))
    admin_leave(talk, ("", "i-a", 0), ("", "i-b", 0))
    assert members(talk) == set()
    assert state(talk) == "Empty"
    no_errors(talk)


def test_issued_ids_can_leave(talk: Conversation) -> None:
    a, b = stable(talk, "a", "b", generation=4)
    pending = talk.client("p")
    talk.hand_out_id(pending)
    talk.leave(pending)
    waiting = [talk.ask_join(a), talk.ask_join(b)]
    complete(talk, waiting, 5, a, [a, b])
    talk.sync_all([a, b])
    no_errors(talk)


def test_one_leave_names_a_member_an_issued_id_and_a_stranger(talk: Conversation) -> None:
    a, b = stable(talk, "a", "b", generation=4)
    pending = talk.client("p")
    talk.hand_out_id(pending)
    admin_leave(talk, (b.member_id, None, 0), (pending.member_id, None, 0), ("stranger", None, 25))
    assert members(talk) == {a.member_id}
    no_errors(talk)


# ---------------------------------------------------------------------------------------------------- failover


def test_a_new_coordinator_goes_on_at_the_persisted_generation(talk: Conversation) -> None:
    a, b = stable(talk, "a", "b", generation=4)
    a, b = fail_over(talk, [a, b])
    live(talk, [a, b], 5)
    assert talk.group_json()["incarnation"] > 1
    assert talk.group_json()["generation"] == 4
    no_errors(talk)


def test_sessions_start_anew_when_a_group_is_loaded(talk: Conversation) -> None:
    a, b = stable(talk, "a", "b", generation=4)
    talk.wait(6_000)
    talk.heartbeat(a, 16)
    talk.wait(6_000)
    a, b = a.reconnected("2"), b.reconnected("2")
    talk.heartbeat(a)
    talk.heartbeat(b)
    assert talk.rules() == []
    no_errors(talk)


def test_waiting_joins_are_sent_elsewhere(talk: Conversation) -> None:
    a, b = stable(talk, "a", "b", generation=4)
    waiting = [talk.ask_join(a), talk.ask_join(b)]
    for one in waiting:
        talk.refuse_join(one, 16, one.client.member_id)
    a, b = a.reconnected("2"), b.reconnected("2")
    talk.round([a, b], 5)
    assert state(talk) == "Stable"
    no_errors(talk)


def test_waiting_syncs_are_sent_elsewhere(talk: Conversation) -> None:
    a, b = completing_rebalance(talk, generation=4)
    waiting = talk.ask(b, talk.sync_request(b, []))
    talk.answer(waiting, talk.synced(16))
    a, b = a.reconnected("2"), b.reconnected("2")
    talk.round([a, b], 4)
    assert talk.group_json()["generation"] == 4
    no_errors(talk)


@pytest.mark.parametrize("sync_error", [14, 27], ids=["java", "scala"])
def test_a_loading_coordinator_answers_heartbeats_blindly(talk: Conversation, sync_error: int) -> None:
    a, b = stable(talk, "a", "b", generation=4)
    talk.round([a], 5)
    talk.refuse_join(talk.ask_join(a), 14, a.member_id)
    talk.heartbeat(b)
    refused_sync(talk, b, sync_error)
    talk.heartbeat(b)
    no_errors(talk)


# ---------------------------------------------------------------------------------------------------- offsets


def test_a_commit_while_completing_is_told_to_rejoin(talk: Conversation) -> None:
    a, _ = completing_rebalance(talk, generation=4)
    talk.commit(a, 27)
    assert state(talk) == "CompletingRebalance"
    no_errors(talk)


def simple_commit(talk: Conversation, error: int) -> None:
    talk.commit(talk.client("tool"), error, member_id="", generation_id_or_member_epoch=-1, group_instance_id=None)


def test_commits_keep_the_session(talk: Conversation) -> None:
    a, b = stable(talk, "a", "b", generation=4)
    for _ in range(12):
        talk.wait(7_000)
        talk.commit(a)
        talk.heartbeat(b)
    assert a.member_id in members(talk)
    assert talk.rules() == ["O-05"]
    no_errors(talk)


@pytest.mark.parametrize("instance_id", [None, "i"], ids=["without", "with-instance"])
def test_a_simple_group_commits_without_members(talk: Conversation, instance_id: str | None) -> None:
    tool = talk.client("tool")
    talk.commit(tool, 0, member_id="", generation_id_or_member_epoch=-1, group_instance_id=instance_id)
    assert members(talk) == set()
    no_errors(talk)


@pytest.mark.parametrize(("version", "error"), [(8, 22), (9, 69)])
def test_a_commit_to_an_unknown_group(talk: Conversation, version: int, error: int) -> None:
    a = talk.client("a")
    partition = wire.OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
    body = wire.OffsetCommitRequest(
        group_id="g",
        generation_id_or_member_epoch=4,
        member_id="m",
        topics=(wire.OffsetCommitRequestTopic(name="t", partitions=(partition,)),),
    )
    done = wire.OffsetCommitResponsePartition(partition_index=0, error_code=error)
    reply = wire.OffsetCommitResponse(topics=(wire.OffsetCommitResponseTopic(name="t", partitions=(done,)),))
    talk.call(a, body, reply, version=version)
    assert members(talk) == set()
    no_errors(talk)


def test_commits_after_the_group_became_empty(talk: Conversation) -> None:
    (a,) = stable(talk, "a", generation=4)
    talk.leave(a)
    simple_commit(talk, 0)
    no_errors(talk)


# ---------------------------------------------------------------------------------------------------- not in Kafka's suite


def test_a_heartbeat_behind_a_waiting_join_is_refused_and_means_nothing(talk: Conversation) -> None:
    a, b = stable(talk, "a", "b", generation=4)
    waiting = [talk.ask_join(a), talk.ask_join(b)]
    body = wire.HeartbeatRequest(group_id="g", generation_id=4, member_id=a.member_id)
    queued = talk.ask(a, body)
    complete(talk, waiting, 5, a, [a, b])
    talk.answer(queued, wire.HeartbeatResponse(error_code=22))
    talk.sync_all([a, b])
    silent(talk)


def test_a_failover_before_the_leader_synced_reissues_the_generation(talk: Conversation) -> None:
    a, b, c = stable(talk, "a", "b", "c", generation=4)
    talk.join_all([a, b, c], 5)
    for one in (a, b, c):
        talk.close(one)
    a, b = a.reconnected("2"), b.reconnected("2")
    talk.refuse_join(talk.ask_join(a), 14, a.member_id)
    talk.join_all([b, a], 5)
    talk.sync_all([b, a])
    assert talk.group_json()["generation"] == 5
    assert talk.group_json()["leader"] == b.member_id
    no_errors(talk)


def test_a_dead_id_is_blindly_answered_during_a_load(talk: Conversation) -> None:
    a, b = stable(talk, "a", "b", generation=4)
    talk.leave(b)
    talk.round([a], 5)
    talk.refuse_join(talk.ask_join(a), 14, a.member_id)
    talk.heartbeat(b)
    no_errors(talk)


def test_a_superseded_join_on_a_dead_connection_is_never_answered(talk: Conversation) -> None:
    a, b = stable(talk, "a", "b", generation=4)
    talk.ask_join(a)
    again = a.reconnected()
    waiting = [talk.ask_join(again), talk.ask_join(b)]
    talk.close(a)
    complete(talk, waiting, 5, again, [again, b])
    talk.sync_all([again, b])
    beat(talk, [again, b], 40)
    no_errors(talk)


@pytest.mark.parametrize("version", [9, 8])
def test_a_static_leaders_restart_seen_in_mid_life(talk: Conversation, version: int) -> None:
    old = talk.client("a", member_id="i-a-old")
    follower = talk.client("b", member_id="m-b", generation=4)
    talk.heartbeat(follower)
    new = replacement(talk, "a", old, 4, version=version, beside=(follower,) if version == 9 else ())
    talk.call(new, talk.sync_request(new, []), talk.synced())
    talk.heartbeat(follower)
    talk.heartbeat(new)
    no_errors(talk)


def test_the_leader_syncs_again_on_a_new_connection_with_another_assignment(talk: Conversation) -> None:
    a, b = completing_rebalance(talk, generation=4)
    talk.ask(a, talk.sync_request(a, [a, b]))
    talk.close(a)
    again = a.reconnected()
    other = tuple(wire.SyncGroupRequestAssignment(member_id=one.member_id, assignment=b"other") for one in (a, b))
    talk.call(again, talk.sync_request(again, [], assignments=other), talk.synced())
    talk.call(b, talk.sync_request(b, []), talk.synced())
    no_errors(talk)


def test_after_a_load_an_unchanged_follower_may_rebalance(talk: Conversation) -> None:
    two = (
        wire.JoinGroupRequestProtocol(
            name="range", metadata=wire.encode_subscription(wire.ConsumerProtocolSubscription(topics=("t",)), version=1)
        ),
        wire.JoinGroupRequestProtocol(
            name="sticky", metadata=wire.encode_subscription(wire.ConsumerProtocolSubscription(topics=("t",)), version=1)
        ),
    )
    a, b = stable(talk, "a", "b", generation=4)
    a, b = fail_over(talk, [a, b])
    talk.heartbeat(a)
    asked = talk.ask_join(b, protocols=two)
    talk.heartbeat(a, 27)
    again = talk.ask_join(a, protocols=two)
    complete(talk, (asked, again), 5, a, [a, b])
    talk.sync_all([a, b])
    no_errors(talk)


def test_an_expired_empty_group_starts_again_at_one(talk: Conversation) -> None:
    a, b = stable(talk, "a", "b", generation=57)
    talk.leave(a)
    talk.leave(b)
    talk.wait(600_000)
    talk.round([talk.client("c")], 1)
    assert talk.settled_rules() == ["G-05"]
    assert talk.group_json()["generation"] == 1


def test_members_of_a_mixed_group_each_show_another_generation(talk: Conversation) -> None:
    a, b = talk.client("a"), talk.client("b")
    for client, generation in ((a, 7), (b, 9)):
        client.member_id = f"m-{client.name}"
        reply = wire.JoinGroupResponse(
            error_code=0,
            generation_id=generation,
            protocol_type="consumer",
            protocol_name="range",
            leader="",
            member_id=client.member_id,
        )
        client.generation = generation
        talk.call(client, talk.join_request(client), reply)
    talk.heartbeat(a)
    talk.heartbeat(b)
    talk.heartbeat(a, 27)
    assert talk.group_json()["group_type"] == "consumer"
    no_errors(talk)


def test_one_peers_answer_is_captured_after_anothers_whole_cycle(talk: Conversation) -> None:
    a, b = stable(talk, "a", "b", generation=4)
    waiting_a, waiting_b = talk.ask_join(a), talk.ask_join(b)
    talk.joined(waiting_a, generation=5, leader=a, roster=[a, b])
    sync = talk.ask(a, talk.sync_request(a, [a, b]))
    talk.answer(sync, talk.synced())
    talk.heartbeat(a)
    talk.joined(waiting_b, generation=5, leader=a, roster=[])
    talk.call(b, talk.sync_request(b, []), talk.synced())
    assert state(talk) == "Stable"
    silent(talk)

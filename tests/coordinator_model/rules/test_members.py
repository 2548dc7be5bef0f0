"""Family M; each rule: what fires each rule, what must keep it quiet, what resolves it."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator_model import wire
from coordinator_model.finding import Blame, Certainty, Severity, Status
from coordinator_model.groups.classic.handlers.join_group import ISSUED_KEPT
from coordinator_model.groups.classic.trackers.member_identity import HANDED_OUT_KEPT, LEAVES_KEPT, SUSPECTED_KEPT
from coordinator_model.groups.group import REMOVED_MEMBERS_KEPT
from tests.coordinator_model.classic import by_turns, complete, live, settled, static_group
from tests.coordinator_model.conversation import Client, Conversation

# ---------------------------------------------------------------------------------------------------- M-01, M-02, M-08


def test_M_02_fires_when_a_stranger_is_accepted(talk: Conversation) -> None:
    settled(talk)
    stranger = talk.client("s", member_id="stranger", generation=3)
    talk.heartbeat(stranger)
    talk.settle()
    finding = talk.the("M-02")
    assert finding.severity is Severity.CRITICAL
    assert finding.member_id == "stranger"


def test_M_02_resolves_when_it_does_not_recur(talk: Conversation) -> None:
    a, b = settled(talk)
    stranger = talk.client("s", member_id="stranger", generation=3)
    talk.heartbeat(stranger)
    live(talk, [a, b], 50)
    assert talk.the("M-02").status is Status.OPEN
    live(talk, [a, b], 15)
    assert talk.the("M-02").status is Status.RESOLVED


def test_M_02_needs_the_full_roster(talk: Conversation) -> None:
    a, b = talk.client("a", member_id="m-a"), talk.client("b", member_id="m-b")
    asked = talk.ask_join(b)
    talk.joined(asked, generation=3, leader=a, roster=[])
    stranger = talk.client("s", member_id="stranger", generation=3)
    talk.heartbeat(stranger)
    assert talk.settled_rules() == []


def test_M_02_knows_a_static_member_that_replaced_another(talk: Conversation) -> None:
    a, b = static_group(talk, ("a", "b"))
    talk.close(b)
    new = talk.client("b", instance_id="i")
    talk.joined(talk.ask_join(new), generation=3, leader=a, roster=[], member_id="i-new")
    talk.call(new, talk.sync_request(new, []), talk.synced())
    live(talk, [a, new], 5)
    assert talk.rules() == []


def test_M_02_waits_for_a_new_roster_after_lost_records(talk: Conversation) -> None:
    settled(talk)
    talk.lose(5)
    stranger = talk.client("s", member_id="stranger", generation=3)
    talk.heartbeat(stranger)
    assert talk.settled_rules() == ["V-01"]


def test_M_08_fires_when_the_answer_names_another_member(talk: Conversation) -> None:
    a, b = settled(talk)
    asked = talk.ask_join(b)
    own = b.member_id
    talk.joined(asked, generation=4, leader=a, roster=[], member_id=a.member_id)
    finding = talk.the("M-08")
    assert finding.member_id == own
    assert a.member_id in finding.summary
    talk.wait(61_000)
    assert talk.the("M-08").status is Status.RESOLVED


def test_M_08_allows_a_new_id_for_one_that_named_none(talk: Conversation) -> None:
    a, b = static_group(talk, ("a", "b"))
    successor = b.reconnected()
    successor.member_id = ""
    talk.joined(talk.ask_join(successor), generation=3, leader=a, roster=[], member_id="m-new")
    assert talk.settled_rules() == []


def test_M_08_allows_an_error_that_names_another_member(talk: Conversation) -> None:
    """What an error carries beside its code means nothing; brokers echo whatever they were asked with."""
    a, b = settled(talk)
    talk.refuse_join(talk.ask_join(b), 25, a.member_id)
    assert talk.settled_rules() == []


# ---------------------------------------------------------------------------------------------------- M-01, M-02: their guards


def test_M_02_allows_a_replaced_member_what_it_asked_before_it_was_replaced(talk: Conversation) -> None:
    leader, first = static_group(talk)
    talk.lose(1)
    talk.round([leader], 4, leader=leader)
    talk.joined(talk.ask_join(leader), generation=5, leader=leader, roster=[leader, first])
    talk.sync_all([leader])
    first.generation = 5
    body = wire.HeartbeatRequest(group_id="g", generation_id=5, member_id=first.member_id, group_instance_id="i")
    pending = talk.ask(first, body)
    new = talk.client("two", instance_id="i")
    talk.joined(talk.ask_join(new), generation=5, leader=leader, roster=[], member_id="i-new")
    talk.answer(pending, wire.HeartbeatResponse(error_code=0))
    assert talk.settled_rules() == ["V-01"]


def test_M_02_leaves_a_fenced_static_member_to_S_03(talk: Conversation) -> None:
    leader, first = static_group(talk)
    talk.joined(talk.ask_join(leader), generation=4, leader=leader, roster=[leader, first])
    talk.sync_all([leader])
    new = talk.client("two", instance_id="i")
    talk.joined(talk.ask_join(new), generation=4, leader=leader, roster=[], member_id="i-new")
    talk.call(new, talk.sync_request(new, []), talk.synced())
    talk.wait(1)
    talk.heartbeat(first, generation=4)
    assert "S-03" in talk.settled_rules()
    assert talk.rules() == ["S-03"]


# ---------------------------------------------------------------------------------------------------- M-03


def test_M_03_fires_on_a_refusal_between_two_successes_of_a_member(talk: Conversation) -> None:
    _, b = settled(talk)
    talk.wait(1_000)
    talk.heartbeat(b, 25)
    talk.wait(1)
    talk.heartbeat(b)
    talk.settle()
    finding = talk.the("M-03")
    assert finding.severity is Severity.ERROR
    assert finding.blame is Blame.BROKER
    assert finding.member_id == b.member_id
    assert "the same member before and after" in finding.summary
    talk.wait(70_000)
    assert talk.the("M-03").status is Status.RESOLVED


def test_M_03_fires_when_the_generation_goes_on_although_a_member_is_said_to_be_gone(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.wait(1_000)
    talk.heartbeat(b, 25)
    talk.wait(1)
    talk.heartbeat(a)
    talk.settle()
    finding = talk.the("M-03")
    assert finding.member_id == b.member_id
    assert "went on unbroken" in finding.summary


def test_M_03_fires_on_a_join_too(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.wait(1_000)
    talk.refuse_join(talk.ask_join(b), 25, b.member_id)
    talk.wait(1)
    talk.heartbeat(a)
    assert "M-03" in talk.settled_rules()


@pytest.mark.parametrize("how", ["told to rejoin", "commit"])
def test_M_03_needs_more_than_a_success_that_a_join_phase_allows(talk: Conversation, how: str) -> None:
    a, b = settled(talk)
    talk.wait(1_000)
    talk.heartbeat(b, 25)
    talk.wait(1)
    if how == "commit":
        talk.commit(a)
    else:
        talk.heartbeat(a, 27)
    assert "M-03" not in talk.settled_rules()


def test_M_03_allows_an_eviction_after_the_session(talk: Conversation) -> None:
    a, b = settled(talk)
    live(talk, [a], 11)
    talk.heartbeat(b, 25)
    talk.wait(1)
    talk.heartbeat(a)  # its answer was on the way when the group began to rebalance
    assert talk.settled_rules() == []


def test_M_03_allows_an_eviction_by_a_round(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.round([a], 4)
    talk.heartbeat(b, 25)
    talk.wait(1)
    talk.heartbeat(a)
    assert talk.settled_rules() == []


def test_M_03_allows_a_failover_to_forget_what_was_not_written(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.heartbeat(b, 25)
    talk.heartbeat(a, 16)
    talk.heartbeat(b.reconnected("2"))
    assert talk.settled_rules() == []


def test_M_03_does_not_judge_versions_of_brokers_that_say_so_while_unloading(talk: Conversation) -> None:
    _, b = settled(talk)
    talk.wait(1_000)
    talk.heartbeat(b, 25, version=2)
    talk.wait(1)
    talk.heartbeat(b)
    assert talk.settled_rules() == ["T-03"]


def test_M_03_does_not_judge_a_request_under_another_instance_id(talk: Conversation) -> None:
    _, b = settled(talk)
    talk.wait(1_000)
    b.instance_id = "unheard-of"
    talk.heartbeat(b, 25)
    talk.wait(1)
    b.instance_id = None
    talk.heartbeat(b)
    assert talk.settled_rules() == []


def test_M_03_does_not_take_a_static_members_round_for_its_own(talk: Conversation) -> None:
    """It may have been replaced within the generation."""
    leader, first = static_group(talk)
    talk.wait(1_000)
    talk.heartbeat(first, 25)
    talk.wait(1)
    talk.heartbeat(leader)
    assert talk.settled_rules() == ["T-03"]


def test_M_03_fires_on_a_static_member_under_its_own_instance_id(talk: Conversation) -> None:
    _, first = static_group(talk)
    talk.heartbeat(first)
    talk.wait(1_000)
    talk.heartbeat(first, 25)
    talk.wait(1)
    talk.heartbeat(first)
    talk.settle()
    assert talk.the("M-03").instance_id == first.instance_id


def test_M_03_needs_proof_of_membership_before(talk: Conversation) -> None:
    a, b = talk.client("a", member_id="m-a", generation=3), talk.client("b", member_id="m-b", generation=3)
    talk.joined(talk.ask_join(a), generation=3, leader=b, roster=[])
    talk.heartbeat(b, 25)
    talk.wait(1)
    talk.heartbeat(b)
    assert talk.settled_rules() == []


def test_M_03_needs_the_session_timeout_to_judge_by_others(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.lose(1)
    talk.joined(talk.ask_join(a), generation=4, leader=a, roster=[a, unknown := talk.client("u")])
    unknown.member_id = b.member_id
    c = talk.client("c", member_id="m-c", generation=4)
    talk.joined(talk.ask_join(a), generation=5, leader=a, roster=[a, c])
    talk.heartbeat(a)
    talk.wait(1)
    talk.heartbeat(c, 25, generation=5)
    talk.wait(1)
    talk.heartbeat(a)
    assert talk.settled_rules() == ["V-01"]


def test_few_suspected_refusals_are_kept(talk: Conversation) -> None:
    clients = settled(talk, tuple(f"c{number}" for number in range(SUSPECTED_KEPT + 3)))
    talk.wait(1_000)
    for client in clients[1:]:
        talk.heartbeat(client, 25)
    assert len(talk.model.groups.opened(("c1", "g"))[0].member_identity.suspected) == SUSPECTED_KEPT


# ---------------------------------------------------------------------------------------------------- M-04


def newborn(talk: Conversation) -> tuple[Client, Client]:
    """A group seen from its birth on, a session timeout ago."""
    a, b = settled(talk, generation=1)
    live(talk, [a, b], 12)
    return a, b


def test_M_04_fires_on_an_id_that_was_never_handed_out(talk: Conversation) -> None:
    newborn(talk)
    stranger = talk.client("s", member_id="made-up")
    talk.refuse_join(talk.ask_join(stranger), 25, "made-up")
    talk.settle()
    finding = talk.the("M-04")
    assert finding.severity is Severity.WARNING
    assert finding.blame is Blame.CLIENT
    assert finding.member_id == "made-up"
    assert finding.summary.startswith("Client s at")
    talk.wait(70_000)
    assert talk.the("M-04").status is Status.RESOLVED


def refused_stranger(talk: Conversation) -> list[str]:
    stranger = talk.client("s", member_id="made-up")
    talk.refuse_join(talk.ask_join(stranger), 25, "made-up")
    return talk.settled_rules()


def test_M_04_needs_to_have_seen_the_birth(talk: Conversation) -> None:
    a, b = settled(talk)
    live(talk, [a, b], 12)
    assert "M-04" not in refused_stranger(talk)


def test_M_04_allows_ids_handed_out_just_before_the_birth_was_seen(talk: Conversation) -> None:
    settled(talk, generation=1)
    assert "M-04" not in refused_stranger(talk)


def test_M_04_knows_nothing_after_a_failover(talk: Conversation) -> None:
    a, b = newborn(talk)
    talk.heartbeat(a, 16)
    talk.round([a, b], 2)
    assert "M-04" not in refused_stranger(talk)


def test_M_04_knows_nothing_after_the_group_was_deleted(talk: Conversation) -> None:
    newborn(talk)
    delete(talk, 0)
    assert "M-04" not in refused_stranger(talk)


def test_M_04_goes_on_when_the_group_was_not_deleted(talk: Conversation) -> None:
    newborn(talk)
    delete(talk, 68)
    assert "M-04" in refused_stranger(talk)


def delete(talk: Conversation, error: int) -> None:
    results = (
        wire.DeleteGroupsResponseDeletableGroupResult(group_id="other", error_code=0),
        wire.DeleteGroupsResponseDeletableGroupResult(group_id="g", error_code=error),
    )
    talk.call(
        talk.client("admin"), wire.DeleteGroupsRequest(groups_names=("other", "g")), wire.DeleteGroupsResponse(results=results)
    )


def test_M_04_knows_an_id_that_expired_unused(talk: Conversation) -> None:
    newborn(talk)
    late = talk.client("late")
    talk.hand_out_id(late)
    talk.wait(11_000)
    for _ in range(2):
        talk.refuse_join(talk.ask_join(late), 25, late.member_id)
    assert talk.settled_rules() == []


def test_M_04_knows_members_that_were_evicted(talk: Conversation) -> None:
    a, b = newborn(talk)
    talk.round([a], 2)
    talk.refuse_join(talk.ask_join(b), 25, b.member_id)
    assert talk.settled_rules() == []


def test_M_04_stops_when_too_many_ids_were_handed_out_to_remember(talk: Conversation) -> None:
    newborn(talk)
    for number in range(HANDED_OUT_KEPT + 2):
        talk.hand_out_id(talk.client(f"c{number}"))
    assert "M-04" not in refused_stranger(talk)
    assert len(talk.model.groups.opened(("c1", "g"))[0].issued) == ISSUED_KEPT


def test_M_04_stops_when_gone_members_may_have_been_forgotten(talk: Conversation) -> None:
    a, _ = newborn(talk)
    for number in range(REMOVED_MEMBERS_KEPT + 1):
        gone = talk.client(f"c{number}", member_id=f"gone-{number}")
        talk.heartbeat(gone, 25, generation=1)
    talk.heartbeat(a)
    assert "M-04" not in refused_stranger(talk)


# ---------------------------------------------------------------------------------------------------- M-05


def test_M_05_fires_on_a_client_that_does_not_use_its_ids(talk: Conversation) -> None:
    client = talk.client("c")
    for _ in range(2):
        client.member_id = ""
        talk.hand_out_id(client)
        talk.wait(600)
    client.member_id = ""
    talk.ask_join(client)
    finding = talk.the("M-05")
    assert finding.severity is Severity.WARNING
    assert finding.certainty is Certainty.CERTAIN
    assert finding.blame is Blame.CLIENT
    assert finding.client_id == "c"
    talk.wait(70_000)
    assert talk.the("M-05").status is Status.RESOLVED


def test_M_05_allows_one_lost_answer(talk: Conversation) -> None:
    client = talk.client("c")
    talk.hand_out_id(client)
    talk.wait(600)
    client.member_id = ""
    talk.ask_join(client)
    assert talk.rules() == []


def test_M_05_allows_several_members_of_one_client_to_ask_at_once(talk: Conversation) -> None:
    client = talk.client("c")
    for _ in range(3):
        client.member_id = ""
        talk.hand_out_id(client)
    assert talk.rules() == []


def test_M_05_allows_a_process_that_starts_anew_on_another_connection(talk: Conversation) -> None:
    for _ in range(4):
        talk.hand_out_id(talk.client("c"))
        talk.wait(600)
    assert talk.rules() == []


def test_M_05_does_not_count_ids_that_have_expired(talk: Conversation) -> None:
    client = talk.client("c")
    for _ in range(4):
        client.member_id = ""
        talk.hand_out_id(client)
        talk.wait(11_000)
    assert talk.rules() == []


# ---------------------------------------------------------------------------------------------------- M-06


def test_M_06_fires_when_a_newcomer_is_let_in_at_once(talk: Conversation) -> None:
    a, b = settled(talk)
    new = talk.client("n")
    asked = talk.ask_join(new)
    talk.joined(asked, generation=4, leader=a, roster=[a, b, new], member_id="n-1")
    finding = talk.the("M-06")
    assert finding.severity is Severity.ERROR
    assert finding.certainty is Certainty.CERTAIN
    assert finding.blame is Blame.BROKER
    talk.wait(70_000)
    assert talk.the("M-06").status is Status.RESOLVED


@pytest.mark.parametrize("case", ["old version", "static", "with an id"])
def test_M_06_fires_when_a_client_is_sent_for_an_id_that_it_needs_not(talk: Conversation, case: str) -> None:
    client = talk.client("c")
    if case == "static":
        client.instance_id = "i"
    if case == "with an id":
        client.member_id = "c-1"
    asked = talk.ask(client, talk.join_request(client), version=3 if case == "old version" else 9)
    talk.refuse_join(asked, 79, "c-2")
    assert "M-06" in talk.rules()


def test_M_06_allows_an_old_client_to_join_at_once(talk: Conversation) -> None:
    client = talk.client("old")
    asked = talk.ask(client, talk.join_request(client), version=3)
    client.member_id = "old-1"
    talk.joined(asked, generation=1, leader=client, roster=[client])
    assert talk.settled_rules() == []


def test_M_06_allows_a_static_member_to_join_at_once(talk: Conversation) -> None:
    client = talk.client("c", instance_id="i")
    talk.round([client], 1)
    assert talk.settled_rules() == []


# ---------------------------------------------------------------------------------------------------- M-07


def twins(talk: Conversation, *, host: str = "10.0.0.2") -> tuple[Client, Client]:
    _, b = settled(talk)
    clone = b.reconnected()
    clone.host = host
    return b, clone


def test_M_07_fires_on_two_hosts_that_act_as_one_member(talk: Conversation) -> None:
    b, clone = twins(talk)
    by_turns(talk, b, clone, 3)
    talk.settle()
    finding = talk.the("M-07")
    assert finding.severity is Severity.WARNING
    assert finding.certainty is Certainty.HEURISTIC
    assert finding.member_id == b.member_id
    assert "10.0.0.1" in finding.observed
    assert "10.0.0.2" in finding.observed
    live(talk, [b], 70)
    assert talk.the("M-07").status is Status.RESOLVED


def test_M_07_waits_for_more_than_two_cycles(talk: Conversation) -> None:
    b, clone = twins(talk)
    by_turns(talk, b, clone, 2)
    assert talk.settled_rules() == []


def test_M_07_allows_several_connections_from_one_host(talk: Conversation) -> None:
    b, other = twins(talk, host="10.0.0.1")
    by_turns(talk, b, other, 6)
    assert talk.settled_rules() == ["T-04"]


def test_M_07_allows_a_client_that_moves_from_address_to_address(talk: Conversation) -> None:
    _, b = settled(talk)
    for number in range(8):
        talk.close(b)
        b = b.reconnected()
        b.host = f"10.0.1.{number % 2}"
        talk.wait(1_500)
        talk.heartbeat(b)
    assert talk.settled_rules() == []


# ---------------------------------------------------------------------------------------------------- M-09


def killed_at_once(talk: Conversation, name: str, number: int, version: int = 9) -> None:
    """So many processes that share a client id and a host are given ids, and die."""
    processes = [talk.client(name) for _ in range(number)]
    for index, process in enumerate(processes):
        asked = talk.ask(process, talk.join_request(process), version=version)
        if version >= 4:
            talk.refuse_join(asked, 79, f"{name}-{index}")
        else:
            process.member_id = f"{name}-{index}"
            talk.joined(asked, generation=20 + index, leader=process, roster=processes[: index + 1])
    for process in processes:
        talk.close(process)
    talk.wait(100)


def test_M_09_fires_on_a_client_that_leaves_ids_behind(talk: Conversation) -> None:
    _, b = settled(talk)
    killed_at_once(talk, "b", 12)
    talk.hand_out_id(talk.client("b"))
    talk.settle()
    finding = talk.the("M-09")
    assert finding.severity is Severity.WARNING
    assert finding.certainty is Certainty.HEURISTIC
    assert "b at 10.0.0.1" in finding.summary
    assert "JoinGroup v" not in finding.summary  # its advice was to use a client that speaks v4, which this one does
    talk.wait(70_000)
    assert talk.the("M-09").status is Status.RESOLVED
    assert b.member_id not in finding.summary


def test_M_09_counts_unused_ids_of_the_same_host_only(talk: Conversation) -> None:
    for number in range(14):
        client = talk.client("app")
        client.host = f"10.0.0.{number % 7}"
        talk.hand_out_id(client)
    assert talk.settled_rules() == []


def test_M_09_allows_members_that_leave(talk: Conversation) -> None:
    for number in range(14):
        client = talk.client("app")
        talk.round([client], 1 + 2 * number)
        talk.leave(client)
        talk.close(client)
    assert talk.settled_rules() == []


def test_M_09_tells_of_an_upgrade_only_to_clients_that_do_not_ask_for_an_id_first(talk: Conversation) -> None:
    killed_at_once(talk, "old", 12, version=3)
    talk.wait(14_000)
    client = talk.client("old")
    asked = talk.ask(client, talk.join_request(client), version=3)
    client.member_id = "old-again"
    talk.joined(asked, generation=40, leader=client, roster=[client])
    talk.settle()
    assert "it uses JoinGroup v3, which cannot ask for an id first" in talk.the("M-09").summary


@pytest.mark.parametrize("removal", ["dropped", "refused", "silent"])
def test_M_09_counts_no_ids_that_the_coordinator_had_removed(talk: Conversation, removal: str) -> None:
    """One process is too slow again and again, and asks for a new id each time that it has lost its own."""
    (a,) = settled(talk, ("a",))
    slow = talk.client("slow")
    for generation in range(4, 40, 2):
        slow.member_id = ""
        talk.round([a, slow], generation)
        if removal == "silent":
            live(talk, [a], 13)
        else:
            live(talk, [a, slow], 2)
        talk.round([a], generation + 1)  # without it
        if removal == "refused":
            talk.heartbeat(slow, 25)
    assert "M-09" not in talk.settled_rules()


# ---------------------------------------------------------------------------------------------------- M-13


def dies_and_comes_back(
    talk: Conversation, others: list[Client], times: int, *, name: str = "b", host: str = "10.0.0.1", instance_id: str | None = None
) -> None:
    """A process joins, works, and dies, and is started again after ever longer pauses."""
    generation = 3
    for number in range(times + 1):
        process = talk.client(name.format(number))
        process.host, process.instance_id = host.format(number), instance_id
        if instance_id is None:
            talk.hand_out_id(process)
        asked = [talk.ask_join(process), *(talk.ask_join(other) for other in others)]
        process.member_id = process.member_id or f"{instance_id}-{number}"
        generation += 1
        complete(talk, asked, generation, others[0], [*others, process])
        talk.sync_all([*others, process])
        live(talk, [*others, process], 2)
        talk.close(process)
        live(talk, others, 5 * (number + 1))


def a_group_of(talk: Conversation, *hosts: str) -> list[Client]:
    clients = [talk.client(f"a{number}") for number in range(len(hosts))]
    for client, host in zip(clients, hosts, strict=True):
        client.host = host
    talk.round(clients, 3)
    return clients


@pytest.mark.parametrize(
    ("identity", "said"),
    [
        ({}, "the same client id and host"),
        ({"instance_id": "slot"}, "the same instance id"),
    ],
)
def test_M_13_fires_on_a_client_that_dies_and_comes_back(talk: Conversation, identity: dict[str, str], said: str) -> None:
    """A crash loop was first told after 130 s, by M-09, as ids left behind."""
    others = a_group_of(talk, "10.0.9.1")
    began_us = talk.now_us
    dies_and_comes_back(talk, others, 3, **identity)
    finding = talk.the("M-13")
    assert (finding.severity, finding.blame) == (Severity.WARNING, Blame.CLIENT)
    assert "without leaving and came back 3 times since" in finding.summary
    assert said in finding.observed
    assert finding.opened_at_us - began_us < 60_000_000
    assert "M-09" not in talk.rules()


def test_M_13_allows_kafka_streams_that_is_restarted_on_purpose(talk: Conversation) -> None:
    """Three restarts of one instance were called a crash loop: Kafka Streams sends no LeaveGroup when it is closed."""
    talk.protocol = "stream"
    dies_and_comes_back(talk, a_group_of(talk, "10.0.9.1"), 5)
    assert "M-13" not in talk.rules()


def test_M_13_tells_of_a_loop_of_kafka_streams_without_calling_each_end_a_crash(talk: Conversation) -> None:
    talk.protocol = "stream"
    dies_and_comes_back(talk, a_group_of(talk, "10.0.9.1"), 6)
    finding = talk.the("M-13")
    assert "test 1.0 closed without leaving group g, as Kafka Streams does, and came back 6 times since" in finding.summary
    assert finding.action.startswith("Find out what stops and starts that process")


def test_M_13_allows_two_returns(talk: Conversation) -> None:
    dies_and_comes_back(talk, a_group_of(talk, "10.0.9.1"), 2)
    assert talk.rules() == ["T-09", "T-04"]


def test_M_13_ignores_processes_that_share_a_client_id_and_are_killed_together_or_one_by_one(talk: Conversation) -> None:
    others = a_group_of(talk, "10.0.9.1")
    processes = [talk.client("app") for _ in range(6)]
    talk.round([*others, *processes], 4)
    for process in processes[:3]:
        talk.close(process)
    new = [talk.client("app") for _ in range(3)]
    for process in new:
        talk.hand_out_id(process)
    for process in processes[3:]:
        talk.close(process)
        talk.wait(500)
        new.append(talk.client("app"))
        talk.hand_out_id(new[-1])
    asked = [talk.ask_join(one) for one in (*others, *new)]
    complete(talk, asked, 5, others[0], [*others, *new])
    talk.sync_all([*others, *new])
    live(talk, [*others, *new], 3)
    assert talk.rules() == []


def test_M_13_allows_members_that_leave(talk: Conversation) -> None:
    others = a_group_of(talk, "10.0.9.1")
    for generation in range(4, 16, 2):
        process = talk.client("b")
        talk.round([*others, process], generation)
        talk.leave(process)
        talk.close(process)
        talk.round(others, generation + 1)
    assert talk.settled_rules() == ["R-06"]


def test_M_13_allows_a_client_that_lost_its_connection_and_its_session(talk: Conversation) -> None:
    """It is told that it is no member any more, and begins anew: nothing died."""
    others = a_group_of(talk, "10.0.9.1")
    process = talk.client("b")
    for generation in range(4, 9):
        process.member_id = ""
        talk.round([*others, process], generation)
        talk.close(process)
        process = process.reconnected()
        live(talk, others, 1)
        talk.heartbeat(process, 25)
        talk.close(process)
        process = process.reconnected()
    assert talk.settled_rules() == ["T-03", "R-07"]


@pytest.mark.parametrize("instance_id", [None, "slot"])
def test_M_13_allows_clients_that_give_up_their_ids_after_a_session_without_a_coordinator(
    talk: Conversation, instance_id: str | None
) -> None:
    """As librdkafka does: a broker that was away for longer than a session, three times, was called a crash loop of its clients."""
    others = a_group_of(talk, "10.0.9.1")
    process = talk.client("b", instance_id=instance_id)
    for generation in range(4, 8):
        process.member_id = others[0].member_id = ""
        talk.round([*others, process], generation)
        for one in (*others, process):
            talk.close(one)
        talk.wait(12_000)
        others, process = [others[0].reconnected()], process.reconnected()
    assert talk.rules() == ["C-14"]


@pytest.mark.parametrize("differs", [{"host": "10.0.7.{}"}, {"name": "b-{}"}])
def test_M_13_knows_no_client_by_its_id_or_its_host_alone(talk: Conversation, differs: dict[str, str]) -> None:
    """A client that had left and come back was named for six deaths of another one on its host, behind one address."""
    dies_and_comes_back(talk, a_group_of(talk, "10.0.9.1"), 6, **differs)
    assert "M-13" not in talk.rules()


def test_M_13_ignores_a_client_that_lives_on_another_connection(talk: Conversation) -> None:
    """Two consumers of one process have one client id: one is dropped and made anew, and the process runs on."""
    others = a_group_of(talk, "10.0.9.1")
    sibling = talk.client("b")
    talk.round([*others, sibling], 4)
    dies_and_comes_back(talk, [*others, sibling], 6)
    assert "M-13" not in talk.rules()


def test_M_13_knows_its_patience_from_the_settings() -> None:
    talk = Conversation(crash_loop_returns=2, crash_loop_ms=8_000)
    dies_and_comes_back(talk, a_group_of(talk, "10.0.9.1"), 5)
    assert talk.rules() == ["T-09", "T-04", "R-07"]
    talk = Conversation(crash_loop_returns=2)
    dies_and_comes_back(talk, a_group_of(talk, "10.0.9.1"), 2)
    assert "M-13" in talk.rules()


def test_M_13_resolves_when_the_client_stays(talk: Conversation) -> None:
    others = a_group_of(talk, "10.0.9.1")
    dies_and_comes_back(talk, others, 3)
    live(talk, others, 310)
    assert talk.the("M-13").status is Status.RESOLVED


# ---------------------------------------------------------------------------------------------------- M-10


def test_M_10_tells_of_a_refused_leave_and_warns_when_it_is_repeated(talk: Conversation) -> None:
    settled(talk)
    script = talk.client("script", member_id="stale")
    talk.leave(script, 25)
    talk.settle()
    assert talk.the("M-10").severity is Severity.INFO
    talk.leave(script, 25)
    talk.leave(script, 25)
    talk.settle()
    finding = talk.the("M-10")
    assert finding.severity is Severity.WARNING
    assert finding.blame is Blame.CLIENT
    assert "3 times" in finding.summary
    talk.wait(70_000)
    assert talk.the("M-10").status is Status.RESOLVED


def test_M_10_reads_the_answer_of_old_versions(talk: Conversation) -> None:
    settled(talk)
    script = talk.client("script")
    body = wire.LeaveGroupRequest(group_id="g", member_id="stale")
    talk.call(script, body, wire.LeaveGroupResponse(error_code=25), version=1)
    assert "M-10" in talk.settled_rules()


def test_M_10_allows_a_leave_to_be_repeated_after_it_was_granted(talk: Conversation) -> None:
    _, b = settled(talk)
    talk.leave(b)
    talk.leave(b.reconnected(), 25)
    assert talk.settled_rules() == []


def test_M_10_allows_a_leave_that_the_coordinator_could_not_take(talk: Conversation) -> None:
    _, b = settled(talk)
    talk.call(b, talk.leave_request(b), wire.LeaveGroupResponse(error_code=30))
    assert talk.settled_rules() == []


@pytest.mark.parametrize("version", [1, 5])
def test_M_10_allows_a_leave_that_names_no_member(talk: Conversation, version: int) -> None:
    """Librdkafka leaves with an empty member id when it closes before its first JoinGroup was answered."""
    settled(talk)
    nameless = talk.client("nameless")
    if version < 3:
        body, answer = wire.LeaveGroupRequest(group_id="g", member_id=""), wire.LeaveGroupResponse(error_code=25)
    else:
        body = wire.LeaveGroupRequest(group_id="g", members=(wire.LeaveGroupRequestMemberIdentity(member_id=""),))
        answer = wire.LeaveGroupResponse(members=(wire.LeaveGroupResponseMemberResponse(member_id="", error_code=25),))
    talk.call(nameless, body, answer, version=version)
    assert talk.settled_rules() == []


def test_few_refused_leaves_are_kept(talk: Conversation) -> None:
    settled(talk)
    for number in range(LEAVES_KEPT + 4):
        script = talk.client("script", member_id=f"stale-{number}")
        talk.leave(script, 25)
    assert len(talk.model.groups.opened(("c1", "g"))[0].member_identity.refused_leaves) == LEAVES_KEPT


# ---------------------------------------------------------------------------------------------------- M-11


def pair(talk: Conversation, **fields: Any) -> tuple[Client, Client, Client]:
    """A leader and two static members."""
    lead, one, two = talk.client("lead"), talk.client("one", instance_id="i-1"), talk.client("two", instance_id="i-2")
    talk.round([lead, one, two], 3, **fields)
    talk.wait(1_000)
    return lead, one, two


def test_M_11_fires_when_a_member_is_accepted_under_anothers_instance_id(talk: Conversation) -> None:
    _, one, two = pair(talk)
    one.instance_id = "i-2"
    talk.heartbeat(one)
    talk.settle()
    finding = talk.the("M-11")
    assert finding.severity is Severity.CRITICAL
    assert finding.blame is Blame.BROKER
    assert finding.member_id == one.member_id
    assert two.member_id in finding.summary
    talk.wait(70_000)
    assert talk.the("M-11").status is Status.RESOLVED


def test_M_11_fires_on_a_commit_too(talk: Conversation) -> None:
    _, one, _ = pair(talk)
    one.instance_id = "i-2"
    talk.commit(one, 25)
    assert talk.settled_rules() == ["S-07"]
    talk.commit(one)
    assert "M-11" in talk.settled_rules()


def test_M_11_fires_on_an_instance_id_that_nobody_holds_from_brokers_that_check_it(talk: Conversation) -> None:
    _, one, _ = pair(talk)
    one.instance_id = "unheard-of"
    talk.heartbeat(one)
    talk.settle()
    assert "belongs to nobody" in talk.the("M-11").summary


def test_M_11_allows_it_to_brokers_that_may_be_too_old_to_check(talk: Conversation) -> None:
    lead, one = talk.client("lead"), talk.client("one", instance_id="i-1")
    lead.member_id, one.member_id = "m-lead", "m-one"
    asked = [talk.ask(client, talk.join_request(client), version=7) for client in (lead, one)]
    complete(talk, asked, 3, lead, [lead, one])
    talk.call(lead, talk.sync_request(lead, [lead, one]), talk.synced())
    one.instance_id = "unheard-of"
    talk.heartbeat(one)
    assert talk.settled_rules() == ["S-07"]


def test_M_11_allows_a_refusal(talk: Conversation) -> None:
    _, one, _ = pair(talk)
    one.instance_id = "i-2"
    talk.heartbeat(one, 82)
    assert talk.settled_rules() == ["S-07"]


def test_M_11_does_not_judge_a_dynamic_member_of_an_unknown_kind(talk: Conversation) -> None:
    lead, _, _ = pair(talk)
    lead.instance_id = "unheard-of"
    talk.heartbeat(lead)
    assert talk.settled_rules() == []


def test_M_11_needs_the_holder_to_be_settled(talk: Conversation) -> None:
    lead, one, two = talk.client("lead"), talk.client("one", instance_id="i-1"), talk.client("two", instance_id="i-2")
    talk.join_all([lead, one, two], 3)
    one.instance_id = "i-2"
    talk.heartbeat(one)
    assert talk.settled_rules() == ["S-07"]


def test_M_11_keeps_no_request_in_mind_that_will_not_be_answered(talk: Conversation) -> None:
    _, one, two = pair(talk)
    body = wire.HeartbeatRequest(group_id="g", generation_id=3, member_id=one.member_id, group_instance_id="i-2")
    talk.ask(one, body)
    talk.close(one)
    one = one.reconnected()
    one.instance_id = "i-2"
    talk.heartbeat(one, 82)
    talk.heartbeat(two)
    assert talk.settled_rules() == ["S-07"]
    assert talk.model.groups.opened(("c1", "g"))[0].member_identity.mismatched == ()


# ---------------------------------------------------------------------------------------------------- M-12


def test_M_12_fires_when_a_member_is_put_out_of_a_full_group(talk: Conversation) -> None:
    _, b = settled(talk)
    talk.refuse_join(talk.ask_join(b), 81)
    talk.settle()
    finding = talk.the("M-12")
    assert finding.severity is Severity.WARNING
    assert finding.blame is Blame.CONFIG
    assert finding.member_id == b.member_id
    assert "2 members" in finding.summary
    talk.wait(70_000)
    assert talk.the("M-12").status is Status.RESOLVED


def test_M_12_does_not_tell_a_size_that_is_not_known(talk: Conversation) -> None:
    b = talk.client("b", member_id="m-b", generation=3)
    talk.heartbeat(b)
    talk.refuse_join(talk.ask_join(b), 81)
    talk.settle()
    assert talk.the("M-12").summary.endswith("full.")


def test_M_12_is_no_matter_of_newcomers(talk: Conversation) -> None:
    settled(talk)
    new = talk.client("n")
    talk.hand_out_id(new)
    talk.refuse_join(talk.ask_join(new), 81)
    talk.refuse_join(talk.ask_join(talk.client("m")), 81)
    assert talk.settled_rules() == []


# ---------------------------------------------------------------------------------------------------- snapshots

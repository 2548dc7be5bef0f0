"""Family R, third part: a group in which nobody consumes. What fires it, what must keep it quiet, what resolves it."""

from __future__ import annotations

import pytest

from coordinator_model import wire
from coordinator_model.finding import Blame, Certainty, Severity, Status
from coordinator_model.rules.join_phase import RESTART_THE_BROKER
from coordinator_model.wording import clock
from tests.coordinator_model.classic import beat, complete, live
from tests.coordinator_model.conversation import Client, Conversation, subscription
from tests.coordinator_model.rules.standstill import PATIENT, patient, replacement


def test_R_18_fires_when_a_group_waits_for_one_that_died_without_leaving(talk: Conversation) -> None:
    """A group of two stood still for 42 s, its session timeout less 3 s, and nothing above info was said."""
    a, b = patient(talk, "a", "b")
    talk.close(b)
    died_us = talk.now_us
    talk.wait(3_000)
    replacement(talk, "b")
    talk.heartbeat(a, 27)
    rejoined_us = talk.now_us
    talk.ask_join(a, **PATIENT)
    talk.wait(19_900)
    assert talk.rules() == ["T-09"]
    talk.wait(1_100)
    finding = talk.the("R-18")
    assert (finding.severity, finding.certainty, finding.blame) == (Severity.WARNING, Certainty.CONFIRMED, Blame.CLIENT)
    assert (finding.member_id, finding.client_id, finding.generation) == (b.member_id, "b", 3)
    assert f"since {clock(rejoined_us)}, 20.0 s, 2 members hold no partitions and wait for member {b.member_id}" in finding.summary
    assert f"died without leaving: its connection closed at {clock(died_us)}, and its session of 45.0 s" in finding.summary
    assert talk.rules() == ["T-09", "R-18"]


def one_does_not_rejoin(talk: Conversation, seconds: int) -> Client:
    """Two of three wait for it, while it heartbeats."""
    a, b, c = patient(talk, "a", "b", "c")
    talk.heartbeat(a, 27)
    for one in (a, c):
        talk.ask_join(one, **PATIENT)
    beat(talk, [b], seconds, 27)
    return b


def test_R_18_names_a_member_that_heartbeats_and_does_not_rejoin(talk: Conversation) -> None:
    b = one_does_not_rejoin(talk, 22)
    finding = talk.the("R-18")
    assert finding.member_id == b.member_id
    assert "2 members hold no partitions and wait for member" in finding.summary
    assert "which heartbeats and does not rejoin, though it was told to since" in finding.summary
    assert talk.rules() == ["R-18"]


def test_R_18_names_the_leader_that_sends_no_assignment(talk: Conversation) -> None:
    a, b = patient(talk, "a", "b")
    complete(talk, [talk.ask_join(one, **PATIENT) for one in (a, b)], 4, a, [a, b])
    talk.ask(b, talk.sync_request(b, []))
    live(talk, [a], 21)
    finding = talk.the("R-18")
    assert (finding.member_id, finding.blame) == (a.member_id, Blame.CLIENT)
    assert f"1 member holds no partitions and waits for the assignment of the leader, member {a.member_id}" in finding.summary
    assert finding.action.startswith("Look at the process of the client named.")
    assert talk.rules() == ["R-18"]


def test_R_18_names_the_coordinator_when_everybody_has_asked(talk: Conversation) -> None:
    clients = patient(talk, "a", "b")
    for one in clients:
        talk.ask_join(one, **PATIENT)
    talk.wait(21_000)
    finding = talk.the("R-18")
    assert (finding.member_id, finding.blame) == (None, Blame.BROKER)
    assert "every known member has asked to join" in finding.summary
    assert finding.action == RESTART_THE_BROKER


def test_R_18_blames_no_broker_for_a_join_phase_that_members_prolong_by_coming(talk: Conversation) -> None:
    """The initial delay of a group that was empty begins again with each member that comes."""
    for client in patient(talk, "a", "b"):
        talk.leave(client)
        talk.close(client)
    for number in range(11):
        replacement(talk, f"new-{number}")
        talk.wait(2_000)
    finding = talk.the("R-18")
    assert (finding.blame, finding.member_id) == (Blame.CONFIG, None)
    assert "began in an empty group and lasts longer while members come" in finding.summary
    assert finding.action.startswith("Nothing, if the group has just been started")


def test_R_18_is_heuristic_where_one_that_is_waited_for_was_never_seen(talk: Conversation) -> None:
    a, unseen = talk.client("a"), talk.client("unseen", member_id="unseen-1")
    talk.hand_out_id(a)
    talk.joined(talk.ask_join(a, **PATIENT), generation=3, leader=a, roster=[a, unseen])
    talk.sync_all([a])
    talk.ask_join(a, **PATIENT)
    talk.wait(21_000)
    finding = talk.the("R-18")
    assert finding.certainty is Certainty.HEURISTIC
    assert "unseen-1 (client without a client id), of which no frame was captured" in finding.summary


def test_R_18_names_an_id_that_nobody_uses(talk: Conversation) -> None:
    clients = patient(talk, "a", "b")
    ghost = talk.client("ghost")
    talk.hand_out_id(ghost)
    talk.close(ghost)
    for one in clients:
        talk.ask_join(one, **PATIENT)
    talk.wait(21_000)
    assert f"wait for {ghost.member_id}, an id that was issued to" in talk.the("R-18").summary
    assert talk.the("R-18").member_id == ghost.member_id


def test_R_18_blames_none_of_several_ids_that_nobody_uses(talk: Conversation) -> None:
    clients, ghosts = patient(talk, "a", "b"), [talk.client("ghost"), talk.client("other")]
    for ghost in ghosts:
        talk.hand_out_id(ghost)
        talk.close(ghost)
    for one in clients:
        talk.ask_join(one, **PATIENT)
    talk.wait(21_000)
    finding = talk.the("R-18")
    assert all(ghost.member_id in finding.summary for ghost in ghosts)
    assert (finding.member_id, finding.client_id) == (None, None)


def test_R_18_blames_none_of_several_that_died(talk: Conversation) -> None:
    a, *dead = patient(talk, "a", "b", "c")
    for one in dead:
        talk.close(one)
    talk.heartbeat(a, 27)
    talk.ask_join(a, **PATIENT)
    talk.wait(21_000)
    finding = talk.the("R-18")
    assert all(one.member_id in finding.summary for one in dead)
    assert (finding.member_id, finding.client_id, finding.blame) == (None, None, Blame.CLIENT)


def test_R_18_counts_from_when_the_members_gave_up_their_partitions_over_several_generations(talk: Conversation) -> None:
    """Each generation was given up before anybody was told what to read in it."""
    a, b = patient(talk, "a", "b")
    for generation in (4, 5, 6, 7):
        asked = [talk.ask_join(one, **PATIENT) for one in (a, b)]
        talk.wait(6_000)
        complete(talk, asked, generation, a, [a, b])
    for one in (a, b):
        talk.ask_join(one, **PATIENT)
    talk.wait(200)
    assert "20.0 s, 2 members" in talk.the("R-18").summary


def test_R_18_is_told_again_after_twice_the_time_and_resolves_when_partitions_are_assigned(talk: Conversation) -> None:
    a, b = patient(talk, "a", "b")
    talk.close(b)
    asked = talk.ask_join(a, **PATIENT)
    talk.wait(41_000)
    events = [event for event in talk.findings if event.rule == "R-18"]
    told = [(event.status, event.severity, event.count, "20.0 s" in event.summary, "40.0 s" in event.summary) for event in events]
    assert told == [
        (Status.OPEN, Severity.WARNING, 1, True, False),
        (Status.UPDATE, Severity.ERROR, 2, False, True),
    ]
    complete(talk, [asked], 4, a, [a])
    talk.sync_all([a])
    live(talk, [a], 2)
    assert talk.the("R-18").status is Status.RESOLVED


def test_R_18_stays_a_warning_while_a_member_that_is_waited_for_may_be_at_work(talk: Conversation) -> None:
    one_does_not_rejoin(talk, 42)
    assert (talk.the("R-18").severity, talk.the("R-18").count) == (Severity.WARNING, 2)


def test_R_18_does_not_count_the_time_before_the_members_came_back(talk: Conversation) -> None:
    """All were stopped in the middle of a join phase, and start half a minute later: until then nobody waited."""
    a, b = patient(talk, "a", "b", static=True)
    for one in (a, b):
        talk.ask_join(one, **PATIENT)
    for one in (a, b):
        talk.close(one)
    talk.wait(30_000)
    again = talk.client("a", instance_id="i-a")
    talk.ask_join(again, **PATIENT)
    talk.wait(19_000)
    assert "R-18" not in talk.rules()
    talk.wait(2_000)
    assert "20.0 s, 1 member holds no partitions and waits for" in talk.the("R-18").summary


def test_R_18_is_one_finding_while_clients_give_up_their_joins_and_ask_again(talk: Conversation) -> None:
    """Clients that close idle connections made five findings of one standstill, each said to be over."""
    slow, b, c = patient(talk, "slow", "b", "c")
    talk.heartbeat(slow, 27)
    for _ in range(10):
        asked = [talk.ask_join(one, **PATIENT) for one in (b, c)]
        beat(talk, [slow], 4, 27)
        for one in (b, c):
            talk.close(one)
        talk.wait(1_100)
        b, c = b.reconnected(), c.reconnected()
    asked = [talk.ask_join(one, **PATIENT) for one in (slow, b, c)]
    events = [(event.status, event.count) for event in talk.findings if event.rule == "R-18"]
    assert events[0] == (Status.OPEN, 1)
    assert "2 members hold no partitions and wait for member" in talk.the("R-18").summary
    assert Status.RESOLVED not in [status for status, _ in events]
    complete(talk, asked, 4, slow, [slow, b, c])
    talk.sync_all([slow, b, c])
    live(talk, [slow, b, c], 2)
    assert talk.the("R-18").status is Status.RESOLVED


@pytest.mark.parametrize("restored", [False, True])
def test_R_18_that_comes_again_within_a_minute_is_one_finding_with_a_count(talk: Conversation, *, restored: bool) -> None:
    """A member that dies each time it is given a partition made 22 alerts within 16 minutes."""
    a, b = patient(talk, "a", "b")
    for generation in (4, 6):
        talk.close(b)
        talk.wait(1_000)
        replaced = replacement(talk, "b")
        asked = talk.ask_join(a, **PATIENT)
        talk.wait(25_000)
        b = replaced.client
        complete(talk, [asked, replaced], generation, a, [a, b])
        talk.sync_all([a, b])
        live(talk, [a, b], 2)
    live(talk, [a, b], 61)
    found = talk.found_when_restored() if restored else talk.findings
    events = [(event.status, event.count) for event in found if event.rule == "R-18"]
    assert len({event.id for event in found if event.rule == "R-18"}) == 1
    assert events == [(Status.OPEN, 1), (Status.RESOLVED, 1), (Status.UPDATE, 2), (Status.RESOLVED, 2)]


def test_R_18_that_comes_again_after_a_minute_is_another_finding(talk: Conversation) -> None:
    a, b = patient(talk, "a", "b")
    for generation in (4, 5):
        talk.heartbeat(b, 27)
        asked = talk.ask_join(a, **PATIENT)
        beat(talk, [b], 22, 27)
        complete(talk, [asked, talk.ask_join(b, **PATIENT)], generation, a, [a, b])
        talk.sync_all([a, b])
        live(talk, [a, b], 65)
    assert len({event.id for event in talk.findings if event.rule == "R-18"}) == 2


def test_R_18_knows_its_patience_from_the_settings() -> None:
    talk = Conversation(standstill_ms=5_000)
    a, b = patient(talk, "a", "b")
    talk.close(b)
    talk.ask_join(a, **PATIENT)
    talk.wait(5_500)
    assert sorted(talk.rules()) == ["R-18", "T-09"]


def test_R_18_allows_a_newcomer_that_waits_for_members_at_work(talk: Conversation) -> None:
    members = patient(talk, "a", "b", "c")
    replacement(talk, "d")
    beat(talk, members, 30, 27)
    assert talk.rules() == []


def test_R_18_allows_one_member_that_waits_for_several_at_work(talk: Conversation) -> None:
    a, *others = patient(talk, "a", "b", "c")
    talk.ask_join(a, **PATIENT)
    beat(talk, others, 30, 27)
    assert talk.rules() == []


def test_R_18_ignores_cooperative_members_that_keep_their_partitions(talk: Conversation) -> None:
    a, b = patient(talk, "a", "b")
    owned = wire.ConsumerProtocolSubscriptionTopicPartition(topic="t", partitions=(0, 1))
    metadata = subscription("t", owned_partitions=(owned,))
    offered = wire.JoinGroupRequestProtocol(name="cooperative-sticky", metadata=metadata)
    talk.close(b)
    talk.ask_join(a, protocols=(offered,), **PATIENT)
    talk.wait(30_000)
    assert talk.rules() == ["T-09"]


@pytest.mark.parametrize("why", ["loss", "failover", "unknown members"])
def test_R_18_needs_to_know_the_members_and_how_long_they_wait(talk: Conversation, why: str) -> None:
    if why == "unknown members":
        a = talk.client("a", member_id="m-a")
    else:
        a, b = patient(talk, "a", "b")
        talk.close(b)
    talk.ask_join(a, **PATIENT)
    talk.wait(10_000)
    if why == "loss":
        talk.lose(3)
    elif why == "failover":
        talk.heartbeat(talk.client("b"), 16)
    talk.wait(15_000)
    assert "R-18" not in talk.rules()


def test_R_18_is_not_about_a_group_that_settles(talk: Conversation) -> None:
    clients = patient(talk, "a", "b")
    for generation in range(4, 10):
        asked = [talk.ask_join(one, **PATIENT) for one in clients]
        talk.wait(15_000)
        complete(talk, asked, generation, clients[0], clients)
        talk.sync_all(clients)
        live(talk, clients, 3)
    assert talk.rules() == ["R-07"]


def test_R_18_counts_static_members_that_are_away_as_waited_for(talk: Conversation) -> None:
    a, b = patient(talk, "a", "b", static=True)
    talk.close(b)
    talk.ask_join(a, **PATIENT)
    talk.wait(21_000)
    assert talk.the("R-18").instance_id == "i-b"

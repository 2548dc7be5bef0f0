"""Family R, the assignment phase: what fires each rule, what must keep it quiet, what resolves it."""

from __future__ import annotations

import pytest

from coordinator_model import wire
from coordinator_model.finding import Blame, Severity, Status
from coordinator_model.wording import clock
from tests.coordinator_model.classic import ask_heartbeat, completing_rebalance, live, settled, told_to_rejoin
from tests.coordinator_model.conversation import Conversation


def test_R_02_warns_at_half_time_and_names_the_leader(talk: Conversation) -> None:
    a, b = completing_rebalance(talk)
    waiting = talk.ask(b, talk.sync_request(b, []))
    live(talk, [a], 11)
    finding = talk.the("R-02")
    assert finding.severity is Severity.WARNING
    assert finding.client_id == "a"
    talk.answer(waiting, talk.synced(27))
    talk.round([b], 4)
    talk.wait(1_000)
    assert talk.the("R-02").status is Status.RESOLVED


def test_R_02_becomes_an_error_past_the_timeout(talk: Conversation) -> None:
    a, b = completing_rebalance(talk)
    talk.ask(b, talk.sync_request(b, []))
    live(talk, [a], 26)
    assert talk.the("R-02").severity is Severity.ERROR


def test_R_02_is_no_matter_of_a_leader_whose_connection_ended(talk: Conversation) -> None:
    a, b = completing_rebalance(talk)
    talk.ask(b, talk.sync_request(b, []))
    talk.close(a)
    talk.wait(11_500)
    assert talk.rules() == ["T-09"]


def test_R_03_warns_about_a_follower_that_does_not_sync(talk: Conversation) -> None:
    a, b = completing_rebalance(talk)
    talk.call(a, talk.sync_request(a, [a, b]), talk.synced())
    live(talk, [a, b], 12)
    finding = talk.the("R-03")
    assert finding.client_id == "b"
    assert finding.severity is Severity.WARNING
    talk.call(b, talk.sync_request(b, []), talk.synced())
    talk.wait(1_000)
    assert talk.the("R-03").status is Status.RESOLVED


@pytest.mark.parametrize("instead", ["hangs up", "joins again"])
def test_R_03_allows_a_follower_that_does_something_else(talk: Conversation, instead: str) -> None:
    a, b = completing_rebalance(talk)
    talk.call(a, talk.sync_request(a, [a, b]), talk.synced())
    if instead == "hangs up":
        talk.close(b)
    else:
        talk.ask_join(b.reconnected())
    live(talk, [a], 30)
    assert "R-03" not in talk.rules()


def test_R_04_fires_when_the_assignment_is_sent_and_nobody_is_answered(talk: Conversation) -> None:
    a, b = completing_rebalance(talk)
    waiting = [talk.ask(b, talk.sync_request(b, [])), talk.ask(a, talk.sync_request(a, [a, b]))]
    talk.wait(13_000)
    assert talk.the("R-04").blame is Blame.BROKER
    for one in waiting:
        talk.answer(one, talk.synced())
    talk.wait(1_000)
    assert talk.the("R-04").status is Status.RESOLVED


@pytest.mark.parametrize(("comes_back", "said"), [(False, ["C-14"]), (True, ["C-14", "R-04"])])
def test_R_04_leaves_a_coordinator_to_C_14_that_answers_no_group_until_it_answers_one(
    talk: Conversation, *, comes_back: bool, said: list[str]
) -> None:
    """Seen on 4.3.1: the process stood still for 9 s."""
    talk.group = "h"
    beside = settled(talk)
    talk.group = "g"
    a, b = completing_rebalance(talk)
    talk.group = "h"
    heartbeats = [ask_heartbeat(talk, one) for one in beside]
    talk.group = "g"
    for one, roster in ((b, []), (a, [a, b])):
        talk.ask(one, talk.sync_request(one, roster))
    talk.wait(15_000)
    assert talk.rules() == ["C-14"]
    if comes_back:
        for one in heartbeats:
            talk.answer(one, wire.HeartbeatResponse())
    talk.wait(13_000)
    assert [rule for rule in talk.rules() if rule in {"C-14", "R-04"}] == said


def test_R_04_owes_nothing_to_closed_connections(talk: Conversation) -> None:
    a, b = completing_rebalance(talk)
    talk.ask(a, talk.sync_request(a, [a, b]))
    talk.close(a)
    talk.wait(9_000)
    assert talk.rules() == []


# ---------------------------------------------------------------------------------------------------- their guards


@pytest.mark.parametrize(("rule", "silent"), [("R-02", 0), ("R-03", 1)])
def test_R_02_and_R_03_have_no_error_where_the_timeout_bounds_nothing(talk: Conversation, rule: str, silent: int) -> None:
    pair = completing_rebalance(talk, rebalance_timeout_ms=2**31 - 1)
    other = pair[1 - silent]
    talk.ask(other, talk.sync_request(other, pair if silent else []))
    live(talk, [pair[silent]], 700)
    found = [(finding.rule, finding.severity) for finding in talk.findings if finding.rule in {"R-02", "R-03"}]
    assert found == [(rule, Severity.WARNING)]


def test_R_02_is_no_matter_of_a_leader_that_hung_up_after_a_heartbeat(talk: Conversation) -> None:
    a, b = completing_rebalance(talk, session_timeout_ms=60_000)
    talk.wait(1_000)
    talk.heartbeat(a)
    talk.close(a)
    talk.ask(b, talk.sync_request(b, []))
    talk.wait(15_000)
    assert talk.rules() == ["P-10", "T-09"]


def test_R_03_names_a_follower_although_the_leader_hangs_too(talk: Conversation) -> None:
    a, b = completing_rebalance(talk)
    live(talk, [a, b], 12)
    assert {talk.the("R-02").client_id, talk.the("R-03").client_id} == {"a", "b"}


def test_R_02_tells_how_many_wait_and_since_when(talk: Conversation) -> None:
    a, b, c = completing_rebalance(talk, ("a", "b", "c"))
    first_us = talk.now_us - 2_000  # the first of three was answered
    live(talk, [a, b, c], 12)
    assert f"members have waited for its SyncGroup since {clock(first_us)} (" in talk.the("R-02").summary


def test_R_02_does_not_count_the_leader_among_those_that_wait_for_it(talk: Conversation) -> None:
    """It said "3 members wait" of two, and "0 members wait" where the roster was not captured."""
    a, b, c = completing_rebalance(talk, ("a", "b", "c"))
    for follower in (b, c):
        talk.ask(follower, talk.sync_request(follower, []))
    live(talk, [a], 12)
    assert ": 2 other members have waited for its SyncGroup" in talk.the("R-02").summary


@pytest.mark.parametrize("roster", ["of the leader alone", "not known"])
def test_R_02_counts_nobody_where_the_leader_is_alone_or_the_roster_is_not_known(talk: Conversation, roster: str) -> None:
    """It said "0 other members wait"."""
    a = talk.client("a")
    talk.hand_out_id(a)
    talk.joined(talk.ask_join(a), generation=3, leader=a, roster=[a] if roster == "of the leader alone" else [])
    live(talk, [a], 12)
    assert "has sent no assignment: the group has waited for its SyncGroup since" in talk.the("R-02").summary


def test_R_08_tells_how_many_wait_and_since_when(talk: Conversation) -> None:
    """It told of the member alone, and not that the others had stood still for 11 s."""
    a, b, c = settled(talk, ("a", "b", "c"))
    waiting_us = talk.now_us
    talk.ask_join(a)
    talk.ask_join(c)
    told_to_rejoin(talk, b, 13)
    assert f"2 others have waited for it since {clock(waiting_us)}, 11." in talk.the("R-08").summary


def test_R_08_notes_a_member_for_which_nobody_is_known_to_wait(talk: Conversation) -> None:
    """A capture that begins within a long join phase has not the requests of those who wait; it was a warning."""
    b = talk.client("b", member_id="b-1", generation=7)
    told_to_rejoin(talk, b, 400)
    finding = talk.the("R-08")
    assert finding.severity is Severity.INFO
    assert " ago, and nobody is known to wait for it; the coordinator waits for up to " in finding.summary


# ---------------------------------------------------------------------------------------------------- its guards


def test_R_04_waits_until_the_leaders_request_is_in_hand(talk: Conversation) -> None:
    a, b = completing_rebalance(talk)
    ahead = talk.ask(a, talk.join_request(talk.client("x"), member_id=""))
    talk.ask(a, talk.sync_request(a, [a, b]))
    talk.wait(9_000)
    assert talk.rules() == []
    talk.refuse_join(ahead, 79, "x-1")
    talk.wait(6_000)
    assert talk.rules() == ["R-03", "T-04"]
    talk.wait(7_000)
    assert talk.the("R-04").blame is Blame.BROKER


def test_R_04_is_not_certain_of_a_request_whose_connection_ended(talk: Conversation) -> None:
    a, b = completing_rebalance(talk)
    talk.ask(b, talk.sync_request(b, []))
    talk.ask(a, talk.sync_request(a, [a, b]))
    talk.close(a)
    talk.wait(9_500)
    assert talk.rules() == []

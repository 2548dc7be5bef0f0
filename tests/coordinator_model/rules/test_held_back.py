"""Members that their broker keeps waiting, or throttles, are blamed for nothing; nor are those that may not have got an answer."""

from __future__ import annotations

import pytest

from coordinator_model import wire
from coordinator_model.finding import Blame, Certainty
from coordinator_model.wording import clock
from tests.coordinator_model.classic import ask_heartbeat, beat, complete, completing_rebalance, live, settled
from tests.coordinator_model.conversation import Conversation
from tests.coordinator_model.epoch_groups import joined_pair
from tests.coordinator_model.epochs import Epochs, foo


@pytest.mark.parametrize("held", ["unanswered", "throttled"])
def test_R_02_and_R_03_blame_no_member_that_its_broker_keeps_waiting(talk: Conversation, held: str) -> None:
    a, b = completing_rebalance(talk)
    if held == "unanswered":
        for one in (a, b):
            ask_heartbeat(talk, one)
    else:
        for one in (a, b):
            talk.heartbeat(one, throttle_ms=13_000)
    talk.wait(12_900)
    assert [rule for rule in talk.rules() if rule in {"R-02", "R-03"}] == []


@pytest.mark.parametrize(
    ("held", "said"), [("unanswered", "has not answered a Heartbeat since"), ("throttled", "throttles clients")]
)
def test_R_01_and_R_18_blame_the_broker_that_keeps_the_missing_member_waiting(talk: Conversation, held: str, said: str) -> None:
    a, b = settled(talk, session_timeout_ms=60_000)
    if held == "unanswered":
        ask_heartbeat(talk, b)
    else:
        talk.heartbeat(b, throttle_ms=25_000)
    talk.ask_join(a, session_timeout_ms=60_000)
    talk.wait(20_500)
    for rule in ("R-01", "R-18"):
        finding = talk.the(rule)
        assert (finding.blame, finding.member_id) == (Blame.BROKER, None)
        assert said in finding.summary
        assert "Look at the broker" in finding.action


def test_R_18_names_the_member_again_that_is_answered(talk: Conversation) -> None:
    a, b = settled(talk, session_timeout_ms=60_000)
    asked = ask_heartbeat(talk, b)
    talk.ask_join(a, session_timeout_ms=60_000)
    talk.wait(5_000)
    talk.answer(asked, wire.HeartbeatResponse(error_code=27))
    beat(talk, [b], 16, 27)
    assert (talk.the("R-18").blame, talk.the("R-18").member_id) == (Blame.CLIENT, b.member_id)


@pytest.mark.parametrize("held", ["", "unanswered", "throttled"])
def test_R_14_blames_no_member_that_its_broker_keeps_waiting(talk: Epochs, held: str) -> None:
    a, _ = joined_pair(talk)
    throttle_ms = 30_000 if held == "throttled" else 0
    talk.call(a, talk.beat_request(a, 2), talk.given(a, 2, foo(0), throttle_time_ms=throttle_ms))
    if held == "unanswered":
        talk.ask_beat(a, epoch=2)
    talk.wait(40_000)
    assert [rule for rule in talk.rules() if rule == "R-14"] == ([] if held else ["R-14"])


def test_R_03_says_that_an_answer_may_be_lost_where_nothing_came_since(talk: Conversation) -> None:
    """A load balancer had forgotten the connection while the JoinGroup waited."""
    a, b = settled(talk, session_timeout_ms=60_000)
    c = talk.client("c")
    talk.hand_out_id(c)
    asked_us = talk.now_us
    asked = [talk.ask_join(c)]
    live(talk, [a, b], 13)
    asked += [talk.ask_join(one, session_timeout_ms=60_000) for one in (a, b)]
    complete(talk, asked, 4, a, [a, b, c])
    talk.sync_all([a, b])
    live(talk, [a, b], 9)
    live(talk, [a, b], 3)
    finding = talk.the("R-03")
    assert finding.certainty is Certainty.HEURISTIC
    assert f"was answered after 13.0 s, at {clock(asked_us + 13_000_000)}, with generation 4 of group g" in finding.summary
    assert "so that the answer may be lost" in finding.summary
    assert f"its last frame was a JoinGroup at {clock(asked_us)}" in finding.observed
    assert "load balancer" in finding.action

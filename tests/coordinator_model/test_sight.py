"""Times in which the capture saw nothing: whatever falls due on account of them is nobody's doing."""

from __future__ import annotations

import pytest

from coordinator_model import wire
from coordinator_model.finding import Blame, Certainty, Severity, Status
from coordinator_model.wire.record import Cause, Kind, Loss, pack_loss
from tests.coordinator_model.classic import beat, complete, completing_rebalance, settled
from tests.coordinator_model.conversation import Asked, Client, Conversation

SECOND_US = 1_000_000


def members(talk: Conversation) -> list[Client]:
    """Two members of generation 3 that have heartbeaten for a while."""
    clients = settled(talk)
    beat(talk, clients, 10)
    return clients


def blind(talk: Conversation, seconds: float) -> None:
    """Time passes, and nothing at all is captured of it, not even a tick."""
    talk.now_us += int(seconds * SECOND_US)


def test_a_gap_makes_no_member_silent(talk: Conversation) -> None:
    """The tap could not write for 31 s: all members were called dead, at a session of 10 s."""
    clients = members(talk)
    began_us = talk.now_us
    blind(talk, 31)
    talk._feed(Kind.GAP, None, pack_loss(Loss(60, 6_000, began_us, talk.now_us)))
    beat(talk, clients, 30)
    assert talk.rules() == ["V-04"]


def test_what_is_due_before_a_gap_is_said_before_it(talk: Conversation) -> None:
    a, b = members(talk)
    beat(talk, [a], 12)
    dead_us = talk.now_us + 3 * SECOND_US
    talk.now_us = dead_us + 20 * SECOND_US
    talk._feed(Kind.GAP, None, pack_loss(Loss(60, 6_000, dead_us, talk.now_us)))
    assert talk.settled_rules() == ["T-04", "V-04"]
    assert talk.the("T-04").member_id == b.member_id
    assert talk.the("T-04").opened_at_us < dead_us


def test_a_mirror_whose_first_record_after_silence_is_a_gap_makes_no_member_silent(talk: Conversation) -> None:
    """The tap was away for a minute, and lost a second more when it came back: what fell due in that minute was said of everybody."""
    clients = members(talk)
    blind(talk, 60)
    began_us = talk.now_us
    blind(talk, 1)
    talk._feed(Kind.GAP, None, pack_loss(Loss(2, 200, began_us, talk.now_us)))
    beat(talk, clients, 30)
    assert talk.rules() == ["V-04"]


def test_a_blind_time_and_a_gap_after_it_put_off_together_what_was_due_in_them(talk: Conversation) -> None:
    """Clients may have found their coordinator in the 9 s that were not captured, and show it in a moment."""
    clients = members(talk)
    for client in clients:
        talk.close(client)
    talk.wait(500)
    for client in clients:
        talk.ask(client.reconnected("2"), wire.FindCoordinatorRequest(coordinator_keys=("g",)))
    blind(talk, 8)
    began_us = talk.now_us
    blind(talk, 1)
    talk._feed(Kind.GAP, None, pack_loss(Loss(1, 100, began_us, talk.now_us)))
    talk.wait(4_000)
    assert talk.rules() == ["V-04"]
    talk.wait(3_000)
    assert talk.rules() == ["V-04", "C-14"]


def test_a_gap_that_cannot_be_read_makes_no_member_silent(talk: Conversation) -> None:
    clients = members(talk)
    blind(talk, 31)
    talk._feed(Kind.GAP, None, b"no loss")
    beat(talk, clients, 30)
    assert talk.rules() == ["V-04"]


def test_a_restart_of_the_tap_makes_no_member_silent(talk: Conversation) -> None:
    """Eight seconds without a tick, all connections new: three restarts within a quarter of an hour said T-01 of everybody."""
    clients = members(talk)
    for _ in range(4):
        for client in clients:
            talk.close(client)
        blind(talk, 8.5)
        clients = [client.reconnected() for client in clients]
        beat(talk, clients, 20)
    assert talk.rules() == []


def test_a_short_blind_time_starts_no_session_over_but_puts_off_its_end(talk: Conversation) -> None:
    a, b = members(talk)
    beat(talk, [a], 7)
    blind(talk, 8)
    beat(talk, [a, b], 5)
    assert talk.rules() == []
    beat(talk, [a], 20)
    assert talk.rules() == ["T-04"]
    assert talk.the("T-04").member_id == b.member_id


def test_a_clock_that_jumps_makes_no_late_survivor(talk: Conversation) -> None:
    """The capture's clock was set ahead by 60 s: T-02 accused the broker of keeping dead members."""
    clients = members(talk)
    blind(talk, 60)
    beat(talk, clients, 20)
    assert talk.rules() == ["V-04"]
    assert "no record, not even a tick, for 61.0 s" in talk.the("V-04").summary


def test_a_join_phase_that_may_have_ended_unseen_is_not_overdue_at_once(talk: Conversation) -> None:
    a, b = members(talk)
    asked = talk.ask_join(a)
    beat(talk, [b], 6, 27)
    blind(talk, 8.5)  # half of the rebalance timeout and what a timer may be late by end within it
    talk.tick()
    again = talk.ask_join(b)
    complete(talk, (asked, again), 4, a, [a, b])
    talk.sync_all([a, b])
    beat(talk, [a, b], 20)
    assert talk.rules() == []


def test_what_was_blind_is_known_after_a_restart(talk: Conversation) -> None:
    clients = members(talk)
    talk.ask(clients[0], wire.HeartbeatRequest(group_id="g", generation_id=3, member_id=clients[0].member_id))
    blind(talk, 8.5)
    talk.tick()
    talk.restore()
    talk.wait(3_000)
    assert talk.rules() == []


def test_a_frame_later_than_rules_wait_for_one_is_said_to_be_so(talk: Conversation) -> None:
    """Half a second late explains itself; a finding published meanwhile may be wrong when it is more."""
    a, b = members(talk)
    newest_us = talk.now_us
    talk.now_us = newest_us - 500_000
    talk.heartbeat(a)
    assert talk.rules() == []
    talk.now_us = newest_us - 1_800_000
    talk.heartbeat(b)
    talk.now_us = newest_us
    beat(talk, [a, b], 70)
    (opened, *_, resolved) = [finding for finding in talk.findings if finding.rule == "V-09"]
    assert opened.summary == (
        "A frame of broker 1 reached partition 0 of mirror 1.8 s after newer ones. Rules wait 0.5 s for late frames: what they say of "
        "that time may be wrong."
    )
    assert (opened.blame, opened.group, opened.severity, resolved.status) == (Blame.CAPTURE, "", Severity.INFO, Status.RESOLVED)
    assert talk.rules() == ["V-09"]


@pytest.mark.parametrize(("times", "severity"), [(3, Severity.INFO), (4, Severity.WARNING)])
def test_frames_that_come_late_for_half_a_minute_are_a_warning(talk: Conversation, times: int, severity: Severity) -> None:
    """What a tap that was just started writes late for seconds is nothing to act on."""
    a, b = members(talk)
    for _ in range(times):
        newest_us = talk.now_us
        talk.now_us = newest_us - 1_800_000
        talk.heartbeat(a)
        talk.now_us = newest_us
        beat(talk, [a, b], 10)
    assert talk.the("V-09").severity is severity


def test_clocks_as_far_apart_as_configured_are_no_disorder() -> None:
    talk = Conversation(clock_skew_ms=2_000)
    a, _ = members(talk)
    talk.now_us -= 2_400_000
    talk.heartbeat(a)
    talk.now_us += 2_400_000
    assert talk.settled_rules() == []


def may_wait(talk: Conversation, client: Client) -> None:
    """The next request of this client may wait, and is in the log when it is answered."""
    talk._feed(Kind.GAP, Asked(client, -1, -1, -1), pack_loss(Loss(0, 0, talk.now_us, talk.now_us, Cause.MAY_WAIT)))


def test_a_follower_whose_SyncGroup_may_wait_unseen_is_not_missed_and_the_leader_is(talk: Conversation) -> None:
    a, b = completing_rebalance(talk)
    may_wait(talk, b)
    assert "group g is followed without that request" in talk.the("V-04").summary
    beat(talk, [a], 26)
    assert {finding.rule for finding in talk.findings} == {"R-02", "V-04"}
    assert talk.the("R-02").client_id == "a"


def test_such_a_follower_that_is_silent_when_all_are_served_is_dead(talk: Conversation) -> None:
    a, b = completing_rebalance(talk)
    may_wait(talk, b)
    talk.wait(8_000)
    talk.call(a, talk.sync_request(a, [a, b]), talk.synced())
    beat(talk, [a], 9)
    assert "T-04" not in talk.rules()
    beat(talk, [a], 6)
    assert talk.the("T-04").client_id == "b"


def test_a_group_learns_again_where_a_JoinGroup_may_wait_unseen() -> None:
    """It may have begun a rebalance, or be all that a join phase waits for."""
    for unseen in ("a leader's", "one told to rejoin", "of nobody known"):
        talk = Conversation()
        a, b = members(talk)
        if unseen == "one told to rejoin":
            talk.heartbeat(b, 27)
        may_wait(talk, {"a leader's": a, "one told to rejoin": b}.get(unseen, talk.client("c")))
        assert "group g back to learning" in talk.the("V-04").summary
        assert talk.group_json()["learning"] == "the capture lost frames"


def log_says_expired(talk: Conversation, client: Client, group: str = "g") -> None:
    talk._feed(Kind.EXPIRED, None, client.member_id.encode(), group=group)


def test_what_the_brokers_log_says_ends_a_session_at_once(talk: Conversation) -> None:
    a, b = members(talk)
    beat(talk, [a], 10)
    log_says_expired(talk, b)
    ended_us = talk.now_us
    talk.settle()
    found = talk.the("T-04")
    assert (found.client_id, found.opened_at_us, found.certainty) == ("b", ended_us, Certainty.HEURISTIC)
    assert "nothing for 10.0 s, its session timeout is 10.0 s" in found.summary
    assert "; the broker's log says that its session is over" in found.observed
    over = [event for event in talk.model.drain_events() if event.kind in {"session_over", "rebalance_began"}]
    assert [(event.kind, event.at_us) for event in over[-2:]] == [("session_over", ended_us), ("rebalance_began", ended_us)]
    assert over[-1].as_json()["cause"] == "session expired"


def test_it_ends_a_session_of_a_length_that_no_frame_tells(talk: Conversation) -> None:
    a, b = (talk.client(name) for name in "ab")
    for client in (a, b):
        client.member_id, client.generation = f"{client.name}-1", 3
    beat(talk, [a, b], 3)
    beat(talk, [a], 20)
    assert talk.rules() == []
    log_says_expired(talk, b)
    talk.settle()
    assert "nothing for 20.0 s; its partitions were idle" in talk.the("T-04").summary


def test_it_is_no_news_of_a_member_that_is_gone_or_unknown_or_of_another_group(talk: Conversation) -> None:
    _, b = members(talk)
    log_says_expired(talk, talk.client("c"))
    log_says_expired(talk, b, "other")
    talk.leave(b)
    talk.wait(1_000)
    log_says_expired(talk, b)
    assert talk.settled_rules() == []

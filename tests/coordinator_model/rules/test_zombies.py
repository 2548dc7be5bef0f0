"""Rules G-01, M-01 and R-11: members that go on although they are refused."""

from __future__ import annotations

from coordinator_model import wire
from coordinator_model.finding import Blame, Certainty, Severity, Status
from tests.coordinator_model.classic import beside, left_behind, settled, static_group, zombie
from tests.coordinator_model.conversation import Client, Conversation
from tests.coordinator_model.epoch_groups import alone
from tests.coordinator_model.epochs import Epochs, foo


def test_G_01_fires_on_a_member_that_ignores_illegal_generation(talk: Conversation) -> None:
    old = left_behind(talk)
    zombie(talk, old, 22)
    finding = talk.the("G-01")
    assert finding.severity is Severity.ERROR
    assert finding.blame is Blame.CLIENT
    assert finding.certainty is Certainty.HEURISTIC
    assert finding.member_id == old.member_id
    assert finding.client_id == "b"
    assert finding.generation == 3
    assert "generation 3" in finding.summary
    assert "generation 4" in finding.summary
    assert [evidence.frame for evidence in finding.evidence if "ILLEGAL_GENERATION" in evidence.frame]


def test_G_01_waits_for_three_refusals_over_ten_seconds(talk: Conversation) -> None:
    old = left_behind(talk)
    zombie(talk, old, 22, times=12, every_ms=500)
    assert talk.settled_rules() == []


def test_G_01_waits_for_two_of_the_members_own_heartbeat_intervals(talk: Conversation) -> None:
    a, b = settled(talk)
    for _ in range(3):
        talk.wait(8_000)
        talk.heartbeat(a)
        talk.heartbeat(b)
    talk.round([a, b], 4)
    old = b.reconnected()
    old.generation = 3
    zombie(talk, old, 22, times=3, every_ms=6_000)
    assert talk.settled_rules() == ["T-04"]


def test_G_01_is_reset_by_a_join_in_between(talk: Conversation) -> None:
    old = left_behind(talk)
    zombie(talk, old, 22, times=3)
    talk.ask_join(old)
    zombie(talk, old, 22, times=3)
    assert talk.settled_rules() == ["T-04"]


def test_G_01_needs_proof_of_a_higher_generation(talk: Conversation) -> None:
    a, _ = settled(talk)
    old = a.reconnected()
    old.generation = 7
    zombie(talk, old, 22)
    assert talk.settled_rules() == ["G-07", "T-04"]


def test_G_01_gives_an_absent_static_member_its_rebalance_timeout(talk: Conversation) -> None:
    a, b = static_group(talk, ("a", "b"))
    asked = talk.ask_join(a)
    talk.wait(1_000)
    talk.joined(asked, generation=4, leader=a, roster=[a, b])
    talk.sync_all([a])
    zombie(talk, b, 22, times=5)
    assert talk.rules() == ["R-11", "T-04"]
    zombie(talk, b, 22, times=5)
    assert "R-11" in talk.settled_rules()  # which is the cause that G-01 folds under


def test_G_01_resolves_when_the_member_joins(talk: Conversation) -> None:
    old = left_behind(talk)
    zombie(talk, old, 22)
    asked = talk.ask_join(old)
    talk.joined(asked, generation=4, leader=old, roster=[old])
    talk.wait(2_000)
    assert talk.the("G-01").status is Status.RESOLVED


def test_G_01_resolves_when_it_stops(talk: Conversation) -> None:
    old = left_behind(talk)
    zombie(talk, old, 22)
    talk.wait(90_000)
    assert talk.the("G-01").status is Status.RESOLVED


def test_G_01_allows_refusals_while_its_join_is_parked(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.round([a, b], 4)
    talk.ask_join(b.reconnected())
    old = b.reconnected()
    for _ in range(5):
        talk.heartbeat(old, 22, generation=3)
        talk.wait(3_000)
    assert talk.rules() == ["R-01", "T-04"]


def test_M_01_fires_on_an_evicted_member_that_goes_on(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.round([a], 4)
    zombie(talk, b, 25)
    finding = talk.the("M-01")
    assert finding.member_id == b.member_id
    assert finding.severity is Severity.WARNING
    beside(talk, a, b, 25)
    assert talk.the("M-01").severity is Severity.ERROR


def test_M_01_is_no_error_before_the_rebalance_timeout_has_passed(talk: Conversation) -> None:
    """The application of a starved machine polls again after 50 s, and rejoins then, as it may."""
    a, b = settled(talk)
    talk.joined(talk.ask_join(b, rebalance_timeout_ms=60_000), generation=4, leader=b, roster=[b])
    talk.joined(talk.ask_join(a), generation=5, leader=a, roster=[a])
    for _ in range(4):
        beside(talk, a, b, 25)
    assert talk.the("M-01").severity is Severity.WARNING
    for _ in range(2):
        beside(talk, a, b, 25)
    assert talk.the("M-01").severity is Severity.ERROR


def test_M_01_does_not_add_up_refusals_in_two_generations(talk: Conversation) -> None:
    """Each is too few and too short by itself: the member joined in between."""
    a, b = settled(talk)
    talk.round([a], 4)
    zombie(talk, b, 25, times=2, every_ms=3_000)
    talk.round([a, b], 5)
    talk.round([a], 6)
    zombie(talk, b, 25, times=2, every_ms=3_000)
    assert "M-01" not in talk.settled_rules()


def test_M_01_allows_refusals_around_its_own_leave(talk: Conversation) -> None:
    _, b = settled(talk)
    talk.leave(b)
    zombie(talk, b, 25, times=8, every_ms=700)
    assert talk.settled_rules() == []


def test_M_01_fires_on_a_member_that_goes_on_after_its_own_leave(talk: Conversation) -> None:
    """A zombie that had once sent LeaveGroup, after a poll timeout, was never reported."""
    a, b = settled(talk)
    talk.leave(b, reason="consumer poll timeout has expired.")
    talk.round([a], 4)
    beside(talk, a, b, 25)
    assert talk.rules() == ["T-05", "M-01"]


def test_M_01_fires_on_a_member_whose_leave_was_refused_by_a_coordinator_that_moved(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.call(b, talk.leave_request(b), wire.LeaveGroupResponse(error_code=16))
    a, b = a.reconnected("2"), b.reconnected("2")
    talk.round([a], 4)
    beside(talk, a, b, 25)
    assert talk.rules() == ["M-01"]


def test_M_01_allows_a_recovery_within_ten_seconds(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.round([a], 4)
    zombie(talk, b, 25, times=8, every_ms=700)
    b.member_id = ""
    talk.round([a, b], 5)
    assert talk.settled_rules() == []


def test_M_01_resolves_when_the_member_joins(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.round([a], 4)
    zombie(talk, b, 25)
    talk.refuse_join(talk.ask_join(b), 25, b.member_id)
    talk.wait(2_000)
    assert talk.the("M-01").status is Status.RESOLVED


def test_M_01_allows_refusals_while_its_join_is_parked(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.round([a], 4)
    talk.ask_join(b.reconnected())
    zombie(talk, b, 25)
    assert talk.rules() == ["R-01", "T-04"]


def test_M_01_and_O_01_leave_a_member_of_the_consumer_protocol_alone_that_rejoins_by_its_own_heartbeat(talk: Epochs) -> None:
    """It was said not to have joined again, for it sends no JoinGroup; its id comes back, as ids of that protocol do."""
    a = alone(talk, 1, held=foo(0))
    for epoch in range(3, 14, 2):
        talk.wait(50_000)  # longer than a session: the coordinator has removed it
        talk.commits(a, 25)
        talk.refused(a, 25)
        talk.joins(a, epoch, foo(0))
        talk.commits(a)
    assert talk.settled_rules() == ["E-09"]  # its heartbeats came late, and nothing else


def static_left_behind(talk: Conversation) -> tuple[Client, Client]:
    a, b = static_group(talk, ("a", "b"))
    asked = talk.ask_join(a)
    talk.wait(1_000)
    talk.joined(asked, generation=4, leader=a, roster=[a, b])
    talk.call(a, talk.sync_request(a, [a, b]), talk.synced())
    return a, b


def goes_on(talk: Conversation, a: Client, b: Client, times: int) -> None:
    for _ in range(times):
        talk.heartbeat(b, 22)
        talk.heartbeat(a)
        talk.wait(3_000)


def test_R_11_warns_of_a_static_member_that_stays_behind(talk: Conversation) -> None:
    a, b = static_left_behind(talk)
    goes_on(talk, a, b, 6)
    finding = talk.the("R-11")
    assert finding.severity is Severity.WARNING
    assert finding.instance_id == "i"
    assert "generation 3" in finding.summary


def test_R_11_is_an_error_past_its_rebalance_timeout(talk: Conversation) -> None:
    a, b = static_left_behind(talk)
    goes_on(talk, a, b, 9)
    assert talk.the("R-11").severity is Severity.ERROR


def test_R_11_allows_refusals_for_less_than_ten_seconds(talk: Conversation) -> None:
    a, b = static_left_behind(talk)
    goes_on(talk, a, b, 3)
    talk.joined(talk.ask_join(b), generation=4, leader=a, roster=[])
    assert talk.settled_rules() == []


def test_R_11_is_no_matter_of_dynamic_members_nor_of_commits(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.round([a, b], 4)
    old = b.reconnected()
    old.generation = 3
    goes_on(talk, a, old, 6)
    a, b = static_left_behind(other := Conversation())
    for _ in range(6):
        other.commit(b, 22)
        other.wait(3_000)
        other.heartbeat(a)
    assert "R-11" not in (*talk.rules(), *other.rules())


def test_R_11_is_no_matter_of_a_static_member_outside_the_roster(talk: Conversation) -> None:
    a, b = static_group(talk, ("a", "b"))
    talk.round([a], 4)
    goes_on(talk, a, b, 6)
    assert talk.rules() == []


def test_R_11_needs_a_newer_generation(talk: Conversation) -> None:
    a, b = static_group(talk, ("a", "b"))
    goes_on(talk, a, b, 6)
    assert talk.rules() == []


def test_R_11_resolves_when_it_rejoins(talk: Conversation) -> None:
    a, b = static_left_behind(talk)
    goes_on(talk, a, b, 6)
    talk.joined(talk.ask_join(b), generation=4, leader=a, roster=[])
    talk.wait(2_000)
    assert talk.the("R-11").status is Status.RESOLVED

"""Rules of classic groups whose sense carries over to members with epochs: who is who, who comes back, who goes on."""

from __future__ import annotations

import pytest

from coordinator_model.finding import Blame, Certainty, Severity, Status
from tests.coordinator_model.conversation import Client
from tests.coordinator_model.epoch_groups import alone, upgrade
from tests.coordinator_model.epochs import RT_MS, Epochs, foo

# ---------------------------------------------------------------------------------------------------- S-01


def hands_over(talk: Epochs, holder: Client, taker: Client, epoch: int = 2) -> None:
    """One static member leaves for a while, and another process takes its place."""
    talk.leaves(holder, -2)
    talk.joins(taker, epoch, foo(0))
    taker.generation = epoch


def test_S_01_fires_when_a_member_wants_an_instance_id_back_that_another_took(talk: Epochs) -> None:
    a, b = talk.member("a", "i"), talk.member("b", "i")
    talk.joins(a, 2, foo(0))
    hands_over(talk, a, b)
    talk.refused_join(a, 111)
    talk.wait(1_500)
    finding = talk.the("S-01")
    assert (finding.severity, finding.blame, finding.instance_id) == (Severity.ERROR, Blame.CONFIG, "i")
    assert "a-id" in finding.summary
    assert "b-id" in finding.summary
    talk.live([b], 70)
    assert talk.the("S-01").status is Status.RESOLVED
    assert talk.rules() == ["S-01"]


def test_S_01_fires_when_an_instance_id_goes_to_and_fro(talk: Epochs) -> None:
    a, b = talk.member("a", "i"), talk.member("b", "i")
    talk.joins(a, 2, foo(0))
    for holder, taker in ((a, b), (b, a), (a, b)):
        hands_over(talk, holder, taker)
        talk.refused(holder, 82, epoch=2)
        talk.wait(5_000)
    talk.wait(1_500)
    assert talk.the("S-01").observed.startswith("Instance id i changed hands 4 times within two sessions")


def test_S_01_allows_restarts_whose_losers_stay_away(talk: Epochs) -> None:
    holder = talk.member("a0", "i")
    talk.joins(holder, 2, foo(0))
    for number in range(1, 6):
        taker = talk.member(f"a{number}", "i")
        hands_over(talk, holder, taker)
        holder = taker
    assert talk.settled_rules() == []


def test_S_01_allows_a_successor_that_asks_before_its_predecessor_has_left(talk: Epochs) -> None:
    holder = talk.member("a0", "i")
    talk.joins(holder, 2, foo(0))
    for number in range(1, 6):
        taker = talk.member(f"a{number}", "i")
        talk.refused_join(taker, 111)
        hands_over(talk, holder, taker)
        holder = taker
    assert talk.settled_rules() == []


def test_S_01_allows_one_heartbeat_of_the_loser_and_its_leave(talk: Epochs) -> None:
    a, b = talk.member("a", "i"), talk.member("b", "i")
    talk.joins(a, 2, foo(0))
    hands_over(talk, a, b)
    talk.refused(a, 82, epoch=2)
    talk.refused(a, 82, epoch=-2)
    assert talk.settled_rules() == []


def test_S_01_allows_the_holder_to_take_its_place_again_after_its_successor_has_gone(talk: Epochs) -> None:
    a, b = talk.member("a", "i"), talk.member("b", "i")
    talk.joins(a, 2, foo(0))
    hands_over(talk, a, b)
    talk.close(b)
    talk.refused_join(a, 111)
    assert talk.settled_rules() == []


# ---------------------------------------------------------------------------------------------------- S-02


def fenced(talk: Epochs) -> tuple[Client, Client]:
    a, b = talk.member("a", "i"), talk.member("b", "i")
    talk.joins(a, 2, foo(0))
    hands_over(talk, a, b)
    return a, b


def test_S_02_fires_when_a_fenced_member_goes_on(talk: Epochs) -> None:
    a, b = fenced(talk)
    for _ in range(3):
        talk.refused(a, 82, epoch=2)
        talk.live([b], 5)
    talk.wait(1_500)
    finding = talk.the("S-02")
    assert (finding.severity, finding.blame, finding.member_id) == (Severity.ERROR, Blame.CLIENT, "a-id")
    assert "b-id" in finding.summary
    talk.live([b], 65)
    assert talk.the("S-02").status is Status.RESOLVED
    assert talk.rules() == ["S-02"]


def test_S_02_allows_a_burst_and_one_more_heartbeat(talk: Epochs) -> None:
    a, _ = fenced(talk)
    for _ in range(3):
        talk.refused(a, 82, epoch=2)
    assert talk.settled_rules() == []


# ---------------------------------------------------------------------------------------------------- M-09


def test_M_09_fires_when_a_client_leaves_many_ids_behind() -> None:
    talk = Epochs(crash_loop_returns=100)  # else M-13 says it first
    stays = talk.member("stays")
    talk.joins(stays, 2, {})
    epoch = 3
    for number in range(12):
        client = talk.client("again", member_id=f"id-{number}")
        talk.joins(client, epoch, foo(0))
        talk.close(client)
        talk.live([stays], 75)
        epoch += 2
    talk.wait(1_500)
    finding = talk.the("M-09")
    assert (finding.severity, finding.blame) == (Severity.WARNING, Blame.CLIENT)
    assert "after it left 11 behind" in finding.summary
    talk.live([stays], 70)
    assert talk.the("M-09").status is Status.RESOLVED
    assert set(talk.rules()) == {"M-09", "T-04"}


@pytest.mark.parametrize(("leaves", "members"), [(True, 13), (False, 11)])
def test_M_09_allows_members_that_leave_and_ten_that_do_not(*, leaves: bool, members: int) -> None:
    talk = Epochs(crash_loop_returns=100)  # else M-13 says it first
    stays = talk.member("stays")
    talk.joins(stays, 2, {})
    for number in range(members):
        client = talk.client("again", member_id=f"id-{number}")
        talk.joins(client, 3 + 2 * number, foo(0))
        if leaves:
            talk.leaves(client)
        talk.close(client)
        talk.live([stays], 75)
    assert "M-09" not in talk.rules()
    assert set(talk.rules()) == (set() if leaves else {"T-04"})


# ---------------------------------------------------------------------------------------------------- T-05


@pytest.mark.parametrize("instance_id", [None, "i"])
def test_T_05_fires_when_a_member_leaves_late_and_joins_again(talk: Epochs, instance_id: str | None) -> None:
    a = talk.member("a", instance_id)
    talk.joins(a, 2, foo(0))
    talk.live([a], RT_MS // 1_000 + 5)
    talk.leaves(a, -1 if instance_id is None else -2)
    talk.wait(10_000)
    talk.joins(a, 4, foo(0))
    talk.wait(1_500)
    finding = talk.the("T-05")
    assert (finding.severity, finding.certainty, finding.blame) == (Severity.WARNING, Certainty.HEURISTIC, Blame.CLIENT)
    talk.live([a], 310)
    assert talk.the("T-05").status is Status.RESOLVED
    assert talk.rules() == ["T-05"]


def test_T_05_allows_a_member_that_leaves_before_its_poll_interval_is_over(talk: Epochs) -> None:
    a = alone(talk)
    talk.live([a], RT_MS // 1_000 - 5)
    talk.leaves(a)
    talk.joins(a, 4, foo(0))
    assert talk.settled_rules() == []


def test_T_05_leaves_a_member_alone_that_had_lost_its_coordinator(talk: Epochs) -> None:
    a = alone(talk)
    talk.live([a], RT_MS // 1_000 - 15)
    talk.close(a)
    talk.wait(20_000)
    again = a.reconnected()
    talk.leaves(again)
    talk.joins(again, 4, foo(0))
    assert talk.settled_rules() == []


def test_T_05_is_no_matter_of_another_process(talk: Epochs) -> None:
    a = alone(talk)
    talk.live([a], RT_MS // 1_000 + 5)
    talk.leaves(a)
    talk.joins(talk.member("b"), 4, foo(0))
    assert talk.settled_rules() == []


# ----------------------------------------------------------------------------------------------------


def stands_still(talk: Epochs, classic: list[Client], times: int, *, beside: Client | None) -> None:
    """The first is told to rejoin, and only heartbeats; the others live, and with them a member of the newer protocol."""
    for _ in range(times):
        talk.wait(20)
        talk.heartbeat(classic[0], 27)
        if beside is not None:
            talk.beats(beside)
        talk.heartbeat(classic[1])
        talk.wait(3_000)


def test_R_08_warns_of_a_classic_member_of_a_mixed_group_that_does_not_rejoin(talk: Epochs) -> None:
    classic, new = upgrade(talk)
    slow = classic[0]
    stands_still(talk, classic, 6, beside=new)
    talk.wait(1_500)
    finding = talk.the("R-08")
    assert (finding.severity, finding.blame, finding.member_id) == (Severity.WARNING, Blame.CLIENT, slow.member_id)
    talk.classic_join(slow, 5)
    talk.wait(1_500)
    assert talk.the("R-08").status is Status.RESOLVED
    assert talk.rules() == ["P-12", "R-08"]


def test_R_08_fires_when_the_coordinator_keeps_a_classic_member_beyond_its_rebalance_timeout(talk: Epochs) -> None:
    classic, new = upgrade(talk)
    stands_still(talk, classic, 25, beside=new)
    finding = talk.the("R-08")
    assert finding.severity is Severity.ERROR
    assert "the coordinator should have removed it at" in finding.summary


def test_R_08_allows_the_coordinator_to_have_loaded_the_group_again_unseen(talk: Epochs) -> None:
    """Twice, each time between two heartbeats; the member's time begins anew then."""
    classic, new = upgrade(talk)
    stands_still(talk, classic, 20, beside=new)
    assert talk.the("R-08").severity is Severity.WARNING
    assert "its rebalance timeout ended at" in talk.the("R-08").summary


def test_R_08_stays_a_warning_where_the_last_member_of_the_newer_protocol_left(talk: Epochs) -> None:
    """The coordinator made it a classic group then, and waits on for a static member that does not rejoin."""
    classic, new = upgrade(talk)
    talk.leaves(new)
    stands_still(talk, classic, 25, beside=None)
    finding = talk.the("R-08")
    assert (finding.severity, finding.blame, finding.member_id) == (Severity.WARNING, Blame.CLIENT, classic[0].member_id)
    assert "its rebalance timeout ended at" in finding.summary


def test_R_08_allows_half_the_rebalance_timeout_and_a_JoinGroup_under_way(talk: Epochs) -> None:
    classic, new = upgrade(talk)
    stands_still(talk, classic, 4, beside=new)
    joining = classic[0].reconnected()
    talk.ask_join(joining)
    stands_still(talk, classic, 6, beside=new)
    assert [rule for rule in talk.rules() if rule == "R-08"] == []


# ---------------------------------------------------------------------------------------------------- O-02


def test_O_02_fires_when_a_commit_of_a_member_that_left_is_accepted(talk: Epochs) -> None:
    a, b = alone(talk), talk.member("b")
    talk.joins(b, 3, {})
    talk.leaves(a)
    talk.commits(a, epoch=2)
    talk.wait(1_500)
    finding = talk.the("O-02")
    assert (finding.severity, finding.blame, finding.member_id) == (Severity.CRITICAL, Blame.BROKER, "a-id")
    assert "although that member left" in finding.summary
    talk.live([b], 70)
    assert talk.the("O-02").status is Status.RESOLVED
    assert talk.rules() == ["O-02"]


def test_O_02_fires_when_a_commit_of_a_member_that_was_removed_is_accepted(talk: Epochs) -> None:
    a = alone(talk)
    talk.refused(a, 25)
    talk.commits(a, epoch=2)
    talk.wait(1_500)
    assert "was told that it is no member" in talk.the("O-02").summary


def test_O_02_allows_the_last_commit_of_a_member_and_that_of_an_operator(talk: Epochs) -> None:
    a = alone(talk)
    talk.commits(a)
    talk.leaves(a)
    talk.commits(a, epoch=-1)
    assert talk.settled_rules() == []


def test_O_02_leaves_a_commit_alone_while_a_join_is_under_way(talk: Epochs) -> None:
    a = alone(talk)
    talk.leaves(a)
    asked = talk.ask_beat(a, 0, **talk.join_fields())
    talk.commits(a.reconnected(), epoch=3)
    talk.answer(asked, talk.given(a, 3, foo(0)))
    assert talk.settled_rules() == []


def test_a_snapshot_keeps_who_took_an_instance_id_and_what_was_left_behind(talk: Epochs) -> None:
    a, _ = fenced(talk)
    talk.refused(a, 82, epoch=2)
    group, _ = talk.model.groups.opened(("c1", "g"))
    group.abandoned = {"again at h": (5, 6)}  # type: ignore[attr-defined]
    group.slow_changed = True  # type: ignore[attr-defined]
    before = (group.instance_uses, group.abandoned)  # type: ignore[attr-defined]
    again = type(talk.model).restore(talk.model.snapshot(), settings=talk.model.settings)
    kept, _ = again.groups.opened(("c1", "g"))
    assert (kept.instance_uses, kept.abandoned) == before  # type: ignore[attr-defined]

"""Family E, second part: what fires each rule, what must keep it quiet, what resolves it."""

from __future__ import annotations

import pytest
from msgspec.structs import asdict

from coordinator_model import wire
from coordinator_model.coordinator import Coordinator
from coordinator_model.finding import Blame, Severity, Status
from coordinator_model.wire.record import Kind
from tests.coordinator_model.classic import settled
from tests.coordinator_model.conversation import Client
from tests.coordinator_model.epoch_groups import alone, back_and_forth, over, upgrade
from tests.coordinator_model.epochs import INTERVAL_MS, Epochs, foo

DAY_MS = 86_400_000


# ---------------------------------------------------------------------------------------------------- E-06


def claims(talk: Epochs, held_s: int) -> tuple[Client, Client]:
    """A client asks every 3 s for an instance id that another holds."""
    a, b = talk.member("a", "i"), talk.member("b", "i")
    talk.joins(a, 2, foo(0))
    for _ in range(held_s // 3):
        talk.beats(a)
        talk.refused_join(b, 111)
        talk.wait(3_000)
    return a, b


def test_E_06_fires_when_an_instance_id_stays_refused(talk: Epochs) -> None:
    a, b = claims(talk, 90)
    talk.settle()
    finding = talk.the("E-06")
    assert (finding.severity, finding.blame, finding.instance_id) == (Severity.ERROR, Blame.CONFIG, "i")
    assert "a-id" in finding.summary
    assert "b-id" in finding.summary
    talk.leaves(a, -2)
    talk.joins(b, 2, foo(0))
    talk.wait(1_500)
    assert talk.the("E-06").status is Status.RESOLVED
    assert talk.rules() == ["E-06"]


@pytest.mark.parametrize(("held_s", "severity"), [(15, Severity.WARNING), (66, Severity.WARNING), (75, Severity.ERROR)])
def test_E_06_warns_when_both_live_and_is_an_error_after_the_longest_session(talk: Epochs, held_s: int, severity: Severity) -> None:
    claims(talk, held_s)
    talk.settle()
    assert talk.the("E-06").severity is severity
    assert talk.rules() == ["E-06"]


def test_E_06_waits_until_it_is_sure_that_both_live(talk: Epochs) -> None:
    claims(talk, 12)
    assert talk.settled_rules() == []


def test_E_06_needs_a_holder_that_lives_on(talk: Epochs) -> None:
    a, b = claims(talk, 9)
    for _ in range(11):
        talk.refused_join(b, 111)
        talk.wait(3_000)
    assert a.member_id == "a-id"
    assert "E-06" not in talk.rules()


# ---------------------------------------------------------------------------------------------------- E-09


def test_E_09_fires_after_three_intervals_without_a_heartbeat(talk: Epochs) -> None:
    a = alone(talk)
    talk.beats(a)
    talk.wait(3 * INTERVAL_MS + 1_000)
    talk.beats(a)
    finding = talk.the("E-09")
    assert (finding.severity, finding.blame, finding.member_id) == (Severity.WARNING, Blame.CLIENT, "a-id")
    talk.live([a], 70)
    assert talk.the("E-09").status is Status.RESOLVED
    assert talk.rules() == ["E-09"]


def test_E_09_allows_three_intervals_and_a_slow_answer(talk: Epochs) -> None:
    a = alone(talk)
    talk.beats(a)
    talk.wait(3 * INTERVAL_MS - 1_000)
    asked = talk.ask_beat(a)
    talk.wait(20_000)
    talk.answer(asked, talk.given(a, 2))
    talk.wait(4_000)
    talk.beats(a)
    assert talk.settled_rules() == ["T-06"]


def test_E_09_leaves_a_client_alone_that_lost_its_connection(talk: Epochs) -> None:
    a = alone(talk)
    talk.beats(a)
    talk.close(a)
    talk.wait(20_000)
    talk.beats(a.reconnected(), epoch=2)
    assert talk.settled_rules() == []


def test_E_09_takes_no_account_of_a_time_without_capture(talk: Epochs) -> None:
    a = alone(talk)
    talk.beats(a)
    talk.now_us += 20_000_000
    talk.beats(a)
    assert "E-09" not in talk.settled_rules()
    assert [rule for rule in talk.rules() if not rule.startswith("V")] == []


# ---------------------------------------------------------------------------------------------------- E-10


def test_E_10_fires_with_the_brokers_reason_when_a_group_cannot_be_migrated(talk: Epochs) -> None:
    settled(talk)
    talk.refused_join(talk.member("new"), 69, text="Group g uses custom assignors")
    finding = talk.the("E-10")
    assert (finding.severity, finding.blame, finding.group_type) == (Severity.WARNING, Blame.CONFIG, "classic")
    assert "custom assignors" in finding.summary
    assert talk.group_json()["group_type"] == "classic"


def test_E_10_fires_at_the_third_heartbeat_that_is_refused_so(talk: Epochs) -> None:
    a = alone(talk)
    for _ in range(2):
        talk.refused(a, 35)
        talk.wait(5_000)
    assert talk.rules() == []
    talk.refused(a, 35)
    assert talk.rules() == ["E-10"]
    over(talk)
    assert talk.the("E-10").status is Status.RESOLVED


def test_E_10_counts_the_heartbeats_that_a_group_refuses_which_is_classic_again(talk: Epochs) -> None:
    settled(talk)
    left_behind = talk.member("old")
    left_behind.generation = 5
    for _ in range(2):
        talk.refused(left_behind, 69)
        talk.wait(5_000)
    assert talk.rules() == []
    again = Coordinator.restore(talk.model.snapshot())
    assert again.groups.opened(("c1", "g"))[0].wrong_type == {left_behind.member_id: 2}
    talk.refused(left_behind, 69)
    assert talk.rules() == ["E-10"]
    assert (talk.the("E-10").group_type, talk.the("E-10").member_id) == ("classic", left_behind.member_id)


def test_E_10_allows_one_refusal_after_a_downgrade(talk: Epochs) -> None:
    a = alone(talk)
    talk.refused(a, 69)
    assert talk.settled_rules() == []


def test_E_10_allows_a_client_to_find_the_protocol_switched_off(talk: Epochs) -> None:
    """franz-go then falls back to the classic one."""
    settled(talk)
    talk.refused_join(talk.member("new"), 35)
    assert talk.settled_rules() == []


# ---------------------------------------------------------------------------------------------------- E-11


def commits_stay_refused(error: int, rule: str) -> Epochs:
    """Return a conversation in which a finding of the rule opens, and a commit that is accepted ends it."""
    talk = Epochs()
    a = alone(talk, 4)
    for _ in range(4):
        talk.beats(a)
        talk.commits(a, error, epoch=3)
        talk.wait(4_500)
    talk.settle()
    assert talk.the(rule).severity is Severity.ERROR
    talk.commits(a)
    talk.wait(1_500)
    return talk


def test_E_11_fires_when_commits_stay_at_a_stale_epoch_and_is_resolved_by_one_that_is_accepted() -> None:
    talk = commits_stay_refused(113, "E-11")
    finding = talk.the("E-11")
    assert (finding.severity, finding.blame) == (Severity.ERROR, Blame.CLIENT)
    assert talk.the("E-11").status is Status.RESOLVED
    assert talk.rules() == ["E-11"]


def test_O_01_does_not_blame_a_healthy_member_whose_commits_the_broker_refuses() -> None:
    talk = commits_stay_refused(25, "E-20")
    assert talk.the("E-20").blame is Blame.BROKER
    assert talk.rules() == ["E-20"]


def test_E_11_ignores_a_burst_and_one_refusal_for_each_epoch(talk: Epochs) -> None:
    a = alone(talk, 4)
    for _ in range(12):
        talk.commits(a, 113, epoch=3)
    for epoch in range(5, 9):
        talk.beats(a, epoch)
        talk.commits(a, 113, epoch=epoch - 1)
        talk.commits(a)
        talk.wait(5_000)
    assert talk.settled_rules() == []


# ---------------------------------------------------------------------------------------------------- E-19


def test_E_19_fires_when_a_static_leave_lacks_its_instance_id(talk: Epochs) -> None:
    """franz-go leaves so."""
    a = alone(talk, held=foo(0), instance_id="i")
    a.instance_id = None
    talk.refused(a, 42, epoch=-2)
    finding = talk.the("E-19")
    assert (finding.severity, finding.blame) == (Severity.WARNING, Blame.CLIENT)
    assert "instance id i" in finding.summary
    over(talk)
    assert talk.the("E-19").status is Status.RESOLVED
    assert talk.rules() == ["E-19"]


def test_E_19_allows_a_proper_leave(talk: Epochs) -> None:
    a = alone(talk, held=foo(0), instance_id="i")
    talk.leaves(a, -2)
    assert talk.settled_rules() == []


def test_E_19_is_no_matter_of_a_dynamic_member(talk: Epochs) -> None:
    a = alone(talk)
    talk.refused(a, 42, epoch=-2)
    assert talk.settled_rules() == []


# ---------------------------------------------------------------------------------------------------- E-20


@pytest.mark.parametrize("epoch", [11, 6])
def test_E_20_fires_when_a_commit_is_accepted_outside_the_members_epochs(talk: Epochs, epoch: int) -> None:
    talk.joins(talk.member("z"), 6, {})
    a = alone(talk, 7, held=foo(0))
    talk.beats(a, 10)
    talk.commits(a, epoch=epoch)
    talk.settle()
    finding = talk.the("E-20")
    assert (finding.severity, finding.blame) == (Severity.CRITICAL, Blame.BROKER)
    over(talk)
    assert talk.the("E-20").status is Status.RESOLVED


def test_E_20_fires_when_the_exact_epoch_is_refused(talk: Epochs) -> None:
    a = alone(talk, 7)
    talk.beats(a)
    talk.commits(a, 113)
    talk.settle()
    assert talk.the("E-20").severity is Severity.ERROR
    assert talk.rules() == ["E-20"]


@pytest.mark.parametrize("epoch", [10, 7])
def test_E_20_allows_the_epochs_since_the_partition_was_assigned(talk: Epochs, epoch: int) -> None:
    a = alone(talk, 7)
    talk.beats(a, 10)
    talk.commits(a, epoch=epoch)
    talk.commits(a, 113, epoch=6)
    talk.commits(a, 113, epoch=11)
    assert talk.settled_rules() == []


def grows(talk: Epochs) -> Client:
    """A member that joins at epoch 7 with two partitions, and is given a third at epoch 10."""
    a = alone(talk, 7)
    talk.beats(a, 10, foo(0, 1, 2))
    talk.beats(a, 11)
    return a


@pytest.mark.parametrize("version", [9, 10])
@pytest.mark.parametrize(("number", "epoch"), [(2, 9), (5, 10)])
def test_E_20_fires_when_a_commit_is_accepted_at_an_epoch_at_which_the_partition_was_not_the_members(
    talk: Epochs, number: int, epoch: int, version: int
) -> None:
    """It was assigned later, or never."""
    talk.commits(grows(talk), epoch=epoch, number=number, version=version)
    assert talk.settled_rules() == ["E-20"]
    assert f"although foo-{number} was not assigned to it at that epoch" in talk.the("E-20").summary


@pytest.mark.parametrize("version", [9, 10])
def test_E_20_allows_older_epochs_at_which_the_partition_was_assigned_already(talk: Epochs, version: int) -> None:
    a = grows(talk)
    for number, epoch in ((0, 7), (1, 9), (2, 10), (2, 11), (5, 11)):
        talk.commits(a, epoch=epoch, number=number, version=version)
    talk.commits(a, 113, epoch=9, number=2, version=version)
    assert talk.settled_rules() == []


def test_E_20_allows_an_older_epoch_for_a_partition_that_was_taken_away_and_came_back(talk: Epochs) -> None:
    a = grows(talk)
    talk.beats(a, 11, foo(0, 2))
    talk.beats(a, 12, owned=foo(0, 2))
    talk.beats(a, 13, foo(0, 1, 2))
    talk.commits(a, epoch=12, number=1)
    assert talk.settled_rules() == []


def test_E_20_allows_an_older_epoch_where_the_topics_name_is_not_known(talk: Epochs) -> None:
    a = talk.member("a")
    talk.joins(a, 7, foo(0), "foo", "bar")
    talk.beats(a, 10, foo(0, 1))
    talk.commits(a, epoch=9, number=1)
    assert talk.settled_rules() == []


def test_E_20_allows_an_older_epoch_for_what_another_coordinator_assigned(talk: Epochs) -> None:
    a = grows(talk).reconnected("2")
    talk.beats(a)
    talk.commits(a, epoch=9, number=2)
    assert "E-20" not in talk.settled_rules()


@pytest.mark.parametrize("refused", [False, True])
def test_E_20_leaves_a_coordinator_alone_that_has_not_answered_a_heartbeat_yet(talk: Epochs, *, refused: bool) -> None:
    """What the coordinator before it wrote last may be lost."""
    a = grows(talk)
    if refused:
        talk.refused(a, 16)
    b = a.reconnected("1" if refused else "2")
    talk.commits(b, 113)
    talk.commits(b, epoch=12)
    talk.commits(b, epoch=10, number=5)
    assert "E-20" not in talk.settled_rules()


def test_a_snapshot_keeps_since_when_partitions_are_assigned_and_can_be_taken_after_their_member_left(talk: Epochs) -> None:
    a = grows(talk)
    talk.restore()
    talk.commits(a, epoch=9, number=2)
    assert talk.settled_rules() == ["E-20"]
    talk.leaves(a)
    Coordinator.restore(talk.model.snapshot())


def test_E_20_leaves_a_commit_alone_while_a_heartbeat_is_under_way(talk: Epochs) -> None:
    a = alone(talk, 7)
    asked = talk.ask_beat(a)
    other = a.reconnected()
    talk.commits(other, 113)
    talk.commits(other, epoch=8)
    talk.answer(asked, talk.given(a, 8))
    assert talk.settled_rules() == []


# ---------------------------------------------------------------------------------------------------- E-21, E-22, P-12


def test_P_12_notes_that_a_group_was_converted(talk: Epochs) -> None:
    upgrade(talk)
    finding = talk.the("P-12")
    assert (finding.severity, finding.blame, finding.group_type) == (Severity.INFO, Blame.OPERATOR, "consumer")
    assert "from the classic type at generation 3 to the consumer type" in finding.summary
    assert talk.rules() == ["P-12"]
    talk.wait(3_700_000)
    assert talk.the("P-12").status is Status.RESOLVED


def test_P_12_is_no_matter_of_a_group_that_began_as_a_consumer_group(talk: Epochs) -> None:
    alone(talk)
    assert talk.settled_rules() == []


def test_E_21_fires_at_the_third_conversion_within_an_hour(talk: Epochs) -> None:
    back_and_forth(talk, 3)
    finding = talk.the("E-21")
    assert (finding.severity, finding.blame) == (Severity.WARNING, Blame.OPERATOR)
    talk.wait(3_700_000)
    assert talk.the("E-21").status is Status.RESOLVED


def test_E_21_allows_an_upgrade_that_is_taken_back(talk: Epochs) -> None:
    back_and_forth(talk, 2)
    assert "E-21" not in talk.settled_rules()
    assert set(talk.rules()) == {"P-12"}


def test_E_22_warns_when_a_group_stays_mixed_for_a_day() -> None:
    talk = Epochs(silence_ms=120_000)
    classic, new = upgrade(talk)
    talk.wait(1_000)
    group, _ = talk.model.groups.opened(("c1", "g"))
    group.mixed_since_us -= DAY_MS * 1_000  # type: ignore[attr-defined]
    talk.beats(new, 5)
    talk.wait(2_000)
    finding = talk.the("E-22")
    assert (finding.severity, finding.blame) == (Severity.WARNING, Blame.OPERATOR)
    assert "a" in finding.summary
    for one in classic:
        talk.leave(one)
    talk.wait(2_000)
    assert talk.the("E-22").status is Status.RESOLVED


def test_E_22_waits_for_a_day(talk: Epochs) -> None:
    classic, new = upgrade(talk)
    for _ in range(30):
        for one in classic:
            talk.heartbeat(one)
        talk.beats(new)
        talk.wait(3_000)
    assert talk.rules() == ["P-12"]


# ---------------------------------------------------------------------------------------------------- M-08, P-07, R-17, T-04


def test_M_08_fires_on_a_heartbeat_answered_for_another_member(talk: Epochs) -> None:
    a = alone(talk)
    talk.wait(20)
    talk.call(a, talk.beat_request(a), talk.given(a, 2, member_id="z"))
    assert talk.rules() == ["M-08"]


@pytest.mark.parametrize("error", [22, 27, 79, 113])
def test_P_07_fires_on_an_error_that_no_heartbeat_of_a_member_with_epochs_gets(talk: Epochs, error: int) -> None:
    a = alone(talk)
    talk.refused(a, error)
    assert talk.rules() == ["P-07"]


@pytest.mark.parametrize("error", [-1, 14, 15, 16, 29, 30, 35, 69, 81, 111])
def test_P_07_allows_every_error_of_the_table(talk: Epochs, error: int) -> None:
    alone(talk)
    talk.refused_join(talk.member("b", "i"), error)
    assert "P-07" not in talk.settled_rules()


WITH_REASON = {42: {"rebalance_timeout_ms": -1}, 112: {"server_assignor": "own"}, 128: {"subscribed_topic_regex": "f(oo"}}


@pytest.mark.parametrize("error", WITH_REASON)
def test_P_07_allows_an_error_for_which_the_request_has_the_reason(talk: Epochs, error: int) -> None:
    alone(talk)
    talk.refused(talk.member("b"), error, epoch=0, **{**talk.join_fields(), **WITH_REASON[error]})
    assert talk.settled_rules() == (["E-05"] if error == 42 else [])


@pytest.mark.parametrize("error", [25, 42, 82, 112, 128])
def test_P_07_fires_on_an_error_that_no_coordinator_gives_to_such_a_join(talk: Epochs, error: int) -> None:
    alone(talk)
    talk.refused_join(talk.member("b", "i"), error)
    talk.settle()
    assert talk.the("P-07").blame is Blame.BROKER
    assert talk.rules() == ["P-07"]


@pytest.mark.parametrize("error", [42, 112, 128])
def test_P_07_fires_on_an_error_that_no_coordinator_gives_to_a_keep_alive(talk: Epochs, error: int) -> None:
    a = alone(talk)
    talk.beats(a)
    talk.refused(a, error)
    assert talk.settled_rules() == ["P-07"]


def test_R_17_fires_when_a_member_goes_back_and_forth_between_subscriptions(talk: Epochs) -> None:
    a = alone(talk)
    for epoch in range(3, 8):
        talk.beats(a, epoch, subscribed_topic_names=("foo",) if epoch % 2 == 0 else ("bar", "foo"))
        talk.wait(5_000)
    assert talk.rules() == ["R-17"]


def test_T_04_notes_a_member_of_a_consumer_group_that_falls_silent(talk: Epochs) -> None:
    a = alone(talk)
    b = talk.member("b")
    talk.joins(b, 3, {})
    talk.live([b], 75)
    assert talk.the("T-04").member_id == a.member_id
    assert talk.rules() == ["T-04"]


def test_T_04_notes_at_once_what_the_brokers_log_says(talk: Epochs) -> None:
    a, b = talk.member("a"), talk.member("b")
    talk.joins(a, 2, foo(0))
    talk.joins(b, 3, foo(1))
    for _ in range(2):
        talk.wait(3_000)
        talk.beats(a)
    assert talk.rules() == []
    talk._feed(Kind.EXPIRED, None, b.member_id.encode(), group="g")
    talk.settle()
    assert talk.the("T-04").client_id == "b"


def test_T_04_leaves_a_client_alone_that_goes_on_under_another_id(talk: Epochs) -> None:
    a = alone(talk)
    talk.close(a)
    b = a.reconnected()
    b.member_id = "another"
    talk.joins(b, 3, {})
    talk.live([b], 75)
    assert talk.rules() == []


def test_a_snapshot_keeps_all_that_is_known(talk: Epochs) -> None:
    a, b = talk.member("a"), talk.member("b", "i")
    talk.joins(a, 2, foo(0, 1, 2))
    talk.joins(b, 3, {})
    talk.beats(a, 2, foo(0, 1))
    talk.refused_join(talk.member("c", "i"), 111)
    talk.ask_beat(b, owned=foo())
    asked = wire.ConsumerGroupHeartbeatRequest(group_id="g2", member_id="x", member_epoch=0)
    talk.ask(talk.member("x"), asked, group="g2")
    restored = type(talk.model).restore(talk.model.snapshot(), settings=talk.settings)
    assert restored.snapshot() == talk.model.snapshot()
    before, after = (model.groups.opened(("c1", "g"))[0] for model in (talk.model, restored))
    assert asdict(after) == asdict(before)
    assert (after.open, after.connections) == (before.open, before.connections)
    assert after.members == before.members


# ---------------------------------------------------------------------------------------------------- O-10 in groups with epochs


def stale_read(talk: Epochs, error: int = 113) -> Client:
    """Partition foo-1 stands at 40, and a's read of it is refused."""
    a = alone(talk, 1)
    talk.beats(a, owned=foo(0, 1))
    talk.commit_offsets(a, {0: 7, 1: 40}, group_instance_id=None)
    talk.fetch_offsets(a, {1: -1}, error=error)
    talk.wait(300)
    return a


@pytest.mark.parametrize("error", [25, 113])
def test_O_10_fires_in_a_consumer_group_and_after_a_restore(talk: Epochs, error: int) -> None:
    a = stale_read(talk, error)
    talk.restore()
    talk.commit_offsets(a, {0: 8, 1: 5_000}, group_instance_id=None)
    talk.settle()
    finding = talk.the("O-10")
    assert (finding.group_type, finding.member_id, finding.generation) == ("consumer", "a-id", 1)
    assert finding.summary.endswith("It moves t-1 from 40 to 5000.")


def test_O_10_ignores_a_read_of_a_consumer_group_that_was_repeated_at_the_new_epoch(talk: Epochs) -> None:
    a = stale_read(talk)
    talk.beats(a, 2, owned=foo(0, 1))
    talk.fetch_offsets(a, {1: 40})
    talk.commit_offsets(a, {0: 8, 1: 41}, group_instance_id=None)
    assert talk.settled_rules() == []


def test_O_10_misses_no_offset_of_a_commit_of_a_consumer_group_that_should_have_been_refused(talk: Epochs) -> None:
    a = alone(talk, 1)
    talk.beats(a, owned=foo(0, 1))
    stranger = talk.member("x")
    stranger.member_id, stranger.generation = "x-id", 1
    talk.commit_offsets(stranger, {1: 40}, group_instance_id=None)
    talk.wait(2_000)
    talk.fetch_offsets(a, {1: -1})
    assert talk.settled_rules() == ["E-20"]


def test_O_10_needs_a_read_without_a_gap_in_a_consumer_group(talk: Epochs) -> None:
    a = stale_read(talk)
    talk.gap()
    talk.commit_offsets(a, {1: 5_000}, group_instance_id=None)
    assert "O-10" not in talk.settled_rules()

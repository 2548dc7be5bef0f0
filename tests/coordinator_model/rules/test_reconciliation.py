"""Who gets which partitions in groups with epochs: what fires each rule, what must keep it quiet, what resolves it."""

from __future__ import annotations

import pytest

from coordinator_model import wire
from coordinator_model.finding import Blame, Certainty, Severity, Status
from tests.coordinator_model.conversation import Client
from tests.coordinator_model.epoch_groups import alone, commits_by_id, joined_pair, newcomer, over, pair, stubborn
from tests.coordinator_model.epochs import Epochs, foo

# ----------------------------------------------------------------------------------------------------


def test_A_12_fires_when_a_partition_is_given_away_before_its_holder_gave_it_up(talk: Epochs) -> None:
    a, b = newcomer(talk)
    talk.beats(b, 3, foo(2))
    assert talk.rules() == []
    talk.beats(a)
    talk.settle()
    finding = talk.the("A-12")
    assert (finding.severity, finding.certainty, finding.blame) == (Severity.CRITICAL, Certainty.CONFIRMED, Blame.BROKER)
    assert "foo-2" in finding.summary
    assert "b-id" in finding.summary
    assert finding.member_id == "a-id"
    assert len(finding.evidence) == 3
    assert talk.rules() == ["A-12"]
    over(talk)
    assert talk.the("A-12").status is Status.RESOLVED


def test_A_12_fires_on_a_partition_that_the_holder_was_never_asked_for(talk: Epochs) -> None:
    a, b = pair(talk)
    talk.beats(b, 4, foo(0, 2))
    talk.beats(a)
    assert talk.settled_rules() == ["A-12"]


def test_A_12_fires_although_the_holders_connection_broke_after_the_grant(talk: Epochs) -> None:
    """Only a grant after its connection ended may show that its session is over."""
    a, b = alone(talk), talk.member("b")
    talk.beats(a)
    talk.joins(b, 3, foo(0))
    talk.wait(1_000)
    talk.close(a)
    talk.beats(b)
    talk.beats(a.reconnected())
    talk.settle()
    assert (talk.rules(), talk.the("A-12").member_id) == (["A-12"], "a-id")


@pytest.mark.parametrize("how", ["acknowledged", "left", "aside", "fenced", "joined again", "one frame"])
def test_A_12_allows_every_lawful_release(talk: Epochs, how: str) -> None:
    a, b = talk.member("a"), talk.member("b")
    if how == "aside":
        a.instance_id = "i"
    talk.joins(a, 2, foo(0, 1, 2))
    talk.joins(b, 3, {})
    if how == "one frame":
        talk.beats(a, 3, foo(0, 1), owned=foo(0, 1))
    else:
        talk.beats(a, 2, foo(0, 1))
    if how == "acknowledged":
        talk.beats(a, 3, owned=foo(0, 1))
    elif how == "left":
        talk.leaves(a)
    elif how == "aside":
        talk.leaves(a, -2)
    elif how == "fenced":
        talk.refused(a, 25)
    elif how == "joined again":
        talk.joins(a, 3, foo(0, 1))
    talk.beats(b, 3, foo(2))
    if how not in {"left", "aside", "fenced"}:
        talk.beats(a)
    assert talk.settled_rules() == []


def test_A_12_allows_a_release_under_way(talk: Epochs) -> None:
    """The acknowledgement was processed, but its answer comes later than the grant."""
    a, b = newcomer(talk)
    asked = talk.ask_beat(a, owned=foo(0, 1))
    talk.beats(b, 3, foo(2))
    talk.answer(asked, talk.given(a, 3))
    a.generation = 3
    talk.beats(a)
    assert talk.settled_rules() == []


def test_A_12_allows_a_grant_that_is_older_than_the_holders(talk: Epochs) -> None:
    a, b = talk.member("a"), talk.member("b")
    talk.joins(b, 2, {})
    late = talk.ask_beat(b)
    talk.joins(a, 3, foo(0, 1, 2))
    talk.answer(late, talk.given(b, 2, foo(2)))
    talk.beats(a)
    assert talk.settled_rules() == []


def test_A_12_needs_the_holder_to_be_accepted_afterwards(talk: Epochs) -> None:
    a, b = newcomer(talk)
    talk.beats(b, 3, foo(2))
    talk.refused(a, 25)
    assert talk.settled_rules() == []


@pytest.mark.parametrize("lost", ["records", "answer", "gap"])
def test_A_12_needs_every_frame_of_the_holder(talk: Epochs, lost: str) -> None:
    a, b = newcomer(talk)
    if lost == "records":
        talk.lose(2)
    elif lost == "gap":
        talk.gap()
    else:
        talk.ask_beat(a, owned=foo(0, 1))
        a.generation = 2
    talk.beats(b, 3, foo(2))
    talk.beats(a, epoch=2)
    talk.beats(a)
    assert [rule for rule in talk.settled_rules() if not rule.startswith("V")] == []


def test_A_12_leaves_a_coordinator_that_moved_alone(talk: Epochs) -> None:
    a, b = newcomer(talk)
    talk.beats(b, 3, foo(2))
    talk.refused(b, 16)
    a = a.reconnected("2")
    talk.beats(a)
    assert talk.settled_rules() == []


def test_A_12_leaves_the_successor_of_a_static_member_alone(talk: Epochs) -> None:
    a = alone(talk, instance_id="i")
    talk.leaves(a, -2)
    again = talk.member("b", "i")
    talk.joins(again, 2, foo(0, 1))
    talk.beats(again)
    assert talk.settled_rules() == []


def test_A_12_is_no_matter_of_a_share_group(talk: Epochs) -> None:
    a, b = talk.member("a"), talk.member("b")
    for _ in range(3):
        for client in (a, b):
            talk.wait(20)
            entry = wire.ShareGroupHeartbeatResponseTopicPartitions(topic_id="fooAAAAAAAAAAAAAAAAAAA", partitions=(0, 1))
            given = wire.ShareGroupHeartbeatResponseAssignment(topic_partitions=(entry,))
            request = wire.ShareGroupHeartbeatRequest(
                group_id="g", member_id=client.member_id, member_epoch=client.generation, subscribed_topic_names=("foo",)
            )
            reply = wire.ShareGroupHeartbeatResponse(
                member_id=client.member_id, member_epoch=2, heartbeat_interval_ms=5_000, assignment=given
            )
            talk.call(client, request, reply)
            client.generation = 2
    assert talk.settled_rules() == []
    assert talk.group_json()["group_type"] == "share"


# ----------------------------------------------------------------------------------------------------


def test_R_14_warns_of_partitions_that_are_not_given_up_and_says_who_waits_until_when(talk: Epochs) -> None:
    a, b = stubborn(talk, 35)
    finding = talk.the("R-14")
    assert (finding.severity, finding.certainty, finding.blame) == (Severity.WARNING, Certainty.CONFIRMED, Blame.CLIENT)
    assert finding.member_id == "a-id"
    assert "was asked to give up foo-2 of group g 30.0 s ago and has not" in finding.summary
    assert "; 1 member may wait for it." in finding.summary
    assert "the coordinator removes that member at 22:" in finding.summary
    talk.beats(a, 3, owned=foo(0, 1))
    talk.beats(b, 3, foo(2))
    talk.wait(1_500)
    assert talk.the("R-14").status is Status.RESOLVED
    assert talk.rules() == ["R-14"]


def test_R_14_allows_the_coordinator_to_have_loaded_the_group_again_unseen(talk: Epochs) -> None:
    """Twice, each time between two heartbeats; the member's time begins anew then."""
    stubborn(talk, 180)
    assert talk.the("R-14").severity is Severity.WARNING


def test_R_14_waits_for_half_of_the_timeout(talk: Epochs) -> None:
    stubborn(talk, 25)
    assert talk.rules() == []


def test_R_14_allows_the_clock_to_start_again_with_each_smaller_assignment(talk: Epochs) -> None:
    a, b = newcomer(talk)
    talk.live([a, b], 20)
    talk.beats(a, 2, foo(0), owned=foo(0, 1))
    talk.live([a, b], 25)
    talk.beats(a, 3, owned=foo(0))
    talk.live([a, b], 10)
    assert talk.rules() == []


def test_R_14_needs_to_know_the_timeout(talk: Epochs) -> None:
    a = talk.member("a")
    talk.beats(a, 7, foo(0, 1), epoch=7, owned=foo(0, 1))
    talk.beats(a, 7, foo(0))
    talk.live([a], 90)
    assert talk.rules() == []


def test_R_14_takes_no_account_of_the_timeout_at_the_join_if_another_was_sent(talk: Epochs) -> None:
    a, b = talk.member("a"), talk.member("b")
    talk.joins(a, 2, foo(0, 1, 2), rt_ms=20_000)
    talk.joins(b, 3, {})
    talk.beats(a, 2, foo(0, 1), rebalance_timeout_ms=180_000, subscribed_topic_names=("foo",))
    talk.live([a, b], 60)
    assert talk.rules() == []


def gives_up_one_by_one(talk: Epochs, left: int) -> tuple[Client, Client]:
    """A member that holds nine partitions is asked for another one every 20 s, and one that has none."""
    a, b = joined_pair(talk, held=foo(*range(9)))
    for kept in range(8, left - 1, -1):
        talk.beats(a, 2, foo(*range(kept)), owned=foo(*range(kept + 1)))
        talk.live([a, b], 20)
    return a, b


def test_R_15_warns_when_a_member_has_nothing_for_longer_than_a_rebalance_timeout(talk: Epochs) -> None:
    """Each answer that takes more starts the clock of R-14 again; the one who waits has waited all the time."""
    a, b = gives_up_one_by_one(talk, left=3)
    finding = talk.the("R-15")
    assert (finding.severity, finding.certainty) == (Severity.WARNING, Certainty.HEURISTIC)
    assert finding.member_id == "b-id"
    assert "a-id" in finding.summary
    talk.beats(a, 3, owned=foo(0, 1, 2))
    talk.beats(b, 3, foo(3))
    talk.wait(1_500)
    assert talk.the("R-15").status is Status.RESOLVED
    assert talk.rules() == ["R-15"]


def test_R_15_lets_nobody_wait_for_itself(talk: Epochs) -> None:
    """It has sent nothing since the epoch rose once more, and it holds nothing that anybody waits for."""
    a, _ = gives_up_one_by_one(talk, left=6)
    talk.joins(talk.member("c"), 4, {})
    talk.beats(a, 2, foo(*range(5)), owned=foo(*range(6)))
    talk.live([a], 20)
    [summary] = [one.summary for one in talk.findings if (one.rule, one.member_id) == ("R-15", "b-id")]
    assert "member a-id" in summary
    assert "may wait: member b-id" not in summary
    assert "; member b-id" not in summary


def test_R_15_allows_more_members_than_partitions(talk: Epochs) -> None:
    a, b = joined_pair(talk, held=foo(0))
    talk.beats(a, 3)
    talk.live([a, b], 300)
    assert talk.rules() == []


# ----------------------------------------------------------------------------------------------------


def rising(talk: Epochs, seconds: int, every_s: int = 5) -> None:
    a = alone(talk)
    for turn in range(seconds // every_s):
        talk.beats(a, 3 + turn)
        for _ in range(every_s // 5):
            talk.wait(4_900)
            talk.beats(a)


def test_R_16_fires_when_the_epoch_rises_with_every_heartbeat_for_five_minutes(talk: Epochs) -> None:
    rising(talk, 320)
    talk.settle()
    finding = talk.the("R-16")
    assert (finding.severity, finding.certainty) == (Severity.ERROR, Certainty.HEURISTIC)
    assert "topics, a pattern or the configuration changed" in finding.summary
    over(talk)
    assert talk.the("R-16").status is Status.RESOLVED
    assert talk.rules() == ["R-16"]


@pytest.mark.parametrize(("seconds", "every_s"), [(290, 5), (600, 10)])
def test_R_16_allows_a_deployment_and_epochs_that_last(talk: Epochs, seconds: int, every_s: int) -> None:
    rising(talk, seconds, every_s)
    assert talk.settled_rules() == []


# ---------------------------------------------------------------------------------------------------- E-12, E-13, E-16


def test_E_12_fires_on_a_join_that_is_answered_without_an_assignment(talk: Epochs) -> None:
    a = talk.member("a")
    talk.joins(talk.member("z"), 2, {})
    talk.wait(20)
    talk.call(a, talk.beat_request(a, 0, **talk.join_fields()), talk.given(a, 3))
    finding = talk.the("E-12")
    assert (finding.severity, finding.certainty, finding.blame) == (Severity.ERROR, Certainty.CERTAIN, Blame.BROKER)
    over(talk)
    assert talk.the("E-12").status is Status.RESOLVED


def test_E_12_fires_on_a_full_request(talk: Epochs) -> None:
    a = alone(talk)
    talk.full(a, 2, None, owned=foo(0, 1))
    assert talk.rules() == ["E-12"]


@pytest.mark.parametrize("lacking", ["owned", "rebalance_timeout_ms", "subscribed_topic_names"])
def test_E_12_allows_it_unless_the_request_has_everything(talk: Epochs, lacking: str) -> None:
    a = alone(talk)
    fields = {**talk.join_fields(), "owned": foo(0, 1)}
    del fields[lacking]
    talk.beats(a, **fields)
    assert talk.settled_rules() == []


def test_E_12_leaves_preview_brokers_alone(talk: Epochs) -> None:
    a = alone(talk)
    talk.wait(20)
    talk.call(a, talk.beat_request(a, **{**talk.join_fields(), "owned": foo(0)}), talk.given(a, 2), version=0)
    assert talk.settled_rules() == []


def test_E_13_fires_at_the_third_failure_with_the_brokers_reason(talk: Epochs) -> None:
    a = alone(talk)
    for _ in range(3):
        assert talk.rules() == []
        talk.refused(a, -1, text="Failed to compute a new target assignment for epoch 11")
        talk.wait(3_000)
    finding = talk.the("E-13")
    assert (finding.severity, finding.blame) == (Severity.ERROR, Blame.BROKER)
    assert "for epoch 11" in finding.summary
    talk.beats(a, 3)
    talk.wait(1_500)
    assert talk.the("E-13").status is Status.RESOLVED
    assert talk.rules() == ["E-13"]


def test_E_13_allows_two_failures_with_a_success_between(talk: Epochs) -> None:
    a = alone(talk)
    for _ in range(4):
        talk.refused(a, -1)
        talk.refused(a, -1)
        talk.beats(a)
    assert talk.settled_rules() == []


def test_E_16_fires_on_more_topics_than_the_member_subscribes_to(talk: Epochs) -> None:
    a = alone(talk)
    commits_by_id(talk, a)
    talk.beats(a, 3, {"foo": (0,), "bar": (0,)})
    finding = talk.the("E-16")
    assert (finding.severity, finding.blame) == (Severity.ERROR, Blame.BROKER)
    over(talk)
    assert talk.the("E-16").status is Status.RESOLVED
    assert talk.rules() == ["E-16"]


def test_E_16_leaves_brokers_alone_that_may_be_older(talk: Epochs) -> None:
    a = alone(talk)
    talk.beats(a, 3, {"foo": (0,), "bar": (0,)})
    assert talk.settled_rules() == []


def test_E_16_allows_any_number_of_topics_under_a_pattern(talk: Epochs) -> None:
    a = talk.member("a")
    talk.joins(a, 2, {}, subscribed_topic_regex=".*")
    commits_by_id(talk, a)
    talk.beats(a, 3, {"foo": (0,), "bar": (0,), "zar": (0,)})
    assert talk.settled_rules() == []

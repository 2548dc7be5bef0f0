"""What findings of groups with epochs say: true of the frames, and with advice for the cause that was found."""

from __future__ import annotations

import re

import pytest

from coordinator_model import wire
from coordinator_model.finding import Blame, Severity, Status
from tests.coordinator_model.classic import settled
from tests.coordinator_model.conversation import Client
from tests.coordinator_model.epoch_groups import alone, back_and_forth, joined_pair, newcomer, stubborn
from tests.coordinator_model.epochs import Epochs, foo
from tests.coordinator_model.streams import AnyKind, Streams, share_storm

# ---------------------------------------------------------------------------------------------------- E-04


def away_and_accepted(talk: Epochs) -> None:
    a = alone(talk, 5, held=foo(0), instance_id="i")
    talk.leaves(a, -2)
    talk.beats(a, 5, epoch=5)


def at_an_older_epoch(talk: Epochs) -> None:
    a = alone(talk, 3)
    talk.beats(a, 5)
    talk.beats(a, 6)
    talk.beats(a, 6, epoch=3)


def aside_without_an_instance_id_of_its_own(talk: Epochs) -> None:
    a = alone(talk, 5)
    talk.wait(20)
    talk.call(a, talk.beat_request(a, -2, instance_id="i"), talk.given(a, -2))


@pytest.mark.parametrize(
    ("how", "why"),
    [
        (away_and_accepted, "although that member left for a while and has not joined since"),
        (at_an_older_epoch, "although its epoch is 6"),
        (aside_without_an_instance_id_of_its_own, "although that member does not hold instance id i"),
    ],
)
def test_E_04_says_what_the_accepted_heartbeat_had_to_be_refused_for(talk: Epochs, how: object, why: str) -> None:
    how(talk)  # type: ignore[operator]
    talk.settle()
    summary = talk.the("E-04").summary
    assert why in summary
    assert "None" not in summary


# ----------------------------------------------------------------------------------------------------


def test_R_14_names_the_client_while_it_has_time_and_is_an_error_of_the_broker_that_accepts_it_afterwards(talk: Epochs) -> None:
    stubborn(talk, 195)
    first, *_, last = [finding for finding in talk.findings if finding.rule == "R-14"]
    assert (first.blame, "rebalance listener" in first.action) == (Blame.CLIENT, True)
    assert (last.severity, last.blame, "rebalance listener" in last.action) == (Severity.ERROR, Blame.BROKER, False)
    assert "should have removed" in last.summary
    assert "the coordinator's log" in last.action
    assert "Restart" in last.action


@pytest.mark.parametrize("seconds", [60, 75, 190])
def test_R_15_is_silent_about_a_cause_that_R_14_reports(talk: Epochs, seconds: int) -> None:
    stubborn(talk, seconds)
    assert talk.rules() == ["R-14"]


def test_R_15_announces_no_time_that_has_passed(talk: Epochs) -> None:
    a, b = joined_pair(talk, held=foo(*range(9)))
    for left in range(8, 2, -1):
        talk.beats(a, 2, foo(*range(left)), owned=foo(*range(left + 1)))
        talk.live([a, b], 20)
    opened = next(finding for finding in talk.findings if finding.rule == "R-15")
    announced = opened.summary.rpartition("removes that member at ")[2].rstrip(".")
    assert announced > str(opened.as_json()["opened_at"])
    assert talk.rules() == ["R-15"]


# ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("releases", [(), ((4, 2),)])
def test_R_16_blames_a_broker_that_may_be_older_than_4_3_for_a_share_group_that_nothing_changes(
    releases: tuple[tuple[int, int], ...],
) -> None:
    finding = share_storm(*releases)
    assert finding.blame is Blame.BROKER
    assert "apache/kafka/pull/21721" in finding.action
    assert "nothing that was seen raises it" in finding.summary


@pytest.mark.parametrize("release", [(4, 3), (4, 4)])
def test_R_16_blames_the_operator_for_a_share_group_of_a_newer_broker_that_nothing_seen_changes(release: tuple[int, int]) -> None:
    finding = share_storm(release)
    assert finding.blame is Blame.OPERATOR
    assert "apache/kafka/pull/21721" not in finding.action


def test_R_16_blames_clients_that_join_again_and_again() -> None:
    finding = share_storm(joins=True)
    assert finding.blame is Blame.CLIENT
    assert "joined 6" in finding.summary
    assert re.search(r", last by member \S+ \(client \S+ at ", finding.summary), finding.summary
    assert "members that join and leave" in finding.action


def test_R_16_blames_the_operator_for_topics_that_come_and_go(talk: Epochs) -> None:
    a = alone(talk)
    for epoch in range(3, 72):
        talk.beats(a, epoch)
        talk.wait(4_900)
    finding = talk.the("R-16")
    assert (finding.blame, "topics" in finding.action) == (Blame.OPERATOR, True)


# ---------------------------------------------------------------------------------------------------- E-10

POLICY = "group.consumer.migration.policy"


def refused_share(talk: Epochs, client: Client, error: int) -> None:
    request = wire.ShareGroupHeartbeatRequest(
        group_id="g", member_id=client.member_id, member_epoch=0, subscribed_topic_names=("foo",)
    )
    talk.call(client, request, wire.ShareGroupHeartbeatResponse(error_code=error))


@pytest.mark.parametrize(
    ("held", "asks", "error", "advice"),
    [
        ("classic", "consumer", 69, POLICY),
        ("share", "consumer", 69, "another group id"),
        ("streams", "consumer", 69, "another group id"),
        ("consumer", "share", 69, "another group id"),
        ("classic", "share", 69, "another group id"),
        ("classic", "streams", 69, "another group id"),
        ("consumer", "consumer", 35, "group.version"),
        ("share", "share", 35, "share.version"),
        ("streams", "streams", 35, "streams.version"),
    ],
)
def test_E_10_advises_for_the_cause_that_was_found(talk: AnyKind, held: str, asks: str, error: int, advice: str) -> None:
    if held == "classic":
        settled(talk)
    elif held == "consumer":
        alone(talk)
    elif held == "share":
        talk.shares(talk.member("a"), 0, 2, (0,))
    else:
        talk.enters(talk.member("a"), 2, (0,))
    x = talk.member("a" if held == asks else "x")
    for _ in range(3):
        talk.wait(1_000)
        if asks == "consumer":
            talk.refused_join(x, error)
        elif asks == "share":
            refused_share(talk, x, error)
        else:
            talk.refused_entry(x, error)
    action = talk.the("E-10").action
    assert advice in action
    assert (POLICY in action) == (advice == POLICY)


def test_E_10_says_that_the_group_is_gone_to_a_member_that_goes_on(talk: Epochs) -> None:
    a = alone(talk)
    for _ in range(3):
        talk.refused(a, 69)
        talk.wait(5_000)
    action = talk.the("E-10").action
    assert POLICY not in action
    assert "Restart" in action


# ---------------------------------------------------------------------------------------------------- tasks


def test_A_12_names_tasks_as_kafka_streams_does(talk: Streams) -> None:
    a, b = talk.member("a"), talk.member("b")
    talk.enters(a, 2, (0, 1, 2))
    talk.enters(b, 3)
    talk.works(a, 2, (0,))
    talk.works(b, 3, (1, 2))
    talk.works(a)
    talk.settle()
    finding = talk.the("A-12")
    assert "gave tasks 0_1 and 0_2 of group g to member b-id" in finding.summary
    assert finding.observed.startswith("Assigned to b-id before a-id gave it up: tasks 0_1 and 0_2")


def test_R_14_names_tasks_as_kafka_streams_does(talk: Streams) -> None:
    a, b = talk.member("a"), talk.member("b")
    talk.enters(a, 2, (0, 1, 2))
    talk.enters(b, 3)
    talk.works(a, 2, (0, 1))
    talk.told_for([a, b], 35)
    assert "was asked to give up task 0_2 of group g" in talk.the("R-14").summary


def test_E_08_counts_tasks_as_tasks(talk: Streams) -> None:
    a = talk.member("a")
    talk.enters(a, 2, (0,))
    talk.works(a, owned=tuple(range(9)))
    talk.settle()
    assert "claims 8 tasks (0_1, 0_2, 0_3 …) in group g" in talk.the("E-08").summary


def test_A_12_names_partitions_of_consumer_groups_by_topic(talk: Epochs) -> None:
    a, b = newcomer(talk)
    talk.beats(b, 3, foo(2))
    talk.beats(a)
    talk.settle()
    assert "gave foo-2 of group g to member b-id" in talk.the("A-12").summary


# ---------------------------------------------------------------------------------------------------- E-21


def test_E_21_and_P_12_are_opened_once_and_counted_at_each_further_conversion(talk: Epochs) -> None:
    back_and_forth(talk, 8)
    for rule, times in (("E-21", 6), ("P-12", 8)):
        findings = [finding for finding in talk.findings if finding.rule == rule]
        assert [finding.status for finding in findings].count(Status.OPEN) == 1, rule
        assert Status.RESOLVED not in [finding.status for finding in findings]
        assert {finding.id for finding in findings} == {findings[0].id}
        assert times // 2 < findings[-1].count <= times
    talk.wait(3_700_000)
    assert talk.the("E-21").status is Status.RESOLVED
    assert talk.the("P-12").status is Status.RESOLVED


def test_a_conversion_ends_what_was_found_in_the_group_as_the_type_that_it_was(talk: Epochs) -> None:
    stubborn(talk, 35)
    talk.wait(61_000)
    talk.round([talk.client("c")], 9)
    assert talk.the("R-14").status is Status.RESOLVED

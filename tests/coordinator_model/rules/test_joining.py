"""M-14: a client that is not let in, by who or what is in its way."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator_model import wire
from coordinator_model.finding import Blame, Certainty, Severity, Status
from tests.coordinator_model.classic import settled
from tests.coordinator_model.conversation import Client, Conversation
from tests.coordinator_model.epoch_groups import alone
from tests.coordinator_model.epochs import Epochs, foo
from tests.coordinator_model.streams import Shares, Streams

DIRTY = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": ("foo",), "owned": foo(0)}


def knocks(talk: Epochs, client: Client, error: int, times: int, every_ms: int = 2_000) -> None:
    for _ in range(times):
        talk.refused_join(client, error)
        talk.wait(every_ms)


def restarted(talk: Epochs, dies: Client) -> Client:
    """The process is killed, and another one comes 3 s later under its instance id."""
    talk.close(dies)
    talk.wait(3_000)
    successor = talk.member("a2", "i")
    successor.name = dies.name
    return successor


def static_pair(talk: Epochs) -> tuple[Client, Client]:
    a, b = talk.member("a", "i"), talk.member("b")
    talk.joins(a, 2, foo(0, 1))
    talk.joins(b, 3, {})
    talk.live([a, b], 10)
    return a, b


# ---------------------------------------------------------------------------------------------------- groups with epochs


def test_M_14_fires_at_the_third_refusal_of_a_member_that_comes_back_under_its_own_id(talk: Epochs) -> None:
    """KAFKA-19233: its answer was lost, and the coordinator knows it still."""
    a, b = talk.member("a"), talk.member("b")
    talk.joins(b, 2, {})
    talk.joins(a, 3, foo(0, 1))
    accepted_us = talk.now_us
    knocks(talk, a, 110, 2)
    assert talk.rules() == []
    knocks(talk, a, 110, 21)
    finding = talk.the("M-14")
    assert finding.opened_at_us < accepted_us + 6_000_000
    assert (finding.severity, finding.blame, finding.certainty) == (Severity.WARNING, Blame.BROKER, Certainty.CERTAIN)
    assert (finding.member_id, finding.client_id) == ("a-id", "a")
    talk.beats(b, 4, foo(0, 1))
    talk.joins(a, 5, {})
    talk.wait(1_500)
    finding = talk.the("M-14")
    assert finding.status is Status.RESOLVED
    assert "refused it 23 times since" in finding.summary
    assert "It still knows that member at epoch 3. Brokers before 4.2 do not let a member in" in finding.summary
    assert "Nobody reads foo-0 and foo-1 until its session ends, at 22:14:05" in finding.summary
    assert finding.action.startswith("Upgrade the brokers to 4.2 or later.")
    assert talk.rules() == ["M-14"]


def test_M_14_does_not_count_refusals_that_were_followed_by_a_success(talk: Epochs) -> None:
    a = alone(talk)
    for _ in range(6):
        talk.refused_join(a, 110)
        talk.wait(2_000)
        talk.beats(a)
        talk.wait(2_000)
    talk.wait(20_000)
    assert talk.rules() == []


def test_M_14_ignores_a_burst_of_refusals_before_the_client_is_let_in(talk: Epochs) -> None:
    a, b = alone(talk), talk.member("b")
    knocks(talk, b, 81, 12, 200)
    talk.joins(b, 3, {})
    talk.live([a, b], 30)
    assert talk.rules() == []


def test_M_14_warns_at_once_that_the_successor_of_a_dead_static_member_is_refused(talk: Epochs) -> None:
    a, b = static_pair(talk)
    successor = restarted(talk, a)
    talk.refused_join(successor, 111)
    refused_us = talk.now_us
    talk.live([b], 10)
    finding = talk.the("M-14")
    assert (finding.severity, finding.blame, finding.instance_id, finding.member_id) == (
        Severity.WARNING,
        Blame.CLIENT,
        "i",
        "a2-id",
    )
    assert finding.opened_at_us < refused_us + 4_000_000
    assert "Instance id i is held by member a-id" in finding.summary
    assert "its connection ended at 22:" in finding.summary
    assert "Nobody reads" in finding.summary
    assert "until that session ends, at" in finding.summary
    talk.live([b], 35)
    talk.beats(b, 4, foo(0, 1))
    talk.live([b], 15)
    finding = talk.the("M-14")
    assert finding.severity is Severity.WARNING  # it does not ask again, and its process looks healthy
    assert "The refused client has not asked again since, though its connection stands, and reads nothing." in finding.summary
    assert finding.action.startswith("Restart the refused client")
    talk.close(successor)
    talk.live([b], 65)
    assert talk.the("M-14").status is Status.RESOLVED
    assert talk.rules() == ["M-14", "T-04"]


def test_M_14_warns_of_a_holder_that_is_not_heard_though_its_connection_stands(talk: Epochs) -> None:
    """Its host has vanished: nobody closes the connection."""
    _, b = static_pair(talk)
    successor = talk.member("a2", "i")
    talk.refused_join(successor, 111)
    talk.live([b], 20)
    finding = talk.the("M-14")
    assert finding.severity is Severity.WARNING
    assert "nothing was heard of it since 22:" in finding.summary


def test_M_14_is_over_when_the_successor_is_let_in(talk: Epochs) -> None:
    a, b = static_pair(talk)
    successor = restarted(talk, a)
    for _ in range(16):
        talk.refused_join(successor, 111)
        talk.live([b], 5)
    talk.joins(successor, 4, foo(0, 1))
    talk.wait(1_500)
    assert talk.the("M-14").status is Status.RESOLVED
    assert talk.the("M-14").severity is Severity.WARNING
    assert "The refused client is refused still." in talk.the("M-14").summary


def test_M_14_leaves_a_holder_that_lives_to_E_06(talk: Epochs) -> None:
    a, b = static_pair(talk)
    rival = talk.member("a2", "i")
    for _ in range(8):
        talk.refused_join(rival, 111)
        talk.live([a, b], 5)
    assert talk.rules() == ["E-06"]


@pytest.mark.parametrize(("pause_s", "rule"), [(5, "E-06"), (20, "M-14")])
def test_processes_that_want_the_instance_id_of_one_that_lives_are_one_message(talk: Epochs, pause_s: int, rule: str) -> None:
    """Each was refused once, and gave up: which rule finds it depends on when the second one comes."""
    a, b = static_pair(talk)
    for number in range(5):
        rival = talk.member(f"a{number + 2}", "i")
        talk.refused_join(rival, 111)
        talk.live([a, b], pause_s)
        talk.close(rival)
    assert talk.rules() == [rule]
    assert talk.the(rule).severity is (Severity.ERROR if rule == "M-14" else Severity.WARNING)
    assert "member a-id" in talk.the(rule).summary
    talk.live([a, b], 180)
    assert talk.the(rule).status is Status.RESOLVED
    talk.close(a)
    talk.live([b], 70)
    assert talk.the(rule).status is Status.RESOLVED  # that the holder died later is no news of those who wanted its place


def test_M_14_allows_a_successor_that_is_let_in_at_its_second_attempt(talk: Epochs) -> None:
    a, b = static_pair(talk)
    successor = talk.member("a2", "i")
    talk.refused_join(successor, 111)
    talk.leaves(a, -2)
    talk.wait(1_000)
    talk.joins(successor, 3, foo(0, 1))
    talk.live([successor, b], 30)
    assert talk.rules() == []


FULL = "The group is full: the brokers' group.consumer.max.size allows no more members."


@pytest.mark.parametrize(
    ("error", "blame", "words"),
    [
        (81, Blame.CONFIG, FULL),
        (30, Blame.CONFIG, "GROUP_AUTHORIZATION_FAILED"),
        (29, Blame.CONFIG, "TOPIC_AUTHORIZATION_FAILED"),
        (112, Blame.CONFIG, "UNSUPPORTED_ASSIGNOR"),
        (128, Blame.CLIENT, "INVALID_REGULAR_EXPRESSION"),
        (10, Blame.CLIENT, "MESSAGE_TOO_LARGE"),
    ],
)
def test_M_14_warns_of_one_refusal_unless_the_client_is_let_in(talk: Epochs, error: int, blame: Blame, words: str) -> None:
    a, b = alone(talk), talk.member("b")
    talk.refused_join(b, error, text="why not")
    talk.live([a], 10)
    talk.wait(1_500)
    finding = talk.the("M-14")
    assert (finding.severity, finding.blame, finding.client_id) == (Severity.WARNING, blame, "b")
    assert words in finding.summary
    assert "(“why not”)" in finding.summary
    knocks(talk, b, error, 2)
    talk.settle()
    assert talk.the("M-14").severity is Severity.WARNING  # the other member consumes
    talk.leaves(a)
    knocks(talk, b, error, 2)
    talk.settle()
    assert talk.the("M-14").severity is (Severity.WARNING if error == 81 else Severity.ERROR)


def test_M_14_names_what_makes_a_request_to_join_unacceptable(talk: Epochs) -> None:
    a, b = alone(talk), talk.member("b")
    for _ in range(3):
        talk.refused(b, 42, epoch=0, **DIRTY)
        talk.live([a], 5)
    finding = talk.the("M-14")
    assert (finding.severity, finding.blame) == (Severity.WARNING, Blame.CLIENT)
    assert "Such a request must be refused: it joins with partitions of its own." in finding.summary


def test_M_14_names_a_client_that_is_not_let_into_a_group_of_which_nothing_else_is_known(talk: Epochs) -> None:
    a = talk.member("a")
    knocks(talk, a, 30, 4)
    finding = talk.the("M-14")
    assert (finding.severity, finding.group_type) == (Severity.ERROR, "consumer")
    settled(talk)  # it is a group of the classic type
    talk.settle()
    assert talk.group_json()["group_type"] == "classic"
    assert talk.rules() == ["M-14"]


def test_M_14_names_a_client_that_is_not_let_into_a_group_of_another_type(talk: Epochs) -> None:
    settled(talk)
    knocks(talk, talk.member("new"), 30, 4)
    assert talk.the("M-14").group_type == "classic"


@pytest.mark.parametrize("error", [14, 15, 16, -1])
def test_M_14_leaves_a_coordinator_alone_that_is_elsewhere_or_fails(talk: Epochs, error: int) -> None:
    a, b = alone(talk), talk.member("b")
    for _ in range(5):
        talk.refused_join(b, error)
        talk.live([a], 5)
    assert "M-14" not in talk.rules()


def test_M_14_needs_frames_without_a_gap(talk: Epochs) -> None:
    a, b = alone(talk), talk.member("b")
    talk.refused_join(b, 30)
    talk.gap()
    talk.live([a], 30)
    assert "M-14" not in talk.rules()


def test_M_14_counts_a_process_that_is_started_anew_after_each_refusal(talk: Epochs) -> None:
    a = alone(talk)
    for number in range(4):
        b = talk.member("b")
        b.member_id = f"b-{number}"
        talk.refused_join(b, 30)
        talk.close(b)
        talk.live([a], 30)
    finding = talk.the("M-14")
    assert (finding.severity, "refused it 3 times since" in finding.summary) == (Severity.WARNING, True)


@pytest.mark.parametrize("cut", [False, True])
def test_M_14_fires_for_members_of_share_and_streams_groups(*, cut: bool) -> None:
    share, streams = Shares(), Streams()
    a, b = share.member("a"), share.member("b")
    share.shares(a, 0, 2, (0,))
    for _ in range(3):
        request = wire.ShareGroupHeartbeatRequest(group_id="g", member_id="b-id", member_epoch=0, subscribed_topic_names=("foo",))
        share.call(b, request, wire.ShareGroupHeartbeatResponse(error_code=110))
        share.goes_on([a], 5)
    assert share.the("M-14").blame is Blame.BROKER
    c, d = streams.member("c"), streams.member("d")
    streams.enters(c, 2, (0,))
    for _ in range(3):
        streams.refused_entry(d, 81)
        streams.told_for([c], 5)
        if cut:
            streams.restore()
    assert "group.streams.max.size" in streams.the("M-14").summary
    assert "refused it 3 times since" in streams.the("M-14").summary


# ---------------------------------------------------------------------------------------------------- classic groups


def asks(talk: Conversation, client: Client, error: int, **fields: Any) -> None:
    talk.refuse_join(talk.ask_join(client, **fields), error)


@pytest.mark.parametrize("cut", [False, True])
def test_M_14_fires_on_a_classic_client_without_the_right(talk: Conversation, *, cut: bool) -> None:
    a, b = settled(talk)
    c = talk.client("c")
    for _ in range(4):
        asks(talk, c, 30)
        talk.heartbeat(a)
        talk.heartbeat(b)
        talk.wait(2_000)
        if cut:
            talk.restore()
    finding = talk.the("M-14")
    assert (finding.severity, finding.blame, finding.client_id) == (Severity.WARNING, Blame.CONFIG, "c")
    assert finding.action.startswith("Grant READ on this group")
    assert talk.rules() == ["M-14"]


def test_M_14_warns_of_a_classic_client_that_stops_at_a_full_group(talk: Conversation) -> None:
    """Java's throws an exception into the application."""
    a, b = settled(talk)
    asks(talk, talk.client("c"), 81)
    for _ in range(4):
        talk.heartbeat(a)
        talk.heartbeat(b)
        talk.wait(3_000)
    assert talk.the("M-14").severity is Severity.WARNING
    assert "group.max.size allows no more members" in talk.the("M-14").summary


def test_M_14_leaves_clients_that_keep_knocking_at_a_full_group_to_C_10(talk: Conversation) -> None:
    a, b = settled(talk)
    for _ in range(5):
        asks(talk, talk.client("c"), 81)
        talk.heartbeat(a)
        talk.heartbeat(b)
        talk.wait(1_500)
    assert talk.rules() == ["C-10"]


@pytest.mark.parametrize("error", [23, 25, 26, 79])
def test_M_14_leaves_other_refusals_to_their_own_rules(talk: Conversation, error: int) -> None:
    a, b = settled(talk)
    c = talk.client("c")
    for _ in range(5):
        asks(talk, c, error)
        talk.heartbeat(a)
        talk.heartbeat(b)
        talk.wait(3_000)
    assert "M-14" not in talk.rules()

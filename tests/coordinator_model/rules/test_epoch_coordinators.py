"""Family C and T-06 in groups with epochs: coordinators that are two, silent, away, loading or slow."""

from __future__ import annotations

import pytest

from coordinator_model import wire
from coordinator_model.finding import Blame, Certainty, Severity, Status
from coordinator_model.wire.record import Kind
from tests.coordinator_model.conversation import Asked, Client
from tests.coordinator_model.epoch_groups import alone, joined_pair
from tests.coordinator_model.epochs import Epochs, foo
from tests.coordinator_model.rules.coordinators import searching
from tests.coordinator_model.streams import Streams


def beats_on(talk: Epochs, client: Client, seconds: int, error: int) -> None:
    """A member is answered the same error again and again."""
    for _ in range(seconds // 5):
        talk.refused(client, error)
        talk.wait(5_000)


# ---------------------------------------------------------------------------------------------------- C-11


def test_C_11_fires_on_an_answer_to_a_heartbeat_with_an_epoch_that_has_another_correlation_id(talk: Epochs) -> None:
    a = alone(talk)
    asked = talk.ask_beat(a)
    reply = wire.ConsumerGroupHeartbeatResponse(error_code=110)
    frame = wire.encode_response(reply, api_version=asked.api_version, correlation_id=asked.exchange + 1)
    talk.now_us += 1_000
    a.outstanding -= 1
    talk._feed(Kind.RESPONSE, Asked(a, asked.api_key, asked.api_version, asked.exchange), frame)
    assert talk.settled_rules() == ["C-11"]
    finding = talk.the("C-11")
    assert (finding.severity, finding.blame, finding.group_type) == (Severity.ERROR, Blame.CAPTURE, "consumer")
    assert talk.group_json()["learning"] == "an answer does not belong to its request"


# ---------------------------------------------------------------------------------------------------- C-01


def test_C_01_fires_when_a_heartbeat_with_an_epoch_is_not_answered(talk: Epochs) -> None:
    a, b = alone(talk), talk.member("b")
    talk.joins(b, 3, {})
    asked = talk.ask_beat(a)
    talk.live([b], 25)
    assert talk.rules() == []
    talk.live([b], 10)
    finding = talk.the("C-01")
    assert (finding.severity, finding.blame, finding.member_id, finding.group_type) == (
        Severity.ERROR,
        Blame.BROKER,
        "a-id",
        "consumer",
    )
    assert "has not answered a ConsumerGroupHeartbeat of member a-id" in finding.summary
    talk.answer(asked, talk.given(a, 2))
    talk.wait(1_500)
    assert talk.the("C-01").status is Status.RESOLVED


def test_C_01_allows_a_connection_that_ends_with_a_heartbeat_open(talk: Epochs) -> None:
    a, b = alone(talk), talk.member("b")
    talk.joins(b, 3, {})
    talk.ask_beat(a)
    talk.wait(5_000)
    talk.close(a)
    talk.live([b], 40)
    assert "C-01" not in talk.rules()


# ---------------------------------------------------------------------------------------------------- C-04, C-05


def two_brokers(talk: Epochs, rounds: int, *, denies: bool) -> None:
    """Each broker serves its member, over connections that stand."""
    a, b = talk.member("a", broker="1"), talk.member("b", broker="2")
    talk.joins(a, 2, foo(0))
    talk.joins(b, 2, foo(0))
    for _ in range(rounds):
        for client in (a, b):
            talk.wait(2_000)
            if denies:
                talk.refused(client, 16)
            talk.beats(client)


@pytest.mark.parametrize("cut", [False, True])
def test_C_05_fires_when_two_brokers_serve_members_with_epochs_in_turns(talk: Epochs, *, cut: bool) -> None:
    two_brokers(talk, 2, denies=False)
    if cut:
        talk.restore()
    for client in (talk.member("c", broker="1"),):
        talk.joins(client, 3, {})
    two_brokers(talk, 6, denies=False)
    talk.wait(1_500)
    finding = talk.the("C-05")
    assert (finding.blame, finding.group_type) == (Blame.BROKER, "consumer")
    assert {"1", "2"} <= set(finding.summary.replace(",", " ").split())


def test_C_05_allows_a_coordinator_that_moves_to_and_fro_and_says_so(talk: Epochs) -> None:
    two_brokers(talk, 6, denies=True)
    talk.wait(1_500)
    assert "C-05" not in talk.rules()


def test_C_04_fires_when_the_coordinator_of_a_group_with_epochs_keeps_moving(talk: Epochs) -> None:
    a = alone(talk)
    for turn in range(4):
        talk.refused(a, 16)
        a = a.reconnected(str(turn % 2 + 2))
        talk.beats(a)
        talk.live([a], 15)
    finding = talk.the("C-04")
    assert (finding.severity, finding.group_type) == (Severity.WARNING, "consumer")


def test_C_04_allows_a_rolling_restart_that_moves_it_twice(talk: Epochs) -> None:
    a = alone(talk)
    for turn in range(2):
        talk.refused(a, 16)
        a = a.reconnected(str(turn + 2))
        talk.beats(a)
        talk.live([a], 60)
    assert talk.rules() == []


# ---------------------------------------------------------------------------------------------------- C-06, C-13


def test_C_06_fires_when_the_coordinator_of_a_group_with_epochs_loads_for_minutes(talk: Epochs) -> None:
    a = alone(talk)
    beats_on(talk, a, 60, 14)
    assert talk.rules() == []
    beats_on(talk, a, 20, 14)
    finding = talk.the("C-06")
    assert (finding.severity, finding.blame) == (Severity.WARNING, Blame.BROKER)
    talk.beats(a)
    talk.wait(1_500)
    assert talk.the("C-06").status is Status.RESOLVED
    assert talk.rules() == ["C-06"]


def test_C_06_allows_a_load_of_seconds(talk: Epochs) -> None:
    a = alone(talk)
    beats_on(talk, a, 20, 14)
    talk.live([a], 60)
    beats_on(talk, a, 20, 14)
    assert talk.rules() == []


def test_C_13_fires_when_a_group_with_epochs_has_no_coordinator(talk: Epochs) -> None:
    a = alone(talk)
    beats_on(talk, a, 45, 15)
    finding = talk.the("C-13")
    assert (finding.severity, finding.blame) == (Severity.ERROR, Blame.BROKER)
    assert "COORDINATOR_NOT_AVAILABLE" in finding.summary
    talk.beats(a)
    talk.wait(1_500)
    assert talk.the("C-13").status is Status.RESOLVED


def test_C_13_allows_a_coordinator_that_is_there_after_some_seconds(talk: Epochs) -> None:
    a = alone(talk)
    beats_on(talk, a, 20, 15)
    talk.live([a], 30)
    assert talk.rules() == []


# ---------------------------------------------------------------------------------------------------- C-14


def lost(talk: Epochs) -> list[Client]:
    """Two members whose coordinator has just died."""
    a, b = joined_pair(talk, 1, held=foo(0, 1))
    talk.beats(a, 2)
    talk.live([a, b], 30)
    for client in (a, b):
        talk.close(client)
    return [a, b]


@pytest.mark.parametrize("restored", [False, True])
def test_C_14_warns_once_of_a_group_with_epochs_that_lost_its_coordinator(talk: Epochs, *, restored: bool) -> None:
    clients = lost(talk)
    if restored:
        talk.restore()
    searching(talk, clients, 40)
    assert talk.rules() == ["C-14"]
    finding = talk.the("C-14")
    assert (finding.severity, finding.certainty, finding.blame) == (Severity.WARNING, Certainty.CONFIRMED, Blame.BROKER)
    assert finding.summary == (
        "Group g has had no coordinator for more than 22.5 s, since it lost 1 at 22:13:50: its 2 members cannot heartbeat, commit or rejoin; "
        "2 clients ask for a coordinator."
    )
    again = [client.reconnected("2") for client in clients]
    talk.live(again, 180)
    assert talk.rules() == ["C-14"]
    assert talk.the("C-14").status is Status.RESOLVED
    assert talk.the("C-14").summary == (
        "Group g had no coordinator for 40.1 s after it lost 1 at 22:13:50; 2 answers now, and 2 of its 2 members are back."
    )


def test_C_14_allows_a_coordinator_that_a_group_with_epochs_finds_within_half_a_session(talk: Epochs) -> None:
    clients = lost(talk)
    searching(talk, clients, 15)
    talk.live([client.reconnected("2") for client in clients], 60)
    assert talk.rules() == []


def test_C_14_allows_members_with_epochs_that_have_all_left(talk: Epochs) -> None:
    a = alone(talk)
    talk.leaves(a)
    talk.close(a)
    talk.wait(60_000)
    assert talk.rules() == []


# ---------------------------------------------------------------------------------------------------- T-06


def slow_beat(talk: Epochs, client: Client, ms: int, **fields: int) -> None:
    talk.answer(talk.ask_beat(client), talk.given(client, client.generation, **fields), after_ms=ms)


def test_T_06_fires_when_a_heartbeat_with_an_epoch_is_answered_after_a_third_of_the_session(talk: Epochs) -> None:
    a = alone(talk)
    slow_beat(talk, a, 16_000)
    talk.wait(1_500)
    finding = talk.the("T-06")
    assert (finding.severity, finding.blame) == (Severity.WARNING, Blame.BROKER)
    assert "took 16.0 s to answer a ConsumerGroupHeartbeat" in finding.summary
    assert "more than a third of that member's session of 45.0 s" in finding.summary
    talk.live([a], 70)
    assert talk.the("T-06").status is Status.RESOLVED


def test_T_06_allows_seconds_where_sessions_are_long(talk: Epochs) -> None:
    a = alone(talk)
    for _ in range(6):
        slow_beat(talk, a, 3_000)
        talk.wait(2_000)
    assert talk.rules() == []


def test_T_06_goes_by_the_session_that_the_brokers_are_said_to_have() -> None:
    talk = Epochs(group_consumer_session_timeout_ms=9_000)
    slow_beat(talk, alone(talk), 4_000)
    talk.wait(1_500)
    assert "session of 9.0 s" in talk.the("T-06").summary


def test_T_06_allows_throttled_answers_of_groups_with_epochs(talk: Epochs) -> None:
    a = alone(talk)
    slow_beat(talk, a, 16_000, throttle_time_ms=16_000)
    assert "T-06" not in talk.settled_rules()


@pytest.mark.parametrize(("error", "rule"), [(14, "C-06"), (15, "C-13")])
def test_a_long_load_and_a_coordinator_that_is_away_are_told_of_streams_groups(talk: Streams, error: int, rule: str) -> None:
    client = talk.member("a")
    talk.enters(client, 2, (0,))
    for _ in range(16):
        talk.turned_away(client, error, epoch=2)
        talk.wait(5_000)
    assert talk.the(rule).group_type == "streams"

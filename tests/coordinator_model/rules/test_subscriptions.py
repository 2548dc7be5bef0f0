"""Family A, second part: what fires each rule, what must keep it quiet, what resolves it."""

from __future__ import annotations

import pytest

from coordinator_model.finding import Blame, Severity, Status
from tests.coordinator_model.classic import live
from tests.coordinator_model.conversation import ASSIGNED, Client, Conversation, assignment
from tests.coordinator_model.rules.generations import rebalance


def test_A_13_notes_services_that_share_a_group_and_no_topic(talk: Conversation) -> None:
    a, b, c = talk.client("invoices-0"), talk.client("payments-0"), talk.client("payments-1")
    rebalance(talk, 3, {a: ("invoices",), b: ("payments",), c: ("payments",)})
    talk.settle()
    finding = talk.the("A-13")
    assert (finding.severity, finding.blame, finding.generation) == (Severity.INFO, Blame.CONFIG, 3)
    assert "subscribe to different topics: invoices by member invoices-0" in finding.summary
    assert "; payments by member payments-0" in finding.summary
    assert " and 1 other. The leader is member invoices-0" in finding.summary
    live(talk, [a, b, c], 70)
    assert talk.the("A-13").status is not Status.RESOLVED


def test_A_13_is_over_when_it_has_not_recurred_for_an_hour(talk: Conversation) -> None:
    a, b = talk.client("a"), talk.client("b")
    rebalance(talk, 3, {a: ("invoices",), b: ("payments",)})
    for _ in range(1 + 62 * talk.settings.quiet_ms // 5_000):
        for client in (a, b):
            talk.heartbeat(client)
        talk.wait(5_000)
    assert talk.the("A-13").status is Status.RESOLVED


@pytest.mark.parametrize(
    "topics",
    [(("a", "b"), ("b", "c"), ("c",)), (("a",), ("a",), ("a", "b")), (("a",), (), ("a",))],
)
def test_A_13_allows_members_that_have_a_topic_in_common_through_others(
    talk: Conversation, topics: tuple[tuple[str, ...], ...]
) -> None:
    rebalance(talk, 3, {talk.client(f"c{number}"): each for number, each in enumerate(topics)})
    assert "A-13" not in talk.settled_rules()


# ----------------------------------------------------------------------------------------------------


def lives(talk: Conversation, clients: tuple[Client, Client], minutes: float) -> None:
    for _ in range(int(minutes * 30)):
        talk.wait(2_000)
        for client in clients:
            talk.heartbeat(client)


def services(talk: Conversation) -> tuple[Client, Client]:
    """Two services that share a group; the first one leads."""
    return talk.client("invoices-0"), talk.client("payments-0")


def shares(
    talk: Conversation, generation: int, clients: tuple[Client, Client], payments: bytes = ASSIGNED, assignor: str = "range"
) -> None:
    """A rebalance of the two, in which the leader assigns what it reads itself, and to the other service so much."""
    leader, other = clients
    topics = {leader: ("invoices",), other: ("payments",)}
    rebalance(talk, generation, topics, assignor, {leader: assignment(invoices=(0, 1)), other: payments})


def test_A_14_tells_of_a_topic_that_the_leader_does_not_read_itself(talk: Conversation) -> None:
    talk.topics(invoices=2, payments=2)
    leader, other = both = services(talk)
    shares(talk, 3, both)
    lives(talk, both, 9.9)
    assert "A-14" not in talk.rules()
    lives(talk, both, 1)
    finding = talk.the("A-14")
    assert (finding.severity, finding.blame, finding.generation) == (Severity.WARNING, Blame.CLIENT, 3)
    assert (finding.member_id, finding.client_id) == (leader.member_id, "invoices-0")
    assert finding.summary == (
        "No assignment of group g that was captured holds payments-0, payments-1: what is written there is not read. payments has had 2 "
        f"partitions since 22:13:20 at the latest, and is subscribed to by member {other.member_id} (client payments-0 at 10.0.0.1:40002, test "
        f"1.0). The leader, member {leader.member_id} (client invoices-0 at 10.0.0.1:40001, test 1.0), does not subscribe to it itself, and may "
        "not watch it."
    )
    assert finding.observed.startswith("A Metadata response names 2 partitions of payments; the newest assignment holds none")


def test_A_14_is_over_when_the_partitions_are_assigned(talk: Conversation) -> None:
    talk.topics(payments=2)
    both = services(talk)
    shares(talk, 3, both)
    lives(talk, both, 11)
    shares(talk, 4, both, assignment(payments=(0, 1)))
    talk.settle()
    assert talk.the("A-14").status is Status.RESOLVED


def test_A_14_tells_of_new_partitions_that_nobody_took_up(talk: Conversation) -> None:
    talk.topics(payments=2)
    both = services(talk)
    shares(talk, 3, both, assignment(payments=(0, 1)))
    lives(talk, both, 15)
    talk.topics(payments=6)
    lives(talk, both, 9.5)
    assert "A-14" not in talk.rules()
    lives(talk, both, 2)
    assert "payments-2, payments-3, payments-4 and 1 more: what is written" in talk.the("A-14").summary
    assert "the newest assignment holds 2" in talk.the("A-14").observed


def test_A_14_waits_no_longer_where_the_number_has_long_been_known(talk: Conversation) -> None:
    talk.topics(payments=2)
    talk.wait(900_000)
    both = services(talk)
    shares(talk, 3, both)
    lives(talk, both, 0.2)
    assert "A-14" not in talk.rules()
    lives(talk, both, 0.5)
    assert talk.the("A-14").status is Status.OPEN


@pytest.mark.parametrize(
    ("counts", "given", "assignor"),
    [
        ({}, ASSIGNED, "range"),  # no Metadata response was captured
        ({"payments": 2}, assignment(payments=(0, 1)), "range"),
        ({"payments": 0}, ASSIGNED, "range"),  # there is no such topic
        ({"other": 4}, ASSIGNED, "range"),  # nobody subscribes to it
        ({"payments": 2}, ASSIGNED, "home-made"),  # an assignor that may leave out what it likes
        ({"payments": 2}, b"\x00", "range"),  # what it was given cannot be read
    ],
)
def test_A_14_is_quiet(talk: Conversation, counts: dict[str, int], given: bytes, assignor: str) -> None:
    talk.topics(**counts)
    both = services(talk)
    shares(talk, 3, both, given, assignor)
    lives(talk, both, 15)
    assert "A-14" not in talk.rules()


def test_A_14_says_so_if_the_leader_subscribes_to_the_topic(talk: Conversation) -> None:
    talk.topics(t=4)
    a, b = talk.client("a"), talk.client("b")
    rebalance(talk, 3, {a: ("t",), b: ("t",)}, "range", {a: assignment(t=(0,)), b: assignment(t=(1,))})
    lives(talk, (a, b), 11)
    assert "is subscribed to by 2 members. The leader, member a-" in talk.the("A-14").summary
    assert talk.the("A-14").summary.endswith("is among them.")


def test_A_14_is_quiet_when_new_partitions_are_taken_up_in_time(talk: Conversation) -> None:
    talk.topics(payments=2)
    both = services(talk)
    shares(talk, 3, both, assignment(payments=(0, 1)))
    talk.topics(payments=3)
    lives(talk, both, 5)
    shares(talk, 4, both, assignment(payments=(0, 1, 2)))
    lives(talk, both, 15)
    assert "A-14" not in talk.rules()


def test_A_14_is_quiet_after_a_loss_until_the_next_plan(talk: Conversation) -> None:
    talk.topics(payments=2)
    both = services(talk)
    shares(talk, 3, both)
    talk.gap()
    lives(talk, both, 15)
    assert "A-14" not in talk.rules()


def test_A_14_is_over_when_the_topic_is_deleted(talk: Conversation) -> None:
    talk.topics(payments=2)
    both = services(talk)
    shares(talk, 3, both)
    lives(talk, both, 11)
    talk.topics(payments=0)
    lives(talk, both, 2)
    assert talk.the("A-14").status is Status.RESOLVED


def test_A_14_waits_as_long_as_clients_may_keep_their_metadata() -> None:
    talk = Conversation(metadata_max_age_ms=1_000)
    talk.topics(payments=2)
    both = services(talk)
    shares(talk, 3, both)
    lives(talk, both, 1)
    assert talk.the("A-14").status is Status.OPEN

"""Family R, sixth part: JoinGroups at a rate that only a loop has."""

from __future__ import annotations

from coordinator_model.finding import Severity, Status
from tests.coordinator_model.classic import live, settled
from tests.coordinator_model.conversation import Client, Conversation
from tests.coordinator_model.rules.loops import arrives


def generations(talk: Conversation, clients: list[Client], times: int, every_ms: int = 200) -> None:
    """All join again and again, each time under another leader."""
    for number in range(times):
        talk.wait(every_ms)
        for client in clients:
            talk.heartbeat(client, 27)
        talk.round(clients, clients[0].generation + 1, leader=clients[number % len(clients)])


def joins(talk: Conversation, client: Client, times: int, error: int, every_ms: int = 150) -> None:
    for _ in range(times):
        talk.refuse_join(talk.ask_join(client), error)
        talk.wait(every_ms)


def test_R_26_fires_on_a_group_that_rebalances_many_times_a_second(talk: Conversation) -> None:
    clients = settled(talk, ("a", "b", "c"))
    generations(talk, clients, 14)
    assert "R-26" not in talk.settled_rules()
    generations(talk, clients, 3)
    talk.settle()
    finding = talk.the("R-26")
    assert (finding.severity, finding.member_id) == (Severity.ERROR, None)
    assert " a second, and each of its 3 members sends JoinGroups as often" in finding.summary
    assert "15 generations in" in finding.observed


def test_R_26_is_resolved_when_the_group_comes_to_rest(talk: Conversation) -> None:
    clients = settled(talk, ("a", "b", "c"))
    generations(talk, clients, 20)
    live(talk, clients, 90)
    assert talk.the("R-26").status is Status.RESOLVED


def test_R_26_is_quiet_when_many_members_join_at_once(talk: Conversation) -> None:
    clients = settled(talk)
    for number in range(18):
        new = talk.client(f"new-{number}")
        arrives(talk, new, clients, 4 + number)
        clients.append(new)
        talk.wait(100)
    assert "R-26" not in talk.settled_rules()


def test_R_26_is_quiet_where_generations_come_seldom(talk: Conversation) -> None:
    generations(talk, settled(talk, ("a", "b", "c")), 16, every_ms=1_000)
    assert "R-26" not in talk.rules()


def test_R_26_warns_of_a_client_that_is_refused_and_asks_at_once(talk: Conversation) -> None:
    _, b = settled(talk)
    joins(talk, b, 24, 25)
    talk.settle()
    finding = talk.the("R-26")
    assert (finding.severity, finding.status) == (Severity.WARNING, Status.UPDATE)
    assert "Client b at 10.0.0.1 is in a hot loop in group g" in finding.summary
    assert "6." in finding.summary.partition(" a second")[0]
    assert "UNKNOWN_MEMBER_ID" in finding.summary
    joins(talk, b, 200, 25)
    talk.settle()
    assert talk.the("R-26").severity is Severity.ERROR
    talk.wait(70_000)
    assert talk.the("R-26").status is Status.RESOLVED


def test_R_26_gives_the_rate_of_all_that_it_counts(talk: Conversation) -> None:
    _, b = settled(talk)
    joins(talk, b, 24, 25, every_ms=50)
    talk.settle()
    assert talk.the("R-26").summary.partition(" a second")[0].endswith("19.6")
    joins(talk, b, 100, 25, every_ms=1_000)
    talk.wait(70_000)
    finding = talk.the("R-26")
    assert finding.summary.partition(" a second")[0].endswith("1.2")
    assert finding.observed.startswith("124 JoinGroups on one connection in 100.")


def test_R_26_does_not_count_answers_of_a_coordinator_that_loads(talk: Conversation) -> None:
    _, b = settled(talk)
    joins(talk, b, 40, 14)
    assert "R-26" not in talk.settled_rules()


def test_R_26_does_not_count_a_client_that_waits_before_it_asks_again(talk: Conversation) -> None:
    _, b = settled(talk)
    joins(talk, b, 40, 25, every_ms=400)
    assert "R-26" not in talk.settled_rules()


def test_R_26_warns_of_a_client_that_joins_the_same_generation_again_and_again(talk: Conversation) -> None:
    a, b = settled(talk)
    for _ in range(24):
        talk.joined(talk.ask_join(b), generation=3, leader=a, roster=[a, b])
        talk.wait(100)
    talk.settle()
    assert "the last answered with the generation that it had" in talk.the("R-26").summary

"""Family A, second part: what fires each rule, what must keep it quiet, what resolves it."""

from __future__ import annotations

import pytest

from coordinator_model import wire
from coordinator_model.finding import Blame, Severity, Status
from tests.coordinator_model.conversation import Client, Conversation, subscription


def joins(talk: Conversation, generation: int, topics: dict[Client, tuple[str, ...]]) -> None:
    """A join phase of members that subscribe so; the first one leads."""
    clients = list(topics)
    for client in clients:
        if not client.member_id:
            talk.hand_out_id(client)
    offers = {one: (wire.JoinGroupRequestProtocol(name="range", metadata=subscription(*topics[one])),) for one in clients}
    asked = [talk.ask_join(one, protocols=offers[one]) for one in clients]
    roster = tuple(wire.JoinGroupResponseMember(member_id=one.member_id, metadata=offers[one][0].metadata) for one in clients)
    for each in asked:
        each.client.generation = generation
        reply = wire.JoinGroupResponse(
            generation_id=generation,
            protocol_type="consumer",
            protocol_name="range",
            leader=clients[0].member_id,
            member_id=each.client.member_id,
            members=roster if each.client is clients[0] else (),
        )
        talk.answer(each, reply)
    talk.sync_all(clients)


def test_A_13_notes_services_that_share_a_group_and_no_topic(talk: Conversation) -> None:
    a, b, c = talk.client("invoices-0"), talk.client("payments-0"), talk.client("payments-1")
    joins(talk, 3, {a: ("invoices",), b: ("payments",), c: ("payments",)})
    talk.settle()
    finding = talk.the("A-13")
    assert (finding.severity, finding.blame, finding.generation) == (Severity.INFO, Blame.CONFIG, 3)
    assert "subscribe to different topics: invoices by member invoices-0" in finding.summary
    assert "; payments by member payments-0" in finding.summary
    assert " and 1 other. The leader is member invoices-0" in finding.summary
    for _ in range(70):
        for client in (a, b, c):
            talk.heartbeat(client)
        talk.wait(1_000)
    assert talk.the("A-13").status is not Status.RESOLVED


def test_A_13_is_over_when_it_has_not_recurred_for_an_hour(talk: Conversation) -> None:
    a, b = talk.client("a"), talk.client("b")
    joins(talk, 3, {a: ("invoices",), b: ("payments",)})
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
    joins(talk, 3, {talk.client(f"c{number}"): each for number, each in enumerate(topics)})
    talk.settle()
    assert "A-13" not in talk.rules()

"""C-15: a group whose record comes near to what the log takes."""

from __future__ import annotations

from coordinator_model import wire
from coordinator_model.finding import Blame, Certainty, Severity, Status
from tests.coordinator_model.classic import live
from tests.coordinator_model.conversation import Client, Conversation


def stored(talk: Conversation, clients: list[Client], generation: int, of_each: int, given: int = 1_000) -> None:
    """A generation with subscriptions and assignments of so many bytes for each member."""
    offers = (wire.JoinGroupRequestProtocol(name="own", metadata=bytes(of_each)),)
    for client in clients:
        if not client.member_id:
            talk.hand_out_id(client)
    asked = [talk.ask_join(client, protocols=offers, protocol_type="own") for client in clients]
    members = tuple(wire.JoinGroupResponseMember(member_id=client.member_id, metadata=bytes(of_each)) for client in clients)
    leader = clients[0]
    for one in asked:
        one.client.generation = generation
        answer = wire.JoinGroupResponse(
            generation_id=generation,
            protocol_type="own",
            protocol_name="own",
            leader=leader.member_id,
            member_id=one.client.member_id,
            members=members if one.client is leader else (),
        )
        talk.answer(one, answer)
    entries = tuple(wire.SyncGroupRequestAssignment(member_id=client.member_id, assignment=bytes(given)) for client in clients)
    for client in clients:
        request = talk.sync_request(
            client, [], assignments=entries if client is leader else (), protocol_type="own", protocol_name="own"
        )
        answer = wire.SyncGroupResponse(protocol_type="own", protocol_name="own", assignment=bytes(given))
        talk.call(client, request, answer)


def test_C_15_warns_of_a_record_of_half_the_size_that_the_log_takes(talk: Conversation) -> None:
    clients = [talk.client(name) for name in ("a", "b", "c")]
    stored(talk, clients, 3, 200_000)
    talk.settle()
    finding = talk.the("C-15")
    assert (finding.severity, finding.certainty, finding.blame) == (Severity.WARNING, Certainty.CONFIRMED, Blame.CONFIG)
    assert "takes 57 % of the largest record" in finding.summary
    assert "600,000 bytes of subscriptions and 3,000 bytes of assignments of 3 members" in finding.summary
    assert "There is room for 2 more members of this size" in finding.summary
    assert finding.observed.startswith("603,300 bytes at least, 201,100 a member")
    assert talk.rules() == ["C-15"]


def test_C_15_is_resolved_when_the_record_is_small_again(talk: Conversation) -> None:
    clients = [talk.client(name) for name in ("a", "b", "c")]
    stored(talk, clients, 3, 200_000)
    talk.settle()
    stored(talk, clients, 4, 1_000)
    live(talk, clients, 3)
    assert talk.the("C-15").status is Status.RESOLVED


def test_C_15_is_quiet_below_half_the_size(talk: Conversation) -> None:
    stored(talk, [talk.client(name) for name in ("a", "b", "c")], 3, 170_000)
    assert talk.settled_rules() == []


def test_C_15_needs_to_know_the_subscriptions(talk: Conversation) -> None:
    stored(talk, [talk.client(name) for name in ("a", "b", "c")], 3, 0, given=200_000)
    assert "C-15" not in talk.settled_rules()

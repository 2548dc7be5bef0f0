"""Family R, fifth part: rebalances that moved nothing."""

from __future__ import annotations

from coordinator_model import wire
from coordinator_model.finding import Blame, Severity, Status
from tests.coordinator_model.classic import complete, live
from tests.coordinator_model.conversation import Client, Conversation, assignment, subscription
from tests.coordinator_model.rules.offsets import give

METADATA = "cached metadata has changed"


def group(talk: Conversation) -> list[Client]:
    clients = [talk.client(name) for name in ("a", "b", "c")]
    give(talk, clients, 3, plan(clients))
    return clients


def plan(clients: list[Client]) -> dict[Client, tuple[int, ...]]:
    return {client: (2 * number, 2 * number + 1) for number, client in enumerate(clients)}


def rejoins(
    talk: Conversation,
    clients: list[Client],
    generation: int,
    starter: int = 0,
    *,
    reason: str = "",
    partitions: dict[Client, tuple[int, ...]] | None = None,
    topics: tuple[str, ...] = ("t",),
    assignor: str = "range",
) -> None:
    """One of them joins again, and all the others must, too."""
    given = partitions or plan(clients)
    first = clients[starter]
    offers = (wire.JoinGroupRequestProtocol(name=assignor, metadata=subscription(*topics)),)
    asked = [talk.ask_join(first, reason=reason, protocols=offers)]
    for other in clients:
        if other is not first:
            talk.heartbeat(other, 27)
            asked.append(talk.ask_join(other))
    complete(talk, asked, generation, clients[0], clients)
    blobs = {one: assignment(t=given[one]) for one in clients}
    entries = tuple(wire.SyncGroupRequestAssignment(member_id=one.member_id, assignment=blob) for one, blob in blobs.items())
    syncs = [talk.ask(one, talk.sync_request(one, [], assignments=entries if one is clients[0] else ())) for one in clients]
    for one in syncs:
        talk.answer(one, wire.SyncGroupResponse(protocol_type="consumer", protocol_name="range", assignment=blobs[one.client]))
    live(talk, clients, 20)


def test_R_25_warns_of_a_leader_that_rejoins_for_metadata_and_blames_no_member(talk: Conversation) -> None:
    clients = group(talk)
    rejoins(talk, clients, 4, reason=METADATA)
    rejoins(talk, clients, 5, reason=METADATA)
    assert talk.rules() == []
    for generation in range(6, 10):
        rejoins(talk, clients, generation, reason=METADATA)
    finding = talk.the("R-25")
    assert (finding.severity, finding.blame, finding.member_id, finding.client_id) == (Severity.WARNING, Blame.CONFIG, None, None)
    assert finding.summary.startswith("The last 6 rebalances of group g, since 22:13:")
    assert "moved nothing: each time 3 members had the same 6 partitions as before" in finding.summary
    assert "the reason that clients gave, 6 times: “cached metadata has changed”" in finding.summary
    assert "topics are created or deleted" in finding.action
    assert len(finding.evidence) == 6
    assert talk.rules() == ["R-25"]


def test_R_25_advises_a_cheaper_assignor_to_consumers_and_not_to_kafka_streams() -> None:
    actions = {}
    for assignor in ("range", "stream"):
        talk = Conversation()
        clients = group(talk)
        for generation in range(4, 8):
            rejoins(talk, clients, generation, reason=METADATA, assignor=assignor)
        actions[assignor] = talk.the("R-25").action
    assert "cooperative-sticky" in actions["range"]
    assert actions["range"].startswith(actions["stream"])
    assert "cooperative-sticky" not in actions["stream"]


def test_R_25_tells_that_connections_of_several_clients_ended_before(talk: Conversation) -> None:
    clients = group(talk)
    for generation in range(4, 7):
        for client in clients:
            other = client.reconnected(broker="2")
            talk.find_coordinator(other)
            talk.close(other)
        talk.wait(2_000)
        rejoins(talk, clients, generation, reason=METADATA)
    finding = talk.the("R-25")
    assert "before 3 of them connections of several clients had just ended" in finding.summary
    assert "client.rack" in finding.action


def test_R_25_tells_of_a_leader_that_gives_no_reason(talk: Conversation) -> None:
    clients = group(talk)
    for generation in range(4, 9):
        rejoins(talk, clients, generation)
    assert "the leader rejoined with an unchanged subscription, and gave no reason" in talk.the("R-25").summary
    assert talk.rules() == ["R-25"]


def test_R_25_tells_of_different_members_that_asked(talk: Conversation) -> None:
    clients = group(talk)
    for generation in range(4, 7):
        rejoins(talk, clients, generation, starter=generation % 2, topics=("t", f"u{generation}"))
    finding = talk.the("R-25")
    assert "different members asked for them (subscription changed 3)" in finding.summary


def test_R_25_is_resolved_when_it_does_not_recur(talk: Conversation) -> None:
    clients = group(talk)
    for generation in range(4, 7):
        rejoins(talk, clients, generation, reason=METADATA)
    live(talk, clients, 240)
    assert talk.the("R-25").status is Status.OPEN
    live(talk, clients, 80)
    assert talk.the("R-25").status is Status.RESOLVED


def test_R_25_does_not_count_rebalances_that_moved_something(talk: Conversation) -> None:
    clients = group(talk)
    for generation in range(4, 16):
        turned = generation // 3
        given = {client: tuple((number + turned) % 6 for number in owned) for client, owned in plan(clients).items()}
        rejoins(talk, clients, generation, reason=METADATA, partitions=given)
    assert "R-25" not in talk.rules()


def test_R_25_leaves_a_member_that_rejoins_by_itself_to_R_07(talk: Conversation) -> None:
    clients = group(talk)
    for generation in range(4, 9):
        rejoins(talk, clients, generation, starter=1, topics=("t", f"u{generation}"))
    assert "R-25" not in talk.rules()
    assert talk.the("R-07").member_id == clients[1].member_id


def test_R_25_leaves_a_client_that_tells_of_a_failure_to_R_07(talk: Conversation) -> None:
    clients = group(talk)
    for generation in range(4, 9):
        rejoins(talk, clients, generation, reason="rebalance failed due to 'callback threw'")
    assert talk.rules() == ["R-07"]


def test_R_25_does_not_count_rebalances_further_apart_than_a_quarter_of_an_hour_in_all(talk: Conversation) -> None:
    clients = group(talk)
    for generation in range(4, 8):
        rejoins(talk, clients, generation, reason=METADATA)
        live(talk, clients, 500)
    assert talk.rules() == []


def test_R_25_is_quiet_while_members_come_and_go(talk: Conversation) -> None:
    clients = group(talk)
    for generation in range(4, 12, 2):
        rejoins(talk, clients[:2], generation, reason=METADATA)
        rejoins(talk, clients, generation + 1, reason=METADATA)
    assert "R-25" not in talk.rules()

"""A coordinator with several addresses: what shows that they are one broker, and what the model makes of it."""

from __future__ import annotations

from typing import Any

from coordinator_model.coordinator import Coordinator
from coordinator_model.finding import Certainty, Severity
from tests.coordinator_model.conversation import Client, Conversation
from tests.coordinator_model.epochs import Epochs, foo

PLAIN, TLS = "10.0.0.9:9092", "10.0.0.9:9093"
SIMPLE: dict[str, Any] = {"generation_id_or_member_epoch": -1, "member_id": "", "group_instance_id": None}


def incarnation(talk: Conversation) -> int:
    return talk.model.groups.opened(("c1", talk.group))[0].incarnation


def look_up(talk: Conversation, client: Client, node_id: int = 1, *, address: str | None = None) -> Client:
    """Return the client on a new connection to its coordinator, after it has asked for it."""
    talk.find_coordinator(client, node_id, address=address or client.broker)
    return client.reconnected()


def take_turns(talk: Conversation, clients: list[Client], times: int = 6) -> None:
    """Heartbeats and commits of members, one after the other."""
    for turn in range(times):
        for client in clients:
            talk.heartbeat(client)
            talk.commit_offsets(client, {clients.index(client): turn})
            talk.wait(2_000)


def commit_in_turns(talk: Conversation, one: Client, other: Client) -> None:
    for turn in range(4):
        talk.commit_offsets((one, other)[turn % 2], {turn: 1}, **SIMPLE)
        talk.wait(6_000)


def of_the_coordinator(talk: Conversation) -> list[str]:
    return [rule for rule in talk.rules() if rule.startswith("C-")]


def proven(talk: Conversation) -> int:
    return len(talk.group_json()["members"])


def test_C_05_is_silent_about_two_listeners_of_one_node(talk: Conversation) -> None:
    members = [look_up(talk, talk.client("a", PLAIN)), look_up(talk, talk.client("b", TLS))]
    talk.round(members, 3)
    take_turns(talk, members)
    assert (of_the_coordinator(talk), incarnation(talk), proven(talk)) == ([], 1, 2)


def test_C_05_is_silent_where_an_advertised_name_is_not_what_the_capture_has(talk: Conversation) -> None:
    members = [
        look_up(talk, talk.client("a", PLAIN), address="inside.example:9092"),
        look_up(talk, talk.client("b", TLS), address="outside.example:19093"),
    ]
    talk.round(members, 3)
    take_turns(talk, members)
    assert (of_the_coordinator(talk), incarnation(talk), proven(talk)) == ([], 1, 2)


def test_C_05_is_silent_in_the_midst_of_a_life_and_forgets_the_members_once(talk: Conversation) -> None:
    """No frame names node ids. The address that goes on was not replaced by the other one."""
    members = [talk.client("a", PLAIN), talk.client("b", TLS), talk.client("c", TLS)]
    for member in members:
        member.member_id, member.generation = f"{member.name}-id", 7
    take_turns(talk, members, times=12)
    assert (of_the_coordinator(talk), incarnation(talk)) == ([], 2)
    talk.round(members, 8)
    take_turns(talk, members)
    assert (of_the_coordinator(talk), incarnation(talk), proven(talk)) == ([], 2, 3)


def test_C_05_is_silent_about_a_group_that_was_emptied_and_began_again_at_generation_1(talk: Conversation) -> None:
    """The lower generation was taken for the older one of two brokers."""
    members = [talk.client("a", PLAIN), talk.client("b", TLS)]
    for member in members:
        member.member_id, member.generation = f"{member.name}-id", 7
    take_turns(talk, members)
    for member in members:
        talk.leave(member)
    talk.wait(10_000)
    for member in members:
        member.member_id = ""
    talk.round(members[:1], 1)
    talk.round(members, 2)
    take_turns(talk, members)
    assert of_the_coordinator(talk) == []


def test_three_listeners_are_one_coordinator_too(talk: Conversation) -> None:
    members = [talk.client("a", PLAIN), talk.client("b", TLS), talk.client("c", "10.0.0.9:9094")]
    for member in members:
        member.member_id, member.generation = f"{member.name}-id", 7
    take_turns(talk, members, times=6)
    settled = incarnation(talk)
    take_turns(talk, members, times=6)
    assert (of_the_coordinator(talk), incarnation(talk)) == ([], settled)


def test_C_05_is_confirmed_where_the_node_ids_differ(talk: Conversation) -> None:
    members = [look_up(talk, talk.client("a", PLAIN), 1), look_up(talk, talk.client("b", TLS), 2)]
    for member in members:
        member.member_id, member.generation = f"{member.name}-id", 7
    take_turns(talk, members)
    finding = talk.the("C-05")
    assert (finding.severity, finding.certainty) == (Severity.CRITICAL, Certainty.CONFIRMED)
    assert "FindCoordinator gives them different node ids" in finding.observed


def test_C_05_is_heuristic_where_one_of_unknown_nodes_is_at_an_older_generation(talk: Conversation) -> None:
    members = [talk.client("a", PLAIN), talk.client("b", TLS)]
    for member, generation in zip(members, (7, 9), strict=True):
        member.member_id, member.generation = f"{member.name}-id", generation
    take_turns(talk, members)
    finding = talk.the("C-05")
    assert (finding.severity, finding.certainty) == (Severity.CRITICAL, Certainty.HEURISTIC)
    assert "one accepted a generation that was older than the other's" in finding.observed


def test_C_05_warns_of_commits_without_a_generation_on_unknown_nodes(talk: Conversation) -> None:
    commit_in_turns(talk, talk.client("a", PLAIN), talk.client("b", TLS))
    talk.settle()
    finding = talk.the("C-05")
    assert (finding.severity, finding.certainty) == (Severity.WARNING, Certainty.HEURISTIC)
    assert finding.action.startswith("Find out whether the addresses named are listeners of one broker")


def test_C_05_is_silent_about_commits_without_a_generation_on_two_listeners_of_one_node(talk: Conversation) -> None:
    commit_in_turns(talk, look_up(talk, talk.client("a", PLAIN)), look_up(talk, talk.client("b", TLS)))
    assert talk.rules() == []


def test_another_node_is_another_coordinator_and_a_denial_ends_what_the_addresses_had_in_common(talk: Conversation) -> None:
    a, b = (look_up(talk, talk.client(name, broker)) for name, broker in (("a", PLAIN), ("b", TLS)))
    talk.round([a, b], 3)
    take_turns(talk, [a, b], times=2)
    talk.heartbeat(b, 16)
    assert incarnation(talk) == 2
    moved = look_up(talk, talk.client("a", "10.0.0.10:9092"), 2)
    moved.member_id, moved.generation = a.member_id, 3
    talk.heartbeat(moved)
    assert (talk.group_json()["coordinator"], incarnation(talk)) == ("10.0.0.10:9092", 2)
    talk.heartbeat(a)
    assert incarnation(talk) == 3


def test_an_address_that_passes_to_another_node_is_that_nodes(talk: Conversation) -> None:
    talk.find_coordinator(talk.client("a", PLAIN), 1, address=PLAIN)
    talk.find_coordinator(talk.client("b", TLS), 1, address=TLS)
    nodes = talk.model._facts.nodes
    assert nodes.are_one("c1", PLAIN, TLS)
    talk.find_coordinator(talk.client("b", TLS), 2, address=TLS)
    assert (nodes.are_one("c1", PLAIN, TLS), nodes.are_two("c1", PLAIN, TLS)) == (False, True)
    assert not nodes.are_one("another cluster", PLAIN, TLS)


def test_members_with_epochs_may_use_two_listeners_of_one_node(talk: Epochs) -> None:
    members = []
    for name, broker in (("a", PLAIN), ("b", TLS)):
        asks = talk.client(name, broker)
        talk.find_coordinator(asks, address=broker)
        member = talk.member(name, broker=broker)
        members.append(member)
    talk.joins(members[0], 1, foo(0, 1))
    talk.joins(members[1], 2, {})
    talk.beats(members[0], 1, foo(0))
    talk.beats(members[0], 2, owned=foo(0))
    talk.beats(members[1], 2, foo(1))
    talk.beats(members[1], owned=foo(1))
    talk.live(members, 60)
    for member in members:
        talk.commits(member)
    assert (of_the_coordinator(talk), incarnation(talk), talk.group_json()["coordinator"]) == ([], 1, PLAIN)


def test_members_with_epochs_on_two_addresses_of_unknown_nodes_are_one_group(talk: Epochs) -> None:
    members = [talk.member("a", broker=PLAIN), talk.member("b", broker=TLS)]
    for member in members:
        member.generation = 7
    talk.live(members, 60)
    assert (of_the_coordinator(talk), incarnation(talk)) == ([], 2)


def test_what_addresses_have_in_common_survives_a_restart(talk: Conversation) -> None:
    members = [talk.client("a", PLAIN), talk.client("b", TLS)]
    for member in members:
        member.member_id, member.generation = f"{member.name}-id", 7
    take_turns(talk, members, times=3)
    look_up(talk, talk.client("c", PLAIN), address="inside.example:9092")
    talk.round([look_up(talk, talk.client("d", TLS), address="outside.example:9093")], 8)
    commit_in_turns(talk, talk.client("e", PLAIN), talk.client("f", TLS))
    model = Coordinator(topic="mirror", partition=0, settings=talk.settings)
    found, incarnations = [], set()
    for record in talk.records:
        model = Coordinator.restore(model.snapshot(), settings=talk.settings)
        found.extend(model.receive(record))
        incarnations.add(model.groups.opened(("c1", "g"))[0].incarnation)
    assert (found, max(incarnations)) == (talk.findings, incarnation(talk))

"""Clients on their way to consuming: what fires each rule, what must keep it quiet, what resolves it."""

from __future__ import annotations

import re
from typing import Any

import pytest

from coordinator_model import wire
from coordinator_model.finding import Blame, Severity, Status
from coordinator_model.wire.record import NO_RIGHT, Unreached, topics, unreached
from coordinator_model.wording import clock
from tests.coordinator_model.classic import live
from tests.coordinator_model.conversation import Client, Conversation, assignment
from tests.coordinator_model.epoch_groups import alone
from tests.coordinator_model.epochs import Epochs, foo
from tests.coordinator_model.rules.generations import rebalance
from tests.coordinator_model.streams import Shares

NOT_AUTHORIZED = 30
NOTHING = bytes.fromhex("0001 00000000 ffffffff")


def looks(talk: Conversation, client: Client, times: int, every_ms: int = 1_000, **answer: Any) -> None:
    """Look for the coordinator again and again."""
    for _ in range(times):
        talk.find_coordinator(client, **answer)
        talk.wait(every_ms)


def consuming(talk: Conversation, *names: str) -> list[Client]:
    members = [talk.client(name) for name in names]
    rebalance(talk, 3, dict.fromkeys(members, ("t",)), plan={one: assignment(t=(number,)) for number, one in enumerate(members)})
    return members


def arrivals(talk: Conversation) -> list[tuple[str | None, str, int, str | None]]:
    return [(one["client_id"], one["stage"], one["refused"], one["error"]) for one in talk.group_json()["arrivals"]]


# ---------------------------------------------------------------------------------------------------- the stages


def test_the_view_has_each_client_that_has_not_arrived_by_its_stage(talk: Conversation) -> None:
    a, b = consuming(talk, "a", "b")
    talk.find_coordinator(talk.client("c"), error=NOT_AUTHORIZED)
    talk.find_coordinator(talk.client("d"), 1)
    talk.ask_join(talk.client("e"))
    talk.fetch_offsets(b, {0: -1}, {0: 88})
    assert arrivals(talk) == [
        ("c", "looks", 1, "GROUP_AUTHORIZATION_FAILED"),
        ("d", "reaches", 0, None),
        ("e", "joins", 0, None),
        ("b", "begins", 1, "UNSTABLE_OFFSET_COMMIT"),
    ]
    talk.fetch_offsets(b, {0: 7})
    assert [client for client, *_ in arrivals(talk)] == ["c", "d", "e"]
    assert a.member_id


def test_a_client_that_arrives_is_on_its_way_no_longer(talk: Conversation) -> None:
    a = talk.client("a")
    stages = []
    talk.find_coordinator(a, 1)
    stages += arrivals(talk)
    talk.hand_out_id(a)
    asked = talk.ask_join(a)
    stages += arrivals(talk)
    talk.joined(asked, generation=1, leader=a, roster=[a])
    stages += arrivals(talk)
    given = wire.SyncGroupResponse(protocol_type="consumer", protocol_name="range", assignment=assignment(t=(0,)))
    talk.call(a, talk.sync_request(a, [a]), given)
    assert [stage for _, stage, *_ in stages] == ["reaches", "joins", "holds"]
    assert arrivals(talk) == []


def test_a_tool_that_looks_for_the_coordinator_is_not_on_its_way(talk: Conversation) -> None:
    consuming(talk, "a", "b")
    tool = talk.client("adminclient-1")
    talk.find_coordinator(tool, 1)
    talk.fetch_offsets(tool, {0: 7})
    assert arrivals(talk) == []


def test_a_member_that_looks_for_its_coordinator_again_is_not_on_its_way(talk: Conversation) -> None:
    a, _ = consuming(talk, "a", "b")
    talk.find_coordinator(a, 2)
    assert arrivals(talk) == []


def test_of_too_many_clients_those_go_first_that_were_not_turned_back(talk: Conversation) -> None:
    talk.find_coordinator(talk.client("refused"), error=NOT_AUTHORIZED)
    for number in range(40):
        talk.find_coordinator(talk.client(f"c{number}"), 1)
    kept = [client for client, *_ in arrivals(talk)]
    assert len(kept) == 32
    assert kept[0] == "refused"
    assert kept[-1] == "c39"


# ---------------------------------------------------------------------------------------------------- M-14


def test_M_14_fires_when_FindCoordinator_is_refused_again_and_again(talk: Conversation) -> None:
    c = talk.client("edge")
    looks(talk, c, 5, error=NOT_AUTHORIZED)
    finding = talk.the("M-14")
    assert (finding.severity, finding.blame, finding.client_id) == (Severity.ERROR, Blame.CONFIG, "edge")
    assert "broker 1 refused to name it the coordinator 5 times since" in finding.summary
    assert "GROUP_AUTHORIZATION_FAILED" in finding.summary
    assert finding.action.startswith("Grant READ on this group")
    talk.hand_out_id(c)
    talk.round([c], 1)
    talk.settle()
    assert talk.the("M-14").status is Status.RESOLVED


def test_M_14_is_one_finding_of_a_process_whose_threads_are_replaced_as_they_are_refused(talk: Conversation) -> None:
    """Kafka Streams with REPLACE_THREAD: each thread has a client id of its own."""
    for number in range(1, 6):
        thread = talk.client(f"app-1-StreamThread-{number}-consumer")
        talk.find_coordinator(thread, error=NOT_AUTHORIZED)
        talk.close(thread)
        talk.wait(1_000)
    finding = talk.the("M-14")
    assert (finding.severity, finding.client_id) == (Severity.ERROR, "app-1")
    talk.settle()
    summary = talk.the("M-14").summary
    assert re.match(
        r"[45] threads of client app-1 at .* cannot join group g: broker 1 refused to name it the coordinator [45] times", summary
    )


def test_M_14_tells_processes_apart_whose_threads_are_refused(talk: Conversation) -> None:
    for process in ("app-1", "app-2"):
        talk.find_coordinator(talk.client(f"{process}-StreamThread-1-consumer"), error=NOT_AUTHORIZED)
    talk.wait(11_000)
    assert [finding.client_id for finding in talk.opened()] == ["app-1", "app-2"]


def test_M_14_warns_of_a_single_refusal_after_which_the_client_gives_up(talk: Conversation) -> None:
    talk.find_coordinator(talk.client("edge"), error=NOT_AUTHORIZED)
    talk.wait(9_000)
    assert talk.rules() == []
    talk.wait(2_000)
    assert talk.the("M-14").severity is Severity.WARNING


def test_M_14_fires_at_once_for_a_type_of_group_that_the_cluster_does_not_offer(talk: Shares) -> None:
    queue = talk.member("queue")
    talk.find_coordinator(queue, 1)
    request = wire.ShareGroupHeartbeatRequest(group_id=talk.group, member_id=queue.member_id, subscribed_topic_names=("foo",))
    talk.call(queue, request, wire.ShareGroupHeartbeatResponse(error_code=35))
    talk.settle()
    finding = talk.the("M-14")
    assert finding.severity is Severity.ERROR
    assert "its feature share.version is off" in finding.summary
    assert finding.action.startswith("Finalise the feature share.version")


def test_M_14_warns_of_a_client_that_gives_up_beside_a_living_holder_of_its_instance_id(talk: Epochs) -> None:
    a = alone(talk, instance_id="i")
    talk.live([a], 10)
    talk.refused_join(talk.member("a2", "i"), 111)
    talk.live([a], 8)
    assert talk.rules() == []
    talk.live([a], 15)
    finding = talk.the("M-14")
    assert finding.severity is Severity.WARNING
    assert "Instance id i is held by member a-id" in finding.summary
    assert "which lives" in finding.summary


def test_M_14_does_not_come_again_when_the_holder_ends_long_after_the_refused_client_has_gone(talk: Epochs) -> None:
    a, a2 = talk.member("a", "i"), talk.member("a2", "i")
    talk.joins(a, 2, foo(0, 1))
    talk.live([a], 10)
    talk.refused_join(a2, 111)
    talk.close(a2)
    talk.live([a], 20)
    assert talk.the("M-14").status is not Status.RESOLVED
    talk.close(a)
    talk.wait(150_000)
    assert [one.rule for one in talk.opened() if one.rule == "M-14"] == ["M-14"]
    assert talk.the("M-14").status is Status.RESOLVED


# ---------------------------------------------------------------------------------------------------- M-15


def test_M_15_fires_when_a_client_is_named_an_address_again_and_again_and_never_speaks_there(talk: Conversation) -> None:
    c = talk.client("notify")
    looks(talk, c, 22, address="10.0.0.9:9099")
    finding = talk.the("M-15")
    assert (finding.severity, finding.blame, finding.client_id) == (Severity.ERROR, Blame.CONFIG, "notify")
    assert "it was named 10.0.0.9:9099 22 times" in finding.summary
    assert "advertised.listeners" in finding.action
    talk.hand_out_id(c)
    talk.round([c], 1)
    talk.settle()
    assert talk.the("M-15").status is Status.RESOLVED
    assert talk.rules() == ["M-15"]


def threads(talk: Conversation, *processes: str) -> list[Client]:
    """Two threads of each process of Kafka Streams."""
    return [talk.client(f"{process}-StreamThread-{number}-consumer") for process in processes for number in (1, 2)]


def test_M_15_is_one_finding_of_all_threads_of_a_process(talk: Conversation) -> None:
    clients = threads(talk, "app-1", "app-2")
    for _ in range(25):
        for client in clients:
            talk.find_coordinator(client, address="10.0.0.9:9099")
        talk.wait(1_000)
    assert [(finding.rule, finding.client_id) for finding in talk.opened()] == [("M-15", "app-1"), ("M-15", "app-2")]
    assert talk.opened()[0].summary.startswith("Client app-1 at 10.0.0.1")
    talk.wait(120_000)
    assert [finding.rule for finding in talk.findings if finding.status is Status.RESOLVED] == ["M-15", "M-15"]


def test_M_15_warns_where_others_are_members(talk: Conversation) -> None:
    members = consuming(talk, "a", "b")
    c = talk.client("notify")
    for _ in range(25):
        talk.find_coordinator(c, 1)
        live(talk, members, 1)
    assert talk.the("M-15").severity is Severity.WARNING


@pytest.mark.parametrize(("times", "every_ms"), [(10, 1_000), (5, 40_000), (4, 10_000)])
def test_M_15_ignores_a_client_that_looks_for_a_short_while_or_now_and_then(talk: Conversation, times: int, every_ms: int) -> None:
    looks(talk, talk.client("notify"), times, every_ms)
    assert "M-15" not in talk.rules()


def test_M_15_ignores_processes_that_are_started_one_after_the_other(talk: Conversation) -> None:
    """Their coordinator may be reached beside the capture."""
    for _ in range(30):
        c = talk.client("job")
        talk.find_coordinator(c, 1)
        talk.wait(1_000)
        talk.close(c)
    assert talk.rules() == []


def fails(talk: Conversation, client: Client, address: str, refused: int) -> None:
    """Connections of a client's host fail, as packets or the tap show."""
    failed = Unreached(refused, 0, talk.now_us)
    record = unreached(talk.now_us, address, client.host, failed, cluster="c1")._replace(partition=0, offset=talk.offset)
    talk.offset += 1
    talk.records.append(record)
    talk.findings.extend(talk.model.receive(record))


def test_M_15_fires_for_a_single_lookup_when_connections_to_the_address_named_fail(talk: Conversation) -> None:
    c = talk.client("mailer")
    talk.find_coordinator(c, address="10.0.0.9:9099")
    for _ in range(5):
        fails(talk, c, "10.0.0.9:9099", 20)
        talk.wait(5_000)
    fails(talk, c, "10.0.0.9:9099", 1)
    talk.settle()
    finding = talk.the("M-15")
    assert "it was named 10.0.0.9:9099 once since" in finding.summary
    assert "101 connections were refused there since" in finding.summary
    assert talk.found_when_restored(range(0, len(talk.records), 3)) == talk.findings


def test_M_15_counts_connections_that_failed_since_the_client_was_named_the_address(talk: Conversation) -> None:
    """Those before were others of its host."""
    fails(talk, talk.client("other"), "10.0.0.9:9099", 40)
    talk.wait(5_000)
    c, since = talk.client("mailer"), clock(talk.now_us)
    talk.find_coordinator(c, address="10.0.0.9:9099")
    for _ in range(6):
        talk.wait(5_000)
        fails(talk, c, "10.0.0.9:9099", 2)
    assert f"and asked nothing there. 10 connections were refused there since {since}. Nobody" in talk.the("M-15").summary


def test_M_15_looks_for_as_long_at_a_client_that_comes_when_others_of_its_host_have_failed_for_long(talk: Conversation) -> None:
    for _ in range(6):
        fails(talk, talk.client("other"), "10.0.0.9:9099", 20)
        talk.wait(5_000)
    c = talk.client("mailer")
    talk.find_coordinator(c, address="10.0.0.9:9099")
    for _ in range(3):
        fails(talk, c, "10.0.0.9:9099", 20)
        talk.wait(5_000)
    assert talk.rules() == []
    for _ in range(2):
        fails(talk, c, "10.0.0.9:9099", 20)
        talk.wait(5_000)
    assert talk.rules() == ["M-15"]


def test_M_15_ignores_a_client_that_went_before_others_of_its_host_began_to_fail(talk: Conversation) -> None:
    c = talk.client("mailer")
    talk.find_coordinator(c, address="10.0.0.9:9099")
    talk.close(c)
    talk.wait(65_000)
    for _ in range(7):
        fails(talk, talk.client("other"), "10.0.0.9:9099", 20)
        talk.wait(5_000)
    assert talk.rules() == []


def test_M_15_ignores_connections_that_fail_for_a_short_while_or_elsewhere(talk: Conversation) -> None:
    c = talk.client("mailer")
    talk.find_coordinator(c, address="10.0.0.9:9099")
    for _ in range(3):
        fails(talk, c, "10.0.0.9:9099", 20)
        talk.wait(5_000)
    for _ in range(6):
        fails(talk, c, "10.0.0.7:9099", 20)
        talk.wait(5_000)
    assert talk.rules() == []


# ---------------------------------------------------------------------------------------------------- M-16


def test_M_16_notes_a_client_that_finds_its_coordinator_and_never_asks_to_join(talk: Conversation) -> None:
    c = talk.client("wrongtopic")
    looks(talk, c, 2, address="10.0.0.9:9099")
    talk.wait(56_000)
    assert talk.rules() == []
    talk.wait(4_000)
    finding = talk.the("M-16")
    assert (finding.severity, finding.client_id) == (Severity.INFO, "wrongtopic")
    assert "was named the coordinator 10.0.0.9:9099 of group g at" in finding.summary
    talk.close(c)
    talk.wait(2_000)
    assert talk.the("M-16").status is Status.RESOLVED


def test_M_16_is_one_finding_of_all_threads_of_a_process(talk: Conversation) -> None:
    for thread in threads(talk, "app-1", "app-2"):
        talk.find_coordinator(thread)
    talk.wait(62_000)
    assert [(finding.rule, finding.client_id) for finding in talk.opened()] == [("M-16", "app-1"), ("M-16", "app-2")]


def asks_in_vain(talk: Conversation, client: Client, topic: str, partitions: int = 0) -> None:
    """Feed what a Metadata response says to a client that asks for a topic which does not exist, or is not for it."""
    record = topics(talk.now_us, {topic: partitions}, cluster="c1", client=(client.name, client.host))._replace(
        partition=0, offset=talk.offset
    )
    talk.offset += 1
    talk.records.append(record)
    talk.findings.extend(talk.model.receive(record))


def test_M_16_warns_of_a_client_whose_topic_does_not_exist(talk: Conversation) -> None:
    c, d = talk.client("wrongtopic"), talk.client("other")
    talk.find_coordinator(c)
    asks_in_vain(talk, c, "ordres")
    asks_in_vain(talk, d, "else")
    talk.wait(18_000)
    assert talk.rules() == []
    talk.wait(4_000)
    finding = talk.the("M-16")
    assert finding.severity is Severity.WARNING
    assert "has not asked to join for 20.0 s, though its connection is open" in finding.summary
    assert "It asks for ordres, which the brokers do not have." in finding.summary
    assert finding.action.startswith("Mend the name")


def test_M_16_warns_of_a_client_that_has_no_right_to_its_topic(talk: Conversation) -> None:
    c = talk.client("denied")
    talk.topics(orders=3)
    talk.find_coordinator(c)
    asks_in_vain(talk, c, "orders", NO_RIGHT)
    talk.wait(61_000)
    finding = talk.the("M-16")
    assert finding.severity is Severity.WARNING
    assert "It asks for orders, and has no right to it: Metadata was answered TOPIC_AUTHORIZATION_FAILED." in finding.summary
    assert finding.action.startswith("Grant the client's principal")
    assert talk.model.groups.opened(("c1", "g"))[0].facts.partition_count("c1", "orders").partitions == 3


def test_M_16_blames_no_right_that_a_client_got_meanwhile_or_that_another_lacks(talk: Conversation) -> None:
    c, d = talk.client("denied"), talk.client("other")
    talk.find_coordinator(c)
    asks_in_vain(talk, c, "orders", NO_RIGHT)
    asks_in_vain(talk, c, "orders", 3)
    asks_in_vain(talk, d, "orders", NO_RIGHT)
    talk.wait(61_000)
    assert talk.the("M-16").severity is Severity.INFO


def test_M_16_notes_it_only_where_the_topic_was_made_meanwhile(talk: Conversation) -> None:
    c = talk.client("wrongtopic")
    talk.find_coordinator(c)
    asks_in_vain(talk, c, "orders")
    talk.topics(orders=3)
    talk.wait(61_000)
    assert talk.the("M-16").severity is Severity.INFO


def test_M_16_ignores_a_client_that_asks_to_join_or_hangs_up(talk: Conversation) -> None:
    a, c = talk.client("a"), talk.client("c")
    talk.find_coordinator(c, 1)
    talk.find_coordinator(a, 1)
    talk.hand_out_id(a)
    talk.round([a], 1)
    talk.close(c)
    live(talk, [a], 70)
    assert talk.rules() == []


# ----------------------------------------------------------------------------------------------------


def matching(talk: Epochs, pattern: str) -> list[Client]:
    """Two members that subscribe by pattern, and get nothing."""
    members = [talk.member("a"), talk.member("b")]
    for client in members:
        talk.joins(client, 2, {}, subscribed_topic_names=None, subscribed_topic_regex=pattern)
    return members


def test_A_15_warns_of_a_pattern_that_matches_no_whole_name(talk: Epochs) -> None:
    talk.topics(**{"orders-eu": 3, "orders-us": 3, "payments": 1})
    members = matching(talk, "^orders-")
    talk.live(members, 15)
    assert talk.rules() == []
    talk.live(members, 10)
    finding = talk.the("A-15")
    assert (finding.severity, finding.blame) == (Severity.WARNING, Blame.CONFIG)
    assert "member b-id" in finding.summary
    assert "no name of a topic matches its pattern ^orders- as a whole" in finding.summary
    assert "orders-eu and orders-us match only in part. Cost so far: 40.0 member-seconds." in finding.summary
    assert "^orders-.*" in finding.action
    assert talk.rules() == ["A-15"]


def test_A_15_warns_of_a_pattern_by_which_nobody_gets_anything_where_no_topic_is_known(talk: Epochs) -> None:
    members = matching(talk, "^orders-")
    talk.live(members, 25)
    assert "no name of a topic matches its pattern ^orders- as a whole" in talk.the("A-15").summary


@pytest.mark.parametrize("pattern", ["(o+)+x", ".*.*.*x"])
def test_A_15_ignores_a_pattern_that_could_take_long(talk: Epochs, pattern: str) -> None:
    talk.live(matching(talk, pattern), 25)
    assert talk.rules() == []


def test_A_15_ignores_a_pattern_that_matches_or_of_which_another_member_has_partitions(talk: Epochs) -> None:
    talk.topics(**{"orders-eu": 3})
    talk.live(matching(talk, "^orders-.*"), 50)
    other = Epochs()
    a, b = matching(other, "^orders-")
    other.beats(a, 2, foo(0))
    other.live([a, b], 50)
    assert talk.rules() == other.rules() == []


def test_A_15_warns_of_topics_that_do_not_exist(talk: Conversation) -> None:
    a, b = talk.client("a"), talk.client("b")
    talk.topics(ordres=0)
    rebalance(talk, 3, {a: ("ordres",), b: ("ordres",)}, plan={a: NOTHING, b: NOTHING})
    live(talk, [a, b], 15)
    assert talk.rules() == []
    live(talk, [a, b], 10)
    finding = talk.the("A-15")
    assert finding.severity is Severity.WARNING
    assert "it subscribes to ordres, and there is no such topic" in finding.summary
    rebalance(talk, 4, {a: ("orders",), b: ("orders",)}, plan={a: assignment(orders=(0,)), b: assignment(orders=(1,))})
    talk.settle()
    assert talk.the("A-15").status is Status.RESOLVED


def test_A_15_warns_of_a_member_that_has_no_right_to_its_topic(talk: Conversation) -> None:
    a, b = talk.client("a"), talk.client("b")
    talk.topics(orders=3)
    rebalance(talk, 3, {a: ("orders",), b: ("orders",)}, plan={a: NOTHING, b: NOTHING})
    live(talk, [a, b], 60)
    assert talk.rules() == []
    asks_in_vain(talk, a, "orders", NO_RIGHT)
    live(talk, [a, b], 20)
    finding = talk.the("A-15")
    assert (finding.severity, finding.client_id) == (Severity.WARNING, "a")
    assert "it subscribes to orders, and has no right to it: Metadata was answered TOPIC_AUTHORIZATION_FAILED." in finding.summary
    assert finding.action.startswith("Grant the client's principal")
    rebalance(talk, 4, {a: ("orders",), b: ("orders",)}, plan={a: assignment(orders=(0,)), b: assignment(orders=(1, 2))})
    talk.settle()
    assert talk.the("A-15").status is Status.RESOLVED


def test_A_15_warns_of_a_subscription_that_names_no_topic(talk: Conversation) -> None:
    """Java and kafka-python join so by a pattern that matches none."""
    a, b = talk.client("a"), talk.client("b")
    rebalance(talk, 3, {a: (), b: ("t",)}, plan={a: NOTHING, b: assignment(t=(0,))})
    live(talk, [a, b], 15)
    assert talk.rules() == []
    live(talk, [a, b], 10)
    finding = talk.the("A-15")
    assert (finding.severity, finding.client_id) == (Severity.WARNING, "a")
    assert "its subscription names no topic, as that of a pattern which matches none." in finding.summary
    assert finding.action.startswith("Mend the pattern")
    rebalance(talk, 4, {a: ("t",), b: ("t",)}, plan={a: assignment(t=(0,)), b: assignment(t=(1,))})
    talk.settle()
    assert talk.the("A-15").status is Status.RESOLVED


def test_A_15_notes_spare_members(talk: Conversation) -> None:
    a, b = talk.client("a"), talk.client("b")
    talk.topics(t=1)
    rebalance(talk, 3, {a: ("t",), b: ("t",)}, plan={a: assignment(t=(0,)), b: NOTHING})
    live(talk, [a, b], 25)
    finding = talk.the("A-15")
    assert (finding.severity, finding.client_id) == (Severity.INFO, "b")
    assert (
        "its topics have 1 partition, and the group has 2 members: one without any takes over when another goes." in finding.summary
    )


def test_A_15_says_nothing_of_some_members_where_no_answer_shows_why(talk: Conversation) -> None:
    a, b = talk.client("a"), talk.client("b")
    rebalance(talk, 3, {a: ("t",), b: ("t",)}, plan={a: assignment(t=(0,)), b: NOTHING})
    live(talk, [a, b], 90)
    assert talk.rules() == []


# ---------------------------------------------------------------------------------------------------- O-12


def commits_in_transaction(talk: Conversation, client: Client) -> None:
    request = wire.TxnOffsetCommitRequest(
        transactional_id="enricher-tx",
        group_id=talk.group,
        producer_id=7,
        topics=(
            wire.TxnOffsetCommitRequestTopic(name="t", partitions=(wire.TxnOffsetCommitRequestPartition(committed_offset=5),)),
        ),
    )
    answer = wire.TxnOffsetCommitResponse(
        topics=(wire.TxnOffsetCommitResponseTopic(name="t", partitions=(wire.TxnOffsetCommitResponsePartition(),)),)
    )
    talk.call(client, request, answer)


def test_O_12_fires_while_an_open_transaction_hides_where_a_group_stands(talk: Conversation) -> None:
    (a,) = consuming(talk, "a")
    commits_in_transaction(talk, talk.client("producer"))
    for _ in range(12):
        talk.fetch_offsets(a, {0: -1}, {0: 88})
        live(talk, [a], 1)
    finding = talk.the("O-12")
    assert (finding.severity, finding.client_id) == (Severity.ERROR, "a")
    assert "its OffsetFetch was answered UNSTABLE_OFFSET_COMMIT 12 times since" in finding.summary
    assert "producer enricher-tx of client producer" in finding.summary
    assert "Cost so far: 1 partition that nobody reads, " in finding.summary
    assert "kafka-transactions.sh abort" in finding.action
    talk.fetch_offsets(a, {0: 7})
    talk.settle()
    assert talk.the("O-12").status is Status.RESOLVED


def test_O_12_warns_of_a_refused_read_that_is_not_asked_again(talk: Conversation) -> None:
    a, b = consuming(talk, "a", "b")
    talk.fetch_offsets(a, {0: -1}, {0: 16})
    live(talk, [a, b], 8)
    assert talk.rules() == []
    live(talk, [a, b], 4)
    finding = talk.the("O-12")
    assert (finding.severity, finding.client_id) == (Severity.WARNING, "a")
    assert "does not ask the new one" in finding.summary


def test_O_12_ignores_reads_that_succeed_when_repeated_and_those_of_tools(talk: Conversation) -> None:
    a, b = consuming(talk, "a", "b")
    for _ in range(5):
        talk.fetch_offsets(a, {0: -1}, {0: 88})
        talk.wait(1_000)
    talk.fetch_offsets(a, {0: 7})
    talk.fetch_offsets(talk.client("tool"), {0: -1}, {0: 88})
    live(talk, [a, b], 30)
    assert talk.rules() == []


def test_the_way_of_a_client_survives_a_restore(talk: Conversation) -> None:
    (a,) = consuming(talk, "a")
    looks(talk, talk.client("notify"), 10)
    commits_in_transaction(talk, talk.client("producer"))
    for _ in range(12):
        talk.fetch_offsets(a, {0: -1}, {0: 88})
        live(talk, [a], 1)
    assert talk.found_when_restored() == talk.findings


def test_clients_of_a_group_are_lost_from_sight_with_a_gap(talk: Epochs) -> None:
    alone(talk)
    talk.refused_join(talk.member("b"), 30)
    talk.gap()
    assert arrivals(talk) == []

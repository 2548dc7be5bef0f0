"""Family R, second part: storms, loops and who starts them. Each rule: what fires it, what must keep it quiet, what resolves it."""

from __future__ import annotations

import re

import pytest

from coordinator_model import wire
from coordinator_model.finding import Blame, Severity, Status
from tests.coordinator_model.classic import complete, live, settled, static_group
from tests.coordinator_model.conversation import Client, Conversation, subscription
from tests.coordinator_model.rules.loops import arrives, departs, flaps, joins_without_sync, restarts, told_to_rejoin

# ----------------------------------------------------------------------------------------------------


def alternating(talk: Conversation, times: int, *, every_ms: int = 5_000, join_ms: int = 10, **fields: int) -> list[Client]:
    """Rebalances that the two members start in turn."""
    a, b = settled(talk)
    leader, generation = a, 3
    for _ in range(times):
        talk.wait(every_ms)
        generation += 1
        asked = [talk.ask_join(one, **fields) for one in (a, b)]
        talk.wait(join_ms)
        leader = b if leader is a else a
        complete(talk, asked, generation, leader, [a, b])
        talk.sync_all([a, b], leader=leader)
    return [a, b]


def test_R_06_warns_of_more_rebalances_than_restarts_explain_and_names_both_leaders(talk: Conversation) -> None:
    alternating(talk, 10)
    talk.settle()
    finding = talk.the("R-06")
    assert finding.severity is Severity.WARNING
    assert "10 times in 5 minutes" in finding.summary
    assert "leader rejoined (10)" in finding.observed
    assert finding.client_id is None
    assert finding.observed.count(" started 5") == 2
    assert talk.rules() == ["R-06"]


def test_R_06_says_how_many_starters_it_does_not_name(talk: Conversation) -> None:
    a, b = settled(talk, ("a", "b"))
    many, generation = [talk.client(f"bad-{number}") for number in range(6)], 3
    for number in range(30):
        generation += 1
        arrives(talk, many[number % 6], [a, b], generation)
        talk.wait(2_000)
    talk.settle()
    finding = talk.the("R-06")
    assert finding.client_id is None
    assert finding.observed.count(" started ") == 4
    assert finding.observed.endswith("2 other clients at least half as many")


def test_R_06_counts_members_not_rebalances_that_nobody_is_known_to_have_started(talk: Conversation) -> None:
    clients = settled(talk)
    for generation in range(4, 40):
        talk.wait(2_000)
        told_to_rejoin(talk, clients)
        talk.round(clients, generation)
    talk.settle()
    assert talk.the("R-06").summary.endswith("more than one restart of each of its 2 members explains.")


def test_R_06_counts_within_its_window_only(talk: Conversation) -> None:
    alternating(talk, 12, every_ms=61_000)
    assert talk.rules() == ["T-04", "T-02"]


def test_R_06_is_an_error_when_the_group_hardly_gets_to_work(talk: Conversation) -> None:
    alternating(talk, 10, every_ms=2_000, join_ms=60_000, rebalance_timeout_ms=300_000)
    talk.settle()
    finding = talk.the("R-06")
    assert finding.severity is Severity.ERROR
    assert "kept from work" in finding.summary


def test_R_06_counts_generations_that_were_never_synced_as_time_outside_stable(talk: Conversation) -> None:
    a, b = settled(talk)
    for generation in range(4, 16):
        asked = [talk.ask_join(one, rebalance_timeout_ms=300_000) for one in (a, b)]
        talk.wait(60_000)
        complete(talk, asked, generation, b if generation % 2 else a, [a, b])
        a, b = a.reconnected(), b.reconnected()
    talk.settle()
    assert talk.the("R-06").severity is Severity.ERROR


@pytest.mark.parametrize("names", [None, ["app"] * 4])
def test_R_06_and_R_07_allow_a_rolling_restart_of_four(talk: Conversation, names: list[str] | None) -> None:
    clients = settled(talk, tuple(names or "abcd"))
    restarts(talk, clients, 3, names)
    live(talk, clients, 30)
    assert talk.rules() == []


def test_R_06_allows_one_restart_of_each_member_that_the_others_follow_up_twice(talk: Conversation) -> None:
    """Members of Kafka Streams give up tasks and join again after somebody left and after somebody came: four generations a restart."""
    alternating(talk, 9)
    assert talk.settled_rules() == []


def test_R_06_and_R_07_allow_a_single_consumer_that_starts_and_stops(talk: Conversation) -> None:
    generation = 1
    for _ in range(12):
        solo = talk.client("cron")
        talk.round([solo], generation)
        live(talk, [solo], 3)
        talk.leave(solo)
        talk.close(solo)
        generation += 2
    talk.wait(60_000)
    assert talk.rules() == []


def test_R_06_allows_a_group_that_grew_one_by_one_and_shrinks_one_by_one(talk: Conversation) -> None:
    """Each member joins once more when it first knows its partitions, as kafka-python's do."""
    (a,) = settled(talk, ("a",))
    clients, generation = [a], 3
    for name in "bcd":
        new = talk.client(name)
        arrives(talk, new, clients, generation + 1)
        clients.append(new)
        generation += 2
        talk.round(clients, generation)
        talk.wait(2_000)
    while len(clients) > 1:
        old = clients.pop(0)
        departs(talk, old, clients, generation + 1)
        talk.close(old)
        generation += 2
        talk.round(clients, generation)
        talk.wait(2_000)
    live(talk, clients, 30)
    assert talk.rules() == []


def test_R_06_is_an_error_when_one_client_starts_half_of_them_though_never_in_a_row(talk: Conversation) -> None:
    a, b = settled(talk, ("a", "b"))
    bad, generation = talk.client("bad"), 3
    for _ in range(10):
        generation += 1
        arrives(talk, bad, [a, b], generation)
        generation += 1
        talk.heartbeat(a, 27)  # and nobody knows why
        talk.round([a, b], generation)
        talk.wait(2_000)
    talk.settle()
    finding = talk.the("R-06")
    assert finding.severity is Severity.ERROR
    assert finding.client_id == "bad"
    assert talk.rules() == ["R-06"]


def test_R_06_blames_no_connect_worker_for_rejoining_after_each_change_of_a_connector(talk: Conversation) -> None:
    talk.protocol_type, talk.protocol = "connect", "sessioned"
    one, two = settled(talk, ("worker-1", "worker-2"))
    departs(talk, two, [one], 4)
    two = talk.client("worker-2")
    arrives(talk, two, [one], 5)
    for generation in range(6, 22):
        rejoins(talk, two, [one], generation, b"offset %d" % generation)
    talk.settle()
    finding = talk.the("R-06")
    assert finding.severity is Severity.WARNING
    assert finding.client_id is None
    assert "worker rejoined (15)" in finding.observed
    assert talk.rules() == ["R-06"]


def test_R_06_names_all_clients_that_start_about_as_many_and_blames_none_of_them(talk: Conversation) -> None:
    a, b = settled(talk, ("a", "b"))
    pair, generation = [talk.client("bad"), talk.client("worse")], 3
    for number in range(26):
        generation += 1
        arrives(talk, pair[number % 2], [a, b], generation)
        talk.wait(2_000)
    talk.settle()
    finding = talk.the("R-06")
    assert finding.client_id is None
    assert "client bad at 10.0.0.1" in finding.summary
    assert "client worse at 10.0.0.1" in finding.summary
    assert finding.summary.count("started 10") == 2
    assert "R-07" not in talk.rules()


def two_flap_with_rounds_between(talk: Conversation) -> None:
    a, b = settled(talk)
    x, y = talk.client("x"), talk.client("y")
    generation = 3
    for _ in range(6):
        generation = flap_together(talk, [x, y], [a, b], generation, 1) + 1
        talk.round([b, a], generation, leader=b)
    talk.settle()


def test_R_06_counts_each_rebalance_to_one_client_alone_also_in_a_phase_that_another_began(talk: Conversation) -> None:
    """Of 17 rebalances three clients were said to have started eight each, where they started 5, 4 and 8."""
    two_flap_with_rounds_between(talk)
    words = talk.the("R-06").summary + talk.the("R-06").observed
    [of] = re.findall(r"of (?:the last )?(\d+):", words)
    assert sum(int(count) for count in re.findall(r"started (\d+)", words)) <= int(of)
    assert "started none and had cause to start" in words
    assert talk.the("R-06").client_id is None
    assert (" x at " in words, " y at " in words) == (True, True)


def test_R_06_allows_clients_that_are_restarted_together(talk: Conversation) -> None:
    """Each has a part in all ten rebalances, and begins a third of them."""
    a, b = settled(talk)
    clients, generation = [talk.client(name) for name in "xyz"], 3
    for _ in range(5):
        generation = flap_together(talk, clients, [a, b], generation, 1)
        clients = [*clients[1:], clients[0]]
        talk.wait(5_000)
    assert talk.rules() == []


def test_R_06_resolves_when_it_is_quiet(talk: Conversation) -> None:
    clients = alternating(talk, 10)
    live(talk, clients, 310)
    assert talk.the("R-06").status is Status.RESOLVED


def test_R_06_folds_under_the_client_that_loops(talk: Conversation) -> None:
    clients = settled(talk)
    flaps(talk, talk.client("bad"), clients, 3, times=8)
    assert talk.settled_rules() == ["R-07"]


def polls_too_rarely(talk: Conversation, client: Client, others: list[Client], generation: int, times: int) -> int:
    """A client leaves for its poll interval and comes back under a new id, with no rhythm."""
    for number in range(times):
        talk.leave(client, reason="consumer poll timeout has expired.")
        told_to_rejoin(talk, others)
        talk.round(others, generation + 1)
        live(talk, others, 20 if number % 2 else 1)
        generation += 2
        arrives(talk, client, others, generation)
        live(talk, [*others, client], 5)
    return generation


def test_R_06_leaves_a_client_that_polls_too_rarely_to_T_05(talk: Conversation) -> None:
    a, b = settled(talk)
    polls_too_rarely(talk, b, [a], 3, times=8)
    assert talk.settled_rules() == ["T-05"]
    assert len({finding.id for finding in talk.findings}) == 1


def test_R_06_speaks_of_others_beside_a_client_that_polls_too_rarely(talk: Conversation) -> None:
    """The twin of the above: the storm has another cause."""
    a, b, c = settled(talk, ("a", "b", "c"))
    generation = polls_too_rarely(talk, c, [a, b], 3, times=1)
    leader = a
    for _ in range(14):
        talk.wait(2_000)
        generation += 1
        asked = [talk.ask_join(one) for one in (a, b, c)]
        leader = b if leader is a else a
        complete(talk, asked, generation, leader, [a, b, c])
        talk.sync_all([a, b, c], leader=leader)
    assert talk.settled_rules() == ["T-05", "R-06"]


# ----------------------------------------------------------------------------------------------------


def test_R_07_warns_of_a_client_that_comes_and_goes(talk: Conversation) -> None:
    clients = settled(talk)
    flaps(talk, talk.client("bad"), clients, 3, times=2)
    talk.settle()
    finding = talk.the("R-07")
    assert finding.severity is Severity.WARNING
    assert finding.blame is Blame.CLIENT
    assert finding.client_id == "bad"
    assert "new member (2), member left (2)" in finding.observed
    assert "rebalance failed due to 'x'" in finding.observed


def flap_together(talk: Conversation, clients: list[Client], others: list[Client], generation: int, times: int) -> int:
    """They join in one phase, and leave in one phase."""
    for _ in range(times):
        generation += 1
        for client in clients:
            talk.hand_out_id(client, f"{client.name}-{generation}")
        new = [talk.ask_join(client) for client in clients]
        told_to_rejoin(talk, others)
        complete(talk, [*(talk.ask_join(other) for other in others), *new], generation, others[0], [*others, *clients])
        talk.sync_all([*others, *clients])
        talk.wait(1_000)
        generation += 1
        for client in clients:
            talk.leave(client)
            client.member_id = ""
        told_to_rejoin(talk, others)
        talk.round(others, generation)
        talk.wait(1_000)
    return generation


def test_R_07_names_all_that_come_and_go_together_and_blames_none_of_them(talk: Conversation) -> None:
    a, b = settled(talk)
    x, y, z = talk.client("x"), talk.client("y"), talk.client("z")
    flap_together(talk, [x, y, z], [a, b], 3, 2)
    talk.settle()
    finding = talk.the("R-07")
    assert (finding.severity, finding.client_id, finding.member_id) == (Severity.WARNING, None, None)
    assert finding.summary.startswith("The client x at 10.0.0.1")
    assert ", and client y at 10.0.0.1" in finding.summary
    assert finding.summary.count(" did the same in 4 of them") == 2
    assert finding.summary.endswith("none of them alone makes the other members take part each time.")
    assert "what these clients have in common" in finding.action
    assert talk.rules() == ["R-07"]


def test_R_07_names_a_client_alone_though_another_joined_once_beside_it(talk: Conversation) -> None:
    a, b = settled(talk)
    x, y = talk.client("x"), talk.client("y")
    generation = flap_together(talk, [x, y], [a, b], 3, 1)
    flap_together(talk, [x], [a, b], generation, 2)
    talk.settle()
    assert talk.the("R-07").client_id == "x"
    assert "y at" not in talk.the("R-07").summary


def test_R_07_does_not_count_those_beside_it_whose_join_is_refused(talk: Conversation) -> None:
    a, b = settled(talk)
    x, y = talk.client("x"), talk.client("y")
    for generation in range(4, 10, 2):
        talk.hand_out_id(x, f"x-{generation}")
        talk.hand_out_id(y, f"y-{generation}")
        new, refused = talk.ask_join(x), talk.ask_join(y)
        talk.refuse_join(refused, 23)
        told_to_rejoin(talk, [a, b])
        complete(talk, [*(talk.ask_join(other) for other in (a, b)), new], generation, a, [a, b, x])
        talk.sync_all([a, b, x])
        departs(talk, x, [a, b], generation + 1)
        x.member_id = ""
    talk.settle()
    assert talk.the("R-07").client_id == "x"
    assert "y at" not in talk.the("R-07").summary


def test_R_07_is_an_error_after_ten_in_a_row(talk: Conversation) -> None:
    clients = settled(talk)
    flaps(talk, talk.client("bad"), clients, 3, times=5)
    talk.settle()
    assert talk.the("R-07").severity is Severity.ERROR
    assert len([finding for finding in talk.findings if finding.rule == "R-07"]) >= 2


def test_R_07_allows_three_in_a_row(talk: Conversation) -> None:
    a, b = settled(talk)
    flaps(talk, talk.client("bad"), [a, b], 3, times=1)
    arrives(talk, talk.client("bad"), [a, b], 6)
    assert talk.settled_rules() == []


def test_R_07_is_interrupted_by_another_starter(talk: Conversation) -> None:
    a, b = settled(talk)
    c = talk.client("c")
    arrives(talk, c, [a, b], 4)
    flaps(talk, talk.client("bad"), [a, b, c], 4, times=1)
    departs(talk, c, [a, b], 7)
    flaps(talk, talk.client("bad"), [a, b], 7, times=1)
    assert talk.settled_rules() == []


def test_R_07_is_interrupted_by_a_generation_that_was_not_seen(talk: Conversation) -> None:
    clients = settled(talk)
    bad = talk.client("bad")
    flaps(talk, bad, clients, 3, times=1)
    flaps(talk, bad, clients, 7, times=1)
    assert talk.settled_rules() == ["G-08"]


def test_R_07_is_interrupted_by_lost_records(talk: Conversation) -> None:
    clients = settled(talk)
    bad = talk.client("bad")
    flaps(talk, bad, clients, 3, times=1)
    talk.lose(3)
    flaps(talk, bad, clients, 6, times=1)
    assert talk.settled_rules() == ["V-01"]


def test_R_07_looks_back_15_minutes(talk: Conversation) -> None:
    clients = settled(talk)
    flaps(talk, talk.client("bad"), clients, 3, times=4, every_ms=400_000)
    assert talk.rules() == ["T-04", "T-02"]


def test_R_07_names_a_member_by_its_id_when_its_client_id_is_shared(talk: Conversation) -> None:
    a, b = settled(talk, ("app", "app"))
    for generation in range(4, 9):
        changed = wire.JoinGroupRequestProtocol(name="range", metadata=subscription(f"topic-{generation}"))
        asked = [talk.ask_join(b, protocols=(changed,)), talk.ask_join(a)]
        complete(talk, asked, generation, a, [a, b])
        talk.sync_all([a, b])
        talk.wait(1_000)
    finding = talk.the("R-07")
    assert finding.member_id == b.member_id
    assert "subscription changed" in finding.observed


def test_R_07_takes_a_client_id_for_shared_when_an_unseen_member_bears_it(talk: Conversation) -> None:
    a = talk.client("a")
    unseen = talk.client("app", member_id="app-5f1d")
    talk.hand_out_id(a)
    talk.joined(talk.ask_join(a), generation=3, leader=a, roster=[a, unseen])
    talk.sync_all([a])
    bad, generation = talk.client("app"), 3
    for _ in range(3):
        generation += 1
        arrives(talk, bad, [a], generation)
        group = talk.model.groups.opened(("c1", "g"))[0]
        group.members[unseen.member_id].removed = None  # it lives, elsewhere
        generation += 1
        departs(talk, bad, [a], generation)
        group.members[unseen.member_id].removed = None
    assert talk.settled_rules() == []


def test_R_07_knows_a_static_member_by_its_instance_id(talk: Conversation) -> None:
    a, b = static_group(talk, ("a", "b"))
    for generation in range(4, 8):
        changed = wire.JoinGroupRequestProtocol(name="range", metadata=subscription(f"topic-{generation}"))
        asked = [talk.ask_join(b, protocols=(changed,)), talk.ask_join(a)]
        complete(talk, asked, generation, a, [a, b])
        talk.sync_all([a, b])
    talk.settle()
    assert talk.the("R-07").instance_id == "i"


def test_R_07_only_warns_of_a_leader_that_rejoins(talk: Conversation) -> None:
    a, b = settled(talk)
    for generation in range(4, 18):
        talk.round([a, b], generation)
        talk.wait(1_000)
    finding = talk.the("R-07")
    assert finding.severity is Severity.WARNING
    assert finding.member_id == a.member_id


def test_R_07_is_not_interrupted_by_members_that_follow_up(talk: Conversation) -> None:
    """Cooperative: whoever gives up partitions rejoins with the same topics and other owned partitions."""
    a, b = settled(talk)
    bad, generation = talk.client("bad"), 3
    for _ in range(2):
        generation += 1
        arrives(talk, bad, [a, b], generation)
        generation += 1
        owned = wire.ConsumerProtocolSubscriptionTopicPartition(topic="t", partitions=(generation,))
        follow = wire.JoinGroupRequestProtocol(name="range", metadata=subscription("t", owned_partitions=(owned,)))
        asked = [talk.ask_join(b, protocols=(follow,)), talk.ask_join(a), talk.ask_join(bad)]
        complete(talk, asked, generation, a, [a, b, bad])
        talk.sync_all([a, b, bad])
        generation += 1
        departs(talk, bad, [a, b], generation)
    talk.settle()
    assert talk.the("R-07").client_id == "bad"


def rejoins(talk: Conversation, first: Client, others: list[Client], generation: int, metadata: bytes) -> None:
    """A member rejoins by itself with other metadata, and the others when they are told to."""
    offered = (wire.JoinGroupRequestProtocol(name=talk.protocol, metadata=metadata),)
    asked = [talk.ask_join(first, protocols=offered)]
    told_to_rejoin(talk, others)
    asked += [talk.ask_join(other) for other in others]
    complete(talk, asked, generation, others[0], [first, *others])
    talk.sync_all([others[0], first, *others[1:]])
    talk.wait(1_000)


def cooperative(partition: int) -> bytes:
    owned = wire.ConsumerProtocolSubscriptionTopicPartition(topic="t", partitions=(partition,))
    return subscription("t", owned_partitions=(owned,))


def test_R_07_counts_what_a_connect_cluster_does_for_one_cause_once(talk: Conversation) -> None:
    """Two workers: two connectors are created and one worker is restarted. Each costs the generations of KIP-415: join, revocation,
    assignment, the end of the scheduled delay.
    """
    talk.protocol_type, talk.protocol = "connect", "sessioned"
    one, two = settled(talk, ("worker-1", "worker-2"))
    generation = 3
    for _ in range(2):  # a connector: the workers rejoin with the new configuration, then without what they gave up
        for _ in ("join", "revocation"):
            generation += 1
            rejoins(talk, two, [one], generation, b"offset %d" % generation)
    departs(talk, two, [one], generation + 1)
    two = talk.client("worker-2")
    arrives(talk, two, [one], generation + 2)
    generation += 2
    for _ in ("delay", "revocation", "assignment"):
        generation += 1
        rejoins(talk, two, [one], generation, b"offset %d" % generation)
    assert talk.rules() == []


def test_R_07_blames_no_cooperative_consumer_for_the_second_half_of_its_own_rebalance(talk: Conversation) -> None:
    a, b = settled(talk)
    bad, generation = talk.client("b2"), 3
    arrives(talk, bad, [a, b], 4)
    talk.protocol = "cooperative-sticky"
    talk.round([a, b, bad], 5)
    for generation in (6, 7, 8):  # what it gave up, in ever smaller pieces
        rejoins(talk, bad, [a, b], generation, cooperative(generation))
    assert talk.rules() == []


def test_R_07_warns_of_a_member_that_follows_up_without_end(talk: Conversation) -> None:
    a, b = settled(talk)
    for generation in range(4, 12):
        rejoins(talk, b, [a], generation, cooperative(generation))
    finding = talk.the("R-07")
    assert (finding.severity, finding.member_id) == (Severity.WARNING, b.member_id)


def crashes(talk: Conversation, times: int) -> None:
    """A client dies, and comes back once its session has ended."""
    a, b = settled(talk)
    generation = 3
    for _ in range(times):
        bad = talk.client("bad")
        generation += 1
        arrives(talk, bad, [a, b], generation)
        talk.close(bad)
        live(talk, [a, b], 10)
        generation += 1
        told_to_rejoin(talk, [a, b])
        talk.round([a, b], generation)
    arrives(talk, talk.client("bad"), [a, b], generation + 1)
    talk.settle()


def test_R_07_of_a_client_that_crashes_folds_under_its_crash_loop(talk: Conversation) -> None:
    """It counted each return, and had another member id than the crash loop: one trouble was two findings."""
    crashes(talk, 3)
    assert "M-13" in talk.rules()
    assert "R-07" not in talk.rules()


def test_R_07_does_not_count_the_end_of_a_session_beside_the_return(talk: Conversation) -> None:
    crashes(talk, 2)
    assert "R-07" not in talk.rules()


def test_R_07_does_not_blame_a_member_for_being_removed_by_an_operator(talk: Conversation) -> None:
    a, b = settled(talk)
    generation = 3
    for index in range(4):
        victim = talk.client(f"v{index}")
        generation += 1
        arrives(talk, victim, [a, b], generation)
        talk.remove(victim, reason="removed by admin")
        generation += 1
        told_to_rejoin(talk, [a, b])
        talk.round([a, b], generation)
    assert talk.settled_rules() == []


def test_a_join_that_is_refused_is_not_taken_for_what_began_the_rebalance(talk: Conversation) -> None:
    a, b = settled(talk)
    stranger = talk.client("s", instance_id="i")
    talk.refuse_join(talk.ask_join(stranger), 23)
    talk.heartbeat(a, 27)
    talk.round([a, b], 4)
    assert talk.model.groups.opened(("c1", "g"))[0].rebalances.completed[-1].starter.cause == "not seen"


def test_R_07_resolves_when_it_is_quiet(talk: Conversation) -> None:
    clients = settled(talk)
    flaps(talk, talk.client("bad"), clients, 3, times=2)
    live(talk, clients, 310)
    assert talk.the("R-07").status is Status.RESOLVED


def test_R_07_does_not_name_a_client_without_an_id(talk: Conversation) -> None:
    a, b = settled(talk)
    generation = 3
    for _ in range(3):
        nameless = talk.client("x")
        nameless.name = None  # type: ignore[assignment]
        nameless.member_id = f"m-{generation}"
        talk.refuse_join(talk.ask_join(nameless, member_id=""), 79, nameless.member_id)
        generation += 1
        asked = [talk.ask_join(one) for one in (nameless, a, b)]
        complete(talk, asked, generation, a, [a, b, nameless])
        talk.sync_all([a, b, nameless])
        generation += 1
        departs(talk, nameless, [a, b], generation)
    assert talk.settled_rules() == []


# ----------------------------------------------------------------------------------------------------


def test_R_10_fires_on_a_member_that_joins_four_times_without_syncing(talk: Conversation) -> None:
    a, b = settled(talk)
    joins_without_sync(talk, a, b, 4)
    talk.settle()
    finding = talk.the("R-10")
    assert finding.severity is Severity.WARNING
    assert finding.member_id == b.member_id
    assert "4 times in a row" in finding.summary


def test_R_10_allows_a_leader_that_asks_twice_more_in_its_generation(talk: Conversation) -> None:
    """A leader of librdkafka does so while it waits for the metadata that it needs to assign."""
    a, b = settled(talk)
    asked = [talk.ask_join(a), talk.ask_join(b)]
    complete(talk, asked, 4, a, [a, b])
    for _ in range(2):
        talk.wait(300)
        talk.joined(talk.ask_join(a), generation=4, leader=a, roster=[a, b])
    talk.sync_all([a, b])
    assert talk.settled_rules() == []


def test_R_10_allows_connections_that_broke(talk: Conversation) -> None:
    a, b = settled(talk)
    joins_without_sync(talk, a, b, 4, reconnect=True)
    assert talk.settled_rules() == ["R-07"]


def test_R_10_starts_anew_after_a_sync_and_after_lost_records(talk: Conversation) -> None:
    a, b = settled(talk)
    joins_without_sync(talk, a, b, 1)
    talk.round([a, b], 5)
    joins_without_sync(talk, a, b, 2)
    talk.lose(2)
    joins_without_sync(talk, a, b, 2)
    assert talk.settled_rules() == ["V-01", "G-04"]


def test_R_10_resolves_when_the_member_syncs(talk: Conversation) -> None:
    a, b = settled(talk)
    joins_without_sync(talk, a, b, 4)
    talk.call(b, talk.sync_request(b, []), talk.synced())
    talk.wait(2_000)
    assert talk.the("R-10").status is Status.RESOLVED


# ----------------------------------------------------------------------------------------------------


def newborn(talk: Conversation, *, generations: int = 4, every_ms: int = 2_000) -> list[Client]:
    """A new group whose members come one after the other, each just too late for the generation before."""
    first = talk.client("m1")
    talk.hand_out_id(first)
    asked = talk.ask_join(first)
    talk.wait(3_000)
    talk.joined(asked, generation=1, leader=first, roster=[first])
    talk.sync_all([first])
    members = [first]
    for generation in range(2, generations + 1):
        talk.wait(every_ms)
        latecomer = talk.client(f"m{generation}")
        arrives(talk, latecomer, members, generation)
        members.append(latecomer)
    talk.settle()
    return members


def test_R_12_tells_of_members_that_missed_the_first_generations(talk: Conversation) -> None:
    newborn(talk)
    finding = talk.the("R-12")
    assert finding.severity is Severity.INFO
    assert finding.blame is Blame.CONFIG
    assert "4 generations within" in finding.summary


@pytest.mark.parametrize(("generations", "every_ms"), [(2, 2_000), (3, 1_000), (4, 4_000)])
def test_R_12_allows_one_or_two_latecomers_and_members_that_come_later(talk: Conversation, generations: int, every_ms: int) -> None:
    """Every group whose members started within 6 s was an info: 15 times on healthy traffic."""
    newborn(talk, generations=generations, every_ms=every_ms)
    assert talk.rules() == []


def test_R_12_knows_the_brokers_delay_from_the_settings() -> None:
    talk = Conversation(group_initial_rebalance_delay_ms=1_000)
    newborn(talk)
    assert talk.rules() == []


def test_R_12_does_not_count_members_that_are_restarted(talk: Conversation) -> None:
    a, b = talk.client("a"), talk.client("b")
    talk.round([a, b], 1)
    departs(talk, b, [a], 2)
    arrives(talk, talk.client("b"), [a], 3)
    arrives(talk, talk.client("c"), [a], 4)
    assert talk.settled_rules() == []


def test_R_12_needs_new_members(talk: Conversation) -> None:
    members = newborn(talk, generations=3, every_ms=500)
    members.append(talk.client("m4"))
    talk.round(members[:3], 4)
    assert talk.settled_rules() == []


def test_R_12_needs_the_birth_and_both_rosters(talk: Conversation) -> None:
    members = newborn(talk, generations=2, every_ms=500)
    talk.lose(2)
    for generation in (3, 4, 5):
        members.append(talk.client(f"m{generation}"))
        arrives(talk, members[-1], members[:-1], generation)
    assert talk.settled_rules() == ["V-01"]


def test_R_12_counts_from_the_first_join_of_the_group(talk: Conversation) -> None:
    first, second = talk.client("m1"), talk.client("m2")
    talk.hand_out_id(first)
    talk.hand_out_id(second)
    early = talk.ask_join(first)
    talk.wait(11_000)
    late = talk.ask_join(second)
    talk.wait(1_000)
    members = [first, second]
    complete(talk, (late, early), 1, first, members)
    talk.sync_all(members)
    for generation in (2, 3, 4):
        members.append(talk.client(f"m{generation + 1}"))
        arrives(talk, members[-1], members[:-1], generation)
    assert talk.settled_rules() == []


def test_R_12_resolves_when_it_is_quiet(talk: Conversation) -> None:
    newborn(talk)
    talk.wait(70_000)
    assert talk.the("R-12").status is Status.RESOLVED


# ----------------------------------------------------------------------------------------------------


def subscribes(talk: Conversation, a: Client, b: Client, metadata: list[bytes], *, every_ms: int = 1_000) -> None:
    generation = 3
    for raw in metadata:
        generation += 1
        asked = [talk.ask_join(b, protocols=(wire.JoinGroupRequestProtocol(name="range", metadata=raw),)), talk.ask_join(a)]
        complete(talk, asked, generation, a, [a, b])
        talk.sync_all([a, b])
        talk.wait(every_ms)


def test_R_17_fires_on_a_member_that_goes_back_and_forth(talk: Conversation) -> None:
    a, b = settled(talk)
    subscribes(talk, a, b, [subscription("x"), subscription("t"), subscription("x"), subscription("t")])
    talk.settle()
    finding = talk.the("R-17")
    assert finding.member_id == b.member_id
    assert "2 subscriptions" in finding.summary


def test_R_17_compares_topics_only(talk: Conversation) -> None:
    a, b = settled(talk)
    subscribes(talk, a, b, [subscription("t", user_data=bytes([index % 2])) for index in range(6)])
    assert talk.settled_rules() == []


def test_R_17_allows_a_subscription_that_grows(talk: Conversation) -> None:
    a, b = settled(talk)
    subscribes(talk, a, b, [subscription(*"abcdefgh"[:count]) for count in range(1, 8)])
    assert talk.settled_rules() == ["R-07"]


def test_R_17_allows_changes_over_hours(talk: Conversation) -> None:
    a, b = settled(talk)
    subscribes(talk, a, b, [subscription("x"), subscription("t")] * 3, every_ms=400_000)
    assert talk.rules() == ["T-04", "T-02"]


@pytest.mark.parametrize(("protocol_type", "raw"), [("connect", b"\x00\x01"), ("consumer", b"\xff")])
def test_R_17_does_not_judge_what_is_no_subscription(talk: Conversation, protocol_type: str, raw: bytes) -> None:
    _, b = settled(talk)
    for index in range(8):
        protocol = wire.JoinGroupRequestProtocol(name="range", metadata=raw + bytes([index % 2]))
        talk.refuse_join(talk.ask_join(b, protocol_type=protocol_type, protocols=(protocol,)), 27, b.member_id)
    assert "R-17" not in talk.settled_rules()


def test_R_17_resolves_when_the_member_leaves(talk: Conversation) -> None:
    a, b = settled(talk)
    subscribes(talk, a, b, [subscription("x"), subscription("t"), subscription("x"), subscription("t")])
    talk.leave(b)
    talk.wait(2_000)
    assert [finding.status for finding in talk.findings if finding.rule == "R-17"][-1] is Status.RESOLVED

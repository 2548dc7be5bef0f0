"""Family R and others: what changes the world of a group: topics, and connections on which members wait."""

from __future__ import annotations

from typing import Any

from coordinator_model import wire
from coordinator_model.finding import Blame, Certainty, Severity, Status
from tests.coordinator_model.classic import complete, live, settled
from tests.coordinator_model.conversation import Client, Conversation, subscription
from tests.coordinator_model.rules.loops import told_to_rejoin


def subscribed(*topics: str) -> tuple[wire.JoinGroupRequestProtocol, ...]:
    return (wire.JoinGroupRequestProtocol(name="range", metadata=subscription(*topics)),)


def joins_again(talk: Conversation, client: Client, leader: Client, **fields: Any) -> None:
    """A follower asks to join with what it had, and is answered at once."""
    talk.joined(talk.ask_join(client, **fields), generation=client.generation, leader=leader, roster=[])
    talk.call(client, talk.sync_request(client, []), talk.synced())


def test_R_29_warns_of_a_member_that_joins_again_with_nothing_changed(talk: Conversation) -> None:
    a, b = settled(talk)
    for _ in range(2):
        joins_again(talk, b, a)
        live(talk, [a, b], 20)
    assert talk.rules() == []
    joins_again(talk, b, a)
    talk.settle()
    finding = talk.the("R-29")
    assert (finding.severity, finding.certainty, finding.blame) == (Severity.WARNING, Certainty.HEURISTIC, Blame.CLIENT)
    assert finding.member_id == b.member_id
    assert "joined group g again 3 times since " in finding.summary
    assert (
        "with nothing changed: it gave up its partitions each time, got the same in generation 3, and read nothing for"
        in finding.summary
    )


def test_R_29_counts_the_time_in_which_the_member_waits_for_its_commit_before_it_joins(talk: Conversation) -> None:
    """As librdkafka 0.11 does with what it gives up: the answer waits behind a Fetch on the same connection."""
    a, b = settled(talk)
    for offset in range(4):
        asked = talk.ask(b, talk.commit_request(b, {0: offset}))
        talk.wait(2_500)
        talk.answer(asked, talk.committed({0: 0}))
        joins_again(talk, b, a)
        talk.commit_offsets(b, {0: offset})
        live(talk, [a, b], 20)
    finding = talk.the("R-29")
    assert "and read nothing for up to 2.5 s each time. Cost so far: 10." in finding.summary


def test_R_29_does_not_say_of_a_member_that_keeps_its_partitions_that_it_stops(talk: Conversation) -> None:
    a, b = settled(talk)
    owned = (wire.ConsumerProtocolSubscriptionTopicPartition(topic="t", partitions=(1,)),)
    metadata = wire.encode_subscription(wire.ConsumerProtocolSubscription(topics=("t",), owned_partitions=owned), version=1)
    for _ in range(3):
        joins_again(talk, b, a, protocols=(wire.JoinGroupRequestProtocol(name="cooperative-sticky", metadata=metadata),))
        live(talk, [a, b], 20)
    assert talk.the("R-29").summary.endswith(", with nothing changed, and got the same in generation 3.")


def test_R_29_is_resolved_when_the_member_stays(talk: Conversation) -> None:
    a, b = settled(talk)
    for _ in range(3):
        joins_again(talk, b, a)
        live(talk, [a, b], 10)
    live(talk, [a, b], 310)
    assert talk.the("R-29").status is Status.RESOLVED


def test_R_29_is_quiet_about_a_member_that_is_asked_to_rejoin_or_repeats_a_request(talk: Conversation) -> None:
    a, b = settled(talk)
    for generation in range(4, 8):
        told_to_rejoin(talk, [a, b])
        talk.round([a, b], generation)
        joins_again(talk, b, a)
        joins_again(talk, b, a)
        live(talk, [a, b], 80)
    assert "R-29" not in talk.rules()


def test_R_06_names_the_new_topics_that_a_pattern_matches(talk: Conversation) -> None:
    a, b = settled(talk)
    topics = ["t"]
    for number in range(12):
        if number % 2 == 0:
            topics.append(f"tenant-{number}")
        first, second = (a, b) if number % 2 else (b, a)
        asked = [talk.ask_join(first, protocols=subscribed(*topics))]
        told_to_rejoin(talk, [second])
        asked.append(talk.ask_join(second, protocols=subscribed(*topics)))
        complete(talk, sorted(asked, key=lambda one: one.client is not a), 4 + number, a, [a, b])
        talk.sync_all([a, b])
        live(talk, [a, b], 5)
    finding = talk.the("R-06")
    assert "new topics that their pattern matches (tenant-0, tenant-2, tenant-4, tenant-6 and " in finding.summary
    assert "each member joins again with one more topic, at its own refresh of metadata" in finding.summary
    assert " started " not in finding.observed.partition("started by")[2]
    assert "group.protocol=consumer" in finding.action


def test_T_10_names_connections_that_are_closed_while_members_wait(talk: Conversation) -> None:
    """connections.max.idle.ms is below max.poll.interval.ms: a known member gives its own JoinGroup up, in one join phase."""
    a, b = settled(talk)
    talk.heartbeat(b, 27)
    for _ in range(4):
        talk.ask_join(b)
        talk.wait(4_100)
        talk.heartbeat(a, 27)
        talk.close(b)
        b = b.reconnected()
    talk.ask_join(b)
    talk.settle()
    finding = talk.the("T-10")
    assert "give up their JoinGroups after 4.1 s, while a join phase may last 20.0 s" in finding.summary
    assert "connections.max.idle.ms, or a request timeout, is below their max.poll.interval.ms" in finding.summary
    assert "ghost" not in finding.summary
    assert "connections.max.idle.ms" in finding.action


def test_O_09_names_the_topic_that_was_deleted(talk: Conversation) -> None:
    a, _ = settled(talk)
    for _ in range(2):
        talk.commit_offsets(a, {0: 1, 1: 1}, {0: 3, 1: 3})
    talk.settle()
    finding = talk.the("O-09")
    assert (
        "cannot save its progress in t-0, t-1 of group g: its commits of them are refused with UNKNOWN_TOPIC_OR_PARTITION, since the topic was "
        "deleted, or made anew." in finding.summary
    )
    assert "Ask who deleted the topic." in finding.action

"""The raw client does exactly what it is told, and a real coordinator understands it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka import Consumer

from coordinator_model.wire import HeartbeatRequest, HeartbeatResponse, JoinGroupResponse, decode_assignment
from coordinator_model.wire.constants import ILLEGAL_GENERATION, MEMBER_ID_REQUIRED, NONE, REBALANCE_IN_PROGRESS, UNKNOWN_MEMBER_ID
from streaming.demo.broker import free_port
from streaming.demo.raw_client import Connection, RawClientError, RawMember, find_coordinator, share

pytestmark = pytest.mark.real

TOPIC = "raw-client-records"
PARTITIONS = 3


@pytest.fixture(scope="module", autouse=True)
def _topic(broker):
    broker.create_topic(TOPIC, PARTITIONS)


@pytest.fixture
def member(broker, request):
    """Makes members of a group of the test's own; their connections are closed at the end."""
    made = []

    def make(client_id, **options):
        coordinator = find_coordinator(broker.address(), request.node.name, client_id=client_id)
        connection = Connection(coordinator, client_id=client_id)
        made.append(connection)
        timeouts = {"session_timeout_ms": 10_000, "rebalance_timeout_ms": 10_000, **options}
        return RawMember(connection=connection, group=request.node.name, topic=TOPIC, **timeouts)

    yield make
    for connection in made:
        connection.close()


def owned(assignment):
    return {partition for topic in decode_assignment(assignment).assigned_partitions for partition in topic.partitions}


def test_it_introduces_itself_and_hears_what_the_broker_knows(broker):
    with Connection(broker.address(), client_id="raw") as connection:
        known = {api.api_key: api.max_version for api in connection.introduce().api_keys}
        assert known[11] >= 9
        assert connection.local_port > 0


def test_the_whole_life_of_a_member(member):
    warm_up = member("warm-up")
    warm_up.enter()  # waits until the coordinator has loaded
    warm_up.leave()
    raw = member("raw")
    first = raw.join()
    assert (first.error_code, raw.member_id[:4]) == (MEMBER_ID_REQUIRED, "raw-")
    joined = raw.enter()
    assert (joined.generation, joined.leader, joined.members) == (3, raw.member_id, (raw.member_id,))
    synced = raw.sync(share(TOPIC, PARTITIONS, joined.members))
    assert owned(synced.assignment) == {0, 1, 2}
    assert raw.heartbeat() == NONE
    assert raw.commit(0, 17) == NONE
    assert raw.heartbeat(generation=7) == ILLEGAL_GENERATION
    assert raw.commit(0, 17, generation=7) == ILLEGAL_GENERATION
    assert raw.leave() == NONE
    assert raw.heartbeat() == UNKNOWN_MEMBER_ID


def test_nothing_is_done_unasked(member):
    """Told to rejoin, it does not; its old generation is still its generation."""
    raw, other = member("raw"), member("other")
    raw.enter()
    raw.sync(share(TOPIC, PARTITIONS, [raw.member_id]))
    with ThreadPoolExecutor(1) as background:
        entering = background.submit(other.enter)
        told = threading.Event()
        while raw.heartbeat() != REBALANCE_IN_PROGRESS:
            assert not told.wait(0.05)
        assert [raw.heartbeat() for _ in range(3)] == [REBALANCE_IN_PROGRESS] * 3
        assert raw.generation == 1
        assert not entering.done()
        rejoined = raw.enter()
        assert rejoined.generation == entering.result(30).generation == 2
    leader, follower = (raw, other) if rejoined.members else (other, raw)
    members = rejoined.members or (leader.member_id, follower.member_id)
    with ThreadPoolExecutor(1) as background:
        waiting = background.submit(follower.sync)
        ours = owned(leader.sync(share(TOPIC, PARTITIONS, members)).assignment)
        theirs = owned(waiting.result(30).assignment)
    assert ours | theirs == {0, 1, 2}
    assert not ours & theirs
    assert raw.as_of(1).heartbeat() == ILLEGAL_GENERATION


def test_an_ordinary_consumer_takes_its_assignment(broker, member):
    raw = member("raw")
    raw.enter()
    raw.sync(share(TOPIC, PARTITIONS, [raw.member_id]))
    consumer = Consumer(
        {
            "bootstrap.servers": broker.address(),
            "group.id": raw.group,
            "partition.assignment.strategy": "range",
            "session.timeout.ms": 10_000,
            "max.poll.interval.ms": 10_000,
        }
    )
    try:
        assigned = []
        consumer.subscribe(
            [TOPIC], on_assign=lambda _, partitions: assigned.extend(partition.partition for partition in partitions)
        )
        pause = threading.Event()
        while raw.heartbeat() != REBALANCE_IN_PROGRESS:
            consumer.poll(0)
            assert not pause.wait(0.05)
        joined = raw.enter()
        assert len(joined.members) == 2
        ours = owned(raw.sync(share(TOPIC, PARTITIONS, joined.members)).assignment)
        while not assigned:
            consumer.poll(0.1)
        assert set(assigned) | ours == {0, 1, 2}
        assert not set(assigned) & ours
    finally:
        consumer.close()


def test_a_static_member_is_fenced_by_the_next_one(member):
    first, second = member("first", instance_id="i"), member("second", instance_id="i")
    first.enter()
    first.sync(share(TOPIC, PARTITIONS, [first.member_id]))
    second.enter()
    assert first.heartbeat() == 82
    assert second.heartbeat() == NONE


def test_a_request_can_be_left_waiting_on_one_connection_while_another_heartbeats(broker, member):
    raw, other = member("raw"), member("other")
    raw.enter()
    raw.sync(share(TOPIC, PARTITIONS, [raw.member_id]))
    other.join()  # for an id
    parked = other.connection.send(other.join_request())
    with pytest.raises(RawClientError, match="does not answer"):
        other.connection.receive(parked, JoinGroupResponse, timeout_s=0.2)
    with Connection(broker.address(), client_id="raw") as second:
        beat = HeartbeatRequest(group_id=raw.group, generation_id=1, member_id=raw.member_id)
        assert second.ask(beat, HeartbeatResponse).error_code == REBALANCE_IN_PROGRESS
    raw.leave()
    assert other.connection.receive(parked, JoinGroupResponse, timeout_s=30).generation_id == 2


def test_an_address_without_a_broker_is_named():
    port = free_port()
    with pytest.raises(RawClientError, match=f"cannot connect to 127.0.0.1:{port}"):
        Connection(f"127.0.0.1:{port}", client_id="raw")


def test_a_version_that_cannot_say_it_is_refused_before_anything_is_sent(member):
    raw = member("raw", instance_id="i")
    with pytest.raises(ValueError, match="group_instance_id"):
        raw.connection.send(raw.join_request(), api_version=4)
    assert raw.connection.introduce().error_code == NONE

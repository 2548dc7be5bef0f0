"""The faulty proxy falsifies the answers that its rules select, and forwards everything else byte for byte."""

from __future__ import annotations

import socket
import struct
import threading
import time
from dataclasses import replace

import pytest
from confluent_kafka import Consumer, Producer

from coordinator_model.wire import HeartbeatRequest, HeartbeatResponse
from coordinator_model.wire.constants import ILLEGAL_GENERATION, NONE
from streaming.demo.broker import HOST, Broker, free_port
from streaming.demo.faulty_proxy import Forge, HostileProxy, Swallow, Tamper, success_for
from streaming.demo.raw_client import Connection, RawClientError, RawMember, find_coordinator, share
from tests.real.harness import wait_for

pytestmark = pytest.mark.real

TOPIC = "records"
HEARTBEATS = frozenset({HeartbeatRequest.API_KEY})


class Liar:
    """A proxy whose rules a test may choose."""

    def __init__(self):
        self.lie = lambda _exchange: None

    def tamper(self):
        return Tamper("as the test says", HEARTBEATS, self._ask)

    def _ask(self, exchange):
        return self.lie(exchange)


@pytest.fixture(scope="module")
def liar():
    return Liar()


@pytest.fixture(scope="module")
def proxied(liar):
    """The address of a proxy that the broker advertises, and the proxy."""
    address = f"{HOST}:{free_port()}"
    with Broker(advertised={"PLAINTEXT": address}) as broker:
        tampers = [liar.tamper(), success_for("lied-to", ILLEGAL_GENERATION)]
        with HostileProxy(listen=address, broker=broker.address(), tampers=tampers) as proxy:
            broker.create_topic(TOPIC, 2)
            yield address, proxy


@pytest.fixture
def member(proxied, request):
    made = []

    def make(group):
        coordinator = find_coordinator(proxied[0], group, client_id="raw")
        assert coordinator == proxied[0]
        made.append(Connection(coordinator, client_id="raw"))
        raw = RawMember(connection=made[-1], group=group, topic=TOPIC, session_timeout_ms=10_000, rebalance_timeout_ms=10_000)
        raw.enter()
        raw.sync(share(TOPIC, 2, [raw.member_id]))
        return raw

    yield make
    for connection in made:
        connection.close()


@pytest.fixture(autouse=True)
def _honest_afterwards(liar):
    yield
    liar.lie = lambda _exchange: None


def test_refusals_of_one_group_become_success_and_are_kept_as_truth(member, proxied):
    lied_to, told_the_truth = member("lied-to"), member("told-the-truth")
    before = len(proxied[1].lies)
    assert told_the_truth.heartbeat(generation=9) == ILLEGAL_GENERATION
    assert told_the_truth.commit(0, 1, generation=9) == ILLEGAL_GENERATION
    assert lied_to.heartbeat() == NONE
    assert proxied[1].lies[before:] == []
    started_us = time.time_ns() // 1000
    assert lied_to.heartbeat(generation=9) == NONE
    assert lied_to.commit(1, 1, generation=9) == NONE
    heartbeat, commit = proxied[1].lies[before:]
    assert heartbeat.exchange.response.error_code == ILLEGAL_GENERATION
    assert heartbeat.exchange.request.member_id == lied_to.member_id
    assert heartbeat.exchange.client_id == "raw"
    assert commit.exchange.request.generation_id_or_member_epoch == 9
    assert started_us <= heartbeat.at_us <= commit.at_us <= time.time_ns() // 1000


def test_any_answer_can_be_forged(member, liar):
    raw = member("forged")
    liar.lie = lambda exchange: Forge(replace(exchange.response, error_code=16)) if exchange.request.group_id == "forged" else None
    assert raw.heartbeat() == 16


def test_a_swallowed_answer_never_comes_and_the_next_one_does(member, liar):
    raw = member("swallowed")
    liar.lie = lambda _exchange: Swallow()
    request = HeartbeatRequest(group_id=raw.group, generation_id=1, member_id=raw.member_id)
    lost = raw.connection.send(request)
    with pytest.raises(RawClientError, match="does not answer"):
        raw.connection.receive(lost, HeartbeatResponse, timeout_s=0.5)
    liar.lie = lambda _exchange: None
    assert raw.heartbeat() == NONE


def test_a_delayed_answer_comes_late_and_unchanged(member, liar):
    raw = member("delayed")
    liar.lie = lambda _exchange: Forge(None, delay_s=0.7)
    request = HeartbeatRequest(group_id=raw.group, generation_id=1, member_id=raw.member_id)
    waiting = raw.connection.send(request)
    with pytest.raises(RawClientError, match="does not answer"):
        raw.connection.receive(waiting, HeartbeatResponse, timeout_s=0.2)
    assert raw.connection.receive(waiting, HeartbeatResponse, timeout_s=30).error_code == NONE


def test_real_clients_work_through_it(proxied):
    address, _ = proxied
    producer = Producer({"bootstrap.servers": address})
    payloads = [bytes([number]) * 300_000 for number in range(10)]
    for payload in payloads:
        producer.produce(TOPIC, payload, partition=0)
    assert producer.flush(30) == 0
    consumer = Consumer({"bootstrap.servers": address, "group.id": "real", "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe([TOPIC])
        received = []
        wait_for(lambda: received.extend(consumer.consume(10, 0.5)) or len(received) == len(payloads), "all records")
        assert [message.value() for message in received] == payloads
    finally:
        consumer.close()


class Recorder:
    """A server that answers each frame with the bytes of a list, whatever was asked."""

    def __init__(self, answers):
        self.received = bytearray()
        self._answers = list(answers)
        self._server = socket.create_server((HOST, 0))
        self.address = "{}:{}".format(*self._server.getsockname())
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self):
        connection, _ = self._server.accept()
        with connection, connection.makefile("rb") as stream:
            for answer in self._answers:
                size = stream.read(4)
                if len(size) < 4:
                    return
                self.received += size + stream.read(struct.unpack(">i", size)[0])
                connection.sendall(answer)

    def close(self):
        self._server.close()
        self._thread.join(5)


def frame(payload):
    return struct.pack(">i", len(payload)) + payload


@pytest.mark.parametrize(
    ("request_payload", "answer_payload"),
    [
        (struct.pack(">hhi", 12, 4, 5) + b"no heartbeat", struct.pack(">i", 5) + b"no answer"),  # looked at, cannot be decoded
        (struct.pack(">hhi", 12, 999, 5) + b"later version", struct.pack(">i", 5) + b"?"),
        (struct.pack(">hhi", 1, 17, 5) + b"x" * 200_000, struct.pack(">i", 5) + bytes(range(256)) * 4000),  # never looked at
        (b"tiny", b"xy"),
        (b"", b""),
    ],
)
def test_what_it_does_not_understand_passes_byte_for_byte(request_payload, answer_payload):
    broker = Recorder([frame(answer_payload)])
    address = f"{HOST}:{free_port()}"
    always = Tamper("always", HEARTBEATS, lambda _exchange: Swallow())
    try:
        with (
            HostileProxy(listen=address, broker=broker.address, tampers=[always]) as proxy,
            socket.create_connection((HOST, int(address.rpartition(":")[2])), timeout=20) as client,
            client.makefile("rb") as answers,
        ):
            client.sendall(frame(request_payload))
            assert answers.read(len(frame(answer_payload))) == frame(answer_payload)
            assert bytes(broker.received) == frame(request_payload)
            assert proxy.lies == []
    finally:
        broker.close()


def test_a_taken_address_is_told():
    with socket.create_server((HOST, 0)) as taken:
        address = "{}:{}".format(*taken.getsockname())
        with pytest.raises(OSError, match="address already in use"), HostileProxy(listen=address, broker=address, tampers=[]):
            pass

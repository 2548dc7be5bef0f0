"""Connections that fail: what packets show of them, and how often it is written."""

from __future__ import annotations

import pytest

from coordinator_model.wire.record import Kind, MirrorRecord, RecordError, Unreached, pack_topics, unpack_unreached
from streaming.mirror.failed_connections import FailedConnections
from streaming.mirror.pcap.attempts import Attempts
from streaming.mirror.pcap.segments import ACK, RST, SYN

BROKER = ("10.0.0.9", 9092)
HOST = "10.0.0.1"
SECOND = 1_000_000


class Wire:
    """Segments between a host and a broker, and the records of connections that fail."""

    def __init__(self, ports: tuple[int, ...] = ()) -> None:
        self.records: list[MirrorRecord] = []
        self.attempts = Attempts(FailedConnections(self.records.append, cluster="c1"), ports)

    def client(self, flags: int, at_us: int, port: int = 40_000) -> None:
        self._segment((HOST, port), BROKER, flags, at_us)

    def broker(self, flags: int, at_us: int, port: int = 40_000) -> None:
        self._segment(BROKER, (HOST, port), flags, at_us)

    def _segment(self, sender: tuple[str, int], receiver: tuple[str, int], flags: int, at_us: int) -> None:
        addresses = b"".join(bytes(map(int, host.split("."))) for host, _ in (sender, receiver))
        ports = b"".join(port.to_bytes(2, "big") for _, port in (sender, receiver))
        self.attempts.segment((addresses + ports, 0, 0, flags, b"", 0), at_us)

    def written(self) -> list[tuple[str, str, Unreached]]:
        return [(record.broker, record.client_address, unpack_unreached(record.frame)) for record in self.records]


def test_a_connection_that_is_reset_at_once_is_refused() -> None:
    wire = Wire()
    wire.client(SYN, SECOND)
    wire.broker(RST | ACK, SECOND + 10)
    assert wire.written() == [("10.0.0.9:9092", HOST, Unreached(1, 0, SECOND + 10))]
    assert [(record.kind, record.group, record.cluster) for record in wire.records] == [(Kind.UNREACHED, None, "c1")]


def test_a_connection_that_is_repeated_counts_once_as_not_answered() -> None:
    wire = Wire()
    for second in (1, 2, 4, 8):
        wire.client(SYN, second * SECOND)
    assert wire.written() == [("10.0.0.9:9092", HOST, Unreached(0, 1, 2 * SECOND))]


def test_a_connection_that_was_open_is_not_refused_when_it_is_reset() -> None:
    wire = Wire()
    wire.client(SYN, SECOND)
    wire.broker(SYN | ACK, SECOND + 10)
    wire.broker(RST, 2 * SECOND)
    assert wire.written() == []


def test_other_ports_than_the_brokers_are_no_matter() -> None:
    wire = Wire(ports=(9_093,))
    wire.client(SYN, SECOND)
    wire.broker(RST | ACK, SECOND + 10)
    assert wire.written() == []


def test_many_that_fail_are_written_every_five_seconds() -> None:
    wire = Wire()
    for number in range(12):
        wire.client(SYN, number * SECOND, 40_000 + number)
        wire.broker(RST | ACK, number * SECOND, 40_000 + number)
    assert [failed for *_, failed in wire.written()] == [Unreached(1, 0, 0), Unreached(5, 0, SECOND), Unreached(5, 0, 6 * SECOND)]


def test_a_value_that_is_something_else_is_refused() -> None:
    with pytest.raises(RecordError, match="value of an unreached record is not a map of refused, unanswered, from_us"):
        unpack_unreached(pack_topics({"t": 3}))


def test_what_was_not_written_of_an_earlier_outage_does_not_begin_the_next_one() -> None:
    """One failed connection was left of the outage before, and two minutes of silence counted as failing."""
    records: list[MirrorRecord] = []
    failed = FailedConnections(records.append, cluster="c1")
    for at_s in (0, 1, 121, 122, 127):
        failed.failed("10.0.0.9:9092", HOST, at_s * SECOND, refused=True)
    assert [unpack_unreached(record.frame) for record in records] == [
        Unreached(1, 0, 0),
        Unreached(1, 0, 121 * SECOND),
        Unreached(2, 0, 122 * SECOND),
    ]

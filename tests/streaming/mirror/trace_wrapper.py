"""Envoy's ``TraceWrapper`` as the protobuf library writes it: fields of envoy/data/tap/v3 and envoy/config/core/v3/address.proto."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory, timestamp_pb2

from tests.streaming.mirror.wires import ACK, CLIENT, FIN, SYN, Segment

KINDS = {"uint64": 4, "uint32": 13, "int64": 3, "int32": 5, "bool": 8, "string": 9, "bytes": 12}
MESSAGES = {
    "SocketAddress": "string address 2, uint32 port_value 3",
    "Address": "SocketAddress socket_address 1",
    "Connection": "Address local_address 1, Address remote_address 2",
    "Body": "bytes as_bytes 1, string as_string 2, bool truncated 3",
    "Io": "Body data 1, bool end_stream 2",
    "Closed": "",
    "SocketEvent": "Timestamp timestamp 1, Io read 2, Io write 3, Closed closed 4, Connection connection 5, uint64 seq_num 6",
    "SocketBufferedTrace": "uint64 trace_id 1, Connection connection 2, SocketEvent* events 3, bool read_truncated 4",
    "SocketEvents": "SocketEvent* events 1",
    "SocketStreamedTraceSegment": "uint64 trace_id 1, Connection connection 2, SocketEvent event 3, SocketEvents events 4",
    "TraceWrapper": "SocketBufferedTrace socket_buffered_trace 3, SocketStreamedTraceSegment socket_streamed_trace_segment 4",
}


def _classes() -> dict[str, Any]:
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    file = descriptor_pb2.FileDescriptorProto(name="taps.proto", package="taps", syntax="proto3")
    file.dependency.append(timestamp_pb2.DESCRIPTOR.name)
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for kind, field, number in (one.split() for one in fields.split(", ") if one):
            added = message.field.add(name=field, number=int(number), label=3 if kind.endswith("*") else 1)
            added.type = KINDS.get(kind, 11)
            if kind not in KINDS:
                package = "google.protobuf" if kind == "Timestamp" else "taps"
                added.type_name = f".{package}.{kind.removesuffix('*')}"
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"taps.{name}")) for name in MESSAGES}


TraceWrapper = _classes()["TraceWrapper"]


def delimited(messages: Iterable[Any]) -> bytes:
    """PROTO_BINARY_LENGTH_DELIMITED."""
    return b"".join(_varint(message.ByteSize()) + message.SerializeToString() for message in messages)


def binary(messages: Iterable[Any]) -> bytes:
    """PROTO_BINARY."""
    return b"".join(message.SerializeToString() for message in messages)


def as_json(messages: Iterable[Any]) -> bytes:
    """JSON_BODY_AS_BYTES."""
    return b"".join(
        json_format.MessageToJson(message, preserving_proto_field_name=True, indent=1).encode() + b"\n" for message in messages
    )


def _varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


class Connections:
    """What Envoy tells of connections whose packets are given: it stands at the broker's address."""

    def __init__(self, segments: Iterable[Segment], *, limit: int = 1 << 24, counts: bool = True) -> None:
        self._limit = limit
        self._counts = counts
        self.traces: dict[int, list[Any]] = {}  #: number of a connection → its events
        self.ends: dict[int, tuple[tuple[str, int], tuple[str, int]]] = {}
        self.in_order: list[tuple[int, Any]] = []
        numbers: dict[tuple, int] = {}
        told: dict[int, int] = {}
        for segment in segments:
            client, envoy = sorted((segment.source, segment.destination), key=lambda end: end[1] < CLIENT[1])
            if segment.flags & (SYN | ACK) == SYN:
                numbers[client, envoy] = len(numbers)
            number = numbers[client, envoy]
            self.ends[number] = client, envoy
            if segment.payload or (segment.flags & FIN and segment.source == client):
                event = self._event(segment, is_client=segment.source == client, seq_num=told.get(number, 1))
                told[number] = told.get(number, 1) + len(segment.payload)
                self.traces.setdefault(number, []).append(event)
                self.in_order.append((number, event))

    def _event(self, segment: Segment, *, is_client: bool, seq_num: int) -> Any:
        event = TraceWrapper().socket_streamed_trace_segment.event
        event.timestamp.seconds, micros = divmod(segment.at_us, 1_000_000)
        event.timestamp.nanos = micros * 1000 + 999
        if self._counts:
            event.seq_num = seq_num
        if not segment.payload:
            event.closed.SetInParent()
            return event
        body = (event.read if is_client else event.write).data
        body.as_bytes = segment.payload[: self._limit]
        body.truncated = len(segment.payload) > self._limit
        return event

    def streamed(self, *numbers: int) -> Iterator[Any]:
        """A message for each event, of all connections or of some."""
        begun = set()
        for number, event in self.in_order:
            if numbers and number not in numbers:
                continue
            if number not in begun:
                begun.add(number)
                yield self._segment(number, lambda into, number=number: self._connect(into.connection, number))
            yield self._segment(number, lambda into, event=event: into.event.CopyFrom(event))

    def buffered(self, number: int) -> Any:
        """A message for a whole connection."""
        wrapper = TraceWrapper()
        trace = wrapper.socket_buffered_trace
        trace.trace_id = number
        self._connect(trace.connection, number)
        for event in self.traces[number]:
            if not event.HasField("closed"):
                trace.events.add().CopyFrom(event)
        return wrapper

    def _segment(self, number: int, fill: Any) -> Any:
        wrapper = TraceWrapper()
        segment = wrapper.socket_streamed_trace_segment
        segment.trace_id = number
        fill(segment)
        return wrapper

    def _connect(self, connection: Any, number: int) -> None:
        client, envoy = self.ends[number]
        for address, (host, port) in ((connection.remote_address, client), (connection.local_address, envoy)):
            address.socket_address.address, address.socket_address.port_value = host, port

"""A connection between a client and a broker, and what is mirrored of it."""

from __future__ import annotations

from coordinator_model import wire
from streaming.mirror.conversation import Conversation
from tests.streaming.mirror.wires import sized

PRODUCE, METADATA, SASL_HANDSHAKE, SASL_AUTHENTICATE = 0, 3, 17, 36


def other_request(key: int, version: int, correlation_id: int, body: bytes = b"") -> bytes:
    """A request of an API that is not mirrored."""
    return sized(
        key.to_bytes(2, "big") + version.to_bytes(2, "big") + correlation_id.to_bytes(4, "big", signed=True) + b"\0\1c" + body
    )


class Talk:
    """A conversation, what it wrote, and a clock that moves by one microsecond a portion."""

    def __init__(self, **options) -> None:
        self.records = []
        self.opaque = []
        self.now_us = 1_000
        self.conversation = Conversation(
            self.records.append,
            cluster="c1",
            broker="b:9092",
            connection="x-1",
            client_address="10.0.0.7",
            at_us=self.now_us,
            on_opaque=self.opaque.append,
            **options,
        )

    def client(self, data: bytes) -> None:
        self.now_us += 1
        self.conversation.client_sent(data, self.now_us)

    def broker(self, data: bytes) -> None:
        self.now_us += 1
        self.conversation.broker_sent(data, self.now_us)

    def close(self) -> None:
        self.now_us += 1
        self.conversation.closed(self.now_us)

    def request(self, body, version: int, correlation_id: int, client_id: str | None = "app-1") -> bytes:
        frame = wire.encode_request(body, api_version=version, correlation_id=correlation_id, client_id=client_id)
        self.client(sized(frame))
        return frame

    def response(self, body, version: int, correlation_id: int) -> bytes:
        frame = wire.encode_response(body, api_version=version, correlation_id=correlation_id)
        self.broker(sized(frame))
        return frame

    def exchange(self, correlation_id: int, group: str = "g") -> None:
        self.request(heartbeat(group), 4, correlation_id)
        self.response(wire.HeartbeatResponse(), 4, correlation_id)

    def api_versions(self, correlation_id: int = 0) -> None:
        self.request(wire.ApiVersionsRequest(client_software_name="lib", client_software_version="1.2"), 3, correlation_id)
        self.response(wire.ApiVersionsResponse(), 3, correlation_id)

    def told(self) -> list[tuple]:
        return [(record.group, record.kind.value, record.exchange) for record in self.records]


def heartbeat(group: str = "g"):
    return wire.HeartbeatRequest(group_id=group, generation_id=3, member_id="m-1")

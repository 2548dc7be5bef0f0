"""The protocols inside JoinGroup metadata and SyncGroup assignments: consumer, Connect, and Kafka Streams in the consumer protocol's
user data.

Only clients interpret these bytes. The coordinator passes them on unread, so they need not be well-formed, and client libraries fill
them differently: old kafkajs and kafka-go write version 1 before the fields of version 0. What ``read_…`` returns is therefore what there
is, and ``decode_…`` is for bytes that must be exact. A DecodeError here indicates a client's fault, not the capture's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from coordinator_model.wire.compiler import Decoder, compile_body, explain
from coordinator_model.wire.encoder import encode_embedded
from coordinator_model.wire.errors import DecodeError
from coordinator_model.wire.layouts import LAYOUTS
from coordinator_model.wire.messages import (
    ConnectAssignment,
    ConnectWorkerState,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    StreamsAssignmentInfo,
    StreamsSubscriptionInfo,
)
from coordinator_model.wire.runtime import OVERRUN

if TYPE_CHECKING:
    from coordinator_model.wire.message import Struct

CONSUMER: Final = "consumer"
CONNECT: Final = "connect"
STREAMS_ASSIGNOR: Final = "stream"
"""Protocol *name* of the Streams assignor, in groups of protocol type ``consumer``."""


class Readable(NamedTuple):
    """What can be read of embedded bytes."""

    body: Any
    version: int  #: whose fields the bytes have; that before them may be later


class _Protocol:
    """The decoders of one embedded message by version, compiled on first use."""

    def __init__(self, name: str, *, version_bytes: int, whole: bool) -> None:
        self._layout = LAYOUTS[name]
        self._version_bytes = version_bytes
        self._begin = 0 if self._layout.structs[name][0].name == "version" else version_bytes
        self._whole = whole
        self._decoders: dict[tuple[int, bool], Decoder] = {}

    def decode(self, raw: bytes) -> Any:
        raw = raw if type(raw) is bytes else bytes(raw)
        layout, size = self._layout, self._version_bytes
        if len(raw) < size:
            raise DecodeError(layout.name, None, "version", 0, OVERRUN)
        version = self._version_of(raw)
        if version < layout.versions.first:
            raise DecodeError(layout.name, version, "version", 0, f"is below {layout.versions.first}")
        known = min(version, layout.versions.last)
        try:
            return self._decoder(known, whole=self._whole and known == version)(raw)
        except Exception as error:  # whatever generated code raises on bad bytes
            raise explain(error, raw) from None

    def read(self, raw: bytes) -> Readable | None:
        """Read the fields of the latest version that the bytes have, None if not even those of the first."""
        versions = self._layout.versions
        for known in range(min(self._version_of(raw), versions.last), versions.first - 1, -1):
            try:
                body = self._decoder(known, whole=False)(raw)
            except Exception:  # noqa: S112 - whatever generated code raises on bad bytes
                continue
            return Readable(body, known)
        return None

    def _version_of(self, raw: bytes) -> int:
        return int.from_bytes(raw[: self._version_bytes], "big", signed=True)

    def _decoder(self, known: int, *, whole: bool) -> Decoder:
        """Return a version's decoder. A later one than known is read as the latest known: versions have only added fields so far."""
        decoder = self._decoders.get((known, whole))
        if decoder is None:
            decoder = self._decoders[known, whole] = compile_body(self._layout, known, begin=self._begin, whole=whole)
        return decoder


_SUBSCRIPTION: Final = _Protocol("ConsumerProtocolSubscription", version_bytes=2, whole=True)
_ASSIGNMENT: Final = _Protocol("ConsumerProtocolAssignment", version_bytes=2, whole=True)
_WORKER_STATE: Final = _Protocol("ConnectWorkerState", version_bytes=2, whole=True)
_CONNECT_ASSIGNMENT: Final = _Protocol("ConnectAssignment", version_bytes=2, whole=True)
_STREAMS_SUBSCRIPTION: Final = _Protocol("StreamsSubscriptionInfo", version_bytes=4, whole=True)
_STREAMS_ASSIGNMENT: Final = _Protocol("StreamsAssignmentInfo", version_bytes=4, whole=False)


def decode_subscription(raw: bytes) -> ConsumerProtocolSubscription:
    """Decode a consumer's subscription: the metadata of a JoinGroup protocol in a group of protocol type ``consumer``.

    Versions 0 to 3 must end with their last field. Of later versions only the fields of v3 are read.

    :raises DecodeError: if the bytes are no subscription.
    """
    subscription: ConsumerProtocolSubscription = _SUBSCRIPTION.decode(raw)
    return subscription


def decode_assignment(raw: bytes) -> ConsumerProtocolAssignment:
    """Decode a consumer's assignment: what the leader sends in SyncGroup in a group of protocol type ``consumer``.

    Versions as for :func:`decode_subscription`. Empty bytes, which the coordinator sends to a member that the leader left out, are an
    error here; the caller must check for them.

    :raises DecodeError: if the bytes are no assignment.
    """
    assignment: ConsumerProtocolAssignment = _ASSIGNMENT.decode(raw)
    return assignment


def decode_connect_worker_state(raw: bytes) -> ConnectWorkerState:
    """Decode a Connect worker's metadata: v0 eager, v1 cooperative (KIP-415), v2 the same with session keys (KIP-507).

    ``allocation`` holds the worker's current assignment, for :func:`decode_connect_assignment`.

    :raises DecodeError: if the bytes are no worker state.
    """
    state: ConnectWorkerState = _WORKER_STATE.decode(raw)
    return state


def decode_connect_assignment(raw: bytes) -> ConnectAssignment:
    """Decode a Connect worker's assignment; versions as for :func:`decode_connect_worker_state`. Task -1 is the connector itself.

    :raises DecodeError: if the bytes are no assignment.
    """
    assignment: ConnectAssignment = _CONNECT_ASSIGNMENT.decode(raw)
    return assignment


def decode_streams_subscription(user_data: bytes) -> StreamsSubscriptionInfo:
    """Decode the user data of a subscription with the protocol name ``stream``, v1 to v11.

    :raises DecodeError: if the bytes are no such user data.
    """
    info: StreamsSubscriptionInfo = _STREAMS_SUBSCRIPTION.decode(user_data)
    return info


def decode_streams_assignment(user_data: bytes) -> StreamsAssignmentInfo:
    """Decode the versions in the user data of an assignment with the protocol name ``stream``. The tasks are not read.

    :raises DecodeError: if the bytes are no such user data.
    """
    info: StreamsAssignmentInfo = _STREAMS_ASSIGNMENT.decode(user_data)
    return info


_METADATA: Final = {CONSUMER: _SUBSCRIPTION, CONNECT: _WORKER_STATE}
_ASSIGNMENTS: Final = {CONSUMER: _ASSIGNMENT, CONNECT: _CONNECT_ASSIGNMENT}


def read_consumer_subscription(raw: bytes) -> ConsumerProtocolSubscription | None:
    """Read a consumer's subscription as far as it goes, None if not even its topics can be read.

    A field that is missing holds its default in each version that the bytes name, and bytes left over are ignored.
    """
    found = _SUBSCRIPTION.read(raw)
    return None if found is None else found.body


def read_consumer_assignment(raw: bytes) -> ConsumerProtocolAssignment | None:
    """Read a consumer's assignment as far as it goes, None if it cannot be read; empty bytes cannot."""
    found = _ASSIGNMENT.read(raw)
    return None if found is None else found.body


def read_metadata(protocol_type: str, raw: bytes) -> Readable | None:
    """Read a member's JoinGroup metadata as far as it goes, None if it cannot be read, or the protocol type is not known."""
    protocol = _METADATA.get(protocol_type)
    return protocol.read(raw) if protocol else None


def read_member_assignment(protocol_type: str, raw: bytes) -> Readable | None:
    """Read a member's SyncGroup assignment, like :func:`read_metadata`."""
    protocol = _ASSIGNMENTS.get(protocol_type)
    return protocol.read(raw) if protocol else None


def decode_metadata(protocol_type: str, raw: bytes) -> Struct | bytes:
    """Decode a member's JoinGroup metadata; return ``raw`` itself if the protocol type is not known.

    :raises DecodeError: if the bytes are not what members of that type send.
    """
    protocol = _METADATA.get(protocol_type)
    return protocol.decode(raw) if protocol else raw


def decode_member_assignment(protocol_type: str, raw: bytes) -> Struct | bytes:
    """Decode a member's SyncGroup assignment; return ``raw`` itself if the protocol type is not known.

    :raises DecodeError: if the bytes are not what leaders of that type send.
    """
    protocol = _ASSIGNMENTS.get(protocol_type)
    return protocol.decode(raw) if protocol else raw


def encode_subscription(subscription: ConsumerProtocolSubscription, version: int = 3) -> bytes:
    """Encode a subscription in one version.

    :raises ValueError: if the version is unknown, or cannot represent a field's value.
    """
    return encode_embedded(subscription, version)


def encode_assignment(assignment: ConsumerProtocolAssignment, version: int = 3) -> bytes:
    """Encode an assignment in one version.

    :raises ValueError: if the version is unknown, or cannot represent a field's value.
    """
    return encode_embedded(assignment, version)


def encode_connect_worker_state(state: ConnectWorkerState, version: int = 2) -> bytes:
    """Encode a Connect worker's metadata in one version.

    :raises ValueError: if the version is unknown, or cannot represent a field's value.
    """
    return encode_embedded(state, version)


def encode_connect_assignment(assignment: ConnectAssignment, version: int = 2) -> bytes:
    """Encode a Connect worker's assignment in one version.

    :raises ValueError: if the version is unknown, or cannot represent a field's value.
    """
    return encode_embedded(assignment, version)


def encode_streams_subscription(info: StreamsSubscriptionInfo) -> bytes:
    """Encode the user data of a Streams member's subscription, in the version that it contains.

    :raises ValueError: if the version is unknown, or cannot represent a field's value.
    """
    return encode_embedded(info, info.version)

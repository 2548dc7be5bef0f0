"""The protocols that travel inside JoinGroup metadata and SyncGroup assignments.

The trap: these bytes are the clients' affair. The coordinator passes them on unread, so nothing in them need be well-formed, and every
client library has its own way of filling them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from coordinator_model.wire.compiler import compile_body, explain
from coordinator_model.wire.encoder import encode_embedded
from coordinator_model.wire.errors import DecodeError
from coordinator_model.wire.layouts import LAYOUTS, Layout
from coordinator_model.wire.messages import ConsumerProtocolAssignment, ConsumerProtocolSubscription

if TYPE_CHECKING:
    from collections.abc import Callable

_SUBSCRIPTION: Final = LAYOUTS["ConsumerProtocolSubscription"]
_ASSIGNMENT: Final = LAYOUTS["ConsumerProtocolAssignment"]
_Decoders: TypeAlias = "dict[int, Callable[[bytes], Any]]"


def _compile_all(layout: Layout) -> _Decoders:
    decoders = {
        version: compile_body(layout, version, whole=True) for version in range(layout.versions.first, layout.versions.last + 1)
    }
    decoders[-1] = compile_body(layout, layout.versions.last, whole=False)  # a later version, of which we know the beginning
    return decoders


_SUBSCRIPTION_DECODERS: Final = _compile_all(_SUBSCRIPTION)
_ASSIGNMENT_DECODERS: Final = _compile_all(_ASSIGNMENT)


def decode_subscription(raw: bytes) -> ConsumerProtocolSubscription:
    """A consumer's subscription: the metadata of a JoinGroup protocol in a group of protocol type ``consumer``.

    Versions 0 to 3 are read to their last byte. Of later ones the part that v3 has is read: each version so far only added fields.

    :raises DecodeError: when the bytes are no subscription.
    """
    subscription: ConsumerProtocolSubscription = _decode(raw, _SUBSCRIPTION, _SUBSCRIPTION_DECODERS)
    return subscription


def decode_assignment(raw: bytes) -> ConsumerProtocolAssignment:
    """A consumer's assignment: what the leader sends in SyncGroup in a group of protocol type ``consumer``.

    Versions as for :func:`decode_subscription`. An assignment of no bytes at all, which the coordinator sends where the leader named none,
    is the caller's to notice.

    :raises DecodeError: when the bytes are no assignment.
    """
    assignment: ConsumerProtocolAssignment = _decode(raw, _ASSIGNMENT, _ASSIGNMENT_DECODERS)
    return assignment


def encode_subscription(subscription: ConsumerProtocolSubscription, version: int = _SUBSCRIPTION.versions.last) -> bytes:
    """The bytes of a subscription in one version.

    :raises ValueError: when the version is unknown or cannot say what a field holds.
    """
    return encode_embedded(subscription, version)


def encode_assignment(assignment: ConsumerProtocolAssignment, version: int = _ASSIGNMENT.versions.last) -> bytes:
    """The bytes of an assignment in one version.

    :raises ValueError: when the version is unknown or cannot say what a field holds.
    """
    return encode_embedded(assignment, version)


def _decode(raw: bytes, layout: Layout, decoders: _Decoders) -> Any:
    if type(raw) is not bytes:
        raw = bytes(raw)
    if len(raw) < 2:
        raise DecodeError(layout.name, None, "version", 0, "runs past the end")
    version = int.from_bytes(raw[:2], "big", signed=True)
    if version < 0:
        raise DecodeError(layout.name, version, "version", 0, "is negative")
    try:
        return (decoders.get(version) or decoders[-1])(raw)
    except Exception as error:  # whatever generated code raises on bad bytes
        raise explain(error, raw) from None

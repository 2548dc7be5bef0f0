"""What the answer to a heartbeat of a newer protocol (KIP-848, KIP-932, KIP-1071) tells of its group: that it is of that type.

The trap: only an answer that keeps the member in its group does. Any client may send such a heartbeat to any group, and is refused; and
after the last member of the newer protocol has left, a mixed group is a classic one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from coordinator_model.finding import Evidence
from coordinator_model.groups.records import ClientInfo
from coordinator_model.wire import API_NAMES, DecodeError, decode
from coordinator_model.wire.record import DecodedRecord, Kind, MirrorRecord


class Admission(NamedTuple):
    """A member was let into a group, or kept in it."""

    actor: ClientInfo
    member_id: str | None
    at_us: int
    frame: Evidence


def admission_of(record: MirrorRecord) -> Admission | None:
    """The admission that this answer is; None if it is a request, a refusal, the answer to a leave, or cannot be read."""
    if record.kind is not Kind.RESPONSE or record.cut_bytes:
        return None
    body: Any = record.body if type(record) is DecodedRecord else None
    if body is None:
        try:
            body = decode(record.frame, request=False, api_key=record.api_key, api_version=record.api_version).body
        except DecodeError:
            return None
    if body.error_code or body.member_epoch < 0:
        return None
    words = f"{API_NAMES[record.api_key]} v{record.api_version} answer: success, epoch {body.member_epoch}"
    frame = Evidence(record.partition, record.offset, record.connection, record.exchange, record.at_us, words)
    actor = ClientInfo(record.client_id, record.client_address, record.client_software, record.connection)
    return Admission(actor, body.member_id, record.at_us, frame)

"""The model's state as bytes: versioned, compact, and cheap to write again when little has changed.

A snapshot has two parts. The *slow* one holds what changes only when something happens to a group; neighbours share a block, whose slow
parts are compressed together, because groups resemble each other: a quarter of the bytes that each would take by itself. The *fast* one
holds what every heartbeat changes, as bare numbers. So steady traffic packs a few dozen bytes for each group that was heard of, and
neither packs nor compresses anything else.

The trap: a snapshot outlives the code that wrote it. Fields are stored by position, so they may only be appended, each new one with a
default; anything else needs a new format version and a reader for the old one.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from enum import Enum
from operator import attrgetter
from typing import Any, Final, NamedTuple

import msgpack

from coordinator_model.finding import Evidence
from coordinator_model.groups.classic.assignment_checks import AssignmentErrors, Subscription
from coordinator_model.groups.classic.broker_version import BrokerVersion
from coordinator_model.groups.classic.data import ConnectionState
from coordinator_model.groups.classic.group import ClassicGroup
from coordinator_model.groups.classic.state import State
from coordinator_model.groups.classic.trackers.assignments import Assignments
from coordinator_model.groups.classic.trackers.commits import Holding, SimpleCommit
from coordinator_model.groups.classic.trackers.coordinator_changes import CoordinatorChanges
from coordinator_model.groups.classic.trackers.coordinator_records import (
    CoordinatorTerm,
    ErrorStreak,
    FindCoordinatorAnswer,
    LostCoordinator,
    Persisted,
)
from coordinator_model.groups.classic.trackers.member_identity import MemberIdentity
from coordinator_model.groups.classic.trackers.offsets import Offsets
from coordinator_model.groups.classic.trackers.plans import Plan, Strange, Suspect
from coordinator_model.groups.classic.trackers.rebalance_causes import Rebalance, Starter
from coordinator_model.groups.classic.trackers.rebalance_history import RebalanceHistory
from coordinator_model.groups.classic.trackers.sessions import Left, Sessions
from coordinator_model.groups.records import (
    AbandonedRequest,
    Ahead,
    ClientInfo,
    CommitFacts,
    Exchange,
    Generation,
    IssuedId,
    JoinFacts,
    LeaveFacts,
    Member,
    Refusals,
    Skip,
    StaticMember,
    SuspectedRefusal,
    SyncFacts,
)
from coordinator_model.open_findings import OpenFinding, OpenFindings
from coordinator_model.wire import API_NAMES

FORMAT_VERSION: Final = 3


class SnapshotError(ValueError):
    """A snapshot cannot be read; the message says why."""


# Ext code → type. A code is never reused.
_TYPES: Final[dict[int, type[Any]]] = {
    1: Evidence,
    2: ClientInfo,
    3: JoinFacts,
    4: SyncFacts,
    5: LeaveFacts,
    6: Exchange,
    7: Refusals,
    8: Member,
    9: Generation,
    10: StaticMember,
    11: IssuedId,
    12: OpenFinding,
    13: MemberIdentity,
    14: SuspectedRefusal,
    15: Ahead,
    16: BrokerVersion,
    17: Skip,
    # One decade for each watch and the records that it keeps.
    20: Assignments,
    21: Plan,
    22: Subscription,
    23: AssignmentErrors,
    24: Suspect,
    25: Strange,
    30: Offsets,
    31: CommitFacts,
    32: Holding,
    33: SimpleCommit,
    40: CoordinatorChanges,
    41: ErrorStreak,
    42: CoordinatorTerm,
    43: Persisted,
    44: FindCoordinatorAnswer,
    45: LostCoordinator,
    50: RebalanceHistory,
    51: AbandonedRequest,
    52: Starter,
    53: Rebalance,
    54: Sessions,
    55: Left,
}
_CODES: Final = {type_: code for code, type_ in _TYPES.items()}
_FIELDS: Final[dict[type[Any], tuple[str, ...]]] = {
    type_: getattr(type_, "_fields", None) or tuple(field.name for field in fields(type_)) for type_ in _CODES
}


BLOCK_SIZE: Final = 16
"""Groups in a block: with more, one that changes makes more be compressed again; with fewer, they share less."""

# A record is an array whose first element is a marker, an ext type without content that tells the type. In format 1 it was an ext type
# around an array: that made a packer within a packer for each record, at twice the time.
_MARKERS: Final = {type_: msgpack.ExtType(code, b"") for type_, code in _CODES.items()}


def _values_of(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    read = attrgetter(*names)
    return read if len(names) > 1 else lambda value: (read(value),)


_READERS: Final = {type_: _values_of(names) for type_, names in _FIELDS.items()}


def _default(value: Any) -> Any:
    type_ = type(value)
    read = _READERS.get(type_)
    if read is not None:
        return [_MARKERS[type_], *read(value)]
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, Enum):
        return value.value
    raise TypeError(f"{type_.__name__} has no place in a snapshot")


def _ext_hook(code: int, content: bytes) -> Any:
    type_ = _TYPES.get(code)
    if type_ is None:
        raise SnapshotError(f"unknown record type {code}: the snapshot was written by a newer release")
    return _made(type_, _unpack(content)) if content else type_


def _list_hook(values: tuple[Any, ...]) -> Any:
    return _made(values[0], values[1:]) if values and type(values[0]) is type else values


def _made(type_: type[Any], values: Sequence[Any]) -> Any:
    if len(values) > len(_FIELDS[type_]):
        raise SnapshotError(f"{type_.__name__} has {len(values)} fields: the snapshot was written by a newer release")
    return type_(*values)


def _pack(value: Any) -> bytes:
    """Making a packer costs more than it does, for its buffer; one that is at work in another thread must not be used."""
    packer = _idle.pop() if _idle else msgpack.Packer(default=_default, strict_types=True)
    try:
        packed: bytes = packer.pack(value)
    finally:
        _idle.append(packer)
    return packed


_idle: Final[list[msgpack.Packer]] = []


def _unpack(packed: bytes) -> Any:
    return msgpack.unpackb(packed, ext_hook=_ext_hook, list_hook=_list_hook, use_list=False, strict_map_key=False)


# Attributes of a group that are stored as they are, in this order; the containers that need care follow them.
_PLAIN: Final = (
    "name", "cluster", "kind", "broker", "incarnation", "settled", "learning_because", "generation_seen", "state_since_us",
    "protocol_type", "instances", "issued", "causes", "join_took_us", "sync_took_us", "deleted_us",
    "assignments", "offsets", "coordinator_changes", "rebalance_history", "sessions",
    "member_identity", "unconnected_us", "errors", "joins", "syncs",
)  # fmt: skip

_read_plain = attrgetter(*_PLAIN)

# Times in the fast part are stored as the microseconds before the group's last record: half the bytes.
_read_fast = attrgetter("last_frame_us", "heartbeat_us", "proven_us", "heartbeat_interval_us", "last_frame")
_API_KEYS: Final = {name: key for key, name in API_NAMES.items()}


def pack_slow(group: ClassicGroup, open_findings: OpenFindings) -> bytes:
    """What of a group and its open findings changes only when something happens."""
    return _pack(
        [
            list(_read_plain(group)),
            group.state.value,
            list(group.members.values()),
            group.generations,
            list(open_findings.open.values()),
            list(group.connections),
        ]
    )


def pack_fast(group: ClassicGroup, due_us: int | None) -> bytes:
    """What of a group changes with every frame. Its members and connections stand in the order of :func:`pack_slow`.

    :param due_us: when time is to act on the group next.
    """
    base_us = group.last_record_us
    members: list[int | None] = []
    for last_frame_us, heartbeat_us, proven_us, interval_us, last_frame in map(_read_fast, group.members.values()):
        members += (
            base_us - last_frame_us if last_frame_us else None,
            base_us - heartbeat_us if heartbeat_us else None,
            None if proven_us is None else base_us - proven_us,
            interval_us,
            _API_KEYS.get(last_frame),
        )
    connections: list[int] = []
    for connection in group.connections.values():
        connections += connection.outstanding, base_us - connection.last_response_us
    return _pack([due_us, base_us, members, connections, list(group.open.values())])


def _blocks(packed: Sequence[bytes], fast_part: Sequence[bytes]) -> list[StoredBlock]:
    fast_parts = iter(fast_part)
    blocks = []
    for block in packed:
        groups = _unpack(zlib.decompress(block))
        blocks.append(
            StoredBlock(block, [Stored(cluster, name, slow_part, next(fast_parts)) for cluster, name, slow_part in groups])
        )
    return blocks


def _blocks_of_format_1(groups: Sequence[tuple[str, str, int | None, bytes, bytes]]) -> list[StoredBlock]:
    """There a group had a slow part of its own, compressed, and its connections stood by name in the fast one."""
    stored = []
    for cluster, name, due_us, slow_part, fast_part in groups:
        base_us, members, lines, open_ = _unpack(fast_part)
        connections: list[str] = []
        numbers: list[int] = []
        for connection, outstanding, before_us in lines:
            connections.append(connection)
            numbers += outstanding, before_us
        packed = _pack([*_unpack(zlib.decompress(slow_part)), connections])
        stored.append(Stored(cluster, name, packed, _pack([due_us, base_us, members, numbers, open_])))
    return [StoredBlock(b"", stored[first : first + BLOCK_SIZE]) for first in range(0, len(stored), BLOCK_SIZE)]


def due_of(fast_part: bytes) -> int | None:
    """When time is to act next on the group that :func:`pack_fast` was given."""
    due_us: int | None = _unpack(fast_part)[0]
    return due_us


def unpack_group(slow_part: bytes, fast_part: bytes, group: ClassicGroup) -> OpenFindings:
    """Fill ``group`` from what :func:`pack_slow` and :func:`pack_fast` wrote, and return its open findings.

    :raises SnapshotError: when the bytes are no group, or one of a newer release; ``group`` is then of no use.
    """
    try:
        return _fill_group(slow_part, fast_part, group)
    except Exception as error:  # msgpack raises half a dozen unrelated types on bad bytes
        raise SnapshotError(f"group {group.name} cannot be read from the snapshot: {error}") from None


def _fill_group(slow_part: bytes, fast_part: bytes, group: ClassicGroup) -> OpenFindings:
    plain, state, members, generations, findings, connections = _unpack(slow_part)
    if len(plain) > len(_PLAIN):
        raise SnapshotError(f"it has {len(plain)} fields: the snapshot was written by a newer release")
    for name, value in zip(_PLAIN, plain, strict=False):
        setattr(group, name, value)
    group.state = State(state)
    group.generations = list(generations)
    group.members = {member.id: member for member in members}
    _fill_fast(group, connections, fast_part)
    group.slow_changed = group.changed = False
    open_findings = OpenFindings(group.cluster, group.name)
    for known in findings:
        open_findings.open[known.rule, known.subject] = known
    return open_findings


def _fill_fast(group: ClassicGroup, connections: Sequence[str], fast_part: bytes) -> None:
    _due_us, base_us, values, lines, open_ = _unpack(fast_part)
    given = iter(values)
    for member in group.members.values():
        last_frame_us, heartbeat_us, proven_us, member.heartbeat_interval_us, last_frame = (next(given) for _ in range(5))
        member.last_frame_us = 0 if last_frame_us is None else base_us - last_frame_us
        member.heartbeat_us = 0 if heartbeat_us is None else base_us - heartbeat_us
        member.proven_us = None if proven_us is None else base_us - proven_us
        member.last_frame = API_NAMES.get(last_frame, "")
    group.last_record_us = base_us
    given = iter(lines)
    group.connections = {name: ConnectionState(next(given), base_us - next(given)) for name in connections}
    group.open = {exchange.key: exchange for exchange in open_}


class Stored(NamedTuple):
    """A group as it stands in a snapshot."""

    cluster: str
    name: str
    slow_part: bytes
    fast_part: bytes


class StoredBlock(NamedTuple):
    """Neighbours; ``packed`` is what :func:`pack_block` gave for them, empty if another format had no blocks."""

    packed: bytes
    groups: list[Stored]


def pack_block(groups: Iterable[tuple[str, str, bytes]]) -> bytes:
    """Cluster, name and slow part of some groups, compressed together."""
    return zlib.compress(_pack(list(groups)), level=1)


def pack_partition(content: dict[str, Any], blocks: Sequence[bytes], fast_part: Sequence[bytes]) -> bytes:
    """The whole model of a partition.

    :param content: plain values.
    :param blocks: what :func:`pack_block` gave.
    :param fast: what :func:`pack_fast` gave for each group, in the order of the blocks.
    """
    return _pack([FORMAT_VERSION, content, blocks, fast_part])


def unpack_partition(blob: bytes) -> tuple[dict[str, Any], list[StoredBlock]]:
    """The plain values that :func:`pack_partition` was given, and the groups of each block.

    :raises SnapshotError: when the bytes are no snapshot, or one of a newer format.
    """
    try:
        return _content_and_shelves(*_unpack(blob))
    except SnapshotError:
        raise
    except Exception as error:  # zlib and msgpack raise half a dozen unrelated types on bad bytes
        raise SnapshotError(f"not a snapshot of the model: {error}") from None


def _content_and_shelves(version: Any, content: Any, *groups: Any) -> tuple[dict[str, Any], list[StoredBlock]]:
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise SnapshotError(f"snapshot format {version} is newer than {FORMAT_VERSION}, the newest that this release reads")
    if not isinstance(content, dict):
        raise SnapshotError("not a snapshot of the model: no map")
    return content, _blocks(*groups) if version > 1 else _blocks_of_format_1(content.pop("groups"))


def next_offset(blob: bytes) -> int | None:
    """The offset that a snapshot of a partition expects next, None before its first record.

    :raises SnapshotError: when the bytes are no snapshot, or one of a newer format.
    """
    offset = unpack_partition(blob)[0].get("next_offset")
    if offset is not None and not isinstance(offset, int):
        raise SnapshotError(f"not a snapshot of the model: its next offset is {offset!r}")
    return offset

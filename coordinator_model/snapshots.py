"""The model's state as bytes: versioned, compact, and cheap to write again when little has changed.

Each group is stored in two parts. The *slow* part holds what changes only when something happens to the group. The slow parts of a
block of groups are compressed together, which takes a quarter of the bytes, because groups resemble each other. The *fast* part
holds what every heartbeat changes, as plain numbers. Steady traffic packs a few dozen bytes per active group, and compresses nothing.

A snapshot outlives the code that wrote it. Fields are stored by position, so they may only be appended, each new one with a
default. Any other change needs a new format version and a reader for the old one.
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
from coordinator_model.groups.classic.data import CLASSIC
from coordinator_model.groups.classic.rebalance_events import RebalanceEvents
from coordinator_model.groups.classic.trackers.assignments import Assignments
from coordinator_model.groups.classic.trackers.commits import Holding, SimpleCommit
from coordinator_model.groups.classic.trackers.member_identity import MemberIdentity
from coordinator_model.groups.classic.trackers.offsets import Offsets
from coordinator_model.groups.classic.trackers.plans import Plan, Strange, Suspect
from coordinator_model.groups.classic.trackers.rebalance_causes import Rebalance, Starter
from coordinator_model.groups.classic.trackers.rebalance_history import RebalanceHistory
from coordinator_model.groups.classic.trackers.sessions import Left, Sessions
from coordinator_model.groups.committed_offsets import CommittedOffsets, RefusedFetch
from coordinator_model.groups.coordinator_changes import CoordinatorChanges
from coordinator_model.groups.coordinator_records import (
    CoordinatorTerm,
    ErrorStreak,
    FindCoordinatorAnswer,
    LostCoordinator,
    Persisted,
)
from coordinator_model.groups.group_model import GroupModel
from coordinator_model.groups.rebalance_recorder import Identity, MemberProgress, OpenRebalance
from coordinator_model.groups.records import (
    AbandonedRequest,
    Ahead,
    ClientInfo,
    CommitFacts,
    Exchange,
    FetchFacts,
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
from coordinator_model.releases import BrokerVersion

FORMAT_VERSION: Final = 6


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
    # Ten codes for each tracker and its records.
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
    60: RebalanceEvents,
    61: OpenRebalance,
    62: MemberProgress,
    63: Identity,
    70: CommittedOffsets,
    71: RefusedFetch,
    72: FetchFacts,
}
_CODES: Final = {type_: code for code, type_ in _TYPES.items()}
_FIELDS: Final[dict[type[Any], tuple[str, ...]]] = {
    type_: getattr(type_, "_fields", None) or tuple(field.name for field in fields(type_) if field.init) for type_ in _CODES
}


BLOCK_SIZE: Final = 16
"""Groups in a block. With more, each change recompresses more; with fewer, compression saves less."""

# A record is an array whose first element is an ext type without content, which marks the record's type. Format 1 had an ext type
# around an array, which needs a nested packer per record and twice the time.
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
    """Pack with an idle packer: creating one costs more than packing, and two threads must not share one."""
    packer = _idle.pop() if _idle else msgpack.Packer(default=_default, strict_types=True)
    try:
        packed: bytes = packer.pack(value)
    finally:
        _idle.append(packer)
    return packed


_idle: Final[list[msgpack.Packer]] = []


def _unpack(packed: bytes) -> Any:
    return msgpack.unpackb(packed, ext_hook=_ext_hook, list_hook=_list_hook, use_list=False, strict_map_key=False)


def pack_slow(group: GroupModel[Any], open_findings: OpenFindings) -> bytes:
    """Pack what changes only when something happens to a group, and its open findings."""
    return _pack([group.kind, group.slow_values(), list(open_findings.open.values())])


def pack_fast(group: GroupModel[Any], due_us: int | None) -> bytes:
    """Pack what changes with every frame.

    :param due_us: the group's deadline.
    """
    return _pack([due_us, group.last_record_us, *group.fast_values()])


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
    """Convert groups of format 1: each slow part was compressed by itself, and the fast part named the connections."""
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
    """Return the deadline that :func:`pack_fast` stored."""
    due_us: int | None = _unpack(fast_part)[0]
    return due_us


def unpack_group(
    name: str, slow_part: bytes, fast_part: bytes, make: Callable[[str], GroupModel[Any]]
) -> tuple[GroupModel[Any], OpenFindings]:
    """Return the group that :func:`pack_slow` and :func:`pack_fast` packed, and its open findings.

    :param name: the group's, for the error.
    :param make: returns an empty group of a type.
    :raises SnapshotError: if the bytes are no group, or one of a newer release.
    """
    try:
        kind, slow_values, findings = _slow_part(_unpack(slow_part))
        group = make(kind)
        _due_us, group.last_record_us, *fast_values = _unpack(fast_part)
        group.fill(slow_values, fast_values)
    except Exception as error:  # msgpack raises half a dozen unrelated types on bad bytes
        raise SnapshotError(f"group {name} cannot be read from the snapshot: {error}") from None
    group.slow_changed = group.changed = False
    open_findings = OpenFindings(group.cluster, group.name)
    for known in findings:
        open_findings.open[known.rule, known.subject] = known
    return group, open_findings


def _slow_part(values: Sequence[Any]) -> tuple[str, Sequence[Any], Sequence[OpenFinding]]:
    """Return type, values and open findings of a group. Up to format 4 all groups were classic, and the findings stood among the values."""
    if isinstance(values[0], str):
        kind, slow_values, findings = values
        return kind, slow_values, findings
    *slow_values, findings, connections = values
    return CLASSIC, [*slow_values, connections], findings


class Stored(NamedTuple):
    """A group as stored in a snapshot."""

    cluster: str
    name: str
    slow_part: bytes
    fast_part: bytes


class StoredBlock(NamedTuple):
    """The groups of one block; ``packed`` is the result of :func:`pack_block`, empty for format 1, which had no blocks."""

    packed: bytes
    groups: list[Stored]


def pack_block(groups: Iterable[tuple[str, str, bytes]]) -> bytes:
    """Compress cluster, name and slow part of the groups of a block together."""
    return zlib.compress(_pack(list(groups)), level=1)


def pack_partition(content: dict[str, Any], blocks: Sequence[bytes], fast_part: Sequence[bytes]) -> bytes:
    """Pack the whole model of a partition.

    :param content: plain values.
    :param blocks: results of :func:`pack_block`.
    :param fast_part: results of :func:`pack_fast` for each group, in the order of the blocks.
    """
    return _pack([FORMAT_VERSION, content, blocks, fast_part])


def unpack_partition(blob: bytes) -> tuple[dict[str, Any], list[StoredBlock]]:
    """Return the plain values given to :func:`pack_partition`, and the groups of each block.

    :raises SnapshotError: if the bytes are no snapshot, or one of a newer format.
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
    """Return the offset that a partition's snapshot expects next, None before its first record.

    :raises SnapshotError: if the bytes are no snapshot, or one of a newer format.
    """
    offset = unpack_partition(blob)[0].get("next_offset")
    if offset is not None and not isinstance(offset, int):
        raise SnapshotError(f"not a snapshot of the model: its next offset is {offset!r}")
    return offset

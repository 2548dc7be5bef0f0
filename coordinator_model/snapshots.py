"""The model's state as bytes: versioned, compact, and cheap to write again when little has changed.

Each group is stored in two parts. The *slow* part holds what changes only when something happens to the group. The slow parts of a
block of groups are compressed together, which takes a quarter of the bytes, because groups resemble each other. The *fast* part
holds what every heartbeat changes, as plain numbers. The fast path packs a few dozen bytes per active group, and compresses nothing.

The types of what is stored are its format: see :class:`~coordinator_model.stored.Stored`.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import field
from msgspec.structs import replace

from coordinator_model.cluster_facts import ClusterFacts
from coordinator_model.counters import Counters
from coordinator_model.event_log import StoredEvents
from coordinator_model.groups.classic.model import ClassicGroupModel
from coordinator_model.groups.epochs.model import EpochGroup
from coordinator_model.groups.epochs.records import EpochMember
from coordinator_model.groups.group import GroupModel
from coordinator_model.groups.records import (
    ByTopic,
    ClientInfo,
    ConnectionState,
    Disconnections,
    Exchange,
    Member,
    by_topic,
    from_topics,
)
from coordinator_model.open_findings import OpenFinding, OpenFindings
from coordinator_model.scheduler import GroupKey
from coordinator_model.stored import Stored
from coordinator_model.tap_watch import TapWatch
from coordinator_model.wire.record import MirrorRecord

FORMAT_VERSION: Final = 1

BLOCK_SIZE: Final = 16
"""Groups in a block. With more, each change recompresses more; with fewer, compression saves less."""


class SnapshotError(ValueError):
    """A snapshot cannot be read; the message gives the reason."""


# ---------------------------------------------------------------------------------------------------- one group


class _Slow(Stored, tag=True):
    """The slow part of a group. Members have the order of the fast part."""

    connections: dict[str, ClientInfo | None]  #: the client of its last request, None if that is a member's
    findings: list[OpenFinding]


class _Classic(_Slow):
    group: ClassicGroupModel
    members: list[Member]


class _Held(Stored):
    """The partitions of a member with an epoch."""

    granted: ByTopic | None
    pending: ByTopic
    ever: dict[int, ByTopic] | bool | None  #: by epoch; True for what is granted, all of it since its join


class _Epochs(_Slow):
    group: EpochGroup
    members: list[EpochMember]
    held: list[_Held]


class _Fast(Stored):
    """What every frame changes. Times before the last record take half the bytes."""

    due_us: int | None
    last_record_us: int
    members: list[int]
    connections: list[int]
    open: list[Exchange]


class _Due(msgspec.Struct, array_like=True):
    """The beginning of a fast part."""

    due_us: int | None


_encode: Final = msgspec.msgpack.Encoder().encode
_decode_slow: Final = msgspec.msgpack.Decoder(_Classic | _Epochs).decode
_decode_fast: Final = msgspec.msgpack.Decoder(_Fast).decode
_decode_due: Final = msgspec.msgpack.Decoder(_Due).decode


class _Apart(NamedTuple):
    """The fields of a member that are not in its slow part."""

    blank: dict[str, Any]  #: each with its default
    fast: tuple[str, ...]
    times: int  #: how many of the fast ones are times, which come first
    read: Callable[[Iterable[Any], int], list[int]]
    """The fast fields of members, and the time of the last record → their values, times before it."""

    @classmethod
    def of(cls, unknown: Member | EpochMember) -> _Apart:
        fast = (*unknown.TIMES, *unknown.NUMBERS)
        held = (name for name in _Held.__struct_fields__ if hasattr(unknown, name))
        # Compiled, since each heartbeat has them written: attrgetter and a loop over fields take twice as long.
        values = [*(f"base_us - (one.{name} or 0)" for name in unknown.TIMES), *(f"one.{name}" for name in unknown.NUMBERS)]
        read = eval(f"lambda members, base_us: [value for one in members for value in ({', '.join(values)})]")  # noqa: S307
        return cls({name: getattr(unknown, name) for name in (*fast, *held)}, fast, len(unknown.TIMES), read)


_APART: Final = {ClassicGroupModel: _Apart.of(Member("")), EpochGroup: _Apart.of(EpochMember(""))}


def pack_slow(group: GroupModel[Any], open_findings: OpenFindings) -> bytes:
    """Pack what changes only when something happens to a group, and its open findings."""
    clients = {member.actor.connection: member.actor for member in group.members.values()}
    connections = {name: None if clients.get(name) == line.actor else line.actor for name, line in group.connections.items()}
    findings = [*open_findings.open.values(), *open_findings.over.values()]
    blank = _APART[type(group)].blank
    members = [replace(member, **blank) for member in group.members.values()]
    if isinstance(group, EpochGroup):
        return _encode(_Epochs(connections, findings, group, members, [_held_by(member) for member in group.members.values()]))
    assert isinstance(group, ClassicGroupModel)
    return _encode(_Classic(connections, findings, group, members))


def _held_by(member: EpochMember) -> _Held:
    granted = None if member.granted is None else by_topic(member.granted)
    ever: dict[int, ByTopic] | bool | None = None
    if member.ever is not None:
        since = sorted((epoch, each) for each, epoch in member.ever.items())
        first = {epoch: by_topic(each for _, each in of_epoch) for epoch, of_epoch in groupby(since, itemgetter(0))}
        ever = first == {0: granted} or first
    return _Held(granted, by_topic(member.pending), ever)


def _hold(member: EpochMember, held: _Held) -> None:
    member.granted = None if held.granted is None else from_topics(held.granted)
    member.pending = from_topics(held.pending)
    if held.ever is not None:
        first = held.ever if isinstance(held.ever, dict) else {0: held.granted or {}}
        member.ever = {each: epoch for epoch, stored in first.items() for each in from_topics(stored)}


def pack_fast(group: GroupModel[Any], due_us: int | None) -> bytes:
    """Pack what changes with every frame.

    :param due_us: the group's deadline.
    """
    base_us = group.last_record_us
    members = _APART[type(group)].read(group.members.values(), base_us)
    lines = [number for line in group.connections.values() for number in (line.outstanding, base_us - line.last_response_us)]
    return _encode(_Fast(due_us, base_us, members, lines, list(group.open.values())))


def due_of(fast_part: bytes) -> int | None:
    """Return the deadline that :func:`pack_fast` stored."""
    return _decode_due(fast_part).due_us


def unpack_group(
    name: str, slow_part: bytes, fast_part: bytes, attach: Callable[[GroupModel[Any]], GroupModel[Any]]
) -> tuple[GroupModel[Any], OpenFindings]:
    """Return the group that :func:`pack_slow` and :func:`pack_fast` packed, and its open findings.

    :param name: the group's, for the error.
    :param attach: gives the group its name, and what it shares with others.
    :raises SnapshotError: if the bytes are no group, or one of a newer release.
    """
    try:
        slow = _decode_slow(slow_part)
        group = attach(slow.group)
        _fill(group, slow, _decode_fast(fast_part))
    except Exception as error:  # bad bytes raise half a dozen unrelated types
        raise SnapshotError(f"group {name} cannot be read from the snapshot: {error}") from None
    group.slow_changed = group.changed = False
    open_findings = OpenFindings(group.cluster, group.name)
    for known in slow.findings:
        (open_findings.over if known.resolved else open_findings.open)[known.rule, known.subject] = known
    return group, open_findings


def _fill(group: GroupModel[Any], slow: _Classic | _Epochs, fast: _Fast) -> None:
    base_us = group.last_record_us = fast.last_record_us
    apart, values, lines = _APART[type(group)], iter(fast.members), iter(fast.connections)
    clients = {}
    for member in slow.members:
        for place, name in enumerate(apart.fast):
            value = next(values)
            setattr(member, name, base_us - value if place < apart.times else value)
        member.proven_us = member.proven_us or None
        group.members[member.id] = member
        clients[member.actor.connection] = member.actor
    if isinstance(slow, _Epochs):
        for known, held in zip(slow.members, slow.held, strict=True):
            _hold(known, held)
    for connection, client in slow.connections.items():
        group.connections[connection] = ConnectionState(next(lines), base_us - next(lines), client or clients[connection])
    group.open = {exchange.key: exchange for exchange in fast.open}


# ---------------------------------------------------------------------------------------------------- one partition


class PartitionState(Stored):
    """The state of a partition's model, without its groups."""

    topic: str
    partition: int
    next_offset: int | None = None
    partitions: int | None = None
    now_us: int = 0
    record_counts: dict[str, int] = {}
    counters: Counters = field(default_factory=Counters)
    loading: dict[tuple[str, str], int] = {}
    disconnections: dict[tuple[str, str], tuple[Disconnections, ...]] = {}
    blind_from_us: int = 0
    blind_to_us: int = 0
    due_us: int | None = None  #: of the partition's own findings
    findings: list[OpenFinding] = []
    changed: list[GroupKey] = []
    waiting: list[MirrorRecord] = []  #: heartbeats whose response will show the type of their group
    facts: ClusterFacts = field(default_factory=ClusterFacts)
    events: StoredEvents = field(default_factory=StoredEvents)
    taps: TapWatch = field(default_factory=TapWatch)


class _Snapshot(Stored):
    version: int
    state: PartitionState
    blocks: list[bytes]
    fast_parts: list[bytes]


class StoredGroup(NamedTuple):
    """A group as stored in a snapshot."""

    cluster: str
    name: str
    slow_part: bytes
    fast_part: bytes


class StoredBlock(NamedTuple):
    """The groups of one block; ``packed`` is the result of :func:`pack_block`."""

    packed: bytes
    groups: list[StoredGroup]


_decode_snapshot: Final = msgspec.msgpack.Decoder(_Snapshot).decode
_decode_block: Final = msgspec.msgpack.Decoder(list[tuple[str, str, bytes]]).decode


def pack_block(groups: Iterable[tuple[str, str, bytes]]) -> bytes:
    """Compress cluster, name and slow part of the groups of a block together."""
    return zlib.compress(_encode(list(groups)), level=1)


def pack_partition(state: PartitionState, blocks: list[bytes], fast_parts: list[bytes]) -> bytes:
    """Pack the whole model of a partition.

    :param blocks: results of :func:`pack_block`.
    :param fast_parts: results of :func:`pack_fast` for each group, in the order of the blocks.
    """
    return _encode(_Snapshot(FORMAT_VERSION, state, blocks, fast_parts))


def unpack_partition(blob: bytes) -> tuple[PartitionState, list[StoredBlock]]:
    """Return what was given to :func:`pack_partition`.

    :raises SnapshotError: if the bytes are no snapshot, or one of a newer format.
    """
    found = _snapshot(blob)
    fast_parts = iter(found.fast_parts)
    try:
        return found.state, [
            StoredBlock(block, [StoredGroup(*group, next(fast_parts)) for group in _decode_block(zlib.decompress(block))])
            for block in found.blocks
        ]
    except Exception as error:  # bad bytes raise half a dozen unrelated types
        raise SnapshotError(f"not a snapshot of the model: {error}") from None


def state_of(blob: bytes) -> PartitionState:
    """Return the state of a partition's model, without its groups.

    :raises SnapshotError: if the bytes are no snapshot, or one of a newer format.
    """
    return _snapshot(blob).state


def _snapshot(blob: bytes) -> _Snapshot:
    try:
        return _decode_snapshot(blob)
    except Exception as error:  # bad bytes raise half a dozen unrelated types
        raise SnapshotError(_newer(blob) or f"not a snapshot of the model: {error}") from None


def _newer(blob: bytes) -> str:
    try:
        version = msgspec.msgpack.decode(blob)[0]
    except Exception:  # no snapshot at all
        return ""
    is_newer = isinstance(version, int) and version > FORMAT_VERSION
    return f"snapshot format {version} is newer than {FORMAT_VERSION}, the newest that this release reads" if is_newer else ""

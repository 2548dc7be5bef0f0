"""The model's state as bytes: versioned, compact, and readable group by group.

The trap: a snapshot outlives the code that wrote it. Fields are stored by position, so they may only be appended, each new one with a
default; anything else needs a new format version and a reader for the old one.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import fields
from enum import Enum
from operator import attrgetter
from typing import Any, Final

import msgpack

from coordinator_model.findings import Evidence
from coordinator_model.groups.assignments import Assignments, Plan, Strange, Suspect
from coordinator_model.groups.classic import ClassicGroup, Line
from coordinator_model.groups.coordination import Coordination, Persisted, Pointed, Spell, Tenure
from coordinator_model.groups.dialect import Dialect
from coordinator_model.groups.facts import (
    Actor,
    Ahead,
    CommitAsk,
    Doubt,
    Exchange,
    Instance,
    IssuedId,
    JoinAsk,
    LeaveAsk,
    Member,
    Orphan,
    Refusals,
    Round,
    Skip,
    SyncAsk,
)
from coordinator_model.groups.identity import Identity
from coordinator_model.groups.offsets import Holding, Offsets, SimpleCommit
from coordinator_model.groups.plans import Flaws, Offer
from coordinator_model.groups.sessions import Left, Sessions
from coordinator_model.groups.state import State
from coordinator_model.groups.timeline import Rebalance, Starter, Timeline
from coordinator_model.ledger import Ledger, OpenFinding
from coordinator_model.wire import API_NAMES

FORMAT_VERSION: Final = 1


class SnapshotError(ValueError):
    """A snapshot cannot be read; the message says why."""


# Ext code → type. A code is never reused.
_TYPES: Final[dict[int, type[Any]]] = {
    1: Evidence,
    2: Actor,
    3: JoinAsk,
    4: SyncAsk,
    5: LeaveAsk,
    6: Exchange,
    7: Refusals,
    8: Member,
    9: Round,
    10: Instance,
    11: IssuedId,
    12: OpenFinding,
    13: Identity,
    14: Doubt,
    15: Ahead,
    16: Dialect,
    17: Skip,
    # One decade for each watch and the records that it keeps.
    20: Assignments,
    21: Plan,
    22: Offer,
    23: Flaws,
    24: Suspect,
    25: Strange,
    30: Offsets,
    31: CommitAsk,
    32: Holding,
    33: SimpleCommit,
    40: Coordination,
    41: Spell,
    42: Tenure,
    43: Persisted,
    44: Pointed,
    50: Timeline,
    51: Orphan,
    52: Starter,
    53: Rebalance,
    54: Sessions,
    55: Left,
}
_CODES: Final = {type_: code for code, type_ in _TYPES.items()}
_FIELDS: Final[dict[type[Any], tuple[str, ...]]] = {
    type_: getattr(type_, "_fields", None) or tuple(field.name for field in fields(type_)) for type_ in _CODES
}


def _default(value: Any) -> Any:
    type_ = type(value)
    code = _CODES.get(type_)
    if code is not None:
        return msgpack.ExtType(code, _pack([getattr(value, name) for name in _FIELDS[type_]]))
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return list(value)
    raise TypeError(f"{type_.__name__} has no place in a snapshot")


def _ext_hook(code: int, packed: bytes) -> Any:
    type_ = _TYPES.get(code)
    if type_ is None:
        raise SnapshotError(f"unknown record type {code}: the snapshot was written by a newer release")
    values = _unpack(packed)
    if len(values) > len(_FIELDS[type_]):
        raise SnapshotError(f"{type_.__name__} has {len(values)} fields: the snapshot was written by a newer release")
    return type_(*values)


def _pack(value: Any) -> bytes:
    """Records lie within records, so several packers are at work at once; making one costs more than it does, for its buffer."""
    packer = _idle.pop() if _idle else msgpack.Packer(default=_default, strict_types=True)
    try:
        packed: bytes = packer.pack(value)
    finally:
        _idle.append(packer)
    return packed


_idle: Final[list[msgpack.Packer]] = []


def _unpack(packed: bytes) -> Any:
    return msgpack.unpackb(packed, ext_hook=_ext_hook, use_list=False, strict_map_key=False)


# Attributes of a group that are stored as they are, in this order; the containers that need care follow them.
_PLAIN: Final = (
    "name", "cluster", "kind", "broker", "incarnation", "settled", "learning_because", "generation_seen", "state_since_us",
    "protocol_type", "instances", "issued", "causes", "join_took_us", "sync_took_us", "deleted_us",
    "assignments", "offsets", "coordination", "timeline", "sessions",
    "identity", "unwatched_us", "errors", "joins", "syncs",
)  # fmt: skip

# What steady traffic changes in a member is stored apart, as bare numbers, so that a group in which nothing but heartbeats happens
# costs next to nothing to store. Times are stored as the microseconds before the group's last record: half the bytes.
_read_hot = attrgetter("last_frame_us", "heartbeat_us", "proven_us", "heartbeat_interval_us", "last_frame")
_API_KEYS: Final = {name: key for key, name in API_NAMES.items()}


def pack_cold(group: ClassicGroup, ledger: Ledger) -> bytes:
    """What of a group and its open findings changes only when something happens."""
    return zlib.compress(
        _pack(
            [
                [getattr(group, name) for name in _PLAIN],
                group.state.value,
                list(group.members.values()),
                group.rounds,
                list(ledger.open.values()),
            ]
        ),
        level=1,
    )


def pack_hot(group: ClassicGroup) -> bytes:
    """What of a group changes with every frame. Its members stand in the order of :func:`pack_cold`."""
    base_us = group.last_record_us
    members: list[int | None] = []
    for last_frame_us, heartbeat_us, proven_us, interval_us, last_frame in map(_read_hot, group.members.values()):
        members += (
            base_us - last_frame_us if last_frame_us else None,
            base_us - heartbeat_us if heartbeat_us else None,
            None if proven_us is None else base_us - proven_us,
            interval_us,
            _API_KEYS.get(last_frame),
        )
    lines = [[name, line.outstanding, base_us - line.last_response_us] for name, line in group.lines.items()]
    return _pack([base_us, members, lines, list(group.open.values())])


def _unpack_hot(group: ClassicGroup, members: Iterable[Member], hot: bytes) -> None:
    base_us, values, lines, open_ = _unpack(hot)
    given = iter(values)
    for member in members:
        last_frame_us, heartbeat_us, proven_us, member.heartbeat_interval_us, last_frame = (next(given) for _ in range(5))
        member.last_frame_us = 0 if last_frame_us is None else base_us - last_frame_us
        member.heartbeat_us = 0 if heartbeat_us is None else base_us - heartbeat_us
        member.proven_us = None if proven_us is None else base_us - proven_us
        member.last_frame = API_NAMES.get(last_frame, "")
    group.last_record_us = base_us
    group.lines = {name: Line(outstanding, base_us - before_us) for name, outstanding, before_us in lines}
    group.open = {exchange.key: exchange for exchange in open_}


def unpack_group(cold: bytes, hot: bytes, group: ClassicGroup) -> Ledger:
    """Fill ``group`` from what :func:`pack_cold` and :func:`pack_hot` wrote, and give its ledger.

    :raises SnapshotError: when the bytes are no group, or one of a newer release; ``group`` is then of no use.
    """
    try:
        return _fill_group(cold, hot, group)
    except Exception as error:  # zlib and msgpack raise half a dozen unrelated types on bad bytes
        raise SnapshotError(f"group {group.name} cannot be read from the snapshot: {error}") from None


def _fill_group(cold: bytes, hot: bytes, group: ClassicGroup) -> Ledger:
    plain, state, members, rounds, findings = _unpack(zlib.decompress(cold))
    if len(plain) > len(_PLAIN):
        raise SnapshotError(f"it has {len(plain)} fields: the snapshot was written by a newer release")
    for name, value in zip(_PLAIN, plain, strict=False):
        setattr(group, name, value)
    group.state = State(state)
    group.rounds = list(rounds)
    group.members = {member.id: member for member in members}
    _unpack_hot(group, members, hot)
    group.cold_changed = group.changed = False
    ledger = Ledger(group.cluster, group.name)
    for known in findings:
        ledger.open[known.rule, known.subject] = known
    return ledger


def pack_group(key: tuple[str, str], due_us: int | None, cold: bytes, hot: bytes) -> bytes:
    """A group's place in :func:`pack_partition`: cluster, name, when it is due, and its two parts."""
    return _pack([*key, due_us, cold, hot])


def pack_partition(content: dict[str, Any], groups: Sequence[bytes]) -> bytes:
    """The whole model of a partition; ``content`` holds plain values, ``groups`` what :func:`pack_group` gave.

    They are put together as msgpack would: most groups of a partition are as they were, and are not packed again with it.
    """
    packed = _pack([FORMAT_VERSION, content | {"groups": None}])
    assert packed.endswith(_NIL)
    return b"".join((packed.removesuffix(_NIL), _ARRAY_32, len(groups).to_bytes(4, "big"), *groups))


_NIL: Final = b"\xc0"
_ARRAY_32: Final = b"\xdd"


def unpack_partition(blob: bytes) -> dict[str, Any]:
    """What :func:`pack_partition` was given.

    :raises SnapshotError: when the bytes are no snapshot, or one of a newer format.
    """
    try:
        version, content = _unpack(blob)
    except SnapshotError:
        raise
    except Exception as error:  # msgpack raises half a dozen unrelated types on bad bytes
        raise SnapshotError(f"not a snapshot of the model: {error}") from None
    if version != FORMAT_VERSION:
        raise SnapshotError(f"snapshot format {version} is newer than {FORMAT_VERSION}, the newest that this release reads")
    if not isinstance(content, dict):
        raise SnapshotError("not a snapshot of the model: no map")
    return content


def next_offset(blob: bytes) -> int | None:
    """The offset that a snapshot of a partition expects next, None before its first record.

    :raises SnapshotError: when the bytes are no snapshot, or one of a newer format.
    """
    offset = unpack_partition(blob).get("next_offset")
    if offset is not None and not isinstance(offset, int):
        raise SnapshotError(f"not a snapshot of the model: its next offset is {offset!r}")
    return offset

"""The groups of one partition with their open findings: created or unpacked when first needed, packed again if touched."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from coordinator_model.cluster_facts import ClusterFacts
from coordinator_model.counters import Counters
from coordinator_model.event_log import EventLog
from coordinator_model.groups.classic.data import CLASSIC
from coordinator_model.groups.group import STEADY_US, GroupModel
from coordinator_model.groups.kinds import empty_group
from coordinator_model.groups.records import Coverage, Disconnections
from coordinator_model.open_findings import OpenFindings
from coordinator_model.scheduler import GroupKey, Scheduler
from coordinator_model.settings import Settings
from coordinator_model.snapshots import BLOCK_SIZE, StoredBlock, due_of, pack_block, pack_fast, pack_slow, unpack_group
from coordinator_model.tap_watch import tap_of

CHECK_DELAY_US: Final = 100_000
"""Timer rules check a burst of frames once, this long after its first frame."""

CHECK_PACE_US: Final = 200
"""The least delay for each member: a check looks at all of them, and thousands that join are not checked at each step."""

_SOON_US: Final = 1_000_000
"""A group is not checked again sooner than that only to be dropped."""


class _Block:
    """Groups created one after the other, which are stored together in the snapshot."""

    __slots__ = ("keys", "packed")

    def __init__(self) -> None:
        self.keys: dict[GroupKey, None] = {}
        self.packed = b""  #: as of the last snapshot; empty if a slow part has changed since


class _StoredGroup:
    """A group with its open findings; both are None until first needed after a restore."""

    __slots__ = ("block", "fast_part", "group", "open_findings", "slow_part")

    def __init__(self, block: _Block) -> None:
        self.group: GroupModel[Any] | None = None
        self.open_findings: OpenFindings | None = None
        self.block = block
        self.slow_part = b""  #: both parts as of the last snapshot
        self.fast_part = b""


class GroupStore:
    """All groups of a partition, by (cluster, group).

    :param loading: (cluster, broker) → last time that it answered COORDINATOR_LOAD_IN_PROGRESS; shared with all groups, as are
        ``counters``, ``coverage``, ``disconnections``, ``group_events`` and ``facts``.
    """

    def __init__(
        self,
        settings: Settings,
        scheduler: Scheduler,
        *,
        loading: dict[tuple[str, str], int],
        counters: Counters,
        coverage: Coverage,
        disconnections: dict[tuple[str, str], tuple[Disconnections, ...]],
        group_events: EventLog,
        facts: ClusterFacts | None = None,
    ) -> None:
        self._scheduler = scheduler
        self._forget_us = settings.forget_group_ms * 1_000
        self._shared: dict[str, Any] = {
            "settings": settings,
            "loading": loading,
            "counters": counters,
            "coverage": coverage,
            "disconnections": disconnections,
            "group_events": group_events,
            "facts": facts,
        }
        self._groups: dict[GroupKey, _StoredGroup] = {}
        self._blocks: list[_Block] = []  # their groups, block by block, have the order of _groups
        self._dirty: set[GroupKey] = set()
        self.unshown: dict[GroupKey, None] = {}  #: groups that have changed since last shown, including dropped ones

    def __contains__(self, key: GroupKey) -> bool:
        return key in self._groups

    def __iter__(self) -> Iterator[GroupKey]:
        return iter(list(self._groups))

    def __len__(self) -> int:
        return len(self._groups)

    def kind_of(self, key: GroupKey) -> str:
        """Return the type that a group is held as, empty if it is not held.

        :raises SnapshotError: as :meth:`opened` does.
        """
        stored = self._groups.get(key)
        if stored is None:
            return ""
        return (stored.group or self.opened(key)[0]).kind

    def opened(self, key: GroupKey) -> tuple[GroupModel[Any], OpenFindings]:
        """Return the group and its open findings; create or unpack them if needed.

        :raises SnapshotError: on every call, if the group cannot be unpacked. A partly unpacked group is never returned.
        """
        stored = self._groups.get(key)
        if stored is None:
            stored = self._add(key)
        if stored.group is None or stored.open_findings is None:
            stored.group, stored.open_findings = self._unpacked(stored, key)
        return stored.group, stored.open_findings

    def _unpacked(self, stored: _StoredGroup, key: GroupKey) -> tuple[GroupModel[Any], OpenFindings]:
        if not stored.slow_part:  # what kind it is, its frames will show
            return self._made(key, CLASSIC), OpenFindings(*key)
        cluster, name = key
        return unpack_group(name, stored.slow_part, stored.fast_part, lambda group: group.attach(name, cluster, **self._shared))

    def _made(self, key: GroupKey, kind: str) -> GroupModel[Any]:
        cluster, name = key
        return empty_group(kind, name, cluster, **self._shared)

    def touched(self, key: GroupKey, at_us: int) -> tuple[GroupModel[Any], OpenFindings]:
        """Return the group that a frame names, like :meth:`opened`, and note the time of its newest record."""
        group, open_findings = self.opened(key)
        if group.idle:
            self._wake(key, group, at_us)
        group.last_record_us = max(group.last_record_us, at_us)
        self._dirty.add(key)
        return group, open_findings

    def _wake(self, key: GroupKey, group: GroupModel[Any], at_us: int) -> None:
        """Let timer rules look at an idle group: nothing else schedules that for a request that stays unanswered."""
        group.idle = False
        if not group.last_record_us:
            group.usual.since_us = at_us
        self._scheduler.schedule(key, at_us + STEADY_US)

    def mark(self, key: GroupKey) -> None:
        """Mark the group's fast part for packing with the next snapshot."""
        self._dirty.add(key)

    def changed(self, key: GroupKey, at_us: int) -> None:
        """Mark the group, after anything off the fast path, for publishing, storing and an early check by the timer rules."""
        group, _ = self.opened(key)
        group.changed = False
        group.slow_changed = True
        self._dirty.add(key)
        self.unshown[key] = None
        self._scheduler.schedule(key, at_us + max(CHECK_DELAY_US, CHECK_PACE_US * len(group.members)))

    def check_those_named(self, address: str, at_us: int) -> None:
        """Let timer rules check the groups that have clients which were named this address as their coordinator's."""
        for key in self:
            if self.opened(key)[0].arrivals.are_named(address):
                self.changed(key, at_us)

    def lose_coverage(self, key: GroupKey, at_us: int, reason: str) -> None:
        """Send a group back to learning, because frames of it are missing."""
        group, _ = self.opened(key)
        group.on_gap(at_us, reason)
        self.changed(key, at_us)

    def shown_again(self, tap: str, at_us: int, because: str) -> None:
        """Send the groups that a tap showed back to learning: they are not seen through it any more, and nobody looked meanwhile."""
        for key in self:
            group, _ = self.opened(key)
            if group.is_shown_by({tap}):
                group.shown_since_us = at_us
                self.lose_coverage(key, at_us, because)
                for connection in [one for one in group.connections if tap_of(one) == tap]:
                    group.connection_closed(connection, at_us)

    def waits_unseen(self, key: GroupKey, connection: str, at_us: int) -> bool:
        """Note that a request of a connection may wait unseen; return False if its group has to go back to learning, or is not known."""
        waits = key in self and self.opened(key)[0].waits_unseen(connection, at_us)
        if waits:
            self.changed(key, at_us)
        return waits

    def reset(self, key: GroupKey, at_us: int) -> None:
        """Replace a group by a new one that keeps its name, type, incarnation and open findings."""
        group, _ = self.opened(key)
        fresh = self.replace(key, group.kind)
        fresh.incarnation, fresh.last_record_us = group.incarnation, at_us

    def replace(self, key: GroupKey, kind: str) -> GroupModel[Any]:
        """Replace a group by an empty one of a type, which keeps the open findings; return it."""
        self.opened(key)
        fresh = self._groups[key].group = self._made(key, kind)
        return fresh

    def checked(self, key: GroupKey, now_us: int, next_us: int | None) -> bool:
        """Schedule the next check of a group, or return False if no frame of it came for so long that it is to be dropped.

        :param next_us: when something falls due in it, None if nothing does.
        """
        forgotten_us = self.opened(key)[0].last_record_us + self._forget_us
        if forgotten_us <= now_us:
            return False
        last_us = max(forgotten_us, now_us + _SOON_US)
        self._scheduler.schedule(key, last_us if next_us is None else min(next_us, last_us))
        return True

    def drop(self, key: GroupKey) -> None:
        """Drop a group."""
        block = self._groups.pop(key).block
        del block.keys[key]
        block.packed = b""
        if not block.keys:
            self._blocks.remove(block)
        self._scheduler.cancel(key)
        self.unshown[key] = None

    def clear(self) -> None:
        """Drop all groups."""
        self._groups.clear()
        self._blocks.clear()
        self._dirty.clear()
        self.unshown.clear()
        self._scheduler.clear()

    def pack(self) -> tuple[list[bytes], list[bytes]]:
        """Return the blocks and the fast parts for a snapshot. Only groups touched since the last call are packed again."""
        for key in self._dirty:
            stored = self._groups.get(key)
            if stored is not None and stored.group is not None and stored.open_findings is not None:
                if stored.group.slow_changed or not stored.slow_part:
                    stored.slow_part = pack_slow(stored.group, stored.open_findings)
                    stored.block.packed = b""
                    stored.group.slow_changed = False
                stored.fast_part = pack_fast(stored.group, self._scheduler.due_us(key))
        self._dirty.clear()
        for block in self._blocks:
            if not block.packed:
                block.packed = pack_block((*key, self._groups[key].slow_part) for key in block.keys)
        return [block.packed for block in self._blocks], [stored.fast_part for stored in self._groups.values()]

    def fill(self, blocks: Iterable[StoredBlock]) -> None:
        """Add the groups of a snapshot's blocks without unpacking them."""
        for packed, groups in blocks:
            block = _Block()
            block.packed = packed
            self._blocks.append(block)
            for cluster, name, slow_part, fast_part in groups:
                key = cluster, name
                block.keys[key] = None
                stored = self._groups[key] = _StoredGroup(block)
                stored.slow_part, stored.fast_part = slow_part, fast_part
                due_us = due_of(fast_part)
                if due_us is not None:
                    self._scheduler.schedule(key, due_us)

    def _add(self, key: GroupKey) -> _StoredGroup:
        if not self._blocks or len(self._blocks[-1].keys) >= BLOCK_SIZE:
            self._blocks.append(_Block())
        block = self._blocks[-1]
        block.keys[key] = None
        block.packed = b""
        stored = self._groups[key] = _StoredGroup(block)
        self._dirty.add(key)
        return stored

"""The model of one mirror partition: records in, findings out.

A group lives wholly in one partition of the mirror, as it does in one partition of ``__consumer_offsets``, so each partition has a
model of its own that shares nothing with the others.

The traps. *The clock is in the data*: now is the newest capture time in this partition, and every deadline is judged on it, so a
backlog is replayed as it happened. *Offsets are contiguous*: a record seen twice is skipped, and a missing one is seen. *Nothing here
may depend on batches*: whoever calls :meth:`Coordinator.receive` may stop after any record, take a snapshot and go on elsewhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from heapq import heappop, heappush
from typing import Any, Final, NamedTuple, Self

from coordinator_model.counters import CAPTURE, CONNECTION, MIRROR, NOT_MODELLED, TRUNCATED, UNDECODABLE, Counters
from coordinator_model.finding import Finding
from coordinator_model.group_view import GroupView, group_view
from coordinator_model.groups.classic import dispatch
from coordinator_model.groups.classic.admissions import admission_of
from coordinator_model.groups.classic.group import ClassicGroup
from coordinator_model.groups.records import Coverage
from coordinator_model.groups.requests import MODELLED_API_KEYS
from coordinator_model.groups.tracker import Event
from coordinator_model.open_findings import OpenFindings
from coordinator_model.rules import CATALOGUE, Breach, rules_for, timers_for
from coordinator_model.rules.base import FrameRule, TimerRule, last_frame_text
from coordinator_model.rules.observation import unreadable
from coordinator_model.rules.sessions import awaits_heartbeat, last_frame_us_of, session_end_us
from coordinator_model.settings import Settings
from coordinator_model.snapshots import (
    BLOCK_SIZE,
    SnapshotError,
    StoredBlock,
    due_of,
    pack_block,
    pack_fast,
    pack_partition,
    pack_slow,
    unpack_group,
    unpack_partition,
)
from coordinator_model.wire import API_NAMES, DecodeError, decode
from coordinator_model.wire.constants import COORDINATOR_LOAD_IN_PROGRESS
from coordinator_model.wire.record import DecodedRecord, Kind, MirrorRecord, RecordError, unpack_loss

GroupKey = tuple[str, str]
"""(cluster, group)"""

BLIND_US: Final = 3_000_000
"""A capture that writes no record for longer has missed three ticks in a row, and may have missed frames."""

BLIND_GRACE_US: Final = 5_000_000
"""So long after a blind time those who were awaited in it may show up."""

CHECK_DELAY_US: Final = 100_000
"""A burst of frames is looked at by the timer rules once, this long after its first."""

# Heartbeats of the newer protocols, by the type of group in which alone they are accepted; it is shown, and not modelled yet.
_KIND_BY_API: Final = {68: "consumer", 76: "share", 88: "streams"}


class DeadLetter(NamedTuple):
    """A record that could not be made use of, for whoever keeps such records."""

    offset: int
    reason: str


_REQUEST, _RESPONSE = Kind.REQUEST, Kind.RESPONSE  # looked up once, for they are needed with each frame


class _Block:
    """Groups that came one after the other, and stand together in the snapshot."""

    __slots__ = ("keys", "packed")

    def __init__(self) -> None:
        self.keys: dict[GroupKey, None] = {}
        self.packed = b""  #: as of the last snapshot; empty if a slow part has changed since


class _TrackedGroup:
    """A group with its open findings and the time of its next check; unpacked from its snapshot when it is first needed."""

    __slots__ = ("block", "due_us", "fast_part", "group", "open_findings", "slow_part")

    def __init__(self, block: _Block) -> None:
        self.group: ClassicGroup | None = None
        self.open_findings: OpenFindings | None = None
        self.due_us: int | None = None
        self.block = block
        self.slow_part = b""  #: both parts as of the last snapshot
        self.fast_part = b""


class Coordinator:
    """The model of one partition of the mirror topic."""

    def __init__(self, *, topic: str, partition: int, settings: Settings | None = None) -> None:
        self.topic = topic
        self.partition = partition
        self.settings = settings or Settings()
        self.next_offset: int | None = None  #: offset expected next; None before the first record
        self.partitions: int | None = None  #: of the mirror topic, as far as it was told
        self.now_us = 0  #: newest capture time seen
        # Of the record that receive() has not finished with, because it raised:
        self._current_offset: int | None = None  # its offset
        self._current_findings: list[Finding] = []  # what was found before
        self._dead_letters: list[DeadLetter] = []
        self.record_counts: Counter[str] = Counter()
        self.counters = Counters()
        self._loading: dict[tuple[str, str], int] = {}  # (cluster, broker) → last time that it told anybody
        self._sight = Coverage()
        self._blind_from_us = 0  # when its newest blind time began
        self._groups: dict[GroupKey, _TrackedGroup] = {}
        self._blocks: list[_Block] = []  # their groups, one block after the other, stand in the order of _groups
        self._dirty: set[GroupKey] = set()
        self._changed: dict[GroupKey, None] = {}
        self._deadlines: list[tuple[int, GroupKey]] = []
        self._view = OpenFindings("", "")
        self._view_due_us: int | None = None

    # ------------------------------------------------------------------------------------------------ records in

    def receive(self, record: MirrorRecord) -> list[Finding]:
        """Take in the record at the next offset of the partition.

        A record below :attr:`next_offset` was seen before and changes nothing, unless it is newer than all that was seen: then the
        log was cut back and written anew. One above it means that records are missing. In both cases every group goes back to
        learning, and it is a finding.
        """
        found: list[Finding] = []
        offset, at_us, kind = record.offset, record.at_us, record.kind
        if offset == self.next_offset:
            self.next_offset = offset + 1
        elif not self._in_order(offset, at_us, found):
            return found
        self._current_offset, self._current_findings = offset, found
        if kind is Kind.GAP:
            self._gap(record, found)
        elif at_us > self.now_us:
            if at_us - self.now_us > BLIND_US and self.now_us:
                self._was_blind(at_us, found)
            self._move_clock(at_us, found)
        if kind is _REQUEST or kind is _RESPONSE:
            self._frame(record, found)
        elif kind is Kind.CLOSE:
            self._closed(record)
        elif kind is not Kind.GAP:
            self.record_counts[kind.value] += 1
            if kind is Kind.TICK:
                self.counters.tick_us = record.at_us
        self._current_offset = None
        return found

    def receive_unreadable(self, offset: int, at_us: int, group: str | None, reason: str) -> list[Finding]:
        """Take in that the record at ``offset`` could not be read at all, or that :meth:`receive` raised on it.

        A group on which the model raised is learned anew from nothing, for nobody knows in what state it was left.

        :param at_us: the record's timestamp, in microseconds; the envelope's is not known.
        """
        found: list[Finding] = []
        concerned = [key for key in self._groups if key[1] == group]
        raised = offset == self._current_offset
        if raised:
            self._current_offset, found = None, self._current_findings
        elif not self._in_order(offset, at_us, found):
            return found
        for key in concerned:
            if raised:
                self._reset(key, at_us)
            self._lose_coverage(key, at_us, "a record could not be read")
        if at_us > self.now_us:
            self._move_clock(at_us, found)
        self.record_counts["unreadable records"] += 1
        self._dead_letters.append(DeadLetter(offset, reason))
        where = f"offset {offset} of partition {self.partition} of {self.topic}"
        self._report_view("V-02", f"The record at {where} cannot be read: {reason}.", reason, at_us, found)
        return found

    def on_partition_count(self, partitions: int) -> list[Finding]:
        """Take in how many partitions the mirror topic has now.

        A group's partition hangs on their number. So when that has changed, every group may have moved, and one that has would look
        here as if all its members had fallen silent: all are forgotten, and learned anew where they are seen next.
        """
        before, self.partitions = self.partitions, partitions
        found: list[Finding] = []
        if before is None or before == partitions:
            return found
        for key in list(self._groups):
            group, open_findings = self._opened(key)
            for held in [known for known in open_findings.open.values() if not known.published]:
                open_findings.withdraw(held)
            found.extend(
                open_findings.settle(CATALOGUE, self.now_us, self.settings.quiet_ms * 1_000, list(open_findings.open), group.kind)
            )
        summary = (
            f"{self.topic} has {partitions} partitions, where it had {before}: the {len(self._groups)} groups seen in partition "
            f"{self.partition} may be in others now, and are learned anew."
        )
        self._groups.clear()
        self._blocks.clear()
        self._dirty.clear()
        self._changed.clear()
        self._report_view("V-06", summary, f"{partitions} partitions", self.now_us, found)
        return found

    def advance(self, now_us: int) -> list[Finding]:
        """Let the clock reach ``now_us`` (capture time, microseconds) without a record. Going back is ignored."""
        found: list[Finding] = []
        if now_us > self.now_us:
            self._move_clock(now_us, found)
        return found

    def next_deadline(self) -> int | None:
        """The capture time at which something is due if nothing arrives before, in microseconds; it may prove to be nothing."""
        due = [self._deadlines[0][0]] if self._deadlines else []
        if self._view_due_us is not None:
            due.append(self._view_due_us)
        return min(due, default=None)

    def drain_dead_letters(self) -> list[DeadLetter]:
        """The records since the last call that could not be made use of, by offset. To be called before :meth:`snapshot`."""
        drained, self._dead_letters = self._dead_letters, []
        return drained

    def changed_groups(self) -> list[GroupView]:
        """The groups that something happened to since the last call; a forgotten one has no content."""
        changed = []
        for cluster, name in self._changed:
            if (cluster, name) in self._groups:
                group, open_findings = self._opened((cluster, name))
                changed.append(group_view(group, len(open_findings.open), self.partition, self.now_us))
            else:
                changed.append(GroupView(cluster, name, None))
        self._changed.clear()
        return changed

    def discard_changes(self) -> None:
        """Do not tell of the changes so far: nobody wants to know."""
        self._changed.clear()

    def figures(self) -> dict[str, Any]:
        """What was counted so far, as JSON values, for the status topic."""
        return {"counters": dict(self.record_counts), "groups": len(self._groups), **self.counters.as_json()}

    # ------------------------------------------------------------------------------------------------ snapshot

    def snapshot(self) -> bytes:
        """Everything that is known, as bytes for :meth:`restore`. Only groups touched since the last call are packed anew."""
        groups = self._groups
        for key in self._dirty:
            tracked = groups.get(key)
            if tracked is not None and tracked.group is not None and tracked.open_findings is not None:
                if tracked.group.slow_changed or not tracked.slow_part:
                    tracked.slow_part = pack_slow(tracked.group, tracked.open_findings)
                    tracked.block.packed = b""
                    tracked.group.slow_changed = False
                tracked.fast_part = pack_fast(tracked.group, tracked.due_us)
        self._dirty.clear()
        for block in self._blocks:
            if not block.packed:
                block.packed = pack_block((*key, groups[key].slow_part) for key in block.keys)
        return pack_partition(
            {
                "topic": self.topic,
                "partition": self.partition,
                "next_offset": self.next_offset,
                "partitions": self.partitions,
                "now_us": self.now_us,
                "counters": dict(self.record_counts),
                "tally": self.counters.pack(),
                "loading": self._loading,
                "sight": [self._blind_from_us, self._sight.since_us],
                "view": [self._view.cluster, self._view_due_us, list(self._view.open.values())],
                "changed": [list(key) for key in self._changed],
            },
            [block.packed for block in self._blocks],
            [tracked.fast_part for tracked in groups.values()],
        )

    @classmethod
    def restore(cls, blob: bytes, *, settings: Settings | None = None) -> Self:
        """The model as it was when :meth:`snapshot` was called.

        :raises SnapshotError: when the bytes are no snapshot, or one of a newer release.
        """
        content, blocks = unpack_partition(blob)
        try:
            model = cls(topic=content["topic"], partition=content["partition"], settings=settings)
            model._fill(content)
            model._fill_blocks(blocks)
        except (LookupError, TypeError, ValueError) as error:
            raise SnapshotError(f"not a snapshot of the model: {error!r}") from None
        return model

    def _fill(self, content: dict[str, Any]) -> None:
        self.next_offset = content["next_offset"]
        self.now_us = content["now_us"]
        self.partitions = content.get("partitions")  # not told by the first releases
        self.record_counts.update(content["counters"])
        if "tally" in content:  # else an earlier release wrote it
            self.counters = Counters.unpack(content["tally"])
        self._loading.update(content["loading"])
        self._blind_from_us, self._sight.since_us = content.get("sight", (0, 0))  # earlier releases did not know
        cluster, self._view_due_us, view = content["view"]
        self._view = OpenFindings(cluster, "")
        for known in view:
            self._view.open[known.rule, known.subject] = known
        self._changed = dict.fromkeys((cluster, name) for cluster, name in content["changed"])

    def _fill_blocks(self, blocks: Iterable[StoredBlock]) -> None:
        for packed, groups in blocks:
            block = _Block()
            block.packed = packed
            self._blocks.append(block)
            for cluster, name, slow_part, fast_part in groups:
                key = cluster, name
                block.keys[key] = None
                tracked = self._groups[key] = _TrackedGroup(block)
                tracked.slow_part, tracked.fast_part, tracked.due_us = slow_part, fast_part, due_of(fast_part)
                if tracked.due_us is not None:
                    heappush(self._deadlines, (tracked.due_us, key))

    # ------------------------------------------------------------------------------------------------ within

    def _in_order(self, offset: int, at_us: int, found: list[Finding]) -> bool:
        """Whether the record at ``offset`` is new; says so if some before it are missing."""
        expected = self.next_offset
        if expected is None:
            self.counters.since_us = at_us
        elif offset < expected:
            if at_us <= self.now_us:
                self.record_counts["repeated records"] += 1
                return False
            self._written_anew(expected, offset, at_us, found)
        elif offset > expected:
            self._hole(expected, offset, at_us, found)
        self.next_offset = offset + 1
        return True

    def _hole(self, expected: int, offset: int, at_us: int, found: list[Finding]) -> None:
        missing = offset - expected
        self.record_counts["missing records"] += missing
        self.counters.gaps[MIRROR] += 1
        for key in list(self._groups):
            self._lose_coverage(key, at_us, "records of the mirror are missing")
        summary = (
            f"{missing} records of partition {self.partition} of {self.topic} are missing (offsets {expected} to {offset - 1}): "
            f"its {len(self._groups)} groups are back to learning."
        )
        self._report_view("V-01", summary, f"offset {offset} where {expected} was expected", at_us, found)

    def _written_anew(self, expected: int, offset: int, at_us: int, found: list[Finding]) -> None:
        """An offset that was seen before holds a record that was not: it is newer than everything that was."""
        self.record_counts["offsets gone back"] += 1
        self.counters.gaps[MIRROR] += 1
        for key in list(self._groups):
            self._lose_coverage(key, at_us, "the mirror's log was cut back")
        summary = (
            f"Partition {self.partition} of {self.topic} was cut back from offset {expected} to {offset} or before, and written anew: "
            f"its {len(self._groups)} groups are back to learning."
        )
        self._report_view("V-01", summary, f"a new record at offset {offset} where {expected} was expected", at_us, found)

    def _frame(self, record: MirrorRecord, found: list[Finding]) -> None:
        api_key = record.api_key
        is_request = record.kind is _REQUEST
        if api_key not in MODELLED_API_KEYS or not record.group:
            self._unmodelled(record, found)
            return
        if record.cut_bytes:
            self._undecodable(record, TRUNCATED, f"{record.cut_bytes} bytes of it were not captured", found)
            return
        body = record.body if type(record) is DecodedRecord else None
        correlation_id = record.correlation_id
        if body is None:
            try:
                frame = decode(record.frame, request=is_request, api_key=api_key, api_version=record.api_version)
            except DecodeError as error:
                self._undecodable(record, UNDECODABLE, str(error), found)
                return
            body, correlation_id = frame.body, frame.correlation_id
        counts = (self.counters.requests if is_request else self.counters.responses)[api_key]
        key = (record.cluster, record.group)
        group, open_findings = self._touch(key, record.at_us)
        counts[record.api_version] += 1
        if is_request:
            happenings = dispatch.request(group, record, body)
        else:
            happenings = dispatch.response(group, record, body, correlation_id)
            self._note_loading(record, body)
        if happenings:
            self._judge(group, open_findings, happenings, record.at_us, found)
        if group.changed:
            self._after(key, record.at_us)
        elif group.counted:
            self._changed[key] = None
        group.counted = False

    def _judge(
        self, group: ClassicGroup, open_findings: OpenFindings, happenings: Iterable[Event], at_us: int, found: list[Finding]
    ) -> None:
        """Let the rules look at what happened."""
        for happening in happenings:
            for rule in rules_for(group, happening):
                breach = rule.checks[type(happening)](group, happening)
                if breach is not None:
                    found.extend(self._report(group, open_findings, rule, breach, at_us))
                    group.changed = True  # its open findings are shown with it

    def _note_loading(self, record: MirrorRecord, body: Any) -> None:
        if getattr(body, "error_code", 0) == COORDINATOR_LOAD_IN_PROGRESS:
            self._loading[record.cluster, record.broker] = record.at_us

    def _unmodelled(self, record: MirrorRecord, found: list[Finding]) -> None:
        """A frame of an API that is not modelled: of use is only what a heartbeat's answer tells of the group's type.

        A request tells nothing of it: a stray client may send one to any group, and is refused.
        """
        self.record_counts[f"{API_NAMES.get(record.api_key, record.api_key)} {record.kind.value} not modelled"] += 1
        self.counters.lost(record, NOT_MODELLED)
        kind, key = _KIND_BY_API.get(record.api_key), (record.cluster, record.group or "")
        if kind is None or not record.group:
            return
        if key in self._groups and self._touch(key, record.at_us)[0].kind == kind:
            return
        admitted = admission_of(record)
        if admitted is None:
            return
        group, open_findings = self._touch(key, record.at_us)
        self._judge(group, open_findings, group.becomes(kind, admitted), record.at_us, found)
        self._after(key, record.at_us)

    def _undecodable(self, record: MirrorRecord, outcome: str, reason: str, found: list[Finding]) -> None:
        self.record_counts["undecodable frames"] += 1
        self.counters.lost(record, outcome)
        self._dead_letters.append(DeadLetter(record.offset, reason))
        assert record.group is not None
        key = (record.cluster, record.group)
        group, open_findings = self._touch(key, record.at_us)
        breach = unreadable(record, group.abandon(record), reason)
        self._lose_coverage(key, record.at_us, "a frame could not be read")
        found.extend(self._report(group, open_findings, CATALOGUE["V-02"], breach, record.at_us))
        self._after(key, record.at_us)

    def _closed(self, record: MirrorRecord) -> None:
        self.record_counts[record.kind.value] += 1
        key = (record.cluster, record.group or "")
        if key in self._groups:
            group, _ = self._opened(key)
            group.connection_closed(record.connection, record.at_us)
            self._after(key, record.at_us)

    def _was_blind(self, to_us: int, found: list[Finding]) -> None:
        """Not even a tick came for a while: the capture stood still, or its clock was set. Neither is the members' doing.

        A short while puts off what would have fallen due in it; after a long one nobody knows what was missed.
        """
        from_us, self._sight.since_us = self.now_us, to_us
        blind_us = to_us - from_us
        self._blind_from_us = from_us
        if blind_us < self.settings.silence_ms * 1_000 or not self._groups:
            return
        self.counters.gaps[CAPTURE] += 1
        self.counters.gap_us += blind_us
        for key in list(self._groups):
            self._lose_coverage(key, to_us, "the capture stood still")
        summary = (
            f"Partition {self.partition} of {self.topic} has no record, not even a tick, for {blind_us / 1_000_000:.1f} s: "
            f"its {len(self._groups)} groups are back to learning."
        )
        self._report_view("V-04", summary, f"no record for {blind_us / 1_000_000:.1f} s", to_us, found)

    def _gap(self, record: MirrorRecord, found: list[Finding]) -> None:
        """Frames are missing: what was known before is not known after. Nothing falls due on account of the time between."""
        words, from_us = self._loss_in_words(record), self._loss_began_us(record)
        if from_us > self.now_us:
            self._move_clock(from_us, found)
        concerned = [(record.cluster, record.group)] if record.group else list(self._groups)
        for key in concerned:
            if key in self._groups:
                self._lose_coverage(key, record.at_us, "the capture lost frames")
        whose = f"group {record.group}" if record.group else f"all {len(self._groups)} groups of partition {self.partition}"
        summary = f"The capture lost {words}: {whose} back to learning."
        self._report_view("V-04", summary, f"a gap record: {words}", record.at_us, found)
        if record.at_us > self.now_us:
            if not record.group:
                self._blind_from_us, self._sight.since_us = self.now_us, record.at_us
            self._move_clock(record.at_us, found)

    def _loss_began_us(self, record: MirrorRecord) -> int:
        """When the loss that a gap record tells of began, capture time; now if that cannot be read."""
        try:
            return min(unpack_loss(record.frame).from_us, record.at_us)
        except RecordError:
            return self.now_us

    def _loss_in_words(self, record: MirrorRecord) -> str:
        try:
            lost = unpack_loss(record.frame)
        except RecordError:
            self.counters.gaps[CAPTURE] += 1
            return "an unknown number of records"
        if lost.records == 0 and record.connection:
            self.counters.gaps[CONNECTION] += 1
            # Not a loss on the way: the capturer cannot follow this client (TLS, another protocol, packets it did not see).
            return f"sight of connection {record.connection} from {record.client_address}, which it cannot follow"
        self.counters.gaps[CAPTURE] += 1
        self.counters.gap_us += max(0, lost.to_us - lost.from_us)
        self.record_counts["records lost by the capture"] += lost.records
        return f"{lost.records} records over {(lost.to_us - lost.from_us) / 1_000_000:.1f} s"

    def _opened(self, key: GroupKey) -> tuple[ClassicGroup, OpenFindings]:
        """The group and its open findings, made or unpacked as needed.

        :raises SnapshotError: whenever it is asked for, if the group cannot be unpacked: never half a group.
        """
        tracked = self._groups.get(key)
        if tracked is None:
            tracked = self._track(key)
        if tracked.group is None or tracked.open_findings is None:
            cluster, name = key
            group = ClassicGroup(
                name, cluster, settings=self.settings, loading=self._loading, counters=self.counters, coverage=self._sight
            )
            open_findings = (
                unpack_group(tracked.slow_part, tracked.fast_part, group) if tracked.slow_part else OpenFindings(cluster, name)
            )
            tracked.group, tracked.open_findings = group, open_findings
        return tracked.group, tracked.open_findings

    def _touch(self, key: GroupKey, at_us: int) -> tuple[ClassicGroup, OpenFindings]:
        """The group that a frame names: how long it is known hangs on when that was last."""
        group, open_findings = self._opened(key)
        group.last_record_us = at_us
        self._dirty.add(key)
        return group, open_findings

    def _track(self, key: GroupKey) -> _TrackedGroup:
        if not self._blocks or len(self._blocks[-1].keys) >= BLOCK_SIZE:
            self._blocks.append(_Block())
        block = self._blocks[-1]
        block.keys[key] = None
        block.packed = b""
        tracked = self._groups[key] = _TrackedGroup(block)
        self._dirty.add(key)
        return tracked

    def _drop(self, key: GroupKey) -> None:
        block = self._groups.pop(key).block
        del block.keys[key]
        block.packed = b""
        if not block.keys:
            self._blocks.remove(block)
        self._changed[key] = None

    def _lose_coverage(self, key: GroupKey, at_us: int, because: str) -> None:
        group, _ = self._opened(key)
        group.on_gap(at_us, because)
        self._after(key, at_us)

    def _reset(self, key: GroupKey, at_us: int) -> None:
        """Know nothing of a group but its name and what is open against it."""
        group, _ = self._opened(key)
        fresh = ClassicGroup(
            group.name, group.cluster, settings=self.settings, loading=self._loading, counters=self.counters, coverage=self._sight
        )
        fresh.kind, fresh.incarnation, fresh.last_record_us = group.kind, group.incarnation, at_us
        self._groups[key].group = fresh

    def _after(self, key: GroupKey, at_us: int) -> None:
        """Something other than steady traffic happened: show it, store it, and let the timer rules look soon."""
        tracked = self._groups[key]
        assert tracked.group is not None
        tracked.group.changed = False
        tracked.group.slow_changed = True
        self._dirty.add(key)
        self._changed[key] = None
        self._schedule(key, tracked, at_us + CHECK_DELAY_US)

    def _schedule(self, key: GroupKey, tracked: _TrackedGroup, due_us: int) -> None:
        if tracked.due_us is None or due_us < tracked.due_us:
            tracked.due_us = due_us
            self._dirty.add(key)
            heappush(self._deadlines, (due_us, key))

    def _due_group(self, due_us: int, key: GroupKey) -> _TrackedGroup | None:
        """The group that a deadline is for; None if that was put off or brought forward since, or the group is gone."""
        tracked = self._groups.get(key)
        return tracked if tracked is not None and tracked.due_us == due_us else None

    def _move_clock(self, now_us: int, found: list[Finding]) -> None:
        self.now_us = now_us
        deadlines = self._deadlines
        while deadlines and deadlines[0][0] <= now_us:
            due_us, key = heappop(deadlines)
            tracked = self._due_group(due_us, key)
            if tracked is not None:
                tracked.due_us = None
                try:
                    self._check(key, tracked, found)
                except SnapshotError:
                    raise
                except Exception as error:  # the record in hand has no part in it
                    self._on_model_error(key, error, found)
        if self._view.open:
            self._settle_view(found)

    def _check(self, key: GroupKey, tracked: _TrackedGroup, found: list[Finding]) -> None:
        """Let time act on a group: sessions run out, timers fall due, findings are published and resolved."""
        group, open_findings = self._opened(key)
        now_us, quiet_us = self.now_us, self.settings.quiet_ms * 1_000
        coming = [group.last_record_us + self.settings.forget_group_ms * 1_000]
        before = len(open_findings.open)
        for member in list(group.members.values()):
            end_us = session_end_us(group, member, last_frame_us_of(member))
            if end_us is not None and end_us <= now_us:
                self._judge(group, open_findings, group.fell_silent(member, end_us), end_us, found)
            elif end_us is not None:
                coming.append(end_us)
            elif awaits_heartbeat(group, member):
                coming.append(now_us + 1_000_000)  # its answer makes nobody look at the group
        told = ((due, rule) for rule in timers_for(group) for due in rule.due(group))
        dues = sorted((pair for pair in told if (pair[0].until_us or now_us + 1) > now_us), key=lambda pair: pair[0].at_us)
        standing = {(rule.id, due.subject) for due, rule in dues}
        for due, rule in dues:
            due_us = self._postponed_us(due.at_us)
            if due.until_us is not None:
                coming.append(due.until_us)
            if due_us > now_us:
                coming.append(due_us)
            elif open_findings.is_news(rule, due):
                breach = due.describe()._replace(severity=due.severity)
                found.extend(self._report(group, open_findings, rule, breach, due.at_us))
        self._withdraw_explained(group, open_findings)
        over = [
            (known.rule, known.subject)
            for known in open_findings.open.values()
            if self._is_over(group, known.rule, known.subject, standing)
        ]
        found.extend(open_findings.settle(CATALOGUE, now_us, quiet_us, over, group.kind))
        if group.changed or len(open_findings.open) != before:
            group.changed = False
            group.slow_changed = True
            self._changed[key] = None
        if before or open_findings.open:
            group.slow_changed = True  # a finding may have been published, though none came or went
        self._dirty.add(key)
        if coming[0] <= now_us:
            found.extend(open_findings.settle(CATALOGUE, now_us, quiet_us, list(open_findings.open), group.kind))
            self._drop(key)
            return
        coming[0] = max(coming[0], now_us + 1_000_000)
        next_us = open_findings.next_due_us(CATALOGUE, quiet_us)
        if next_us is not None:
            coming.append(next_us)
        self._schedule(key, tracked, min(coming))

    def _postponed_us(self, due_us: int) -> int:
        """When something falls due that would have done so in a blind time, or just after it."""
        visible_us = self._sight.since_us + BLIND_GRACE_US
        return visible_us if self._blind_from_us < due_us < visible_us else due_us

    def _on_model_error(self, key: GroupKey, error: Exception, found: list[Finding]) -> None:
        """The model raised on a group's timers: learn the group anew, and say so."""
        self.record_counts["groups that the model stumbled over"] += 1
        self._reset(key, self.now_us)
        group, open_findings = self._opened(key)
        reason = raised_in_words(error)
        breach = Breach("", f"Group {group.name} is learned anew: on its timers {reason}.", reason, ())
        found.extend(self._report(group, open_findings, CATALOGUE["V-02"], breach, self.now_us))
        self._lose_coverage(key, self.now_us, "the model stumbled over it")

    def _withdraw_explained(self, group: ClassicGroup, open_findings: OpenFindings) -> None:
        """Drop held findings that a frame captured out of order has explained meanwhile."""
        for known in open_findings.held(self.now_us):
            rule = CATALOGUE[known.rule]
            if isinstance(rule, FrameRule) and rule.explained is not None and rule.explained(group, known.subject, known.opened_us):
                open_findings.withdraw(known)
                self.record_counts["findings withdrawn"] += 1

    @staticmethod
    def _is_over(group: ClassicGroup, rule_id: str, subject: str, standing: set[tuple[str, str]]) -> bool:
        rule = CATALOGUE[rule_id]
        if isinstance(rule, FrameRule):
            return rule.over is not None and rule.over(group, subject)
        return isinstance(rule, TimerRule) and (rule_id, subject) not in standing

    def _report(self, group: ClassicGroup, open_findings: OpenFindings, rule: Any, breach: Breach, at_us: int) -> Iterable[Finding]:
        hold_us = self.settings.reorder_window_ms * 1_000 if isinstance(rule, FrameRule) else 0
        member = group.members.get(breach.member_id or "")
        if member is not None:
            breach = breach._replace(observed=breach.observed + last_frame_text(member))
        return list(
            open_findings.report(rule, breach, at_us=at_us, hold_us=hold_us, incarnation=group.incarnation, group_type=group.kind)
        )

    def _report_view(self, rule_id: str, summary: str, observed: str, at_us: int, found: list[Finding]) -> None:
        subject = f"{self.topic}/{self.partition}"
        breach = Breach(subject, summary, observed, ())
        rule = CATALOGUE[rule_id]
        found.extend(self._view.report(rule, breach, at_us=at_us, hold_us=0, incarnation=0, group_type=""))
        self._view_due_us = self._view.next_due_us(CATALOGUE, self.settings.quiet_ms * 1_000)

    def _settle_view(self, found: list[Finding]) -> None:
        quiet_us = self.settings.quiet_ms * 1_000
        found.extend(self._view.settle(CATALOGUE, self.now_us, quiet_us, (), ""))
        self._view_due_us = self._view.next_due_us(CATALOGUE, quiet_us)


def raised_in_words(error: Exception) -> str:
    """What the model raised, and where: all that is left of a traceback once it is in a finding."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = f" in line {trace.tb_lineno} of {trace.tb_frame.f_globals.get('__name__')}" if trace is not None else ""
    return f"the model raised {type(error).__name__}: {error}{where}"

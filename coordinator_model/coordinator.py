"""The model of one mirror partition: records in, findings out.

All frames of a group are in one partition of the mirror, as its state is in one partition of ``__consumer_offsets``. Each partition
therefore has its own model, which shares nothing with the others.

*The clock is in the data*: now is the newest capture time in this partition, and every deadline is compared with it, so a backlog
replays as it happened. *Offsets are contiguous*: a repeated record is skipped, and a missing one is detected. *Nothing here may
depend on batches*: a caller of :meth:`Coordinator.receive` may stop after any record, take a snapshot and continue elsewhere.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final, Self

from coordinator_model.admissions import CONVERTING, Admissions
from coordinator_model.continuity import BLIND_US, Continuity, Interruption, is_set_back, loss_began_us, may_wait
from coordinator_model.event_log import EventLog
from coordinator_model.events import GroupEvent
from coordinator_model.finding import Finding
from coordinator_model.group_store import GroupStore
from coordinator_model.group_view import GroupView
from coordinator_model.groups.group_coordinator import note_answer
from coordinator_model.groups.requests import BESIDE_MEMBERSHIP
from coordinator_model.lost_frames import FOLLOWED, DeadLetter, LostFrames
from coordinator_model.rule_engine import PartitionFindings, RuleEngine
from coordinator_model.rules import CATALOGUE, Breach
from coordinator_model.scheduler import GroupKey, Scheduler
from coordinator_model.settings import Settings
from coordinator_model.snapshots import PartitionState, SnapshotError, pack_partition, unpack_partition
from coordinator_model.tap_watch import tap_of
from coordinator_model.wire import DecodeError, decode
from coordinator_model.wire.constants import API_VERSIONS, COORDINATOR_LOAD_IN_PROGRESS, FIND_COORDINATOR
from coordinator_model.wire.record import Kind, MirrorRecord, unpack_tick, unpack_topics, unpack_unreached
from coordinator_model.wording import counted

_LOOK_AGAIN_US: Final = 1_000_000
"""When what is due in a group is looked at again, whose tap writes nothing."""

_REQUEST, _RESPONSE = Kind.REQUEST, Kind.RESPONSE  # bound once, since every frame uses them


class Coordinator:
    """The model of one partition of the mirror topic."""

    def __init__(
        self, *, topic: str, partition: int, settings: Settings | None = None, state: PartitionState | None = None
    ) -> None:
        """Make the model of a partition.

        :param state: what a snapshot holds of it beside its groups.
        """
        state = state or PartitionState(topic, partition)
        self.topic = topic
        self.partition = partition
        self.settings = settings or Settings()
        self.partitions = state.partitions  #: of the mirror topic, once it is known
        self.now_us = state.now_us  #: newest capture time seen
        self.record_counts = Counter(state.record_counts)
        self.counters = state.counters
        # Of the record on which receive() raised:
        self._current_offset: int | None = None
        self._current_findings: list[Finding] = []
        self._group_events = EventLog(state.events)
        self._disconnections = state.disconnections  # by (cluster, broker)
        self._loading = state.loading  # (cluster, broker) → time of its last COORDINATOR_LOAD_IN_PROGRESS
        self._continuity = Continuity(topic, partition, self.settings, self.counters, self.record_counts)
        self._continuity.next_offset, self._continuity.blind_from_us = state.next_offset, state.blind_from_us
        self._continuity.coverage.since_us = state.blind_to_us
        self._scheduler = Scheduler()
        self._facts = state.facts
        self._taps = state.taps
        self.groups = GroupStore(
            self.settings,
            self._scheduler,
            loading=self._loading,
            counters=self.counters,
            coverage=self._continuity.coverage,
            disconnections=self._disconnections,
            group_events=self._group_events,
            facts=self._facts,
        )
        self.groups.unshown = dict.fromkeys(state.changed)
        self._rules = RuleEngine(self.settings, self.record_counts, self._continuity.postponed_us)
        self._admissions = Admissions(self.groups, self._rules, state.waiting)
        self._own = PartitionFindings(topic, partition, self.settings)
        self._own.due_us = state.due_us
        self._own.open_findings.open.update({(known.rule, known.subject): known for known in state.findings})
        self._lost_frames = LostFrames(self.groups, self._rules, self._own, self.counters, self.record_counts)
        self._late_us = self.settings.late_us

    @property
    def next_offset(self) -> int | None:
        """The offset expected next; None before the first record."""
        return self._continuity.next_offset

    # ------------------------------------------------------------------------------------------------ records in

    def receive(self, record: MirrorRecord) -> list[Finding]:
        """Process the record at the next offset of the partition; return its findings.

        A record below :attr:`next_offset` is a repeated one and changes nothing, unless it is newer than all others: then the log
        was truncated and written again. A record above it means that records are missing. In both cases every group goes back to
        learning, and a finding reports it.
        """
        found: list[Finding] = []
        offset, at_us, kind = record.offset, record.at_us, record.kind
        continuity = self._continuity
        if offset == continuity.next_offset:
            continuity.next_offset = offset + 1
        elif not self._follow(offset, at_us, found):
            return found
        self._current_offset, self._current_findings = offset, found
        if kind is Kind.GAP:
            self._gap(record, found)
        elif at_us > self.now_us + BLIND_US:
            self._reach(at_us, found)
        elif at_us > self.now_us:
            self._move_clock(at_us, found)
        elif (
            at_us < self.now_us - self._late_us
            and record.api_key in FOLLOWED
            and tap_of(record.connection) not in self._taps.behind(self.now_us)  # else what is due in its groups waits
        ):
            found.extend(self._own.out_of_order(record, self.now_us))
        if kind is _REQUEST or kind is _RESPONSE:
            self._frame(record, found)
        elif kind is Kind.CLOSE:
            self._closed(record)
        elif kind is Kind.EXPIRED:
            self._expired(record, found)
        elif kind is not Kind.GAP:
            self.record_counts[kind.value] += 1
            if kind is Kind.TOPICS:
                names, partitions = unpack_topics(record.frame)
                self._facts.learn_topics(record.cluster, names)
                self._facts.learn_partitions(record.cluster, partitions, record.at_us)
                self._facts.asked_in_vain(record, partitions)
            elif kind is Kind.UNREACHED:
                self._facts.connections_failed(record, unpack_unreached(record.frame))
                self.groups.check_those_named(record.broker, record.at_us)
            elif kind is Kind.OPEN:
                self._facts.connection_opened(record)
            elif kind is Kind.TICK:
                self._ticked(record, found)
        self._current_offset = None
        return found

    def receive_unreadable(self, offset: int, at_us: int, group: str | None, reason: str) -> list[Finding]:
        """Process a record at ``offset`` that cannot be read, or on which :meth:`receive` raised; return its findings.

        A group on which the model raised is reset, because its state is unknown.

        :param at_us: the record's timestamp, in microseconds, because the envelope's is not known.
        """
        found: list[Finding] = []
        raised = offset == self._current_offset
        if raised:
            self._current_offset, found = None, self._current_findings
        elif not self._follow(offset, at_us, found):
            return found
        for key in self.groups:
            if key[1] == group:
                if raised:
                    self.groups.reset(key, at_us)
                self.groups.lose_coverage(key, at_us, "a record could not be read")
        if at_us > self.now_us:
            self._move_clock(at_us, found)
        self.record_counts["unreadable records"] += 1
        self._lost_frames.dead_letters.append(DeadLetter(offset, reason))
        where = f"offset {offset} of partition {self.partition} of {self.topic}"
        found.extend(self._own.report("V-02", f"The record at {where} cannot be read: {reason}.", reason, at_us))
        return found

    def on_partition_count(self, partitions: int) -> list[Finding]:
        """Process the current number of partitions of the mirror topic; return the findings.

        The number determines the partition of each group. When it changes, every group may move, and a moved group would look here
        as if all its members had fallen silent. All groups are dropped, and learned where they are seen next.
        """
        before, self.partitions = self.partitions, partitions
        found: list[Finding] = []
        if before is None or before == partitions:
            return found
        for key in self.groups:
            group, open_findings = self.groups.opened(key)
            for held in [known for known in open_findings.open.values() if not known.published]:
                open_findings.withdraw(held)
            found.extend(self._rules.resolve_all(open_findings, self.now_us))
            group.on_gap(self.now_us, f"the mirror topic has {partitions} partitions, where it had {before}")
        summary = (
            f"The mirror topic {self.topic} has {partitions} partitions, where it had {before}: "
            f"{counted(len(self.groups), 'group')} seen in partition {self.partition} may be in others now, and must be learned again."
        )
        self.groups.clear()
        found.extend(self._own.report("V-06", summary, f"{partitions} partitions", self.now_us))
        return found

    def advance(self, now_us: int) -> list[Finding]:
        """Advance the clock to ``now_us`` (capture time) without a record; return the findings. Earlier times are ignored."""
        found: list[Finding] = []
        if now_us > self.now_us:
            self._move_clock(now_us, found)
        return found

    def conclude(self) -> list[Finding]:
        """Return what is still to be published when no record follows: how often each open finding occurred. Events may follow, too."""
        self._group_events.conclude()
        found = list(self._own.open_findings.count_out(CATALOGUE))
        for key in self.groups:
            _, open_findings = self.groups.opened(key)
            found.extend(open_findings.count_out(CATALOGUE))
        return found

    def standing(self) -> list[Finding]:
        """Return the published findings that are open, and let :meth:`changed_groups` return all groups: for readers that have neither."""
        found = list(self._own.open_findings.standing(CATALOGUE))
        for key in self.groups:
            _, open_findings = self.groups.opened(key)
            found.extend(open_findings.standing(CATALOGUE))
            self.groups.unshown[key] = None
        return found

    # ------------------------------------------------------------------------------------------------ results out

    def drain_dead_letters(self) -> list[DeadLetter]:
        """Return the records since the last call that could not be modelled. Call this before :meth:`snapshot`."""
        drained, self._lost_frames.dead_letters = self._lost_frames.dead_letters, []
        return drained

    def drain_events(self) -> list[GroupEvent]:
        """Return what has happened in the groups since the last call, in order. Call this before :meth:`snapshot`."""
        return self._group_events.drain()

    def changed_groups(self) -> list[GroupView]:
        """Return the groups that changed since the last call; a dropped one has no content."""
        changed = []
        for cluster, name in self.groups.unshown:
            if (cluster, name) in self.groups:
                group, open_findings = self.groups.opened((cluster, name))
                changed.append(group.view(len(open_findings.open), self.partition, self.now_us))
            else:
                changed.append(GroupView(cluster, name, None))
        self.groups.unshown.clear()
        return changed

    def discard_changes(self) -> None:
        """Exclude the changes so far from :meth:`changed_groups`."""
        self.groups.unshown.clear()

    def figures(self) -> dict[str, Any]:
        """Return the counters as JSON values, for the status topic."""
        return {"counters": dict(self.record_counts), "groups": len(self.groups), **self.counters.as_json()}

    def snapshot(self) -> bytes:
        """Return the whole state as bytes for :meth:`restore`. Only groups touched since the last call are packed again."""
        state = PartitionState(
            topic=self.topic,
            partition=self.partition,
            next_offset=self.next_offset,
            partitions=self.partitions,
            now_us=self.now_us,
            record_counts=self.record_counts,
            counters=self.counters,
            loading=self._loading,
            disconnections=self._disconnections,
            blind_from_us=self._continuity.blind_from_us,
            blind_to_us=self._continuity.coverage.since_us,
            due_us=self._own.due_us,
            findings=list(self._own.open_findings.open.values()),
            changed=list(self.groups.unshown),
            waiting=self._admissions.waiting,
            facts=self._facts,
            events=self._group_events.stored(),
            taps=self._taps,
        )
        return pack_partition(state, *self.groups.pack())

    @classmethod
    def restore(cls, blob: bytes, *, settings: Settings | None = None) -> Self:
        """Return the model as it was when :meth:`snapshot` was called.

        :raises SnapshotError: when the bytes are no snapshot, or one of a newer release.
        """
        state, blocks = unpack_partition(blob)
        model = cls(topic=state.topic, partition=state.partition, settings=settings, state=state)
        model.groups.fill(blocks)
        return model

    # ------------------------------------------------------------------------------------------------ continuity

    def _follow(self, offset: int, at_us: int, found: list[Finding]) -> bool:
        """Return False if the record is a repeated one; report the gap that its offset shows."""
        if self._continuity.is_repeated(offset, at_us, self.now_us):
            return False
        self._interrupted(self._continuity.follow(offset, at_us, len(self.groups)), list(self.groups), at_us, found)
        return True

    def _gap(self, record: MirrorRecord, found: list[Finding]) -> None:
        """Send the groups concerned back to learning. Nothing falls due because of the time in the gap.

        A group goes on if what is missing can only be a request of one member that changes nothing for the others.
        """
        from_us = loss_began_us(record, self.now_us)
        if from_us > self.now_us:
            self._reach(from_us, found)
        if is_set_back(record):
            self._interrupted(self._continuity.gap(record, 0, 0), [], record.at_us, found)
            return
        concerned = [(record.cluster, record.group)] if record.group else list(self.groups)
        if may_wait(record):
            concerned = [key for key in concerned if not self.groups.waits_unseen(key, record.connection, record.at_us)]
        self._interrupted(self._continuity.gap(record, len(self.groups), len(concerned)), concerned, record.at_us, found)
        if record.at_us > self.now_us:
            self._continuity.gap_ended(record, self.now_us)
            self._move_clock(record.at_us, found)

    def _interrupted(self, gap: Interruption | None, concerned: list[GroupKey], at_us: int, found: list[Finding]) -> None:
        if gap is None:
            return
        self._admissions.interrupted()
        for key in concerned:
            if key in self.groups:
                self.groups.lose_coverage(key, at_us, gap.reason)
        found.extend(self._own.report(gap.rule, gap.summary, gap.observed, at_us, action=gap.action))

    # ------------------------------------------------------------------------------------------------ frames

    def _frame(self, record: MirrorRecord, found: list[Finding]) -> None:
        api_key = record.api_key
        if record.step_us:
            self._facts.step_us = max(self._facts.step_us, record.step_us)
        is_request = record.kind is _REQUEST
        if not is_request:
            self._facts.answered(record.cluster, record.broker, record.at_us)
            if self._disconnections:
                note_answer(self._disconnections, record.cluster, record.broker, record.at_us)
        if api_key == API_VERSIONS and not is_request and not record.cut_bytes:
            self._facts.saw_versions(record.cluster, record.broker, record.frame, record.api_version)
        group_id, cut_bytes = record.group or "", record.cut_bytes
        if (
            api_key not in FOLLOWED
            or not (group_id or cut_bytes)
            or (api_key in BESIDE_MEMBERSHIP and _asks_about_unknown(record, self.groups))
        ):
            self._lost_frames.unmodelled(record)
            return
        if cut_bytes:
            found.extend(self._lost_frames.cut(record))
            return
        body = record.body
        correlation_id = record.correlation_id
        if body is None:
            try:
                frame = decode(record.frame, request=is_request, api_key=api_key, api_version=record.api_version)
            except DecodeError as error:
                found.extend(self._lost_frames.undecodable(record, str(error)))
                return
            body, correlation_id = frame.body, frame.correlation_id
        if api_key == FIND_COORDINATOR and not is_request:
            self._facts.nodes.coordinator_named(record, body)
        counts = (self.counters.requests if is_request else self.counters.responses)[api_key]
        counts[record.api_version] += 1
        key = (record.cluster, group_id)
        if api_key in CONVERTING and self._admissions.takes(record, key, body, found):
            return
        group, open_findings = self.groups.touched(key, record.at_us)
        if is_request:
            events = group.request(record, body)
        else:
            events = group.response(record, body, correlation_id)
            if getattr(body, "error_code", 0) == COORDINATOR_LOAD_IN_PROGRESS:
                self._loading[record.cluster, record.broker] = record.at_us
        if events:
            found.extend(self._rules.on_events(group, open_findings, events, record.at_us))
        if group.changed:
            self.groups.changed(key, record.at_us)
        elif group.counted:
            self.groups.unshown[key] = None
        group.counted = False

    def _ticked(self, record: MirrorRecord, found: list[Finding]) -> None:
        """Take note of a tick. Each goes to every partition, so one alone reports taps that are silent."""
        facts = unpack_tick(record.frame)
        self.counters.ticked(record.connection, record.cluster, record.at_us, facts)
        before = self._taps.note(record, facts, self.now_us)
        if before:
            self.groups.shown_again(before, self.now_us, "the tap was started again")
        for name in list(self._taps.given_up(self.now_us)):
            self.groups.shown_again(name, self.now_us, "the tap has been silent for 15 minutes")
        if self.partition == 0:
            found.extend(self._own.silent_taps(self._taps.silent(self.now_us, self._continuity.coverage.since_us), self.now_us))

    def _closed(self, record: MirrorRecord) -> None:
        self.record_counts[record.kind.value] += 1
        key = (record.cluster, record.group or "")
        self._admissions.closed(record.connection)
        if key in self.groups:
            self.groups.opened(key)[0].connection_closed(record.connection, record.at_us)
            self.groups.changed(key, record.at_us)

    def _expired(self, record: MirrorRecord, found: list[Finding]) -> None:
        self.record_counts[record.kind.value] += 1
        key = (record.cluster, record.group or "")
        if key in self.groups:
            group, open_findings = self.groups.opened(key)
            events = group.session_expired(record.frame.decode("utf-8", "replace"), record.at_us)
            found.extend(self._rules.on_events(group, open_findings, events, record.at_us))
            self.groups.changed(key, record.at_us)

    # ------------------------------------------------------------------------------------------------ time

    def _reach(self, at_us: int, found: list[Finding]) -> None:
        """Move the clock to the time of a record, across a blind time if no record was captured for that long."""
        if at_us - self.now_us > BLIND_US and self.now_us:
            blind = self._continuity.was_blind(self.now_us, at_us, len(self.groups))
            self._interrupted(blind, list(self.groups), at_us, found)
        self._move_clock(at_us, found)

    def _move_clock(self, now_us: int, found: list[Finding]) -> None:
        self.now_us = now_us
        behind: frozenset[str] | None = None
        while (key := self._scheduler.pop_due(now_us)) is not None:
            if behind is None:
                behind = self._taps.behind(now_us)
            try:
                if behind and self.groups.opened(key)[0].is_shown_by(behind):
                    self.groups.mark(key)
                    self._scheduler.schedule(key, now_us + _LOOK_AGAIN_US)
                else:
                    self._check(key, found)
            except SnapshotError:
                raise
            except Exception as error:  # unrelated to the current record: the group is learned again
                self.record_counts["groups that the model stumbled over"] += 1
                self.groups.reset(key, self.now_us)
                group, open_findings = self.groups.opened(key)
                reason = raised_in_words(error)
                breach = Breach("", f"Group {group.name} is learned again: on its timers {reason}.", reason, ())
                found.extend(self._rules.report(group, open_findings, CATALOGUE["V-02"], breach, self.now_us))
                self.groups.lose_coverage(key, self.now_us, "the model stumbled over it")
        self._group_events.settle(now_us)
        if self._own.due_us is not None and self._own.due_us <= now_us:
            found.extend(self._own.settle(now_us))

    def _check(self, key: GroupKey, found: list[Finding]) -> None:
        """Apply the current time to a group, then schedule its next check or drop it."""
        group, open_findings = self.groups.opened(key)
        self.groups.mark(key)
        next_us, shown = self._rules.on_time(group, open_findings, self.now_us, found)
        if shown:
            self.groups.unshown[key] = None
        if not self.groups.checked(key, self.now_us, next_us):
            found.extend(self._rules.resolve_all(open_findings, self.now_us))
            self.groups.drop(key)


def raised_in_words(error: Exception) -> str:
    """Return an exception's type, message and innermost location: all of the traceback that a finding carries."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = f" in line {trace.tb_lineno} of {trace.tb_frame.f_globals.get('__name__')}" if trace is not None else ""
    return f"the model raised {type(error).__name__}: {error}{where}"


def _asks_about_unknown(record: MirrorRecord, groups: GroupStore) -> bool:
    """Return True if a description, or a read of offsets, can be compared with nothing.

    It is about a group of which no other frame was seen, about many groups at once, so that it is cut, or was asked for before the group
    was known.
    """
    key = (record.cluster, record.group or "")
    if record.cut_bytes or key not in groups:
        return True
    return record.kind is not _REQUEST and (record.connection, record.exchange) not in groups.opened(key)[0].open

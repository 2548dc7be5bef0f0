"""Continuity of the capture: repeated, missing and rewritten offsets, gap records, and times without any record.

After an interruption a group's membership is unknown until it is proven again. Nothing falls due because of a time that was not
captured, and no client or broker is blamed for it.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple

from coordinator_model.counters import CAPTURE, CONNECTION, MIRROR, Counters
from coordinator_model.groups.records import Coverage
from coordinator_model.settings import Settings
from coordinator_model.wire.record import Cause, Loss, MirrorRecord, RecordError, unpack_loss
from coordinator_model.wording import begin, clock, counted, plural, seconds

BLIND_US: Final = 3_000_000
"""A capture without any record for longer has missed three ticks in a row, and may have missed frames."""

BLIND_GRACE_US: Final = 5_000_000
"""How long after a blind time the frames expected in it may still arrive."""


class Interruption(NamedTuple):
    """Frames may be missing: the groups concerned go back to learning, and a finding reports it."""

    rule: str
    reason: str  #: why the groups learn again
    summary: str
    observed: str
    action: str | None = None  #: what to do about its cause, if the rule has no action for it


class Continuity:
    """Tracks whether one partition of the mirror was captured and read without interruption."""

    def __init__(self, topic: str, partition: int, settings: Settings, counters: Counters, record_counts: Counter[str]) -> None:
        self.next_offset: int | None = None  #: offset expected next; None before the first record
        self.blind_from_us = 0  #: when the newest blind time began
        self.coverage = Coverage()  #: its ``since_us`` is when that time ended
        self._name = f"partition {partition} of {topic}"
        self._settings = settings
        self._counters = counters
        self._record_counts = record_counts

    def is_repeated(self, offset: int, at_us: int, now_us: int) -> bool:
        """Return True if the record was received before: below :attr:`next_offset`, and not newer than all others."""
        repeated = self.next_offset is not None and offset < self.next_offset and at_us <= now_us
        if repeated:
            self._record_counts["repeated records"] += 1
        return repeated

    def follow(self, offset: int, at_us: int, groups: int) -> Interruption | None:
        """Set ``offset`` as the newest one received; return the interruption that it shows.

        :param groups: number of groups in the partition.
        """
        expected, self.next_offset = self.next_offset, offset + 1
        if expected is None:
            self._counters.since_us = at_us
            return None
        if offset == expected:
            return None
        self._counters.gaps[MIRROR] += 1
        if offset < expected:
            self._record_counts["offsets gone back"] += 1
            return Interruption(
                "V-01",
                "the mirror's log was cut back",
                f"{begin(self._name)} was cut back from offset {expected} to {offset} or before, and written anew: "
                f"{counted(groups, 'group')} back to learning.",
                f"a new record at offset {offset} where {expected} was expected",
            )
        self._record_counts["missing records"] += offset - expected
        return Interruption(
            "V-01",
            "records of the mirror are missing",
            f"{begin(self._name)} lacks {counted(offset - expected, 'record')} (offsets {expected} to {offset - 1}): "
            f"{counted(groups, 'group')} back to learning.",
            f"offset {offset} where {expected} was expected",
        )

    def was_blind(self, from_us: int, to_us: int, groups: int) -> Interruption | None:
        """Process a time without any record, even a tick: the capture stopped, or its clock was set. Return any interruption.

        A blind time postpones what would have fallen due in it (:meth:`postponed_us`). A long one is also an interruption.
        """
        self._put_off(from_us, to_us)
        if to_us - from_us < self._settings.silence_ms * 1_000 or not groups:
            return None
        self._counters.gaps[CAPTURE] += 1
        self._counters.gap_us += to_us - from_us
        blind = seconds(to_us - from_us)
        return Interruption(
            "V-04",
            "the capture stood still",
            f"Nothing was captured: {self._name} has no record, not even a tick, for {blind}. {counted(groups, 'group')} back to learning.",
            f"no record for {blind}",
            _STOOD_STILL,
        )

    def gap(self, record: MirrorRecord, groups: int, learning: int) -> Interruption:
        """Process a gap record, with which the capture reports a loss of frames; return the interruption.

        :param learning: how many groups go back to learning because of it.
        """
        if is_set_back(record):
            return Interruption(
                "V-09",
                "",
                f"The times of the log go back by an hour at {clock(record.at_us)} UTC: they name no zone, and clocks were set back. From "
                "there on the order of its lines in the file decides, and times are those of the second hour.",
                "an hour of the log came twice",
                _NO_ZONE,
            )
        words = self._loss_text(record)
        if record.group:
            number, whose = 1, f"group {record.group}"
        else:
            number, whose = groups, f"{'all ' if groups > 1 else ''}{counted(groups, 'group')} of partition {record.partition}"
        becomes = "back to learning" if learning or not groups else f"{plural(number, 'is', 'are')} followed without that request"
        summary = f"The capture lost {words}: {whose} {becomes}."
        return Interruption("V-04", "the capture lost frames", summary, f"a gap record: {words}", _remedy(record))

    def gap_ended(self, record: MirrorRecord, from_us: int) -> None:
        """Process the end of a gap. If it concerns the whole partition, it is a blind time."""
        if not record.group:
            self._put_off(from_us, record.at_us)

    def postponed_us(self, due_us: int) -> int:
        """Return ``due_us``, or the end of the grace time if ``due_us`` lies in a blind time or just after it."""
        visible_us = self.coverage.since_us + BLIND_GRACE_US
        return visible_us if self.blind_from_us < due_us < visible_us else due_us

    def _put_off(self, from_us: int, to_us: int) -> None:
        if from_us > self.coverage.since_us:  # else it goes on with the one before
            self.blind_from_us = from_us
        self.coverage.since_us = to_us

    def _loss_text(self, record: MirrorRecord) -> str:
        try:
            lost = unpack_loss(record.frame)
        except RecordError:
            self._counters.gaps[CAPTURE] += 1
            return "an unknown number of records"
        if lost.records == 0 and record.connection:
            self._counters.gaps[CONNECTION] += 1
            # Not a loss of records: the capturer cannot follow this client.
            return f"sight of connection {record.connection} from {record.client_address}, {_WHY_UNSEEN[_cause(lost)]}"
        self._counters.gaps[CAPTURE] += 1
        if _cause(lost) is Cause.ENDED:
            return f"sight of what one of several captures showed: it ends at {clock(lost.from_us)}, and others go on"
        if _cause(lost) is Cause.UNREADABLE:
            return f"{counted(lost.records, 'request')}, whose line in the log cannot be read"
        self._counters.gap_us += max(0, lost.to_us - lost.from_us)
        if _cause(lost) is Cause.NOT_RUNNING:
            return f"sight of everything for {seconds(lost.to_us - lost.from_us)}: it did not run, or its interface was away"
        if _cause(lost) is Cause.PORT_UNREAD:
            return f"sight of a broker's port for {seconds(lost.to_us - lost.from_us)}: it was found only then"
        if _cause(lost) is Cause.DROPPED:
            return f"{counted(lost.records, 'packet')} over {seconds(lost.to_us - lost.from_us)}, which came faster than they could be read"
        self._record_counts["records lost by the capture"] += lost.records
        return f"{counted(lost.records, 'record')} over {seconds(lost.to_us - lost.from_us)}"


_STOOD_STILL: Final = (
    "Check that the tap runs and reaches the mirror topic. In a packet capture: see why it stopped, or whether the next file began later; "
    "what happened meanwhile only another capture of that time shows."
)
_NO_ZONE: Final = (
    "Compare times of that hour with care. Let the pattern of the log name its zone (%d{yyyy-MM-dd HH:mm:ss,SSSXXX}), or let brokers run "
    "with TZ=UTC."
)
_WHY_UNSEEN: Final = {
    Cause.NOT_DELIVERED: "which it cannot follow",
    Cause.NOT_CAPTURED: "of which packets are missing",
    Cause.ONE_DIRECTION: "of which it has one direction only",
    Cause.MAY_WAIT: "whose next request may wait at the coordinator: a request log has it when it is answered",
}
_REMEDIES: Final = {
    Cause.NOT_DELIVERED: "See what that client speaks: TLS, which a capture opens with --key-log, or another protocol than Kafka's.",
    Cause.NOT_CAPTURED: "Compare with the packets that the capturing program says it dropped: give it a larger buffer (tcpdump -B), a "
    "filter on the brokers' ports, and a snap length that holds whole frames. In Envoy's tap raise max_buffered_rx_bytes and "
    "max_buffered_tx_bytes.",
    Cause.ONE_DIRECTION: "Capture where both directions pass: answers may take another route (asymmetric routing, a second interface), "
    "or the mirror port or the filter takes one direction only. On the broker itself, -i any has both.",
    Cause.MAY_WAIT: "Read a longer part of the log: the next lines show whether that client waited or was silent. What is stuck now, "
    "a tap or a capture shows.",
    Cause.UNREADABLE: "Raise the limit at which lines of the log are cut, the longest first, or read the file that the broker itself "
    "writes: journald (LineMax), Docker, Loki and CloudWatch cut at 1,000 to 16,384 characters.",
    Cause.DROPPED: "Name the brokers' ports and the interface (--port, --interface), so that fewer packets are read, or capture on several "
    "machines.",
    Cause.NOT_RUNNING: "See why the capture stopped, or the interface was down; what happened meanwhile only another capture shows.",
    Cause.PORT_UNREAD: "Name all ports of the brokers (--port): others are looked for now and then only.",
    Cause.ENDED: "Read captures of the same time: what the one that ended would have shown is not known from there on.",
}


_WITHOUT_CONNECTION: Final = frozenset({Cause.ENDED, Cause.UNREADABLE, Cause.DROPPED, Cause.NOT_RUNNING, Cause.PORT_UNREAD})


def _cause(loss: Loss) -> Cause:
    try:
        return Cause(loss.cause)
    except ValueError:  # of a newer capturer
        return Cause.NOT_DELIVERED


def _remedy(record: MirrorRecord) -> str | None:
    """Return what to do about a connection that is not seen whole; None where the action of the rule applies."""
    try:
        lost = unpack_loss(record.frame)
    except RecordError:
        return None
    if lost.cause in _WITHOUT_CONNECTION or (record.connection and not lost.records):
        return _REMEDIES[_cause(lost)]
    return None


def may_wait(record: MirrorRecord) -> bool:
    """Return True if a gap record is about a request that may wait for its answer, on a connection of one group."""
    try:
        return bool(record.group and record.connection) and unpack_loss(record.frame).cause == Cause.MAY_WAIT
    except RecordError:
        return False


def is_set_back(record: MirrorRecord) -> bool:
    """Return True if a gap record says that times in a log go back, and that nothing is missing."""
    try:
        return unpack_loss(record.frame).cause == Cause.SET_BACK
    except RecordError:
        return False


def loss_began_us(record: MirrorRecord, now_us: int) -> int:
    """Return when the loss of a gap record began, in capture time; ``now_us`` if the record does not contain it."""
    try:
        return min(unpack_loss(record.frame).from_us, record.at_us)
    except RecordError:
        return now_us

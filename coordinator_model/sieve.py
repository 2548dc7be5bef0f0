"""Tells the heartbeats that repeat, each with its plain success, from all other rows of a batch of the mirror topic, by their bytes alone.

Nine rows in ten are that, and each is like the one before on its connection but for three numbers: capture time, exchange number and
correlation id. Who knows the rest by heart need not make records of them: see :meth:`coordinator_model.coordinator.Coordinator.go_on`.

The traps. *All or nothing*: a group is sifted out only if every row with its key is such a heartbeat or its success, and each pair is
whole; whatever else is heard of it must meet it in order. *Some rows are everybody's*: a gap without a group ends what is known of all, so
a batch with one is not sifted.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Self, cast

from coordinator_model.codes import HEARTBEAT
from coordinator_model.pulse import CORRELATION_BEGINS, CORRELATION_ENDS, CORRELATION_SIZE, Run
from coordinator_model.wire import DecodeError, decode
from coordinator_model.wire.reader import AT_ENDS, EXCHANGE, HEAD_ENDS, KNOWN_LIMIT, EnvelopeParts, RecordReader
from coordinator_model.wire.record import Kind, MirrorRecord, RecordError

MirrorRow = tuple[int, int, int, bytes | None, bytes | None, bytes | None]
"""Partition, offset, timestamp in milliseconds, key, value, envelope."""

_AnyRow = tuple[int, int, int, Any, Any, Any]

# By the width of a msgpack integer: the first bytes that it may have; what goes before it, and where it begins, to make four bytes of it.
_FIRST_BYTES: Final = {1: bytes(range(0x80)), 2: b"\xcc", 3: b"\xcd", 5: b"\xce"}
_FOUR_BYTES: Final = {1: (bytes(3), 0), 2: (bytes(3), 1), 3: (bytes(2), 1), 5: (b"", 1)}

_NOT_AS_USUAL: Final = (AttributeError, IndexError, KeyError, TypeError, ValueError, struct.error)


class _Half(NamedTuple):
    """A row of which nobody knows yet that it repeats."""

    record: MirrorRecord
    row: MirrorRow
    parts: EnvelopeParts


class _Pattern(NamedTuple):
    """The bytes that are the same in all rows of a heartbeat that repeats, and of its success."""

    record_key: bytes | None
    parts: EnvelopeParts
    asks: bytes  #: how the envelope of the request begins
    answers: bytes
    frame_begins: bytes  #: up to the correlation id
    frame_ends: bytes
    success_ends: bytes

    @classmethod
    def of(cls, asked: _Half, answered: _Half) -> Self:
        frame, success = asked.record.frame, answered.record.frame
        asks, answers = (half.row[5] or b"" for half in (asked, answered))
        return cls(
            asked.row[3],
            asked.parts,
            asks[:HEAD_ENDS],
            answers[:HEAD_ENDS],
            frame[:CORRELATION_BEGINS],
            frame[CORRELATION_ENDS:],
            success[CORRELATION_SIZE:],
        )


class Line:
    """A connection on which a heartbeat repeats: who says it, and the bytes by which its rows are known."""

    __slots__ = (
        "answers",
        "asks",
        "behind",
        "broker",
        "connection",
        "correlation_first",
        "exchange_first",
        "frame_begins",
        "frame_ends",
        "generation",
        "instance_id",
        "key",
        "label",
        "member_id",
        "pattern",
        "record_key",
        "success_ends",
        "success_numbers",
        "unpack",
        "version",
    )

    def __init__(self, pattern: _Pattern, record: MirrorRecord, says: Any) -> None:
        self.pattern = pattern
        self.key = record.cluster, record.group or ""
        self.broker, self.connection, self.version = record.broker, record.connection, record.api_version
        self.member_id, self.generation, self.instance_id = says.member_id, says.generation_id, says.group_instance_id
        self.record_key, parts, self.asks, self.answers, self.frame_begins, self.frame_ends, self.success_ends = pattern
        before, exchange_width, self.label, correlation_width, self.behind = parts
        passed_over, behind = len(before) + len(EXCHANGE), len(self.behind)
        numbers = f"{exchange_width}s{len(self.label)}s{correlation_width}s"
        #: of a whole envelope: how it begins, capture time, exchange number, label, correlation id, and what is behind
        self.unpack = struct.Struct(f">{HEAD_ENDS}sQ{passed_over}x{numbers}{behind}s").unpack
        self.exchange_first, self.correlation_first = _FIRST_BYTES[exchange_width], _FIRST_BYTES[correlation_width]
        self.success_numbers = _FOUR_BYTES[correlation_width]

    def succeeds(self, value: Any, correlation: bytes) -> bool:
        """Whether that is the frame of its plain success, for a request with this correlation id in its envelope."""
        zeros, begins = self.success_numbers
        return bool(value == zeros + correlation[begins:] + self.success_ends)


class Beaten:
    """All that is heard of a group in a batch, if it is heartbeats that repeat."""

    __slots__ = ("beats", "key", "places")

    def __init__(self, key: tuple[str, str]) -> None:
        self.key = key  #: cluster and group
        self.beats: list[tuple[Line, int, int]] = []  #: capture times of request and success, in the order of these
        self.places: list[int] = []  #: of the request and the success of each of these in the batch

    def runs(self) -> list[Run]:
        """As the model takes them in."""
        if len(self.beats) == 1:  # as most do
            line, asked_us, at_us = self.beats[0]
            return [Run(line, (asked_us,), (at_us,), at_us - asked_us, 0)]
        times: dict[Line, tuple[list[int], list[int]]] = {}
        for line, asked_us, at_us in self.beats:
            asked, answered = times.pop(line, ([], []))
            asked.append(asked_us)
            answered.append(at_us)
            times[line] = asked, answered  # the one that was answered last stays last
        return [Run.of(line, asked, answered) for line, (asked, answered) in times.items()]


class Sifted(NamedTuple):
    """What was found in a batch."""

    groups: list[Beaten]
    read: dict[int, MirrorRecord | RecordError]  #: rows that were looked at more closely, by their places
    times_us: Sequence[int]  #: capture times of all rows, by their places


NOTHING_SIFTED: Final = Sifted([], {}, ())


class Sieve:
    """Remembers connections; what that spares changes nothing of what is known."""

    def __init__(self, reader: RecordReader) -> None:
        self._reader = reader
        self._lines: dict[bytes, Line] = {}  # by what stands before the exchange number in its envelopes
        self._asked: dict[bytes, _Half] = {}

    def sift(self, rows: Sequence[MirrorRow]) -> Sifted:
        """Find the groups of which there are only heartbeats that repeat.

        :param rows: of one partition, contiguous and in order.
        """
        lines = self._lines
        groups: dict[tuple[str, str], Beaten] = {}
        asked: dict[Line, tuple[int, int, bytes, bytes]] = {}
        read: dict[int, MirrorRecord | RecordError] = {}
        mixed: set[bytes | None] = set()
        times_us = [0] * len(rows)
        # In one piece, for it is most of the work; what is missing is found out by using it.
        for place, (_, _, _, key, value, envelope) in enumerate(cast("Sequence[_AnyRow]", rows)):
            try:
                line = lines[envelope[AT_ENDS : envelope.index(EXCHANGE, AT_ENDS)]]
                head, at_us, exchange, label, correlation, behind = line.unpack(envelope)
                is_known = (
                    label == line.label
                    and behind == line.behind
                    and key == line.record_key
                    and exchange[0] in line.exchange_first
                    and correlation[0] in line.correlation_first
                )
                asks = is_known and head == line.asks and line not in asked
                if asks and value[CORRELATION_ENDS:] == line.frame_ends and value[:CORRELATION_BEGINS] == line.frame_begins:
                    asked[line] = place, at_us, exchange, correlation
                    times_us[place] = at_us
                    continue
                if is_known and head == line.answers and line.succeeds(value, correlation):
                    asked_place, asked_us, asked_exchange, asked_correlation = asked[line]
                    if asked_exchange == exchange and asked_correlation == correlation:
                        del asked[line]
                        beaten = groups.get(line.key) or groups.setdefault(line.key, Beaten(line.key))
                        beaten.beats.append((line, asked_us, at_us))
                        beaten.places += asked_place, place
                        times_us[place] = at_us
                        continue
            except _NOT_AS_USUAL:
                pass
            if _may_concern_all(rows[place]):
                return NOTHING_SIFTED
            mixed.add(key)
            read[place], times_us[place] = self._read(rows[place])
        mixed.update(line.record_key for line in asked)
        whole = [beaten for beaten in groups.values() if beaten.beats[0][0].record_key not in mixed]
        return Sifted(whole, read, times_us)

    def _read(self, row: MirrorRow) -> tuple[MirrorRecord | RecordError, int]:
        """What a row holds, and when it was captured, as far as anybody can tell."""
        partition, offset, timestamp_ms, key, value, envelope = row
        try:
            record = self._reader.read(partition, offset, key, value, envelope)
        except RecordError as error:
            return error, timestamp_ms * 1_000
        return record, record.at_us

    def learn(self, record: MirrorRecord, row: MirrorRow) -> None:
        """Take note of a row that was not sifted out, and of the record that it was read as."""
        if record.api_key != HEARTBEAT or not record.group or record.cut_bytes or row[5] is None:
            return
        parts = self._reader.parts(row[5])
        if parts is None:
            return
        half = _Half(record, row, parts)
        if record.kind is Kind.REQUEST:
            if len(self._asked) >= KNOWN_LIMIT:
                self._asked.clear()
            self._asked[parts.before] = half
        elif (asked := self._asked.pop(parts.before, None)) is not None:
            self._learn_line(asked, half)

    def _learn_line(self, asked: _Half, answered: _Half) -> None:
        record, known = asked.record, self._lines.get(asked.parts.before)
        pattern = _Pattern.of(asked, answered)
        if answered.parts != asked.parts or answered.row[3] != asked.row[3] or (known is not None and known.pattern == pattern):
            return
        try:
            says, success = (_body(half, is_request=half is asked) for half in (asked, answered))
        except DecodeError:
            return
        if says.group_id == record.group and not (success.error_code or success.throttle_time_ms):
            if len(self._lines) >= KNOWN_LIMIT:
                self._lines.clear()
            self._lines[asked.parts.before] = Line(pattern, record, says)


def _body(half: _Half, *, is_request: bool) -> Any:
    return decode(half.record.frame, request=is_request, api_key=HEARTBEAT, api_version=half.record.api_version).body


def _may_concern_all(row: MirrorRow) -> bool:
    """Whether a row may be a gap without a group, or name a group by a key that cannot be read."""
    _, _, _, key, _, envelope = row
    if not key:
        return envelope is not None and Kind.GAP.value.encode() in envelope
    try:
        key.decode()
    except UnicodeDecodeError:
        return True
    return False

"""What the quality checks must remember from batch to batch: where each connection, partition and group stands.

Partitions are read side by side, so two exchanges of one connection may come in either order, and in different batches. Within a partition
the order is that of capture. So a missing exchange number is one only when every partition has come past its time; whether a response has
its request is asked within its own partition alone.

All of it is in memory, bounded, and gone when the process ends: a connection first seen in mid-life is not blamed for what came before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

from coordinator_model.wire.record import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from coordinator_model.wire.record import MirrorRecord

GRACE_US: Final = 5_000_000
"""How long after the exchange behind it a missing one may still come, by the clock in the data."""

MAX_REMEMBERED: Final = 200_000
"""Connections, and groups; those quiet for the longest are forgotten first."""

_Name = TypeVar("_Name", bound=Hashable)
_Known = TypeVar("_Known")


class Hole(NamedTuple):
    """Exchanges of a connection that never came."""

    connection: str
    first: int
    last: int

    @property
    def exchanges(self) -> int:
        return self.last - self.first + 1


class SeenRecord(NamedTuple):
    """What the memory says of one record; None where a question does not apply."""

    repeated: bool  #: was in an earlier batch already
    missing_before: int | None  #: records missing in the partition before this one
    request_seen: bool | None  #: of a response: whether its request was
    group_in_one_partition: bool | None


class Remembered(dict[_Name, _Known], Generic[_Name, _Known]):
    """A dict that forgets what was not asked for in the longest time."""

    def __init__(self, make: Callable[[], _Known], most: int = MAX_REMEMBERED) -> None:
        super().__init__()
        self._make = make
        self._most = most

    def touch(self, name: _Name) -> _Known:
        """The entry, made if it is missing, now the youngest."""
        known = self.pop(name, None)
        if known is None:
            known = self._make()
            if len(self) >= self._most:
                del self[next(iter(self))]
        self[name] = known
        return known


@dataclass(slots=True)
class _Lane:
    """A connection within one partition."""

    first: int | None = None  #: number of the first request seen
    waiting: set[tuple[int, str | None]] = field(default_factory=set)  #: exchange and group


@dataclass(slots=True)
class _Stay:
    """A group in a partition, by capture time."""

    partition: int
    first_us: int
    last_us: int

    def overlaps(self, other: _Stay) -> bool:
        return self.first_us < other.last_us and other.first_us < self.last_us


@dataclass(slots=True)
class _Connection:
    expected: int | None = None  #: lowest number not seen yet; None before the first
    ahead: set[int] = field(default_factory=set)  #: numbers seen above it
    lanes: defaultdict[int, _Lane] = field(default_factory=lambda: defaultdict(_Lane))


class RecordSequences:
    """Fed every record in the order of its partition."""

    def __init__(self) -> None:
        self._connections: Remembered[str, _Connection] = Remembered(_Connection)
        self._places: Remembered[str, list[_Stay]] = Remembered(list)
        self._next_offset: dict[int, int] = {}
        self._newest_us: dict[int, int] = {}
        self._holes: list[tuple[int, str, int]] = []  #: (due, connection, number that was ahead)

    def see(self, record: MirrorRecord) -> SeenRecord:
        """Take note of a record whose envelope is whole."""
        partition = record.partition
        missing = self.see_offset(partition, record.offset)
        if missing is None:
            return SeenRecord(repeated=True, missing_before=None, request_seen=None, group_in_one_partition=None)
        if record.at_us > self._newest_us.get(partition, 0):
            self._newest_us[partition] = record.at_us
        request_seen = None
        if record.exchange >= 0 and record.connection:
            request_seen = self._exchange(record)
        elif record.kind is Kind.OPEN:
            self._born(record)
        elif record.kind is Kind.CLOSE:
            self._closed(record)
        in_one = self._in_one_partition(record.group, partition, record.at_us) if record.group else None
        return SeenRecord(repeated=False, missing_before=missing, request_seen=request_seen, group_in_one_partition=in_one)

    def see_offset(self, partition: int, offset: int) -> int | None:
        """How many records are missing before this one; None when it was seen already."""
        expected = self._next_offset.get(partition, offset)
        if offset < expected:
            return None
        self._next_offset[partition] = offset + 1
        return offset - expected

    def holes(self) -> list[Hole]:
        """Return the exchanges that are now known to be missing, each once."""
        if not self._newest_us:
            return []
        passed_us = min(self._newest_us.values())
        found: list[Hole] = []
        while self._holes and self._holes[0][0] <= passed_us:
            _, name, number = heappop(self._holes)
            connection = self._connections.get(name)
            if connection is None or connection.expected is None or connection.expected >= number:
                continue
            found.append(Hole(name, connection.expected, number - 1))
            connection.expected = number
            _catch_up(connection)
        return found

    def _exchange(self, record: MirrorRecord) -> bool | None:
        connection = self._connections.touch(record.connection)
        self._number(connection, record)
        lane = connection.lanes[record.partition]
        exchange = (record.exchange, record.group)
        if record.kind is Kind.REQUEST:
            if lane.first is None:
                lane.first = record.exchange
            lane.waiting.add(exchange)
            return None
        if exchange in lane.waiting:
            lane.waiting.discard(exchange)
            return True
        return None if lane.first is None or record.exchange < lane.first else False

    def _number(self, connection: _Connection, record: MirrorRecord) -> None:
        number = record.exchange
        if connection.expected is None:
            connection.expected = number + 1
        elif number == connection.expected:
            connection.expected += 1
            _catch_up(connection)
        elif number > connection.expected and number not in connection.ahead:
            connection.ahead.add(number)
            heappush(self._holes, (record.at_us + GRACE_US, record.connection, number))

    def _born(self, record: MirrorRecord) -> None:
        """The mirror saw the connection from its beginning: nothing may be missing."""
        connection = self._connections.touch(record.connection)
        if connection.expected is None:
            connection.expected = 0
        lane = connection.lanes[record.partition]
        if lane.first is None:
            lane.first = 0

    def _closed(self, record: MirrorRecord) -> None:
        """The close is written to every group seen on the connection; what is missing then stays a hole until it is due."""
        connection = self._connections.get(record.connection)
        if connection is not None:
            connection.lanes.pop(record.partition, None)
            if not connection.lanes and not connection.ahead:
                del self._connections[record.connection]

    def _in_one_partition(self, group: str, partition: int, at_us: int) -> bool:
        """Whether no other partition has records of the group from the same time.

        A group that moves once is in one partition at each time: the topic has gained partitions, and its taps have noticed.
        """
        places = self._places.touch(group)
        stay = next((place for place in places if place.partition == partition), None)
        if stay is None:
            stay = _Stay(partition, at_us, at_us)
            places.append(stay)
        else:
            stay.first_us, stay.last_us = min(stay.first_us, at_us), max(stay.last_us, at_us)
        if len(places) == 1 or not any(stay.overlaps(other) for other in places if other is not stay):
            return True
        places[:] = [stay]  # the next record in another partition is judged by what follows, not by this one again
        return False


def _catch_up(connection: _Connection) -> None:
    assert connection.expected is not None
    while connection.expected in connection.ahead:
        connection.ahead.discard(connection.expected)
        connection.expected += 1

"""Mirror records out of brokers' request logs: what a tap would have written, had it stood before them.

A coordinator's lines in the same log prove what no frame shows: the end of a session.

A line is written when its exchange is over. Records are written in the order in which requests came and responses left, so they are held
back until nothing older is to be expected: as long as the coordinator may keep a request waiting.

A request that waits (a JoinGroup until the others have joined, a SyncGroup until the leader's) is not in the log before it is answered. Its
member looks silent. Where the log does not go on long enough to distinguish the two, a gap says so, and the groups go back to learning:
no client is blamed for a silence that may be the broker's.
"""

from __future__ import annotations

from collections import Counter
from heapq import heappop, heappush, merge
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Final

from coordinator_model.wire.constants import COMMITS, HEARTBEAT
from coordinator_model.wire.record import Cause, Kind, Loss, MirrorRecord, expired, pack_loss, tick, topics
from coordinator_model.wording import counted, plural
from streaming.mirror.broker_log import HELD_BACK_US
from streaming.mirror.broker_log.connections import BrokerListeners, BrokerRestarts, LoggedConnection, ends_of
from streaming.mirror.broker_log.coordinator_lines import CoordinatorLine
from streaming.mirror.broker_log.request_line import LogEntry, Logged, LoggedTopics, RequestLines, SetBack, Unread
from streaming.mirror.broker_log.scan import Scanner
from streaming.mirror.broker_log.times import CROSSED_US, FileClock
from streaming.mirror.client_software import ClientSoftware
from streaming.mirror.conversation import LARGEST_REQUEST
from streaming.mirror.pcap.files import CaptureError
from streaming.mirror.topics import KnownTopics
from streaming.not_shown import REQUESTS_LACK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from streaming.mirror.broker_log.history import CoordinatorHistory
    from streaming.mirror.pcap.files import Source

_WAITS_AT_MOST_US: Final = 300_000_000
HELD_AT_LEAST: Final = 200_000
"""Exchanges of a file that are held back even longer: with them an hour of waiting is written in its place."""

_TICK_US: Final = 1_000_000
_LONGEST_PAUSE_US: Final = 120_000_000
"""As long a pause of the log is one of the clients; after a longer one that is not known."""

_GRACE_US: Final = 1_000_000
_LOOKED_AT: Final = 100
"""Entries of a file that show the order of its lines: that in which they were written, or the newest first, as exports have it."""

_WITHOUT_REQUEST: Final = "answers to requests that waited when the logger was switched on, which it does not show"
_SENT_BY_SETTLED: Final = COMMITS | {HEARTBEAT}
"""APIs of requests that a member does not send while a JoinGroup or SyncGroup of it waits."""

_TWICE: Final = "lines that stand there twice, and count once"
_TOO_LATE: Final = "lines that stand behind far newer ones, and were left out; their groups get a gap: sort the log by time"

_OF_ONE: Final = {
    _TWICE: "line that stands there twice, and counts once",
    _TOO_LATE: "line that stands behind far newer ones, and was left out; its groups get a gap: sort the log by time",
    "lines of an hour that came twice, since clocks were set back; their order in the file counts": (
        "line of an hour that came twice, since clocks were set back; its order in the file counts"
    ),
    "exchanges that waited longer than records are held back": "exchange that waited longer than records are held back",
    "connections whose next request may have waited, and is not in the log; their groups get a gap": (
        "connection whose next request may have waited, and is not in the log; its groups get a gap"
    ),
    "lines of more than 16 MiB": "line of more than 16 MiB",
    "lines in text form": "line in text form",
}
"""What is counted → the same of one."""
_AS_JSON: Final = "export it as JSON, as aws logs filter-log-events --log-group-name NAME does"
_VERBS_OF_ONE: Final = {"have": "has", "are": "is"}


def _of_one(reason: str) -> str:
    """Return why several lines cannot be read as it is said of one."""
    verb, _, rest = reason.partition(" ")
    of_one = f"{_VERBS_OF_ONE.get(verb, f'{verb}s')} {rest}"
    return of_one.replace("themselves", "itself").replace("they name", "it names")


def _oldest_first(entries: Iterable[LogEntry]) -> Iterator[LogEntry]:
    """Yield the entries of a file in the order in which they were written.

    Of a file that begins with its newest line, as those of Loki and Google Cloud by default, all entries are kept.
    """
    coming = iter(entries)
    first = list(islice(coming, _LOOKED_AT))
    times = [entry.at_us for entry in first if entry.at_us]
    later = sum(one < other for one, other in pairwise(times))
    earlier = sum(one > other for one, other in pairwise(times))
    if earlier > later:
        yield from reversed([*first, *coming])
        return
    yield from first
    yield from coming


def _later(entry: LogEntry, by_us: int) -> LogEntry:
    if isinstance(entry, Logged):
        return entry._replace(at_us=entry.at_us + by_us, received_us=entry.received_us + by_us)
    return entry._replace(at_us=entry.at_us + by_us)


class RequestLogReader:
    """Takes request lines, in the order of the log, and writes mirror records.

    :param write: takes the records, numbered as if they stood in one partition; one without a group is for every partition.
    :param cluster: name of the cluster in the records.
    :param held_back_us: how long records are held back for requests that came before and are not over.
    :param held_at_least: so many exchanges are held back for longer.
    :param frame_cap: how many bytes of a frame are kept; all, unless the records go to a topic.
    :param story: takes what coordinators say in the log beside request lines.
    """

    def __init__(
        self,
        write: Callable[[MirrorRecord], None],
        *,
        cluster: str = "",
        name: str = "request-log",
        held_back_us: int = HELD_BACK_US,
        held_at_least: int = HELD_AT_LEAST,
        frame_cap: int = LARGEST_REQUEST,
        story: CoordinatorHistory | None = None,
    ) -> None:
        self.counts: Counter[str] = Counter()
        self.brokers: Counter[str] = Counter()  #: connections by broker
        self.lines = RequestLines()
        self.next_offset = 0  #: number of the next record
        self.newest_us = 0  #: of the log
        self.now_us = 0  #: up to which everything is written
        self._write = write
        self._cluster = cluster
        self._name = name
        self._held_back_us = held_back_us
        self._held_at_least = held_at_least
        self._frame_cap = frame_cap
        self._story = story
        self._held: list[tuple[int, int, LoggedConnection | None, Logged | MirrorRecord | CoordinatorLine | None, bool]] = []
        self._order = 0
        self._connections: dict[str, LoggedConnection] = {}
        self._restarts = BrokerRestarts()
        self._listeners = BrokerListeners()
        self._software = ClientSoftware()
        self._topics = KnownTopics()
        self._may_wait: dict[LoggedConnection, tuple[int, str]] = {}  # since when a request may wait unseen, of which member
        # Of each member the exchanges that are not written yet, on whichever connection: when one came, and whether its sender is settled.
        self._of_members: dict[str, list[tuple[int, bool]]] = {}
        self._over_us: dict[str, int] = {}  # by broker, when the newest request was over whose line has a coarse time
        self._met: set[Logged] = set()  # what is held: the same file may have been given twice, or stand in another
        self._asked = 0  # requests that are written, and whose responses are not
        self._next_tick_us = 0

    def read(self, logs: Sequence[Iterator[LogEntry]]) -> None:
        """Read logs to their ends (:meth:`told_in`); several are merged by the times of their lines."""
        for entry in merge(*logs, key=lambda entry: entry.at_us):
            self.take(entry)

    def entries_in(self, source: Source, damage: Callable[[str], None]) -> Iterator[LogEntry]:
        """Yield the entries of a file, in its order.

        :param damage: called with half a sentence that says why reading ended before the file did.
        """
        return self._timed(_oldest_first(self._read(self._lines_in(source, damage))), FileClock())

    def entries_of(self, lines: Iterable[bytes], clock: FileClock) -> Iterator[LogEntry]:
        """Yield the entries in further lines of a file that may be request lines."""
        return self._timed(self._read(lines), clock)

    def _lines_in(self, source: Source, damage: Callable[[str], None]) -> Iterator[bytes]:
        scanner = Scanner(self.counts)
        try:
            while data := source.more():
                yield from scanner.feed(data)
        except CaptureError as error:
            damage(str(error))
        yield from scanner.finish()

    def _read(self, lines: Iterable[bytes]) -> Iterator[LogEntry]:
        return (entry for line in lines if (entry := self.lines.read(line)) is not None)

    def _timed(self, entries: Iterable[LogEntry], clock: FileClock) -> Iterator[LogEntry]:
        """Yield the entries of a file with the times that its clock had."""
        for entry in entries:
            if isinstance(entry, Logged) and entry.connection not in self._connections:
                self._listeners.note(entry.connection, clock)
            before = clock.set_back
            late_us = clock.late_us(entry.at_us) if entry.at_us else 0
            if clock.set_back > before:
                yield SetBack(entry.at_us + late_us)
            if late_us:
                self.counts["lines of an hour that came twice, since clocks were set back; their order in the file counts"] += 1
            yield _later(entry, late_us) if late_us else entry

    def take(self, entry: LogEntry) -> None:
        """Take the next line of the log."""
        if isinstance(entry, CoordinatorLine):
            self.counts["coordinator lines"] += 1
            if self._story is not None:
                self._story.take(entry)
            if not self._connections:
                return  # no frame makes its group known
        self.newest_us = max(self.newest_us, entry.at_us)
        if isinstance(entry, Logged):
            self._hold(entry)
        elif isinstance(entry, CoordinatorLine):
            if entry.ends_session:
                self._push(max(entry.at_us, self.now_us), None, entry, is_answer=False)
        elif isinstance(entry, LoggedTopics):
            self._hold_topics(entry)
        elif isinstance(entry, Unread):
            self._hold_gap(entry)
        elif isinstance(entry, SetBack):
            self._push_gap(max(entry.at_us, self.now_us), None, Loss(0, 0, entry.at_us, entry.at_us, Cause.SET_BACK))
        self._write_until(self.newest_us - self._held_back_us, self._held_at_least)

    def finish(self) -> None:
        """The log has ended: write what was held back."""
        self._write_until(self.newest_us, 0)

    # --- holding back --------------------------------------------------------------------------------------------------

    def _hold(self, logged: Logged) -> None:
        if logged in self._met:
            self.counts[_TWICE] += 1
            return
        connection = self._connection(logged)
        received_us, over_us = self._times_of(logged, connection)
        if over_us < self.now_us - CROSSED_US:
            self.counts[_TOO_LATE] += 1
            connection.not_seen(logged.groups, Loss(records=1, bytes=len(logged.request), from_us=self.now_us, to_us=self.now_us))
            return
        self._met.add(logged)
        self.counts["exchanges"] += 1
        connection.over_us = max(connection.over_us, over_us)
        connection.is_open_at(received_us)
        self.newest_us = max(self.newest_us, over_us)
        connection.names.update(dict.fromkeys(logged.groups))
        if not logged.request:
            self.counts[_WITHOUT_REQUEST] += 1
            self._push(max(over_us, self.now_us), connection, logged, is_answer=True)
            return
        connection.waiting += 1
        if received_us < self.now_us:
            self.counts["exchanges that waited longer than records are held back"] += 1
            loss = Loss(records=0, bytes=len(logged.request), from_us=received_us, to_us=self.now_us)
            connection.not_seen(logged.groups, loss)
            received_us, over_us = self.now_us, max(over_us, self.now_us)
        heappush(self._of_members.setdefault(logged.member, []), (received_us, logged.api_key in _SENT_BY_SETTLED))
        self._push(received_us, connection, logged, is_answer=False)
        self._push(over_us, connection, logged, is_answer=True)

    def _times_of(self, logged: Logged, connection: LoggedConnection) -> tuple[int, int]:
        """Return when a request was received, and when it was over.

        A broker reads the next request of a connection when it has answered this one. Lines of one whole second are in the order in which
        it answered: each is over as early as those before it allow.
        """
        broker, at_us, received_us = connection.ends.broker, logged.at_us, logged.received_us
        if logged.step_us:
            proven_us = max(self._over_us.get(broker, 0), connection.over_us + at_us - received_us)
            late_us = min(max(proven_us - at_us, 0), logged.step_us - 1)
            at_us, received_us = at_us + late_us, received_us + late_us
            self._over_us[broker] = at_us
        if connection.over_us <= at_us:  # else lines stand in another order, and each comes in its turn
            received_us = max(received_us, connection.over_us)
        return received_us, max(at_us, received_us)

    def _hold_topics(self, entry: LoggedTopics) -> None:
        if news := self._topics.learn(entry.topics):
            record = topics(entry.at_us, news, cluster=self._cluster)
            self._push(max(entry.at_us, self.now_us), None, record, is_answer=False)

    def _hold_gap(self, unread: Unread) -> None:
        """Lose the groups of a request that is not known, of all groups where its line does not name them."""
        at_us = max(unread.at_us or self.newest_us, self.now_us)
        for group in unread.groups or (None,):
            self._push_gap(at_us, group, Loss(records=1, bytes=0, from_us=at_us, to_us=at_us, cause=Cause.UNREADABLE))

    def _push_gap(self, at_us: int, group: str | None, loss: Loss) -> None:
        record = MirrorRecord(-1, -1, group, Kind.GAP, at_us, self._cluster, frame=pack_loss(loss))
        self._push(at_us, None, record, is_answer=False)

    def _push(
        self,
        at_us: int,
        connection: LoggedConnection | None,
        entry: Logged | MirrorRecord | CoordinatorLine | None,
        *,
        is_answer: bool,
    ) -> None:
        self._order += 1
        heappush(self._held, (at_us, self._order, connection, entry, is_answer))

    def _connection(self, logged: Logged) -> LoggedConnection:
        found = self._connections.get(logged.connection)
        if found is None:
            ends = ends_of(logged.connection)
            if self._restarts.begins(ends):
                self._end_connections(ends.broker)
            self.brokers[ends.broker] += 1
            found = self._connections[logged.connection] = LoggedConnection(
                self._number,
                cluster=self._cluster,
                name=logged.connection,
                ends=ends,
                first=self._listeners.first(ends.broker),
                at_us=logged.received_us,
                frame_cap=self._frame_cap,
                on_opaque=lambda reason: self.counts.update({f"connections that cannot be followed: {reason}": 1}),
                known_software=self._software,
            )
        return found

    def _end_connections(self, broker: str) -> None:
        """A broker that was started anew has lost all its connections: when its last line came, as far as is known."""
        lost = [one for one in self._connections.values() if one.ends.broker == broker and not one.is_over]
        at_us = max((self.now_us, *(one.over_us for one in lost)))
        for one in lost:
            one.is_over = True
            self._push(at_us, one, None, is_answer=False)

    # --- writing -------------------------------------------------------------------------------------------------------

    def _write_until(self, until_us: int, keep: int) -> None:
        held = self._held
        while held and held[0][0] <= until_us and len(held) > keep:
            at_us, _, connection, entry, is_answer = heappop(held)
            self._pass_time(at_us)
            if isinstance(entry, CoordinatorLine):
                self._number(expired(at_us, entry.group, entry.facts["member"], cluster=self._cluster))
            elif isinstance(entry, MirrorRecord):
                self._number(entry._replace(at_us=at_us))
            elif connection is not None and entry is not None:
                self._write_in_turn(connection, entry, at_us, is_answer=is_answer)
            elif connection is not None:
                self._may_wait.pop(connection, None)
                connection.closed(at_us)
        if not keep and until_us > self.now_us:
            self._pass_time(until_us)

    def _write_in_turn(self, connection: LoggedConnection, logged: Logged, at_us: int, *, is_answer: bool) -> None:
        """A broker takes the next request of a connection when it has answered the last, which times alone do not always show."""
        if connection.answers is not None and connection.answers is not logged:
            connection.in_turn.append((logged, is_answer))
            return
        self._write_half(connection, logged, at_us, is_answer=is_answer)
        connection.answers = None if is_answer else logged
        waited, connection.in_turn = connection.in_turn, []
        for other, is_its_answer in waited:
            self._write_in_turn(connection, other, at_us, is_answer=is_its_answer)

    def _write_half(self, connection: LoggedConnection, logged: Logged, at_us: int, *, is_answer: bool) -> None:
        if not is_answer:
            self._asked += 1
            self._may_wait.pop(connection, None)
            heappop(self._of_members[logged.member])
            if not self._of_members[logged.member]:
                del self._of_members[logged.member]
            connection.asked(logged, at_us)
            return
        self._met.discard(logged)
        if not logged.request:
            connection.answered_alone(logged, at_us)
        else:
            self._asked -= 1
            if logged.response:
                connection.answered(logged.response, at_us)
        if logged.next_may_wait:
            self._may_wait[connection] = at_us, logged.member

    def _pass_time(self, at_us: int) -> None:
        """Write ticks for the seconds that have passed, and gaps for those who may wait unseen."""
        if not self.now_us or (at_us - self.now_us > _LONGEST_PAUSE_US and not self._asked):
            self._next_tick_us = at_us - at_us % _TICK_US + _TICK_US
        while self._next_tick_us <= at_us:
            self._give_up(self._next_tick_us)
            self._number(tick(self._next_tick_us, cluster=self._cluster, connection=self._name))
            self._next_tick_us += _TICK_US
        self.now_us = max(self.now_us, at_us)

    def _give_up(self, at_us: int) -> None:
        for connection, (since_us, member) in list(self._may_wait.items()):
            if since_us + _GRACE_US > at_us:
                break  # they are in the order of time
            del self._may_wait[connection]
            elsewhere = self._of_members.get(member) if member else None
            if elsewhere and elsewhere[0][1]:
                continue  # franz-go joins on one connection, and sends all else on another
            # What waited on a connection that was closed is never logged.
            if not connection.waiting and (elsewhere or self.newest_us - since_us < _WAITS_AT_MOST_US):
                self.counts["connections whose next request may have waited, and is not in the log; their groups get a gap"] += 1
                connection.not_seen((), Loss(records=0, bytes=0, from_us=since_us, to_us=at_us))

    def _number(self, record: MirrorRecord) -> None:
        numbered = record._replace(partition=0, offset=self.next_offset)
        numbered.body = record.body
        self.next_offset += 1
        self._write(numbered)

    # --- what is said of it --------------------------------------------------------------------------------------------

    def why_nothing(self) -> str | None:
        """Why there is nothing to replay, as a half sentence behind the log's name; None if there is something."""
        if self.counts["exchanges"] or (self._story is not None and self._story.lines):
            return None
        if self.counts["lines in text form"]:
            return "is a request log of Kafka 2.7 or older, which writes no JSON: only those of 2.8 and newer can be read"
        if self.counts["lines in a table"]:
            return f"is a table of comma-separated values: {_AS_JSON}"
        if self.lines.counts:
            return f"has no request line that can be read; they {self.lines.counts.most_common(1)[0][0]}"
        if self.counts["other requests"]:
            return "has request lines, but none of a group: is it the log of the group's coordinator?"
        if self.lines.cut_coordinator_lines:
            return "has lines of coordinators, but all are cut short before they say anything of a group"
        return "has neither a request line nor a coordinator's: set kafka.request.logger to DEBUG on the brokers"

    def notes(self) -> Iterator[str]:
        """What is to be known of what was read, a sentence each."""
        in_table = self.counts["lines in a table"]
        if in_table:
            yield f"{counted(in_table, 'line')} of a table of comma-separated values {plural(in_table, 'was', 'were')} not read: {_AS_JSON}"
        if cut := self.lines.cut_coordinator_lines:
            yield f"{counted(cut, 'line')} of coordinators cut short: what they say of groups is missing"
        for reason, count in self.lines.counts.most_common():
            yield f"{counted(count, 'request line')} {plural(count, _of_one(reason), reason)}"
        if not self.counts["exchanges"]:
            none = "none of them can be read" if self.lines.counts or in_table else "no request line"
            yield f"{none}: this is what coordinators wrote into the log, and no rule applies to it"
            return
        brokers = ", ".join(f"{address or 'unknown'} ({count})" for address, count in self.brokers.most_common(8))
        others = self.counts["other requests"]
        yield (
            f"{counted(self.counts['exchanges'], 'request line')} of groups, and {counted(others, 'other')}; connections to "
            f"brokers: {brokers}"
        )
        yield REQUESTS_LACK
        for what, count in sorted(self.counts.items()):
            if count and what not in ("exchanges", "other requests", "coordinator lines", "lines in a table"):
                yield f"{count:,} {plural(count, _OF_ONE.get(what, what), what)}"
        for field, count in self.lines.unknown_fields.most_common(8):
            yield f"{counted(count, 'time')} {field}, which only a newer Kafka has, was passed over"

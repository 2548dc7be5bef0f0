"""The state behind the metrics: the values of the result topics and of the driver that metrics need.

What decides its form:

- A scrape runs in a thread of its own and takes long, so it works on a copy that is made under the lock.
- A rebalance storm writes thousands of groups a second, each a few kilobytes of JSON. So groups are parsed at a scrape, not at arrival.
- The groups topic keeps groups longer than the model: when a checkpoint is abandoned, its groups get no tombstone. So a group is
  shown only if it was updated since the current model of its partition started.
- Counters would seem to fall while the topics are read. So nothing of the three topics is shown until all are read to their end.
"""

from __future__ import annotations

import json
import threading
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from coordinator_model.counters import BUCKETS_S
from coordinator_model.finding import Status
from coordinator_model.groups.arrivals import STAGES
from coordinator_model.groups.classic.data import CLASSIC
from coordinator_model.groups.epochs.view import MEMBER_STATES
from streaming.published.finding_json import microseconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from streaming.kafka.record import Record

Made = TypeVar("Made")

FINDINGS: Final = "findings"
GROUPS: Final = "groups"
STATUS: Final = "status"


class Group(NamedTuple):
    """One group, as published in the groups topic."""

    cluster: str
    name: str
    kind: str
    state: str
    state_since_us: int | None
    learning: bool
    protocol_type: str
    protocol: str
    coordinator: str
    members: int
    member_states: tuple[tuple[str, int], ...]  #: of a group with epochs: how far in the reconciliation → members
    to_give_up: int  #: partitions of a group with epochs
    arrivals: tuple[tuple[str, int], ...]  #: stage on the way to consuming → clients that stand there
    generation: int | None
    incarnation: int
    causes: tuple[tuple[str, int], ...]
    costs: tuple[tuple[str, float, float], ...]  #: cause, member-seconds without consuming, partition-seconds without a holder
    joins: tuple[int, float]  #: count, and sum in seconds
    syncs: tuple[int, float]
    errors: tuple[tuple[str, str, int], ...]  #: API, error, answers
    partition: int | None
    updated_us: int


class FindingLabels(NamedTuple):
    """The labels under which an open finding is counted."""

    cluster: str
    group: str
    rule: str
    severity: str


class Histogram:
    """Counts by bucket of :data:`coordinator_model.counters.BUCKETS_S`; the last bucket has no upper bound."""

    __slots__ = ("counts", "sum_s")

    def __init__(self, counts: Iterable[int] = (0,) * (len(BUCKETS_S) + 1), sum_s: float = 0.0) -> None:
        self.counts = list(counts)
        self.sum_s = sum_s

    def observe(self, seconds: float) -> None:
        self.counts[bisect_left(BUCKETS_S, seconds)] += 1
        self.sum_s += seconds

    def add(self, counts: Iterable[int], sum_s: float) -> None:
        self.counts = [known + more for known, more in zip(self.counts, counts, strict=True)]
        self.sum_s += sum_s


Lags = dict[tuple[str, int], int]
"""Topic and partition → records behind the committed offset."""


@dataclass
class View:
    """Everything that a scrape shows."""

    complete: bool = False  #: the result topics were read to their end
    groups: dict[str, Group] = field(default_factory=dict)  #: by key of the record
    status: dict[int, dict[str, Any]] = field(default_factory=dict)  #: by mirror partition, as published
    open: dict[str, FindingLabels] = field(default_factory=dict)  #: by finding id
    opened: Counter[tuple[str, str, str]] = field(default_factory=Counter)  #: (cluster, rule, severity), since the start
    unreadable: int = 0
    failures: int = 0  #: of the reader of the result topics
    ends: dict[int, int] = field(default_factory=dict)  #: end offset by mirror partition
    begins: dict[int, int] = field(default_factory=dict)
    running: bool = False
    accepted: dict[str, bool] = field(default_factory=dict)
    restarts: Counter[str] = field(default_factory=Counter)
    progress_at_s: float | None = None
    read: dict[int, int] = field(default_factory=dict)  #: next offset by mirror partition, as the queries report it
    batches: Histogram = field(default_factory=Histogram)
    lags: dict[tuple[str, str], Lags] = field(default_factory=dict)  #: by cluster and group, replaced as a whole
    without_lag: int | None = None  #: groups whose lag is not known; None when it is not asked for

    def copy(self) -> View:
        return replace(
            self,
            groups=self.groups.copy(),
            status=self.status.copy(),
            open=self.open.copy(),
            opened=self.opened.copy(),
            ends=self.ends.copy(),
            begins=self.begins.copy(),
            batches=Histogram(self.batches.counts, self.batches.sum_s),
        )

    def living_groups(self) -> list[Group]:
        """Return the groups without those that only an earlier model knew."""
        return [group for group in self.groups.values() if not self._is_of_an_earlier_model(group)]

    def _is_of_an_earlier_model(self, group: Group) -> bool:
        status = self.status.get(group.partition) if group.partition is not None else None
        since_ms = status.get("since_ms") if status is not None else None
        return since_ms is not None and group.updated_us // 1_000 < since_ms

    def behind(self, partition: int) -> int | None:
        """Return how many records of a mirror partition are not read yet; None while its end is unknown."""
        end, status = self.ends.get(partition), self.status.get(partition)
        if end is None:
            return None
        read = (status or {}).get("next_offset") or 0
        return max(0, end - max(read, self.read.get(partition, 0), self.begins.get(partition, 0)))


class MetricsState:
    """Collects records and observations; :meth:`look` returns a :class:`View` of them.

    :param topic: the mirror topic; status records of another mirror topic are ignored.
    """

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._now = View()
        self._unread: dict[str, bytes | None] = {}  # groups that are not parsed yet
        self._lock = threading.Lock()
        self._looking = threading.Lock()

    def look(self) -> View:
        """Return a copy of the current state."""
        with self._looking:  # otherwise a second scrape at the same time would show outdated groups
            with self._lock:
                unread, self._unread = self._unread, {}
            groups = {key: self._read(_group, value) for key, value in unread.items()}
            with self._lock:
                for key, group in groups.items():
                    if group is not None:
                        self._now.groups[key] = group
                    elif unread[key] is None:
                        self._now.groups.pop(key, None)
                return self._now.copy()

    def _read(self, make: Callable[[Any], Made | None], value: bytes | None) -> Made | None:
        """Return what ``make`` returns; None for a tombstone, and for an unreadable record, which is counted."""
        if value is None:
            return None
        try:
            return make(json.loads(value))
        except (ValueError, LookupError, TypeError, AttributeError):
            with self._lock:
                self._now.unreadable += 1
            return None

    # --- from the result topics ---------------------------------------------------------------------------------------------

    def take(self, records: Iterable[Record], kinds: Mapping[str, str]) -> None:
        """Apply records of the result topics.

        :param kinds: topic → which of them it is.
        """
        newest: dict[str, dict[str, bytes | None]] = {kind: {} for kind in kinds.values()}
        for record in records:
            newest[kinds[record.topic]][record.name] = record.value
        for kind, values in newest.items():
            self.apply(kind, values)

    def apply(self, kind: str, records: Mapping[str, bytes | None]) -> None:
        """Apply the newest value of some keys of a result topic; None is a tombstone."""
        if kind == GROUPS:
            with self._lock:
                self._unread.update(records)
        for key, value in records.items() if kind == FINDINGS else ():
            finding = self._read(_finding, value)
            if finding is not None or value is None:
                with self._lock:
                    self._take_finding(key, finding)
        for value in records.values() if kind == STATUS else ():
            status = self._read(_status, value)
            if status is not None and status["topic"] == self._topic:
                with self._lock:
                    self._now.status[status["partition"]] = status

    def _take_finding(self, key: str, parsed: tuple[FindingLabels, bool] | None) -> None:
        now = self._now
        if parsed is None or not parsed[1]:
            now.open.pop(key, None)
            return
        finding = parsed[0]
        if now.complete and key not in now.open:
            now.opened[finding.cluster, finding.rule, finding.severity] += 1
        now.open[key] = finding

    def is_complete(self) -> bool:
        return self._now.complete

    def read_to_the_end(self) -> None:
        """Mark the state as complete: from now on, a finding that opens is counted."""
        with self._lock:
            self._now.complete = True

    def begin_anew(self) -> None:
        """Drop what was read, because the reader failed and starts again from the beginning."""
        with self._lock:
            now = self._now
            now.complete = False
            now.failures += 1
            now.groups, now.status, now.open, self._unread = {}, {}, {}, {}

    def observe_lag(self, lags: Mapping[tuple[str, str], Lags], *, unknown: int) -> None:
        """Set how far groups are behind.

        :param lags: by cluster and group.
        :param unknown: groups of which that is not known.
        """
        with self._lock:
            self._now.lags, self._now.without_lag = dict(lags), unknown

    def observe_mirror(self, begins: Mapping[int, int], ends: Mapping[int, int]) -> None:
        """Set the first and end offset of each partition of the mirror topic."""
        with self._lock:
            self._now.begins, self._now.ends = dict(begins), dict(ends)

    # --- from the driver ------------------------------------------------------------------------------------------------------

    def observe(self, *, running: bool, restarts: Counter[str], accepted: Mapping[str, bool] = MappingProxyType({})) -> None:
        """Set the monitor's status.

        :param accepted: whether Kafka accepts the credentials of each client of the driver, by name.
        """
        with self._lock:
            self._now.accepted = dict(accepted)
            self._now.running = running
            self._now.restarts = restarts

    def observe_progress(self, at_s: float, batch_s: float | None, read: Mapping[int, int]) -> None:
        """Record the progress that the findings queries reported.

        :param at_s: when they reported.
        :param batch_s: how long their longest batch took; None if there was none.
        :param read: next offset by mirror partition.
        """
        with self._lock:
            self._now.read = dict(read)
            self._now.progress_at_s = at_s
            if batch_s is not None:
                self._now.batches.observe(batch_s)


def _finding(content: dict[str, Any]) -> tuple[FindingLabels, bool]:
    """Return the finding's labels, and whether it is open."""
    finding = FindingLabels(content["cluster"], content["group"], content["rule"], content["severity"])
    return finding, Status(content["status"]) is not Status.RESOLVED


def _status(content: dict[str, Any]) -> dict[str, Any] | None:
    """Return the status of a partition; None for the record that announces a starting monitor."""
    if "starting_since_ms" in content:
        return None
    for needed in ("next_offset", "newest_record_ms", "snapshot_bytes", "counters"):
        content[needed]
    return {**content, "topic": str(content["topic"]), "partition": int(content["partition"])}


def _group(content: dict[str, Any]) -> Group:
    since, learning = content["state_since"], content["learning"]
    return Group(
        content["cluster"],
        content["group"],
        content["group_type"],
        content["state"],
        None if since is None else microseconds(since),
        learning is not None,
        content["protocol_type"] or "",
        content["protocol"] or "",
        content["coordinator"] or "",
        len(content["members"]),
        *_reconciliation(content["group_type"], content["members"]),
        _arrivals(content.get("arrivals", [])),
        content["generation"],
        content["incarnation"],
        tuple(content["rebalances"].items()),
        tuple(
            (cause, cost["member_ms"] / 1_000, cost["unheld_partition_ms"] / 1_000)
            for cause, cost in content.get("costs", {}).items()
        ),
        _phase(content.get("joins")),
        _phase(content.get("syncs")),
        tuple((api, error, count) for api, counts in content.get("errors", {}).items() for error, count in counts.items()),
        content.get("partition"),
        microseconds(content["updated_at"]),
    )


def _reconciliation(kind: str, members: list[dict[str, Any]]) -> tuple[tuple[tuple[str, int], ...], int]:
    """Return how many members are how far in the reconciliation, and how many partitions they are to give up."""
    if kind == CLASSIC:
        return (), 0
    states = Counter(member["state"] for member in members)
    return tuple((state, states[state]) for state in MEMBER_STATES), sum(member["gives_up"] for member in members)


def _arrivals(clients: list[dict[str, Any]]) -> tuple[tuple[str, int], ...]:
    stages = Counter(client["stage"] for client in clients)
    return tuple((stage, stages[stage]) for stage in STAGES)


def _phase(content: dict[str, int] | None) -> tuple[int, float]:
    """Return count and sum in seconds; zeros for a record of an earlier release, which has no phases."""
    return (0, 0.0) if content is None else (content["count"], content["total_ms"] / 1_000)

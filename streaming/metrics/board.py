"""What the result topics say, kept as the few values that metrics need.

The traps. *A scrape comes in a thread of its own*, so whatever it reads is taken under the lock. *The groups topic remembers longer than
the model*: when a checkpoint was given up, groups that are gone leave no tombstone. So a group is shown only if the model that now has
its partition can have written it. *Half-read topics make counters fall*: until all three were read to their end, nothing of them is
shown.
"""

from __future__ import annotations

import json
import threading
from bisect import bisect_left
from collections import Counter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from coordinator_model.findings import Status
from coordinator_model.tally import BUCKETS_S
from streaming.sinks.findings import microseconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

FINDINGS: Final = "findings"
GROUPS: Final = "groups"
STATUS: Final = "status"


class Group(NamedTuple):
    """One group, as the groups topic has it."""

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
    generation: int | None
    incarnation: int
    causes: tuple[tuple[str, int], ...]
    joins: tuple[int, float]  #: how many, and seconds together
    syncs: tuple[int, float]
    errors: tuple[tuple[str, str, int], ...]  #: API, error, answers
    partition: int | None
    updated_us: int


class OpenFinding(NamedTuple):
    """Where an open finding counts."""

    cluster: str
    group: str
    rule: str
    severity: str


class Histogram:
    """Counts by bucket of :data:`coordinator_model.tally.BUCKETS_S`, the last one open."""

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


class Board:
    """Everything that a scrape shows.

    :param topic: the mirror topic; the status of another is left alone.
    """

    def __init__(self, topic: str) -> None:
        self.lock = threading.Lock()
        self.complete = False  #: the result topics were read to their end
        self.groups: dict[str, Group] = {}  #: by key of the record
        self.status: dict[int, dict[str, Any]] = {}  #: by mirror partition, as published
        self.open: dict[str, OpenFinding] = {}  #: by finding id
        self.opened: Counter[tuple[str, str, str]] = Counter()  #: (cluster, rule, severity), since the start
        self.unreadable = 0
        self.ends: dict[int, int] = {}  #: end offset by mirror partition
        self.begins: dict[int, int] = {}
        self.running = False
        self.restarts: Counter[str] = Counter()
        self.progress_at_s: float | None = None
        self.batches = Histogram()
        self._topic = topic

    # --- what the result topics say -----------------------------------------------------------------------------------------

    def apply(self, kind: str, records: Mapping[str, bytes | None]) -> None:
        """Take in the newest value of some keys of a result topic; None is a tombstone."""
        take = {FINDINGS: self._finding, GROUPS: self._group, STATUS: self._partition}[kind]
        for key, value in records.items():
            try:
                content = None if value is None else json.loads(value)
                with self.lock:
                    take(key, content)
            except (ValueError, LookupError, TypeError, AttributeError):
                self.unreadable += 1

    def _group(self, key: str, content: dict[str, Any] | None) -> None:
        if content is None:
            self.groups.pop(key, None)
        else:
            self.groups[key] = _group(content)

    def _partition(self, key: str, content: dict[str, Any] | None) -> None:  # noqa: ARG002 - the content names its partition
        if content is not None and content["topic"] == self._topic:
            self.status[int(content["partition"])] = content

    def _finding(self, key: str, content: dict[str, Any] | None) -> None:
        if content is None or Status(content["status"]) is Status.RESOLVED:
            self.open.pop(key, None)
            return
        finding = OpenFinding(content["cluster"], content["group"], content["rule"], content["severity"])
        if self.complete and key not in self.open:
            self.opened[finding.cluster, finding.rule, finding.severity] += 1
        self.open[key] = finding

    # --- what the driver says -------------------------------------------------------------------------------------------------

    def observe(self, *, running: bool, restarts: Counter[str]) -> None:
        """How the monitor is."""
        with self.lock:
            self.running = running
            self.restarts = restarts

    def observe_progress(self, at_s: float, batch_s: float | None) -> None:
        """The findings query reported at ``at_s``; ``batch_s`` is how long its batch took, None if it had nothing to do."""
        with self.lock:
            self.progress_at_s = at_s
            if batch_s is not None:
                self.batches.observe(batch_s)

    # --- what follows from it -------------------------------------------------------------------------------------------------

    def living_groups(self) -> list[Group]:
        """Groups that the models of today know; the lock is the caller's."""
        return [group for group in self.groups.values() if not self._is_of_an_earlier_model(group)]

    def _is_of_an_earlier_model(self, group: Group) -> bool:
        status = self.status.get(group.partition) if group.partition is not None else None
        since_ms = status.get("since_ms") if status is not None else None
        return since_ms is not None and group.updated_us // 1_000 < since_ms

    def behind(self, partition: int) -> int | None:
        """Records of a mirror partition that are not read yet; None while its end is not known."""
        end, status = self.ends.get(partition), self.status.get(partition)
        if end is None:
            return None
        read = (status or {}).get("next_offset") or 0
        return max(0, end - max(read, self.begins.get(partition, 0)))


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
        content["generation"],
        content["incarnation"],
        tuple(content["rebalances"].items()),
        _phase(content.get("joins")),
        _phase(content.get("syncs")),
        tuple((api, error, count) for api, counts in content.get("errors", {}).items() for error, count in counts.items()),
        content.get("partition"),
        microseconds(content["updated_at"]),
    )


def _phase(content: dict[str, int] | None) -> tuple[int, float]:
    """Nothing for a record that an earlier release wrote."""
    return (0, 0.0) if content is None else (content["count"], content["total_ms"] / 1_000)

"""Counters of one partition's model: frames, errors, durations of rebalances. Dashboards show them; no rule uses them.

Nine frames in ten are heartbeats, and each is counted. A frame therefore costs two look-ups; names are resolved only when the
counts are read, and rare counts are kept separately. Counts are part of the model's snapshot, so a repeated record is counted once.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from typing import Any, Final, NamedTuple

from coordinator_model.stored import Stored
from coordinator_model.wire import API_NAMES, ERROR_CODES, error_name, supported_versions
from coordinator_model.wire.record import Kind, MirrorRecord, TickFacts

BUCKETS_S: Final = (0.01, 0.05, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
"""Upper bounds of the duration histograms, from one round trip to twice max.poll.interval.ms. Part of the snapshot."""

JOIN: Final = "join"
SYNC: Final = "sync"

REPLAYED: Final = "replayed"
UNPAIRED: Final = "unpaired"  #: a response whose request was not captured, so that it proves nothing
NOT_MODELLED: Final = "not_modelled"
TRUNCATED: Final = "truncated"
UNDECODABLE: Final = "undecodable"

CAPTURE: Final = "capture"  #: lost before they reached the mirror topic, according to a gap record
CONNECTION: Final = "connection"  #: a connection that the capturer cannot follow
MIRROR: Final = "mirror"  #: offsets of the mirror topic that were missing or went back

SESSION_EXPIRED: Final = "session_expired"  #: no frame of the member for longer than its session timeout
NOT_REJOINED: Final = "not_rejoined"  #: the next generation does not include it
REFUSED: Final = "refused"  #: its coordinator no longer knew it, or the group was full
REMOVED: Final = "removed_by_somebody_else"  #: a LeaveGroup that was not its own
EVICTIONS: Final = (SESSION_EXPIRED, NOT_REJOINED, REFUSED, REMOVED)
"""Why a member that did not leave was removed."""

REQUEST: Final = "request"
RESPONSE: Final = "response"

_CAPTURERS: Final = 64

UNKNOWN: Final = -1  #: for API keys and versions that no release has; garbage must not create labels


class FrameCount(NamedTuple):
    """Number of frames of one API, version and outcome."""

    api: str
    version: int  #: -1 for one that no release has
    direction: str  #: request or response
    outcome: str
    frames: int


class ErrorCount(NamedTuple):
    """How often a cluster's coordinators returned an error for an API."""

    cluster: str
    api: str
    error: str
    answers: int


class EvictionCount(NamedTuple):
    """How often members of a cluster's groups were evicted, for one of :data:`EVICTIONS`."""

    cluster: str
    cause: str
    members: int


class Cost(NamedTuple):
    """What the rebalances of one cause cost."""

    rebalances: int = 0  #: that are over
    member_us: int = 0  #: how long members consumed nothing, added up
    unheld_us: int = 0  #: how long no member held a partition, added up, as far as that is known

    def plus(self, other: Cost) -> Cost:
        return Cost(*(known + more for known, more in zip(self, other, strict=True)))

    def as_json(self) -> dict[str, int]:
        """Return the cost in milliseconds."""
        return {"rebalances": self.rebalances, "member_ms": self.member_us // 1_000, "unheld_partition_ms": self.unheld_us // 1_000}


class Durations(NamedTuple):
    """How long a phase of rebalances took in a cluster."""

    cluster: str
    phase: str  #: join or sync
    total_us: int
    counts: tuple[int, ...]  #: by bucket of :data:`BUCKETS_S`, not cumulative; the last counts longer durations


class Counters(Stored):
    """The counts of one partition."""

    requests: dict[int, list[int]] = {}  #: API key → frames handed to the model, by version
    responses: dict[int, list[int]] = {}  #: the same for responses, including unpaired ones
    unpaired: dict[tuple[int, int], int] = {}
    others: dict[tuple[int, int, str, str], int] = {}
    errors: dict[tuple[str, int, int], int] = {}
    evictions: dict[tuple[str, str], int] = {}
    costs: dict[tuple[str, str], Cost] = {}  #: cluster and cause → what its rebalances cost
    phases: dict[tuple[str, str], list[int]] = {}
    gaps: dict[str, int] = {}  #: by where records were lost
    gap_us: int = 0  #: capture time over which the capture lost records
    since_us: int = 0  #: capture time of this model's first record
    tick_us: int = 0  #: capture time of the newest tick
    taps: dict[str, tuple[str, int]] = {}  #: capturer → cluster, and capture time of its newest tick
    not_offered: dict[str, tuple[str, ...]] = {}  #: capturer → versions of APIs that its clients are not offered, if any

    def __post_init__(self) -> None:
        self.requests, self.responses = _by_version(self.requests), _by_version(self.responses)
        self.unpaired, self.others, self.gaps = Counter(self.unpaired), Counter(self.others), Counter(self.gaps)
        self.errors, self.evictions = Counter(self.errors), Counter(self.evictions)

    def ticked(self, capturer: str, cluster: str, at_us: int, facts: TickFacts) -> None:
        """Note that a capturer is alive. A restarted one has another name, so names that are silent are dropped."""
        self.tick_us = at_us
        self.taps[capturer] = cluster, at_us
        if facts.not_offered:
            self.not_offered[capturer] = facts.not_offered
        if len(self.taps) > _CAPTURERS:
            self.taps = dict(sorted(self.taps.items(), key=lambda one: one[1][1])[-_CAPTURERS // 2 :])
            self.not_offered = {name: texts for name, texts in self.not_offered.items() if name in self.taps}

    def took(self, cluster: str, phase: str, us: int) -> None:
        """Count the duration of a join or sync phase."""
        known = self.phases.setdefault((cluster, phase), [0] * (len(BUCKETS_S) + 2))
        known[0] += us
        known[1 + bisect_left(BUCKETS_S, us / 1_000_000)] += 1

    def rebalanced(self, cluster: str, cause: str, cost: Cost) -> None:
        """Count a rebalance that is over."""
        self.costs[cluster, cause] = self.costs.get((cluster, cause), Cost()).plus(cost)

    def lost(self, record: MirrorRecord, outcome: str) -> None:
        """Count a frame that did not reach the model of its group."""
        key = record.api_key if record.api_key in API_NAMES else UNKNOWN
        version = record.api_version if record.api_version in supported_versions(key) else UNKNOWN
        self.others[key, version, REQUEST if record.kind is Kind.REQUEST else RESPONSE, outcome] += 1

    def frames(self) -> list[FrameCount]:
        """Return frames by API, version and outcome."""
        found = [
            FrameCount(_api(key), version, REQUEST, REPLAYED, count)
            for key, counts in self.requests.items()
            for version, count in enumerate(counts)
            if count
        ]
        for key, counts in self.responses.items():
            for version, count in enumerate(counts):
                unpaired = self.unpaired[key, version]
                if count > unpaired:
                    found.append(FrameCount(_api(key), version, RESPONSE, REPLAYED, count - unpaired))
                if unpaired:
                    found.append(FrameCount(_api(key), version, RESPONSE, UNPAIRED, unpaired))
        for (key, version, direction, outcome), count in self.others.items():
            found.append(FrameCount(_api(key), version, direction, outcome, count))
        return sorted(found)

    def error_counts(self) -> list[ErrorCount]:
        """Return errors by cluster and API."""
        counts: Counter[tuple[str, str, str]] = Counter()
        for (cluster, api_key, error), count in self.errors.items():
            counts[cluster, *named_error(api_key, error)] += count
        return sorted(ErrorCount(*names, count) for names, count in counts.items())

    def eviction_counts(self) -> list[EvictionCount]:
        """Return evictions by cluster and cause."""
        return sorted(EvictionCount(*where, count) for where, count in self.evictions.items())

    def durations(self) -> list[Durations]:
        """Return rebalance phases by cluster."""
        return sorted(Durations(*where, total_us, tuple(counts)) for where, (total_us, *counts) in self.phases.items())

    def as_json(self) -> dict[str, Any]:
        """Return all counts by name; times in milliseconds, None where there is none."""
        return {
            "since_ms": self.since_us // 1_000 or None,
            "last_tick_ms": self.tick_us // 1_000 or None,
            "taps": [(name, cluster, at_us // 1_000) for name, (cluster, at_us) in sorted(self.taps.items())],
            "not_offered": dict(sorted(self.not_offered.items())),
            "frames": self.frames(),
            "errors": self.error_counts(),
            "evictions": self.eviction_counts(),
            "costs": [
                (*where, cost.rebalances, cost.member_us // 1_000, cost.unheld_us // 1_000)
                for where, cost in sorted(self.costs.items())
            ],
            "phases": [(cluster, phase, total_us // 1_000, counts) for cluster, phase, total_us, counts in self.durations()],
            "gaps": dict(self.gaps),
            "gap_ms": self.gap_us // 1_000,
        }


def named_error(api_key: int, error: int) -> tuple[str, str]:
    """Return the names of an API and of an error; "unknown" for codes that no release has."""
    return _api(api_key), error_name(error) if error in ERROR_CODES else "unknown"


def _by_version(counted: dict[int, list[int]]) -> dict[int, list[int]]:
    """Return counts with a place for each version; a snapshot of an earlier release has fewer."""
    counts = {key: [0] * supported_versions(key).stop for key in API_NAMES}
    for key, known in counted.items():
        counts[key] = [*known, *counts.get(key, ())[len(known) :]]
    return counts


def _api(key: int) -> str:
    return API_NAMES.get(key, "unknown")

"""What a partition's model counts beside what it knows: frames, errors, how long rebalances took. Dashboards show it; no rule looks at it.

The trap: nine frames in ten are heartbeats, and each of them is counted. So a frame costs two look-ups in a list, everything that has a
name is made where somebody asks for it, and whatever is rare is kept apart. Counts belong to the model's state: they go into its
snapshot, and a record that is seen twice is counted once.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from typing import Any, Final, NamedTuple

from coordinator_model.wire import API_NAMES, ERROR_CODES, error_name, supported_versions
from coordinator_model.wire.record import Kind, MirrorRecord

BUCKETS_S: Final = (0.01, 0.05, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
"""Upper bounds of the duration histograms: from a rebalance in one round trip to max.poll.interval.ms twice over. Part of the snapshot."""

JOIN: Final = "join"
SYNC: Final = "sync"

REPLAYED: Final = "replayed"
UNPAIRED: Final = "unpaired"  #: an answer whose request was not captured: nobody knows what it answers
NOT_MODELLED: Final = "not_modelled"
TRUNCATED: Final = "truncated"
UNDECODABLE: Final = "undecodable"

CAPTURE: Final = "capture"  #: lost before they reached the mirror topic, as a gap record tells
CONNECTION: Final = "connection"  #: a connection that the capturer cannot follow
MIRROR: Final = "mirror"  #: offsets of the mirror topic that were never seen

SESSION_EXPIRED: Final = "session_expired"  #: nothing was heard of the member for longer than its session lasts
NOT_REJOINED: Final = "not_rejoined"  #: the next generation came about without it
REFUSED: Final = "refused"  #: its coordinator knew it no longer, or had no room for it
REMOVED: Final = "removed_by_somebody_else"  #: a LeaveGroup that was not its own
EVICTIONS: Final = (SESSION_EXPIRED, NOT_REJOINED, REFUSED, REMOVED)
"""Why a member was none any more that had not left."""

REQUEST: Final = "request"
RESPONSE: Final = "response"

UNKNOWN: Final = -1  #: stands for API keys and versions that no release has: what garbage names must not become a label each


class FrameCount(NamedTuple):
    """How many frames of one API and version came to the same end."""

    api: str
    version: int  #: -1 for one that no release has
    direction: str  #: request or response
    outcome: str
    frames: int


class ErrorCount(NamedTuple):
    """How often a cluster's coordinators answered an API with an error."""

    cluster: str
    api: str
    error: str
    answers: int


class EvictionCount(NamedTuple):
    """How often members of a cluster's groups were put out, for one of :data:`EVICTIONS`."""

    cluster: str
    cause: str
    members: int


class Durations(NamedTuple):
    """How long a phase of rebalances took in a cluster."""

    cluster: str
    phase: str  #: join or sync
    total_us: int
    counts: tuple[int, ...]  #: by bucket of :data:`BUCKETS_S`, not cumulated; the last is for whatever took longer


class Counters:
    """The counts of one partition."""

    __slots__ = (
        "errors",
        "evictions",
        "gap_us",
        "gaps",
        "others",
        "phases",
        "requests",
        "responses",
        "since_us",
        "tick_us",
        "unpaired",
    )

    def __init__(self) -> None:
        self.requests = _by_version()  #: API key → frames handed to the model, by version
        self.responses = _by_version()  #: likewise, unpaired ones among them
        self.unpaired: Counter[tuple[int, int]] = Counter()
        self.others: Counter[tuple[int, int, str, str]] = Counter()
        self.errors: Counter[tuple[str, int, int]] = Counter()
        self.evictions: Counter[tuple[str, str]] = Counter()
        self.phases: dict[tuple[str, str], list[int]] = {}
        self.gaps: Counter[str] = Counter()  #: by where sight was lost
        self.gap_us = 0  #: capture time over which the capture lost records
        self.since_us = 0  #: capture time of the first record that this model saw; 0 when an earlier release saw it
        self.tick_us = 0  #: capture time of the newest tick

    def took(self, cluster: str, phase: str, us: int) -> None:
        """A join or sync phase took that long."""
        known = self.phases.setdefault((cluster, phase), [0] * (len(BUCKETS_S) + 2))
        known[0] += us
        known[1 + bisect_left(BUCKETS_S, us / 1_000_000)] += 1

    def lost(self, record: MirrorRecord, outcome: str) -> None:
        """A frame did not reach the model of its group."""
        key = record.api_key if record.api_key in API_NAMES else UNKNOWN
        version = record.api_version if record.api_version in supported_versions(key) else UNKNOWN
        self.others[key, version, REQUEST if record.kind is Kind.REQUEST else RESPONSE, outcome] += 1

    def frames(self) -> list[FrameCount]:
        """Frames by API, version and what became of them."""
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
        """Errors by cluster and API."""
        counts: Counter[tuple[str, str, str]] = Counter()
        for (cluster, api_key, error), count in self.errors.items():
            counts[cluster, *named_error(api_key, error)] += count
        return sorted(ErrorCount(*names, count) for names, count in counts.items())

    def eviction_counts(self) -> list[EvictionCount]:
        """Evictions by cluster and cause."""
        return sorted(EvictionCount(*where, count) for where, count in self.evictions.items())

    def durations(self) -> list[Durations]:
        """Rebalance phases by cluster."""
        return sorted(Durations(*where, total_us, tuple(counts)) for where, (total_us, *counts) in self.phases.items())

    def as_json(self) -> dict[str, Any]:
        """All counts under their names; times in milliseconds, None where there is none."""
        return {
            "since_ms": self.since_us // 1_000 or None,
            "last_tick_ms": self.tick_us // 1_000 or None,
            "frames": self.frames(),
            "errors": self.error_counts(),
            "evictions": self.eviction_counts(),
            "phases": [(cluster, phase, total_us // 1_000, counts) for cluster, phase, total_us, counts in self.durations()],
            "gaps": dict(self.gaps),
            "gap_ms": self.gap_us // 1_000,
        }

    def pack(self) -> dict[str, Any]:
        """Plain values for :meth:`unpack`; a count that is zero takes no room."""
        return {
            "requests": _packed(self.requests),
            "responses": _packed(self.responses),
            "unpaired": [[*key, count] for key, count in self.unpaired.items()],
            "others": [[*key, count] for key, count in self.others.items()],
            "errors": [[*key, count] for key, count in self.errors.items()],
            "evictions": [[*key, count] for key, count in self.evictions.items()],
            "phases": [[*key, *values] for key, values in self.phases.items()],
            "gaps": dict(self.gaps),
            "gap_us": self.gap_us,
            "since_us": self.since_us,
            "tick_us": self.tick_us,
        }

    def fill(self, packed: dict[str, Any]) -> None:
        """Take over the counts that :meth:`pack` gave."""
        for counts, rows in ((self.requests, packed["requests"]), (self.responses, packed["responses"])):
            for key, version, count in rows:
                counts[key][version] = count
        for rare, rows in (
            (self.unpaired, packed["unpaired"]),
            (self.others, packed["others"]),
            (self.errors, packed["errors"]),
            (self.evictions, packed.get("evictions", ())),  # an earlier release did not count them
        ):
            rare.update({tuple(key): count for *key, count in rows})
        self.phases = {(cluster, phase): list(values) for cluster, phase, *values in packed["phases"]}
        self.gaps.update(packed["gaps"])
        self.gap_us, self.since_us, self.tick_us = packed["gap_us"], packed["since_us"], packed["tick_us"]


def named_error(api_key: int, error: int) -> tuple[str, str]:
    """Names of an API and of an error that it answered; codes that no release has go by one name."""
    return _api(api_key), error_name(error) if error in ERROR_CODES else "unknown"


def _by_version() -> dict[int, list[int]]:
    return {key: [0] * supported_versions(key).stop for key in API_NAMES}


def _packed(counts: dict[int, list[int]]) -> list[list[int]]:
    return [[key, version, count] for key, versions in counts.items() for version, count in enumerate(versions) if count]


def _api(key: int) -> str:
    return API_NAMES.get(key, "unknown")

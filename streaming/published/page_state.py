"""What is known of the published: of each group its newest record, its findings, and a bounded past. Without Kafka, without a browser.

The page runs for months beside any number of groups. So each ring has a length, all rings together have one, and the groups
with the oldest newest event are dropped.
"""

from __future__ import annotations

import hashlib
import threading
import time
from bisect import insort
from collections import deque
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from coordinator_model.events import (
    DELETED,
    NO_MEMBERS,
    NOT_BEGUN,
    RECONCILING,
    SERVED,
    GroupEmptied,
    GroupEvent,
    MemberServed,
    PhaseEnded,
    RebalanceBegan,
    RebalanceFinished,
    SightLost,
    SightRegained,
    State,
)
from coordinator_model.groups.classic.data import CLASSIC
from streaming.published.records import Json, by_group, is_open, seconds
from streaming.published.wire_text import harmless

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

EVENTS_PER_GROUP: Final = 2_000
EVENTS: Final = 100_000
GROUPS: Final = 5_000
FINDINGS: Final = 5_000
KEPT_S: Final = 4 * 3600.0
"""How long a group's past is kept."""

_STATES_PER_GROUP: Final = 400


class Kept(NamedTuple):
    """How much of the past is kept; the default is for a process that runs for months."""

    seconds: float = KEPT_S
    events_per_group: int = EVENTS_PER_GROUP
    events: int = EVENTS
    states_per_group: int = _STATES_PER_GROUP


_BY_DEFAULT: Final = Kept()
ALL: Final = Kept(seconds=float("inf"), events_per_group=1_000_000, events=1_000_000, states_per_group=1_000_000)
"""Of a recording."""

Key = tuple[str, str]
"""Cluster and group, as they are on the wire."""

_STATE_AFTER_PHASE: Final = {"join": State.COMPLETING.value, "sync": State.STABLE.value}
_STATE_AFTER_REBALANCE: Final = {
    SERVED: State.STABLE.value,
    NOT_BEGUN: State.STABLE.value,
    NO_MEMBERS: State.EMPTY.value,
    DELETED: State.DEAD.value,
}


class StateChange(NamedTuple):
    """From here on a group is in a state."""

    at_s: float
    state: str
    generation: int | None


@dataclass(slots=True, eq=False)
class GroupPast:
    """A group and its past."""

    key: Key
    id: str  #: for addresses within a page: names from the wire have any characters
    kept: Kept = _BY_DEFAULT
    content: Json | None = None  #: its newest published record
    lag: Json | None = None  #: its newest published lag
    events: deque[GroupEvent] = field(default_factory=deque)
    changes: list[StateChange] = field(default_factory=list)
    version: int = 0  #: of the whole state when anything of the group was last changed
    newest_s: float = 0.0
    made: tuple[int, Json | None] = (0, None)  #: a record made of its events, and the version of which it was made
    _ids: set[str] = field(default_factory=set)

    def add(self, event: GroupEvent) -> bool:
        """Take an event in; False for one that is known."""
        if event.id in self._ids:
            return False
        self._ids.add(event.id)
        self.events.append(event)
        if len(self.events) > 1 and self.events[-2].at_us > event.at_us:
            self.events = deque(sorted(self.events, key=lambda one: one.at_us))
        return True

    def drop_oldest_event(self) -> None:
        self._ids.discard(self.events.popleft().id)

    def observe(self, change: StateChange) -> None:
        """Take note of a change of state; a repetition changes nothing."""
        before = next((one for one in reversed(self.changes) if one.at_s <= change.at_s), None)
        if before is None or before[1:] != change[1:]:
            insort(self.changes, change, key=lambda one: one.at_s)
        oldest_s = self.newest_s - self.kept.seconds
        while len(self.changes) > self.kept.states_per_group or (len(self.changes) > 1 and self.changes[1].at_s < oldest_s):
            del self.changes[0]

    def state_before_loss(self, generation: int | None) -> str | None:
        """Return the state in which the capture lost the group, None when a generation has been missed."""
        before = self.changes[-2] if len(self.changes) > 1 and self.changes[-1].state == State.UNKNOWN else None
        return before.state if before is not None and before.generation == generation else None

    @property
    def is_history(self) -> bool:
        """Return True if all that is known of it is what its coordinator wrote into a log: no frame, so no rule was applied."""
        return bool(self.events) and all(event.source for event in self.events)

    @property
    def rebalances(self) -> Iterator[RebalanceFinished]:
        """Those that are over, the newest first."""
        return (event for event in reversed(self.events) if isinstance(event, RebalanceFinished))


class _BySize:
    """Groups by how many events are kept of each, so that the largest is known without looking at all."""

    def __init__(self) -> None:
        self._sizes: dict[int, dict[Key, None]] = {}
        self._largest = 0

    def moved(self, key: Key, before: int, after: int) -> None:
        """A group has another number of events than before; 0 is none."""
        if before:
            del self._sizes[before][key]
            if not self._sizes[before]:
                del self._sizes[before]
        if after:
            self._sizes.setdefault(after, {})[key] = None
            self._largest = max(self._largest, after)

    def first_of_largest(self) -> Key:
        """Return a group with the most events; there is one."""
        while self._largest not in self._sizes:
            self._largest -= 1
        return next(iter(self._sizes[self._largest]))


class PageState:
    """Takes in records, in the thread that reads them, and hands them out under :attr:`lock`.

    :param clock: the wall clock; without one it is as late as the newest record, as in a file.
    :param hide_addresses: whether addresses of members are left out of everything.
    """

    def __init__(
        self, *, clock: Callable[[], float] | None = time.time, hide_addresses: bool = False, kept: Kept = _BY_DEFAULT
    ) -> None:
        self.lock = threading.RLock()
        self.groups: dict[Key, GroupPast] = {}
        self.findings: dict[str, Json] = {}
        self.status: dict[int, Json] = {}
        self.mirror_ends: dict[int, int] = {}  #: by partition, as far as it is known
        self.version = 1
        self.status_version = 1  #: changes all the time, and is of interest to one view
        self.complete = False  #: everything that was there when the page was started has been read
        self.problem: str | None = None  #: why nothing new comes
        self.no_events: str | None = None  #: why there are no events, if so
        self.notes: list[str] = []  #: what is to be known of the input, a sentence each
        self.unreadable = 0
        self.dropped_groups = 0
        self.dropped_findings = 0
        self.dropped_events = 0
        self.status_written_s = 0.0
        self.is_recorded = clock is None
        self._clock = clock
        self.hides_addresses = hide_addresses
        self._kept = kept
        self._newest_s = 0.0
        self._first_s = float("inf")
        self._events = 0
        self._resolved: dict[str, None] = {}  # ids of resolved findings, those first that are the first to go
        self._quiet: list[tuple[float, Key]] = []  # a heap; see _quietest
        self._by_events = _BySize()

    def harmless(self, value: Any) -> Any:
        """Return text from the wire as the page may show it."""
        return harmless(value, hide_addresses=self.hides_addresses)

    def now_s(self) -> float:
        """Return the time that the page shows."""
        return self._newest_s if self._clock is None else self._clock()

    @property
    def first_s(self) -> float:
        """Return the time of the oldest thing that is known; now if there is none."""
        return min(self._first_s, self.now_s())

    # --- taking in ---------------------------------------------------------------------------------------------------------

    def group(self, key: Key, content: Json | None) -> None:
        """The newest record of a group; None once it is dropped."""
        with self.lock:
            if content is None:
                if key in self.groups:
                    self._drop_group(key)
                self.version += 1
                return
            past = self._changed(key, _time_of(content, "updated_at"))
            past.content = self.harmless(content)
            since_s = _time_of(content, "state_since")
            if since_s:
                self._first_s = min(self._first_s, since_s)
                past.observe(StateChange(since_s, content["state"], content["generation"]))

    def lag(self, key: Key, content: Json) -> None:
        """How far a group is behind. It changes all the time, and is news only where that shows."""
        with self.lock:
            past = self.groups.get(key)
            if past is None:
                return
            before, past.lag = past.lag, self.harmless(content)
            if (
                before is None
                or before["rebalances"] != past.lag["rebalances"]
                or rounded(before["lag"]) != rounded(past.lag["lag"])
            ):
                self.version += 1
                past.version = self.version

    def finding(self, name: str, content: Json | None) -> None:
        """The newest record of a finding; None once it is withdrawn."""
        with self.lock:
            before = self.findings.pop(name, None)
            finding = content or before
            if finding is None:
                return
            key = (finding["cluster"], finding["group"])
            if key in self.groups:
                self._changed(key, _time_of(finding, "updated_at"))
            else:
                self.version += 1
                self._newest_s = max(self._newest_s, _time_of(finding, "updated_at"))
            if content is not None:
                self._first_s = min(self._first_s, _time_of(content, "opened_at") or self._first_s)
                self.findings[name] = self.harmless(content)
            self._resolved.pop(name, None)
            if content is not None and not is_open(content):
                self._resolved[name] = None
            while len(self.findings) > FINDINGS:
                oldest = next(iter(self._resolved or self.findings))
                self._resolved.pop(oldest, None)
                del self.findings[oldest]
                self.dropped_findings += 1

    def event(self, happened: GroupEvent) -> None:
        """Something that happened in a group."""
        with self.lock:
            event: GroupEvent = self.harmless(happened)
            self._first_s = min(self._first_s, event.at_s)
            past = self._changed((event.cluster, event.group), event.at_s)
            if not past.add(event):
                return
            self._events += 1
            self._by_events.moved(past.key, len(past.events) - 1, len(past.events))
            state = _state_after(past, event)
            if state is not None:
                past.observe(StateChange(event.at_s, state, event.generation))
            while len(past.events) > self._kept.events_per_group or past.events[0].at_s < past.newest_s - self._kept.seconds:
                self._drop_event_of(past)
            if self._events > self._kept.events:
                self._drop_event_of(self.groups[self._by_events.first_of_largest()])

    def monitor_status(self, content: Json, written_s: float) -> None:
        """What the monitor says of one partition of the mirror."""
        with self.lock:
            partition = content.get("partition") if isinstance(content, dict) else None
            if isinstance(partition, int):
                self.status[partition] = self.harmless(content)
            self.status_version += 1
            self.status_written_s = max(self.status_written_s, written_s)

    def mirror_end(self, partition: int, end: int) -> None:
        """How far a partition of the mirror goes."""
        with self.lock:
            if self.mirror_ends.get(partition) != end:
                self.mirror_ends[partition] = end
                self.status_version += 1

    def read_to_the_end(self) -> None:
        with self.lock:
            self.complete = True
            self.version += 1

    def say_no_events(self, why: str | None) -> None:
        """Why there are no events; None when there are."""
        self.no_events = why

    def say(self, problem: str | None) -> None:
        """Why nothing new comes; None when it does."""
        with self.lock:
            if problem != self.problem:
                self.problem = problem
                self.version += 1

    def _changed(self, key: Key, at_s: float) -> GroupPast:
        past = self.groups.get(key)
        if past is None:
            digest = hashlib.blake2s("\x00".join(key).encode(errors="surrogatepass"), digest_size=6).hexdigest()
            past = self.groups[key] = GroupPast(key, f"g{digest}", self._kept)
            if len(self.groups) > GROUPS:
                self._drop_group(self._quietest())
                self.dropped_groups += 1
            heappush(self._quiet, (at_s, key))
        self.version += 1
        past.version = self.version
        past.newest_s = max(past.newest_s, at_s)
        self._newest_s = max(self._newest_s, at_s)
        return past

    def _quietest(self) -> Key:
        """Return the group with the oldest newest news. What the heap has of a group may be older; then it is looked at again."""
        if len(self._quiet) > 2 * GROUPS:  # groups that were dropped otherwise have left theirs
            self._quiet = [(past.newest_s, key) for key, past in self.groups.items() if past.newest_s]
            heapify(self._quiet)
        while True:
            newest_s, key = heappop(self._quiet)
            past = self.groups.get(key)
            if past is not None and past.newest_s > newest_s:
                heappush(self._quiet, (past.newest_s, key))
            elif past is not None:
                return key

    def _drop_group(self, key: Key) -> None:
        events = len(self.groups.pop(key).events)
        self._events -= events
        self._by_events.moved(key, events, 0)

    def _drop_event_of(self, past: GroupPast) -> None:
        self._by_events.moved(past.key, len(past.events), len(past.events) - 1)
        past.drop_oldest_event()
        self._events -= 1
        self.dropped_events += 1

    # --- handing out: the caller holds the lock ------------------------------------------------------------------------------

    def listed_findings(self) -> dict[Key, list[Json]]:
        """Return the findings that the first page lists, by group, the worst first: those that are open; of a recording all."""
        return by_group(finding for finding in self.findings.values() if self.is_recorded or is_open(finding))


def rounded(records: int) -> int:
    """Return a lag with two digits that count: what the list of groups shows of it."""
    return round(records, 2 - len(str(records))) if records else 0


def _state_after(past: GroupPast, event: GroupEvent) -> str | None:
    """Return the state in which a group is after an event, None if the event does not show it."""
    match event:
        case PhaseEnded():
            return _STATE_AFTER_PHASE.get(event.phase)
        case RebalanceFinished():
            return _STATE_AFTER_REBALANCE.get(event.ended)
        case GroupEmptied():
            return State.EMPTY.value
        case MemberServed() if past.changes and past.changes[-1].state == State.EMPTY:
            return State.STABLE.value  # a static member that was away returned without a rebalance
        case SightRegained():
            return past.state_before_loss(event.generation)
        case RebalanceBegan():
            return State.PREPARING.value if event.group_type == CLASSIC else RECONCILING
        case SightLost():
            return State.UNKNOWN.value
        case _:
            return None


def _time_of(content: dict[str, Any], name: str) -> float:
    moment = content.get(name)
    try:
        return seconds(moment) if moment else 0.0
    except (TypeError, ValueError):
        return 0.0

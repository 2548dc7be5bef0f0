"""A group's past as trace-event JSON, which Perfetto (ui.perfetto.dev) and chrome://tracing open.

The format is the "Trace Event Format" of Chromium's catapult. One process is the group. Its threads are the group's own lanes (its state,
its rebalances, where the capture was blind) and one lane for each member. Times are microseconds since the epoch.

Slices of one thread must nest, or they are drawn wrongly. So each slice ends at the latest when the next one of its lane begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from msgspec.structs import asdict

from coordinator_model.events import RebalanceFinished
from streaming.published import sentences
from streaming.published.page_state import GroupPast
from streaming.published.records import Json
from streaming.published.swim_lanes import Doing, Lane, SwimLanes, swim_lanes

_PROCESS: Final = 1
_STATE, _REBALANCES, _CAPTURE, _MEMBERS = 11, 12, 13, 21  #: thread ids; 0 and that of the process would be special

_SLICES: Final = {
    Doing.JOINING: "joining",
    Doing.SYNCING: "waiting for its assignment",
    Doing.CONSUMING: "consuming",
    Doing.ASKED_TO_REJOIN: "told to rejoin",
    Doing.GIVING_UP: "told to give partitions up",
    Doing.AWAY: "away",
    Doing.SILENT: "silent",
    Doing.UNKNOWN: "connection closed",
}
_OF_THE_RECORD: Final = (
    *("cause", "instance_id", "client_id", "member_id", "from_generation", "to_generation", "took_ms", "join_ms", "sync_ms"),
    *("waited_for", "last_member", "partitions_moved", "partitions_stayed", "cost_member_seconds", "unheld", "ended"),
)


class _Slice(NamedTuple):
    """A stretch of time on one lane."""

    name: str
    from_us: int
    to_us: int
    details: Mapping[str, Any]


def trace_events(past: GroupPast, *, from_s: float | None = None, to_s: float) -> Json:
    """Return the trace of what is known of a group between two times.

    :param from_s: None for everything until ``to_s``.
    """
    swim = swim_lanes(past)
    return _Trace(past, _micros(from_s or 0.0), _micros(to_s)).of(swim)


class _Trace:
    """Collects the events of one trace."""

    def __init__(self, past: GroupPast, from_us: int, to_us: int) -> None:
        self._past = past
        self._from_us = from_us
        self._to_us = to_us
        self._events: list[Json] = []

    def of(self, swim: SwimLanes) -> Json:
        cluster, group = self._past.key
        self._name("process_name", 0, f"group {group}" + (f" of {cluster}" if cluster else ""))
        self._lane(_STATE, "group", self._states())
        self._lane(_REBALANCES, "rebalances", map(_rebalance, reversed(list(self._past.rebalances))))
        if swim.blind:
            self._lane(_CAPTURE, "capture", (_Slice("not seen", _micros(begin), self._end(end), {}) for begin, end in swim.blind))
        shown = [lane for lane in swim.lanes.values() if lane.bars or lane.marks]
        threads = {lane.key: _MEMBERS + number for number, lane in enumerate(shown)}
        for lane in shown:
            self._lane(threads[lane.key], _lane_name(lane, shown), self._bars(lane))
            self._marks(threads[lane.key], lane)
        self._waits(swim, threads)
        newest_s = self._past.newest_s
        return {
            "displayTimeUnit": "ms",
            "otherData": {"by": "rebalance-monitor", "cluster": cluster, "group": group, "newest_event_s": newest_s},
            "traceEvents": self._events,
        }

    def _add(self, phase: str, name: str, thread: int, at_us: int, **more: Any) -> None:
        self._events.append({"ph": phase, "name": name, "cat": "rebalance", "pid": _PROCESS, "tid": thread, "ts": at_us, **more})

    def _name(self, what: str, thread: int, name: str) -> None:
        self._events.append({"ph": "M", "name": what, "pid": _PROCESS, "tid": thread, "args": {"name": name}})

    def _lane(self, thread: int, name: str, slices: Iterable[_Slice]) -> None:
        self._name("thread_name", thread, name)
        self._events.append(
            {"ph": "M", "name": "thread_sort_index", "pid": _PROCESS, "tid": thread, "args": {"sort_index": thread}}
        )
        ordered = sorted(slices, key=lambda one: one.from_us)
        ends_us = [one.from_us for one in ordered[1:]] + [self._to_us]
        for one, next_us in zip(ordered, ends_us, strict=False):
            from_us, to_us = max(one.from_us, self._from_us), min(one.to_us, next_us, self._to_us)
            if to_us >= from_us:
                self._add("X", one.name, thread, from_us, dur=to_us - from_us, args=dict(one.details))

    def _states(self) -> Iterator[_Slice]:
        changes = self._past.changes
        for number, change in enumerate(changes):
            end_us = _micros(changes[number + 1].at_s) if number + 1 < len(changes) else self._to_us
            words = sentences.STATE_WORDS.get(change.state, change.state)
            details = {"state": change.state, "generation": change.generation}
            yield _Slice(words, _micros(change.at_s), end_us, details)

    def _bars(self, lane: Lane) -> Iterator[_Slice]:
        details = {"member_id": lane.member_id, "instance_id": lane.instance_id, "client_address": lane.client_address}
        for bar in lane.bars:
            yield _Slice(_SLICES[bar.doing], _micros(bar.from_s), self._end(bar.to_s), {**details, "event": bar.event})

    def _marks(self, thread: int, lane: Lane) -> None:
        for mark in lane.marks:
            if self._from_us <= _micros(mark.at_s) <= self._to_us:
                self._add("i", mark.what.value, thread, _micros(mark.at_s), s="t", args={"event": mark.event})

    def _waits(self, swim: SwimLanes, threads: Mapping[str, int]) -> None:
        """Add an arrow from the slice of each member that waits to that of the one for which it waits."""
        number = 0
        for wait in swim.waits:
            at_us = self._to_us - 1 if wait.at_s is None else _micros(wait.at_s)  # at its very end a slice holds no arrow
            if not self._from_us <= at_us <= self._to_us:
                continue
            for waiting in sorted(wait.waiting & threads.keys()):
                begun_us = _waits_since_us(swim.lanes[waiting], at_us)
                for waited_for in sorted(wait.waited_for & threads.keys()) if begun_us is not None else ():
                    number += 1
                    begin_us = max(begun_us or 0, self._from_us)
                    self._add("s", "waits for", threads[waiting], begin_us, id=number)
                    self._add("f", "waits for", threads[waited_for], at_us, id=number, bp="e")

    def _end(self, at_s: float | None) -> int:
        return self._to_us if at_s is None else _micros(at_s)


def _rebalance(event: RebalanceFinished) -> _Slice:
    record = event.as_json() | {"waited_for": list(map(asdict, event.waited_for))}
    details = {name: record[name] for name in _OF_THE_RECORD if record[name] is not None}
    return _Slice(event.cause, event.began_us or event.at_us, event.at_us, details)


def _waits_since_us(lane: Lane, at_us: int) -> int | None:
    """Return since when a member waits at a moment; None if it does not."""
    waiting = [bar for bar in lane.bars if bar.doing in {Doing.JOINING, Doing.SYNCING} and _micros(bar.from_s) <= at_us]
    return _micros(waiting[-1].from_s) if waiting else None


def _lane_name(lane: Lane, lanes: Iterable[Lane]) -> str:
    """Return the name of a member; those of the same name are distinguished by the end of their ids."""
    alone = sum(other.name == lane.name for other in lanes) == 1
    return lane.name if alone or not lane.member_id else f"{lane.name} …{lane.member_id[-4:]}"


def _micros(at_s: float) -> int:
    return round(at_s * 1_000_000)

"""Places on a picture: which part of a time is shown, where a moment lies in it, and in which rows lanes are drawn.

Places along time are parts of a hundred, so that a picture fits every width without a script. A picture that is live is drawn once and
then moved: what lasts until now is drawn far beyond the right edge, where it is cut.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from streaming.published.swim_lanes import Lane, SwimLanes

SPANS_S: Final = (1, 2, 5, 10, 20, 60, 120, 300, 900, 1800, 3600, 7200, 14_400)
"""How much time a picture may show."""

FAR: Final = 1_000.0
"""Beyond the right edge, in parts of a hundred."""

_STEPS_S: Final = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 43_200, 86_400, 604_800)
_TICKS: Final = 7
_LANES_UNFOLDED: Final = 24
_LEAST_FOLDED: Final = 4
_ALIKE: Final = 2.0  # parts of a hundred by which bars may differ and still look alike


class Tick(NamedTuple):
    x: float
    label: str


@dataclass(frozen=True, slots=True)
class Window:
    """The time that a picture shows.

    :param live: it ends now, and moves.
    """

    from_s: float
    to_s: float
    live: bool

    @property
    def span_s(self) -> float:
        return self.to_s - self.from_s

    def x(self, at_s: float) -> float:
        """Return where a moment is, in parts of a hundred."""
        return round(max(-FAR, min(FAR, (at_s - self.from_s) / self.span_s * 100)), 3)

    def shows(self, from_s: float, to_s: float | None) -> bool:
        """Return True if any of it is seen. A live picture also holds what is yet to come."""
        return (self.live or from_s <= self.to_s) and (to_s is None or to_s >= self.from_s)

    def ticks(self) -> list[Tick]:
        """Return round moments, those of a live picture beyond its edge too."""
        step = next((one for one in _STEPS_S if self.span_s / one <= _TICKS), _STEPS_S[-1])
        first = int(self.from_s // step) + 1
        count = int(self.span_s / step * (2 if self.live else 1)) + 1
        moments = [round((first + number) * step, 3) for number in range(count)]
        ticks = [Tick(self.x(at_s), clock(at_s, seconds=step < 60, tenths=step < 1)) for at_s in moments]
        return [tick for tick in ticks if self.live or 3 <= tick.x <= 97]  # half of a label is none

    def inner_ticks(self) -> list[Tick]:
        """Return the moments whose labels fit between the edges of a narrow picture; those with seconds take the room of two."""
        inner = [tick for tick in self.ticks() if 9 <= tick.x <= 94]
        return inner[:: 2 if any(len(tick.label) > len("00:00") for tick in inner) else 1]


def window(now_s: float, *, span_s: float, end_s: float | None) -> Window:
    """Return the window that ends at a moment, or now."""
    end = now_s if end_s is None else end_s
    return Window(end - span_s, end, live=end_s is None)


def whole(first_s: float, last_s: float) -> Window:
    """Return a window in which everything between two moments is seen, with a little room at both ends."""
    room_s = max(0.5, (last_s - first_s) * 0.02)
    return Window(first_s - room_s, last_s + room_s, live=False)


def fitting_span(first_s: float, now_s: float) -> float:
    """Return the smallest span in which everything since a moment is seen, between a minute and an hour."""
    return next((float(span) for span in SPANS_S if 60 <= span <= 3600 and span >= (now_s - first_s) * 1.02), 3600.0)


def nearest_span(wanted_s: float) -> float:
    """Return the offered span that is nearest."""
    return float(min(SPANS_S, key=lambda one: abs(one - wanted_s)))


def spans_beside(span_s: float) -> tuple[float | None, float | None]:
    """Return the next smaller and the next greater span."""
    smaller = max((float(one) for one in SPANS_S if one < span_s), default=None)
    greater = min((float(one) for one in SPANS_S if one > span_s), default=None)
    return smaller, greater


def clock(at_s: float, *, seconds: bool = True, tenths: bool = False) -> str:
    """Return the time of day, UTC."""
    text = datetime.fromtimestamp(at_s, UTC).strftime("%H:%M:%S.%f")
    return text[:10] if tenths else text[:8] if seconds else text[:5]


class Row(NamedTuple):
    """One lane, or several that look alike."""

    lane: Lane
    others: int  #: how many more it stands for


def rows(swim: SwimLanes, seen: Window, *, unfolded: bool) -> list[Row]:
    """Return what is seen of the lanes: those that wait or are waited for now first, then by arrival. Many alike become one row."""
    waited_for = {key for wait in swim.waits if wait.at_s is None for key in wait.waited_for}
    lanes = [lane for lane in swim.lanes.values() if (lane.bars or lane.marks) and seen.shows(lane.first_s, lane.last_s)]
    lanes.sort(key=lambda lane: (lane.key not in waited_for, not lane.is_open, lane.first_s, lane.name))
    if unfolded or len(lanes) <= _LANES_UNFOLDED:
        return [Row(lane, 0) for lane in lanes]
    kept: list[list[Lane]] = []
    by_course: dict[tuple[object, ...], list[list[Lane]]] = {}
    for lane in lanes:
        course = (lane.key in waited_for, *_course(lane, seen))
        bundles = by_course.setdefault(course, [])
        bundle = next((one for one in bundles if _alike(one[0], lane, seen)), None)
        if bundle is None:
            bundle = []
            bundles.append(bundle)
            kept.append(bundle)
        bundle.append(lane)
    return [
        row
        for bundle in kept
        for row in ([Row(bundle[0], len(bundle) - 1)] if len(bundle) >= _LEAST_FOLDED else [Row(lane, 0) for lane in bundle])
    ]


def _course(lane: Lane, seen: Window) -> Iterable[object]:
    yield from (bar.doing for bar in lane.bars if seen.shows(bar.from_s, bar.to_s))
    yield from (mark.what for mark in lane.marks if seen.shows(mark.at_s, mark.at_s))


def _alike(one: Lane, other: Lane, seen: Window) -> bool:
    return all(abs(a - b) <= _ALIKE for a, b in zip(_places(one, seen), _places(other, seen), strict=False))


def _places(lane: Lane, seen: Window) -> Sequence[float]:
    bars = [bar for bar in lane.bars if seen.shows(bar.from_s, bar.to_s)]
    marks = [mark for mark in lane.marks if seen.shows(mark.at_s, mark.at_s)]
    return [
        *(max(0.0, seen.x(bar.from_s)) for bar in bars),
        *(100.0 if bar.to_s is None else min(100.0, seen.x(bar.to_s)) for bar in bars),
        *(seen.x(mark.at_s) for mark in marks),
    ]

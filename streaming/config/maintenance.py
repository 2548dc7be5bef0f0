"""Planned maintenance: time windows in which findings about some groups are held back.

A window is a range (``starts``, ``ends``), recurs (``days``, ``at``, ``minutes``), or recurs within a range. A finding that opens in a
window is sent at the end of the window if it is still open.

Daylight saving time: ``at`` is the local time in ``zone``, and ``minutes`` is the duration, so a window is neither skipped nor repeated
when an hour is. If ``at`` is in a skipped hour, the window starts as if the clock had not changed. If ``at`` is in a repeated hour, the
window starts in the first one.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Annotated, Final, Literal, Self
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, Field, model_validator

from streaming.config.base import Section
from streaming.config.patterns import Pattern, matches

if TYPE_CHECKING:
    from collections.abc import Iterable

Day = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
DAYS: Final[tuple[Day, ...]] = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_WEEK_MIN: Final = 7 * 24 * 60
_DAY_MIN: Final = 24 * 60


def _known_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (LookupError, ValueError, OSError):
        raise ValueError(f"there is no time zone {name!r}; use a name such as 'Europe/Berlin' or 'UTC'") from None
    return name


Zone = Annotated[str, AfterValidator(_known_zone)]


class Maintenance(Section):
    """One planned window. Times are in seconds since the epoch."""

    groups: tuple[Pattern, ...] = ("*",)
    mirror: bool = False
    zone: Zone = "UTC"
    starts: dt.datetime | None = None
    ends: dt.datetime | None = None
    days: tuple[Day, ...] = DAYS
    at: dt.time | None = None
    minutes: int | None = Field(default=None, ge=1, le=_WEEK_MIN)

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.at is None) != (self.minutes is None):
            raise ValueError("at and minutes go together: at is when the window begins, minutes is its duration")
        if self.at is None and (self.starts is None or self.ends is None):
            raise ValueError("a window needs starts and ends, or at and minutes")
        if self.at is not None and self.at.tzinfo is not None:
            raise ValueError("at is the local time in zone; it must not have an offset")
        if not self.days:
            raise ValueError("days is empty; omit it for every day")
        if self.starts is not None and self.ends is not None and self._moment(self.starts) >= self._moment(self.ends):
            raise ValueError("starts must be before ends")
        return self

    def concerns(self, group: str) -> bool:
        """Return True if the window applies to this group; an empty name means the mirror as a whole."""
        return matches(group, self.groups) if group else self.mirror

    def end_of(self, at_s: float) -> float | None:
        """Return the end of the window if it is active at ``at_s``, else None."""
        first = self._moment(self.starts) if self.starts is not None else float("-inf")
        last = self._moment(self.ends) if self.ends is not None else float("inf")
        if not first <= at_s < last:
            return None
        if self.at is None or self.minutes is None:
            return last
        today = dt.datetime.fromtimestamp(at_s, ZoneInfo(self.zone)).date()
        days = (today - dt.timedelta(days=back) for back in range(self.minutes // _DAY_MIN + 2))
        ends = [end for day in days if (end := self._occurrence(day, at_s)) is not None]
        return min(last, max(ends)) if ends else None

    def _occurrence(self, day: dt.date, at_s: float) -> float | None:
        """Return the end of the occurrence that starts on ``day`` if it is active at ``at_s``, else None."""
        assert self.at is not None
        assert self.minutes is not None
        if DAYS[day.weekday()] not in self.days:
            return None
        began = dt.datetime.combine(day, self.at, ZoneInfo(self.zone)).timestamp()
        return began + self.minutes * 60 if began <= at_s < began + self.minutes * 60 else None

    def _moment(self, given: dt.datetime) -> float:
        return (given if given.tzinfo is not None else given.replace(tzinfo=ZoneInfo(self.zone))).timestamp()


def held_until(windows: Iterable[Maintenance], group: str, at_s: float, now_s: float) -> float:
    """Return when an event of ``group`` at ``at_s`` may be sent; a time that is not after ``now_s`` means now.

    Windows that follow each other without a pause count as one.
    """
    concerned = [window for window in windows if window.concerns(group)]
    until = at_s
    while until <= now_s:
        ends = [end for window in concerned if (end := window.end_of(until)) is not None]
        if not ends:
            break
        until = max(ends)
    return until

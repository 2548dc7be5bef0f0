"""Planned maintenance: spans of time in which nobody wants to be told of some groups.

A window is a range (``starts``, ``ends``), or recurs (``days``, ``at``, ``minutes``), or recurs within a range. What opens within one
is held back, and told at its end if it is still open.

The trap: clocks change. ``at`` is the time on the wall in ``zone``, and ``minutes`` is how long it lasts, so that a window neither
vanishes nor doubles in the night in which an hour is missing or comes twice: an hour that is missing begins when it would have, one
that comes twice is meant when it comes first.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Annotated, Final, Literal, Self
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, Field, model_validator

from streaming.config.base import Section
from streaming.notify.patterns import Pattern, matches

if TYPE_CHECKING:
    from collections.abc import Iterable

Day = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_DAYS: Final[tuple[Day, ...]] = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_WEEK_MIN: Final = 7 * 24 * 60
_DAY_MIN: Final = 24 * 60


def _known_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (LookupError, ValueError, OSError):
        raise ValueError(f"there is no time zone {name!r}; write it like 'Europe/Berlin' or 'UTC'") from None
    return name


class Maintenance(Section):
    """One planned window. Moments are seconds since the epoch."""

    groups: tuple[Pattern, ...] = ("*",)
    mirror: bool = False
    zone: Annotated[str, AfterValidator(_known_zone)] = "UTC"
    starts: dt.datetime | None = None
    ends: dt.datetime | None = None
    days: tuple[Day, ...] = _DAYS
    at: dt.time | None = None
    minutes: int | None = Field(default=None, ge=1, le=_WEEK_MIN)

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.at is None) != (self.minutes is None):
            raise ValueError("at and minutes go together: when it begins, and how long it lasts")
        if self.at is None and (self.starts is None or self.ends is None):
            raise ValueError("a window needs starts and ends, or at and minutes")
        if self.at is not None and self.at.tzinfo is not None:
            raise ValueError("at is the time on the wall in zone, without an offset")
        if not self.days:
            raise ValueError("days is empty; leave it out for every day")
        if self.starts is not None and self.ends is not None and self._moment(self.starts) >= self._moment(self.ends):
            raise ValueError("starts must be before ends")
        return self

    def concerns(self, group: str) -> bool:
        """Whether it is for this group; an empty name stands for the mirror as a whole."""
        return matches(group, self.groups) if group else self.mirror

    def end_of(self, at_s: float) -> float | None:
        """When the window that is on at ``at_s`` ends; None when none is."""
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
        """The end of the occurrence of a day, if it is on."""
        assert self.at is not None
        assert self.minutes is not None
        if _DAYS[day.weekday()] not in self.days:
            return None
        began = dt.datetime.combine(day, self.at, ZoneInfo(self.zone)).timestamp()
        return began + self.minutes * 60 if began <= at_s < began + self.minutes * 60 else None

    def _moment(self, given: dt.datetime) -> float:
        return (given if given.tzinfo is not None else given.replace(tzinfo=ZoneInfo(self.zone))).timestamp()


def held_until(windows: Iterable[Maintenance], group: str, at_s: float, now_s: float) -> float:
    """When to tell what happened to ``group`` at ``at_s``; a time that is not after ``now_s`` means now.

    Windows that follow each other without a pause are one.
    """
    concerned = [window for window in windows if window.concerns(group)]
    until = at_s
    while until <= now_s:
        ends = [end for window in concerned if (end := window.end_of(until)) is not None]
        if not ends:
            break
        until = max(ends)
    return until

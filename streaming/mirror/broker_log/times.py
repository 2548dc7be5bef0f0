"""The time of a log line, in whatever pattern a broker writes it.

Most patterns name no zone, so the time is that of the reader's own zone (``TZ`` sets it). Some have whole seconds only. A line may have two
times, that of the broker and that of the container's runtime; the finer one counts.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Final, NamedTuple

_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_CLOCK: Final = r"(?P<hour>\d\d):?(?P<minute>\d\d):?(?P<second>\d\d)(?:[.,:](?P<fraction>\d{1,9}))?"
_ZONE: Final = r"(?: ?(?P<zone>Z|UTC|GMT|[+-]\d\d:?\d\d|[+-]\d\d(?=[\]\s])))?(?![\d:])"
_ISO: Final = re.compile(rf"(?<!\d)(?P<year>\d{{4}})-?(?P<month>\d\d)-?(?P<day>\d\d)[T ]{_CLOCK}{_ZONE}")
_DATE: Final = re.compile(rf"(?<!\d)(?P<day>\d\d) (?P<month>{'|'.join(_MONTHS)}) (?P<year>\d{{4}}) {_CLOCK}{_ZONE}")
_MILLIS: Final = re.compile(r"(?<![\w.])(\d{13})(?![\w.])")
_JSON_FIELDS: Final = ("@timestamp", "timestamp", "time", "ts", "datetime")


class LogTime(NamedTuple):
    """When a line was written."""

    at_us: int  #: since the epoch
    step_us: int  #: how fine the time is


def time_in(text: str) -> LogTime | None:
    """Return the finest time in what precedes a message."""
    found = [_of_match(match) for pattern in (_ISO, _DATE) for match in pattern.finditer(text)]
    times = [time for time in found if time is not None]
    if times:
        return min(times, key=lambda time: time.step_us)
    millis = _MILLIS.search(text)
    return LogTime(int(millis[1]) * 1_000, 1_000) if millis else None


def time_of(fields: dict[str, Any]) -> LogTime | None:
    """Return the time of a line whose layout is JSON."""
    match fields.get("instant"), fields.get("timeMillis"):
        case {"epochSecond": int(second), "nanoOfSecond": int(nano)}, _:
            return _checked(second * 1_000_000 + nano // 1_000, 1)
        case _, int(millis):
            return _checked(millis * 1_000, 1_000)
    for name in _JSON_FIELDS:
        value = fields.get(name)
        if isinstance(value, str) and (found := time_in(value[:64])) is not None:
            return found
        if isinstance(value, int) and not isinstance(value, bool):
            return _checked(value * 1_000 if value > 10**11 else value * 1_000_000, 1_000 if value > 10**11 else 1_000_000)
    return None


class FileClock:
    """The times of one file's lines, in whose order they were written: in the night in which clocks are set back an hour comes twice.

    A pattern without a zone does not distinguish the two. Where times go back by about an hour at once, the second one has begun.
    """

    def __init__(self) -> None:
        self.set_back = 0  #: how often clocks were set back so far
        self._newest_us = self._before_us = 0  # of all lines; of the line before
        self._first_ended_us = 0  # the newest time of the hour that comes again; 0 if none did
        self._again_us = 0  # when it began to come again, by the time that a line says

    def late_us(self, at_us: int) -> int:
        """Return by how much a line is later than it says: 0, but for lines of an hour that comes again."""
        comes_again = self._again_us <= at_us + CROSSED_US and at_us <= self._first_ended_us
        at_once = self._newest_us - self._before_us < CROSSED_US  # else older lines were put behind
        if not comes_again and at_once and _SET_BACK_US // 2 < self._newest_us - at_us <= _SET_BACK_US + CROSSED_US:
            self._first_ended_us, self._again_us, comes_again = self._newest_us, at_us, True
            self.set_back += 1
        begun_us = self._newest_us - _SET_BACK_US - self._again_us
        if begun_us < CROSSED_US and at_us > self._first_ended_us - CROSSED_US:
            comes_again = False  # a line of the first hour that was written late
        late_us = _SET_BACK_US if comes_again else 0
        self._before_us = at_us + late_us
        self._newest_us = max(self._newest_us, self._before_us)
        return late_us


_SET_BACK_US: Final = 3_600_000_000
CROSSED_US: Final = 10_000_000  # lines of several threads may stand in another order than that of their times

_LATEST_US: Final = 253_402_300_800_000_000  # the year 10,000


def _checked(at_us: int, step_us: int) -> LogTime | None:
    return LogTime(at_us, step_us) if 0 < at_us < _LATEST_US else None


def _of_match(match: re.Match[str]) -> LogTime | None:
    parts = match.groupdict()
    month = parts["month"]
    fraction = parts["fraction"] or ""
    try:
        at = datetime(  # noqa: DTZ001 - the reader's zone, unless the line names one
            int(parts["year"]),
            _MONTHS.index(month) + 1 if month in _MONTHS else int(month),
            int(parts["day"]),
            int(parts["hour"]),
            int(parts["minute"]),
            int(parts["second"]),
        )
        if parts["zone"]:
            at = at.replace(tzinfo=_zone(parts["zone"]))
        return _checked(int(at.timestamp()) * 1_000_000 + int(fraction[:6].ljust(6, "0")), 10 ** max(6 - len(fraction), 0))
    except (ValueError, OverflowError, OSError):
        return None


def _zone(text: str) -> timezone:
    if text[0] not in "+-":
        return UTC
    hours, minutes = int(text[1:3]), int(text[3:].strip(":") or 0)
    return timezone(timedelta(hours=hours, minutes=minutes) * (-1 if text[0] == "-" else 1))

"""The order of the lines in one file: that in which they were written, or the newest first, as exports have it."""

from __future__ import annotations

from itertools import islice, pairwise
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from streaming.mirror.broker_log.request_line import LogEntry

_LOOKED_AT: Final = 100


def oldest_first(entries: Iterable[LogEntry]) -> Iterator[LogEntry]:
    """Yield the entries of a file in the order in which they were written.

    Of a file that begins with its newest line, as those of Loki and Google Cloud by default, all entries are kept.
    """
    coming = iter(entries)
    first = list(islice(coming, _LOOKED_AT))
    times = [entry.at_us for entry in first if entry.at_us]
    later = sum(one < other for one, other in pairwise(times))
    earlier = sum(one > other for one, other in pairwise(times))
    if earlier > later:
        yield from reversed([*first, *coming])
        return
    yield from first
    yield from coming

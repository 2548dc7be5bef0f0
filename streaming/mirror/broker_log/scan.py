"""Cuts a broker's log into the lines that are worth reading.

Most lines of a busy broker's request log are Produce and Fetch. Which API a line is about stands near its beginning, so those are passed
over without being parsed or copied. A line of any of the groups' APIs is handed on, and of each portion the last line, for its time.

The trap: a file may not be what it is said to be. A line without an end is not collected without limit.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

from coordinator_model.wire.record import MIRRORED_API_KEYS
from streaming.mirror.broker_log.coordinator_lines import MARK
from streaming.mirror.broker_log.times import time_in
from streaming.mirror.topics import METADATA

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streaming.mirror.pcap.files import Source

LONGEST_LINE: Final = 16 * 2**20
"""Bytes. A longer line is not read: the largest group's JoinGroup answer takes some megabytes."""

REQUEST: Final = b"Completed request:"
TEXT_FORM: Final = b"Completed request:RequestHeader("
"""What a line of Kafka before 2.8 has, which is no JSON."""

BEGINNING: Final = 1024
"""Bytes by which a log is recognised."""

_TEXT: Final = bytes(byte for byte in range(256) if byte >= 0x20 or byte in b"\t\r\n\x1b")

API_KEY: Final = b"requestApiKey"
_number: Final = re.compile(rb'requestApiKey\\*" ?: ?(\d+)').match
_WANTED: Final = frozenset(str(key).encode() for key in (*MIRRORED_API_KEYS, METADATA))


def is_broker_log(source: Source) -> bool:
    """Whether a file is text whose first lines have a time, as a log has; nothing is taken from it."""
    return begins_like_a_log(source.peek(BEGINNING))


def begins_like_a_log(beginning: bytes) -> bool:
    """Whether a file that begins so (:data:`BEGINNING` bytes) is a log."""
    if not beginning or beginning.translate(None, _TEXT):
        return False
    text = beginning.decode("utf-8", "replace")
    return REQUEST.decode() in text or time_in(text) is not None


class Scanner:
    """Takes the bytes of one file in portions of any size, and gives its lines of interest.

    :param counts: where lines are counted that were not handed on.
    """

    def __init__(self, counts: Counter[str]) -> None:
        self._counts = counts
        self._rest: list[bytes] = []
        self._rest_size = 0
        self._skips = False  # the rest of a line that is too long

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Return the lines of interest that end in this portion."""
        end = data.rfind(b"\n")
        if end < 0:
            self._keep(data)
            return
        if self._rest or self._skips:
            begin = data.find(b"\n") + 1
            first = b"".join((*self._rest, data[: begin - 1]))
            whole = not self._skips and len(first) <= LONGEST_LINE
            self._forget()
            if whole:
                yield from self._lines(first)
            else:
                self._counts["lines of more than 16 MiB"] += 1
            data = data[begin:]
            end -= begin
        self._keep(data[end + 1 :])
        if end >= 0:
            yield from self._lines(data[:end])

    def finish(self) -> Iterator[bytes]:
        """Return what stands behind the last line end."""
        rest, skipped = b"".join(self._rest), self._skips
        self._forget()
        if skipped:
            self._counts["lines of more than 16 MiB"] += 1
        else:
            yield from self._lines(rest)

    def _forget(self) -> None:
        self._rest.clear()
        self._rest_size, self._skips = 0, False

    def _keep(self, data: bytes) -> None:
        if data and not self._skips:
            self._rest.append(data)
            self._rest_size += len(data)
            if self._rest_size > LONGEST_LINE:
                self._forget()
                self._skips = True

    def _lines(self, data: bytes) -> Iterator[bytes]:
        said = _of_coordinators(data)
        coming = next(said, None)
        at, passed, last = data.find(API_KEY), 0, -1
        if at < 0:
            self._counts["lines in text form"] += data.count(TEXT_FORM)
        while at >= 0:
            end = data.find(b"\n", at)
            end = len(data) if end < 0 else end
            found = _number(data, at)
            if found is not None and found[1] in _WANTED:
                while coming is not None and coming[0] < at:
                    yield coming[1]
                    coming = next(said, None)
                yield data[data.rfind(b"\n", 0, at) + 1 : end]
                last = -1
            else:
                passed += 1
                last = at
            at = data.find(API_KEY, end)
        self._counts["other requests"] += passed
        if coming is not None:
            yield coming[1]
        yield from (line for _, line in said)
        if last >= 0:
            end = data.find(b"\n", last)
            yield data[data.rfind(b"\n", 0, last) + 1 : len(data) if end < 0 else end]


def _of_coordinators(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield what coordinators say, with its place in the portion."""
    at = data.find(MARK)
    while at >= 0:
        end = data.find(b"\n", at)
        end = len(data) if end < 0 else end
        line = data[data.rfind(b"\n", 0, at) + 1 : end]
        if API_KEY not in line:
            yield at, line
        at = data.find(MARK, end)

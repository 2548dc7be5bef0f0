"""Cuts a broker's log into the lines that are worth reading.

Most lines of a busy broker's request log are Produce and Fetch. Which API a line is about stands near its beginning, so those are passed
over without being parsed or copied. A line of any of the groups' APIs is handed on, and of each portion the last line, for its time.

A file may not be what it is said to be. A line without an end is not collected without limit.
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

IN_CSV: Final = b'""requestApiKey""'
"""What a request line has in a table of comma-separated values."""

_CELL: Final = re.compile(rb'(?:[^{\n]*?,)?"\[?\d{4}-')
"""How a line begins that is a cell of such a table. CloudWatch Insights puts the newest first, and other cells around it."""

BEGINNING: Final = 1024
"""Bytes by which a log is recognised."""

_TEXT: Final = bytes(byte for byte in range(256) if byte >= 0x20 or byte in b"\t\r\n\x1b")

API_KEY: Final = b"requestApiKey"
_number: Final = re.compile(rb'requestApiKey\\*" ?: ?(\d+)').match
_WANTED: Final = frozenset(str(key).encode() for key in (*MIRRORED_API_KEYS, METADATA))


_CRI: Final = re.compile(rb"(\S+ std(?:out|err) )P (.*)", re.DOTALL)
_CRI_NEXT: Final = re.compile(rb"(\S+ std(?:out|err) )[PF] (.*)", re.DOTALL)
_DOCKER: Final = re.compile(rb'(\{"log":")((?:[^"\\]|\\.)*)(".*)', re.DOTALL)


def is_partial(line: bytes) -> bool:
    """Return True if a container's runtime has written a line in parts, and this is not the last one.

    Runtimes cut at 16 KiB: those of Kubernetes mark a part with P and the last with F (CRI), the last of Docker's ends in a line feed.
    """
    if line[:8] == b'{"log":"':
        found = _DOCKER.fullmatch(line)
        return found is not None and not found[2].endswith(b"\\n")
    return _CRI.match(line[:64]) is not None


def joined(data: bytes, begin: int, end: int) -> tuple[bytes, int]:
    """Return the line whose first part is ``data[begin:end]``, and where its last part ends."""
    first = data[begin:end]
    docker = _DOCKER.fullmatch(first)
    found = docker or _CRI.fullmatch(first)
    assert found is not None
    text, pattern = [found[2]], _DOCKER if docker else _CRI_NEXT
    more = True
    while more and end < len(data):
        begin, end = end + 1, _line_end(data, end + 1)
        following = pattern.fullmatch(data, begin, end)
        if following is None:
            break
        text.append(following[2])
        more = is_partial(data[begin:end])
    whole = b"".join(text)
    return (docker[1] + whole + docker[3] if docker else found[1] + b"F " + whole), end


def _line_end(data: bytes, at: int) -> int:
    end = data.find(b"\n", at)
    return len(data) if end < 0 else end


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
        if b"\n" not in data:
            self._keep(data)
            return
        if self._skips:
            self._counts["lines of more than 16 MiB"] += 1
            data = data[data.find(b"\n") + 1 :]
        before = b"".join(self._rest)
        self._forget()
        data = before + data
        begin, end = before.rfind(b"\n") + 1, data.rfind(b"\n")
        if before and data.find(b"\n", len(before)) - begin > LONGEST_LINE:
            self._counts["lines of more than 16 MiB"] += 1
            data = data[:begin] + data[data.find(b"\n", len(before)) + 1 :]
            end = data.rfind(b"\n")
        while end >= 0 and is_partial(data[data.rfind(b"\n", 0, end) + 1 : end]):
            end = data.rfind(b"\n", 0, end)  # its other parts come with the next portion
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
        lines = self._of_coordinators(data)
        coming = next(lines, None)
        at, passed, last = data.find(API_KEY), 0, -1
        if at < 0:
            self._counts["lines in text form"] += data.count(TEXT_FORM)
        while at >= 0:
            end = _line_end(data, at)
            found = _number(data, at)
            if found is not None and found[1] in _WANTED:
                while coming is not None and coming[0] < at:
                    yield coming[1]
                    coming = next(lines, None)
                begin = data.rfind(b"\n", 0, at) + 1
                line = data[begin:end]
                if is_partial(line):
                    line, end = joined(data, begin, end)
                yield line
                last = -1
            elif found is None and data.startswith(IN_CSV, max(at - 2, 0)):
                self._counts["lines in a table"] += 1
            else:
                passed += 1
                last = at
            at = data.find(API_KEY, end)
        self._counts["other requests"] += passed
        if coming is not None:
            yield coming[1]
        yield from (line for _, line in lines)
        if last >= 0:
            yield data[data.rfind(b"\n", 0, last) + 1 : _line_end(data, last)]

    def _of_coordinators(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield what coordinators say, with its place in the portion."""
        at = data.find(MARK)
        while at >= 0:
            end = _line_end(data, at)
            begin = data.rfind(b"\n", 0, at) + 1
            line = data[begin:end]
            if API_KEY in line:
                pass  # a request of a group that is named so
            elif _CELL.match(line, 0, at - begin):
                self._counts["lines in a table"] += 1
            else:
                yield at, line
            at = data.find(MARK, end)

"""The files that commands read captured traffic from: named, in folders, packed, or standard input."""

from __future__ import annotations

import resource
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from coordinator_model.wire.recording import MAGIC
from streaming.commands.options import STDIN
from streaming.errors import why_not
from streaming.mirror.broker_log.scan import is_broker_log
from streaming.mirror.captures import captured, is_capture
from streaming.mirror.pcap.files import CaptureError, Source, is_packets, opened, packets
from streaming.mirror.pcap.first_pass import FirstPass, first_pass, nothing_known
from streaming.mirror.record_file import is_record_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.console import Console

    from streaming.mirror.pcap.capture_reader import Captured

FIRST_BYTES: Final = len(MAGIC)
"""Bytes that show what a file holds."""

NOT_READ: Final = (
    "neither a packet capture (pcap or pcapng), nor a trace of Envoy, nor a broker's log, nor a file of mirror records"
)
"""What a file is that commands do not read."""


class ReplayError(Exception):
    """Nothing can be replayed; the message is one sentence that names the file and the remedy."""


class _Counted:
    """A file that reports how many bytes were read."""

    def __init__(self, raw: BinaryIO, name: str, advance: Callable[[int], None]) -> None:
        self._raw = raw
        self._name = name
        self._advance = advance

    def read1(self, count: int = -1) -> bytes:
        try:
            data: bytes = self._raw.read1(count)  # type: ignore[attr-defined]
        except OSError as error:
            raise _unreadable(self._name, error) from None
        self._advance(len(data))
        return data

    read = read1


def files_of(names: Sequence[str], note: Callable[[str], object] = lambda _: None) -> list[str]:
    """Name the files to read: those given, and of a folder those in it that can be read and are not empty.

    :param note: called with a sentence about each file in a folder that is left out.
    :raises ReplayError: when a folder holds none.
    """
    found: list[str] = []
    for name in names:
        if name == STDIN or not Path(name).is_dir():
            found.append(name)
            continue
        inside = sorted(str(path) for path in Path(name).iterdir() if path.is_file() and path.stat().st_size)
        if not inside:
            raise ReplayError(f"{name} holds no file that is not empty")
        kinds = {path: _kind_of(path, note) for path in inside}
        captures, logs = ([path for path in inside if kinds[path] == kind] for kind in ("capture", "log"))
        if not captures and not logs:
            raise ReplayError(
                f"{name} holds neither a packet capture, nor a trace of Envoy, nor a broker's log, nor a file of mirror records"
            )
        for path in logs if captures else ():
            note(f"{path} is a log among captures, and was skipped")
        found += captures or logs
    _allow_open(len(found))
    return found


def _kind_of(path: str, note: Callable[[str], object]) -> str:
    try:
        with source_of(path) as source:
            if is_capture(source) or is_record_file(source.peek(FIRST_BYTES)):
                return "capture"
            if is_broker_log(source):
                return "log"
    except ReplayError as error:
        note(f"{error}; it was skipped")
    else:
        note(f"{path} is neither a capture, nor a log, nor a file of mirror records, and was skipped")
    return ""


def _allow_open(files: int) -> None:
    """Each file is open while its times are merged with those of the others; the limit is often 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = files + 256
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))


@contextmanager
def source_of(name: str, advance: Callable[[int], None] = lambda _: None) -> Iterator[Source]:
    """Open a file, which may be compressed, or standard input.

    :param advance: called with the number of bytes read, before decompression.
    :raises ReplayError: when the input cannot be opened or read.
    """
    try:
        raw = _open(name)
    except OSError as error:
        raise _unreadable(name, error) from None
    with raw:
        try:
            source = opened(_Counted(raw, name, advance))  # type: ignore[arg-type]
            source.peek(FIRST_BYTES)
        except CaptureError as error:
            raise ReplayError(f"{called(name)} {error}") from None
        yield source


def captured_in(
    name: str, source: Source, damage: Callable[[str], None], secrets: Callable[[bytes], None]
) -> Iterator[Sequence[Captured]]:
    """Return what a capture holds, as :func:`captured` does.

    :raises ReplayError: when it is no capture at all.
    """
    try:
        return captured(source, damage, secrets)
    except CaptureError as error:
        raise ReplayError(f"{called(name)} {error}") from None


def first_pass_of(names: Sequence[str]) -> FirstPass:
    """Return what has to be known of captures before their first frame. They are read twice for it; what cannot be is not looked at."""
    try:
        with ExitStack() as stack:
            if not all(Path(name).is_file() for name in names):
                return nothing_known(len(names))
            sources = [stack.enter_context(source_of(name)) for name in names]
            if not all(is_packets(source.peek(4)) for source in sources):
                return nothing_known(len(names))
            return first_pass([packets(source, lambda _: None) for source in sources])
    except CaptureError:  # said when it is replayed
        return nothing_known(len(names))


def _open(name: str) -> BinaryIO:
    if name != STDIN:
        return Path(name).open("rb")
    if sys.stdin.isatty():
        raise ReplayError(
            "standard input is a terminal: pipe a capture into it, as in 'tcpdump -U -w - | rebalance-monitor replay -'"
        )
    return sys.stdin.buffer


def _unreadable(name: str, error: OSError) -> ReplayError:
    return ReplayError(f"{called(name)} cannot be read: {why_not(error)}")


@contextmanager
def progress_of(files: Sequence[str], console: Console) -> Iterator[Callable[[int], None]]:
    """Show a progress bar over all files on a terminal; standard input has no known length."""
    if not console.is_terminal or STDIN in files:
        yield lambda _: None
        return
    columns = (TextColumn("replaying"), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    total = sum(Path(name).stat().st_size for name in files if Path(name).is_file())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("replaying", total=total)
        yield lambda count: progress.advance(task, count)


def called(name: str) -> str:
    """Return how messages call an input."""
    return "standard input" if name == STDIN else name

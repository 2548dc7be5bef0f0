"""``rebalance-monitor decode``: prints the frames of a file as JSON lines, or as text on a terminal.

The input is a packet capture, a broker's request log, a recording of mirror records, or JSON lines with one frame each:
``{"request": true, "api_key": 12, "api_version": 4, "frame": "000c0004…"}``, with the frame in hexadecimal or base64.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import io
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Final

import typer
from rich.json import JSON
from rich.text import Text

from coordinator_model import wire
from coordinator_model.wire.record import Kind, MirrorRecord, RecordError
from coordinator_model.wire.recording import MAGIC, read_recording
from coordinator_model.wording import counted
from streaming.commands.output import EXIT_OK, fail, print_json, stderr, stdout
from streaming.mirror.broker_log.reader import RequestLogReader
from streaming.mirror.broker_log.scan import BEGINNING, begins_like_a_log, is_broker_log
from streaming.mirror.pcap.capture_reader import CaptureReader
from streaming.mirror.pcap.files import COMPRESSED, CaptureError, Source, is_packets, opened, packets
from streaming.mirror.pcap.tls.key_log import KeyLog
from streaming.mirror.plain_frames import Counts, plain_frame
from streaming.published.wire_text import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.console import Console

_FILE_HEADER: Final = 24  # bytes of a pcap file before its packets
_ARROWS: Final = {Kind.REQUEST: "→", Kind.RESPONSE: "←"}


class InputError(Exception):
    """The file cannot be read; the message says what to do."""


def decode(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Packet capture, broker's request log, file of mirror records, or JSON lines of frames. - is standard input.",
        ),
    ],
    group: Annotated[str | None, typer.Option("--group", "-g", help="Print only frames of this group.")] = None,
    api: Annotated[str | None, typer.Option("--api", "-a", help="Print only frames of this API, by name or key.")] = None,
    errors_only: Annotated[  # noqa: FBT002 - typer declares flags this way
        bool, typer.Option("--errors-only", help="Print only frames with an error code, and frames that cannot be decoded.")
    ] = False,
    verbose: Annotated[  # noqa: FBT002 - as above
        bool,
        typer.Option(
            "--verbose", "-v", help="At the end, print why frames could not be decoded, and where each reason occurred first."
        ),
    ] = False,
) -> None:
    """Print the frames of a file: as text on a terminal, as JSON lines elsewhere.

    rebalance-monitor decode traffic.pcap

    rebalance-monitor decode traffic.records

    rebalance-monitor decode traffic.records --group billing --api JoinGroup

    rebalance-monitor decode traffic.records --errors-only | jq .body.error
    """
    complain = stderr()
    counts = Counts()
    try:
        wanted = Wanted(group, _api_key(api), errors_only)
        show = _show_on(stdout()) if sys.stdout.isatty() else print_json
        for line in lines_of(file, wanted, counts):
            show(line)
    except BrokenPipeError:
        raise typer.Exit(EXIT_OK) from None
    except InputError as error:
        fail(error)
    finally:
        if counts:
            complain.print(_summary(counts, verbose=verbose), style="dim")
        for what, number in counts.reasons.items() if verbose else ():
            complain.print(Text(f"{number:,} {what}; first {counts.first[what]}"), style="dim")


@dataclasses.dataclass(frozen=True)
class Wanted:
    """Which frames to print."""

    group: str | None = None
    api_key: int | None = None
    errors_only: bool = False

    def takes(self, record: MirrorRecord, line: dict[str, Any]) -> bool:
        """Return True if the frame is to be printed."""
        if self.api_key is not None and record.api_key != self.api_key:
            return False
        if self.group is not None and self.group != record.group and self.group not in line["groups"]:
            return False
        return not self.errors_only or "unreadable" in line or _has_error(line["body"])


def lines_of(file: Path, wanted: Wanted, counts: Counts) -> Iterator[dict[str, Any]]:
    """Yield one object per wanted frame; ``counts`` counts all records.

    :raises InputError: when the file cannot be opened or has the wrong format.
    """
    protocol_types: dict[str | None, str] = {}
    for record in _records(file):
        if record.kind not in _ARROWS:
            counts[record.kind.value] += 1
            continue
        counts["frames"] += 1
        line = plain_frame(record, protocol_types, counts)
        if wanted.takes(record, line):
            counts["printed"] += 1
            yield line


# --- reading -----------------------------------------------------------------------------------------------------------------------


def _records(file: Path) -> Iterator[MirrorRecord]:
    try:
        with io.BufferedReader(sys.stdin.buffer) if str(file) == "-" else file.open("rb") as stream:  # type: ignore[arg-type, type-var]
            beginning = stream.peek(BEGINNING)
            if _may_be_a_capture(beginning) or begins_like_a_log(beginning[:BEGINNING]):
                yield from _captured(opened(stream), "standard input" if str(file) == "-" else str(file))
            else:
                yield from _read(stream)
    except CaptureError as error:
        raise InputError(f"{file} {error}") from None
    except OSError as error:
        raise InputError(f"{file}: {error.strerror}") from None
    except RecordError as error:
        raise InputError(f"{file}: {error}") from None


def _may_be_a_capture(beginning: bytes) -> bool:
    return (is_packets(beginning[:4]) and len(beginning) >= _FILE_HEADER) or beginning.startswith(COMPRESSED)


def _captured(source: Source, called: str) -> Iterator[MirrorRecord]:
    """The frames of group coordination in a packet capture, or a request log."""
    found: list[MirrorRecord] = []
    damage: list[str] = []
    reader: CaptureReader | RequestLogReader
    if is_broker_log(source):
        reader = log = RequestLogReader(found.append)
        steps = map(log.take, log.entries_in(source, damage.append))
    else:
        key_log = KeyLog()
        reader = capture = CaptureReader(found.append, key_log=key_log)
        steps = map(capture.read, ([some] for some in packets(source, damage.append, key_log.add_all)))
    for _ in steps:
        yield from _frames(found)
        found.clear()
    reader.finish()
    yield from _frames(found)
    why = reader.why_nothing() or (f"{damage[0]}: everything before it was decoded" if damage else None)
    if why is not None:
        raise InputError(f"{called} {why}")


def _frames(records: Iterable[MirrorRecord]) -> Iterator[MirrorRecord]:
    return (record for record in records if record.kind in _ARROWS)


def _read(stream: BinaryIO) -> Iterator[MirrorRecord]:
    if not stream.seekable() or stream.read(1) == MAGIC[:1]:
        if stream.seekable():
            stream.seek(0)
        yield from read_recording(stream)
        return
    stream.seek(0)
    for number, text in enumerate(stream, 1):
        if text.strip():
            yield _from_json(text, number)


def _from_json(text: bytes, number: int) -> MirrorRecord:
    try:
        fields = json.loads(text)
        kind = Kind.REQUEST if fields["request"] else Kind.RESPONSE
        key, version, frame = int(fields["api_key"]), int(fields["api_version"]), _bytes(fields["frame"])
    except (ValueError, KeyError, TypeError):
        raise RecordError(
            f"line {number} is neither a mirror record nor an object with request, api_key, api_version and frame (hexadecimal or base64)"
        ) from None
    return MirrorRecord(-1, number, fields.get("group"), kind, 0, api_key=key, api_version=version, frame=frame)


def _bytes(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        try:
            return base64.b64decode(text, validate=True)
        except binascii.Error:
            raise ValueError from None


def _api_key(api: str | None) -> int | None:
    if api is None:
        return None
    keys = {name.lower(): key for key, name in wire.API_NAMES.items()}
    key = int(api) if api.isdecimal() else keys.get(api.lower())
    if key is None:
        raise InputError(f"--api {api}: no such API; known are {', '.join(wire.API_NAMES.values())}")
    return key


def _has_error(value: Any) -> bool:
    if isinstance(value, dict):
        return value.get("error_code", 0) != 0 or any(_has_error(item) for item in value.values())
    return isinstance(value, list) and any(_has_error(item) for item in value)


# --- printing ----------------------------------------------------------------------------------------------------------------------


def _show_on(console: Console) -> Any:
    def show(line: dict[str, Any]) -> None:
        kind = Kind.REQUEST if line["kind"] == "request" else Kind.RESPONSE
        title = Text.assemble(
            (f"{line['at'] or ''} {_ARROWS[kind]} ".lstrip(), "dim"),
            (f"{line['api']} v{line['version']} {line['kind']}", "bold red" if "unreadable" in line else "bold"),
            (visible(f" {', '.join(line['groups'])}"), "cyan"),
            (visible(f" {line['client_id'] or ''} #{line['correlation_id']}"), "dim"),
        )
        console.print(title)
        if "unreadable" in line:
            console.print(Text(f"  {line['unreadable']}", "red"))
        else:
            console.print(JSON.from_data(line["body"], indent=2, ensure_ascii=False), soft_wrap=False)

    return show


def _summary(counts: Counts, *, verbose: bool) -> str:
    printed = f"{counts['printed']:,} of {counted(counts['frames'], 'frame')}"
    others = [f"{number:,} {what}" for what, number in counts.items() if what not in ("frames", "printed")]
    hint = ["--verbose says why"] if counts.reasons and not verbose else []
    return "; ".join([printed, *others, *hint])

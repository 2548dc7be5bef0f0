"""``rebalance-monitor replay``: packet captures or a file of mirror records in, timelines and findings out.

The trap: a file is what it is and not what it is called, and seldom whole. What it holds is told by its first bytes; what can be read
of it is replayed, and why that was not all of it is said in the end.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Final, NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from coordinator_model.finding import Finding, Severity, iso_utc
from coordinator_model.settings import Settings
from coordinator_model.wire.recording import MAGIC
from streaming.gc_tuning import collected_seldom
from streaming.mirror.pcap.files import CaptureError, Source, is_capture, opened, packets
from streaming.mirror.pcap.reader import CaptureReader, CaptureStats, in_order
from streaming.mirror.record_file import Unreadable, is_record_file, records
from streaming.replay.engine import ReplayEngine
from streaming.replay.report import GroupHistory, ReplayReport, print_finding, print_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from streaming.mirror.pcap.files import Packet

STDIN: Final = "-"
_FIRST_BYTES: Final = len(MAGIC)


class Format(StrEnum):
    """What is printed."""

    TEXT = "text"
    JSON = "json"


class ReplayError(Exception):
    """Nothing can be replayed; the message is one sentence that names the file and what to do."""


def replay(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE…",
            help="Packet captures (pcap, pcapng), or files of mirror records; gzip, xz and bzip2 are read too. - is standard input.",
        ),
    ],
    *,
    port: Annotated[
        list[int] | None,
        typer.Option(
            "--port",
            "-p",
            min=1,
            max=65535,
            help="Port of the brokers in a capture. Can be repeated. By default the ports are recognised.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Format, typer.Option("--format", "-f", help="Print a report as text, or one finding event per line as JSON.")
    ] = Format.TEXT,
    group: Annotated[
        list[str] | None, typer.Option("--group", "-g", help="Report only this group. Can be repeated.", show_default=False)
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Take the [model] settings from this configuration of the monitor.", show_default=False),
    ] = None,
    cluster: Annotated[str, typer.Option(help="Name of the cluster in the output. Mirror records carry their own.")] = "",
) -> None:
    """Replay captured traffic through the model, without Kafka or Spark, and print what it finds.

    Several captures are merged by time, whether they are parts of one capture or come from several hosts.

    Exit status: 0 if nothing at error or above was found, 1 if something was, 2 if a file cannot be read, or not to its end.

        rebalance-monitor replay broker1.pcapng

        rebalance-monitor replay --port 9092 --port 9192 --group billing capture.pcap.gz

        tcpdump -i any -U -w - port 9092 | rebalance-monitor replay -

        rebalance-monitor replay --format json traffic.records | jq .summary
    """
    complain = Console(stderr=True, highlight=False)
    shown = _Json(group or ()) if output is Format.JSON else _Text(group or (), live=files == [STDIN])
    try:
        session = _Session(shown, settings_of(config), complain)
        try:
            session.read(files, port or (), cluster)
        except KeyboardInterrupt:
            if not session.has_begun:
                raise typer.Exit(130) from None
            session.notes.append("interrupted: what follows was not read")
        worst = session.finish()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is still buffered has nowhere to go
        raise typer.Exit(0) from None
    except ReplayError as error:
        fail(error)
    if session.is_damaged:
        raise typer.Exit(2)
    raise typer.Exit(1 if worst is not None and worst.rank >= Severity.ERROR.rank else 0)


def settings_of(config: Path | None) -> Settings:
    """The model's settings of a configuration file.

    :raises ReplayError: when it cannot be read.
    """
    if config is None:
        return Settings()
    from streaming.config.settings import ConfigError, load  # noqa: PLC0415 - it takes as long as all the rest together

    try:
        return load(config).model
    except ConfigError as error:
        raise ReplayError(str(error)) from None


def fail(error: Exception) -> NoReturn:
    """End with one sentence and exit status 2."""
    Console(stderr=True, highlight=False).print(f"[bold red]error:[/] {_escaped(str(error))}", soft_wrap=True)
    raise typer.Exit(2)


def _escaped(text: str) -> str:
    return text.replace("[", r"\[")


class _Session:
    """One run: reads, replays, and says in the end what was read."""

    def __init__(self, shown: _Text | _Json, settings: Settings, complain: Console) -> None:
        self.notes: list[str] = []
        self.is_damaged = False  #: a file ends too early, or cannot be read from some point on
        self._shown = shown
        self._settings = settings
        self._complain = complain
        self._offline: ReplayEngine | None = None
        self._reader: CaptureReader | None = None
        self._names: Sequence[str] = ()
        self._ports: Sequence[int] = ()

    def read(self, files: Sequence[str], ports: Sequence[int], cluster: str) -> None:
        self._names, self._ports = files, ports
        with ExitStack() as stack:
            stack.enter_context(collected_seldom())
            progress = stack.enter_context(progress_of(files, self._complain))
            sources = [stack.enter_context(source_of(name, progress)) for name in files]
            if all(is_record_file(source.peek(_FIRST_BYTES)) for source in sources):
                self._read_records(sources)
                return
            self._read_captures([self._packets(name, source) for name, source in zip(files, sources, strict=True)], cluster)

    @property
    def has_begun(self) -> bool:
        """Whether there is something to replay."""
        return self._offline is not None

    def finish(self) -> Severity | None:
        """Print what there is to say; gives the worst severity found."""
        assert self._offline is not None
        summary: list[str] = []
        if self._reader is not None:
            self._reader.finish()
            stats = self._reader.stats
            why = stats.why_nothing(self._ports)
            if why is not None:
                raise ReplayError("; ".join([f"{_listed(self._names)} {why}", *self.notes]))
            summary = list(told_of_capture(stats, self._reader.echoes))
        elif not self._offline.counters and not self._offline.last_us:
            raise ReplayError("; ".join([f"{_listed(self._names)} holds no records", *self.notes]))
        self._offline.finish()
        worst = self._shown.finish()
        for note in [*_told_of_all(self._offline), *summary, *self.notes]:
            self._complain.print(_escaped(note), style="dim", soft_wrap=True)
        return worst

    def _read_captures(self, captures: Sequence[Iterator[list[Packet]]], cluster: str) -> None:
        offline = self._offline = self._model("capture")
        reader = self._reader = CaptureReader(offline.recorded, ports=self._ports, cluster=cluster)
        try:
            reader.read(in_order(captures))
        except KeyboardInterrupt:
            reader.next_offset = offline.next_offset  # the record in hand may not have been taken in
            raise

    def _model(self, topic: str) -> ReplayEngine:
        return ReplayEngine(topic=topic, settings=self._settings, found=self._shown.finding, changed=self._shown.group)

    def _read_records(self, sources: Sequence[Source]) -> None:
        from streaming.mirror.producer import DEFAULT_TOPIC  # noqa: PLC0415 - it brings the Kafka client with it

        offline = self._offline = self._model(DEFAULT_TOPIC)  # a file does not say; findings about the topic itself name it
        for name, source in zip(self._names, sources, strict=True):
            for record in records(source, self._damage(name)):
                if isinstance(record, Unreadable):
                    offline.unreadable(record)
                elif record.offset < 0:  # written without a topic between
                    offline.captured(record)
                else:
                    offline.recorded(record)

    def _packets(self, name: str, source: Source) -> Iterator[list[Packet]]:
        beginning = source.peek(_FIRST_BYTES)
        if beginning and not is_capture(beginning[:4]):
            what = (
                "holds mirror records: replay captures and records one after the other"
                if is_record_file(beginning)
                else ("is neither a packet capture (pcap or pcapng) nor a file of mirror records")
            )
            raise ReplayError(f"{_called(name)} {what}")
        try:
            return packets(source, self._damage(name))
        except CaptureError as error:
            raise ReplayError(f"{_called(name)} {error}") from None

    def _damage(self, name: str) -> Callable[[str], None]:
        return lambda why: self._note_damage(f"{_called(name)} {why}: what came before was replayed")

    def _note_damage(self, note: str) -> None:
        self.is_damaged = True
        self.notes.append(note)


# --- what is printed ----------------------------------------------------------------------------------------------------------------


class _Text:
    """For a person: group by group at the end, or line by line when the capture is being made."""

    def __init__(self, groups: Sequence[str], *, live: bool) -> None:
        self._console = Console(highlight=False)
        self._live = live
        self._report = ReplayReport()
        self._story = GroupHistory(self._line if live else self._report.line, groups)
        self._severities: dict[str, Severity] = {}
        self.group = self._story.group

    def _line(self, line: Any) -> None:
        print_line(self._console, line)

    def finding(self, finding: Finding) -> None:
        if not self._story.wants(finding.group):
            return
        self._severities[finding.id] = finding.severity
        self._story.finding(finding)
        if not self._live:
            self._report.finding(finding)
        elif finding.resolved_at_us is None:
            print_finding(self._console, finding)

    def finish(self) -> Severity | None:
        self._report.print(self._console)
        counts = Counter(self._severities.values())
        told = ", ".join(f"{counts[severity]} {severity.value}" for severity in reversed(Severity) if counts[severity])
        self._console.print(f"{counts.total()} finding{'s' if counts.total() != 1 else ''}: {told}" if told else "no findings")
        return max(counts, key=lambda severity: severity.rank, default=None)


class _Json:
    """For programs: each finding event as it comes."""

    group = None  #: nobody reads of a group's course

    def __init__(self, groups: Sequence[str]) -> None:
        self._groups = frozenset(groups)
        self._worst: Severity | None = None

    def finding(self, finding: Finding) -> None:
        if self._groups and finding.group and finding.group not in self._groups:
            return
        if self._worst is None or finding.severity.rank > self._worst.rank:
            self._worst = finding.severity
        print(json.dumps(finding.as_json(), ensure_ascii=False, separators=(",", ":")), flush=True)

    def finish(self) -> Severity | None:
        return self._worst


def _told_of_all(offline: ReplayEngine) -> Iterator[str]:
    counters = offline.counters
    seconds = (offline.last_us - offline.first_us) / 1_000_000
    since = f", from {iso_utc(offline.first_us)[:19].replace('T', ' ')} UTC on" if offline.first_us else ""
    yield f"{counters['frames']:,} group frames of {len(offline.groups):,} groups in {seconds:,.0f} s of traffic{since}"
    modelled = offline.model_counters()
    others = {name: count for name, count in modelled.items() if name not in _NOT_WORTH_A_WORD and count}
    if others:
        yield "also: " + ", ".join(f"{count:,} {name}" for name, count in sorted(others.items()))


_NOT_WORTH_A_WORD: Final = {"tick", "open", "close"}


def told_of_capture(stats: CaptureStats, echoes: int) -> Iterator[str]:
    brokers = ", ".join(f"{address} ({count})" for address, count in stats.brokers.most_common(8))
    more = f" and {len(stats.brokers) - 8} more" if len(stats.brokers) > 8 else ""
    yield f"{stats.packets:,} packets; connections to brokers: {brokers}{more}"
    if not stats.frames:
        yield "none of these connections coordinates a group"
    if stats.foreign:
        tls = f", {stats.encrypted} of them TLS" if stats.encrypted else ""
        yield f"{stats.foreign:,} other connections do not speak Kafka{tls}"
    for reason, count in stats.opaque.most_common():
        yield f"{count:,} connections with a broker could not be followed: {reason}"
    if echoes:
        yield f"{echoes:,} connections repeat others, as behind a proxy, and were counted once"
    if stats.losses:
        holes = f"{stats.losses:,} hole{'s' if stats.losses > 1 else ''}"
        yield f"{stats.lost_bytes:,} bytes of connections that speak for groups were not captured ({holes}): the groups are told"
    if stats.lost_elsewhere:
        yield f"{stats.lost_elsewhere:,} bytes were not captured of connections to brokers that had named no group"
    if stats.fragments:
        plural = "s" if stats.fragments > 1 else ""
        yield f"{stats.fragments:,} IP fragment{plural} of TCP packets cannot be put together, and count as not captured"
    for link, count in stats.links.most_common():
        yield f"{count:,} packets of link type {link} cannot be read"


# --- files --------------------------------------------------------------------------------------------------------------------------


class _Counted:
    """A file that tells how far it has been read."""

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


@contextmanager
def source_of(name: str, advance: Callable[[int], None] = lambda _: None) -> Iterator[Source]:
    """A file, decompressed if need be, or standard input.

    :param advance: told of the bytes read, before decompression.
    :raises ReplayError: when it cannot be opened or read.
    """
    try:
        raw = _open(name)
    except OSError as error:
        raise _unreadable(name, error) from None
    with raw:
        try:
            source = opened(_Counted(raw, name, advance))  # type: ignore[arg-type]
            source.peek(_FIRST_BYTES)
        except CaptureError as error:
            raise ReplayError(f"{_called(name)} {error}") from None
        yield source


def _open(name: str) -> BinaryIO:
    if name != STDIN:
        return Path(name).open("rb")
    if sys.stdin.isatty():
        raise ReplayError(
            "standard input is a terminal: pipe a capture into it, as in 'tcpdump -U -w - | rebalance-monitor replay -'"
        )
    return sys.stdin.buffer


def _unreadable(name: str, error: OSError) -> ReplayError:
    return ReplayError(f"{_called(name)} cannot be read: {(error.strerror or str(error)).lower()}")


@contextmanager
def progress_of(files: Sequence[str], console: Console) -> Iterator[Callable[[int], None]]:
    """A bar over all files, on a terminal; standard input has no length to show."""
    if not console.is_terminal or STDIN in files:
        yield lambda _: None
        return
    columns = (TextColumn("replaying"), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    total = sum(Path(name).stat().st_size for name in files if Path(name).is_file())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("replaying", total=total)
        yield lambda count: progress.advance(task, count)


def _called(name: str) -> str:
    return "standard input" if name == STDIN else name


def _listed(names: Sequence[str]) -> str:
    called = [_called(name) for name in names]
    return called[0] if len(called) == 1 else f"{', '.join(called[:-1])} and {called[-1]} together"

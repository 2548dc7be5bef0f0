"""``rebalance-monitor replay``: replays packet captures or recordings through the model, and prints timelines and findings.

A file's name may not match its format, and captures are often truncated. So the first bytes decide the format. The readable part is
replayed, and the reason why the rest was not is printed at the end.
"""

from __future__ import annotations

import dataclasses
import os
import re
import sys
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Protocol

import typer

from coordinator_model.finding import Finding, Severity
from coordinator_model.settings import Settings
from coordinator_model.wording import counted, iso_utc
from streaming.commands.capture_files import (
    FIRST_BYTES,
    NOT_READ,
    ReplayError,
    called,
    captured_in,
    files_of,
    first_pass_of,
    progress_of,
    source_of,
)
from streaming.commands.options import STDIN, BrokerPorts, KeyLogFile, key_log_of
from streaming.commands.output import EXIT_FOUND, EXIT_INTERRUPTED, EXIT_OK, EXIT_UNUSABLE, fail, print_json, stderr, stdout
from streaming.engine.engine import Engine
from streaming.gc_tuning import collected_seldom
from streaming.mirror import DEFAULT_TOPIC
from streaming.mirror.broker_log.history import CoordinatorHistory
from streaming.mirror.broker_log.reader import RequestLogReader
from streaming.mirror.broker_log.scan import is_broker_log
from streaming.mirror.captures import is_capture
from streaming.mirror.pcap.capture_reader import CaptureReader, in_order
from streaming.mirror.pcap.clocks import earlier
from streaming.mirror.pcap.tls.key_log import KeyLog, KeyLogError
from streaming.mirror.record_file import Unreadable, is_record_file, records
from streaming.not_shown import LINES_LACK
from streaming.published.wire_text import visible
from streaming.replay.report import ReplayReport, print_finding, print_line
from streaming.replay.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rich.console import Console

    from coordinator_model.events import GroupEvent
    from coordinator_model.group_view import GroupView
    from coordinator_model.wire.record import MirrorRecord
    from streaming.mirror.pcap.capture_reader import Captured
    from streaming.mirror.pcap.clocks import Difference
    from streaming.mirror.pcap.files import Source


_UNPROVEN_US: Final = 100_000
"""By how much clocks may differ where nothing shows it: hosts with NTP agree better than to a tenth of a second."""

_WORTH_A_WORD_US: Final = 500


class Format(StrEnum):
    """The output format."""

    TEXT = "text"
    JSON = "json"


def replay(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE…",
            help="Packet captures (pcap, pcapng), brokers' request logs, traces of Envoy's tap, or files of mirror records; gzip, xz and "
            "bzip2 are read too. "
            "A folder stands for the files in it, - for standard input.",
        ),
    ],
    *,
    port: BrokerPorts = None,
    output: Annotated[
        Format, typer.Option("--format", "-f", help="Print a report as text, or one finding event per line as JSON.")
    ] = Format.TEXT,
    events: Annotated[
        bool, typer.Option("--events", help="With --format json: print what happens in the groups, too, one event per line.")
    ] = False,
    group: Annotated[list[str] | None, typer.Option("--group", "-g", help="Report only this group. Can be repeated.")] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Take the [model] settings from this configuration of the monitor.")
    ] = None,
    cluster: Annotated[str, typer.Option(help="Name of the cluster in the output. Mirror records carry their own.")] = "",
    key_log: KeyLogFile = None,
) -> None:
    """Replay captured traffic through the model, without Kafka or Spark, and print what it finds.

    Several captures are merged by time, whether they are parts of one capture or come from several hosts.

    Exit status: 0 if nothing at error or above was found, 1 if something was, 2 if a file cannot be read, or not to its end.

        rebalance-monitor replay broker1.pcapng

        rebalance-monitor replay --port 9092 --port 9192 --group billing capture.pcap.gz

        tcpdump -i any -U -w - port 9092 | rebalance-monitor replay -

        rebalance-monitor replay --key-log keys.log encrypted.pcapng

        rebalance-monitor replay kafka-request.log*

        rebalance-monitor replay --format json traffic.records | jq .summary

        rebalance-monitor replay --format json --events traffic.records | jq 'select(.kind == "rebalance_finished")'
    """
    complain = stderr()
    if events and output is not Format.JSON:
        fail("--events needs --format json: the text shows what happens in the groups anyway")
    shown = _Json(group or (), events=events) if output is Format.JSON else _Text(group or (), live=files == [STDIN])
    try:
        session = ReplaySession(shown, settings_of(config), complain)
        try:
            session.read(files, port or (), cluster, key_log)
        except KeyboardInterrupt:
            if not session.has_begun:
                raise typer.Exit(EXIT_INTERRUPTED) from None
            session.notes.append("interrupted: the rest was not read")
        worst = session.finish()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # discards what is still buffered
        raise typer.Exit(EXIT_OK) from None
    except (ReplayError, KeyLogError) as error:
        fail(error)
    if session.is_damaged:
        raise typer.Exit(EXIT_UNUSABLE)
    raise typer.Exit(EXIT_FOUND if worst is not None and worst.rank >= Severity.ERROR.rank else EXIT_OK)


def settings_of(config: Path | None) -> Settings:
    """Return the model settings of a configuration file.

    :raises ReplayError: when the file cannot be read.
    """
    if config is None:
        return Settings()
    from streaming.config.settings import ConfigError, load  # noqa: PLC0415 - slow: takes as long as all other imports together

    try:
        return load(config).model
    except ConfigError as error:
        raise ReplayError(str(error)) from None


class Shown(Protocol):
    """What a replay finds is given to it; without ``event`` or ``group`` they are not made."""

    @property
    def event(self) -> Callable[[GroupEvent], None] | None: ...
    @property
    def group(self) -> Callable[[GroupView], None] | None: ...
    def finding(self, finding: Finding) -> None: ...
    def finish(self) -> Severity | None: ...


class ReplaySession:
    """One run: reads and replays the files, and prints a summary at the end."""

    def __init__(
        self, shown: Shown, settings: Settings, complain: Console, seen: Callable[[MirrorRecord], None] | None = None
    ) -> None:
        self.notes: list[str] = []
        self.summary: list[str] = []  #: at the end: what was read, and what could not be, a sentence each
        self.is_damaged = False  #: True if a file is truncated or cannot be read to its end
        self._shown = shown
        self._seen = seen
        self._settings = settings
        self._complain = complain
        self._offline: Engine | None = None
        self._reader: CaptureReader | RequestLogReader | None = None
        self._story: CoordinatorHistory | None = None  # of a log
        self._happened: list[GroupEvent] = []  # its events
        self._names: Sequence[str] = ()
        self._ports: Sequence[int] = ()
        self._key_log = KeyLog()

    def read(self, files: Sequence[str], ports: Sequence[int], cluster: str, key_log: Path | None) -> None:
        files = self._names = files_of(files, self.notes.append)
        self._ports = ports
        self._key_log = key_log_of(key_log, self.notes.append)
        with ExitStack() as stack:
            stack.enter_context(collected_seldom())
            progress = stack.enter_context(progress_of(files, self._complain))
            sources = [stack.enter_context(source_of(name, progress)) for name in files]
            if all(is_record_file(source.peek(FIRST_BYTES)) for source in sources):
                self._read_records(sources)
                return
            if all(is_broker_log(source) for source in sources):
                self._read_logs(sources, cluster)
                return
            captures = [self._captured(name, source) for name, source in zip(files, sources, strict=True)]
            first = first_pass_of(files)
            if found := sorted({*first.clusters.values()}):
                self.notes.append(f"{counted(len(found), 'cluster')} are in it, named by their ids: {', '.join(found)}")
            self._read_captures(self._in_one_time(captures, first.clocks), cluster, first.clusters)

    @property
    def has_begun(self) -> bool:
        """True once the input is recognised and replay has started."""
        return self._offline is not None

    def finish(self) -> Severity | None:
        """Print the report and the summary; return the highest severity found."""
        assert self._offline is not None
        summary: list[str] = []
        if self._reader is not None:
            self._reader.finish()
            why = self._reader.why_nothing()
            if why is not None:
                raise ReplayError("; ".join([f"{_listed(self._names)} {why}", *self.notes]))
            summary = list(self._reader.notes())
        elif not self._offline.counters and not self._offline.last_us:
            raise ReplayError("; ".join([f"{_listed(self._names)} holds no records", *self.notes]))
        self._offline.finish()
        read = list(_notes_of_all(self._offline))
        if self._story is not None and self._story.lines and not self._offline.counters["frames"]:
            read = list(self._show_history(self._story))
        worst = self._shown.finish()
        self.summary = [*read, *summary, *self.notes]
        for note in self.summary:
            self._complain.print(visible(note), style="dim")
        return worst

    def _read_captures(self, captures: Sequence[Iterator[Sequence[Captured]]], cluster: str, clusters: Mapping[str, str]) -> None:
        offline = self._offline = self._model("capture")
        reader = self._reader = CaptureReader(
            offline.recorded, ports=self._ports, cluster=cluster, clusters=clusters, key_log=self._key_log
        )
        try:
            reader.read(in_order(captures))
        except KeyboardInterrupt:
            reader.next_offset = offline.next_offset  # the current record may not be processed
            raise

    def _in_one_time(
        self, captures: list[Iterator[Sequence[Captured]]], clocks: Sequence[Difference | None]
    ) -> list[Iterator[Sequence[Captured]]]:
        """Put captures of several hosts into the time of the first; what is not certain of it, no rule relies on."""
        errors_us = [_UNPROVEN_US if clock is None else clock.error_us for clock in clocks]
        skew_ms = max(self._settings.clock_skew_ms, -(-max(errors_us) // 1_000))
        self._settings = dataclasses.replace(self._settings, clock_skew_ms=skew_ms)
        for name, clock in zip(self._names, clocks, strict=True):
            if clock is None:
                self.notes.append(
                    f"{called(name)} has no packet of the others: the order between connections of different files is not proven"
                )
            elif abs(clock.late_us) >= _WORTH_A_WORD_US:
                self.notes.append(
                    f"the clock of {called(name)} is {abs(clock.late_us) / 1_000:,.1f} ms {'ahead of' if clock.late_us > 0 else 'behind'} "
                    f"that of {called(self._names[0])}, as {counted(clock.packets, 'packet')} in both show: its times were corrected"
                )
        return [
            capture if clock is None or not clock.late_us else earlier(capture, clock.late_us)
            for capture, clock in zip(captures, clocks, strict=True)
        ]

    def _read_logs(self, sources: Sequence[Source], cluster: str) -> None:
        offline = self._offline = self._model("log")
        story = self._story = CoordinatorHistory(self._happened.append, cluster)
        reader = self._reader = RequestLogReader(offline.recorded, cluster=cluster, story=story)
        try:
            reader.read([reader.entries_in(source, self._damage(name)) for name, source in zip(self._names, sources, strict=True)])
        except KeyboardInterrupt:
            reader.next_offset = offline.next_offset  # the current record may not be processed
            raise

    def _show_history(self, story: CoordinatorHistory) -> Iterator[str]:
        """Show what coordinators wrote, where no frame shows more."""
        story.finish()
        show = self._shown.event
        if show is not None:
            for event in self._happened:
                show(event)
        seconds = (story.last_us - story.first_us) / 1_000_000
        yield f"{counted(story.lines, 'line')} of coordinators about {counted(len(story.groups), 'group')} in {seconds:,.0f} s"

    def _model(self, topic: str) -> Engine:
        return Engine(
            topic=topic,
            settings=self._settings,
            found=self._shown.finding,
            shown=self._shown.group,
            happened=self._shown.event,
            seen=self._seen,
        )

    def _read_records(self, sources: Sequence[Source]) -> None:
        offline = self._offline = self._model(DEFAULT_TOPIC)  # a file has no topic name; findings about the topic contain it
        for name, source in zip(self._names, sources, strict=True):
            for record in records(source, self._damage(name)):
                if isinstance(record, Unreadable):
                    offline.unreadable(record)
                elif record.offset < 0:  # a record that was never in a topic
                    offline.captured(record)
                else:
                    offline.recorded(record)

    def _captured(self, name: str, source: Source) -> Iterator[Sequence[Captured]]:
        beginning = source.peek(FIRST_BYTES)
        if beginning and not is_capture(source):
            what = (
                "holds mirror records: replay captures and records one after the other"
                if is_record_file(beginning)
                else "is a broker's log: replay logs and other files one after the other"
                if is_broker_log(source)
                else "is text in UTF-16, as PowerShell writes it: convert it to UTF-8"
                if beginning.startswith((BOM_UTF16_LE, BOM_UTF16_BE))
                else f"is {NOT_READ}"
            )
            raise ReplayError(f"{called(name)} {what}")
        return captured_in(name, source, self._damage(name), self._key_log.add_all)

    def _damage(self, name: str) -> Callable[[str], None]:
        return lambda why: self._note_damage(f"{called(name)} {why}: everything before it was replayed")

    def _note_damage(self, note: str) -> None:
        self.is_damaged = True
        self.notes.append(note)


# --- what is printed ----------------------------------------------------------------------------------------------------------------


class _Text:
    """Prints text: group by group at the end, or line by line for a live capture."""

    def __init__(self, groups: Sequence[str], *, live: bool) -> None:
        self._console = stdout(soft_wrap=False)
        self._live = live
        self._report = ReplayReport()
        self._story = Timeline(self._line if live else self._report.line, groups)
        self._severities: dict[str, Severity] = {}
        self._is_history = False  # of coordinators' lines

    def _line(self, line: Any) -> None:
        print_line(self._console, line)

    def event(self, event: GroupEvent) -> None:
        self._is_history = bool(event.source)
        self._story.event(event)

    def group(self, group: GroupView) -> None:
        if self._story.wants(group.group) and not self._live:
            self._report.state(group)

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
        each = ", ".join(f"{counts[severity]} {severity.value}" for severity in reversed(Severity) if counts[severity])
        none = f"no rule was applied, so no findings; coordinators' lines show {LINES_LACK}" if self._is_history else "no findings"
        self._console.print(f"{counts.total()} finding{'s' if counts.total() != 1 else ''}: {each}" if each else none)
        return max(counts, key=lambda severity: severity.rank, default=None)


class _Json:
    """Prints each finding event as JSON when it occurs, and each event of a group if wanted."""

    group = None  #: the groups' views are not printed

    def __init__(self, groups: Sequence[str], *, events: bool) -> None:
        self._groups = frozenset(groups)
        self.event = self._event if events else None
        self._worst: Severity | None = None

    def finding(self, finding: Finding) -> None:
        if self._groups and finding.group and finding.group not in self._groups:
            return
        if self._worst is None or finding.severity.rank > self._worst.rank:
            self._worst = finding.severity
        print_json(finding.as_json())

    def _event(self, event: GroupEvent) -> None:
        if not self._groups or event.group in self._groups:
            print_json(event.as_json())

    def finish(self) -> Severity | None:
        return self._worst


def _notes_of_all(offline: Engine) -> Iterator[str]:
    counters = offline.counters
    seconds = (offline.last_us - offline.first_us) / 1_000_000
    since = f", from {iso_utc(offline.first_us)[:19].replace('T', ' ')} UTC on" if offline.first_us else ""
    yield f"{counted(counters['frames'], 'group frame')} of {counted(len(offline.groups), 'group')} in {seconds:,.0f} s of traffic{since}"
    others = Counter[str]()
    for name, count in offline.model_counters().items():
        if name not in _NOT_WORTH_A_WORD and count:
            others[_BY_DIRECTION.sub(" frames not modelled", name)] += count
    if others:
        yield "also counted: " + "; ".join(f"{name}: {count:,}" for name, count in sorted(others.items()))


_NOT_WORTH_A_WORD: Final = {"tick", "open", "close", "expired", "topics", "unreached"}
_BY_DIRECTION: Final = re.compile(r" re[qs] not modelled$")


def _listed(names: Sequence[str]) -> str:
    words = [called(name) for name in names]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]} together"

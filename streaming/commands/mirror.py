"""``rebalance-monitor mirror`` and ``record``: write a packet capture to the mirror topic, and the topic to a file.

A capture file is read faster than a cluster accepts records. Unlike the tap, this reader can wait, so no record is dropped when the
producer's buffer is full. A pipe may be idle for a long time. The topic needs ticks even then, or the monitor reports the mirror as silent.
A recorded capture that is piped in has its own clock, so it gets no ticks from the local one.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Final

import typer
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from coordinator_model.wire.record import HEADER_NAME
from coordinator_model.wording import counted
from streaming.commands.capture_files import ReplayError, called, captured_in, files_of, progress_of, source_of
from streaming.commands.options import (
    STDIN,
    BrokerPorts,
    Create,
    HoldBack,
    KeyLogFile,
    Partitions,
    ReplicationFactor,
    RetentionHours,
    key_log_of,
)
from streaming.commands.output import fail, stderr
from streaming.commands.stopping import handled
from streaming.errors import SetupError, why_not
from streaming.kafka.acls import not_readable
from streaming.kafka.client_options import client_options
from streaming.kafka.clients import without_group
from streaming.kafka.connection import NO_TOPIC_BY_ITSELF
from streaming.kafka.mirror_topic import RETENTION_HOURS, MirrorTopic, topic_partitions
from streaming.kafka.topics import PARTITIONS
from streaming.kafka.watermarks import bounds_of
from streaming.mirror import DEFAULT_TOPIC
from streaming.mirror.broker_log import HELD_BACK_US
from streaming.mirror.broker_log.follow import FollowedFile, follow
from streaming.mirror.broker_log.reader import HELD_AT_LEAST, RequestLogReader
from streaming.mirror.broker_log.scan import is_broker_log
from streaming.mirror.conversation import FRAME_CAP
from streaming.mirror.pcap.capture_reader import CaptureReader, in_order
from streaming.mirror.pcap.files import Source, opened
from streaming.mirror.pcap.tls.key_log import KeyLog, KeyLogError
from streaming.mirror.producer import KafkaSink
from streaming.mirror.record_file import RecordFile
from streaming.published.wire_text import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import FrameType

    from confluent_kafka import Message

    from coordinator_model.wire.record import MirrorRecord

_FLUSH_TIMEOUT_S: Final = 30.0
_HELD_AT_MOST: Final = 100_000  # records in the producer's buffer

_LIVE_US: Final = 10_000_000  # a capture whose newest packet is older than this is not live
_LATE_US: Final = 2_000_000  # how long a packet may stay in the capturing program's buffers
_IDLE_S: Final = 1.0

_POLL_S: Final = 0.5


def mirror(
    bootstrap_server: Annotated[str, typer.Option(metavar="HOST:PORT[,…]", help="Brokers of the cluster with the mirror topic.")],
    *,
    pcap: Annotated[
        list[str] | None,
        typer.Option(
            "--pcap",
            metavar="FILE",
            help="Packet capture (pcap, pcapng), whole request log, or trace of Envoy's tap. A folder stands for the files in it, - for "
            "standard input. Can be repeated.",
        ),
    ] = None,
    request_log: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="Request log of a broker, to be followed from its end on, across rotation. Can be repeated."
        ),
    ] = None,
    hold_back: HoldBack = HELD_BACK_US / 1_000_000,
    port: BrokerPorts = None,
    topic: Annotated[str, typer.Option(help="The mirror topic.")] = DEFAULT_TOPIC,
    cluster: Annotated[str, typer.Option(help="Name of the watched cluster in records and findings.")] = "",
    create: Create = False,
    partitions: Partitions = PARTITIONS,
    replication_factor: ReplicationFactor = -1,
    retention_hours: RetentionHours = RETENTION_HOURS,
    producer_config: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE|KEY=VALUE", help="librdkafka properties for the producer, or a properties file of them."),
    ] = None,
    key_log: KeyLogFile = None,
) -> None:
    """Write the group coordination frames of a packet capture to the mirror topic, where the monitor reads them.

    Use it where a tap cannot run between clients and brokers. Capture on the broker's host:

        tcpdump -i any -U -w - port 9092 | rebalance-monitor mirror --pcap - --port 9092 --bootstrap-server monitor:9092

        rebalance-monitor mirror --pcap incident.pcapng --bootstrap-server monitor:9092 --topic incident --create-topic

        rebalance-monitor mirror --request-log /var/log/kafka/kafka-request.log --bootstrap-server monitor:9092
    """
    console = stderr()
    if bool(pcap) == bool(request_log):
        fail("give either --pcap or --request-log")
    notes: list[str] = []
    try:
        secrets = key_log_of(key_log, notes.append)
        config = client_options(bootstrap_server, producer_config)
        sink = KafkaSink(
            {"client.id": "rebalance-monitor-mirror", **config},
            topic=topic,
            cluster=cluster,
            wanted=MirrorTopic(partitions, replication_factor, retention_hours) if create else None,
            tell=lambda sentence: console.print(visible(sentence)),
        )
    except (SetupError, KeyLogError) as error:
        fail(error)
    run = _Run(sink, cluster, port or (), secrets, notes)
    try:
        with _terminated_as_interrupted(), contextlib.suppress(KeyboardInterrupt):
            if request_log:
                run.follow(request_log, hold_back)
            else:
                run.read(files_of(pcap or (), notes.append), console)
    except ReplayError as error:
        sink.close(_FLUSH_TIMEOUT_S)
        fail(error)
    reader = run.reader
    reader.finish()
    unsent = sink.close(_FLUSH_TIMEOUT_S)
    why = reader.why_nothing()
    for note in [*notes, *([] if why else reader.notes())]:
        console.print(visible(note), style="dim")
    if why is not None:
        fail(ReplayError(f"the {'capture' if isinstance(reader, CaptureReader) else 'log'} {why}"))
    console.print(f"{counted(sink.written, 'record')} written to topic {topic}, {sink.lost:,} lost")
    if unsent:
        fail(SetupError(f"{counted(unsent, 'record')} could not be delivered to topic {topic} within {_FLUSH_TIMEOUT_S:.0f} s"))


class _Run:
    """One run: reads captures or logs, and writes their records.

    :ivar reader: of what there is to read; a capture's until it is known to be a log.
    """

    def __init__(self, sink: KafkaSink, cluster: str, ports: Sequence[int], secrets: KeyLog, notes: list[str]) -> None:
        self._sink = sink
        self._cluster = cluster
        self._secrets = secrets
        self._notes = notes
        self._capture = CaptureReader(
            self._write, ports=ports, cluster=cluster, name=f"pcap-{os.getpid()}", key_log=secrets, frame_cap=FRAME_CAP
        )
        self.reader: CaptureReader | RequestLogReader = self._capture

    def read(self, names: list[str], console: Console) -> None:
        """Read files to their ends."""
        with ExitStack() as stack:
            progress = stack.enter_context(progress_of(names, console))
            sources = [
                opened(_Pipe(sys.stdin.buffer, self._tick_if_live))  # type: ignore[arg-type]
                if name == STDIN
                else stack.enter_context(source_of(name, progress))
                for name in names
            ]
            if all(is_broker_log(source) for source in sources):
                self._read_logs(names, sources)
            else:
                captures = [
                    captured_in(name, source, self._damage(name), self._secrets.add_all)
                    for name, source in zip(names, sources, strict=True)
                ]
                self._capture.read(in_order(captures))

    def follow(self, paths: Sequence[Path], hold_back_s: float) -> None:
        """Follow logs that are being written, until a KeyboardInterrupt."""
        reader = self.reader = self._log_reader(int(hold_back_s * 1_000_000), held_at_least=0)
        for path in paths:
            if not path.exists():
                self._notes.append(f"{path} did not exist at the start")
        try:
            with ExitStack() as stack:
                follow([stack.enter_context(closing(FollowedFile(path))) for path in paths], reader)
        except OSError as error:
            raise ReplayError(f"{error.filename} cannot be read: {why_not(error)}") from None

    def _read_logs(self, names: Sequence[str], sources: Sequence[Source]) -> None:
        reader = self.reader = self._log_reader(HELD_BACK_US, held_at_least=HELD_AT_LEAST)
        reader.read([reader.entries_in(source, self._damage(name)) for name, source in zip(names, sources, strict=True)])

    def _log_reader(self, held_back_us: int, *, held_at_least: int) -> RequestLogReader:
        return RequestLogReader(
            self._write,
            cluster=self._cluster,
            name=f"request-log-{os.getpid()}",
            held_back_us=held_back_us,
            held_at_least=held_at_least,
            frame_cap=FRAME_CAP,
        )

    def _damage(self, name: str) -> Callable[[str], None]:
        return lambda why: self._notes.append(f"{called(name)} {why}: everything before it was written")

    def _write(self, record: MirrorRecord) -> None:
        while self._sink.buffered > _HELD_AT_MOST:
            time.sleep(0.01)  # the producer's own thread empties it
        self._sink.write(record)

    def _tick_if_live(self) -> None:
        now_us = time.time_ns() // 1000
        if now_us - self._capture.now_us < _LIVE_US + _LATE_US:
            self._capture.tick(now_us - _LATE_US)


class _Pipe:
    """Standard input that calls ``idle`` once per second without data."""

    def __init__(self, stream: BinaryIO, idle: Callable[[], None]) -> None:
        self._descriptor = stream.fileno()
        self._idle = idle

    def read1(self, count: int) -> bytes:
        while not select.select([self._descriptor], [], [], _IDLE_S)[0]:
            self._idle()
        return os.read(self._descriptor, count)

    read = read1


@contextlib.contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Turn SIGTERM into a KeyboardInterrupt, so that records that were read are still delivered."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    with handled(interrupt, signal.SIGTERM):
        yield


# --- record -------------------------------------------------------------------------------------------------------------------------


def record(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File to write. It must not exist yet.")],
    bootstrap_server: Annotated[str, typer.Option(metavar="HOST:PORT[,…]", help="Brokers of the cluster with the mirror topic.")],
    *,
    from_topic: Annotated[str, typer.Option(help="The mirror topic.")] = DEFAULT_TOPIC,
    last: Annotated[float | None, typer.Option(min=0, metavar="MINUTES", help="Write only records of the last minutes.")] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Continue with new records until Ctrl-C.")] = False,
    consumer_config: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE|KEY=VALUE", help="librdkafka properties for the consumer, or a properties file of them."),
    ] = None,
) -> None:
    """Write the records of the mirror topic to a file, for `replay` and `decode`.

    The file holds the topic's records from the oldest one to the newest one at the start of the command.

        rebalance-monitor record --bootstrap-server monitor:9092 incident.records

        rebalance-monitor record --bootstrap-server monitor:9092 --from-topic frames --last 30 incident.records
    """
    console = stderr()
    try:
        config = client_options(bootstrap_server, consumer_config)
        topic_partitions(config, from_topic, operation="Read")  # gives a clearer error than a consumer
    except SetupError as error:
        fail(SetupError(str(error).replace("--producer-config", "--consumer-config")))
    try:
        stream = file.open("xb")
    except FileExistsError:
        fail(ReplayError(f"{file} exists already: choose another name, or delete it"))
    except OSError as error:
        fail(ReplayError(f"{file} cannot be written: {why_not(error)}"))
    with stream:
        target = RecordFile(stream)
        try:
            with _terminated_as_interrupted(), contextlib.suppress(KeyboardInterrupt):
                _Recording(config, from_topic, last).copy(target, console, follow=follow)
        except KafkaException as error:
            why = not_readable(config, from_topic, error.args[0])
            fail(SetupError(f"topic {from_topic!r} cannot be read: {why}; {file} has {counted(target.records, 'record')}"))
        except OSError as error:
            fail(ReplayError(f"{file} cannot be written: {why_not(error)}"))
    console.print(f"{counted(target.records, 'record')} of topic {from_topic} written to {file}")


class _Recording:
    """Reads all partitions of the topic from their first offset to their current end."""

    def __init__(self, config: dict[str, Any], topic: str, last_minutes: float | None) -> None:
        self._topic = topic
        self._consumer = Consumer(
            {
                **config,
                "group.id": "rebalance-monitor-record",  # required by the library; no offset is ever committed
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "log.connection.close": False,
                **NO_TOPIC_BY_ITSELF,
            }
        )
        self._since_ms = None if last_minutes is None else int((time.time() - last_minutes * 60) * 1000)
        self._ends: dict[int, int] = {}

    def copy(self, target: RecordFile, console: Console, *, follow: bool) -> None:
        try:
            total = self._assign()
            with _record_progress(console, total) as advance:
                while follow or self._ends:
                    for message in without_group(self._consumer.consume(1_000, _POLL_S)):
                        advance(self._take(message, target))
                    self._leave_finished()
        finally:
            self._consumer.close()

    def _assign(self) -> int:
        partitions = range(len(self._consumer.list_topics(self._topic, timeout=10).topics[self._topic].partitions))
        begins = [TopicPartition(self._topic, partition, OFFSET_BEGINNING) for partition in partitions]
        if self._since_ms is not None:
            wanted = [TopicPartition(self._topic, partition, self._since_ms) for partition in partitions]
            begins = self._consumer.offsets_for_times(wanted, timeout=10)
        total = 0
        for begin in begins:
            low, high = bounds_of(self._consumer, TopicPartition(self._topic, begin.partition), within_s=10)
            first = max(begin.offset, low) if begin.offset >= 0 else (low if self._since_ms is None else high)
            if first < high:
                self._ends[begin.partition] = high
                total += high - first
            begin.offset = first
        self._consumer.assign(begins)
        return total

    def _take(self, message: Message, target: RecordFile) -> int:
        if message.error() is not None:
            raise KafkaException(message.error())
        headers = dict(message.headers() or ())
        partition, offset = message.partition(), message.offset()
        assert partition is not None
        assert offset is not None
        key = message.key()
        value = message.value()
        envelope = headers.get(HEADER_NAME)
        target.write(partition=partition, offset=offset, key=_bytes(key), value=_bytes(value), envelope=_bytes(envelope))
        return 1

    def _leave_finished(self) -> None:
        for placed in self._consumer.position([TopicPartition(self._topic, partition) for partition in self._ends]):
            if placed.offset >= self._ends[placed.partition]:
                del self._ends[placed.partition]


def _bytes(given: str | bytes | None) -> bytes | None:
    return given.encode() if isinstance(given, str) else given


@contextlib.contextmanager
def _record_progress(console: Console, total: int) -> Iterator[Callable[[int], None]]:
    if not console.is_terminal:
        yield lambda _: None
        return
    columns = (TextColumn("recording"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("recording", total=total)
        yield lambda count: progress.advance(task, count)

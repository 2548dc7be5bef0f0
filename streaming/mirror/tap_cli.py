"""``rebalance-monitor tap``: options in, a running tap, a line of figures now and then, a clean end."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from pathlib import Path
from typing import Annotated, Any, Final, NoReturn

import typer

from streaming.config_keys import is_secret_property
from streaming.mirror.patient import PatientSink
from streaming.mirror.producer import DEFAULT_TOPIC, KafkaSink, MirrorError, create_topic
from streaming.mirror.tap import Listener, Tap, TapError

FLUSH_TIMEOUT_S: Final = 10.0
REACH_TIMEOUT_S: Final = 5.0
"""How long a cluster may take to answer before clients are let through without anybody watching."""

log = logging.getLogger(__name__)


def tap(
    listen: Annotated[
        list[str],
        typer.Option(
            "--listen",
            metavar="HOST:PORT=BROKER_HOST:PORT",
            help="Where clients connect, and the broker behind it; once for each broker. The broker must advertise this address.",
        ),
    ],
    bootstrap_server: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT[,…]", help="The cluster that keeps the mirror topic, by listeners that do not lead through the tap."
        ),
    ],
    topic: Annotated[str, typer.Option(help="The mirror topic.")] = DEFAULT_TOPIC,
    cluster: Annotated[str, typer.Option(help="Name of the watched cluster in records and findings.")] = "",
    *,
    create: Annotated[bool, typer.Option("--create-topic", help="Create the mirror topic if it does not exist.")] = False,
    partitions: Annotated[
        int,
        typer.Option(min=1, help="Partitions of a topic that is created; fixed for its life: the job keeps one model for each."),
    ] = 4,
    producer_config: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE|KEY=VALUE",
            help="librdkafka properties for the mirror's producer (security.protocol=SSL, …), or a file of them; passwords in a file only.",
        ),
    ] = None,
    buffer_mib: Annotated[int, typer.Option(min=1, help="What is held at most while the mirror's cluster is away.")] = 64,
    status_every: Annotated[float, typer.Option(min=0, metavar="SECONDS", help="How often to print figures; 0 for never.")] = 30.0,
) -> None:
    """Pass clients through to their brokers, byte for byte, and mirror the frames of group coordination to a topic.

    Requests and responses of consumer groups are copied; records, passwords and tokens never are. If the mirror topic is away, the
    clients do not notice: frames are buffered, then counted, and the loss is recorded in the topic once it is back. If it is away at the
    start, the clients pass all the same; that nobody watches is said until it is there.

    For example, with one broker whose clients' listener advertises port 9092 of this host, and with two of them:

        rebalance-monitor tap --listen 0.0.0.0:9092=broker1:9093 --bootstrap-server broker1:9094 --create-topic

        rebalance-monitor tap --listen 0.0.0.0:9092=broker1:9093 --listen 0.0.0.0:9192=broker2:9093 --bootstrap-server monitor:9092
    """
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s", stream=sys.stderr)
    try:
        listeners = [Listener.parse(text) for text in listen]
        config = {**read_producer_config(producer_config or []), "bootstrap.servers": bootstrap_server}

        def connect() -> KafkaSink:
            if create and create_topic(config, topic, partitions, timeout_s=REACH_TIMEOUT_S):
                _say(f"created topic {topic} with {partitions} partitions")
            return KafkaSink(config, topic=topic, cluster=cluster, buffer_bytes=buffer_mib * 2**20, timeout_s=REACH_TIMEOUT_S)

        sink = PatientSink(connect)
    except (TapError, MirrorError) as error:
        _fail(error)
    try:
        asyncio.run(_run(listeners, sink, cluster, topic, status_every))
    except TapError as error:
        sink.close(0)
        _fail(error)
    unsent = sink.close(FLUSH_TIMEOUT_S)
    _say(f"stopped; {sink.written} records written, {sink.lost + unsent} lost")
    if unsent:
        _fail(MirrorError(f"{unsent} records could not be delivered to topic {topic} within {FLUSH_TIMEOUT_S:.0f} s and are lost"))


async def _run(listeners: list[Listener], sink: PatientSink, cluster: str, topic: str, status_every: float) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with Tap(listeners, sink, cluster=cluster) as running:
        for address, listener in zip(running.addresses, listeners, strict=True):
            _say(f"listening on {address} for broker {listener.broker}")
        if sink.partitions is not None:
            _say(f"mirroring to topic {topic}, {sink.partitions} partitions")
        said = ""
        while not stop.is_set():
            try:
                async with asyncio.timeout(status_every or None):
                    await stop.wait()
            except TimeoutError:
                status = _status(running, sink)
                if status != said:
                    _say(status)
                said = status


def _status(tap: Tap, sink: PatientSink) -> str:
    stats = tap.stats
    parts = [
        f"{stats.open_connections} connections open of {stats.connections}",
        f"{stats.frames} frames mirrored",
        f"{sink.lost} lost",
    ]
    for count, what in (
        (sink.buffered, "buffered"),
        (stats.opaque, "unreadable connections"),
        (stats.unreachable, "refused by a broker"),
    ):
        if count:
            parts.append(f"{count} {what}")
    return ", ".join(parts)


def read_producer_config(given: list[str]) -> dict[str, Any]:
    """Properties from ``key=value`` words and from files of such lines (``#`` begins a comment).

    :raises MirrorError: naming the word, or the file and line, that is not one; or the word that is a secret.
    """
    config: dict[str, Any] = {}
    for word in given:
        if "=" in word:
            key, _, value = word.partition("=")
            if is_secret_property(key.strip(), value):
                raise MirrorError(
                    f"--producer-config {key.strip()}=…: every user of this machine can see a command line; write the line to a file "
                    "that only you may read, and name that: --producer-config FILE"
                )
            config[key.strip()] = value.strip()
            continue
        try:
            lines = Path(word).read_text().splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise MirrorError(f"--producer-config {word}: {getattr(error, 'strerror', None) or 'not a text file'}") from None
        for number, line in enumerate(lines, 1):
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            key, equals, value = line.partition("=")
            if not equals:
                raise MirrorError(f"--producer-config {word}, line {number}: not a property, write key=value")
            config[key.strip()] = value.strip()
    return config


def _say(text: str) -> None:
    print(f"tap: {text}", file=sys.stderr, flush=True)


def _fail(error: Exception) -> NoReturn:
    typer.secho("error: ", err=True, nl=False, fg=typer.colors.RED, bold=True)
    typer.echo(error, err=True)
    raise typer.Exit(2)

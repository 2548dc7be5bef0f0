"""``rebalance-monitor tap``: runs a tap, prints a status line periodically, and delivers what is buffered at the end."""

from __future__ import annotations

import asyncio
import contextlib
import glob
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from coordinator_model.wording import counted, plural
from streaming.commands.options import Create, MetricsOption, Partitions, ReplicationFactor, RetentionHours
from streaming.commands.output import fail, stderr
from streaming.errors import SetupError
from streaming.kafka.client_options import client_options, refuse_secrets
from streaming.kafka.mirror_topic import RETENTION_HOURS, MirrorTopic
from streaming.kafka.topics import PARTITIONS
from streaming.logs import log_to_terminal
from streaming.mirror import DEFAULT_TOPIC
from streaming.mirror.listener import Listener, TapError
from streaming.mirror.losses import LossFile, gather
from streaming.mirror.producer import KafkaSink, ReconnectingSink
from streaming.mirror.rewriting.known_brokers import KnownBrokers
from streaming.mirror.rewriting.stand_in import StandIn
from streaming.mirror.tap import Tap, check_unused
from streaming.mirror.tap_tls import CertificateFiles, TapTls, TlsError
from streaming.mirror.workers import in_workers
from streaming.published.wire_text import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

FLUSH_TIMEOUT_S: Final = 10.0
REACH_TIMEOUT_S: Final = 5.0


def tap(
    listen: Annotated[
        list[str],
        typer.Option(
            "--listen",
            metavar="HOST:PORT=BROKER_HOST:PORT",
            help="Address where clients connect, and the broker behind it. Repeat it for each broker. "
            "The broker must advertise this address, unless --rewrite is given.",
        ),
    ],
    bootstrap_server: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT[,…]",
            help="Brokers of the cluster with the mirror topic. Use listeners that do not lead through the tap.",
        ),
    ],
    topic: Annotated[str, typer.Option(help="The mirror topic.")] = DEFAULT_TOPIC,
    cluster: Annotated[str, typer.Option(help="Name of the watched cluster in records and findings.")] = "",
    *,
    create: Create = False,
    partitions: Partitions = PARTITIONS,
    replication_factor: ReplicationFactor = -1,
    retention_hours: RetentionHours = RETENTION_HOURS,
    compression: Annotated[
        str, typer.Option(metavar="CODEC", help="Compression of the records: zstd, lz4, snappy, gzip or none.")
    ] = "zstd",
    producer_config: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE|KEY=VALUE",
            help="librdkafka properties for the mirror's producer (security.protocol=SSL, …), or a file of them; passwords in a file only.",
        ),
    ] = None,
    buffer_mib: Annotated[
        int, typer.Option(min=1, help="Size of the buffer for frames while the mirror's cluster is unreachable.")
    ] = 64,
    loss_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File for the number of records that could not be delivered at the end; the next tap writes it to the mirror as a gap. "
            "The default is checkpoints/tap-PORT.loss, with the port of the first listener.",
        ),
    ] = None,
    metrics: MetricsOption = None,
    rewrite: Annotated[
        bool,
        typer.Option(
            "--rewrite",
            help="Replace the brokers' addresses in answers to clients by the tap's own, for brokers whose advertised addresses you "
            "cannot set. --listen then names any broker of the cluster.",
        ),
    ] = False,
    ports: Annotated[
        str | None,
        typer.Option(metavar="FIRST-LAST", help="With --rewrite: ports to listen on, one for each broker of the cluster."),
    ] = None,
    advertise: Annotated[
        str | None,
        typer.Option(
            metavar="HOST",
            help="With --rewrite: host that clients are told; {id} stands for a broker's node id. Without --ports, clients then reach all "
            "brokers at the port of --listen, by the TLS server name. The default is the address that a client has connected to.",
        ),
    ] = None,
    resolve: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=ADDRESS",
            help="Connect to this address for a broker of this name, as the cluster advertises it or --listen has it, where the name "
            "does not resolve here. TLS still expects the name. Repeat it for each name.",
        ),
    ] = None,
    brokers_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="With --rewrite: file for the brokers and their ports, so that both are known after a restart. The default is "
            "checkpoints/tap-PORT.brokers, with the port of the first listener.",
        ),
    ] = None,
    workers: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="N",
            help="Processes that share the listeners, for more group frames than one core can mirror. Each has a buffer of its own, and "
            "serves --metrics at its own port: the given one, the next, …",
        ),
    ] = 1,
    status_every: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="Interval of the status line; 0 turns it off.")
    ] = 30.0,
    tls_certificate: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Clients speak TLS, which ends at the tap: its certificate with the chain, PEM."),
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(metavar="FILE", help="Key of --tls-certificate, PEM, unencrypted.")] = None,
    tls_client_ca: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Refuse clients without a certificate that one of these has signed.")
    ] = None,
    broker_tls: Annotated[
        bool, typer.Option("--broker-tls", help="Speak TLS to the brokers, trusting what the system trusts.")
    ] = False,
    broker_ca: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Speak TLS to the brokers, trusting only what one of these has signed.")
    ] = None,
    broker_certificate: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Certificate to show to the brokers, PEM.")
    ] = None,
    broker_key: Annotated[Path | None, typer.Option(metavar="FILE", help="Key of --broker-certificate, PEM, unencrypted.")] = None,
) -> None:
    """Proxy clients to their brokers, byte for byte, and mirror the group coordination frames to a topic.

    The tap copies requests and responses of consumer groups. It never copies records, passwords or tokens. Only a problem with its own
    listeners stops it. While the mirror topic is unreachable, missing or refused, clients still pass: the tap buffers frames, prints the
    reason each minute, and counts what exceeds the buffer. It writes that loss to the topic once it can.

    Examples, for one broker whose client listener advertises port 9092 of this host, and for two brokers:

        rebalance-monitor tap --listen 0.0.0.0:9092=broker1:9093 --bootstrap-server broker1:9094 --create-topic

        rebalance-monitor tap --listen 0.0.0.0:9092=broker1:9093 --listen 0.0.0.0:9192=broker2:9093 --bootstrap-server monitor:9092

    Where clients use TLS, the tap needs a certificate of its own to see what is inside:

        rebalance-monitor tap --listen 0.0.0.0:9093=broker1:9093 --tls-certificate tap.pem --tls-key tap.key --broker-ca ca.pem

    Where the brokers' advertised addresses cannot be set, the tap puts its own into the answers:

        rebalance-monitor tap --rewrite --listen 127.0.0.1:9092=bootstrap.example:9096 --ports 9100-9199 --broker-tls
    """
    log_to_terminal("%(asctime)s %(message)s")
    given = producer_config or []
    try:
        listeners = [Listener.parse(text) for text in listen]
        refuse_secrets(given)
        tls = TapTls(
            own=_files("--tls-certificate", tls_certificate, "--tls-key", tls_key),
            client_authority=tls_client_ca,
            is_broker_tls=broker_tls or broker_ca is not None or broker_certificate is not None,
            broker_authority=broker_ca,
            client=_files("--broker-certificate", broker_certificate, "--broker-key", broker_key),
        )
        file = brokers_file or Path(f"checkpoints/tap-{listeners[0].port}.brokers")
        if not rewrite:
            _refuse(ports=ports, advertise=advertise, brokers_file=brokers_file)
        stand_in = _stand_in(ports, advertise, file) if rewrite else None
        resolved = _resolved(resolve or ())
        if workers > 1:
            _check_shared(listeners, rewrite=rewrite)
    except (TapError, SetupError, TlsError) as error:
        fail(error)
    losses = loss_file or Path(f"checkpoints/tap-{listeners[0].port}.loss")

    def work(number: int, ended: int | None) -> None:
        """Run the tap, or one of its workers.

        :raises typer.Exit: after an error was printed.
        """
        say = _say if workers == 1 else lambda text: _say(f"worker {number}: {text}")
        sink = ReconnectingSink(
            lambda: {"compression.type": compression, **client_options(bootstrap_server, given)},
            topic=topic,
            cluster=cluster,
            buffer_bytes=buffer_mib * 2**20,
            timeout_s=REACH_TIMEOUT_S,
            wanted=MirrorTopic(partitions, replication_factor, retention_hours) if create and number == 0 else None,
            losses=LossFile(_of_worker(losses, number), topic),
            tell=say,
        )
        running = Tap(
            listeners, sink, cluster=cluster, tls=tls, stand_in=stand_in, resolved=resolved, shares_ports=ended is not None
        )
        where = None if metrics is None else _port_of_worker(metrics, number)
        try:
            asyncio.run(_run(running, listeners, sink, metrics=where, status_every=status_every, ended=ended, say=say))
        except TapError as error:
            sink.close(0)
            fail(error)
        unsent = sink.close(FLUSH_TIMEOUT_S)
        say(f"stopped; {sink.written} {plural(sink.written, 'record')} written, {sink.lost} lost")
        if unsent:
            fail(
                SetupError(
                    f"{counted(unsent, 'record')} could not be delivered to topic {topic} within {FLUSH_TIMEOUT_S:.0f} s and "
                    f"{plural(unsent, 'is', 'are')} lost; the next tap "
                    "records that in the topic"
                )
            )

    if workers == 1:
        work(0, None)
        return
    gather(losses, _of_workers(losses), topic)
    status = in_workers(workers, lambda number, ended: _status_of(work, number, ended))
    gather(losses, _of_workers(losses), topic)
    raise typer.Exit(status)


def _status_of(work: Callable[[int, int], None], number: int, ended: int) -> int:
    try:
        work(number, ended)
    except typer.Exit as done:
        return done.exit_code
    return 0


def _resolved(given: Sequence[str]) -> dict[str, str]:
    """Read each ``NAME=ADDRESS``.

    :raises TapError: when one is not of that form, or a name has two addresses.
    """
    found: dict[str, str] = {}
    for text in given:
        name, _, address = text.partition("=")
        if not name or not address:
            raise TapError(f"--resolve {text!r} is not NAME=ADDRESS, such as broker-1.internal=10.0.0.5")
        if found.setdefault(name, address) != address:
            raise TapError(f"--resolve gives {name} two addresses, {found[name]} and {address}: leave one")
    return found


def _check_shared(listeners: list[Listener], *, rewrite: bool) -> None:
    """Check that processes can share the listeners.

    :raises TapError: when they cannot.
    """
    if rewrite:
        raise TapError("--workers cannot be more than 1 with --rewrite: each worker would open ports for the brokers by itself")
    if any(listener.port == 0 for listener in listeners):
        raise TapError("--workers needs a port other than 0 in --listen: each worker would get another one")
    asyncio.run(check_unused(listeners))


def _of_worker(losses: Path, number: int) -> Path:
    """Return the loss file of a worker; the first one's is the tap's own."""
    return losses.with_name(f"{losses.name}.worker-{number}") if number else losses


def _of_workers(losses: Path) -> list[Path]:
    return sorted(losses.parent.glob(f"{glob.escape(losses.name)}.worker-*"))


def _port_of_worker(where: str, number: int) -> str:
    """Return where a worker serves its metrics: one that is no address is refused by the server."""
    host, colon, port = where.rpartition(":")
    return f"{host}{colon}{int(port) + number}" if number and port.isdecimal() else where


async def _run(
    tap: Tap,
    listeners: list[Listener],
    sink: KafkaSink,
    *,
    metrics: str | None,
    status_every: float,
    ended: int | None,
    say: Callable[[str], None],
) -> None:
    """Run a tap until it is to end, by a signal or by a file descriptor that becomes readable."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    if ended is not None:
        loop.add_reader(ended, stop.set)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with tap as running:
        for address, listener in zip(running.addresses, listeners, strict=True):
            say(f"listening on {address} for broker {listener.broker}")
        with contextlib.nullcontext() if metrics is None else _served(metrics, running, sink, say):
            said = ""
            while not stop.is_set():
                try:
                    async with asyncio.timeout(status_every or None):
                        await stop.wait()
                except TimeoutError:
                    status = _status(running, sink)
                    if status != said:
                        say(status)
                    said = status


@contextlib.contextmanager
def _served(where: str, tap: Tap, sink: KafkaSink, say: Callable[[str], None]) -> Iterator[None]:
    """Serve metrics; if the address cannot be used, print the reason and run the tap without metrics."""
    from streaming.metrics.tap import serving  # noqa: PLC0415 - only some taps need it

    with contextlib.ExitStack() as stack:
        try:
            say(f"metrics at {stack.enter_context(serving(where, tap, sink))}")
        except SetupError as error:
            say(f"no metrics: {error}")
        yield


def _files(named: str, certificate: Path | None, key_named: str, key: Path | None) -> CertificateFiles | None:
    """Return the files of a certificate.

    :raises TlsError: when one of the two is missing.
    """
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise TlsError(f"{named} and {key_named} belong together: give both")
    return CertificateFiles(certificate, key)


def _refuse(**options: object) -> None:
    """Check that options of --rewrite are absent without it.

    :raises TapError: when one is given; the message names it.
    """
    for name, value in options.items():
        if value is not None:
            raise TapError(f"--{name.replace('_', '-')} needs --rewrite")


def _stand_in(ports: str | None, advertise: str | None, file: Path) -> StandIn:
    """Return how a tap with --rewrite stands in for brokers.

    :raises TapError: when an option cannot be read.
    """
    if ports is None:
        if advertise is None:
            raise TapError("--rewrite needs --ports FIRST-LAST, one port for each broker of the cluster, such as 9100-9199")
        return StandIn(KnownBrokers(None, file), advertise, by_name=True)
    first, dash, last = ports.partition("-")
    try:
        found = range(int(first), int(last if dash else first) + 1)
    except ValueError:
        found = range(0)
    if not found or found[0] < 1 or found[-1] > 65535:
        raise TapError(f"{ports!r} are no ports: write FIRST-LAST, as in 9100-9199")
    return StandIn(KnownBrokers(found, file), advertise)


def _status(tap: Tap, sink: KafkaSink) -> str:
    stats = tap.stats
    parts = [
        f"{stats.open_connections} {plural(stats.open_connections, 'connection')} open of {stats.connections}",
        f"{stats.frames} {plural(stats.frames, 'frame')} captured",
        f"{sink.written} {plural(sink.written, 'record')} written",
        f"{sink.lost} lost",
    ]
    for count, what in (
        (sink.buffered, "buffered"),
        (stats.refused, "failed in TLS"),
        (stats.opaque, "unreadable connections"),
        (stats.unreachable.total(), "rejected because the broker is unreachable"),
    ):
        if count:
            parts.append(f"{count} {what}")
    if tap.stand_in is not None:
        if tap.stand_in.stats.ended:
            parts.append(f"{tap.stand_in.stats.ended} ended because they could not be rewritten")
        if tap.stand_in.lowered:
            parts.append(f"newest versions not offered to clients: {', '.join(tap.stand_in.lowered)}")
    if sink.trouble is not None:
        parts.append("nothing is mirrored now")
    return ", ".join(parts)


def _say(text: str) -> None:
    stderr().print(f"tap: {visible(text)}")

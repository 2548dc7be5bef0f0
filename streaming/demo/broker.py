"""A real Kafka broker, or a small cluster, on loopback: for the demo, the tests and the benchmarks.

Broker and controller run in one KRaft process. Each broker has two listeners: ``PLAINTEXT`` for clients, and ``INTERNAL`` for the mirror
topic, admin requests and the other brokers. ``PLAINTEXT`` can advertise an address other than its own, so that clients connect to a tap.

A JVM outlives the Python process that started it. So each broker has a guard process that kills it when the parent is gone, for whatever
reason. Each broker also has a session of its own, so that Ctrl-C on a terminal reaches only the parent. The parent then stops its children
in the right order.
"""

from __future__ import annotations

import base64
import contextlib
import errno
import fcntl
import functools
import os
import random
import shutil
import socket
import subprocess
import tempfile
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from streaming.config.settings import SHORT_LIVED_JVM
from streaming.kafka.connection import SILENT_LOGGER
from streaming.spark import jvm

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

HOST: Final = "127.0.0.1"
START_TIMEOUT_S: Final = 300.0  # for an overloaded machine; a start usually takes 5 s
_LONGEST_ANSWER_S: Final = 30.0
STOP_TIMEOUT_S: Final = 30.0
_DAY_MS: Final = 86_400_000

# Below the ephemeral ports of Linux and macOS, so that no outgoing connection takes a port between its selection and its use.
_PORTS: Final = range(20_000, 32_000)
_given: Final[set[int]] = set()

_LOG4J: Final = """\
<Configuration status="WARN" shutdownHook="disable">
  <Appenders><Console name="out"><PatternLayout pattern="%d{ISO8601} %p %m (%c{1})%n%throwable"/></Console></Appenders>
  <Loggers>
    <Root level="WARN"><AppenderRef ref="out"/></Root>
    <Logger name="kafka.server.KafkaRaftServer" level="INFO"/>
    <Logger name="kafka.server.KafkaConfig" level="ERROR"/>
    <Logger name="org.apache.kafka.coordinator.group" level="INFO"/>
  </Loggers>
</Configuration>
"""

SHORT_LIVED: Final = (SHORT_LIVED_JVM, "-XX:+UseSerialGC")


class BrokerError(RuntimeError):
    """The broker does not start or has ended; the message says why and ends with the broker's last log lines."""


class Broker:
    """One broker; a context manager that starts it, and at the end stops it and removes temporary data.

    :param data: folder for data and log; by default a temporary folder, which is removed at the end.
    :param advertised: ``host:port`` to advertise, by listener name, for listeners behind a tap or proxy.
    :param listeners: further listeners, name to security protocol (``{"SASL": "SASL_PLAINTEXT"}``), configured by ``properties``.
    :param properties: broker properties that override the ones set here.
    :param offsets_partitions: partitions of ``__consumer_offsets``, that is, shards of the group coordinator.
    :param initial_rebalance_delay_ms: how long an empty group waits for more members before its first generation.
    :param jvm_options: for a short life, unless given: a start takes half the processor time, later work more.
    :param jars: jars of a release other than the one in ``deploy/ivy.xml``.
    """

    def __init__(
        self,
        *,
        data: Path | None = None,
        advertised: Mapping[str, str] | None = None,
        listeners: Mapping[str, str] | None = None,
        properties: Mapping[str, str | int] | None = None,
        offsets_partitions: int = 4,
        initial_rebalance_delay_ms: int = 0,
        heap_mib: int = 512,
        jvm_options: Sequence[str] = SHORT_LIVED,
        node_id: int = 1,
        jars: Sequence[Path] | None = None,
    ) -> None:
        self.node_id = node_id
        self.controller_port = free_port()
        self._temporary = data is None
        self.data = data or Path(tempfile.mkdtemp(prefix="rebalance-monitor-broker-"))
        self.log = self.data / "broker.log"
        self._protocols = {"PLAINTEXT": "PLAINTEXT", "INTERNAL": "PLAINTEXT", **(listeners or {})}
        self._ports = {name: free_port() for name in self._protocols}
        self._advertised = dict(advertised or {})
        self._properties = dict(properties or {})
        self._offsets_partitions = offsets_partitions
        self._initial_rebalance_delay_ms = initial_rebalance_delay_ms
        self._heap_mib = heap_mib
        self._jvm_options = tuple(jvm_options)
        self._jars = jars
        self._cluster_id = new_cluster_id()
        self._quorum: Sequence[Broker] = (self,)
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None

    def join(self, cluster_id: str, quorum: Sequence[Broker]) -> None:
        """Make this broker a member of a cluster; to be called before the first start."""
        self._cluster_id = cluster_id
        self._quorum = quorum

    def address(self, listener: str = "PLAINTEXT") -> str:
        """Return the ``host:port`` that a listener binds to; known before the start."""
        return f"{HOST}:{self._ports[listener]}"

    @property
    def internal(self) -> str:
        """The ``host:port`` of the internal listener, which no tap or proxy is in front of."""
        return self.address("INTERNAL")

    @property
    def pid(self) -> int | None:
        """The broker's process id while it runs."""
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    # --- start and stop ------------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Start the broker and wait until it answers.

        :raises BrokerError: when it does not start.
        :raises streaming.spark.jvm.JvmError: when Java or a jar is missing.
        """
        self.launch()
        self.wait_until_ready()
        return self

    def launch(self) -> None:
        """Start the process without waiting for it."""
        if self.pid is not None:
            return
        self.data.mkdir(parents=True, exist_ok=True)
        config = self.data / "server.properties"
        config.write_text("".join(f"{name}={value}\n" for name, value in self._server_properties().items()))
        (self.data / "log4j2.xml").write_text(_LOG4J)
        if not (self.data / "kafka" / "meta.properties").exists():
            self._format(config)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._java(), "kafka.Kafka", str(config)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._guard = guard(self._process.pid, *([self.data] if self._temporary else []))

    def wait_until_ready(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Wait until the broker answers on each PLAINTEXT listener and knows all brokers of its cluster.

        Each listener is checked, because one may answer before another fails to bind its port. Secured listeners are not checked.

        :raises BrokerError: when the broker ends, or does not answer in time.
        """
        deadline = time.monotonic() + timeout_s
        listeners = [listener for listener, protocol in self._protocols.items() if protocol == "PLAINTEXT"]
        patience_s = 1.0
        while True:
            for broker in self._quorum:
                broker.check()
            if all(self._answers(listener, patience_s) for listener in listeners):
                return
            patience_s = min(2 * patience_s, _LONGEST_ANSWER_S)
            if time.monotonic() > deadline:
                raise BrokerError(f"Kafka broker {self.node_id} does not answer after {timeout_s:.0f} s{self._last_words()}")
            time.sleep(0.05)

    def _answers(self, listener: str, timeout_s: float) -> bool:
        """Return whether the listener's metadata contains all brokers of the cluster.

        Each call makes a new client. A client that has metadata connects to the advertised address, where the tap may not run yet.
        """
        admin = AdminClient({"bootstrap.servers": self.address(listener), "reconnect.backoff.max.ms": 200}, logger=SILENT_LOGGER)
        with contextlib.suppress(KafkaException):
            # Not describe_cluster(): librdkafka aborts the process if the broker ends during that call.
            known = admin.list_topics(timeout=timeout_s).brokers
            return all(broker.node_id in known for broker in self._quorum)
        return False

    def stop(self) -> None:
        """Shut the broker down cleanly: it hands its groups over and flushes its logs. Kill it if that takes too long."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(STOP_TIMEOUT_S)
        self.kill()

    def kill(self) -> None:
        """Kill the broker, as in a crash."""
        for process in (self._process, self._guard):
            if process is not None:
                process.kill()
                process.wait()
                if process.stdin is not None:
                    process.stdin.close()
        self._process = self._guard = None

    def restart(self) -> None:
        """Stop the broker cleanly and start it again with the same data and ports."""
        self.stop()
        self.start()

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.stop()
        self.close()

    def close(self) -> None:
        """Kill the broker, and remove its data if they are temporary."""
        self.kill()
        if self._temporary:
            shutil.rmtree(self.data, ignore_errors=True)

    def check(self) -> None:
        """Check that a launched broker still runs.

        :raises BrokerError: when it has ended.
        """
        if self._process is not None and self._process.poll() is not None:
            raise BrokerError(f"Kafka broker {self.node_id} ended while starting{self._last_words()}")

    # --- topics --------------------------------------------------------------------------------------------------

    def create_topic(self, name: str, partitions: int = 1, *, replicas: int = 1, config: Mapping[str, str] | None = None) -> None:
        """Create a topic and wait until its partitions have leaders.

        :raises confluent_kafka.KafkaException: when the topic exists already, or the broker refuses.
        :raises BrokerError: when a partition has no leader after 30 s.
        """
        admin = AdminClient({"bootstrap.servers": self.internal}, logger=SILENT_LOGGER)
        admin.create_topics([NewTopic(name, partitions, replicas, config=dict(config or {}))])[name].result(30)
        deadline = time.monotonic() + 30
        while True:
            found = admin.list_topics(name, timeout=10).topics[name].partitions
            if len(found) == partitions and all(partition.leader >= 0 for partition in found.values()):
                return
            if time.monotonic() > deadline:
                raise BrokerError(f"topic {name!r} has no leaders after 30 s")
            time.sleep(0.05)

    # --- processes and configuration -----------------------------------------------------------------------------

    def _java(self) -> list[str]:
        return [
            jvm.java_command(),
            f"-Xmx{self._heap_mib}m",
            *self._jvm_options,
            "-Djava.awt.headless=true",
            f"-Dlog4j2.configurationFile={self.data / 'log4j2.xml'}",
            *("-cp", ":".join(str(jar) for jar in self._jars or jvm.jars("broker"))),
        ]

    def _format(self, config: Path) -> None:
        done = subprocess.run(
            [*self._java(), "kafka.tools.StorageTool", "format", "-t", self._cluster_id, "-c", str(config)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            said = (done.stderr + done.stdout).strip()
            raise BrokerError(f"Kafka's StorageTool cannot format {self.data / 'kafka'}:\n{said}")

    def _server_properties(self) -> dict[str, str | int]:
        replicas = min(3, len(self._quorum))
        return {
            "process.roles": "broker,controller",
            "node.id": self.node_id,
            "controller.quorum.voters": ",".join(f"{voter.node_id}@{HOST}:{voter.controller_port}" for voter in self._quorum),
            "controller.listener.names": "CONTROLLER",
            "listeners": ",".join(
                [f"CONTROLLER://{HOST}:{self.controller_port}"] + [f"{name}://{self.address(name)}" for name in self._protocols]
            ),
            "advertised.listeners": ",".join(
                f"{name}://{self._advertised.get(name, self.address(name))}" for name in self._protocols
            ),
            "listener.security.protocol.map": ",".join(
                f"{name}:{protocol}" for name, protocol in (("CONTROLLER", "PLAINTEXT"), *self._protocols.items())
            ),
            "inter.broker.listener.name": "INTERNAL",
            "log.dirs": str(self.data / "kafka"),
            "initial.broker.registration.timeout.ms": int(START_TIMEOUT_S * 1000),  # else the broker gives up on a busy machine
            "auto.create.topics.enable": "false",
            "offsets.topic.num.partitions": self._offsets_partitions,
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.num.partitions": 1,
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": 1,
            "share.coordinator.state.topic.num.partitions": 1,
            "share.coordinator.state.topic.replication.factor": replicas,
            "share.coordinator.state.topic.min.isr": 1,
            "group.initial.rebalance.delay.ms": self._initial_rebalance_delay_ms,
            "group.min.session.timeout.ms": 1000,
            "num.network.threads": 2,
            "num.io.threads": 4,
            "log.cleaner.dedupe.buffer.size": 8 * 2**20,
            # What is replayed into a topic may be years old, and retention goes by the records' own times. So it does not look.
            "log.retention.check.interval.ms": _DAY_MS,
            "log.initial.task.delay.ms": _DAY_MS,
            **self._properties,
        }

    def _last_words(self, lines: int = 12) -> str:
        try:
            logged = self.log.read_text(errors="replace").splitlines()
            # Java 24 and newer log warnings about deprecated methods at the end; they are not the cause.
            last = [line for line in logged if not line.startswith("WARNING: ")][-lines:]
        except OSError:
            last = []
        return ":\n" + "\n".join(last) if last else f"; it logged nothing to {self.log}"


def free_port() -> int:
    """Return a loopback port that is not bound, and that no running process of this user has got from this function.

    The second condition is needed because a process may not have bound its port yet.

    :raises BrokerError: when no free port is found.
    """
    for port in random.sample([port for port in _PORTS if port not in _given], 200):
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((HOST, port))
            if _claimed(port):
                _given.add(port)
                return port
    raise BrokerError(f"no free port found on {HOST} between {_PORTS.start} and {_PORTS.stop}")


def _claimed(port: int) -> bool:
    """Claim a port for the lifetime of this process: lock one byte of a file that all processes of this user share."""
    claims = _claims()
    if claims is None:
        return True
    try:
        fcntl.lockf(claims, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError as error:
        return error.errno not in {errno.EACCES, errno.EAGAIN}
    return True


@functools.cache
def _claims() -> int | None:
    """Open the file of claimed ports; None if it cannot be opened, so that ports are not claimed.

    It is never closed: closing any descriptor of a file releases all locks that the process holds on it.
    """
    try:
        folder = jvm.cache_folder().parent
        folder.mkdir(parents=True, exist_ok=True)
        return os.open(folder / "ports.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return None


def new_cluster_id() -> str:
    """Return a random cluster id in Kafka's format: a UUID in URL-safe base64 that does not begin with a dash."""
    while (written := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return written


_GUARD: Final = 'read -r _; kill -9 "$1"; shift; for _ in 1 2 3 4 5 6 7 8 9; do rm -rf -- "$@" && exit; sleep 1; done'


def guard(pid: int, *leftovers: Path) -> subprocess.Popen[bytes]:
    """Start a process that kills ``pid`` and removes ``leftovers`` when this process ends.

    The caller ends the guard once ``pid`` has ended, because the system may assign the number again. The guard waits for end-of-file on a
    pipe that only this process holds open. So it does not poll and needs only a shell. Linux's parent-death signal would also fire when
    only the starting *thread* ends. The removal is repeated, because a killed process may still write files for a moment.
    """
    return subprocess.Popen(
        ["/bin/sh", "-c", _GUARD, "guard", str(pid), *map(str, leftovers)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )

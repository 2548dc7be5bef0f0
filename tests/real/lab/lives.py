"""Lives of groups that speak the newer protocols, each a script for real clients: what the models of these groups are judged by.

All lives of a run happen at once, each in a group and a thread of its own, before one broker with a tap. Times are the broker's
defaults: a heartbeat in 5 s, a session of 45 s, for these are what running groups have.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

from confluent_kafka import Producer

from coordinator_model.wire.record import MirrorRecord
from coordinator_model.wire.recording import MAGIC, pack_record
from streaming.demo.broker import HOST, Broker, free_port
from streaming.demo.processes import Child, Processes
from tests.real.connect import Worker, live_as_one_cluster, running
from tests.real.harness import running_tap
from tests.real.lab.client import Client, Kind, Protocol

TOPICS = {"orders": 6, "payments": 4, "pattern-a": 2}
BEAT_S = 5.0  #: how often a member heartbeats
SESSION_S = 45.0
REVOCATION_S = 6.0  #: of a member that takes its time
START_APART_S = 4.0  #: a process that starts is busy


class Recording:
    """A sink of the tap that writes to a file; a context manager."""

    def __init__(self, file: Path) -> None:
        self._path = file
        self._lock = threading.Lock()
        self._offset = 0

    def __enter__(self) -> Self:
        self._file = self._path.open("wb")
        self._file.write(MAGIC)
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, record: MirrorRecord) -> None:
        with self._lock:
            self._file.write(pack_record(record._replace(partition=0, offset=self._offset)))
            self._offset += 1


class Actor:
    """One member and its process."""

    def __init__(self, stage: Stage, client: Client) -> None:
        self._stage = stage
        self.client = client
        self.start()

    def start(self, protocol: Protocol | None = None) -> None:
        """Start it, by another protocol when one is given."""
        if protocol is not None:
            self.client = dataclasses.replace(self.client, protocol=protocol)
        self._child: Child = self._stage.processes.start(self.client.client_id, self.client.command())

    def wait_until_working(self) -> None:
        """Wait until it is in its group; a consumer says so once it is given partitions."""
        self._child.wait_for("started" if self.client.protocol == "share" else "assigned", timeout_s=120)

    def stop(self) -> None:
        self._child.stop(20)

    def restart(self, protocol: Protocol | None = None, *, after_s: float = 2.0) -> None:
        self.stop()
        time.sleep(after_s)
        self.start(protocol)
        self.wait_until_working()

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        self._child.wait()

    def signal(self, number: signal.Signals) -> None:
        self._child.signal(number)

    @property
    def ended(self) -> bool:
        return self._child.status is not None


class Stage:
    """Where one life takes place."""

    def __init__(self, group: str, broker: Broker, bootstrap: str, processes: Processes) -> None:
        self.group = group
        self.broker = broker
        self.processes = processes
        self.bootstrap = bootstrap
        self.actors: list[Actor] = []

    def enter(self, kind: Kind, protocol: Protocol, **options: Any) -> Actor:
        """A member comes."""
        number = len(self.actors) + 1
        fields: dict[str, Any] = {
            "topics": ("orders",),
            "other_topics": ("orders", "payments"),
            "commits": "sync",
            "rebalance_timeout_ms": 60_000,
            **options,
        }
        client = Client(
            kind=kind,
            bootstrap=self.bootstrap,
            group=self.group,
            client_id=f"{self.group}-{number}",
            protocol=protocol,
            **fields,
        )
        actor = Actor(self, client)
        self.actors.append(actor)
        return actor

    def troupe(self, *kinds: Kind, protocol: Protocol = "consumer", static: bool = False, **options: Any) -> list[Actor]:
        """Members come one after the other, and all are given their partitions."""
        actors = []
        for number, kind in enumerate(kinds, 1):
            actors.append(self.enter(kind, protocol, instance_id=f"instance-{number}" if static else None, **options))
            actors[-1].wait_until_working()
        time.sleep(2 * BEAT_S)
        return actors


Script = Callable[[Stage], None]


def steady(stage: Stage) -> None:
    """Members come, work, and one leaves."""
    members = stage.troupe("confluent-kafka", "java", "confluent-kafka")
    time.sleep(6 * BEAT_S)
    members[2].stop()
    time.sleep(3 * BEAT_S)


def rolling_restart(stage: Stage) -> None:
    """Each member is replaced by a new process."""
    for member in stage.troupe("java", "confluent-kafka", "java"):
        member.restart()
        time.sleep(3 * BEAT_S)


def static_restart(stage: Stage) -> None:
    """Static members are restarted; one is killed, and its successor waits until the slot is free."""
    members = stage.troupe("java", "confluent-kafka", "java", static=True)
    for member in members:
        member.restart(after_s=4)
        time.sleep(2 * BEAT_S)
    members[0].kill()
    until = time.monotonic() + SESSION_S + 4 * BEAT_S
    while time.monotonic() < until:  # told UNRELEASED_INSTANCE_ID, a client ends, and its supervisor starts it again
        if members[0].ended:
            members[0].start()
        time.sleep(2 * BEAT_S)


def handover(stage: Stage) -> None:
    """Partitions change hands while their owners take their time to give them up."""
    slow = {"revoke_ms": int(REVOCATION_S * 1000)}
    stage.troupe("java", **slow)
    stage.troupe("confluent-kafka", **slow)
    stage.enter("java", "consumer")
    stage.enter("confluent-kafka", "consumer").wait_until_working()
    time.sleep(6 * BEAT_S)
    stage.actors[0].signal(signal.SIGHUP)  # subscribes to another topic besides
    time.sleep(5 * BEAT_S)
    stage.actors[0].stop()
    time.sleep(4 * BEAT_S)


def never_gives_up(stage: Stage) -> None:
    """A member is busy when it is to give partitions up, for longer than its rebalance timeout; so it loses its place."""
    stage.troupe("java", revoke_ms=45_000, rebalance_timeout_ms=20_000)
    stage.enter("confluent-kafka", "consumer").wait_until_working()
    time.sleep(12 * BEAT_S)


def falls_silent(stage: Stage) -> None:
    """One member is suspended for longer than its session, another is killed."""
    members = stage.troupe("confluent-kafka", "java", "confluent-kafka")
    members[0].signal(signal.SIGSTOP)
    members[1].kill()
    time.sleep(SESSION_S + 3 * BEAT_S)
    members[0].signal(signal.SIGCONT)
    time.sleep(4 * BEAT_S)


def pattern(stage: Stage) -> None:
    """Members subscribe by a pattern; a topic that fits it comes into being."""
    stage.troupe("confluent-kafka", "java", topics=("^pattern-.*",), other_topics=("orders",))
    stage.broker.create_topic("pattern-b", 3)
    time.sleep(7 * BEAT_S)
    stage.actors[1].signal(signal.SIGHUP)
    time.sleep(5 * BEAT_S)


def coordinator_restart(stage: Stage) -> None:
    """The broker is killed and started again while partitions are to be given up."""
    stage.troupe("java", revoke_ms=int(REVOCATION_S * 1000))
    stage.enter("confluent-kafka", "consumer")
    time.sleep(2 * BEAT_S)
    stage.broker.kill()
    stage.broker.start()
    time.sleep(6 * BEAT_S)


def migration(stage: Stage, kinds: tuple[Kind, ...] = ("java", "confluent-kafka", "java"), **options: Any) -> None:
    """Members of a classic group are restarted with the consumer protocol one by one, and back again."""
    members = stage.troupe(*kinds, protocol="classic", session_timeout_ms=45_000, **options)
    for protocol in ("consumer", "classic"):
        for member in members:
            member.restart(protocol)
            time.sleep(4 * BEAT_S)
        time.sleep(3 * BEAT_S)


def migration_cooperative(stage: Stage) -> None:
    migration(stage, ("java", "java", "java"), assignors=("cooperative-sticky",))


def migration_refused(stage: Stage) -> None:
    """Brokers take what the cooperative assignor of librdkafka adds to assignments for a custom one's, and refuse the upgrade."""
    sticky = {"assignors": ("cooperative-sticky",), "session_timeout_ms": 45_000}
    members = stage.troupe("confluent-kafka", "confluent-kafka", protocol="classic", **sticky)
    members[0].stop()
    members[0].start("consumer")
    time.sleep(4 * BEAT_S)
    members[0].restart("classic")
    time.sleep(2 * BEAT_S)


def migration_static(stage: Stage) -> None:
    migration(stage, static=True)


def empty_conversion(stage: Stage) -> None:
    """All members of a classic group stop, come back with the consumer protocol, and once more the other way."""
    for protocol in ("classic", "consumer", "classic"):
        start = len(stage.actors)
        stage.troupe("confluent-kafka", "java", protocol=protocol)
        for member in stage.actors[start:]:
            member.stop()


def share(stage: Stage) -> None:
    """Members of a share group come, one is killed, another comes."""
    members = stage.troupe("java", "java", protocol="share")
    members[0].kill()
    time.sleep(SESSION_S + 3 * BEAT_S)
    stage.enter("java", "share")
    time.sleep(4 * BEAT_S)


def streams(stage: Stage) -> None:
    """Members of a Streams group come, which has topics made for itself; one is killed, another comes, and one leaves."""
    members = stage.troupe("java", "java", protocol="streams")
    time.sleep(3 * BEAT_S)
    members[0].kill()
    time.sleep(SESSION_S + 3 * BEAT_S)
    stage.enter("java", "streams").wait_until_working()
    time.sleep(4 * BEAT_S)
    members[1].stop()
    time.sleep(3 * BEAT_S)


def streams_source_missing(stage: Stage) -> None:
    """A Streams group reads a topic that is not there yet."""
    members = [stage.enter("java", "streams", topics=("late",)) for _ in range(2)]
    time.sleep(15 * BEAT_S)  # its members give up and start again all the while
    stage.broker.create_topic("late", 2)
    for member in members:
        member.wait_until_working()
    time.sleep(3 * BEAT_S)


def connect(stage: Stage) -> None:
    """Workers of Kafka Connect, their connectors, and what an operator does to both."""
    with tempfile.TemporaryDirectory() as folder:
        workers = [Worker(Path(folder), number, stage.bootstrap, group=stage.group) for number in (1, 2, 3)]
        with running(*workers):
            live_as_one_cluster(*workers)


LIVES: dict[str, Script] = {
    "consumer-steady": steady,
    "consumer-rolling-restart": rolling_restart,
    "consumer-static": static_restart,
    "consumer-handover": handover,
    "consumer-never-gives-up": never_gives_up,
    "consumer-falls-silent": falls_silent,
    "consumer-pattern": pattern,
    "migration": migration,
    "migration-cooperative": migration_cooperative,
    "migration-static": migration_static,
    "migration-refused": migration_refused,
    "migration-empty": empty_conversion,
    "share": share,
    "streams": streams,
    "streams-source-missing": streams_source_missing,
    "connect": connect,
    "consumer-coordinator-restart": coordinator_restart,
}
ALONE = frozenset({"connect", "consumer-coordinator-restart"})
"""Lives that come after the others, one by one."""


def lives_for(line: str) -> tuple[str, ...]:
    """The lives that a line of releases can have: share and Streams groups are preview before 4.2."""
    if line.startswith("3."):
        return ()
    return tuple(name for name in LIVES if not name.startswith(("share", "streams")) or not line.startswith("4.1"))


def record(jars: Sequence[Path], recording: Path, logs: Path, lives: Sequence[str]) -> None:
    """Let lives happen before one broker, and write what crosses the wire to a file."""
    front = f"{HOST}:{free_port()}"
    with contextlib.ExitStack() as stack:
        sink = stack.enter_context(Recording(recording))
        broker = stack.enter_context(Broker(advertised={"PLAINTEXT": front}, initial_rebalance_delay_ms=500, jars=jars))
        for topic, partitions in TOPICS.items():
            broker.create_topic(topic, partitions)
        stack.enter_context(running_tap([f"{front}={broker.address()}"], sink, cluster="lab"))
        processes = stack.enter_context(Processes(logs, lambda _: None))
        ended = threading.Event()
        feeder = threading.Thread(target=_produce, args=(broker.internal, ended), name="producer")
        feeder.start()
        stages = [Stage(name, broker, front, processes) for name in lives]
        threads = [threading.Thread(target=_live, args=(stage,), name=stage.group) for stage in stages if stage.group not in ALONE]
        try:
            for thread in threads:
                thread.start()
                time.sleep(START_APART_S)
            for thread in threads:
                thread.join()
            for stage in stages:
                if stage.group in ALONE:
                    _live(stage)
        finally:
            ended.set()
            feeder.join()


def _live(stage: Stage) -> None:
    LIVES[stage.group](stage)
    for actor in stage.actors:
        actor.stop()


def _produce(bootstrap: str, ended: threading.Event) -> None:
    """Records for all topics, so that there is something to commit."""
    producer = Producer({"bootstrap.servers": bootstrap}, logger=logging.getLogger("streaming.demo.broker.probe"))
    while not ended.wait(0.5):
        for topic in TOPICS:
            producer.produce(topic, b"lab")
        producer.poll(0)
    producer.flush(10)

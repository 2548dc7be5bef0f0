"""Fleets of real clients: groups of every lawful make, their members as processes that can be added, stopped, killed and suspended."""

from __future__ import annotations

import contextlib
import itertools
import signal
import time
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

import psutil

from streaming.demo.processes import Child, Processes
from tests.real.lab.client import Client, Commits, Kind, Protocol

STOP_TIMEOUT_S = 10.0  # a container platform is not patient either
TOPICS = {"lab-a": 3, "lab-b": 4, "lab-c": 2}  #: with their partitions at the start
#: Never get more partitions: the internal topics of a Streams group keep the number that they were made with.
FIXED_TOPICS = {"lab-d": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Make:
    """What the members of a group have in common."""

    name: str
    kinds: tuple[Kind, ...]  #: of the members that are there from the start; more are of these in turn
    assignors: tuple[str, ...]
    commits: Commits
    static: bool = False
    protocol: Protocol = "classic"
    topics: tuple[str, ...] = ("lab-a",)
    other_topics: tuple[str, ...] = ("lab-a", "lab-b")
    migrates: bool = False  #: to the consumer protocol and back


MAKES: tuple[Make, ...] = (
    Make(
        name="eager",
        kinds=("confluent-kafka", "kafka-python", "java", "franz-go", "sarama", "aiokafka"),
        assignors=("range",),
        commits="auto",
    ),
    Make(
        name="cooperative",
        kinds=("confluent-kafka", "java", "franz-go"),
        assignors=("cooperative-sticky",),
        commits="sync",
        topics=("lab-a", "lab-b"),
        other_topics=("lab-b",),
    ),
    Make(
        name="static",
        kinds=("kafka-python", "confluent-kafka"),
        assignors=("range", "roundrobin"),
        commits="async",
        static=True,
        topics=("lab-c",),
    ),
    Make(name="transactions", kinds=("confluent-kafka", "java"), assignors=("range",), commits="transaction"),
)
#: It calls its assignor otherwise than all others do, so it has a group of its own.
KAFKAJS = Make(name="kafkajs", kinds=("kafkajs", "kafkajs"), assignors=("roundrobin",), commits="async")
NEW_PROTOCOL = Make(name="new-protocol", kinds=("confluent-kafka", "java"), assignors=(), commits="sync", protocol="consumer")
MIGRATING = Make(
    name="migrating", kinds=("java", "confluent-kafka"), assignors=("range",), commits="sync", topics=("lab-b",), migrates=True
)
SHARE = Make(name="share", kinds=("java", "java"), assignors=(), commits="auto", protocol="share")
STREAMS = Make(
    name="streams",
    kinds=("java", "java"),
    assignors=(),
    commits="auto",
    protocol="streams",
    topics=tuple(FIXED_TOPICS),
    other_topics=tuple(FIXED_TOPICS),
)


def makes_for(line: str, kinds: Collection[Kind] = ()) -> tuple[Make, ...]:
    """The groups that a line of releases and these clients can have.

    Brokers know the consumer protocol (KIP-848) since 4.0; share and Streams groups (KIP-932, KIP-1071) are preview before 4.2.
    """
    makes = MAKES if "kafkajs" not in kinds else (*MAKES, KAFKAJS)
    if line.startswith("3."):
        return makes
    if "java" not in kinds or line.startswith(("4.0", "4.1")):
        return (*makes, NEW_PROTOCOL, MIGRATING)
    return (*makes, NEW_PROTOCOL, MIGRATING, SHARE, STREAMS)


@dataclass(slots=True)
class Membership:
    """One consumer process and the client that it is."""

    client: Client
    child: Child
    suspended: bool = False
    since: float = field(default_factory=time.monotonic)


@dataclass(slots=True)
class Fleet:
    """All groups and their processes.

    :param bootstraps: of the listeners, which the members use in turn.
    :param kinds: which clients there may be.
    """

    processes: Processes
    bootstraps: Sequence[str]
    kinds: Sequence[Kind]
    makes: Sequence[Make] = MAKES
    members: list[Membership] = field(default_factory=list)
    started: Counter[str] = field(default_factory=Counter)
    libraries: dict[str, Kind] = field(default_factory=dict)  #: client id → what it was started with
    _protocols: dict[str, Protocol] = field(default_factory=dict)  #: of groups that have migrated
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def start_all(self) -> None:
        for make in self.makes:
            for _ in self._kinds_of(make):
                self.add(make)

    @property
    def newer(self) -> dict[str, str]:
        """Share and Streams groups, each with its type."""
        return {make.name: make.protocol for make in self.makes if make.protocol in {"share", "streams"}}

    def group(self, make: Make) -> list[Membership]:
        return [member for member in self.members if member.client.group == make.name]

    def add(self, make: Make) -> Membership:
        """Start one more member of a group."""
        kinds = self._kinds_of(make)
        number = next(self._numbers)
        kind = kinds[number % len(kinds)]
        return self._start(
            Client(
                kind=kind,
                bootstrap=self.bootstraps[number % len(self.bootstraps)],
                group=make.name,
                client_id=f"{make.name}-{number}",
                topics=make.topics,
                other_topics=make.other_topics,
                assignors=make.assignors,
                commits=make.commits,
                instance_id=f"{make.name}-instance-{number}" if make.static else None,
                protocol=self._protocols.get(make.name, make.protocol),
            )
        )

    def migrate(self, make: Make) -> Protocol:
        """Whoever of this group is started from now on speaks the other protocol; gives which."""
        before = self._protocols.get(make.name, make.protocol)
        protocol: Protocol = "consumer" if before == "classic" else "classic"
        self._protocols[make.name] = protocol
        return protocol

    def remove(self, member: Membership) -> None:
        """Let it leave in good order."""
        member.child.stop(STOP_TIMEOUT_S)
        self.members.remove(member)

    def kill(self, member: Membership) -> None:
        """End it as the operating system does when memory runs out."""
        member.child.signal(signal.SIGKILL)
        member.child.wait()
        self.members.remove(member)

    def again(self, member: Membership) -> Membership:
        """Start what has ended once more, as the same client."""
        protocol = self._protocols.get(member.client.group, member.client.protocol)
        return self._start(replace(member.client, protocol=protocol))

    def suspend(self, member: Membership) -> None:
        self._signal_all(member, signal.SIGSTOP)
        member.suspended = True

    def resume(self, member: Membership) -> None:
        self._signal_all(member, signal.SIGCONT)
        member.suspended = False

    def _signal_all(self, member: Membership, number: signal.Signals) -> None:
        """To its process and a driver that is its child."""
        with contextlib.suppress(psutil.Error):
            for process in psutil.Process(member.child.pid).children(recursive=True):
                process.send_signal(number)
        member.child.signal(number)

    def switch_topics(self, member: Membership) -> None:
        member.child.signal(signal.SIGHUP)

    def revive(self) -> list[str]:
        """Start again what ended by itself, as its supervisor would; gives its last words."""
        ended = [member for member in self.members if member.child.status is not None]
        for member in ended:
            self.members.remove(member)
            self.again(member)
        return [f"{member.client.client_id} ended with status {member.child.status}{member.child.last_words()}" for member in ended]

    def _start(self, client: Client) -> Membership:
        member = Membership(client, self.processes.start(client.client_id, client.command()))
        self.members.append(member)
        self.started[client.kind] += 1
        self.libraries[client.client_id] = client.kind
        return member

    def _kinds_of(self, make: Make) -> list[Kind]:
        return [kind for kind in make.kinds if kind in self.kinds] or [self.kinds[0]]

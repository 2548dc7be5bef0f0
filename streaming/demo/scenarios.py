"""The demo's faults: what is done to a group, by which process, and which finding is expected. ``TROUBLES`` is the table of them.

Each fault has a group of its own, so that effects do not mix. The client ids identify the culprits, so that a finding can be compared with
the process that caused it.

Rules wait before they report, and the demo shortens few of these waits. So each scenario says how long its rule waits, to explain the
seconds in the summary.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, AdminClient, ResourcePatternType, ResourceType

from coordinator_model.finding import Blame
from coordinator_model.wire.constants import ILLEGAL_GENERATION
from streaming.demo.consumer import Consumer, Kind, Protocol
from streaming.demo.faulty_proxy import Lie
from streaming.demo.misbehaviour import Manner, Misbehaviour
from streaming.demo.processes import Child, Processes, ProcessSupervisor
from streaming.demo.screen_state import ScreenState, now_us
from streaming.demo.verdicts import ExpectedFinding, Truth
from streaming.kafka.connection import SILENT_LOGGER

TOPIC: Final = "orders"
NO_TOPIC: Final = "ordres"
PARTITIONS: Final = 4
PROPERTIES: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
"""What the broker needs so that a group can be forbidden."""

SESSION_TIMEOUT_MS: Final = 6_000
HEARTBEAT_INTERVAL_MS: Final = 1_000
REBALANCE_TIMEOUT_MS: Final = 12_000
PATIENT_SESSION_MS: Final = 30_000  # the coordinator answers a zombie ILLEGAL_GENERATION only while its session lasts

USUAL_MS: Final = 5_000  #: set as ``model.usual_ms``, since no group lives for long
MISSING_MS: Final = 15_000  #: set as ``model.missing_ms``

_STEP_TIMEOUT_S: Final = 30.0
_RESTART_PAUSE_S: Final = 1.0

#: The consumers that run from the start: group → (client library, client id).
HEALTHY_GROUP: Final = "orders"
STANDING: Final[dict[str, tuple[tuple[Kind, str], ...]]] = {
    HEALTHY_GROUP: (
        ("confluent-kafka", "orders-worker-1"),
        ("kafka-python", "orders-worker-2"),
        ("confluent-kafka", "orders-worker-3"),
    ),
    "payments": (("kafka-python", "payments-worker-1"), ("confluent-kafka", "payments-worker-2")),
    "invoices": (("kafka-python", "invoices-worker-1"), ("confluent-kafka", "invoices-worker-2")),
}


class Stage:
    """The means of a scenario: it starts processes, waits, and writes notes. ``over`` ends all waiting.

    :param bootstrap: the broker's address for clients.
    :param lies: returns the answers that the faulty proxy has falsified so far.
    :param vital: the processes that the demo cannot continue without.
    """

    def __init__(
        self,
        processes: Processes,
        screen_state: ScreenState,
        bootstrap: str,
        lies: Callable[[], Sequence[Lie]],
        *,
        vital: Sequence[Child],
    ) -> None:
        self.over = threading.Event()
        self.say = screen_state.note
        self.lies = lies
        self.vital = vital
        self.standing: dict[str, Child] = {}
        self._processes = processes
        self._bootstrap = bootstrap

    def consumer(self, kind: Kind, group: str, client_id: str, protocol: Protocol = "classic", topic: str = TOPIC) -> Child:
        """Start an ordinary consumer."""
        return self._processes.start(client_id, self._consumer(kind, group, client_id, protocol=protocol, topic=topic).command())

    def forbid(self, group: str) -> None:
        """Let nobody but one who is not here read for a group.

        :raises KafkaException: when the broker does not do so.
        """
        read = AclOperation.READ, AclPermissionType.ALLOW
        only = AclBinding(ResourceType.GROUP, group, ResourcePatternType.LITERAL, "User:auditor", "*", *read)
        admin = AdminClient({"bootstrap.servers": self._bootstrap}, logger=SILENT_LOGGER)
        for done in admin.create_acls([only]).values():
            done.result(_STEP_TIMEOUT_S)

    def pod(self, kind: Kind, group: str, client_id: str, instance_id: str) -> ProcessSupervisor:
        """Start an ordinary consumer with a group instance id that is restarted whenever it ends."""
        command = self._consumer(kind, group, client_id, instance_id=instance_id).command()
        return self._processes.supervise(client_id, command, pause_s=_RESTART_PAUSE_S)

    def misbehaving(self, manner: Manner, group: str, client_id: str) -> Child:
        """Start a member that will misbehave, and wait until it is the group's only member."""
        child = self._processes.start(
            client_id,
            Misbehaviour(
                manner=manner,
                bootstrap=self._bootstrap,
                topic=TOPIC,
                partitions=PARTITIONS,
                group=group,
                client_id=client_id,
                session_timeout_ms=PATIENT_SESSION_MS if manner == "zombie" else SESSION_TIMEOUT_MS,
                heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
                rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            ).command(),
        )
        child.wait_for("joined", timeout_s=_STEP_TIMEOUT_S)
        return child

    def wait(self, seconds: float) -> None:
        """Wait for some seconds, or until the demo is over."""
        self.over.wait(seconds)

    def _consumer(
        self,
        kind: Kind,
        group: str,
        client_id: str,
        *,
        instance_id: str | None = None,
        protocol: Protocol = "classic",
        topic: str = TOPIC,
    ) -> Consumer:
        return Consumer(
            kind=kind,
            bootstrap=self._bootstrap,
            topic=topic,
            group=group,
            client_id=client_id,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            instance_id=instance_id,
            protocol=protocol,
        )


class Scene(NamedTuple):
    """A stage and the facts about one fault on it."""

    stage: Stage
    truth: Truth

    def fact(self, at_us: int) -> None:
        self.truth.fact_us = at_us


def _killed_for_good(scene: Scene) -> None:
    stage = scene.stage
    victim = stage.standing["invoices-worker-2"]
    # An interval of heartbeats longer and one to spare: to a broker's log a killed member is gone since its last heartbeat.
    stage.wait((USUAL_MS + 2 * HEARTBEAT_INTERVAL_MS) / 1000)
    stage.say(f"SIGKILL to {victim.name} (pid {victim.pid}); nothing starts it again")
    scene.fact(now_us())
    victim.signal(signal.SIGKILL)
    stage.wait(MISSING_MS / 1000 + 2)


def _no_such_topic(scene: Scene) -> None:
    stage, name = scene.stage, "reports-worker-1"
    scene.fact(now_us())
    child = stage.consumer("kafka-python", "reports", name, topic=NO_TOPIC)
    stage.say(f"started {name} (pid {child.pid}), which subscribes to {NO_TOPIC}")
    stage.wait(22)


def _missing_right(scene: Scene) -> None:
    stage, name = scene.stage, "audit-worker-1"
    stage.forbid("audit")
    scene.fact(now_us())
    child = stage.consumer("confluent-kafka", "audit", name)
    stage.say(f"started {name} (pid {child.pid}), which may not read for group audit")
    stage.wait(8)
    child.stop()


def _stopped_process(scene: Scene) -> None:
    stage = scene.stage
    victim = stage.standing["payments-worker-2"]
    stage.say(f"SIGSTOP to {victim.name} (pid {victim.pid})")
    scene.fact(now_us())
    victim.signal(signal.SIGSTOP)
    stage.wait(SESSION_TIMEOUT_MS / 1000 + 5)
    victim.signal(signal.SIGCONT)
    stage.say(f"SIGCONT to {victim.name} (pid {victim.pid})")


def _zombie(scene: Scene) -> None:
    member = _with_company(scene, "zombie", "shipping")
    scene.fact(_goes_on(scene, member, event="refused"))
    scene.stage.wait(15)
    member.stop()


def _lying_proxy(scene: Scene) -> None:
    member = _with_company(scene, "zombie", "refunds")
    _goes_on(scene, member, event="accepted")
    scene.fact(scene.stage.lies()[0].at_us)
    scene.stage.wait(5)
    member.stop()


def _goes_on(scene: Scene, zombie: Child, *, event: str) -> int:
    """Wait for the first answer to a request of the old generation; return when it arrived, in microseconds.

    :param event: the event that the member reports for that answer.
    """
    first = zombie.wait_for(event, timeout_s=_STEP_TIMEOUT_S)
    old, new = (report.details["generation"] for report in zombie.reports("joined")[:2])
    scene.stage.say(f"{zombie.name} (pid {zombie.pid}) joined generation {new} but still uses generation {old}: {event}")
    return first.at_us


def _with_company(scene: Scene, manner: Manner, group: str, protocol: Protocol = "classic") -> Child:
    """Start a misbehaving member alone in its group, then an ordinary consumer that triggers the rebalance; return the first."""
    culprit = scene.stage.misbehaving(manner, group, f"{group}-worker-1")
    scene.truth.member_ids.add(culprit.reports("joined")[0].details["member_id"])
    scene.stage.consumer("confluent-kafka", group, f"{group}-worker-2", protocol)
    return culprit


def _same_instance(scene: Scene) -> None:
    stage, pods = scene.stage, []
    for number, kind in enumerate[Kind](("confluent-kafka", "kafka-python"), 1):
        pod = stage.pod(kind, "inventory", f"inventory-pod-{number}", "inventory-0")
        pods.append(pod)
        if number == 2:
            scene.fact(now_us())
        stage.say(f"started {pod.child.name} (pid {pod.child.pid}) with group.instance.id inventory-0")
        pod.child.wait_for("assigned", timeout_s=_STEP_TIMEOUT_S)
    stage.wait(9)
    restarts = ", ".join(f"{pod.child.name} {pod.restarts} times" for pod in pods)
    stage.say(f"restarted after being fenced: {restarts}; stopping {pods[1].child.name}")
    pods[1].stop()


def _never_rejoins(scene: Scene) -> None:
    culprit = _with_company(scene, "never-rejoins", "billing")
    scene.fact(culprit.wait_for("told-to-rejoin", timeout_s=_STEP_TIMEOUT_S).at_us)
    scene.stage.say(f"{culprit.name} (pid {culprit.pid}) has to rejoin billing but only heartbeats")
    _until_dropped(scene, culprit)


def _never_syncs(scene: Scene) -> None:
    culprit = _with_company(scene, "never-syncs", "search")
    joined = culprit.wait_for("joined", count=2, timeout_s=_STEP_TIMEOUT_S)
    if not joined.details["leads"]:
        scene.truth.failure = "the broker elected another member as leader"
    scene.fact(joined.at_us)
    generation = joined.details["generation"]
    scene.stage.say(f"{culprit.name} (pid {culprit.pid}) leads generation {generation} of search but sends no assignment")
    _until_dropped(scene, culprit)


def _never_gives_up(scene: Scene) -> None:
    culprit = _with_company(scene, "never-gives-up", "returns", "consumer")
    asked = culprit.wait_for("told-to-give-up", timeout_s=_STEP_TIMEOUT_S)
    scene.fact(asked.at_us)
    count = asked.details["partitions"]
    scene.stage.say(f"{culprit.name} (pid {culprit.pid}) has to give up {count} partitions in returns but keeps them")
    _until_dropped(scene, culprit)


def _until_dropped(scene: Scene, culprit: Child) -> None:
    """Wait until the coordinator removes the member, which it does after the rebalance timeout; then stop the process."""
    deadline_us = now_us() + (REBALANCE_TIMEOUT_MS + 5_000) * 1000
    while not culprit.reports("dropped") and now_us() < deadline_us and not scene.stage.over.is_set():
        scene.stage.wait(0.2)
    if dropped := culprit.reports("dropped"):
        scene.stage.say(f"the coordinator removed {culprit.name} (error {dropped[0].details['error']})")
    culprit.stop()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One fault and the finding that it must cause."""

    name: str  #: short, for tables
    means: str  #: what is done
    fact: str  #: the event from which the seconds are counted
    rule_waits: str  #: what the rule itself waits for after that event, with the demo's timeouts
    expected: ExpectedFinding
    act: Callable[[Scene], None]


TROUBLES: Final[tuple[Scenario, ...]] = (
    Scenario(
        name="killed for good",
        means="a consumer process gets SIGKILL, and nothing starts it again",
        fact="SIGKILL",
        rule_waits="its return, 15 s",
        expected=ExpectedFinding(rule="T-13", group="invoices", blame=Blame.CLIENT, culprits=("invoices-worker-2",)),
        act=_killed_for_good,
    ),
    Scenario(
        name="no such topic",
        means="a consumer subscribes to a topic that does not exist",
        fact="its start",
        rule_waits="20 s without partitions",
        expected=ExpectedFinding(rule="A-15", group="reports", blame=Blame.CONFIG, culprits=("reports-worker-1",)),
        act=_no_such_topic,
    ),
    Scenario(
        name="missing right",
        means="a consumer may not read for its group",
        fact="its start",
        rule_waits="refusals over 3 s",
        expected=ExpectedFinding(rule="M-14", group="audit", blame=Blame.CONFIG, culprits=("audit-worker-1",)),
        act=_missing_right,
    ),
    Scenario(
        name="stopped process",
        means="a consumer process gets SIGSTOP, its session expires, then SIGCONT",
        fact="SIGSTOP",
        rule_waits="session timeout 6 s + 2.6 s",
        expected=ExpectedFinding(rule="T-04", group="payments", blame=Blame.CLIENT, culprits=("payments-worker-2",)),
        act=_stopped_process,
    ),
    Scenario(
        name="zombie",
        means="a refused member continues to heartbeat and commit with its old generation",
        fact="the first refusal",
        rule_waits="refusals over 10 s",
        expected=ExpectedFinding(rule="G-01", group="shipping", blame=Blame.CLIENT, culprits=("shipping-worker-1",)),
        act=_zombie,
    ),
    Scenario(
        name="same instance id",
        means="two supervised consumer processes share one group.instance.id",
        fact="the start of the second",
        rule_waits="the return of a fenced one",
        expected=ExpectedFinding(
            rule="S-01", group="inventory", blame=Blame.CONFIG, culprits=("inventory-pod-1", "inventory-pod-2")
        ),
        act=_same_instance,
    ),
    Scenario(
        name="never rejoins",
        means="a member heartbeats but sends no JoinGroup when told to rejoin",
        fact="the request to rejoin",
        rule_waits="half the rebalance timeout, 6 s",
        expected=ExpectedFinding(rule="R-08", group="billing", blame=Blame.CLIENT, culprits=("billing-worker-1",)),
        act=_never_rejoins,
    ),
    Scenario(
        name="leader never syncs",
        means="the leader gets the member list and sends no SyncGroup",
        fact="its election",
        rule_waits="half the rebalance timeout, 6 s",
        expected=ExpectedFinding(rule="R-02", group="search", blame=Blame.CLIENT, culprits=("search-worker-1",)),
        act=_never_syncs,
    ),
    Scenario(
        name="never gives up",
        means="a member of the newer protocol keeps partitions that it is to give up",
        fact="the answer that takes them",
        rule_waits="half the rebalance timeout, 6 s",
        expected=ExpectedFinding(rule="R-14", group="returns", blame=Blame.CLIENT, culprits=("returns-worker-1",)),
        act=_never_gives_up,
    ),
    Scenario(
        name="faulty proxy",
        means=f"a proxy before the broker turns ILLEGAL_GENERATION ({ILLEGAL_GENERATION}) into success",
        fact="the first false answer",
        rule_waits="half a second, for late frames",
        expected=ExpectedFinding(rule="G-02", group="refunds", blame=Blame.BROKER, culprits=("refunds-worker-1",)),
        act=_lying_proxy,
    ),
)

LYING_GROUP: Final = TROUBLES[-1].expected.group

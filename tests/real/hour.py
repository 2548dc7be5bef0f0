"""An hour of an operator's life in twelve minutes: what a webhook is sent while groups run, troubles come, and the monitor's surroundings break.

    python -m tests.real.hour                       # make hour
    python -m tests.real.hour --folder runs/hour    # keeps logs, and what was sent

Twenty groups of five libraries, one broker with TLS and SCRAM that denies by default, two taps, the job and the notifier, each a process
with the user and the rights of docs/kafka-acls.sh. Sessions last 10 s. Ten groups get a trouble each, and five things around the monitor
break. What the webhook is sent is held against what was done: a message is true, false, or sent again about the same trouble.

The exit status is 0 if nothing was false, nothing was sent again, and each trouble was sent.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from confluent_kafka import Producer
from confluent_kafka.admin import ResourceType

from streaming.config.settings import Topics
from streaming.demo.broker import HOST, Broker, free_port
from streaming.kafka.required_rights import MONITOR, NEEDS, NOTIFY, TAP
from tests.certificates import Authority
from tests.conformance.driver import Driver
from tests.conformance.libraries import LIBRARIES
from tests.processes import started
from tests.real.harness import wait_for
from tests.real.monitor_process import MonitorProcess
from tests.real.secured import PASSWORD, Administrator, denying_by_default
from tests.streaming.notify.receiver import Server

SESSION_MS: Final = 10_000
LISTENERS: Final = {"FIRST": "SASL_SSL", "SECOND": "SASL_SSL", "DIRECT": "SASL_SSL"}
"""Two for clients, each behind a tap of its own; one for the monitor."""

GROUPS: Final = {
    "confluent-kafka": ("orders", "stock", "payments", "images"),
    "confluent-kafka-consumer": ("returns", "couriers"),
    "kafka-python": ("billing", "reports", "shipping", "exports"),
    "kafka-clients": ("search", "ledger", "invoices"),
    "kafka-clients-consumer": ("fraud",),
    "franz-go": ("audit", "prices", "loyalty", "catalog"),
    "kafkajs": ("mail", "coupons"),
}
BEHIND_THE_SECOND: Final = {"stock", "reports", "fraud", "audit", "catalog"}
NOT_AT_FIRST: Final = {"exports", "loyalty"}  #: what is wrong with them is wrong from their start
STATIC: Final = {"couriers"}
READY_S: Final = 75.0  #: a number of members is usual after a minute
LAST_S: Final = 75.0  #: for what is found late


class Happening(NamedTuple):
    """Something that was done, and what may be sent of it."""

    at_s: float
    group: str  #: "" for the surroundings, which every group has
    what: str
    rules: frozenset[str]


class Sent(NamedTuple):
    """One notice of a message to the webhook."""

    at_s: float
    event: str  #: open, severity, resolved or over
    severity: str
    rule: str
    group: str
    finding: str  #: its id
    summary: str


class Row(NamedTuple):
    sent: Sent
    cause: Happening | None
    verdict: str  #: true, false or again


def judge(happenings: Sequence[Happening], sent: Sequence[Sent]) -> list[Row]:
    """Hold what was sent against what was done.

    What is sent is false if nothing done before it explains it, and sent again if an earlier message had it. That a finding got more severe
    or is over is as true as its opening.
    """
    rows: list[Row] = []
    opened: dict[str, Row] = {}
    for one in sorted(sent):
        before = opened.get(one.finding)
        if before is not None and one.event in ("severity", "resolved"):
            rows.append(Row(one, before.cause, before.verdict))
            continue
        explains = [
            each for each in happenings if each.group in {"", one.group} and one.rule in each.rules and each.at_s <= one.at_s
        ]
        cause = explains[-1] if explains else None
        again = cause is not None and any(row.cause == cause and row.sent.at_s != one.at_s for row in opened.values())
        opened[one.finding] = Row(one, cause, "false" if cause is None else "again" if again else "true")
        rows.append(opened[one.finding])
    return rows


def unsent(happenings: Sequence[Happening], rows: Sequence[Row]) -> list[Happening]:
    """The troubles of groups of which nothing was sent."""
    return [each for each in happenings if each.group and all(row.cause != each for row in rows)]


def table(rows: Sequence[Row]) -> str:
    """The table in Markdown."""
    lines = ["| sent | message | what was the case | verdict |", "| --- | --- | --- | --- |"]
    for row in rows:
        minutes, seconds = divmod(int(row.sent.at_s), 60)
        event = row.sent.severity if row.sent.event == "open" else f"{row.sent.event} {row.sent.severity}"
        cause = f"{row.cause.what}, {row.sent.at_s - row.cause.at_s:.0f} s before" if row.cause else "nothing"
        text = row.sent.summary.replace("|", "\\|")
        lines.append(f"| {minutes}:{seconds:02} | {event} {row.sent.rule}: {text} | {cause} | {row.verdict} |")
    return "\n".join(lines)


class Place:
    """The broker, the monitor's processes and the clients."""

    def __init__(self, folder: Path, stack: contextlib.ExitStack) -> None:
        self.folder = folder
        self.stack = stack
        self.authority = Authority(folder / "certificates")
        server = self.authority.identity("broker", address=HOST)
        self.tap = self.authority.identity("tap", address=HOST)
        self.fronts = {name: f"{HOST}:{free_port()}" for name in ("FIRST", "SECOND")}
        self.broker = stack.enter_context(
            Broker(
                listeners=LISTENERS,
                advertised=self.fronts,
                properties=denying_by_default(LISTENERS, server, self.authority),
                offsets_partitions=4,
            )
        )
        self.administrator = Administrator(self.broker.internal)
        self.receiver = stack.enter_context(contextlib.closing(Receiver()))
        self.processes: dict[str, contextlib.ExitStack] = {}
        self.clients: dict[str, Driver] = {}
        self.grant_rights()
        self.broker.create_topic(Topics().mirror, 4)
        self.password = folder / "password"
        self.password.write_text(PASSWORD)
        self.password.chmod(0o600)
        self.monitor = MonitorProcess(
            folder,
            self.broker.address("DIRECT"),
            "monitor",
            mirror=Topics().mirror,
            kafka=self.login(f"rebalance-{MONITOR}"),
            topics={key: getattr(Topics(), key) for key in ("findings", "groups", "events", "status", "dead_letters", "quality")},
            model={"silence_ms": 10_000},
            **{"notify.webhook.hour": {"url_file": str(self.receiver.address_in(folder))}},
        )

    # --- the monitor -------------------------------------------------------------------------------------------

    def grant_rights(self) -> None:
        """What docs/kafka-acls.sh grants to the users that run here."""
        for user in (MONITOR, NOTIFY, TAP):
            self.administrator.set_password(f"rebalance-{user}", PASSWORD)
        for need in NEEDS:
            if need.process in (MONITOR, NOTIFY, TAP):
                names = [(ResourceType.TOPIC, getattr(Topics(), key)) for key in need.topics]
                for kind, name in names or [(ResourceType.GROUP, "*"), (ResourceType.TOPIC, "*")]:
                    self.administrator.grant(f"rebalance-{need.process}", need.operation, kind, name)

    def login(self, user: str) -> dict[str, object]:
        return {
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_username": user,
            "sasl_password_file": str(self.password),
            "ssl_ca_file": str(self.authority.certificate),
        }

    def start(self, name: str, command: Sequence[str], **environment: str) -> None:
        """Start one of the monitor's commands; its output goes to a log."""
        life = self.processes[name] = contextlib.ExitStack()
        self.stack.callback(life.close)
        log = life.enter_context((self.folder / f"{name}.log").open("ab"))
        life.enter_context(
            started([sys.executable, "-m", "streaming.cli", *command], stdout=log, stderr=log, env={**os.environ, **environment})
        )

    def kill(self, name: str) -> None:
        """As the kernel does when memory runs out."""
        self.processes.pop(name).close()

    def start_tap(self, name: str) -> None:
        producer = self.folder / "tap.properties"
        login = ("security.protocol=SASL_SSL", "sasl.mechanism=SCRAM-SHA-512", f"sasl.username=rebalance-{TAP}")
        producer.write_text("\n".join([*login, f"sasl.password={PASSWORD}", f"ssl.ca.location={self.authority.certificate}"]))
        producer.chmod(0o600)
        command = ["tap", "--listen", f"{self.fronts[name]}={self.broker.address(name)}"]
        command += ["--bootstrap-server", self.broker.address("DIRECT"), "--producer-config", str(producer)]
        command += ["--tls-certificate", str(self.tap.certificate), "--tls-key", str(self.tap.key)]
        command += ["--broker-ca", str(self.authority.certificate), "--loss-file", str(self.folder / f"{name}.loss")]
        self.start(name, command)

    def start_notifier(self) -> None:
        self.start(
            "notifier",
            ["notify", "--config", str(self.monitor.config)],
            REBALANCE_MONITOR_KAFKA__SASL_USERNAME=f"rebalance-{NOTIFY}",
        )

    # --- the clients -------------------------------------------------------------------------------------------

    def add_group(self, library: str, group: str) -> None:
        """A topic and a user of the same name, who may read it in a group of that name."""
        self.broker.create_topic(group, 4)
        self.administrator.set_password(group, PASSWORD)
        self.administrator.grant(group, "read", ResourceType.TOPIC, group)
        self.administrator.grant(group, "read", ResourceType.GROUP, group)
        if group not in NOT_AT_FIRST:
            for number in (1, 2):
                self.enter(library, group, number)

    def enter(self, library: str, group: str, number: int, **changes: object) -> None:
        """Start a client; one of that number that has ended is started again."""
        chosen = next(one for one in LIBRARIES if one.name == library)
        name = f"{group}-{number}"
        order: dict[str, Any] = {
            "bootstrap": self.fronts["SECOND" if group in BEHIND_THE_SECOND else "FIRST"],
            "user": group,
            "password": PASSWORD,
            "ca": str(self.authority.certificate),
            "group": group,
            "client_id": name,
            "topics": [group],
            "assignor": chosen.assignors[0],
            "commits": "auto",
            "instance_id": name if group in STATIC else None,
            "session_timeout_ms": SESSION_MS,
            "heartbeat_interval_ms": 3_000,
            "rebalance_timeout_ms": 30_000,
            "protocol": chosen.protocol,
            **changes,
        }
        self.clients[name] = Driver(chosen.command(), order, self.folder / f"{name}.log")
        self.stack.callback(self.clients[name].kill)

    def end(self, client: str) -> None:
        """Kill a client; whichever has this name now."""
        self.clients[client].kill()

    def settled(self) -> bool:
        """Whether every client that has entered was assigned something; of libraries that say nothing of it, started."""
        return all(client.count("assigned") for client in self.clients.values())

    @contextlib.contextmanager
    def produced(self) -> Iterator[None]:
        """Records for all topics, past the taps."""
        stop = threading.Event()
        producer = Producer({"bootstrap.servers": self.broker.internal})
        topics = [group for groups in GROUPS.values() for group in groups]

        def produce() -> None:
            while not stop.wait(0.5):
                for topic in topics:
                    producer.produce(topic, b"x" * 100)
                producer.poll(0)

        thread = threading.Thread(target=produce)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()


class Hour:
    """What is done, and when: seconds after all groups are settled."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.happenings: list[Happening] = []
        self.began = 0.0
        self._acts: list[tuple[float, Callable[[], object]]] = []

    def plan(self) -> None:
        place = self.place
        rights = place.administrator
        writes = (f"rebalance-{TAP}", "write", ResourceType.TOPIC, Topics().mirror)
        # Ten troubles, one in each of ten groups.
        self._trouble(0, "shipping", "one of two killed for good", {"T-13"}, lambda: place.end("shipping-2"))
        self._trouble(15, "exports", "a topic misspelt", {"A-15"}, self._misspelt)
        self._trouble(30, "loyalty", "no right to the group", {"M-14"}, self._forbidden)
        self._break(60, "the notifier was killed", {"V-12"}, lambda: place.kill("notifier"))
        self._then(95, place.start_notifier)
        self._trouble(
            100,
            "images",
            "one of two stops polling",
            {"T-05", "T-12", "T-13"},
            lambda: place.clients["images-2"].tell("block", ms=600_000),
        )
        for number in range(4):
            self._then(120 + 15 * number, lambda: place.end("ledger-2"))
            self._then(121 + 15 * number, lambda: place.enter("kafka-clients", "ledger", 2))
        self._happens(150, "ledger", "killed and started again, for the third time", {"M-13"})
        self._break(180, "the second tap was killed", {"V-11"}, lambda: place.kill("SECOND"))
        self._then(210, lambda: place.start_tap("SECOND"))
        self._trouble(250, "payments", "one of two suspended for good", {"T-13"}, place.clients["payments-2"].suspend)
        self._trouble(
            265,
            "invoices",
            "the right to its topic revoked",
            {"O-09"},
            lambda: rights.take("invoices", "read", ResourceType.TOPIC, "invoices"),
        )
        self._break(290, "the taps' right to write was revoked", {"V-03", "V-04"}, lambda: rights.take(*writes))
        self._then(310, lambda: rights.grant(*writes))
        for number in range(3):
            self._then(340 + 12 * number, lambda: place.enter("confluent-kafka-consumer", "couriers", 3, instance_id="couriers-1"))
            self._then(351 + 12 * number, lambda: place.end("couriers-3"))
        self._happens(340, "couriers", "a second process with an instance id in use", {"E-06", "M-14"})
        self._trouble(
            390,
            "coupons",
            "the right to its group revoked",
            {"O-09", "T-13"},  # kafkajs closes its connections at the first Heartbeat that is refused
            lambda: rights.take("coupons", "read", ResourceType.GROUP, "coupons"),
        )
        self._trouble(
            400,
            "catalog",
            "a third one with another assignor",
            {"P-02"},
            lambda: place.enter("franz-go", "catalog", 3, assignor="roundrobin"),
        )
        self._break(430, "the broker was restarted", {"V-03", "C-14"}, place.broker.restart)
        self._break(500, "the taps' certificate was renewed", set(), lambda: place.authority.identity("tap", address=HOST))

    def live(self) -> None:
        """Do it all, and wait for what is found late."""
        self.began = time.monotonic()
        for at_s, act in sorted(self._acts, key=lambda one: one[0]):
            time.sleep(max(0.0, self.began + at_s - time.monotonic()))
            act()
        time.sleep(LAST_S)

    def _happens(self, at_s: float, group: str, what: str, rules: set[str]) -> None:
        self._then(at_s, lambda: self.happenings.append(Happening(time.monotonic() - self.began, group, what, frozenset(rules))))

    def _trouble(self, at_s: float, group: str, what: str, rules: set[str], act: Callable[[], object]) -> None:
        self._happens(at_s, group, what, rules)
        self._then(at_s, act)

    def _break(self, at_s: float, what: str, rules: set[str], act: Callable[[], object]) -> None:
        self._trouble(at_s, "", what, rules, act)

    def _then(self, at_s: float, act: Callable[[], object]) -> None:
        self._acts.append((at_s, act))

    def _misspelt(self) -> None:
        self.place.administrator.grant("exports", "read", ResourceType.TOPIC, "exprots")
        self.place.enter("kafka-python", "exports", 1, topics=["exprots"])

    def _forbidden(self) -> None:
        self.place.administrator.take("loyalty", "read", ResourceType.GROUP, "loyalty")
        self.place.enter("franz-go", "loyalty", 1)


class Receiver(Server):
    """The webhook."""

    def address_in(self, folder: Path) -> Path:
        file = folder / "webhook"
        file.write_text(self.url)
        file.chmod(0o600)
        return file

    def sent(self, began: float) -> list[Sent]:
        """Every notice so far, repeated ones too."""
        return [
            Sent(
                at_s - began,
                notice["event"],
                notice["severity"],
                notice["finding"]["rule"],
                notice["finding"]["group"],
                notice["finding"]["id"],
                notice["finding"]["summary"],
            )
            for at_s, (_, body) in zip(self.times, self.seen, strict=False)
            for notice in json.loads(body)["notices"]
        ]


def live(folder: Path) -> tuple[list[Happening], list[Sent]]:
    """Set it all up, live through the hour, and return what was done and what was sent."""
    with contextlib.ExitStack() as stack:
        place = Place(folder, stack)
        for name in place.fronts:
            place.start_tap(name)
        place.monitor.start()
        stack.callback(place.monitor.kill)
        place.monitor.wait_until_said("watching")
        place.start_notifier()
        for library, groups in GROUPS.items():
            for group in groups:
                place.add_group(library, group)
        stack.enter_context(place.produced())
        wait_for(place.settled, "every client is assigned something")
        print(f"{len(place.clients)} clients are settled", file=sys.stderr, flush=True)
        time.sleep(READY_S)
        hour = Hour(place)
        hour.plan()
        hour.live()
        sent = place.receiver.sent(hour.began)
    (folder / "sent.json").write_text(json.dumps([hour.happenings, sent], default=list))
    return hour.happenings, sent


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="where logs and what was sent go; by default a temporary one")
    folder = parser.parse_args().folder or Path(tempfile.mkdtemp(prefix="rebalance-monitor-hour-"))
    folder.mkdir(parents=True, exist_ok=True)
    happenings, sent = live(folder)
    rows = judge(happenings, sent)
    print(table(rows))
    silent = unsent(happenings, rows)
    for one in silent:
        print(f"nothing was sent of group {one.group}: {one.what}")
    print(f"logs and what was sent: {folder}", file=sys.stderr)
    return int(bool(silent) or any(row.verdict != "true" for row in rows))


if __name__ == "__main__":
    sys.exit(main())

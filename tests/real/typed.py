"""Types every command of documents as it stands there, on a host of its own beside a Kafka with TLS, SCRAM and rights denied by default.

    unshare --map-root-user --mount --net --pid --fork --kill-child --mount-proc .venv/bin/python -m tests.real.typed docs/rights.md docs/deploying.md

The namespaces give the host its own ports, names and folders: a broker at the names and ports that documents use, ``/opt/rebalance-monitor``,
``/etc/rebalance-monitor``, ``/var/lib``. Brokers have IPv6 addresses there, so that a tap can take the port of one for every IPv4 address.
Each document is typed into a shell of its own, in one folder that looks like a checkout. A command that lasts is ended by Ctrl-C once it
has said what it should. What cannot be run here is left to the test that does (:data:`ELSEWHERE`).

Prints a JSON list: document, command, and what came of it, which is ``as expected`` or what was said instead.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from coordinator_model.wire.record import MirrorRecord
from streaming.demo.broker import Broker
from streaming.kafka.required_rights import MONITOR, NOTIFY, RECORD, TAP, VERIFY, VIEW
from streaming.spark import jvm
from tests.certificates import Authority
from tests.processes import below, end
from tests.real import units
from tests.real.harness import running_tap, wait_for
from tests.real.secured import Administrator, denying_by_default
from tests.streaming.notify.receiver import Server

ROOT: Final = Path(__file__).parents[2]
BROKER: Final = "fd00::1"
NAMES: Final = ("kafka", "kafka-1", "broker1.example", "watched", "bootstrap.example", "monitor-kafka")
PORTS: Final = {9092: "DIRECT", 9093: "CLIENTS", 9094: "DIRECT", 9096: "CLIENTS"}
PASSWORD: Final = "…"  # as documents write it
USERS: Final = {process: f"rebalance-{process}" for process in (NOTIFY, TAP, RECORD, VERIFY, VIEW)} | {MONITOR: "rebalance-monitor"}
ENDS_S: Final = 240.0  # for a machine that is busy enough; what comes is waited for no longer

ELSEWHERE: Final = {
    "python3 -m venv": "tests/release.py",
    "/opt/rebalance-monitor/bin/pip": "tests/release.py",
    "docker": "tests/deploy/image.py",
    "kubectl": "tests/deploy/test_chart.py",
    "helm": "tests/deploy/test_chart.py",
    "spark-submit": "tests/real/cluster.py",
}
"""How a command begins that is not run here, and the test that runs it or what stands for it."""


class Lasting(NamedTuple):
    """What a command that lasts says before it is ended, what at its end, and its exit status."""

    says: str
    at_last: str = ""
    status: str = "0"  #: a pattern


LASTING: Final = {
    r"rebalance-monitor tap\b.*--producer-config": Lasting("listening on", r"stopped; [1-9]\d* records written, 0 lost"),
    # The mirror wants a login, the command has none: the tap says which option gives it, and serves clients.
    r"rebalance-monitor tap\b": Lasting("--producer-config", "stopped; 0 records written", "[02]"),
    r"rebalance-monitor run\b": Lasting("watching"),
    r"rebalance-monitor notify --config \S+$": Lasting("open findings in"),
    r"journalctl -fu rebalance-monitor$": Lasting("watching", status="130"),
}

SERVICES: Final = {
    "rebalance-monitor": Lasting("watching"),
    "rebalance-monitor-tap": LASTING[r"rebalance-monitor tap\b.*--producer-config"],
    "rebalance-monitor-notify": Lasting("open findings in"),
    "rebalance-monitor-web": Lasting("the page is at"),
}


class Nowhere:
    def write(self, record: MirrorRecord) -> None: ...


def commands_of(document: Path) -> list[str]:
    """Each command of its blocks for a shell, those in the sessions that it shows included; lines that go on are one command."""
    text = document.read_text(encoding="utf-8")
    blocks = re.findall(r"^ *```sh\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL)
    blocks += [block for block in re.findall(r"((?:^ {4,}\S.*\n)+)", text, re.MULTILINE) if block.split()[0] == "rebalance-monitor"]
    blocks += re.findall(r"^\$ (.*\n)", text, re.MULTILINE)
    found: list[str] = []
    for block in blocks:
        lines = iter(textwrap.dedent(block).splitlines())
        for line in lines:
            command = line
            while command.endswith("\\"):
                command += "\n" + next(lines)
            if here := re.search(r"<<'(\w+)'", command):
                while command.splitlines()[-1] != here[1]:
                    command += "\n" + next(lines)
            if command.strip() and not command.startswith("#"):
                found.append(command)
    return found


class Host:
    """The operator's host: what is on it before the first document."""

    def __init__(self, folder: Path, broker: Broker, authority: Authority) -> None:
        self.work = folder / "checkout"
        self.bin = folder / "bin"
        self.broker = broker
        self.authority = authority
        self.units: dict[str, subprocess.Popen[bytes]] = {}
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("REBALANCE_MONITOR_")},
            "PATH": os.pathsep.join([str(self.bin), str(Path(sys.executable).parent), os.environ["PATH"]]),
            "SSL_CERT_FILE": str(authority.certificate),
            "KAFKA_ACLS": "kafka-acls",
            "COLUMNS": "200",
        }

    def furnish(self) -> None:
        """Give it its folders, files and names."""
        for name in ("docs", "deploy", "streaming", "coordinator_model", "requirements.lock"):
            (self.work / name).parent.mkdir(parents=True, exist_ok=True)
            (self.work / name).symlink_to(ROOT / name)
        self.bin.mkdir()
        for name, module in (
            ("kafka-acls", "tests.real.grant"),
            ("systemctl", "tests.real.units"),
            ("journalctl", "tests.real.units"),
        ):
            self._program(
                name, f'PYTHONPATH="{ROOT}" exec "{sys.executable}" -m {module} {name if module == "tests.real.units" else ""} "$@"'
            )
        for name in ("useradd", "chown"):  # a namespace has one user
            self._program(name, "exit 0")
        here = Path("/opt/rebalance-monitor")
        here.mkdir()
        (here / "bin").symlink_to(Path(sys.executable).parent)
        units = here / "share" / "rebalance-monitor" / "systemd"
        units.parent.mkdir(parents=True)
        units.symlink_to(ROOT / "deploy" / "systemd")
        Path("/var/cache/rebalance-monitor").symlink_to(jvm.cache_folder().parent)
        Path("/etc/rebalance-monitor").mkdir()
        shutil.copy(self.authority.certificate, "/etc/rebalance-monitor/ca.pem")
        shutil.copy(self.authority.certificate, self.work / "ca.pem")
        tap = self.authority.identity("tap", hosts=("tap1.example", "broker-1.tap.example"))
        shutil.copy(tap.certificate, self.work / "tap.pem")
        shutil.copy(tap.key, self.work / "tap.key")
        for name in ("notify.password", "view.password"):
            (self.work / name).write_text(PASSWORD)
            (self.work / name).chmod(0o600)
        self.edit(self.work / "monitor.toml")
        self.edit(self.work / "rebalance-monitor.toml")
        admin = {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": "admin",
            "sasl.password": PASSWORD,
        }
        admin["ssl.ca.location"] = str(self.authority.certificate)
        (self.work / "admin.properties").write_text("".join(f"{key}={value}\n" for key, value in admin.items()))

    def mirrored(self) -> int:
        """How many records the mirror topic has."""
        reader = Consumer({"bootstrap.servers": self.broker.internal, "group.id": "unused"})
        try:
            partitions = reader.list_topics("rebalance-mirror", timeout=30).topics["rebalance-mirror"].partitions
            ends = [reader.get_watermark_offsets(TopicPartition("rebalance-mirror", one), timeout=30)[1] for one in partitions]
            return sum(ends)
        finally:
            reader.close()

    def edit(self, config: Path) -> None:
        """Set what an operator has to: where Kafka is, and how to log in; and a receiver of alerts."""
        password = config.with_name("kafka.password")
        password.write_text(PASSWORD)
        password.chmod(0o600)
        given = {
            "bootstrap_servers": "kafka-1:9094",
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_username": USERS[MONITOR],
            "sasl_password_file": str(password),
            "ssl_ca_file": "/etc/rebalance-monitor/ca.pem",
            "reach_timeout_s": 60,
        }
        sections = {"kafka": given, "notify.alertmanager.main": {"url": "http://localhost:9093"}, "lag": {"enabled": True}}
        sections["metrics"] = {"enabled": True}
        config.write_text(
            'cluster = "prod"\n'
            + "".join(
                f"[{section}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in keys.items())
                for section, keys in sections.items()
            )
        )

    def _program(self, name: str, text: str) -> None:
        (self.bin / name).write_text(f"#!/bin/sh\n{text}\n")
        (self.bin / name).chmod(0o755)


class Shell:
    """Where commands are typed, one after the other."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.said = tempfile.NamedTemporaryFile("w+", suffix=".said", delete=False)  # noqa: SIM115 - it lasts as long as the shell
        self.process = subprocess.Popen(
            ["bash"],
            stdin=subprocess.PIPE,
            stdout=self.said,
            stderr=subprocess.STDOUT,
            cwd=host.work,
            env=host.environment,
            text=True,
        )
        self.begun = 0

    def type(self, command: str) -> str:
        """Type a command, end it by Ctrl-C if it lasts, and return what came of it."""
        assert self.process.stdin is not None
        self.begun = len(self._all())
        self.process.stdin.write(f"{command}\necho 'exit status '$?\n")
        self.process.stdin.flush()
        flat = command.replace("\\\n", " ")
        lasting = next((lasting for pattern, lasting in LASTING.items() if re.search(pattern, flat)), None)
        try:
            if lasting is not None:
                wait_for(lambda: self._has_said(lasting.says) or self._status(), lasting.says, ENDS_S)
                if " tap " in flat and not self._status():
                    self._serves(flat)
                if "--producer-config" in flat:
                    before = self.host.mirrored()
                    wait_for(lambda: self.host.mirrored() > before, "records come to the mirror topic", ENDS_S)
                self._interrupt()
            wait_for(self._status, "its end", ENDS_S)
        except (AssertionError, KafkaException) as error:
            self._interrupt()
            wait_for(self._status, "its end", ENDS_S)
            return f"{error}\n{self._words()}"
        says, at_last, status = lasting or Lasting("")
        as_expected = self._has_said(says) and self._has_said(at_last) and re.fullmatch(status, self._status() or "")
        return "as expected" if as_expected else self._words()

    def _status(self) -> str | None:
        """The exit status, once the command has ended."""
        found = re.search(r"^exit status (\d+)$", self._words(), re.MULTILINE)
        return found and found[1]

    def _has_said(self, words: str) -> bool:
        return re.search(words, self._words()) is not None

    def _serves(self, command: str) -> None:
        """A client logs in through the tap."""
        words = shlex.split(command)
        port = words[words.index("--listen") + 1].partition("=")[0].rpartition(":")[2]
        plain = "--broker-tls" in words and "--tls-certificate" not in words
        client = {
            "bootstrap.servers": f"tap1.example:{port}",
            "security.protocol": "SASL_PLAINTEXT" if plain else "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": USERS[VIEW],
            "sasl.password": PASSWORD,
        } | ({} if plain else {"ssl.ca.location": str(self.host.authority.certificate)})
        # Where the tap has another port than the broker advertises, which is 9092 here, that leads to the tap, too.
        with running_tap([f"127.0.0.1:9092=127.0.0.1:{port}"], Nowhere()) if port == "9093" else contextlib.nullcontext():
            assert AdminClient(client).list_topics(timeout=30).brokers

    def _interrupt(self) -> None:
        for process in below(self.process.pid):
            if process.ppid() == self.process.pid:
                process.send_signal(signal.SIGINT)

    def _words(self) -> str:
        return self._all()[self.begun :]

    def _all(self) -> str:
        return Path(self.said.name).read_text()

    def close(self) -> None:
        end([*below(self.process.pid), self.process.pid])
        self.process.wait()
        Path(self.said.name).unlink()


def _folders() -> None:
    """Folders of the host that hide the machine's own."""
    for folder in ("/opt", "/var/lib", "/var/cache", "/run"):
        subprocess.run(["mount", "-t", "tmpfs", "none", folder], check=True)
    with tempfile.TemporaryDirectory() as kept:
        subprocess.run(
            ["cp", "-a", "/etc/.", kept], check=False, stderr=subprocess.DEVNULL
        )  # what others may not read is not needed
        subprocess.run(["mount", "-t", "tmpfs", "none", "/etc"], check=True)
        subprocess.run(["cp", "-a", f"{kept}/.", "/etc"], check=True)
    Path("/etc/systemd/system").mkdir(parents=True, exist_ok=True)
    hosts = [f"127.0.0.1 localhost {socket.gethostname()} tap1.example broker-1.tap.example"]
    Path("/etc/hosts").write_text("\n".join([*hosts, *(f"{BROKER} {name}" for name in NAMES)]) + "\n")


@contextlib.contextmanager
def kafka(folder: Path) -> Iterator[tuple[Broker, Authority]]:
    """The broker, at the names and ports of the documents, and its users."""
    authority = Authority(folder / "certificates")
    listeners = {"DIRECT": "SASL_SSL", "CLIENTS": "SASL_SSL"}
    server = authority.identity("broker", address="127.0.0.1", hosts=(*NAMES, "tap1.example", "localhost"))
    properties = denying_by_default(listeners, server, authority)
    advertised = {"DIRECT": "broker1.example:9094", "CLIENTS": "tap1.example:9092"}
    with Broker(listeners=listeners, advertised=advertised, properties=properties, heap_mib=256) as broker:
        ways = [f"[{BROKER}]:{port}={broker.address(name)}" for port, name in PORTS.items()]
        with running_tap(ways, Nowhere()):
            administrator = Administrator(broker.internal)
            for user in (*USERS.values(), "admin", "alice", "carol"):
                administrator.set_password(user, PASSWORD)
            yield broker, authority


def main(documents: list[str]) -> None:
    # What a shell starts in the background ignores Ctrl-C, as do its children.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for address in (BROKER, "10.0.0.1"):  # a host without an address beside 127.0.0.1 resolves no name to one (AI_ADDRCONFIG)
        subprocess.run(["ip", "address", "add", address, "dev", "lo"], check=True)
    _folders()
    logging.disable(logging.WARNING)  # of the ways to the broker: what is encrypted passes them unread
    outcomes: list[tuple[str, str, str]] = []
    folder = Path(tempfile.mkdtemp())
    with kafka(folder) as (broker, authority):
        host = Host(folder, broker, authority)
        host.furnish()
        for document in documents:
            with _beside(document, broker):
                shell = Shell(host)
                try:
                    for command in commands_of(ROOT / document):
                        began = time.monotonic()
                        outcomes.append((document, command, _outcome(host, shell, command)))
                        print(f"{time.monotonic() - began:5.1f} s  {command}: {outcomes[-1][2]}", file=sys.stderr, flush=True)
                finally:
                    shell.close()
                    outcomes += [(document, name, said) for name, said in _ended().items()]
    shutil.rmtree(folder)
    print(json.dumps(outcomes))


def _beside(document: str, broker: Broker) -> contextlib.AbstractContextManager[object]:
    """What the operator of a document has on this host: an Alertmanager, or the broker itself."""
    if document == "docs/alerting.md":
        return contextlib.closing(Server(9093))
    if document == "docs/deploying.md":
        return running_tap([f"127.0.0.1:{port}={broker.address(PORTS[port])}" for port in (9093, 9094)], Nowhere())
    return contextlib.nullcontext()


def _outcome(host: Host, shell: Shell, command: str) -> str:
    for begins, test in ELSEWHERE.items():
        if command.startswith(begins):
            return test
    outcome = shell.type(command)
    if command.startswith("systemctl enable"):
        with contextlib.suppress(AssertionError):
            wait_for(lambda: not _silent(), "all services work", ENDS_S)
        outcome = "".join(f"{name}: {units.log_of(name)}" for name in _silent()) or outcome
    if command.startswith("cp deploy/rebalance-monitor.toml"):
        host.edit(Path(shlex.split(command, comments=True)[-1]))
    return outcome


def _silent() -> list[str]:
    """The services that have not said that they work."""
    return [name for name, one in SERVICES.items() if not re.search(one.says, units.log_of(name))]


def _ended() -> dict[str, str]:
    """End the services that run, and return what came of each."""
    return {
        name: "as expected" if re.search(SERVICES[name].at_last, units.log_of(name)) else units.log_of(name)
        for name in units.stop()
    }


if __name__ == "__main__":
    main(sys.argv[1:])

"""Workers of Kafka Connect, each a process of its own, and what an operator does to them."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from streaming.demo.broker import HOST, free_port
from streaming.spark import jvm
from tests.real.harness import wait_for

JARS = Path(__file__).parent / "ivy-connect.xml"
OPTIONS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
START_UP_S = 120.0
REBALANCE_DELAY_MS = 3_000  #: until the work of a worker that went away is given to others

_CONVERTER = "org.apache.kafka.connect.storage.StringConverter"


def class_path() -> str:
    """Where Connect is; skip the test where it cannot be had."""
    try:
        return ":".join(map(str, jvm.jars("connect", ivy_file=JARS)))
    except jvm.JvmError as error:
        pytest.skip(str(error))


class Worker:
    """One worker; it runs from :meth:`start` to :meth:`stop` or :meth:`kill`.

    :param configs: its ``config.storage.topic``.
    :param advertised_port: at which it says that it is reached, if that is not where it listens.
    """

    def __init__(
        self, folder: Path, number: int, bootstrap: str, *, group: str, configs: str = "configs", advertised_port: int = 0
    ) -> None:
        self.name = f"worker-{number}"
        self.url = f"http://{HOST}:{free_port()}"
        self.log = folder / f"{self.name}.log"
        self._properties = folder / f"{self.name}.properties"
        self._lines = folder / "lines"
        self._lines.write_text("one\ntwo\n")
        values: dict[str, str | int] = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "client.id": self.name,
            "listeners": self.url,
            "key.converter": _CONVERTER,
            "value.converter": _CONVERTER,
            "plugin.discovery": "service_load",
            "scheduled.rebalance.max.delay.ms": REBALANCE_DELAY_MS,
            "offset.storage.partitions": 1,
            "status.storage.partitions": 1,
            "config.storage.topic": configs,
            "offset.storage.topic": f"{configs}-offsets",
            "status.storage.topic": f"{configs}-status",
            **{f"{kind}.storage.replication.factor": 1 for kind in ("config", "offset", "status")},
        }
        if advertised_port:
            values["rest.advertised.port"] = advertised_port
        self._properties.write_text("".join(f"{key}={value}\n" for key, value in values.items()))

    def start(self) -> Self:
        self._log_begins = self.log.stat().st_size if self.log.exists() else 0
        command = [jvm.java_command(), *OPTIONS, "-cp", class_path(), "org.apache.kafka.connect.cli.ConnectDistributed"]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen([*command, str(self._properties)], stdout=log, stderr=log)
        wait_for(self._answers, f"{self.name} has started", START_UP_S)
        return self

    def works(self) -> bool:
        """True if it was assigned its work since it was started last."""
        with self.log.open("rb") as log:
            log.seek(self._log_begins)
            return b"Finished starting connectors and tasks" in log.read()

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(60)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def configure(self, connector: str, tasks: int) -> None:
        """Make a connector, or change it."""
        config = {"connector.class": "FileStreamSource", "tasks.max": tasks, "file": str(self._lines), "topic": "orders"}
        wait_for(lambda: self._call("PUT", f"connectors/{connector}/config", config), f"{connector} is configured", START_UP_S)

    def delete(self, connector: str) -> None:
        wait_for(lambda: self._call("DELETE", f"connectors/{connector}"), f"{connector} is deleted", START_UP_S)

    def runs(self, connector: str) -> bool:
        """True if the connector and a task of it run somewhere."""
        status = self._call("GET", f"connectors/{connector}/status") or {}
        states = [status.get("connector", {}), *status.get("tasks", ())]
        return len(states) > 1 and all(one.get("state") == "RUNNING" for one in states)

    def _answers(self) -> bool:
        assert self._process.poll() is None, f"{self.name} ended: {self.log.read_text()[-2_000:]}"
        with contextlib.suppress(OSError):
            return bool(urllib.request.urlopen(self.url, timeout=5))
        return False

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        """Answer of the REST interface; None while the worker rebalances, or does not know its leader."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/{path}", data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return json.loads(answer.read() or b"true")
        except (urllib.error.HTTPError, OSError):
            return None


def live_as_one_cluster(first: Worker, second: Worker, third: Worker) -> None:
    """Make, change and delete connectors, restart the workers one by one, and kill one."""
    for worker in (first, second, third):
        wait_for(worker.works, f"{worker.name} works")
    for number in (1, 2, 3):
        first.configure(f"files-{number}", number)
    for tasks in (2, 3, 1):
        second.configure("files-1", tasks)
    wait_for(lambda: third.runs("files-1"), "the connector runs")
    for worker in (second, third, first):
        worker.stop()
        wait_for(worker.start().works, f"{worker.name} works again")
    second.delete("files-2")
    third.kill()
    third.start()
    first.configure("files-4", 1)
    wait_for(lambda: third.runs("files-4"), "the new connector runs")
    time.sleep(2 * REBALANCE_DELAY_MS / 1_000)  # nothing more is to come


@contextlib.contextmanager
def running(*workers: Worker) -> Iterator[None]:
    """Start workers one after the other, the first of which leads, and stop them in the end."""
    started: list[Worker] = []
    try:
        for worker in workers:
            started.append(worker)
            worker.start()
        yield
    finally:
        for worker in started:
            worker.kill()

"""A Spark standalone cluster on loopback, and the monitor submitted to it: killed part by part, it finds what a local run finds.

    python -m tests.real.cluster [--kills 4]

A master and two workers with work folders of their own. A second monitor is turned away. Under live traffic an executor, a worker and the
driver are killed by SIGKILL in turn; a driver is submitted again. In the end a monitor on one machine reads the same mirror topic. Compared
are the ids of the findings and their final status, the groups, the events, and the positions in the checkpoint; the findings also with
those of the model alone.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import pyspark

from streaming.demo.broker import HOST, Broker, free_port
from streaming.spark import jvm
from streaming.spark.session import connector_jars
from tests.processes import below, lives
from tests.real.feeder import Feeder, ends_of, models_of
from tests.real.harness import raw_topic
from tests.real.kills import without_moments
from tests.real.monitor_process import MonitorProcess

SPARK_HOME: Final = Path(pyspark.__file__).parent
APPLICATION: Final = Path(__file__).parents[2] / "deploy" / "rebalance_monitor.py"
PARTITIONS: Final = 4
LANES: Final = 2
WORKERS: Final = 2
CONF: Final = {"spark.executor.cores": "1", "spark.executor.memory": "512m"}
VICTIMS: Final = ("executor", "worker", "driver")
_EXECUTOR: Final = r"CoarseGrainedExecutorBackend"


class Cluster:
    """A context manager: a master and its workers, each a JVM.

    :param folder: of logs, and of a work folder for each worker.
    """

    def __init__(self, folder: Path, *, cores: int = 2) -> None:
        self._folder = folder
        self._cores = cores
        self._port = free_port()
        self._master: subprocess.Popen[bytes] | None = None
        self._workers: list[subprocess.Popen[bytes]] = []

    @property
    def url(self) -> str:
        return f"spark://{HOST}:{self._port}"

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True)
        self._master = self._start("master", "master.Master", "--port", str(self._port))
        for _ in range(WORKERS):
            self.add_worker()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self._master is not None
        for process in (*self._workers, self._master):
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            process.wait()

    def add_worker(self) -> None:
        number = len(self._workers)
        work = self._folder / f"work-{number}"
        options = ("--cores", str(self._cores), "--memory", "2g", "--work-dir", str(work), self.url)
        self._workers.append(self._start(f"worker-{number}", "worker.Worker", *options))

    def _start(self, name: str, what: str, *options: str) -> subprocess.Popen[bytes]:
        command = [str(SPARK_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{what}", "--host", HOST, "--webui-port", "0"]
        foreign = ("SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_GATEWAY_PORT")
        environment = {name: value for name, value in os.environ.items() if name not in foreign}
        environment |= {"JAVA_HOME": str(jvm.java_home()), "SPARK_LOCAL_IP": HOST, "SPARK_DAEMON_MEMORY": "256m"}
        with (self._folder / f"{name}.log").open("wb") as log:
            return subprocess.Popen([*command, *options], env=environment, stdout=log, stderr=subprocess.STDOUT)

    def executors(self) -> list[int]:
        """Process ids of the executors that live, on all workers."""
        found = [process.pid for worker in self._workers for process in below(worker.pid, _EXECUTOR)]
        return [pid for pid in found if lives(pid)]

    def kill_executor(self) -> None:
        os.kill(self.executors()[0], signal.SIGKILL)

    def kill_worker(self) -> None:
        """The first that has an executor: that ends with it."""
        worker = next(worker for worker in self._workers if below(worker.pid, _EXECUTOR))
        worker.kill()
        worker.wait()


class Submitted(MonitorProcess):
    """A monitor that ``spark-submit`` starts, in client mode: its driver is the JVM, and Python a child of that."""

    master = ""

    @property
    def command(self) -> list[str]:
        options = ["--master", self.master, "--jars", ",".join(map(str, connector_jars())), "--driver-memory", "1g"]
        for name, value in CONF.items():
            options += ["--conf", f"{name}={value}"]
        environment = ["env", f"PYSPARK_PYTHON={sys.executable}", f"SPARK_LOCAL_IP={HOST}", f"JAVA_HOME={jvm.java_home()}"]
        return [
            *environment,
            str(SPARK_HOME / "bin" / "spark-submit"),
            *options,
            str(APPLICATION),
            "run",
            "--config",
            str(self.config),
        ]

    def stop(self) -> int:
        """Ask the Python for it; the JVM ends when that has."""
        assert self.process is not None
        os.kill(self._one(rf"{APPLICATION.name} run"), signal.SIGTERM)
        return self.process.wait(60)


class Outcome(dict[str, Any]):
    """What is to be equal, by what it is."""

    @classmethod
    def of(cls, monitor: MonitorProcess) -> Self:
        return cls(
            findings=monitor.model_findings(),
            groups={key: without_moments(value) for key, value in monitor.topic("groups").items()},
            events=monitor.events(),
            positions=monitor.positions(),
        )


def kinds_of_kills(cluster: Cluster, monitor: MonitorProcess) -> dict[str, Callable[[], object]]:
    """What is done to the job, by what is said of it."""

    def restart_driver() -> None:
        monitor.kill()
        monitor.start()

    def lose_worker() -> None:
        cluster.kill_worker()
        cluster.add_worker()

    return {"executor": cluster.kill_executor, "worker": lose_worker, "driver": restart_driver}


def run(folder: Path, broker: Broker, *, kills: list[str], tell: Callable[[str], None] = lambda _: None) -> list[str]:
    """Do all of it on a broker that runs; gives what is not as it should be."""
    topic = "cluster"
    broker.create_topic(topic, PARTITIONS)
    sections: dict[str, dict[str, object]] = {"job": {"lanes": LANES, "trigger_ms": 100}, "quality": {"enabled": False}}
    feeder = Feeder(broker.internal, topic, PARTITIONS).start()
    with Cluster(folder / "cluster") as cluster:
        monitor = Submitted(folder, broker.internal, "submitted", mirror=topic, **sections)
        monitor.master = cluster.url
        try:
            began = time.monotonic()
            monitor.start().wait_until_said("starting Spark")  # it holds the checkpoint by now
            with subprocess.Popen(monitor.command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as second:
                wait_until_read_further(monitor)
                said = second.communicate()[0]
            if second.returncode == 0 or "another monitor is running on the checkpoint" not in said:
                return [f"a second one was not turned away: {said}"]
            tell(f"submitted to {cluster.url}; first batches after {time.monotonic() - began:.0f} s")
            for name in kills:
                began = time.monotonic()
                kinds_of_kills(cluster, monitor)[name]()
                wait_until_read_further(monitor)
                tell(f"killed the {name}: every partition is read again after {time.monotonic() - began:.0f} s")
            return differences(folder, monitor, feeder, tell, **sections)
        finally:
            feeder.stop()
            monitor.kill()


def differences(
    folder: Path, monitor: MonitorProcess, feeder: Feeder, tell: Callable[[str], None], **sections: dict[str, object]
) -> list[str]:
    """Let the monitor read all that there is, and another one on this machine do the same; gives what is not as it should be."""
    feeder.stop()
    broker, topic = feeder.bootstrap, feeder.topic
    ends = ends_of(broker, topic)
    monitor.wait_until_read(ends)
    if (status := monitor.stop()) != 0:
        return [f"it ended with {status}: {''.join(monitor.said)}"]
    local = MonitorProcess(folder, broker, "local", mirror=topic, **sections).start()
    try:
        local.wait_until_read(ends)
        assert local.stop() == 0
    finally:
        local.kill()
    found, wanted = Outcome.of(monitor), Outcome.of(local)
    _, alone = models_of(raw_topic(broker, topic), topic, PARTITIONS)
    tell(f"{sum(ends.values()):,} records, {len(found['findings'])} findings, {len(found['groups'])} groups")
    wrong = [f"{what}: {found[what]!r:.500} instead of {wanted[what]!r:.500}" for what in wanted if found[what] != wanted[what]]
    if wanted["findings"] != alone or len(alone) < 10:
        wrong.append(f"findings of the model alone: {alone!r:.500}")
    return wrong


def wait_until_read_further(monitor: MonitorProcess) -> None:
    for _ in range(2):  # the first may have been under way
        monitor.wait_until_read_further(PARTITIONS)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=4, help="how many, of executors, workers and the driver in turn")
    kills = list(itertools.islice(itertools.cycle(VICTIMS), parser.parse_args().kills))
    with Broker() as broker, tempfile.TemporaryDirectory() as folder:
        wrong = run(Path(folder), broker, kills=kills, tell=lambda said: print(said, flush=True))
    print("\n".join(wrong) or "equal to a local run")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

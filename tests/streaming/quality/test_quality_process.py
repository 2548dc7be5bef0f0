"""The process of the quality checks and the driver, when one of them dies. What it does with a broker is in ``tests/real``."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest

from streaming.config.settings import ConfigError, Job, Kafka, MonitorConfig, Quality
from streaming.quality.process import QualityProcess
from streaming.quality.worker import NICENESS
from tests import processes
from tests.processes import lives, started
from tests.real import harness

WAIT_S = 120
wait_for = partial(harness.wait_for, timeout_s=WAIT_S)


@pytest.fixture
def config(tmp_path):
    """A Kafka that is not there: the child waits for it for as long as a test may take."""
    return MonitorConfig(
        kafka=Kafka(bootstrap_servers="127.0.0.1:1", reach_timeout_s=600),
        job=Job(checkpoint=tmp_path / "checkpoint", log_file=tmp_path / "log"),
        quality=Quality(docs=tmp_path / "docs"),
    )


def children(parent):
    """Process id and niceness of the quality checks under a process."""
    return {process.pid: process.nice() for process in processes.below(parent, r"streaming\.quality\.worker") if lives(process.pid)}


class Batch(threading.Thread):
    """One that is being checked; it cannot be, for Kafka is not there."""

    def __init__(self, checks):
        super().__init__(daemon=True)
        self._checks = checks
        self.said = ""
        self.start()

    def run(self):
        try:
            self._checks.check(b"", 0)
        except RuntimeError as error:
            self.said = str(error)

    def outcome(self):
        self.join(WAIT_S)
        return self.said


@pytest.fixture
def checks(config):
    apart = QualityProcess(config)
    yield apart
    apart.close()


def test_the_whole_process_gives_way_and_one_that_dies_is_a_sentence_and_replaced(config, checks):
    assert children(os.getpid()) == {}  # before there is anything to check
    first = Batch(checks)
    lowered = min(19, os.getpriority(os.PRIO_PROCESS, os.getpid()) + NICENESS)
    (pid,) = wait_for(lambda: [pid for pid, niceness in children(os.getpid()).items() if niceness == lowered], "it is niced")
    os.kill(pid, signal.SIGKILL)
    log = config.job.quality_log
    killed = "was ended by signal 9 (Killed), as the system does when memory runs out"
    assert first.outcome() == f"the process of the quality checks {killed}; see {log}"
    second = Batch(checks)
    (another,) = wait_for(lambda: children(os.getpid()), "there is another one")
    assert another != pid
    with checks.closing(10 * WAIT_S):  # it does not take as long: there is nothing in hand before it is ready
        assert second.outcome() == (
            "the process of the quality checks was ended by the monitor, which stops; the batch in hand is checked at the next start"
        )
    assert children(os.getpid()) == {}


def test_it_ends_when_the_driver_is_killed(config, tmp_path):
    file = tmp_path / "driver.py"
    file.write_text(
        "import pickle, sys\n"
        "from pathlib import Path\n"
        "from streaming.quality.process import QualityProcess\n"
        "QualityProcess(pickle.loads(Path(sys.argv[1]).read_bytes())).check(b'', 0)\n"
    )
    handed_over = tmp_path / "config"
    handed_over.write_bytes(pickle.dumps(config))
    with started([sys.executable, str(file), str(handed_over)]) as driver:
        (pid,) = wait_for(lambda: children(driver.pid), "the driver has started it")
        driver.kill()
    try:
        wait_for(lambda: not lives(pid), "it ends")
    finally:
        processes.end([pid])


def test_a_file_that_is_no_suite_is_refused_without_a_process(config, tmp_path):
    file = tmp_path / "own.json"
    file.write_text("[]")
    with pytest.raises(ConfigError, match="is not a suite"):
        QualityProcess(config.model_copy(update={"quality": Quality(suite=file)}))
    assert children(os.getpid()) == {}


def test_great_expectations_stays_out_of_the_driver(tmp_path):
    """Half of its memory would be that."""
    file = tmp_path / "driver.py"  # pyspark takes a process without a file for its own tests
    file.write_text("import sys, streaming.spark.monitor, streaming.commands.run\nassert 'great_expectations' not in sys.modules\n")
    subprocess.run([sys.executable, str(file)], check=True, cwd=Path(__file__).parents[3])

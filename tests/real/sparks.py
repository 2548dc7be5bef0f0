"""The job under other releases of Spark, each in an environment of its own.

    python -m tests.real.sparks [3.5.9 4.0.5 …] [--only story,cluster,upgrade,bench]

Under each, the tests of the job that tell a whole story: findings held against the model alone, events, what is set aside, the quality
checks, and an end in good order. Then a standalone cluster of that release, to which the job is submitted. Last, one checkpoint is handed
from each release to the next while frames flow. Each release is killed once, turns a second monitor away, and ends in good order; in the
end findings, groups, events and models are compared with those of an undisturbed run of the newest, and of the model alone.

``--only bench`` measures each: latency at 20,000 frames a second and the highest rate, see ``make bench``.
"""

from __future__ import annotations

import argparse
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from streaming.demo.broker import Broker
from tests.real.cluster import wait_until_read_further
from tests.real.environments import ROOT, with_spark
from tests.real.feeder import Feeder
from tests.real.kills import PARTITIONS, Run, compare
from tests.real.monitor_process import MonitorProcess

RELEASES: Final = ("3.5.9", "4.0.5", "4.1.4", "4.2.1", "4.3.0")
TESTS: Final = {
    "story": (
        "tests/real/test_job.py",
        "-k",
        "finds_what_the_model or events_come or garbage_is or great_exp or new_findings or sigterm",
    ),
    "cluster": ("tests/real/test_cluster.py",),
}
UPGRADE: Final = "upgrade"
BENCH: Final = "bench"
LOAD: Final = ("--light", "0", "--rates", "20000", "--modes", "real", "--backlog", "0", "--sizes", "")


def passes(python: Path, tests: tuple[str, ...]) -> bool:
    return not subprocess.run(
        [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests], cwd=ROOT, check=False
    ).returncode


def upgrade(folder: Path, broker: Broker, releases: dict[str, Path], tell: Callable[[str], None]) -> Run:
    """Hand one checkpoint from release to release.

    :param releases: the Python of each, the oldest first.
    """
    topic = "upgrades"
    broker.create_topic(topic, PARTITIONS)
    sections: dict[str, dict[str, object]] = {"job": {"lanes": 2, "trigger_ms": 100}, "quality": {"enabled": False}}
    monitor = MonitorProcess(folder, broker.internal, "upgraded", mirror=topic, **sections)
    feeder = Feeder(broker.internal, topic, PARTITIONS, breach_every=5).start()
    done = Run()
    try:
        before = None
        for release, python in releases.items():
            began = time.monotonic()
            if before is not None:
                assert monitor.stop() == 0, "".join(monitor.said)
            monitor.python = python
            monitor.start().wait_until_said("starting Spark")  # it holds the checkpoint by now
            with subprocess.Popen(monitor.command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as second:
                wait_until_read_further(monitor)
                said = second.communicate()[1]
            assert (second.returncode, "another monitor is running on the checkpoint" in said) == (2, True), said
            if before is not None:
                assert monitor.has_said(f"was written by Spark {before}; Spark {release} continues it"), "".join(monitor.said)
            monitor.kill()
            monitor.start()
            wait_until_read_further(monitor)
            tell(
                f"{release}: continued, turned a second monitor away, was killed and came back, in {time.monotonic() - began:.0f} s"
            )
            before = release
        compare(done, folder, monitor, feeder, **sections)
    finally:
        feeder.stop()
        monitor.kill()
    return done


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("releases", nargs="*", default=RELEASES, metavar="RELEASE")
    parser.add_argument("--only", default=",".join((*TESTS, UPGRADE)), help="of story, cluster, upgrade and bench")
    options = parser.parse_args()
    wanted = options.only.split(",")
    console = Console(soft_wrap=True)
    columns = [name for name in TESTS if name in wanted]
    shown = Table("Spark", "Python", "Java", *columns, title="releases of Spark", title_justify="left", box=None)
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True).stderr.split('"')[1]
    failed = False
    with tempfile.TemporaryDirectory(prefix="sparks-") as folder:
        pythons = {release: with_spark(Path(folder), release) for release in options.releases}
        for release, python in pythons.items():
            results = [passes(python, TESTS[name]) for name in columns]
            failed |= not all(results)
            shown.add_row(release, platform.python_version(), java, *("passed" if passed else "failed" for passed in results))
        if columns:
            console.print(shown)
        for release, python in pythons.items() if BENCH in wanted else ():
            print(f"bench of {release}", flush=True)
            failed |= bool(subprocess.run([str(python), "-m", "tests.bench.job", *LOAD], cwd=ROOT, check=False).returncode)
        if UPGRADE in wanted and len(pythons) > 1:
            with Broker() as broker:
                done = upgrade(Path(folder), broker, pythons, lambda said: print(said, flush=True))
            differences = done.differences()
            failed |= bool(differences)
            assert done.undisturbed is not None
            console.print(
                f"{' → '.join(pythons)}: {done.records:,} records, {len(done.undisturbed.findings)} findings, "
                f"{len(done.undisturbed.groups)} groups: " + ("NOT EQUAL" if differences else "equal to an undisturbed run")
            )
            for difference in differences:
                console.print(difference, markup=False)
    return failed


if __name__ == "__main__":
    sys.exit(main())

"""The kill test: the monitor is killed again and again under load, and must know in the end what one that nobody disturbed knows.

    python -m tests.real.kills [--kills 20] [--seed 1] [--lanes 2] [--spark 3.5.9]

A real broker, live traffic with breaches in it, and in turn the driver, the JVM and the Python worker that holds the models, each killed
by SIGKILL at a random moment of its work. Then a second monitor reads the same topic undisturbed. Compared are the ids of the findings
and their final status, the groups topic, and the models themselves, taken out of both checkpoints and decoded.

The trap: a group's record in the groups topic says when it was last looked at, and that hangs on where a batch ended. Those fields are
left out of the comparison; the models hold them exactly.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec.structs import asdict
from rich.console import Console
from rich.table import Table

from coordinator_model.coordinator import Coordinator
from coordinator_model.counters import Counters
from coordinator_model.event_log import EventLog
from coordinator_model.groups.group import GroupModel
from coordinator_model.groups.records import Coverage
from coordinator_model.snapshots import StoredGroup, due_of, pack_fast, pack_slow, unpack_group, unpack_partition
from streaming.config.settings import Job
from streaming.config.spark import Spark
from streaming.demo.broker import Broker
from streaming.spark import checkpoint, migration
from streaming.spark import session as spark
from tests.real.environments import with_spark
from tests.real.feeder import Feeder, ends_of, events_of, models_of
from tests.real.harness import raw_topic, wait_for
from tests.real.monitor_process import SETTINGS, START_UP_S, MonitorProcess

PARTITIONS = 4
VICTIMS = ("driver", "JVM", "Python worker")
SINCE_LOOKED_AT = frozenset({"updated_at", "last_frame", "last_frame_at"})


@dataclass
class Kill:
    """One of them."""

    victim: str
    after_s: float  #: since the monitor was seen to read
    batch: int  #: newest that was committed
    offset: int  #: records read, all partitions together, as of that batch
    back_s: float = 0.0  #: until a batch of after the kill was committed
    repeated: int = 0  #: findings and groups that were written again as they were


@dataclass
class Outcome:
    """What is to be equal."""

    findings: dict[str, str]
    groups: dict[str, Any]
    events: dict[str, list[dict[str, Any]]]  #: each once, in order, by the key of its group
    models: dict[int, dict[str, Any]]


@dataclass
class Run:
    """A kill test that is over."""

    kills: list[Kill] = field(default_factory=list)
    records: int = 0
    said: list[str] = field(default_factory=list)  #: by the monitor, since its driver was started last
    disturbed: Outcome | None = None
    undisturbed: Outcome | None = None
    model_alone: Outcome | None = None

    def differences(self) -> list[str]:
        """What is not as it should be; empty if all is."""
        assert self.disturbed is not None
        assert self.undisturbed is not None
        assert self.model_alone is not None
        killed, calm, bare = self.disturbed, self.undisturbed, self.model_alone
        compared: list[tuple[str, dict[Any, Any], dict[Any, Any]]] = [
            ("findings", killed.findings, calm.findings),
            ("findings without Spark", calm.findings, bare.findings),
            ("groups", killed.groups, calm.groups),
            ("events", killed.events, calm.events),
            ("events without Spark", calm.events, bare.events),
            ("models", dict.fromkeys(killed.models), dict.fromkeys(bare.models)),
        ]
        for partition, model in bare.models.items():
            compared.append((f"model of partition {partition}", killed.models.get(partition, {}), calm.models.get(partition, {})))
            compared.append((f"model of partition {partition} without Spark", calm.models.get(partition, {}), model))
        return [f"{what}: {_difference(one, other)}" for what, one, other in compared if one != other]


def _difference(one: dict[Any, Any], other: dict[Any, Any]) -> str:
    keys = [key for key in {**one, **other} if one.get(key) != other.get(key)]
    return "; ".join(f"{key}: {one.get(key)!r:.300} instead of {other.get(key)!r:.300}" for key in keys[:5])


def run(
    folder: Path,
    broker: Broker,
    *,
    kills: int,
    seed: int,
    lanes: int,
    python: str | Path = sys.executable,
    minutes: float = math.inf,
    tell: Callable[[Kill], None] = lambda _: None,
) -> Run:
    """Do all of it on a broker that runs; ``tell`` is called with each kill, of which there are fewer if they take too many minutes.

    :param python: the interpreter that runs the monitor that is killed.
    """
    name, began = "kills", time.monotonic()
    chance = random.Random(seed)
    broker.create_topic(name, PARTITIONS)
    sections: dict[str, dict[str, object]] = {
        "job": {"lanes": lanes, "trigger_ms": 100},
        "quality": {"enabled": False},
    }
    done = Run()
    monitor = MonitorProcess(folder, broker.internal, f"{name}-disturbed", mirror=name, python=python, **sections)
    feeder = Feeder(broker.internal, name, PARTITIONS, breach_every=5, handovers=3).start()
    try:
        monitor.start()
        _wait_for_batch(monitor, 0)
        for number in range(kills):
            if time.monotonic() - began > minutes * 60:
                break
            kill = _kill(monitor, VICTIMS[number % len(VICTIMS)], chance.uniform(0, 4))
            before = time.monotonic()
            _wait_for_batch(monitor, kill.batch + 2)  # the one that was in hand may have been committed all the same
            kill.back_s = time.monotonic() - before
            kill.repeated = _repeated(monitor) - sum(each.repeated for each in done.kills)
            done.kills.append(kill)
            tell(kill)
        compare(done, folder, monitor, feeder, **sections)
    finally:
        feeder.stop()
        monitor.kill()
    return done


def compare(done: Run, folder: Path, monitor: MonitorProcess, feeder: Feeder, **sections: dict[str, object]) -> None:
    """Let the monitor read all that there is, and an undisturbed one and the model alone do the same."""
    feeder.stop()
    broker, topic = feeder.bootstrap, feeder.topic
    ends = ends_of(broker, topic)
    monitor.wait_until_read(ends)
    assert monitor.stop() == 0
    done.said = list(monitor.said)
    calm = MonitorProcess(folder, broker, f"{topic}-undisturbed", mirror=topic, **sections).start()
    try:
        calm.wait_until_read(ends)
        assert calm.stop() == 0
    finally:
        calm.kill()
    done.records = sum(ends.values())
    models, found = models_of(raw_topic(broker, topic), topic, PARTITIONS)
    done.model_alone = Outcome(found, {}, events_of(models), {model.partition: alone(model) for model in models})
    both = snapshots_in(monitor.checkpoint, calm.checkpoint)
    done.disturbed, done.undisturbed = (_outcome(each, found) for each, found in zip((monitor, calm), both, strict=True))


def _kill(monitor: MonitorProcess, victim: str, after_s: float) -> Kill:
    time.sleep(after_s)
    wait_for(monitor.has_worker, "a JVM with a Python worker", START_UP_S)
    positions = checkpoint.read_to(monitor.checkpoint)
    kill = Kill(victim, after_s, _newest_batch(monitor), sum(positions.values()))
    if victim == "driver":
        monitor.kill()
        monitor.start()
    elif victim == "JVM":
        monitor.kill_jvm()
    else:
        monitor.kill_worker()
    return kill


def _newest_batch(monitor: MonitorProcess) -> int:
    """That all lanes have committed."""
    commits = [checkpoint.newest(lane / "commits") for lane in checkpoint.lanes_in(monitor.checkpoint)]
    return min((-1 if commit is None else int(commit.name) for commit in commits), default=-1)


def _wait_for_batch(monitor: MonitorProcess, batch: int) -> None:
    def committed() -> bool:
        assert monitor.runs(), "".join(monitor.said)
        return _newest_batch(monitor) >= batch

    wait_for(committed, f"{monitor.name} commits batch {batch}", START_UP_S)


def _repeated(monitor: MonitorProcess) -> int:
    """Records of the result topics that say what the same key has said before."""
    written = Counter(
        (message.key(), message.value())
        for kind in ("findings", "groups")
        for message in raw_topic(monitor.bootstrap, f"{monitor.name}-{kind}")
    )
    return sum(written.values()) - len(written)


def _outcome(monitor: MonitorProcess, snapshots: dict[int, bytes]) -> Outcome:
    restored = {partition: Coordinator.restore(blob, settings=SETTINGS) for partition, blob in snapshots.items()}
    return Outcome(
        findings=monitor.model_findings(),
        groups={key: without_moments(value) for key, value in monitor.topic("groups").items()},
        events=monitor.events(),
        models={partition: alone(model) for partition, model in restored.items()},
    )


def without_moments(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_moments(each) for name, each in value.items() if name not in SINCE_LOOKED_AT}
    if isinstance(value, list):
        return [without_moments(each) for each in value]
    return value


def snapshots_in(*folders: Path) -> list[dict[int, bytes]]:
    """The snapshots in the checkpoint of each monitor that has ended, by mirror partition."""
    with tempfile.TemporaryDirectory() as reading:
        session = spark.open_session(Job(checkpoint=Path(reading), log_file=Path(reading) / "log"), Spark())
        try:
            return [migration.snapshots(session, folder) for folder in folders]
        finally:
            spark.close_session(session)


def decoded(blob: bytes) -> dict[str, Any]:
    """A snapshot in a form that is equal whenever what is known is: when a group was last packed does not show."""
    state, blocks = unpack_partition(blob)
    return {
        **asdict(state),
        **{f"{stored.cluster}/{stored.name}": _packed_anew(stored) for block in blocks for stored in block.groups},
    }


def _packed_anew(stored: StoredGroup) -> tuple[bytes, bytes]:
    def attach(group: GroupModel[Any]) -> GroupModel[Any]:
        return group.attach(
            stored.name,
            stored.cluster,
            settings=SETTINGS,
            loading={},
            counters=Counters(),
            coverage=Coverage(),
            disconnections={},
            group_events=EventLog(),
        )

    group, open_findings = unpack_group(stored.name, stored.slow_part, stored.fast_part, attach)
    return pack_slow(group, open_findings), pack_fast(group, due_of(stored.fast_part))


def alone(model: Coordinator) -> dict[str, Any]:
    """The state of a model that has never been in a checkpoint, for comparison with :func:`decoded`."""
    model.changed_groups()
    return decoded(model.snapshot())


def table(done: Run) -> Table:
    """What an operator reads."""
    shown = Table("kill", "who", "after s", "batch", "records read", "back after s", "written twice", title="kills under load")
    for column in shown.columns[2:]:
        column.justify = "right"
    for number, kill in enumerate(done.kills, 1):
        cells = (f"{kill.after_s:.1f}", f"{kill.batch}", f"{kill.offset:,}", f"{kill.back_s:.1f}", f"{kill.repeated}")
        shown.add_row(f"{number}", kill.victim, *cells)
    return shown


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=math.inf, help="no kill after so long; what was killed is compared")
    parser.add_argument("--lanes", type=int, default=2)
    parser.add_argument(
        "--spark", metavar="RELEASE", help="of the monitor that is killed; the default is the one that is installed"
    )
    options = parser.parse_args()
    console = Console(soft_wrap=True)
    with Broker() as broker, tempfile.TemporaryDirectory() as folder:
        done = run(
            Path(folder),
            broker,
            kills=options.kills,
            seed=options.seed,
            lanes=options.lanes,
            python=with_spark(Path(folder), options.spark) if options.spark else sys.executable,
            minutes=options.minutes,
            tell=lambda kill: console.print(f"killed the {kill.victim} behind batch {kill.batch}: back after {kill.back_s:.1f} s"),
        )
    console.print(table(done))
    differences = done.differences()
    assert done.undisturbed is not None
    console.print(
        f"{done.records:,} records in {PARTITIONS} partitions, {options.lanes} lanes; "
        f"{len(done.undisturbed.findings)} findings, {len(done.undisturbed.groups)} groups, {len(done.undisturbed.models)} models: "
        + ("equal to an undisturbed run and to the model alone" if not differences else "NOT EQUAL")
    )
    for difference in differences:
        console.print(difference, markup=False)
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())

"""A run of the laboratory: warm up, chaos with quiet points between, and what the monitor said of it."""

from __future__ import annotations

import contextlib
import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from coordinator_model.findings import Finding, Severity
from coordinator_model.settings import Settings
from streaming.demo.processes import Processes
from tests.real.lab import releases
from tests.real.lab.chaos import Chaos
from tests.real.lab.client import Kind
from tests.real.lab.cluster import INITIAL_DELAY_MS, Site
from tests.real.lab.fleet import MAKES, TOPICS, Fleet, Make
from tests.real.lab.monitor import Monitor, replayed
from tests.real.lab.quiet import Comparison, at_quiet_point

SETTINGS = Settings(group_initial_rebalance_delay_ms=INITIAL_DELAY_MS)
CHAOS_BETWEEN_QUIET_POINTS_S = 45.0
log = logging.getLogger(__name__)


@dataclass(slots=True)
class Result:
    """What a run came to."""

    version: str
    brokers: int
    seed: int
    seconds: float = 0.0
    frames: int = 0
    rebalances: int = 0
    groups: int = 0
    clients: Counter[str] = field(default_factory=Counter)
    acts: Counter[str] = field(default_factory=Counter)
    findings: dict[str, Counter[str]] = field(default_factory=dict)  #: severity → rule → findings
    false_alarms: list[Finding] = field(default_factory=list)
    comparisons: list[Comparison] = field(default_factory=list)
    crashes: list[str] = field(default_factory=list)
    replay_differs: list[str] = field(default_factory=list)
    counters: Counter[str] = field(default_factory=Counter)
    recording: Path | None = None

    @property
    def good(self) -> bool:
        equal = all(not comparison.differences for comparison in self.comparisons)
        return equal and not (self.false_alarms or self.crashes or self.replay_differs)


def run(
    *,
    line: str,
    brokers: int,
    seed: int,
    seconds: float,
    kinds: Sequence[Kind],
    folder: Path,
    makes: Sequence[Make] = MAKES,
    say: Callable[[str], None],
) -> Result:
    """Run lawful chaos against one release for so long.

    :param folder: where recording and the clients' logs go.
    """
    jars = releases.broker_jars(line)
    result = Result(releases.version(jars), brokers, seed)
    result.recording = folder / f"{line}-{brokers}-{seed}.records"
    began = time.monotonic()

    def timed(text: str) -> None:
        say(f"{time.monotonic() - began:6.1f} s  {text}")

    with contextlib.ExitStack() as stack:
        monitor = stack.enter_context(Monitor(result.recording, SETTINGS))
        site = stack.enter_context(Site(brokers, jars, monitor))
        for topic, partitions in TOPICS.items():
            site.create_topic(topic, partitions)
        processes = stack.enter_context(Processes(folder / "clients", lambda _: None))
        fleet = Fleet(processes, site.bootstrap, kinds, makes)
        fleet.start_all()
        timed("brokers up, clients started")
        chaos = Chaos(site, fleet, seed, TOPICS, timed)
        deadline = time.monotonic() + seconds
        result.comparisons.append(_quiet(site, monitor, chaos, timed))
        while (now := time.monotonic()) < deadline:
            _chaos(chaos, site, min(deadline, now + CHAOS_BETWEEN_QUIET_POINTS_S))
            result.comparisons.append(_quiet(site, monitor, chaos, timed))
            monitor.restore()
        result.acts, result.clients = chaos.acts, fleet.started
        timed("ending")
    result.seconds = time.monotonic() - began
    _sum_up(result, monitor)
    return result


def _chaos(chaos: Chaos, site: Site, until: float) -> None:
    while time.monotonic() < until:
        chaos.act()
        pause = time.monotonic() + chaos.rng.uniform(0.5, 5)
        while time.monotonic() < min(pause, until):
            site.produce(list(TOPICS))
            time.sleep(0.2)


def _quiet(site: Site, monitor: Monitor, chaos: Chaos, say: Callable[[str], None]) -> Comparison:
    chaos.calm()
    comparison = at_quiet_point(site, monitor)
    say(str(comparison))
    return comparison


def _sum_up(result: Result, monitor: Monitor) -> None:
    result.frames, result.rebalances = monitor.frames, monitor.rebalances
    result.groups = len(monitor.groups)
    result.crashes = monitor.crashes
    for states in monitor.findings().values():
        last = states[-1].finding
        worst = max((said.finding.severity for said in states), key=lambda severity: severity.rank)
        result.findings.setdefault(worst.value, Counter())[f"{last.rule} {last.name}"] += 1
        if worst.rank >= Severity.ERROR.rank:
            result.false_alarms.append(last)
    assert result.recording is not None
    again, result.counters = replayed(result.recording, SETTINGS)
    live = [(said.finding.id, said.finding.status) for said in monitor.said]
    fresh = [(finding.id, finding.status) for finding in again]
    if live != fresh:
        result.replay_differs = [f"live {len(live)} findings' states, replayed {len(fresh)}"] + [
            f"{mine} / {theirs}" for mine, theirs in zip(live, fresh, strict=False) if mine != theirs
        ][:5]

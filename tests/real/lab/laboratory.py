"""A run of the laboratory: lawful chaos with quiet points between, then violations, and what the monitor said of all that."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from coordinator_model.finding import Finding, Severity
from coordinator_model.settings import Settings
from streaming.demo.processes import Processes
from tests.real.lab import releases
from tests.real.lab.causes import CAUSES
from tests.real.lab.chaos import Chaos, Outage
from tests.real.lab.client import Kind
from tests.real.lab.cluster import INITIAL_DELAY_MS, Site
from tests.real.lab.epoch_violations import EPOCH_VIOLATIONS
from tests.real.lab.exporter import Exporter
from tests.real.lab.fleet import FIXED_TOPICS, TOPICS, Fleet, Make, makes_for
from tests.real.lab.mirror import Mirror
from tests.real.lab.monitor import Monitor, replayed
from tests.real.lab.quiet import Comparison, at_quiet_point
from tests.real.lab.scene import Lies
from tests.real.lab.verdicts import Case, is_violation, try_all
from tests.real.lab.violations import VIOLATIONS, Violation

SETTINGS = Settings(group_initial_rebalance_delay_ms=INITIAL_DELAY_MS)
ALL_VIOLATIONS = (*EPOCH_VIOLATIONS, *VIOLATIONS, *CAUSES)  #: those that take longest come first
#: What libraries of the fleet do wrong: findings that are true, and counted apart.
#:
#: Sarama repeats a commit that was refused with UNKNOWN_MEMBER_ID before it joins again (``offset_manager.go`` redispatches whatever it
#: does not know), which takes longer than 10 s on a slow machine. kafkajs goes on with a commit that found no coordinator after it has
#: joined again, under its new generation, for partitions that another member has by then.
BREACHES: dict[Kind, frozenset[str]] = {"sarama": frozenset({"M-01", "O-01"}), "kafkajs": frozenset({"O-06"})}
CHAOS_BETWEEN_QUIET_POINTS_S = 45.0
BETWEEN_ACTS_S = 1.5

Say = Callable[[str], None]


@dataclass(slots=True)
class Result:
    """What a run came to."""

    version: str
    brokers: int
    seed: int
    recording: Path
    seconds: float = 0.0
    chaos_s: float = 0.0
    frames: int = 0
    rebalances: int = 0
    groups: int = 0
    restores: int = 0  #: of the model from its snapshot, on the way
    clients: Counter[str] = field(default_factory=Counter)
    software: tuple[str, ...] = ()
    acts: Counter[str] = field(default_factory=Counter)
    findings: dict[Severity, Counter[str]] = field(default_factory=dict)  #: about lawful groups: worst severity → rule → findings
    false_alarms: list[Finding] = field(default_factory=list)
    breaches: list[Finding] = field(default_factory=list)  #: of a library, see BREACHES
    comparisons: list[Comparison] = field(default_factory=list)
    cases: list[Case] = field(default_factory=list)
    lied_to: frozenset[str] = frozenset()  #: groups in which the proxy falsified an answer
    crashes: list[str] = field(default_factory=list)
    replay_differs: list[str] = field(default_factory=list)
    mirror_differs: list[str] = field(default_factory=list)  #: from what the tap captured
    mirror_doubled: int = 0  #: records that it has twice

    @property
    def good(self) -> bool:
        return not (
            self.false_alarms
            or any(comparison.differences for comparison in self.comparisons)
            or any(not case.verdict.found for case in self.cases)
            or self.crashes
            or self.replay_differs
            or self.mirror_differs
        )


def run(
    *,
    line: str,
    brokers: int,
    seed: int,
    seconds: float,
    kinds: Sequence[Kind],
    folder: Path,
    makes: Sequence[Make] | None = None,
    violations: Sequence[Violation] = ALL_VIOLATIONS,
    script: Sequence[str] = (),
    beside: Callable[[Site], contextlib.AbstractContextManager[None]] = contextlib.nullcontext,
    say: Say,
) -> Result:
    """Run lawful chaos against one release for so long, and commit the violations afterwards, while the fleet goes on.

    :param folder: where recording and the clients' logs go.
    :param makes: the groups; those that the release can have when not given.
    :param script: names of acts: do these, one after the other, instead of what the seed has for so many seconds.
    :param beside: what else is to watch the site, from before the first client to after the last.
    """
    jars = releases.broker_jars(line)
    version = releases.version(jars)
    result = Result(version, brokers, seed, folder / f"{version}-{brokers}-{seed}.records")
    began = time.monotonic()

    def timed(text: str) -> None:
        say(f"{time.monotonic() - began:6.1f} s  {text}")

    lies = Lies()
    with contextlib.ExitStack() as stack:
        monitor = stack.enter_context(Monitor(result.recording, SETTINGS))
        mirror = stack.enter_context(Mirror(folder / f"certificates-{version}", monitor))
        site = stack.enter_context(Site(brokers, jars, mirror, [lies.tamper]))
        for topic, partitions in {**TOPICS, **FIXED_TOPICS}.items():
            site.create_topic(topic, partitions)
        stack.enter_context(beside(site))
        processes = stack.enter_context(Processes(folder / "clients", lambda _: None))
        fleet = Fleet(processes, site.bootstraps, kinds, makes_for(line, kinds) if makes is None else makes)
        fleet.start_all()
        exporter = stack.enter_context(Exporter(site))
        timed(f"Kafka {version}, {brokers} brokers: up, and {len(fleet.members)} clients started")
        chaos = Chaos(site, fleet, seed, TOPICS, timed)

        def quiet(least: int = 0) -> None:
            chaos.calm()
            result.comparisons.append(at_quiet_point(site, monitor, fleet.newer, least))
            timed(str(result.comparisons[-1]))

        quiet(len(fleet.makes))
        started = time.monotonic()
        if script:
            _play(script, chaos, site)
            quiet()
            monitor.restore()
        while not script and (now := time.monotonic()) < started + seconds:
            _chaos(chaos, site, min(started + seconds, now + CHAOS_BETWEEN_QUIET_POINTS_S))
            quiet()
            monitor.restore()
        result.chaos_s = time.monotonic() - started
        committed = [violation for violation in violations if violation.since <= release_of(version)]
        if committed:
            timed("violations")
            result.cases = try_all(site, monitor, lies, timed, committed)
        result.acts, result.clients = chaos.acts, fleet.started
        timed(f"ending; an exporter described the groups {exporter.asked} times")
    result.lied_to = frozenset(lies.first_us)
    result.mirror_differs, result.mirror_doubled = mirror.differences, mirror.doubled
    _sum_up(result, monitor, chaos.outages, fleet.libraries)
    result.seconds = time.monotonic() - began
    return result


def is_breach(finding: Finding, libraries: Mapping[str, Kind]) -> bool:
    """Whether a finding tells what the library of the client that it names is known to do wrong.

    :param libraries: client id → library.
    """
    library = libraries.get(finding.client_id or "")
    return library is not None and finding.rule in BREACHES.get(library, ())


def release_of(version: str) -> tuple[int, ...]:
    """The numbers of a version."""
    return tuple(int(part) for part in version.split("."))


def _chaos(chaos: Chaos, site: Site, until: float) -> None:
    while time.monotonic() < until:
        chaos.act()
        _work(site, min(until, time.monotonic() + chaos.rng.uniform(0.5, 5)))


def _play(script: Sequence[str], chaos: Chaos, site: Site) -> None:
    for name in script:
        chaos.perform(name)
        _work(site, time.monotonic() + BETWEEN_ACTS_S)


def _work(site: Site, until: float) -> None:
    """Let the groups work until then."""
    while time.monotonic() < until:
        site.produce([*TOPICS, *FIXED_TOPICS])
        time.sleep(0.2)


def _sum_up(result: Result, monitor: Monitor, outages: Sequence[Outage], libraries: Mapping[str, Kind]) -> None:
    result.frames, result.rebalances, result.restores = monitor.frames, monitor.rebalances, monitor.restores
    result.groups = len(monitor.groups)
    result.software = tuple(sorted(set(monitor.clients.values())))
    result.crashes = monitor.crashes
    for states in monitor.findings().values():
        last = states[-1].finding
        if is_violation(last.group):
            continue
        worst = max((said.finding.severity for said in states), key=lambda severity: severity.rank)
        result.findings.setdefault(worst, Counter())[f"{last.rule} {last.name}"] += 1
        if worst.rank >= Severity.ERROR.rank or last.rule == "V-08" or any(outage.acquits(last) for outage in outages):
            finding = next(said.finding for said in states if said.finding.severity is worst)
            (result.breaches if is_breach(finding, libraries) else result.false_alarms).append(finding)
    live = [said.finding for said in monitor.said]
    again = replayed(result.recording, SETTINGS)
    if live != again:
        unlike = [f"{mine.id} {mine.status} / {theirs.id} {theirs.status}" for mine, theirs in zip(live, again) if mine != theirs]  # noqa: B905
        result.replay_differs = [f"{len(live)} states of findings live, {len(again)} replayed", *unlike[:5]]

"""A run: every library through every scenario on brokers of one release, several groups at a time, and what the monitor found."""

from __future__ import annotations

import contextlib
import queue
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import KafkaException

from coordinator_model.settings import Settings
from tests.conformance.libraries import Library
from tests.conformance.scenarios import Scenario
from tests.conformance.stage import HEARTBEAT_MS, PARTITIONS, SESSION_MS, Stage, Watch, group_of, topic_of
from tests.real.lab import releases
from tests.real.lab.cluster import INITIAL_DELAY_MS, Site
from tests.real.lab.monitor import Monitor, replayed

SETTINGS = Settings(group_initial_rebalance_delay_ms=INITIAL_DELAY_MS)
AFTERMATH_S = 3.0
MOST_FRAMES = 6
PRODUCE_EVERY_S = 0.2
CLUSTER = 3  #: brokers where something is done to all of them
#: In the newer protocols the brokers say how long a session is; a release that does not have them does not mind.
_SESSIONS = {
    f"group.{kind}.{name}": value
    for kind in ("consumer", "share", "streams")
    for name, value in (
        ("min.session.timeout.ms", SESSION_MS),
        ("session.timeout.ms", SESSION_MS),
        ("min.heartbeat.interval.ms", 2 * HEARTBEAT_MS),
        ("heartbeat.interval.ms", 2 * HEARTBEAT_MS),  # the monitor calls a pause of three of them one
    )
}
_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
_ZOOKEEPER_AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"

Say = Callable[[str], None]
Act = Callable[[Stage], None]


@dataclass(slots=True)
class Outcome:
    """What one library did in one scenario."""

    library: str
    version: str
    broker: str
    scenario: str
    seed: int
    seconds: float = 0.0
    troubles: list[str] = field(default_factory=list)  #: a group that did not settle, a process that did not end
    errors: dict[str, int] = field(default_factory=dict)  #: that the library raised
    findings: list[dict[str, Any]] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(slots=True)
class _Play:
    library: Library
    scenario: Scenario
    command: list[str]
    outcome: Outcome


class _Ground(NamedTuple):
    """Brokers that scenarios are played on."""

    name: str
    brokers: int
    properties: Mapping[str, str | int]
    scenarios: Sequence[Scenario]


def run(
    *,
    line: str,
    seed: int,
    commands: Sequence[tuple[Library, list[str]]],
    scenarios: Sequence[Scenario],
    jobs: int,
    folder: Path,
    say: Say,
) -> Iterator[list[Outcome]]:
    """Play everything and give the outcomes, those of one cluster at a time; the recordings are in the folder.

    :param commands: libraries and the command lines of their drivers.
    :param jobs: groups at a time.
    """
    authorizer = _ZOOKEEPER_AUTHORIZER if line in releases.OLD_RELEASES else _AUTHORIZER
    knowing_rights = {**_SESSIONS, "authorizer.class.name": authorizer, "allow.everyone.if.no.acl.found": "true"}
    for ground in (
        _Ground("one", 1, _SESSIONS, [one for one in scenarios if not one.rights and one.disturb is None]),
        _Ground("rights", 1, knowing_rights, [one for one in scenarios if one.rights]),
        _Ground("cluster", CLUSTER, _SESSIONS, [one for one in scenarios if one.disturb is not None]),
    ):
        if ground.scenarios:
            yield _run_on(ground, line=line, seed=seed, commands=commands, jobs=jobs, folder=folder, say=say)


def _run_on(
    ground: _Ground,
    *,
    line: str,
    seed: int,
    commands: Sequence[tuple[Library, list[str]]],
    jobs: int,
    folder: Path,
    say: Say,
) -> list[Outcome]:
    jars = releases.broker_jars(line)
    version = releases.version(jars)
    logs = folder / "logs"
    logs.mkdir(parents=True, exist_ok=True)
    recording = folder / f"{version}-{seed}-{ground.name}.records"
    plays = [
        _Play(library, scenario, command, Outcome(library.name, library.version, version, scenario.name, seed))
        for scenario in ground.scenarios
        for library, command in commands
        if library.speaks_to(line) and scenario.needs(library)
    ]
    with contextlib.ExitStack() as stack:
        monitor = stack.enter_context(Monitor(recording, SETTINGS))
        watch = Watch(monitor)
        kind = releases.cluster_kind(line)
        site = stack.enter_context(Site(ground.brokers, jars, watch, properties=ground.properties, kind=kind))  # type: ignore[arg-type]
        topics: list[str] = []
        stack.enter_context(_producing(site, topics))
        for play in plays:
            site.brokers[0].create_topic(topic_of(play.library, play.scenario.name), PARTITIONS, replicas=ground.brokers)
        say(f"Kafka {version} is up with {ground.brokers} brokers and {len(plays)} topics")

        def perform(play: _Play, act: Act) -> None:
            stage = Stage(
                site=site,
                watch=watch,
                monitor=monitor,
                library=play.library,
                command=play.command,
                name=play.scenario.name,
                seed=seed,
                logs=logs,
            )
            topics.append(stage.topic)
            _perform(play, stage, act, say)

        def alone(play: _Play) -> None:
            perform(play, play.scenario.play)

        _each(alone, [play for play in plays if play.scenario.disturb is None], jobs)
        for scenario in ground.scenarios:
            if scenario.disturb is not None:
                together = [play for play in plays if play.scenario is scenario]
                _together(scenario=scenario, plays=together, perform=perform, site=site, rng=random.Random(seed), say=say)
        time.sleep(AFTERMATH_S)
    found = replayed(recording, SETTINGS)
    for play in plays:
        play.outcome.findings = _worst(found, group_of(play.library, play.scenario.name))
    return [play.outcome for play in plays]


def _together(
    *,
    scenario: Scenario,
    plays: Sequence[_Play],
    perform: Callable[[_Play, Act], None],
    site: Site,
    rng: random.Random,
    say: Say,
) -> None:
    """All libraries at once: what is done concerns the whole cluster."""
    prepared = queue.SimpleQueue[None]()
    over = threading.Event()

    def play_through(play: _Play) -> None:
        def act(stage: Stage) -> None:
            play.scenario.play(stage)
            prepared.put(None)
            over.wait()
            stage.work(3)
            stage.settle()

        perform(play, act)
        prepared.put(None)  # also when it did not come so far

    def disturb() -> None:
        try:
            for _ in plays:
                prepared.get()
            say(f"{scenario.name}: {scenario.does}")
            assert scenario.disturb is not None
            scenario.disturb(site, rng)
        finally:
            over.set()

    disturbing = threading.Thread(target=disturb, daemon=True)
    disturbing.start()
    _each(play_through, plays, len(plays))
    disturbing.join()


def _perform(play: _Play, stage: Stage, act: Act, say: Say) -> None:
    began = time.monotonic()
    try:
        act(stage)
        stage.end()
    except Exception as error:  # a stage that fails must not end the others
        stage.troubles.append(f"{type(error).__name__}: {error}")
    finally:
        stage.kill_all()
        play.outcome.seconds = round(time.monotonic() - began, 1)
        play.outcome.troubles = list(dict.fromkeys(stage.troubles))
        play.outcome.errors = dict(Counter(error[:160] for error in stage.errors).most_common(8))
        said = f": {'; '.join(play.outcome.troubles)}" if play.outcome.troubles else ""
        say(f"{play.library.name}, {play.scenario.name}, {play.outcome.seconds:.0f} s{said}")


def _each(act: Callable[[_Play], None], plays: Sequence[_Play], jobs: int) -> None:
    waiting: queue.SimpleQueue[_Play] = queue.SimpleQueue()
    for play in plays:
        waiting.put(play)

    def work() -> None:
        with contextlib.suppress(queue.Empty):
            while True:
                act(waiting.get_nowait())

    threads = [threading.Thread(target=work, daemon=True) for _ in range(min(jobs, len(plays)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@contextlib.contextmanager
def _producing(site: Site, topics: list[str]) -> Any:
    """Records into every topic, so that there is something to fetch and commit."""
    ended = threading.Event()

    def produce() -> None:
        while not ended.wait(PRODUCE_EVERY_S):
            with contextlib.suppress(KafkaException):  # a topic is deleted
                site.produce(tuple(topics)[-30:])

    thread = threading.Thread(target=produce, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _worst(found: Sequence[Any], group: str) -> list[dict[str, Any]]:
    """Each finding about the group once, at its worst, with the frames that it rests on."""
    worst: dict[str, Any] = {}
    for finding in found:
        if finding.group == group and (finding.id not in worst or finding.severity.rank > worst[finding.id].severity.rank):
            worst[finding.id] = finding
    return [
        {
            **{name: getattr(finding, name) for name in ("rule", "name", "summary", "observed", "client_id", "generation")},
            "severity": finding.severity.value,
            "blame": finding.blame.value,
            "frames": [
                f"{(frame.at_us - finding.evidence[0].at_us) / 1000:+.0f} ms  {frame.frame}"
                for frame in finding.evidence[:MOST_FRAMES]
            ],
        }
        for finding in worst.values()
    ]

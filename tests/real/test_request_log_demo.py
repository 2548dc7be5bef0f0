"""The troubles of the demo, found in nothing but the broker's own log once they are over."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient

from coordinator_model.finding import Finding
from coordinator_model.settings import Settings
from coordinator_model.wire.constants import ILLEGAL_GENERATION
from streaming.demo.broker import HOST, Broker, free_port
from streaming.demo.faulty_proxy import HostileProxy, success_for
from streaming.demo.processes import Processes
from streaming.demo.scenarios import (
    HEALTHY_GROUP,
    LYING_GROUP,
    MISSING_MS,
    PARTITIONS,
    PROPERTIES,
    STANDING,
    TOPIC,
    TROUBLES,
    USUAL_MS,
    Scene,
    Stage,
)
from streaming.demo.screen_state import ScreenState
from streaming.demo.verdicts import Observation, Truth, judge
from streaming.engine.engine import Engine
from streaming.mirror.broker_log.reader import RequestLogReader
from streaming.mirror.pcap.files import opened

pytestmark = [pytest.mark.real, pytest.mark.long]

DELAY_MS = 1_000
BETWEEN_S = 2.0  # so that what happens at once, such as members that start, does not starve the others
UNSEEN = {
    "faulty proxy": "no finding of G-02 about group refunds",  # what it makes of the broker's answers is not in the broker's log
    "no such topic": "no finding of A-15 about group reports",  # Metadata answers are not read from the log
}
SETTINGS = Settings(group_initial_rebalance_delay_ms=DELAY_MS, usual_ms=USUAL_MS, missing_ms=MISSING_MS)


def findings_in(log: Path) -> list[Finding]:
    """Each state of each finding, oldest first."""
    found: list[Finding] = []
    engine = Engine(topic="log", settings=SETTINGS, found=found.append)
    reader = RequestLogReader(engine.recorded)
    reader.read([reader.entries_in(opened(log.open("rb")), pytest.fail)])
    reader.finish()
    engine.finish()
    return found


def switch_on(bootstrap: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.alter_configs([ConfigResource(ConfigResourceType.BROKER_LOGGER, "1", {"kafka.request.logger": "DEBUG"})])
    admin.close()


def act_all(folder: Path) -> tuple[Path, dict[str, Truth]]:
    """Do everything that the demo does to its groups; return the broker's log, and what was done."""
    truths = {trouble.name: Truth() for trouble in TROUBLES}
    address = f"{HOST}:{free_port()}"
    broker = Broker(
        data=folder / "broker",
        advertised={"PLAINTEXT": address},
        initial_rebalance_delay_ms=DELAY_MS,
        properties=PROPERTIES,
    )
    with broker:
        broker.create_topic(TOPIC, PARTITIONS)
        switch_on(broker.internal)
        tamper = success_for(LYING_GROUP, ILLEGAL_GENERATION)
        with (
            HostileProxy(listen=address, broker=broker.address(), tampers=[tamper]) as proxy,
            Processes(folder / "logs", lambda _: None) as processes,
        ):
            stage = Stage(processes, ScreenState(), address, lambda: proxy.lies, vital=())
            for group, clients in STANDING.items():
                for kind, client_id in clients:
                    stage.standing[client_id] = stage.consumer(kind, group, client_id)
            for child in stage.standing.values():
                child.wait_for("assigned", timeout_s=60)

            def act(number: int) -> None:
                time.sleep(BETWEEN_S * number)
                trouble = TROUBLES[number]
                trouble.act(Scene(stage, truths[trouble.name]))

            with ThreadPoolExecutor(len(TROUBLES)) as pool:
                list(pool.map(act, range(len(TROUBLES))))
    return broker.log, truths


@pytest.mark.timeout(300)
def test_all_but_two_of_the_troubles_are_found_with_their_culprits_in_the_log_alone(tmp_path):
    log, truths = act_all(tmp_path)
    found = findings_in(log)
    observations = [Observation(finding.as_json(), finding.updated_at_us) for finding in found]
    verdicts = {trouble.name: judge(trouble.expected, truths[trouble.name], observations) for trouble in TROUBLES}
    missed = {name: verdict.problem for name, verdict in verdicts.items() if not verdict.found}
    assert missed == UNSEEN
    assert [finding for finding in found if finding.group == HEALTHY_GROUP] == []

"""A rolling migration of a group of Java members to the consumer protocol and back, seen live through the tap.

The model follows the group over both conversions: whoever is in it stays known, generations and epochs are one line, and nothing is said
but that it was converted.
"""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from coordinator_model.coordinator import Coordinator
from coordinator_model.events import GroupEvent
from coordinator_model.finding import Severity
from coordinator_model.settings import Settings
from coordinator_model.wire.recording import read_recording
from streaming.demo.broker import HOST, Broker, free_port
from streaming.demo.processes import Processes
from tests.real.harness import running_tap, wait_for
from tests.real.lab import java
from tests.real.lab.lives import Stage
from tests.real.lab.monitor import Monitor

pytestmark = [pytest.mark.real, pytest.mark.long, pytest.mark.skipif(java.why_not() is not None, reason=str(java.why_not()))]

GROUP, TOPIC = "orders", "orders"
SESSION_MS = 45_000  #: what brokers count for members of the consumer protocol, too


def protocols(monitor: Monitor) -> dict[str, str]:
    """Client id → the protocol that it is a member by."""
    members = monitor.described().get(GROUP, {}).get("members", ())
    return {member["client_id"]: member.get("protocol", "classic") for member in members}


def is_stable(monitor: Monitor, expected: dict[str, str]) -> bool:
    known = monitor.described().get(GROUP, {})
    return known.get("state") == "Stable" and known.get("learning") is None and protocols(monitor) == expected


@pytest.mark.timeout(240)
def test_a_rolling_migration_there_and_back_is_one_life_of_the_group(tmp_path):
    front = f"{HOST}:{free_port()}"
    recording = tmp_path / "records"
    seen: dict[str, str] = {}
    with (
        Broker(advertised={"PLAINTEXT": front}, initial_rebalance_delay_ms=500) as broker,
        Monitor(recording, Settings()) as monitor,
        running_tap([f"{front}={broker.address()}"], monitor, cluster="migrated"),
        Processes(tmp_path, lambda _: None) as processes,
    ):
        broker.create_topic(TOPIC, 4)
        stage = Stage(GROUP, broker, front, processes)
        members = [stage.enter("java", "classic", session_timeout_ms=SESSION_MS) for _ in range(2)]
        seen = {member.client.client_id: "classic" for member in members}
        wait_for(lambda: is_stable(monitor, seen), "both are members of a classic group", 60)
        for protocol in ("consumer", "classic"):
            for member in members:
                member.stop()
                member.start(protocol)
                seen[member.client.client_id] = protocol
                wait_for(lambda: is_stable(monitor, seen), f"{member.client.client_id} is a {protocol} member", 60)
        said = [states[0].finding for states in monitor.findings().values()]
        for member in members:
            member.stop()

    assert [(finding.rule, finding.severity) for finding in said] == [("P-12", Severity.INFO)]
    check(told(recording))


def check(events: list[GroupEvent]) -> None:
    """One line of generations and epochs over both conversions; nobody ever went without leaving."""
    numbers = [event.generation for event in events if event.generation is not None]
    assert numbers == sorted(numbers)
    assert [kind for kind, _ in itertools.groupby(event.group_type for event in events)] == ["classic", "consumer", "classic"]
    assert {event.incarnation for event in events} == {1}
    assert {event.kind for event in events}.isdisjoint({"member_dropped", "member_fenced", "member_silent"})


def told(recording: Path) -> list[GroupEvent]:
    """What happened in the group, in order."""
    model = Coordinator(topic="lab", partition=0)
    with recording.open("rb") as stream:
        for record in read_recording(stream):
            model.receive(record)
    return model.drain_events()

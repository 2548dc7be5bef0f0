"""A broker whose clients are watched: the tap before it, and the model behind that, fed in process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from coordinator_model.finding import Finding, Severity
from coordinator_model.settings import Settings
from streaming.demo.broker import HOST, Broker, free_port
from streaming.spark.jvm import JvmError
from tests.conformance.builds import BuildError
from tests.conformance.libraries import LIBRARIES
from tests.real.harness import running_tap
from tests.real.lab.client import Kind
from tests.real.lab.monitor import Monitor
from tests.real.lab.releases import broker_jars

TOPIC, OTHER_TOPIC = "orders", "payments"


class Watched(NamedTuple):
    broker: Broker
    monitor: Monitor
    front: str  #: the tap's ``host:port``


@contextmanager
def watched(
    folder: Path, line: str = "4.3", properties: Mapping[str, str | int] | None = None, settings: Settings | None = None
) -> Iterator[Watched]:
    """Watch a broker of a line of releases; skip the test where it cannot be had."""
    try:
        jars = broker_jars(line)
    except JvmError as error:
        pytest.skip(str(error))
    front = f"{HOST}:{free_port()}"
    with (
        Broker(advertised={"PLAINTEXT": front}, jars=jars, properties=properties) as broker,
        Monitor(folder / "records", settings or Settings()) as monitor,
        running_tap([f"{front}={broker.address()}"], monitor, cluster="seen"),
    ):
        broker.create_topic(TOPIC, 4)
        yield Watched(broker, monitor, front)


def needs_library(kind: Kind) -> None:
    """Build a client library, which may take longer than a session; skip the test where it cannot be had."""
    for library in LIBRARIES:
        if library.name == kind:
            try:
                library.command()
            except BuildError as error:
                pytest.skip(str(error))


def found(monitor: Monitor, rule: str) -> Finding | None:
    """The newest state of the newest finding of a rule."""
    states = [said for all_said in monitor.findings().values() for said in all_said if said.finding.rule == rule]
    return states[-1].finding if states else None


def rules(monitor: Monitor) -> set[str]:
    """Every rule that spoke so far."""
    return {states[0].finding.rule for states in monitor.findings().values()}


def errors(monitor: Monitor) -> list[str]:
    """What was said of error or above."""
    newest = (states[-1].finding for states in monitor.findings().values())
    return [f"{finding.rule}: {finding.summary}" for finding in newest if finding.severity.rank >= Severity.ERROR.rank]


def member_ids(monitor: Monitor, group: str, client_id: str) -> set[str]:
    """The ids that a client, or each of its threads, has in a group now, as far as the model knows."""
    members = monitor.described().get(group, {}).get("members", ())
    return {member["member_id"] for member in members if (member["client_id"] or "").startswith(client_id)}

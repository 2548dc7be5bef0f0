"""``python -m tests.real.dialogues``: hold the scripted conversations with running brokers and with the reference coordinator.

Where the two answer differently the broker is right, and the reference is to be changed.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any

import typer

from coordinator_model.wire import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse, Response
from streaming.demo.broker import Broker
from streaming.demo.raw_client import Connection, RawClientError, find_coordinator
from tests.coordinator_model.reference.dialogue import (
    HEARTBEAT_MS,
    LONGEST_ANSWER_MS,
    MAX_SIZE,
    SESSION_MS,
    TOPICS,
    Outcome,
    ReferencePlace,
    play,
)
from tests.coordinator_model.reference.dialogues import DIALOGUES
from tests.real.lab import releases

LINES = tuple(line for line in releases.RELEASES if not line.startswith("3."))
AT_ONCE = 8
NOT_YET = frozenset({14, 15, 16})
PROPERTIES = {
    "group.consumer.min.session.timeout.ms": 1_000,
    "group.consumer.session.timeout.ms": SESSION_MS,
    "group.consumer.min.heartbeat.interval.ms": 500,
    "group.consumer.heartbeat.interval.ms": HEARTBEAT_MS,
    "group.consumer.max.size": MAX_SIZE,
}


class BrokerLine:
    """A connection to the coordinator."""

    def __init__(self, address: str, client_id: str) -> None:
        self._connection = Connection(address, client_id=client_id)
        self._asked: list[int] = []

    def ask(self, body: Any, api_version: int) -> None:
        self._asked.append(self._connection.send(body, api_version=api_version))

    def take(self) -> Any:
        try:
            return self._connection.receive(self._asked.pop(0), Response, timeout_s=LONGEST_ANSWER_MS / 1000)
        except RawClientError:
            return None

    def close(self) -> None:
        self._connection.close()


class BrokerPlace:
    """A group at a running broker."""

    def __init__(self, broker: Broker, release: tuple[int, ...], group: str) -> None:
        self.release = release
        self.group = group
        self._address = find_coordinator(broker.address(), group, client_id="dialogue")
        self.lines: list[BrokerLine] = []
        self._wait_until_loaded()

    def _wait_until_loaded(self) -> None:
        with Connection(self._address, client_id="dialogue") as connection:
            leave = ConsumerGroupHeartbeatRequest(group_id=self.group, member_id="nobody", member_epoch=-1)
            while connection.ask(leave, ConsumerGroupHeartbeatResponse, api_version=0).error_code in NOT_YET:
                time.sleep(0.1)

    def line(self, client_id: str) -> BrokerLine:
        self.lines.append(BrokerLine(self._address, client_id))
        return self.lines[-1]

    def wait(self, ms: int) -> None:
        time.sleep(ms / 1000)


def hold(broker: Broker, release: tuple[int, ...], number: int, script: str) -> list[Outcome]:
    """One conversation with a broker."""
    place = BrokerPlace(broker, release, f"d{number}")
    try:
        return play(script, place)
    finally:
        for line in place.lines:
            line.close()


def main(
    *,
    version: Annotated[list[str] | None, typer.Option(help=f"A line of releases; by default {', '.join(LINES)}.")] = None,
    only: Annotated[str, typer.Option(help="Hold only conversations whose name has this text.")] = "",
) -> None:
    """Print each conversation in which broker and reference differ; the exit status is 0 if there is none."""
    scripts = {name: script for name, script in DIALOGUES.items() if only in name}
    differ = 0
    for line in version or LINES:
        jars = releases.broker_jars(line)
        release = tuple(int(part) for part in releases.version(jars).split("."))
        with Broker(jars=jars, properties=PROPERTIES) as broker, ThreadPoolExecutor(AT_ONCE) as pool:
            for topic in TOPICS:
                broker.create_topic(topic, 6)
            held = [pool.submit(hold, broker, release, number, script) for number, script in enumerate(scripts.values())]
            requests = 0
            for (name, script), holding in zip(scripts.items(), held, strict=True):
                real, reference = holding.result(), play(script, ReferencePlace(release))
                requests += len(real)
                if [one.found for one in real] != [one.found for one in reference]:
                    differ += 1
                    print(f"{line}: {name}")
                    for truth, ours in zip(real, reference, strict=True):
                        mark = "" if truth.found == ours.found else f"   the reference: {ours.found}"
                        print(f"    {truth.text:44} {truth.found:10}{mark}")
            print(
                f"Kafka {'.'.join(map(str, release))}: {len(scripts)} conversations, {requests} answers compared", file=sys.stderr
            )
    raise typer.Exit(1 if differ else 0)


if __name__ == "__main__":
    typer.run(main)

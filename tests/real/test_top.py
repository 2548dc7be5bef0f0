"""``top`` in a pseudo-terminal over the topics of a real broker: what is there, what comes, what keys do, and what it leaves behind."""

from __future__ import annotations

import json
import signal
import termios
import time

import pytest
from confluent_kafka import Producer

from tests.streaming.terminal.records import finding, group, rebalance
from tests.terminals import CONTROL, Terminal

TOPICS = {name: f"top-{name}" for name in ("findings", "groups", "events", "status")}
_LEAVES_PICTURE, _SHOWS_CURSOR = "\x1b[?1049l", "\x1b[?25h"


@pytest.fixture(scope="module")
def publish(broker):
    for topic in TOPICS.values():
        broker.create_topic(topic, 1, config={"cleanup.policy": "compact"})
    producer = Producer({"bootstrap.servers": broker.internal})

    def send(*records):
        for record in records:
            if "kind" in record:
                producer.produce(TOPICS["events"], json.dumps(record), key=f"{record['cluster']}/{record['group']}")
            elif "rule" in record:
                producer.produce(TOPICS["findings"], json.dumps(record), key=record["id"])
            elif "members" in record:
                producer.produce(TOPICS["groups"], json.dumps(record), key=f"{record['cluster']}/{record['group']}")
            else:
                producer.produce(TOPICS["status"], json.dumps(record), key="mirror/0")
        assert producer.flush(10) == 0

    return send


@pytest.fixture
def config(broker, publish, tmp_path):
    clients = ("billing-worker-1", "billing-worker-2")
    publish(
        group("orders", clients=("orders-worker-1",)),
        group("billing", state="PreparingRebalance", since_s=time.time() - 185, clients=clients, waits_for=(1,)),
        finding("billing", summary="billing-worker-2 keeps the others waiting"),
        rebalance("billing", at_s=time.time() - 600, cost=12.5).as_json(),
        {"partition": 0},
    )
    names = "\n".join(f'{key} = "{topic}"' for key, topic in TOPICS.items())
    file = tmp_path / "monitor.toml"
    file.write_text(f'[kafka]\nbootstrap_servers = "{broker.internal}"\n[topics]\n{names}\n')
    return file


def test_the_board_follows_the_topics_and_the_keys(config, publish):
    with Terminal("top", "--config", str(config)) as terminal:
        lines = terminal.shows("▸ billing", "1 rebalancing · 1 open finding", "UTC\n  group")
        assert lines[1].split() == ["group", "state", "for", "gen", "members", "waits", "for", "findings"]
        assert lines[2].split()[1:] == ["billing", "Preparing", "3", "min", "7", "2", "billing-worker-2", "1", "warning"]
        assert lines[3].split()[:2] == ["orders", "Stable"]

        terminal.shows("Last hour: 1 rebalance, 12.5 member-s without consuming")
        terminal.press("\r")
        terminal.shows("Waits for billing-worker-2 to rejoin", "Look at its poll loop.")
        publish(group("billing", since_s=time.time(), clients=("billing-worker-1",)), finding("billing", status="resolved"))
        terminal.shows("billing has been Stable for ")
        terminal.press("\x1b")
        terminal.shows("▸ billing", "0 rebalancing · 0 open findings")
        terminal.press("/ord\r")
        terminal.shows("▸ orders", "filter: ord")
        terminal.resize(160, 40)
        terminal.shows("generation")
        terminal.press("q")
        assert terminal.exit_status() == 0


@pytest.mark.parametrize("end", ["q", "\x03", signal.SIGTERM])
def test_the_terminal_is_as_it_was_whatever_ends_it(config, end):
    with Terminal("top", "--config", str(config)) as terminal:
        terminal.shows("▸ billing")
        assert termios.tcgetattr(terminal.inner) != terminal.before
        if isinstance(end, str):
            terminal.press(end)
        else:
            terminal.process.send_signal(end)
        assert terminal.exit_status() == 0
        assert termios.tcgetattr(terminal.inner) == terminal.before
        left = terminal.output.rpartition(_LEAVES_PICTURE)
        assert left[1]
        assert _SHOWS_CURSOR in left[2]
        assert CONTROL.sub("", left[2]) == ""


def test_topics_that_are_missing_are_said_in_the_picture_until_they_come(broker, tmp_path):
    names = {name: f"later-{name}" for name in TOPICS}
    file = tmp_path / "monitor.toml"
    topics = "\n".join(f'{key} = "{topic}"' for key, topic in names.items())
    file.write_text(f'[kafka]\nbootstrap_servers = "{broker.internal}"\n[topics]\n{topics}\n')
    with Terminal("top", "--config", str(file)) as terminal:
        terminal.shows("nothing new comes: cannot read the topic later-groups")
        for topic in names.values():
            broker.create_topic(topic, 1, config={"cleanup.policy": "compact"})
        terminal.shows("no monitor has run on this Kafka yet", "The monitor has not seen any group yet.")
        terminal.press("q")
        assert terminal.exit_status() == 0

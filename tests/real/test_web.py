"""The page over the topics of a real broker: what is there, what comes, what goes, and what it says when Kafka is away."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time

import pytest
import requests
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from coordinator_model.coordinator import Coordinator
from streaming.published import source
from streaming.published.page_state import KEPT_S, PageState
from streaming.published.records import seconds
from streaming.published.source import TopicsSource
from streaming.published.taking import TopicNames
from tests.golden import transcript
from tests.real.traffic import produce
from tests.streaming.web import history

TOPICS = {name: f"web-{name}" for name in ("findings", "groups", "status")}
PATIENCE_S = 30.0


@pytest.fixture(scope="module")
def kafka(broker):
    for topic in TOPICS.values():
        broker.create_topic(topic, 1, config={"cleanup.policy": "compact"})
    return broker


@pytest.fixture(scope="module")
def publish(kafka):
    producer = Producer({"bootstrap.servers": kafka.internal})

    def send(records):
        for record in records:
            if "members" in record and "kind" not in record:
                producer.produce(TOPICS["groups"], json.dumps(record), key=f"{record['cluster']}/{record['group']}")
            elif "rule" in record:
                producer.produce(TOPICS["findings"], json.dumps(record), key=record["id"])
            elif "newest_record_ms" in record:
                producer.produce(TOPICS["status"], json.dumps(record), key="mirror/0")
        assert producer.flush(10) == 0

    send.tombstone = lambda topic, key: (producer.produce(TOPICS[topic], None, key=key), producer.flush(10))
    return send


def config(kafka, folder, topics):
    names = "\n".join(f'{key} = "{topic}"' for key, topic in topics.items())
    file = folder / "monitor.toml"
    file.write_text(f'[kafka]\nbootstrap_servers = "{kafka.internal}"\n[topics]\n{names}\n')
    return str(file)


def watch(kafka):
    """A mirror of seven records, made once."""
    if "web-watched" in AdminClient({"bootstrap.servers": kafka.internal}).list_topics(timeout=10).topics:
        return
    kafka.create_topic("web-watched", 1, config={})
    producer = Producer({"bootstrap.servers": kafka.internal})
    for _ in range(7):
        producer.produce("web-watched", b"", partition=0)
    assert producer.flush(10) == 0


@pytest.fixture
def page(kafka, publish, tmp_path):
    watch(kafka)
    status = {
        "topic": "web-watched",
        "next_offset": 4,
        "partition": 0,
        "newest_record_ms": int(time.time() * 1000),
        "groups": 2,
        "counters": {"tick": 7},
    }
    publish([*history.orders(), *history.quiet(0), status])
    command = [sys.executable, "-m", "streaming.cli", "web", "--config", config(kafka, tmp_path, TOPICS), "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        yield re.search(r"http://\S+", process.stderr.readline())[0]
        process.send_signal(signal.SIGTERM)
        assert process.wait(15) == 0
        assert process.stderr.read() == ""


def seen(page, condition, path=""):
    deadline = time.monotonic() + PATIENCE_S
    while not condition(html := requests.get(page + path, timeout=10).text):
        assert time.monotonic() < deadline, html
        time.sleep(0.1)
    return html


def test_what_the_topics_hold_is_shown_and_followed(page, publish):
    html = seen(page, lambda html: "The topics are being read" not in html)
    assert "Waits for orders-2 to rejoin" in html
    assert "1 error" in html
    assert "billing-0000" in html
    assert "The monitor does not run" not in html
    assert "web-watched" in seen(page, lambda html: "3 records" in html, "sight")
    after = history.Group("orders", ["orders-0"], static=True)
    after.view("Stable", history.NOW_S)
    publish(after.records)
    seen(page, lambda html: "Waits for orders-2" not in html)
    publish.tombstone("groups", "prod/billing-0000")
    seen(page, lambda html: "billing-0000" not in html)


def test_records_of_another_program_are_left_out_and_counted(page, publish):
    seen(page, lambda html: "The topics are being read" not in html)
    publish([{"group": "of-another-program", "cluster": "prod", "members": [{}]}, {"rule": "R-01", "id": "bad"}])
    html = seen(page, lambda html: "2 records could not be read" in html, "sight")
    assert "of-another-program" not in requests.get(page, timeout=10).text
    assert html


def test_that_a_topic_is_missing_is_said_on_the_page_until_it_is_there(kafka, tmp_path):
    late = {key: f"web-late-{key}" for key in TOPICS}
    command = [sys.executable, "-m", "streaming.cli", "web", "--config", config(kafka, tmp_path, late), "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        page = re.search(r"http://\S+", process.stderr.readline())[0]
        try:
            seen(page, lambda html: "cannot read the topic web-late-groups" in html and "it does not exist" in html)
            for topic in late.values():
                kafka.create_topic(topic, 1, config={"cleanup.policy": "compact"})
            html = seen(page, lambda html: "Nothing new comes" not in html and "being read" not in html)
            assert "No group has been seen yet." in html
            assert "The monitor does not run" in html
        finally:
            process.terminate()
            process.wait(15)


def test_events_are_read_from_four_hours_ago_on_and_their_topic_may_come_late(kafka, publish, monkeypatch):
    monkeypatch.setattr(source, "_ASK_AGAIN_S", 0.2)
    publish([])
    names = TopicNames(TOPICS["groups"], TOPICS["findings"], TOPICS["status"], "web-events", "web-lag")
    state = PageState()
    with TopicsSource(state, lambda: {"bootstrap.servers": kafka.internal}, names):
        wait_until(lambda: state.complete and state.no_events)
        assert "web-events" in state.no_events
        assert "it does not exist" in state.no_events
        kafka.create_topic("web-events", 2, config={})
        wait_until(lambda: state.no_events is None)
        produce_events(kafka, 0.0, "late")
        wait_until(lambda: ids(state) == {"late"})
    produce_events(kafka, KEPT_S + 600, "old")
    produce_events(kafka, KEPT_S - 600, "new")
    again = PageState()
    with TopicsSource(again, lambda: {"bootstrap.servers": kafka.internal}, names):
        wait_until(lambda: again.complete and len(ids(again)) >= 2)
        assert ids(again) == {"late", "new"}


def test_a_trace_is_printed_of_the_events_of_one_group_since_a_time(kafka, tmp_path):
    kafka.create_topic("web-traced", 2, config={})
    producer = Producer({"bootstrap.servers": kafka.internal})
    shift_s = time.time() - history.NOW_S
    for event in (line for line in [*history.orders(), *history.quiet(1)] if "kind" in line):
        at_s = seconds(event["at"]) + shift_s
        value = json.dumps(event | {"at": history.iso(at_s)})
        producer.produce("web-traced", value, key=f"prod/{event['group']}", partition=0, timestamp=int(at_s * 1000))
    assert producer.flush(10) == 0
    command = [sys.executable, "-m", "streaming.cli", "trace", "orders"]
    command += ["--config", config(kafka, tmp_path, TOPICS | {"events": "web-traced"})]

    def rebalances(*options):
        done = subprocess.run([*command, *options], capture_output=True, text=True, check=True, timeout=120)
        trace = json.loads(done.stdout)
        assert trace["otherData"]["group"] == "orders"
        return [event["name"] for event in trace["traceEvents"] if event["ph"] == "X" and event["tid"] == 12]

    assert sorted(rebalances()) == ["member joined", "session ended"]
    assert rebalances("--since", "5m") == ["session ended"]
    command[-1] = config(kafka, tmp_path, TOPICS | {"events": "none"})
    missing = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert missing.returncode == 2
    assert "cannot read the topic none" in missing.stderr


def produce_events(kafka, age_s, name):
    """One event of a group of its own, written some time ago."""
    producer, at_s = Producer({"bootstrap.servers": kafka.internal}), time.time() - age_s
    event = next(line for line in history.orders() if line.get("kind") == "rebalance_began")
    value = json.dumps(event | {"id": name, "group": name, "at": history.iso(at_s)})
    producer.produce("web-events", value, partition=len(name) % 2, timestamp=int(at_s * 1000))
    assert producer.flush(10) == 0


def ids(state):
    with state.lock:
        return {event.id for past in state.groups.values() for event in past.events}


def wait_until(condition):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_the_frames_of_a_finding_are_shown_field_by_field_as_long_as_the_mirror_holds_them(kafka, page_with_mirror):
    page, finding = page_with_mirror
    assert "Show them field by field" in requests.get(f"{page}findings/{finding['id']}", timeout=10).text
    words = re.sub(r"<[^>]+>|\s+", " ", requests.get(f"{page}findings/{finding['id']}/frames", timeout=30).text)
    assert "member_id" in words
    assert finding["member_id"] in words
    assert "cannot be shown" not in words
    place = TopicPartition("web-mirror", 0, finding["evidence"][0]["offset"] + 1)
    admin = AdminClient({"bootstrap.servers": kafka.internal})
    admin.delete_records([place])[place].result(20)
    later = requests.get(f"{page}findings/{finding['id']}/frames", timeout=30).text
    assert "It cannot be shown: <bdi>the mirror no longer holds it</bdi>" in later


@pytest.fixture
def page_with_mirror(kafka, publish, tmp_path):
    """A page, and a finding whose frames are in the mirror at the offsets that it names."""
    kafka.create_topic("web-mirror", 1, config={})
    producer = Producer({"bootstrap.servers": kafka.internal})
    model, found = Coordinator(topic="web-mirror", partition=0, settings=transcript.SETTINGS), []
    for record in transcript.read("violation-leader-never-syncs-4.1.2"):
        produce(producer, "web-mirror", 0, record)
        found += model.receive(record)
    assert producer.flush(10) == 0
    finding = next(one.as_json() for one in found if one.rule == "R-02")
    publish([finding])
    command = [sys.executable, "-m", "streaming.cli", "web", "--listen", "127.0.0.1:0"]
    command += ["--config", config(kafka, tmp_path, TOPICS | {"mirror": "web-mirror"})]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        page = re.search(r"http://\S+", process.stderr.readline())[0]
        seen(page, lambda html: "being read" not in html)
        yield page, finding
        process.terminate()
        assert process.wait(15) == 0

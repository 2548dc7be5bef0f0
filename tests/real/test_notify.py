"""``rebalance-monitor notify`` as a process, against a real broker, a real Alertmanager, and a web server that keeps what it is sent.

Findings are what the model publishes about golden transcripts.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import functools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import requests
from confluent_kafka import Producer

from streaming.demo.broker import HOST, free_port
from streaming.kafka.connection import SILENT_LOGGER
from streaming.notify.notification import alert_name
from tests.needs import path_of
from tests.real import harness
from tests.real.harness import raw_topic
from tests.streaming.notify.said import of_rule, worsening
from tests.streaming.web import history

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

CRITICAL = of_rule("violation-stale-generation-accepted-4.3.1", "G-02")
ERROR = of_rule("violation-zombie-generation-4.1.2", "G-01")
TWINS = of_rule("violation-same-instance-3.9.2", "P-11")
WORSENING = worsening()
WAIT_S = 240  # a process takes half a second to start, and a minute on a machine that is busy enough
wait_for = functools.partial(harness.wait_for, timeout_s=WAIT_S)
HEARTBEAT, STALLED = "RebalanceMonitorHeartbeat", "RebalanceMonitorStalled"


class Sink:
    """Keeps every request; answers as it is told to."""

    def __init__(self, port: int = 0) -> None:
        self.requests: list[tuple[dict[str, str], Any]] = []
        self.answer = (200, "")
        sink = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                sink.requests.append((dict(self.headers), json.loads(body)))
                status, text = sink.answer
                self.send_response(status)
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer((HOST, port), Handler)
        self.url = f"http://{HOST}:{self._server.server_port}/secret"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def bodies(self) -> list[Any]:
        return [body for _, body in self.requests]

    @property
    def told(self) -> list[tuple[str, str]]:
        """Finding id and event of all notices of the template "generic"."""
        return [(notice["finding"]["id"], notice["event"]) for body in self.bodies for notice in body["notices"]]


@pytest.fixture
def sink() -> Iterator[Sink]:
    running = Sink()
    yield running
    running.close()


class Alertmanager:
    """Debian's, with one route, to a sink."""

    def __init__(self, folder: Path, sink: Sink) -> None:
        self.address = f"{HOST}:{free_port()}"
        self._folder = folder
        (folder / "alertmanager.yml").write_text(
            "route:\n  receiver: sink\n  group_by: ['...']\n  group_wait: 0s\n  group_interval: 1s\n"
            f"receivers:\n- name: sink\n  webhook_configs:\n  - url: {sink.url}\n"
        )
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        binary = path_of("prometheus-alertmanager")
        with (self._folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    binary,
                    f"--config.file={self._folder / 'alertmanager.yml'}",
                    f"--storage.path={self._folder / 'data'}",
                    f"--web.listen-address={self.address}",
                    "--cluster.listen-address=",
                ],
                stdout=log,
                stderr=log,
            )
        wait_for(self._is_ready, "Alertmanager is ready")

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(30)

    def alerts(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = requests.get(f"http://{self.address}/api/v2/alerts", timeout=10).json()
        return found

    def named(self, name: str) -> list[dict[str, Any]]:
        return [alert for alert in self.alerts() if alert["labels"]["alertname"] == name]

    def _is_ready(self) -> bool:
        with contextlib.suppress(requests.RequestException):
            return requests.get(f"http://{self.address}/-/ready", timeout=10).ok
        return False


@pytest.fixture
def alertmanager(tmp_path, sink) -> Iterator[Alertmanager]:
    path_of("prometheus-alertmanager")
    folder = tmp_path / "alertmanager"
    folder.mkdir()
    manager = Alertmanager(folder, sink)
    yield manager
    manager.stop()


class Topics:
    """Topics of one test."""

    def __init__(self, broker: Any, name: str) -> None:
        self.broker = broker
        self.findings, self.status, self.notifications = f"{name}-findings", f"{name}-status", f"{name}-notifications"
        for topic in (self.findings, self.status):
            broker.create_topic(topic, 1, config={"cleanup.policy": "compact"})
        self._producer = Producer({"bootstrap.servers": broker.internal}, logger=SILENT_LOGGER)

    def publish(self, *states: dict[str, Any]) -> None:
        for state in states:
            self._producer.produce(self.findings, json.dumps(state), state["id"])
        assert self._producer.flush(30) == 0

    def produce(self, topic: str, *records: dict[str, Any]) -> None:
        for record in records:
            self._producer.produce(topic, json.dumps(record))
        assert self._producer.flush(30) == 0

    def sign_of_life(self, written_s: float) -> None:
        status = {"topic": "rebalance-mirror", "partition": 0, "written_ms": int(written_s * 1000)}
        self._producer.produce(self.status, json.dumps(status), "rebalance-mirror/0")
        assert self._producer.flush(30) == 0


@pytest.fixture
def topics(broker, request):
    return Topics(broker, request.node.name.replace("_", "-")[:80])


class Notifier:
    """The process, and what it says."""

    def __init__(self, folder: Path, topics: Topics, sections: str) -> None:
        self.config = folder / "monitor.toml"
        self.config.write_text(
            f'cluster = "tested"\n[kafka]\nbootstrap_servers = "{topics.broker.internal}"\n'
            f'[topics]\nfindings = "{topics.findings}"\nstatus = "{topics.status}"\nnotifications = "{topics.notifications}"\n'
            f"[notify.wait_s]\nwarning = 0\nerror = 0\n{sections}"
        )
        self.said: list[str] = []
        self._process: subprocess.Popen[str] | None = None

    def start(self, *options: str, **environment: str) -> None:
        self.said.clear()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "streaming.cli", "notify", "--config", str(self.config), *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | environment,
        )
        threading.Thread(target=self._listen, args=(self._process,), daemon=True).start()
        wait_for(
            lambda: (self.says("open findings in") or self.says("open finding in")) or self._process.poll() is not None,
            "the notifier has read what there is",
        )
        assert self._process.poll() is None, self.said

    def says(self, words: str) -> bool:
        return any(words in line for line in self.said)

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait(30)

    def end(self) -> int:
        """By SIGTERM; gives the exit status."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(60)

    def close(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill()

    def _listen(self, process: subprocess.Popen[str]) -> None:
        assert process.stderr is not None
        for line in process.stderr:
            self.said.append(line.rstrip())


@pytest.fixture
def notifier(tmp_path, topics):
    started: list[Notifier] = []

    def make(sections: str) -> Notifier:
        started.append(Notifier(tmp_path, topics, sections))
        return started[-1]

    yield make
    for one in started:
        one.close()


def test_a_finding_becomes_one_alert_that_ends_with_it_and_people_hear_of_both(topics, alertmanager, sink, notifier):
    alertmanager.start()
    process = notifier(f'[notify.alertmanager.main]\nurl = "http://{alertmanager.address}"\nkeep_firing_s = 0\n')
    process.start()

    topics.publish(CRITICAL[0])
    (alert,) = wait_for(lambda: alertmanager.named("RebalanceStaleGenerationAccepted"), "the alert is there")
    group = CRITICAL[0]["group"]
    assert alert["labels"] == {
        "alertname": "RebalanceStaleGenerationAccepted",
        "cluster": "lab",
        "group": group,
        "rule": "G-02",
        "severity": "critical",
    }
    assert alert["annotations"]["summary"] == CRITICAL[0]["summary"]
    assert alert["annotations"]["action"] == CRITICAL[0]["action"]
    assert CRITICAL[0]["member_id"] in alert["annotations"]["who"]
    assert alert["startsAt"].startswith(CRITICAL[0]["opened_at"][:22])

    topics.publish(CRITICAL[1], *TWINS[:2])
    both = f"{TWINS[0]['id']}, {TWINS[1]['id']}"
    shared = alert_name(TWINS[0])
    wait_for(lambda: [alert["annotations"]["findings"] for alert in alertmanager.named(shared)] == [both], "one alert for both")
    assert len(alertmanager.named("RebalanceStaleGenerationAccepted")) == 1

    topics.publish(*CRITICAL[2:], TWINS[2])
    wait_for(lambda: not alertmanager.named("RebalanceStaleGenerationAccepted"), "the alert ends")
    assert alertmanager.named(shared), "one of the two is still open"
    topics.publish(TWINS[3])
    wait_for(lambda: not alertmanager.named(shared), "it ends with the last")

    def observed(status: str) -> list[str]:
        return [body["commonLabels"].get("rule") for body in sink.bodies if body["status"] == status]

    wait_for(lambda: {"G-02", "P-11"} <= set(observed("resolved")), "people hear of the ends")
    assert observed("firing").count("G-02") == observed("resolved").count("G-02") == 1
    assert process.end() == 0
    assert process.says("sent open critical G-02")


def test_a_finding_that_gets_worse_is_an_alert_of_another_severity(topics, alertmanager, notifier):
    alertmanager.start()
    process = notifier(f'[notify.alertmanager.main]\nurl = "http://{alertmanager.address}"\nkeep_firing_s = 0\n')
    process.start()

    def severities() -> list[str]:
        return [alert["labels"]["severity"] for alert in alertmanager.alerts() if alert["labels"].get("rule") == "R-01"]

    topics.publish(WORSENING[0])
    wait_for(lambda: severities() == ["warning"], "a warning")
    topics.publish(WORSENING[1])
    wait_for(lambda: severities() == ["error"], "an error, and no warning any more")
    topics.publish(WORSENING[2])
    wait_for(lambda: severities() == [], "nothing")


def test_a_dead_monitor_is_an_alert_and_stops_the_heartbeats(topics, alertmanager, sink, notifier):
    alertmanager.start()
    beats = Sink()
    process = notifier(
        f'[notify]\nstalled_s = 600\n[notify.alertmanager.main]\nurl = "http://{alertmanager.address}"\nkeep_firing_s = 0\nresend_s = 5\n'
        "[notify.heartbeat.deadman]\nevery_s = 1\n"
    )
    try:
        dead_s = time.time() - 3600
        topics.sign_of_life(dead_s)
        process.start(REBALANCE_MONITOR_NOTIFY__HEARTBEAT__DEADMAN__URL=beats.url)
        (alert,) = wait_for(lambda: alertmanager.named(STALLED), "the alert that the monitor is dead")
        assert (alert["labels"]["rule"], alert["labels"]["severity"]) == ("V-05", "critical")
        assert not alertmanager.named(HEARTBEAT)
        assert not beats.requests

        wait_for(lambda: process.says("sent open critical V-05"), "it is written down")
        process.kill()
        process.start(REBALANCE_MONITOR_NOTIFY__HEARTBEAT__DEADMAN__URL=beats.url)
        wait_for(lambda: alertmanager.named(STALLED), "it still is")
        assert not process.says("sent open critical V-05"), "it was told before the restart"

        topics.sign_of_life(time.time())
        wait_for(lambda: alertmanager.named(HEARTBEAT) and not alertmanager.named(STALLED), "it lives again")
        wait_for(lambda: len(beats.requests) >= 2, "and so does the heartbeat")
        assert process.says("sent resolved critical V-05")
    finally:
        beats.close()


def test_nothing_is_lost_while_a_receiver_is_away_and_nothing_comes_twice(topics, notifier):
    port = free_port()
    process = notifier('[notify]\nretry_wait_max_s = 1\n[notify.webhook.hook]\ngroup_by = "finding"\n')
    address = {"REBALANCE_MONITOR_NOTIFY__WEBHOOK__HOOK__URL": f"http://{HOST}:{port}/secret"}
    process.start(**address)
    topics.publish(CRITICAL[0], ERROR[0])
    wait_for(lambda: process.says("webhook/hook: delivery failed"), "it says so")
    topics.publish(CRITICAL[-1])
    process.kill()

    process.start(**address)
    wait_for(lambda: process.says("webhook/hook: delivery failed"), "it is still away")
    sink = Sink(port)
    try:
        wait_for(lambda: len(sink.told) >= 2, "both arrive")
        assert sorted(sink.told) == sorted([(CRITICAL[0]["id"], "over"), (ERROR[0]["id"], "open")])
        keys = [headers["Idempotency-Key"] for headers, _ in sink.requests]
        assert len(set(keys)) == 2

        wait_for(lambda: sum(process.says(f"sent {event}") for event in ("open error", "over already critical")) == 2, "noted")
        process.kill()
        process.start(**address)
        topics.publish(ERROR[-1])
        wait_for(lambda: len(sink.told) >= 3, "the end of it arrives")
        assert sink.told[2:] == [(ERROR[0]["id"], "resolved")], "nothing was said twice"
        assert not process.says("secret")
        assert process.end() == 0
        assert process.says("stopped; sent to webhook/hook 1")
        keys = {message.key().decode() for message in raw_topic(topics.broker.internal, topics.notifications)}
        remembered = {key.rpartition("/")[2] for key in keys if "/@alive/" not in key}
        assert remembered == {CRITICAL[0]["id"], ERROR[0]["id"], "@0"}
    finally:
        sink.close()


def test_a_refusal_is_said_once_and_not_tried_again(topics, sink, notifier):
    sink.answer = (400, "no_such_channel\nand more")
    process = notifier('[notify.webhook.hook]\ngroup_by = "finding"\ngroup_wait_s = 0\ntemplate = "slack"\n')
    process.start("--metrics", f"{HOST}:0", REBALANCE_MONITOR_NOTIFY__WEBHOOK__HOOK__URL=sink.url)
    topics.publish(CRITICAL[0], ERROR[0])
    wait_for(lambda: len(sink.requests) >= 2, "both are tried")
    sink.answer = (200, "ok")
    topics.publish(TWINS[0])
    wait_for(lambda: process.says("sent open warning P-11"), "the next is taken")
    url = next(line for line in process.said if "metrics at" in line).split()[-1]
    measured = requests.get(url, timeout=10).text
    receiver = '{receiver="webhook/hook"}'
    assert {line for line in measured.splitlines() if line.startswith("rebalance_notify_") and "build_info" not in line} == {
        f"rebalance_notify_sent_total{receiver} 1.0",
        f"rebalance_notify_rejected_total{receiver} 2.0",
        f"rebalance_notify_failures{receiver} 0.0",
        "rebalance_notify_kafka_up 1.0",
        "rebalance_notify_open_findings 3.0",
        "rebalance_notify_unreadable_records_total 0.0",
    }
    assert [requests.get(url.replace("metrics", probe), timeout=10).status_code for probe in ("healthz", "readyz")] == [200, 200]
    assert len(sink.requests) == 3
    assert sum("answered 400: no_such_channel" in line for line in process.said) == 1
    assert not process.says("and more")
    assert process.end() == 0
    assert process.says("sent to webhook/hook 1 (rejected 2)")


def test_once_tells_what_there_is_and_ends(topics, sink, notifier):
    topics.publish(CRITICAL[0], ERROR[0])
    process = notifier('[notify.stdout]\n[notify.webhook.hook]\ngroup_by = "cluster"\n')
    command = [sys.executable, "-m", "streaming.cli", "notify", "--config", str(process.config), "--once"]
    environment = os.environ | {"REBALANCE_MONITOR_NOTIFY__WEBHOOK__HOOK__URL": sink.url}

    dry = subprocess.run([*command, "--dry-run"], env=environment, capture_output=True, text=True, timeout=WAIT_S, check=True)
    shown = [json.loads(line) for line in dry.stdout.splitlines()]
    assert sorted(line["receiver"] for line in shown) == ["stdout", "stdout", "webhook/hook"]
    assert not sink.requests

    for expected in (2, 0):  # the second time there is nothing new
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=WAIT_S, check=True)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        assert len(lines) == expected
        assert len(sink.bodies) == 1
    assert len(sink.bodies[0]["notices"]) == 2


def test_a_digest_of_the_week_comes_at_its_time(topics, sink, notifier):
    group = history.Group("orders", ["orders-1", "orders-2"])
    now_s = time.time()
    group.rebalance(now_s - 3_600, cause="member left", starter=1, join_s=8)
    group.rebalance(now_s - 8 * 86_400, cause="new member", starter=1)  # a week and a day ago
    events, groups = f"{topics.findings}-events", f"{topics.findings}-groups"
    for name, config in ((events, {}), (groups, {"cleanup.policy": "compact"})):
        topics.broker.create_topic(name, 1, config=config)
    topics.produce(events, *(record for record in group.records if "kind" in record))
    group.finding("R-01", "member never rejoins", "error", now_s - 3_600)
    topics.publish(group.records[-1])
    due = dt.datetime.fromtimestamp(now_s + 20, dt.UTC)
    process = notifier(f'[notify.digest.weekly]\nday = "{due:%A}"\nat = {due:%H:%M:%S}\n'.replace(f"{due:%A}", f"{due:%A}".lower()))
    process.start(
        REBALANCE_MONITOR_NOTIFY__DIGEST__WEEKLY__URL=sink.url,
        REBALANCE_MONITOR_TOPICS__EVENTS=events,
        REBALANCE_MONITOR_TOPICS__GROUPS=groups,
    )
    [body] = wait_for(lambda: sink.bodies, "the digest comes")
    assert body["digest"] == "weekly"
    assert "had 1 rebalance, which cost" in body["lines"][0]
    assert any(line.startswith("orders: 1 rebalance,") for line in body["lines"])
    assert "1 finding still open: 1 error." in body["lines"]
    assert process.end() == 0


def test_a_test_shows_who_can_be_reached(topics, alertmanager, sink, notifier):
    alertmanager.start()
    process = notifier(
        f'[notify.alertmanager.main]\nurl = "http://{alertmanager.address}"\n[notify.webhook.hook]\n[notify.webhook.gone]\n'
    )
    environment = os.environ | {
        "REBALANCE_MONITOR_NOTIFY__WEBHOOK__HOOK__URL": sink.url,
        "REBALANCE_MONITOR_NOTIFY__WEBHOOK__GONE__URL": f"http://{HOST}:{free_port()}/secret",
    }
    command = [sys.executable, "-m", "streaming.cli", "notify", "test", "--config", str(process.config), "--severity", "critical"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 3
    assert "accepted    alertmanager/main" in done.stderr
    assert "accepted    webhook/hook" in done.stderr
    assert "unreachable webhook/gone: 127.0.0.1:" in done.stderr
    assert "secret" not in done.stderr
    (alert,) = alertmanager.named("RebalanceMonitorTest")
    assert alert["labels"]["severity"] == "critical"

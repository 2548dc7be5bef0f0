"""A real Prometheus scrapes a running monitor that watches real clients, and is asked what they did."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from contextlib import contextmanager

import pytest
import requests
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from harness import kafka_sink, running_tap, wait_for
from monitor_process import MonitorProcess

from streaming.commands.run import run
from streaming.demo.broker import HOST, Broker, free_port
from streaming.demo.raw_client import Connection, RawMember, find_coordinator, share
from streaming.metrics.server import Probes, opened
from streaming.metrics.tap import collector
from tests.needs import needs
from tests.processes import started
from tests.real.brokers import frozen
from tests.streaming.metrics.documented import panels, queries
from tests.streaming.metrics.prometheus import PATIENCE_S, Prometheus

pytestmark = [
    pytest.mark.real,
    pytest.mark.timeout(3_000),
    needs("prometheus"),
]

MIRROR, TOPIC, CLUSTER = "mirror", "t", "shop"
PARTITIONS = 2


class Scene:
    """Broker, tap, monitor and Prometheus; clients come and go through ``front``."""

    def __init__(self, broker, front, monitor, prometheus, target):
        self.broker, self.front, self.monitor, self.prometheus, self.target = broker, front, monitor, prometheus, target

    def text(self):
        with urllib.request.urlopen(f"http://{self.target}/metrics", timeout=30) as answer:
            return answer.read().decode()


@contextmanager
def notifying(monitor):
    """A notifier that prints; where its metrics are."""
    command = [sys.executable, "-m", "streaming.cli", "notify", "--config", str(monitor.config), "--metrics", f"{HOST}:0"]
    receiver = {"REBALANCE_MONITOR_NOTIFY__STDOUT__MINIMUM_SEVERITY": "info", "REBALANCE_MONITOR_TOPICS__NOTIFICATIONS": "notified"}
    with started(command, env=os.environ | receiver, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        yield next(line for line in process.stderr if "metrics at" in line).split("http://")[1].partition("/")[0]


@contextmanager
def measuring(tap, sink):
    """Where the metrics of a tap are."""
    well = Probes(lambda: None, lambda: None)
    with opened(f"{HOST}:0", collector(tap, sink), well, option="", remedy="") as url:
        yield url.split("http://")[1].partition("/")[0]


class Valve:
    """A sink that can be opened once there is a topic: the tap listens before the broker is up, which looks at what it advertises."""

    def __init__(self):
        self.sink = None

    def write(self, record):
        if self.sink is not None:
            self.sink.write(record)


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    folder = tmp_path_factory.mktemp("metrics")
    front, valve = f"{HOST}:{free_port()}", Valve()
    broker = Broker(advertised={"PLAINTEXT": front})
    with running_tap([f"{front}={broker.address()}"], valve, cluster=CLUSTER) as tap, broker:
        broker.create_topic(TOPIC, 2)
        broker.create_topic(MIRROR, PARTITIONS)
        with kafka_sink(broker.internal, topic=MIRROR, cluster=CLUSTER) as sink:
            valve.sink = sink
            monitor = MonitorProcess(
                folder,
                broker.internal,
                "metrics",
                mirror=MIRROR,
                quality={"enabled": False},
                metrics={"enabled": True, "listen": f"{HOST}:0"},
                lag={"enabled": True, "every_s": 1},
            ).start()
            try:
                monitor.wait_until_said("watching", PATIENCE_S)
                (said,) = [line for line in monitor.said if "metrics at http://" in line]
                target = said.split("http://")[1].partition("/")[0]
                with notifying(monitor) as notifier, measuring(tap, sink) as tapped:
                    prometheus = Prometheus(folder, target, notifier, tapped)
                    try:
                        yield Scene(broker, front, monitor, prometheus, target)
                    finally:
                        prometheus.close()
            finally:
                monitor.kill()
                valve.sink = None


@contextmanager
def member(front, group, name, **fields):
    coordinator = find_coordinator(front, group, client_id=name)
    with Connection(coordinator, client_id=name, timeout_s=60) as connection:
        connection.introduce()
        yield RawMember(
            connection=connection, group=group, topic=TOPIC, session_timeout_ms=1_200_000, rebalance_timeout_ms=1_200_000, **fields
        )


def group_metric(name, group, **labels):
    pairs = {"cluster": CLUSTER, "group": group, **labels}
    return f"{name}{{{','.join(f'{label}={json.dumps(value)}' for label, value in pairs.items())}}}"


def test_prometheus_knows_what_the_clients_did(scene):
    """A member forms a group, leads it into a second generation, is refused, and asks for what was never there."""
    prometheus = scene.prometheus
    with member(scene.front, "orders", "worker") as worker:
        for generation in (1, 2):
            joined = worker.enter()
            worker.sync(share(TOPIC, 2, joined.members))
            prometheus.wait(group_metric("rebalance_group_generation", "orders"), generation, PATIENCE_S)
        assert worker.heartbeat() == 0
        assert worker.heartbeat(generation=1) == 22
        prometheus.wait(group_metric("rebalance_group_state", "orders", state="Stable"), 1)
        prometheus.wait(f"sum({group_metric('rebalance_group_state', 'orders')})", 1)
        prometheus.wait(group_metric("rebalance_group_members", "orders"), 1)
        prometheus.wait(group_metric("rebalance_group_rebalances_total", "orders", cause="new_member"), 1)
        prometheus.wait(group_metric("rebalance_group_rebalances_total", "orders", cause="leader_rejoined"), 1)
        prometheus.wait(group_metric("rebalance_group_join_duration_seconds_count", "orders"), 2)
        prometheus.wait(f'rebalance_phase_duration_seconds_count{{cluster="{CLUSTER}",phase="sync"}}', 2)
        median = f'histogram_quantile(0.5, rebalance_phase_duration_seconds_bucket{{cluster="{CLUSTER}",phase="join"}})'
        assert 0 < wait_for(lambda: prometheus.value(median), "there is a median", PATIENCE_S) < 600
        refused = group_metric("rebalance_group_errors_total", "orders", api="Heartbeat", error="ILLEGAL_GENERATION")
        prometheus.wait(refused, 1)
        total = f'rebalance_errors_total{{cluster="{CLUSTER}",api="Heartbeat",error="ILLEGAL_GENERATION"}}'
        prometheus.wait(total, 1)


def test_an_open_finding_is_shown_by_rule_and_for_its_group(scene):
    """A member that was fenced goes on."""
    prometheus = scene.prometheus
    with member(scene.front, "fenced", "first", instance_id="i") as first:
        joined = first.enter()
        first.sync(share(TOPIC, 2, joined.members))
        with member(scene.front, "fenced", "second", instance_id="i") as second:
            second.enter()
            second.sync()

            def fenced_and_goes_on():
                assert first.heartbeat() == 82
                return prometheus.ask(group_metric("rebalance_group_open_findings", "fenced", rule="S-02"))

            (labels, count), *_ = wait_for(fenced_and_goes_on, "the finding is shown", PATIENCE_S)
            assert count == 1
            by_rule = f'rebalance_open_findings{{cluster="{CLUSTER}",rule="S-02",severity="{labels["severity"]}"}}'
            prometheus.wait(by_rule, 1)
            prometheus.wait(by_rule.replace("open_findings", "findings_total"), 1)
            opened = scene.monitor.topic("findings").values()
            assert [told["severity"] for told in opened if told["rule"] == "S-02"] == [labels["severity"]]


def test_the_lag_of_a_group_is_what_its_commits_leave(scene):
    producer = Producer({"bootstrap.servers": scene.broker.internal})
    for _ in range(10):
        producer.produce(TOPIC, b"record", partition=0)
    assert producer.flush(60) == 0
    consumer = Consumer({"bootstrap.servers": scene.front, "group.id": "behind"})
    try:
        consumer.commit(offsets=[TopicPartition(TOPIC, 0, 3)], asynchronous=False)
        scene.prometheus.wait(group_metric("rebalance_group_lag_records", "behind"), 7, PATIENCE_S)
        scene.prometheus.wait(group_metric("rebalance_group_partition_lag_records", "behind", topic=TOPIC, partition="0"), 7)
    finally:
        consumer.close()


def test_each_query_of_a_dashboard_and_of_the_documents_finds_something(scene):
    """While a finding is open, as it is since the test before, and a group is not settled, as here: its leader sends no assignment."""
    with member(scene.front, "unsettled", "leader") as leader:
        leader.enter()
        wanted = dict.fromkeys([*panels(), *queries()])
        troubles = ('outcome!="replayed"', "error!~", "> 1000")
        only_with_trouble = {query for query in wanted if any(trouble in query for trouble in troubles)}

        def without():
            shorter = {query: query.replace("[5m]", "[1m]").replace("offset 15m", "offset 1s") for query in wanted}
            wanted_still = [query for query in wanted if not scene.prometheus.ask(shorter[query])]
            for query in set(wanted) - set(wanted_still):
                del wanted[query]
            return not wanted or set(wanted) <= only_with_trouble

        wait_for(without, f"each finds something: {wanted}", PATIENCE_S)


def test_the_series_of_a_deleted_group_go(scene):
    prometheus = scene.prometheus
    with member(scene.front, "shortlived", "visitor") as visitor:
        joined = visitor.enter()
        visitor.sync(share(TOPIC, 2, joined.members))
        prometheus.wait(group_metric("rebalance_group_members", "shortlived"), 1)
        visitor.leave()
    admin = AdminClient({"bootstrap.servers": scene.front})
    admin.delete_consumer_groups(["shortlived"])["shortlived"].result(60)
    any_series = f'{{cluster="{CLUSTER}",group="shortlived"}}'
    wait_for(
        lambda: not prometheus.ask(any_series) and prometheus.ask(f'{{cluster="{CLUSTER}",group="orders"}}'),
        "the deleted group has no series, and others have",
        PATIENCE_S,
    )
    prometheus.wait(f'rebalance_groups{{cluster="{CLUSTER}",state="Dead"}}', 1)
    prometheus.wait(group_metric("rebalance_group_generation", "orders"), 2)


def test_the_monitor_says_how_it_is(scene):
    prometheus = scene.prometheus
    prometheus.wait("rebalance_monitor_up", 1)
    prometheus.wait("sum(rebalance_monitor_restarts_total)", 0)
    wait_for(lambda: prometheus.value("rebalance_monitor_batch_duration_seconds_count"), "there was a batch", PATIENCE_S)
    prometheus.wait("count(rebalance_monitor_state_bytes > 0)", PARTITIONS)
    wait_for(lambda: prometheus.value("max(rebalance_monitor_lag_records)") is not None, "lag is known", PATIENCE_S)
    # Against what was mirrored, not against a clock: the machine may be slow.
    status = scene.monitor.status()
    frames = sum(count for told in status for *_, count in told["frames"])
    assert frames > 0
    wait_for(lambda: (prometheus.value("sum(rebalance_monitor_frames_total)") or 0) >= frames, "the frames are counted", PATIENCE_S)
    ticks = {told["partition"]: told["last_tick_ms"] / 1000 for told in status}
    assert set(ticks) == set(range(PARTITIONS))
    for partition, tick_s in ticks.items():
        newest = f'rebalance_monitor_last_tick_timestamp_seconds{{partition="{partition}"}}'
        wait_for(lambda newest=newest, tick_s=tick_s: (prometheus.value(newest) or 0) >= tick_s, "the tick is shown", PATIENCE_S)


def test_promtool_has_no_complaint_about_the_living_endpoint(scene):
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=scene.text(), capture_output=True, text=True, check=False, timeout=60
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


def test_it_is_healthy_without_kafka_and_ready_with_it(scene):
    def asked(probe):
        answer = requests.get(f"http://{scene.target}/{probe}", timeout=30)
        return answer.status_code, answer.text

    wait_for(lambda: asked("readyz") == (200, "ok\n"), "it reads the mirror", PATIENCE_S)
    assert asked("healthz") == (200, "ok\n")
    with frozen(scene.broker):
        wait_for(lambda: asked("readyz") == (503, "Kafka does not answer\n"), "it says that it reads nothing", PATIENCE_S)
        assert asked("healthz") == (200, "ok\n")
    wait_for(lambda: asked("readyz") == (200, "ok\n"), "it reads the mirror again", PATIENCE_S)


def test_a_second_monitor_on_the_same_port_says_so_and_does_not_start(scene, tmp_path, capsys):
    second = MonitorProcess(
        tmp_path, scene.broker.internal, "second", mirror=MIRROR, metrics={"enabled": True, "listen": scene.target}
    )
    assert run(second.config) == 2
    said = capsys.readouterr()
    assert said.err == (f"error: metrics.listen: {scene.target} is already in use; set another port, or metrics.enabled = false\n")


def test_counts_go_on_where_they_were_after_a_restart(scene):
    """The last one: it ends the monitor that the others share."""
    prometheus, counter = scene.prometheus, "sum(rebalance_monitor_frames_total)"
    before = wait_for(lambda: prometheus.value(counter), "frames are counted", PATIENCE_S)
    assert scene.monitor.stop() == 0
    scene.monitor.set(metrics={"listen": scene.target})
    scene.monitor.start()
    scene.monitor.wait_until_said("watching", PATIENCE_S)
    wait_for(lambda: (prometheus.value(counter) or 0) >= before, "frames are counted again", PATIENCE_S)
    prometheus.wait("sum(resets(rebalance_monitor_frames_total[1h]))", 0)
    prometheus.wait(group_metric("rebalance_group_rebalances_total", "orders", cause="new_member"), 1)

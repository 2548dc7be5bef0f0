"""``rebalance-monitor topics`` before anything else runs."""

from __future__ import annotations

import contextlib

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType
from typer.testing import CliRunner

from streaming.cli import app
from streaming.demo.broker import Broker
from streaming.kafka.connection import reach
from streaming.kafka.topics import create
from tests.real.harness import WAIT_S, wait_for

NAMES = {
    name: f"made-{name}"
    for name in ("mirror", "findings", "groups", "events", "status", "dead_letters", "quality", "notifications", "lag")
}


def run(*arguments):
    done = CliRunner().invoke(app, ["topics", *arguments])
    return done.exit_code, done.stdout.splitlines()


def test_it_creates_what_is_missing_once_and_says_how_the_mirror_topic_differs(broker, tmp_path):
    file = tmp_path / "monitor.toml"
    topics = "\n".join(f'{key} = "{name}"' for key, name in NAMES.items())
    file.write_text(
        f'[kafka]\nbootstrap_servers = "{broker.internal}"\n[lag]\nenabled = true\n[topics]\ncreate = false\n{topics}\n'
    )
    results = [f"created topic {name}" for key, name in NAMES.items() if key != "mirror"]
    status, said = run("--config", str(file), "--partitions", "3", "--retention-hours", "12")
    assert (status, said[0]) == (0, "created topic made-mirror with 3 partitions, kept for 12 h")
    assert sorted(said[1:]) == sorted(results)

    admin = AdminClient({"bootstrap.servers": broker.internal})
    assert len(admin.list_topics("made-mirror", timeout=10).topics["made-mirror"].partitions) == 3
    found = {
        name: {
            key: admin.describe_configs([resource])[resource].result(10)[key].value for key in ("cleanup.policy", "retention.ms")
        }
        for name in ("made-mirror", "made-findings", "made-notifications", "made-lag")
        for resource in [ConfigResource(ResourceType.TOPIC, name)]
    }
    assert found["made-mirror"] == {"cleanup.policy": "delete", "retention.ms": "43200000"}
    assert {found[name]["cleanup.policy"] for name in ("made-findings", "made-notifications", "made-lag")} == {"compact"}

    assert run("--config", str(file), "--partitions", "3", "--retention-hours", "12") == (0, ["all topics exist"])
    status, (difference,) = run("--config", str(file), "--partitions", "4", "--retention-hours", "12")
    assert status == 0
    assert (
        difference
        == "topic made-mirror was there before and is not as asked for: it has 3 partitions, not 4, which is fixed for its life"
    )


def test_without_kafka_it_says_so_with_status_2(tmp_path):
    file = tmp_path / "monitor.toml"
    file.write_text('[kafka]\nbootstrap_servers = "127.0.0.1:1"\nreach_timeout_s = 0.2\n')
    done = CliRunner().invoke(app, ["topics", "--config", str(file)])
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("error: no Kafka broker answers at 127.0.0.1:1")


def test_a_topic_is_created_as_soon_as_the_broker_is_no_longer_fenced():
    """As after a restart: until its next heartbeat to the controller a broker takes no partitions."""
    with Broker(properties={"broker.session.timeout.ms": "1000", "broker.heartbeat.interval.ms": "6000"}) as broker:
        admin, _ = reach({"bootstrap.servers": broker.internal}, WAIT_S)

        def fenced() -> bool:
            with contextlib.suppress(KafkaException):
                return not admin.list_topics(timeout=5).brokers
            return True

        wait_for(fenced, "the controller misses the broker")
        assert create(admin, {}, NewTopic("orders", 1), timeout_s=WAIT_S)
        assert not create(admin, {}, NewTopic("orders", 1), timeout_s=WAIT_S)

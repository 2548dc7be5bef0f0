"""The embedded broker: up when it says so, gone when its parent is, and clear about why it does not start."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from harness import WAIT_S, wait_for

from streaming.demo.broker import HOST, Broker, BrokerError, free_port
from tests.processes import lives, started
from tests.real.brokers import Cluster

pytestmark = pytest.mark.real


def _produce(bootstrap: str, topic: str, value: bytes) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "log_level": 0})
    producer.produce(topic, value)
    assert producer.flush(WAIT_S) == 0


def test_it_keeps_its_data_over_a_restart_and_leaves_nothing_behind():
    """It also advertises another address where it is told to, and nowhere else."""
    with Broker(listeners={"FRONT": "PLAINTEXT"}, advertised={"FRONT": "broker.example:9092"}) as broker:
        for listener, advertised in (("FRONT", "broker.example:9092"), ("INTERNAL", broker.internal)):
            admin = AdminClient({"bootstrap.servers": broker.address(listener), "log_level": 0})
            (node,) = admin.list_topics(timeout=WAIT_S).brokers.values()
            assert f"{node.host}:{node.port}" == advertised
        broker.create_topic("t", 2)
        _produce(broker.address(), "t", b"before")
        first = broker.pid
        broker.restart()
        assert broker.pid != first
        reader = Consumer({"bootstrap.servers": broker.address(), "group.id": "g", "auto.offset.reset": "earliest"})
        reader.assign([TopicPartition("t", 0, 0), TopicPartition("t", 1, 0)])
        assert wait_for(lambda: reader.poll(1), "the record is still there").value() == b"before"
        reader.close()
        pid, data = broker.pid, broker.data
    assert not lives(pid)
    assert not data.exists()


def test_it_ends_with_a_parent_that_is_killed():
    script = (
        "import os, signal\n"
        "from streaming.demo.broker import Broker\n"
        "broker = Broker().start()\n"
        "print(broker.pid, broker.data, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    pid, data = done.stdout.split()
    wait_for(lambda: not lives(int(pid)), "the broker ends")
    wait_for(lambda: not Path(data).exists(), "its data are removed")


def test_a_property_that_makes_no_sense_is_answered_with_what_kafka_says(tmp_path):
    with pytest.raises(BrokerError, match=r"(?s)StorageTool cannot format.*offsets\.topic\.num\.partitions"):
        Broker(data=tmp_path, properties={"offsets.topic.num.partitions": "many"}).start()


def test_no_port_is_given_twice():
    ports = [free_port() for _ in range(500)]
    assert len(set(ports)) == len(ports)


def test_a_port_that_another_process_was_given_is_given_to_nobody_until_that_ends(monkeypatch):
    script = "from streaming.demo.broker import free_port; print(free_port(), flush=True); input()"
    with started([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        port = int(other.stdout.readline())
        monkeypatch.setattr("streaming.demo.broker._PORTS", range(port, port + 1))
        monkeypatch.setattr("streaming.demo.broker.random.sample", lambda ports, _: ports)
        with pytest.raises(BrokerError, match="no free port"):
            free_port()
        other.communicate("\n")
    assert free_port() == port


def test_a_port_that_is_taken_is_said(tmp_path):
    broker = Broker(data=tmp_path)
    with socket.socket() as taken:
        taken.bind((HOST, int(broker.address().rpartition(":")[2])))
        taken.listen()
        with pytest.raises(BrokerError, match=r"(?s)broker 1 ended while starting.*in use"):
            broker.start()
    broker.close()
    assert broker.pid is None


def test_a_cluster_survives_one_of_its_brokers():
    with Cluster(3) as cluster:
        cluster.brokers[0].create_topic("t", 1, replicas=3, config={"min.insync.replicas": "2"})
        admin = AdminClient({"bootstrap.servers": cluster.internal, "log_level": 0})

        def leader() -> int | None:
            """As the broker says that is asked: each hears of a new topic, or leader, in its own time."""
            partitions = admin.list_topics("t", timeout=WAIT_S).topics["t"].partitions
            return partitions[0].leader if partitions and partitions[0].leader > 0 else None

        first = wait_for(leader, "all brokers know the topic")
        next(broker for broker in cluster.brokers if broker.node_id == first).kill()
        _produce(cluster.bootstrap, "t", b"after")
        wait_for(lambda: leader() not in {None, first}, "another leads")
        pids = [broker.pid for broker in cluster.brokers if broker.pid]
        assert len(pids) == 2
    assert not any(lives(pid) for pid in pids)

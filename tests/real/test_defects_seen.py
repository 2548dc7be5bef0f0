"""A known defect of a released library, seen on a running broker: the finding about it quotes the defect."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator

import kafka
import pytest

from coordinator_model.finding import Blame, Severity
from coordinator_model.known_defects import KNOWN_DEFECTS, software_of
from tests.real.harness import kafka_python_consumer, wait_for
from tests.real.watched import TOPIC, found, watched

pytestmark = [pytest.mark.real, pytest.mark.long]

GROUP = "leaves"


@contextlib.contextmanager
def polling(consumer: kafka.KafkaConsumer) -> Iterator[None]:
    """A member that stays while others come and go."""
    stop = threading.Event()

    def poll() -> None:
        while not stop.is_set():
            consumer.poll(timeout_ms=200)

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(30)
        consumer.close()


@pytest.mark.timeout(300)
def test_a_commit_of_kafka_python_as_nobody_quotes_its_known_defect(tmp_path):
    software = software_of(f"kafka-python {kafka.__version__}", None)
    assert software is not None
    defect = next(one for one in KNOWN_DEFECTS if one.library == "kafka-python" and "O-04" in one.rules)
    assert defect.may_be_of(software)
    with watched(tmp_path) as (_, monitor, front):
        settings = {
            "bootstrap_servers": front,
            "group_id": GROUP,
            "auto_commit_interval_ms": 600_000,
            "auto_offset_reset": "earliest",
        }
        stays = kafka_python_consumer(TOPIC, client_id="stays", **settings)
        producer = kafka.KafkaProducer(bootstrap_servers=front)
        with polling(stays):
            leaves = kafka_python_consumer(TOPIC, client_id="leaves", **settings)

            def leaves_with_something_to_commit() -> bool:
                for partition in range(4):
                    producer.send(TOPIC, b"x", partition=partition)
                producer.flush()
                deadline = time.monotonic() + 20
                while time.monotonic() < deadline:
                    if leaves.poll(timeout_ms=500):
                        leaves.unsubscribe()
                        time.sleep(0.5)  # the commit goes out in the library's own thread
                        leaves.subscribe([TOPIC])
                        break
                return found(monitor, "O-04") is not None

            wait_for(leaves_with_something_to_commit, "a commit goes out as nobody", 200)
            leaves.close()
        producer.close()
        finding = found(monitor, "O-04")
    assert (finding.client_id, finding.severity) == ("leaves", Severity.WARNING)
    assert finding.blame in {Blame.CLIENT, Blame.CONFIG}
    assert finding.action.endswith(defect.quote(software))

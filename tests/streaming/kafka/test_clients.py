"""A producer's queue without a Kafka: what it keeps, what it gives up, and what it says. With one it is shown in tests/real/test_tap_rights.py."""

from __future__ import annotations

import pytest

from streaming.kafka.clients import LastingProducer, Queued
from streaming.kafka.credentials import Credentials


@pytest.fixture
def said():
    return []


@pytest.fixture
def producer(said):
    """Nobody answers there."""
    producer = LastingProducer(Credentials(lambda: {"bootstrap.servers": "127.0.0.1:1"}, "the writer", said.append), {}, most=100)
    yield producer
    producer.close()


@pytest.mark.parametrize("started", [False, True])
def test_a_full_queue_gives_up_its_oldest_records_and_says_so_once(producer, said, started):
    if started:
        producer.start()
    for number in range(130):
        producer.produce(Queued("results", str(number).encode()))
    assert [record.value for record in producer.queued()] == [str(number).encode() for number in range(30, 130)]
    assert producer.flush(0.2) == 100
    assert said == ["records lost so far: 1, the last one for topic results (Local: Queue full)"]


def test_what_was_queued_before_the_start_is_kept_in_order(producer):
    for number in range(10):
        producer.produce(Queued("results", str(number).encode()))
    producer.start()
    producer.produce(Queued("results", b"10"))
    assert [record.value for record in producer.queued()] == [str(number).encode() for number in range(11)]
    assert producer.oldest() == Queued("results", b"0")


def test_credentials_are_looked_at_again_only_when_they_were_refused(tmp_path):
    password = tmp_path / "password"
    password.write_text("first")
    credentials = Credentials(lambda: {"sasl.password": password.read_text()}, "the writer")
    credentials.properties()
    password.write_text("second")
    assert not credentials.changed(), "nobody has refused it"
    credentials.not_usable("for the test")
    assert credentials.changed()
    credentials.properties()
    credentials.renewed()
    assert credentials.refused is None
    assert not credentials.changed()


def test_files_that_keep_changing_and_are_refused_are_looked_at_ever_less_often(tmp_path, monkeypatch):
    now_s = 1_000.0
    monkeypatch.setattr("streaming.kafka.credentials.time.monotonic", lambda: now_s)
    password = tmp_path / "password"
    password.write_text("0")
    credentials = Credentials(lambda: {"sasl.password": password.read_text()}, "the writer")
    looks = []
    for attempt in range(8):
        credentials.properties()
        credentials.not_usable("for the test")
        password.write_text(f"{attempt + 1}")
        began_s = now_s
        while not credentials.changed():
            now_s += 0.5
        looks.append(now_s - began_s)
    assert looks == [0.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]
    credentials.accepted()
    credentials.properties()
    credentials.not_usable("for the test")
    password.write_text("last")
    now_s += 30.0
    assert credentials.changed(), "the next refusal begins with a short wait again"

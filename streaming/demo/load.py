"""A child process of the demo: produces a few records per second. Arguments: the bootstrap servers and the topic."""

from __future__ import annotations

import itertools
import json
import sys
from typing import Final

from confluent_kafka import Producer

from streaming.demo.consumer import stop_on_sigterm, tell
from streaming.kafka.connection import SILENT_LOGGER

_RECORDS_PER_S: Final = 20


def main() -> None:
    bootstrap, topic = sys.argv[1:]
    stop = stop_on_sigterm()
    producer = Producer({"bootstrap.servers": bootstrap, "client.id": "demo-producer", "linger.ms": 50}, logger=SILENT_LOGGER)
    tell("started")
    for number in itertools.count():
        if stop.wait(1 / _RECORDS_PER_S):
            break
        producer.produce(topic, json.dumps({"order": number}).encode(), str(number).encode())
        producer.poll(0)
    producer.flush(5)


if __name__ == "__main__":
    main()

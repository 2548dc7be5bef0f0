"""Reads single frames out of the mirror topic.

A finding may be older than the mirror's retention. Then the frame is gone, and only its description in the finding is left.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from coordinator_model.wire.record import HEADER_NAME, MirrorRecord, RecordError, unpack_record
from streaming.kafka.clients import without_group
from streaming.kafka.connection import SILENT_LOGGER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_PATIENCE_S: Final = 5.0
_GONE: Final = "the mirror no longer holds it"


class MirrorFrames:
    """Reads frames by their place in the mirror topic.

    :param properties: returns librdkafka's properties.
    """

    def __init__(self, properties: Callable[[], Mapping[str, Any]], topic: str) -> None:
        self._properties = properties
        self._topic = topic
        self._one_at_a_time = threading.Lock()

    def read(self, places: Iterable[tuple[int, int]]) -> list[MirrorRecord | str]:
        """Return the record at each place, or why it cannot be read."""
        with self._one_at_a_time:
            consumer = Consumer(
                {
                    **self._properties(),
                    "group.id": "rebalance-monitor-reader",  # required by the library; no offset is ever committed
                    "enable.auto.commit": False,
                    "auto.offset.reset": "error",
                },
                logger=SILENT_LOGGER,
            )
            try:
                return [self._one(consumer, *place) for place in places]
            except KafkaException as error:
                return [error.args[0].str()]
            finally:
                consumer.close()

    def _one(self, consumer: Consumer, partition: int, offset: int) -> MirrorRecord | str:
        consumer.assign([TopicPartition(self._topic, partition, offset)])
        deadline = time.monotonic() + _PATIENCE_S
        while time.monotonic() < deadline:
            for message in without_group(consumer.consume(1, 0.2)):
                error = message.error()
                if error is not None:
                    return _GONE if error.code() == KafkaError._AUTO_OFFSET_RESET else str(error.str())  # noqa: SLF001 - public in all but name
                if message.offset() != offset:
                    return _GONE
                return _record(message)
        return f"Kafka did not answer within {_PATIENCE_S:g} s"


def _record(message: Any) -> MirrorRecord | str:
    envelope = dict(message.headers() or ()).get(HEADER_NAME)
    try:
        return unpack_record(
            partition=message.partition(), offset=message.offset(), key=message.key(), value=message.value(), envelope=envelope
        )
    except RecordError as error:
        return str(error)

"""Where a partition begins and ends.

librdkafka asks the leader that it knows, and raises what the broker answers. A topic made a moment ago, or one whose leader has just moved,
is refused by a broker whose metadata is behind, and nothing is wrong.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from confluent_kafka import KafkaError, KafkaException

if TYPE_CHECKING:
    from confluent_kafka import Consumer, TopicPartition

_PASSES: Final = frozenset({KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE, KafkaError.UNKNOWN_TOPIC_OR_PART})
"""What a broker answers while it learns who leads."""

_AGAIN_S: Final = 0.2


def bounds_of(consumer: Consumer, place: TopicPartition, within_s: float) -> tuple[int, int]:
    """The first offset of a partition, and the one behind its last; asked again while its leader is not known.

    :raises KafkaException: when Kafka refuses, or the partition has no leader in time.
    """
    deadline = time.monotonic() + within_s
    while True:
        try:
            first, end = consumer.get_watermark_offsets(place, timeout=within_s)
        except KafkaException as error:
            if error.args[0].code() not in _PASSES or time.monotonic() > deadline:
                raise
        else:
            return first, end
        time.sleep(_AGAIN_S)

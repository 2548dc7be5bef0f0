"""A partition whose leader is not known yet is asked for again; whatever else Kafka answers is said at once."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from streaming.kafka.watermarks import bounds_of

PLACE = TopicPartition("findings", 0)


class Brokers:
    """Answers in turn; the last one for ever."""

    def __init__(self, *answers: int | tuple[int, int]) -> None:
        self.answers = list(answers)
        self.asked = 0

    def get_watermark_offsets(self, place: TopicPartition, timeout: float) -> Any:
        self.asked += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, int):
            raise KafkaException(KafkaError(answer))
        return answer


def test_a_leader_that_has_just_moved_is_waited_for():
    brokers = Brokers(KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE, (3, 17))
    assert bounds_of(brokers, PLACE, within_s=30) == (3, 17)


def test_a_partition_that_nobody_leads_is_said_in_the_end():
    brokers = Brokers(KafkaError.LEADER_NOT_AVAILABLE)
    with pytest.raises(KafkaException):
        bounds_of(brokers, PLACE, within_s=0.3)
    assert brokers.asked > 1


def test_a_refusal_is_said_at_once():
    brokers = Brokers(KafkaError.TOPIC_AUTHORIZATION_FAILED, (0, 0))
    with pytest.raises(KafkaException):
        bounds_of(brokers, PLACE, within_s=30)
    assert brokers.asked == 1

"""The names of settings in client libraries, as their members announce them (KIP-511)."""

from __future__ import annotations

from typing import Final, NamedTuple


class Words(NamedTuple):
    """How a library calls a setting, ``{}`` being a number of milliseconds; None if it has none."""

    instance_id: str | None
    session: str
    poll: str
    cooperative: str | None
    consumer_protocol: str | None
    no_leave: str | None


_STATIC: Final = "group.instance.id = a name for each process that outlives its restart"
_JAVA: Final = Words(
    _STATIC,
    "session.timeout.ms={}",
    "max.poll.interval.ms={}",
    "partition.assignment.strategy=org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
    "group.protocol=consumer",
    "CloseOptions.groupMembershipOperation(REMAIN_IN_GROUP), before 4.1 internal.leave.group.on.close=false",
)
_LIBRDKAFKA: Final = _JAVA._replace(cooperative="partition.assignment.strategy=cooperative-sticky", no_leave=None)
_KAFKA_PYTHON: Final = Words(
    "group_instance_id = a name for each process that outlives its restart",
    "session_timeout_ms={}",
    "max_poll_interval_ms={}",
    "partition_assignment_strategy=[CooperativeStickyAssignor]",
    None,
    None,
)
_FRANZ_GO: Final = Words(
    "kgo.InstanceID = a name for each process that outlives its restart",
    "kgo.SessionTimeout({} ms)",
    "kgo.RebalanceTimeout({} ms)",
    "kgo.Balancers(kgo.CooperativeStickyBalancer())",
    None,
    None,
)
_SARAMA: Final = Words(
    "Consumer.Group.InstanceId = a name for each process that outlives its restart",
    "Consumer.Group.Session.Timeout={} ms",
    "Consumer.Group.Rebalance.Timeout={} ms",
    None,
    None,
    None,
)
_KAFKAJS: Final = Words(None, "sessionTimeout: {}", "rebalanceTimeout: {}", None, None, None)
_BY_NAME: Final = (
    ("librdkafka", _LIBRDKAFKA),
    ("confluent-kafka", _LIBRDKAFKA),
    ("kafka-python", _KAFKA_PYTHON),
    ("kgo", _FRANZ_GO),
    ("franz-go", _FRANZ_GO),
    ("sarama", _SARAMA),
    ("kafkajs", _KAFKAJS),
)


def words_of(software: str) -> Words:
    """Return the words of the library that announced itself so; those of the Java client if it is not known."""
    return next((words for name, words in _BY_NAME if name in software.lower()), _JAVA)

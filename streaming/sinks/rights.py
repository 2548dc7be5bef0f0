"""What the monitor finds of its topics on Kafka, and what it may do with them: asked before the start, so that nothing is met later.

The trap: a broker does not tell apart a topic that is missing from one that a user may not see.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation, ConfigResource, ResourceType

from streaming.config import MAX_PARTITIONS
from streaming.sinks.acls import command_config
from streaming.sinks.topics import SetupError, connect, result_topics

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

    from streaming.config import MonitorConfig

_READ: Final = frozenset({AclOperation.READ, AclOperation.DESCRIBE})
_WRITE: Final = frozenset({AclOperation.WRITE, AclOperation.DESCRIBE})


class Report(NamedTuple):
    """What was found of one topic."""

    topic: str
    found: str  #: in a few words
    problem: str | None  #: why the monitor would not start, or not work, and what to do
    warning: str | None


def inspect(config: MonitorConfig) -> list[Report]:
    """Look at each topic of the monitor.

    :raises SetupError: when Kafka cannot be reached.
    """
    admin, existing = connect(config)
    mirror = config.topics.mirror
    needed = {mirror: _READ} | dict.fromkeys(result_topics(config.topics), _WRITE)
    needed[config.topics.findings] = _READ | _WRITE
    return [_report(config, admin, topic, operations, existing.get(topic)) for topic, operations in needed.items()]


def _report(
    config: MonitorConfig, admin: AdminClient, topic: str, needed: frozenset[AclOperation], partitions: int | None
) -> Report:
    if not partitions:
        return _absent(config, topic)
    found = f"{partitions} partition{'s' * (partitions > 1)}"
    if topic == config.topics.mirror and partitions > MAX_PARTITIONS:
        return Report(topic, found, f"the monitor serves up to {MAX_PARTITIONS} partitions", None)
    timeout_s = config.kafka.reach_timeout_s
    try:
        described = admin.describe_topics(TopicCollection([topic]), include_authorized_operations=True)[topic].result(timeout_s)
    except KafkaException as error:
        raise SetupError(f"cannot describe topic {topic}: {error.args[0].str()}") from None
    allowed = described.authorized_operations
    lacking = sorted(operation.name for operation in needed - set(needed if allowed is None else allowed))
    if lacking:
        who = f" ({config.kafka.sasl_username})" if config.kafka.sasl_username else ""
        return Report(topic, found, f"the monitor's user{who} lacks the right to {' and '.join(lacking)} it", None)
    return Report(topic, found, None, _policy(config, admin, topic))


def _absent(config: MonitorConfig, topic: str) -> Report:
    if topic == config.topics.mirror:
        return Report(
            topic, "missing", "it is missing, or not to be seen by the monitor's user; start the tap with --create-topic", None
        )
    if not config.topics.create:
        return Report(topic, "missing", "it is missing, or not to be seen by the monitor's user, and topics.create is false", None)
    return Report(topic, "missing; is created at the start, if the monitor's user may", None, None)


def _policy(config: MonitorConfig, admin: AdminClient, topic: str) -> str | None:
    """How a topic differs from what the monitor would have created.

    Kafka's automatic creation makes topics that are not compacted: findings that are still open would vanish.
    """
    wanted = result_topics(config.topics).get(topic)
    if wanted is None:
        return None
    resource = ConfigResource(ResourceType.TOPIC, topic)
    try:
        found = admin.describe_configs([resource])[resource].result(config.kafka.reach_timeout_s)
    except KafkaException as error:
        if error.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            return None  # a right that the monitor does not need
        raise SetupError(f"cannot describe topic {topic}: {error.args[0].str()}") from None
    differing = {
        name: value
        for name, value in wanted.items()
        if name in found and value not in (found[name].value, *found[name].value.split(","))
    }
    if not differing:
        return None
    said = ", ".join(f"its {name} is {found[name].value}, not {value}" for name, value in differing.items())
    servers, security = config.kafka.bootstrap_servers, command_config(config.kafka.for_librdkafka())
    settings = ",".join(f"{name}={value}" for name, value in differing.items())
    return f"{said}: kafka-configs.sh --bootstrap-server {servers}{security} --alter --topic {topic} --add-config {settings}"

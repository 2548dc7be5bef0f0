"""What the monitor finds of its topics on Kafka, and what it may do with them: asked before the start, so that nothing is met later.

Kafka hides whether a topic exists from a user who may not describe it. Whether a user may create one shows only in the attempt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import ConfigResource, NewTopic, ResourceType

from streaming.config.settings import MAX_PARTITIONS
from streaming.errors import SetupError
from streaming.kafka.acls import command_config, grant, user_of
from streaming.kafka.required_rights import topic_needs
from streaming.kafka.topics import connect, error_of, monitor_topics, notifier_topics

if TYPE_CHECKING:
    from collections.abc import Iterable

    from confluent_kafka.admin import AdminClient

    from streaming.config.settings import MonitorConfig

_CREATE: Final = "Create"


class Report(NamedTuple):
    """What was found of one topic."""

    topic: str
    found: str  #: in a few words
    problem: str | None  #: why the monitor would not start, or not work, and what to do
    warning: str | None


def inspect(config: MonitorConfig, processes: Iterable[str]) -> list[Report]:
    """Look at each topic that the processes use, and at the rights that they need on it.

    :raises SetupError: when Kafka cannot be reached.
    """
    admin, existing = connect(config)
    needed: dict[str, dict[str, list[str]]] = {}  # topic → operation → processes
    for process in processes:
        for topic, operation in topic_needs(
            process,
            config.topics,
            traces=config.traces.endpoint is not None,
            lag=config.lag.enabled,
            digest=bool(config.notify.digest),
        ):
            needed.setdefault(topic, {}).setdefault(operation, []).append(process)
    return [_report(config, admin, topic, needs, existing.get(topic)) for topic, needs in needed.items()]


def _report(config: MonitorConfig, admin: AdminClient, topic: str, needs: dict[str, list[str]], partitions: int | None) -> Report:
    if not partitions:
        return _absent(config, admin, topic, needs)
    found = f"{partitions} partition{'s' * (partitions > 1)}"
    if topic == config.topics.mirror and partitions > MAX_PARTITIONS:
        return Report(topic, found, f"the monitor serves up to {MAX_PARTITIONS} partitions", None)
    timeout_s = config.kafka.reach_timeout_s
    try:
        described = admin.describe_topics(TopicCollection([topic]), include_authorized_operations=True)[topic].result(timeout_s)
    except KafkaException as error:
        raise SetupError(f"cannot describe topic {topic}: {error.args[0].str()}") from None
    allowed = None if described.authorized_operations is None else {each.name for each in described.authorized_operations}
    lacking = [each for each in needs if each != _CREATE and allowed is not None and each.upper() not in allowed]
    if lacking:
        return Report(topic, found, _lacks(config, topic, {each: needs[each] for each in lacking}), None)
    return Report(topic, found, None, _policy(config, admin, topic))


def _lacks(config: MonitorConfig, topic: str, lacking: dict[str, list[str]]) -> str:
    properties = config.kafka.for_librdkafka()
    return "; ".join(
        f"user {user_of(properties)} lacks the right to {operation}, which is needed by {' and '.join(processes)}; "
        f"grant it: {grant(properties, operation, topic)}"
        for operation, processes in lacking.items()
    )


def _absent(config: MonitorConfig, admin: AdminClient, topic: str, needs: dict[str, list[str]]) -> Report:
    """Of a topic that is not among those that the user may see."""
    error = error_of(admin, config, topic)
    hidden = error is not None and error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    found = "not to be seen, or missing" if hidden else "missing"
    use = {operation: processes for operation, processes in needs.items() if operation != _CREATE}
    if hidden:
        return Report(topic, found, _lacks(config, topic, use), None)
    if topic == config.topics.mirror:
        return Report(topic, found, "it does not exist; start the tap with --create-topic", None)
    if _CREATE not in needs:
        return Report(topic, "missing; the monitor creates it", None, None)
    if not config.topics.create:
        return Report(topic, found, "it does not exist, and topics.create is false", None)
    if not _may_create(config, admin, topic):
        return Report(topic, found, _lacks(config, topic, {_CREATE: needs[_CREATE]}), None)
    return Report(topic, "missing; is created at the start", None, None)


def _may_create(config: MonitorConfig, admin: AdminClient, topic: str) -> bool:
    """Ask the broker to create the topic without doing it."""
    new = NewTopic(topic, config.topics.partitions, config.topics.replication_factor)
    try:
        admin.create_topics([new], validate_only=True)[topic].result(config.kafka.reach_timeout_s)
    except KafkaException as error:
        if error.args[0].code() in {KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED}:
            return False
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise SetupError(f"topic {topic} cannot be created: {error.args[0].str()}") from None
    return True


def _policy(config: MonitorConfig, admin: AdminClient, topic: str) -> str | None:
    """How a topic differs from what the monitor would have created.

    Kafka's automatic creation makes topics that are not compacted: findings that are still open would vanish.
    """
    wanted = (monitor_topics(config) | notifier_topics(config.topics)).get(topic)
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

"""Topics: how one is created, and what must be there before the job starts: the mirror topic, and those that take the results.

Kafka's automatic topic creation would make a result topic that is not compacted, and findings would vanish with its retention. So they are
created here, or their absence is said with the command that creates them. A broker gives the same answer for a topic that is missing and
for one that the user may not describe, and refuses to create a topic that exists, if the right to create is missing.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from streaming.config.settings import MAX_PARTITIONS
from streaming.errors import SetupError
from streaming.kafka.acls import REFUSED, command_config, grant, servers_of, user_of
from streaming.kafka.connection import SILENT_LOGGER, ConnectionProblem, UnreachableError, reach

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streaming.config.settings import MonitorConfig, Topics

PARTITIONS: Final = 4
"""Of the mirror topic, where no option asks for another number."""

_PASSING: Final = {
    KafkaError._TIMED_OUT,  # noqa: SLF001 - librdkafka's local codes are named so
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.NOT_CONTROLLER,
    KafkaError.INVALID_REPLICATION_FACTOR,
}
"""What a Kafka answers that has just come back: too few of its brokers are there for the replication factor."""

_ONE_TRY_S: Final = 10.0
_ASK_AGAIN_S: Final = 0.2

_DAY_MS: Final = 86_400_000
_COMPACTED: Final = {"cleanup.policy": "compact", "segment.ms": "3600000", "segment.bytes": "16777216"}
"""The segment that is written to is never compacted: with Kafka's defaults that is all of a week, or a gigabyte."""


class Mirror(NamedTuple):
    """The topic id: a topic that was deleted and created again has another one."""

    topic: str
    topic_id: str
    cluster_id: str
    partitions: int


class Described(NamedTuple):
    """What Kafka says of the mirror topic."""

    topic_id: str
    partitions: int


MISSING: Final = Described("", 0)
"""There is no such topic."""


def prepare(config: MonitorConfig) -> Mirror:
    """Check that Kafka answers and has the mirror topic; create the result topics that are missing.

    :raises SetupError: when Kafka cannot be reached, the mirror topic is missing, or a result topic is and may not be created.
    """
    admin, existing = connect(config)
    mirror = config.topics.mirror
    if mirror not in existing:
        _raise_if_hidden(admin, config, mirror, "Read")
        raise SetupError(
            f"the mirror topic {mirror} does not exist on {config.kafka.bootstrap_servers}; start the tap with --create-topic, or create "
            f"it: {create_command(config.kafka.for_librdkafka(), NewTopic(mirror, PARTITIONS))}"
        )
    if existing[mirror] > MAX_PARTITIONS:
        raise SetupError(f"the mirror topic {mirror} has {existing[mirror]} partitions; the monitor serves up to {MAX_PARTITIONS}")
    _create_missing(admin, config, existing, monitor_topics(config))
    try:
        described = admin.describe_topics(TopicCollection([mirror]))[mirror].result(config.kafka.reach_timeout_s)
        cluster = admin.describe_cluster().result(config.kafka.reach_timeout_s)
    except KafkaException as error:
        raise SetupError(f"cannot describe topic {mirror}: {_reason(error)}") from None
    return Mirror(mirror, str(described.topic_id), str(cluster.cluster_id), existing[mirror])


def prepare_notifier(config: MonitorConfig) -> None:
    """Check that Kafka answers; create what the notifier reads and writes if it is missing, for it may be started before the monitor.

    :raises SetupError: when Kafka cannot be reached, or a topic is missing and may not be created.
    """
    admin, existing = connect(config)
    _create_missing(admin, config, existing, notifier_topics(config.topics))


def notifier_topics(topics: Topics) -> dict[str, dict[str, str]]:
    """The topics of the notifier, each with the configuration it is created with."""
    results = result_topics(topics)
    return {name: results[name] for name in (topics.findings, topics.status)} | {
        topics.notifications: _COMPACTED | {"compression.type": topics.compression}
    }


def result_topics(topics: Topics) -> dict[str, dict[str, str]]:
    """The topics that the monitor writes however it is configured, each with the configuration it is created with."""
    compressed = {"compression.type": topics.compression}
    history = {"cleanup.policy": "delete", "retention.ms": str(int(topics.history_days * _DAY_MS))} | compressed
    return dict.fromkeys((topics.findings, topics.groups, topics.status), _COMPACTED | compressed) | dict.fromkeys(
        (topics.events, topics.dead_letters, topics.quality), history
    )


def monitor_topics(config: MonitorConfig) -> dict[str, dict[str, str]]:
    """The topics that the monitor writes as it is configured, each with the configuration it is created with."""
    topics = config.topics
    lag = {topics.lag: _COMPACTED | {"compression.type": topics.compression}}
    return result_topics(topics) | (lag if config.lag.enabled else {})


def connect(config: MonitorConfig) -> tuple[AdminClient, dict[str, int]]:
    """A client of the mirror's Kafka, and the topics that it may see there with their number of partitions.

    :raises SetupError: saying why there is none, and which keys to look at.
    """
    servers = config.kafka.bootstrap_servers
    try:
        admin, listed = reach(config.kafka.for_librdkafka(), config.kafka.reach_timeout_s)
    except UnreachableError as error:
        sentence = _UNREACHABLE[error.trouble].format(servers=servers, reason=error, protocol=config.kafka.security_protocol)
        raise SetupError(sentence) from None
    return admin, {name: len(topic.partitions) for name, topic in listed.topics.items()}


_UNREACHABLE: Final = {
    ConnectionProblem.SETTING: "the settings under [kafka] are not accepted: {reason}",
    ConnectionProblem.LOGIN: (
        "Kafka at {servers} refuses the login ({reason}); check kafka.sasl_mechanism, kafka.sasl_username and the password "
        "(REBALANCE_MONITOR_KAFKA__SASL_PASSWORD or kafka.sasl_password_file)"
    ),
    ConnectionProblem.TRUST: (
        "no trusted connection to Kafka at {servers} ({reason}); check kafka.ssl_ca_file, that kafka.bootstrap_servers has the names "
        "in the broker's certificate, and, if the broker asks for one, kafka.ssl_certificate_file"
    ),
    ConnectionProblem.ABSENT: (
        "no Kafka broker answers at {servers} ({reason}); start it, or set kafka.bootstrap_servers and the security settings "
        "under [kafka] (kafka.security_protocol is {protocol})"
    ),
}


def _create_missing(
    admin: AdminClient, config: MonitorConfig, existing: Mapping[str, int], needed: Mapping[str, dict[str, str]]
) -> None:
    topics, properties = config.topics, config.kafka.for_librdkafka()
    missing = [
        NewTopic(name, topics.partitions, topics.replication_factor, config=wanted)
        for name, wanted in needed.items()
        if name not in existing
    ]
    if missing and not topics.create:
        for new in missing:
            _raise_if_hidden(admin, config, new.topic, "Describe")
        commands = "; ".join(create_command(properties, new) for new in missing)
        raise SetupError(f"missing topics, and topics.create is false; set it to true, or create them: {commands}")
    for new in missing:
        create(admin, properties, new, timeout_s=config.kafka.reach_timeout_s)


def create(admin: AdminClient, properties: Mapping[str, Any], new: NewTopic, *, timeout_s: float) -> bool:
    """Create a topic unless it exists; return whether it was created.

    A Kafka that has just come back may not be able to for a moment: its brokers are fenced, its controller is not known. It is asked again.

    :raises SetupError: when Kafka refuses, or does not answer in time.
    """
    deadline, one_try_s = time.monotonic() + timeout_s, min(timeout_s, _ONE_TRY_S)
    while True:
        try:
            admin.create_topics([new], operation_timeout=one_try_s, request_timeout=one_try_s)[new.topic].result()
        except KafkaException as error:
            code = error.args[0].code()
            if code == KafkaError.TOPIC_ALREADY_EXISTS or (code in REFUSED and _exists(admin, new.topic, timeout_s)):
                return False
            if code not in _PASSING or time.monotonic() >= deadline:
                raise SetupError(
                    f"cannot create topic {new.topic!r} on {servers_of(properties)}: {_why_not_created(properties, new, error)}"
                ) from None
            time.sleep(_ASK_AGAIN_S)
        else:
            return True


def _exists(admin: AdminClient, topic: str, timeout_s: float) -> bool:
    try:
        return admin.list_topics(topic, timeout=timeout_s).topics[topic].error is None
    except KafkaException:
        return False


def _why_not_created(properties: Mapping[str, Any], new: NewTopic, error: KafkaException) -> str:
    command = create_command(properties, new)
    if error.args[0].code() not in REFUSED:
        return f"{_reason(error)}; create it yourself: {command}"
    return (
        f"user {user_of(properties)} may not create it, nor see whether it exists; if it does, grant "
        f"{grant(properties, 'Write', new.topic)}; if it does not, grant {grant(properties, 'Create', new.topic)}, or create it as "
        f"another user: {command}"
    )


def _raise_if_hidden(admin: AdminClient, config: MonitorConfig, topic: str, operation: str) -> None:
    raise_if_hidden(config.kafka.for_librdkafka(), topic, error_of(admin, config, topic), operation)


def error_of(admin: AdminClient, config: MonitorConfig, topic: str) -> KafkaError | None:
    """What Kafka says of a topic that is not among those that the user may see.

    :raises SetupError: when it does not answer.
    """
    try:
        return admin.list_topics(topic, timeout=config.kafka.reach_timeout_s).topics[topic].error
    except KafkaException as raised:
        raise SetupError(f"cannot describe topic {topic}: {_reason(raised)}") from None


def raise_if_hidden(properties: Mapping[str, Any], topic: str, error: KafkaError | None, operation: str) -> None:
    """Kafka refuses a topic, whether it exists or not, to a user who may not describe it.

    :param error: what Kafka says of the topic.
    :param operation: what it is to be used for: the right to do that is the right to see it.
    :raises SetupError: if that is what the error says.
    """
    if error is not None and error.code() in REFUSED:
        raise SetupError(
            f"user {user_of(properties)} may not see topic {topic!r} on {servers_of(properties)}, or it does not exist; "
            f"grant the right: {grant(properties, operation, topic)}"
        )


def create_command(properties: Mapping[str, Any], new: NewTopic) -> str:
    """The command that creates a topic."""
    settings = "".join(f" --config {key}={value}" for key, value in (new.config or {}).items())
    script = f"kafka-topics.sh --bootstrap-server {servers_of(properties)}{command_config(properties)}"
    return f"{script} --create --topic {new.topic} --partitions {new.num_partitions}{settings}"


def _reason(error: KafkaException) -> str:
    return str(error.args[0].str())


def describe_mirror(config: MonitorConfig) -> Described | None:
    """The mirror topic as it is now; :data:`MISSING` if it is gone, None when Kafka does not answer."""
    admin = AdminClient(config.kafka.for_librdkafka(), logger=SILENT_LOGGER)
    mirror, wait_s = config.topics.mirror, config.kafka.reach_timeout_s
    try:
        found = admin.describe_topics(TopicCollection([mirror]), request_timeout=wait_s)[mirror].result(2 * wait_s)
    except KafkaException as error:
        return MISSING if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART else None
    except TimeoutError:
        return None
    return Described(str(found.topic_id), len(found.partitions))


def newest_record_us(config: MonitorConfig, partition: int) -> int | None:
    """Timestamp of the newest record in a partition of the mirror topic, in microseconds; None when it has none or Kafka is away."""
    admin = AdminClient(config.kafka.for_librdkafka(), logger=SILENT_LOGGER)
    where = TopicPartition(config.topics.mirror, partition)
    try:
        asked = admin.list_offsets({where: OffsetSpec.max_timestamp()}, request_timeout=config.kafka.reach_timeout_s)
        timestamp_ms = asked[where].result().timestamp
    except KafkaException:
        return None
    return None if timestamp_ms < 0 else int(timestamp_ms) * 1000

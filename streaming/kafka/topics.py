"""What must be there before the job starts: a Kafka that answers, the mirror topic, and the topics that take the results.

The trap: Kafka's automatic topic creation would make a result topic that is not compacted, and findings would vanish with its
retention. So they are created here, or their absence is said with the command that creates them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from streaming.config.settings import MAX_PARTITIONS
from streaming.kafka import connection
from streaming.kafka.acls import REFUSED, command_config, grant, servers_of, user_of
from streaming.kafka.connection import ConnectionProblem, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streaming.config.settings import MonitorConfig, Topics

SILENT_LOGGER: Final = connection.SILENT_LOGGER

_DAY_MS: Final = 86_400_000
_COMPACTED: Final = {"cleanup.policy": "compact", "segment.ms": "3600000", "segment.bytes": "16777216"}
"""The segment that is written to is never compacted: with Kafka's defaults that is all of a week, or a gigabyte."""


class SetupError(RuntimeError):
    """The monitor cannot start; the message is a sentence that names what is wrong and the remedy."""


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
            f"it: {_command(config, mirror, partitions=4, topic_config={})}"
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
        admin, listed = connection.reach(config.kafka.for_librdkafka(), config.kafka.reach_timeout_s)
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
    topics = config.topics
    missing = {name: wanted for name, wanted in needed.items() if name not in existing}
    for name in missing if not topics.create else ():
        _raise_if_hidden(admin, config, name, "Describe")
    if missing and not topics.create:
        commands = "; ".join(
            _command(config, name, partitions=topics.partitions, topic_config=wanted) for name, wanted in missing.items()
        )
        raise SetupError(f"missing topics, and topics.create is false; set it to true, or create them: {commands}")
    for name, wanted in missing.items():
        new = NewTopic(name, topics.partitions, topics.replication_factor, config=wanted)
        try:
            admin.create_topics([new], operation_timeout=config.kafka.reach_timeout_s)[name].result(config.kafka.reach_timeout_s)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:  # another monitor was quicker
                raise SetupError(f"cannot create topic {name}: {_cannot_create(config, name, wanted, error)}") from None


def _cannot_create(config: MonitorConfig, topic: str, wanted: Mapping[str, str], error: KafkaException) -> str:
    command = _command(config, topic, partitions=config.topics.partitions, topic_config=wanted)
    if error.args[0].code() not in REFUSED:
        return f"{_reason(error)}; create it yourself: {command}"
    kafka = config.kafka.for_librdkafka()
    return (
        f"user {user_of(kafka)} may not create it, nor see whether it exists; if it does, grant {grant(kafka, 'Write', topic)}; "
        f"if it does not, grant {grant(kafka, 'Create', topic)}, or create it as another user: {command}"
    )


def _raise_if_hidden(admin: AdminClient, config: MonitorConfig, topic: str, operation: str) -> None:
    """Kafka refuses a topic, whether it exists or not, to a user who may not describe it.

    :raises SetupError: if the user may not.
    """
    try:
        error = admin.list_topics(topic, timeout=config.kafka.reach_timeout_s).topics[topic].error
    except KafkaException as raised:
        raise SetupError(f"cannot describe topic {topic}: {_reason(raised)}") from None
    if error is not None and error.code() in REFUSED:
        properties = config.kafka.for_librdkafka()
        raise SetupError(
            f"user {user_of(properties)} may not see topic {topic} on {config.kafka.bootstrap_servers}, or it does not exist; "
            f"grant the right: {grant(properties, operation, topic)}"
        )


def _command(config: MonitorConfig, topic: str, *, partitions: int, topic_config: Mapping[str, str]) -> str:
    settings = "".join(f" --config {key}={value}" for key, value in topic_config.items())
    kafka = config.kafka.for_librdkafka()
    script = f"kafka-topics.sh --bootstrap-server {servers_of(kafka)}{command_config(kafka)}"
    return f"{script} --create --topic {topic} --partitions {partitions}{settings}"


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

"""The mirror topic: whether it is there and may be used, how it is created, and how it differs from what was asked for.

A broker gives the same answer for a topic that is missing and for one that the user may not describe. It also refuses to create a topic
that exists, if the right to create is missing. So the topic is looked at first, and only then a refusal is believed.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import ConfigResource, NewTopic, ResourceType

from coordinator_model.wording import counted
from streaming.errors import SetupError
from streaming.kafka.acls import REFUSED, command_config, grant, servers_of, user_of
from streaming.kafka.connection import ConnectionProblem, UnreachableError, reach
from streaming.kafka.topics import PARTITIONS, create, create_command, raise_if_hidden

if TYPE_CHECKING:
    from collections.abc import Mapping

    from confluent_kafka.admin import AdminClient

RETENTION_HOURS: Final = 72.0

_HOUR_MS: Final = 3_600_000
_ABSENT: Final = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC})  # noqa: SLF001 - public in all but name


class MirrorTopic(NamedTuple):
    """What was asked for with ``--create-topic``."""

    partitions: int = PARTITIONS
    replication_factor: int = -1  #: -1 leaves it to the broker, whose operator has chosen it there
    retention_hours: float = RETENTION_HOURS
    compression: str = "producer"  #: the topic's own; "producer" keeps what the producer sends

    def settings(self) -> dict[str, str]:
        """The topic's configuration."""
        return {"retention.ms": str(int(self.retention_hours * _HOUR_MS)), "compression.type": self.compression}

    def provide(self, config: Mapping[str, Any], topic: str, *, timeout_s: float) -> list[str]:
        """Create the topic unless it exists; return a sentence if it was created, and one for each difference if it was there.

        :raises SetupError: when the cluster does not answer, or the topic does not exist and may not be created.
        """
        if create_topic(
            config,
            topic,
            self.partitions,
            replication_factor=self.replication_factor,
            settings=self.settings(),
            timeout_s=timeout_s,
        ):
            return [f"created topic {topic} with {counted(self.partitions, 'partition')}, kept for {self.retention_hours:g} h"]
        differences = self._differences(config, topic, timeout_s)
        return [f"topic {topic} was there before and is not as asked for: {'; '.join(differences)}"] if differences else []

    def _differences(self, config: Mapping[str, Any], topic: str, timeout_s: float) -> list[str]:
        admin = _reached(config, timeout_s)
        found = admin.list_topics(topic, timeout=timeout_s).topics[topic].partitions
        said = []
        if len(found) != self.partitions:
            said.append(f"it has {counted(len(found), 'partition')}, not {self.partitions}, which is fixed for its life")
        replicas = {len(partition.replicas) for partition in found.values()}
        if self.replication_factor > 0 and replicas and replicas != {self.replication_factor}:
            said.append(f"its replication factor is {min(replicas)}, not {self.replication_factor}")
        held = _settings(admin, topic, timeout_s)
        for name, wanted in self.settings().items():
            if name in held and held[name] != wanted:
                said.append(
                    f"its {name} is {held[name]}, not {wanted} (kafka-configs.sh --bootstrap-server {servers_of(config)}"
                    f"{command_config(config)} --alter --topic {topic} --add-config {name}={wanted})"
                )
        return said


def _settings(admin: AdminClient, topic: str, timeout_s: float) -> dict[str, str]:
    """The topic's configuration; empty without the right to describe it, which nothing else needs."""
    resource = ConfigResource(ResourceType.TOPIC, topic)
    try:
        found = admin.describe_configs([resource], request_timeout=timeout_s)[resource].result(2 * timeout_s)
    except (KafkaException, TimeoutError):
        return {}
    return {name: str(entry.value) for name, entry in found.items()}


def create_topic(
    config: Mapping[str, Any],
    topic: str,
    partitions: int,
    *,
    replication_factor: int = -1,
    settings: Mapping[str, str] | None = None,
    timeout_s: float = 10.0,
) -> bool:
    """Create the mirror topic unless it exists; return whether it was created.

    Its number of partitions is fixed for its life: the job keeps one model for each.

    :raises SetupError: when the cluster does not answer or refuses.
    """
    new = NewTopic(topic, partitions, replication_factor=replication_factor, config=dict(settings or {}))
    if not create(_reached(config, timeout_s), config, new, timeout_s=timeout_s):
        return False
    deadline = time.monotonic() + timeout_s
    while True:  # a topic just created is not known to every broker at once
        try:
            topic_partitions(config, topic, timeout_s=timeout_s)
        except SetupError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return True


def topic_partitions(config: Mapping[str, Any], topic: str, *, timeout_s: float = 10.0, operation: str = "Write") -> int:
    """How many partitions the mirror topic has.

    :param operation: what it is to be used for: the right to do that is the right to see it.
    :raises SetupError: when the cluster does not answer, has no such topic, or does not show it to this user.
    """
    admin = _reached(config, timeout_s)
    try:
        found = admin.list_topics(topic, timeout=timeout_s).topics[topic]
    except KafkaException as error:
        raise SetupError(_unreachable(config, ConnectionProblem.ABSENT, str(error.args[0].str()))) from None
    raise_if_hidden(config, topic, found.error, operation)
    if found.error is not None or not found.partitions:
        raise SetupError(
            f"topic {topic!r} does not exist on {servers_of(config)} ({found.error.str() if found.error else 'no partitions'}): "
            f"create it, with --create-topic of the tap or of mirror, or with {_create(config, topic)}"
        )
    return len(found.partitions)


def not_taken(config: Mapping[str, Any], topic: str, error: KafkaError) -> str:
    """Why the topic does not take records, and the remedy."""
    if error.code() in REFUSED:
        return f"user {user_of(config)} may not write to topic {topic}; grant the right: {grant(config, 'Write', topic)}"
    if error.code() in _ABSENT:
        return f"topic {topic} does not exist any more; create it: {_create(config, topic)}"
    return f"topic {topic} does not take records ({error.str()})"


def _create(config: Mapping[str, Any], topic: str) -> str:
    return f"`{create_command(config, NewTopic(topic, PARTITIONS))}`"


def _reached(config: Mapping[str, Any], timeout_s: float) -> AdminClient:
    try:
        admin, _ = reach({**config, "log.connection.close": False}, timeout_s)
    except UnreachableError as error:
        if error.trouble is ConnectionProblem.SETTING:
            raise SetupError(f"the mirror's configuration is not accepted: {error}") from None
        raise SetupError(_unreachable(config, error.trouble, str(error))) from None
    return admin


def _unreachable(config: Mapping[str, Any], trouble: ConnectionProblem, reason: str) -> str:
    where = servers_of(config)
    if trouble is ConnectionProblem.LOGIN:
        return (
            f"the mirror's cluster at {where} refuses the login of user {user_of(config)} ({reason}): "
            "check sasl.mechanism, sasl.username and sasl.password in the file of --producer-config"
        )
    if trouble is ConnectionProblem.TRUST:
        return (
            f"no trusted connection to the mirror's cluster at {where} ({reason}): check ssl.ca.location, ssl.certificate.location and the "
            "host names in --bootstrap-server"
        )
    return (
        f"the mirror's cluster does not answer at {where} ({reason}): check --bootstrap-server and, if it wants TLS or a login, "
        "--producer-config"
    )

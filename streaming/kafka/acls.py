"""What an operator needs to grant a missing right: under which name Kafka knows a client, and the command.

Kafka's messages name neither the user nor the right, and its scripts need the security settings in a file of their own.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import KafkaError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

REFUSED: Final = frozenset({KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED})

_TOPICS_REFUSED: Final = re.compile(r"Not authorized to access topics: \[([^\]]+)\]")


def user_of(properties: Mapping[str, Any]) -> str:
    """Return the user name of a client with these librdkafka properties, as far as the properties show it."""
    if "SASL" in str(properties.get("security.protocol", "")).upper():
        return str(properties.get("sasl.username", "(unknown)"))
    certificate = properties.get("ssl.certificate.location")
    if certificate is not None:
        from cryptography import x509  # noqa: PLC0415 - 8 MiB, and hardly anybody reads the name in a certificate

        try:
            return x509.load_pem_x509_certificate(Path(str(certificate)).read_bytes()).subject.rfc4514_string()
        except (OSError, ValueError):
            return "(unknown)"
    return "ANONYMOUS"


def grant(properties: Mapping[str, Any], operation: str, topic: str) -> str:
    """The command that gives this client a right on a topic."""
    return _granting(properties, f"--operation {operation} --topic {topic}")


def grant_groups(properties: Mapping[str, Any]) -> str:
    """The command that lets this client see every consumer group, and the topics that its members read."""
    return _granting(properties, "--operation Describe --group '*' --topic '*'")


def _granting(properties: Mapping[str, Any], right: str) -> str:
    script = f"kafka-acls.sh --bootstrap-server {servers_of(properties)}{command_config(properties)}"
    return f"`{script} --add --allow-principal 'User:{user_of(properties)}' {right}`"


def not_readable(properties: Mapping[str, Any], topic: str, error: KafkaError) -> str:
    """Why the topic cannot be read, and the remedy."""
    if error.code() in REFUSED:
        return f"user {user_of(properties)} may not read it; grant the right: {grant(properties, 'Read', topic)}"
    return str(error.str())


def command_config(properties: Mapping[str, Any]) -> str:
    """The option of Kafka's scripts that names a file with the security settings, where there are any."""
    return (
        "" if str(properties.get("security.protocol", "PLAINTEXT")).upper() == "PLAINTEXT" else " --command-config admin.properties"
    )


def servers_of(properties: Mapping[str, Any]) -> str:
    """The bootstrap servers."""
    return str(properties.get("bootstrap.servers", "an unnamed cluster (no bootstrap.servers)"))


def refused_topics(properties: Mapping[str, Any], text: str, *, read: Collection[str]) -> str | None:
    """What the Java client says of topics that it may not use, with the user and the remedy; None where it says no such thing.

    :param read: the topics that are read; to the others something is written.
    """
    found = _TOPICS_REFUSED.search(text)
    if found is None:
        return None
    topics = [topic.strip() for topic in found[1].split(",")]
    said = [f"user {user_of(properties)} may not {'read' if topic in read else 'write to'} topic {topic}" for topic in topics]
    grants = [grant(properties, "Read" if topic in read else "Write", topic) for topic in topics]
    return f"{', '.join(said)}; grant the right: {', '.join(grants)}"

"""Reaching a Kafka for the first time, and saying why it cannot be reached.

librdkafka tries for ever and then says "Broker transport failure", whatever the matter is. That a login was refused, or a
certificate is not trusted, it reports to its error callback alone, once for each of many attempts, and only while it is polled.
"""

from __future__ import annotations

import enum
import logging
import re
import time
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

if TYPE_CHECKING:
    from collections.abc import Mapping

SILENT_LOGGER: Final = logging.getLogger("rebalance-monitor.librdkafka")
"""librdkafka repeats on the terminal what its calls raise anyway."""
SILENT_LOGGER.addHandler(logging.NullHandler())
SILENT_LOGGER.propagate = False

NO_TOPIC_BY_ITSELF: Final = {"allow.auto.create.topics": "false"}
"""A deleted topic must not come back with the broker's default settings because one of our clients asked for it."""

_FIRST_TRY_S: Final = 1.0
_CERTAIN_AFTER_S: Final = 2.0
"""A broker that is starting may refuse for a moment what it accepts later."""


class ConnectionProblem(enum.Enum):
    """What keeps a client from its Kafka, as far as the remedies differ."""

    SETTING = "setting"  #: the client does not take its properties
    LOGIN = "login"
    TRUST = "trust"  #: one side does not accept the other's certificate, or only one of them uses TLS
    ABSENT = "absent"  #: no answer


class UnreachableError(Exception):
    """Kafka cannot be reached; the message is the client's reason, without its decoration."""

    def __init__(self, trouble: ConnectionProblem, reason: str) -> None:
        super().__init__(reason)
        self.trouble = trouble


def reach(properties: Mapping[str, Any], timeout_s: float) -> tuple[AdminClient, Any]:
    """A client that is connected, and the cluster's metadata.

    :param properties: of librdkafka.
    :raises UnreachableError: when no broker answers in time, or one has refused for two seconds.
    """
    seen: dict[ConnectionProblem, tuple[float, str]] = {}

    def on_error(error: KafkaError) -> None:
        trouble = trouble_of(error)
        if trouble is not None:
            seen.setdefault(trouble, (time.monotonic(), plain(error.str())))

    admin = client({**properties, "error_cb": on_error})
    deadline, wait_s = time.monotonic() + timeout_s, _FIRST_TRY_S
    while True:
        try:
            return admin, admin.list_topics(timeout=max(0.01, min(wait_s, deadline - time.monotonic())))
        except KafkaException as error:
            admin.poll(0.01)
            now, wait_s = time.monotonic(), 2 * wait_s
            refused = next((trouble for trouble in (ConnectionProblem.LOGIN, ConnectionProblem.TRUST) if trouble in seen), None)
            if refused is not None and (now - seen[refused][0] > _CERTAIN_AFTER_S or now >= deadline):
                raise UnreachableError(refused, explained(properties, refused, seen[refused][1])) from None
            if now >= deadline:
                raise UnreachableError(
                    ConnectionProblem.ABSENT, seen.get(ConnectionProblem.ABSENT, (0, error.args[0].str()))[1]
                ) from None


def client(properties: Mapping[str, Any]) -> AdminClient:
    """An admin client that has not connected yet.

    :raises UnreachableError: when librdkafka does not take the properties, or the files that they name.
    """
    try:
        return AdminClient({**properties, **NO_TOPIC_BY_ITSELF}, logger=SILENT_LOGGER)
    except KafkaException as error:
        raise UnreachableError(ConnectionProblem.SETTING, plain(error.args[0].str())) from None
    except (ValueError, TypeError) as error:
        raise UnreachableError(ConnectionProblem.SETTING, str(error)) from None


def trouble_of(error: KafkaError) -> ConnectionProblem | None:
    """What an error from a client's callback means for its connection; None for one that means nothing."""
    return ConnectionProblem.TRUST if "SSL routines" in error.str() else _TROUBLES.get(error.code())


def explained(properties: Mapping[str, Any], trouble: ConnectionProblem, reason: str) -> str:
    """The reason with what librdkafka leaves out: which certificate is not accepted, and why."""
    if trouble is not ConnectionProblem.TRUST:
        return reason
    from streaming.kafka.trust import why_not_trusted  # noqa: PLC0415 - what reads certificates takes 8 MiB

    found = why_not_trusted(properties)
    return reason if found is None else f"{found}: {reason}"


_TROUBLES: Final = {
    KafkaError._AUTHENTICATION: ConnectionProblem.LOGIN,  # noqa: SLF001 - librdkafka's local codes are named so
    KafkaError._SSL: ConnectionProblem.TRUST,  # noqa: SLF001
    KafkaError._TRANSPORT: ConnectionProblem.ABSENT,  # noqa: SLF001
    KafkaError._RESOLVE: ConnectionProblem.ABSENT,  # noqa: SLF001
}

_WHERE: Final = re.compile(r"^(?:\w+://)?\S+?/(?:bootstrap|\d+): ")
_WHEN: Final = re.compile(r" \(after \d+ms in state \w+\)")
_OPENSSL: Final = re.compile(r"error:[0-9A-F]+:[^:]*:[^:]*:")
_AGAIN: Final = re.compile(r": \(?\d+ identical error\(s\) suppressed\)?")


def plain(text: str) -> str:
    """The reason alone, without where, when and how often it happened."""
    for decoration in (_WHERE, _WHEN, _AGAIN, _OPENSSL):
        text = decoration.sub("", text)
    return text.strip()

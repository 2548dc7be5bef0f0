"""Credentials of Kafka clients, and whether a cluster refuses them."""

from __future__ import annotations

import contextlib
import hashlib
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import KafkaError

from streaming.kafka.acls import not_readable
from streaming.kafka.connection import NO_TOPIC_BY_ITSELF, ConnectionProblem, explained, plain, trouble_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_FILES: Final = ("ssl.ca.location", "ssl.certificate.location", "ssl.key.location", "ssl.keystore.location")


_AGAIN_S, _AGAIN_MAX_S = 1.0, 30.0
_STALE_S: Final = 60.0  # two of librdkafka's intervals: a refusal that is not repeated for so long is over


class Credentials:
    """The properties of one client, read again for each time that it is built, and whether Kafka accepts them.

    :param read: gives the properties; what it reads from files is what they hold now.
    :param who: the client, as messages to the operator name it.
    :param tell: called with one sentence when Kafka refuses the client, and when it was built again.
    """

    def __init__(
        self, read: Callable[[], Mapping[str, Any]], who: str, tell: Callable[[str], None] = lambda _sentence: None
    ) -> None:
        self._read = read
        self._who = who
        self.tell = tell
        self._properties: dict[str, Any] = {}
        self._built_with = ""
        self._reason: str | None = None
        self._refused_at = 0.0
        self._look_at = 0.0
        self._wait_s = _AGAIN_S

    def properties(self) -> dict[str, Any]:
        """For a client that is about to be built.

        :raises OSError: when a file cannot be read.
        """
        self._properties = dict(self._read())
        self._built_with = _fingerprint(self._properties)
        return {**self._properties, **NO_TOPIC_BY_ITSELF}

    @property
    def refused(self) -> str | None:
        """Why Kafka does not accept the client; None while it does."""
        if self._reason is not None and time.monotonic() - self._refused_at > _STALE_S:
            self._reason = None
        return self._reason

    def on_error(self, error: KafkaError) -> None:
        """Take an error from the client's callback."""
        trouble = trouble_of(error)
        if trouble not in (ConnectionProblem.LOGIN, ConnectionProblem.TRUST):
            return
        self._refused_at = time.monotonic()
        if self._reason is None:
            self._reason = explained(self._properties, trouble, plain(error.str()))
            servers = self._properties.get("bootstrap.servers")
            self.tell(f"{self._who} stands still: Kafka at {servers} refuses it ({self._reason}); its credentials are read again")

    def warn_of(self, what: str, error: KafkaError, topic: str) -> None:
        """Report that Kafka accepts the client and refuses it a topic, with the missing right."""
        self.tell(f"{self._who}: {what}: {not_readable(self._properties, topic, error)}")

    def accepted(self) -> None:
        """Something came through."""
        self._reason = None
        self._wait_s = _AGAIN_S

    def changed(self) -> bool:
        """Whether the client is refused and its files hold other credentials by now: it is to be built again.

        Looks at the files once in a while only; to be called as often as one likes.
        """
        now = time.monotonic()
        if self.refused is None or now < self._look_at:
            return False
        self._look_at = now + self._wait_s
        try:
            found = dict(self._read())
        except Exception:  # half-written files, in one of many ways: the next look sees the whole
            return False
        if _fingerprint(found) == self._built_with:
            return False
        self._wait_s = min(2 * self._wait_s, _AGAIN_MAX_S)
        self._look_at = now + self._wait_s
        return True

    def renewed(self) -> None:
        """The client was built again: whether it is accepted will show."""
        self._reason = None
        self.tell(f"{self._who} was built again with the credentials that its files hold now")

    def not_usable(self, why: str) -> None:
        """The client could not be built again with what the files hold."""
        self._refused_at = math.inf
        self._built_with = ""
        self._reason = f"the new credentials cannot be used: {why}"
        self.tell(f"{self._who} stands still: {self._reason}; they are read again")


def _fingerprint(properties: Mapping[str, Any]) -> str:
    """Of all that a client is built with, the content of the files among it; a file that cannot be read counts as empty."""
    digest = hashlib.sha256()
    for name, value in sorted(properties.items()):
        if not callable(value):
            digest.update(repr((name, value)).encode())
        if name in _FILES:
            with contextlib.suppress(OSError):
                digest.update(Path(str(value)).read_bytes())
    return digest.hexdigest()

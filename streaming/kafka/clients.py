"""Kafka clients that outlive their credentials: refused for them, a client is built again from the files, and its queue is kept.

librdkafka reads certificates and passwords once, when a client is built, and then tries for ever with those. So whatever runs for long
holds its producer or consumer through a class of this module. The client is replaced only when it was refused *and* the files hold
something else than it was built with: a new client with the same credentials would be refused as well.

A refusal is reported to the error callback alone, while the client is polled, and an identical one at most every 30 s.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from streaming.kafka.connection import SILENT_LOGGER, plain
from streaming.kafka.credentials import Credentials

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


_ALWAYS: Final[dict[str, Any]] = {
    "enable.idempotence": True,
    # A record waits as long as its cluster is away or refuses it. Who produces bounds the queue, so the client's own bounds lie above.
    "message.timeout.ms": 0,
    "queue.buffering.max.messages": 0,
    "queue.buffering.max.kbytes": 2**31 - 1,
}
_HOLD_S, _HOLD_MAX_S = 0.5, 10.0
_CHUNK: Final = 1_000
_LET_GO_S: Final = 1.0

_MOST: Final = 50_000
_WARN_EVERY_S: Final = 60.0

EVERY_PARTITION: Final = -2
"""As the partition of a record: one copy to each."""

# Of the record itself: it will never be taken, whatever the operator does.
_NEVER_TAKEN: Final = frozenset(
    {
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError._BAD_MSG,  # noqa: SLF001 - librdkafka's local codes are named so
        KafkaError._INVALID_ARG,  # noqa: SLF001
        KafkaError.INVALID_RECORD,
        KafkaError.INVALID_TIMESTAMP,
        KafkaError.INVALID_MSG_SIZE,
        KafkaError.INVALID_REQUIRED_ACKS,
    }
)


class Queued(NamedTuple):
    """A record that Kafka has not confirmed."""

    topic: str
    value: bytes | None
    key: bytes | None = None
    partition: int = -1
    timestamp_ms: int = 0
    headers: list[tuple[str, str | bytes | None]] = []
    about: Any = None  #: for the caller: handed back with the report


def _is_gone(record: Queued, error: KafkaError) -> bool:
    """Whether a partition that is to have a copy is there no longer: a topic that was created again may have fewer."""
    return record.partition == EVERY_PARTITION and error.code() == KafkaError._UNKNOWN_PARTITION  # noqa: SLF001


class _LossNotice:
    """Report records that Kafka will never have, at most once a minute."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._lost = 0
        self._warned_at = -math.inf

    def __call__(self, record: Queued, error: KafkaError | None) -> None:
        if error is None:
            return
        self._lost += 1
        if time.monotonic() - self._warned_at >= _WARN_EVERY_S:
            self._warned_at = time.monotonic()
            self._tell(f"records lost so far: {self._lost}, the last one for topic {record.topic} ({error.str()})")


class LastingProducer:
    """A producer whose queue outlives its client: what Kafka has not confirmed is kept here, in order, until it has.

    A client that is refused for its credentials, or met a fatal error, is replaced, and the new one is given the queue. Where the topic is
    refused (a right was taken away, the topic is gone), the queue is held and offered again, ever less often up to each 10 s.

    A queue that is full gives up its oldest records. Records in flight when a client is replaced may reach their topic twice.

    :param settings: of the producer, unless its properties say otherwise.
    :param reported: called for each record once Kafka has it, or with the error if it will never have it; by default the loss is reported.
    :param most: how many records it keeps.
    """

    def __init__(
        self,
        credentials: Credentials,
        settings: Mapping[str, Any],
        *,
        reported: Callable[[Queued, KafkaError | None], None] | None = None,
        on_error: Callable[[KafkaError], None] = lambda _error: None,
        most: int = _MOST,
    ) -> None:
        self.partitions = 1  #: for records to every partition
        self.credentials = credentials
        self.held: KafkaError | None = None  #: why the topic does not take the records; None while it does
        self.lock = threading.RLock()  #: held while the queue changes; a user's own lock, too, so that there is one order
        self._settings = dict(settings)
        self._on_reported = reported or _LossNotice(credentials.tell)
        self._most = most
        self._on_error = on_error
        self._queue: dict[int, Queued] = {}
        self._waiting: deque[int] = deque()  # those of the queue that the client does not have
        self._returned: set[int] = set()  # those that it could not deliver; all older than the waiting
        self._copies: dict[int, int] = {}  # those that it has
        self._reached: set[int] = set()  # those of which a copy is in a partition
        self._number = 0
        self._age = 0
        self._again_at = 0.0
        self._hold_s = _HOLD_S
        self._fatal = False
        self._started = False
        self._client: Producer | None = None

    def start(self) -> None:
        """Build the client; what was queued before is given to it.

        :raises Exception: whatever the client library or a file of the credentials raises.
        """
        self._client = self._built()
        self._started = True
        self._offer()

    def __len__(self) -> int:
        """How many records Kafka has not confirmed."""
        return len(self._queue)

    def queued(self) -> list[Queued]:
        """What Kafka has not confirmed, in order."""
        with self.lock:
            return list(self._queue.values())

    def oldest(self) -> Queued | None:
        """The one that has waited for longest."""
        with self.lock:
            return next(iter(self._queue.values()), None)

    def produce(self, record: Queued) -> None:
        """Queue a record."""
        with self.lock:
            if len(self._queue) >= self._most:
                self._give_up_oldest()
            number = self._number
            self._number += 1
            self._queue[number] = record
            if self._client is None or self._fatal or self._waiting or self._returned:
                self._waiting.append(number)
            else:
                self._send(self._client, number)

    def poll(self, timeout_s: float) -> None:
        """Take in what the client reports, and see to what it could not deliver; to be called often."""
        client = self._client
        if client is not None and not self._fatal:
            try:
                client.poll(timeout_s)
            except KafkaException as error:  # a fatal error is raised, too
                self._on_client_error(error.args[0])
        elif timeout_s:
            time.sleep(timeout_s)
        if not self._started:
            return
        if self.credentials.changed() or (self._fatal and time.monotonic() >= self._again_at):
            self._renew()
        elif (self._waiting or self._returned) and not self._fatal:
            self._offer()

    def flush(self, timeout_s: float) -> int:
        """Wait until Kafka has everything; return how many records it still has not."""
        deadline = time.monotonic() + timeout_s
        while self._queue and (left := deadline - time.monotonic()) > 0:
            self.poll(min(0.1, left))
        return len(self._queue)

    def close(self) -> None:
        """Drop what is queued, and end."""
        with self.lock:
            client, self._client = self._client, None
            self._started = False
            self._age += 1
            for held in (self._queue, self._waiting, self._returned):
                held.clear()
        if client is not None:
            with contextlib.suppress(KafkaException):
                client.purge()
                client.flush(_LET_GO_S)

    # --- inside ------------------------------------------------------------------------------------------------------

    def _built(self) -> Producer:
        properties = {**self._settings, **self.credentials.properties(), **_ALWAYS, "error_cb": self._on_client_error}
        return Producer(properties, logger=SILENT_LOGGER)

    def _on_client_error(self, error: KafkaError) -> None:
        if error.fatal():
            self._fatal, self.held = True, error
        self.credentials.on_error(error)
        self._on_error(error)

    def _send(self, client: Producer, number: int) -> None:
        """The caller holds the lock."""
        record = self._queue[number]
        places = range(self.partitions) if record.partition == EVERY_PARTITION else (record.partition,)
        self._copies[number] = len(places)
        done = partial(self._reported, self._age, number)
        for partition in places:
            try:
                client.produce(
                    record.topic,
                    value=record.value,
                    key=record.key,
                    partition=partition,
                    timestamp=record.timestamp_ms,
                    headers=record.headers,
                    on_delivery=done,
                )
            except KafkaException as error:
                self._reported(self._age, number, error.args[0])
            except BufferError:
                self._reported(self._age, number, KafkaError(KafkaError._QUEUE_FULL))  # noqa: SLF001

    def _reported(self, age: int, number: int, error: KafkaError | None, _message: Any = None) -> None:
        with self.lock:
            if age != self._age:
                return  # of a client that was replaced: the record is on its way again
            self._copies[number] -= 1
            record = self._queue.get(number)
            if record is None:  # it was given up
                if not self._copies[number]:
                    del self._copies[number]
                return
            if error is None:
                self._reached.add(number)
            elif error.code() not in _NEVER_TAKEN and not _is_gone(record, error):
                self._returned.add(number)
                self.held = error
            if self._copies[number]:
                return
            del self._copies[number]
            if number in self._returned:
                return
            del self._queue[number]
            if number in self._reached:
                self._reached.discard(number)
                error = None
                self.credentials.accepted()
                if not self._returned:
                    self.held, self._hold_s = None, _HOLD_S
            self._on_reported(record, error)

    def _give_up_oldest(self) -> None:
        number, record = next(iter(self._queue.items()))
        del self._queue[number]
        self._returned.discard(number)
        if self._waiting and self._waiting[0] == number:
            self._waiting.popleft()
        self._on_reported(record, KafkaError(KafkaError._QUEUE_FULL))  # noqa: SLF001

    def _offer(self) -> None:
        """Give the client what it does not have, once it has reported all that it could not deliver."""
        with self.lock:
            if self._returned:
                if time.monotonic() < self._again_at or self._copies:
                    return
                self._waiting.extendleft(sorted(self._returned, reverse=True))
                self._returned.clear()
                self._wait_longer()
        while True:
            with self.lock:
                client = self._client
                if client is None or not self._waiting or self._returned:
                    return
                for _ in range(min(_CHUNK, len(self._waiting))):
                    self._send(client, self._waiting.popleft())

    def _wait_longer(self) -> None:
        self._again_at = time.monotonic() + self._hold_s
        self._hold_s = min(2 * self._hold_s, _HOLD_MAX_S)

    def _renew(self) -> None:
        with self.lock:
            old, self._client = self._client, None
        if old is not None:
            with contextlib.suppress(KafkaException):
                old.purge(in_flight=False, blocking=False)
                old.flush(_LET_GO_S)  # what Kafka confirms meanwhile is not written twice
                old.purge()
                old.flush(_LET_GO_S)
        with self.lock:
            self._age += 1
            self._returned.clear()
            self._copies.clear()
            self._waiting = deque(self._queue)
            self._wait_longer()
        fatal, self._fatal = self._fatal, False
        try:
            self._client = self._built()
        except Exception as error:  # librdkafka raises three kinds, a file OSError: it is tried again
            self.credentials.not_usable(reason_of(error))
            return
        if not fatal:
            self.held = None
            self.credentials.renewed()
        self._offer()


class LastingConsumer:
    """A consumer of assigned partitions that goes on where it was when its client has to be replaced."""

    def __init__(
        self, credentials: Credentials, settings: Mapping[str, Any], *, on_error: Callable[[KafkaError], None] = lambda _error: None
    ) -> None:
        self.credentials = credentials
        self._on_error = on_error
        self._settings = dict(settings)
        self._places: dict[tuple[str, int], int] = {}
        self._warned_refused: set[str | None] = set()
        self.client = self._built()  #: for questions about topics

    def assign(self, places: Iterable[TopicPartition]) -> None:
        """Read these partitions, from their offsets on."""
        self._places = {}
        self.add(places)

    def add(self, places: Iterable[TopicPartition]) -> None:
        """Read these, too."""
        self._places |= {(place.topic, place.partition): place.offset for place in places}
        self._assign()

    def _assign(self) -> None:
        self.client.assign([TopicPartition(topic, partition, offset) for (topic, partition), offset in self._places.items()])

    def consume(self, count: int, timeout_s: float) -> list[Any]:
        """As :meth:`confluent_kafka.Consumer.consume`."""
        if self.credentials.changed():
            self._renew()
        messages = without_group(self.client.consume(count, timeout_s))
        for message in messages:
            if message.error() is None:
                self._places[message.topic(), message.partition()] = message.offset() + 1
            elif message.error().code() != KafkaError._PARTITION_EOF:  # noqa: SLF001
                self._warn_refused(message.topic(), message.error())
                continue
            self._warned_refused.discard(message.topic())
            self.credentials.accepted()
        return messages

    def _warn_refused(self, topic: str | None, error: KafkaError) -> None:
        if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED and topic not in self._warned_refused:
            self._warned_refused.add(topic)
            self.credentials.warn_of(f"topic {topic} cannot be read", error, topic or "")

    def close(self) -> None:
        self.client.close()

    def _built(self) -> Consumer:
        properties = {**self.credentials.properties(), **self._settings, "error_cb": self._on_client_error}
        return Consumer(properties, logger=SILENT_LOGGER)

    def _on_client_error(self, error: KafkaError) -> None:
        self.credentials.on_error(error)
        self._on_error(error)

    def _renew(self) -> None:
        try:
            new = self._built()
        except Exception as error:
            self.credentials.not_usable(reason_of(error))
            return
        old, self.client = self.client, new
        old.close()
        self._assign()
        self.credentials.renewed()


def without_group(messages: Iterable[Any]) -> list[Any]:
    """What a consumer of assigned partitions fetched, without the broker's refusal of its group, which it does not use.

    librdkafka insists on a ``group.id`` and looks for its coordinator, once a second while that is refused. Fetching from given offsets
    does not wait for it.
    """
    return [
        message
        for message in messages
        if message.error() is None or message.error().code() != KafkaError.GROUP_AUTHORIZATION_FAILED
    ]


def reason_of(error: Exception) -> str:
    """What an exception of the client library says, in its own words."""
    inner = error.args[0] if error.args else error
    return plain(inner.str()) if isinstance(inner, KafkaError) else str(inner)

"""Writes mirror records to their topic, and says so when it could not.

The capturer must never wait for the mirror's cluster: it stands in the path of the clients. So records go into a bounded buffer;
when that is full they are counted instead, and once there is room again a ``gap`` record to every partition says how many are
missing, before any later record.

The traps: a gap told while the buffer is still nearly full would be followed at once by the next loss, hence the wait for half of
it; and librdkafka reports a record's fate on the thread that polls, hence the lock.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import NewTopic

from coordinator_model.wire.record import HEADER_NAME, Kind, Loss, MirrorRecord, pack_envelope, pack_loss
from streaming.sinks.reach import Trouble, UnreachableError, reach

if TYPE_CHECKING:
    from collections.abc import Mapping

    from confluent_kafka.admin import AdminClient

DEFAULT_TOPIC: Final = "rebalance-mirror"

log = logging.getLogger(__name__)

_silent = logging.getLogger(f"{__name__}.librdkafka")
_silent.addHandler(logging.NullHandler())
_silent.propagate = False

# What a buffered record costs beside its value: envelope, key and librdkafka's own bookkeeping.
_OVERHEAD: Final = 512

_ALWAYS: Final[dict[str, Any]] = {
    "enable.idempotence": True,
    "acks": "all",
    "partitioner": "murmur2_random",  # as Java's: other producers of the same topic agree on the partition of a group
    # A record waits as long as its cluster is away: what is lost is then one stretch of time, at the end of the buffer.
    "message.timeout.ms": 0,
    # The buffer is bounded here, where the loss is counted, so librdkafka's own bounds must lie above.
    "queue.buffering.max.messages": 0,
    "queue.buffering.max.kbytes": 2**31 - 1,
}
_BY_DEFAULT: Final[dict[str, Any]] = {
    "client.id": "rebalance-monitor-tap",
    "linger.ms": 5,
    "reconnect.backoff.max.ms": 1000,
    "log.connection.close": False,
}


class MirrorSink(Protocol):
    """Takes mirror records in capture order."""

    def write(self, record: MirrorRecord) -> None:
        """Take one record; never blocks, never raises. A record without a group is for every partition."""


class MirrorError(Exception):
    """The mirror topic cannot be used; the message is one sentence that names it and the remedy."""


class MirrorAwayError(MirrorError):
    """The mirror's cluster does not answer; it may later."""


class KafkaSink:
    """A :class:`MirrorSink` that produces to the mirror topic.

    :param config: librdkafka properties, ``bootstrap.servers`` among them.
    :param buffer_bytes: bound of what is held while the mirror's cluster does not take it.
    :param buffer_records: the same bound, counted in records.
    :raises MirrorError: when the cluster does not answer or the topic does not exist.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        *,
        topic: str = DEFAULT_TOPIC,
        cluster: str = "",
        buffer_bytes: int = 64 * 2**20,
        buffer_records: int = 500_000,
        timeout_s: float = 10.0,
    ) -> None:
        self._config = {**_BY_DEFAULT, **config, **_ALWAYS}
        self._topic = topic
        self._cluster = cluster
        self._buffer_bytes = buffer_bytes
        self._buffer_records = buffer_records
        self.partitions = topic_partitions(config, topic, timeout_s=timeout_s)
        self._lock = threading.Lock()
        self._buffered_bytes = 0
        self._buffered_records = 0
        self._pending_loss: Loss | None = None  # not yet told
        self._told_loss: Loss | None = None  # told, and not yet heard by every partition
        self._untold = 0  # its copies that are on their way
        self._reachable = True
        self._fatal = False
        self._closing = False
        self.written = 0  #: records that the topic has
        self.lost = 0  #: records that it will never have
        self._producer = self._new_producer()
        self._poller = threading.Thread(target=self._poll, name="mirror-producer", daemon=True)
        self._poller.start()

    @property
    def buffered(self) -> int:
        """Records that are on their way."""
        return self._buffered_records

    def write(self, record: MirrorRecord) -> None:
        """Produce the record, or count it as lost when there is no room for it."""
        with self._lock:
            if self._pending_loss is not None:
                room = self._tell_loss(record.at_us)
            else:
                copies = self.partitions if record.group is None else 1
                room = self._has_room(copies, copies * len(record.frame), 1.0)
            if room:
                self._produce(record)
            else:
                self._lose(record.kind, len(record.frame), record.at_us, "its buffer is full")

    def inherit(self, loss: Loss) -> None:
        """Tell a loss from before this sink was there, before the next record."""
        with self._lock:
            self._pending_loss = added(self._pending_loss, loss)
            self.lost += loss.records

    def close(self, timeout_s: float = 10.0) -> int:
        """Flush what is buffered; returns how many records could not be delivered in time and are lost without a gap record."""
        with self._lock:
            if self._pending_loss is not None:
                self._tell_loss(self._pending_loss.to_us)
        self._closing = True
        self._poller.join()
        with contextlib.suppress(KafkaException):
            self._producer.flush(timeout_s)
        unsent = self._buffered_records + (self._pending_loss.records if self._pending_loss else 0)
        if self._buffered_records:
            self._producer.purge()
            self._producer.flush(1.0)
        return unsent

    # --- inside: the caller holds the lock ---------------------------------------------------------------------------

    def _has_room(self, records: int, size: int, share: float) -> bool:
        return (
            self._buffered_records + records <= self._buffer_records * share
            and self._buffered_bytes + size + records * _OVERHEAD <= self._buffer_bytes * share
        )

    def _tell_loss(self, at_us: int) -> bool:
        """Produce the gap records if the buffer has emptied enough for it to be worth while."""
        loss = self._pending_loss
        assert loss is not None
        if not self._has_room(self.partitions, 0, 0.5):
            return False
        self._pending_loss, self._told_loss = None, added(self._told_loss, loss)
        self._untold += self.partitions
        gap = MirrorRecord(
            partition=-1,
            offset=-1,
            group=None,
            kind=Kind.GAP,
            at_us=at_us,
            cluster=self._cluster,
            broker="",
            connection="",
            exchange=-1,
            api_key=-1,
            api_version=-1,
            correlation_id=0,
            client_id=None,
            client_address="",
            client_software="",
            cut_bytes=0,
            queued_behind=0,
            frame=pack_loss(loss),
        )
        self._produce(gap, tells_loss=True)
        return self._pending_loss is None

    def _produce(self, record: MirrorRecord, *, tells_loss: bool = False) -> None:
        key = None if record.group is None else record.group.encode(errors="replace")
        headers: list[tuple[str, str | bytes | None]] = [(HEADER_NAME, pack_envelope(record))]
        # librdkafka's own report of a record that failed may lack its time and value.
        delivered = partial(self._delivered, None if tells_loss else record.kind, len(record.frame), record.at_us)
        for partition in range(self.partitions) if record.group is None else (-1,):
            try:
                self._producer.produce(
                    self._topic,
                    value=record.frame,
                    key=key,
                    partition=partition,
                    timestamp=record.at_us // 1000,
                    headers=headers,
                    on_delivery=delivered,
                )
            except (KafkaException, BufferError) as error:
                self._failed(None if tells_loss else record.kind, len(record.frame), record.at_us, _reason(error))
            else:
                self._buffered_records += 1
                self._buffered_bytes += len(record.frame) + _OVERHEAD

    def _failed(self, kind: Kind | None, size: int, at_us: int, why: str) -> None:
        """A record was taken and does not arrive after all; None stands for one that tells a loss."""
        if kind is not None:
            self._lose(kind, size, at_us, why)
            return
        self._untold -= 1
        if self._told_loss is not None:  # better told twice to some partitions than not at all to one
            self._pending_loss = added(self._pending_loss, self._told_loss)
            self._told_loss = None

    def _lose(self, kind: Kind, size: int, at_us: int, why: str) -> None:
        if kind is Kind.TICK:
            return  # the next one tells the same
        if self._pending_loss is None:
            log.error(
                "frames are lost between capture and topic %s from now on: %s; the clients' traffic goes on", self._topic, why
            )
        self.lost += 1
        self._pending_loss = added(self._pending_loss, Loss(1, size, at_us, at_us))

    # --- inside: the polling thread ----------------------------------------------------------------------------------

    def _poll(self) -> None:
        while not self._closing:
            self._producer.poll(0.1)
            if self._fatal:
                self._renew()

    def _delivered(self, kind: Kind | None, size: int, at_us: int, error: KafkaError | None, _: Message) -> None:
        with self._lock:
            self._buffered_records -= 1
            self._buffered_bytes -= size + _OVERHEAD
            if error is not None:
                if not self._closing:
                    self._failed(kind, size, at_us, error.str())
                return
            self.written += 1
            if not self._reachable:
                self._reachable = True
                log.warning("the mirror's cluster answers again")
            if kind is None:
                self._heard()

    def _heard(self) -> None:
        self._untold -= 1
        if self._untold == 0 and self._told_loss is not None:
            loss, self._told_loss = self._told_loss, None
            log.warning(
                "%d frames (%d bytes) were lost; every partition of topic %s says so", loss.records, loss.bytes, self._topic
            )

    def _on_error(self, error: KafkaError) -> None:
        if error.fatal():
            self._fatal = True
        elif error.code() == KafkaError._ALL_BROKERS_DOWN and self._reachable:  # noqa: SLF001 - librdkafka's local codes are named so
            self._reachable = False
            log.error("the mirror's cluster (%s) does not answer: frames are buffered", self._config["bootstrap.servers"])

    def _renew(self) -> None:
        """An idempotent producer that met a fatal error takes no record any more; what it still holds is lost."""
        log.error("the mirror's producer met a fatal error and is replaced")
        with self._lock:
            old, self._producer, self._fatal = self._producer, self._new_producer(), False
        old.purge()
        old.flush(5)

    def _new_producer(self) -> Producer:
        try:
            return Producer({**self._config, "error_cb": self._on_error}, logger=_silent)
        except (KafkaException, ValueError, TypeError) as error:
            raise MirrorError(f"the mirror's producer configuration is not accepted: {_reason(error)}") from None


def added(one: Loss | None, other: Loss) -> Loss:
    """Both losses as one."""
    if one is None:
        return other
    return Loss(one.records + other.records, one.bytes + other.bytes, min(one.from_us, other.from_us), max(one.to_us, other.to_us))


def create_topic(config: Mapping[str, Any], topic: str, partitions: int, *, timeout_s: float = 10.0) -> bool:
    """Create the mirror topic unless it exists; returns whether it was created.

    Its number of partitions is fixed for its life: the job keeps one model for each.

    :raises MirrorError: when the cluster does not answer or refuses.
    """
    admin = _reached(config, timeout_s)
    # Replication is left to the broker's default (-1): the operator has chosen it there.
    future = admin.create_topics([NewTopic(topic, partitions, replication_factor=-1)], operation_timeout=timeout_s)[topic]
    try:
        future.result(timeout_s)
    except KafkaException as error:
        code = error.args[0].code()
        if code == KafkaError.TOPIC_ALREADY_EXISTS:
            return False
        raise MirrorError(f"cannot create topic {topic!r} on {_where(config)}: {_reason(error)}") from None
    except TimeoutError:
        raise MirrorAwayError(_unreachable(config)) from None
    deadline = time.monotonic() + timeout_s
    while True:  # a topic just created is not known to every broker at once
        try:
            topic_partitions(config, topic, timeout_s=timeout_s)
        except MirrorError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return True


def topic_partitions(config: Mapping[str, Any], topic: str, *, timeout_s: float = 10.0) -> int:
    """How many partitions the mirror topic has.

    :raises MirrorError: when the cluster does not answer or has no such topic.
    """
    admin = _reached(config, timeout_s)
    try:
        found = admin.list_topics(topic, timeout=timeout_s).topics[topic]
    except KafkaException as error:
        raise MirrorAwayError(f"{_unreachable(config)} ({_reason(error)})") from None
    if found.error is not None or not found.partitions:
        raise MirrorError(
            f"topic {topic!r} does not exist on {_where(config)} ({found.error.str() if found.error else 'no partitions'}): "
            f"start with --create-topic --partitions N, or run "
            f"`kafka-topics.sh --bootstrap-server {_where(config)} --create --topic {topic} --partitions 4`"
        )
    return len(found.partitions)


def _reached(config: Mapping[str, Any], timeout_s: float) -> AdminClient:
    try:
        admin, _ = reach({**config, "log.connection.close": False}, timeout_s)
    except UnreachableError as error:
        if error.trouble is Trouble.SETTING:
            raise MirrorError(f"the mirror's configuration is not accepted: {error}") from None
        raise MirrorAwayError(f"{_unreachable(config)} ({error})") from None
    return admin


def _unreachable(config: Mapping[str, Any]) -> str:
    return f"the mirror's cluster does not answer at {_where(config)}: check --bootstrap-server and its security settings"


def _where(config: Mapping[str, Any]) -> str:
    return str(config.get("bootstrap.servers", "an unnamed cluster (no bootstrap.servers)"))


def _reason(error: Exception) -> str:
    inner = error.args[0] if error.args else error
    return inner.str() if isinstance(inner, KafkaError) else str(inner)

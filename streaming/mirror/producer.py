"""Writes mirror records to their topic, and reports when it could not.

The capturer must never wait for the mirror's cluster: it stands in the path of the clients. So records go into a bounded buffer, from
which they leave once Kafka has confirmed them. A cluster that is away, refuses the login or has taken a right away costs nothing until
the buffer is full. Then records are counted instead. Once there is room again, a ``gap`` record to every partition says how many are
missing, before any later record.

A gap written while the buffer is still nearly full would be followed at once by the next loss, so it waits for half of the room. librdkafka
reports a record's fate on the thread that polls, so there is a lock.
"""

from __future__ import annotations

import logging
import math
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Final, Protocol

from confluent_kafka import KafkaError, KafkaException

from coordinator_model.wire.record import HEADER_NAME, Kind, Loss, MirrorRecord, as_held, gap, pack_envelope
from coordinator_model.wording import counted, plural
from streaming.errors import SetupError
from streaming.kafka.clients import EVERY_PARTITION, LastingProducer, Queued, reason_of
from streaming.kafka.credentials import Credentials
from streaming.kafka.mirror_topic import MirrorTopic, not_taken, topic_partitions
from streaming.mirror import DEFAULT_TOPIC
from streaming.mirror.losses import added

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from streaming.mirror.losses import LossFile

log = logging.getLogger(__name__)

# What a buffered record costs beside its value: envelope, key, and the bookkeeping of the queue and of librdkafka.
_OVERHEAD: Final = 768

_ALWAYS: Final[dict[str, Any]] = {
    "acks": "all",
    "partitioner": "murmur2_random",  # as Java's: other producers of the same topic agree on the partition of a group
}
_BY_DEFAULT: Final[dict[str, Any]] = {
    "client.id": "rebalance-monitor-tap",
    "compression.type": "zstd",
    "linger.ms": 5,
    "reconnect.backoff.max.ms": 1000,
    "log.connection.close": False,
}

_SAY_EVERY_S: Final = 60.0
_SAY_OTHER_S: Final = 5.0
_NOTE_EVERY_S: Final = 5.0
_STALLED_S: Final = 10.0
_TRY_EVERY_S: Final = 5.0


class MirrorSink(Protocol):
    """Takes mirror records in capture order."""

    def write(self, record: MirrorRecord) -> None:
        """Take one record; never blocks, never raises. A record without a group is for every partition."""


class KafkaSink:
    """A :class:`MirrorSink` that produces to the mirror topic.

    :param config: librdkafka properties, ``bootstrap.servers`` among them; or what reads them, again whenever Kafka refuses the client.
    :param buffer_bytes: bound of what is held while the mirror's cluster does not take it.
    :param buffer_records: the same bound, counted in records.
    :param wanted: create the topic like this if it does not exist, and say how it differs if it does.
    :param losses: where to keep what is lost at the end, and what the sink before this one lost at its end.
    :param tell: called with one sentence whenever it changes whether the mirror is written.
    :raises SetupError: when the cluster does not answer or the topic does not exist.
    """

    def __init__(
        self,
        config: Mapping[str, Any] | Callable[[], Mapping[str, Any]],
        *,
        topic: str = DEFAULT_TOPIC,
        cluster: str = "",
        buffer_bytes: int = 64 * 2**20,
        buffer_records: int = 500_000,
        timeout_s: float = 10.0,
        wanted: MirrorTopic | None = None,
        losses: LossFile | None = None,
        tell: Callable[[str], None] = log.warning,
    ) -> None:
        self._read: Callable[[], Mapping[str, Any]] = config if callable(config) else lambda: config
        self._topic = topic
        self._cluster = cluster
        self._buffer_bytes = buffer_bytes
        self._buffer_records = buffer_records
        self._timeout_s = timeout_s
        self._wanted = wanted
        self._losses = losses
        self._tell = tell
        self._producer = LastingProducer(
            Credentials(lambda: {**self._read(), **_ALWAYS}, "the mirror's producer", tell),
            _BY_DEFAULT,
            reported=self._reported,
            on_error=self._on_error,
            most=sys.maxsize,  # it is bounded here, where the loss is counted
        )
        self._lock = self._producer.lock
        self.partitions: int | None = None  #: of the mirror topic; None as long as its cluster has not answered
        self.buffered = 0  #: records that are on their way
        self.buffered_bytes = 0  #: what they take
        self._pending_loss: Loss | None = None  # not yet in the queue
        self._answers = True
        self._config: Mapping[str, Any] = {}
        self._away: str | None = None  # why the topic could not be looked up
        self._oldest: Queued | None = None
        self._oldest_since = 0.0
        self._said: str | None = ""  # the trouble that was said last; "" before anything was
        self._said_at = -math.inf
        self._noted_at = -math.inf
        self._written_then = 0  # as long as there was trouble
        self._gaps = 0  # in the queue
        self.written = 0  #: records that the topic has
        self.lost = 0  #: records that it will never have
        if losses is not None and (before := losses.read()) is not None:
            self._pending_loss = before
            self._tell(
                f"{counted(before.records, 'record')} {plural(before.records, 'was', 'were')} lost when the capture before this "
                "one ended; every partition is told"
            )
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mirror-producer", daemon=True)
        self._begin()
        self._thread.start()

    def _begin(self) -> None:
        self._connect()

    @property
    def trouble(self) -> str | None:
        """Why nothing is written now; None while it is."""
        held, refused = self._producer.held, self._producer.credentials.refused
        if self._away is not None:
            return self._away
        if refused is not None:
            return f"Kafka refuses the connection ({refused})"
        if held is not None:
            return not_taken(self._config, self._topic, held)
        if not self._answers:
            return f"the mirror's cluster ({self._config.get('bootstrap.servers')}) does not answer"
        if self._oldest is not None and time.monotonic() - self._oldest_since > _STALLED_S:
            return f"the mirror's cluster has not confirmed the oldest record for more than {_STALLED_S:.0f} s"
        return None

    def write(self, record: MirrorRecord) -> None:
        """Queue the record, or count it as lost when there is no room for it."""
        with self._lock:
            if record.kind is Kind.TICK and self.trouble is not None:
                record = as_held(record)
            if self._pending_loss is not None:
                room = self._queue_loss(record.at_us)
            else:
                copies = self._copies(record.group)
                room = self._has_room(copies, copies * len(record.frame), 1.0)
            if room:
                self._queue(record, _loss_of(record))
            elif record.kind not in _NO_LOSS:
                self._lose(_loss_of(record), "its buffer is full")

    def close(self, timeout_s: float = 10.0) -> int:
        """Flush what is buffered; return how many records could not be delivered in time and are lost without a gap record."""
        with self._lock:
            if self._pending_loss is not None:
                self._queue_loss(self._pending_loss.to_us)
        self._stop.set()
        if self.partitions is not None:
            self._thread.join()
            deadline = time.monotonic() + timeout_s
            while self._unwritten() is not None and (left_s := deadline - time.monotonic()) > 0:
                self._producer.poll(min(0.1, left_s))
            self._producer.flush(min(1.0, max(0.0, deadline - time.monotonic())))
        unwritten = self._unwritten()
        if self._losses is not None:
            self._losses.write(unwritten)
        self.lost += sum(
            1 for record in self._producer.queued() if record.about is not None and record.partition != EVERY_PARTITION
        )
        self._producer.close()
        return 0 if unwritten is None else unwritten.records

    # --- inside: the caller holds the lock ---------------------------------------------------------------------------

    def _copies(self, group: str | None) -> int:
        return (self.partitions or 1) if group is None else 1

    def _has_room(self, records: int, size: int, share: float) -> bool:
        return (
            self.buffered + records <= self._buffer_records * share
            and self.buffered_bytes + size + records * _OVERHEAD <= self._buffer_bytes * share
        )

    def _queue_loss(self, at_us: int) -> bool:
        """Queue the gap records if the buffer has emptied enough for it to be worth while."""
        loss = self._pending_loss
        assert loss is not None
        if not self._has_room(self._copies(None), 0, 0.5):
            return False
        self._pending_loss = None
        self._gaps += 1
        self._queue(gap(at_us, loss, cluster=self._cluster), loss)
        return True

    def _queue(self, record: MirrorRecord, loss: Loss | None) -> None:
        """:param loss: what is lost if the topic never takes it."""
        every = record.group is None
        self.buffered += 1
        self.buffered_bytes += len(record.frame) + _OVERHEAD
        self._producer.produce(
            Queued(
                self._topic,
                record.frame,
                None if record.group is None else record.group.encode(errors="replace"),
                EVERY_PARTITION if every else -1,
                record.at_us // 1000,
                [(HEADER_NAME, pack_envelope(record))],
                loss,
            )
        )

    def _reported(self, record: Queued, error: KafkaError | None) -> None:
        self.buffered -= 1
        self.buffered_bytes -= len(record.value or b"") + _OVERHEAD
        loss: Loss | None = record.about
        is_gap = loss is not None and record.partition == EVERY_PARTITION
        self._gaps -= is_gap
        if error is not None:
            if is_gap:
                self._pending_loss = added(self._pending_loss, record.about)  # counted already, and to be written again
            else:
                self._lose(loss, error.str())
            return
        self.written += self.partitions or 1 if record.partition == EVERY_PARTITION else 1
        self._answers = True
        if loss is not None and is_gap:
            self._tell(
                f"{counted(loss.records, 'frame')} ({counted(loss.bytes, 'byte')}) {plural(loss.records, 'was', 'were')} lost; "
                f"every partition of topic {self._topic} says so"
            )

    def _lose(self, loss: Loss | None, why: str) -> None:
        if loss is None:
            return
        if self._pending_loss is None:
            self._tell(f"frames are lost between capture and topic {self._topic} from now on: {why}; the clients' traffic goes on")
        self.lost += loss.records
        self._pending_loss = added(self._pending_loss, loss)

    def _unwritten(self) -> Loss | None:
        """What would be lost if it all ended now."""
        with self._lock:
            total = self._pending_loss
            for record in self._producer.queued():
                if record.about is not None:
                    total = added(total, record.about)
            return total

    # --- inside: a thread of its own ---------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                if self.partitions is None:
                    self._try()
                else:
                    self._producer.poll(0.1)
                self._look()
            except Exception:  # without this thread nothing would be written or said any more
                log.exception("the mirror's producer failed, and goes on")
                self._stop.wait(_TRY_EVERY_S)

    def _try(self) -> None:
        try:
            self._connect()
        except SetupError as error:
            self._away = str(error)
            self._look()
            self._stop.wait(_TRY_EVERY_S)

    def _connect(self) -> None:
        self._config = config = self._read()
        if self._wanted is not None:
            for sentence in self._wanted.provide(config, self._topic, timeout_s=self._timeout_s):
                self._tell(sentence)
        partitions = topic_partitions(config, self._topic, timeout_s=self._timeout_s)
        self._producer.partitions = partitions
        try:
            self._producer.start()
        except (KafkaException, ValueError, TypeError, OSError) as error:
            raise SetupError(f"the mirror's producer configuration is not accepted: {reason_of(error)}") from None
        self.partitions, self._away = partitions, None

    def _on_error(self, error: KafkaError) -> None:
        if error.code() == KafkaError._ALL_BROKERS_DOWN:  # noqa: SLF001 - librdkafka's local codes are named so
            self._answers = False

    def _look(self) -> None:
        """Say what is the case, when it changes and then now and then; keep what would be lost while nothing is written."""
        now = time.monotonic()
        oldest = self._producer.oldest()
        if oldest is not self._oldest:
            self._oldest, self._oldest_since = oldest, now
        trouble = self.trouble
        if trouble is not None:
            self._written_then = self.written
        elif self.written <= self._written_then:
            return  # whether the trouble is over is not known before something is confirmed
        if self._is_news(trouble, now - self._said_at):
            self._tell(self._case(trouble))
            self._said, self._said_at = trouble, now
        if self._losses is not None and now - self._noted_at >= _NOTE_EVERY_S:
            self._noted_at = now
            if trouble is not None or self._pending_loss is not None:
                self._losses.write(self._unwritten())
            elif not self._gaps:
                self._losses.write(None)

    def _is_news(self, trouble: str | None, said_ago_s: float) -> bool:
        if trouble is None or self._said is None:
            return trouble is not self._said
        return said_ago_s >= (_SAY_EVERY_S if trouble == self._said else _SAY_OTHER_S)

    def _case(self, trouble: str | None) -> str:
        if trouble is not None:
            waiting = (
                f"{counted(self.buffered, 'record')} {plural(self.buffered, 'waits', 'wait')} in the "
                f"buffer, {self.lost:,} {plural(self.lost, 'is', 'are')} lost"
            )
            return f"clients pass, but nothing is mirrored: {trouble}; {waiting}"
        again = " again" if self._said else ""
        return f"mirroring to topic {self._topic}{again}, {counted(self.partitions or 0, 'partition')}"


class ReconnectingSink(KafkaSink):
    """A :class:`KafkaSink` that begins before its topic can be written: it looks for cluster and topic in the background, and never raises.

    The tap stands in the clients' path: they must get through whether the mirror works or not. So nothing about the mirror stops the tap
    at its start. Records are buffered until the topic is there. A wrong address, a missing right or a missing topic looks like a tap that
    works, so the reason is told at once and each minute.
    """

    def _begin(self) -> None:
        """The thread connects."""


_NO_LOSS: Final = frozenset({Kind.TICK, Kind.TOPICS, Kind.UNREACHED})
"""Without them no frame is missing: the next tick says the same, and less is known of topics."""


def _loss_of(record: MirrorRecord) -> Loss | None:
    return None if record.kind in _NO_LOSS else Loss(1, len(record.frame), record.at_us, record.at_us)

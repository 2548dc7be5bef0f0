"""Sends each rebalance that is over as a trace: reads the events topic, and posts OTLP.

How far the topic is sent is kept in the delivery log of the notifier, and only after the receiver has accepted it. So a stop loses nothing,
and what is sent twice is the same trace. While the receiver is away nothing more is read: the topic is the queue.

A queue that is kept by Kafka has an end, too. What retention deleted before it was sent is counted and said.
"""

from __future__ import annotations

import random
import threading
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from coordinator_model.events import RebalanceFinished
from coordinator_model.wording import counted, plural
from streaming.errors import SetupError
from streaming.kafka.compacted import CompactedReader
from streaming.notify.http import Accepted, Rejected, Unreachable, host_of, post
from streaming.notify.notification import on_one_line
from streaming.published.records import event_of
from streaming.traces.spans import encoded, spans_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from opentelemetry.sdk.trace import ReadableSpan

    from streaming.config.settings import MonitorConfig
    from streaming.kafka.record import Record
    from streaming.notify.delivery_log import DeliveryLog

NAME: Final = "traces"
"""Of the receiver in the delivery log."""

_PATH: Final = "/v1/traces"
_SPANS: Final = 2_000  #: of one request, unless a single rebalance has more
_POLL_S: Final = 0.25
_LOOK_AGAIN_S: Final = 5.0


class _Batch(NamedTuple):
    """What is sent in one request."""

    traces: list[list[ReadableSpan]]
    positions: dict[int, int]  #: by partition, up to where the topic is sent with it


class TraceSender:
    """Sends until it is stopped.

    :param positions: by partition of the events topic, where to begin; others begin where the topic does.
    :param tell: called with a sentence for what an operator should know.
    :param jitter: returns random numbers from 0 to 1.
    """

    def __init__(
        self,
        config: MonitorConfig,
        delivery_log: DeliveryLog,
        positions: Mapping[int, int],
        *,
        tell: Callable[[str], None],
        jitter: Callable[[], float] = random.random,
    ) -> None:
        assert config.traces.endpoint is not None
        self.sent = 0  #: traces that the receiver accepted
        self.refused = 0  #: traces that it rejected
        self.unreadable = 0  #: records that are no events of this release
        self._settings = config.traces
        self._url = config.traces.endpoint.rstrip("/") + _PATH
        self._where = host_of(self._url)
        self._config = config
        self._delivery_log = delivery_log
        self._positions = dict(positions)
        self._tell = tell
        self._jitter = jitter
        self._last_refusal = ""

    def run(self, stop: threading.Event) -> None:
        """Send what comes until ``stop`` is set."""
        while not stop.is_set():
            try:
                self._follow(stop, once=False)
            except Exception as error:  # a missing secret file or a bug must not end the thread without a log line
                self._tell(f"{NAME}: {type(error).__name__}: {on_one_line(str(error))}; begins again")
                stop.wait(_LOOK_AGAIN_S)

    def once(self, stop: threading.Event) -> bool:
        """Send what is there now; return True if the receiver accepted all of it."""
        return self._follow(stop, once=True) and not self.refused

    def _follow(self, stop: threading.Event, *, once: bool) -> bool:
        topic = self._config.topics.events
        with CompactedReader(
            self._config.kafka.for_librdkafka,
            (topic,),
            "the reader of events",
            reach_timeout_s=self._config.kafka.reach_timeout_s,
            trouble=self._tell,
            positions={(topic, partition): position for partition, position in self._positions.items()},
        ) as reader:
            if not self._started(reader, stop, once=once):
                return False
            for (_, partition), count in reader.missed.items():
                self._tell(
                    f"{NAME}: {counted(count, 'record')} of topic {topic}, partition {partition}, "
                    f"{plural(count, 'was', 'were')} deleted unsent"
                )
            while not stop.is_set():
                if not all(self._hand_over(batch, stop, once=once) for batch in self._batches(reader.poll(_POLL_S))):
                    return False  # stopped, or with --once away: what was not accepted is sent next time
                if once and reader.caught_up():
                    break
        return True

    def _started(self, reader: CompactedReader, stop: threading.Event, *, once: bool) -> bool:
        said = ""
        while not stop.is_set():
            try:
                reader.start(patience_s=0)
            except SetupError as error:
                if str(error) != said:
                    said = str(error)
                    self._tell(f"{NAME}: {error}")
                if once:
                    return False
                stop.wait(_LOOK_AGAIN_S)
            else:
                return True
        return False

    def _batches(self, records: Sequence[Record]) -> Iterator[_Batch]:
        traces: list[list[ReadableSpan]] = []
        positions: dict[int, int] = {}
        for record in records:
            positions[record.partition] = record.offset + 1
            spans = self._spans(record)
            if spans and sum(map(len, traces)) + len(spans) > _SPANS and traces:
                yield _Batch(traces, positions | {record.partition: record.offset})
                traces = []
            if spans:
                traces.append(spans)
        if traces:
            yield _Batch(traces, positions)

    def _spans(self, record: Record) -> list[ReadableSpan]:
        event = None if record.value is None else event_of(record.value)
        if event is not None:
            return spans_of(event) if isinstance(event, RebalanceFinished) else []
        self.unreadable += 1
        if self.unreadable == 1:
            self._tell(f"{NAME}: {record.topic}, partition {record.partition}, offset {record.offset} is no event; it is left out")
        return []

    def _hand_over(self, batch: _Batch, stop: threading.Event, *, once: bool) -> bool:
        """Send a batch until the receiver answers; return False if that did not happen before the end."""
        failures, since_s = 0, time.monotonic()
        first_s, longest_s = self._config.notify.retry_wait_s, self._config.notify.retry_wait_max_s
        while not stop.is_set():
            outcome = self._send(batch.traces)
            if not isinstance(outcome, Unreachable):
                if failures:
                    self._tell(f"{NAME}: reachable again after {time.monotonic() - since_s:.0f} s and {failures} failed attempts")
                return self._note(batch, outcome, stop, once=once)
            if not failures:
                self._tell(
                    f"{NAME}: delivery failed: {outcome.reason}; {_count(len(batch.traces))} and what follows wait in the topic"
                )
            if once:
                return False
            pause_s = min(longest_s, first_s * 2.0 ** min(failures, 30)) * (0.5 + self._jitter())
            failures += 1
            stop.wait(max(pause_s, outcome.pause_s or 0.0))
        return False

    def _send(self, traces: Sequence[list[ReadableSpan]]) -> Accepted | Rejected | Unreachable:
        body = encoded(span for trace in traces for span in trace)
        return post(self._url, body, {"Content-Type": "application/x-protobuf", **self._settings.headers}, self._settings)

    def _note(self, batch: _Batch, outcome: Accepted | Rejected, stop: threading.Event, *, once: bool) -> bool:
        """Keep what became of a batch; one that was rejected for its content is sent trace by trace."""
        count = len(batch.traces)
        if isinstance(outcome, Accepted):
            self.sent += count
            self._note_partial_success(outcome.body)
        elif outcome.for_its_content and count > 1:
            if not all(self._hand_over(_Batch([trace], {}), stop, once=once) for trace in batch.traces):
                return False
        else:
            self.refused += count
            self._refuse(f"rejected {_count(count)} (no retry): {outcome.reason}")
        if batch.positions:
            self._positions |= batch.positions
            self._delivery_log.advance(NAME, batch.positions, ())
        return True

    def _note_partial_success(self, body: bytes) -> None:
        try:
            partial = ExportTraceServiceResponse.FromString(body).partial_success
        except Exception:  # protobuf's own error: an answer of another kind says nothing
            return
        if partial.rejected_spans:
            self._refuse(
                f"{self._where} did not take {counted(partial.rejected_spans, 'span')}: {on_one_line(partial.error_message)}"
            )

    def _refuse(self, sentence: str) -> None:
        if sentence != self._last_refusal:
            self._last_refusal = sentence
            self._tell(f"{NAME}: {sentence}")


def _count(traces: int) -> str:
    return f"{traces} rebalance{'s' if traces > 1 else ''}"

"""One micro-batch of the quality query: rows → frame → outcomes → quality topic, findings, Data Docs.

An expectation fails per batch, a fault lasts over many. So a failing expectation opens one finding, is counted on it while it goes on, and
the finding is resolved when the expectation has passed for a while, on the clock in the data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from coordinator_model.finding import Evidence
from coordinator_model.wire import API_NAMES
from coordinator_model.wording import counted, iso_utc
from streaming.engine.own_findings import Standing
from streaming.quality.frame_rows import Describer, FrameRow, to_frame
from streaming.quality.suite import FAMILY, Expected, load
from streaming.quality.validation import Outcome, Validator

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from coordinator_model.finding import Finding
    from streaming.config.settings import MonitorConfig
    from streaming.quality.frame_rows import Raw

_EVIDENCE: Final = 5
_FLUSH_S: Final = 30.0


class Publisher(Protocol):
    """Where results go: ``streaming.sinks.findings.FindingsWriter``."""

    def publish(self, findings: Iterable[Finding]) -> None: ...

    def publish_json(self, topic: str, key: str, value: dict[str, Any]) -> None: ...

    def flush(self, timeout_s: float) -> bool: ...


class Checker:
    """Checks the batches of one mirror topic, in order.

    :param published: the findings that are open in the findings topic, as published.
    :raises ConfigError: when the suite cannot be used.
    """

    def __init__(self, config: MonitorConfig, *, published: Sequence[dict[str, Any]], publisher: Publisher) -> None:
        quality = config.quality
        suite = load(quality.suite)
        self._columns = suite.columns
        self._validator = Validator(suite, docs=quality.docs, docs_every_s=quality.docs_every_s, docs_history=quality.docs_history)
        self._topic = config.topics.quality
        self._quiet_us = config.model.quiet_ms * 1000
        self._publisher = publisher
        self._describer = Describer()
        self._mirror = config.topics.mirror
        self._standing = Standing(config.cluster, published, [(each.rule.id, self._subject(each)) for each in suite.expectations])

    def check(self, rows: Iterable[Raw], batch: int) -> list[Outcome]:
        """Check a batch and publish what became of it.

        :raises RuntimeError: when Kafka does not take the results; the batch is then to be repeated.
        """
        described = self._describer.describe(rows)
        if not described:
            return []
        outcomes = self._validator.validate(to_frame(described, self._columns), f"batch {batch}")
        offending_of = _by_place(described, {place for outcome in outcomes for place in outcome.records})
        newest_us = described[-1].timestamp_ms * 1000
        self._publisher.publish(self._standing.settle_orphans(FAMILY, at_us=newest_us))
        for outcome in outcomes:
            offending = [offending_of[place] for place in outcome.records]
            result = _as_json(outcome, offending, batch=batch, rows=len(described), newest_us=newest_us)
            self._publisher.publish_json(self._topic, outcome.expected.rule.id, result)
            self._publisher.publish(self._judge(outcome, offending, newest_us))
        if not self._publisher.flush(_FLUSH_S):
            raise RuntimeError(f"Kafka did not take the results of quality batch {batch} within {_FLUSH_S:.0f} s")
        return outcomes

    def _subject(self, expected: Expected) -> str:
        return f"{self._mirror} {expected.subject}"

    def _judge(self, outcome: Outcome, offending: list[FrameRow], newest_us: int) -> list[Finding]:
        rule, subject = outcome.expected.rule, self._subject(outcome.expected)
        if outcome.success:
            known = self._standing.open_finding(rule.id, subject)
            over = known is not None and newest_us - known.updated_at_us >= self._quiet_us
            return self._standing.settle(rule.id, subject, at_us=newest_us) if over else []
        times = [_at_us(row) for row in offending]
        return [
            self._standing.report(
                rule,
                subject,
                at_us=newest_us if self._standing.is_open(rule.id, subject) else min(times, default=newest_us),
                summary=_summary(outcome, offending, self._mirror),
                observed=outcome.problem or f"{outcome.unexpected} of {counted(outcome.checked, 'record')}",
                count=max(1, outcome.unexpected),
                evidence=tuple(_evidence(row) for row in offending[:_EVIDENCE]),
            )
        ]


def _summary(outcome: Outcome, offending: list[FrameRow], mirror: str) -> str:
    name = f"{outcome.expected.rule.name[:1].upper()}{outcome.expected.rule.name[1:]}"
    if outcome.problem:
        return f"{name}: could not be checked on topic {mirror}."
    if not offending:
        return f"{name} on topic {mirror}."
    first = offending[0]
    details = [f"{column} {getattr(first, column)}" for column in (outcome.expected.column, *outcome.expected.explain) if column]
    more = f" and {outcome.unexpected - 1} more" if outcome.unexpected > 1 else ""
    return f"{name}: record {first.offset} of partition {first.partition} of topic {mirror}{more} ({', '.join(details)})."


def _as_json(outcome: Outcome, offending: list[FrameRow], *, batch: int, rows: int, newest_us: int) -> dict[str, Any]:
    expected = outcome.expected
    shown = [column for column in (expected.column, *expected.explain) if column]
    return {
        "batch": batch,
        "newest_record_at": iso_utc(newest_us),
        "rule": expected.rule.id,
        "name": expected.rule.name,
        "expectation": expected.subject,
        "success": outcome.success,
        "rows": rows,
        "checked": outcome.checked,
        "unexpected": outcome.unexpected,
        "records": [_shown(row, shown) for row in offending],
        "problem": outcome.problem,
    }


def _shown(row: FrameRow, columns: list[str]) -> dict[str, Any]:
    place = {"partition": row.partition, "offset": row.offset, "at": iso_utc(_at_us(row))}
    return place | {column: getattr(row, column) for column in columns}


def _by_place(described: list[FrameRow], places: set[tuple[int, int]]) -> dict[tuple[int, int], FrameRow]:
    return {row[:2]: row for row in described if row[:2] in places} if places else {}


def _at_us(row: FrameRow) -> int:
    """Return the capture time, or the record's time if there is no envelope."""
    return int(row.timestamp_ms) * 1000 if row.at_us is None else int(row.at_us)


def _evidence(row: FrameRow) -> Evidence:
    if row.api_key is None:
        what = f"{row.kind} record" if row.kind else "record without an envelope"
    else:
        kind = "request" if row.kind == "req" else "response"
        what = f"{API_NAMES.get(row.api_key, row.api_key)} v{row.api_version} {kind}, key {row.key}"
    return Evidence(
        partition=row.partition,
        offset=row.offset,
        connection=row.connection or "",
        exchange=-1 if row.exchange is None else row.exchange,
        at_us=_at_us(row),
        frame=what,
    )

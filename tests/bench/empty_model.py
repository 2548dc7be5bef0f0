"""A model that models nothing: the same pipeline with it shows what the engine itself costs, for ``make bench``."""

from __future__ import annotations

import struct
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Self

from coordinator_model.finding import Blame, Certainty, Finding, Severity
from coordinator_model.rules.base import Rule
from coordinator_model.wire.record import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from coordinator_model.events import GroupEvent
    from coordinator_model.settings import Settings
    from coordinator_model.wire.record import MirrorRecord
    from streaming.engine.intake import GroupRow

MARK: Final = "breach"
"""Client id by which the empty model knows an answer that makes a finding."""


class EmptyModel:
    """Does nothing but count and say a finding for each marked frame: the engine's own limit."""

    def __init__(self, *, topic: str, partition: int, settings: Settings) -> None:
        del topic, settings
        self.partition = partition
        self.next_offset: int | None = None
        self.counters: Counter[str] = Counter()

    @classmethod
    def restore(cls, blob: bytes, *, settings: Settings) -> Self:
        partition, next_offset, records = struct.unpack(">iqq", blob)
        model = cls(topic="", partition=partition, settings=settings)
        model.next_offset = next_offset
        model.counters["records"] = records
        return model

    def snapshot(self) -> bytes:
        return struct.pack(">iqq", self.partition, self.next_offset or 0, self.counters["records"])

    def receive(self, record: MirrorRecord) -> list[Finding]:
        if self.next_offset is not None and record.offset < self.next_offset:
            return []
        self.next_offset = record.offset + 1
        self.counters["records"] += 1
        return [_marked(record)] if record.client_id == MARK and record.kind is Kind.RESPONSE else []

    def receive_unreadable(self, offset: int, at_us: int, group: str | None, reason: str) -> list[Finding]:
        del at_us, group, reason
        self.next_offset = offset + 1
        self.counters["unreadable"] += 1
        return []

    def figures(self) -> Mapping[str, object]:
        return {"counters": dict(self.counters)}

    def on_partition_count(self, partitions: int) -> list[Finding]:
        del partitions
        return []

    def drain_dead_letters(self) -> Sequence[tuple[int, str]]:
        return ()

    def drain_events(self) -> Sequence[GroupEvent]:
        return ()

    def changed_groups(self) -> Sequence[GroupRow]:
        return ()


_RULE: Final = Rule(
    id="B-00",
    name="marked frame",
    severity=Severity.INFO,
    certainty=Certainty.CERTAIN,
    blame=Blame.CAPTURE,
    meaning="",
    condition="",
    expected="nothing",
    action="none",
    false_alarms="",
)


def _marked(record: MirrorRecord) -> Finding:
    finding = _RULE.finding(
        subject=record.connection,
        cluster=record.cluster,
        group=record.group or "",
        opened_at_us=record.at_us,
        at_us=record.at_us,
        summary="a frame bears the bench's mark",
        observed="the mark",
    )
    return replace(
        finding,
        group_type="classic",
        client_id=record.client_id,
        client_address=record.client_address,
        client_software=record.client_software,
    )

"""Frames that do not reach the model of their group, and the findings about them.

What the monitor cannot read is reported: without a finding an operator takes the group for a healthy one.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple

from coordinator_model.counters import NOT_MODELLED, TRUNCATED, UNDECODABLE, Counters
from coordinator_model.finding import Finding
from coordinator_model.group_store import GroupStore
from coordinator_model.groups.epochs.kinds import KIND_BY_API
from coordinator_model.groups.records import Exchange
from coordinator_model.groups.requests import MODELLED_API_KEYS
from coordinator_model.rule_engine import PartitionFindings, RuleEngine
from coordinator_model.rules import CATALOGUE, Breach
from coordinator_model.rules.observation import capped, unreadable
from coordinator_model.wire import API_NAMES
from coordinator_model.wire.record import Kind, MirrorRecord

FOLLOWED: Final = MODELLED_API_KEYS | KIND_BY_API.keys()
"""APIs whose frames the model of a group gets."""


class DeadLetter(NamedTuple):
    """A record that could not be modelled, for the dead-letter topic."""

    offset: int
    reason: str


class LostFrames:
    """Counts the frames of one partition that are lost for the model, and reports those that should not be."""

    def __init__(
        self, groups: GroupStore, rules: RuleEngine, own: PartitionFindings, counters: Counters, record_counts: Counter[str]
    ) -> None:
        self.dead_letters: list[DeadLetter] = []
        self._groups = groups
        self._rules = rules
        self._own = own
        self._counters = counters
        self._record_counts = record_counts

    def unmodelled(self, record: MirrorRecord) -> None:
        """Count a frame of which no rule asks anything. A description that was cut ends its exchange all the same."""
        key = (record.cluster, record.group or "")
        if record.cut_bytes and record.kind is Kind.RESPONSE and key in self._groups:
            self._groups.opened(key)[0].abandon(record)
            self._groups.changed(key, record.at_us)
        named = record.group or record.api_key not in FOLLOWED
        api = f"{API_NAMES.get(record.api_key, record.api_key)} {record.kind.value} not modelled"
        self._record_counts[api if named else "frames that name no group"] += 1
        self._counters.lost(record, NOT_MODELLED)

    def undecodable(self, record: MirrorRecord, reason: str) -> list[Finding]:
        """Report a frame that does not decode."""
        self._record_counts["undecodable frames"] += 1
        self._counters.lost(record, UNDECODABLE)
        self.dead_letters.append(DeadLetter(record.offset, reason))
        return self._report(record, unreadable(record, self._abandoned(record), reason))

    def cut(self, record: MirrorRecord) -> list[Finding]:
        """Report a frame without all of its bytes. A short snap length cuts frames of all groups, so that is one finding for all."""
        self._record_counts["cut frames"] += 1
        self._counters.lost(record, TRUNCATED)
        self.dead_letters.append(DeadLetter(record.offset, f"{record.cut_bytes} bytes of it are missing"))
        if not record.group:
            return self._own.cut(record)
        asked = self._abandoned(record)
        return self._report(record, capped(record, asked)) if record.capped_bytes else self._own.cut(record)

    def _abandoned(self, record: MirrorRecord) -> Exchange | None:
        """Send the group of the frame back to learning; return the request that the frame is, or responds to, if it was seen."""
        key = (record.cluster, record.group or "")
        asked = self._groups.touched(key, record.at_us)[0].abandon(record)
        self._groups.lose_coverage(key, record.at_us, "a frame could not be read")
        return asked

    def _report(self, record: MirrorRecord, breach: Breach) -> list[Finding]:
        key = (record.cluster, record.group or "")
        group, open_findings = self._groups.opened(key)
        found = list(self._rules.report(group, open_findings, CATALOGUE["V-02"], breach, record.at_us))
        self._groups.changed(key, record.at_us)
        return found

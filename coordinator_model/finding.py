"""Findings, the monitor's results: one per (group, rule, subject), opened, updated and resolved.

The JSON form is a contract (``docs/findings.md``). Ids depend on protocol facts and capture times alone. The same records therefore
give the same ids whatever the batches and restarts, and a finding written twice overwrites itself.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, NamedTuple

from coordinator_model.wording import iso_utc


class Severity(StrEnum):
    """How much a finding hurts. ``rank`` 0 is the mildest."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        return _SEVERITY_RANK[self]


_SEVERITY_RANK: Final = {severity: rank for rank, severity in enumerate(Severity)}


class Certainty(StrEnum):
    """How a finding is known."""

    CERTAIN = "certain"  #: from the frames themselves
    CONFIRMED = "confirmed"  #: given facts about the group that were themselves proven by frames, with no loss or failover between
    HEURISTIC = "heuristic"  #: a threshold was crossed


class Blame(StrEnum):
    """What causes a finding."""

    CLIENT = "client"
    BROKER = "broker"
    CONFIG = "config"
    OPERATOR = "operator"
    CAPTURE = "capture"


# The words of a rule.
INFO, WARNING, ERROR, CRITICAL = Severity
CERTAIN, CONFIRMED, HEURISTIC = Certainty
CLIENT, BROKER, CONFIG, OPERATOR, CAPTURE = Blame


class Status(StrEnum):
    OPEN = "open"
    UPDATE = "update"
    RESOLVED = "resolved"


class Evidence(NamedTuple):
    """A frame that a finding is based on."""

    partition: int
    offset: int
    connection: str
    exchange: int
    at_us: int
    frame: str  #: its description: "Heartbeat v4 request member consumer-1, generation 3"


@dataclass(frozen=True, slots=True)
class Finding:
    """One state of one finding, as it is published."""

    id: str
    rule: str
    name: str
    family: str
    severity: Severity
    certainty: Certainty
    blame: Blame
    status: Status
    cluster: str
    group: str
    group_type: str
    incarnation: int
    generation: int | None
    member_id: str | None
    instance_id: str | None
    client_id: str | None
    client_address: str | None
    client_software: str | None
    opened_at_us: int
    updated_at_us: int
    resolved_at_us: int | None
    count: int
    summary: str
    expected: str
    observed: str
    action: str
    evidence: tuple[Evidence, ...] = field(default=())
    broker: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the published object: plain types, times in ISO 8601 UTC with microseconds."""
        return {
            "id": self.id,
            "rule": self.rule,
            "name": self.name,
            "family": self.family,
            "severity": self.severity.value,
            "certainty": self.certainty.value,
            "blame": self.blame.value,
            "status": self.status.value,
            "cluster": self.cluster,
            "group": self.group,
            "group_type": self.group_type,
            "incarnation": self.incarnation,
            "generation": self.generation,
            "member_id": self.member_id,
            "instance_id": self.instance_id,
            "client_id": self.client_id,
            "client_address": self.client_address,
            "client_software": self.client_software,
            "broker": self.broker,
            "opened_at": iso_utc(self.opened_at_us),
            "updated_at": iso_utc(self.updated_at_us),
            "resolved_at": None if self.resolved_at_us is None else iso_utc(self.resolved_at_us),
            "count": self.count,
            "summary": self.summary,
            "expected": self.expected,
            "observed": self.observed,
            "action": self.action,
            "evidence": [
                {
                    "partition": frame.partition,
                    "offset": frame.offset,
                    "connection": frame.connection,
                    "exchange": frame.exchange,
                    "at": iso_utc(frame.at_us),
                    "frame": frame.frame,
                }
                for frame in self.evidence
            ],
        }


def finding_id(rule: str, *, cluster: str, group: str, subject: str, opened_at_us: int) -> str:
    """Return ``G-02-`` and 16 hex digits; the same for the same facts, on every machine and in every run."""
    facts = "\x00".join((cluster, group, rule, subject, str(opened_at_us)))
    return f"{rule}-{hashlib.blake2s(facts.encode(), digest_size=8).hexdigest()}"

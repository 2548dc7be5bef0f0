"""What is heard of a finding, and what is told of it.

The trap: what is heard was written by another process, perhaps of another release, and names in it come from clients that may mean
harm. So only what is needed is demanded of a record, the rest is passed on as it is, and nothing of it ever becomes a path, a template
or a format.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from coordinator_model.finding import Severity, Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from coordinator_model.rules.base import Rule

OWN: Final = -1
"""Stands for the partition of what the notifier found itself."""

_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class UnreadableFindingError(ValueError):
    """A record that is no finding; the message says why."""


class _Published(BaseModel):
    """The fields of a finding (docs/findings.md) that something here depends on."""

    model_config = ConfigDict(extra="allow")

    id: str = Field(min_length=1)
    rule: str = Field(min_length=1)
    name: str = Field(min_length=1)
    severity: Severity
    status: Status
    cluster: str
    group: str
    summary: str
    expected: str
    observed: str
    action: str
    opened_at: AwareDatetime
    updated_at: AwareDatetime
    resolved_at: AwareDatetime | None = None
    member_id: str | None = None
    instance_id: str | None = None
    client_id: str | None = None
    client_address: str | None = None
    client_software: str | None = None


@dataclass(frozen=True, slots=True)
class ObservedFinding:
    """One state of one finding, as it stood in the topic. Times are seconds since the epoch."""

    finding: dict[str, Any]  #: as published
    severity: Severity
    is_over: bool
    opened_s: float
    updated_s: float
    resolved_s: float | None
    heard_s: float  #: when the record was written
    partition: int  #: of the findings topic
    offset: int

    @classmethod
    def parse(cls, value: bytes | None, *, heard_s: float, partition: int, offset: int) -> Self:
        """Read a record of the findings topic.

        :raises UnreadableFindingError: when it is none.
        """
        try:
            finding = json.loads(value or b"")
        except ValueError as error:
            raise UnreadableFindingError(f"it is not JSON: {error}") from None
        return cls.of(finding, heard_s=heard_s, partition=partition, offset=offset)

    @classmethod
    def of(cls, finding: Any, *, heard_s: float, partition: int = OWN, offset: int = 0) -> Self:
        """Take a published object.

        :raises UnreadableFindingError: when a field that is needed is missing or not what it should be.
        """
        try:
            read = _Published.model_validate(finding)
        except ValidationError as error:
            first = error.errors()[0]
            raise UnreadableFindingError(f"{'.'.join(map(str, first['loc'])) or 'it'}: {first['msg']}") from None
        return cls(
            finding=finding,
            severity=read.severity,
            is_over=read.status is Status.RESOLVED,
            opened_s=read.opened_at.timestamp(),
            updated_s=read.updated_at.timestamp(),
            resolved_s=None if read.resolved_at is None else read.resolved_at.timestamp(),
            heard_s=heard_s,
            partition=partition,
            offset=offset,
        )

    @property
    def id(self) -> str:
        return str(self.finding["id"])

    @property
    def group(self) -> str:
        return str(self.finding["group"])

    @property
    def lasted_s(self) -> float:
        """How long it was open, in the time of the capture."""
        return (self.resolved_s if self.resolved_s is not None else self.updated_s) - self.opened_s


class Event(StrEnum):
    """What there is to tell."""

    OPEN = "open"
    SEVERITY = "severity"  #: it is open and has another severity than was told
    RESOLVED = "resolved"
    OVER = "over"  #: it was resolved before it could be told as open


@dataclass(frozen=True, slots=True)
class Notification:
    """One thing to tell of one finding."""

    event: Event
    finding: dict[str, Any]
    told: Mapping[str, Any] | None = None  #: the finding as it was told last
    reason: str | None = None  #: why it counts as resolved, where the finding itself does not say so

    @property
    def severity(self) -> Severity:
        return Severity(self.finding["severity"])

    @property
    def is_open(self) -> bool:
        return self.event in {Event.OPEN, Event.SEVERITY}

    @property
    def key(self) -> str:
        """The same for the same news, in every run: what a receiver may know repeats by."""
        return f"{self.finding['id']}:{self.event.value}:{self.finding['severity']}"

    def as_json(self, rule_url: str = "") -> dict[str, Any]:
        """What templates and readers of JSON get (docs/alerting.md)."""
        return {
            "event": self.event.value,
            "key": self.key,
            "severity": self.severity.value,
            "previous_severity": self.told["severity"] if self.told is not None and self.event is Event.SEVERITY else None,
            "reason": self.reason,
            "who": who(self.finding),
            "rule_url": link(rule_url, self.finding),
            "finding": self.finding,
        }


@dataclass(frozen=True, slots=True)
class Delivered:
    """What a receiver was told of a finding; kept until it has been told that it is over, and a while longer."""

    finding: dict[str, Any]  #: without its evidence; only its id once it is over
    first_s: float  #: when it was told first
    last_s: float  #: when it was told last
    is_over: bool
    partition: int
    offset: int  #: of the record that was told

    @property
    def severity(self) -> Severity:
        return Severity(self.finding["severity"])

    def as_json(self) -> dict[str, Any]:
        return {
            "finding": self.finding,
            "first_s": self.first_s,
            "last_s": self.last_s,
            "over": self.is_over,
            "partition": self.partition,
            "offset": self.offset,
        }

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Self:
        """The reverse of :meth:`as_json`.

        :raises ValueError, LookupError, TypeError: when it is not that.
        """
        if not kept["over"]:
            ObservedFinding.of(kept["finding"], heard_s=0.0)
        return cls(
            finding=kept["finding"],
            first_s=float(kept["first_s"]),
            last_s=float(kept["last_s"]),
            is_over=bool(kept["over"]),
            partition=int(kept["partition"]),
            offset=int(kept["offset"]),
        )


def made_here(
    rule: Rule, *, subject: str, cluster: str, group: str, severity: Severity, at_us: int, summary: str, observed: str
) -> dict[str, Any]:
    """An open finding of the notifier itself, as it would be published.

    :param subject: with rule, cluster and group the identity of the finding; not its time, which hangs on when we looked.
    """
    return rule.finding(
        subject=subject,
        cluster=cluster,
        group=group,
        opened_at_us=0,
        at_us=at_us,
        summary=summary,
        observed=observed,
        severity=severity,
    ).as_json()


def without_evidence(finding: Mapping[str, Any]) -> dict[str, Any]:
    """A finding without the frames it rests on, which are most of it."""
    return {name: value for name, value in finding.items() if name != "evidence"}


def who(finding: Mapping[str, Any]) -> str:
    """Member, instance and client of a finding in words; empty where it is nobody in particular."""
    parts = [
        f"{word} {finding[field]}"
        for field, word in (("instance_id", "instance"), ("member_id", "member"), ("client_id", "client"))
        if finding.get(field)
    ]
    if finding.get("client_address"):
        parts.append(f"at {finding['client_address']}")
    software = f" ({finding['client_software']})" if finding.get("client_software") else ""
    return " ".join(parts) + software if parts else ""


def alert_name(finding: Mapping[str, Any]) -> str:
    """``RebalanceZombieGeneration`` for the rule named "zombie generation"."""
    words: Iterable[str] = re.findall(r"[A-Za-z0-9]+", str(finding["name"]))
    return "Rebalance" + "".join(word[:1].upper() + word[1:] for word in words).removeprefix("Rebalance")


def link(rule_url: str, finding: Mapping[str, Any]) -> str | None:
    """Where people read about the rule: ``{rule}`` is its id, ``{anchor}`` its heading in docs/rules.md."""
    heading = re.sub(r"[^a-z0-9-]", "", f"{finding['rule']} {finding['name']}".lower().replace(" ", "-"))
    return rule_url.replace("{rule}", str(finding["rule"])).replace("{anchor}", heading) if rule_url else None


def on_one_line(text: str, longest: int = 500) -> str:
    """Text of others as it may be shown on a terminal: no control characters, and not without end."""
    shown = _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"


def iso(at_s: float) -> str:
    """A moment in ISO 8601, UTC."""
    return datetime.fromtimestamp(at_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

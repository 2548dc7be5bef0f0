"""Findings as read from the topic, and the notifications that are sent about them.

Another process wrote the records, perhaps of another release, and the names in them come from clients that may be malicious. So only the
fields that are needed are validated, and the rest is passed on unchanged. No part of a record is used as a path, a template or a format
string.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self
from urllib.parse import quote

import msgspec
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from coordinator_model.finding import Severity, Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from coordinator_model.rules.base import Rule

OWN: Final = -1
"""The partition number of findings that the notifier itself makes."""

MADE_HERE: Final = frozenset({"V-05", "X-00"})
"""Rules of findings that the notifier itself makes: that the monitor is stalled, and the test of the receivers."""

_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


class Links(NamedTuple):
    """Where people read more."""

    rule_url: str = ""  #: ``{family}`` becomes a rule's letter, ``{rule}`` its id, ``{anchor}`` its heading in docs/rules
    page_url: str | None = None  #: address of the page

    def to_rule(self, finding: Mapping[str, Any]) -> str | None:
        """Return the URL of the rule's documentation."""
        heading = re.sub(r"[^a-z0-9_-]", "", f"{finding['rule']} {finding['name']}".lower().replace(" ", "-"))
        url = self.rule_url
        for name, value in (("family", finding["family"]), ("rule", finding["rule"]), ("anchor", heading)):
            url = url.replace(f"{{{name}}}", value)
        return url or None

    def to_page(self, finding: Mapping[str, Any]) -> str | None:
        """Return the address of a finding on the page. Of what the notifier itself found the page knows only what the monitor sees."""
        if self.page_url is None:
            return None
        where = "sight" if finding["rule"] in MADE_HERE else f"findings/{quote(str(finding['id']), safe='')}"
        return f"{self.page_url.rstrip('/')}/{where}"


class UnreadableFindingError(ValueError):
    """A record is not a finding; the message says why."""


class _Published(BaseModel):
    """The fields of a finding (docs/findings.md) that the notifier depends on."""

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
    """One state of one finding, as read from the topic. Times are in seconds since the epoch."""

    finding: dict[str, Any]  #: as published
    severity: Severity
    is_over: bool
    opened_s: float
    updated_s: float
    resolved_s: float | None
    written_s: float  #: when the record was written
    partition: int  #: of the findings topic
    offset: int

    @classmethod
    def parse(cls, value: bytes | None, *, written_s: float, partition: int, offset: int) -> Self:
        """Parse a record of the findings topic.

        :raises UnreadableFindingError: when it is not a finding.
        """
        try:
            finding = json.loads(value or b"")
        except ValueError as error:
            raise UnreadableFindingError(f"it is not JSON: {error}") from None
        return cls.of(finding, written_s=written_s, partition=partition, offset=offset)

    @classmethod
    def of(cls, finding: Any, *, written_s: float, partition: int = OWN, offset: int = 0) -> Self:
        """Create one from a published finding.

        :raises UnreadableFindingError: when a required field is missing or invalid.
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
            written_s=written_s,
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
        """How long the finding was open, in capture time."""
        return (self.resolved_s if self.resolved_s is not None else self.updated_s) - self.opened_s


class Event(StrEnum):
    """The kind of a notification."""

    OPEN = "open"
    SEVERITY = "severity"  #: the finding is open, and its severity differs from the one that was sent
    RESOLVED = "resolved"
    OVER = "over"  #: the finding was resolved before it could be sent as open


@dataclass(frozen=True, slots=True)
class Notification:
    """One message about one finding."""

    event: Event
    finding: dict[str, Any]
    last_sent: Mapping[str, Any] | None = None  #: the finding as last sent
    reason: str | None = None  #: why it counts as resolved although the finding itself is not

    @property
    def severity(self) -> Severity:
        return Severity(self.finding["severity"])

    @property
    def is_open(self) -> bool:
        return self.event in {Event.OPEN, Event.SEVERITY}

    @property
    def key(self) -> str:
        """The deduplication key: the same for the same event in every run."""
        return f"{self.finding['id']}:{self.event.value}:{self.finding['severity']}"

    def as_json(self, links: Links) -> dict[str, Any]:
        """Return the JSON object for templates and receivers (docs/alerting.md)."""
        return {
            "event": self.event.value,
            "key": self.key,
            "severity": self.severity.value,
            "previous_severity": self.last_sent["severity"]
            if self.last_sent is not None and self.event is Event.SEVERITY
            else None,
            "reason": self.reason,
            "who": who(self.finding),
            "rule_url": links.to_rule(self.finding),
            "page_url": links.to_page(self.finding),
            "finding": self.finding,
        }


class Delivered(msgspec.Struct, frozen=True):
    """What a receiver was sent about a finding. It is kept for a while after the resolution was sent."""

    finding: dict[str, Any]  #: without its evidence; only its id once it is resolved
    first_s: float  #: when it was sent first
    last_s: float  #: when it was sent last
    is_over: bool = msgspec.field(name="over")
    partition: int
    offset: int  #: of the record that was sent

    @property
    def severity(self) -> Severity:
        return Severity(self.finding["severity"])

    def as_json(self) -> dict[str, Any]:
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> Self:
        """Parse the result of :meth:`as_json`.

        :raises ValueError, LookupError, TypeError: when ``kept`` is anything else.
        """
        found = msgspec.convert(kept, cls)
        if not found.is_over:
            ObservedFinding.of(found.finding, written_s=0.0)
        return found


def made_here(
    rule: Rule, *, subject: str, cluster: str, group: str, severity: Severity, at_us: int, summary: str, observed: str
) -> dict[str, Any]:
    """Return an open finding that the notifier itself makes, in the published form.

    :param subject: with rule, cluster and group the identity of the finding. The time is not part of it: it depends on when the
        notifier checks.
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
    """Return a finding without its evidence, which is the largest part of it."""
    return {name: value for name, value in finding.items() if name != "evidence"}


def who(finding: Mapping[str, Any]) -> str:
    """Return member, instance and client of a finding as text; empty if the finding is not about a member or client."""
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
    """Return the alert name of a finding: ``RebalanceZombieGeneration`` for the rule "zombie generation"."""
    words: Iterable[str] = re.findall(r"[A-Za-z0-9]+", str(finding["name"]))
    return "Rebalance" + "".join(word[:1].upper() + word[1:] for word in words).removeprefix("Rebalance")


def on_one_line(text: str, longest: int = 500) -> str:
    """Return untrusted text in a form safe for a terminal: without control characters, and cut at ``longest`` characters."""
    shown = _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"


def iso(at_s: float) -> str:
    """Return a time in ISO 8601, UTC."""
    return datetime.fromtimestamp(at_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

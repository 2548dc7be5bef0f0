"""Keeps the findings of one group: one open finding per rule and subject, held back, folded, counted, resolved.

The trap is that everything here must depend on the records alone. Times are capture times, thresholds are counts; nothing may depend on
how the records were cut into batches, or a restart would tell another story.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from coordinator_model.finding import Blame, Certainty, Evidence, Finding, Severity, Status, finding_id
from coordinator_model.groups.records import NOBODY, ClientInfo
from coordinator_model.rules.base import Breach, Due, FrameRule, Rule, TimerRule

EVIDENCE_KEPT = 6


@dataclass(slots=True)
class OpenFinding:
    """A finding that is not over, with what was last said of it."""

    rule: str
    subject: str
    severity: Severity
    certainty: Certainty
    opened_us: int
    updated_us: int
    publish_us: int  #: not before then: a late frame may still explain it
    incarnation: int
    generation: int | None
    member_id: str | None
    instance_id: str | None
    actor: ClientInfo
    summary: str
    observed: str
    evidence: tuple[Evidence, ...]
    blame: Blame
    count: int = 1
    published: bool = False

    def __post_init__(self) -> None:
        # A snapshot brings these back as plain strings.
        self.severity = Severity(self.severity)
        self.certainty = Certainty(self.certainty)
        self.blame = Blame(self.blame)


@dataclass(slots=True)
class OpenFindings:
    """The open findings of one group."""

    cluster: str
    group: str
    open: dict[tuple[str, str], OpenFinding] = field(default_factory=dict)

    def report(
        self, rule: Rule, breach: Breach, *, at_us: int, hold_us: int, incarnation: int, group_type: str
    ) -> Iterator[Finding]:
        """A rule saw a breach: open a finding, or count it on the open one."""
        if self._cause(rule, breach) is not None:
            return
        severity = breach.severity or rule.severity
        key = (rule.id, breach.subject)
        known = self.open.get(key)
        if known is None:
            certainty = breach.certainty or rule.certainty
            known = self.open[key] = OpenFinding(
                rule.id,
                breach.subject,
                severity,
                certainty,
                at_us,
                at_us,
                at_us + (0 if certainty is Certainty.CERTAIN else hold_us),
                incarnation,
                breach.generation,
                breach.member_id,
                breach.instance_id,
                breach.actor or NOBODY,
                breach.summary,
                breach.observed,
                breach.evidence,
                breach.blame or rule.blame,
            )
            if known.publish_us <= at_us:
                yield self._publish(rule, known, group_type)
            return
        worse = severity.rank > known.severity.rank
        known.count += 1
        known.updated_us = at_us
        known.summary, known.observed, known.generation = breach.summary, breach.observed, breach.generation
        known.evidence = _merge(known.evidence, breach.evidence)
        known.blame = breach.blame or rule.blame
        if worse:
            known.severity = severity
        if known.published and (worse or known.count.bit_count() == 1):  # doubled: a flood is told in ever longer steps
            yield self._say(rule, known, Status.UPDATE, group_type)

    def is_news(self, rule: Rule, due: Due) -> bool:
        """Whether what fell due is not known yet: a finding that is not open, a higher severity, or another occurrence.

        What fell due later than what was counted last is another occurrence: of the next generation, or of the next request.
        """
        known = self.open.get((rule.id, due.subject))
        return known is None or due.severity.rank > known.severity.rank or due.at_us > known.updated_us

    def settle(
        self, rules: dict[str, Rule], now_us: int, quiet_us: int, over: Iterable[tuple[str, str]], group_type: str
    ) -> Iterator[Finding]:
        """Publish what was held long enough; resolve what is in ``over`` and what has been quiet for ``quiet_us``."""
        finished = set(over)
        for key, known in list(self.open.items()):
            rule = rules[known.rule]
            quiet = not isinstance(rule, TimerRule) and now_us >= known.updated_us + _quiet_us(rule, quiet_us)
            is_over = key in finished or quiet
            if not known.published and known.publish_us <= now_us and not is_over:
                yield self._publish(rule, known, group_type)
            if is_over:
                del self.open[key]
                yield self._say(rule, known, Status.RESOLVED, group_type, resolved_us=now_us)

    def held(self, now_us: int) -> list[OpenFinding]:
        """The findings that are about to be published."""
        return [known for known in self.open.values() if not known.published and known.publish_us <= now_us]

    def withdraw(self, known: OpenFinding) -> None:
        """Take back a finding that nobody has heard of yet."""
        del self.open[known.rule, known.subject]

    def next_due_us(self, rules: dict[str, Rule], quiet_us: int) -> int | None:
        """When :meth:`settle` will have something to say."""
        due = [
            known.publish_us if not known.published else known.updated_us + _quiet_us(rules[known.rule], quiet_us)
            for known in self.open.values()
            if not known.published or not isinstance(rules[known.rule], TimerRule)
        ]
        return min(due, default=None)

    def _cause(self, rule: Rule, breach: Breach) -> OpenFinding | None:
        """The open finding that explains this breach, if the rule folds under it."""
        for cause in rule.suppressed_by:
            for (id_, subject), known in self.open.items():
                whole_group = not subject or not breach.subject
                if id_ == cause and (whole_group or subject in {breach.subject, breach.instance_id}):
                    return known
        return None

    def _publish(self, rule: Rule, known: OpenFinding, group_type: str) -> Finding:
        known.published = True
        return self._say(rule, known, Status.OPEN, group_type)

    def _say(self, rule: Rule, known: OpenFinding, status: Status, group_type: str, resolved_us: int | None = None) -> Finding:
        actor = known.actor
        return Finding(
            id=finding_id(rule.id, cluster=self.cluster, group=self.group, subject=known.subject, opened_at_us=known.opened_us),
            rule=rule.id,
            name=rule.name,
            family=rule.family,
            severity=known.severity,
            certainty=known.certainty,
            blame=known.blame,
            status=status,
            cluster=self.cluster,
            group=self.group,
            group_type=group_type,
            incarnation=known.incarnation,
            generation=known.generation,
            member_id=known.member_id,
            instance_id=known.instance_id,
            client_id=actor.client_id,
            client_address=actor.address or None,
            client_software=actor.software or None,
            opened_at_us=known.opened_us,
            updated_at_us=known.updated_us,
            resolved_at_us=resolved_us,
            count=known.count,
            summary=known.summary,
            expected=rule.expected,
            observed=known.observed,
            action=rule.action,
            evidence=known.evidence,
        )


def _quiet_us(rule: Rule, quiet_us: int) -> int:
    """How long a finding of this rule must not recur to be over."""
    return quiet_us * rule.quiet_times if isinstance(rule, FrameRule) else quiet_us


def _merge(kept: tuple[Evidence, ...], new: tuple[Evidence, ...]) -> tuple[Evidence, ...]:
    """The first frames and the latest: what it began with, and how it stands."""
    merged = (*kept, *(frame for frame in new if frame not in kept))
    if len(merged) <= EVIDENCE_KEPT:
        return merged
    half = EVIDENCE_KEPT // 2
    return (*merged[:half], *merged[-half:])

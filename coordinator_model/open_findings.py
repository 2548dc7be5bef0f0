"""The open findings of one group, one per rule and subject: held back, suppressed, counted, resolved.

Everything here depends on the records alone. Times are capture times, thresholds are counts. Nothing may depend on how the records
are cut into batches, or a restart would give other findings.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from coordinator_model.finding import Blame, Certainty, Evidence, Finding, Severity, Status, finding_id
from coordinator_model.groups.evidence import client_text
from coordinator_model.groups.records import NO_CLIENT, ClientInfo
from coordinator_model.rules.base import Breach, Due, Rule, TimerRule
from coordinator_model.stored import Stored
from coordinator_model.wording import afterwards, begin

EVIDENCE_KEPT = 6


class OpenFinding(Stored):
    """A finding that is not resolved, as of the last of its worst occurrences."""

    rule: str
    subject: str
    severity: Severity
    certainty: Certainty
    opened_us: int
    updated_us: int
    publish_us: int  #: not published before then, because a late frame may still explain it
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
    action: str | None = None  #: if it differs from the rule's own
    broker: str | None = None
    came_again: bool = False  #: within the pace of its rule
    ended_us: int = 0  #: since when what it reports is over, 0 while it is not
    resolved: bool = False
    group_type: str = ""  #: of the group as it was when this was found


@dataclass(slots=True)
class OpenFindings:
    """The open findings of one group."""

    cluster: str
    group: str
    open: dict[tuple[str, str], OpenFinding] = field(default_factory=dict)
    over: dict[tuple[str, str], OpenFinding] = field(default_factory=dict)  #: lately, which go on if they come again

    def report(
        self, rule: Rule, breach: Breach, *, at_us: int, hold_us: int, incarnation: int, group_type: str
    ) -> Iterator[Finding]:
        """Open a finding for a breach, or count the breach on the open one."""
        if self._cause(rule, breach) is not None:
            return
        severity = breach.severity or rule.severity
        key = (rule.id, breach.subject)
        known = self.open.get(key)
        if known is None:
            certainty = breach.certainty or rule.certainty
            before = self._before(rule, key, at_us)
            known = self.open[key] = OpenFinding(
                rule.id,
                breach.subject,
                severity,
                certainty,
                at_us if before is None else before.opened_us,
                at_us,
                at_us + (0 if certainty is Certainty.CERTAIN else hold_us),
                incarnation,
                breach.generation,
                breach.member_id,
                breach.instance_id,
                breach.actor or NO_CLIENT,
                breach.summary,
                breach.observed,
                breach.evidence,
                breach.blame or rule.blame,
                count=1 if before is None else before.count + 1,
                action=breach.action,
                broker=breach.broker,
                came_again=before is not None,
                group_type=group_type,
            )
            if known.publish_us <= at_us:
                yield self._publish(rule, known)
            return
        known.count += 1
        known.updated_us = at_us
        worse = severity.rank > known.severity.rank
        if severity.rank >= known.severity.rank:  # a milder one would not bear out the severity that the finding has
            known.severity = severity
            known.summary, known.observed, known.generation = breach.summary, breach.observed, breach.generation
            known.member_id, known.instance_id, known.actor = breach.member_id, breach.instance_id, breach.actor or NO_CLIENT
            known.evidence = _merge(known.evidence, breach.evidence)
            known.blame, known.action, known.broker = breach.blame or rule.blame, breach.action, breach.broker
            known.group_type = group_type
        if known.published and (worse or known.count.bit_count() == 1):  # at each power of two, which bounds the updates of a flood
            yield self._finding(rule, known, Status.UPDATE)

    def is_news(self, rule: Rule, due: Due) -> bool:
        """Return True if what fell due is not reported yet: its finding is not open, is less severe, or this is another occurrence.

        What fell due after the last counted occurrence is another one: of the next generation, or of the next request.
        """
        known = self.open.get((rule.id, due.subject))
        return known is None or due.severity.rank > known.severity.rank or due.at_us > known.updated_us

    def settle(self, rules: dict[str, Rule], now_us: int, quiet_us: int, over: Iterable[tuple[str, str]]) -> Iterator[Finding]:
        """Publish findings held long enough; resolve those in ``over`` and those that have not recurred for ``quiet_us``."""
        finished = set(over)
        for key, known in list(self.over.items()):
            if now_us > known.ended_us + _pace_us(rules[known.rule]):
                del self.over[key]
        for key, known in list(self.open.items()):
            rule = rules[known.rule]
            quiet = not isinstance(rule, TimerRule) and now_us >= known.updated_us + rule.quiet_times * quiet_us
            is_over = key in finished or quiet
            if not known.published and known.publish_us <= now_us and not is_over:
                yield self._publish(rule, known)
            if is_over:
                del self.open[key]
                known.ended_us, known.resolved = known.ended_us or now_us, True
                if _pace_us(rule):
                    self.over[key] = known
                yield self._finding(rule, known, Status.RESOLVED, resolved_us=known.ended_us)

    def count_out(self, rules: dict[str, Rule]) -> Iterator[Finding]:
        """Yield the findings that were counted further since they were last published. For the end of the records."""
        for known in self.open.values():
            if known.published and known.count.bit_count() > 1:
                yield self._finding(rules[known.rule], known, Status.UPDATE)

    def standing(self, rules: dict[str, Rule]) -> Iterator[Finding]:
        """Yield the findings that are published, as they are now."""
        for known in self.open.values():
            if known.published:
                status = Status.OPEN if known.count == 1 else Status.UPDATE
                yield self._finding(rules[known.rule], known, status)

    def held(self, now_us: int) -> list[OpenFinding]:
        """Return the findings that are about to be published."""
        return [known for known in self.open.values() if not known.published and known.publish_us <= now_us]

    def withdraw(self, known: OpenFinding) -> None:
        """Drop a finding that has not been published."""
        del self.open[known.rule, known.subject]

    def next_due_us(self, rules: dict[str, Rule], quiet_us: int) -> int | None:
        """Return when :meth:`settle` may next yield a finding, None if never."""
        due = []
        for known in self.open.values():
            rule = rules[known.rule]
            if not known.published:
                due.append(known.publish_us)
            elif not isinstance(rule, TimerRule):
                due.append(known.updated_us + rule.quiet_times * quiet_us)
            elif known.ended_us:
                due.append(known.ended_us + _pace_us(rule))
        return min(due, default=None)

    def lingers(self, known: OpenFinding, rule: TimerRule, now_us: int, *, stands: bool) -> bool:
        """Return True if a finding stands, or has come again and may do so once more."""
        if stands:
            known.ended_us = 0
            return True
        known.ended_us = known.ended_us or now_us
        return known.came_again and now_us < known.ended_us + _pace_us(rule)

    def _before(self, rule: Rule, key: tuple[str, str], at_us: int) -> OpenFinding | None:
        """Return the finding that is over and comes again; None if there is none."""
        before = self.over.pop(key, None)
        return before if before is not None and at_us <= before.ended_us + _pace_us(rule) else None

    def _cause(self, rule: Rule, breach: Breach) -> OpenFinding | None:
        """Return the open finding that suppresses this breach, None if there is none.

        It is about the whole group, the same subject, or the same client: one that loops has another member id each time.
        """
        client = _client(breach)
        for cause in rule.suppressed_by:
            for (id_, subject), known in self.open.items():
                whole_group = not subject or not breach.subject
                if id_ == cause and (
                    whole_group
                    or subject in {breach.subject, breach.instance_id}
                    or (client is not None and client == _client(known))
                ):
                    return known
        return None

    def _publish(self, rule: Rule, known: OpenFinding) -> Finding:
        known.published = True
        return self._finding(rule, known, Status.UPDATE if known.came_again else Status.OPEN)

    def _finding(self, rule: Rule, known: OpenFinding, status: Status, resolved_us: int | None = None) -> Finding:
        actor = known.actor
        summary, observed = begin(known.summary), begin(known.observed)
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
            group_type=known.group_type,
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
            summary=afterwards(summary) if status is Status.RESOLVED else summary,
            expected=rule.expected,
            observed=observed,
            action=known.action or rule.action,
            evidence=known.evidence,
            broker=known.broker,
        )


def _client(about: Breach | OpenFinding) -> tuple[str | None, str] | None:
    """Return client id and host of what is said of one client; None if it is about anything else."""
    actor = about.actor or NO_CLIENT
    is_of_client = about.subject in {about.member_id, about.instance_id, actor.client_id, client_text(actor)}
    return actor.named if is_of_client and actor.client_id is not None else None


def _pace_us(rule: Rule) -> int:
    return rule.pace_ms * 1_000 if isinstance(rule, TimerRule) else 0


def _merge(kept: tuple[Evidence, ...], new: tuple[Evidence, ...]) -> tuple[Evidence, ...]:
    """Return the first and the latest frames, at most :data:`EVIDENCE_KEPT`."""
    merged = (*kept, *(frame for frame in new if frame not in kept))
    if len(merged) <= EVIDENCE_KEPT:
        return merged
    half = EVIDENCE_KEPT // 2
    return (*merged[:half], *merged[-half:])

"""Findings of the driver itself: about the mirror as a whole, not about a group.

The model keeps its open findings in its state; the driver keeps them in the findings topic, and reads them back at a start. A finding's
published form does not carry its subject, only an id made of it. So a driver that comes back after a restart recognises its findings by
making the ids of all subjects it knows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from coordinator_model.finding import Evidence, Finding, Status, finding_id
from streaming.published.finding_json import from_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from coordinator_model.rules.base import Rule

Subject = tuple[str, str]
"""Rule id and subject."""


class Standing:
    """The open findings of some rules, at most one for each rule and subject.

    :param published: findings of the topic that are open, as published.
    :param known: the subjects by which a published finding is recognised. Others may be reported as well.
    """

    def __init__(self, cluster: str, published: Iterable[Mapping[str, Any]], known: Iterable[Subject]) -> None:
        self._cluster = cluster
        self._known = tuple(known)
        self._open: dict[Subject, Finding] = {}
        self._orphans: list[Finding] = []
        for raw in published:
            if raw["cluster"] == cluster and not raw["group"]:
                self._recognise(from_json(dict(raw)))

    def _recognise(self, finding: Finding) -> None:
        for rule_id, subject in self._known:
            if rule_id == finding.rule and self._id(rule_id, subject, finding.opened_at_us) == finding.id:
                self._open[rule_id, subject] = finding
                return
        self._orphans.append(finding)

    def settle_orphans(self, family: str, *, at_us: int) -> list[Finding]:
        """Resolve the findings of an earlier run, of a family that is all ours, whose subject is looked at no longer."""
        gone = [finding for finding in self._orphans if finding.family == family]
        self._orphans = [finding for finding in self._orphans if finding.family != family]
        return [_resolved(finding, at_us, "no longer checked") for finding in gone]

    def is_open(self, rule_id: str, subject: str) -> bool:
        return (rule_id, subject) in self._open

    def open_finding(self, rule_id: str, subject: str) -> Finding | None:
        return self._open.get((rule_id, subject))

    def report(
        self,
        rule: Rule,
        subject: str,
        *,
        at_us: int,
        summary: str,
        observed: str,
        count: int = 1,
        evidence: tuple[Evidence, ...] = (),
    ) -> Finding:
        """It is so: open the finding, or count it on the open one."""
        known = self._open.get((rule.id, subject))
        if known is not None:
            finding = replace(
                known,
                status=Status.UPDATE,
                updated_at_us=max(at_us, known.updated_at_us),
                count=known.count + count,
                summary=summary,
                observed=observed,
            )
        else:
            finding = rule.finding(
                subject=subject,
                cluster=self._cluster,
                group="",
                opened_at_us=at_us,
                at_us=at_us,
                summary=summary,
                observed=observed,
                count=count,
                evidence=evidence,
            )
        self._open[rule.id, subject] = finding
        return finding

    def settle(self, rule_id: str, subject: str, *, at_us: int) -> list[Finding]:
        """It is so no longer: resolve the finding if it is open."""
        finding = self._open.pop((rule_id, subject), None)
        return [] if finding is None else [_resolved(finding, at_us, finding.observed)]

    def _id(self, rule_id: str, subject: str, opened_at_us: int) -> str:
        return finding_id(rule_id, cluster=self._cluster, group="", subject=subject, opened_at_us=opened_at_us)


def _resolved(finding: Finding, at_us: int, observed: str) -> Finding:
    at_us = max(at_us, finding.updated_at_us)
    return replace(finding, status=Status.RESOLVED, updated_at_us=at_us, resolved_at_us=at_us, observed=observed)

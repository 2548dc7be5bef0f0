"""The times in which a finding explains the rebalances of its group: advice with another reason does not count them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from coordinator_model.events import GroupEvent, RebalanceFinished
from coordinator_model.finding import Blame, Severity
from coordinator_model.wording import us_of

EXPLAINS: Final = frozenset(
    {"C-08", "E-07", "P-02", "R-02", "R-03", "R-09", "R-10", "R-25", "R-26", "R-27", "S-01", "T-10", "T-11"}
)
"""Rules that name why a group rebalances, or cannot end a rebalance: loops of joins, timeouts that cannot work together, two processes of
one instance id, an id that is given and not used, members without a common protocol or without SyncGroup, a record that the coordinator
cannot write, Connect workers that read different configs, what moves nothing. No advice is about these: the action of the finding comes
first. So it is with errors of the broker, and with a coordinator that is away or keeps moving for less. R-01, R-24 and T-12 are not among
them, as there is advice about rebalance timeouts, scale steps and poll intervals."""

Groups = Mapping[tuple[str, str], "list[Span]"]
"""Cluster and group → the times."""


class Span(NamedTuple):
    """From when to when a finding explains."""

    from_us: int
    to_us: float

    def covers(self, event: GroupEvent) -> bool:
        """Return True if any of what an event describes was within it."""
        began_us = event.began_us if isinstance(event, RebalanceFinished) else 0
        return self.from_us <= event.at_us and (began_us or event.at_us) <= self.to_us


def explained(findings: Iterable[Mapping[str, Any]]) -> Groups:
    """Return the times in which published findings explain rebalances: from their first frame on, until they are over."""
    found: dict[tuple[str, str], list[Span]] = {}
    for finding in findings:
        if finding["group"] and (finding["rule"] in EXPLAINS or _is_the_brokers(finding)):
            seen = [finding["opened_at"], *(frame["at"] for frame in finding.get("evidence") or ())]
            over = finding.get("resolved_at")
            span = Span(min(map(us_of, seen)), us_of(over) if over else float("inf"))
            found.setdefault((finding["cluster"], finding["group"]), []).append(span)
    return found


def _is_the_brokers(finding: Mapping[str, Any]) -> bool:
    # As a note, C-14 may be a restart of all clients.
    least = Severity.WARNING if finding["rule"] in {"C-04", "C-14"} else Severity.ERROR
    return finding["blame"] == Blame.BROKER and Severity(finding["severity"]).rank >= least.rank

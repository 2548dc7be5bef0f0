"""Published findings for the tests of the demo, made by the real class."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from coordinator_model.finding import Blame, Certainty, Finding, Severity, Status, finding_id
from streaming.demo.verdicts import Observation

FACT_US = 1_700_000_000_000_000

_FINDING = Finding(
    id="",
    rule="G-01",
    name="zombie generation",
    family="G",
    severity=Severity.ERROR,
    certainty=Certainty.HEURISTIC,
    blame=Blame.CLIENT,
    status=Status.OPEN,
    cluster="demo",
    group="shipping",
    group_type="classic",
    incarnation=0,
    generation=1,
    member_id="shipping-worker-1-aaaa",
    instance_id=None,
    client_id="shipping-worker-1",
    client_address="127.0.0.1",
    client_software="raw 1",
    opened_at_us=FACT_US + 10_000_000,
    updated_at_us=FACT_US + 10_000_000,
    resolved_at_us=None,
    count=1,
    summary="member shipping-worker-1-aaaa (client shipping-worker-1 at 127.0.0.1) keeps using generation 1.",
    expected="a JoinGroup",
    observed="refused",
    action="restart it",
)


def observation(read_after_s: float = 10.5, **changes: Any) -> Observation:
    """A finding like the zombie's, with some fields changed, read so long after the fact."""
    finding = replace(_FINDING, **changes)
    name = finding_id(
        finding.rule, cluster="demo", group=finding.group, subject=str(finding.member_id), opened_at_us=finding.opened_at_us
    )
    return Observation(replace(finding, id=name).as_json(), FACT_US + round(read_after_s * 1e6))

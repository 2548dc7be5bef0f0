"""Which finding is the effect of another, and is not said beside it."""

from __future__ import annotations

import pytest

from coordinator_model.open_findings import OpenFindings
from coordinator_model.rules import CATALOGUE
from coordinator_model.rules.base import Breach


def told(findings: OpenFindings, rule: str, breach: Breach) -> list[str]:
    said = findings.report(CATALOGUE[rule], breach, at_us=1, hold_us=0, incarnation=1, group_type="classic")
    return [finding.rule for finding in said]


@pytest.mark.parametrize(("instance_id", "said"), [("i-1", []), ("i-2", ["S-02"])])
def test_a_member_of_the_instance_that_another_finding_is_about_is_its_effect(instance_id: str, said: list[str]) -> None:
    """Two processes share an instance id (S-01): that one of them goes on although it was fenced (S-02) is no news."""
    findings = OpenFindings("c1", "g")
    assert told(findings, "S-01", Breach("i-1", "two processes", "two", (), instance_id="i-1")) == ["S-01"]
    assert told(findings, "S-02", Breach("m-1", "goes on", "went on", (), member_id="m-1", instance_id=instance_id)) == said

"""Findings as they are published."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from coordinator_model.finding import Blame, Certainty, Evidence, Finding, Severity, Status, finding_id
from coordinator_model.wording import iso_utc

AT_US = 1_700_000_000_000_001

FINDING = Finding(
    id="G-02-0123456789abcdef",
    rule="G-02",
    name="stale generation accepted",
    family="G",
    severity=Severity.ERROR,
    certainty=Certainty.CERTAIN,
    blame=Blame.BROKER,
    status=Status.OPEN,
    cluster="c1",
    group="orders",
    group_type="classic",
    incarnation=2,
    generation=7,
    member_id="m-1",
    instance_id=None,
    client_id="worker",
    client_address="10.0.0.1:40001",
    client_software=None,
    opened_at_us=AT_US,
    updated_at_us=AT_US + 1,
    resolved_at_us=None,
    count=1,
    summary="said",
    expected="wanted",
    observed="seen",
    action="do",
    evidence=(Evidence(3, 41, "worker#1", 5, AT_US, "Heartbeat v4 request, generation 7"),),
)


def test_a_finding_is_published_in_plain_types() -> None:
    published = FINDING.as_json()
    assert json.loads(json.dumps(published)) == published
    assert published == {
        "id": "G-02-0123456789abcdef",
        "rule": "G-02",
        "name": "stale generation accepted",
        "family": "G",
        "severity": "error",
        "certainty": "certain",
        "blame": "broker",
        "status": "open",
        "cluster": "c1",
        "group": "orders",
        "group_type": "classic",
        "incarnation": 2,
        "generation": 7,
        "member_id": "m-1",
        "instance_id": None,
        "client_id": "worker",
        "client_address": "10.0.0.1:40001",
        "client_software": None,
        "broker": None,
        "opened_at": "2023-11-14T22:13:20.000001Z",
        "updated_at": "2023-11-14T22:13:20.000002Z",
        "resolved_at": None,
        "count": 1,
        "summary": "said",
        "expected": "wanted",
        "observed": "seen",
        "action": "do",
        "evidence": [
            {
                "partition": 3,
                "offset": 41,
                "connection": "worker#1",
                "exchange": 5,
                "at": "2023-11-14T22:13:20.000001Z",
                "frame": "Heartbeat v4 request, generation 7",
            }
        ],
    }


def test_a_resolved_finding_says_when() -> None:
    over = replace(FINDING, status=Status.RESOLVED, resolved_at_us=AT_US + 60_000_000)
    assert over.as_json()["status"] == "resolved"
    assert over.as_json()["resolved_at"] == "2023-11-14T22:14:20.000001Z"


def test_times_keep_their_microseconds_where_there_are_none() -> None:
    assert iso_utc(0) == "1970-01-01T00:00:00.000000Z"


def test_an_id_is_the_same_for_the_same_facts_and_another_for_others() -> None:
    facts = {"cluster": "c1", "group": "g", "subject": "m", "opened_at_us": AT_US}
    assert finding_id("G-02", **facts) == finding_id("G-02", **dict(reversed(facts.items())))
    assert re.fullmatch("G-02-[0-9a-f]{16}", finding_id("G-02", **facts))
    ids = {finding_id("G-02", **facts), finding_id("G-03", **facts)}
    ids |= {finding_id("G-02", **{**facts, name: value}) for name, value in (("group", "h"), ("subject", "n"), ("opened_at_us", 1))}
    assert len(ids) == 5


@pytest.mark.parametrize(("group", "subject"), [("ab", "c"), ("a", "bc")])
def test_facts_do_not_run_into_each_other(group: str, subject: str) -> None:
    assert finding_id("G-02", cluster="", group=group, subject=subject, opened_at_us=1) != finding_id(
        "G-02", cluster="", group=group + subject, subject="", opened_at_us=1
    )

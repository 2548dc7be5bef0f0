"""Random lives of a group, lawful and not, replayed through the model.

How many is set by the Hypothesis profile: a few hundred in the test suite, ``make histories`` runs 20,000 and prints the counts.
"""

from __future__ import annotations

from hypothesis import given, note

from coordinator_model.coordinator import Coordinator
from coordinator_model.findings import Finding, Severity
from tests.coordinator_model.reference.history import History, Plan, plans


def replay(history: History) -> list[Finding]:
    model = Coordinator(topic="mirror", partition=0)
    return [finding for record in history.records for finding in model.receive(record)]


def describe(history: History, findings: list[Finding]) -> str:
    from coordinator_model.wire import API_NAMES, decode

    lines = []
    for record in history.records:
        body: object = ""
        if record.api_key >= 0 and record.frame:
            body = decode(record.frame, request=record.kind == "req", api_key=record.api_key, api_version=record.api_version).body
        at_s = (record.at_us - history.records[0].at_us) / 1e6
        if record.kind != "tick" and record.api_key != 12:
            lines.append(
                f"{at_s:9.4f} {record.broker} {record.connection:12} #{record.exchange:<3} {API_NAMES.get(record.api_key, '')} {record.kind} {body}"
            )
    lines += [f"!!! {finding.opened_at_us - history.records[0].at_us} {finding.status} {finding.summary}" for finding in findings]
    return "\n".join(lines)


@given(plans())
def test_a_lawful_life_has_no_error(plan: Plan) -> None:
    history = plan.run()
    errors = [finding for finding in replay(history) if finding.severity.rank >= Severity.ERROR.rank]
    if errors:
        note(describe(history, errors))
    assert errors == []

"""An hour of an operator's life: what a webhook is sent is true, and no trouble is sent twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.real.hour import Happening, Sent, judge, live, table, unsent

KILLED = Happening(10.0, "orders", "one of two killed for good", frozenset({"T-13"}))
TAP = Happening(50.0, "", "the tap was killed", frozenset({"V-11"}))


def sent(at_s: float, rule: str, group: str, *, event: str = "open", finding: str = "1") -> Sent:
    return Sent(at_s, event, "warning", rule, group, finding, "Group orders has 1 member | instead of 2.")


def verdicts(*messages: Sent) -> list[str]:
    return [row.verdict for row in judge([KILLED, TAP], messages)]


def test_what_was_done_before_and_has_the_rule_explains_a_message() -> None:
    assert verdicts(sent(45, "T-13", "orders"), sent(80, "T-13", "orders", event="resolved")) == ["true", "true"]
    assert verdicts(sent(60, "V-11", "")) == ["true"]


@pytest.mark.parametrize(
    "message", [sent(9, "T-13", "orders"), sent(45, "T-04", "orders"), sent(45, "T-13", "billing"), sent(60, "V-09", "")]
)
def test_a_message_that_nothing_explains_is_false(message: Sent) -> None:
    assert verdicts(message) == ["false"]


def test_a_second_message_of_one_trouble_is_sent_again_and_two_findings_in_one_message_are_not() -> None:
    assert verdicts(sent(45, "T-13", "orders"), sent(70, "T-13", "orders", finding="2")) == ["true", "again"]
    assert verdicts(sent(45, "T-13", "orders"), sent(70, "T-13", "orders")) == ["true", "again"]
    assert verdicts(sent(45, "T-13", "orders"), sent(45, "T-13", "orders", finding="2")) == ["true", "true"]


def test_the_table_says_when_and_why_and_a_trouble_that_was_not_sent_is_named() -> None:
    rows = judge([KILLED, TAP], [sent(75, "T-13", "orders")])
    line = "| 1:15 | warning T-13: Group orders has 1 member \\| instead of 2. | one of two killed for good, 65 s before | true |"
    assert table(rows).splitlines()[2:] == [line]
    assert unsent([KILLED, TAP], rows) == []
    assert unsent([KILLED, TAP], []) == [KILLED]


@pytest.mark.real
@pytest.mark.long
@pytest.mark.lab
@pytest.mark.timeout(1_500)
def test_nothing_that_is_sent_in_an_hour_is_false_and_no_trouble_is_sent_twice(tmp_path: Path) -> None:
    happenings, messages = live(tmp_path)
    rows = judge(happenings, messages)
    print(table(rows))
    assert [row for row in rows if row.verdict != "true"] == []
    assert unsent(happenings, rows) == []

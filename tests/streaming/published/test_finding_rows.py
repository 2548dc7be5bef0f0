"""Findings as rows of a list, and the sentence of each by the client's own names."""

from __future__ import annotations

from typing import Any

import pytest

from streaming.published.finding_rows import rows
from streaming.published.sentences import by_names


def finding(number: int, **differs: Any) -> dict[str, Any]:
    return {
        "id": f"f{number}",
        "cluster": "c1",
        "group": "orders",
        "rule": "T-09",
        "member_id": f"m-{number}",
        "client_id": "worker",
        "client_address": "10.0.0.7",
        "client_software": "librdkafka 2.3",
        "count": 1,
        "opened_at": f"2026-11-28T10:0{number}:00.000000Z",
        "updated_at": f"2026-11-28T10:0{number}:00.000000Z",
        "summary": f"Member m-{number} (client worker at 10.0.0.7, librdkafka 2.3) died without leaving.",
    } | differs


def test_what_one_client_does_again_and_again_is_one_row_with_a_count_and_its_times() -> None:
    row, other = rows([finding(0), finding(1, count=2), finding(4, client_id="other"), finding(2, client_address="10.0.0.7")])
    assert (row.finding["id"], row.times, row.bars, row.said) == ("f0", 4, (0.0, 49.5, 99.0), "3 findings, 10:00:00 to 10:02:00")
    assert (other.finding["id"], other.times, other.bars, other.said) == ("f4", 1, (), "")


def test_the_deaths_and_returns_of_one_client_are_one_row_that_counts_each_death_once() -> None:
    deaths = [finding(2 * number, rule="T-09") for number in range(3)] + [
        finding(2 * number + 1, rule="T-04") for number in range(3)
    ]
    loop = finding(5, id="loop", rule="M-13", count=2)
    (row,) = rows([loop, *deaths])
    assert (row.finding["id"], row.times, len(row.bars)) == ("loop", 3, 7)
    assert [one.times for one in rows([loop, *deaths, finding(6, rule="T-04", client_id="other")])] == [3, 1]


@pytest.mark.parametrize("differs", [{"rule": "M-14"}, {"group": "bills"}, {"cluster": "c2"}, {"client_address": "10.0.0.8"}])
def test_another_rule_group_cluster_or_host_has_a_row_of_its_own(differs: dict[str, str]) -> None:
    assert [row.times for row in rows([finding(0), finding(1, **differs)])] == [1, 1]


def test_findings_that_name_no_client_have_a_row_each() -> None:
    assert [row.times for row in rows([finding(0, client_id=None), finding(1, client_id=None)])] == [1, 1]


def gap(number: int, **differs: Any) -> dict[str, Any]:
    """What a partition says of a gap that all of them see."""
    at = "2026-11-28T10:00:0{}.000000Z".format
    fields = {
        "group": "",
        "rule": "V-04",
        "client_id": None,
        "opened_at": at(number),
        "updated_at": at(number),
        "resolved_at": None,
    }
    return finding(number, **fields) | differs


def test_what_several_partitions_say_of_one_gap_is_one_row_that_happened_once() -> None:
    (row,) = rows([gap(0), gap(1), gap(2, rule="V-09"), gap(3)])
    assert (row.finding["id"], row.times, row.bars, row.often) == ("f0", 1, (), "in 4 findings, 10:00:00 to 10:00:03")


def away(number: int, **differs: Any) -> dict[str, Any]:
    """What a group says of its broker."""
    return gap(number, rule="C-14", group=f"g{number}", broker="10.0.0.1:9092") | differs


def test_what_the_groups_of_one_broker_say_of_it_is_one_row() -> None:
    row, other = rows([away(0), away(1), away(2, rule="T-06"), away(3), away(4, broker="10.0.0.2:9092")])
    assert (row.finding["id"], row.times, row.bars, row.often) == ("f0", 1, (), "in 4 findings, 10:00:00 to 10:00:03")
    assert (other.finding["id"], other.often) == ("f4", "")


@pytest.mark.parametrize(
    "differs",
    [
        {"rule": "V-01"},
        {"cluster": "c2"},
        {"group": "orders"},
        {"opened_at": "2026-11-28T10:00:06.000000Z"},
    ],
)
def test_another_gap_has_a_row_of_its_own(differs: dict[str, str]) -> None:
    """Of another kind, cluster or group; or one that opened when the first was over."""
    over = gap(0, resolved_at="2026-11-28T10:00:05.000000Z")
    assert len(rows([over, gap(1)])) == 1
    assert [row.often for row in rows([over, gap(1, **differs)])] == ["", ""]


@pytest.mark.parametrize(
    ("summary", "said"),
    [
        ("Member m-0 (client worker at 10.0.0.7, librdkafka 2.3) left.", "Client worker at 10.0.0.7 left."),
        (
            "Static member m-0 (client worker at 10.0.0.7, librdkafka 2.3), instance i, left.",
            "Static client worker at 10.0.0.7, instance i, left.",
        ),
        ("Member m-0 (client worker at 10.0.0.7, librdkafka 2.3, User:app) left.", "Client worker at 10.0.0.7 left."),
        (
            "The group waits for member m-9 (client other at 10.0.0.9).",
            "The group waits for member m-9 (client other at 10.0.0.9).",
        ),
        ("Client worker at 10.0.0.7, librdkafka 2.3 went away.", "Client worker at 10.0.0.7 went away."),
        ("A group waits (client worker at 10.0.0.7, librdkafka 2.3).", "A group waits (client worker at 10.0.0.7)."),
    ],
)
def test_a_sentence_names_a_persons_names_in_the_place_of_member_id_and_software(summary: str, said: str) -> None:
    assert by_names(finding(0, summary=summary)) == said


def test_a_port_is_no_name_of_a_host() -> None:
    about = finding(0, client_address="10.0.0.7:4711", summary="Member m-0 (client worker at 10.0.0.7:4711, librdkafka 2.3) left.")
    assert by_names(about) == "Client worker at 10.0.0.7 left."

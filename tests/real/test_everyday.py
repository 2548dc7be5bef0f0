"""What was said of an everyday trouble is held against it: rule, words, client, address, and what else was said."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from coordinator_model.events import PARTITIONS_ADDED
from tests.real.everyday import Row, row_of, shortened, table
from tests.real.everyday_place import Printed
from tests.real.everyday_troubles import TROUBLES

KILLED = next(one for one in TROUBLES if one.name == "killed")
GROWN = next(one for one in TROUBLES if one.name == "grown")
GROUP = "killed-kafka-python"


def said(at_s: float, rule: str, summary: str, *, severity: str = "warning", id_: str = "1") -> Printed:
    return Printed(
        at_s,
        {
            "id": id_,
            "rule": rule,
            "severity": severity,
            "group": GROUP,
            "summary": summary,
            "client_id": None,
            "client_address": None,
        },
    )


def row(*printed: Printed, trouble: Any = KILLED, words: str = "") -> Row:
    place = SimpleNamespace(of=lambda _: list(printed))
    cast: Any = SimpleNamespace(place=place, group=GROUP, library=SimpleNamespace(name="kafka-python"), began_s=100.0)
    return row_of(trouble, cast, words)


def test_a_trouble_is_found_by_the_first_finding_of_its_rule_after_it_and_shown_as_it_says_last() -> None:
    found = row(
        said(90, "T-13", "an older one", id_="0"),
        said(130, "T-13", f"client {GROUP}-2 at 127.0.0.1 died"),
        said(131, "T-13", f"client {GROUP}-2 at 127.0.0.1 died, 5 s"),
    )
    assert found == Row(KILLED, "kafka-python", 30.0, f"warning T-13: client {GROUP}-2 at 127.0.0.1 died, 5 s", True, ())


def test_another_rule_or_other_words_do_not_count_and_a_warning_beside_it_is_shown() -> None:
    assert row(said(130, "T-04", "silent"), said(130, "T-09", "closed", severity="info", id_="2")).beside == (
        "warning T-04: silent",
    )
    assert row(said(130, "T-13", "members missing"), words="orders").seconds is None


def test_a_finding_that_names_no_client_or_no_address_is_marked() -> None:
    assert [row(said(130, "T-13", text)).names_client for text in ("one died", f"{GROUP}-2 died", "at 127.0.0.1 died")] == [
        False
    ] * 3


def test_what_changed_the_group_is_found_by_the_cause_of_a_rebalance() -> None:
    record = {
        "id": "r",
        "kind": "rebalance_finished",
        "group": GROUP,
        "cause": PARTITIONS_ADDED,
        "to_generation": 4,
        "client_id": None,
        "client_address": None,
    }
    assert row(Printed(103.0, record), trouble=GROWN)[2:5] == (3.0, f"rebalance to generation 4: {PARTITIONS_ADDED}", True)


def test_the_table_has_a_row_for_each_trouble_and_says_what_was_not_found() -> None:
    lines = table([row(trouble=GROWN), row(said(130, "T-13", "a | b"))]).splitlines()
    assert lines[2:] == [
        "| one of two killed for good | kafka-python | 30 | warning T-13: a \\| b |",
        "| partitions are added | kafka-python | not found |  |",
    ]


def test_the_table_leaves_out_member_ids_versions_and_costs() -> None:
    said_of = "Group g has 1 member instead of 2: member g-2-ea44 (client g-2 at 127.0.0.1, kafka-python 3.0.12) died at 10:00:00. Cost so far: 3 s."
    assert shortened(said_of) == "Group g has 1 member instead of 2: client g-2 at 127.0.0.1 died at 10:00:00."
    held = "Member g-2-ea44, instance pod-0 (client g-2 at 127.0.0.1, kafka-python 3.0.12) cannot join"
    assert shortened(held) == "client g-2 at 127.0.0.1 cannot join"
    said_by = "Client g-1 at 127.0.0.1, confluent-kafka-python 2.16.1-rdkafka-2.16.0 cannot join group g"
    assert shortened(said_by) == "Client g-1 at 127.0.0.1 cannot join group g"

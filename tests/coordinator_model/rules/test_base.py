"""What rules share: whom a breach names, and which frames and names it shows."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from coordinator_model.finding import Evidence
from coordinator_model.groups.records import ClientInfo, Member
from coordinator_model.rules.base import Breach, captured, first_and_last
from coordinator_model.wording import some

ACTOR = ClientInfo("c", "10.0.0.1:1", "", "connection")
FRAME = Evidence(0, 1, "connection", 1, 5, "Heartbeat v4 request")


class Sent(NamedTuple):
    member_id: str
    generation: int
    actor: ClientInfo = ACTOR
    instance_id: str | None = "i"


def test_a_breach_of_a_member_is_about_it_unless_it_says_otherwise() -> None:
    member = Member("m", ACTOR, "i")
    breach = Breach.of_member(member, "summary", "observed", (FRAME,))
    assert breach == Breach("m", "summary", "observed", (FRAME,), ACTOR, "m", "i")
    whole = Breach.of_member(member, "summary", "observed", (FRAME,), subject="", generation=3)
    assert whole == breach._replace(subject="", generation=3)


@pytest.mark.parametrize(
    ("sent", "named"),
    [
        (Sent("m", 3), Breach("m", "summary", "observed", (), ACTOR, "m", "i", 3)),
        (Sent("m", 0), Breach("m", "summary", "observed", (), ACTOR, "m", "i", 0)),
        (Sent("", -1), Breach("", "summary", "observed", (), ACTOR, None, "i", None)),
    ],
)
def test_a_breach_of_a_sender_has_the_generation_and_the_id_that_it_named_if_any(sent: Sent, named: Breach) -> None:
    assert Breach.of_sender(sent, "summary", "observed", ()) == named
    assert Breach.of_sender(sent, "summary", "observed", (), generation=None) == named._replace(generation=None)


def test_frames_that_were_not_captured_are_left_out() -> None:
    assert captured(None, FRAME, None) == (FRAME,)


@pytest.mark.parametrize(
    ("row", "shown"), [([1], (1,)), ([1, 2, 3], (1, 2, 3)), ([1, 2, 3, 4], (1, 2, 3, 4)), ([1, 2, 3, 4, 5], (1, 2, 4, 5))]
)
def test_of_a_long_row_the_first_two_and_the_last_two_are_shown_once_each(row: list[int], shown: tuple[int, ...]) -> None:
    assert first_and_last(row) == shown


def test_of_many_names_the_first_are_told_and_the_others_counted() -> None:
    assert some(["a", "b"], 2) == "a, b"
    assert some(["a", "b", "c", "d"], 2) == "a, b and 2 more"
    assert some(["a", "b", "c"], 2, "; ", "; and ") == "a; b; and 1 more"

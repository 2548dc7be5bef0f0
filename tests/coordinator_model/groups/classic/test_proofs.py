"""Which answers prove that their sender is a member at its group's generation, and in which phase the group is then: by the table."""

from __future__ import annotations

from typing import Final

import pytest

from coordinator_model.groups.protocol.classic import PREPARING, TABLE, phases_of_members
from coordinator_model.groups.protocol.table import Effect
from coordinator_model.releases import Release, first_release
from coordinator_model.wire.constants import (
    DELETE_GROUPS,
    FIND_COORDINATOR,
    HEARTBEAT,
    ILLEGAL_GENERATION,
    JOIN_GROUP,
    LEAVE_GROUP,
    MEMBER_ID_REQUIRED,
    NONE,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    REBALANCE_IN_PROGRESS,
    SYNC_GROUP,
    TXN_OFFSET_COMMIT,
    UNKNOWN_MEMBER_ID,
)
from tests.cells import Change, changed_table

PROOFS: Final = {
    (JOIN_GROUP, 9, NONE): "KS",
    (JOIN_GROUP, 9, MEMBER_ID_REQUIRED): "",
    (JOIN_GROUP, 9, UNKNOWN_MEMBER_ID): "",
    (SYNC_GROUP, 5, NONE): "S",
    (SYNC_GROUP, 5, REBALANCE_IN_PROGRESS): "P",
    (HEARTBEAT, 4, NONE): "KS",
    (HEARTBEAT, 4, REBALANCE_IN_PROGRESS): "KP",
    (HEARTBEAT, 2, REBALANCE_IN_PROGRESS): "",  # brokers up to 2.2 do not look at the generation first
    (HEARTBEAT, 4, ILLEGAL_GENERATION): "",
    (LEAVE_GROUP, 5, NONE): "",
    (OFFSET_COMMIT, 9, NONE): "PS",
    (TXN_OFFSET_COMMIT, 3, NONE): "KPS",
    (TXN_OFFSET_COMMIT, 2, NONE): "",
    (DELETE_GROUPS, 2, NONE): "",
    (FIND_COORDINATOR, 4, NONE): "",
    (OFFSET_FETCH, 9, NONE): "",
}
NUMBERED: Final = {SYNC_GROUP, HEARTBEAT, OFFSET_COMMIT, TXN_OFFSET_COMMIT}  #: their requests name a generation
UNKNOWN: Final = (0, 9)  #: a broker of which only the version of the answer is known


def proofs(*, loads: bool = False) -> dict[tuple[int, int, int], str]:
    return {answer: proof(*answer, UNKNOWN, numbered=answer[0] in NUMBERED, loads=loads) for answer in PROOFS}


def proof(api_key: int, version: int, answer: int, oldest: Release, *, numbered: bool = True, loads: bool = False) -> str:
    return "".join(sorted(phases_of_members(api_key, version, answer, oldest, numbered=numbered, loads=loads)))


def test_an_answer_proves_its_sender_where_nobody_else_gets_it() -> None:
    assert proofs() == PROOFS


def test_a_broker_that_may_load_the_group_proves_nothing_by_what_it_answers_unchecked() -> None:
    assert proofs(loads=True) == PROOFS | {(HEARTBEAT, 4, NONE): "", (SYNC_GROUP, 5, REBALANCE_IN_PROGRESS): ""}


@pytest.mark.parametrize("name", ["J9", "J11"])
def test_who_takes_an_instance_id_is_a_member_because_the_row_says_so(name: str) -> None:
    row = TABLE[name]
    assert proof(JOIN_GROUP, 5, NONE, UNKNOWN, numbered=False) == "KS"
    with changed_table(Change(row, "then replaced", row._replace(effects=row.effects - {Effect.REPLACED}))):
        assert not proof(JOIN_GROUP, 5, NONE, UNKNOWN, numbered=False)


def test_a_request_without_a_generation_proves_nothing_where_the_others_name_one() -> None:
    assert not proof(OFFSET_COMMIT, 9, NONE, UNKNOWN, numbered=False)


@pytest.mark.parametrize(
    ("oldest", "version", "shown"),
    [
        ((2, 2), 2, ""),
        ((2, 3), 0, "KP"),
        ((2, 3), 1, "KP"),
        ((2, 3), 2, "KP"),
        ((2, 5), 4, "KP"),
        ((2, 7), 0, "P"),
        ((3, 2), 2, "P"),
        ((3, 2), 4, "P"),
    ],
)
def test_a_known_release_narrows_where_a_heartbeat_is_told_to_rejoin(oldest: Release, version: int, shown: str) -> None:
    assert proof(HEARTBEAT, version, REBALANCE_IN_PROGRESS, oldest) == shown


@pytest.mark.parametrize("answer", PROOFS)
def test_a_release_that_the_version_shows_already_proves_nothing_more(answer: tuple[int, int, int]) -> None:
    assert proof(*answer, first_release(*answer[:2]), numbered=answer[0] in NUMBERED) == PROOFS[answer]


@pytest.mark.parametrize("oldest", [UNKNOWN, (2, 3), (4, 0)])
def test_an_answer_that_the_release_never_gives_proves_what_it_does_without_it(oldest: Release) -> None:
    assert proof(HEARTBEAT, 2, REBALANCE_IN_PROGRESS, oldest, numbered=False) == "K"


def test_join_phases_begin_by_requests_to_join_and_to_leave() -> None:
    assert {JOIN_GROUP, LEAVE_GROUP} == PREPARING

"""The table of groups with epochs against the hand-written references: at each moment it allows what they answer, and nothing else.

Each reference is asked every kind of request at every relation of ids and epochs, full and not, on each release. What frames do not show
(rights, disks, the assignor, the type of the group) may be answered at any moment: those codes are typed here from the specification.
"""

from __future__ import annotations

from typing import Final

import pytest

from coordinator_model.groups.protocol.epochs import TABLE
from coordinator_model.wire.constants import (
    CONSUMER_GROUP_HEARTBEAT,
    HEARTBEAT,
    LEAVE_GROUP,
    OFFSET_COMMIT,
    SHARE_GROUP_HEARTBEAT,
    STREAMS_GROUP_HEARTBEAT,
    SYNC_GROUP,
)
from tests.coordinator_model.groups.epochs.table_cases import (
    deeds,
    disagreements,
    misdeeds,
)

APIS: Final = (
    CONSUMER_GROUP_HEARTBEAT,
    SHARE_GROUP_HEARTBEAT,
    STREAMS_GROUP_HEARTBEAT,
    OFFSET_COMMIT,
    HEARTBEAT,
    SYNC_GROUP,
    LEAVE_GROUP,
)


# ---------------------------------------------------------------------------------------------------- the references are asked


@pytest.mark.parametrize("api_key", APIS)
def test_the_table_allows_what_the_references_answer_and_nothing_else(api_key: int) -> None:
    assert list(disagreements(api_key, TABLE.of(api_key))) == []


@pytest.mark.parametrize("api_key", APIS)
def test_the_row_that_decides_says_what_becomes_of_the_sender(api_key: int) -> None:
    assert list(misdeeds(api_key, TABLE.of(api_key))) == []
    assert {effect for _, (_, effects) in deeds(api_key) for effect in effects} == {
        effect for row in TABLE.of(api_key) for effect in row.effects
    }


def test_rows_that_decide_nothing_do_not_say_what_becomes_of_the_sender() -> None:
    """No reference could be asked, so nothing would hold it true."""
    assert [row.name for row in TABLE.rows if row.is_unseen and row.effects] == []

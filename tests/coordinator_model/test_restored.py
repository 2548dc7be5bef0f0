"""A model that is stored and restored after each record says what one says that is not; see ``restored.py``."""

from __future__ import annotations

import pytest

from tests.coordinator_model import restored

RECORDS = 2_000


@pytest.mark.parametrize("kind", restored.KINDS)
def test_a_restore_after_each_record_changes_no_finding_event_or_view(kind: str) -> None:
    told = {made_of: restored.difference(records) for made_of, records in restored.conversations(kind, RECORDS, seed=35)}
    assert len(told) > 4
    assert [f"{made_of} {differs.text}" for made_of, differs in told.items() if differs is not None] == []

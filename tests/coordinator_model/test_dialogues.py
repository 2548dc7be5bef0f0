"""What the reference coordinator of the consumer protocol answers, as scripted conversations have it."""

from __future__ import annotations

import pytest

from tests.coordinator_model.reference.consumer_history import RELEASES
from tests.coordinator_model.reference.dialogue import ReferencePlace, play
from tests.coordinator_model.reference.dialogues import DIALOGUES

LINES = {**RELEASES, "4.4": (4, 4, 0)}


@pytest.mark.parametrize("line", ["4.1", "4.2", "4.3", "4.4"])
@pytest.mark.parametrize("name", DIALOGUES)
def test_the_reference_answers_as_the_scenario_says(name: str, line: str) -> None:
    outcomes = play(DIALOGUES[name], ReferencePlace(LINES[line]))
    assert [one for one in outcomes if one.found != one.expected] == [], "\n" + "\n".join(map(str, outcomes))

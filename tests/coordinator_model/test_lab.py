"""What the laboratory met: each a finding that was false or missing in a run with real brokers, reduced to its frames."""

from __future__ import annotations

import pytest

from tests.coordinator_model.conversation import Conversation
from tests.coordinator_model.test_rules import settled


@pytest.fixture
def talk() -> Conversation:
    return Conversation()


def test_G_04_sees_a_lowered_generation_also_when_another_member_was_answered_first(talk: Conversation) -> None:
    """A proxy told the leader generation 3 again, a moment after a follower had been told 5: that is no late answer."""
    a, b = settled(talk, generation=3)
    talk.round([a, b], 4)
    lowered, right = talk.ask_join(a), talk.ask_join(b)
    talk.joined(right, generation=5, leader=a, roster=[a, b])
    talk.joined(lowered, generation=3, leader=a, roster=[a, b])
    talk.settle()
    assert talk.rules() == ["G-04"]
    assert "from generation 4 to 3" in talk.the("G-04").summary

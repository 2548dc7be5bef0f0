"""The conversation that a test of the model holds."""

from __future__ import annotations

import pytest

from tests.coordinator_model.conversation import Conversation


@pytest.fixture
def talk() -> Conversation:
    return Conversation()

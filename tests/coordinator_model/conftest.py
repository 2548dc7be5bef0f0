"""The conversation that a test of the model holds, and how old its brokers may be."""

from __future__ import annotations

import pytest

from coordinator_model.wire.constants import HEARTBEAT, JOIN_GROUP, SYNC_GROUP
from tests.coordinator_model.conversation import VERSIONS, Conversation


@pytest.fixture
def talk() -> Conversation:
    return Conversation()


@pytest.fixture
def before_2_3(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients use no version that shows a broker of 2.3, which looks at the generation of a Heartbeat first."""
    for api_key, version in {JOIN_GROUP: 4, HEARTBEAT: 2, SYNC_GROUP: 2}.items():
        monkeypatch.setitem(VERSIONS, api_key, version)

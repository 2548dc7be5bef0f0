"""The conversation that a test of the model holds, and how old its brokers may be."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from coordinator_model.wire.constants import HEARTBEAT, JOIN_GROUP, SYNC_GROUP
from tests.coordinator_model.conversation import VERSIONS, Conversation, conversation_for


@pytest.fixture(autouse=True, scope="package")
def fresh_clone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What these tests start finds no pyspark and nothing that was fetched before: ``make quick`` runs them in a fresh clone."""
    folder = tmp_path_factory.mktemp("fresh")
    (folder / "pyspark.py").write_text('raise ModuleNotFoundError("the tests of the model do without pyspark")')
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(folder), prepend=":")
        patch.setenv("XDG_CACHE_HOME", str(folder))
        yield


@pytest.fixture
def talk(request: pytest.FixtureRequest) -> Conversation:
    return conversation_for(request.function)


@pytest.fixture
def before_2_3(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients use no version that shows a broker of 2.3, which looks at the generation of a Heartbeat first."""
    for api_key, version in {JOIN_GROUP: 4, HEARTBEAT: 2, SYNC_GROUP: 2}.items():
        monkeypatch.setitem(VERSIONS, api_key, version)

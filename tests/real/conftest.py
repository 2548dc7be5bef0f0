"""A broker for all modules that need nothing special of it; each names its topics after itself."""

from __future__ import annotations

import pytest

from streaming.demo.broker import Broker


@pytest.fixture(scope="session")
def broker():
    with Broker() as running:
        yield running

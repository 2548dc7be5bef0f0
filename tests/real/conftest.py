"""A broker for the modules that need nothing special of it; each module has its own."""

from __future__ import annotations

import pytest

from streaming.demo.broker import Broker


@pytest.fixture(scope="module")
def broker():
    with Broker() as running:
        yield running

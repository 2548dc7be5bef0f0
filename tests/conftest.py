"""Hypothesis profiles: what the suite runs in minutes, and what a make target runs for as long as it takes."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

from tests.coordinator_model.reference import tally

settings.register_profile("suite", deadline=None, max_examples=100, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("histories", settings.get_profile("suite"), max_examples=20_000, derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in tally.lines():
        terminalreporter.write_line(line)

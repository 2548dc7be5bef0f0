"""Hypothesis profiles: a sample for ``make test``, all that CI runs, and what ``make histories`` runs for as long as it takes. And lanes.

``make test`` runs four processes on two cores, since tests with brokers wait most of the time. One begins with the files that start Spark
most often, one test after the other; the others with the rest, file by file. What tests of several could disturb (ports, folders) they
have to see to themselves.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

from tests.coordinator_model.reference import counters
from tests.needs import closing_line

settings.register_profile("suite", deadline=None, max_examples=100, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("sample", settings.get_profile("suite"), max_examples=10)
settings.register_profile("histories", settings.get_profile("suite"), max_examples=20_000, derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))

SPARK = {f"tests/real/test_{name}.py" for name in ("cluster", "demo", "durability", "job", "kills", "metrics")}

if not hasattr(sys.modules["__main__"], "__file__"):  # in a worker; pyspark then takes the process for its doctests, and ends it
    sys.modules["__main__"].__file__ = __file__

_lines_of_workers: list[str] = []


class Lanes(LoadScopeScheduling):
    """What is handed to a worker at once: all that starts Spark often, or another file."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return "spark" if file in SPARK else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Lanes:
    config.option.loadscopereorder = False  # Spark's lane is the longest, and comes first
    return Lanes(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: item.nodeid.partition("::")[0] not in SPARK)


@pytest.fixture
def caplog(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """Without what librdkafka writes: clients of tests before may go on looking for their broker in threads of their own."""
    caplog.handler.addFilter(lambda record: record.name != "rebalance-monitor.librdkafka")
    return caplog


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Print at once which history fails: the run goes on for hours, and prints nothing if it is interrupted."""
    if report.failed and settings.get_current_profile_name() == "histories":
        print(f"\n{report.nodeid}\n{report.longreprtext}", file=sys.stderr, flush=True)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["tally"] = counters.lines()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    _lines_of_workers.extend(getattr(node, "workeroutput", {}).get("tally", ()))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in _lines_of_workers or counters.lines():
        terminalreporter.write_line(line)
    skipped = closing_line(report.longrepr[2] for report in terminalreporter.stats.get("skipped", ()))
    if skipped is not None:
        terminalreporter.write_line(skipped)

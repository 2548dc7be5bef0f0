"""A short part of make conformance: two libraries that need no further toolchain, three scenarios, one broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.document import document, unjudged
from tests.conformance.libraries import LIBRARIES
from tests.conformance.run import run
from tests.conformance.scenarios import SCENARIOS

LIBRARY_NAMES = ("confluent-kafka", "kafka-python")
SCENARIO_NAMES = ("one-by-one", "static", "cut-joining")


@pytest.mark.real
@pytest.mark.long
def test_two_libraries_keep_the_protocol_in_three_scenarios(tmp_path: Path) -> None:
    libraries = [library for library in LIBRARIES if library.name in LIBRARY_NAMES]
    clusters = run(
        line="4.3",
        seed=1,
        commands=[(library, library.command()) for library in libraries],
        scenarios=[scenario for scenario in SCENARIOS if scenario.name in SCENARIO_NAMES],
        jobs=3,
        folder=tmp_path,
        say=lambda _: None,
    )
    played = [outcome.as_json() for outcomes in clusters for outcome in outcomes]
    assert [(one["library"], one["scenario"]) for one in played] == [
        (library, scenario) for scenario in SCENARIO_NAMES for library in LIBRARY_NAMES
    ]
    assert unjudged(played) == []
    assert [one["troubles"] for one in played] == [[]] * 6
    assert document(played).count("kept") > 6

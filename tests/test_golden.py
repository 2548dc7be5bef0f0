"""The golden transcripts, replayed: what the model says of real traffic, lawful and not, without a broker."""

from __future__ import annotations

import re

import pytest

from coordinator_model.coordinator import Coordinator
from tests.golden import transcript
from tests.real.lab.fleet import MAKES, NEW_PROTOCOL
from tests.real.lab.releases import RELEASES
from tests.real.lab.violations import VIOLATIONS

RULE_OF = {f"violation-{violation.name}": (violation.rule, violation.blame.value) for violation in VIOLATIONS}
SEVERE = {"error", "critical"}


@pytest.fixture(scope="module")
def expected():
    return transcript.expected()


def violation_of(name):
    return re.sub(r"-\d+\.\d+\.\d+$", "", name)


@pytest.mark.parametrize("name", transcript.names())
def test_a_transcript_says_what_it_always_did(name, expected):
    assert transcript.said(transcript.read(name)) == expected[name]


@pytest.mark.parametrize("name", [name for name in transcript.names() if name.startswith("violation-")])
def test_the_violation_of_a_transcript_is_found(name, expected):
    rule, blame = RULE_OF[violation_of(name)]
    assert (rule, blame) in {(found, blames) for found, _, blames, _ in expected[name]}


@pytest.mark.parametrize("name", [name for name in transcript.names() if name.startswith("lawful-")])
def test_nobody_is_accused_of_lawful_chaos(name, expected):
    assert not [found for found in expected[name] if found[1] in SEVERE]


@pytest.mark.parametrize("name", [name for name in transcript.names() if name.startswith("lawful-")])
def test_of_lawful_chaos_no_thin_margin_and_no_initial_thrash_is_told(name, expected):
    assert not [found for found in expected[name] if found[0] in {"T-01", "R-12"}]


def test_every_violation_kind_of_group_and_release_has_a_transcript():
    versions = {name.rpartition("-")[2] for name in transcript.names()}
    assert {version.rpartition(".")[0] for version in versions} == set(RELEASES)
    assert {violation_of(name) for name in transcript.names() if name.startswith("violation-")} == set(RULE_OF)
    lawful = {name for name in transcript.names() if name.startswith("lawful-")}
    assert lawful >= {f"lawful-{make.name}-{version}" for version in versions for make in MAKES}
    assert any(name.startswith(f"lawful-{NEW_PROTOCOL.name}-") for name in lawful)


@pytest.mark.parametrize("name", [name for name in transcript.names() if name.startswith(f"lawful-{NEW_PROTOCOL.name}-")])
def test_of_a_group_of_the_new_protocol_the_model_says_that_it_does_not_know_it(name, expected):
    model = Coordinator(topic="golden", partition=0, settings=transcript.SETTINGS)
    for record in transcript.read(name):
        model.receive(record)
    [group] = [group.content for group in model.changed_groups() if group.group == NEW_PROTOCOL.name]
    assert (group["group_type"], group["state"], group["members"]) == ("consumer", "Unknown", [])
    assert "not modelled" in group["learning"]
    assert expected[name] == []


def test_transcripts_stay_small():
    assert sum(path.stat().st_size for path in transcript.FOLDER.glob(f"*{transcript.SUFFIX}")) < 10_000_000


@pytest.mark.parametrize("name", transcript.names()[::8])
def test_a_restored_model_goes_on_where_the_other_stopped(name):
    """At any record a model may be put into a snapshot and taken out again elsewhere, and nobody will notice."""
    records = transcript.read(name)
    whole = Coordinator(topic="golden", partition=0, settings=transcript.SETTINGS)
    pieces = Coordinator(topic="golden", partition=0, settings=transcript.SETTINGS)
    for number, record in enumerate(records):
        assert pieces.receive(record) == whole.receive(record)
        if number % 7 == 0:
            pieces = Coordinator.restore(pieces.snapshot(), settings=transcript.SETTINGS)

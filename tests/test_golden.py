"""The golden transcripts, replayed: what the model says of real traffic, lawful and not, without a broker."""

from __future__ import annotations

import re

import pytest

from coordinator_model.coordinator import Coordinator
from coordinator_model.finding import Blame, Status
from coordinator_model.groups.classic.data import CLASSIC
from coordinator_model.wording import iso_utc
from tests.golden import transcript
from tests.real.lab.fleet import MAKES, NEW_PROTOCOL
from tests.real.lab.laboratory import ALL_VIOLATIONS
from tests.real.lab.lives import LIVES
from tests.real.lab.releases import RELEASES

RULE_OF = {f"violation-{violation.name}": (violation.rule, violation.blame.value) for violation in ALL_VIOLATIONS}
RULE_OF["violation-never-assigned"] = (
    "A-14",
    Blame.CLIENT.value,
)  # of tests/real/test_never_assigned.py: the laboratory waits less long
SEVERE = {"error", "critical"}


@pytest.fixture(scope="module")
def expected():
    return transcript.expected()


def violation_of(name):
    return re.sub(r"-\d+\.\d+\.\d+$", "", name)


@pytest.mark.parametrize("name", transcript.names())
def test_a_transcript_says_what_it_always_did(name, expected):
    assert transcript.said(name) == expected[name]


@pytest.mark.parametrize("name", transcript.names())
def test_what_happens_in_a_transcript_is_told_as_it_always_was(name):
    events = transcript.replayed(name).events
    assert transcript.told(events) == transcript.expected_events(name)
    ids = [event.id for event in events]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("name", transcript.names())
def test_each_rebalance_that_began_is_over_once_before_the_next_begins(name):
    kinds = [event.kind for event in transcript.replayed(name).events]
    borders = [kind for kind in kinds if kind in {"rebalance_began", "rebalance_finished"}]
    assert borders[::2] == ["rebalance_began"] * len(borders[::2])
    assert borders[1::2] == ["rebalance_finished"] * len(borders[1::2])


@pytest.mark.parametrize("name", [name for name in transcript.names() if name.startswith("violation-")])
def test_the_violation_of_a_transcript_is_found(name, expected):
    rule, blame = RULE_OF[violation_of(name)]
    assert (rule, blame) in {(found, blames) for found, _, blames, _ in expected[name]}


@pytest.mark.parametrize("name", [name for name in transcript.names() if name.startswith("lawful-")])
def test_nobody_is_accused_of_lawful_chaos(name, expected):
    assert not [found for found in expected[name] if found[1] in SEVERE and found[2] != Blame.CONFIG]


def test_a_real_streams_application_is_told_which_source_topic_is_missing():
    """Its members give up every ten seconds and start again under other ids."""
    model, newest = Coordinator(topic="mirror", partition=0, settings=transcript.SETTINGS), {}
    for record in transcript.read("lawful-streams-source-missing-4.3.1"):
        newest |= {finding.id: finding for finding in model.receive(record)}
    (finding,) = newest.values()
    assert (finding.rule, finding.blame, finding.status) == ("R-19", Blame.CONFIG, Status.RESOLVED)
    assert "a source topic does not exist: “Source topics late are missing.”" in finding.summary


@pytest.mark.parametrize("life", [life for life in LIVES if life not in {"connect", "migration-refused"}])
def test_the_state_of_a_group_with_epochs_is_dated_by_what_showed_it(life):
    """The record that changed it, or the end of a session since the record before."""
    model = Coordinator(topic="mirror", partition=0, settings=transcript.SETTINGS)
    before, before_us, seen = None, 0, 0
    for record in transcript.read(f"lawful-{life}-4.3.1"):
        model.receive(record)
        for group in (view.content for view in model.changed_groups()):
            if group is None or group["group_type"] == CLASSIC:
                continue
            now = (group["state"], group["state_since"])
            if before is not None and now != before:
                assert now[0] != before[0]
                assert iso_utc(before_us) <= now[1] <= iso_utc(record.at_us)
            before, seen = now, seen + 1
        before_us = record.at_us
    assert seen


@pytest.mark.parametrize("name", [name for name in transcript.names() if name.startswith("lawful-")])
def test_of_lawful_chaos_no_thin_margin_and_no_initial_thrash_is_told(name, expected):
    assert not [found for found in expected[name] if found[0] in {"T-01", "R-12"}]


def test_every_violation_kind_of_group_and_release_has_a_transcript():
    versions = {name.rpartition("-")[2] for name in transcript.names()}
    assert {version.rpartition(".")[0] for version in versions} == set(RELEASES)
    assert {violation_of(name) for name in transcript.names() if name.startswith("violation-")} == set(RULE_OF)
    lawful = {name for name in transcript.names() if name.startswith("lawful-")}
    assert lawful >= {f"lawful-{make.name}-{version}" for version in versions for make in MAKES}
    for life in (NEW_PROTOCOL.name, *LIVES):
        assert any(name.startswith(f"lawful-{life}-") for name in lawful)


@pytest.mark.parametrize("name", [name for name in transcript.names() if name.startswith(f"lawful-{NEW_PROTOCOL.name}-")])
def test_a_group_of_the_new_protocol_is_followed_to_its_end(name):
    model = Coordinator(topic="golden", partition=0, settings=transcript.SETTINGS)
    for record in transcript.read(name):
        model.receive(record)
    [group] = [group.content for group in model.changed_groups() if group.group == NEW_PROTOCOL.name]
    assert (group["group_type"], group["state"], group["generation"], group["members"]) == ("consumer", "Empty", 18, [])


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
        assert pieces.drain_events() == whole.drain_events()
        if number % 7 == 0:
            pieces = Coordinator.restore(pieces.snapshot(), settings=transcript.SETTINGS)

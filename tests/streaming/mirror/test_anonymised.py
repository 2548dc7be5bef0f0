"""Anonymised records: not a name is left, and the model finds what it found."""

from __future__ import annotations

import io
import json
import lzma
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import astuple
from typer.testing import CliRunner

from coordinator_model.coordinator import Coordinator
from coordinator_model.finding import Finding
from coordinator_model.wire.layouts import LAYOUTS
from coordinator_model.wire.record import NO_END, Kind, MirrorRecord, expired
from coordinator_model.wire.recording import read_recording
from streaming import cli
from streaming.mirror import anonymised
from streaming.mirror.anonymised import Anonymiser
from streaming.mirror.captures import captured
from streaming.mirror.pcap.capture_reader import CaptureReader, in_order
from streaming.mirror.pcap.files import opened
from tests.coordinator_model.classic import settled
from tests.coordinator_model.conversation import Conversation
from tests.coordinator_model.groups.classic.old_clients import MISLABELLED, life_with
from tests.golden import transcript
from tests.samples import sampled

WORDS_OF_THE_PROTOCOL = {"connect", "cooperative", "share", "streams"}
"""Names of groups that are parts of the names of protocol types, assignors and features."""


def without_names(records: list[MirrorRecord]) -> tuple[list[MirrorRecord], dict[str, str]]:
    anonymiser = Anonymiser(b"secret")
    return [anonymiser.record(record) for record in records], anonymiser.names()


def read_traces(folder: Path) -> list[MirrorRecord]:
    found: list[MirrorRecord] = []
    reader = CaptureReader(found.append)
    traces = [io.BytesIO(lzma.decompress(path.read_bytes())) for path in sorted(folder.iterdir())]
    reader.read(in_order([captured(opened(trace), lambda _: None) for trace in traces]))
    reader.finish()
    return [record._replace(partition=0, offset=offset) for offset, record in enumerate(found)]


TRACED = Path(__file__).parent / "envoy_traces"
CAPTURES: dict[str, Callable[[], list[MirrorRecord]]] = {
    **{name: partial(transcript.read, name) for name in transcript.names()},
    **{f"subscription {name}": partial(life_with, raw) for name, raw in MISLABELLED.items()},
    **{f"trace {folder.name}": partial(read_traces, folder) for folder in sorted(TRACED.iterdir())},
}


def findings_of(records: list[MirrorRecord]) -> list[Finding]:
    model = Coordinator(topic="golden", partition=0, settings=transcript.SETTINGS)
    return [finding for record in records for finding in model.receive(record)]


def facts(finding: Finding) -> tuple[Any, ...]:
    """What a finding says without its names and texts, which hold names, and without its id, which is made of names."""
    times = (finding.opened_at_us, finding.updated_at_us, finding.resolved_at_us, finding.count)
    frames = tuple((frame.partition, frame.offset, frame.exchange, frame.at_us) for frame in finding.evidence)
    kind = (finding.rule, finding.severity, finding.certainty, finding.blame, finding.status, finding.group_type)
    return (*kind, finding.incarnation, finding.generation or 0, *times, finding.client_software, finding.action, frames)


def named(finding: Finding, anonymiser: Anonymiser) -> tuple[str | None, ...]:
    member_id = finding.member_id and anonymiser._member_id(finding.member_id)
    client = (anonymiser._name("client", finding.instance_id), anonymiser._name("client", finding.client_id))
    return (anonymiser._name("group", finding.group), member_id, *client)


@pytest.mark.parametrize("name", sampled(CAPTURES, list(CAPTURES)[::12]))
def test_the_model_finds_the_same_in_each_capture_and_of_the_same(name):
    anonymiser, records = Anonymiser(b"secret"), CAPTURES[name]()
    found = [(repr(facts(one)), named(one, anonymiser)) for one in findings_of(records)]
    changed = findings_of([anonymiser.record(record) for record in records])
    assert sorted((repr(facts(one)), (one.group, one.member_id, one.instance_id, one.client_id)) for one in changed) == sorted(
        found
    )


@pytest.mark.parametrize("name", sampled(transcript.names(), transcript.names()[::12]))
def test_the_same_happens_and_no_name_is_left(name):
    records = transcript.read(name)
    changed, names = without_names(records)
    happened = [(event.kind, event.at_us, event.generation) for event in transcript.events_of(records)]
    assert [(event.kind, event.at_us, event.generation) for event in transcript.events_of(changed)] == happened
    frames = b"".join(record.frame for record in changed)
    real = {name for name in names.values() if len(name) > 3} - WORDS_OF_THE_PROTOCOL
    assert {name for name in real if name.encode() in frames} == set()
    envelopes = {text for record in changed for text in astuple(record) if isinstance(text, str)}
    assert {text for text in envelopes if any(name in text for name in real)} == set()


def test_it_is_said_of_each_text_in_a_message_whether_it_is_a_name():
    """A field that a new version of a message brings would otherwise pass as it is."""
    known = {
        *anonymised._NAMES, *anonymised._MEMBERS, *anonymised._TEXTS, *anonymised._URLS, *anonymised._SECRET, *anonymised._KEPT,
        "allocation", "assignment", "member_assignment", "member_metadata", "user_data", "name",
        *(field for _, field in anonymised._OF_STRUCTS),
    }  # fmt: skip
    fields = {
        field.name
        for layout in LAYOUTS.values()
        for fields in layout.structs.values()
        for field in fields
        if field.type.removeprefix("[]") in {"string", "bytes"}
    }
    assert fields - known == set()
    assert known - fields == set(), "fields that no message has"


def test_ids_keep_what_is_random_and_the_pseudonym_of_their_client():
    anonymiser = Anonymiser(b"secret")
    uuid = "2013bb9c-82ea-4139-b27e-91d54325cbb1"
    assert anonymiser._name("client", "billing-3") == "client-1"
    ids = [f"billing-3-{uuid}", "FrnWyzQUS1iUVwbYyjz5vA", "", "made-by-hand"]
    assert [anonymiser._member_id(id_) for id_ in ids] == [f"client-1-{uuid}", "FrnWyzQUS1iUVwbYyjz5vA", "", "member-1"]


@pytest.mark.parametrize(
    ("address", "left"),
    [
        ("kafka-3.example.com:9092", "host-1:9092"),
        ("192.0.2.7", "10.0.0.1"),
        ("/192.0.2.7", "/10.0.0.1"),
        ("192.0.2.7:9092", "10.0.0.1:9092"),
        ("[2001:db8::1]:9092", "10.0.0.1:9092"),
        ("2001:db8::1", "10.0.0.1"),
        ("3", "3"),
        ("", ""),
    ],
)
def test_hosts_and_addresses_are_replaced_and_ports_and_node_ids_stay(address, left):
    assert Anonymiser(b"secret")._address(address) == left


@pytest.mark.parametrize(
    ("words", "left"),
    [
        ("consumer poll timeout has expired.", "consumer poll timeout has expired."),
        ("cached metadata has changed from (payments-7) to ()", "cached metadata has changed from "),
        ("Topic orders does not exist", "Topic topic-1 does not exist"),
        ("host db-3.example.com is away", "host … is away"),
        ("rebalance failed due to UNKNOWN_MEMBER_ID", "rebalance failed due to UNKNOWN_MEMBER_ID"),
    ],
)
def test_texts_keep_plain_words_and_lose_what_may_be_a_name(words, left):
    anonymiser = Anonymiser(b"secret")
    assert anonymiser._name("topic", "orders") == "topic-1"
    assert anonymiser._words(words) == left


def test_user_data_is_hidden_and_still_the_same_for_the_same():
    anonymiser = Anonymiser(b"secret")
    data = b"\x00\x00\x00\x01\x00\x06orders" * 9
    hidden = anonymiser._hidden(data)
    assert (len(hidden), hidden) == (len(data), anonymiser._hidden(data))
    assert b"orders" not in hidden
    assert hidden != Anonymiser(b"another")._hidden(data)


def test_the_member_of_a_session_that_ended_is_the_one_of_the_frames():
    anonymiser = Anonymiser(b"secret")
    member = "billing-1-6e3d71d4-9d1b-4129-9a84-948d2626d605"
    record = anonymiser.record(expired(1, "billing", member, cluster="c"))
    assert record.frame.decode() == anonymiser._member_id(member)
    assert b"billing" not in record.frame


def test_a_frame_that_cannot_be_read_is_emptied_and_counts_as_cut():
    talk = Conversation()
    settled(talk)
    record = next(record for record in talk.records if record.frame)
    changed = Anonymiser(b"secret").record(record._replace(frame=b"billing-secrets"))
    assert (changed.frame, changed.cut_bytes) == (b"", 15)


def test_the_command_writes_a_recording_and_a_table_of_names(tmp_path):
    out, names = tmp_path / "given.records", tmp_path / "names.json"
    given = transcript.FOLDER / f"lawful-cooperative-4.1.2{transcript.SUFFIX}"
    done = CliRunner().invoke(cli.app, ["anonymise", str(given), str(out), "--names", str(names)])
    assert done.exit_code == 0, done.output
    with out.open("rb") as stream:
        records = list(read_recording(stream))
    assert len(records) == len(transcript.read("lawful-cooperative-4.1.2"))
    assert json.loads(names.read_text(encoding="utf-8"))["group-1"] == "cooperative"
    again = CliRunner().invoke(cli.app, ["anonymise", str(given), str(out)])
    assert (again.exit_code, again.stderr) == (2, f"error: {out} exists already: choose another name, or delete it\n")


def test_what_is_no_capture_is_refused_and_leaves_no_file(tmp_path):
    given, out = tmp_path / "notes.txt", tmp_path / "out.records"
    given.write_text("no capture at all, and long enough to be looked at")
    done = CliRunner().invoke(cli.app, ["anonymise", str(given), str(out)])
    assert (done.exit_code, out.exists()) == (2, False)
    assert done.stderr.startswith(f"error: {given} is neither a packet capture")


def test_the_address_of_another_listener_in_an_opening_has_the_pseudonym_of_that_broker():
    at_us, there, here = 1_700_000_000_000_000, "kafka-1:9093", "kafka-1:9092"
    first = MirrorRecord(0, 0, "g", Kind.OPEN, at_us, "c", there, "c-1", frame=NO_END)
    other = MirrorRecord(0, 1, "g", Kind.OPEN, at_us, "c", here, "c-2", frame=NO_END + b" " + there.encode())
    (made_first, made_other), _ = without_names([first, other])
    assert made_first.frame == NO_END
    assert made_other.frame == NO_END + b" " + made_first.broker.encode()
    assert b"kafka-1" not in made_other.frame

"""``rebalance-monitor replay``: what it prints and how it ends, for captures and recordings, whole and not."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql.streaming.state import GroupState
from pyspark.sql.types import StructType
from typer.testing import CliRunner

from coordinator_model.coordinator import Coordinator
from coordinator_model.settings import Settings
from coordinator_model.wire.record import Kind, Loss, MirrorRecord, pack_envelope, pack_loss
from coordinator_model.wire.recording import MAGIC, pack_record
from streaming.cli import app
from streaming.engine.engine import Engine
from streaming.engine.results import Outputs
from streaming.mirror import DEFAULT_TOPIC
from streaming.mirror.pcap.capture_reader import CaptureReader
from streaming.mirror.pcap.files import opened, packets
from streaming.mirror.record_file import RecordFile
from streaming.published.finding_json import microseconds
from streaming.spark.worker import INPUT_COLUMNS, Replay
from tests.golden import transcript
from tests.processes import started
from tests.streaming.mirror.captured_consumer import life
from tests.streaming.mirror.wires import CLIENT, Connection, Segment, pcap, pcapng

COMMAND = [sys.executable, "-m", "streaming.cli", "replay"]


def invoke(*arguments: object, stdin: bytes | None = None) -> Any:
    return CliRunner().invoke(app, ["replay", *map(str, arguments)], input=stdin, catch_exceptions=False)


def events(*arguments: object) -> list[dict[str, Any]]:
    result = invoke(*arguments, "--format", "json")
    assert result.exit_code in (0, 1), result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.fixture
def segments() -> list[Segment]:
    """Two healthy groups and one with a violation, as one capture has them."""
    made: list[Segment] = []
    life(made, "healthy", client=("10.0.0.8", 1))
    life(made, "violation", violation=True)
    life(made, "other", client=("10.0.0.9", 1))
    return sorted(made)


@pytest.fixture
def capture(tmp_path, segments):
    path = tmp_path / "capture.pcap"
    path.write_bytes(pcap(segments))
    return path


@pytest.fixture
def healthy(tmp_path):
    made: list[Segment] = []
    life(made, "healthy")
    path = tmp_path / "healthy.pcapng"
    path.write_bytes(pcapng(made))
    return path


def captured(content: bytes) -> list[MirrorRecord]:
    """The records of a capture, numbered as a topic of one partition would."""
    found: list[MirrorRecord] = []
    reader = CaptureReader(found.append)
    reader.read(packets(opened(io.BytesIO(content)), pytest.fail))
    reader.finish()
    return [record._replace(partition=0, offset=offset) for offset, record in enumerate(found)]


def recording(records: list[MirrorRecord]) -> bytes:
    return MAGIC + b"".join(map(pack_record, records))


class TestFindings:
    def test_healthy_traffic_is_told_and_nothing_found(self, healthy):
        result = invoke(healthy)
        assert (result.exit_code, result.stdout.splitlines()[-1]) == (0, "no findings")
        assert "  Empty, generation 1, 0 members, coordinator 10.0.0.1:9092\n" in result.stdout
        assert "Generation 1, 1 member, after 3.0 s; joined app-1-healthy" in result.stdout
        assert "18 group frames of 1 group " in result.stderr
        assert "10.0.0.1:9092 (1)" in result.stderr

    def test_a_violation_is_found_and_told_with_its_evidence(self, capture):
        result = invoke(capture)
        assert result.exit_code == 1
        assert "P-08" in result.stdout
        assert "evidence" in result.stdout
        assert f"on {CLIENT[0]}:{CLIENT[1]}-10.0.0.1:9092-" in result.stdout
        assert "\x1b" not in result.stdout, "colours are for terminals"

    def test_frames_that_no_rule_needs_are_counted_by_their_api(self, tmp_path):
        records = [
            MirrorRecord(
                0, offset, "g", kind, 1_700_000_000_000_000 + offset, "c", "b", "c-1", offset // 2, 16, 4, offset, frame=b""
            )
            for offset, kind in enumerate((Kind.REQUEST, Kind.RESPONSE, Kind.REQUEST, Kind.TICK))
        ]
        (tmp_path / "some.records").write_bytes(recording(records))
        assert "also counted: ListGroups frames not modelled: 3\n" in invoke(tmp_path / "some.records").stderr

    def test_the_timeline_of_each_group_stands_together_and_in_order(self, capture):
        blocks = invoke(capture).stdout.split("\n\n")
        stories = {block.splitlines()[0]: block.splitlines()[3:] for block in blocks[:3]}
        assert list(stories) == ["healthy", "other", "violation"]
        for story in stories.values():
            times = [line.split()[0] for line in story]
            assert times == sorted(times)
            assert any(line.endswith(" left") for line in story)

    def test_json_is_one_event_a_line_as_published(self, capture):
        found = events(capture)
        assert {event["rule"] for event in found if event["severity"] == "critical"} == {"P-08"}
        assert {"id", "status", "evidence", "opened_at", "summary", "client_software"} <= found[0].keys()
        assert events(capture) == found, "the same once more, ids and all"

    def test_what_happens_in_groups_stands_among_the_findings_if_asked_for(self, capture):
        lines = events(capture, "--events")
        assert [line for line in lines if "rule" in line] == events(capture)
        happened = [line for line in lines if "rule" not in line]
        assert {line["group"] for line in happened} == {"healthy", "violation", "other"}
        assert [line["kind"] for line in happened if line["group"] == "healthy"] == [
            "rebalance_began",
            "member_joined",
            "phase_ended",
            "member_synced",
            "phase_ended",
            "member_served",
            "rebalance_finished",
            "member_left",
            "group_emptied",
        ]
        assert events(capture, "--events", "--group", "other") == [line for line in lines if line["group"] == "other"]

    def test_only_the_groups_asked_for(self, capture):
        assert {event["group"] for event in events(capture, "--group", "healthy")} == set()
        result = invoke(capture, "--group", "healthy")
        assert result.exit_code == 0
        assert result.stdout.startswith("healthy\n")
        assert "violation" not in result.stdout

    def test_the_model_is_set_by_the_monitors_configuration(self, capture, tmp_path):
        config = tmp_path / "monitor.toml"
        config.write_text('[kafka]\nbootstrap_servers = "x:1"\n[model]\nreorder_window_ms = 100\n')
        opened_at = [event["opened_at"] for event in events(capture) if event["rule"] == "P-08"]
        sooner = [event["opened_at"] for event in events(capture, "--config", config) if event["rule"] == "P-08"]
        assert sooner[0] <= opened_at[0]
        result = invoke(capture, "--config", tmp_path / "none.toml")
        assert result.exit_code == 2
        assert "none.toml" in result.stderr

    def test_brokers_may_be_named_by_their_ports(self, capture):
        assert invoke(capture, "--port", 9092).exit_code == 1
        result = invoke(capture, "--port", 9094)
        assert result.exit_code == 2
        assert "port 9094" in result.stderr

    def test_a_finding_of_the_last_moment_is_not_held_back_for_ever(self, tmp_path, segments):
        violation = next(each for each in segments if b"\0\0\0\x09\x10app-1-violation" in each.payload)
        path = tmp_path / "cut.pcap"
        path.write_bytes(pcap(each for each in segments if each.at_us <= violation.at_us + 1_000))
        assert "P-08" in invoke(path).stdout


class TestTimesWithoutPackets:
    """A client that was not looked at was not silent."""

    @pytest.fixture
    def parts(self) -> tuple[list[Segment], list[Segment]]:
        """A member that goes on beating when the first part ends, and another group ten minutes later."""
        before: list[Segment] = []
        life(before, "before")
        after: list[Segment] = []
        life(after, "after", client=("10.0.0.9", 41_000))
        return before[:-7], [segment._replace(at_us=segment.at_us + 600_000_000) for segment in after]

    @pytest.mark.parametrize("in_one_file", [True, False])
    def test_V_04_a_long_pause_is_said_and_nobody_is_accused_of_it(self, parts, tmp_path, in_one_file):
        files = [[*parts[0], *parts[1]]] if in_one_file else parts
        paths = [tmp_path / f"{number}.pcap" for number in range(len(files))]
        for path, content in zip(paths, files, strict=True):
            path.write_bytes(pcap(content))
        (found,) = events(*paths)
        assert (found["rule"], found["blame"]) == ("V-04", "capture")
        assert "no record, not even a tick, for 589." in found["summary"]
        assert "whether the next file began later" in found["action"]
        told = invoke(*paths)
        assert "nothing was captured for 589 s" in told.stderr

    def test_V_04_of_two_captures_the_one_that_ends_first_is_named_and_its_members_are_not_silent(self, parts, tmp_path):
        longer: list[Segment] = []
        life(longer, "longer", client=("10.0.0.9", 41_000), beats=40)
        paths = [tmp_path / "shorter.pcap", tmp_path / "longer.pcap"]
        for path, content in zip(paths, (parts[0], longer), strict=True):
            path.write_bytes(pcap(content))
        found, over = events(*paths)
        assert (over["id"], over["status"]) == (found["id"], "resolved")
        assert (found["rule"], found["blame"]) == ("V-04", "capture")
        assert re.fullmatch(
            r"The capture lost sight of what one of several captures showed: it ends at \d\d:\d\d:\d\d, and others go on: all 2 groups of "
            r"partition 0 back to learning\.",
            found["summary"],
        )
        assert found["action"].startswith("Read captures of the same time")

    def test_a_capture_in_parts_beside_another_one_is_whole(self, tmp_path):
        one: list[Segment] = []
        life(one, "one", beats=10)
        other: list[Segment] = []
        life(other, "other", client=("10.0.0.9", 41_000), beats=11)
        paths = [tmp_path / f"{number}.pcap" for number in range(3)]
        for path, content in zip(paths, (one[:-20], one[-20:], other), strict=True):
            path.write_bytes(pcap(content))
        assert events(*paths) == []

    def test_fifteen_days_with_few_packets_are_read_in_a_moment(self, tmp_path, segments):
        path = tmp_path / "long.pcap"
        days = [segment._replace(at_us=segment.at_us + day * 86_400_000_000) for day in range(15) for segment in segments]
        path.write_bytes(pcap(days))
        records = captured(path.read_bytes())
        assert len([record for record in records if record.kind is Kind.TICK]) < 15 * 20


class TestSameRecordsSameFindings:
    def test_a_recording_gives_what_the_capture_gave(self, capture, tmp_path):
        path = tmp_path / "traffic.records"
        path.write_bytes(recording(captured(capture.read_bytes())))
        assert events(path) == events(capture)

    @pytest.mark.parametrize("compress", [gzip.compress, lzma.compress], ids=["gzip", "xz"])
    def test_compressed_or_not(self, capture, tmp_path, compress):
        for content in (capture.read_bytes(), recording(captured(capture.read_bytes()))):
            path = tmp_path / "compressed"
            path.write_bytes(compress(content))
            assert events(path) == events(capture)

    def test_one_partition_or_many(self, capture, tmp_path):
        path = tmp_path / "spread.records"
        path.write_bytes(recording(_spread(captured(capture.read_bytes()), 3)))
        facts = [{**event, "evidence": None} for event in events(path)]
        assert facts == [{**event, "evidence": None} for event in events(capture)]

    def test_timelines_of_a_recording_that_has_one_partition_after_the_other(self, tmp_path):
        made: list[Segment] = []
        for number in range(3):
            life(made, f"healthy-{number}", client=(f"10.0.0.{number + 1}", 1))
        path = tmp_path / "all.records"
        path.write_bytes(recording(captured(pcap(sorted(made)))))
        spread = sorted(_spread(captured(pcap(sorted(made))), 3), key=lambda record: record.partition)
        assert len({record.partition for record in spread if record.group}) == 3
        (tmp_path / "spread.records").write_bytes(recording(spread))
        lines = [told_lines(each) for each in (path, tmp_path / "spread.records")]
        assert len(lines[0]) >= 6
        assert lines[0] == lines[1]

    def test_what_sparks_worker_finds_in_the_same_rows(self, capture, tmp_path):
        records = captured(capture.read_bytes())
        tick = next(record for record in records if record.kind is Kind.TICK)
        end_us = records[-1].at_us
        for _ in range(3):  # as a tap goes on to tick
            end_us += 1_000_000
            records.append(tick._replace(at_us=end_us, offset=len(records)))
        loss = pack_loss(Loss(3, 300, end_us, end_us))
        records.append(tick._replace(at_us=end_us, offset=len(records) + 5, kind=Kind.GAP, frame=loss))  # and five are missing
        path = tmp_path / "traffic.records"
        path.write_bytes(recording(records))
        said = _spark(records)
        assert events(path) == said["findings"]
        assert [line for line in events(path, "--events") if "kind" in line] == said["events"]

    @pytest.mark.parametrize("name", [name for name in transcript.names() if name.startswith("violation-")][::5])
    def test_the_events_of_a_golden_transcript_are_those_of_sparks_worker(self, name, tmp_path):
        records = transcript.read(name)
        path = tmp_path / "golden.records"
        path.write_bytes(recording(records))
        replayed = [line for line in events(path, "--events") if "kind" in line]
        # At the end of a file replay waits no longer for late frames, and goes that far beyond the last record.
        until_then = [line for line in replayed if microseconds(line["at"]) <= records[-1].at_us]
        assert until_then == _spark(records).get("events", [])

    def test_a_record_that_cannot_be_read_is_a_finding_and_not_the_end(self, capture, tmp_path):
        records = captured(capture.read_bytes())
        path = tmp_path / "traffic.records"
        with path.open("wb") as stream:
            target = RecordFile(stream)
            for offset, record in enumerate(records):
                envelope = pack_envelope(record) if offset != 7 else b"nonsense"
                key = None if record.group is None else record.group.encode()
                target.write(partition=0, offset=offset, key=key, value=record.frame, envelope=envelope)
        found = events(path)
        assert {"V-02", "P-08"} <= {event["rule"] for event in found}

    def test_a_record_that_the_model_chokes_on_is_one_too(self, capture, monkeypatch):
        receive = Coordinator.receive

        def choke(model, record):
            if record.offset == 9:
                raise RuntimeError("choked")
            return receive(model, record)

        monkeypatch.setattr(Coordinator, "receive", choke)
        found = events(capture)
        assert "choked" in next(event["summary"] for event in found if event["rule"] == "V-02")

    def test_records_that_never_were_in_a_topic_are_numbered(self, capture, tmp_path):
        path = tmp_path / "traffic.records"
        path.write_bytes(recording([record._replace(partition=-1, offset=-1) for record in captured(capture.read_bytes())]))
        assert {event["rule"] for event in events(path)} == {event["rule"] for event in events(capture)}


def told_lines(path: Path) -> list[str]:
    """What the text says of groups, in an order of its own: groups of other partitions may come before or after."""
    printed = CliRunner().invoke(app, ["replay", str(path)]).stdout
    return sorted(line for line in printed.splitlines() if "healthy-" in line)


def _spread(records: list[MirrorRecord], partitions: int) -> list[MirrorRecord]:
    """As a topic would have them: each group in one partition, ticks in all."""
    out: list[MirrorRecord] = []
    offsets = [0] * partitions
    for record in records:
        for partition in range(partitions) if record.group is None else [sum(record.group.encode()) % partitions]:
            out.append(record._replace(partition=partition, offset=offsets[partition]))
            offsets[partition] += 1
    return out


def _spark(records: list[MirrorRecord]) -> dict[str, list[dict[str, Any]]]:
    outputs = Outputs("findings", "groups", "events", "status", "dead")
    worker = Replay(topic=DEFAULT_TOPIC, outputs=outputs, model=Coordinator, settings=Settings(), run_id="run")
    rows = [
        (0, record.offset, record.at_us // 1000, record.group and record.group.encode(), record.frame, pack_envelope(record))
        for record in records
    ]
    state = GroupState(
        optionalValue=None,
        batchProcessingTimeMs=0,
        eventTimeWatermarkMs=0,
        timeoutConf="NoTimeout",
        hasTimedOut=False,
        watermarkPresent=False,
        defined=False,
        updated=False,
        removed=False,
        timeoutTimestamp=-1,
        keyAsUnsafe=b"",
        valueSchema=StructType(),
    )
    (out,) = worker((0,), iter([pd.DataFrame(rows, columns=list(INPUT_COLUMNS))]), state)
    said: dict[str, list[dict[str, Any]]] = {}
    for topic, value in zip(out["topic"], out["value"], strict=True):
        said.setdefault(topic, []).append(json.loads(value))
    return said


class TestBadInput:
    @pytest.mark.parametrize(
        ("content", "sentence"),
        [
            (b"", "is empty"),
            (
                b"GIF89a and so on",
                "is neither a packet capture (pcap or pcapng), nor a trace of Envoy, nor a broker's log, nor a file of mirror records",
            ),
            (pcap([])[:10], "ends within its file header"),
            (pcap([]), "holds no packets"),
            (MAGIC, "holds no records"),
            (MAGIC[:-1] + b"2\n", "is neither"),
            (b"\x1f\x8b\x08 no gzip at all", "compressed data"),
            (gzip.compress(b"text", mtime=0), "is neither"),
            (gzip.compress(pcap([]), mtime=0)[:20], "compressed data"),
        ],
    )
    def test_nothing_to_replay_is_one_sentence_and_status_2(self, tmp_path, content, sentence):
        path = tmp_path / "odd"
        path.write_bytes(content)
        result = invoke(path)
        assert result.exit_code == 2
        assert result.stdout == ""
        assert sentence in result.stderr
        assert str(path) in result.stderr
        assert len(result.stderr.splitlines()) == 1

    @pytest.mark.parametrize("options", [(), ("--port", "443")], ids=["any port", "its port"])
    def test_a_capture_of_something_else_is_one_sentence_and_status_2(self, tmp_path, options):
        made: list[Segment] = []
        talk = Connection(made, broker=("10.0.0.2", 443)).open()
        talk.client(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"r" * 500)
        talk.broker(b"\x16\x03\x03\0\x7a" + b"s" * 120)
        path = tmp_path / "web.pcap"
        path.write_bytes(pcap(made))
        result = invoke(path, *options)
        assert result.exit_code == 2
        assert "none of them speaks Kafka; 1 of them use TLS" in result.stderr
        assert len(result.stderr.splitlines()) == 1

    def test_files_that_cannot_be_opened(self, tmp_path, capture):
        empty = tmp_path / "empty"
        empty.mkdir()
        for path, why in ((tmp_path / "none.pcap", "cannot be read: no such file"), (empty, "holds no file that is not empty")):
            result = invoke(capture, path)
            assert result.exit_code == 2
            assert f"{path} {why}" in result.stderr.replace("\n", "")

    def test_a_folder_stands_for_the_files_in_it_that_are_not_empty(self, tmp_path, segments):
        size = len(segments) // 3 + 1
        for number in range(3):  # parts of one capture
            (tmp_path / f"{number}.pcap").write_bytes(pcap(segments[number * size : (number + 1) * size]))
        (tmp_path / "just begun").touch()
        whole = tmp_path.with_suffix(".pcap")
        whole.write_bytes(pcap(segments))
        assert invoke(tmp_path, "--format", "json").stdout == invoke(whole, "--format", "json").stdout != ""

    def test_a_stray_file_in_a_folder_is_named_and_skipped(self, tmp_path, segments):
        folder = tmp_path / "captures"
        folder.mkdir()
        (folder / "a.pcap").write_bytes(pcap(segments))
        (folder / "README.md").write_text("what these are")
        (folder / "b.pcap.gz").write_bytes(gzip.compress(pcap(segments), mtime=0)[:7])
        result = invoke(folder)
        assert result.exit_code == 1
        told = result.stderr.replace("\n", "")
        assert "README.md is neither a capture, nor a log, nor a file of mirror records, and was skipped" in told
        assert "b.pcap.gz holds compressed data that is damaged" in told
        assert "it was skipped" in told
        assert result.stdout == invoke(folder / "a.pcap").stdout

    def test_a_folder_of_nothing_but_stray_files_is_one_sentence_and_status_2(self, tmp_path):
        (tmp_path / "README.md").write_text("what these are")
        result = invoke(tmp_path)
        assert result.exit_code == 2
        assert "holds neither a packet capture" in result.stderr.replace("\n", " ")

    @pytest.mark.parametrize(
        ("begins", "words"),
        [
            (b"\x28\xb5\x2f\xfd", "compressed with zstd"),
            (b"\x04\x22\x4d\x18", "compressed with lz4"),
            (b"PK\x03\x04", "a zip archive"),
        ],
    )
    def test_a_file_that_is_packed_in_another_way_is_named_with_the_remedy(self, tmp_path, begins, words):
        path = tmp_path / "odd.pcap"
        path.write_bytes(begins + b"\0" * 40)
        result = invoke(path)
        assert result.exit_code == 2
        assert f"is {words}, which is not read here: " in result.stderr.replace("\n", " ")

    def test_captures_and_recordings_do_not_mix(self, tmp_path, capture):
        path = tmp_path / "traffic.records"
        path.write_bytes(recording(captured(capture.read_bytes())))
        result = invoke(capture, path)
        assert result.exit_code == 2
        assert "one after the other" in result.stderr

    @pytest.mark.parametrize("write", [pcap, pcapng])
    def test_the_readable_part_of_a_cut_file_is_replayed_and_that_is_said(self, tmp_path, segments, write):
        path = tmp_path / "cut"
        path.write_bytes(write(segments)[:-7])
        result = invoke(path)
        assert result.exit_code == 2
        assert "P-08" in result.stdout
        assert f"{path} ends in the middle of a" in result.stderr
        assert "everything before it was replayed" in result.stderr

    def test_so_is_that_of_a_cut_or_damaged_recording(self, tmp_path, capture):
        whole = recording(captured(capture.read_bytes()))
        for content, why in (
            (whole[:-3], "ends in the middle of a record"),
            (whole + b"\xc1\xc1", "is damaged"),
            (whole + b"\x01", "is damaged"),
        ):
            path = tmp_path / "cut.records"
            path.write_bytes(content)
            result = invoke(path)
            assert result.exit_code == 2
            assert why in result.stderr

    def test_usage(self, capture):
        assert invoke().exit_code == 2
        assert invoke(capture, "--port", 0).exit_code == 2
        assert invoke(capture, "--format", "xml").exit_code == 2
        assert invoke(capture, "--events").exit_code == 2


class TestPipes:
    def test_a_capture_from_standard_input(self, capture, healthy):
        done = subprocess.run([*COMMAND, "-"], input=capture.read_bytes(), capture_output=True, timeout=120, check=False)
        assert done.returncode == 1
        assert b"P-08" in done.stdout
        done = subprocess.run([*COMMAND, "-"], input=healthy.read_bytes(), capture_output=True, timeout=120, check=False)
        assert done.returncode == 0

    def test_what_happens_is_told_while_the_capture_is_being_made(self, segments):
        content = pcap(segments)
        with started(
            [*COMMAND, "-", "--format", "json"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(content)
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["rule"], "the pipe is still open"
            process.stdin.close()
            assert process.wait(60) == 1

    def test_a_reader_that_has_seen_enough(self, capture):
        done = subprocess.run(
            f"{shlex.join(COMMAND)} --format json {capture} | head -c 1", shell=True, capture_output=True, timeout=120, check=False
        )
        assert done.stdout == b"{"
        assert b"Traceback" not in done.stderr
        assert b"error" not in done.stderr


def test_an_interruption_leaves_no_gap_in_the_numbers(healthy, monkeypatch):
    recorded, finish = Engine.recorded, CaptureReader.finish
    taken: list[int] = []
    goes_on: list[int] = []

    def interrupted(offline, record):
        if len(taken) == 10:
            raise KeyboardInterrupt
        taken.append(record.offset)
        recorded(offline, record)

    monkeypatch.setattr(Engine, "recorded", interrupted)
    monkeypatch.setattr(CaptureReader, "finish", lambda reader: goes_on.append(reader.next_offset) or finish(reader))
    result = invoke("--format", "json", healthy)
    assert goes_on == [taken[-1] + 1], "or the records of connections that end later would stand behind a gap of the mirror"
    assert "interrupted: the rest was not read" in result.stderr

"""``rebalance-monitor decode``: frames of a file as JSON lines."""

from __future__ import annotations

import base64
import gzip
import json

import pytest
import typer
from typer.testing import CliRunner

from coordinator_model import wire
from coordinator_model.wire.record import Kind, MirrorRecord
from coordinator_model.wire.recording import MAGIC, pack_record
from streaming.commands.decode import _show_on, decode
from tests.streaming.mirror.wires import Connection, Segment, pcap

APP = typer.Typer()
APP.command()(decode)


def record(frame: bytes, key: int, version: int, kind: Kind = Kind.REQUEST, group: str | None = "billing") -> MirrorRecord:
    return MirrorRecord(
        0, 1, group, kind, 1_763_719_200_123_456, "", "", "c-1", 3, key, version, 7, "c", "10.0.0.1", "", 0, 0, frame
    )


def subscription() -> bytes:
    return wire.encode_subscription(wire.ConsumerProtocolSubscription(topics=("orders",)))


def join(metadata: bytes, protocol_type: str = "consumer") -> MirrorRecord:
    protocol = wire.JoinGroupRequestProtocol(name="range", metadata=metadata)
    body = wire.JoinGroupRequest(group_id="billing", protocol_type=protocol_type, protocols=(protocol,))
    return record(wire.encode_request(body, api_version=5, correlation_id=7, client_id="billing-1"), 11, 5)


def heartbeat_answer(error: int) -> MirrorRecord:
    raw = wire.encode_response(wire.HeartbeatResponse(error_code=error, unknown_tags=((9, b"x"),)), api_version=4, correlation_id=8)
    return record(raw, 12, 4, Kind.RESPONSE)


def run(tmp_path, records, *options):
    file = tmp_path / "traffic.records"
    file.write_bytes(MAGIC + b"".join(map(pack_record, records)))
    return CliRunner().invoke(APP, [str(file), *options])


def lines(result) -> list[dict]:
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_a_frame_is_a_line_with_what_is_embedded_in_it(tmp_path):
    (line,) = lines(run(tmp_path, [join(subscription())]))
    assert line["at"] == "2025-11-21T10:00:00.123456Z"
    assert (line["kind"], line["api"], line["version"], line["client_id"]) == ("request", "JoinGroup", 5, "billing-1")
    assert line["groups"] == ["billing"]
    assert line["body"]["protocols"][0]["metadata"]["topics"] == ["orders"]


def test_a_response_that_does_not_say_its_protocol_type_has_its_requests(tmp_path):
    member = wire.JoinGroupResponseMember(member_id="m", metadata=subscription())
    raw = wire.encode_response(wire.JoinGroupResponse(members=(member,)), api_version=5, correlation_id=7)
    told = lines(run(tmp_path, [join(subscription()), record(raw, 11, 5, Kind.RESPONSE)]))
    assert told[1]["body"]["members"][0]["metadata"]["topics"] == ["orders"]


def test_embedded_bytes_of_another_type_or_none_stay_bytes_and_are_counted(tmp_path):
    result = run(tmp_path, [join(b"{}", "sr"), join(b"\0"), join(b"")])
    told = [line["body"]["protocols"][0]["metadata"] for line in lines(result)]
    assert told[0] == base64.b64encode(b"{}").decode()
    assert "runs past the end" in told[1]["unreadable"]
    assert told[2] == ""
    assert "1 embedded of another type; 1 embedded unreadable" in result.stderr


def test_error_codes_have_their_name(tmp_path):
    (line,) = lines(run(tmp_path, [heartbeat_answer(27)]))
    assert (line["body"]["error_code"], line["body"]["error"]) == (27, "REBALANCE_IN_PROGRESS")
    assert line["body"]["unknown_tags"] == {"9": "eA=="}


def test_filters(tmp_path):
    other = record(
        wire.encode_request(wire.HeartbeatRequest(group_id="other"), api_version=4, correlation_id=1), 12, 4, group="other"
    )
    traffic = [join(subscription()), heartbeat_answer(0), heartbeat_answer(25), other, record(b"\0", 12, 4)]
    traffic.append(record(b"", -1, -1, Kind.TICK, None))
    assert len(lines(run(tmp_path, traffic))) == 5
    assert [line["api"] for line in lines(run(tmp_path, traffic, "--api", "joingroup"))] == ["JoinGroup"]
    assert len(lines(run(tmp_path, traffic, "--api", "12"))) == 4
    assert len(lines(run(tmp_path, traffic, "--group", "other"))) == 1
    result = run(tmp_path, traffic, "--errors-only")
    wrong, unreadable = lines(result)
    assert wrong["body"]["error"] == "UNKNOWN_MEMBER_ID"
    assert unreadable["unreadable"] == "HeartbeatRequest v4: api_key at byte 0: runs past the end"
    assert "2 of 5 frames" in result.stderr
    assert "1 tick" in result.stderr


def test_errors_in_arrays_count(tmp_path):
    partition = wire.OffsetCommitResponsePartition(error_code=22)
    body = wire.OffsetCommitResponse(topics=(wire.OffsetCommitResponseTopic(partitions=(partition,)),))
    raw = wire.encode_response(body, api_version=8, correlation_id=1)
    assert len(lines(run(tmp_path, [record(raw, 8, 8, Kind.RESPONSE)], "--errors-only"))) == 1


def test_a_frame_that_was_cut_says_so(tmp_path):
    cut = join(subscription())
    (line,) = lines(run(tmp_path, [cut._replace(frame=cut.frame[:-4], cut_bytes=4)]))
    assert line["unreadable"].endswith("(4 bytes were not captured)")


def test_json_lines(tmp_path):
    frame = wire.encode_request(wire.HeartbeatRequest(group_id="billing"), api_version=4, correlation_id=5)
    file = tmp_path / "frames.jsonl"
    told = [
        {"request": True, "api_key": 12, "api_version": 4, "frame": text}
        for text in (frame.hex(), base64.b64encode(frame).decode())
    ]
    file.write_text("\n".join(map(json.dumps, told)) + "\n\n")
    assert [line["groups"] for line in lines(CliRunner().invoke(APP, [str(file)]))] == [["billing"]] * 2


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_packet_capture_is_decoded(tmp_path, pack):
    segments: list[Segment] = []
    line = Connection(segments).open()
    line.heartbeat(0)
    line.wait(2_000)
    line.heartbeat(1, error_code=27)
    file = tmp_path / "traffic.pcap"
    file.write_bytes(pack(pcap(segments)))
    result = CliRunner().invoke(APP, [str(file)])
    assert [(found["kind"], found["api"]) for found in lines(result)] == [("request", "Heartbeat"), ("response", "Heartbeat")] * 2
    assert "4 of 4 frames" in result.stderr
    assert len(lines(CliRunner().invoke(APP, [str(file), "--errors-only"]))) == 1


def test_a_packet_capture_without_kafka_or_an_end_says_so(tmp_path):
    segments: list[Segment] = []
    line = Connection(segments).open()
    file = tmp_path / "traffic.pcap"
    file.write_bytes(pcap(segments))
    result = CliRunner().invoke(APP, [str(file)])
    assert result.exit_code == 2
    assert "none of them speaks Kafka" in result.stderr.replace("\n", " ")
    line.heartbeat(0)
    file.write_bytes(pcap(segments)[:-5])
    result = CliRunner().invoke(APP, [str(file)])
    assert result.exit_code == 2
    assert "ends in the middle of a packet" in result.stderr.replace("\n", " ")


@pytest.mark.parametrize(
    "text", [b"{}", b"[1]", b"nonsense", b'{"request":true,"api_key":12,"api_version":4,"frame":"!"}', b"\xd4\xc3\xb2\xa1"]
)
def test_a_file_of_something_else(tmp_path, text):
    file = tmp_path / "file"
    file.write_bytes(text)
    result = CliRunner().invoke(APP, [str(file)])
    assert result.exit_code == 2
    assert f"error: {file}: line 1 is neither a mirror record" in result.stderr.replace("\n", " ")


def test_a_recording_that_breaks_off(tmp_path):
    file = tmp_path / "traffic.records"
    file.write_bytes(MAGIC + pack_record(heartbeat_answer(0)) + pack_record(heartbeat_answer(0))[:-5])
    result = CliRunner().invoke(APP, [str(file)])
    assert result.exit_code == 2
    assert len(result.stdout.splitlines()) == 1
    assert "record 2 is cut short" in result.stderr


def test_a_file_that_is_not_there(tmp_path):
    result = CliRunner().invoke(APP, [str(tmp_path / "none")])
    assert result.exit_code == 2
    assert "No such file or directory" in result.stderr


def test_an_api_that_is_not_there(tmp_path):
    result = run(tmp_path, [], "--api", "produce")
    assert result.exit_code == 2
    assert "--api produce: no such API; known are OffsetCommit, OffsetFetch" in result.stderr.replace("\n", " ")


def test_for_reading(tmp_path, capsys):
    from rich.console import Console

    show = _show_on(Console(highlight=False, width=100))
    for line in lines(run(tmp_path, [heartbeat_answer(27), record(b"\0", 12, 4)])):
        show(line)
    out = capsys.readouterr().out
    assert "2025-11-21T10:00:00.123456Z ← Heartbeat v4 response billing" in out
    assert '"error": "REBALANCE_IN_PROGRESS"' in out
    assert "runs past the end" in out


def test_what_is_embedded_and_cannot_be_read_is_explained_by_verbose(tmp_path):
    broken = [join(b"\x00\x00\x00\x00\x00\x09"), join(b"\x00\x00\x00\x00\x00\x09"), join(subscription())]
    silent = run(tmp_path, broken)
    assert "2 embedded unreadable; --verbose says why" in " ".join(silent.stderr.split())
    told = [line for line in run(tmp_path, broken, "--verbose").stderr.splitlines() if line.startswith("2 embedded unreadable: ")]
    assert len(told) == 1
    assert "metadata of protocol type 'consumer' in JoinGroupRequestProtocol: " in told[0]
    assert told[0].endswith("; first in JoinGroup v5 request 7 of group billing at 2025-11-21T10:00:00.123456Z")

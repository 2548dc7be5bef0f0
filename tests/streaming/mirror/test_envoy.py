"""Traces of Envoy's tap say what a capture of the same connections says. Envoy 1.40 wrote those in ``envoy_traces``."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_model import wire
from coordinator_model.finding import Finding
from coordinator_model.wire.record import Kind, MirrorRecord
from streaming.engine.engine import Engine
from streaming.mirror.captures import captured, is_capture
from streaming.mirror.envoy import CUT
from streaming.mirror.pcap.capture_reader import CaptureReader, in_order
from streaming.mirror.pcap.files import opened
from tests.golden import transcript
from tests.streaming.mirror import wires
from tests.streaming.mirror.trace_wrapper import Connections, as_json, binary, delimited
from tests.streaming.mirror.wires import Connection, Segment, pcap, request, response

BY_ENVOY = Path(__file__).parent / "envoy_traces"


class Read:
    """What a reader makes of captures."""

    def __init__(self, *captures: bytes, ports: tuple[int, ...] = ()) -> None:
        found: list[MirrorRecord] = []
        self.damage: list[str] = []
        self.reader = CaptureReader(found.append, ports=ports)
        self.reader.read(in_order([captured(opened(io.BytesIO(capture)), self.damage.append) for capture in captures]))
        self.reader.finish()
        self.stats = self.reader.stats
        self.records = [record for record in found if record.kind is not Kind.TICK]

    def told(self) -> list[tuple]:
        """Without times of opening and closing: a trace begins with the first byte."""
        return [(record.kind.value, record.group, record.exchange, record.cut_bytes, record.frame) for record in self.records]

    def kinds(self) -> list[str]:
        return [f"{record.kind.value} {record.exchange}" if record.exchange >= 0 else record.kind.value for record in self.records]


@pytest.fixture
def segments() -> list[Segment]:
    packets: list[Segment] = []
    lines = [Connection(packets, client=("10.0.0.7", 40_000 + number)).open() for number in range(2)]
    for correlation_id in range(3):
        for number, line in enumerate(lines):
            line.now_us = packets[-1].at_us
            line.heartbeat(correlation_id, member_id=f"m-{number}")
    for line in lines:
        line.now_us = packets[-1].at_us
        line.close()
    return packets


@pytest.mark.parametrize("written", [delimited, binary, as_json], ids=lambda written: written.__name__)
class TestFormats:
    def test_a_stream_of_all_connections_says_what_a_capture_says(self, written, segments):
        found = Read(written(Connections(segments).streamed()))
        assert found.told() == Read(pcap(segments)).told()
        assert {(record.broker, record.client_address) for record in found.records} == {("10.0.0.1:9092", "10.0.0.7")}
        assert len({record.connection for record in found.records}) == 2

    def test_a_file_for_each_connection_says_the_same(self, written, segments):
        traces = Connections(segments)
        assert Read(*(written(traces.streamed(number)) for number in (0, 1))).told() == Read(pcap(segments)).told()

    def test_a_buffered_trace_says_the_same_and_ends_with_its_newest_byte(self, written, segments):
        traces = Connections(segments)
        found = Read(*(written([traces.buffered(number)]) for number in (0, 1)))
        assert sorted(found.told()) == sorted(Read(pcap(segments)).told())
        assert {(record.kind, record.at_us) for record in found.records} >= {
            (Kind.CLOSE, record.at_us) for record in found.records if record.exchange == 2 and record.kind is Kind.RESPONSE
        }

    def test_what_is_cut_off_is_told_as_damage_and_the_rest_is_read(self, written, segments):
        whole = written(Connections(segments).streamed())
        found = Read(whole[:-7])
        assert found.damage == ["ends in the middle of a trace"]
        assert found.told() == Read(pcap(segments)).told()[:-1]


@given(data=st.data())
def test_nothing_that_is_broken_raises(data):
    packets: list[Segment] = []
    Connection(packets).open().heartbeat(0)
    traces = Connections(packets)
    content = bytearray(data.draw(st.sampled_from([delimited, binary, as_json]))([*traces.streamed(), traces.buffered(0)]))
    at = data.draw(st.integers(60, len(content) - 1))
    content[at] = data.draw(st.integers(0, 255))
    source = opened(io.BytesIO(bytes(content)))
    assert is_capture(source)
    found: list[MirrorRecord] = []
    reader = CaptureReader(found.append)
    reader.read(captured(source, lambda _: None))
    reader.finish()


class TestCut:
    """A sink's limit."""

    @pytest.fixture
    def line(self):
        packets: list[Segment] = []
        line = Connection(packets, mss=1 << 20).open()
        line.heartbeat(0)
        line.ask(wire.SyncGroupRequest(group_id="g", member_id="m" * 3000), 5, 1)
        line.answer(wire.SyncGroupResponse(assignment=b"a" * 3000), 5, 1)
        line.heartbeat(2)
        line.close()
        return line

    def test_frames_are_as_much_shorter_as_the_count_of_bytes_says(self, line):
        found = Read(delimited(Connections(line.packets, limit=500).streamed()))
        assert found.kinds() == ["open", *(f"{kind} {n}" for n in range(3) for kind in ("req", "res")), "close"]
        asked = request(wire.SyncGroupRequest(group_id="g", member_id="m" * 3000), 5, 1)
        answer = response(wire.SyncGroupResponse(assignment=b"a" * 3000), 5, 1)
        assert [(record.frame, record.cut_bytes) for record in found.records[3:5]] == [
            (asked[4:500], len(asked) - 500),
            (answer[4:500], len(answer) - 500),
        ]

    def test_without_a_count_a_cut_is_a_gap_and_the_next_frame_is_found(self, line):
        found = Read(delimited(Connections(line.packets, limit=500, counts=False).streamed()))
        assert found.kinds() == ["open", "req 0", "res 0", "gap", "gap", "req 1", "res 1", "close"]

    def test_a_mark_of_a_cut_is_no_loss_where_the_count_shows_none(self, line):
        traces = Connections(line.packets)
        for _, event in traces.in_order:
            if event.HasField("write"):
                event.write.data.truncated = True
        found = Read(delimited(traces.streamed()))
        assert found.told() == Read(pcap(line.packets)).told()

    def test_events_that_are_missing_are_a_gap(self, line):
        messages = list(Connections(line.packets).streamed())
        found = Read(delimited(messages[:3] + messages[4:]))
        assert "gap" in found.kinds()
        assert found.kinds()[-3:] == ["req 1", "res 1", "close"]

    def test_a_buffered_trace_that_was_cut_is_a_gap_until_its_end(self, line):
        found = Read(binary([Connections(line.packets, limit=500, counts=False).buffered(0)]))
        assert found.kinds() == ["open", "req 0", "res 0", "gap", "gap", "close"]
        assert list(found.stats.opaque) == [CUT]


def test_a_trace_whose_beginning_is_missing_is_read_like_a_connection_that_was_open(segments):
    messages = list(Connections(segments).streamed(0))
    whole, found = Read(delimited(messages)).told(), Read(delimited(messages[3:])).told()
    assert [frame for *_, frame in found] == [frame for *_, frame in whole[3:]]


def test_ports_choose_connections_and_those_of_others_are_left_out(segments):
    assert not Read(delimited(Connections(segments).streamed()), ports=(9999,)).records
    assert Read(delimited(Connections(segments).streamed()), ports=(9092,)).records


def test_what_does_not_speak_kafka_is_left_out():
    packets: list[Segment] = []
    line = Connection(packets).open()
    line.client(b"GET / HTTP/1.1\r\n\r\n")
    line.broker(b"HTTP/1.1 200 OK\r\n\r\n")
    found = Read(delimited(Connections(packets).streamed()))
    assert (found.records, found.stats.foreign, found.stats.connections) == ([], 1, 1)


def test_bytes_that_were_written_as_text_are_refused(segments):
    traces = list(Connections(segments).streamed())
    traces[1].socket_streamed_trace_segment.event.read.data.as_string = "spoilt"
    assert "JSON_BODY_AS_BYTES" in Read(as_json(traces)).damage[0]


class TestByEnvoyItself:
    """A consumer of kafka-python behind Envoy 1.40, told six times to Envoy to write it."""

    @pytest.mark.parametrize(
        ("folder", "broker", "frames"),
        [
            ("streamed-binary", "127.0.0.1:21180", 52),
            ("streamed-json", "127.0.0.1:21180", 48),
            ("before-the-broker", "127.0.0.1:22659", 46),
            ("buffered", "127.0.0.1:21180", 46),
            ("admin", "127.0.0.1:21180", 46),
        ],
    )
    def test_its_traces_are_read_whole(self, folder, broker, frames):
        found = Read(*(path.read_bytes() for path in sorted((BY_ENVOY / folder).iterdir())))
        assert (found.damage, found.stats.losses, found.stats.lost_elsewhere, found.stats.opaque) == ([], 0, 0, {})
        assert (found.stats.brokers, found.stats.frames) == ({broker: 3}, frames)
        assert [record.kind for record in found.records].count(Kind.CLOSE) == 2
        assert found.records[0].client_address == ("" if folder == "before-the-broker" else "127.0.0.1")

    def test_by_default_it_keeps_too_little_and_that_is_said(self):
        found = Read(*(path.read_bytes() for path in sorted((BY_ENVOY / "buffered-by-default").iterdir())))
        assert found.stats.opaque == {CUT: 2}
        assert "gap" in found.kinds()


def findings_of(*captures: bytes) -> list[tuple]:
    found: list[Finding] = []
    engine = Engine(topic="capture", settings=transcript.SETTINGS, found=found.append)
    reader = CaptureReader(engine.captured)
    reader.read(in_order([captured(opened(io.BytesIO(capture)), pytest.fail) for capture in captures]))
    reader.finish()
    engine.finish()
    return [(finding.rule, finding.severity, finding.status, finding.group, finding.summary) for finding in found]


@pytest.mark.parametrize("written", [delimited, as_json], ids=lambda written: written.__name__)
@pytest.mark.parametrize("name", ["violation-stale-generation-accepted-4.3.1", "violation-zombie-member-3.9.2"])
def test_traces_of_a_transcript_have_the_findings_of_its_capture(name, written: Callable[[Iterable], bytes]):
    segments = wires.captured(transcript.read(name))
    expected = findings_of(pcap(segments))
    assert expected
    traces = Connections(segments)
    assert findings_of(written(traces.streamed())) == expected
    assert findings_of(*(written(traces.streamed(number)) for number in traces.traces)) == expected

"""Captured packets give the records that the tap would have written, whatever the capture lacks, doubles or disorders."""

from __future__ import annotations

import gzip
import io
import lzma
import random
import struct
from itertools import pairwise
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_model import wire
from coordinator_model.wire.record import Kind, unpack_loss
from streaming.mirror.conversation import FRAME_CAP, Conversation
from streaming.mirror.pcap.capture_reader import CaptureReader, in_order
from streaming.mirror.pcap.files import CaptureError, opened, packets
from streaming.mirror.pcap.segments import is_later_fragment
from tests.streaming.mirror.wires import (
    ACK,
    BROKER,
    CLIENT,
    FIN,
    LINKS,
    PSH,
    START_US,
    Connection,
    Segment,
    block,
    enhanced,
    interface,
    pcap,
    pcapng,
    request,
    response,
    section,
    sized,
)

FETCH, METADATA, PRODUCE = 1, 3, 0


class Read:
    """What a reader makes of a capture."""

    def __init__(self, *captures: bytes, ports: tuple[int, ...] = (), **options) -> None:
        self.all_records = []
        self.damage = []
        self.reader = CaptureReader(self.all_records.append, ports=ports, **options)
        self.reader.read(in_order([packets(opened(io.BytesIO(capture)), self.damage.append) for capture in captures]))
        self.reader.finish()
        self.stats = self.reader.stats
        self.records = [record for record in self.all_records if record.kind is not Kind.TICK]

    def told(self) -> list[str]:
        """``req 12 #0``: kind, API key, exchange."""
        return [_told(record) for record in self.records]

    def frames(self) -> list[tuple]:
        return [_fact(record) for record in self.records]

    def gaps(self) -> list:
        return [record for record in self.records if record.kind is Kind.GAP]


def _told(record) -> str:
    return f"{record.kind.value} {record.api_key} #{record.exchange}" if record.exchange >= 0 else record.kind.value


def _fact(record) -> tuple:
    """What of a record does not depend on when and where it was captured."""
    return record.group, record.kind, record.exchange, record.queued_behind, record.cut_bytes, record.frame


def read(segments: list[Segment], *, ports: tuple[int, ...] = (), **how) -> Read:
    return Read(pcap(segments, **how), ports=ports)


def other(key: int, version: int, correlation_id: int, body: bytes = b"", client_id: bytes = b"app-1") -> bytes:
    """A request of an API that is not mirrored."""
    return sized(struct.pack(">hhih", key, version, correlation_id, len(client_id)) + client_id + body)


def other_answer(correlation_id: int, body: bytes = b"") -> bytes:
    return sized(correlation_id.to_bytes(4, "big", signed=True) + body)


def beats(connection: Connection, first: int, count: int = 1, **fields) -> None:
    for correlation_id in range(first, first + count):
        connection.heartbeat(correlation_id, **fields)


@pytest.fixture
def wires() -> list[Segment]:
    return []


@pytest.fixture
def line(wires) -> Connection:
    return Connection(wires).open()


class TestContainers:
    @pytest.mark.parametrize("link", LINKS)
    @pytest.mark.parametrize("hosts", [("10.0.0.7", "10.0.0.1"), ("fd00::7", "fd00::1")], ids=["IPv4", "IPv6"])
    @pytest.mark.parametrize("write", [pcap, pcapng])
    def test_every_link_layer_gives_the_same(self, link, hosts, write):
        segments = []
        line = Connection(segments, client=(hosts[0], 40_000), broker=(hosts[1], 9092)).open()
        beats(line, 0, 2)
        line.close()
        found = Read(write(segments, link=link))
        assert found.told() == ["open", "req 12 #0", "res 12 #0", "req 12 #1", "res 12 #1", "close"]
        record = found.records[1]
        assert record.client_address == hosts[0]
        assert record.broker == ("10.0.0.1:9092" if hosts[1] == "10.0.0.1" else "[fd00::1]:9092")
        assert record.at_us == segments[3].at_us
        assert not found.damage

    @pytest.mark.parametrize("order", "<>")
    def test_both_byte_orders_and_nanoseconds(self, wires, line, order):
        beats(line, 0)
        expected = [record.at_us for record in read(wires).records]
        for capture in (
            pcap(wires, order=order),
            pcap(wires, order=order, nanoseconds=True),
            pcapng(wires, order=order),
        ):
            found = Read(capture)
            assert found.told() == ["open", "req 12 #0", "res 12 #0"]
            assert [record.at_us for record in found.records] == expected

    def test_a_pcapng_file_may_have_several_sections_and_interfaces_with_clocks_of_their_own(self, wires, line):
        beats(line, 0, 3)
        milliseconds, binary = 3, 0x80 | 20
        raw = LINKS["raw IP"][1]
        cooked = LINKS["Linux cooked v2"][1]
        parts = [section("<"), interface(101, resolution=9, offset_s=1_000_000_000), interface(276, resolution=binary)]
        for number, segment in enumerate(wires[:4]):
            if number % 2:
                parts.append(enhanced(1, segment.at_us * 2**20 // 1_000_000 + 1, cooked(segment.ip())))
            else:
                parts.append(enhanced(0, (segment.at_us - 10**15) * 1000, raw(segment.ip())))
        parts += [block(4, b"\0" * 8), block(0x0BAD, b"a vendor's"), section(">"), interface(1, ">", resolution=milliseconds)]
        parts += [enhanced(0, segment.at_us // 1000, LINKS["Ethernet"][1](segment.ip()), ">", original=1) for segment in wires[4:]]
        found = Read(b"".join(parts))
        assert found.told() == ["open", *(f"{kind} 12 #{number}" for number in range(3) for kind in ("req", "res"))]
        assert [record.at_us for record in found.records] == [record.at_us for record in read(wires).records]
        assert not found.damage

    def test_packets_without_a_time_have_that_of_the_one_before(self, wires, line):
        beats(line, 0)
        ips = [segment.ip() for segment in wires]
        simple = [block(3, struct.pack("<I", len(ip)) + ip) for ip in ips[1:]]
        found = Read(section() + interface(101) + enhanced(0, START_US, ips[0]) + b"".join(simple))
        assert found.told() == ["open", "req 12 #0", "res 12 #0"]
        assert {record.at_us for record in found.records} == {START_US}

    @pytest.mark.parametrize("compress", [gzip.compress, lzma.compress], ids=["gzip", "xz"])
    def test_compressed(self, wires, line, compress):
        beats(line, 0, 50)
        whole = compress(pcap(wires))
        assert Read(whole).frames() == read(wires).frames()
        cut = Read(whole[:-10])
        assert cut.stats.packets > 0
        assert cut.damage == [] or "compressed data" in cut.damage[0]

    @pytest.mark.parametrize("write", [pcap, pcapng])
    def test_a_file_that_ends_within_a_packet_gives_what_came_before(self, wires, line, write):
        beats(line, 0, 2)
        found = Read(write(wires)[:-3])
        assert found.told() == ["open", "req 12 #0", "res 12 #0", "req 12 #1"]
        assert "ends in the middle" in found.damage[0]

    def test_a_damaged_length_ends_the_reading_and_claims_no_memory(self, wires, line):
        beats(line, 0)
        for capture, tail in (
            (pcap(wires), struct.pack("<IIII", 1, 0, 0xFFFFFFF0, 60)),
            (pcapng(wires), struct.pack("<II", 6, 0)),
            (pcapng(wires), struct.pack("<II", 6, 0x7FFFFFF0)),
            (pcapng(wires), block(6, b"\0\0\0\x09" * 5)),
            (pcapng(wires), block(6, struct.pack("<IIIII", 0, 0, 0, 500, 500))),
        ):
            found = Read(capture + tail + b"\0" * 100)
            assert found.told() == ["open", "req 12 #0", "res 12 #0"]
            assert "is damaged" in found.damage[0]

    def test_what_is_no_capture_is_refused(self):
        for content, why in (
            (b"", "is empty"),
            (b"\xd4\xc3\xb2\xa1\0\0", "ends within"),
            (b"GIF89a", "no packet capture"),
            (b"\x1f", "no packet capture"),
        ):
            with pytest.raises(CaptureError, match=why):
                list(packets(opened(io.BytesIO(content)), lambda _: None))

    @given(st.binary(max_size=400), st.sampled_from([pcap, pcapng]))
    def test_no_bytes_make_it_raise(self, noise, write):
        segments = []
        beats(Connection(segments).open(), 0)
        whole = write(segments)
        at = len(noise) * 7 % len(whole)
        Read(whole[:at] + noise + whole[at + len(noise) :])
        Read(whole[:24] + noise)

    def test_a_growing_capture_is_read_as_it_grows(self, wires, line):
        beats(line, 0)
        content = pcap(wires)

        class Pipe:
            portions: ClassVar = [content[:100], content[100:-20], content[-20:]]

            def read1(self, _size: int) -> bytes:
                return self.portions.pop(0) if self.portions else b""

            read = read1

        taken = [(packet, len(Pipe.portions)) for some in packets(opened(Pipe()), lambda _: None) for packet in some]
        assert len(taken) == len(wires)
        assert taken[0][1] == 2
        assert taken[-2][1] == 1, "all but the last were there before the last portion came"


class TestLikeTheTap:
    """The same bytes through :class:`Conversation` alone."""

    @staticmethod
    def tapped(steps: list[tuple[int, bytes]]) -> list[tuple]:
        records = []
        talk = Conversation(records.append, cluster="", broker="", connection="", client_address="", at_us=0)
        for side, data in steps:
            (talk.client_sent if side == 0 else talk.broker_sent)(data, 0)
        talk.closed(0)
        return [_fact(record) for record in records]

    def test_other_traffic_between(self, wires, line):
        steps = [
            (0, request(wire.ApiVersionsRequest(client_software_name="lib", client_software_version="1"), 3, 0)),
            (1, response(wire.ApiVersionsResponse(), 3, 0)),
            (0, other(METADATA, 12, 1, b"x" * 30)),
            (1, other_answer(1, b"y" * 5000)),
            (0, other(FETCH, 15, 2) + request(wire.HeartbeatRequest(group_id="g", member_id="m"), 4, 3)),
            (1, other_answer(2, b"z" * 200_000)),
            (1, response(wire.HeartbeatResponse(), 4, 3)),
            (0, other(PRODUCE, 8, 4, b"\xff\xff\0\0" + b"p" * 9000)),
            (
                0,
                request(wire.LeaveGroupRequest(group_id="g", members=(wire.LeaveGroupRequestMemberIdentity(member_id="m"),)), 5, 5),
            ),
            (1, response(wire.LeaveGroupResponse(), 5, 5)),
        ]
        for side, data in steps:
            (line.client if side == 0 else line.broker)(data)
        line.close()
        found = read(wires)
        assert found.frames() == self.tapped(steps)
        assert found.records[-1].client_software == "lib 1"
        assert not found.stats.losses

    @given(data=st.data())
    def test_any_segmentation_disorder_repetition_and_overlap_gives_the_same_records(self, data):
        chance = random.Random(data.draw(st.integers(0, 2**32)))
        initial = (chance.choice([1_000, 2**32 - 300]), chance.choice([5, 2**32 - 90, 2**31 - 100]))
        segments: list[Segment] = []
        line = Connection(segments, initial=initial, step_us=500).open()
        handshake = len(segments)
        steps: list[tuple[int, bytes]] = []
        for number in range(data.draw(st.integers(1, 8))):
            asked = request(wire.HeartbeatRequest(group_id="g" * chance.randint(1, 40), member_id="m"), 4, number)
            answer = response(wire.HeartbeatResponse(error_code=chance.choice([0, 27])), 4, number)
            if chance.random() < 0.3:
                asked, answer = other(FETCH, 12, number, b"f" * 300), other_answer(number, bytes(chance.randint(0, 900)))
            steps += [(0, asked), (1, answer)]
            line.client(asked, mss=chance.randint(1, len(asked)))
            line.broker(answer, mss=chance.randint(1, len(answer)))
        line.close()
        line.packets[handshake:] = _disturbed(segments[handshake:], initial, steps, chance)
        found = read(segments)
        assert found.frames() == self.tapped(steps)
        assert not found.stats.losses

    def test_disorder_between_the_directions_lets_no_answer_overtake_its_question(self, wires, line):
        beats(line, 0, 2)
        wires[3:7] = [wires[4], wires[6], wires[5], wires[3]]
        found = read([segment._replace(at_us=START_US + number) for number, segment in enumerate(wires)])
        assert found.told() == ["open", "req 12 #0", "res 12 #0", "req 12 #1", "res 12 #1"]
        assert [record.at_us for record in found.records[1:]] == [START_US + 6] * 4, "when the last missing piece came"

    def test_what_was_lost_on_the_way_and_sent_again_is_waited_for(self, wires, line):
        beats(line, 0)
        late = line.lose(lambda: line.ask(wire.HeartbeatRequest(group_id="g", member_id="m"), 4, 1))
        line.client(other(METADATA, 12, 2))
        line.wait(5_000)
        wires.append(late[0]._replace(at_us=line.now_us))
        line.wait(10)
        line.answer(wire.HeartbeatResponse(), 4, 1)
        found = read(wires)
        assert found.told() == ["open", "req 12 #0", "res 12 #0", "req 12 #1", "res 12 #1"]
        assert found.records[3].at_us == wires[-2].at_us


def _disturbed(segments: list[Segment], initial: tuple[int, int], steps: list, chance: random.Random) -> list[Segment]:
    """As a capture may have them: some twice, some sent again in other portions, all a little out of order."""
    streams = tuple(b"".join(data for side, data in steps if side == which) for which in (0, 1))
    out: list[tuple[float, Segment]] = []
    for number, segment in enumerate(segments):
        out.append((number + chance.uniform(0, 12), segment))
        if chance.random() < 0.2:
            out.append((number + chance.uniform(0, 20), segment))
        if chance.random() < 0.2 and segment.payload:
            side = 0 if segment.source == CLIENT else 1
            end = (segment.sequence - initial[side] - 1) % 2**32 + len(segment.payload)
            begin = chance.randint(0, end - 1)
            again = segment._replace(sequence=initial[side] + 1 + begin, payload=streams[side][begin:end])
            out.append((number + chance.uniform(0, 12), again))
    out.sort(key=lambda entry: entry[0])
    return [segment._replace(at_us=START_US + 2_000 + 500 * place) for place, (_, segment) in enumerate(out)]


class TestLosses:
    def test_a_lost_exchange_is_a_gap_and_the_next_one_is_understood(self, wires, line):
        beats(line, 0, 2)
        line.lose(lambda: beats(line, 2))
        line.wait(3_000)
        beats(line, 3, 2)
        line.close()
        found = read(wires)
        told = found.told()
        assert told[:5] == ["open", "req 12 #0", "res 12 #0", "req 12 #1", "res 12 #1"]
        assert set(told[5:7]) == {"gap"}
        assert told[7:] == ["req 12 #2", "res 12 #2", "req 12 #3", "res 12 #3", "close"]
        loss = unpack_loss(found.gaps()[0].frame)
        assert (loss.records, found.gaps()[0].group) == (0, "g")
        assert found.stats.lost_bytes == len(
            request(wire.HeartbeatRequest(group_id="g", generation_id=3, member_id="m-1"), 4, 2)
        ) + len(response(wire.HeartbeatResponse(), 4, 2))

    def test_a_lost_request_leaves_its_answer_without_meaning_and_the_next_with_its_own(self, wires, line):
        beats(line, 0)
        line.lose(lambda: line.ask(wire.HeartbeatRequest(group_id="g", member_id="m"), 4, 1))
        line.answer(wire.HeartbeatResponse(error_code=25), 4, 1)
        beats(line, 2)
        found = read(wires)
        assert found.told() == ["open", "req 12 #0", "res 12 #0", "gap", "req 12 #1", "res 12 #1"]
        assert found.records[-1].correlation_id == 2

    def test_a_lost_answer_is_a_gap_and_the_next_answer_finds_its_request(self, wires, line):
        beats(line, 0)
        line.ask(wire.HeartbeatRequest(group_id="g", member_id="m"), 4, 1)
        line.lose(lambda: line.answer(wire.HeartbeatResponse(), 4, 1))
        beats(line, 2)
        found = read(wires)
        assert found.told() == ["open", "req 12 #0", "res 12 #0", "req 12 #1", "gap", "req 12 #2", "res 12 #2"]

    def test_a_hole_within_a_fetch_costs_nothing(self, wires, line):
        beats(line, 0)
        line.client(other(FETCH, 15, 1))
        body = other_answer(1, b"\0\x0c\0\4records" * 2_000)
        line.broker(body[:5_000])
        line.lose(lambda: line.broker(body[5_000:12_000]))
        line.broker(body[12_000:])
        beats(line, 2)
        found = read(wires)
        assert found.told() == ["open", "req 12 #0", "res 12 #0", "req 12 #1", "res 12 #1"]
        assert not found.stats.losses

    def test_a_hole_over_the_end_of_a_fetch_is_a_gap_and_is_found_out_of(self, wires, line):
        beats(line, 0)
        line.client(other(FETCH, 15, 1))
        body = other_answer(1, b"\0\0\0\x0b\0\0\0\1" * 2_000)
        line.broker(body[:5_000])
        line.lose(lambda: (line.broker(body[5_000:]), line.heartbeat(2)))
        line.wait(500)
        beats(line, 3)
        assert read(wires).told()[-2:] == ["req 12 #1", "res 12 #1"]

    def test_a_mirrored_frame_with_a_hole_is_cut_and_says_so(self, wires, line):
        beats(line, 0)
        asked = request(wire.SyncGroupRequest(group_id="g", member_id="m" * 3000), 5, 1)
        line.client(asked[:1000])
        line.lose(lambda: line.client(asked[1000:2000]))
        line.client(asked[2000:])
        line.wait(200)
        answer = response(wire.SyncGroupResponse(assignment=b"a" * 3000), 5, 1)
        line.broker(answer[:1000])
        line.lose(lambda: line.broker(answer[1000:1500]))
        line.broker(answer[1500:])
        line.wait(200)
        beats(line, 2)
        found = read(wires)
        assert found.told()[3:] == ["req 14 #1", "res 14 #1", "req 12 #2", "res 12 #2"]
        cut, cut_answer = found.records[3:5]
        assert (cut.frame, cut.cut_bytes) == (asked[4:1000], len(asked) - 1000)
        assert (cut_answer.frame, cut_answer.cut_bytes) == (answer[4:1000], len(answer) - 1000)
        assert not found.gaps()

    def test_a_snap_length_cuts_data_without_harm_and_group_frames_with_a_word(self, wires, line):
        beats(line, 0)
        line.client(other(FETCH, 15, 1))
        line.broker(other_answer(1, b"d" * 50_000))
        line.ask(wire.SyncGroupRequest(group_id="g", member_id="m" * 800), 5, 2)
        line.answer(wire.SyncGroupResponse(assignment=b"a" * 10), 5, 2)
        found = read(wires, snap=14 + 40 + 200)
        assert found.told() == ["open", "req 12 #0", "res 12 #0", "req 14 #1", "res 14 #1"]
        assert [record.cut_bytes > 0 for record in found.records] == [False, False, False, True, False]
        assert len(found.records[3].frame) == 200 - 4
        assert not any(record.capped_bytes for record in found.records)
        assert (found.stats.cut_frames, found.stats.snap_length) == (1, 254)
        assert found.stats.longest_packet == max(len(segment.payload) for segment in wires) + 54

    @pytest.mark.parametrize("opened", [True, False])
    @pytest.mark.parametrize("snap", [96, 128])
    def test_a_short_snap_length_shows_each_frame_and_the_group_that_it_reaches(self, wires, opened, snap):
        """A connection that was open before the capture was lost as a whole: no frame that was cut was taken for a beginning."""
        line = Connection(wires)
        if opened:
            line.open()
        for number in range(3):
            line.ask(wire.JoinGroupRequest(group_id="orders", member_id="m" * 40), 5, 10 + number)
            line.answer(wire.JoinGroupResponse(member_id="m" * 40, leader="n" * 40), 5, 10 + number)
        found = read(wires, snap=snap)
        assert found.told() == ["open"] * opened + [f"{kind} 11 #{number}" for number in range(3) for kind in ("req", "res")]
        frames = found.records[opened:]
        assert {record.group for record in frames} == {"orders"}
        assert [record.correlation_id for record in frames] == [10, 10, 11, 11, 12, 12]
        assert all(record.cut_bytes and record.client_id == "app-1" and record.api_version == 5 for record in frames)
        assert not found.gaps()

    def test_a_frame_of_more_than_a_megabyte_is_read_whole_and_cut_only_for_a_topic(self, wires, line):
        assignments = (wire.SyncGroupRequestAssignment(member_id="m", assignment=b"a" * 1_200_000),)
        asked = request(wire.SyncGroupRequest(group_id="g", member_id="m", assignments=assignments), 5, 1)
        line.client(asked)
        line.answer(wire.SyncGroupResponse(), 5, 1)
        whole = read(wires).records[1]
        assert (whole.group, len(whole.frame), whole.cut_bytes, whole.capped_bytes) == ("g", len(asked) - 4, 0, 0)
        cut = Read(pcap(wires), frame_cap=FRAME_CAP).records[1]
        assert (cut.group, len(cut.frame)) == ("g", 1_000_000)
        assert cut.cut_bytes == cut.capped_bytes == len(asked) - 4 - 1_000_000

    def test_a_snap_length_below_the_headers_is_lost_and_not_misread(self, wires, line):
        beats(line, 0, 3)
        for snap in (20, 40, 54, 58, 60):
            found = read(wires, snap=snap)
            assert all(record.kind in (Kind.OPEN, Kind.GAP) for record in found.records), snap

    def test_each_hole_costs_only_its_own_wait(self, wires, line):
        """A capture of one direction only: every answer is a hole."""
        for number in range(200):
            line.ask(wire.HeartbeatRequest(group_id="g", member_id="m"), 4, number)
            line.lose(lambda number=number: line.answer(wire.HeartbeatResponse(), 4, number))
            line.wait(20)
        found = read(wires)
        seen = [record for record in found.records if record.kind is Kind.REQUEST]
        assert len(seen) == 200
        assert len(found.gaps()) >= 4
        order = [record.at_us for record in found.all_records]
        assert max(early - late for early, late in pairwise(order)) <= 1_000_000

    def test_what_only_an_acknowledgement_tells_of_is_a_gap_too(self, wires, line):
        beats(line, 0)
        line.lose(lambda: line.ask(wire.JoinGroupRequest(group_id="g"), 7, 1))
        line.acknowledge(1)
        quiet = Connection(wires, client=("10.0.0.8", 1), at_us=line.now_us).open()
        quiet.wait(3_000)
        beats(quiet, 0, group="h")
        told = read(wires).told()
        assert told.index("gap") < told.index("req 12 #0", 3)

    def test_too_much_held_behind_a_hole_is_not_waited_for(self, wires, line):
        beats(line, 0)
        line.client(other(FETCH, 15, 1))
        line.lose(lambda: line.broker(b"\0\0"))
        for _ in range(300):
            line.broker(b"x" * 65_000, mss=65_000)
        unacknowledged = [
            segment._replace(acknowledges=wires[4].acknowledges) if segment.source == CLIENT else segment for segment in wires
        ]
        assert read(unacknowledged).told()[-1] == "gap"


class TestMidway:
    def test_a_connection_that_was_open_before_is_understood_from_its_first_request(self, wires):
        line = Connection(wires)
        beats(line, 50, 2)
        found = read(wires)
        assert found.told() == ["req 12 #0", "res 12 #0", "req 12 #1", "res 12 #1"]
        assert found.records[0].client_address == CLIENT[0]

    @pytest.mark.parametrize("ports", [(), (9092,)])
    def test_an_answer_to_an_earlier_request_is_passed_over(self, wires, ports):
        line = Connection(wires)
        line.answer(wire.JoinGroupResponse(member_id="m", generation_id=4), 7, 49)
        beats(line, 50, 2)
        found = read(wires, ports=ports)
        assert found.told() == ["req 12 #0", "res 12 #0", "req 12 #1", "res 12 #1"]

    def test_that_answer_is_no_loss_for_a_group_that_is_known_already(self, wires):
        known, line = Connection(wires, client=("10.0.0.8", 1)), Connection(wires)
        beats(known, 1)
        line.answer(wire.JoinGroupResponse(member_id="m", generation_id=4), 7, 49)
        beats(line, 50)
        assert read(wires, ports=(9092,)).told() == ["req 12 #0", "res 12 #0", "req 12 #0", "res 12 #0"]

    def test_that_answer_is_no_loss_while_the_next_request_waits_already(self, wires):
        known, line = Connection(wires, client=("10.0.0.8", 1)), Connection(wires)
        beats(known, 1)
        line.client(request(wire.HeartbeatRequest(group_id="g", member_id="m"), 4, 50))
        line.answer(wire.OffsetCommitResponse(), 8, 49)
        line.answer(wire.HeartbeatResponse(), 4, 50)
        assert read(wires, ports=(9092,)).told() == ["req 12 #0", "res 12 #0", "req 12 #0", "res 12 #0"]

    def test_an_answer_that_cannot_be_found_is_a_loss(self, wires):
        known, line = Connection(wires, client=("10.0.0.8", 1)), Connection(wires)
        beats(known, 1)
        for number in (50, 51):
            line.client(request(wire.HeartbeatRequest(group_id="g", member_id="m"), 4, number))
        line.broker(other_answer(50, b"no heartbeat's answer") + response(wire.HeartbeatResponse(), 4, 51))
        beats(line, 52)
        assert read(wires, ports=(9092,)).told()[2:] == ["req 12 #0", "req 12 #1", "gap", "res 12 #1", "req 12 #2", "res 12 #2"]

    def test_in_the_middle_of_a_fetch(self, wires):
        line = Connection(wires)
        body = other_answer(7, bytes(random.Random(1).randbytes(100_000)))
        line.broker(body[60_000:])
        line.client(other(FETCH, 15, 8))
        line.broker(other_answer(8, b"\0" * 5_000))
        beats(line, 9, 2)
        found = read(wires)
        assert found.told() == ["req 12 #0", "res 12 #0", "req 12 #1", "res 12 #1"]

    def test_in_the_middle_of_a_request(self, wires):
        line = Connection(wires)
        asked = other(PRODUCE, 9, 7, b"\0\0\xff" + random.Random(2).randbytes(9_000))
        line.client(asked[3_000:])
        line.broker(other_answer(7))
        beats(line, 8)
        assert read(wires).told() == ["req 12 #0", "res 12 #0"]

    def test_requests_in_small_pieces(self, wires):
        line = Connection(wires)
        for number in range(3):
            line.client(request(wire.HeartbeatRequest(group_id="g", member_id="m"), 4, number), mss=5)
            line.broker(response(wire.HeartbeatResponse(), 4, number), mss=3)
        assert read(wires).told()[-2:] == ["req 12 #2", "res 12 #2"]

    @given(st.integers(0, 2**32), st.integers(0, 30), st.integers(0, 30))
    def test_wherever_a_capture_begins_what_it_tells_is_true(self, seed, skipped, lost):
        """Requests and answers belong together as they did, and nothing is told that was not said."""
        chance = random.Random(seed)
        segments: list[Segment] = []
        line = Connection(segments).open()
        said = {}
        for number in range(20):
            asked = request(wire.HeartbeatRequest(group_id="g", member_id=f"m-{number}"), 4, number)
            answer = response(wire.HeartbeatResponse(error_code=number), 4, number)
            if chance.random() < 0.4:
                asked, answer = other(FETCH, 12, number), other_answer(number, chance.randbytes(2_000))
            else:
                said[number] = (asked[4:], answer[4:])
            line.client(asked, mss=chance.choice([7, 1460]))
            line.broker(answer)
            line.wait(300)
        del segments[skipped + lost : skipped + lost + chance.randint(0, 4)]
        found = read(segments[skipped:])
        for record in found.records:
            if record.exchange >= 0 and not record.cut_bytes:
                assert said[record.correlation_id][record.kind is Kind.RESPONSE] == record.frame
        if len(segments) - skipped - lost > 25:
            assert any(record.kind is Kind.RESPONSE for record in found.records)


class TestOtherTraffic:
    def test_what_is_not_kafka_is_counted_and_told_of_nobody(self, wires, line):
        beats(line, 0)
        talks = [
            (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n"),
            (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"r" * 500, b"\x16\x03\x03\0\x7a" + b"s" * 120),
            (b"", b"SSH-2.0-OpenSSH_9.2\r\n"),
            (b"\0\0\0\x4c\0\3\0\0user\0postgres\0database\0x\0\0", b"R\0\0\0\x08\0\0\0\0"),
            (b"\0\x1d\x12\x34\1\0\0\1\0\0\0\0\0\0\3www\7example\3com\0\0\1\0\1", b"\0\x2d\x12\x34\x81\x80"),
        ]
        for number, (client, server) in enumerate(talks):
            talk = Connection(wires, client=("10.0.0.9", number), broker=("10.0.0.2", 443 + number)).open()
            if client:
                talk.client(client)
            talk.broker(server)
            talk.client(b"more" * 500)
            talk.close()
        found = read(wires)
        assert found.told() == ["open", "req 12 #0", "res 12 #0"]
        assert (found.stats.connections, found.stats.brokers.total()) == (6, 1)
        assert (found.stats.foreign, found.stats.encrypted) == (5, 1)

    def test_tls_at_a_port_that_is_said_to_be_the_brokers_is_a_gap(self, wires):
        talk = Connection(wires).open()
        talk.client(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"r" * 500)
        talk.broker(b"\x16\x03\x03\0\x7a" + b"s" * 120)
        found = read(wires, ports=(9092,))
        assert [record.kind for record in found.records] == [Kind.GAP]
        assert found.stats.opaque.total() == 1
        assert not read(wires).records

    def test_other_ports_are_left_out_when_the_brokers_are_named(self, wires, line):
        beats(line, 0)
        beats(Connection(wires, broker=("10.0.0.1", 9093)).open(), 0, group="h")
        beats(Connection(wires, broker=("10.0.0.1", 9094)).open(), 0, group="i")
        assert {record.group for record in read(wires, ports=(9092, 9094)).records} == {"g", "i"}
        assert {record.group for record in read(wires).records} == {"g", "h", "i"}

    def test_udp_arp_and_fragments_are_no_tcp(self, wires, line):
        beats(line, 0)
        ip = bytearray(wires[3].ip())
        udp, fragment = bytearray(ip), bytearray(ip)
        udp[9] = 17
        fragment[6:8] = b"\x20\x10"
        frames = [
            b"\2" * 12 + b"\x08\0" + bytes(udp),
            b"\2" * 12 + b"\x08\0" + bytes(fragment),
            b"\2" * 12 + b"\x08\x06" + b"arp" * 9,
        ]
        extra = b"".join(struct.pack("<IIII", 1_700_000_000, 0, len(frame), len(frame)) + frame for frame in frames)
        found = Read(pcap([]) + extra + pcap(wires)[24:])
        assert found.told() == ["open", "req 12 #0", "res 12 #0"]
        assert found.stats.packets - found.stats.segments == 3
        assert found.stats.fragments == 1

    def test_fragments_are_told_under_ipv6_too(self):
        addresses, fragment = bytes(32), struct.pack(">BBHI", 6, 0, 185 << 3, 7)
        ip = struct.pack(">IHBB", 6 << 28, 8 + 20, 44, 64) + addresses + fragment + bytes(20)
        assert is_later_fragment(101, ip)
        assert not is_later_fragment(101, ip.replace(fragment, struct.pack(">BBHI", 6, 0, 1, 7)))
        assert not is_later_fragment(101, ip.replace(fragment, struct.pack(">BBHI", 17, 0, 185 << 3, 7)))
        assert not is_later_fragment(101, ip[:40])

    def test_why_there_is_nothing(self, wires, line):
        unknown = pcap(wires)[:20] + (105).to_bytes(4, "little") + pcap(wires)[24:]
        line.client(b"GET / HTTP/1.1\r\n\r\n")
        for capture, ports, why in (
            (pcap([]), (), "no packets"),
            (unknown, (), "link type 105"),
            (pcap(wires), (), "1 TCP connection, and none of them speaks Kafka"),
            (pcap(wires), (9999,), "port 9999"),
            (pcap(wires[2:3]), (), "none that begins a connection"),
        ):
            assert why in Read(capture, ports=ports).stats.why_nothing(ports)

    @pytest.mark.parametrize(
        ("number", "before"),
        [
            (149, struct.pack("<III", 156, 1, 1) + b"\0" * 144 + b"\2" * 12 + b"\x08\0"),
            (258, struct.pack("<III", 108, 1, 101) + b"\0" * 96),
            (9, b"\xff\x03\x00\x21"),
            (9, b"\x00\x21"),
            (104, b"\x0f\x00\x08\x00"),
            (117, bytes([61, 2]) + b"\0" * 62),
            (
                239,
                b"\2\0\0\0"
                + struct.pack("<HH", 8, 1)
                + b"abcd"
                + struct.pack("<HH", 7, 10)
                + b"pre\0"
                + struct.pack("<HH", 9999, 9),
            ),
        ],
    )
    def test_link_layers_before_another_one_are_taken_off(self, wires, line, number, before):
        beats(line, 0)
        found = Read(pcap(wires, wrap=lambda ip: before + ip, number=number))
        assert found.told() == ["open", "req 12 #0", "res 12 #0"]
        cut = Read(pcap(wires, wrap=lambda ip: before + ip, number=number, snap=len(before) + 60))
        assert any(record.cut_bytes for record in cut.records)

    def test_link_types_that_cannot_be_read_are_named_in_words(self, wires, line):
        beats(line, 0)
        why = Read(pcap(wires, wrap=lambda ip: ip, number=127)).reader.why_nothing()
        assert "link type 127 (IEEE 802.11 with radiotap) only" in why
        for number in (9, 104, 117, 149, 239, 258):
            assert Read(pcap(wires, wrap=lambda _: b"\1\2\3", number=number)).reader.why_nothing() is not None

    NEXT_TO_NOTHING = "it cannot be told whether they speak Kafka: "

    @pytest.mark.parametrize("side", [0, 1])
    @pytest.mark.parametrize("begun", [0, 3])
    def test_that_one_direction_is_missing_is_said(self, wires, line, side, begun):
        line.ask(wire.ListGroupsRequest(), 4, 0)
        line.answer(wire.ListGroupsResponse(), 4, 0)
        one = [segment for segment in wires[begun:] if segment.source == line.ends[side]]
        for ports in ((), (9092,)):
            why = read(one, ports=ports).reader.why_nothing()
            assert why.startswith(
                f"holds 1 TCP connection, and {self.NEXT_TO_NOTHING}only one direction was captured: capture where both pass"
            )

    @pytest.mark.parametrize(("payload", "where"), [(-12, "before"), (0, "before"), (8, "where")])
    @pytest.mark.parametrize("ports", [(), (9092,)])
    def test_that_packets_are_cut_to_nothing_is_said(self, wires, line, payload, where, ports):
        beats(line, 0)
        snap = 54 + payload
        why = read(wires, ports=ports, snap=snap).reader.why_nothing()
        expected = f"packets are cut at {snap} bytes, {where} their data begins: capture with a longer snap length (tcpdump -s 0)"
        if payload < 0:
            assert (
                why
                == f"holds 5 packets, cut at {snap} bytes, which leaves no TCP header: capture with a longer snap length (tcpdump -s 0)"
            )
        else:
            assert why == f"holds 1 TCP connection, and {self.NEXT_TO_NOTHING}{expected}"

    @pytest.mark.parametrize("begun", [0, 3])
    def test_that_the_port_is_a_clients_is_said(self, wires, line, begun):
        beats(line, 0)
        why = read(wires[begun:], ports=(CLIENT[1],)).reader.why_nothing()
        assert why.endswith(
            f"{self.NEXT_TO_NOTHING}port 40000 is a client's, the other end is port 9092: --port names the brokers' port (--port 9092)"
        )

    def test_what_keeps_some_connections_from_being_recognised_is_said_of_these(self, wires, line):
        line.client(b"GET / HTTP/1.1\r\n\r\n")
        line.broker(b"HTTP/1.1 404 Not Found\r\n\r\n")
        half = Connection(wires, client=("10.0.0.8", 40_001))
        half.lose(half.open)
        half.broker(b"220 ready\r\n" * 3)
        why = read(wires).reader.why_nothing()
        assert why.startswith("holds 2 TCP connections, and none of them speaks Kafka; of 1: only one direction was captured")

    def test_ports_used_again_make_another_connection(self, wires, line):
        beats(line, 0)
        line.wait(1_000)
        again = Connection(wires, at_us=line.now_us, initial=(77, 88)).open()
        beats(again, 0)
        again.close()
        again.wait(1_000)
        third = Connection(wires, at_us=again.now_us, initial=(770, 880)).open()
        beats(third, 0)
        third.reset()
        found = read(wires)
        assert found.told() == ["open", "req 12 #0", "res 12 #0", "close"] * 3
        assert len({record.connection for record in found.records}) == 3


class TestProxies:
    """One process passes everything on: the capture has it before and behind."""

    PROXY, BEHIND = ("10.0.0.5", 9092), ("10.0.0.5", 51_000)

    def _pair(self, wires: list[Segment], client: str = CLIENT[0], port: int = 40_000) -> tuple[Connection, Connection]:
        front = Connection(wires, client=(client, port), broker=self.PROXY, step_us=1).open()
        back = Connection(wires, client=(self.BEHIND[0], port + 11_000), broker=BROKER, at_us=front.now_us, step_us=1).open()
        return front, back

    def _through(self, pair: tuple[Connection, Connection], asked: bytes, answer: bytes, *, wait_ms: float = 5) -> None:
        front, back = pair
        now_us = max(front.now_us, back.now_us) + 1_000
        for leg, side, data, delay_us in (
            (front, 0, asked, 0),
            (back, 0, asked, 200),
            (back, 1, answer, 400),
            (front, 1, answer, 600),
        ):
            leg.now_us = now_us + delay_us
            (leg.client if side == 0 else leg.broker)(data)
        front.now_us = back.now_us = now_us + int(wait_ms * 1000)

    def _join(self, pair: tuple[Connection, Connection], member_id: str, first: int = 0) -> None:
        talk = [
            (wire.ApiVersionsRequest(client_software_name="lib"), wire.ApiVersionsResponse(), 3),
            (wire.FindCoordinatorRequest(key="g", key_type=0), wire.FindCoordinatorResponse(), 2),
            (wire.JoinGroupRequest(group_id="g"), wire.JoinGroupResponse(error_code=79, member_id=member_id), 7),
            (wire.JoinGroupRequest(group_id="g", member_id=member_id), wire.JoinGroupResponse(member_id=member_id), 7),
            (wire.HeartbeatRequest(group_id="g", member_id=member_id), wire.HeartbeatResponse(), 4),
        ]
        for number, (asked, answer, version) in enumerate(talk, first):
            self._through(pair, request(asked, version, number), response(answer, version, number))

    def test_an_exchange_through_a_proxy_counts_once(self, wires):
        pair = self._pair(wires)
        self._join(pair, "app-1-aaa")
        for leg in pair:
            leg.close()
        found = read(sorted(wires))
        numbers = range(5)
        assert found.told() == [
            "open",
            *(
                f"{kind} {key} #{number}"
                for number, key in zip(numbers, (18, 10, 11, 11, 12), strict=True)
                for kind in ("req", "res")
            ),
            "close",
        ]
        assert {(record.client_address, record.broker) for record in found.records} == {(CLIENT[0], "10.0.0.5:9092")}
        assert found.reader.legs.echoes == 1

    def test_also_when_both_legs_were_open_before_the_capture(self, wires):
        pair = self._pair(wires)
        self._join(pair, "app-1-aaa")
        found = read(sorted(wires)[6:])
        assert {record.client_address for record in found.records} == {CLIENT[0]}

    def test_many_clients_of_one_make_behind_one_proxy(self, wires):
        for number in range(5):
            pair = self._pair(wires, f"10.0.0.{20 + number}", 40_000 + number)
            self._join(pair, f"app-1-{number}")
        found = read(sorted(wires))
        assert {record.broker for record in found.records} == {"10.0.0.5:9092"}
        assert len({record.connection for record in found.records}) == 5
        assert found.reader.legs.echoes == 5

    def test_clients_of_one_make_that_speak_at_the_same_time_to_two_listeners_are_two(self, wires):
        lines = [
            Connection(wires, client=(f"10.0.0.{number}", 1), broker=("10.0.0.1", 9092 + number), at_us=START_US + number).open()
            for number in (1, 2)
        ]
        answered = [wire.JoinGroupResponse(error_code=79, member_id=f"app-1-{number}") for number in (1, 2)]
        for line in lines:
            line.ask(wire.JoinGroupRequest(group_id="g"), 7, 0)
        for line, answer in zip(lines, answered, strict=True):
            line.answer(answer, 7, 0)
        for number, line in enumerate(lines, 1):
            line.heartbeat(1, member_id=f"app-1-{number}")
        found = read(sorted(wires))
        assert len(found.records) == 2 * 5
        assert found.reader.legs.echoes == 0

    def test_an_address_translation_seen_from_both_sides_counts_once(self, wires):
        line = Connection(wires, broker=("10.96.0.10", 9092)).open()
        beats(line, 0, 3)
        line.close()
        behind = [
            segment._replace(
                at_us=segment.at_us + (5 if segment.source == CLIENT else -5),
                source=segment.source if segment.source == CLIENT else BROKER,
                destination=segment.destination if segment.destination == CLIENT else BROKER,
            )
            for segment in wires
        ]
        found = read(sorted(wires + behind))
        assert {record.broker for record in found.records} == {"10.96.0.10:9092"}
        assert found.frames() == read(wires).frames()


class TestClock:
    def test_every_second_of_capture_time_is_ticked(self, wires, line):
        beats(line, 0)
        line.wait(4_200)
        beats(line, 1)
        found = read(wires)
        ticks = [record.at_us for record in found.all_records if record.kind is Kind.TICK]
        assert ticks == [START_US + second * 1_000_000 for second in range(1, 5)]
        kinds = [record.kind for record in found.all_records]
        assert kinds.index(Kind.TICK) > kinds.index(Kind.RESPONSE)

    def test_time_does_not_run_backwards_for_a_little_disorder(self, wires, line):
        beats(line, 0)
        wires[-1] = wires[-1]._replace(at_us=START_US - 10)
        assert [record.at_us for record in read(wires).records][-1] == wires[-2].at_us

    def test_two_captures_with_years_between_are_not_filled_with_ticks(self, wires, line):
        beats(line, 0)
        line.wait(3 * 365 * 86_400_000)
        beats(line, 1)
        found = read(wires)
        assert len(found.all_records) < 20
        assert found.told()[-1] == "res 12 #1"

    def test_a_pause_without_a_packet_of_any_kind_is_not_filled_with_ticks(self, wires, line):
        """No member was silent then, as far as anybody knows. And 15 days of them took longer than the packets."""
        beats(line, 0)
        line.wait(180_000)
        beats(line, 1)
        found = read(wires)
        assert [record.at_us for record in found.all_records if record.kind is Kind.TICK] == []
        assert found.told()[-2:] == ["req 12 #1", "res 12 #1"]

    def test_the_time_between_two_files_is_not_filled_with_ticks(self, wires, line):
        beats(line, 0)
        line.wait(20_000)
        first = len(wires)
        beats(line, 1)
        line.wait(3_000)
        beats(line, 2)
        whole, parts = read(wires), Read(pcap(wires[first:]), pcap(wires[:first]))
        ticks = [record.at_us for record in parts.all_records if record.kind is Kind.TICK]
        assert ticks == [
            tick for tick in [record.at_us for record in whole.all_records if record.kind is Kind.TICK] if tick > wires[first].at_us
        ]
        assert len(ticks) == 3
        assert parts.frames() == whole.frames()

    def test_the_time_between_two_files_is_ticked_while_a_third_one_tells(self, wires, line):
        beats(line, 0)
        line.wait(20_000)
        first = len(wires)
        beats(line, 1)
        elsewhere: list[Segment] = []
        third = Connection(elsewhere, client=("10.0.0.8", 7)).open()
        third.heartbeat(0, group="other")
        third.wait(21_000)
        third.heartbeat(1, group="other")
        found = Read(pcap(wires[:first]), pcap(wires[first:]), pcap(elsewhere))
        assert len([record for record in found.all_records if record.kind is Kind.TICK]) == 21

    def test_what_waits_for_missing_bytes_comes_in_time_for_the_rules(self, wires, line):
        """Of one connection one direction was captured, the other goes on: V-09 blamed clocks for frames that waited for the next tick."""
        beats(line, 0)
        line.lose(lambda: line.answer(wire.HeartbeatResponse(), 4, 1))
        line.wait(100)
        line.ask(wire.HeartbeatRequest(group_id="g", generation_id=3, member_id="m-1"), 4, 1)
        other_line = Connection(wires, client=("10.0.0.8", 7), at_us=line.now_us).open()
        for number in range(60):
            other_line.heartbeat(number, group="other")
            other_line.wait(8)
        newest, latest_us = 0, 0
        for record in read(wires).all_records:
            latest_us = max(latest_us, newest - record.at_us)
            newest = max(newest, record.at_us)
        assert latest_us < 250_000

    def test_captures_of_several_places_and_parts_of_one_are_read_in_the_order_of_time(self, wires, line):
        beats(line, 0, 4)
        whole = read(wires).frames()
        assert Read(pcap(wires[5:]), pcapng(wires[:5])).frames() == whole
        halves = [[segment for segment in wires if segment.source == side] for side in (CLIENT, BROKER)]
        assert Read(*(pcap(half) for half in halves)).frames() == whole


def test_a_fin_in_a_segment_of_its_own_or_with_data_ends_the_connection(wires, line):
    beats(line, 0)
    last = request(wire.LeaveGroupRequest(group_id="g", members=()), 5, 1)
    line._send(0, FIN | PSH | ACK, last)
    line._send(1, FIN | PSH | ACK, response(wire.LeaveGroupResponse(), 5, 1))
    assert read(wires).told()[-3:] == ["req 13 #1", "res 13 #1", "close"]


def test_half_a_gigabyte_in_flight_wraps_nothing(wires):
    line = Connection(wires, initial=(2**32 - 20, 2**32 - 10)).open()
    beats(line, 0, 3)
    assert [segment.sequence & 0xFFFFFFFF for segment in wires][-1] < 1000
    assert read(wires).told() == ["open", *(f"{kind} 12 #{number}" for number in range(3) for kind in ("req", "res"))]


# --- the end of a client --------------------------------------------------------------------------------------------


def test_a_clients_FIN_ends_its_connection_while_the_coordinator_holds_its_JoinGroup():
    """The broker notices nothing until it answers, and its own FIN comes minutes later."""
    packets_ = []
    connection = Connection(packets_).open()
    connection.heartbeat(0)
    connection.ask(wire.JoinGroupRequest(group_id="g", member_id="m-1"), 3, 1)
    connection.wait(5_000)
    connection.finish(0)
    finished_us = packets_[-1].at_us
    connection.wait(60_000)
    connection.answer(wire.JoinGroupResponse(generation_id=4, leader="m-2", member_id="m-1"), 3, 1)
    connection.reset()
    read = Read(pcap(packets_))
    assert read.told()[-4:] == ["res 12 #0", "req 11 #1", "close", "res 11 #1"]
    assert read.records[-2].at_us == finished_us


def test_a_clients_FIN_waits_for_the_answer_to_what_the_coordinator_does_not_hold():
    packets_ = []
    connection = Connection(packets_).open()
    connection.heartbeat(0)
    connection.ask(wire.LeaveGroupRequest(group_id="g"), 3, 1)
    connection.finish(0)
    connection.wait(50)
    connection.answer(wire.LeaveGroupResponse(), 3, 1)
    finished_us = packets_[-2].at_us
    connection.finish(1)
    read = Read(pcap(packets_))
    assert read.told()[-2:] == ["res 13 #1", "close"]
    assert read.records[-1].at_us == finished_us

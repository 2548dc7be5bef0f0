"""Request logs say what a tap before the broker said. Brokers of 2.8 to 4.4 wrote those in ``request_logs``, with a tap before them."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import re
import tracemalloc
from collections import Counter
from statistics import median

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from coordinator_model import wire
from coordinator_model.finding import Finding
from coordinator_model.settings import Settings
from coordinator_model.wire.record import NO_END, Cause, Kind, MirrorRecord, unpack_loss, unpack_topics
from streaming.engine.engine import Engine
from streaming.mirror.broker_log import scan
from streaming.mirror.broker_log.history import CoordinatorHistory
from streaming.mirror.broker_log.reader import RequestLogReader
from streaming.mirror.broker_log.scan import Scanner, is_broker_log
from streaming.mirror.broker_log.times import FileClock
from streaming.mirror.pcap.files import opened
from streaming.mirror.record_file import records
from tests.streaming.mirror.request_log_lines import BASE_S, BY_BROKERS, HEARTBEAT, RELEASES, heartbeat, request_line

ELSEWHERE = "10.0.0.1:9092-10.0.0.8:4-0-2"
JOIN = wire.JoinGroupRequest(
    group_id="billing", session_timeout_ms=10_000, rebalance_timeout_ms=60_000, member_id="m-1", protocol_type="consumer"
)
JOINED = wire.JoinGroupResponse(generation_id=4, protocol_type="consumer", protocol_name="range", leader="m-2", member_id="m-1")
SYNC = wire.SyncGroupRequest(group_id="billing", generation_id=4, member_id="m-1", protocol_type="consumer", protocol_name="range")


class Read:
    """What a reader makes of logs."""

    def __init__(self, *logs: bytes, **options) -> None:
        self.all: list[MirrorRecord] = []
        self.damage: list[str] = []
        self.reader = RequestLogReader(self.all.append, **options)
        self.reader.read([self.reader.entries_in(opened(io.BytesIO(log)), self.damage.append) for log in logs])
        self.reader.finish()
        self.records = [record for record in self.all if record.kind not in (Kind.TICK, Kind.OPEN)]

    def kinds(self) -> list[str]:
        return [f"{record.kind.value} {record.api_key}" if record.api_key >= 0 else record.kind.value for record in self.records]

    def at_ms(self) -> list[float]:
        return [(record.at_us - BASE_S * 1_000_000) / 1_000 for record in self.records]

    def counted(self) -> dict[str, int]:
        return dict(self.reader.lines.counts)


def findings(found: list[MirrorRecord]) -> Counter[tuple]:
    told: dict[str, Finding] = {}
    engine = Engine(topic="log", settings=Settings(), found=lambda finding: told.update({finding.id: finding}))
    for record in found:
        engine.recorded(record)
    engine.finish()
    return Counter((finding.rule, finding.group, finding.client_id, finding.member_id) for finding in told.values())


def frames(found: list[MirrorRecord]) -> Counter[tuple]:
    return Counter(
        (record.group, record.kind, record.exchange, record.api_key, record.client_id, record.client_software, record.frame)
        for record in found
        if record.kind in (Kind.REQUEST, Kind.RESPONSE)
    )


@pytest.mark.parametrize("release", RELEASES)
class TestBrokers:
    def test_the_log_gives_the_frames_of_a_tap_byte_by_byte(self, release):
        tapped = list(records(opened((BY_BROKERS / f"{release}.records.xz").open("rb")), pytest.fail))
        found = Read((BY_BROKERS / f"{release}.log.xz").read_bytes())
        assert frames(found.all) == frames(tapped)
        assert sum(frames(tapped).values()) > 150
        assert (found.counted(), found.reader.lines.unknown_fields, found.damage) == ({}, {}, [])

    def test_the_log_gives_the_findings_of_a_tap(self, release):
        tapped = list(records(opened((BY_BROKERS / f"{release}.records.xz").open("rb")), pytest.fail))
        assert findings(Read((BY_BROKERS / f"{release}.log.xz").read_bytes()).all) == findings(tapped)

    def test_the_times_are_those_of_a_tap(self, release):
        """But for the milliseconds in which the line is made, on a machine that has other work."""
        tapped = list(records(opened((BY_BROKERS / f"{release}.records.xz").open("rb")), pytest.fail))
        found = Read((BY_BROKERS / f"{release}.log.xz").read_bytes()).all
        seen = {(one.client_id, one.exchange, one.kind, one.frame): one.at_us for one in tapped if one.api_key > 0}
        offsets = [one.at_us - seen[one.client_id, one.exchange, one.kind, one.frame] for one in found if one.api_key > 0]
        zone_us = 900_000_000 * round(median(offsets) / 900_000_000)
        assert abs(median(offsets) - zone_us) < 5_000


class TestLayouts:
    @pytest.mark.parametrize("path", sorted((BY_BROKERS / "layouts").glob("*.xz")), ids=lambda path: path.name)
    def test_a_layout_of_log4j2_says_what_the_others_say(self, path):
        expected = Read((BY_BROKERS / "layouts" / "kafka-request.log.xz").read_bytes())
        found = Read(path.read_bytes())
        assert frames(found.all) == frames(expected.all)
        assert found.counted() == {}

    @pytest.mark.parametrize(
        ("before", "at_us"),
        [
            ("2023-11-14T22:13:20.250Z ", 250_000),
            ("2023-11-14T23:13:20.250123+0100 ", 250_123),
            ("[2023-11-14T22:13:20,250+00:00] ", 250_000),
            ("1700000000250 DEBUG ", 250_000),
            ("2023-11-14T22:13:20.250123456Z stdout F [2023-11-14 22:13:20,2] DEBUG ", 250_123),
        ],
    )
    def test_a_time_before_the_message_is_read(self, before, at_us):
        line = heartbeat(0).split(b"DEBUG ", 1)[1]
        found = Read(before.encode() + line)
        assert found.records[-1].at_us == BASE_S * 1_000_000 + at_us

    @pytest.mark.parametrize(
        "fields",
        [
            {"instant": {"epochSecond": BASE_S, "nanoOfSecond": 250_000_000}, "level": "DEBUG"},
            {"timeMillis": BASE_S * 1000 + 250},
            {"@timestamp": "2023-11-14T22:13:20.250Z"},
            {"timestamp": BASE_S * 1000 + 250},
        ],
    )
    def test_a_layout_of_json_is_read(self, fields):
        text = heartbeat(0).decode().split("DEBUG ", 1)[1].removesuffix(" (kafka.request.logger)\n")
        found = Read(json.dumps({**fields, "message": text}).encode() + b"\n")
        assert found.kinds() == ["req 12", "res 12"]
        assert found.at_ms()[-1] == 250

    def test_a_line_without_date_is_counted(self):
        found = Read(b"22:13:20,250 DEBUG " + heartbeat(0).split(b"DEBUG ", 1)[1])
        assert found.counted() == {"have no date and time before the message": 1}

    def test_of_whole_seconds_the_order_of_the_lines_decides(self):
        """A request took as long as its line says, and follows the answer before it; the step says that times are no finer."""
        lines = (heartbeat(over_ms, took_ms=took_ms) for over_ms, took_ms in ((100, 10), (500, 200), (700, 100), (1_800, 50)))
        found = Read(b"".join(re.sub(rb",\d{3}\]", b"]", line) for line in lines))
        assert found.at_ms() == [-11.0, 0.0, 0.0, 201.0, 201.0, 302.0, 949.0, 1000.0]
        assert {record.step_us for record in found.records} == {1_000_000}


class TestTimes:
    def test_requests_are_told_in_the_order_in_which_the_broker_took_them(self):
        parked = request_line(JOIN, JOINED, over_ms=9_000, took_ms=8_000, connection=ELSEWHERE)
        found = Read(heartbeat(500) + heartbeat(3_000) + heartbeat(6_000) + parked)
        assert found.kinds() == ["req 12", "res 12", "req 11", *["req 12", "res 12"] * 2, "res 11"]
        assert found.at_ms() == [498, 500, 999, 2998, 3000, 5998, 6000, 9000]

    def test_a_broker_takes_the_next_request_when_it_has_answered_this_one(self):
        found = Read(heartbeat(100) + heartbeat(101, took_ms=50))
        assert found.at_ms() == [98, 100, 100, 101]

    def test_logs_of_several_brokers_are_merged(self):
        other = b"".join(heartbeat(at, connection="10.0.0.2:9092-10.0.0.9:5-0-1") for at in (200, 400))
        found = Read(heartbeat(100) + heartbeat(300), other)
        assert found.at_ms() == sorted(found.at_ms())
        assert {record.broker for record in found.records} == {"10.0.0.1:9092", "10.0.0.2:9092"}

    def test_rotated_files_are_one_log_in_whatever_order_they_are_given(self):
        parts = [b"".join(heartbeat(at + step, correlation_id=at) for step in (0, 50)) for at in (100, 200, 300)]
        found = Read(gzip.compress(parts[2]), lzma.compress(parts[0]), parts[1])
        assert found.at_ms() == Read(b"".join(parts)).at_ms()
        assert len({record.connection for record in found.records}) == 1

    def test_seconds_without_group_lines_have_ticks_as_far_as_the_log_goes(self):
        found = Read(heartbeat(0) + request_line(HEARTBEAT, wire.HeartbeatResponse(), over_ms=5_000, header={"requestApiKey": 1}))
        assert [record.at_us / 1_000_000 - BASE_S for record in found.all if record.kind is Kind.TICK] == [0, 1, 2, 3, 4, 5]

    def test_a_long_pause_of_the_log_has_no_ticks(self):
        found = Read(heartbeat(0) + heartbeat(600_000))
        assert sum(record.kind is Kind.TICK for record in found.all) <= 2

    def test_a_long_pause_in_which_a_request_waited_has_ticks(self):
        waited = request_line(JOIN, JOINED, over_ms=300_000, took_ms=299_000, connection=ELSEWHERE)
        assert sum(record.kind is Kind.TICK for record in Read(heartbeat(0) + waited).all) >= 299


class TestWaiting:
    """A request that waits is not in the log."""

    def test_a_member_that_may_wait_at_the_end_of_the_log_gets_a_gap(self):
        told = heartbeat(1_000, 27)
        other = wire.HeartbeatRequest(group_id="billing", generation_id=3, member_id="m-2")
        others = b"".join(
            request_line(other, wire.HeartbeatResponse(), over_ms=at, connection=ELSEWHERE, client_id="b")
            for at in range(1_500, 60_000, 3_000)
        )
        found = Read(told + others)
        gap = next(record for record in found.records if record.kind is Kind.GAP)
        assert (gap.group, gap.connection) == ("billing", "10.0.0.1:9092-10.0.0.7:40000-0-1")
        assert unpack_loss(gap.frame).cause == Cause.MAY_WAIT
        assert {rule for rule, *_ in findings(found.all)} == {"V-04"}

    def test_one_whose_answer_comes_later_gets_none(self):
        parked = request_line(JOIN, JOINED, over_ms=50_000, took_ms=48_000)
        assert "gap" not in Read(heartbeat(1_000, 27) + parked + heartbeat(51_000)).kinds()

    def test_one_that_is_silent_for_longer_than_requests_wait_gets_none(self):
        other = wire.HeartbeatRequest(group_id="billing", generation_id=3, member_id="m-2")
        lines = (
            request_line(other, wire.HeartbeatResponse(), over_ms=at, connection=ELSEWHERE) for at in range(1_500, 400_000, 3_000)
        )
        others = b"".join(lines)
        assert "gap" not in Read(heartbeat(1_000, 27) + others).kinds()

    def test_one_that_goes_on_over_another_connection_gets_one(self):
        """Its request waited while the first connection was closed, and is never logged."""
        later = request_line(SYNC, wire.SyncGroupResponse(), over_ms=20_000, connection="10.0.0.1:9092-10.0.0.7:40001-0-2")
        others = b"".join(heartbeat(at, connection=ELSEWHERE) for at in range(21_000, 400_000, 3_000))
        assert "gap" in Read(request_line(JOIN, JOINED, over_ms=1_000) + later + others).kinds()

    def test_one_that_joins_on_one_connection_and_sends_heartbeats_on_another_gets_none(self):
        """As franz-go does: a member sends no Heartbeat while its JoinGroup waits."""
        joins = request_line(JOIN, JOINED, over_ms=1_000) + request_line(SYNC, wire.SyncGroupResponse(), over_ms=1_010)
        settled = b"".join(heartbeat(at, connection=ELSEWHERE) for at in range(4_000, 60_000, 3_000))
        again = request_line(JOIN, JOINED, over_ms=61_000) + request_line(SYNC, wire.SyncGroupResponse(), over_ms=61_010)
        later = b"".join(heartbeat(at, connection=ELSEWHERE) for at in range(64_000, 90_000, 3_000))
        assert "gap" not in Read(joins + settled + again + later).kinds()

    def test_a_leader_that_sends_no_assignment_gets_none(self):
        leads = wire.JoinGroupResponse(
            generation_id=4, protocol_type="consumer", protocol_name="range", leader="m-1", member_id="m-1"
        )
        found = Read(request_line(JOIN, leads, over_ms=1_000) + heartbeat(9_000, connection=ELSEWHERE))
        assert "gap" not in found.kinds()

    def test_what_waited_longer_than_records_are_held_back_is_a_gap(self):
        parked = request_line(JOIN, JOINED, over_ms=30_000, took_ms=25_000, connection=ELSEWHERE)
        found = Read(heartbeat(1_000) + heartbeat(20_000) + parked, held_back_us=5_000_000, held_at_least=0)
        assert found.kinds()[2:] == ["gap", "req 11", "req 12", "res 12", "res 11"]
        assert found.at_ms() == sorted(found.at_ms())
        assert found.reader.counts["exchanges that waited longer than records are held back"] == 1

    def test_a_broker_that_was_started_anew_has_lost_its_connections(self):
        """Each thread of its listener numbers its connections from 0 on. When it was last heard of is when they ended."""
        other = {"connection": "10.0.0.1:9092-10.0.0.8:4-0-2", "client_id": "b"}
        elsewhere = {"connection": "10.0.0.2:9092-10.0.0.7:40000-0-1", "client_id": "c"}
        again = {"connection": "10.0.0.1:9092-10.0.0.7:50000-0-1"}
        found = Read(heartbeat(0) + heartbeat(10, **elsewhere) + heartbeat(20, **other) + heartbeat(9_000, **again))
        ended = [
            (record.connection, at) for record, at in zip(found.records, found.at_ms(), strict=True) if record.kind is Kind.CLOSE
        ]
        assert ended == [("10.0.0.1:9092-10.0.0.7:40000-0-1", 20), (other["connection"], 20)]

    @pytest.mark.parametrize(("first", "second"), [("-1", "-1"), ("-0-1", "-1-1"), ("-0-1", "-0-2")])
    def test_connections_of_one_life_of_a_broker_go_on(self, first, second):
        """Up to Kafka 3.9 a connection's name does not say which thread has it."""
        one, two = {"connection": f"10.0.0.1:9092-10.0.0.7:40000{first}"}, {"connection": f"10.0.0.1:9092-10.0.0.8:5{second}"}
        assert "close" not in Read(heartbeat(0, **one) + heartbeat(10, **two) + heartbeat(20, **one)).kinds()

    def test_members_of_a_broker_that_was_away_are_not_called_silent(self):
        """Nor where nothing shows that it was away: it answered nobody meanwhile, so nothing shows that it counted their sessions."""

        def lives(member: str, processor: int, number: int) -> bytes:
            of = {"member_id": member, "group_id": "billing", "generation_id": 3}
            asks = wire.JoinGroupRequest(
                group_id="billing",
                session_timeout_ms=10_000,
                rebalance_timeout_ms=60_000,
                member_id=member,
                protocol_type="consumer",
            )
            told = wire.JoinGroupResponse(
                generation_id=3, protocol_type="consumer", protocol_name="range", leader="m-1", member_id=member
            )
            sync = wire.SyncGroupRequest(**of, protocol_type="consumer", protocol_name="range")
            before, later = (
                {"connection": f"10.0.0.1:9092-10.0.0.7:{port}-{processor}-{one}", "client_id": member}
                for port, one in ((40_000 + processor, 1), (50_000 + processor, number))
            )
            began = request_line(asks, told, over_ms=500, **before) + request_line(
                sync, wire.SyncGroupResponse(), over_ms=600, **before
            )
            beats = [(1_000 * at, before if at < 20 else later) for at in (*range(1, 20), *range(50, 60))]
            answer = wire.HeartbeatResponse()
            return began + b"".join(request_line(wire.HeartbeatRequest(**of), answer, over_ms=at, **by) for at, by in beats)

        told = {number: findings(Read(lives("m-1", 0, number), lives("m-2", 1, number)).all) for number in (1, 7)}
        assert [rule for rule, *_ in told[1] if rule in ("C-14", "T-04", "T-09")] == ["C-14"]
        assert [rule for rule, *_ in told[7] if rule in ("C-14", "T-04", "T-09")] == []

    def test_the_summary_says_what_such_a_log_cannot_show(self):
        assert any("stuck at the log's end is not seen" in sentence for sentence in Read(heartbeat(0)).reader.notes())


class TestContent:
    def test_connection_software_and_opening_are_told(self):
        opening = request_line(
            wire.ApiVersionsRequest(client_software_name="apache-kafka-java", client_software_version="4.3.1"),
            wire.ApiVersionsResponse(),
            over_ms=10,
        )
        found = Read(opening + heartbeat(20))
        assert found.kinds() == ["req 18", "res 18", "req 12", "res 12"]
        assert [(record.at_us, record.frame) for record in found.all if record.kind is Kind.OPEN] == [
            (found.records[0].at_us, NO_END)
        ]
        assert {(record.client_address, record.client_software) for record in found.records[2:]} == {
            ("10.0.0.7", "apache-kafka-java 4.3.1")
        }

    def test_principal_and_listener_are_told(self):
        found = Read(heartbeat(1_000) + heartbeat(2_000))
        assert {record.principal for record in found.records} == {"User:billing by CLIENTS (SASL_SSL)"}
        nobody = Read(heartbeat(0, principal="User:ANONYMOUS", securityProtocol="PLAINTEXT"))
        assert {record.principal for record in nobody.records} == {""}

    def test_a_connection_older_than_the_log_has_its_software_and_no_end_either(self):
        found = Read(heartbeat(20))
        assert found.kinds() == ["req 12", "res 12"]
        assert [record.frame for record in found.all if record.kind is Kind.OPEN] == [NO_END]
        assert found.records[0].client_software == "apache-kafka-java 4.3.1"

    def test_addresses_of_ipv6_are_short(self):
        found = Read(heartbeat(20, connection="0:0:0:0:0:0:0:1:9092-fd00:0:0:0:0:0:0:7:40000-0-1"))
        assert (found.records[0].broker, found.records[0].client_address) == ("::1:9092", "fd00::7")

    def test_names_of_topics_and_numbers_of_their_partitions_come_from_metadata(self):
        header = {"requestApiKey": 3, "requestApiVersion": 12}
        topics = [
            {"errorCode": 0, "name": "orders", "topicId": "pJwRyUmXT3GkVn3LSdzyJw", "partitions": [{}, {}]},
            {"errorCode": 0, "name": "old", "topicId": "A" * 22, "partitions": [{}]},
            {"errorCode": 29, "name": "secret", "topicId": "A" * 22, "partitions": []},
        ]
        line = heartbeat(10, header=header, response={"topics": topics})
        found = Read(line + line)
        told = ({"pJwRyUmXT3GkVn3LSdzyJw": "orders"}, {"orders": 2, "old": 1})
        assert [unpack_topics(record.frame) for record in found.records] == [told]

    def test_fields_and_versions_of_a_newer_kafka_are_counted(self):
        newer = heartbeat(10).replace(b'"groupId":"billing"', b'"groupId":"billing","colour":"red"')
        version = heartbeat(20).replace(b'"requestApiVersion":4', b'"requestApiVersion":9')
        found = Read(newer + version)
        assert len(found.records) == 4
        assert found.reader.lines.unknown_fields == {"HeartbeatRequest.colour": 1, "HeartbeatRequest v9": 1}

    def test_a_forwarded_request_is_passed_over(self):
        assert Read(heartbeat(10, isForwarded=True)).records == []


class TestNothing:
    @pytest.mark.parametrize(
        ("log", "why"),
        [
            (
                b"[2023-11-14 22:13:20,250] DEBUG Completed request:RequestHeader(apiKey=HEARTBEAT, apiVersion=4) -- {}\n",
                "is a request log of Kafka 2.7 or older",
            ),
            (b"[2023-11-14 22:13:20,250] INFO [GroupCoordinator 1]: started\n", "has neither a request line nor a coordinator's"),
            (heartbeat(0, header={"requestApiKey": 1}), "none of a group"),
            (heartbeat(0)[:-200], "are cut or interleaved with others"),
        ],
    )
    def test_it_is_said_why_there_is_nothing(self, log, why):
        found = Read(log)
        assert why in (found.reader.why_nothing() or "")
        assert is_broker_log(opened(io.BytesIO(log)))

    @pytest.mark.parametrize(
        "other", [b"", b"\xd4\xc3\xb2\xa1" + bytes(40), b"\x00\x01binary", b'{"request": true, "api_key": 12}']
    )
    def test_other_files_are_no_logs(self, other):
        assert not is_broker_log(opened(io.BytesIO(other)))


class TestHostile:
    """Whatever a line says, it is counted, and its groups get a gap."""

    @pytest.mark.parametrize(
        ("old", "new", "reason"),
        [
            (b'"totalTimeMs":1.0', b'"totalTimeMs":"x"', "have a value of the wrong type"),
            (b'"totalTimeMs":1.0', b'"totalTimeMs":1e300', "have an impossible duration"),
            (b'"totalTimeMs":1.0', b'"totalTimeMs":NaN', "contradict themselves"),
            (b'"totalTimeMs":1.0', b'"totalTimeMs":-5', "have an impossible duration"),
            (b'"generationId":3', b'"generationId":"3"', "contradict themselves"),
            (b'"generationId":3', b'"generationId":99999999999', "contradict themselves"),
            (b'"groupId":"billing"', b'"groupId":["billing"]', "contradict themselves"),
            (b'"groupId":"billing",', b"", "contradict themselves"),
            (b'"correlationId":1', b'"correlationId":true', "have a value of the wrong type"),
            (b'"connection":"10.0.0.1:9092-10.0.0.7:40000-0-1"', b'"connection":7', "name no connection"),
            (b'"request":{', b'"request":[],"other":{', "contradict themselves"),
            (b'"clientId":"app"', b'"clientId":"\\ud800"', "contradict themselves"),
            (b"Completed request:", b"Completed request:[1,2]", "hold no object"),
            (b"}", b"", "are cut or interleaved with others"),
        ],
    )
    def test_a_line_with_something_wrong_is_counted(self, old, new, reason):
        found = Read(heartbeat(0) + heartbeat(10).replace(old, new) + heartbeat(20))
        assert found.counted() == {reason: 1}
        assert found.kinds() == ["req 12", "res 12", "gap", "req 12", "res 12"]

    def test_base64_that_is_none_is_counted(self):
        line = request_line(SYNC, wire.SyncGroupResponse(assignment=b"abc"), over_ms=1).replace(b"YWJj", b"Y*Jj")
        assert Read(line).counted() == {"contradict themselves": 1}

    def test_a_line_without_end_is_not_collected(self, monkeypatch):
        monkeypatch.setattr(scan, "LONGEST_LINE", 1_000_000)
        counts: Counter[str] = Counter()
        scanner = Scanner(counts)
        found = [line for _ in range(100) for line in scanner.feed(b'"requestApiKey":12,' * 50_000)]
        found += [*scanner.feed(b"\n" + heartbeat(0)), *scanner.finish()]
        assert found == [heartbeat(0)[:-1]]
        assert counts["lines of more than 16 MiB"] == 1
        assert scanner._rest_size == 0

    def test_100_megabytes_without_a_line_end_need_no_more_memory_than_the_longest_line(self):
        counts: Counter[str] = Counter()
        scanner = Scanner(counts)
        tracemalloc.start()
        try:
            found = [line for _ in range(100) for line in scanner.feed(b"".join([b'"requestApiKey":12,'] * 53_000))]
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        found += [*scanner.feed(b"\n" + heartbeat(0)), *scanner.finish()]
        assert (found, counts["lines of more than 16 MiB"]) == ([heartbeat(0)[:-1]], 1)
        assert peak < 3 * scan.LONGEST_LINE

    def test_deep_nesting_is_counted(self):
        line = heartbeat(0).replace(b'"request":{', b'"request":' + b'{"a":' * 100_000 + b"{")
        assert sum(Read(line).counted().values()) == 1

    @given(st.integers(0, 400), st.integers(1, 400))
    def test_lines_that_two_threads_wrote_into_one_another_are_counted(self, at, size):
        one, other = heartbeat(10), heartbeat(20)
        found = Read(heartbeat(0) + one[:at] + other[:size] + one[at:] + other[size:] + heartbeat(30))
        broken = (one[:at] + other[:size] + one[at:] + other[size:]).splitlines()
        named = sum(b"requestApiKey" in line for line in broken)
        counts = found.reader.counts
        assert counts["exchanges"] + counts["other requests"] + sum(found.counted().values()) >= 2 + named
        assert found.reader.counts["exchanges"] >= 2

    def test_what_a_coordinator_says_is_made_text_before_it_is_a_record(self):
        said = "[GroupCoordinator id=1] Member m\\ud800 in group billing has failed, removing it from the group."
        line = b'{"timeMillis": 1700000000500, "message": "%s"}\n' % said.encode()
        found = Read(heartbeat(0) + line + heartbeat(1_000))
        assert [record.frame for record in found.records if record.kind is Kind.EXPIRED] == [b"m?"]

    @given(st.data())
    def test_damage_anywhere_never_raises(self, data):
        lines = bytearray(heartbeat(0) + request_line(JOIN, JOINED, over_ms=5) + heartbeat(20))
        for _ in range(data.draw(st.integers(1, 6))):
            at = data.draw(st.integers(0, len(lines) - 1))
            size = data.draw(st.integers(0, 300))
            lines[at : at + size] = data.draw(
                st.binary(max_size=20) | st.sampled_from([b"\n", b'"', b"{", b"null", b"[]", b"1e999"])
            )
            lines = lines or bytearray(b"x")
        found = Read(bytes(lines))
        assert sum(found.counted().values()) + found.reader.counts["exchanges"] <= lines.count(b"requestApiKey") + 1
        found.reader.why_nothing()
        list(found.reader.notes())

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["groupId", "members", "errorCode"]), inner)
            ),
            max_leaves=8,
        ),
        st.sampled_from(["request", "response", "requestHeader", "connection", "clientInformation", "totalTimeMs", "isForwarded"]),
    )
    @example([], "requestHeader")
    def test_other_json_in_any_place_never_raises(self, value, place):
        found = Read(heartbeat(0, **{place: value}), heartbeat(10))
        assert found.reader.counts["exchanges"] + sum(found.counted().values()) <= 2

    @given(st.lists(st.integers(1, 200), min_size=1, max_size=40))
    def test_lines_come_out_the_same_in_whatever_portions(self, sizes):
        log = b"".join(heartbeat(at, header={"requestApiKey": key}) for at, key in ((0, 12), (1, 1), (2, 0), (3, 12)))
        whole = list(Scanner(Counter()).feed(log))
        scanner, found, at = Scanner(Counter()), [], 0
        for size in [*sizes, len(log)]:
            found += scanner.feed(log[at : at + size])
            at += size
        found += scanner.finish()
        assert [line for line in found if b'"requestApiKey":12' in line] == [
            line for line in whole if b'"requestApiKey":12' in line
        ]


class TestUnreadLines:
    """A line that cannot be read is a gap of the group that its beginning names, and of all groups if it names none."""

    @pytest.mark.parametrize(
        ("line", "group"),
        [
            (request_line(JOIN, JOINED, over_ms=500)[:260] + b"\n", "billing"),
            (request_line(JOIN, JOINED, over_ms=500)[:150] + b"\n", None),
            (heartbeat(500, correlation_id=2**31), "billing"),
            (heartbeat(500).replace(b"billing", b'bil\\"ling').replace(b'"connection"', b'"', 1), 'bil"ling'),
            (heartbeat(500).replace(b"billing", b"bil\x00ling").replace(b'"connection"', b'"', 1), None),
            (heartbeat(500).replace(b"billing", b"bil\\ud800").replace(b'"connection"', b'"', 1), None),
        ],
        ids=[
            "cut behind the group",
            "cut before the group",
            "contradicts itself",
            "a group with a quote",
            "control",
            "half a pair",
        ],
    )
    def test_it_is_a_gap_at_its_time(self, line, group):
        found = Read(heartbeat(0) + line + heartbeat(1_000))
        gaps = [record for record in found.records if record.kind is Kind.GAP]
        assert [(one.group, one.at_us - BASE_S * 1_000_000) for one in gaps] == [(group, 500_000)]
        assert unpack_loss(gaps[0].frame).cause == Cause.UNREADABLE
        assert sum(found.counted().values()) == 1

    def test_one_without_a_time_is_a_gap_at_that_of_the_line_before(self):
        found = Read(heartbeat(700) + b"Completed request:" + request_line(JOIN, JOINED, over_ms=0).split(b"request:", 1)[1][:220])
        assert [record.at_us - BASE_S * 1_000_000 for record in found.records if record.kind is Kind.GAP] == [700_000]

    def test_one_in_a_layout_of_json_names_its_group(self):
        text = request_line(JOIN, JOINED, over_ms=500).decode().split("DEBUG ", 1)[1]
        line = json.dumps({"@timestamp": "2023-11-14T22:13:20.500Z", "message": text})[:330].encode() + b"\n"
        found = Read(heartbeat(0) + line)
        assert [(one.group, one.at_us - BASE_S * 1_000_000) for one in found.records if one.kind is Kind.GAP] == [
            ("billing", 500_000)
        ]

    def test_one_that_changes_no_group_is_none(self):
        request = wire.DescribeGroupsRequest(groups=("billing",))
        found = Read(heartbeat(0) + request_line(request, wire.DescribeGroupsResponse(), over_ms=500)[:240] + b"\n")
        assert [record for record in found.records if record.kind is Kind.GAP] == []


class TestAnswersAlone:
    """Requests that waited when the logger was switched on are null in their lines, which show the answers."""

    LINE = re.sub(rb'"request":{.*?},"resp', b'"request":null,"resp', request_line(JOIN, JOINED, over_ms=500, took_ms=900))

    def test_the_answer_is_read_for_the_group_that_the_connection_names(self):
        found = Read(self.LINE + heartbeat(1_000))
        assert found.kinds() == ["res 11", "req 12", "res 12"]
        [answer, *_] = found.records
        assert (answer.group, answer.at_us - BASE_S * 1_000_000, answer.exchange) == ("billing", 500_000, 0)
        decoded = wire.decode(answer.frame, request=False, api_key=11, api_version=answer.api_version)
        assert (decoded.body, decoded.correlation_id) == (JOINED, 1)
        assert found.counted() == {}

    def test_it_is_counted_where_no_line_names_its_group(self):
        found = Read(self.LINE)
        assert (found.records, found.reader.why_nothing(), found.counted()) == ([], None, {})
        assert "1 answers to requests that waited when the logger was switched on, which it does not show" in found.reader.notes()


class TestCollectors:
    """What collectors of logs export."""

    LINE = heartbeat(250).decode().removesuffix("\n")

    @pytest.mark.parametrize(
        "log",
        [
            json.dumps({"MESSAGE": LINE, "__REALTIME_TIMESTAMP": "1", "PRIORITY": "6"}),
            json.dumps({"textPayload": LINE, "insertId": "a", "timestamp": "2023-11-14T22:13:20.250Z"}),
            json.dumps({"line": LINE, "labels": {"app": "kafka"}, "timestamp": "2023-11-14T22:13:20.250Z"}),
            json.dumps([{"textPayload": LINE, "insertId": "a"}], indent=2),
            json.dumps({"events": [{"timestamp": 1, "message": LINE, "eventId": "3"}], "searchedLogStreams": []}, indent=4),
        ],
        ids=["journalctl -o json", "gcloud", "logcli -o jsonl", "gcloud --format json", "aws logs filter-log-events"],
    )
    def test_a_line_in_json_is_read(self, log):
        found = Read(log.encode() + b"\n")
        assert (found.kinds(), found.at_ms()[-1], found.counted()) == (["req 12", "res 12"], 250, {})

    TABLE = b"@timestamp,@message,@logStream\n"
    AS_JSON = "export it as JSON, as aws logs filter-log-events --log-group-name NAME does"
    BEGAN = (
        "[2023-11-14 22:13:20,250] INFO [GroupCoordinator 1]: Stabilized group billing generation 3 (__consumer_offsets-7) with 2 members "
        "(kafka.coordinator.group.GroupCoordinator)"
    )

    def row(self, line: str) -> bytes:
        """A row as CloudWatch Insights exports it."""
        cell = line.replace('"', '""')
        return f'2023-11-14 22:13:20.250,"{cell}",broker-1\n'.encode()

    @pytest.mark.parametrize("lines", [[LINE], [BEGAN], [BEGAN, LINE, BEGAN]], ids=["requests", "coordinator", "both"])
    def test_a_table_is_refused_with_the_command_that_gives_another_form(self, lines):
        """Its rows may stand in any order, the newest first by default."""
        reader = Read(self.TABLE + b"".join(map(self.row, lines)), story=CoordinatorHistory(pytest.fail)).reader
        assert reader.why_nothing() == f"is a table of comma-separated values: {self.AS_JSON}"
        assert (reader.counts["lines in a table"], reader.counts["other requests"]) == (len(lines), 0)

    @pytest.mark.parametrize("other", [heartbeat(250), f"{BEGAN}\n".encode()], ids=["requests", "coordinator"])
    def test_a_table_beside_what_can_be_read_is_named_with_that_command(self, other):
        table = self.TABLE + self.row(self.LINE) + self.row(self.BEGAN)
        reader = Read(table, other, story=CoordinatorHistory(lambda _: None)).reader
        assert reader.why_nothing() is None
        notes = list(reader.notes())
        assert f"2 lines of a table of comma-separated values were not read: {self.AS_JSON}" in notes
        assert not [note for note in notes if note.startswith("no request line")]

    @pytest.mark.parametrize("size", [7, 100, 333, 5_000])
    @pytest.mark.parametrize("runtime", ["CRI", "Docker"])
    def test_the_parts_of_a_line_are_joined(self, runtime, size):
        """Whatever the portions in which the file is read."""
        whole = [heartbeat(250 * number, correlation_id=number).decode() for number in range(3)]
        parts = [line[at : at + 150] for line in whole for at in range(0, len(line), 150)]
        if runtime == "CRI":
            at = "2023-11-14T22:13:20.250123456Z stdout"
            log = "".join(f"{at} {'F' if part[-1] == chr(10) else 'P'} {part.rstrip(chr(10))}\n" for part in parts)
        else:
            log = "".join(json.dumps({"log": part, "stream": "stdout"}, separators=(",", ":")) + "\n" for part in parts)
        scanner, clock, reader = Scanner(Counter()), FileClock(), RequestLogReader((found := []).append)
        for at in range(0, len(log), size):
            for told in reader.entries_of(scanner.feed(log[at : at + size].encode()), clock):
                reader.take(told)
        for told in reader.entries_of(scanner.finish(), clock):
            reader.take(told)
        reader.finish()
        assert [record.api_key for record in found if record.kind is Kind.RESPONSE] == [12, 12, 12]
        assert reader.lines.counts == {}


class TestClocks:
    HOUR_MS = 3_600_000

    @pytest.mark.parametrize(
        ("zone", "ahead_minutes"), [("Z", 0), (" UTC", 0), ("+05", 300), (" -03", -180), ("+0530", 330), ("-03:30", -210)]
    )
    def test_the_zone_that_a_line_names_counts(self, zone, ahead_minutes):
        line = re.sub(rb"^\[[^\]]+\]", f"[2023-11-14 22:13:20,000{zone}]".encode(), heartbeat(0))
        assert [record.at_us // 60_000_000 for record in Read(line).records] == [BASE_S // 60 - ahead_minutes] * 2

    def test_an_hour_that_comes_twice_follows_the_first(self):
        """In the night in which clocks are set back, where lines name no zone."""
        before = [heartbeat(self.HOUR_MS - 2_000), heartbeat(self.HOUR_MS - 1_000)]
        again = [heartbeat(0), heartbeat(15_000), heartbeat(14_999), heartbeat(self.HOUR_MS - 1_000)]
        found = Read(b"".join([*before, *again, heartbeat(2 * self.HOUR_MS)]))
        answers = [at_ms for at_ms, kind in zip(found.at_ms(), found.kinds(), strict=True) if kind == "res 12"]
        hours = [round(at_ms / self.HOUR_MS, 2) for at_ms in answers]
        assert hours == [1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 2.0]
        assert answers == sorted(answers)
        assert [sentence for sentence in found.reader.notes() if "came twice" in sentence] == [
            "4 lines of an hour that came twice, since clocks were set back; their order in the file counts"
        ]

    def test_that_an_hour_came_twice_is_a_finding_and_no_group_is_learned_anew(self):
        hour = [heartbeat(self.HOUR_MS - 2_000), heartbeat(self.HOUR_MS - 1_000), heartbeat(0), heartbeat(15_000)]
        found = Read(b"".join(hour)).all
        assert [key[0] for key in findings(found)] == ["V-09"]
        events = []
        engine = Engine(topic="log", settings=Settings(), found=lambda _: None, happened=events.append)
        for record in found:
            engine.recorded(record)
        engine.finish()
        assert "sight_lost" not in {event.kind for event in events}

    def test_lines_in_another_order_than_their_times_are_no_second_hour(self):
        found = Read(heartbeat(10_000) + heartbeat(0) + heartbeat(1_000_000) + heartbeat(20_000))
        assert [sentence for sentence in found.reader.notes() if "came twice" in sentence] == []

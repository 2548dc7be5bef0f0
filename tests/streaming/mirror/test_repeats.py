"""Heartbeats like the one before are mirrored without being read: the records are those that reading gives."""

from __future__ import annotations

import io
import random

from hypothesis import given
from hypothesis import strategies as st

from coordinator_model import wire
from coordinator_model.wire.record import Kind, MirrorRecord
from streaming.mirror.captured import CapturedConversation
from streaming.mirror.captures import opened, packets
from streaming.mirror.pcap import CaptureReader
from tests.streaming.mirror.wires import BROKER, Connection, Segment, pcap, request, response

PROXY = ("10.0.0.9", 19_092)

steps = st.lists(
    st.one_of(
        st.tuples(st.just("beat"), st.integers(0, 1), st.sampled_from([0, 0, 0, 27, 25])),
        st.tuples(st.just("pipelined"), st.integers(0, 1), st.integers(2, 4)),
        st.tuples(st.just("other version"), st.integers(0, 1), st.just(0)),
        st.tuples(st.just("throttled"), st.integers(0, 1), st.just(0)),
        st.tuples(st.just("commit"), st.integers(0, 1), st.just(0)),
        st.tuples(st.just("sync"), st.integers(0, 1), st.integers(3, 5)),
        st.tuples(st.just("beat at"), st.integers(0, 1), st.integers(3, 5)),
        st.tuples(st.just("unanswered"), st.integers(0, 1), st.just(0)),
        st.tuples(st.just("lost request"), st.integers(0, 1), st.just(0)),
        st.tuples(st.just("lost response"), st.integers(0, 1), st.just(0)),
        st.tuples(st.just("garbage"), st.integers(0, 1), st.just(0)),
    ),
    min_size=3,
    max_size=25,
)


def heartbeat(member: int, correlation_id: int, version: int = 4, generation: int = 3) -> bytes:
    asked = wire.HeartbeatRequest(group_id=f"g{member}", generation_id=generation, member_id=f"m-{member}")
    return request(asked, version, correlation_id)


def sync(member: int, correlation_id: int, generation: int) -> bytes:
    asked = wire.SyncGroupRequest(group_id=f"g{member}", generation_id=generation, member_id=f"m-{member}")
    return request(asked, 5, correlation_id)


def take(line: Connection, correlation_id: int, step: tuple[str, int, int]) -> int:
    """Do one step of a life; gives the next correlation id."""
    what, member, how = step
    asked, said = heartbeat(member, correlation_id), response(wire.HeartbeatResponse(), 4, correlation_id)
    if what == "beat":
        said = response(wire.HeartbeatResponse(error_code=how), 4, correlation_id)
    elif what == "other version":
        asked, said = heartbeat(member, correlation_id, 2), response(wire.HeartbeatResponse(), 2, correlation_id)
    elif what == "throttled":
        said = response(wire.HeartbeatResponse(throttle_time_ms=500), 4, correlation_id)
    elif what == "commit":
        commit = wire.OffsetCommitRequest(group_id=f"g{member}", generation_id_or_member_epoch=3, member_id=f"m-{member}")
        asked, said = request(commit, 8, correlation_id), response(wire.OffsetCommitResponse(), 8, correlation_id)
    elif what == "sync":
        asked, said = sync(member, correlation_id, how), response(wire.SyncGroupResponse(assignment=b"a"), 5, correlation_id)
    elif what == "beat at":
        asked = heartbeat(member, correlation_id, generation=how)
    elif what == "pipelined":
        line.client(b"".join(heartbeat(member, correlation_id + index) for index in range(how)))
        line.broker(b"".join(response(wire.HeartbeatResponse(), 4, correlation_id + index) for index in range(how)))
        return correlation_id + how
    if what == "lost request":
        line.lose(lambda: line.client(asked))
    elif what == "garbage":
        line.client(asked[:-1] + b"\xff")
    else:
        line.client(asked)
    if what == "lost response":
        line.lose(lambda: line.broker(said))
        line.acknowledge(0)
    elif what != "unanswered":
        line.broker(said)
    return correlation_id + 1


def records_of(capture: bytes) -> list[MirrorRecord]:
    found: list[MirrorRecord] = []
    reader = CaptureReader(found.append)
    reader.read(packets(opened(io.BytesIO(capture)), lambda _: None))
    reader.finish()
    return found


@given(steps, st.booleans(), st.booleans(), st.integers(0, 2**31))
def test_the_records_are_those_that_reading_gives(life, midway, proxied, seed):
    wires: list[Segment] = []
    chance = random.Random(seed)
    line = Connection(wires)
    if not midway:
        line.open()
    correlation_id = chance.randrange(-(2**31), 2**31 - 100)
    for step in life:
        line.wait(chance.choice((1, 3_000)))
        correlation_id = take(line, correlation_id, step)
    if proxied:  # the same bytes, a little later, on the connection behind it
        hop = Connection([], client=PROXY, broker=("10.0.0.2", 9092))
        wires += [
            segment._replace(
                at_us=segment.at_us + 50,
                source=hop.ends[segment.source == BROKER],
                destination=hop.ends[segment.destination == BROKER],
            )
            for segment in wires
        ]
    capture = pcap(sorted(wires))
    quick = records_of(capture)
    with_reading = CapturedConversation._request_repeats, CapturedConversation._response_repeats
    CapturedConversation._request_repeats = CapturedConversation._response_repeats = lambda *_: False
    try:
        assert quick == records_of(capture)
    finally:
        CapturedConversation._request_repeats, CapturedConversation._response_repeats = with_reading
    for record in quick:
        body = getattr(record, "body", None)
        if body is not None:
            frame = wire.decode(
                record.frame, request=record.kind is Kind.REQUEST, api_key=record.api_key, api_version=record.api_version
            )
            assert (frame.body, frame.correlation_id) == (body, record.correlation_id)


def test_all_but_the_first_of_a_members_heartbeats_are_not_read(monkeypatch):
    wires: list[Segment] = []
    line = Connection(wires).open()
    for correlation_id in range(10):
        line.heartbeat(correlation_id)
    monkeypatch.setattr("streaming.mirror.conversation.decode", reading := Counting(wire.decode))
    records_of(pcap(wires))
    assert reading.times == 1


def test_nor_is_one_at_the_generation_that_it_synced_at(monkeypatch):
    wires: list[Segment] = []
    line = Connection(wires).open()
    for correlation_id in range(3):
        take(line, correlation_id, ("beat", 1, 0))
    take(line, 3, ("sync", 1, 4))
    for correlation_id in range(4, 9):
        take(line, correlation_id, ("beat at", 1, 4))
    monkeypatch.setattr("streaming.mirror.conversation.decode", reading := Counting(wire.decode))
    records = records_of(pcap(wires))
    assert reading.times == 2
    assert [record.body.generation_id for record in records if record.kind is Kind.REQUEST] == [3, 3, 3, 4, 4, 4, 4, 4, 4]


class Counting:
    """A function that counts its calls."""

    def __init__(self, function) -> None:
        self.function = function
        self.times = 0

    def __call__(self, *positional, **named):
        self.times += 1
        return self.function(*positional, **named)

"""Heartbeats and commits are taken apart into what is the same each time and what is not, whatever their version, and put together again."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_model import wire
from coordinator_model.codes import OFFSET_COMMIT
from coordinator_model.places import at_generation, places_of
from coordinator_model.pulse import Constants, Pulse

OFFSETS = st.integers(-1, 2**63 - 1)
NAMES = st.text(max_size=300)


def commit(
    version: int, topics: dict[str, list[int]], *, group: str = "g", member: str = "m", generation: int = 7
) -> wire.OffsetCommitRequest:
    """Topic → offsets of its partitions from 0 on."""
    return wire.OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member,
        topics=tuple(
            wire.OffsetCommitRequestTopic(
                name=name if version < 10 else "",
                topic_id=f"{index:021d}A" if version >= 10 else wire.OffsetCommitRequestTopic().topic_id,
                partitions=tuple(
                    wire.OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset, committed_metadata=name)
                    for partition, offset in enumerate(offsets)
                ),
            )
            for index, (name, offsets) in enumerate(topics.items())
        ),
    )


def frame_of(body: wire.OffsetCommitRequest, version: int) -> bytes:
    return wire.encode_request(body, api_version=version, correlation_id=9, client_id="client")


@given(
    version=st.integers(1, 10),
    topics=st.dictionaries(NAMES, st.lists(OFFSETS, max_size=5), max_size=4),
    group=NAMES,
    member=NAMES,
    generation=st.integers(-1, 2**31 - 1),
    further=st.data(),
)
def test_offsets_and_generation_stand_where_they_are_said_to(  # noqa: PLR0917
    version, topics, group, member, generation, further
):
    body = commit(version, topics, group=group, member=member, generation=generation)
    frame = frame_of(body, version)
    places = places_of(frame, body)
    offsets = [offset for named in topics.values() for offset in named]
    assert places is not None
    assert [struct.unpack_from(">q", frame, place)[0] for place in places.offsets] == offsets
    assert struct.unpack_from(">i", frame, places.generation)[0] == generation

    others = further.draw(st.lists(OFFSETS, min_size=len(offsets), max_size=len(offsets)))
    answer = wire.encode_response(wire.OffsetCommitResponse(), api_version=version, correlation_id=9)
    pulse = Pulse(Constants(group, "c", "1", "a#0", version, "client", "10.0.0.1:1", "", frame, answer, places.offsets))
    told = pulse.request(5, 6, 7, b"\0\0\0\x0b", struct.pack(f">{len(others)}q", *others))
    read = wire.decode(told.frame, request=True, api_key=OFFSET_COMMIT, api_version=version).body
    left = iter(others)
    topics_then = tuple(
        replace(topic, partitions=tuple(replace(partition, committed_offset=next(left)) for partition in topic.partitions))
        for topic in wire.decode(frame, request=True, api_key=OFFSET_COMMIT, api_version=version).body.topics
    )
    assert read.topics == topics_then
    assert (told.correlation_id, told.offset, told.at_us, told.exchange) == (11, 5, 6, 7)


@given(
    version=st.integers(0, 4),
    names=st.tuples(NAMES, NAMES, st.none() | NAMES),
    client_id=st.none() | NAMES,
    before=st.integers(-1, 2**31 - 1),
    after=st.integers(-1, 2**31 - 1),
)
def test_a_heartbeat_of_another_generation_is_what_would_be_written(version, names, client_id, before, after):
    group, member, instance = names

    def written(generation: int) -> tuple[bytes, wire.HeartbeatRequest]:
        who = {"group_id": group, "member_id": member, "group_instance_id": instance if version >= 3 else None}
        body = wire.HeartbeatRequest(**who, generation_id=generation)
        return wire.encode_request(body, api_version=version, correlation_id=9, client_id=client_id), body

    assert at_generation(*written(before), after) == written(after)


@given(
    version=st.integers(1, 10),
    topics=st.dictionaries(NAMES, st.lists(OFFSETS, max_size=5), max_size=4),
    generation=st.integers(-1, 99),
)
def test_so_is_a_commit(version, topics, generation):
    before, after = commit(version, topics), commit(version, topics, generation=generation)
    assert at_generation(frame_of(before, version), before, generation) == (frame_of(after, version), after)


def test_the_first_version_has_no_places():
    body = wire.OffsetCommitRequest(group_id="g", topics=commit(1, {"t": [5]}).topics)
    assert places_of(frame_of(body, 0), body) is None


@pytest.mark.parametrize("version", [8, 9])
def test_a_frame_that_we_would_write_otherwise_has_no_places(version):
    body = commit(version, {"t": [5]})
    tagged = wire.encode_request(body, api_version=version, correlation_id=9, client_id="client", header_tags=((7, b"x"),))
    assert places_of(tagged, body) is None

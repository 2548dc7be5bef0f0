"""The offsets that commits name: what the models of all kinds of groups read of them."""

from __future__ import annotations

from typing import Any, Final

from coordinator_model.groups.records import CommitFacts

POSITIONS_KEPT: Final = 256

Partition = tuple[str, int]


def read_positions(body: Any) -> CommitFacts:
    topics = []
    room, left_out = POSITIONS_KEPT, 0
    for topic in body.topics:
        entries = topic.partitions[:room]
        room -= len(entries)
        left_out += len(topic.partitions) - len(entries)
        if entries:
            partitions = tuple(entry.partition_index for entry in entries)
            topics.append((topic.name or topic.topic_id, partitions, tuple(entry.committed_offset for entry in entries)))
    return CommitFacts(tuple(topics), left_out)


def without_refused(ask: CommitFacts, refused: dict[Partition, int]) -> CommitFacts:
    topics = []
    for topic, partitions, offsets in ask.topics:
        kept = [pair for pair in zip(partitions, offsets, strict=True) if (topic, pair[0]) not in refused]
        if kept:
            topics.append((topic, tuple(partition for partition, _ in kept), tuple(offset for _, offset in kept)))
    return ask._replace(topics=tuple(topics))

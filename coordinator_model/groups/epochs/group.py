"""A group with epochs as the recorder of its rebalances sees it, and what its assignments show of topics.

The coordinator assigns all partitions of each topic.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from coordinator_model.events import PARTITIONS_ADDED, TOPIC_DELETED, TOPIC_MADE_ANEW, TOPIC_MATCHES
from coordinator_model.groups.epochs.kinds import KINDS, Kind
from coordinator_model.groups.epochs.records import Bump, EpochMember, InstanceClaim
from coordinator_model.groups.group import Group
from coordinator_model.groups.records import Partitions

UNSEEN_CAUSE: Final = "topics, a pattern or the configuration changed"


class _OfKind:
    __slots__ = ()

    traits: Kind


class EpochGroupCore(_OfKind, Group[EpochMember]):
    """A group with epochs, without the recorder of its rebalances, which stands on this."""

    kind: str = ""
    epoch: int | None = None  #: the newest seen in any success
    born_us: int = 0  #: when its first member joined; 0 if that was not seen
    bumps: list[Bump] = []
    claims: dict[str, InstanceClaim] = {}
    topic_names: dict[str, str] = {}

    def __post_init__(self) -> None:
        self.traits = KINDS[self.kind]

    def topic_text(self, topic: str) -> str:
        """Return the topic's name, its id if the name is not known."""
        return self.topic_names.get(topic) or self.facts.topic_name(self.cluster, topic) or topic


def topics_changed(group: EpochGroupCore, gained: Partitions, lost: Partitions) -> str:
    """Return what happened to a topic, empty if that is not certain. Topics are ids, under which they are assigned.

    :param gained: what members got and nobody is known to have held before.
    :param lost: what they gave up and nobody holds now.
    """
    held = {each for member in group.present_members() for each in member.holds}
    gone = {topic for topic, _ in lost} - {topic for topic, _ in held}
    named_gone = {group.topic_text(topic) for topic in gone}
    for topic in sorted({topic for topic, _ in gained}):
        if topic not in gone and group.topic_text(topic) in named_gone:
            return TOPIC_MADE_ANEW
        new = _numbers(gained, topic)
        old = _numbers(held, topic) - new
        if old and not _numbers(lost, topic) and old == set(range(len(old))) and new == set(range(len(old), len(old) + len(new))):
            return PARTITIONS_ADDED
    wanted = {name for member in group.present_members() for name in member.topics or ()}
    deleted = named_gone & wanted or any(group.facts.is_deleted(group.cluster, name) for name in named_gone)
    if deleted:
        return TOPIC_DELETED
    kept = {topic for topic, _ in held - gained}
    came = {topic for topic, _ in gained} - kept - gone
    by_pattern = all(member.pattern and member.topics == () for member in group.present_members())
    return TOPIC_MATCHES if kept and came and by_pattern else ""


def _numbers(partitions: Iterable[tuple[str, int]], topic: str) -> set[int]:
    return {number for one, number in partitions if one == topic}

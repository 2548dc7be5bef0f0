"""What the recorder of events sees of a group: it knows no handler and is known by the group's data, so imports run one way."""

from __future__ import annotations

from coordinator_model.groups.epochs.kinds import Kind
from coordinator_model.groups.epochs.records import Bump, EpochMember, InstanceClaim
from coordinator_model.groups.group import Group


class Watched(Group[EpochMember]):
    """A group with epochs, without its recorder."""

    __slots__ = ()

    epoch: int | None
    born_us: int
    traits: Kind
    bumps: list[Bump]
    claims: dict[str, InstanceClaim]
    topic_names: dict[str, str]

    def topic_text(self, topic: str) -> str:
        """Return the topic's name, its id if the name is not known."""
        return self.topic_names.get(topic) or self.facts.topic_name(self.cluster, topic) or topic

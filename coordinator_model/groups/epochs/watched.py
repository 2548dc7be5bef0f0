"""What the recorder of events sees of a group: it knows no handler and is known by the group's data, so imports run one way."""

from __future__ import annotations

from coordinator_model.groups.epochs.kinds import KINDS, Kind
from coordinator_model.groups.epochs.records import Bump, EpochMember, InstanceClaim
from coordinator_model.groups.group import Group


class _OfKind:
    __slots__ = ()

    traits: Kind


class Watched(_OfKind, Group[EpochMember]):
    """A group with epochs, without its recorder."""

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

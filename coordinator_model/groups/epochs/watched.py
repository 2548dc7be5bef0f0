"""What the recorder of events sees of a group: it knows no handler and is known by the group's data, so imports run one way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from coordinator_model.counters import Counters
from coordinator_model.event_log import EventLog
from coordinator_model.groups.epochs.kinds import Kind
from coordinator_model.groups.epochs.records import Bump, EpochMember
from coordinator_model.groups.records import Exchange, ExchangeKey


class Claimed(Protocol):
    """Refusals of one group.instance.id in a row."""

    times: int


class Watched(Protocol):
    """What the recorder reads of a group, and the two things that it writes."""

    name: str
    cluster: str
    kind: str
    incarnation: int
    epoch: int | None
    born_us: int
    traits: Kind
    counters: Counters
    members: dict[str, EpochMember]
    open: dict[ExchangeKey, Exchange]
    bumps: list[Bump]
    group_events: EventLog

    @property
    def claims(self) -> Mapping[str, Claimed]:
        """Refused instance ids."""

    @property
    def learning(self) -> bool:
        """True until the epoch of each member is known."""

    def topic_text(self, topic: str) -> str:
        """Return the topic's name, its id if the name is not known."""

"""What the recorder of events sees of a group: it knows no handler and is known by the group's data, so imports run one way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from coordinator_model.groups.epochs.kinds import Kind
from coordinator_model.groups.epochs.records import Bump, EpochMember
from coordinator_model.groups.rebalance_recorder import Recorded
from coordinator_model.groups.records import Exchange, ExchangeKey


class Claimed(Protocol):
    """Refusals of one group.instance.id in a row."""

    times: int


class Watched(Recorded, Protocol):
    """What the recorder reads of a group with epochs."""

    epoch: int | None
    born_us: int
    traits: Kind
    members: dict[str, EpochMember]
    open: dict[ExchangeKey, Exchange]
    bumps: list[Bump]

    @property
    def claims(self) -> Mapping[str, Claimed]:
        """Refused instance ids."""

    def topic_text(self, topic: str) -> str:
        """Return the topic's name, its id if the name is not known."""

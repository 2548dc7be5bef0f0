"""Which brokers acted as coordinator, when they refused to, and what they left unanswered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from coordinator_model.groups.watch import NOTHING, Happening

if TYPE_CHECKING:
    from coordinator_model.groups.classic import ClassicGroup
    from coordinator_model.groups.facts import Exchange

API_KEYS: Final = frozenset({8, 10, 11, 12, 13, 14})  # commits, FindCoordinator, JoinGroup, Heartbeat, LeaveGroup, SyncGroup


@dataclass(slots=True)
class Coordination:
    """Coordinator facts of one group."""

    def asked(self, group: ClassicGroup, exchange: Exchange, body: Any) -> tuple[Happening, ...]:  # noqa: ARG002
        return NOTHING

    def replied(self, group: ClassicGroup, exchange: Exchange, body: Any) -> tuple[Happening, ...]:  # noqa: ARG002
        return NOTHING

    def lost_sight(self, group: ClassicGroup) -> None:
        """Forget what may have changed unseen."""

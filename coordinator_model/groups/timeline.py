"""How rebalances followed each other, and how members kept their sessions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from coordinator_model.groups.watch import NOTHING, Happening

if TYPE_CHECKING:
    from coordinator_model.groups.classic import ClassicGroup
    from coordinator_model.groups.facts import Exchange

API_KEYS: Final = frozenset({11, 12, 13, 14})  # JoinGroup, Heartbeat, LeaveGroup, SyncGroup


@dataclass(slots=True)
class Timeline:
    """Timing facts of one group."""

    def asked(self, group: ClassicGroup, exchange: Exchange, body: Any) -> tuple[Happening, ...]:  # noqa: ARG002
        return NOTHING

    def replied(self, group: ClassicGroup, exchange: Exchange, body: Any) -> tuple[Happening, ...]:  # noqa: ARG002
        return NOTHING

    def lost_sight(self, group: ClassicGroup) -> None:
        """Forget what may have changed unseen."""

"""What the leader of a round assigned, what the members offered and were given.

The trap: an assignment is the leader's word about one generation of one incarnation. A static member that took over an instance after
the round inherits the old one's entry, under an id that the leader never heard of.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from coordinator_model.groups.watch import NOTHING, Happening

if TYPE_CHECKING:
    from coordinator_model.groups.classic import ClassicGroup
    from coordinator_model.groups.facts import Exchange

API_KEYS: Final = frozenset({11, 14})  # JoinGroup, SyncGroup


@dataclass(slots=True)
class Assignments:
    """Assignment and protocol facts of one group."""

    def asked(self, group: ClassicGroup, exchange: Exchange, body: Any) -> tuple[Happening, ...]:  # noqa: ARG002
        return NOTHING

    def replied(self, group: ClassicGroup, exchange: Exchange, body: Any) -> tuple[Happening, ...]:  # noqa: ARG002
        return NOTHING

    def lost_sight(self, group: ClassicGroup) -> None:
        """Forget the current round's plan."""

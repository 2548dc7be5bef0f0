"""What was committed, by whom, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from coordinator_model.groups.watch import NOTHING, Happening

if TYPE_CHECKING:
    from coordinator_model.groups.classic import ClassicGroup
    from coordinator_model.groups.facts import Exchange

API_KEYS: Final = frozenset({8, 28})  # OffsetCommit, TxnOffsetCommit


@dataclass(slots=True)
class Offsets:
    """Offset facts of one group."""

    def asked(self, group: ClassicGroup, exchange: Exchange, body: Any) -> tuple[Happening, ...]:  # noqa: ARG002
        return NOTHING

    def replied(self, group: ClassicGroup, exchange: Exchange, body: Any) -> tuple[Happening, ...]:  # noqa: ARG002
        return NOTHING

    def lost_sight(self, group: ClassicGroup) -> None:
        """Forget what may have changed unseen."""

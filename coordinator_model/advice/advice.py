"""A piece of advice: a setting, what it would have saved in which rebalances, what it assumes, and what it costs."""

from __future__ import annotations

from typing import Any, NamedTuple


class Saving(NamedTuple):
    """What rebalances would have cost less."""

    member_seconds: float = 0.0  #: in which members consumed nothing
    partition_seconds: float = 0.0  #: in which no member held a partition

    def plus(self, other: Saving) -> Saving:
        return Saving(self.member_seconds + other.member_seconds, self.partition_seconds + other.partition_seconds)

    def within(self, lost: Saving) -> Saving:
        """Return no less than nothing, and no more than what was lost."""
        return Saving(*(min(max(0.0, one), most) for one, most in zip(self, lost, strict=True)))

    def as_json(self) -> dict[str, float]:
        return {"member_seconds": round(self.member_seconds, 3), "partition_seconds": round(self.partition_seconds, 3)}


class Advice(NamedTuple):
    """What a group could set otherwise. Each piece is computed alone: savings of two do not add up."""

    cluster: str
    group: str
    kind: str  #: one of :data:`coordinator_model.advice.KINDS`
    setting: str  #: what to set, in the words of the client library that this group uses
    saves: Saving  #: expected
    saves_least: Saving  #: at least; equal to ``saves`` unless it depends on what events do not show
    saves_most: Saving  #: at most; likewise
    lost: Saving  #: what the rebalances that it is computed from cost
    rebalances: tuple[str, ...]  #: their ids, as of the events ``rebalance_finished``, in order of time
    assumes: str  #: sentences
    costs: str  #: sentences: what becomes worse

    def as_json(self) -> dict[str, Any]:
        """Return plain types: all savings and what was lost as objects, other fields as they are."""
        return {
            **self._asdict(),
            "saves": self.saves.as_json(),
            "saves_least": self.saves_least.as_json(),
            "saves_most": self.saves_most.as_json(),
            "lost": self.lost.as_json(),
            "rebalances": list(self.rebalances),
        }

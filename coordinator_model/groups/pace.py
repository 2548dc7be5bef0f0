"""At which pace a group commits: how many records in each two minutes of the last hour."""

from __future__ import annotations

from statistics import median
from typing import Any, Final

from msgspec import field

from coordinator_model.stored import Stored
from coordinator_model.wording import iso_utc

STEP_S: Final = 120
STEPS_KEPT: Final = 32  #: an hour, the step that has begun, and one that may be whole only in part
_SHOW_USUAL: Final = 5  #: steps in which something was committed


class Pace(Stored):
    """How far the offsets of a group grow. Records that a log compacts, or that transactions leave, count like others."""

    last_s: int  #: capture time of the newest accepted commit
    step: int  #: number of the newest step, from the epoch
    records: list[int] = field(
        default_factory=lambda: [0]
    )  #: of each step, the newest last; the first one began with the first commit that was seen

    @classmethod
    def since(cls, at_s: int) -> Pace:
        """Return the pace of a group whose first commit was seen now."""
        return cls(at_s, at_s // STEP_S)

    def add(self, records: int, at_s: int) -> bool:
        """Count the records of a commit; return True if a step has ended with news."""
        has_news = self.reach(at_s)
        self.records[-1] += records
        self.last_s = max(self.last_s, at_s)
        return has_news

    def reach(self, now_s: int) -> bool:
        """Move on to a time without a commit; return True if a step has ended with news."""
        ended = now_s // STEP_S - self.step
        if ended <= 0:
            return False
        has_news = self.is_news
        self.step += ended
        self.records = [*self.records, *[0] * min(ended, STEPS_KEPT)][-STEPS_KEPT:]
        return has_news

    @property
    def is_news(self) -> bool:
        """True while anything was committed in the last hour."""
        return any(self.records)

    @property
    def step_ends_us(self) -> int:
        """When the newest step ends."""
        return (self.step + 1) * STEP_S * 1_000_000

    def as_json(self) -> dict[str, Any]:
        """Return it as the view of a group has it; rates are null until they are known."""
        whole = self.records[1:-1]
        moving = [records for records in whole[:-1] if records]
        return {
            "last_commit_at": iso_utc(self.last_s * 1_000_000),
            "records_per_s": round(whole[-1] / STEP_S, 2) if whole else None,
            "usual_records_per_s": round(median(moving) / STEP_S, 2) if len(moving) >= _SHOW_USUAL else None,
            "until": iso_utc(self.step * STEP_S * 1_000_000),
            "step_s": STEP_S,
            "records": whole,
        }

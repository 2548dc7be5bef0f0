"""Events of a group as they are published: one JSON object for each thing that happened, in order.

The JSON form is a contract (``docs/events.md``). Ids depend on protocol facts and capture times alone. The same records therefore give
the same ids whatever the batches and restarts, and an event written twice is recognised.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, NamedTuple

from coordinator_model.finding import iso_utc


class FramePlace(NamedTuple):
    """Where a frame is in the mirror topic."""

    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class GroupEvent:
    """One thing that happened in a group."""

    kind: str
    at_us: int
    cluster: str
    group: str
    group_type: str
    incarnation: int
    generation: int | None
    subject: tuple[str | int, ...]  #: distinguishes the event from others of its kind in the same generation
    details: dict[str, Any]  #: the fields of its kind, as JSON values
    frame: FramePlace | None = None  #: the frame that showed it; None if none did, as at the end of a session

    @property
    def key(self) -> str:
        """Return the key of the record in the topic: events of one group stay in order."""
        return f"{self.cluster}/{self.group}"

    @property
    def id(self) -> str:
        """Return the kind and 16 hex digits; the same for the same facts, on every machine and in every run."""
        facts = (self.cluster, self.group, self.incarnation, self.generation, self.kind, *self.subject)
        digest = hashlib.blake2s("\x00".join(map(str, facts)).encode(errors="surrogatepass"), digest_size=8)
        return f"{self.kind}-{digest.hexdigest()}"

    def as_json(self) -> dict[str, Any]:
        """Return the published object: plain types, times in ISO 8601 UTC with microseconds."""
        return {
            "id": self.id,
            "at": iso_utc(self.at_us),
            "cluster": self.cluster,
            "group": self.group,
            "group_type": self.group_type,
            "incarnation": self.incarnation,
            "generation": self.generation,
            "kind": self.kind,
            "frame": None if self.frame is None else self.frame._asdict(),
            **self.details,
        }

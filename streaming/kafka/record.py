"""A record as its readers see it; it needs no Kafka client."""

from __future__ import annotations

from typing import Final, NamedTuple

ALIVE: Final = "@alive"
"""In the place of a receiver in the keys of the delivery log: a notifier's sign of life."""


class Record(NamedTuple):
    """One record of one of the topics."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    written_s: float  #: seconds since the epoch; 0 when unknown

    @property
    def name(self) -> str:
        """The key as text."""
        return (self.key or b"").decode(errors="replace")

"""How long the session of a member with epochs lasts: the broker's setting, which no frame names, as far as it is told or shown.

It is at least what a member has been silent for that was accepted afterwards, and at most what a member has been silent for whose
place was given to others. Without either, Kafka's default bounds count.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from coordinator_model.settings import Settings

DEFAULT_MS: Final = 45_000
"""The default, and the shortest that a broker allows by default."""

LONGEST_MS: Final = 60_000
"""The longest that a broker allows by default."""


class SessionBounds(NamedTuple):
    """What frames showed of the sessions of one group; 0 for nothing."""

    least_ms: int = 0
    most_ms: int = 0

    def outlasted(self, pause_us: int) -> SessionBounds:
        """Return what is known once a member was accepted after it had sent nothing for so long."""
        least_ms = max(self.least_ms, pause_us // 1_000)
        return SessionBounds(least_ms, 0 if self.most_ms < least_ms else self.most_ms)

    def ended(self, silence_us: int) -> SessionBounds:
        """Return what is known once a session had ended so long after its member was last asked for."""
        most_ms = -(-silence_us // 1_000)
        return SessionBounds(self.least_ms, min(self.most_ms or most_ms, most_ms)) if most_ms >= self.least_ms else self

    def shortest_ms(self, settings: Settings, cluster: str, kind: str) -> int:
        """Return how long a member surely stays one without a heartbeat."""
        told_ms = settings.session_timeout_ms(cluster, kind)
        if told_ms:
            return told_ms
        return self.least_ms if 0 < self.most_ms < DEFAULT_MS else max(DEFAULT_MS, self.least_ms)

    def longest_ms(self, settings: Settings, cluster: str, kind: str) -> int:
        """Return after how long without a heartbeat a member surely is none any more."""
        told_ms = settings.session_timeout_ms(cluster, kind)
        return told_ms or self.most_ms or max(LONGEST_MS, self.least_ms)

"""A dead notifier sends nothing, and a reader of nothing but what it sends cannot know that (rule V-12).

Each notifier gives a sign of life every few seconds, with its host as name. One that gives none any more is missed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from coordinator_model.rules.observation import V_12
from coordinator_model.wording import clock
from streaming.engine.own_findings import Standing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from coordinator_model.finding import Finding

SILENT_US: Final = 15_000_000
_MISSED_US: Final = 86_400_000_000  #: one that is silent for longer was taken away


class NotifierWatch:
    """Which notifiers have fallen silent. All times are those of our own clock, in microseconds.

    :param published: findings that are open in the findings topic.
    """

    def __init__(self, cluster: str, published: Iterable[Mapping[str, Any]]) -> None:
        self._cluster = cluster
        self._published = list(published)
        self._came: dict[str, int] = {}  #: host → when its newest sign of life came
        self._standing: Standing | None = None  #: None until all hosts of before are known

    def pause(self, now_us: int) -> None:
        """Kafka cannot be read: what follows says nothing of the notifiers until it can again."""
        self._came = dict.fromkeys(self._came, now_us)

    def observe(self, signs: Mapping[str, int], now_us: int) -> list[Finding]:
        """Take note of signs of life; return the findings that opened or were resolved.

        :param signs: host → when its newest sign was written. The first call gets all that there are.
        """
        self._came |= dict.fromkeys((host for host, at_us in signs.items() if now_us - at_us < _MISSED_US), now_us)
        if self._standing is None:
            self._standing = Standing(self._cluster, self._published, [(V_12.id, host) for host in self._came])
            self._came |= {host: signs[host] for host in self._came if self._standing.is_open(V_12.id, host)}
        found: list[Finding] = []
        for host, came_us in list(self._came.items()):
            silent_us = now_us - came_us
            if silent_us > SILENT_US and not self._standing.is_open(V_12.id, host):
                found.append(self._silent(self._standing, host, came_us))
            elif not SILENT_US < silent_us < _MISSED_US:
                found += self._standing.settle(V_12.id, host, at_us=now_us)
            if silent_us > _MISSED_US:
                del self._came[host]
        return found

    @staticmethod
    def _silent(standing: Standing, host: str, came_us: int) -> Finding:
        since = f"since {clock(came_us)}"
        return standing.report(
            V_12,
            host,
            at_us=came_us + SILENT_US,
            summary=f"The notifier on host {host} has given no sign of life {since}: it has ended, hangs, or cannot reach Kafka. Its "
            "receivers are sent nothing.",
            observed=f"no sign of life {since}",
        )

"""Checks by the status topic that the monitor is alive; without it, a dead monitor would look like one without findings.

The job writes a record for each mirror partition that it has read from. The mirror ticks every second, so a running monitor writes
continuously. When no new record arrives for ``stalled_s``, the heartbeats stop and finding V-05 opens. The notifier makes this finding,
because a stalled monitor cannot.

A silent mirror has the same symptom. In that case the monitor's driver reports V-03, and V-05 does not open while V-03 is open. The id of
V-05 is derived from the time of the last status and not from the time of the check. Otherwise a restart of the notifier would send it
again.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from coordinator_model.finding import Severity, Status, finding_id
from coordinator_model.rules.observation import V_03, V_05
from streaming.engine.mirror_silence import whole_topic
from streaming.notify.notification import ObservedFinding, iso, made_here

if TYPE_CHECKING:
    from collections.abc import Callable


class Watchdog:
    """Processes the records of the status topic; the receivers' threads read its state.

    :param topic: the mirror topic.
    :param hint: returns a possible cause as the end of a sentence, or an empty string.
    """

    def __init__(
        self, *, cluster: str, topic: str, stalled_s: float, started_s: float, hint: Callable[[], str] = lambda: ""
    ) -> None:
        self._cluster = cluster
        self._topic = topic
        self._stalled_s = stalled_s
        self._hint = hint
        self._alive_s = started_s  #: time of the last sign of life, by the local clock
        self._written_us = 0  #: time of the newest status, by the monitor's clock
        self._silent: set[str] = set()  #: ids of open findings that the whole mirror is silent
        self._stalled: dict[str, Any] | None = None

    def status(self, value: bytes | None, now_s: float, *, live: bool) -> None:
        """Process a record of the status topic; a record that is not a status is ignored.

        :param live: True if the record arrived after the start of reading, False if it was in the topic before.
        """
        try:
            status = json.loads(value or b"")
            topic, written_us = status["topic"], int(status["written_ms"]) * 1000
        except (ValueError, LookupError, TypeError):
            return
        if topic != self._topic or written_us <= self._written_us:
            return
        self._written_us = written_us
        self._alive_s = now_s if live else min(now_s, written_us / 1e6)

    def observe(self, observed: ObservedFinding) -> None:
        """Process a finding: V-05 does not open while V-03 is open for the whole mirror."""
        finding = observed.finding
        if finding["rule"] != V_03.id or observed.group:
            return
        opened_us = round(observed.opened_s * 1_000_000)
        whole = finding_id(V_03.id, cluster=finding["cluster"], group="", subject=whole_topic(self._topic), opened_at_us=opened_us)
        if observed.is_over:
            self._silent.discard(observed.id)
        elif observed.id == whole:
            self._silent.add(observed.id)

    def beats(self, now_s: float) -> bool:
        """Return True if the monitor has written a status within ``stalled_s``; False if it never has."""
        return self._written_us > 0 and now_s - self._alive_s < self._stalled_s

    def look(self, now_s: float) -> ObservedFinding | None:
        """Return finding V-05 when it opens or is resolved, else None."""
        stalled = now_s - self._alive_s >= self._stalled_s and not self._silent
        if stalled and self._stalled is None:
            self._stalled = self._finding(now_s)
            return ObservedFinding.of(self._stalled, written_s=now_s)
        if not stalled and self._stalled is not None:
            over = {**self._stalled, "status": Status.RESOLVED.value, "updated_at": iso(now_s), "resolved_at": iso(now_s)}
            self._stalled = None
            return ObservedFinding.of(over, written_s=now_s)
        return None

    def _finding(self, now_s: float) -> dict[str, Any]:
        since = f"since {iso(self._written_us / 1e6)}" if self._written_us else "at all"
        summary = (
            f"The monitor has written no status {since}: it does not run, hangs, or cannot reach Kafka{self._hint()}; "
            "no group is monitored."
        )
        return made_here(
            V_05,
            cluster=self._cluster,
            group="",
            severity=Severity.CRITICAL,
            subject=str(self._written_us),
            at_us=round(now_s * 1e6),
            summary=summary,
            observed=f"no newer record in the status topic for {self._stalled_s:g} s",
        )

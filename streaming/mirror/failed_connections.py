"""Connections to brokers that fail: counted by host and address, and written now and then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from coordinator_model.wire.record import MirrorRecord, Unreached, unreached

if TYPE_CHECKING:
    from collections.abc import Callable

WRITE_EVERY_US: Final = 5_000_000
_SAME_OUTAGE_US: Final = 60_000_000  #: what was not written for so long, since nothing failed, belongs to an earlier outage
_PAIRS_AT_MOST: Final = 1_000


class FailedConnections:
    """Counts connections that fail; the first of a host to an address is written at once, others every five seconds.

    :param write: takes the records.
    """

    def __init__(self, write: Callable[[MirrorRecord], None], *, cluster: str) -> None:
        self._write = write
        self._cluster = cluster
        self._since: dict[tuple[str, str], Unreached] = {}  # not written yet
        self._written_us: dict[tuple[str, str], int] = {}

    def failed(self, address: str, client_address: str, at_us: int, *, refused: bool) -> None:
        """Count a connection that was refused, or that nobody answered."""
        where = address, client_address
        before = self._since.pop(where, None)
        if before is None or at_us - before.from_us > _SAME_OUTAGE_US:
            before = Unreached(0, 0, at_us)
        failed = Unreached(before.refused + refused, before.unanswered + (not refused), before.from_us)
        if at_us - self._written_us.get(where, -WRITE_EVERY_US) < WRITE_EVERY_US:
            self._since[where] = failed
            return
        self._written_us.pop(where, None)
        self._written_us[where] = at_us
        if len(self._written_us) > _PAIRS_AT_MOST:
            oldest = next(iter(self._written_us))
            del self._written_us[oldest]
            self._since.pop(oldest, None)
        self._write(unreached(at_us, address, client_address, failed, cluster=self._cluster))

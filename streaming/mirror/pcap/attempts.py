"""Attempts to open a connection, as packets show them: those that are reset, and those that nobody answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streaming.mirror.listener import written
from streaming.mirror.pcap.segments import ACK, RST, SYN, Segment, ends

if TYPE_CHECKING:
    from collections.abc import Collection

    from streaming.mirror.failed_connections import FailedConnections

_OPEN_AT_MOST: Final = 10_000
_REPEATED_US: Final = 900_000  #: a host repeats its SYN after a second

Side = tuple[str, int]


class Attempts:
    """Finds connections that fail among segments with SYN or RST.

    :param ports: the brokers' ports; all if there are none.
    """

    def __init__(self, failed: FailedConnections, ports: Collection[int]) -> None:
        self._failed = failed
        self._ports = ports
        self._open: dict[tuple[Side, Side], int] = {}  # (client, broker) → time of its first SYN; 0 once it counts as unanswered

    def segment(self, segment: Segment, at_us: int) -> None:
        """Take a segment with SYN or RST."""
        sender, receiver = ends(segment[0])
        flags = segment[3]
        if flags & SYN and not flags & ACK:
            self._asked(sender, receiver, at_us)
        elif self._open.pop((receiver, sender), None) is not None and flags & RST:
            self._failed.failed(written(*sender), receiver[0], at_us, refused=True)

    def _asked(self, client: Side, broker: Side, at_us: int) -> None:
        if self._ports and broker[1] not in self._ports:
            return
        first_us = self._open.setdefault((client, broker), at_us)
        if first_us and at_us - first_us >= _REPEATED_US:
            self._open[client, broker] = 0
            self._failed.failed(written(*broker), client[0], at_us, refused=False)
        if len(self._open) > _OPEN_AT_MOST:
            del self._open[next(iter(self._open))]

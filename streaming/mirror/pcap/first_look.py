"""What can be said of a capture in which nothing was recognised as Kafka: one direction only, packets cut to nothing, a client's port.

It looks at packets only until the first connection has proven to be Kafka's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streaming.mirror.pcap.resync import HEADER, RequestSearch
from streaming.mirror.pcap.segments import ACK, SYN, Segment, reverse

if TYPE_CHECKING:
    from collections.abc import Collection

_AT_MOST: Final = 100_000  # directions of connections


class _Direction:
    """What one side of a connection sends."""

    __slots__ = ("asks", "captured", "cut_at", "opens", "search")

    def __init__(self) -> None:
        self.captured = 0  #: bytes of data
        self.cut_at: int | None = None  #: so many bytes of data stand before the first that were cut off
        self.opens = False  #: it opened the connection
        self.asks = False  #: it sends requests
        self.search = RequestSearch()


class FirstLook:
    """Takes all segments of a capture.

    :param ports: the brokers' ports that were asked for.
    """

    def __init__(self, ports: Collection[int]) -> None:
        self._ports = frozenset(port.to_bytes(2, "big") for port in ports)
        self._directions: dict[bytes, _Direction] = {}

    def segment(self, segment: Segment) -> None:
        """Note what the next segment shows."""
        key, _, _, flags, payload, missing = segment
        if self._ports and self._ports.isdisjoint((key[-4:-2], key[-2:])):
            return
        known = self._directions.get(key)
        if known is None:
            if len(self._directions) >= _AT_MOST:
                return
            known = self._directions[key] = _Direction()
        known.captured += len(payload)
        if missing and known.cut_at is None:
            known.cut_at = known.captured
        known.opens |= flags & (SYN | ACK) == SYN
        if payload and key[-4:-2] in self._ports and not known.asks:
            known.asks = known.search.feed(payload) is not None

    def causes(self, snap_length: int) -> dict[str, int]:
        """Return what keeps Kafka from being recognised, each as a half sentence, with the number of connections that it concerns.

        :param snap_length: what packets were cut to, 0 if none was.
        """
        counts = {
            _cut(snap_length, anything=any(known.captured for known in self._directions.values())): len(self._cut_early()),
            _ONE_DIRECTION: sum(reverse(key) not in self._directions for key in self._directions),
        }
        of_clients = [(key[-4:-2], key[-2:]) for key, known in self._directions.items() if self._is_clients(key, known)]
        if of_clients:
            counts[_clients_ports(of_clients)] = len(of_clients)
        return {cause: count for cause, count in counts.items() if count}

    def _cut_early(self) -> set[bytes]:
        """Connections with a side whose first bytes do not suffice to recognise its protocol."""
        return {
            min(key, reverse(key)) for key, known in self._directions.items() if known.cut_at is not None and known.cut_at < HEADER
        }

    def _is_clients(self, key: bytes, known: _Direction) -> bool:
        return (known.opens or known.asks) and key[-4:-2] in self._ports and key[-2:] not in self._ports


def _cut(snap_length: int, *, anything: bool) -> str:
    where = "where" if anything else "before"
    return f"packets are cut at {snap_length:,} bytes, {where} their data begins: capture with a longer snap length (tcpdump -s 0)"


def _clients_ports(pairs: list[tuple[bytes, bytes]]) -> str:
    clients, brokers = (sorted({int.from_bytes(port, "big") for port in ports}) for ports in zip(*pairs, strict=True))
    asked = f"port {clients[0]} is a client's" if len(clients) == 1 else f"ports {', '.join(map(str, clients))} are clients'"
    return f"{asked}, the other end is port {brokers[0]}: --port names the brokers' port (--port {brokers[0]})"


_ONE_DIRECTION: Final = (
    "only one direction was captured: capture where both pass (answers may take another route, a mirror port or a filter "
    "one direction)"
)

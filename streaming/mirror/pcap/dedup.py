"""Counts an exchange once that was captured twice: before and behind a proxy, or before and behind an address translation.

Behind the proxy the same request appears on another connection, to another endpoint, while it is still unanswered on the first. Two
clients of one make say the same things too, up to the moment when the coordinator has given them ids; a request that names a member and
is under way at two places at once is one request.

The frames that come before a client has its id would already make a false history when written twice. So a connection whose first requests
are all under way elsewhere is held back until it says something of its own, or proves to be an echo.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from coordinator_model.wire import DecodeError, decode
from coordinator_model.wire.record import Kind, MirrorRecord

if TYPE_CHECKING:
    from collections.abc import Callable

_PROXY_DELAY_US: Final = 10_000_000
"""A request that reaches the second leg later than this after the first is taken for another one."""

_CONVINCING: Final = 16
"""So many requests in a row that were all under way elsewhere are no coincidence, even if none names a member."""

_API_VERSIONS: Final = 18


class Legs:
    """Passes records on, but for those of connections that repeat what another one says.

    :param write: takes the records.
    """

    def __init__(self, write: Callable[[MirrorRecord], None]) -> None:
        self.write = write
        self.under_way: dict[bytes, tuple[Leg, int]] = {}  #: request → the connection that has it first, and since when
        self.echoes = 0  #: connections that repeated another

    def leg(self, endpoint: tuple[str, int], network: bytes = b"") -> Leg:
        """A new connection to a broker or proxy.

        :param network: the virtual network that it was seen in: a mirror at either end of a connection has a number of its own.
        """
        return Leg(self, (endpoint, network))


class Leg:
    """One connection. Call it with each of its records."""

    def __init__(self, legs: Legs, place: tuple[tuple[str, int], bytes]) -> None:
        self._legs = legs
        self._place = place  # where it was seen: no connection repeats another one of the same place
        self._frames: dict[int, bytes] = {}  # its requests under way, by exchange
        self._held: list[MirrorRecord] | None = []  # None once it is known to be no echo
        self._repeated = 0
        self._is_echo = False

    def __call__(self, record: MirrorRecord) -> None:
        """Pass the record on, hold it back or drop it."""
        if record.group is None:  # a gap that concerns every group
            self._legs.write(record)
        elif self._is_echo:
            return
        elif self._held is None:
            if record.kind is Kind.REQUEST:
                if self._is_repeated(record):
                    return
            elif record.kind is Kind.RESPONSE:
                self._answered(record.exchange)
            elif record.kind is Kind.CLOSE:
                self._closed()
            self._legs.write(record)
        else:
            self._judge(record, self._held)

    def _judge(self, record: MirrorRecord, held: list[MirrorRecord]) -> None:
        """While nothing distinguishes it yet."""
        held.append(record)
        if record.kind is Kind.REQUEST and record.api_key != _API_VERSIONS:
            first = self._other_under_way(record)
            if first is None:
                self._release()
                return
            self._repeated += 1
            if self._repeated == _CONVINCING or _names_member(record):
                self._fall_silent()
        elif record.kind is Kind.CLOSE:
            self._fall_silent() if self._repeated else self._release()

    def _is_repeated(self, record: MirrorRecord) -> bool:
        first = self._other_under_way(record)
        if first is None or not _names_member(record):
            return False
        self._fall_silent()
        return True

    def _other_under_way(self, record: MirrorRecord) -> Leg | None:
        """The connection on which this request is under way already; else it is from now on, on this one."""
        under_way = self._legs.under_way
        leg, since_us = under_way.setdefault(record.frame, (self, record.at_us))
        if leg is self:
            self._frames[record.exchange] = record.frame
            return None
        if leg._place != self._place and record.at_us - since_us <= _PROXY_DELAY_US:  # noqa: SLF001
            return leg
        return None

    def _answered(self, exchange: int) -> None:
        frame = self._frames.pop(exchange, None)
        if frame is not None:
            self._legs.under_way.pop(frame, None)

    def _closed(self) -> None:
        for exchange in tuple(self._frames):
            self._answered(exchange)

    def _release(self) -> None:
        held, self._held = self._held or [], None
        for record in held:
            if record.kind is Kind.RESPONSE:
                self._answered(record.exchange)
            self._legs.write(record)

    def _fall_silent(self) -> None:
        self._closed()
        self._held = None
        self._is_echo = True
        self._legs.echoes += 1


def _names_member(record: MirrorRecord) -> bool:
    """Return True if a request holds a member id, which no two clients share."""
    try:
        body: Any = record.body
        if body is None:
            body = decode(record.frame, request=True, api_key=record.api_key, api_version=record.api_version).body
    except DecodeError:
        return False
    members = getattr(body, "members", ()) or ()
    return bool(getattr(body, "member_id", "")) or any(getattr(member, "member_id", "") for member in members)

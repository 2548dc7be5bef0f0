"""The connections that a request log names."""

from __future__ import annotations

import ipaddress
import re
import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from coordinator_model.wire.record import NO_END, Cause, Kind, Loss, pack_loss
from streaming.mirror.conversation import Conversation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from coordinator_model.wire.record import MirrorRecord
    from streaming.mirror.broker_log.request_line import Logged
    from streaming.mirror.client_software import ClientSoftware

_ENDS: Final = re.compile(r"(.+):(\d+)-(.+):(\d+)-(?:(\d+)-)?(\d+)")
_size = struct.Struct(">i").pack
_correlation_id = struct.Struct(">i").unpack_from


class Ends(NamedTuple):
    """The sides of a connection."""

    broker: str  #: host:port of the listener
    client: str  #: address without its port
    processor: str  #: of the listener's threads the one that has it; empty up to Kafka 3.9, which does not say
    number: int  #: how many connections that thread had before


def ends_of(connection: str) -> Ends:
    """Read ``broker:port-client:port-processor-number``, as Kafka names connections."""
    found = _ENDS.fullmatch(connection)
    if found is None:
        return Ends("", "", "", 0)
    return Ends(f"{_address(found[1])}:{found[2]}", _address(found[3]), found[5] or "", int(found[6][:10]))


def _address(text: str) -> str:
    """Java writes IPv6 in full."""
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return text


class BrokerRestarts:
    """Notices that a broker was started anew: each of its threads numbers connections from 0 on."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, str], set[int]] = {}

    def begins(self, ends: Ends) -> bool:
        """Note a new connection; return True if its broker cannot be the one that the connections before it had."""
        if not ends.processor:
            return False
        numbers = self._numbers.setdefault((ends.broker, ends.processor), set())
        is_anew = ends.number in numbers
        if is_anew:
            for broker, processor in self._numbers:
                if broker == ends.broker:
                    self._numbers[broker, processor].clear()
        numbers.add(ends.number)
        return is_anew


class BrokerListeners:
    """The listeners of one broker: those of one host that stand in one log."""

    def __init__(self) -> None:
        self._first: dict[str, str] = {}  # address → that of the broker's first listener
        self._in_file: dict[tuple[object, str], str] = {}  # the same by log and host

    def note(self, connection: str, file: object) -> None:
        """Note that a connection stands in a log."""
        address = ends_of(connection).broker
        place = file, address.rpartition(":")[0]
        known = self._first.get(address)
        first = self._in_file.setdefault(place, known or address)
        self._first[address] = first
        if known not in {None, first}:  # of a further file of the same broker the first line is read before those of the others
            self._first |= {each: first for each, name in self._first.items() if name == known}
            self._in_file |= {each: first for each, name in self._in_file.items() if name == known}

    def first(self, address: str) -> str:
        """Return the address of the first listener of a broker, by that of any."""
        return self._first.get(address, address)


class LoggedConnection(Conversation):
    """A connection whose exchanges are written one by one, whole.

    :param software: what the broker says of the client's software.
    :param first: address of the first listener of its broker.
    """

    def __init__(
        self,
        write: Callable[[MirrorRecord], None],
        *,
        cluster: str,
        name: str,
        ends: Ends,
        first: str,
        at_us: int,
        frame_cap: int,
        on_opaque: Callable[[str], None],
        known_software: ClientSoftware,
    ) -> None:
        super().__init__(
            write,
            cluster=cluster,
            broker=ends.broker,
            connection=name,
            client_address=ends.client,
            at_us=at_us,
            frame_cap=frame_cap,
            on_opaque=on_opaque,
            software=known_software,
        )
        self.ends = ends
        self.over_us = 0  #: when the newest exchange was over, that is known of
        self.is_over = False  #: whether its broker was started anew since
        self.answers: Logged | None = None  #: the exchange whose request is written, and whose answer is not
        self.in_turn: list[tuple[Logged, bool]] = []  #: what comes after that: of which exchange, and whether its answer
        self.waiting = 0  #: exchanges that are known of, and not written yet
        self.names: dict[str, None] = {}  #: groups that its requests name, those that are not written yet included
        broker = b"" if first == ends.broker else b" " + first.encode()
        self._held = [record._replace(frame=NO_END + broker) for record in self._held]

    def is_open_at(self, at_us: int) -> None:
        """Note that it was open at a time; its lines may stand in another order than that of their times."""
        if at_us < self._held[0].at_us:
            self._held[0] = self._held[0]._replace(at_us=at_us)

    def asked(self, logged: Logged, at_us: int) -> None:
        """The client's next request."""
        self.waiting -= 1
        self._principal, self._step_us = logged.principal, logged.step_us
        self._software = self._software or logged.software
        self.client_sent(_size(len(logged.request)) + logged.request, at_us)

    def answered(self, frame: bytes, at_us: int) -> None:
        """The broker's response to the oldest request that has none."""
        self.broker_sent(_size(len(frame)) + frame, at_us)

    def answered_alone(self, logged: Logged, at_us: int) -> None:
        """The broker's response to a request that is not known, for the groups that the connection names before or after it."""
        self._at_us = at_us
        (correlation_id,) = _correlation_id(logged.response)
        record = self._record(Kind.RESPONSE, frame=logged.response)._replace(
            exchange=self._next_number, api_key=logged.api_key, api_version=logged.api_version, correlation_id=correlation_id
        )
        self._next_number += 1
        self._write_to(self.names, record)

    def not_seen(self, groups: Iterable[str], loss: Loss) -> None:
        """Say that a request of this connection was not known in time, for groups and those that it has named."""
        self._at_us = loss.to_us
        named = dict.fromkeys((*groups, *self._groups))
        self._write_to(named, self._record(Kind.GAP, frame=pack_loss(loss._replace(cause=Cause.MAY_WAIT))))

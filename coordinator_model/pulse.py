"""A heartbeat that a connection repeats: nearly all that is captured of a quiet group, and always the same but for its times.

Who reads a capture knows such a frame and its success by their bytes; who replays it needs no more of them than the connection and the
times. Between the two they go as that, and become records only where somebody wants to look at them as such.

The trap: it is a shorter way to say the same. Whoever takes it must leave behind what the records would have left.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, Protocol

from coordinator_model.wire import decode
from coordinator_model.wire.record import DecodedRecord, Kind, MirrorRecord

HEARTBEAT: Final = 12
CORRELATION_SIZE: Final = 4
CORRELATION_BEGINS: Final = 4  # in a request; in a response it stands first
CORRELATION_ENDS: Final = CORRELATION_BEGINS + CORRELATION_SIZE

_REQUEST, _RESPONSE = Kind.REQUEST, Kind.RESPONSE
_new, _int = tuple.__new__, int.from_bytes


class Repeated(Protocol):
    """Who sends a heartbeat again and again, and what it says."""

    @property
    def key(self) -> tuple[str, str]:
        """Cluster and group."""

    @property
    def broker(self) -> str: ...

    @property
    def connection(self) -> str: ...

    @property
    def version(self) -> int:
        """Of the API."""

    @property
    def member_id(self) -> str: ...

    @property
    def generation(self) -> int: ...

    @property
    def instance_id(self) -> str | None: ...


class Constants(NamedTuple):
    """What is the same in all records of a pulse."""

    group: str
    cluster: str
    broker: str
    connection: str
    api_version: int
    client_id: str | None
    client_address: str
    client_software: str
    request: bytes  #: a whole frame
    response: bytes


class Pulse:
    """A heartbeat with its success."""

    __slots__ = (
        "_answer",
        "_asks",
        "broker",
        "connection",
        "constants",
        "generation",
        "instance_id",
        "key",
        "member_id",
        "number",
        "version",
    )

    def __init__(self, constants: Constants) -> None:
        self.constants = constants
        self.number = -1  #: by which it is known elsewhere
        request, response, version = constants.request, constants.response, constants.api_version
        asks: Any = decode(request, request=True, api_key=HEARTBEAT, api_version=version).body
        self._asks = asks
        self._answer: Any = decode(response, request=False, api_key=HEARTBEAT, api_version=version).body
        self.key = (constants.cluster, constants.group)
        self.broker, self.connection, self.version = constants.broker, constants.connection, version
        self.member_id, self.generation, self.instance_id = asks.member_id, asks.generation_id, asks.group_instance_id

    def request(self, offset: int, at_us: int, exchange: int, correlation_id: bytes) -> DecodedRecord:
        """The record of a request.

        :param exchange: its number on the connection.
        :param correlation_id: as it stands in the frame.
        """
        group, cluster, broker, connection, version, client_id, address, software, request, _ = self.constants
        opening = (0, offset, group, _REQUEST, at_us, cluster, broker, connection, exchange, HEARTBEAT, version)
        frame = request[:CORRELATION_BEGINS] + correlation_id + request[CORRELATION_ENDS:]
        number = _int(correlation_id, "big", signed=True)
        record = _new(DecodedRecord, (*opening, number, client_id, address, software, 0, 0, frame))
        record.body = self._asks
        return record

    def response(self, request: MirrorRecord, offset: int, at_us: int) -> DecodedRecord:
        """The record of its success."""
        correlation_id = request.frame[CORRELATION_BEGINS:CORRELATION_ENDS]
        opening = (0, offset, request.group, _RESPONSE, at_us)
        record = _new(DecodedRecord, (*opening, *request[5:17], correlation_id + self.constants.response[CORRELATION_SIZE:]))
        record.body = self._answer
        return record

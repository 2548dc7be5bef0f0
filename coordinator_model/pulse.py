"""What a connection repeats: heartbeats, always the same but for their times, and commits of the same partitions, but for the offsets.

That is nearly all that is captured of a quiet group. Who reads a capture knows such a frame and its success by their bytes; who replays it
needs no more of them than the connection, the times and the offsets. Between the two they go as that, and become records only where
somebody wants to look at them as such.

The trap: it is a shorter way to say the same. Whoever takes it must leave behind what the records would have left.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import sub
from typing import Any, Final, NamedTuple, Protocol, Self

from coordinator_model.codes import HEARTBEAT
from coordinator_model.places import OFFSET_SIZE, at_generation
from coordinator_model.wire import decode
from coordinator_model.wire.record import DecodedRecord, Kind, MirrorRecord

CORRELATION_SIZE: Final = 4
CORRELATION_BEGINS: Final = 4  # in a request; in a response it stands first
CORRELATION_ENDS: Final = CORRELATION_BEGINS + CORRELATION_SIZE

_REQUEST, _RESPONSE = Kind.REQUEST, Kind.RESPONSE
_new, _int = tuple.__new__, int.from_bytes


class Repeated(Protocol):
    """Who says something again and again, and what."""

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


class Commits(NamedTuple):
    """What is to be known of commits of the same partitions, one behind the other, beyond their times."""

    pulse: Pulse
    first: Sequence[int]  #: the offsets of the first one
    newest: Sequence[int]  #: and of the last
    goes_back: bool  #: whether, as far as is known, one commits less than the one before
    first_answered: int  #: number of the record of the first one's answer, as offset in the mirror
    exchange: int  #: number of the last one on its connection
    asked: int  #: number of its request's record
    answered: int


class Run(NamedTuple):
    """What one connection repeats in a stretch of records, each request with its plain success, in their order."""

    told: Repeated
    asked_us: Sequence[int]  #: capture times of the requests, microseconds
    answered_us: Sequence[int]
    slowest_us: int  #: no answer took longer
    longest_pause_us: int  #: no two requests, one behind the other, lie further apart
    commits: Commits | None = None  #: if it is no heartbeats

    @classmethod
    def of(cls, told: Repeated, asked_us: Sequence[int], answered_us: Sequence[int], commits: Commits | None = None) -> Self:
        """One of which nobody has looked yet how much time lies between."""
        slowest_us, longest_pause_us = max(map(sub, answered_us, asked_us)), max(map(sub, asked_us[1:], asked_us), default=0)
        return cls(told, asked_us, answered_us, slowest_us, longest_pause_us, commits)


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
    places: tuple[int, ...] = ()  #: where in the request of a commit the offsets stand


class Pulse:
    """A heartbeat or a commit, with its success.

    :raises DecodeError: when the constants' frames cannot be read.
    """

    __slots__ = (
        "_answer",
        "_asks",
        "actor",
        "api_key",
        "broker",
        "connection",
        "constants",
        "generation",
        "instance_id",
        "is_plain",
        "key",
        "member_id",
        "number",
        "partitions",
        "version",
    )

    def __init__(self, constants: Constants, asks: Any = None, answer: Any = None) -> None:
        """:param asks: the decoded request, and the answer, of whoever has them."""
        self.constants = constants
        self.number = -1  #: by which it is known elsewhere
        request, response, version = constants.request, constants.response, constants.api_version
        self.api_key = _int(request[:2], "big")
        if asks is None:
            asks = decode(request, request=True, api_key=self.api_key, api_version=version).body
        if answer is None:
            answer = decode(response, request=False, api_key=self.api_key, api_version=version).body
        self._asks, self._answer = asks, answer
        self.key = (constants.cluster, constants.group)
        self.broker, self.connection, self.version = constants.broker, constants.connection, version
        self.member_id, self.instance_id = asks.member_id, asks.group_instance_id
        #: who speaks: client id, address, software and connection
        self.actor = (constants.client_id, constants.client_address, constants.client_software, constants.connection)
        if self.api_key == HEARTBEAT:
            self.generation: int = asks.generation_id
            self.partitions: tuple[tuple[str, int], ...] = ()  #: topic, or its id from v10 on, and partition
        else:
            self.generation = asks.generation_id_or_member_epoch
            self.partitions = tuple(
                (topic.name or topic.topic_id, partition.partition_index) for topic in asks.topics for partition in topic.partitions
            )
        self.is_plain = len(set(self.partitions)) == len(self.partitions)  #: whether no partition is named twice

    def at_generation(self, generation: int) -> Pulse | None:
        """What it will be if only the generation changes; None if that cannot be told."""
        said = at_generation(self.constants.request, self._asks, generation)
        if said is None:
            return None
        request, asks = said
        return Pulse(self.constants._replace(request=request), asks, self._answer)

    def request(self, offset: int, at_us: int, exchange: int, correlation_id: bytes, offsets: bytes = b"") -> DecodedRecord:
        """The record of a request.

        :param exchange: its number on the connection.
        :param correlation_id: as it stands in the frame.
        :param offsets: what is committed, likewise.
        """
        group, cluster, broker, connection, version, client_id, address, software, request, _, _ = self.constants
        opening = (0, offset, group, _REQUEST, at_us, cluster, broker, connection, exchange, self.api_key, version)
        frame = request[:CORRELATION_BEGINS] + correlation_id + request[CORRELATION_ENDS:]
        number = _int(correlation_id, "big", signed=True)
        if offsets:
            frame = self._spliced(frame, offsets)
        record = _new(DecodedRecord, (*opening, number, client_id, address, software, 0, 0, frame))
        record.body = None if offsets else self._asks
        return record

    def _spliced(self, frame: bytes, offsets: bytes) -> bytes:
        spliced = bytearray(frame)
        for index, place in enumerate(self.constants.places):
            spliced[place : place + OFFSET_SIZE] = offsets[index * OFFSET_SIZE : (index + 1) * OFFSET_SIZE]
        return bytes(spliced)

    def response(self, request: MirrorRecord, offset: int, at_us: int) -> DecodedRecord:
        """The record of its success."""
        correlation_id = request.frame[CORRELATION_BEGINS:CORRELATION_ENDS]
        opening = (0, offset, request.group, _RESPONSE, at_us)
        record = _new(DecodedRecord, (*opening, *request[5:17], correlation_id + self.constants.response[CORRELATION_SIZE:]))
        record.body = self._answer
        return record

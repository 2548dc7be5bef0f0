"""Well-formed messages of every mirrored API, filled at random: what a fork, a proxy or a broken broker may send.

Names, generations and errors come from small pools, so that frames meet each other: a refusal meets the request of a member that the
frame before it deleted.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final, NamedTuple

from coordinator_model import wire
from coordinator_model.wire import messages
from coordinator_model.wire.encoder import default_of
from coordinator_model.wire.layouts import REQUESTS, RESPONSES, Field, Layout
from coordinator_model.wire.record import Kind, Loss, MirrorRecord, pack_loss
from tests.coordinator_model.conversation import START_US, assignment, subscription

GROUPS: Final = ("g", "h")
CLASSIC: Final = (8, 11, 12, 13, 14, 28)
MIRRORED: Final = (8, 9, 10, 11, 12, 13, 14, 15, 16, 28, 42, 47, 68, 69, 76, 77, 88, 89)
_ERRORS: Final = (-1, 3, 12, 14, 15, 16, 22, 23, 25, 26, 27, 30, 35, 68, 69, 79, 81, 82, 110, 111, 113, 23_600)
_MEMBERS: Final = ("", "m-1", "m-2", "m-3")
_INSTANCES: Final = ("i-1", "i-2", "m-1")
_BYTES: Final = (b"", b"\x00", subscription("t"), subscription("t", "u"), assignment(t=(0, 1)), assignment(t=(2,), u=(0,)))
_TIMEOUTS_MS: Final = (0, 1, 6_000, 10_000, 60_000, 2**31 - 1)
_POOLS: Final[dict[str, tuple[Any, ...]]] = {
    "group_id": GROUPS,
    "key": GROUPS,
    "coordinator_keys": GROUPS,
    "group_ids": GROUPS,
    "groups_names": GROUPS,
    "member_id": _MEMBERS,
    "leader": _MEMBERS,
    "group_instance_id": _INSTANCES,
    "instance_id": _INSTANCES,
    "generation_id": (-1, 0, 1, 2, 3, 2**31 - 1),
    "generation_id_or_member_epoch": (-1, 0, 1, 2, 3),
    "member_epoch": (-2, -1, 0, 1, 2, 3),
    "session_timeout_ms": _TIMEOUTS_MS,
    "rebalance_timeout_ms": _TIMEOUTS_MS,
    "throttle_time_ms": (0, 0, 0, 5_000),
    "protocol_type": ("consumer", "connect", ""),
    "protocol_name": ("range", "cooperative-sticky"),
    "name": ("range", "t", "u"),
    "reason": ("", "consumer poll timeout has expired."),
    "partition_index": (0, 1, 2),
    "committed_offset": (-1, 0, 5, 9),
    "host": ("kafka-1", "kafka-2"),
    "node_id": (-1, 1, 2),
}
_OF_TYPE: Final[dict[str, tuple[Any, ...]]] = {
    "bool": (False, True),
    "string": ("", "t", "m-1"),
    "bytes": _BYTES,
    "uuid": ("AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAA"),
}


def body(random: Random, layout: Layout, version: int) -> Any:
    """A message of this layout in which every field that the version has holds a random value."""
    return _struct(random, layout, layout.name, version)


def _struct(random: Random, layout: Layout, name: str, version: int) -> Any:
    values = {
        field.name: _value(random, layout, field, version) if version in field.versions else default_of(field)
        for field in layout.structs[name]
    }
    return getattr(messages, name)(**values)


def _value(random: Random, layout: Layout, field: Field, version: int) -> Any:
    if version in field.nullable and random.random() < 0.4:
        return None
    if field.is_array:
        return tuple(_item(random, layout, field, version) for _ in range(random.choice((0, 1, 1, 2, 3))))
    return _item(random, layout, field, version)


def _item(random: Random, layout: Layout, field: Field, version: int) -> Any:
    type_ = field.item_type
    if type_ in layout.structs:
        return _struct(random, layout, type_, version)
    if field.name == "error_code":
        return 0 if random.random() < 0.6 else random.choice(_ERRORS)
    pool = _POOLS.get(field.name) or _OF_TYPE.get(type_)
    return random.choice(pool) if pool else random.choice((0, 1, 2, 100))


class Where(NamedTuple):
    """What a frame belongs to, as the capture labels it."""

    connection: str = ""
    exchange: int = -1
    api_key: int = -1
    version: int = -1
    group: str | None = None


class Wire:
    """Connections on which random frames are asked and answered, as records of one mirror partition."""

    def __init__(self, random: Random, usual: tuple[int, ...] = CLASSIC) -> None:
        self._random = random
        self._usual = usual  # API keys of four requests in five
        self._now_us = START_US
        self._offset = 0
        self._exchanges = 0
        self._connections = [f"c{number}" for number in range(4)]
        self._asked: list[Where] = []

    def next(self) -> MirrorRecord:
        """One more record."""
        random = self._random
        self._now_us += random.choice((0, 500, 1_000, 50_000, 1_000_000, 3_000_000, 11_000_000))
        what = random.random()
        if what < 0.02:
            connection = random.choice(self._connections)
            self._asked = [one for one in self._asked if one.connection != connection]
            self._connections[self._connections.index(connection)] = f"c{self._offset}"
            return self._record(Kind.CLOSE, Where(connection, group=random.choice(GROUPS)), b"")
        if what < 0.03:
            loss = pack_loss(Loss(3, 300, self._now_us - 1_000_000, self._now_us))
            return self._record(Kind.GAP, Where(group=random.choice((None, "g"))), loss)
        if what < 0.08:
            return self._record(Kind.TICK, Where(), b"")
        return self._answer() if self._asked and what < 0.55 else self._ask()

    def _ask(self) -> MirrorRecord:
        random = self._random
        api_key = random.choice(self._usual if random.random() < 0.8 else MIRRORED)
        layout = REQUESTS[api_key]
        version = random.randint(layout.versions.first, layout.versions.last)
        self._exchanges += 1
        connection, group = random.choice(self._connections), random.choice(GROUPS)
        self._asked.append(Where(connection, self._exchanges, api_key, version, group))
        frame = wire.encode_request(
            body(random, layout, version), api_version=version, correlation_id=self._exchanges, client_id=connection[:1]
        )
        return self._record(Kind.REQUEST, self._asked[-1], frame)

    def _answer(self) -> MirrorRecord:
        random = self._random
        connection = random.choice(self._asked).connection  # each connection is answered in order
        asked = next(one for one in self._asked if one.connection == connection)
        self._asked.remove(asked)
        correlation_id = asked.exchange if random.random() < 0.99 else asked.exchange + 1
        version = asked.version
        frame = wire.encode_response(
            body(random, RESPONSES[asked.api_key], version), api_version=version, correlation_id=correlation_id
        )
        return self._record(Kind.RESPONSE, asked, frame)

    def _record(self, kind: Kind, where: Where, frame: bytes) -> MirrorRecord:
        connection, exchange, api_key, version, group = where
        queued = sum(1 for one in self._asked if one.connection == connection) - 1 if kind is Kind.REQUEST else 0
        record = MirrorRecord(
            partition=0,
            offset=self._offset,
            group=group,
            kind=kind,
            at_us=self._now_us,
            cluster="c1",
            broker=str(len(connection) % 2),
            connection=connection,
            exchange=exchange,
            api_key=api_key,
            api_version=version,
            correlation_id=max(exchange, 0),
            client_id=connection[:1] or None,
            client_address=f"10.0.0.{len(connection)}:4000",
            client_software="",
            cut_bytes=0,
            queued_behind=queued,
            frame=frame,
        )
        self._offset += 1
        return record

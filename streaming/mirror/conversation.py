"""Turns the bytes of one connection, both directions, into mirror records. No I/O and no clock.

A response names neither its API nor its group, so requests wait here for theirs; a broker answers each connection strictly in order.
Frames that name no group (ApiVersions, ListGroups) are written to the groups seen on the connection. What comes before the first of
these, the opening and the ApiVersions exchange, is held until a group is named, and keeps its time.

A Produce request with acks=0 is never answered. After SaslHandshake v0 (before KIP-152) come tokens without any header, and not each of
them is answered; they are recognised by not looking like a request, and are never kept. When a connection can no longer be followed, a
record must *say* so: a model would blame others for whatever its client does from then on.
"""

from __future__ import annotations

import struct
from collections import deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from coordinator_model.wire import DecodeError, decode, groups_named
from coordinator_model.wire.constants import JOIN_GROUP, SYNC_GROUP
from coordinator_model.wire.leading import leading_group
from coordinator_model.wire.record import MIRRORED_API_KEYS, Kind, Loss, MirrorRecord, pack_loss, topics
from streaming.mirror.client_software import Client, ClientSoftware
from streaming.mirror.frames import REQUEST_PREFIX, RESPONSE_PREFIX, FrameReader, UnreadableError, bytes_up_to_acks, client_id
from streaming.mirror.topics import METADATA, READ_AT_MOST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from streaming.mirror.topics import KnownTopics

FRAME_CAP: Final = 1_000_000
"""Bytes of a frame that go to a topic: with key and envelope they fit into Kafka's default ``max.message.bytes``, 1,048,588."""

FAN_OUT_CAP: Final = 16 * 2**20
"""Bytes written for one frame that names many groups, all copies together; beyond it each copy is cut."""

LARGEST_REQUEST: Final = 256 * 2**20
"""A size prefix above this is taken for something else than Kafka: brokers accept 100 MiB by default, and a TLS record read as a
size is 352 MiB."""

_PRODUCE: Final = 0
_SASL_HANDSHAKE: Final = 17
_API_VERSIONS: Final = 18

# Far beyond what exists (key 92, version 18), far below what text or TLS read as numbers gives.
_KEY_LIMIT: Final = 1000
_VERSION_LIMIT: Final = 200
# Where a SASL token may stand instead of a header, the test is stricter: printable text in the version field is 32 or more.
_KEY_LIMIT_AMONG_TOKENS: Final = 128
_VERSION_LIMIT_AMONG_TOKENS: Final = 32

_HELD_AT_MOST: Final = 8
_HELD_BY_COORDINATOR: Final = frozenset({JOIN_GROUP, SYNC_GROUP})

_header = struct.Struct(">hhi").unpack_from
_correlation_id = struct.Struct(">i").unpack_from
_handshake_response = struct.Struct(">ih").unpack_from


class _Exchange(NamedTuple):
    """A request that waits for its response."""

    api_key: int
    api_version: int
    correlation_id: int
    number: int = -1  #: the mirrored exchange's number; -1 when it is not mirrored
    groups: tuple[str, ...] = ()
    held: bool = False
    client_id: str | None = None


_TOKEN: Final = _Exchange(-1, -1, 0)
_NONE: Final = _Exchange(-1, -1, 0)  # of a record that is not of a frame


class Conversation:
    """Follows one connection between a client and a broker.

    :param write: takes the records, partition and offset -1; a record whose group is None is meant for every partition.
    :param connection: a name for the connection that is never used again.
    :param at_us: when it was opened, microseconds since the epoch, as all times here.
    :param frame_cap: how many bytes of a frame are kept; the record of a longer one says how many are not.
    :param on_opaque: called once with the reason when the connection cannot be followed any further.
    :param topics: what is known of the cluster's topics, of which news is written; None to look for none.
    :param software: what clients have announced on other connections.
    :param on_answer: called once for each response, with API key and version of its request as soon as its first bytes show that; -1 for
        what answers none.
    :param on_login: called with the SASL mechanism that a client asks for.
    """

    def __init__(
        self,
        write: Callable[[MirrorRecord], None],
        *,
        cluster: str,
        broker: str,
        connection: str,
        client_address: str,
        at_us: int,
        frame_cap: int = FRAME_CAP,
        on_opaque: Callable[[str], None] = lambda _: None,
        topics: KnownTopics | None = None,
        software: ClientSoftware | None = None,
        on_answer: Callable[[int, int], None] = lambda _key, _version: None,
        on_login: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._write = write
        self._cluster = cluster
        self._broker = broker
        self._connection = connection
        self._client_address = client_address
        self._frame_cap = frame_cap
        self._on_opaque = on_opaque
        self._on_answer = on_answer
        self._on_login = on_login
        self._topics = topics
        self._at_us = at_us
        self._software = ""
        self._principal = ""  # set only by an input that knows it
        self._step_us = 0  # likewise
        self._known_software = ClientSoftware() if software is None else software
        self._announced: tuple[Client, str] | None = None  # by this connection itself
        self._groups: dict[str, None] = {}  # seen on this connection, in order
        self._next_number = 0
        self._client: str | None = None  #: its id in the last request that was mirrored
        self._waiting: deque[_Exchange] = deque()
        self._answered: _Exchange | None = None  # whose response is being read
        self._among_tokens = False
        self._request_is_token = False
        self._requests = FrameReader(self._wanted_of_request, self._request_came)
        self._responses = FrameReader(self._wanted_of_response, self._response_came)
        self._opaque = False
        self._opaque_since_us = 0
        self._opaque_bytes = 0
        self._gap_written = False
        self._client_finished_us = 0  #: when the client closed its end; 0 while it has not, and once that is written
        self._end_written = False
        self._held = [self._record(Kind.OPEN)]

    # --- what the capturer reports ---------------------------------------------------------------------------------

    def client_sent(self, data: bytes, at_us: int) -> None:
        """The next bytes on their way to the broker."""
        self._at_us = at_us
        self._follow(self._requests, data)

    def broker_sent(self, data: bytes, at_us: int) -> None:
        """The next bytes on their way to the client."""
        self._at_us = at_us
        self._follow(self._responses, data)
        if self._opaque and not self._gap_written:
            self._write_gap()  # the broker understands what this client says, and we do not
        if self._client_finished_us:
            self._write_end_of_client()

    def client_finished(self, at_us: int) -> None:
        """The client has closed its end of the connection: it takes no answer any more.

        The broker does not notice while it holds a JoinGroup or a SyncGroup, so that its own end of the connection may come minutes later.
        """
        self._at_us = self._client_finished_us = at_us
        self._write_end_of_client()

    def closed(self, at_us: int) -> None:
        """The connection has ended, on whichever side."""
        self._at_us = at_us
        if self._announced is not None:
            self._known_software.closed(*self._announced)
        if self._gap_written:
            self._write_gap()
        if not self._end_written:
            self._write_end()

    def _write_end_of_client(self) -> None:
        """Say that the client has gone, once no answer is under way to it but those that the coordinator holds."""
        if any(asked.number >= 0 and asked.api_key not in _HELD_BY_COORDINATOR for asked in self._waiting):
            return
        self._at_us, self._client_finished_us = self._client_finished_us, 0
        self._write_end()

    def _write_end(self) -> None:
        self._end_written = True
        self._write_to(self._groups, self._record(Kind.CLOSE))

    # --- both directions -------------------------------------------------------------------------------------------

    def _follow(self, reader: FrameReader, data: bytes) -> None:
        if not self._opaque:
            try:
                reader.feed(data)
            except UnreadableError as error:
                self._become_opaque(str(error))
            except Exception as error:  # whatever goes wrong in here must not disturb the client
                self._become_opaque(f"internal error: {error!r}")
            else:
                return
        self._opaque_bytes += len(data)

    def _become_opaque(self, reason: str) -> None:
        self._opaque = True
        self._opaque_since_us = self._at_us
        self._waiting.clear()
        if self._groups:
            self._write_gap()
        self._on_opaque(reason)

    def _write_gap(self) -> None:
        self._gap_written = True
        loss = Loss(records=0, bytes=self._opaque_bytes, from_us=self._opaque_since_us, to_us=self._at_us)
        gap = self._record(Kind.GAP, frame=pack_loss(loss))
        if self._groups:
            self._write_to(self._groups, gap)
        else:
            self._write(gap)

    def _record(
        self,
        kind: Kind,
        exchange: _Exchange = _NONE,
        *,
        group: str | None = None,
        frame: bytes = b"",
        cut: int = 0,
        behind: int = 0,
    ) -> MirrorRecord:
        return MirrorRecord(
            -1,
            -1,
            group,
            kind,
            self._at_us,
            self._cluster,
            self._broker,
            self._connection,
            exchange.number,
            exchange.api_key,
            exchange.api_version,
            exchange.correlation_id,
            exchange.client_id,
            self._client_address,
            self._software,
            cut,
            behind,
            frame,
            cut if len(frame) >= self._frame_cap else 0,
            self._principal,
            self._step_us,
        )

    def _write_to(self, groups: Iterable[str], record: MirrorRecord) -> None:
        targets = tuple(groups)
        share = max(FAN_OUT_CAP // len(targets), 64) if targets else 0
        if len(record.frame) > share:
            capped = len(record.frame) - share
            record = record._replace(
                frame=record.frame[:share], cut_bytes=record.cut_bytes + capped, capped_bytes=record.capped_bytes + capped
            )
        for group in targets:
            self._write(record._replace(group=group))

    # --- requests --------------------------------------------------------------------------------------------------

    def _wanted_of_request(self, size: int, head: bytes) -> int:
        if size > LARGEST_REQUEST:
            raise UnreadableError(f"not Kafka, or encrypted: a request of {size} bytes")
        if self._among_tokens:
            if len(head) < min(size, REQUEST_PREFIX + 2):
                return REQUEST_PREFIX + 2
            self._request_is_token = not _is_request_among_tokens(size, head)
            if self._request_is_token:
                return 0
            self._among_tokens = False
            self._waiting = deque(waiting for waiting in self._waiting if waiting is not _TOKEN)  # those will not be answered
        if size < REQUEST_PREFIX:
            raise UnreadableError(f"not Kafka: a request of {size} bytes")
        if len(head) < REQUEST_PREFIX:
            return REQUEST_PREFIX
        key, version, _ = _header(head)
        if not (0 <= key < _KEY_LIMIT and 0 <= version < _VERSION_LIMIT):
            raise UnreadableError(f"not Kafka: a request with API key {key}, version {version}")
        if key in MIRRORED_API_KEYS:
            return self._frame_cap
        if key == _SASL_HANDSHAKE:
            return _HANDSHAKE_REQUEST
        return _wanted_of_produce(version, head) if key == _PRODUCE else REQUEST_PREFIX

    def _request_came(self, size: int, head: bytes) -> None:
        if self._request_is_token:
            self._request_is_token = False
            self._waiting.append(_TOKEN)
            return
        key, version, correlation_id = _header(head)
        if key == _PRODUCE and _acks(version, head) == 0:
            return
        exchange = _Exchange(key, version, correlation_id)
        if key in MIRRORED_API_KEYS:
            exchange = self._mirror_request(exchange, size, head)
        elif key == _SASL_HANDSHAKE:
            self._on_login(_mechanism(head))
        self._waiting.append(exchange)

    def _mirror_request(self, exchange: _Exchange, size: int, frame: bytes) -> _Exchange:
        key, version, correlation_id = exchange[:3]
        cut = size - len(frame)
        body = None if cut else _body(key, version, frame)
        held = key == _API_VERSIONS and len(self._held) < _HELD_AT_MOST
        named = _leading_group(key, version, frame) if body is None and cut else () if body is None else groups_named(body)
        if len(named) > 1:
            named = tuple(dict.fromkeys(named))
        if not named and body is None and not held and not self._groups:
            named = ("",)  # it may concern any group: better an odd key than silence
        for group in named:
            if group not in self._groups:
                self._groups[group] = None
                for record in self._held:
                    self._write(record._replace(group=group))
        groups = named or tuple(self._groups)
        number = self._next_number if groups or held else -1
        client = self._client = client_id(frame)
        exchange = _Exchange(key, version, correlation_id, number, groups, held, client)
        if not self._software and not held:
            self._software = self._known_software.of((self._client_address, client))
        if number < 0:
            return exchange
        self._next_number += 1
        behind = len(self._waiting)
        if len(groups) == 1 and not held:
            record = self._record(Kind.REQUEST, exchange, group=groups[0], frame=frame, cut=cut, behind=behind)
            record.body = body
            self._write(record)
        else:
            record = self._record(Kind.REQUEST, exchange, frame=frame, cut=cut, behind=behind)
            self._write_to(groups, record)
            if held:
                self._held.append(record)
        if key == _API_VERSIONS and body is not None:
            self._announce(client, _software(body))
        return exchange

    def _announce(self, client: str | None, software: str) -> None:
        if software and self._announced is None:
            self._software = software
            self._announced = ((self._client_address, client), software)
            self._known_software.announced(*self._announced)

    # --- responses -------------------------------------------------------------------------------------------------

    def _wanted_of_response(self, size: int, head: bytes) -> int:
        if self._waiting and self._waiting[0] is _TOKEN:
            self._answered = _TOKEN
            self._on_answer(-1, -1)
            return 0
        if self._among_tokens and not self._waiting:
            self._answered = None
            self._on_answer(-1, -1)
            return 0
        if not RESPONSE_PREFIX <= size < 2**31:
            raise UnreadableError(f"not Kafka: a response of {size} bytes")
        if len(head) < RESPONSE_PREFIX:
            return RESPONSE_PREFIX
        answered = self._answered = self._match(*_correlation_id(head))
        if len(head) == RESPONSE_PREFIX:
            self._on_answer(answered.api_key, answered.api_version)
        if answered.number >= 0:
            return self._frame_cap
        if answered.api_key == _SASL_HANDSHAKE and answered.api_version == 0:
            return _HANDSHAKE_RESPONSE
        return size if self._has_topics(answered, size) else RESPONSE_PREFIX

    def _has_topics(self, answered: _Exchange, size: int) -> bool:
        return answered.api_key == METADATA and self._topics is not None and size <= READ_AT_MOST

    def _note_topics(self, answered: _Exchange, frame: bytes) -> None:
        assert self._topics is not None
        client = self._client, self._client_address
        if new := self._topics.read(frame, answered.api_version, client):
            self._write(topics(self._at_us, new, cluster=self._cluster, client=client))

    def _match(self, correlation_id: int) -> _Exchange:
        """The request that is answered: the oldest one, but for Produce requests that turn out to have had no answer."""
        while self._waiting:
            oldest = self._waiting[0]
            if oldest.correlation_id == correlation_id:
                return oldest
            if oldest.api_key != _PRODUCE:
                raise UnreadableError(f"response {correlation_id} came where request {oldest.correlation_id} was to be answered")
            self._waiting.popleft()
        raise UnreadableError(f"response {correlation_id} answers no request")

    def _response_came(self, size: int, head: bytes) -> None:
        answered = self._answered
        if answered is None:
            return
        self._waiting.popleft()
        if answered.number >= 0:
            cut = size - len(head)
            if len(answered.groups) == 1 and not answered.held:
                self._write(self._record(Kind.RESPONSE, answered, group=answered.groups[0], frame=head, cut=cut))
                return
            record = self._record(Kind.RESPONSE, answered, frame=head, cut=cut)
            self._write_to(self._groups if answered.held else answered.groups, record)
            if answered.held:
                self._held.append(record)
        elif len(head) == size and self._has_topics(answered, size):
            self._note_topics(answered, head)
        elif answered.api_key == _SASL_HANDSHAKE and answered.api_version == 0 and len(head) == _HANDSHAKE_RESPONSE:
            _, error_code = _handshake_response(head)
            self._among_tokens = error_code == 0


_HANDSHAKE_RESPONSE: Final = 6
"""Correlation id and error code of a SaslHandshake v0 response."""


_HANDSHAKE_REQUEST: Final = 1_024
"""Bytes of a SaslHandshake request, which holds nothing but client id and mechanism."""


def _mechanism(request: bytes) -> str:
    at = 10 + max(int.from_bytes(request[8:10], "big", signed=True), 0)
    length = int.from_bytes(request[at : at + 2], "big", signed=True)
    return request[at + 2 : at + 2 + max(length, 0)].decode(errors="replace")


def _is_request_among_tokens(size: int, head: bytes) -> bool:
    """Whether a frame is a request again, and not one more SASL token: its header makes sense from the key to the client id."""
    if len(head) < REQUEST_PREFIX + 2:
        return False
    key, version, _ = _header(head)
    client_id_length = int.from_bytes(head[8:10], "big", signed=True)
    return (
        0 <= key < _KEY_LIMIT_AMONG_TOKENS
        and 0 <= version < _VERSION_LIMIT_AMONG_TOKENS
        and -1 <= client_id_length <= size - REQUEST_PREFIX - 2
    )


def _wanted_of_produce(version: int, head: bytes) -> int:
    try:
        return bytes_up_to_acks(version, head)
    except UnreadableError:
        return len(head)


def _acks(version: int, head: bytes) -> int | None:
    if _wanted_of_produce(version, head) != len(head) or len(head) == REQUEST_PREFIX:
        return None
    return int.from_bytes(head[-2:], "big", signed=True)


def _body(api_key: int, api_version: int, frame: bytes) -> Any:
    """The decoded request, or None when this version or these bytes cannot be decoded, which the mirror's reader finds out too."""
    try:
        return decode(frame, request=True, api_key=api_key, api_version=api_version).body
    except DecodeError:
        return None


def _leading_group(api_key: int, api_version: int, frame: bytes) -> tuple[str, ...]:
    group = leading_group(frame, api_key, api_version)
    return () if group is None else (group,)


def _software(body: Any) -> str:
    """Name and version of the client's software, in ApiVersions requests from version 3 on (KIP-511)."""
    name, version = getattr(body, "client_software_name", ""), getattr(body, "client_software_version", "")
    return f"{name} {version}".strip()

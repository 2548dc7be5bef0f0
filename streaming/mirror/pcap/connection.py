"""One captured connection: a conversation whose bytes may be missing, or that began before the capture.

The tap misses nothing of a connection, so its :class:`Conversation` may treat any surprise as the end of what can be followed. A capture
misses bytes. They may lie in a body that is skipped anyway (nothing is lost then), cut a mirrored frame short (its record says so), or hide
where frames begin. Then the groups of the connection get a gap record, and the next beginning is searched for.

Nothing is written for a connection before it has proven to be Kafka's. Captures are full of other traffic, and any four bytes of it look
like a size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from coordinator_model.wire.record import Cause, Kind, Loss, pack_loss
from streaming.mirror.conversation import Conversation, _Exchange
from streaming.mirror.frames import REQUEST_PREFIX, RESPONSE_PREFIX, SIZE_PREFIX, FrameReader, UnreadableError
from streaming.mirror.listener import written
from streaming.mirror.pcap.resync import HEADER, AwaitedResponse, RequestSearch, ResponseSearch, may_begin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from streaming.mirror.client_software import ClientSoftware
    from streaming.mirror.pcap.capture_stats import CaptureStats
    from streaming.mirror.pcap.dedup import Leg
    from streaming.mirror.pcap.reassembly import Stream
    from streaming.mirror.topics import KnownTopics

Endpoint = tuple[str, int]

_FAILURES: Final = 3
"""So often an unproven connection may turn out not to be readable from where it seemed to be."""

_GAP_EVERY_US: Final = 1_000_000

_UNSEEN: Final = _Exchange(-1, -1, 0)


class Capture(Protocol):
    """What connections share."""

    stats: CaptureStats

    def is_broker(self, endpoint: Endpoint) -> bool:
        """Whether the operator named this port, or it has proved to be Kafka's."""

    def proven(self, talk: CapturedConnection) -> None:
        """The connection is one between a client and a broker."""


class LossyReader(FrameReader):
    """A frame reader that can skip bytes that are missing.

    Most segments hold one whole frame or several, which need no collecting: that is three times as fast.
    """

    __slots__ = ()

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the stream, in whatever portions they come."""
        if self._size < 0 and not self._head:
            end = len(data)
            begin = SIZE_PREFIX
            while begin <= end:
                size = int.from_bytes(data[begin - SIZE_PREFIX : begin], "big")
                if begin + size > end:
                    break
                frame = data[begin : begin + size]
                want = self._wanted(size, frame)
                self._finished(size, frame if want >= size else frame[:want])
                begin += size + SIZE_PREFIX
            data = data[begin - SIZE_PREFIX :]
        if data:
            super().feed(data)

    def miss(self, count: int, header: int) -> bool:
        """Count the next bytes as missing; return False when the place in the stream is lost with them.

        :param header: so many first bytes of a frame must be there for what is left of it to be of use.
        """
        if self._size < 0:
            return False
        if not self._skip:
            if len(self._head) < header:
                return False
            self._skip = self._size - len(self._head)
        fits = count <= self._skip
        self._skip -= min(count, self._skip)
        if not self._skip:
            self._finish()
        return fits


class CapturedConnection(Conversation):
    """A connection between a client and a broker, as a capture has it. A listener to its TCP stream.

    :param client_side: which of the stream's sides is the client's.
    :param endpoint: the broker's.
    :param midway: the connection was open before the capture.
    """

    _requests: LossyReader
    _responses: LossyReader

    def __init__(
        self,
        leg: Leg,
        *,
        capture: Capture,
        stream: Stream,
        client_side: int,
        endpoint: Endpoint,
        cluster: str,
        connection: str,
        client_address: str,
        at_us: int,
        midway: bool,
        frame_cap: int,
        topics: KnownTopics,
        software: ClientSoftware,
    ) -> None:
        broker = written(*endpoint)
        super().__init__(
            leg,
            cluster=cluster,
            broker=broker,
            connection=connection,
            client_address=client_address,
            at_us=at_us,
            frame_cap=frame_cap,
            topics=topics,
            software=software,
        )
        self._capture = capture
        self._stream = stream
        self._client_side = client_side
        self.endpoint = endpoint
        self._is_proven = False
        self._lenient = midway
        self._failures = 0
        self._loss: Loss | None = None  # not written yet
        self._captured = [False, False]  # whether any bytes of a side were captured
        self._gap_at_us = 0
        self._first = b""
        self._is_opening = not midway
        self._may_be_unseen = midway  # answers to requests that were not captured may come
        self._is_beginning = midway  # no byte was missing yet: what is passed over was under way when the capture began
        self._asked_before_loss = 0
        self._request_search: RequestSearch | None = RequestSearch() if midway else None
        self._response_search: ResponseSearch | None = ResponseSearch() if midway else None
        self._requests = self._request_reader()
        self._responses = self._response_reader()
        if midway:
            self._held.clear()  # its opening was not captured

    # --- what the TCP stream reports -----------------------------------------------------------------------------------

    def received(self, side: int, data: bytes, at_us: int) -> None:
        """The next bytes from a side of the stream."""
        self._at_us = at_us
        if side == self._client_side and not self._captured[side] and self._capture.is_broker(self.endpoint):
            self._capture.stats.connection_began(data)
        self._captured[side] = True
        if self._is_opening:
            self._open(side, data, at_us)
        elif side == self._client_side:
            if self._request_search is None:
                self._follow(self._requests, data)
            else:
                self._go_on_with_request(self._request_search, self._request_search.feed(data))
        elif self._response_search is None:
            self.broker_sent(data, at_us)
        else:
            self._go_on_with_response(self._response_search, self._response_search.feed(data, _awaited(self._waiting)))

    def finished(self, side: int, at_us: int) -> None:
        """A side has closed its end of the connection."""
        if side == self._client_side:
            self.client_finished(at_us)

    def missed(self, side: int, count: int, at_us: int) -> None:
        """The next bytes from a side were not captured."""
        self._at_us = at_us
        if self._opaque:
            self._opaque_bytes += count
        elif side == self._client_side:
            self._miss_requests(count)
        else:
            self._miss_responses(count)

    def lost(self, side: int, count: int, at_us: int) -> None:
        """Bytes from a side are missing, and it is not known how many: where the next frame begins has to be searched for.

        :param count: so many at least.
        """
        self._at_us = at_us
        if side == self._client_side:
            self._is_opening = False
            self._lose_requests()
        else:
            self._lose_responses()
        self._write_loss(count)

    def unreadable(self, reason: str, at_us: int) -> None:
        """What the connection carries cannot be read; if a broker is known to be there, that is a gap."""
        self._at_us = at_us
        if self._capture.is_broker(self.endpoint):
            super()._become_opaque(reason)
            self._capture.stats.count_opaque(reason)
            if not self._gap_written:
                self._write_gap()
        else:
            self._stream.ignore()

    # --- the beginning -------------------------------------------------------------------------------------------------

    def _open(self, side: int, data: bytes, at_us: int) -> None:
        """Only if the first bytes can be a request's is it worth following, unless a broker is known to be there."""
        if not self._capture.is_broker(self.endpoint):
            if side == self._client_side:
                self._first += data
            if side != self._client_side or not may_begin(self._first):
                self._turn_away(self._first or data)
                return
            if len(self._first) < HEADER:
                return
            data, self._first = self._first, b""
        self._is_opening = False
        self.received(side, data, at_us)

    def _turn_away(self, first: bytes) -> None:
        self._capture.stats.count_foreign(first)
        self._stream.ignore()

    def _prove(self) -> None:
        if not self._is_proven:
            self._is_proven = True
            self._capture.proven(self)

    # --- missing bytes -------------------------------------------------------------------------------------------------

    def _miss_requests(self, count: int) -> None:
        if self._is_opening:  # the first bytes of all
            self._is_opening = False
        elif self._request_search is not None:
            self._is_beginning = False
            found = self._request_search.cut(count)
            self._go_on_with_request(self._request_search, found)
            if found is not None:
                self._miss_requests(count)
            return
        elif self._requests.miss(count, REQUEST_PREFIX):
            return
        self._lose_requests()
        self._write_loss(count)

    def _miss_responses(self, count: int) -> None:
        if self._response_search is not None:
            self._is_beginning = False
            found = self._response_search.cut(count, _awaited(self._waiting))
            self._go_on_with_response(self._response_search, found)
            if found is not None:
                self._miss_responses(count)
        elif not self._responses.miss(count, RESPONSE_PREFIX):
            self._lose_responses()
            self._write_loss(count)

    def _lose_requests(self) -> None:
        self._lenient = self._may_be_unseen = True
        self._is_beginning = False
        self._asked_before_loss = len(self._waiting)
        self._request_search = RequestSearch()
        self._requests = self._request_reader()

    def _lose_responses(self) -> None:
        self._lenient = True
        self._is_beginning = False
        self._response_search = ResponseSearch()
        self._responses = self._response_reader()
        self._answered = None

    def _write_loss(self, count: int) -> None:
        """To the groups of the connection; to those that it names later, before anything else."""
        self._count_loss(count)
        self._write_noted()

    def _note_loss(self, count: int) -> None:
        """While the beginning of a frame is searched for, the same gap is written at most once a second."""
        if count:
            self._count_loss(count)
            if self._at_us - self._gap_at_us >= _GAP_EVERY_US:
                self._write_noted()

    def _count_loss(self, count: int) -> None:
        if self._is_proven:
            self._capture.stats.count_lost(count, among_groups=bool(self._groups))
        loss = self._loss
        self._loss = Loss(0, loss.bytes + count, loss.from_us, self._at_us) if loss else Loss(0, count, self._at_us, self._at_us)

    def _write_noted(self) -> None:
        loss = self._loss
        if loss is None:
            return
        self._gap_at_us, self._loss = self._at_us, None
        cause = Cause.NOT_CAPTURED if all(self._captured) else Cause.ONE_DIRECTION
        gap = self._record(Kind.GAP, frame=pack_loss(loss._replace(cause=cause)))
        self._write_to(self._groups, gap)
        self._held = [*(record for record in self._held if record.kind is not Kind.GAP), gap]

    # --- finding the way again -----------------------------------------------------------------------------------------

    def _go_on_with_request(self, search: RequestSearch, found: bytes | None) -> None:
        if not self._is_beginning:
            self._note_loss(search.passed_over())
        if found is not None:
            self._write_noted()
            self._request_search = None
            self.client_sent(found, self._at_us)

    def _go_on_with_response(self, search: ResponseSearch, found: bytes | None) -> None:
        if not (self._is_beginning and _may_answer_unseen(found, self._waiting)):
            self._note_loss(search.passed_over())
        if found is not None:
            self._write_noted()
            self._response_search = None
            self.broker_sent(found, self._at_us)

    def _become_opaque(self, reason: str) -> None:
        known = self._capture.is_broker(self.endpoint)
        self._failures += 1
        if not known and (not self._lenient or self._failures > _FAILURES):
            self._turn_away(b"")
        elif self._lenient:
            self._waiting.clear()
            self._lose_requests()
            self._lose_responses()
            self._write_loss(1)
        else:
            super()._become_opaque(reason)
            self._capture.stats.count_opaque(reason)

    # --- what the conversation is made of -------------------------------------------------------------------------------

    def _request_reader(self) -> LossyReader:
        return LossyReader(self._wanted_of_request, self._request_came)

    def _response_reader(self) -> LossyReader:
        return LossyReader(self._wanted_of_response, self._response_came)

    def _match(self, correlation_id: int) -> _Exchange:
        if not self._lenient:
            return super()._match(correlation_id)
        for position, asked in enumerate(self._waiting):
            if asked.correlation_id == correlation_id:
                if position >= self._asked_before_loss:
                    self._may_be_unseen = False
                for _ in range(position):  # their answers were not captured, or they had none
                    self._waiting.popleft()
                self._asked_before_loss = max(self._asked_before_loss - position, 0)
                return asked
        if not self._may_be_unseen:
            raise UnreadableError(f"response {correlation_id} answers no request")
        self._waiting.appendleft(_UNSEEN)
        return _UNSEEN

    def _response_came(self, size: int, head: bytes) -> None:
        if self._answered is not None and self._answered is not _UNSEEN:
            self._prove()
            self._asked_before_loss = max(self._asked_before_loss - 1, 0)
        super()._response_came(size, head)

    def _mirror_request(self, exchange: _Exchange, size: int, frame: bytes) -> _Exchange:
        mirrored = super()._mirror_request(exchange, size, frame)
        if mirrored.groups and mirrored.groups[0]:
            self._prove()
        return mirrored


def _awaited(waiting: Iterable[_Exchange]) -> list[AwaitedResponse]:
    return [AwaitedResponse(asked.correlation_id, asked.api_key, asked.api_version, asked.number >= 0) for asked in waiting]


def _may_answer_unseen(found: bytes | None, waiting: Sequence[_Exchange]) -> bool:
    """Whether what was passed over can answer what was asked before the capture: answers come in the order of their requests.

    :param found: the first answer to a request that was seen, None so far.
    """
    if found is None:
        return len(waiting) <= 1
    return waiting[0].correlation_id == int.from_bytes(found[SIZE_PREFIX : SIZE_PREFIX + RESPONSE_PREFIX], "big", signed=True)


class UnidentifiedConnection:
    """A connection whose client is not known yet: it is the side that is found to send requests.

    :param recognised: called with the client's side; gives the conversation that goes on.
    """

    def __init__(self, recognised: Callable[[int, int], CapturedConnection]) -> None:
        self._recognised = recognised
        self._searches = (RequestSearch(), RequestSearch())

    def received(self, side: int, data: bytes, at_us: int) -> None:
        """The next bytes from a side of the stream."""
        found = self._searches[side].feed(data)
        if found is None:
            return
        talk = self._recognised(side, at_us)
        talk.received(side, found, at_us)

    def missed(self, side: int, count: int, at_us: int) -> None:
        """The next bytes from a side were not captured."""
        found = self._searches[side].cut(count)
        if found is None:
            return
        talk = self._recognised(side, at_us)
        talk.received(side, found, at_us)
        talk.missed(side, count, at_us)

    def finished(self, side: int, at_us: int) -> None:
        """A side has closed its end of the connection."""

    def closed(self, at_us: int) -> None:
        """It has ended."""

"""One captured connection: a conversation whose bytes may be missing, or that had begun before the capture did.

The tap misses nothing of a connection, so its :class:`Conversation` may take any surprise for the end of what can be followed. A capture
misses bytes: they may lie in a body that is passed over anyway (nothing is lost then), cut a mirrored frame short (its record says so),
or hide where frames begin, and which there were. Then the groups of the connection are told of a gap and the next beginning is looked for.

The trap: until a connection has proven to be Kafka's, nothing of what it seems to say may be told of anybody. Captures are full of
other traffic, and four bytes of that are a size, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from coordinator_model.codes import HEARTBEAT, OFFSET_COMMIT, SYNC_GROUP
from coordinator_model.places import GENERATION_SIZE, OFFSET_SIZE, Places, at_generation, places_of
from coordinator_model.pulse import CORRELATION_BEGINS, CORRELATION_ENDS, CORRELATION_SIZE, Constants, Pulse
from coordinator_model.wire import DecodeError, OffsetCommitResponse, decode
from coordinator_model.wire.record import DecodedRecord, Kind, Loss, pack_loss
from streaming.mirror.conversation import Conversation, _Exchange
from streaming.mirror.frames import REQUEST_PREFIX, RESPONSE_PREFIX, SIZE_PREFIX, FrameReader, UnreadableError
from streaming.mirror.reassembly import KINDS, NO_SIZE, Repeat
from streaming.mirror.resync import Awaited, RequestSearch, ResponseSearch, may_begin

if TYPE_CHECKING:
    from collections.abc import Callable

    from streaming.mirror.legs import Leg
    from streaming.mirror.reassembly import Stream

Endpoint = tuple[str, int]

_FAILURES: Final = 3
"""So often an unproven connection may turn out not to be readable from where it seemed to be."""

_TELL_EVERY_US: Final = 1_000_000

_UNSEEN: Final = _Exchange(-1, -1, 0)

_API_VERSIONS: Final = 18
_ANSWERED_ALIKE: Final = frozenset({OFFSET_COMMIT, HEARTBEAT})  # no answer to a commit names a position
_REST_OF_REQUEST: Final = 8  # what follows the correlation id
_REST_OF_RESPONSE: Final = 4

# Looked up once, for they are needed with each frame.
_REQUEST, _RESPONSE = Kind.REQUEST, Kind.RESPONSE
_new, _int = tuple.__new__, int.from_bytes


class Capture(Protocol):
    """What connections share."""

    next_offset: int  #: number of the next record

    def deliver(self, record: DecodedRecord) -> None:
        """Take a frame's record that is numbered, and of a group that is known already."""

    def is_broker(self, endpoint: Endpoint) -> bool:
        """Whether the operator named this port, or it has spoken Kafka."""

    def proven(self, talk: CapturedConversation) -> None:
        """The connection is one between a client and a broker."""

    def foreign(self, first: bytes) -> None:
        """A connection is not Kafka's, as far as it can be read; with its first bytes."""

    def opaque(self, reason: str) -> None:
        """A connection with a broker cannot be followed any further."""

    def lost(self, count: int, *, among_groups: bool) -> None:
        """Bytes of a connection with a broker were not captured, and frames with them.

        :param among_groups: whether the connection has named a group before.
        """


class LossyReader(FrameReader):
    """A frame reader that can be told of bytes that are not there.

    Most segments hold one whole frame or several, which need no collecting: that is three times as fast.

    :param repeats: called with each whole frame first; returns whether it is a usual one, and dealt with.
    """

    __slots__ = ("_repeats", "is_amid")

    def __init__(
        self, wanted: Callable[[int, bytes], int], finished: Callable[[int, bytes], None], repeats: Callable[[bytes], bool]
    ) -> None:
        super().__init__(wanted, finished)
        self._repeats = repeats
        self.is_amid = False  #: whether the next byte belongs to a frame, or a size, that has begun

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
                if not self._repeats(frame):
                    want = self._wanted(size, frame)
                    self._finished(size, frame if want >= size else frame[:want])
                begin += size + SIZE_PREFIX
            data = data[begin - SIZE_PREFIX :]
        if data:
            super().feed(data)
            self.is_amid = self._size >= 0 or bool(self._head)

    def miss(self, count: int, header: int) -> bool:
        """Count the next bytes as missing; returns False when the place in the stream is lost with them.

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
        self.is_amid = self._size >= 0
        return fits


class CapturedConversation(Conversation):
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
    ) -> None:
        broker = _written(endpoint)
        super().__init__(leg, cluster=cluster, broker=broker, connection=connection, client_address=client_address, at_us=at_us)
        self._leg = leg
        self._capture = capture
        self._stream = stream
        self._client_side = client_side
        self.endpoint = endpoint
        self._is_proven = False
        self._lenient = midway
        self._failures = 0
        self._loss: Loss | None = None  # not told yet
        self._told_us = 0
        self._first = b""
        self._usual: _Usual | None = None
        self._heartbeat: Repeat | None = None
        self._commit: Repeat | None = None
        self._last_commit: _Commit | None = None
        self._commit_size = 0  # of the last one that was served
        self._commit_layout: _Layout | None = None
        self._repeats: _Repeats | None = None
        self._answers: dict[int, _Answer] = {}  # the last, by API key
        self._successes: dict[int, _Answer] = {}  # likewise, of heartbeats and commits that were simply served
        self._is_opening = not midway
        self._may_be_unseen = midway  # answers to requests that were not captured may come
        self._asked_before_loss = 0
        self._request_search: RequestSearch | None = RequestSearch() if midway else None
        self._response_search: ResponseSearch | None = ResponseSearch() if midway else None
        self._requests = self._request_reader()
        self._responses = self._response_reader()
        if midway:
            self._held.clear()  # nobody saw it open

    # --- what the TCP stream reports -----------------------------------------------------------------------------------

    def received(self, side: int, data: bytes, at_us: int) -> None:
        """The next bytes from a side of the stream."""
        if self._is_opening:
            self._open(side, data, at_us)
        elif side == self._client_side:
            if self._request_search is None:
                self._at_us = at_us
                self._follow(self._requests, data)
            else:
                self._search_request(self._request_search, data, at_us)
        elif self._response_search is None:
            self.broker_sent(data, at_us)
        else:
            self._search_response(self._response_search, data, at_us)
        if self._heartbeat is not None:
            self._settle()

    def missed(self, side: int, count: int, at_us: int) -> None:
        """The next bytes from a side were not captured."""
        self._at_us = at_us
        if self._opaque:
            self._opaque_bytes += count
        elif side == self._client_side:
            self._miss_requests(count)
        else:
            self._miss_responses(count)
        if self._heartbeat is not None:
            self._settle()

    # --- the beginning -------------------------------------------------------------------------------------------------

    def _open(self, side: int, data: bytes, at_us: int) -> None:
        """Only if the first bytes can be a request's is it worth following, unless a broker is known to be there."""
        if not self._capture.is_broker(self.endpoint):
            if side == self._client_side:
                self._first += data
            if side != self._client_side or not may_begin(self._first):
                self._turn_away(self._first or data)
                return
            if len(self._first) < _ENOUGH:
                return
            data, self._first = self._first, b""
        self._is_opening = False
        self.received(side, data, at_us)

    def _turn_away(self, first: bytes) -> None:
        self._capture.foreign(first)
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
            self._request_search.missed(count)
            self._note_loss(self._request_search.passed_over())
            return
        elif self._requests.miss(count, REQUEST_PREFIX):
            return
        self._lose_requests()
        self._tell_loss(count)

    def _miss_responses(self, count: int) -> None:
        if self._response_search is not None:
            self._response_search.missed(count)
            self._note_loss(self._response_search.passed_over())
        elif not self._responses.miss(count, RESPONSE_PREFIX):
            self._lose_responses()
            self._tell_loss(count)

    def _lose_requests(self) -> None:
        self._lenient = self._may_be_unseen = True
        self._asked_before_loss = len(self._waiting)
        self._request_search = RequestSearch()
        self._requests = self._request_reader()

    def _lose_responses(self) -> None:
        self._lenient = True
        self._response_search = ResponseSearch()
        self._responses = self._response_reader()
        self._answered = None

    def _tell_loss(self, count: int) -> None:
        """To the groups of the connection; to those that it names later, before anything else."""
        self._count_loss(count)
        self._tell_noted()

    def _note_loss(self, count: int) -> None:
        """While the beginning of a frame is looked for, the same is not told more than once a second."""
        if count:
            self._count_loss(count)
            if self._at_us - self._told_us >= _TELL_EVERY_US:
                self._tell_noted()

    def _count_loss(self, count: int) -> None:
        if self._is_proven:
            self._capture.lost(count, among_groups=bool(self._groups))
        loss = self._loss
        self._loss = Loss(0, loss.bytes + count, loss.from_us, self._at_us) if loss else Loss(0, count, self._at_us, self._at_us)

    def _tell_noted(self) -> None:
        loss = self._loss
        if loss is None:
            return
        self._told_us, self._loss = self._at_us, None
        self._write_to(self._groups, self._record(Kind.GAP, frame=pack_loss(loss)))
        self._held = [record for record in self._held if record.kind is not Kind.GAP]
        self._held.append(self._record(Kind.GAP, frame=pack_loss(loss)))

    # --- finding the way again -----------------------------------------------------------------------------------------

    def _search_request(self, search: RequestSearch, data: bytes, at_us: int) -> None:
        self._at_us = at_us
        found = search.feed(data)
        self._note_loss(search.passed_over())
        if found is not None:
            self._tell_noted()
            self._request_search = None
            self.client_sent(found, at_us)

    def _search_response(self, search: ResponseSearch, data: bytes, at_us: int) -> None:
        awaited = [Awaited(asked.correlation_id, asked.api_key, asked.api_version, asked.number >= 0) for asked in self._waiting]
        self._at_us = at_us
        found = search.feed(data, awaited)
        self._note_loss(search.passed_over())
        if found is not None:
            self._tell_noted()
            self._response_search = None
            self.broker_sent(found, at_us)

    def _become_opaque(self, reason: str) -> None:
        known = self._capture.is_broker(self.endpoint)
        self._failures += 1
        if not known and (not self._lenient or self._failures > _FAILURES):
            self._turn_away(b"")
        elif self._lenient:
            self._waiting.clear()
            self._lose_requests()
            self._lose_responses()
            self._tell_loss(1)
        else:
            super()._become_opaque(reason)
            self._capture.opaque(reason)

    # --- what the conversation is made of -------------------------------------------------------------------------------

    def _request_reader(self) -> LossyReader:
        return LossyReader(self._wanted_of_request, self._request_came, self._request_repeats)

    def _response_reader(self) -> LossyReader:
        return LossyReader(self._wanted_of_response, self._response_came, self._response_repeats)

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
            if self._answered.api_key in _ANSWERED_ALIKE and len(head) == size:
                self._learn_response(self._answered, head)
        super()._response_came(size, head)

    def _mirror_request(self, exchange: _Exchange, size: int, frame: bytes) -> _Exchange:
        mirrored = super()._mirror_request(exchange, size, frame)
        if mirrored.groups and mirrored.groups[0]:
            self._prove()
            if mirrored.api_key == HEARTBEAT and len(frame) == size:
                self._learn_request(mirrored, frame)
            elif mirrored.api_key == OFFSET_COMMIT and len(frame) == size:
                self._last_commit = None if self._asks is None else _Commit(mirrored, frame, self._asks)
            elif mirrored.api_key == SYNC_GROUP:
                self._foresee(mirrored)
        if mirrored.api_key == _API_VERSIONS and self._heartbeat is not None:
            self._commit = None
            self._take_pulse()  # its records name the client's software
        return mirrored

    # --- what repeats --------------------------------------------------------------------------------------------------

    def _request_repeats(self, frame: bytes) -> bool:
        """Whether this is the heartbeat that the client sends again and again. It is then mirrored without being read anew."""
        usual = self._usual
        if usual is None or frame[_REST_OF_REQUEST:] != usual.asks or frame[:4] != usual.api or self._among_tokens:
            return False
        number, at_us, capture, waiting = self._next_number, self._at_us, self._capture, self._waiting
        if not self._leg.speaks(frame, number, at_us):
            return False
        correlation_id = _int(frame[4:_REST_OF_REQUEST], "big", signed=True)
        self._next_number = number + 1
        offset = capture.next_offset
        record = _new(
            DecodedRecord,
            (
                0,
                offset,
                usual.group,
                _REQUEST,
                at_us,
                self._cluster,
                self._broker,
                self._connection,
                number,
                HEARTBEAT,
                usual.version,
                correlation_id,
                usual.client_id,
                self._client_address,
                self._software,
                0,
                len(waiting),
                frame,
            ),
        )
        record.body = usual.asked
        waiting.append(usual.exchange(number, correlation_id))
        capture.deliver(record)
        return True

    def _response_repeats(self, frame: bytes) -> bool:
        """Whether the oldest request gets the answer that requests of its kind usually get."""
        waiting = self._waiting
        if not waiting or self._asked_before_loss:
            return False
        asked = waiting[0]
        api_key, version, correlation_id, number, groups, _, client = asked
        usual = self._answers.get(api_key)
        if usual is None or frame[_REST_OF_RESPONSE:] != usual.rest or version != usual.version or len(groups) != 1:
            return False
        if _int(frame[:_REST_OF_RESPONSE], "big", signed=True) != correlation_id or not self._leg.answered(number):
            return False
        self._may_be_unseen = False
        waiting.popleft()
        record = _new(
            DecodedRecord,
            (
                0,
                self._capture.next_offset,
                groups[0],
                _RESPONSE,
                self._at_us,
                self._cluster,
                self._broker,
                self._connection,
                number,
                api_key,
                version,
                correlation_id,
                client,
                self._client_address,
                self._software,
                0,
                0,
                frame,
            ),
        )
        record.body = usual.body
        self._capture.deliver(record)
        return True

    def _learn_request(self, asked: _Exchange, frame: bytes) -> None:
        if self._asks is not None and (self._asks.group_id,) == asked.groups:
            self._usual = _Usual(asked, frame, self._asks)
            self._take_pulse()

    def _foresee(self, asked: _Exchange) -> None:
        """A member syncs, at a new generation: but for that, it will repeat what it did before."""
        usual, syncs, commit = self._usual, self._asks, self._commit
        if usual is None or syncs is None or usual.groups != asked.groups:
            return
        if (usual.asked.member_id, usual.asked.group_instance_id) != (syncs.member_id, syncs.group_instance_id):
            return
        heartbeat = at_generation(usual.frame, usual.asked, syncs.generation_id)
        if heartbeat is None:
            return
        self._usual = _Usual(usual.exchange(-1, 0), *heartbeat)
        if commit is not None:
            commits = commit.pulse.at_generation(syncs.generation_id)
            self._commit = None if commits is None else _repeat(commits)
        self._take_pulse()

    def _learn_response(self, asked: _Exchange, frame: bytes) -> None:
        if asked.number < 0 or len(asked.groups) != 1:
            return
        try:
            body = decode(frame, request=False, api_key=asked.api_key, api_version=asked.api_version).body
        except DecodeError:
            return
        answer = self._answers[asked.api_key] = _Answer(asked.api_version, frame, frame[_REST_OF_RESPONSE:], body)
        if answer.is_success:
            self._successes[asked.api_key] = answer
            if asked.api_key == HEARTBEAT:
                self._take_pulse()
            elif self._last_commit is not None and self._last_commit.asked is asked:
                self._learn_commit(self._last_commit, answer)

    # --- what repeats, and changes nothing but times and positions --------------------------------------------------------

    def _take_pulse(self) -> None:
        """Know the heartbeat and its usual answer as one thing, if that is plain success."""
        usual, answer = self._usual, self._successes.get(HEARTBEAT)
        self._heartbeat = None
        if usual is not None and answer is not None and answer.version == usual.version:
            pulse = self._pulse((usual.group, usual.version, usual.client_id), usual.frame, answer, usual.asked)
            self._heartbeat = _repeat(pulse)
        self._begin_anew()

    def _learn_commit(self, last: _Commit, answer: _Answer) -> None:
        """Likewise the commit, if it is the first, or as long as the one before: what is committed once is not worth the trouble."""
        asked, frame, asks = last
        known, layout = self._commit, self._commit_layout
        before, self._commit_size = self._commit_size or len(frame), len(frame)
        if layout is not None and not layout.fits(frame):
            layout = None
        if known is not None and layout is not None:
            is_same_answer = answer.rest == known.pulse.constants.response[_REST_OF_RESPONSE:]
            if is_same_answer and asks.generation_id_or_member_epoch == known.pulse.generation:
                return
        self._commit = None
        if before == len(frame) and len(asked.groups) == 1:
            if layout is None:
                places = places_of(frame, asks)
                layout = self._commit_layout = None if places is None else _Layout(frame, places)
            if layout is not None:
                who = asked.groups[0], asked.api_version, asked.client_id
                self._commit = _repeat(self._pulse(who, frame, answer, asks, layout.places.offsets))
        self._begin_anew()

    def _pulse(
        self, asked: tuple[str, int, str | None], request: bytes, answer: _Answer, asks: Any, places: tuple[int, ...] = ()
    ) -> Pulse:
        """:param asked: group, version and client id."""
        group, version, client_id = asked
        who = (group, self._cluster, self._broker, self._connection, version, client_id, self._client_address, self._software)
        return Pulse(Constants(*who, request, answer.frame, places), asks, answer.body)

    def _begin_anew(self) -> None:
        """Something else than before is said again and again."""
        beats, commits = self._heartbeat, self._commit
        self._repeats = None
        if beats is not None:
            tells_apart = commits is not None and not set(beats.sizes) & set(commits.sizes)
            kinds = (beats, commits) if commits is not None and tells_apart else (beats,)
            self._repeats = _Repeats(self, kinds, self._client_side)
        self._settle()

    def _settle(self) -> None:
        """Say what the stream may hand over in columns: what repeats, while nothing else goes on.

        It hangs on what only other frames of this connection can change, so it is looked at behind each of these.
        """
        is_quiet = (
            not self._waiting
            and not self._asked_before_loss
            and not self._may_be_unseen
            and not self._among_tokens
            and not self._opaque
            and self._request_search is None
            and self._response_search is None
            and not self._requests.is_amid
            and not self._responses.is_amid
            and self._leg.is_itself
        )
        self._stream.repeats = self._repeats if is_quiet else None


class _Repeats:
    """What a connection repeats: see :class:`streaming.mirror.reassembly.Repeats`."""

    __slots__ = ("_talk", "client_side", "kinds", "sizes")

    def __init__(self, talk: CapturedConversation, kinds: tuple[Repeat, ...], client_side: int) -> None:
        self._talk = talk
        self.kinds = kinds
        self.client_side = client_side
        sizes = [size for repeat in kinds for size in repeat.sizes]
        self.sizes = (*sizes, *[NO_SIZE] * (2 * KINDS - len(sizes)))

    @property
    def exchange(self) -> int:
        return self._talk._next_number  # noqa: SLF001 - it is a part of the conversation

    def passed(self, count: int) -> None:
        self._talk._next_number += count  # noqa: SLF001


def _repeat(pulse: Pulse) -> Repeat:
    request, response, places = pulse.constants.request, pulse.constants.response, pulse.constants.places
    said = says(request)
    opening = said[: places[0] - CORRELATION_SIZE] if places else said
    return Repeat(pulse, _with_size(request), _with_size(response), tuple(SIZE_PREFIX + place for place in places), opening)


class _Layout:
    """How a commit is laid out."""

    __slots__ = ("_same", "places")

    def __init__(self, frame: bytes, places: Places) -> None:
        self.places = places
        self._same = self._without_news(frame)

    def fits(self, frame: bytes) -> bool:
        """Whether the commit differs from that one in correlation id, generation and offsets only."""
        return len(frame) == len(self._same) and self._without_news(frame) == self._same

    def _without_news(self, frame: bytes) -> bytearray:
        blank = bytearray(frame)
        blank[CORRELATION_BEGINS:CORRELATION_ENDS] = bytes(CORRELATION_SIZE)
        generation, offsets = self.places
        blank[generation : generation + GENERATION_SIZE] = bytes(GENERATION_SIZE)
        for place in offsets:
            blank[place : place + OFFSET_SIZE] = bytes(OFFSET_SIZE)
        return blank


def _with_size(frame: bytes) -> bytes:
    return len(frame).to_bytes(SIZE_PREFIX, "big") + frame


def says(request: bytes) -> bytes:
    """A request but for its correlation id."""
    return request[:4] + request[_REST_OF_REQUEST:]


class _Answer(NamedTuple):
    """How requests of an API were last answered."""

    version: int
    frame: bytes
    rest: bytes  #: what follows the correlation id
    body: Any

    @property
    def is_success(self) -> bool:
        """Whether a heartbeat, or a commit, was simply served."""
        body = self.body
        if isinstance(body, OffsetCommitResponse):
            failed = not body.topics or any(partition.error_code for topic in body.topics for partition in topic.partitions)
        else:
            failed = bool(body.error_code)
        return not (failed or body.throttle_time_ms)


class _Commit(NamedTuple):
    """A commit that was asked for."""

    asked: _Exchange
    frame: bytes
    asks: Any  #: decoded


class _Usual:
    """A heartbeat: the bytes that are always the same, and what they mean.

    Most requests of a quiet group are heartbeats, and each is like the one before but for its correlation id.
    """

    __slots__ = ("api", "asked", "asks", "client_id", "frame", "group", "groups", "version")

    def __init__(self, exchange: _Exchange, frame: bytes, asked: Any) -> None:
        self.api = frame[:4]
        self.frame = frame
        self.asks = frame[_REST_OF_REQUEST:]
        self.asked = asked
        self.version = exchange.api_version
        self.client_id = exchange.client_id
        self.groups = exchange.groups
        self.group = exchange.groups[0]

    def exchange(self, number: int, correlation_id: int) -> _Exchange:
        """What is to be known of such a request until it is answered."""
        return _new(_Exchange, (HEARTBEAT, self.version, correlation_id, number, self.groups, False, self.client_id))


_ENOUGH: Final = 14
"""Bytes of a connection's beginning by which it is judged."""


class Stranger:
    """A connection of which nothing tells who is the client: the side that is found to send requests.

    :param recognised: called with the client's side; gives the conversation that goes on.
    """

    def __init__(self, recognised: Callable[[int, int], CapturedConversation]) -> None:
        self._recognised = recognised
        self._searches = (RequestSearch(), RequestSearch())

    def received(self, side: int, data: bytes, at_us: int) -> None:
        """The next bytes from a side of the stream."""
        found = self._searches[side].feed(data)
        if found is None:
            return
        talk = self._recognised(side, at_us)
        talk.received(side, found, at_us)

    def missed(self, side: int, count: int, at_us: int) -> None:  # noqa: ARG002
        """The next bytes from a side were not captured."""
        self._searches[side].missed(count)

    def closed(self, at_us: int) -> None:
        """It has ended."""


def _written(endpoint: Endpoint) -> str:
    host, port = endpoint
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

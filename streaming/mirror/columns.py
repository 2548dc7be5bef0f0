"""Finds what repeats among many packets at once: their headers as columns, so that no packet is looked at by itself.

Most packets of a capture of quiet groups are a heartbeat like the one before on its connection, a commit of the same partitions, plain
success in answer to it, or a bare acknowledgement. Whatever follows the order of the stream and is byte for byte one of these, but for
what is new each time, is *taken*; the rest is for the layers to look at, packet by packet.

The traps: from the first packet of a connection that is anything else, all that follows on it is left to the layers, for they know the
connection as it is then; and an exchange is taken whole or not at all, the acknowledgement between request and answer with it. A packet
whose headers do not lie where everyday ones do may belong to any connection, so whose it is, is asked of those who can read it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from coordinator_model.places import OFFSET_SIZE
from coordinator_model.pulse import CORRELATION_SIZE
from streaming.mirror.chain import laid_over, read_at
from streaming.mirror.reassembly import HALF, KINDS, MODULUS, NO_SIZE, SPECIAL
from streaming.mirror.segments import LINKS, TCP, UNFRAGMENTED, WITHOUT_OPTIONS, reverse, segment_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from streaming.mirror.captures import Portion
    from streaming.mirror.reassembly import Half, Repeat, Repeats

    Numbers = NDArray[np.int64]
    Truths = NDArray[np.bool_]

_IPV4: Final = 0x0800
_TRANSPORT: Final = 20  # where TCP begins in a packet without IP options
_KEY: Final = 12  # where the key of the connection stands in it
_KEY_SIZE: Final = 12
_HEADERS_SIZE: Final = 34  # up to the flags
_ASK_ID: Final = slice(8, 8 + CORRELATION_SIZE)  # the correlation id, behind the size and what is asked for in which version
_ANSWER_ID: Final = slice(4, 4 + CORRELATION_SIZE)
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)
_MIX_TOO: Final = np.uint64(0xC2B2AE3D27D4EB4F)
_FRESH_US: Final = 60_000_000  # connections that were silent for longer are left to those who sweep
_SIZES: Final = slice(4, 4 + 2 * KINDS)  # where they stand in the numbers of a connection
_NEITHER: Final = (NO_SIZE,) * 2 * KINDS


def _layout(at: int, type_at: int) -> np.dtype[Any]:
    """The headers of an everyday packet, of a link type on which IP begins and the EtherType stands there."""
    fields = {
        "version": ("u1", at),
        "length": (">u2", at + 2),
        "fragment": (">u2", at + 6),
        "protocol": ("u1", at + 9),
        "source": (">u4", at + 12),
        "destination": (">u4", at + 16),
        "source_port": (">u2", at + 20),
        "destination_port": (">u2", at + 22),
        "sequence": (">u4", at + 24),
        "acknowledges": (">u4", at + 28),
        "offset": ("u1", at + 32),
        "flags": ("u1", at + 33),
    }
    if type_at >= 0:
        fields["kind"] = (">u2", type_at)
    formats, offsets = zip(*fields.values(), strict=True)
    return np.dtype({"names": list(fields), "formats": formats, "offsets": offsets, "itemsize": at + _HEADERS_SIZE})


_LAYOUTS: Final = {link: (_layout(at, type_at), at) for link, (at, type_at) in LINKS.items()}


class Headers(NamedTuple):
    """Columns of the packets that look as most do."""

    odd: list[int]  #: packets that do not
    packet: Numbers  #: which the others are
    low: NDArray[np.uint64]  #: of the two ends of the connection, as numbers
    high: NDArray[np.uint64]
    upwards: Truths  #: from the lower end to the higher
    sequence: Numbers
    acknowledges: Numbers
    begins: Numbers  #: where in the data the payload begins
    size: Numbers  #: of the payload; negative if the headers contradict each other
    special: Truths  #: begins or ends the connection

    def only(self, wanted: Truths) -> Headers:
        """Of some packets."""
        here = np.flatnonzero(wanted[self.packet])  # a fifth of the time that a mask takes
        columns: dict[str, Any] = {name: column[here] for name, column in self._asdict().items() if name != "odd"}
        return Headers(odd=[index for index in self.odd if wanted[index]], **columns)


def headers_of(portion: Portion) -> Headers | None:
    """The headers of packets, or None if they are not all of one link type, or most are not of the everyday kind."""
    link = int(portion.link[0])
    if link not in _LAYOUTS or (portion.link != link).any():
        return None
    layout, at = _LAYOUTS[link]
    size = portion.end - portion.begin
    is_long = size >= layout.itemsize
    if not is_long.any():
        return None
    read = read_at(portion.data, layout, np.where(is_long, portion.begin, portion.begin[is_long.argmax()]))
    end = at + read["length"].astype(np.int64)
    is_plain = is_long & (read["version"] == WITHOUT_OPTIONS) & (read["protocol"] == TCP) & (read["fragment"] & UNFRAGMENTED == 0)
    is_plain &= (at < end) & (end <= size)
    if "kind" in (layout.names or ()):
        is_plain &= read["kind"] == _IPV4
    packet = np.flatnonzero(is_plain)
    if 2 * len(packet) < len(size):
        return None
    if len(packet) < len(size):
        read, end = read_at(portion.data, layout, portion.begin[packet]), end[packet]
    source = read["source"].astype(np.uint64) << np.uint64(16) | read["source_port"]
    destination = read["destination"].astype(np.uint64) << np.uint64(16) | read["destination_port"]
    begins = at + _TRANSPORT + (read["offset"] >> 4).astype(np.int64) * 4
    return Headers(
        odd=np.flatnonzero(~is_plain).tolist(),
        packet=packet,
        low=np.minimum(source, destination),
        high=np.maximum(source, destination),
        upwards=source < destination,
        sequence=read["sequence"].astype(np.int64),
        acknowledges=read["acknowledges"].astype(np.int64),
        begins=portion.begin[packet] + begins,
        size=end - begins,
        special=(read["flags"] & SPECIAL != 0) | (source == destination),
    )


def _bytes_at(data: bytes, begins: Numbers, size: int) -> NDArray[np.uint8]:
    """So many bytes from each place, in rows."""
    return laid_over(data, np.dtype((np.void, size)))[begins].view(np.uint8).reshape(-1, size)


def _rows(texts: Sequence[bytes]) -> NDArray[np.uint8]:
    """Bytes of the same size, in rows."""
    return np.frombuffer(b"".join(texts), np.uint8).reshape(len(texts), -1)


class Found(NamedTuple):
    """What was taken: columns of exchanges, run by run. A run is one kind of what a connection repeats."""

    repeats: list[Repeat]  #: by run
    sizes: Numbers  #: of the runs
    asked: Numbers  #: which packet
    answered: Numbers
    exchange: Numbers  #: number on the connection
    correlation_ids: bytes
    offsets: list[bytes]  #: by run: what is committed, one behind the other


class Taken:
    """Those of the packets that are passed over; their streams are where these lead.

    :param portion: the packets, in the order of the capture.
    :param times_us: when each of them counts as captured.
    :param headers: of those packets that may be taken; what follows one of them on its connection is among them.
    :param halves: the directions of all connections, by key.
    :param busy: what requests say that are under way the long way: one that is under way on two connections is an echo.
    :param spoken: what connections say of which packets have been taken before, and which connections these are.
    """

    def __init__(  # noqa: PLR0917
        self,
        portion: Portion,
        times_us: Numbers,
        headers: Headers,
        halves: Mapping[bytes, Half],
        busy: Collection[bytes],
        spoken: Mapping[bytes, bytes],
    ) -> None:
        self._data = portion.data
        self._times_us = times_us
        self._lines = _Lines(portion, headers, halves, busy, spoken)
        self._runs = _Runs(headers, self._lines)
        self._runs.leave(self._lines.first_odd(portion, headers))
        self._leave_others()
        self._passed_us = [half.stream.passed_us if half is not None else 0 for half in self._lines.halves]
        self._exchanges = [repeats.exchange if repeats is not None else 0 for repeats in self._lines.repeats]
        self._counts = [[0] * KINDS for _ in self._lines.halves]
        self._lead_on(range(len(self._counts)))

    @property
    def spoken(self) -> dict[bytes, bytes]:
        """What connections say again and again, and which these are."""
        return self._lines.spoken()

    @property
    def index(self) -> Numbers:
        """Which packets, connection by connection."""
        return self._runs.packet[self._runs.taken]

    @property
    def is_taken(self) -> Truths:
        """Of each packet."""
        is_taken = np.zeros(len(self._times_us), bool)
        is_taken[self.index] = True
        return is_taken

    def found(self) -> Found:
        """The exchanges that they are."""
        runs = self._runs
        asked, answered = runs.exchanges()
        line, kind = runs.line[asked], runs.kind[asked] - 1
        begins_line = np.flatnonzero(np.diff(line, prepend=-1))
        exchange = np.array(self._exchanges, np.int64)[line] + np.arange(len(line))
        exchange -= np.repeat(begins_line, np.diff(begins_line, append=len(line)))
        order = np.argsort(line * KINDS + kind, kind="stable")
        asked, answered, exchange, line, kind = asked[order], answered[order], exchange[order], line[order], kind[order]
        begins_run = np.flatnonzero(np.diff(line * KINDS + kind, prepend=-1))
        whose = zip(line[begins_run].tolist(), kind[begins_run].tolist(), strict=True)
        repeats = [self._lines.kinds(number)[which] for number, which in whose]
        begins = runs.begins[asked]
        sizes = np.diff(begins_run, append=len(line))
        return Found(
            repeats=repeats,
            sizes=sizes,
            asked=runs.packet[asked],
            answered=runs.packet[answered],
            exchange=exchange,
            correlation_ids=_bytes_at(self._data, begins + _ASK_ID.start, CORRELATION_SIZE).tobytes(),
            offsets=_offsets(self._data, begins, repeats, sizes),
        )

    def frames(self) -> tuple[Numbers, Numbers]:
        """The packets that hold them, and their answers."""
        asked, answered = self._runs.exchanges()
        return self._runs.packet[asked], self._runs.packet[answered]

    def give_back(self, says: bytes, index: int) -> list[int]:
        """Take nothing from this packet on of the connection that says this; gives the packets that are taken no more, in their order.

        What is under way then is given back whole.
        """
        line = self._lines.speaker(says)
        if line is None or self._newest[line] < index:
            return []
        runs, before = self._runs, self.index
        runs.fits[(runs.line == line) & (runs.packet >= index)] = False
        runs.settle()
        self._lead_on([line])
        return np.setdiff1d(before, self.index, assume_unique=True).tolist()  # type: ignore[no-any-return]

    def _leave_others(self) -> None:
        """Take nothing that only looks like what repeats by its size."""
        runs = self._runs
        asked, answered = runs.exchanges()
        line, kind = runs.line[asked], runs.kind[asked] - 1
        sizes = self._lines.numbers[_SIZES].reshape(KINDS, 2, -1)[kind, :, line].T
        wrong = np.zeros(len(line), bool)
        both = sizes[0] << 32 | sizes[1]
        for these in set(both.tolist()):
            here = np.flatnonzero(both == these)
            asked_size, answered_size = these >> 32, these & MODULUS
            asks = _bytes_at(self._data, runs.begins[asked[here]], asked_size)
            answers = _bytes_at(self._data, runs.begins[answered[here]], answered_size)
            wrong[here] = ~self._are_said(line[here] * KINDS + kind[here], asks, answers)
        if wrong.any():
            runs.fits[asked[wrong]] = False
            runs.settle()

    def _are_said(self, said: Numbers, asks: NDArray[np.uint8], answers: NDArray[np.uint8]) -> Truths:
        """Whether requests and answers, one in each row, are what their connections repeat, and belong together.

        :param said: which connection and kind it is by their sizes.
        """
        is_said = np.bincount(said) > 0
        which = (np.cumsum(is_said) - 1)[said]
        usual = [self._lines.kinds(number // KINDS)[number % KINDS] for number in np.flatnonzero(is_said).tolist()]
        is_ask = asks == _rows([repeat.asks for repeat in usual])[which]
        is_answer = answers == _rows([repeat.answers for repeat in usual])[which]
        is_ask[:, _ASK_ID] = True
        is_answer[:, _ANSWER_ID] = answers[:, _ANSWER_ID] == asks[:, _ASK_ID]
        if any(repeat.free for repeat in usual):
            is_ask |= _free_rows(usual, asks.shape[1])[which]
        return is_ask.all(axis=1) & is_answer.all(axis=1)  # type: ignore[no-any-return]

    def _lead_on(self, lines: Iterable[int]) -> None:
        """Put streams where they are behind what is taken of them."""
        runs, known = self._runs, self._lines
        asked, answered = runs.exchanges()
        counted = np.bincount(runs.line[asked] * KINDS + runs.kind[asked] - 1, minlength=KINDS * len(known.halves))
        counts = counted.reshape(-1, KINDS).tolist()
        last = np.full(len(counts), -1)
        last[runs.line[answered]] = runs.packet[answered]  # the last one stays
        of_lines = runs.newest()
        self._newest: list[int] = of_lines.tolist()
        newest, newest_us, answers_us = self._newest, self._times_us[of_lines].tolist(), self._times_us[last].tolist()
        for line in lines:
            half, repeats = known.halves[line], known.repeats[line]
            if half is None:
                continue
            stream = half.stream
            if newest[line] >= 0:
                stream.last_us = newest_us[line]
            if repeats is not None and counts[line] != self._counts[line]:
                asks = stream.halves[repeats.client_side]
                for repeat, count, before in zip(repeats.kinds, counts[line], self._counts[line], strict=False):
                    asks.next += (count - before) * len(repeat.asks)
                    asks.other.next += (count - before) * len(repeat.answers)
                stream.passed_us = answers_us[line] if any(counts[line]) else self._passed_us[line]
                repeats.passed(sum(counts[line]) - sum(self._counts[line]))
                self._counts[line] = counts[line]


class _Lines:
    """The connections that packets belong to, each with what its streams expect next."""

    def __init__(
        self,
        portion: Portion,
        headers: Headers,
        halves: Mapping[bytes, Half],
        busy: Collection[bytes],
        spoken: Mapping[bytes, bytes],
    ) -> None:
        mixed = (headers.low * _MIX + headers.high * _MIX_TOO) >> np.uint64(32)
        order = self.order = _sorted_by(mixed)  #: the packets, connection by connection
        starts = self.starts = np.flatnonzero(np.diff(mixed[order], prepend=~mixed[order[:1]]))  #: where connections begin in it
        self.sizes: Numbers = np.diff(starts, append=len(order))  #: of the connections, in packets
        self.of: Numbers = np.repeat(np.arange(len(starts)), self.sizes)  #: in that order
        first = order[starts]
        low, high, upwards = headers.low[order], headers.high[order], headers.upwards[order]
        self.is_same = (low == low[starts][self.of]) & (high == high[starts][self.of])  #: and none by chance
        self.is_forth = upwards == upwards[starts][self.of]  #: in the direction of the connection's first packet
        self.halves: list[Half | None] = []  #: that direction; none if nothing can be taken
        self.repeats: list[Repeats | None] = []
        self._speaking: dict[bytes, int] = {}  # who says what
        key_at = portion.begin[headers.packet[first]] + _LAYOUTS[int(portion.link[0])][1] + _KEY
        self._keys = [portion.data[at : at + _KEY_SIZE] for at in key_at.tolist()]
        begun_us = int(portion.at_us[0])
        for key in self._keys:
            half = halves.get(key)
            if half is not None and (not half.stream.plain or begun_us - half.stream.last_us > _FRESH_US):
                half = None
            self._add(half)
        for said, line in self._speaking.items() if spoken else ():
            before = spoken.get(said)
            if before is not None and self._keys[line] not in {before, reverse(before)}:
                self.repeats[line] = None
        self._openings = {len(said) for said in self._speaking}
        for said in busy:
            speaker = self.speaker(said)
            if speaker is not None:
                self.repeats[speaker] = None
        self.numbers = np.array([_numbers(*line) for line in zip(self.halves, self.repeats, strict=True)], np.int64).T

    def first_odd(self, portion: Portion, headers: Headers) -> Numbers:
        """The first packet of each connection whose headers were not read."""
        firsts = np.full(len(self._keys), len(portion.at_us))
        lines: dict[bytes, int] = {}
        for index in headers.odd:
            _, link, data, original = portion.packet(index)
            segment = segment_of(link, data, original)
            if segment is None:
                continue
            if not lines:
                lines = {key: line for line, key in enumerate(self._keys)}
                lines |= {reverse(key): line for key, line in lines.items()}
            line = lines.get(segment[0])
            if line is not None:
                firsts[line] = min(firsts[line], index)
        return firsts

    def kinds(self, line: int) -> Sequence[Repeat]:
        """What a connection repeats of which something is taken."""
        found = self.repeats[line]
        assert found is not None
        return found.kinds

    def spoken(self) -> dict[bytes, bytes]:
        """What connections say again and again, and which these are."""
        return {said: self._keys[line] for said, line in self._speaking.items()}

    def speaker(self, says: bytes) -> int | None:
        """The connection that may say this again and again; of what is new each time nothing is compared."""
        for size in self._openings:
            line = self._speaking.get(says[:size])
            if line is not None:
                return line
        return None

    def _add(self, half: Half | None) -> None:
        repeats = half.stream.repeats if half is not None else None
        line = len(self.repeats)
        for repeat in repeats.kinds if repeats is not None else ():
            twin = self._speaking.setdefault(repeat.says, line)
            if twin != line:
                self.repeats[twin] = repeats = None
                break
        self.halves.append(half)
        self.repeats.append(repeats)


def _sorted_by(numbers: NDArray[np.uint64]) -> Numbers:
    """In which order numbers of 32 bits rise, equal ones as they come: numbers of 16 bits are sorted several times as fast."""
    order = np.argsort(numbers.astype(np.uint16), kind="stable")
    return order[np.argsort((numbers >> np.uint64(16))[order].astype(np.uint16), kind="stable")]


def _numbers(half: Half | None, repeats: Repeats | None) -> tuple[int, ...]:
    """What is to be known of a connection in columns: whether it is known; of both directions, the first packet's and the other, where they
    are; whether the first is the client's; by kind, the sizes of its requests and their answers.
    """
    if half is None:
        return 0, 0, 0, 0, *_NEITHER
    sizes, is_client = (_NEITHER, False) if repeats is None else (repeats.sizes, half.side == repeats.client_side)
    return 1, half.next & MODULUS, half.other.next & MODULUS, is_client, *sizes


def _offsets(data: bytes, begins: Numbers, repeats: Sequence[Repeat], sizes: Numbers) -> list[bytes]:
    """What is committed, by run.

    :param begins: of the requests, run by run.
    """
    offsets = [b""] * len(repeats)
    alike: dict[tuple[int, ...], list[int]] = {}
    for run, repeat in enumerate(repeats):
        if repeat.free:
            alike.setdefault(repeat.free, []).append(run)
    run_of = np.repeat(np.arange(len(sizes)), sizes)
    for free, runs in alike.items():
        is_here = np.zeros(len(sizes), bool)
        is_here[runs] = True
        found = _bytes_at(data, np.add.outer(begins[is_here[run_of]], np.array(free)).ravel(), OFFSET_SIZE).tobytes()
        ends = (np.cumsum(sizes[runs]) * len(free) * OFFSET_SIZE).tolist()
        for run, begin, end in zip(runs, [0, *ends], ends, strict=False):
            offsets[run] = found[begin:end]
    return offsets


def _free_rows(usual: Sequence[Repeat], size: int) -> Truths:
    """Which bytes of a request are not the same each time: a row for each kind of request."""
    layouts = {repeat.free: number for number, repeat in enumerate(usual)}
    rows = np.zeros((len(usual), size), bool)
    for free, number in layouts.items():
        for place in free:
            rows[number, place : place + OFFSET_SIZE] = True
    return rows[[layouts[repeat.free] for repeat in usual]]


class _Runs:
    """The packets in columns, connection by connection, and which of them are taken."""

    def __init__(self, headers: Headers, lines: _Lines) -> None:
        order = lines.order
        self.line = lines.of
        self.packet = headers.packet[order]
        self.begins = headers.begins[order]
        self._starts = lines.starts
        self._judge(headers, lines, order)
        self.settle()

    def _judge(self, headers: Headers, lines: _Lines, order: Numbers) -> None:
        """Which of them follow what comes before them, if that is taken."""
        is_known, forth_next, back_next, is_client_forth, *sizes = lines.numbers.repeat(lines.sizes, axis=1)
        is_forth, size = lines.is_forth, headers.size[order]
        is_client = is_forth == (is_client_forth != 0)
        self.kind = np.zeros(len(size), np.int64)  #: of a request, from 1 on
        answered = np.zeros(len(size), np.int64)
        for kind, (asked_size, answered_size) in enumerate(zip(sizes[::2], sizes[1::2], strict=True), 1):
            self.kind[is_client & (size == asked_size)] = kind
            answered[~is_client & (size == answered_size)] = kind
        self._asks, self._answers = self.kind > 0, answered > 0
        forth_next += self._before(np.where(is_forth, size, 0))
        back_next += self._before(np.where(is_forth, 0, size))
        own_next, other_next = np.where(is_forth, forth_next, back_next), np.where(is_forth, back_next, forth_next)
        is_next = (headers.sequence[order] - own_next) & MODULUS == 0
        has_seen = (other_next - headers.acknowledges[order]) & MODULUS < HALF
        change = self.kind - answered
        self._under_way = self._before(change) + change  # at most one at a time, and which
        is_plain = (is_known != 0) & lines.is_same & ~headers.special[order] & has_seen
        is_said = (self._asks & (self._under_way == self.kind)) | (self._answers & (self._under_way == 0))
        self.fits = is_plain & ((size == 0) | (is_said & is_next))

    def leave(self, firsts: Numbers) -> None:
        """Take nothing of a connection from a packet on."""
        self.fits &= self.packet < firsts[self.line]
        self.settle()

    def settle(self) -> None:
        """Take what fits, up to what does not, and no request without its answer."""
        is_led_up_to = self._before(~self.fits) + ~self.fits == 0
        place = np.arange(len(self.line))
        ends = np.maximum.reduceat(np.where(is_led_up_to & (self._under_way == 0), place, -1), self._starts)
        self.taken = place <= ends[self.line]

    def exchanges(self) -> tuple[Numbers, Numbers]:
        """The places of requests, and of their answers."""
        return np.flatnonzero(self.taken & self._asks), np.flatnonzero(self.taken & self._answers)

    def newest(self) -> Numbers:
        """The last packet taken, by connection; -1 if there is none."""
        return np.maximum.reduceat(np.where(self.taken, self.packet, -1), self._starts)

    def _before(self, values: Any) -> Numbers:
        """The sum of what stands before on the same connection."""
        sums = np.cumsum(values) - values
        return sums - sums[self._starts][self.line]  # type: ignore[no-any-return]

"""A stretch of a capture in which what repeats goes past the records: what crosses from whoever reads to whoever replays.

Of a heartbeat that repeats and its plain success nothing is new but their times and the correlation id; of a commit, the offsets too. So
many of them are handed over at once, in columns, with the records of all else that the stretch holds.

The trap: each of them has its place among the records and takes a number, as if a record had been made of it.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from coordinator_model.places import OFFSET_SIZE
from coordinator_model.pulse import CORRELATION_SIZE, Commits, Run

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from coordinator_model.pulse import Pulse
    from coordinator_model.wire.record import MirrorRecord

    Numbers = NDArray[np.int64]


_new: Final = tuple.__new__  # past the constructor: so many pieces and runs are made that it shows


class Piece(NamedTuple):
    """Some exchanges of a run, one behind the other."""

    run: int
    begin: int  #: in the columns of the stretch
    end: int


@dataclass(frozen=True)
class Stretch:
    """What a number of packets hold. Places are counted from the first record of the stretch."""

    offset: int  #: number of the first record
    times_us: Sequence[int]  #: capture times by place; of those in ``records`` it may be another
    records: Sequence[MirrorRecord]  #: all that do not repeat, numbered and in their order
    # What repeats, in runs:
    pulses: Sequence[Pulse]
    sizes: Sequence[int]  #: of the runs, in exchanges
    offsets: Sequence[bytes]  #: that are committed, one commit behind the other
    # Its exchanges, run by run:
    exchanges: Numbers  #: numbers on their connections
    asked: Numbers  #: place of the request
    answered: Numbers  #: place of the plain success
    correlation_ids: bytes  #: as they stand in the frames

    @property
    def frames(self) -> int:
        """That go past the records."""
        return 2 * len(self.exchanges)

    def groups(self) -> dict[tuple[str, str], list[Piece]]:
        """Of which groups something repeats, and what."""
        groups: dict[tuple[str, str], list[Piece]] = {}
        for run, (pulse, begin, size) in enumerate(zip(self.pulses, self._begins, self.sizes, strict=True)):
            groups.setdefault(pulse.key, []).append(_new(Piece, (run, begin, begin + size)))
        return groups

    def begins_at(self, pieces: Iterable[Piece]) -> int:
        """The place of their first request."""
        asked = self._columns[0]
        return min([asked[begin] for _, begin, _ in pieces])

    def ends_us(self, pieces: Iterable[Piece]) -> int:
        """Capture time of their last answer."""
        answered_us = self._times[1]
        return max([answered_us[end - 1] for _, _, end in pieces])

    def split_at_place(self, pieces: Iterable[Piece], place: int) -> tuple[list[Piece], list[Piece], list[Piece]]:
        """What is over before a place, what is under way there, and what comes behind it."""
        return _split(pieces, *self._columns, place)

    def split_at_us(self, pieces: Iterable[Piece], at_us: int) -> tuple[list[Piece], list[Piece], list[Piece]]:
        """What is over before a time, what is under way then, and what comes then or later."""
        return _split(pieces, *self._times, at_us)

    def split_behind(self, pieces: Sequence[Piece], count: int) -> tuple[list[Piece], list[Piece]]:
        """The first so many exchanges of each piece and what is under way together with them, and all that comes behind these."""
        answered = self._columns[1]
        place = max(answered[min(piece.begin + count, piece.end) - 1] for piece in pieces)
        while True:
            before, amid, later = self.split_at_place(pieces, place + 1)
            if not amid:
                return before, later
            place = max(answered[piece.end - 1] for piece in amid)

    def runs(self, pieces: Iterable[Piece]) -> list[Run]:
        """Pieces as the model takes them in."""
        pulses, answered, (asked_us, answered_us), offsets = self.pulses, self._columns[1], self._times, self.offsets
        slowest_us, longest_pause_us = self._longest
        runs = [
            (
                answered[end - 1],
                _new(
                    Run,
                    (
                        pulses[run],
                        asked_us[begin:end],
                        answered_us[begin:end],
                        slowest_us[run],
                        longest_pause_us[run],
                        self._commits(run, begin, end) if offsets[run] else None,
                    ),
                ),
            )
            for run, begin, end in pieces
        ]
        runs.sort()  # no two have the same place
        return [run for _, run in runs]

    def records_of(self, pieces: Iterable[Piece]) -> Iterator[tuple[int, MirrorRecord]]:
        """Their records, with the places of these."""
        for run, begin, end in pieces:
            pulse = self.pulses[run]
            for index in range(begin, end):
                correlation_id = self.correlation_ids[index * CORRELATION_SIZE : (index + 1) * CORRELATION_SIZE]
                asked, answered, exchange = int(self.asked[index]), int(self.answered[index]), int(self.exchanges[index])
                offsets = self._offsets(run, index, index + 1)
                request = pulse.request(self.offset + asked, self.times_us[asked], exchange, correlation_id, offsets)
                yield asked, request
                yield answered, pulse.response(request, self.offset + answered, self.times_us[answered])

    def _commits(self, run: int, begin: int, end: int) -> Commits:
        (asked, answered), last = self._columns, end - 1
        offsets, at, goes_back = self._positions
        first_run, width = self._begins[run], len(self.pulses[run].partitions)
        first, newest = at[run] + (begin - first_run) * width, at[run] + (last - first_run) * width
        return _new(
            Commits,
            (
                self.pulses[run],
                offsets[first : first + width],
                offsets[newest : newest + width],
                goes_back[run],
                self.offset + answered[begin],
                self._numbers[last],
                self.offset + asked[last],
                self.offset + answered[last],
            ),
        )

    def _offsets(self, run: int, begin: int, end: int) -> bytes:
        offsets, first = self.offsets[run], self._begins[run]
        size = len(offsets) // self.sizes[run]
        return offsets[(begin - first) * size : (end - first) * size]

    @cached_property
    def _positions(self) -> tuple[list[int], list[int], list[bool]]:
        """All offsets that are committed; where those of each run begin among them; whether one is less than in the commit before."""
        offsets = np.frombuffer(b"".join(self.offsets), ">i8").astype(np.int64)
        counts = np.array([len(run) // OFFSET_SIZE for run in self.offsets])
        ends = np.cumsum(counts)
        further = np.arange(len(offsets)) + np.repeat(counts // np.array(self.sizes), counts)
        has_next = np.flatnonzero(further < np.repeat(ends, counts))
        is_less = has_next[offsets[further[has_next]] < offsets[has_next]]
        goes_back = np.zeros(len(counts), bool)
        goes_back[np.searchsorted(ends, is_less, "right")] = True
        return offsets.tolist(), (ends - counts).tolist(), goes_back.tolist()

    @cached_property
    def _begins(self) -> list[int]:
        begins, begin = [], 0
        for size in self.sizes:
            begins.append(begin)
            begin += size
        return begins

    @cached_property
    def _columns(self) -> tuple[list[int], list[int]]:
        return self.asked.tolist(), self.answered.tolist()

    @cached_property
    def _numbers(self) -> list[int]:
        return self.exchanges.tolist()  # type: ignore[no-any-return]

    @cached_property
    def _times(self) -> tuple[list[int], list[int]]:
        asked_us, answered_us = self._times_us
        return asked_us.tolist(), answered_us.tolist()

    @cached_property
    def _times_us(self) -> tuple[Numbers, Numbers]:
        times_us = np.asarray(self.times_us, np.int64)
        return times_us[self.asked], times_us[self.answered]

    @cached_property
    def _longest(self) -> tuple[list[int], list[int]]:
        """Of each run, how long an answer took, and a pause between two requests."""
        begins, (asked_us, answered_us) = np.array(self._begins), self._times_us
        pauses_us = np.diff(asked_us, prepend=0)
        pauses_us[begins] = 0
        return np.maximum.reduceat(answered_us - asked_us, begins).tolist(), np.maximum.reduceat(pauses_us, begins).tolist()


def _split(pieces: Iterable[Piece], asked: Any, answered: Any, at: int) -> tuple[list[Piece], list[Piece], list[Piece]]:
    """Those that end before, those that begin before and do not end before, and the others."""
    before, amid, later = [], [], []
    for run, begin, end in pieces:
        over = bisect_left(answered, at, begin, end)
        begun = bisect_left(asked, at, over, end)
        if over > begin:
            before.append(_new(Piece, (run, begin, over)))
        if begun > over:
            amid.append(_new(Piece, (run, over, begun)))
        if end > begun:
            later.append(_new(Piece, (run, begun, end)))
    return before, amid, later

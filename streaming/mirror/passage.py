"""One way through many packets, of which most are passed over: what is left is looked at in its place, and numbered accordingly.

The trap: it may turn out late that an exchange should not have been passed over, because the same request shows up on another connection
meanwhile. Then what is behind that point on its connection is given back; so is the request that is under way there, whose record gets the
number that was kept for it, below those of records that were made before.
And what was left of a connection at the first packet that is anything else may be quiet again a moment later; so every few seconds what is
left is tried anew.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right, insort
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Final

import numpy as np

from streaming.mirror.stretch import Stretch

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from numpy.typing import NDArray

    from coordinator_model.wire.record import MirrorRecord
    from streaming.mirror.captures import Packet, Portion
    from streaming.mirror.columns import Headers, Taken

AGAIN_US: Final = 4_000_000
"""So long after a connection was left, at most, it is looked at again as a whole."""

WORTH_TAKING: Final = 64
"""Packets; trying fewer anew costs more than it spares."""


class Passage:
    """From the first of some packets to the last.

    :param times_us: when each packet counts as captured.
    :param headers: of the packets.
    :param take: says which of some packets are passed over, given what was said on connections that were passed over before.
    :param offset: number of the next record.
    :param stops: packets to stop at even if they are passed over.
    """

    def __init__(  # noqa: PLR0917
        self,
        portion: Portion,
        times_us: NDArray[np.int64],
        headers: Headers,
        take: Callable[[Headers, dict[bytes, bytes]], Taken],
        offset: int,
        stops: Collection[int],
    ) -> None:
        self._portion = portion
        self._times_us = times_us
        self._headers = headers
        self._take = take
        self._offset = offset
        self._stops = frozenset(stops)
        self._taken: list[Taken] = []
        self._spoken: dict[bytes, bytes] = {}  # on connections that were passed over: what, and on which
        self._is_taken = np.zeros(len(times_us), bool)
        self._is_frame = np.zeros(len(times_us), bool)  # of those that are taken
        self._frames_before = np.zeros(len(times_us), np.int64)
        self._queue: list[int] = []
        self._at = -1
        self._records: list[MirrorRecord] = []
        self._made_at: list[int] = []  # by which packets, in their order
        self._take_from(0)
        self._again_us = int(times_us[0]) + AGAIN_US

    @property
    def passed(self) -> int:
        """How many packets are passed over."""
        return int(self._is_taken.sum())

    def __iter__(self) -> Iterator[tuple[Packet | None, int]]:
        """Where to stop: a packet that is not passed over, if it is that, and the time."""
        while self._queue:
            at_us = int(self._times_us[self._queue[0]])
            if at_us >= self._again_us:
                self._again_us = at_us + AGAIN_US
                self._take_from(self._queue[0])
                continue
            self._at = heappop(self._queue)
            yield None if self._is_taken[self._at] else self._portion.packet(self._at), at_us

    def _take_from(self, begin: int) -> None:
        """Pass over what can be, from this packet on: connections that were left may be quiet again."""
        left = ~self._is_taken
        left[:begin] = False
        these = self._headers.only(left) if begin else self._headers
        if self._taken and len(these.packet) < WORTH_TAKING:
            return
        taken = self._take(these, self._spoken)
        self._spoken |= taken.spoken
        self._taken.append(taken)
        self._is_taken |= taken.is_taken
        for frames in taken.frames():
            self._is_frame[frames] = True
        self._count_frames()
        left &= ~self._is_taken
        left[[index for index in self._stops if index >= begin]] = True
        self._queue = np.flatnonzero(left).tolist()

    def next_offset(self) -> int:
        """Number of the record that is made next."""
        return self._offset + int(self._frames_before[self._at]) + bisect_right(self._made_at, self._at)

    def add(self, record: MirrorRecord) -> None:
        """Take the record that was made last."""
        self._records.append(record)
        insort(self._made_at, self._at)

    def give_back(self, says: bytes) -> Iterator[tuple[Packet, int]]:
        """From here on, pass nothing over on the connection that says this.

        Gives those of its packets that should have been looked at before; until the next one is asked for, it is that time.
        """
        back = [index for taken in self._taken for index in taken.give_back(says, self._at)]
        if not back:
            return
        self._is_taken[back] = self._is_frame[back] = False
        self._count_frames()
        here = self._at
        for index in back:
            if index > here and index not in self._stops:
                heappush(self._queue, index)
        for self._at in [index for index in back if index < here]:
            yield self._portion.packet(self._at), int(self._times_us[self._at])
        self._at = here

    def finish(self) -> Stretch:
        """All that it was."""
        found = [taken.found() for taken in self._taken]
        exchanges, asked, answered, sizes = (
            np.concatenate([np.zeros(0, np.int64), *columns])
            for columns in ([getattr(one, name) for one in found] for name in ("exchange", "asked", "answered", "sizes"))
        )
        frames, made_at = np.flatnonzero(self._is_frame), np.array(self._made_at, np.int64)
        places = np.arange(len(frames)) + np.searchsorted(made_at, frames, "right")
        times_us = np.zeros(len(frames) + len(made_at), np.int64)
        times_us[places] = self._times_us[frames]
        return Stretch(
            offset=self._offset,
            times_us=array("q", times_us.tobytes()),
            records=sorted(self._records, key=lambda record: record.offset),
            pulses=[repeat.pulse for one in found for repeat in one.repeats],
            sizes=sizes.tolist(),
            offsets=[offsets for one in found for offsets in one.offsets],
            exchanges=exchanges,
            asked=places[self._frames_before[asked]],
            answered=places[self._frames_before[answered]],
            correlation_ids=b"".join([one.correlation_ids for one in found]),
        )

    def _count_frames(self) -> None:
        """How many frames are passed over before each packet."""
        np.cumsum(self._is_frame[:-1], out=self._frames_before[1:])

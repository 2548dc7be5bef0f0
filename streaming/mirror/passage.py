"""One way through many packets, of which most are passed over: what is left is looked at in its place, and numbered accordingly.

The trap: it may turn out late that an exchange should not have been passed over, because the same request shows up on another connection
meanwhile. Then what is behind that point on its connection is given back; so is the request that is under way there, whose record gets the
number that was kept for it, below those of records that were made before.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right, insort
from heapq import heappop, heappush
from typing import TYPE_CHECKING

import numpy as np

from streaming.mirror.stretch import Stretch

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from coordinator_model.wire.record import MirrorRecord
    from streaming.mirror.captures import Packet, Portion
    from streaming.mirror.columns import Taken


class Passage:
    """From the first of some packets to the last.

    :param times_us: when each packet counts as captured.
    :param taken: which of them are passed over.
    :param offset: number of the next record.
    :param stops: packets to stop at even if they are passed over.
    """

    def __init__(self, portion: Portion, times_us: Sequence[int], taken: Taken, offset: int, stops: Collection[int]) -> None:
        self._portion = portion
        self._times_us = times_us
        self._taken = taken
        self._offset = offset
        self._stops = frozenset(stops)
        is_taken = taken.is_taken
        self._is_taken = bytearray(is_taken.tobytes())
        self._frames = self._frames_taken()
        is_taken[list(stops)] = False
        self._queue: list[int] = np.flatnonzero(~is_taken).tolist()
        self._at = -1
        self._records: list[MirrorRecord] = []
        self._made_at: list[int] = []  # by which packets, in their order

    def __iter__(self) -> Iterator[tuple[Packet | None, int]]:
        """Where to stop: a packet that is not passed over, if it is that, and the time."""
        while self._queue:
            self._at = heappop(self._queue)
            yield None if self._is_taken[self._at] else self._portion.packet(self._at), self._times_us[self._at]

    def next_offset(self) -> int:
        """Number of the record that is made next."""
        return self._offset + bisect_left(self._frames, self._at) + bisect_right(self._made_at, self._at)

    def add(self, record: MirrorRecord) -> None:
        """Take the record that was made last."""
        self._records.append(record)
        insort(self._made_at, self._at)

    def give_back(self, says: bytes) -> Iterator[tuple[Packet, int]]:
        """From here on, pass nothing over on the connection that says this.

        Gives those of its packets that should have been looked at before; until the next one is asked for, it is that time.
        """
        back = self._taken.give_back(says, self._at)
        if not back:
            return
        self._frames = self._frames_taken()
        here = self._at
        for index in back:
            self._is_taken[index] = False
            if index > here and index not in self._stops:
                heappush(self._queue, index)
        for self._at in [index for index in back if index < here]:
            yield self._portion.packet(self._at), self._times_us[self._at]
        self._at = here

    def finish(self) -> Stretch:
        """All that it was."""
        found = self._taken.found()
        frames, made_at = np.array(self._frames, np.int64), np.array(self._made_at, np.int64)
        places = np.arange(len(frames)) + np.searchsorted(made_at, frames, "right")
        times_us = np.zeros(len(frames) + len(made_at), np.int64)
        times_us[places] = np.array(self._times_us, np.int64)[frames]
        return Stretch(
            offset=self._offset,
            times_us=array("q", times_us.tobytes()),
            records=sorted(self._records, key=lambda record: record.offset),
            pulses=[repeat.pulse for repeat in found.repeats],
            sizes=found.sizes.tolist(),
            offsets=found.offsets,
            exchanges=found.exchange,
            asked=places[np.searchsorted(frames, found.asked)],
            answered=places[np.searchsorted(frames, found.answered)],
            correlation_ids=found.correlation_ids,
        )

    def _frames_taken(self) -> list[int]:
        """The packets that hold frames, among those that are passed over."""
        asked, answered = self._taken.frames()
        return np.sort(np.concatenate((asked, answered))).tolist()  # type: ignore[no-any-return]

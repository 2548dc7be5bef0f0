"""A stretch of a capture in which heartbeats that repeat go past the records: what crosses from whoever reads to whoever replays.

Of such a heartbeat and its plain success nothing is new but their times and the correlation id. So many of them are handed over at once, in
columns, with the records of all else that the stretch holds.

The trap: each of them has its place among the records and takes a number, as if a record had been made of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from coordinator_model.pulse import CORRELATION_SIZE

if TYPE_CHECKING:
    from array import array
    from collections.abc import Iterable, Iterator, Sequence

    from coordinator_model.groups.classic import PlainBeat
    from coordinator_model.pulse import Pulse
    from coordinator_model.wire.record import MirrorRecord


class Stretch(NamedTuple):
    """What a number of packets hold. Places are counted from the first record of the stretch."""

    offset: int  #: number of the first record
    times_us: array[int]  #: capture times by place; of those in ``records`` it may be another
    records: Sequence[MirrorRecord]  #: all that are no heartbeats that repeat, numbered and in their order
    # Of the heartbeats, in the order of their answers:
    pulses: Sequence[Pulse]
    exchanges: Sequence[int]  #: numbers on their connections
    correlation_ids: bytes  #: as they stand in the frames
    asked: Sequence[int]  #: place of the request
    answered: Sequence[int]  #: place of the plain success

    def groups(self) -> dict[tuple[str, str], list[int]]:
        """Of which groups there are heartbeats, and which."""
        groups: dict[tuple[str, str], list[int]] = {}
        for index, pulse in enumerate(self.pulses):
            groups.setdefault(pulse.key, []).append(index)
        return groups

    def beats(self, indexes: Iterable[int]) -> list[PlainBeat]:
        """Some of the heartbeats, as the model takes them in."""
        pulses, times_us, asked, answered = self.pulses, self.times_us, self.asked, self.answered
        return [(pulses[index], times_us[asked[index]], times_us[answered[index]]) for index in indexes]

    def records_of(self, indexes: Iterable[int]) -> Iterator[tuple[int, MirrorRecord]]:
        """The records of some of them, with their places."""
        for index in indexes:
            correlation_id = self.correlation_ids[index * CORRELATION_SIZE : (index + 1) * CORRELATION_SIZE]
            pulse, asked, answered = self.pulses[index], self.asked[index], self.answered[index]
            request = pulse.request(self.offset + asked, self.times_us[asked], self.exchanges[index], correlation_id)
            yield asked, request
            yield answered, pulse.response(request, self.offset + answered, self.times_us[answered])

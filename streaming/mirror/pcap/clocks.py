"""By how much the clocks of several captures differ, as packets show that stand in two of them.

A packet is captured on its way twice, on the hosts at its ends. The time between is the difference of the clocks and the way; on the way
back the sign of one of the two changes. So the mean of both directions is the difference of the clocks, and half of their distance bounds
the error.
"""

from __future__ import annotations

from collections import deque
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Final, NamedTuple

from streaming.mirror.pcap.segments import reverse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from streaming.mirror.pcap.capture_reader import Captured
    from streaming.mirror.pcap.segments import Segment

_KEPT: Final = 200_000
"""Packets of a file that are looked for in others. Of more every second is kept, and so on, the same ones in each file."""

_LEAST: Final = 5
"""Fewer packets that two captures have in common prove nothing."""

_NO_MORE_THAN_US: Final = 3_600_000_000
"""Clocks that differ by more name another day: the captures have equal packets by chance."""


class Packets(NamedTuple):
    """The packets with content of one capture."""

    at_us: dict[int, tuple[int, bytes]]  #: fingerprint of a packet that came once → when, and its addresses and ports
    first_us: int
    last_us: int


class Difference(NamedTuple):
    """How the clock of a capture differs from that of the first one."""

    late_us: int  #: what is to be subtracted from its times
    error_us: int  #: by how much that may be wrong
    packets: int  #: how many packets show it


def packets_in(segments: Iterable[tuple[int, Segment]]) -> Packets:
    """Return the packets of a capture by which its clock can be compared.

    :param segments: its TCP segments, each with its time.
    """
    found: dict[int, tuple[int, bytes]] = {}
    repeated: set[int] = set()
    first_us = last_us = mask = 0
    for at_us, (key, sequence, acknowledged, flags, payload, _) in segments:
        first_us, last_us = first_us or at_us, at_us
        mark = hash((key, sequence, acknowledged, flags, payload))
        if not payload or mark & mask:
            continue
        if mark in found:
            repeated.add(mark)
        found[mark] = at_us, key
        if len(found) > _KEPT:
            mask = 2 * mask + 1
            found = {mark: place for mark, place in found.items() if not mark & mask}
    for mark in repeated:
        found.pop(mark, None)
    return Packets(found, first_us, last_us)


def differences(captures: Sequence[Packets]) -> list[Difference | None]:
    """Return how the clock of each capture differs from the first one's; None where no packets show it, directly or by a third one."""
    found: list[Difference | None] = [None] * len(captures)
    if captures:
        found[0] = Difference(0, 0, 0)
    reached = deque([0])
    while reached:
        known = reached.popleft()
        base = found[known]
        assert base is not None
        for other, packets in enumerate(captures):
            if found[other] is None and (between := _between(captures[known], packets)) is not None:
                found[other] = Difference(base.late_us + between.late_us, base.error_us + between.error_us, between.packets)
                reached.append(other)
    return found


def overlap(captures: Sequence[Packets]) -> bool:
    """Return True if two captures were made at the same time: not parts of one."""
    spans = sorted((one.first_us, one.last_us) for one in captures if one.last_us)
    return any(later[0] < before[1] for before, later in pairwise(spans))


def earlier(captured: Iterator[Sequence[Captured]], by_us: int) -> Iterator[Sequence[Captured]]:
    """Yield what a capture holds, its packets earlier by a time."""
    for some in captured:
        yield [(one[0] - by_us, *one[1:]) if type(one) is tuple else one for one in some]


def _between(one: Packets, other: Packets) -> Difference | None:
    """Return by how much the other clock is ahead."""
    ways: dict[bytes, list[int]] = {}
    for mark, (at_us, key) in one.at_us.items():
        if (place := other.at_us.get(mark)) is not None and abs(place[0] - at_us) < _NO_MORE_THAN_US:
            ways.setdefault(key, []).append(place[0] - at_us)
    count = sum(map(len, ways.values()))
    if count < _LEAST:
        return None
    both = [(median(there), median(ways[reverse(key)])) for key, there in ways.items() if reverse(key) in ways]
    if not both:
        return Difference(round(median(us for there in ways.values() for us in there)), _WAY_US, count)
    late_us = round(median((there + back) / 2 for there, back in both))
    return Difference(late_us, round(median(abs(there - back) / 2 for there, back in both)), count)


_WAY_US: Final = 1_000
"""How long a packet's way may be where only one direction shows it."""

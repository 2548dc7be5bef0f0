"""What has to be known of captures before their first frame: by how much their clocks differ, and which cluster a broker belongs to."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from streaming.mirror.pcap.clocks import Difference, differences, overlap, packets_in
from streaming.mirror.pcap.clusters import Clusters
from streaming.mirror.pcap.segments import LINK_TYPES, segment_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from streaming.mirror.pcap.files import Packet
    from streaming.mirror.pcap.segments import Segment

_LOOKED_AT: Final = 256 * 2**20
"""Bytes of packets of a file: of a long one its beginning."""


class FirstPass(NamedTuple):
    """What a first look at captures shows."""

    clocks: list[Difference | None]  #: of each, how its clock differs from that of the first one
    clusters: Mapping[str, str]  #: cluster of each broker's address, as far as it is known, if there are several


def nothing_known(captures: int) -> FirstPass:
    """Return what holds for captures that are not read twice: they have one clock and are of one cluster."""
    return FirstPass([Difference(0, 0, 0)] * captures, {})


def first_pass(captures: Sequence[Iterable[Sequence[Packet]]]) -> FirstPass:
    """Look at captures before they are read. They are read one after the other."""
    clusters = Clusters()
    found = []
    for captured in captures:
        segments = clusters.noted(segments_in(captured))
        if len(captures) > 1:
            found.append(packets_in(segments))
        else:
            deque(segments, 0)
    clocks = differences(found) if overlap(found) else nothing_known(len(captures)).clocks
    return FirstPass(clocks, clusters.by_address())


def segments_in(captured: Iterable[Sequence[Packet]]) -> Iterator[tuple[int, Segment]]:
    """Yield the TCP segments at the beginning of a capture, each with its time."""
    size = 0
    for some in captured:
        if size > _LOOKED_AT:
            break
        for at_us, link, data, original in some:
            size += len(data)
            if link in LINK_TYPES and (segment := segment_of(link, data, original)) is not None:
                yield at_us, segment

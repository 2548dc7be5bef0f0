"""Where the packets of a pcap file begin: each header says how long its packet is, and so leads to the next.

Followed one by one, most packets cost more so than by all that is done with their headers. So the data is entered at many places at once,
at what looks like a header, and from each of them followed up to the next, all in step.

The trap: what looks like a header may be a part of a packet. An entry counts only if the way from the one before leads to it, up from
the first, which is known; else nothing of it is used.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

LARGEST_PACKET: Final = 16 * 2**20
"""Bytes. A longer packet or block is taken for damage: snap lengths are 256 KiB at most, blocks carry little beside a packet."""

APART: Final = 1 << 14
"""Bytes between two entries, a hundred packets or more."""

WINDOW: Final = 1 << 8
"""Bytes in which a header is looked for: most packets are shorter."""

_WORTH_IT: Final = 8  # entries; a few packets are followed sooner than that
_LONGEST_S: Final = 7 * 86_400  # of capture time, that some megabytes are taken to span


def laid_over(data: bytes, layout: np.dtype[Any]) -> NDArray[Any]:
    """What stands at each place of the data, if it is of this layout there."""
    return np.ndarray((max(len(data) - layout.itemsize + 1, 0),), layout, data, strides=(1,))


def read_at(data: bytes, layout: np.dtype[Any], places: Numbers) -> NDArray[Any]:
    """What stands at some places of the data. As bytes without fields it is copied ten times as fast."""
    return laid_over(data, np.dtype((np.void, layout.itemsize)))[places].view(layout)


def whole_packets(data: bytes, layout: np.dtype[Any]) -> tuple[Numbers, int]:
    """Where the headers of those packets begin that are there to their end.

    :param data: begins with a header.
    :param layout: of a header: ``seconds``, ``fraction`` of the second, ``captured`` and ``original`` length.
    :return: the headers, and where the first packet begins that is not whole, or that is damaged.
    """
    if len(data) >= _WORTH_IT * APART:
        found = _in_step(laid_over(data, layout), len(data))
        if found is not None:
            return found
    return _one_by_one(data, layout)


def _one_by_one(data: bytes, layout: np.dtype[Any]) -> tuple[Numbers, int]:
    assert layout.fields is not None
    length, length_at = layout.fields["captured"][:2]
    read_length = struct.Struct(length.byteorder + "I").unpack_from
    position, size = 0, len(data)
    begins: list[int] = []
    while (body := position + layout.itemsize) <= size:
        (captured,) = read_length(data, position + length_at)
        if body + captured > size:
            break
        begins.append(position)
        position = body + captured
    return np.array(begins, np.int64), position


def _in_step(headers: NDArray[Any], size: int) -> tuple[Numbers, int] | None:
    """Likewise, or None if an entry proves to be none."""
    position = _entries(headers)
    limits, last = np.append(position[1:], len(headers)), len(headers) - 1
    captured = headers["captured"]
    steps = []
    while (goes_on := position < limits).any():
        steps.append(position)
        position = np.where(goes_on, position + headers.itemsize + captured[np.minimum(position, last)], position)
    if (position[:-1] != limits[:-1]).any():
        return None
    ways = np.array(steps, np.int64)
    begins = ways.T.ravel()[np.flatnonzero((ways < limits).T)]
    behind = int(position[-1])
    return (begins, behind) if behind <= size else (begins[:-1], int(begins[-1]))


def _entries(headers: NDArray[Any]) -> Numbers:
    """The first header, and what looks like one further on."""
    begin_s = headers["seconds"][0].astype(np.uint32)
    windows = sliding_window_view(headers["seconds"], WINDOW)[APART::APART]
    row, column = np.nonzero(windows - begin_s < _LONGEST_S)  # unsigned: none is less than the first
    place = (row + 1) * APART + column
    these = headers[place]
    is_likely = (these["captured"] <= these["original"]) & (these["original"] <= LARGEST_PACKET) & (these["fraction"] < 10**9)
    first = np.diff(row[is_likely], prepend=-1) > 0
    return np.concatenate([np.zeros(1, np.int64), place[is_likely][first]])

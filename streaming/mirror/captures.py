"""What captures there are: packets (pcap, pcapng), and traces that Envoy's tap wrote. The first bytes decide, not the name."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Final

from streaming.mirror.envoy import BEGINNING, is_traces, traces
from streaming.mirror.pcap.files import Source, is_packets, packets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from streaming.mirror.pcap.capture_reader import Captured

_numbers: Final = count(1)


def is_capture(source: Source) -> bool:
    """Whether a file holds packets or traces of sockets; nothing is taken from it."""
    return is_packets(source.peek(4)) or is_traces(source.peek(BEGINNING))


def captured(
    source: Source, damage: Callable[[str], None], secrets: Callable[[bytes], None] = lambda _: None
) -> Iterator[Sequence[Captured]]:
    """What a capture holds, in the file's order, in lists as it comes.

    :param damage: called with half a sentence that says why reading ended before the file did.
    :param secrets: called with the lines of a TLS key log that a pcapng file holds.
    :raises CaptureError: when it is no capture at all.
    """
    if not is_packets(source.peek(4)) and is_traces(source.peek(BEGINNING)):
        return traces(source, damage, f"envoy-{next(_numbers)}")
    return packets(source, damage, secrets)

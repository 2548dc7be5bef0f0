"""A mirror sink that begins before its topic can be written.

The tap stands in the clients' path: they must get through whether the mirror works or not. So nothing about the mirror stops the tap at its
start. Records are buffered until the topic is there, and the reason is logged at once and each minute.

A wrong address, a missing right or a missing topic looks like a tap that works. So the sentence names the reason.
"""

from __future__ import annotations

from streaming.mirror.producer import KafkaSink


class ReconnectingSink(KafkaSink):
    """A :class:`KafkaSink` that never raises: it looks for its cluster and topic in the background, as often as it takes."""

    def _begin(self) -> None:
        """The thread connects."""

"""A mirror sink that begins before its topic can be written.

The tap stands in the clients' way: they must get through whether anybody can read along or not. So nothing about the mirror stops it at
its start. What is captured until the topic is there is buffered, and why it is not written is said at once and each minute.

The trap: a wrong address, a missing right or a missing topic looks like a tap that works. So the sentence says what is the case.
"""

from __future__ import annotations

from streaming.mirror.producer import KafkaSink


class ReconnectingSink(KafkaSink):
    """A :class:`KafkaSink` that never raises: it looks for its cluster and topic in the background, as often as it takes."""

    def _begin(self) -> None:
        """The thread connects."""

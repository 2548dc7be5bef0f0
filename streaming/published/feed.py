"""What readers of the results ask of where these come from: topics, or an engine in the same process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from streaming.kafka.record import Record


class Feed(Protocol):
    """Records of result topics: those that are there, and then those that come. Of a key only the newest may come."""

    @property
    def ends(self) -> Mapping[tuple[str, int], int]:
        """Where each partition of each topic ended at the start."""

    @property
    def in_trouble(self) -> bool:
        """Whether nothing can be read at the moment."""

    def start(self) -> None:
        """Find out what there is.

        :raises SetupError: when it cannot be read.
        """

    def history(self) -> Iterator[Record]:
        """What was there at the start.

        :raises SetupError: when it cannot be read.
        """

    def poll(self, timeout_s: float) -> list[Record]:
        """What came, waiting up to ``timeout_s`` for something."""

    def was_there(self, record: Record) -> bool:
        """Whether the record is older than the reading."""

    def close(self) -> None:
        """Read no more."""

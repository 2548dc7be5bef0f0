"""Checks now and then that the mirror topic is still the one that the monitor began with.

Spark follows a topic by its name. If the topic is deleted and created again, Spark goes on without an error, from offsets that mean
something else. If partitions are added, groups move between them, also without an error. So a thread asks Kafka for the topic's id: Kafka
may answer late, and the monitor must go on meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from coordinator_model.wording import counted
from streaming.background import Background
from streaming.errors import SetupError
from streaming.kafka.topics import MISSING, describe_mirror

if TYPE_CHECKING:
    from collections.abc import Callable

    from streaming.config.settings import MonitorConfig
    from streaming.kafka.topics import Described, Mirror

LOOK_EVERY_S: Final = 5.0


class MirrorWatch(Background):
    """A context manager that watches one topic.

    :param look: asks Kafka; the tests have answers of their own.
    :param tell: called with one sentence, by :meth:`partitions`.
    """

    ends_within_s = 0.0

    def __init__(
        self,
        config: MonitorConfig,
        mirror: Mirror,
        *,
        tell: Callable[[str], None],
        look: Callable[[MonitorConfig], Described | None] = describe_mirror,
        every_s: float = LOOK_EVERY_S,
    ) -> None:
        super().__init__("mirror-watch")
        self._config = config
        self._mirror = mirror
        self._tell = tell
        self._look = look
        self._every_s = every_s
        self._seen: Described | None = None
        self._partitions = mirror.partitions
        self._said_missing = False

    def partitions(self) -> int:
        """Return how many partitions the topic has; a change is reported once.

        :raises SetupError: when it is another topic under the same name.
        """
        seen, topic = self._seen, self._mirror.topic
        if seen is None:
            return self._partitions
        if seen is MISSING:
            if not self._said_missing:
                self._tell(
                    f"the mirror topic {topic} was deleted: nothing can be read. Stop this monitor, make the topic anew (rebalance-monitor "
                    "topics --config FILE), run rebalance-monitor checkpoint reset, start again, and restart the taps"
                )
            self._said_missing = True
            return self._partitions
        if seen.topic_id != self._mirror.topic_id:
            raise SetupError(
                f"the mirror topic {topic} was deleted and created anew while it was read: what is known belongs to the old one; "
                "run rebalance-monitor checkpoint reset, and start again"
            )
        if seen.partitions != self._partitions:
            self._tell(f"the mirror topic {topic} {repartitioned(self._partitions, seen.partitions)}")
            self._partitions = seen.partitions
        return self._partitions

    def look(self) -> None:
        """Ask Kafka now; no answer changes nothing."""
        self._seen = self._look(self._config) or self._seen

    def _run(self) -> None:
        while not self._stop.wait(self._every_s):
            self.look()


def repartitioned(before: int, now: int) -> str:
    """What to say of a topic whose number of partitions has changed."""
    return f"has {counted(now, 'partition')}, where it had {before}: groups may have moved, so that all are learned anew; restart the taps"

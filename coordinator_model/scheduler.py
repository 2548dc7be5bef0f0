"""The next deadline of each group.

A deadline that is brought forward leaves its old entry in the heap. An entry counts only while it equals the group's deadline.
"""

from __future__ import annotations

from heapq import heappop, heappush

GroupKey = tuple[str, str]
"""(cluster, group)"""


class Scheduler:
    """One deadline per group, in microseconds of capture time, earliest first."""

    __slots__ = ("_due", "_heap")

    def __init__(self) -> None:
        self._due: dict[GroupKey, int] = {}
        self._heap: list[tuple[int, GroupKey]] = []

    def due_us(self, key: GroupKey) -> int | None:
        """Return the group's deadline, None if there is none."""
        return self._due.get(key)

    def schedule(self, key: GroupKey, due_us: int) -> bool:
        """Set a group's deadline, or bring it forward; return False if it already has one that is no later."""
        known = self._due.get(key)
        if known is not None and known <= due_us:
            return False
        self._due[key] = due_us
        heappush(self._heap, (due_us, key))
        return True

    def cancel(self, key: GroupKey) -> None:
        """Drop a group's deadline."""
        self._due.pop(key, None)

    def clear(self) -> None:
        """Drop all deadlines."""
        self._due.clear()
        self._heap.clear()

    def next_us(self) -> int | None:
        """Return the earliest time at which a deadline may fall, None if there is none. The entry may be a stale one."""
        return self._heap[0][0] if self._heap else None

    def pop_due(self, now_us: int) -> GroupKey | None:
        """Return the group with the earliest deadline up to ``now_us``, and drop that deadline; None if there is none."""
        while self._heap and self._heap[0][0] <= now_us:
            due_us, key = heappop(self._heap)
            if self._due.get(key) == due_us:
                del self._due[key]
                return key
        return None

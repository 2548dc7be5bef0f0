"""Reading brokers' logs: frames out of request logs, and what coordinators say of themselves."""

from __future__ import annotations

from typing import Final

HELD_BACK_US: Final = 330_000_000
"""A little more than a JoinGroup waits with Java's default ``max.poll.interval.ms`` of five minutes."""

"""Frames that came after newer ones, by whom they concern: what they show may have been so when an answer was judged.

Records of one connection come in their order. Those of two may not, and an answer is judged when it comes. A finding is therefore held for
as long as frames may be late. If by then a frame has come that concerns the same member or the same instance id, and was captured before
the finding arose, then the coordinator may have seen first what the model saw last, and the finding is dropped.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

from coordinator_model.groups.group import Group
from coordinator_model.groups.records import Exchange, LeaveFacts
from coordinator_model.wire.constants import (
    CONSUMER_GROUP_HEARTBEAT,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    SHARE_GROUP_HEARTBEAT,
    STREAMS_GROUP_HEARTBEAT,
    SYNC_GROUP,
)

_KEPT: Final = 64
_OF_MEMBERSHIP: Final = frozenset(
    {
        *(JOIN_GROUP, SYNC_GROUP, HEARTBEAT, LEAVE_GROUP),
        *(CONSUMER_GROUP_HEARTBEAT, SHARE_GROUP_HEARTBEAT, STREAMS_GROUP_HEARTBEAT),
    }
)


class Held(Protocol):
    """A finding that is not published yet."""

    @property
    def opened_us(self) -> int: ...
    @property
    def subject(self) -> str: ...
    @property
    def member_id(self) -> str | None: ...
    @property
    def instance_id(self) -> str | None: ...


def note(group: Group[Any], exchange: Exchange, at_us: int, body: Any = None) -> None:
    """Note a request, or a response with its ``body``, if it came after newer frames and concerns membership."""
    newest_us = group.last_record_us
    if at_us >= newest_us or exchange.api_key not in _OF_MEMBERSHIP:
        return
    names = {exchange.member_id, exchange.instance_id, getattr(body, "member_id", None)}
    if isinstance(exchange.facts, LeaveFacts):
        names.update(*exchange.facts.members)
    since_us = newest_us - group.settings.late_us
    kept = (known for known in group.late_frames if known[2] >= since_us)
    group.late_frames = (*kept, *((name, at_us, newest_us) for name in sorted(filter(None, names))))[-_KEPT:]


def may_explain(group: Group[Any], held: Held) -> bool:
    """Return True if a late frame concerns the finding, and was captured before it arose, as far as clocks tell."""
    concerned = {held.subject, held.member_id, held.instance_id}
    skew_us = group.settings.clock_skew_us
    return any(
        name in concerned and at_us <= held.opened_us + skew_us and held.opened_us <= newest_us
        for name, at_us, newest_us in group.late_frames
    )

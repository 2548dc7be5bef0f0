"""When the session of a member has certainly ended: no frame shows that."""

from __future__ import annotations

from coordinator_model.groups.classic.group import ClassicGroup
from coordinator_model.groups.records import Member
from coordinator_model.wire.constants import HEARTBEAT, JOIN_GROUP


def last_frame_us_of(member: Member) -> int:
    """Return when a frame last restarted the session of this member."""
    return max(member.last_frame_us, member.proven_us or 0)


def awaits_heartbeat(group: ClassicGroup, member: Member) -> bool:
    """Return True if a Heartbeat of this member waits for its response. Until then clients send no other."""
    return any(waiting.api_key == HEARTBEAT and waiting.member_id == member.id for waiting in group.open.values())


def session_end_us(group: ClassicGroup, member: Member, since_us: int) -> int | None:
    """Return when this member's session has certainly expired without a further frame, None while it cannot expire.

    :param since_us: when its last frame was captured.
    """
    # The others may complete a generation without it before the slack has passed, and that drop does not explain its silence.
    waited_for = member.present or (member.removed == "dropped" and member.last_frame_us < member.removed_us)
    if not waited_for or member.session_timeout_ms is None or group.parked(member):
        return None
    newest = group.newest_generation
    completed_us = newest.proven_us if newest is not None else 0
    if newest is not None and newest.roster is not None and member.id in newest.roster:
        since_us = max(
            since_us, completed_us
        )  # the end of the join phase restarts every session, including those of absent members
    abandoned_request = member.abandoned_request
    if abandoned_request is not None:
        # Parked on a connection that ended, or answered after its timer had fired without effect: the next step restarts the session.
        resumed_us = completed_us
        if abandoned_request.api_key != JOIN_GROUP:
            resumed_us = max(resumed_us, member.proven_us or 0, (newest.sync_done_us or 0) if newest is not None else 0)
        if resumed_us <= abandoned_request.at_us:
            return None
        since_us = max(since_us, resumed_us)
    lost = group.coordinator_changes.lost
    if lost is not None and member.id in lost.members:
        if not lost.returned_us and lost.searching:
            return None  # no coordinator could receive its Heartbeat
        since_us = max(since_us, lost.returned_us)  # the coordinator then restarts all sessions
    if awaits_heartbeat(group, member):
        return None
    since_us = max(since_us, group.coverage.since_us)
    settings = group.settings
    return (
        since_us + member.session_timeout_ms * 1_000 + settings.slack_us(member.session_timeout_ms) + settings.clock_skew_ms * 1_000
    )

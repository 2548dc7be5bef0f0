"""What a broker answers about a group's members to an admin client: ConsumerGroupDescribe, ShareGroupDescribe and StreamsGroupDescribe.

A member heartbeats before its session ends. One that is listed, and that has sent no frame for longer than any session lasts while all of
the group's frames were captured, does not pass the capture.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from coordinator_model.groups.epochs.records import Unseen
from coordinator_model.groups.evidence import epoch_response_evidence

if TYPE_CHECKING:
    from coordinator_model.groups.epochs.data import EpochGroupData
    from coordinator_model.groups.records import Exchange


def on_response(group: EpochGroupData, exchange: Exchange, body: Any) -> None:
    """Take over a description, if members without a frame show that capture misses them."""
    described = next((one for one in body.groups if one.group_id == group.name and not one.error_code), None)
    longest_ms = group.longest_session_ms()
    session_us = 1_000 * longest_ms + group.settings.slack_us(longest_ms) + group.clock_skew_us
    if described is None or exchange.inv_us - session_us < max(group.covered_since_us, group.effects.hole_us):
        return
    unseen = tuple(
        (member.member_id, f"{member.client_id} at {member.client_host.lstrip('/')}")
        for member in described.members
        if member.member_id not in group.members and not getattr(member, "instance_id", None)
    )
    group.unseen = Unseen(exchange.inv_us, len(described.members), unseen, epoch_response_evidence(exchange)) if unseen else None
    group.changed = True

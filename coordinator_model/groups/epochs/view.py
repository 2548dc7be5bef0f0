"""The view of a group whose members have epochs."""

from __future__ import annotations

from typing import Any, Final

from coordinator_model.group_view import GroupView
from coordinator_model.groups.epochs.data import EpochGroupData
from coordinator_model.groups.epochs.records import EpochMember
from coordinator_model.groups.records import Removed
from coordinator_model.groups.view import member_of, view_of
from coordinator_model.groups.waits import as_json, wait_for

AWAY: Final = "left for a while"
GIVES_UP: Final = "gives partitions up"
IN_SYNC: Final = "in sync"
NOT_TOLD: Final = "not told of the newest epoch"
MEMBER_STATES: Final = (IN_SYNC, NOT_TOLD, GIVES_UP, AWAY)
"""How far a member is in the reconciliation."""


def view(group: EpochGroupData, open_findings: int, partition: int, now_us: int) -> GroupView:
    """Return the view of a group at ``now_us``."""
    members = [member for member in group.members.values() if member.present or member.removed == Removed.AWAY]
    own = {
        "state": group.state,
        "leader": None,
        "protocol_type": group.kind,
        "protocol": None,
        "members": [_member(group, member) for member in members],
        "waits_for": [member.id for member in members if wait_for(group, member) is not None],
        "waits": as_json(group),
    }
    return view_of(group, own, open_findings, partition, now_us)


def _member(group: EpochGroupData, member: EpochMember) -> dict[str, Any]:
    return member_of(
        member,
        _member_state(group, member),
        epoch=member.epoch,
        protocol="classic" if member.classic else group.kind,
        partitions=None if member.granted is None else len(member.granted),
        gives_up=len(member.pending),
    )


def _member_state(group: EpochGroupData, member: EpochMember) -> str:
    if member.removed == Removed.AWAY:
        return AWAY
    if member.pending:
        return GIVES_UP
    return IN_SYNC if member.epoch in {None, group.epoch} else NOT_TOLD

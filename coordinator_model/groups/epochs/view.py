"""A group whose members have epochs, as a dashboard shows it. The view is an estimate; ``learning`` says what it lacks."""

from __future__ import annotations

from typing import Any, Final

from coordinator_model.counters import Cost, named_error
from coordinator_model.finding import iso_utc
from coordinator_model.group_view import GroupView
from coordinator_model.groups.epochs.data import EpochGroupData
from coordinator_model.groups.epochs.records import EpochMember
from coordinator_model.groups.spoken_versions import named_versions
from coordinator_model.groups.waits import as_json, wait_for

ASIDE: Final = "left for a while"
GIVES_UP: Final = "gives partitions up"
IN_SYNC: Final = "in sync"
NOT_TOLD: Final = "not told of the newest epoch"
MEMBER_STATES: Final = (IN_SYNC, NOT_TOLD, GIVES_UP, ASIDE)
"""How far a member is in the reconciliation."""


def view(group: EpochGroupData, open_findings: int, partition: int, now_us: int) -> GroupView:
    """Return the view of a group at ``now_us``."""
    members = [member for member in group.members.values() if member.present or member.removed == "aside"]
    content = {
        "cluster": group.cluster,
        "group": group.name,
        "group_type": group.kind,
        "state": group.state,
        "state_since": iso_utc(group.state_since_us) if group.state_since_us else None,
        "learning": group.learning_because if group.learning else None,
        "incarnation": group.incarnation,
        "coordinator": group.broker or None,
        "generation": group.epoch,
        "leader": None,
        "protocol_type": "consumer" if group.kind == "consumer" else group.kind,
        "protocol": None,
        "members": [_member(group, member) for member in members],
        "waits_for": [member.id for member in members if wait_for(group, member) is not None],
        "waits": as_json(group),
        "rebalances": dict(sorted(group.causes.items())),
        "costs": {cause: Cost(*cost).as_json() for cause, cost in sorted(group.rebalance_events.costs.items())},
        "joins": {"count": 0, "total_ms": 0},
        "syncs": {"count": 0, "total_ms": 0},
        "last_join_ms": None,
        "last_sync_ms": None,
        "errors": _errors(group),
        "open_findings": open_findings,
        "partition": partition,
        "updated_at": iso_utc(now_us),
    }
    return GroupView(group.cluster, group.name, content)


def _member(group: EpochGroupData, member: EpochMember) -> dict[str, Any]:
    return {
        "member_id": member.id,
        "instance_id": member.instance_id,
        "client_id": member.actor.client_id,
        "client_address": member.actor.address or None,
        "client_software": member.actor.software or None,
        "state": _member_state(group, member),
        "session_timeout_ms": member.session_timeout_ms,
        "rebalance_timeout_ms": member.rebalance_timeout_ms,
        "reason": None,
        "last_frame": member.last_frame or None,
        "last_frame_at": iso_utc(member.last_frame_us) if member.last_frame_us else None,
        "epoch": member.epoch,
        "protocol": "classic" if member.classic else group.kind,
        "partitions": None if member.granted is None else len(member.granted),
        "gives_up": len(member.pending),
        "versions": named_versions(member.versions),
    }


def _member_state(group: EpochGroupData, member: EpochMember) -> str:
    if member.removed == "aside":
        return ASIDE
    if member.pending:
        return GIVES_UP
    return IN_SYNC if member.epoch in {None, group.epoch} else NOT_TOLD


def _errors(group: EpochGroupData) -> dict[str, dict[str, int]]:
    """Return API → error → number of responses."""
    named: dict[str, dict[str, int]] = {}
    for api_key, counts in sorted(group.errors.items()):
        for error, count in sorted(counts.items()):
            api, name = named_error(api_key, error)
            known = named.setdefault(api, {})
            known[name] = known.get(name, 0) + count
    return named

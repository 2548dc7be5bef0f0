"""The view of a classic group.

It is an estimate. ``learning`` says why the membership behind it is not known yet.
"""

from __future__ import annotations

from typing import Any

from coordinator_model.counters import Cost, named_error
from coordinator_model.finding import iso_utc
from coordinator_model.group_view import GroupView
from coordinator_model.groups.classic.group import ClassicGroup
from coordinator_model.groups.classic.state import State
from coordinator_model.groups.records import Member
from coordinator_model.groups.spoken_versions import named_versions


def view(group: ClassicGroup, open_findings: int, partition: int, now_us: int) -> GroupView:
    """Return the view of a group at ``now_us``."""
    newest = group.newest_generation
    members = [member for member in group.members.values() if member.present]
    content = {
        "cluster": group.cluster,
        "group": group.name,
        "group_type": group.kind,
        "state": group.state.value,
        "state_since": iso_utc(group.state_since_us) if group.state_since_us else None,
        "learning": _learning(group),
        "incarnation": group.incarnation,
        "coordinator": group.broker or None,
        "generation": group.generation,
        "leader": (newest.leader or None) if newest is not None else None,
        "protocol_type": group.protocol_type or None,
        "protocol": newest.protocol if newest is not None else None,
        "members": [_member(group, member) for member in members],
        "waits_for": _waits_for(group, members),
        "rebalances": dict(sorted(group.causes.items())),
        "costs": {cause: Cost(*cost).as_json() for cause, cost in sorted(group.rebalance_events.costs.items())},
        "joins": _phase(group.joins),
        "syncs": _phase(group.syncs),
        "last_join_ms": None if group.join_took_us is None else group.join_took_us // 1_000,
        "last_sync_ms": None if group.sync_took_us is None else group.sync_took_us // 1_000,
        "errors": _errors(group),
        "open_findings": open_findings,
        "partition": partition,
        "updated_at": iso_utc(now_us),
    }
    return GroupView(group.cluster, group.name, content)


def _errors(group: ClassicGroup) -> dict[str, dict[str, int]]:
    """Return API → error → number of responses."""
    named: dict[str, dict[str, int]] = {}
    for api_key, counts in sorted(group.errors.items()):
        for error, count in sorted(counts.items()):
            api, name = named_error(api_key, error)
            known = named.setdefault(api, {})
            known[name] = known.get(name, 0) + count
    return named


def _phase(ended: tuple[int, int]) -> dict[str, int]:
    """Return the number of completed phases and their total duration."""
    count, total_us = ended
    return {"count": count, "total_ms": total_us // 1_000}


def _learning(group: ClassicGroup) -> str | None:
    """Return why the membership is not known, None when it is."""
    return group.learning_because if group.learning else None


def _member(group: ClassicGroup, member: Member) -> dict[str, Any]:
    return {
        "member_id": member.id,
        "instance_id": member.instance_id,
        "client_id": member.actor.client_id,
        "client_address": member.actor.address or None,
        "client_software": member.actor.software or None,
        "state": _member_state(group, member),
        "session_timeout_ms": member.session_timeout_ms,
        "rebalance_timeout_ms": member.rebalance_timeout_ms,
        "reason": member.reason or None,
        "last_frame": member.last_frame or None,
        "last_frame_at": iso_utc(member.last_frame_us) if member.last_frame_us else None,
        "versions": named_versions(member.versions),
    }


def _member_state(group: ClassicGroup, member: Member) -> str:
    if member.parked_join in group.open:
        return "rejoining"
    if group.state is State.PREPARING:
        return "not rejoined"
    newest = group.newest_generation
    if newest is None or member.in_sync == newest.generation:
        return "in sync"
    if member.parked_sync in group.open:
        return "waits for its assignment"
    return "joined" if member.joined == newest.generation else "in sync"


def _waits_for(group: ClassicGroup, members: list[Member]) -> list[str]:
    """Return the ids of the members that the current phase waits for."""
    newest = group.newest_generation
    if group.state is State.PREPARING:
        return [member.id for member in members if member.parked_join not in group.open]
    if group.state is State.COMPLETING and newest is not None and newest.leader_synced_us is None:
        return [newest.leader]
    return []

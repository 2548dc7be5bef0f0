"""The view of a group, as a dashboard shows it. It is an estimate; ``learning`` is why the membership behind it is not known yet."""

from __future__ import annotations

from typing import Any

from coordinator_model.counters import named_error
from coordinator_model.events import State
from coordinator_model.group_view import GroupView
from coordinator_model.groups import arrivals
from coordinator_model.groups.group import MID_LIFE, Group
from coordinator_model.groups.records import AnyMember
from coordinator_model.groups.responses import named_versions
from coordinator_model.wording import clock, iso_utc


def view_of(group: Group[Any], own: dict[str, Any], open_findings: int, partition: int, now_us: int) -> GroupView:
    """Return the view of a group at ``now_us``.

    :param own: what its type shows beside what all do: state, leader, protocol, members, whom it waits for.
    """
    learning = group.learning_because if group.learning else None
    if learning == MID_LIFE and not group.members and not group.settled:
        learning = "no client was seen to be let in"
    since_us, changes = group.state_since_us, group.coordinator_changes
    if own["members"] and changes.is_lost(group):  # what was known is as old as the loss
        own, since_us = own | {"state": State.UNKNOWN.value}, changes.lost.since_us
        what = "no coordinator" if changes.is_gone(group) else "no member has had a connection"
        learning = f"{what} since {clock(since_us)}"
    content = {
        "cluster": group.cluster,
        "group": group.name,
        "group_type": group.kind,
        "state": own["state"],
        "state_since": iso_utc(since_us) if since_us else None,
        "learning": learning,
        "incarnation": group.incarnation,
        "coordinator": group.broker or None,
        "generation": group.generation,
        **own,
        "arrivals": [
            arrivals.as_json(known, group.members)
            for stage in arrivals.Stage
            for _, known in group.arrivals.standing(stage, group.members)
        ],
        "progress": None if group.committed_offsets.pace is None else group.committed_offsets.pace.as_json(),
        "rebalances": dict(sorted(group.causes.items())),
        "costs": {cause: cost.as_json() for cause, cost in sorted(group.rebalances.costs.items())},
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


def member_of(member: AnyMember, state: str, **own: Any) -> dict[str, Any]:
    """Return a member as the view shows it.

    :param own: what its type shows beside what all do.
    """
    return {
        "member_id": member.id,
        "instance_id": member.instance_id,
        "client_id": member.actor.client_id,
        "client_address": member.actor.address or None,
        "client_software": member.actor.software or None,
        "state": state,
        "session_timeout_ms": member.session_timeout_ms,
        "rebalance_timeout_ms": member.rebalance_timeout_ms,
        "reason": member.reason or None,
        "last_frame": member.last_frame or None,
        "last_frame_at": iso_utc(member.last_frame_us) if member.last_frame_us else None,
        **own,
        "versions": named_versions(member.versions),
    }


def _errors(group: Group[Any]) -> dict[str, dict[str, int]]:
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

"""DescribeGroups answers that pass by: they show the members of a group that was first seen in mid-life.

A description has no generation. Heartbeats have: if one generation was served before a description was asked for and is served after it,
then the described members are those of that generation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from coordinator_model.events import State
from coordinator_model.groups.classic.state import Observation
from coordinator_model.groups.group_coordinator import is_coordinator
from coordinator_model.groups.records import ClientInfo, Exchange, Generation, Member, Removed, StaticMember
from coordinator_model.groups.tracker import NOTHING, Event

if TYPE_CHECKING:
    from coordinator_model.groups.classic.group import ClassicGroup
    from coordinator_model.groups.classic.trackers.descriptions import DescribedMember, Description


def on_response(group: ClassicGroup, exchange: Exchange, body: Any) -> tuple[Event, ...]:  # noqa: ARG001
    """Adopt the members of the description before this one, if frames have shown since at which generation it was true."""
    described = group.descriptions.newest
    if described is not None and group.newest_generation is None and _is_true_of_a_generation(group, described):
        _adopt(group, described)
    return NOTHING


def _is_true_of_a_generation(group: ClassicGroup, described: Description) -> bool:
    skew_us = group.clock_skew_us
    if described.state != State.STABLE or not described.names_instances or not is_coordinator(group, described.broker):
        return False
    if described.generation is None or described.generation != group.generation_seen or any(group.waiting_joins()):
        return False
    if any(one.replacements and one.replacements[-1][0] > described.asked_us - skew_us for one in group.instances.values()):
        return False
    return any(
        member.id in described.ids
        and member.proven_us is not None
        and described.res_us + skew_us < member.heartbeat_us <= member.proven_us
        for member in group.present_members()
    )


def _adopt(group: ClassicGroup, described: Description) -> None:
    assert described.generation is not None
    group.generations.append(
        Generation(
            described.generation,
            described.res_us,
            described.frame,
            "",
            described.protocol or None,
            {one.id: one.instance_id for one in described.members},
            leader_synced_us=described.asked_us,
            sync_done_us=described.res_us,
        )
    )
    for one in described.members:
        _adopt_member(group, described, one)
    for member in list(group.present_members()):
        if member.id not in described.ids:
            group.remove(member, Removed.DROPPED, described.res_us)
    group.observe(Observation.HEARTBEAT_OK, described.res_us)


def _adopt_member(group: ClassicGroup, described: Description, one: DescribedMember) -> None:
    member = group.members.get(one.id)
    if member is None:
        member = group.members[one.id] = Member(one.id, ClientInfo(one.client_id, one.host.removeprefix("/"), "", ""))
        member.last_frame_us = described.res_us
    member.joined = member.synced = member.in_sync = described.generation
    if member.proven_us is None:
        member.proven_us = described.res_us
    if member.removed is not None:
        group.restore_member(member)
    if one.instance_id is not None:
        member.instance_id = one.instance_id
        instance = group.instances.setdefault(one.instance_id, StaticMember(one.instance_id, one.id))
        instance.member_id = one.id
        instance.held_us = instance.held_us or described.asked_us
        instance.settled_us = instance.settled_us or described.res_us

"""Whom the others waited for in a rebalance, and how long: the ``waited_for`` of its record.

*The last to join is not whom the others waited for.* A coordinator ends a join phase when every member of the generation before has
rejoined, and every id that it issued is used. No member waits for another new member; in an empty group the coordinator waits by itself.
*No member waits before the first has asked.*
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from coordinator_model.events import ID_NOT_USED, NO_ASSIGNMENT, NOT_REJOINED
from coordinator_model.groups.rebalance import Awaited, Identity, MemberProgress, Rebalance, Waited

if TYPE_CHECKING:
    from coordinator_model.groups.classic.data import GroupData


def awaited_in(group: GroupData, from_generation: int | None, began_us: int) -> dict[str, Awaited]:
    """Return without whom a join phase that began now does not end: the members of the generation before, and unused ids."""
    found = {id_: awaited_id(group, id_) for id_ in group.issued}
    for id_ in group.coordinator_changes.loaded_at(began_us):
        member = group.members.get(id_)
        if member is not None and member.removed is None:
            found[id_] = Awaited(Identity.of_member(member), NOT_REJOINED, began_us)
    before = next((known for known in reversed(group.generations) if known.generation == from_generation), None)
    if before is None or (before.roster is None and before is not group.newest_generation):
        return found
    for member in group.members.values():
        stays = member.removed is None or member.removed_us > began_us
        if stays and member.proven_us is not None and (before.roster is None or member.id in before.roster):
            gone_us = began_us if group.may_have_expired(member, began_us) else 0
            found[member.id] = Awaited(Identity.of_member(member), NOT_REJOINED, began_us, gone_us)
    return found


def awaited_id(group: GroupData, member_id: str) -> Awaited:
    """Return an id that was issued and is to be used, until its session timeout."""
    issued = group.issued[member_id]
    identity = Identity.of(member_id, None, issued.actor)
    return Awaited(identity, ID_NOT_USED, issued.issued_us, issued.issued_us + issued.session_timeout_ms * 1_000)


def waited_for(group: GroupData, current: Rebalance, ended_us: int) -> list[Waited]:
    """Return whom the others waited for in both phases.

    :param ended_us: end of the rebalance.
    """
    found = list(_to_join(current, current.completed_us or ended_us))
    newest = group.newest_generation
    if current.generation is not None and newest is not None and newest.generation == current.generation:
        leader = current.members.get(newest.leader)
        if leader is not None:
            found += _to_sync(leader, current.members, ended_us)
    return found


def _to_join(current: Rebalance, ended_us: int) -> Iterator[Waited]:
    """Yield those that were to rejoin; a static member may do so under a new id. Who began the rebalance is the cause of it."""
    came = {one.identity.holder: one.joined_us for one in current.members.values() if one.joined_us}
    firsts = sorted((joined_us, holder) for holder, joined_us in came.items())[:2]
    if not any(one.why == NOT_REJOINED for one in current.awaited.values()):
        return  # the coordinator waits by itself for more members of an empty group
    for one in current.awaited.values():
        holder = one.identity.holder
        others_us = next((joined_us for joined_us, other in firsts if other != holder), 0)
        if not others_us or holder == current.identity.holder:
            continue
        until_us = min(came.get(holder) or one.gone_us or ended_us, ended_us)
        waited_us = until_us - max(current.began_us, one.since_us, others_us)
        yield Waited(one.identity, one.why, max(0, waited_us), came=holder in came)


def _to_sync(leader: MemberProgress, members: Mapping[str, MemberProgress], ended_us: int) -> Iterator[Waited]:
    others_us = min((one.synced_us for one in members.values() if one is not leader and one.synced_us), default=0)
    if others_us:
        waited_us = (leader.synced_us or ended_us) - others_us
        yield Waited(leader.identity, NO_ASSIGNMENT, max(0, waited_us), came=bool(leader.synced_us))

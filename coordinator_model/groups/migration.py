"""Conversion of a group between the classic protocol and the protocols with epochs: what shows it, and what is carried over.

Only a success shows the type of a group. Any client may send a heartbeat of another type, and is refused. A member that was admitted
to a group of classic members converts it to a consumer group in which both protocols meet; when its last member of the new protocol has
gone, the coordinator converts it back. Members stay what they are meanwhile, so none of them has gone.
"""

from __future__ import annotations

from typing import Any, Final

from coordinator_model.finding import Evidence
from coordinator_model.groups.classic.data import CLASSIC
from coordinator_model.groups.classic.handlers.join_group import contradicts_itself
from coordinator_model.groups.classic.model import ClassicGroupModel
from coordinator_model.groups.epochs.events import Migrated
from coordinator_model.groups.epochs.kinds import CONSUMER, KIND_BY_API
from coordinator_model.groups.epochs.model import EpochGroup
from coordinator_model.groups.epochs.records import EpochMember
from coordinator_model.groups.group import GroupModel
from coordinator_model.groups.records import ConnectionState, Member
from coordinator_model.groups.tracker import NOTHING, Event
from coordinator_model.wire.constants import HEARTBEAT, JOIN_GROUP, LEAVE_GROUP, SYNC_GROUP

_CARRIED: Final = frozenset({JOIN_GROUP, SYNC_GROUP, HEARTBEAT, LEAVE_GROUP})
"""APIs whose open requests are followed on both sides."""

CONVERSION_WINDOW_US: Final = 3_600_000_000
_CONVERSIONS_KEPT: Final = 16


def kind_shown(api_key: int, body: Any) -> str | None:
    """Return the type of group that a response shows, None if it shows none."""
    kind = KIND_BY_API.get(api_key)
    if kind is not None:
        return None if body.error_code or body.member_epoch < 0 else kind.name
    if api_key != JOIN_GROUP or body.error_code or contradicts_itself(body):
        return None
    return CLASSIC if body.leader else CONSUMER


def may_convert(group: GroupModel[Any], asked_us: int) -> bool:
    """Return True if a response to a request of ``asked_us`` is no late one of the time before the group had its present type."""
    if isinstance(group, ClassicGroupModel):
        newest = group.newest_generation
        return newest is None or newest.proven_us < asked_us
    assert isinstance(group, EpochGroup)
    return not group.conversions or group.conversions[-1] < asked_us


def carry_over(old: GroupModel[Any], new: GroupModel[Any], at_us: int, member_id: str | None, frame: Evidence) -> tuple[Event, ...]:
    """Fill the new group with what remains true of the old one; return the event of the conversion.

    :param frame: the response of ``at_us`` that shows the conversion.
    """
    new.incarnation, new.broker, new.last_record_us = old.incarnation, old.broker, old.last_record_us
    new.addresses, new.settled, new.late_frames = old.addresses, old.settled, old.late_frames
    window_us = at_us - CONVERSION_WINDOW_US
    kept = (*[before for before in old.conversions if before > window_us][-_CONVERSIONS_KEPT:], at_us)
    watched = _was_watched(old)
    if _is_another(old, new):
        _succeed(old, new, at_us)
        return NOTHING
    number_before = old.generation
    old.rebalances.on_gap(old, at_us, f"was converted to the {new.kind} type")
    new.errors, new.arrivals = old.errors, old.arrivals
    if isinstance(old, ClassicGroupModel) and isinstance(new, EpochGroup):
        _to_epochs(old, new, at_us)
        new.rebalances.members_known = False if watched else None
        if watched:
            new.learning_because = "the group was converted from the classic protocol"
    elif isinstance(old, EpochGroup) and isinstance(new, ClassicGroupModel):
        _to_classic(old, new)
    if not watched:
        return NOTHING
    new.conversions = kept
    return (Migrated(at_us, old.kind, new.kind, number_before, member_id, len(kept), frame),)


def _is_another(old: GroupModel[Any], new: GroupModel[Any]) -> bool:
    """Return True if the new group only has the name of the old one, which was deleted, or expired unseen.

    No conversion leads from one type with epochs to another.
    """
    if isinstance(old, ClassicGroupModel):
        newest = old.newest_generation
        return old.deleted_us is not None and (newest is None or newest.proven_us <= old.deleted_us)
    assert isinstance(old, EpochGroup)
    return bool(old.deleted_us) or isinstance(new, EpochGroup)


def _succeed(old: GroupModel[Any], new: GroupModel[Any], at_us: int) -> None:
    """End what was open in a group that is no more. A request under way is the new group's."""
    old.rebalances.on_gap(old, at_us, f"a {new.kind} group has taken its place")
    new.learning_because = f"it has taken the place of a {old.kind} group"
    _carry_requests(old, new)


def _was_watched(group: GroupModel[Any]) -> bool:
    """Return True if the group's type was proven. Before a JoinGroup success, a group counts as classic without proof;
    one that has only refused members with epochs counts as of their type.
    """
    if isinstance(group, ClassicGroupModel):
        return bool(group.protocol_type)
    return not isinstance(group, EpochGroup) or group.epoch is not None


def _to_epochs(old: ClassicGroupModel, new: EpochGroup, at_us: int) -> None:
    if new.kind == CONSUMER:
        new.epoch = old.generation
        new.epoch_us = old.newest_generation.proven_us if old.newest_generation is not None else 0
        for member in old.present_members():
            new.members[member.id] = _with_epoch(member)
            if member.instance_id is not None:
                new.instances[member.instance_id] = member.id
        new.mixed_since_us = at_us if new.members else 0
    new.note_state(at_us)
    _carry_requests(old, new)


def _with_epoch(member: Member) -> EpochMember:
    return EpochMember(
        member.id,
        actor=member.actor,
        instance_id=member.instance_id,
        classic=True,
        epoch=member.joined,
        session_timeout_ms=member.session_timeout_ms,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        proven_us=member.proven_us,
        accepted_us=member.proven_us or 0,
        last_frame_us=member.last_frame_us,
        last_api=member.last_api,
    )


def _to_classic(old: EpochGroup, new: ClassicGroupModel) -> None:
    new.learning_because = "the group returned to the classic protocol"
    for known in old.present_members():
        if not known.classic:
            continue
        member = new.members[known.id] = Member(
            known.id,
            actor=known.actor,
            instance_id=known.instance_id,
            session_timeout_ms=known.session_timeout_ms,
            rebalance_timeout_ms=known.rebalance_timeout_ms,
        )
        member.last_frame_us, member.last_api = known.last_frame_us, known.last_api
    new.rebalances.members_known = False
    _carry_requests(old, new)
    for exchange in new.open.values():
        if exchange.api_key == JOIN_GROUP and exchange.member_id in new.members:
            new.members[exchange.member_id].parked_join = exchange.key


def _carry_requests(old: GroupModel[Any], new: GroupModel[Any]) -> None:
    new.open = {key: exchange for key, exchange in old.open.items() if exchange.api_key in _CARRIED}
    if isinstance(old, ClassicGroupModel) and isinstance(new, EpochGroup):
        joins = [key for key, exchange in new.open.items() if exchange.api_key == JOIN_GROUP]
        new.rebalances.asked = dict(joins)
    for connection, line in old.connections.items():
        outstanding = sum(1 for key in new.open if key[0] == connection)
        new.connections[connection] = ConnectionState(outstanding, line.last_response_us, line.actor)
    new.changed = True

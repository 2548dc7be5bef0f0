"""Proofs from frames of which clients are members, and since when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from coordinator_model.groups.events import IdUnused
from coordinator_model.groups.protocol.classic import INSTANCE_SINCE, PREPARING
from coordinator_model.groups.records import Exchange, Generation, JoinFacts, Removed
from coordinator_model.groups.tracker import NOTHING, Event
from coordinator_model.releases import BrokerVersion
from coordinator_model.wire.constants import JOIN_GROUP

if TYPE_CHECKING:
    from coordinator_model.groups.classic.data import GroupData

_HOUR_US: Final = 3_600_000_000


def bears_generation(broker_version: BrokerVersion, exchange: Exchange, body: Any) -> bool:
    """Return True if a JoinGroup refusal has a generation that no refusal may have."""
    if body.generation_id < 0 or (exchange.instance_id is not None and not exchange.member_id):
        return False  # the response to a replacement that could not be written has the group's generation
    return body.generation_id > 0 or broker_version.marks_failed_joins


def differs(group: GroupData, newest: Generation, exchange: Exchange, body: Any, roster: dict[str, str | None]) -> bool:
    """Return True if the leader's list has another membership, leader or protocol than the generation's.

    Static members are compared by instance id, because they may be replaced within a generation. A list that is too old to name
    instances is not compared where there are static members.
    """
    assert newest.roster is not None
    if exchange.api_version < INSTANCE_SINCE[JOIN_GROUP] and any(newest.roster.values()):
        return False
    known = {instance_id or id_ for id_, instance_id in newest.roster.items()}
    given = {instance_id or id_ for id_, instance_id in roster.items()}
    former = group.members.get(newest.leader)
    leader = newest.roster.get(newest.leader) or (former.instance_id if former is not None else None) or newest.leader
    instance_id = roster.get(body.leader)
    if former is None and newest.leader not in newest.roster and instance_id is not None:
        leader = instance_id  # only followers named the one before, which this may have replaced
    return (known, leader, newest.protocol) != (given, instance_id or body.leader, body.protocol_name)


def in_one_life(group: GroupData, exchange: Exchange, newest: Generation) -> bool:
    """Return True if the coordinator cannot have lost the generation between its first response and this one.

    Either the generation outlives a restart, or this request was parked with the others.
    """
    parked = not exchange.queued_behind and exchange.effective_us <= newest.proven_us - group.clock_skew_us
    return parked or group.lasts(newest, exchange.effective_us)


def never_empty(group: GroupData, before: Generation, exchange: Exchange) -> bool:
    """Return True if some member of that generation remained one since. Passing through Empty would take a generation of its own."""
    if before.roster is None:
        return False
    if exchange.member_id in before.roster:
        return True
    for id_ in before.roster:
        member = group.members.get(id_)
        if member is None or member.session_timeout_ms is None:
            continue
        until_now = member.present or (member.removed == Removed.DROPPED and member.removed_us == exchange.res_us)
        if until_now and member.last_frame_us + member.session_timeout_ms * 1_000 > exchange.res_us:
            return True
    return False


def nothing_else_moves(group: GroupData, exchange: Exchange) -> bool:
    """Return True if the group is provably settled, and the returning static member's JoinGroup changes nothing."""
    newest, ask = group.newest_generation, exchange.facts
    assert isinstance(ask, JoinFacts)
    assert exchange.instance_id is not None
    instance = group.instances.get(exchange.instance_id)
    if newest is None or newest.roster is None:
        return False
    if newest.sync_done_us is None or newest.unsettled_us:
        return False
    if instance is None or instance.member_id not in newest.roster or not ask.protocols or newest.protocol != ask.protocols[0]:
        return False
    if any(one.replacements and one.replacements[-1][0] >= newest.proven_us for one in group.instances.values()):
        return False
    if any(open_.api_key in PREPARING and open_ is not exchange for open_ in group.open.values()):
        return False
    for id_ in newest.roster:
        member = group.members.get(id_)
        if member is None or member.removed is not None or member.session_timeout_ms is None:
            return False
        if member.in_sync != newest.generation or member.protocols != ask.protocols:
            return False
        if exchange.inv_us - member.last_frame_us >= member.session_timeout_ms * 500:
            return False
    return True


def unused_ids(group: GroupData, exchange: Exchange) -> tuple[Event, ...]:
    """Return an event if a connection asks for another member id, and has not used at least two that are still valid."""
    assert isinstance(exchange.facts, JoinFacts)
    oldest_us = exchange.inv_us - exchange.facts.session_timeout_ms * 1_000
    newest_us = exchange.inv_us - group.settings.reorder_window_ms * 1_000
    unused = tuple(
        id_
        for id_, issued in group.issued.items()
        if issued.actor.connection == exchange.actor.connection and oldest_us < issued.issued_us <= newest_us
    )
    return (IdUnused(exchange, unused),) if len(unused) >= 2 else NOTHING


def abandoned_joins(group: GroupData, exchange: Exchange) -> int:
    """Return the number of member ids that this client abandoned within the hour: it hung up while they were valid, and did not leave.

    An id that the coordinator has removed, or denied knowing, is none of them: the client lawfully asks for another one.
    """
    since_us = exchange.res_us - _HOUR_US
    members = sum(
        1
        for member in group.members.values()
        if member.removed in {Removed.DROPPED, Removed.SILENT}
        and member.instance_id is None
        and member.removed_us >= since_us
        and member.last_frame_us <= member.disconnected_us <= member.removed_us
        and member.actor.named == exchange.actor.named
    )
    issued = sum(
        1
        for one in group.issued.values()
        if one.issued_us >= since_us and one.actor.connection not in group.connections and one.actor.named == exchange.actor.named
    )
    return members + issued

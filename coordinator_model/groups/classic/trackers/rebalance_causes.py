"""Find the client and the cause that started a rebalance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from coordinator_model.events import (
    LEADER_REJOINED,
    MEMBER_LEFT,
    NEW_MEMBER,
    NOT_SEEN,
    REMOVED,
    SAME_TOPICS,
    SESSION_EXPIRED,
    STATIC_RETURNED,
    SUBSCRIPTION_CHANGED,
    TOPICS_CHANGED,
    WORKER_REJOINED,
)
from coordinator_model.groups.evidence import request_evidence
from coordinator_model.groups.protocol.classic import TWO_STEP_JOIN_SINCE
from coordinator_model.groups.rebalance import LONG_US, Rebalance, Starter
from coordinator_model.groups.records import NO_CLIENT, ClientInfo, Exchange, Generation, JoinFacts, Member, Removed
from coordinator_model.wire import CONNECT

if TYPE_CHECKING:
    from coordinator_model.groups.classic.data import GroupData

REASON_KEPT: Final = 80  #: characters of a KIP-800 reason
FOLLOW_UPS: Final = 3  #: generations that a cooperative rebalance may take after its first


def is_begun_by(rebalance: Rebalance, client: Starter) -> bool:
    """Return True if the client began it of its own accord."""
    return _acts(client, rebalance.starter)


def is_started_by(rebalance: Rebalance, client: Starter) -> bool:
    """Return True if the client began it of its own accord, or would have."""
    return any(_acts(client, one) for one in (rebalance.starter, *rebalance.also))


def _acts(client: Starter, starter: Starter) -> bool:
    """A Connect worker rejoins because a connector changed, or another worker was restarted (KIP-415)."""
    return starter.cause != WORKER_REJOINED and client.is_same(starter)


def in_a_row(rebalances: Sequence[Rebalance]) -> tuple[Rebalance, ...]:
    """Return the newest consecutive rebalances of one client, oldest first; none if the newest is a follow-up of another.

    A rebalance may take several generations: its follow-ups neither count nor interrupt the sequence.

    :param rebalances: with their generations, oldest first.
    """
    if not rebalances or rebalances[-1].starter.cause in {NOT_SEEN, REMOVED}:
        return ()
    newest, following = rebalances[-1], _follow_ups(rebalances)
    if newest.generation is None or newest.generation in following:
        return ()
    row = [newest]
    expected = newest.generation - 1
    for earlier in reversed(rebalances[:-1]):
        if earlier.generation != expected or newest.completed_us - earlier.completed_us > LONG_US:
            break
        expected -= 1
        if earlier.generation in following or earlier.starter.cause in TOPICS_CHANGED:
            continue
        if earlier.starter.is_same(newest.starter):
            row.append(earlier)
        elif earlier.starter.cause != SAME_TOPICS:
            break
    return tuple(reversed(row))


def _follow_ups(rebalances: Sequence[Rebalance]) -> set[int | None]:
    """Return the generations that belong to an earlier rebalance.

    A client that dies and comes back makes two: its return, and the end of its former session.
    """
    following: set[int | None] = set()
    streak = 0
    for rebalance in rebalances:
        cause = rebalance.starter.cause
        streak = streak + 1 if cause == SAME_TOPICS else 0
        if cause in {WORKER_REJOINED, SESSION_EXPIRED} or (cause == SAME_TOPICS and streak <= FOLLOW_UPS):
            following.add(rebalance.generation)
    return following


def find_starter(group: GroupData, exchange: Exchange, member: Member | None) -> Starter:
    ask = exchange.facts
    assert isinstance(ask, JoinFacts)
    if member is None or exchange.member_id in group.issued:
        cause = NEW_MEMBER
    elif ask.protocol_type == CONNECT:
        cause = WORKER_REJOINED
    elif not member.digest or member.digest == ask.digest:
        cause = LEADER_REJOINED
    elif ask.topics and ask.topics == member.topics:
        cause = SAME_TOPICS
    else:
        cause = SUBSCRIPTION_CHANGED
    return _of_request(group, exchange, cause, (exchange.member_id, exchange.instance_id), ask.reason)


def would_start(group: GroupData, exchange: Exchange, member: Member | None) -> Starter | None:
    """Return the client of a JoinGroup within a join phase if the phase would have begun for it: it is new, or wants other topics."""
    ask = exchange.facts
    assert isinstance(ask, JoinFacts)
    unnamed = not exchange.member_id and exchange.instance_id is None and exchange.api_version < TWO_STEP_JOIN_SINCE
    changed = member is not None and ask.topics and member.topics and ask.topics != member.topics
    if exchange.member_id in group.issued or unnamed or changed:
        return find_starter(group, exchange, member)
    return None


def leaver(group: GroupData, exchange: Exchange, member: Member, reason: str) -> Starter:
    """Return who began a rebalance with a LeaveGroup that names a member."""
    return _of_request(group, exchange, MEMBER_LEFT if member.leaving else REMOVED, (member.id, member.instance_id), reason)


def _of_request(group: GroupData, exchange: Exchange, cause: str, named: tuple[str, str | None], reason: str) -> Starter:
    shared = is_shared(group, exchange.actor, named[0])
    return Starter(cause, *named, exchange.actor, shared, reason[:REASON_KEPT], request_evidence(exchange))


def is_shared(group: GroupData, actor: ClientInfo, member_id: str) -> bool:
    """Return True if another connected member has the same client id. One without a connection may be the same client before a restart."""
    if actor.client_id is None:
        return True
    for other in group.present_members():
        if other.id == member_id:
            continue
        if other.actor.client_id == actor.client_id and other.actor.connection in group.connections:
            return True
        if other.actor == NO_CLIENT and other.id.startswith(f"{actor.client_id}-"):
            return True
    return False


def expired_member(group: GroupData, newest: Generation, at_us: int) -> Starter | None:
    """Return the only member whose session can have expired by then, None unless there is exactly one."""
    silent = [
        member
        for member in (group.members.get(id_) for id_ in newest.roster or ())
        if member is not None and group.may_have_expired(member, at_us)
    ]
    if len(silent) != 1:
        return None
    return expired(group, silent[0])


def expired(group: GroupData, member: Member) -> Starter:
    """Return a member whose session ended as the one that began a rebalance."""
    shared = is_shared(group, member.actor, member.id)
    return Starter(SESSION_EXPIRED, member.id, member.instance_id, member.actor, shared, "", member.joined_frame)


def cause_seen_late(group: GroupData, exchange: Exchange) -> str:
    """Return the likely cause of a join phase whose beginning was not captured, from its JoinGroups. No rule uses it."""
    for asked in (exchange, *group.waiting_joins()):
        if asked.member_id:
            continue
        if asked.instance_id is not None:
            return STATIC_RETURNED
        if asked is exchange or asked.api_version < TWO_STEP_JOIN_SINCE:
            return NEW_MEMBER
    return NOT_SEEN


def had_members(group: GroupData) -> bool:
    """Return True if the join phase interrupted members: a group that was empty before it, or is new, has none."""
    before = group.generations[-2] if len(group.generations) > 1 else None
    if before is None:
        return False  # not known
    if before.roster is None:
        return True
    members = (group.members.get(id_) for id_ in before.roster)
    return any(member is not None and member.removed not in {Removed.LEFT, Removed.SILENT} for member in members)


def is_still_connected(group: GroupData, member: Member) -> bool:
    """Return True if the connection of the member's last JoinGroup success is open, so that the member received it."""
    return member.joined_frame is not None and member.joined_frame.connection in group.connections

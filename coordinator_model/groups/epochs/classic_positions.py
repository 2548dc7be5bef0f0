"""What frames leave possible while a coordinator acts on a request of a classic member in a consumer group.

See ``positions``. Nothing is judged unless a member of the new protocol has certainly been there since the classic one joined: with the
last of them the group becomes a classic one, which answers otherwise, and with the next one a consumer group again, in which all classic
members have its generation. No frame shows either, if the last one was silent. A member's epoch is its last JoinGroup's otherwise.

Sources: ``GroupMetadataManager``, ``classicGroup…ToConsumerGroup`` (Heartbeat, Sync, Leave).
"""

from __future__ import annotations

from typing import Final

from coordinator_model.groups.effects import Does
from coordinator_model.groups.epochs.data import EpochGroupData
from coordinator_model.groups.epochs.events import Unlawful
from coordinator_model.groups.epochs.positions import (
    ANY_SENDER,
    FENCED,
    GONE,
    NEVER_JOINED,
    OF_ANOTHER,
    REFUSED,
    STALE,
    Possible,
    is_gone,
    never_joined,
    surely_stays,
    surely_us,
)
from coordinator_model.groups.epochs.records import EpochMember
from coordinator_model.groups.group_coordinator import is_coordinator
from coordinator_model.groups.protocol.epochs import Epoch, Sender
from coordinator_model.groups.records import Exchange
from coordinator_model.wire.constants import (
    FENCED_INSTANCE_ID,
    HEARTBEAT,
    ILLEGAL_GENERATION,
    LEAVE_GROUP,
    NONE,
    REBALANCE_IN_PROGRESS,
    SYNC_GROUP,
    UNKNOWN_MEMBER_ID,
)

_APIS: Final = frozenset({HEARTBEAT, SYNC_GROUP, LEAVE_GROUP})
_OWN: Final = frozenset({Sender.MEMBER, Sender.STATIC})
_KINDS: Final = {ILLEGAL_GENERATION: FENCED, UNKNOWN_MEMBER_ID: REFUSED, FENCED_INSTANCE_ID: REFUSED}
_JUDGED: Final = _KINDS.keys() | {NONE, REBALANCE_IN_PROGRESS}


def unlawful(group: EpochGroupData, exchange: Exchange, member: EpochMember | None) -> tuple[Unlawful, ...]:
    """Return an event if no possible moment explains the answer. Call this before the answer changes what is known."""
    judged = exchange.api_key in _APIS and exchange.error in _JUDGED and exchange.gap_free
    if not judged or not is_coordinator(group, exchange.broker):
        return ()
    possible = Possible(
        _senders(group, exchange, member),
        _epochs(group, exchange, member),
        (frozenset(),),
        exchange.api_version,
        group.release_of(exchange.broker),
    )
    if possible.allow(exchange.error, exchange.api_key) or not _is_consumer_group(group, exchange, member):
        return ()
    if member is None:
        return (Unlawful(exchange, NEVER_JOINED, None, None, False, None),)
    kind = _KINDS.get(exchange.error, GONE if member.gone else STALE)
    proof = member.removed_frame if kind == GONE else member.epoch_frame
    return (Unlawful(exchange, kind, member.epoch, member.removed, False, proof),)


def may_be_moved(group: EpochGroupData, exchange: Exchange, member: EpochMember) -> bool:
    """Return True if a join of the member, seen or not, may have been processed since its epoch was delivered, or after the request."""
    return member.epoch_us >= exchange.inv_us or any(
        effect.may_move(member.id) for effect in group.possible(exchange, member.epoch_us)
    )


def _is_consumer_group(group: EpochGroupData, exchange: Exchange, member: EpochMember | None) -> bool:
    """Return True if a member of the new protocol stays, which joined before the classic one did."""
    since_us = exchange.inv_us if member is None else member.epoch_us
    return any(
        surely_stays(group, exchange, other)
        and other.accepted_us < exchange.inv_us
        and max(other.joins, default=0) < since_us
        and not any(
            effect.does is Does.JOINS and effect.member_id == other.id  # with a JoinGroup it changes its protocol
            for effect in group.possible(exchange, other.accepted_asked_us)
        )
        for other in group.present_members()
    )


def _senders(group: EpochGroupData, exchange: Exchange, member: EpochMember | None) -> frozenset[Sender]:
    others = frozenset[Sender]() if exchange.instance_id is None else OF_ANOTHER
    if member is None:
        return others | {Sender.OUTSIDER} if never_joined(group, exchange, member) else ANY_SENDER
    if is_gone(group, exchange, member):
        return others | {Sender.OUTSIDER}
    if not member.present or not member.classic:
        return ANY_SENDER
    own_name = exchange.instance_id in {None, member.instance_id}
    return _OWN if own_name and _surely_stays(group, exchange, member) else _OWN | others | {Sender.OUTSIDER}


def _epochs(group: EpochGroupData, exchange: Exchange, member: EpochMember | None) -> frozenset[Epoch]:
    is_known = member is not None and member.classic and member.epoch_us > 0 and not group.may_be_reloaded(member)
    if member is None or not is_known or member.epoch is None or may_be_moved(group, exchange, member):
        return frozenset(Epoch)
    if exchange.generation == member.epoch:
        return frozenset({Epoch.SAME})
    return frozenset({Epoch.HIGHER if exchange.generation > member.epoch else Epoch.LOWER})


def _surely_stays(group: EpochGroupData, exchange: Exchange, member: EpochMember) -> bool:
    """Return True if nothing can have removed the member since it was last accepted: it has synced, and was not asked to join again."""
    return (
        member.synced_us > member.epoch_us > 0
        and not member.rejoin_frames
        and member.epoch is not None
        and member.accepted_us < exchange.inv_us
        and exchange.res_us < member.accepted_asked_us + surely_us(group, member)
        and not any(effect.may_end(member) for effect in group.possible(exchange, member.accepted_asked_us))
        and not may_be_moved(group, exchange, member)
    )

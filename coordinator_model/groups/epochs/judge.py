"""Judge an answer to a member with an epoch by the protocol's table: lawful if a row gives it at a moment that frames leave possible."""

from __future__ import annotations

from typing import Final

from coordinator_model.groups.epochs.data import EpochGroupData
from coordinator_model.groups.epochs.events import Unlawful
from coordinator_model.groups.epochs.kinds import UNCHANGED
from coordinator_model.groups.epochs.positions import ANY_SENDER, Possible, never_joined, of_commit, of_heartbeat
from coordinator_model.groups.epochs.records import JOIN_EPOCH, EpochMember
from coordinator_model.groups.protocol.epochs import Sender
from coordinator_model.groups.records import Exchange, HeartbeatFacts
from coordinator_model.wire.constants import FENCED_MEMBER_EPOCH, NONE, OFFSET_COMMIT

FENCED: Final = "fenced"
IMPOSSIBLE: Final = "impossible"
REFUSED: Final = "refused"
MALFORMED: Final = "malformed"
NEVER_JOINED: Final = "never joined"
GONE: Final = "gone"
HELD: Final = "held"
STALE: Final = "stale"
"""Kinds of unlawful answers."""


def unlawful(group: EpochGroupData, exchange: Exchange, member: EpochMember | None, *, overlapped: bool) -> tuple[Unlawful, ...]:
    """Return an event if no possible moment explains the answer. Call this before the answer changes what is known."""
    if exchange.error == NONE and member is not None and is_keep_alive(exchange, member):
        return ()
    possible = of_heartbeat(group, exchange, member, overlapped=overlapped)
    if possible.allow(exchange.error, exchange.api_key):
        return ()
    kind = _kind_of(group, exchange, member, possible)
    if kind == HELD:
        holder = group.members[group.instances[exchange.instance_id or ""]]
        return (Unlawful(exchange, kind, None, None, False, holder.epoch_frame, holder),)
    if member is None:
        return (Unlawful(exchange, kind, None, None, False, None),)
    proof = member.removed_frame if kind == GONE else member.epoch_frame
    return (Unlawful(exchange, kind, member.epoch, member.removed, member.reloaded, proof),)


def is_keep_alive(exchange: Exchange, member: EpochMember) -> bool:
    """Return True if a member that is known as one says nothing new at the epoch that it has.

    Rows U23, W13 and Z18 allow success then, whatever else is possible. Nearly all heartbeats are such.
    """
    return (
        exchange.facts == UNCHANGED
        and exchange.generation == member.epoch
        and member.present
        and exchange.instance_id in {None, member.instance_id}
    )


def _kind_of(group: EpochGroupData, exchange: Exchange, member: EpochMember | None, possible: Possible) -> str:
    facts = exchange.facts
    if exchange.error == FENCED_MEMBER_EPOCH and exchange.generation != JOIN_EPOCH:
        return FENCED
    if exchange.error != NONE:
        of_anybody = possible._replace(senders=ANY_SENDER)
        return REFUSED if of_anybody.allow(exchange.error, exchange.api_key) else IMPOSSIBLE
    if isinstance(facts, HeartbeatFacts) and facts.malformed:
        return MALFORMED
    if possible.senders == {Sender.RIVAL}:
        return HELD
    if never_joined(group, exchange, member):
        return NEVER_JOINED
    return GONE if member is not None and member.gone else STALE


def commit_kind(group: EpochGroupData, exchange: Exchange, member: EpochMember | None, *, overlapped: bool) -> str:
    """Return what is unlawful about the answer to a commit, empty if some possible moment explains it.

    :param overlapped: a heartbeat of the member was under way.
    """
    possible = of_commit(group, exchange, member, overlapped=overlapped)
    if possible.allow(exchange.error, OFFSET_COMMIT):
        return ""
    return _kind_of(group, exchange, member, possible)

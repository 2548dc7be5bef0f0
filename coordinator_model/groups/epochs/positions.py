"""What frames leave possible while a coordinator acts on a request of a member with an epoch: who the sender is to it, and at which epoch.

An answer is lawful if a row of the protocol's table gives it at a moment that frames leave possible.

What is not known widens the moments that are possible. A frame that is missing, or a request whose outcome is open, therefore keeps
rules quiet without a guard of their own.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from coordinator_model.groups.epochs.data import EpochGroupData
from coordinator_model.groups.epochs.events import Unlawful
from coordinator_model.groups.epochs.kinds import UNCHANGED
from coordinator_model.groups.epochs.records import AWAY_EPOCH, JOIN_EPOCH, LEAVE_EPOCH, EpochMember
from coordinator_model.groups.protocol.epochs import TABLE, Condition, Epoch, Sender
from coordinator_model.groups.protocol.table import ways
from coordinator_model.groups.records import Exchange, HeartbeatFacts, Removed
from coordinator_model.wire.constants import (
    FENCED_INSTANCE_ID,
    FENCED_MEMBER_EPOCH,
    GROUP_MAX_SIZE_REACHED,
    NONE,
    OFFSET_COMMIT,
    UNKNOWN_MEMBER_ID,
)

MEMBER_EPOCH_SINCE: Final = TABLE["V4"].versions[1] + 1
"""OffsetCommit: carries the epoch of a member (KIP-848)."""

ANY_SENDER: Final = frozenset(Sender)
_ANY_EPOCH: Final = frozenset({Epoch.SAME, Epoch.PREVIOUS, Epoch.LOWER, Epoch.HIGHER})
_BY_EPOCH: Final = {JOIN_EPOCH: Epoch.JOIN, LEAVE_EPOCH: Epoch.LEAVE, AWAY_EPOCH: Epoch.ASIDE}
_LONGEST_SESSION_US: Final = 60_000_000  #: group.consumer.max.session.timeout.ms, by default
_NOTHING_HOLDS: Final = (frozenset[Condition](),)
_OWNS: Final = (frozenset({Condition.OWNS}),)
_MALFORMED: Final = (frozenset({Condition.MALFORMED}),)
_OF_OUTSIDERS: Final = frozenset({GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID})
_GAVE_IT_BACK: Final = frozenset({Removed.LEFT, Removed.REMOVED})
_NO_SENDER: Final = frozenset[Sender]()
OF_ANOTHER: Final = frozenset({Sender.RETURNING, Sender.RIVAL})


class Possible(NamedTuple):
    """The moments that are possible: any combination of these."""

    senders: frozenset[Sender]
    epochs: frozenset[Epoch]
    conditions: tuple[frozenset[Condition], ...]  #: each that may hold
    version: int
    oldest: tuple[int, int]  #: release that the broker can be

    def allow(self, answer: int, api_key: int) -> bool:
        """Return True if some row gives the answer, at one of these moments."""
        return any(
            way.sender in self.senders and way.generation in self.epochs
            for holds in self.conditions
            for way in ways(TABLE, api_key, self.version, answer, self.oldest, holds=holds)
        )


def never_joined(group: EpochGroupData, exchange: Exchange, member: EpochMember | None) -> bool:
    """Return True if the id has certainly never joined the group.

    What looks like the first join may be a member that comes back, in a group that was there before. Its other members send something, or
    have expired, within a session timeout.
    """
    settled = group.born_us and exchange.inv_us > group.born_us + _LONGEST_SESSION_US
    if member is not None or not settled or not exchange.member_id or not exchange.gap_free:
        return False
    return not any(effect.may_admit(exchange.member_id) for effect in group.possible(exchange, group.born_us))


def of_heartbeat(group: EpochGroupData, exchange: Exchange, member: EpochMember | None, *, overlapped: bool) -> Possible:
    """Return the moments at which the coordinator can have acted on the request.

    :param overlapped: another heartbeat of the member may have been processed before or after this one.
    """
    facts = exchange.facts
    assert isinstance(facts, HeartbeatFacts)
    return Possible(
        _senders(group, exchange, member, overlapped=overlapped),
        _epochs(group, exchange, member, overlapped=overlapped),
        _conditions(facts, member, overlapped=overlapped),
        exchange.api_version,
        group.release_of(exchange.broker),
    )


def of_commit(group: EpochGroupData, exchange: Exchange, member: EpochMember | None, *, overlapped: bool) -> Possible:
    """Return the moments at which the coordinator can have acted on a commit.

    A TxnOffsetCommit is checked like an OffsetCommit of the versions that carry an epoch.

    :param overlapped: a heartbeat of the member was under way.
    """
    stays = any(surely_stays(group, exchange, other) and other.accepted_us < exchange.inv_us for other in group.present_members())
    return Possible(
        _senders(group, exchange, member, overlapped=overlapped),
        _epochs(group, exchange, member, overlapped=overlapped),
        _NOTHING_HOLDS if stays else (frozenset(), frozenset({Condition.EMPTY})),
        exchange.api_version if exchange.api_key == OFFSET_COMMIT else MEMBER_EPOCH_SINCE,
        group.release_of(exchange.broker),
    )


def _senders(group: EpochGroupData, exchange: Exchange, member: EpochMember | None, *, overlapped: bool) -> frozenset[Sender]:
    named = exchange.instance_id
    others = _NO_SENDER if named is None else OF_ANOTHER
    if (member is None or not member.present) and _held_by_another(group, exchange):
        return frozenset({Sender.RIVAL})
    if member is None and _is_free(group, exchange):
        return frozenset({Sender.MEMBER, Sender.OUTSIDER})
    if member is None:
        if exchange.member_id and not never_joined(group, exchange, member) and not _is_released(group, exchange):
            return ANY_SENDER
        return _instance_senders(group, exchange)
    if overlapped or not exchange.gap_free:
        return ANY_SENDER
    if is_gone(group, exchange, member):
        return frozenset({Sender.OUTSIDER}) | others
    if member.removed == Removed.AWAY and _stays_removed(group, exchange, member):
        comes_back = exchange.generation == JOIN_EPOCH and _is_released(group, exchange)
        return frozenset({Sender.AWAY, Sender.OUTSIDER}) | (_NO_SENDER if comes_back else OF_ANOTHER)
    if not member.present:
        return ANY_SENDER
    own = _own_senders(exchange, member)
    if (
        exchange.error in _OF_OUTSIDERS
        and exchange.instance_id in {None, member.instance_id}
        and surely_stays(group, exchange, member)
    ):
        return own
    if exchange.error == FENCED_INSTANCE_ID and _surely_holds(group, exchange, member):
        return own
    return own | {Sender.OUTSIDER} | others


def is_gone(group: EpochGroupData, exchange: Exchange, member: EpochMember) -> bool:
    """Return True if a response had shown that the member is none, and no join can have admitted it since."""
    return member.gone and _stays_removed(group, exchange, member)


def _stays_removed(group: EpochGroupData, exchange: Exchange, member: EpochMember) -> bool:
    admits = (effect.may_admit(member.id) for effect in group.possible(exchange, member.removed_us))
    return member.removed_us < exchange.inv_us and not any(admits)


def _own_senders(exchange: Exchange, member: EpochMember) -> frozenset[Sender]:
    """Return what a member is to the coordinator. Its instance id may be in its join alone, which may not have been seen.

    The coordinator goes by the request alone: a static member that joins again without its instance id is treated as any other.
    """
    if exchange.generation == JOIN_EPOCH and exchange.instance_id is None:
        return frozenset({Sender.MEMBER})
    if member.instance_id is not None:
        return frozenset({Sender.STATIC})
    return frozenset({Sender.MEMBER} if member.ever is not None else {Sender.MEMBER, Sender.STATIC})


def _instance_senders(group: EpochGroupData, exchange: Exchange) -> frozenset[Sender]:
    """Return what a client without a member id of its own can be."""
    if exchange.instance_id is None:
        return frozenset({Sender.OUTSIDER})
    if _is_released(group, exchange):
        return frozenset({Sender.RETURNING, Sender.OUTSIDER})
    return frozenset({Sender.OUTSIDER}) | OF_ANOTHER


def _is_released(group: EpochGroupData, exchange: Exchange) -> bool:
    """Return True if the member that held the instance id last has left it for any member that comes, and none can have come unseen."""
    holder = group.members.get(group.instances.get(exchange.instance_id or "", ""))
    return (
        holder is not None
        and (holder.removed == Removed.AWAY or holder.classic)
        and _shown_us(holder) < exchange.inv_us
        and exchange.gap_free
        and not _may_be_taken(group, exchange, _shown_us(holder))
    )


def _is_free(group: EpochGroupData, exchange: Exchange) -> bool:
    """Return True if nobody holds the instance id: all that ever did have left the group, and none can have taken it unseen."""
    if exchange.instance_id is None or not exchange.gap_free:
        return False
    holders = [known for known in group.members.values() if known.instance_id == exchange.instance_id]
    return bool(holders) and all(
        is_gone(group, exchange, known) and known.removed in _GAVE_IT_BACK and not _may_be_taken(group, exchange, known.removed_us)
        for known in holders
    )


def _shown_us(holder: EpochMember) -> int:
    """Return when a frame last showed who has the instance id of a member. That its session ended none shows."""
    return holder.epoch_us if holder.removed == Removed.SILENT else max(holder.removed_us, holder.epoch_us)


def _held_by_another(group: EpochGroupData, exchange: Exchange) -> bool:
    """Return True if a client joins with an instance id that a living member certainly holds."""
    holder = group.members.get(group.instances.get(exchange.instance_id or "", ""))
    if holder is None or holder.id == exchange.member_id or exchange.generation != JOIN_EPOCH or not exchange.gap_free:
        return False
    return surely_stays(group, exchange, holder) and _surely_holds(group, exchange, holder)


def _may_be_taken(group: EpochGroupData, exchange: Exchange, since_us: int) -> bool:
    """Return True if another join may have taken the instance id that a request names."""
    return any(effect.may_take(exchange.instance_id) for effect in group.possible(exchange, since_us))


def surely_stays(group: EpochGroupData, exchange: Exchange, member: EpochMember) -> bool:
    """Return True if nothing can have removed the member since it was last accepted."""
    watched_us = member.accepted_asked_us + surely_us(group, member)
    return (
        member.accepted_us > 0
        and member.present
        and not member.classic
        and exchange.res_us < watched_us
        and not member.pending
        and member.ever is not None  # else it may have been asked to give something up unseen
        and member.epoch is not None
        and not any(effect.may_end(member) for effect in group.possible(exchange, member.accepted_asked_us))
    )


def surely_us(group: EpochGroupData, member: EpochMember) -> int:
    session_ms = group.shortest_session_ms(member)
    return max(0, session_ms * 1_000 - group.settings.slack_us(session_ms))


def _surely_holds(group: EpochGroupData, exchange: Exchange, member: EpochMember) -> bool:
    """Return True if no other member can hold the instance id: it is free only once its holder has left for a while, or has expired."""
    stays_us = member.accepted_asked_us + surely_us(group, member)
    if member.pending:
        timeout_ms = member.revoking_timeout_ms or 0
        stays_us = min(stays_us, member.revoking_us + timeout_ms * 1_000 - group.settings.slack_us(timeout_ms))
    return (
        member.instance_id == exchange.instance_id
        and not member.classic
        and group.instances.get(exchange.instance_id or "") == member.id
        and not any(effect.may_end(member) for effect in group.possible(exchange, member.accepted_asked_us))
        and exchange.res_us < stays_us
        and member.epoch is not None
    )


def _epochs(group: EpochGroupData, exchange: Exchange, member: EpochMember | None, *, overlapped: bool) -> frozenset[Epoch]:
    asked = exchange.generation
    if asked <= JOIN_EPOCH:
        return frozenset({_BY_EPOCH.get(asked, Epoch.LOWER)})
    known = None if member is None or overlapped or not exchange.gap_free else member.epoch
    if member is not None and group.may_be_reloaded(member) and exchange.error == NONE:
        return _ANY_EPOCH  # what the coordinator before it wrote last may be lost
    if known is None or member is None or member.epoch_us >= exchange.inv_us:
        return _ANY_EPOCH
    if asked > known:
        return frozenset({Epoch.HIGHER})
    if asked == known:
        return frozenset({Epoch.SAME})
    # The previous epoch is that before the last write of the member's state, which no frame shows.
    if member.previous is None or asked == member.previous:
        return frozenset({Epoch.PREVIOUS, Epoch.LOWER})
    return frozenset({Epoch.LOWER})


def _conditions(facts: HeartbeatFacts, member: EpochMember | None, *, overlapped: bool) -> tuple[frozenset[Condition], ...]:
    names = {Condition.ASSIGNOR: facts.assignor, Condition.PATTERN: bool(facts.pattern)}
    named = frozenset(condition for condition, holds in names.items() if holds)
    return tuple(holds | named for holds in _owning(facts, member, overlapped=overlapped))


def _owning(facts: HeartbeatFacts, member: EpochMember | None, *, overlapped: bool) -> tuple[frozenset[Condition], ...]:
    if facts.malformed:
        return _MALFORMED
    if facts.owned is None:
        return _NOTHING_HOLDS
    if not facts.owned:
        return _OWNS
    granted = None if member is None or overlapped else member.granted
    if granted is None:
        return _NOTHING_HOLDS + _OWNS
    return _OWNS if facts.owned <= granted else _NOTHING_HOLDS


# ---------------------------------------------------------------------------------------------------- verdicts

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
    return (Unlawful(exchange, kind, member.epoch, member.removed, group.may_be_reloaded(member), proof),)


def is_keep_alive(exchange: Exchange, member: EpochMember) -> bool:
    """Return True if a member that is known as one sends nothing new at the epoch that it has.

    Rows U23, W13 and Z18 allow success then, independent of what else is possible. Nearly all heartbeats are such.
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

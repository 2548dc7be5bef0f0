"""Records and helpers of the offsets tracker: content of commits, and the partitions that a member may commit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from coordinator_model.finding import Evidence
from coordinator_model.groups.classic.assignment_checks import Partitions
from coordinator_model.groups.coordinator_changes import proven_heartbeats
from coordinator_model.groups.records import ClientInfo, Exchange, Member, Removed
from coordinator_model.wire.constants import OFFSET_COMMIT

if TYPE_CHECKING:
    from coordinator_model.groups.classic.data import GroupData

_LARGEST_PARTITION: Final = 65_535


Topics = dict[str, bytes]
"""Topic → its partitions as a bitmap, lowest first."""


class Holding(NamedTuple):
    """The partitions that a member was assigned."""

    generation: int  #: -1 before its first assignment
    now: Topics
    lost: Topics | None  #: assigned in the generation before, but no longer; None if that is not known


class SimpleCommit(NamedTuple):
    """Commits of one client without generation or identity."""

    actor: ClientInfo
    effective_us: int
    res_us: int
    last_us: int
    times: int
    frames: tuple[Evidence, ...]
    former_id: str = ""  #: the member whose connection it is; empty if none had it
    left_us: int = 0  #: when that ceased to be one
    ended: Removed | None = None  #: why; None if frames do not show it


def member_on(group: GroupData, connection: str) -> Member | None:
    """Return the member that was last proven to be one on this connection, None if none was."""
    proven = [one for one in group.members.values() if one.proven_us is not None and one.actor.connection == connection]
    return max(proven, key=lambda one: one.session_since_us, default=None)


def member_throughout(group: GroupData, commit: SimpleCommit) -> Member | None:
    """Return a member whose membership spans the commit: it joined before, and a later Heartbeat was accepted.

    Member ids are never reused, so it was a member throughout, and the group was not empty; unless it was asked to leave, and a load
    that no frame shows has brought it back.
    """
    skew_us = group.clock_skew_us
    for member, heartbeat_us in proven_heartbeats(group):
        if (
            member.joined is not None
            and member.joined_us < commit.effective_us - skew_us
            and heartbeat_us > commit.res_us + skew_us
            and not any(effect.may_end(member) for effect in group.effects.since(member.joined_us, group.open.values()))
        ):
            return member
    return None


def committer_identity(group: GroupData, member_id: str, instance_id: str | None) -> str:
    """Return a static member's instance id, which outlives a replacement, else the member id."""
    if instance_id is not None:
        return instance_id
    member = group.members.get(member_id)
    return member_id if member is None or member.instance_id is None else member.instance_id


def is_simple(exchange: Exchange) -> bool:
    """Return True if an OffsetCommit names no member. Version 0 cannot name one, and does not go to the coordinator."""
    return (
        exchange.api_key == OFFSET_COMMIT and exchange.api_version >= 1 and not exchange.member_id and exchange.instance_id is None
    )


def bitmaps_of(assigned: Partitions | None) -> Topics | None:
    """Return the partitions of an assignment as bitmaps; None if it could not be read, or names absurd partition numbers."""
    if assigned is None or any(not 0 <= each <= _LARGEST_PARTITION for partitions in assigned.values() for each in partitions):
        return None
    return {topic: _bitmap(sum(1 << each for each in set(partitions))) for topic, partitions in assigned.items()}


def _bitmap(bits: int) -> bytes:
    return bits.to_bytes((bits.bit_length() + 7) // 8, "little")


def has_partition(topics: Topics, topic: str, partition: int) -> bool:
    bits = topics.get(topic, b"")
    return 0 <= partition < 8 * len(bits) and bool(bits[partition >> 3] >> (partition & 7) & 1)


def minus(before: Topics, now: Topics) -> Topics:
    lost = {}
    for topic, bits in before.items():
        gone = int.from_bytes(bits, "little") & ~int.from_bytes(now.get(topic, b""), "little")
        if gone:
            lost[topic] = _bitmap(gone)
    return lost

"""What a group tells the rules about: things that happened on the wire and that may be a breach, with the facts of that moment.

A group turns frames into facts and, where a frame is worth a rule's look, into one of these. Steady traffic makes none, which is what
keeps the model fast. The trap: an event is not a breach. Refusals, replacements and even regressions are lawful most of the time.
"""

from __future__ import annotations

from typing import NamedTuple

from coordinator_model.groups.classic.admissions import Admission
from coordinator_model.groups.records import ClientInfo, Exchange, Generation, Member, StaticMember, SuspectedRefusal


class Accepted(NamedTuple):
    """A Heartbeat, SyncGroup, OffsetCommit or TxnOffsetCommit was accepted from somebody who is not known to be entitled to it.

    Also a Heartbeat answered REBALANCE_IN_PROGRESS by a broker since 2.3: it validates member and generation first.
    """

    exchange: Exchange


class Refused(NamedTuple):
    """A Heartbeat, SyncGroup or OffsetCommit was refused with ILLEGAL_GENERATION or UNKNOWN_MEMBER_ID."""

    exchange: Exchange
    member: Member


class Regressed(NamedTuple):
    """A JoinGroup succeeded at a lower generation than one that was already handed out."""

    exchange: Exchange
    generation: int
    before: Generation
    explanation: str | None


class Answered(NamedTuple):
    """A JoinGroup succeeded under a member id other than the one that asked."""

    exchange: Exchange
    member_id: str


class Mixed(NamedTuple):
    """A JoinGroup succeeded without naming a leader: the group has members of the consumer protocol too (KIP-848 migration)."""

    exchange: Exchange


class NotCovered(NamedTuple):
    """A group that was modelled is now of a type that is not."""

    admitted: Admission


class Replaced(NamedTuple):
    """A group.instance.id changed hands."""

    exchange: Exchange
    instance: StaticMember
    old_member_id: str


class Returned(NamedTuple):
    """Somebody who was told FENCED_INSTANCE_ID asks for the same group.instance.id again, with an empty member id."""

    exchange: Exchange
    instance: StaticMember


class WentOnFenced(NamedTuple):
    """A member id sent another request after it was told FENCED_INSTANCE_ID."""

    exchange: Exchange
    member: Member


class FellSilent(NamedTuple):
    """A member's session has run out by any reckoning: nothing was heard of it, and nothing of it waits for an answer."""

    member: Member
    at_us: int


class ToldToRejoin(NamedTuple):
    """A Heartbeat was answered REBALANCE_IN_PROGRESS, again, and no JoinGroup came in between."""

    exchange: Exchange
    member: Member


class ServedInJoinPhase(NamedTuple):
    """A Heartbeat succeeded at a generation that has ended: others were told to rejoin, and wait in the join phase."""

    exchange: Exchange
    member: Member
    waiting: tuple[Exchange, ...]  #: their JoinGroups


class Mismatched(NamedTuple):
    """An answer bears another correlation id than the request it is said to answer."""

    exchange: Exchange
    correlation_id: int


# ---------------------------------------------------------------------------------------------------- ids and generations


class Contradicted(NamedTuple):
    """An answer shows that an earlier refusal was wrong: nothing had changed that would have justified it."""

    exchange: Exchange
    doubt: SuspectedRefusal
    shown_by: str  #: member id whose success, or whose place in the member list, shows it


class TwoRosters(NamedTuple):
    """A second leader's answer at one generation names other members, another leader or another protocol."""

    exchange: Exchange
    newest_generation: Generation
    roster: tuple[str, ...]
    leader: str
    protocol: str | None


class Malformed(NamedTuple):
    """A JoinGroup answer is neither a success nor a refusal: its fields contradict its error code."""

    exchange: Exchange
    generation: int
    member_id: str


class OtherGeneration(NamedTuple):
    """A member uses a generation that is neither its latest nor the one before, on the connection that told it so."""

    exchange: Exchange
    member: Member


class Collided(NamedTuple):
    """A member that was handed a generation by the coordinator's last incarnation was accepted at the same number issued anew."""

    exchange: Exchange
    member: Member
    newest_generation: Generation


class Invented(NamedTuple):
    """A JoinGroup named a member id that this group never handed out, and was refused."""

    exchange: Exchange


class IdUnused(NamedTuple):
    """A client asks for a member id again and again and does not use those that it is given."""

    exchange: Exchange
    unused: tuple[str, ...]


class IdMishandled(NamedTuple):
    """MEMBER_ID_REQUIRED where it must not be answered, or a success where it must."""

    exchange: Exchange


class Alternated(NamedTuple):
    """A member's Heartbeats changed between two hosts that are both connected."""

    exchange: Exchange
    member: Member
    before: ClientInfo


class NewId(NamedTuple):
    """A client was given a new member id."""

    exchange: Exchange
    member_id: str
    abandoned: int  #: ids that the same client left behind within the hour


class LeaveRefused(NamedTuple):
    """A LeaveGroup, or an entry of one, was refused."""

    exchange: Exchange
    member_id: str
    instance_id: str | None
    error: int
    times: int


class Mispaired(NamedTuple):
    """A request succeeded whose group.instance.id is not the one its member is known by."""

    exchange: Exchange


class OverCapacity(NamedTuple):
    """A member was told GROUP_MAX_SIZE_REACHED, and so removed."""

    exchange: Exchange
    member: Member


class Needless(NamedTuple):
    """The return of a static member to a settled group, with unchanged protocols, made it rebalance."""

    exchange: Exchange
    generation: int  #: before


class Inconsistent(NamedTuple):
    """A member names another group.instance.id than before, or none."""

    exchange: Exchange
    member: Member


class LeftByItself(NamedTuple):
    """A static member's own client sent LeaveGroup for it."""

    exchange: Exchange
    member: Member

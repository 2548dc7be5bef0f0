"""Events of a group, which rules check: what happened on the wire and may be a breach, with the facts of that moment.

The fast path produces no events. An event is not yet a breach: refusals, replacements and even regressions
are lawful most of the time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from coordinator_model.finding import Evidence
from coordinator_model.groups.records import AnyMember, ClientInfo, Exchange, Generation, Member, StaticMember, SuspectedRefusal

if TYPE_CHECKING:
    from coordinator_model.groups.classic.positions import Verdict

SLOW_US: Final = 2_000_000  #: a third of the shortest session that brokers allow by default


class Refused(NamedTuple):
    """A Heartbeat, SyncGroup or OffsetCommit was refused with ILLEGAL_GENERATION or UNKNOWN_MEMBER_ID."""

    exchange: Exchange
    member: Member


class Regressed(NamedTuple):
    """A JoinGroup succeeded at a lower generation than one already issued, or at the same number issued again."""

    exchange: Exchange
    generation: int
    before: Generation
    explanation: str | None
    verdict: Verdict | None = None  #: if nothing explains it


class Answered(NamedTuple):
    """A JoinGroup or a heartbeat succeeded under another member id than the request's."""

    exchange: Exchange
    member_id: str


class Throttled(NamedTuple):
    """The broker throttles the client for longer than one heartbeat interval."""

    exchange: Exchange
    throttle_ms: int
    interval_us: int


class Slow(NamedTuple):
    """A slow response to a request that never has to wait for another client."""

    exchange: Exchange
    took_us: int
    times: int  #: within the last minute


class Replaced(NamedTuple):
    """A new member id replaced the holder of a group.instance.id."""

    exchange: Exchange
    instance: StaticMember
    old_member_id: str


class Returned(NamedTuple):
    """A client that got FENCED_INSTANCE_ID sends a JoinGroup for the same group.instance.id with an empty member id."""

    exchange: Exchange
    instance: StaticMember


class DeletedAlive(NamedTuple):
    """A DeleteGroups succeeded although the group had a member."""

    exchange: Exchange
    member: AnyMember
    accepted_us: int  #: when it was accepted last
    proof: Evidence | None  #: of its being a member


class FenceIgnored(NamedTuple):
    """A member sent another request after FENCED_INSTANCE_ID."""

    exchange: Exchange
    member: Member


class FellSilent(NamedTuple):
    """A member's session has certainly expired: no frame of it arrived, and no request of it waits for a response."""

    member: Member
    at_us: int
    dropped_us: int = 0  #: when a generation was complete without it before that was certain; 0 if none was
    is_logged: bool = False  #: by the broker's log


class RejoinAsked(NamedTuple):
    """A Heartbeat was answered REBALANCE_IN_PROGRESS while no JoinGroup or SyncGroup of its member was open."""

    exchange: Exchange
    member: Member


class Mismatched(NamedTuple):
    """A response has another correlation id than the request to which it is assigned."""

    exchange: Exchange
    correlation_id: int


# ---------------------------------------------------------------------------------------------------- ids and generations


class Contradicted(NamedTuple):
    """A response shows that an earlier refusal was wrong, because nothing had changed that justified it."""

    exchange: Exchange
    refusal: SuspectedRefusal
    shown_by: str  #: id of the member whose success, or entry in the member list, shows it


class TwoRosters(NamedTuple):
    """A second leader's response at one generation names other members, another leader or another protocol."""

    exchange: Exchange
    newest_generation: Generation
    roster: tuple[str, ...]
    leader: str
    protocol: str | None


class Malformed(NamedTuple):
    """A JoinGroup response is neither a success nor a refusal: its fields contradict its error code."""

    exchange: Exchange
    generation: int
    member_id: str


class OtherGeneration(NamedTuple):
    """A member uses a generation that is neither its latest nor the one before, on the connection of its JoinGroup success."""

    exchange: Exchange
    member: Member


class Collided(NamedTuple):
    """A member of a generation of the coordinator's last incarnation was accepted at the same number, which was issued again."""

    exchange: Exchange
    member: Member
    newest_generation: Generation


class Invented(NamedTuple):
    """A JoinGroup with a member id that this group never issued was refused."""

    exchange: Exchange


class IdUnused(NamedTuple):
    """A client repeatedly asks for a member id and does not use those that it gets."""

    exchange: Exchange
    unused: tuple[str, ...]


class IdMishandled(NamedTuple):
    """A response is MEMBER_ID_REQUIRED where it must not be, or a success where MEMBER_ID_REQUIRED is due."""

    exchange: Exchange


class HostAlternated(NamedTuple):
    """A member's Heartbeats changed between two hosts that are both connected."""

    exchange: Exchange
    member: Member
    before: ClientInfo


class NewId(NamedTuple):
    """A client got a new member id."""

    exchange: Exchange
    member_id: str
    abandoned: int  #: ids that the same client abandoned within the hour


class LeaveRefused(NamedTuple):
    """A LeaveGroup, or an entry of one, was refused."""

    exchange: Exchange
    member_id: str
    instance_id: str | None
    error: int
    times: int


class Failed(NamedTuple):
    """A response with error codes, of which ``errors`` holds all."""

    exchange: Exchange
    errors: frozenset[int]


class Mispaired(NamedTuple):
    """A request succeeded whose group.instance.id is not its member's."""

    exchange: Exchange


class OverCapacity(NamedTuple):
    """A member was removed with GROUP_MAX_SIZE_REACHED."""

    exchange: Exchange
    member: Member


class Needless(NamedTuple):
    """A settled group rebalanced because a static member returned with unchanged protocols."""

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

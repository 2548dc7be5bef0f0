"""Events of a group whose members have epochs, which rules check: what happened and may be a breach, with the facts of that moment."""

from __future__ import annotations

from typing import NamedTuple

from coordinator_model.finding import Evidence
from coordinator_model.groups.epochs.records import Bump, DoubleGrant, EpochMember, InstanceUse, StatusStreak
from coordinator_model.groups.records import Exchange, Partitions, Refusals, Removed


class Unlawful(NamedTuple):
    """No row of the protocol's table gives this answer at any moment that is possible."""

    exchange: Exchange
    kind: str  #: see ``judge``
    had: int | None  #: the epoch that the member had
    removed: Removed | None  #: why it was no member
    reloaded: bool  #: the coordinator moved since that epoch was delivered
    proof: Evidence | None  #: the answer that shows it
    holder: EpochMember | None = None  #: of the instance id, when a join under it was accepted


class EpochShrank(NamedTuple):
    """A success returned an epoch below one that the member had already."""

    exchange: Exchange
    member: EpochMember
    returned: int
    had: int


class EpochFenceIgnored(NamedTuple):
    """A heartbeat was refused again at the epoch that was fenced before."""

    exchange: Exchange
    member: EpochMember
    refusals: Refusals


class MalformedHeartbeat(NamedTuple):
    """A heartbeat lacks a field that it needs, or has one that it must not have."""

    exchange: Exchange


class InstanceHeld(NamedTuple):
    """A join was refused because another member holds the group.instance.id."""

    exchange: Exchange
    first_us: int
    times: int
    holder: EpochMember | None
    frames: tuple[Evidence, ...]


class InstanceTaken(NamedTuple):
    """A group.instance.id changed hands."""

    exchange: Exchange
    instance_id: str
    use: InstanceUse


class LostInstanceRefused(NamedTuple):
    """A member that had lost its group.instance.id to another asks for it again, and is refused."""

    exchange: Exchange
    instance_id: str
    use: InstanceUse


class CameBack(NamedTuple):
    """A member that had left joins again under the same id, which only the same process does."""

    exchange: Exchange
    member: EpochMember
    held_us: int  #: from its join to its leave
    silent_us: int  #: since its last accepted heartbeat, when it left
    left_us: int
    left_frame: Evidence | None


class AskedToRejoin(NamedTuple):
    """A heartbeat of a classic member was answered REBALANCE_IN_PROGRESS."""

    exchange: Exchange
    member: EpochMember
    since_us: int


class JoinedAgain(NamedTuple):
    """A member joined with epoch 0 although it had neither left nor been refused."""

    exchange: Exchange
    member: EpochMember


class ClaimedMore(NamedTuple):
    """A member lists partitions as its own that it was not assigned since it joined."""

    exchange: Exchange
    member: EpochMember
    partitions: Partitions


class PausedLong(NamedTuple):
    """A member's heartbeat came later than its coordinator's interval."""

    exchange: Exchange
    member: EpochMember
    pause_us: int


class WrongGroupType(NamedTuple):
    """A heartbeat was refused because the group is of another type, or cannot be migrated, or the protocol is off."""

    exchange: Exchange
    text: str
    times: int  #: how often in a row


class CommitRefused(NamedTuple):
    """A commit was refused for its member, its epoch or its generation."""

    exchange: Exchange
    member: EpochMember
    refusals: Refusals


class CommitMisjudged(NamedTuple):
    """A commit was accepted that must be refused, or refused at the epoch that must be accepted."""

    exchange: Exchange
    member: EpochMember | None
    kind: str  #: of the unlawful answer, see ``judge``
    too_early: Partitions = frozenset()  #: that were not the member's at that epoch, if the commit names any (by topic id or name)


class CommittedForeign(NamedTuple):
    """A commit was accepted for partitions that the member has given up, and that another member owns."""

    exchange: Exchange
    member: EpochMember
    owner: EpochMember
    partitions: Partitions
    times: int  #: commits in a row that did so


class CommittedInTurn(NamedTuple):
    """A member's commit was accepted for partitions that another had committed since its last one, at the same epoch."""

    exchange: Exchange
    rival: str
    partitions: tuple[str, ...]


class InstanceChanged(NamedTuple):
    """A member names another instance id than the one that it joined with."""

    exchange: Exchange
    member: EpochMember


class ImpossibleEpoch(NamedTuple):
    """A join or a leave was answered with an epoch that no coordinator gives there."""

    exchange: Exchange
    epoch: int


class NoAssignment(NamedTuple):
    """A join or a full request was answered without the assignment."""

    exchange: Exchange
    epoch: int


class AssignorFailed(NamedTuple):
    """A heartbeat was answered UNKNOWN_SERVER_ERROR."""

    exchange: Exchange
    text: str
    times: int


class UnsubscribedAssigned(NamedTuple):
    """An assignment has a topic that the member does not subscribe to, or more topics than it subscribes to."""

    exchange: Exchange
    member: EpochMember
    assigned: int
    foreign: tuple[str, ...]  #: names of topics that it does not subscribe to, as far as names are known


class StaticLeaveRefused(NamedTuple):
    """A static member left for a while without its instance id, and was refused."""

    exchange: Exchange
    member: EpochMember


class DoubleOwned(NamedTuple):
    """Partitions were granted to a member while another held them, and that other was accepted afterwards."""

    exchange: Exchange
    grant: DoubleGrant
    partitions: Partitions


class EpochRose(NamedTuple):
    """The group's epoch rose once more."""

    bump: Bump
    since_us: int  #: since when it has been rising without a pause
    times: int
    causes: tuple[tuple[str, int], ...]


class WentSilent(NamedTuple):
    """A member's session is certainly over."""

    member: EpochMember
    at_us: int
    stopped_us: int  #: when it last showed a sign of life
    taken: bool  #: others have been given what it held


class SubscriptionFlapped(NamedTuple):
    """A member changed its subscription once more, among few values."""

    exchange: Exchange
    member: EpochMember
    changes: tuple[tuple[int, str], ...]


class Migrated(NamedTuple):
    """The group was converted to another protocol."""

    at_us: int
    before: str
    after: str
    number_before: int | None  #: its generation or epoch before
    member_id: str | None
    times: int  #: conversions within the last hour
    frame: Evidence


class StatusReported(NamedTuple):
    """A response gave a member of a Streams group the status why it gets no tasks, or that the application stops."""

    exchange: Exchange
    member: EpochMember
    code: int
    detail: str
    streak: StatusStreak


class StreamsJoinRefused(NamedTuple):
    """A well-formed join of a Streams member was refused for its topology, or for a field that the broker does not take yet."""

    exchange: Exchange
    text: str


class StopIgnored(NamedTuple):
    """A Streams member goes on although a response asked it to stop."""

    exchange: Exchange
    member: EpochMember
    lasts_us: int  #: since the first such response


class ShutdownAsked(NamedTuple):
    """A member of a Streams group asks the whole application to stop."""

    exchange: Exchange
    member: EpochMember
    shutdowns: tuple[tuple[int, str], ...]  #: (time, member id) of the requests within an hour, this one included
    frame: Evidence

"""What is known of a group, its members, its generations and its open requests: plain records.

The trap is time. ``inv`` is when a request was captured, ``res`` when its answer was; the coordinator acted somewhere between. A
fact therefore carries both ends where a rule compares it, and a comparison is sound only as "the earlier one's end before the later
one's beginning".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from coordinator_model.finding import Evidence

ExchangeKey = tuple[str, int]
"""(connection, exchange number): the identity of one request and its answer."""

MAX_INT32: Final = 2**31 - 1


class ClientInfo(NamedTuple):
    """The process behind a connection, as far as frames name it."""

    client_id: str | None
    address: str
    software: str
    connection: str


NOBODY: Final = ClientInfo(None, "", "", "")

REPLACEMENTS_KEPT: Final = 12  #: of an instance; likewise of those who were fenced for one


class JoinFacts(NamedTuple):
    """What a JoinGroup request asked for."""

    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: tuple[str, ...]
    digest: bytes  #: of the ordered (name, metadata) pairs: equal digests are what the coordinator calls unchanged
    reason: str
    owns: bool = True  #: it holds partitions while it waits (KIP-429), or it is not known that it does not


class SyncFacts(NamedTuple):
    """What a SyncGroup request brought."""

    assigned: int  #: entries in its assignments; 0 from a follower
    idle: tuple[str, ...] = ()  #: member ids whose entry holds no partition
    protocol_type: str | None = None  #: v5+, as is the name (KIP-559)
    protocol_name: str | None = None


class LeaveFacts(NamedTuple):
    """Who a LeaveGroup request names, in order."""

    members: tuple[tuple[str, str | None], ...]  #: (member id, group instance id)
    reasons: tuple[str, ...]


class CommitFacts(NamedTuple):
    """Which positions an OffsetCommit or TxnOffsetCommit names; of very many only the first."""

    topics: tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...]  #: (topic name, or id from v10 on; partitions; their offsets)
    left_out: int
    overlaps: bool = False  #: another commit of this member was under way on another connection: their order is not known


RequestFacts = JoinFacts | SyncFacts | LeaveFacts | CommitFacts | None


@dataclass(slots=True)
class Exchange:
    """A request, and the time of its answer once there is one."""

    key: ExchangeKey
    api_key: int
    api_version: int
    member_id: str
    generation: int
    instance_id: str | None
    facts: RequestFacts
    actor: ClientInfo
    broker: str
    partition: int
    offset: int
    inv_us: int
    queued_behind: int
    gap_free: bool = True  #: no loss of records since it was seen, so "no answer captured" means "no answer"
    connection_closed_us: int | None = None
    superseded: bool = False  #: a later JoinGroup of the same member: this one is lawfully never answered
    starts_phase: bool = False
    # Filled in with the answer:
    response_offset: int = -1
    effective_us: int = 0  #: earliest instant at which the coordinator can have acted on it
    res_us: int = 0
    error: int = 0
    correlation_id: int = 0  #: the request's
    silence_us: int = 0  #: how long nothing was heard of its member, if the member's session had certainly run out


@dataclass(slots=True)
class Refusals:
    """Consecutive refusals of one member with one error at one generation, since its last JoinGroup."""

    error: int
    generation: int
    count: int
    first_us: int
    last_us: int
    evidence: list[Evidence] = field(default_factory=list)  #: the first two and the latest

    def add(self, at_us: int, frame: Evidence) -> None:
        self.count += 1
        self.last_us = at_us
        self.evidence = [*self.evidence[:2], frame]


class AbandonedRequest(NamedTuple):
    """A JoinGroup or SyncGroup that was parked when its connection ended, or a SyncGroup that was told to rejoin.

    The coordinator cannot see that the client hung up: the member stays parked, its session does not run until the phase ends.
    """

    api_key: int
    at_us: int
    instance_id: str | None
    session_timeout_ms: int | None
    rebalance_timeout_ms: int | None
    actor: ClientInfo
    frame: Evidence


class Disconnections(NamedTuple):
    """Groups that lost all their connections to one broker within :data:`TOGETHER_US`: no single client's end explains that."""

    since_us: int
    groups: int
    newest: str  #: the group that lost its connections last


TOGETHER_US: Final = 2_000_000


@dataclass(slots=True)
class Coverage:
    """How long the capture has seen everything, as far as its ticks tell. One for all groups of a partition."""

    since_us: int = 0  #: end of the newest span without a single record; 0 if there was none


@dataclass(slots=True)
class Member:
    """One member id, from when it is first named until it is forgotten."""

    id: str
    actor: ClientInfo = NOBODY
    instance_id: str | None = None
    session_timeout_ms: int | None = None
    rebalance_timeout_ms: int | None = None
    digest: bytes = b""
    protocols: tuple[str, ...] = ()
    reason: str = ""
    joined: int | None = None  #: generation of the last JoinGroup success delivered to it
    joined_us: int = 0
    joined_frame: Evidence | None = None
    synced: int | None = None  #: generation of its last SyncGroup request
    synced_us: int = 0
    in_sync: int | None = None  #: generation of its last SyncGroup success
    proven_us: int | None = None  #: answer time of the last frame that proved it a member
    last_frame_us: int = 0
    last_frame: str = ""
    parked_join: ExchangeKey | None = None
    parked_sync: ExchangeKey | None = None
    heartbeat_us: int = 0  #: capture time of its last Heartbeat request
    heartbeat_interval_us: int = 0
    refusals: Refusals | None = None
    rejoin_asked_us: int | None = None  #: first REBALANCE_IN_PROGRESS to a heartbeat since its last JoinGroup
    rejoin_asked_last_us: int = 0
    rejoin_frames: list[Evidence] = field(default_factory=list)
    fenced_us: int | None = None  #: answer time of a FENCED_INSTANCE_ID to it
    frames_after_fence: int = 0
    fence_frames: list[Evidence] = field(default_factory=list)
    leaving: bool = False  #: it asked to leave, and was neither refused nor served since
    removed: str | None = None  #: why it is no member any more: left, replaced, dropped, silent, refused
    removed_us: int = 0
    joined_before: int | None = None  #: generation of the JoinGroup success before the last, in this incarnation
    alternations: int = 0  #: times in a row that its Heartbeats changed between two hosts that were both connected
    disconnected_us: int = 0  #: when the connection that it joined or synced on last ended
    abandoned_request: AbandonedRequest | None = None  #: since its last request other than a heartbeat
    topics: bytes = b""  #: digest of the topics that its last JoinGroup subscribed to, whatever else the metadata says
    least_interval_us: int = 0  #: shortest pause between two heartbeats since it joined, to an eighth
    leave_asked_us: int = 0  #: capture time of its own last LeaveGroup request
    idle_since_us: int = 0  #: when it asked to join and owned nothing, until it is given an assignment; 0 while that is not known

    @property
    def present(self) -> bool:
        """Whether frames proved it a member and nothing since says otherwise."""
        return self.removed is None and self.proven_us is not None


@dataclass(slots=True)
class Generation:
    """One generation: a completed join phase and what followed."""

    generation: int
    proven_us: int  #: earliest captured success that carried it; from then on the group is at this generation or beyond
    proof: Evidence
    leader: str
    protocol: str | None
    roster: dict[str, str | None] | None = None  #: member id → instance id, from the leader's answer; None until it is seen
    leader_synced_us: int | None = None
    sync_done_us: int | None = None  #: first SyncGroup success: from then on the generation is written, and survives a failover
    idle: tuple[str, ...] = ()  #: member ids whom its leader gave no partition
    unsettled_us: int = 0  #: when a frame, or a session's end, first showed that another join phase may have begun; 0 if none did
    told: tuple[str, ...] = ()  #: member ids whose Heartbeat at this generation was answered REBALANCE_IN_PROGRESS: it has ended


@dataclass(slots=True)
class StaticMember:
    """Who holds a group.instance.id, and how often it changed hands."""

    id: str
    member_id: str
    replacements: list[tuple[int, str, str]] = field(default_factory=list)  #: (answer time, client address, new member id)
    fenced: list[tuple[int, str, str | None, str]] = field(default_factory=list)
    #: (time, connection, client id, address) of those told FENCED_INSTANCE_ID while another held it
    returns: int = 0  #: times that a fenced one came back with an empty member id and took the instance again
    frames: list[Evidence] = field(default_factory=list)
    held_us: int = 0  #: when this incarnation proved the holder; 0 while it is a hint from an earlier one
    settled_us: int = 0  #: the holder's first SyncGroup success that shows that the log knows who holds it
    tried_us: int = 0  #: last time that somebody's attempt to take it over was refused


@dataclass(slots=True)
class IssuedId:
    """A member id handed out with MEMBER_ID_REQUIRED (KIP-394) and not used yet."""

    issued_us: int
    session_timeout_ms: int
    actor: ClientInfo


class SuspectedRefusal(NamedTuple):
    """A refusal that a later answer may show to have been wrong."""

    error: int
    member_id: str
    instance_id: str | None
    generation: int  #: the group's when it was refused
    by_others: bool  #: whether anybody's success at that generation would show it, not only the member's own
    joined_us: int  #: when the member joined
    res_us: int
    actor: ClientInfo
    frames: tuple[Evidence, ...]  #: what proved it right before, and the refusal


class Skip(NamedTuple):
    """A generation that was handed out and is not the next one, though the group cannot have been empty in between."""

    before: int
    generation: int
    at_us: int
    actor: ClientInfo
    frames: tuple[Evidence, ...]


class Ahead(NamedTuple):
    """A refused request at a generation that was never handed out, as far as is known."""

    generation: int
    highest: int  #: the highest handed out by then
    at_us: int
    actor: ClientInfo
    frames: tuple[Evidence, ...]
    last_us: int = 0  #: when such a request was last refused again

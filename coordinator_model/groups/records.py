"""Plain records of a group: its members, generations, static members and open requests.

``inv`` is the capture time of a request, ``res`` that of its response; the coordinator acts in between. A fact that a rule compares
therefore has both ends, and a comparison is sound only if the earlier fact ends before the later one begins.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from operator import itemgetter
from typing import ClassVar, Final, NamedTuple

from msgspec import Struct

from coordinator_model.finding import Evidence
from coordinator_model.stored import Stored
from coordinator_model.wire import API_NAMES

ExchangeKey = tuple[str, int]
"""(connection, exchange number): the identity of one request and its response."""

LateFrame = tuple[str, int, int]
"""(member id or instance id, capture time, newest capture time in the group by then)."""

MAX_INT32: Final = 2**31 - 1


class ClientInfo(NamedTuple):
    """The client of a connection, as far as frames name it."""

    client_id: str | None
    address: str
    software: str
    connection: str
    principal: str = ""

    @property
    def named(self) -> tuple[str | None, str]:
        """Client id and host, by which a process is known again after a restart; another one may have the same."""
        return self.client_id, host_of(self.address)


def host_of(address: str) -> str:
    """Return the host of ``host:port``, or the whole address if it has no port."""
    return address.rpartition(":")[0] or address


NO_CLIENT: Final = ClientInfo(None, "", "", "")


@dataclass(slots=True)
class ConnectionState:
    """State of one connection for this group: what is needed to know when a queued request can have been processed."""

    outstanding: int = 0
    last_response_us: int = 0
    actor: ClientInfo = NO_CLIENT  #: the client of its last request


class Removed(StrEnum):
    """Why a member is one no longer."""

    LEFT = "left"
    SILENT = "silent"  #: its session ended
    REFUSED = "refused"  #: its coordinator does not know it
    DROPPED = "dropped"  #: a generation of a classic group began without it
    REPLACED = "replaced"  #: another one took its instance id
    FENCED = "fenced"  #: of a group with epochs: refused as unknown, or at its epoch
    REMOVED = "removed"  #: by a LeaveGroup of somebody else
    NOT_BACK = "did not come back"  #: it was away, and its session ended
    AWAY = "away"  #: a static member is away for a while, and its place is kept (KIP-848, epoch -2)


class AnyMember:
    """A member of a group of any type."""

    __slots__ = ()

    id: str
    actor: ClientInfo
    instance_id: str | None
    session_timeout_ms: int | None
    rebalance_timeout_ms: int | None
    proven_us: int | None  #: response time of the last exchange that proved it a member
    last_frame_us: int
    last_api: int  #: of its last frame; -1 before
    reason: str  #: of its last JoinGroup (KIP-800)
    removed: Removed | None
    removed_us: int
    versions: dict[int, int]

    TIMES: ClassVar[tuple[str, ...]]  #: fields that every heartbeat changes, which a snapshot stores apart
    NUMBERS: ClassVar[tuple[str, ...]]

    @property
    def last_frame(self) -> str:
        """Name of the API of its last frame, empty before."""
        return API_NAMES.get(self.last_api, "")

    @property
    def present(self) -> bool:
        """True if frames proved it a member and none since shows otherwise."""
        return self.removed is None and self.proven_us is not None

    @property
    def keeps_place(self) -> bool:
        """True if nothing shows that the coordinator gave its place up; a static member that is away keeps it."""
        return self.removed is None or self.removed == Removed.AWAY


REPLACEMENTS_KEPT: Final = 12  #: of a group.instance.id; the same limit applies to its fenced members


class _Facts(Struct, array_like=True, forbid_unknown_fields=True, frozen=True, tag=True):
    """Content of a request."""


class JoinFacts(_Facts, frozen=True):
    """Content of a JoinGroup request."""

    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: tuple[str, ...]
    digest: bytes  #: of the ordered (name, metadata) pairs; the coordinator treats equal ones as unchanged
    reason: str
    owns: bool = True  #: False only if it is known that the member holds no partitions while it waits (KIP-429)
    topics: bytes = b""  #: digest of those that it subscribes to; empty if its metadata is not a consumer's


class SyncFacts(_Facts, frozen=True):
    """Content of a SyncGroup request."""

    assigned: int  #: entries in its assignments; 0 from a follower
    idle: tuple[str, ...] = ()  #: member ids whose entry holds no partition
    protocol_type: str | None = None  #: v5+, as the name (KIP-559)
    protocol_name: str | None = None
    assignment_bytes: int = 0  #: of all its assignments


class LeaveFacts(_Facts, frozen=True):
    """The members that a LeaveGroup request names, in order."""

    members: tuple[tuple[str, str | None], ...]  #: (member id, group instance id)
    reasons: tuple[str, ...]


class CommitFacts(_Facts, frozen=True):
    """The offsets that an OffsetCommit or TxnOffsetCommit names, up to a limit."""

    topics: tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...]  #: (topic name, or id from v10 on; partitions; their offsets)
    left_out: int
    overlaps: bool = False  #: another commit of this member was open on another connection, so their order is unknown


class FetchFacts(_Facts, frozen=True):
    """The partitions whose offsets an OffsetFetch asks for, up to a limit."""

    partitions: tuple[tuple[str, int], ...]  #: (topic name, or id from v10 on; partition)


Partitions = frozenset[tuple[str, int]]
"""(topic id, partition); of a Streams group (subtopology, partition)."""

ByTopic = dict[str, list[int]]
"""The same as a snapshot stores them: smaller, and always in the same order."""


def by_topic(partitions: Iterable[tuple[str, int]]) -> ByTopic:
    """Return topic → partitions, both in order."""
    return {topic: [number for _, number in of_topic] for topic, of_topic in groupby(sorted(partitions), itemgetter(0))}


def from_topics(stored: ByTopic) -> Partitions:
    """Return what :func:`by_topic` was given."""
    return frozenset((topic, number) for topic, numbers in stored.items() for number in numbers)


class HeartbeatFacts(_Facts, frozen=True):
    """Content of the heartbeat of a member with epochs (KIP-848), beside its ids and epoch. None is "unchanged"."""

    rebalance_timeout_ms: int = -1
    topics: tuple[str, ...] | None = None
    pattern: str | None = None
    owned_by_topic: ByTopic | None = None
    malformed: str = ""  #: what the coordinator must refuse it for
    shutdown: bool = False  #: a Streams member asks that the whole application stop
    assignor: bool = False  #: it names a server assignor

    @property
    def is_full(self) -> bool:
        """True if it holds everything, so that the answer has the whole assignment."""
        subscribed = self.topics is not None or self.pattern is not None
        return self.rebalance_timeout_ms != -1 and subscribed and self.owned_by_topic is not None

    @property
    def owned(self) -> Partitions | None:
        return None if self.owned_by_topic is None else from_topics(self.owned_by_topic)


class EpochCommitFacts(_Facts, frozen=True):
    """What was known of a member with epochs when it sent an OffsetCommit."""

    epoch: int | None
    settled: bool  #: no heartbeat of it was open
    positions: CommitFacts = CommitFacts((), 0)


RequestFacts = JoinFacts | SyncFacts | LeaveFacts | CommitFacts | FetchFacts | HeartbeatFacts | EpochCommitFacts | None


class Exchange(Stored):
    """A request, and its response once captured."""

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
    correlation_id: int
    effective_us: int  #: earliest time at which the coordinator can have acted on the request
    gap_free: bool = True  #: no records were lost since the request, so "no response captured" means "no response"
    connection_closed_us: int | None = None  #: when the client hung up while it waited for the response
    superseded: bool = False  #: by a later JoinGroup of the same member: no response to this one is due
    starts_phase: bool = False
    # Set with the response:
    response_offset: int = -1
    res_us: int = 0
    error: int = 0
    silence_us: int = 0  #: time without a frame of its member, if the member's session had certainly expired
    error_codes: frozenset[int] = frozenset()  #: all that the response holds for the group
    completes_generation: bool = False  #: it is the first JoinGroup success of a generation


class Refusals(Stored):
    """Consecutive refusals of one member with one error at one generation, since its last JoinGroup."""

    error: int
    generation: int
    count: int
    first_us: int
    last_us: int
    evidence: list[Evidence] = []  #: the first two and the latest

    def add(self, at_us: int, frame: Evidence) -> None:
        self.count += 1
        self.last_us = at_us
        self.evidence = [*self.evidence[:2], frame]


class AbandonedRequest(NamedTuple):
    """A JoinGroup or SyncGroup that was parked when its connection ended, or a SyncGroup answered REBALANCE_IN_PROGRESS, or not seen yet.

    The coordinator does not notice that the connection ended: the member stays parked, and its session does not run until the phase ends.
    """

    api_key: int
    at_us: int
    instance_id: str | None
    session_timeout_ms: int | None
    rebalance_timeout_ms: int | None
    actor: ClientInfo
    frame: Evidence


class Disconnections(NamedTuple):
    """Groups that lost one broker within :data:`TOGETHER_US`, or before it answered anybody, which no single client explains."""

    since_us: int
    groups: int
    newest: str  #: the group that lost it last
    members: int = 0  #: of all of them
    last_us: int = 0  #: when ``newest`` lost it
    answered_us: int = 0  #: first answer of the broker since then, to any group; 0 if none was captured


TOGETHER_US: Final = 2_000_000


@dataclass(slots=True)
class Coverage:
    """Since when the capture has been continuous, according to its ticks. Shared by all groups of a partition."""

    since_us: int = 0  #: end of the newest span without any record; 0 if there was none


class Member(AnyMember, Stored):
    """One member id, from its first mention until it is dropped."""

    id: str
    actor: ClientInfo = NO_CLIENT
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
    synced_us: int = 0  #: capture time of the answer to its last SyncGroup that succeeded
    in_sync: int | None = None  #: generation of its last SyncGroup success
    parked_join: ExchangeKey | None = None
    parked_sync: ExchangeKey | None = None
    refusals: Refusals | None = None
    rejoin_asked_us: int | None = None  #: first REBALANCE_IN_PROGRESS to a heartbeat since its last JoinGroup
    rejoin_asked_last_us: int = 0
    rejoin_frames: list[Evidence] = []
    fenced_us: int | None = None  #: response time of a FENCED_INSTANCE_ID to it
    frames_after_fence: int = 0
    fence_frames: list[Evidence] = []
    leaving: bool = False  #: it sent a LeaveGroup, and was neither refused nor served since
    removed: Removed | None = None
    removed_us: int = 0
    joined_before: int | None = None  #: generation of its JoinGroup success before the last, in this incarnation
    alternations: int = 0  #: consecutive changes of its Heartbeats between two hosts that were both connected
    disconnected_us: int = 0  #: when the connection of ``actor`` ended
    abandoned_request: AbandonedRequest | None = None  #: since its last request other than a heartbeat
    topics: bytes = b""  #: digest of the topics of its last JoinGroup, without the other metadata
    least_interval_us: int = 0  #: shortest pause between two heartbeats since it joined, to an eighth
    leave_asked_us: int = 0  #: capture time of its own last LeaveGroup request
    idle_since_us: int = 0  #: when it sent a JoinGroup and owned nothing, until it gets an assignment; 0 if that is not known
    versions: dict[int, int] = {}  #: API key → version of its last request; without heartbeats

    TIMES = ("last_frame_us", "heartbeat_us", "proven_us")
    last_frame_us: int = 0
    heartbeat_us: int = 0  #: capture time of its last Heartbeat request
    proven_us: int | None = None  #: response time of the last exchange that proved it a member

    NUMBERS = ("heartbeat_interval_us", "last_api")
    heartbeat_interval_us: int = 0
    last_api: int = -1

    @property
    def session_since_us(self) -> int:
        """When a frame last restarted its session."""
        return max(self.last_frame_us, self.proven_us or 0)


class Generation(Stored):
    """One generation: a completed join phase and what followed."""

    generation: int
    proven_us: int  #: earliest captured success at it; from then on the group is at this generation or a later one
    proof: Evidence
    leader: str  #: its member id; empty if a description showed the generation, which names no leader
    protocol: str | None
    roster: dict[str, str | None] | None = (
        None  #: member id → instance id, from the leader's response, or a description; None until then
    )
    leader_synced_us: int | None = None
    sync_done_us: int | None = None  #: first SyncGroup success: from then on the generation is in the log, and survives a failover
    idle: tuple[str, ...] = ()  #: ids of members to which its leader assigned no partition
    unsettled_us: int = 0  #: when a frame or an expired session first showed that another join phase may have begun; 0 if none did
    rejoin_asked: tuple[str, ...] = ()  #: ids of members whose Heartbeat at it was answered REBALANCE_IN_PROGRESS: it has ended
    subscription_bytes: int = 0  #: of all members, as the leader got them; 0 if that was not captured
    assignment_bytes: int = 0  #: of all members, as the leader sent them
    failed_us: int = 0  #: first SyncGroup answered UNKNOWN_SERVER_ERROR: the coordinator could not store the generation
    grown: tuple[
        str, ...
    ] = ()  #: topics of which its leader assigned partitions that no plan had before, if the plan before was captured
    deleted: tuple[str, ...] = ()  #: topics of which its leader assigned none any more, and that do not exist


class StaticMember(Stored):
    """A group.instance.id, its holder and its replacements."""

    id: str
    member_id: str
    replacements: list[tuple[int, str, str]] = []  #: (response time, client address, new member id)
    fenced: list[tuple[int, str, str | None, str]] = []
    #: (time, connection, client id, address) of FENCED_INSTANCE_ID responses while another member held it
    returns: int = 0  #: how often a fenced client came back with an empty member id and took the instance again
    frames: list[Evidence] = []
    held_us: int = 0  #: when this incarnation proved the holder; 0 while that is a hint from an earlier one
    settled_us: int = 0  #: the holder's first SyncGroup success that shows that the log contains the holder
    tried_us: int = 0  #: when an attempt to take it over was last refused


class IssuedId(Stored):
    """A member id issued with MEMBER_ID_REQUIRED (KIP-394) and not used yet."""

    issued_us: int
    session_timeout_ms: int
    actor: ClientInfo


class SuspectedRefusal(NamedTuple):
    """A refusal that a later response may show to have been wrong."""

    error: int
    member_id: str
    instance_id: str | None
    generation: int  #: the group's at the refusal
    by_others: bool  #: True if any member's success at that generation would show it, not only the member's own
    joined_us: int  #: when the member joined
    res_us: int
    actor: ClientInfo
    frames: tuple[Evidence, ...]  #: the proof that the request was right, and the refusal
    text: str = ""  #: why no row of the protocol gives that refusal


class Skip(NamedTuple):
    """A generation that does not follow the one before, though the group cannot have been empty in between."""

    before: int
    generation: int
    at_us: int
    actor: ClientInfo
    frames: tuple[Evidence, ...]


class Ahead(NamedTuple):
    """A refused request at a generation that is not known to have been issued."""

    generation: int
    highest: int  #: the highest issued by then
    at_us: int
    actor: ClientInfo
    frames: tuple[Evidence, ...]
    last_us: int = 0  #: when such a request was last refused again

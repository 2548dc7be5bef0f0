"""Plain records of a group whose members have epochs: its members, its open requests, and what it waits for.

An epoch is delivered with a response, and is the member's own from the moment that the coordinator acted, which lies between request
and response. Sets of partitions are those that the member holds for the coordinator: it holds what it was assigned, and what it was
asked to give up, until it is proven or possible that it gave that up.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from coordinator_model.finding import Evidence
from coordinator_model.groups.records import (
    NO_CLIENT,
    AnyMember,
    ByTopic,
    ClientInfo,
    Exchange,
    Partitions,
    Refusals,
    Removed,
    from_topics,
)
from coordinator_model.stored import Stored
from coordinator_model.wire.constants import JOIN_GROUP

NO_PARTITIONS: Final[Partitions] = frozenset()

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
AWAY_EPOCH: Final = -2  #: a static member leaves for a while


def is_join(exchange: Exchange) -> bool:
    """Return True if the request is a join of either protocol."""
    return exchange.generation == JOIN_EPOCH or exchange.api_key == JOIN_GROUP


def topics_of(entries: Iterable[Any] | None, name: str = "topic_id") -> ByTopic | None:
    """Return the partitions that a message lists by topic or subtopology, None if it lists none at all."""
    if entries is None:
        return None
    found: ByTopic = {}
    for entry in entries:
        found.setdefault(getattr(entry, name), []).extend(entry.partitions)
    return found


def partitions_of(entries: Iterable[Any] | None, name: str = "topic_id") -> Partitions | None:
    """Return the partitions that a message lists by topic or subtopology, None if it lists none at all."""
    listed = topics_of(entries, name)
    return None if listed is None else from_topics(listed)


class EpochMember(AnyMember, Stored):
    """One member id, from its first mention until it is dropped."""

    id: str
    actor: ClientInfo = NO_CLIENT
    instance_id: str | None = None
    classic: bool = False  #: it uses the classic protocol, in a group that is being migrated
    epoch: int | None = None  #: last delivered; None if that is not known
    previous: int | None = None  #: the different one delivered before
    epoch_frame: Evidence | None = None
    joined_epoch: int | None = None  #: that its join returned, if no member had that id before
    granted_us: int = 0  #: response time of the newest addition to it
    granted_frame: Evidence | None = None
    revoking_us: int = 0
    revoking_frame: Evidence | None = None
    revoking_timeout_ms: int | None = None  #: its rebalance timeout at that time
    topics: tuple[str, ...] | None = None  #: subscribed by name; None if that is not known
    pattern: str | None = None  #: None if that is not known, empty if there is none
    rebalance_timeout_ms: int | None = None
    session_timeout_ms: int | None = None  #: of a classic member; the coordinator's own setting counts for the others
    removed: Removed | None = None
    removed_us: int = 0
    removed_frame: Evidence | None = None
    gone: bool = False  #: a response showed it that it is no member, and no join has succeeded since
    refusals: Refusals | None = None  #: consecutive, of heartbeats, with one error at one epoch
    commit_refusals: Refusals | None = None
    joins: tuple[int, ...] = ()  #: response times of its last joins, unless it left between them
    rejoin_asked_us: int | None = None  #: of a classic member: first REBALANCE_IN_PROGRESS since its last JoinGroup
    rejoin_frames: list[Evidence] = []
    synced_us: int = 0  #: of a classic member: response time of its last SyncGroup success
    empty_since_us: int = 0  #: since when it waits at the newest epoch without any partition; 0 if it does not
    changes: tuple[tuple[int, str], ...] = ()  #: (time, topics) of its last changes of subscription
    disconnected_us: int = 0
    reason: str = ""  #: heartbeats give none
    statuses: tuple[tuple[int, str], ...] = ()  #: of a Streams member: (status, detail)
    leaving: bool = False  #: it asked to leave, or was named by a LeaveGroup, and has not gone on since
    throttled_until_us: int = 0  #: until when its broker throttles it
    foreign_commits: int = 0  #: in a row, of partitions that it had given up and another owned
    shutdown_asked_us: int = 0  #: of a Streams member: when a response first asked it to stop
    versions: dict[int, int] = {}  #: API key → version of its last request; without Heartbeats

    # A snapshot stores these by topic.
    granted: Partitions | None = None  #: what it is assigned; None if that is not known
    pending: Partitions = NO_PARTITIONS  #: what it was asked to give up, and may still own
    ever: dict[tuple[str, int], int] | None = None  #: see :meth:`was_assigned`; None if that is not known

    TIMES = ("epoch_us", "accepted_us", "accepted_asked_us", "proven_us", "last_frame_us", "heartbeat_us", "paused_us")
    epoch_us: int = 0  #: response time of the delivery of ``epoch``
    accepted_us: int = 0  #: response time of its last success
    accepted_asked_us: int = 0  #: request time of the same
    proven_us: int | None = None
    last_frame_us: int = 0
    heartbeat_us: int = 0  #: capture time of its last heartbeat request
    paused_us: int = 0  #: response time of its last heartbeat

    NUMBERS = ("interval_ms", "last_api")
    interval_ms: int = 0  #: as the coordinator sets it
    last_api: int = -1

    @property
    def is_kept_out(self) -> bool:
        """True if it asks to join and is refused: it has dropped what it held."""
        return self.refusals is not None and self.refusals.generation == JOIN_EPOCH

    @property
    def holds(self) -> Partitions:
        """What the coordinator can give to no other member yet, as far as that is known."""
        return self.pending if self.granted is None else self.granted | self.pending

    def was_assigned(self, assignment: Partitions, epoch: int) -> None:
        """Note for each partition that the member was assigned since its join the epoch of the answer that did so first.

        :param epoch: 0 if it may have had them before: with its join.
        """
        if self.ever is not None:
            self.ever = {**dict.fromkeys(assignment, epoch), **self.ever}

    def forget(self) -> None:
        """Drop what may have changed unseen: frames are missing."""
        self.forget_place()
        self.topics = self.pattern = None

    def forget_place(self) -> None:
        """Drop what may have changed with a request that leaves the subscription as it is, and whose outcome is not known."""
        self.epoch = self.previous = self.joined_epoch = self.granted = self.ever = None
        self.pending = NO_PARTITIONS
        self.revoking_us = self.empty_since_us = 0
        self.revoking_frame = None
        self.refusals = self.commit_refusals = None
        self.heartbeat_us = 0
        self.rejoin_asked_us = None


class InstanceClaim(Stored):
    """Refusals of one group.instance.id in a row."""

    first_us: int
    times: int = 0
    frames: tuple[Evidence, ...] = ()
    last_us: int = 0


class InstanceUse(NamedTuple):
    """Who has held one group.instance.id lately, and which of those holders were refused after they had lost it."""

    takes: tuple[tuple[int, str], ...] = ()  #: (time, member id that took it) of each time that it changed hands
    refused: tuple[tuple[int, str], ...] = ()  #: (time, member id) of those that had lost it
    frames: tuple[Evidence, ...] = ()


class StatusStreak(NamedTuple):
    """A status of a Streams group that its members get one after the other."""

    first_us: int
    last_us: int
    times: int
    frames: tuple[Evidence, ...]  #: the first and the latest


class DoubleGrant(NamedTuple):
    """Partitions were granted to one member while another held them. It is proven when that other is accepted afterwards."""

    holder: str
    other: str
    partitions: tuple[tuple[str, int], ...]
    at_us: int
    frames: tuple[Evidence, ...]


class Committer(NamedTuple):
    """Who committed a partition last."""

    member_id: str
    epoch: int
    at_us: int
    before: tuple[str, int] | None  #: member id and epoch of the last commit of another member, which was answered before


class Bump(NamedTuple):
    """The group's epoch rose."""

    at_us: int
    epoch: int
    cause: str
    member_id: str | None
    frame: Evidence


class Unseen(NamedTuple):
    """Members that the newest description lists, and that no frame has named."""

    at_us: int  #: when it was asked for
    members: int  #: listed in all
    unseen: tuple[tuple[str, str], ...]  #: member id, and client id and host
    frame: Evidence


DEFAULT_MS: Final = 45_000
"""The default, and the shortest that a broker allows by default."""

LONGEST_MS: Final = 60_000
"""The longest that a broker allows by default."""


class SessionBounds(NamedTuple):
    """What frames showed of the sessions of one group; 0 for nothing."""

    least_ms: int = 0
    most_ms: int = 0

    def outlasted(self, pause_us: int) -> SessionBounds:
        """Return what is known once a member was accepted after it had sent nothing for so long."""
        least_ms = max(self.least_ms, pause_us // 1_000)
        return SessionBounds(least_ms, 0 if self.most_ms < least_ms else self.most_ms)

    def ended(self, silence_us: int) -> SessionBounds:
        """Return what is known once a session had ended so long after its member was last asked for."""
        most_ms = -(-silence_us // 1_000)
        return SessionBounds(self.least_ms, min(self.most_ms or most_ms, most_ms)) if most_ms >= self.least_ms else self

    def shortest_ms(self, configured_ms: int) -> int:
        """Return how long a member surely stays one without a heartbeat; ``configured_ms`` is 0 if it is not known."""
        if configured_ms:
            return configured_ms
        return self.least_ms if 0 < self.most_ms < DEFAULT_MS else max(DEFAULT_MS, self.least_ms)

    def longest_ms(self, configured_ms: int) -> int:
        """Return after how long without a heartbeat a member surely is none any more; ``configured_ms`` is 0 if it is not known."""
        return configured_ms or self.most_ms or max(LONGEST_MS, self.least_ms)

"""Tracker of commits: the committed offsets, their committers and the outcome.

*A commit has its offsets in the request and its outcomes in the response*, per partition. Error codes for unknown topics, authorization
and size come from the request layer, and prove nothing about the group; a refusal by the group is the same for all partitions. *A commit
at generation -1 without any identity* is from a client that is no member: lawful while the group is empty, else refused. *A commit may
name thousands of partitions*: of one generation, only the first 256 positions are kept.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec.structs import replace

from coordinator_model.groups.classic.assignment_checks import read_assignment
from coordinator_model.groups.classic.trackers.commits import (
    Holding,
    SimpleCommit,
    Topics,
    bitmaps_of,
    committer_identity,
    has_partition,
    is_simple,
    member_on,
    member_throughout,
    minus,
)
from coordinator_model.groups.committed_offsets import (
    POSITIONS_KEPT,
    Partition,
    keep_newest,
    read_positions,
    refusals_in,
    without_refused,
)
from coordinator_model.groups.evidence import client_text, request_evidence, response_evidence
from coordinator_model.groups.records import CommitFacts, Exchange, Generation, Refusals, Removed, SyncFacts
from coordinator_model.groups.tracker import NOTHING, Event
from coordinator_model.stored import Stored
from coordinator_model.wire.constants import (
    COMMITS,
    GROUP_AUTHORIZATION_FAILED,
    JOIN_GROUP,
    LEAVE_GROUP,
    NONE,
    OFFSET_COMMIT,
    SYNC_GROUP,
    TOPIC_AUTHORIZATION_FAILED,
    TXN_OFFSET_COMMIT,
    UNKNOWN_MEMBER_ID,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)

if TYPE_CHECKING:
    from coordinator_model.groups.classic.data import GroupData

API_KEYS: Final = COMMITS | {JOIN_GROUP, LEAVE_GROUP, SYNC_GROUP}

HOLDINGS_KEPT: Final = 256
FORBIDS: Final = frozenset({TOPIC_AUTHORIZATION_FAILED, GROUP_AUTHORIZATION_FAILED})
NO_TOPIC: Final = frozenset({UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID})
_EXPLAINS_US: Final = 30 * 60_000_000  #: for how long O-09 is open after the last refusal
PARTITIONS_KEPT: Final = 8  #: of a client with rejected commits
KEPT: Final = 32  #: of members with refused commits, clients with rejected commits, and committers that are no members
#: API → first version that names topics by id; assignments name them by name
_NAMED_ALIKE: Final = {OFFSET_COMMIT: 10, TXN_OFFSET_COMMIT: 6}

#: ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, STALE_MEMBER_EPOCH: refused for the committer
REFUSALS: Final = (22, 25, 82, 113)
#: OFFSET_METADATA_TOO_LARGE, INVALID_COMMIT_OFFSET_SIZE, TOPIC_ and GROUP_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION,
#: UNKNOWN_TOPIC_ID: refused for the content
REJECTIONS: Final = (12, 28, 29, 30, UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID)


# ---------------------------------------------------------------------------------------------------- events


class CommitRefused(NamedTuple):
    """A member's commit was refused for its generation, member id, instance id or epoch."""

    exchange: Exchange
    refusals: Refusals


class CommitRejected(NamedTuple):
    """A commit, or part of it, was refused for its content."""

    exchange: Exchange
    committer: str
    error: int
    times: int  #: since one of its partitions was saved
    partitions: tuple[Partition, ...]  #: that were refused for it
    saved: int  #: number of other partitions that the same commit saved


class Rejected(NamedTuple):
    """What was refused of a committer's commits for their content."""

    error: int
    times: int
    partitions: tuple[Partition, ...]  #: of the newest one, at most :data:`PARTITIONS_KEPT`
    last_us: int  #: when the newest one was refused

    @property
    def explains_until_us(self) -> int:
        """Until when a missing right explains what its client no longer does, 0 if the commits were refused for something else."""
        return self.last_us + _EXPLAINS_US if self.error in FORBIDS else 0


class CommittedEarly(NamedTuple):
    """A commit was accepted while the group provably waited for its assignment."""

    exchange: Exchange
    newest_generation: Generation


class CommittedForeign(NamedTuple):
    """A commit was accepted for partitions that were not assigned to the member, now or in the generation before."""

    exchange: Exchange
    partitions: tuple[Partition, ...]


class CommittedOver(NamedTuple):
    """A commit was accepted for partitions that another member had committed in this generation."""

    exchange: Exchange
    committer: str
    rival: str
    partitions: tuple[Partition, ...]
    strangers: tuple[str, ...]  #: those of the two to which not all of these partitions are assigned, as far as is known


class CommittedBack(NamedTuple):
    """A member's commit moved back positions that it had committed in this generation."""

    exchange: Exchange
    steps: tuple[tuple[str, int, int, int], ...]  #: (topic, partition, offset before, offset after)


class Unfenced(NamedTuple):
    """A TxnOffsetCommit of positions that could name its member does not."""

    exchange: Exchange
    transactional_id: str


# ---------------------------------------------------------------------------------------------------- tracker


class Offsets(Stored):
    """Offset facts of one group."""

    generation: int | None = None  #: of the positions
    committers: tuple[str, ...] = ()  #: instance id or member id
    committed: dict[str, dict[int, tuple[int, int]]] = {}
    #: topic → partition → (index of the committer, offset); -1 for an offset that is not decided
    kept: int = 0
    holdings: dict[str, Holding] = {}
    refused: dict[str, Refusals] = {}  #: by member id, since its last JoinGroup or accepted commit
    rejected: dict[str, Rejected] = {}  #: by committer, until one of these partitions is saved
    let_in: dict[str, SimpleCommit] = {}  #: by committer: accepted without identity
    turned_away: dict[str, SimpleCommit] = {}  #: by committer: refused without identity
    joins_out: int = (
        0  #: JoinGroup requests without a response since the generation was proven, including those of ended connections
    )
    unrest_us: int = 0  #: capture time of the last request that may have ended the wait for the assignment
    set_back: dict[str, tuple[tuple[str, int, int], ...]] = {}
    #: member id → (topic, partition, offset before) of positions that it moved back and not yet forward again

    def on_request(self, group: GroupData, exchange: Exchange, body: Any) -> tuple[Event, ...]:
        api_key = exchange.api_key
        if api_key in COMMITS:
            return self._commit_asked(group, exchange, body)
        if api_key == JOIN_GROUP:
            self.joins_out += 1
            self.refused.pop(exchange.member_id, None)
            if exchange.member_id in group.issued:
                keep_newest(self.holdings, exchange.member_id, Holding(-1, {}, {}), HOLDINGS_KEPT)
        if not isinstance(exchange.facts, SyncFacts) or exchange.facts.assigned:
            self.unrest_us = exchange.inv_us
        return NOTHING

    def on_response(self, group: GroupData, exchange: Exchange, body: Any) -> tuple[Event, ...]:
        api_key = exchange.api_key
        if api_key in COMMITS:
            return self._commit_answered(group, exchange, body)
        if api_key == JOIN_GROUP:
            newest = group.newest_generation
            if newest is not None and exchange.completes_generation:
                if self.generation is not None and newest.generation <= self.generation:
                    self._forget_positions(None)  # they may be those of an earlier group of this name
                self.joins_out = sum(1 for waiting in group.open.values() if waiting.api_key == JOIN_GROUP)
            else:
                self.joins_out -= 1
        elif api_key == SYNC_GROUP and exchange.error == 0:
            self._assigned(group, exchange, body)
        return NOTHING

    def on_gap(self, group: GroupData) -> None:  # noqa: ARG002
        """Drop what may have changed unseen: positions and assignments."""
        self._forget_positions(None)
        self.set_back = {}
        self.holdings = {}
        self.refused = {}
        self.let_in = {}
        self.joins_out = 0

    def offset_before(self, generation: int, topic: str, partition: int) -> int | None:
        """Return the position that a member committed in a generation after ``generation``, None if there is none."""
        if self.generation is None or self.generation <= generation:
            return None
        known = self.committed.get(topic, {}).get(partition)
        return None if known is None or known[1] < 0 else known[1]

    # ------------------------------------------------------------------------------------------------ commits

    def _commit_asked(self, group: GroupData, exchange: Exchange, body: Any) -> tuple[Event, ...]:
        exchange.facts = read_positions(body)
        if exchange.member_id:
            for other in group.open.values():
                if (
                    isinstance(other.facts, CommitFacts)
                    and other.member_id == exchange.member_id
                    and other.actor.connection != exchange.actor.connection
                ):
                    other.facts = replace(other.facts, overlaps=True)
                    exchange.facts = replace(exchange.facts, overlaps=True)
        elif exchange.api_key == TXN_OFFSET_COMMIT and exchange.api_version >= 3 and exchange.generation < 0 and body.topics:
            return (Unfenced(exchange, body.transactional_id),)
        return NOTHING

    def _commit_answered(self, group: GroupData, exchange: Exchange, body: Any) -> tuple[Event, ...]:
        refused = refusals_in(body)
        codes = set(refused.values())
        accepted = NONE in exchange.error_codes
        events = self._rejections(group, exchange, refused)
        if accepted:
            assert isinstance(exchange.facts, CommitFacts)
            if refused:
                exchange.facts = without_refused(exchange.facts, refused)
            return events + self._accepted(group, exchange, exchange.facts)
        for error in REFUSALS:
            if error in codes:
                return events + self._refused(group, exchange, error)
        return events

    @property
    def forbidden(self) -> int:
        """How many committers have no right to commit what they read."""
        return sum(one.error in FORBIDS for one in self.rejected.values())

    def _rejections(self, group: GroupData, exchange: Exchange, refused: dict[Partition, int]) -> tuple[Event, ...]:
        committer = exchange.member_id or client_text(exchange.actor)
        error = next((code for code in REJECTIONS if code in refused.values()), None)
        known, ask = self.rejected.get(committer), exchange.facts
        assert isinstance(ask, CommitFacts)
        if error is None:
            for saved in [name for name, one in self.rejected.items() if _saves(ask, refused, one.partitions)]:
                del self.rejected[saved]
                group.changed = True  # its finding is over
            return NOTHING
        times = known.times + 1 if known is not None and known.error == error else 1
        partitions = tuple(each for each, code in refused.items() if code == error)
        keep_newest(self.rejected, committer, Rejected(error, times, partitions[:PARTITIONS_KEPT], exchange.res_us), KEPT)
        asked = ask.left_out + sum(len(named) for _, named, _ in ask.topics)
        return (CommitRejected(exchange, committer, error, times, partitions, max(0, asked - len(refused))),)

    def _refused(self, group: GroupData, exchange: Exchange, error: int) -> tuple[Event, ...]:
        if exchange.generation < 0:
            if error == UNKNOWN_MEMBER_ID and is_simple(exchange):
                self._note_simple(group, self.turned_away, exchange, error)
            return NOTHING
        refusals = self.refused.get(exchange.member_id)
        if refusals is None or (refusals.error, refusals.generation) != (error, exchange.generation):
            refusals = Refusals(error, exchange.generation, 0, exchange.res_us, exchange.res_us)
            keep_newest(self.refused, exchange.member_id, refusals, KEPT)
        refusals.add(exchange.res_us, response_evidence(exchange, error))
        return (CommitRefused(exchange, refusals),)

    def _accepted(self, group: GroupData, exchange: Exchange, ask: CommitFacts) -> tuple[Event, ...]:
        if exchange.generation < 0:
            self._drop(ask)
            if is_simple(exchange):
                self._note_simple(group, self.let_in, exchange, 0)
            return NOTHING
        self.refused.pop(exchange.member_id, None)
        if not exchange.member_id:
            return NOTHING
        events: list[Event] = []
        completing = self._completing(group, exchange)
        if completing is not None and exchange.api_key == OFFSET_COMMIT:
            events.append(CommittedEarly(exchange, completing))
        committer = committer_identity(group, exchange.member_id, exchange.instance_id)
        named = ((topic, partition) for topic, partitions, _ in ask.topics for partition in partitions)
        foreign = self._foreign(exchange.generation, exchange.api_key, exchange.api_version, named, committer)
        if foreign:
            events.append(CommittedForeign(exchange, foreign))
        events.extend(self._positions(exchange, ask, committer))
        return tuple(events)

    def _completing(self, group: GroupData, exchange: Exchange) -> Generation | None:
        """Return the generation that provably waited for its assignment during the whole commit, None if there is none.

        Since its completion, no request may have started another join phase, and no session or sync timer may have expired.
        """
        newest = group.newest_generation
        if newest is None or newest.roster is None or newest.generation != exchange.generation:
            return None
        if newest.unsettled_us or newest.leader_synced_us is not None or newest.sync_done_us is not None:
            return None
        skew_us = group.clock_skew_us
        if newest.proven_us >= exchange.effective_us - skew_us or self.unrest_us >= newest.proven_us or self.joins_out:
            return None
        shortest_ms = group.settings.unbounded_join_ms
        for id_ in newest.roster:
            member = group.members.get(id_)
            if member is None or member.session_timeout_ms is None or member.rebalance_timeout_ms is None:
                return None
            shortest_ms = min(shortest_ms, member.session_timeout_ms, member.rebalance_timeout_ms)
        return newest if exchange.res_us - newest.proven_us < shortest_ms * 500 else None

    def _foreign(
        self, generation: int, api_key: int, api_version: int, named: Iterable[Partition], committer: str
    ) -> tuple[Partition, ...]:
        """Return the partitions that are not the committer's, now or in the generation before."""
        holding = self.holdings.get(committer)
        if holding is None or holding.lost is None:
            return ()
        lost = holding.lost
        foreign = self._without_assignment(generation, api_key, api_version, named, committer)
        return tuple((topic, partition) for topic, partition in foreign if not has_partition(lost, topic, partition))

    def _without_assignment(
        self, generation: int, api_key: int, api_version: int, named: Iterable[Partition], committer: str
    ) -> tuple[Partition, ...]:
        """Return the partitions that are not assigned to the committer in that generation; none if that is not known."""
        holding = self.holdings.get(committer)
        if holding is None or holding.generation != generation or api_version >= _NAMED_ALIKE[api_key]:
            return ()
        return tuple((topic, partition) for topic, partition in named if not has_partition(holding.now, topic, partition))

    def _positions(self, exchange: Exchange, ask: CommitFacts, committer: str) -> Iterator[Event]:
        """Store the committed positions, and yield what contradicts earlier ones."""
        if self.generation is None or exchange.generation > self.generation:
            self._forget_positions(exchange.generation)
        elif exchange.generation < self.generation:
            return
        if committer not in self.committers:
            self.committers = (*self.committers, committer)
        index = self.committers.index(committer)
        decided = exchange.api_key == OFFSET_COMMIT  # a transaction may still be aborted
        rival, taken, back = -1, [], []
        for topic, partitions, offsets in ask.topics:
            known = self.committed.get(topic, {})
            for partition, offset in zip(partitions, offsets, strict=True):
                last = known.get(partition)
                if last is None:
                    if self.kept == POSITIONS_KEPT:
                        continue
                    self.kept += 1
                    known = self.committed.setdefault(topic, known)
                elif last[0] != index:
                    rival = last[0]
                    taken.append((topic, partition))
                elif ask.overlaps:
                    offset = max(offset, last[1])  # noqa: PLW2901
                elif decided and 0 <= offset < last[1]:
                    back.append((topic, partition, last[1], offset))
                known[partition] = (index, offset if decided else -1)
        if taken:
            other = self.committers[rival]
            strangers = tuple(
                one
                for one in (committer, other)
                if self._without_assignment(exchange.generation, exchange.api_key, exchange.api_version, taken, one)
            )
            yield CommittedOver(exchange, committer, other, tuple(taken), strangers)
        if exchange.member_id in self.set_back or back:
            self._note_set_back(exchange.member_id, back, index)
        if back:
            yield CommittedBack(exchange, tuple(back))

    def _note_set_back(self, member_id: str, back: list[tuple[str, int, int, int]], index: int) -> None:
        steps = [*self.set_back.pop(member_id, ()), *((topic, partition, before) for topic, partition, before, _ in back)]
        behind = []
        for topic, partition, before in steps:
            known = self.committed.get(topic, {}).get(partition)
            if known is None or (known[0] == index and known[1] < before):
                behind.append((topic, partition, before))
        if behind:
            keep_newest(self.set_back, member_id, tuple(behind[-POSITIONS_KEPT:]), KEPT)

    def _forget_positions(self, generation: int | None) -> None:
        self.generation = generation
        self.committers = ()
        self.committed = {}
        self.kept = 0

    def _drop(self, ask: CommitFacts) -> None:
        """Drop these positions, set by a commit without a generation."""
        for topic, partitions, _ in ask.topics:
            known = self.committed.get(topic, {})
            for partition in partitions:
                if known.pop(partition, None) is not None:
                    self.kept -= 1

    # ------------------------------------------------------------------------------------------------ assignments

    def _assigned(self, group: GroupData, exchange: Exchange, body: Any) -> None:
        member = committer_identity(group, exchange.member_id, exchange.instance_id)
        newest = next(reversed(self.holdings.values()), None)
        if newest is not None and newest.generation < exchange.generation:
            self._forget_holdings(group, exchange.generation)
        before = self.holdings.pop(member, None)
        if (body.protocol_type or group.protocol_type) != "consumer":
            return
        now = bitmaps_of(read_assignment(body.assignment))
        if now is None:
            return
        lost: Topics | None = None
        if before is not None:
            lost = before.lost if before.generation == exchange.generation else minus(before.now, now)
        keep_newest(self.holdings, member, Holding(exchange.generation, now, lost), HOLDINGS_KEPT)

    def _forget_holdings(self, group: GroupData, generation: int) -> None:
        """Drop holdings older than the generation before, and those of ids no longer known."""
        self.holdings = {
            id_: holding
            for id_, holding in self.holdings.items()
            if holding.generation >= generation - 1 or (holding.generation < 0 and (id_ in group.members or id_ in group.issued))
        }

    # ------------------------------------------------------------------------------------------------ simple commits

    def _note_simple(self, group: GroupData, noted: dict[str, SimpleCommit], exchange: Exchange, error: int) -> None:
        committer = client_text(exchange.actor)
        known = noted.get(committer)
        recent = known is not None and exchange.res_us - known.last_us <= group.settings.quiet_ms * 1_000
        if known is not None and recent and (noted is self.turned_away or member_throughout(group, known) is not None):
            noted[committer] = known._replace(last_us=exchange.res_us, times=known.times + 1)
        else:
            frames = (request_evidence(exchange), response_evidence(exchange, error))
            commit = SimpleCommit(exchange.actor, exchange.effective_us, exchange.res_us, exchange.res_us, 1, frames)
            former = member_on(group, exchange.actor.connection)
            if former is not None:
                ended, left_us = former.removed, former.removed_us
                if ended == Removed.LEFT:
                    left_us = former.leave_asked_us
                elif ended is None and former.refusals is not None:
                    ended, left_us = Removed.REFUSED, former.refusals.first_us
                commit = commit._replace(former_id=former.id, left_us=left_us, ended=ended)
            keep_newest(noted, committer, commit, KEPT)
        group.changed = group.changed or any(True for _ in group.present_members())


def _saves(ask: CommitFacts, refused: Collection[Partition], wanted: tuple[Partition, ...]) -> bool:
    """Return True if a commit saves one of the partitions."""
    return any(
        (topic, partition) in wanted and (topic, partition) not in refused
        for topic, partitions, _ in ask.topics
        for partition in partitions
    )

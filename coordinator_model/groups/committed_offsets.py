"""Where a group stands: the offsets that it committed, and reads of them that failed.

A client that gets a partition reads the group's offset with OffsetFetch and goes on from there. *A refused read is to be repeated*: a
client that takes the refusal for "no offset" begins where ``auto.offset.reset`` points, and its first commit hides what it skipped. *A
request before v9 names no member*, so a read belongs to a client: a client id at a host. Two members of one process each read the
partitions that they get, so what one of them has read is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple, Protocol

from msgspec.structs import replace

from coordinator_model.cluster_facts import ClusterFacts
from coordinator_model.finding import Evidence
from coordinator_model.groups.evidence import client_text, request_evidence, response_evidence
from coordinator_model.groups.pace import Pace
from coordinator_model.groups.records import CommitFacts, Exchange, ExchangeKey, FetchFacts
from coordinator_model.groups.tracker import NOTHING, Event
from coordinator_model.stored import Stored
from coordinator_model.wire.constants import COMMITS, DELETE_GROUPS, NONE, OFFSET_COMMIT, OFFSET_DELETE, OFFSET_FETCH

API_KEYS: Final = COMMITS | {DELETE_GROUPS, OFFSET_DELETE, OFFSET_FETCH}

POSITIONS_KEPT: Final = 256
CLIENTS_KEPT: Final = 32
FASTEST_PER_S: Final = 2_000_000
"""Records that no consumer reads from one partition in a second."""

MOVES: Final = 10  #: that show a pace
PAUSES: Final = 20  #: of a partition that stands still, times as long as usual
LEAST_PATIENCE_S: Final = 60
SAME_OCCASION_US: Final = 10_000_000  #: a tool may take several requests to set the offsets of a group
RECURS_US: Final = 3_600_000_000

_NO_OFFSET: Final = -1

Partition = tuple[str, int]


class Group(Protocol):
    """What this module asks of a group of any kind."""

    name: str
    cluster: str
    facts: ClusterFacts
    open: dict[ExchangeKey, Exchange]
    members: dict[str, Any]
    changed: bool
    counted: bool

    def present_members(self) -> Iterable[Any]: ...


class RefusedFetch(NamedTuple):
    """Partitions whose offsets a client could not read, and has not read since."""

    error: int
    first_us: int
    last_us: int
    times: int
    partitions: tuple[Partition, ...]
    frames: tuple[Evidence, ...]


Step = tuple[str, int, int, int]
"""Topic, partition, the group's offset before (-1 if it is not known), the committed one."""


class CommittedUnread(NamedTuple):
    """A client commits partitions of which it has not read where the group stands, since its read was refused."""

    exchange: Exchange
    fetch: RefusedFetch
    steps: tuple[Step, ...]


class SetBack(NamedTuple):
    """A client that is no member set offsets of the group back."""

    exchange: Exchange
    steps: tuple[Step, ...]
    times: int  #: how often it did so, with at most an hour in between
    is_empty: bool  #: the group had no member then
    before_us: int = 0  #: when it took these steps, if it only sets the same offsets again; else 0


class Reset(NamedTuple):
    """The last time that a client which is no member set offsets of the group back."""

    times: int = 0
    at_us: int = 0
    steps: tuple[Step, ...] = ()


class OffsetsGone(NamedTuple):
    """The coordinator has no offsets where the group had committed some."""

    exchange: Exchange
    gone: tuple[LostOffset, ...]  #: all that were missed lately


class LostOffset(NamedTuple):
    """An offset that was committed and is gone."""

    topic: str
    partition: int
    offset: int
    committed_s: int  #: capture time of its commit


class Stand(NamedTuple):
    """Where the group stands in one partition."""

    offset: int  #: of the newest accepted commit that is no part of a transaction
    at_s: int  #: capture time of that commit
    moved_s: int  #: of the newest one that was further than the one before
    run_s: int  #: since when it has moved without a longer pause than :attr:`patience_s`
    every_ds: int = 0  #: how many tenths of a second pass between two commits that move it, on average

    def then(self, offset: int, at_s: int) -> Stand:
        """Return it after another commit."""
        if offset <= self.offset:
            return self._replace(offset=offset, at_s=at_s)
        pause_s = at_s - self.moved_s
        if pause_s > self.patience_s:
            return Stand(offset, at_s, at_s, at_s, self.every_ds)
        return Stand(offset, at_s, at_s, self.run_s, (7 * self.every_ds + 10 * pause_s) // 8 if self.every_ds else 10 * pause_s)

    @property
    def patience_s(self) -> int:
        """For how long it may stand still at its pace."""
        return max(LEAST_PATIENCE_S, PAUSES * self.every_ds // 10)

    @property
    def has_pace(self) -> bool:
        """True if it has moved steadily for a while."""
        return 10 * (self.moved_s - self.run_s) >= MOVES * max(self.every_ds, 10)


class CommittedAhead(NamedTuple):
    """A commit is further ahead of the one before than anybody can have read in the time between."""

    exchange: Exchange
    steps: tuple[Step, ...]
    elapsed_s: int  #: since the commit before, of the first of them


class CommittedOffsets(Stored):
    """The offsets of one group, and who could not read them."""

    stood: dict[str, dict[int, Stand]] = {}  #: by topic, under its id until its name is known, and partition
    kept: int = 0
    unread: dict[str, RefusedFetch] = {}  #: by client
    read_us: dict[str, int] = {}  #: client → capture time of its last successful read since a refused one
    none_us: int = 0  #: when a member was first answered that the group has no offset, unless any commit was seen
    set_backs: dict[str, Reset] = {}  #: by client that is no member
    lost: tuple[LostOffset, ...] = ()  #: that were missed lately
    lost_us: int = 0
    pace: Pace | None = None  #: None before a commit outside of transactions, and of a group with more partitions than are kept

    def on_request(self, group: Group, exchange: Exchange, body: Any) -> tuple[Event, ...]:
        if exchange.api_key == OFFSET_FETCH:
            exchange.facts = FetchFacts(tuple(_asked(group.name, body)))
        return NOTHING

    def on_response(self, group: Group, exchange: Exchange, body: Any) -> tuple[Event, ...]:
        if exchange.api_key == OFFSET_FETCH:
            return self._fetched(group, exchange, body)
        if exchange.api_key in {DELETE_GROUPS, OFFSET_DELETE} and NONE in exchange.error_codes:
            self.on_gap(group)
        if NONE not in exchange.error_codes or not isinstance(exchange.facts, CommitFacts):
            return NOTHING
        return tuple(self.committed(group, exchange, exchange.facts))

    def on_gap(self, group: Group) -> None:  # noqa: ARG002
        """Drop everything: reads, commits and deletions may have been missed."""
        self.stood, self.kept = {}, 0
        self.unread, self.read_us = {}, {}
        self.none_us, self.lost, self.pace = 0, (), None

    def on_time(self, group: Group, now_us: int, coming: list[int]) -> None:
        """Let what is shown of the pace go on while nothing is committed; a group that has members is looked at anyhow."""
        if self.pace is not None and self.pace.is_news:
            group.changed = self.pace.reach(now_us // 1_000_000) or group.changed
            if not group.members:
                coming.append(self.pace.step_ends_us)

    def distrust(self, group: Group, judged: CommitFacts) -> None:
        """Drop where the group stands in the partitions of a commit whose answer is unlawful: nobody knows what was stored."""
        for topic, partitions, _ in judged.topics:
            known = self.stood.get(self._named(group, topic), {})
            for partition in partitions:
                if known.pop(partition, None) is not None:
                    self.kept -= 1

    def offset_of(self, topic: str, partition: int) -> int | None:
        """Return where the group stands in a partition; None if that is not known."""
        stand = self.stood.get(topic, {}).get(partition)
        return None if stand is None else stand.offset

    def _named(self, group: Group, topic: str) -> str:
        """Return the name of a topic that may be given by its id: members commit by id, and tools, or older members, by name."""
        name = group.facts.topic_name(group.cluster, topic)
        if name is None:
            return topic
        by_id = self.stood.pop(topic, {})
        if by_id:
            self.stood[name] = {**by_id, **self.stood.get(name, {})}
            self.kept = sum(map(len, self.stood.values()))
        return name

    # ------------------------------------------------------------------------------------------------ reads

    def _fetched(self, group: Group, exchange: Exchange, body: Any) -> tuple[Event, ...]:
        if not isinstance(exchange.facts, FetchFacts) or not exchange.gap_free:
            return NOTHING
        client = client_text(exchange.actor)
        without_offset = self._without_offset(group.name, exchange.facts, body)
        answers = {(self._named(group, topic), number): error for (topic, number), error in without_offset}
        refused = {partition: error for partition, error in answers.items() if error}
        asked = ((self._named(group, topic), number) for topic, number in exchange.facts.partitions)
        read = {partition for partition in asked if partition not in refused}
        if read:
            keep_newest(self.read_us, client, exchange.res_us, CLIENTS_KEPT)
            self._now_read(client, read)
        if refused:
            self._note_refused(client, exchange, refused)
        without = [partition for partition, error in answers.items() if not error]
        if without and not self.kept:
            self.none_us = self.none_us or exchange.res_us
        return self._gone(exchange, without)

    def _gone(self, exchange: Exchange, without: list[Partition]) -> tuple[Event, ...]:
        """Return an event if an offset had been committed, surely before it was asked for."""
        found = []
        for topic, partition in without:
            stand = self.stood.get(topic, {}).get(partition)
            if stand is not None and stand.at_s < exchange.inv_us // 1_000_000:
                found.append(LostOffset(topic, partition, stand.offset, stand.at_s))
        if not found:
            return NOTHING
        for one in found:
            del self.stood[one.topic][one.partition]
            self.kept -= 1
        earlier = self.lost if exchange.res_us - self.lost_us <= SAME_OCCASION_US else ()
        self.lost, self.lost_us = (*earlier, *found)[-POSITIONS_KEPT:], exchange.res_us
        return (OffsetsGone(exchange, self.lost),)

    def _without_offset(self, group: str, asked: FetchFacts, body: Any) -> Iterator[tuple[Partition, int]]:
        """Yield the partitions whose offset the answer does not give, and the error of each; 0 if there is none."""
        answer = next((one for one in body.groups if one.group_id == group), body)
        if answer.error_code:
            yield from ((partition, answer.error_code) for partition in asked.partitions)
            return
        for topic in answer.topics:
            name = topic_key(topic)
            for entry in topic.partitions:
                if entry.error_code or entry.committed_offset == _NO_OFFSET:
                    yield (name, entry.partition_index), entry.error_code

    def _note_refused(self, client: str, exchange: Exchange, refused: dict[Partition, int]) -> None:
        error = max(refused.values())
        asked, answered = request_evidence(exchange), response_evidence(exchange, error)
        before = self.unread.get(client, RefusedFetch(error, exchange.res_us, 0, 0, (), (asked,)))
        together = tuple(dict.fromkeys((*before.partitions, *refused)))[-POSITIONS_KEPT:]
        frames = (*before.frames[:2], answered)
        fetch = RefusedFetch(error, before.first_us, exchange.res_us, before.times + 1, together, frames)
        keep_newest(self.unread, client, fetch, CLIENTS_KEPT)
        self.read_us.pop(client, None)

    def _now_read(self, client: str, read: set[Partition]) -> None:
        fetch = self.unread.get(client)
        if fetch is None:
            return
        left = tuple(partition for partition in fetch.partitions if partition not in read)
        if left:
            self.unread[client] = fetch._replace(partitions=left)
        else:
            del self.unread[client]

    # ------------------------------------------------------------------------------------------------ commits

    def committed(self, group: Group, exchange: Exchange, accepted: CommitFacts) -> Iterator[Event]:
        """Note the accepted positions of a commit, and yield what is strange about them."""
        client = client_text(exchange.actor)
        steps = list(self._steps(group, accepted))
        fetch = self.unread.get(client)
        unread = [] if fetch is None else [step for step in steps if step[:2] in fetch.partitions]
        if fetch is not None and unread and fetch.last_us < exchange.inv_us and not _is_reading(group, client):
            self._now_read(client, {step[:2] for step in unread})
            yield CommittedUnread(exchange, fetch, tuple(unread))
        at_s = exchange.res_us // 1_000_000
        self.none_us = 0
        if not exchange.member_id and exchange.generation < 0 and exchange.api_key == OFFSET_COMMIT and group.members:
            yield from self._set_back(group, exchange, client, steps)
        ahead = [step for step in steps if step not in unread and self._is_ahead(step, at_s)]
        if ahead:
            topic, partition, _, _ = ahead[0]
            yield CommittedAhead(exchange, tuple(ahead), at_s - self.stood[topic][partition].at_s)
        if exchange.api_key == OFFSET_COMMIT:  # a transaction may still be aborted
            for topic, partition, _, offset in steps:
                self._stands(topic, partition, offset, at_s)
            if exchange.member_id or not group.members:  # a tool that sets offsets reads nothing
                self._goes_on(group, [step for step in steps if step not in ahead], at_s, accepted.left_out)

    def _goes_on(self, group: Group, steps: list[Step], at_s: int, left_out: int) -> None:
        """Count how far a commit moves the offsets that were known."""
        if left_out or self.kept == POSITIONS_KEPT:
            self.pace = None
            return
        self.pace = self.pace or Pace.since(at_s)
        moved = sum(offset - before for _, _, before, offset in steps if 0 <= before < offset)
        group.counted = self.pace.add(moved, at_s) or group.counted

    def _steps(self, group: Group, accepted: CommitFacts) -> Iterator[Step]:
        for given, partitions, offsets in accepted.topics:
            topic = self._named(group, given)
            known = self.stood.get(topic, {})
            for partition, offset in zip(partitions, offsets, strict=True):
                yield topic, partition, known[partition].offset if partition in known else _NO_OFFSET, offset

    def _is_ahead(self, step: Step, at_s: int) -> bool:
        topic, partition, before, offset = step
        if before < 0:
            return False
        return offset - before > FASTEST_PER_S * (at_s - self.stood[topic][partition].at_s + 1)

    def _stands(self, topic: str, partition: int, offset: int, at_s: int) -> None:
        known = self.stood.setdefault(topic, {})
        if partition not in known:
            if self.kept == POSITIONS_KEPT:
                if not known:
                    del self.stood[topic]
                return
            self.kept += 1
        before = known.get(partition)
        known[partition] = Stand(offset, at_s, at_s, at_s) if before is None else before.then(offset, at_s)

    def _set_back(self, group: Group, exchange: Exchange, client: str, steps: list[Step]) -> Iterator[Event]:
        """Yield that a client which is no member sets the group back, or sets it to where it has put it back once more."""
        at_us, last = exchange.res_us, self.set_backs.get(client, Reset())
        if at_us - last.at_us > RECURS_US:
            last = Reset()
        is_empty = not any(True for _ in group.present_members())
        back = tuple(step for step in steps if 0 <= step[3] < step[2])
        if back:
            goes_on = last.times and at_us - last.at_us <= SAME_OCCASION_US
            reset = Reset(last.times if goes_on else last.times + 1, at_us, back)
            keep_newest(self.set_backs, client, reset, CLIENTS_KEPT)
            yield SetBack(exchange, back, reset.times, is_empty)
        elif last.steps and {_target(step) for step in last.steps} <= {_target(step) for step in steps if step[2] == step[3]}:
            yield SetBack(exchange, last.steps, last.times, is_empty, last.at_us)


def _target(step: Step) -> tuple[str, int, int]:
    topic, partition, _, offset = step
    return topic, partition, offset


def read_positions(body: Any) -> CommitFacts:
    """Return the positions that a commit names, the first :data:`POSITIONS_KEPT` of them."""
    topics = []
    room, left_out = POSITIONS_KEPT, 0
    for topic in body.topics:
        entries = topic.partitions[:room]
        room -= len(entries)
        left_out += len(topic.partitions) - len(entries)
        if entries:
            partitions = tuple(entry.partition_index for entry in entries)
            topics.append((topic_key(topic), partitions, tuple(entry.committed_offset for entry in entries)))
    return CommitFacts(tuple(topics), left_out)


def refusals_in(body: Any) -> dict[Partition, int]:
    """Return the partitions that the answer to a commit refuses, each with its error."""
    return {
        (topic_key(topic), partition.partition_index): partition.error_code
        for topic in body.topics
        for partition in topic.partitions
        if partition.error_code
    }


def without_refused(ask: CommitFacts, refused: dict[Partition, int]) -> CommitFacts:
    """Return the positions of a commit but for those that were refused."""
    topics = []
    for topic, partitions, offsets in ask.topics:
        kept = [pair for pair in zip(partitions, offsets, strict=True) if (topic, pair[0]) not in refused]
        if kept:
            topics.append((topic, tuple(partition for partition, _ in kept), tuple(offset for _, offset in kept)))
    return replace(ask, topics=tuple(topics))


def _asked(group: str, body: Any) -> Iterator[Partition]:
    """Yield the partitions that an OffsetFetch names. Null topics mean all: a tool asks so, and begins nowhere."""
    asked = next((one for one in body.groups if one.group_id == group), body)
    room = POSITIONS_KEPT
    for topic in asked.topics or ():
        for partition in topic.partition_indexes[:room]:
            yield topic_key(topic), partition
        room = max(0, room - len(topic.partition_indexes))


def topic_key(topic: Any) -> str:
    """Return a topic's name, or its id where a version names topics so."""
    name: str = topic.name or getattr(topic, "topic_id", "")
    return name


def _is_reading(group: Group, client: str) -> bool:
    return any(other.api_key == OFFSET_FETCH and client_text(other.actor) == client for other in group.open.values())


def keep_newest(kept: dict[str, Any], key: str, value: Any, at_most: int) -> None:
    """Set the newest entry; drop the oldest above ``at_most``."""
    kept.pop(key, None)
    kept[key] = value
    if len(kept) > at_most:
        del kept[next(iter(kept))]

"""One unlawful act in an otherwise lawful life: a coordinator that lies once, or lets somebody through whom it should refuse.

Each act knows which rules are right to speak, and whether somebody who watches the wire can know of it at all: that is worked out from
what was captured, by other means than the model's. *Knowable* is an act whose answer was captured, for which the frames captured before
and after it leave no lawful explanation, and after which the capture goes on for as long as a late frame may take to bring one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Any, ClassVar, NamedTuple

from coordinator_model import wire
from coordinator_model.wire.constants import (
    JOIN_GROUP,
    LEAVE_GROUP,
    MEMBER_ID_REQUIRED,
    NON_EMPTY_GROUP,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
)
from coordinator_model.wire.record import Kind, MirrorRecord
from tests.coordinator_model.reference.coordinator import deleted
from tests.coordinator_model.reference.history import Act, History, Plan
from tests.coordinator_model.reference.world import MS, SECOND, VERSIONS, Asked, Connection

WRITTEN_US = 7_500 * MS  #: a write to the log takes no longer: 5 s, and what a timer may be late
LATE_US = 500 * MS  #: a frame comes no later than that after newer ones
OPERATOR_DELETES = Act(at_ms=2, what="operator", whom=0)
EXPLAINED_US = 2 * SECOND  #: a late frame comes within half a second, and a tick follows within one more


class Seen(NamedTuple):
    """A captured exchange."""

    connection: str
    exchange: int
    api_version: int
    asked_us: int
    queued_behind: int
    answered_us: int
    request: Any
    answer: Any

    @property
    def generation(self) -> int:
        return getattr(self.request, "generation_id", getattr(self.request, "generation_id_or_member_epoch", -1))

    @property
    def error(self) -> int:
        if isinstance(self.answer, wire.OffsetCommitResponse):
            return self.answer.topics[0].partitions[0].error_code
        if isinstance(self.answer, wire.DeleteGroupsResponse):
            return self.answer.results[0].error_code
        return self.answer.error_code


def exchanges(records: list[MirrorRecord]) -> list[Seen]:
    """The answered exchanges of a capture, by time of answer."""
    open_: dict[tuple[str, int], tuple[MirrorRecord, Any]] = {}
    seen = []
    for record in records:
        key = (record.connection, record.exchange)
        if record.kind is Kind.REQUEST:
            open_[key] = (record, decoded(record))
        elif record.kind is Kind.RESPONSE and key in open_:
            asked, request = open_.pop(key)
            seen.append(Seen(*key, asked.api_version, asked.at_us, asked.queued_behind, record.at_us, request, decoded(record)))
    return seen


def decoded(record: MirrorRecord) -> Any:
    request = record.kind is Kind.REQUEST
    return wire.decode(record.frame, request=request, api_key=record.api_key, api_version=record.api_version).body


def joins(seen: list[Seen]) -> Iterator[Seen]:
    return (one for one in seen if isinstance(one.answer, wire.JoinGroupResponse) and one.error == 0)


@dataclass
class Unlawful:
    """What happens, once. ``nth`` chooses among the occasions."""

    nth: int
    done: tuple[str, int] | None = None  #: (connection, exchange) of the act
    occasions: int = 0

    rules: ClassVar[frozenset[str]] = frozenset()  #: those that are right to speak
    least_acts: ClassVar[int] = 2  #: lawful acts that a life needs for an occasion to be likely

    def commit_to(self, history: History) -> None:
        self.history = history
        history.world.tamper = self._tamper

    def _tamper(self, connection: Connection, asked: Asked, body: Any) -> Any:
        if self.done is not None or not self.occasion(connection, asked, body):
            return body
        self.occasions += 1
        if self.occasions <= self.nth:
            return body
        self.done = (connection.name, asked.exchange)
        return self.lie(asked, body)

    def occasion(self, connection: Connection, asked: Asked, body: Any) -> bool:
        raise NotImplementedError

    def lie(self, asked: Asked, body: Any) -> Any:
        raise NotImplementedError

    def knowable(self, seen: list[Seen]) -> bool:
        """Whether somebody who watches the wire can know of the act, in the sense of the module's description."""
        end_us = self.history.records[-1].at_us
        in_time = [one for one in seen if one.answered_us < end_us - EXPLAINED_US]
        act = self.act(in_time)
        return act is not None and self.proves(act, in_time)

    def proves(self, act: Seen, seen: list[Seen]) -> bool:
        """Whether what was captured leaves no lawful explanation of the act."""
        raise NotImplementedError

    def act(self, seen: list[Seen]) -> Seen | None:
        return next((one for one in seen if (one.connection, one.exchange) == self.done), None)


def _members(history: History) -> list[str]:
    return list(history.coordinator.group.members)


def _roster_known(seen: list[Seen], generation: int, before_us: int) -> wire.JoinGroupResponse | None:
    """The leader's answer of that generation, if it was captured by then."""
    for one in joins(seen):
        if one.answer.generation_id == generation and one.answer.members and one.answered_us < before_us:
            answer: wire.JoinGroupResponse = one.answer
            return answer
    return None


class StaleAccepted(Unlawful):
    """A heartbeat or commit of an older generation succeeds."""

    rules = frozenset({"G-02", "O-02"})

    def commit_to(self, history: History) -> None:
        super().commit_to(history)
        history.world.at(15 * SECOND, self._shadow)

    def _shadow(self) -> None:
        """Somebody keeps using the generation before the current one."""
        world, group = self.history.world, self.history.coordinator.group
        if self.done is not None:
            return
        if group.generation > 1 and group.members:
            connection = Connection(world, "shadow", self.history.coordinator.name, VERSIONS["newest"])
            connection.ask(self._request(world.group, group.generation - 1, next(iter(group.members.values()))), lambda _: None)
            world.at(2 * SECOND, connection.close)
        world.at(3 * SECOND, self._shadow)

    def _request(self, group: str, generation: int, member: Any) -> Any:
        return wire.HeartbeatRequest(
            group_id=group, generation_id=generation, member_id=member.id, group_instance_id=member.instance_id
        )

    def occasion(self, connection: Connection, asked: Asked, body: Any) -> bool:
        return connection.client_id == "shadow" and isinstance(body, wire.HeartbeatResponse) and body.error_code == 22

    def lie(self, asked: Asked, body: Any) -> Any:
        return replace(body, error_code=0)

    def proves(self, act: Seen, seen: list[Seen]) -> bool:
        return any(one.answer.generation_id > act.generation and one.answered_us < act.asked_us for one in joins(seen))


class StaleCommitAccepted(StaleAccepted):
    """The same by a commit."""

    def _request(self, group: str, generation: int, member: Any) -> Any:
        partition = wire.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
        return wire.OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=generation,
            member_id=member.id,
            group_instance_id=member.instance_id,
            topics=(wire.OffsetCommitRequestTopic(name="t", partitions=(partition,)),),
        )

    def occasion(self, connection: Connection, asked: Asked, body: Any) -> bool:
        refused = isinstance(body, wire.OffsetCommitResponse) and body.topics[0].partitions[0].error_code == 22
        return connection.client_id == "shadow" and refused

    def lie(self, asked: Asked, body: Any) -> Any:
        partition = wire.OffsetCommitResponsePartition(partition_index=0, error_code=0)
        return replace(body, topics=(wire.OffsetCommitResponseTopic(name="t", partitions=(partition,)),))


class StrangerAccepted(StaleAccepted):
    """A member id that nobody was given is let through."""

    rules = frozenset({"M-02", "O-02"})

    def _request(self, group: str, generation: int, member: Any) -> Any:
        return wire.HeartbeatRequest(group_id=group, generation_id=generation + 1, member_id="stranger")

    def occasion(self, connection: Connection, asked: Asked, body: Any) -> bool:
        return connection.client_id == "shadow" and isinstance(body, wire.HeartbeatResponse) and body.error_code == 25

    def proves(self, act: Seen, seen: list[Seen]) -> bool:
        if _roster_known(seen, act.generation, act.asked_us) is None:
            return False
        # After the next round the roster of this one no longer says anything; that it still stands must be known at the answer.
        return not any(one.answer.generation_id > act.generation and one.answered_us < act.answered_us for one in joins(seen))


class ValidRefused(Unlawful):
    """A heartbeat at the current generation is refused with ILLEGAL_GENERATION."""

    rules = frozenset({"G-03"})

    def occasion(self, connection: Connection, asked: Asked, body: Any) -> bool:
        return isinstance(body, wire.HeartbeatResponse) and body.error_code == 0

    def lie(self, asked: Asked, body: Any) -> Any:
        return replace(body, error_code=22)

    def proves(self, act: Seen, seen: list[Seen]) -> bool:
        """The generation was written before and, by a success asked after the refusal, was still the same later.

        One that is not written is lost with a load that no frame shows, and given again.
        """
        before = any(
            isinstance(one.answer, wire.SyncGroupResponse)
            and (one.error, one.generation) == (0, act.generation)
            and one.answered_us < act.asked_us
            for one in seen
        )
        after = any(one.asked_us > act.answered_us and not one.queued_behind and self._proves(one, act.generation) for one in seen)
        return before and after

    @staticmethod
    def _proves(one: Seen, generation: int) -> bool:
        if isinstance(one.answer, wire.JoinGroupResponse):
            return one.error == 0 and one.answer.generation_id == generation
        if isinstance(one.answer, wire.HeartbeatResponse):
            return one.generation == generation and (one.error == 0 or (one.error == 27 and one.api_version >= 3))
        return one.error == 0 and one.generation == generation


class MemberUnknown(Unlawful):
    """A heartbeat of a member in good standing is refused with UNKNOWN_MEMBER_ID."""

    rules = frozenset({"M-03", "T-03"})

    def commit_to(self, history: History) -> None:
        super().commit_to(history)
        self.accepted: dict[tuple[str, int], int] = {}  # (member id, generation) → when its heartbeat succeeded last

    def occasion(self, connection: Connection, asked: Asked, body: Any) -> bool:
        """A member whose heartbeat succeeded just before, in a generation in which everybody's has."""
        if not isinstance(body, wire.HeartbeatResponse) or body.error_code:
            return False
        generation, now_us = asked.body.generation_id, self.history.world.now_us
        before_us = self.accepted.get((asked.body.member_id, generation), 0)
        self.accepted[asked.body.member_id, generation] = now_us
        all_served = all((id_, generation) in self.accepted for id_ in _members(self.history))
        return all_served and now_us - before_us < 5 * SECOND

    def lie(self, asked: Asked, body: Any) -> Any:
        return replace(body, error_code=25)

    def proves(self, act: Seen, seen: list[Seen]) -> bool:
        """It is known to be a member, and was accepted a moment ago, in a round whose SyncGroups were all answered.

        A connection of that round is open still: else the broker may have been restarted since.
        """
        roster = _roster_known(seen, act.generation, act.asked_us)
        if roster is None or all(entry.member_id != act.request.member_id for entry in roster.members):
            return False
        ended = {one.connection for one in self.history.records if one.kind is Kind.CLOSE and one.at_us < act.answered_us}
        before = (one for one in joins(seen) if one.answered_us < act.asked_us and one.answer.generation_id == act.generation)
        if all(one.connection in ended for one in before):
            return False
        later_round = any(one.answer.generation_id > act.generation and one.asked_us < act.answered_us for one in joins(seen))
        recent = any(
            isinstance(one.answer, wire.HeartbeatResponse)
            and one.request.member_id == act.request.member_id
            and one.error == 0
            and act.asked_us - 5 * SECOND < one.asked_us
            and one.answered_us < act.asked_us
            for one in seen
        )
        synced = {
            one.request.member_id
            for one in seen
            if isinstance(one.answer, wire.SyncGroupResponse)
            and one.error == 0
            and one.generation == act.generation
            and one.answered_us < act.asked_us
        }
        return recent and not later_round and synced >= {entry.member_id for entry in roster.members}


class LiveGroupDeleted(Unlawful):
    """A group is deleted although it has members."""

    rules = frozenset({"E-24"})

    def commit_to(self, history: History) -> None:
        super().commit_to(history)
        for at_s in (15, 25, 35):
            history.world.at(at_s * SECOND, lambda: history.operator_acts(OPERATOR_DELETES))

    def occasion(self, connection: Connection, asked: Asked, body: Any) -> bool:
        return isinstance(body, wire.DeleteGroupsResponse) and body.results[0].error_code == NON_EMPTY_GROUP

    def lie(self, asked: Asked, body: Any) -> Any:
        return deleted(asked.body, 0)

    def proves(self, act: Seen, seen: list[Seen]) -> bool:
        """All have their assignments, one was served a moment ago, nobody asked to join or to leave since, and no connection ended."""
        before = [one for one in seen if one.answered_us < act.asked_us]
        generation = max((one.answer.generation_id for one in joins(before)), default=0)
        roster = _roster_known(before, generation, act.asked_us)
        if roster is None:
            return False
        ids = {entry.member_id for entry in roster.members}
        joined = [one for one in joins(before) if one.answer.generation_id == generation]
        since_us, connections = max(one.answered_us for one in joined), {one.connection for one in joined}
        for record in self.history.records:
            moves = record.kind is Kind.REQUEST and record.api_key in {JOIN_GROUP, LEAVE_GROUP} and record.at_us > since_us
            ends = record.kind is Kind.CLOSE and record.connection in connections
            if record.at_us < act.answered_us and (moves or ends):
                return False
        served = [one for one in before if one.error == 0 and one.generation == generation]
        synced = {one.request.member_id for one in served if isinstance(one.answer, wire.SyncGroupResponse)}
        recent = [
            one for one in served if isinstance(one.answer, wire.HeartbeatResponse) and act.asked_us - one.asked_us < 4 * SECOND
        ]
        return ids <= synced and any(one.request.member_id in ids for one in recent)


class WentBack(Unlawful):
    """A JoinGroup of a known member succeeds two generations lower."""

    rules = frozenset({"G-04"})
    least_acts = 6

    def commit_to(self, history: History) -> None:
        super().commit_to(history)
        self.issued: dict[int, str] = {}  # generation → the first who was given it

    def occasion(self, connection: Connection, asked: Asked, body: Any) -> bool:
        """The first answer of a generation: a later one may have been overtaken."""
        if not isinstance(body, wire.JoinGroupResponse) or body.error_code:
            return False
        first = self.issued.setdefault(body.generation_id, body.member_id) == body.member_id
        return first and body.generation_id >= 3 and bool(asked.body.member_id)

    def lie(self, asked: Asked, body: Any) -> Any:
        return replace(body, generation_id=body.generation_id - 2)

    def proves(self, act: Seen, seen: list[Seen]) -> bool:
        """A higher generation was proven before it was asked, and its roster names the member that asks."""
        earlier = [one.answer for one in joins(seen) if one.answered_us < act.asked_us]
        newest = max((answer.generation_id for answer in earlier), default=-1)
        roster = _roster_known(seen, newest, act.asked_us)
        by_then = [one for one in joins(seen) if one.answered_us < act.answered_us]
        overtaken = any(one.answer.generation_id > newest for one in by_then)
        known = roster is not None and any(entry.member_id == act.request.member_id for entry in roster.members)
        return act.answer.generation_id < newest and known and not overtaken


class ForeignId(Unlawful):
    """A member rejoins and is answered under the id of another."""

    rules = frozenset({"M-08"})

    def occasion(self, connection: Connection, asked: Asked, body: Any) -> bool:
        if not isinstance(body, wire.JoinGroupResponse) or body.error_code or not asked.body.member_id:
            return False
        return len(_members(self.history)) > 1

    def lie(self, asked: Asked, body: Any) -> Any:
        return replace(body, member_id=next(id_ for id_ in _members(self.history) if id_ != asked.body.member_id))

    def proves(self, act: Seen, seen: list[Seen]) -> bool:
        return True


class SwappedAssignment(Unlawful):
    """A member is given what the leader meant for another."""

    rules = frozenset({"A-05", "A-06"})

    def occasion(self, connection: Connection, asked: Asked, body: Any) -> bool:
        return isinstance(body, wire.SyncGroupResponse) and not body.error_code and self._other(body) is not None

    def _other(self, body: wire.SyncGroupResponse) -> bytes | None:
        members = self.history.coordinator.group.members.values()
        others = [one.assignment for one in members if one.assignment not in {b"", body.assignment}]
        return others[0] if others and body.assignment else None

    def lie(self, asked: Asked, body: Any) -> Any:
        return replace(body, assignment=self._other(body))

    def proves(self, act: Seen, seen: list[Seen]) -> bool:
        return any(
            isinstance(one.answer, wire.SyncGroupResponse)
            and one.generation == act.generation
            and any(entry.member_id == act.request.member_id for entry in one.request.assignments)
            and one.asked_us < act.answered_us
            for one in seen
        ) and self._complete_since(act, seen)

    def _complete_since(self, act: Seen, seen: list[Seen]) -> bool:
        """Whether the generation was completed after the capture had begun, or its leader might have submitted a plan before.

        A leader whose id is new shows it, and an answer at an earlier generation that was asked for when no late frame could come.
        """
        since_us = min(one.asked_us for one in seen if isinstance(one.request, wire.JoinGroupRequest | wire.SyncGroupRequest))
        unused = {one.answer.member_id for one in seen if getattr(one.answer, "error_code", 0) == MEMBER_ID_REQUIRED}
        for one in joins(seen):
            new_leader = bool(one.answer.members) and one.request.member_id in {"", *unused}
            unused.discard(one.request.member_id)
            earlier = one.answer.generation_id < act.generation and one.asked_us >= since_us + LATE_US
            if earlier or (new_leader and one.answer.generation_id <= act.generation):
                return True
        return False


class EmptiedAssignment(SwappedAssignment):
    """A member is given nothing although the leader meant something for it."""

    def lie(self, asked: Asked, body: Any) -> Any:
        return replace(body, assignment=b"")


class ForeignProtocol(Unlawful):
    """A member is told a protocol that nobody offered."""

    rules = frozenset({"P-03", "P-06"})

    def occasion(self, connection: Connection, asked: Asked, body: Any) -> bool:
        return isinstance(body, wire.JoinGroupResponse) and not body.error_code

    def lie(self, asked: Asked, body: Any) -> Any:
        return replace(body, protocol_name="invented")

    def proves(self, act: Seen, seen: list[Seen]) -> bool:
        """Brokers 2.3 and 2.4 tell a static member that returns what the group uses, whatever it offers."""
        returns = act.request.group_instance_id is not None and not act.request.member_id
        return act.api_version > 6 or not returns


class JoinForgotten(Unlawful):
    """The phase ends, the others are answered, and one JoinGroup is not."""

    rules = frozenset({"C-02", "R-01"})

    def occasion(self, connection: Connection, asked: Asked, body: Any) -> bool:
        if not isinstance(body, wire.JoinGroupResponse) or body.error_code or not asked.body.member_id:
            return False
        if asked.body.group_instance_id is not None:
            return False  # a static member is in the roster whether its JoinGroup had arrived or not
        return len(_members(self.history)) > 1 and body.leader != body.member_id

    def lie(self, asked: Asked, body: Any) -> Any:
        self.generation = body.generation_id
        self.member_id = body.member_id
        self.at_us = self.history.world.now_us
        return None

    def knowable(self, seen: list[Seen]) -> bool:
        """There is no answer to capture: the others were told, the roster names it, and a write would have taken no longer.

        One that was asked after the others were told may wait for the next join phase, unless heartbeats show that none is on.
        """
        told = [one for one in joins(seen) if self.done is not None and one.answer.generation_id == self.generation]
        if not any(entry.member_id == self.member_id for one in told for entry in one.answer.members):
            return False
        due_us, until_us = told[0].answered_us + WRITTEN_US, self._waited_until_us(seen)
        asked_us = next(one.at_us for one in self.history.records if (one.connection, one.exchange) == self.done)
        if asked_us > told[0].answered_us:
            due_us, until_us = self._no_phase_us(seen, asked_us), min(until_us, self._phase_us(seen, asked_us))
        return any(due_us < record.at_us < until_us for record in self.history.records)

    def _no_phase_us(self, seen: list[Seen], asked_us: int) -> int:
        """When it is known that no other join phase is on, for which a JoinGroup asked so late could wait."""
        beats = (one for one in seen if isinstance(one.answer, wire.HeartbeatResponse) and not one.error)
        succeeded = [one.answered_us for one in beats if one.asked_us > asked_us + WRITTEN_US]
        return min(succeeded, default=self.history.records[-1].at_us)

    def _phase_us(self, seen: list[Seen], asked_us: int) -> int:
        """When the next join phase is on, for all that heartbeats tell."""
        told = [one.answered_us for one in seen if one.error == REBALANCE_IN_PROGRESS and one.answered_us > asked_us]
        return min(told, default=self.history.records[-1].at_us)

    def _waited_until_us(self, seen: list[Seen]) -> int:
        """Until its connection ends, it asks again, or it has no place in the group any more; or to the end of the capture.

        While it waits it sends no heartbeat, so a coordinator that has forgotten its JoinGroup ends its session. A JoinGroup that the
        client had queued behind the forgotten one is answered in its place.
        """
        assert self.done is not None
        records = self.history.records
        closed = [one.at_us for one in records if one.kind is Kind.CLOSE and one.connection == self.done[0]]
        later = [one for one in records if one.kind is Kind.REQUEST and one.api_key == JOIN_GROUP and one.at_us > self.at_us]
        again = [one.at_us for one in later if decoded(one).member_id == self.member_id]
        over = [one.answered_us for one in seen if one.answered_us > self.at_us and self._is_over(one)]
        return min([*closed, *again, *over, records[-1].at_us])

    def _is_over(self, one: Seen) -> bool:
        """Whether this answer shows that the member waits no longer."""
        if isinstance(one.answer, wire.HeartbeatResponse):
            return one.error == UNKNOWN_MEMBER_ID and one.request.member_id == self.member_id
        if not isinstance(one.answer, wire.JoinGroupResponse) or one.error:
            return False
        roster = [entry.member_id for entry in one.answer.members]
        dropped = one.answer.generation_id > self.generation and bool(roster) and self.member_id not in roster
        return dropped or one.answer.member_id == self.member_id


def lived(plan: Plan, act: type[Unlawful] | None, random: Random) -> History:
    """A life by this plan that is over, with the act in it at one of the first occasions, if there is one."""
    life = plan.life()
    if act is not None:
        act(random.randrange(3)).commit_to(life)
    life.run()
    return life


ACTS: tuple[type[Unlawful], ...] = (
    StaleAccepted,
    StaleCommitAccepted,
    StrangerAccepted,
    ValidRefused,
    MemberUnknown,
    WentBack,
    ForeignId,
    SwappedAssignment,
    EmptiedAssignment,
    ForeignProtocol,
    JoinForgotten,
    LiveGroupDeleted,
)

"""A lawful coordinator of one classic group, as Kafka 4.x behaves: states, timers, parked requests, the log, failover.

Each branch stands for a row of the protocol's decision tables; the order of the checks matters for the error that a client sees.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from coordinator_model import wire
from tests.coordinator_model.reference.world import MS, SECOND, Asked, Connection, Reply, World

NEW_MEMBER_US = 300 * SECOND
WRITE_TIMEOUT_US = 5 * SECOND
NEWEST = (4, 3, 1)


class Member:
    def __init__(self, id_: str, request: wire.JoinGroupRequest) -> None:
        self.id = id_
        self.instance_id = request.group_instance_id
        self.update(request)
        self.assignment = b""
        self.join_reply: Reply | None = None
        self.sync_reply: Reply | None = None
        self.is_new = False
        self.timer = 0

    def update(self, request: wire.JoinGroupRequest) -> None:
        self.session_us = request.session_timeout_ms * MS
        self.rebalance_us = (request.session_timeout_ms if request.rebalance_timeout_ms < 0 else request.rebalance_timeout_ms) * MS
        self.protocols = [(protocol.name, protocol.metadata) for protocol in request.protocols]

    def matches(self, request: wire.JoinGroupRequest) -> bool:
        return self.protocols == [(protocol.name, protocol.metadata) for protocol in request.protocols]


class Group:
    def __init__(self) -> None:
        self.state = "E"
        self.generation = 0
        self.protocol = ""
        self.leader = ""
        self.members: dict[str, Member] = {}
        self.instances: dict[str, str] = {}
        self.pending: dict[str, int] = {}
        self.pending_sync: set[str] = set()
        self.initial = False
        self.new_member_added = False
        self.phase = 0  # counts phases: a timer of an older one is dead

    def parked(self) -> int:
        return sum(1 for member in self.members.values() if member.join_reply is not None)

    def persisted(self) -> Group:
        """What a new coordinator would load: no timers, no parked requests, only the selected protocol."""
        loaded = copy.copy(self)
        loaded.members = {}
        for id_, member in self.members.items():
            other = copy.copy(member)
            other.join_reply = other.sync_reply = None
            other.is_new = False
            other.protocols = [(name, data) for name, data in member.protocols if name == self.protocol]
            loaded.members[id_] = other
        loaded.instances = dict(self.instances)
        loaded.pending = {}
        loaded.pending_sync = set()
        loaded.state = "S" if loaded.members else "E"
        return loaded


class Write:
    """What is in the log, and counts, but is not committed yet."""

    def __init__(self, commit: Callable[[], None], then: Callable[[], None], lost: Callable[[int], None]) -> None:
        self.commit = commit
        self._then = then
        self._lost = lost
        self._answered = False

    def answer(self, error: int) -> None:
        if not self._answered:
            self._answered = True
            if error:
                self._lost(error)
            else:
                self._then()


class Coordinator:
    """One broker. It coordinates the group while ``active``; otherwise it answers NOT_COORDINATOR."""

    def __init__(
        self, world: World, name: str, log: list[Group], *, release: tuple[int, ...] = NEWEST, initial_delay_ms: int = 3_000
    ) -> None:
        self.world = world
        self.name = name
        self.log = log  # the group's records, shared by all brokers: the last one is what a load finds
        self.group = Group()
        self.active = False
        self.loading = False
        self.epoch = 0  # counts incarnations: what was scheduled in an older one is void
        self._written_us = 0
        self._unwritten: list[Write] = []  #: in their order
        self.release = release
        self.writes_replacements = release >= (2, 6, 1)  # KAFKA-10284
        self.initial_delay_us = initial_delay_ms * MS
        world.brokers[name] = self

    # -------------------------------------------------------------------------------------------- leadership

    def become_coordinator(self, load_us: int) -> None:
        self.active = self.loading = True
        self.epoch += 1
        self.later(load_us, self._loaded)

    def _loaded(self) -> None:
        self.loading = False
        self.group = self.log[-1].persisted() if self.log else Group()
        for member in self.group.members.values():
            self._restart_session(member)

    def resign(self) -> None:
        """Unloads properly: whoever is parked is told to look elsewhere."""
        self.unload()
        for member in self.group.members.values():
            self._answer_join(member, error_join(16, member.id))
            self._answer_sync(member, wire.SyncGroupResponse(error_code=16))

    def unload(self) -> None:
        """Some of what is not committed yet has reached the followers, and is in the log although it is answered 16."""
        self.active = self.loading = False
        self.epoch += 1
        unwritten, self._unwritten = self._unwritten, []
        for write in unwritten[: self.world.random.randint(0, len(unwritten)) if unwritten else 0]:
            write.commit()

    def later(self, delay_us: int, action: Callable[[], None]) -> None:
        epoch = self.epoch
        self.world.at(delay_us, lambda: action() if self.epoch == epoch else None)

    def persist(self, then: Callable[[], None], lost: Callable[[int], None] = lambda _: None) -> None:
        """Write the group's record.

        :param lost: called with the error if the group moves away before that is done, or the broker loses patience.
        """
        record = self.group.persisted()
        self.written(then, lost, lambda: self.log.append(record))

    def written(self, then: Callable[[], None], lost: Callable[[int], None], commit: Callable[[], None] = lambda: None) -> None:
        """Writes are committed in their order. What takes too long is answered 15, since 4.0, and is committed all the same."""
        self._written_us = max(self._written_us, self.world.now_us + self.world.replication_us())
        self.once_written(then, lost, commit)

    def once_written(
        self, then: Callable[[], None], lost: Callable[[int], None], commit: Callable[[], None] = lambda: None
    ) -> None:
        """Wait for all writes so far."""
        epoch, write = self.epoch, Write(commit, then, lost)
        self._unwritten.append(write)

        def done() -> None:
            if self.epoch == epoch:
                self._unwritten.remove(write)
                commit()
                write.answer(0)
            else:
                write.answer(16)

        takes_us = self._written_us - self.world.now_us
        self.world.at(takes_us, done)
        if takes_us > WRITE_TIMEOUT_US and self.release >= (4,):
            self.world.at(WRITE_TIMEOUT_US, lambda: write.answer(15 if self.epoch == epoch else 16))

    # -------------------------------------------------------------------------------------------- requests

    def handle(self, connection: Connection, asked: Asked, reply: Reply) -> None:
        match body := asked.body:
            case wire.JoinGroupRequest():
                self._guarded(lambda error: error_join(error, body.member_id), lambda: self._join(connection, asked, reply), reply)
            case wire.SyncGroupRequest():
                if self._names_no_protocol(asked):
                    reply(wire.SyncGroupResponse(error_code=23))
                elif self.active and self.loading and self.release < (4,):
                    reply(wire.SyncGroupResponse(error_code=27))
                else:
                    self._guarded(lambda error: wire.SyncGroupResponse(error_code=error), lambda: self._sync(asked, reply), reply)
            case wire.HeartbeatRequest():
                if self.active and self.loading:
                    reply(wire.HeartbeatResponse(error_code=0))  # blind: nothing is known yet
                else:
                    self._guarded(
                        lambda error: wire.HeartbeatResponse(error_code=error), lambda: self._heartbeat(body, reply), reply
                    )
            case wire.LeaveGroupRequest():
                self._guarded(lambda error: wire.LeaveGroupResponse(error_code=error), lambda: self._leave(body, reply), reply)
            case wire.OffsetCommitRequest():
                self._guarded(lambda error: committed(body, error), lambda: self._commit(asked, reply), reply)
            case wire.TxnOffsetCommitRequest():
                self._guarded(lambda error: committed_in_transaction(body, error), lambda: self._txn_commit(asked, reply), reply)
            case wire.DeleteGroupsRequest():
                if self.active and not self.loading:
                    reply(deleted(body, self._delete()))
                else:
                    self._guarded(lambda error: deleted(body, error), lambda: None, reply)

    def _guarded(self, refusal: Callable[[int], Any], action: Callable[[], None], reply: Reply) -> None:
        if not self.active:
            reply(refusal(16))
        elif self.loading:
            reply(refusal(14))
        elif self.group.state == "D":
            reply(refusal(15 if self.release >= (2, 3) else 25))
        else:
            action()

    @property
    def is_unknown(self) -> bool:
        """There is no such group: nothing was ever asked of it, or it was deleted."""
        group = self.group
        return not group.members and not group.pending and group.generation == 0

    # -------------------------------------------------------------------------------------------- JoinGroup

    def _join(self, connection: Connection, asked: Asked, reply: Reply) -> None:
        group, body = self.group, asked.body
        id_, instance_id = body.member_id, body.group_instance_id
        if id_ and self.is_unknown:
            reply(error_join(25, id_))
        elif not self._supported(body):
            reply(error_join(23, id_))
        elif not id_ and instance_id is not None and instance_id in group.instances:
            self._replace(asked, reply)
        elif not id_ and instance_id is not None:
            self._add(self._new_id(instance_id), body, reply)
        elif not id_ and asked.api_version < 4:
            self._add(self._new_id(connection.client_id), body, reply)
        elif not id_:
            new_id = self._new_id(connection.client_id)
            group.pending[new_id] = self.world.now_us
            self.later(body.session_timeout_ms * MS, lambda: self._pending_expired(new_id))
            reply(error_join(79, new_id))
        elif id_ in group.pending and instance_id is not None:
            reply(error_join(-1, id_))
        elif id_ in group.pending:
            del group.pending[id_]
            self._add(id_, body, reply)
        elif (error := self._identity_error(id_, instance_id)) != 0:
            reply(error_join(error, id_))
        else:
            self._rejoin(group.members[id_], body, reply)

    def _rejoin(self, member: Member, body: wire.JoinGroupRequest, reply: Reply) -> None:
        group = self.group
        unchanged = member.matches(body)
        if group.state == "P":
            self._park_join(member, body, reply)
            self._maybe_complete()
        elif group.state == "K" and unchanged:  # noqa: SIM114 - each branch is a row of the table
            reply(self._success(member))
        elif group.state == "S" and member.id != group.leader and unchanged:
            reply(self._success(member))
        elif group.state in "KS":
            self._park_join(member, body, reply)
            self._prepare()
        else:
            reply(error_join(25, member.id))

    def _park_join(self, member: Member, body: wire.JoinGroupRequest, reply: Reply) -> None:
        member.update(body)
        member.join_reply = reply  # an earlier one is never answered

    def _add(self, id_: str, body: wire.JoinGroupRequest, reply: Reply) -> None:
        group = self.group
        member = group.members[id_] = Member(id_, body)
        member.is_new = True
        member.join_reply = reply
        if member.instance_id is not None:
            group.instances[member.instance_id] = id_
        group.leader = group.leader or id_
        self._session_timer(member, NEW_MEMBER_US)
        if group.state == "P":
            group.new_member_added = group.new_member_added or group.initial
            self._maybe_complete()
        else:
            self._prepare()

    def _replace(self, asked: Asked, reply: Reply) -> None:
        group, body = self.group, asked.body
        assert body.group_instance_id is not None
        old = group.members.pop(group.instances[body.group_instance_id])
        chosen_before = group.protocol
        new = Member(self._new_id(body.group_instance_id), body)
        new.assignment = old.assignment
        group.members[new.id] = new
        group.instances[body.group_instance_id] = new.id
        self._answer_join(old, error_join(82, old.id))
        self._answer_sync(old, wire.SyncGroupResponse(error_code=82))
        old.timer += 1
        led = group.leader == old.id
        if led:
            group.leader = new.id
        self._restart_session(new)
        if (group.state == "S" and self._choose() == chosen_before) or (group.state == "K" and self.release < (2, 5)):
            answer = self._success(new)
            if asked.api_version >= 9:
                answer.skip_assignment = led
            elif led:  # it must not take itself for the leader: it would assign anew
                answer.leader, answer.members = old.id, ()
            if self.writes_replacements:
                self.persist(lambda: reply(answer), lambda error: reply(error_join(error, "")))
            else:
                reply(answer)
        else:
            new.join_reply = reply
            if group.state == "P":
                self._maybe_complete()
            else:
                self._prepare()

    def _supported(self, body: wire.JoinGroupRequest) -> bool:
        offered = {protocol.name for protocol in body.protocols}
        if not self.group.members:
            return bool(offered) and bool(body.protocol_type)
        others = [member for member in self.group.members.values() if member.id != body.member_id]
        return any(all(any(name == offer for name, _ in member.protocols) for member in others) for offer in offered)

    def _choose(self) -> str:
        members = list(self.group.members.values())
        candidates = set.intersection(*({name for name, _ in member.protocols} for member in members))
        votes: dict[str, int] = {}
        for member in members:
            vote = next(name for name, _ in member.protocols if name in candidates)
            votes[vote] = votes.get(vote, 0) + 1
        return max(votes, key=lambda name: (votes[name], name))

    def _success(self, member: Member) -> wire.JoinGroupResponse:
        group = self.group
        roster: tuple[wire.JoinGroupResponseMember, ...] = ()
        if member.id == group.leader:
            roster = tuple(
                wire.JoinGroupResponseMember(
                    member_id=one.id, group_instance_id=one.instance_id, metadata=dict(one.protocols).get(group.protocol, b"")
                )
                for one in group.members.values()
            )
        return wire.JoinGroupResponse(
            error_code=0,
            generation_id=group.generation,
            protocol_type="consumer",
            protocol_name=group.protocol,
            leader=group.leader,
            member_id=member.id,
            members=roster,
        )

    # -------------------------------------------------------------------------------------------- the join phase

    def _prepare(self) -> None:
        group, before = self.group, self.group.state
        group.initial = before == "E"
        group.new_member_added = False
        group.state = "P"
        if before == "K":
            for member in group.members.values():
                member.assignment = b""
                self._answer_sync(member, wire.SyncGroupResponse(error_code=27))
        group.phase += 1
        longest = max((member.rebalance_us for member in group.members.values()), default=0)
        if group.initial:
            remaining = max(longest - self.initial_delay_us, 0)
            self._initial_timer(min(self.initial_delay_us, max(longest, self.initial_delay_us)), remaining)
        elif not self._maybe_complete():
            self._join_timer(longest)

    def _initial_timer(self, delay_us: int, remaining_us: int) -> None:
        group, phase = self.group, self.group.phase

        def fire() -> None:
            if group.phase != phase or group.state != "P":
                return
            if group.new_member_added and remaining_us:
                group.new_member_added = False
                delay = min(self.initial_delay_us, remaining_us)
                self._initial_timer(delay, max(remaining_us - delay, 0))
            else:
                self._complete()

        self.later(delay_us, fire)

    def _join_timer(self, delay_us: int) -> None:
        group, phase = self.group, self.group.phase
        self.later(delay_us, lambda: self._complete() if group.phase == phase and group.state == "P" else None)

    def _maybe_complete(self) -> bool:
        group = self.group
        if group.state == "P" and not group.initial and group.parked() == len(group.members) and not group.pending:
            self._complete()
            return True
        return False

    def _complete(self) -> None:
        group = self.group
        for member in list(group.members.values()):
            if member.join_reply is None and member.instance_id is None:
                self._drop(member)
        present = [member for member in group.members.values() if member.join_reply is not None]
        if group.members and not present:
            group.phase += 1
            self._join_timer(max(member.rebalance_us for member in group.members.values()))
            return
        group.phase += 1
        group.generation += 1
        group.initial = False
        if not group.members:
            group.state, group.leader, group.protocol = "E", "", ""
            self.persist(lambda: None)
            return
        if group.leader not in {member.id for member in present}:
            group.leader = self.world.random.choice(present).id
        group.protocol = self._choose()
        group.state = "K"
        group.pending_sync = set(group.members)
        for member in group.members.values():
            answer = self._success(member)
            self._answer_join(member, answer)
            member.is_new = False
            self._restart_session(member)
        generation = group.generation
        if self.release >= (2, 8, 1):  # KAFKA-12890
            self.later(max(member.rebalance_us for member in group.members.values()), lambda: self._sync_expired(generation))

    def _sync_expired(self, generation: int) -> None:
        group = self.group
        if group.generation != generation or group.state not in "KS" or not group.pending_sync:
            return
        for id_ in sorted(group.pending_sync):
            member = group.members.get(id_)
            if member is not None:
                self._drop(member)
        self._prepare()

    # -------------------------------------------------------------------------------------------- SyncGroup

    @staticmethod
    def _names_no_protocol(asked: Asked) -> bool:
        body = asked.body
        return asked.api_version >= 5 and (body.protocol_type is None or body.protocol_name is None)

    def _sync(self, asked: Asked, reply: Reply) -> None:
        group, body = self.group, asked.body
        error = self._identity_error(body.member_id, body.group_instance_id)
        if group.state == "E":
            error = 25
        elif not error and body.generation_id != group.generation:
            error = 22
        elif not error and asked.api_version >= 5 and (body.protocol_type, body.protocol_name) != ("consumer", group.protocol):
            error = 23
        elif not error and group.state == "P":
            error = 27
        if error:
            reply(wire.SyncGroupResponse(error_code=error))
            return
        member = group.members[body.member_id]
        group.pending_sync.discard(member.id)
        if group.state == "S":
            if self.release < (4,):
                self._restart_session(member)
            reply(self._assigned(member))
            return
        member.sync_reply = reply
        if member.id == group.leader:
            self._assign({entry.member_id: entry.assignment for entry in body.assignments})

    def _assign(self, plan: dict[str, bytes]) -> None:
        group, generation = self.group, self.group.generation
        for member in group.members.values():
            member.assignment = plan.get(member.id, b"")

        def committed() -> None:
            if group.state != "K" or group.generation != generation:
                return
            group.state = "S"
            for member in group.members.values():
                if member.sync_reply is not None:
                    self._answer_sync(member, self._assigned(member))
                    self._restart_session(member)

        def lost(error: int) -> None:
            if error == 16 or group.state != "K" or group.generation != generation:
                return  # whoever is held was told as the group was unloaded
            for member in group.members.values():
                member.assignment = b""
                self._answer_sync(member, wire.SyncGroupResponse(error_code=error))
            self._prepare()

        self.persist(committed, lost)

    def _assigned(self, member: Member) -> wire.SyncGroupResponse:
        return wire.SyncGroupResponse(
            error_code=0, protocol_type="consumer", protocol_name=self.group.protocol, assignment=member.assignment
        )

    # -------------------------------------------------------------------------------------------- the others

    def _heartbeat(self, body: wire.HeartbeatRequest, reply: Reply) -> None:
        group = self.group
        instance_id = body.group_instance_id
        if self.release < (3,) and instance_id not in group.instances:
            instance_id = None
        error = 25 if group.state == "E" else self._identity_error(body.member_id, instance_id)
        if not error and group.state == "K" and self.release < (2, 3):
            error = 27
        if not error and body.generation_id != group.generation:
            error = 22
        if not error and group.state == "K" and self.release < (2, 6, 1):
            error = 27
        if not error:
            self._restart_session(group.members[body.member_id])
            error = 27 if group.state == "P" else 0
        reply(wire.HeartbeatResponse(error_code=error))

    def _leave(self, body: wire.LeaveGroupRequest, reply: Reply) -> None:
        group = self.group
        outcomes = []
        left = lost = False
        for entry in body.members or (wire.LeaveGroupRequestMemberIdentity(member_id=body.member_id),):
            if not entry.member_id and entry.group_instance_id in group.instances:
                id_, error = group.instances[entry.group_instance_id], 0
            elif entry.member_id in group.pending:
                id_, error = entry.member_id, 0
            else:
                id_, error = entry.member_id, self._identity_error(entry.member_id, entry.group_instance_id)
            if not error:
                group.pending.pop(id_, None)
                if id_ in group.members:
                    self._drop(group.members[id_])
                    lost = True
                left = True
            outcomes.append(
                wire.LeaveGroupResponseMemberResponse(
                    member_id=entry.member_id, group_instance_id=entry.group_instance_id, error_code=error
                )
            )
        if body.members:
            answer = wire.LeaveGroupResponse(error_code=0, members=tuple(outcomes))
        else:
            answer = wire.LeaveGroupResponse(error_code=outcomes[0].error_code)
        if left and self.release >= (4,):  # a refusal does not wait
            self.once_written(lambda: reply(answer), lambda error: reply(wire.LeaveGroupResponse(error_code=error)))
        else:
            reply(answer)
        if group.state in "KS" and (lost or (left and self.release >= (4,))):
            self._prepare()
        elif left:
            self._maybe_complete()

    def _looks_for_member(self, body: wire.OffsetCommitRequest | wire.TxnOffsetCommitRequest) -> bool:
        """Return True if a commit without a generation is checked although there are no members (KAFKA-14201)."""
        return (3, 0) <= self.release < (3, 3) and bool(body.member_id or body.group_instance_id is not None)

    def _commit(self, asked: Asked, reply: Reply) -> None:
        group, body = self.group, asked.body
        generation = body.generation_id_or_member_epoch
        if generation < 0 and group.state == "E":
            reply(committed(body, 25 if self._looks_for_member(body) else 0))  # a client that assigns its partitions itself
            return
        if self.is_unknown:
            reply(committed(body, 22 if asked.api_version < 9 or self.release < (4,) else 69))
            return
        error = self._identity_error(body.member_id, body.group_instance_id)
        if error != 82 and group.state == "K" and self.release < (2, 4):
            error = 27
        if not error and generation != group.generation:
            error = 22
        if not error and group.state == "K":
            error = 27
        if not error:
            self._restart_session(group.members[body.member_id])
            self.written(lambda: reply(committed(body, 0)), lambda error: reply(committed(body, error)))
        else:
            reply(committed(body, error))

    def _txn_commit(self, asked: Asked, reply: Reply) -> None:
        group, body = self.group, asked.body
        nobody = not body.member_id and body.group_instance_id is None
        if asked.api_version < 3 or (body.generation_id_or_member_epoch < 0 and nobody):
            error = 0
        elif body.generation_id_or_member_epoch < 0 and group.state == "E":
            error = 25 if self._looks_for_member(body) else 0
        elif self.is_unknown:
            error = 22
        else:
            error = self._identity_error(body.member_id, body.group_instance_id)
            if not error and body.generation_id_or_member_epoch != group.generation:
                error = 22
        reply(committed_in_transaction(body, error))

    def _delete(self) -> int:
        if self.is_unknown or self.group.state == "D":
            return 69
        if self.group.state != "E":
            return 68
        self.group = Group()
        return 0

    def expire(self) -> None:
        """Forget the group if it is empty and nothing keeps its offsets."""
        if self.active and not self.loading and self.group.state == "E":
            self.group = Group()
            self.log.append(Group())

    # -------------------------------------------------------------------------------------------- members

    def _identity_error(self, id_: str, instance_id: str | None) -> int:
        group = self.group
        if instance_id is not None:
            holder = group.instances.get(instance_id)
            if holder is None:
                return 25
            if holder != id_:
                return 82
        return 0 if id_ in group.members else 25

    def _new_id(self, prefix: str) -> str:
        return f"{prefix}-{self.world.random.getrandbits(64):016x}"

    def _pending_expired(self, id_: str) -> None:
        if self.group.pending.pop(id_, None) is not None:
            self._maybe_complete_early()

    def _restart_session(self, member: Member) -> None:
        self._session_timer(member, member.session_us)

    def _session_timer(self, member: Member, delay_us: int) -> None:
        member.timer += 1
        timer = member.timer

        def fire() -> None:
            if member.timer != timer or self.group.members.get(member.id) is not member:
                return
            if (member.join_reply is not None or member.sync_reply is not None) and not member.is_new:
                return
            self._remove(member)

        self.later(delay_us, fire)

    def _drop(self, member: Member) -> None:
        group = self.group
        del group.members[member.id]
        group.pending_sync.discard(member.id)
        if member.instance_id is not None and group.instances.get(member.instance_id) == member.id:
            del group.instances[member.instance_id]
        member.timer += 1
        self._answer_join(member, error_join(25, ""))
        self._answer_sync(member, wire.SyncGroupResponse(error_code=25))
        if group.leader == member.id:
            group.leader = next(iter(group.members), "")

    def _remove(self, member: Member) -> None:
        self._drop(member)
        if self.group.state in "KS":
            self._prepare()
        elif self.group.state == "P":
            self._maybe_complete_early()

    def _maybe_complete_early(self) -> None:
        """An expiry also ends a phase that came from Empty, once everybody who remains is parked."""
        group = self.group
        if group.state == "P" and group.parked() == len(group.members) and not group.pending:
            self._complete()

    @staticmethod
    def _answer_join(member: Member, body: Any) -> None:
        reply, member.join_reply = member.join_reply, None
        if reply is not None:
            reply(body)

    @staticmethod
    def _answer_sync(member: Member, body: Any) -> None:
        reply, member.sync_reply = member.sync_reply, None
        if reply is not None:
            reply(body)


def error_join(error: int, member_id: str) -> wire.JoinGroupResponse:
    echoed = member_id if error in {16, 14, 79, 25, 82, 23, 15} else ""
    return wire.JoinGroupResponse(error_code=error, generation_id=-1, protocol_name=None, leader="", member_id=echoed)


def committed(body: wire.OffsetCommitRequest, error: int) -> wire.OffsetCommitResponse:
    return wire.OffsetCommitResponse(
        topics=tuple(
            wire.OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=tuple(
                    wire.OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=error)
                    for partition in topic.partitions
                ),
            )
            for topic in body.topics
        )
    )


def committed_in_transaction(body: wire.TxnOffsetCommitRequest, error: int) -> wire.TxnOffsetCommitResponse:
    return wire.TxnOffsetCommitResponse(
        topics=tuple(
            wire.TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=tuple(
                    wire.TxnOffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=error)
                    for partition in topic.partitions
                ),
            )
            for topic in body.topics
        )
    )


def deleted(body: wire.DeleteGroupsRequest, error: int) -> wire.DeleteGroupsResponse:
    return wire.DeleteGroupsResponse(
        results=tuple(wire.DeleteGroupsResponseDeletableGroupResult(group_id=name, error_code=error) for name in body.groups_names)
    )

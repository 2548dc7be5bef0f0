"""The reference coordinator with its state beside each answer: what the protocol's table is held against."""

from __future__ import annotations

from typing import Any, NamedTuple

from coordinator_model import wire
from coordinator_model.groups.protocol.classic import Condition, Generation, Sender
from coordinator_model.groups.protocol.table import Effect, Moment
from coordinator_model.groups.responses import error_codes
from coordinator_model.wire.constants import COORDINATOR_NOT_AVAILABLE
from tests.coordinator_model.reference.coordinator import Coordinator, Group, Member
from tests.coordinator_model.reference.world import Asked, Connection, Reply


class Case(NamedTuple):
    """An answer, or that a request was held, and what was so when the coordinator acted."""

    api_key: int
    moment: Moment
    answer: int | None  #: error code; None if the request is held
    effects: frozenset[Effect]


class ObservedReply:
    """Notes what is so when a held request is answered."""

    def __init__(self, coordinator: ObservedCoordinator, asked: Asked, reply: Reply) -> None:
        self.coordinator = coordinator
        self.asked = asked
        self.reply = reply
        self.answer: int | None = None

    def __call__(self, body: Any) -> None:
        self.answer = self.coordinator.error_of(self.asked.api_key, body)
        self.reply(body)


class ObservedCoordinator(Coordinator):
    cases: set[Case]  #: shared by all brokers of a history

    def handle(self, connection: Connection, asked: Asked, reply: Reply) -> None:
        observed = ObservedReply(self, asked, reply)
        moment, before = self.moment(asked), snapshot(self.group)
        held_before = len(self._held)
        super().handle(connection, asked, observed)
        held = self._is_held(observed) or observed in self._held[held_before:]
        answer = None if held else observed.answer or 0  # without an answer yet, it is being written
        self.cases.add(Case(asked.api_key, moment, answer, effects(before, snapshot(self.group), moment, asked.body)))

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._held: list[ObservedReply] = []  #: held requests that were answered

    def _is_held(self, reply: ObservedReply) -> bool:
        return any(reply in {one.join_reply, one.sync_reply} for one in self.group.members.values())

    # The reference's own are static: nothing else than the member is needed to answer it.
    def _answer_join(self, member: Member, body: Any) -> None:  # type: ignore[override]
        self._note(member, member.join_reply, body)
        super()._answer_join(member, body)

    def _answer_sync(self, member: Member, body: Any) -> None:  # type: ignore[override]
        self._note(member, member.sync_reply, body)
        super()._answer_sync(member, body)

    def _note(self, member: Member, reply: Reply | None, body: Any) -> None:
        if not isinstance(reply, ObservedReply):
            return
        self._held.append(reply)
        asked = reply.asked
        if self.error_of(asked.api_key, body) == COORDINATOR_NOT_AVAILABLE:
            return  # what is not replicated in time is answered by the runtime, and not by the group
        moment = Moment(
            held=True,
            phase=self._phase(),
            sender=self._sender(member.id, member.instance_id),
            generation=self._generation(asked.body),
            conditions=frozenset(),
            version=asked.api_version,
            release=self.release,
        )
        timer = member.timer
        # Whether the session starts anew is seen once the coordinator is done.
        self.world.at(
            0,
            lambda: self.cases.add(
                Case(
                    asked.api_key,
                    moment,
                    self.error_of(asked.api_key, body),
                    frozenset({Effect.SESSION} if member.timer > timer and self._is_member(member) else ()),
                )
            ),
        )

    def error_of(self, api_key: int, body: Any) -> int:
        """The error of an answer about one group and one member."""
        return next((code for code in error_codes(api_key, body, self.world.group) if code), 0)

    def _is_member(self, member: Member) -> bool:
        return self.group.members.get(member.id) is member

    # -------------------------------------------------------------------------------------------- what is so

    def moment(self, asked: Asked) -> Moment:
        body = asked.body
        if isinstance(body, wire.LeaveGroupRequest) and body.members:
            id_, instance_id = body.members[0].member_id, body.members[0].group_instance_id
        else:
            id_, instance_id = getattr(body, "member_id", ""), getattr(body, "group_instance_id", None)
        sender = self._sender(id_, instance_id)
        return Moment(
            held=False,
            phase=self._phase(),
            sender=sender,
            generation=self._generation(body),
            conditions=frozenset(self._conditions(asked, sender)),
            version=asked.api_version,
            release=self.release,
        )

    def _phase(self) -> str:
        if not self.active:
            return "N"
        if self.loading:
            return "L"
        return "-" if self.is_unknown and self.group.state == "E" else self.group.state

    def _sender(self, id_: str, instance_id: str | None) -> Sender:
        group = self.group
        holder = group.instances.get(instance_id or "")
        if not id_:
            return Sender.NEW if instance_id is None else Sender.NEW_STATIC if holder is None else Sender.RETURNING
        if id_ in group.pending:
            return Sender.PENDING if instance_id is None else Sender.PENDING_STATIC
        if holder is not None and holder != id_:
            return Sender.FENCED
        if id_ not in group.members:
            return Sender.STRANGER
        return Sender.RENAMED if instance_id is not None and holder is None else Sender.MEMBER

    def _generation(self, body: Any) -> Generation:
        named = getattr(body, "generation_id", getattr(body, "generation_id_or_member_epoch", -1))
        if named < 0:
            return Generation.NONE
        return Generation.SAME if named == self.group.generation else Generation.OTHER

    def _conditions(self, asked: Asked, sender: Sender) -> set[Condition]:
        group, body = self.group, asked.body
        found: set[Condition] = set()
        if isinstance(body, wire.SyncGroupRequest) and asked.api_version >= 5:
            if body.protocol_type is None or body.protocol_name is None:
                found.add(Condition.NAMES_NONE)
            elif (body.protocol_type, body.protocol_name) != ("consumer", group.protocol):
                found.add(Condition.NAMES_OTHER)
        if isinstance(body, wire.JoinGroupRequest):
            if not self._supported(body):
                return {Condition.UNSUPPORTED}
            if sender is Sender.MEMBER:
                found.add(Condition.LEADER if body.member_id == group.leader else Condition.FOLLOWER)
                found.add(Condition.UNCHANGED if group.members[body.member_id].matches(body) else Condition.CHANGED)
            if sender is Sender.RETURNING:
                found.add(Condition.KEEPS if self._would_choose(body) == group.protocol else Condition.SWITCHES)
        return found

    def _would_choose(self, body: wire.JoinGroupRequest) -> str:
        """By a count of its own: for each protocol that all support, the members that prefer it."""
        replaced = self.group.instances[body.group_instance_id or ""]
        offers = [[name for name, _ in one.protocols] for id_, one in self.group.members.items() if id_ != replaced]
        offers.append([protocol.name for protocol in body.protocols])
        common = set(offers[0]).intersection(*offers[1:])
        favourites = [next(name for name in offer if name in common) for offer in offers]
        return max(sorted(common, reverse=True), key=lambda name: (favourites.count(name), name))


class Snapshot(NamedTuple):
    members: dict[str, int]  #: member id → how often its session began
    pending: frozenset[str]
    phases: int


def snapshot(group: Group) -> Snapshot:
    return Snapshot({id_: one.timer for id_, one in group.members.items()}, frozenset(group.pending), group.phase)


def effects(before: Snapshot, after: Snapshot, moment: Moment, body: Any) -> frozenset[Effect]:
    """What a request did; a join phase that it began and that is over already counts too."""
    found = set()
    came, went = after.members.keys() - before.members.keys(), before.members.keys() - after.members.keys()
    if came:
        found.add(Effect.REPLACED if went else Effect.ADDED)
    elif went or before.pending - after.pending:
        found.add(Effect.REMOVED)
    if after.pending - before.pending:
        found.add(Effect.ISSUED)
    if moment.phase != "P" and after.phases != before.phases:
        found.add(Effect.PREPARES)
    anew = [id_ for id_ in before.members.keys() & after.members.keys() if after.members[id_] != before.members[id_]]
    if anew == [getattr(body, "member_id", "")] and after.phases == before.phases:
        found.add(Effect.SESSION)
    return frozenset(found)

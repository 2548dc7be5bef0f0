"""One rebalance of a group, from what began it to its record, and the recorder that makes it and its events.

It comes after all that finds out what happened, and decides nothing. What begins a rebalance, who holds partitions meanwhile and what ends
it differ by type of group: :mod:`~coordinator_model.groups.classic.rebalance` and :mod:`~coordinator_model.groups.epochs.rebalance`.

*Blindness ends a rebalance*: what a gap hides is not counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from coordinator_model.counters import Cost
from coordinator_model.events import (
    NOT_SEEN,
    FramePlace,
    GroupEvent,
    LostMember,
    MemberEvent,
    MemberFenced,
    MemberToldToRejoin,
    PhaseEnded,
    RebalanceBegan,
    RebalanceFinished,
    SightLost,
    SightRegained,
    TookPart,
    Unheld,
    WaitedFor,
)
from coordinator_model.finding import Evidence
from coordinator_model.groups.evidence import event_evidence
from coordinator_model.groups.group import Group
from coordinator_model.groups.records import NO_CLIENT, AnyMember, ClientInfo, Exchange, Member
from coordinator_model.stored import Stored
from coordinator_model.wire import API_NAMES, error_name

PARTITIONS_KEPT: Final = 10_000
"""Of a group; of one with more it is not known which had no holder."""

LEAST_WAIT_MS: Final = 100
"""Others do not notice a shorter wait."""

MINUTE_US: Final = 60_000_000
LONG_US: Final = 15 * MINUTE_US  #: how far back rebalances are compared
REBALANCES_KEPT: Final = 20
NO_OPS_KEPT: Final = 12

_NAMED: Final = 10

TopicPartition: TypeAlias = tuple[str, int]
E = TypeVar("E", bound=GroupEvent)


class Identity(NamedTuple):
    """Who a member is, as far as frames show."""

    member_id: str
    instance_id: str | None
    client_id: str | None
    address: str

    @classmethod
    def of(cls, member_id: str, instance_id: str | None, actor: ClientInfo) -> Identity:
        return cls(member_id, instance_id, actor.client_id, actor.address)

    @classmethod
    def of_member(cls, member: AnyMember) -> Identity:
        return cls.of(member.id, member.instance_id, member.actor)

    @classmethod
    def of_sender(cls, exchange: Exchange) -> Identity:
        return cls.of(exchange.member_id, exchange.instance_id, exchange.actor)

    @property
    def holder(self) -> str:
        """Return the name under which its partitions are kept: a static member keeps them under a new member id."""
        return self.member_id if self.instance_id is None else self.instance_id

    @property
    def named(self) -> dict[str, Any]:
        """Return who it is, as events name it."""
        return {
            "member_id": self.member_id or None,
            "instance_id": self.instance_id,
            "client_id": self.client_id,
            "client_address": self.address or None,
        }


UNKNOWN: Final = Identity("", None, None, "")


class MemberProgress(Stored):
    """One member in one rebalance; a time is 0 if it was not seen."""

    identity: Identity
    told_us: int = 0  #: first REBALANCE_IN_PROGRESS
    joined_us: int = 0  #: capture time of its JoinGroup request
    stopped_us: int = 0  #: since then it consumes nothing; 0 if it never did stop
    synced_us: int = 0  #: capture time of its SyncGroup request
    served_us: int = 0  #: capture time of its SyncGroup success
    partitions: dict[str, tuple[int, ...]] | None = None  #: its assignment; None if it cannot be read
    acknowledged_us: int = 0  #: of a member with an epoch: capture time of its last request that gave partitions up
    resumed_us: int = 0  #: of a member with an epoch: when it got partitions again; it may be served more of them later
    is_new: bool = False  #: it joined as a new member, and did not rejoin

    @property
    def times(self) -> dict[str, Any]:
        """Return who it is and what it went through, as events have it."""
        return {
            **self.identity.named,
            "told_us": self.told_us,
            "joined_us": self.joined_us,
            "served_us": self.served_us,
            "stopped_us": self.stopped_us,
            "new": self.is_new,
        }

    def idle_us(self, ended_us: int) -> int:
        """Return for how long it consumed nothing in a rebalance that ended at ``ended_us``."""
        return max(0, (self.resumed_us or self.served_us or ended_us) - self.stopped_us) if self.stopped_us else 0


class Awaited(NamedTuple):
    """A member, or an id that was issued, without which a rebalance goes no further."""

    identity: Identity
    why: str
    since_us: int  #: others wait for it from then on, if there are any
    gone_us: int = 0  #: when it ceased to be a member, or its id timed out; 0 if it did not


class Waited(NamedTuple):
    """For how long others waited for a member."""

    identity: Identity
    why: str
    waited_us: int
    came: bool  #: False if the wait ended without it


class Moved(NamedTuple):
    """What a rebalance did to the partitions of a group."""

    moved: int  #: with another holder than before, including none
    stayed: int
    unheld: tuple[Unheld, ...] | None  #: those without a holder for a while, in order; None if it is not known for how long


class Starter(NamedTuple):
    """The client that made the coordinator start a join phase, as far as frames show."""

    cause: str
    member_id: str
    instance_id: str | None
    actor: ClientInfo
    shared: bool  #: another member has the same client id, so it identifies no client
    reason: str  #: the client's (KIP-800); often empty
    frame: Evidence | None

    def is_same(self, other: Starter) -> bool:
        """Return True if both are the same client, by its instance id, member id, or client id and host."""
        if self.instance_id is not None or other.instance_id is not None:
            return self.instance_id == other.instance_id
        if self.member_id and self.member_id == other.member_id:
            return True
        return not (self.shared or other.shared or self.actor.client_id is None) and self.actor.named == other.actor.named

    @property
    def subject(self) -> str:
        """The client's most stable id, as subject of a finding."""
        return self.instance_id or (self.actor.client_id if not self.shared else None) or self.member_id


NO_STARTER: Final = Starter(NOT_SEEN, "", None, NO_CLIENT, True, "", None)


class Rebalance(Stored):
    """One rebalance."""

    cause: str
    identity: Identity  #: of the client that began it; without a member id if that is not known
    subject: tuple[str | int, ...]  #: the frame or the member that showed its beginning
    from_generation: int | None
    began_us: int
    incarnation: int
    generation: int | None = None  #: None in its join phase
    completed_us: int = 0  #: end of its join phase
    synced_us: int = 0  #: end of its sync phase: first SyncGroup success
    members: dict[str, MemberProgress] = {}
    awaited: dict[str, Awaited] = {}  #: by member id: without whom it goes no further
    reason: str = ""  #: of the client that began it
    frame: Evidence | None = None  #: that began it
    # Of a classic group:
    starter: Starter = NO_STARTER  #: as known when its generation was complete
    interrupts: bool = False  #: the group had members before
    also: tuple[Starter, ...] = ()  #: others that would have begun it, had it not begun
    closed: int = 0  #: clients that had just lost a connection when it began
    # Once it is over:
    over_us: int = 0
    size: int = 0  #: members that took part
    stayed: int = 0  #: partitions
    lost_us: int = 0  #: for how long members consumed nothing, added up
    is_no_op: bool = False  #: the same members had the same partitions as before

    @property
    def client(self) -> str:
        """Client id and address of who began it."""
        return f"{self.identity.client_id} at {self.identity.address or None}"

    @property
    def has_phases(self) -> bool:
        """False in a group with epochs, whose members come to the newest one without waiting for each other."""
        return self.generation is None or bool(self.completed_us)

    def note_gone(self, member_id: str, at_us: int) -> None:
        """Note when a member ceased to be one, 0 if it did not after all."""
        if member_id in self.awaited:
            self.awaited[member_id] = self.awaited[member_id]._replace(gone_us=at_us)

    def progress_of(self, identity: Identity) -> MemberProgress:
        """Return what is known of a member in this rebalance; create it if needed."""
        progress = self.members.get(identity.member_id)
        if progress is None:
            progress = self.members[identity.member_id] = MemberProgress(identity)
        return progress


class Recorder(Stored):
    """The rebalance of one group that is not over, and what those before it cost."""

    current: Rebalance | None = None
    lost: dict[str, MemberProgress] = {}  #: holder → one that ceased to be a member and did not leave
    members_known: bool | None = None  #: whether the membership is known; None if it never was
    costs: dict[str, Cost] = {}  #: by cause, of all rebalances that are over
    over: tuple[Rebalance, ...] = ()  #: of a classic group the latest that are over and led to a generation, oldest first
    stops_unseen: bool = False  #: since the last rebalance a member with partitions stopped, at a moment that nothing shows

    @property
    def is_joining(self) -> bool:
        """True while the members of a classic group are waited for: the generation is not made yet."""
        return self.current is not None and self.current.generation is None

    @property
    def completed(self) -> tuple[Rebalance, ...]:
        """Return the latest rebalances with a generation that interrupted members, oldest first; the last may not be over."""
        current = self.current
        known = self.over if current is None or current.generation is None else (*self.over, current)
        recent = takewhile(lambda one: one.interrupts and known[-1].completed_us - one.completed_us <= LONG_US, reversed(known))
        return tuple(recent)[REBALANCES_KEPT - 1 :: -1]

    @property
    def no_ops(self) -> tuple[Rebalance, ...]:
        """Return the latest rebalances that moved nothing, oldest first."""
        newest_us = self.over[-1].began_us if self.over else 0
        row = takewhile(lambda one: one.is_no_op and newest_us - one.began_us <= LONG_US, reversed(self.over))
        return tuple(row)[NO_OPS_KEPT - 1 :: -1]

    def begin(self, group: Group[Any], begun: Rebalance, idle: Iterable[MemberProgress], shown_by: Exchange | None) -> None:
        """Note that a rebalance has begun.

        :param idle: members that the one before stopped and did not serve.
        """
        self.current = begun
        for one in idle:
            begun.members[one.identity.member_id] = MemberProgress(one.identity, stopped_us=begun.began_us)
        event = self.add(
            group,
            RebalanceBegan,
            begun.began_us,
            begun.subject,
            shown_by=shown_by,
            cause=begun.cause,
            **begun.identity.named,
            reason=begun.reason or None,
            from_generation=begun.from_generation,
        )
        begun.frame = event_evidence(event, shown_by, f"began a rebalance: {begun.cause}")

    def end(
        self,
        group: Group[Any],
        at_us: int,
        ended: str,
        members: list[MemberProgress],
        *,
        assignor: str | None,
        moved: Moved | None,
        waited: Iterable[Waited],
        frame: FramePlace | None,
    ) -> None:
        """Note that the rebalance is over, and why.

        :param members: those that took part.
        :param assignor: which the coordinator chose of those that all members offer; None if there is none, or it is not known.
        :param moved: None if it is not known.
        :param waited: for whom others waited.
        """
        over, self.current = self.current, None
        assert over is not None
        lost, self.lost = self.lost, {}
        took_part = sorted(members, key=lambda one: (one.joined_us or at_us, one.identity.member_id))
        if over.has_phases:
            last = next((one for one in reversed(took_part) if one.joined_us), None)
        else:
            last = max((one for one in members if one.served_us), key=lambda one: one.served_us, default=None)
        over.over_us, over.size, over.lost_us = at_us, len(members), sum(one.idle_us(at_us) for one in members)
        self.add_cost(group, over.cause, Cost(1, over.lost_us, sum(one.us for one in (moved and moved.unheld) or ())))
        self.add(
            group,
            RebalanceFinished,
            at_us,
            over.subject,
            frame=frame,
            over=over,
            cause=over.cause,
            **over.identity.named,
            from_generation=over.from_generation,
            to_generation=over.generation,
            began_us=over.began_us,
            join_ms=milliseconds(over.began_us, over.completed_us),
            sync_ms=milliseconds(over.completed_us, over.synced_us),
            took_ms=milliseconds(over.began_us, at_us),
            members=tuple(_took_part(one, group.members.get(one.identity.member_id), over) for one in took_part),
            last_member=None if last is None else last.identity.member_id,
            cost_us=over.lost_us,
            ended=ended,
            partitions_moved=moved and moved.moved,
            partitions_stayed=moved and moved.stayed,
            unheld=moved and moved.unheld,
            never_came_back=tuple(LostMember(**one.times) for one in lost.values()),
            waited_for=_longest_first(waited),
            assignor=assignor,
        )

    def add_cost(self, group: Group[Any], cause: str, cost: Cost) -> None:
        """Add what a cause cost."""
        self.costs[cause] = self.costs.get(cause, Cost()).plus(cost)
        group.counters.rebalanced(group.cluster, cause, cost)

    def regain_members(self, group: Group[Any], exchange: Exchange, known: str) -> None:
        """Note that a response has shown all members, unless they were known before.

        :param known: what is known, in words.
        """
        if self.members_known or group.learning:
            return
        if self.members_known is False:
            self.add(group, SightRegained, exchange.res_us, exchange.key, shown_by=exchange, reason=known)
        self.members_known = True

    def lose_members(self, group: Group[Any], at_us: int, because: str) -> None:
        """Note that the members are not known any more."""
        self.lost = {}
        if self.members_known:
            self.members_known = False
            self.add(group, SightLost, at_us, (at_us,), reason=because)

    def fenced(self, group: Group[Any], exchange: Exchange, who: Identity, error: int, *subject: str) -> None:
        """Add the event of a member's first refusal."""
        self.emit(group, MemberFenced, exchange, who, *subject, error=error_name(error), api=API_NAMES[exchange.api_key])

    def told_to_rejoin(self, group: Group[Any], exchange: Exchange, who: Identity) -> None:
        """Add the event of a response that asks a member to rejoin."""
        self.emit(group, MemberToldToRejoin, exchange, who, api=API_NAMES[exchange.api_key])

    def phase_ended(self, group: Group[Any], exchange: Exchange, current: Rebalance, phase: str, since_us: int) -> None:
        """Add the event of a response that ends the join or sync phase."""
        at_us, subject = exchange.res_us, (phase, *current.subject)
        self.add(group, PhaseEnded, at_us, subject, shown_by=exchange, phase=phase, took_ms=milliseconds(since_us, at_us))

    def emit(
        self, group: Group[Any], kind: type[MemberEvent], exchange: Exchange, who: Identity, *subject: str, **own: Any
    ) -> None:
        """Add an event of a member that the newest frame of an exchange shows.

        :param subject: what distinguishes it from others of its kind that this frame shows.
        :param own: the fields of its kind.
        """
        at_us = exchange.res_us or exchange.inv_us
        self.add(group, kind, at_us, (*exchange.key, *subject), shown_by=exchange, **who.named, **own)

    @staticmethod
    def add(
        group: Group[Any],
        kind: type[E],
        at_us: int,
        subject: tuple[str | int, ...],
        *,
        shown_by: Exchange | None = None,
        frame: FramePlace | None = None,
        over: Rebalance | None = None,
        **own: Any,
    ) -> E:
        """Add an event, and return it. It belongs to the group's newest generation or epoch, or to that of the rebalance that is over."""
        incarnation = group.incarnation if over is None else over.incarnation
        generation = group.generation if over is None or over.generation is None else over.generation
        event = kind.of(
            subject,
            at_us=at_us,
            cluster=group.cluster,
            group=group.name,
            group_type=group.kind,
            incarnation=incarnation,
            generation=generation,
            frame=frame if shown_by is None else place_of(shown_by),
            **own,
        )
        group.group_events.append(event)
        group.recurring.on_event(event, shown_by)
        group.usual.on_event(event, group.settings.usual_ms * 1_000)
        return event


def place_of(exchange: Exchange) -> FramePlace:
    """Return where the response is in the mirror topic, or the request before it is answered."""
    return FramePlace(exchange.partition, exchange.offset if exchange.response_offset < 0 else exchange.response_offset)


def milliseconds(since_us: int, until_us: int) -> int | None:
    """Return the whole milliseconds between two times, None if one of them is 0."""
    return max(0, until_us - since_us) // 1_000 if since_us and until_us else None


def _took_part(progress: MemberProgress, member: AnyMember | None, over: Rebalance) -> TookPart:
    """Return what a member went through, and the configuration that it sent; that of a member with an epoch is on no wire."""
    return TookPart(
        **progress.times,
        session_timeout_ms=member.session_timeout_ms if member is not None else None,
        rebalance_timeout_ms=member.rebalance_timeout_ms if member is not None else None,
        assignors=member.protocols if isinstance(member, Member) else (),
        client_software=(member.actor.software or None) if member is not None else None,
        acknowledged_us=None if over.has_phases else progress.acknowledged_us,
    )


def _longest_first(found: Iterable[Waited]) -> tuple[WaitedFor, ...]:
    """Return as published the longest of the waits that others notice."""
    noticed = sorted(
        (one for one in found if one.waited_us >= LEAST_WAIT_MS * 1_000), key=lambda one: (-one.waited_us, one.identity)
    )
    return tuple(
        WaitedFor(**one.identity.named, why=one.why, waited_ms=one.waited_us // 1_000, came=one.came) for one in noticed[:_NAMED]
    )

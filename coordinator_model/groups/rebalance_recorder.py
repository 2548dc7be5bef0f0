"""The recorder of a group's rebalances: who began one, who came when, who was served, what it cost.

It comes after all that finds out what happened, and decides nothing. What begins a rebalance, who holds partitions meanwhile and what ends
it differ by type of group: :mod:`~coordinator_model.groups.classic.rebalance_events` and
:mod:`~coordinator_model.groups.epochs.rebalance_events` say so.

*Blindness ends a rebalance*: what a gap hides is not counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

from coordinator_model.counters import Cost
from coordinator_model.events import (
    FramePlace,
    GroupEvent,
    LostMember,
    MemberEvent,
    MemberFenced,
    MemberToldToRejoin,
    RebalanceBegan,
    RebalanceFinished,
    SightLost,
    SightRegained,
    TookPart,
    Unheld,
    WaitedFor,
)
from coordinator_model.groups.group import Group
from coordinator_model.groups.records import AnyMember, ClientInfo, Exchange
from coordinator_model.wire import API_NAMES, error_name

PARTITIONS_KEPT: Final = 10_000
"""Of a group; of one with more it is not known which were held by nobody."""

LEAST_WAIT_MS: Final = 100
"""Others do not notice a shorter wait."""

_NAMED: Final = 10

TopicPartition: TypeAlias = tuple[str, int]


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


class MemberSettings(NamedTuple):
    """What a member has told of its configuration; None for what is on no wire, as the session timeout of a member with an epoch."""

    session_timeout_ms: int | None = None
    rebalance_timeout_ms: int | None = None
    assignors: tuple[str, ...] = ()  #: those that it offers, its favourite first
    software: str = ""


NOTHING_TOLD: Final = MemberSettings()


@dataclass(slots=True)
class MemberProgress:
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


@dataclass(slots=True)
class OpenRebalance:
    """A rebalance that is not over."""

    cause: str
    identity: Identity  #: of the client that began it; without a member id if that is not known
    subject: tuple[str | int, ...]  #: the frame or the member that showed its beginning
    from_generation: int | None
    began_us: int
    incarnation: int
    generation: int | None = None  #: None in its join phase
    completed_us: int = 0  #: end of its join phase
    synced_us: int = 0  #: end of its sync phase: first SyncGroup success
    members: dict[str, MemberProgress] = field(default_factory=dict)
    awaited: dict[str, Awaited] = field(default_factory=dict)  #: by member id: without whom it goes no further

    def __post_init__(self) -> None:
        self.awaited = {id_: Awaited(*values) for id_, values in self.awaited.items()}  # a snapshot stores plain tuples

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

    @property
    def has_phases(self) -> bool:
        """False in a group with epochs, whose members come to the newest one without waiting for each other."""
        return self.generation is None or bool(self.completed_us)

    def finished(self, members: Sequence[MemberProgress], settings: Mapping[str, MemberSettings], ended_us: int) -> dict[str, Any]:
        """Return the fields of :class:`RebalanceFinished` except those about partitions.

        :param members: those that took part.
        :param settings: by member id.
        """
        took_part = sorted(members, key=lambda one: (one.joined_us or ended_us, one.identity.member_id))
        if self.has_phases:
            last = next((one for one in reversed(took_part) if one.joined_us), None)
        else:
            last = max((one for one in members if one.served_us), key=lambda one: one.served_us, default=None)
        return {
            "cause": self.cause,
            **self.identity.named,
            "from_generation": self.from_generation,
            "to_generation": self.generation,
            "began_us": self.began_us,
            "join_ms": milliseconds(self.began_us, self.completed_us),
            "sync_ms": milliseconds(self.completed_us, self.synced_us),
            "took_ms": milliseconds(self.began_us, ended_us),
            "members": tuple(self._took_part(one, settings.get(one.identity.member_id, NOTHING_TOLD)) for one in took_part),
            "last_member": None if last is None else last.identity.member_id,
            "cost_us": sum(idle_us(one, ended_us) for one in took_part),
        }

    def _took_part(self, member: MemberProgress, settings: MemberSettings) -> TookPart:
        return TookPart(
            **member.times,
            session_timeout_ms=settings.session_timeout_ms,
            rebalance_timeout_ms=settings.rebalance_timeout_ms,
            assignors=settings.assignors,
            client_software=settings.software or None,
            acknowledged_us=None if self.has_phases else member.acknowledged_us,
        )


class Moved(NamedTuple):
    """What a rebalance did to the partitions of a group."""

    moved: int  #: with another holder than before, including none
    stayed: int
    unheld: tuple[Unheld, ...]  #: those that nobody held for a while, in order


class Recorder:
    """The rebalance of one group that is not over, and what those before it cost."""

    __slots__ = tuple[str, ...]()  # an adapter has them, in the order in which snapshots store them

    current: OpenRebalance | None
    lost: dict[str, MemberProgress]  #: holder → one that ceased to be a member and did not leave
    in_sight: bool | None  #: whether the membership is known; None if it never was
    costs: dict[str, tuple[int, int, int]]  #: cause → :class:`Cost` of all rebalances that are over

    def begin(
        self, group: Group[Any], begun: OpenRebalance, idle: Iterable[MemberProgress], reason: str, shown_by: Exchange | None
    ) -> None:
        """Note that a rebalance has begun.

        :param idle: members that the one before stopped and did not serve.
        :param reason: that the client gave.
        """
        self.current = begun
        for one in idle:
            begun.members[one.identity.member_id] = MemberProgress(one.identity, stopped_us=begun.began_us)
        self.add(
            group,
            RebalanceBegan,
            begun.began_us,
            begun.subject,
            shown_by=shown_by,
            cause=begun.cause,
            **begun.identity.named,
            reason=reason or None,
            from_generation=begun.from_generation,
        )

    def end(
        self,
        group: Group[Any],
        at_us: int,
        ended: str,
        *,
        members: list[MemberProgress],
        settings: Mapping[str, MemberSettings],
        assignor: str | None,
        moved: Moved | None,
        waited: Iterable[Waited],
        frame: FramePlace | None,
    ) -> None:
        """Note that the rebalance is over, and why.

        :param members: those that took part.
        :param settings: theirs, by member id.
        :param assignor: which the coordinator chose of those that all members offer; None if there is none, or it is not known.
        :param moved: None if it is not known.
        :param waited: for whom others waited.
        """
        current, self.current = self.current, None
        assert current is not None
        lost, self.lost = self.lost, {}
        cost = Cost(1, sum(idle_us(one, at_us) for one in members), sum(one.us for one in moved.unheld) if moved else 0)
        self.costs[current.cause] = Cost(*self.costs.get(current.cause, ())).plus(cost)
        group.counters.rebalanced(group.cluster, current.cause, cost)
        self.add(
            group,
            RebalanceFinished,
            at_us,
            current.subject,
            frame=frame,
            over=current,
            **current.finished(members, settings, at_us),
            ended=ended,
            partitions_moved=moved and moved.moved,
            partitions_stayed=moved and moved.stayed,
            unheld=moved and moved.unheld,
            never_came_back=tuple(LostMember(**one.times) for one in lost.values()),
            waited_for=_longest_first(waited),
            assignor=assignor,
        )

    def regain_sight(self, group: Group[Any], exchange: Exchange, known: str) -> None:
        """Note that a response has shown all members, unless they were known before.

        :param known: what is known, in words.
        """
        if self.in_sight or group.learning:
            return
        if self.in_sight is False:
            self.add(group, SightRegained, exchange.res_us, exchange.key, shown_by=exchange, reason=known)
        self.in_sight = True

    def lose_sight(self, group: Group[Any], at_us: int, because: str) -> None:
        """Note that the members are not known any more."""
        self.lost = {}
        if self.in_sight:
            self.in_sight = False
            self.add(group, SightLost, at_us, (at_us,), reason=because)

    def fenced(self, group: Group[Any], exchange: Exchange, who: Identity, error: int, *subject: str) -> None:
        """Add the event of a member's first refusal."""
        self.tell(group, MemberFenced, exchange, who, *subject, error=error_name(error), api=API_NAMES[exchange.api_key])

    def told_to_rejoin(self, group: Group[Any], exchange: Exchange, who: Identity) -> None:
        """Add the event of a response that tells a member to rejoin."""
        self.tell(group, MemberToldToRejoin, exchange, who, api=API_NAMES[exchange.api_key])

    def tell(
        self, group: Group[Any], kind: type[MemberEvent], exchange: Exchange, who: Identity, *subject: str, **own: Any
    ) -> None:
        """Add an event of a member that the newest frame of an exchange shows.

        :param subject: what tells it from others of its kind that this frame shows.
        :param own: the fields of its kind.
        """
        at_us = exchange.res_us or exchange.inv_us
        self.add(group, kind, at_us, (*exchange.key, *subject), shown_by=exchange, **who.named, **own)

    @staticmethod
    def add(
        group: Group[Any],
        kind: type[GroupEvent],
        at_us: int,
        subject: tuple[str | int, ...],
        *,
        shown_by: Exchange | None = None,
        frame: FramePlace | None = None,
        over: OpenRebalance | None = None,
        **own: Any,
    ) -> None:
        """Add an event, which belongs to the group's newest generation or epoch, or to that of the rebalance that is over."""
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


def place_of(exchange: Exchange) -> FramePlace:
    """Return where the response is in the mirror topic, or the request before it is answered."""
    return FramePlace(exchange.partition, exchange.offset if exchange.response_offset < 0 else exchange.response_offset)


def _longest_first(found: Iterable[Waited]) -> tuple[WaitedFor, ...]:
    """Return as published the longest of the waits that others notice."""
    noticed = sorted(
        (one for one in found if one.waited_us >= LEAST_WAIT_MS * 1_000), key=lambda one: (-one.waited_us, one.identity)
    )
    return tuple(
        WaitedFor(**one.identity.named, why=one.why, waited_ms=one.waited_us // 1_000, came=one.came) for one in noticed[:_NAMED]
    )


def idle_us(member: MemberProgress, ended_us: int) -> int:
    """Return for how long a member consumed nothing in a rebalance that ended at ``ended_us``."""
    return max(0, (member.resumed_us or member.served_us or ended_us) - member.stopped_us) if member.stopped_us else 0


def milliseconds(since_us: int, until_us: int) -> int | None:
    """Return the whole milliseconds between two times, None if one of them is 0."""
    return max(0, until_us - since_us) // 1_000 if since_us and until_us else None

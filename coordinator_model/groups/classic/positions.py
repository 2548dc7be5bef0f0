"""What frames leave possible while a coordinator acts on one request: where the group is, and what the sender is to it.

An answer is lawful if a row of the protocol's table gives it at a moment that frames leave possible. One that no row gives is unlawful, and
what excludes each row is the proof.

Everything that may have happened without a frame that shows it is allowed for here, each in one place:

* *Lateness.* The coordinator acts between the capture of a request and that of its answer. Only what was captured before the request
  bounds it from below, and only what was asked after the answer bounds it from above.
* *Clocks of several capturers, deletion, and a restart that no frame shows.* ``GroupData.lasts`` returns whether a generation still counts.
* *Loading.* A broker that loads the group answers a Heartbeat unchecked. It loads near the time of a response that reports it.
* *Loss and failover.* With them the group drops its generations, and nothing bounds it.
* *Releases.* The table has a row for each behaviour, and all rows count that a broker of this age may follow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from coordinator_model.finding import Certainty, Evidence
from coordinator_model.groups.effects import Does
from coordinator_model.groups.evidence import request_evidence
from coordinator_model.groups.group_coordinator import are_one
from coordinator_model.groups.protocol.classic import TABLE, Condition, Sender
from coordinator_model.groups.protocol.classic import Generation as Relation
from coordinator_model.groups.protocol.table import Row, Way, shown, unseen
from coordinator_model.groups.records import Exchange, Generation, Removed, StaticMember
from coordinator_model.releases import BrokerVersion, first_release
from coordinator_model.wire.constants import COORDINATOR_LOAD_IN_PROGRESS, JOIN_GROUP
from coordinator_model.wording import seconds

if TYPE_CHECKING:
    from coordinator_model.groups.classic.data import GroupData

_WITNESSES: Final = 2  #: members that wait in a join phase and prove it
_ORDER: Final = "EKSP"  #: within one generation a group goes only this way
_COMPLETING, _STABLE, _PREPARING = (_ORDER.index(phase) for phase in "KSP")

GENERATION: Final = "generation"
PHASE: Final = "phase"
MEMBER: Final = "member"
REPLACED: Final = "replaced"
HOLDER: Final = "holder"
REQUEST: Final = "request"
LOADING: Final = "loading"


class Reason(NamedTuple):
    """Why something was not possible."""

    about: str  #: what would have had to be different: one of the words above
    text: str
    proof: tuple[Evidence, ...] = ()


class Later(NamedTuple):
    """What a later answer may show to have been so all the time."""

    generation: int | None = None  #: the group is still at this generation
    in_sync: bool = False  #: and no join phase has begun
    member: bool = False  #: the sender is still a member, under the same instance id


NOTHING_YET: Final = Later()
NOT_LOADING: Final = Reason(LOADING, "it did not say so")


class Positions:
    """What was possible between the capture of a request and that of its answer."""

    __slots__ = ("chain", "exchange", "first_us", "generation", "group", "instance", "instance_id", "later", "member", "member_id")

    def __init__(
        self,
        group: GroupData,
        exchange: Exchange,
        named: tuple[str, str | None],
        later: Later = NOTHING_YET,
        issued: int | None = None,
    ) -> None:
        self.group = group
        self.exchange = exchange
        self.member_id, self.instance_id = named
        self.later = later
        self.generation = exchange.generation if issued is None else issued
        self.first_us = exchange.effective_us
        self.member = group.members.get(self.member_id)
        self.instance = group.instances.get(self.instance_id) if self.instance_id is not None else None
        self.chain = self._chain()

    # ------------------------------------------------------------------------------------------------ the group

    def _chain(self) -> Chain:
        """Return the group's chain: its positions are (generation, phase)."""
        group, chain = self.group, Chain()
        for known in group.generations:
            if group.lasts(known, self.first_us, self.exchange.key[0]):
                chain.reached(known.proven_us, (known.generation, _COMPLETING), known)
                if known.sync_done_us is not None:
                    chain.reached(known.sync_done_us + group.clock_skew_us, (known.generation, _STABLE), known)
        self._join_phase(chain)
        if self.later.generation is not None:
            last = _STABLE if self.later.in_sync else _PREPARING
            chain.not_beyond(self.exchange.res_us + 1, (self.later.generation, last), None)
        return chain

    def _join_phase(self, chain: Chain) -> None:
        """Note since when members provably wait for a join phase of the newest generation to end.

        They got REBALANCE_IN_PROGRESS at that generation, and their JoinGroups have waited for longer than any frame may be late, so they
        were not answered. Their connections are open, so the coordinator has not loaded the group again, which would end the phase.
        """
        group, known = self.group, self.group.newest_generation
        if known is None or not known.rejoin_asked or not group.lasts(known, self.first_us, self.exchange.key[0]):
            return
        waiting = tuple(
            join
            for join in group.waiting_joins()
            if join.member_id in known.rejoin_asked and are_one(group, join.broker, self.exchange.broker) and not join.queued_behind
        )
        if len(waiting) >= _WITNESSES:
            proven_us = sorted(join.inv_us for join in waiting)[_WITNESSES - 1]
            chain.reached(proven_us + group.late_us, (known.generation, _PREPARING), waiting)

    def not_in_phase(self, phase: str, relation: str) -> Reason | None:
        """Return why the group was not in this phase, its generation so related to the request's; None if it may have been."""
        if phase == "L":
            return None if self.group.loading_near(self.exchange.broker, self.exchange.res_us) else NOT_LOADING
        if phase in "ND":
            return None
        if phase in "-E" and self.later.member:
            return self._was_member()
        if phase == "-":
            return None if self.later.generation is None else Reason(GENERATION, "the group was there afterwards")
        step = _ORDER.index(phase)
        if relation is Relation.SAME:
            return self._not_at(self.generation, step)
        return self._not_at_another(step, but=self.generation if relation is Relation.OTHER else None)

    def _not_at(self, generation: int, step: int) -> Reason | None:
        """Return why the group was not at this generation in a phase."""
        bound = self.chain.beyond((generation, _PREPARING), self.first_us)
        if bound is not None:
            return Reason(
                GENERATION, f"{self._handed_out(bound.proof)}, and the coordinator has not changed since", (bound.proof.proof,)
            )
        bound = self.chain.excludes((generation, step), self.first_us, self.exchange.res_us)
        if bound is None:
            return None
        if bound.proof is None:
            return Reason(GENERATION, f"a later request succeeded at generation {bound.position[0]}")
        phase = self.chain.beyond((generation, _STABLE), self.first_us)
        if phase is not None:
            return self._waits(phase.proof)
        return Reason(PHASE, f"members had their assignments of generation {generation} before", (bound.proof.proof,))

    def _waits(self, waiting: tuple[Exchange, ...]) -> Reason:
        longest_us = self.exchange.res_us - min(join.inv_us for join in waiting)
        text = f"{len(waiting)} members were told to rejoin and have waited in the join phase for {seconds(longest_us)}"
        return Reason(PHASE, text, tuple(request_evidence(join) for join in waiting[:_WITNESSES]))

    def _not_at_another(self, step: int, but: int | None) -> Reason | None:
        """Return why the group was at no generation other than ``but`` in a phase."""
        here = self.later.generation
        if here is None:
            return None  # it may have gone on
        before = self.chain.beyond((here - 1, _PREPARING), self.first_us)
        if before is None or (here != but and self._not_at(here, step) is None):
            return None
        return Reason(GENERATION, f"{self._handed_out(before.proof)}, and was the group's still afterwards", (before.proof.proof,))

    def _handed_out(self, known: Generation) -> str:
        return f"generation {known.generation} was handed out {seconds(self.first_us - known.proven_us)} before"

    # ------------------------------------------------------------------------------------------------ the sender

    def comes_from(self, sender: str, *, held: bool) -> bool:
        """Return True if a coordinator can take the ids for such a sender, or come to do so while it holds the request."""
        if held:
            known = self.group.newest_generation
            dynamic = known is not None and known.roster is not None and known.roster.get(self.member_id, "") is None
            return sender is not Sender.FENCED or self.instance_id is not None or not dynamic
        if not self.member_id:
            return sender is Sender.NEW if self.instance_id is None else sender in {Sender.NEW_STATIC, Sender.RETURNING}
        return sender in (_WITHOUT_INSTANCE if self.instance_id is None else _WITH_INSTANCE)

    def not_sender(self, sender: str, phase: str, relation: str) -> tuple[Reason, ...]:
        """Return why the sender was not this to the coordinator, in this phase and generation; none if it may have been."""
        no_member = self._was_no_member(phase) if relation is Relation.SAME else None  # it may be a member of another one
        if sender is Sender.MEMBER:
            reasons = (self._was_replaced(), no_member)
        elif sender is Sender.RENAMED:
            replaced = self._was_replaced()  # another holder may have left since
            reasons = (self._held_instance() or (replaced if replaced and replaced.about == REPLACED else None), no_member)
        elif sender is Sender.FENCED:
            reasons = (self._held_instance() if self.later.member else None, None)
        elif sender in {Sender.STRANGER, Sender.PENDING, Sender.PENDING_STATIC}:
            reasons = (self._was_member() if self.later.member else self._was_listed(phase), None)
        else:
            return ()
        return tuple(reason for reason in reasons if reason is not None)

    def _was_no_member(self, phase: str) -> Reason | None:
        """Return why the sender was no member at the generation of its request."""
        known, member = self.group.newest_generation, self.member
        if known is None or known.generation != self.generation or known.roster is None or self.member_id in known.roster:
            return None
        if member is not None:
            if member.joined == known.generation:
                return None
            if member.removed == Removed.REPLACED and member.removed_us >= self.first_us:
                return None  # it may have held its instance id until then
            if phase == "P" and member.parked_join in self.group.open:
                return None
        source = f"that the leader of generation {known.generation} was given" if known.leader else "that the coordinator described"
        text = f"{self.member_id} is not in the list of {len(known.roster)} {source}"
        return Reason(MEMBER, text, (known.proof,))

    def _was_replaced(self) -> Reason | None:
        """Return why the sender no longer held the instance id that it names."""
        instance = self.instance
        if instance is None or instance.member_id == self.member_id or not instance.settled_us:
            return None
        if instance.settled_us + self.group.clock_skew_us >= self.first_us:
            return None
        member, joins = self.member, self.exchange.api_key == JOIN_GROUP
        held_it = (
            member is not None
            and member.instance_id == instance.id
            and (joins or member.removed == Removed.REPLACED or 0 < member.joined_us < instance.held_us)
        )
        taken_s = (self.first_us - instance.held_us) / 1_000_000
        text = (
            f"member {instance.member_id} had taken over instance id {instance.id} {taken_s:.1f} s before, and got its assignment"
        )
        return Reason(REPLACED if held_it else HOLDER, text, self._admission(instance))

    def _was_member(self) -> Reason | None:
        """Return why the sender was a member all the time, given that it is one later."""
        member = self.member
        if (
            member is None
            or not self._is_known_as()
            or member.proven_us is None
            or member.proven_us >= self.first_us - self.group.clock_skew_us
        ):
            return None
        return Reason(MEMBER, f"{member.id} was accepted before and afterwards", _joined_frame(member.joined_frame))

    def _was_listed(self, phase: str) -> Reason | None:
        """Return why the sender was a member of a generation that goes on, by the member list of its leader.

        Removing a dynamic member from a settled group starts a join phase, which ends with another generation.
        """
        known, member = self.group.newest_generation, self.member
        if phase not in "KS" or known is None or known.generation != self.later.generation or known.roster is None:
            return None
        if member is None or not self._is_known_as() or known.roster.get(member.id, "") is not None:
            return None
        if (
            known.proven_us >= self.first_us - self.group.clock_skew_us
            or member.session_timeout_ms is None
            or member.proven_us is None
        ):
            return None
        if self.exchange.res_us - member.proven_us >= member.session_timeout_ms * 1_000:
            return None
        text = f"{member.id} is a member of generation {known.generation}, which went on"
        return Reason(MEMBER, text, _joined_frame(member.joined_frame))

    def _is_known_as(self) -> bool:
        """Return True if the request has its member's instance id. Brokers since 3.0 refuse a wrong one with UNKNOWN_MEMBER_ID."""
        if self.instance_id is None:
            return self.member is not None and self.member.instance_id is None
        return self.instance is not None and self.instance.member_id == self.member_id

    def _held_instance(self) -> Reason | None:
        """Return why the sender held the instance id that it names: it is the latest known holder, and no other member asked for it."""
        instance = self.instance
        if (
            instance is None
            or instance.member_id != self.member_id
            or instance.tried_us >= self.first_us - self.group.clock_skew_us
        ):
            return None
        if any(
            one.api_key == JOIN_GROUP and not one.member_id and one.instance_id == instance.id for one in self.group.open.values()
        ):
            return None
        return Reason(
            HOLDER, f"{self.member_id} holds instance id {instance.id}, and nobody asked for it", self._admission(instance)
        )

    def _admission(self, instance: StaticMember) -> tuple[Evidence, ...]:
        holder = self.group.members.get(instance.member_id)
        return () if holder is None else _joined_frame(holder.joined_frame)


_WITHOUT_INSTANCE: Final = frozenset({Sender.MEMBER, Sender.STRANGER, Sender.PENDING})
_WITH_INSTANCE: Final = frozenset({Sender.MEMBER, Sender.RENAMED, Sender.STRANGER, Sender.FENCED, Sender.PENDING_STATIC})


def _joined_frame(frame: Evidence | None) -> tuple[Evidence, ...]:
    return () if frame is None else (frame,)


Position: TypeAlias = tuple[int, ...]
"""The larger one comes later."""


class Bound(NamedTuple):
    """A position that had been reached, or not been left, at a time."""

    at_us: int
    position: Position
    proof: Any  #: what shows it


class Chain:
    """The bounds on the position of one thing that only moves forward, at a time that no frame shows.

    It keeps two staircases of bounds: "from this time on it had reached at least that position" and "until this time it had gone no
    further than that". Both come from frames, and each keeps its frame as proof. Between them lies what is possible: a position can hold
    during an interval unless one bound lies beyond it before the interval begins, or short of it after the interval ends.

    A bound is added only for what was seen, never for what was not: a frame that is late would prove it wrong.
    """

    __slots__ = ("_at_least", "_at_most")

    def __init__(self) -> None:
        self._at_least: list[Bound] = []
        self._at_most: list[Bound] = []

    def reached(self, at_us: int, position: Position, proof: Any) -> None:
        """Note that from ``at_us`` on it is at this position or beyond."""
        self._at_least.append(Bound(at_us, position, proof))

    def not_beyond(self, until_us: int, position: Position, proof: Any) -> None:
        """Note that until ``until_us`` it is at this position or before."""
        self._at_most.append(Bound(until_us, position, proof))

    def excludes(self, position: Position, first_us: int, last_us: int) -> Bound | None:
        """Return the bound that shows it at another position throughout the interval, the oldest there is; None if there is none."""
        return self.beyond(position, first_us) or self.short_of(position, last_us)

    def beyond(self, position: Position, at_us: int) -> Bound | None:
        """Return the oldest bound that shows it beyond this position before ``at_us``, None if there is none."""
        found = [bound for bound in self._at_least if bound.at_us < at_us and bound.position > position]
        return min(found, key=lambda bound: bound.at_us, default=None)

    def short_of(self, position: Position, at_us: int) -> Bound | None:
        """Return the newest bound that shows it short of this position after ``at_us``, None if there is none."""
        found = [bound for bound in self._at_most if bound.at_us > at_us and bound.position < position]
        return max(found, key=lambda bound: bound.at_us, default=None)


# ---------------------------------------------------------------------------------------------------- verdicts

UPGRADE: Final = "upgrade"
_NO_UPGRADE: Final = Reason(UPGRADE, "none was seen")
_OTHER_REQUEST: Final = Reason(REQUEST, "this was none")


class Verdict(NamedTuple):
    """An unlawful answer, and what excludes each way to it. Rules check that of an accepted request as an event."""

    exchange: Exchange
    error: int
    excluded: tuple[tuple[Row, str, tuple[Reason, ...]], ...]  #: row, phase, reasons

    @property
    def about(self) -> frozenset[str]:
        """What alone would have had to be different of the group or the sender for the answer to be lawful: any one of these."""
        judged = [{reason.about for reason in reasons} for _, _, reasons in self.excluded]
        decisive = [about for about in judged if not about & {LOADING, UPGRADE, REQUEST}]
        return frozenset(set.intersection(*decisive)) if decisive else frozenset()

    @property
    def certainty(self) -> Certainty:
        """Certain if the exchange itself is the proof, confirmed if it takes what is known of the group."""
        known = any(reason.about != REQUEST for _, _, reasons in self.excluded for reason in reasons)
        return Certainty.CONFIRMED if known else Certainty.CERTAIN

    def why(self, about: str) -> str:
        """Return the first reason of that kind, as half a sentence."""
        return next(reason.text for _, _, reasons in self.excluded for reason in reasons if reason.about == about)

    @property
    def proof(self) -> tuple[Evidence, ...]:
        """Return the frames that exclude the rows, oldest first."""
        found = {frame for _, _, reasons in self.excluded for reason in reasons for frame in reason.proof}
        return tuple(sorted(found, key=lambda frame: frame.at_us))

    @property
    def text(self) -> str:
        """Return what the answer needs, by the rows that give it, and why that was not so."""
        needs: dict[tuple[str, str], dict[str, None]] = {}
        for row, phase, reasons in self.excluded:
            reason = reasons[0]
            needs.setdefault((_needed(row, phase, reason.about, self.error), reason.text), {})[row.name] = None
        if not needs:
            return "no row of the protocol gives that answer"
        parts = [f"{needed} ({', '.join(names)}): {text}" for (needed, text), names in needs.items()]
        return f"it needs {'; or '.join(parts)}"


def _needed(row: Row, phase: str, about: str, error: int) -> str:
    """Return what a row needs that was not so."""
    fixed = {
        LOADING: "a broker that loads the group",
        UPGRADE: "a group that is being upgraded",
        PHASE: f"a group in phase {phase}",
    }
    if about in fixed:
        return fixed[about]
    if about == GENERATION:
        groups_own = Relation.SAME in row.generations or not (row.generations or error)
        return "the group's generation" if groups_own else "another generation than the group's"
    if about == MEMBER:
        return "a member" if row.senders & {Sender.MEMBER, Sender.RENAMED} else "an id that is no member's"
    if about in {REPLACED, HOLDER}:
        return "an instance id that another member holds" if error else "the holder of the instance id"
    return f"a request of a sender that is {' or '.join(sorted(row.senders))}"


def judge(
    group: GroupData,
    exchange: Exchange,
    error: int,
    broker_version: BrokerVersion,
    *,
    later: Later = NOTHING_YET,
    named: tuple[str, str | None] | None = None,
    issued: int | None = None,
) -> Verdict | None:
    """Return the verdict on an answer, None if it may be lawful.

    :param later: what a later answer is supposed to show.
    :param named: member id and instance id that the answer is about, if not the request's own.
    :param issued: the generation that the answer names. A JoinGroup names none; its success names the group's.
    """
    api_key, version = exchange.api_key, exchange.api_version
    positions = Positions(group, exchange, named or (exchange.member_id, exchange.instance_id), later, issued)
    excluded: list[tuple[Row, str, tuple[Reason, ...]]] = []
    oldest = max(broker_version.release, first_release(api_key, version))
    for row in unseen(TABLE, api_key, version, error, oldest):
        reasons = _not_unseen(positions, row)
        if not reasons:
            return None
        excluded.append((row, "", reasons))
    others: dict[Row, None] = {}
    for way in shown(TABLE, api_key, version, error, oldest):
        if (way.generation is Relation.NONE) != (positions.generation < 0):
            continue
        if issued is not None and way.generation is not Relation.SAME:
            continue
        if not positions.comes_from(way.sender, held=way.row.ends_hold):
            others[way.row] = None
            continue
        reasons = _reasons(positions, way, error)
        if not reasons:
            return None
        excluded.append((way.row, way.phase, reasons))
    named_rows = {row for row, _, _ in excluded}
    excluded += [(row, "", (_OTHER_REQUEST,)) for row in others if row not in named_rows]
    return Verdict(exchange, error, tuple(excluded))


def _reasons(positions: Positions, way: Way, error: int) -> tuple[Reason, ...]:
    if way.phase == "L" and error == COORDINATOR_LOAD_IN_PROGRESS:
        return ()  # the answer itself shows that it loads
    phase = positions.not_in_phase(way.phase, way.generation)
    return (
        *(() if phase is None else (phase,)),
        *(() if way.phase == "L" else positions.not_sender(way.sender, way.phase, way.generation)),
    )


def _not_unseen(positions: Positions, row: Row) -> tuple[Reason, ...]:
    """Return why a row does not apply whose reason frames do not show.

    The upgrade of a group would be seen while a request is held. One that is called off for its sender, as the group is full or its
    pattern invalid, ends what is held all the same.
    """
    if row.ends_hold and Condition.UPGRADED in row.conditions and positions.exchange.gap_free:
        possible = positions.group.possible(positions.exchange, positions.exchange.inv_us)
        return () if any(effect.does is Does.CONVERTS for effect in possible) else (_NO_UPGRADE,)
    if row.senders and not any(positions.comes_from(sender, held=False) for sender in row.senders):
        return (_OTHER_REQUEST,)
    return ()

"""What requests may have done to a group although no frame shows it: one list, asked by whatever judges an answer.

A request takes effect between its own capture and that of its answer. Frames do not show whether and when it did

* while it is open: a coordinator refuses at once, from what it has not written yet, and tells of a success once that is replicated. Who is
  removed or replaced may know it before the answer that says so;
* if its answer was not captured, or its connection ended before: the request may still be on its way to the coordinator;
* if frames are missing, its own may be among them;
* if it was answered COORDINATOR_NOT_AVAILABLE: so brokers since 4.0 answer a write that is not replicated in time. It stays in the log, and
  counts for every later request. NOT_COORDINATOR, of a broker that was the coordinator, is the same where it unloads the group;
* in which order two requests did that overlap, both answered with success.

Sources: ``CoordinatorRuntime`` (the timeout of a write event, unloading), ``CoordinatorOperationExceptionHelper``. What a heartbeat may
have changed of its own member is forgotten (``EpochMember.forget``); what it may still change is kept here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import chain
from typing import Final, NamedTuple

from coordinator_model.groups.records import AnyMember, Exchange, LeaveFacts
from coordinator_model.stored import Stored
from coordinator_model.wire.constants import EPOCH_HEARTBEATS, JOIN_GROUP, LEAVE_GROUP

KEPT: Final = 256
ACTS_WITHIN_US: Final = 300_000_000
"""A request that was never answered takes effect within this time: no coordinator stands still for longer."""

KEPT_US: Final = 600_000_000
"""Whom an effect may concern has been accepted since, or its session is over: within twice the longest in use."""


class Does(StrEnum):
    """What a request does to a group."""

    JOINS = "joins"  #: its sender becomes a member, in the place of another one with its instance id
    LEAVES = "leaves"  #: the members that it names are none any more, or are away
    GOES_ON = "goes on"  #: its sender gets another epoch or other partitions, or gives some up
    CONVERTS = "converts"  #: the group may become one of another type, even if it does not stay one
    LOADS = "loads"  #: the coordinator loads the group: sessions begin anew, and what was written last may be lost
    ANYTHING = "anything"  #: in a hole of the capture, and of effects that were too many to keep


class PendingEffect(NamedTuple):
    """What a request may do, or may have done."""

    does: Does
    member_id: str  #: whose; empty if it names none
    instance_id: str | None
    since_us: int  #: no earlier
    until_us: int = 0  #: no later; 0 while the request is open
    lost_us: int = 0  #: when it became certain that no answer will come; 0 if one came, or a later request was answered since

    def may_end(self, member: AnyMember) -> bool:
        """Return True if the member may be one no longer, or be away."""
        if self.does is Does.LEAVES:
            return self.member_id == member.id or (not self.member_id and self.instance_id == member.instance_id is not None)
        return self.does is Does.LOADS or (self.member_id != member.id and self.may_take(member.instance_id))

    def may_admit(self, member_id: str) -> bool:
        """Return True if there may be a member of this id now."""
        return self.does is Does.ANYTHING or (self.does is Does.JOINS and self.member_id in {"", member_id})

    def may_take(self, instance_id: str | None) -> bool:
        """Return True if the instance id may have another holder."""
        return self.does is Does.ANYTHING or (self.does is Does.JOINS and self.instance_id == instance_id is not None)

    def may_move(self, member_id: str) -> bool:
        """Return True if what the coordinator knows of the member may have changed in any way."""
        return self.does is Does.ANYTHING or self.member_id == member_id


class PendingEffects(Stored):
    """Effects of requests of one group that have no answer to wait for."""

    known: tuple[PendingEffect, ...] = ()
    moved_us: int = 0  #: when the coordinator of now was first seen to act
    loaded_us: int = 0  #: when one last loaded the group, as far as frames show
    hole_us: int = 0  #: until when frames of the group were missing; before its first one all are
    unanswered: bool = False  #: the answer to a later request will show that one without an answer has acted by then

    def note(self, exchange: Exchange, until_us: int, *, lost_us: int = 0) -> None:
        """Note that a request may have taken effect until then."""
        self._keep(tuple(one._replace(until_us=until_us, lost_us=lost_us) for one in effects_of(exchange)), until_us)

    def _keep(self, added: tuple[PendingEffect, ...], now_us: int) -> None:
        known = (*(one for one in self.known if one.until_us + KEPT_US > now_us), *added)
        if len(known) > KEPT:
            dropped, known = known[: len(known) - KEPT // 2], known[len(known) - KEPT // 2 :]
            until_us, lost_us = max(one.until_us for one in dropped), max(one.lost_us for one in dropped)
            known = (PendingEffect(Does.ANYTHING, "", None, 0, until_us, lost_us), *known)
        self.known = known
        self.unanswered = any(one.lost_us for one in known)

    def note_lost(self, exchange: Exchange, at_us: int) -> None:
        """Note that no answer to a request will come."""
        self.note(exchange, at_us + ACTS_WITHIN_US, lost_us=at_us)

    def note_conversion(self, exchange: Exchange) -> None:
        """Note a join of another protocol than the group's, before it is answered."""
        asked_us = exchange.inv_us
        effect = PendingEffect(
            Does.CONVERTS, exchange.member_id, exchange.instance_id, asked_us, asked_us + ACTS_WITHIN_US, asked_us
        )
        self._keep((effect,), asked_us)

    def note_overlap(self, exchange: Exchange, open_: Iterable[Exchange]) -> None:
        """Note a success whose order is not known among the requests that concern the same member or instance id."""
        own = {name for one in effects_of(exchange) for name in (one.member_id, one.instance_id) if name}
        if any(name in own for other in open_ for one in effects_of(other) for name in (one.member_id, one.instance_id)):
            self.note(exchange, exchange.res_us)

    def at_work(self, exchange: Exchange, late_us: int) -> None:
        """Note that the coordinator answered: what was lost before this request was asked has acted by now, or never will."""
        if self.unanswered:
            until_us = exchange.res_us + late_us
            self.known = tuple(
                one._replace(until_us=min(one.until_us, until_us), lost_us=0) if 0 < one.lost_us < exchange.inv_us else one
                for one in self.known
            )
            self.unanswered = any(one.lost_us for one in self.known)

    def may_act_since(self, since_us: int) -> bool:
        """Return True if a request that has no answer to wait for may have taken effect since then."""
        return any(one.until_us >= since_us for one in self.known)

    def possible(self, exchange: Exchange, open_: Iterable[Exchange], since_us: int, skew_us: int) -> Iterator[PendingEffect]:
        """Yield what may have happened since a time, while the coordinator acted on an exchange or before.

        :param open_: the requests that are open, whether this one is among them or not.
        """
        yield from self.since(since_us - skew_us, (other for other in open_ if other.key != exchange.key))
        for does, until_us in ((Does.LOADS, self.loaded_us + skew_us), (Does.ANYTHING, self.hole_us)):
            if until_us >= max(since_us, skew_us + 1):
                yield PendingEffect(does, "", None, 0, until_us)

    def since(self, since_us: int, open_: Iterable[Exchange]) -> Iterator[PendingEffect]:
        """Yield what may have happened since a time, open requests included."""
        yield from chain.from_iterable(map(effects_of, open_))
        yield from (one for one in self.known if one.until_us >= since_us)


def effects_of(exchange: Exchange) -> Iterator[PendingEffect]:
    """Yield what a request does if it takes effect."""
    api_key = exchange.api_key
    if api_key == LEAVE_GROUP and isinstance(exchange.facts, LeaveFacts):
        yield from (PendingEffect(Does.LEAVES, *named, exchange.inv_us) for named in exchange.facts.members)
    elif api_key == JOIN_GROUP:
        yield PendingEffect(Does.JOINS, exchange.member_id, exchange.instance_id, exchange.inv_us)
    elif api_key in EPOCH_HEARTBEATS:
        does = Does.GOES_ON if exchange.generation > 0 else Does.LEAVES if exchange.generation < 0 else Does.JOINS
        yield PendingEffect(does, exchange.member_id, exchange.instance_id, exchange.inv_us)

"""The unlawful acts of ``consumer_unlawful.py`` in lives of share groups and Streams groups, and those that only these know."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from coordinator_model import wire
from tests.coordinator_model.reference.consumer_group import UNREVOKED, ConsumerMember
from tests.coordinator_model.reference.consumer_unlawful import (
    EpochLowered,
    ForeignMember,
    GoneAccepted,
    ImpossibleError,
    JoinWithoutEpoch,
    LeaveWithAnEpoch,
    MalformedAccepted,
    Shadow,
    StaleEpochAccepted,
    UnlawfulHeartbeat,
    WrongFence,
    heartbeats,
)
from tests.coordinator_model.reference.streams_coordinator import tasks_of
from tests.coordinator_model.reference.unlawful import Seen, Unlawful
from tests.coordinator_model.reference.world import Asked, Connection


class TasksGivenTwice(UnlawfulHeartbeat):
    """An active task that one member keeps is given to another."""

    rules = frozenset({"A-12"})

    def tempts(self, connection: Connection, request: Any, answer: Any) -> bool:
        if answer.error_code or answer.active_tasks is None or request.member_epoch < 0:
            return False
        return self._keeper(request.member_id) is not None

    def _keeper(self, member_id: str) -> ConsumerMember | None:
        """Somebody else, who holds tasks and is to keep them."""
        for one in self.group.members.values():
            keeps = one.epoch > 0 and one.state != UNREVOKED
            if one.id != member_id and keeps and set(one.assigned) & self.group.targets.get(one.id, frozenset()):
                return one
        return None

    def lie(self, asked: Asked, body: Any) -> Any:
        keeper = self._keeper(asked.body.member_id)
        assert keeper is not None
        self.keeper_id, self.task = keeper.id, min(set(keeper.assigned) & self.group.targets[keeper.id])
        more = wire.StreamsGroupHeartbeatResponseTaskIds(subtopology_id=self.task[0], partitions=(self.task[1],))
        return replace(body, active_tasks=(*body.active_tasks, more))

    def proves(self, act: Seen, seen: list[Seen]) -> bool:
        """The keeper was given it before, did not lose it, and is accepted afterwards without having joined again."""
        has = False
        for one in heartbeats(seen, self.keeper_id):
            joins_or_leaves = one.request.member_epoch <= 0
            if one.error or (joins_or_leaves and one.answered_us > act.asked_us):
                if one.answered_us > act.asked_us:
                    return False
                has = False
                continue
            shown = None if one.answer.active_tasks is None else tasks_of(one.answer.active_tasks)
            if one.asked_us > act.answered_us:
                return has and (shown is None or self.task in shown)
            if shown is not None:
                has = self.task in shown and one.answered_us < act.asked_us
        return False


class TwoEpochsBackAccepted(StaleEpochAccepted):
    """A share member may repeat its previous epoch, and no older one."""

    def request(self) -> Any:
        old = [one for one in self.group.members.values() if one.epoch >= 4]
        return self.beat(old[0].id, 1) if old else None

    def proves(self, act: Seen, seen: list[Seen]) -> bool:
        """Two newer epochs were answered to the member before it asked, without a join since."""
        if self.delivered(seen, act) is None:
            return False
        newer: set[int] = set()
        for one in heartbeats(seen, act.request.member_id):
            if one.answered_us < act.asked_us:
                newer = (set() if one.request.member_epoch <= 0 else newer) | {one.answer.member_epoch}
        return len(newer) > 1 and min(newer) > act.request.member_epoch


class JoinWithoutTopicsAccepted(MalformedAccepted):
    """A share member joins without a subscription."""

    def request(self) -> Any:
        return self.beat("greedy", 0)


class JoinWithTasksAccepted(MalformedAccepted):
    """A Streams member joins with tasks of its own."""

    def request(self) -> Any:
        body = self.beat("greedy", 0)
        body.rebalance_timeout_ms, body.topology = 60_000, wire.StreamsGroupHeartbeatRequestTopology()
        body.active_tasks = (wire.StreamsGroupHeartbeatRequestTaskIds(subtopology_id="0", partitions=(0,)),)
        body.standby_tasks = body.warmup_tasks = ()
        return body


def _of(kind: type[Any], *shared: type[Unlawful]) -> tuple[type[Unlawful], ...]:
    """The same acts, by somebody who sends heartbeats of this kind."""
    return tuple(type(act.__name__, (act,), {"kind": kind}) if issubclass(act, Shadow) else act for act in shared)


_SHARED = (EpochLowered, JoinWithoutEpoch, LeaveWithAnEpoch, WrongFence, ForeignMember, ImpossibleError, GoneAccepted)
SHARE_ACTS = _of(wire.ShareGroupHeartbeatRequest, *_SHARED, TwoEpochsBackAccepted, JoinWithoutTopicsAccepted)
STREAMS_ACTS = _of(wire.StreamsGroupHeartbeatRequest, *_SHARED, StaleEpochAccepted, JoinWithTasksAccepted, TasksGivenTwice)

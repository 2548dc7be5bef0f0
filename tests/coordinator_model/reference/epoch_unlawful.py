"""The unlawful acts of ``consumer_unlawful.py`` in lives of share groups and Streams groups, and those that only these know."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from coordinator_model import wire
from tests.coordinator_model.reference.consumer_unlawful import (
    DoubleGrant,
    EpochLowered,
    ForeignMember,
    GoneAccepted,
    Granted,
    ImpossibleError,
    JoinWithoutEpoch,
    LeaveWithAnEpoch,
    MalformedAccepted,
    Shadow,
    StaleEpochAccepted,
    WrongFence,
    heartbeats,
)
from tests.coordinator_model.reference.streams_coordinator import tasks_of
from tests.coordinator_model.reference.unlawful import Seen, Unlawful
from tests.coordinator_model.reference.world import Asked


class TasksGivenTwice(DoubleGrant):
    """An active task that one member keeps is given to another."""

    def given(self, answer: Any) -> Granted | None:
        return None if answer.active_tasks is None else tasks_of(answer.active_tasks)

    def lie(self, asked: Asked, body: Any) -> Any:
        keeper = self.keeper(asked.body.member_id)
        assert keeper is not None
        self.keeper_id, self.partition = keeper.id, min(set(keeper.assigned) & self.group.targets[keeper.id])
        name, number = self.partition
        more = wire.StreamsGroupHeartbeatResponseTaskIds(subtopology_id=name, partitions=(number,))
        return replace(body, active_tasks=(*body.active_tasks, more))


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

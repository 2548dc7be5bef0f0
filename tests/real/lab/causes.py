"""Troubles without a culprit: clients that do nothing unlawful one by one, and a group that comes to no rest all the same."""

from __future__ import annotations

import time
from collections.abc import Callable

from coordinator_model.finding import Blame
from streaming.demo.raw_client import NONE, REBALANCE_IN_PROGRESS, RawMember
from tests.real.lab.scene import HEARTBEAT_S, Scene, ViolationError
from tests.real.lab.violations import Violation

STAY_S = 4.0


def _settle(scene: Scene, name: str = "company", **options: str) -> RawMember:
    """A member that is in the group and follows the protocol by itself."""
    member = scene.steady(name, **options)
    scene.until(lambda: member.generation > 0, f"{name} joins")
    return member


def _live(scene: Scene, member: RawMember, for_s: float, each: Callable[[], object] = lambda: None) -> None:
    """Heartbeat for a while, and rejoin when told to."""
    deadline = time.monotonic() + for_s
    while time.monotonic() < deadline:
        error = member.heartbeat()
        if error == REBALANCE_IN_PROGRESS:
            scene.enter(member)
        elif error != NONE:
            raise ViolationError(f"a heartbeat of {member.connection.client_id} was answered with error {error}")
        each()
        time.sleep(HEARTBEAT_S)


def _scaled_up_and_down(scene: Scene) -> None:
    """An autoscaler that adds a client, and takes it away again as soon as the lag is gone."""
    _settle(scene)
    _settle(scene, "colleague")
    scene.fact()
    for turn, _ in enumerate(scene.until_found()):
        pod = scene.member(f"pod-{turn}")
        scene.enter(pod)
        _live(scene, pod, STAY_S)
        pod.leave()
        pod.connection.close()
        time.sleep(STAY_S)


def _moves_nothing(scene: Scene) -> None:
    """The leader joins again and again as it did before, as if the metadata of its topics had changed."""
    leader, company = scene.pair("leader", "company")
    scene.care_for(company)
    scene.fact()
    for _ in scene.until_found():
        _live(scene, leader, STAY_S / 2)
        scene.enter(leader)


CAUSES: tuple[Violation, ...] = (
    Violation(name="scaled-up-and-down", rule="R-24", blame=Blame.CONFIG, culprits=(), commit=_scaled_up_and_down),
    Violation(name="moves-nothing", rule="R-25", blame=Blame.CONFIG, culprits=(), commit=_moves_nothing),
)

"""Troubles without a culprit: clients that do nothing unlawful one by one, and a group that comes to no rest all the same."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable

from coordinator_model.finding import Blame
from coordinator_model.wire import (
    CONNECT,
    ConnectAssignment,
    ConnectWorkerState,
    ConsumerProtocolSubscription,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    encode_connect_assignment,
    encode_connect_worker_state,
    encode_subscription,
)
from coordinator_model.wire.constants import NONE, REBALANCE_IN_PROGRESS
from streaming.demo.raw_client import VERSIONS, RawClientError, RawMember
from tests.real.lab.scene import (
    HEARTBEAT_S,
    REBALANCE_MS,
    SESSION_MS,
    SHORT_REBALANCE_MS,
    SHORT_SESSION_MS,
    STEP_S,
    TOPIC,
    Scene,
    ViolationError,
)
from tests.real.lab.violations import Violation

STAY_S = 4.0
HALF_A_RECORD = 560_000  #: bytes
AHEAD, BEHIND = 7, 2  #: offsets of config topics
JOIN_BEFORE_IDS = 3  #: the last version of JoinGroup before new members get an id first (KIP-394)


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


def _gives_up_joins(scene: Scene) -> None:
    """A client whose request timeout is shorter than the time that the others take to rejoin: it hangs up, and asks again."""
    scene.pair("busy", "company")
    scene.fact()
    for _ in scene.until_found():
        name = f"{scene.group}-impatient"
        impatient = RawMember(
            connection=scene.connect(name, {**VERSIONS, JoinGroupRequest.API_KEY: JOIN_BEFORE_IDS}),
            group=scene.group,
            topic=TOPIC,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
        )
        with contextlib.suppress(RawClientError):
            impatient.join(timeout_s=STAY_S)
        impatient.connection.close()


def _beats_too_seldom(scene: Scene) -> None:
    """Members whose rebalance timeout is shorter than their heartbeat interval drop each other, and come back.

    It is a quarter of that interval, and they begin a half of it apart, or all of them might happen to be told in time.
    """
    scene.fact()
    for number in range(3):
        member = scene.member(f"seldom-{number}", rebalance_ms=round(1000 * STAY_S / 8))
        threading.Thread(target=_beat_seldom, args=(scene, member), name=member.connection.client_id, daemon=True).start()
        time.sleep(1.0)
    for _ in scene.until_found():
        pass


def _beat_seldom(scene: Scene, member: RawMember) -> None:
    with contextlib.suppress(RawClientError, ViolationError, OSError):
        scene.enter(member)
        while not scene.ends.wait(STAY_S / 2):
            error = member.heartbeat()
            if error != NONE:
                member.member_id = member.member_id if error == REBALANCE_IN_PROGRESS else ""
                with contextlib.suppress(RawClientError, ViolationError):
                    scene.enter(member)


def _polls_too_rarely(scene: Scene) -> None:
    """An application that always takes longer between two polls than its poll interval: its client leaves, and comes back."""
    _settle(scene)
    slow = scene.member("slow", rebalance_ms=SHORT_REBALANCE_MS)
    scene.enter(slow)
    scene.fact()
    for _ in scene.until_found():
        _live(scene, slow, SHORT_REBALANCE_MS / 1000 + 0.5)
        slow.leave()
        slow.member_id = ""
        time.sleep(STAY_S)
        scene.enter(slow)


def _joins_hot(scene: Scene) -> None:
    """A client that keeps an id which the coordinator does not know, and asks again as fast as it is refused."""
    _settle(scene)
    member = scene.member("hot")
    scene.fact()
    for _ in scene.until_found(every_s=0.05):
        member.member_id = f"{scene.group}-forgotten"
        member.join(timeout_s=STEP_S)


def _record_grows_large(scene: Scene) -> None:
    """A subscription that takes more than half of what the offsets topic takes as one record."""
    subscription = encode_subscription(ConsumerProtocolSubscription(topics=(TOPIC,), user_data=bytes(HALF_A_RECORD)))
    member = scene.member("company", protocols=(JoinGroupRequestProtocol(name="range", metadata=subscription),))
    scene.fact()
    scene.enter(member)
    for _ in scene.until_found():
        _live(scene, member, HEARTBEAT_S)


def _reads_other_configs(scene: Scene) -> None:
    """A Connect worker with another config topic, which has read less of it than its leader has of its own."""
    leader, late = _worker(scene, "leader", AHEAD), _worker(scene, "late", BEHIND)
    _assign(leader)
    scene.together(lambda: _assign(late), lambda: (scene.until_told(leader), _assign(leader)))
    scene.fact()
    for _ in scene.until_found():
        leader.heartbeat()
        late.heartbeat()
        _assign(late)


def _worker(scene: Scene, name: str, config_offset: int) -> RawMember:
    state = ConnectWorkerState(url=f"http://{name}:8083/", config_offset=config_offset)
    offer = JoinGroupRequestProtocol(name="sessioned", metadata=encode_connect_worker_state(state))
    return scene.member(name, session_ms=SHORT_SESSION_MS, protocols=(offer,), protocol_type=CONNECT)


def _assign(worker: RawMember) -> None:
    """Join and sync as a Connect worker does; who leads assigns with the larger offset."""
    joined = worker.enter(timeout_s=STEP_S)
    assigned = encode_connect_assignment(
        ConnectAssignment(leader=joined.leader, leader_url="http://leader:8083/", config_offset=AHEAD)
    )
    answer = worker.sync(dict.fromkeys(joined.members, assigned), timeout_s=STEP_S)
    if answer.error_code != NONE:
        raise ViolationError(f"SyncGroup of {worker.connection.client_id} refused with error {answer.error_code}")


CAUSES: tuple[Violation, ...] = (
    Violation(name="scaled-up-and-down", rule="R-24", blame=Blame.CONFIG, culprits=(), commit=_scaled_up_and_down),
    Violation(name="moves-nothing", rule="R-25", blame=Blame.CONFIG, culprits=(), commit=_moves_nothing),
    Violation(name="joins-given-up", rule="T-10", blame=Blame.CONFIG, culprits=(), commit=_gives_up_joins),
    Violation(name="beats-too-seldom", rule="T-11", blame=Blame.CONFIG, culprits=(), commit=_beats_too_seldom),
    Violation(name="polls-too-rarely", rule="T-12", blame=Blame.CLIENT, culprits=(), commit=_polls_too_rarely),
    Violation(name="joins-hot", rule="R-26", blame=Blame.CLIENT, culprits=(), commit=_joins_hot),
    Violation(name="reads-other-configs", rule="R-27", blame=Blame.CONFIG, culprits=(), commit=_reads_other_configs),
    Violation(name="record-grows-large", rule="C-15", blame=Blame.CONFIG, culprits=(), commit=_record_grows_large),
)

"""The violations: lies told by a proxy before the broker, and members that break the protocol, each with what must be found of it.

The expectation is a rule of the catalogue, who is to blame and which clients have to be named. Each violation is committed in a group of
its own by members on the raw client, which do nothing by themselves.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from coordinator_model.finding import Blame
from coordinator_model.wire import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    JoinGroupResponseMember,
    OffsetCommitResponse,
    SyncGroupResponse,
    encode_assignment,
    encode_subscription,
)
from coordinator_model.wire.constants import ILLEGAL_GENERATION, MEMBER_ID_REQUIRED, NONE, UNKNOWN_MEMBER_ID
from streaming.demo.faulty_proxy import Forge, ProxiedExchange, Swallow
from streaming.demo.raw_client import RawClientError, RawMember, share
from tests.real.lab.scene import (
    PARTITIONS,
    SHORT_REBALANCE_MS,
    SHORT_SESSION_MS,
    STEP_S,
    TOPIC,
    Lie,
    Scene,
    ViolationError,
)

UNKNOWN_SERVER_ERROR = -1
LARGE_SUBSCRIPTION = 470_000  #: bytes; two of them fit into the answer to the leader, which the tap keeps whole up to 1 MB
LARGE_ASSIGNMENT = 90_000  #: with two of these the group's record exceeds 1 MiB, max.message.bytes of the offsets topic


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One violation; its name is that of its group too."""

    name: str
    rule: str
    blame: Blame
    culprits: tuple[str, ...] = ("culprit",)  #: members that the finding has to name; none where it is about the whole group
    or_culprits: tuple[str, ...] = ()  #: or these, where nobody who watches can tell which of two answers is the lie
    commit: Callable[[Scene], None]
    since: tuple[int, int] = (0, 0)  #: the oldest release that has such groups


def of(client: str, response: type, change: Callable[[Any, ProxiedExchange], Any]) -> Lie:
    """A lie about successful answers of one type to one member."""

    def lie(exchange: ProxiedExchange) -> Forge | Swallow | None:
        answer = exchange.response
        if exchange.client_id is None or not exchange.client_id.endswith(f"-{client}") or not isinstance(answer, response):
            return None
        told = change(answer, exchange)
        return told if told is None or isinstance(told, Forge | Swallow) else Forge(told)

    return lie


def _error(expected: int, told: int) -> Callable[[Any, ProxiedExchange], Any]:
    def change(answer: Any, _: ProxiedExchange) -> Any:
        return replace(answer, error_code=told) if answer.error_code == expected else None

    return change


def with_error(answer: OffsetCommitResponse, error: int) -> OffsetCommitResponse:
    """The answer to a commit with one error for all its partitions."""
    return replace(
        answer,
        topics=tuple(
            replace(topic, partitions=tuple(replace(partition, error_code=error) for partition in topic.partitions))
            for topic in answer.topics
        ),
    )


# --- lies about heartbeats and commits ----------------------------------------------------------------------------------


def _stale_accepted(scene: Scene) -> None:
    culprit, company = scene.pair()
    old = culprit.generation
    scene.rebalance(culprit, company)
    scene.care_for(company)
    scene.lie(of("culprit", HeartbeatResponse, _error(22, NONE)))
    for _ in scene.until_found():
        culprit.heartbeat(generation=old)


def _stale_commit_accepted(scene: Scene) -> None:
    culprit, company = scene.pair()
    old = culprit.generation
    scene.rebalance(culprit, company)
    scene.care_for(company)

    scene.lie(of("culprit", OffsetCommitResponse, lambda answer, _: with_error(answer, NONE)))
    for _ in scene.until_found():
        culprit.commit(0, 1, generation=old)
        culprit.heartbeat()


def _valid_refused(told: int) -> Callable[[Scene], None]:
    def commit(scene: Scene) -> None:
        culprit, company = scene.pair()
        scene.care_for(company)
        culprit.heartbeat()
        scene.lie(of("culprit", HeartbeatResponse, _error(NONE, told)))
        culprit.heartbeat()
        scene.tell_truth()
        for _ in scene.until_found():
            culprit.heartbeat()

    return commit


def _stranger_accepted(scene: Scene) -> None:
    """A member that has left is told that it is one, when the next generation is proven to be without it."""
    culprit, company = scene.pair()
    scene.care_for(company)
    culprit.leave()
    old = company.generation
    scene.until(lambda: company.generation > old, "the next generation, without the member that left")
    culprit.generation = company.generation
    scene.lie(of("culprit", HeartbeatResponse, _error(25, NONE)))
    for _ in scene.until_found():
        culprit.heartbeat()


def _fenced_accepted(scene: Scene) -> None:
    """The old holder of an instance id is told that all is well after the new one got its assignment."""
    culprit = scene.member("culprit", instance_id="slot")
    scene.enter(culprit)
    scene.know(culprit)
    successor = scene.member("company", instance_id="slot")
    scene.enter(successor)
    scene.care_for(successor)
    scene.lie(of("culprit", HeartbeatResponse, _error(82, NONE)))
    for _ in scene.until_found():
        culprit.heartbeat()


def _impossible_error(scene: Scene) -> None:
    culprit, company = scene.pair()
    scene.care_for(company)
    scene.lie(of("culprit", HeartbeatResponse, _error(NONE, 3)))
    culprit.heartbeat()
    scene.tell_truth()
    for _ in scene.until_found():
        culprit.heartbeat()


def _heartbeat_swallowed(scene: Scene) -> None:
    culprit, company = scene.pair()
    scene.care_for(company)
    scene.lie(of("culprit", HeartbeatResponse, lambda _answer, _exchange: Swallow()))
    culprit.connection.send(_heartbeat(culprit))
    for _ in scene.until_found():
        pass


def _join_swallowed(scene: Scene) -> None:
    """A follower waits for an answer that was swallowed, while the others go on."""
    company, culprit = scene.pair("company", "culprit")
    scene.truth.member_ids = {culprit.member_id}
    scene.lie(of("culprit", JoinGroupResponse, lambda _answer, _exchange: Swallow()))

    def follow() -> None:
        scene.until_told(culprit)
        culprit.connection.send(culprit.join_request())

    scene.together(lambda: scene.enter(company), follow)
    scene.care_for(company)
    for _ in scene.until_found():
        pass


def _sync_swallowed(scene: Scene) -> None:
    company, culprit = scene.pair("company", "culprit")
    scene.truth.member_ids = {culprit.member_id}
    scene.lie(of("culprit", SyncGroupResponse, lambda _answer, _exchange: Swallow()))

    def follow() -> None:
        scene.follow(culprit)
        with contextlib.suppress(RawClientError):
            culprit.sync(timeout_s=0.1)

    scene.together(lambda: scene.enter(company), follow)
    scene.care_for(company)
    for _ in scene.until_found():
        pass


def _heartbeat(member: RawMember) -> HeartbeatRequest:
    return HeartbeatRequest(
        group_id=member.group, generation_id=member.generation, member_id=member.member_id, group_instance_id=member.instance_id
    )


def _delayed(scene: Scene) -> None:
    culprit, company = scene.pair(session_ms=SHORT_SESSION_MS)
    scene.care_for(company)
    scene.lie(of("culprit", HeartbeatResponse, lambda _answer, _exchange: Forge(None, delay_s=3.0)))
    culprit.heartbeat()
    scene.tell_truth()
    for _ in scene.until_found():
        culprit.heartbeat()


# --- lies about joins and syncs -----------------------------------------------------------------------------------------


def _join_lied(change: Callable[[JoinGroupResponse, ProxiedExchange], JoinGroupResponse | None]) -> Callable[[Scene], None]:
    """The leader's next JoinGroup success is another than the broker's."""

    def commit(scene: Scene) -> None:
        culprit, company = scene.pair()
        before = culprit.generation
        scene.rebalance(culprit, company)  # so that there is room below the newest generation
        assert culprit.generation > before
        scene.care_for(company)
        scene.lie(of("culprit", JoinGroupResponse, lambda answer, asked: None if answer.error_code else change(answer, asked)))
        culprit.connection.ask(culprit.join_request(), JoinGroupResponse, timeout_s=STEP_S)
        for _ in scene.until_found():
            pass

    return commit


def _lower_generation(answer: JoinGroupResponse, _: ProxiedExchange) -> JoinGroupResponse:
    return replace(answer, generation_id=answer.generation_id - 2)


def _other_member(answer: JoinGroupResponse, _: ProxiedExchange) -> JoinGroupResponse:
    other = next(member.member_id for member in answer.members if member.member_id != answer.member_id)
    return replace(answer, member_id=other)


def _other_protocol(answer: JoinGroupResponse, _: ProxiedExchange) -> JoinGroupResponse:
    return replace(answer, protocol_name="roundrobin")


def _without_leader(answer: JoinGroupResponse, _: ProxiedExchange) -> JoinGroupResponse:
    return replace(answer, members=tuple(member for member in answer.members if member.member_id != answer.leader))


def _no_members(answer: JoinGroupResponse, _: ProxiedExchange) -> JoinGroupResponse:
    return replace(answer, members=())


def _two_leaders(scene: Scene) -> None:
    """The follower is told that it leads, with the same members."""
    leader, follower = scene.pair("company", "culprit")
    scene.truth.member_ids.clear()

    def change(answer: JoinGroupResponse, _: ProxiedExchange) -> JoinGroupResponse | None:
        if answer.error_code:
            return None
        members = tuple(
            JoinGroupResponseMember(member_id=member.member_id, metadata=member.protocols[0].metadata)
            for member in (leader, follower)
        )
        return replace(answer, leader=answer.member_id, members=members)

    scene.lie(of("culprit", JoinGroupResponse, change))

    def follow() -> None:
        scene.until_told(follower)
        follower.connection.ask(follower.join_request(), JoinGroupResponse, timeout_s=STEP_S)

    scene.together(lambda: leader.enter(timeout_s=STEP_S), follow)
    for _ in scene.until_found():
        pass


def _sync_lied(change: Callable[[SyncGroupResponse, ProxiedExchange], SyncGroupResponse]) -> Callable[[Scene], None]:
    def commit(scene: Scene) -> None:
        culprit, company = scene.pair()
        scene.lie(of("culprit", SyncGroupResponse, lambda answer, asked: None if answer.error_code else change(answer, asked)))
        scene.rebalance(culprit, company)
        scene.care_for(company)
        for _ in scene.until_found():
            culprit.heartbeat()

    return commit


def _swapped(answer: SyncGroupResponse, exchange: ProxiedExchange) -> SyncGroupResponse:
    other = next(entry.assignment for entry in exchange.request.assignments if entry.member_id != exchange.request.member_id)
    return replace(answer, assignment=other)


def _emptied(answer: SyncGroupResponse, _: ProxiedExchange) -> SyncGroupResponse:
    return replace(answer, assignment=b"")


# --- members that break the protocol ------------------------------------------------------------------------------------


def _refused(error: int, expected: int) -> None:
    if error != expected:
        raise ViolationError(f"answered with error {error}, where {expected} was due")


def _zombie_generation(scene: Scene) -> None:
    culprit, company = scene.pair()
    old = culprit.generation
    scene.rebalance(culprit, company)
    scene.care_for(company)
    scene.fact()
    for _ in scene.until_found():
        _refused(culprit.heartbeat(generation=old), ILLEGAL_GENERATION)


def _zombie_member(scene: Scene) -> None:
    """Silent for longer than its session lasts, and then goes on as if it were a member."""
    culprit, company = scene.pair(session_ms=SHORT_SESSION_MS)
    scene.care_for(company)
    scene.over.wait(2 * SHORT_SESSION_MS / 1000)
    scene.fact()
    for _ in scene.until_found():
        _refused(culprit.heartbeat(), UNKNOWN_MEMBER_ID)


def _zombie_committer(scene: Scene) -> None:
    culprit, company = scene.pair()
    old = culprit.generation
    scene.rebalance(culprit, company)
    scene.care_for(company)
    scene.fact()
    for offset, _ in enumerate(scene.until_found()):
        _refused(culprit.commit(0, offset, generation=old), ILLEGAL_GENERATION)


def _leader_never_syncs(scene: Scene) -> None:
    culprit, company = scene.pair(rebalance_ms=SHORT_REBALANCE_MS)
    scene.care_for(company)
    culprit.enter(timeout_s=STEP_S)
    scene.fact()
    for _ in scene.until_found():
        culprit.heartbeat()


def _follower_never_syncs(scene: Scene) -> None:
    company, culprit = scene.pair("company", "culprit", rebalance_ms=SHORT_REBALANCE_MS)
    scene.truth.member_ids = {culprit.member_id}
    scene.together(lambda: scene.enter(company), lambda: scene.follow(culprit))
    scene.care_for(company)
    scene.fact()
    for _ in scene.until_found():
        culprit.heartbeat()


def _never_rejoins(scene: Scene) -> None:
    company, culprit = scene.pair("company", "culprit", rebalance_ms=SHORT_REBALANCE_MS)
    scene.truth.member_ids = {culprit.member_id}
    company.connection.send(company.join_request())
    scene.until_told(culprit)
    scene.fact()
    for _ in scene.until_found():
        culprit.heartbeat()


def _abandons_ids(scene: Scene) -> None:
    """Asks for an id again and again, and uses none."""
    scene.steady("company")
    culprit = scene.member("culprit")
    scene.fact()
    for _ in scene.until_found():
        culprit.member_id = ""
        if culprit.join().error_code != MEMBER_ID_REQUIRED:
            raise ViolationError("the broker did not hand out an id")


def _pending_id_blocks(scene: Scene) -> None:
    """Takes an id and goes away without using it; the others' next join phase waits for it."""
    first, second = scene.pair("company", "other")
    scene.truth.member_ids.clear()
    culprit = scene.member("culprit", session_ms=20_000)
    culprit.join()
    scene.fact()
    scene.care_for(second)
    scene.care_for(first)
    trigger = scene.member("newcomer")
    trigger.join()
    trigger.connection.send(trigger.join_request())
    for _ in scene.until_found():
        pass


def _assigns(assignment: Callable[[RawMember, RawMember], dict[str, bytes]]) -> Callable[[Scene], None]:
    def commit(scene: Scene) -> None:
        culprit, company = scene.pair()
        scene.care_for(company)
        culprit.enter(timeout_s=STEP_S)
        scene.fact()
        culprit.sync(assignment(culprit, company))
        for _ in scene.until_found():
            culprit.heartbeat()

    return commit


def _twice(culprit: RawMember, company: RawMember) -> dict[str, bytes]:
    everything = share(TOPIC, PARTITIONS, [culprit.member_id])[culprit.member_id]
    return dict.fromkeys((culprit.member_id, company.member_id), everything)


def _to_a_stranger(culprit: RawMember, company: RawMember) -> dict[str, bytes]:
    return share(TOPIC, PARTITIONS, [culprit.member_id, company.member_id, "nobody-1"])


def _one_left_out(culprit: RawMember, _company: RawMember) -> dict[str, bytes]:
    return share(TOPIC, PARTITIONS, [culprit.member_id])


def _other_topic(culprit: RawMember, company: RawMember) -> dict[str, bytes]:
    return share("lab-b", PARTITIONS, [culprit.member_id, company.member_id])


def _to_nobody(_culprit: RawMember, _company: RawMember) -> dict[str, bytes]:
    return {}


def _follower_submits(scene: Scene) -> None:
    company, culprit = scene.pair("company", "culprit")
    scene.truth.member_ids = {culprit.member_id}

    def follow() -> None:
        scene.follow(culprit)
        scene.fact()
        culprit.sync(share(TOPIC, PARTITIONS, [culprit.member_id]))

    scene.together(lambda: scene.enter(company), follow)
    scene.care_for(company)
    for _ in scene.until_found():
        culprit.heartbeat()


def _future_generation(scene: Scene) -> None:
    culprit, company = scene.pair()
    scene.care_for(company)
    scene.fact()
    for _ in scene.until_found():
        _refused(culprit.heartbeat(generation=culprit.generation + 7), ILLEGAL_GENERATION)
        culprit.heartbeat()


def _invented_id(scene: Scene) -> None:
    other, company = scene.pair("other", "company", session_ms=SHORT_SESSION_MS)
    scene.truth.member_ids.clear()
    scene.care_for(company)
    scene.care_for(other)
    scene.over.wait(SHORT_SESSION_MS / 1000 + 1)  # younger groups may have handed out ids before anybody looked
    culprit = scene.member("culprit", session_ms=SHORT_SESSION_MS)
    culprit.member_id = "culprit-00000000-0000-4000-8000-000000000000"
    scene.know(culprit)
    scene.fact()
    culprit.join()
    for _ in scene.until_found():
        pass


def _same_instance(scene: Scene) -> None:
    """Two processes with one instance id throw each other out, as supervisors start them again."""
    scene.fact()
    previous: RawMember | None = None
    for turn, _ in enumerate(scene.until_found(every_s=1.0)):
        member = scene.member("culprit" if turn % 2 else "twin", instance_id="slot")
        scene.enter(member)
        if previous is not None:
            previous.heartbeat()  # and is told that it is fenced
            previous.connection.close()
        previous = member


def _fenced_goes_on(scene: Scene) -> None:
    culprit = scene.member("culprit", instance_id="slot")
    scene.enter(culprit)
    scene.know(culprit)
    successor = scene.member("company", instance_id="slot")
    scene.enter(successor)
    scene.care_for(successor)
    culprit.heartbeat()
    scene.fact()
    for _ in scene.until_found():
        culprit.heartbeat()


def _instance_forgotten(scene: Scene) -> None:
    """A static member heartbeats without its instance id."""
    culprit = scene.member("culprit", instance_id="slot")
    scene.enter(culprit)
    scene.know(culprit)
    anonymous = replace(culprit, instance_id=None)
    scene.fact()
    for _ in scene.until_found():
        anonymous.heartbeat()


def _dies(scene: Scene) -> None:
    """Dies without leaving; as soon as somebody new joins, the others give up their partitions and wait for its session to end."""
    culprit, company = scene.pair()
    scene.care_for(company)
    culprit.connection.close()
    scene.fact()
    scene.steady("newcomer")
    for _ in scene.until_found():
        pass


def _crash_loop(scene: Scene) -> None:
    """Joins, dies without leaving, and is started again, as a supervisor does it."""
    company = scene.steady("company")
    scene.until(lambda: company.generation > 0, "company joins")
    for _ in scene.until_found():
        culprit = scene.member("culprit", session_ms=SHORT_SESSION_MS)
        scene.enter(culprit)
        culprit.connection.close()
        if scene.truth.fact_us is None:
            scene.fact()


def _ping_pong(scene: Scene) -> None:
    culprit, company = scene.pair("culprit", "company")
    scene.care_for(company)
    scene.fact()
    for turn, _ in enumerate(scene.until_found()):
        topics = (TOPIC, "lab-b") if turn % 2 == 0 else (TOPIC,)
        metadata = encode_subscription(ConsumerProtocolSubscription(topics=topics), 1)
        culprit.protocols = (JoinGroupRequestProtocol(name="range", metadata=metadata),)
        scene.enter(culprit)


def _joins_only(scene: Scene) -> None:
    """Joins again and again without ever fetching its assignment."""
    culprit, company = scene.pair("culprit", "company")
    scene.care_for(company)
    scene.fact()
    for _ in scene.until_found():
        culprit.enter(timeout_s=STEP_S)


def _garbage_subscription(scene: Scene) -> None:
    scene.steady("company")
    culprit = scene.member("culprit", protocols=(JoinGroupRequestProtocol(name="range", metadata=b"\x00"),))
    scene.fact()
    culprit.enter(timeout_s=STEP_S)
    for _ in scene.until_found():
        culprit.heartbeat()


def _foreign_partition(scene: Scene) -> None:
    """Commits partitions of both: the coordinator lists members in any order, so either may be the other's."""
    culprit, company = scene.pair()
    scene.rebalance(culprit, company)
    scene.care_for(company)
    scene.fact()
    for _ in scene.until_found():
        culprit.commit(0, 5)
        culprit.commit(1, 5)


def _goes_back(scene: Scene) -> None:
    culprit, company = scene.pair()
    scene.care_for(company)
    culprit.commit(0, 100)
    scene.fact()
    culprit.commit(0, 50)
    for _ in scene.until_found():
        culprit.heartbeat()


def _metadata_too_large(scene: Scene) -> None:
    """The subscriptions and assignments of a generation exceed what the offsets topic takes as one record."""
    subscription = encode_subscription(ConsumerProtocolSubscription(topics=(TOPIC,), user_data=bytes(LARGE_SUBSCRIPTION)))
    offered = (JoinGroupRequestProtocol(name="range", metadata=subscription),)
    leader, follower = scene.member("culprit", protocols=offered), scene.member("company", protocols=offered)
    scene.enter(leader)
    with ThreadPoolExecutor(1) as pool:
        joining = pool.submit(follower.enter, timeout_s=STEP_S)
        scene.until_told(leader)
        joined = leader.enter(timeout_s=STEP_S)
        joining.result(STEP_S)
    assignment = encode_assignment(ConsumerProtocolAssignment(user_data=bytes(LARGE_ASSIGNMENT)), 1)
    scene.fact()
    answer = leader.sync(dict.fromkeys(joined.members, assignment), timeout_s=STEP_S)
    if answer.error_code != UNKNOWN_SERVER_ERROR:
        raise ViolationError(f"a SyncGroup was answered with error {answer.error_code}: the record is not too large")
    for _ in scene.until_found():
        pass


VIOLATIONS: tuple[Violation, ...] = (
    Violation(name="metadata-too-large", rule="C-08", blame=Blame.CONFIG, culprits=(), commit=_metadata_too_large),
    Violation(name="stale-generation-accepted", rule="G-02", blame=Blame.BROKER, commit=_stale_accepted),
    Violation(name="stale-commit-accepted", rule="O-02", blame=Blame.BROKER, commit=_stale_commit_accepted),
    Violation(name="valid-generation-refused", rule="G-03", blame=Blame.BROKER, commit=_valid_refused(22)),
    Violation(name="member-called-unknown", rule="M-03", blame=Blame.BROKER, commit=_valid_refused(25)),
    Violation(name="stranger-accepted", rule="M-02", blame=Blame.BROKER, commit=_stranger_accepted),
    Violation(name="fenced-accepted", rule="S-03", blame=Blame.BROKER, commit=_fenced_accepted),
    Violation(name="impossible-error", rule="P-07", blame=Blame.BROKER, commit=_impossible_error),
    Violation(
        name="heartbeat-swallowed",
        rule="C-01",
        blame=Blame.BROKER,
        commit=_heartbeat_swallowed,
    ),
    Violation(name="join-swallowed", rule="C-02", blame=Blame.BROKER, commit=_join_swallowed),
    Violation(name="sync-swallowed", rule="C-03", blame=Blame.BROKER, commit=_sync_swallowed),
    Violation(name="heartbeat-delayed", rule="T-06", blame=Blame.BROKER, commit=_delayed),
    Violation(name="generation-lowered", rule="G-04", blame=Blame.BROKER, commit=_join_lied(_lower_generation)),
    Violation(name="answer-for-another", rule="M-08", blame=Blame.BROKER, commit=_join_lied(_other_member)),
    Violation(name="protocol-not-offered", rule="P-03", blame=Blame.BROKER, commit=_join_lied(_other_protocol)),
    Violation(name="leader-not-listed", rule="P-05", blame=Blame.BROKER, commit=_join_lied(_without_leader)),
    Violation(name="leader-without-list", rule="P-04", blame=Blame.BROKER, commit=_join_lied(_no_members)),
    Violation(name="two-leaders", rule="P-06", blame=Blame.BROKER, or_culprits=("company",), commit=_two_leaders),
    Violation(name="assignment-swapped", rule="A-05", blame=Blame.BROKER, commit=_sync_lied(_swapped)),
    Violation(name="assignment-emptied", rule="A-06", blame=Blame.BROKER, commit=_sync_lied(_emptied)),
    Violation(name="zombie-generation", rule="G-01", blame=Blame.CLIENT, commit=_zombie_generation),
    Violation(name="zombie-member", rule="M-01", blame=Blame.CLIENT, commit=_zombie_member),
    Violation(name="zombie-committer", rule="G-01", blame=Blame.CLIENT, commit=_zombie_committer),
    Violation(name="leader-never-syncs", rule="R-02", blame=Blame.CLIENT, commit=_leader_never_syncs),
    Violation(name="follower-never-syncs", rule="R-03", blame=Blame.CLIENT, commit=_follower_never_syncs),
    Violation(name="never-rejoins", rule="R-08", blame=Blame.CLIENT, commit=_never_rejoins),
    Violation(name="dies-without-leaving", rule="R-18", blame=Blame.CLIENT, commit=_dies),
    Violation(name="crash-loop", rule="M-13", blame=Blame.CLIENT, commit=_crash_loop),
    Violation(name="ids-abandoned", rule="M-05", blame=Blame.CLIENT, commit=_abandons_ids),
    Violation(name="pending-id-blocks", rule="R-09", blame=Blame.CLIENT, commit=_pending_id_blocks),
    Violation(name="partition-given-twice", rule="A-03", blame=Blame.CLIENT, commit=_assigns(_twice)),
    Violation(name="stranger-assigned", rule="A-01", blame=Blame.CLIENT, commit=_assigns(_to_a_stranger)),
    Violation(name="member-left-out", rule="A-02", blame=Blame.CLIENT, commit=_assigns(_one_left_out)),
    Violation(name="unsubscribed-assigned", rule="A-04", blame=Blame.CLIENT, commit=_assigns(_other_topic)),
    Violation(name="nothing-assigned", rule="A-08", blame=Blame.CLIENT, commit=_assigns(_to_nobody)),
    Violation(name="follower-submits", rule="A-07", blame=Blame.CLIENT, commit=_follower_submits),
    Violation(name="future-generation", rule="G-07", blame=Blame.CLIENT, commit=_future_generation),
    Violation(name="id-invented", rule="M-04", blame=Blame.CLIENT, commit=_invented_id),
    Violation(name="same-instance", rule="S-01", blame=Blame.CONFIG, culprits=("culprit", "twin"), commit=_same_instance),
    Violation(name="fenced-goes-on", rule="S-02", blame=Blame.CLIENT, commit=_fenced_goes_on),
    Violation(name="instance-id-forgotten", rule="S-07", blame=Blame.CLIENT, commit=_instance_forgotten),
    Violation(name="subscription-ping-pong", rule="R-17", blame=Blame.CLIENT, commit=_ping_pong),
    Violation(name="joins-without-sync", rule="R-10", blame=Blame.CLIENT, commit=_joins_only),
    Violation(name="garbage-subscription", rule="P-13", blame=Blame.CLIENT, commit=_garbage_subscription),
    Violation(name="foreign-partition-committed", rule="O-05", blame=Blame.CLIENT, commit=_foreign_partition),
    Violation(name="offset-goes-back", rule="O-07", blame=Blame.CLIENT, commit=_goes_back),
)

"""The violations in groups whose members have epochs: of the coordinator, told by a proxy, and of members (KIP-848, KIP-932, KIP-1071).

What ``violations.py`` says of the others holds here too.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from coordinator_model.finding import Blame
from coordinator_model.wire import (
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseTopicPartitions,
    LeaveGroupRequest,
    LeaveGroupRequestMemberIdentity,
    LeaveGroupResponse,
    OffsetCommitResponse,
    ShareGroupHeartbeatResponse,
    StreamsGroupHeartbeatResponse,
)
from coordinator_model.wire.constants import NONE, UNKNOWN_MEMBER_ID
from streaming.demo.faulty_proxy import Forge, ProxiedExchange
from tests.real.lab.epoch_scene import (
    ASIDE,
    LEAVE,
    EpochMember,
    ShareMember,
    StreamsMember,
    care_for,
    enter,
    enter_all,
    listed,
    member,
    pair,
    places,
    settle,
)
from tests.real.lab.scene import SHORT_REBALANCE_MS, TOPIC, Lie, Scene, ViolationError
from tests.real.lab.violations import Violation, of, with_error

UNKNOWN_SERVER_ERROR = -1
REBALANCE_IN_PROGRESS = 27
INVALID_REQUEST = 42
FENCED_INSTANCE_ID = 82
FENCED_MEMBER_EPOCH = 110
UNRELEASED_INSTANCE_ID = 111
STALE_MEMBER_EPOCH = 113

HEARTBEAT_ANSWERS = (ConsumerGroupHeartbeatResponse, ShareGroupHeartbeatResponse, StreamsGroupHeartbeatResponse)

SEEN_FOR_S = 62.0  #: a group that was seen for so long is known from its first member on
HELD_S = 2.0  #: longer than clocks differ

NO_TOPIC = "lab-not-there"
_SOME_TOPIC = "c29tZSBvdGhlciB0b3BpYw"  #: an id that no topic has

Change = Callable[[Any], Any]


def _success(change: Change) -> Lie:
    """A lie about the successful heartbeats of the culprit."""

    def told(answer: Any, _: ProxiedExchange) -> Any:
        return None if answer.error_code else change(answer)

    lies = [of("culprit", response, told) for response in HEARTBEAT_ANSWERS]
    return lambda exchange: next((lie for lie in (one(exchange) for one in lies) if lie is not None), None)


def _accepted(error: int, epoch: int) -> Lie:
    """A lie that makes a success at an epoch of what was refused."""

    def told(answer: ConsumerGroupHeartbeatResponse, exchange: ProxiedExchange) -> ConsumerGroupHeartbeatResponse | None:
        if answer.error_code != error:
            return None
        return ConsumerGroupHeartbeatResponse(member_id=exchange.request.member_id, member_epoch=epoch, heartbeat_interval_ms=5_000)

    return of("culprit", ConsumerGroupHeartbeatResponse, told)


def _refused(answer: Any, error: int) -> None:
    if answer.error_code != error:
        raise ViolationError(f"answered with error {answer.error_code}, where {error} was due")


def _told(change: Change, kind: type[EpochMember] = EpochMember, **options: Any) -> Callable[[Scene], None]:
    """One full heartbeat of the culprit is answered otherwise."""

    def commit(scene: Scene) -> None:
        culprit, company = pair(scene, kind, **options)
        care_for(scene, company)
        culprit.beat()
        scene.lie(_success(change))
        culprit.say(**culprit.everything())
        scene.tell_truth()
        for _ in scene.until_found():
            culprit.say()

    return commit


# --- lies about heartbeats ----------------------------------------------------------------------------------------------


def _lowered(answer: Any) -> Any:
    return replace(answer, member_epoch=answer.member_epoch - 1)


def _as_another(answer: Any) -> Any:
    return replace(answer, member_id=str(uuid.uuid4()))


def _without_assignment(answer: ConsumerGroupHeartbeatResponse) -> ConsumerGroupHeartbeatResponse:
    return replace(answer, assignment=None)


def _one_topic_more(answer: ConsumerGroupHeartbeatResponse) -> ConsumerGroupHeartbeatResponse:
    assert answer.assignment is not None
    other = ConsumerGroupHeartbeatResponseTopicPartitions(topic_id=_SOME_TOPIC, partitions=(0,))
    topics = (*answer.assignment.topic_partitions, other)
    return replace(answer, assignment=replace(answer.assignment, topic_partitions=topics))


def _error(error: int) -> Change:
    return lambda answer: type(answer)(error_code=error)


def _keeps_failing(scene: Scene) -> None:
    """Nobody's heartbeat succeeds, as when an assignor fails."""
    culprit, company = pair(scene)
    scene.truth.member_ids.clear()
    care_for(scene, company)
    scene.lie(_everybody(UNKNOWN_SERVER_ERROR))
    for _ in scene.until_found():
        culprit.say()


def _everybody(error: int) -> Lie:
    def lie(exchange: ProxiedExchange) -> Forge | None:
        is_heartbeat = isinstance(exchange.response, ConsumerGroupHeartbeatResponse)
        return Forge(ConsumerGroupHeartbeatResponse(error_code=error)) if is_heartbeat else None

    return lie


def _given_twice(scene: Scene) -> None:
    """The culprit is told that it has a partition of its company too, which goes on with it."""
    culprit, company = pair(scene)
    scene.truth.member_ids.clear()
    culprit.beat()
    company.beat()
    scene.over.wait(HELD_S)
    both = culprit.assigned | {min(company.assigned)}

    def change(answer: ConsumerGroupHeartbeatResponse) -> ConsumerGroupHeartbeatResponse:
        assert answer.assignment is not None
        topics = tuple(
            ConsumerGroupHeartbeatResponseTopicPartitions(topic_id=one.topic_id, partitions=one.partitions) for one in listed(both)
        )
        return replace(answer, assignment=replace(answer.assignment, topic_partitions=topics))

    scene.lie(_success(change))
    culprit.say(**culprit.everything())
    scene.tell_truth()
    scene.over.wait(HELD_S)
    for _ in scene.until_found():
        company.beat()


def _stale_accepted(scene: Scene) -> None:
    culprit, company = pair(scene)
    care_for(scene, company)
    scene.lie(_accepted(FENCED_MEMBER_EPOCH, culprit.epoch))
    for _ in scene.until_found():
        culprit.say(culprit.epoch - 1)


def _gone_accepted(scene: Scene) -> None:
    culprit, company = pair(scene)
    care_for(scene, company)
    culprit.say(LEAVE)
    scene.lie(_accepted(UNKNOWN_MEMBER_ID, culprit.epoch))
    for _ in scene.until_found():
        culprit.say()


def _stranger_accepted(scene: Scene) -> None:
    other, company = pair(scene)
    scene.truth.member_ids.clear()
    care_for(scene, other)
    care_for(scene, company)
    scene.over.wait(SEEN_FOR_S)
    stranger = replace(other, member_id=str(uuid.uuid4()))
    scene.lie(_accepted(UNKNOWN_MEMBER_ID, other.epoch))
    stranger.connection = scene.connect(f"{scene.group}-culprit")
    for _ in scene.until_found():
        stranger.say()


def _refused_in_vain(error: int, *, join: bool = False) -> Callable[[Scene], None]:
    """One keep-alive, or join, of the culprit is answered with an error that it gives no reason for."""

    def commit(scene: Scene) -> None:
        other, company = pair(scene)
        care_for(scene, company)
        other.beat()
        scene.lie(_success(_error(error)))
        _refused(other.say(0, **replace(other, assigned=frozenset()).everything()) if join else other.say(), error)
        scene.tell_truth()
        for _ in scene.until_found():
            other.say()

    return commit


def _removed_accepted(scene: Scene) -> None:
    """An administrator removes the culprit, which is served all the same."""
    culprit, company = pair(scene)
    care_for(scene, company)
    culprit.beat()
    admin = scene.connect(f"{scene.group}-admin")
    leaver = LeaveGroupRequestMemberIdentity(member_id=culprit.member_id)
    answer = admin.ask(LeaveGroupRequest(group_id=scene.group, members=(leaver,)), LeaveGroupResponse)
    _refused(answer.members[0], NONE)
    scene.lie(_accepted(UNKNOWN_MEMBER_ID, culprit.epoch))
    for _ in scene.until_found():
        culprit.say()


def _second_process_accepted(scene: Scene) -> None:
    """The holder of an instance id lives, and another process is let in under it."""
    holder, company = member(scene, "company", instance_id="slot"), member(scene, "other")
    enter_all(scene, holder, company)
    care_for(scene, holder)
    care_for(scene, company)
    scene.over.wait(HELD_S)
    culprit = member(scene, "culprit", instance_id="slot")
    scene.truth.member_ids.add(culprit.member_id)
    scene.lie(_accepted(UNRELEASED_INSTANCE_ID, holder.epoch))
    culprit.say(0, **culprit.everything())
    scene.tell_truth()
    for _ in scene.until_found():
        pass


def _released_refused(scene: Scene) -> None:
    """A member leaves for a while, and its successor is told that the instance id is held."""
    holder, company = member(scene, "other", instance_id="slot"), member(scene, "company")
    enter_all(scene, holder, company)
    care_for(scene, company)
    holder.say(ASIDE)
    scene.over.wait(HELD_S)
    culprit = member(scene, "culprit", instance_id="slot")
    scene.lie(_success(_error(UNRELEASED_INSTANCE_ID)))
    for _ in scene.until_found(every_s=HELD_S):
        _refused(culprit.say(0, **culprit.everything()), UNRELEASED_INSTANCE_ID)


def _greedy_join_accepted(scene: Scene) -> None:
    """A join that claims partitions succeeds."""
    other, company = pair(scene)
    scene.truth.member_ids.clear()
    care_for(scene, other)
    care_for(scene, company)
    culprit = member(scene, "culprit")
    culprit.assigned = other.assigned
    scene.lie(_accepted(INVALID_REQUEST, other.epoch))
    for _ in scene.until_found():
        culprit.say(0, **culprit.everything())


def _owner_fenced(scene: Scene) -> None:
    culprit, company = pair(scene, instance_id="slot")
    care_for(scene, company)
    culprit.beat()
    scene.lie(_success(_error(FENCED_INSTANCE_ID)))
    culprit.say()
    scene.tell_truth()
    for _ in scene.until_found():
        culprit.say()


# --- lies about commits -------------------------------------------------------------------------------------------------


def _commit_told(error: int) -> Lie:
    return of("culprit", OffsetCommitResponse, lambda answer, _: with_error(answer, error))


def _future_commit_accepted(scene: Scene) -> None:
    culprit, company = pair(scene)
    care_for(scene, company)
    scene.lie(_commit_told(NONE))
    for _ in scene.until_found():
        culprit.commit(culprit.epoch + 50)
        culprit.say()


def _commit_refused(scene: Scene) -> None:
    culprit, company = pair(scene)
    care_for(scene, company)
    scene.lie(_commit_told(STALE_MEMBER_EPOCH))
    for _ in scene.until_found():
        culprit.commit()
        culprit.say()


def _commit_of_one_who_left_accepted(scene: Scene) -> None:
    culprit, company = pair(scene)
    care_for(scene, company)
    culprit.say(LEAVE)
    scene.lie(_commit_told(NONE))
    for _ in scene.until_found():
        culprit.commit()


def _commit_of_a_stranger_accepted(scene: Scene) -> None:
    other, company = pair(scene)
    scene.truth.member_ids.clear()
    care_for(scene, other)
    care_for(scene, company)
    scene.over.wait(SEEN_FOR_S)
    stranger = member(scene, "culprit")
    scene.lie(_commit_told(NONE))
    for _ in scene.until_found():
        stranger.commit(other.epoch)


def _commit_of_nobody_accepted(scene: Scene) -> None:
    """A tool sets offsets while the group has members, and is let to."""
    other, company = pair(scene)
    scene.truth.member_ids.clear()
    care_for(scene, other)
    care_for(scene, company)
    scene.over.wait(HELD_S)
    tool = member(scene, "culprit", member_id="")
    scene.lie(_commit_told(NONE))
    for _ in scene.until_found():
        tool.commit(-1)


# --- members that break the protocol ------------------------------------------------------------------------------------


def _fence_ignored(scene: Scene) -> None:
    culprit, company = pair(scene)
    care_for(scene, company)
    scene.fact()
    for _ in scene.until_found():
        _refused(culprit.say(culprit.epoch - 1), FENCED_MEMBER_EPOCH)


def _goes_on_after_leaving(scene: Scene) -> None:
    culprit, company = pair(scene)
    care_for(scene, company)
    culprit.say(LEAVE)
    scene.fact()
    for _ in scene.until_found():
        _refused(culprit.say(), UNKNOWN_MEMBER_ID)


def _dirty_join(scene: Scene) -> None:
    other, company = pair(scene)
    scene.truth.member_ids.clear()
    care_for(scene, other)
    care_for(scene, company)
    culprit = member(scene, "culprit")
    scene.fact()
    for _ in scene.until_found():
        _refused(culprit.say(0, subscribed_topic_names=culprit.topics), INVALID_REQUEST)


def _instance_in_use(scene: Scene) -> None:
    """Two processes want one instance id for longer than a session lasts, and the first one lives."""
    holder, company = member(scene, "company", instance_id="slot"), member(scene, "other")
    enter(scene, holder)
    enter(scene, company)
    care_for(scene, holder)
    care_for(scene, company)
    culprit = member(scene, "culprit", instance_id="slot")
    scene.fact()
    for _ in scene.until_found(every_s=2.0):
        _refused(culprit.say(0, **culprit.everything()), UNRELEASED_INSTANCE_ID)


def _joins_again_and_again(scene: Scene) -> None:
    culprit, company = pair(scene)
    care_for(scene, company)
    scene.fact()
    for _ in scene.until_found(every_s=2.0):
        culprit.join()


def _claims_more(scene: Scene) -> None:
    """Claims what the other had from the start: the first member has been assigned everything once."""
    company, culprit = member(scene, "company"), member(scene, "culprit")
    enter_all(scene, company, culprit)
    scene.truth.member_ids.add(culprit.member_id)
    claimed = culprit.assigned | company.assigned
    care_for(scene, company)
    scene.fact()
    for _ in scene.until_found():
        culprit.say(topic_partitions=listed(claimed))


def _two_names(scene: Scene) -> None:
    """A static member names another instance id than the one that it joined with."""
    culprit, company = pair(scene, instance_id="slot")
    care_for(scene, company)
    culprit.beat()
    scene.fact()
    for _ in scene.until_found():
        culprit.say(instance_id="another slot")


def _commits_what_it_gave_up(scene: Scene) -> None:
    """Goes on committing a partition that it has given up, and that its company owns."""
    company, culprit = member(scene, "company"), member(scene, "culprit")
    enter_all(scene, culprit, company)
    scene.truth.member_ids.add(culprit.member_id)
    given_up = min(number for _, number in company.assigned)
    care_for(scene, company)
    culprit.beat()
    scene.over.wait(HELD_S)
    scene.fact()
    for _ in scene.until_found():
        if error := culprit.commit(number=given_up):
            raise ViolationError(f"a commit was answered with error {error}")
        culprit.beat()


def _slow(scene: Scene) -> None:
    culprit, company = pair(scene)
    care_for(scene, company)
    culprit.beat()
    scene.fact()
    scene.over.wait(3.2 * culprit.interval_ms / 1000)
    culprit.beat()
    for _ in scene.until_found():
        pass


def _wrong_type(scene: Scene) -> None:
    """A share consumer wants to join a consumer group."""
    other, company = pair(scene)
    scene.truth.member_ids.clear()
    care_for(scene, other)
    care_for(scene, company)
    culprit = member(scene, "culprit", ShareMember)
    scene.fact()
    for _ in scene.until_found():
        if culprit.join() == NONE:
            raise ViolationError("a share consumer joined a consumer group")


def _stale_committer(scene: Scene) -> None:
    culprit, company = pair(scene)
    care_for(scene, company)
    scene.fact()
    for _ in scene.until_found():
        if (error := culprit.commit(culprit.epoch + 7)) != STALE_MEMBER_EPOCH:
            raise ViolationError(f"a commit was answered with error {error}, where {STALE_MEMBER_EPOCH} was due")
        culprit.beat()


def _leaves_without_its_name(scene: Scene) -> None:
    culprit, company = pair(scene, instance_id="slot")
    care_for(scene, company)
    scene.fact()
    for _ in scene.until_found():
        _refused(culprit.say(ASIDE, instance_id=None), INVALID_REQUEST)


def _never_gives_up(scene: Scene) -> None:
    """Is told to give partitions up, and heartbeats without saying that it has."""
    culprit = member(scene, "culprit", rebalance_ms=SHORT_REBALANCE_MS)
    enter(scene, culprit)
    settle(scene, culprit)
    scene.truth.member_ids.add(culprit.member_id)
    company = member(scene, "company")
    enter(scene, company)
    care_for(scene, company)
    everything = culprit.assigned

    def told() -> bool:
        answer = culprit.say()
        return answer.assignment is not None and places(answer.assignment) < everything

    scene.until(told, "the culprit is told to give partitions up")
    scene.fact()
    for _ in scene.until_found():
        culprit.say()


def _falls_silent(scene: Scene) -> None:
    culprit, company = pair(scene)
    care_for(scene, company)
    culprit.connection.close()
    scene.fact()
    for _ in scene.until_found():
        pass


def _goes_to_and_fro(scene: Scene) -> None:
    culprit, company = pair(scene)
    care_for(scene, company)
    scene.fact()
    for turn, _ in enumerate(scene.until_found()):
        topics = (TOPIC, "lab-b") if turn % 2 == 0 else (TOPIC,)
        culprit.beat(subscribed_topic_names=topics)


def _fenced_goes_on(scene: Scene) -> None:
    """Leaves for a while, its successor takes the instance id, and it goes on."""
    culprit = member(scene, "culprit", instance_id="slot")
    enter(scene, culprit)
    settle(scene, culprit)
    scene.truth.member_ids.add(culprit.member_id)
    culprit.say(ASIDE)
    successor = member(scene, "company", instance_id="slot")
    enter(scene, successor)
    care_for(scene, successor)
    scene.fact()
    for _ in scene.until_found():
        _refused(culprit.say(), FENCED_INSTANCE_ID)


def _share_gone_accepted(scene: Scene) -> None:
    culprit, company = pair(scene, ShareMember)
    care_for(scene, company)
    culprit.say(LEAVE)
    epoch = culprit.epoch

    def told(answer: ShareGroupHeartbeatResponse, exchange: ProxiedExchange) -> ShareGroupHeartbeatResponse | None:
        if answer.error_code != UNKNOWN_MEMBER_ID:
            return None
        return ShareGroupHeartbeatResponse(member_id=exchange.request.member_id, member_epoch=epoch, heartbeat_interval_ms=5_000)

    scene.lie(of("culprit", ShareGroupHeartbeatResponse, told))
    for _ in scene.until_found():
        culprit.say()


def _name_wanted_back(scene: Scene) -> None:
    """Leaves for a while, its successor takes the instance id, and it wants that back."""
    culprit = member(scene, "culprit", instance_id="slot")
    enter(scene, culprit)
    settle(scene, culprit)
    culprit.say(ASIDE)
    successor = member(scene, "company", instance_id="slot")
    enter(scene, successor)
    care_for(scene, successor)
    scene.fact()
    for _ in scene.until_found():
        if (error := culprit.join()) != UNRELEASED_INSTANCE_ID:
            raise ViolationError(f"a join was answered with error {error}, where {UNRELEASED_INSTANCE_ID} was due")


def _polls_too_rarely(scene: Scene) -> None:
    """Leaves later than its rebalance timeout after it joined, as clients do that are not polled, and joins again."""
    culprit, company = pair(scene, rebalance_ms=SHORT_REBALANCE_MS)
    care_for(scene, company)
    until = time.monotonic() + 1.2 * SHORT_REBALANCE_MS / 1000
    scene.until(lambda: culprit.beat() == NONE and time.monotonic() > until, "longer than its rebalance timeout in the group")
    culprit.say(LEAVE)
    scene.fact()
    culprit.join()
    for _ in scene.until_found():
        culprit.beat()


def _commits_after_leaving(scene: Scene) -> None:
    culprit, company = pair(scene)
    care_for(scene, company)
    culprit.say(LEAVE)
    scene.fact()
    for _ in scene.until_found():
        if (error := culprit.commit()) != UNKNOWN_MEMBER_ID:
            raise ViolationError(f"a commit was answered with error {error}, where {UNKNOWN_MEMBER_ID} was due")


def _leaves_ids_behind(scene: Scene) -> None:
    """Joins under a new id each time, and goes without leaving."""
    company = member(scene, "company")
    enter(scene, company)
    care_for(scene, company)

    def come_and_go() -> None:
        culprit = member(scene, "culprit")
        enter(scene, culprit)
        culprit.connection.close()

    scene.fact()
    for _ in scene.until_found(every_s=3.0):
        come_and_go()


def _classic_never_rejoins(scene: Scene) -> None:
    """A classic member of a mixed group is told to rejoin, and only heartbeats."""
    culprit = scene.member("culprit", rebalance_ms=SHORT_REBALANCE_MS)
    scene.enter(culprit)
    scene.know(culprit)
    company = member(scene, "company")
    enter(scene, company)
    care_for(scene, company)
    scene.until_told(culprit)
    scene.fact()
    for _ in scene.until_found():
        culprit.heartbeat()


def _converts_to_and_fro(scene: Scene) -> None:
    """The empty group is joined by the classic and the consumer protocol in turn."""
    classic, other = scene.member("classic"), member(scene, "other")
    scene.fact()
    for _ in scene.until_found():
        classic.member_id = ""
        scene.enter(classic)
        classic.leave()
        enter(scene, other)
        other.say(LEAVE)


def _waits_in_vain(scene: Scene, kind: type[EpochMember]) -> None:
    """A member whose topic does not exist."""
    culprit = member(scene, "culprit", kind, topics=(NO_TOPIC,))
    enter(scene, culprit)
    scene.fact()
    for _ in scene.until_found(every_s=2.0):
        if error := culprit.beat():
            raise ViolationError(f"a heartbeat was answered with error {error}: the coordinator has moved")


def _streams_source_missing(scene: Scene) -> None:
    _waits_in_vain(scene, StreamsMember)


def _streams_told_to_stop(scene: Scene) -> None:
    culprit, company = pair(scene, StreamsMember)
    care_for(scene, company)
    scene.fact()
    culprit.beat(shutdown_application=True)
    for _ in scene.until_found():
        culprit.beat()


def _share_topic_missing(scene: Scene) -> None:
    _waits_in_vain(scene, ShareMember)


def _broker(name: str, rule: str, commit: Callable[[Scene], None], **more: Any) -> Violation:
    return Violation(name=f"epochs-{name}", rule=rule, blame=Blame.BROKER, commit=commit, **{"since": (4, 0), **more})


def _client(name: str, rule: str, commit: Callable[[Scene], None], **more: Any) -> Violation:
    return Violation(name=f"epochs-{name}", rule=rule, blame=Blame.CLIENT, commit=commit, **{"since": (4, 0), **more})


PREVIEW_BEFORE: dict[str, Any] = {"since": (4, 2)}
EPOCH_VIOLATIONS: tuple[Violation, ...] = (
    _broker("stranger-accepted", "E-15", _stranger_accepted),
    _client("falls-silent", "T-04", _falls_silent),
    Violation(name="epochs-instance-in-use", rule="E-06", blame=Blame.CONFIG, commit=_instance_in_use, since=(4, 0)),
    _client("ids-left-behind", "M-13", _leaves_ids_behind),
    Violation(
        name="epochs-streams-source-missing",
        rule="R-19",
        blame=Blame.CONFIG,
        culprits=(),
        commit=_streams_source_missing,
        since=(4, 2),
    ),
    Violation(
        name="epochs-share-topic-missing",
        rule="R-21",
        blame=Blame.CONFIG,
        culprits=("culprit",),
        commit=_share_topic_missing,
        since=(4, 2),
    ),
    _broker("lowered", "E-01", _told(_lowered)),
    _broker("member-fenced", "E-03", _told(_error(FENCED_MEMBER_EPOCH))),
    _broker("answer-for-another", "M-08", _told(_as_another)),
    _broker("impossible-error", "P-07", _told(_error(REBALANCE_IN_PROGRESS))),
    _broker("assignment-withheld", "E-12", _told(_without_assignment)),
    _broker("unsubscribed-assigned", "E-16", _told(_one_topic_more), since=(4, 2)),
    _broker("assignor-fails", "E-13", _keeps_failing, or_culprits=("company",)),
    _broker("partition-given-twice", "A-12", _given_twice, culprits=("company", "culprit")),
    _broker("stale-accepted", "E-04", _stale_accepted),
    _broker("gone-accepted", "E-14", _gone_accepted),
    _broker("member-told-it-is-none", "E-18", _refused_in_vain(UNKNOWN_MEMBER_ID)),
    _broker("keep-alive-invalid", "P-07", _refused_in_vain(INVALID_REQUEST)),
    # before 4.2 a member that joins again is refused as it is (U15)
    _broker("join-told-unknown", "P-07", _refused_in_vain(UNKNOWN_MEMBER_ID, join=True), since=(4, 2)),
    _broker("removed-accepted", "E-14", _removed_accepted),
    _broker("second-process-accepted", "E-23", _second_process_accepted),
    _broker("released-refused", "E-18", _released_refused),
    _broker("stranger-commit-accepted", "O-02", _commit_of_a_stranger_accepted),
    _broker("commit-of-nobody-accepted", "E-20", _commit_of_nobody_accepted),
    _client("two-names", "S-07", _two_names),
    _client("commits-what-it-gave-up", "O-05", _commits_what_it_gave_up),
    _broker("greedy-join-accepted", "E-17", _greedy_join_accepted),
    _broker("owner-fenced", "E-18", _owner_fenced),
    _broker("future-commit-accepted", "E-20", _future_commit_accepted),
    _broker("commit-refused", "E-20", _commit_refused),
    _broker("commit-after-leaving-accepted", "O-02", _commit_of_one_who_left_accepted),
    _client("fence-ignored", "E-02", _fence_ignored),
    _client("goes-on-after-leaving", "E-02", _goes_on_after_leaving),
    _client("dirty-join", "E-05", _dirty_join),
    _client("join-loop", "E-07", _joins_again_and_again, since=(4, 2)),
    _client("claims-more", "E-08", _claims_more),
    _client("slow-heartbeats", "E-09", _slow),
    Violation(name="epochs-wrong-type", rule="E-10", blame=Blame.CONFIG, commit=_wrong_type, since=(4, 2)),
    _client("stale-committer", "E-11", _stale_committer),
    _client("static-leave-refused", "E-19", _leaves_without_its_name),
    _client("never-gives-up", "R-14", _never_gives_up),
    _client("subscription-ping-pong", "R-17", _goes_to_and_fro),
    _client("fenced-goes-on", "S-02", _fenced_goes_on),
    Violation(
        name="epochs-name-wanted-back",
        rule="S-01",
        blame=Blame.CONFIG,
        culprits=("culprit", "company"),
        commit=_name_wanted_back,
        since=(4, 0),
    ),
    _client("polls-too-rarely", "T-05", _polls_too_rarely),
    _client("commits-after-leaving", "O-01", _commits_after_leaving),
    _client("classic-never-rejoins", "R-08", _classic_never_rejoins),
    Violation(
        name="epochs-converted-to-and-fro",
        rule="E-21",
        blame=Blame.OPERATOR,
        culprits=(),
        commit=_converts_to_and_fro,
        since=(4, 0),
    ),
    _client("streams-told-to-stop", "R-20", _streams_told_to_stop, **PREVIEW_BEFORE),
    _broker("streams-lowered", "E-01", _told(_lowered, StreamsMember), **PREVIEW_BEFORE),
    _broker("share-lowered", "E-01", _told(_lowered, ShareMember), **PREVIEW_BEFORE),
    _broker("share-member-fenced", "E-03", _told(_error(FENCED_MEMBER_EPOCH), ShareMember), **PREVIEW_BEFORE),
    _broker("share-gone-accepted", "E-14", _share_gone_accepted, **PREVIEW_BEFORE),
)

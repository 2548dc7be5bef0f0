"""Every kind of request of groups with epochs, put to the reference coordinators, and what the table says of it."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from functools import cache, partial
from itertools import product
from random import Random
from typing import Any, Final

from coordinator_model import wire
from coordinator_model.groups.protocol.epochs import Condition, Epoch, Sender
from coordinator_model.groups.protocol.table import Effect, Moment, Row, deciding
from coordinator_model.wire.constants import (
    CONSUMER_GROUP_HEARTBEAT,
    HEARTBEAT,
    LEAVE_GROUP,
    OFFSET_COMMIT,
    SHARE_GROUP_HEARTBEAT,
    STREAMS_GROUP_HEARTBEAT,
    SYNC_GROUP,
)
from tests.coordinator_model.reference import consumer_coordinator, share_coordinator, streams_coordinator
from tests.coordinator_model.reference.consumer_coordinator import ConsumerCoordinator, RefusedError
from tests.coordinator_model.reference.consumer_group import LEFT_FOR_A_WHILE, ConsumerGroup, ConsumerMember, topic_id
from tests.coordinator_model.reference.share_coordinator import ShareCoordinator, ShareGroup
from tests.coordinator_model.reference.streams_coordinator import StreamsCoordinator, StreamsGroup, StreamsMember
from tests.coordinator_model.reference.world import Asked, World

EPOCHS: Final = {0: Epoch.JOIN, -1: Epoch.LEAVE, -2: Epoch.ASIDE, 5: Epoch.SAME, 4: Epoch.PREVIOUS, 3: Epoch.LOWER, 9: Epoch.HIGHER}
"""Epoch of a request → what it is to members that are at 5 and were at 4."""
RELEASES: Final = ((4, 0), (4, 1), (4, 2), (4, 3), (4, 4))
"""The releases that have groups of these types, oldest first."""
SINCE: Final = {STREAMS_GROUP_HEARTBEAT: (4, 1)}
STATIC: Final = frozenset({Sender.STATIC, Sender.AWAY, Sender.RETURNING, Sender.RIVAL})
_ROUTED = frozenset({14, 15, 16, -1})
ANYWHERE: Final = {
    HEARTBEAT: _ROUTED | {30},
    SYNC_GROUP: _ROUTED | {30},
    LEAVE_GROUP: _ROUTED | {30},
    CONSUMER_GROUP_HEARTBEAT: _ROUTED | {29, 30, 35, 69},
    SHARE_GROUP_HEARTBEAT: _ROUTED | {29, 30, 35, 69},
    STREAMS_GROUP_HEARTBEAT: _ROUTED | {29, 30, 31, 35, 69, 42, 130, 131, 132},
    OFFSET_COMMIT: _ROUTED | {3, 12, 24, 28, 29, 30, 100, 22, 27, 69, 82},
}
"""API → error codes whose reasons no frame shows."""
SAID: Final = {CONSUMER_GROUP_HEARTBEAT: ((), (Condition.ASSIGNOR,), (Condition.PATTERN,))}
"""API → what a request may name beside, and what no reference reads."""
Answers = dict[Moment, frozenset[int]]
Outcome = tuple[int, frozenset[Effect]]


def also_lawful(api_key: int, moment: Moment) -> frozenset[int]:
    """What no reference answers at this moment, and is lawful all the same."""
    more = ANYWHERE[api_key]
    if Condition.ASSIGNOR in moment.conditions:
        more |= {112}
    if Condition.PATTERN in moment.conditions and moment.generation in {Epoch.JOIN, Epoch.SAME, Epoch.PREVIOUS}:
        more |= {128}  # a new pattern that cannot be compiled
    is_static_join = (moment.sender, moment.generation) == (
        Sender.STATIC,
        Epoch.JOIN,
    ) and Condition.MALFORMED not in moment.conditions
    if api_key == CONSUMER_GROUP_HEARTBEAT and is_static_join:
        more |= {0}  # no stock broker yet
    return more


def members() -> list[ConsumerMember]:
    """Each at epoch 5; the answer to the last one's join may be lost. One is away, one uses the classic protocol."""
    held = [{("t", number): 5 if number % 2 else 3} for number in range(5)]
    dynamic = ConsumerMember("m", None, 5, 4, assigned={**held[0], **held[1]})
    static = ConsumerMember("s", "i-s", 5, 4, assigned=held[2])
    away = ConsumerMember("a", "i-a", LEFT_FOR_A_WHILE, 4, assigned=held[3])
    classic = ConsumerMember("c", "i-c", 5, 4, assigned=held[4], classic=wire.JoinGroupRequest(session_timeout_ms=45_000))
    new = ConsumerMember("n", None, 5, 0)
    for one in (dynamic, static, away, classic, new):
        one.names, one.rebalance_ms = ("t",), 60_000
    return [dynamic, static, away, classic, new]


def consumer_group(release: tuple[int, int]) -> ConsumerGroup:
    group = ConsumerGroup(release, epoch=5, assignment_epoch=5, assigned_at_us=0)
    group.members = {one.id: one for one in members()}
    group.targets = {one.id: frozenset(one.assigned) for one in group.members.values()}
    return group


def sender_of(group: ConsumerGroup, member_id: str, instance_id: str | None) -> Sender | None:
    """None for a mixture that no client sends."""
    holder = group.holder_of(instance_id)
    if member_id == "a" and instance_id != "i-a":
        return None
    if holder is None:
        if member_id not in group.members:
            return Sender.OUTSIDER
        return Sender.MEMBER if instance_id is None else None
    if holder.id == member_id:
        return Sender.AWAY if holder.epoch == LEFT_FOR_A_WHILE else Sender.STATIC
    return Sender.RETURNING if holder.epoch == LEFT_FOR_A_WHILE or holder.classic is not None else Sender.RIVAL


def outcome_of(group: ConsumerGroup, action: Any) -> Outcome:
    """The answer, and what becomes of the members."""
    before = {one.id: (one, one.epoch, one.session) for one in group.members.values()}
    try:
        body = action()
    except RefusedError as refused:
        return refused.error, frozenset()
    found = set()
    came = [one for one in group.members.values() if before.get(one.id, (None,))[0] is not one]
    gone = [one for one, _, _ in before.values() if group.members.get(one.id) is not one]
    if came or gone:
        found.add(Effect.REPLACED if came and gone else Effect.ADDED if came else Effect.REMOVED)
    for one, epoch, session in before.values():
        if one.epoch == LEFT_FOR_A_WHILE != epoch:
            found.add(Effect.AWAY)
        if one.session > session:
            found.add(Effect.SESSION)
    error = body.topics[0].partitions[0].error_code if isinstance(body, wire.OffsetCommitResponse) else body.error_code
    return error, frozenset(found)


def asked(body: Any, version: int) -> Asked:
    return Asked(body, version, 0, lambda _: None)


def _malformed(shape: int) -> Outcome | None:
    return (shape, frozenset()) if shape else None


def consumer_answers(release: tuple[int, int]) -> Iterator[tuple[Moment, Outcome]]:
    owned_lists = (None, (), (("t", 0),), (("t", 0), ("t", 9)), (("t", 2),), (("t", 3),))
    for id_, instance, epoch, owned, version, is_full in product(
        ("m", "s", "a", "n", "x", ""), (None, "i-s", "i-a", "i-c", "i-x"), EPOCHS, owned_lists, (0, 1), (False, True)
    ):
        group = consumer_group(release)
        sender = sender_of(group, id_, instance)
        if sender is None or (id_ == "n" and epoch not in {0, 5}):
            continue
        coordinator = ConsumerCoordinator(World(Random(1)), "1", [], release=release, topics={"t"}, max_size=5 if is_full else 100)
        coordinator.consumer = group
        topics = (
            None
            if owned is None
            else tuple(
                wire.ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=topic_id(topic), partitions=(number,))
                for topic, number in owned
            )
        )
        body = wire.ConsumerGroupHeartbeatRequest(
            group_id="g", member_id=id_, member_epoch=epoch, instance_id=instance, topic_partitions=topics
        )
        if epoch == 0:
            body.rebalance_timeout_ms, body.subscribed_topic_names = 60_000, ("t",)
        shape = consumer_coordinator.shape_error(body, version)
        moment = Moment(sender, EPOCHS[epoch], conditions_of(group, id_, owned, is_malformed=bool(shape)), version, release)
        yield (
            moment,
            _malformed(shape)
            or outcome_of(
                group,
                lambda coordinator=coordinator, body=body, version=version: coordinator._consumer_heartbeat(asked(body, version)),
            ),
        )


def conditions_of(group: ConsumerGroup, id_: str, owned: Any, *, is_malformed: bool) -> frozenset[Condition]:
    member = group.members.get(id_)
    if is_malformed:
        return frozenset({Condition.MALFORMED})
    owns = owned is not None and set(owned) <= (set() if member is None else member.assigned.keys())
    return frozenset({Condition.OWNS}) if owns else frozenset()


def share_answers(release: tuple[int, int]) -> Iterator[tuple[Moment, Outcome]]:
    for id_, epoch, is_full, names in product(("m", "n", "x", ""), EPOCHS, (False, True), (None, ("t",))):
        group = ShareGroup(release, epoch=5, assignment_epoch=5, assigned_at_us=0)
        group.members = {one.id: one for one in members() if one.id in {"m", "n"}}
        if id_ == "n" and epoch not in {0, 5}:
            continue
        coordinator = ShareCoordinator(World(Random(1)), "1", [], release=release, topics={"t"}, max_size=2 if is_full else 100)
        coordinator.consumer = group
        body = wire.ShareGroupHeartbeatRequest(group_id="g", member_id=id_, member_epoch=epoch, subscribed_topic_names=names)
        shape = share_coordinator.shape_error(body)
        sender = Sender.MEMBER if id_ in group.members else Sender.OUTSIDER
        for owns in (False, True) if not shape else (False,):  # which it never says
            conditions = frozenset({Condition.MALFORMED} if shape else {Condition.OWNS} if owns else ())
            for version in (0, 1):
                fresh = copy.deepcopy(group)
                coordinator.consumer = fresh
                yield (
                    Moment(sender, EPOCHS[epoch], conditions, version, release),
                    _malformed(shape)
                    or outcome_of(fresh, lambda coordinator=coordinator, body=body: coordinator._heartbeat_of_share(body)),
                )


def streams_group() -> StreamsGroup:
    group = StreamsGroup((4, 1), epoch=5, assignment_epoch=5, assigned_at_us=0, topology=0)
    for id_, previous in (("m", 4), ("n", 0)):
        group.members[id_] = StreamsMember(id_, None, 5, previous, assigned={("0", 0): 3, ("0", 1): 5} if id_ == "m" else {})
        group.members[id_].rebalance_ms = 60_000
    group.targets = {id_: frozenset(one.assigned) for id_, one in group.members.items()}
    return group


def streams_answers(release: tuple[int, int]) -> Iterator[tuple[Moment, Outcome]]:
    task_lists = (None, (), (("0", 0),), (("0", 0), ("0", 5)))
    for id_, epoch, is_full, owned in product(("m", "n", "x", ""), EPOCHS, (False, True), task_lists):
        if id_ == "n" and epoch not in {0, 5}:
            continue
        group = streams_group()
        coordinator = StreamsCoordinator(World(Random(1)), "1", [], release=release, topics=set(), max_size=2 if is_full else 100)
        coordinator.consumer = group
        body = wire.StreamsGroupHeartbeatRequest(group_id="g", member_id=id_, member_epoch=epoch)
        if owned is not None:
            body.active_tasks = tuple(
                wire.StreamsGroupHeartbeatRequestTaskIds(subtopology_id=name, partitions=(number,)) for name, number in owned
            )
            body.standby_tasks = body.warmup_tasks = ()
        if epoch == 0:
            body.rebalance_timeout_ms, body.topology = 60_000, wire.StreamsGroupHeartbeatRequestTopology()
        shape = streams_coordinator.shape_error(body)
        sender = Sender.MEMBER if id_ in group.members else Sender.OUTSIDER
        moment = Moment(sender, EPOCHS[epoch], conditions_of(group, id_, owned, is_malformed=bool(shape)), 0, release)
        ask = partial(coordinator._heartbeat_of_streams, body)
        yield moment, _malformed(shape) or outcome_of(group, ask)


def commit_answers(release: tuple[int, int]) -> Iterator[tuple[Moment, Outcome]]:
    """Of consumer groups, and of Streams groups, which take older epochs one release earlier."""
    for id_, instance, epoch, number, version in product(("m", "s", "a", "x"), (None, "i-s", "i-a"), EPOCHS, (0, 1, 2, 9), (8, 9)):
        for kind in ("consumer", "streams", "empty"):
            group = streams_group() if kind == "streams" else consumer_group(release)
            own = {"s": "i-s", "a": "i-a"}.get(id_)
            if (kind == "streams" and (own or version < 9 or release < (4, 2))) or instance != own or (id_ == "a" and epoch == -2):
                continue  # which nobody sends
            if kind == "empty":
                group = ConsumerGroup(release)
            sender = sender_of(group, id_, instance) if kind != "empty" else Sender.OUTSIDER
            coordinator = (StreamsCoordinator if kind == "streams" else ConsumerCoordinator)(
                World(Random(1)), "1", [], release=release, topics={"t"}
            )
            coordinator.consumer = group
            partition = wire.OffsetCommitRequestPartition(partition_index=number)
            body = wire.OffsetCommitRequest(
                group_id="g",
                member_id=id_,
                generation_id_or_member_epoch=epoch,
                group_instance_id=instance,
                topics=(wire.OffsetCommitRequestTopic(name="t", partitions=(partition,)),),
            )
            assert sender is not None
            outcome = outcome_of(group, partial(coordinator._commit_by_epoch, asked(body, version)))
            empty = {Condition.EMPTY} if kind == "empty" else set()
            for owns in (set(), {Condition.OWNS}):  # a commit lists nothing that is owned
                yield Moment(sender, EPOCHS[epoch], frozenset(empty | owns), version, release), outcome


def sender_of_classic(group: ConsumerGroup, member_id: str, instance_id: str | None) -> Sender:
    """A member of the new protocol is none to the requests of the classic one."""
    holder = group.holder_of(instance_id)
    if holder is not None and holder.id != member_id:
        return Sender.RETURNING if holder.epoch == LEFT_FOR_A_WHILE or holder.classic is not None else Sender.RIVAL
    member = holder if instance_id is not None else group.members.get(member_id)
    if member is None or member.classic is None:
        return Sender.OUTSIDER
    return Sender.MEMBER if instance_id is None else Sender.STATIC


def classic_answers(api_key: int, release: tuple[int, int]) -> Iterator[tuple[Moment, Outcome]]:
    """Of members of the classic protocol, at the group's epoch and at one before it."""
    for id_, instance, epoch, newest, name in product(
        ("m", "s", "a", "c", "x", ""), (None, "i-s", "i-a", "i-c", "i-x"), EPOCHS, (5, 6), ("range", "other")
    ):
        group = consumer_group(release)
        group.epoch = group.assignment_epoch = newest
        protocols = (wire.JoinGroupRequestProtocol(name="range"),)
        group.members["c"].classic = wire.JoinGroupRequest(session_timeout_ms=45_000, protocols=protocols)
        coordinator = ConsumerCoordinator(World(Random(1)), "1", [], release=release, topics={"t"})
        coordinator.consumer = group
        ids = {"group_id": "g", "member_id": id_, "group_instance_id": instance, "generation_id": epoch}
        action = (
            partial(coordinator._classic_heartbeat, wire.HeartbeatRequest(**ids))
            if api_key == HEARTBEAT
            else partial(
                coordinator._classic_sync, asked(wire.SyncGroupRequest(protocol_type="consumer", protocol_name=name, **ids), 5)
            )
        )
        outcome = outcome_of(group, action)
        for owns in (set(), {Condition.OWNS}):  # which they never say
            yield Moment(sender_of_classic(group, id_, instance), EPOCHS[epoch], frozenset(owns), 5, release), outcome


def leave_answers(release: tuple[int, int]) -> Iterator[tuple[Moment, Outcome]]:
    for id_, instance, epoch in product(("m", "s", "a", "c", "x"), (None, "i-s", "i-a", "i-c", "i-x"), EPOCHS):
        group = consumer_group(release)
        coordinator = ConsumerCoordinator(World(Random(1)), "1", [], release=release, topics={"t"})
        coordinator.consumer = group
        named = wire.LeaveGroupRequestMemberIdentity(member_id=id_, group_instance_id=instance)
        action = partial(coordinator._classic_leave, wire.LeaveGroupRequest(group_id="g", members=(named,)))
        sender = sender_of_classic(group, id_, instance)
        outcome = outcome_of(group, lambda action=action: action().members[0])
        for owns in (set(), {Condition.OWNS}):  # which it never says
            yield Moment(sender, EPOCHS[epoch], frozenset(owns), 5, release), outcome


_ASK: Final = {
    HEARTBEAT: partial(classic_answers, HEARTBEAT),
    SYNC_GROUP: partial(classic_answers, SYNC_GROUP),
    LEAVE_GROUP: leave_answers,
    CONSUMER_GROUP_HEARTBEAT: consumer_answers,
    SHARE_GROUP_HEARTBEAT: share_answers,
    STREAMS_GROUP_HEARTBEAT: streams_answers,
    OFFSET_COMMIT: commit_answers,
}


@cache
def outcomes(api_key: int) -> frozenset[tuple[Moment, Outcome]]:
    """What the reference answered and did, each time that it was asked."""
    releases = [release for release in RELEASES if release >= SINCE.get(api_key, RELEASES[0])]
    return frozenset(outcome for release in releases for outcome in _ASK[api_key](release))


def deeds(api_key: int) -> frozenset[tuple[Moment, Outcome]]:
    """What the reference did; a Streams group since 4.4 treats static members as a consumer group does."""
    if api_key != STREAMS_GROUP_HEARTBEAT:
        return outcomes(api_key)
    of_static = (
        (moment._replace(version=0), outcome)
        for moment, outcome in outcomes(CONSUMER_GROUP_HEARTBEAT)
        if moment.sender in STATIC and (moment.release, moment.version) == ((4, 4), 1)
    )
    return outcomes(api_key).union(of_static)


@cache
def lawful(api_key: int) -> Answers:
    """Every moment at which a reference was asked → the lawful answers."""
    found: dict[Moment, set[int]] = {}
    for moment, (error, _) in outcomes(api_key):
        for said in SAID.get(api_key, ((),)):
            found.setdefault(moment._replace(conditions=moment.conditions.union(said)), set()).add(error)
    return {moment: frozenset(errors) | also_lawful(api_key, moment) for moment, errors in found.items()}


@cache
def of_static_streams_members() -> Answers:
    """What a consumer group answers static members, a Streams group answers them since 4.4, too, and perhaps more."""
    return {
        moment._replace(version=0): answers - also_lawful(CONSUMER_GROUP_HEARTBEAT, moment)
        | ANYWHERE[STREAMS_GROUP_HEARTBEAT]
        | more_to_static_streams_members(moment)
        for moment, answers in lawful(CONSUMER_GROUP_HEARTBEAT).items()
        if moment.sender in STATIC and moment.release == (4, 4) and moment.version == 1
    }


def answers_at(among: Iterable[Row], moment: Moment) -> frozenset[int]:
    """The answers that are lawful at this moment: that of the row that decides, and those of unseen rows above it that apply."""
    lawful: frozenset[int] = frozenset()
    for row in among:
        if row.applies(moment):
            lawful |= row.answers
            if not row.is_unseen:
                return lawful
    return lawful


def more_to_static_streams_members(moment: Moment) -> frozenset[int]:
    """Which check comes first no release has shown yet: whether the instance id is held, how full the group is, or the epoch."""
    if moment.sender is Sender.AWAY or Condition.MALFORMED in moment.conditions:
        return frozenset()
    held = frozenset({82, 111})
    if moment.sender is Sender.STATIC:
        return held | ({0} if moment.generation is Epoch.JOIN else set())
    return held if moment.generation in {Epoch.LEAVE, Epoch.ASIDE} else held | {81}


def disagreements(api_key: int, table: tuple[Row, ...]) -> Iterator[tuple[Moment, frozenset[int], frozenset[int]]]:
    """Moments at which the table allows less or more than is lawful, with both."""
    of_static = of_static_streams_members() if api_key == STREAMS_GROUP_HEARTBEAT else {}
    for moment, answers in (lawful(api_key) | of_static).items():
        given = answers_at(table, moment)
        if given != answers:
            yield moment, answers, given


def misdeeds(api_key: int, table: tuple[Row, ...]) -> Iterator[tuple[Moment, Outcome]]:
    """What a reference did and the row that decides does not say."""
    for moment, (error, effects) in deeds(api_key):
        row = deciding(table, moment)
        known = frozenset({Effect.AWAY} if moment.sender is Sender.AWAY else ())
        if row is not None and error in row.answers and effects != row.effects - known:
            yield moment, (error, effects)

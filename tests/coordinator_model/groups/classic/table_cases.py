"""Every kind of request in every phase, put to the reference coordinator; and changes of one cell of the table."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product
from random import Random
from typing import Any

from coordinator_model import wire
from coordinator_model.groups.protocol.classic import Condition, Generation, Sender
from coordinator_model.groups.protocol.table import Effect, Moment, Row, deciding
from coordinator_model.wire.constants import (
    COMMITS,
    DELETE_GROUPS,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    OFFSET_COMMIT,
    SYNC_GROUP,
    TXN_OFFSET_COMMIT,
)
from tests.coordinator_model.reference.coordinator import Member
from tests.coordinator_model.reference.observed import Case, ObservedCoordinator
from tests.coordinator_model.reference.world import Asked, Connection, World

NEWEST = {JOIN_GROUP: 9, SYNC_GROUP: 5, HEARTBEAT: 4, LEAVE_GROUP: 5, OFFSET_COMMIT: 9, TXN_OFFSET_COMMIT: 5, DELETE_GROUPS: 2}
APIS = tuple(NEWEST)
STATIC_SINCE = {JOIN_GROUP: 5, SYNC_GROUP: 3, HEARTBEAT: 3, LEAVE_GROUP: 3, OFFSET_COMMIT: 7, TXN_OFFSET_COMMIT: 3}
RELEASES = ((2, 0, 0), (2, 2, 2), (2, 3, 1), (2, 4, 1), (2, 6, 0), (2, 6, 1), (2, 8, 2), (3, 0, 0), (3, 9, 2), (4, 0, 0), (4, 3, 1))
PHASES = "-EPKSDLN"
IDS = (
    ("", None), ("", "i-9"), ("", "i-1"), ("pending", None), ("pending", "i-9"), ("leader", None), ("follower", None), ("static", "i-1"),
    ("follower", "i-9"), ("stranger", None), ("stranger", "i-9"), ("static-before", "i-1"), ("follower", "i-1"),
)  # fmt: skip
RANGE, ROUND = ("range", b"a"), ("roundrobin", b"a")
OFFERS = {
    "leader": (RANGE, ROUND), "follower": (ROUND, RANGE), "static": (RANGE, ROUND),
}  # fmt: skip
GENERATION = 7


def scene(phase: str, release: tuple[int, ...], cases: set[Case]) -> ObservedCoordinator:
    """A coordinator in a phase; with members, none of them parked, wherever the phase has members."""
    world = World(Random(1))
    coordinator = ObservedCoordinator(world, "1", [], release=release)
    coordinator.cases = cases
    coordinator.active = phase != "N"
    coordinator.loading = phase == "L"
    group = coordinator.group
    if phase == "-":
        return coordinator
    group.state = phase if phase in "EPKSD" else "S"
    group.generation = GENERATION
    group.pending = {"pending": 0}
    if phase == "E":
        return coordinator
    for id_, protocols in OFFERS.items():
        body = wire.JoinGroupRequest(session_timeout_ms=10_000, rebalance_timeout_ms=20_000, protocols=offered(protocols))
        body.group_instance_id = "i-1" if id_ == "static" else None
        group.members[id_] = Member(id_, body)
    group.instances = {"i-1": "static"}
    group.leader, group.protocol, group.phase = "leader", "range", 5
    group.pending_sync = set(group.members)
    return coordinator


def offered(protocols: tuple[tuple[str, bytes], ...]) -> tuple[wire.JoinGroupRequestProtocol, ...]:
    return tuple(wire.JoinGroupRequestProtocol(name=name, metadata=metadata) for name, metadata in protocols)


def bodies(api_key: int, version: int) -> Iterator[Any]:
    """Every kind of request of an API."""
    for id_, instance_id in IDS:
        if instance_id is not None and version < STATIC_SINCE.get(api_key, 99):
            continue
        names: dict[str, Any] = {"group_id": "g", "member_id": id_, "group_instance_id": instance_id}
        own = OFFERS.get(id_, (RANGE, ROUND))
        match api_key:
            case 11:
                for protocols in (own, ((own[0][0], b"b"), own[1]), (ROUND, RANGE), (("other", b""),), ()):
                    yield wire.JoinGroupRequest(
                        **names,
                        session_timeout_ms=10_000,
                        rebalance_timeout_ms=20_000,
                        protocol_type="consumer",
                        protocols=offered(protocols),
                    )
            case 14:
                for type_, name in (
                    ("consumer", "range"),
                    ("consumer", "other"),
                    ("connect", "range"),
                    (None, None),
                    ("consumer", None),
                ):
                    for generation in (GENERATION, GENERATION - 1, -1):
                        yield wire.SyncGroupRequest(**names, generation_id=generation, protocol_type=type_, protocol_name=name)
            case 12:
                for generation in (GENERATION, GENERATION - 1, -1):
                    yield wire.HeartbeatRequest(**names, generation_id=generation)
            case 13 if version >= 3:
                identity = wire.LeaveGroupRequestMemberIdentity(member_id=id_, group_instance_id=instance_id)
                yield wire.LeaveGroupRequest(group_id="g", members=(identity,))
            case 13:
                yield wire.LeaveGroupRequest(group_id="g", member_id=id_)
            case 8:
                topic = wire.OffsetCommitRequestTopic(name="t", partitions=(wire.OffsetCommitRequestPartition(),))
                for generation in (GENERATION, GENERATION - 1, -1):
                    yield wire.OffsetCommitRequest(**names, generation_id_or_member_epoch=generation, topics=(topic,))
            case 28:
                written = wire.TxnOffsetCommitRequestTopic(name="t", partitions=(wire.TxnOffsetCommitRequestPartition(),))
                for generation in (GENERATION, GENERATION - 1, -1):
                    yield wire.TxnOffsetCommitRequest(**names, generation_id_or_member_epoch=generation, topics=(written,))
            case 42:
                yield wire.DeleteGroupsRequest(groups_names=("g",))


def leave(id_: str) -> wire.LeaveGroupRequest:
    return wire.LeaveGroupRequest(group_id="g", members=(wire.LeaveGroupRequestMemberIdentity(member_id=id_),))


def join(id_: str, instance_id: str | None, protocols: tuple[tuple[str, bytes], ...]) -> wire.JoinGroupRequest:
    return wire.JoinGroupRequest(
        group_id="g",
        member_id=id_,
        group_instance_id=instance_id,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=20_000,
        protocol_type="consumer",
        protocols=offered(protocols),
    )


#: what ends that a request is held
ENDS = ("completed", "prepared", "written", "removed", "replaced", "unloaded")


def end_hold(coordinator: ObservedCoordinator, how: str, ask: Any) -> None:
    group = coordinator.group
    match how:
        case "completed" if group.state == "P":
            coordinator._complete()
        case "prepared" if group.state in "KS":
            coordinator._prepare()
        case "written" if group.state == "K":
            coordinator._assign({})
        case "removed":
            for id_ in [id_ for id_, one in group.members.items() if one.join_reply or one.sync_reply]:
                ask(leave(id_), LEAVE_GROUP)
        case "replaced":
            ask(join("", "i-1", OFFERS["static"]), JOIN_GROUP)
        case "unloaded":
            coordinator.resign()


def put_to_test(coordinator: ObservedCoordinator, version: int, body: Any, how: str) -> bool:
    """Send one request; return True if it was held."""
    world = coordinator.world
    line = Connection(world, "client", "1", NEWEST)

    def ask(body: Any, api_key: int, version: int | None = None) -> None:
        coordinator.handle(line, Asked(body, NEWEST[api_key] if version is None else version, 0, lambda _: None), lambda _: None)

    ask(body, body.API_KEY, version)
    held = any(one.join_reply or one.sync_reply for one in coordinator.group.members.values())
    if held:
        end_hold(coordinator, how, ask)
    world.run(world.now_us + 40_000)
    return held


@cache
def of_release(api_key: int, release: tuple[int, ...]) -> frozenset[Case]:
    cases: set[Case] = set()
    for version, phase in product(range(NEWEST[api_key] + 1), PHASES):
        for body in bodies(api_key, version):
            for how in ENDS:
                if not put_to_test(scene(phase, release, cases), version, body, how):
                    break
    return frozenset(case for case in cases if case.api_key == api_key)


@cache
def by_phase(api_key: int) -> frozenset[Case]:
    return frozenset().union(*(of_release(api_key, release) for release in RELEASES))


def explained(case: Case, row: Row | None) -> bool:
    answers = frozenset() if case.answer is None else frozenset({case.answer})
    return seen(row, case.moment) == (answers, case.effects)


@cache
def possible(api_key: int) -> tuple[Moment, ...]:
    """Every moment at which a coordinator can have a request of this API, or end that it holds one."""
    return (*_moments_of_requests(api_key), *_moments_of_ends(api_key))


def _moments_of_requests(api_key: int) -> Iterator[Moment]:
    outside = [Sender.STRANGER, Sender.NEW, Sender.NEW_STATIC]
    pending = [Sender.PENDING, Sender.PENDING_STATIC]
    senders = {phase: list(Sender) for phase in PHASES} | {"-": outside, "E": [*outside, *pending]}
    static = {Sender.NEW_STATIC, Sender.RETURNING, Sender.PENDING_STATIC, Sender.RENAMED, Sender.FENCED}
    generations = list(Generation) if api_key in {SYNC_GROUP, HEARTBEAT, *COMMITS} else [Generation.NONE]
    for phase, generation, version, release in product(PHASES, generations, range(NEWEST[api_key] + 1), RELEASES):
        if phase == "-" and generation is Generation.SAME:
            continue
        for sender in senders[phase]:
            if sender in static and version < STATIC_SINCE.get(api_key, 99):
                continue
            if api_key == DELETE_GROUPS and sender is not Sender.NEW:
                continue
            for conditions in _conditions(api_key, sender, version):
                yield Moment(sender, generation, frozenset(conditions), version, release, phase)


def _conditions(api_key: int, sender: Sender, version: int) -> list[tuple[Condition, ...]]:
    if api_key == SYNC_GROUP and version >= 5:
        return [(), (Condition.NAMES_OTHER,), (Condition.NAMES_NONE,)]
    if api_key != JOIN_GROUP:
        return [()]
    if sender is Sender.RETURNING:
        return [(Condition.UNSUPPORTED,), (Condition.KEEPS,), (Condition.SWITCHES,)]
    if sender is Sender.MEMBER:
        roles = (Condition.LEADER, Condition.FOLLOWER)
        return [(Condition.UNSUPPORTED,), *product(roles, (Condition.UNCHANGED, Condition.CHANGED))]
    return [(Condition.UNSUPPORTED,), ()]


def _moments_of_ends(api_key: int) -> Iterator[Moment]:
    ends = {
        JOIN_GROUP: (("K", Sender.MEMBER), ("P", Sender.STRANGER), ("P", Sender.FENCED), ("N", Sender.MEMBER)),
        SYNC_GROUP: (*product("SPN", [Sender.MEMBER]), ("K", Sender.STRANGER), ("K", Sender.FENCED)),
    }.get(api_key, ())
    generation = Generation.SAME if api_key == SYNC_GROUP else Generation.NONE
    for (phase, sender), version, release in product(ends, range(NEWEST[api_key] + 1), RELEASES):
        if sender is not Sender.FENCED or version >= STATIC_SINCE[api_key]:
            yield Moment(sender, generation, frozenset(), version, release, phase, held=True)


def changes(row: Row) -> Iterator[tuple[str, Row]]:
    """The row with one cell narrowed or widened by one value."""
    yield "ends_hold", row._replace(ends_hold=not row.ends_hold)
    for phase in PHASES:
        yield f"phase {phase}", row._replace(phases="".join(sorted(set(row.phases) ^ {phase})))
    for column, values in (("senders", Sender), ("generations", Generation)):
        own = getattr(row, column) or frozenset(values)
        for value in values:
            changed = own ^ {value}
            if changed:  # an empty cell would be any
                yield f"{column} {value}", row._replace(**{column: changed})
    for condition in Condition:
        if condition not in {Condition.UNSEEN, Condition.FOREIGN, Condition.UPGRADED}:
            yield f"if {condition}", row._replace(conditions=row.conditions ^ {condition})
    for effect in Effect:
        yield f"then {effect}", row._replace(effects=row.effects ^ {effect})
    first, last = row.versions
    for ends in ((first - 1, last), (first + 1, last), (first, last - 1), (first, last + 1)):
        yield f"version {ends}", row._replace(versions=ends)
    oldest, newest = row.releases
    for ends in (
        *((release, newest) for release in RELEASES if release != oldest),
        *((oldest, release) for release in RELEASES if release != newest),
    ):
        yield f"release {ends}", row._replace(releases=ends)


def notices(cases: list[tuple[int, Case]], table: tuple[Row, ...], index: int, changed: Row | None) -> bool:
    """True if a case is not explained any more; each case comes with the index of the row that decided it."""
    after = (*table[:index], *(() if changed is None else (changed,)), *table[index + 1 :])
    for decided, case in cases:
        if decided < index:
            continue
        applies = changed is not None and changed.applies(case.moment)
        if (decided == index and not (applies and explained(case, changed))) or (decided > index and applies):
            row = changed if applies else deciding(after, case.moment)
            if not explained(case, row):
                return True
    return False


def seen(row: Row | None, moment: Moment) -> tuple[frozenset[int], frozenset[str]] | None:
    """What a row says of a moment. That a join phase begins shows only where none runs."""
    if row is None:
        return None
    return row.answers, row.effects - ({Effect.PREPARES} if moment.phase == "P" else frozenset())


def means_the_same(decided: list[tuple[int, Moment]], table: tuple[Row, ...], index: int, changed: Row | None) -> bool:
    """True if the change makes no difference at any moment that is possible."""
    after = (*table[:index], *(() if changed is None else (changed,)), *table[index + 1 :])
    for before, moment in decided:
        applies = changed is not None and changed.applies(moment)
        if before < index or (before > index and not applies):
            continue
        row = changed if applies else deciding(after, moment)
        if seen(row, moment) != seen(table[before], moment):
            return False
    return True

"""What the reference coordinator says a monitor must make of each answer to each request, in scenes that frames show.

The reference coordinator does not know the protocol's table. It was asked each kind of request in each phase, at each release
(``test_protocol.by_phase``). In a scene frames have shown some facts: a generation, a list of members, what succeeds afterwards. An
answer may be lawful if the reference gives it at a moment that these facts allow, or for a reason that frames never show. Otherwise it
must be found unlawful.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple

from coordinator_model import wire
from coordinator_model.coordinator import Coordinator
from coordinator_model.groups.classic.group import ClassicGroup
from coordinator_model.groups.classic.positions import NOTHING_YET, Later, judge
from coordinator_model.groups.protocol.classic import Generation, Sender
from coordinator_model.groups.protocol.table import Moment
from coordinator_model.groups.records import Exchange
from coordinator_model.releases import BrokerVersion, first_release
from coordinator_model.wire import ERROR_CODES
from coordinator_model.wire.constants import (
    DELETE_GROUPS,
    FIND_COORDINATOR,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    OFFSET_COMMIT,
    REBALANCE_IN_PROGRESS,
    SYNC_GROUP,
    TXN_OFFSET_COMMIT,
)
from tests.coordinator_model.classic import complete
from tests.coordinator_model.conversation import Client, Conversation
from tests.coordinator_model.groups.classic.table_cases import GENERATION, NEWEST, STATIC_SINCE, bodies, by_phase

ANY_API = frozenset({35, 30, 15, 24, -1, 42, 16})
"""Answers to any request for reasons that no frame shows: versions, rights, a broker that starts, faults, a log that is lost."""

UNSEEN: dict[int, dict[int, int]] = {
    JOIN_GROUP: {26: 0, 81: 0},
    HEARTBEAT: {14: 0},
    OFFSET_COMMIT: {3: 0, 29: 0, 12: 0, 28: 0, 7: 0, 113: 9, 100: 10},
    FIND_COORDINATOR: {0: 0, 53: 0, 120: 5, 14: 0, 29: 0},
    TXN_OFFSET_COMMIT: dict.fromkeys((3, 29, 12, 28, 7, 53, 47, 48, 49, 51, 59, 90, 120, 27, 69, 113), 0),
}
"""API → error → first version. The coordinator's limits, topics, sizes, slow disks, producers and upgrades to the newer protocol; all of FindCoordinator,
which any broker answers."""


class Scene(NamedTuple):
    """What frames have shown before a request, and what later ones show."""

    name: str
    prelude: Callable[[Conversation], None]
    allows: Callable[[Probe, Moment], bool]
    later: Later = NOTHING_YET
    oldest: tuple[int, int] = (0, 9)
    gap: bool = False  #: records are lost between the request and its answer


class Probe(NamedTuple):
    """A request whose every answer is judged."""

    body: Any
    version: int
    ids: tuple[str, str | None]
    generation: int

    @property
    def api_key(self) -> int:
        key: int = self.body.API_KEY
        return key


# ---------------------------------------------------------------------------------------------------- scenes

MEMBERS = {"leader": None, "follower": None, "static": "i-1"}


def settled(talk: Conversation, *, synced: bool = True) -> list[Client]:
    """Generation 7 with its members, each proven; ``static-before`` held the instance id in generation 6."""
    clients = {name: talk.client(name) for name in (*MEMBERS, "static-before")}
    for name, client in clients.items():
        client.instance_id = "i-1" if name.startswith("static") else None
        if client.instance_id is None:
            talk.hand_out_id(client, name)
    before = [clients["leader"], clients["follower"], clients["static-before"]]
    clients["static-before"].member_id = "static-before"
    for generation in (5, 6):
        _round(talk, before, generation)
    talk.wait(100)
    talk.close(clients["static-before"])
    talk.joined(talk.ask_join(clients["static"]), generation=6, leader=before[0], roster=[], member_id="static")
    talk.call(clients["static"], talk.sync_request(clients["static"], []), talk.synced())
    members = [clients[name] for name in MEMBERS]
    talk.wait(100)
    _round(talk, members, GENERATION, synced=synced)
    talk.hand_out_id(talk.client("pending"), "pending")
    for client in members:
        talk.heartbeat(client)
    talk.wait(700)
    return members


def _round(talk: Conversation, clients: list[Client], generation: int, *, synced: bool = True) -> None:
    asked = [talk.ask_join(client) for client in clients]
    complete(talk, asked, generation, clients[0], clients)
    if synced:
        talk.sync_all(clients)


def completing(talk: Conversation) -> None:
    settled(talk, synced=False)


def others_wait(talk: Conversation) -> None:
    """Two members were told to rejoin, and wait."""
    for client in settled(talk)[:2]:
        talk.heartbeat(client, 27)
        talk.ask_join(client)
    talk.wait(900)


def loading(talk: Conversation) -> None:
    """The broker loads another group, so perhaps this one."""
    settled(talk)
    elsewhere = Conversation("h")
    other = elsewhere.client("other")
    talk.group = "h"
    talk.refuse_join(talk.ask(talk.client("other"), talk.join_request(other), group="h"), 14)
    talk.group = "g"


# ---------------------------------------------------------------------------------------------------- what is possible


def senders(probe: Probe) -> set[Sender]:
    """What a coordinator may know of these ids, whatever happened that no frame shows. An id does not tell who holds an instance id."""
    id_, instance_id = probe.ids
    if not id_:
        return {Sender.NEW} if instance_id is None else {Sender.NEW_STATIC, Sender.RETURNING}
    if instance_id is None:
        return {Sender.MEMBER, Sender.STRANGER, Sender.PENDING}
    return {Sender.MEMBER, Sender.RENAMED, Sender.STRANGER, Sender.FENCED, Sender.PENDING_STATIC}


def anything(probe: Probe, moment: Moment) -> bool:
    """Nothing is known of the group. Whether the broker loads shows in what it says."""
    return moment.phase != "L" and (moment.held or moment.sender in senders(probe))


def at_generation_7(probe: Probe, moment: Moment) -> bool:
    """Generation 7 began before, and lasts or has been followed by another: so 6 is over, and only its members are members at 7."""
    if not anything(probe, moment):
        return False
    id_, instance_id = probe.ids
    if probe.generation == GENERATION and moment.generation is Generation.SAME:
        if moment.phase == "E":
            return False  # another generation comes before Empty
        if moment.sender in {Sender.MEMBER, Sender.RENAMED} and id_ not in MEMBERS:
            return False
    if probe.generation == GENERATION - 1 and moment.generation is Generation.SAME and moment.phase not in "-NDL":
        return False
    if MEMBERS.get(id_, "i-1") is None and instance_id is None and moment.sender is Sender.FENCED:
        return False  # a dynamic member
    if id_ == "static-before":
        return moment.sender not in {Sender.MEMBER, Sender.RENAMED}  # ids never come back
    return moment.sender is not Sender.MEMBER or instance_id != "i-1" or id_ == "static"


def in_sync(probe: Probe, moment: Moment) -> bool:
    """Generation 7 has its assignments as well."""
    over = probe.generation == GENERATION and moment.generation is Generation.SAME and moment.phase == "K"
    return at_generation_7(probe, moment) and not over


def in_the_next_join_phase(probe: Probe, moment: Moment) -> bool:
    over = probe.generation == GENERATION and moment.generation is Generation.SAME and moment.phase in "KS"
    return in_sync(probe, moment) and not over


def at_generation_7_afterwards(probe: Probe, moment: Moment) -> bool:
    """A later request succeeds at generation 7: nothing came after it, and who was a member is one unless a join phase began."""
    if not in_sync(probe, moment) or moment.phase in "-E":
        return False
    if moment.phase in "KSP" and probe.generation >= 0:
        same = probe.generation == GENERATION
        if (moment.generation is Generation.SAME) != same or (moment.phase == "K" and same):
            return False
    if moment.phase == "K" and moment.generation is not Generation.SAME:
        return False
    known = probe.ids in {("leader", None), ("follower", None)}
    return not (known and moment.sender in {Sender.STRANGER, Sender.PENDING} and moment.phase in "KS")


def in_sync_afterwards(probe: Probe, moment: Moment) -> bool:
    """Nor did a join phase begin."""
    return at_generation_7_afterwards(probe, moment) and moment.phase != "P"


def member_afterwards(probe: Probe, moment: Moment) -> bool:
    """A later request of the same member succeeds. Ids never come back, so it was one all the time, and held its instance id."""
    if not in_sync(probe, moment):
        return False
    if probe.ids not in MEMBERS.items():
        return True
    return moment.phase not in "-E" and moment.sender is Sender.MEMBER


def loads(probe: Probe, moment: Moment) -> bool:
    return in_sync(probe, moment) or moment.phase == "L"


SCENES = (
    Scene("nothing known", lambda _: None, anything),
    Scene("nothing known, and records lost", lambda _: None, anything, gap=True),
    Scene("settled", lambda talk: settled(talk) and None, in_sync),
    Scene("settled, recent brokers", lambda talk: settled(talk) and None, in_sync, oldest=(3, 6)),
    Scene("no assignments yet", completing, at_generation_7),
    Scene("two wait in a join phase", others_wait, in_the_next_join_phase),
    Scene("a broker that loads", loading, loads),
    Scene("still at the generation later", lambda talk: settled(talk) and None, at_generation_7_afterwards, Later(GENERATION)),
    Scene("still in sync later", lambda talk: settled(talk) and None, in_sync_afterwards, Later(GENERATION, in_sync=True)),
    Scene("still a member later", lambda talk: settled(talk) and None, member_afterwards, Later(member=True)),
)


# ---------------------------------------------------------------------------------------------------- probes and their answers


_OLDEST = {OFFSET_COMMIT: 2}  #: version with a generation and member that Kafka still reads


@cache
def probes(api_key: int) -> tuple[Probe, ...]:
    """One request for each version, pair of ids and generation."""
    if api_key == FIND_COORDINATOR:
        return tuple(Probe(_find(version), version, ("", None), -1) for version in range(7))
    found: dict[tuple[Any, ...], Probe] = {}
    for version in range(_OLDEST.get(api_key, 0), NEWEST[api_key] + 1):
        for body in bodies(api_key, version):
            if api_key == TXN_OFFSET_COMMIT and version < 3 and (_ids(body) != ("", None) or _generation(body) >= 0):
                continue  # these versions cannot say that
            probe = Probe(body, version, _ids(body), _generation(body))
            found.setdefault((version, probe.ids, probe.generation), probe)
    if api_key == OFFSET_COMMIT:
        found[10] = next(iter(found.values()))._replace(version=10)
    return tuple(found.values())


def _find(version: int) -> wire.FindCoordinatorRequest:
    return wire.FindCoordinatorRequest(coordinator_keys=("g",)) if version >= 4 else wire.FindCoordinatorRequest(key="g")


def _ids(body: Any) -> tuple[str, str | None]:
    if body.API_KEY == LEAVE_GROUP and body.members:
        return body.members[0].member_id, body.members[0].group_instance_id
    return getattr(body, "member_id", ""), getattr(body, "group_instance_id", None)


def _generation(body: Any) -> int:
    generation: int = getattr(body, "generation_id", getattr(body, "generation_id_or_member_epoch", -1))
    return generation


@cache
def cases(api_key: int, version: int) -> tuple[tuple[Moment, int], ...]:
    """The answers of the reference coordinator to this version, and at which moments it gives them."""
    if api_key == FIND_COORDINATOR:
        return ()
    given = ((case.moment, case.answer) for case in by_phase(api_key) if case.answer is not None)
    return tuple((moment, answer) for moment, answer in given if moment.version == min(version, NEWEST[api_key]))


@cache
def lawful(scene: Scene, api_key: int, index: int) -> frozenset[int]:
    """The answers that may be lawful to one of the :func:`probes`."""
    probe = probes(api_key)[index]
    version = probe.version
    since = max(scene.oldest, first_release(api_key, version))
    own = getattr(probe.body, "generation_id", getattr(probe.body, "generation_id_or_member_epoch", None))
    possible = {
        answer
        for moment, answer in cases(api_key, version)
        if moment.release >= since
        and (own is None or (moment.generation is Generation.NONE) == (own < 0))
        and (answer == 14 or scene.allows(probe, moment))
    }
    held_through_an_upgrade = {REBALANCE_IN_PROGRESS} if scene.gap and api_key == JOIN_GROUP else set()
    return frozenset(possible | _unseen(probe) | held_through_an_upgrade)


def _unseen(probe: Probe) -> set[int]:
    found = set(ANY_API)
    found.update(error for error, since in UNSEEN.get(probe.api_key, {}).items() if since <= probe.version)
    if probe.api_key == JOIN_GROUP and probe.version >= STATIC_SINCE[JOIN_GROUP] and not probe.ids[0] and probe.ids[1] is not None:
        found.add(27)  # the replacement could not be written
    return found


def unlawful(scene: Scene, probe: Probe, errors: Iterable[int] = tuple(ERROR_CODES)) -> set[int]:
    """The answers that the monitor finds unlawful."""
    group, exchange = asked(scene, probe)
    version = BrokerVersion(scene.oldest)
    return {error for error in errors if judge(group, exchange, error, version, later=scene.later, named=probe.ids) is not None}


@cache
def after(scene: Scene) -> tuple[bytes, Conversation]:
    talk = Conversation()
    talk.find_coordinator(talk.client("first"))
    scene.prelude(talk)
    return talk.model.snapshot(), talk


_asked: dict[tuple[str, int, int, tuple[str, str | None], int], tuple[ClassicGroup, Exchange]] = {}


def asked(scene: Scene, probe: Probe) -> tuple[ClassicGroup, Exchange]:
    """The group when the answer to a request is captured, and the request."""
    key = (scene.name, probe.api_key, probe.version, probe.ids, probe.generation)
    if key not in _asked:
        snapshot, talk = after(scene)
        probing = Conversation()
        probing.model = Coordinator.restore(snapshot)
        probing.now_us, probing.offset, probing.connections = talk.now_us, talk.offset, talk.connections + 1
        one = probing.ask(probing.client("probe"), probe.body, version=probe.version)
        group: ClassicGroup = probing.model.groups.opened(("c1", "g"))[0]  # type: ignore[assignment]
        exchange = group.open.pop((one.client.connection, one.exchange))
        exchange.effective_us, exchange.res_us = exchange.inv_us, exchange.inv_us + 1_000
        exchange.gap_free = not scene.gap
        _asked[key] = group, exchange
    return _asked[key]


APIS = (JOIN_GROUP, SYNC_GROUP, HEARTBEAT, LEAVE_GROUP, OFFSET_COMMIT, TXN_OFFSET_COMMIT, DELETE_GROUPS, FIND_COORDINATOR)


def disagreements(scene: Scene, api_key: int, errors: Iterable[int] = tuple(ERROR_CODES)) -> Iterator[str]:
    """Yield each answer that is found lawful and must not be, or the reverse."""
    for index, probe in enumerate(probes(api_key)):
        allowed, found = lawful(scene, api_key, index), unlawful(scene, probe, errors)
        for error in errors:
            if (error in allowed) == (error in found):
                said = "unlawful" if error in found else "lawful"
                yield f"v{probe.version} {probe.ids} generation {probe.generation}: {error} is found {said}"

"""One life of a group: who takes part, what befalls them and when. Hypothesis draws the plan, a seed decides the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, ClassVar

from hypothesis import strategies as st

from coordinator_model import wire
from coordinator_model.wire.record import MirrorRecord
from tests.coordinator_model.reference.client import Client
from tests.coordinator_model.reference.coordinator import NEWEST, Coordinator
from tests.coordinator_model.reference.world import MS, SECOND, START_US, VERSIONS, Connection, World

ACTS = (
    "stop", "crash", "start", "stall", "cut", "subscribe", "metadata", "newcomer", "restart", "fail over", "unload", "reload", "broker crash",
    "slow", "operator", "new life",
)  # fmt: skip

RELEASES = {
    "newest": NEWEST,
    "3.9": (3, 9, 2),
    "2.8": (2, 8, 0),
    "2.6": (2, 6, 0),
    "2.4": (2, 4, 1),
    "2.3": (2, 3, 1),
    "2.2": (2, 2, 2),
    "2.0": (2, 0, 1),
}
OLD = ("3.9", "2.8", "2.6", "2.4", "2.3", "2.2", "2.0")


@dataclass(frozen=True)
class Profile:
    static: bool = False
    separate: bool = False
    two_protocols: bool = False
    rebalance_ms: int = 20_000
    session_ms: int = 10_000
    release: str = "newest"  #: of the client library; before 2.3 there are no static members


@dataclass(frozen=True)
class Act:
    at_ms: int
    what: str
    whom: int


@dataclass(frozen=True)
class Plan:
    seed: int
    profiles: tuple[Any, ...]
    acts: tuple[Act, ...] = ()
    lasts_ms: int = 60_000
    brokers: str = "newest"  #: their release; replacements of static members are written from 2.6.1 on (KAFKA-10284)

    def life(self) -> History:
        """The life that is planned, before it begins."""
        return History(self)

    def run(self) -> History:
        life = self.life()
        life.run()
        return life


@dataclass
class History:
    plan: Plan
    world: World = field(init=False)
    clients: list[Client] = field(init=False, default_factory=list)
    log: list[Any] = field(init=False, default_factory=list)

    starts_within_ms: ClassVar[int] = 4_000

    def __post_init__(self) -> None:
        self.world = World(Random(self.plan.seed))
        self.brokers = [self._broker(name) for name in ("1", "2")]
        self.brokers[0].active = True

    def _broker(self, name: str) -> Any:
        return Coordinator(self.world, name, self.log, release=RELEASES[self.plan.brokers])

    @property
    def records(self) -> list[MirrorRecord]:
        return self.world.records

    @property
    def coordinator(self) -> Any:
        return next(broker for broker in self.brokers if broker.active)

    def run(self) -> None:
        world = self.world
        world.at(world.random.randrange(SECOND), world.tick)
        for profile in self.plan.profiles:
            world.at(world.random.randrange(self.starts_within_ms) * MS, self._starting(self._client(profile)))
        for act in self.plan.acts:
            world.at(act.at_ms * MS, lambda act=act: self._do(act))
        world.run(START_US + self.plan.lasts_ms * MS)

    def _starting(self, client: Client) -> Callable[[], None]:
        """Start a process, unless another has taken its place: no two have one instance id."""
        return lambda: client.start() if client in self.clients else None

    def _client(self, profile: Any) -> Client:
        index = len(self.clients)
        spoken = zip(VERSIONS[profile.release].items(), VERSIONS[self.plan.brokers].values(), strict=True)
        versions = {api_key: min(own, of_broker) for (api_key, own), of_broker in spoken}
        client = Client(
            self.world,
            f"worker-{index}",
            session_ms=profile.session_ms,
            rebalance_ms=profile.rebalance_ms,
            instance_id=f"i-{index}" if profile.static and versions[11] >= 5 else None,
            separate=profile.separate,
            protocols=("range", "roundrobin") if profile.two_protocols else ("range",),
            versions=versions,
        )
        self.clients.append(client)
        return client

    def _do(self, act: Act) -> None:
        client = self.clients[act.whom % len(self.clients)]
        match act.what:
            case "stop":
                client.stop()
            case "crash":
                client.crash()
            case "start" | "restart":
                client.crash()
                self.world.at((50 + act.whom * 130) * MS, client.start)
            case "stall":
                client.stall(client.rebalance_ms * MS // 4)
            case "cut":
                client.cut()
            case "subscribe":
                client.subscribe((f"t{act.at_ms}",))
            case "metadata":
                for one in self.clients:
                    one.metadata_changed()
            case "newcomer":
                profile = self.plan.profiles[act.whom % len(self.plan.profiles)]
                self._client(profile).start()
            case "slow":
                self.slow_replication(act)
            case "operator":
                self.operator_acts(act)
            case "new life":
                self.begins_anew(act)
            case _:
                self._move(act.what)

    def slow_replication(self, act: Act) -> None:
        if self.coordinator.release >= (4,):
            self.world.slow_until_us = self.world.now_us + (2 + act.whom * 3) * SECOND

    def operator_acts(self, act: Act) -> None:
        """An operator removes a member, sets offsets, or deletes the group."""
        client = self.clients[act.whom % len(self.clients)]
        self._ask_as_operator((self._remove_member, self._set_offsets, self._delete_group)[act.at_ms % 3](client))

    def _ask_as_operator(self, body: Any) -> None:
        connection = Connection(self.world, "operator", self.coordinator.name, {**VERSIONS["newest"], 8: 9, 42: 2})
        if self.coordinator.release >= (4,):  # tools of that age
            connection.ask(body, lambda _: connection.close())

    def begins_anew(self, act: Act) -> None:
        """Everybody stops, the coordinator forgets the empty group, which no frame shows, and all start again."""
        for number, client in enumerate(self.clients):
            client.stop()
            self.world.at((15 + act.whom * 9) * SECOND + number * 300 * MS, self._starting(client))
        self.world.at((14 + act.whom * 9) * SECOND, self.coordinator.expire)

    def _remove_member(self, client: Client) -> Any:
        """Tools name an instance id alone, and a member id where there is none."""
        static = client.instance_id is not None
        named = wire.LeaveGroupRequestMemberIdentity(
            member_id="" if static else client.member_id, group_instance_id=client.instance_id, reason="removed by an operator"
        )
        return wire.LeaveGroupRequest(group_id=self.world.group, members=(named,))

    def _set_offsets(self, client: Client) -> Any:
        partition = wire.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
        topic = wire.OffsetCommitRequestTopic(name="t", partitions=(partition,))
        return wire.OffsetCommitRequest(group_id=self.world.group, generation_id_or_member_epoch=-1, member_id="", topics=(topic,))

    def _delete_group(self, client: Client) -> Any:
        return wire.DeleteGroupsRequest(groups_names=(self.world.group,))

    def _move(self, how: str) -> None:
        old = self.coordinator
        new = old if how == "reload" else next(broker for broker in self.brokers if broker is not old)
        if how == "broker crash":
            old.unload()
        else:
            old.resign()
        new.become_coordinator(self.world.random.randrange(1, 3_000) * MS)
        if how == "broker crash":
            for client in self.clients:
                if client.running:
                    client.broker = new.name
                    client.cut()


def profiles() -> st.SearchStrategy[Profile]:
    return st.builds(
        Profile,
        static=st.booleans(),
        separate=st.booleans(),
        two_protocols=st.booleans(),
        rebalance_ms=st.sampled_from([8_000, 20_000]),
        session_ms=st.sampled_from([6_000, 10_000]),
        release=st.one_of(st.just("newest"), st.sampled_from(list(VERSIONS))),
    )


def acts(kinds: tuple[str, ...] = ACTS, *, latest_ms: int = 50_000) -> st.SearchStrategy[Act]:
    return st.builds(Act, at_ms=st.integers(0, latest_ms), what=st.sampled_from(kinds), whom=st.integers(0, 6))


def plans(**fields: Any) -> st.SearchStrategy[Plan]:
    values: dict[str, Any] = {
        "seed": st.integers(0, 2**32 - 1),
        "profiles": st.lists(profiles(), min_size=1, max_size=4).map(tuple),
        "acts": st.lists(acts(), max_size=8).map(tuple),
        "brokers": st.sampled_from(["newest", "2.6"]),
    }
    return st.builds(Plan, **{**values, **fields})

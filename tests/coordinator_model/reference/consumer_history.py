"""One life of a group that may change its protocol: members of both, what befalls them, and brokers of one release."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from coordinator_model.wire.constants import CONSUMER_GROUP_HEARTBEAT, JOIN_GROUP
from coordinator_model.wire.record import MirrorRecord
from tests.coordinator_model.reference import history
from tests.coordinator_model.reference.client import Client
from tests.coordinator_model.reference.consumer_client import ConsumerClient, know
from tests.coordinator_model.reference.consumer_coordinator import ConsumerCoordinator
from tests.coordinator_model.reference.history import Act
from tests.coordinator_model.reference.world import MS, SECOND, VERSIONS

ACTS = (
    "stop", "crash", "start", "freeze", "stall", "cut", "subscribe", "topic", "newcomer", "restart", "migrate",
    "fail over", "unload", "reload", "broker crash", "slow", "operator",
    "new life",
)  # fmt: skip
TOPICS = ("t", "u", "v")
RELEASES = {"4.0": (4, 0, 2), "4.1": (4, 1, 2), "4.2": (4, 2, 1), "4.3": (4, 3, 1)}


@dataclass(frozen=True)
class Profile:
    """What a member is; ``classic`` is a library too."""

    library: str = "java"
    static: bool = False
    by_pattern: bool = False
    rebalance_ms: int = 30_000
    revoke_ms: int = 0
    throws: bool = False


@dataclass(frozen=True)
class Plan(history.Plan):
    lasts_ms: int = 150_000
    brokers: str = "4.3"
    policy: str = "bidirectional"

    def life(self) -> History:
        return History(self)


class History(history.History):
    plan: Plan
    starts_within_ms = 6_000

    def __post_init__(self) -> None:
        self.topics = {know(topic) for topic in TOPICS}
        self.profiles: list[Profile] = []  # of the clients
        self.migrating: set[int] = set()  # clients that are stopped, and will come back with the other protocol
        super().__post_init__()

    def _broker(self, name: str) -> ConsumerCoordinator:
        return ConsumerCoordinator(
            self.world, name, self.log, release=RELEASES[self.plan.brokers], topics=self.topics, policy=self.plan.policy
        )

    def _client(self, profile: Profile, *, place: int | None = None) -> Client:
        number = len(self.clients) if place is None else place
        options: dict[str, Any] = {
            "rebalance_ms": profile.rebalance_ms,
            "instance_id": f"i-{number}" if profile.static else None,
            "topics": ("t",),
        }
        name = f"worker-{number}"
        client: Client
        if profile.library == "classic":
            client = Client(self.world, name, session_ms=10_000, versions={**VERSIONS["newest"], 8: 9}, **options)
        else:
            client = ConsumerClient(
                self.world,
                name,
                library=profile.library,
                pattern="^t.*" if profile.by_pattern else "",
                revoke_ms=profile.revoke_ms,
                throws=profile.throws,
                commit_version=10 if profile.library == "java" and RELEASES[self.plan.brokers] >= (4, 2) else 9,
                **options,
            )
        client.broker = self.coordinator.name
        if place is None:
            self.clients.append(client)
            self.profiles.append(profile)
        else:
            self.clients[place], self.profiles[place] = client, profile
        return client

    def _starting(self, client: Client) -> Callable[[], None]:
        """Start a process, unless another has taken its place: no two have one instance id."""
        return lambda: client.start() if client in self.clients else None

    def _do(self, act: Act) -> None:
        number = act.whom % len(self.clients)
        client = self.clients[number]
        match act.what:
            case "stop":
                client.stop()
            case "crash":
                client.crash()
            case "start":
                client.crash()
                self.world.at((50 + act.whom * 130) * MS, self._starting(client))
            case "restart":
                client.stop()
                self.world.at((2_500 + act.whom * 130) * MS, self._starting(client))
            case "migrate":
                self._migrate(number, client)
            case "freeze" if isinstance(client, ConsumerClient):
                client.freeze((5 + act.whom * 9) * SECOND)
            case "stall" | "freeze":
                client.stall(client.rebalance_ms * MS * (1 + act.whom) // 5)
            case "cut":
                client.cut()
            case "subscribe":
                client.subscribe((("t", "u"), ("t",), ("u", "v"), ("t", f"new-{act.whom}"))[act.whom % 4])
            case "topic":
                self._create(("t-more", f"new-{act.whom}")[act.whom % 2])
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

    def _migrate(self, number: int, client: Client) -> None:
        """It is stopped and comes back with the other protocol, as in a rolling upgrade; one at a time."""
        if number in self.migrating:
            return
        profile = self.profiles[number]
        other = replace(profile, library="java" if profile.library == "classic" else "classic")

        def come_back() -> None:
            self.migrating.discard(number)
            client.crash()  # if it still waits for a coordinator to take its leave
            self._client(other, place=number).start()

        self.migrating.add(number)
        client.stop()
        self.world.at(3 * SECOND, come_back)

    def _create(self, topic: str) -> None:
        if topic not in self.topics:
            self.topics.add(know(topic))
            for broker in self.brokers:
                broker.topic_created(topic)


def changes_protocol(records: list[MirrorRecord]) -> bool:
    """Return True if members of both protocols take part."""
    return {JOIN_GROUP, CONSUMER_GROUP_HEARTBEAT} <= {record.api_key for record in records}


def profiles(libraries: tuple[str, ...] = ("java", "librdkafka", "franz-go", "classic")) -> st.SearchStrategy[Profile]:
    return st.builds(
        Profile,
        library=st.sampled_from(libraries),
        static=st.booleans(),
        by_pattern=st.sampled_from([False, False, False, True]),
        rebalance_ms=st.sampled_from([10_000, 30_000, 60_000]),
        revoke_ms=st.sampled_from([0, 0, 2_000, 12_000]),
        throws=st.sampled_from([False, False, False, False, True]),
    )


def acts(kinds: tuple[str, ...] = ACTS, *, latest_ms: int = 120_000) -> st.SearchStrategy[Act]:
    return st.builds(Act, at_ms=st.integers(0, latest_ms), what=st.sampled_from(kinds), whom=st.integers(0, 6))


def plans(**fields: Any) -> st.SearchStrategy[Plan]:
    values: dict[str, Any] = {
        "seed": st.integers(0, 2**32 - 1),
        "profiles": st.lists(profiles(), min_size=1, max_size=4).map(tuple),
        "acts": st.lists(acts(), max_size=8).map(tuple),
        "brokers": st.sampled_from(list(RELEASES)),
    }
    return st.builds(Plan, **{**values, **fields})

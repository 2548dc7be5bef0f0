"""One life of a share group or a Streams group: who takes part, and what befalls them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tests.coordinator_model.reference.client import Client
from tests.coordinator_model.reference.consumer_client import know
from tests.coordinator_model.reference.consumer_coordinator import ConsumerCoordinator
from tests.coordinator_model.reference.consumer_history import RELEASES, History, Plan, Profile, acts
from tests.coordinator_model.reference.epoch_clients import ShareClient, StreamsClient
from tests.coordinator_model.reference.history import Act
from tests.coordinator_model.reference.share_coordinator import ShareCoordinator
from tests.coordinator_model.reference.streams_coordinator import StreamsCoordinator
from tests.coordinator_model.reference.world import MS

CLIENTS_ONLY = ("stop", "crash", "start", "freeze", "stall", "cut", "newcomer", "restart")
MOVES = ("fail over", "unload", "reload", "broker crash", "slow", "new life", "operator")
SHARE_ACTS = (*CLIENTS_ONLY, *MOVES, "subscribe", "topic")
STREAMS_ACTS = (*CLIENTS_ONLY, *MOVES, "shutdown")
FULL_AT = 3  #: members, in a plan with a small group


@dataclass(frozen=True)
class SharePlan(Plan):
    """:param ready_ms: how long the share coordinator takes at most."""

    ready_ms: int = 400
    is_small: bool = False

    def life(self) -> ShareHistory:
        return ShareHistory(self)


class ShareHistory(History):
    plan: SharePlan

    def _broker(self, name: str) -> ConsumerCoordinator:
        return ShareCoordinator(
            self.world,
            name,
            self.log,
            release=RELEASES[self.plan.brokers],
            topics=self.topics,
            ready_ms=self.plan.ready_ms,
            max_size=FULL_AT if self.plan.is_small else 200,
        )

    def _client(self, profile: Profile, *, place: int | None = None) -> Client:
        client = ShareClient(self.world, f"worker-{len(self.clients)}", topics=("t",))
        return self._added(client, profile)

    def _added(self, client: Client, profile: Profile) -> Client:
        client.broker = self.coordinator.name
        self.clients.append(client)
        self.profiles.append(profile)
        return client

    def _set_offsets(self, client: Client) -> Any:
        """Tools set those of a share group by an API that is not followed."""
        return self._delete_group(client)


@dataclass(frozen=True)
class StreamsPlan(Plan):
    """:param source_after_ms: when the source topic is made."""

    source_after_ms: int = 0
    is_small: bool = False

    def life(self) -> StreamsHistory:
        return StreamsHistory(self)


class StreamsHistory(ShareHistory):
    plan: StreamsPlan  # type: ignore[assignment]

    def __post_init__(self) -> None:
        super().__post_init__()
        self.is_shut_down = False
        self.world.at(self.plan.source_after_ms * MS, lambda: self._create(know("payments")))

    def _broker(self, name: str) -> ConsumerCoordinator:
        return StreamsCoordinator(
            self.world,
            name,
            self.log,
            release=RELEASES[self.plan.brokers],
            topics=self.topics,
            max_size=FULL_AT if self.plan.is_small else 100,
        )

    def _client(self, profile: Profile, *, place: int | None = None) -> Client:
        client = StreamsClient(
            self.world,
            f"worker-{len(self.clients)}",
            topology=int(profile.by_pattern),
            rebalance_ms=profile.rebalance_ms,
            revoke_ms=profile.revoke_ms,
            throws=profile.throws,
        )
        return self._added(client, profile)

    def _set_offsets(self, client: Client) -> Any:
        return History._set_offsets(self, client)

    def _do(self, act: Act) -> None:
        if act.what != "shutdown":
            super()._do(act)
        elif not self.is_shut_down:  # an application that comes back and fails again is a finding
            self.is_shut_down = True
            client = self.clients[act.whom % len(self.clients)]
            assert isinstance(client, StreamsClient)
            client.asks_for_shutdown = True


def profiles() -> st.SearchStrategy[Profile]:
    """``by_pattern`` stands for a newer version of a Streams application."""
    return st.builds(
        Profile,
        by_pattern=st.sampled_from([False, False, False, True]),
        rebalance_ms=st.sampled_from([10_000, 30_000, 60_000]),
        revoke_ms=st.sampled_from([0, 0, 2_000, 12_000]),
        throws=st.sampled_from([False, False, False, False, True]),
    )


def share_plans(**fields: Any) -> st.SearchStrategy[SharePlan]:
    values: dict[str, Any] = {
        "seed": st.integers(0, 2**32 - 1),
        "profiles": st.lists(profiles(), min_size=1, max_size=4).map(tuple),
        "acts": st.lists(acts(SHARE_ACTS), max_size=8).map(tuple),
        "brokers": st.sampled_from(["4.1", "4.2", "4.3"]),
        "ready_ms": st.sampled_from([400, 5_000, 40_000]),
        "is_small": st.booleans(),
    }
    return st.builds(SharePlan, **{**values, **fields})


def streams_plans(**fields: Any) -> st.SearchStrategy[StreamsPlan]:
    values: dict[str, Any] = {
        "seed": st.integers(0, 2**32 - 1),
        "profiles": st.lists(profiles(), min_size=1, max_size=4).map(tuple),
        "acts": st.lists(acts(STREAMS_ACTS), max_size=8).map(tuple),
        "brokers": st.sampled_from(["4.2", "4.3"]),
        "source_after_ms": st.sampled_from([0, 0, 0, 20_000, 40_000]),
        "is_small": st.booleans(),
    }
    return st.builds(StreamsPlan, **{**values, **fields})

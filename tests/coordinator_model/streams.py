"""Streams and share groups (KIP-1071, KIP-932), for tests."""

from __future__ import annotations

from typing import Any

from coordinator_model import wire
from coordinator_model.finding import Finding
from tests.coordinator_model.conversation import Client
from tests.coordinator_model.epochs import INTERVAL_MS, RT_MS, TOPICS, Epochs, shows_release

Tasks = tuple[int, ...]
_SOURCE = wire.StreamsGroupHeartbeatRequestSubtopology(subtopology_id="0", source_topics=("payments",))


class Streams(Epochs):
    """A Streams group with one subtopology."""

    def task_beat(self, client: Client, epoch: int, *, tasks: Tasks | None = None, **fields: Any) -> Any:
        listed = None if tasks is None else (wire.StreamsGroupHeartbeatRequestTaskIds(subtopology_id="0", partitions=tasks),)
        values: dict[str, Any] = {
            "group_id": self.group,
            "member_id": client.member_id,
            "member_epoch": epoch,
            "active_tasks": () if tasks == () else listed,
            "standby_tasks": None if tasks is None else (),
            "warmup_tasks": None if tasks is None else (),
        }
        return wire.StreamsGroupHeartbeatRequest(**{**values, **fields})

    null_statuses = False  #: no status is null, as in 4.1, instead of an empty list

    def tasks_given(self, client: Client, epoch: int, tasks: Tasks | None, *statuses: tuple[int, str]) -> Any:
        told = tuple(wire.StreamsGroupHeartbeatResponseStatus(status_code=code, status_detail=text) for code, text in statuses)
        given = None if tasks is None else (wire.StreamsGroupHeartbeatResponseTaskIds(subtopology_id="0", partitions=tasks),)
        return wire.StreamsGroupHeartbeatResponse(
            member_id=client.member_id,
            member_epoch=epoch,
            heartbeat_interval_ms=INTERVAL_MS,
            status=None if self.null_statuses and not told else told,
            active_tasks=() if tasks == () else given,
            standby_tasks=None if tasks is None else (),
            warmup_tasks=None if tasks is None else (),
        )

    def entry(self, client: Client, topology: int = 0, **fields: Any) -> Any:
        values = {
            "rebalance_timeout_ms": RT_MS,
            "topology": wire.StreamsGroupHeartbeatRequestTopology(epoch=topology, subtopologies=(_SOURCE,)),
            "process_id": client.name,
        }
        return self.task_beat(client, 0, tasks=(), **{**values, **fields})

    def enters(self, client: Client, epoch: int, tasks: Tasks = (), *statuses: tuple[int, str], topology: int = 0) -> None:
        self.wait(20)
        self.call(client, self.entry(client, topology), self.tasks_given(client, epoch, tasks, *statuses))
        client.generation = epoch

    def refused_entry(self, client: Client, error: int, text: str | None = None, **fields: Any) -> None:
        self.wait(20)
        self.call(client, self.entry(client, **fields), wire.StreamsGroupHeartbeatResponse(error_code=error, error_message=text))

    def works(
        self,
        client: Client,
        epoch: int | None = None,
        tasks: Tasks | None = None,
        *statuses: tuple[int, str],
        asked: int | None = None,
        owned: Tasks | None = None,
        **fields: Any,
    ) -> None:
        """A heartbeat at the client's epoch or another, answered with an epoch, its own unless given."""
        self.wait(20)
        at = client.generation if asked is None else asked
        returned = at if epoch is None else epoch
        self.call(client, self.task_beat(client, at, tasks=owned, **fields), self.tasks_given(client, returned, tasks, *statuses))
        client.generation = max(returned, 0)

    def turned_away(self, client: Client, error: int, *, epoch: int, owned: Tasks | None = None) -> None:
        self.wait(20)
        self.call(client, self.task_beat(client, epoch, tasks=owned), wire.StreamsGroupHeartbeatResponse(error_code=error))

    def told_for(self, clients: list[Client], seconds: int, *statuses: tuple[int, str]) -> None:
        """Time passes while these heartbeat and are told the same."""
        for _ in range(seconds // 5):
            for client in clients:
                self.works(client, None, None, *statuses)
            self.wait(5_000)


class Shares(Epochs):
    """A share group."""

    def shares(self, client: Client, epoch: int, answered: int, numbers: Tasks | None = None) -> None:
        self.wait(20)
        names = ("foo",) if epoch == 0 else None
        request = wire.ShareGroupHeartbeatRequest(
            group_id=self.group, member_id=client.member_id, member_epoch=epoch, subscribed_topic_names=names
        )
        entry = wire.ShareGroupHeartbeatResponseTopicPartitions(topic_id="fooAAAAAAAAAAAAAAAAAAA", partitions=numbers or ())
        given = (
            None if numbers is None else wire.ShareGroupHeartbeatResponseAssignment(topic_partitions=(entry,) if numbers else ())
        )
        reply = wire.ShareGroupHeartbeatResponse(
            member_id=client.member_id, member_epoch=answered, heartbeat_interval_ms=INTERVAL_MS, assignment=given
        )
        self.call(client, request, reply)
        client.generation = answered

    def goes_on(self, clients: list[Client], seconds: int) -> None:
        for _ in range(seconds // 5):
            for client in clients:
                self.shares(client, client.generation, client.generation)
            self.wait(5_000)


# ---------------------------------------------------------------------------------------------------- groups of any type


def heartbeat_of(talk: Epochs, client: Client, epoch: int | None = None, **fields: Any) -> Any:
    """A heartbeat of the type of group, which says nothing new unless its epoch is 0; the client's own unless given."""
    at = client.generation if epoch is None else epoch
    if isinstance(talk, Streams):
        return talk.entry(client, **fields) if at == 0 else talk.task_beat(client, at, **fields)
    if isinstance(talk, Shares):
        names = ("foo",) if at == 0 else None
        ids = {"group_id": talk.group, "member_id": client.member_id, "member_epoch": at}
        return wire.ShareGroupHeartbeatRequest(**{**ids, "subscribed_topic_names": names, **fields})
    return talk.beat_request(client, at, **{**(talk.join_fields() if at == 0 else {}), **fields})


_FIRST: dict[type, dict[str, Any]] = {
    wire.ConsumerGroupHeartbeatResponse: {"assignment": wire.ConsumerGroupHeartbeatResponseAssignment()},
    wire.ShareGroupHeartbeatResponse: {
        "assignment": wire.ShareGroupHeartbeatResponseAssignment(
            topic_partitions=(wire.ShareGroupHeartbeatResponseTopicPartitions(topic_id=TOPICS["foo"], partitions=(0,)),)
        )
    },
    wire.StreamsGroupHeartbeatResponse: {"active_tasks": (), "standby_tasks": (), "warmup_tasks": ()},
}


def answer_to(request: Any, epoch: int | None = None, *, error: int = 0, throttle_ms: int = 0) -> Any:
    """Its answer: the same epoch unless another is given, and nothing for one that joins; a share member has foo-0."""
    body = {
        wire.ConsumerGroupHeartbeatRequest: wire.ConsumerGroupHeartbeatResponse,
        wire.ShareGroupHeartbeatRequest: wire.ShareGroupHeartbeatResponse,
        wire.StreamsGroupHeartbeatRequest: wire.StreamsGroupHeartbeatResponse,
    }[type(request)]
    if error:
        return body(error_code=error, throttle_time_ms=throttle_ms)
    return body(
        member_id=request.member_id,
        member_epoch=request.member_epoch if epoch is None else epoch,
        heartbeat_interval_ms=INTERVAL_MS,
        throttle_time_ms=throttle_ms,
        **(_FIRST[body] if request.member_epoch == 0 else {}),
    )


def heartbeats(
    talk: Epochs, client: Client, epoch: int | None = None, answered: int | None = None, *, error: int = 0, **fields: Any
) -> None:
    """Ask and answer; the client goes on at the epoch that it was answered."""
    talk.wait(20)
    request = heartbeat_of(talk, client, epoch, **fields)
    reply = answer_to(request, answered, error=error)
    talk.call(client, request, reply)
    if not error:
        client.generation = max(reply.member_epoch, 0)


def share_storm(*releases: tuple[int, int], joins: bool = False) -> Finding:
    talk = Shares()
    for release in releases:
        shows_release(talk, talk.client("tool"), release)
    a = talk.member("a")
    talk.shares(a, 0, 2, (0,))
    for epoch in range(3, 72):
        if joins:
            talk.shares(talk.member(f"b{epoch}"), 0, epoch, ())
            talk.shares(a, epoch - 1, epoch)
        else:
            talk.shares(a, epoch - 1, epoch)
        talk.wait(5_000)
    return talk.the("R-16")


class AnyKind(Shares, Streams):
    """A group whose type changes."""

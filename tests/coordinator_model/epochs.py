"""Members with epochs (KIP-848, KIP-932, KIP-1071), for tests: what they send, and what a coordinator answers."""

from __future__ import annotations

from typing import Any

from coordinator_model import wire
from tests.coordinator_model.conversation import Asked, Client, Conversation

TOPICS = {
    "foo": "fooAAAAAAAAAAAAAAAAAAA",
    "bar": "barAAAAAAAAAAAAAAAAAAA",
    "zar": "zarAAAAAAAAAAAAAAAAAAA",
}
RELEASE_SIGNS = (
    ((4, 0), {68: 1}),
    ((4, 1), {0: 13, 1: 18, 66: 2}),
    ((4, 2), {8: 10, 9: 10}),
    ((4, 3), {35: 5}),
    ((4, 4), {18: 5, 28: 6, 42: 3}),
)
INTERVAL_MS = 5_000
RT_MS = 60_000

Parts = dict[str, tuple[int, ...]]

Entry = wire.ConsumerGroupHeartbeatRequestTopicPartitions
GivenEntry = wire.ConsumerGroupHeartbeatResponseTopicPartitions


def parts(**by_topic: tuple[int, ...]) -> Parts:
    """Topic → partitions."""
    return by_topic


def foo(*numbers: int) -> Parts:
    return {"foo": numbers} if numbers else {}


def shows_release(talk: Conversation, client: Client, release: tuple[int, int]) -> None:
    """The broker of a connection answers which versions it has."""
    listed = tuple(
        wire.ApiVersionsResponseApiVersion(api_key=key, min_version=0, max_version=newest)
        for since, signs in RELEASE_SIGNS
        for key, newest in signs.items()
        if since <= release
    )
    talk.call(client, wire.ApiVersionsRequest(), wire.ApiVersionsResponse(api_keys=listed), version=3)


class Epochs(Conversation):
    """A group of one of the types whose members have epochs."""

    def member(self, name: str, instance_id: str | None = None, *, broker: str = "1") -> Client:
        return self.client(name, broker, member_id=f"{name}-id", instance_id=instance_id, generation=0)

    # -------------------------------------------------------------------------------------------- requests

    def beat_request(
        self, client: Client, epoch: int | None = None, *, owned: Parts | None = None, **fields: Any
    ) -> wire.ConsumerGroupHeartbeatRequest:
        """A heartbeat that says nothing new, unless ``fields`` do."""
        values: dict[str, Any] = {
            "group_id": self.group,
            "member_id": client.member_id,
            "member_epoch": client.generation if epoch is None else epoch,
            "instance_id": client.instance_id,
        }
        if owned is not None:
            values["topic_partitions"] = tuple(Entry(topic_id=TOPICS[topic], partitions=given) for topic, given in owned.items())
        return wire.ConsumerGroupHeartbeatRequest(**{**values, **fields})

    def join_fields(self, *topics: str, rt_ms: int = RT_MS) -> dict[str, Any]:
        return {"rebalance_timeout_ms": rt_ms, "subscribed_topic_names": topics or ("foo",), "owned": {}}

    # -------------------------------------------------------------------------------------------- answers

    def given(
        self, client: Client, epoch: int, assignment: Parts | None = None, **fields: Any
    ) -> wire.ConsumerGroupHeartbeatResponse:
        values: dict[str, Any] = {
            "error_code": 0,
            "member_id": client.member_id,
            "member_epoch": epoch,
            "heartbeat_interval_ms": INTERVAL_MS,
        }
        if assignment is not None:
            entries = tuple(GivenEntry(topic_id=TOPICS[topic], partitions=numbers) for topic, numbers in assignment.items())
            values["assignment"] = wire.ConsumerGroupHeartbeatResponseAssignment(topic_partitions=entries)
        return wire.ConsumerGroupHeartbeatResponse(**{**values, **fields})

    # -------------------------------------------------------------------------------------------- exchanges

    def joins(
        self, client: Client, epoch: int, assignment: Parts | None = None, *topics: str, rt_ms: int = RT_MS, **fields: Any
    ) -> None:
        """Epoch 0, answered with an epoch and an assignment, which is empty unless given."""
        self.wait(20)
        request = self.beat_request(client, 0, **{**self.join_fields(*topics, rt_ms=rt_ms), **fields})
        self.call(client, request, self.given(client, epoch, {} if assignment is None else assignment))
        client.generation = epoch

    def beats(
        self,
        client: Client,
        answered: int | None = None,
        assignment: Parts | None = None,
        *,
        epoch: int | None = None,
        owned: Parts | None = None,
        **fields: Any,
    ) -> None:
        """A heartbeat at the client's epoch or another, answered with an epoch, its own unless given."""
        self.wait(20)
        asked = client.generation if epoch is None else epoch
        returned = asked if answered is None else answered
        self.call(client, self.beat_request(client, asked, owned=owned, **fields), self.given(client, returned, assignment))
        client.generation = returned

    def full(self, client: Client, answered: int, assignment: Parts | None, *topics: str, owned: Parts, **fields: Any) -> None:
        """A heartbeat that says everything."""
        self.beats(
            client,
            answered,
            assignment,
            owned=owned,
            rebalance_timeout_ms=RT_MS,
            subscribed_topic_names=topics or ("foo",),
            **fields,
        )

    def refused(self, client: Client, error: int, *, epoch: int | None = None, text: str | None = None, **fields: Any) -> None:
        self.wait(20)
        reply = wire.ConsumerGroupHeartbeatResponse(error_code=error, error_message=text)
        self.call(client, self.beat_request(client, epoch, **fields), reply)

    def refused_join(self, client: Client, error: int, *, text: str | None = None) -> None:
        self.refused(client, error, epoch=0, text=text, **self.join_fields())

    def leaves(self, client: Client, epoch: int = -1) -> None:
        self.wait(20)
        self.call(client, self.beat_request(client, epoch), self.given(client, epoch))

    def ask_beat(self, client: Client, epoch: int | None = None, **fields: Any) -> Asked:
        return self.ask(client, self.beat_request(client, epoch, **fields))

    def live(self, clients: list[Client], seconds: int) -> None:
        """Time passes while these heartbeat as they were told."""
        for _ in range(seconds // 5):
            for client in clients:
                self.beats(client)
            self.wait(5_000)

    def commits(
        self, client: Client, error: int = 0, *, epoch: int | None = None, version: int = 9, number: int = 0, offset: int = 5
    ) -> None:
        """Of topic ``foo``, by its id from version 10 on."""
        self.wait(20)
        partition = wire.OffsetCommitRequestPartition(partition_index=number, committed_offset=offset)
        topic = {"topic_id": TOPICS["foo"]} if version >= 10 else {"name": "foo"}
        request = wire.OffsetCommitRequest(
            group_id=self.group,
            generation_id_or_member_epoch=client.generation if epoch is None else epoch,
            member_id=client.member_id,
            group_instance_id=client.instance_id,
            topics=(wire.OffsetCommitRequestTopic(partitions=(partition,), **topic),),
        )
        done = wire.OffsetCommitResponsePartition(partition_index=number, error_code=error)
        reply = wire.OffsetCommitResponse(topics=(wire.OffsetCommitResponseTopic(partitions=(done,), **topic),))
        self.call(client, request, reply, version=version)

    # -------------------------------------------------------------------------------------------- classic members

    def classic_join(self, client: Client, answered: int, **fields: Any) -> None:
        """The JoinGroup of a classic member in a group of the consumer type: answered at once, without a leader."""
        self.wait(20)
        asked = self.ask_join(client, **fields)
        reply = wire.JoinGroupResponse(
            error_code=0,
            generation_id=answered,
            protocol_type="consumer",
            protocol_name="range",
            leader="",
            member_id=client.member_id,
        )
        self.answer(asked, reply)
        client.generation = answered

    def classic_sync(self, client: Client, error: int = 0) -> None:
        self.wait(20)
        self.call(client, self.sync_request(client, []), self.synced(error))

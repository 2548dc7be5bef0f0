"""Subscriptions that name another version than they are written in, and groups that offer them."""

from __future__ import annotations

from coordinator_model import wire
from coordinator_model.wire.record import MirrorRecord
from tests.coordinator_model.conversation import Asked, Client
from tests.coordinator_model.groups.classic.timed import Timed


def rebalances(talk: Timed, asked: list[Asked], generation: int, ms: float) -> None:
    """The coordinator completes the join phase at ``ms``, and all members are served within 10 ms."""
    for one in asked:
        one.client.member_id = one.client.member_id or f"{one.client.name}-id-{generation}"
    talk.completes(asked, generation, ms)
    talk.syncs(ms + 5, {one.client: (ms + 10, (number,)) for number, one in enumerate(asked)})


TOPICS = ("t", "u")


def labelled(label: int, fields: bytes) -> bytes:
    return label.to_bytes(2, "big") + fields[2:]


def written(version: int, *owned: int) -> bytes:
    """A subscription with the fields of this version."""
    claims = (wire.ConsumerProtocolSubscriptionTopicPartition(topic="t", partitions=owned),) if owned else ()
    offer = wire.ConsumerProtocolSubscription(topics=TOPICS, user_data=b"data", owned_partitions=claims)
    return wire.encode_subscription(offer, version)


MISLABELLED = {
    "v1 with the fields of v0": labelled(1, written(0)),  # kafkajs before 2.2.3, sarama-cluster, kafka-go up to 0.4.51
    "v3 with the fields of v0": labelled(3, written(0)),
    "v3 with the fields of v1": labelled(3, written(1)),
    "v1 and bytes left over": written(1) + b"left over",
    "v0 and bytes left over": written(0) + b"left over",
    "v9 with the fields of v0": labelled(9, written(0)),
}


def offers(talk: Timed, client: Client, raw: bytes) -> Asked:
    """It joins with the rebalance timeout that consumers have by default."""
    protocol = wire.JoinGroupRequestProtocol(name="range", metadata=raw)
    timeouts = {"session_timeout_ms": 45_000, "rebalance_timeout_ms": 300_000}
    return talk.ask(client, talk.join_request(client, protocols=(protocol,), **timeouts), version=5)


def life_with(raw: bytes) -> list[MirrorRecord]:
    """What crosses the wire if each member offers this: two join, one goes away for 40 s while a third joins and all wait."""
    return stands_still(raw).records


def stands_still(raw: bytes) -> Timed:
    talk = Timed()
    a, b = talk.has_id("a"), talk.has_id("b")
    joined = [offers(talk, a, raw), offers(talk, b, raw)]
    rebalances(talk, joined, 1, 4_000)
    talk.at(10_000)
    c = talk.has_id("c")
    new = offers(talk, c, raw)
    talk.told_to_rejoin(b, 10_500)
    talk.at(10_600)
    again = offers(talk, b, raw)
    talk.wait(40_000)
    rebalances(talk, [offers(talk, a, raw), again, new], 2, 50_700)
    return talk

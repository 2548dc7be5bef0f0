"""Join phases and plans with a say in what each member offers, is assigned and is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from coordinator_model import wire
from tests.coordinator_model.conversation import ASSIGNED, SUBSCRIBED, Asked, Client, Conversation, assignment, subscription

Offers = Mapping[Client, bytes]


def offer(talk: Conversation, client: Client, metadata: bytes = SUBSCRIBED, *names: str, **fields: Any) -> Asked:
    """A JoinGroup that offers the same metadata under each of these protocol names."""
    protocols = tuple(wire.JoinGroupRequestProtocol(name=name, metadata=metadata) for name in names or ("range",))
    return talk.ask_join(client, protocols=protocols, **fields)


def answer(
    talk: Conversation, asked: Asked, *, generation: int, leader: str, members: Sequence[Client] = (), **fields: Any
) -> None:
    """A JoinGroup success, to be made of any fields."""
    offers: Offers = fields.pop("offers", {})
    client = asked.client
    client.member_id = fields.get("member_id", client.member_id)
    client.generation = generation
    listed = tuple(
        wire.JoinGroupResponseMember(
            member_id=one.member_id, group_instance_id=one.instance_id, metadata=offers.get(one, SUBSCRIBED)
        )
        for one in members
    )
    values: dict[str, Any] = {
        "error_code": 0,
        "generation_id": generation,
        "protocol_type": "consumer",
        "protocol_name": "range",
        "leader": leader,
        "member_id": client.member_id,
        "members": listed,
    }
    talk.answer(asked, wire.JoinGroupResponse(**{**values, **fields}))


def join(
    talk: Conversation, clients: Sequence[Client], generation: int, *, offers: Offers | None = None, protocol: str = "range"
) -> None:
    """One lawful join phase, led by the first; new members take both steps."""
    offers = offers or {}
    for client in clients:
        if not client.member_id and client.instance_id is None:
            talk.hand_out_id(client)
    waiting = [offer(talk, client, offers.get(client, SUBSCRIBED), protocol) for client in clients]
    for client in clients:
        client.member_id = client.member_id or f"{client.instance_id}-{client.connection}"
    for asked in waiting:
        members = clients if asked.client is clients[0] else ()
        answer(
            talk,
            asked,
            generation=generation,
            leader=clients[0].member_id,
            members=members,
            offers=offers,
            protocol_name=protocol,
        )


def entries(given: Mapping[Client | str, bytes]) -> tuple[wire.SyncGroupRequestAssignment, ...]:
    return tuple(
        wire.SyncGroupRequestAssignment(member_id=one if isinstance(one, str) else one.member_id, assignment=blob)
        for one, blob in given.items()
    )


def submit(talk: Conversation, leader: Client, given: Mapping[Client | str, bytes], **fields: Any) -> Asked:
    """The leader's SyncGroup."""
    return talk.ask(leader, talk.sync_request(leader, [], assignments=entries(given), **fields))


def fetch(talk: Conversation, client: Client, **fields: Any) -> Asked:
    """A follower's SyncGroup."""
    return talk.ask(client, talk.sync_request(client, [], **fields))


def deliver(talk: Conversation, asked: Asked, blob: bytes, *, protocol: str = "range", **fields: Any) -> None:
    values: dict[str, Any] = {"protocol_type": "consumer", "protocol_name": protocol, "assignment": blob}
    talk.answer(asked, wire.SyncGroupResponse(**{**values, **fields}))


def share_out(talk: Conversation, clients: Sequence[Client], given: Mapping[Client | str, bytes], protocol: str = "range") -> None:
    """The first submits what is given, and each is given what was submitted for it."""
    waiting = [submit(talk, clients[0], given, protocol_name=protocol)]
    waiting += [fetch(talk, client, protocol_name=protocol) for client in clients[1:]]
    for asked in waiting:
        deliver(talk, asked, given.get(asked.client, b""), protocol=protocol)


def owned(generation: int, *numbers: int, version: int = 2) -> bytes:
    """A subscription to t that claims these partitions."""
    held = (wire.ConsumerProtocolSubscriptionTopicPartition(topic="t", partitions=numbers),)
    claim = wire.ConsumerProtocolSubscription(topics=("t",), owned_partitions=held, generation_id=generation if version > 1 else -1)
    return wire.encode_subscription(claim, version=version)


def rebalance(
    talk: Conversation,
    generation: int,
    topics: Mapping[Client, Sequence[str]],
    assignor: str = "range",
    plan: Mapping[Client, bytes] = MappingProxyType({}),
) -> None:
    """A rebalance of members that subscribe so; the first one leads, and assigns so."""
    clients = list(topics)
    join(talk, clients, generation, offers={one: subscription(*topics[one]) for one in clients}, protocol=assignor)
    share_out(talk, clients, {one: plan.get(one, ASSIGNED) for one in clients}, assignor)


def parts(*numbers: int, topic: str = "t") -> bytes:
    """Partitions of one topic."""
    return assignment(**{topic: numbers})


def group(
    talk: Conversation,
    names: Sequence[str] = ("a", "b"),
    generation: int = 3,
    *,
    offers: Offers | None = None,
    protocol: str = "range",
    static: bool = False,
) -> list[Client]:
    """A join phase that has just ended; nobody has asked for an assignment yet."""
    clients = [talk.client(name) for name in names]
    if static:
        for client in clients:
            client.instance_id = f"i-{client.name}"
    join(talk, clients, generation, offers=offers, protocol=protocol)
    return clients

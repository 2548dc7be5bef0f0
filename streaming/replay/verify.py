"""The model held against the brokers: what each says of a group, and where they differ.

The brokers are asked with DescribeGroups or ConsumerGroupDescribe, depending on the group's type. The answers do not hold the generation,
and of a group that is rebalancing not its members' assignments, so neither is compared; and both sides are snapshots of something that
moves, so a difference means something only when it lasts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from confluent_kafka import ConsumerGroupState, ConsumerGroupType, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from coordinator_model.events import RECONCILING, State
from streaming.kafka.topics import SILENT_LOGGER

REQUEST_TIMEOUT_S: Final = 10.0

_STATES: Final = {
    ConsumerGroupState.PREPARING_REBALANCING: State.PREPARING,
    ConsumerGroupState.COMPLETING_REBALANCING: State.COMPLETING,
    ConsumerGroupState.STABLE: State.STABLE,
    ConsumerGroupState.DEAD: State.DEAD,
    ConsumerGroupState.EMPTY: State.EMPTY,
    ConsumerGroupState.UNKNOWN: State.UNKNOWN,
}
_UNNAMED: Final = RECONCILING
"""What a group of the consumer protocol is at if librdkafka has no name for it: Assigning or Reconciling."""

_TYPES: Final = {ConsumerGroupType.CLASSIC: "classic", ConsumerGroupType.CONSUMER: "consumer"}

DESCRIBED_TYPES: Final = frozenset(_TYPES.values())
"""librdkafka has no request for share and Streams groups (ShareGroupDescribe, StreamsGroupDescribe)."""

MOVING: Final = frozenset(
    {KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.NOT_COORDINATOR}
)
"""What brokers say while a coordinator moves: to be asked again."""


class DescribedMember(NamedTuple):
    """Who a member is, as both sides name it."""

    member_id: str
    instance_id: str | None
    client_id: str | None


class DescribedGroup(NamedTuple):
    """What the brokers say of a group."""

    state: str
    group_type: str
    protocol: str
    members: frozenset[DescribedMember]


class Answers(NamedTuple):
    """What the brokers say of the groups."""

    described: dict[str, DescribedGroup]
    hidden: frozenset[str]  #: those that this user may not describe


def describe_groups(client_config: Mapping[str, Any], known: Iterable[str] = ()) -> Answers:
    """Every group of the brokers that is of a type which the model knows.

    Kafka leaves out of its list what the user may not see. So each group that the monitor knows is asked for by its name.

    :param client_config: librdkafka properties, ``bootstrap.servers`` among them.
    :param known: groups to ask for although they are not listed.
    :raises confluent_kafka.KafkaException: when the brokers cannot be reached or refuse.
    """
    admin = AdminClient(dict(client_config), logger=SILENT_LOGGER)
    listed = admin.list_consumer_groups(request_timeout=REQUEST_TIMEOUT_S).result()
    if listed.errors:
        raise KafkaException(listed.errors[0])
    names = {group.group_id for group in listed.valid if group.type in _TYPES}
    others = set(known) - {group.group_id for group in listed.valid}
    asked = admin.describe_consumer_groups(sorted(names | others), request_timeout=REQUEST_TIMEOUT_S) if names | others else {}
    described, hidden = {}, set()
    for name, answer in asked.items():
        try:
            group = answer.result()
        except KafkaException as error:
            code = error.args[0].code()
            if code == KafkaError.GROUP_AUTHORIZATION_FAILED:
                hidden.add(name)
            elif code != KafkaError.GROUP_ID_NOT_FOUND or name in names:
                raise
        else:
            if name in names or group.state is not ConsumerGroupState.DEAD:
                described[name] = _described(group)
    return Answers(described, frozenset(hidden))


def _described(group: Any) -> DescribedGroup:
    type_ = _TYPES.get(group.type, "classic")
    state = _UNNAMED if type_ == "consumer" and group.state is ConsumerGroupState.UNKNOWN else _STATES[group.state].value
    members = (DescribedMember(member.member_id, member.group_instance_id, member.client_id) for member in group.members)
    return DescribedGroup(state, type_, group.partition_assignor, frozenset(members))


def unknown_because(known: Mapping[str, Any] | None) -> str | None:
    """Why the model cannot be held against anything yet; None when it can.

    :param known: the group's record in the groups topic, None when there is none.
    """
    if known is None:
        return "not seen yet"
    because: str | None = known["learning"]
    return because


def differences(known: Mapping[str, Any], described: DescribedGroup) -> list[str]:
    """What the model and the brokers say differently of a group, in words."""
    found = [
        f"{what}: the monitor says {ours or 'none'}, the brokers say {theirs or 'none'}"
        for what, ours, theirs in (
            ("state", known["state"], described.state),
            ("type", known["group_type"], described.group_type),
            *([("protocol", known["protocol"], described.protocol)] if _has_protocol(described) else ()),
        )
        if ours != theirs
    ]
    ours = {DescribedMember(member["member_id"], member["instance_id"], member["client_id"]) for member in known["members"]}
    found += [f"{_named(member)} is a member only to the monitor" for member in sorted(ours - described.members, key=str)]
    found += [f"{_named(member)} is a member only to the brokers" for member in sorted(described.members - ours, key=str)]
    return found


def _has_protocol(described: DescribedGroup) -> bool:
    """Return True if the members chose the protocol and sent it to each other: of a consumer group, the brokers choose the assignor."""
    return described.group_type == "classic" and described.state == State.STABLE


def _named(member: DescribedMember) -> str:
    instance = f", instance id {member.instance_id}" if member.instance_id else ""
    return f"member {member.member_id} (client {member.client_id}{instance})"

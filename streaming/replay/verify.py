"""The model held against the brokers: what each says of a group, and where they differ.

The brokers are asked with the request of the group's type: DescribeGroups, ConsumerGroupDescribe, ShareGroupDescribe or
StreamsGroupDescribe; librdkafka has no call for the last two. The answers do not hold the generation, and of a group that is rebalancing
not its members' assignments, so neither is compared; and both sides are snapshots of something that moves, so a difference means something
only when it lasts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from confluent_kafka import ConsumerGroupState, ConsumerGroupType, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from coordinator_model import wire
from coordinator_model.events import RECONCILING, State
from coordinator_model.groups.epochs.kinds import SHARE, STREAMS
from streaming.kafka.connection import SILENT_LOGGER
from streaming.kafka.direct import DirectConnection, DirectError

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

_DESCRIBED_DIRECTLY: Final[dict[str, tuple[type[Any], type[Any], int]]] = {
    SHARE: (wire.ShareGroupDescribeRequest, wire.ShareGroupDescribeResponse, 1),
    STREAMS: (wire.StreamsGroupDescribeRequest, wire.StreamsGroupDescribeResponse, 0),
}
_WHILE_ASSIGNING: Final = "Assigning"
_NOT_READY: Final = "NotReady"
"""State of a Streams group whose internal topics are missing, which no frame shows completely: not compared."""

_FIND_COORDINATOR_VERSION: Final = 3  # one key, flexible: Kafka 2.4

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
    refused: dict[str, str]  #: why the others are not described


NOT_ALLOWED: Final = {
    KafkaError.GROUP_AUTHORIZATION_FAILED: "not allowed to see it (the right to Describe the group)",
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "not allowed to see its topics (the right to Describe each topic that its members read)",
}


def describe_groups(client_config: Mapping[str, Any], known: Mapping[str, str]) -> Answers:
    """Every classic and consumer group of the brokers, and those of the other types that are known.

    Kafka leaves out of its list what the user may not see, and librdkafka what it has no name for. So each group that the monitor knows is
    asked for by its name.

    :param client_config: librdkafka properties, ``bootstrap.servers`` among them.
    :param known: groups to ask for although they are not listed, and their types.
    :raises confluent_kafka.KafkaException: when the brokers cannot be reached or refuse, or a coordinator is moving.
    """
    admin = AdminClient(dict(client_config), logger=SILENT_LOGGER)
    listed = admin.list_consumer_groups(request_timeout=REQUEST_TIMEOUT_S).result()
    if listed.errors:
        raise KafkaException(listed.errors[0])
    types = {**known, **{group.group_id: _TYPES[group.type] for group in listed.valid if group.type in _TYPES}}
    names = sorted(name for name, type_ in types.items() if type_ not in _DESCRIBED_DIRECTLY)
    answers = Answers({}, {})
    for name, answer in admin.describe_consumer_groups(names, request_timeout=REQUEST_TIMEOUT_S).items() if names else ():
        try:
            group = answer.result()
        except KafkaException as error:
            _note_refusal(answers, name, error.args[0])
        else:
            if group.state is not ConsumerGroupState.DEAD:
                answers.described[name] = _described(group)
    for name, type_ in sorted(types.items()):
        if type_ in _DESCRIBED_DIRECTLY:
            _describe_directly(client_config, name, type_, answers)
    return answers


def _note_refusal(answers: Answers, name: str, error: KafkaError) -> None:
    if error.code() in MOVING:
        raise KafkaException(error)
    if error.code() != KafkaError.GROUP_ID_NOT_FOUND:
        answers.refused[name] = NOT_ALLOWED.get(error.code(), error.str())


def _describe_directly(properties: Mapping[str, Any], name: str, kind: str, answers: Answers) -> None:
    request, response, version = _DESCRIBED_DIRECTLY[kind]
    try:
        with _coordinator(properties, name) as connection:
            [group] = connection.ask(request(group_ids=(name,)), version, response).groups
    except DirectError as error:
        answers.refused[name] = str(error)
        return
    if group.error_code:
        _note_refusal(answers, name, KafkaError(group.error_code))
    elif group.group_state != State.DEAD:
        state = RECONCILING if group.group_state == _WHILE_ASSIGNING else group.group_state
        members = (
            DescribedMember(each.member_id, each.instance_id if kind == STREAMS else None, each.client_id) for each in group.members
        )
        answers.described[name] = DescribedGroup(state, kind, "", frozenset(members))


def _coordinator(properties: Mapping[str, Any], name: str) -> DirectConnection:
    """Connect to the coordinator of a group.

    :raises confluent_kafka.KafkaException: when it is moving.
    :raises DirectError: when no broker answers, or they refuse.
    """
    failed = DirectError("no broker is named (bootstrap.servers)")
    for server in str(properties.get("bootstrap.servers", "")).split(","):
        try:
            with DirectConnection(properties, server.strip(), REQUEST_TIMEOUT_S) as connection:
                request = wire.FindCoordinatorRequest(key=name)
                found = connection.ask(request, _FIND_COORDINATOR_VERSION, wire.FindCoordinatorResponse)
        except DirectError as error:
            failed = error
            continue
        if found.error_code:
            refusal = KafkaError(found.error_code)
            if refusal.code() in MOVING:
                raise KafkaException(refusal)
            raise DirectError(NOT_ALLOWED.get(refusal.code(), refusal.str()))
        return DirectConnection(properties, f"{found.host}:{found.port}", REQUEST_TIMEOUT_S)
    raise failed


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
            *([("state", known["state"], described.state)] if described.state != _NOT_READY else ()),
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

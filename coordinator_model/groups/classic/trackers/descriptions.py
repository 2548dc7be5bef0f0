"""Tracker of descriptions: what a broker answers about the group to an admin client, compared with what the model knows.

DescribeGroups shows the coordinator's own state and members, but no generation. A description is judged when the next one comes: by then
frames show whether the generation that was complete before it went on after it. If it did, the group was Stable in between with the members
of that generation, since a coordinator adds and removes members only in a join phase. In the same way the members of a group that was first
seen in mid-life become known; the handler adopts them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from coordinator_model.events import State
from coordinator_model.finding import Evidence
from coordinator_model.groups.evidence import response_evidence
from coordinator_model.groups.group_coordinator import is_coordinator
from coordinator_model.groups.records import ExchangeKey
from coordinator_model.groups.tracker import NOTHING, Event
from coordinator_model.stored import Stored
from coordinator_model.wire.constants import DESCRIBE_GROUPS

if TYPE_CHECKING:
    from coordinator_model.groups.classic.data import GroupData
    from coordinator_model.groups.records import Exchange, Generation

API_KEYS: Final = frozenset({DESCRIBE_GROUPS})
INSTANCES_SINCE: Final = 4  #: version of DescribeGroups that names instance ids (KIP-345)
MEMBERS_KEPT: Final = 256  #: a description of more is not judged


class DescribedMember(NamedTuple):
    """A member, as the broker describes it."""

    id: str
    instance_id: str | None
    client_id: str
    host: str


class Description(NamedTuple):
    """One description of the group."""

    asked_us: int
    res_us: int
    broker: str
    state: str  #: as in the answer
    protocol: str
    members: tuple[DescribedMember, ...]
    generation: int | None  #: the newest that was seen when it was asked for
    names_instances: bool  #: v4+
    frame: Evidence

    @property
    def ids(self) -> frozenset[str]:
        return frozenset(member.id for member in self.members)


class DescribedOtherwise(NamedTuple):
    """A description contradicts what frames before and after it prove."""

    description: Description
    generation: int
    differences: tuple[str, ...]


class Descriptions(Stored):
    """The newest description of one group."""

    newest: Description | None = None
    asked: tuple[ExchangeKey, int | None] | None = None  #: the newest request, and the newest generation seen then

    def on_request(self, group: GroupData, exchange: Exchange, body: Any) -> tuple[Event, ...]:  # noqa: ARG002
        self.asked = exchange.key, group.generation_seen
        return NOTHING

    def on_response(self, group: GroupData, exchange: Exchange, body: Any) -> tuple[Event, ...]:
        described = next((one for one in body.groups if one.group_id == group.name), None)
        if described is None or described.error_code or not exchange.gap_free or len(described.members) > MEMBERS_KEPT:
            return NOTHING
        before = self.newest
        self.newest = Description(
            exchange.inv_us,
            exchange.res_us,
            exchange.broker,
            described.group_state,
            described.protocol_data,
            tuple(
                DescribedMember(member.member_id, member.group_instance_id, member.client_id, member.client_host)
                for member in sorted(described.members, key=lambda member: member.member_id)
            ),
            self.asked[1] if self.asked is not None and self.asked[0] == exchange.key else None,
            exchange.api_version >= INSTANCES_SINCE,
            response_evidence(exchange, 0),
        )
        return NOTHING if before is None else _contradicted(group, before)

    def on_gap(self, group: GroupData) -> None:  # noqa: ARG002
        self.newest = self.asked = None


def _contradicted(group: GroupData, described: Description) -> tuple[Event, ...]:
    newest = group.newest_generation
    if newest is None or newest.roster is None or not is_coordinator(group, described.broker):
        return NOTHING
    if not _lasted(group, newest, described):
        return NOTHING
    found = [] if described.state == State.STABLE else [f"the broker describes it as {described.state}, and it was Stable"]
    found += [f"{id_} is a member only to the broker" for id_ in sorted(described.ids) if id_ not in newest.roster]
    found += [f"{id_} is no member to the broker" for id_ in newest.roster if id_ not in described.ids]
    return (DescribedOtherwise(described, newest.generation, tuple(found)),) if found else NOTHING


def _lasted(group: GroupData, newest: Generation, described: Description) -> bool:
    """Return True if the generation was complete before the description and went on after it, without a replacement."""
    skew_us = group.clock_skew_us
    if newest.sync_done_us is None or newest.sync_done_us >= described.asked_us - skew_us or newest.unsettled_us:
        return False
    if any(
        instance.replacements and instance.replacements[-1][0] > newest.proven_us - skew_us for instance in group.instances.values()
    ):
        return False
    return any(
        member.joined == newest.generation
        and member.proven_us is not None
        and described.res_us + skew_us < member.heartbeat_us <= member.proven_us
        for member in group.present_members()
    )

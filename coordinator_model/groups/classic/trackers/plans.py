"""The assignment that a leader submitted, and what contradicts it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2s
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from coordinator_model.finding import Evidence
from coordinator_model.groups.classic import assignment_checks
from coordinator_model.groups.classic.assignment_checks import (
    Partitions,
    Subscription,
)
from coordinator_model.groups.evidence import host_of
from coordinator_model.groups.records import ClientInfo, JoinFacts, SyncFacts
from coordinator_model.wire.constants import (
    DELETE_GROUPS,
    FIND_COORDINATOR,
    LEAVE_GROUP,
    OFFSET_COMMIT,
    TXN_OFFSET_COMMIT,
)

if TYPE_CHECKING:
    from coordinator_model.groups.classic.data import GroupData
    from coordinator_model.groups.records import Exchange

HASH_BYTES: Final = 3


class Suspect(NamedTuple):
    """An answer that does not fit what was seen, and may yet be explained by a frame on its way."""

    kind: str  #: see ``ORDER`` and the others below
    member_id: str
    instance_id: str | None
    generation: int
    digest: bytes  #: of what was delivered
    at_us: int
    actor: ClientInfo
    frame: Evidence


ORDER: Final = "order"  #: an assignment before anybody can have submitted one


AHEAD: Final = "ahead"  #: a heartbeat accepted at a generation that nobody was handed


SWAPPED: Final = "swapped"  #: an assignment that the leader did not submit for this member


EMPTIED: Final = "emptied"  #: no assignment, where the leader submitted one


BLANK: Final = "blank"  #: no assignment, because none was submitted for anybody


class Strange(NamedTuple):
    """A SyncGroup success that named another protocol than the one the group runs."""

    member_id: str
    generation: int
    at_us: int
    named: str
    frame: Evidence


@dataclass(slots=True)
class Plan:
    """What is known of the newest generation's protocol and plan."""

    generation: int
    leader: str
    follows: bool = False  #: the group was seen before this generation was complete
    born: bool = False  #: it was seen from its completion on, the leader's answer included
    disputed: bool = False  #: answers contradict each other: it may have been issued twice
    skipped: str = ""  #: the leader that was told to skip the assignment (KIP-814)
    foreign: tuple[str, ...] = ()  #: members whose JoinGroup answer named a protocol type or name that is not their own
    offers: dict[str, Subscription | None] | None = None  #: from the leader's answer until it submits
    submitted: bool = False
    blank: bool = False  #: nothing was submitted for anybody, although they want a topic that has partitions
    entries: dict[bytes, bytes] = field(default_factory=dict)  #: key of member or instance → digests submitted for it, end to end


def window_us(group: GroupData) -> int:
    """How long a frame may be behind one of another connection."""
    return (group.settings.reorder_window_ms + group.settings.clock_skew_ms) * 1_000


def is_awaited(group: GroupData, plan: Plan) -> bool:
    return any(one.generation == plan.generation for one in group.waiting_syncs())


def same_instance(group: GroupData, one: str, other: str) -> bool:
    """Whether two member ids are the same static member, before and after a restart."""
    a, b = group.members.get(one), group.members.get(other)
    return a is not None and b is not None and a.instance_id is not None and a.instance_id == b.instance_id


def is_leader(group: GroupData, plan: Plan | None, member_id: str) -> bool | None:
    """Whether this member leads the plan's generation; None where that is not known."""
    if plan is None or plan.disputed:
        return None
    if member_id == plan.leader or same_instance(group, member_id, plan.leader):
        return True
    member, leader = group.members.get(member_id), group.members.get(plan.leader)
    if member is None or member.joined != plan.generation:
        return None
    if member.instance_id is None or (leader is not None and leader.proven_us is not None):
        return False
    return None


def joined_protocol(group: GroupData, plan: Plan | None, exchange: Exchange) -> tuple[str, str] | None:
    """Protocol type and name that the member was told when it joined the generation of this SyncGroup; None if that was not seen."""
    newest, member = group.newest_generation, group.members.get(exchange.member_id)
    if plan is None or newest is None or member is None or plan.disputed:
        return None
    if not newest.generation == plan.generation == exchange.generation == member.joined:
        return None
    return (group.protocol_type, newest.protocol) if newest.protocol and group.protocol_type else None


def is_foreign(exchange: Exchange, body: Any) -> bool:
    """Whether a JoinGroup success names a protocol type or name that is not the joiner's own."""
    ask = exchange.facts
    assert isinstance(ask, JoinFacts)
    if not exchange.member_id and exchange.instance_id is not None and exchange.api_version <= 6:
        return False  # brokers 2.3 and 2.4 answer a static member that comes back with what the group runs
    return (body.protocol_type is not None and body.protocol_type != ask.protocol_type) or body.protocol_name not in ask.protocols


def strange_protocol(group: GroupData, plan: Plan | None, exchange: Exchange, body: Any) -> str:
    """``type/name`` as a SyncGroup success names them, if they are not what the member joined with; else empty (KIP-559)."""
    told = joined_protocol(group, plan, exchange)
    if told is None or exchange.api_version < 5 or body.protocol_type is None or body.protocol_name is None:
        return ""
    named = (body.protocol_type, body.protocol_name)
    return "" if named == told else "/".join(named)


def asks_for_another(group: GroupData, plan: Plan | None, exchange: Exchange) -> str:
    """``type/name`` as a SyncGroup request names them, if they are not what the member joined with; else empty (KIP-559)."""
    ask = exchange.facts
    assert isinstance(ask, SyncFacts)
    if exchange.api_version < 5:
        return ""
    if ask.protocol_type is None or ask.protocol_name is None:
        return f"{ask.protocol_type or 'no type'}/{ask.protocol_name or 'no name'}"
    told = joined_protocol(group, plan, exchange)
    named = (ask.protocol_type, ask.protocol_name)
    return "" if told is None or named == told else "/".join(named)


def may_share(group: GroupData, protocol: str, submitted: dict[str, Partitions | None]) -> bool:
    """Whether this assignor gives partitions to several members on purpose."""
    if protocol in group.settings.broadcast_assignors or "broadcast" in protocol.lower():
        return True
    return protocol not in assignment_checks.EXCLUSIVE_ASSIGNORS and assignment_checks.is_broadcast(submitted)


def without_claims(offer: Subscription | None, *, cooperative: bool) -> Subscription | None:
    return offer if offer is None or cooperative else Subscription(offer.topics)


def is_explained(plan: Plan, suspect: Suspect) -> bool:
    """Whether the plan that has now been submitted is what the suspect was given."""
    if suspect.generation != plan.generation:
        return False
    owners = (suspect.member_id, suspect.instance_id or suspect.member_id)
    return suspect.kind == ORDER or any(
        holds_digest(plan.entries.get(hash_of(owner.encode()), b""), suspect.digest) for owner in owners
    )


def subject_of(exchange: Exchange) -> str:
    """Who asks, by a name that outlives its connection and its member id."""
    return exchange.instance_id or f"{exchange.actor.client_id or 'no client id'}@{host_of(exchange.actor.address)}"


def hash_of(content: bytes) -> bytes:
    """Short, since a group stores one for each member; a collision hides a breach and makes none."""
    return blake2s(content, digest_size=HASH_BYTES).digest()


def holds_digest(digests: bytes, digest: bytes) -> bool:
    return any(digests[at : at + HASH_BYTES] == digest for at in range(0, len(digests), HASH_BYTES))


def errors_of(api_key: int, body: Any, group: str) -> set[int]:
    if api_key in {OFFSET_COMMIT, TXN_OFFSET_COMMIT}:  # the only ones that steady traffic brings here: nothing is built for them
        errors: set[int] = set()
        for topic in body.topics:
            for partition in topic.partitions:
                if partition.error_code:
                    errors.add(partition.error_code)
        return errors
    return {code for code in codes_of(api_key, body, group) if code}


def codes_of(api_key: int, body: Any, group: str) -> Iterator[int]:
    if api_key == DELETE_GROUPS:
        for result in body.results:
            if result.group_id == group:
                yield result.error_code
    else:
        yield body.error_code
        if api_key == LEAVE_GROUP:
            for member in body.members:
                yield member.error_code
        elif api_key == FIND_COORDINATOR:
            for coordinator in body.coordinators:
                if coordinator.key == group:
                    yield coordinator.error_code

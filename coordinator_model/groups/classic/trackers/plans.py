"""Records and helpers of the assignments tracker: the plan (the assignment that a leader submits), and what contradicts it."""

from __future__ import annotations

from hashlib import blake2s
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from coordinator_model.finding import Evidence
from coordinator_model.groups.classic import assignment_checks
from coordinator_model.groups.classic.assignment_checks import Partitions, Subscription
from coordinator_model.groups.records import ClientInfo, JoinFacts, SyncFacts, host_of
from coordinator_model.stored import Stored

if TYPE_CHECKING:
    from coordinator_model.groups.classic.data import GroupData
    from coordinator_model.groups.records import Exchange

HASH_BYTES: Final = 3


class Suspect(NamedTuple):
    """A response that contradicts earlier frames, and that a late frame may still explain."""

    kind: str  #: see ``ORDER`` and the others below
    member_id: str
    instance_id: str | None
    generation: int
    digest: bytes  #: of the delivered assignment
    at_us: int
    actor: ClientInfo
    frame: Evidence


ORDER: Final = "order"  #: an assignment before the leader submitted one


AHEAD: Final = "ahead"  #: a Heartbeat accepted at a generation without any JoinGroup success


SWAPPED: Final = "swapped"  #: an assignment that the leader did not submit for this member


EMPTIED: Final = "emptied"  #: no assignment, where the leader submitted one


BLANK: Final = "blank"  #: no assignment, because none was submitted for any member


class Strange(NamedTuple):
    """A SyncGroup success that names another protocol than the group's."""

    member_id: str
    generation: int
    at_us: int
    named: str
    frame: Evidence


class Plan(Stored):
    """The plan of a generation."""

    generation: int
    leader: str
    follows: bool = False  #: the group was captured before this generation was complete
    born: bool = False  #: it was captured from its completion on, including the leader's response
    disputed: bool = False  #: responses contradict each other: it may have been issued twice
    skipped: str = ""  #: the leader, if its response has skip_assignment (KIP-814)
    foreign: tuple[str, ...] = ()  #: members whose JoinGroup response names a protocol type or name that is not their own
    offers: dict[str, Subscription | None] | None = None  #: from the leader's response until it submits the plan
    submitted: bool = False
    blank: bool = False  #: nothing was submitted, although members subscribe to a topic that has partitions
    entries: dict[bytes, bytes] = {}
    #: hash of member or instance id → concatenated digests of what was submitted for it


def is_awaited(group: GroupData, plan: Plan) -> bool:
    return any(one.generation == plan.generation for one in group.waiting_syncs())


def same_instance(group: GroupData, one: str, other: str) -> bool:
    """Return True if two member ids are the same static member, before and after a restart."""
    a, b = group.members.get(one), group.members.get(other)
    return a is not None and b is not None and a.instance_id is not None and a.instance_id == b.instance_id


def is_leader(group: GroupData, plan: Plan | None, member_id: str) -> bool | None:
    """Return True if this member leads the plan's generation, None if that is not known."""
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
    """Return protocol type and name of the generation that the member of this SyncGroup joined, None if that was not captured."""
    newest, member = group.newest_generation, group.members.get(exchange.member_id)
    if plan is None or newest is None or member is None or plan.disputed:
        return None
    if not newest.generation == plan.generation == exchange.generation == member.joined:
        return None
    return (group.protocol_type, newest.protocol) if newest.protocol and group.protocol_type else None


def is_foreign(exchange: Exchange, body: Any) -> bool:
    """Return True if a JoinGroup success names a protocol type or name that its request does not."""
    ask = exchange.facts
    assert isinstance(ask, JoinFacts)
    if not exchange.member_id and exchange.instance_id is not None and exchange.api_version <= 6:
        return False  # brokers 2.3 and 2.4 give a static member that returns the group's current protocol
    return (body.protocol_type is not None and body.protocol_type != ask.protocol_type) or body.protocol_name not in ask.protocols


def strange_protocol(group: GroupData, plan: Plan | None, exchange: Exchange, body: Any) -> str:
    """Return ``type/name`` of a SyncGroup success if they differ from those of the JoinGroup success, else "" (KIP-559)."""
    joined = joined_protocol(group, plan, exchange)
    if joined is None or exchange.api_version < 5 or body.protocol_type is None or body.protocol_name is None:
        return ""
    named = (body.protocol_type, body.protocol_name)
    return "" if named == joined else "/".join(named)


def asks_for_another(group: GroupData, plan: Plan | None, exchange: Exchange) -> str:
    """Return ``type/name`` of a SyncGroup request if they differ from those of the JoinGroup success, else "" (KIP-559)."""
    ask = exchange.facts
    assert isinstance(ask, SyncFacts)
    if exchange.api_version < 5:
        return ""
    if ask.protocol_type is None or ask.protocol_name is None:
        return f"{ask.protocol_type or 'no type'}/{ask.protocol_name or 'no name'}"
    joined = joined_protocol(group, plan, exchange)
    named = (ask.protocol_type, ask.protocol_name)
    return "" if joined is None or named == joined else "/".join(named)


def may_share(group: GroupData, protocol: str, submitted: dict[str, Partitions | None]) -> bool:
    """Return True if this assignor gives partitions to several members on purpose."""
    if protocol in group.settings.broadcast_assignors or "broadcast" in protocol.lower():
        return True
    return protocol not in assignment_checks.EXCLUSIVE_ASSIGNORS and assignment_checks.is_broadcast(submitted)


def without_claims(offer: Subscription | None, *, cooperative: bool) -> Subscription | None:
    return offer if offer is None or cooperative else Subscription(offer.topics)


def is_explained(plan: Plan, suspect: Suspect) -> bool:
    """Return True if the submitted plan explains the suspect."""
    if suspect.generation != plan.generation:
        return False
    owners = (suspect.member_id, suspect.instance_id or suspect.member_id)
    return suspect.kind == ORDER or any(
        holds_digest(plan.entries.get(hash_of(owner.encode()), b""), suspect.digest) for owner in owners
    )


def subject_of(exchange: Exchange) -> str:
    """Return a name of the client that outlives its connection and member id."""
    return exchange.instance_id or f"{exchange.actor.client_id or 'no client id'}@{host_of(exchange.actor.address)}"


def hash_of(content: bytes) -> bytes:
    """Return a hash, short because a group stores one per member. A collision hides a breach, and causes none."""
    return blake2s(content, digest_size=HASH_BYTES).digest()


def holds_digest(digests: bytes, digest: bytes) -> bool:
    return any(digests[at : at + HASH_BYTES] == digest for at in range(0, len(digests), HASH_BYTES))

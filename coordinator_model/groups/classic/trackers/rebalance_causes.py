"""Who or what began a rebalance."""

from __future__ import annotations

from hashlib import blake2s
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from coordinator_model.finding import Evidence
from coordinator_model.groups.evidence import host_of, request_evidence
from coordinator_model.groups.records import (
    NOBODY,
    ClientInfo,
    Exchange,
    Generation,
    JoinFacts,
    Member,
)
from coordinator_model.wire import DecodeError, decode_subscription
from coordinator_model.wire.constants import (
    TWO_STEP_JOIN_SINCE,
)

if TYPE_CHECKING:
    from coordinator_model.groups.classic.data import GroupData

REASON_KEPT: Final = 80  #: characters of a KIP-800 reason


CONNECT: Final = "connect"  #: the protocol type of Kafka Connect's workers


NEW_MEMBER: Final = "new member"


LEADER_REJOINED: Final = "leader rejoined"


SUBSCRIPTION_CHANGED: Final = "subscription changed"


SAME_TOPICS: Final = "rejoined with the same topics"  #: the second half of a cooperative rebalance looks like this


WORKER_REJOINED: Final = "worker rejoined"  #: a member of a Connect group: what it gave up, or what somebody configured


MEMBER_LEFT: Final = "member left"


REMOVED: Final = "member removed by somebody else"


SESSION_EXPIRED: Final = "session expired"


STATIC_RETURNED: Final = "static member returned"


NOT_SEEN: Final = "not seen"


class Starter(NamedTuple):
    """Who made the coordinator start a join phase, as far as frames tell."""

    cause: str
    member_id: str
    instance_id: str | None
    actor: ClientInfo
    shared: bool  #: another member goes by the same client id, so it identifies nobody
    reason: str  #: as the client gave it (KIP-800); often empty
    frame: Evidence | None

    def is_same(self, other: Starter) -> bool:
        """Whether both are the same client, across restarts too where its instance id or its client id tells."""
        if self.instance_id is not None or other.instance_id is not None:
            return self.instance_id == other.instance_id
        if self.member_id and self.member_id == other.member_id:
            return True
        if self.shared or other.shared or self.actor.client_id is None or self.actor.client_id != other.actor.client_id:
            return False
        return host_of(self.actor.address) == host_of(other.actor.address)

    @property
    def subject(self) -> str:
        """What names it best in the identity of a finding."""
        return self.instance_id or (self.actor.client_id if not self.shared else None) or self.member_id


NOBODY_SEEN: Final = Starter(NOT_SEEN, "", None, NOBODY, True, "", None)


class Rebalance(NamedTuple):
    """A generation that others had to take part in."""

    generation: int
    at_us: int
    starter: Starter


def digest_of_topics(body: Any) -> bytes:
    """Of all topics that a JoinGroup subscribes to; empty where its metadata is not a consumer's."""
    if body.protocol_type != "consumer":
        return b""
    topics: set[str] = set()
    try:
        for protocol in body.protocols:
            topics.update(decode_subscription(protocol.metadata).topics)
    except DecodeError:
        return b""
    return blake2s("\0".join(sorted(topics)).encode(), digest_size=4).digest()


def find_starter(group: GroupData, exchange: Exchange, member: Member | None, topics: bytes) -> Starter:
    ask = exchange.facts
    assert isinstance(ask, JoinFacts)
    if member is None or exchange.member_id in group.issued:
        cause = NEW_MEMBER
    elif ask.protocol_type == CONNECT:
        cause = WORKER_REJOINED
    elif member.digest == ask.digest:
        cause = LEADER_REJOINED
    elif topics and topics == member.topics:
        cause = SAME_TOPICS
    else:
        cause = SUBSCRIPTION_CHANGED
    shared = is_shared(group, exchange.actor, exchange.member_id)
    reason = ask.reason[:REASON_KEPT]
    return Starter(cause, exchange.member_id, exchange.instance_id, exchange.actor, shared, reason, request_evidence(exchange))


def is_shared(group: GroupData, actor: ClientInfo, member_id: str) -> bool:
    """Whether another member that lives goes by the same client id. A dead one may be the same client, before it was restarted."""
    if actor.client_id is None:
        return True
    for other in group.present_members():
        if other.id == member_id:
            continue
        if other.actor.client_id == actor.client_id and other.actor.connection in group.connections:
            return True
        if other.actor == NOBODY and other.id.startswith(f"{actor.client_id}-"):
            return True
    return False


def expired_member(group: GroupData, newest: Generation, at_us: int) -> Starter | None:
    """The only member whose session can have run out by then, if there is exactly one."""
    silent = [
        member
        for member in (group.members.get(id_) for id_ in newest.roster or ())
        if member is not None
        and member.session_timeout_ms is not None
        and not group.parked(member)
        and member.last_frame_us + member.session_timeout_ms * 1_000 <= at_us
    ]
    if len(silent) != 1:
        return None
    member = silent[0]
    shared = is_shared(group, member.actor, member.id)
    return Starter(SESSION_EXPIRED, member.id, member.instance_id, member.actor, shared, "", member.joined_frame)


def cause_seen_late(group: GroupData, exchange: Exchange) -> str:
    """Why a join phase came about whose beginning was not seen, as far as those who joined in it tell: for show, no rule rests on it."""
    for asked in (exchange, *group.waiting_joins()):
        if asked.member_id:
            continue
        if asked.instance_id is not None:
            return STATIC_RETURNED
        if asked is exchange or asked.api_version < TWO_STEP_JOIN_SINCE:
            return NEW_MEMBER
    return NOT_SEEN


def had_members(group: GroupData) -> bool:
    """Whether the join phase took anybody from work: a group that was empty before it, or is new, takes nobody."""
    before = group.generations[-2] if len(group.generations) > 1 else None
    if before is None:
        return False  # not known
    if before.roster is None:
        return True
    members = (group.members.get(id_) for id_ in before.roster)
    return any(member is not None and member.removed not in {"left", "silent"} for member in members)


def is_still_connected(group: GroupData, member: Member) -> bool:
    """Whether the connection stands on which its last JoinGroup success was delivered, so that it has it."""
    return member.joined_frame is not None and member.joined_frame.connection in group.connections

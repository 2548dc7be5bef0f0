"""What the leader of a generation assigned, what the members offered and were given, and in which protocol they all speak.

The traps. *An assignment is the leader's word about one generation of one incarnation.* A static member that took over an instance after
the generation inherits the old one's entry, under an id that the leader never heard of. *A generation is not one plan*: a leader that lost
an answer submits again, and the coordinator may keep either. *Whoever starts listening in the middle has missed the plan*: the coordinator
hands out what it stored before. So a delivery is held against the plan only when the generation was seen from its beginning (``Plan.born``)
and nothing contradicts itself since (``Plan.disputed``); and what does not fit waits for the reorder window, because the frame that
explains it may be on a slower connection.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2s
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from coordinator_model.finding import Evidence
from coordinator_model.groups.classic import assignment_checks
from coordinator_model.groups.classic.assignment_checks import (
    CONSUMER,
    COOPERATIVE_STICKY,
    AssignmentErrors,
    Partitions,
    Subscription,
)
from coordinator_model.groups.evidence import host_of, request_evidence, response_evidence
from coordinator_model.groups.records import ClientInfo, JoinFacts, SyncFacts
from coordinator_model.groups.requests import MODELLED_API_KEYS
from coordinator_model.groups.tracker import NOTHING, Event
from coordinator_model.wire.constants import (
    DELETE_GROUPS,
    FIND_COORDINATOR,
    INCONSISTENT_GROUP_PROTOCOL,
    JOIN_GROUP,
    LEAVE_GROUP,
    OFFSET_COMMIT,
    SYNC_GROUP,
    TXN_OFFSET_COMMIT,
)

if TYPE_CHECKING:
    from coordinator_model.groups.classic.data import GroupData
    from coordinator_model.groups.records import Exchange


API_KEYS: Final = MODELLED_API_KEYS

SUSPECTS_KEPT: Final = 16
TOPICS_KEPT: Final = 32
NEWCOMERS_KEPT: Final = 64
REFUSED_KEPT: Final = 32
DIGESTS_KEPT: Final = 3
HASH_BYTES: Final = 3
STRANGE_KEPT: Final = 8
METADATA_AGE_US: Final = 600_000_000  #: twice metadata.max.age.ms: no leader's view of a topic is older, unless that is configured
OFFERED_TOPICS_KEPT: Final = 20_000  #: of all members together, while a generation waits for its plan


# ---------------------------------------------------------------------------------------------------- happenings


class JoinAnswered(NamedTuple):
    """A JoinGroup succeeded in a classic group. ``body`` is the answer."""

    exchange: Exchange
    body: Any


class RivalClaims(NamedTuple):
    """The members' subscriptions, as the leader was given them, claim a partition twice."""

    exchange: Exchange
    claims: tuple[tuple[str, int, int, tuple[str, ...]], ...]  #: topic, partition, generation, members


class NoCommonProtocol(NamedTuple):
    """A JoinGroup was refused with INCONSISTENT_GROUP_PROTOCOL."""

    exchange: Exchange
    subject: str
    times: int  #: in a row


class SyncAsked(NamedTuple):
    """A SyncGroup request of a classic group."""

    exchange: Exchange


class SyncAnswered(NamedTuple):
    """A SyncGroup succeeded in a classic group. ``body`` is the answer."""

    exchange: Exchange
    body: Any


class Unparsable(NamedTuple):
    """A subscription or an assignment that does not even parse as version 0 of its kind."""

    exchange: Exchange
    what: str
    raw: bytes


class Failed(NamedTuple):
    """An answer with error codes; in those that carry several, all that are not success."""

    exchange: Exchange
    errors: set[int]


# ---------------------------------------------------------------------------------------------------- facts


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


@dataclass(slots=True)
class Assignments:
    """Assignment and protocol facts of one group."""

    plan: Plan | None = None
    older: Plan | None = None  #: the one before, while a SyncGroup at its generation is under way
    since_us: int = 0  #: first JoinGroup or SyncGroup frame since frames were last missing
    rooted: bool = False  #: the group was seen living since then: what completes from now on completes in sight
    incarnation: int = 1
    newcomers: dict[str, bool] = field(default_factory=dict)  #: ids handed out by MEMBER_ID_REQUIRED, in a JoinGroup under way
    suspects: tuple[Suspect, ...] = ()
    flaws: AssignmentErrors | None = None  #: of the newest plan submitted
    topics: dict[str, int] = field(default_factory=dict)  #: topic → partitions it is known to have
    unowned: tuple[tuple[str, int, int], ...] = ()  #: topic, partition, since when
    strange: tuple[Strange, ...] = ()
    refused: dict[str, int] = field(default_factory=dict)  #: who → times in a row that no common protocol was found
    mixed_since_us: int = 0  #: since when the group has had members of both protocols (KIP-848 migration); 0 while it has not
    shrunk: dict[str, int] = field(default_factory=dict)
    #: topic → partitions that the newest plan knows of, where those that it leaves out are the last ones: they may exist no more

    def asked(self, group: GroupData, exchange: Exchange, body: Any) -> tuple[Event, ...]:
        if exchange.api_key == JOIN_GROUP:
            return self._join_asked(group, exchange, body)
        if exchange.api_key == SYNC_GROUP:
            return self._sync_asked(group, exchange, body)
        return NOTHING

    def replied(self, group: GroupData, exchange: Exchange, body: Any) -> tuple[Event, ...]:
        happenings = NOTHING
        api_key = exchange.api_key
        if api_key == JOIN_GROUP:
            newcomer = self.newcomers.pop(exchange.member_id, not exchange.member_id)
            if body.error_code == 0:
                happenings = self._joined(group, exchange, body, newcomer=newcomer)
            elif body.error_code == INCONSISTENT_GROUP_PROTOCOL:
                happenings = self._no_common_protocol(exchange)
        elif api_key == SYNC_GROUP and body.error_code == 0:
            happenings = self._synced(group, exchange, body)
        if self.older is not None or self.suspects:
            self._tidy(group, exchange)
        errors = _errors(api_key, body, group.name)
        return (*happenings, Failed(exchange, errors)) if errors else happenings

    def on_gap(self, group: GroupData) -> None:
        """Forget the current generation's plan. How many partitions a topic has is no secret of the coordinator, and stays.

        When the coordinator merely moved, no frame is missing: who is suspected stays so, and what the next one completes is in sight.
        """
        moved = group.incarnation != self.incarnation
        self.incarnation = group.incarnation
        self._believe_shrunk(group.last_record_us)
        self.plan = self.older = None
        if not moved:
            self.since_us = 0
            self.rooted = False
            self.newcomers = {}
            self.suspects = ()
        self.flaws = None
        self.unowned, self.shrunk = (), {}
        self.strange = ()

    # ------------------------------------------------------------------------------------------------ JoinGroup

    def _join_asked(self, group: GroupData, exchange: Exchange, body: Any) -> tuple[Event, ...]:
        self.since_us = self.since_us or exchange.inv_us
        if exchange.member_id in group.issued:
            self.newcomers[exchange.member_id] = True
            for oldest in list(self.newcomers)[:-NEWCOMERS_KEPT]:
                del self.newcomers[oldest]
        if body.protocol_type != CONSUMER:
            return NOTHING
        return tuple(
            Unparsable(exchange, f"the subscription for protocol {protocol.name}", protocol.metadata)
            for protocol in body.protocols
            if assignment_checks.read_subscription(protocol.metadata) is None
        )

    def _joined(self, group: GroupData, exchange: Exchange, body: Any, *, newcomer: bool) -> tuple[Event, ...]:
        self.refused.pop(_who(exchange), None)
        if not body.leader:
            self.mixed_since_us = self.mixed_since_us or exchange.res_us
            return NOTHING
        self.mixed_since_us = 0
        self.since_us = self.since_us or exchange.inv_us
        answered = JoinAnswered(exchange, body)
        newest = group.newest_generation
        if newest is None or newest.generation != body.generation_id:
            return (answered,)  # an old answer, captured late
        plan = self._plan_of(group, body)
        self.rooted = self.rooted or exchange.effective_us >= self.since_us + window_us(group)
        self.suspects = tuple(one for one in self.suspects if one.kind != AHEAD or one.generation > plan.generation)
        if is_foreign(exchange, body):
            plan.foreign = (*plan.foreign[-STRANGE_KEPT:], body.member_id)
        if body.member_id != body.leader or not body.members:
            return (answered,)
        if body.skip_assignment:
            plan.skipped = body.member_id
            return (answered,)
        plan.born = plan.born or newcomer or plan.follows
        self.rooted = self.rooted or plan.born
        return (answered, *self._offered(group, exchange, body, plan))

    def _plan_of(self, group: GroupData, body: Any) -> Plan:
        """The plan of the generation that the answer carries, begun if it is the first of it."""
        plan = self.plan
        if plan is None or plan.generation != body.generation_id:
            self.older = plan if plan is not None and _waited_for(group, plan) else None
            plan = self.plan = Plan(body.generation_id, body.leader, follows=self.rooted)
            return plan
        assert group.newest_generation is not None
        contradicts = body.leader != plan.leader and not same_instance(group, body.leader, plan.leader)
        if contradicts or body.protocol_name != group.newest_generation.protocol:
            plan.disputed = True
        return plan

    def _offered(self, group: GroupData, exchange: Exchange, body: Any, plan: Plan) -> tuple[Event, ...]:
        """The leader was told who offers what."""
        if (body.protocol_type or group.protocol_type) != CONSUMER:
            return NOTHING
        offers = {entry.member_id: assignment_checks.read_subscription(entry.metadata) for entry in body.members}
        for offer in offers.values():
            self._learn_topics({} if offer is None else dict(offer.owned))
        rivals = assignment_checks.rival_claims(offers, [one.generation for one in group.generations])
        if not plan.submitted:
            cooperative = body.protocol_name == COOPERATIVE_STICKY
            kept = {id_: _without_claims(offer, cooperative=cooperative) for id_, offer in offers.items()}
            many = sum(len(offer.topics) for offer in kept.values() if offer is not None) > OFFERED_TOPICS_KEPT
            plan.offers = None if many else kept
        return (RivalClaims(exchange, rivals),) if rivals else NOTHING

    def _no_common_protocol(self, exchange: Exchange) -> tuple[Event, ...]:
        subject = _who(exchange)
        times = self.refused.pop(subject, 0) + 1
        self.refused[subject] = times
        for oldest in list(self.refused)[:-REFUSED_KEPT]:
            del self.refused[oldest]
        return (NoCommonProtocol(exchange, subject, times),)

    # ------------------------------------------------------------------------------------------------ SyncGroup

    def _sync_asked(self, group: GroupData, exchange: Exchange, body: Any) -> tuple[Event, ...]:
        self.since_us = self.since_us or exchange.inv_us
        happenings: list[Event] = [SyncAsked(exchange)]
        plan = self._plan_at(exchange.generation)
        leads = is_leader(group, plan, exchange.member_id)
        if leads is False or (not leads and not body.assignments):
            return tuple(happenings)
        consumer = (body.protocol_type or group.protocol_type) == CONSUMER
        submitted = assignment_checks.read_plan(body.assignments) if consumer else {}
        happenings += [
            Unparsable(exchange, f"the assignment of member {entry.member_id}", entry.assignment)
            for entry in body.assignments
            if consumer and submitted[entry.member_id] is None
        ][:1]
        if plan is self.plan or plan is None:
            self._judge(group, exchange, body, plan, submitted)
        if plan is not None:
            self._submitted(group, plan, exchange, body)
        return tuple(happenings)

    def _judge(
        self, group: GroupData, exchange: Exchange, body: Any, plan: Plan | None, submitted: dict[str, Partitions | None]
    ) -> None:
        """Note what is wrong with the plan. Only a plan that answers a roster can be held against one."""
        protocol = (
            body.protocol_name
            or (group.newest_generation.protocol if group.newest_generation is not None and plan is not None else "")
            or ""
        )
        flaws = AssignmentErrors(
            exchange.generation,
            exchange.member_id,
            exchange.instance_id,
            exchange.actor,
            request_evidence(exchange),
            exchange.inv_us,
            protocol,
            shared=() if _may_share(group, protocol, submitted) else assignment_checks.shared(submitted),
        )
        offers = plan.offers if plan is not None and not plan.submitted else None
        if plan is not None and offers is not None and not plan.skipped:
            wanted = {topic for offer in offers.values() if offer is not None for topic in offer.topics}
            known = sorted(topic for topic in wanted if topic in self.topics)
            plan.blank = not any(entry.assignment for entry in body.assignments) and bool(known)
            flaws = flaws._replace(
                strangers=assignment_checks.strangers(
                    submitted, {*offers, *((group.newest_generation and group.newest_generation.roster) or ())}
                ),
                left_out=assignment_checks.left_out(submitted, offers),
                unsubscribed=() if protocol == "stream" else assignment_checks.unsubscribed(submitted, offers),
                jumps=assignment_checks.jumps(submitted, offers, plan.generation - 1) if protocol == COOPERATIVE_STICKY else (),
                nothing_of=known[0] if known and not body.assignments else "",
            )
            for given in submitted.values():
                self._learn_topics(given or {})
            self._note_unowned(exchange.inv_us, submitted, offers, protocol)
        elif self.flaws is not None and plan is not None and self.flaws.generation == plan.generation:
            flaws = self.flaws._replace(shared=self.flaws.shared or flaws.shared)  # submitted again: either plan may be in force
        self.flaws = flaws if flaws.any else None

    def _plan_at(self, generation: int) -> Plan | None:
        return next((plan for plan in (self.plan, self.older) if plan is not None and plan.generation == generation), None)

    def _note_unowned(
        self, at_us: int, submitted: dict[str, Partitions | None], offers: dict[str, Subscription | None], protocol: str
    ) -> None:
        self._believe_shrunk(at_us)
        if None in submitted.values():
            self.unowned, self.shrunk = (), {}
            return
        # These assignors leave out no partition that they know of.
        self.shrunk = (
            assignment_checks.shrunk(submitted, offers, self.topics) if protocol in assignment_checks.EXCLUSIVE_ASSIGNORS else {}
        )
        since = {(topic, partition): since_us for topic, partition, since_us in self.unowned}
        self.unowned = tuple(
            (topic, partition, since.get((topic, partition), at_us))
            for topic, partition in assignment_checks.unowned(submitted, offers, self.topics)
        )

    def _believe_shrunk(self, at_us: int) -> None:
        """Take it that partitions exist no more which the leader has not known of for long."""
        for topic, _, since_us in self.unowned:
            if topic in self.shrunk and at_us - since_us >= METADATA_AGE_US:
                self.topics[topic] = self.shrunk[topic]
        self.topics = {topic: count for topic, count in self.topics.items() if count}

    def _learn_topics(self, owned: Partitions) -> None:
        for topic, partitions in owned.items():
            if partitions and (topic in self.topics or len(self.topics) < TOPICS_KEPT):
                self.topics[topic] = max(self.topics.get(topic, 0), max(partitions) + 1)

    def _submitted(self, group: GroupData, plan: Plan, exchange: Exchange, body: Any) -> None:
        """Keep what each member is to be given. Of a plan that is submitted again, either may be stored."""
        given: dict[bytes, bytes] = {}
        for entry in body.assignments:
            member = group.members.get(entry.member_id)
            for owner in (entry.member_id, member.instance_id if member is not None else None):
                if owner is not None:
                    given[_hash(owner.encode())] = _hash(entry.assignment)
        if plan.submitted:
            nothing = _hash(b"")
            for key, known in plan.entries.items():  # whom the first plan left out stays unknown
                digest = given.get(key, nothing)
                if not _holds(known, digest):
                    plan.entries[key] = known + digest
                    plan.disputed = plan.disputed or len(known) >= DIGESTS_KEPT * HASH_BYTES
        else:
            plan.entries = given
        plan.submitted = True
        plan.offers = None
        before_us = (
            exchange.inv_us - group.settings.clock_skew_ms * 1_000
        )  # what was answered before then knew nothing of this plan
        self.suspects = tuple(one for one in self.suspects if one.at_us < before_us or not _explained(plan, one))

    def _synced(self, group: GroupData, exchange: Exchange, body: Any) -> tuple[Event, ...]:
        self._note_strange(group, exchange, body)
        plan = self._plan_at(exchange.generation)
        if plan is not None and plan.born and not plan.disputed and exchange.member_id:
            kind = self._held_against(group, plan, exchange, body.assignment)
            if kind:
                self._suspect(kind, exchange, _hash(body.assignment))
        return (SyncAnswered(exchange, body),)

    def _held_against(self, group: GroupData, plan: Plan, exchange: Exchange, delivered: bytes) -> str:
        """What does not fit about this delivery; empty if it fits."""
        if not plan.submitted:
            return ORDER
        if not delivered and plan.blank:
            return BLANK
        member = group.members.get(exchange.member_id)
        instance_id = member.instance_id if member is not None else exchange.instance_id
        own, inherited = _hash(exchange.member_id.encode()), _hash((instance_id or exchange.member_id).encode())
        owner = own if own in plan.entries else inherited
        digests = plan.entries.get(owner)
        if digests is None or _holds(digests, _hash(delivered)):
            return ""
        if delivered:
            return SWAPPED
        return EMPTIED if owner == own else ""  # brokers 2.3 and 2.4 know a static member replaced meanwhile, its leader does not

    def _note_strange(self, group: GroupData, exchange: Exchange, body: Any) -> None:
        self.strange = tuple(one for one in self.strange if one.member_id != exchange.member_id)
        named = strange_protocol(group, self.plan, exchange, body)
        if named:
            frame = response_evidence(exchange, 0)
            strange = Strange(exchange.member_id, exchange.generation, exchange.res_us, named, frame)
            self.strange = (*self.strange[-STRANGE_KEPT:], strange)

    # ------------------------------------------------------------------------------------------------ suspects

    def ahead(self, group: GroupData, exchange: Exchange) -> None:
        """A heartbeat was accepted at a generation beyond the newest that anybody was handed."""
        if self.plan is not None and self.plan.born and not self.plan.disputed:
            self._suspect(AHEAD, exchange, b"")
            group.changed = True

    def _suspect(self, kind: str, exchange: Exchange, digest: bytes) -> None:
        for one in self.suspects:
            if (one.kind, one.member_id, one.generation) == (kind, exchange.member_id, exchange.generation):
                return
        suspect = Suspect(
            kind,
            exchange.member_id,
            exchange.instance_id,
            exchange.generation,
            digest,
            exchange.res_us,
            exchange.actor,
            response_evidence(exchange, 0),
        )
        self.suspects = (*self.suspects[1 - SUSPECTS_KEPT :], suspect)

    def _tidy(self, group: GroupData, exchange: Exchange) -> None:
        """Suspects have been told of, or explained, long before they are this old."""
        if self.older is not None and not _waited_for(group, self.older):
            self.older = None
        if exchange.api_key in {JOIN_GROUP, SYNC_GROUP}:
            oldest_us = exchange.res_us - group.settings.quiet_ms * 1_000
            self.suspects = tuple(one for one in self.suspects if one.at_us >= oldest_us)


# ---------------------------------------------------------------------------------------------------- reading


def window_us(group: GroupData) -> int:
    """How long a frame may be behind one of another connection."""
    return (group.settings.reorder_window_ms + group.settings.clock_skew_ms) * 1_000


def _waited_for(group: GroupData, plan: Plan) -> bool:
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


def _may_share(group: GroupData, protocol: str, submitted: dict[str, Partitions | None]) -> bool:
    """Whether this assignor gives partitions to several members on purpose."""
    if protocol in group.settings.broadcast_assignors or "broadcast" in protocol.lower():
        return True
    return protocol not in assignment_checks.EXCLUSIVE_ASSIGNORS and assignment_checks.is_broadcast(submitted)


def _without_claims(offer: Subscription | None, *, cooperative: bool) -> Subscription | None:
    return offer if offer is None or cooperative else Subscription(offer.topics)


def _explained(plan: Plan, suspect: Suspect) -> bool:
    """Whether the plan that has now been submitted is what the suspect was given."""
    if suspect.generation != plan.generation:
        return False
    owners = (suspect.member_id, suspect.instance_id or suspect.member_id)
    return suspect.kind == ORDER or any(_holds(plan.entries.get(_hash(owner.encode()), b""), suspect.digest) for owner in owners)


def _who(exchange: Exchange) -> str:
    """Who asks, by a name that outlives its connection and its member id."""
    return exchange.instance_id or f"{exchange.actor.client_id or 'no client id'}@{host_of(exchange.actor.address)}"


def _hash(content: bytes) -> bytes:
    """Short, since a group stores one for each member; a collision hides a breach and makes none."""
    return blake2s(content, digest_size=HASH_BYTES).digest()


def _holds(digests: bytes, digest: bytes) -> bool:
    return any(digests[at : at + HASH_BYTES] == digest for at in range(0, len(digests), HASH_BYTES))


def _errors(api_key: int, body: Any, group: str) -> set[int]:
    if api_key in {OFFSET_COMMIT, TXN_OFFSET_COMMIT}:  # the only ones that steady traffic brings here: nothing is built for them
        errors: set[int] = set()
        for topic in body.topics:
            for partition in topic.partitions:
                if partition.error_code:
                    errors.add(partition.error_code)
        return errors
    return {code for code in _codes(api_key, body, group) if code}


def _codes(api_key: int, body: Any, group: str) -> Iterator[int]:
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

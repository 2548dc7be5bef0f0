"""Tracker of assignments: what members subscribe to, what the leader submits, what members get, and in which protocol.

*An assignment holds for one generation of one incarnation.* A static member that replaces another later inherits its entry, under an
id that the leader does not know. *A generation may have several plans*: a leader that misses a response
submits again, and the coordinator may keep either. *A capture that starts in mid-generation lacks the plan*: the coordinator delivers
what it stored before. A delivery is therefore compared with the plan only if the generation was captured from its beginning
(``Plan.born``) and no response contradicts another (``Plan.disputed``). A mismatch waits for the reorder window, because a frame of a
slower connection may explain it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from coordinator_model.groups.classic import assignment_checks
from coordinator_model.groups.classic.assignment_checks import CONSUMER, COOPERATIVE_STICKY, AssignmentErrors, Partitions, Wanted
from coordinator_model.groups.classic.trackers.plans import (
    AHEAD,
    BLANK,
    EMPTIED,
    HASH_BYTES,
    ORDER,
    SWAPPED,
    Plan,
    Strange,
    Suspect,
    hash_of,
    holds_digest,
    is_awaited,
    is_explained,
    is_foreign,
    is_leader,
    may_share,
    same_instance,
    strange_protocol,
    subject_of,
    without_claims,
)
from coordinator_model.groups.evidence import request_evidence, response_evidence
from coordinator_model.groups.tracker import NOTHING, Event
from coordinator_model.stored import Stored
from coordinator_model.wire.constants import INCONSISTENT_GROUP_PROTOCOL, JOIN_GROUP, SYNC_GROUP

if TYPE_CHECKING:
    from coordinator_model.groups.classic.data import GroupData
    from coordinator_model.groups.records import Exchange


API_KEYS: Final = frozenset({JOIN_GROUP, SYNC_GROUP})

STREAM: Final = "stream"  #: Kafka Streams' assignor
SUSPECTS_KEPT: Final = 16
TOPICS_KEPT: Final = 32
NEWCOMERS_KEPT: Final = 64
REFUSED_KEPT: Final = 32
DIGESTS_KEPT: Final = 3
STRANGE_KEPT: Final = 8
OFFERED_TOPICS_KEPT: Final = 20_000  #: of all members together, until the leader submits the plan


# ---------------------------------------------------------------------------------------------------- events


class JoinAnswered(NamedTuple):
    """A JoinGroup succeeded in a classic group. ``body`` is the response."""

    exchange: Exchange
    body: Any


class RivalClaims(NamedTuple):
    """The members' subscriptions, in the leader's JoinGroup response, claim a partition twice."""

    exchange: Exchange
    claims: tuple[tuple[str, int, int, tuple[str, ...]], ...]  #: topic, partition, generation, members


class DifferentTopics(NamedTuple):
    """The members' subscriptions, in the leader's JoinGroup response, have parts without a topic in common."""

    exchange: Exchange
    parts: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]  #: topics, and the members that subscribe to them


class NoCommonProtocol(NamedTuple):
    """A JoinGroup was refused with INCONSISTENT_GROUP_PROTOCOL."""

    exchange: Exchange
    subject: str
    times: int  #: in a row


class SyncAsked(NamedTuple):
    """A SyncGroup request of a classic group."""

    exchange: Exchange


class SyncAnswered(NamedTuple):
    """A SyncGroup succeeded in a classic group. ``body`` is the response."""

    exchange: Exchange
    body: Any


class Unparsable(NamedTuple):
    """A subscription or an assignment that does not even decode as version 0."""

    exchange: Exchange
    what: str
    raw: bytes


# ---------------------------------------------------------------------------------------------------- facts


class Assignments(Stored):
    """Assignment and protocol facts of one group."""

    plan: Plan | None = None
    older: Plan | None = None  #: the one before, while a SyncGroup at its generation is open
    since_us: int = 0  #: first JoinGroup or SyncGroup frame since the last gap
    rooted: bool = False  #: the group has been captured since then, so further generations are captured from their completion
    incarnation: int = 1
    newcomers: dict[str, bool] = {}  #: ids issued with MEMBER_ID_REQUIRED that are in an open JoinGroup
    suspects: tuple[Suspect, ...] = ()
    flaws: AssignmentErrors | None = None  #: of the newest plan submitted
    topics: dict[str, int] = {}  #: topic → known number of partitions
    unowned: tuple[tuple[str, int, int], ...] = ()  #: topic, partition, since when
    strange: tuple[Strange, ...] = ()
    refused: dict[str, int] = {}  #: client → consecutive refusals for lack of a common protocol
    mixed_since_us: int = 0  #: since when the group has members of both protocols (KIP-848 migration); 0 if it has not
    shrunk: dict[str, int] = {}
    #: topic → partitions in the newest plan, if it leaves out only the last ones, which may no longer exist
    wanted: dict[str, Wanted] = {}  #: topics that members subscribe to; empty if that is not known

    def __post_init__(self) -> None:
        # A snapshot stores these as plain values.
        self.wanted = {topic: Wanted(*one) for topic, one in self.wanted.items()}

    def on_request(self, group: GroupData, exchange: Exchange, body: Any) -> tuple[Event, ...]:
        asked = self._join_asked if exchange.api_key == JOIN_GROUP else self._sync_asked
        return asked(group, exchange, body)

    def on_response(self, group: GroupData, exchange: Exchange, body: Any) -> tuple[Event, ...]:
        events = NOTHING
        if exchange.api_key == JOIN_GROUP:
            newcomer = self.newcomers.pop(exchange.member_id, not exchange.member_id)
            if body.error_code == 0:
                events = self._joined(group, exchange, body, newcomer=newcomer)
            elif body.error_code == INCONSISTENT_GROUP_PROTOCOL:
                events = self._no_common_protocol(exchange)
        elif body.error_code == 0:
            events = self._synced(group, exchange, body)
        if self.older is not None or self.suspects:
            self._tidy(group, exchange)
        return events

    def on_gap(self, group: GroupData) -> None:
        """Drop the current plan. Partition counts do not depend on the coordinator, and stay.

        If only the coordinator moved, no frame is missing: suspects stay, and the next generation is captured from its completion.
        """
        moved = group.incarnation != self.incarnation
        self.incarnation = group.incarnation
        self._believe_shrunk(group, group.last_record_us)
        self.plan = self.older = None
        if not moved:
            self.since_us = 0
            self.rooted = False
            self.newcomers = {}
            self.suspects = ()
        self.flaws = None
        self.unowned, self.shrunk, self.wanted = (), {}, {}
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
        self.refused.pop(subject_of(exchange), None)
        if not body.leader:
            self.mixed_since_us = self.mixed_since_us or exchange.res_us
            return NOTHING
        self.mixed_since_us = 0
        self.since_us = self.since_us or exchange.inv_us
        answered = JoinAnswered(exchange, body)
        newest = group.newest_generation
        if newest is None or newest.generation != body.generation_id:
            return (answered,)  # an old response, captured late
        plan = self._plan_of(group, body)
        self.rooted = self.rooted or exchange.effective_us >= self.since_us + group.late_us
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
        """Return the plan of the response's generation; create it with the first response."""
        plan = self.plan
        if plan is None or plan.generation != body.generation_id:
            self.older = plan if plan is not None and is_awaited(group, plan) else None
            plan = self.plan = Plan(body.generation_id, body.leader, follows=self.rooted)
            return plan
        assert group.newest_generation is not None
        contradicts = body.leader != plan.leader and not same_instance(group, body.leader, plan.leader)
        if contradicts or body.protocol_name != group.newest_generation.protocol:
            plan.disputed = True
        return plan

    def _offered(self, group: GroupData, exchange: Exchange, body: Any, plan: Plan) -> tuple[Event, ...]:
        """Process the subscriptions in the leader's JoinGroup response."""
        if (body.protocol_type or group.protocol_type) != CONSUMER:
            return NOTHING
        offers = {entry.member_id: assignment_checks.read_subscription(entry.metadata) for entry in body.members}
        for offer in offers.values():
            self._learn_topics({} if offer is None else dict(offer.owned))
        rivals = assignment_checks.rival_claims(offers, [one.generation for one in group.generations])
        if not plan.submitted:
            cooperative = body.protocol_name == COOPERATIVE_STICKY
            kept = {id_: without_claims(offer, cooperative=cooperative) for id_, offer in offers.items()}
            many = sum(len(offer.topics) for offer in kept.values() if offer is not None) > OFFERED_TOPICS_KEPT
            plan.offers = None if many else kept
        events: tuple[Event, ...] = (RivalClaims(exchange, rivals),) if rivals else NOTHING
        parts = assignment_checks.parts_without_common_topic(offers)
        return (*events, DifferentTopics(exchange, parts)) if len(parts) > 1 else events

    def _no_common_protocol(self, exchange: Exchange) -> tuple[Event, ...]:
        subject = subject_of(exchange)
        times = self.refused.pop(subject, 0) + 1
        self.refused[subject] = times
        for oldest in list(self.refused)[:-REFUSED_KEPT]:
            del self.refused[oldest]
        return (NoCommonProtocol(exchange, subject, times),)

    # ------------------------------------------------------------------------------------------------ SyncGroup

    def _sync_asked(self, group: GroupData, exchange: Exchange, body: Any) -> tuple[Event, ...]:
        self.since_us = self.since_us or exchange.inv_us
        events: list[Event] = [SyncAsked(exchange)]
        plan = self._plan_at(exchange.generation)
        leads = is_leader(group, plan, exchange.member_id)
        if leads is False or (not leads and not body.assignments):
            return tuple(events)
        consumer = (body.protocol_type or group.protocol_type) == CONSUMER
        submitted = assignment_checks.read_plan(body.assignments) if consumer else {}
        events += [
            Unparsable(exchange, f"the assignment of member {entry.member_id}", entry.assignment)
            for entry in body.assignments
            if consumer and submitted[entry.member_id] is None
        ][:1]
        if plan is self.plan or plan is None:
            self._judge(group, exchange, body, plan, submitted)
        if plan is not None:
            self._submitted(group, plan, exchange, body)
        return tuple(events)

    def _judge(
        self, group: GroupData, exchange: Exchange, body: Any, plan: Plan | None, submitted: dict[str, Partitions | None]
    ) -> None:
        """Note the errors of a plan. It is compared with subscriptions only if the leader's JoinGroup response is known."""
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
            shared=() if may_share(group, protocol, submitted) else assignment_checks.shared(submitted),
        )
        offers = plan.offers if plan is not None and not plan.submitted else None
        if offers is None and not (plan is not None and plan.skipped):
            self.wanted = {}  # of a plan submitted again, either may apply
        if plan is not None and offers is not None and not plan.skipped:
            wanted = {topic for offer in offers.values() if offer is not None for topic in offer.topics}
            known = sorted(topic for topic in wanted if topic in self.topics)
            plan.blank = not any(entry.assignment for entry in body.assignments) and bool(known)
            unread: tuple[str, ...] = ()
            if protocol == STREAM:
                unsubscribed, unread = assignment_checks.foreign_topology(submitted, offers, exchange.member_id)
            else:
                unsubscribed = assignment_checks.unsubscribed(submitted, offers)
            flaws = flaws._replace(
                strangers=assignment_checks.strangers(
                    submitted, {*offers, *((group.newest_generation and group.newest_generation.roster) or ())}
                ),
                left_out=assignment_checks.left_out(submitted, offers),
                unsubscribed=unsubscribed,
                unread=unread,
                jumps=assignment_checks.jumps(submitted, offers, plan.generation - 1) if protocol == COOPERATIVE_STICKY else (),
                nothing_of=known[0] if known and not body.assignments else "",
            )
            self._note_grown(group, submitted)
            for given in submitted.values():
                self._learn_topics(given or {})
            self._note_unowned(group, exchange.inv_us, submitted, plan, protocol)
        elif self.flaws is not None and plan is not None and self.flaws.generation == plan.generation:
            flaws = self.flaws._replace(shared=self.flaws.shared or flaws.shared)  # submitted again: either plan may apply
        self.flaws = flaws if flaws.any else None

    def _note_grown(self, group: GroupData, submitted: dict[str, Partitions | None]) -> None:
        """Note the topics that have more partitions than before. Only after a plan that was captured is it known which there were."""
        before, newest = group.generations[-2:] if len(group.generations) > 1 else (None, None)
        if before is None or newest is None or before.leader_synced_us is None or before.generation + 1 != newest.generation:
            return
        largest = {(topic, max(owned)) for given in submitted.values() for topic, owned in (given or {}).items() if owned}
        newest.grown = tuple(sorted({topic for topic, one in largest if topic in self.topics and one >= self.topics[topic]}))

    def _plan_at(self, generation: int) -> Plan | None:
        return next((plan for plan in (self.plan, self.older) if plan is not None and plan.generation == generation), None)

    def _note_unowned(
        self, group: GroupData, at_us: int, submitted: dict[str, Partitions | None], plan: Plan, protocol: str
    ) -> None:
        self._believe_shrunk(group, at_us)
        if None in submitted.values():
            self.unowned, self.shrunk, self.wanted = (), {}, {}
            return
        offers = plan.offers or {}
        self.wanted = assignment_checks.wanted(submitted, offers, plan.leader, TOPICS_KEPT)
        # These assignors leave out no partition that they know of.
        self.shrunk = (
            assignment_checks.shrunk(submitted, offers, self.topics) if protocol in assignment_checks.EXCLUSIVE_ASSIGNORS else {}
        )
        since = {(topic, partition): since_us for topic, partition, since_us in self.unowned}
        self.unowned = tuple(
            (topic, partition, since.get((topic, partition), at_us))
            for topic, partition in assignment_checks.unowned(submitted, offers, self.topics)
        )
        if group.newest_generation is not None:
            left_out = sorted({topic for topic, _, since_us in self.unowned if since_us == at_us})
            group.newest_generation.deleted = tuple(topic for topic in left_out if group.facts.is_deleted(group.cluster, topic))

    def _believe_shrunk(self, group: GroupData, at_us: int) -> None:
        """Lower the partition count of topics whose last partitions leaders have long left out."""
        for topic, _, since_us in self.unowned:
            if topic in self.shrunk and at_us - since_us >= group.settings.metadata_age_us:
                self.topics[topic] = self.shrunk[topic]
        self.topics = {topic: count for topic, count in self.topics.items() if count}

    def _learn_topics(self, owned: Partitions) -> None:
        for topic, partitions in owned.items():
            if partitions and (topic in self.topics or len(self.topics) < TOPICS_KEPT):
                self.topics[topic] = max(self.topics.get(topic, 0), max(partitions) + 1)

    def _submitted(self, group: GroupData, plan: Plan, exchange: Exchange, body: Any) -> None:
        """Store digests of what each member is to get. Of a plan submitted again, the coordinator may store either."""
        given: dict[bytes, bytes] = {}
        for entry in body.assignments:
            member = group.members.get(entry.member_id)
            for owner in (entry.member_id, member.instance_id if member is not None else None):
                if owner is not None:
                    given[hash_of(owner.encode())] = hash_of(entry.assignment)
        if plan.submitted:
            nothing = hash_of(b"")
            for key, known in plan.entries.items():  # members left out of the first plan stay unknown
                digest = given.get(key, nothing)
                if not holds_digest(known, digest):
                    plan.entries[key] = known + digest
                    plan.disputed = plan.disputed or len(known) >= DIGESTS_KEPT * HASH_BYTES
        else:
            plan.entries = given
        plan.submitted = True
        plan.offers = None
        before_us = exchange.inv_us - group.clock_skew_us  # earlier responses cannot follow from this plan
        self.suspects = tuple(one for one in self.suspects if one.at_us < before_us or not is_explained(plan, one))

    def _synced(self, group: GroupData, exchange: Exchange, body: Any) -> tuple[Event, ...]:
        self._note_strange(group, exchange, body)
        plan = self._plan_at(exchange.generation)
        if plan is not None and plan.born and not plan.disputed and exchange.member_id:
            kind = self._held_against(group, plan, exchange, body.assignment)
            if kind:
                self._suspect(kind, exchange, hash_of(body.assignment))
        return (SyncAnswered(exchange, body),)

    def _held_against(self, group: GroupData, plan: Plan, exchange: Exchange, delivered: bytes) -> str:
        """Return how a delivered assignment contradicts the plan; "" if it does not."""
        if not plan.submitted:
            return ORDER
        if not delivered and plan.blank:
            return BLANK
        member = group.members.get(exchange.member_id)
        instance_id = member.instance_id if member is not None else exchange.instance_id
        own, inherited = hash_of(exchange.member_id.encode()), hash_of((instance_id or exchange.member_id).encode())
        owner = own if own in plan.entries else inherited
        digests = plan.entries.get(owner)
        if digests is None or holds_digest(digests, hash_of(delivered)):
            return ""
        if delivered:
            return SWAPPED
        return EMPTIED if owner == own else ""  # in 2.3 and 2.4 the broker knows of a replaced static member, the leader does not

    def _note_strange(self, group: GroupData, exchange: Exchange, body: Any) -> None:
        self.strange = tuple(one for one in self.strange if one.member_id != exchange.member_id)
        named = strange_protocol(group, self.plan, exchange, body)
        if named:
            frame = response_evidence(exchange, 0)
            strange = Strange(exchange.member_id, exchange.generation, exchange.res_us, named, frame)
            self.strange = (*self.strange[-STRANGE_KEPT:], strange)

    # ------------------------------------------------------------------------------------------------ suspects

    def ahead(self, group: GroupData, exchange: Exchange) -> None:
        """Process a Heartbeat accepted at a later generation than the newest known one."""
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
        """Drop suspects that were reported or explained long ago, and the older plan once no SyncGroup waits for it."""
        if self.older is not None and not is_awaited(group, self.older):
            self.older = None
        oldest_us = exchange.res_us - group.settings.quiet_ms * 1_000
        self.suspects = tuple(one for one in self.suspects if one.at_us >= oldest_us)

"""The way of each client of a group to consuming, in a group of any type: at which stage it stands, since when, and who turns it back.

Every client that wants to consume looks for its coordinator, reaches it, is let in, gets partitions and reads where to begin. A client that
has arrived is not kept here: it is a member like others. It may come under another member id each time, and as another process. It is
known again by its group.instance.id, or by its client id and host.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import IntEnum
from typing import Any, Final, NamedTuple, Protocol

from coordinator_model.cluster_facts import ClusterFacts, FailedConnections
from coordinator_model.finding import Evidence
from coordinator_model.groups.committed_offsets import keep_newest
from coordinator_model.groups.evidence import client_text, epoch_response_evidence, process_of, response_evidence
from coordinator_model.groups.protocol.epochs import TABLE
from coordinator_model.groups.records import NO_CLIENT, AnyMember, ClientInfo, Exchange, HeartbeatFacts
from coordinator_model.stored import Stored
from coordinator_model.wire import API_NAMES, CONSUMER, error_name, read_consumer_subscription
from coordinator_model.wire.constants import (
    COORDINATOR_MOVES,
    EPOCH_HEARTBEATS,
    FENCED_INSTANCE_ID,
    FIND_COORDINATOR,
    GROUP_AUTHORIZATION_FAILED,
    GROUP_ID_NOT_FOUND,
    INCONSISTENT_GROUP_PROTOCOL,
    INVALID_SESSION_TIMEOUT,
    JOIN_GROUP,
    MEMBER_ID_REQUIRED,
    NONE,
    OFFSET_FETCH,
    REBALANCE_IN_PROGRESS,
    STREAMS_GROUP_HEARTBEAT,
    TXN_OFFSET_COMMIT,
    UNKNOWN_MEMBER_ID,
    UNKNOWN_SERVER_ERROR,
)
from coordinator_model.wording import clock, iso_utc


class Group(Protocol):
    """What this module asks of a group of any type."""

    name: str
    cluster: str
    facts: ClusterFacts
    changed: bool

    @property
    def members(self) -> Mapping[str, AnyMember]: ...
    def present_members(self) -> Iterator[AnyMember]: ...
    def holds_partitions(self, exchange: Exchange, body: Any) -> bool | None: ...


class Stage(IntEnum):
    """What a client does next on its way to consuming."""

    LOOKS = 1
    REACHES = 2
    JOINS = 3
    HOLDS = 4
    BEGINS = 5


STAGES: Final = tuple(stage.name.lower() for stage in Stage)
"""As published."""

WORDS: Final = {
    Stage.LOOKS: "looks for its coordinator",
    Stage.REACHES: "was named its coordinator, and has not asked it to join",
    Stage.JOINS: "asks to join",
    Stage.HOLDS: "is a member without partitions",
    Stage.BEGINS: "reads where to begin",
}
"""Stage → what the client does there, to stand behind its name."""

PASSING: Final = COORDINATOR_MOVES | {NONE, UNKNOWN_SERVER_ERROR, REBALANCE_IN_PROGRESS, MEMBER_ID_REQUIRED, UNKNOWN_MEMBER_ID}
"""Answers after which a client asks again and goes on: a coordinator that is elsewhere or fails, and steps of joining."""

REPORTED_ELSEWHERE: Final = frozenset(
    {INCONSISTENT_GROUP_PROTOCOL, INVALID_SESSION_TIMEOUT, FENCED_INSTANCE_ID, GROUP_ID_NOT_FOUND}
)
"""Refusals to join with rules of their own: P-02, T-08, S-01 and S-02, E-10."""

TOPOLOGY_REFUSED: Final = TABLE["Z5"].answers

SAME_US: Final = 600_000_000  #: a process that is started anew each time comes within five minutes
RUN_US: Final = 30_000_000  #: a client that cannot reach its coordinator looks for it again within seconds
_KEPT: Final = 32
_TRANSACTIONS_KEPT: Final = 8
_TOPICS_KEPT: Final = 8
_JOIN_EPOCH: Final = 0


class Refusal(NamedTuple):
    """Answers with one error in a row."""

    error: int
    first_us: int
    last_us: int = 0
    times: int = 0
    api_key: int = -1  #: of the last one, like what follows
    broker: str = ""
    reason: str = ""  #: the broker's own words
    malformed: str = ""  #: what the request must be refused for
    frames: tuple[Evidence, ...] = ()  #: the first two and the latest


class Arrival(NamedTuple):
    """A client on its way."""

    stage: Stage
    since_us: int  #: when it came to the stage
    last_us: int  #: its last frame there
    actor: ClientInfo  #: nobody at :attr:`Stage.HOLDS`, where its member names it
    member_id: str = ""
    instance_id: str | None = None
    refusal: Refusal | None = None  #: at this stage, since it last went on
    address: str = ""  #: of its coordinator, as FindCoordinator named it
    lookups: int = 0  #: that named this address, with pauses of at most :data:`RUN_US`
    on_connection: int = 0  #: of these, in a row on the last connection
    lookups_us: int = 0  #: when the first of these was answered
    frame: Evidence | None = None  #: the last answer that named it
    topics: tuple[str, ...] = ()  #: the first that it subscribes to, of a client that uses the classic protocol
    failed: FailedConnections | None = None  #: those of its host to the address when it was named that first


class Transaction(NamedTuple):
    """The last offsets that a producer committed in a transaction."""

    transactional_id: str
    actor: ClientInfo
    at_us: int


class Forbidden(NamedTuple):
    """The last request of a member that was refused since its client may not read for the group any more."""

    api_key: int
    at_us: int


def subject_of(exchange: Exchange) -> str:
    """Return by what a client is known again."""
    return exchange.instance_id or client_text(exchange.actor)


def process_subject(subject: str, client: Arrival) -> str:
    """Return the subject of a client, or for a thread of Kafka Streams without an instance id that of its process."""
    process = process_of(client.actor)
    return subject if process == client.actor or client.instance_id is not None else client_text(process)


class Arrivals(Stored):
    """The clients of one group that have not arrived."""

    clients: dict[str, Arrival] = {}  #: by instance id, or client id and host
    transactions: dict[str, Transaction] = {}  #: by transactional id
    forbidden: dict[str, Forbidden] = {}  #: by member id

    def on_request(self, group: Group, exchange: Exchange, body: Any) -> None:
        """Note that a client asks to join. Any other request than those of the way shows that its client wants something else."""
        if exchange.api_key == TXN_OFFSET_COMMIT:
            id_ = body.transactional_id
            keep_newest(self.transactions, id_, Transaction(id_, exchange.actor, exchange.inv_us), _TRANSACTIONS_KEPT)
        if is_join(exchange):
            self._asks_to_join(group, exchange, _topics(body) if exchange.api_key == JOIN_GROUP else ())
        elif exchange.api_key != FIND_COORDINATOR and self.clients:
            known = self.clients.get(client_text(exchange.actor))
            if known is not None and known.stage < Stage.JOINS:
                self._drop(group, client_text(exchange.actor))

    def on_response(self, group: Group, exchange: Exchange, body: Any) -> None:
        """Note what an answer shows of the way of its client. ``exchange.error`` and ``exchange.error_codes`` are final."""
        if exchange.api_key == FIND_COORDINATOR:
            self._looked(group, exchange, body)
        elif exchange.api_key == OFFSET_FETCH:
            self._read(group, exchange)
        elif exchange.error:
            self.refused(group, exchange, body)
        else:
            serves = exchange.api_key == JOIN_GROUP or exchange.api_key in EPOCH_HEARTBEATS
            topics = self._accept(group, exchange) if serves and self.clients else None
            holds = group.holds_partitions(exchange, body)
            if holds:
                self._holds(group, exchange)
            elif topics is not None or holds is not None:
                self._holds_nothing(group, exchange, getattr(body, "member_id", None) or exchange.member_id, topics or ())

    def refused(self, group: Group, exchange: Exchange, body: Any) -> None:
        """Note that a request to join was refused, or that a member lost its right to the group."""
        error = exchange.error
        if error == GROUP_AUTHORIZATION_FAILED and exchange.member_id in group.members:
            keep_newest(self.forbidden, exchange.member_id, Forbidden(exchange.api_key, exchange.res_us), _KEPT)
        if not is_join(exchange) or error in PASSING | REPORTED_ELSEWHERE:
            return
        facts = exchange.facts
        malformed = facts.malformed if isinstance(facts, HeartbeatFacts) else ""
        if exchange.api_key == STREAMS_GROUP_HEARTBEAT and error in TOPOLOGY_REFUSED and not malformed:
            return
        arrival = self._at(Stage.JOINS, exchange, self.clients.get(subject_of(exchange)))
        self._turn_back(group, arrival, error, exchange, (getattr(body, "error_message", None) or "", malformed))

    def _accept(self, group: Group, exchange: Exchange) -> tuple[str, ...] | None:
        """Note that a client was let in, or served as a member; return its topics, None if it was not on its way."""
        topics: tuple[str, ...] | None = None
        for subject in self.of(exchange):
            topics = self.clients[subject].topics
            self._drop(group, subject)
        return topics

    def of(self, exchange: Exchange) -> list[str]:
        """Return the subjects by which the client of a request is known as one that is not let in yet.

        A member that lives and holds the instance id is another client than the one that wants it.
        """
        named, joins = {exchange.instance_id, client_text(exchange.actor)}, is_join(exchange)
        return [
            subject
            for subject, known in self.clients.items()
            if known.stage <= Stage.JOINS
            and (
                (exchange.member_id and exchange.member_id == known.member_id)
                or (subject in named and (joins or not known.member_id))
            )
        ]

    def are_named(self, address: str) -> bool:
        """Return True if a client was named this address last, and has not asked to join."""
        return any(known.address == address for known in self.clients.values())

    def closed(self, connection: str) -> None:
        """Note the end of a connection. A client that was not turned back has ended, or comes again on another."""
        for subject, known in list(self.clients.items()):
            if known.actor.connection == connection and known.refusal is None and known.stage == Stage.LOOKS:
                del self.clients[subject]

    def on_gap(self) -> None:
        """Drop what may have changed unseen."""
        self.clients, self.transactions = {}, {}

    def standing(self, stage: Stage, members: Mapping[str, AnyMember]) -> list[tuple[str, Arrival]]:
        """Return the clients that stand at a stage, those first that came to it first."""
        there = [item for item in self.clients.items() if item[1].stage is stage]
        there.sort(key=lambda item: (item[1].since_us, item[0]))
        if stage < Stage.HOLDS:
            return there
        return [item for item in there if (member := members.get(item[1].member_id)) is not None and member.present]

    # ------------------------------------------------------------------------------------------------ the stages

    def _looked(self, group: Group, exchange: Exchange, body: Any) -> None:
        subject = client_text(exchange.actor)
        known = self.clients.get(subject)
        if known is not None and known.stage > Stage.REACHES:
            return
        if any(member.actor.named == exchange.actor.named for member in group.present_members()):
            return  # a member looks for its coordinator: see coordinator_changes
        answer = next((one for one in body.coordinators if one.key == group.name), body)
        if answer.error_code in COORDINATOR_MOVES:
            self._put(group, subject, self._at(Stage.LOOKS, exchange, known))
        elif answer.error_code:
            self._turn_back(
                group, self._at(Stage.LOOKS, exchange, known), answer.error_code, exchange, (answer.error_message or "", "")
            )
        elif answer.host:
            arrival = self._at(Stage.REACHES, exchange, known)._replace(frame=response_evidence(exchange, NONE))
            self._put(group, subject, _named(group, arrival, known, f"{answer.host}:{answer.port}"))

    def _asks_to_join(self, group: Group, exchange: Exchange, topics: tuple[str, ...]) -> None:
        member = group.members.get(exchange.member_id)
        if member is not None and member.present:
            return
        subject = subject_of(exchange)
        known = self.clients.get(subject)
        if subject != client_text(exchange.actor) and known is None:
            known = self.clients.pop(client_text(exchange.actor), None)
        if known is None or known.stage != Stage.JOINS:
            self._put(group, subject, self._at(Stage.JOINS, exchange, None)._replace(topics=topics))
        else:
            self.clients[subject] = known._replace(topics=topics)

    def _holds(self, group: Group, exchange: Exchange) -> None:
        known = self.clients.get(subject_of(exchange))
        if known is not None and known.stage <= Stage.HOLDS and not _is_another(known, exchange.member_id):
            self._drop(group, subject_of(exchange))

    def _holds_nothing(self, group: Group, exchange: Exchange, member_id: str, topics: tuple[str, ...]) -> None:
        known = self.clients.get(subject_of(exchange))
        if known is not None and _is_another(known, member_id):
            return
        if known is None or known.stage < Stage.HOLDS or known.member_id != member_id:
            arrival = self._at(Stage.HOLDS, exchange, None)
            self._put(group, subject_of(exchange), arrival._replace(actor=NO_CLIENT, member_id=member_id, topics=topics))

    def _read(self, group: Group, exchange: Exchange) -> None:
        """Note whether a member reads where to begin. A tool that is no member reads offsets, too."""
        member = next((one for one in group.present_members() if one.actor.named == exchange.actor.named), None)
        if member is None:
            return
        subject = member.instance_id or client_text(exchange.actor)
        known = self.clients.get(subject)
        error = max(exchange.error_codes, default=NONE)
        if error:
            arrival = self._at(Stage.BEGINS, exchange, known)
            self._turn_back(group, arrival._replace(member_id=member.id, instance_id=member.instance_id), error, exchange, ("", ""))
        elif known is not None and known.stage == Stage.BEGINS:
            self._drop(group, subject)

    # ------------------------------------------------------------------------------------------------ entries

    @staticmethod
    def _at(stage: Stage, exchange: Exchange, known: Arrival | None) -> Arrival:
        """Return the client of an exchange at a stage, since when it is there if it is already."""
        at_us = exchange.res_us or exchange.inv_us
        since_us = known.since_us if known is not None and known.stage == stage else at_us
        return Arrival(stage, since_us, at_us, exchange.actor, exchange.member_id, exchange.instance_id)

    def _turn_back(self, group: Group, arrival: Arrival, error: int, exchange: Exchange, said: tuple[str, str]) -> None:
        """Note that a client was answered an error.

        :param said: the broker's own words, and what the request must be refused for.
        """
        subject = arrival.instance_id or client_text(arrival.actor)
        known = self.clients.get(subject)
        before = known.refusal if known is not None and known.stage == arrival.stage else None
        if before is None or before.error != error or exchange.res_us - before.last_us > SAME_US:
            before = Refusal(error, exchange.res_us)
        heartbeat = exchange.api_key in EPOCH_HEARTBEATS
        frame = epoch_response_evidence(exchange) if heartbeat else response_evidence(exchange, error)
        frames = (*before.frames[:2], frame)
        reason, malformed = said
        refusal = Refusal(
            error, before.first_us, exchange.res_us, before.times + 1, exchange.api_key, exchange.broker, reason, malformed, frames
        )
        self._put(group, subject, arrival._replace(refusal=refusal))

    def _put(self, group: Group, subject: str, arrival: Arrival) -> None:
        """Set the newest entry. Of too many, those go first that wait for nobody's action."""
        self.clients.pop(subject, None)
        self.clients[subject] = arrival
        if len(self.clients) > _KEPT:
            del self.clients[next((one for one, known in self.clients.items() if known.refusal is None), next(iter(self.clients)))]
        group.changed = True

    def _drop(self, group: Group, subject: str) -> None:
        del self.clients[subject]
        group.changed = True


def as_json(known: Arrival, members: Mapping[str, AnyMember]) -> dict[str, Any]:
    """Return a client that has not arrived, as published."""
    refusal = known.refusal
    actor = members[known.member_id].actor if known.stage is Stage.HOLDS else known.actor
    return {
        "client_id": actor.client_id,
        "client_address": actor.address or None,
        "client_software": actor.software or None,
        "instance_id": known.instance_id,
        "member_id": known.member_id or None,
        "stage": known.stage.name.lower(),
        "since": iso_utc(known.since_us),
        "last_at": iso_utc(known.last_us),
        "coordinator": known.address or None,
        "refused": 0 if refusal is None else refusal.times,
        "refused_since": None if refusal is None else iso_utc(refusal.first_us),
        "error": None if refusal is None else error_name(refusal.error),
        "request": None if refusal is None else API_NAMES[refusal.api_key],
        "broker": None if refusal is None else refusal.broker,
        "text": sentence(known),
    }


def sentence(known: Arrival) -> str:
    """Return what a client does on its way, to stand behind its name, without a full stop."""
    words = f"{WORDS[known.stage]} since {clock(known.since_us)}"
    if known.stage is Stage.REACHES and known.address:
        words = f"was named its coordinator {known.address}, and has not asked it to join since {clock(known.since_us)}"
    refusal = known.refusal
    if refusal is None:
        return words
    times = "once" if refusal.times == 1 else f"{refusal.times} times"
    return f"{words}; its {API_NAMES[refusal.api_key]} was answered {error_name(refusal.error)} {times} by {refusal.broker}"


def is_join(exchange: Exchange) -> bool:
    """Return True if the request is a join of either protocol."""
    return exchange.api_key == JOIN_GROUP or (exchange.api_key in EPOCH_HEARTBEATS and exchange.generation == _JOIN_EPOCH)


def _topics(body: Any) -> tuple[str, ...]:
    """Return the first topics of a JoinGroup's first subscription, none if it is not a consumer's."""
    if body.protocol_type != CONSUMER or not body.protocols:
        return ()
    subscription = read_consumer_subscription(body.protocols[0].metadata)
    return () if subscription is None else tuple(subscription.topics[:_TOPICS_KEPT])


def _is_another(known: Arrival, member_id: str) -> bool:
    """Return True if a client wants the instance id that this member has."""
    return known.stage is Stage.JOINS and known.instance_id is not None and known.member_id not in {"", member_id}


def _named(group: Group, arrival: Arrival, known: Arrival | None, address: str) -> Arrival:
    """Return a client that was named an address, with how often in a row that happened."""
    if known is None or known.address != address or arrival.last_us - known.last_us > RUN_US:
        failed = group.facts.failed_connections(group.cluster, address, arrival.actor.address)
        return arrival._replace(address=address, lookups=1, on_connection=1, lookups_us=arrival.last_us, failed=failed)
    same = known.actor.connection == arrival.actor.connection
    return arrival._replace(
        address=address,
        lookups=known.lookups + 1,
        on_connection=known.on_connection + 1 if same else 1,
        lookups_us=known.lookups_us,
        failed=known.failed,
    )

"""Family M: member identity.

Every eviction results in UNKNOWN_MEMBER_ID, and clients recover from it within seconds. Only one that does not is a finding.
"""

from __future__ import annotations

from coordinator_model.finding import BROKER, CERTAIN, CLIENT, CONFIG, CONFIRMED, CRITICAL, ERROR, HEURISTIC, INFO, WARNING
from coordinator_model.groups.classic.group import ClassicGroup
from coordinator_model.groups.classic.positions import Verdict
from coordinator_model.groups.epochs.data import EpochGroupData
from coordinator_model.groups.events import (
    Answered,
    Contradicted,
    HostAlternated,
    IdMishandled,
    IdUnused,
    Invented,
    LeaveRefused,
    Mispaired,
    NewId,
    OverCapacity,
)
from coordinator_model.groups.evidence import client_text, exchange_evidence, request_evidence, response_evidence
from coordinator_model.groups.protocol.classic import TABLE, TWO_STEP_JOIN_SINCE
from coordinator_model.groups.records import Exchange, host_of
from coordinator_model.groups.successors import CameBackDead
from coordinator_model.rules.base import Breach, HeldFinding, rule, sender_text, the_client, who, whom
from coordinator_model.rules.departures import PATIENCE, WHEN_CLOSED_AGAIN, closes_without_leaving
from coordinator_model.rules.epoch_checks import CHURN, crash_loop, heartbeat_for_another, ids_left_behind
from coordinator_model.rules.progress import stuck_text
from coordinator_model.rules.unlawful import accepted, joined_after_all, loads_after_all
from coordinator_model.wire import API_NAMES, error_name
from coordinator_model.wire.constants import GROUP_MAX_SIZE_REACHED, UNKNOWN_MEMBER_ID
from coordinator_model.wording import a_or_an, begin, clock, counted, seconds

_ALTERNATIONS = 5  # A, B, A, B, A, B: each host sends in more than two cycles
_REPEATED = 3


def _sender(exchange: Exchange) -> str:
    """Return ``Client C at A``, to begin a sentence with."""
    return begin(the_client(exchange.actor))


def _explained(group: ClassicGroup, held: HeldFinding) -> bool:
    return joined_after_all(group, held) or loads_after_all(group, held)


@rule("unknown member accepted", CRITICAL, CONFIRMED, BROKER, suppressed_by=("C-05",), explained=_explained)
def M_02(group: ClassicGroup, verdict: Verdict) -> Breach | None:
    """Fencing is broken: somebody who is not a member is let through.

    Condition: A Heartbeat, SyncGroup, OffsetCommit or TxnOffsetCommit (v3+) was accepted at generation g from a member id that is
        not in the leader's member list of g and was given no JoinGroup success at g.
    Expected: UNKNOWN_MEMBER_ID.
    Action: Stop the named client, keep the broker's logs, and look for a proxy that rewrites answers.
    False alarms: A coordinator that is still loading answers every Heartbeat with success: ignored while that broker says it loads.
    """
    return accepted(group, verdict, "M-02")


@rule("member wrongly unknown", ERROR, CONFIRMED, BROKER, suppressed_by=("C-05",))
def M_03(group: ClassicGroup, contradicted: Contradicted) -> Breach | None:
    """A healthy member is made to start again: a needless rebalance for everybody.

    Condition: UNKNOWN_MEMBER_ID between two successes of the same member; or to a dynamic member of the current generation within
        its session timeout, followed by a success at that same generation, which its removal would have ended.
    Expected: A member id is gone for good once it is gone, and a settled group does not lose a member without a new generation.
    Action: Look in the coordinator's log for why it removed the member; look for a proxy that rewrites answers.
    False alarms: Brokers up to 2.2 say so while they unload a group: only versions that newer brokers speak are judged. A wrong
        instance id makes a member unknown: not judged.
    """
    refusal, exchange = contradicted.refusal, contradicted.exchange
    if refusal.error != UNKNOWN_MEMBER_ID:
        return None
    if contradicted.shown_by == refusal.member_id:
        shown = "it accepted the same member before and after"
    else:
        shown = f"generation {refusal.generation}, which it was a member of, went on unbroken"
    return Breach.of_sender(
        refusal,
        f"The coordinator {exchange.broker} denied knowing {sender_text(refusal)} of group {group.name}, although {shown}.",
        f"UNKNOWN_MEMBER_ID to a member of generation {refusal.generation}, and then a success of {contradicted.shown_by}; {refusal.text}",
        (*refusal.frames, response_evidence(exchange, 0)),
    )


@rule("invented id", WARNING, CONFIRMED, CLIENT)
def M_04(group: ClassicGroup, invented: Invented) -> Breach | None:
    """A client made up its member id, or took it from another group.

    Condition: A JoinGroup with a member id that was not issued since the group's generation 1 was refused with UNKNOWN_MEMBER_ID.
    Expected: The first JoinGroup has an empty member id; the coordinator hands one out.
    Action: Upgrade or replace that client's library, or mend the code that sets its member id: a first JoinGroup has none.
    False alarms: Ids issued before the capture began: judged only a session timeout after the group's birth was seen. Groups of the
        new type let clients choose their id: not judged.
    """
    exchange = invented.exchange
    return Breach.of_sender(
        exchange,
        f"{_sender(exchange)} asked to join group {group.name} as member {exchange.member_id}, an id that this group never issued.",
        f"JoinGroup with the member id {exchange.member_id}, which was not issued since the group began",
        exchange_evidence(exchange),
    )


@rule("MEMBER_ID_REQUIRED ignored", WARNING, CERTAIN, CLIENT, suppressed_by=("R-09",))
def M_05(group: ClassicGroup, idle: IdUnused) -> Breach | None:
    """The client never joins, and each id that it leaves unused keeps join phases open until it expires.

    Condition: A JoinGroup without a member id on a connection that was given at least two ids, which still hold, and used neither.
    Expected: After MEMBER_ID_REQUIRED the client sends JoinGroup with the id that it was given (KIP-394).
    Action: Stop that client, so that the group no longer waits for its ids, and upgrade its library: it has to repeat the JoinGroup
        with the id that it was given (KIP-394).
    False alarms: Ids issued within the last half second may yet be used. A process that crashes in between comes on a new
        connection.
    """
    exchange = idle.exchange
    ids = ", ".join(idle.unused[-3:])
    return Breach(
        exchange.actor.connection,
        f"{_sender(exchange)} asks for yet another member id in group {group.name} and does not use the "
        f"{len(idle.unused)} that it was given: {ids}.",
        f"JoinGroup without a member id on a connection that was answered MEMBER_ID_REQUIRED {len(idle.unused)} times and used none",
        (request_evidence(exchange),),
        actor=exchange.actor,
    )


@rule("MEMBER_ID_REQUIRED misplaced", ERROR, CERTAIN, BROKER)
def M_06(group: ClassicGroup, mishandled: IdMishandled) -> Breach | None:
    """Broker or proxy do not keep to the two-step join: clients are let in without it, or sent in a circle.

    Condition: A JoinGroup v4 or later without member id and instance id succeeded; or MEMBER_ID_REQUIRED to an older one, to one
        with a member id, or to one with an instance id.
    Expected: From v4 on, a dynamic member without an id is told MEMBER_ID_REQUIRED first, and no other member is (KIP-394).
    Action: Look for a proxy between that client and the broker that changes API versions. If there is none, keep the frames and the
        broker's log, and report them.
    False alarms: None known.
    """
    exchange = mishandled.exchange
    outcome = error_name(exchange.error) if exchange.error else "success"
    named = f"named the member id {exchange.member_id!r}" if exchange.member_id else "named no member id"
    static = f" and the instance id {exchange.instance_id}" if exchange.instance_id is not None else ""
    return Breach.of_sender(
        exchange,
        f"The coordinator {exchange.broker} answered a JoinGroup v{exchange.api_version} of {sender_text(exchange)} in group {group.name}, "
        f"which {named}{static}, with {outcome}.",
        f"JoinGroup v{exchange.api_version} that {named}{static} answered {outcome}",
        exchange_evidence(exchange),
        subject=exchange.actor.connection,
    )


@rule("identity used twice", WARNING, HEURISTIC, CLIENT)
def M_07(group: ClassicGroup, alternated: HostAlternated) -> Breach | None:
    """Two processes act as one member, and work on the same partitions.

    Condition: Heartbeats of one member id alternate between two hosts, five changes in a row, with both connections open.
    Expected: One process per member id.
    Action: Find the second deployment: a cloned machine or a copied state.
    False alarms: A client with several connections from one host, and one that moved to another address, are not counted. A proxy
        or NAT pool that spreads one client's connections over several addresses looks the same.
    """
    exchange, member, before = alternated.exchange, alternated.member, alternated.before
    if member.alternations < _ALTERNATIONS:
        return None
    return Breach.of_member(
        member,
        f"Two processes act as member {member.id} of group {group.name}: heartbeats alternate between {the_client(exchange.actor)}, and "
        f"{the_client(before)}; both are connected.",
        f"{counted(member.alternations, 'change')} in a row between {host_of(before.address)} and {host_of(exchange.actor.address)}",
        (request_evidence(exchange),),
        generation=exchange.generation,
    )


@rule("answer for somebody else", CRITICAL, CERTAIN, BROKER, suppressed_by=("C-11",))
def M_08(group: ClassicGroup | EpochGroupData, answered: Answered) -> Breach | None:
    """A client adopts a foreign identity; two processes then act as one member.

    Condition: A JoinGroup that named a member id succeeded under another one.
    Expected: The member id that asked.
    Action: Look for a proxy that mixes up connections or correlation ids.
    False alarms: None known.
    """
    if isinstance(group, EpochGroupData):
        return heartbeat_for_another(group, answered)
    exchange = answered.exchange
    return Breach.of_sender(
        exchange,
        f"The coordinator {exchange.broker} answered the JoinGroup of {sender_text(exchange)} in group "
        f"{group.name} with the member id {answered.member_id}: the client takes on a foreign identity.",
        f"JoinGroup of {exchange.member_id} succeeded as {answered.member_id}",
        (request_evidence(exchange), response_evidence(exchange, 0)),
    )


@rule("id churn", WARNING, HEURISTIC, CLIENT, suppressed_by=("R-09", "M-05", "M-13", "T-10"))
def M_09(group: ClassicGroup | EpochGroupData, new: NewId) -> Breach | None:
    """A client leaves member ids behind; each is waited for in every join phase until its session runs out.

    Condition: A client (by client id and host) was given a new id after it left more than ten behind within an hour: it hung up
        without a LeaveGroup while the coordinator still had them; in a group with epochs, joined under one after the sessions of so
        many had ended.
    Expected: A client keeps its member id, or leaves.
    Action: Find out why that client dies or gives up: its log, and a request timeout that is shorter than its rebalance timeout.
        The summary says if its JoinGroup is older than v4: only such a client is helped by an upgrade (KIP-394).
    False alarms: Several processes with one client id on one host that are all killed at once.
    """
    if isinstance(group, EpochGroupData):
        return ids_left_behind(group, new)
    exchange = new.exchange
    if new.abandoned <= CHURN:
        return None
    old = exchange.api_version < TWO_STEP_JOIN_SINCE
    return Breach(
        client_text(exchange.actor),
        f"Client {client_text(exchange.actor)} was given another member id in group {group.name}, {new.member_id}, after it left "
        f"{new.abandoned} behind within the hour without a LeaveGroup: each slows the others' join phases until its session runs out"
        + (f"; it uses JoinGroup v{exchange.api_version}, which cannot ask for an id first." if old else "."),
        f"{counted(new.abandoned, 'member id')} of one client left behind within an hour",
        exchange_evidence(exchange),
        actor=exchange.actor,
        member_id=new.member_id,
    )


@rule("leave refused", INFO, CONFIRMED, CLIENT, suppressed_by=("S-02", "M-01", "T-12"))
def M_10(group: ClassicGroup, refused: LeaveRefused) -> Breach | None:
    """Somebody tries to remove a member that is not there: a client that was evicted before it left, or a script with stale ids.

    Condition: A LeaveGroup, or an entry of one, was refused with UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID. A warning from the third
        time.
    Expected: Who leaves is a member.
    Action: In scripts use the current member id, or the instance id with an empty member id.
    False alarms: A LeaveGroup repeated after it was granted: not counted.
    """
    exchange = refused.exchange
    whose = refused.member_id or f"instance {refused.instance_id}"
    return Breach(
        refused.member_id or refused.instance_id or "",
        f"{_sender(exchange)} asked to take {whose} out of group {group.name}, and was refused with "
        f"{error_name(refused.error)}" + (f", {refused.times} times by now." if refused.times > 1 else "."),
        f"LeaveGroup for {whose} refused with {error_name(refused.error)}",
        (request_evidence(exchange), response_evidence(exchange, refused.error)),
        actor=exchange.actor,
        member_id=refused.member_id or None,
        instance_id=refused.instance_id,
        severity=WARNING if refused.times >= _REPEATED else None,
    )


@rule("instance and member do not match", CRITICAL, CONFIRMED, BROKER, suppressed_by=("C-05",))
def M_11(group: ClassicGroup, mispaired: Mispaired) -> Breach | None:
    """Fencing by group.instance.id has a hole: somebody acts under another's instance id.

    Condition: A request succeeded whose instance id another member had been holding since before it was asked; or, on brokers since
        3.0, whose instance id no member in the leader's member list holds.
    Expected: FENCED_INSTANCE_ID, or UNKNOWN_MEMBER_ID for an instance id that no member holds.
    Action: Report it with the frames and the coordinator's log; look for a proxy that rewrites answers.
    False alarms: Brokers from 2.3 to 2.8 ignore an instance id that no member holds: judged only once a version was seen that they
        do not have.
    """
    exchange, newest = mispaired.exchange, group.newest_generation
    instance_id, member_id = exchange.instance_id, exchange.member_id
    taken = group.member_identity.taken_over(group, exchange)
    if taken is not None:
        holder = f"member {taken.member_id}"
    else:
        roster = (newest.roster if newest is not None else None) or {}
        own = roster.get(member_id)
        if own is None or instance_id in {own, *roster.values()} or instance_id in group.instances:
            return None
        if group.member_identity.broker_version.release < TABLE["H8"].releases[0]:
            return None
        holder = "nobody"
    api = API_NAMES[exchange.api_key]
    return Breach(
        member_id,
        f"The coordinator {exchange.broker} accepted {a_or_an(api)} from member {member_id} {whom(exchange.actor)} of group "
        f"{group.name} under the instance id {instance_id}, which belongs to {holder}.",
        f"{api} of member {member_id} with instance id {instance_id} accepted",
        (request_evidence(exchange), response_evidence(exchange, 0)),
        actor=exchange.actor,
        member_id=member_id,
        instance_id=instance_id,
        generation=exchange.generation,
    )


@rule("member over capacity", WARNING, CONFIRMED, CONFIG, suppressed_by=("C-10",))
def M_12(group: ClassicGroup, over: OverCapacity) -> Breach | None:
    """A healthy member was removed because the group is full.

    Condition: GROUP_MAX_SIZE_REACHED to a JoinGroup of an id that was a member.
    Expected: The group has room for its members.
    Action: Raise group.max.size, or run fewer consumers.
    False alarms: None known.
    """
    exchange, member = over.exchange, over.member
    newest = group.newest_generation
    size = len(newest.roster) if newest is not None and newest.roster is not None else None
    return Breach.of_member(
        member,
        f"{who(member)} was put out of group {group.name} because the group is full"
        + (f": its last generation had {counted(size, 'member')}." if size is not None else "."),
        "GROUP_MAX_SIZE_REACHED to a JoinGroup of a member",
        (request_evidence(exchange), response_evidence(exchange, GROUP_MAX_SIZE_REACHED)),
        generation=group.generation,
    )


@rule("crash loop", WARNING, HEURISTIC, CLIENT, suppressed_by=("T-10", "T-11"), quiet_times=5)
def M_13(group: ClassicGroup | EpochGroupData, back: CameBackDead) -> Breach | None:
    """A process dies and is started again, over and over: each time the group rebalances, and waits for the dead member first.

    Condition: Three times within ten minutes (crash_loop_returns, crash_loop_ms) a client's connection closed without a LeaveGroup
        and the client came back with an empty member id: the same group.instance.id, or the same client id on the same host while
        no other member of that name is connected. Each time it was the one that had come back before that died. A process that is
        known to live does not count: it goes on with another connection, or gave up a JoinGroup that the coordinator held (R-05).
        In groups with epochs a new member id counts, and the end of a session as well as that of a connection. Kafka Streams never
        leaves by the classic protocol, so it takes twice as many. In a Streams group a thread counts that left within 10 s after it
        was given tasks, if within 10 s another one of its process joined; their numbers distinguish threads from a process that
        starts anew.
    Expected: A process that stops leaves the group, and one that starts stays.
    Action: Read that process's log and exit status: an exception at start, a record that it cannot process, the memory limit, a
        liveness probe that kills it. Take it out of the group until it is mended.
    False alarms: A static member that is restarted on purpose so often. Processes killed together, or one after the other, do not
        count: none of them dies twice. Members that all lose their connections at once do not count either: their coordinator is
        away (C-14).
    """
    if isinstance(group, EpochGroupData):
        return crash_loop(group, back)
    times, exchange = back.returns_us, back.exchange
    dead = group.members.get(back.dead.id)
    closes = closes_without_leaving(dead)
    if len(times) < group.settings.crash_loop_returns * (PATIENCE if closes else 1):
        return None
    waits = f", {seconds(dead.session_timeout_ms * 1_000)}" if dead is not None and dead.session_timeout_ms else ""
    client = f"instance {exchange.instance_id} {whom(exchange.actor)}" if exchange.instance_id is not None else _sender(exchange)
    went = f"went away from group {group.name} without leaving"
    if closes:
        went = f"closed without leaving group {group.name}, as Kafka Streams does,"
    return Breach(
        exchange.instance_id or client_text(exchange.actor),
        f"{begin(client)} {went} and came back {len(times)} times since {clock(times[0])}: each time takes the "
        f"group a rebalance, and up to the session timeout{waits}, to notice.{stuck_text(group, client_text(exchange.actor))}",
        f"the connection of {back.dead.id} closed without a LeaveGroup, and the same {back.known_by} joined with an empty member id; "
        f"{len(times)} times in {seconds(times[-1] - times[0])}",
        exchange_evidence(exchange),
        actor=exchange.actor,
        member_id=back.member_id,
        instance_id=exchange.instance_id,
        generation=group.generation,
        action=WHEN_CLOSED_AGAIN if closes else None,
    )

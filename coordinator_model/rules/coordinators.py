"""Family C: coordinator faults.

A failover looks like a fault. Refusals, loading and different answers to FindCoordinator are all lawful for a while. What counts is how
long and how often they happen, and whether a request stays unanswered.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from coordinator_model.finding import BROKER, CAPTURE, CERTAIN, CONFIG, CONFIRMED, CRITICAL, ERROR, HEURISTIC, INFO, WARNING
from coordinator_model.groups.classic.data import CLASSIC
from coordinator_model.groups.classic.group import ClassicGroup
from coordinator_model.groups.coordinator_changes import (
    SAME_MOVE_US,
    GroupFull,
    KeepsLoading,
    Lost,
    Moved,
    NotAvailable,
    PointedWrong,
    SyncWhileLoading,
    TookTurns,
)
from coordinator_model.groups.epochs.data import EpochGroupData
from coordinator_model.groups.epochs.records import EpochMember
from coordinator_model.groups.events import Mismatched
from coordinator_model.groups.evidence import request_evidence, response_evidence
from coordinator_model.groups.group_coordinator import LostCoordinator, Signs, lost_together
from coordinator_model.groups.records import Exchange, Member
from coordinator_model.rules.base import Breach, Due, asker_text, rule, sender_text, the_client, timer_rule, whom
from coordinator_model.wire import API_NAMES
from coordinator_model.wire.constants import COORDINATOR_LOAD_IN_PROGRESS, FIND_COORDINATOR, GROUP_MAX_SIZE_REACHED
from coordinator_model.wording import a_or_an, clock, counted, seconds

_LOADS_US: Final = 60_000_000
_UNAVAILABLE_US: Final = 30_000_000
_MOVES_AN_HOUR: Final = 3
_FULL_A_MINUTE: Final = 3
_POINTED_WRONG: Final = 5
_JAVA: Final = "apache-kafka-java"


_NODES = {
    Signs.TWO_NODES: "FindCoordinator gives them different node ids",
    Signs.APART: "no frame names their node ids, and one accepted a generation that was older than the other's",
    Signs.NONE: "no frame names their node ids, and the requests name no generation",
}
_ONE_OR_TWO = (
    "Find out whether the addresses named are listeners of one broker, as while clients move to TLS: then nothing is wrong. If they "
    "are two brokers, fence the older one, and look for proxies or address translation that lead to another cluster."
)


HANGS_US: Final = 30_000_000
"""A request that never waits is not answered for so long."""

_SESSIONS_TO_COME_BACK = 2  # a client with a new member id waits for the end of its old session


@rule("flapping coordinator", WARNING, HEURISTIC, BROKER, suppressed_by=("C-05",))
def C_04(group: ClassicGroup, moved: Moved) -> Breach | None:
    """The group's coordinator moves again and again; each move interrupts the group, and what follows is its effect.

    Condition: Three moves within an hour: another broker acts or is named by FindCoordinator, or the same one loads the group anew;
        signs within 10 s of each other are one move. Or one move that goes on for a minute with four changes.
    Expected: One coordinator, until its broker is stopped.
    Action: Look at the leader elections of the group's __consumer_offsets partition and at the brokers' stability.
    False alarms: A rolling restart moves it twice or three times.
    """
    exchange, moves = moved.exchange, moved.moves
    if len(moves) < _MOVES_AN_HOUR and not moved.flaps:
        return None
    observed = (
        f"{counted(moved.flaps, 'change')} since {seconds(exchange.res_us - moves[-1])}, and no end of it"
        if moved.flaps
        else f"{len(moves)} moves within {seconds(exchange.res_us - moves[0])}"
    )
    interrupts = "starts its rebalances again" if group.kind == CLASSIC else "interrupts its heartbeats and commits"
    return Breach(
        "",
        f"The coordinator of group {group.name} keeps moving: {observed}; each move {interrupts}.",
        observed,
        (response_evidence(exchange, exchange.error),),
        generation=group.generation,
    )


@rule("split brain", CRITICAL, CONFIRMED, BROKER)
def C_05(group: ClassicGroup, turns: TookTurns) -> Breach | None:
    """Two brokers hold the group, each with members, generations and offsets of its own: committed offsets will be lost.

    Condition: Two brokers answered commits, JoinGroups, SyncGroups or LeaveGroups of the group with success in turns, at least
        three times, each turn asked after the other's answer was captured and over a connection that was there in the turn before,
        their times overlap by more than the write timeout (5 s), and neither said in between that it is not the coordinator.
        Addresses with one node id in FindCoordinator are one broker. Where no frame names the node ids, it is heuristic, and needs
        that one accepts an older generation after the other has accepted a newer one; commits without a generation are a warning.
    Expected: One coordinator: the one that was replaced answers NOT_COORDINATOR.
    Action: Fence the older of the two brokers at once, then look for proxies or address translation that lead to another cluster.
    False alarms: Clocks of several capturers that differ by more than clock_skew_ms.
    """
    exchange, signs = turns.exchange, turns.signs
    if signs is Signs.ALIKE:
        return None  # members of one coordinator that has two addresses; of two, one soon goes on to another generation
    at = f"{exchange.broker} and {turns.rival}"
    if signs is Signs.NONE:
        summary = f"Two addresses act as coordinator of group {group.name} in turns: {at}, which may be listeners of one broker,"
    else:
        summary = f"Two brokers act as coordinator of group {group.name} at the same time: {at},"
    return Breach(
        "",
        f"{summary} for {seconds(turns.overlap_us)} so far.",
        f"{at} changed the group in turns, on connections that outlived each other's acts, and neither said that it was not the "
        f"coordinator; {_NODES[signs]}",
        turns.frames,
        actor=exchange.actor,
        generation=group.generation,
        severity=WARNING if signs is Signs.NONE else None,
        certainty=None if signs is Signs.TWO_NODES else HEURISTIC,
        action=_ONE_OR_TWO if signs is Signs.NONE else None,
    )


@rule("long load", WARNING, CERTAIN, BROKER, over=lambda group, _: "loading" not in group.coordinator_changes.streaks)
def C_06(group: ClassicGroup, loading: KeepsLoading) -> Breach | None:
    """The new coordinator is still reading its log: no member can join or commit meanwhile.

    Condition: COORDINATOR_LOAD_IN_PROGRESS for more than 60 s, with no other answer to a commit, JoinGroup, SyncGroup or
        LeaveGroup, and no pause of more than 30 s in between.
    Expected: A load of seconds.
    Action: Check that __consumer_offsets is compacted (the log cleaner runs) and how large its segments are.
    False alarms: None known.
    """
    streak, exchange = loading.streak, loading.exchange
    if streak.lasted_us <= _LOADS_US:
        return None
    return Breach(
        "",
        f"Broker {exchange.broker} has been loading group {group.name} for {seconds(streak.lasted_us)}: no member can join or commit, "
        "and heartbeats tell nothing.",
        f"COORDINATOR_LOAD_IN_PROGRESS {streak.times} times over {seconds(streak.lasted_us)}",
        (streak.frame, response_evidence(exchange, COORDINATOR_LOAD_IN_PROGRESS)),
    )


@rule("SyncGroup answered while loading", WARNING, CERTAIN, BROKER, suppressed_by=("C-06",))
def C_07(group: ClassicGroup, sync: SyncWhileLoading) -> Breach:
    """Java consumers do not expect this answer to SyncGroup and throw an exception into the application.

    Condition: A SyncGroup answered COORDINATOR_LOAD_IN_PROGRESS: a note, and a warning when the client is the Java one or when it
        recurs.
    Expected: Brokers with the older coordinator answer REBALANCE_IN_PROGRESS.
    Action: Restart the application if it stopped; upgrade its client.
    False alarms: Clients that retry by themselves.
    """
    exchange = sync.exchange
    hits = exchange.actor.software.startswith(_JAVA) or sync.times > 1
    return Breach.of_sender(
        exchange,
        f"A SyncGroup of {sender_text(exchange)} in group {group.name} was answered "
        "COORDINATOR_LOAD_IN_PROGRESS, which Java consumers hand to the application as an exception.",
        "SyncGroup answered COORDINATOR_LOAD_IN_PROGRESS",
        (request_evidence(exchange), response_evidence(exchange, COORDINATOR_LOAD_IN_PROGRESS)),
        severity=WARNING if hits else INFO,
    )


@rule("persisted generation lost", CRITICAL, HEURISTIC, BROKER)
def C_09(group: ClassicGroup, lost: Lost) -> Breach:
    """The new coordinator does not know what the old one had written and acknowledged: committed offsets may be gone as well.

    Condition: After a failover a request succeeded at a lower generation than one whose assignment had been delivered before it was
        asked, although a member of that generation was still there, so that the group cannot have been emptied and deleted in
        between.
    Expected: A failover keeps every generation whose SyncGroup was answered.
    Action: Look for an unclean leader election or a truncation of the group's __consumer_offsets partition; check
        min.insync.replicas.
    False alarms: A deletion that was not captured, while a member removed by it went on.
    """
    exchange, persisted = lost.exchange, lost.persisted
    return Breach(
        "",
        f"Group {group.name} lost generations in a failover from broker {persisted.broker} to {exchange.broker}: it is at "
        f"{lost.generation}, and {persisted.generation} had been persisted.",
        f"{API_NAMES[exchange.api_key]} succeeded at generation {lost.generation}, asked after a SyncGroup at generation "
        f"{persisted.generation} had been answered",
        (persisted.frame, request_evidence(exchange), response_evidence(exchange, 0)),
        actor=exchange.actor,
        generation=lost.generation,
    )


@rule("group full", WARNING, CERTAIN, CONFIG)
def C_10(group: ClassicGroup, full: GroupFull) -> Breach | None:
    """More clients want to join than group.max.size allows; those turned away come back again and again.

    Condition: GROUP_MAX_SIZE_REACHED at least three times within a minute.
    Expected: No more members than group.max.size.
    Action: Raise group.max.size on the brokers, or run fewer consumers.
    False alarms: None known.
    """
    if full.times < _FULL_A_MINUTE:
        return None
    exchange = full.exchange
    return Breach(
        "",
        f"Group {group.name} is full and clients keep knocking: {full.times} JoinGroups were turned away within a minute, latest of "
        f"{the_client(exchange.actor)}.",
        f"GROUP_MAX_SIZE_REACHED {full.times} times within a minute",
        (response_evidence(exchange, GROUP_MAX_SIZE_REACHED),),
        actor=exchange.actor,
    )


@rule("correlation broken", ERROR, CERTAIN, CAPTURE)
def C_11(group: ClassicGroup | EpochGroupData, mismatched: Mismatched) -> Breach:
    """An answer was paired with a request that it does not answer: nothing that it says can be believed.

    Condition: The correlation id in an answer is not that of the request it is said to answer.
    Expected: Equal correlation ids: a broker answers each connection in order.
    Action: Check the capture of the connection named (two captures of one connection, lost packets), and any proxy between client
        and broker. The group is learned again by itself.
    False alarms: None known.
    """
    exchange = mismatched.exchange
    return Breach(
        exchange.actor.connection,
        f"On connection {exchange.actor.connection} to broker {exchange.broker}, an answer with correlation id "
        f"{mismatched.correlation_id} "
        f"was taken for that of request {exchange.correlation_id} {whom(exchange.actor)}: group {group.name} is back to learning.",
        f"correlation id {mismatched.correlation_id} where {exchange.correlation_id} was asked",
        (request_evidence(exchange),),
        actor=exchange.actor,
    )


@rule(
    "wrong coordinator named",
    WARNING,
    HEURISTIC,
    BROKER,
    suppressed_by=("C-05",),
    over=lambda group, _: group.coordinator_changes.pointed is None,
)
def C_12(group: ClassicGroup, wrong: PointedWrong) -> Breach | None:
    """Clients are sent in a circle: the brokers' metadata is stale, and the group cannot work.

    Condition: A broker answered NOT_COORDINATOR at least five times within 10 s or more while FindCoordinator named it, and named it
        again after it had done so; and it accepted nobody in between.
    Expected: FindCoordinator names the leader of the group's __consumer_offsets partition.
    Action: Check that metadata reaches all brokers: the controller's log, and the lag of the broker that answers FindCoordinator.
    False alarms: None known: a broker that starts, and a failover, give many of these within a few seconds.
    """
    pointed, exchange = wrong.pointed, wrong.exchange
    lasted_us = pointed.last_us - pointed.since_us
    if pointed.times < _POINTED_WRONG or not pointed.named_again or lasted_us < SAME_MOVE_US:
        return None
    return Breach(
        "",
        f"FindCoordinator has named broker {pointed.broker} for group {group.name} since {clock(pointed.since_us)}, "
        f"{seconds(lasted_us)}, and that broker says it is not the coordinator.",
        f"{counted(pointed.times, 'request')} answered NOT_COORDINATOR by the broker that FindCoordinator names, over "
        f"{seconds(lasted_us)}",
        pointed.frames,
        actor=exchange.actor,
    )


@rule(
    "coordinator unavailable",
    ERROR,
    CERTAIN,
    BROKER,
    over=lambda group, _: not group.coordinator_changes.streaks.keys() & {"not found", "not available"},
)
def C_13(group: ClassicGroup, unavailable: NotAvailable) -> Breach | None:
    """There is no coordinator for the group, or it cannot write: no member can join, sync or commit.

    Condition: COORDINATOR_NOT_AVAILABLE for more than 30 s, to FindCoordinator or to the group's requests, with no success and no
        pause of more than 30 s in between.
    Expected: A coordinator within seconds of a failover.
    Action: Look at the group's __consumer_offsets partition: has it a leader and enough in-sync replicas, and do enough brokers run
        for its replication factor?
    False alarms: A cluster that has just been created.
    """
    streak, exchange = unavailable.streak, unavailable.exchange
    if streak.lasted_us <= _UNAVAILABLE_US:
        return None
    return Breach(
        "",
        f"Group {group.name} has had no coordinator for {seconds(streak.lasted_us)}: COORDINATOR_NOT_AVAILABLE, latest from broker "
        f"{exchange.broker} to {a_or_an(API_NAMES[exchange.api_key])} of {asker_text(exchange)}.",
        f"COORDINATOR_NOT_AVAILABLE {streak.times} times over {seconds(streak.lasted_us)}",
        (streak.frame, response_evidence(exchange, 15)),
        broker=exchange.broker,
    )


@timer_rule("no coordinator", WARNING, CONFIRMED, BROKER)
def C_14(group: ClassicGroup | EpochGroupData) -> Iterator[Due]:
    """The group lost its coordinator and no broker has taken over: no member can heartbeat, commit or rejoin.

    Condition: No broker has accepted anybody for half of the shortest session timeout since the connections of all members ended,
        in a broker's log since it answered anybody, while their clients ask for the coordinator; or since it took a request that is
        answered soon and answered nobody in the group, which is an error after 30 s. A note where several members, or several
        groups, lost their connections at once and nobody asks: either the broker or all of them may be gone.
    Expected: Another broker takes over within seconds.
    Action: Look at the broker named: did it crash, hang, or lose its network? Look at the controller's log for the new leader of the
        group's __consumer_offsets partition. Clients come back by themselves; those that gave their member ids up wait until the
        sessions of these are over.
    False alarms: A tap or proxy before that broker that was stopped.
    """
    changes = group.coordinator_changes
    lost = changes.lost
    if lost is None:
        return
    late_us = lost.since_us + lost.session_ms * 500
    come_back_us = _SESSIONS_TO_COME_BACK * lost.session_ms * 1_000
    if not lost.returned_us:
        answered_us = 0 if lost.searching else changes.answered_us(group)
        if not changes.is_lost(group) or 0 < answered_us <= late_us or _is_asked(group, lost, late_us):
            return
        until_us = answered_us + come_back_us if answered_us else None
        severity = WARNING if lost.searching or lost.silent else INFO
        yield Due(late_us, "", severity, lambda: _lost_coordinator(group, lost), until_us)
        if lost.silent:
            yield Due(lost.since_us + HANGS_US, "", ERROR, lambda: _lost_coordinator(group, lost), until_us)
        return
    asked_us = lost.returned_us if lost.silent else min(lost.returned_us, lost.asked_us or lost.returned_us)
    was_gone = lost.searching or lost.silent or (lost.denied_us and changes.lost_with_others(group))
    if was_gone and asked_us > late_us and group.last_record_us < lost.returned_us + come_back_us:
        hung = lost.silent and lost.returned_us - lost.since_us > HANGS_US
        severity = ERROR if hung else WARNING if lost.searching or lost.silent else INFO
        # One microsecond later for each member, so that each return is another occurrence and updates the text.
        due_us = lost.returned_us + _came_back(group, lost)
        yield Due(due_us, "", severity, lambda: _returned_coordinator(group, lost))


def _is_asked(group: ClassicGroup | EpochGroupData, lost: LostCoordinator, late_us: int) -> bool:
    """Return True if a broker that may be the coordinator has taken a request since: it may let a JoinGroup wait."""
    if lost.silent or lost.denied_us:
        return False
    if not lost.searching and any(exchange.inv_us > lost.since_us for exchange in group.open.values()):
        return True
    return any(lost.since_us < one.inv_us <= late_us and _may_be_sent_right(group, one, lost) for one in group.open.values())


def _may_be_sent_right(group: ClassicGroup | EpochGroupData, exchange: Exchange, lost: LostCoordinator) -> bool:
    """Return True if a request was sent to a broker that may be the one which FindCoordinator named last."""
    named = group.coordinator_changes.named
    if exchange.api_key == FIND_COORDINATOR:
        return False
    if not named:
        return True
    node_id = group.facts.nodes.node_id(group.cluster, exchange.broker)
    known = lost.node_id if node_id is None and exchange.broker == lost.broker else "" if node_id is None else str(node_id)
    return known in {"", named[0]}


def _came_back(group: ClassicGroup | EpochGroupData, lost: LostCoordinator) -> int:
    """Return of how many members at the loss of the coordinator the clients were accepted since, under any id."""
    clients = {member.actor.named for member in group.present_members() if _accepted_us(member) >= lost.returned_us}
    return sum(id_ in group.members and group.members[id_].actor.named in clients for id_ in lost.members)


def _accepted_us(member: Member | EpochMember) -> int:
    return member.accepted_us if isinstance(member, EpochMember) else member.proven_us or 0


def _lost_coordinator(group: ClassicGroup | EpochGroupData, lost: LostCoordinator) -> Breach:
    members, looking = counted(len(lost.members), "member"), counted(len(lost.searching), "client")
    waited, since = seconds(lost.session_ms * 500), clock(lost.since_us)
    observed = f"the connections of {members} to {lost.broker} ended, and no frame of the group was captured since"
    action = None
    if lost.silent:
        summary = (
            f"The coordinator {lost.broker} has answered nobody in group {group.name} for more than {waited}, since {since}: its {members} "
            f"cannot heartbeat, commit or rejoin{_together(group, lost)}."
        )
        observed = f"{lost.broker} takes requests that are answered soon, and has answered none of {members} since"
    elif lost.searching:
        ask = "asks" if len(lost.searching) == 1 else "ask"
        summary = (
            f"Group {group.name} has had no coordinator for more than {waited}, since it lost {lost.broker} at {since}: its {members} "
            f"cannot heartbeat, commit or rejoin; {looking} {ask} for a coordinator{_together(group, lost)}."
        )
        ended = (
            f"the connections of {members} to {lost.broker} ended"
            if group.shows_ends
            else f"{lost.broker} answered nobody any more"
        )
        observed = f"{ended}, FindCoordinator was asked since, and nobody was accepted"
    else:
        if len(lost.members) > 1:
            lose = f"{'Both' if len(lost.members) == 2 else 'All'} members of group {group.name} lost their connections to {lost.broker}"
            seen, gone = "were", "all of them"
        else:
            lose = f"The only member of group {group.name} lost its connection to {lost.broker} together with other groups"
            seen, gone = "was", "all of these clients"
        seen = f"and {seen} not seen for more than {waited}"
        summary = f"{lose} at {since}, {seen}: that broker is gone, or {gone} are{_together(group, lost)}."
        action = f"If these processes were stopped on purpose, nothing. Else: {C_14.action}"
    return Breach(
        "",
        summary,
        observed,
        lost.frames,
        generation=group.generation,
        broker=lost.broker,
        action=action,
        certainty=None if action is None else HEURISTIC,
    )


def _together(group: ClassicGroup | EpochGroupData, lost: LostCoordinator) -> str:
    """Return how many groups and members lost the broker then, as text; empty if this group alone did."""
    known = lost_together(group, lost.broker, lost.since_us)
    if known is None or known.groups < 2:
        return ""
    return f"; {counted(known.groups, 'group')} with {counted(known.members, 'member')} lost it then"


def _returned_coordinator(group: ClassicGroup | EpochGroupData, lost: LostCoordinator) -> Breach:
    back, count = _came_back(group, lost), len(lost.members)
    away, since = seconds(lost.returned_us - lost.since_us), clock(lost.since_us)
    broker = group.broker if back else "a broker"  # the first accepted client shows which one
    members = f"{back} of its {count} members {'is' if back == 1 else 'are'} back"
    if count == 1:
        members = f"its only member is {'back' if back else 'not back yet'}"
    if lost.silent:
        was = f"The coordinator {lost.broker} answered nobody in group {group.name} for {away}, from {since} on"
        after = "the first request that was not answered"
    else:
        was = f"Group {group.name} had no coordinator for {away} after it lost {lost.broker} at {since}"
        after = f"all connections to {lost.broker} had ended" if group.shows_ends else f"the last answer of {lost.broker}"
    return Breach(
        "",
        f"{was}; {broker} answers now, and {members}{_together(group, lost)}.",
        f"A request was accepted by {broker} {away} after {after}",
        lost.frames,
        generation=group.generation,
        broker=lost.broker,
    )

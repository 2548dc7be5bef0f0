"""Family R: members that the others wait for, and members that are left behind."""

from __future__ import annotations

from collections.abc import Iterator

from coordinator_model.finding import BROKER, CLIENT, CONFIRMED, ERROR, HEURISTIC, INFO, WARNING
from coordinator_model.groups.classic.group import ClassicGroup
from coordinator_model.groups.classic.trackers.rebalance_history import NotRecovered
from coordinator_model.groups.classic.trackers.sessions import has_come_again, held_joins
from coordinator_model.groups.epochs.data import EpochGroupData
from coordinator_model.groups.events import RejoinAsked
from coordinator_model.groups.evidence import request_evidence, response_evidence
from coordinator_model.groups.records import AbandonedRequest, Exchange, IssuedId
from coordinator_model.rules.base import Breach, Due, Matter, kept_waiting, rule, the_client, timer_rule, who, whom, work_of
from coordinator_model.rules.epoch_checks import does_not_rejoin
from coordinator_model.rules.join_phase import blocking_ids, stalls, wait_limits
from coordinator_model.wire import API_NAMES
from coordinator_model.wire.constants import JOIN_GROUP
from coordinator_model.wording import seconds

_TWO_IDS = "That client runs: it asked for an id twice, and joined with one of both. The other expires by itself."
_RETRY_US = 2_000_000  # a client that lost its connection repeats its request within this, on a new one


@timer_rule("ghost in the roster", WARNING, HEURISTIC, CLIENT, suppressed_by=("T-10",))
def R_05(group: ClassicGroup) -> Iterator[Due]:
    """A client disconnected while it waited to join. The coordinator cannot notice, counts it in, and needs another generation to
    get rid of it.

    Condition: The member list of a generation holds an id whose JoinGroup's connection ended before the generation was complete; no
        newer JoinGroup and nothing else came from it for 2 s. Before JoinGroup v4 the id is one that the answer to the lost
        connection names, or that begins with the client id and that no frame uses.
    Expected: A client waits for the answer to its JoinGroup at least as long as its rebalance timeout.
    Action: Raise the request timeout of that client above its rebalance timeout; see whether it crashed.
    False alarms: A client that needs more than 2 s to ask again on a new connection: resolved when it does.
    """
    newest = group.newest_generation
    if newest is None or newest.roster is None:
        return
    for id_ in newest.roster:
        member = group.members.get(id_)
        if member is None or member.joined == newest.generation or member.removed is not None:
            continue
        abandoned = group.rebalance_history.given_up_by(group, member)
        if abandoned is None or abandoned.api_key != JOIN_GROUP or abandoned.at_us > newest.proven_us:
            continue
        if member.last_frame and member.last_frame_us > abandoned.at_us:
            continue

        def describe(id_: str = id_, abandoned: AbandonedRequest = abandoned) -> Breach:
            timeout_us = (abandoned.session_timeout_ms or 0) * 1_000
            waited_us = abandoned.at_us - abandoned.frame.at_us
            came_again = _came_again(group, id_, abandoned)
            return Breach(
                id_,
                f"Member {id_} {whom(abandoned.actor)} is in generation {newest.generation} of group {group.name}, but its client "
                f"disconnected after it had waited {seconds(waited_us)} to join{came_again}: its "
                f"{work_of(group.protocol_type)} lie idle until its session ends, {seconds(timeout_us)}, and then all rejoin.",
                f"the connection of its JoinGroup ended {seconds(newest.proven_us - abandoned.at_us)} before the generation was complete, "
                "and nothing came since",
                (abandoned.frame, newest.proof),
                actor=abandoned.actor,
                member_id=id_,
                instance_id=abandoned.instance_id,
                generation=newest.generation,
                action=_raise_timeout(abandoned, waited_us, came_again),
            )

        yield Due(newest.proven_us + _RETRY_US, id_, WARNING, describe)


def _came_again(group: ClassicGroup, id_: str, abandoned: AbandonedRequest) -> str:
    """Return that the client of a ghost has asked again under another id, as a clause."""
    client = abandoned.actor.named
    return ", and came again under a new id" if has_come_again(group, id_, client, abandoned.at_us) else ""


def _raise_timeout(abandoned: AbandonedRequest, waited_us: int, came_again: str) -> str | None:
    """Return what to do about a client that gave up before its rebalance timeout, None if that is not known."""
    timeout_us = (abandoned.rebalance_timeout_ms or 0) * 1_000
    if waited_us >= timeout_us:
        return None
    or_died = "" if came_again else " If its process ended then, find out why."
    return (
        f"Raise that client's request timeout above its rebalance timeout, {seconds(timeout_us)}: it gave up after {seconds(waited_us)}."
        + or_died
    )


def _rejoined(group: ClassicGroup | EpochGroupData, member_id: str) -> bool:
    member = group.members.get(member_id)
    return member is None or member.rejoin_asked_us is None or member.removed is not None


@rule("heartbeats but never rejoins", ERROR, CONFIRMED, CLIENT, over=_rejoined, also=(does_not_rejoin,))
def R_08(group: ClassicGroup, asked: RejoinAsked) -> Breach | None:
    """A member's heartbeat thread lives while its poll loop does not: everybody waits for it until it is dropped.

    Condition: The member's heartbeats were answered REBALANCE_IN_PROGRESS for more than half of its rebalance timeout (warning;
        info while nobody is known to wait for it), or all of it (error; in a group that is being migrated after three times as
        long, since it may have been loaded anew unseen, and a warning while it may have become a classic one unseen), and it sent
        no JoinGroup.
    Expected: A member told to rejoin sends JoinGroup at its next poll.
    Action: Take a thread dump of that client: what blocks its poll loop? Restart it if it hangs. If it is slow, process fewer
        records per poll, or raise max.poll.interval.ms.
    False alarms: None while its JoinGroup or SyncGroup is under way.
    """
    member, now_us = asked.member, asked.exchange.res_us
    if member.rejoin_asked_us is None or not stalls(member, group):
        return None
    patience = wait_limits(group)
    waited_us = now_us - member.rejoin_asked_us
    held = held_joins(group)
    waiting = kept_waiting(held, now_us) if held[0] else "and nobody is known to wait for it"
    if member.instance_id is None:
        outcome = "then drops it"
    else:
        outcome = f"then goes on without it and keeps the place of instance {member.instance_id}"
    overdue = patience.known and waited_us > patience.us + group.settings.slack_us(patience.us // 1_000)
    return Breach.of_member(
        member,
        f"{who(member)} heartbeats but does not rejoin group {group.name}: it was told to {seconds(waited_us)} ago, "
        f"{waiting}; the coordinator waits for up to {seconds(patience.us)}, {patience.source}, and {outcome}.",
        f"REBALANCE_IN_PROGRESS to its heartbeats for {seconds(waited_us)} without a JoinGroup",
        tuple(member.rejoin_frames),
        generation=asked.exchange.generation,
        # Where a capture begins within a join phase, the requests of those who wait are not in it: what it costs is not known.
        severity=ERROR if overdue else WARNING if held[0] else INFO,
    )


@timer_rule("pending id blocks", WARNING, CONFIRMED, CLIENT, matter=Matter.REQUEST)
def R_09(group: ClassicGroup) -> Iterator[Due]:
    """A client asked for a member id and went away: the whole group waits for it, up to its session timeout.

    Condition: In a join phase of a living group all members have rejoined, and an id that was issued with MEMBER_ID_REQUIRED has
        not been used for 2 s and a tenth of its session timeout.
    Expected: A client that is told MEMBER_ID_REQUIRED sends JoinGroup with the id at once.
    Action: Find the client that crashes or gives up right after start-up.
    False alarms: Members that were never seen: not judged until the leader's member list was.
    """
    for id_, issued, since_us, waiting in blocking_ids(group):
        due_us = since_us + group.settings.slack_us(issued.session_timeout_ms)
        if due_us >= issued.issued_us + issued.session_timeout_ms * 1_000:
            continue  # expired by then

        def describe(id_: str = id_, issued: IssuedId = issued, waiting: Exchange = waiting) -> Breach:
            timeout_us = issued.session_timeout_ms * 1_000
            used = _other_id(group, id_, issued)
            uses = f", which uses {used} instead" if used else ", and never used"
            return Breach(
                id_,
                f"All members of group {group.name} have rejoined and wait for {id_}, an id that was issued to "
                f"{the_client(issued.actor)}{uses}: the join phase lasts until that id expires, up to {seconds(timeout_us)}.",
                "MEMBER_ID_REQUIRED was answered, and no JoinGroup with the id followed",
                (request_evidence(waiting),),
                actor=issued.actor,
                member_id=id_,
                generation=group.generation,
                action=_TWO_IDS if used else None,
            )

        yield Due(due_us, id_, WARNING, describe)


def _other_id(group: ClassicGroup, id_: str, issued: IssuedId) -> str:
    """Return the other id with which the client that was issued one joins on the same connection; empty if there is none."""
    connection = issued.actor.connection
    return next((one.member_id for one in group.waiting_joins() if one.key[0] == connection and one.member_id not in {"", id_}), "")


@rule(
    "no recovery after failover",
    WARNING,
    HEURISTIC,
    BROKER,
    suppressed_by=("C-04", "C-05", "C-06", "C-12", "C-13"),
    over=lambda group, _: group.settled,
)
def R_13(group: ClassicGroup, tried: NotRecovered) -> Breach | None:
    """The group's coordinator went away and no broker has taken over: the group is down while its clients try.

    Condition: Known clients have asked for the group for 10 s or more, and still ask later than the largest session or rebalance
        timeout plus 2 s and a tenth after its coordinator answered NOT_COORDINATOR, COORDINATOR_NOT_AVAILABLE or
        COORDINATOR_LOAD_IN_PROGRESS; no request was accepted since, and no JoinGroup waits.
    Expected: The new coordinator loads the group within seconds and answers its members.
    Action: Look for load errors in the log of the broker that leads the group's __consumer_offsets partition.
    False alarms: Clients that reach the new coordinator on a path that is not captured. Not said when all members are gone.
    """
    exchange = tried.exchange
    now_us = max(exchange.inv_us, exchange.res_us)
    frame = response_evidence(exchange, exchange.error) if exchange.res_us else request_evidence(exchange)
    return Breach(
        "",
        f"Group {group.name} has not come back since its coordinator went away {seconds(now_us - tried.since_us)} ago: clients still ask "
        f"for it, the last {the_client(exchange.actor)}, and none was let in.",
        f"{API_NAMES[exchange.api_key]} {seconds(now_us - tried.since_us)} after the coordinator went away, nothing accepted since; "
        f"allowed {seconds(tried.patience_us)}",
        (frame,),
        generation=group.generation,
    )

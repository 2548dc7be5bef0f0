"""Family T: sessions and time.

No frame shows a session's end. It has certainly ended only a session timeout after the last frame, plus the time by which a busy broker
may be late. It does not run at all while a JoinGroup or SyncGroup of the member waits for its response, even on a connection that ended
long ago.
"""

from __future__ import annotations

from collections.abc import Iterator

from coordinator_model.finding import BROKER, CERTAIN, CLIENT, CONFIG, CONFIRMED, ERROR, HEURISTIC, INFO, WARNING
from coordinator_model.groups.arrivals import Stage
from coordinator_model.groups.classic.group import ClassicGroup
from coordinator_model.groups.classic.handlers.restarts import gave_up_its_id, goes_on_as_another, looks_for_coordinator
from coordinator_model.groups.classic.trackers.sessions import (
    SLOW_TIMES,
    USUAL_INTERVAL_US,
    CameBack,
    Evicted,
    PollTimeout,
    SessionRefused,
    Survived,
    ThinMargin,
    held_joins,
    hung_up_since,
)
from coordinator_model.groups.epochs.data import EpochGroupData
from coordinator_model.groups.epochs.records import EpochMember
from coordinator_model.groups.events import SLOW_US, FellSilent, Slow, Throttled
from coordinator_model.groups.evidence import (
    epoch_response_evidence,
    exchange_evidence,
    lasting_name,
    request_evidence,
    response_evidence,
)
from coordinator_model.groups.records import Exchange, Member, Removed
from coordinator_model.rules.base import (
    Breach,
    Due,
    admission,
    is_gone,
    kept_waiting,
    rule,
    sender_text,
    the_client,
    timer_rule,
    who,
    whom,
    work_of,
)
from coordinator_model.rules.departures import WHEN_CLOSED, closes_without_leaving, how_it_went, static_pause
from coordinator_model.rules.epoch_checks import came_back, session_ended
from coordinator_model.wire import API_NAMES
from coordinator_model.wire.constants import HEARTBEAT
from coordinator_model.wording import a_or_an, begin, seconds

RECONNECT_US = 2_000_000
"""Time that a client may take to connect again, beyond its heartbeat interval."""

_PAUSES = 3  # near misses of a member within the window; one is luck


def _named(exchange: Exchange) -> str:
    return exchange.member_id or exchange.instance_id or exchange.actor.client_id or ""


@rule("thin heartbeat margin", WARNING, CERTAIN, CLIENT, suppressed_by=("T-06", "T-07"), over=is_gone, quiet_times=15)
def T_01(group: ClassicGroup, thin: ThinMargin) -> Breach | None:
    """A member's heartbeats come so late, again and again, that a slightly longer pause gets it evicted.

    Condition: Three times within 15 minutes more than 80 % of the session timeout passed between two heartbeats, with no other
        request of the member between them and none of its JoinGroups or SyncGroups under way.
    Expected: A heartbeat each third of the session timeout, or more often.
    Action: Look for pauses of that process (garbage collection, CPU limits, suspended host); raise session.timeout.ms.
    False alarms: A capture that stood still: then every member shows it. One pause that the session outlasts is none: a moved
        virtual machine or a slow start.
    """
    member, gaps_us = thin.member, thin.gaps_us
    if len(gaps_us) < _PAUSES:
        return None
    session_us = (member.session_timeout_ms or 0) * 1_000
    pauses = ", ".join(seconds(gap_us) for gap_us in gaps_us)
    return Breach.of_member(
        member,
        f"{who(member)} was silent in group {group.name} for {pauses}, {len(gaps_us)} times within 15 minutes; at "
        f"{seconds(session_us)}, its session timeout, the coordinator evicts it and the group rebalances.",
        f"{seconds(gaps_us[-1])} between two heartbeats, and no other request of it between them",
        (request_evidence(thin.exchange),),
        generation=thin.exchange.generation,
    )


@rule("late survivor", INFO, HEURISTIC, BROKER)
def T_02(group: ClassicGroup, survived: Survived) -> Breach | None:
    """The coordinator's session timer does not work: dead members keep their partitions.

    Condition: A Heartbeat, SyncGroup or JoinGroup of a member was accepted after it had sent nothing for its session timeout plus 2
        s and a tenth, no JoinGroup or SyncGroup of it waiting meanwhile, in one life of the coordinator.
    Expected: UNKNOWN_MEMBER_ID.
    Action: Report it with the frames and the coordinator's log.
    False alarms: A coordinator that loads the group again restarts all sessions, and no frame need show it; one whose machine stood
        still ends them late.
    """
    exchange, member, newest = survived.exchange, survived.member, group.newest_generation
    if newest is not None and newest.roster is not None and member.id not in newest.roster:
        return None
    instance = group.instances.get(member.instance_id) if member.instance_id is not None else None
    if instance is not None and instance.replacements:
        return None  # brokers before 3.3.2 keep the session timeout of the process before
    api = API_NAMES[exchange.api_key]
    return Breach.of_member(
        member,
        f"The coordinator {exchange.broker} accepted {a_or_an(api)} of {who(member)} in group {group.name} after "
        f"{seconds(exchange.silence_us)} of silence, although its session timeout is {seconds((member.session_timeout_ms or 0) * 1_000)}: "
        f"its session should have ended, and its {work_of(group.protocol_type)} gone to others.",
        f"{api} accepted {seconds(exchange.silence_us)} after the last frame of the member, with nothing of it waiting",
        exchange_evidence(exchange),
        generation=exchange.generation if exchange.generation >= 0 else member.joined,
    )


def _gone_or_replaced(group: ClassicGroup, member_id: str) -> bool:
    """Return True if the group has completed a generation since the member's removal, or the member is back."""
    member, newest = group.members.get(member_id), group.newest_generation
    return member is None or newest is None or newest.proven_us > member.removed_us or member.removed is None


@rule("early eviction", ERROR, HEURISTIC, BROKER, suppressed_by=("M-03",), over=_gone_or_replaced)
def T_03(group: ClassicGroup, evicted: Evicted) -> Breach | None:
    """The coordinator throws out healthy members; each time the whole group rebalances.

    Condition: A Heartbeat or other request of a member in sync was answered UNKNOWN_MEMBER_ID in a stable group whose members were
        all seen, earlier than 2 s and a tenth before its session could end; no LeaveGroup, JoinGroup, replacement, new connection
        or late answer to a Heartbeat explains it.
    Expected: A member that heartbeats within its session timeout stays.
    Action: Look for the reason of the eviction in the coordinator's log; report it with the frames.
    False alarms: An operator who removes members through a path that is not captured.
    """
    exchange, member = evicted.exchange, evicted.member
    return Breach.of_member(
        member,
        f"The coordinator {exchange.broker} does not know {who(member)} of group {group.name} any more, {seconds(evicted.silence_us)} "
        f"after it accepted it last; its session timeout is {seconds((member.session_timeout_ms or 0) * 1_000)}, "
        "and nothing else explains it.",
        f"UNKNOWN_MEMBER_ID to a member in sync at generation {exchange.generation} of a stable group, "
        f"{seconds(evicted.silence_us)} after its last success",
        (*admission(member), response_evidence(exchange, exchange.error)),
        generation=exchange.generation,
        severity=None if exchange.api_version >= 3 else WARNING,
    )


def _seen_or_replaced(group: ClassicGroup | EpochGroupData, member_id: str) -> bool:
    """Return True if the member sends frames again, or the group has completed a generation without it."""
    member = group.members.get(member_id)
    if member is None or member.removed != Removed.SILENT:
        return True
    if isinstance(group, EpochGroupData):
        return False
    newest = group.newest_generation
    return newest is not None and newest.roster is not None and member_id not in newest.roster


@rule("silent death", INFO, CONFIRMED, CLIENT, suppressed_by=("R-05", "T-10"), over=_seen_or_replaced, also=(session_ended,))
def T_04(group: ClassicGroup, silent: FellSilent) -> Breach | None:
    """A member vanished without LeaveGroup; detecting it cost the group a whole session timeout.

    Condition: No frame of the member for its session timeout plus 2 s and a tenth, no LeaveGroup, and no JoinGroup or SyncGroup of
        it, or of its instance id, under way; or the broker's log says that the coordinator ended its session.
    Expected: A heartbeat within the session timeout, or a LeaveGroup.
    Action: Find out why that process died or froze: crash, memory limit, suspended host, network.
    False alarms: A client that moved to a path that is not captured. It rests while the members have no coordinator (C-14), in a
        broker's log until that broker has answered anybody after the session, and where the client goes on under another id; in groups
        with epochs also for a client that looks for its coordinator, was seen to leave, or was throttled for longer than a session. A
        static member lawfully goes silent when it restarts. Of Kafka Streams, which closes without leaving, T-09 tells instead.
    """
    member = silent.member
    if member.leaving or group.coordinator_changes.is_lost(group) or _joined_as_another(group, member) or _is_closed(group, member):
        return None
    if any(True for _ in group.comebacks(member)) or gave_up_its_id(group, member) or goes_on_as_another(group, member):
        return None
    silence_us = silent.at_us - member.last_frame_us
    timeout_ms = member.session_timeout_ms
    logged = "; the broker's log says that its session is over" if silent.is_logged else ""
    timeout = "" if timeout_ms is None else f", its session timeout is {seconds(timeout_ms * 1_000)}"
    return Breach.of_member(
        member,
        f"{begin(who(member))} fell silent in group {group.name} without leaving: nothing for {seconds(silence_us)}{timeout}; "
        f"{_idle_text(group, silent)}.",
        f"no frame since {a_or_an(member.last_frame)}, and no LeaveGroup was granted{logged}",
        admission(member),
        generation=member.joined,
        certainty=HEURISTIC if silent.is_logged else None,  # its broker may have been away: a log shows no connections
    )


def _idle_text(group: ClassicGroup, silent: FellSilent) -> str:
    """Return how long no member consumed what the silent one held: until a generation without it had its assignment."""
    member, work = silent.member, work_of(group.protocol_type)
    if member.in_sync is None and member.joined_frame is not None:
        return f"it had not been assigned any {work}"
    if not silent.dropped_us:
        return f"its {work} were idle meanwhile"
    since_us = max(member.last_frame_us, member.disconnected_us if member.disconnected_us < silent.dropped_us else 0)
    synced_us = (known.sync_done_us or 0 for known in group.generations if known.proven_us >= silent.dropped_us)
    until_us = min((at_us for at_us in synced_us if at_us), default=0)
    unread = group.arrivals.standing(Stage.BEGINS, group.members)
    if unread or not until_us:
        why = "who has them could not read where to begin" if until_us else "no generation without it had an assignment yet"
        return f"its {work} were idle for {seconds(silent.at_us - since_us)} by then, and {why}"
    return f"its {work} were idle for {seconds(until_us - since_us)}, until the group went on without it"


def _is_closed(group: ClassicGroup, member: Member) -> bool:
    """Return True if it is a dynamic member whose client closes without leaving, and closed: T-09 reports that."""
    return closes_without_leaving(member) and member.instance_id is None and hung_up_since(group, member) is not None


def _joined_as_another(group: ClassicGroup, member: Member) -> bool:
    """Return True if its client has joined under another id, as librdkafka does if no coordinator responds for a session.

    It does so on the same connection; if that was lost with the coordinator, on another one.
    """
    lost = group.coordinator_changes.lost
    together = lost is not None and (lost.searching or len(lost.members) > 1 or group.coordinator_changes.lost_with_others(group))
    lost_ids = lost.members if lost is not None and together and member.id in lost.members else None
    client = member.actor.named
    return any(
        other.actor.connection == member.actor.connection
        or (lost_ids is not None and other.id not in lost_ids and other.actor.named == client)
        for other in group.members.values()
        if other is not member and other.last_frame_us > member.last_frame_us
    )


def _came_back(group: ClassicGroup, back: CameBack) -> Breach:
    left = back.left
    return Breach(
        lasting_name(left.actor, left.member_id, left.instance_id),
        f"Member {left.member_id} {whom(left.actor)} left group {group.name} {seconds(left.held_us)} after it joined and joins again on "
        f"the same connection: its application most likely polled too rarely; when it left, "
        f"{kept_waiting((left.waiting, left.waiting_since_us), left.at_us)}.",
        "LeaveGroup later than its rebalance timeout after its last join, then JoinGroup without an id on the same connection",
        (left.frame, request_evidence(back.exchange)),
        actor=left.actor,
        member_id=left.member_id,
        instance_id=left.instance_id,
        generation=left.generation,
        certainty=HEURISTIC,
    )


@rule(
    "poll interval exceeded",
    WARNING,
    CERTAIN,
    CLIENT,
    suppressed_by=("T-12",),
    quiet_times=5,
    also=(_came_back, static_pause, came_back),
)
def T_05(group: ClassicGroup, timeout: PollTimeout) -> Breach:
    """The application processes too slowly for its own settings, leaves the group, and makes it rebalance.

    Condition: A LeaveGroup gives a poll timeout as its reason (KIP-800); or, heuristically, a client without reasons left later
        than its rebalance timeout after it joined, and joins again for the same topics on the same connection, or under the same id
        in a group with epochs; or a static member, which does not leave, joins again so without its id on its own connection, two
        heartbeat intervals or more after its last frame and its answer, and before its session is over. A process that sent nothing
        for a whole session stood still: of that T-04 tells.
    Expected: The application polls within max.poll.interval.ms.
    Action: Process fewer records per poll, faster, or raise max.poll.interval.ms.
    False alarms: Without a reason: an application that unsubscribes and subscribes again on purpose.
    """
    exchange = timeout.exchange
    instance_id = timeout.member.instance_id if timeout.member is not None else None
    return Breach(
        lasting_name(exchange.actor, timeout.member_id, instance_id),
        f"Member {timeout.member_id} {whom(exchange.actor)} left group {group.name} because its application did not poll in time; "
        f"it gives the reason {timeout.reason!r}; {kept_waiting(held_joins(group), exchange.inv_us)}.",
        f"LeaveGroup with the reason {timeout.reason!r}",
        (request_evidence(exchange),),
        actor=exchange.actor,
        member_id=timeout.member_id,
        instance_id=instance_id,
        generation=group.generation,
    )


def _session_us(group: ClassicGroup | EpochGroupData, member: Member | EpochMember | None) -> int:
    if isinstance(group, EpochGroupData):
        return group.shortest_session_ms(member if isinstance(member, EpochMember) else None) * 1_000
    return (member.session_timeout_ms or 0) * 1_000 if member is not None else 0


@rule("slow coordinator", WARNING, HEURISTIC, BROKER, suppressed_by=("C-01", "C-04", "C-05", "C-06", "C-13", "C-14"))
def T_06(group: ClassicGroup | EpochGroupData, slow: Slow) -> Breach | None:
    """The coordinator answers so slowly that sessions are about to run out.

    Condition: A Heartbeat or LeaveGroup was answered after more than a third of the member's session timeout; or, three times
        within a minute and for about one heartbeat in a hundred, after more than 2 s: not in groups with epochs, whose sessions are
        45 s and longer. Throttled answers do not count.
    Expected: Milliseconds: neither has to wait for anybody.
    Action: Look at the load of that broker and at the in-sync replicas of the group's __consumer_offsets partition.
    False alarms: A slow path between capture and broker.
    """
    exchange = slow.exchange
    member = group.members.get(exchange.member_id)
    session_us = _session_us(group, member)
    endangers = session_us and slow.took_us * 3 > session_us
    times_needed = max(SLOW_TIMES, sum(1 for _ in group.present_members()) // 5)  # about one heartbeat in a hundred
    if not endangers and (isinstance(group, EpochGroupData) or slow.times < times_needed):
        return None
    api = API_NAMES[exchange.api_key]
    why = f"more than a third of that member's session of {seconds(session_us)}" if endangers else f"{slow.times} such in a minute"
    return Breach(
        "",
        f"The coordinator {exchange.broker} of group {group.name} took {seconds(slow.took_us)} to answer {a_or_an(api)} of "
        f"{sender_text(exchange)}: {why}. "
        "It removes members that wait for longer than their session.",
        f"{api} answered after {seconds(slow.took_us)}, without throttling",
        exchange_evidence(exchange),
        generation=group.generation,
        broker=exchange.broker,
    )


@rule("throttled group traffic", WARNING, CERTAIN, CONFIG)
def T_07(group: ClassicGroup | EpochGroupData, throttled: Throttled) -> Breach:
    """A quota makes the client pause for longer than it may between heartbeats.

    Condition: The throttle time in an answer exceeds the member's heartbeat interval; where that is not known, 3 s, in groups with
        epochs 5 s.
    Expected: No throttling of group traffic.
    Action: Raise the request quota of that client or user.
    False alarms: None known.
    """
    exchange = throttled.exchange
    if isinstance(group, EpochGroupData):
        member = group.members.get(exchange.member_id)
        generation, evidence = None if member is None else member.epoch, epoch_response_evidence(exchange)
    else:
        generation, evidence = group.generation, response_evidence(exchange, exchange.error)
    return Breach.of_sender(
        exchange,
        f"The broker {exchange.broker} throttles {the_client(exchange.actor)} in group {group.name} for "
        f"{seconds(throttled.throttle_ms * 1_000)}, longer than its heartbeat interval of {seconds(throttled.interval_us)}: "
        "its session is at risk.",
        f"throttle time {throttled.throttle_ms} ms in the answer to {a_or_an(API_NAMES[exchange.api_key])}",
        (evidence,),
        subject=_named(exchange),
        generation=generation,
    )


@rule("session timeout not allowed", WARNING, CERTAIN, CONFIG)
def T_08(group: ClassicGroup, refused: SessionRefused) -> Breach:
    """The client can never join: the broker refuses its session timeout.

    Condition: A JoinGroup was refused with INVALID_SESSION_TIMEOUT.
    Expected: A session timeout between group.min.session.timeout.ms and group.max.session.timeout.ms of the brokers.
    Action: Change session.timeout.ms of that client, or the limits of the brokers.
    False alarms: None known.
    """
    exchange = refused.exchange
    timeout_ms = getattr(exchange.facts, "session_timeout_ms", 0)
    return Breach.of_sender(
        exchange,
        f"The {the_client(exchange.actor)} cannot join group {group.name}: the broker {exchange.broker} does not allow its session "
        f"timeout of {seconds(timeout_ms * 1_000)}.",
        f"JoinGroup with session timeout {timeout_ms} ms refused with INVALID_SESSION_TIMEOUT",
        exchange_evidence(exchange),
        subject=_named(exchange),
    )


def _hung_up_with_all(group: ClassicGroup, member: Member) -> bool:
    """Return True if the member lost its connection together with a coordinator that has come back since."""
    lost = group.coordinator_changes.lost
    if lost is None or member.id not in lost.members or member.disconnected_us > lost.returned_us:
        return False
    return group.coordinator_changes.lost_with_others(group) or lost.returned_us - lost.since_us > RECONNECT_US


def dead_since(group: ClassicGroup, member: Member) -> int | None:
    """Return when the connection of a present member ended without a LeaveGroup; None if it did not, or if that proves nothing.

    The end proves nothing while all members are disconnected at once, while the client looks for the coordinator, if it gave up waiting for
    the answer to a Heartbeat, and for a static member, whose restart looks the same.
    """
    ended_us = hung_up_since(group, member)
    if ended_us is None:
        return None  # as of nearly every member at each check
    if _hung_up_with_all(group, member) or looks_for_coordinator(group, member):
        return None
    if (
        group.coordinator_changes.is_lost(group)
        or not member.present
        or member.instance_id is not None
        or member.abandoned_request is not None
        or _waited_in_vain(member)
        or gave_up_its_id(group, member)
    ):
        return None
    return ended_us


def _waited_in_vain(member: Member) -> bool:
    """Return True if the Heartbeat that it sent last had no answer for long when its connection ended."""
    waited_us = member.disconnected_us - member.last_frame_us
    return member.last_api == HEARTBEAT and (member.proven_us or 0) < member.last_frame_us and waited_us > SLOW_US


@timer_rule("closed without leaving", INFO, CONFIRMED, CLIENT)
def T_09(group: ClassicGroup) -> Iterator[Due]:
    """A client went away without LeaveGroup: its partitions are idle, and a rebalance waits for it, until its session ends. Kafka
    Streams does so whenever it is closed.

    Condition: The connection of a live dynamic member ended, and for a heartbeat interval and 2 s no frame of it came on another
        one, nor did its client ask for the coordinator, while other members stayed connected; its last Heartbeat had its answer, or
        was sent within 2 s before.
    Expected: A LeaveGroup, or a new connection at once.
    Action: Find out why that process ended: crash, kill, memory limit, network. A shorter session timeout makes such a wait
        shorter.
    False alarms: A client that moved to a path that is not captured.
    """
    for member in [one for one in group.present_members() if one.disconnected_us]:  # nearly nobody at each check
        ended_us = dead_since(group, member)
        if ended_us is None or member.session_timeout_ms is None:
            continue
        session_us = member.session_timeout_ms * 1_000

        def describe(member: Member = member, ended_us: int = ended_us, session_us: int = session_us) -> Breach:
            waits_us = max(0, member.session_since_us + session_us - ended_us)
            return Breach.of_member(
                member,
                f"{begin(who(member))} in group {group.name} {how_it_went(member)}: its connection ended and it has not come back. Its "
                f"{work_of(group.protocol_type)} are idle until its session ends, up to {seconds(waits_us)} after that.",
                f"the connection {member.actor.connection} closed after {a_or_an(member.last_frame)} and without a LeaveGroup, and no "
                "frame of the member since",
                admission(member),
                generation=member.joined,
                action=WHEN_CLOSED if closes_without_leaving(member) else None,
            )

        pause_us = member.heartbeat_interval_us or USUAL_INTERVAL_US
        yield Due(max(ended_us, group.covered_since_us) + pause_us + RECONNECT_US, member.id, INFO, describe)

"""Rules of family C about requests that the coordinator leaves unanswered."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from coordinator_model.finding import BROKER, CONFIRMED, ERROR, HEURISTIC
from coordinator_model.groups.classic.group import ClassicGroup
from coordinator_model.groups.coordinator_changes import proven_heartbeats
from coordinator_model.groups.epochs.data import EpochGroupData
from coordinator_model.groups.evidence import request_evidence
from coordinator_model.groups.records import Exchange, Generation
from coordinator_model.rules.base import Breach, Due, Matter, asker_text, timer_rule, who
from coordinator_model.rules.coordinators import HANGS_US
from coordinator_model.wire import API_NAMES
from coordinator_model.wire.constants import JOIN_GROUP, SYNC_GROUP
from coordinator_model.wording import a_or_an, seconds


def _patience_us(group: ClassicGroup) -> int:
    """Return by how much a response may be later than other members', because it may wait for a replicated write."""
    write_ms = group.settings.write_timeout_ms
    return write_ms * 1_000 + group.settings.slack_us(write_ms)


@timer_rule("unanswered request", ERROR, HEURISTIC, BROKER, matter=Matter.REQUEST, suppressed_by=("C-05", "C-13", "C-14"))
def C_01(group: ClassicGroup | EpochGroupData) -> Iterator[Due]:
    """The coordinator hangs: a request that is answered at once gets no answer, and its client waits until it times out.

    Condition: A request other than JoinGroup and SyncGroup, first in line on an open connection, is unanswered for more than 30 s,
        counted from when the one before it was answered and from the end of any throttling.
    Expected: An answer within milliseconds; within the write timeout (5 s) where offsets are written.
    Action: Take a thread dump of that broker; look at its request handler idle ratio and its disks.
    False alarms: A capture that lost the answer without noticing.
    """
    seen = set()
    for waiting in group.open.values():
        connection = waiting.actor.connection
        if connection in seen:
            continue  # not yet begun: the broker processes one request of a connection at a time
        seen.add(connection)
        if waiting.api_key in {JOIN_GROUP, SYNC_GROUP} or not waiting.gap_free or waiting.effective_us < 0:
            continue
        line = group.connections.get(connection)
        begun_us = line.last_response_us if waiting.queued_behind and line is not None else 0
        since_us = max(waiting.inv_us, begun_us, group.coordinator_changes.throttled_until_us)
        yield Due(since_us + HANGS_US, waiting.member_id or connection, ERROR, _hangs(group, waiting))


def _hangs(group: ClassicGroup | EpochGroupData, waiting: Exchange) -> Callable[[], Breach]:
    return lambda: Breach.of_sender(
        waiting,
        f"The broker {waiting.broker} has not answered {a_or_an(API_NAMES[waiting.api_key])} of {asker_text(waiting)} in group "
        f"{group.name} for {seconds(HANGS_US)}, and the connection is open.",
        f"no answer to {a_or_an(API_NAMES[waiting.api_key])}, which is answered at once",
        (request_evidence(waiting),),
        subject=waiting.member_id or waiting.actor.connection,
        generation=None,
    )


def _forgotten_since(group: ClassicGroup, newest: Generation, waiting: Exchange) -> int | None:
    """Return since when the response to this JoinGroup of a member of the newest generation is overdue, None if it is not.

    A dynamic member is in the roster only if it had a JoinGroup parked, to which a response is due like to the others'. A static member
    remains in it without one, so its JoinGroup must be clearly older. While a Heartbeat succeeds, no join phase is in progress for which a
    JoinGroup could wait.
    """
    assert newest.roster is not None
    early_us = group.settings.slack_us(0) if newest.roster[waiting.member_id] is not None else 0
    if waiting.effective_us < newest.proven_us - early_us and group.members[waiting.member_id].joined != newest.generation:
        return newest.proven_us
    asked_us = group.coordinator_changes.rejoin_asked_us + group.clock_skew_us
    quiet_us = max(waiting.effective_us + _patience_us(group), asked_us)
    if any(member.joined == newest.generation and heartbeat_us > quiet_us for member, heartbeat_us in proven_heartbeats(group)):
        return waiting.effective_us
    return None


@timer_rule("JoinGroup forgotten", ERROR, CONFIRMED, BROKER, matter=Matter.REQUEST, suppressed_by=("C-05", "G-12"))
def C_02(group: ClassicGroup) -> Iterator[Due]:
    """The generation is complete and one of its members was not told: it waits for its request to time out, its partitions idle.

    Condition: A member is in the leader's member list of a generation; its latest JoinGroup was asked before the first answer of
        that generation was captured (a static member's 2 s before), or a heartbeat of the group succeeded well after it was asked,
        so that no join phase can be on; and it is not answered the write timeout (5 s) plus 2.5 s later, its connection being open.
    Expected: All waiting JoinGroups are answered when the join phase ends.
    Action: Keep the broker's log of that moment and report it with the frames named; restarting the client helps.
    False alarms: A superseded JoinGroup is lawfully never answered: not counted. A static member is on the list without asking, so
        one that asks late may wait for the next generation: not counted.
    """
    newest = group.newest_generation
    if newest is None or newest.roster is None:
        return
    for waiting in group.waiting_joins():
        member = group.members.get(waiting.member_id)
        if member is None or not member.present or member.id not in newest.roster or waiting.effective_us < 0:
            continue
        since_us = _forgotten_since(group, newest, waiting)
        if since_us is None:
            continue

        def describe(waiting: Exchange = waiting) -> Breach:
            member = group.members[waiting.member_id]
            return Breach.of_member(
                member,
                f"The coordinator {group.broker} left the JoinGroup of {who(member)} unanswered, although it is among the members of "
                f"generation {newest.generation} of group {group.name} and no join phase is on.",
                f"no answer to the JoinGroup {seconds(_patience_us(group))} after it was due",
                (newest.proof, request_evidence(waiting)),
                generation=newest.generation,
            )

        yield Due(since_us + _patience_us(group), member.id, ERROR, describe)


@timer_rule("SyncGroup forgotten", ERROR, CONFIRMED, BROKER, matter=Matter.REQUEST, suppressed_by=("C-05",))
def C_03(group: ClassicGroup) -> Iterator[Due]:
    """The assignment is out and one member was not given its part: it waits for its request to time out, its partitions idle.

    Condition: A SyncGroup at the newest generation succeeded, another member's latest one at that generation is not answered the
        write timeout (5 s) plus 2.5 s later, its connection being open.
    Expected: All waiting SyncGroups are answered when the assignment is written, and later ones at once.
    Action: Keep the broker's log of that moment and report it with the frames named; restarting the client helps.
    False alarms: One that was repeated on another connection is lawfully never answered: not counted, nor are those of members
        removed.
    """
    newest = group.newest_generation
    if newest is None or newest.sync_done_us is None:
        return
    for waiting in group.waiting_syncs():
        member = group.members.get(waiting.member_id)
        if member is None or not member.present or member.parked_sync != waiting.key:
            continue  # gone, or sent again on another connection: no response to this one is due
        if waiting.generation != newest.generation or waiting.effective_us < 0:
            continue

        def describe(waiting: Exchange = waiting) -> Breach:
            member = group.members[waiting.member_id]
            return Breach.of_member(
                member,
                f"The coordinator {group.broker} gave others of generation {newest.generation} of group {group.name} their assignment "
                f"and left the SyncGroup of {who(member)} unanswered.",
                f"no answer to the SyncGroup {seconds(_patience_us(group))} after the first was answered",
                (request_evidence(waiting),),
                generation=newest.generation,
            )

        since_us = max(newest.sync_done_us, waiting.effective_us)
        yield Due(since_us + _patience_us(group), member.id, ERROR, describe)

"""Family R: a group in which no member consumes.

A join phase is no standstill by itself. A cooperative member keeps its partitions while it waits, and a member that does not yet know of
the rebalance, or finishes what it fetched, still consumes. Only a member that sent a JoinGroup and owns nothing has certainly stopped.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Final, NamedTuple

from coordinator_model.finding import BROKER, CLIENT, CONFIG, CONFIRMED, ERROR, HEURISTIC, WARNING, Blame, Certainty, Evidence
from coordinator_model.groups.classic.group import ClassicGroup
from coordinator_model.groups.classic.trackers.sessions import hung_up_since
from coordinator_model.groups.evidence import request_evidence
from coordinator_model.groups.records import ClientInfo, JoinFacts, Member
from coordinator_model.rules.base import Breach, Due, Matter, about_one, the_client, timer_rule, who
from coordinator_model.rules.departures import how_it_went
from coordinator_model.rules.held_back import WHEN_HELD_BACK, held_back
from coordinator_model.rules.join_phase import RESTART_THE_BROKER, awaited_members, processed_since
from coordinator_model.wire.constants import JOIN_GROUP
from coordinator_model.wording import a_or_an, clock, cost_so_far, counted, seconds, some

_NAMED = 3
_ASKS_AGAIN_US = 5_000_000  #: a client whose connection ended asks again sooner, if it lives
_DOUBLINGS = 8  #: a standstill is reported again after twice the time, four times, and so on


class Idle(NamedTuple):
    """A member that provably holds no partition, and waits for one."""

    since_us: int
    frame: Evidence  #: its JoinGroup or SyncGroup
    had_some: bool  #: it had an assignment before, which it revoked
    gave_up_us: int = 0  #: when its connection ended with its JoinGroup; 0 if that waits


_ACTIONS: Final = {
    BROKER: RESTART_THE_BROKER,
    CONFIG: "Nothing, if the group has just been started: the phase ends by itself, at the latest after the largest rebalance "
    "timeout. To start faster, start the members closer together, or lower group.initial.rebalance.delay.ms of the brokers.",
}
"""What to do if no client is to blame."""


class WaitedFor(NamedTuple):
    """What the idle members wait for."""

    words: str
    blame: Blame
    actor: ClientInfo | None = None
    member_id: str | None = None
    instance_id: str | None = None
    certainty: Certainty | None = None  #: where it differs from the rule's own
    action: str | None = None  #: likewise


def idle_in_join_phase(group: ClassicGroup) -> list[Idle]:
    """Return the members that wait for the end of the join phase, and own nothing meanwhile.

    A client that gave up a JoinGroup with its connection asks again: its place is kept, and it has nothing to consume either. If it does
    not soon, and others come later, it does not wait with them.
    """
    found = []
    came_us = min((waiting.inv_us for waiting in group.waiting_joins()), default=0)
    for waiting in group.waiting_joins():
        since_us = processed_since(group, waiting)
        if since_us is None or not isinstance(waiting.facts, JoinFacts) or waiting.facts.owns:
            continue
        member = group.members.get(waiting.member_id)
        if member is None or not member.idle_since_us:
            found.append(Idle(since_us, request_evidence(waiting), had_some=False))
        else:
            found.append(Idle(member.idle_since_us, request_evidence(waiting), had_some=member.in_sync is not None))
    for member in group.present_members() if group.rebalances.is_joining else ():
        given_up = member.abandoned_request
        if (
            given_up is not None
            and given_up.api_key == JOIN_GROUP
            and member.idle_since_us
            and member.parked_join not in group.open
            and came_us < given_up.at_us + _ASKS_AGAIN_US
        ):
            found.append(Idle(member.idle_since_us, given_up.frame, member.in_sync is not None, given_up.at_us))
    return found


def _idle_in_sync_phase(group: ClassicGroup) -> list[Idle]:
    """Return the members without partitions whose SyncGroup the coordinator holds, before the newest generation's first success."""
    newest = group.newest_generation
    if newest is None or newest.sync_done_us is not None:
        return []
    found = []
    for waiting in group.waiting_syncs():
        member = group.members.get(waiting.member_id)
        in_hand = waiting.generation == newest.generation and processed_since(group, waiting) is not None
        if in_hand and member is not None and member.idle_since_us:
            found.append(Idle(member.idle_since_us, request_evidence(waiting), had_some=member.in_sync is not None))
    return found


def _since_us(idle: list[Idle]) -> int:
    """Return since when all are idle, according to those that had partitions, if any."""
    had_some = [one.since_us for one in idle if one.had_some]
    return max(had_some) if had_some else min(one.since_us for one in idle)


def _connected(group: ClassicGroup, member: Member) -> bool:
    return member.actor.connection in group.connections


def _outcome(group: ClassicGroup, member: Member) -> str:
    """Return what is known of a member that others wait for, as text."""
    closed_us = hung_up_since(group, member)
    if closed_us is not None:
        ends = f", and its session of {seconds(member.session_timeout_ms * 1_000)} runs on" if member.session_timeout_ms else ""
        return f"which {how_it_went(member)}: its connection closed at {clock(closed_us)}{ends}"
    if member.rejoin_asked_us is not None:
        return f"which heartbeats and does not rejoin, though it was told to since {clock(member.rejoin_asked_us)}"
    if member.last_frame:
        return f"which has not rejoined; its last frame was {a_or_an(member.last_frame)} at {clock(group.last_sent_us(member))}"
    return "of which no frame was captured"


_LOADED: Final = (
    "Nothing for this time: the wait ends with these sessions. A shorter session timeout makes it shorter, and clients with a "
    "group.instance.id take their places again at once. Find out why the coordinator was away."
)


def _loaded(group: ClassicGroup, missing: list[Member]) -> WaitedFor | None:
    """Return that the coordinator was away, if all that it waits for lost it: it has loaded them, and knows of no other end of theirs."""
    lost = group.coordinator_changes.lost
    if lost is None or not lost.returned_us:
        return None
    if not all(group.coordinator_changes.lost_with(group, one) and not _connected(group, one) for one in missing):
        return None
    sessions_us = max(one.session_timeout_ms or 0 for one in missing) * 1_000
    names = some([who(one) for one in missing], _NAMED, "; ", "; and ")
    words = (
        f"the sessions of {counted(len(missing), 'member')} to end, {seconds(sessions_us)} after the coordinator came back at "
        f"{clock(lost.returned_us)}, which was away from {clock(lost.since_us)} on and has loaded them: {names}"
    )
    return WaitedFor(words, BROKER, action=_LOADED)


def _awaited_to_join(group: ClassicGroup, idle: list[Idle], missing: list[Member], at_us: int) -> WaitedFor:
    if missing and (loaded := _loaded(group, missing)) is not None:
        return loaded
    if missing:
        held = held_back(group, at_us)
        missing = sorted(missing, key=lambda member: not member.last_frame)  # stable sort: members with captured frames first
        names = some([f"{who(member)}, {held(member) or _outcome(group, member)}" for member in missing], _NAMED, "; ", "; and ")
        if all(map(held, missing)):
            return WaitedFor(names, BROKER, action=WHEN_HELD_BACK)
        certainty = None if all(member.last_frame for member in missing) else HEURISTIC  # they may be consuming
        return WaitedFor(names, CLIENT, certainty=certainty, **about_one(missing))
    asked = {waiting.member_id for waiting in group.waiting_joins()}
    unused = [(id_, issued) for id_, issued in group.issued.items() if id_ not in asked]
    if unused and any(one.had_some for one in idle):
        each = [
            f"{id_}, an id that was issued to {the_client(one.actor)} at {clock(one.issued_us)} and not used" for id_, one in unused
        ]
        words = some(each, _NAMED, "; ", "; and ")
        [(id_, issued), *others] = unused
        return WaitedFor(words, CLIENT) if others else WaitedFor(words, CLIENT, issued.actor, id_)
    if not any(one.had_some for one in idle):
        words = "the end of the join phase, which began in an empty group and lasts longer while members come"
        return WaitedFor(f"{words} (group.initial.rebalance.delay.ms)", CONFIG)
    return WaitedFor("the coordinator: every known member has asked to join, and it does not end the join phase", BROKER)


def _awaited_to_sync(group: ClassicGroup, at_us: int) -> WaitedFor:
    newest = group.newest_generation
    assert newest is not None
    leader = group.members.get(newest.leader)
    if newest.leader_synced_us is not None:
        since = clock(newest.leader_synced_us)
        return WaitedFor(f"the coordinator, which has the leader's assignment since {since} and gives it to no member", BROKER)
    if leader is None:
        return WaitedFor(f"the assignment of the leader {newest.leader}", CLIENT, member_id=newest.leader)
    held = held_back(group, at_us)(leader)
    if held:
        return WaitedFor(f"the assignment of the leader, {who(leader)}, {held}", BROKER, action=WHEN_HELD_BACK)
    closed_us = hung_up_since(group, leader)
    fate = f", which {how_it_went(leader)}: its connection closed at {clock(closed_us)}" if closed_us is not None else ""
    words = f"the assignment of the leader, {who(leader)}{fate}"
    return WaitedFor(words, CLIENT, leader.actor, leader.id, leader.instance_id)


@timer_rule(
    "group stands still",
    WARNING,
    CONFIRMED,
    CLIENT,
    matter=Matter.REQUEST,
    suppressed_by=("C-04", "C-05", "C-13", "G-12", "M-13"),
    pace_ms=60_000,
)
def R_18(group: ClassicGroup) -> Iterator[Due]:
    """No member consumes: the members gave up their partitions and wait for a member that does not come, and lag grows.

    Condition: Members that own no partitions have waited for 20 s (standstill_ms) for the end of the join phase or for their
        assignment, however long the timeouts of the group are, and no more members that may still be at work than idle ones are
        waited for. Reported again after twice that time, then as an error if no member is left that may be at work, after four
        times, and so on; a standstill that comes again within a minute is the same finding, which is over after a minute without
        another.
    Expected: A rebalance takes a few seconds.
    Action: Look at the process of the client named. If it runs, take a thread dump of its poll loop, and restart it if it hangs. If
        it died, the others wait until its session ends: find out why, let it leave on shutdown, or shorten session.timeout.ms.
    False alarms: Cooperative consumers that keep partitions while they wait, and groups of other types than consumers, are not
        judged; nor is a group whose member list is not known. Only heuristic if one that is waited for was never seen.
    """
    newest = group.newest_generation
    if newest is None or newest.roster is None:
        return
    idle = idle_in_join_phase(group)
    if idle:
        missing = awaited_members(group)
        working = sum(1 for member in missing if _connected(group, member))
        if working and (working > len(idle) or not any(one.had_some for one in idle)):
            return  # most of the group may still be consuming
        find = partial(_awaited_to_join, group, idle, missing)
    else:
        idle = _idle_in_sync_phase(group)
        if not idle:
            return
        find = partial(_awaited_to_sync, group)
    since_us, allowed_us = _since_us(idle), group.settings.standstill_ms * 1_000
    gone_us = [one.gave_up_us for one in idle]
    until_us = max(gone_us) + _ASKS_AGAIN_US if all(gone_us) else None
    count = len(idle)
    worst = ERROR if sum(1 for member in group.present_members() if _connected(group, member)) <= count else WARNING
    hold = f"{count} member holds no partitions and waits" if count == 1 else f"{count} members hold no partitions and wait"

    def describe(lasted_us: int) -> Breach:
        awaited = find(since_us + lasted_us)
        return Breach(
            "",
            f"Group {group.name} stands still: since {clock(since_us)}, {seconds(lasted_us)}, {hold} for {awaited.words}."
            f"{cost_so_far(sum(since_us + lasted_us - one.since_us for one in idle))}",
            f"{count} unanswered {'request' if count == 1 else 'requests'} of members that own nothing, for {seconds(lasted_us)}",
            (min(idle, key=lambda one: one.since_us).frame,),
            generation=group.generation,
            blame=awaited.blame,
            action=awaited.action or _ACTIONS.get(awaited.blame),
            certainty=awaited.certainty,
            actor=awaited.actor,
            member_id=awaited.member_id,
            instance_id=awaited.instance_id,
        )

    for doubling in range(_DOUBLINGS):
        lasted_us = allowed_us << doubling
        severity = worst if doubling else WARNING
        yield Due(since_us + lasted_us, "", severity, lambda lasted_us=lasted_us: describe(lasted_us), until_us)  # type: ignore[misc]

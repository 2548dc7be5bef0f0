"""Family R: the time between JoinGroup and SyncGroup: the leader, the followers, the coordinator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from coordinator_model.finding import BROKER, CLIENT, CONFIRMED, ERROR, HEURISTIC, WARNING
from coordinator_model.groups.classic.group import ClassicGroup
from coordinator_model.groups.evidence import lasting_name, request_evidence
from coordinator_model.groups.group_coordinator import answers_since_us
from coordinator_model.groups.records import Generation, Member
from coordinator_model.rules.base import Breach, Due, Matter, timer_rule, who
from coordinator_model.rules.held_back import free_until_us, unanswered
from coordinator_model.rules.join_phase import processed_since
from coordinator_model.wording import clock, plural, seconds

_BESIDE_US: Final = 4_000_000  #: members of other groups heartbeat each 3 s
_ANSWER_LOST: Final = (
    "See whether that process runs. If it does, and waits, the network between may have dropped the answer: a load balancer, proxy or "
    "firewall forgets connections that are idle for less than a JoinGroup waits. Raise its idle timeout, or connect without it. If the "
    "process hangs, take a thread dump of it."
)


def _owing_sync(group: ClassicGroup, newest: Generation) -> Iterator[Member]:
    """Yield the members of the newest generation that have not sent a SyncGroup for it, including removed ones."""
    for member in group.members.values():
        if member.joined == newest.generation and member.synced != newest.generation:
            yield member


class _Unsynced(NamedTuple):
    """A present and connected member of the newest generation that has not sent a SyncGroup for it."""

    member: Member
    timeout_us: int  #: the sync timer of its generation, as far as it is known
    bounded: bool
    until_us: int | None  #: since when its broker keeps it waiting; None if that does not


def _unsynced(group: ClassicGroup, newest: Generation) -> Iterator[_Unsynced]:
    """Yield the present and connected members of the newest generation that have not sent a SyncGroup for it."""
    owing = [member for member in _owing_sync(group, newest) if member.present]
    if owing:
        waiting, (known_ms, _) = unanswered(group), group.rebalance_timeout_ms()
        for member in owing:
            alive = not member.disconnected_us or member.last_frame_us > member.disconnected_us
            if alive and member.parked_join not in group.open:
                timeout_ms = max(known_ms, member.rebalance_timeout_ms or 0)
                bounded = timeout_ms <= group.settings.unbounded_join_ms
                until_us = free_until_us(waiting.get(member.actor.connection))
                yield _Unsynced(member, group.settings.bounded_ms(timeout_ms) * 1_000, bounded, until_us)


def _provably_lasts(group: ClassicGroup, newest: Generation, since_us: int) -> bool:
    """Return True if a frame proves that the group was at this generation, and in no other join phase, at ``since_us`` or later.

    A SyncGroup that the coordinator holds proves it, because it is answered as soon as the phase ends. Any other success at the
    generation proves it too. If the generation has one member, no other can start a join phase.
    """
    if newest.roster is not None and len(newest.roster) == 1:
        return True
    if any(one.generation == newest.generation and processed_since(group, one) is not None for one in group.waiting_syncs()):
        return True
    return any(
        member.joined == newest.generation and (member.proven_us or 0) > since_us and member.rejoin_asked_us is None
        for member in group.present_members()
    )


def _two_stages(group: ClassicGroup, unsynced: _Unsynced, summary: str, observed: str) -> Iterator[Due]:
    """Yield a warning at half the rebalance timeout after the member joined the generation, and an error past it."""
    newest = group.generations[-1]
    member, timeout_us, bounded, until_us = unsynced
    subject = lasting_name(member.actor, member.id, member.instance_id)  # one that loops has another member id each time
    since_us = max(member.joined_us, group.coordinator_changes.throttled_until_us)

    def describe() -> Breach:
        silent = member.last_frame_us <= member.joined_us
        return Breach.of_member(
            member,
            f"{summary} (allowed {seconds(timeout_us)}).",
            f"{observed} since it was answered with generation {newest.generation}",
            (newest.proof,) if member.joined_frame is None else (member.joined_frame,),
            subject=subject,
            generation=newest.generation,
            certainty=None if not silent and _provably_lasts(group, newest, member.joined_us + timeout_us // 4) else HEURISTIC,
            action=_ANSWER_LOST if silent else None,
        )

    yield Due(since_us + timeout_us // 2, subject, WARNING, describe, until_us)
    if bounded:
        late_us = timeout_us + group.settings.slack_us(timeout_us // 1_000)
        yield Due(since_us + late_us, subject, ERROR, describe, until_us)


def _may_have_lost(group: ClassicGroup, member: Member, newest: Generation) -> str:
    """Return that a member was answered and has sent nothing since, so that it may not have got the answer."""
    waited_us = member.joined_us - group.last_sent_us(member)
    waited = f" after {seconds(waited_us)}" if waited_us else ""
    return (
        f"was answered{waited}, at {clock(member.joined_us)}, with generation {newest.generation} of group {group.name}, has sent nothing "
        "since, so that the answer may be lost,"
    )


@timer_rule("leader not syncing", ERROR, CONFIRMED, CLIENT)
def R_02(group: ClassicGroup) -> Iterator[Due]:
    """The member that has to compute the assignment does not deliver it; everybody waits. Brokers before 2.8.1 wait for ever.

    Condition: The leader received the generation, its connection lives, and it sent no SyncGroup: a warning at half the rebalance
        timeout, an error past it.
    Expected: The leader sends its assignment with SyncGroup as soon as it has the member list.
    Action: Take a thread dump of the leader: look at its assignor and its metadata requests. Restart it if it hangs: the
        coordinator removes it only at its rebalance timeout, and brokers before 2.8.1 never.
    False alarms: Only heuristic while no SyncGroup of another member waits and nobody is served at the generation. A leader whose
        connection ended is a T-04. A static leader replaced before JoinGroup v9 does not know that it leads.
    """
    newest = group.newest_generation
    if newest is None or newest.leader_synced_us is not None or newest.sync_done_us is not None or newest.unsettled_us:
        return
    for unsynced in _unsynced(group, newest):
        member = unsynced.member
        if member.id == newest.leader:
            parked = sum(1 for waiting in group.waiting_syncs() if waiting.generation == newest.generation)
            others = len(newest.roster) - 1 if newest.roster is not None else parked
            waiting = (
                f"{others} other {plural(others, 'member')} {plural(others, 'has', 'have')} waited"
                if others
                else "the group has waited"
            )
            summary = (
                f"{who(member)} leads generation {newest.generation} of group {group.name} and has sent no assignment: "
                f"{waiting} for its SyncGroup since {clock(newest.proven_us)}"
            )
            yield from _two_stages(group, unsynced, summary, "no SyncGroup from the leader")


@timer_rule("follower not syncing", WARNING, CONFIRMED, CLIENT, suppressed_by=("R-07", "T-05", "T-12"), pace_ms=300_000)
def R_03(group: ClassicGroup) -> Iterator[Due]:
    """A member joined and does not fetch its assignment; its partitions are idle and it will be removed although it heartbeats.

    Condition: A follower was answered with the generation and sent no SyncGroup for half the rebalance timeout (warning), or past it
        (error). One from which nothing came since may not have got the answer: heuristic. What one client does again within five
        minutes, under whatever member id, is the same finding, which is over after five minutes without it.
    Expected: A member sends SyncGroup right after its JoinGroup was answered.
    Action: Take a thread dump of that client: it hangs between the answer to its JoinGroup and its SyncGroup, most often in a
        rebalance callback. Restart it to give its partitions away now.
    False alarms: Only heuristic while nobody else is served at the
        generation.
    """
    newest = group.newest_generation
    if newest is None or newest.unsettled_us:
        return
    for unsynced in _unsynced(group, newest):
        member = unsynced.member
        if member.id != newest.leader:
            if member.last_frame_us > member.joined_us:
                got = f"received generation {newest.generation} of group {group.name}"
            else:
                got = _may_have_lost(group, member, newest)
            summary = (
                f"{who(member)} {got} and has not asked for its assignment: the coordinator will remove it, even if it heartbeats"
            )
            yield from _two_stages(group, unsynced, summary, "no SyncGroup")


@timer_rule(
    "assignment sent, nobody answered", ERROR, CONFIRMED, BROKER, matter=Matter.REQUEST, suppressed_by=("C-04", "C-05", "C-13")
)
def R_04(group: ClassicGroup) -> Iterator[Due]:
    """The coordinator cannot write the assignment: its offsets partition lacks in-sync replicas, or its thread is stuck.

    Condition: The leader's SyncGroup was captured and stands open, and no SyncGroup was answered for the write timeout (5 s unless
        configured) plus 2 s and a tenth, and for 4 s more, after which members of other groups show whether it answers nobody.
        A coordinator that other groups have lost, too, is C-14's: it has the time anew from its first answer to any of them.
    Expected: The coordinator answers every waiting SyncGroup once the assignment is written.
    Action: Look at the in-sync replicas of the group's __consumer_offsets partition and at the coordinator's threads.
    False alarms: A broker whose offsets.commit.timeout.ms is longer than the monitor was told. A closed connection is owed no
        answer.
    """
    newest = group.newest_generation
    if newest is None or newest.sync_done_us is not None:
        return
    leader = group.members.get(newest.leader)
    sent = group.open.get(leader.parked_sync) if leader is not None and leader.parked_sync is not None else None
    # Only a SyncGroup that is still open has certainly reached the coordinator, which answers it however the phase ends.
    if sent is None or sent.generation != newest.generation or not sent.gap_free:
        return
    since_us, answers_us = processed_since(group, sent), answers_since_us(group)
    if since_us is None or answers_us is None:
        return
    since_us = max(since_us, answers_us)
    allowed_us = group.settings.write_timeout_ms * 1_000 + group.settings.slack_us(group.settings.write_timeout_ms) + _BESIDE_US

    def describe() -> Breach:
        waiting = sum(1 for exchange in group.waiting_syncs() if exchange.generation == newest.generation)
        return Breach(
            "",
            f"The leader of group {group.name} sent the assignment of generation {newest.generation}, and the coordinator "
            f"{group.broker} has answered no member: {waiting} {plural(waiting, 'member')} wait{'s' if waiting == 1 else ''} "
            f"(allowed {seconds(allowed_us)}, from the configured write timeout).",
            f"{waiting} unanswered SyncGroup requests {seconds(allowed_us)} after the leader's",
            (request_evidence(sent),),
            generation=newest.generation,
        )

    yield Due(since_us + allowed_us, "", ERROR, describe)

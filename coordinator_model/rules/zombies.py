"""Families G, M and R: members that go on although they are refused.

Any rebalance leaves members behind for a moment, which are refused once or twice and join again. One that does not is a zombie.
"""

from __future__ import annotations

from coordinator_model.finding import CLIENT, ERROR, HEURISTIC, WARNING
from coordinator_model.groups.classic.group import ClassicGroup
from coordinator_model.groups.events import Refused
from coordinator_model.groups.records import Member
from coordinator_model.rules.base import Breach, is_refused_no_longer, rule, who, work_of
from coordinator_model.wire.constants import HEARTBEAT, ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID
from coordinator_model.wording import counted, seconds


def is_zombie(group: ClassicGroup, refused: Refused) -> bool:
    """Return True if a member was refused so often and for so long, without a JoinGroup, that a short lag is ruled out.

    Both number and time count, because some clients send a burst of refused commits within milliseconds.
    """
    member, refusals = refused.member, refused.member.refusals
    if refusals is None or refusals.count < group.settings.zombie_refusals or group.parked(member):
        return False
    span_us = max(2 * member.heartbeat_interval_us, group.settings.zombie_span_ms * 1_000)
    return refusals.last_us - refusals.first_us >= span_us


def time_to_rejoin_us(group: ClassicGroup, member: Member) -> int:
    """Return how long a refused member may take to join again: its application may poll as rarely as its rebalance timeout allows."""
    return (member.rebalance_timeout_ms or group.settings.unbounded_join_ms) * 1_000


@rule("zombie generation", ERROR, HEURISTIC, CLIENT, suppressed_by=("S-02", "R-11"), over=is_refused_no_longer)
def G_01(group: ClassicGroup, refused: Refused) -> Breach | None:
    """A fenced consumer goes on working at an old generation: it processes records that now belong to others, and its commits are
    lost.

    Condition: The same member was refused with ILLEGAL_GENERATION at the same generation at least three times, over at least 10 s
        and two of its heartbeat intervals, sent no JoinGroup in between, and the group is proven to be at a higher generation.
    Expected: After ILLEGAL_GENERATION a member drops its generation and sends a JoinGroup.
    Action: Take a thread dump of that client or restart it: look for a blocked poll loop, or a client library that ignores error
        22.
    False alarms: A static member that missed a generation stays behind until it rejoins: it is given its rebalance timeout.
    """
    member, refusals = refused.member, refused.member.refusals
    if refusals is None or refusals.error != ILLEGAL_GENERATION or not is_zombie(group, refused):
        return None
    proof = group.proof_beyond(refusals.generation, refused.exchange.res_us)
    if proof is None:
        return None
    # A static member that missed a generation lawfully stays behind until it rejoins.
    patience_us = (member.rebalance_timeout_ms or 0) * 1_000 if member.instance_id is not None else 0
    if refusals.last_us - proof.proven_us < patience_us:
        return None
    span = seconds(refusals.last_us - refusals.first_us)
    return Breach.of_member(
        member,
        f"{who(member)} keeps using generation {refusals.generation} of group {group.name} although it was refused "
        f"{refusals.count} times in {span}; the group is at generation {proof.generation}.",
        f"{refusals.count} requests at generation {refusals.generation} refused with ILLEGAL_GENERATION over {span}, no JoinGroup between",
        (*refusals.evidence, proof.proof),
        generation=refusals.generation,
    )


@rule("zombie member", ERROR, HEURISTIC, CLIENT, suppressed_by=("S-02",), over=is_refused_no_longer)
def M_01(group: ClassicGroup, refused: Refused) -> Breach | None:
    """An evicted member goes on processing records that now belong to others.

    Condition: The same member id was refused with UNKNOWN_MEMBER_ID at least three times, over at least 10 s and two of its
        heartbeat intervals (warning), or over more than its rebalance timeout (error), and sent no JoinGroup in between.
    Expected: After UNKNOWN_MEMBER_ID a member forgets its id and joins again.
    Action: Restart that client; compare its session timeout with its pauses (garbage collection, suspended host).
    False alarms: A starved client that polls so late that it rejoins within its rebalance timeout: a warning, until it does. What a
        client had under way when it left is refused within seconds, and too soon to count.
    """
    member, refusals = refused.member, refused.member.refusals
    if refusals is None or refusals.error != UNKNOWN_MEMBER_ID or not is_zombie(group, refused):
        return None
    span_us, allowed_us = refusals.last_us - refusals.first_us, time_to_rejoin_us(group, member)
    span, overdue = seconds(span_us), span_us > allowed_us
    return Breach.of_member(
        member,
        f"{who(member)} goes on in group {group.name} although the coordinator no longer knows it: "
        f"refused {refusals.count} times in {span} without joining again.",
        f"{counted(refusals.count, 'request')} refused with UNKNOWN_MEMBER_ID over {span}, no JoinGroup between",
        tuple(refusals.evidence),
        generation=refusals.generation,
        severity=None if overdue else WARNING,
    )


@rule("left-behind static member", ERROR, HEURISTIC, CLIENT, suppressed_by=("S-02",), over=is_refused_no_longer)
def R_11(group: ClassicGroup, refused: Refused) -> Breach | None:
    """A static member missed a generation and keeps its place in the group: no other member gets its partitions, and it does not
    work on them.

    Condition: A member with an instance id is in the newest member list and heartbeats at an older generation: refused at least
        three times over at least 10 s and two of its heartbeat intervals without a JoinGroup. An error once its rebalance timeout
        has passed.
    Expected: After ILLEGAL_GENERATION a member drops its generation and sends a JoinGroup.
    Action: Restart that client: look for a blocked poll loop, or a client library that ignores error 22.
    False alarms: None known.
    """
    exchange, member, newest = refused.exchange, refused.member, group.newest_generation
    refusals = member.refusals
    if exchange.api_key != HEARTBEAT or refusals is None or refusals.error != ILLEGAL_GENERATION or member.instance_id is None:
        return None
    if newest is None or newest.roster is None or member.id not in newest.roster or not is_zombie(group, refused):
        return None
    if newest.generation <= refusals.generation:
        return None
    behind_us = refusals.last_us - newest.proven_us
    overdue = behind_us > (member.rebalance_timeout_ms or group.settings.unbounded_join_ms) * 1_000
    return Breach.of_member(
        member,
        f"Static {who(member)}, instance {member.instance_id}, stayed behind at generation {refusals.generation} while group {group.name} "
        f"went on to {newest.generation} with it: its {work_of(group.protocol_type)} are its own and idle, and it does not "
        "rejoin.",
        f"{counted(refusals.count, 'request')} refused with ILLEGAL_GENERATION over {seconds(refusals.last_us - refusals.first_us)}, "
        "no JoinGroup between",
        (*refusals.evidence, newest.proof),
        generation=refusals.generation,
        severity=ERROR if overdue else WARNING,
    )

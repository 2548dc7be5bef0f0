"""Family M: member identity.

The trap: UNKNOWN_MEMBER_ID is how every eviction is told, and clients recover from it within seconds. Only whoever does not is a finding.
"""

from __future__ import annotations

from coordinator_model.findings import Blame, Certainty, Severity
from coordinator_model.groups.classic import UNKNOWN_MEMBER_ID, ClassicGroup, request_evidence, response_evidence
from coordinator_model.groups.happenings import Accepted, Answered, Refused
from coordinator_model.rules.base import Breach, FrameRule, about, seconds, who, whom
from coordinator_model.rules.generations import is_zombie, still_refused
from coordinator_model.wire import API_NAMES


def _zombie_member(group: ClassicGroup, refused: Refused) -> Breach | None:
    member, refusals = refused.member, refused.member.refusals
    if refusals is None or refusals.error != UNKNOWN_MEMBER_ID or member.leaving or not is_zombie(group, refused):
        return None
    span = seconds(refusals.last_us - refusals.first_us)
    return Breach(
        member.id,
        f"{who(member)} goes on in group {group.name} although the coordinator no longer knows it: "
        f"refused {refusals.count} times in {span} without joining anew.",
        f"{refusals.count} requests refused with UNKNOWN_MEMBER_ID over {span}, no JoinGroup between",
        tuple(refusals.evidence),
        generation=refusals.generation,
        **about(member),
    )


def _unknown_accepted(group: ClassicGroup, accepted: Accepted) -> Breach | None:
    exchange, newest = accepted.exchange, group.round
    if newest is None or newest.roster is None or newest.generation != exchange.generation:
        return None
    if exchange.member_id in newest.roster:
        return None
    member = group.members.get(exchange.member_id)
    if member is not None and member.joined == exchange.generation:
        return None
    api = API_NAMES[exchange.api_key]
    return Breach(
        exchange.member_id,
        f"The coordinator {exchange.broker} accepted a {api} from {exchange.member_id} {whom(exchange.actor)}, who is not among the "
        f"{len(newest.roster)} members of generation {newest.generation} of group {group.name}.",
        f"{api} at generation {exchange.generation} accepted from a member id that the leader's member list does not contain",
        (newest.proof, request_evidence(exchange), response_evidence(exchange, exchange.error)),
        actor=exchange.actor,
        member_id=exchange.member_id,
        instance_id=exchange.instance_id,
        generation=exchange.generation,
    )


def _answered_for_another(group: ClassicGroup, answered: Answered) -> Breach | None:
    exchange = answered.exchange
    return Breach(
        exchange.member_id,
        f"The coordinator {exchange.broker} answered the JoinGroup of member {exchange.member_id} {whom(exchange.actor)} in group "
        f"{group.name} with the member id {answered.member_id}: the client takes on a foreign identity.",
        f"JoinGroup of {exchange.member_id} succeeded as {answered.member_id}",
        (request_evidence(exchange), response_evidence(exchange, 0)),
        actor=exchange.actor,
        member_id=exchange.member_id,
        instance_id=exchange.instance_id,
    )


M_01 = FrameRule(
    id="M-01",
    name="zombie member",
    severity=Severity.ERROR,
    certainty=Certainty.HEURISTIC,
    blame=Blame.CLIENT,
    meaning="An evicted member goes on processing records that now belong to others.",
    condition="The same member id was refused with UNKNOWN_MEMBER_ID at least three times, over at least 10 s and two of its heartbeat "
    "intervals, and sent no JoinGroup in between.",
    expected="After UNKNOWN_MEMBER_ID a member forgets its id and joins anew.",
    action="Restart that client; compare its session timeout with its pauses (garbage collection, suspended host).",
    false_alarms="Requests in flight around a member's own LeaveGroup: not counted.",
    folds_under=("S-02",),
    checks={Refused: _zombie_member},
    over=lambda group, member_id: not still_refused(group, member_id),
)

M_02 = FrameRule(
    id="M-02",
    name="unknown member accepted",
    severity=Severity.CRITICAL,
    certainty=Certainty.CONFIRMED,
    blame=Blame.BROKER,
    meaning="Fencing is broken: somebody who is not a member is let through.",
    condition="A Heartbeat, SyncGroup or OffsetCommit was accepted at generation g from a member id that is not in the leader's member "
    "list of g and was given no JoinGroup success at g.",
    expected="UNKNOWN_MEMBER_ID.",
    action="Stop the named client, keep the broker's logs, and look for a proxy that rewrites answers.",
    false_alarms="A coordinator that is still loading answers every Heartbeat with success: ignored while that broker says it loads.",
    checks={Accepted: _unknown_accepted},
)

M_08 = FrameRule(
    id="M-08",
    name="answer for somebody else",
    severity=Severity.CRITICAL,
    certainty=Certainty.CERTAIN,
    blame=Blame.BROKER,
    meaning="A client adopts a foreign identity; two processes then act as one member.",
    condition="A JoinGroup that named a member id succeeded under another one.",
    expected="The member id that asked.",
    action="Look for a proxy that mixes up connections or correlation ids.",
    false_alarms="None known.",
    checks={Answered: _answered_for_another},
)

RULES = (M_01, M_02, M_08)

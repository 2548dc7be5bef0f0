"""Family G: illegal generations.

The trap: an ILLEGAL_GENERATION on the wire is normal. Each rebalance leaves members behind for a moment, and the coordinator tells
them so. What is never normal is to go on regardless, or to be let through.
"""

from __future__ import annotations

from coordinator_model.findings import Blame, Certainty, Severity
from coordinator_model.groups.classic import (
    ILLEGAL_GENERATION,
    REBALANCE_IN_PROGRESS,
    ClassicGroup,
    request_evidence,
    response_evidence,
)
from coordinator_model.groups.happenings import Accepted, Refused, Regressed
from coordinator_model.rules.base import Breach, FrameRule, about, seconds, who, whom
from coordinator_model.wire import API_NAMES


def is_zombie(group: ClassicGroup, refused: Refused) -> bool:
    """Whether one member was refused often enough, over long enough, without joining anew, to rule out a moment's lag.

    Counted by time spanned as well as by number: some clients send a burst of refused commits within milliseconds.
    """
    member, refusals = refused.member, refused.member.refusals
    if refusals is None or refusals.count < group.settings.zombie_refusals:
        return False
    span_us = max(2 * member.heartbeat_interval_us, group.settings.zombie_span_ms * 1_000)
    return refusals.last_us - refusals.first_us >= span_us


def still_refused(group: ClassicGroup, member_id: str) -> bool:
    member = group.members.get(member_id)
    return member is not None and member.refusals is not None


def _zombie_generation(group: ClassicGroup, refused: Refused) -> Breach | None:
    member, refusals = refused.member, refused.member.refusals
    if refusals is None or refusals.error != ILLEGAL_GENERATION or not is_zombie(group, refused):
        return None
    proof = group.proof_beyond(refusals.generation, refused.exchange.res_us)
    if proof is None:
        return None
    # A static member that missed a round lawfully stays behind until it rejoins.
    patience_us = (member.rebalance_timeout_ms or 0) * 1_000 if member.instance_id is not None else 0
    if refusals.last_us - proof.proven_us < patience_us:
        return None
    span = seconds(refusals.last_us - refusals.first_us)
    return Breach(
        member.id,
        f"{who(member)} keeps using generation {refusals.generation} of group {group.name} although it was refused "
        f"{refusals.count} times in {span}; the group is at generation {proof.generation}.",
        f"{refusals.count} requests at generation {refusals.generation} refused with ILLEGAL_GENERATION over {span}, no JoinGroup between",
        (*refusals.evidence, proof.proof),
        generation=refusals.generation,
        **about(member),
    )


def _stale_accepted(group: ClassicGroup, accepted: Accepted) -> Breach | None:
    exchange = accepted.exchange
    if exchange.generation < 0:
        return None
    proof = group.proof_beyond(exchange.generation, exchange.effective_us)
    if proof is None:
        return None
    api = API_NAMES[exchange.api_key]
    actor = exchange.actor
    return Breach(
        exchange.member_id,
        f"The coordinator {exchange.broker} accepted a {api} at generation {exchange.generation} from member {exchange.member_id} "
        f"{whom(actor)} in group {group.name}, which had been at generation {proof.generation} "
        f"for {seconds(exchange.effective_us - proof.proven_us)}: it, or a proxy before it, does not fence stale members.",
        f"{api} at generation {exchange.generation} answered "
        f"{'REBALANCE_IN_PROGRESS' if exchange.error == REBALANCE_IN_PROGRESS else 'with success'} "
        f"after generation {proof.generation} was handed out",
        (proof.proof, request_evidence(exchange), response_evidence(exchange, exchange.error)),
        actor=actor,
        member_id=exchange.member_id,
        instance_id=exchange.instance_id,
        generation=exchange.generation,
    )


def _went_back(group: ClassicGroup, regressed: Regressed) -> Breach | None:
    if regressed.explanation is not None:
        return None
    exchange, before = regressed.exchange, regressed.before
    return Breach(
        "",
        f"The coordinator {exchange.broker} put group {group.name} back from generation {before.generation} to "
        f"{regressed.generation}, and nothing that was seen explains it.",
        f"a JoinGroup asked {seconds(exchange.effective_us - before.proven_us)} after generation {before.generation} was handed out "
        f"succeeded at generation {regressed.generation}",
        (before.proof, request_evidence(exchange), response_evidence(exchange, 0, regressed.generation)),
        actor=exchange.actor,
        member_id=exchange.member_id or None,
        generation=regressed.generation,
    )


def _explained_reset(group: ClassicGroup, regressed: Regressed) -> Breach | None:
    if regressed.explanation is None:
        return None
    exchange, before = regressed.exchange, regressed.before
    return Breach(
        "",
        f"Group {group.name} went from generation {before.generation} to {regressed.generation}: {regressed.explanation}.",
        f"generation {regressed.generation} after generation {before.generation}",
        (before.proof, response_evidence(exchange, 0, regressed.generation)),
        actor=exchange.actor,
        generation=regressed.generation,
    )


G_01 = FrameRule(
    id="G-01",
    name="zombie generation",
    severity=Severity.ERROR,
    certainty=Certainty.HEURISTIC,
    blame=Blame.CLIENT,
    meaning="A fenced consumer goes on working at an old generation: it processes records that now belong to others, and its "
    "commits are lost.",
    condition="The same member was refused with ILLEGAL_GENERATION at the same generation at least three times, over at least 10 s and "
    "two of its heartbeat intervals, sent no JoinGroup in between, and the group is proven to be at a higher generation.",
    expected="After ILLEGAL_GENERATION a member drops its generation and sends a JoinGroup.",
    action="Take a thread dump of that client or restart it: look for a blocked poll loop, or a client library that ignores error 22.",
    false_alarms="A static member that missed a round stays behind until it rejoins: it is given its rebalance timeout.",
    folds_under=("S-02",),
    checks={Refused: _zombie_generation},
    over=lambda group, member_id: not still_refused(group, member_id),
)

G_02 = FrameRule(
    id="G-02",
    name="stale generation accepted",
    severity=Severity.CRITICAL,
    certainty=Certainty.CONFIRMED,
    blame=Blame.BROKER,
    meaning="Fencing is broken: a member of an old generation is let through and may overwrite offsets of the rightful owner.",
    condition="A Heartbeat, SyncGroup or OffsetCommit at generation g succeeded (or a Heartbeat was answered REBALANCE_IN_PROGRESS), and "
    "a JoinGroup success at a higher generation was captured before that request can have been processed.",
    expected="ILLEGAL_GENERATION or UNKNOWN_MEMBER_ID.",
    action="Stop the named client, keep the broker's logs, and look for two brokers that both act as coordinator or for a proxy "
    "that rewrites answers.",
    false_alarms="A coordinator that is still loading answers every Heartbeat with success: ignored while that broker says it loads. "
    "Groups with members of the new protocol have an epoch per member: not judged.",
    checks={Accepted: _stale_accepted},
)

G_04 = FrameRule(
    id="G-04",
    name="generation went back",
    severity=Severity.ERROR,
    certainty=Certainty.CONFIRMED,
    blame=Blame.BROKER,
    meaning="The coordinator lost state: offsets committed in the lost generations may be gone as well.",
    condition="A JoinGroup succeeded at a lower generation than one handed out before it was asked, on the same coordinator, and the group "
    "was neither deleted nor can it have been empty in between.",
    expected="Within one life of a group the generation only grows.",
    action="Look at leadership changes of the group's __consumer_offsets partition, for unclean elections and for truncation.",
    false_alarms="Deletion, expiry of an empty group and failover restart the count: reported as G-05, or not at all.",
    checks={Regressed: _went_back},
)

G_05 = FrameRule(
    id="G-05",
    name="generation restarted",
    severity=Severity.INFO,
    certainty=Certainty.CONFIRMED,
    blame=Blame.OPERATOR,
    meaning="The group began a new life; kept so that the jump in its generation is documented.",
    condition="As G-04, but the group was deleted or may have been empty in between.",
    expected="A group that was deleted, or expired while empty, starts again.",
    action="None.",
    false_alarms="None known.",
    checks={Regressed: _explained_reset},
)

RULES = (G_01, G_02, G_04, G_05)

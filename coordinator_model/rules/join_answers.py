"""Rules of family P about the content of a JoinGroup response: protocol, leader, member list, SkipAssignment."""

from __future__ import annotations

from typing import Any

from coordinator_model.finding import BROKER, CERTAIN, CLIENT, CONFIG, CONFIRMED, CRITICAL, ERROR, WARNING
from coordinator_model.groups.classic.group import ClassicGroup
from coordinator_model.groups.classic.trackers.assignments import JoinAnswered, NoCommonProtocol, SyncAsked
from coordinator_model.groups.classic.trackers.plans import is_foreign, same_instance
from coordinator_model.groups.evidence import exchange_evidence, request_evidence, response_evidence
from coordinator_model.groups.records import JoinFacts, SyncFacts
from coordinator_model.rules.base import Breach, rule, sender_text, whom
from coordinator_model.wire.constants import LEADER_NAMED_SINCE
from coordinator_model.wording import counted

NAMED_AT_MOST = 3


def _answer_breach(answered: JoinAnswered, summary: str, observed: str, **fields: Any) -> Breach:
    exchange, body = answered.exchange, answered.body
    return Breach(
        body.member_id,
        f"The coordinator {exchange.broker} {summary}",
        observed,
        (request_evidence(exchange), response_evidence(exchange, 0, body.generation_id)),
        actor=exchange.actor,
        member_id=body.member_id,
        instance_id=exchange.instance_id,
        generation=body.generation_id,
        **fields,
    )


@rule("no common protocol", WARNING, CERTAIN, CONFIG, over=lambda group, subject: subject not in group.assignments.refused)
def P_02(group: ClassicGroup, refused: NoCommonProtocol) -> Breach | None:
    """A member can never join: it offers no assignor that all others support.

    Condition: JoinGroup answered INCONSISTENT_GROUP_PROTOCOL; an error when the same client on the same host is refused again.
    Expected: All members of a group share at least one assignor.
    Action: Roll a new assignor out in two steps: first add it beside the old one everywhere, then remove the old one.
    False alarms: None known.
    """
    exchange = refused.exchange
    ask = exchange.facts
    assert isinstance(ask, JoinFacts)
    others = sorted({f"{'/'.join(member.protocols)} by {member.actor.client_id}" for member in group.present_members()})
    offers = f"; the others offer {', '.join(others[:NAMED_AT_MOST])}" if others else ""
    times = f"{refused.times} times in a row" if refused.times > 1 else "once"
    return Breach.of_sender(
        exchange,
        f"{sender_text(exchange)} cannot join group {group.name}: it offers {'/'.join(ask.protocols) or 'nothing'} of type "
        f"{ask.protocol_type or 'none'}, which not all members support{offers}.",
        f"JoinGroup refused with INCONSISTENT_GROUP_PROTOCOL {times}",
        exchange_evidence(exchange),
        severity=ERROR if refused.times > 1 else WARNING,
        subject=refused.subject,
    )


@rule("illegal choice of protocol", CRITICAL, CONFIRMED, BROKER)
def P_03(group: ClassicGroup, answered: JoinAnswered) -> Breach | None:
    """Members cannot decode each other's metadata: the group runs a protocol that not all of them offered.

    Condition: A JoinGroup success names a protocol that the request it answers did not offer, or another protocol type.
    Expected: A protocol that every member offered.
    Action: Keep the frames and the coordinator's log; look for a proxy that rewrites answers.
    False alarms: Brokers 2.3 and 2.4 answer a returning static member with what the group runs: not judged up to JoinGroup v6.
    """
    exchange, body = answered.exchange, answered.body
    ask = exchange.facts
    assert isinstance(ask, JoinFacts)
    if not is_foreign(exchange, body):
        return None
    named = f"{body.protocol_type or ask.protocol_type}/{body.protocol_name}"
    offered = f"{ask.protocol_type}/{' or '.join(ask.protocols)}"
    return _answer_breach(
        answered,
        f"chose protocol {named} for group {group.name}, which member {body.member_id} {whom(exchange.actor)} did not offer: it offered "
        f"{offered}.",
        f"a JoinGroup success that names {named}",
    )


@rule("member list to the wrong party", ERROR, CONFIRMED, BROKER)
def P_04(group: ClassicGroup, answered: JoinAnswered) -> Breach | None:
    """The leader cannot assign, or a follower believes that it must.

    Condition: A JoinGroup success with members to one that does not lead, or without members to the leader.
    Expected: The member list goes to the leader only.
    Action: Keep the frames and the coordinator's log; look for a proxy that rewrites answers.
    False alarms: A static leader that returns with a JoinGroup before v9 is given none; members of a group of the new protocol
        never are.
    """
    exchange, body = answered.exchange, answered.body
    leads = body.member_id == body.leader
    if leads == bool(body.members):
        return None
    if leads and not exchange.member_id and exchange.instance_id is not None and exchange.api_version < LEADER_NAMED_SINCE:
        return None  # a static member returned: before v9 it gets no member list
    person = f"member {body.member_id} {whom(exchange.actor)}"
    if leads:
        return _answer_breach(
            answered,
            f"made {person} the leader of group {group.name} without telling it who the members are: it cannot assign.",
            "a JoinGroup success to the leader without members",
        )
    return _answer_breach(
        answered,
        f"gave the member list of group {group.name} to {person}, who does not lead.",
        f"a JoinGroup success to a follower with {counted(len(body.members), 'member')}",
    )


@rule("leader not among the members", ERROR, CONFIRMED, BROKER)
def P_05(group: ClassicGroup, answered: JoinAnswered) -> Breach | None:
    """No member computes an assignment for the leader; the group may run into the sync timer.

    Condition: The leader's JoinGroup answer lists members, and not the leader.
    Expected: The leader is one of the members.
    Action: Restart the leader named: the next generation may list it. Keep the frames and the coordinator's log of that moment, and
        report them.
    False alarms: None known.
    """
    body = answered.body
    if body.member_id != body.leader or not body.members or any(entry.member_id == body.leader for entry in body.members):
        return None
    return _answer_breach(
        answered,
        f"named {body.leader} {whom(answered.exchange.actor)} leader of group {group.name}, and not among its members: no member will "
        "give it an assignment.",
        f"a JoinGroup success to the leader with {counted(len(body.members), 'member')}, itself not among them",
    )


@rule("answers of one generation disagree", CRITICAL, CONFIRMED, BROKER)
def P_06(group: ClassicGroup, answered: JoinAnswered) -> Breach | None:
    """Members act on different leaders or protocols within one generation: split leadership.

    Condition: Two JoinGroup successes at one generation, waiting at the same time, name different leaders or protocols.
    Expected: All answers of one completion agree.
    Action: Stop the group's consumers, since two leaders may give away the same partitions. Keep the coordinators' logs; find out
        which brokers act as coordinator, and whether a proxy rewrites answers.
    False alarms: A static leader that returned under a new id; a generation issued again after a failover, whose answers do not
        overlap.
    """
    exchange, body, newest = answered.exchange, answered.body, group.newest_generation
    if newest is None or newest.generation != body.generation_id:
        return None
    # Only responses to requests that waited at the same time are known to be of one coordinator without a restart.
    if exchange.queued_behind or exchange.effective_us >= newest.proven_us - group.clock_skew_us:
        return None
    if body.protocol_name != newest.protocol:
        return _disagree(group, answered, f"protocol {body.protocol_name}", f"protocol {newest.protocol}")
    if body.leader == newest.leader or same_instance(group, body.leader, newest.leader):
        return None
    member, leader = group.members.get(body.leader), group.members.get(newest.leader)
    if leader is None or leader.proven_us is None:
        return None
    if leader.instance_id is not None and (member is None or member.instance_id is None):
        return None  # it may be the same static member under another id
    return _disagree(group, answered, f"leader {body.leader}", f"leader {newest.leader}")


def _disagree(group: ClassicGroup, answered: JoinAnswered, one: str, other: str) -> Breach:
    assert group.newest_generation is not None
    body = answered.body
    breach = _answer_breach(
        answered,
        f"told members of group {group.name} different things about generation {body.generation_id}: {other}, and {one} to member "
        f"{body.member_id} {whom(answered.exchange.actor)}.",
        f"JoinGroup successes at generation {body.generation_id} that were waiting at the same time name {other} and {one}",
    )
    return breach._replace(subject="", evidence=(group.newest_generation.proof, *breach.evidence))


def _skip_ignored(group: ClassicGroup, asked: SyncAsked) -> Breach | None:
    exchange, plan = asked.exchange, group.assignments.plan
    assert isinstance(exchange.facts, SyncFacts)
    if plan is None or plan.generation != exchange.generation or not exchange.facts.assigned:
        return None
    if not plan.skipped or plan.skipped != exchange.member_id:
        return None
    return Breach.of_sender(
        exchange,
        f"{sender_text(exchange)} leads group {group.name}, was told to skip the assignment, and submitted one nevertheless: "
        "the coordinator drops it.",
        f"a SyncGroup request with {counted(exchange.facts.assigned, 'entry', 'entries')} after SkipAssignment",
        (request_evidence(exchange),),
        severity=WARNING,
        blame=CLIENT,
    )


@rule("SkipAssignment misused", ERROR, CONFIRMED, BROKER, also=(_skip_ignored,))
def P_11(group: ClassicGroup, answered: JoinAnswered) -> Breach | None:
    """A plan is never made, or made in vain (KIP-814).

    Condition: SkipAssignment in an answer to one that does not lead, or that did not return as a static member. A warning about a
        leader that was told to skip and submitted a plan nevertheless.
    Expected: SkipAssignment only to a static leader that returns to a stable group; it then submits nothing.
    Action: Keep the frames and the coordinator's log; upgrade the client when it is blamed.
    False alarms: What a leader submits to a stable group is dropped without harm: a warning only.
    """
    exchange, body = answered.exchange, answered.body
    if not body.skip_assignment:
        return None
    if body.member_id != body.leader:
        why, observed = "who does not lead", "SkipAssignment in a JoinGroup success to a follower"
    elif exchange.member_id or exchange.instance_id is None:
        why, observed = "who did not return as a static member", "SkipAssignment in answer to a JoinGroup that replaced nobody"
    else:
        return None
    return _answer_breach(
        answered,
        f"told member {body.member_id} {whom(exchange.actor)} of group {group.name}, {why}, to skip the assignment: there may be none.",
        observed,
    )

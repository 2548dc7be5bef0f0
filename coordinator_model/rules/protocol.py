"""Family P: protocol consistency. Requests and responses that no state of a group explains.

*Error codes are an open set*: a newer broker may use one that this release does not know, which is no breach. *A JoinGroup success need
not end a join phase*: a lost response is repeated. A static member that returns to a stable group gets one at once, with the
generation, the protocol and sometimes the removed leader of before.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from coordinator_model.finding import BROKER, CERTAIN, CLIENT, CONFIG, CONFIRMED, CRITICAL, ERROR, INFO, OPERATOR, WARNING
from coordinator_model.groups.classic.group import ClassicGroup
from coordinator_model.groups.classic.positions import Verdict
from coordinator_model.groups.classic.trackers.assignments import SyncAnswered, SyncAsked, Unparsable
from coordinator_model.groups.classic.trackers.plans import AHEAD, ORDER, asks_for_another, joined_protocol, strange_protocol
from coordinator_model.groups.epochs.events import Migrated
from coordinator_model.groups.events import Failed
from coordinator_model.groups.evidence import request_evidence, response_evidence
from coordinator_model.groups.group import GroupModel
from coordinator_model.groups.protocol.classic import TWO_STEP_JOIN_SINCE
from coordinator_model.groups.records import MAX_INT32, Exchange, LeaveFacts, Member
from coordinator_model.rules.assignments import suspects
from coordinator_model.rules.base import Breach, Due, HeldFinding, Matter, about_one, admission, rule, sender_text, timer_rule, who
from coordinator_model.rules.epoch_checks import impossible_answer
from coordinator_model.rules.join_answers import NAMED_AT_MOST
from coordinator_model.rules.unlawful import leaves_or_loads, rules_of, upgrades_after_all
from coordinator_model.wire import API_NAMES, ERROR_CODES, error_name, may_be_an_error
from coordinator_model.wire.constants import HEARTBEAT, JOIN_GROUP, MEMBER_ID_REQUIRED
from coordinator_model.wording import a_or_an, counted, seconds


def _sync_let_through(group: ClassicGroup, answered: SyncAnswered) -> Breach | None:
    exchange = answered.exchange
    plan = group.assignments.plan
    asked, named = asks_for_another(group, plan, exchange), strange_protocol(group, plan, exchange, answered.body)
    if asked:
        summary = (
            f"The coordinator {exchange.broker} accepted a SyncGroup under protocol {asked} from {sender_text(exchange)}, while group "
            f"{group.name} runs another: it, or a proxy before it, does not check the protocol."
        )
        observed = f"a SyncGroup that names {asked} answered with success, instead of INCONSISTENT_GROUP_PROTOCOL"
    elif named:
        summary = (
            f"The coordinator {exchange.broker} answered the SyncGroup of {sender_text(exchange)} in group {group.name} under protocol "
            f"{named}, which the group does not run."
        )
        observed = f"a SyncGroup success that names {named}"
    else:
        return None
    return Breach.of_sender(
        exchange,
        summary,
        observed,
        (request_evidence(exchange), response_evidence(exchange, 0)),
        severity=CRITICAL,
        certainty=CONFIRMED,
        blame=BROKER,
    )


@rule("protocol differs from the one joined", WARNING, CERTAIN, CLIENT, also=(_sync_let_through,))
def P_01(group: ClassicGroup, asked: SyncAsked) -> Breach | None:
    """A member syncs under a protocol type or name that is not the group's, or goes on after being told a foreign one: it may
    decode the assignment as something else. If the coordinator lets it, its check is missing (KIP-559).

    Condition: A SyncGroup from v5 on names another protocol type or name than the member's JoinGroup answer, or none; or it follows
        an answer whose type or name the member had not offered. Critical, and the broker's, when such a SyncGroup succeeds, or when
        a SyncGroup success names a protocol that the group does not run.
    Expected: SyncGroup repeats the type and name of the JoinGroup answer; otherwise INCONSISTENT_GROUP_PROTOCOL. A client that is
        told a foreign protocol stops.
    Action: Upgrade the named client; when the coordinator is blamed, look for a proxy that rewrites or drops fields.
    False alarms: None known; silent when JoinGroup answers of the generation contradict each other.
    """
    exchange, plan = asked.exchange, group.assignments.plan
    named = asks_for_another(group, plan, exchange)
    given = joined_protocol(group, plan, exchange)
    if named:
        joined = f", and joined {'/'.join(given)}" if given is not None else ""
        summary = f"{sender_text(exchange)} of group {group.name} asks for its assignment under protocol {named}{joined}."
        observed = f"a SyncGroup request that names {named}"
    elif plan is not None and given is not None and exchange.member_id in plan.foreign:
        summary = (
            f"{sender_text(exchange)} of group {group.name} goes on although its JoinGroup was answered with protocol {'/'.join(given)}, "
            "which is not its own."
        )
        observed = "a SyncGroup request after a JoinGroup answer whose protocol type or name the member had not sent"
    else:
        return None
    member = group.members[exchange.member_id] if given is not None else None
    joined_frame = admission(member)
    return Breach.of_sender(
        exchange,
        summary,
        observed,
        (*joined_frame, request_evidence(exchange)),
    )


def _impossible(group: ClassicGroup, exchange: Exchange, error: int) -> Verdict | None:
    """Return the verdict on an error that no coordinator gives there, None if one may give it, or another rule reports it."""
    if error not in ERROR_CODES and may_be_an_error(error):
        return None
    if (exchange.api_key, error) == (JOIN_GROUP, MEMBER_ID_REQUIRED) and exchange.api_version >= TWO_STEP_JOIN_SINCE:
        return None  # M-04 reports it
    if isinstance(exchange.facts, LeaveFacts):
        verdicts = [group.judge(exchange, error, named=named) for named in exchange.facts.members]
        return None if None in verdicts or not verdicts else verdicts[0]
    verdict = group.judge(exchange, error)
    return None if verdict is None or (exchange.api_key == HEARTBEAT and rules_of(verdict)) else verdict


def _explained(group: ClassicGroup, held: HeldFinding) -> bool:
    return leaves_or_loads(group, held) or upgrades_after_all(group, held)


@rule("impossible error", ERROR, CERTAIN, BROKER, suppressed_by=("C-11",), explained=_explained, also=(impossible_answer,))
def P_07(group: ClassicGroup, failed: Failed) -> Breach | None:
    """An error code that no coordinator gives to this request: a proxy, a fork, or answers to the wrong requests.

    Condition: No row of docs/protocol.md (classic groups) or docs/protocol-epochs.md (consumer, share and Streams groups) gives
        this code to this request, in any state of the group that the frames leave possible. Each row that gives it is named, with
        the frame that excludes it. What frames cannot show (rights, disks, limits) is always possible.
    Expected: One of the codes in these tables; 'rebalance-monitor protocol' prints them.
    Action: Look for a proxy or a gateway between that client and the broker named, and connect the client past it. If there is
        none, keep the frames and the broker's log, and report them with its version.
    False alarms: Codes that this release does not know pass, if they are at most 50 above the highest that it knows. Codes that a
        valid member may be refused with are left to G-03, M-03 and S-09, which wait for what shows that it was valid. Of a classic
        group's coordinator that goes away within half a second only what no state explains is reported: an upgrade that it began is
        lost with it.
    """
    exchange = failed.exchange
    verdicts = [verdict for error in sorted(failed.errors) if (verdict := _impossible(group, exchange, error)) is not None]
    if not verdicts:
        return None
    verdict = next((one for one in verdicts if one.certainty is CERTAIN), verdicts[0])
    api, named = API_NAMES[exchange.api_key], error_name(verdict.error)
    return Breach.of_sender(
        exchange,
        f"{exchange.broker} answered {a_or_an(api)} v{exchange.api_version} of "
        f"{sender_text(exchange)} in group {group.name} with {named}, which no "
        "coordinator gives there.",
        f"{api} v{exchange.api_version} answered {', '.join(error_name(one.error) for one in verdicts)}; {verdict.text}",
        (*verdict.proof, request_evidence(exchange), response_evidence(exchange, verdict.error)),
        certainty=verdict.certainty,
        subject=f"{api} {named}",
    )


@timer_rule("impossible order", CRITICAL, CONFIRMED, BROKER, matter=Matter.PLAN)
def P_08(group: ClassicGroup) -> Iterator[Due]:
    """The coordinator's state machine is broken, or frames are fabricated: whatever else is said of this group is unsafe.

    Condition: In a generation seen from its beginning a SyncGroup succeeded before its leader sent one, or a Heartbeat succeeded at
        a generation that was never issued; and no frame explained it within the reorder window.
    Expected: An assignment is issued after the leader submitted it; a generation is used after it was issued.
    Action: Keep the frames; look for split brain (C-05) and for proxies.
    False alarms: A coordinator that is still loading answers every Heartbeat with success; a group that was loaded stable hands out
        what it stored: neither is judged.
    """
    for suspect in suspects(group, ORDER, AHEAD):
        if suspect.kind == ORDER:
            what = "an assignment, before the leader of that generation submitted any"
            observed = "a SyncGroup success without a SyncGroup request of the leader"
        else:
            what = "a heartbeat's success, although that generation was never issued"
            observed = "a Heartbeat success beyond the newest generation in any JoinGroup answer"

        def describe(what: str = what, observed: str = observed, suspect: Any = suspect) -> Breach:
            return Breach.of_sender(
                suspect,
                f"The coordinator {group.broker} gave {sender_text(suspect)} of group {group.name} at "
                f"generation {suspect.generation} {what}.",
                observed,
                (suspect.frame,),
            )

        yield Due(suspect.at_us + group.late_us, suspect.member_id, CRITICAL, describe)


@rule("unsupported version used", WARNING, CERTAIN, CLIENT)
def P_09(group: ClassicGroup, failed: Failed) -> Breach | None:
    """A client uses a version that the broker does not know: it cannot make progress.

    Condition: A request of the group was answered UNSUPPORTED_VERSION.
    Expected: A version within the range of the broker's ApiVersions answer.
    Action: Upgrade that client if it is older than the broker, or configure it for the broker's release if it is newer. With static
        members, finish the upgrade of the cluster's metadata version.
    False alarms: None known.
    """
    exchange = failed.exchange
    if 35 not in failed.errors:
        return None
    api = API_NAMES[exchange.api_key]
    static = exchange.instance_id is not None
    why = "its cluster's metadata version does not know group.instance.id yet" if static else "it does not support that version"
    return Breach.of_sender(
        exchange,
        f"{sender_text(exchange)} of group {group.name} sent {a_or_an(api)} v{exchange.api_version}, "
        f"which {exchange.broker} refused: {why}.",
        f"{api} v{exchange.api_version} answered UNSUPPORTED_VERSION",
        (request_evidence(exchange), response_evidence(exchange, 35)),
        blame=CONFIG if static else None,
        subject=exchange.member_id or exchange.actor.client_id or "",
        generation=None,
    )


def _is_seldom(interval_us: int, session_ms: int) -> bool:
    return 3 * interval_us > 1_100 * session_ms


@timer_rule("unreasonable timeouts", WARNING, CERTAIN, CONFIG)
def P_10(group: ClassicGroup) -> Iterator[Due]:
    """The group will notice failures late, or evict members that are well.

    Condition: A rebalance timeout below the session timeout, or without end; fewer than three heartbeats to a session timeout, with
        a tenth to spare, by the shortest pause between two. Only noted: members whose timeouts differ.
    Expected: Session timeout of at least three heartbeat intervals, rebalance timeout above it, the same for all members.
    Action: Align session.timeout.ms, heartbeat.interval.ms and max.poll.interval.ms of the clients named.
    False alarms: Kafka Streams used to set a rebalance timeout without end, and Connect does as it likes: neither is judged for
        that.
    """
    notes: dict[str, list[Member]] = {}
    members = [member for member in group.present_members() if member.session_timeout_ms is not None]
    for member in members:
        session_ms, rebalance_ms = member.session_timeout_ms or 0, member.rebalance_timeout_ms or 0
        if rebalance_ms < session_ms:
            notes.setdefault(f"rebalance timeout {rebalance_ms} ms below session timeout {session_ms} ms", []).append(member)
        if rebalance_ms == MAX_INT32 and "stream" not in member.protocols and group.protocol_type == "consumer":
            notes.setdefault("a rebalance timeout without end", []).append(member)
        # A process short of CPU sends Heartbeats late, never early: the shortest of many pauses is the configured interval.
        interval_us = member.least_interval_us
        settled = interval_us and member.heartbeat_us - member.joined_us >= 20 * interval_us
        if settled and _is_seldom(interval_us, session_ms):
            notes.setdefault(f"heartbeats every {seconds(interval_us)} at a session timeout of {session_ms} ms", []).append(member)
    severity = WARNING if notes else INFO
    values = sorted({(member.session_timeout_ms, member.rebalance_timeout_ms) for member in members})
    if len(values) > 1:
        pairs = ", ".join(f"{session_ms} and {rebalance_ms} ms" for session_ms, rebalance_ms in values[:NAMED_AT_MOST])
        notes.setdefault(f"session and rebalance timeouts that differ between members ({pairs})", members)
    if not notes or group.learning:
        return

    def describe() -> Breach:
        text = "; ".join(f"{note}: {', '.join(who(one) for one in whose[:NAMED_AT_MOST])}" for note, whose in notes.items())
        odd = list({member.id: member for whose in notes.values() for member in whose}.values())
        return Breach("", f"Timeouts in group {group.name} are odd: {text}.", "; ".join(notes), admission(odd[0]), **about_one(odd))

    yield Due(max(member.joined_us for member in members), "", severity, describe)


@rule("group converted", INFO, CERTAIN, OPERATOR, quiet_times=60)
def P_12(group: GroupModel[Any], migrated: Migrated) -> Breach:
    """The group is being migrated between the classic and the consumer protocol: other rules judge it from here on.

    Condition: In a group that was seen to be of one type a member was admitted under the protocol of another; or a JoinGroup
        success names no leader, or one again.
    Expected: A migration that was planned.
    Action: None if it was planned. If not, look at group.protocol of the client named, and at group.consumer.migration.policy.
    False alarms: None known.
    """
    number = "" if migrated.number_before is None else f" at {_number(migrated.before)} {migrated.number_before}"
    member = "" if migrated.member_id is None else f" by member {migrated.member_id}"
    outcome = "its members are followed on" if migrated.after != "classic" else "its members join again"
    return Breach(
        "",
        f"Group {group.name} was converted from the {migrated.before} type{number} to the {migrated.after} type{member}; {outcome}.",
        f"a success that only a group of the {migrated.after} type gives",
        (migrated.frame,),
        member_id=migrated.member_id,
    )


def _number(kind: str) -> str:
    return "generation" if kind == "classic" else "epoch"


@rule("embedded protocol undecodable", WARNING, CERTAIN, CLIENT)
def P_13(group: ClassicGroup, unparsable: Unparsable) -> Breach | None:
    """The broker cannot tell which topics the group subscribes to, and may let its offsets expire; other members may fail.

    Condition: In a group of protocol type consumer a subscription or an assignment that does not parse as version 0 of its kind.
    Expected: The consumer protocol's subscription and assignment.
    Action: Read that client's log, upgrade its library, and look at its own assignor if it has one: it is what writes these bytes.
    False alarms: Other protocol types carry what they like and are not read; nor is what comes behind the fields of version 0.
    """
    exchange = unparsable.exchange
    return Breach.of_sender(
        exchange,
        f"{sender_text(exchange)} of group {group.name} sent bytes that are no consumer protocol: {unparsable.what}.",
        f"{counted(len(unparsable.raw), 'byte')}: {unparsable.raw[:24].hex(' ') or 'none at all'}",
        (request_evidence(exchange),),
        subject=exchange.member_id or exchange.actor.client_id or "",
    )


@timer_rule("goes on under a foreign protocol", WARNING, CONFIRMED, CLIENT)
def P_14(group: ClassicGroup) -> Iterator[Due]:
    """A client does not check the protocol in its SyncGroup answer (KIP-559): it may have decoded the assignment as something else.

    Condition: A SyncGroup success named another protocol type or name than the member's JoinGroup answer, and a session timeout
        later it is still a member at that generation.
    Expected: The client stops with an inconsistent group protocol error.
    Action: Upgrade the client; the broker, or the proxy before it, is at fault first (P-01).
    False alarms: None known.
    """
    for strange in group.assignments.strange:
        member = group.members.get(strange.member_id)
        if member is None or not member.present or member.joined != strange.generation or group.parked(member):
            continue
        # Without any further frame its session will have expired by then, and it is no longer present.
        timeout_ms = member.session_timeout_ms or 0
        at_us = strange.at_us + timeout_ms * 1_000 + group.settings.slack_us(timeout_ms)

        def describe(member: Member = member, named: str = strange.named, at_us: int = at_us - strange.at_us) -> Breach:
            frames = admission(member)
            return Breach.of_member(
                member,
                f"{who(member)} goes on in group {group.name} for {seconds(at_us)} after its SyncGroup was answered under protocol "
                f"{named}, which is not the one that it joined with.",
                f"still a member, without a JoinGroup, {seconds(at_us)} after an answer that names {named}",
                frames,
                generation=member.joined,
            )

        yield Due(at_us, member.id, WARNING, describe)

"""Family E: epochs and identities in groups whose members have epochs (KIP-848, KIP-932, KIP-1071).

The protocol's table decides what a coordinator may answer, over everything that is possible at that moment. These rules say which of
its rows the answer broke. A refusal is no finding: epochs move on while requests are under way, and clients join again. E-24 holds for
classic groups too.
"""

from __future__ import annotations

from typing import Any

from coordinator_model.finding import BROKER, CERTAIN, CLIENT, CONFIRMED, CRITICAL, ERROR, HEURISTIC, WARNING
from coordinator_model.groups.epochs.data import EpochGroupData, partitions_text
from coordinator_model.groups.epochs.events import (
    ClaimedMore,
    EpochFenceIgnored,
    EpochShrank,
    ImpossibleEpoch,
    JoinedAgain,
    MalformedHeartbeat,
    Unlawful,
)
from coordinator_model.groups.epochs.positions import FENCED, GONE, HELD, MALFORMED, NEVER_JOINED, REFUSED, STALE
from coordinator_model.groups.epochs.records import AWAY_EPOCH, JOIN_EPOCH
from coordinator_model.groups.events import DeletedAlive
from coordinator_model.groups.evidence import (
    epoch_exchange_evidence,
    epoch_request_evidence,
    epoch_response_evidence,
    exchange_evidence,
)
from coordinator_model.groups.group import GroupModel
from coordinator_model.groups.records import HeartbeatFacts, Removed
from coordinator_model.rules.base import Breach, HeldFinding, captured, is_refused_no_longer, rule, sender_text, who
from coordinator_model.wire import API_NAMES, error_name
from coordinator_model.wire.constants import FENCED_INSTANCE_ID, LEAVE_GROUP
from coordinator_model.wording import a_or_an, begin, counted, seconds

_REFUSED_AFTER_FENCE = 3  # the fence itself, and two requests that ignored it
_JOINS_A_MINUTE = 3


def end_text(removed: Removed | None) -> str:
    """Return how a membership ended, as the end of a sentence."""
    if removed == Removed.LEFT:
        return "left"
    return "was removed by a LeaveGroup" if removed == Removed.REMOVED else "was told that it is no member"


def _breach_of(group: EpochGroupData, unlawful: Unlawful) -> Breach:
    exchange = unlawful.exchange
    api = API_NAMES[exchange.api_key]
    at_epoch = f" at epoch {exchange.generation}" if exchange.api_key != LEAVE_GROUP else ""
    asked = f"{a_or_an(api)} of {sender_text(exchange)}{at_epoch}"
    return Breach.of_sender(
        exchange,
        f"The coordinator {exchange.broker} {_did(group, unlawful, asked)}.",
        f"{api}{at_epoch} answered {error_name(exchange.error)}",
        captured(unlawful.proof, *epoch_exchange_evidence(exchange)),
        generation=exchange.generation if exchange.generation > JOIN_EPOCH else None,
        certainty=HEURISTIC if unlawful.kind == FENCED and unlawful.reloaded else None,
    )


def _did(group: EpochGroupData, unlawful: Unlawful, asked: str) -> str:
    exchange, facts = unlawful.exchange, unlawful.exchange.facts
    if unlawful.kind == FENCED:
        return (
            f"fenced {sender_text(exchange)} in group {group.name} at epoch {exchange.generation}, the one that it was given last"
        )
    if unlawful.kind == REFUSED:
        return f"refused {asked} in group {group.name} with {error_name(exchange.error)}, for which there is no reason"
    accepted = f"accepted {asked} in group {group.name}"
    if unlawful.kind == MALFORMED and isinstance(facts, HeartbeatFacts):
        return f"{accepted}, which it must refuse: {facts.malformed}"
    if unlawful.kind == NEVER_JOINED:
        return f"{accepted}, although that id never joined it"
    if unlawful.kind == GONE:
        why = end_text(unlawful.removed)
        return f"{accepted}, although that member {why} and has not joined since"
    if unlawful.holder is not None:
        return f"{accepted}, although {who(unlawful.holder)} holds its instance id {exchange.instance_id} and lives"
    if exchange.generation == AWAY_EPOCH:
        return f"{accepted}, although that member does not hold instance id {exchange.instance_id}"
    if unlawful.removed == Removed.AWAY:
        return f"{accepted}, although that member left for a while and has not joined since"
    return f"{accepted}, although its epoch is {'another' if unlawful.had is None else unlawful.had}"


@rule("epoch went back", CRITICAL, CERTAIN, BROKER)
def E_01(group: EpochGroupData, shrank: EpochShrank) -> Breach:
    """The coordinator has lost state: it may give partitions away that a member still reads.

    Condition: A successful heartbeat returned an epoch below the request's, or below an earlier one of the same membership.
    Expected: A member's epoch never falls while it is a member.
    Action: Keep the frames (rebalance-monitor record) and the coordinator's log of that moment, and report them. Look for an
        unclean election of the offsets partition.
    False alarms: None known. A join, a leave, a refusal, and a coordinator that moved begin anew.
    """
    exchange, member = shrank.exchange, shrank.member
    return Breach.of_sender(
        exchange,
        f"The coordinator {exchange.broker} answered {sender_text(exchange)} in group {group.name} with epoch {shrank.returned}, although "
        f"that member was at epoch {shrank.had} already: it has lost state.",
        f"epoch {shrank.returned} after epoch {shrank.had}",
        captured(member.epoch_frame, epoch_response_evidence(exchange, shrank.returned)),
        generation=shrank.returned,
    )


@rule("fence ignored", ERROR, HEURISTIC, CLIENT, over=is_refused_no_longer)
def E_02(group: EpochGroupData, ignored: EpochFenceIgnored) -> Breach | None:
    """A client works on that is no member any more: others process the same records.

    Condition: At least twice more after FENCED_MEMBER_EPOCH or UNKNOWN_MEMBER_ID a member sends a heartbeat at the same epoch, each
        after it had the answer to the one before.
    Expected: The member gives up its partitions and joins again with epoch 0.
    Action: Restart that client; look at its library's version.
    False alarms: Heartbeats under way when the first was refused do not count.
    """
    member, refusals = ignored.member, ignored.refusals
    if refusals.count < _REFUSED_AFTER_FENCE or refusals.error == FENCED_INSTANCE_ID:
        return None
    return Breach.of_member(
        member,
        f"{begin(who(member))} goes on at epoch {refusals.generation} in group {group.name} although it was refused {refusals.count} "
        f"times in {seconds(refusals.last_us - refusals.first_us)} with {error_name(refusals.error)}.",
        f"{counted(refusals.count, 'heartbeat')} at epoch {refusals.generation} refused with {error_name(refusals.error)}, no join between",
        tuple(refusals.evidence),
        generation=refusals.generation,
    )


def _downgraded_after_all(group: EpochGroupData, held: HeldFinding) -> bool:
    """Return True if it is about a classic member, and the last one of the new protocol had gone by then, as a late frame shows."""
    member = group.members.get(held.subject)
    if member is None or not member.classic:
        return False
    until_us = held.opened_us + group.clock_skew_us
    return not any(not other.classic and (other.present or other.last_frame_us > until_us) for other in group.members.values())


@rule("wrong fence", ERROR, CONFIRMED, BROKER, explained=_downgraded_after_all)
def E_03(group: EpochGroupData, unlawful: Unlawful) -> Breach | None:
    """A healthy member loses its partitions and begins again.

    Condition: FENCED_MEMBER_EPOCH to the epoch of the last answer that the member got before it asked, with no other heartbeat of
        it under way. Heuristic if the coordinator moved since: it may know a state that a newer broker wrote. Or ILLEGAL_GENERATION to
        a classic member of a consumer group at the generation of its last join.
    Expected: A success.
    Action: Keep the frames (rebalance-monitor record) and the coordinator's log of that moment, and report them.
    False alarms: None known. A static member that left for a while, and one whose answers are missing, are not judged.
    """
    return _breach_of(group, unlawful) if unlawful.kind == FENCED else None


@rule("stale epoch accepted", CRITICAL, CONFIRMED, BROKER, suppressed_by=("E-01",), explained=_downgraded_after_all)
def E_04(group: EpochGroupData, unlawful: Unlawful) -> Breach | None:
    """Fencing does not work: a member that others have taken over from may go on.

    Condition: A heartbeat succeeded at an epoch that is neither the member's own nor the one before together with a list of
        partitions all of which it was assigned. Or a Heartbeat or a SyncGroup of a classic member of a consumer group was not refused
        at another generation than that of its last join.
    Expected: FENCED_MEMBER_EPOCH; ILLEGAL_GENERATION to a classic member.
    Action: Restart the client named, since others may own its partitions. Keep the frames (rebalance-monitor record) and the
        coordinator's log of that moment, and report them.
    False alarms: None known. The epoch before the last is tolerated, since no frame shows when the coordinator last wrote it. After
        an epoch that went back (E-01) the client may go on with either.
    """
    return _breach_of(group, unlawful) if unlawful.kind == STALE else None


@rule("dirty join", WARNING, CERTAIN, CLIENT)
def E_05(group: EpochGroupData, malformed: MalformedHeartbeat) -> Breach:
    """A client cannot join, or would claim partitions that the coordinator did not give it.

    Condition: A heartbeat with epoch 0 lacks a rebalance timeout, a subscription or the empty list of partitions, lists partitions,
        or has a blank instance id or rack.
    Expected: A join with timeout and subscription that owns nothing.
    Action: Upgrade that client's library.
    False alarms: None known.
    """
    exchange = malformed.exchange
    assert isinstance(exchange.facts, HeartbeatFacts)
    return Breach.of_sender(
        exchange,
        f"{begin(sender_text(exchange))} sent a join to group {group.name} that must be refused: {exchange.facts.malformed}.",
        f"{a_or_an(API_NAMES[exchange.api_key])} at epoch 0: {exchange.facts.malformed}",
        (epoch_request_evidence(exchange),),
        generation=None,
    )


@rule("join loop", WARNING, HEURISTIC, CLIENT)
def E_07(group: EpochGroupData, again: JoinedAgain) -> Breach | None:
    """A client forgets that it is a member; each join drops what it owned.

    Condition: A member joined with epoch 0 at least three times within a minute, and had neither left nor been refused between.
    Expected: One join; heartbeats at the epoch that it returned.
    Action: Read that client's log for why it joins anew, stop it if others lose partitions to it, and upgrade its library.
    False alarms: A client that loses its connections in quick succession.
    """
    member = again.member
    if len(member.joins) < _JOINS_A_MINUTE:
        return None
    return Breach.of_member(
        member,
        f"{begin(who(member))} joined group {group.name} {len(member.joins)} times within a minute although it was a member: it forgets "
        "its epoch.",
        f"{len(member.joins)} joins with epoch 0 within {seconds(member.joins[-1] - member.joins[0])}, no refusal and no leave between",
        (epoch_response_evidence(again.exchange),),
    )


@rule("claims partitions not granted", ERROR, CONFIRMED, CLIENT)
def E_08(group: EpochGroupData, claimed: ClaimedMore) -> Breach:
    """The client reads partitions that belong to another member, or is about to be fenced.

    Condition: A heartbeat lists partitions as owned that no answer assigned to the member since it joined.
    Expected: The assigned partitions, or fewer.
    Action: Restart that client; look at its library's version.
    False alarms: None known: members whose join was not seen, or with a missing frame since, are not judged.
    """
    member = claimed.member
    return Breach.of_member(
        member,
        f"{begin(who(member))} claims {partitions_text(group, claimed.partitions)} in group {group.name}, which it was not assigned since "
        "it joined.",
        f"a request that lists {partitions_text(group, claimed.partitions)} as owned",
        captured(member.granted_frame, epoch_request_evidence(claimed.exchange)),
        generation=claimed.exchange.generation,
    )


@rule("accepted after its end", CRITICAL, CONFIRMED, BROKER, explained=_downgraded_after_all)
def E_14(group: EpochGroupData, unlawful: Unlawful) -> Breach | None:
    """The coordinator serves a member that it had removed: others own its partitions.

    Condition: A heartbeat with a positive epoch succeeded for an id that was answered a leave with epoch -1, or UNKNOWN_MEMBER_ID,
        and that has not asked to join since. Or a Heartbeat or a SyncGroup of a classic member of a consumer group did so after its
        LeaveGroup.
    Expected: UNKNOWN_MEMBER_ID.
    Action: Restart the client named, since others may own its partitions. Keep the frames (rebalance-monitor record) and the
        coordinator's log of that moment, and report them.
    False alarms: None known. It rests when the coordinator has moved.
    """
    return _breach_of(group, unlawful) if unlawful.kind == GONE else None


@rule("stranger accepted", ERROR, CONFIRMED, BROKER)
def E_15(group: EpochGroupData, unlawful: Unlawful) -> Breach | None:
    """A client that never joined is served as a member.

    Condition: A heartbeat with a positive epoch succeeded for an id that never joined, in a group that was seen from its first join
        on for more than a minute, each rise of whose epoch is explained by what was seen.
    Expected: UNKNOWN_MEMBER_ID.
    Action: Keep the frames (rebalance-monitor record) and the coordinator's log of that moment, and report them.
    False alarms: A member that joined on a path that is not captured, with a subscription that raised no epoch, or as another fell
        silent.
    """
    return _breach_of(group, unlawful) if unlawful.kind == NEVER_JOINED else None


@rule("malformed request accepted", ERROR, CERTAIN, BROKER)
def E_17(group: EpochGroupData, unlawful: Unlawful) -> Breach | None:
    """The coordinator does not check what it must: a client may own partitions without its consent.

    Condition: A heartbeat succeeded that must be refused for its form alone: a dirty join, no member id, a blank instance id or
        rack, a static leave without instance id, an epoch below -2.
    Expected: INVALID_REQUEST.
    Action: Keep the frames (rebalance-monitor record) and the coordinator's log of that moment, and report them.
    False alarms: A broker that is not Apache Kafka may be more lenient.
    """
    return _breach_of(group, unlawful) if unlawful.kind == MALFORMED else None


@rule("wrongly refused", ERROR, CONFIRMED, BROKER, explained=_downgraded_after_all)
def E_18(group: EpochGroupData, unlawful: Unlawful) -> Breach | None:
    """A client cannot be a member although nothing is in its way.

    Condition: GROUP_MAX_SIZE_REACHED or UNKNOWN_MEMBER_ID to a member that was accepted less than a session before,
        UNRELEASED_INSTANCE_ID although the holder of that instance id had left, for a while or for good, or uses the classic
        protocol, or FENCED_INSTANCE_ID to the holder itself, which was accepted less than a session before. Or UNKNOWN_MEMBER_ID or
        FENCED_INSTANCE_ID to a classic member of a consumer group that has its assignment, was not asked to rejoin, and was accepted
        less than a session before.
    Expected: A success.
    Action: Keep the frames (rebalance-monitor record) and the coordinator's log of that moment, and report them.
    False alarms: Before 4.4 a static member that returns to a full group, and a Streams member that joins a full group again,
        lawfully get GROUP_MAX_SIZE_REACHED: not counted.
    """
    return _breach_of(group, unlawful) if unlawful.kind == REFUSED else None


@rule("held instance id given away", CRITICAL, CONFIRMED, BROKER)
def E_23(group: EpochGroupData, unlawful: Unlawful) -> Breach | None:
    """Two processes are served under one group.instance.id: the first goes on with partitions that the second was given.

    Condition: A join was accepted under an instance id whose holder was accepted less than a session before, has given nothing up
        too late, and has neither left nor asked to.
    Expected: UNRELEASED_INSTANCE_ID.
    Action: Keep the frames (rebalance-monitor record) and the coordinator's log of that moment, and report them. Stop one of the
        two processes.
    False alarms: None known. It rests when the coordinator has moved, and where the holder's join was not seen.
    """
    return _breach_of(group, unlawful) if unlawful.kind == HELD else None


@rule("group deleted with a member", CRITICAL, CONFIRMED, BROKER)
def E_24(group: GroupModel[Any], deleted: DeletedAlive) -> Breach:
    """All offsets of a group that consumes are gone: its members begin again where auto.offset.reset says, and others own their partitions.

    Condition: A DeleteGroups succeeded although a member was accepted less than a session before, has given nothing up too late, and
        has neither left nor asked to. In a classic group it is in sync, all members were seen, and none has asked to join or leave since.
    Expected: NON_EMPTY_GROUP.
    Action: Set the offsets of the group again (kafka-consumer-groups.sh --reset-offsets) and restart its clients. Keep the frames
        (rebalance-monitor record) and the coordinator's log of that moment, and report them.
    False alarms: An operator who removes the members on a path that is not captured. It rests when the coordinator has moved.
    """
    exchange, member = deleted.exchange, deleted.member
    since_us = exchange.res_us - deleted.accepted_us
    return Breach.of_member(
        member,
        f"The coordinator {exchange.broker} deleted group {group.name}, although {who(member)} is a member of it and was accepted "
        f"{seconds(since_us)} before.",
        "a DeleteGroups that succeeded",
        captured(deleted.proof, *exchange_evidence(exchange)),
    )


@rule("impossible epoch", ERROR, CERTAIN, BROKER)
def E_25(group: EpochGroupData, impossible: ImpossibleEpoch) -> Breach:
    """A client that joined may not know that it is a member, or one that left may be one still: its partitions stay idle.

    Condition: A join succeeded with an epoch below 1, or a leave with another epoch than that of its request.
    Expected: To a join the group's epoch, to a leave the -1 or -2 that it asked for.
    Action: Look for a proxy or a gateway between that client and the broker named, and connect the client past it. If there is
        none, keep the frames (rebalance-monitor record) and the broker's log, and report them with its version.
    False alarms: A broker that is not Apache Kafka may answer leaves otherwise. A join without topic names in version 0 of the API
        may get epoch 0 from a preview broker, and is not judged for that.
    """
    exchange, epoch = impossible.exchange, impossible.epoch
    asked = "leave" if exchange.generation < JOIN_EPOCH else "join"
    return Breach.of_sender(
        exchange,
        f"The coordinator {exchange.broker} answered the {asked} of {sender_text(exchange)} in group {group.name} with epoch {epoch}, "
        "which no coordinator gives there.",
        f"a {asked} at epoch {exchange.generation} answered with epoch {epoch}",
        (epoch_request_evidence(exchange), epoch_response_evidence(exchange, epoch)),
        generation=None,
    )

"""Family E: what members of groups with epochs do for too long, and what keeps them out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from coordinator_model.finding import BROKER, CERTAIN, CLIENT, CONFIG, CONFIRMED, CRITICAL, ERROR, HEURISTIC, OPERATOR, WARNING
from coordinator_model.groups.classic.data import CLASSIC
from coordinator_model.groups.epochs.data import EpochGroupData, partitions_text
from coordinator_model.groups.epochs.events import (
    CommitMisjudged,
    CommitRefused,
    InstanceHeld,
    Migrated,
    PausedLong,
    StaticLeaveRefused,
    WrongGroupType,
)
from coordinator_model.groups.epochs.kinds import CONSUMER, FEATURES, KIND_BY_API
from coordinator_model.groups.epochs.positions import GONE, NEVER_JOINED
from coordinator_model.groups.epochs.records import JOIN_EPOCH
from coordinator_model.groups.evidence import epoch_exchange_evidence, epoch_request_evidence
from coordinator_model.groups.group import GroupModel
from coordinator_model.groups.records import Exchange
from coordinator_model.rules.base import Breach, Due, HeldFinding, captured, is_gone, rule, sender_text, timer_rule, who, whom
from coordinator_model.wire import API_NAMES, error_name
from coordinator_model.wire.constants import GROUP_ID_NOT_FOUND, STALE_MEMBER_EPOCH, UNKNOWN_MEMBER_ID, UNSUPPORTED_VERSION
from coordinator_model.wording import a_or_an, begin, clock, counted, seconds

_REPEATED = 3
_FLAPS = 3
_MIXED_US = 86_400_000_000
_BOTH_LIVE_US = 10_000_000


def refused_commits(group: EpochGroupData, refused: CommitRefused) -> Breach | None:
    """Return the breach of a member whose commits are refused again and again."""
    member, refusals = refused.member, refused.refusals
    span_us = max(2 * member.interval_ms * 1_000, group.settings.zombie_span_ms * 1_000)
    lasts_us = refusals.last_us - refusals.first_us
    if refusals.count < group.settings.zombie_refusals or lasts_us < span_us:
        return None
    return Breach.of_member(
        member,
        f"{begin(who(member))} cannot save its progress in group {group.name}: {refusals.count} commits at epoch {refusals.generation} "
        f"were refused with {error_name(refusals.error)} within {seconds(lasts_us)}.",
        f"{counted(refusals.count, 'commit')} refused with {error_name(refusals.error)} over {seconds(lasts_us)}",
        tuple(refusals.evidence),
        generation=refusals.generation,
    )


def commits_again(group: EpochGroupData, member_id: str) -> bool:
    """Return True if the member's commits are refused no longer."""
    member = group.members.get(member_id)
    return member is None or member.commit_refusals is None


@rule(
    "instance id in use",
    ERROR,
    CONFIRMED,
    CONFIG,
    over=lambda group, instance_id: instance_id not in group.claims,
    suppressed_by=("M-14",),
)
def E_06(group: EpochGroupData, held: InstanceHeld) -> Breach | None:
    """Two living processes want one group.instance.id: the second never becomes a member.

    Condition: A join with one group.instance.id was answered UNRELEASED_INSTANCE_ID again, and the holder's heartbeats were accepted
        10 s or longer after the first such answer (warning), or for longer than the longest session, 60 s, and a tenth and 2 s
        (error).
    Expected: The instance id is free a session after its holder died, or at once when it left with epoch -2.
    Action: Give each process its own group.instance.id; stop the one that is not wanted.
    False alarms: None known: the holder must have been accepted within the last 45 s.
    """
    exchange, holder = held.exchange, held.holder
    lasts_us = exchange.res_us - held.first_us
    if holder is None or holder.accepted_us < held.first_us + _BOTH_LIVE_US:
        return None
    if exchange.res_us - holder.accepted_us > group.shortest_session_ms(holder) * 1_000:
        return None  # it may be dead, and its session be a long one
    return Breach.of_sender(
        exchange,
        f"{begin(sender_text(exchange))} cannot join group {group.name} as {exchange.instance_id} for {seconds(lasts_us)}: {who(holder)} "
        "holds that instance id and lives.",
        f"{counted(held.times, 'join')} answered UNRELEASED_INSTANCE_ID over {seconds(lasts_us)}",
        held.frames,
        subject=exchange.instance_id or "",
        generation=None,
        severity=ERROR if group.outlasts_sessions(lasts_us) else WARNING,
    )


@rule("slow heartbeats", WARNING, CERTAIN, CLIENT)
def E_09(group: EpochGroupData, paused: PausedLong) -> Breach:
    """The next pause may end the member's session and move its partitions.

    Condition: A heartbeat came more than three of the told intervals after the one before was answered, and after the throttle time
        in an answer.
    Expected: A heartbeat in each interval that the coordinator tells.
    Action: Look for pauses of that client: garbage collection, CPU limits, a suspended host.
    False alarms: A client that moved to another path for a while. It rests after a heartbeat that was not answered, an answer that
        shows that the coordinator has gone, and a client's search for its coordinator. A new connection begins anew.
    """
    member = paused.member
    return Breach.of_member(
        member,
        f"{begin(who(member))} of group {group.name} sent no heartbeat for {seconds(paused.pause_us)}; it was told to send one every "
        f"{seconds(member.interval_ms * 1_000)}, and is removed after a session of "
        f"{group.shortest_session_ms(member) / 1_000:g} s at the least.",
        f"{seconds(paused.pause_us)} between two heartbeats",
        (epoch_request_evidence(paused.exchange),),
        generation=member.epoch,
    )


@rule("wrong type of group", WARNING, CERTAIN, CONFIG)
def E_10(group: GroupModel[Any], wrong: WrongGroupType) -> Breach | None:
    """A client of a newer protocol cannot join: the group is of another type, cannot be migrated, or the protocol is off.

    Condition: A join was answered GROUP_ID_NOT_FOUND; or a member's heartbeats GROUP_ID_NOT_FOUND or UNSUPPORTED_VERSION three
        times.
    Expected: A group of the client's type, or one that may be migrated.
    Action: Read the broker's reason, if it gives one; align group.protocol of the clients with group.consumer.migration.policy, or
        use another group id.
    False alarms: A client lawfully gets one such answer when the group has just been converted back.
    """
    exchange = wrong.exchange
    joins = exchange.generation == JOIN_EPOCH and exchange.error == GROUP_ID_NOT_FOUND
    if not joins and wrong.times < _REPEATED:
        return None
    reason = f": “{wrong.text}”" if wrong.text else ""
    api = API_NAMES[exchange.api_key]
    return Breach.of_sender(
        exchange,
        f"{begin(sender_text(exchange))} cannot take part in group {group.name}, which is of the {group.kind} type: its {api} is refused "
        f"with {error_name(exchange.error)}{reason}.",
        f"{a_or_an(api)} at epoch {exchange.generation} answered {error_name(exchange.error)}{reason}",
        epoch_exchange_evidence(exchange),
        action=_action_for(group, exchange),
        generation=None,
    )


def _action_for(group: GroupModel[Any], exchange: Exchange) -> str | None:
    """Return what to do about a heartbeat that was refused for its type; None for a conversion that is refused."""
    wanted = KIND_BY_API[exchange.api_key].name
    if exchange.error == UNSUPPORTED_VERSION:
        feature = FEATURES[wanted]
        return f"Finalise the feature {feature} on the brokers (kafka-features.sh upgrade), or let the client use the classic protocol."
    if group.kind == wanted:
        return "Restart that client if it does not join again by itself, and find out who deleted the group."
    if (group.kind, wanted) == (CLASSIC, CONSUMER):
        return None
    return (
        f"Use another group id for that client: a {group.kind} group cannot be converted to a {wanted} group while it has members."
    )


@rule("commits stay stale", ERROR, HEURISTIC, CLIENT, over=commits_again)
def E_11(group: EpochGroupData, refused: CommitRefused) -> Breach | None:
    """None of the member's progress is saved: whoever gets its partitions processes the records again.

    Condition: At least three commits at one epoch were answered STALE_MEMBER_EPOCH, over at least 10 s and two heartbeat intervals,
        and none was accepted between.
    Expected: After such a refusal a member commits with the epoch of its next heartbeat.
    Action: Restart that client; look for a blocked poll loop.
    False alarms: One refusal for each new epoch is normal.
    """
    return refused_commits(group, refused) if refused.refusals.error == STALE_MEMBER_EPOCH else None


@rule("static leave refused", WARNING, CERTAIN, CLIENT, over=is_gone)
def E_19(group: EpochGroupData, refused: StaticLeaveRefused) -> Breach:
    """A restart takes a whole session: the successor is refused and the partitions are idle until then.

    Condition: A static member's heartbeat with epoch -2 names no instance id, and is answered INVALID_REQUEST.
    Expected: The instance id in the leave.
    Action: Upgrade that client's library, or lower the group's consumer.session.timeout.ms.
    False alarms: None known.
    """
    member = refused.member
    until_us = max(member.accepted_us, member.last_frame_us) + group.shortest_session_ms(member) * 1_000
    return Breach.of_member(
        member,
        f"{begin(who(member))} left group {group.name} for a while without its instance id {member.instance_id}, and was refused: it holds "
        f"that instance id and its partitions until its session ends, {clock(until_us)} at the earliest.",
        "a heartbeat at epoch -2 without an instance id answered INVALID_REQUEST",
        epoch_exchange_evidence(refused.exchange),
    )


def _empty_after_all(group: EpochGroupData, held: HeldFinding) -> bool:
    """Return True if somebody committed who names no member, and all may have left before, as frames show that came late."""
    known = (one for one in group.members.values() if max(one.joins, default=0) < held.opened_us)
    late_us = held.opened_us + group.clock_skew_us
    stay = any(one.last_frame_us > late_us or (one.present and not one.leaving) for one in known)
    return not held.subject and not stay


@rule("commit misjudged", ERROR, CONFIRMED, BROKER, explained=_empty_after_all)
def E_20(group: EpochGroupData, misjudged: CommitMisjudged) -> Breach | None:
    """Offsets are saved for a member that is fenced, or a healthy member's progress is lost.

    Condition: A commit, plain or in a transaction, was accepted above the member's epoch, below that of its join, at one at which
        the partition was not yet assigned to it, or without a member id while the group had members (critical); or
        STALE_MEMBER_EPOCH to its exact epoch, or UNKNOWN_MEMBER_ID to a member that was accepted less than a session before. No
        heartbeat of the member was under way.
    Expected: Accepted at the member's epoch; since 4.3 also at older ones at which the partition was assigned already (KIP-1251).
    Action: Keep the frames and the coordinator's log of that moment, and report them.
    False alarms: None known.
    """
    exchange, member = misjudged.exchange, misjudged.member
    if misjudged.kind in {GONE, NEVER_JOINED} and not exchange.error:
        return None  # O-02
    did = "refused" if exchange.error else "accepted"
    proof = () if member is None else captured(member.epoch_frame)
    return Breach.of_sender(
        exchange,
        f"The coordinator {exchange.broker} {did} a commit of {_committer(exchange)} in group {group.name} at epoch {exchange.generation}, "
        f"{_known(group, misjudged)}.",
        f"{a_or_an(API_NAMES[exchange.api_key])} at epoch {exchange.generation} {did}",
        (*proof, *epoch_exchange_evidence(exchange)),
        severity=None if exchange.error else CRITICAL,
    )


def _committer(exchange: Exchange) -> str:
    return sender_text(exchange) if exchange.member_id else f"a client that names no member {whom(exchange.actor)}"


def _known(group: EpochGroupData, misjudged: CommitMisjudged) -> str:
    """Return what was known of the committer that makes the answer unlawful."""
    exchange, member = misjudged.exchange, misjudged.member
    if member is None:
        return "although the group has members"
    if exchange.error == UNKNOWN_MEMBER_ID:
        return f"although it accepted that member {seconds(exchange.inv_us - member.accepted_asked_us)} before"
    if misjudged.too_early:
        return f"although {partitions_text(group, misjudged.too_early)} was not assigned to it at that epoch"
    if not exchange.error and member.joined_epoch is not None and exchange.generation < member.joined_epoch:
        return f"although it joined at epoch {member.joined_epoch}"
    return f"although its epoch is {member.epoch}" if member.epoch is not None else "although its epoch is another"


@rule("migration goes back and forth", WARNING, CERTAIN, OPERATOR, quiet_times=60)
def E_21(group: GroupModel[Any], migrated: Migrated) -> Breach | None:
    """Each conversion is a rebalance for all members.

    Condition: Three conversions between the classic protocol and a newer one within an hour.
    Expected: One conversion, when the first client is upgraded.
    Action: Finish the upgrade of the clients, or take it back; set group.consumer.migration.policy to upgrade or downgrade.
    False alarms: An upgrade that is rehearsed.
    """
    if migrated.times < _FLAPS:
        return None
    return Breach(
        "",
        f"Group {group.name} was converted between the classic protocol and the newer one {migrated.times} times within an hour; now it is "
        f"of the {migrated.after} type.",
        f"{counted(migrated.times, 'conversion')} within an hour",
        (migrated.frame,),
        member_id=migrated.member_id,
    )


@timer_rule("migration does not end", WARNING, CERTAIN, OPERATOR)
def E_22(group: EpochGroupData) -> Iterator[Due]:
    """The classic members of a consumer group rebalance as before, and keep the group from the new protocol's benefits.

    Condition: A consumer group has had members of both protocols for a day.
    Expected: A migration ends.
    Action: Move the clients named to group.protocol=consumer.
    False alarms: Clients that cannot be upgraded.
    """
    if not group.mixed_since_us:
        return
    left = [member for member in group.present_members() if member.classic]
    if not left or all(member.classic for member in group.present_members()):
        return

    def describe() -> Breach:
        first = left[0]
        more = f" and {len(left) - 1} more" if len(left) > 1 else ""
        return Breach(
            "",
            f"Group {group.name} has had members of both protocols for a day: {first.id} {whom(first.actor)}{more} still use the classic "
            "one.",
            f"{len(left)} of {counted(sum(1 for _ in group.present_members()), 'member')} use the classic protocol",
            (),
        )

    yield Due(group.mixed_since_us + _MIXED_US, "", WARNING, describe)

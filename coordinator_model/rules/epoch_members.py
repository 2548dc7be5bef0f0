"""Family E, second part: what members of groups with epochs do for too long, and what keeps them out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from coordinator_model.finding import Blame, Certainty, Severity
from coordinator_model.groups.classic.data import CLASSIC
from coordinator_model.groups.epochs.data import EpochGroupData
from coordinator_model.groups.epochs.events import (
    CommitMisjudged,
    CommitRefused,
    InstanceHeld,
    Migrated,
    PausedLong,
    StaticLeaveRefused,
    WrongGroupType,
)
from coordinator_model.groups.epochs.evidence import asked_evidence, exchange_evidence, partitions_text
from coordinator_model.groups.epochs.kinds import CONSUMER, KIND_BY_API, SHARE, STREAMS
from coordinator_model.groups.epochs.positions import GONE, NEVER_JOINED
from coordinator_model.groups.epochs.records import JOIN_EPOCH
from coordinator_model.groups.group_model import GroupModel
from coordinator_model.groups.records import Exchange
from coordinator_model.rules.base import (
    Breach,
    Due,
    FrameRule,
    TimerRule,
    captured,
    is_gone,
    sender_text,
    who,
    whom,
)
from coordinator_model.wire import API_NAMES, error_name
from coordinator_model.wire.constants import GROUP_ID_NOT_FOUND, STALE_MEMBER_EPOCH, UNSUPPORTED_VERSION
from coordinator_model.wording import a_or_an, begin, clock, counted, seconds

_REPEATED = 3
_FLAPS = 3
_FEATURES = {CONSUMER: "group.version", SHARE: "share.version", STREAMS: "streams.version"}
"""Type of group → the feature without which brokers refuse it."""

_MIXED_US = 86_400_000_000


def _instance_held(group: EpochGroupData, held: InstanceHeld) -> Breach | None:
    exchange, holder = held.exchange, held.holder
    lasts_us = exchange.res_us - held.first_us
    session_ms = group.longest_session_ms()
    if lasts_us < session_ms * 1_000 + group.settings.slack_us(session_ms):
        return None
    if holder is None or exchange.res_us - holder.accepted_us > group.shortest_session_ms(holder) * 1_000:
        return None  # it may be dead, and its session be a long one
    return Breach.of_sender(
        exchange,
        f"{begin(sender_text(exchange))} cannot join group {group.name} as {exchange.instance_id} for {seconds(lasts_us)}: {who(holder)} "
        "holds that instance id and lives.",
        f"{counted(held.times, 'join')} answered UNRELEASED_INSTANCE_ID over {seconds(lasts_us)}",
        held.frames,
        subject=exchange.instance_id or "",
        generation=None,
    )


def _paused(group: EpochGroupData, paused: PausedLong) -> Breach:
    member = paused.member
    return Breach.of_member(
        member,
        f"{begin(who(member))} of group {group.name} sent no heartbeat for {seconds(paused.pause_us)}; it was told to send one every "
        f"{seconds(member.interval_ms * 1_000)}, and is removed after a session of "
        f"{group.shortest_session_ms(member) / 1_000:g} s at the least.",
        f"{seconds(paused.pause_us)} between two heartbeats",
        (asked_evidence(paused.exchange),),
        generation=member.epoch,
    )


def _wrong_type(group: GroupModel[Any], wrong: WrongGroupType) -> Breach | None:
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
        exchange_evidence(exchange),
        action=_action_for(group, exchange),
        generation=None,
    )


def _action_for(group: GroupModel[Any], exchange: Exchange) -> str | None:
    """Return what to do about a heartbeat that was refused for its type; None for a conversion that is refused."""
    wanted = KIND_BY_API[exchange.api_key].name
    if exchange.error == UNSUPPORTED_VERSION:
        feature = _FEATURES[wanted]
        return f"Finalise the feature {feature} on the brokers (kafka-features.sh upgrade), or let the client use the classic protocol."
    if group.kind == wanted:
        return "Restart that client if it does not join again by itself, and find out who deleted the group."
    if (group.kind, wanted) == (CLASSIC, CONSUMER):
        return None
    return (
        f"Use another group id for that client: a {group.kind} group cannot be converted to a {wanted} group while it has members."
    )


def _commits_refused(group: EpochGroupData, refused: CommitRefused) -> Breach | None:
    return refused_commits(group, refused) if refused.refusals.error == STALE_MEMBER_EPOCH else None


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


def _static_leave_refused(group: EpochGroupData, refused: StaticLeaveRefused) -> Breach:
    member = refused.member
    until_us = max(member.accepted_us, member.last_frame_us) + group.shortest_session_ms(member) * 1_000
    return Breach.of_member(
        member,
        f"{begin(who(member))} left group {group.name} for a while without its instance id {member.instance_id}, and was refused: it holds "
        f"that instance id and its partitions until its session ends, {clock(until_us)} at the earliest.",
        "a heartbeat at epoch -2 without an instance id answered INVALID_REQUEST",
        exchange_evidence(refused.exchange),
    )


def _commit_misjudged(group: EpochGroupData, misjudged: CommitMisjudged) -> Breach | None:
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
        (*proof, *exchange_evidence(exchange)),
        severity=None if exchange.error else Severity.CRITICAL,
    )


def _committer(exchange: Exchange) -> str:
    return sender_text(exchange) if exchange.member_id else f"a client that names no member {whom(exchange.actor)}"


def _known(group: EpochGroupData, misjudged: CommitMisjudged) -> str:
    """Return what was known of the committer that makes the answer unlawful."""
    exchange, member = misjudged.exchange, misjudged.member
    if member is None:
        return "although the group has members"
    if misjudged.too_early:
        return f"although {partitions_text(group, misjudged.too_early)} was not assigned to it at that epoch"
    if not exchange.error and member.joined_epoch is not None and exchange.generation < member.joined_epoch:
        return f"although it joined at epoch {member.joined_epoch}"
    return f"although its epoch is {member.epoch}" if member.epoch is not None else "although its epoch is another"


def _flaps(group: GroupModel[Any], migrated: Migrated) -> Breach | None:
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


def _converted(group: GroupModel[Any], migrated: Migrated) -> Breach:
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


def _stays_mixed(group: EpochGroupData) -> Iterator[Due]:
    left = [member for member in group.present_members() if member.classic]
    others = any(not member.classic for member in group.present_members())
    if not group.mixed_since_us or not left or not others:
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

    yield Due(group.mixed_since_us + _MIXED_US, "", Severity.WARNING, describe)


E_06 = FrameRule(
    id="E-06",
    name="instance id in use",
    severity=Severity.ERROR,
    certainty=Certainty.CONFIRMED,
    blame=Blame.CONFIG,
    meaning="Two living processes want one group.instance.id: the second never becomes a member.",
    condition="Joins with one group.instance.id were answered UNRELEASED_INSTANCE_ID for longer than the longest session, 60 s, and a "
    "tenth and 2 s.",
    expected="The instance id is free a session after its holder died, or at once when it left with epoch -2.",
    action="Give each process its own group.instance.id; stop the one that is not wanted.",
    false_alarms="None known: the holder must have been accepted within the last 45 s.",
    checks={InstanceHeld: _instance_held},
    over=lambda group, instance_id: instance_id not in group.claims,
)
E_09 = FrameRule(
    id="E-09",
    name="slow heartbeats",
    severity=Severity.WARNING,
    certainty=Certainty.CERTAIN,
    blame=Blame.CLIENT,
    meaning="The next pause may end the member's session and move its partitions.",
    condition="A heartbeat came more than three of the told intervals after the one before was answered, and after the throttle time in "
    "an answer.",
    expected="A heartbeat in each interval that the coordinator tells.",
    action="Look for pauses of that client: garbage collection, CPU limits, a suspended host.",
    false_alarms="A client that moved to another path for a while. It rests after a heartbeat that was not answered, an answer that shows "
    "that the coordinator has gone, and a client's search for its coordinator. A new connection begins anew.",
    checks={PausedLong: _paused},
)
E_10 = FrameRule(
    id="E-10",
    name="wrong type of group",
    severity=Severity.WARNING,
    certainty=Certainty.CERTAIN,
    blame=Blame.CONFIG,
    meaning="A client of a newer protocol cannot join: the group is of another type, cannot be migrated, or the protocol is off.",
    condition="A join was answered GROUP_ID_NOT_FOUND; or a member's heartbeats GROUP_ID_NOT_FOUND or UNSUPPORTED_VERSION three times.",
    expected="A group of the client's type, or one that may be migrated.",
    action="Read the broker's reason, if it gives one; align group.protocol of the clients with group.consumer.migration.policy, or use "
    "another group id.",
    false_alarms="A client lawfully gets one such answer when the group has just been converted back.",
    checks={WrongGroupType: _wrong_type},
)
E_11 = FrameRule(
    id="E-11",
    name="commits stay stale",
    severity=Severity.ERROR,
    certainty=Certainty.HEURISTIC,
    blame=Blame.CLIENT,
    meaning="None of the member's progress is saved: whoever gets its partitions processes the records again.",
    condition="At least three commits at one epoch were answered STALE_MEMBER_EPOCH, over at least 10 s and two heartbeat intervals, and "
    "none was accepted between.",
    expected="After such a refusal a member commits with the epoch of its next heartbeat.",
    action="Restart that client; look for a blocked poll loop.",
    false_alarms="One refusal for each new epoch is normal.",
    checks={CommitRefused: _commits_refused},
    over=commits_again,
)
E_19 = FrameRule(
    id="E-19",
    name="static leave refused",
    severity=Severity.WARNING,
    certainty=Certainty.CERTAIN,
    blame=Blame.CLIENT,
    meaning="A restart takes a whole session: the successor is refused and the partitions are idle until then.",
    condition="A static member's heartbeat with epoch -2 names no instance id, and is answered INVALID_REQUEST.",
    expected="The instance id in the leave.",
    action="Upgrade that client's library, or lower the group's consumer.session.timeout.ms.",
    false_alarms="None known.",
    checks={StaticLeaveRefused: _static_leave_refused},
    over=is_gone,
)
E_20 = FrameRule(
    id="E-20",
    name="commit misjudged",
    severity=Severity.ERROR,
    certainty=Certainty.CONFIRMED,
    blame=Blame.BROKER,
    meaning="Offsets are saved for a member that is fenced, or a healthy member's progress is lost.",
    condition="A commit, plain or in a transaction, was accepted above the member's epoch, below that of its join, at one at which the "
    "partition was not yet assigned to it, or without a member id while the group had members (critical); or STALE_MEMBER_EPOCH to its "
    "exact epoch. No heartbeat of the member was under way.",
    expected="Accepted at the member's epoch; since 4.3 also at older ones at which the partition was assigned already (KIP-1251).",
    action="Keep the frames and the coordinator's log of that moment, and report them.",
    false_alarms="None known.",
    checks={CommitMisjudged: _commit_misjudged},
)
E_21 = FrameRule(
    id="E-21",
    name="migration goes back and forth",
    severity=Severity.WARNING,
    certainty=Certainty.CERTAIN,
    blame=Blame.OPERATOR,
    meaning="Each conversion is a rebalance for all members.",
    condition="Three conversions between the classic protocol and a newer one within an hour.",
    expected="One conversion, when the first client is upgraded.",
    action="Finish the upgrade of the clients, or take it back; set group.consumer.migration.policy to upgrade or downgrade.",
    false_alarms="An upgrade that is rehearsed.",
    checks={Migrated: _flaps},
    quiet_times=60,
)
E_22 = TimerRule(
    id="E-22",
    name="migration does not end",
    severity=Severity.WARNING,
    certainty=Certainty.CERTAIN,
    blame=Blame.OPERATOR,
    meaning="The classic members of a consumer group rebalance as before, and keep the group from the new protocol's benefits.",
    condition="A consumer group has had members of both protocols for a day.",
    expected="A migration ends.",
    action="Move the clients named to group.protocol=consumer.",
    false_alarms="Clients that cannot be upgraded.",
    due=_stays_mixed,
)
P_12 = FrameRule(
    id="P-12",
    name="group converted",
    severity=Severity.INFO,
    certainty=Certainty.CERTAIN,
    blame=Blame.OPERATOR,
    meaning="The group is being migrated between the classic and the consumer protocol: other rules judge it from here on.",
    condition="In a group that was seen to be of one type a member was admitted under the protocol of another; or a JoinGroup success "
    "names no leader, or one again.",
    expected="A migration that was planned.",
    action="None if it was planned. If not, look at group.protocol of the client named, and at group.consumer.migration.policy.",
    false_alarms="None known.",
    checks={Migrated: _converted},
    quiet_times=60,
)

RULES = (E_06, E_09, E_10, E_11, E_19, E_20, E_21, E_22)

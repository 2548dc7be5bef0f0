"""Rules of families A, E and R about who gets which partitions in a group with epochs, and who waits for whom.

A partition moves only when its holder has given it up. Three things keep it: the holder was not told yet, was told and has not
acknowledged, or has gone. Each has a deadline: its next heartbeat, its rebalance timeout since the newest smaller assignment, its
session.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from coordinator_model.events import GONE, NOT_GIVEN_UP
from coordinator_model.finding import (
    BROKER,
    CERTAIN,
    CLIENT,
    CONFIRMED,
    CRITICAL,
    ERROR,
    HEURISTIC,
    OPERATOR,
    WARNING,
    Blame,
    Evidence,
)
from coordinator_model.groups.epochs.data import EpochGroupData, partitions_text
from coordinator_model.groups.epochs.events import AssignorFailed, DoubleOwned, EpochRose, NoAssignment, UnsubscribedAssigned
from coordinator_model.groups.epochs.heartbeat_fields import MISSING_SOURCE_TOPICS
from coordinator_model.groups.epochs.kinds import SHARE, STREAMS
from coordinator_model.groups.epochs.reconciliation import UNSEEN_CAUSES, removal_overdue_us
from coordinator_model.groups.epochs.records import EpochMember
from coordinator_model.groups.evidence import epoch_exchange_evidence, epoch_request_evidence, epoch_response_evidence
from coordinator_model.groups.waits import Wait, sentence, waits
from coordinator_model.rules.base import Breach, Due, captured, rule, sender_text, timer_rule, who
from coordinator_model.rules.held_back import free_until_us, unanswered
from coordinator_model.wire import API_NAMES
from coordinator_model.wording import a_or_an, begin, clock, plural, seconds

_STORM_US = 300_000_000
_SHARE_STORM_MENDED_IN = (4, 3)
_FAILURES = 3
_DEAD = 2  #: dead members that keep partitions; one alone is a crash, whose wait its session bounds


def _warned_us(member: EpochMember) -> int:
    """Return when half of the time is over that a member has to give up what it was asked to."""
    return member.revoking_us + (member.revoking_timeout_ms or 0) * 500


def waiting_members(group: EpochGroupData, holder: EpochMember) -> list[EpochMember]:
    """Return the members that have nothing at the newest epoch and may wait for the holder."""
    return [member for member in group.present_members() if member is not holder and member.empty_since_us and not member.classic]


@rule("partition of two members", CRITICAL, CONFIRMED, BROKER)
def A_12(group: EpochGroupData, double: DoubleOwned) -> Breach:
    """Two members process the same records, and overwrite each other's offsets (KAFKA-16147 and its like).

    Condition: A partition was assigned to a member while another held it, which had not acknowledged to give it up and had not
        gone; and that other was accepted afterwards at its epoch without a join between.
    Expected: A partition is given away only once its holder has acknowledged, left, been replaced or been removed.
    Action: Keep the frames named and the coordinator's log, and report them; restart one of the two clients.
    False alarms: None known. A missing frame of the holder, and a coordinator that moved, end what is known of it.
    """
    holder = group.members[double.grant.holder]
    other = group.members.get(double.grant.other)
    taker = who(other) if other is not None else f"member {double.grant.other}"
    what = partitions_text(group, double.partitions)
    return Breach.of_member(
        holder,
        f"The coordinator {double.exchange.broker} gave {what} of group {group.name} to {taker} while {who(holder)} held it: that "
        f"member was neither asked to give it up in time nor removed, and was accepted afterwards at epoch {double.exchange.generation}.",
        f"Assigned to {double.grant.other} before {holder.id} gave it up: {what}",
        (*double.grant.frames, epoch_response_evidence(double.exchange)),
        generation=double.exchange.generation,
    )


@rule("no assignment in a full answer", ERROR, CERTAIN, BROKER)
def E_12(group: EpochGroupData, missing: NoAssignment) -> Breach:
    """The client keeps an old plan, or none (KAFKA-16367).

    Condition: A join, or a heartbeat with timeout, subscription and list of partitions, succeeded without an assignment.
    Expected: The whole assignment, which may be empty.
    Action: Upgrade the broker.
    False alarms: None known: version 0 of the API, which preview brokers had, is not judged.
    """
    exchange = missing.exchange
    asked = "join" if not exchange.generation else "full request"
    return Breach.of_sender(
        exchange,
        f"The coordinator {exchange.broker} answered the {asked} of {sender_text(exchange)} in group {group.name} without an "
        "assignment: the client goes on with what it had.",
        f"a {asked} answered at epoch {missing.epoch} without an assignment",
        (epoch_request_evidence(exchange), epoch_response_evidence(exchange, missing.epoch)),
        generation=missing.epoch,
    )


@rule("assignor fails", ERROR, CERTAIN, BROKER, over=lambda group, _: group.assignor_failures == 0)
def E_13(group: EpochGroupData, failed: AssignorFailed) -> Breach | None:
    """The group cannot rebalance: new members get nothing, and partitions of those that left stay idle.

    Condition: Three heartbeats of the group in a row were answered UNKNOWN_SERVER_ERROR.
    Expected: A target assignment for each epoch.
    Action: Read the coordinator's log, and the broker's reason if one is named. If group.consumer.assignors names an assignor of
        your own, look there.
    False alarms: None known.
    """
    if failed.times < _FAILURES:
        return None
    exchange = failed.exchange
    reason = f": “{failed.text}”" if failed.text else ""
    api = API_NAMES[exchange.api_key]
    return Breach.of_sender(
        exchange,
        f"The coordinator {exchange.broker} fails on heartbeats of group {group.name}, {failed.times} times in a row{reason}: no "
        "rebalance is possible.",
        f"{a_or_an(api)} answered UNKNOWN_SERVER_ERROR{reason}",
        epoch_exchange_evidence(exchange),
        subject="",
        generation=None,
    )


@rule("unsubscribed topic assigned", ERROR, CERTAIN, BROKER)
def E_16(group: EpochGroupData, more: UnsubscribedAssigned) -> Breach:
    """A member gets partitions that it will not read: they are idle.

    Condition: An assignment has more topics than the member subscribes to by name, and it has no pattern. Only brokers since 4.2
        are judged: older ones leave topics assigned until the next target.
    Expected: Partitions of subscribed topics.
    Action: Keep the frames named and the coordinator's log, and report them.
    False alarms: None known.
    """
    member, exchange = more.member, more.exchange
    subscribed = sorted(set(member.topics or ()))
    assigned = f"partitions of {' and '.join(more.foreign)}" if more.foreign else f"partitions of {more.assigned} topics"
    wants = ", ".join(subscribed) if more.foreign else f"{len(subscribed)}"
    return Breach.of_member(
        member,
        f"The coordinator {exchange.broker} assigned {assigned} to {who(member)} in group {group.name}, which subscribes to {wants}.",
        f"{more.assigned} topics assigned, {len(subscribed)} subscribed",
        epoch_exchange_evidence(exchange),
        generation=member.epoch,
    )


@timer_rule("partitions not given up", ERROR, CONFIRMED, CLIENT)
def R_14(group: EpochGroupData) -> Iterator[Due]:
    """Nobody reads what the member was told to give up; others wait for it.

    Condition: A member was told to give up partitions, and its requests have not acknowledged that for half of its rebalance
        timeout (warning). An error of the broker if it still accepts the member after three times the time, a tenth and 2 s: it may
        have loaded the group anew between frames, even twice. Each answer that takes more starts the time again, as it does for the
        coordinator. No warning while a source topic of a Streams group is missing (R-19): nobody is to get its tasks.
    Expected: A heartbeat that no longer lists them, as soon as the rebalance listener has returned.
    Action: Take a thread dump of that client: look at its rebalance listener and its poll loop. Restart it if it hangs: others get
        its partitions once it has left, or its session has ended.
    False alarms: None known. Where the timeout was not seen, the rule rests.
    """
    waiting = unanswered(group)
    for member in group.present_members():
        timeout_ms = member.revoking_timeout_ms
        if not member.pending or not member.revoking_us or timeout_ms is None:
            continue
        timeout_us = timeout_ms * 1_000
        until_us = member.revoking_us + timeout_us
        throttled_us = max(0, group.coordinator_changes.throttled_until_us - member.revoking_us)
        half_us = _warned_us(member) + throttled_us
        if MISSING_SOURCE_TOPICS not in group.status_streaks:
            yield Due(
                half_us,
                member.id,
                WARNING,
                partial(_withheld, group, member, half_us, until_us),
                free_until_us(waiting.get(member.actor.connection)),
            )
        overdue_us = removal_overdue_us(group, member)
        if overdue_us is not None and member.accepted_asked_us > overdue_us:
            yield Due(
                member.accepted_us,
                member.id,
                ERROR,
                partial(_not_removed, group, member, until_us),
            )


def _withheld(group: EpochGroupData, member: EpochMember, now_us: int, until_us: int) -> Breach:
    victims = waiting_members(group, member)
    wait = Wait(NOT_GIVEN_UP, member, member.pending, member.revoking_us, until_us)
    waiting = f"; {len(victims)} {plural(len(victims), 'member')} may wait for it" if victims else ""
    return Breach.of_member(
        member,
        sentence(group, wait, begin(who(member)), f"{seconds(now_us - member.revoking_us)} ago", f" of group {group.name}")
        + f"{waiting}.",
        f"told at {clock(member.revoking_us)} at epoch {member.epoch}, not acknowledged",
        _revoking_frames(member),
        generation=member.epoch,
    )


def _not_removed(group: EpochGroupData, member: EpochMember, until_us: int) -> Breach:
    return _withheld(group, member, until_us, until_us)._replace(
        summary=f"The coordinator {group.broker} should have removed {who(member)} from group {group.name} at {clock(until_us)}: it was "
        f"asked to give up {partitions_text(group, member.pending)} and has not, and its heartbeats still succeed.",
        observed=f"a heartbeat accepted at {clock(member.accepted_us)} at epoch {member.epoch}",
        blame=BROKER,
        action="Restart that client, which frees what it holds. Keep the frames and the coordinator's log of that moment, and report them.",
    )


def _revoking_frames(member: EpochMember) -> tuple[Evidence, ...]:
    return captured(member.revoking_frame)


def _unit(group: EpochGroupData) -> str:
    return "task" if group.kind == STREAMS else "partition"


def _starving(group: EpochGroupData) -> Iterator[Due]:
    holders = [member for member in group.present_members() if member.pending and member.revoking_us and member.revoking_timeout_ms]
    if not holders:
        return
    longest_ms = max((member.revoking_timeout_ms or 0 for member in holders), default=0)
    if not longest_ms:
        return
    for member in group.present_members():
        if not member.empty_since_us or member.classic:
            continue

        def describe(member: EpochMember = member) -> Breach:
            of_others = [wait for wait in waits(group) if wait.holder is not member]
            held = "; ".join(sentence(group, wait, who(wait.holder)) for wait in of_others[:3])
            return Breach.of_member(
                member,
                f"{begin(who(member))} has had no {_unit(group)} of group {group.name} since {clock(member.empty_since_us)}, longer than "
                f"any rebalance timeout, and may wait: {held}.",
                f"nothing assigned at epoch {member.epoch} since {clock(member.empty_since_us)}",
                captured(member.granted_frame),
                generation=member.epoch,
            )

        due_us = member.empty_since_us + longest_ms * 1_000 + group.settings.slack_us(longest_ms)
        if all(_warned_us(holder) > due_us for holder in holders):  # else R-14 reports the holder
            yield Due(due_us, member.id, WARNING, describe)


def _starved_by_the_dead(group: EpochGroupData) -> Iterator[Due]:
    """Yield what becomes due for members that have nothing while several dead ones keep partitions until their sessions end."""
    if sum(member.disconnected_us > 0 for member in group.present_members()) < _DEAD:
        return  # as nearly always
    kept = [wait for wait in waits(group) if wait.kind == GONE and wait.holder.removed is None]
    if len(kept) < _DEAD:
        return
    since_us = sorted(wait.since_us for wait in kept)[_DEAD - 1]
    for member in group.present_members():
        if not member.empty_since_us or member.classic or member.disconnected_us > member.last_frame_us:
            continue

        def describe(member: EpochMember = member) -> Breach:
            held = "; ".join(sentence(group, wait, who(wait.holder)) for wait in kept[:3])
            return Breach.of_member(
                member,
                f"{begin(who(member))} has had no {_unit(group)} of group {group.name} since {clock(member.empty_since_us)}, and may wait "
                f"for {len(kept)} dead members: {held}.",
                f"nothing assigned at epoch {member.epoch}, and {len(kept)} members whose connections ended keep partitions",
                captured(member.granted_frame),
                generation=member.epoch,
                action="Find out why the members named die without leaving (M-13); a shorter consumer.session.timeout.ms of the group "
                "frees what they keep sooner.",
            )

        yield Due(max(member.empty_since_us, since_us) + group.settings.standstill_ms * 1_000, member.id, WARNING, describe)


@timer_rule("member starves", WARNING, HEURISTIC, CLIENT, suppressed_by=("R-14",))
def R_15(group: EpochGroupData) -> Iterator[Due]:
    """A member has nothing to do, while another holds partitions that it was told to give up.

    Condition: A member is at the newest epoch with no partition for longer than the rebalance timeout of those that have not
        acknowledged, a tenth and 2 s, and each of these was told to give up more within half of its rebalance timeout: else R-14
        reports it. Or for 20 s (standstill_ms) while at least two dead members, whose connections ended, keep partitions.
    Expected: Partitions within a rebalance timeout.
    Action: Act on the member that holds them, which is named: take a thread dump, look at its rebalance listener and poll loop, and
        restart it if it hangs.
    False alarms: More members than partitions: no frame shows what a member is to get.
    """
    yield from _starving(group)
    yield from _starved_by_the_dead(group)


@rule("epoch storm", ERROR, HEURISTIC, CLIENT)
def R_16(group: EpochGroupData, rose: EpochRose) -> Breach | None:
    """The group never settles: each epoch is another reconciliation for all members.

    Condition: The group's epoch has risen at least once in every one and a half heartbeat intervals for 5 minutes.
    Expected: An epoch lasts until members, subscriptions or topics change.
    Action: Look at what raises it, which is named: members that join and leave, subscriptions that change.
    False alarms: A deployment that restarts members one after the other for so long.
    """
    lasts_us = rose.bump.at_us - rose.since_us
    if lasts_us < _STORM_US:
        return None
    newest = "" if rose.bump.member_id is None else f", last by {_named(group, rose.bump.member_id)}"
    why = ", ".join(f"{cause} {times} {plural(times, 'time')}" for cause, times in rose.causes) + newest
    blame, action = _who_raises(group, rose)
    if blame is BROKER:
        why = "nothing that was seen raises it"
    return Breach(
        "",
        f"The epoch of group {group.name} has risen with every heartbeat interval for {seconds(lasts_us)}, {rose.times} times: {why}.",
        f"{rose.times} epochs within {seconds(lasts_us)}",
        (rose.bump.frame,),
        generation=rose.bump.epoch,
        member_id=rose.bump.member_id,
        blame=blame,
        action=action,
    )


def _named(group: EpochGroupData, member_id: str) -> str:
    """Return a member with its client, if that is known."""
    member = group.members.get(member_id)
    return f"member {member_id}" if member is None else who(member)


def _who_raises(group: EpochGroupData, rose: EpochRose) -> tuple[Blame | None, str | None]:
    """Return whom to blame for the most frequent cause, and what to do about it; None for what the rule itself has."""
    if rose.causes[0][0] not in UNSEEN_CAUSES:
        return None, None
    if group.kind == SHARE and group.release_of(group.broker) < _SHARE_STORM_MENDED_IN:
        return (
            BROKER,
            "Upgrade the brokers: nothing that was seen raises these epochs.",
        )
    return OPERATOR, (
        "Look for who makes and deletes topics, adds partitions or changes the group's configuration, again and again: no member "
        "explains these epochs."
    )

"""What rules of other families report of groups whose members have epochs: rules whose sense carries over keep their ids."""

from __future__ import annotations

from coordinator_model.groups.epochs.data import EpochGroupData
from coordinator_model.groups.epochs.events import (
    AnsweredAs,
    CommitRefused,
    ImpossibleAnswer,
    SubscriptionFlapped,
    WentSilent,
)
from coordinator_model.groups.epochs.evidence import answer_evidence, asked_evidence
from coordinator_model.rules.base import Breach, a_or_an, about, seconds, sender_fields, sender_text, who
from coordinator_model.rules.epoch_members import refused_commits
from coordinator_model.wire import API_NAMES, error_name
from coordinator_model.wire.constants import STALE_MEMBER_EPOCH

_CHANGES, _VALUES = 4, 3


def impossible_answer(group: EpochGroupData, impossible: ImpossibleAnswer) -> Breach:
    """Return the breach of P-07."""
    exchange = impossible.exchange
    api, named = API_NAMES[exchange.api_key], error_name(exchange.error)
    return Breach(
        f"{api} {named}",
        f"{exchange.broker} answered {a_or_an(api)} v{exchange.api_version} of {sender_text(exchange)} in group {group.name} with {named}, "
        "which no coordinator gives there.",
        f"{api} v{exchange.api_version} answered {named}",
        (asked_evidence(exchange), answer_evidence(exchange)),
        generation=exchange.generation if exchange.generation >= 0 else None,
        **sender_fields(exchange),
    )


def session_ended(group: EpochGroupData, silent: WentSilent) -> Breach | None:
    """Return the breach of T-04. A client that goes on under another id, and a group that lost all its connections, are none."""
    member = silent.member
    if not group.connections or any(
        other.actor.client_id == member.actor.client_id and other.last_frame_us > member.last_frame_us
        for other in group.members.values()
    ):
        return None
    return Breach(
        member.id,
        f"{who(member)} fell silent in group {group.name} without leaving: nothing for {seconds(silent.at_us - member.last_frame_us)}; "
        "its partitions were idle meanwhile.",
        f"no frame since {a_or_an(member.last_frame or 'frame')}, and no leave",
        () if member.epoch_frame is None else (member.epoch_frame,),
        **about(member),
    )


def heartbeat_for_another(group: EpochGroupData, answered: AnsweredAs) -> Breach:
    """Return the breach of M-08."""
    exchange = answered.exchange
    return Breach(
        exchange.member_id,
        f"The coordinator {exchange.broker} answered the heartbeat of {sender_text(exchange)} in group {group.name} with the member id "
        f"{answered.member_id}.",
        f"a heartbeat of {exchange.member_id} succeeded as {answered.member_id}",
        (asked_evidence(exchange), answer_evidence(exchange)),
        **sender_fields(exchange),
    )


def commits_refused(group: EpochGroupData, refused: CommitRefused) -> Breach | None:
    """Return the breach of O-01; E-11 reports commits at a stale epoch."""
    return None if refused.refusals.error == STALE_MEMBER_EPOCH else refused_commits(group, refused)


def subscription_flaps(group: EpochGroupData, flapped: SubscriptionFlapped) -> Breach | None:
    """Return the breach of R-17."""
    member, changes = flapped.member, flapped.changes
    values = {value for _, value in changes}
    if len(changes) < _CHANGES or len(values) > _VALUES:
        return None
    return Breach(
        member.id,
        f"{who(member)} goes back and forth between {len(values)} subscriptions in group {group.name}, {len(changes)} times within 15 "
        "minutes: each change makes all members rebalance.",
        f"{len(changes)} changes between {len(values)} subscriptions",
        (asked_evidence(flapped.exchange),),
        generation=member.epoch,
        **about(member),
    )

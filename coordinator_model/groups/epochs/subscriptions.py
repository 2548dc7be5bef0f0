"""What members with epochs subscribe to. A heartbeat says only what it changes, so after a missing frame it is not known."""

from __future__ import annotations

from typing import Final

from coordinator_model.groups.epochs.data import EpochGroupData
from coordinator_model.groups.epochs.events import SubscriptionFlapped
from coordinator_model.groups.epochs.records import JOIN_EPOCH, EpochMember
from coordinator_model.groups.records import Exchange, HeartbeatFacts
from coordinator_model.groups.tracker import NOTHING, Event

FLAP_WINDOW_US: Final = 900_000_000
_CHANGES_KEPT: Final = 6


def note(
    group: EpochGroupData, exchange: Exchange, member: EpochMember, kept: EpochMember | None, *, overlapped: bool
) -> tuple[Event, ...]:
    """Take over what the request changed of the subscription.

    :param kept: see :func:`kept_of`.
    """
    facts = exchange.facts
    assert isinstance(facts, HeartbeatFacts)
    topics, pattern = ((), "") if kept is None else (kept.topics, kept.pattern)
    if facts.topics is not None:
        topics = tuple(sorted(set(facts.topics)))
    if facts.pattern is not None:
        pattern = facts.pattern
    before = member.topics, member.pattern
    if (topics, pattern) == before:
        return NOTHING
    group.changed = True
    if overlapped:  # which of two requests came first is not known
        topics, pattern = (topics if topics == before[0] else None), (pattern if pattern == before[1] else None)
    member.topics, member.pattern = topics, pattern
    if kept is not member or (before[0] in {None, topics} and before[1] in {None, pattern}):
        return NOTHING
    group.may_have_raised("changed its subscription", member.id)
    if overlapped:
        return NOTHING
    window_us = exchange.res_us - FLAP_WINDOW_US
    value = ",".join(topics or ()) + ("/" + pattern if pattern else "")
    recent = tuple(change for change in member.changes if change[0] > window_us)
    member.changes = (*recent[-_CHANGES_KEPT:], (exchange.res_us, value))
    return (SubscriptionFlapped(exchange, member, member.changes),)


def kept_of(group: EpochGroupData, exchange: Exchange, known: EpochMember | None) -> EpochMember | None:
    """Return whose subscription counts where a request says nothing of it, None if a new member sends it.

    A member that joins again keeps its own, and the successor of a static member its predecessor's.
    """
    if known is not None and (exchange.generation != JOIN_EPOCH or known.keeps_place):
        return known
    return group.members.get(group.instances.get(exchange.instance_id or "", ""))

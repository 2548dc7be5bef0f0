"""OffsetCommits in a group whose members have epochs.

A heartbeat under way makes two epochs possible at the moment of a commit, so neither answer is judged then.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from coordinator_model.groups.committed_offsets import read_positions, refusals_in, without_refused
from coordinator_model.groups.coordinator_addresses import is_coordinator
from coordinator_model.groups.epochs.data import EpochGroupData
from coordinator_model.groups.epochs.events import CommitMisjudged, CommitRefused, CommittedAfterEnd
from coordinator_model.groups.epochs.evidence import answer_evidence
from coordinator_model.groups.epochs.records import EpochMember
from coordinator_model.groups.records import EpochCommitFacts, Exchange, Refusals
from coordinator_model.groups.tracker import NOTHING, Event
from coordinator_model.wire.constants import NONE, NOT_ADMITTED, STALE_MEMBER_EPOCH

MEMBER_EPOCH_SINCE: Final = 9
"""OffsetCommit: carries the epoch of a member (KIP-848)."""

TOPIC_IDS_SINCE: Final = 10
"""OffsetCommit: names topics by their ids."""

_REFUSED = (STALE_MEMBER_EPOCH, *NOT_ADMITTED)


def on_request(group: EpochGroupData, exchange: Exchange, member: EpochMember | None, body: Any) -> tuple[Event, ...]:
    known = member if member is not None and member.present and not member.classic else None
    exchange.facts = EpochCommitFacts(
        None if known is None else known.epoch, not _heartbeat_open(group, exchange), read_positions(body)
    )
    return NOTHING


def on_response(group: EpochGroupData, exchange: Exchange, body: Any) -> tuple[Event, ...]:
    member = group.members.get(exchange.member_id)
    if member is None or not exchange.member_id:
        return NOTHING
    codes = exchange.error_codes
    error = next((code for code in _REFUSED if code in codes), NONE)
    exchange.error = error
    events: tuple[Event, ...] = NOTHING
    if error:
        refusals = _count(member, exchange)
        group.slow_changed = True
        events = (CommitRefused(exchange, member, refusals),)
    elif NONE in codes and member.commit_refusals is not None:
        member.commit_refusals = None
        group.changed = group.slow_changed = True
    facts = exchange.facts
    if not isinstance(facts, EpochCommitFacts) or exchange.api_version < MEMBER_EPOCH_SINCE or not exchange.gap_free:
        return events
    asked = exchange.generation
    if (
        NONE in codes
        and asked >= 0
        and member.gone
        and member.removed_us < exchange.inv_us
        and not _heartbeat_open(group, exchange)
    ):
        return (*events, CommittedAfterEnd(exchange, member))
    if not _settled(group, exchange, member, facts):
        return events
    if NONE in codes and asked >= 0 and member.epoch is not None:
        joined = member.joined_epoch
        if asked > member.epoch or (joined is not None and asked < joined):
            return (*events, CommitMisjudged(exchange, member, accepted=True))
        if asked < member.epoch and (early := frozenset(_too_early(group, exchange, member, body))):
            return (*events, CommitMisjudged(exchange, member, accepted=True, too_early=early))
    if error == STALE_MEMBER_EPOCH and asked == member.epoch:
        return (*events, CommitMisjudged(exchange, member, accepted=False))
    return events


def stands(group: EpochGroupData, exchange: Exchange, body: Any) -> tuple[Event, ...]:
    """Note the offsets of an accepted commit, and return what is strange about them."""
    if not isinstance(exchange.facts, EpochCommitFacts) or NONE not in exchange.error_codes:
        return NOTHING
    accepted = without_refused(exchange.facts.positions, refusals_in(body))
    group.slow_changed = True
    return tuple(group.committed_offsets.committed(group, exchange, accepted))


def _too_early(group: EpochGroupData, exchange: Exchange, member: EpochMember, body: Any) -> Iterator[tuple[str, int]]:
    """Yield the partitions that were accepted at an epoch at which they were certainly not the member's.

    A release before 4.3 accepts no older epoch at all. Since then one is lawful at which the partition was assigned already (KIP-1251).
    """
    if not group.traits.answers_full_requests or member.ever is None:
        return  # tasks are not partitions
    for topic in body.topics:
        ids = _ids_of(group, member, topic, exchange.api_version)
        for partition in topic.partitions if ids is not None else ():
            had = {(id_, partition.partition_index) for id_ in ids or ()} & member.ever.keys()
            if partition.error_code == NONE and all(member.ever[each] > exchange.generation for each in had):
                yield min(ids or (), default=topic.name), partition.partition_index


def _ids_of(group: EpochGroupData, member: EpochMember, topic: Any, version: int) -> frozenset[str] | None:
    """Return which topics of the member a commit can mean, None if a name is needed that is not known."""
    if version >= TOPIC_IDS_SINCE:
        return frozenset({topic.topic_id})
    names = {id_: group.topic_text(id_) for id_, _ in member.ever or ()}
    if any(id_ == named for id_, named in names.items()):
        return None
    return frozenset(id_ for id_, named in names.items() if named == topic.name)


def _settled(group: EpochGroupData, exchange: Exchange, member: EpochMember, facts: EpochCommitFacts) -> bool:
    """Return True if the member had one epoch from the request to the response, of the coordinator that answers."""
    return (
        facts.settled
        and is_coordinator(group, exchange.broker)
        and not member.reloaded
        and member.present
        and facts.epoch is not None
        and facts.epoch == member.epoch
        and member.paused_us < exchange.inv_us
        and not _heartbeat_open(group, exchange)
    )


def _heartbeat_open(group: EpochGroupData, exchange: Exchange) -> bool:
    return any(other.member_id == exchange.member_id and other.api_key == group.traits.api_key for other in group.open.values())


def _count(member: EpochMember, exchange: Exchange) -> Refusals:
    refusals = member.commit_refusals
    if refusals is None or (refusals.error, refusals.generation) != (exchange.error, exchange.generation):
        refusals = member.commit_refusals = Refusals(exchange.error, exchange.generation, 0, exchange.res_us, exchange.res_us)
    refusals.add(exchange.res_us, answer_evidence(exchange))
    return refusals

"""OffsetCommits in a group whose members have epochs.

A heartbeat under way makes two epochs possible at the moment of a commit, so neither answer is judged then.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from coordinator_model.groups.committed_offsets import keep_newest, read_positions, refusals_in, without_refused
from coordinator_model.groups.epochs.data import EpochGroupData
from coordinator_model.groups.epochs.events import CommitMisjudged, CommitRefused, CommittedForeign, CommittedInTurn
from coordinator_model.groups.epochs.kinds import STREAMS
from coordinator_model.groups.epochs.positions import MEMBER_EPOCH_SINCE, STALE, commit_kind, is_gone
from coordinator_model.groups.epochs.records import JOIN_EPOCH, Committer, EpochMember
from coordinator_model.groups.evidence import epoch_response_evidence
from coordinator_model.groups.group_coordinator import is_coordinator
from coordinator_model.groups.records import CommitFacts, EpochCommitFacts, Exchange, Refusals
from coordinator_model.groups.tracker import NOTHING, Event
from coordinator_model.wire.constants import (
    NONE,
    NOT_ADMITTED,
    OFFSET_COMMIT,
    STALE_MEMBER_EPOCH,
    TXN_OFFSET_COMMIT,
    UNKNOWN_MEMBER_ID,
)

COMMITTERS_KEPT: Final = 256
TOPIC_IDS_SINCE: Final = 10
"""OffsetCommit: names topics by their ids."""

_REFUSED = (STALE_MEMBER_EPOCH, *NOT_ADMITTED)
_JUDGED: Final = frozenset({NONE, STALE_MEMBER_EPOCH, UNKNOWN_MEMBER_ID})


def on_request(group: EpochGroupData, exchange: Exchange, member: EpochMember | None, body: Any) -> tuple[Event, ...]:
    known = member if member is not None and member.present and not member.classic else None
    exchange.facts = EpochCommitFacts(
        None if known is None else known.epoch, not _heartbeat_open(group, exchange), read_positions(body)
    )
    return NOTHING


def on_response(group: EpochGroupData, exchange: Exchange, body: Any) -> tuple[Event, ...]:
    codes, member = exchange.error_codes, group.members.get(exchange.member_id)
    exchange.error = next((code for code in _REFUSED if code in codes), NONE)
    events = _refusals(group, exchange, member)
    facts = exchange.facts
    judged = exchange.error or NONE in codes
    if not judged or not isinstance(facts, EpochCommitFacts) or not exchange.gap_free or _names_no_member(exchange):
        return events
    if member is None:
        return events + _misjudged(group, exchange, None, settled=True)
    if member.classic or (exchange.api_key == OFFSET_COMMIT and exchange.api_version < MEMBER_EPOCH_SINCE):
        return events
    settled = _settled(group, exchange, member, facts)
    gone = is_gone(group, exchange, member)
    events += _misjudged(group, exchange, member, settled=settled or gone)
    if not settled or exchange.error:
        return events
    if not events and member.epoch is not None and exchange.generation < member.epoch:
        early = frozenset(_too_early(group, exchange, member, body))
        events = (CommitMisjudged(exchange, member, STALE, early),) if early else NOTHING
    return events + _foreign(group, exchange, member, body)


def _names_no_member(exchange: Exchange) -> bool:
    """Return True for a TxnOffsetCommit without ids, which no coordinator checks (before KIP-447 there were none)."""
    return exchange.api_key == TXN_OFFSET_COMMIT and not exchange.member_id and exchange.generation < 0


def _misjudged(group: EpochGroupData, exchange: Exchange, member: EpochMember | None, *, settled: bool) -> tuple[Event, ...]:
    if exchange.error not in _JUDGED:
        return NOTHING
    kind = commit_kind(group, exchange, member, overlapped=not settled)
    joined = None if member is None or not settled else member.joined_epoch
    if not kind and not exchange.error and joined is not None and 0 <= exchange.generation < joined:
        kind = STALE  # nothing was assigned to it before it joined
    return (CommitMisjudged(exchange, member, kind),) if kind else NOTHING


def _refusals(group: EpochGroupData, exchange: Exchange, member: EpochMember | None) -> tuple[Event, ...]:
    if member is None:
        return NOTHING
    if exchange.error:
        return (CommitRefused(exchange, member, _count(member, exchange)),)
    if NONE in exchange.error_codes and member.commit_refusals is not None:
        member.commit_refusals = None
        group.changed = True
    return NOTHING


def _foreign(group: EpochGroupData, exchange: Exchange, member: EpochMember, body: Any) -> tuple[Event, ...]:
    """Return an event if the member commits what it has given up, and another owns since before the request."""
    if not group.traits.exclusive or not group.traits.answers_full_requests or member.granted is None or member.ever is None:
        return NOTHING
    given = {
        (id_, partition.partition_index)
        for topic in body.topics
        for id_ in _ids_of(group, member, topic, exchange.api_version) or ()
        for partition in topic.partitions
        if partition.error_code == NONE
    } - member.holds
    owners = [
        other
        for other in group.present_members()
        if other is not member and other.granted is not None and other.granted_us < exchange.inv_us and other.granted & given
    ]
    if not owners:
        member.foreign_commits = 0
        return NOTHING
    member.foreign_commits += 1
    owner = owners[0]
    assert owner.granted is not None
    return (CommittedForeign(exchange, member, owner, frozenset(given & owner.granted), member.foreign_commits),)


def stands(group: EpochGroupData, exchange: Exchange, body: Any, judged: tuple[Event, ...]) -> tuple[Event, ...]:
    """Note the offsets of an accepted commit, and return what is strange about them.

    :param judged: the events of its answer.
    """
    if not isinstance(exchange.facts, EpochCommitFacts) or NONE not in exchange.error_codes:
        return NOTHING
    accepted = without_refused(exchange.facts.positions, refusals_in(body))
    events = (*group.committed_offsets.committed(group, exchange, accepted), *_in_turn(group, exchange, accepted))
    if any(isinstance(event, CommitMisjudged) for event in judged):
        group.committed_offsets.distrust(group, accepted)
    return events


def _in_turn(group: EpochGroupData, exchange: Exchange, accepted: CommitFacts) -> tuple[Event, ...]:
    """Return an event if a member commits what another has committed since its last commit, at the same epoch.

    A member gets no task at an epoch at which it had it before and gave it up: one of the two commits what it does not own. No frame tells
    which partitions are those of a task.
    """
    if group.kind != STREAMS or exchange.generation <= JOIN_EPOCH:
        return NOTHING
    own, rivals = (exchange.member_id, exchange.generation), dict[str, str]()
    for partition in (f"{group.topic_text(topic)}-{number}" for topic, numbers, _ in accepted.topics for number in numbers):
        known = group.committers.get(partition)
        before = None
        if known is not None and known.member_id == exchange.member_id:
            before = known.before
        elif known is not None and known.at_us + group.clock_skew_us < exchange.inv_us:
            before = (known.member_id, known.epoch)
            if known.before == own:
                rivals[partition] = known.member_id
        keep_newest(group.committers, partition, Committer(*own, exchange.res_us, before), COMMITTERS_KEPT)
    return (CommittedInTurn(exchange, next(iter(rivals.values())), tuple(sorted(rivals))),) if rivals else NOTHING


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
        and not group.may_be_reloaded(member)
        and member.present
        and facts.epoch is not None
        and facts.epoch == member.epoch
        and member.paused_us < exchange.inv_us
        and not any(effect.may_move(member.id) for effect in group.possible(exchange, exchange.inv_us))
    )


def _heartbeat_open(group: EpochGroupData, exchange: Exchange) -> bool:
    return any(other.member_id == exchange.member_id and other.api_key == group.traits.api_key for other in group.open.values())


def _count(member: EpochMember, exchange: Exchange) -> Refusals:
    refusals = member.commit_refusals
    if refusals is None or (refusals.error, refusals.generation) != (exchange.error, exchange.generation):
        refusals = member.commit_refusals = Refusals(exchange.error, exchange.generation, 0, exchange.res_us, exchange.res_us)
    refusals.add(exchange.res_us, epoch_response_evidence(exchange))
    return refusals

"""Family O: offsets.

The coordinator checks the committer, never the content. Refused commits are normal in a rebalance, and an accepted one may still be
wrong: for a partition of another member, or at an earlier position.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from coordinator_model.finding import BROKER, CERTAIN, CLIENT, CONFIG, CONFIRMED, CRITICAL, ERROR, HEURISTIC, INFO, WARNING
from coordinator_model.groups.classic.group import ClassicGroup
from coordinator_model.groups.classic.positions import Verdict
from coordinator_model.groups.classic.trackers.commits import SimpleCommit, member_throughout
from coordinator_model.groups.classic.trackers.offsets import (
    FORBIDS,
    NO_TOPIC,
    CommitRefused,
    CommitRejected,
    CommittedBack,
    CommittedEarly,
    CommittedForeign,
    CommittedOver,
    Unfenced,
)
from coordinator_model.groups.epochs.data import EpochGroupData
from coordinator_model.groups.evidence import client_text, exchange_evidence, request_evidence, response_evidence
from coordinator_model.groups.records import CommitFacts, Exchange, Member, Removed
from coordinator_model.rules.base import Breach, Due, HeldFinding, admission, rule, sender_text, timer_rule, who, whom
from coordinator_model.rules.epoch_checks import commit_after_end, commits_refused, committed_foreign, committed_in_turn
from coordinator_model.rules.epoch_members import commits_again
from coordinator_model.rules.unlawful import joined_after_all, rules_of
from coordinator_model.rules.zombies import time_to_rejoin_us
from coordinator_model.wire import API_NAMES, error_name
from coordinator_model.wire.constants import ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID
from coordinator_model.wording import a_or_an, counted, seconds, some

_NAMED: Final = 3  # partitions that a sentence names
_PERSISTS: Final = 2  # refusals of an unknown topic, which the first may be too early for
_RIGHTS: Final = "rights"  #: subject of what is about all clients whose principal lacks a right
_TOPIC_GONE: Final = (
    "Ask who deleted the topic. Restart the client if it was made anew; else take the topic out of its subscription."
)
_AFTER_LEAVING: Final = (
    "If its application polled too rarely (T-05), its client left while it processed: process fewer records per poll, faster, or raise "
    "max.poll.interval.ms. Else commit before unsubscribing or closing."
)
_AFTER_ITS_END: Final = (
    "Nothing, if it joins again and this does not recur. Else find out why its membership ended: silence for a session (T-04), a poll "
    "interval that was exceeded (T-05), a rebalance that it missed (R-08)."
)
_ENDED: Final = {
    Removed.SILENT: "its session ended in",
    Removed.DROPPED: "a generation began without it in",
    Removed.REMOVED: "it was removed from",
    Removed.REPLACED: "another process took its instance id in",
}


def _partitions(named: Iterable[tuple[str, int]]) -> str:
    """Return ``t-0, t-1, t-2 and 4 more``."""
    return some([f"{topic}-{partition}" for topic, partition in named], _NAMED)


def _name(exchange: Exchange) -> str:
    return f"member {exchange.member_id} {whom(exchange.actor)}" if exchange.member_id else f"a non-member {whom(exchange.actor)}"


def _commits_pass(group: ClassicGroup | EpochGroupData, member_id: str) -> bool:
    """Return True if the member's commits are refused no longer."""
    return commits_again(group, member_id) if isinstance(group, EpochGroupData) else member_id not in group.offsets.refused


@rule(
    "refused commits persist",
    ERROR,
    HEURISTIC,
    CLIENT,
    suppressed_by=("C-05", "C-13", "C-04", "E-20", "G-01", "M-01", "S-01", "S-02"),
    over=_commits_pass,
    also=(commits_refused,),
)
def O_01(group: ClassicGroup, refused: CommitRefused) -> Breach | None:
    """A member works on, but none of its progress is saved: the next owner of its partitions processes the records again.

    Condition: Commits of one member at one generation were refused with the same error (ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID,
        FENCED_INSTANCE_ID or STALE_MEMBER_EPOCH) at least three times, over at least 10 s and two of its heartbeat intervals
        (warning), or over more than its rebalance timeout (error), without a JoinGroup or an accepted commit in between.
    Expected: After such a refusal a member joins again before it commits again.
    Action: Restart or stop the named client; find out why it goes on (a blocked poll loop, or a library that ignores the error).
    False alarms: One refusal per rebalance is normal, and some clients send a burst of them: only what spans time counts. A static
        member that missed a generation is given its rebalance timeout.
    """
    exchange, refusals = refused.exchange, refused.refusals
    member = group.members.get(exchange.member_id, Member(exchange.member_id, exchange.actor))
    span_us = refusals.last_us - refusals.first_us
    needed_us = max(2 * member.heartbeat_interval_us, group.settings.zombie_span_ms * 1_000)
    if refusals.count < group.settings.zombie_refusals or span_us < needed_us:
        return None
    # A static member that missed a generation lawfully stays behind until it rejoins.
    if refusals.error == ILLEGAL_GENERATION and (exchange.instance_id or member.instance_id) is not None:
        patience_us = group.settings.unbounded_join_ms if member.rebalance_timeout_ms is None else member.rebalance_timeout_ms
        if span_us < patience_us * 1_000:
            return None
    why = error_name(refusals.error)
    return Breach.of_sender(
        exchange,
        f"{who(member)} cannot save its progress in group {group.name}: {counted(refusals.count, 'commit')} in {seconds(span_us)} were "
        f"refused with {why}, and it has not joined again.",
        f"{counted(refusals.count, 'commit')} at generation {refusals.generation} refused with {why} over {seconds(span_us)}, no "
        "JoinGroup between",
        tuple(refusals.evidence),
        severity=None if span_us > time_to_rejoin_us(group, member) else WARNING,
    )


@rule(
    "zombie commit accepted",
    CRITICAL,
    CONFIRMED,
    BROKER,
    suppressed_by=("C-05",),
    explained=joined_after_all,
    also=(commit_after_end,),
)
def O_02(group: ClassicGroup, verdict: Verdict) -> Breach | None:
    """Somebody who no longer owns the partitions overwrote their committed offsets: records will be skipped or processed twice.

    Condition: G-02, M-02 or S-03 holds for a commit of which at least one partition was answered with success; or, in a group with
        epochs, such a commit came from an id that never joined, or that left, was removed or was told UNKNOWN_MEMBER_ID and has not
        joined since.
    Expected: ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID for every partition.
    Action: Stop the named client and compare the offsets named with the rightful owner's position; set them right before it
        restarts.
    False alarms: As for the rule named in the summary. It is told beside that one: that one says who got in, this one what it
        wrote.
    """
    exchange, reported_by = verdict.exchange, rules_of(verdict)
    ask = exchange.facts
    if not isinstance(ask, CommitFacts) or not reported_by:
        return None
    written = [
        (topic, partition, offset)
        for topic, partitions, offsets in ask.topics
        for partition, offset in zip(partitions, offsets, strict=True)
    ]
    overwritten = []
    for topic, partition, offset in written:
        before = group.offsets.offset_before(exchange.generation, topic, partition)
        if before is not None and before != offset:
            overwritten.append(f"{topic}-{partition} {before} → {offset}")
    return Breach.of_sender(
        exchange,
        f"The coordinator {exchange.broker} let {sender_text(exchange)} overwrite offsets of group "
        f"{group.name} that are no longer its own ({reported_by[0]}): "
        f"{_partitions((topic, partition) for topic, partition, _ in written)}.",
        f"{counted(len(written) + ask.left_out, 'partition')} of {a_or_an(API_NAMES[exchange.api_key])} at generation "
        f"{exchange.generation} answered with success"
        + (f"; offsets changed: {', '.join(overwritten[:_NAMED])}" if overwritten else ""),
        (*verdict.proof, *exchange_evidence(exchange)),
    )


def _assigned_after_all(group: object, held: HeldFinding) -> bool:
    """Return True unless the generation still seems to have waited for its assignment when the commit was answered."""
    assert isinstance(group, ClassicGroup)
    known = next((one for one in group.generations if one.generation == held.generation), None)
    if known is None or group.incarnation != held.incarnation:
        return True
    ended_us = (known.leader_synced_us, known.sync_done_us, known.unsettled_us, group.offsets.unrest_us)
    return any(at_us is not None and known.proven_us <= at_us < held.opened_us for at_us in ended_us)


@rule("commit accepted before the assignment", ERROR, CONFIRMED, BROKER, suppressed_by=("C-05",), explained=_assigned_after_all)
def O_03(group: ClassicGroup, early: CommittedEarly) -> Breach:
    """A member wrote offsets while it was not decided who owns what: it may have written over the next owner's.

    Condition: An OffsetCommit at the newest generation succeeded after every JoinGroup of that generation was answered and before
        the leader sent its SyncGroup; nothing was asked meanwhile that starts another join phase, and no session can have run out.
    Expected: REBALANCE_IN_PROGRESS.
    Action: Keep the broker's log of that moment and report it with the frames named; look for a proxy that rewrites answers.
    False alarms: A leader whose SyncGroup goes over a path that is not captured.
    """
    exchange, newest = early.exchange, early.newest_generation
    return Breach.of_sender(
        exchange,
        f"The coordinator {exchange.broker} accepted a commit of {_name(exchange)} in group {group.name} while generation "
        f"{newest.generation} had no assignment yet.",
        "an OffsetCommit succeeded between the end of the join phase and the leader's SyncGroup",
        (newest.proof, *exchange_evidence(exchange)),
    )


@timer_rule("simple commit into a live group", ERROR, CONFIRMED, BROKER, suppressed_by=("C-05",))
def O_04(group: ClassicGroup) -> Iterator[Due]:
    """An administrator's tool or another application uses the same group id without joining, and sets the members' offsets.

    Condition: An OffsetCommit without generation, member id and instance id succeeded although one member's membership spans it
        (error, the broker's doing); or it was refused with UNKNOWN_MEMBER_ID, as it must be while the group is not empty (warning,
        configuration). On a connection that a member has or had it is that member's (warning, the client's doing): a client that
        left, or was refused as unknown, drops its member id and may commit once more.
    Expected: Such commits only while the group is empty.
    Action: Find the committer at the address named: give it a group id of its own, or stop the group before its offsets are reset.
    False alarms: Version 0 goes to ZooKeeper and is not judged; transactional commits without a member are O-08.
    """
    for committer, commit in group.offsets.turned_away.items():
        if not _is_past(group, commit):
            yield Due(commit.last_us, committer, WARNING, _turned_away(group, committer, commit))
    for committer, commit in group.offsets.let_in.items():
        member = member_throughout(group, commit)
        if member is not None and not _is_past(group, commit):
            yield Due(commit.last_us, committer, ERROR, _let_in(group, committer, commit, member))


def _is_past(group: ClassicGroup, commit: SimpleCommit) -> bool:
    return group.last_record_us - commit.last_us > group.settings.quiet_ms * 1_000


def _turned_away(group: ClassicGroup, committer: str, commit: SimpleCommit) -> Callable[[], Breach]:
    if commit.former_id:
        return lambda: _committed_after_its_end(group, committer, commit)
    return lambda: Breach(
        committer,
        f"Somebody who is no member {whom(commit.actor)} commits offsets for group {group.name} while the group is in use, and "
        "is refused.",
        f"an OffsetCommit without generation and member id answered {error_name(UNKNOWN_MEMBER_ID)}",
        commit.frames,
        actor=commit.actor,
        blame=CONFIG,
    )


def _committed_after_its_end(group: ClassicGroup, committer: str, commit: SimpleCommit) -> Breach:
    if commit.ended is None:
        when = f"without its member id for group {group.name}"
    else:
        why = "it left" if commit.ended == Removed.LEFT else _ENDED.get(commit.ended, "it was refused as unknown in")
        when = f"{seconds(commit.res_us - commit.left_us)} after {why} group {group.name}"
    return Breach(
        committer,
        f"Member {commit.former_id} {whom(commit.actor)} commits offsets {when}, and is refused: others read again what it has processed "
        "since its last commit.",
        f"an OffsetCommit without generation and member id answered {error_name(UNKNOWN_MEMBER_ID)}, on the connection of that member",
        commit.frames,
        actor=commit.actor,
        member_id=commit.former_id,
        blame=CLIENT,
        action=_AFTER_LEAVING if commit.ended == Removed.LEFT else _AFTER_ITS_END,
    )


def _let_in(group: ClassicGroup, committer: str, commit: SimpleCommit, member: Member) -> Callable[[], Breach]:
    return lambda: Breach(
        committer,
        f"The coordinator {group.broker} let somebody who is no member {whom(commit.actor)} overwrite offsets of group {group.name} "
        f"while {who(member)} was in it.",
        "an OffsetCommit without generation and member id succeeded although the group was not empty",
        (*admission(member), *commit.frames),
        actor=commit.actor,
        blame=BROKER,
    )


@rule(
    "commit of an unowned partition", WARNING, HEURISTIC, CLIENT, suppressed_by=("O-02", "A-05", "A-06"), also=(committed_foreign,)
)
def O_05(group: ClassicGroup, foreign: CommittedForeign) -> Breach:
    """A member writes offsets of partitions that belong to another: two writers, and the later one wins.

    Condition: An accepted commit names a partition that is in neither the member's present assignment nor the one before; or, in a
        consumer group, two in a row name one that the member has given up and another was assigned.
    Expected: A member commits what it was assigned.
    Action: Review how that client commits: offsets kept across a rebalance, or assign() and subscribe() mixed in one group.
    False alarms: A commit of partitions given up two generations ago that was sent late. Topics named by id (from OffsetCommit v10
        on) cannot be held against an assignment.
    """
    exchange = foreign.exchange
    return Breach.of_sender(
        exchange,
        f"{_name(exchange)} commits offsets in group {group.name} for partitions that are not assigned to it: "
        f"{_partitions(foreign.partitions)}.",
        f"{counted(len(foreign.partitions), 'partition')} committed that are in neither its present nor its previous assignment",
        exchange_evidence(exchange),
    )


@rule("two committers", ERROR, CONFIRMED, CLIENT, suppressed_by=("C-05", "A-03", "A-09", "A-12"), also=(committed_in_turn,))
def O_06(group: ClassicGroup, over: CommittedOver) -> Breach:
    """Two members process the same partition at the same time.

    Condition: Within one generation two members, which did not replace each other as holders of one group.instance.id, had commits
        of the same partition accepted. Where their assignments were seen, the one is named that does not own it. The first 256
        partitions of a generation are watched. In a Streams group: a member's commits of a partition at one epoch were accepted before
        and after one of another member.
    Expected: One owner per partition and generation.
    Action: Look at the assignment of that generation (A-03, A-09); if it is sound, one of the two commits what it does not own.
    False alarms: An application that commits on behalf of other members by design.
    """
    exchange = over.exchange
    subject = " and ".join(sorted((over.committer, over.rival)))
    stranger = _member_of(group, over.strangers[0]) if len(over.strangers) == 1 else None
    if stranger is not None:
        owner = over.rival if over.strangers[0] == over.committer else over.committer
        return Breach.of_member(
            stranger,
            f"{who(stranger)} commits offsets in generation {exchange.generation} of group {group.name} for partitions that are not its "
            f"own, and {owner} commits them, too: {_partitions(over.partitions)}.",
            f"{counted(len(over.partitions), 'partition')} committed by {over.committer} and {over.rival} in the same generation, and not "
            f"assigned to {over.strangers[0]}",
            (*admission(stranger), *exchange_evidence(exchange)),
            generation=exchange.generation,
            subject=subject,
        )
    return Breach(
        subject,
        f"Two members of group {group.name} commit the same partitions in generation {exchange.generation}: {_name(exchange)} "
        f"and {over.rival}; {_partitions(over.partitions)}.",
        f"{counted(len(over.partitions), 'partition')} committed by {over.committer} that {over.rival} had committed in "
        "the same generation",
        exchange_evidence(exchange),
        generation=exchange.generation,
    )


def _member_of(group: ClassicGroup, committer: str) -> Member | None:
    """Return the member of a committer, which is a member id or an instance id."""
    instance = group.instances.get(committer)
    return group.members.get(committer if instance is None else instance.member_id)


def _brought_forward(group: ClassicGroup, held: HeldFinding) -> bool:
    """Return True if the member's positions are forward again. A client may repeat an old commit after a new one, and correct it soon."""
    return held.subject not in group.offsets.set_back


@rule("offset regression", WARNING, HEURISTIC, CLIENT, suppressed_by=("O-02", "O-06"), explained=_brought_forward)
def O_07(group: ClassicGroup, back: CommittedBack) -> Breach:
    """A member put its committed position back: records will be processed again after the next rebalance or restart.

    Condition: A member's accepted commit holds a lower offset than its own earlier one in the same generation, and nobody else set
        it meanwhile. The first 256 partitions of a generation are watched.
    Expected: Positions that grow.
    Action: Review the order in which that client commits (asynchronous commits, several threads), unless it sought back on purpose.
        librdkafka sends a commit that was answered REQUEST_TIMED_OUT again, behind newer ones: the next commit puts that right.
    False alarms: An application that seeks back. Commits that were under way at once on several connections, and transactional
        ones, are not compared; and what the member brings forward again within half a second is let pass.
    """
    exchange = back.exchange
    steps = ", ".join(f"{topic}-{partition} {before} → {after}" for topic, partition, before, after in back.steps[:_NAMED])
    return Breach.of_sender(
        exchange,
        f"{_name(exchange)} put committed offsets of group {group.name} back: {steps}.",
        f"{counted(len(back.steps), 'offset')} lower than the same member's earlier commit in generation {exchange.generation}",
        exchange_evidence(exchange),
    )


@rule("exactly-once without fencing", INFO, CERTAIN, CLIENT)
def O_08(group: ClassicGroup, unfenced: Unfenced) -> Breach:
    """A transaction's offsets are not tied to a member: a zombie of the application is not fenced by the group (KIP-447).

    Condition: A TxnOffsetCommit v3 or later at generation -1 without a member id.
    Expected: Generation, member id and instance id of the consumer that read the records.
    Action: Pass the consumer's group metadata to sendOffsetsToTransaction.
    False alarms: Applications that assign partitions themselves have no member to name.
    """
    exchange = unfenced.exchange
    return Breach(
        client_text(exchange.actor),
        f"A transactional producer {whom(exchange.actor)} commits offsets of group {group.name} without saying for which member: "
        f"transactional id {unfenced.transactional_id}.",
        f"TxnOffsetCommit v{exchange.api_version} at generation {exchange.generation} without a member id",
        (request_evidence(exchange),),
        actor=exchange.actor,
    )


@rule(
    "commit rejected for size or authorization",
    WARNING,
    CERTAIN,
    CONFIG,
    over=lambda group, subject: subject not in group.offsets.rejected and not (subject == _RIGHTS and group.offsets.forbidden),
    quiet_times=30,
)
def O_09(group: ClassicGroup, rejected: CommitRejected) -> Breach:
    """Progress is not saved; a restart processes everything since the last good commit again.

    Condition: A commit was answered OFFSET_METADATA_TOO_LARGE, INVALID_COMMIT_OFFSET_SIZE, TOPIC_AUTHORIZATION_FAILED,
        GROUP_AUTHORIZATION_FAILED, UNKNOWN_TOPIC_OR_PARTITION or UNKNOWN_TOPIC_ID for at least one partition. Once with one of the
        last two is a note: brokers learn of a new topic one after the other.
    Expected: Commits within the broker's limits, by a principal that may read the group and describe the topics, of topics that
        exist.
    Action: Set the ACLs right, or shorten the commit's metadata (offset.metadata.max.bytes).
    False alarms: None known.
    """
    exchange, why = rejected.exchange, error_name(rejected.error)
    is_unknown = rejected.error in NO_TOPIC
    is_forbidden = rejected.error in FORBIDS
    saved = f"; of the same commit it saved {counted(rejected.saved, 'other partition')}" if rejected.saved else ""
    if is_forbidden and group.offsets.forbidden > 1:
        saved += f"; so are those of {counted(group.offsets.forbidden - 1, 'other client')}"
    return Breach.of_sender(
        exchange,
        f"{_name(exchange)} cannot save its progress in {_partitions(rejected.partitions)} of group {group.name}: its commits of "
        f"{'it' if len(rejected.partitions) == 1 else 'them'} are refused with {why}"
        f"{', since the topic was deleted, or made anew' if is_unknown else ''}{saved}.",
        f"{counted(rejected.times, 'commit')} answered {why} for {counted(len(rejected.partitions), 'partition')}",
        (request_evidence(exchange), response_evidence(exchange, rejected.error)),
        subject=_RIGHTS if is_forbidden else rejected.committer,  # of all clients at once
        action=_TOPIC_GONE if is_unknown else None,
        severity=INFO if is_unknown and rejected.times < _PERSISTS else None,
    )

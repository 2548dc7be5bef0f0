"""What rules of other families report of groups whose members have epochs: rules whose sense carries over keep their ids."""

from __future__ import annotations

from coordinator_model.finding import Certainty, Severity
from coordinator_model.groups.epochs.data import EpochGroupData, partitions_text
from coordinator_model.groups.epochs.events import (
    AskedToRejoin,
    CameBack,
    CommitMisjudged,
    CommitRefused,
    CommittedForeign,
    CommittedInTurn,
    EpochFenceIgnored,
    InstanceChanged,
    InstanceTaken,
    LostInstanceRefused,
    SubscriptionFlapped,
    Unlawful,
    WentSilent,
)
from coordinator_model.groups.epochs.heartbeat import SLOW_TIMES
from coordinator_model.groups.epochs.kinds import STREAMS
from coordinator_model.groups.epochs.positions import GONE, IMPOSSIBLE, NEVER_JOINED
from coordinator_model.groups.epochs.reconciliation import longest_kept_us
from coordinator_model.groups.epochs.records import JOIN_EPOCH, EpochMember
from coordinator_model.groups.epochs.sessions import died_us, looks_for_coordinator
from coordinator_model.groups.events import Answered, NewId
from coordinator_model.groups.evidence import client_text, epoch_exchange_evidence, epoch_request_evidence, process_of
from coordinator_model.groups.records import by_topic
from coordinator_model.groups.successors import CameBackDead
from coordinator_model.rules.base import Breach, captured, sender_text, the_client, who
from coordinator_model.rules.epoch_members import refused_commits
from coordinator_model.rules.epochs import end_text
from coordinator_model.rules.progress import stuck_text
from coordinator_model.wire import API_NAMES, error_name
from coordinator_model.wire.constants import FENCED_INSTANCE_ID, STALE_MEMBER_EPOCH
from coordinator_model.wording import a_or_an, begin, clock, counted, plural, seconds, some

_CHANGES, _VALUES, _NAMED = 4, 3, 3
CHURN = 10  #: ids that a client may leave behind within an hour
_REFUSED = 3
_HANDS = 3  #: changes of hands within two sessions
GOES_ON_US = 3_000_000  #: a heartbeat interval: requests that were open when the client was fenced are answered by then
_GOES_ON_COMMITTING = 2
WHY_TWO = "Either a second process was started while the first still ran, or one group.instance.id is configured for two."


def impossible_answer(group: EpochGroupData, unlawful: Unlawful) -> Breach | None:
    """Return the breach of P-07: no coordinator gives that answer to such a request, independent of its sender."""
    if unlawful.kind != IMPOSSIBLE:
        return None
    exchange = unlawful.exchange
    api, named = API_NAMES[exchange.api_key], error_name(exchange.error)
    return Breach.of_sender(
        exchange,
        f"The coordinator {exchange.broker} answered {a_or_an(api)} v{exchange.api_version} of {sender_text(exchange)} in group "
        f"{group.name} with {named}, which no coordinator gives there.",
        f"{api} v{exchange.api_version} answered {named}",
        epoch_exchange_evidence(exchange),
        subject=f"{api} {named}",
    )


def session_ended(group: EpochGroupData, silent: WentSilent) -> Breach | None:
    """Return the breach of T-04, None if the member has another reason to be silent.

    Its client may go on under another id, leave, look for its coordinator or be throttled; or the group lost all its connections.
    """
    member = silent.member
    if not group.connections or any(_joined_as_another(group, member, other) for other in group.members.values()):
        return None
    if member.leaving or looks_for_coordinator(group, member, member.last_frame_us):
        return None
    if member.throttled_until_us > member.last_frame_us + group.shortest_session_ms(member) * 1_000:
        return None  # T-07 reports that
    return Breach.of_member(
        member,
        f"{begin(who(member))} fell silent in group {group.name} without leaving: nothing for "
        f"{seconds(silent.at_us - (member.last_frame_us or silent.stopped_us))}; {_idle_text(group, silent)}.",
        f"no frame since {a_or_an(member.last_frame or 'frame')}, and no leave",
        captured(member.epoch_frame),
    )


def _joined_as_another(group: EpochGroupData, member: EpochMember, other: EpochMember) -> bool:
    """Return True if the client of a silent member has joined under another id since.

    While the member's connection stands, another connection is another process: many may share a client id and a host.
    """
    connection = member.actor.connection
    if connection in group.connections and connection != other.actor.connection:
        return False
    same = other.actor.named == member.actor.named
    return other is not member and same and bool(other.joins) and other.joins[-1] > member.last_frame_us


def _idle_text(group: EpochGroupData, silent: WentSilent) -> str:
    if not group.traits.exclusive:
        return "records that it had fetched and not acknowledged were locked until their time ran out"
    what = "tasks" if group.kind == STREAMS else "partitions"
    if silent.taken:
        return f"its {what} were idle for {seconds(silent.at_us - silent.stopped_us)}, until others were given them"
    return f"nobody was seen to be given its {what} before its session ended, which takes {_session_text(group, silent.member)}"


def _session_text(group: EpochGroupData, member: EpochMember | None) -> str:
    shortest_ms, longest_ms = group.shortest_session_ms(member), group.longest_session_ms(member)
    least = f"{shortest_ms / 1_000:.1f} to " if shortest_ms < longest_ms else ""
    return least + seconds(longest_ms * 1_000)


def heartbeat_for_another(group: EpochGroupData, answered: Answered) -> Breach:
    """Return the breach of M-08."""
    exchange = answered.exchange
    return Breach.of_sender(
        exchange,
        f"The coordinator {exchange.broker} answered the heartbeat of {sender_text(exchange)} in group {group.name} with the member id "
        f"{answered.member_id}.",
        f"a heartbeat of {exchange.member_id} succeeded as {answered.member_id}",
        epoch_exchange_evidence(exchange),
        generation=None,
    )


def instance_alternates(group: EpochGroupData, taken: InstanceTaken) -> Breach | None:
    """Return the breach of S-01 if an instance id goes to and fro between members that are refused in turn."""
    since_us = taken.exchange.res_us - 2_000 * group.longest_session_ms()
    takes = [member_id for at_us, member_id in taken.use.takes if at_us > since_us]
    losers = {member_id for at_us, member_id in taken.use.refused if at_us > since_us}
    if len(takes) < _HANDS or len(losers) < 2:
        return None
    return _two_processes(group, taken, takes[-2], f"changed hands {len(takes)} times within two sessions")


def instance_wanted_back(group: EpochGroupData, lost: LostInstanceRefused) -> Breach | None:
    """Return the breach of S-01 if a member asks for an instance id that it lost to another member, which is alive."""
    holder = group.members.get(group.instances.get(lost.instance_id, ""))
    if (
        lost.exchange.generation != JOIN_EPOCH
        or holder is None
        or not holder.present
        or holder.actor.connection not in group.connections
    ):
        return None
    return _two_processes(group, lost, holder.id, "was asked for again by a member that had lost it")


def _two_processes(group: EpochGroupData, event: InstanceTaken | LostInstanceRefused, other_id: str, observed: str) -> Breach:
    exchange, other = event.exchange, group.members.get(other_id)
    named = who(other) if other is not None else f"member {other_id}"
    return Breach.of_sender(
        exchange,
        f"Two processes use group.instance.id {event.instance_id} in group {group.name}, and take it from each other: {named} and "
        f"{sender_text(exchange)}. {WHY_TWO}",
        f"instance id {event.instance_id} {observed}",
        event.use.frames,
        subject=event.instance_id,
        generation=None,
    )


def ignores_fence(group: EpochGroupData, ignored: EpochFenceIgnored) -> Breach | None:
    """Return the breach of S-02."""
    member, refusals = ignored.member, ignored.refusals
    lasts_us = refusals.last_us - refusals.first_us
    if refusals.error != FENCED_INSTANCE_ID or refusals.count < _REFUSED or lasts_us < max(GOES_ON_US, member.interval_ms * 1_000):
        return None
    holder = group.members.get(group.instances.get(member.instance_id or "", ""))
    holds = who(holder) if holder is not None and holder is not member else "another process, which was not seen to take it,"
    return Breach.of_member(
        member,
        f"{who(member)} goes on in group {group.name} after it was fenced: {holds} holds group.instance.id {member.instance_id}. "
        f"{WHY_TWO}",
        f"{counted(refusals.count, 'request')} answered FENCED_INSTANCE_ID over {seconds(lasts_us)}",
        tuple(refusals.evidence),
        generation=refusals.generation,
    )


def no_longer_fenced(group: EpochGroupData, member_id: str) -> bool:
    """Return True if S-02 is over: the member joined again, or is gone."""
    member = group.members.get(member_id)
    return member is None or member.refusals is None or member.refusals.error != FENCED_INSTANCE_ID


def ids_left_behind(group: EpochGroupData, new: NewId) -> Breach | None:
    """Return the breach of M-09."""
    if new.abandoned <= CHURN:
        return None
    exchange = new.exchange
    client = client_text(exchange.actor)
    return Breach(
        client,
        f"Client {client} joined group {group.name} under another member id, {exchange.member_id}, after it left {new.abandoned} behind "
        "within the hour without leaving: the partitions of each are idle until its session runs out.",
        f"{counted(new.abandoned, 'member id')} of one client left behind within an hour",
        epoch_exchange_evidence(exchange),
        actor=exchange.actor,
        member_id=exchange.member_id,
    )


def crash_loop(group: EpochGroupData, back: CameBackDead) -> Breach | None:
    """Return the breach of M-13."""
    times, exchange = back.returns_us, back.exchange
    if len(times) < group.settings.crash_loop_returns:
        return None
    if back.dead.left_us:
        return _threads_end(group, back)
    static = f"instance {exchange.instance_id}, client" if exchange.instance_id is not None else "client"
    dead = [one for one in group.present_members() if one.id != back.member_id and died_us(group, one) is not None]
    return Breach.of_sender(
        exchange,
        f"{begin(static)} {client_text(exchange.actor)} went away from group {group.name} without leaving and came back "
        f"{len(times)} times since {clock(times[0])}: {_each_death(group, dead)}.{stuck_text(group, client_text(exchange.actor))}",
        f"member {back.dead.id} ended without leaving, and the same {back.known_by} joined under a new member id; {len(times)} times in "
        f"{seconds(times[-1] - times[0])}",
        epoch_exchange_evidence(exchange),
        generation=group.epoch,
        subject=exchange.instance_id or client_text(exchange.actor),
    )


def _threads_end(group: EpochGroupData, back: CameBackDead) -> Breach:
    """Return the breach of M-13 of a Kafka Streams process that lives, and whose threads end one after the other."""
    times, exchange, process = back.returns_us, back.exchange, process_of(back.exchange.actor)
    gone = next((one for one in group.usual.gone if one.member_id == back.dead.id), None)  # until the next one has its tasks
    tasks = by_topic(group.members[back.member_id].holds) if gone is None else gone.held or {}
    numbers = {number for each in tasks.values() for number in each}  # those of its partitions
    still = [
        f"{topic}-{number} beyond {stand.offset}"
        for topic, known in group.committed_offsets.stood.items()
        for number, stand in known.items()
        if number in numbers and stand.moved_s <= times[0] // 1_000_000
    ]
    unmoved = f" Nobody moves {some(still, _NAMED)} meanwhile: most likely they cannot process the record there." if still else ""
    return Breach(
        client_text(process),
        f"Threads of {the_client(process)} end in Streams group {group.name} as soon as they have tasks, and others take their place, "
        f"{len(times)} times since {clock(times[0])}.{unmoved}",
        f"member {back.dead.id} left within seconds after it was given tasks, and another thread of its process joined; {len(times)} times "
        f"in {seconds(times[-1] - times[0])}",
        epoch_exchange_evidence(exchange),
        actor=process,
        generation=group.epoch,
        action="Read in the log of that process which exception ends its threads. If it is a record that cannot be processed, mend the "
        "application, or let an exception handler skip it (processing.exception.handler, deserialization.exception.handler).",
    )


def _each_death(group: EpochGroupData, dead: list[EpochMember]) -> str:
    session = f"its session ends, which takes {_session_text(group, None)}"
    if not group.traits.exclusive:
        return f"each time it counts as a member until {session}, and what it had fetched is locked until that time runs out"
    what = "tasks" if group.kind == STREAMS else "partitions"
    keep = [len(one.holds) for one in dead if one.holds]
    now = (
        f"; now {len(keep)} dead {plural(len(keep), 'member')} {'keeps' if len(keep) == 1 else 'keep'} {sum(keep)}" if keep else ""
    )
    return f"each time its {what} are idle until {session}{now}"


def came_back(group: EpochGroupData, back: CameBack) -> Breach | None:
    """Return the breach of T-05: a process left later than its poll interval allows, and is the same that joins again."""
    member = back.member
    if member.rebalance_timeout_ms is None or back.held_us < member.rebalance_timeout_ms * 1_000:
        return None
    if not member.interval_ms or back.silent_us > SLOW_TIMES * member.interval_ms * 1_000:
        return None  # it had lost its coordinator, and may have waited for that
    return Breach.of_member(
        member,
        f"{begin(who(member))} left group {group.name} {seconds(back.held_us)} after it joined and joins again "
        f"{seconds(back.exchange.res_us - back.left_us)} later: its application most likely polled too rarely.",
        "a leave later than its rebalance timeout after its join, then a join under the same member id",
        captured(back.left_frame, epoch_request_evidence(back.exchange)),
        certainty=Certainty.HEURISTIC,
    )


def does_not_rejoin(group: EpochGroupData, asked: AskedToRejoin) -> Breach | None:
    """Return the breach of R-08 for a classic member of a group that is being migrated."""
    member, waited_us = asked.member, asked.exchange.res_us - asked.since_us
    timeout_ms = member.rebalance_timeout_ms
    if timeout_ms is None or waited_us * 2 < timeout_ms * 1_000:
        return None
    ended = waited_us > timeout_ms * 1_000 + group.settings.slack_us(timeout_ms)
    ends_us = asked.since_us + timeout_ms * 1_000
    # The last member of the newer protocol may have left; the group is a classic one then, and its coordinator waits on for static members.
    newer_us = max((one.accepted_asked_us for one in group.present_members() if not one.classic), default=0)
    kept = waited_us > longest_kept_us(group, timeout_ms) and newer_us > ends_us
    if kept:
        outcome = f"the coordinator should have removed it at {clock(ends_us)}"
    elif ended or newer_us <= asked.since_us:
        outcome = f"its rebalance timeout {'ended' if ended else 'ends'} at {clock(ends_us)}"
    else:
        outcome = f"the coordinator removes it at {clock(ends_us)}"
    return Breach.of_member(
        member,
        f"{begin(who(member))} heartbeats but does not rejoin group {group.name}: it was told to {seconds(waited_us)} ago; nobody gets "
        f"what it is to give up before; {outcome}.",
        f"REBALANCE_IN_PROGRESS to its heartbeats for {seconds(waited_us)} without a JoinGroup",
        tuple(member.rejoin_frames),
        generation=member.epoch,
        severity=Severity.ERROR if kept else Severity.WARNING,
    )


def commit_after_end(group: EpochGroupData, misjudged: CommitMisjudged) -> Breach | None:
    """Return the breach of O-02: a commit of an id that is no member was accepted."""
    exchange, member = misjudged.exchange, misjudged.member
    if misjudged.kind not in {GONE, NEVER_JOINED} or exchange.error:
        return None
    why = "never joined it"
    if member is not None:
        why = f"{end_text(member.removed)} and has not joined since"
    proof = () if member is None else captured(member.removed_frame)
    return Breach.of_sender(
        exchange,
        f"The coordinator {exchange.broker} let {sender_text(exchange)} overwrite offsets of group {group.name} at epoch "
        f"{exchange.generation}, although that member {why}.",
        f"{a_or_an(API_NAMES[exchange.api_key])} at epoch {exchange.generation} accepted",
        (*proof, *epoch_exchange_evidence(exchange)),
    )


def committed_foreign(group: EpochGroupData, foreign: CommittedForeign) -> Breach | None:
    """Return the breach of O-05. A first commit after partitions were given up may have been under way."""
    exchange, member = foreign.exchange, foreign.member
    if foreign.times < _GOES_ON_COMMITTING:
        return None
    return Breach.of_member(
        member,
        f"{begin(who(member))} goes on committing {partitions_text(group, foreign.partitions)} in group {group.name}, which it has given "
        f"up, and which {who(foreign.owner)} owns: whoever commits last sets where the next owner begins.",
        f"{foreign.times} commits in a row of partitions that another member was assigned before",
        captured(foreign.owner.granted_frame, *epoch_exchange_evidence(exchange)),
        generation=exchange.generation,
    )


def committed_in_turn(group: EpochGroupData, turn: CommittedInTurn) -> Breach:
    """Return the breach of O-06 in a Streams group."""
    exchange, partitions = turn.exchange, turn.partitions
    named = f"{', '.join(partitions[:_NAMED])}{' …' if len(partitions) > _NAMED else ''}"
    return Breach(
        " and ".join(sorted((exchange.member_id, turn.rival))),
        f"Two members of group {group.name} commit the same partitions in turn: {sender_text(exchange)} and member {turn.rival}; {named}.",
        f"{counted(len(partitions), 'partition')} committed by {exchange.member_id}, by {turn.rival}, and by {exchange.member_id} again at "
        "the same epoch",
        epoch_exchange_evidence(exchange),
        generation=exchange.generation,
    )


def instance_changed(group: EpochGroupData, changed: InstanceChanged) -> Breach:
    """Return the breach of S-07."""
    exchange, member = changed.exchange, changed.member
    joined = f"as instance {member.instance_id}" if member.instance_id is not None else "without an instance id"
    return Breach.of_member(
        member,
        f"{begin(who(member))} joined group {group.name} {joined}, and names the instance id {exchange.instance_id} in its "
        f"{API_NAMES[exchange.api_key]}: it cannot be fenced as it should.",
        f"one member id with two instance ids: {member.instance_id or 'none'} and {exchange.instance_id}",
        captured(member.epoch_frame, epoch_request_evidence(exchange)),
        generation=exchange.generation if exchange.generation >= 0 else None,
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
    return Breach.of_member(
        member,
        f"{who(member)} goes back and forth between {len(values)} subscriptions in group {group.name}, {len(changes)} times within 15 "
        "minutes: each change makes all members rebalance.",
        f"{counted(len(changes), 'change')} between {counted(len(values), 'subscription')}",
        (epoch_request_evidence(flapped.exchange),),
        generation=member.epoch,
    )

"""Family R: consecutive rebalances, and the clients that start them.

The number of generations alone proves nothing: a rolling restart takes each member out and back in, twice with the cooperative protocol,
and is lawful. A fault shows in two ways: one client starts rebalances repeatedly, or the group is hardly Stable for a long time.
"""

from __future__ import annotations

from collections import Counter

from coordinator_model.events import (
    LEADER_REJOINED,
    MEMBER_LEFT,
    NOT_SEEN,
    REMOVED,
    SAME_TOPICS,
    SUBSCRIPTION_CHANGED,
    WORKER_REJOINED,
)
from coordinator_model.finding import CLIENT, CONFIG, ERROR, HEURISTIC, INFO, WARNING
from coordinator_model.groups.classic.group import ClassicGroup
from coordinator_model.groups.classic.trackers.rebalance_causes import in_a_row, is_begun_by, is_started_by
from coordinator_model.groups.classic.trackers.rebalance_history import JoinedUnsynced, Rebalanced, Settled, SubscriptionAlternated
from coordinator_model.groups.classic.trackers.sessions import names_poll_timeout
from coordinator_model.groups.evidence import client_text, request_evidence
from coordinator_model.groups.rebalance import LONG_US, MINUTE_US, Rebalance, Starter
from coordinator_model.rules.base import Breach, admission, captured, first_and_last, is_gone, rule, the_client, who
from coordinator_model.rules.epoch_checks import subscription_flaps
from coordinator_model.rules.progress import stuck_text
from coordinator_model.wire import CONNECT
from coordinator_model.wording import counted, seconds, some

_STORM = 5  #: generations within the window
_PER_MEMBER = 4  #: generations that one restart of a member may take: it leaves, it joins, and each time the others may follow up
_PER_WORKER = 6  #: the same for a Connect worker: its tasks wait for the scheduled delay, and others revoke some for it
_LOOP = 4  #: generations in a row that one client started
_STUCK_LOOP = 10
_NAMED = 4  #: clients in a sentence
_UNSYNCED = 4  #: JoinGroups; a leader of librdkafka may ask three times in one generation while it waits for metadata
_WASTED = 4  #: first generations of a new group; most groups begin with one or two late members
_ALTERNATIONS, _TOPIC_SETS = 4, 3

_COORDINATOR = ("C-04", "C-05", "C-13")
_NO_CLIENT = frozenset({NOT_SEEN, REMOVED})  #: causes without a client that is known
_MILD = frozenset({LEADER_REJOINED, SAME_TOPICS})
_TIMEOUTS = ("T-10", "T-11", "T-12")
_FOR_TOPICS = (
    "Make the topics together, or name them, rather than one after the other under a pattern. With group.protocol=consumer the broker "
    "resolves the pattern, once for all members."
)
_IN_COMMON = (
    "Find what these clients have in common, rather than stop one of them: a deployment, a host, a topic whose records they cannot "
    "process. Then read their logs."
)
_BAD_PLANS = ("A-01", "A-02", "A-03", "A-04", "A-05", "A-06", "A-08", "A-09")


def _causes_text(rebalances: tuple[Rebalance, ...]) -> str:
    """Return the causes of rebalances, and the clients' reasons (KIP-800), as text."""
    causes = Counter(rebalance.starter.cause for rebalance in rebalances)
    reasons = Counter(rebalance.starter.reason for rebalance in rebalances if rebalance.starter.reason)
    words = "started by: " + ", ".join(f"{cause} ({count})" for cause, count in causes.most_common())
    if reasons:
        words += "; reasons given: " + ", ".join(f"{reason!r} ({count})" for reason, count in reasons.most_common(3))
    return words


def _window_us(group: ClassicGroup) -> int:
    timeout_ms, _ = group.rebalance_timeout_ms()
    return min(max(5 * MINUTE_US, 3_000 * timeout_ms), LONG_US)


def _members(group: ClassicGroup) -> int:
    """Return the number of members of the largest known generation, at least that of present members."""
    rosters = [len(known.roster) for known in group.generations if known.roster is not None]
    return max([*rosters, sum(1 for _ in group.present_members())])


def _starters(group: ClassicGroup) -> int:
    """Return the number of clients that were seen to start rebalances: a group that shrinks was larger than its known generations.

    Each client that was added and taken away again (R-24) would be one more, and such a group would never be found to be busy.
    """
    starters: list[Starter] = []
    for rebalance in group.rebalances.completed:
        starter = rebalance.starter
        if starter.cause in _NO_CLIENT or group.recurring.scaling.came_and_went(starter.actor.client_id, starter.actor.address):
            continue
        if not any(starter.is_same(known) for known in starters):
            starters.append(starter)
    return len(starters)


def _most_frequent(rebalances: tuple[Rebalance, ...]) -> list[tuple[Starter, int]]:
    """Return each client with most causes of rebalances, or at least half as many, as at its last one, and how many it had.

    Of several that act within one join phase only the first starts the rebalance.
    """
    starters: list[tuple[Starter, int]] = []
    for one in (starter for rebalance in reversed(rebalances) for starter in (rebalance.starter, *rebalance.also)):
        if one.cause in {*_NO_CLIENT, WORKER_REJOINED} or any(one.is_same(known) for known, _ in starters):
            continue
        starters.append((one, sum(is_started_by(rebalance, one) for rebalance in rebalances)))
    most = max((count for _, count in starters), default=0)
    return sorted((known for known in starters if 2 * known[1] >= most), key=lambda known: -known[1])


def _by_whom(most: list[tuple[Starter, int]], rebalances: tuple[Rebalance, ...]) -> str:
    """Return who started how many rebalances, as text; of more clients than fit, how many are left out."""
    each = []
    for one, causes in most[:_NAMED]:
        begun = sum(is_begun_by(rebalance, one) for rebalance in rebalances)
        more = f" and had cause to start {causes - begun} more" if begun < causes else ""
        each.append(f"{the_client(one.actor)} started {begun or 'none'}{more}")
    if len(most) > _NAMED:
        each.append(f"{counted(len(most) - _NAMED, 'other client')} at least half as many")
    return "; ".join(each)


@rule(
    "rebalance storm",
    ERROR,
    HEURISTIC,
    CLIENT,
    suppressed_by=("R-07", "R-24", "R-25", "R-26", "R-27", *_TIMEOUTS, *_BAD_PLANS, *_COORDINATOR),
    quiet_times=5,
)
def R_06(group: ClassicGroup, rebalanced: Rebalanced) -> Breach | None:
    """Throughput collapses: the group rebalances instead of consuming.

    Condition: Within 5 minutes or three rebalance timeouts, at most 15 minutes, more generations than one restart of each member
        explains, four a member (six a Connect worker) and two (warning). An error if the group was outside Stable for half of the
        last 15 minutes, or if one client started ten of the latest twenty and half of them; a Connect worker's rejoins count for
        nobody. Generations that begin in an empty group do not count. Where all that started most of them left each time for their
        poll interval, and these are half of the latest twenty, it is T-05 and T-12.
    Expected: A generation lasts for hours; deployments aside.
    Action: Begin with what started most of them, which is named: read the log of that client at these times. Where it is a
        deployment or an autoscaler, let it change fewer members at a time.
    False alarms: A deployment that takes more than 15 minutes and keeps the group busy for most of them.
    """
    timeline, rebalances, now_us = group.rebalance_history, group.rebalances.completed, rebalanced.newest.proven_us
    window_us = _window_us(group)
    count = timeline.rebalanced_within(window_us, now_us)
    busy_us = timeline.busy_us(now_us)
    most = _most_frequent(rebalances)
    rows = [tuple(rebalance for rebalance in rebalances if is_begun_by(rebalance, one)) for one, _ in most]
    begun = max(map(len, rows), default=0)
    if 2 * sum(map(len, rows)) >= len(rebalances) and all(map(_polls_too_rarely, rows)):
        return None
    members, starters = _members(group), _starters(group)
    if count >= _STORM and busy_us * 2 >= LONG_US:
        severity, why = ERROR, f"it was kept from work for {seconds(busy_us)} of the last 15 minutes"
    elif begun >= _STUCK_LOOP and begun * 2 >= len(rebalances):
        severity = WARNING if most[0][0].cause in _MILD else ERROR
        why = f"of the last {len(rebalances)}: {_by_whom(most, rebalances)}"
    elif count >= max(_STORM, (_PER_WORKER if group.protocol_type == CONNECT else _PER_MEMBER) * max(members, starters) + 2):
        ids = f" and of {starters} ids that started them" if starters > members else ""
        severity, why = WARNING, f"more than one restart of each of its {counted(members, 'member')}{ids} explains"
    else:
        return None
    observed, topics = _causes_text(rebalances), _new_topics(group, rebalances)
    if most and most[0][1] > 1 and _by_whom(most, rebalances) not in why and not topics:
        observed += f"; of {len(rebalances)}: {_by_whom(most, rebalances)}"
    frames = [rebalance.starter.frame for rebalance in first_and_last(rebalances)]
    return Breach(
        "",
        f"Group {group.name} rebalanced {count} times in {window_us // MINUTE_US} minutes: {why}.{topics}",
        observed,
        captured(*frames, rebalanced.newest.proof),
        generation=rebalanced.newest.generation,
        severity=severity,
        action=_FOR_TOPICS if topics else None,
        actor=most[0][0].actor if len(most) == 1 and most[0][1] * 2 >= len(rebalances) else None,
    )


def _new_topics(group: ClassicGroup, rebalances: tuple[Rebalance, ...]) -> str:
    """Return that most rebalances follow new topics that a pattern matches, as a sentence; else nothing."""
    changed = [one for one in rebalances if one.starter.cause == SUBSCRIPTION_CHANGED]
    new = [topic for topic in group.recurring.subscriptions.new if topic.at_us >= rebalances[0].began_us]
    if not new or 2 * len(changed) < len(rebalances):
        return ""
    names = some([topic.name for topic in new], _NAMED)
    return (
        f" {len(changed)} of them follow {counted(len(new), 'new topic')} that their pattern matches ({names}): each member joins again "
        "with one more topic, at its own refresh of metadata."
    )


def _polls_too_rarely(row: tuple[Rebalance, ...]) -> bool:
    """Return True if the client says each time that it leaves for its poll interval: T-05 and T-12 report that."""
    left = [rebalance.starter.reason for rebalance in row if rebalance.starter.cause == MEMBER_LEFT]
    return bool(left) and all(map(names_poll_timeout, left))


def _beside(row: tuple[Rebalance, ...]) -> list[tuple[Starter, int]]:
    """Return who did the same in most of the rebalances that one client began, and in how many."""
    found: list[tuple[Starter, int]] = []
    for one in (other for rebalance in row for other in rebalance.also):
        times = sum(is_started_by(rebalance, one) for rebalance in row)
        if 2 * times > len(row) and not any(one.is_same(known) for known, _ in found):
            found.append((one, times))
    return found


@rule(
    "one member loops",
    ERROR,
    HEURISTIC,
    CLIENT,
    suppressed_by=("M-13", "R-10", "R-17", "R-25", "R-27", "T-05", *_TIMEOUTS, *_BAD_PLANS, *_COORDINATOR),
    quiet_times=5,
)
def R_07(group: ClassicGroup, rebalanced: Rebalanced) -> Breach | None:
    """A single client makes all others stop and rebalance, again and again.

    Condition: The same member, instance id, or client id that nobody else in the group has, started four rebalances in a row within
        15 minutes (warning), or ten (error). Others that joined anew, left or changed their topics in most of the same join phases
        do the same: then the finding tells of all, and of none alone. The generations that follow from a rebalance belong to it: up
        to three that members start with the same topics (cooperative: what they gave up is assigned), and all that Connect workers
        start by rejoining (configuration, revocation, the end of the scheduled delay; KIP-415). They neither count nor interrupt
        the row. A client that gives a poll timeout as its reason each time it leaves is T-05 and T-12.
    Expected: A member joins once and stays.
    Action: Take that client out of the group and read its log: crash loop, exceeded poll interval, failing assignor or
        deserialiser.
    False alarms: A leader that rejoins because partitions were added: not counted where its assignments show it, else a warning at
        most. Starters that were not seen interrupt the row. A Connect worker that rejoins for ever without leaving is not told from
        a cluster whose connectors change: R-06 counts that.
    """
    row = in_a_row(group.rebalances.completed)
    if len(row) < _LOOP or _polls_too_rarely(row):
        return None
    starter = row[-1].starter
    mild = all(rebalance.starter.cause in _MILD for rebalance in row)
    severe = len(row) >= _STUCK_LOOP and not mild
    span_us = row[-1].completed_us - row[0].completed_us
    frames = [rebalance.starter.frame for rebalance in first_and_last(row)]
    same_member = all(rebalance.starter.member_id == starter.member_id for rebalance in row)
    severity = ERROR if severe else WARNING
    began = (
        f"The {the_client(starter.actor)} started {len(row)} rebalances of group {group.name} in a row within {seconds(span_us)}"
    )
    beside = _beside(row)
    if beside:
        each = some([f"{the_client(one.actor)} did the same in {times} of them" for one, times in beside], _NAMED)
        return Breach(
            "",
            f"{began}, and {each}: none of them alone makes the other members take part each time.",
            _causes_text(row),
            captured(*frames),
            generation=rebalanced.newest.generation,
            severity=severity,
            action=_IN_COMMON,
        )
    return Breach(
        starter.member_id if same_member else starter.subject,
        f"{began}, and the other members had to take part each time.{stuck_text(group, client_text(starter.actor))}",
        _causes_text(row),
        captured(*frames),
        actor=starter.actor,
        member_id=starter.member_id or None,
        instance_id=starter.instance_id,
        generation=rebalanced.newest.generation,
        severity=severity,
    )


def _synced_or_gone(group: ClassicGroup, member_id: str) -> bool:
    member = group.members.get(member_id)
    return member is None or member.removed is not None or member.synced == member.joined


@rule("joined, never synced, rejoins", WARNING, HEURISTIC, CLIENT, suppressed_by=_BAD_PLANS, over=_synced_or_gone)
def R_10(group: ClassicGroup, joined: JoinedUnsynced) -> Breach | None:
    """A client fails between the two phases of a rebalance, starts over, and takes the group with it.

    Condition: Four JoinGroup successes in a row for one member, with no SyncGroup between, on connections that stood.
    Expected: A member sends SyncGroup right after its JoinGroup was answered.
    Action: Read that client's log: a failing assignor, or a check of the protocol that it does not survive.
    False alarms: Connections that broke before the answer arrived do not count.
    """
    member = joined.member
    if joined.times < _UNSYNCED:
        return None
    return Breach.of_member(
        member,
        f"{who(member)} received a generation of group {group.name} {joined.times} times in a row and never asked for its assignment: "
        f"it fails between JoinGroup and SyncGroup.",
        f"{counted(joined.times, 'JoinGroup success', 'JoinGroup successes')} without a SyncGroup between",
        admission(member),
        generation=member.joined,
    )


@rule("initial thrash", INFO, HEURISTIC, CONFIG)
def R_12(group: ClassicGroup, settled: Settled) -> Breach | None:
    """The members of a new group came one by one, each after a generation was complete; the first assignments were wasted.

    Condition: Generation 4 or later of a new group, with members that the one before did not have and no fewer members than
        generations, within four times the initial rebalance delay (3 s unless configured) of its first JoinGroup.
    Expected: The initial delay gathers all members that start together.
    Action: Raise group.initial.rebalance.delay.ms on the brokers, or start the members closer together.
    False alarms: A broker whose initial delay is shorter than the monitor was told. One or two latecomers are no finding.
    """
    newest, birth_us = settled.newest, group.rebalance_history.birth_us
    before = group.generations[-2] if len(group.generations) > 1 else None
    if newest.generation < _WASTED or birth_us is None or before is None:
        return None
    delay_ms = group.settings.group_initial_rebalance_delay_ms
    if newest.proven_us - birth_us > 4_000 * delay_ms or newest.roster is None or before.roster is None:
        return None
    added = [id_ for id_ in newest.roster if id_ not in before.roster]
    if not added or len(newest.roster) < newest.generation:
        return None  # restarted members also cause generations, without making the group grow
    return Breach(
        "",
        f"New group {group.name} completed {newest.generation} generations within {seconds(newest.proven_us - birth_us)} of its first "
        f"JoinGroup, since its members came one after the other: each made those before it start again.",
        f"generation {newest.generation} with {counted(len(newest.roster), 'member')} after generation {before.generation} "
        f"with {len(before.roster)}",
        (before.proof, newest.proof),
        generation=newest.generation,
    )


@rule("ping-pong subscriptions", WARNING, HEURISTIC, CLIENT, over=is_gone, quiet_times=5, also=(subscription_flaps,))
def R_17(group: ClassicGroup, alternated: SubscriptionAlternated) -> Breach | None:
    """A member changes its mind about its topics over and over; every change is a rebalance for all.

    Condition: The topics of one member's JoinGroups changed four times within 15 minutes, among at most three different sets. Only
        topics are compared: sticky assignors change the rest of the metadata with every join.
    Expected: A subscription that changes rarely.
    Action: Look at that client's subscription pattern or topic list, and at code that calls subscribe() with varying topics.
    False alarms: Topics created and deleted in turn, under a pattern subscription.
    """
    member = alternated.member
    if alternated.changes < _ALTERNATIONS or alternated.distinct > _TOPIC_SETS:
        return None
    return Breach.of_member(
        member,
        f"{who(member)} goes back and forth between {counted(alternated.distinct, 'subscription')} in group {group.name}, "
        f"{alternated.changes} times within 15 minutes: each change makes all members rebalance.",
        f"{counted(alternated.changes, 'change')} between {alternated.distinct} sets of topics in its JoinGroups",
        (request_evidence(alternated.exchange),),
        generation=group.generation,
    )

"""Clients that have not arrived: what keeps each of them from consuming, by the stage at which it stands; see ``groups.arrivals``.

A client that is refused on its way to be a member is M-14's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from coordinator_model.cluster_facts import SAME_OUTAGE_US, FailedConnections
from coordinator_model.finding import CERTAIN, CLIENT, CONFIG, CONFIRMED, ERROR, HEURISTIC, INFO, OPERATOR, WARNING, Blame, Severity
from coordinator_model.groups.arrivals import RUN_US, Arrival, Refusal, Stage, process_subject
from coordinator_model.groups.classic.assignment_checks import EXCLUSIVE_ASSIGNORS
from coordinator_model.groups.classic.group import ClassicGroup
from coordinator_model.groups.classic.model import ClassicGroupModel
from coordinator_model.groups.epochs.data import EpochGroupData
from coordinator_model.groups.epochs.kinds import CONSUMER
from coordinator_model.groups.epochs.model import EpochGroup
from coordinator_model.groups.epochs.records import EpochMember
from coordinator_model.groups.evidence import process_of
from coordinator_model.groups.records import ClientInfo, Member
from coordinator_model.groups.requests import NO_TOPICS
from coordinator_model.rules.base import Breach, Due, Matter, about_one, captured, severity_of_absence, the_client, timer_rule, who
from coordinator_model.wire import error_name
from coordinator_model.wire.constants import NOT_COORDINATOR, UNSTABLE_OFFSET_COMMIT
from coordinator_model.wording import begin, clock, cost_so_far, counted, seconds, some

_LOOKUPS: Final = 5
_ON_CONNECTION: Final = 3  #: by which one process is known, however often others of its name are started
_NEVER_JOINS_US: Final = 60_000_000
_REPEATED: Final = 3
_READ_US: Final = 10_000_000  #: for which reads of offsets are refused
_NAMED: Final = 3  #: clients and topics that a sentence names
_REPEATS: Final = re.compile(r"[*+?{]")
_REPEATS_TRIED: Final = 2  #: of a pattern: with more, a match may take Python more steps than the cube of a name's length
_REPEATED_GROUP: Final = re.compile(r"\)[*+?{]")

Group = ClassicGroup | EpochGroupData


# ---------------------------------------------------------------------------------------------------- its coordinator


@timer_rule("coordinator not reached", WARNING, CONFIRMED, CONFIG, matter=Matter.REACHES, suppressed_by=("C-05", "C-13", "C-14"))
def M_15(group: ClassicGroup | EpochGroupData) -> Iterator[Due]:
    """A client is named the address of its coordinator, cannot reach it, and looks for it again and again. It reads nothing.

    Condition: FindCoordinator named one address to a client at least five times over 20 s (standstill_ms), three times on its last
        connection, with pauses of at most 30 s, and the client has sent nothing else of this group meanwhile; or it was named the
        address, and connections of its host to it have failed for 20 s since, as packets or the tap show. An error where the group
        has no member. The threads of a Kafka Streams process count as one client.
    Expected: A request to join on a connection to that address within a second.
    Action: Let advertised.listeners of the broker named, on the listener that the client uses, name an address that the client
        reaches: look at name resolution, firewalls, and container networks. Before a tap or a proxy, its address belongs there.
    False alarms: A broker that is away for longer, and was named still.
    """
    patience_us = group.settings.standstill_ms * 1_000
    processes = set[str]()
    for thread, client in group.arrivals.standing(Stage.REACHES, group.members):
        failed = group.facts.failed_connections(group.cluster, client.address, client.actor.address)
        is_near = failed is not None and failed.first_us - client.last_us <= SAME_OUTAGE_US  # else it is another client's
        fails = failed is not None and is_near and failed.last_us - max(failed.first_us, client.since_us) >= patience_us
        if not fails and not _looks_in_vain(client, patience_us):
            continue
        last_us = max(client.last_us, failed.last_us if failed is not None and fails else 0)
        subject = process_subject(thread, client)
        if subject in processes:
            continue
        processes.add(subject)

        def describe(
            subject: str = subject, client: Arrival = client, failed: FailedConnections | None = failed, last_us: int = last_us
        ) -> Breach:
            times = "once" if client.lookups == 1 else f"{client.lookups} times"
            there = counted(sum(1 for _ in group.present_members()), "member")
            others = f" {there} of the group reach theirs." if any(group.present_members()) else " Nobody consumes in this group."
            return Breach(
                subject,
                f"{begin(the_client(process_of(client.actor)))} cannot reach the coordinator of group {group.name}: it was named "
                f"{client.address} {times} since {clock(client.since_us)}, and asked nothing there.{_connections(client, failed)}{others}"
                f"{cost_so_far(last_us - client.since_us)}",
                f"{counted(client.lookups, 'FindCoordinator answer')} naming {client.address}, and no request to join",
                captured(client.frame),
                actor=process_of(client.actor),
            )

        yield Due(last_us, subject, severity_of_absence(group), describe, last_us + 2 * RUN_US)


def _looks_in_vain(client: Arrival, patience_us: int) -> bool:
    many = client.lookups >= _LOOKUPS and client.on_connection >= _ON_CONNECTION
    return many and client.last_us - client.lookups_us >= patience_us


def _connections(client: Arrival, failed: FailedConnections | None) -> str:
    """Return what was captured of connections to the address since it was named to the client, as a sentence."""
    if failed is None:
        return ""
    refused, unanswered = failed.refused, failed.unanswered
    if client.failed is not None and client.failed.first_us == failed.first_us:  # others of its host failed before
        refused, unanswered = refused - client.failed.refused, unanswered - client.failed.unanswered
    counts = ((refused, "refused"), (unanswered, "not answered"))
    words = [f"{counted(count, 'connection')} {'was' if count == 1 else 'were'} {how}" for count, how in counts if count]
    return f" {' and '.join(words)} there since {clock(max(failed.first_us, client.lookups_us))}." if words else ""


_GRANT_RIGHT: Final = "Grant the client's principal the right to describe and to read the topic: kafka-acls.sh --consumer --topic."
_MEND_PATTERN: Final = (
    "Mend the pattern that the client subscribes by, or create the topic. A topic that it may not describe is none for the client: look at "
    "its rights."
)
_MEND_NAME: Final = "Mend the name that the client subscribes to, or create the topic."


@timer_rule("never asks to join", INFO, HEURISTIC, CONFIG, matter=Matter.REACHES, suppressed_by=("C-14", "M-15"))
def M_16(group: ClassicGroup | EpochGroupData) -> Iterator[Due]:
    """A client looked for the group's coordinator, found it, and has not asked to join. If it is to consume, it reads nothing.

    Condition: FindCoordinator named a client the coordinator, and for a minute it has sent nothing else of this group, while its
        connection is open. A warning, after 20 s (standstill_ms), where Metadata answers say that a topic for which it asks does not
        exist, or is not for it. The threads of a Kafka Streams process count as one client.
    Expected: A request to join within a second.
    Action: Look whether the topic that it subscribes to exists, and whether its pattern matches one: several libraries do not join
        before. Look whether the client reaches the address named.
    False alarms: A client that has a group id and does not consume, such as one that reads the ends of partitions. A coordinator
        whose connections are not captured.
    """
    processes = set[str]()
    for thread, client in group.arrivals.standing(Stage.REACHES, group.members):
        subject = process_subject(thread, client)
        if client.actor.connection not in group.connections or subject in processes:
            continue
        processes.add(subject)
        why = _no_topic(group, client)
        patience_us = group.settings.standstill_ms * 1_000 if why else _NEVER_JOINS_US

        def describe(
            subject: str = subject, client: Arrival = client, why: tuple[str, str] | None = why, patience_us: int = patience_us
        ) -> Breach:
            asks, action = why or ("", None)
            return Breach(
                subject,
                f"{begin(the_client(process_of(client.actor)))} was named the coordinator {client.address} of group {group.name} at "
                f"{clock(client.since_us)} and has not asked to join for {seconds(patience_us)}, though its connection is open: it "
                f"reads nothing.{asks}{cost_so_far(patience_us)}",
                "no request of this client in the group but FindCoordinator",
                captured(client.frame),
                actor=process_of(client.actor),
                action=action,
                certainty=CONFIRMED if why else None,
            )

        yield Due(client.since_us + patience_us, subject, WARNING if why else INFO, describe)


def _no_topic(group: ClassicGroup | EpochGroupData, client: Arrival) -> tuple[str, str] | None:
    """Return which topics Metadata answers did not give a client, and what to do, as sentences; None if they show nothing."""
    if missing := group.facts.missing_topics(group.cluster, client.actor.named):
        return f" It asks for {some(missing, _NAMED, ' and ')}, which the brokers do not have.", _MEND_NAME
    if denied := group.facts.denied_topics(group.cluster, client.actor.named):
        named = some(denied, _NAMED, " and ")
        return f" It asks for {named}, and has no right to it: Metadata was answered TOPIC_AUTHORIZATION_FAILED.", _GRANT_RIGHT
    return None


# ---------------------------------------------------------------------------------------------------- its partitions


class _Cause(NamedTuple):
    """Why members hold nothing."""

    subject: str
    text: str
    severity: Severity
    action: str
    blame: Blame = CONFIG


class _Idle(NamedTuple):
    """A member without partitions."""

    member: Member | EpochMember
    since_us: int
    topics: tuple[str, ...] | None  #: None if they are not known
    pattern: str = ""


@timer_rule(
    "members hold nothing",
    WARNING,
    CONFIRMED,
    CONFIG,
    matter=Matter.HOLDS,
    suppressed_by=("A-02", "A-06", "A-08", "E-13", "R-02", "R-14", "R-15", "R-18"),
)
def A_15(group: ClassicGroup | EpochGroupData) -> Iterator[Due]:
    """Members are in the group and read nothing, and no rebalance will change that.

    Condition: In a settled consumer group, members have had no partition for 20 s (standstill_ms), and it is known why: Metadata answers
        say that the topics that they subscribe to do not exist, or are not for them; or no known name matches their pattern as a
        whole, and nobody with that pattern has any; or, by the classic protocol, their subscription names no topic. A note where the
        members are more than the partitions of their topics.
    Expected: Each member has partitions, or is a spare one.
    Action: What to do depends on the cause, and is said with each finding.
    False alarms: Topics that are made later on purpose. Silent where an assignor other than Kafka's own is used, and where no Metadata
        answer shows why.
    """
    causes: dict[tuple[tuple[str, ...] | None, str], _Cause | None] = {}  # by what members want: most of a group want the same
    by_cause: dict[_Cause, list[_Idle]] = {}
    for idle in _idle_members(group):
        wanted = idle.topics, idle.pattern
        if wanted not in causes:
            causes[wanted] = _cause_of(group, *wanted)
        if (cause := causes[wanted] or _denied(group, idle.member.actor, idle.topics)) is not None:
            by_cause.setdefault(cause, []).append(idle)
    for cause, members in by_cause.items():
        since_us = max(idle.since_us for idle in members)
        due_us = since_us + group.settings.standstill_ms * 1_000

        def describe(
            cause: _Cause = cause, members: list[_Idle] = members, since_us: int = since_us, due_us: int = due_us
        ) -> Breach:
            named = some([who(idle.member) for idle in members], _NAMED, " and ")
            have = "has" if len(members) == 1 else "have"
            cost = "" if cause.severity is INFO else cost_so_far(sum(due_us - idle.since_us for idle in members))
            return Breach(
                cause.subject,
                f"{begin(named)} of group {group.name} {have} had no partitions since {clock(since_us)}: {cause.text}{cost}",
                f"{counted(len(members), 'member')} without partitions in a settled group",
                (),
                generation=group.generation,
                action=cause.action,
                blame=cause.blame,
                **about_one([idle.member for idle in members]),
            )

        yield Due(due_us, cause.subject, cause.severity, describe)


def _idle_members(group: Group) -> Iterator[_Idle]:
    """Yield the members without partitions, once nothing is under way that could give them any."""
    if isinstance(group, EpochGroupData):
        empty = [member for member in group.present_members() if member.empty_since_us and not member.classic]
        if not empty or group.kind != CONSUMER or any(one.pending or one.epoch != group.epoch for one in group.present_members()):
            return
        for idle in empty:
            yield _Idle(idle, idle.empty_since_us, idle.topics or None, idle.pattern or "")
        return
    newest = group.newest_generation
    if newest is None or newest.sync_done_us is None or newest.protocol not in EXCLUSIVE_ASSIGNORS - {"stream"}:
        return
    wanted = {known.topics for known in group.arrivals.clients.values()}
    if not group.facts.denies and () not in wanted and not any(_cause_of(group, topics, "") for topics in wanted):
        return  # what Metadata answers do not show is asked once
    for _, client in group.arrivals.standing(Stage.HOLDS, group.members):
        member = group.members.get(client.member_id)
        if member is not None and member.in_sync == newest.generation:
            topics = client.topics or (() if member.topics == NO_TOPICS else None)
            yield _Idle(member, max(client.since_us, newest.sync_done_us), topics)


def _cause_of(group: Group, topics: tuple[str, ...] | None, pattern: str) -> _Cause | None:
    if pattern and isinstance(group, EpochGroupData):
        return _pattern_matches_nothing(group, pattern)
    if topics is None:
        return None
    if not topics:
        return _Cause(
            "no topic", "its subscription names no topic, as that of a pattern which matches none.", WARNING, _MEND_PATTERN
        )
    counts = {topic: group.facts.partition_count(group.cluster, topic) for topic in topics}
    missing = [topic for topic, count in counts.items() if count is not None and not count.partitions]
    if missing and len(missing) == len(counts):
        named = some(missing, _NAMED, " and ")
        text = f"it subscribes to {named}, and there is no such topic."
        return _Cause(f"no topic {named}", text, WARNING, _MEND_NAME)
    partitions = sum(count.partitions for count in counts.values() if count is not None)
    if partitions and None not in counts.values() and partitions < (members := sum(1 for _ in group.present_members())):
        text = (
            f"its topics have {counted(partitions, 'partition')}, and the group has {counted(members, 'member')}: one without any takes "
            "over when another goes."
        )
        return _Cause("spare", text, INFO, "Nothing, if it is a spare one. Else add partitions, or run fewer members.", OPERATOR)
    return None


def _denied(group: Group, actor: ClientInfo, topics: tuple[str, ...] | None) -> _Cause | None:
    """Return the cause if a client may know of none of its topics: as the leader it has nothing to assign."""
    denied = group.facts.denied_topics(group.cluster, actor.named)
    if not topics or not set(topics) <= set(denied):
        return None
    named = some(topics, _NAMED, " and ")
    text = f"it subscribes to {named}, and has no right to it: Metadata was answered TOPIC_AUTHORIZATION_FAILED."
    return _Cause(f"no right to {named}", text, WARNING, _GRANT_RIGHT)


def _pattern_matches_nothing(group: EpochGroupData, pattern: str) -> _Cause | None:
    """Return the cause if the pattern matches no whole name of a topic: the coordinator assigns everything that it matches.

    Brokers take RE2, of which most is Python's syntax. RE2 takes linear time and Python does not, so a pattern that could take long is not
    tried: it comes from the wire.
    """
    if len(_REPEATS.findall(pattern)) > _REPEATS_TRIED or _REPEATED_GROUP.search(pattern):
        return None
    names = group.facts.topic_names(group.cluster)
    try:
        compiled = re.compile(pattern)
    except re.error:
        return None
    holds = any(not member.empty_since_us and member.pattern in {None, pattern} for member in group.present_members())
    if holds or any(compiled.fullmatch(name) for name in names):
        return None
    partly = sorted(name for name in names if compiled.search(name))
    text = f"no name of a topic matches its pattern {pattern} as a whole"
    action = (
        "Mend the pattern: brokers use RE2/J, and match the whole name, so that one that ends in .* matches all that begin so. Or create "
        "the topic. A topic that it may not describe is none for the client: look at its rights."
    )
    if partly:
        text += f", as brokers match it (RE2/J). {some(partly, _NAMED, ' and ')} {'match' if len(partly) > 1 else 'matches'} only in part"
        action = f"Let the pattern match whole names, such as {pattern}.* for all that begin so."
    return _Cause(f"pattern {pattern}", f"{text}.", WARNING, action)


# ---------------------------------------------------------------------------------------------------- where to begin


@timer_rule("start position refused", WARNING, CERTAIN, CLIENT, matter=Matter.BEGINS, suppressed_by=("C-13", "O-10"))
def O_12(group: ClassicGroupModel | EpochGroup) -> Iterator[Due]:
    """A member has partitions, cannot read where the group stood in them, and does not begin to consume.

    Condition: A member's OffsetFetch was refused at least three times over 10 s and not answered since; or it was refused, and not
        asked again for 10 s. An error where no other member consumes.
    Expected: The committed offsets.
    Action: What to do depends on the error, and is said with each finding.
    False alarms: A client that does not need the offsets that it asks for.
    """
    clients = group.arrivals.standing(Stage.BEGINS, group.members)
    others = sum(1 for _ in group.present_members()) > len(clients)
    for subject, client in clients:
        refused = client.refusal
        if refused is None:
            continue
        repeated = refused.times >= _REPEATED and refused.last_us - refused.first_us >= _READ_US
        at_us = refused.last_us if repeated else refused.last_us + _READ_US

        def describe(subject: str = subject, client: Arrival = client, refused: Refusal = refused, at_us: int = at_us) -> Breach:
            member: Any = group.members[client.member_id]
            held = sum(len(list(numbers)) for numbers in (group.held_by(member) or {}).values())
            times = (
                f"{refused.times} times since {clock(refused.first_us)}" if refused.times > 1 else f"at {clock(refused.first_us)}"
            )
            name = error_name(refused.error)
            why, action = _why_unread(group, refused)
            return Breach.of_member(
                member,
                f"{begin(who(member))} of group {group.name} cannot read where to begin: its OffsetFetch was answered {name} "
                f"{times}. {why}{cost_so_far(at_us - refused.first_us, held)}",
                f"{counted(refused.times, 'OffsetFetch', 'OffsetFetches')} answered {name}, and no success since",
                refused.frames,
                subject=subject,
                action=action,
                generation=group.generation,
            )

        yield Due(at_us, subject, WARNING if others else ERROR, describe)


def _why_unread(group: Group, refused: Refusal) -> tuple[str, str]:
    """Return what is in the way, and what to do, as sentences."""
    if refused.error == UNSTABLE_OFFSET_COMMIT:
        held = [one for one in group.arrivals.transactions.values() if one.at_us <= refused.first_us]
        named = some(
            [
                f"{one.transactional_id} of {the_client(one.actor)}, which committed offsets last at {clock(one.at_us)}"
                for one in held
            ],
            _NAMED,
            "; ",
        )
        whose = f" It may be that of producer {named}." if held else ""
        ends = (
            f"A transaction with offsets of this group is open.{whose} It ends when its producer ends it, or begins anew under its id, or "
            "after its transaction.timeout.ms: by default 60 s, at most transaction.max.timeout.ms of the brokers, 15 min."
        )
        return ends, (
            "Start the process of that transactional.id again, which ends what it left open, or end it with kafka-transactions.sh abort "
            "(find-hanging names it). A shorter transaction.timeout.ms ends such a transaction sooner."
        )
    if refused.error == NOT_COORDINATOR:
        return "That broker is not the coordinator any more, and the client does not ask the new one.", (
            "Restart that client, and upgrade its library: it takes a coordinator that moved for an answer."
        )
    return "It does not consume what it holds.", "Look the error up, and read that client's log."

"""Family A: assignments, from the leader's SyncGroup to each member's.

The coordinator passes assignments on unread. The leader is responsible for the content of the plan, the coordinator for a delivery that
differs from it. A plan applies until the next one, and so do its errors.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from functools import wraps

from coordinator_model.events import SAME_TOPICS
from coordinator_model.finding import BROKER, CERTAIN, CLIENT, CONFIG, CONFIRMED, CRITICAL, ERROR, HEURISTIC, WARNING, Severity
from coordinator_model.groups.classic.assignment_checks import KEPT, AssignmentErrors
from coordinator_model.groups.classic.group import ClassicGroup
from coordinator_model.groups.classic.trackers.assignments import RivalClaims, SyncAsked
from coordinator_model.groups.classic.trackers.plans import BLANK, EMPTIED, SWAPPED, Suspect, is_leader
from coordinator_model.groups.evidence import request_evidence, response_evidence
from coordinator_model.groups.records import SyncFacts
from coordinator_model.rules.base import Breach, Due, Matter, admission, rule, sender_text, timer_rule, who, whom
from coordinator_model.wording import clock, counted, seconds, some

_NAMED = 3  # number of items that a summary names
_AGAIN = 2  #: rebalances that show at which pace a member rejoins


def _some(items: list[str]) -> str:
    return some(items, _NAMED) + (" at least" if len(items) >= KEPT else "")


def _has_members(group: ClassicGroup) -> bool:
    """Return True if an assignment can still apply."""
    return any(member.removed is None for member in group.members.values())


def _flaws(group: ClassicGroup) -> AssignmentErrors | None:
    return group.assignments.flaws if _has_members(group) else None


def _leader(flaws: AssignmentErrors) -> str:
    return f"The leader {flaws.leader} {whom(flaws.actor)}"


def _submitted(flaws: AssignmentErrors, summary: str, observed: str, subject: str = "") -> Breach:
    return Breach(
        subject,
        summary,
        observed,
        (flaws.frame,),
        actor=flaws.actor,
        member_id=flaws.leader,
        instance_id=flaws.instance_id,
        generation=flaws.generation,
    )


Describe = Callable[[ClassicGroup, AssignmentErrors], Breach]


def _about_the_plan(flaw: str, severity: Severity) -> Callable[[Describe], Callable[[ClassicGroup], Iterator[Due]]]:
    """Make the condition of a rule of the function that describes a flaw of the whole plan."""

    def condition(describe: Describe) -> Callable[[ClassicGroup], Iterator[Due]]:
        @wraps(describe)
        def due(group: ClassicGroup) -> Iterator[Due]:
            flaws = _flaws(group)
            if flaws is not None and getattr(flaws, flaw):
                yield Due(flaws.at_us, "", severity, lambda: describe(group, flaws))

        return due

    return condition


def suspects(group: ClassicGroup, *kinds: str) -> Iterator[Suspect]:
    """Yield each member's newest suspect of these kinds."""
    if _has_members(group):
        yield from {one.member_id: one for one in group.assignments.suspects if one.kind in kinds}.values()


# A-08 first, because it suppresses others.
@timer_rule("leader submits nothing", ERROR, CERTAIN, CLIENT, matter=Matter.PLAN)
@_about_the_plan("nothing_of", ERROR)
def A_08(group: ClassicGroup, flaws: AssignmentErrors) -> Breach:
    """Every member is idle: the leader computed no assignment.

    Condition: The leader was given the member list, was not told to skip the assignment, and its first SyncGroup has no entries,
        although a member subscribed to a topic of which this group has held partitions before.
    Expected: An entry for every member.
    Action: Read the leader's log: its assignor failed, or it cannot read the topic's metadata.
    False alarms: Topics that do not exist yet: only topics known to have partitions count. A topic deleted since may be one.
    """
    return _submitted(
        flaws,
        f"{_leader(flaws)} of group {group.name} submitted no assignment at all for generation {flaws.generation}, although members "
        f"subscribed to {flaws.nothing_of}, which has partitions: everybody is idle.",
        "a SyncGroup request of the leader without entries",
    )


@timer_rule("assigns a non-member", WARNING, CONFIRMED, CLIENT, matter=Matter.PLAN)
@_about_the_plan("strangers", WARNING)
def A_01(group: ClassicGroup, flaws: AssignmentErrors) -> Breach:
    """The leader gave partitions to a member that is not in the group: the coordinator drops the entry, no member reads them.

    Condition: The leader's SyncGroup has an entry for a member id that was not in the member list of its JoinGroup answer.
    Expected: Entries for members of that generation only.
    Action: Restart the leader, so that another member assigns. If the finding comes back, replace the leader's assignor
        (partition.assignment.strategy) by a stock one: it mixes up generations or groups.
    False alarms: A static member replaced while the leader computed: its new id counts as a member.
    """
    ids = _some(list(flaws.strangers))
    return _submitted(
        flaws,
        f"{_leader(flaws)} of group {group.name} assigned partitions to {ids}, no member of generation {flaws.generation}: the "
        "coordinator drops such entries in silence, and no member reads those partitions.",
        f"entries for {ids} in the SyncGroup request; they are not in the member list that the leader was given",
    )


@timer_rule("member left out", WARNING, CONFIRMED, CLIENT, matter=Matter.PLAN, suppressed_by=("A-08",))
@_about_the_plan("left_out", WARNING)
def A_02(group: ClassicGroup, flaws: AssignmentErrors) -> Breach:
    """A member is idle although there was work to share.

    Condition: The leader's first SyncGroup of a generation has no entry for a member, while another member is given several
        partitions of one topic that the member subscribed to.
    Expected: An entry for every member, if only an empty one.
    Action: Restart the leader, so that another member assigns. If the finding comes back, replace the leader's assignor
        (partition.assignment.strategy) by a stock one, or upgrade its library.
    False alarms: Some clients name only members to whom they give something: with too few partitions to go round, this is not said.
        A leader told to skip the assignment, or one whose group is stable already, is not judged.
    """
    ids = _some(list(flaws.left_out))
    return _submitted(
        flaws,
        f"{_leader(flaws)} of group {group.name} left {ids} out of the assignment of generation {flaws.generation}, although "
        "others hold several partitions of a topic that they subscribed to.",
        f"no entry for {ids} in the SyncGroup request",
    )


@timer_rule("partition given twice", ERROR, CERTAIN, CLIENT, matter=Matter.PLAN)
@_about_the_plan("shared", ERROR)
def A_03(group: ClassicGroup, flaws: AssignmentErrors) -> Breach:
    """Two consumers of one group read the same partition: records are processed twice, and they overwrite each other's offsets.

    Condition: In a leader's SyncGroup the entries of two members hold the same partition, in a group of protocol type consumer.
    Expected: Each partition belongs to one member.
    Action: Look at the leader's assignor; until it is mended, restart the group with a stock assignor.
    False alarms: Assignors that give partitions to everybody on purpose: name theirs in broadcast_assignors. Quiet without it when
        the name contains 'broadcast', or when an assignor of an unknown name gives all members exactly the same.
    """
    pairs = _some([f"{topic}-{partition} to {one} and {other}" for topic, partition, one, other in flaws.shared])
    return _submitted(
        flaws,
        f"{_leader(flaws)} of group {group.name} gave partitions to two members at once in generation {flaws.generation}: {pairs}.",
        f"overlapping entries in the SyncGroup request under protocol {flaws.protocol or 'unknown'}",
    )


@timer_rule("unsubscribed topic assigned", WARNING, CERTAIN, CLIENT, matter=Matter.PLAN)
def A_04(group: ClassicGroup) -> Iterator[Due]:
    """A member was given a topic that it did not ask for: it fails, or drops it and rejoins at once, and the group loops.

    Condition: In the leader's SyncGroup a member's entry holds a topic that is not in the subscription it joined with.
    Expected: Only topics from the member's own subscription.
    Action: Look at the leader's assignor, and at whether all members run the same configuration.
    False alarms: A leader of Kafka Streams may know of a new topic before others do: it is judged only where a member also subscribes
        to a topic that the leader does not, as two applications under one application.id do.
    """
    flaws = _flaws(group)
    if flaws is None:
        return
    if flaws.unread:
        yield Due(flaws.at_us, "", WARNING, lambda: _two_applications(group, flaws))
        return
    for victim in dict.fromkeys(member_id for member_id, _ in flaws.unsubscribed):

        def describe(victim: str = victim, flaws: AssignmentErrors = flaws) -> Breach:
            topics = _some([topic for member_id, topic in flaws.unsubscribed if member_id == victim])
            return _submitted(
                flaws,
                f"{_leader(flaws)} of group {group.name} assigned partitions of {topics} to member {victim}, which did not subscribe to "
                f"it in generation {flaws.generation}; that member may drop them or rejoin at once.",
                f"the entry of {victim} holds {topics}, its subscription does not",
                subject=victim,
            )

        yield Due(flaws.at_us, victim, WARNING, describe)


def _two_applications(group: ClassicGroup, flaws: AssignmentErrors) -> Breach:
    victims = dict.fromkeys(member_id for member_id, _ in flaws.unsubscribed)
    given, unread = _some(sorted({topic for _, topic in flaws.unsubscribed})), _some(list(flaws.unread))
    named = _some([who(group.members[id_]) if id_ in group.members else f"member {id_}" for id_ in victims])
    return _submitted(
        flaws,
        f"Two Kafka Streams applications share the application.id {group.name}. {_leader(flaws)} gave tasks of {given} to {named}, which "
        f"does not subscribe to it, and {_rejoins(group, victims)}. Nobody reads {unread}, to which that member subscribes and the leader "
        "does not.",
        f"entries for {given}, of a member that subscribes to {unread}",
    )._replace(blame=CONFIG, action="Give each application an application.id of its own, and start it again.")


def _rejoins(group: ClassicGroup, member_ids: Container[str]) -> str:
    """Return since when members have asked for rebalances with the same topics, as words."""
    begun = (one for one in group.rebalances.completed if one.starter.cause == SAME_TOPICS)
    begun_us = [one.began_us for one in begun if one.starter.member_id in member_ids]
    if len(begun_us) < _AGAIN:
        return "rejoins"
    every_us = (begun_us[-1] - begun_us[0]) // (len(begun_us) - 1)
    return f"rejoined {len(begun_us)} times since {clock(begun_us[0])}, every {seconds(every_us)}"


@timer_rule("delivered is not what was submitted", CRITICAL, CONFIRMED, BROKER, matter=Matter.PLAN)
def A_05(group: ClassicGroup) -> Iterator[Due]:
    """Members act on an assignment that no leader made: partitions are read twice or not at all.

    Condition: A member's SyncGroup answer holds other bytes than its entry in any SyncGroup request of the leader at that
        generation.
    Expected: The leader's entry for the member, byte for byte.
    Action: Restart the client named, so that it gets what the leader gives it. Keep the frames and the coordinator's log; look for
        a proxy that rewrites answers.
    False alarms: A leader that submitted twice, a member that took over a static instance, and a coordinator that moved are allowed
        for. A generation that was not seen from its beginning is not judged.
    """
    for suspect in suspects(group, SWAPPED):

        def describe(suspect: Suspect = suspect) -> Breach:
            return Breach.of_sender(
                suspect,
                f"The coordinator {group.broker} gave {sender_text(suspect)} of group {group.name} an "
                f"assignment that the leader of generation {suspect.generation} did not submit for it.",
                "the assignment in the SyncGroup answer differs from the member's entry in every SyncGroup request of the leader",
                (suspect.frame,),
            )

        yield Due(suspect.at_us + group.late_us, suspect.member_id, CRITICAL, describe)


@timer_rule("empty assignment delivered", CRITICAL, CONFIRMED, BROKER, matter=Matter.PLAN, suppressed_by=("A-08",))
def A_06(group: ClassicGroup) -> Iterator[Due]:
    """A member received no assignment at all: it idles, or fails to decode it and loops (the family of KAFKA-9801).

    Condition: A SyncGroup success without a single byte of assignment, although the leader's entry for that member is not empty; as
        a warning when the leader's plan is empty for everybody although a topic with partitions is subscribed to.
    Expected: The leader's entry for the member.
    Action: Upgrade the brokers if they are older than 2.5; otherwise keep the frames and the coordinator's log.
    False alarms: A static member that returned under a new id while the leader computed (brokers 2.3 and 2.4).
    """
    for suspect in suspects(group, EMPTIED):

        def describe(suspect: Suspect = suspect) -> Breach:
            return Breach.of_sender(
                suspect,
                f"The coordinator {group.broker} gave {sender_text(suspect)} of group {group.name} no "
                f"assignment, although the leader of generation {suspect.generation} submitted one for it.",
                "a SyncGroup success without an assignment; the leader's entry for the member is not empty",
                (suspect.frame,),
            )

        yield Due(suspect.at_us + group.late_us, suspect.member_id, CRITICAL, describe)
    for suspect in list(suspects(group, BLANK))[:1]:

        def describe_blank(suspect: Suspect = suspect) -> Breach:
            return Breach(
                "",
                f"All members of group {group.name} are given no assignment in generation {suspect.generation}, although they "
                "subscribed to topics with partitions.",
                "a SyncGroup success without an assignment; the plan has no entry that holds anything",
                (suspect.frame,),
                generation=suspect.generation,
                blame=CLIENT,
            )

        yield Due(suspect.at_us + group.late_us, "", WARNING, describe_blank)


@rule("follower submits an assignment", WARNING, CERTAIN, CLIENT)
def A_07(group: ClassicGroup, asked: SyncAsked) -> Breach | None:
    """A member believes that it leads the group while another does: its library keeps stale state.

    Condition: A SyncGroup with assignments from a member whose JoinGroup answer at that generation named another leader.
    Expected: Followers send SyncGroup without assignments.
    Action: Restart that client, and upgrade its library if it does so again. The coordinator disregards what it submits.
    False alarms: A static leader that returned under a new id still leads. Silent when JoinGroup answers contradict each other.
    """
    exchange, plan = asked.exchange, group.assignments.plan
    assert isinstance(exchange.facts, SyncFacts)
    if plan is None or exchange.generation != plan.generation or not exchange.facts.assigned:
        return None
    if is_leader(group, plan, exchange.member_id) is not False:
        return None
    member = group.members[exchange.member_id]
    return Breach.of_member(
        member,
        f"{who(member)} submitted an assignment for generation {plan.generation} of group {group.name} although it was told that "
        f"{plan.leader} leads: the coordinator ignores it.",
        f"a SyncGroup request with {counted(exchange.facts.assigned, 'entry', 'entries')} from a follower",
        (*admission(member), request_evidence(exchange)),
        generation=plan.generation,
    )


@timer_rule("partition moved in one step", ERROR, HEURISTIC, CLIENT, matter=Matter.PLAN)
@_about_the_plan("jumps", ERROR)
def A_09(group: ClassicGroup, flaws: AssignmentErrors) -> Breach:
    """Under a cooperative protocol the old owner goes on reading while the new one starts: two consumers own the partition.

    Condition: Protocol cooperative-sticky; a partition that exactly one member claims to have owned in the generation before, and
        whose topic it still subscribes to, is assigned to another member.
    Expected: A partition is taken from its owner in one rebalance, and given to the next owner in the one after.
    Action: Upgrade the client library of the leader: its assignor does not wait for revocation.
    False alarms: An owner that left between the member list and the assignment is not known to the leader. Kafka Streams and
        assignors of other names are not judged.
    """
    moves = _some([f"{topic}-{partition} from {one} to {other}" for topic, partition, one, other in flaws.jumps])
    return _submitted(
        flaws,
        f"{_leader(flaws)} of group {group.name} moved partitions in one step under {flaws.protocol}: {moves}. Until the old owner "
        "has fetched its assignment, both read them.",
        f"owned in generation {flaws.generation - 1} by one member, and assigned to another in generation {flaws.generation}",
    )


@rule("conflicting ownership claims", WARNING, CONFIRMED, CLIENT, suppressed_by=("A-03", "A-09"))
def A_10(group: ClassicGroup, rivals: RivalClaims) -> Breach | None:
    """Two members think they own the same partition: sticky assignors disregard both, and one of them may still read it.

    Condition: In the member list of one generation two subscriptions claim a partition with the same, newest generation, which was
        issued once as far as is known.
    Expected: At most one owner per partition and generation.
    Action: Restart the member that got the partition earlier.
    False alarms: Subscriptions before version 2 cannot tell the generation and are not compared; nor are claims from before a
        failover.
    """
    claims = _some([f"{topic}-{partition} by {' and '.join(ids)}" for topic, partition, _, ids in rivals.claims])
    generation = rivals.claims[0][2]
    return Breach(
        "",
        f"Members of group {group.name} claim the same partitions as their own in generation {generation}: {claims}.",
        "the subscriptions in the leader's JoinGroup answer name the same partition as owned, in the same generation",
        (response_evidence(rivals.exchange, 0),),
        generation=generation,
        together=tuple(group.members[id_].actor for _, _, _, ids in rivals.claims for id_ in ids if id_ in group.members),
    )


@timer_rule("unowned partitions", WARNING, HEURISTIC, CLIENT, suppressed_by=("A-08",))
def A_11(group: ClassicGroup) -> Iterator[Due]:
    """Records are written to a partition that no consumer of this group reads.

    Condition: A partition that the group has held before, of a topic that a member subscribes to, is in nobody's assignment for
        longer than the rebalance timeout.
    Expected: Every partition of a subscribed topic is assigned; between two steps of a cooperative rebalance, for a moment not.
    Action: Force a rebalance; look at the leader's assignor and its view of the topic.
    False alarms: A topic that was deleted on purpose, or created again with fewer partitions. Where the partitions left out are the topic's
        last ones and the assignor is a standard one, it is over after ten minutes: the leader has asked for the topic's partitions
        again by then.
    """
    missing = group.assignments.unowned
    if not missing or not _has_members(group):
        return
    timeout_ms, _ = group.rebalance_timeout_ms()
    if not timeout_ms:
        return
    since_us = min(since for _, _, since in missing)
    vanished = all(topic in group.assignments.shrunk for topic, _, _ in missing)
    until_us = max(since for _, _, since in missing) + group.settings.metadata_age_us if vanished else None
    # O-09 names a right that is missing, without which clients do not even see the topic.
    topics = {topic for topic, _, _ in missing}
    explained_us = (
        one.explains_until_us for one in group.offsets.rejected.values() if any(topic in topics for topic, _ in one.partitions)
    )
    due_us = max((since_us + group.settings.bounded_ms(timeout_ms) * 1_000, *explained_us))

    def describe() -> Breach:
        partitions = _some([f"{topic}-{partition}" for topic, partition, since in missing if since == since_us])
        gone = all(group.facts.is_deleted(group.cluster, topic) for topic in topics)
        why = "there is no such topic any more" if gone else "what is written there is not read"
        return Breach(
            "",
            f"No member of group {group.name} has been assigned {partitions} for {seconds(due_us - since_us)}, although members subscribed "
            f"to it: {why}.",
            "missing in every assignment since; known from earlier assignments of this group",
            (),
            generation=group.generation,
            action="Create the topic again, or let the clients subscribe to another one." if gone else None,
        )

    yield Due(due_us, "", WARNING, describe, until_us)

"""Family A: assignments, from the leader's SyncGroup to each member's.

The coordinator passes assignments on unread. The leader is responsible for the content of the plan, the coordinator for a delivery that
differs from it. A plan applies until the next one, and so do its errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from coordinator_model.finding import Blame, Certainty, Severity
from coordinator_model.groups.classic.assignment_checks import KEPT, AssignmentErrors
from coordinator_model.groups.classic.group import ClassicGroup
from coordinator_model.groups.classic.trackers.assignments import RivalClaims, SyncAsked
from coordinator_model.groups.classic.trackers.plans import BLANK, EMPTIED, SWAPPED, Suspect, is_leader
from coordinator_model.groups.evidence import request_evidence, response_evidence
from coordinator_model.groups.records import SyncFacts
from coordinator_model.rules.base import Breach, Due, FrameRule, Matter, Rule, TimerRule, admission, sender_text, who, whom
from coordinator_model.wording import counted, seconds, some

_NAMED = 3  # number of items that a summary names


def _some(items: list[str]) -> str:
    return some(items, _NAMED) + (" at least" if len(items) >= KEPT else "")


def _lives(group: ClassicGroup) -> bool:
    """Return True if an assignment can still apply."""
    return any(member.removed is None for member in group.members.values())


def _flaws(group: ClassicGroup) -> AssignmentErrors | None:
    return group.assignments.flaws if _lives(group) else None


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
        def due(group: ClassicGroup) -> Iterator[Due]:
            flaws = _flaws(group)
            if flaws is not None and getattr(flaws, flaw):
                yield Due(flaws.at_us, "", severity, lambda: describe(group, flaws))

        return due

    return condition


@_about_the_plan("strangers", Severity.WARNING)
def _strangers(group: ClassicGroup, flaws: AssignmentErrors) -> Breach:
    ids = _some(list(flaws.strangers))
    return _submitted(
        flaws,
        f"{_leader(flaws)} of group {group.name} assigned partitions to {ids}, no member of generation {flaws.generation}: the "
        "coordinator drops such entries in silence, and no member reads those partitions.",
        f"entries for {ids} in the SyncGroup request; they are not in the member list that the leader was given",
    )


@_about_the_plan("left_out", Severity.WARNING)
def _left_out(group: ClassicGroup, flaws: AssignmentErrors) -> Breach:
    ids = _some(list(flaws.left_out))
    return _submitted(
        flaws,
        f"{_leader(flaws)} of group {group.name} left {ids} out of the assignment of generation {flaws.generation}, although "
        "others hold several partitions of a topic that they subscribed to.",
        f"no entry for {ids} in the SyncGroup request",
    )


@_about_the_plan("shared", Severity.ERROR)
def _shared(group: ClassicGroup, flaws: AssignmentErrors) -> Breach:
    pairs = _some([f"{topic}-{partition} to {one} and {other}" for topic, partition, one, other in flaws.shared])
    return _submitted(
        flaws,
        f"{_leader(flaws)} of group {group.name} gave partitions to two members at once in generation {flaws.generation}: {pairs}.",
        f"overlapping entries in the SyncGroup request under protocol {flaws.protocol or 'unknown'}",
    )


@_about_the_plan("nothing_of", Severity.ERROR)
def _nothing(group: ClassicGroup, flaws: AssignmentErrors) -> Breach:
    return _submitted(
        flaws,
        f"{_leader(flaws)} of group {group.name} submitted no assignment at all for generation {flaws.generation}, although members "
        f"subscribed to {flaws.nothing_of}, which has partitions: everybody is idle.",
        "a SyncGroup request of the leader without entries",
    )


@_about_the_plan("jumps", Severity.ERROR)
def _jumps(group: ClassicGroup, flaws: AssignmentErrors) -> Breach:
    moves = _some([f"{topic}-{partition} from {one} to {other}" for topic, partition, one, other in flaws.jumps])
    return _submitted(
        flaws,
        f"{_leader(flaws)} of group {group.name} moved partitions in one step under {flaws.protocol}: {moves}. Until the old owner "
        "has fetched its assignment, both read them.",
        f"owned in generation {flaws.generation - 1} by one member, and assigned to another in generation {flaws.generation}",
    )


def _unsubscribed(group: ClassicGroup) -> Iterator[Due]:
    flaws = _flaws(group)
    if flaws is None:
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

        yield Due(flaws.at_us, victim, Severity.WARNING, describe)


def suspects(group: ClassicGroup, *kinds: str) -> Iterator[Suspect]:
    """Yield each member's newest suspect of these kinds."""
    if _lives(group):
        yield from {one.member_id: one for one in group.assignments.suspects if one.kind in kinds}.values()


def _delivered(group: ClassicGroup) -> Iterator[Due]:
    for suspect in suspects(group, SWAPPED):

        def describe(suspect: Suspect = suspect) -> Breach:
            return Breach.of_sender(
                suspect,
                f"The coordinator {group.broker} gave {sender_text(suspect)} of group {group.name} an "
                f"assignment that the leader of generation {suspect.generation} did not submit for it.",
                "the assignment in the SyncGroup answer differs from the member's entry in every SyncGroup request of the leader",
                (suspect.frame,),
            )

        yield Due(suspect.at_us + group.settings.late_us, suspect.member_id, Severity.CRITICAL, describe)


def _emptied(group: ClassicGroup) -> Iterator[Due]:
    for suspect in suspects(group, EMPTIED):

        def describe(suspect: Suspect = suspect) -> Breach:
            return Breach.of_sender(
                suspect,
                f"The coordinator {group.broker} gave {sender_text(suspect)} of group {group.name} no "
                f"assignment, although the leader of generation {suspect.generation} submitted one for it.",
                "a SyncGroup success without an assignment; the leader's entry for the member is not empty",
                (suspect.frame,),
            )

        yield Due(suspect.at_us + group.settings.late_us, suspect.member_id, Severity.CRITICAL, describe)
    for suspect in list(suspects(group, BLANK))[:1]:

        def describe_blank(suspect: Suspect = suspect) -> Breach:
            return Breach(
                "",
                f"All members of group {group.name} are given no assignment in generation {suspect.generation}, although they "
                "subscribed to topics with partitions.",
                "a SyncGroup success without an assignment; the plan has no entry that holds anything",
                (suspect.frame,),
                generation=suspect.generation,
                blame=Blame.CLIENT,
            )

        yield Due(suspect.at_us + group.settings.late_us, "", Severity.WARNING, describe_blank)


def _follower_submits(group: ClassicGroup, asked: SyncAsked) -> Breach | None:
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


def _rival_claims(group: ClassicGroup, rivals: RivalClaims) -> Breach | None:
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


def _unowned(group: ClassicGroup) -> Iterator[Due]:
    missing = group.assignments.unowned
    timeout_ms, _ = group.rebalance_timeout_ms()
    if not missing or not timeout_ms or not _lives(group):
        return
    since_us = min(since for _, _, since in missing)
    vanished = all(topic in group.assignments.shrunk for topic, _, _ in missing)
    until_us = max(since for _, _, since in missing) + group.settings.metadata_age_us if vanished else None
    patience_us = group.settings.bounded_ms(timeout_ms) * 1_000

    def describe() -> Breach:
        partitions = _some([f"{topic}-{partition}" for topic, partition, since in missing if since == since_us])
        return Breach(
            "",
            f"No member of group {group.name} has been assigned {partitions} for {seconds(patience_us)}, although members subscribed to "
            "it: what is written there is not read.",
            "missing in every assignment since; known from earlier assignments of this group",
            (),
            generation=group.generation,
        )

    yield Due(since_us + patience_us, "", Severity.WARNING, describe, until_us)


A_01 = TimerRule(
    id="A-01",
    matter=Matter.PLAN,
    name="assigns a non-member",
    severity=Severity.WARNING,
    certainty=Certainty.CONFIRMED,
    blame=Blame.CLIENT,
    meaning="The leader gave partitions to a member that is not in the group: the coordinator drops the entry, no member reads them.",
    condition="The leader's SyncGroup has an entry for a member id that was not in the member list of its JoinGroup answer.",
    expected="Entries for members of that generation only.",
    action="Restart the leader, so that another member assigns. If the finding comes back, replace the leader's assignor "
    "(partition.assignment.strategy) by a stock one: it mixes up generations or groups.",
    false_alarms="A static member replaced while the leader computed: its new id counts as a member.",
    due=_strangers,
)

A_02 = TimerRule(
    id="A-02",
    matter=Matter.PLAN,
    name="member left out",
    severity=Severity.WARNING,
    certainty=Certainty.CONFIRMED,
    blame=Blame.CLIENT,
    meaning="A member is idle although there was work to share.",
    condition="The leader's first SyncGroup of a generation has no entry for a member, while another member is given several partitions "
    "of one topic that the member subscribed to.",
    expected="An entry for every member, if only an empty one.",
    action="Restart the leader, so that another member assigns. If the finding comes back, replace the leader's assignor "
    "(partition.assignment.strategy) by a stock one, or upgrade its library.",
    false_alarms="Some clients name only members to whom they give something: with too few partitions to go round, this is not said. A "
    "leader told to skip the assignment, or one whose group is stable already, is not judged.",
    suppressed_by=("A-08",),
    due=_left_out,
)

A_03 = TimerRule(
    id="A-03",
    matter=Matter.PLAN,
    name="partition given twice",
    severity=Severity.ERROR,
    certainty=Certainty.CERTAIN,
    blame=Blame.CLIENT,
    meaning="Two consumers of one group read the same partition: records are processed twice, and they overwrite each other's offsets.",
    condition="In a leader's SyncGroup the entries of two members hold the same partition, in a group of protocol type consumer.",
    expected="Each partition belongs to one member.",
    action="Look at the leader's assignor; until it is mended, restart the group with a stock assignor.",
    false_alarms="Assignors that give partitions to everybody on purpose: name theirs in broadcast_assignors. Quiet without it when the "
    "name contains 'broadcast', or when an assignor of an unknown name gives all members exactly the same.",
    due=_shared,
)

A_04 = TimerRule(
    id="A-04",
    matter=Matter.PLAN,
    name="unsubscribed topic assigned",
    severity=Severity.WARNING,
    certainty=Certainty.CERTAIN,
    blame=Blame.CLIENT,
    meaning="A member was given a topic that it did not ask for: it fails, or drops it and rejoins at once, and the group loops.",
    condition="In the leader's SyncGroup a member's entry holds a topic that is not in the subscription it joined with.",
    expected="Only topics from the member's own subscription.",
    action="Look at the leader's assignor, and at whether all members run the same configuration.",
    false_alarms="Kafka Streams, which matches topics by pattern on its own, is not judged.",
    due=_unsubscribed,
)

A_05 = TimerRule(
    id="A-05",
    matter=Matter.PLAN,
    name="delivered is not what was submitted",
    severity=Severity.CRITICAL,
    certainty=Certainty.CONFIRMED,
    blame=Blame.BROKER,
    meaning="Members act on an assignment that no leader made: partitions are read twice or not at all.",
    condition="A member's SyncGroup answer holds other bytes than its entry in any SyncGroup request of the leader at that generation.",
    expected="The leader's entry for the member, byte for byte.",
    action="Restart the client named, so that it gets what the leader gives it. Keep the frames and the coordinator's log; look for a "
    "proxy that rewrites answers.",
    false_alarms="A leader that submitted twice, a member that took over a static instance, and a coordinator that moved are allowed for. "
    "A generation that was not seen from its beginning is not judged.",
    due=_delivered,
)

A_06 = TimerRule(
    id="A-06",
    matter=Matter.PLAN,
    name="empty assignment delivered",
    severity=Severity.CRITICAL,
    certainty=Certainty.CONFIRMED,
    blame=Blame.BROKER,
    meaning="A member received no assignment at all: it idles, or fails to decode it and loops (the family of KAFKA-9801).",
    condition="A SyncGroup success without a single byte of assignment, although the leader's entry for that member is not empty; as a "
    "warning when the leader's plan is empty for everybody although a topic with partitions is subscribed to.",
    expected="The leader's entry for the member.",
    action="Upgrade the brokers if they are older than 2.5; otherwise keep the frames and the coordinator's log.",
    false_alarms="A static member that returned under a new id while the leader computed (brokers 2.3 and 2.4).",
    suppressed_by=("A-08",),
    due=_emptied,
)

A_07 = FrameRule(
    id="A-07",
    name="follower submits an assignment",
    severity=Severity.WARNING,
    certainty=Certainty.CERTAIN,
    blame=Blame.CLIENT,
    meaning="A member believes that it leads the group while another does: its library keeps stale state.",
    condition="A SyncGroup with assignments from a member whose JoinGroup answer at that generation named another leader.",
    expected="Followers send SyncGroup without assignments.",
    action="Restart that client, and upgrade its library if it does so again. The coordinator disregards what it submits.",
    false_alarms="A static leader that returned under a new id still leads. Silent when JoinGroup answers contradict each other.",
    checks={SyncAsked: _follower_submits},
)

A_08 = TimerRule(
    id="A-08",
    matter=Matter.PLAN,
    name="leader submits nothing",
    severity=Severity.ERROR,
    certainty=Certainty.CERTAIN,
    blame=Blame.CLIENT,
    meaning="Every member is idle: the leader computed no assignment.",
    condition="The leader was given the member list, was not told to skip the assignment, and its first SyncGroup has no entries, although "
    "a member subscribed to a topic of which this group has held partitions before.",
    expected="An entry for every member.",
    action="Read the leader's log: its assignor failed, or it cannot read the topic's metadata.",
    false_alarms="Topics that do not exist yet: only topics known to have partitions count. A topic deleted since may be one.",
    due=_nothing,
)

A_09 = TimerRule(
    id="A-09",
    matter=Matter.PLAN,
    name="partition moved in one step",
    severity=Severity.ERROR,
    certainty=Certainty.HEURISTIC,
    blame=Blame.CLIENT,
    meaning="Under a cooperative protocol the old owner goes on reading while the new one starts: two consumers own the partition.",
    condition="Protocol cooperative-sticky; a partition that exactly one member claims to have owned in the generation before, and whose "
    "topic it still subscribes to, is assigned to another member.",
    expected="A partition is taken from its owner in one rebalance, and given to the next owner in the one after.",
    action="Upgrade the client library of the leader: its assignor does not wait for revocation.",
    false_alarms="An owner that left between the member list and the assignment is not known to the leader. Kafka Streams and assignors "
    "of other names are not judged.",
    due=_jumps,
)

A_10 = FrameRule(
    id="A-10",
    name="conflicting ownership claims",
    severity=Severity.WARNING,
    certainty=Certainty.CONFIRMED,
    blame=Blame.CLIENT,
    meaning="Two members think they own the same partition: sticky assignors disregard both, and one of them may still read it.",
    condition="In the member list of one generation two subscriptions claim a partition with the same, newest generation, which was issued "
    "once as far as is known.",
    expected="At most one owner per partition and generation.",
    action="Restart the member that got the partition earlier.",
    false_alarms="Subscriptions before version 2 cannot tell the generation and are not compared; nor are claims from before a failover.",
    suppressed_by=("A-03", "A-09"),
    checks={RivalClaims: _rival_claims},
)

A_11 = TimerRule(
    id="A-11",
    name="unowned partitions",
    severity=Severity.WARNING,
    certainty=Certainty.HEURISTIC,
    blame=Blame.CLIENT,
    meaning="Records are written to a partition that no consumer of this group reads.",
    condition="A partition that the group has held before, of a topic that a member subscribes to, is in nobody's assignment for longer "
    "than the rebalance timeout.",
    expected="Every partition of a subscribed topic is assigned; between two steps of a cooperative rebalance, for a moment not.",
    action="Force a rebalance; look at the leader's assignor and its view of the topic.",
    false_alarms="A topic that was deleted, or created again with fewer partitions. Where the partitions left out are the topic's last "
    "ones and the assignor is a standard one, it is over after ten minutes: the leader has asked for the topic's partitions again by "
    "then.",
    suppressed_by=("A-08",),
    due=_unowned,
)

RULES: tuple[Rule, ...] = (
    A_08,
    A_01,
    A_02,
    A_03,
    A_04,
    A_05,
    A_06,
    A_07,
    A_09,
    A_10,
    A_11,
)  # A-08 first, because it suppresses others

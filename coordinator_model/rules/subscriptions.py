"""Family A: what the members of one group subscribe to, and what nobody of them gets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from coordinator_model.cluster_facts import PartitionCount
from coordinator_model.finding import CERTAIN, CLIENT, CONFIG, HEURISTIC, INFO, WARNING
from coordinator_model.groups.classic.assignment_checks import EXCLUSIVE_ASSIGNORS, Wanted
from coordinator_model.groups.classic.group import ClassicGroup
from coordinator_model.groups.classic.trackers.assignments import DifferentTopics
from coordinator_model.groups.evidence import response_evidence
from coordinator_model.rules.base import Breach, Due, about, rule, timer_rule, who
from coordinator_model.wording import clock, counted, some

_NAMED: Final = 3  # topics, partitions and parts that a sentence names


def _members(group: ClassicGroup, member_id: str, count: int) -> str:
    member = group.members.get(member_id)
    one = who(member) if member is not None else f"member {member_id}"
    return one + (f" and {counted(count - 1, 'other')}" if count > 1 else "")


@rule("different topics in one group", INFO, CERTAIN, CONFIG, quiet_times=60)
def A_13(group: ClassicGroup, different: DifferentTopics) -> Breach:
    """Services that have nothing in common share a group id. Each restart of one is a rebalance of the other, and some leaders
    watch their own topics only, so that partitions that are added to the others' have no owner.

    Condition: In the member list of one generation there are members that have no subscribed topic in common, not even through
        others.
    Expected: Members of one group subscribe to the same topics.
    Action: Give each service a group id of its own. If they are to stay together: after partitions were added to a topic that the
        leader does not subscribe to, restart one member, so that they are assigned.
    False alarms: Applications that are built so: assignors allow it. Members that change their subscription one after the other.
    """
    exchange, parts = different.exchange, different.parts
    named = some([_part(group, topics, members) for topics, members in parts], _NAMED, "; ", "; and ")
    leader = group.members.get(exchange.member_id)
    led = f" The leader is {who(leader)}." if leader is not None else ""
    return Breach(
        "",
        f"Members of group {group.name} subscribe to different topics: {named}.{led}",
        f"{len(parts)} parts of {sum(len(members) for _, members in parts)} members without a topic in common",
        (response_evidence(exchange, 0, group.generation),),
        generation=group.generation,
    )


def _part(group: ClassicGroup, topics: tuple[str, ...], members: tuple[str, ...]) -> str:
    return f"{some(topics, _NAMED, ' and ')} by {_members(group, members[0], len(members))}"


@timer_rule("partitions never assigned", WARNING, HEURISTIC, CLIENT, suppressed_by=("A-08",))
def A_14(group: ClassicGroup) -> Iterator[Due]:
    """Records are written to partitions that no consumer of this group has ever read: new ones that nobody took up, or those of a
    topic that the leader does not know of.

    Condition: Metadata responses name more partitions of a topic that members subscribe to than any assignment of this group has
        held, for the rebalance timeout, and for ten minutes (twice model.metadata_max_age_ms) after the number was first seen. Only
        of standard assignors, which leave out none that they know of.
    Expected: The leader asks for the topic's metadata within metadata.max.age.ms, by default five minutes, and starts a rebalance
        when it has more partitions.
    Action: Restart one member, so that the partitions are assigned. If the leader does not subscribe to the topic, give each
        service a group id of its own, or let all members subscribe to the same topics. Else look at the leader's
        metadata.max.age.ms, and at whether it may describe the topic.
    False alarms: A leader whose metadata.max.age.ms is above ten minutes: set model.metadata_max_age_ms. Silent where no Metadata
        response of at most 64 KiB was captured, beyond 32 topics of a group, and until a plan was captured with the subscriptions
        that it was made from.
    """
    newest = group.newest_generation
    if newest is None or newest.leader_synced_us is None or newest.protocol not in EXCLUSIVE_ASSIGNORS:
        return
    for topic, wanted in group.assignments.wanted.items():
        known = group.facts.partition_count(group.cluster, topic)
        first = max(wanted.partitions, group.assignments.topics.get(topic, 0))
        if known is None or known.partitions <= first:
            continue
        timeout_ms, _ = group.rebalance_timeout_ms()
        if not timeout_ms:
            return
        patience_us = group.settings.bounded_ms(timeout_ms) * 1_000

        def describe(topic: str = topic, wanted: Wanted = wanted, known: PartitionCount = known, first: int = first) -> Breach:
            return _of_topic(group, topic, wanted, known, first)

        at_us = max(newest.leader_synced_us + patience_us, known.since_us + group.settings.metadata_age_us)
        yield Due(at_us, topic, WARNING, describe)


def _of_topic(group: ClassicGroup, topic: str, wanted: Wanted, known: PartitionCount, first: int) -> Breach:
    """Describe that partitions of a topic, from one on, are in no assignment."""
    plan = group.assignments.plan
    leader = group.members.get(plan.leader) if plan is not None else None
    partitions = counted(known.partitions, "partition")
    missing = some([f"{topic}-{partition}" for partition in range(first, known.partitions)], _NAMED)
    by = _members(group, wanted.first, wanted.members) if wanted.first else counted(wanted.members, "member")
    led = ""
    if leader is not None:
        watches = "does not subscribe to it itself, and may not watch it" if wanted.first else "is among them"
        led = f" The leader, {who(leader)}, {watches}."
    breach = Breach(
        topic,
        f"No assignment of group {group.name} that was captured holds {missing}: what is written there is not read. {topic} has had "
        f"{partitions} since {clock(known.since_us)} at the latest, and is subscribed to by {by}.{led}",
        f"A Metadata response names {partitions} of {topic}; the newest assignment holds {first or 'none'}",
        (),
        generation=group.generation,
    )
    return breach if leader is None else breach._replace(**about(leader))

"""Family A, second part: what the members of one group subscribe to."""

from __future__ import annotations

from typing import Final

from coordinator_model.finding import Blame, Certainty, Severity
from coordinator_model.groups.classic.group import ClassicGroup
from coordinator_model.groups.classic.trackers.assignments import DifferentTopics
from coordinator_model.groups.evidence import response_evidence
from coordinator_model.rules.base import Breach, FrameRule, who
from coordinator_model.wording import plural, some

_NAMED: Final = 3  # topics and parts that a sentence names


def _different_topics(group: ClassicGroup, different: DifferentTopics) -> Breach:
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
    shown = some(topics, _NAMED, " and ")
    first = group.members.get(members[0])
    others = len(members) - 1
    by = who(first) if first is not None else f"member {members[0]}"
    return f"{shown} by {by}" + (f" and {others} {plural(others, 'other')}" if others else "")


A_13 = FrameRule(
    id="A-13",
    name="different topics in one group",
    severity=Severity.INFO,
    certainty=Certainty.CERTAIN,
    blame=Blame.CONFIG,
    meaning="Services that have nothing in common share a group id. Each restart of one is a rebalance of the other, and some leaders "
    "watch their own topics only, so that partitions that are added to the others' have no owner.",
    condition="In the member list of one generation there are members that have no subscribed topic in common, not even through others.",
    expected="Members of one group subscribe to the same topics.",
    action="Give each service a group id of its own. If they are to stay together: after partitions were added to a topic that the leader "
    "does not subscribe to, restart one member, so that they are assigned.",
    false_alarms="Applications that are built so: assignors allow it. Members that change their subscription one after the other.",
    checks={DifferentTopics: _different_topics},
    quiet_times=60,
)

RULES = (A_13,)

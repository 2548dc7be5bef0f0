"""Family R: rebalances that moved nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from coordinator_model.events import LEADER_REJOINED, SAME_TOPICS, SUBSCRIPTION_CHANGED
from coordinator_model.finding import CLIENT, CONFIG, HEURISTIC, INFO, WARNING
from coordinator_model.groups.classic.group import ClassicGroup
from coordinator_model.groups.classic.subscriptions import Rejoin
from coordinator_model.groups.rebalance import Rebalance
from coordinator_model.groups.records import Member
from coordinator_model.rules.base import Breach, Due, Matter, admission, captured, first_and_last, timer_rule, who
from coordinator_model.wire import CONSUMER, STREAMS_ASSIGNOR
from coordinator_model.wording import begin, clock, cost_so_far, counted, seconds

_REBALANCES = 3
_REJOINS = 3
_TOGETHER = 2  #: clients that lose a connection at once, which no single client explains
_ASKED: Final = frozenset({LEADER_REJOINED, SAME_TOPICS, SUBSCRIPTION_CHANGED})
_FAILURES: Final = ("fail", "error", "exception")
_METADATA: Final = "metadata"

_CHEAPER: Final = (
    " With the cooperative-sticky assignor, or the consumer protocol (KIP-848), members go on consuming meanwhile, and it costs next to "
    "nothing."
)


class Coincidence(NamedTuple):
    """What came with rebalances that moved nothing, and what to do about it."""

    words: str
    action: str


def _most(asked: Sequence[Rebalance], number: int) -> bool:
    return 2 * number > len(asked)


def _coincidence(row: Sequence[Rebalance]) -> Coincidence | None:
    """Return what most of the rebalances have in common that is no member's doing; None if there is nothing like that."""
    closed = sum(one.closed >= _TOGETHER for one in row)
    if _most(row, closed):
        return Coincidence(
            f"before {closed} of them connections of several clients had just ended",
            "Find out what ends connections: a broker that is restarted, a load balancer, a network that drops them. A consumer with "
            "client.rack also rebalances when the racks of its partitions change, as they do when a broker goes and comes back.",
        )
    reasons = Counter(one.reason for one in row if one.reason)
    if reasons:
        return _given_by_clients(row, *reasons.most_common(1)[0])
    causes = Counter(one.cause for one in row)
    if list(causes) == [LEADER_REJOINED]:
        return Coincidence(
            "each time the leader rejoined with an unchanged subscription, and gave no reason: leaders do so when the metadata of their "
            "topics changes",
            "See in the leader's log why it rejoined. Look for topics that are created, deleted or get partitions, for brokers that come "
            "and go, and for code that calls enforceRebalance().",
        )
    if len({one.client for one in row}) > 1 and len({one.identity.member_id for one in row}) > 1:
        return Coincidence(
            f"different members asked for them ({', '.join(f'{cause} {times}' for cause, times in causes.items())})",
            "Find out what happened to all of them at these times: topics that were changed, a configuration, a broker.",
        )
    return None


def _given_by_clients(row: Sequence[Rebalance], reason: str, times: int) -> Coincidence | None:
    """Return the reason that most rebalances have, unless it names a failure, which is a matter of that client."""
    if any(word in reason.lower() for word in _FAILURES) or not _most(row, times):
        return None
    if _METADATA in reason.lower():
        action = (
            "See which topics are created or deleted again and again, or get partitions, under a pattern that is too wide, and which "
            "brokers come and go: each changes the metadata for which the leader rejoins."
        )
    else:
        action = "Find in the client what makes it ask for rebalances with this reason, and let it ask less often."
    return Coincidence(f"the reason that clients gave, {times} times: “{reason}”", action)


def _cheaper(group: ClassicGroup) -> str:
    """Return how such rebalances come to cost less; nothing for clients that have an assignor of their own."""
    if group.protocol_type != CONSUMER or any(STREAMS_ASSIGNOR in member.protocols for member in group.present_members()):
        return ""
    return _CHEAPER


@timer_rule(
    "rebalances that move nothing",
    WARNING,
    HEURISTIC,
    CONFIG,
    matter=Matter.RECURRENCE,
    suppressed_by=("A-04", "R-10", "R-17", "R-27", "C-04", "C-05"),
    quiet_times=5,
)
def R_25(group: ClassicGroup) -> Iterator[Due]:
    """The group stops and starts again for nothing: after each rebalance the same members have the same partitions.

    Condition: Three rebalances in a row within 15 minutes after which each partition had the same holder and the members were the
        same, asked for by members that were served. Most of them came after connections of several clients had ended, or with the
        same reason of the clients (KIP-800), which is no failure; or the leader asked for all of them; or different members did.
        Only noted if no member stopped meanwhile.
    Expected: A rebalance follows a change of members or partitions.
    Action: Compare the times named with what happened outside the group: a proxy or load balancer that closes idle connections,
        restarts of brokers, changes of topics. Members only answer to it; restarting them does not help.
    False alarms: One member that asks each time by itself is R-07. Rebalances whose beginning was not captured do not count.
    """
    row = group.rebalances.no_ops
    if len(row) < _REBALANCES or any(one.cause not in _ASKED for one in row[-_REBALANCES:]):
        return
    coincidence = _coincidence(row)
    if coincidence is None:
        return
    first, last = row[0], row[-1]
    lost_us = sum(one.lost_us for one in row)

    def describe() -> Breach:
        return Breach(
            "",
            f"The last {len(row)} rebalances of group {group.name}, since {clock(first.began_us)}, "
            f"{seconds(last.over_us - first.began_us)}, moved nothing: each time {counted(last.size, 'member')} had the same "
            f"{counted(last.stayed, 'partition')} as before. That cost {lost_us / 1_000_000:.1f} member-seconds. What coincided: "
            f"{coincidence.words}.",
            f"{len(row)} generations with the same assignment, up to generation {last.generation}, begun by "
            f"{', '.join(dict.fromkeys(one.client for one in row))}",
            captured(*(one.frame for one in first_and_last(row))),
            generation=last.generation,
            action=coincidence.action + _cheaper(group),
        )

    periods_us = [later.began_us - earlier.began_us for earlier, later in pairwise(row)]
    yield Due(last.over_us, "", WARNING if lost_us else INFO, describe, period_us=2 * max(periods_us))


@timer_rule(
    "rejoins with nothing changed",
    WARNING,
    HEURISTIC,
    CLIENT,
    matter=Matter.RECURRENCE,
    quiet_times=5,
    suppressed_by=("A-04", "R-10", "R-26"),
)
def R_29(group: ClassicGroup) -> Iterator[Due]:
    """A member joins a settled group again and again although nothing changed: each time it gives up its partitions and gets the
    same ones, and reads nothing meanwhile.

    Condition: Three times within 15 minutes, five seconds or more apart, a JoinGroup of the member was answered at once with the
        generation in which it was already, which shows that its subscription is the same, and it got its assignment. It reads nothing
        from its JoinGroup on, or from its last commit, where it waited for the answer to that and joined at once.
    Expected: A member joins again when it is asked to, or when its subscription changed.
    Action: Upgrade the client library: librdkafka before 1.0 does so at refreshes of metadata in which topics come in another order.
    False alarms: An application that subscribes again to the same topics.
    """
    for member_id, known in group.recurring.subscriptions.rejoins.items():
        rejoins = [one for one in known if one.served_us]
        member = group.members.get(member_id)
        if len(rejoins) < _REJOINS or member is None or not member.present:
            continue
        longest_us = max(later.at_us - earlier.at_us for earlier, later in pairwise(rejoins))

        def describe(member: Member = member, rejoins: list[Rejoin] = rejoins, longest_us: int = longest_us) -> Breach:
            return Breach.of_member(
                member,
                f"{begin(who(member))} joined group {group.name} again {len(rejoins)} times since {clock(rejoins[0].at_us)}, the last time "
                f"at {clock(rejoins[-1].at_us)}, with nothing changed{_what_it_cost(rejoins, member.joined)}",
                f"{len(rejoins)} JoinGroups answered with generation {member.joined}, at most {seconds(longest_us)} apart",
                admission(member),
                generation=member.joined,
            )

        yield Due(rejoins[-1].served_us, member_id, WARNING, describe, period_us=2 * longest_us)


def _what_it_cost(rejoins: Sequence[Rejoin], generation: int | None) -> str:
    """Return what rejoins cost a member, as the end of a sentence and another; one that may keep its partitions need not stop."""
    if not all(one.stopped_us for one in rejoins):
        return f", and got the same in generation {generation}."
    idle_us = [one.idle_us for one in rejoins]
    return (
        f": it gave up its partitions each time, got the same in generation {generation}, and read nothing for up to "
        f"{seconds(max(idle_us))} each time.{cost_so_far(sum(idle_us))}"
    )

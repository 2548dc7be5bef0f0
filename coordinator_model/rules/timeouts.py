"""Family T: timeouts that cannot work together, as the cause of the evictions, ghosts and loops that follow from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from coordinator_model.finding import CLIENT, CONFIG, ERROR, HEURISTIC, WARNING
from coordinator_model.groups.classic.group import ClassicGroup
from coordinator_model.groups.classic.trackers.sessions import names_poll_timeout
from coordinator_model.groups.epochs.data import EpochGroupData
from coordinator_model.groups.recurring import CameBack, GivenUp, Overrun
from coordinator_model.rules.base import Breach, Due, Matter, captured, first_and_last, timer_rule
from coordinator_model.wording import clock, counted, seconds, some

_NAMED = 4
_APART_US = 1_000_000  #: connections that end closer together may have been ended by somebody else
_LEAST_WAIT_US = 1_000_000
_GIVE_UPS = 3
_ALIKE = 0.05  #: by which share the waits of one timeout may differ
_DROPS = 2
_OVERRUNS = 3


def _names(clients: Sequence[str]) -> str:
    return some(list(dict.fromkeys(clients)), _NAMED)


def _given_up(group: ClassicGroup) -> list[GivenUp]:
    """Return JoinGroups that clients gave up after the same time, and came again; of those whose connections ended together the first."""
    found = [one for one in group.recurring.given_up if one.again and _LEAST_WAIT_US <= one.waited_us < 1_000 * one.rebalance_ms]
    alike: list[GivenUp] = []
    for one in found:
        apart = not alike or one.closed_us - alike[-1].closed_us > _APART_US
        if apart and abs(one.waited_us - found[-1].waited_us) <= _ALIKE * found[-1].waited_us:
            alike.append(one)
    return alike


@timer_rule("request timeout below rebalance timeout", WARNING, HEURISTIC, CONFIG, matter=Matter.RECURRENCE, quiet_times=5)
def T_10(group: ClassicGroup) -> Iterator[Due]:
    """Clients hang up while the coordinator holds their JoinGroups, as it may for the rebalance timeout, and ask again: what they
    gave up becomes ghost members, and the group does not come to rest.

    Condition: Three times within 15 minutes and a second or more apart, twice of one client: the connection of a JoinGroup that
        waited ended after the same time, to five in a hundred, which was less than the rebalance timeout in it, and the same
        client, by client id and host, asked again. One that first looks for its coordinator on a new connection, as a process does
        that starts, counts only if it goes on under its member id: else M-13 does.
    Expected: A client waits for the answer to its JoinGroup at least as long as its rebalance timeout.
    Action: Raise the request timeout of these clients above their rebalance timeout.
    False alarms: Processes whose start was not captured, that are killed in the same moment of each rebalance.
    """
    alike = _given_up(group)
    if len(alike) < _GIVE_UPS or len({one.client for one in alike}) == len(alike):
        return
    newest = alike[-1]
    phase_us, session_us = 1_000 * max(one.rebalance_ms for one in alike), 1_000 * max(one.session_ms for one in alike)
    waited_us = [one.waited_us for one in alike]
    settled = not any(one.unnamed for one in alike)
    costs = (
        "Each time they connect anew, and an answer that comes in between is lost: connections.max.idle.ms, or a request timeout, is below "
        "their max.poll.interval.ms."
        if settled
        else "The coordinator does not notice, and takes what they gave up into the group: ghost members, whose partitions "
        f"nobody reads until their session ends, {seconds(session_us)}, after which all rejoin."
    )

    def describe() -> Breach:
        return Breach(
            "",
            f"Clients of group {group.name} give up their JoinGroups after {seconds(newest.waited_us)}, while a join phase may last "
            f"{seconds(phase_us)}: {len(alike)} times since {clock(alike[0].closed_us)} ({_names([one.client for one in alike])}), and "
            f"came again. {costs}",
            f"{len(alike)} connections ended {seconds(min(waited_us))} to {seconds(max(waited_us))} after their JoinGroup, which had no "
            "answer yet, and the same clients asked again",
            tuple(one.frame for one in first_and_last(alike)),
            generation=group.generation,
            action="Raise the request timeout of these clients, and connections.max.idle.ms, which closes a connection on which they wait, "
            f"above their rebalance timeout, {seconds(phase_us)}; if a load balancer is between, its idle timeout, too.",
        )

    yield Due(newest.closed_us, "", WARNING, describe, period_us=2 * session_us)


def _drops(group: ClassicGroup, phase_us: int) -> list[CameBack]:
    """Return members that were dropped at the end of a phase of that length, and were alive."""
    slack_us = group.settings.slack_us(phase_us // 1_000)
    return [one for one in group.recurring.unasked_drops.back if 0.8 * phase_us <= one.dropped.phase_us <= phase_us + slack_us]


@timer_rule("rebalance timeout below heartbeat interval", ERROR, HEURISTIC, CONFIG, matter=Matter.RECURRENCE, quiet_times=5)
def T_11(group: ClassicGroup) -> Iterator[Due]:
    """A join phase is over before the next heartbeat tells the others of it: they are dropped, join anew, and drop others.

    Condition: Twice within ten minutes a join phase that lasted its whole rebalance timeout dropped a member that no answer had
        told to rejoin, and that was refused when it next sent something; its client, by client id and host, then joined as a new
        member. The rebalance timeout of the members is below their session timeout.
    Expected: A rebalance timeout above the session timeout, and the session timeout above three heartbeat intervals.
    Action: Raise the rebalance timeout of all members above their session timeout.
    False alarms: Processes that pause for longer than such a short rebalance timeout.
    """
    if len(group.recurring.unasked_drops.back) < _DROPS:
        return
    timeout_ms, complete = group.rebalance_timeout_ms()
    sessions_ms = [member.session_timeout_ms or 0 for member in group.present_members()]
    if not complete or not sessions_ms or not 0 < timeout_ms < min(sessions_ms):
        return
    drops = _drops(group, 1_000 * timeout_ms)
    if len(drops) < _DROPS:
        return

    def describe() -> Breach:
        clients = _names([one.dropped.client for one in drops])
        return Breach(
            "",
            f"Members of group {group.name} are dropped before they can learn of a rebalance: {len(drops)} times since "
            f"{clock(drops[0].dropped.at_us)} ({clients}). A join phase lasts at most the rebalance timeout, "
            f"{seconds(1_000 * timeout_ms)}, and they send no heartbeat within that time, whose answer would tell them. Each comes back as "
            "a new member, and so begins the next rebalance.",
            f"{counted(len(drops), 'member')} dropped after {seconds(min(one.dropped.phase_us for one in drops))} or more without an "
            f"answer REBALANCE_IN_PROGRESS, whose clients joined again; sessions last {seconds(1_000 * min(sessions_ms))}",
            captured(*(one.frame for one in first_and_last(drops))),
            generation=group.generation,
            action="Raise the rebalance timeout of all members above their session timeout (max.poll.interval.ms of Java and librdkafka, "
            f"rebalanceTimeout of kafkajs, Consumer.Group.Rebalance.Timeout of sarama): {seconds(1_000 * timeout_ms)} is less than one "
            "heartbeat interval.",
        )

    yield Due(drops[-1].back_us, "", ERROR, describe, period_us=0)


def _timeout_ms(group: ClassicGroup | EpochGroupData, process: str) -> int:
    """Return the rebalance timeout of a process, which is its poll interval; 0 if it is not known."""
    for member in group.members.values():  # also one that has left and is not back yet
        if process in {member.actor.connection, member.id}:
            return member.rebalance_timeout_ms or 0
    return 0


def _exceeds(overruns: Sequence[Overrun], timeout_us: int) -> bool:
    """Return True if the last overruns are of the poll interval, each by nearly the same."""
    last = overruns[-_OVERRUNS:]
    if len(last) < _OVERRUNS or not timeout_us:
        return False
    gaps_us = [one.gap_us for one in last]
    named = all(names_poll_timeout(one.reason) for one in last)
    silent = all(not one.reason and one.gap_us <= timeout_us <= one.held_us for one in last)
    return (named or silent) and 5 * (max(gaps_us) - min(gaps_us)) <= timeout_us + max(gaps_us)


@timer_rule("poll interval always exceeded by the same", WARNING, HEURISTIC, CLIENT, matter=Matter.RECURRENCE, quiet_times=5)
def T_12(group: ClassicGroup | EpochGroupData) -> Iterator[Due]:
    """The application always takes longer between two polls than it may: it leaves and comes back for ever, and each is a
    rebalance.

    Condition: Three times in a row a client left for its poll timeout (KIP-800), or without a reason, later than its rebalance
        timeout after it had joined and for no longer than that; and the same process joined again, on the same connection, or in a
        group with epochs under the same id. What it took from poll to poll, the rebalance timeout and the time until it joined
        again, differed by a fifth at most.
    Expected: The application polls within max.poll.interval.ms.
    Action: Raise max.poll.interval.ms above what the application takes between two polls, or take fewer records with each.
    False alarms: Without a reason: an application that unsubscribes and subscribes again on purpose, and in a rhythm.
    """
    known = group.recurring.overruns
    found = []
    for process, overruns in known.of.items():
        timeout_us = 1_000 * _timeout_ms(group, process)
        if _exceeds(overruns, timeout_us):
            found.append((known.clients[process], overruns, timeout_us))
    if not found:
        return
    at_us = max(overruns[-1].left_us + overruns[-1].gap_us for _, overruns, _ in found)
    longest_us = max(timeout_us + one.gap_us for _, overruns, timeout_us in found for one in overruns)

    def describe() -> Breach:
        _, overruns, timeout_us = found[0]
        gaps_us = [one.gap_us for one in overruns]
        times = sum(len(overruns) for _, overruns, _ in found)
        who = f"{'Client' if len(found) == 1 else 'Clients'} {_names([client for client, _, _ in found])}"
        frames = captured(*(one.frame for _, overruns, _ in found for one in overruns[-_OVERRUNS:]))
        return Breach(
            "",
            f"{who} in group {group.name} exceed{'s' if len(found) == 1 else ''} the poll interval "
            f"of {seconds(timeout_us)} each time by nearly the same, {seconds(min(gaps_us))} to {seconds(max(gaps_us))}: {times} times "
            f"since {clock(min(overruns[0].left_us for _, overruns, _ in found))}. Each time the client leaves, comes back as soon as it "
            "is done, and the group rebalances twice.",
            f"{times} leaves, and joins of the same process after them; it takes {seconds(timeout_us + min(gaps_us))} or more from poll to "
            "poll",
            frames[:_NAMED],
            action=f"What is done between two polls takes up to {seconds(longest_us)}, always: raise max.poll.interval.ms well above that, "
            "or take fewer records with each poll (max.poll.records).",
        )

    longest_gap_us = max(one.held_us + one.gap_us for _, overruns, _ in found for one in overruns)
    yield Due(at_us, "", WARNING, describe, period_us=2 * longest_gap_us)

"""Family R: JoinGroups at a rate that only a loop has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from coordinator_model.events import NEW_MEMBER, NOT_SEEN
from coordinator_model.finding import CLIENT, ERROR, HEURISTIC, WARNING
from coordinator_model.groups.classic.group import ClassicGroup
from coordinator_model.groups.classic.hot_joins import WINDOW_US, Repeated
from coordinator_model.groups.rebalance import Rebalance
from coordinator_model.rules.base import Breach, Due, Matter, timer_rule
from coordinator_model.wire import error_name
from coordinator_model.wording import clock, counted, seconds

GENERATIONS = 15  #: within the window
_NEWCOMERS = 4  #: more of them explain so many generations
_LASTS_US = 30_000_000
_NAMED = 4


def _a_second(times: int, span_us: int) -> str:
    return f"{1_000_000 * times / max(span_us, 1):.1f} a second"


def _fast_rebalances(group: ClassicGroup) -> tuple[Rebalance, ...]:
    """Return the latest rebalances, if so many came so fast, and newcomers do not explain them."""
    latest = group.rebalances.completed[-GENERATIONS:]
    if len(latest) < GENERATIONS or latest[-1].completed_us - latest[0].completed_us > WINDOW_US:
        return ()
    newcomers: list[Rebalance] = []
    for one in latest:
        if one.starter.cause == NEW_MEMBER and not any(one.starter.is_same(known.starter) for known in newcomers):
            newcomers.append(one)
    return () if len(newcomers) > _NEWCOMERS else latest


def _of_group(group: ClassicGroup) -> Iterator[Due]:
    latest = _fast_rebalances(group)
    if not latest:
        return

    def describe() -> Breach:
        span_us = latest[-1].completed_us - latest[0].completed_us
        causes = Counter(one.starter.cause for one in latest)
        who = dict.fromkeys(one.starter.actor.client_id or one.starter.member_id for one in latest if one.starter.cause != NOT_SEEN)
        begun_by = f", begun by {', '.join(list(who)[:_NAMED])}" if who else ""
        frames = [one.starter.frame for one in (*latest[:2], *latest[-2:]) if one.starter.frame is not None]
        return Breach(
            "",
            f"Group {group.name} is in a hot loop: since {clock(latest[0].completed_us)} it rebalances "
            f"{_a_second(len(latest) - 1, span_us)}, and each of its {counted(sum(1 for _ in group.present_members()), 'member')} sends "
            "JoinGroups as often; nobody gets to work.",
            f"{len(latest)} generations in {seconds(span_us)}{begun_by}: "
            + ", ".join(f"{cause} ({times})" for cause, times in causes.most_common()),
            tuple(frames),
            generation=latest[-1].generation,
        )

    yield Due(latest[-1].completed_us, "", ERROR, describe, period_us=0)


def _of_connections(group: ClassicGroup) -> Iterator[Due]:
    hot = group.recurring.hot_joins.hot
    if not hot:
        return
    fastest = max(hot, key=lambda one: one.times)

    def describe() -> Breach:
        return Breach(
            "joins",
            f"{_clients(hot)} in a hot loop in group {group.name}: since {clock(fastest.since_us)}, "
            f"{_a_second(fastest.times - 1, fastest.last_us - fastest.since_us)}, JoinGroups that bring nothing new, the last answered "
            f"{error_name(fastest.error) if fastest.error else 'with the generation that it had'}.",
            f"{counted(fastest.times, 'JoinGroup')} on one connection in {seconds(fastest.last_us - fastest.since_us)} without a new "
            "generation",
            fastest.frames,
            generation=group.generation,
        )

    last_us = max(one.last_us for one in hot)
    severity = ERROR if fastest.last_us - fastest.since_us >= _LASTS_US else WARNING
    yield Due(last_us, "joins", severity, describe, last_us + 1_000 * group.settings.quiet_ms)


def _clients(hot: list[Repeated]) -> str:
    names = list(dict.fromkeys(one.client for one in hot))
    return f"Client {names[0]} is" if len(names) == 1 else f"Clients {', '.join(names[:_NAMED])} are"


@timer_rule(
    "hot loop of JoinGroups",
    ERROR,
    HEURISTIC,
    CLIENT,
    matter=Matter.RECURRENCE,
    suppressed_by=("R-07", "R-10", "R-17", "R-27", "M-14", "C-04", "C-05", "C-08"),
)
def R_26(group: ClassicGroup) -> Iterator[Due]:
    """Clients ask to join as fast as they are answered: the group does nothing else, and its coordinator is busy with it.

    Condition: Fifteen generations of a group that had members within five seconds, begun by no more than four different new
        members; or 20 JoinGroups of one connection within five seconds that were refused, or answered with the generation of the
        answer before (a warning, an error once it has lasted for 30 s). MEMBER_ID_REQUIRED, and answers of a coordinator that loads
        or moved, do not count.
    Expected: A client that is refused waits before it asks again (retry.backoff.ms), and one that is let in goes on to SyncGroup.
    Action: Read the log of the clients named for why they join again, and stop one to see whether the loop ends. An upgrade of the
        library may end it; a longer retry backoff makes it cheaper.
    False alarms: More than three membership changes a second of a group of few clients that restart all the time.
    """
    yield from _of_group(group)
    yield from _of_connections(group)

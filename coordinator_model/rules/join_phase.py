"""Family R: a join phase that does not end, and which members it waits for.

A healthy broker ends every phase at its timeout, so a delay beyond the timeout is the broker's fault. To help an operator, the member
that the others wait for is reported at half of it. The timeout is the largest among members of which some may be gone: exceeding it is
an error only if all of them are known.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from coordinator_model.finding import BROKER, CLIENT, CONFIRMED, ERROR, HEURISTIC, WARNING, Severity
from coordinator_model.groups.classic.group import ClassicGroup
from coordinator_model.groups.evidence import request_evidence
from coordinator_model.groups.records import Exchange, IssuedId, Member
from coordinator_model.rules.base import Breach, Due, Matter, about_one, timer_rule, who
from coordinator_model.rules.held_back import WHEN_HELD_BACK, held_back
from coordinator_model.wire.constants import JOIN_GROUP
from coordinator_model.wording import clock, plural, seconds, some

RESTART_THE_BROKER: Final = (
    "Keep the coordinator's log and a thread dump of it: it should have gone on by itself. If the group does not go on, restart that "
    "broker: another takes the group over, and all join anew."
)
"""What to do if a coordinator goes on holding requests for no reason that frames show."""
_WAKE_OR_RESTART: Final = (
    "Look at the processes of the members named. Take a thread dump of one that runs: what blocks its poll loop? Restart it if it hangs. "
    "One that died is waited for until its session ends."
)
_FIND_THE_CLIENTS: Final = (
    "Find the clients named: they asked for a member id and did not join with it, as one does that crashes or gives up at its start. The "
    "phase ends when these ids expire."
)


class WaitLimits(NamedTuple):
    """How long a join phase may last."""

    us: int
    known: bool  #: every member's rebalance timeout is known; otherwise ``us`` is twice the largest known
    bounded: bool  #: False if the timeout exceeds ``unbounded_join_ms``, and so means nothing

    @property
    def source(self) -> str:
        """Where the limit comes from, as text."""
        if not self.bounded:
            return "assumed since the members' own timeouts are longer"
        if self.known:
            return "the largest rebalance timeout of the members"
        return "guessed since not all rebalance timeouts are known"


def processed_since(group: ClassicGroup, waiting: Exchange) -> int | None:
    """Return since when the coordinator holds this open request, None while others of its connection precede it."""
    if waiting.effective_us < 0:
        return None
    if not waiting.queued_behind:
        return waiting.effective_us
    connection, number = waiting.key
    if any(other.key[0] == connection and other.key[1] < number for other in group.open.values()):
        return None
    line = group.connections.get(connection)
    return waiting.effective_us if line is None else max(waiting.effective_us, line.last_response_us)


def awaited_members(group: ClassicGroup) -> list[Member]:
    """Return the members that the join phase waits for: present, and without an open or abandoned JoinGroup."""
    return [
        member
        for member in group.present_members()
        if member.parked_join not in group.open
        and not (member.abandoned_request is not None and member.abandoned_request.api_key == JOIN_GROUP)
    ]


def wait_limits(group: ClassicGroup) -> WaitLimits:
    """Return how long a join phase may last now, and how well that is known."""
    timeout_ms, complete = group.rebalance_timeout_ms()
    newest, settings = group.newest_generation, group.settings
    if newest is not None:
        # The phase's timer was set from the members then, of which some may be gone. Brokers before 3.3.2 keep the timeout of the first
        # process that held an instance id (KAFKA-14009).
        held = {member.instance_id for member in group.present_members() if member.instance_id is not None}
        for member in group.members.values():
            if member.removed is None or member.removed_us >= newest.proven_us or member.instance_id in held:
                timeout_ms = max(timeout_ms, member.rebalance_timeout_ms or 0)
    if timeout_ms > settings.unbounded_join_ms:
        return WaitLimits(settings.unbounded_join_ms * 1_000, known=False, bounded=False)
    timeout_ms = max(timeout_ms, settings.group_initial_rebalance_delay_ms)
    return WaitLimits(timeout_ms * (1_000 if complete else 2_000), known=complete, bounded=True)


def stalls(member: Member, group: ClassicGroup) -> bool:
    """Return True if R-08 reports this member: it sends Heartbeats and does not rejoin."""
    if member.rejoin_asked_us is None:
        return False
    return member.rejoin_asked_last_us - member.rejoin_asked_us > wait_limits(group).us // 2


def blocking_ids(group: ClassicGroup) -> Iterator[tuple[str, IssuedId, int, Exchange]]:
    """Yield the issued and unused ids for which alone a join phase waits: id, issue, since when, a JoinGroup that waits for it."""
    newest = group.newest_generation
    waiting = list(group.waiting_joins())
    if not group.issued or newest is None or newest.roster is None or not waiting or awaited_members(group):
        return
    if not any(member.present for member in (group.members.get(id_) for id_ in newest.roster) if member is not None):
        return  # a phase that begins in an empty group lasts for its initial delay in any case
    last_us = max(one.effective_us for one in waiting)
    named = {one.member_id for one in group.open.values() if one.api_key == JOIN_GROUP}
    for id_, issued in group.issued.items():
        if id_ not in named:
            yield id_, issued, max(last_us, issued.issued_us), waiting[0]


@timer_rule("join phase overdue", ERROR, CONFIRMED, CLIENT, matter=Matter.REQUEST, suppressed_by=("C-04", "C-05", "C-13", "G-12"))
def R_01(group: ClassicGroup) -> Iterator[Due]:
    """The whole group is idle: everybody has stopped consuming and waits for the join phase to end.

    Condition: A JoinGroup waits for longer than half of the largest rebalance timeout of the members, plus 2 s and a tenth
        (warning: it names who is missing), or for longer than all of it (error: the coordinator should have ended the phase).
    Expected: The coordinator ends the join phase when every member has rejoined, at the latest after the largest rebalance timeout.
    Action: It depends on what the phase waits for, and is said with each finding: for members, for ids that nobody used, or for the
        coordinator alone.
    False alarms: When not every member's rebalance timeout was seen, twice the largest known is taken and it stays a heuristic
        warning. A rebalance timeout beyond ten minutes counts as ten, and gives a warning only.
    """
    waiting = [(since, one) for one in group.waiting_joins() if (since := processed_since(group, one)) is not None]
    if not waiting:
        return
    since_us = min(since for since, _ in waiting)
    patience = wait_limits(group)
    slack_us = group.settings.slack_us(patience.us // 1_000)
    missing = awaited_members(group)

    def describe(severity: Severity, at_us: int) -> Breach:
        return _join_breach(group, sorted(waiting, key=_by_age), missing, patience, severity, at_us=at_us)

    stalled = missing and all(stalls(member, group) for member in missing)
    if not stalled and not any(blocking_ids(group)):  # else reports it
        warn_us = patience.us // 2 if patience.bounded else patience.us
        warned_us = since_us + warn_us + slack_us
        yield Due(warned_us, "", WARNING, lambda: describe(WARNING, warned_us))
    if patience.known:
        over_us = since_us + patience.us + slack_us
        yield Due(over_us, "", ERROR, lambda: describe(ERROR, over_us))


def _by_age(waiting: tuple[int, Exchange]) -> tuple[int, int]:
    since_us, exchange = waiting
    return since_us, exchange.offset


def _join_breach(
    group: ClassicGroup,
    waiting: list[tuple[int, Exchange]],
    missing: list[Member],
    patience: WaitLimits,
    severity: Severity,
    *,
    at_us: int,
) -> Breach:
    held = list(map(held_back(group, at_us), missing))
    all_held = bool(held) and all(held)
    if missing:
        named = [f"{who(member)}, {why}" if why else who(member) for member, why in zip(missing, held, strict=True)]
        blocked, action = f"for {some(named, 5)}", WHEN_HELD_BACK if all_held else _WAKE_OR_RESTART
    elif group.issued:
        issued = ", ".join(f"{id_} (client {pending.actor.client_id})" for id_, pending in list(group.issued.items())[:3])
        blocked, action = f"although every known member has asked; ids issued and not used: {issued}", _FIND_THE_CLIENTS
    else:
        blocked, action = "although every known member has asked", RESTART_THE_BROKER
    overdue = severity is ERROR
    limit = "should have ended after" if overdue else "may last"
    count, (since_us, oldest) = len(waiting), waiting[0]
    wait = "request waits," if count == 1 else "requests wait, the first"
    return Breach(
        "",
        f"Group {group.name} is in a join phase that {limit} {seconds(patience.us)}, {patience.source}: {count} JoinGroup {wait} since "
        f"{clock(since_us)}, {blocked}.",
        f"{count} unanswered JoinGroup {plural(count, 'request')}, the oldest since before "
        f"{'the timeout' if overdue else 'half time'}",
        (request_evidence(oldest),),
        generation=group.generation,
        blame=CLIENT if (missing or group.issued) and not (overdue or all_held) else BROKER,
        certainty=None if patience.known else HEURISTIC,
        action=RESTART_THE_BROKER if overdue else action,
        **({} if all_held else about_one(missing)),
    )

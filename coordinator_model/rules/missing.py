"""Family T: a group that has fewer members than usual, or none, since some went and nobody took their place.

How a member went tells whether somebody has to look. One that left and closed its connection was stopped: a deployment, an autoscaler, the
end of a job. One that left and keeps its connection lives, and most likely stopped polling. One that did not leave died or froze.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from coordinator_model.finding import CLIENT, CONFIRMED, ERROR, HEURISTIC, INFO, OPERATOR, WARNING, Blame
from coordinator_model.groups.classic.model import ClassicGroupModel
from coordinator_model.groups.epochs.model import EpochGroup
from coordinator_model.groups.group import GroupModel
from coordinator_model.groups.records import Member, Removed
from coordinator_model.groups.usual import ADOPTED_US, Gone
from coordinator_model.rules.base import Breach, Due, timer_rule, whom
from coordinator_model.rules.departures import closes_without_leaving
from coordinator_model.wording import clock, counted, plural, seconds, some

_NAMED: Final = 3
_DIED: Final = "Find out why that process ended (exit code, memory limit, node, deployment), and start it again."
_FROZE: Final = (
    "Look whether that process runs: a suspended process or machine and a lost network look like this. Restart it if it does not "
    "go on."
)
_NOT_POLLED: Final = (
    "Take a thread dump of the poll loop of that process: it most likely hangs in the processing of what it polled last. Restart it, and "
    "process fewer records per poll, or raise max.poll.interval.ms."
)
_LEFT: Final = "If it was stopped on purpose, nothing. Else read in its log why it closed its consumer, and start it again."
_REMOVED: Final = "Ask who removed it. Its process goes on only if it joins again."
_NOT_BACK: Final = "Read in the log of that process why it does not join again, and restart it."


class _Way(NamedTuple):
    """How a member went."""

    words: str
    action: str
    is_orderly: bool


def _how(group: GroupModel[Any], gone: Gone) -> _Way:
    member = group.members.get(gone.member_id)
    why = gone.why if member is None or member.removed is None or gone.why in {Removed.LEFT, Removed.REMOVED} else member.removed
    closed_us = 0 if member is None or gone.actor.connection in group.connections else member.disconnected_us
    is_open = not closed_us and group.facts.captures_ends(group.cluster, group.broker)
    stayed = is_open or closed_us - gone.stopped_us >= group.settings.missing_ms * 1_000
    went = clock(gone.stopped_us)
    if why == Removed.REMOVED:
        return _Way(f"was removed by somebody else at {went}", _REMOVED, is_orderly=True)
    if why == Removed.LEFT and stayed and gone.was_member_us >= gone.rebalance_timeout_ms * 1_000 > 0:
        interval = f"max.poll.interval.ms, {seconds(gone.rebalance_timeout_ms * 1_000)}"
        words = f"left at {went} and kept its connection: its application has most likely not polled for {interval}"
        return _Way(words, _NOT_POLLED, is_orderly=False)
    if why == Removed.LEFT:
        return _Way(f"left by itself at {went}" + (" and kept its connection" if stayed else ""), _LEFT, is_orderly=True)
    if why not in {Removed.SILENT, Removed.NOT_BACK, Removed.DROPPED}:
        return _Way(f"was refused at {went} and has not joined again", _NOT_BACK, is_orderly=False)
    if closed_us and isinstance(member, Member) and closes_without_leaving(member):
        return _Way(f"closed at {clock(closed_us)} without leaving, as Kafka Streams does", _LEFT, is_orderly=True)
    if closed_us:
        return _Way(f"died at {clock(closed_us)}: its connection closed without a LeaveGroup", _DIED, is_orderly=False)
    if is_open:
        return _Way(f"froze or was cut off at {went}: its connection is open, and nothing comes from it", _FROZE, is_orderly=False)
    return _Way(f"fell silent at {went} without leaving", _DIED, is_orderly=False)


def _named(group: GroupModel[Any], gone: Gone) -> str:
    return f"member {gone.member_id} {whom(gone.actor)} {_how(group, gone).words}"


def _what_became(group: GroupModel[Any], missing: Sequence[Gone]) -> str:
    """Return what the missing members held and who holds it now, as sentences; empty if it is not known."""
    held = {(topic, number) for gone in missing for topic, numbers in (gone.held or {}).items() for number in numbers}
    count = sum(gone.held_count for gone in missing)
    if not count:
        return ""
    names = some([f"{topic}-{number}" for topic, number in sorted(held)], _NAMED)
    pronoun = "It" if len(missing) == 1 else "They"
    holders = group.holders_of(held)
    if holders is None:
        return f" {pronoun} held {counted(count, 'partition')} ({names})."
    by = f"now read by {some(holders, _NAMED)}" if holders else "read by nobody"
    return f" {pronoun} held {counted(count, 'partition')} ({names}), {by}."


@timer_rule(
    "members missing",
    WARNING,
    CONFIRMED,
    CLIENT,
    suppressed_by=("C-13", "M-01", "M-13", "M-14", "R-18", "R-24", "T-05", "T-12"),
)
def T_13(group: ClassicGroupModel | EpochGroup) -> Iterator[Due]:
    """The group has fewer members than usual, or none: some went, and nobody took their place.

    Condition: The group had a number of members for a minute or longer, some of them went, and for 45 s (missing_ms) after that is
        certain there are fewer. An error if none is left, info if all that went left by themselves, for which 60 s (left_ms) have
        to pass. A member that left keeps its connection open and was a member for longer than its
        max.poll.interval.ms: its application has most likely stopped polling. It is silent at a number at which the group has
        stayed three times before, for five minutes in all.
    Expected: A member that goes comes back, or another takes its place.
    Action: Start it again, or find out why it does not come back.
    False alarms: A group that was made smaller on purpose by killing its members: six hours later the smaller number is the usual
        one. What is missing after a gap in the capture is not known.
    """
    if not group.usual.gone:
        return
    present = [member.id for member in group.present_members()]
    missing = group.usual.missing(present)
    if not missing or group.usual.is_usual(len(present)):
        return
    lost = group.coordinator_changes.lost if group.coordinator_changes.is_away else None
    if lost is not None and lost.searching:
        return  # C-14
    together = lost is not None and group.coordinator_changes.lost_with_others(group)
    settings = group.settings
    ways = {gone.member_id: _how(group, gone) for gone in missing}
    worst = [gone for gone in missing if not ways[gone.member_id].is_orderly]
    patience_us = (settings.missing_ms if worst else settings.left_ms) * 1_000
    last = max(worst or missing, key=lambda gone: gone.known_us)
    due_us = last.known_us + patience_us
    severity = INFO if not worst else WARNING if present else ERROR
    blame: Blame = CLIENT if worst else OPERATOR

    def describe() -> Breach:
        number, count = group.usual.number, len(present)
        first = min(missing, key=lambda gone: gone.stopped_us)
        names = some([_named(group, gone) for gone in missing], _NAMED, "; ", "; and ")
        begin = (
            f"Group {group.name} has {counted(count, 'member')} instead of {number} since {clock(first.stopped_us)}"
            if present
            else f"Nobody reads for group {group.name} since {clock(last.stopped_us)}: its {counted(number, 'member')} "
            f"{'is' if number == 1 else 'are'} gone"
        )
        one = last if len(missing) == 1 else None
        return Breach(
            "",
            f"{begin}: {names}. Nobody took {'its' if len(missing) == 1 else 'their'} place for {seconds(due_us - last.stopped_us)}."
            f"{_what_became(group, missing)}{f' Unless they ended all at once, broker {group.broker} is gone.' if together else ''}",
            f"{counted(len(missing), 'member')} missing, {count} {plural(count, 'is', 'are')} left",
            (),
            actor=one and one.actor,
            member_id=one and one.member_id,
            instance_id=one and one.instance_id,
            generation=group.generation,
            certainty=HEURISTIC if together or any(gone.why == Removed.LEFT for gone in worst) else None,
            blame=blame,
            action=ways[last.member_id].action,
        )

    yield Due(due_us, "", severity, describe, until_us=due_us + ADOPTED_US if present else None)

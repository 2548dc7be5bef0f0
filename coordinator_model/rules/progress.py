"""Family O: groups whose offsets do not move.

No frame of the group shows where a partition ends, so one that stands still may have no records. It stands out only beside others of its
topic that moved at a like pace and go on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from coordinator_model.finding import CLIENT, HEURISTIC, INFO, WARNING
from coordinator_model.groups.classic.model import ClassicGroupModel
from coordinator_model.groups.committed_offsets import Partition
from coordinator_model.groups.epochs.model import EpochGroup
from coordinator_model.groups.epochs.records import EpochMember
from coordinator_model.groups.group import Group, GroupModel
from coordinator_model.groups.records import Member
from coordinator_model.rules.base import Breach, Due, timer_rule, who
from coordinator_model.wording import begin, clock, counted, plural, seconds, some

_NAMED: Final = 3
_NEVER_US: Final = 600_000_000


def stuck_text(group: Group[Any], client: str) -> str:
    """Return which partitions a client held each time it went, whose offsets have not moved, as the end of a sentence; else nothing."""
    stuck = group.usual.stuck.get(client)
    if stuck is None or stuck.times < 2:
        return ""
    names = some([f"{topic}-{number}, whose offset stays at {offset}" for topic, number, offset in stuck.offsets], _NAMED, "; ")
    return f" Each of the last {stuck.times} times it held {names}: most likely it cannot process the record there."


@timer_rule("never commits", INFO, HEURISTIC, CLIENT)
def O_14(group: ClassicGroupModel | EpochGroup) -> Iterator[Due]:
    """The group has had partitions for long and has never committed: a restart begins where auto.offset.reset says.

    Condition: For ten minutes after a member was answered that the group has no offset, no commit of the group was accepted, and it
        has members.
    Expected: Commits, by the client (enable.auto.commit) or by the application.
    Action: If the application keeps its positions elsewhere, nothing. Else let it commit what it has processed.
    False alarms: A topic without any record: most clients commit nothing then.
    """
    none_us = group.committed_offsets.none_us
    if not none_us:
        return
    members = [member for member in group.present_members() if member.actor.connection in group.connections]
    if not members:
        return

    def describe() -> Breach:
        beat = f"{counted(len(members), 'member')} {plural(len(members), 'heartbeats', 'heartbeat')}"
        return Breach(
            "",
            f"Group {group.name} has had partitions since {clock(none_us)}, {seconds(_NEVER_US)}, and has committed no offset; "
            f"{beat}. A restart begins where auto.offset.reset says.",
            "OffsetFetch answered with no offset, and no OffsetCommit since",
            (),
            generation=group.generation,
        )

    yield Due(none_us + _NEVER_US, "", INFO, describe)


class _Standing(NamedTuple):
    """Partitions of one member that stand still while others of their topics go on."""

    since_s: int  #: when the last of them moved
    due_s: int
    partitions: list[tuple[Partition, int]]  #: each with its offset
    beside: int  #: partitions of the same topics that go on
    moves_others: bool  #: the member moves others that it holds


def _holds_since_us(member: Member | EpochMember) -> int:
    """Return since when a member has had what it holds."""
    return member.synced_us if isinstance(member, Member) else max(member.granted_us, *member.joins, 0)


def _standing(group: GroupModel[Any], member: Member | EpochMember) -> _Standing | None:
    """Return what stands still of a member's partitions, None if nothing does."""
    holder, held_s = member.instance_id or member.id, -(-_holds_since_us(member) // 1_000_000)
    still: list[tuple[Partition, int]] = []
    since_s, until_s, beside, moves_others = 0, 0, 0, False
    for topic, known in group.committed_offsets.stood.items():
        paced = {number: stand for number, stand in known.items() if stand.has_pace}
        own = {number for number in paced if holder in (group.holders_of({(topic, number)}) or ())}
        for number in own:
            still_s = max(paced[number].moved_s, held_s)
            due_s = still_s + paced[number].patience_s
            others = [stand for one, stand in paced.items() if one != number and (one not in own or stand.moved_s >= due_s)]
            go_on = sum(stand.moved_s >= due_s and stand.run_s <= still_s for stand in others)
            if go_on and 2 * go_on >= len(others):
                still.append(((topic, number), paced[number].offset))
                since_s, until_s = max(since_s, still_s), max(until_s, due_s)
                beside = max(beside, go_on)
            else:
                moves_others = True
    return _Standing(since_s, until_s, still, beside, moves_others) if still else None


@timer_rule("partitions stand still", WARNING, HEURISTIC, CLIENT, suppressed_by=("C-13", "O-01", "O-09", "R-18", "T-13"))
def O_15(group: ClassicGroupModel | EpochGroup) -> Iterator[Due]:
    """A member heartbeats and no longer moves the offsets of partitions that it holds, while others of the same topics go on.

    Condition: A partition moved ten times or more, and then not for 20 times as long as between two such commits, at least for a
        minute; after that time others of the topic moved, at least half of those that have a pace. A note if the member moves
        others of its partitions.
    Expected: Partitions of one topic that move at a like pace.
    Action: Take a thread dump of the process named: it hangs in a record, or waits for another system. Compare the end of the
        partitions named with the offsets named.
    False alarms: A partition for which no records come any more, while others of its topic get some. Records in transactions that
        the application commits elsewhere.
    """
    if group.committed_offsets.kept <= 1:
        return  # one stands out beside another
    for member in group.present_members():
        found = _standing(group, member) if member.actor.connection in group.connections else None
        if found is None:
            continue

        def describe(member: Any = member, found: _Standing = found) -> Breach:
            names = some([f"{topic}-{number} at {offset}" for (topic, number), offset in found.partitions], _NAMED)
            return Breach.of_member(
                member,
                f"{begin(who(member))} heartbeats and has moved no offset of {counted(len(found.partitions), 'partition')} of group "
                f"{group.name} since {clock(found.since_s * 1_000_000)}, {seconds((found.due_s - found.since_s) * 1_000_000)}: {names}. "
                f"{counted(found.beside, 'other')} of the same topic {'goes' if found.beside == 1 else 'go'} on.",
                f"no OffsetCommit beyond {names}",
                (),
                generation=group.generation,
            )

        yield Due(found.due_s * 1_000_000, member.id, INFO if found.moves_others else WARNING, describe)

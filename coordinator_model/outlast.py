"""When a quiet group falls due, if nothing but what it repeats is heard of it: each heartbeat puts off the end of a session.

A group falls due when the first of its members' sessions would end, and nothing comes of it as long as they go on. So whoever has a
stretch of heartbeats at hand need not stop there.

The trap: what is due next must be what it would be if the group had been looked at each time it was due: with what had been heard by then.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from coordinator_model.groups.classic import ClassicGroup
from coordinator_model.groups.facts import Member
from coordinator_model.pulse import Run
from coordinator_model.rules.sessions import heard_us, session_end_us


def due_behind(group: ClassicGroup, runs: Iterable[Run], due_us: int, until_us: int) -> int | None:
    """When a group falls due next, behind ``until_us``, of which nothing else is due but sessions' ends.

    :param runs: all that is heard of it until then, in a stretch of records that are in the order of their times.
    :param due_us: when it falls due first.
    :return: None if that cannot be told, or something would come of it.
    """
    said: dict[str, list[Run]] = {}
    for run in runs:
        said.setdefault(run.told.member_id, []).append(run)
    speakers = [group.members.get(id_) for id_ in said]
    if any(member is None or not member.present or member.orphan is not None for member in speakers):
        return None
    while due_us <= until_us:
        next_us = _next_due(group, said, due_us)
        if next_us is None:
            return None
        due_us = next_us
    return due_us


def _next_due(group: ClassicGroup, said: dict[str, list[Run]], due_us: int) -> int | None:
    """Likewise, behind ``due_us``."""
    looked_us = 0  # by then the group is looked at, with the next record of whomever
    known_us: dict[str, int] = {}
    for member_id, runs in said.items():
        for run in runs:
            asked, answered = bisect_left(run.asked_us, due_us), bisect_left(run.answered_us, due_us)
            if asked != answered:
                return None  # something is under way then
            if asked < len(run.asked_us):
                looked_us = min(looked_us or run.asked_us[asked], run.asked_us[asked])
            if asked:
                newest_us = run.asked_us[asked - 1] if run.commits is not None else run.answered_us[asked - 1]
                known_us[member_id] = max(known_us.get(member_id, 0), newest_us)
    ends_us = [end_us for member in group.members.values() if (end_us := _end_us(group, member, known_us)) is not None]
    forgotten_us = group.last_record_us + group.settings.forget_group_ms * 1_000
    if not looked_us or not ends_us or not looked_us < min(ends_us) <= forgotten_us:
        return None
    return min(ends_us)


def _end_us(group: ClassicGroup, member: Member, known_us: dict[str, int]) -> int | None:
    return session_end_us(group, member, max(heard_us(member), known_us.get(member.id, 0)))

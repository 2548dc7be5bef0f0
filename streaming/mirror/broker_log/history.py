"""The story of groups as their coordinators tell it in the broker's log, in the events that frames would give.

What no line says is null: which member rejoined when, who was told to, which partitions moved. No rule speaks: these lines are what the
coordinator thinks of its members, and show neither requests nor answers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from coordinator_model.finding import iso_utc
from coordinator_model.group_event import GroupEvent
from coordinator_model.groups.classic.data import CLASSIC
from coordinator_model.groups.classic.rebalance_events import NEXT_REBALANCE, SIGHT_LOST
from coordinator_model.groups.classic.trackers.rebalance_causes import (
    LEADER_REJOINED,
    MEMBER_LEFT,
    NEW_MEMBER,
    SESSION_EXPIRED,
    STATIC_RETURNED,
)
from coordinator_model.groups.rebalance_recorder import NO_MEMBERS, NOTHING_TOLD, SERVED

if TYPE_CHECKING:
    from collections.abc import Callable

    from streaming.mirror.broker_log.coordinator_lines import CoordinatorLine

SOURCE: Final = "broker log"
LOG_ENDED: Final = "the log ends before"
NOT_SAID: Final = "the log does not say when"

_NO_REASON: Final = frozenset({"", "not provided", "null"})
_NO_INSTANCE: Final = frozenset({"None", "null"})
_CAUSES: Final = (
    (re.compile(r"Adding new member (?P<member>.+) with group instance ?id (?P<instance>.+)"), NEW_MEMBER),
    (
        re.compile(
            r"[Rr]emoving member (?P<member>.+) on LeaveGroup|explicit `LeaveGroup` request for \((?P<members>.+)\) members"
        ),
        MEMBER_LEFT,
    ),
    (re.compile(r"removing member (?P<member>.+) on heartbeat expiration"), SESSION_EXPIRED),
    (re.compile(r"[Ll]eader (?P<member>.+) re-joining group during Stable"), LEADER_REJOINED),
    (re.compile(r"Updating metadata for (?:static )?member (?P<member>.+?) (?:with|during)"), STATIC_RETURNED),
    (re.compile(r"Removing \[(?P<member>[^,\]]+).*\] on pending sync request expiration"), "no SyncGroup in time"),
)


@dataclass(slots=True)
class _Rebalance:
    began_us: int
    cause: str
    member: str | None
    from_generation: int | None
    stabilized_us: int = 0
    generation: int | None = None
    members: int = 0


@dataclass(slots=True)
class _Group:
    type: str = CLASSIC
    generation: int | None = None
    members: dict[str, str | None] = field(default_factory=dict)  # id → instance id
    rebalance: _Rebalance | None = None
    newest: tuple[str, str | None] = ("", None)  # why an epoch may rise, and whose doing it is


class CoordinatorHistory:
    """Makes events of the lines of a log, which are to be taken in the order of time.

    :param happened: called with each event.
    """

    def __init__(self, happened: Callable[[GroupEvent], None], cluster: str = "") -> None:
        self.lines = 0
        self.groups: dict[str, _Group] = {}
        self.first_us = self.last_us = 0
        self._happened = happened
        self._cluster = cluster
        self._takes: dict[str, Callable[[_Group, CoordinatorLine], None]] = {
            "began": self._began,
            "stabilized": self._stabilized,
            "assigned": self._assigned,
            "failed": self._failed,
            "left": self._left,
            "joined": self._joined,
            "replaced": self._replaced,
            "empty": self._empty,
            "unloaded": self._unloaded,
            "epoch joined": self._epoch_joined,
            "epoch left": self._epoch_left,
            "epoch fenced": self._epoch_fenced,
            "bumped": self._bumped,
            "targeted": self._targeted,
        }

    def take(self, line: CoordinatorLine) -> None:
        """Take the next line."""
        self.lines += 1
        self.first_us = self.first_us or line.at_us
        self.last_us = max(self.last_us, line.at_us)
        group = self.groups.setdefault(line.group, _Group())
        self._takes[line.kind](group, line)

    def finish(self) -> None:
        """The log has ended."""
        for name, group in self.groups.items():
            if group.rebalance is not None:
                self._finished(name, group, self.last_us, LOG_ENDED, took=False)

    # --- classic groups ------------------------------------------------------------------------------------------------

    def _began(self, group: _Group, line: CoordinatorLine) -> None:
        if group.rebalance is not None:
            self._finished(line.group, group, line.at_us, NEXT_REBALANCE)
        group.generation = _generation(line)
        cause, member, instance = _cause_of(line.facts["reason"])
        is_told = member in group.members
        if member is not None and cause == NEW_MEMBER:
            group.members[member] = instance
            if not is_told:  # up to 3.9 the line of a dynamic member is at DEBUG
                self._add(line, group, "member_joined", member, new=True)
        group.rebalance = _Rebalance(line.at_us, cause, member, group.generation)
        reason = _reason(line.facts.get("client_reason"))
        self._add(line, group, "rebalance_began", member, cause=cause, reason=reason, from_generation=group.generation)

    def _stabilized(self, group: _Group, line: CoordinatorLine) -> None:
        current = group.rebalance
        group.generation = _generation(line)
        if current is None:
            return
        current.stabilized_us, current.generation = line.at_us, group.generation
        current.members = int(line.facts.get("members", len(group.members)))  # up to 2.7 it is not said
        self._add(line, group, "phase_ended", phase="join", took_ms=_ms(current.began_us, line.at_us))

    def _assigned(self, group: _Group, line: CoordinatorLine) -> None:
        current = group.rebalance
        if current is None or not current.stabilized_us:
            return
        self._add(line, group, "phase_ended", phase="sync", took_ms=_ms(current.stabilized_us, line.at_us))
        self._finished(line.group, group, line.at_us, SERVED)

    def _joined(self, group: _Group, line: CoordinatorLine) -> None:
        member = line.facts["member"]
        group.members[member] = line.facts.get("instance")
        self._add(line, group, "member_joined", member, new=True)

    def _replaced(self, group: _Group, line: CoordinatorLine) -> None:
        """A static member came back; only 2.7 says its new id."""
        group.members.pop(line.facts["member"], None)
        if "new_member" in line.facts:
            group.members[line.facts["new_member"]] = line.facts["instance"]
        self._add(line, group, "member_fenced", line.facts["member"], error="FENCED_INSTANCE_ID", api=None)

    def _left(self, group: _Group, line: CoordinatorLine) -> None:
        self._add(line, group, "member_left", line.facts["member"], reason=_reason(line.facts.get("client_reason")))
        group.members.pop(line.facts["member"], None)
        group.newest = ("left", line.facts["member"])

    def _failed(self, group: _Group, line: CoordinatorLine) -> None:
        self._add(line, group, "session_over", line.facts["member"], silent_since=None)
        group.members.pop(line.facts["member"], None)

    def _empty(self, group: _Group, line: CoordinatorLine) -> None:
        group.generation = _generation(line)
        group.members.clear()
        if group.rebalance is not None:
            group.rebalance.generation, group.rebalance.members = group.generation, 0
            self._finished(line.group, group, line.at_us, NO_MEMBERS)

    def _unloaded(self, group: _Group, line: CoordinatorLine) -> None:
        if group.rebalance is not None:
            self._finished(line.group, group, line.at_us, SIGHT_LOST, took=False)
        self._add(line, group, "sight_lost", reason="the coordinator gave the group away, or stopped")

    # --- groups whose members have epochs ------------------------------------------------------------------------------

    def _epoch_joined(self, group: _Group, line: CoordinatorLine) -> None:
        group.type = line.facts["type"]
        group.newest = ("joined", line.facts["member"])
        self._joined(group, line)

    def _epoch_left(self, group: _Group, line: CoordinatorLine) -> None:
        group.type = line.facts["type"]
        self._left(group, line)

    def _epoch_fenced(self, group: _Group, line: CoordinatorLine) -> None:
        group.type = group.type if group.type != CLASSIC else "consumer"
        group.newest = ("fenced", line.facts["member"])
        if line.ends_session:
            self._failed(group, line)
        else:
            self._add(line, group, "member_fenced", line.facts["member"], error=line.facts["reason"], api=None)
            group.members.pop(line.facts["member"], None)

    def _bumped(self, group: _Group, line: CoordinatorLine) -> None:
        if group.rebalance is not None:
            self._finished(line.group, group, line.at_us, NOT_SAID, took=False)
        group.type = group.type if group.type != CLASSIC else "consumer"
        before, group.generation = group.generation, _generation(line)
        (cause, member), group.newest = group.newest, ("", None)
        group.rebalance = _Rebalance(line.at_us, cause or "not seen", member, before, generation=group.generation)
        self._add(line, group, "rebalance_began", member, cause=cause or "not seen", reason=None, from_generation=before)

    def _targeted(self, group: _Group, line: CoordinatorLine) -> None:
        """The members come to the assignment one by one, which no line tells."""
        if group.rebalance is not None:
            group.rebalance.members = len(group.members)
            self._finished(line.group, group, line.at_us, NOT_SAID, took=False)

    # --- events --------------------------------------------------------------------------------------------------------

    def _finished(self, name: str, group: _Group, at_us: int, ended: str, *, took: bool = True) -> None:
        current, group.rebalance = group.rebalance, None
        assert current is not None
        stabilized_us = current.stabilized_us
        known = list(group.members)[: current.members]
        ids = [*known, *[None] * (current.members - len(known))]
        self._happened(
            GroupEvent(
                "rebalance_finished",
                at_us,
                self._cluster,
                name,
                group.type,
                0,
                current.generation if current.generation is not None else current.from_generation,
                (current.began_us,),
                {
                    "cause": current.cause,
                    **_member(group, current.member),
                    "from_generation": current.from_generation,
                    "to_generation": current.generation,
                    "began_at": iso_utc(current.began_us),
                    "join_ms": _ms(current.began_us, stabilized_us) if stabilized_us else None,
                    "sync_ms": _ms(stabilized_us, at_us) if stabilized_us and ended == SERVED else None,
                    "took_ms": _ms(current.began_us, at_us) if took else None,
                    "members": [{**_member(group, id_), **_UNKNOWN_TIMES, **NOTHING_TOLD.as_json()} for id_ in ids],
                    "last_member": None,
                    "cost_member_seconds": None,
                    "ended": ended,
                    "partitions_moved": None,
                    "partitions_stayed": None,
                    "unheld": None,
                    "never_came_back": [],
                    "waited_for": [],
                    "assignor": None,
                    "source": SOURCE,
                },
            )
        )

    def _add(self, line: CoordinatorLine, group: _Group, kind: str, member: str | None = None, **details: Any) -> None:
        of_member = {} if kind in ("phase_ended", "sight_lost") else _member(group, member, line.facts)
        self._happened(
            GroupEvent(
                *(kind, line.at_us, self._cluster, line.group, group.type, 0, group.generation),
                (line.at_us, member or "", self.lines),
                {**of_member, **details, "source": SOURCE},
            )
        )


_UNKNOWN_TIMES: Final = {"told_at": None, "joined_at": None, "served_at": None, "stopped_at": None, "new": False}


def _member(group: _Group, member: str | None, facts: dict[str, str] | None = None) -> dict[str, Any]:
    """The four fields of a member, as far as lines have named it."""
    said = facts or {}
    instance = said.get("instance") or (group.members.get(member) if member else None)
    return {
        "member_id": member,
        "instance_id": None if instance in _NO_INSTANCE else instance,
        "client_id": said.get("client_id"),
        "client_address": said.get("host"),
    }


def _cause_of(reason: str) -> tuple[str, str | None, str | None]:
    """Cause in the words of events, and member and instance id of who began it; a reason of other words is its own cause."""
    for pattern, cause in _CAUSES:
        found = pattern.search(reason)
        if found is not None:
            said = found.groupdict()
            instance = (said.get("instance") or "").removeprefix("Some(").removesuffix(")")
            return cause, said.get("member") or said.get("members"), None if instance in ("", *_NO_INSTANCE) else instance
    return reason, None, None


def _reason(text: str | None) -> str | None:
    return None if text is None or text.strip() in _NO_REASON else text.strip()


def _generation(line: CoordinatorLine) -> int:
    return int(line.facts["generation"])


def _ms(from_us: int, to_us: int) -> int:
    return (to_us - from_us) // 1_000

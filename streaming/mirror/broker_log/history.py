"""The history of groups as their coordinators write it into the broker's log, in the events that frames would give.

What no line says is null: which member rejoined when, who was asked to, which partitions moved. No rule applies: these lines are what the
coordinator thinks of its members, and show neither requests nor answers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any, Final

from coordinator_model import events
from coordinator_model.groups.classic.data import CLASSIC

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streaming.mirror.broker_log.coordinator_lines import CoordinatorLine

SOURCE: Final = "broker log"
LOG_ENDED: Final = "the log ends before"
NOT_LOGGED: Final = "the log does not say when"
LOADED: Final = "a coordinator loaded the group"
METADATA_UPDATED: Final = "member updated its metadata"
"""A member rejoined with another subscription or other partitions; up to 2.5 a leader that rejoined, too."""

_HELD_AT_LEAST: Final = 100_000  # lines
_NO_REASON: Final = frozenset({"", "not provided", "null"})
_NO_INSTANCE: Final = frozenset({"None", "null"})
_OF_GROUP: Final = frozenset({events.PhaseEnded, events.GroupEmptied, events.SightLost, events.SightRegained})
_CAUSES: Final = (
    (re.compile(r"Adding new member (?P<member>.+?)(?: with group instance ?id (?P<instance>.+))?$"), events.NEW_MEMBER),
    (
        re.compile(
            r"[Rr]emoving member (?P<member>.+) on LeaveGroup|explicit `LeaveGroup` request for \((?P<members>.+)\) members"
        ),
        events.MEMBER_LEFT,
    ),
    (re.compile(r"removing member (?P<member>.+) on heartbeat expiration"), events.SESSION_EXPIRED),
    (re.compile(r"[Ll]eader (?P<member>.+) re-joining group during Stable"), events.LEADER_REJOINED),
    (
        re.compile(r"static member (?P<member>.+) with instance id (?P<instance>.+?)(?: joined with change of protocol)?$"),
        events.STATIC_RETURNED,
    ),
    (re.compile(r"Updating metadata for member (?P<member>.+?)(?: during \w+)?$"), METADATA_UPDATED),
    (re.compile(r"Removing (?:\w*Set\(|\[)(?P<member>[^,\])]+).* on pending sync request expiration"), "no SyncGroup in time"),
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
    lost: list[str] = field(default_factory=list)  # who ceased to be a member without leaving, since the last rebalance
    fenced: set[str] = field(default_factory=set)  # ids that were refused in this generation


class CoordinatorHistory:
    """Makes events of the lines of logs, in the order of time and of each line once: files may have been put together in another order.

    :param happened: called with each event.
    """

    def __init__(self, happened: Callable[[events.GroupEvent], None], cluster: str = "") -> None:
        self.lines = 0  #: how many were given
        self.groups: dict[str, _Group] = {}
        self.first_us = self.last_us = 0
        self._told = 0  # how many were
        self._held: list[tuple[int, int, CoordinatorLine]] = []
        self._of_one_time: list[CoordinatorLine] = []  # the newest lines
        self._happened = happened
        self._cluster = cluster
        self._takes: dict[str, Callable[[_Group, CoordinatorLine], None]] = {
            "began": self._began,
            "stabilized": self._stabilized,
            "assigned": self._assigned,
            "failed": self._failed,
            "dropped": self._dropped,
            "fenced": self._fenced,
            "left": self._left,
            "joined": self._joined,
            "replaced": self._replaced,
            "empty": self._empty,
            "loaded": self._loaded,
            "unloaded": self._unloaded,
            "converted": lambda _group, _line: None,  # its new type is taken of any line
            "epoch joined": self._joined,
            "epoch replaced": self._replaced,
            "epoch away": self._epoch_away,
            "epoch left": self._left,
            "epoch fenced": self._epoch_fenced,
            "bumped": self._bumped,
            "targeted": self._targeted,
        }

    def take(self, line: CoordinatorLine) -> None:
        """Take the next line. It is held back for older ones."""
        self.lines += 1
        heappush(self._held, (line.at_us, self.lines, line))
        if len(self._held) > _HELD_AT_LEAST:
            self._tell(heappop(self._held)[-1])

    def _tell(self, line: CoordinatorLine) -> None:
        if line in self._of_one_time:
            return
        self._of_one_time = [one for one in self._of_one_time if one.at_us == line.at_us] + [line]
        self._told += 1
        self.first_us = self.first_us or line.at_us
        self.last_us = max(self.last_us, line.at_us)
        name = line.group or self._group_of(line.facts["member"])
        if name:
            group = self.groups.setdefault(name, _Group())
            group.type = line.facts.get("type", group.type)
            self._takes[line.kind](group, line._replace(group=name))

    def finish(self) -> None:
        """The log has ended."""
        while self._held:
            self._tell(heappop(self._held)[-1])
        for name, group in self.groups.items():
            if group.rebalance is not None:
                self._finished(name, group, self.last_us, LOG_ENDED, took=False)

    def _group_of(self, member: str) -> str:
        return next((name for name, group in self.groups.items() if member in group.members), "")

    # --- classic groups ------------------------------------------------------------------------------------------------

    def _began(self, group: _Group, line: CoordinatorLine) -> None:
        if group.rebalance is not None:
            self._finished(line.group, group, line.at_us, events.NEXT_REBALANCE)
        group.generation = _generation(line)
        cause, member, instance = _cause_of(line.facts.get("reason"), group.lost)
        is_known = member in group.members
        if member is not None and cause in (events.NEW_MEMBER, events.STATIC_RETURNED):
            group.members[member] = instance
            if not is_known and cause == events.NEW_MEMBER:  # up to 3.9 the line of a dynamic member is at DEBUG
                self._add(line, group, events.MemberJoined, member, new=True)
        if member in group.members and cause == events.MEMBER_LEFT:  # up to 2.1 it has no line of its own
            self._add(line, group, events.MemberLeft, member, reason=None)
            del group.members[member]
        group.rebalance = _Rebalance(line.at_us, cause, member, group.generation)
        reason = _reason(line.facts.get("client_reason"))
        self._add(line, group, events.RebalanceBegan, member, cause=cause, reason=reason, from_generation=group.generation)

    def _stabilized(self, group: _Group, line: CoordinatorLine) -> None:
        current = group.rebalance
        group.generation = _generation(line)
        group.fenced.clear()
        if current is None:
            return
        current.stabilized_us, current.generation = line.at_us, group.generation
        current.members = int(line.facts.get("members", len(group.members)))  # up to 2.7 it is not said
        self._add(line, group, events.PhaseEnded, phase="join", took_ms=_ms(current.began_us, line.at_us))

    def _assigned(self, group: _Group, line: CoordinatorLine) -> None:
        current = group.rebalance
        if current is None or not current.stabilized_us:
            return
        self._add(line, group, events.PhaseEnded, phase="sync", took_ms=_ms(current.stabilized_us, line.at_us))
        self._finished(line.group, group, line.at_us, events.SERVED)

    def _joined(self, group: _Group, line: CoordinatorLine) -> None:
        member = line.facts["member"]
        is_known = member in group.members  # from 2.5 to 2.8 a static member has two lines
        group.members[member] = line.facts.get("instance", group.members.get(member))
        group.newest = ("joined", member)
        if not is_known:
            self._add(line, group, events.MemberJoined, member, new=True)

    def _replaced(self, group: _Group, line: CoordinatorLine) -> None:
        """A static member came back; since 3.0 its new id is not said."""
        new = line.facts.get("new_member")
        self._add(line, group, events.MemberReplaced, line.facts["member"], replaced_by=new)
        group.members.pop(line.facts["member"], None)
        if new is not None:
            group.members[new] = line.facts["instance"]
            group.newest = ("joined", new)

    def _fenced(self, group: _Group, line: CoordinatorLine) -> None:
        """Who goes on with the id that a static member had before; written once a generation, as of frames."""
        refused = line.facts["refused"]
        if refused not in group.fenced:
            group.fenced.add(refused)
            api = "".join(word.capitalize() for word in line.facts.get("operation", "").split("-"))
            self._add(line, group, events.MemberFenced, refused, error="FENCED_INSTANCE_ID", api=api or None)

    def _left(self, group: _Group, line: CoordinatorLine) -> None:
        self._add(line, group, events.MemberLeft, line.facts["member"], reason=_reason(line.facts.get("client_reason")))
        group.members.pop(line.facts["member"], None)
        group.newest = ("left", line.facts["member"])

    def _failed(self, group: _Group, line: CoordinatorLine) -> None:
        self._add(line, group, events.SessionOver, line.facts["member"], silent_since_us=0)
        self._lose(group, line.facts["member"])

    def _dropped(self, group: _Group, line: CoordinatorLine) -> None:
        for member in line.facts["members"].split(", "):
            self._add(line, group, events.MemberDropped, member)
            self._lose(group, member)

    def _lose(self, group: _Group, member: str) -> None:
        group.members.pop(member, None)
        group.lost.append(member)

    def _empty(self, group: _Group, line: CoordinatorLine) -> None:
        group.generation = _generation(line)
        group.members.clear()
        if group.rebalance is not None:
            group.rebalance.generation, group.rebalance.members = group.generation, 0
            self._finished(line.group, group, line.at_us, events.NO_MEMBERS)
        else:
            self._add(line, group, events.GroupEmptied)

    def _unloaded(self, group: _Group, line: CoordinatorLine) -> None:
        if group.rebalance is not None:
            self._finished(line.group, group, line.at_us, events.MEMBERS_UNKNOWN, took=False)
        self._add(line, group, events.SightLost, reason="the coordinator gave the group away, or stopped")

    def _loaded(self, group: _Group, line: CoordinatorLine) -> None:
        """A coordinator knows the group again. Of a group without an earlier line this is no news."""
        if group.rebalance is not None:
            self._finished(line.group, group, line.at_us, events.MEMBERS_UNKNOWN, took=False)
        if group.generation is not None:
            self._add(line, group, events.SightRegained, reason=LOADED)
        group.generation = int(line.facts["generation"]) if "generation" in line.facts else group.generation

    # --- groups whose members have epochs ------------------------------------------------------------------------------

    def _epoch_away(self, group: _Group, line: CoordinatorLine) -> None:
        self._add(line, group, events.MemberAway, line.facts["member"])

    def _epoch_fenced(self, group: _Group, line: CoordinatorLine) -> None:
        group.type = group.type if group.type != CLASSIC else "consumer"
        group.newest = ("fenced", line.facts["member"])
        if line.ends_session:
            self._failed(group, line)
        else:
            self._add(line, group, events.MemberFenced, line.facts["member"], error=line.facts["reason"], api=None)
            group.members.pop(line.facts["member"], None)

    def _bumped(self, group: _Group, line: CoordinatorLine) -> None:
        if group.rebalance is not None:
            self._finished(line.group, group, line.at_us, NOT_LOGGED, took=False)
        group.type = group.type if group.type != CLASSIC else "consumer"
        before, group.generation = group.generation, _generation(line)
        (cause, member), group.newest = group.newest, ("", None)
        group.rebalance = _Rebalance(line.at_us, cause or "not seen", member, before, generation=group.generation)
        self._add(line, group, events.RebalanceBegan, member, cause=cause or "not seen", reason=None, from_generation=before)

    def _targeted(self, group: _Group, line: CoordinatorLine) -> None:
        """The members come to the assignment one by one, without a line."""
        if group.rebalance is not None:
            group.rebalance.members = len(group.members)
            self._finished(line.group, group, line.at_us, NOT_LOGGED, took=False)

    # --- events --------------------------------------------------------------------------------------------------------

    def _finished(self, name: str, group: _Group, at_us: int, ended: str, *, took: bool = True) -> None:
        current, group.rebalance = group.rebalance, None
        assert current is not None
        stabilized_us = current.stabilized_us
        known = list(group.members)[: current.members]
        ids = [*known, *[None] * (current.members - len(known))]
        lost, group.lost = group.lost, []
        self._happened(
            events.RebalanceFinished.of(
                (current.began_us,),
                at_us=at_us,
                cluster=self._cluster,
                group=name,
                group_type=group.type,
                incarnation=0,
                generation=current.generation if current.generation is not None else current.from_generation,
                frame=None,
                source=SOURCE,
                cause=current.cause,
                **_member(group, current.member),
                from_generation=current.from_generation,
                to_generation=current.generation,
                began_us=current.began_us,
                join_ms=_ms(current.began_us, stabilized_us) if stabilized_us else None,
                sync_ms=_ms(stabilized_us, at_us) if stabilized_us and ended == events.SERVED else None,
                took_ms=_ms(current.began_us, at_us) if took else None,
                members=tuple(_took_part(group, id_) for id_ in ids),
                last_member=None,
                cost_us=None,
                ended=ended,
                partitions_moved=None,
                partitions_stayed=None,
                unheld=None,
                never_came_back=tuple(_took_part(group, id_) for id_ in lost),
                waited_for=(),
                assignor=None,
            )
        )

    def _add(
        self, line: CoordinatorLine, group: _Group, kind: type[events.GroupEvent], member: str | None = None, **own: Any
    ) -> None:
        of_member = {} if kind in _OF_GROUP else _member(group, member, line.facts)
        self._happened(
            kind.of(
                (line.at_us, member or "", self._told),
                at_us=line.at_us,
                cluster=self._cluster,
                group=line.group,
                group_type=group.type,
                incarnation=0,
                generation=group.generation,
                frame=None,
                source=SOURCE,
                **of_member,
                **own,
            )
        )


def _took_part(group: _Group, member: str | None) -> events.TookPart:
    return events.TookPart(
        **_member(group, member),
        told_us=0,
        joined_us=0,
        served_us=0,
        stopped_us=0,
        new=False,
        session_timeout_ms=None,
        rebalance_timeout_ms=None,
        assignors=(),
        client_software=None,
    )


def _member(group: _Group, member: str | None, facts: dict[str, str] | None = None) -> dict[str, Any]:
    """The four fields of a member, as far as lines have named it."""
    fields = facts or {}
    instance = fields.get("instance") or (group.members.get(member) if member else None)
    return {
        "member_id": member,
        "instance_id": None if instance in _NO_INSTANCE else instance,
        "client_id": fields.get("client_id"),
        "client_address": fields.get("host"),
    }


def _cause_of(reason: str | None, lost: Sequence[str]) -> tuple[str, str | None, str | None]:
    """Cause in the words of events, and member and instance id of who began it; a reason of other words is its own cause.

    :param reason: None of 2.0, which gives none.
    :param lost: members that failed since the last rebalance.
    """
    if reason is None:
        return (events.SESSION_EXPIRED, lost[-1], None) if lost else (events.NOT_SEEN, None, None)
    for pattern, cause in _CAUSES:
        found = pattern.search(reason)
        if found is not None:
            fields = found.groupdict()
            instance = (fields.get("instance") or "").removeprefix("Some(").removesuffix(")")
            return cause, fields.get("member") or fields.get("members"), None if instance in ("", *_NO_INSTANCE) else instance
    return reason, None, None


def _reason(text: str | None) -> str | None:
    return None if text is None or text.strip() in _NO_REASON else text.strip()


def _generation(line: CoordinatorLine) -> int:
    return int(line.facts["generation"])


def _ms(from_us: int, to_us: int) -> int:
    return (to_us - from_us) // 1_000

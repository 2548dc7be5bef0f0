"""What is usual in a group, learned from its own past: how many members it has, which of them are missing, how soon they come back.

The number of members that a group has for a minute (``usual_ms``) is its usual one. A deployment adds a spare member for less than that, or
takes one away until its successor joins. A smaller number at which the group has stayed before is usual, too: an autoscaler's, or that of
a job which comes and goes. Restarts take as long as they took before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from coordinator_model.events import GroupEvent, MemberJoined, RebalanceFinished
from coordinator_model.groups.evidence import client_of, client_text
from coordinator_model.groups.records import AnyMember, ByTopic, ClientInfo, Removed, by_topic
from coordinator_model.stored import Stored

UNKNOWN: Final = -1
ADOPTED_US: Final = 21_600_000_000  #: a smaller number that lasts as long becomes the usual one
GONE_KEPT: Final = 32
SIZES_KEPT: Final = 16
CLIENTS_KEPT: Final = 8
STUCK_US: Final = 900_000_000  #: a client that goes again later than that is not stuck
HELD_KEPT: Final = 64  #: partitions of a member that went
RETURNS_KEPT: Final = 8
LONGEST_RETURN_US: Final = 300_000_000  #: a restart takes less
_TIMES: Final = 3
_LASTS_US: Final = 300_000_000


class Gone(NamedTuple):
    """A member that went."""

    member_id: str
    instance_id: str | None
    actor: ClientInfo
    why: Removed
    stopped_us: int  #: when it stopped consuming, as far as frames and its connection show
    known_us: int  #: since when it is certainly none
    was_member_us: int = 0  #: for how long after its last join; 0 if that was not seen
    rebalance_timeout_ms: int = 0  #: its own; 0 if it was not seen
    held: ByTopic | None = None  #: the first partitions that it held; None if they are not known
    held_count: int = 0
    by: ClientInfo | None = None  #: who removed it, if that was captured

    @classmethod
    def of(
        cls,
        member: AnyMember,
        why: Removed,
        *,
        stopped_us: int,
        known_us: int,
        was_member_us: int,
        held: Mapping[str, Iterable[int]] | None,
    ) -> Gone:
        """Return the record of a member that went, with what it held."""
        partitions = (
            None if held is None else [(topic, number) for topic, numbers in sorted(held.items()) for number in sorted(numbers)]
        )
        return cls(
            member.id,
            member.instance_id,
            member.actor,
            why,
            stopped_us,
            known_us,
            was_member_us,
            member.rebalance_timeout_ms or 0,
            None if partitions is None else by_topic(partitions[:HELD_KEPT]),
            0 if partitions is None else len(partitions),
        )


class Stuck(NamedTuple):
    """A client that went again and again, and the offsets at which partitions that it held stood each time."""

    times: int
    last_us: int
    offsets: tuple[tuple[str, int, int], ...]  #: topic, partition, offset


class Stay(NamedTuple):
    """How often, and for how long in all, a group had a number of members for long enough to be a usual one."""

    times: int
    us: int


class Usual(Stored):
    """The usual number of members of one group, and those that went and were not replaced."""

    number: int = 0  #: of members; 0 if it is not known
    size: int = UNKNOWN  #: number of members after the last rebalance
    since_us: int = 0  #: since when; 0 while it changes. With an unknown size, since when the group has been followed
    gone: tuple[Gone, ...] = ()  #: since it last had the usual number, in the order in which they went
    stays: dict[int, Stay] = {}  #: by number of members
    stuck: dict[str, Stuck] = {}  #: by client
    empty_us: tuple[int, int] = (0, 0)  #: since when, and until when, it last had no member; 0 if that is not known
    returns_us: tuple[int, ...] = ()  #: for how long the last members that came back, or were replaced, had been away

    @property
    def return_us(self) -> int:
        """For how long a member that goes is away at most, as a rule: half as long again as two of the last were; 0 if not known."""
        return sorted(self.returns_us)[-2] * 3 // 2 if len(self.returns_us) > 1 else 0

    def on_event(self, event: GroupEvent, stays_us: int) -> None:
        """Note what happened in the group.

        :param stays_us: a number of members that lasts as long is a usual one.
        """
        match event:
            case MemberJoined(new=True):
                self._came(client_of(event), event.at_us)
            case RebalanceFinished() if event.members and event.to_generation is not None:
                if self.since_us and len(event.members) < self.size:
                    return  # who went, and when it stopped, is noted next
                self._end_stay(event.at_us, stays_us)
                if self.empty_us[0] and not self.empty_us[1]:
                    self.empty_us = self.empty_us[0], event.began_us
                self.size, self.since_us = len(event.members), event.at_us
                if self.size >= self.number:
                    for one in self.gone:
                        self._note_return(event.began_us - one.stopped_us)
                    self.gone = ()

    def went(self, gone: Gone, left: int, stays_us: int, offset_of: Callable[[str, int], int | None]) -> None:
        """Note a member that went.

        :param left: how many members are left.
        :param stays_us: as for :meth:`on_event`.
        :param offset_of: returns where the group stands in a partition; None if that is not known.
        """
        self._note_stuck(gone, offset_of)
        if gone.why == Removed.REPLACED:
            return  # another process took its place at once
        if self.size == UNKNOWN:
            self.size = left + 1
        self._end_stay(gone.stopped_us, stays_us)
        self.gone = (*(known for known in self.gone if known.member_id != gone.member_id), gone)[-GONE_KEPT:]
        self.size, self.since_us = left, gone.known_us
        if not left:
            self.since_us = gone.stopped_us
            self.empty_us = gone.stopped_us, 0

    def removed_by(self, member_id: str, actor: ClientInfo) -> None:
        """Note who removed a member that went, unless it left by itself."""
        self.gone = tuple(
            one._replace(by=actor) if one.member_id == member_id and one.why == Removed.REMOVED else one for one in self.gone
        )

    def on_gap(self, at_us: int) -> None:
        """Drop what may have changed unseen. At which numbers the group has stayed remains."""
        self.number, self.size, self.since_us, self.gone = 0, UNKNOWN, at_us, ()

    def number_at(self, at_us: int, stays_us: int) -> int:
        """Return the usual number of members at a time; 0 if it is not known."""
        return max(self.number, self.size) if self.since_us and at_us - self.since_us >= stays_us else self.number

    def is_usual(self, size: int) -> bool:
        """Return True if the group has stayed at this number of members, or at a smaller one, often and long enough."""
        stays = [stay for known, stay in self.stays.items() if known <= size]
        return sum(stay.times for stay in stays) >= _TIMES and sum(stay.us for stay in stays) >= _LASTS_US

    def _came(self, client: str, at_us: int) -> None:
        """Note a new member: the oldest one of its client that went has come back."""
        back = next((one for one in self.gone if client_text(one.actor) == client), None)
        if back is not None:
            self._note_return(at_us - back.stopped_us)
            self.gone = tuple(one for one in self.gone if one is not back)

    def _note_return(self, away_us: int) -> None:
        if 0 < away_us <= LONGEST_RETURN_US:
            self.returns_us = (*self.returns_us, away_us)[-RETURNS_KEPT:]

    def _note_stuck(self, gone: Gone, offset_of: Callable[[str, int], int | None]) -> None:
        """Keep the partitions whose offset has not moved from one departure of a client to the next."""
        client = client_text(gone.actor)
        held = [(topic, number) for topic, numbers in (gone.held or {}).items() for number in numbers]
        offsets = {(*each, offset) for each in held if (offset := offset_of(*each)) is not None}
        before = self.stuck.pop(client, None)
        if before is not None and gone.stopped_us - before.last_us <= STUCK_US and offsets & set(before.offsets):
            self.stuck[client] = Stuck(before.times + 1, gone.stopped_us, tuple(sorted(offsets & set(before.offsets))))
        elif offsets:
            self.stuck[client] = Stuck(1, gone.stopped_us, tuple(sorted(offsets)))
        if len(self.stuck) > CLIENTS_KEPT:
            del self.stuck[next(iter(self.stuck))]

    def _end_stay(self, at_us: int, stays_us: int) -> None:
        lasted_us = at_us - self.since_us
        if self.since_us and lasted_us >= stays_us:
            before = self.stays.pop(self.size, Stay(0, 0))
            self.stays[self.size] = Stay(before.times + 1, before.us + lasted_us)
            if len(self.stays) > SIZES_KEPT:
                del self.stays[next(iter(self.stays))]
            if lasted_us >= ADOPTED_US and self.size:
                self.number, self.gone = self.size, ()
            self.number = max(self.number, self.size)
        self.since_us = 0

"""One rebalance from its beginning to its end, and what it cost.

*An eager consumer stops before it sends its JoinGroup*, and a cooperative one goes on with what it keeps. The subscription in the JoinGroup
shows which it is: an eager consumer owns nothing by then. The client's own time of stopping is on no wire; its JoinGroup is the latest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

from coordinator_model.finding import iso_utc
from coordinator_model.groups.classic.assignment_checks import Partitions
from coordinator_model.groups.records import ClientInfo

PARTITIONS_KEPT: Final = 10_000
"""Of a group; of one with more it is not known which were held by nobody."""

TopicPartition: TypeAlias = tuple[str, int]


class Identity(NamedTuple):
    """Who a member is, as far as frames show."""

    member_id: str
    instance_id: str | None
    client_id: str | None
    address: str

    @classmethod
    def of(cls, member_id: str, instance_id: str | None, actor: ClientInfo) -> Identity:
        return cls(member_id, instance_id, actor.client_id, actor.address)

    @property
    def holder(self) -> str:
        """Return the name under which its partitions are kept: a static member keeps them under a new member id."""
        return self.member_id if self.instance_id is None else self.instance_id

    def as_json(self) -> dict[str, Any]:
        return {
            "member_id": self.member_id or None,
            "instance_id": self.instance_id,
            "client_id": self.client_id,
            "client_address": self.address or None,
        }


@dataclass(slots=True)
class MemberProgress:
    """One member in one rebalance; a time is 0 if it was not seen."""

    identity: Identity
    told_us: int = 0  #: first REBALANCE_IN_PROGRESS
    joined_us: int = 0  #: capture time of its JoinGroup request
    stopped_us: int = 0  #: since then it consumes nothing; 0 if it never did stop
    synced_us: int = 0  #: capture time of its SyncGroup request
    served_us: int = 0  #: capture time of its SyncGroup success
    partitions: Partitions | None = None  #: its assignment; None if it cannot be read
    acknowledged_us: int = 0  #: of a member with an epoch: capture time of its last request that gave partitions up
    resumed_us: int = 0  #: of a member with an epoch: when it got partitions again; it may be served more of them later
    is_new: bool = False  #: it joined as a new member, and did not rejoin

    def as_json(self) -> dict[str, Any]:
        return {
            **self.identity.as_json(),
            "told_at": iso_or_none(self.told_us),
            "joined_at": iso_or_none(self.joined_us),
            "served_at": iso_or_none(self.served_us),
            "stopped_at": iso_or_none(self.stopped_us),
            "new": self.is_new,
        }


class Awaited(NamedTuple):
    """A member, or an id that was issued, without which a rebalance goes no further."""

    identity: Identity
    why: str
    since_us: int  #: others wait for it from then on, if there are any
    gone_us: int = 0  #: when it ceased to be a member, or its id timed out; 0 if it did not


@dataclass(slots=True)
class OpenRebalance:
    """A rebalance that is not over."""

    cause: str
    identity: Identity  #: of the client that began it; without a member id if that is not known
    subject: tuple[str | int, ...]  #: the frame or the member that showed its beginning
    from_generation: int | None
    began_us: int
    incarnation: int
    generation: int | None = None  #: None in its join phase
    completed_us: int = 0  #: end of its join phase
    synced_us: int = 0  #: end of its sync phase: first SyncGroup success
    members: dict[str, MemberProgress] = field(default_factory=dict)
    awaited: dict[str, Awaited] = field(default_factory=dict)  #: by member id: without whom it goes no further

    def __post_init__(self) -> None:
        self.awaited = {id_: Awaited(*values) for id_, values in self.awaited.items()}  # a snapshot stores plain tuples

    def note_gone(self, member_id: str, at_us: int) -> None:
        """Note when a member ceased to be one, 0 if it did not after all."""
        if member_id in self.awaited:
            self.awaited[member_id] = self.awaited[member_id]._replace(gone_us=at_us)

    def progress_of(self, identity: Identity) -> MemberProgress:
        """Return what is known of a member in this rebalance; create it if needed."""
        progress = self.members.get(identity.member_id)
        if progress is None:
            progress = self.members[identity.member_id] = MemberProgress(identity)
        return progress

    def as_json(self, members: Iterable[MemberProgress], ended_us: int) -> dict[str, Any]:
        """Return the fields of ``rebalance_finished`` except those about partitions.

        :param members: those that took part.
        """
        took_part = sorted(members, key=lambda one: (one.joined_us or ended_us, one.identity.member_id))
        joined = [one for one in took_part if one.joined_us]
        return {
            "cause": self.cause,
            **self.identity.as_json(),
            "from_generation": self.from_generation,
            "to_generation": self.generation,
            "began_at": iso_utc(self.began_us),
            "join_ms": milliseconds(self.began_us, self.completed_us),
            "sync_ms": milliseconds(self.completed_us, self.synced_us),
            "took_ms": milliseconds(self.began_us, ended_us),
            "members": [one.as_json() for one in took_part],
            "last_member": joined[-1].identity.member_id if joined else None,
            "cost_member_seconds": seconds(sum(idle_us(one, ended_us) for one in took_part)),
        }


class Moves(NamedTuple):
    """What a rebalance did to the partitions of a group."""

    moved: int  #: with another holder than before, including none
    stayed: int
    unheld_us: dict[TopicPartition, int]  #: for how long nobody held a partition; without those that were always held
    left: tuple[tuple[str, int, int], ...]  #: topic, partition and end of the rebalance, for those that nobody holds after it


def moves(
    before: Mapping[str, Partitions],
    after: Mapping[str, Partitions],
    members: Mapping[str, MemberProgress],
    *,
    gone_us: Mapping[str, int],
    unheld: Iterable[tuple[str, int, int]],
    ended_us: int,
) -> Moves:
    """Return what happened to the partitions of a group in a rebalance that ended at ``ended_us``.

    :param before: holder → partitions; so is ``after``.
    :param members: by holder.
    :param gone_us: holder → when it ceased to be a member.
    :param unheld: topic, partition and since when nobody has held it, from earlier rebalances.
    """
    old, new = dict(_holders(before)), dict(_holders(after))
    since_us = {(topic, partition): at_us for topic, partition, at_us in unheld}
    unheld_us: dict[TopicPartition, int] = {}
    left = []
    for each in {**old, **since_us}:
        holder, next_holder = old.get(each), new.get(each)
        released_us = since_us.get(each, 0) if holder is None else _released_us(holder, next_holder, members, gone_us)
        if next_holder is None:
            left.append((*each, ended_us))
        if released_us:
            taker = members.get(next_holder) if next_holder is not None else None
            held_us = taker.served_us if taker is not None and taker.served_us else ended_us
            unheld_us[each] = max(0, held_us - released_us)
    stayed = sum(new.get(each) == holder for each, holder in old.items())
    return Moves(len({**old, **new}) - stayed, stayed, {each: us for each, us in unheld_us.items() if us}, tuple(left))


def _released_us(holder: str, next_holder: str | None, members: Mapping[str, MemberProgress], gone_us: Mapping[str, int]) -> int:
    """Return when a holder stopped consuming a partition, 0 if it never did."""
    progress = members.get(holder)
    if holder in gone_us:
        return gone_us[holder]
    if progress is None:
        return 0
    if progress.stopped_us:
        return progress.stopped_us
    return 0 if next_holder == holder else progress.served_us  # a cooperative member gives it up on its new assignment


def _holders(held: Mapping[str, Partitions]) -> Iterator[tuple[TopicPartition, str]]:
    for holder, owned in held.items():
        for topic, partitions in owned.items():
            for partition in partitions:
                yield (topic, partition), holder


def size_of(held: Mapping[str, Partitions]) -> int:
    """Return the number of partitions held."""
    return sum(len(partitions) for owned in held.values() for partitions in owned.values())


def by_topic(unheld_us: Mapping[TopicPartition, int]) -> dict[str, dict[str, float]]:
    """Return topic → partition → seconds."""
    topics: dict[str, dict[str, float]] = {}
    for (topic, partition), us in sorted(unheld_us.items()):
        topics.setdefault(topic, {})[str(partition)] = seconds(us)
    return topics


def idle_us(member: MemberProgress, ended_us: int) -> int:
    """Return for how long a member consumed nothing in a rebalance that ended at ``ended_us``."""
    return max(0, (member.resumed_us or member.served_us or ended_us) - member.stopped_us) if member.stopped_us else 0


def seconds(us: int) -> float:
    return round(us / 1_000_000, 6)


def milliseconds(since_us: int, until_us: int) -> int | None:
    """Return the whole milliseconds between two times, None if one of them is 0."""
    return max(0, until_us - since_us) // 1_000 if since_us and until_us else None


def iso_or_none(at_us: int) -> str | None:
    return iso_utc(at_us) if at_us else None

"""A group of the consumer protocol (KIP-848) as the coordinator of Kafka 4.x keeps it: members, epochs, targets, reconciliation.

Written from the KIP, Kafka's source and what running brokers answer; it shares no code with the model. ``Reconciliation`` follows the
broker's table row by row, and differs by release where brokers differ.
"""

from __future__ import annotations

import base64
import copy
import hashlib
from dataclasses import dataclass, field

from coordinator_model import wire

PARTITIONS = 6  #: of each topic there is

Partition = tuple[str, int]
Release = tuple[int, ...]

STABLE, UNREVOKED, UNRELEASED = "stable", "unrevoked", "unreleased"
LEFT_FOR_A_WHILE = -2


def topic_id(name: str) -> str:
    """Of each name always the same."""
    return base64.urlsafe_b64encode(hashlib.md5(name.encode()).digest()).decode().rstrip("=")


@dataclass
class ConsumerMember:
    """One member; of one that speaks the classic protocol, its last JoinGroup."""

    id: str
    instance_id: str | None = None
    epoch: int = 0
    previous_epoch: int = -1  #: before the last write of its state
    state: str = STABLE
    assigned: dict[Partition, int] = field(default_factory=dict)  #: and the epoch at which it was given each
    pending: dict[Partition, int] = field(default_factory=dict)  #: to be given up
    names: tuple[str, ...] = ()
    pattern: str = ""
    rebalance_ms: int = -1
    classic: wire.JoinGroupRequest | None = None
    session: int = 0  #: counts timers: an older one is void
    revocation: int = 0
    joining: int = 0
    syncing: int = 0
    join_is_awaited: bool = False

    def write(self, epoch: int, state: str, assigned: dict[Partition, int], pending: dict[Partition, int]) -> None:
        self.previous_epoch, self.epoch = self.epoch, epoch
        self.state, self.assigned, self.pending = state, assigned, pending

    def holds_all(self, owned: frozenset[Partition] | None) -> bool:
        return owned is not None and owned <= self.assigned.keys()


@dataclass
class ConsumerGroup:
    """The group's own state."""

    release: Release
    epoch: int = 0
    assignment_epoch: int = 0
    assigned_at_us: int | None = None  #: when the target was last computed
    members: dict[str, ConsumerMember] = field(default_factory=dict)
    targets: dict[str, frozenset[Partition]] = field(default_factory=dict)
    patterns: dict[str, tuple[str, ...]] = field(default_factory=dict)  #: those that are resolved
    metadata_changed: bool = False  #: of topics that are named, and no heartbeat since

    def __post_init__(self) -> None:
        if self.release >= (4, 3) and not self.epoch:
            self.epoch = self.assignment_epoch = 1

    def persisted(self) -> ConsumerGroup:
        """What a new coordinator would load."""
        return copy.deepcopy(self)

    def holder_of(self, instance_id: str | None) -> ConsumerMember | None:
        return next((one for one in self.members.values() if instance_id is not None and one.instance_id == instance_id), None)

    def subscription(self, member: ConsumerMember) -> set[str]:
        return {*member.names, *self.patterns.get(member.pattern, ())}

    def is_held_by_another(self, partition: Partition, member: ConsumerMember) -> bool:
        return any(partition in one.assigned or partition in one.pending for one in self.members.values() if one.id != member.id)

    def is_behind(self, member: ConsumerMember) -> bool:
        """Whether there is a newer assignment than the member has; until 4.2 a newer epoch of the group is enough."""
        return member.epoch < (self.assignment_epoch if self.release >= (4, 3) else self.epoch)

    def waits_in_vain(self, member: ConsumerMember) -> bool:
        """Whether partitions that it is to have are still held by others."""
        missing = self.targets.get(member.id, frozenset()) - member.assigned.keys()
        return any(self.is_held_by_another(partition, member) for partition in missing)

    def compute_target(self, now_us: int, topics: set[str]) -> None:
        """Even shares of topics that exist, and as few moves as that needs."""
        self.assignment_epoch = self.epoch
        self.assigned_at_us = now_us
        wanted = {id_: self.subscription(one) & topics for id_, one in self.members.items()}
        shares: dict[str, set[Partition]] = {
            id_: {(topic, index) for topic, index in self.targets.get(id_, ()) if topic in wanted[id_]} for id_ in self.members
        }
        given = set().union(*shares.values())
        for topic in sorted(set().union(*wanted.values())):
            takers = [id_ for id_ in shares if topic in wanted[id_]]
            for index in range(PARTITIONS):
                if (topic, index) not in given:
                    shares[min(takers, key=lambda id_: len(shares[id_]))].add((topic, index))
        while move := self._move(shares, wanted):
            giver, taker, partition = move
            shares[giver].remove(partition)
            shares[taker].add(partition)
        self.targets = {id_: frozenset(share) for id_, share in shares.items()}

    @staticmethod
    def _move(shares: dict[str, set[Partition]], wanted: dict[str, set[str]]) -> tuple[str, str, Partition] | None:
        for giver in sorted(shares, key=lambda id_: -len(shares[id_])):
            for taker in sorted(shares, key=lambda id_: len(shares[id_])):
                if len(shares[giver]) >= len(shares[taker]) + 2:
                    for partition in sorted(shares[giver], reverse=True):
                        if partition[0] in wanted[taker]:
                            return giver, taker, partition
        return None

    def reconcile(self, member: ConsumerMember, owned: frozenset[Partition] | None, *, resubscribed: bool) -> bool:
        """Bring a member nearer to its target; whether its state was written."""
        before = (member.epoch, member.previous_epoch, member.state, dict(member.assigned), dict(member.pending))
        resubscribed = resubscribed and self.release >= (4, 2)  # KAFKA-19431
        if member.state == STABLE and member.epoch == self.assignment_epoch:
            if resubscribed:
                self._drop_unsubscribed(member, owned)
        elif member.state == UNREVOKED:
            if resubscribed:
                self._drop_unsubscribed(member, owned)
            if owned is not None and not owned & member.pending.keys():
                # KAFKA-19974: from 4.2 on a further round stays at the member's epoch.
                self._advance(member, owned, member.epoch if self.release >= (4, 2) else member.epoch + 1)
        else:
            self._advance(member, owned, member.epoch)
        return before != (member.epoch, member.previous_epoch, member.state, member.assigned, member.pending)

    def _drop_unsubscribed(self, member: ConsumerMember, owned: frozenset[Partition] | None) -> None:
        wanted = self.subscription(member)
        kept = {partition: epoch for partition, epoch in member.assigned.items() if partition[0] in wanted}
        if kept.keys() == member.assigned.keys():
            return
        lost = {partition: epoch for partition, epoch in member.assigned.items() if partition not in kept}
        pending = {**member.pending, **lost}
        if member.state != UNREVOKED and owned is not None and not owned & lost.keys():
            member.write(member.epoch, STABLE, kept, {})
        else:
            member.write(member.epoch, UNREVOKED, kept, pending)

    def _advance(self, member: ConsumerMember, owned: frozenset[Partition] | None, epoch: int) -> None:
        target = self.targets.get(member.id, frozenset())
        if self.release >= (4, 2):
            wanted = self.subscription(member)
            target = frozenset(partition for partition in target if partition[0] in wanted)
        kept = {partition: given for partition, given in member.assigned.items() if partition in target}
        lost = {partition: given for partition, given in member.assigned.items() if partition not in target}
        missing = target - kept.keys()
        free = {partition for partition in missing if not self.is_held_by_another(partition, member)}
        if lost and (owned is None or owned & lost.keys()):
            member.write(epoch, UNREVOKED, kept, lost)
        else:
            gained = dict.fromkeys(free, self.assignment_epoch)
            member.write(self.assignment_epoch, STABLE if free == missing else UNRELEASED, {**kept, **gained}, {})

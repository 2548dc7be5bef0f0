"""Data of a group whose members have epochs, and simple queries and changes on it.

This module imports no handler, so that all of them can use a group without an import cycle.
"""

from __future__ import annotations

from functools import cached_property
from typing import Final

from msgspec import field

from coordinator_model.cluster_facts import OLDEST
from coordinator_model.counters import REFUSED, REMOVED, SESSION_EXPIRED
from coordinator_model.events import RECONCILING
from coordinator_model.finding import Evidence
from coordinator_model.groups.coordinator_changes import CoordinatorChanges
from coordinator_model.groups.epochs.group import EpochGroupCore
from coordinator_model.groups.epochs.kinds import STREAMS
from coordinator_model.groups.epochs.rebalance import EpochRebalances, stopped_us_of
from coordinator_model.groups.epochs.records import (
    NO_PARTITIONS,
    Committer,
    DoubleGrant,
    EpochMember,
    InstanceUse,
    SessionBounds,
    StatusStreak,
    Unseen,
)
from coordinator_model.groups.group_coordinator import CoordinatorAddresses, is_coordinator
from coordinator_model.groups.records import Exchange, Partitions, Removed

CAUSES_KEPT: Final = 32
_TOPICS_NAMED: Final = 3
_EVICTIONS: Final = {
    Removed.SILENT: SESSION_EXPIRED,
    Removed.NOT_BACK: SESSION_EXPIRED,
    Removed.FENCED: REFUSED,
    Removed.REMOVED: REMOVED,
}
BUMPS_KEPT: Final = 6


class EpochGroupData(EpochGroupCore):
    """Data of one group."""

    release: tuple[int, int] = OLDEST  #: the oldest that ``broker`` can be, by the versions that it answered
    session_bounds: SessionBounds = SessionBounds()
    epoch_us: int = 0  #: when an answer first showed the newest epoch; 0 if none did since frames were missing
    instances: dict[str, str] = {}  #: group.instance.id → member id of its holder
    doubles: list[DoubleGrant] = []
    committers: dict[str, Committer] = {}  #: of a Streams group, by topic and partition
    recent: list[tuple[str, str]] = []  #: (cause, member id) of what may raise the epoch, since it last rose
    storm_since_us: int = 0
    storm_times: int = 0
    storm_causes: dict[str, int] = {}
    coordinator_changes: CoordinatorChanges = field(default_factory=CoordinatorChanges)
    returns: dict[str, tuple[int, ...]] = {}  #: member id → times at which its client had come back after it died
    succeeded: tuple[str, ...] = ()  #: ids of dead members whose client has come back
    instance_uses: dict[str, InstanceUse] = {}  #: of each group.instance.id that changed hands
    abandoned: dict[str, tuple[int, ...]] = {}  #: client → times at which the session of an id that it left behind ended
    searches: dict[str, int] = {}  #: client → when it last asked for the coordinator, unless it has joined since
    status_streaks: dict[int, StatusStreak] = {}  #: of a Streams group
    shutdowns: tuple[tuple[int, str], ...] = ()  #: (time, member id) of requests to stop the application
    assignor_failures: int = 0  #: in a row
    mixed_since_us: int = 0
    state: str = "Unknown"  #: in the coordinator's own words, as far as frames show it
    deleted_us: int = 0  #: when an administrator deleted it, unless it has begun again since
    rebalances: EpochRebalances = field(default_factory=EpochRebalances)
    unseen: Unseen | None = None  #: members that a description lists

    @property
    def is_empty(self) -> bool:
        """True if none of the known ids is a member, or one that is away."""
        return all(not member.keeps_place for member in self.members.values())

    @property
    def learning(self) -> bool:
        """True until the epoch of each member is known."""
        present = list(self.present_members())
        return self.epoch is None or any(member.epoch is None for member in present)

    def note_state(self, at_us: int) -> None:
        """Take note of the state after a change."""
        state = self._state_now()
        if state != self.state or not self.state_since_us:
            self.changed = self.changed or state != self.state
            self.state, self.state_since_us = state, at_us

    def _state_now(self) -> str:
        if any(member.removed == Removed.AWAY for member in self.members.values()):
            return RECONCILING  # the coordinator counts it as a member that has not reached the newest epoch
        present = list(self.present_members())
        if not present:
            return "Empty" if self.members else "Unknown"
        if self.learning:
            return "Unknown"
        if any(member.pending or member.epoch != self.epoch for member in present):
            return RECONCILING
        return "Stable"

    def member_of(self, exchange: Exchange, member_id: str = "") -> EpochMember:
        """Return the member that an exchange names; create it, unproven, if it is unknown."""
        id_ = member_id or exchange.member_id
        member = self.members.get(id_)
        if member is None:
            member = self.members[id_] = EpochMember(id_)
        member.actor = exchange.actor
        return member

    def name_topic(self, topic: str, name: str) -> None:
        """Note the name of a topic, unless it is known to be another one's."""
        if self.facts.topic_name(self.cluster, topic) in {None, name}:
            self.topic_names[topic] = name

    def release_of(self, broker: str) -> tuple[int, int]:
        """Return the oldest release that a broker can be which answers as coordinator."""
        shown = self.facts.release(self.cluster, broker)
        return max(self.release, shown) if is_coordinator(self, broker) else shown

    @cached_property
    def configured_session_ms(self) -> int:
        """The brokers' session timeout for groups of this type, 0 if it is not known."""
        return self.settings.session_timeout_ms(self.cluster, self.kind)

    def shortest_session_ms(self, member: EpochMember | None = None) -> int:
        """Return for how long the coordinator surely keeps a member, or any, that sends nothing. A classic member names its own time."""
        own_ms = None if member is None else member.session_timeout_ms
        return own_ms or self.session_bounds.shortest_ms(self.configured_session_ms)

    def longest_session_ms(self, member: EpochMember | None = None) -> int:
        """Return after how long without a frame a member, or any, surely is none any more."""
        own_ms = 0 if member is None else member.session_timeout_ms or 0
        return max(own_ms, self.session_bounds.longest_ms(self.configured_session_ms))

    def outlasts_sessions(self, lasts_us: int) -> bool:
        """Return True if what has gone on for so long would have been ended by the session of any member that died."""
        longest_ms = self.longest_session_ms()
        return lasts_us >= longest_ms * 1_000 + self.settings.slack_us(longest_ms)

    @property
    def generation(self) -> int | None:
        """The group's epoch, by the name that other types of groups have for it."""
        return self.epoch

    def may_be_reloaded(self, member: EpochMember) -> bool:
        """Return True if the coordinator may have loaded the group since it delivered the member's epoch, which may be lost."""
        return member.epoch_us < self.effects.loaded_us + self.clock_skew_us

    def may_have_raised(self, cause: str, member_id: str) -> None:
        """Note what can raise the group's epoch."""
        if len(self.recent) < CAUSES_KEPT:
            self.recent.append((cause, member_id))

    def remove(self, member: EpochMember, why: Removed, at_us: int, frame: Evidence | None = None) -> None:
        """Note why a member is one no longer, or is away for a while."""
        was, held, stopped_us = member.removed, member.holds, stopped_us_of(member, why, at_us)
        member.removed, member.removed_us, member.removed_frame = why, at_us, frame
        member.revoking_us = 0
        member.revoking_frame = None
        member.pending = NO_PARTITIONS
        member.heartbeat_us = 0
        member.empty_since_us = 0
        self.changed = True
        self.doubles = [double for double in self.doubles if double.holder != member.id]
        if why != Removed.AWAY:
            member.granted = member.epoch = member.previous = member.ever = member.joined_epoch = None
            self.may_have_raised(why, member.id)
        if was in {None, Removed.AWAY} and member.proven_us is not None:
            self.rebalances.on_removed(self, member, why, at_us, held=held, stopped_us=stopped_us, frame=frame)
            if why in _EVICTIONS:
                self.counters.evictions[self.cluster, _EVICTIONS[why]] += 1
        if self.forget_some():
            self.born_us = 0  # its id may come back, and was not forgotten by the coordinator

    def accepted(self, exchange: Exchange) -> None:
        before = self.broker
        super().accepted(exchange)
        if self.broker != before:
            self.release = OLDEST
        self.deleted_us = 0

    def new_incarnation(self, at_us: int, because: str) -> None:
        """Begin a new incarnation: the coordinator moved, or loaded the group again. What it wrote remains: epochs and assignments."""
        super().new_incarnation(at_us, because)
        self.addresses = CoordinatorAddresses()
        self.coordinator_changes.on_gap(self)
        self.doubles = []
        self.committers = {}
        self.arrivals.on_gap()
        self.claims = {}  # all sessions begin anew, that of an instance id's dead holder too
        self.born_us = 0
        self.effects.loaded_us = at_us
        for member in self.members.values():
            member.gone = False
            if member.ever is not None:
                member.ever = dict.fromkeys(member.ever, 0)  # an older release does not write since when each is assigned
            member.heartbeat_us = 0
            member.rejoin_asked_us = None  # the timer of its JoinGroup is not restored
            if member.revoking_us:
                member.revoking_us = max(member.revoking_us, at_us)
        self.changed = True

    def begin_anew(self) -> None:
        """Note that the coordinator has deleted the group, whose members are gone: its epochs begin again, from the lowest."""
        self.epoch = None
        self.recent = []
        self.bumps = []
        self.doubles = []
        self.committers = {}
        self.storm_since_us = self.storm_times = 0
        self.storm_causes = {}
        self.claims = {}
        self.status_streaks = {}
        self.mixed_since_us = 0

    def on_gap(self, at_us: int, because: str) -> None:
        """Go back to learning: frames are missing, so epochs and assignments may have changed unseen."""
        self.rebalances.on_gap(self, at_us, because)
        self.usual.on_gap(at_us)
        self.committed_offsets.on_gap(self)
        self.learning_because = because
        self.effects.hole_us, self.epoch_us, self.unseen = at_us, 0, None
        self.coordinator_changes.on_gap(self)
        self.addresses = CoordinatorAddresses()
        self.born_us = 0
        self.doubles = []
        self.committers = {}
        self.recent = []
        self.claims = {}
        self.arrivals.on_gap()
        self.instance_uses = {}
        self.status_streaks = {}
        self.assignor_failures = 0
        self.bumps = []
        self.storm_since_us = self.storm_times = 0
        self.storm_causes = {}
        for member in self.members.values():
            member.forget()
        for waiting in self.open.values():
            waiting.gap_free = False
        self.note_state(at_us)
        self.changed = True


def partitions_text(group: EpochGroupData, partitions: Partitions) -> str:
    """Return ``orders-2 and orders-5``, ``tasks 0_2 and 0_5`` for a Streams group; the number and the first for many."""
    if group.kind == STREAMS:  # Kafka Streams' own names
        names = [f"{subtopology}_{number}" for subtopology, number in sorted(partitions)]
        kind, before = "tasks", "task " if len(names) == 1 else "tasks "
    else:
        names = [f"{group.topic_text(topic)}-{number}" for topic, number in sorted(partitions)]
        kind, before = "partitions", ""
    if len(names) > 2 * _TOPICS_NAMED:
        return f"{len(names)} {kind} ({', '.join(names[:_TOPICS_NAMED])} …)"
    return before + " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)

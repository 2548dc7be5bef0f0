"""The classic group as the rest of the model sees it; see ``group_model``."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Final

from coordinator_model.events import State
from coordinator_model.group_view import GroupView
from coordinator_model.groups import refused_joins
from coordinator_model.groups.classic import dispatch
from coordinator_model.groups.classic.data import CLASSIC
from coordinator_model.groups.classic.group import ClassicGroup
from coordinator_model.groups.classic.handlers import heartbeat, join_group
from coordinator_model.groups.classic.trackers.descriptions import Descriptions
from coordinator_model.groups.classic.view import view
from coordinator_model.groups.coordinator_records import CoordinatorAddresses
from coordinator_model.groups.events import Mismatched
from coordinator_model.groups.group_model import GroupModel
from coordinator_model.groups.records import NOBODY, ClientInfo, ConnectionState, Exchange, Member, Removed
from coordinator_model.groups.recurring.recurring import Recurring
from coordinator_model.groups.tracker import NOTHING, Event
from coordinator_model.wire import API_NAMES
from coordinator_model.wire.constants import HEARTBEAT, JOIN_GROUP
from coordinator_model.wire.record import MirrorRecord

# Attributes that are stored unchanged, in this order; slow_values() appends the others. New ones are only appended.
_PLAIN: Final = (
    "name", "cluster", "kind", "broker", "incarnation", "settled", "learning_because", "generation_seen", "state_since_us",
    "protocol_type", "instances", "issued", "causes", "join_took_us", "sync_took_us", "deleted_us",
    "assignments", "offsets", "coordinator_changes", "rebalance_history", "sessions",
    "member_identity", "unconnected_us", "errors", "joins", "syncs", "rebalance_events",
    "conversions", "abandoned_us", "committed_offsets", "refused_joins", "late_frames",
)  # fmt: skip

_read_plain = attrgetter(*_PLAIN)
_read_fast = attrgetter("last_frame_us", "heartbeat_us", "proven_us", "heartbeat_interval_us", "last_frame")
_API_KEYS: Final = {name: key for key, name in API_NAMES.items()}


class ClassicGroupModel(ClassicGroup, GroupModel[Member]):
    """A classic group, with what :class:`~coordinator_model.groups.group_model.GroupModel` asks of it."""

    __slots__ = ()

    on_request = dispatch.on_request
    on_response = dispatch.on_response
    asks_steadily = heartbeat.asks_steadily
    ask_steadily = heartbeat.ask_steadily
    is_steady = heartbeat.is_steady
    answer_steadily = heartbeat.answer_steadily
    end_session = ClassicGroup.fell_silent

    def session_expired(self, member_id: str, at_us: int) -> tuple[Event, ...]:
        member = self.members.get(member_id)
        if member is None or not member.present or member.session_since_us >= at_us:
            return NOTHING
        return tuple(event._replace(is_logged=True) for event in self.fell_silent(member, at_us))

    def on_unpaired(self, record: MirrorRecord, body: Any, correlation_id: int) -> tuple[Event, ...]:
        given_up = self.given_up.pop((record.connection, record.exchange), None)
        if given_up is None or correlation_id != given_up.correlation_id:
            return super().on_unpaired(record, body, correlation_id)
        self.slow_changed = True
        given_up.res_us, given_up.response_offset = record.at_us, record.offset
        return join_group.on_late_response(self, given_up, body)

    def on_mismatch(self, exchange: Exchange, correlation_id: int) -> tuple[Event, ...]:
        super().on_mismatch(exchange, correlation_id)
        return (Mismatched(exchange, correlation_id),)

    def awaits_answer(self, member: Member) -> bool:
        """Return True if a Heartbeat of this member waits for its response. Until then clients send no other."""
        return any(waiting.api_key == HEARTBEAT and waiting.member_id == member.id for waiting in self.open.values())

    @property
    def broker_release(self) -> tuple[int, int]:
        return max(self.member_identity.broker_version.release, self.facts.any_release(self.cluster, self.broker))

    def session_end_us(self, member: Member) -> int | None:
        since_us = member.session_since_us
        # The others may complete a generation without it before the slack has passed, and that drop does not explain its silence.
        waited_for = member.present or (member.removed == Removed.DROPPED and member.last_frame_us < member.removed_us)
        if not waited_for or member.session_timeout_ms is None or self.parked(member):
            return None
        newest = self.newest_generation
        completed_us = newest.proven_us if newest is not None else 0
        if newest is not None and newest.roster is not None and member.id in newest.roster:
            since_us = max(
                since_us, completed_us
            )  # the end of the join phase restarts every session, including those of absent members
        abandoned_request = member.abandoned_request
        if abandoned_request is not None:
            # Parked on a connection that ended, or answered after its timer had fired without effect: the next step restarts the session.
            resumed_us = completed_us
            if abandoned_request.api_key != JOIN_GROUP:
                resumed_us = max(resumed_us, member.proven_us or 0, (newest.sync_done_us or 0) if newest is not None else 0)
            if resumed_us <= abandoned_request.at_us:
                return None
            since_us = max(since_us, resumed_us)
        lost = self.coordinator_changes.lost
        if lost is not None and member.id in lost.members:
            if not lost.returned_us and lost.searching:
                return None  # no coordinator could receive its Heartbeat
            since_us = max(since_us, lost.returned_us)  # the coordinator then restarts all sessions
        since_us = max(since_us, self.coverage.since_us)
        settings = self.settings
        return since_us + member.session_timeout_ms * 1_000 + settings.slack_us(member.session_timeout_ms) + settings.clock_skew_us

    def view(self, open_findings: int, partition: int, now_us: int) -> GroupView:
        return view(self, open_findings, partition, now_us)

    # ------------------------------------------------------------------------------------------------ snapshots

    def slow_values(self) -> list[Any]:
        return [
            list(_read_plain(self)),
            self.state.value,
            list(self.members.values()),
            self.generations,
            list(self.connections),
            self.addresses.values(),
            self.descriptions.values(),
            list(self.given_up.values()),
            self._clients_beside_members(),
            self.recurring.values(),
        ]

    def _clients_beside_members(self) -> list[tuple[int, list[Any]]]:
        """Return the clients of connections that no member used last: a frame of a member names its own."""
        used = {member.actor.connection for member in self.members.values()}
        return [
            (place, list(line.actor))
            for place, (connection, line) in enumerate(self.connections.items())
            if connection not in used and line.actor is not NOBODY
        ]

    def fast_values(self) -> list[Any]:
        """Members and connections have the order of :meth:`slow_values`. Times before the last record take half the bytes."""
        base_us = self.last_record_us
        members: list[int | None] = []
        for last_frame_us, heartbeat_us, proven_us, interval_us, last_frame in map(_read_fast, self.members.values()):
            members += (
                base_us - last_frame_us if last_frame_us else None,
                base_us - heartbeat_us if heartbeat_us else None,
                None if proven_us is None else base_us - proven_us,
                interval_us,
                _API_KEYS.get(last_frame),
            )
        connections: list[int] = []
        for connection in self.connections.values():
            connections += connection.outstanding, base_us - connection.last_response_us
        return [members, connections, list(self.open.values())]

    def fill(self, slow_values: Sequence[Any], fast_values: Sequence[Any]) -> None:
        plain, state, members, generations, connections, *later = slow_values
        if len(plain) > len(_PLAIN):
            raise ValueError(f"it has {len(plain)} fields: the snapshot was written by a newer release")
        for name, value in zip(_PLAIN, plain, strict=False):
            setattr(self, name, value)
        self.refused_joins = refused_joins.restored(self.refused_joins)
        self.state = State(state)
        self.generations = list(generations)
        self.members = {member.id: member for member in members}
        if later:  # earlier releases did not store them
            self.addresses = CoordinatorAddresses(*later[0])
        if len(later) > 1:
            self.descriptions = Descriptions.restored(later[1])
        if len(later) > 2:
            self.given_up = {exchange.key: exchange for exchange in later[2]}
        if len(later) > 4:
            self.recurring = Recurring.restored(later[4])
        if self.kind != CLASSIC:  # written while groups of another type were only counted, and held as classic ones
            self.kind, self.members, self.generations = CLASSIC, {}, []
        self._fill_fast(connections, *fast_values)
        for place, client in later[3] if len(later) > 3 else ():
            self.connections[connections[place]].actor = ClientInfo(*client)

    def _fill_fast(self, connections: Sequence[str], values: Sequence[Any], lines: Sequence[int], open_: Sequence[Any]) -> None:
        base_us = self.last_record_us
        given = iter(values)
        for member in self.members.values():
            last_frame_us, heartbeat_us, proven_us, member.heartbeat_interval_us, last_frame = (next(given) for _ in range(5))
            member.last_frame_us = 0 if last_frame_us is None else base_us - last_frame_us
            member.heartbeat_us = 0 if heartbeat_us is None else base_us - heartbeat_us
            member.proven_us = None if proven_us is None else base_us - proven_us
            member.last_frame = API_NAMES.get(last_frame, "")
        numbers = iter(lines)
        self.connections = {name: ConnectionState(next(numbers), base_us - next(numbers)) for name in connections}
        self.open = {exchange.key: exchange for exchange in open_}

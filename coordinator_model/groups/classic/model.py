"""The classic group as the rest of the model sees it; see ``group_model``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any, Final

from coordinator_model.group_view import GroupView
from coordinator_model.groups import refused_joins
from coordinator_model.groups.classic import dispatch
from coordinator_model.groups.classic.data import CLASSIC
from coordinator_model.groups.classic.group import ClassicGroup
from coordinator_model.groups.classic.session_end import awaits_heartbeat, last_frame_us_of, session_end_us
from coordinator_model.groups.classic.state import State
from coordinator_model.groups.classic.trackers.descriptions import Descriptions
from coordinator_model.groups.classic.view import view
from coordinator_model.groups.coordinator_addresses import CoordinatorAddresses
from coordinator_model.groups.records import NOBODY, ClientInfo, ConnectionState
from coordinator_model.groups.recurring.recurring import Recurring
from coordinator_model.groups.tracker import NOTHING, Event
from coordinator_model.wire import API_NAMES

_SOON_US: Final = 1_000_000

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


class ClassicGroupModel(ClassicGroup):
    """A classic group, with what :class:`~coordinator_model.groups.group_model.GroupModel` asks of it."""

    __slots__ = ()

    request = dispatch.request
    response = dispatch.response

    def session_expired(self, member_id: str, at_us: int) -> tuple[Event, ...]:
        member = self.members.get(member_id)
        if member is None or not member.present or last_frame_us_of(member) >= at_us:
            return NOTHING
        return tuple(event._replace(is_logged=True) for event in self.fell_silent(member, at_us))

    def end_sessions(self, now_us: int, coming: list[int]) -> Iterator[tuple[int, tuple[Event, ...]]]:
        for member in sorted(self.members.values(), key=lambda member: member.last_frame_us):  # those that fall silent first
            end_us = session_end_us(self, member, last_frame_us_of(member))
            if end_us is not None and end_us <= now_us:
                yield end_us, self.fell_silent(member, end_us)
            elif end_us is not None:
                coming.append(end_us)
            elif awaits_heartbeat(self, member):
                coming.append(now_us + _SOON_US)  # its response does not schedule a check

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

"""What the rest of the model asks of a group, whatever its type, and how a frame and the time reach it.

Each type of group has a package of its own beside this module, and a class in it that is a :class:`GroupModel`. The rest of the
model stores groups, brings frames and the time to them, applies rules to their events, and shows them; it asks for no type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Final

from coordinator_model.group_view import GroupView
from coordinator_model.groups import late_frames
from coordinator_model.groups.group import Group, M
from coordinator_model.groups.records import Exchange
from coordinator_model.groups.requests import REQUEST_READERS, client_of, exchange_of
from coordinator_model.groups.tracker import NOTHING, Event
from coordinator_model.wire.record import MirrorRecord

_SOON_US: Final = 1_000_000


class GroupModel(Group[M]):
    """One group of one type."""

    readers: ClassVar[Mapping[int, Callable[[Exchange, Any], None]]] = (
        REQUEST_READERS  #: API key → how to read a request into its exchange
    )
    waits_in_turn: ClassVar = True  #: a request behind others is processed when these are answered

    def request(self, record: MirrorRecord, body: Any) -> tuple[Event, ...]:
        """Process a request; return its events. ``body`` is the decoded message."""
        line = self.line(record.connection)
        client = (record.client_id, record.client_address, record.client_software, record.connection, record.principal)
        if line.actor != client:
            line.actor = client_of(record)
        exchange = exchange_of(record, line.actor)
        if record.queued_behind > line.outstanding and self.waits_in_turn:
            exchange.effective_us = -1  # behind requests of other groups, it is unknown until the response comes
        self.readers[exchange.api_key](exchange, body)
        line.outstanding += 1
        self.open[exchange.key] = exchange
        member = self.members.get(exchange.member_id)
        if member is not None and self.asks_steadily(exchange, member):
            return self.ask_steadily(exchange, member)
        self.slow_changed = True
        late_frames.note(self, exchange, record.at_us)
        return self.on_request(exchange, member, body)

    def response(self, record: MirrorRecord, body: Any, correlation_id: int) -> tuple[Event, ...]:
        """Process a response; return its events. Without its request a response proves nothing.

        :param correlation_id: as the frame itself has it.
        """
        exchange = self.open.pop((record.connection, record.exchange), None)
        if exchange is None:
            return self.on_unpaired(record, body, correlation_id)
        line = self.connections[record.connection]  # made with the request, and removed only together with it
        line.outstanding -= 1
        exchange.res_us, exchange.response_offset = record.at_us, record.offset
        member = self.members.get(exchange.member_id)
        is_own = correlation_id == exchange.correlation_id
        if is_own and member is not None and self.is_steady(exchange, member, body):
            line.last_response_us = record.at_us
            self.answer_steadily(exchange, member)
            return NOTHING
        self.slow_changed = True
        if not is_own:
            return self.on_mismatch(exchange, correlation_id)
        # Not the capture time of the response before it: the coordinator began with this request while that response was in transit.
        exchange.effective_us = exchange.inv_us
        line.last_response_us = record.at_us
        late_frames.note(self, exchange, record.at_us, body)
        return self.on_response(exchange, body)

    def on_unpaired(self, record: MirrorRecord, body: Any, correlation_id: int) -> tuple[Event, ...]:  # noqa: ARG002
        """Process a response whose request is not open."""
        self.counters.unpaired[record.api_key, record.api_version] += 1
        return NOTHING

    def on_mismatch(self, exchange: Exchange, correlation_id: int) -> tuple[Event, ...]:  # noqa: ARG002
        """Process a response with the correlation id of another request: its content proves nothing about this one."""
        self.on_gap(exchange.res_us, "an answer does not belong to its request")
        return NOTHING

    # The steady exit: what says and shows nothing new. All else marks the slow part of the group.

    def asks_steadily(self, exchange: Exchange, member: M) -> bool:
        """Return True if a request says nothing new: only the times of its member change then."""
        raise NotImplementedError

    def ask_steadily(self, exchange: Exchange, member: M) -> tuple[Event, ...]:
        """Process a request that says nothing new."""
        raise NotImplementedError

    def is_steady(self, exchange: Exchange, member: M, body: Any) -> bool:
        """Return True if a response shows nothing new, and nothing was open that it could settle."""
        raise NotImplementedError

    def answer_steadily(self, exchange: Exchange, member: M) -> None:
        """Process a response that shows nothing new."""
        raise NotImplementedError

    def on_request(self, exchange: Exchange, member: M | None, body: Any) -> tuple[Event, ...]:
        """Process any other request; return its events."""
        raise NotImplementedError

    def on_response(self, exchange: Exchange, body: Any) -> tuple[Event, ...]:
        """Process any other response; return its events."""
        raise NotImplementedError

    def waits_unseen(self, connection: str, at_us: int) -> bool:  # noqa: ARG002
        """Note that a request of this connection may wait unseen; return False if only :meth:`on_gap` does it justice."""
        return False  # coordinators of groups with epochs answer at once, so what is missing may be anything

    def on_gap(self, at_us: int, because: str) -> None:
        """Go back to learning: frames are missing or the group moved, so what is known may have changed unseen."""
        raise NotImplementedError

    def connection_closed(self, connection: str, at_us: int) -> None:
        """Process the end of a connection: no response is due to the requests open on it."""
        raise NotImplementedError

    # ------------------------------------------------------------------------------------------------ time

    def session_end_us(self, member: M) -> int | None:
        """Return when the session of this member has certainly expired without a further frame, None while it cannot expire."""
        raise NotImplementedError

    def awaits_answer(self, member: M) -> bool:
        """Return True if a request of this member waits for a response that may show that its session goes on."""
        raise NotImplementedError

    def end_session(self, member: M, at_us: int) -> tuple[Event, ...]:
        """End the session of a member; return its events."""
        raise NotImplementedError

    def session_expired(self, member_id: str, at_us: int) -> tuple[Event, ...]:
        """End the session of a member, as the coordinator says that it did; return the events."""
        raise NotImplementedError

    def end_sessions(self, now_us: int, coming: list[int]) -> Iterator[tuple[int, tuple[Event, ...]]]:
        """End the sessions that have certainly expired at ``now_us``; yield when each ended, and its events.

        :param coming: receives the times at which the others may end.
        """
        for member in sorted(self.members.values(), key=lambda member: member.last_frame_us):  # those that fall silent first
            if self.awaits_answer(member):
                coming.append(now_us + _SOON_US)  # its response does not schedule a check
                continue
            end_us = self.session_end_us(member)
            if end_us is not None and end_us <= now_us:
                yield end_us, self.end_session(member, end_us)
            elif end_us is not None:
                coming.append(end_us)

    # ------------------------------------------------------------------------------------------------ views

    def view(self, open_findings: int, partition: int, now_us: int) -> GroupView:
        """Return the group as a dashboard shows it."""
        raise NotImplementedError

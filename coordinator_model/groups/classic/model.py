"""The classic group as the rest of the model sees it; see ``group_model``."""

from __future__ import annotations

from typing import Any

from coordinator_model.group_view import GroupView
from coordinator_model.groups.classic import dispatch
from coordinator_model.groups.classic.data import CLASSIC
from coordinator_model.groups.classic.group import ClassicGroup
from coordinator_model.groups.classic.handlers import heartbeat, join_group
from coordinator_model.groups.classic.view import view
from coordinator_model.groups.events import Mismatched
from coordinator_model.groups.group_model import GroupModel
from coordinator_model.groups.records import Exchange, Member, Removed
from coordinator_model.groups.tracker import NOTHING, Event
from coordinator_model.wire.constants import HEARTBEAT, JOIN_GROUP
from coordinator_model.wire.record import MirrorRecord


class ClassicGroupModel(ClassicGroup, GroupModel[Member], tag=CLASSIC):
    """A classic group, with what :class:`~coordinator_model.groups.group_model.GroupModel` asks of it."""

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

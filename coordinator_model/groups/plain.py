"""What changes nothing but times and positions: heartbeats and commits of a quiet group, which are nearly all that is heard of it.

They are taken in by a shorter way than other frames, one by one (:func:`beat`) or many at once (:func:`go_on`).

The trap: a shorter way leaves exactly what the long one would have left. So it is taken only where each part of the group says that it
has nothing to do; whoever adds to what a heartbeat or a commit may do, adds a condition here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from coordinator_model.codes import HEARTBEAT, OFFSET_COMMIT
from coordinator_model.groups.facts import Exchange, Member
from coordinator_model.groups.sessions import SLOW_US
from coordinator_model.groups.state import State
from coordinator_model.pulse import Commits, Pulse, Run
from coordinator_model.wire import API_NAMES
from coordinator_model.wire.record import MirrorRecord

if TYPE_CHECKING:
    from coordinator_model.groups.classic import ClassicGroup

UNSERVED: Final = frozenset({State.EMPTY, State.PREPARING})  #: in these states no heartbeat succeeds

_HEARTBEAT_NAME: Final = API_NAMES[HEARTBEAT]
_COMMIT_NAME: Final = API_NAMES[OFFSET_COMMIT]

Beat = tuple[MirrorRecord, Any]
"""A Heartbeat request and its decoded body."""


# ---------------------------------------------------------------------------------------------------- one by one


def may_beat(group: ClassicGroup, record: MirrorRecord, body: Any) -> bool:
    """Whether a Heartbeat request changes nothing but times, and no rule can have anything to say about it.

    :meth:`ClassicGroup.request` would give no happenings for it.
    """
    member = group.members.get(body.member_id)
    if member is None or group.changed or (group.open and (record.connection, record.exchange) in group.open):
        return False
    if not _may_ask(member, body.generation_id, body.group_instance_id, record.connection):
        return False
    timeout_ms = member.session_timeout_ms
    return not member.heartbeat_us or timeout_ms is None or record.at_us - member.heartbeat_us <= timeout_ms * 500


def beat(group: ClassicGroup, asked: Beat, record: MirrorRecord, body: Any, correlation_id: int) -> bool:
    """Take in at once a Heartbeat request that :func:`may_beat` and its answer, if that too changes nothing but times.

    What it leaves behind is what :meth:`ClassicGroup.request` and :meth:`ClassicGroup.response` would leave. If it is another answer, or
    not so plain, nothing is changed.
    """
    request, ask = asked
    if request.exchange != record.exchange or request.connection != record.connection:
        return False
    if correlation_id != request.correlation_id or body.error_code or body.throttle_time_ms:
        return False
    if record.at_us - request.at_us > SLOW_US or group.identity.alert:
        return False
    member = group.members[ask.member_id]
    if group.state in UNSERVED or not _is_served(group, member, ask.generation_id, request.broker):
        return False
    note_pace(group, member, request.at_us)
    _beaten(group, member, request.connection, request.at_us, record.at_us)
    return True


# ---------------------------------------------------------------------------------------------------- many at once


def is_calm(group: ClassicGroup, runs: Iterable[Run]) -> bool:
    """Whether heartbeats and commits change nothing but times and positions, if nothing else happens between them.

    Each heartbeat would pass :func:`may_beat` and :func:`beat`; those that overlap would leave the same the long way. But for what
    :func:`go_forward` looks at, the same and fewer connections may go on until something else happens to the group.
    """
    if group.changed or group.open or group.identity.alert or group.state in UNSERVED:
        return False
    beating: set[str] = set()
    committing: dict[str, Commits] = {}
    for run in runs:
        told = run.told
        member = group.members.get(told.member_id)
        if member is None or not _may_ask(member, told.generation, told.instance_id, told.connection):
            return False
        if told.connection not in group.lines or not _is_served(group, member, told.generation, told.broker):
            return False
        if told.member_id in (beating if run.commits is None else committing):
            return False
        if run.commits is None:
            beating.add(told.member_id)
        else:
            committing[told.member_id] = run.commits
            if not _may_commit(group, run.commits.pulse):
                return False
    return not committing or group.offsets.may_go_on(group, committing.values())


def go_forward(group: ClassicGroup, runs: Iterable[Run]) -> bool:
    """Whether heartbeats come in time, and commits put no position back."""
    return all(
        _is_in_time(group.members[run.told.member_id], run) if run.commits is None else group.offsets.go_forward(run.commits)
        for run in runs
    )


def go_on(group: ClassicGroup, runs: Sequence[Run], partition: int) -> None:
    """Take in runs of which :func:`is_calm` and :func:`go_forward` hold.

    :param runs: in the order of their last answers.
    :param partition: of the mirror, for evidence.
    """
    committed: list[Commits] = []
    for run in runs:
        told, asked_us, answered_us, _, _, commits = run
        member = group.members[told.member_id]
        if commits is None:
            _note_paces(group, member, asked_us)
            _beaten(group, member, told.connection, asked_us[-1], answered_us[-1])
        else:
            _answered(group, member, told.connection, asked_us[-1], answered_us[-1])
            member.last_frame = _COMMIT_NAME
            committed.append(commits)
            last = run
    if committed:
        group.offsets.go_on(group, committed)
        exchange = _last_exchange(group, last, partition)
        group.coordination.go_on(exchange, [commits.pulse.connection for commits in committed])
        group.cold_changed = True


def _is_in_time(member: Member, run: Run) -> bool:
    """Whether no heartbeat, or its answer, is late enough to be worth a word."""
    if run.slowest_us > SLOW_US:
        return False
    if member.session_timeout_ms is None:
        return True
    pause_us = run.asked_us[0] - member.heartbeat_us if member.heartbeat_us else 0
    return run.longest_pause_us <= member.session_timeout_ms * 500 >= pause_us


def _may_commit(group: ClassicGroup, pulse: Pulse) -> bool:
    """Whether commits of a member that is served tell none of the watches anything new but how far it is."""
    return (
        group.state is State.STABLE
        and group.kind == "classic"
        and group.lines[pulse.connection].actor == pulse.actor
        and group.identity.knows(OFFSET_COMMIT, pulse.version)
        and group.assignments.older is None
        and group.coordination.is_served_by(pulse.broker, pulse.generation)
    )


def _last_exchange(group: ClassicGroup, run: Run, partition: int) -> Exchange:
    told, commits = run.told, run.commits
    assert commits is not None
    return Exchange(
        (told.connection, commits.exchange),
        OFFSET_COMMIT,
        told.version,
        told.member_id,
        told.generation,
        told.instance_id,
        None,
        group.lines[told.connection].actor,
        told.broker,
        partition,
        commits.asked,
        run.asked_us[-1],
        0,
        response_offset=commits.answered,
        effective_us=run.asked_us[-1],
        res_us=run.answered_us[-1],
    )


# ---------------------------------------------------------------------------------------------------- both


def note_pace(group: ClassicGroup, member: Member, at_us: int) -> int:
    """A heartbeat was sent; gives the microseconds since the one before, 0 if there was none."""
    before_us = member.heartbeat_us
    _note_paces(group, member, (at_us,))
    return at_us - before_us if before_us else 0


def _note_paces(group: ClassicGroup, member: Member, asked_us: Iterable[int]) -> None:
    before_us, known, least = member.heartbeat_us, member.heartbeat_interval_us, member.least_interval_us
    joined_us = member.joined_us
    for at_us in asked_us:
        if before_us:
            pause_us = at_us - before_us
            known = pause_us if known == 0 else (3 * known + pause_us) // 4
            if (pause_us < least - least // 8 or not least) and before_us > joined_us:
                least = pause_us
                group.cold_changed = True
        before_us = at_us
    member.heartbeat_us, member.heartbeat_interval_us, member.least_interval_us = before_us, known, least


def _may_ask(member: Member, generation: int, instance_id: str | None, connection: str) -> bool:
    """Whether a member that says so of itself, and on this connection, is the one that was let in last."""
    return (
        member.gone is None
        and member.fenced_us is None
        and member.joined == generation
        and member.instance_id == instance_id
        and member.actor.connection == connection
    )


def _is_served(group: ClassicGroup, member: Member, generation: int, broker: str) -> bool:
    """Whether a success from this broker is what this group's coordinator says to a member of this generation."""
    newest = group.rounds[-1] if group.rounds else None
    return (
        newest is not None
        and newest.generation == generation
        and newest.roster is not None
        and member.id in newest.roster
        and member.rejoin_asked_us is None
        and broker == group.broker
    )


def _beaten(group: ClassicGroup, member: Member, connection: str, asked_us: int, at_us: int) -> None:
    _answered(group, member, connection, asked_us, at_us)
    member.proven_us = at_us
    member.last_frame = _HEARTBEAT_NAME


def _answered(group: ClassicGroup, member: Member, connection: str, asked_us: int, at_us: int) -> None:
    group.line(connection).last_response_us = group.last_record_us = at_us
    member.last_frame_us = asked_us

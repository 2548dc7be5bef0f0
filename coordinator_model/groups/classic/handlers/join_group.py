"""JoinGroup: members join, and a completed join phase makes a new generation.

A response describes the time at which it was made, which may be long before its capture. A generation below the newest is therefore a
breach only if the newest was proven before the request took effect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from coordinator_model.counters import JOIN
from coordinator_model.events import State
from coordinator_model.groups.classic.handlers import restarts
from coordinator_model.groups.classic.positions import GENERATION, Verdict
from coordinator_model.groups.classic.state import Observation
from coordinator_model.groups.events import Answered, Regressed, Replaced, Returned
from coordinator_model.groups.evidence import response_evidence
from coordinator_model.groups.protocol.classic import TABLE, Condition, Sender
from coordinator_model.groups.protocol.classic import Generation as Relation
from coordinator_model.groups.protocol.table import Effect, Moment, effects
from coordinator_model.groups.records import (
    REPLACEMENTS_KEPT,
    Exchange,
    Generation,
    IssuedId,
    JoinFacts,
    Member,
    Removed,
    StaticMember,
    host_of,
)
from coordinator_model.groups.tracker import NOTHING, Event
from coordinator_model.wire.constants import (
    COORDINATOR_MOVES,
    FENCED_INSTANCE_ID,
    GROUP_MAX_SIZE_REACHED,
    JOIN_GROUP,
    LEADER_NAMED_SINCE,
    MEMBER_ID_REQUIRED,
    NONE,
    UNKNOWN_MEMBER_ID,
)

if TYPE_CHECKING:
    from coordinator_model.groups.classic.group import ClassicGroup

GENERATIONS_KEPT: Final = 6
ISSUED_KEPT: Final = 64

_DELETED: Final = "the group was deleted in between"
_EXPIRED: Final = "the group may have been empty in between, and expired"


def on_request(group: ClassicGroup, exchange: Exchange) -> tuple[Event, ...]:
    ask = exchange.facts
    assert isinstance(ask, JoinFacts)
    group.changed = True
    if exchange.member_id:
        member = group.member_of(exchange)
        earlier = group.open.get(member.parked_join) if member.parked_join is not None else None
        if earlier is not None:
            earlier.superseded = True
        member.parked_join = exchange.key
        _note_idle(member, exchange, ask)
        member.refusals = None
        member.rejoin_asked_us = None
        member.rejoin_frames = []
    if _prepares(group, exchange, ask):
        exchange.starts_phase = True
        group.observe(Observation.JOIN_TRIGGERS, exchange.inv_us)
    if exchange.member_id or exchange.instance_id is None:
        return NOTHING
    instance = group.instances.get(exchange.instance_id)
    return (Returned(exchange, instance),) if instance is not None and _was_fenced(instance, exchange) else NOTHING


def _note_idle(member: Member, exchange: Exchange, ask: JoinFacts) -> None:
    if not ask.owns and not member.idle_since_us:
        member.idle_since_us = exchange.inv_us


def _was_fenced(instance: StaticMember, exchange: Exchange) -> bool:
    actor = exchange.actor
    return any(
        at_us <= exchange.inv_us and (connection == actor.connection or (client_id, host_of(address)) == actor.named)
        for at_us, connection, client_id, address in instance.fenced
    )


def _prepares(group: ClassicGroup, exchange: Exchange, ask: JoinFacts) -> bool:
    """Return True if the row that decides begins a join phase, in each phase of a generation that the group may be in."""
    newest, member = group.newest_generation, group.members.get(exchange.member_id)
    leads = newest is not None and newest.leader == exchange.member_id
    changed = member is not None and member.present and member.digest and ask.digest != member.digest
    holds = frozenset({Condition.LEADER if leads else Condition.FOLLOWER, Condition.CHANGED if changed else Condition.UNCHANGED})
    release = group.member_identity.broker_version.release
    moment = Moment(_sender(group, exchange), Relation.NONE, holds, exchange.api_version, release)
    phases = "S" if group.state is State.STABLE else "KS"
    return all(Effect.PREPARES in effects(TABLE, JOIN_GROUP, moment._replace(phase=phase)) for phase in phases)


def _sender(group: ClassicGroup, exchange: Exchange) -> Sender:
    if exchange.member_id:
        return Sender.PENDING if exchange.member_id in group.issued else Sender.MEMBER
    if exchange.instance_id is None:
        return Sender.NEW
    return Sender.RETURNING if exchange.instance_id in group.instances else Sender.NEW_STATIC


def _undo_trigger(group: ClassicGroup, exchange: Exchange) -> None:
    """Take back what a first JoinGroup seemed to begin: it was refused, so it added no member."""
    newest, began_it = group.newest_generation, group.state is State.PREPARING and group.state_since_us == exchange.inv_us
    if newest is None or not began_it or any(group.waiting_joins()) or not any(group.present_members()):
        return
    group.observe(Observation.JOINED if newest.sync_done_us is None else Observation.STILL_SERVED, exchange.res_us)


def contradicts_itself(body: Any) -> bool:
    """Return True if a JoinGroup success lacks a required field. In a mixed group (KIP-848), which has no leader, epoch 0 is valid."""
    if body.error_code:
        return False
    return body.generation_id < 0 or not body.member_id or (body.generation_id == 0 and bool(body.leader))


def on_response(group: ClassicGroup, exchange: Exchange, body: Any) -> tuple[Event, ...]:
    events = _answered(group, exchange, body)
    if exchange.error != NONE:
        group.changed = True
    if exchange.error in {NONE, MEMBER_ID_REQUIRED} and not exchange.member_id and body.member_id:
        return (*events, *restarts.check(group, exchange, body.member_id))
    return events


def on_late_response(group: ClassicGroup, exchange: Exchange, body: Any) -> tuple[Event, ...]:
    """Process the answer to a JoinGroup whose client had hung up. It reaches no client, and shows which id the coordinator counts in."""
    if body.error_code == MEMBER_ID_REQUIRED:
        return _answered(group, exchange, body)
    if body.error_code == NONE and body.member_id:
        group.rebalance_history.on_late_join(group, exchange, body.member_id)
    return NOTHING


def _answered(group: ClassicGroup, exchange: Exchange, body: Any) -> tuple[Event, ...]:
    error = exchange.error = body.error_code
    if error in COORDINATOR_MOVES:
        return group.coordinator_moves(exchange)
    if error == NONE:
        return _joined(group, exchange, body) if body.generation_id > 0 else NOTHING
    if exchange.starts_phase and not exchange.member_id:
        _undo_trigger(group, exchange)
    if error == MEMBER_ID_REQUIRED:
        assert isinstance(exchange.facts, JoinFacts)
        group.accepted(exchange)
        if len(group.issued) >= ISSUED_KEPT:
            del group.issued[min(group.issued, key=lambda id_: group.issued[id_].issued_us)]
        group.issued[body.member_id] = IssuedId(exchange.res_us, exchange.facts.session_timeout_ms, exchange.actor)
        return NOTHING
    if exchange.member_id:
        member = group.member_of(exchange)
        if error == FENCED_INSTANCE_ID:
            return group.fence(exchange, member)
        if error in {UNKNOWN_MEMBER_ID, GROUP_MAX_SIZE_REACHED} and member.removed in {None, Removed.DROPPED}:
            group.rebalances.on_refused(group, exchange, error)
            group.remove(member, Removed.REFUSED, exchange.res_us)
        group.issued.pop(exchange.member_id, None)
    return NOTHING


def _joined(group: ClassicGroup, exchange: Exchange, body: Any) -> tuple[Event, ...]:
    if not body.leader:
        return NOTHING  # of a group of the consumer type, late
    group.accepted(exchange)
    events: list[Event] = []
    if exchange.member_id and exchange.member_id != body.member_id:
        events.append(Answered(exchange, body.member_id))
    generation = body.generation_id
    newest = group.newest_generation
    if newest is not None and generation < newest.generation:
        skew = group.clock_skew_us
        if newest.proven_us >= exchange.effective_us - skew:
            # It overlaps the newest generation, so it may be an old response that was captured late. Its request shows how old.
            _receive_late(group, exchange, body)
            passed = group.proof_beyond(generation, exchange.effective_us)
            if passed is not None:
                events.append(_regressed(group, exchange, passed, generation))
            return tuple(events)
        events.append(regressed := _regressed(group, exchange, newest, generation))
        _begin_again(group, exchange, regressed, f"the generation fell from {newest.generation} to {generation}")
        newest = None
    elif newest is not None and (anew := _why_anew(group, exchange, body, newest)) is not None:
        events.append(regressed := Regressed(exchange, generation, newest, anew))
        _begin_again(group, exchange, regressed, f"it began anew at generation {generation}")
        newest = None
    if newest is None or generation > newest.generation:
        newest = _new_generation(group, exchange, body)
    _adopt_joiner(group, exchange, body, newest, events)
    if body.members and body.member_id == body.leader and newest.roster is None:
        _adopt_roster(group, exchange, body, newest)
    return tuple(events)


def _begin_again(group: ClassicGroup, exchange: Exchange, regressed: Regressed, because: str) -> None:
    """Note that generations count from below again: the group had ended, or its coordinator has lost what it knew."""
    if regressed.explanation in {_DELETED, _EXPIRED}:
        group.begin_life()
    else:
        group.new_incarnation(exchange.res_us, because)
    group.accepted(exchange)


def _receive_late(group: ClassicGroup, exchange: Exchange, body: Any) -> None:
    """Note that a member got a generation that others had gone beyond by the time at which the answer was captured."""
    member, generation = group.members.get(body.member_id), body.generation_id
    if member is not None and member.joined is not None and generation > member.joined:
        member.joined_before, member.joined = member.joined, generation
        member.joined_frame = response_evidence(exchange, NONE, generation)
    elif member is not None and member.joined is not None and generation != member.joined:
        member.joined_before = max(generation, member.joined_before or generation)


def _regressed(group: ClassicGroup, exchange: Exchange, before: Generation, generation: int) -> Regressed:
    verdict = group.judge(exchange, NONE, issued=generation)
    why = _why_reset(group, exchange, before, verdict)
    return Regressed(exchange, generation, before, why, verdict if why is None else None)


def _why_anew(group: ClassicGroup, exchange: Exchange, body: Any, newest: Generation) -> str | None:
    """Return a lawful reason for a newcomer to get the newest generation's number again (the group started over), None if there is none."""
    if body.generation_id != newest.generation:
        return None
    if group.deleted_us is not None and newest.proven_us <= group.deleted_us < exchange.effective_us - group.clock_skew_us:
        return _DELETED
    roster = newest.roster
    if roster is None and not _led_anew(group, exchange, body, newest):
        return None
    if roster is not None and (body.member_id in roster or (exchange.instance_id and _may_replace(group, exchange, roster))):
        return None
    if newest.proven_us >= exchange.effective_us - group.clock_skew_us:
        return None  # parked with the others
    return _why_reset(group, exchange, newest, group.judge(exchange, NONE, issued=newest.generation - 1))


def _led_anew(group: ClassicGroup, exchange: Exchange, body: Any, newest: Generation) -> bool:
    """Return True if a generation not all of whose members are known has another leader, which did not replace the first, or a member
    whose id is newer, and none of the known ones' sessions lasts.
    """
    leader = group.members.get(newest.leader)
    instance = group.instances.get(exchange.instance_id or "")
    is_held = _may_be_held(group, exchange, None if instance is None else group.members.get(instance.member_id))
    takes_over = exchange.instance_id is not None and is_held and (leader is None or leader.instance_id == exchange.instance_id)
    known = (one for one in group.members.values() if one.joined == newest.generation or one is leader)
    differs = body.leader != newest.leader and not (takes_over and body.leader == body.member_id)
    return (differs or _names_newer_id(group, body, newest)) and not any(_lives(one, exchange) for one in known)


def _names_newer_id(group: ClassicGroup, body: Any, newest: Generation) -> bool:
    """Return True if an answer names a member whose id was issued after the newest generation was known."""
    named = (group.issued.get(id_) for id_ in (body.member_id, *(entry.member_id for entry in body.members)))
    return any(issued is not None and issued.issued_us > newest.proven_us + group.clock_skew_us for issued in named)


def _may_replace(group: ClassicGroup, exchange: Exchange, roster: dict[str, str | None]) -> bool:
    """Return True if a JoinGroup may have replaced a static member within a generation: its holder's session need not be over."""
    holders = (group.members.get(id_) for id_, instance_id in roster.items() if instance_id == exchange.instance_id)
    return any(_may_be_held(group, exchange, holder) for holder in holders)


def _may_be_held(group: ClassicGroup, exchange: Exchange, holder: Member | None) -> bool:
    return holder is None or not group.may_have_expired(holder, exchange.inv_us)


def _why_reset(group: ClassicGroup, exchange: Exchange, before: Generation, verdict: Verdict | None) -> str | None:
    """Return a lawful reason for the generation to have started over since ``before``, None if there can be none.

    :param verdict: on a success at a generation below ``before``, in the coordinator's present life.
    """
    if group.deleted_us is not None and group.deleted_us >= before.proven_us:
        return _DELETED
    if verdict is None or GENERATION not in verdict.about:
        return "all connections ended before the later generation was written, so the coordinator may have restarted without it"
    if before.roster is None:
        return "not all members of the earlier generation are known"
    if exchange.member_id in before.roster:
        return None  # a group that started over would not know this member
    for id_ in before.roster:
        member = group.members.get(id_)
        if member is None or member.session_timeout_ms is None:
            return "not all session timeouts are known"
        if _lives(member, exchange):
            return None
    return _EXPIRED


def _lives(member: Member, exchange: Exchange) -> bool:
    """Return True if the session of a member is known, and not over when another's JoinGroup was answered."""
    ends_us = member.last_frame_us + (member.session_timeout_ms or 0) * 1_000
    return member.removed is None and ends_us > exchange.res_us


def _new_generation(group: ClassicGroup, exchange: Exchange, body: Any) -> Generation:
    newest = Generation(
        body.generation_id,
        exchange.res_us,
        response_evidence(exchange, NONE, body.generation_id),
        body.leader,
        body.protocol_name,
    )
    began_us = group.state_since_us
    if group.state is not State.PREPARING:  # its beginning was not captured, but it had begun by the oldest waiting request
        began_us = min([exchange.inv_us, *(waiting.inv_us for waiting in group.waiting_joins())])
    group.join_took_us = max(0, exchange.res_us - began_us)
    group.joins = (group.joins[0] + 1, group.joins[1] + group.join_took_us)
    group.counters.took(group.cluster, JOIN, group.join_took_us)
    exchange.completes_generation = True
    group.generations.append(newest)
    del group.generations[:-GENERATIONS_KEPT]
    for older in group.generations[:-2]:
        older.roster = None
    group.generation_seen = newest.generation
    group.protocol_type = body.protocol_type or group.protocol_type
    group.observe(Observation.JOINED, exchange.res_us)
    return newest


def _adopt_joiner(group: ClassicGroup, exchange: Exchange, body: Any, newest: Generation, events: list[Event]) -> None:
    ask = exchange.facts
    assert isinstance(ask, JoinFacts)
    group.issued.pop(body.member_id, None)
    member = group.members.get(body.member_id)
    if member is None:
        member = group.members[body.member_id] = Member(body.member_id)
    group.protocol_type = group.protocol_type or ask.protocol_type
    member.actor = exchange.actor
    member.session_timeout_ms = ask.session_timeout_ms
    member.rebalance_timeout_ms = ask.rebalance_timeout_ms
    member.digest, member.protocols, member.reason, member.topics = ask.digest, ask.protocols, ask.reason, ask.topics
    if member.joined != body.generation_id:
        member.joined_before = member.joined
    member.joined = body.generation_id
    member.joined_us = exchange.res_us
    _note_idle(member, exchange, ask)
    member.least_interval_us = 0
    member.joined_frame = response_evidence(exchange, NONE, body.generation_id)
    member.parked_join = None
    member.refusals = member.rejoin_asked_us = member.fenced_us = None
    member.frames_after_fence = 0
    member.leaving = False
    member.last_frame_us = max(member.last_frame_us, exchange.res_us)
    member.last_api = JOIN_GROUP if member.last_api < 0 else member.last_api
    group.prove(member, exchange)
    if exchange.instance_id is not None:
        member.instance_id = exchange.instance_id
        _hold_instance(group, exchange, member, newest, events)
    group.changed = True


def _hold_instance(group: ClassicGroup, exchange: Exchange, member: Member, newest: Generation, events: list[Event]) -> None:
    assert exchange.instance_id is not None
    instance = group.instances.get(exchange.instance_id)
    if instance is None:
        group.instances[exchange.instance_id] = StaticMember(exchange.instance_id, member.id, held_us=exchange.res_us)
        return
    if instance.member_id == member.id:
        instance.held_us = instance.held_us or exchange.res_us
        return
    if exchange.member_id and instance.held_us:
        events.extend(group.unlawful(exchange))  # only an empty member id replaces a holder: this response is old, or wrong
        return
    unsure = abs(exchange.res_us - instance.held_us) <= group.clock_skew_us  # clocks may show the two in the wrong order
    if exchange.res_us < instance.held_us:
        group.remove(member, Removed.REPLACED, instance.held_us)  # captured late: the holder has replaced it since
        if unsure:
            instance.held_us = instance.settled_us = 0
        return
    old_id, instance.member_id = instance.member_id, member.id
    instance.held_us, instance.settled_us = 0 if unsure else exchange.res_us, 0
    if exchange.member_id:
        return  # the holder of an earlier incarnation was only a hint
    if newest.leader == old_id and exchange.api_version >= LEADER_NAMED_SINCE:
        newest.leader = member.id
    note = (exchange.res_us, exchange.actor.address, member.id)
    instance.replacements = [*instance.replacements[-REPLACEMENTS_KEPT:], note]
    instance.frames = [*instance.frames[-3:], response_evidence(exchange, NONE, member.joined)]
    old = group.members.get(old_id)
    if old is not None and old.removed is None:
        group.remove(old, Removed.REPLACED, exchange.res_us)
        group.rebalances.on_replaced(group, exchange, old, member.id)
    if newest.roster is not None and old_id in newest.roster:
        del newest.roster[old_id]
        newest.roster[member.id] = instance.id
    events.append(Replaced(exchange, instance, old_id))


def _adopt_roster(group: ClassicGroup, exchange: Exchange, body: Any, newest: Generation) -> None:
    """Set the roster from the leader's response, which names every member."""
    newest.roster = {entry.member_id: entry.group_instance_id for entry in body.members}
    newest.subscription_bytes = sum(len(entry.metadata) for entry in body.members)
    for id_, instance_id in newest.roster.items():
        member = group.members.get(id_)
        if member is None:
            member = group.members[id_] = Member(id_)
            member.last_frame_us = exchange.res_us
        if member.proven_us is None:
            member.proven_us = exchange.res_us
        left_since = member.removed == Removed.LEFT and member.removed_us >= newest.proven_us
        if member.removed not in {None, Removed.REPLACED} and not left_since:
            member.removed = None
        if instance_id is not None:
            member.instance_id = instance_id
            instance = group.instances.setdefault(instance_id, StaticMember(instance_id, id_))
            holder = group.members.get(instance.member_id)
            if instance.member_id != id_ and (holder is None or holder.joined != newest.generation):
                instance.member_id, instance.held_us, instance.settled_us = id_, 0, 0
            if instance.member_id == id_:
                instance.held_us = instance.held_us or exchange.res_us
    for member in list(group.members.values()):
        if member.present and member.id not in newest.roster:
            if member.joined == newest.generation and member.instance_id is not None:
                newest.roster[member.id] = member.instance_id  # replaced an instance after the generation was complete
            else:
                group.remove(member, Removed.DROPPED, exchange.res_us)

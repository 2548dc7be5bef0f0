"""Family S: static membership (KIP-345).

The trap: a restart of a static member is a replacement, and the loser of it is told so once. One replacement with a silent loser is the
feature at work; only a loser that comes back is a duplicate.
"""

from __future__ import annotations

from coordinator_model.findings import Blame, Certainty, Severity
from coordinator_model.groups.classic import ClassicGroup
from coordinator_model.groups.facts import Exchange, Instance, JoinAsk
from coordinator_model.groups.happenings import Replaced, Returned, WentOnFenced
from coordinator_model.rules.base import Breach, FrameRule, about, who, whom

_RETURN_WINDOW_US = 300_000_000  # a supervisor restarts a crashed process within its back-off, which grows to five minutes


def _window_us(exchange: Exchange) -> int:
    assert isinstance(exchange.ask, JoinAsk)
    return 2_000 * exchange.ask.session_timeout_ms


def _alternates(group: ClassicGroup, replaced: Replaced) -> Breach | None:
    exchange, instance = replaced.exchange, replaced.instance
    since = exchange.res_us - _window_us(exchange)
    recent = [at_us for at_us, _, _ in instance.replacements if at_us >= since]
    fenced = [at_us for at_us, *_ in instance.fenced if at_us >= since]
    if len(recent) < 3 or not fenced:
        return None
    return _duplicate(group, exchange, instance, f"changed hands {len(recent)} times within two session timeouts")


def _comes_back(group: ClassicGroup, returned: Returned) -> Breach | None:
    exchange, instance = returned.exchange, returned.instance
    since = exchange.inv_us - max(_window_us(exchange), _RETURN_WINDOW_US)
    if not any(at_us >= since for at_us, *_ in instance.fenced):
        return None
    holder = group.members.get(instance.member_id)
    if holder is None or holder.gone is not None or holder.actor.connection == exchange.actor.connection:
        return None
    return _duplicate(group, exchange, instance, "was asked for again, with an empty member id, by one that had just been fenced")


def _duplicate(group: ClassicGroup, exchange: Exchange, instance: Instance, observed: str) -> Breach:
    others = sorted({f"{client or 'no client id'} at {address}" for _, _, client, address in instance.fenced})
    holder = group.members.get(instance.member_id)
    if holder is not None:
        others = sorted({*others, f"{holder.actor.client_id or 'no client id'} at {holder.actor.address}"})
    rivals = ", ".join(others)
    return Breach(
        instance.id,
        f"More than one process uses group.instance.id {instance.id} in group {group.name}, and they fence each other: {rivals}; "
        f"latest to ask: {whom(exchange.actor)}.",
        f"instance id {instance.id} {observed}",
        tuple(instance.frames),
        actor=exchange.actor,
        member_id=instance.member_id,
        instance_id=instance.id,
    )


def _goes_on(group: ClassicGroup, went_on: WentOnFenced) -> Breach | None:
    member = went_on.member
    if member.frames_after_fence < 2:
        return None
    return Breach(
        member.id,
        f"{who(member)} goes on in group {group.name} after it was fenced: another process holds instance id {member.instance_id}.",
        f"{member.frames_after_fence} further requests after FENCED_INSTANCE_ID",
        tuple(member.fence_frames),
        **about(member),
    )


def _no_longer_fenced(group: ClassicGroup, member_id: str) -> bool:
    member = group.members.get(member_id)
    return member is None or member.fenced_us is None


S_01 = FrameRule(
    id="S-01",
    name="duplicate instance id",
    severity=Severity.ERROR,
    certainty=Certainty.CONFIRMED,
    blame=Blame.CONFIG,
    meaning="Two live processes share a group.instance.id and fence each other for ever; neither gets work done.",
    condition="A group.instance.id changed hands at least three times within two session timeouts and a holder was told "
    "FENCED_INSTANCE_ID meanwhile; or one that was told so asks for it again with an empty member id while another holds it.",
    expected="One process per group.instance.id.",
    action="Give each process a group.instance.id of its own; look at the addresses named.",
    false_alarms="One restart is one replacement with a silent loser: not counted.",
    checks={Replaced: _alternates, Returned: _comes_back},
)

S_02 = FrameRule(
    id="S-02",
    name="fenced instance keeps going",
    severity=Severity.ERROR,
    certainty=Certainty.HEURISTIC,
    blame=Blame.CLIENT,
    meaning="A client ignores an error that is meant to be fatal, and may go on processing.",
    condition="A member id sent at least two further requests, other than LeaveGroup, after its FENCED_INSTANCE_ID was delivered.",
    expected="A fenced client stops.",
    action="Stop the old process; find out why it still runs.",
    false_alarms="Requests already queued when the answer was sent: only those asked after it count.",
    folds_under=("S-01",),
    checks={WentOnFenced: _goes_on},
    over=_no_longer_fenced,
)

RULES = (S_01, S_02)

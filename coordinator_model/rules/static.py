"""Family S: static membership (KIP-345).

The restart of a static member is a replacement, and the replaced process gets FENCED_INSTANCE_ID once. One replacement whose loser stays
silent is lawful; only a loser that comes back is a duplicate.
"""

from __future__ import annotations

from collections.abc import Iterator

from coordinator_model.finding import BROKER, CERTAIN, CLIENT, CONFIG, CONFIRMED, CRITICAL, ERROR, HEURISTIC, INFO, WARNING
from coordinator_model.groups.classic.group import ClassicGroup
from coordinator_model.groups.classic.positions import Verdict
from coordinator_model.groups.epochs.data import EpochGroupData
from coordinator_model.groups.events import Contradicted, FenceIgnored, Inconsistent, LeftByItself, Needless, Replaced, Returned
from coordinator_model.groups.evidence import request_evidence, response_evidence
from coordinator_model.groups.records import NO_CLIENT, ClientInfo, Exchange, JoinFacts, Member, Removed, StaticMember, host_of
from coordinator_model.rules.base import Breach, Due, Matter, about_one, admission, rule, sender_text, timer_rule, who, whom
from coordinator_model.rules.epoch_checks import (
    GOES_ON_US,
    WHY_TWO,
    ignores_fence,
    instance_alternates,
    instance_changed,
    instance_wanted_back,
    no_longer_fenced,
)
from coordinator_model.rules.join_phase import processed_since
from coordinator_model.rules.unlawful import accepted
from coordinator_model.wire import API_NAMES
from coordinator_model.wire.constants import FENCED_INSTANCE_ID
from coordinator_model.wording import a_or_an, seconds

_UNATTENDED_US = 600_000_000  # time without a leader that watches the topics
_RETURN_WINDOW_US = 300_000_000  # a supervisor restarts a crashed process within its back-off, which grows to five minutes


def _window_us(exchange: Exchange) -> int:
    assert isinstance(exchange.facts, JoinFacts)
    return 2_000 * exchange.facts.session_timeout_ms


def _comes_back(group: ClassicGroup, returned: Returned) -> Breach | None:
    exchange, instance = returned.exchange, returned.instance
    since = exchange.inv_us - max(_window_us(exchange), _RETURN_WINDOW_US)
    if not any(at_us >= since for at_us, *_ in instance.fenced):
        return None
    holder = group.members.get(instance.member_id)
    if holder is None or holder.removed is not None or holder.actor.connection == exchange.actor.connection:
        return None
    if holder.actor.connection not in group.connections or holder.proven_us is None:
        return None  # the holder itself disconnected, perhaps unseen: its process restarts
    observed = "was asked for again, with an empty member id, by one that had just been fenced"
    return _duplicate(group, exchange, instance, holder.actor, observed)


@rule("duplicate instance id", ERROR, CONFIRMED, CONFIG, also=(_comes_back, instance_alternates, instance_wanted_back))
def S_01(group: ClassicGroup, replaced: Replaced) -> Breach | None:
    """Two live processes share a group.instance.id and fence each other for ever; neither gets work done.

    Condition: A group.instance.id changed hands at least three times within two session timeouts and at least two holders were told
        FENCED_INSTANCE_ID, or UNRELEASED_INSTANCE_ID by the newer protocols, meanwhile; or one that was told so asks for it again
        with an empty member id, or with the id of a member that had lost it, while another, still connected, holds it.
    Expected: One process per group.instance.id.
    Action: Look at the two processes named: stop one if it is left over from a restart, else give each a group.instance.id of its
        own.
    False alarms: One restart is one replacement with a silent loser: not counted.
    """
    exchange, instance = replaced.exchange, replaced.instance
    since = exchange.res_us - _window_us(exchange)
    recent = [at_us for at_us, _, _ in instance.replacements if at_us >= since]
    fenced = {connection for at_us, connection, *_ in instance.fenced if at_us >= since}
    if len(recent) < 3 or len(fenced) < 2:
        return None
    loser = group.members.get(replaced.old_member_id)
    before = loser.actor if loser is not None else NO_CLIENT
    return _duplicate(group, exchange, instance, before, f"changed hands {len(recent)} times within two session timeouts")


def _duplicate(group: ClassicGroup, exchange: Exchange, instance: StaticMember, before: ClientInfo, observed: str) -> Breach:
    """Return the breach of two processes, of which one (``before``) held the instance before the other requested it."""
    named = {one.named for one in (before, exchange.actor)}
    others = {(client_id, host_of(address)) for _, _, client_id, address in instance.fenced} - named
    more = f" and {len(others)} more" if others else ""
    return Breach(
        instance.id,
        f"Two processes use group.instance.id {instance.id} in group {group.name}, and they fence each other: {_process(before)} and "
        f"{_process(exchange.actor)}{more}. {WHY_TWO}",
        f"instance id {instance.id} {observed}",
        tuple(instance.frames),
        member_id=instance.member_id,
        instance_id=instance.id,
    )


def _process(actor: ClientInfo) -> str:
    return f"{actor.client_id or 'no client id'} at {actor.address or 'an unknown address'}"


def _holder(group: ClassicGroup, member: Member) -> str:
    """Return the process that holds the instance of a fenced member, as far as it is known, as text."""
    instance = group.instances.get(member.instance_id) if member.instance_id is not None else None
    holder = group.members.get(instance.member_id) if instance is not None and instance.member_id != member.id else None
    return who(holder) if holder is not None else "another process, which was not seen to take it,"


def _no_longer_fenced(group: ClassicGroup | EpochGroupData, member_id: str) -> bool:
    if isinstance(group, EpochGroupData):
        return no_longer_fenced(group, member_id)
    member = group.members.get(member_id)
    return member is None or member.fenced_us is None


@rule(
    "fenced instance keeps going", ERROR, HEURISTIC, CLIENT, suppressed_by=("S-01",), over=_no_longer_fenced, also=(ignores_fence,)
)
def S_02(group: ClassicGroup, ignored: FenceIgnored) -> Breach | None:
    """A client ignores an error that is meant to be fatal, and may go on processing.

    Condition: A member id sent at least two further requests, other than LeaveGroup, after its FENCED_INSTANCE_ID was delivered,
        and still does after 3 s and a heartbeat interval of its own.
    Expected: A fenced client stops.
    Action: Stop the fenced process, and find out why it still runs; if both are meant to run, give each a group.instance.id of its
        own.
    False alarms: Requests under way when the answer was sent, and a last commit on closing: hence the time.
    """
    member = ignored.member
    patience_us = max(GOES_ON_US, member.heartbeat_interval_us)
    if member.frames_after_fence < 2 or member.fenced_us is None or ignored.exchange.inv_us - member.fenced_us < patience_us:
        return None
    return Breach.of_member(
        member,
        f"{who(member)} goes on in group {group.name} after it was fenced: {_holder(group, member)} holds group.instance.id "
        f"{member.instance_id}. {WHY_TWO}",
        f"{member.frames_after_fence} further requests after FENCED_INSTANCE_ID",
        tuple(member.fence_frames),
    )


@rule("fenced id accepted", CRITICAL, CONFIRMED, BROKER, suppressed_by=("C-05",))
def S_03(group: ClassicGroup, verdict: Verdict) -> Breach | None:
    """A replaced static member is let through beside its successor: both work on the same partitions.

    Condition: A request under an instance id succeeded for a member id that another had replaced, and the successor had been given
        its assignment before that request can have been processed.
    Expected: FENCED_INSTANCE_ID.
    Action: Stop the named client. Brokers before 2.6.1 forget a replacement when the coordinator moves: upgrade them.
    False alarms: A replacement that is not written yet may be undone: the successor's first SyncGroup success is waited for.
    """
    return accepted(group, verdict, "S-03")


@rule("needless rebalance on restart", WARNING, CONFIRMED, BROKER)
def S_04(group: ClassicGroup, needless: Needless) -> Breach | None:
    """Static membership does not give what it is for: each restart stops the whole group.

    Condition: A JoinGroup with a known instance id and an empty member id came to a group whose members were all in sync, heard of
        within half a session, and offered the same protocols; nothing else that starts a join phase was asked, and the generation
        rose.
    Expected: The same generation at once, under a new member id.
    Action: Check the coordinator's version, and proxies that strip the instance id.
    False alarms: Groups whose members offer different protocols, and a second restart within one generation, are not judged.
    """
    exchange = needless.exchange
    generation = needless.generation
    return Breach(
        exchange.instance_id or "",
        f"The return of instance {exchange.instance_id} {whom(exchange.actor)} made group {group.name} rebalance from generation "
        f"{generation} to {generation + 1}, although its protocols were unchanged and nothing else called for it.",
        f"JoinGroup with a known instance id to a settled group answered at generation {generation + 1} instead of {generation}",
        (request_evidence(exchange), response_evidence(exchange, 0, generation + 1)),
        actor=exchange.actor,
        instance_id=exchange.instance_id,
        generation=generation + 1,
    )


@timer_rule("unattended leadership", WARNING, CONFIRMED, CONFIG)
def S_05(group: ClassicGroup) -> Iterator[Due]:
    """No member watches the subscribed topics: new partitions stay unread.

    Condition: The leader was replaced within its generation by a JoinGroup before v9, which is not told that it leads, and ten
        minutes passed without another generation.
    Expected: A leader that knows of it (KIP-814, JoinGroup v9).
    Action: Upgrade clients and brokers to 3.2 or later; until then, restart a member to force a rebalance.
    False alarms: None known.
    """
    newest = group.newest_generation
    leader = group.members.get(newest.leader) if newest is not None else None
    if newest is None or leader is None or leader.removed != Removed.REPLACED or leader.instance_id is None:
        return
    instance = group.instances.get(leader.instance_id)
    successor = group.members.get(instance.member_id) if instance is not None else None
    if successor is None or successor.joined != newest.generation or not any(group.present_members()):
        return

    def describe() -> Breach:
        return Breach.of_member(
            successor,
            f"No member leads group {group.name}: {who(successor)} took the place of the leader {leader.id} and was not told that it "
            "leads, so no member notices new topics or partitions until the next rebalance.",
            f"the leader of generation {newest.generation} was replaced by a JoinGroup before v9, and there has been no other since",
            (newest.proof, *admission(successor)),
            generation=newest.generation,
            subject="",
        )

    yield Due(leader.removed_us + _UNATTENDED_US, "", WARNING, describe)


def _absent(group: ClassicGroup) -> list[Member] | None:
    """Return the static members that a join phase waits for, None if it also waits for others."""
    missing = [member for member in group.present_members() if member.parked_join not in group.open]
    if not missing or any(member.instance_id is None or not member.last_frame for member in missing):
        return None
    return missing


@timer_rule("absent static member blocks the join phase", ERROR, CONFIRMED, CLIENT, matter=Matter.REQUEST)
def S_06(group: ClassicGroup) -> Iterator[Due]:
    """The group stands still for a member that is away: a static member is not dropped when it does not rejoin.

    Condition: A JoinGroup waits for longer than the largest rebalance timeout plus 2 s and a tenth, everybody else waits too, and
        only static members are missing.
    Expected: A static member comes back within its session timeout, and rejoins.
    Action: Start it again, or take it out of the group by its instance id (kafka-consumer-groups has no such option; the admin
        client's removeMembersFromConsumerGroup does it); shorten its session timeout.
    False alarms: Not judged while any member's rebalance timeout is unknown, or is longer than ten minutes.
    """
    held = [(since_us, waiting) for waiting in group.waiting_joins() if (since_us := processed_since(group, waiting)) is not None]
    absent = _absent(group)
    timeout_ms, known = group.rebalance_timeout_ms()
    if not held or absent is None or not known:
        return
    if timeout_ms > group.settings.unbounded_join_ms:
        return
    began_us, oldest = min(
        held, key=lambda pair: (pair[0], pair[1].offset)
    )  # the coordinator holds a JoinGroup only in a join phase

    def describe() -> Breach:
        names = ", ".join(
            f"instance {member.instance_id} ({who(member)}, last {a_or_an(member.last_frame)})" for member in absent[:5]
        )
        longest_us = max((member.session_timeout_ms or 0) for member in absent) * 1_000
        return Breach(
            "",
            f"The join phase of group {group.name} waits for static members that are away: {names}. It may take until their sessions "
            f"run out, which are up to {seconds(longest_us)} long.",
            f"in the join phase for longer than the rebalance timeout of {seconds(timeout_ms * 1_000)}; all others have asked",
            (request_evidence(oldest),),
            generation=group.generation,
            **about_one(absent),
        )

    yield Due(began_us + timeout_ms * 1_000 + group.settings.slack_us(timeout_ms), "", ERROR, describe)


@rule("instance id inconsistent", WARNING, CERTAIN, CLIENT, also=(instance_changed,))
def S_07(group: ClassicGroup, inconsistent: Inconsistent) -> Breach | None:
    """A static member does not say so in all its requests: fencing passes it by, and brokers since 3.0 may refuse it as unknown.

    Condition: A Heartbeat, SyncGroup, JoinGroup or OffsetCommit of a static member names another instance id or none, in a version
        that has the field.
    Expected: The same group.instance.id in every request.
    Action: Fix or upgrade that client library.
    False alarms: Commits without a generation leave it out on purpose: not judged.
    """
    exchange, member = inconsistent.exchange, inconsistent.member
    says = f"the instance id {exchange.instance_id}" if exchange.instance_id is not None else "no instance id"
    api = API_NAMES[exchange.api_key]
    return Breach.of_member(
        member,
        f"{who(member)} of group {group.name} joined as instance {member.instance_id}, and names {says} in its {api}: "
        f"it cannot be fenced as it should.",
        f"{api} v{exchange.api_version} of instance {member.instance_id} with {says}",
        (*admission(member), request_evidence(exchange)),
        generation=exchange.generation if exchange.generation >= 0 else None,
    )


@rule("static client leaves by itself", INFO, HEURISTIC, CLIENT)
def S_08(group: ClassicGroup, left: LeftByItself) -> Breach | None:
    """A static member that leaves on closing has none of the benefits of static membership.

    Condition: A LeaveGroup with the id of a static member was granted to the same client id on the same host.
    Expected: A static member goes silent when it stops, and comes back under its instance id.
    Action: Set that client not to leave on closing, where its library lets one choose; else group.instance.id gains nothing, and
        can be removed.
    False alarms: A tool that runs on the same host under the same client id.
    """
    exchange, member = left.exchange, left.member
    return Breach.of_member(
        member,
        f"{who(member)}, instance {member.instance_id}, left group {group.name} by itself: each of its restarts costs the group two "
        f"rebalances.",
        "LeaveGroup for a static member from its own client",
        (request_evidence(exchange), response_evidence(exchange, 0)),
        generation=member.joined,
        subject=member.instance_id or member.id,
    )


@rule("rightful owner fenced", ERROR, CONFIRMED, BROKER, suppressed_by=("C-05",))
def S_09(group: ClassicGroup, contradicted: Contradicted) -> Breach | None:
    """The right process is told that another took its place, and stops for good.

    Condition: FENCED_INSTANCE_ID to the latest holder of an instance id while nobody asked for it, and then an answer that shows it
        as the holder still, or one that it had replaced.
    Expected: Only who was replaced is fenced.
    Action: Restart the client: it stopped for good, and its partitions are idle. Keep the frames and the coordinator's log of that
        moment, and report them.
    False alarms: A replacement that could not be written is undone: not judged while one was asked for.
    """
    refusal, exchange = contradicted.refusal, contradicted.exchange
    if refusal.error != FENCED_INSTANCE_ID:
        return None
    if contradicted.shown_by == refusal.member_id:
        shown = "nobody took its place: it is still the holder"
    else:
        shown = f"the coordinator holds {contradicted.shown_by} for the holder, whom it had replaced"
    return Breach.of_sender(
        refusal,
        f"The coordinator {exchange.broker} fenced {sender_text(refusal)} of group {group.name}, the rightful holder "
        f"of instance id {refusal.instance_id}; {shown}.",
        f"FENCED_INSTANCE_ID to the latest holder of {refusal.instance_id}, and then an answer that shows {contradicted.shown_by} as "
        f"holder; {refusal.text}",
        (*refusal.frames, response_evidence(exchange, 0)),
    )


@timer_rule("partitions parked on an absent static member", WARNING, CONFIRMED, CLIENT)
def S_10(group: ClassicGroup) -> Iterator[Due]:
    """Partitions are assigned to a member that is away: they are not read until it returns or its session runs out.

    Condition: A static member is in a generation's member list and was given partitions, has not joined it, and sent no frame since
        before for half its session timeout.
    Expected: It comes back shortly.
    Action: Start it again, or remove it by its instance id; shorten its session timeout.
    False alarms: A client whose frames are not captured: judged only if some were.
    """
    newest = group.newest_generation
    if newest is None or newest.roster is None or newest.leader_synced_us is None:
        return
    for id_, instance_id in newest.roster.items():
        if instance_id is None or id_ in newest.idle:
            continue
        member = group.members.get(id_)
        if member is None or member.joined == newest.generation:
            continue
        if not member.present or not member.last_frame or member.last_frame_us >= newest.proven_us or group.parked(member):
            continue
        if member.session_timeout_ms is None:
            continue
        ends_ms = member.session_timeout_ms

        def describe(member: Member = member, ends_ms: int = ends_ms) -> Breach:
            return Breach.of_member(
                member,
                f"{who(member)}, instance {member.instance_id}, was given partitions in generation {newest.generation} of group "
                f"{group.name} although it has been away since before: they idle until it returns or its session of "
                f"{seconds(ends_ms * 1_000)} runs out.",
                f"in the member list of generation {newest.generation}, without a frame since before that generation",
                (newest.proof,),
                generation=newest.generation,
                subject=member.instance_id or "",
            )

        yield Due(newest.proven_us + ends_ms * 500, instance_id, WARNING, describe)

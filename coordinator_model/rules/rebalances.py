"""Family R: rebalances that do not end.

The trap: a healthy broker ends every phase exactly at its timeout, so what is overdue beyond the timeout is the broker's doing, while
what helps an operator is to hear at half time whom the others wait for.
"""

from __future__ import annotations

from collections.abc import Iterator

from coordinator_model.findings import Blame, Certainty, Severity
from coordinator_model.groups.classic import ClassicGroup, request_evidence
from coordinator_model.groups.facts import Exchange, Member, Round
from coordinator_model.groups.happenings import ToldToRejoin
from coordinator_model.groups.state import State
from coordinator_model.rules.base import Breach, Due, FrameRule, TimerRule, about, seconds, who


def _patience_us(group: ClassicGroup) -> tuple[int, bool]:
    """How long a join phase may last, in microseconds, and whether that bound is known rather than guessed."""
    timeout_ms, complete = group.rebalance_timeout_ms()
    settings = group.settings
    if timeout_ms > settings.unbounded_join_ms:
        return settings.unbounded_join_ms * 1_000, False
    timeout_ms = max(timeout_ms, settings.group_initial_rebalance_delay_ms)
    return timeout_ms * (1_000 if complete else 2_000), complete


def _missing(group: ClassicGroup) -> list[Member]:
    """Members that the join phase waits for: proven, not gone, and without a JoinGroup under way."""
    return [member for member in group.present_members() if member.parked_join not in group.open]


def _join_overdue(group: ClassicGroup) -> Iterator[Due]:
    waiting = [exchange for exchange in group.waiting_joins() if exchange.effective_us >= 0]
    if not waiting:
        return
    oldest = min(waiting, key=lambda exchange: exchange.effective_us)
    patience_us, known = _patience_us(group)
    slack_us = group.settings.slack_us(patience_us // 1_000)
    since = oldest.effective_us

    def describe(severity: Severity) -> Breach:
        return _join_breach(group, oldest, len(waiting), patience_us, severity, known=known)

    yield Due(since + patience_us // 2 + slack_us, "", Severity.WARNING, lambda: describe(Severity.WARNING))
    if patience_us // 1_000 < group.settings.unbounded_join_ms:
        yield Due(since + patience_us + slack_us, "", Severity.ERROR, lambda: describe(Severity.ERROR))


def _join_breach(
    group: ClassicGroup, oldest: Exchange, waiting: int, patience_us: int, severity: Severity, *, known: bool
) -> Breach:
    missing = _missing(group)
    names = ", ".join(who(member) for member in missing[:5])
    if missing:
        blocked = f"it waits for {names}" + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
    elif group.issued:
        issued = ", ".join(f"{id_} (client {pending.actor.client_id})" for id_, pending in list(group.issued.items())[:3])
        blocked = f"every known member has asked; ids handed out and not used: {issued}"
    else:
        blocked = "every known member has asked"
    allowed = f"{seconds(patience_us)}{'' if known else ' (guessed: not all rebalance timeouts are known)'}"
    stage = "is overdue" if severity is Severity.ERROR else "has used half of its time"
    culprit = missing[0] if missing else None
    return Breach(
        "",
        f"The join phase of group {group.name} {stage}: {waiting} JoinGroup requests wait, allowed {allowed}; {blocked}.",
        f"{waiting} unanswered JoinGroup requests, the oldest since before {'the timeout' if severity is Severity.ERROR else 'half time'}",
        (request_evidence(oldest),),
        generation=group.generation,
        blame=Blame.CLIENT if missing or group.issued else Blame.BROKER,
        certainty=None if known else Certainty.HEURISTIC,
        **({} if culprit is None else about(culprit)),
    )


def _unsynced(group: ClassicGroup, newest: Round) -> Iterator[Member]:
    """Members that were handed the newest generation, still live, and have not sent their SyncGroup for it."""
    for member in group.members.values():
        if member.joined == newest.generation and member.synced != newest.generation and member.present:
            alive = member.actor.connection in group.lines or member.last_frame_us > member.joined_us
            if alive and member.parked_join not in group.open:
                yield member


def _timeout_us(group: ClassicGroup, member: Member) -> int:
    """The sync timer that this member's round runs under, as far as it is known."""
    timeout_ms, _ = group.rebalance_timeout_ms()
    return min(max(timeout_ms, member.rebalance_timeout_ms or 0), group.settings.unbounded_join_ms) * 1_000


def _leader_not_syncing(group: ClassicGroup) -> Iterator[Due]:
    newest = group.round
    if newest is None or newest.leader_synced_us is not None or group.state is not State.COMPLETING:
        return
    for member in _unsynced(group, newest):
        if member.id != newest.leader:
            continue
        timeout_us = _timeout_us(group, member)

        def describe(member: Member = member, timeout_us: int = timeout_us) -> Breach:
            return Breach(
                member.id,
                f"{who(member)} leads generation {newest.generation} of group {group.name} and has sent no assignment: "
                f"{len(newest.roster or ())} members wait for its SyncGroup (allowed {seconds(timeout_us)}).",
                f"no SyncGroup from the leader since it was handed generation {newest.generation}; "
                f"its last frame was a {member.last_frame}",
                (newest.proof,) if member.joined_frame is None else (member.joined_frame,),
                generation=newest.generation,
                **about(member),
            )

        yield Due(member.joined_us + timeout_us // 2, member.id, Severity.WARNING, describe)
        late_us = timeout_us + group.settings.slack_us(timeout_us // 1_000)
        yield Due(member.joined_us + late_us, member.id, Severity.ERROR, describe)


def _follower_not_syncing(group: ClassicGroup) -> Iterator[Due]:
    newest = group.round
    if newest is None or group.state not in {State.COMPLETING, State.STABLE}:
        return
    for member in _unsynced(group, newest):
        if member.id == newest.leader:
            continue
        timeout_us = _timeout_us(group, member)

        def describe(member: Member = member, timeout_us: int = timeout_us) -> Breach:
            return Breach(
                member.id,
                f"{who(member)} was handed generation {newest.generation} of group {group.name} and has not asked for its assignment: "
                f"the coordinator will remove it {seconds(timeout_us)} after the join, even if it heartbeats.",
                f"no SyncGroup since it was handed generation {newest.generation}; its last frame was a {member.last_frame}",
                () if member.joined_frame is None else (member.joined_frame,),
                generation=newest.generation,
                **about(member),
            )

        yield Due(member.joined_us + timeout_us // 2, member.id, Severity.WARNING, describe)
        late_us = timeout_us + group.settings.slack_us(timeout_us // 1_000)
        yield Due(member.joined_us + late_us, member.id, Severity.ERROR, describe)


def _sync_not_completed(group: ClassicGroup) -> Iterator[Due]:
    newest = group.round
    if newest is None or newest.leader_synced_us is None or newest.sync_done_us is not None or group.state is not State.COMPLETING:
        return
    waiting = [exchange for exchange in group.waiting_syncs() if exchange.generation == newest.generation]
    if not waiting:
        return
    allowed_us = group.settings.write_timeout_ms * 1_000 + group.settings.slack_us(group.settings.write_timeout_ms)

    def describe() -> Breach:
        return Breach(
            "",
            f"The leader of group {group.name} sent the assignment of generation {newest.generation}, and the coordinator "
            f"{group.broker} has answered nobody: {len(waiting)} members wait.",
            f"{len(waiting)} unanswered SyncGroup requests {seconds(allowed_us)} after the leader's",
            (request_evidence(waiting[0]),),
            generation=newest.generation,
        )

    yield Due(newest.leader_synced_us + allowed_us, "", Severity.ERROR, describe)


def _does_not_rejoin(group: ClassicGroup, told: ToldToRejoin) -> Breach | None:
    member, now_us = told.member, told.exchange.res_us
    if member.rejoin_asked_us is None or member.rebalance_timeout_ms is None:
        return None
    timeout_us = min(member.rebalance_timeout_ms, group.settings.unbounded_join_ms) * 1_000
    waited_us = now_us - member.rejoin_asked_us
    if waited_us <= timeout_us // 2:
        return None
    others = sum(1 for _ in group.waiting_joins())
    return Breach(
        member.id,
        f"{who(member)} heartbeats but does not rejoin group {group.name}: told to {seconds(waited_us)} ago, "
        f"{others} others wait for it; the coordinator drops it after {seconds(timeout_us)}.",
        f"REBALANCE_IN_PROGRESS to its heartbeats for {seconds(waited_us)} without a JoinGroup",
        tuple(member.rejoin_frames),
        generation=told.exchange.generation,
        severity=Severity.ERROR if waited_us > timeout_us else Severity.WARNING,
        **about(member),
    )


def _rejoined(group: ClassicGroup, member_id: str) -> bool:
    member = group.members.get(member_id)
    return member is None or member.rejoin_asked_us is None or member.gone is not None


R_01 = TimerRule(
    id="R-01",
    name="join phase overdue",
    severity=Severity.ERROR,
    certainty=Certainty.CONFIRMED,
    blame=Blame.CLIENT,
    meaning="The whole group is idle: everybody has stopped consuming and waits for the join phase to end.",
    condition="A JoinGroup waits for longer than the largest rebalance timeout of the members, plus 2 s and a tenth. A warning at half "
    "of that time names who is missing.",
    expected="The coordinator ends the join phase when every member has rejoined, at the latest after the largest rebalance timeout.",
    action="Act on the member named as missing; if none is missing, look at the coordinator.",
    false_alarms="When not every member's rebalance timeout was seen, twice the largest known is taken and the finding is heuristic. "
    "A rebalance timeout beyond ten minutes counts as ten, and gives a warning only.",
    folds_under=("R-08",),
    due=_join_overdue,
)

R_02 = TimerRule(
    id="R-02",
    name="leader not syncing",
    severity=Severity.ERROR,
    certainty=Certainty.CONFIRMED,
    blame=Blame.CLIENT,
    meaning="The member that has to compute the assignment does not deliver it; everybody waits. Brokers before 2.8.1 wait for ever.",
    condition="The leader was handed the generation, its connection lives, and it sent no SyncGroup: a warning at half the rebalance "
    "timeout, an error past it.",
    expected="The leader sends its assignment with SyncGroup as soon as it has the member list.",
    action="Take a thread dump of the leader: look at its assignor and its metadata requests.",
    false_alarms="A leader whose connection ended is a T-04. A static leader replaced before JoinGroup v9 does not know that it leads.",
    due=_leader_not_syncing,
)

R_03 = TimerRule(
    id="R-03",
    name="follower not syncing",
    severity=Severity.WARNING,
    certainty=Certainty.CONFIRMED,
    blame=Blame.CLIENT,
    meaning="A member joined and does not fetch its assignment; its partitions are idle and it will be removed although it heartbeats.",
    condition="A follower was handed the generation and sent no SyncGroup for half the rebalance timeout (warning), or past it (error).",
    expected="A member sends SyncGroup right after its JoinGroup was answered.",
    action="Look at that client's rebalance callback and deserialiser.",
    false_alarms="A JoinGroup answer lost between the capture and the client.",
    folds_under=("R-02",),
    due=_follower_not_syncing,
)

R_04 = TimerRule(
    id="R-04",
    name="assignment sent, nobody answered",
    severity=Severity.ERROR,
    certainty=Certainty.CONFIRMED,
    blame=Blame.BROKER,
    meaning="The coordinator cannot write the assignment: its offsets partition lacks in-sync replicas, or its thread is stuck.",
    condition="The leader's SyncGroup was captured, and no SyncGroup was answered for the write timeout (5 s) plus 2 s and a tenth.",
    expected="The coordinator answers every waiting SyncGroup once the assignment is written.",
    action="Look at the in-sync replicas of the group's __consumer_offsets partition and at the coordinator's threads.",
    false_alarms="None known; a closed connection is owed no answer.",
    due=_sync_not_completed,
)

R_08 = FrameRule(
    id="R-08",
    name="heartbeats but never rejoins",
    severity=Severity.ERROR,
    certainty=Certainty.CONFIRMED,
    blame=Blame.CLIENT,
    meaning="A member's heartbeat thread lives while its poll loop does not: everybody waits for it until it is dropped.",
    condition="The member's heartbeats were answered REBALANCE_IN_PROGRESS for more than half of its rebalance timeout (warning), or all "
    "of it (error), and it sent no JoinGroup.",
    expected="A member told to rejoin sends JoinGroup at its next poll.",
    action="Find what blocks that client's poll loop; process fewer records per poll, or raise max.poll.interval.ms.",
    false_alarms="None while its JoinGroup or SyncGroup is under way.",
    checks={ToldToRejoin: _does_not_rejoin},
    over=_rejoined,
)

RULES = (R_01, R_02, R_03, R_04, R_08)

"""Family T: sessions and time.

The trap: a session's end is invisible. It has certainly ended only a session timeout after the last frame, plus what a busy broker may
be late by; and it does not run at all while a JoinGroup or SyncGroup of the member waits for its answer.
"""

from __future__ import annotations

from coordinator_model.findings import Blame, Certainty, Severity
from coordinator_model.groups.classic import ClassicGroup
from coordinator_model.groups.facts import Member
from coordinator_model.groups.happenings import FellSilent
from coordinator_model.rules.base import Breach, FrameRule, about, seconds, who


def session_end_us(group: ClassicGroup, member: Member) -> int | None:
    """When this member's session has certainly run out if nothing more is heard of it; None while it cannot."""
    # The others may complete a round without it before slack has passed: that it was dropped then does not explain its silence.
    waited_for = member.present or (member.gone == "dropped" and member.last_frame_us < member.gone_us)
    if not waited_for or member.session_timeout_ms is None or group.parked(member):
        return None
    return member.last_frame_us + member.session_timeout_ms * 1_000 + group.settings.slack_us(member.session_timeout_ms)


def _silent_death(group: ClassicGroup, silent: FellSilent) -> Breach | None:
    member = silent.member
    if member.leaving:
        return None
    silence_us = silent.at_us - member.last_frame_us
    return Breach(
        member.id,
        f"{who(member)} fell silent in group {group.name} without leaving: nothing for {seconds(silence_us)}, its session "
        f"timeout is {seconds((member.session_timeout_ms or 0) * 1_000)}; its partitions were idle meanwhile.",
        f"no frame since a {member.last_frame}, and no LeaveGroup",
        () if member.joined_frame is None else (member.joined_frame,),
        generation=member.joined,
        **about(member),
    )


def _heard_or_replaced(group: ClassicGroup, member_id: str) -> bool:
    """Whether the member speaks again, or the group has completed a round without it."""
    member, newest = group.members.get(member_id), group.round
    if member is None or member.gone != "silent":
        return True
    return newest is not None and newest.roster is not None and member_id not in newest.roster


T_04 = FrameRule(
    id="T-04",
    name="silent death",
    severity=Severity.INFO,
    certainty=Certainty.CONFIRMED,
    blame=Blame.CLIENT,
    meaning="A member vanished without LeaveGroup; detecting it cost the group a whole session timeout.",
    condition="No frame of the member for its session timeout plus 2 s and a tenth, no LeaveGroup, and no JoinGroup or SyncGroup of it "
    "under way.",
    expected="A heartbeat within the session timeout, or a LeaveGroup.",
    action="Find out why that process died or froze: crash, memory limit, suspended host, network.",
    false_alarms="A client that moved to a path that is not captured. A static member lawfully goes silent when it restarts.",
    checks={FellSilent: _silent_death},
    over=_heard_or_replaced,
)

RULES = (T_04,)

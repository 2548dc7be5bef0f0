"""Rule M-14: a client asks to join, and is not let in.

The reason is in the answer, and decides who has to act. Many clients take the first refusal for final: they do not ask again, and their
process looks healthy. So one refusal counts, too, unless the client is let in soon afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from coordinator_model.finding import BROKER, CERTAIN, CLIENT, CONFIG, ERROR, WARNING, Blame, Severity
from coordinator_model.groups.arrivals import Arrival, Refusal, Stage, process_subject
from coordinator_model.groups.classic.group import ClassicGroup
from coordinator_model.groups.epochs.data import EpochGroupData, partitions_text
from coordinator_model.groups.epochs.kinds import CONSUMER, FEATURES, KIND_BY_API
from coordinator_model.groups.epochs.records import EpochMember
from coordinator_model.groups.evidence import process_of
from coordinator_model.groups.protocol.epochs import TABLE
from coordinator_model.groups.records import Removed
from coordinator_model.rules.base import Breach, Due, Matter, severity_of_absence, the_client, timer_rule, who, whom
from coordinator_model.wire import API_NAMES, error_name
from coordinator_model.wire.constants import (
    FENCED_MEMBER_EPOCH,
    GROUP_AUTHORIZATION_FAILED,
    GROUP_MAX_SIZE_REACHED,
    INVALID_REGULAR_EXPRESSION,
    INVALID_REQUEST,
    SHARE_GROUP_HEARTBEAT,
    STREAMS_GROUP_HEARTBEAT,
    TOPIC_AUTHORIZATION_FAILED,
    UNRELEASED_INSTANCE_ID,
    UNSUPPORTED_ASSIGNOR,
    UNSUPPORTED_VERSION,
)
from coordinator_model.wording import a_or_an, begin, clock, cost_so_far, counted, plural, seconds

_REPEATED: Final = 3
_LASTS_US: Final = 3_000_000  #: for which refusals are repeated, or the holder of an instance id sends nothing
_PATIENCE_US: Final = 10_000_000  #: after a single refusal
_PAUSES: Final = 2  #: heartbeat intervals after which a holder is silent
_USUAL_INTERVAL_MS: Final = 5_000


class Cause(NamedTuple):
    """What a refusal means, and who can do something about it."""

    blame: Blame
    action: str


_CAUSES: Final = {
    FENCED_MEMBER_EPOCH: Cause(
        BROKER,
        "Upgrade the brokers to 4.2 or later. Until then restart that client, so that it comes under another member id, or wait for the "
        "end of its session.",
    ),
    UNRELEASED_INSTANCE_ID: Cause(
        CLIENT,
        "Restart the refused client once the session named has ended: many libraries take the first such refusal for final and do not "
        "ask again. Let the process close its consumer when it is stopped, so that it releases its instance id; a shorter "
        "consumer.session.timeout.ms of the group shortens the wait.",
    ),
    GROUP_MAX_SIZE_REACHED: Cause(CONFIG, "Raise the size that the brokers allow, or run fewer members."),
    GROUP_AUTHORIZATION_FAILED: Cause(
        CONFIG, "Grant READ on this group to the principal of that client, or mend its credentials. Then restart it if it gave up."
    ),
    TOPIC_AUTHORIZATION_FAILED: Cause(
        CONFIG, "Grant DESCRIBE and READ on the topics that it subscribes to to the principal of that client."
    ),
    INVALID_REQUEST: Cause(CLIENT, "Upgrade that client's library: its request to join is refused for its form."),
    INVALID_REGULAR_EXPRESSION: Cause(CLIENT, "Mend the client's subscription pattern: brokers take RE2 syntax."),
    UNSUPPORTED_VERSION: Cause(CONFIG, "Use a version of the client's library that the brokers support."),
    UNSUPPORTED_ASSIGNOR: Cause(
        CONFIG, "Name an assignor in group.remote.assignor of that client that the brokers have in group.consumer.assignors."
    ),
}
_ENDS_BY_ITSELF: Final = frozenset({FENCED_MEMBER_EPOCH, UNRELEASED_INSTANCE_ID, GROUP_MAX_SIZE_REACHED})
"""A session ends, or a member leaves; the others stay refused until somebody acts."""

_ONLY_ONE: Final = frozenset({SHARE_GROUP_HEARTBEAT, STREAMS_GROUP_HEARTBEAT})
"""Heartbeats whose clients have no other protocol; a consumer may go on with the classic one."""

_OTHER: Final = Cause(CLIENT, "Look the error up, and read that client's log.")
_SIZES: Final = {"classic": "group.max.size", CONSUMER: "group.consumer.max.size"}


@timer_rule("not let in", ERROR, CERTAIN, CLIENT, matter=Matter.JOINS, suppressed_by=("C-10", "E-06", "S-01"))
def M_14(group: ClassicGroup | EpochGroupData) -> Iterator[Due]:
    """A client cannot become a member. Its process may look healthy, and reads nothing.

    Condition: A client's requests to join, or to learn its coordinator, were refused at least three times over 3 s, with one error
        and none accepted between (an error where the group has no member, but for GROUP_MAX_SIZE_REACHED, UNRELEASED_INSTANCE_ID
        and FENCED_MEMBER_EPOCH, which end by themselves); or once, and it was not let in for 10 s. UNSUPPORTED_VERSION of a share
        or Streams group's heartbeat counts at once: the cluster does not offer that type of group (an error likewise).
        UNRELEASED_INSTANCE_ID counts after 3 s where the connection of the holder has ended or it sent nothing for two heartbeat
        intervals, 10 s after the holder ceased to be a member, and 10 s after a single refusal beside a holder that lives (an error
        if it is refused again after the longest session). A client is known again by its instance id, or by client id and host; the
        threads of a Kafka Streams process that are refused with one error count as one, unless that ends by itself.
    Expected: A member id and an epoch or generation.
    Action: What to do depends on the error, and is said with each finding.
    False alarms: Several processes with one client id on one host count as one client.
    """
    for subject, one in _turned_back(group).items():
        client, refused = one.client, one.refused
        holder = _holder(group, client, refused)
        due = _due(group, client, refused, holder)
        if due is None:
            continue
        at_us, severity = due

        def describe(subject: str = subject, one: _TurnedBack = one, holder: EpochMember | None = holder) -> Breach:
            return _breach(group, subject, one, holder)

        yield Due(at_us, subject, severity, describe, _until_us(group, client, refused, holder))


class _TurnedBack(NamedTuple):
    """A client that is refused, or the threads of one."""

    client: Arrival  #: the newest of the threads, under the client id of their process
    refused: Refusal  #: of all of them
    threads: int = 1


def _turned_back(group: ClassicGroup | EpochGroupData) -> dict[str, _TurnedBack]:
    """Return the clients that are refused, by subject."""
    found: dict[str, _TurnedBack] = {}
    for subject, client in group.arrivals.clients.items():
        refused = client.refusal
        if refused is None or client.stage > Stage.JOINS:
            continue
        process = subject if refused.error in _ENDS_BY_ITSELF else process_subject(subject, client)
        if process == subject:
            found[subject] = _TurnedBack(client, refused)
            continue
        threads, before = 1, found.get(process)
        if before is not None and before.refused.error == refused.error:
            threads, refused = before.threads + 1, _together(before.refused, refused)
        found[process] = _TurnedBack(client._replace(actor=process_of(client.actor)), refused, threads)
    return found


def _together(before: Refusal, newer: Refusal) -> Refusal:
    return newer._replace(
        first_us=min(before.first_us, newer.first_us),
        times=before.times + newer.times,
        frames=(*before.frames[:2], newer.frames[-1]),
    )


def _holder(group: ClassicGroup | EpochGroupData, client: Arrival, refused: Refusal) -> EpochMember | None:
    """Return the member in whose place the client wants to be: that with its instance id, or itself."""
    if isinstance(group, ClassicGroup):
        return None
    if refused.error == UNRELEASED_INSTANCE_ID:
        return group.members.get(group.instances.get(client.instance_id or "", ""))
    return group.members.get(client.member_id) if refused.error == FENCED_MEMBER_EPOCH else None


def _due(
    group: ClassicGroup | EpochGroupData, client: Arrival, refused: Refusal, holder: EpochMember | None
) -> tuple[int, Severity] | None:
    if refused.error == UNRELEASED_INSTANCE_ID and isinstance(group, EpochGroupData) and holder is not None:
        return _due_by_holder(group, client, refused, holder)
    if refused.error == UNSUPPORTED_VERSION and refused.api_key in _ONLY_ONE:
        return refused.last_us, severity_of_absence(group)  # no such client is let in before somebody acts
    if refused.times >= _REPEATED and refused.last_us - refused.first_us >= _LASTS_US:
        return refused.last_us, WARNING if refused.error in _ENDS_BY_ITSELF else severity_of_absence(group)
    return refused.first_us + _PATIENCE_US, WARNING


def _due_by_holder(group: EpochGroupData, client: Arrival, refused: Refusal, holder: EpochMember) -> tuple[int, Severity] | None:
    """Return when the join is overdue while another holds the instance id. E-06 reports repeated joins, E-18 one that is away."""
    if holder.removed == Removed.AWAY:
        return None
    if holder.removed is not None:
        gave_up = client.actor.connection not in group.connections and holder.accepted_us > refused.last_us + _PATIENCE_US
        return None if gave_up else (max(refused.last_us, holder.removed_us + _PATIENCE_US), WARNING)
    if _hung_up(group, holder):
        return max(refused.last_us, refused.first_us + _LASTS_US), WARNING
    if client.member_id in group.members:
        return None  # S-01 reports one that had the instance id
    if _asked_once(refused) and holder.accepted_us > refused.first_us + _PATIENCE_US:
        stays = group.outlasts_sessions(refused.last_us - refused.first_us)
        return (refused.last_us, ERROR) if stays else (refused.first_us + _PATIENCE_US, WARNING)
    silent_us = holder.last_frame_us + _PAUSES * (holder.interval_ms or _USUAL_INTERVAL_MS) * 1_000
    return max(refused.last_us, refused.first_us + _LASTS_US, silent_us), WARNING


def _asked_once(refused: Refusal) -> bool:
    """Return True if the first refused client gave up; what came later is another one, or a second attempt."""
    return refused.times == 1 or refused.frames[1].at_us > refused.first_us + _PATIENCE_US


def _hung_up(group: EpochGroupData, member: EpochMember) -> bool:
    return member.disconnected_us >= member.last_frame_us > 0 and member.actor.connection not in group.connections


def _until_us(group: ClassicGroup | EpochGroupData, client: Arrival, refused: Refusal, holder: EpochMember | None) -> int | None:
    """Return until when a client counts as waiting: while its connection stands, else for a while after it asked last."""
    if client.actor.connection in group.connections:
        return None
    ends_us = 0
    if isinstance(group, EpochGroupData) and holder is not None and not _lives(holder, refused):
        # Until the session ends that the holder had then, and no later one.
        ends_us = min(_ends_us(group, holder), refused.last_us + group.shortest_session_ms(holder) * 1_000)
    return max(refused.last_us, ends_us) + group.settings.quiet_ms * 1_000


def _lives(holder: EpochMember, refused: Refusal) -> bool:
    return holder.removed is None and holder.accepted_us > refused.last_us


def _ends_us(group: EpochGroupData, holder: EpochMember) -> int:
    """Return when the session of a holder ends at the earliest, or was over."""
    return holder.removed_us if holder.removed is not None else holder.accepted_us + group.shortest_session_ms(holder) * 1_000


def _breach(group: ClassicGroup | EpochGroupData, subject: str, one: _TurnedBack, holder: EpochMember | None) -> Breach:
    client, refused = one.client, one.refused
    cause = _CAUSES.get(refused.error, _OTHER)
    asks_to_join = client.stage is Stage.JOINS
    member = f"member {client.member_id}" if client.member_id else "a new member"
    static = "" if client.instance_id is None else f", instance {client.instance_id}"
    name, api = error_name(refused.error), API_NAMES[refused.api_key]
    lasts = f" over {seconds(refused.last_us - refused.first_us)}" if refused.times > 1 else ""
    times = f"{refused.times} times since" if refused.times > 1 else "at"
    words = f" (“{refused.reason}”)" if refused.reason else ""
    if one.threads > 1:
        member = f"{counted(one.threads, 'thread')} of {the_client(client.actor)}"
    elif asks_to_join:
        member = f"{begin(member)}{static} {whom(client.actor)}"
    else:
        member = begin(the_client(client.actor))
    if asks_to_join:
        what = f"the coordinator {refused.broker} refused it {times} {clock(refused.first_us)}"
        asked = f"to join ({a_or_an(api)})"
    else:
        what = f"broker {refused.broker} refused to name it the coordinator {times} {clock(refused.first_us)}"
        asked = f"for the coordinator ({a_or_an(api)})"
    return Breach(
        subject,
        f"{member} cannot join group {group.name}: {what} with {name}{words}. {_why(group, client, refused, holder)}"
        f"{cost_so_far(refused.last_us - refused.first_us) if refused.times > 1 else ''}",
        f"{refused.times} {plural(refused.times, 'request')} {asked} answered {name}{lasts}, and none accepted since",
        refused.frames,
        actor=client.actor,
        member_id=(client.member_id or None) if one.threads == 1 else None,
        instance_id=client.instance_id,
        blame=cause.blame,
        action=_action(refused, cause),
    )


def _action(refused: Refusal, cause: Cause) -> str:
    if refused.error == UNSUPPORTED_VERSION and refused.api_key in KIND_BY_API:
        feature = FEATURES[KIND_BY_API[refused.api_key].name]
        return (
            f"Finalise the feature {feature} on the brokers (kafka-features.sh describe shows it; upgrade sets it), or let the client use "
            "the classic protocol. Then restart the client: many give up."
        )
    return cause.action


def _why(group: ClassicGroup | EpochGroupData, client: Arrival, refused: Refusal, holder: EpochMember | None) -> str:
    """Return what is in the client's way, and what it costs, as sentences."""
    if isinstance(group, EpochGroupData) and refused.error == UNRELEASED_INSTANCE_ID:
        return _held_by(group, client, refused, holder)
    if isinstance(group, EpochGroupData) and refused.error == FENCED_MEMBER_EPOCH:
        return _still_known(group, refused, holder)
    if refused.error == UNSUPPORTED_VERSION and refused.api_key in KIND_BY_API:
        kind = KIND_BY_API[refused.api_key].name
        return f"The cluster does not offer {kind} groups: its feature {FEATURES[kind]} is off. It gets no partitions."
    if refused.error == GROUP_MAX_SIZE_REACHED:
        return f"The group is full: the brokers' {_SIZES.get(group.kind, f'group.{group.kind}.max.size')} allows no more members."
    if refused.malformed:
        return f"Such a request must be refused: {refused.malformed}. It gets no partitions."
    return "It gets no partitions."


def _held_by(group: EpochGroupData, client: Arrival, refused: Refusal, holder: EpochMember | None) -> str:
    if holder is None:
        return f"Who held instance id {client.instance_id} was not seen, or has left since. It gets no partitions."
    went = f"nothing was heard of it since {clock(holder.last_frame_us)}"
    if _hung_up(group, holder):
        went = f"its connection ended at {clock(holder.disconnected_us)} without a leave"
    held = f"Instance id {client.instance_id} is held by {who(holder)}: {went}"
    ends = clock(_ends_us(group, holder))
    if _lives(holder, refused):
        return f"Instance id {client.instance_id} is held by {who(holder)}, which lives. The refused client gets no partitions."
    if holder.removed is None:
        return f"{held}. {_idle(group, holder)} until that session ends, at {ends} at the earliest."
    if refused.last_us > holder.removed_us:
        return f"{held.replace(' is ', ' was ', 1)}, and its session ended by {ends}. The refused client is refused still."
    stays = ", though its connection stands" if client.actor.connection in group.connections else ""
    return (
        f"{held.replace(' is ', ' was ', 1)}, and its partitions were idle until its session ended, by {ends}. The refused client has not "
        f"asked again since{stays}, and reads nothing."
    )


def _still_known(group: EpochGroupData, refused: Refusal, holder: EpochMember | None) -> str:
    why = "Brokers before 4.2 do not let a member in that comes back under its own id, as it does after a lost answer."
    if group.release_of(refused.broker) >= TABLE["U14"].releases[0]:  # and so W9 and Z13
        why = "A broker of this release lets a member in that comes back under its own id."
    if holder is None or holder.removed is not None:
        return why
    at = "" if holder.epoch is None else f" at epoch {holder.epoch}"
    ends = clock(_ends_us(group, holder))
    return f"It still knows that member{at}. {why} {_idle(group, holder)} until its session ends, at {ends} at the earliest."


def _idle(group: EpochGroupData, holder: EpochMember) -> str:
    if not group.traits.exclusive:
        return "It counts as a member"
    return f"Nobody reads {partitions_text(group, holder.holds) if holder.holds else 'what it held'}"

"""Family V: observation gaps, which are frames that the monitor could not capture or read.

A monitor without findings looks like a healthy group. Whatever the model had to skip is therefore a finding, blamed on the capture.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from coordinator_model.finding import BROKER, CAPTURE, CERTAIN, CLIENT, CONFIRMED, CRITICAL, ERROR, OPERATOR, WARNING, Evidence
from coordinator_model.groups.classic.group import ClassicGroup
from coordinator_model.groups.classic.trackers.descriptions import DescribedOtherwise
from coordinator_model.groups.epochs.model import EpochGroup
from coordinator_model.groups.evidence import request_evidence
from coordinator_model.groups.records import NO_CLIENT, ClientInfo, Exchange
from coordinator_model.rules.base import Breach, Due, Rule, rule, the_client, timer_rule, whom
from coordinator_model.tap_watch import SilentTap
from coordinator_model.wire import API_NAMES, may_be_an_error, supported_versions
from coordinator_model.wire.leading import leading_error_code, names_correlation, names_request
from coordinator_model.wire.record import Kind, MirrorRecord
from coordinator_model.wording import a_or_an, begin, clock, counted, some

_NAMED = 3

_UNSEEN_US: Final = 10_000_000
_LISTED_US: Final = 600_000_000  #: so long a description counts, unless another one follows
"""How long a member may send nothing after its generation began: heartbeats come every 3 s, and frames of several captures mix."""


def unreadable(record: MirrorRecord, asked: Exchange | None, reason: str) -> Breach:
    """Return the breach of a frame that does not decode.

    The sender is to blame only if all bytes were captured, this release knows the version, and the frame begins like its exchange.

    :param asked: the request that the frame is, or responds to, if it is known.
    """
    actor, api, member = _sender(record), api_text(record), _member_text(record, asked)
    request = record.kind is Kind.REQUEST
    whole = record.api_version in supported_versions(record.api_key)
    breach = _of_frame(
        record, asked, f"{_frame_text(record, asked)} on connection {record.connection} cannot be read: {reason}.", reason
    )
    subject = (asked.member_id if asked is not None else "") or record.connection
    if whole and request and names_request(record.frame, record.api_key, record.api_version, record.correlation_id):
        summary = f"{begin(the_client(actor))} sent {a_or_an(api)} for group {record.group} that is none: {reason}."
        return breach._replace(subject=subject, summary=summary, blame=CLIENT, certainty=CONFIRMED)
    if whole and not request and names_correlation(record.frame, record.correlation_id):
        error = leading_error_code(record.frame, record.api_key, record.api_version)
        strange = (
            f"; its error code would be {error}, which no release has" if error is not None and not may_be_an_error(error) else ""
        )
        summary = (
            f"The broker {record.broker} answered the {api} of {member} in group {record.group} with bytes that are no such answer: "
            f"{reason}{strange}. The client cannot read it either; the group is back to learning."
        )
        return breach._replace(subject=subject, summary=summary, blame=BROKER, certainty=CONFIRMED)
    return breach


def capped(record: MirrorRecord, asked: Exchange | None) -> Breach:
    """Return the breach of a frame that is longer than the monitor's own capturer keeps.

    :param asked: the request that the frame is, or responds to, if it is known.
    """
    kept, size = len(record.frame), len(record.frame) + record.cut_bytes
    summary = (
        f"{_frame_text(record, asked)} has {size:,} bytes and was cut by the monitor at {kept:,}, since a longer record does not fit into "
        "the mirror topic. Nothing is wrong with the capture; the group is back to learning."
    )
    action = (
        "Capture this broker's traffic to a file and replay it (rebalance-monitor replay), which reads frames of any length. Frames "
        "become so long by the members' subscriptions: look for a member that names very many topics. Brokers refuse a group whose "
        "metadata exceeds max.message.bytes of __consumer_offsets (1 MiB by default)."
    )
    return _of_frame(record, asked, summary, f"{counted(size, 'byte')}, of which the mirror keeps {kept:,}")._replace(action=action)


CUT_ACTION: Final = (
    "Capture whole packets: a snap length of 262,144 bytes (tcpdump -s 0), not one of 96 or 128. Where the snap length is that long, "
    "packets were lost: give the capture a larger buffer (tcpdump -B 65536) and name the brokers' ports in its filter."
)


def cut_words(record: MirrorRecord) -> str:
    """Return ``JoinGroup v9 request of group orders, 62 of 240 bytes``."""
    what = "request" if record.kind is Kind.REQUEST else "answer"
    of = f" of group {record.group}" if record.group else ""
    return f"{api_text(record)} {what}{of}, {len(record.frame):,} of {counted(len(record.frame) + record.cut_bytes, 'byte')}"


def api_text(record: MirrorRecord) -> str:
    """Return ``JoinGroup v9``."""
    return f"{API_NAMES.get(record.api_key, f'API {record.api_key}')} v{record.api_version}"


def _sender(record: MirrorRecord) -> ClientInfo:
    return ClientInfo(record.client_id, record.client_address, record.client_software, record.connection, record.principal)


def _member_text(record: MirrorRecord, asked: Exchange | None) -> str:
    name = f"member {asked.member_id}" if asked is not None and asked.member_id else "a client"
    return f"{name} {whom(_sender(record))}"


def _frame_text(record: MirrorRecord, asked: Exchange | None) -> str:
    api = api_text(record)
    what = f"{a_or_an(api)} request" if record.kind is Kind.REQUEST else f"an answer to the {api}"
    return f"{begin(what)} of {_member_text(record, asked)} in group {record.group}"


def _of_frame(record: MirrorRecord, asked: Exchange | None, summary: str, observed: str) -> Breach:
    request = record.kind is Kind.REQUEST
    beginning = record.frame[:24].hex(" ") or "no bytes at all"
    words = f"{api_text(record)} {'request' if request else 'answer'} that cannot be read: {beginning}"
    frame = Evidence(record.partition, record.offset, record.connection, record.exchange, record.at_us, words)
    return Breach(
        "",
        summary,
        observed,
        (*(() if asked is None or request else (request_evidence(asked),)), frame),
        actor=_sender(record),
        member_id=(asked.member_id or None) if asked is not None else None,
        instance_id=asked.instance_id if asked is not None else None,
    )


V_01 = Rule(
    id="V-01",
    name="hole in the mirror",
    severity=WARNING,
    certainty=CERTAIN,
    blame=CAPTURE,
    meaning="Records of this mirror partition were never read, or are gone: all its groups are back to learning.",
    condition="The next record's offset is higher than the one expected, or lower although the record is newer than all before.",
    expected="Offsets without holes, that never go back.",
    action="Check the mirror topic's retention against how long the job was down. Offsets that go back: an unclean leader election.",
    false_alarms="A mirror topic written with transactions or compacted has holes by design: it must be neither.",
)
V_02 = Rule(
    id="V-02",
    name="unreadable record",
    severity=WARNING,
    certainty=CERTAIN,
    blame=CAPTURE,
    meaning="A record of the mirror could not be read, or the model stumbled over it; the group it belongs to is back to learning.",
    condition="The envelope is not the documented one, bytes of the frame are missing, it does not decode as what it is labelled, or the "
    "model raised.",
    expected="A record as documented in docs/mirror-format.md, holding a whole frame.",
    action="Where a broker's answer or a client's request is named: look at that broker or client, and for a proxy that rewrites frames. "
    "Else see who writes to the mirror topic besides the tap; "
    "the job keeps the record in its dead-letter topic. What the model raised is a bug: report it.",
    false_alarms="An API version newer than this release knows. A broker is blamed only where every byte of its answer was captured.",
)
V_03 = Rule(
    id="V-03",
    name="mirror silent",
    severity=ERROR,
    certainty=CERTAIN,
    blame=CAPTURE,
    meaning="Nothing arrives from the capture, not even its ticks: the monitor is blind for the groups of this partition.",
    condition="No record at all for longer than the configured silence.",
    expected="A tick in every partition each second.",
    action="Check that the tap runs and reaches the mirror topic.",
    false_alarms="A mirror that is fed by hand, without ticks.",
)
V_04 = Rule(
    id="V-04",
    name="capture lost frames",
    severity=WARNING,
    certainty=CERTAIN,
    blame=CAPTURE,
    meaning="The capturer could not deliver everything it saw; the groups concerned are back to learning.",
    condition="A gap record, or no record at all for longer than model.silence_ms.",
    expected="No gap records, and a tick each second.",
    action="Where records are lost: check the link between the tap and the mirror topic, and the tap's buffer. Each other cause has its "
    "own remedy: packets that are missing, one direction only, a connection that cannot be read, a capture that stood still.",
    false_alarms="None known.",
)
V_05 = Rule(
    id="V-05",
    name="monitor stalled",
    severity=CRITICAL,
    certainty=CERTAIN,
    blame=CAPTURE,
    meaning="The monitor itself is dead, hangs, or cannot reach Kafka: nothing is judged, whatever happens to the groups.",
    condition="No new record in the status topic for longer than configured, and no V-03 that explains it. Told by the notifier alone.",
    expected="A record in the status topic every 10 s at least.",
    action="Look at the process 'rebalance-monitor run' and what it said last; start it again.",
    false_alarms="A mirror that is fed by hand, without ticks.",
)

V_06 = Rule(
    id="V-06",
    name="mirror repartitioned",
    severity=WARNING,
    certainty=CERTAIN,
    blame=OPERATOR,
    meaning="The mirror topic has another number of partitions than before: groups may have moved, all are learned again.",
    condition="The number of partitions has changed.",
    expected="A number of partitions that is fixed for the life of the topic, as that of __consumer_offsets is.",
    action="Restart every tap that started before, so that all agree where a group belongs. For another number make a new topic.",
    false_alarms="None known.",
)


V_09 = Rule(
    id="V-09",
    name="frame out of order",
    severity=WARNING,
    certainty=CERTAIN,
    blame=CAPTURE,
    meaning="Frames reach the mirror later than the rules wait for them, or the clocks of several captures differ: a finding may be wrong "
    "because the frame that explains it came after it. Or times in a log go back.",
    condition="A group's request or answer was captured longer before the newest record of its partition than model.reorder_window_ms and "
    "model.clock_skew_ms together (info; a warning once such frames have come for 30 s). Or the times of a log without zones go back by an "
    "hour, since clocks were set back.",
    expected="Frames in the order of their capture, but for those two.",
    action="If it recurs, set model.reorder_window_ms above the lateness named. Where several hosts capture, compare their clocks "
    "(model.clock_skew_ms); look at what delays the capture of the broker named.",
    false_alarms="None known: what a tap writes that reaches the mirror topic again is info.",
)

V_11 = Rule(
    id="V-11",
    name="tap silent",
    severity=ERROR,
    certainty=CERTAIN,
    blame=CAPTURE,
    meaning="A tap writes nothing any more while others do: clients that connect through it are cut off from the brokers, or are no longer "
    "seen. Nothing falls due in their groups meanwhile; after 15 minutes these are learned again.",
    condition="No tick of a tap for 12 s, while ticks of another one arrive, and no tap on another host has the same listeners.",
    expected="A tick of each tap each second.",
    action="Start the tap again, or see why it cannot reach the mirror topic: what it said last is in its log. One that was taken away on "
    "purpose is missed for a day.",
    false_alarms="None known: after the mirror topic was away, a tap is missed 12 s after another one writes again.",
)
V_12 = Rule(
    id="V-12",
    name="notifier silent",
    severity=ERROR,
    certainty=CERTAIN,
    blame=CAPTURE,
    meaning="A notifier has ended, hangs, or cannot reach Kafka: its receivers are sent nothing, whatever is found.",
    condition="No sign of life of a notifier for 15 s, while the job can read the topic of notifications.",
    expected="A sign of life of each notifier every 5 s.",
    action="Look at the process 'rebalance-monitor notify' on the host named and what it said last; start it again: it sends what it has "
    "missed. One that was taken away on purpose is missed for a day. Let something else watch this finding, such as the alert "
    "RebalanceNotifierSilent: a notifier that is gone cannot send it.",
    false_alarms="None known.",
)


def tap_silent(silent: SilentTap) -> Breach:
    """Return the breach of a tap that ticks no longer."""
    listeners = [listener.partition("=") for listener in silent.place.listeners.split(",")]
    where = some([here for here, _, _ in listeners], _NAMED)
    brokers = some([broker for _, _, broker in listeners if broker], _NAMED)
    of = f" of cluster {silent.cluster}" if silent.cluster else ""
    return Breach(
        f"tap {silent.cluster}/{silent.place.host}/{silent.place.listeners}",
        f"The tap on host {silent.place.host} that listens at {where} for {brokers}{of} has written nothing since "
        f"{clock(silent.ticked_us)}, while other taps do: it has ended, or does not reach the mirror topic. Its clients are cut off, or "
        "are not seen.",
        f"no tick of it since {clock(silent.ticked_us)}",
        (),
    )


@rule("described otherwise", WARNING, CONFIRMED, CAPTURE, quiet_times=5)
def V_08(group: ClassicGroup, otherwise: DescribedOtherwise) -> Breach:
    """A broker tells an admin client another state or other members of a group than frames prove: the monitor's model of it, or the
    broker's description, is wrong.

    Condition: A DescribeGroups answer names a state other than Stable, or other members than the newest generation has, although
        that generation was complete before it was asked for and a Heartbeat of it succeeded after it. Judged when the next
        description comes.
    Expected: The state Stable, and the members in the leader's member list.
    Action: Record the group's traffic (rebalance-monitor record) and report it. Until the next rebalance, check findings about
        members with kafka-consumer-groups.sh --describe --members.
    False alarms: None known. Descriptions of more than 256 members, and those cut because they describe many groups, are not
        judged.
    """
    description = otherwise.description
    differences, newest = otherwise.differences, group.newest_generation
    assert newest is not None
    return Breach(
        "",
        f"Broker {description.broker} describes group {group.name} otherwise than frames of generation {otherwise.generation}, before and "
        f"after, prove: {some(differences, _NAMED, '; ', '; and ')}. What the monitor says of this group may be wrong.",
        "; ".join(differences[:_NAMED]),
        (newest.proof, description.frame),
        generation=otherwise.generation,
    )


@timer_rule("part of the group not captured", WARNING, CERTAIN, CAPTURE)
def V_10(group: ClassicGroup | EpochGroup) -> Iterator[Due]:
    """Members of the group reach the brokers past the capture: the group is judged without them.

    Condition: A member in the leader's member list of a generation has sent no frame that was captured, although the generation
        before it, with its own member list, was captured too; judged 10 s after the generation. Or a member of a group with epochs
        that an admin client's description lists has sent none for longer than a session lasts; judged 10 s after the description,
        over 10 min after it.
    Expected: Each member of a generation has sent a JoinGroup for it, and each member with an epoch heartbeats.
    Action: Find the client by its member id, which begins with its client id. Give it the tap's address as bootstrap.servers and
        restart it; a tap that rewrites addresses has to be the only way to the brokers. Where each broker has a tap or a capture of
        its own, look for one that is missing.
    False alarms: None known. Static members, and groups with a client that went away while it joined, are not judged.
    """
    return _unseen(group) if isinstance(group, ClassicGroup) else _described(group)


def _described(group: EpochGroup) -> Iterator[Due]:
    """A member with an epoch that a broker lists, while nothing is captured of it for longer than a session lasts."""
    known = group.unseen
    unseen = [one for one in known.unseen if one[0] not in group.members] if known is not None else []
    if known is None or not unseen:
        return

    def describe() -> Breach:
        names = {member_id: f"{member_id} (client {client})" for member_id, client in unseen}
        observed = "listed in the answer to an admin client, and no heartbeat for longer than a session lasts"
        breach = _not_captured(group, names, known.members, "the coordinator", observed)
        return breach._replace(evidence=(known.frame,), generation=group.epoch)

    yield Due(known.at_us + _UNSEEN_US, "", WARNING, describe, known.at_us + _LISTED_US)


def _unseen(group: ClassicGroup) -> Iterator[Due]:
    """A member of two generations' time without a frame: since the one before it has sent a JoinGroup, at the least.

    A static member may be listed without one. A client that went away while it waited may be listed under an id that no frame names.
    """
    if len(group.generations) < 2 or any(group.waiting_joins()):
        return
    before, newest = group.generations[-2:]
    if before.roster is None or newest.roster is None or group.effects.may_act_since(before.proven_us):
        return
    unseen = [id_ for id_, instance_id in newest.roster.items() if instance_id is None and _is_unseen(group, id_)]
    if not unseen:
        return

    def describe() -> Breach:
        names, listed_by = {id_: id_ for id_ in unseen}, f"generation {newest.generation}"
        observed = (
            f"in the member list of {listed_by}, and neither a JoinGroup nor anything else since generation {before.generation}"
        )
        breach = _not_captured(group, names, len(newest.roster or ()), listed_by, observed)
        return breach._replace(evidence=(before.proof, newest.proof), generation=newest.generation)

    yield Due(newest.proven_us + _UNSEEN_US, "", WARNING, describe)


def _not_captured(
    group: ClassicGroup | EpochGroup, unseen: Mapping[str, str], members: int, listed_by: str, observed: str
) -> Breach:
    """Describe members without a frame: one is named in the fields, several only in the text.

    :param unseen: member id → how the text names it.
    :param members: all that are listed.
    """
    return Breach(
        "",
        f"{len(unseen)} of {members} members of group {group.name} do not pass the tap: no frame of {some(list(unseen.values()), _NAMED)} "
        f"was captured, though {listed_by} lists them. Findings about them are missing, and who waits for whom may be wrong.",
        observed,
        (),
        member_id=next(iter(unseen)) if len(unseen) == 1 else None,
    )


def _is_unseen(group: ClassicGroup, member_id: str) -> bool:
    member = group.members.get(member_id)
    return member is not None and member.actor == NO_CLIENT and not member.last_frame and member.removed is None

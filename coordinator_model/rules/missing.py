"""Family T: a group that has fewer members than usual, or none, since some went and nobody took their place.

How a member went tells whether somebody has to look. One that left and closed its connection was stopped: a deployment, an autoscaler, the
end of a job. One that left and keeps its connection lives, and most likely stopped polling. One that did not leave died or froze.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from coordinator_model.finding import CLIENT, CONFIG, CONFIRMED, ERROR, HEURISTIC, INFO, OPERATOR, WARNING, Blame
from coordinator_model.groups.classic.model import ClassicGroupModel
from coordinator_model.groups.classic.trackers.offsets import NO_TOPIC
from coordinator_model.groups.epochs.heartbeat_fields import MISSING_SOURCE_TOPICS
from coordinator_model.groups.epochs.model import EpochGroup
from coordinator_model.groups.epochs.sessions import died_us as died_us_of
from coordinator_model.groups.epochs.sessions import looks_for_coordinator
from coordinator_model.groups.group import GroupModel
from coordinator_model.groups.group_coordinator import LostCoordinator
from coordinator_model.groups.records import TOGETHER_US, Member, Removed
from coordinator_model.groups.usual import ADOPTED_US, HELD_KEPT, Gone
from coordinator_model.rules.base import Breach, Due, the_client, timer_rule, whom
from coordinator_model.rules.departures import closes_without_leaving
from coordinator_model.rules.sessions import dead_since
from coordinator_model.wire import API_NAMES, error_name
from coordinator_model.wire.constants import GROUP_AUTHORIZATION_FAILED
from coordinator_model.wording import clock, cost_so_far, counted, plural, seconds, some

_NAMED: Final = 3
_CERTAIN_US: Final = 10_000_000
"""For which a member has certainly been none, or its connection has stayed open after it left: one that is closed ends it at once."""

_JUST_BEFORE_US: Final = 60_000_000

_DIED: Final = "Find out why that process ended (exit code, memory limit, node, deployment), and start it again."
_FROZE: Final = (
    "Look whether that process runs: a suspended process or machine and a lost network look like this. Restart it if it does not "
    "go on."
)
_FROZE_OR_NOT_POLLED: Final = (
    f"{_FROZE} If it runs, take a thread dump of its poll loop: with group.protocol=consumer librdkafka stops its heartbeats when it is "
    "not polled for max.poll.interval.ms."
)
_NOT_POLLED: Final = (
    "Take a thread dump of the poll loop of that process: it most likely hangs in the processing of what it polled last. Restart it, and "
    "process fewer records per poll, or raise max.poll.interval.ms."
)
_LEFT: Final = "If it was stopped on purpose, nothing. Else read in its log why it closed its consumer, and start it again."
_STOPPED_OR_DIED: Final = (
    "If it was stopped for good, nothing; removeMembersFromConsumerGroup of Kafka's admin client frees its partitions before its session "
    "ends. Else find out why that process ended (exit code, memory limit, node, deployment), and start it again."
)
_REMOVED: Final = "Ask why it was removed. Its process goes on only if it joins again."
_FORBIDDEN: Final = "Grant READ on this group to the principal of that client, then restart it: most libraries give up."
_TOPIC_GONE: Final = "See who deleted the topic. Make it again, or take it from the subscription; then restart that client."
_NOT_BACK: Final = "Read in the log of that process why it does not join again, and restart it."


class _Way(NamedTuple):
    """How a member went."""

    words: str
    action: str
    is_orderly: bool
    since_us: int  #: when it stopped consuming
    known_us: int  #: since when it is certain that it will not go on as the member that it was
    blame: Blame = CLIENT


def _how(group: GroupModel[Any], gone: Gone) -> _Way:
    """Return how a member went, with what it was refused just before."""
    way, refused = _went(group, gone), _refused(group, gone)
    if refused is None or gone.why == Removed.REMOVED:
        return way
    words = f"{way.words}, after {refused.words} refused at {clock(refused.at_us)} with {error_name(refused.error)}"
    return way._replace(words=words, action=refused.action, is_orderly=False, blame=CONFIG)


class _Refused(NamedTuple):
    """What a client was refused that most libraries take for final."""

    words: str
    error: int
    at_us: int
    action: str


def _refused(group: GroupModel[Any], gone: Gone) -> _Refused | None:
    """Return what a member was refused last, in the minute before it stopped."""
    since_us = gone.stopped_us - _JUST_BEFORE_US
    return max((one for one in _refusals(group, gone) if one.at_us >= since_us), key=lambda one: one.at_us, default=None)


def _refusals(group: GroupModel[Any], gone: Gone) -> Iterator[_Refused]:
    forbidden = group.arrivals.forbidden.get(gone.member_id)
    if forbidden is not None:
        yield _Refused(f"its {API_NAMES[forbidden.api_key]} was", GROUP_AUTHORIZATION_FAILED, forbidden.at_us, _FORBIDDEN)
    rejected = group.offsets.rejected.get(gone.member_id) if isinstance(group, ClassicGroupModel) else None
    if rejected is not None and rejected.error in NO_TOPIC:
        names = some([f"{topic}-{number}" for topic, number in rejected.partitions], _NAMED)
        yield _Refused(f"its commits of {names} were", rejected.error, rejected.last_us, _TOPIC_GONE)


def _went(group: GroupModel[Any], gone: Gone) -> _Way:
    member = group.members.get(gone.member_id)
    why = gone.why if member is None or member.removed is None or gone.why in {Removed.LEFT, Removed.REMOVED} else member.removed
    is_seen = group.shows_ends and gone.actor.connection not in group.connections
    closed_us = member.disconnected_us if member is not None and is_seen else 0
    is_open = not closed_us and group.facts.captures_ends(group.cluster, group.broker)
    stayed = is_open or closed_us - gone.stopped_us >= _CERTAIN_US
    interval_us, went_us = gone.rebalance_timeout_ms * 1_000, gone.stopped_us
    went, interval = clock(went_us), f"max.poll.interval.ms{f', {seconds(interval_us)}' if interval_us else ''}"
    if why == Removed.REMOVED:
        by = "somebody else" if gone.by is None else the_client(gone.by)
        return _Way(f"was removed by {by} at {went}", _REMOVED, is_orderly=True, since_us=went_us, known_us=gone.known_us)
    if why == Removed.LEFT and stayed and (topic := _missing_topic(group, gone)):
        words = f"left at {went} and kept its connection: {topic} does not exist any more"
        return _Way(words, _TOPIC_GONE, is_orderly=False, since_us=went_us, known_us=gone.known_us, blame=CONFIG)
    if why == Removed.LEFT and stayed and not 0 < gone.was_member_us < interval_us:
        words = f"left at {went} and kept its connection: its application has most likely not polled for {interval}"
        return _Way(words, _NOT_POLLED, is_orderly=False, since_us=went_us - interval_us, known_us=gone.known_us)
    if why == Removed.LEFT:
        kept = " and kept its connection" if stayed else ""
        return _Way(f"left by itself at {went}{kept}", _LEFT, is_orderly=True, since_us=went_us, known_us=gone.known_us)
    if why not in {Removed.SILENT, Removed.NOT_BACK, Removed.DROPPED}:
        return _Way(
            f"was refused at {went} and has not joined again", _NOT_BACK, is_orderly=False, since_us=went_us, known_us=gone.known_us
        )
    if closed_us and isinstance(member, Member) and closes_without_leaving(member):
        words = f"closed at {clock(closed_us)} without leaving, as Kafka Streams does"
        return _Way(words, _LEFT, is_orderly=True, since_us=went_us, known_us=gone.known_us)
    if why == Removed.NOT_BACK:
        words = f"left for a while at {went}, as a static member does that is closed, and has not come back"
        return _Way(words, _LEFT, is_orderly=True, since_us=went_us, known_us=gone.known_us)
    if closed_us and gone.instance_id is not None and isinstance(group, ClassicGroupModel):
        words = f"was stopped or died at {clock(closed_us)}: its connection closed, and a static member sends no LeaveGroup"
        return _Way(words, _STOPPED_OR_DIED, is_orderly=False, since_us=went_us, known_us=gone.known_us)
    if closed_us and _lives_on(group, gone, closed_us):
        words = f"lost its connection at {clock(closed_us)} and has not joined again: another connection of its process is open"
        return _Way(words, _NOT_BACK, is_orderly=False, since_us=went_us, known_us=gone.known_us)
    if closed_us:
        words = f"died at {clock(closed_us)}: its connection closed without a LeaveGroup"
        known_us = went_us if gone.instance_id is None else gone.known_us  # a static one is expected back until its session ends
        return _Way(words, _DIED, is_orderly=False, since_us=went_us, known_us=known_us)
    if is_open:
        unpolled, action = "", _FROZE
        if isinstance(group, EpochGroup):
            unpolled, action = f", or its application has not polled for {interval}", _FROZE_OR_NOT_POLLED
        words = f"froze or was cut off at {went}{unpolled}: its connection is open, and nothing comes from it"
        return _Way(words, action, is_orderly=False, since_us=went_us, known_us=gone.known_us)
    return _Way(f"fell silent at {went} without leaving", _DIED, is_orderly=False, since_us=went_us, known_us=gone.known_us)


def _lives_on(group: GroupModel[Any], gone: Gone, closed_us: int) -> bool:
    """Return True if a connection that the client had before is open still. Behind one name and host may be other members."""
    client = gone.actor.named
    if any(member.actor.named == client and member.id != gone.member_id for member in group.present_members()):
        return False
    return any(0 < line.last_response_us <= closed_us and line.actor.named == client for line in group.connections.values())


def _missing_topic(group: GroupModel[Any], gone: Gone) -> str | None:
    """Return a topic of the member that does not exist, as far as Metadata answers or the status of a Streams group show it."""
    streak = group.status_streaks.get(MISSING_SOURCE_TOPICS) if isinstance(group, EpochGroup) else None
    if streak is not None and streak.last_us >= gone.stopped_us - _JUST_BEFORE_US:
        return "a source topic"
    return next((topic for topic in gone.held or {} if group.facts.is_deleted(group.cluster, topic)), None)


def _what_became(group: GroupModel[Any], missing: Sequence[Gone]) -> str:
    """Return what the missing members held and who holds it now, as sentences; empty if it is not known."""
    held = {(topic, number) for gone in missing for topic, numbers in (gone.held or {}).items() for number in numbers}
    count = max(len(held), *(gone.held_count for gone in missing))  # who goes later may have taken over what another held
    if not count:
        return ""
    at_least = "at least " if len(missing) > 1 and any(gone.held_count > HELD_KEPT for gone in missing) else ""
    what = f"{at_least}{counted(count, 'partition')}"
    names = some([f"{topic}-{number}" for topic, number in sorted(held)], _NAMED)
    pronoun = "It" if len(missing) == 1 else "They"
    known = group.holders_of(held)
    if known is None:
        return f" {pronoun} held {what} ({names})."
    holders = [holder for holder in known if holder not in {gone.member_id for gone in missing}]
    by = f"now read by {some(holders, _NAMED)}" if holders else "read by nobody"
    return f" {pronoun} held {what} ({names}), {by}."


def _died(group: ClassicGroupModel | EpochGroup) -> list[Gone]:
    """Return the members that died and whose sessions run on.

    All of them prove nothing: they may have lost the broker. Nor does one in a rebalance, in which its client may come back.
    """
    ended = [member for member in group.present_members() if member.disconnected_us]  # nearly nobody at each check
    if not ended or group.coordinator_changes.is_away or (isinstance(group, ClassicGroupModel) and any(group.waiting_joins())):
        return []
    died = [(member, at_us) for member in ended if (at_us := _died_us(group, member)) is not None]
    return [_gone(group, member, at_us) for member, at_us in died] if len(died) < sum(1 for _ in group.present_members()) else []


def _gone(group: ClassicGroupModel | EpochGroup, member: Any, died_us: int) -> Gone:
    joined_us = member.joined_us if isinstance(member, Member) else max(member.joins, default=0)
    was_member_us = died_us - joined_us if joined_us else 0
    held = group.held_by(member)
    return Gone.of(member, Removed.SILENT, stopped_us=died_us, known_us=died_us, was_member_us=was_member_us, held=held)


def _died_us(group: ClassicGroupModel | EpochGroup, member: Any) -> int | None:
    """Return when a member died; None if it did not, or if its restart would look the same."""
    if member.instance_id is not None:
        return None
    if isinstance(group, ClassicGroupModel):
        return None if closes_without_leaving(member) else dead_since(group, member)
    died_us = died_us_of(group, member)
    return None if died_us is None or looks_for_coordinator(group, member, died_us) else died_us


@timer_rule(
    "members missing",
    WARNING,
    CONFIRMED,
    CLIENT,
    suppressed_by=("C-13", "M-01", "M-13", "M-14", "R-18", "R-24", "T-05", "T-12"),
)
def T_13(group: ClassicGroupModel | EpochGroup) -> Iterator[Due]:
    """The group has fewer members than usual, or none: some went, and nobody took their place.

    Condition: The group had a number of members for a minute (usual_ms) or longer, and some of them went, or lost their connection
        without leaving. For 10 s after that is certain there are fewer, and for as long as members of this group are usually away
        (half as long again as two of the last eight that came back or were replaced within five minutes), at least 30 s
        (missing_ms). An error if certainly none is left for 60 s (left_ms), info if all that went, or the last of all members, left
        by themselves, for which as long has to pass. A member that left and keeps its connection open, and was not a member for
        less than its max.poll.interval.ms, has most likely stopped polling, for that interval by then. It is silent at a number at
        which the group has stayed three times before, for five minutes in all. Those that lost their coordinator are not missed
        while it answers nobody, and for as long after that; those whose last commits were refused for a missing right, which O-09
        names, half an hour later.
        If a member went within a minute after it was refused for a missing right to the group, or for a topic that is gone, the
        finding names that.
    Expected: A member that goes comes back, or another takes its place.
    Action: Start it again, or find out why it does not come back.
    False alarms: A group that was made smaller on purpose by killing its members: six hours later the smaller number is the usual
        one. What is missing after a gap in the capture is not known.
    """
    short = _shortfall(group)
    if short is None:
        return
    due_us = max(short.due_us(group), short.back_us(group), short.explained_until_us(group))
    breach = partial(_breach, group, short)
    severity = WARNING if short.worst else INFO
    yield Due(due_us, "", severity, partial(breach, due_us), until_us=due_us + ADOPTED_US if short.left else None)
    if short.worst and not short.left:
        error_us = max(due_us, short.last.known_us + group.settings.left_ms * 1_000)
        yield Due(error_us, "", ERROR, partial(breach, error_us))


class _Shortfall(NamedTuple):
    """By whom a group has fewer members than usual."""

    number: int  #: of members that is usual
    left: int
    ways: dict[str, _Way]  #: by member id
    gone: list[Gone]
    worst: list[Gone]  #: of these, those that did not go in an orderly way; nobody if the last of all members did
    lost: LostCoordinator | None  #: the coordinator that is away

    @property
    def last(self) -> Gone:
        return max(self.worst or self.gone, key=lambda gone: gone.known_us)

    def back_us(self, group: ClassicGroupModel | EpochGroup) -> int:
        """Return when those that lost their coordinator would be back with it, 0 if nobody did."""
        lost = group.coordinator_changes.lost
        if lost is None or not any(_lost_it(lost, gone) for gone in self.gone):
            return 0
        answered_us = lost.returned_us or group.coordinator_changes.answered_us(group)
        return answered_us and answered_us + max(group.settings.missing_ms * 1_000, group.usual.return_us)

    def explained_until_us(self, group: ClassicGroupModel | EpochGroup) -> int:
        """Return until when O-09 names why they gave up: a right that they lack; 0 if it does not."""
        if not isinstance(group, ClassicGroupModel):
            return 0
        rejected = group.offsets.rejected
        return max(rejected[one.member_id].explains_until_us if one.member_id in rejected else 0 for one in self.gone)

    def due_us(self, group: ClassicGroupModel | EpochGroup) -> int:
        """Return from when on they are missed: all of them would be back by then."""
        settings = group.settings
        certain_us, least_us = (_CERTAIN_US, settings.missing_ms * 1_000) if self.worst else (settings.left_ms * 1_000, 0)
        patience_us = max(least_us, group.usual.return_us)
        ways = [self.ways[gone.member_id] for gone in self.worst or self.gone]
        return max(max(way.known_us + certain_us, way.since_us + patience_us) for way in ways)


def _lost_it(lost: LostCoordinator, gone: Gone) -> bool:
    return gone.member_id in lost.members and gone.stopped_us >= lost.since_us - TOGETHER_US


def _shortfall(group: ClassicGroupModel | EpochGroup) -> _Shortfall | None:
    """Return who is missing, None if nobody is."""
    usual = group.usual
    dead = _died(group) if usual.number or usual.since_us else []
    if not usual.gone and not dead:
        return None
    number = usual.number_at(min((gone.stopped_us for gone in dead), default=0), group.settings.usual_ms * 1_000)
    present = {member.id for member in group.present_members()} - {gone.member_id for gone in dead}
    lost = group.coordinator_changes.lost
    if lost is not None and group.coordinator_changes.is_gone(group):  # C-14 names it
        present |= {gone.member_id for gone in (*usual.gone, *dead) if _lost_it(lost, gone)}
    gone = [one for one in (*usual.gone, *dead) if one.member_id not in present][-max(0, number - len(present)) :]
    if len(present) >= number or not gone or usual.is_usual(len(present)):
        return None
    ways = {one.member_id: _how(group, one) for one in gone}
    was_stopped = not present and ways[max(gone, key=lambda one: one.stopped_us).member_id].is_orderly
    worst = [] if was_stopped else [one for one in gone if not ways[one.member_id].is_orderly]
    return _Shortfall(number, len(present), ways, gone, worst, lost if group.coordinator_changes.is_away else None)


def _breach(group: ClassicGroupModel | EpochGroup, short: _Shortfall, at_us: int) -> Breach:
    last, count = short.last, len(short.gone)
    together = short.lost is not None and group.coordinator_changes.lost_with_others(group)
    names = some(
        [f"member {one.member_id} {whom(one.actor)} {short.ways[one.member_id].words}" for one in short.gone],
        _NAMED,
        "; ",
        "; and ",
    )
    stopped_us = [one.stopped_us for one in short.gone]
    first_us, last_us = min(stopped_us), max(stopped_us)
    at_us = max(at_us, last_us)  # somebody may have left since it fell due
    cost = cost_so_far(sum(at_us - short.ways[one.member_id].since_us for one in short.gone))
    begin = (
        f"Group {group.name} has {counted(short.left, 'member')} instead of {short.number} since {clock(first_us)}"
        if short.left
        else f"Nobody reads for group {group.name} since {clock(last_us)}: its {counted(short.number, 'member')} "
        f"{plural(short.number, 'is', 'are')} gone"
    )
    one = last if count == 1 else None
    return Breach(
        "",
        f"{begin}: {names}. Nobody took {plural(count, 'its', 'their')} place for {seconds(at_us - last_us)}."
        f"{_what_became(group, short.gone)}{cost}{f' Unless they ended all at once, broker {group.broker} is gone.' if together else ''}",
        f"{counted(count, 'member')} missing, {short.left} {plural(short.left, 'is', 'are')} left",
        (),
        actor=one and one.actor,
        member_id=one and one.member_id,
        instance_id=one and one.instance_id,
        generation=group.generation,
        certainty=HEURISTIC if together or any(one.why == Removed.LEFT for one in short.worst) else None,
        blame=short.ways[last.member_id].blame if short.worst else OPERATOR,
        action=short.ways[last.member_id].action,
    )

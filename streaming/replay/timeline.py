"""The timeline of a replay: each line is an event of a group or the change of a finding, at its own time.

A rebalance is two lines, its beginning and its end, and those of who came or went meanwhile. That members rejoined, were asked to, and were
served is in the second: it names who joined, who held it up, and what it cost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from rich.text import Text

from coordinator_model import events
from coordinator_model.finding import Finding, Status
from coordinator_model.groups.classic.data import CLASSIC
from coordinator_model.wording import begin, counted, iso_utc
from streaming.published.sentences import event_text, has_new_id, held_up, milliseconds, repeated
from streaming.published.wire_text import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


COLOURS: Final = {"info": "cyan", "warning": "yellow", "error": "red", "critical": "bold red"}
"""Of severities."""

_NAMED: Final = 4  #: members that are named when many join at once
_LEFT_OUT: Final = (
    events.PhaseEnded,
    events.MemberToldToRejoin,
    events.MemberSynced,
    events.MemberServed,
    events.MemberToldToGiveUp,
    events.GaveUp,
)
"""The line of the rebalance shows what they cost."""

_STYLES: Final = {"rebalance_began": "yellow", "rebalance_finished": "green", "sight_lost": "red", "session_over": "red"}


class HistoryLine(NamedTuple):
    """One thing that happened in a group."""

    at: str  #: ISO 8601, UTC
    cluster: str
    group: str
    text: Text


class Timeline:
    """Makes lines out of events and findings.

    :param show: called with each line.
    :param groups: only these groups; all if there are none.
    """

    def __init__(self, show: Callable[[HistoryLine], None], groups: Iterable[str] = ()) -> None:
        self._show = show
        self._groups = frozenset(groups)
        self._begun: set[str] = set()  # ids of the open findings whose beginning was shown

    def wants(self, group: str) -> bool:
        """Return True if the report includes this group; what concerns the capture is always included."""
        return not self._groups or not group or group in self._groups

    def event(self, event: events.GroupEvent) -> None:
        """Something happened in a group."""
        if self.wants(event.group):
            words = _words(event)
            if words:
                text = Text(visible(words), _STYLES.get(event.kind, ""))
                self._show(HistoryLine(iso_utc(event.at_us), event.cluster, event.group, text))

    def finding(self, finding: Finding) -> None:
        """A finding opened, changed or was resolved."""
        if not self.wants(finding.group):
            return
        if finding.id not in self._begun:  # one that was over before it was published comes with its end alone
            self._begun.add(finding.id)
            self._show_finding(finding, "", finding.opened_at_us)
        if finding.status is Status.UPDATE:
            self._show_finding(finding, f" ({finding.count} times by now)", finding.updated_at_us)
        elif finding.status is Status.RESOLVED:
            self._begun.discard(finding.id)
            self._show_finding(finding, " is over", finding.resolved_at_us or finding.updated_at_us)

    def _show_finding(self, finding: Finding, verb: str, at_us: int) -> None:
        text = Text.assemble(severity_text(finding), f" {finding.rule} {finding.name}{verb}")
        self._show(HistoryLine(iso_utc(at_us), finding.cluster, finding.group, text))


def severity_text(finding: Finding) -> Text:
    return Text(finding.severity.value, COLOURS[finding.severity.value])


def number_name(group_type: str) -> str:
    """Return what the number of a group of this type is called that rises with each rebalance."""
    return "generation" if group_type == CLASSIC else "epoch"


def _words(event: events.GroupEvent) -> str:
    """Return an event as a line, an empty one if the rebalance's own line shows it."""
    match event:
        case _ if isinstance(event, _LEFT_OUT):
            return ""
        case events.RebalanceBegan():
            return _began(event)
        case events.RebalanceFinished():
            return _finished(event)
        case events.MemberJoined():
            return _joined(event)
        case events.MemberEvent():
            return f"{_name(event)} {event_text(event, several=False)}"
        case _:
            return event_text(event, several=False)


def _joined(event: events.MemberJoined) -> str:
    """Return that a member joined; of a classic one a JoinGroup shows only that it asks to, and that it rejoins is no news."""
    if event.group_type == CLASSIC:
        return f"{_name(event)} asks to join{repeated(event)}" if event.new or repeated(event) else ""
    return f"{_name(event)} joined{'' if event.new else ' again'}{repeated(event)}"


def _began(event: events.RebalanceBegan) -> str:
    by = f", {_name(event)}" if _name(event) else ""
    reason = f" (“{event.reason}”)" if event.reason else ""
    cause = "its cause was not seen" if event.cause == events.NOT_SEEN else event.cause
    return f"Rebalance began: {cause}{by}{reason}"


def _finished(event: events.RebalanceFinished) -> str:
    reached = f"{number_name(event.group_type)} {event.to_generation}, " if event.to_generation is not None else ""
    took = f"after {milliseconds(event.took_ms)}"
    how_many = counted(len(event.members), "member") if event.members or not event.source else "members that no line names"
    anew = [one for one in event.never_came_back if has_new_id(event, one)]
    never = [one for one in event.never_came_back if one not in anew]
    facts = [
        begin(f"{event.ended} {took}" if event.ended == events.NO_MEMBERS else f"{reached}{how_many}, {took}"),
        "" if event.ended in {events.SERVED, events.NO_MEMBERS} else event.ended,
        _joined_in(event),
        held_up(event),
        event.cause if event.cause in events.TOPICS_CHANGED else "",  # which was not known when it began
        f"{_names(anew)} came back under {'a new id' if len(anew) == 1 else 'new ids'}" if anew else "",
        f"{_names(never)} never came back" if never else "",
        f"cost {event.cost_s:,.1f} member-seconds" if event.cost_s else "",
    ]
    return "; ".join(fact for fact in facts if fact)


def _joined_in(event: events.RebalanceFinished) -> str:
    new = [member for member in event.members if member.new] if event.group_type == CLASSIC else []
    return f"joined {_names(new)}" if new else ""


def _names(members: Sequence[events.NamedMember]) -> str:
    names = [_name(member) for member in members[:_NAMED]]
    more = len(members) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")


def _name(member: events.NamedMember | events.MemberEvent | events.RebalanceBegan) -> str:
    """Return the id of a member, with the name of its client unless the id begins with it; empty if it is not known."""
    id_, name = member.member_id or "", member.instance_id or member.client_id or ""
    if not id_ or not name:
        return id_ or name
    return id_ if name in id_ else f"{name} ({id_})"

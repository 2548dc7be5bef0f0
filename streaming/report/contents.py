"""What a report says, as plain data: JSON, Markdown and the page are three forms of it.

A report is read by people who were not there. So what the monitor did not see stands in it beside what it did.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

from coordinator_model.advice import Advice, advise
from coordinator_model.events import MemberServed, RebalanceFinished, SightLost, SightRegained
from coordinator_model.finding import Severity
from coordinator_model.wording import counted, iso_utc, plural
from streaming.not_shown import no_finding, not_in_lines
from streaming.published import sentences
from streaming.published.records import (
    STALE_S,
    Json,
    RebalanceLag,
    arrivals_of,
    by_group,
    duration,
    is_open,
    lag_of_rebalance,
    name_of,
    seconds,
    unheld_s,
)
from streaming.published.wire_text import harmless, shown_name
from streaming.sinks.clients import oldest_first

if TYPE_CHECKING:
    from streaming.published.page_state import GroupPast, PageState

NAMED: Final = 10
"""How many members, or rebalances that advice is made from, are named."""

_COSTLIEST: Final = 20
_SERIOUS: Final = Severity.ERROR.rank
_Number = TypeVar("_Number", int, float)


@dataclass(slots=True)
class Lost:
    """What rebalances cost, added up as far as it is known: None where it is known of none of them."""

    rebalances: int = 0
    took_ms: int | None = None
    member_seconds: float | None = None  #: in which members consumed nothing
    unheld_partition_seconds: float | None = None  #: in which no member held partitions

    @classmethod
    def of(cls, rebalance: RebalanceFinished) -> Lost:
        """Return what a rebalance that is over cost."""
        return cls(1, rebalance.took_ms, rebalance.cost_s, unheld_s(rebalance))

    def plus(self, other: Lost) -> Lost:
        return Lost(
            self.rebalances + other.rebalances,
            _sum(self.took_ms, other.took_ms),
            _sum(self.member_seconds, other.member_seconds),
            _sum(self.unheld_partition_seconds, other.unheld_partition_seconds),
        )

    def as_json(self) -> Json:
        return {
            "rebalances": self.rebalances,
            "took_ms": self.took_ms,
            "cost_member_seconds": _rounded(self.member_seconds),
            "unheld_partition_seconds": _rounded(self.unheld_partition_seconds),
        }


def _sum(one: _Number | None, other: _Number | None) -> _Number | None:
    if one is None or other is None:
        return other if one is None else one
    return one + other


def _rounded(seconds_: float | None) -> float | None:
    return None if seconds_ is None else round(seconds_, 3)


@dataclass(slots=True)
class WaitedFor:
    """A member for which others waited, in all rebalances together."""

    name: str
    client_address: str | None
    why: str
    times: int = 0
    waited_ms: int = 0


@dataclass(slots=True)
class Rebalance:
    """One that is over."""

    event: RebalanceFinished
    by: str | None
    held_up: str
    lag: RebalanceLag | None

    def as_json(self) -> Json:
        record = self.event.as_json()
        known = {name: record[name] for name in ("id", "began_at", "at", "cause", "from_generation", "to_generation", "ended")}
        return {
            **known,
            "by": self.by,
            "held_up": self.held_up or None,
            **{name: value for name, value in Lost.of(self.event).as_json().items() if name != "rebalances"},
            "lag": None if self.lag is None else self.lag._asdict(),
        }


@dataclass(slots=True, eq=False)
class GroupReport:
    """One group: what its rebalances cost and why, who was waited for, and what is wrong."""

    past: GroupPast
    several_clusters: bool
    group_type: str
    lost: Lost = field(default_factory=Lost)
    causes: dict[str, Lost] = field(default_factory=dict)  #: the costliest first
    waited_for: list[WaitedFor] = field(default_factory=list)  #: the longest first
    rebalances: list[Rebalance] = field(default_factory=list)  #: in order
    findings: list[Json] = field(default_factory=list)  #: the worst first
    advice: list[Advice] = field(default_factory=list)  #: what saves most first
    not_seen: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Return the name for display."""
        cluster, group = (shown_name(each) for each in self.past.key)
        return f"{group or '(no name)'} of {cluster}" if self.several_clusters else group or "(no name)"

    @property
    def arrivals(self) -> list[Json]:
        """Return the clients that had not arrived in the end, those first that stood at the earliest stage."""
        return arrivals_of(self.past.content or {})

    @property
    def most_by(self) -> str:
        """Return the cause that cost most; empty if that is not known."""
        return next((cause for cause, lost in self.causes.items() if lost.member_seconds is not None), "")

    @property
    def costliest(self) -> list[Rebalance]:
        """Return its rebalances, those that cost most first."""
        return sorted(self.rebalances, key=lambda one: (-(one.event.cost_us or 0), -(one.event.took_ms or 0)))

    @property
    def shown(self) -> list[Rebalance]:
        """Return the rebalances that a page has room for, in order: the costliest, and the first that advice is made from."""
        named = {id_ for piece in self.advice for id_ in piece.rebalances[:NAMED]}
        shown = {one.event.id for one in self.costliest[:_COSTLIEST]} | named
        return [one for one in self.rebalances if one.event.id in shown]

    @property
    def shown_rebalances(self) -> list[Rebalance]:
        """Return the rebalances that are worth a picture: of each piece of advice the costliest; without any the costliest of all."""
        costliest = self.costliest
        of_advice = (next((one for one in costliest if one.event.id in piece.rebalances), None) for piece in self.advice)
        found = {one.event.id: one for one in of_advice if one is not None}
        return list(found.values()) or costliest[:1]

    def as_json(self) -> Json:
        cluster, group = self.past.key
        return {
            "cluster": cluster,
            "group": group,
            "group_type": self.group_type,
            **self.lost.as_json(),
            "causes": [{"cause": cause, **lost.as_json()} for cause, lost in self.causes.items()],
            "waited_for": [asdict(one) for one in self.waited_for],
            "arrivals": self.arrivals,
            "lag": None if self.past.lag is None else self.past.lag["lag"],
            "findings": self.findings,
            "advice": [
                {name: value for name, value in piece.as_json().items() if name not in {"cluster", "group"}}
                for piece in self.advice
            ],
            "rebalances_over": [one.as_json() for one in self.rebalances],
            "not_seen": self.not_seen,
        }


@dataclass(slots=True, eq=False)
class Report:
    """What happened in groups over a time."""

    from_s: float
    to_s: float
    groups: list[GroupReport]  #: the costliest first
    findings: list[Json]  #: of no group, the worst first
    clients: list[Json]
    read: list[str]  #: what was read, a sentence each
    not_seen: list[str]  #: what the monitor could not see, a sentence each

    @property
    def lost(self) -> Lost:
        total = Lost()
        for group in self.groups:
            total = total.plus(group.lost)
        return total

    @property
    def rebalances(self) -> Iterator[RebalanceFinished]:
        """The records of all rebalances."""
        return (one.event for group in self.groups for one in group.rebalances)

    @property
    def causes(self) -> dict[str, Lost]:
        """What rebalances of all groups cost by cause, the costliest first."""
        found: dict[str, Lost] = {}
        for group in self.groups:
            for cause, lost in group.causes.items():
                found[cause] = found.get(cause, Lost()).plus(lost)
        return dearest_first(found)

    @property
    def known_defects(self) -> list[str]:
        """Return what is known of the releases of its clients, each once."""
        return list(dict.fromkeys(defect for client in self.clients for defect in client["known_defects"]))

    @property
    def summary(self) -> str:
        """Return what happened, in a few sentences."""
        return " ".join(one for one in (_cost(self), _costliest(self), _advised(self), _found(self)) if one)

    def as_json(self) -> Json:
        return {
            "from": iso_utc(round(self.from_s * 1e6)),
            "to": iso_utc(round(self.to_s * 1e6)),
            "summary": self.summary,
            **self.lost.as_json(),
            "causes": [{"cause": cause, **lost.as_json()} for cause, lost in self.causes.items()],
            "groups": [group.as_json() for group in self.groups],
            "findings": self.findings,
            "clients": self.clients,
            "read": self.read,
            "not_seen": self.not_seen,
        }


def report_of(
    state: PageState,
    *,
    wanted: Callable[[str], bool],
    since_s: float | None,
    clients: Iterable[Json] = (),
    read: Sequence[str] = (),
) -> Report:
    """Return the report of what is known of groups.

    :param wanted: whether a group of that name is reported.
    :param since_s: where the time begins; None for the first that is known.
    :param clients: of captured traffic, as members of published groups; the members of published groups are added.
    :param read: what is known of the input, a sentence each.
    """
    chosen = [past for past in state.groups.values() if wanted(past.key[1])]
    from_s = state.first_s if since_s is None else since_s
    several = len({past.key[0] for past in chosen}) > 1
    findings = by_group(one for one in state.findings.values() if not one["resolved_at"] or seconds(one["resolved_at"]) >= from_s)
    groups = [_group(past, findings.get(past.key, []), from_s, several=several) for past in chosen]
    groups.sort(key=_trouble)
    advice: dict[tuple[str, str], list[Advice]] = {}
    events = (event for past in chosen for event in past.events if event.at_s >= from_s)
    for piece in advise(events, state.findings.values()):
        advice.setdefault((piece.cluster, piece.group), []).append(piece)
    for group in groups:
        group.advice = advice.get(group.past.key, [])
    elsewhere = [one for (_, name), found in findings.items() if not name for one in found]
    members = [*clients, *(past.content for past in chosen if past.content is not None)]
    versions = oldest_first(one for one in members if wanted(one["group"]))
    return Report(
        from_s,
        max(state.now_s(), from_s + 1.0),
        groups,
        elsewhere,
        [harmless(one.as_json(), hide_addresses=state.hides_addresses) for one in versions],
        list(read),
        [*_not_seen_of_all(state, from_s, since_s), *_not_seen_of_groups(groups), *not_in_lines(group.past for group in groups)],
    )


def dearest_first(causes: dict[str, Lost]) -> dict[str, Lost]:
    return dict(sorted(causes.items(), key=lambda one: (-(one[1].member_seconds or 0.0), -(one[1].took_ms or 0))))


def _group(past: GroupPast, findings: list[Json], from_s: float, *, several: bool) -> GroupReport:
    kinds = [(past.content or {}).get("group_type"), *(event.group_type for event in list(past.events)[-1:])]
    report = GroupReport(past, several, next(filter(None, kinds), ""), findings=findings)
    waited: dict[tuple[str, str], WaitedFor] = {}
    for event in past.events:
        if event.at_s < from_s:
            continue
        if isinstance(event, MemberServed) and event.unheld is not None:  # a static member that returned without a rebalance
            report.lost = report.lost.plus(Lost(unheld_partition_seconds=unheld_s(event)))
        if not isinstance(event, RebalanceFinished):
            continue
        lost = Lost.of(event)
        report.lost = report.lost.plus(lost)
        report.causes[event.cause] = report.causes.get(event.cause, Lost()).plus(lost)
        lag = lag_of_rebalance(past.lag, event)
        report.rebalances.append(Rebalance(event, name_of(event), sentences.held_up(event), lag))
        for one in event.waited_for:
            name = name_of(one) or "not known"
            known = waited.setdefault((name, one.why), WaitedFor(name, one.client_address, one.why))
            known.times += 1
            known.waited_ms += one.waited_ms
    report.causes = dearest_first(report.causes)
    report.waited_for = sorted(waited.values(), key=lambda one: -one.waited_ms)[:NAMED]
    report.not_seen = _not_seen(past, from_s)
    return report


def _trouble(group: GroupReport) -> tuple[float, int, int, tuple[str, str]]:
    worst = max((Severity(one["severity"]).rank for one in group.findings), default=-1)
    return -(group.lost.member_seconds or 0.0), -(group.lost.took_ms or 0), -worst, group.past.key


# --- what was not seen ------------------------------------------------------------------------------------------------------


def _not_seen(past: GroupPast, from_s: float) -> list[str]:
    """Return when frames of a group were missing, and why it is not known."""
    found: list[str] = []
    lost: SightLost | None = None
    for event in past.events:
        if event.at_s < from_s:
            continue
        if isinstance(event, SightLost):
            lost = event
        elif isinstance(event, SightRegained) and lost is not None:
            lasted = sentences.milliseconds((event.at_s - lost.at_s) * 1000)
            found.append(f"From {clock_of(lost.at_s)} on for {lasted}: {lost.reason}.")
            lost = None
    if lost is not None:
        found.append(f"From {clock_of(lost.at_s)} until the end: {lost.reason}.")
    if past.content is not None and past.content["learning"]:
        found.append(f"Its members are not known yet: {past.content['learning']}.")
    return found


def _not_seen_of_groups(groups: Sequence[GroupReport]) -> list[str]:
    blind = [group for group in groups if group.not_seen]
    if not blind:
        return []
    return [
        f"Of {counted(len(blind), 'group')} the monitor did not see everything: {sentences.listed([one.name for one in blind])}."
    ]


def _not_seen_of_all(state: PageState, from_s: float, since_s: float | None) -> list[str]:
    found = []
    if since_s is not None and state.first_s > from_s + STALE_S:
        found.append(f"The first record is of {clock_of(state.first_s)}: what was before is not in the topics.")
    gaps: Counter[str] = Counter()
    for status in state.status.values():
        known = status.get("gaps")
        gaps.update({str(cause): lost for cause, lost in known.items() if isinstance(lost, int)} if isinstance(known, dict) else {})
    found += [
        f"{counted(count, 'record')} of the mirror {plural(count, 'was', 'were')} lost since the monitor began ({cause})."
        for cause, count in gaps.items()
        if count
    ]
    age_s = state.now_s() - state.status_written_s
    if state.status_written_s and age_s > STALE_S:
        found.append(f"The monitor wrote its last status {duration(age_s)} before: since then it did not run.")
    elif not state.is_recorded and not state.status_written_s:
        found.append("There is no status of a monitor: none has run on this Kafka.")
    if state.no_events:
        found.append(f"There are no events, and so no rebalances: {state.no_events}.")
    if state.unreadable:
        found.append(f"{counted(state.unreadable, 'record')} could not be read.")
    for count, what in ((state.dropped_groups, "group"), (state.dropped_events, "event"), (state.dropped_findings, "finding")):
        found += [f"{counted(count, what)} were left out: no more are kept at a time."] if count else []
    return found


# --- in a sentence -----------------------------------------------------------------------------------------------------------


def _cost(report: Report) -> str:
    lost, unstable = report.lost, sum(bool(group.lost.rebalances) for group in report.groups)
    span = _span(report.to_s - report.from_s)
    if not lost.rebalances:
        return f"In {span}, no rebalance of {counted(len(report.groups), 'group')} ended."
    who = sentences.short(report.groups[0].name) if len(report.groups) == 1 else f"{unstable:,} of {len(report.groups):,} groups"
    had = f"In {span}, {who} had {counted(lost.rebalances, 'rebalance')}"
    if lost.member_seconds is None:
        return f"{had}; what they cost is not known."
    unheld_s = round(lost.unheld_partition_seconds or 0.0)
    unheld = f", and {counted(unheld_s, 'partition-second')} that nobody held" if unheld_s else ""
    return f"{had}, which cost {sentences.seconds_of(lost.member_seconds)} member-seconds without consuming{unheld}."


def _costliest(report: Report) -> str:
    first = report.groups[0] if report.groups else None
    if first is None or first.lost.member_seconds is None:
        return ""
    total = report.lost.member_seconds
    part = f" with {first.lost.member_seconds / total * 100:.0f} % of it" if total and len(report.groups) > 1 else ""
    cause = f", most of it by “{next(iter(first.causes))}”" if first.causes else ""
    longest = max(first.rebalances, key=lambda one: one.event.took_ms or 0)
    held_up = f"; in the longest {longest.held_up}" if longest.held_up else ""
    if len(report.groups) == 1:
        return f"{'All' if len(first.causes) == 1 else 'Most'} of it by “{next(iter(first.causes))}”{held_up}."
    return f"{sentences.short(first.name)} paid most{part}{cause}{held_up}."


def _advised(report: Report) -> str:
    pieces = [(piece, group) for group in report.groups for piece in group.advice[:1]]
    if not pieces:
        return ""
    best, group = max(pieces, key=lambda one: one[0].saves)
    of_group = f" in {sentences.short(group.name)}" if len(report.groups) > 1 else ""
    return f"What would have saved most{of_group}: {best.setting}, {sentences.saved(best)}."


def _found(report: Report) -> str:
    found = [*report.findings, *(one for group in report.groups for one in group.findings)]
    if not found:
        return no_finding(group.past for group in report.groups)
    open_ = sum(is_open(one) for one in found)
    worst = max(found, key=lambda one: Severity(one["severity"]).rank)
    first = f" The worst: {worst['rule']} {worst['name']}." if Severity(worst["severity"]).rank >= _SERIOUS else ""
    return f"{counted(len(found), 'finding')} ({sentences.by_severity(found)}), {open_ or 'none'} of them still open.{first}"


def _span(span_s: float) -> str:
    return sentences.milliseconds(round(span_s * 1000)) if span_s < 3600 else duration(span_s)


def clock_of(at_s: float) -> str:
    """Return a moment, UTC."""
    return iso_utc(round(at_s * 1e6))[:19].replace("T", " ")


def facts_of(group: GroupReport) -> dict[str, Any]:
    """Return what is known of a group at the end of the time; what is not known is left out."""
    content = group.past.content or {}
    state = group.past.changes[-1] if group.past.changes else None
    known = {
        "type": group.group_type,
        "state at the end": None if state is None else f"{sentences.STATE_WORDS[state.state]}, since {clock_of(state.at_s)}",
        "members at the end": len(content["members"]) if content and not content["learning"] else None,
        "coordinator": content.get("coordinator"),
        "lag at the end": None if group.past.lag is None else f"{counted(group.past.lag['lag'], 'record')}",
    }
    return {title: value for title, value in known.items() if value not in (None, "")}

"""Apply the rules to groups: events and the passing of time in, findings out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, Final, NamedTuple

from coordinator_model import known_defects
from coordinator_model.finding import INFO, WARNING, Evidence, Finding
from coordinator_model.groups.arrivals import Stage
from coordinator_model.groups.classic.model import ClassicGroupModel
from coordinator_model.groups.effects import Does
from coordinator_model.groups.epochs.events import Migrated
from coordinator_model.groups.epochs.model import EpochGroup
from coordinator_model.groups.group import STEADY_US, GroupModel, may_explain
from coordinator_model.groups.records import NO_CLIENT, AnyMember
from coordinator_model.groups.tracker import Event
from coordinator_model.known_defects import Shown, Software
from coordinator_model.open_findings import OpenFinding, OpenFindings
from coordinator_model.rules import CATALOGUE, TIMER_RULES, Breach, Due, FrameRule, Rule, TimerRule
from coordinator_model.rules.base import Matter, last_frame_text
from coordinator_model.rules.hot_loops import GENERATIONS
from coordinator_model.rules.observation import CUT_ACTION, V_11, cut_words, tap_silent
from coordinator_model.settings import Settings
from coordinator_model.tap_watch import SilentTap
from coordinator_model.wire.record import MirrorRecord
from coordinator_model.wording import a_or_an, seconds

_LATE_FOR_US: Final = 30_000_000


# ---------------------------------------------------------------------------------------------------- which rules apply

_OF_STAGE: Final = {
    Stage.LOOKS: Matter.JOINS,
    Stage.REACHES: Matter.REACHES,
    Stage.JOINS: Matter.JOINS,
    Stage.HOLDS: Matter.HOLDS,
    Stage.BEGINS: Matter.BEGINS,
}
_OF_EPOCHS: Final = frozenset(Matter) - {*_OF_STAGE.values()} | {Matter.HOLDS}


def timers_for(group: GroupModel[Any]) -> tuple[TimerRule, ...]:
    """Return the timer rules that can report anything about a group: less than half of them for a quiet one."""
    matters = {_OF_STAGE[stage] for stage in {known.stage for known in group.arrivals.clients.values()}}
    if not isinstance(group, ClassicGroupModel):
        return _timers_of(EpochGroup, _OF_EPOCHS.union(matters))
    assignments, over = group.assignments, group.rebalances.over
    if group.recurring.is_any or len(over) + 1 >= GENERATIONS or (over and over[-1].is_no_op):
        matters.add(Matter.RECURRENCE)
    if group.open or group.rebalances.is_joining:  # in which a client may have hung up, and ask again
        matters.add(Matter.REQUEST)
    if assignments.flaws or assignments.suspects:
        matters.add(Matter.PLAN)
    return _timers_of(ClassicGroupModel, frozenset(matters))


@cache
def _timers_of(type_: type[Any], matters: frozenset[Matter]) -> tuple[TimerRule, ...]:
    return tuple(
        rule
        for rule in TIMER_RULES
        if issubclass(type_, rule.groups) and (rule.matter is Matter.ANYTHING or rule.matter in matters)
    )


def _by_event() -> dict[type[Any], tuple[FrameRule, ...]]:
    table: dict[type[Any], list[FrameRule]] = {}
    for rule in CATALOGUE.values():
        if isinstance(rule, FrameRule):
            for event in rule.checks:
                table.setdefault(event, []).append(rule)
    return {event: tuple(rules) for event, rules in table.items()}


_BY_EVENT: Final = _by_event()


def rules_for(event: Event) -> tuple[FrameRule, ...]:
    """Return the rules that check an event. Each type of group has events of its own."""
    return _BY_EVENT.get(type(event), ())


# ---------------------------------------------------------------------------------------------------- to a group


class Checked(NamedTuple):
    """What the passing of time changed in a group, apart from its findings."""

    next_us: int | None  #: when something falls due next; None if nothing does
    shown: bool  #: True if something that a dashboard shows has changed


class RuleEngine:
    """Applies the rules to a group, and maintains its open findings.

    :param postponed_us: maps a due time to the later one that applies if the capture was blind then, both in capture time.
    """

    def __init__(self, settings: Settings, record_counts: Counter[str], postponed_us: Callable[[int], int]) -> None:
        self._settings = settings
        self._quiet_us = settings.quiet_ms * 1_000
        self._record_counts = record_counts
        self._postponed_us = postponed_us

    def on_events(
        self, group: GroupModel[Any], open_findings: OpenFindings, events: Iterable[Event], at_us: int
    ) -> Iterator[Finding]:
        """Apply the frame rules to the events of ``at_us``."""
        for event in events:
            for rule in rules_for(event):
                breach = rule.checks[type(event)](group, event)
                if breach is not None:
                    yield from self.report(group, open_findings, rule, breach, at_us)
                    group.changed = True  # its open findings are shown with it

    def report(
        self, group: GroupModel[Any], open_findings: OpenFindings, rule: Any, breach: Breach, at_us: int
    ) -> Iterator[Finding]:
        """Open a finding for a breach, or count the breach on the open one."""
        hold_us = self._settings.reorder_window_ms * 1_000 if isinstance(rule, FrameRule) else 0
        member = group.members.get(breach.member_id or "")
        if member is not None:
            breach = breach._replace(observed=breach.observed + last_frame_text(member, group.last_sent_us(member)))
        quotes = _known_defects(rule, breach, group, member)
        if quotes:
            breach = breach._replace(action=f"{breach.action or rule.action} {quotes}")
        yield from open_findings.report(
            rule, breach, at_us=at_us, hold_us=hold_us, incarnation=group.incarnation, group_type=group.kind
        )

    def on_time(self, group: GroupModel[Any], open_findings: OpenFindings, now_us: int, found: list[Finding]) -> Checked:
        """Apply the time to a group: sessions expire, timers fall due, findings are published and resolved.

        :param found: receives the findings, so that those before an exception are not lost.
        """
        before = len(open_findings.open)
        coming: list[int] = []
        for end_us, events in group.end_sessions(now_us, coming):
            group.slow_changed = True
            found.extend(self.on_events(group, open_findings, events, end_us))
        standing = self._check_timers(group, open_findings, now_us, found, coming)
        self._withdraw_explained(group, open_findings, now_us)
        over = [
            (known.rule, known.subject)
            for known in open_findings.open.values()
            if known.publish_us <= now_us and _is_over(group, open_findings, known, standing, now_us)
        ]
        found.extend(open_findings.settle(CATALOGUE, now_us, self._quiet_us, over))
        shown = group.changed or len(open_findings.open) != before
        if shown or before or open_findings.open:
            group.slow_changed = True  # a finding may have been published, though none came or went
        group.changed = False
        next_us = open_findings.next_due_us(CATALOGUE, self._quiet_us)
        group.idle = not (standing or open_findings.open or _may_change(group))
        if not group.idle:
            coming.append(now_us + STEADY_US)
        elif group.members:
            coming.append(now_us + self._settings.metadata_age_us)  # new partitions of a topic are A-14's after as long as that
        return Checked(min([*coming, *([] if next_us is None else [next_us])], default=None), shown)

    def resolve_all(self, open_findings: OpenFindings, now_us: int) -> Iterator[Finding]:
        """Resolve all open findings of a group."""
        yield from open_findings.settle(CATALOGUE, now_us, self._quiet_us, list(open_findings.open))

    def resolve_as_converted(self, group: GroupModel[Any], open_findings: OpenFindings, now_us: int) -> Iterator[Finding]:
        """Resolve what was found in a group as the type that it was, but not what is about its conversions.

        What is held back was true if it was found before that: it is published later, and is over then. Else it is dropped.
        """
        held = [known for known in open_findings.open.values() if not known.published]
        for known in held:
            if getattr(CATALOGUE[known.rule], "explained", None) or not _was_before_conversion(group, known):
                open_findings.withdraw(known)
        over = [
            key for key, known in open_findings.open.items() if known.published and not _is_about_conversions(CATALOGUE[key[0]])
        ]
        yield from open_findings.settle(CATALOGUE, now_us, self._quiet_us, over)

    def _check_timers(
        self, group: GroupModel[Any], open_findings: OpenFindings, now_us: int, found: list[Finding], coming: list[int]
    ) -> set[tuple[str, str]]:
        """Report what is due, and append future due times to ``coming``; return (rule, subject) of all of it."""
        pending = ((self._ending(due, rule), rule) for rule in timers_for(group) for due in rule.due(group))
        dues = sorted((pair for pair in pending if (pair[0].until_us or now_us + 1) > now_us), key=lambda pair: pair[0].at_us)
        for due, rule in dues:
            due_us = self._postponed_us(due.at_us)
            if due.until_us is not None:
                coming.append(due.until_us)
            if due_us > now_us:
                coming.append(due_us)
            elif open_findings.is_news(rule, due):
                breach = due.describe()._replace(severity=due.severity)
                found.extend(self.report(group, open_findings, rule, breach, due.at_us))
        return {(rule.id, due.subject) for due, rule in dues}

    def _ending(self, due: Due, rule: TimerRule) -> Due:
        """Return it with its end, if it is of something that recurs."""
        if due.period_us is None:
            return due
        return due._replace(until_us=due.at_us + max(rule.quiet_times * self._quiet_us, due.period_us))

    def _withdraw_explained(self, group: GroupModel[Any], open_findings: OpenFindings, now_us: int) -> None:
        """Drop held findings that a frame captured out of order has since explained."""
        for known in open_findings.held(now_us):
            rule = CATALOGUE[known.rule]
            if isinstance(rule, FrameRule) and (may_explain(group, known) or (rule.explained and rule.explained(group, known))):
                open_findings.withdraw(known)
                self._record_counts["findings withdrawn"] += 1


class PartitionFindings:
    """Findings about a partition of the mirror itself: those of family V that concern no single group."""

    def __init__(self, topic: str, partition: int, settings: Settings) -> None:
        self.open_findings = OpenFindings("", "")
        self.due_us: int | None = None  #: when :meth:`settle` may next return a finding
        self._subject = f"{topic}/{partition}"
        self._name = f"partition {partition} of {topic}"
        self._quiet_us = settings.quiet_ms * 1_000
        self._late_us = settings.late_us

    def report(self, rule_id: str, summary: str, observed: str, at_us: int, *, action: str | None = None) -> list[Finding]:
        """Open a finding about the partition, or count it on the open one.

        :param action: what to do, if it differs from the action of the rule.
        """
        return self._report(rule_id, Breach(self._subject, summary, observed, (), action=action), at_us)

    def cut(self, record: MirrorRecord) -> list[Finding]:
        """Report a frame of which bytes were not captured."""
        subject = f"{self._subject}/cut"
        known = self.open_findings.open.get(("V-02", subject))
        count = 1 + (known.count if known is not None else 0)
        frame = cut_words(record)
        cut = "frame was captured without all of its bytes" if count == 1 else "frames were captured without all of their bytes"
        summary = (
            f"{count:,} group {cut} in {self._name}, the newest {a_or_an(frame)}. What they say is not known, and nothing is found in "
            "groups whose frames are cut."
        )
        words = f"{frame}, correlation id {record.correlation_id}"
        evidence = Evidence(record.partition, record.offset, record.connection, record.exchange, record.at_us, words)
        return self._report("V-02", Breach(subject, summary, frame, (evidence,), action=CUT_ACTION), record.at_us)

    def _report(self, rule_id: str, breach: Breach, at_us: int) -> list[Finding]:
        rule = CATALOGUE[rule_id]
        found = list(self.open_findings.report(rule, breach, at_us=at_us, hold_us=0, incarnation=0, group_type=""))
        self.due_us = self.open_findings.next_due_us(CATALOGUE, self._quiet_us)
        return found

    def out_of_order(self, record: MirrorRecord, now_us: int) -> list[Finding]:
        """Report a frame that came later than rules wait for one. Records of a connection itself wait for the first group seen on it.

        What a capture that was just started, or reaches the mirror again, writes late for seconds is nothing to act on.
        """
        known = self.open_findings.open.get(("V-09", self._subject))
        lasts = known is not None and now_us - known.opened_us >= _LATE_FOR_US
        late = seconds(now_us - record.at_us)
        summary = (
            f"A frame of broker {record.broker} reached {self._name} {late} after newer ones. Rules wait {seconds(self._late_us)} "
            "for late frames: what they say of that time may be wrong."
        )
        observed = f"{record.kind.value} captured {late} before the newest record, on connection {record.connection}"
        return self._report("V-09", Breach(self._subject, summary, observed, (), severity=WARNING if lasts else INFO), now_us)

    def silent_taps(self, silent: Iterable[SilentTap], now_us: int) -> list[Finding]:
        """Report the taps that are silent, and resolve the findings about those that tick again or are missed no longer."""
        breaches = {breach.subject: breach for breach in map(tap_silent, silent)}
        found: list[Finding] = []
        for subject, breach in breaches.items():
            known = self.open_findings.open.get((V_11.id, subject))
            if known is None or now_us - known.updated_us >= self._quiet_us // 2:
                found += self._report(V_11.id, breach, now_us)
        over = [key for key in self.open_findings.open if key[0] == V_11.id and key[1] not in breaches]
        if over:
            found += self.open_findings.settle(CATALOGUE, now_us, self._quiet_us, over)
        return found

    def settle(self, now_us: int) -> list[Finding]:
        """Resolve the findings that have not recurred for ``quiet_ms``."""
        found = list(self.open_findings.settle(CATALOGUE, now_us, self._quiet_us, ()))
        self.due_us = self.open_findings.next_due_us(CATALOGUE, self._quiet_us)
        return found


def _known_defects(rule: Rule, breach: Breach, group: GroupModel[Any], member: AnyMember | None) -> str:
    """Return what is known of the software of the member that a breach names, or of all that did it, and of its coordinator's."""
    actor = breach.actor or (NO_CLIENT if member is None else member.actor)
    offered = getattr(member, "protocols", ())  # of a member that uses the classic protocol
    shown = Shown(
        tuple(one.frame for one in breach.evidence),
        "" if member is None else member.last_frame,
        offered,
        breach.blame or rule.blame,
    )
    clients = {known_defects.software_of(one.software, one.client_id, offered): None for one in breach.together or (actor,)}
    software = (*clients, Software(known_defects.BROKER, group.broker_release))
    return known_defects.quotes(rule.id, software, shown)


def _is_about_conversions(rule: Rule) -> bool:
    return isinstance(rule, FrameRule) and Migrated in rule.checks


def _was_before_conversion(group: GroupModel[Any], known: OpenFinding) -> bool:
    """Return True if a finding arose before each request that can have converted the group, and such a request was seen."""
    skew_us = group.clock_skew_us
    converts = [one for one in group.effects.since(known.opened_us - skew_us, ()) if one.does is Does.CONVERTS]
    return bool(converts) and all(one.since_us > known.opened_us + skew_us for one in converts)


def _may_change(group: GroupModel[Any]) -> bool:
    """Return True if time may show anything of a group: not of one that all members have left, and nobody asks."""
    pace = group.committed_offsets.pace
    if group.open or group.coordinator_changes.is_away or (pace is not None and pace.is_news):
        return True
    if any(client.stage < Stage.HOLDS for client in group.arrivals.clients.values()):
        return True
    return any(member.present or group.session_end_us(member) is not None for member in group.members.values())


def _is_over(
    group: GroupModel[Any], open_findings: OpenFindings, known: OpenFinding, standing: set[tuple[str, str]], now_us: int
) -> bool:
    rule = CATALOGUE[known.rule]
    if known.group_type != group.kind and not _is_about_conversions(rule):
        return known.published
    if isinstance(rule, FrameRule):
        return rule.over is not None and rule.over(group, known.subject)
    stands = (known.rule, known.subject) in standing
    return isinstance(rule, TimerRule) and not open_findings.lingers(known, rule, now_us, stands=stands)

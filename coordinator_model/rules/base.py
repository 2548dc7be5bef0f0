"""Rules: their texts for operators, their conditions, and the breaches that they report.

A :class:`FrameRule` checks events when they are captured. A :class:`TimerRule` checks the group, and returns what falls due, and when,
unless something happens before; what is no longer due is over. Both are made of a function, by :func:`rule` and :func:`timer_rule`.

A rule must not report on unknown facts. Each condition requires its facts, reports nothing if one is missing, and never assumes one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum, auto
from types import UnionType
from typing import Any, NamedTuple, Protocol, TypeVar, get_args, get_origin, get_type_hints

from coordinator_model.finding import ERROR, WARNING, Blame, Certainty, Evidence, Finding, Severity, Status, finding_id
from coordinator_model.groups.group import Group
from coordinator_model.groups.records import AnyMember, ClientInfo, Member
from coordinator_model.wire import CONNECT
from coordinator_model.wording import a_or_an, begin, clock, since

T = TypeVar("T")


class Sender(Protocol):
    """Who sent a request, as it names itself: a request, or what was kept of one."""

    @property
    def actor(self) -> ClientInfo: ...
    @property
    def member_id(self) -> str: ...
    @property
    def instance_id(self) -> str | None: ...
    @property
    def generation(self) -> int: ...


class Breach(NamedTuple):
    """One occurrence of what a rule reports."""

    subject: str  #: with group and rule, the identity of the finding: a member id, an instance id, "" for the whole group
    summary: str
    observed: str
    evidence: tuple[Evidence, ...]
    actor: ClientInfo | None = None
    member_id: str | None = None
    instance_id: str | None = None
    generation: int | None = None
    severity: Severity | None = None  #: if it differs from the rule's own
    certainty: Certainty | None = None
    blame: Blame | None = None
    action: str | None = None  #: what to do about the cause that was found, if it differs from the rule's own
    broker: str | None = None  #: the broker that is away, slow or knows no coordinator: many groups find this
    together: tuple[ClientInfo, ...] = ()  #: who did it, where several did and none is named: their known defects are quoted

    @classmethod
    def of_member(cls, member: AnyMember, summary: str, observed: str, evidence: tuple[Evidence, ...], **fields: Any) -> Breach:
        """Return the breach of a member, which is its subject unless ``fields`` name another."""
        return cls(summary=summary, observed=observed, evidence=evidence, **({"subject": member.id, **about(member)} | fields))

    @classmethod
    def of_sender(cls, sender: Sender, summary: str, observed: str, evidence: tuple[Evidence, ...], **fields: Any) -> Breach:
        """Return the breach of a request's sender at the generation that it named; ``fields`` replace subject and generation."""
        named = {
            "subject": sender.member_id,
            "actor": sender.actor,
            "member_id": sender.member_id or None,
            "instance_id": sender.instance_id,
            "generation": sender.generation if sender.generation >= 0 else None,
        }
        return cls(summary=summary, observed=observed, evidence=evidence, **(named | fields))


class Due(NamedTuple):
    """What a timer rule reports at ``at_us`` unless something happens before."""

    at_us: int
    subject: str
    severity: Severity
    describe: Callable[[], Breach]
    until_us: int | None = None  #: from then on it is over in any case
    period_us: int | None = None  #: of what recurs: it is over without another one for so long, or for the rule's ``quiet_times``


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule, with its texts for operators."""

    id: str
    name: str
    severity: Severity
    certainty: Certainty
    blame: Blame
    meaning: str
    condition: str
    expected: str
    action: str
    false_alarms: str
    quiet_times: int = 1  #: multiple of ``quiet_ms`` without recurrence after which it is over; more for slow recurrence
    suppressed_by: tuple[str, ...] = ()  #: rules whose open finding on the same subject, or the whole group, suppresses this one

    @property
    def family(self) -> str:
        return self.id.partition("-")[0]

    def finding(
        self,
        *,
        subject: str,
        cluster: str,
        group: str,
        opened_at_us: int,
        at_us: int,
        summary: str,
        observed: str,
        severity: Severity | None = None,
        count: int = 1,
        evidence: tuple[Evidence, ...] = (),
    ) -> Finding:
        """Return an open finding that names no member: about the mirror, the monitor, or a group as a whole.

        :param opened_at_us: the time in the id, in microseconds; 0 for an id that does not depend on time.
        :param at_us: when it was opened, in microseconds.
        :param severity: the rule's, if None.
        """
        return Finding(
            id=finding_id(self.id, cluster=cluster, group=group, subject=subject, opened_at_us=opened_at_us),
            rule=self.id,
            name=self.name,
            family=self.family,
            severity=severity or self.severity,
            certainty=self.certainty,
            blame=self.blame,
            status=Status.OPEN,
            cluster=cluster,
            group=group,
            group_type="",
            incarnation=0,
            generation=None,
            member_id=None,
            instance_id=None,
            client_id=None,
            client_address=None,
            client_software=None,
            opened_at_us=at_us,
            updated_at_us=at_us,
            resolved_at_us=None,
            count=count,
            summary=begin(summary),
            expected=self.expected,
            observed=begin(observed),
            action=self.action,
            evidence=evidence,
        )


def severity_of_absence(group: Group[Any]) -> Severity:
    """Return how severe it is that a client does not get in: an error where nobody else consumes."""
    return WARNING if any(group.present_members()) else ERROR


class HeldFinding(Protocol):
    """A finding that is not published yet."""

    @property
    def subject(self) -> str: ...
    @property
    def opened_us(self) -> int: ...
    @property
    def generation(self) -> int | None: ...
    @property
    def incarnation(self) -> int: ...
    @property
    def instance_id(self) -> str | None: ...


Check = Callable[[Any, Any], Breach | None]  #: given group and event
Over = Callable[[Any, str], bool]  #: given group and subject: True if it is already over
Explained = Callable[[Any, HeldFinding], bool]
"""Given group and finding: True if late frames explain it. Called once, before publication."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameRule(Rule):
    """A rule that checks each event of the types in ``checks``. Its finding is over when it has not recurred for a while, or sooner.

    Each type of group has events of its own, so the functions get the group that their events come from.
    """

    checks: Mapping[type[Any], Check]
    over: Over | None = None
    explained: Explained | None = None


class Matter(IntEnum):
    """The subject of a timer rule. The rule need not check a group without such a subject."""

    ANYTHING = auto()
    REQUEST = auto()  #: an open request, or a join phase
    REACHES = auto()  #: a client that was named its coordinator
    JOINS = auto()  #: a client that looks for its coordinator, or asks to join
    HOLDS = auto()  #: a member without partitions; of groups with epochs, any
    BEGINS = auto()  #: a member that reads where to begin
    PLAN = auto()  #: an assignment with errors, or a suspect
    RECURRENCE = auto()  #: something that happened more than once


@dataclass(frozen=True, slots=True, kw_only=True)
class TimerRule(Rule):
    """A rule that returns what falls due, and when."""

    matter: Matter = Matter.ANYTHING
    pace_ms: int = (
        0  #: what comes again within this time after its end is the same finding, and is then over after as long without it
    )
    due: Callable[[Any], Iterable[Due]]
    groups: tuple[type[Any], ...]  #: the types of group that it checks


def rule(
    name: str,
    severity: Severity,
    certainty: Certainty,
    blame: Blame,
    *,
    suppressed_by: tuple[str, ...] = (),
    over: Over | None = None,
    explained: Explained | None = None,
    quiet_times: int = 1,
    also: tuple[Check, ...] = (),
) -> Callable[[Check], FrameRule]:
    """Make a rule of a function that checks the type of event with which its second parameter is annotated.

    The function's name is the id. Its docstring has the texts: the meaning, then the sections *Condition*, *Expected*, *Action* and
    *False alarms*.

    :param also: further functions of the rule, each for events of another type.
    """

    def make(check: Check) -> FrameRule:
        return FrameRule(
            **_id_and_texts(check),
            name=name,
            severity=severity,
            certainty=certainty,
            blame=blame,
            quiet_times=quiet_times,
            suppressed_by=suppressed_by,
            checks={event: one for one in (check, *also) for event in _types_of_parameter(one, 1)},
            over=over,
            explained=explained,
        )

    return make


def timer_rule(
    name: str,
    severity: Severity,
    certainty: Certainty,
    blame: Blame,
    *,
    matter: Matter = Matter.ANYTHING,
    suppressed_by: tuple[str, ...] = (),
    quiet_times: int = 1,
    pace_ms: int = 0,
) -> Callable[[Callable[[Any], Iterable[Due]]], TimerRule]:
    """Make a rule of a function that yields what falls due in a group of the type with which its parameter is annotated.

    Name and docstring are as :func:`rule` has them.
    """

    def make(due: Callable[[Any], Iterable[Due]]) -> TimerRule:
        return TimerRule(
            **_id_and_texts(due),
            name=name,
            severity=severity,
            certainty=certainty,
            blame=blame,
            quiet_times=quiet_times,
            suppressed_by=suppressed_by,
            matter=matter,
            pace_ms=pace_ms,
            due=due,
            groups=_types_of_parameter(due, 0),
        )

    return make


def _id_and_texts(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the fields of a rule that the name and the docstring of its function give."""
    meaning, *sections = re.split(r"\n *(Condition|Expected|Action|False alarms): ", function.__doc__ or "")
    texts = dict(zip(["Meaning", *sections[::2]], [meaning, *sections[1::2]], strict=True))
    fields = {title.lower().replace(" ", "_"): " ".join(text.split()) for title, text in texts.items()}
    return {"id": function.__name__.replace("_", "-"), **fields}


def _types_of_parameter(function: Callable[..., Any], position: int) -> tuple[type[Any], ...]:
    """Return the class with which a parameter is annotated, or the classes of a union."""
    annotation = list(get_type_hints(function).values())[position]
    return tuple(get_origin(one) or one for one in (get_args(annotation) if isinstance(annotation, UnionType) else (annotation,)))


def who(member: AnyMember) -> str:
    """Return ``member M (client C at A, software S)``, as far as it is known."""
    return f"member {member.id} {whom(member.actor)}"


def whom(actor: ClientInfo) -> str:
    """Return ``(client C at A, software S)``, to stand behind a member's name."""
    return f"({the_client(actor)})"


def the_client(actor: ClientInfo) -> str:
    """Return ``client C at A, software S``, and as whom it is authenticated."""
    parts = [f"client {actor.client_id or 'without a client id'}"]
    if actor.address:
        parts[0] += f" at {actor.address}"
    if actor.software:
        parts.append(actor.software)
    if actor.principal:
        parts.append(actor.principal)
    return ", ".join(parts)


def work_of(protocol_type: str) -> str:
    """Return what members of a classic group are assigned, as a word."""
    return "connectors and tasks" if protocol_type == CONNECT else "partitions"


def kept_waiting(waiting: tuple[int, int], now_us: int) -> str:
    """Return ``3 others have waited for it since T, 42.0 s`` for a number of JoinGroups and the time of the oldest."""
    count, since_us = waiting
    if not count:
        return "no member waits for it"
    others = "1 other has waited" if count == 1 else f"{count} others have waited"
    return f"{others} for it {since(since_us, now_us)}"


def about(member: AnyMember) -> dict[str, Any]:
    """Return the fields of a breach that name a member."""
    return {"actor": member.actor, "member_id": member.id, "instance_id": member.instance_id}


def about_one(members: Sequence[AnyMember]) -> dict[str, Any]:
    """Return the fields of a breach that name a member, none if several do the same: then its text names them."""
    return about(members[0]) if len(members) == 1 else {}


def captured(*frames: Evidence | None) -> tuple[Evidence, ...]:
    """Return those of the frames that were captured."""
    return tuple(frame for frame in frames if frame is not None)


def first_and_last(row: Sequence[T]) -> tuple[T, ...]:
    """Return the first two and the last two, to show how long a row is."""
    return (*row[:2], *row[2:][-2:])


def admission(member: Member | None) -> tuple[Evidence, ...]:
    """Return the member's last JoinGroup success, to begin the evidence with; () if it was not captured."""
    return () if member is None else captured(member.joined_frame)


def last_frame_text(member: AnyMember, sent_us: int) -> str:
    """Return the reason of a member's last JoinGroup (KIP-800), and its last frame, as the end of a sentence."""
    reason = f"; it last joined because “{member.reason}”" if member.reason else ""
    last = f"; its last frame was {a_or_an(member.last_frame)} at {clock(sent_us)}" if member.last_frame else ""
    return reason + last


def sender_text(sender: Sender) -> str:
    """Return ``member M (client C at A)``, as the request names it."""
    name = f"member {sender.member_id}" if sender.member_id else "a new member"
    return f"{name} {whom(sender.actor)}"


def asker_text(sender: Sender) -> str:
    """Return ``member M (client C at A)``, or ``client C at A`` for a request that names no member."""
    return sender_text(sender) if sender.member_id else the_client(sender.actor)


def is_gone(group: Any, member_id: str) -> bool:
    """Return True if it is no longer a member."""
    member = group.members.get(member_id)
    return member is None or member.removed is not None


def is_refused_no_longer(group: Any, member_id: str) -> bool:
    """Return True if the member was accepted since its last refusal, or is not known any more."""
    member = group.members.get(member_id)
    return member is None or member.refusals is None

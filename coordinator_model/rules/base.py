"""What a rule is: its text for operators, when it looks, and what it has to say.

Two kinds. A :class:`FrameRule` looks at one kind of event, at the moment it is captured. A :class:`TimerRule` looks at the group and
tells what will be due when, if nothing happens until then; what is due no longer is over.

The trap: a rule must not speak on facts that are not known yet. Each condition below asks for its facts and says nothing when one of
them is missing; it never assumes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, NamedTuple

from coordinator_model.finding import Blame, Certainty, Evidence, Finding, Severity, Status, finding_id, iso_utc
from coordinator_model.groups.classic.group import ClassicGroup
from coordinator_model.groups.records import ClientInfo, Exchange, Member


class Breach(NamedTuple):
    """One occurrence: what a rule saw."""

    subject: str  #: with group and rule, the identity of the finding: a member id, an instance id, or "" for the whole group
    summary: str
    observed: str
    evidence: tuple[Evidence, ...]
    actor: ClientInfo | None = None
    member_id: str | None = None
    instance_id: str | None = None
    generation: int | None = None
    severity: Severity | None = None  #: where it differs from the rule's own
    certainty: Certainty | None = None
    blame: Blame | None = None


class Due(NamedTuple):
    """What a timer rule will say at ``at_us`` unless something happens before."""

    at_us: int
    subject: str
    severity: Severity
    describe: Callable[[], Breach]
    until_us: int | None = None  #: from then on it is over, whatever happens


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule as an operator reads it."""

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
    suppressed_by: tuple[
        str, ...
    ] = ()  #: rules whose open finding on the same subject, or on the whole group, is the cause of this one

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

        :param opened_at_us: what goes into the id, in microseconds; 0 where the finding is to be the same whenever it is looked for.
        :param at_us: when it was opened, in microseconds.
        :param severity: that of the rule, if None.
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
            summary=summary,
            expected=self.expected,
            observed=observed,
            action=self.action,
            evidence=evidence,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameRule(Rule):
    """Looks at each event of the types in ``checks``. Its finding is over when it has not recurred for a while, or sooner."""

    checks: Mapping[type[Any], Callable[[ClassicGroup, Any], Breach | None]]
    over: Callable[[ClassicGroup, str], bool] | None = None  #: given group and subject: whether it is over already
    explained: Callable[[ClassicGroup, str, int], bool] | None = None
    #: given group, subject and when it opened: whether frames that came late explain it; asked once, before it is published
    quiet_times: int = 1  #: how many times the configured span it must not recur to be over; more where recurring takes its time


class Matter(Enum):
    """What a timer rule speaks of. A group in which there is no such thing need not be looked at by it."""

    ANYTHING = auto()
    REQUEST = auto()  #: a request that is owed an answer
    PLAN = auto()  #: a plan, or an answer, that does not fit


@dataclass(frozen=True, slots=True, kw_only=True)
class TimerRule(Rule):
    """Tells what is due, and when."""

    matter: Matter = Matter.ANYTHING
    due: Callable[[ClassicGroup], Iterable[Due]]


def who(member: Member) -> str:
    """``member M (client C at A, software S)``, as far as it is known."""
    return f"member {member.id} {whom(member.actor)}"


def whom(actor: ClientInfo) -> str:
    """``(client C at A, software S)``."""
    parts = [f"client {actor.client_id or 'without a client id'}"]
    if actor.address:
        parts[0] += f" at {actor.address}"
    if actor.software:
        parts.append(actor.software)
    return f"({', '.join(parts)})"


def a_or_an(name: str) -> str:
    """The name with its article: ``an OffsetCommit``."""
    return f"{'an' if name[:1] in 'AEIOU' else 'a'} {name}"


def begin(words: str) -> str:
    """The words as the beginning of a sentence."""
    return words[:1].upper() + words[1:]


def seconds(us: int) -> str:
    """``12.3 s`` for microseconds."""
    return f"{us / 1_000_000:.1f} s"


def kept_waiting(waiting: tuple[int, int], now_us: int) -> str:
    """``3 others wait for it since T, 42.0 s``, of how many and since when."""
    count, since_us = waiting
    if not count:
        return "no member waits for it"
    others = "1 other waits" if count == 1 else f"{count} others wait"
    return f"{others} for it since {iso_utc(since_us)}, {seconds(max(0, now_us - since_us))}"


def about(member: Member) -> dict[str, Any]:
    """The fields of a breach that name a member."""
    return {"actor": member.actor, "member_id": member.id, "instance_id": member.instance_id}


def admission(member: Member | None) -> tuple[Evidence, ...]:
    """The answer that last let the member in, to begin the evidence with; nothing if it was not seen."""
    return () if member is None or member.joined_frame is None else (member.joined_frame,)


def last_frame_text(member: Member) -> str:
    """What a member said of itself and sent last, to end a sentence with: the reason of its JoinGroup (KIP-800) is evidence, no more."""
    reason = f"; it last joined because “{member.reason}”" if member.reason else ""
    last = f"; its last frame was {a_or_an(member.last_frame)} at {iso_utc(member.last_frame_us)}" if member.last_frame else ""
    return reason + last


def sender_fields(exchange: Exchange) -> dict[str, Any]:
    """Return the fields of a breach that name the sender of a request."""
    return {
        "actor": exchange.actor,
        "member_id": exchange.member_id or None,
        "instance_id": exchange.instance_id,
    }


def sender_text(exchange: Exchange) -> str:
    """Return ``member M (client C at A)``, as the exchange names it."""
    name = f"member {exchange.member_id}" if exchange.member_id else "a new member"
    return f"{name} {whom(exchange.actor)}"


def plural(count: int, word: str) -> str:
    """Return the word, with an s unless there is one of it."""
    return word if count == 1 else f"{word}s"

"""What a group tells the rules about: things that happened on the wire and that may be a breach, with the facts of that moment.

A group turns frames into facts and, where a frame is worth a rule's look, into one of these. Steady traffic makes none, which is what
keeps the model fast. The trap: a happening is not a breach. Refusals, replacements and even regressions are lawful most of the time.
"""

from __future__ import annotations

from typing import NamedTuple

from coordinator_model.groups.facts import Exchange, Instance, Member, Round


class Accepted(NamedTuple):
    """A Heartbeat, SyncGroup or OffsetCommit was accepted from somebody who is not known to be entitled to it.

    Also a Heartbeat answered REBALANCE_IN_PROGRESS by a broker since 2.3: it validates member and generation first.
    """

    exchange: Exchange


class Refused(NamedTuple):
    """A Heartbeat, SyncGroup or OffsetCommit was refused with ILLEGAL_GENERATION or UNKNOWN_MEMBER_ID."""

    exchange: Exchange
    member: Member


class Regressed(NamedTuple):
    """A JoinGroup succeeded at a lower generation than one that was already handed out."""

    exchange: Exchange
    generation: int
    before: Round
    explanation: str | None


class Answered(NamedTuple):
    """A JoinGroup succeeded under a member id other than the one that asked."""

    exchange: Exchange
    member_id: str


class Replaced(NamedTuple):
    """A group.instance.id changed hands."""

    exchange: Exchange
    instance: Instance
    old_member_id: str


class Returned(NamedTuple):
    """Somebody who was told FENCED_INSTANCE_ID asks for the same group.instance.id again, with an empty member id."""

    exchange: Exchange
    instance: Instance


class WentOnFenced(NamedTuple):
    """A member id sent another request after it was told FENCED_INSTANCE_ID."""

    exchange: Exchange
    member: Member


class FellSilent(NamedTuple):
    """A member's session has run out by any reckoning: nothing was heard of it, and nothing of it waits for an answer."""

    member: Member
    at_us: int


class ToldToRejoin(NamedTuple):
    """A Heartbeat was answered REBALANCE_IN_PROGRESS, again, and no JoinGroup came in between."""

    exchange: Exchange
    member: Member


class Mismatched(NamedTuple):
    """An answer bears another correlation id than the request it is said to answer."""

    exchange: Exchange
    correlation_id: int

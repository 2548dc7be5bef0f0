"""Clients whose requests to join are refused, in a group of any type, since they were last let in.

A client may come under another member id each time, and as another process. It is known again by its group.instance.id, or by its
client id and host.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from coordinator_model.finding import Evidence
from coordinator_model.groups.evidence import client_text
from coordinator_model.groups.records import ClientInfo, Exchange
from coordinator_model.wire.constants import (
    COORDINATOR_MOVES,
    FENCED_INSTANCE_ID,
    GROUP_ID_NOT_FOUND,
    INCONSISTENT_GROUP_PROTOCOL,
    INVALID_SESSION_TIMEOUT,
    MEMBER_ID_REQUIRED,
    NONE,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
    UNKNOWN_SERVER_ERROR,
    UNSUPPORTED_VERSION,
)

PASSING: Final = COORDINATOR_MOVES | {NONE, UNKNOWN_SERVER_ERROR, REBALANCE_IN_PROGRESS, MEMBER_ID_REQUIRED, UNKNOWN_MEMBER_ID}
"""Answers after which a client asks again and is let in: a coordinator that is elsewhere or fails, and steps of joining."""

REPORTED_ELSEWHERE: Final = frozenset(
    {INCONSISTENT_GROUP_PROTOCOL, INVALID_SESSION_TIMEOUT, FENCED_INSTANCE_ID, GROUP_ID_NOT_FOUND, UNSUPPORTED_VERSION}
)
"""Refusals with rules of their own: P-02, T-08, S-01 and S-02, E-10."""

_SAME_US: Final = 600_000_000  #: a process that is started anew each time comes within five minutes
_KEPT: Final = 32


class RefusedJoin(NamedTuple):
    """Refusals of one client with one error in a row."""

    error: int
    first_us: int
    last_us: int
    times: int
    actor: ClientInfo  #: as of the last one, like what follows
    member_id: str
    instance_id: str | None
    api_key: int
    broker: str
    reason: str  #: the broker's own words
    malformed: str  #: what the request must be refused for
    frames: tuple[Evidence, ...]  #: the first two and the latest


def subject_of(exchange: Exchange) -> str:
    """Return by what a client is known again."""
    return exchange.instance_id or client_text(exchange.actor)


def note(known: dict[str, RefusedJoin], exchange: Exchange, frame: Evidence, reason: str | None = "", malformed: str = "") -> None:
    """Note that a request to join was refused.

    :param known: subject → refusals; changed.
    """
    if exchange.error in PASSING or exchange.error in REPORTED_ELSEWHERE:
        return
    subject = subject_of(exchange)
    before = known.pop(subject, None)
    first_us, times = exchange.res_us, 0
    frames: tuple[Evidence, ...] = ()
    if before is not None and before.error == exchange.error and exchange.res_us - before.last_us <= _SAME_US:
        first_us, times, frames = before.first_us, before.times, before.frames
    known[subject] = RefusedJoin(
        exchange.error,
        first_us,
        exchange.res_us,
        times + 1,
        exchange.actor,
        exchange.member_id,
        exchange.instance_id,
        exchange.api_key,
        exchange.broker,
        reason or "",
        malformed,
        (*frames[:2], frame),
    )
    while len(known) > _KEPT:
        del known[next(iter(known))]


def of(known: Mapping[str, RefusedJoin], exchange: Exchange) -> list[str]:
    """Return the subjects by which the client of a request is known as one that was refused."""
    return [
        subject
        for subject, refused in known.items()
        if subject == subject_of(exchange) or (exchange.member_id and exchange.member_id == refused.member_id)
    ]


def let_in(known: dict[str, RefusedJoin], exchange: Exchange) -> bool:
    """Note that a client was let in, or served as a member; return True if it had been refused before."""
    over = of(known, exchange)
    for subject in over:
        del known[subject]
    return bool(over)

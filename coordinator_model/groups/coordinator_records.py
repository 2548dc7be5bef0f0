"""Records of a group's coordinators: terms, FindCoordinator answers, streaks of refusals, the loss of a coordinator."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from coordinator_model.finding import Evidence


class ErrorStreak(NamedTuple):
    """A time in which the same refusal recurred."""

    since_us: int
    last_us: int
    times: int
    frame: Evidence  #: the first

    @property
    def lasted_us(self) -> int:
        return self.last_us - self.since_us


class CoordinatorTerm(NamedTuple):
    """A time in which a broker acted as coordinator, and did not deny being it."""

    first_us: int  #: effective time of its first request
    last_us: int  #: response time of its latest request
    connections: tuple[int, ...]  #: checksums of the names of those that it used
    frame: Evidence  #: the latest
    generation: int = -1  #: of the latest request that names one


class Persisted(NamedTuple):
    """The newest generation whose assignment was delivered, so that it is in the log."""

    generation: int
    res_us: int
    broker: str
    incarnation: int
    roster: tuple[int, ...]  #: checksums of member ids
    frame: Evidence


class FindCoordinatorAnswer(NamedTuple):
    """Refusals by the broker that FindCoordinator names."""

    broker: str
    times: int
    named_again: bool  #: FindCoordinator named it after it had refused
    frames: tuple[Evidence, ...]


class LostCoordinator(NamedTuple):
    """The end of all connections of the group's members."""

    since_us: int
    broker: str
    members: tuple[str, ...]  #: ids of the members then
    session_ms: int  #: the shortest session timeout among them
    searching: tuple[tuple[str | None, str], ...] = ()  #: (client id, host) of clients that sent FindCoordinator since
    frames: tuple[Evidence, ...] = ()  #: the first and the latest of these requests
    returned_us: int = 0  #: when a broker accepted a client again, or the lost one was seen to be there
    node_id: str = ""  #: of the coordinator that FindCoordinator named last before; empty if unknown
    asked_us: int = 0  #: when the request was sent whose answer showed the return: a JoinGroup may have been held since


class Signs(Enum):
    """What shows whether two addresses that act alternately are two brokers, as far as it is known."""

    TWO_NODES = "their node ids differ"
    APART = "one accepted a generation older than the other's"
    NONE = "nothing"
    ALIKE = "neither accepted a generation older than the other's"


def signs_of(rival: int, generation: int) -> Signs:
    """Return what the generations show that the rival accepted last, and this broker after that."""
    if rival < 0 or generation < 0:
        return Signs.NONE
    return Signs.APART if generation < rival else Signs.ALIKE

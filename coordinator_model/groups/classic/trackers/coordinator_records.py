"""What is kept of a group's coordinators: terms, answers that name one, streaks of refusals, the loss of one."""

from __future__ import annotations

from typing import NamedTuple

from coordinator_model.finding import Evidence


class ErrorStreak(NamedTuple):
    """A time in which the same refusal came again and again."""

    since_us: int
    last_us: int
    times: int
    frame: Evidence  #: the first

    @property
    def lasted_us(self) -> int:
        return self.last_us - self.since_us


class CoordinatorTerm(NamedTuple):
    """A time in which a broker acted as coordinator, and nothing it said was to the contrary."""

    first_us: int  #: earliest instant of its first act
    last_us: int  #: answer time of its latest
    connections: tuple[int, ...]  #: checksums of the names of those that it acted on
    frame: Evidence  #: the latest


class Persisted(NamedTuple):
    """The newest generation whose assignment was delivered, and which is therefore in the log."""

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
    """All connections of the group's members ended, and nobody has been accepted since."""

    since_us: int
    broker: str
    members: tuple[str, ...]  #: who was a member then
    session_ms: int  #: the shortest session timeout among them
    searching: tuple[tuple[str | None, str], ...] = ()  #: (client id, host) of those that asked FindCoordinator since
    frames: tuple[Evidence, ...] = ()  #: the first and the latest of these requests
    returned_us: int = 0  #: when a broker accepted somebody again

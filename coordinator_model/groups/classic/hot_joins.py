"""JoinGroups of a classic group that one connection repeats at a high rate, though nothing new comes of them."""

from __future__ import annotations

from typing import Final, NamedTuple

from coordinator_model.finding import Evidence
from coordinator_model.groups.evidence import client_text, response_evidence
from coordinator_model.groups.records import Exchange
from coordinator_model.stored import Stored
from coordinator_model.wire.constants import COORDINATOR_MOVES, MEMBER_ID_REQUIRED, NONE

KEPT: Final = 8
WINDOW_US: Final = 5_000_000
HOT: Final = 20  #: answers within the window
_STEPS: Final = COORDINATOR_MOVES | {MEMBER_ID_REQUIRED}
"""Answers after which a client lawfully asks again at once, or finds another coordinator."""


class Repeated(NamedTuple):
    """JoinGroups of one connection without a pause, whose answers brought nothing new."""

    client: str  #: client id and host
    since_us: int
    last_us: int
    times: int
    window_us: int  #: since when ``in_window`` counts
    in_window: int
    hot_us: int  #: when there were :data:`HOT` within the window for the first time; 0 if there never were
    error: int  #: of the last answer
    frames: tuple[Evidence, ...]  #: the first and the last


class HotJoins(Stored):
    """Those of one group."""

    by_connection: dict[str, Repeated] = {}

    def on_answer(self, exchange: Exchange, *, same_generation: bool) -> None:
        """Note the answer to a JoinGroup.

        :param same_generation: it is a success with the generation of the one before.
        """
        connection, at_us, error = exchange.key[0], exchange.res_us, exchange.error
        if error in _STEPS:
            return
        known = self.by_connection.pop(connection, None)
        if error == NONE and not same_generation:
            return  # the client got on
        frame = response_evidence(exchange, error)
        if known is None or at_us - known.last_us > WINDOW_US:
            known = Repeated(client_text(exchange.actor), at_us, at_us, 0, at_us, 0, 0, error, (frame,))
        if at_us - known.window_us > WINDOW_US:
            known = known._replace(window_us=at_us, in_window=0)
        known = known._replace(
            last_us=at_us, times=known.times + 1, in_window=known.in_window + 1, error=error, frames=(known.frames[0], frame)
        )
        if known.in_window >= HOT and not known.hot_us:
            known = known._replace(hot_us=at_us)
        self.by_connection[connection] = known
        while len(self.by_connection) > KEPT:
            del self.by_connection[next(iter(self.by_connection))]

    @property
    def hot(self) -> list[Repeated]:
        """Return those that are, or were, as fast as a hot loop."""
        return [known for known in self.by_connection.values() if known.hot_us]

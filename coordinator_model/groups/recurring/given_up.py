"""JoinGroups of a classic group whose clients hung up before the answer, and asked again."""

from __future__ import annotations

from typing import Final, NamedTuple

from coordinator_model.events import GroupEvent, MemberJoined
from coordinator_model.finding import Evidence
from coordinator_model.groups.evidence import client_text, request_evidence
from coordinator_model.groups.records import Exchange, JoinFacts
from coordinator_model.groups.recurring.frames import client_of
from coordinator_model.stored import Stored

KEPT: Final = 16
SPAN_US: Final = 900_000_000  #: those whose connection ended longer ago are dropped


class GivenUp(NamedTuple):
    """A JoinGroup that waited when its connection ended."""

    asked_us: int
    closed_us: int
    client: str  #: client id and host
    session_ms: int
    rebalance_ms: int
    frame: Evidence
    again: bool = False  #: the client has asked to join since
    unnamed: str = ""  #: the connection, if it named no member id

    @property
    def waited_us(self) -> int:
        return self.closed_us - self.asked_us


class GivenUpJoins(Stored):
    """Those of one group."""

    known: tuple[GivenUp, ...] = ()  #: oldest first

    def on_closed(self, exchange: Exchange, at_us: int) -> None:
        """Note the end of the connection on which a JoinGroup waited."""
        asked = exchange.facts
        if isinstance(asked, JoinFacts):
            client = client_text(exchange.actor)
            timeouts_ms = asked.session_timeout_ms, asked.rebalance_timeout_ms
            unnamed = "" if exchange.member_id else exchange.key[0]
            one = GivenUp(exchange.inv_us, at_us, client, *timeouts_ms, request_evidence(exchange), unnamed=unnamed)
            self.known = (*(known for known in self.known if at_us - known.closed_us <= SPAN_US), one)[-KEPT:]

    def on_event(self, event: GroupEvent) -> None:
        """Note what happened in the group."""
        if isinstance(event, MemberJoined) and self.known and event.client_id:  # a host alone makes no client known
            client = client_of(event)
            self.known = tuple(one._replace(again=True) if one.client == client else one for one in self.known)

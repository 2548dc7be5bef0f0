"""How far the workers of a Connect group have read their config topic, which their JoinGroups and assignments contain (KIP-415).

A leader assigns with the largest offset that any worker has read up to. A worker with less reads to the end of its topic before it joins
again, so it has as much by then, unless its topic is another one or lost records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from coordinator_model.finding import Evidence
from coordinator_model.groups.evidence import client_text, request_evidence
from coordinator_model.groups.records import Exchange, JoinFacts
from coordinator_model.stored import Stored
from coordinator_model.wire import CONNECT, read_member_assignment, read_metadata

if TYPE_CHECKING:
    from coordinator_model.wire import JoinGroupRequest, SyncGroupResponse

WORKERS_KEPT: Final = 64
URL_KEPT: Final = 120  #: characters
CONFIG_MISMATCH: Final = 1
"""Connect's own error in an assignment: its leader has read less than another worker, and assigned nothing."""


class Worker(NamedTuple):
    """A worker, by the address of its REST interface, its client id and its host."""

    url: str
    client: str
    connection: str  #: of its latest JoinGroup
    session_ms: int
    offset: int  #: up to which it had read by then; -1 if it had read nothing
    sent: int | None = None  #: the offset of the assignment that it has received since
    error: int = 0  #: of the latest assignment
    behind: int = 0  #: JoinGroups in a row whose offset was the same, and below that of the assignment before
    asked: int = 0  #: the offset of the last of those assignments
    since_us: int = 0  #: time of the first of them
    last_us: int = 0
    gap_us: int = 0  #: the longest time between two of them
    frames: tuple[Evidence, ...] = ()  #: the first two and the last two of them
    generation: int = -1  #: of the latest assignment
    shares_us: int = 0  #: since when another worker with the same address was assigned its work in the same generation; 0 for never

    def joins(self, offset: int, at_us: int, frame: Evidence) -> Worker:
        """Return what is known after another JoinGroup."""
        if self.sent is None:
            return self  # it asks again, and was assigned nothing in between
        if offset >= self.sent or (self.behind and offset != self.offset):
            return self._replace(sent=None, behind=0, frames=())
        if not self.behind:
            return self._replace(sent=None, behind=1, asked=self.sent, since_us=at_us, last_us=at_us, gap_us=0, frames=(frame,))
        return self._replace(
            sent=None,
            behind=self.behind + 1,
            asked=self.sent,
            last_us=at_us,
            gap_us=max(self.gap_us, at_us - self.last_us),
            frames=(*self.frames[:2], *self.frames[2:][-1:], frame),
        )


class ConfigOffsets(Stored):
    """Those of one group."""

    workers: dict[str, Worker] = {}  #: url and client → worker; who joined last comes last

    def on_join(self, exchange: Exchange, body: JoinGroupRequest) -> None:
        """Note what the JoinGroup of a worker contains."""
        offers = (read_metadata(CONNECT, protocol.metadata) for protocol in body.protocols)
        state = next((offer.body for offer in offers if offer is not None), None)
        if state is None:
            return
        assert isinstance(exchange.facts, JoinFacts)
        client, connection, session_ms = client_text(exchange.actor), exchange.key[0], exchange.facts.session_timeout_ms
        url = state.url[:URL_KEPT]
        key = f"{url} {client}"
        known = self.workers.pop(key, None) or Worker(url, client, connection, session_ms, state.config_offset)
        known = known.joins(state.config_offset, exchange.inv_us, request_evidence(exchange))
        self.workers[key] = known._replace(connection=connection, session_ms=session_ms, offset=state.config_offset)
        if len(self.workers) > WORKERS_KEPT:
            del self.workers[next((old for old, one in self.workers.items() if not one.behind), next(iter(self.workers)))]

    def on_assignment(self, exchange: Exchange, body: SyncGroupResponse) -> None:
        """Note for which offset a worker is assigned its work."""
        found = read_member_assignment(CONNECT, body.assignment)
        if found is None:
            return
        key = next((key for key, worker in self.workers.items() if worker.connection == exchange.key[0]), None)
        if key is None:
            return
        if any(one.generation > exchange.generation for one in self.workers.values()):  # the group began anew
            self.workers = {known: one._replace(generation=-1) for known, one in self.workers.items()}
        worker = self.workers[key]._replace(sent=found.body.config_offset, error=found.body.error, generation=exchange.generation)
        self.workers[key] = worker
        for other_key, other in self.workers.items():
            if other_key != key and worker.url and other.url == worker.url and other.generation == worker.generation:
                self.workers[key] = worker._replace(shares_us=worker.shares_us or exchange.res_us)
                self.workers[other_key] = other._replace(shares_us=other.shares_us or exchange.res_us)

    @property
    def sharing(self) -> list[Worker]:
        """Return those of the newest generation, and of the one before, which may be on their way, that shared an address."""
        newest = max((worker.generation for worker in self.workers.values()), default=0)
        return [worker for worker in self.workers.values() if worker.shares_us and worker.generation >= newest - 1]

    @property
    def is_any(self) -> bool:
        """True if a worker was behind its assignment when it joined last, or had another's address."""
        return any(worker.behind or worker.shares_us for worker in self.workers.values())

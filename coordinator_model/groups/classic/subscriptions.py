"""What members of a classic group join again for: topics that are new, or nothing at all.

A client that subscribes by a pattern joins again when its metadata shows one more topic that matches. Each member finds that out by itself,
so one new topic may begin as many rebalances as there are members.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple
from zlib import crc32

from coordinator_model.groups.records import Exchange, JoinFacts
from coordinator_model.stored import Stored
from coordinator_model.wire.constants import NONE
from coordinator_model.wire.embedded import read_consumer_subscription

TOPICS_KEPT: Final = 512
NEW_KEPT: Final = 20
DIGESTS_KEPT: Final = 16
SPAN_US: Final = 900_000_000
PAUSE_US: Final = 5_000_000  #: what comes faster is a hot loop
AT_ONCE_US: Final = 100_000  #: within which a client asks that has waited for an answer
REJOINS_KEPT: Final = 12
MEMBERS_KEPT: Final = 8


class NewTopic(NamedTuple):
    """A topic that a member subscribes to, and that none did before."""

    at_us: int
    name: str


class Commit(NamedTuple):
    """A commit whose answer took long."""

    asked_us: int
    answered_us: int


class Rejoin(NamedTuple):
    """One time that a member joined again in a settled group, without a change."""

    at_us: int
    stopped_us: int  #: since when it reads nothing; 0 if it may keep partitions meanwhile
    served_us: int = 0  #: when it got its assignment again

    @property
    def idle_us(self) -> int:
        return self.served_us - self.stopped_us if self.stopped_us else 0


class Subscriptions(Stored):
    """The topics of a group, and joins that nothing explains."""

    known: list[int] = []  #: checksums of the topics that members subscribe to
    digests: tuple[bytes, ...] = ()  #: of their subscriptions
    new: tuple[NewTopic, ...] = ()  #: oldest first
    rejoins: dict[str, tuple[Rejoin, ...]] = {}  #: by member id; each was answered with the same generation
    slow: dict[str, Commit] = {}  #: member id → its last commit, if its answer took long

    def on_join(self, exchange: Exchange, body: Any) -> None:
        """Note the topics of a JoinGroup request."""
        assert isinstance(exchange.facts, JoinFacts)
        digest = exchange.facts.topics
        if not digest or digest in self.digests:
            return
        self.digests = (*self.digests, digest)[-DIGESTS_KEPT:]
        offers = [read_consumer_subscription(protocol.metadata) for protocol in body.protocols]
        topics = {crc32(name.encode()): name for offer in offers if offer is not None for name in offer.topics}
        unknown = [checksum for checksum in topics if checksum not in self.known]
        if self.known and len(unknown) < len(topics):
            found = sorted(NewTopic(exchange.inv_us, topics[checksum]) for checksum in unknown)
            self.new = (*(one for one in self.new if exchange.inv_us - one.at_us <= SPAN_US), *found)[-NEW_KEPT:]
        self.known = [*self.known, *unknown][-TOPICS_KEPT:]

    def on_answer(self, exchange: Exchange, *, same_generation: bool) -> None:
        """Note the answer to a JoinGroup.

        :param same_generation: it is a success with the generation of the one before.
        """
        before = self.rejoins.pop(exchange.member_id, ())
        if exchange.error != NONE or not exchange.member_id or not same_generation:
            return
        assert isinstance(exchange.facts, JoinFacts)
        at_us = exchange.inv_us
        recent = tuple(known for known in before if at_us - known.at_us <= SPAN_US)
        if recent and at_us - recent[-1].at_us < PAUSE_US:
            return  # it is in a loop
        stopped_us = 0 if exchange.facts.owns else self._committed_us(exchange.member_id, at_us)
        self.rejoins[exchange.member_id] = (*recent, Rejoin(at_us, stopped_us))[-REJOINS_KEPT:]
        if len(self.rejoins) > MEMBERS_KEPT:
            del self.rejoins[next(iter(self.rejoins))]

    def _committed_us(self, member_id: str, joined_us: int) -> int:
        """Return when a member committed for the last time before it joined, or when it joined.

        A client that gives up its partitions commits, waits for the answer, and joins at once.
        """
        last = self.slow.get(member_id)
        return last.asked_us if last is not None and 0 <= joined_us - last.answered_us <= AT_ONCE_US else joined_us

    def on_committed(self, exchange: Exchange) -> None:
        """Note the answer to a commit, which a member may wait for before it joins again."""
        self.slow.pop(exchange.member_id, None)
        if exchange.res_us - exchange.inv_us > AT_ONCE_US:
            self.slow[exchange.member_id] = Commit(exchange.inv_us, exchange.res_us)
            if len(self.slow) > MEMBERS_KEPT:
                del self.slow[next(iter(self.slow))]

    def on_assigned(self, exchange: Exchange) -> None:
        """Note that a member got its assignment."""
        known = self.rejoins.get(exchange.member_id)
        if known and not known[-1].served_us:
            self.rejoins[exchange.member_id] = (*known[:-1], known[-1]._replace(served_us=exchange.res_us))

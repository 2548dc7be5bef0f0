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
REJOINS_KEPT: Final = 12
MEMBERS_KEPT: Final = 8


class NewTopic(NamedTuple):
    """A topic that a member subscribes to, and that none did before."""

    at_us: int
    name: str


class Subscriptions(Stored):
    """The topics of a group, and joins that nothing explains."""

    known: list[int] = []  #: checksums of the topics that members subscribe to
    digests: tuple[bytes, ...] = ()  #: of their subscriptions
    new: tuple[NewTopic, ...] = ()  #: oldest first
    rejoins: dict[str, tuple[int, ...]] = {}
    #: member id → times at which it joined again in a settled group, without a change, and was answered with the same generation

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
        at_us = exchange.inv_us
        recent = tuple(known_us for known_us in before if at_us - known_us <= SPAN_US)
        if recent and at_us - recent[-1] < PAUSE_US:
            return  # it is in a loop
        self.rejoins[exchange.member_id] = (*recent, at_us)[-REJOINS_KEPT:]
        if len(self.rejoins) > MEMBERS_KEPT:
            del self.rejoins[next(iter(self.rejoins))]

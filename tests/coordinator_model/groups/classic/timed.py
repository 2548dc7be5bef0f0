"""A conversation with times, whose events are collected."""

from __future__ import annotations

from typing import Any

from coordinator_model import wire
from coordinator_model.events import GroupEvent
from tests.coordinator_model.conversation import START_US, Asked, Client, Conversation, assignment, subscription


class Timed(Conversation):
    """A conversation in which each frame has a time in milliseconds, and whose events are collected."""

    def __init__(self, group: str = "g") -> None:
        super().__init__(group)
        self.events: list[GroupEvent] = []
        self.roster: list[Client] = []

    def _feed(self, *args: Any, **fields: Any) -> None:
        super()._feed(*args, **fields)
        self.events += self.model.drain_events()

    def at(self, ms: float) -> None:
        self.now_us = START_US + round(ms * 1_000)

    def asks_to_join(self, client: Client, ms: float, owned: tuple[int, ...] = ()) -> Asked:
        """An eager member owns nothing by then."""
        self.at(ms)
        claims = (wire.ConsumerProtocolSubscriptionTopicPartition(topic="t", partitions=owned),) if owned else ()
        offered = subscription("t", owned_partitions=claims)
        return self.ask_join(client, protocols=(wire.JoinGroupRequestProtocol(name="range", metadata=offered),))

    def completes(self, asked: list[Asked], generation: int, ms: float) -> None:
        """All JoinGroups are answered at once."""
        self.roster = [one.client for one in asked]
        for one in asked:
            self.at(ms - 1)
            self.joined(one, generation=generation, leader=self.roster[0], roster=self.roster)

    def syncs(self, ms: float, given: dict[Client, tuple[float, tuple[int, ...]]]) -> None:
        """All SyncGroups are sent at ``ms``; each member is answered at its own time, with its partitions of topic t."""
        plan = {client: assignment(t=partitions) for client, (_, partitions) in given.items()}
        asked = []
        for client in self.roster:
            self.at(ms)
            entries = tuple(wire.SyncGroupRequestAssignment(member_id=one.member_id, assignment=plan[one]) for one in plan)
            asked.append(self.ask(client, self.sync_request(client, [], assignments=entries if client is self.roster[0] else ())))
        for one in asked:
            if one.client in given:
                self.at(given[one.client][0])
                reply = wire.SyncGroupResponse(protocol_type="consumer", protocol_name="range", assignment=plan[one.client])
                self.answer(one, reply, after_ms=0)

    def stalls(self, client: Client, since_ms: int, until_ms: int) -> None:
        """It is told to rejoin again and again, and does not."""
        for ms in range(since_ms, until_ms, 3_000):
            self.told_to_rejoin(client, ms)

    def told_to_rejoin(self, client: Client, ms: float) -> None:
        self.at(ms)
        self.heartbeat(client, 27, after_ms=0)

    def has_id(self, name: str) -> Client:
        client = self.client(name)
        self.hand_out_id(client, f"{name}-id")
        return client

    def finished(self) -> dict[str, Any]:
        """The newest record of a rebalance."""
        return [event.as_json() for event in self.events if event.kind == "rebalance_finished"][-1]

    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]

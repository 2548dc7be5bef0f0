"""A conversation with times, whose events are collected."""

from __future__ import annotations

from typing import Any

from coordinator_model.events import GroupEvent
from tests.coordinator_model.conversation import START_US, Client
from tests.coordinator_model.epochs import Epochs, Parts


class Timed(Epochs):
    """A conversation in which each request and its response have a time in milliseconds, and whose events are collected."""

    def __init__(self, group: str = "g") -> None:
        super().__init__(group)
        self.events: list[GroupEvent] = []

    def _feed(self, *args: Any, **fields: Any) -> None:
        super()._feed(*args, **fields)
        self.events += self.model.drain_events()

    def wait(self, ms: float) -> None:
        """Steps have their own times."""

    def at(self, ms: float) -> None:
        """Let time pass, ticks included."""
        super().wait((START_US - self.now_us) / 1_000 + ms)

    def join(self, client: Client, ms: float, epoch: int, given: Parts | None = None) -> None:
        """Answered 10 ms later."""
        self.at(ms)
        asked = self.ask(client, self.beat_request(client, 0, **self.join_fields()))
        self.answer(asked, self.given(client, epoch, {} if given is None else given), after_ms=10)
        client.generation = epoch

    def beat(
        self, client: Client, ms: float, epoch: int | None = None, given: Parts | None = None, owned: Parts | None = None
    ) -> None:
        """Answered 10 ms later."""
        self.at(ms)
        asked = self.ask(client, self.beat_request(client, owned=owned))
        answered = client.generation if epoch is None else epoch
        self.answer(asked, self.given(client, answered, given), after_ms=10)
        client.generation = answered

    def steady(self, clients: tuple[Client, ...], since_ms: int, until_ms: int) -> None:
        for ms in range(since_ms, until_ms, 5_000):
            for number, client in enumerate(clients):
                self.beat(client, ms + 100 * number)

    def kinds(self, since: int = 0) -> list[str]:
        return [event.kind for event in self.events[since:]]

    def the(self, kind: str) -> dict[str, Any]:  # type: ignore[override]
        """The newest event of a kind."""
        return [event.as_json() for event in self.events if event.kind == kind][-1]

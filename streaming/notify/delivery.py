"""What is handed to a receiver at once, and what a kind of receiver must be able to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streaming.notify.http import Outcome
    from streaming.notify.notification import Notification
    from streaming.notify.outbox import Outbox


class Delivery(NamedTuple):
    """One request, or one line; ``notices`` count as told when it is taken."""

    notices: tuple[Notification, ...]
    body: bytes
    problem: str = ""  #: why it cannot be sent


class DeliveryPlan(NamedTuple):
    """What to hand over now, in this order, and when to ask again if nothing happens until then (seconds since the epoch)."""

    deliveries: Sequence[Delivery]
    wake_s: float


class Channel(Protocol):
    """A receiver of one kind."""

    @property
    def name(self) -> str:
        """Kind and name, ``webhook/chat``: what it is remembered by."""

    def plan(self, outbox: Outbox, now_s: float) -> DeliveryPlan:
        """What there is to hand over. Must not block."""

    def send(self, delivery: Delivery) -> Outcome:
        """Hand it over; may take as long as the receiver's timeout."""

    def split(self, delivery: Delivery) -> list[Delivery]:
        """Parts to try when the whole was refused; none when it has no parts."""

    def missed(self) -> None:
        """A delivery did not reach its receiver."""

    def only(self, notice: Notification, now_s: float) -> Delivery:
        """A delivery of this notice alone, for a test."""

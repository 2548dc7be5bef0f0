"""The unit of delivery to a receiver, and the interface that each kind of receiver implements."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streaming.notify.http import Outcome
    from streaming.notify.notification import Notification
    from streaming.notify.outbox import Outbox


class Delivery(NamedTuple):
    """One request or one line of output; ``notices`` count as delivered when the receiver accepts it."""

    notices: tuple[Notification, ...]
    body: bytes
    problem: str = ""  #: why it cannot be sent


class DeliveryPlan(NamedTuple):
    """The deliveries to send now, in this order, and the time of the next plan if nothing changes (seconds since the epoch)."""

    deliveries: Sequence[Delivery]
    wake_s: float


class Channel:
    """A connection to one receiver."""

    name: str
    """Kind and name, ``webhook/chat``: the receiver's key in the delivery log."""

    def plan(self, outbox: Outbox, now_s: float) -> DeliveryPlan:
        """Return what is to be sent. Must not block."""
        raise NotImplementedError

    def send(self, delivery: Delivery) -> Outcome:
        """Send the delivery; may block for the receiver's timeout."""
        raise NotImplementedError

    def split(self, delivery: Delivery) -> list[Delivery]:  # noqa: ARG002 - of most channels it has no parts
        """Return the parts to send one by one after the receiver rejected the whole; empty if it has no parts."""
        return []

    def missed(self) -> None:
        """Handle a delivery that did not reach the receiver; by default by nothing, for what was not accepted is still due."""

    def only(self, notice: Notification, now_s: float) -> Delivery:
        """Return a delivery of this notification alone, for a test."""
        raise NotImplementedError

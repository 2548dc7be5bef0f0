"""What events show: their frames as evidence, and whose they are."""

from __future__ import annotations

from typing import Any

from coordinator_model.finding import Evidence
from coordinator_model.group_event import GroupEvent
from coordinator_model.groups.evidence import client_named


def frame_of(event: GroupEvent, words: str) -> Evidence | None:
    """Return the frame that showed an event, None if there is none, or the event does not say which exchange it belongs to.

    :param words: what the member did, to stand behind its name.
    """
    connection, exchange = (*event.subject, "", "")[:2]
    details = event.details
    if event.frame is None or not isinstance(exchange, int) or connection in {"", details["member_id"]}:
        return None
    who = details["member_id"] or details["client_id"] or "somebody"
    return Evidence(*event.frame, str(connection), exchange, event.at_us, f"{who} {words}")


def client_of(details: dict[str, Any]) -> str:
    """Return client id and host in the details of an event, or of a member in them."""
    return client_named(details["client_id"], details["client_address"])

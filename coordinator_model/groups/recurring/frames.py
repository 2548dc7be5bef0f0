"""What events show: their frames as evidence, and whose they are."""

from __future__ import annotations

from coordinator_model.events import MemberEvent, NamedMember, RebalanceBegan
from coordinator_model.finding import Evidence
from coordinator_model.groups.evidence import client_named
from coordinator_model.groups.records import Exchange


def frame_of(event: MemberEvent | RebalanceBegan, shown_by: Exchange | None, words: str) -> Evidence | None:
    """Return the frame that showed an event, None if there is none.

    :param words: what the member did, to stand behind its name.
    """
    if event.frame is None or shown_by is None:
        return None
    who = event.member_id or event.client_id or "somebody"
    return Evidence(event.frame.partition, event.frame.offset, *shown_by.key, event.at_us, f"{who} {words}")


def client_of(member: MemberEvent | NamedMember) -> str:
    """Return client id and host of the member of an event, or in a record."""
    return client_named(member.client_id, member.client_address)

"""Describe frames as evidence: of a classic group by the generation that they name, of one with epochs by the epoch.

A response names no member, so its description takes the member from the request.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from coordinator_model.events import MemberEvent, NamedMember, RebalanceBegan
from coordinator_model.finding import Evidence
from coordinator_model.groups.records import ClientInfo, Exchange, host_of
from coordinator_model.wire import API_NAMES, error_name

_THREAD: Final = re.compile(r"(.+)-StreamThread-\d+-consumer")
"""The client id of a thread of Kafka Streams. One that fails is replaced by one with another number."""


def process_of(actor: ClientInfo) -> ClientInfo:
    """Return a thread of Kafka Streams under the client id of its process, and any other client as it is."""
    thread = _THREAD.fullmatch(actor.client_id or "")
    return actor if thread is None else actor._replace(client_id=thread[1])


def client_text(actor: ClientInfo) -> str:
    """Return the client id and host by which a process is known again after a restart: ``client id at host``."""
    return client_named(actor.client_id, actor.address)


def lasting_name(actor: ClientInfo, member_id: str, instance_id: str | None) -> str:
    """Return by what a process is known again that loses its member id each time: its instance id, or client id and host."""
    return instance_id or (client_text(actor) if actor.client_id is not None else member_id)


def client_named(client_id: str | None, address: str | None) -> str:
    """Return what :func:`client_text` does, of a client as events name it."""
    return f"{client_id or 'no client id'} at {host_of(address or '')}"


def client_of(member: MemberEvent | NamedMember) -> str:
    """Return client id and host of the member of an event, or in a record."""
    return client_named(member.client_id, member.client_address)


def event_evidence(event: MemberEvent | RebalanceBegan, shown_by: Exchange | None, words: str) -> Evidence | None:
    """Return the frame that showed an event, None if there is none.

    :param words: what the member did, to stand behind its name.
    """
    if event.frame is None or shown_by is None:
        return None
    who = event.member_id or event.client_id or "somebody"
    return Evidence(event.frame.partition, event.frame.offset, *shown_by.key, event.at_us, f"{who} {words}")


def request_evidence(exchange: Exchange) -> Evidence:
    """Return the request as evidence."""
    words = f"{API_NAMES[exchange.api_key]} v{exchange.api_version} request{_particulars(exchange)}"
    return Evidence(exchange.partition, exchange.offset, *exchange.key, exchange.inv_us, words)


def response_evidence(exchange: Exchange, error: int, generation: int | None = None) -> Evidence:
    """Return the response as evidence. ``generation`` is the response's own, if it has one."""
    outcome = error_name(error) if error else "success"
    handed_out = "" if generation is None else f", generation {generation}"
    asked = _particulars(exchange)
    words = f"{API_NAMES[exchange.api_key]} v{exchange.api_version} answer: {outcome}{handed_out}"
    if asked:
        words += f" (to{asked})"
    return Evidence(exchange.partition, exchange.response_offset, *exchange.key, exchange.res_us, words)


def exchange_evidence(exchange: Exchange) -> tuple[Evidence, Evidence]:
    """Return the request and its response as evidence."""
    return request_evidence(exchange), response_evidence(exchange, exchange.error)


def _particulars(exchange: Exchange) -> str:
    return _words(exchange.member_id, exchange.instance_id, exchange.generation)


@lru_cache(maxsize=4_096)  # the same for every frame of a member
def _words(member_id: str, instance_id: str | None, generation: int) -> str:
    parts = []
    if member_id:
        parts.append(f" member {member_id}")
    if instance_id is not None:
        parts.append(f" instance {instance_id}")
    if generation >= 0:
        parts.append(f" generation {generation}")
    return ",".join(parts)


def epoch_request_evidence(exchange: Exchange) -> Evidence:
    """Return the request of a member with an epoch as evidence."""
    words = f"{API_NAMES[exchange.api_key]} v{exchange.api_version} request{_epoch_particulars(exchange)}"
    return Evidence(exchange.partition, exchange.offset, *exchange.key, exchange.inv_us, words)


def epoch_response_evidence(exchange: Exchange, returned: int | None = None) -> Evidence:
    """Return the response to a member with an epoch as evidence. ``returned`` is the epoch in it, if it has one."""
    outcome = error_name(exchange.error) if exchange.error else "success"
    epoch = "" if returned is None else f", epoch {returned}"
    words = f"{API_NAMES[exchange.api_key]} v{exchange.api_version} answer: {outcome}{epoch} (to{_epoch_particulars(exchange)})"
    return Evidence(exchange.partition, exchange.response_offset, *exchange.key, exchange.res_us, words)


def epoch_exchange_evidence(exchange: Exchange) -> tuple[Evidence, Evidence]:
    """Return the request of a member with an epoch and its response as evidence."""
    return epoch_request_evidence(exchange), epoch_response_evidence(exchange)


def _epoch_particulars(exchange: Exchange) -> str:
    instance = "" if exchange.instance_id is None else f", instance {exchange.instance_id}"
    return f" member {exchange.member_id or 'without an id'}{instance}, epoch {exchange.generation}"

"""Describe frames of a group with epochs as evidence."""

from __future__ import annotations

from coordinator_model.finding import Evidence
from coordinator_model.groups.epochs.data import EpochGroupData
from coordinator_model.groups.epochs.kinds import STREAMS
from coordinator_model.groups.records import Exchange, Partitions
from coordinator_model.wire import API_NAMES, error_name

_TOPICS_NAMED = 3


def asked_evidence(exchange: Exchange) -> Evidence:
    """Return the request as evidence."""
    words = f"{API_NAMES[exchange.api_key]} v{exchange.api_version} request{_particulars(exchange)}"
    return Evidence(exchange.partition, exchange.offset, *exchange.key, exchange.inv_us, words)


def answer_evidence(exchange: Exchange, returned: int | None = None) -> Evidence:
    """Return the response as evidence. ``returned`` is the epoch in it, if it has one."""
    outcome = error_name(exchange.error) if exchange.error else "success"
    epoch = "" if returned is None else f", epoch {returned}"
    words = f"{API_NAMES[exchange.api_key]} v{exchange.api_version} answer: {outcome}{epoch} (to{_particulars(exchange)})"
    return Evidence(exchange.partition, exchange.response_offset, *exchange.key, exchange.res_us, words)


def exchange_evidence(exchange: Exchange) -> tuple[Evidence, Evidence]:
    """Return the request and its response as evidence."""
    return asked_evidence(exchange), answer_evidence(exchange)


def _particulars(exchange: Exchange) -> str:
    instance = "" if exchange.instance_id is None else f", instance {exchange.instance_id}"
    return f" member {exchange.member_id or 'without an id'}{instance}, epoch {exchange.generation}"


def partitions_text(group: EpochGroupData, partitions: Partitions) -> str:
    """Return ``orders-2 and orders-5``, ``tasks 0_2 and 0_5`` for a Streams group; the number and the first for many."""
    if group.kind == STREAMS:  # Kafka Streams' own names
        names = [f"{subtopology}_{number}" for subtopology, number in sorted(partitions)]
        kind, before = "tasks", "task " if len(names) == 1 else "tasks "
    else:
        names = [f"{group.topic_text(topic)}-{number}" for topic, number in sorted(partitions)]
        kind, before = "partitions", ""
    if len(names) > 2 * _TOPICS_NAMED:
        return f"{len(names)} {kind} ({', '.join(names[:_TOPICS_NAMED])} …)"
    return before + " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)

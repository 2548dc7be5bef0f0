"""C-08: a coordinator that answers UNKNOWN_SERVER_ERROR.

A coordinator writes a classic group as one record, with the subscription and the assignment of every member, when the leader's SyncGroup
comes. If the log refuses the record as too large, every SyncGroup of the generation is answered UNKNOWN_SERVER_ERROR, and all members join
again: that is one failure, not one of each member.
"""

from __future__ import annotations

from typing import Final

from coordinator_model.finding import BROKER, CERTAIN, CONFIG, ERROR
from coordinator_model.groups.classic.group import ClassicGroup
from coordinator_model.groups.coordinator_changes import GenerationFailed, InternalError
from coordinator_model.groups.evidence import request_evidence, response_evidence
from coordinator_model.groups.records import Generation
from coordinator_model.rules.base import Breach, asker_text, rule
from coordinator_model.wire import API_NAMES, error_name
from coordinator_model.wire.constants import UNKNOWN_SERVER_ERROR
from coordinator_model.wording import a_or_an, counted

LARGEST_RECORD: Final = 1_048_588
"""``max.message.bytes`` of ``__consumer_offsets`` unless it is set."""

_RECORD_OVERHEAD: Final = 100
"""What the record holds of a member beside its subscription and assignment, at least: its ids, host and timeouts."""

SHRINK: Final = (
    "Make the group's record smaller: members that subscribe to fewer topics, fewer members, or groups of their own for a part of the "
    "topics. A group with group.protocol=consumer (KIP-848) stores each member by itself. Else raise max.message.bytes of the topic "
    "__consumer_offsets above the size named. The broker's log has a RecordTooLargeException."
)


def record_bytes(generation: Generation) -> int:
    """Return how many bytes the generation's record has to hold at least, as far as it is known."""
    members = len(generation.roster or ())
    return generation.subscription_bytes + generation.assignment_bytes + members * _RECORD_OVERHEAD


def stored_text(generation: Generation) -> str:
    """Return what the generation's record has to hold, in words."""
    of = counted(len(generation.roster or ()), "member")
    subscriptions, assignments = counted(generation.subscription_bytes, "byte"), counted(generation.assignment_bytes, "byte")
    return f"{subscriptions} of subscriptions and {assignments} of assignments of {of}"


def _generation_failed(group: ClassicGroup, failed: GenerationFailed) -> Breach:
    exchange, generation = failed.exchange, failed.generation
    stored, too_large = ("", False) if generation is None else _record_of(generation)
    return Breach(
        "",
        f"Broker {exchange.broker} answered the SyncGroups of generation {exchange.generation} of group {group.name} with an internal "
        f"error ({error_name(UNKNOWN_SERVER_ERROR)}): the coordinator could not store the assignment, so no member gets partitions; they "
        f"join again and fail again, or stop. {_cause(stored, too_large=too_large)}",
        f"SyncGroup answered {error_name(UNKNOWN_SERVER_ERROR)} at generation {exchange.generation}{f'; {stored}' if stored else ''}",
        (
            *(() if generation is None else (generation.proof,)),
            request_evidence(exchange),
            response_evidence(exchange, UNKNOWN_SERVER_ERROR),
        ),
        generation=exchange.generation,
        blame=CONFIG if too_large else None,
        action=SHRINK if too_large else None,
    )


@rule("internal error", ERROR, CERTAIN, BROKER, also=(_generation_failed,))
def C_08(group: ClassicGroup, internal: InternalError) -> Breach:
    """The coordinator ran into an error that it has no code for. At a SyncGroup: it could not store the generation, most often
    because the group's record is larger than max.message.bytes of __consumer_offsets allows.

    Condition: UNKNOWN_SERVER_ERROR in the answer to a request of the group; of the SyncGroups of one generation the first.
    Expected: Success, or an error that the protocol knows.
    Action: Find the exception in that broker's log at the time named.
    False alarms: A client that uses an id just issued together with a group.instance.id provokes it.
    """
    exchange = internal.exchange
    return Breach.of_sender(
        exchange,
        f"Broker {exchange.broker} answered {a_or_an(API_NAMES[exchange.api_key])} of {asker_text(exchange)} in group "
        f"{group.name} with an internal error.",
        f"{API_NAMES[exchange.api_key]} answered {error_name(-1)}",
        (request_evidence(exchange), response_evidence(exchange, -1)),
        subject=exchange.member_id or exchange.actor.connection,
        generation=None,
    )


def _record_of(generation: Generation) -> tuple[str, bool]:
    """Return what the generation's record has to hold, empty if that is not known, and whether that is too much."""
    if not generation.subscription_bytes:
        return "", False
    return stored_text(generation), record_bytes(generation) > LARGEST_RECORD


def _cause(stored: str, *, too_large: bool) -> str:
    limit = f"max.message.bytes of __consumer_offsets ({LARGEST_RECORD:,} unless it is set)"
    if too_large:
        return f"The likely cause is the size of the group's metadata: one record has to hold {stored}, which exceeds {limit}."
    known = f" Here it has to hold {stored}." if stored else ""
    return f"A known cause is that the group's record exceeds {limit}.{known}"

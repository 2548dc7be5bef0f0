"""Family C: the record of a classic group, refused as too large (C-08), or near to that (C-15).

A coordinator writes a classic group as one record, with the subscription and the assignment of every member, when the leader's SyncGroup
comes. If the log refuses the record as too large, every SyncGroup of the generation is answered UNKNOWN_SERVER_ERROR, and all members join
again: that is one failure, not one of each member.
"""

from __future__ import annotations

from typing import Final

from coordinator_model.finding import BROKER, CERTAIN, CONFIG, CONFIRMED, ERROR, WARNING
from coordinator_model.groups.classic.group import ClassicGroup
from coordinator_model.groups.classic.trackers.rebalance_history import Settled
from coordinator_model.groups.coordinator_changes import GenerationFailed, InternalError
from coordinator_model.groups.evidence import request_evidence, response_evidence
from coordinator_model.groups.records import Generation
from coordinator_model.rules.base import Breach, asker_text, rule
from coordinator_model.wire import API_NAMES, error_name
from coordinator_model.wire.constants import UNKNOWN_SERVER_ERROR
from coordinator_model.wording import a_or_an, counted

_SHARE: Final = 0.5  #: of the largest record; a few more members or topics fill it

_LARGEST_RECORD: Final = 1_048_588
"""``max.message.bytes`` of ``__consumer_offsets`` unless it is set."""

_RECORD_OVERHEAD: Final = 100
"""What the record holds of a member beside its subscription and assignment, at least: its ids, host and timeouts."""

_SHRINK: Final = (
    "Make the group's record smaller: members that subscribe to fewer topics, fewer members, or groups of their own for a part of the "
    "topics. A group with group.protocol=consumer (KIP-848) stores each member by itself. Else raise max.message.bytes of the topic "
    "__consumer_offsets above the size named. The broker's log has a RecordTooLargeException."
)


def _record_bytes(generation: Generation) -> int:
    """Return how many bytes the generation's record has to hold at least, as far as it is known."""
    members = len(generation.roster or ())
    return generation.subscription_bytes + generation.assignment_bytes + members * _RECORD_OVERHEAD


def _stored_text(generation: Generation) -> str:
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
        action=_SHRINK if too_large else None,
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
    return _stored_text(generation), _record_bytes(generation) > _LARGEST_RECORD


def _cause(stored: str, *, too_large: bool) -> str:
    limit = f"max.message.bytes of __consumer_offsets ({_LARGEST_RECORD:,} unless it is set)"
    if too_large:
        return f"The likely cause is the size of the group's metadata: one record has to hold {stored}, which exceeds {limit}."
    known = f" Here it has to hold {stored}." if stored else ""
    return f"A known cause is that the group's record exceeds {limit}.{known}"


def _fits(group: ClassicGroup, subject: str) -> bool:  # noqa: ARG001
    newest = group.newest_generation
    return newest is not None and newest.sync_done_us is not None and _record_bytes(newest) < _SHARE * _LARGEST_RECORD


@rule("group record grows large", WARNING, CONFIRMED, CONFIG, suppressed_by=("C-08",), over=_fits, quiet_times=60)
def C_15(group: ClassicGroup, settled: Settled) -> Breach | None:
    """The coordinator writes a classic group as one record, with the subscription and the assignment of every member. When the
    record exceeds max.message.bytes of __consumer_offsets, no generation can be stored and the group stands still (C-08).

    Condition: A generation was stored whose subscriptions, as its leader got them, and assignments are together half of 1 MiB or
        more, the default of max.message.bytes.
    Expected: A record of some kilobytes.
    Action: Make the record smaller before it is refused: fewer topics in each subscription, fewer members, or the consumer
        protocol.
    False alarms: A cluster on which max.message.bytes of __consumer_offsets was raised.
    """
    newest: Generation = settled.newest
    size = _record_bytes(newest)
    if not newest.subscription_bytes or size < _SHARE * _LARGEST_RECORD:
        return None
    each = size // max(1, len(newest.roster or ()))
    more = max(0, _LARGEST_RECORD - size) // max(1, each)
    room = f"room for {counted(more, 'more member')}" if more else "no room for another member"
    return Breach(
        "",
        f"The metadata of group {group.name} takes {100 * size // _LARGEST_RECORD} % of the largest record that the log of "
        f"__consumer_offsets takes unless it is configured ({_LARGEST_RECORD:,} bytes): for generation {newest.generation} it holds "
        f"{_stored_text(newest)}. There is {room} of this size; beyond it no member gets partitions.",
        f"{counted(size, 'byte')} at least, {each:,} a member",
        (newest.proof,),
        generation=newest.generation,
        action=_SHRINK,
    )

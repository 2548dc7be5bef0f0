"""C-15: a classic group whose record comes near to what the log takes; see ``internal_errors`` for what happens beyond."""

from __future__ import annotations

from typing import Final

from coordinator_model.finding import CONFIG, CONFIRMED, WARNING
from coordinator_model.groups.classic.group import ClassicGroup
from coordinator_model.groups.classic.trackers.rebalance_history import Settled
from coordinator_model.groups.records import Generation
from coordinator_model.rules.base import Breach, rule
from coordinator_model.rules.internal_errors import LARGEST_RECORD, SHRINK, record_bytes, stored_text
from coordinator_model.wording import counted

_SHARE: Final = 0.5  #: of the largest record; a few more members or topics make up the rest


def _fits(group: ClassicGroup, subject: str) -> bool:  # noqa: ARG001
    newest = group.newest_generation
    return newest is not None and newest.sync_done_us is not None and record_bytes(newest) < _SHARE * LARGEST_RECORD


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
    size = record_bytes(newest)
    if not newest.subscription_bytes or size < _SHARE * LARGEST_RECORD:
        return None
    each = size // max(1, len(newest.roster or ()))
    more = max(0, LARGEST_RECORD - size) // max(1, each)
    room = f"room for {counted(more, 'more member')}" if more else "no room for another member"
    return Breach(
        "",
        f"The metadata of group {group.name} takes {100 * size // LARGEST_RECORD} % of the largest record that the log of "
        f"__consumer_offsets takes unless it is configured ({LARGEST_RECORD:,} bytes): for generation {newest.generation} it holds "
        f"{stored_text(newest)}. There is {room} of this size; beyond it no member gets partitions.",
        f"{counted(size, 'byte')} at least, {each:,} a member",
        (newest.proof,),
        generation=newest.generation,
        action=SHRINK,
    )


RULES = (C_15,)

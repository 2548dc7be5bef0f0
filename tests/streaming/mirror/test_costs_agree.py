"""What a rebalance costs is the same from the frames and from the log of the same minutes, or not known from the log.

Logs are made of the golden transcripts, in which members leave, die and restart.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence

import pytest

from coordinator_model.events import GroupEvent, RebalanceFinished
from coordinator_model.wire.constants import JOIN_GROUP, SYNC_GROUP
from coordinator_model.wire.record import Kind, MirrorRecord
from streaming.engine.engine import Engine
from streaming.mirror.broker_log.reader import RequestLogReader
from streaming.mirror.pcap.files import opened
from tests.golden.transcript import SETTINGS, names, read
from tests.samples import sampled
from tests.streaming.mirror.request_log_lines import lines_of

SECOND_US = 1_000_000
Costs = dict[tuple[str, int], tuple[int, int, int | None]]
"""Group and generation or epoch → members, member-microseconds, and partition-microseconds without a holder."""


def not_as_logged(records: Iterable[MirrorRecord]) -> list[int]:
    """When a JoinGroup or SyncGroup came that has no line of this time: one that was never answered, or that waited behind another."""
    asked: dict[tuple[str, int], int] = {}
    behind = []
    for record in records:
        key = record.connection, record.exchange
        if record.kind is Kind.REQUEST and record.api_key in {JOIN_GROUP, SYNC_GROUP}:
            asked[key] = record.at_us
            behind += [record.at_us] if record.queued_behind else []
        elif record.kind is Kind.RESPONSE:
            asked.pop(key, None)
    return [*behind, *asked.values()]


def costs_of(happened: Iterable[GroupEvent], otherwise: Sequence[int] = ()) -> Costs:
    """The costs of the rebalances that were seen to their ends; of a number that was reached twice none.

    :param otherwise: times during which a rebalance is left out.
    """
    found: Costs = {}
    left_out = set()
    for event in happened:
        if isinstance(event, RebalanceFinished) and event.to_generation is not None and event.ended == "every member was served":
            key = event.group, event.to_generation
            left_out |= {key} & found.keys()
            if any((event.began_us or 0) - SECOND_US <= at_us <= event.at_us for at_us in otherwise):
                left_out.add(key)
            found[key] = len(event.members), event.cost_us, None if event.unheld is None else sum(one.us for one in event.unheld)
    return {key: cost for key, cost in found.items() if key not in left_out}


def of_frames(records: Sequence[MirrorRecord]) -> Costs:
    happened: list[GroupEvent] = []
    engine = Engine(topic="frames", settings=SETTINGS, found=lambda _: None, happened=happened.append)
    for record in records:
        engine.captured(record)
    engine.finish()
    return costs_of(happened, not_as_logged(records))


def of_log(log: Iterable[bytes]) -> Costs:
    happened: list[GroupEvent] = []
    engine = Engine(topic="log", settings=SETTINGS, found=lambda _: None, happened=happened.append)
    reader = RequestLogReader(engine.recorded)
    reader.read([reader.entries_in(opened(io.BytesIO(b"".join(log))), pytest.fail)])
    reader.finish()
    engine.finish()
    return costs_of(happened)


SAMPLE = {
    "lawful-cooperative-4.1.2",
    "lawful-eager-4.1.2",
    "lawful-static-4.4.0",
    "violation-crash-loop-4.3.1",
    "violation-epochs-falls-silent-4.4.0",
    "violation-zombie-member-3.9.2",
}
"""Some in which members die: only the ends of their connections show since when nobody held what they had."""


@pytest.mark.parametrize("name", sampled(names(), SAMPLE))
def test_a_log_gives_the_costs_of_the_frames_or_null(name):
    records = list(read(name))
    frames, log = of_frames(records), of_log(lines_of(records))
    for key in frames.keys() & log.keys():
        (members, waited_us, unheld_us), (_, logged_us, logged_unheld_us) = frames[key], log[key]
        assert abs(logged_us - waited_us) < members * SECOND_US, key
        assert unheld_us is None or logged_unheld_us is None or abs(logged_unheld_us - unheld_us) < SECOND_US, key

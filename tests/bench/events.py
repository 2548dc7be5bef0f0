"""What events cost: ``make bench-events``. Golden transcripts through the model, with its recorder of events and without, decoding included.

Steady heartbeats of classic groups never reach the recorder. So the transcripts, which are mostly rebalances, show the most that it can
cost. Each heartbeat of a group with epochs is compared with what was known before, so steady ones are measured, too.
"""

from __future__ import annotations

import json
import statistics
import time
from unittest.mock import patch

from coordinator_model.coordinator import Coordinator
from coordinator_model.groups.classic.rebalance import ClassicRebalances
from coordinator_model.groups.epochs.rebalance import EpochRebalances
from coordinator_model.wire.record import MirrorRecord
from tests.coordinator_model.epochs import Epochs, foo
from tests.golden import transcript

_RUNS = 7


def _nothing(*_args: object, **_more: object) -> None:
    return


_CLASSIC = "on_request on_response on_state on_silent on_removed on_restored on_left on_refused on_disconnect on_closed on_gap"
_EPOCHS = "known_of on_response on_removed on_disconnect on_gap"


def steady() -> list[MirrorRecord]:
    """Heartbeats of a consumer group of ten members in which nothing happens."""
    talk = Epochs()
    members = [talk.member(f"member-{number}") for number in range(10)]
    for number, member in enumerate(members):
        talk.joins(member, 2 + number, foo(number))
    talk.live(members, 5)
    for member in members:
        talk.beats(member, 11)
    talk.live(members, 5_000)
    return talk.records


def run(transcripts: list[list[MirrorRecord]]) -> tuple[float, int, float]:
    """Processor seconds of the models, events, and processor seconds to write those as JSON."""
    models = [Coordinator(topic="golden", partition=0, settings=transcript.SETTINGS) for _ in transcripts]
    started = time.process_time()
    for model, records in zip(models, transcripts, strict=True):
        for record in records:
            model.receive(record)
    model_s = time.process_time() - started
    events = [event for model in models for event in model.drain_events()]
    started = time.process_time()
    for event in events:
        json.dumps(event.as_json())
    return model_s, len(events), time.process_time() - started


def compare(what: str, transcripts: list[list[MirrorRecord]]) -> None:
    """Print what the recorders cost over some records."""
    records = sum(map(len, transcripts))
    run(transcripts)
    differences, without, written = [], [], []
    events = 0
    for _ in range(_RUNS):
        with (
            patch.multiple(ClassicRebalances, **dict.fromkeys(_CLASSIC.split(), _nothing)),
            patch.multiple(EpochRebalances, **dict.fromkeys(_EPOCHS.split(), _nothing)),
        ):
            silent_s, _, _ = run(transcripts)
        model_s, events, json_s = run(transcripts)
        without.append(silent_s / records * 1e6)
        differences.append((model_s - silent_s) / records * 1e6)
        written.append(json_s / records * 1e6)
    print(f"{what}: {records:,} records, {events:,} events, {events / records:.3f} a record")
    print(f"  model without events: {statistics.median(without):.1f} µs a record (median of {_RUNS})")
    print(f"  events: {statistics.median(differences):.2f} µs a record ({min(differences):.2f} to {max(differences):.2f})")
    print(f"  events as JSON: {statistics.median(written):.2f} µs a record")


def main() -> None:
    compare("golden transcripts", [transcript.read(name) for name in transcript.names()])
    compare("steady heartbeats of a consumer group", [steady()])


if __name__ == "__main__":
    main()

"""What events cost: ``make bench-events``. Golden transcripts through the model, with its recorder of events and without, decoding included.

Steady heartbeats never reach the recorder. So the transcripts, which are mostly rebalances, show the most that it can cost.
"""

from __future__ import annotations

import json
import statistics
import time
from unittest.mock import patch

from coordinator_model.coordinator import Coordinator
from coordinator_model.groups.classic.rebalance_events import RebalanceEvents
from coordinator_model.wire.record import MirrorRecord
from tests.golden import transcript

_RUNS = 7


class Silent(RebalanceEvents):
    """Records nothing."""

    def _nothing(self, *_args: object, **_more: object) -> None:
        return

    on_request = on_response = on_state = on_silent = on_removed = on_restored = _nothing  # type: ignore[assignment]
    on_left = on_refused = on_disconnect = on_gap = _nothing  # type: ignore[assignment]


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


def main() -> None:
    transcripts = [transcript.read(name) for name in transcript.names()]
    frames = sum(map(len, transcripts))
    run(transcripts)
    differences, without, written = [], [], []
    events = 0
    for _ in range(_RUNS):
        with patch("coordinator_model.groups.classic.group.RebalanceEvents", Silent):
            silent_s, _, _ = run(transcripts)
        model_s, events, json_s = run(transcripts)
        without.append(silent_s / frames * 1e6)
        differences.append((model_s - silent_s) / frames * 1e6)
        written.append(json_s / frames * 1e6)
    print(f"{frames:,} records of {len(transcripts)} transcripts, {events:,} events, {events / frames:.2f} a record")
    print(f"model without events: {statistics.median(without):.1f} µs a record (median of {_RUNS})")
    print(f"events: {statistics.median(differences):.2f} µs a record ({min(differences):.2f} to {max(differences):.2f})")
    print(f"events as JSON: {statistics.median(written):.2f} µs a record")


if __name__ == "__main__":
    main()

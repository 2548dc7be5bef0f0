"""Request lines in another order than that in which they were written, or twice: what they tell is the same."""

from __future__ import annotations

import io
import lzma
from collections import Counter
from itertools import pairwise
from random import Random

import pytest

from coordinator_model.wire.record import MirrorRecord
from streaming.mirror.broker_log.reader import RequestLogReader
from streaming.mirror.pcap.files import opened
from tests.streaming.mirror.request_log_lines import BY_BROKERS, RELEASES, findings_of, heartbeat

HOUR_MS = 3_600_000


def times_of(*logs: list[bytes], **options: int) -> tuple[Counter[tuple[object, ...]], RequestLogReader]:
    """What passed on which connection, and when."""
    found: list[MirrorRecord] = []
    reader = RequestLogReader(found.append, **options)
    reader.read([reader.entries_in(opened(io.BytesIO(b"".join(log))), pytest.fail) for log in logs])
    reader.finish()
    return Counter((one.connection, one.exchange, one.kind, one.group, one.at_us, one.frame) for one in found), reader


def at_times(log: list[bytes]) -> dict[tuple[object, ...], int]:
    """When each frame passed; those of one millisecond on one connection may have changed places."""
    return {(one[0], one[2], one[3], one[5]): one[4] for one in times_of(log)[0] if one[1] >= 0}


def parts(log: list[bytes]) -> list[list[bytes]]:
    """A log in four files, as it is rotated, none within the same tenth of a second."""
    borders = [next(at for at in range(len(log) * part // 4, len(log)) if log[at][:22] != log[at - 1][:22]) for part in (1, 2, 3)]
    return [log[begin:end] for begin, end in pairwise([0, *borders, len(log)])]


@pytest.fixture(params=RELEASES)
def log(request: pytest.FixtureRequest) -> list[bytes]:
    with lzma.open(BY_BROKERS / f"{request.param}.log.xz") as file:
        return file.readlines()


def test_a_log_with_the_newest_line_first_tells_what_it_tells_in_order(log):
    """As Loki, Google Cloud and CloudWatch Insights give it by default."""
    assert times_of(log[::-1])[0] == times_of(log)[0]


def test_rotated_files_that_were_put_together_the_newest_first_tell_what_they_tell_in_order(log):
    """As ``cat kafka-request.log*`` does it."""
    together = [line for part in reversed(parts(log)) for line in part]
    assert {one.rule for one in findings_of(together)[0]} == {one.rule for one in findings_of(log)[0]}
    found, expected = at_times(together), at_times(log)
    assert found.keys() == expected.keys()
    assert (
        max(abs(found[one] - expected[one]) for one in found) < 2_000
    )  # a broker takes no request before it has answered the last


@pytest.mark.parametrize("seed", range(4))
def test_lines_that_changed_places_with_their_neighbours_tell_what_they_tell_in_order(log, seed):
    """As collectors that write with several threads mix them."""
    chance = Random(seed)
    mixed = [line for _, line in sorted((at + 4 * chance.random(), line) for at, line in enumerate(log))]
    found, expected = at_times(mixed), at_times(log)
    assert found.keys() == expected.keys()
    assert max(abs(found[one] - expected[one]) for one in found) < 5_000
    assert {one.rule for one in findings_of(mixed)[0]} == {one.rule for one in findings_of(log)[0]}


@pytest.mark.parametrize("again", [lambda log: [log, log], lambda log: [log + log], lambda log: [log, *parts(log)[:2]]])
def test_lines_that_stand_there_twice_count_once(log, again):
    expected, _ = times_of(log)
    found, reader = times_of(*again(log))
    assert found == expected
    assert any("stand there twice, and count once" in note for note in reader.notes())


def test_lines_far_behind_newer_ones_are_a_gap_and_nothing_is_made_of_them():
    """More are between than are held back."""
    newer = [heartbeat(at_ms, correlation_id=at_ms) for at_ms in range(600_000, 700_000, 1_000)]
    older = [heartbeat(at_ms, correlation_id=at_ms) for at_ms in range(0, 100_000, 1_000)]
    found, reader = times_of(newer + older, held_back_us=5_000_000, held_at_least=0)
    assert reader.counts["exchanges"] == len(newer)
    assert sum(one[2] == "gap" for one in found) > 0
    assert any("100 lines that stand behind far newer ones, and were left out" in note for note in reader.notes())


@pytest.mark.parametrize("order", ["the newest first", "put together the newest first"])
def test_times_that_go_back_since_lines_stand_in_another_order_are_no_clock_that_was_set_back(order):
    lines = [heartbeat(at_ms, correlation_id=at_ms) for at_ms in range(0, 2 * HOUR_MS, 20_000)]
    hour = [lines[at : at + 30] for at in range(0, len(lines), 30)]  # ten minutes each
    together = lines[::-1] if order == "the newest first" else [line for part in reversed(hour) for line in part]
    assert not any("came twice" in note for note in times_of(together)[1].notes())

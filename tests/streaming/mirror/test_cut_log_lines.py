"""Lines that are cut, as collectors of logs cut them: what cannot be read is a gap, and nobody's fault.

Logs are made of the golden transcripts, in which every kind of trouble stands.
"""

from __future__ import annotations

import lzma
import re
from collections.abc import Iterator
from datetime import datetime
from random import Random
from zlib import crc32

import pytest

from coordinator_model.finding import Severity
from streaming.mirror.broker_log.reader import RequestLogReader
from tests.golden.transcript import names, read
from tests.samples import sampled
from tests.streaming.mirror.request_log_lines import BY_BROKERS, RELEASES, findings_of, lines_of

GRAVE = {Severity.ERROR, Severity.CRITICAL}


def grave(log: list[bytes]) -> tuple[set[tuple[str, str, str | None]], RequestLogReader]:
    """Rule, group and member of what is found at error or above, with the reader that read the log."""
    found, reader = findings_of(log)
    return {(one.rule, one.group, one.member_id) for one in found if one.severity in GRAVE}, reader


def guilty(found: set[tuple[str, str, str | None]]) -> set[tuple[str, str | None]]:
    """Group and member of each of these findings."""
    return {(group, member) for _, group, member in found}


def is_whole(line: bytes) -> bool:
    """Return True if the object in a line is; what comes behind it names the logger."""
    return re.search(rb'"}}[ \n]', line) is not None


def cut(line: bytes, at: int) -> bytes:
    return line if len(line) <= at else line[:at] + b"\n"


def grave_in_log(release: str) -> tuple[list[bytes], set[tuple[str, str, str | None]]]:
    """The lines of a broker, and what is found at error or above when all are whole."""
    with lzma.open(BY_BROKERS / f"{release}.log.xz") as file:
        whole = file.readlines()
    return whole, grave(whole)[0]


SAMPLE = {name for name in names() if crc32(name.encode()) % 8 == 0}


def cuts(whole: list[bytes]) -> Iterator[list[bytes]]:
    """Every second line cut, and each line at several lengths."""
    yield [cut(line, 160) if number % 2 else line for number, line in enumerate(whole)]
    for at in (200, 500, 1_000, 4_000):
        yield [cut(line, at) for line in whole]


@pytest.mark.parametrize("name", sampled(names(), SAMPLE))
def test_what_is_cut_makes_nobody_guilty(name):
    whole = lines_of(read(name))
    known, _ = grave(whole)
    for log in cuts(whole):
        found, reader = grave(log)
        assert found <= known
        unread = sum(not is_whole(line) for line in log)
        assert reader.lines.counts.total() == unread
        assert {f"{count:,} request lines {reason}" for reason, count in reader.lines.counts.items()} <= set(reader.notes())


@pytest.mark.parametrize("release", RELEASES)
def test_what_is_cut_in_the_log_of_a_broker_makes_nobody_guilty(release):
    """Lines of other requests stand in it, too, and are not counted."""
    whole, known = grave_in_log(release)
    for log in cuts(whole):
        found, reader = grave(log)
        assert found <= known
        assert (reader.lines.counts.total() > 0) == any(not is_whole(line) for line in log)


@pytest.mark.parametrize("release", RELEASES)
def test_one_cut_SyncGroup_line_makes_nobody_guilty(release):
    """They are the longest lines, and cut first: the plan that a leader sent is what P-08 compares assignments with."""
    whole, known = grave_in_log(release)
    syncs = [number for number, line in enumerate(whole) if b'"requestApiKey":14,' in line]
    assert len(syncs) >= 8
    for number in syncs:
        found, reader = grave([*whole[:number], cut(whole[number], 400), *whole[number + 1 :]])
        assert found <= known
        assert "P-08" not in {rule for rule, *_ in found}
        assert reader.lines.counts.total() == 1


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("release", RELEASES)
def test_two_lines_in_a_hundred_that_are_cut_make_nobody_guilty(release, seed):
    whole, known = grave_in_log(release)
    chance = Random(f"{release} {seed}")
    log = [cut(line, chance.randrange(100, 1_000)) if chance.random() < 0.02 else line for line in whole]
    found, _ = grave(log)
    assert log != whole
    assert found <= known


def times(line: bytes) -> tuple[float, float]:
    """When the request of a line came, and when it was over, seconds."""
    over_s = datetime.strptime(line[1:24].decode(), "%Y-%m-%d %H:%M:%S,%f").astimezone().timestamp()
    return over_s - float(re.search(rb'"totalTimeMs":([0-9.]+)', line)[1]) / 1_000, over_s


def switched_on(log: list[bytes], at_s: float) -> list[bytes]:
    """The log of a logger that is switched on: a request that came before has none in its line."""
    after = [(line, times(line)) for line in log if times(line)[1] >= at_s]
    return [
        line if came_s >= at_s else re.sub(rb'"request":{.*?},"response"', b'"request":null,"response"', line)
        for line, (came_s, _) in after
    ]


@pytest.mark.parametrize("name", sampled(names(), SAMPLE))
def test_requests_that_waited_when_the_logger_was_switched_on_make_nobody_guilty(name):
    """Another rule may name the same member: what was answered to a fenced one is known by the list of its generation, too."""
    whole = lines_of(read(name))
    known = guilty(grave(whole)[0])
    moments = sorted({came_s + (over_s - came_s) / 2 for came_s, over_s in map(times, whole) if over_s - came_s > 0.05})
    for at_s in moments[:: max(1, len(moments) // 3)]:
        log = switched_on(whole, at_s)
        found, reader = grave(log)
        assert guilty(found) <= known
        assert reader.lines.counts == {}
        assert sum(reader.counts[what] for what in reader.counts if "switched on" in what) == sum(
            b'"request":null' in line for line in log
        )

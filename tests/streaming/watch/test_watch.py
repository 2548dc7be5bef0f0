"""The engine of a watch: what it hands on, keeps, and goes on from; without an input of its own."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from coordinator_model.settings import Settings
from coordinator_model.wire.record import MirrorRecord, pack_envelope
from streaming.commands.watch import OUTPUTS
from streaming.engine.handover import LocalFeed
from streaming.mirror.pcap.capture_stats import CaptureStats
from streaming.notify.file_log import FileDeliveryLog
from streaming.notify.notification import Delivered
from streaming.watch.state import StateFile
from streaming.watch.watch import CAPTURE, Watch
from tests.golden import transcript
from tests.real.traffic import Group, breach, tick

START_US = 1_700_000_000_000_000


def records(seconds: int = 40, since_us: int = START_US) -> list[MirrorRecord]:
    group = Group("g")
    found = [*group.join(since_us), *group.sync(since_us + 5_000)]
    for second in range(1, seconds):
        at_us = since_us + second * 1_000_000
        found += [*group.heartbeat(at_us), tick(at_us + 1)]
        found += breach(second, at_us + 2) if second % 10 == 3 else []
    return found


def watch(state: Path | None = None, said: Callable[[str], None] = lambda _: None, **given: Any) -> Watch:
    settings = given.pop("settings", Settings())
    return Watch(topic=CAPTURE, settings=settings, outputs=OUTPUTS, state=StateFile(state, "packets", said), tell=said, **given)


def taken(feed: LocalFeed) -> list[dict[str, Any]]:
    return [json.loads(record.value) for record in feed.poll(0) if record.value]


def run(one: Watch, given: Iterable[MirrorRecord]) -> list[dict[str, Any]]:
    """The newest state of each finding that a watch hands on."""
    feed = one.handover.feed(OUTPUTS.findings)
    one.begin()
    for record in given:
        one.write(record)
    one.end()
    return taken(feed)


def found(findings: Iterable[dict[str, Any]]) -> set[tuple[str, str]]:
    return {(one["id"], one["rule"]) for one in findings}


@pytest.mark.parametrize("name", transcript.names()[::9])
def test_a_watch_finds_in_records_and_in_rows_of_a_topic_what_the_model_finds(name: str) -> None:
    given = transcript.read(name)
    expected = {(one.id, one.rule) for one in transcript.replayed(name).findings}
    assert found(run(watch(settings=transcript.SETTINGS), given)) >= expected
    one = watch(settings=transcript.SETTINGS)
    feed = one.handover.feed(OUTPUTS.findings)
    for record in given:
        key = None if record.group is None else record.group.encode()
        one.row((0, record.offset, record.at_us // 1000, key, record.frame, pack_envelope(record)))
    one.end()
    assert found(taken(feed)) == expected


@pytest.mark.parametrize("cut", [50, 90])
def test_killed_at_any_time_on_the_topic_it_finds_in_the_end_what_it_finds_undisturbed(tmp_path: Path, cut: int) -> None:
    rows = [
        (
            0,
            offset,
            record.at_us // 1000,
            None if record.group is None else record.group.encode(),
            record.frame,
            pack_envelope(record),
        )
        for offset, record in enumerate(records())
    ]
    undisturbed, state = watch(), tmp_path / "state"
    expected = undisturbed.handover.feed(OUTPUTS.findings)
    for row in rows:
        undisturbed.row(row)
    undisturbed.end()
    got: list[dict[str, Any]] = []
    for saved, killed in ((cut - 30, cut), (cut, len(rows))):
        one = watch(state)
        feed = one.handover.feed(OUTPUTS.findings)
        one.begin()
        next_offset = one.engine.next_offset
        for row in rows[next_offset:killed]:
            one.row(row)
            if row[1] == saved:
                one.save()
        one.tend()
        one.handover.hand_on(one._rows)
        got += taken(feed)
        one._state.close()
    assert found(got) == found(taken(expected))


def test_killed_and_started_again_it_goes_on_and_the_time_between_is_a_gap(tmp_path: Path) -> None:
    state = tmp_path / "state"
    first = run(watch(state), records())
    assert {one["rule"] for one in first} == {"M-08", "R-02"}
    later = watch(state)
    feed = later.handover.feed(OUTPUTS.groups, OUTPUTS.findings)
    later.begin()
    stands = taken(feed)
    assert {one["id"] for one in stands if "rule" in one} == {one["id"] for one in first if one["status"] != "resolved"}
    assert [one["group"] for one in stands if "rule" not in one and one["group"] == "g"] == ["g"]
    later.write(tick(START_US + 100_000_000))
    later.end()
    [gap] = [one for one in taken(feed) if one.get("rule") == "V-04"]
    assert "sight of everything for 61.0 s: it did not run" in gap["summary"]


def test_started_again_after_a_run_that_saw_no_group_it_says_nothing_of_the_time_between(tmp_path: Path) -> None:
    state = tmp_path / "state"
    assert run(watch(state), [tick(START_US)]) == []
    assert run(watch(state), [tick(START_US + 100_000_000), *records(since_us=START_US + 101_000_000)[:6]]) == []


def test_a_state_of_another_input_or_that_is_damaged_is_said_and_not_gone_on_from(tmp_path: Path) -> None:
    state, said = tmp_path / "state", list[str]()
    run(watch(state), records())
    other = StateFile(state, "another", said.append)
    assert (other.read().snapshots, len(said)) == ({}, 1)
    other.close()
    state.write_bytes(state.read_bytes()[:-9])
    assert StateFile(tmp_path / "state", "packets", said.append).read().snapshots == {}
    assert "learned anew" in said[-1]


def test_two_watches_do_not_go_on_from_the_same_state(tmp_path: Path) -> None:
    said: list[str] = []
    first = StateFile(tmp_path / "state", "packets", said.append)
    second = StateFile(tmp_path / "state", "packets", said.append)
    assert first.read() == second.read()
    first.close()
    assert said == [f"another watch uses the state {tmp_path / 'state'}: this one keeps none; --state names another file"]


def test_each_record_goes_to_what_keeps_records_too() -> None:
    class Kept(list[MirrorRecord]):
        def write(self, record: MirrorRecord) -> None:
            self.append(record)

    kept, given = Kept(), records(5)
    run(watch(sinks=[kept]), given)
    assert kept == given


def test_a_delivery_log_in_a_file_remembers_and_does_not_grow(tmp_path: Path) -> None:
    file = tmp_path / "alerts"
    log = FileDeliveryLog(file, "findings")
    delivered = Delivered(finding={"id": "G-01-1"}, first_s=1.0, last_s=2.0, is_over=True, partition=0, offset=3)
    for number in range(5_000):
        log.advance("webhook/chat", {0: number}, [])
    log.remember("webhook/chat", {"G-01-1": delivered})
    memory = FileDeliveryLog(file, "findings").memory()
    assert memory.positions("webhook/chat") == {0: 4_999}
    assert memory.delivered("webhook/chat")["G-01-1"].as_json() == delivered.as_json()
    assert len(file.read_text().splitlines()) == 2
    file.write_text(file.read_text() + '["findings/webhook/chat/')  # a kill came between
    assert FileDeliveryLog(file, "findings").memory().positions("webhook/chat") == {0: 4_999}


@pytest.mark.parametrize(
    ("stats", "why", "said"),
    [
        (
            CaptureStats(packets=3, segments=3, encrypted=2),
            "holds TLS",
            "packets of lo: so far this holds TLS. Read the broker's own log",
        ),
        (
            CaptureStats(packets=3, segments=3),
            "holds no Kafka",
            "packets of lo: so far this holds no Kafka. Check on the broker which port",
        ),
        (
            CaptureStats(),
            "holds no packets",
            "packets of lo: so far this holds no packets. Check that this machine is a broker or a client",
        ),
        (CaptureStats(brokers=Counter({"b:9092": 2})), None, "Kafka is seen at b:9092, and no request of a group: the coordinator"),
        (CaptureStats(frames=1), None, None),
    ],
)
def test_why_no_group_is_seen_is_said_with_the_next_step(stats: CaptureStats, why: str | None, said: str | None) -> None:
    sentence = stats.why_no_groups("packets of lo", why, "--port and --interface")
    assert sentence is None if said is None else (sentence or "").startswith(said)

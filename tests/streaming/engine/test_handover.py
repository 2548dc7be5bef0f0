"""What an engine hands on in one process: as topics would, and nothing that waits grows."""

from __future__ import annotations

from streaming.engine import handover as module
from streaming.engine.handover import Handover, LocalFeed
from streaming.engine.results import OutputRow, Outputs

OUTPUTS = Outputs("findings", "groups", "events", "status", "dead")


def values(feed: LocalFeed) -> list[tuple[str, bytes | None]]:
    return [(record.name, record.value) for record in feed.poll(0)]


def test_a_reader_gets_the_newest_value_of_each_key_of_its_topics_and_each_event() -> None:
    handover = Handover(OUTPUTS, {})
    feed = handover.feed("findings", "events")
    handover.hand_on([OutputRow("findings", "a", "1"), OutputRow("events", "g", "x"), OutputRow("groups", "g", "{}")])
    handover.hand_on([OutputRow("findings", "b", "1"), OutputRow("events", "g", "y"), OutputRow("findings", "a", None)])
    assert values(feed) == [("g", b"x"), ("b", b"1"), ("g", b"y"), ("a", None)]
    assert values(feed) == []


def test_offsets_go_on_from_the_run_before_and_say_what_was_there_at_the_start() -> None:
    handover = Handover(OUTPUTS, {"findings": 7})
    feed = handover.feed("findings")
    handover.hand_on([OutputRow("findings", "a", "1")])
    feed.start()
    [old] = feed.history()
    handover.hand_on([OutputRow("findings", "b", "1")])
    [new] = feed.poll(0)
    assert (feed.ends, old.offset, new.offset) == ({("findings", 0): 8}, 7, 8)
    assert (feed.was_there(old), feed.was_there(new)) == (True, False)


def test_a_reader_that_takes_nothing_loses_the_oldest_events_alone(monkeypatch) -> None:
    monkeypatch.setattr(module, "EVENTS_WAITING", 3)
    handover = Handover(OUTPUTS, {})
    feed = handover.feed("findings", "events")
    handover.hand_on([OutputRow("findings", "a", "1")])
    for number in range(5):
        handover.hand_on([OutputRow("events", "g", str(number))])
    assert values(feed) == [("a", b"1"), ("g", b"2"), ("g", b"3"), ("g", b"4")]
    assert feed.dropped == 2


def test_a_log_gets_each_record_of_a_key() -> None:
    handover = Handover(OUTPUTS, {})
    log = handover.log("findings")
    handover.hand_on([OutputRow("findings", "a", "1"), OutputRow("findings", "a", "2"), OutputRow("events", "g", "x")])
    assert values(log) == [("a", b"1"), ("a", b"2")]

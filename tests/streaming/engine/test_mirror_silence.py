"""A silent mirror is said once, under an id that does not hang on when we looked, and is over when it speaks."""

from __future__ import annotations

import pytest

from coordinator_model.finding import Status
from streaming.engine.mirror_silence import SilenceWatch, one_partition, subjects, whole_topic
from streaming.engine.own_findings import Standing

SECOND = 1_000_000
TOPIC = "mirror"


class Mirror:
    """Two partitions, read to their ends; the newest records at second 100."""

    def __init__(self, published=()):
        self.newest = {0: 100 * SECOND, 1: 100 * SECOND}
        self.ends = {0: 10, 1: 10}
        self.now_us = 100 * SECOND
        standing = Standing("c", published, subjects(TOPIC, 2))
        self.watch = SilenceWatch(topic=TOPIC, allowed_ms=10_000, newest_us=self.newest.get, standing=standing)

    def after(self, seconds, *, speaking=()):
        found = []
        for _ in range(seconds * 2):
            self.now_us += SECOND // 2
            for partition in speaking:
                self.ends[partition] += 1
                self.newest[partition] = self.now_us
            found += self.watch.observe(self.ends, self.ends, self.now_us)
        return found


@pytest.fixture
def mirror():
    return Mirror()


def test_a_mirror_that_ticks_is_not_silent(mirror):
    assert mirror.after(60, speaking=(0, 1)) == []


def test_a_dead_mirror_is_one_finding_until_it_speaks(mirror):
    (opened,) = mirror.after(60)
    assert (opened.rule, opened.status, opened.group) == ("V-03", Status.OPEN, "")
    assert opened.opened_at_us == 110 * SECOND
    assert whole_topic(TOPIC) in opened.summary
    (resolved,) = mirror.after(5, speaking=(0, 1))
    assert (resolved.id, resolved.status) == (opened.id, Status.RESOLVED)


def test_one_dead_partition_is_named(mirror):
    (opened,) = mirror.after(30, speaking=(0,))
    assert one_partition(TOPIC, 1) in opened.summary
    (resolved,) = mirror.after(2, speaking=(0, 1))
    assert (resolved.id, resolved.status) == (opened.id, Status.RESOLVED)


def test_partitions_that_die_one_after_the_other_are_one_finding(mirror):
    mirror.after(1, speaking=(0, 1))
    assert mirror.after(3, speaking=(0,)) == []
    (opened,) = mirror.after(30)
    assert whole_topic(TOPIC) in opened.summary


def test_the_id_does_not_depend_on_when_the_monitor_started(mirror):
    (early,) = mirror.after(60)
    late = Mirror()
    late.now_us += 1000 * SECOND
    (other,) = late.after(60)
    assert other.id == early.id


def test_a_restart_takes_the_open_finding_up_and_resolves_it(mirror):
    (opened,) = mirror.after(60)
    again = Mirror([opened.as_json()])
    assert again.after(60) == []
    (resolved,) = again.after(2, speaking=(0, 1))
    assert (resolved.id, resolved.status) == (opened.id, Status.RESOLVED)


def test_a_backlog_is_no_silence(mirror):
    for _ in range(60):
        mirror.now_us += SECOND
        assert mirror.watch.observe({0: 5, 1: 5}, mirror.ends, mirror.now_us) == []


def test_a_query_that_does_not_run_says_nothing_of_the_mirror(mirror):
    assert mirror.after(9) == []
    mirror.watch.pause()
    assert mirror.after(9) == []


def test_a_topic_without_any_record_is_silent_too(mirror):
    mirror.newest = dict.fromkeys(mirror.newest)
    mirror.watch._newest_us = mirror.newest.get
    (opened,) = mirror.after(20)
    assert opened.observed == "No record at all"


def test_a_partition_added_while_the_monitor_runs_may_fall_silent(mirror):
    assert mirror.after(4, speaking=(0, 1)) == []
    mirror.ends[2], mirror.newest[2] = 1, mirror.now_us
    (opened,) = mirror.after(30, speaking=(0, 1))
    assert one_partition(TOPIC, 2) in opened.summary
    (resolved,) = mirror.after(2, speaking=(0, 1, 2))
    assert (resolved.id, resolved.status) == (opened.id, Status.RESOLVED)

"""The mirror topic is looked at again and again: what has become of it is told once, and another topic is no longer read."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from streaming.cli import _COMMANDS
from streaming.errors import SetupError
from streaming.kafka.mirror_watch import MirrorWatch
from streaming.kafka.topics import MISSING, Described, Mirror

MIRROR = Mirror("mirror", "id-1", "cluster", 4)


class Watched:
    """A watch whose looks are made by hand, not by its thread."""

    def __init__(self):
        self.answer = None
        self.told = []
        self.watch = MirrorWatch(SimpleNamespace(), MIRROR, tell=self.told.append, look=lambda _: self.answer)

    def after(self, answer):
        self.answer = answer
        self.watch.look()
        return self.watch.partitions()


@pytest.fixture
def watched():
    return Watched()


def test_nothing_is_said_of_a_topic_that_is_as_it_was(watched):
    assert watched.watch.partitions() == 4
    assert watched.after(Described("id-1", 4)) == 4
    assert watched.told == []


def test_partitions_that_were_added_are_told_once(watched):
    assert watched.after(Described("id-1", 6)) == 6
    assert watched.after(Described("id-1", 6)) == 6
    (said,) = watched.told
    assert "has 6 partitions, where it had 4" in said
    assert "restart the taps" in said


def test_a_topic_that_is_gone_is_told_once_and_waited_for(watched):
    assert watched.after(MISSING) == 4
    assert watched.after(MISSING) == 4
    (said,) = watched.told
    assert "mirror was deleted" in said


def test_what_to_do_about_a_topic_that_is_gone_is_said_step_by_step(watched):
    watched.after(MISSING)
    (said,) = watched.told
    steps = (
        "Stop this monitor",
        "make the topic anew",
        "topics --config FILE",
        "checkpoint reset",
        "start again",
        "restart the taps",
    )
    places = [said.find(step) for step in steps]
    assert places == sorted(places)
    assert -1 not in places
    assert {"topics", "checkpoint"} <= _COMMANDS.keys()


def test_another_topic_under_the_same_name_is_not_read_on(watched):
    watched.after(MISSING)
    with pytest.raises(SetupError, match=r"deleted and created anew while it was read.*checkpoint reset"):
        watched.after(Described("id-2", 4))


def test_a_kafka_that_does_not_answer_says_nothing_of_the_topic(watched):
    watched.after(Described("id-1", 6))
    assert watched.after(None) == 6
    assert len(watched.told) == 1


def test_the_thread_looks_by_itself_and_ends_with_the_monitor():
    looked = []
    with MirrorWatch(SimpleNamespace(), MIRROR, tell=print, look=looked.append, every_s=0.001) as watch:
        while len(looked) < 3:
            assert watch._thread.is_alive()
    watch._thread.join(60)
    assert not watch._thread.is_alive()

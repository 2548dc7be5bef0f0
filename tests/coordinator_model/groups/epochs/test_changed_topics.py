"""What happened to the topics of a group with epochs, as its assignments show when the rebalance is over."""

from __future__ import annotations

import pytest

from tests.coordinator_model.conversation import Client
from tests.coordinator_model.epochs import TOPICS, Epochs, Parts, foo, parts

UNSEEN = "topics, a pattern or the configuration changed"


class Topics(Epochs):
    """Two members that have all of ``foo`` and ``bar``."""

    def __init__(self) -> None:
        super().__init__()
        self.topics(**{TOPICS["foo"]: "foo", TOPICS["bar"]: "bar", "zarAAAAAAAAAAAAAAAAAAA": "foo"})  # type: ignore[arg-type]
        self.a, self.b = self.member("a"), self.member("b")
        self.joins(self.a, 1, parts(foo=(0,), bar=(0,)), "foo", "bar")
        self.joins(self.b, 2, foo(1), "foo", "bar")
        self.beats(self.a, 2)
        self.live([self.a, self.b], 15)

    def reads(self, client: Client, epoch: int, given: Parts) -> None:
        """A member learns what it is to have, and has it."""
        self.beats(client, epoch, given)
        self.beats(client, epoch, owned=given)

    def ends(self) -> list[str]:
        """Let every member be served; return the cause of the last rebalance, when it began and when it was over."""
        self.live([self.a, self.b], 15)
        events = [event.as_json() for event in self.model.drain_events()]
        return [event["cause"] for event in events if event["kind"] in {"rebalance_began", "rebalance_finished"}][-2:]


def test_partitions_were_added_if_members_get_the_next_ones_of_a_topic() -> None:
    talk = Topics()
    talk.reads(talk.a, 3, parts(foo=(0, 2), bar=(0,)))
    talk.reads(talk.b, 3, foo(1, 3))
    assert talk.ends() == [UNSEEN, "partitions were added"]
    assert talk.group_json()["rebalances"] == {"joined": 1, "partitions were added": 1}


@pytest.mark.parametrize("number", [3, 7])
def test_partitions_of_which_one_before_is_held_by_nobody_need_not_be_new(number: int) -> None:
    talk = Topics()
    talk.reads(talk.a, 3, parts(foo=(0, number), bar=(0,)))
    talk.reads(talk.b, 3, foo(1))
    assert talk.ends() == [UNSEEN, UNSEEN]


def test_a_topic_was_deleted_if_members_that_subscribe_to_it_by_name_lose_all_of_it() -> None:
    talk = Topics()
    talk.reads(talk.a, 3, foo(0))
    talk.beats(talk.b, 3)
    assert talk.ends() == [UNSEEN, "a topic was deleted"]


def test_a_topic_was_made_anew_if_members_get_another_of_its_name() -> None:
    talk = Topics()
    talk.reads(talk.a, 3, parts(bar=(0,)))
    talk.reads(talk.b, 3, {})
    talk.reads(talk.a, 3, parts(zar=(0,), bar=(0,)))
    talk.reads(talk.b, 3, parts(zar=(1,)))
    assert talk.ends() == [UNSEEN, "a topic was deleted and made anew"]


@pytest.mark.parametrize(
    ("names", "had", "cause"),
    [
        ((), foo(0), "a pattern matches another topic"),
        (("bar",), foo(0), UNSEEN),  # bar is subscribed to by its name, too
        ((), {}, UNSEEN),  # the pattern may not have been resolved before
    ],
)
def test_a_pattern_matches_another_topic_if_members_that_subscribe_by_pattern_alone_get_it(
    names: tuple[str, ...], had: Parts, cause: str
) -> None:
    talk = Topics()
    for client in (talk.a, talk.b):
        talk.beats(client, -1, epoch=-1)
    talk.wait(60_000)
    c = talk.member("c")
    talk.joins(c, 5, had, *names, subscribed_topic_names=names or None, subscribed_topic_regex=".*")
    talk.live([c], 15)
    talk.reads(c, 6, {**had, **parts(bar=(0,))})
    talk.a = talk.b = c
    assert talk.ends()[-1] == cause


def test_partitions_that_a_new_member_gets_say_nothing_of_their_topic() -> None:
    talk = Topics()
    c = talk.member("c")
    talk.joins(c, 3, foo(2), "foo", "bar")
    talk.beats(talk.a, 3)
    talk.beats(talk.b, 3)
    assert talk.ends() == ["joined", "joined"]

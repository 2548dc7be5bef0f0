"""What keeps partitions with a member: not told yet, told and not acknowledged, gone; each in one true sentence."""

from __future__ import annotations

from tests.coordinator_model.conversation import Client
from tests.coordinator_model.epoch_groups import newcomer, upgrade
from tests.coordinator_model.epochs import Epochs, foo


def kept(talk: Epochs) -> list[tuple[str, str, int | None]]:
    """Kind, member and number of partitions of each wait that is published."""
    talk.settle()
    return [(wait["kind"], wait["member_id"], wait["partitions"]) for wait in talk.group_json()["waits"]]


def text(talk: Epochs) -> str:
    talk.settle()
    (wait,) = talk.group_json()["waits"]
    return str(wait["text"])


def two(talk: Epochs, instance_id: str | None = None) -> tuple[Client, Client]:
    a, b = talk.member("a", instance_id), talk.member("b")
    talk.joins(a, 2, foo(0, 1, 2))
    talk.beats(a)
    talk.joins(b, 3, {})
    return a, b


def test_a_member_that_was_not_told_of_the_newest_epoch_keeps_what_it_holds(talk: Epochs) -> None:
    two(talk)
    assert kept(talk) == [("not told", "a-id", 3)]
    assert text(talk) == (
        "a has not been told of epoch 3, which began at 22:13:20; foo-0, foo-1 and foo-2 cannot move before its next "
        "heartbeat, or before its session ends, by default at 22:14:05"
    )


def test_a_member_that_was_told_keeps_what_it_has_not_acknowledged(talk: Epochs) -> None:
    newcomer(talk)
    assert kept(talk) == [("not given up", "a-id", 1)]
    assert text(talk) == (
        "a was asked to give up foo-2 at 22:13:20 and has not; nobody gets it before; the coordinator removes that "
        "member at 22:14:20"
    )


def test_nothing_is_kept_once_it_is_acknowledged_and_everybody_was_told(talk: Epochs) -> None:
    a, b = newcomer(talk)
    talk.beats(a, 3, owned=foo(0, 1))
    talk.beats(b, 3, foo(2))
    assert kept(talk) == []
    assert talk.group_json()["waits_for"] == []


def test_a_static_member_that_left_for_a_while_keeps_its_place(talk: Epochs) -> None:
    a, b = two(talk, "i")
    talk.beats(a, 2, foo(0, 1))
    talk.beats(a, 3, owned=foo(0, 1))
    talk.beats(b, 3, foo(2))
    talk.leaves(a, -2)
    assert kept(talk) == [("gone", "a-id", 2)]
    assert text(talk).startswith("i left for a while at 22:13:20")
    assert "keeps foo-0 and foo-1; nobody gets it before that member's session ends, by default at 22:14:05" in text(talk)


def test_a_member_that_lost_its_connection_keeps_what_it_holds_until_it_is_heard_of_again(talk: Epochs) -> None:
    a, b = newcomer(talk)
    talk.beats(a, 3, owned=foo(0, 1))
    talk.beats(b, 3, foo(2))
    talk.close(a)
    talk.beats(b)
    assert kept(talk) == [("gone", "a-id", 2)]
    talk.beats(a.reconnected())
    assert kept(talk) == []


def test_a_classic_member_that_was_asked_to_join_again_keeps_what_it_holds(talk: Epochs) -> None:
    classic, new = upgrade(talk)
    talk.wait(20)
    talk.heartbeat(classic[0], 27)
    talk.beats(new)
    assert ("not given up", classic[0].member_id, None) in kept(talk)
    told = next(wait["text"] for wait in talk.group_json()["waits"] if wait["member_id"] == classic[0].member_id)
    assert "was asked to join again and give up what it must at 22:13:" in told


def test_what_the_others_wait_for_is_named_until_it_ends(talk: Epochs) -> None:
    """The reconciliation of modern 2: first both holders, then the one that has not acknowledged."""
    a, b, c = talk.member("a"), talk.member("b"), talk.member("c")
    talk.joins(a, 2, foo(0, 1))
    talk.joins(b, 2, foo(2, 3))
    talk.joins(c, 3, {})
    assert [member for _, member, _ in kept(talk)] == ["a-id", "b-id"]
    talk.beats(a, 2, foo(0))
    talk.beats(b, 2, foo(2))
    talk.beats(a, 3, owned=foo(0))
    assert kept(talk) == [("not given up", "b-id", 1)]
    talk.beats(b, 3, owned=foo(2))
    assert kept(talk) == []

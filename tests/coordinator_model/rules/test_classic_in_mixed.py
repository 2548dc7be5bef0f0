"""Heartbeats and SyncGroups of classic members in a consumer group, as a coordinator must not answer them, and as it lawfully may."""

from __future__ import annotations

import pytest

from coordinator_model import wire
from tests.coordinator_model.conversation import Client
from tests.coordinator_model.epoch_groups import alone, moved
from tests.coordinator_model.epochs import Epochs


def mixed(talk: Epochs, instance_id: str | None = None) -> tuple[Client, Client]:
    """A member of the new protocol at epoch 2, and a classic one that has joined at epoch 3 and has its assignment."""
    new = alone(talk)
    old = talk.member("old", instance_id)
    talk.classic_join(old, 3)
    talk.classic_sync(old)
    talk.heartbeat(old)
    talk.beats(new, 3)
    talk.wait(1_000)
    return new, old


def spoken(talk: Epochs) -> set[str]:
    talk.settle()
    return {finding.rule for finding in talk.opened()} & {"E-03", "E-04", "E-14", "E-15", "E-18", "P-07"}


@pytest.mark.parametrize("generation", [2, 4], ids=["of the past", "of the future"])
@pytest.mark.parametrize("answer", [0, 27])
def test_E_04_fires_when_a_classic_member_is_accepted_at_another_generation(talk: Epochs, generation, answer):
    _, old = mixed(talk)
    talk.heartbeat(old, answer, generation=generation)
    assert spoken(talk) == {"E-04"}


def test_E_04_fires_when_a_classic_member_gets_its_assignment_at_another_generation(talk: Epochs):
    _, old = mixed(talk)
    old.generation = 2
    talk.classic_sync(old)
    assert spoken(talk) == {"E-04"}


@pytest.mark.parametrize("ends", ["leaves", "is told"])
def test_E_14_fires_when_a_classic_member_is_accepted_after_its_end(talk: Epochs, ends):
    _, old = mixed(talk)
    if ends == "leaves":
        talk.leave(old)
    else:
        talk.wait(11_000)  # its session is over
        talk.heartbeat(old, 25)
    talk.wait(1_000)
    talk.heartbeat(old)
    assert spoken(talk) == {"E-14"}


def test_E_03_fires_when_a_classic_member_is_refused_at_its_generation(talk: Epochs):
    _, old = mixed(talk)
    talk.heartbeat(old, 22)
    assert spoken(talk) == {"E-03"}


@pytest.mark.parametrize(("rule", "error", "generation"), [("E-03", 22, 3), ("E-04", 0, 2), ("E-18", 25, 3)])
@pytest.mark.parametrize("since_ms", [-50, 50], ids=["gone before", "gone after"])
def test_what_a_classic_member_was_answered_is_lawful_if_the_last_new_one_had_left_as_is_captured_late(
    talk: Epochs, rule: str, error: int, generation: int, since_ms: int
) -> None:
    """With it the group became a classic one."""
    new, old = mixed(talk)
    talk.heartbeat(old, error, generation=generation)
    answered_us = talk.now_us
    talk.now_us += since_ms * 1_000
    talk.leaves(new)
    talk.now_us = max(talk.now_us, answered_us)
    assert spoken(talk) == ({rule} if since_ms > 0 else set())


@pytest.mark.parametrize("asks", ["heartbeat", "leave"])
@pytest.mark.parametrize("instance_id", [None, "one"])
def test_E_18_fires_when_a_healthy_classic_member_is_told_that_it_is_none(talk: Epochs, asks, instance_id):
    _, old = mixed(talk, instance_id)
    (talk.leave if asks == "leave" else talk.heartbeat)(old, 25)
    assert spoken(talk) == {"E-18"}


@pytest.mark.parametrize("asks", ["heartbeat", "leave", "sync"])
def test_E_18_fires_when_a_healthy_classic_member_is_told_that_another_has_its_instance_id(talk: Epochs, asks):
    _, old = mixed(talk, "one")
    {"heartbeat": talk.heartbeat, "leave": talk.leave, "sync": talk.classic_sync}[asks](old, 82)
    assert spoken(talk) == {"E-18"}


# ---------------------------------------------------------------------------------------------------- what is lawful


def converted(talk: Epochs, new: Client, old: Client) -> None:
    """The last member of the new protocol leaves: the group is a classic one, at its newest epoch."""
    talk.leaves(new)
    talk.heartbeat(old, 22)


def converts_now(talk: Epochs, new: Client, old: Client) -> None:
    """The same, and its leave is not answered yet."""
    leaves = talk.ask_beat(new, -1)
    talk.heartbeat(old, 22)
    talk.answer(leaves, talk.given(new, -1))


def new_member_may_have_expired(talk: Epochs, new: Client, old: Client) -> None:
    for _ in range(16):
        talk.wait(3_000)
        talk.heartbeat(old)
    talk.heartbeat(old, 22)


def another_joins_after_it_may_have_expired(talk: Epochs, new: Client, old: Client) -> None:
    """The group was a classic one in between, at its newest epoch, and the classic member has that one since it is none."""
    for _ in range(16):
        talk.wait(3_000)
        talk.heartbeat(old)
    another = talk.member("another")
    talk.joins(another, 5, {})
    talk.beats(another)
    talk.wait(100)
    talk.heartbeat(old, 22)


def session_may_be_over(talk: Epochs, new: Client, old: Client) -> None:
    talk.wait(9_500)
    talk.beats(new)
    talk.wait(100)
    talk.heartbeat(old, 25)


def goes_on_and_is_unknown(talk: Epochs, new: Client, old: Client) -> None:
    for _ in range(4):
        talk.wait(2_000)
        talk.heartbeat(old)
        talk.beats(new)
    talk.wait(100)
    talk.heartbeat(old, 25)


def was_asked_to_rejoin(talk: Epochs, new: Client, old: Client) -> None:
    """A heartbeat that succeeds later does not stop the time in which it has to join again."""
    talk.heartbeat(old, 27)
    goes_on_and_is_unknown(talk, new, old)


def never_synced(talk: Epochs, new: Client, old: Client) -> None:
    talk.classic_join(old, 3)
    goes_on_and_is_unknown(talk, new, old)


def joins_meanwhile(talk: Epochs, new: Client, old: Client) -> None:
    """Which of the two requests the coordinator acts on first is not known."""
    asked = talk.ask_join(old)
    other = talk.client("old", old.broker, member_id=old.member_id, generation=3)
    talk.heartbeat(other, 22)
    talk.refuse_join(asked, 27)


def is_removed_by_an_operator(talk: Epochs, new: Client, old: Client) -> None:
    """Its refusal is answered before the operator's success is replicated."""
    named = wire.LeaveGroupRequestMemberIdentity(
        member_id="" if old.instance_id else old.member_id, group_instance_id=old.instance_id
    )
    removed = wire.LeaveGroupResponseMemberResponse(member_id=old.member_id, group_instance_id=old.instance_id)
    leaves = talk.ask(talk.client("operator"), wire.LeaveGroupRequest(group_id=talk.group, members=(named,)))
    talk.heartbeat(old, 25)
    talk.answer(leaves, wire.LeaveGroupResponse(members=(removed,)))


def joined_again_and_lost(talk: Epochs, new: Client, old: Client) -> None:
    """The answer to its join was not captured: it may have another epoch."""
    talk.ask_join(old)
    talk.close(old)
    again = old.reconnected()
    again.generation = 4
    talk.heartbeat(again)
    talk.heartbeat(again, 27)


def coordinator_moved(talk: Epochs, new: Client, old: Client) -> None:
    again = moved(talk, new)
    talk.beats(again)
    talk.wait(100)
    back = old.reconnected("2")
    talk.heartbeat(back, 25)


def is_replaced(talk: Epochs, new: Client, old: Client) -> None:
    """A process with its instance id, if it has one, joins; its refusal comes before the answer to that join."""
    if old.instance_id:
        other = talk.client("other", instance_id=old.instance_id)
        talk.ask_join(other)
        talk.heartbeat(old, 82)
        talk.close(other)
        talk.wait(1_000)
        talk.heartbeat(old, 82)


def leaves_twice(talk: Epochs, new: Client, old: Client) -> None:
    talk.leave(old)
    talk.leave(old, 25)


def answers_alike(talk: Epochs, new: Client, old: Client) -> None:
    """Whatever is lawful to a member at its own generation and at others."""
    talk.heartbeat(old, 27)
    talk.heartbeat(old, 22, generation=2)
    talk.classic_sync(old, 27)
    talk.classic_join(old, 4)
    talk.beats(new, 4)
    talk.classic_sync(old)
    talk.heartbeat(old)
    talk.leave(old)
    talk.heartbeat(old, 25)


@pytest.mark.parametrize("instance_id", [None, "one"], ids=["dynamic", "static"])
@pytest.mark.parametrize(
    "happens",
    [
        another_joins_after_it_may_have_expired,
        answers_alike,
        converted,
        converts_now,
        coordinator_moved,
        is_removed_by_an_operator,
        is_replaced,
        joined_again_and_lost,
        joins_meanwhile,
        leaves_twice,
        never_synced,
        new_member_may_have_expired,
        session_may_be_over,
        was_asked_to_rejoin,
    ],
)
def test_a_classic_member_is_lawfully_refused_or_accepted_in(talk: Epochs, happens, instance_id):
    happens(talk, *mixed(talk, instance_id))
    assert spoken(talk) == set()

"""A group that emptied, was deleted or expired, and begins again at its first generation: no frame of it is missing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.coordinator_model.classic import beat, complete, completing_rebalance
from tests.coordinator_model.conversation import Client, Conversation
from tests.coordinator_model.restored import difference
from tests.coordinator_model.rules.offsets import assign, give


def ended(talk: Conversation, how: str, generation: int) -> None:
    """Two members of a generation commit, and go; the group ends."""
    a, b = talk.client("a"), talk.client("b")
    give(talk, [a, b], generation, {a: (0,), b: (1,)})
    talk.wait(3_000)
    talk.commit_offsets(a, {0: 500})
    if how == "silent":
        talk.close(a)
        talk.close(b)
        talk.wait(40_000)
        return
    for client in (a, b):
        talk.leave(client)
        talk.wait(50)
        talk.close(client)
    if how == "deleted":
        talk.delete()


def begun(talk: Conversation) -> list[Client]:
    """Two members begin it again, some time later, at generation 1; the first comes under a name that it had before."""
    talk.wait(75_000)
    clients = [talk.client("a"), talk.client("c")]
    asked = []
    for client in clients:
        talk.hand_out_id(client)
        asked.append(talk.ask_join(client))
        talk.wait(1_000)
    complete(talk, asked, 1, clients[0], clients)
    assign(talk, clients, {clients[0]: (0,), clients[1]: (1,)})
    beat(talk, clients, 20)
    return clients


def happened(talk: Conversation, *kinds: str) -> list[dict[str, Any]]:
    return [event.as_json() for event in talk.model.drain_events() if event.kind in kinds]


@pytest.mark.parametrize("generation", [1, 4])
@pytest.mark.parametrize("how", ["left", "deleted", "silent"])
def test_a_new_life_of_a_group_is_one_rebalance_of_who_begins_it(talk: Conversation, how: str, generation: int) -> None:
    """It was published twice, once for a member of the old life that had left 75 s before, and as frames that are missing."""
    ended(talk, how, generation)
    talk.model.drain_events()
    before = talk.group_json()["costs"]["new member"]
    clients = begun(talk)
    events = happened(talk, "rebalance_began", "rebalance_finished", "sight_lost", "sight_regained")
    assert [event["kind"] for event in events] == ["rebalance_began", "rebalance_finished"]
    assert {(event["cause"], event["member_id"]) for event in events} == {("new member", clients[0].member_id)}
    assert (events[1]["to_generation"], events[1]["ended"]) == (1, "every member was served")
    assert [one["member_id"] for one in events[1]["members"]] == [client.member_id for client in clients]
    after = talk.group_json()
    assert (after["state"], after["generation"], after["learning"]) == ("Stable", 1, None)
    assert after["rebalances"] == {"new member": 2}
    assert after["costs"]["new member"]["rebalances"] == before["rebalances"] + 1
    assert set(talk.rules()) <= {"G-05", "C-14"}
    assert difference(talk.records) is None


def test_a_life_that_only_a_restart_of_the_coordinator_explains_is_learned_again(talk: Conversation) -> None:
    """Its last generation was never written, and its members may go on."""
    a, b = completing_rebalance(talk, generation=4)
    talk.close(a)
    talk.close(b)
    talk.model.drain_events()
    begun(talk)
    assert [event["kind"] for event in happened(talk, "sight_lost", "sight_regained")] == ["sight_lost", "sight_regained"]


def test_O_10_knows_in_a_new_life_what_the_group_had_committed(talk: Conversation) -> None:
    """Its offsets expire with it, and were forgotten by the model, too, in just that moment."""
    ended(talk, "left", 3)
    clients = begun(talk)
    talk.fetch_offsets(clients[0], {0: -1})
    talk.wait(100)
    talk.commit_offsets(clients[0], {0: 7})
    assert "O-10" in talk.settled_rules()
    assert talk.the("O-10").summary.startswith(
        "The offsets of 1 partition that group g had committed until 22:13:23 are gone: t-0 at 500."
    )


@pytest.mark.parametrize(("joined_ms", "said"), [(-20, set()), (20, {"O-06"})])
def test_O_06_keeps_two_lives_apart_where_the_answer_to_a_join_is_captured_late(
    talk: Conversation, joined_ms: int, said: set[str]
) -> None:
    """A member commits at a generation that the old life had, too; that it was admitted before is captured after that."""
    ended(talk, "silent", 1)
    c = talk.client("c")
    talk.hand_out_id(c)
    asked = talk.ask_join(c)
    talk.wait(3_000)
    c.generation = 1
    talk.commit_offsets(c.reconnected(), {0: 510})
    committed_us = talk.now_us
    talk.now_us += joined_ms * 1_000
    talk.joined(asked, generation=1, leader=c, roster=[c])
    talk.now_us = committed_us
    assert {"O-06"} & set(talk.settled_rules()) == said


def test_O_06_keeps_two_lives_apart_of_a_deleted_group_whose_static_member_comes_back_at_once(talk: Conversation) -> None:
    """It begins the new life at the generation of the old one, as if it had replaced itself in that."""
    a, b = talk.client("a", instance_id="i"), talk.client("b")
    give(talk, [a, b], 1, {a: (0,), b: (1,)})
    talk.wait(3_000)
    talk.commit_offsets(b, {1: 500})
    for client in (a, b):
        talk.leave(client)
    talk.delete()
    talk.wait(1_000)
    a.member_id = ""
    talk.joined(talk.ask_join(a), generation=1, leader=a, roster=[a], member_id="i-again")
    talk.sync_all([a])
    talk.commit_offsets(a, {1: 510})
    assert talk.settled_rules() == ["S-08", "G-05"]

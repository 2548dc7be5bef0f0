"""What a SyncGroup changes in what is known of the group."""

from __future__ import annotations

from coordinator_model import wire
from tests.coordinator_model.classic import live, settled
from tests.coordinator_model.conversation import Client, Conversation


def stale_beside_a_late_sync(talk: Conversation, old: Client, member: Client) -> None:
    """A Heartbeat at the generation before, under way while a member asks for its assignment once more."""
    asked = talk.ask(old, wire.HeartbeatRequest(group_id="g", generation_id=old.generation, member_id=old.member_id))
    talk.wait(500)
    talk.call(member, talk.sync_request(member, []), talk.synced())
    talk.wait(500)
    talk.answer(asked, wire.HeartbeatResponse())
    talk.settle()


def test_a_generation_is_written_with_the_first_sync_not_the_latest(talk: Conversation) -> None:
    """After all connections ended only what is written counts, and it was, long before the stale Heartbeat (G-02 missed)."""
    a, b = settled(talk)
    talk.round([a, b], 4)
    live(talk, [a, b], 3)
    talk.close(a)
    talk.close(b)
    a, b = a.reconnected(), b.reconnected()
    b.generation = 3
    stale_beside_a_late_sync(talk, b, a)
    assert talk.rules() == ["G-02"]


def test_a_generation_that_was_first_synced_after_all_connections_ended_proves_nothing_before(talk: Conversation) -> None:
    """The twin of the above: the coordinator may have come back without it, and been at the generation before."""
    a, b = settled(talk)
    live(talk, [a, b], 3)
    talk.join_all([a, b], 4)
    talk.close(a)
    talk.close(b)
    a, b = a.reconnected(), b.reconnected()
    b.generation = 3
    stale_beside_a_late_sync(talk, b, a)
    assert talk.rules() == []

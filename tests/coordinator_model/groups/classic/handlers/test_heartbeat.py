"""What a Heartbeat changes in what is known of the group."""

from __future__ import annotations

from tests.coordinator_model.classic import live, settled
from tests.coordinator_model.conversation import Conversation


def test_a_steady_heartbeat_on_another_broker_is_a_failover(talk: Conversation) -> None:
    """Each coordinator that loads the group starts all sessions again, that of a silent member as well (false T-04, T-02)."""
    a, b = settled(talk)
    live(talk, [a, b], 2)
    for broker in ("2", "1"):
        a = a.reconnected(broker)
        live(talk, [a], 8)
    assert talk.group_json()["incarnation"] == 3
    live(talk, [a, b], 3)
    assert talk.rules() == []

"""Groups of thousands of members cost little more for each frame than small ones."""

from __future__ import annotations

import time

from coordinator_model.coordinator import Coordinator
from coordinator_model.wire.record import MirrorRecord
from tests.coordinator_model.conversation import Conversation


def first_minute_of(members: int) -> list[MirrorRecord]:
    """Static members join a new group together, and heartbeat."""
    talk = Conversation()
    clients = [talk.client(f"c{number}") for number in range(members)]
    for number, client in enumerate(clients):
        client.instance_id = f"i{number}"
    asked = [talk.ask_join(client) for client in clients]
    for client in clients:
        client.member_id = f"{client.instance_id}-{client.connection}"
    for one in asked:
        talk.joined(one, generation=1, leader=clients[0], roster=clients if one.client is clients[0] else [])
    talk.sync_all(clients)
    for client in clients:
        talk.heartbeat(client)
    return talk.records


def cost_of_a_frame(members: int) -> float:
    records = first_minute_of(members)
    model = Coordinator(topic="mirror", partition=0)
    began = time.process_time()
    for record in records:
        model.receive(record)
    return (time.process_time() - began) / len(records)


def test_a_frame_of_a_group_of_a_thousand_costs_at_most_three_times_that_of_a_hundred() -> None:
    """18,000 frames of a group of 3,000 took 68 s."""
    small = min(cost_of_a_frame(100) for _ in range(3))
    assert cost_of_a_frame(1_000) < 3 * small

"""Groups of thousands of members cost little more for each frame than small ones."""

from __future__ import annotations

import sys
from types import FrameType

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


def calls_of_a_frame(members: int) -> float:
    """How many functions, those of C included, a frame calls on average; a generator counts with each value. Time depends on the machine."""
    records = first_minute_of(members)
    model = Coordinator(topic="mirror", partition=0)
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    sys.setprofile(count)
    try:
        for record in records:
            model.receive(record)
    finally:
        sys.setprofile(None)
    return calls / len(records)


def test_a_frame_of_a_group_of_a_thousand_calls_at_most_two_and_a_half_times_what_one_of_a_hundred_does() -> None:
    """18,000 frames of a group of 3,000 took 68 s."""
    assert calls_of_a_frame(1_000) < 2.5 * calls_of_a_frame(100)

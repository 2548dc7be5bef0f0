"""The model takes any well-formed frame, in any order, without raising."""

from __future__ import annotations

from random import Random

import pytest

from coordinator_model.coordinator import Coordinator
from tests.coordinator_model.random_frames import Wire
from tests.samples import sampled

CONVERSATIONS = 2
RECORDS = 400


@pytest.mark.parametrize("seed", sampled(range(80), range(8)))
def test_random_well_formed_frames_with_snapshots_between_raise_nothing(seed: int) -> None:
    """A JoinGroup of a member that DeleteGroups had removed raised a KeyError; a success without a leader, an assertion."""
    for number in range(CONVERSATIONS):
        lives(f"{seed}.{number}")


def lives(seed: str) -> None:
    random = Random(seed)
    frames, model = Wire(random), Coordinator(topic="mirror", partition=0)
    for _ in range(RECORDS):
        model.receive(frames.next())
        assert model.record_counts["undecodable frames"] == 0, f"seed {seed}: the generator wrote a frame that is none"
        assert model.record_counts["groups that the model stumbled over"] == 0, f"seed {seed}: a timer rule raised"
        model.drain_dead_letters()
        if random.random() < 0.05:
            model.changed_groups()
            model = Coordinator.restore(model.snapshot())

"""The reference coordinators write to the shared log only while they have the group."""

from __future__ import annotations

from random import Random

import pytest

from tests.coordinator_model.reference.consumer_coordinator import ConsumerCoordinator
from tests.coordinator_model.reference.consumer_group import ConsumerGroup, ConsumerMember
from tests.coordinator_model.reference.world import World


@pytest.mark.parametrize("has_the_group", [True, False])
def test_a_new_topic_is_written_by_the_broker_that_has_the_group_alone(*, has_the_group: bool) -> None:
    world, log, topics = World(Random(1)), [], {"t"}
    broker = ConsumerCoordinator(world, "1", log, release=(4, 3), topics=topics)
    broker.consumer = ConsumerGroup((4, 3))
    broker.consumer.members["m"] = ConsumerMember("m", None, pattern="^t.*")
    broker.consumer.patterns["^t.*"] = ("t",)
    broker.active = has_the_group
    topics.add("t-new")
    broker.topic_created("t-new")
    world.run(world.now_us + 2_000_000)
    assert bool(log) is has_the_group

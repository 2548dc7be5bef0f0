"""Which mirror partitions a lane reads."""

from __future__ import annotations

import pytest

from streaming.config.settings import MonitorConfig
from streaming.spark.job import lanes_of, partitions_of


def config(lanes):
    return MonitorConfig(kafka={"bootstrap_servers": "k:9092"}, job={"lanes": lanes})


@pytest.mark.parametrize(("lanes", "partitions"), [(1, 1), (1, 4), (2, 4), (2, 5), (3, 2), (64, 1000)])
def test_each_partition_is_in_one_lane_and_each_lane_has_one_at_least(lanes, partitions):
    dealt = [partitions_of(lane, config(lanes), partitions) for lane in range(lanes_of(config(lanes), partitions))]
    assert sorted(partition for lane in dealt for partition in lane) == list(range(partitions))
    assert all(dealt)
    assert max(map(len, dealt)) - min(map(len, dealt)) <= 1


def test_partitions_that_the_topic_gains_move_none_of_the_others():
    for lane in range(3):
        before, after = (partitions_of(lane, config(3), partitions) for partitions in (2, 7))
        assert after[: len(before)] == before

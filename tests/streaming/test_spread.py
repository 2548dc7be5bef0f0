"""Where the state of each mirror partition lies when there are several shuffle partitions."""

from __future__ import annotations

import pytest

from streaming.config import MAX_PARTITIONS
from streaming.job import spark_hash, spread


@pytest.mark.parametrize(
    ("value", "expected"),
    # What `SELECT hash(CAST(n AS INT))` gives in Spark 4.2.
    [(0, 933211791), (1, -559580957), (2, 1765031574), (42, 29417773)],
)
def test_the_hash_is_sparks_own(value, expected):
    assert spark_hash(value) == expected


@pytest.mark.parametrize("shuffle_partitions", [2, 3, 4, 64])
def test_mirror_partitions_are_dealt_out_in_turn_and_share_no_key(shuffle_partitions):
    values = spread(shuffle_partitions)
    assert len(set(values)) == MAX_PARTITIONS
    assert [spark_hash(value) % shuffle_partitions for value in values] == [
        partition % shuffle_partitions for partition in range(MAX_PARTITIONS)
    ]


def test_a_topic_that_gained_partitions_finds_its_old_ones_where_they_were():
    assert spread(4, partitions=8)[:4] == spread(4, partitions=4)

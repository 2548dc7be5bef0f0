"""The reader of compacted topics, where no broker runs."""

import pytest

from streaming.errors import SetupError
from streaming.kafka.compacted import CompactedReader


def test_a_broker_that_is_away_is_named_with_what_to_check():
    properties = {"bootstrap.servers": "127.0.0.1:1"}
    with (
        CompactedReader(lambda: properties, ["rebalance-groups"], "the reader", reach_timeout_s=0.5) as reader,
        pytest.raises(SetupError) as raised,
    ):
        reader.start()
    said, _, checked = str(raised.value).partition("; ")
    assert said.startswith("cannot read the topic rebalance-groups on 127.0.0.1:1: Kafka does not answer (")
    assert checked == "check that a broker runs there, and the security settings"

"""``watch`` on the topic while Kafka is away: it waits, goes on where it stopped, and says both."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.demo.broker import Broker
from tests.real.feeder import Feeder
from tests.real.harness import wait_for
from tests.real.watching import Watching, watching

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

TOPIC = "watch-away"


def breaches(watch: Watching) -> set[str]:
    return {one["group"] for one in watch.findings() if one["rule"] == "M-08"}


def test_while_kafka_is_away_a_watch_waits_and_then_goes_on_without_a_loss(tmp_path: Path) -> None:
    with Broker() as broker:
        broker.create_topic(TOPIC, 1)
        feeder = Feeder(broker.internal, TOPIC, 1).start()
        try:
            with watching(tmp_path, "watch", "--bootstrap-server", broker.internal, "--topic", TOPIC) as watch:
                wait_for(lambda: breaches(watch), "it finds something")
                broker.stop()
                wait_for(lambda: watch.says("is away: nothing is read until it is back"), "it says that Kafka is away")
                before = breaches(watch)
                broker.start()
                wait_for(lambda: watch.says("s: reading goes on at the next record"), "it says that Kafka is back")
                wait_for(lambda: len(breaches(watch)) >= len(before) + 3, "it goes on")
                feeder.stop()
                with watching(tmp_path, "calm", "--bootstrap-server", broker.internal, "--topic", TOPIC) as calm:
                    wait_for(lambda: breaches(calm) == breaches(watch), "nothing is missing that one finds who reads it all later")
                assert {one["rule"] for one in watch.findings() if one["group"]} == {"M-08"}
        finally:
            feeder.stop()

"""Groups with epochs that were empty, and that the coordinator deleted unseen: whoever joins then begins a new life at a lower epoch."""

from __future__ import annotations

import logging

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from streaming.demo.broker import Broker
from streaming.demo.processes import Processes
from tests.real.harness import wait_for
from tests.real.lab import java
from tests.real.lab.client import Kind, Protocol
from tests.real.lab.lives import Stage
from tests.real.lab.monitor import Monitor
from tests.real.watched import errors, watched

pytestmark = [pytest.mark.real, pytest.mark.long]

GROUP = "lives-anew"
NEEDS_JAVA = pytest.mark.skipif(java.why_not() is not None, reason=str(java.why_not()))
CLEANS_UP = {
    "offsets.retention.check.interval.ms": 1_000
}  #: so often the coordinator deletes groups that are empty and have no offsets


def stable(monitor: Monitor, members: int, above: int = 0) -> int | None:
    """The epoch that so many members share, if it is above another, as far as the model knows."""
    known = monitor.described().get(GROUP, {})
    epoch: int | None = known.get("generation")
    at_rest = epoch is not None and known["state"] == "Stable" and len(known["members"]) == members
    return epoch if at_rest and epoch > above else None


def admin_of(broker: Broker) -> AdminClient:
    """An admin client that the tap does not see."""
    return AdminClient({"bootstrap.servers": broker.internal}, logger=logging.getLogger("streaming.demo.broker.probe"))


def is_listed(broker: Broker) -> bool:
    admin = admin_of(broker)
    groups = admin.list_consumer_groups().result(30).valid
    return GROUP in {group.group_id for group in groups}


def expires(broker: Broker) -> None:
    """What the coordinator does with a group without offsets by itself."""
    wait_for(lambda: not is_listed(broker), "the coordinator deletes the group", 60)


def is_deleted(broker: Broker) -> None:
    """What an operator does, unless the group had no offsets and so has expired before."""
    admin = admin_of(broker)  # whose requests end with it
    try:
        admin.delete_consumer_groups([GROUP])[GROUP].result(30)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.GROUP_ID_NOT_FOUND:
            raise


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("kind", "protocol", "ends"),
    [
        pytest.param("confluent-kafka", "consumer", expires, id="librdkafka, expired"),
        pytest.param("java", "consumer", is_deleted, id="Java, deleted", marks=NEEDS_JAVA),
        pytest.param("java", "share", is_deleted, id="share, deleted", marks=NEEDS_JAVA),
        pytest.param("java", "streams", is_deleted, id="Streams, deleted", marks=NEEDS_JAVA),
    ],
)
def test_a_group_that_ended_unseen_is_known_at_the_lower_epoch_of_its_next_life(kind: Kind, protocol: Protocol, ends, tmp_path):
    with watched(tmp_path, properties=CLEANS_UP) as (broker, monitor, front), Processes(tmp_path, lambda _: None) as processes:
        stage = Stage(GROUP, broker, front, processes)
        stage.enter(kind, protocol)
        first = wait_for(lambda: stable(monitor, 1), "one is in the group", 90)
        stage.enter(kind, protocol)
        before = wait_for(lambda: stable(monitor, 2, above=first), "two share an epoch", 90)
        for actor in stage.actors:
            actor.stop()
        wait_for(lambda: monitor.described()[GROUP]["state"] == "Empty", "the group is empty", 60)
        ends(broker)
        again = stage.enter(kind, protocol)
        after = wait_for(lambda: stable(monitor, 1), "the next life is known", 90)
        again.stop()
        said = errors(monitor)
    assert after < before
    assert said == []

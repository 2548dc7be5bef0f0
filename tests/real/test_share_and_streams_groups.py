"""A share group and a Streams group of real Java clients: the model behind a tap says of them what the broker's own description says."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from coordinator_model.settings import Settings
from streaming.demo.broker import HOST, Broker, free_port
from streaming.demo.processes import Processes
from tests.real.harness import running_tap, wait_for
from tests.real.lab import java, newer_groups
from tests.real.lab.lives import Actor, Stage
from tests.real.lab.monitor import Monitor

pytestmark = [pytest.mark.real, pytest.mark.long, pytest.mark.skipif(java.why_not() is not None, reason=str(java.why_not()))]

TOPIC = "orders"
AGREE_WITHIN_S = 90.0
KINDS = ("share", "streams")


class Group(NamedTuple):
    """A group, as both sides name it."""

    state: str
    epoch: int | None  #: None without members: no frame shows what the last one's leaving made of it
    members: dict[str, tuple[str, int]]  #: id → client id and epoch


def described(broker: Broker, kind: str) -> Group | None:
    """What the broker says of the group that is named like its kind; None before it has one."""
    group = newer_groups.answer_about(broker.internal, kind, kind)
    if group is None:
        return None
    return Group(
        group.group_state,
        group.group_epoch if group.members else None,
        {member.member_id: (member.client_id, member.member_epoch) for member in group.members},
    )


def known(monitor: Monitor, kind: str) -> Group | None:
    """What the model says of it; None while it is learning."""
    group = monitor.described().get(kind)
    if group is None or group["learning"] is not None:
        return None
    members = {member["member_id"]: (member["client_id"], member["epoch"]) for member in group["members"]}
    return Group(group["state"], group["generation"] if members else None, members)


def agree(broker: Broker, monitor: Monitor, kind: str, actors: list[Actor]) -> bool:
    theirs = described(broker, kind)
    if theirs is None:
        return False
    clients = sorted(client.split("-StreamThread")[0] for client, _ in theirs.members.values())
    expected = sorted(actor.client.client_id for actor in actors)
    at_rest = (theirs.state, clients) == ("Stable" if actors else "Empty", expected)
    return at_rest and theirs == known(monitor, kind)


def wait_until_agreed(broker: Broker, monitor: Monitor, kind: str, actors: list[Actor]) -> None:
    try:
        wait_for(lambda: agree(broker, monitor, kind, actors), f"both sides agree on {len(actors)} members", AGREE_WITHIN_S)
    except AssertionError:
        assert known(monitor, kind) == described(broker, kind)
        raise


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", KINDS)
def test_the_model_says_what_the_broker_says(kind, tmp_path):
    front = f"{HOST}:{free_port()}"
    with (
        Broker(advertised={"PLAINTEXT": front}) as broker,
        Monitor(tmp_path / "records", Settings()) as monitor,
        running_tap([f"{front}={broker.address()}"], monitor, cluster="seen"),
        Processes(tmp_path, lambda _: None) as processes,
    ):
        broker.create_topic(TOPIC, 4)
        stage = Stage(kind, broker, front, processes)
        actors: list[Actor] = []
        for _ in range(2):
            actors.append(stage.enter("java", kind))
            wait_until_agreed(broker, monitor, kind, actors)
        while actors:
            actors.pop().stop()
            wait_until_agreed(broker, monitor, kind, actors)
        told = [states[0].finding.summary for states in monitor.findings().values()]
    assert told == []

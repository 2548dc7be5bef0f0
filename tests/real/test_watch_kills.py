"""``watch`` on the topic under load, killed at random moments: in the end it has found what one that nobody disturbed finds."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from streaming.demo.broker import Broker
from tests.processes import started
from tests.real.feeder import Feeder
from tests.real.harness import wait_for
from tests.real.watching import RUN, Watching, watching

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

PARTITIONS = 3


def killed(folder: Path, after_s: float, *options: str) -> None:
    """Let a watch that prints into the same file live for some seconds, and kill it."""
    with (folder / "killed.out").open("ab") as out, (folder / "killed.err").open("ab") as err:
        with started([*RUN, "watch", "--state", str(folder / "killed.state"), *options], stdout=out, stderr=err) as process:
            time.sleep(after_s)
            process.kill()
        out.write(b"\n")  # a line that the kill cut ends here


def outcome(watch: Watching) -> dict[str, str]:
    """The last status of each finding, by its id; V-03 hangs on when it was looked."""
    return {one["id"]: one["status"] for one in watch.findings() if one["rule"] != "V-03"}


@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.long)])
def test_killed_at_random_on_the_topic_it_finds_in_the_end_what_it_finds_undisturbed(
    broker: Broker, tmp_path: Path, kills: int
) -> None:
    topic = f"watch-kills-{kills}"
    broker.create_topic(topic, PARTITIONS)
    chance = random.Random(kills)
    options = ["--bootstrap-server", broker.internal, "--topic", topic, "--last", "30"]
    feeder = Feeder(broker.internal, topic, PARTITIONS, breach_every=5, handovers=3).start()
    try:
        for number in range(kills):
            if number % 3 == 2:  # ended in good order it keeps its state, which else is due each minute
                with watching(tmp_path, "killed", *options) as living:
                    before = len(living.findings())
                    wait_for(lambda: len(living.findings()) > before, "it finds something")  # noqa: B023
            else:
                killed(tmp_path, chance.uniform(0.5, 4.0), *options)
    finally:
        feeder.stop()
    with watching(tmp_path, "calm", *options) as calm, watching(tmp_path, "killed", *options) as disturbed:
        wait_for(lambda: len(outcome(calm)) >= kills, "it finds something")
        wait_for(lambda: outcome(calm) == outcome(disturbed), "both find the same")
        time.sleep(2)
        assert outcome(calm) == outcome(disturbed)

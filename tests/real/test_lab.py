"""A short run of the laboratory: one broker, two groups of real clients, each act of chaos that shows at once, the violations that are found
at once.

The acts are the same on every run; how their frames interleave is not. How long it takes, the machine decides: a minute when it is idle.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from coordinator_model.finding import Finding
from coordinator_model.settings import Settings
from coordinator_model.wire.record import tick
from streaming.demo.broker import free_port
from tests.coordinator_model.classic import settled
from tests.coordinator_model.conversation import Conversation
from tests.real.lab.laboratory import is_breach
from tests.real.lab.monitor import Monitor
from tests.real.lab.network import Link, Network
from tests.real.lab.short_run import short_run
from tests.real.lab.table import troubles

pytestmark = [pytest.mark.real, pytest.mark.long]


@pytest.mark.timeout(1_200)
def test_a_short_run_accuses_nobody_of_chaos_and_finds_every_violation(tmp_path):
    result = short_run(tmp_path)
    assert result.good, "\n".join(troubles(result, tmp_path))
    assert not {"T-01", "R-12"} & {rule for rules in result.findings.values() for rule in rules}  # noise: nobody did anything
    assert [result.acts[act] for act in ("lose coordinator", "take right to write", "renew certificate")] == [1, 1, 1]
    assert result.frames > 500
    assert result.rebalances > 5
    assert len(result.comparisons) == 2
    assert sum(comparison.groups - len(comparison.unknown) for comparison in result.comparisons) > 0
    assert len(result.cases) > 45
    assert result.restores == 1
    assert set(result.clients) == {"confluent-kafka", "kafka-python"}


def finding(rule: str, client_id: str | None) -> Finding:
    talk = Conversation()
    a, b = settled(talk)
    talk.round([a], 4)
    for _ in range(8):
        talk.commit(b, 25)
        talk.wait(3_000)
    return replace(next(found for found in talk.findings if found.rule == "M-01"), rule=rule, client_id=client_id)


def test_what_a_library_is_known_to_do_wrong_is_counted_apart():
    libraries = {"eager-4": "sarama", "eager-5": "java"}
    assert is_breach(finding("M-01", "eager-4"), libraries)
    for rule, client_id in (("M-01", "eager-5"), ("G-01", "eager-4"), ("M-01", "eager-6"), ("M-01", None)):
        assert not is_breach(finding(rule, client_id), libraries)


def test_what_the_monitor_has_seen_begins_anew_after_a_pause_of_all_records(tmp_path):
    """On a starved machine nothing came for 7.6 s, and the model kept a dead member of a share group for 23 s longer than else."""
    with Monitor(tmp_path / "records", Settings()) as monitor:
        for at_s in (100, 101, 109, 110, 112):
            monitor.write(tick(at_s * 1_000_000, cluster="lab", connection="tap"))
    assert monitor.seen_for_s == 3


def test_a_network_says_when_it_cannot_listen():
    address = f"127.0.0.1:{free_port()}"
    with Network([Link(address, address)]), pytest.raises(OSError, match="in use"), Network([Link(address, address)]):
        pass

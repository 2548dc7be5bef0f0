"""Members with epochs that are not let in, or die over and over, before real brokers and behind the tap: M-14, M-13, R-15, T-04."""

from __future__ import annotations

import time

import pytest

from coordinator_model.finding import Blame, Severity
from streaming.demo.processes import Processes
from streaming.demo.raw_client import Connection, find_coordinator
from tests.real.harness import wait_for
from tests.real.lab import java
from tests.real.lab.epoch_scene import EpochMember
from tests.real.lab.lives import Stage
from tests.real.lab.monitor import Monitor
from tests.real.watched import TOPIC, errors, found, member_ids, watched

pytestmark = [pytest.mark.real, pytest.mark.long]

FENCED = 110
LIVES = 4  #: of a process in a crash loop: it comes back three times
GROUP = "kept-out"


def member(front: str, name: str, instance_id: str | None = None) -> EpochMember:
    find_coordinator(front, GROUP, client_id=name)  # which makes the topic of offsets
    return EpochMember(Connection(front, client_id=name), GROUP, (TOPIC,), 60_000, instance_id)


def joined(one: EpochMember) -> EpochMember:
    wait_for(lambda: one.join() == 0, "a member joins", 60)
    return one


@pytest.mark.timeout(240)
def test_a_broker_before_4_2_does_not_let_a_member_in_that_comes_back_under_its_id(tmp_path):
    with watched(tmp_path, "4.1") as (_, monitor, front):
        stays, kept_out = joined(member(front, "stays")), joined(member(front, "kept-out"))
        for _ in range(6):
            stays.beat()
            kept_out.beat()
            time.sleep(0.5)
        answers = []
        for _ in range(6):
            answers.append(kept_out.say(0, **{**kept_out.everything(), "topic_partitions": ()}).error_code)
            stays.beat()
            time.sleep(1.5)
        finding = wait_for(lambda: found(monitor, "M-14"), "M-14 is found", 20)
    assert answers == [FENCED] * 6
    assert (finding.severity, finding.blame, finding.client_id) == (Severity.WARNING, Blame.BROKER, "kept-out")
    assert "apache/kafka/pull/21305" in finding.action


@pytest.mark.timeout(240)
def test_a_newer_broker_lets_a_member_in_that_comes_back_under_its_id(tmp_path):
    with watched(tmp_path, "4.3") as (_, monitor, front):
        comes_back = joined(member(front, "comes-back"))
        answers = []
        for _ in range(4):
            answers.append(comes_back.say(0, **{**comes_back.everything(), "topic_partitions": ()}).error_code)
            time.sleep(1.0)
        time.sleep(12)
        finding = found(monitor, "M-14")
    assert (answers, finding) == ([0] * 4, None)


@pytest.mark.timeout(240)
@pytest.mark.skipif(java.why_not() is not None, reason=str(java.why_not()))
def test_the_successor_of_a_java_member_that_was_killed_is_named_within_seconds(tmp_path):
    with watched(tmp_path, "4.3") as (broker, monitor, front), Processes(tmp_path, lambda _: None) as processes:
        stage = Stage(GROUP, broker, front, processes)
        dies = stage.enter("java", "consumer", instance_id="pod-1")
        dies.wait_until_working()
        time.sleep(6)
        dies.kill()
        dies.start()
        finding = wait_for(lambda: found(monitor, "M-14"), "M-14 is found", 40)
    assert (finding.blame, finding.instance_id) == (Blame.CLIENT, "pod-1")
    assert "UNRELEASED_INSTANCE_ID" in finding.summary
    assert "without a leave" in finding.summary


@pytest.mark.timeout(240)
def test_a_crash_loop_of_a_librdkafka_member_is_told_at_its_third_return(tmp_path):
    with watched(tmp_path, "4.3") as (broker, monitor, front), Processes(tmp_path, lambda _: None) as processes:
        stays = joined(member(front, "stays"))
        stage = Stage(GROUP, broker, front, processes)
        loops = stage.enter("confluent-kafka", "consumer")
        for _ in range(4):
            for _ in range(5):
                time.sleep(1)
                stays.beat()
            loops.kill()
            loops.start()
        finding = wait_for(lambda: found(monitor, "M-13"), "M-13 is found", 40)
        loops.kill()
    assert (finding.severity, finding.client_id, finding.group_type) == (Severity.WARNING, "kept-out-1", "consumer")


@pytest.mark.timeout(480)
@pytest.mark.skipif(java.why_not() is not None, reason=str(java.why_not()))
@pytest.mark.parametrize("kind", ["consumer", "share", "streams"])
def test_a_java_member_that_dies_over_and_over_is_told_and_its_last_life_falls_silent(kind, tmp_path):
    with watched(tmp_path, "4.3") as (broker, monitor, front), Processes(tmp_path, lambda _: None) as processes:
        stage = Stage(GROUP, broker, front, processes)
        stays = stage.enter("java", kind)
        wait_for(lambda: member_ids(monitor, GROUP, stays.client.client_id), "the one that stays joins", 90)
        loops = stage.enter("java", kind)
        lives: set[str] = set()

        def newborn() -> set[str]:
            return member_ids(monitor, GROUP, loops.client.client_id) - lives

        for life in range(LIVES):
            if life:
                loops.start()
            lives |= wait_for(newborn, f"life {life + 1} begins", 90)
            loops.kill()
        crash_loop = wait_for(lambda: found(monitor, "M-13"), "M-13 is found", 40)
        silent = wait_for(lambda: found(monitor, "T-04"), "the session of the last life is over", 150)
        stays.stop()
        said = errors(monitor)
    assert (crash_loop.severity, crash_loop.blame, crash_loop.group_type) == (Severity.WARNING, Blame.CLIENT, kind)
    assert (silent.blame, silent.group_type, silent.member_id in lives) == (Blame.CLIENT, kind, True)
    for finding in (crash_loop, silent):
        assert (finding.client_id or "").startswith(loops.client.client_id)
        assert loops.client.client_id in finding.summary
    assert said == []


@pytest.mark.timeout(240)
def test_a_librdkafka_member_without_partitions_is_told_for_which_dead_ones_it_waits(tmp_path):
    with watched(tmp_path, "4.3") as (broker, monitor, front), Processes(tmp_path, lambda _: None) as processes:
        stage = Stage(GROUP, broker, front, processes)
        dead = [stage.enter("confluent-kafka", "consumer") for _ in range(2)]
        wait_for(lambda: held(monitor) == {"kept-out-1": 2, "kept-out-2": 2}, "each has two partitions", 60)
        for actor in dead:
            actor.kill()
        waits = stage.enter("confluent-kafka", "consumer")
        finding = wait_for(lambda: found(monitor, "R-15"), "R-15 is found", 60)
        waits.kill()
    assert (finding.severity, finding.blame, finding.client_id) == (Severity.WARNING, Blame.CLIENT, "kept-out-3")
    assert "may wait for 2 dead members" in finding.summary
    assert all(f"client {actor.client.client_id}" in finding.summary for actor in dead)


def held(monitor: Monitor) -> dict[str, int]:
    """Client id → how many partitions it has, as far as the model knows."""
    members = monitor.described().get(GROUP, {}).get("members", ())
    return {member["client_id"]: member["partitions"] for member in members}

"""A finding counts only if it is the right one about the right group, opened after the fact, and names every culprit and nobody else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from coordinator_model.finding import Blame, Status
from streaming.demo.verdicts import ExpectedFinding, Truth, about_group, exit_status, judge, names
from streaming.published.finding_json import microseconds
from tests.streaming.demo.findings import FACT_US, observation

ZOMBIE = ExpectedFinding(rule="G-01", group="shipping", blame=Blame.CLIENT, culprits=("shipping-worker-1",))
PODS = ExpectedFinding(rule="S-01", group="inventory", blame=Blame.CONFIG, culprits=("pod-1", "pod-2"))


def truth() -> Truth:
    return Truth(fact_us=FACT_US, member_ids={"shipping-worker-1-aaaa"})


def test_the_right_finding_is_found_and_timed_from_the_fact():
    found = judge(ZOMBIE, truth(), [observation(group="billing"), observation(10.5), observation(12.0, status=Status.UPDATE)])
    assert found.found
    assert found.seconds_after == pytest.approx(10.5)
    assert found.problem is None


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"rule": "G-02"}, "no finding of G-01 about group shipping"),
        ({"group": "orders"}, "no finding of G-01 about group shipping"),
        ({"blame": Blame.BROKER}, "blames broker, not client"),
        ({"client_id": "shipping-worker-2"}, "names shipping-worker-2"),
        ({"client_id": None, "summary": "somebody is a zombie"}, "does not name shipping-worker-1"),
        ({"member_id": "shipping-worker-1-bbbb"}, "names member shipping-worker-1-bbbb, which is not the culprit"),
        ({"opened_at_us": FACT_US - 1_000_000}, "opened before the fault"),
    ],
)
def test_a_finding_that_misses_in_one_point_does_not_count_and_says_why(changes, problem):
    verdict = judge(ZOMBIE, truth(), [observation(**changes)])
    assert not verdict.found
    assert verdict.seconds_after is None
    assert verdict.problem == problem


def test_a_later_better_finding_makes_up_for_a_wrong_one():
    assert judge(ZOMBIE, truth(), [observation(client_id="shipping-worker-2"), observation(11.0)]).found


def test_all_of_several_culprits_must_be_named():
    about_pods = {"rule": "S-01", "group": "inventory", "blame": Blame.CONFIG, "client_id": "pod-2", "member_id": None}
    both = observation(**about_pods, summary="they fence each other: pod-1 at 127.0.0.1, pod-2 at 127.0.0.1")
    one = observation(**about_pods, summary="they fence each other: pod-2 at 127.0.0.1, pod-10 at 127.0.0.1")
    assert judge(PODS, Truth(fact_us=FACT_US), [both]).found
    assert judge(PODS, Truth(fact_us=FACT_US), [one]).problem == "does not name pod-1"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("client worker-1 at 127.0.0.1", True),
        ("waits for worker-1.", True),
        ("(worker-1, worker-2)", True),
        ("member worker-1-5f3e", False),
        ("client worker-10", False),
        ("client my-worker-1", False),
        ("client worker-1.eu", False),
    ],
)
def test_a_client_id_is_named_as_a_whole_word(text, named):
    assert names(observation(client_id=None, summary=text).finding, "worker-1") is named


def test_what_was_not_made_cannot_be_found():
    assert judge(ZOMBIE, Truth(), [observation()]).problem == "the fault was not injected"
    assert judge(ZOMBIE, replace(truth(), failure="no process"), [observation()]).problem == "no process"


def test_findings_about_a_group_are_counted_once_each_in_their_newest_state():
    first, last = observation(1.0), observation(2.0, status=Status.RESOLVED, resolved_at_us=FACT_US + 1)
    other = observation(3.0, opened_at_us=FACT_US + 1)
    found = about_group("shipping", [first, last, other, observation(group="orders")])
    assert [finding["status"] for finding in found] == ["resolved", "open"]


def test_exit_status_is_0_only_if_all_were_found_and_the_healthy_group_was_seen_and_silent():
    found = judge(ZOMBIE, truth(), [observation()])
    missed = judge(ZOMBIE, truth(), [])
    assert exit_status([found, found], [], healthy_seen=True) == 0
    assert exit_status([found, missed], [], healthy_seen=True) == 1
    assert exit_status([found], [observation().finding], healthy_seen=True) == 1
    assert exit_status([found], [], healthy_seen=False) == 1


def test_published_times_are_read_exactly():
    assert microseconds(observation().finding["opened_at"]) == FACT_US + 10_000_000
    assert microseconds(observation(opened_at_us=FACT_US + 999_999).finding["opened_at"]) == FACT_US + 999_999

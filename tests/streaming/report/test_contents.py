"""What a report says: costs by cause, who was waited for, findings, and what was not seen."""

from __future__ import annotations

import json

import pytest

from coordinator_model.advice import Advice, Saving
from streaming.published import sentences
from streaming.report.contents import report_of
from streaming.report.markdown import markdown_of
from streaming.report.page import page_of
from tests.streaming.web import history
from tests.streaming.web.conftest import filled
from tests.streaming.web.history import NOW_S


def reported(*groups, wanted=lambda _: True, since_s=None, state=None, **known):
    state = state or filled([record for group in groups for record in group.records], clock=None)
    return report_of(state, wanted=wanted, since_s=since_s, **known)


def group(name="orders", members=3):
    return history.Group(name, [f"{name}-{number}" for number in range(members)])


@pytest.fixture
def dear():
    made = group("dear")
    made.rebalance(NOW_S - 900, slow=2, slow_s=25, cause="session expired")
    made.rebalance(NOW_S - 600, slow=1, slow_s=2, cause="new member")
    made.rebalance(NOW_S - 300, slow=2, slow_s=25, cause="session expired")
    return made


@pytest.fixture
def cheap():
    made = group("cheap")
    made.rebalance(NOW_S - 800, cause="new member")
    return made


def test_groups_come_by_cost_and_what_they_lost_is_added_up(cheap, dear):
    report = reported(cheap, dear)
    assert [one.name for one in report.groups] == ["dear", "cheap"]
    costs = [record["cost_member_seconds"] for record in (*dear.records, *cheap.records) if record["kind"] == "rebalance_finished"]
    assert report.lost.member_seconds == pytest.approx(sum(costs))
    assert report.lost.rebalances == 4


def test_the_rebalances_of_a_group_are_told_by_cause_the_costliest_first(dear):
    (one,) = reported(dear).groups
    assert [(cause, lost.rebalances) for cause, lost in one.causes.items()] == [("session expired", 2), ("new member", 1)]
    assert sum(lost.took_ms for lost in one.causes.values()) == one.lost.took_ms
    assert one.lost.unheld_partition_seconds > 0


def test_who_was_waited_for_is_told_once_with_all_its_waits(dear):
    (one,) = reported(dear).groups
    assert [(waited.name, waited.times) for waited in one.waited_for] == [("dear-2", 2), ("dear-1", 1)]
    assert one.waited_for[0].waited_ms == pytest.approx(52_000, abs=1_000)


def test_what_a_static_member_left_unheld_that_returned_without_a_rebalance_counts_for_its_group(cheap):
    before = reported(cheap).groups[0]
    cheap.event("member_served", NOW_S - 100, 0, partitions={"t": [0, 1]}, unheld={"t": {"0": 6.5, "1": 6.5}})
    after = reported(cheap).groups[0]
    unheld = after.lost.unheld_partition_seconds - (before.lost.unheld_partition_seconds or 0.0)
    assert (unheld, after.lost.rebalances, after.causes) == (pytest.approx(13.0), before.lost.rebalances, before.causes)


def test_the_summary_says_what_it_cost_who_paid_most_and_for_what(cheap, dear):
    dear.finding("R-01", "member never rejoins", "error", NOW_S - 890, 2)
    summary = reported(cheap, dear).summary
    assert ", 2 of 2 groups had 4 rebalances, which cost" in summary
    assert "dear paid most with 9" in summary
    assert "most of it by “session expired”; in the longest dear-2 did not rejoin for 26.0 s." in summary
    assert "1 finding (1 error), 1 of them still open. The worst: R-01 member never rejoins." in summary


def test_of_one_group_the_summary_says_its_name(cheap):
    assert ", cheap had 1 rebalance, which cost " in reported(cheap).summary
    assert "All of it by “new member”" in reported(cheap).summary


def test_no_rebalance_and_no_finding_are_said():
    quiet = group()
    quiet.event("member_joined", NOW_S - 60, quiet.members[0])
    quiet.view("Stable", NOW_S - 50)
    summary = reported(quiet).summary
    assert "no rebalance of 1 group ended" in summary
    assert "There is no finding." in summary


def test_what_was_before_the_time_is_left_out(dear):
    dear.finding("R-01", "member never rejoins", "error", NOW_S - 890, status="resolved")
    (one,) = reported(dear, since_s=NOW_S - 700).groups
    assert (one.lost.rebalances, one.findings) == (2, [])
    assert sum(waited.times for waited in one.waited_for) == 2


def test_a_finding_that_was_still_open_within_the_time_is_reported(dear):
    dear.finding("R-01", "member never rejoins", "error", NOW_S - 890)
    assert [finding["rule"] for finding in reported(dear, since_s=NOW_S - 700).groups[0].findings] == ["R-01"]


def test_only_wanted_groups_are_reported(cheap, dear):
    dear.finding("R-01", "member never rejoins", "error", NOW_S - 890)
    report = reported(cheap, dear, wanted=lambda name: name == "cheap")
    assert [one.name for one in report.groups] == ["cheap"]
    assert "R-01" not in report.summary


def test_groups_of_several_clusters_are_told_apart(cheap):
    other = history.Group("cheap", ["c"], cluster="test")
    other.rebalance(NOW_S - 70)
    assert {one.name for one in reported(cheap, other).groups} == {"cheap of prod", "cheap of test"}


def test_a_finding_of_no_group_is_reported_beside_them(cheap):
    cheap.finding("V-04", "frames were not captured", "warning", NOW_S - 100)
    cheap.records[-1]["group"] = ""
    report = reported(cheap)
    assert [one["rule"] for one in report.findings] == ["V-04"]
    assert report.groups[0].findings == []


def test_when_a_group_was_out_of_sight_is_told_with_the_reason(cheap):
    cheap.event("sight_lost", NOW_S - 100, reason="17 frames were not captured")
    cheap.event("sight_regained", NOW_S - 70, reason="the members were seen again")
    cheap.event("sight_lost", NOW_S - 10, reason="the coordinator moved")
    report = reported(cheap)
    at = history.iso(NOW_S - 100)[:19].replace("T", " ")
    assert report.groups[0].not_seen[0] == f"From {at} on for 30.0 s: 17 frames were not captured."
    assert report.groups[0].not_seen[1].endswith("until the end: the coordinator moved.")
    assert report.not_seen == ["Of 1 group the monitor did not see everything: cheap."]


def test_a_group_that_is_learned_counts_as_not_seen(cheap):
    cheap.view("Unknown", NOW_S - 20, learning="the mirror began after its members had joined")
    assert "not known yet: the mirror began" in reported(cheap).groups[0].not_seen[0]


def test_topics_that_begin_later_and_a_monitor_that_stands_still_are_told(cheap):
    state = filled(cheap.records)
    state.monitor_status({"partition": 0, "gaps": {"capture": 12}}, NOW_S - 3_600)
    state.say_no_events("the topic rebalance-events does not exist")
    told = " ".join(reported(state=state, since_s=NOW_S - 7 * 86_400).not_seen)
    assert "The first record is of" in told
    assert "12 records of the mirror were lost since the monitor began (capture)" in told
    assert "last status 1 h 0 min before" in told
    assert "There are no events" in told


def test_nothing_is_said_to_be_missing_where_nothing_is(cheap):
    state = filled(cheap.records)
    state.monitor_status({"partition": 0, "gaps": {}}, NOW_S - 5)
    assert reported(state=state, since_s=state.first_s).not_seen == []


def test_clients_are_told_with_software_and_what_brokers_refuse_them(cheap):
    speaker = {"client_id": "old", "client_address": "10.0.0.1", "client_software": "old 1.0", "versions": {"OffsetCommit": 1}}
    report = reported(cheap, clients=[{"group": "cheap", "members": [speaker]}])
    (one,) = report.clients
    assert (one["client_software"], one["before_4_0"]) == ("old 1.0", "Upgrade: 4.0 refuses OffsetCommit v1")


def test_known_defects_of_the_clients_releases_are_told_once(cheap):
    speakers = [
        {"client_id": f"s-{n}", "client_address": "10.0.0.1", "client_software": "sarama v1.35.0", "versions": {"JoinGroup": n}}
        for n in (1, 2)
    ]
    report = reported(cheap, clients=[{"group": "cheap", "members": speakers}])
    (line,) = report.known_defects
    assert line.startswith("Known of sarama, 1.35.0: it leaves members that get no partitions out of SyncGroup")
    assert "https://github.com/IBM/sarama/pull/2292" in line
    for text in (markdown_of(report), page_of(report)):
        assert text.count("https://github.com/IBM/sarama/pull/2292") == 1


@pytest.fixture
def restarted():
    """A group of which one process restarts under the same client id again and again, and costs all others a rebalance each time."""
    made = group("deploys")
    made.restarts()
    return made


def test_advice_names_the_rebalances_that_prove_it_and_the_costliest_is_drawn(restarted):
    report = reported(restarted)
    (one,) = report.groups
    assert one.advice
    known = {rebalance.event.id for rebalance in one.rebalances}
    assert all(piece.rebalances and set(piece.rebalances) <= known for piece in one.advice)
    assert {rebalance.event.id for rebalance in one.shown_rebalances} <= {id_ for piece in one.advice for id_ in piece.rebalances}
    assert f"What would have saved most: {one.advice[0].setting}, {sentences.saved(one.advice[0])}." in report.summary
    assert [piece["kind"] for piece in one.as_json()["advice"]] == [piece.kind for piece in one.advice]


def test_without_advice_the_costliest_rebalance_is_drawn(cheap):
    (one,) = reported(cheap).groups
    assert one.advice == []
    assert one.shown_rebalances == one.costliest[:1]


def test_what_advice_saves_is_a_range_where_it_depends_on_what_is_not_seen():
    expected, least, most, lost = Saving(15.2, 0.0), Saving(10.2, 0.0), Saving(20.4, 0.0), Saving(25.5, 7.0)
    piece = Advice("", "g", "k", "s", expected, least, most, lost, ("a", "b"), "", "")
    assert sentences.saved(piece) == "15.2 (10.2 to 20.4) of 25.5 member-seconds, in 2 rebalances"
    certain = piece._replace(saves_least=expected, saves_most=expected, rebalances=("a",))
    assert sentences.saved(certain) == "15.2 of 25.5 member-seconds, in 1 rebalance"


def test_as_json_it_is_plain_and_has_each_rebalance(cheap, dear):
    content = json.loads(json.dumps(reported(cheap, dear).as_json()))
    assert content.keys() == {
        *("from", "to", "summary", "rebalances", "took_ms", "cost_member_seconds", "unheld_partition_seconds"),
        *("causes", "groups", "findings", "clients", "read", "not_seen"),
    }
    of_all = {one["cause"]: one for one in content["causes"]}
    assert of_all["new member"]["rebalances"] == sum(
        one["rebalances"] for group in content["groups"] for one in group["causes"] if one["cause"] == "new member"
    )
    costs = [one["cost_member_seconds"] for one in content["causes"]]
    assert costs == sorted(costs, reverse=True)
    assert sum(costs) == pytest.approx(content["cost_member_seconds"], abs=0.01)
    first = content["groups"][0]
    assert [one["cause"] for one in first["rebalances_over"]] == ["session expired", "new member", "session expired"]
    assert first["causes"][0]["rebalances"] == 2
    assert first["rebalances_over"][0]["held_up"] == "dear-2 did not rejoin for 26.0 s"
    assert sum(one["cost_member_seconds"] for one in first["rebalances_over"]) == pytest.approx(
        first["cost_member_seconds"], abs=0.01
    )

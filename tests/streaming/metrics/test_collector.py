"""What a scrape shows: checked on the golden transcripts, which real brokers and clients made."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from prometheus_client.parser import text_string_to_metric_families

from coordinator_model.counters import EVICTIONS
from coordinator_model.events import CAUSES, State
from coordinator_model.groups.epochs.reconciliation import CAUSES as EPOCH_CAUSES
from coordinator_model.rules import CATALOGUE
from streaming.metrics.metrics_state import GROUPS, STATUS, MetricsState
from streaming.metrics.table import METRICS
from tests.golden import transcript
from tests.needs import needs
from tests.streaming.metrics.transcripts import TOPIC, Watched, complaints, encoded, samples, select, text, value

EAGER = "lawful-eager-4.3.1"
VIOLATION = "violation-zombie-member-3.9.2"
NEW_PROTOCOL = "lawful-new-protocol-4.3.1"


@pytest.fixture(scope="module")
def eager():
    return Watched(EAGER).read().told()


@pytest.fixture(scope="module")
def half_way():
    """While there are members."""
    watched = Watched(EAGER)
    for record in watched.records:
        watched.read([record])
        groups = [watched.model.groups.opened(key)[0] for key in watched.model.groups]
        if any(group.state is State.STABLE and len(list(group.present_members())) > 1 for group in groups):
            break
    return watched.told()


def test_a_group_is_in_one_state_and_its_figures_are_those_of_the_groups_topic(half_way):
    found = samples(half_way.metrics_state)
    for group in half_way.metrics_state.look().groups.values():
        labels = {"cluster": group.cluster, "group": group.name}
        states = {state: value(found, "rebalance_group_state", **labels, state=state) for state in State}
        assert states == {state: None if state is State.DEAD else float(state == group.state) for state in State}
        assert value(found, "rebalance_group_members", **labels) == group.members
        assert value(found, "rebalance_group_generation", **labels) == group.generation
        joins = value(found, "rebalance_group_join_duration_seconds_count", **labels)
        causes = select(found, "rebalance_group_rebalances_total")
        assert sum(count for where, count in causes.items() if ("group", group.name) in where) == joins > 0
    assert any(group.members for group in half_way.metrics_state.look().groups.values())


def test_every_frame_of_the_transcript_is_counted(eager):
    frames = select(samples(eager.metrics_state), "rebalance_monitor_frames_total")
    assert sum(frames.values()) == sum(record.kind.value in {"req", "res"} for record in eager.records)
    records = select(samples(eager.metrics_state), "rebalance_monitor_records_total")
    assert sum(frames.values()) + sum(records.values()) == len(eager.records)


def test_the_phases_of_all_groups_make_the_histogram(eager):
    found = samples(eager.metrics_state)
    for phase in ("join", "sync"):
        every = value(found, "rebalance_phase_duration_seconds_count", cluster="lab", phase=phase)
        singly = select(found, f"rebalance_group_{phase}_duration_seconds_count")
        assert every == sum(singly.values()) > 0
        assert value(found, "rebalance_phase_duration_seconds_bucket", cluster="lab", phase=phase, le="+Inf") == every
        seconds = select(found, f"rebalance_group_{phase}_duration_seconds_sum")
        total = value(found, "rebalance_phase_duration_seconds_sum", cluster="lab", phase=phase)
        assert total == pytest.approx(sum(seconds.values()), abs=0.001 * every)


def test_evictions_of_all_groups_are_shown_and_those_that_never_came_as_none():
    watched = Watched(VIOLATION).read().told()
    found = select(samples(watched.metrics_state), "rebalance_member_evictions_total")
    counted = {(cluster, cause): members for cluster, cause, members in watched.model.figures()["evictions"]}
    assert sum(counted.values()) > 0
    shown = {(dict(labels)["cluster"], dict(labels)["cause"]): members for labels, members in found.items()}
    assert shown == {("lab", cause): counted.get(("lab", cause), 0) for cause in EVICTIONS}


def costs_of(records):
    """What the records of a transcript's rebalances add up to: cause → rebalances, member-seconds, partition-seconds."""
    found = {}
    for event in transcript.events_of(records):
        if event.kind == "rebalance_finished":
            known = found.setdefault(event.cause.replace(" ", "_"), [0, 0.0, 0.0])
            known[0] += 1
            known[1] += event.cost_us / 1e6
            known[2] += sum(one.us / 1e6 for one in event.unheld or ())
    return found


def test_the_costs_of_groups_with_epochs_are_shown_by_their_own_causes():
    watched = Watched("lawful-consumer-falls-silent-4.3.1").read().told()
    expected = costs_of(watched.records)
    found = select(samples(watched.metrics_state), "rebalance_finished_total")
    shown = {dict(labels)["cause"]: count for labels, count in found.items()}
    none_yet = {cause.replace(" ", "_"): 0 for cause in (*CAUSES, *EPOCH_CAUSES)}
    assert shown == none_yet | {cause: one[0] for cause, one in expected.items()}
    assert shown["went_silent"] == 1
    unheld = select(samples(watched.metrics_state), "rebalance_unheld_partition_seconds_total")
    total = {dict(labels)["cause"]: seconds for labels, seconds in unheld.items()}
    assert total["went_silent"] == pytest.approx(expected["went_silent"][2], abs=0.01)
    assert total["went_silent"] > 100


@pytest.mark.parametrize("name", [EAGER, VIOLATION, "lawful-cooperative-4.3.1", "violation-never-rejoins-4.3.1"])
def test_the_cost_of_all_rebalances_is_that_of_their_records_by_cause_in_total_and_for_the_group(name):
    watched = Watched(name).read().told()
    expected = costs_of(watched.records)
    assert sum(member_s for _, member_s, _ in expected.values()) > 0
    found = samples(watched.metrics_state)
    rebalances = {dict(labels)["cause"]: count for labels, count in select(found, "rebalance_finished_total").items()}
    assert rebalances == {cause.replace(" ", "_"): 0 for cause in CAUSES} | {cause: one[0] for cause, one in expected.items()}
    for place, total, singly in (
        (1, "rebalance_cost_member_seconds_total", "rebalance_group_cost_member_seconds_total"),
        (2, "rebalance_unheld_partition_seconds_total", "rebalance_group_unheld_partition_seconds_total"),
    ):
        in_total = {dict(labels)["cause"]: seconds for labels, seconds in select(found, total).items()}
        assert in_total == pytest.approx(
            {cause: expected.get(cause, (0, 0, 0))[place] for cause in in_total}, abs=0.001
        )  # published in milliseconds
        of_groups = {dict(labels)["cause"]: seconds for labels, seconds in select(found, singly).items()}
        assert of_groups == pytest.approx({cause: one[place] for cause, one in expected.items()}, abs=0.001)


def test_findings_are_shown_by_rule_and_severity_and_for_the_group_that_they_are_about():
    watched = Watched(VIOLATION).told().read()
    found, open_ = samples(watched.metrics_state), list(watched.metrics_state.look().open.values())
    assert open_
    for finding in open_:
        where = {"cluster": finding.cluster, "rule": finding.rule, "severity": finding.severity}
        assert value(found, "rebalance_open_findings", **where) >= 1
        assert value(found, "rebalance_findings_total", **where) >= 1
    watched.told()
    shown = select(samples(watched.metrics_state), "rebalance_group_open_findings")
    assert sum(shown.values()) == len(open_)


def test_rules_that_are_quiet_are_shown_as_quiet(eager):
    quiet = select(samples(eager.metrics_state), "rebalance_findings_total")
    assert {dict(labels)["rule"] for labels in quiet} == set(CATALOGUE)
    assert set(quiet.values()) == {0.0}


def test_what_was_open_before_the_start_did_not_open_now():
    earlier = Watched(VIOLATION).read().told()
    assert sum(select(samples(earlier.metrics_state), "rebalance_open_findings").values()) > 0
    assert sum(select(samples(earlier.metrics_state), "rebalance_findings_total").values()) == 0


def test_a_group_of_the_consumer_protocol_has_its_state_its_epoch_and_its_members():
    found = samples(Watched(NEW_PROTOCOL).read().told().metrics_state)
    (labels,) = [dict(labels) for labels in select(found, "rebalance_group_info")]
    assert labels["group_type"] == "consumer"
    where = {"cluster": labels["cluster"], "group": labels["group"]}
    shown = {
        name: value(found, f"rebalance_group_{name}", **where) for name in ("learning", "members", "state_number", "generation")
    }
    assert shown == {"learning": 0, "members": 0, "state_number": 5, "generation": 18}
    halfway = Watched(NEW_PROTOCOL)
    halfway.read(halfway.records[: len(halfway.records) // 2]).told()
    found = samples(halfway.metrics_state)
    assert value(found, "rebalance_group_members", **where) > 0
    assert value(found, "rebalance_group_state_number", **where) in {3, 7}


def pending(watched):
    """Member of the only group → how many partitions it is to give up."""
    members = [member for key in watched.model.groups for member in watched.model.groups.opened(key)[0].present_members()]
    return {member.id: len(member.pending) for member in members if getattr(member, "pending", None)}


def test_members_of_a_group_with_epochs_are_counted_by_how_far_they_are_and_so_is_what_they_are_to_give_up():
    watched = Watched("lawful-consumer-never-gives-up-4.3.1")
    next(record for record in watched.records if pending(watched.read([record])))
    found = samples(watched.told().metrics_state)
    (where,) = [dict(labels) for labels in select(found, "rebalance_group_partitions_to_give_up")]
    by_state = {dict(labels)["state"]: count for labels, count in select(found, "rebalance_group_reconciling_members").items()}
    assert value(found, "rebalance_group_partitions_to_give_up", **where) == sum(pending(watched).values()) > 0
    assert by_state["gives_partitions_up"] == len(pending(watched))
    assert by_state.keys() == {"in_sync", "not_told_of_the_newest_epoch", "gives_partitions_up", "left_for_a_while"}
    assert sum(by_state.values()) == value(found, "rebalance_group_members", **where)


def test_a_classic_group_has_no_members_that_reconcile(half_way):
    assert select(samples(half_way.metrics_state), "rebalance_group_reconciling_members") == {}
    assert select(samples(half_way.metrics_state), "rebalance_group_partitions_to_give_up") == {}


# ---------------------------------------------------------------------------------------------------- what goes, and what stays out


def groups_shown(found):
    return {dict(labels)["group"] for labels in select(found, "rebalance_group_members")}


def several(count=12):
    """One group under many names."""
    watched = Watched(EAGER).read().told()
    (content,) = [group.as_json() for group in _again(watched)][:1]
    for number in range(count):
        name = f"g-{number:02}"
        watched.metrics_state.apply(GROUPS, {f"lab/{name}": encoded({**content, "group": name})})
    return watched


def _again(watched):
    return [watched.model.groups.opened(key)[0].view(0, 0, watched.model.now_us) for key in watched.model.groups]


def test_a_tombstone_takes_all_series_of_a_group_away():
    watched = several()
    assert "g-03" in groups_shown(samples(watched.metrics_state))
    watched.metrics_state.apply(GROUPS, {"lab/g-03": None})
    assert '"g-03"' not in text(watched.metrics_state)


def test_a_deleted_group_has_no_series_before_it_is_forgotten():
    watched = several()
    (content,) = [group.as_json() for group in _again(watched)][:1]
    watched.metrics_state.apply(GROUPS, {"lab/g-03": encoded({**content, "group": "g-03", "state": "Dead"})})
    found = samples(watched.metrics_state)
    assert '"g-03"' not in text(watched.metrics_state)
    assert value(found, "rebalance_groups", cluster="lab", state="Dead") == 1
    assert set(select(found, "rebalance_monitor_groups_left_out").values()) == {0}


def test_a_group_that_a_model_left_behind_which_is_no_more_is_not_shown():
    """The checkpoint was given up: nobody will ever delete the group's record."""
    watched = several()
    assert "g-05" in groups_shown(samples(watched.metrics_state))
    later = watched.model.now_us // 1_000 + 1
    watched.told(since_ms=later)
    assert not groups_shown(samples(watched.metrics_state))


def test_no_more_groups_than_allowed_the_first_by_name_and_the_rest_is_counted():
    watched = several()
    everything = len(groups_shown(samples(watched.metrics_state)))
    found = samples(watched.metrics_state, max_groups=3)
    assert groups_shown(found) == {"eager", "g-00", "g-01"}
    assert value(found, "rebalance_monitor_groups_left_out", reason="max_groups") == everything - 3
    assert sum(select(found, "rebalance_groups").values()) == everything
    assert not groups_shown(samples(watched.metrics_state, max_groups=0))


def test_lag_of_the_first_partitions_has_series_and_the_sum_holds_all():
    metrics_state = Watched(EAGER).read().told().metrics_state
    (group,) = metrics_state.look().groups.values()
    assert not select(samples(metrics_state), "rebalance_group_lag_records")
    where = (group.cluster, group.name)
    labels = frozenset({"cluster": group.cluster, "group": group.name}.items())
    metrics_state.observe_lag(
        {where: {("t", partition): partition for partition in (10, 2, 1)}, ("", "another"): {("t", 0): 5}}, unknown=3
    )
    found = samples(metrics_state, max_partitions=2)
    assert select(found, "rebalance_group_lag_records") == {labels: 13}
    assert {
        dict(labels_of_it)["partition"]: lag for labels_of_it, lag in select(found, "rebalance_group_partition_lag_records").items()
    } == {
        "1": 1,
        "2": 2,
    }
    assert select(found, "rebalance_group_lag_partitions_left_out") == {labels: 1}
    assert value(found, "rebalance_monitor_lag_unknown_groups") == 3


def test_patterns_say_which_groups_are_shown():
    watched = several()
    everything = len(groups_shown(samples(watched.metrics_state)))
    found = samples(watched.metrics_state, allow_groups=["g-*"], deny_groups=["/0[1-9]$/"])
    assert groups_shown(found) == {"g-00", "g-10", "g-11"}
    assert value(found, "rebalance_monitor_groups_left_out", reason="pattern") == everything - 3
    assert value(found, "rebalance_monitor_groups_left_out", reason="max_groups") == 0


def test_no_label_names_a_member_a_client_or_a_connection(half_way):
    exposition = text(half_way.metrics_state)
    members = {name for key in half_way.model.groups for name in half_way.model.groups.opened(key)[0].members}
    assert members
    assert not [name for name in members if name in exposition]
    assert not {"member", "member_id", "client_id", "client", "connection", "offset"} & {
        label for metric in METRICS for label in metric.labels
    }


# ---------------------------------------------------------------------------------------------------- how far it is


def test_a_monitor_that_says_it_is_starting_is_no_unreadable_status(eager):
    before = samples(eager.metrics_state)
    starting = {"topic": TOPIC, "written_ms": 5, "starting_since_ms": 4}
    eager.metrics_state.apply("status", {f"{TOPIC}/monitor": json.dumps(starting).encode()})
    assert samples(eager.metrics_state) == before


def test_lag_is_what_was_not_read_and_how_old_the_newest_is_that_was(eager):
    metrics_state = eager.metrics_state
    read, newest_s = eager.model.next_offset, eager.model.now_us // 1_000 / 1_000
    metrics_state.observe_mirror({0: 0, 1: 15}, {0: read, 1: 40})
    found = samples(metrics_state, now_s=newest_s + 60)
    assert value(found, "rebalance_monitor_lag_records", partition="0") == 0
    assert value(found, "rebalance_monitor_lag_seconds", partition="0") == 0
    assert value(found, "rebalance_monitor_lag_records", partition="1") == 25, "a partition of which nothing was read"
    assert value(found, "rebalance_monitor_lag_seconds", partition="1") is None
    metrics_state.observe_mirror({0: 0}, {0: read + 7})
    metrics_state.observe_progress(newest_s, None, {0: read + 7})
    found = samples(metrics_state, now_s=newest_s + 60)
    assert value(found, "rebalance_monitor_lag_records", partition="0") == 0, "what was read since the status was published"
    metrics_state.observe_progress(newest_s, None, {})
    found = samples(metrics_state, now_s=newest_s + 60)
    assert value(found, "rebalance_monitor_lag_records", partition="0") == 7
    assert value(found, "rebalance_monitor_lag_seconds", partition="0") == pytest.approx(60)
    metrics_state.observe_mirror({}, {})


def test_partitions_are_summed_where_they_count_the_same_and_apart_where_they_do_not():
    metrics_state = MetricsState(TOPIC)
    first = Watched(EAGER, metrics_state=metrics_state).read().told()
    second = Watched(VIOLATION, partition=1, metrics_state=metrics_state).read().told()
    found = samples(metrics_state)
    assert sum(select(found, "rebalance_monitor_frames_total").values()) == sum(
        record.kind.value in {"req", "res"} for record in [*first.records, *second.records]
    )
    for watched in (first, second):
        label = {"partition": str(watched.model.partition)}
        assert value(found, "rebalance_monitor_state_bytes", **label) == len(watched.model.snapshot())
        tick_s = value(found, "rebalance_monitor_last_tick_timestamp_seconds", **label)
        assert tick_s == pytest.approx(watched.model.counters.tick_us / 1e6, abs=0.001)


def test_nothing_is_shown_of_topics_that_are_half_read():
    found = samples(Watched(EAGER).read().told(complete=False).metrics_state)
    assert not select(found, "rebalance_monitor_frames_total")
    assert not groups_shown(found)
    assert value(found, "rebalance_monitor_up") == 0


def test_the_driver_says_how_it_is(eager):
    eager.metrics_state.observe(running=True, restarts=Counter(jvm=2))
    eager.metrics_state.observe_progress(1_000.0, 0.4, {})
    eager.metrics_state.observe_progress(1_001.0, None, {})
    found = samples(eager.metrics_state)
    assert value(found, "rebalance_monitor_up") == 1
    assert value(found, "rebalance_monitor_restarts_total", part="jvm") == 2
    assert value(found, "rebalance_monitor_restarts_total", part="findings") == 0
    assert value(found, "rebalance_monitor_last_progress_timestamp_seconds") == 1_001
    assert value(found, "rebalance_monitor_batch_duration_seconds_count") == 1
    assert value(found, "rebalance_monitor_batch_duration_seconds_bucket", le="0.5") == 1


# ---------------------------------------------------------------------------------------------------- what is not as it should be


@pytest.mark.parametrize("garbage", [b"", b"{", b"[]", b"7", b"{}", b'"x"', b'{"topic": "mirror"}', b"\xff"])
def test_a_result_that_cannot_be_read_is_counted_and_changes_nothing(garbage):
    watched = Watched(EAGER).read().told()
    before = text(watched.metrics_state)
    for kind in (GROUPS, STATUS, "findings"):
        watched.metrics_state.apply(kind, {"lab/some": garbage})
    found = samples(watched.metrics_state)
    assert value(found, "rebalance_monitor_unreadable_results_total") == 3
    assert text(watched.metrics_state).splitlines()[:-1] == before.splitlines()[:-1]


def test_records_of_an_earlier_release_are_shown_with_what_they_hold():
    watched = Watched(EAGER).read().told()
    (content,) = [group.as_json() for group in _again(watched)][:1]
    old = {name: held for name, held in content.items() if name not in {"joins", "syncs", "errors", "partition"}}
    watched.metrics_state.apply(GROUPS, {"lab/old": encoded({**old, "group": "old"})})
    status = {"topic": TOPIC, "partition": 3, "next_offset": 1, "newest_record_ms": 5, "snapshot_bytes": 9, "counters": {"tick": 4}}
    watched.metrics_state.apply(STATUS, {"mirror/3": encoded(status)})
    found = samples(watched.metrics_state)
    assert "old" in groups_shown(found)
    assert value(found, "rebalance_monitor_state_bytes", partition="3") == 9


def test_the_status_of_another_mirror_topic_is_left_alone():
    metrics_state = MetricsState(TOPIC)
    metrics_state.apply(STATUS, {"other/0": json.dumps({"topic": "other", "partition": 0}).encode()})
    assert metrics_state.look().status == {}


def test_a_name_that_needs_escaping_comes_through():
    watched = several(0)
    (content,) = [group.as_json() for group in _again(watched)][:1]
    name = 'a "quoted" \\ name\nwith a line end'
    watched.metrics_state.apply(GROUPS, {"k": encoded({**content, "group": name})})
    assert name in groups_shown(samples(watched.metrics_state))


# ---------------------------------------------------------------------------------------------------- the field's habits


@needs("promtool")
@pytest.mark.parametrize("name", [EAGER, VIOLATION])
def test_promtool_has_no_complaint(name):
    assert complaints(text(Watched(name).read().told().metrics_state)) == (0, "")


@pytest.mark.parametrize("name", transcript.names()[::6])
def test_everything_that_is_served_is_in_the_table_with_its_labels(name):
    table = {metric.name.removesuffix("_total"): metric for metric in METRICS}
    for family in text_string_to_metric_families(text(Watched(name).read().told().metrics_state)):
        metric = table[family.name]
        assert family.type == metric.kind
        assert family.documentation == metric.help
        for sample in family.samples:
            assert set(sample.labels) - {"le"} == set(metric.labels)


def test_names_end_as_the_field_has_it():
    for metric in METRICS:
        assert metric.name.startswith("rebalance_")
        assert (metric.kind == "counter") == metric.name.endswith("_total"), metric.name
        assert metric.help.endswith(".")
    assert len({metric.name for metric in METRICS}) == len(METRICS)


def test_a_client_that_kafka_refuses_makes_the_monitor_not_ready_and_is_named():
    metrics_state = MetricsState("mirror")
    metrics_state.observe(running=False, restarts=Counter(), accepted={"findings_writer": False, "findings_reader": True})
    found = samples(metrics_state)
    assert value(found, "rebalance_monitor_up") == 0
    assert value(found, "rebalance_monitor_client_accepted", part="findings_writer") == 0
    assert value(found, "rebalance_monitor_client_accepted", part="findings_reader") == 1

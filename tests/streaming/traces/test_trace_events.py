"""Traces obey the Trace Event Format, and draw what the lanes of the page draw.

Rules of the format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU. Perfetto and chrome://tracing do not
refuse a trace that breaks them, but draw it wrongly.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from itertools import pairwise

import pytest
from typer.testing import CliRunner

from streaming.cli import app
from streaming.published.page_state import PageState
from streaming.published.taking import read_file
from streaming.traces.trace_events import trace_events
from tests.golden import transcript
from tests.samples import sampled
from tests.streaming.web import history
from tests.streaming.web.conftest import filled, served


def check_format(trace):
    """Fail for what the format does not allow; gives the events by phase."""
    assert json.loads(json.dumps(trace)) == trace
    assert trace["displayTimeUnit"] in {"ms", "ns"}
    by_phase = defaultdict(list)
    for event in trace["traceEvents"]:
        by_phase[event["ph"]].append(event)
        assert isinstance(event["name"], str)
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        if event["ph"] != "M":
            assert isinstance(event["ts"], int)
            assert event["ts"] >= 0
    assert set(by_phase) <= {"M", "X", "i", "s", "f"}
    slices = defaultdict(list)
    for event in by_phase["X"]:
        assert event["dur"] >= 0
        slices[event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    for of_a_thread in slices.values():
        of_a_thread.sort()
        assert all(before[1] <= after[0] for before, after in pairwise(of_a_thread))
    assert all(event["s"] == "t" for event in by_phase["i"])
    starts, ends = ({event["id"]: event for event in by_phase[phase]} for phase in "sf")
    assert starts.keys() == ends.keys()
    assert len(starts) == len(by_phase["s"])
    for number, start in starts.items():
        end = ends[number]
        assert (start["name"], start["cat"]) == (end["name"], end["cat"])
        assert end["bp"] == "e"
        assert start["ts"] <= end["ts"]
        for event in (start, end):
            assert any(begin <= event["ts"] < until for begin, until in slices[event["tid"]]), event
    named = {event["tid"] for event in by_phase["M"] if event["name"] == "thread_name"}
    assert named >= {event["tid"] for phase in "Xisf" for event in by_phase[phase]}
    return by_phase


def trace_of(state, group, **between):
    (past,) = [past for key, past in state.groups.items() if key[1] == group]
    return trace_events(past, **{"to_s": state.now_s(), **between})


@pytest.mark.parametrize("group", sorted({record["group"] for record in history.records()}))
def test_the_trace_of_a_group_obeys_the_format(group):
    check_format(trace_of(filled(history.records()), group))


@pytest.mark.parametrize("name", sampled(transcript.names(), transcript.names()[::6]))
def test_what_was_recorded_of_real_clients_obeys_the_format(name, tmp_path):
    file = tmp_path / "recorded.jsonl"
    events = transcript.replayed(name).events
    file.write_text("".join(json.dumps(event.as_json()) + "\n" for event in events))
    state = PageState(clock=None)
    if events:
        read_file(state, file)
    for past in state.groups.values():
        check_format(trace_events(past, to_s=state.now_s()))


def names_by_thread(phases, phase):
    threads = {event["tid"]: event["args"]["name"] for event in phases["M"] if event["name"] == "thread_name"}
    found = defaultdict(list)
    for event in sorted(phases[phase], key=lambda one: one["ts"]):
        found[threads[event["tid"]]].append(event["name"])
    return found


def test_each_member_has_a_lane_and_who_waits_an_arrow_to_whom_it_waits_for():
    phases = check_format(trace_of(filled(history.orders()), "orders"))
    lanes = names_by_thread(phases, "X")
    assert lanes.keys() == {"group", "rebalances", "capture", "orders-0", "orders-1", "orders-2"}
    assert lanes["rebalances"] == ["member joined", "session ended"]
    assert lanes["capture"] == ["not seen"]
    assert lanes["orders-2"][-2:] == ["waiting for its assignment", "consuming"]
    assert lanes["orders-0"][-4:] == ["waiting for its assignment", "consuming", "told to rejoin", "joining"]
    assert names_by_thread(phases, "i")["orders-1"] == ["connection closed", "refused", "began the rebalance"]
    newest = max(phases["f"], key=lambda one: one["ts"])["ts"]
    now = [event["id"] for event in phases["f"] if event["ts"] == newest]
    threads = {event["tid"]: event["args"]["name"] for event in phases["M"] if event["name"] == "thread_name"}
    assert {threads[event["tid"]] for event in phases["s"] if event["id"] in now} == {"orders-0", "orders-1"}
    assert {threads[event["tid"]] for event in phases["f"] if event["id"] in now} == {"orders-2"}
    record = next(event for event in phases["X"] if event["name"] == "member joined")
    assert record["args"]["cost_member_seconds"] > 0
    assert record["dur"] == record["args"]["took_ms"] * 1000


@pytest.mark.parametrize("is_over", [False, True], ids=["still a member", "its session is over"])
def test_nobody_consumes_after_its_connection_closed_or_its_last_frame(is_over):
    group = history.Group("orders", ["closes", "falls silent"])
    closes, silent = group.members
    for member in group.members:
        group.event("member_served", history.NOW_S - 60, member)
    group.event("connection_closed", history.NOW_S - 44, closes)
    if is_over:
        group.event("session_over", history.NOW_S - 10, closes, silent_since=history.iso(history.NOW_S - 46))
        group.event("session_over", history.NOW_S - 10, silent, silent_since=history.iso(history.NOW_S - 40))
    phases = check_format(trace_of(filled(group.records), "orders", to_s=history.NOW_S))
    threads = {event["tid"]: event["args"]["name"] for event in phases["M"] if event["name"] == "thread_name"}
    drawn = {
        (threads[event["tid"]], event["name"]): tuple(
            round(at_us / 1e6 - history.NOW_S) for at_us in (event["ts"], event["ts"] + event["dur"])
        )
        for event in phases["X"]
        if event["dur"]
    }
    assert drawn == {
        ("closes", "consuming"): (-60, -44),
        ("falls silent", "consuming"): (-60, -40 if is_over else 0),
        **(
            {("closes", "silent"): (-44, -10), ("falls silent", "silent"): (-40, -10)}
            if is_over
            else {("closes", "connection closed"): (-44, 0)}
        ),
    }


def test_a_trace_of_a_stretch_of_time_has_nothing_outside_of_it():
    state = filled(history.orders())
    from_s, to_s = history.NOW_S - 290, history.NOW_S - 260
    phases = check_format(trace_of(state, "orders", from_s=from_s, to_s=to_s))
    assert all(
        from_s * 1e6 <= event["ts"] <= event["ts"] + event.get("dur", 0) <= to_s * 1e6
        for phase in "Xisf"
        for event in phases[phase]
    )
    assert names_by_thread(phases, "X")["rebalances"] == ["session ended"]


def test_the_page_hands_out_the_trace_of_a_group_and_of_one_rebalance():
    import requests

    state = filled(history.records())
    with served(state) as (address, _):
        group = f"{address}/groups/{state.groups['prod', 'orders'].id}"
        answer = requests.get(f"{group}/trace.json", timeout=10)
        assert answer.headers["Content-Disposition"] == 'attachment; filename="trace.json"'
        assert answer.json() == trace_of(state, "orders")
        html = requests.get(group, timeout=10).text
        rebalance = html.partition("/rebalances/")[2].partition('"')[0]
        assert f"/trace.json?rebalance={rebalance}" in requests.get(f"{group}/rebalances/{rebalance}", timeout=10).text
        one = requests.get(f"{group}/trace.json?rebalance={rebalance}", timeout=10).json()
        assert names_by_thread(check_format(one), "X")["rebalances"] == ["session ended"]
        assert requests.get(f"{group}/trace.json?rebalance=other", timeout=10).status_code == 404
        assert requests.get(f"{address}/groups/g0/trace.json", timeout=10).status_code == 404


# --- the command -----------------------------------------------------------------------------------------------------------------


def run(*words):
    return CliRunner().invoke(app, ["trace", *words])


@pytest.fixture
def recording(tmp_path):
    return str(history.write(tmp_path / "recorded.jsonl", history.records()))


def test_the_command_prints_the_same_of_a_file(recording):
    result = run("orders", "--file", recording)
    assert (result.exit_code, result.stderr) == (0, "")
    printed = check_format(json.loads(result.stdout))
    assert names_by_thread(printed, "X") == names_by_thread(check_format(trace_of(filled(history.records()), "orders")), "X")
    at = "2026-09-21T14:11:40"
    later = check_format(json.loads(run("orders", "--file", recording, "--since", at).stdout))
    assert names_by_thread(later, "X")["rebalances"] == []


def test_what_cannot_be_printed_is_said_in_a_sentence(recording, tmp_path):
    for words, said in (
        (("nobody", "--file", recording), "there is no event of a group nobody"),
        (("orders", "--file", recording, "--since", "yesterday"), "--since: yesterday is neither a duration such as 8h nor a time"),
        (("orders", "--file", str(tmp_path / "nothing")), "cannot be read: no such file"),
        (("orders",), "--config"),
    ):
        result = run(*words)
        assert (result.exit_code, result.stdout) == (2, "")
        assert said in " ".join(result.stderr.split())


def test_of_two_clusters_with_a_group_of_that_name_one_has_to_be_chosen(tmp_path):
    lines = [line for cluster in ("prod", "test") for line in history.quiet(1, cluster=cluster)]
    file = str(history.write(tmp_path / "recorded.jsonl", lines))
    refused = run("mail-0001", "--file", file)
    assert refused.exit_code == 2
    assert "choose with --cluster prod, or test" in " ".join(refused.stderr.split())
    chosen = run("mail-0001", "--file", file, "--cluster", "test")
    assert json.loads(chosen.stdout)["otherData"]["cluster"] == "test"


def test_the_command_needs_neither_spark_nor_a_server():
    code = "import sys; import streaming.commands.trace; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {"pyspark", "starlette", "uvicorn"} & set(loaded) == set()

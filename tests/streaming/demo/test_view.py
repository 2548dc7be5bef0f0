"""What the audience sees says what is so, and fits on the screen."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from coordinator_model.finding import Severity, Status
from streaming.demo import view
from streaming.demo.scenarios import HEALTHY_GROUP, TROUBLES
from streaming.demo.screen_state import Note, ScreenState
from streaming.demo.verdicts import Truth
from tests.streaming.demo.findings import FACT_US, observation
from tests.streaming.terminal.records import group


def printed(renderable, width=160):
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    console.print(renderable)
    return console.file.getvalue()


def snapshot(name, **changes):
    return group(name, clients=[f"{name}-worker-1"], cluster="demo") | changes


def meeting(trouble):
    """A finding that meets the trouble's expectation."""
    expected = trouble.expected
    return observation(
        rule=expected.rule,
        group=expected.group,
        blame=expected.blame,
        client_id=expected.culprits[0],
        member_id=None,
        summary=f"it was {', '.join(expected.culprits)}",
    )


def state_with(*observations, healthy=True):
    screen_state = ScreenState()
    for one in observations:
        screen_state.finding_read(*one)
    if healthy:
        screen_state.group_read(snapshot(HEALTHY_GROUP))
    return screen_state


def lines_of(screen_state, **about):
    return [
        view.standing(trouble, Truth(fact_us=FACT_US), screen_state.observations(), began=True, ended=True, **about)
        for trouble in TROUBLES
    ]


@pytest.mark.parametrize("width", [80, 160])
def test_the_summary_of_a_success_says_for_each_trouble_what_was_found_who_and_when(width):
    screen_state = state_with(*map(meeting, TROUBLES))
    screen_state.process_started("shipping-worker-1", 4711)
    text = printed(view.summary(view.outcome(lines_of(screen_state), screen_state, 93.0), width), width)
    for trouble in TROUBLES:
        row = next(line for line in text.splitlines() if line.startswith(trouble.name))
        assert trouble.expected.rule in row
        assert "✔ error" in row
        assert "10.5" in row
        assert trouble.expected.culprits[0] in row
        assert trouble.fact in text
        assert trouble.rule_waits in text
    assert "inventory-pod-2" in text
    assert "4711" in text
    assert "✔ 10 of 10 faults found and their culprits named" in text
    assert f"✔ no finding about the healthy group {HEALTHY_GROUP}" in text
    assert "1:33" in text
    assert all(len(line) <= width for line in text.splitlines())


def test_the_summary_of_a_failure_says_what_is_missing_and_what_is_too_much():
    wrong = meeting(TROUBLES[1])
    wrong.finding["client_id"] = "somebody-else"
    noise = observation(group=HEALTHY_GROUP, rule="R-06", name="rebalance storm")
    stray = observation(group="search", rule="R-01", name="join phase overdue")
    blind = observation(group="", rule="V-04", name="capture incomplete")
    screen_state = state_with(meeting(TROUBLES[0]), wrong, noise, stray, blind)
    text = printed(view.summary(view.outcome(lines_of(screen_state), screen_state, 90.0), 160))
    assert "✘ 1 of 10 faults found" in text
    assert "names somebody-else" in text
    assert "no finding of R-02 about group search" in text
    assert f"✘ 1 finding about the healthy group {HEALTHY_GROUP}: R-06 rebalance storm" in text
    assert "also found in the groups with a fault, as its effects: R-01 join phase overdue (search)\n" in text
    assert "also found, and explained by no fault: V-04 capture incomplete (no group)\n" in text


def test_a_healthy_group_that_was_never_seen_is_no_success():
    screen_state = state_with(healthy=False)
    text = printed(view.summary(view.outcome(lines_of(screen_state), screen_state, 90.0), 160))
    assert f"✘ the monitor never saw the healthy group {HEALTHY_GROUP}" in text


@pytest.mark.parametrize(("width", "height"), [(160, 48), (100, 40), (80, 50)])
def test_the_live_view_fits_and_shows_groups_findings_and_notes(width, height):
    screen_state = state_with(*(observation(opened_at_us=FACT_US + number) for number in range(30)))
    screen_state.group_read(snapshot("search", state="CompletingRebalance", waits_for=["search-worker-1-0"]))
    screen_state.group_read(snapshot("billing", learning="first seen in mid-life", generation=None, state_since=None))
    for number in range(20):
        screen_state.note(f"note {number}")
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=True, color_system=None)
    screen = view.DemoScreen(
        console, screen_state, lambda: lines_of(screen_state), page="http://127.0.0.1:8080/", began_us=FACT_US, duration_s=90
    )
    drawn = [
        "".join(segment.text for segment in line).rstrip()
        for line in console.render_lines(screen, console.options.update(height=None))
    ]
    text = "\n".join(drawn)
    assert len(drawn) <= height
    assert "note 19" in text
    assert "Findings (30 open of 30)" in text
    assert "keeps using generation 1" in " ".join(text.split())
    rows = {line.split()[0]: line for line in drawn if line.startswith("  ") and line.split()}
    assert "Completing" in rows["search"]
    assert "search-worker-1" in rows["search"]
    assert "not known yet: first" in rows["billing"]


def test_a_trouble_stands_as_it_goes_on():
    trouble = TROUBLES[0]

    def standing(truth, *observations, began=True, ended=False):
        return printed(view.troubles_table([view.standing(trouble, truth, observations, began=began, ended=ended)]))

    assert "pending" in standing(Truth(), began=False)
    assert "starting" in standing(Truth())
    assert "active" in standing(Truth(fact_us=FACT_US))
    assert "✔ error" in standing(Truth(fact_us=FACT_US), meeting(trouble))
    assert "✘ not found" in standing(Truth(fact_us=FACT_US), ended=True)
    assert "✘ not injected" in standing(Truth(failure="no process"))


def test_the_log_says_each_finding_once_and_its_changes_of_severity():
    console = Console(file=io.StringIO(), width=200)
    log = view.Log(console)
    screen_state = ScreenState(on_note=log.note, on_observation=log.observation)
    for changes in (
        {"severity": Severity.WARNING},
        {"severity": Severity.WARNING, "status": Status.UPDATE, "count": 2},
        {"severity": Severity.ERROR, "status": Status.UPDATE},
        {"status": Status.RESOLVED, "resolved_at_us": FACT_US},
        {"status": Status.RESOLVED, "resolved_at_us": FACT_US},
    ):
        screen_state.finding_read(*observation(**changes))
    log.note(Note(FACT_US, "SIGSTOP to it"))
    words = [line.split()[1] for line in console.file.getvalue().splitlines()]
    assert words == ["warning", "error", "resolved", "demo"]


def test_the_log_says_that_a_finding_is_over_that_was_over_before_it_was_published():
    console = Console(file=io.StringIO(), width=200)
    log = view.Log(console)
    screen_state = ScreenState(on_note=log.note, on_observation=log.observation)
    screen_state.finding_read(*observation(severity=Severity.INFO, status=Status.RESOLVED, resolved_at_us=FACT_US))
    (line,) = console.file.getvalue().splitlines()
    assert line.split()[1] == "info"
    assert line.endswith(" It is over.")

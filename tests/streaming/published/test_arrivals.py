"""Clients that have not arrived, wherever a group is shown: those that have are nowhere."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from streaming.metrics.metrics_state import GROUPS, MetricsState
from streaming.replay.report import ReplayReport
from streaming.report.contents import report_of
from streaming.report.markdown import markdown_of
from streaming.report.page import page_of
from streaming.terminal.tables import arrivals_table
from tests.coordinator_model.conversation import Conversation
from tests.streaming.metrics.transcripts import TOPIC, encoded, samples, select
from tests.streaming.web.conftest import filled, served
from tests.streaming.web.history import orders
from tests.streaming.web.parsed import get

WORDS = "looks for its coordinator since 22:13:20; its FindCoordinator was answered GROUP_AUTHORIZATION_FAILED once by 1"


@pytest.fixture
def refused():
    """The only client of a group may not look for its coordinator."""
    talk = Conversation()
    talk.find_coordinator(talk.client("edge"), error=30)
    (view,) = talk.model.changed_groups()
    return view


@pytest.fixture
def state(refused):
    """The same among what the page knows."""
    return filled([*orders(), refused.as_json()])


def printed(renderable) -> str:
    file = io.StringIO()
    Console(file=file, width=200).print(renderable)
    return file.getvalue()


def test_the_terminal_shows_where_a_client_stands(refused):
    text = printed(arrivals_table(refused.as_json()))
    assert "edge" in text
    assert WORDS in text


def test_a_replay_shows_where_a_client_stands_first(refused):
    report, file = ReplayReport(), io.StringIO()
    report.state(refused)
    report.print(Console(file=file, width=200))
    assert file.getvalue().splitlines()[2] == f"  edge at {refused.as_json()['arrivals'][0]['client_address']} {WORDS}"


def test_the_page_shows_where_a_client_stands(state, refused):
    with served(state) as (address, _):
        page = get(address, f"/groups/{state.groups[refused.cluster, refused.group].id}")
        other = get(address, f"/groups/{next(past.id for key, past in state.groups.items() if key[1] == 'orders')}")
    assert WORDS in page.text
    assert WORDS not in other.text


def test_a_report_shows_where_a_client_stands(state, refused):
    report = report_of(state, wanted=lambda name: name == refused.group, since_s=None)
    assert report.groups[0].as_json()["arrivals"] == refused.as_json()["arrivals"]
    assert WORDS in markdown_of(report).replace("\\_", "_")
    assert WORDS in page_of(report)


def test_metrics_count_clients_by_stage(refused):
    metrics_state = MetricsState(topic=TOPIC)
    metrics_state.apply(GROUPS, {refused.key: encoded(refused.as_json())})
    metrics_state.read_to_the_end()
    by_stage = {
        dict(labels)["stage"]: count for labels, count in select(samples(metrics_state), "rebalance_group_arriving_clients").items()
    }
    assert by_stage == {"looks": 1, "reaches": 0, "joins": 0, "holds": 0, "begins": 0}

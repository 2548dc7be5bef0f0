"""What is written about metrics, and the alerts on them, against the metrics that there are."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from coordinator_model.rules import CATALOGUE
from streaming.config.metrics import DEFAULT_LISTEN
from streaming.metrics.table import METRICS, NOTIFY_METRICS, TAP_METRICS, as_markdown
from tests.needs import needs
from tests.streaming.metrics.documented import DASHBOARDS, panels, queries

ROOT = Path(__file__).parents[3]
DOCUMENT = ROOT / "docs" / "metrics.md"
PROMETHEUS = ROOT / "deploy" / "prometheus"
EVERY = (*METRICS, *TAP_METRICS, *NOTIFY_METRICS)
SERIES = {
    name
    for metric in EVERY
    for name in (
        [f"{metric.name}{suffix}" for suffix in ("_bucket", "_count", "_sum")]
        if metric.kind in {"histogram", "summary"}
        else [metric.name]
    )
}

needs_promtool = needs("promtool")


def promtool(*arguments, folder=PROMETHEUS):
    ended = subprocess.run(["promtool", *arguments], cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    return ended.returncode, ended.stdout + ended.stderr


def test_the_table_is_the_one_that_the_code_makes():
    for metrics in (METRICS, TAP_METRICS, NOTIFY_METRICS):
        assert as_markdown(metrics) in DOCUMENT.read_text(), "put in what 'python -m streaming.metrics.table' prints"


@pytest.mark.parametrize("path", [DOCUMENT, *DASHBOARDS, *sorted(PROMETHEUS.iterdir())], ids=lambda path: path.name)
def test_no_metric_is_named_that_is_not_served(path):
    named = set(re.findall(r"\brebalance_[a-z_]+", path.read_text()))
    assert named
    assert named <= SERIES | {metric.name for metric in EVERY}


def test_the_port_in_the_documents_is_the_default():
    assert DEFAULT_LISTEN in DOCUMENT.read_text()
    assert DEFAULT_LISTEN in (ROOT / "deploy" / "rebalance-monitor.toml").read_text()


@pytest.mark.parametrize("file", DASHBOARDS, ids=lambda path: path.name)
def test_the_panels_of_a_dashboard_do_not_lie_on_one_another_and_name_their_data_source(file):
    dashboard = json.loads(file.read_text())
    places = [panel["gridPos"] for panel in dashboard["panels"]]
    squares = [(x, y) for at in places for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])]
    assert len(squares) == len(set(squares))
    assert max(x for x, _ in squares) < 24
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(places)
    sources = [target["datasource"]["uid"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    assert set(sources) == {"${datasource}"}
    variables = {variable["name"] for variable in dashboard["templating"]["list"]}
    assert set(re.findall(r"\$\{?([a-z]+)\b", file.read_text())) - {"__rate_interval", "__data"} <= variables


def test_the_tables_of_findings_name_every_rule():
    tables = [
        panel
        for panel in json.loads((ROOT / "deploy" / "grafana" / "rebalance-monitor.json").read_text())["panels"]
        if panel["type"] == "table"
    ]
    for table in tables:
        (named,) = [
            override["properties"][0]["value"][0]["options"]
            for override in table["fieldConfig"]["overrides"]
            if override["matcher"]["options"] == "rule"
        ]
        assert named == {rule.id: {"text": f"{rule.id} {rule.name}"} for rule in CATALOGUE.values()}, (
            "a new rule: put it into both tables"
        )
    assert len(tables) == 2


@needs_promtool
@pytest.mark.parametrize(("source", "least"), [(queries, 12), (panels, 20)])
def test_queries_that_are_handed_to_people_are_lawful(tmp_path, source, least):
    assert len(source()) >= least
    rules = "".join(f"  - record: r{number}\n    expr: {json.dumps(query)}\n" for number, query in enumerate(source()))
    (tmp_path / "queries.yml").write_text(f"groups:\n- name: queries\n  rules:\n{rules}")
    status, said = promtool("check", "rules", "queries.yml", folder=tmp_path)
    assert status == 0, said


@needs_promtool
def test_the_alert_rules_are_lawful():
    status, said = promtool("check", "rules", "rebalance-monitor.rules.yml")
    assert (status, "SUCCESS" in said) == (0, True), said


@needs_promtool
def test_each_alert_fires_when_it_should_and_only_then():
    status, said = promtool("test", "rules", "rebalance-monitor.test.yml")
    assert status == 0, said
    alerts = set(re.findall(r"alert: (\w+)", (PROMETHEUS / "rebalance-monitor.rules.yml").read_text()))
    tried = set(re.findall(r'alertname="(\w+)"', (PROMETHEUS / "rebalance-monitor.test.yml").read_text()))
    assert tried == alerts

"""The queries of the document and of the dashboards."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
DOCUMENT = ROOT / "docs" / "metrics.md"
DASHBOARDS = sorted((ROOT / "deploy" / "grafana").iterdir())


def queries():
    """Every PromQL expression of the document's tables of questions."""
    _, *rest = DOCUMENT.read_text().split("| question | query |")
    rows = [row for table in rest for row in table.partition("\n\n")[0].splitlines()]
    return [found.replace("\\|", "|") for row in rows for found in re.findall(r"`([^`]+)`", row)]


def panels():
    """Every PromQL expression of the dashboards, with something in place of Grafana's variables."""
    shown = [panel for file in DASHBOARDS for panel in json.loads(file.read_text())["panels"]]
    found = [target["expr"] for panel in shown for target in panel.get("targets", ())]
    return [query.replace("$__rate_interval", "5m").replace("$cluster", ".*").replace("$group", ".*") for query in found]

"""The documents made from the code are what the code makes, and complete."""

from __future__ import annotations

import re
from functools import partial
from importlib import import_module
from pathlib import Path

import pytest
from typer.testing import CliRunner

from coordinator_model import rules
from coordinator_model.events import State
from coordinator_model.groups.classic.state import Observation
from coordinator_model.rules import CATALOGUE, Rule
from coordinator_model.rules.document import (
    CLASSIC,
    EPOCHS,
    FAMILIES,
    PAGES,
    families,
    family,
    family_document,
    protocol_document,
    rules_document,
    states_section,
)

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("rules.md", rules_document),
        *((f"rules/{letter}.md", partial(family_document, letter)) for letter in families()),
        ("protocol.md", partial(protocol_document, CLASSIC)),
        ("protocol-epochs.md", partial(protocol_document, EPOCHS)),
    ],
)
def test_a_document_is_what_the_code_makes_of_it(name: str, make) -> None:
    assert (DOCS / name).read_text(encoding="utf-8") == make(), "run 'python -m streaming.commands.docs'"


def test_every_rule_stands_in_one_module_and_is_in_the_catalogue() -> None:
    names = [path.stem for path in Path(rules.__path__[0]).glob("[a-z]*.py")]
    modules = [import_module(f"{rules.__name__}.{name}") for name in names]
    found = [one.id for module in modules for one in vars(module).values() if isinstance(one, Rule)]
    assert sorted(found) == sorted(CATALOGUE)


def test_every_family_has_a_title_and_every_rule_a_family() -> None:
    assert set(families()) <= set(FAMILIES)
    assert sorted(rule.id for letter in families() for rule in family(letter)) == sorted(CATALOGUE)


@pytest.mark.parametrize("rule", CATALOGUE.values(), ids=lambda rule: rule.id)
def test_every_rule_tells_an_operator_what_he_needs(rule) -> None:
    for text in (rule.name, rule.meaning, rule.condition, rule.expected, rule.action, rule.false_alarms):
        assert text.strip() == text != ""
    for text in (rule.meaning, rule.condition, rule.expected, rule.action, rule.false_alarms):
        assert text.endswith((".", "?"))
        assert "  " not in text
    assert rule.id not in rule.suppressed_by
    assert set(rule.suppressed_by) <= set(CATALOGUE)


def test_findings_md_names_every_family() -> None:
    text = (DOCS / "findings.md").read_text(encoding="utf-8").partition("Families: ")[2]
    assert [letter for letter in families() if not re.search(rf"\b{letter}\b", text)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.file)
def test_the_page_of_a_protocol_has_every_row_and_explains_every_word(page) -> None:
    text = protocol_document(page)
    assert sorted(re.findall(r"^\| ([A-Z]\d+) ", text, re.MULTILINE)) == sorted(row.name for row in page.table.rows)
    about = page.table.columns.index("sender")
    used = {word for row in page.table.rows for cell in row.cells[about:-2] for word in cell.split()}
    assert used - set(page.words) <= ({"same", "other", "none"} if page is CLASSIC else set())


def test_the_texts_of_P_07_refer_to_the_pages_of_both_tables() -> None:
    assert all(f"docs/{page.file}" in CATALOGUE["P-07"].condition for page in PAGES)
    assert all((DOCS / page.file).exists() for page in PAGES)


def test_the_diagram_has_every_state_and_the_table_every_transition() -> None:
    text = states_section()
    diagram = text.partition("```mermaid")[2].partition("```")[0]
    assert all(state.value in diagram for state in State)
    rows = [line for line in text.splitlines() if line.startswith("| **")]
    assert len(rows) == len(State)
    assert all(row.count("|") == len(Observation) + 2 for row in rows)


def invoke(*arguments: str):
    import typer

    from streaming.commands.docs import main

    app = typer.Typer()
    app.command()(main)
    return CliRunner().invoke(app, arguments)


def test_the_command_writes_what_is_missing_and_tells_what_differs(tmp_path: Path) -> None:
    folder = ("--folder", str(tmp_path))
    assert invoke(*folder, "--check").exit_code == 1
    assert "wrote rules.md" in invoke(*folder).output
    assert invoke(*folder, "--check").exit_code == 0
    (tmp_path / "rules.md").write_text("by hand")
    differs = invoke(*folder, "--check")
    assert differs.exit_code == 1
    assert "rules.md" in differs.output
    assert (tmp_path / "rules.md").read_text() == "by hand"
    assert invoke("--folder", str(tmp_path / "none")).exit_code == 2


def test_the_command_runs_as_a_module(monkeypatch: pytest.MonkeyPatch) -> None:
    import runpy
    import sys

    monkeypatch.setattr(sys, "argv", ["docs_cli", "--help"])
    monkeypatch.delitem(sys.modules, "streaming.commands.docs", raising=False)
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("streaming.commands.docs", run_name="__main__", alter_sys=True)
    assert ended.value.code == 0

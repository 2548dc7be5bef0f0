"""The documents: each link leads somewhere, and each command, file and function that they name exists."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click import UsageError
from typer.main import get_command

from coordinator_model.rules import CATALOGUE, Rule
from streaming.cli import _COMMANDS, app
from streaming.notify.notification import Links

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted(path for folder in (".", "docs", "docs/rules", "checkpoints") for path in (ROOT / folder).glob("*.md"))
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]+))?\)")
PATH = re.compile(r"`([\w./-]+(?:\.py|/))`")
FUNCTION = re.compile(r"`(\w+)\(\)`")
COMMAND = re.compile(r"(?:^|`|\| |    )(?:[^\s=]*/)?rebalance-monitor (?:\[|([a-z]+))", re.MULTILINE)


def anchors(document: Path) -> set[str]:
    """Those that a heading gets where the documents are read."""
    headings = re.findall(r"^#+ (.*)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.replace("`", "")).lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_each_link_of_a_document_leads_somewhere(document):
    broken = []
    for file, anchor in LINK.findall(document.read_text(encoding="utf-8")):
        target = (document.parent / file).resolve() if file else document
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(f"{file}#{anchor}")
    assert broken == []


@pytest.mark.parametrize("rule", CATALOGUE.values(), ids=lambda rule: rule.id)
def test_the_link_of_an_alert_leads_to_its_rule(rule: Rule) -> None:
    links = Links("docs/rules/{family}.md#{anchor}")
    file, _, anchor = (links.to_rule({"rule": rule.id, "name": rule.name, "family": rule.family}) or "").partition("#")
    assert anchor in anchors(ROOT / file)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_each_command_that_a_document_names_exists(document):
    named = {name for name in COMMAND.findall(document.read_text(encoding="utf-8")) if name}
    assert named - set(_COMMANDS) == set()


TO_TYPE = [f"docs/{name}.md" for name in ("deploying", "tap", "rights", "running", "alerting", "metrics", "page")] + ["README.md"]
CALL = re.compile(r"(?:^|[\s'])(?:[^\s=']*/)?rebalance-monitor ([a-z]+)((?: [^\n#|`>&]*)?)", re.MULTILINE)


def calls_of(document: Path) -> list[tuple[str, list[str]]]:
    """Command and words of each call in a block of code, lines that go on joined."""
    text = document.read_text(encoding="utf-8")
    blocks = re.findall(r"^ *```sh\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL) + re.findall(
        r"((?:^ {4,}\S.*\n)+)", text, re.MULTILINE
    )
    joined = "\n".join(blocks).replace("\\\n", " ")
    return [(name, shlex.split(words)) for name, words in CALL.findall(joined) if name in _COMMANDS]


@pytest.mark.parametrize("name", TO_TYPE)
def test_each_command_of_a_document_is_taken_as_it_stands_there(name):
    """Its options exist, and none that it needs is left out."""
    calls, refused = calls_of(ROOT / name), []
    for command, words in calls:
        found = get_command(app).get_command(None, command)
        try:
            found.make_context(command, list(words))
        except UsageError as error:
            refused.append(f"{command} {' '.join(words)}: {error.format_message()}")
    assert refused == []
    assert calls or name in {"docs/rights.md", "docs/metrics.md"}


def test_each_command_is_in_a_document():
    text = "\n".join(document.read_text(encoding="utf-8") for document in DOCUMENTS)
    assert {name for name in _COMMANDS if f"rebalance-monitor {name}" not in text} == set()


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md"])
def test_each_file_and_function_that_shows_the_way_exists(document):
    """A file is named from any folder on: ``handlers/heartbeat.py``."""
    text = (ROOT / document).read_text(encoding="utf-8")
    files = [
        path for folder in ("coordinator_model", "streaming", "tests", "deploy", "docs") for path in (ROOT / folder).rglob("*.py")
    ]
    there = {f"/{path.relative_to(ROOT)}" for path in files} | {f"/{path.parent.relative_to(ROOT)}/" for path in files}
    assert [path for path in PATH.findall(text) if not any(one.endswith(f"/{path}") for one in there)] == []
    code = "\n".join(path.read_text(encoding="utf-8") for path in files)
    assert [name for name in FUNCTION.findall(text) if f"def {name}(" not in code] == []

"""The documents: each link leads somewhere, and each command that they name exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from streaming.cli import _COMMANDS

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted(path for folder in (".", "docs", "checkpoints") for path in (ROOT / folder).glob("*.md"))
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]+))?\)")
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


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_each_command_that_a_document_names_exists(document):
    named = {name for name in COMMAND.findall(document.read_text(encoding="utf-8")) if name}
    assert named - set(_COMMANDS) == set()


def test_each_command_is_in_a_document():
    text = "\n".join(document.read_text(encoding="utf-8") for document in DOCUMENTS)
    assert {name for name in _COMMANDS if f"rebalance-monitor {name}" not in text} == set()

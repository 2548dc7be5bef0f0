"""The documents of the rights are what the table makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.kafka.required_rights import rights_document, rights_script

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize(("name", "make"), [("rights.md", rights_document), ("kafka-acls.sh", rights_script)])
def test_a_document_is_what_the_table_makes_of_it(name, make):
    assert (DOCS / name).read_text(encoding="utf-8") == make(), "run 'python -m streaming.commands.docs'"

"""One thing is said to be one: what is counted goes through the one function that chooses between singular and plural."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from streaming.mirror.broker_log.reader import _of_one

ROOT = Path(__file__).parents[2]
COUNTED = re.compile(
    r" (?:(?:open|group|earlier|more|other|request|TCP) )?(?:records|connections|frames|groups|findings|packets|lines|events|jars|spans|members)\b(?!/)"
)
SEVERAL = {"len(notices)", "len(ones)", "len(report.groups)", "count"}
"""Numbers that are said only if there are several."""


def by_hand(path: Path) -> Iterator[str]:
    """Yield the counts whose noun is written in the plural, whatever their number."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        for number, words in zip(getattr(node, "values", ()), getattr(node, "values", ())[1:], strict=False):
            if isinstance(number, ast.FormattedValue) and isinstance(words, ast.Constant) and COUNTED.match(str(words.value)):
                yield ast.unparse(number.value)


def test_no_count_of_what_is_published_is_said_in_the_plural_by_hand() -> None:
    found = {str(path.relative_to(ROOT)): set(by_hand(path)) - SEVERAL for path in sorted((ROOT / "streaming").rglob("*.py"))}
    assert {path: counts for path, counts in found.items() if counts} == {}


@pytest.mark.parametrize(
    ("several", "one"),
    [
        ("have an impossible duration", "has an impossible duration"),
        ("name no connection", "names no connection"),
        ("are no request line, though they name an API", "is no request line, though it names an API"),
        ("are cut or interleaved with others", "is cut or interleaved with others"),
        ("contradict themselves", "contradicts itself"),
    ],
)
def test_why_a_line_of_a_log_cannot_be_read_has_words_for_one(several: str, one: str) -> None:
    assert _of_one(several) == one

"""The first page of Data Docs, and the style of the others: readable without the internet.

A script from the internet fills Great Expectations' own index; without the script the page is empty and the results are
unreachable. The other pages only lack their style, which Great Expectations lets one add to.
"""

from __future__ import annotations

import html
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Iterable

PLUGINS: Final = Path(__file__).with_name("data_docs")
"""What Great Expectations calls a plugins directory; it takes our style sheet from there."""

_STYLE: Final = PLUGINS / "custom_data_docs" / "styles" / "data_docs_custom_styles.css"


class Result(NamedTuple):
    """A result that has a page."""

    at: str
    batch: str
    failed: tuple[str, ...]  #: descriptions of the expectations that did not hold
    page: str  #: path below the folder


def write_index(folder: Path, suite: str, results: Iterable[Result]) -> None:
    """Write ``index.html``, the newest result first."""
    rows = "".join(
        f'<tr><td><a href="{quote(each.page)}">{html.escape(each.at)}</a></td><td>{html.escape(each.batch)}</td>'
        f"<td>{_verdict(each)}</td></tr>\n"
        for each in sorted(results, reverse=True)
    )
    page = folder / "index.html"
    fresh = page.with_suffix(".new")
    fresh.write_text(
        "<!DOCTYPE html>\n"
        '<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Quality of the mirror topic</title>\n<style>{_STYLE.read_text()}</style></head>\n"
        '<body><div class="container-fluid"><h1>Quality of the mirror topic</h1>\n'
        f'<p>Suite <a href="expectations/{quote(suite)}.html">{html.escape(suite)}</a>. '
        "The newest results and failures; every result is in the quality topic.</p>\n"
        f"<table><thead><tr><th>checked at</th><th>batch</th><th>result</th></tr></thead>\n<tbody>\n{rows}</tbody></table>\n"
        "</div></body></html>\n"
    )
    fresh.replace(page)


def _verdict(result: Result) -> str:
    if not result.failed:
        return '<span class="text-success">passed</span>'
    return '<span class="text-danger">failed</span>: ' + "<br>".join(map(html.escape, result.failed))

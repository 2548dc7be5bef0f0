"""``python -m streaming.commands.docs``: writes the documents that are generated from the code, or checks that they are up to date.

An installed wheel has no ``docs`` folder beside the code; there, ``--folder`` is required.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer

from coordinator_model.rules.document import (
    PAGES,
    families,
    family_document,
    known_defects_document,
    protocol_document,
    rules_document,
)
from streaming.kafka.required_rights import rights_document, rights_script

DOCS: Final = Path(__file__).parents[2] / "docs"
DOCUMENTS: Final[dict[str, Callable[[], str]]] = {
    "rules.md": rules_document,
    **{f"rules/{letter}.md": partial(family_document, letter) for letter in families()},
    "known-defects.md": known_defects_document,
    **{page.file: partial(protocol_document, page) for page in PAGES},
    "rights.md": rights_document,
    "kafka-acls.sh": rights_script,
}


def main(
    *,
    folder: Annotated[Path, typer.Option(help="Folder of the documents.")] = DOCS,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; exit with 1 if a document is out of date.")] = False,
) -> None:
    """Write the pages of docs/ that are generated from the code: rules, known defects, protocols, and rights.

    python -m streaming.commands.docs

    python -m streaming.commands.docs --check
    """
    if not folder.is_dir():
        typer.echo(f"error: there is no folder {folder}; set --folder to the folder of the documents.", err=True)
        raise typer.Exit(2)
    drifted = drift(folder)
    for name in drifted:
        if not check:
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(DOCUMENTS[name](), encoding="utf-8")
        typer.echo(f"{name} is out of date; run 'python -m streaming.commands.docs'" if check else f"wrote {name}", err=check)
    if check and drifted:
        raise typer.Exit(1)


def drift(folder: Path) -> list[str]:
    """Return the documents in ``folder`` that are missing or out of date."""
    return [
        name
        for name, make in DOCUMENTS.items()
        if not (folder / name).exists() or (folder / name).read_text(encoding="utf-8") != make()
    ]


if __name__ == "__main__":
    typer.run(main)

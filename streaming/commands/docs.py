"""``python -m streaming.commands.docs``: write the documents that are made from the code, or tell whether they are what it makes.

The trap: run from an installed wheel there is no ``docs`` beside the code; then the folder has to be named.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from coordinator_model.rules.document import rules_document, states_document
from streaming.kafka.required_rights import rights_document, rights_script

DOCS: Final = Path(__file__).parents[2] / "docs"
DOCUMENTS: Final = {
    "rules.md": rules_document,
    "group-states.md": states_document,
    "rights.md": rights_document,
    "kafka-acls.sh": rights_script,
}


def main(
    *,
    folder: Annotated[Path, typer.Option(help="Where the documents are.", show_default=False)] = DOCS,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; exit 1 if a document is not what the code makes.")] = False,
) -> None:
    """Write docs/rules.md, docs/group-states.md, docs/rights.md and docs/kafka-acls.sh from the code.

    python -m streaming.commands.docs

    python -m streaming.commands.docs --check
    """
    if not folder.is_dir():
        typer.echo(f"error: there is no folder {folder}; name the one with the documents by --folder.", err=True)
        raise typer.Exit(2)
    drifted = drift(folder)
    for name in drifted:
        if not check:
            (folder / name).write_text(DOCUMENTS[name](), encoding="utf-8")
        typer.echo(
            f"{name} is not what the code makes of it; run 'python -m streaming.commands.docs'" if check else f"wrote {name}",
            err=check,
        )
    if check and drifted:
        raise typer.Exit(1)


def drift(folder: Path) -> list[str]:
    """The documents in ``folder`` that are missing or differ from what the code makes."""
    return [
        name
        for name, make in DOCUMENTS.items()
        if not (folder / name).exists() or (folder / name).read_text(encoding="utf-8") != make()
    ]


if __name__ == "__main__":
    typer.run(main)

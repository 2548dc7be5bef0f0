#!/usr/bin/env python3
"""``rebalance-monitor``, and what ``spark-submit`` is given, with the same arguments (``docs/deploying.md``).

The trap: mosaicml-streaming has a package named ``streaming`` too. Two wheels in one environment overwrite each other in silence, and of
two environments on one path the first counts. So this module stands outside, and looks which one it is before anything is imported.
"""

from __future__ import annotations

import sys
from importlib.metadata import packages_distributions, version
from importlib.util import find_spec
from pathlib import Path
from typing import Final

_OURS: Final = "rebalance-monitor"
_REMEDY: Final = "install rebalance-monitor in an environment of its own, see docs/deploying.md"


def hidden_by() -> str | None:
    """Which other package would be imported as ``streaming``, in a sentence; None if it is the monitor's."""
    found = find_spec("streaming")
    if found is not None and found.origin is not None and _OURS in Path(found.origin).read_text(encoding="utf-8", errors="replace"):
        return None
    others = [f"{name} {version(name)}" for name in packages_distributions().get("streaming", ()) if name != _OURS]
    where = "the package streaming is incomplete" if found is None or found.origin is None else f"it is {found.origin}"
    return f"another package named streaming ({', '.join(others) or 'of unknown origin'}) hides this one: {where}; {_REMEDY}"


def main() -> None:
    """Run the command line, if it is there."""
    if (trouble := hidden_by()) is not None:
        print(f"error: {trouble}", file=sys.stderr)
        sys.exit(2)
    from streaming.cli import main as command_line  # noqa: PLC0415 - not before it is known to be ours

    command_line()


if __name__ == "__main__":
    main()

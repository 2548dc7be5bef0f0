"""Libraries that Great Expectations imports and nearly never uses: altair and scipy, for one expectation that compares distributions.

Together they are 77 MiB and a third of the start. ``importlib.util.LazyLoader`` is of no use here, for the import statement itself asks the
module for an attribute and so loads it.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final

SELDOM_USED: Final = ("altair", "scipy", "scipy.stats")


class _LazyModule(ModuleType):
    """Stands in for a library until something of it is used."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__spec__ = ModuleSpec(name, None)  # by which other libraries see whether it is there

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        for each in SELDOM_USED:  # what is loaded now may import the others
            if isinstance(sys.modules.get(each), _LazyModule):
                del sys.modules[each]
        return getattr(import_module(self.__name__), name)


def install_lazy_imports() -> None:
    """Have the seldom used libraries imported when something of them is used; to be called before anything imports them.

    Great Expectations also imports pyspark where that is installed: 16 MiB that it never uses here.
    """
    sys.modules["pyspark"] = None  # type: ignore[assignment]
    for name in SELDOM_USED:
        sys.modules[name] = _LazyModule(name)
        package, _, module = name.rpartition(".")
        if package:
            setattr(sys.modules[package], module, sys.modules[name])

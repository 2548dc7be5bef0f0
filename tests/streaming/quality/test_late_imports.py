"""Great Expectations without the libraries that it nearly never uses, and with them when it does."""

from __future__ import annotations

import subprocess
import sys

START = """
import sys
from streaming.quality.late_imports import import_when_used
import_when_used()
import great_expectations as gx
from great_expectations.expectations.core import expect_column_kl_divergence_to_be_less_than as distributions
def loaded():
    return [name for name in ("altair.vegalite", "scipy.stats._stats_py") if name in sys.modules]
"""


def printed(program: str) -> list[str]:
    done = subprocess.run([sys.executable, "-c", START + program], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_it_starts_without_them() -> None:
    assert printed("print(loaded())") == ["[]"]


def test_what_is_used_is_there() -> None:
    program = "print(distributions.stats.entropy([1, 1]).round(3), distributions.alt.Chart.__name__, loaded())"
    assert printed(program) == ["0.693 Chart ['altair.vegalite', 'scipy.stats._stats_py']"]

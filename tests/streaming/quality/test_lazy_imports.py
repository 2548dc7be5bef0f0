"""Great Expectations without the libraries that it nearly never uses, and with them when it does."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
from streaming.quality.lazy_imports import install_lazy_imports
install_lazy_imports()
import great_expectations as gx
from great_expectations.expectations.core import expect_column_kl_divergence_to_be_less_than as distributions
def loaded():
    return [name for name in ("altair.vegalite", "scipy.stats._stats_py") if name in sys.modules]
print(loaded())
print(distributions.stats.entropy([1, 1]).round(3), distributions.alt.Chart.__name__)
print(loaded())
"""


def test_it_starts_without_them_and_what_is_used_is_there() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "0.693 Chart", "['altair.vegalite', 'scipy.stats._stats_py']"]

"""What some tests need beside Python and Java: they are skipped without it, by name, and a run says at its end how to get it."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pytest

PACKAGES: Final = {
    "amtool": "prometheus-alertmanager",
    "chromium": "chromium",
    "dumpcap": "wireshark-common",
    "openssl": "openssl",
    "javac": "default-jdk-headless",
    "prometheus": "prometheus",
    "prometheus-alertmanager": "prometheus-alertmanager",
    "promtool": "prometheus",
}
"""Debian's package that has a program. ``.ci/run`` installs them."""

_MISSING: Final = re.compile(r"(\S+) is missing: install the Debian package (\S+)")


def reason(program: str) -> str:
    return f"{program} is missing: install the Debian package {PACKAGES[program]}"


def needs(program: str) -> pytest.MarkDecorator:
    """Mark tests that call a program."""
    return pytest.mark.skipif(shutil.which(program) is None, reason=reason(program))


needs_proc = pytest.mark.skipif(not Path("/proc/self").exists(), reason="this system has no /proc")


def path_of(program: str) -> str:
    """Where it is; without it the test that asks is skipped."""
    found = shutil.which(program)
    if found is None:
        pytest.skip(reason(program))
    return found


def closing_line(reasons: Iterable[str]) -> str | None:
    """What was skipped and how to get it, in one line; None when nothing was."""
    packages: Counter[str] = Counter()
    others: Counter[str] = Counter()
    for text in reasons:
        if found := _MISSING.search(text):
            packages[found[2]] += 1
        else:
            others[text.removeprefix("Skipped: ")] += 1
    parts = [f"{count} ({text})" for text, count in others.most_common()]
    if packages:
        parts.insert(0, f"{packages.total()} want for programs: sudo apt-get install {' '.join(sorted(packages))}")
    return f"{packages.total() + others.total()} tests were skipped: {'; '.join(parts)}" if parts else None

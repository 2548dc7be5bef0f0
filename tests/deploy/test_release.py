"""What a wheel and an sdist of this tree hold. ``make release-check`` installs them and uses them."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# What is no Python and yet needed where the package is installed.
NEEDED = {
    "streaming/quality/suite.json",
    "streaming/notify/templates/slack.json.j2",
    "streaming/web/static/page.css",
}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-t", "sdist", "-d", str(folder)],
        cwd=ROOT, check=True, capture_output=True,
    )  # fmt: skip
    return folder


def in_tree(*folders: str) -> set[str]:
    return {
        str(path.relative_to(ROOT))
        for folder in folders
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_a_wheel_holds_both_packages_whole_and_nothing_of_the_tests(built):
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        names = set(wheel.namelist())
    code = {name for name in names if not name.partition("/")[0].endswith((".dist-info", ".data"))}
    assert code == in_tree("coordinator_model", "streaming") | {"rebalance_monitor.py"}
    assert code >= NEEDED
    assert {name.rpartition("share/rebalance-monitor/")[2].partition("/")[0] for name in names if "/share/" in name} == {
        "alertmanager", "grafana", "ivy.xml", "prometheus", "rebalance-monitor.toml", "rebalance_monitor.py", "systemd",
    }  # fmt: skip


def test_an_sdist_builds_what_the_tree_builds(built):
    with tarfile.open(next(built.glob("*.tar.gz"))) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert names >= in_tree("coordinator_model", "streaming", "deploy") | {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md"}
    assert not {name for name in names if name.startswith((".venv", "checkpoints/")) and name != "checkpoints/README.md"}

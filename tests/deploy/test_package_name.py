"""Another package named ``streaming``, as mosaicml-streaming has one: where it hides the monitor's, that is said at once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ERROR = "error: another package named streaming (mosaicml-streaming 0.13.0) hides this one: it is "
REMEDY = "; install rebalance-monitor in an environment of its own, see docs/deploying.md\n"


def theirs(site: Path) -> None:
    (site / "streaming").mkdir(parents=True, exist_ok=True)
    (site / "streaming" / "__init__.py").write_text('"""MosaicML Streaming."""\nraise SystemExit("it was imported")\n')
    about = site / "mosaicml_streaming-0.13.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: mosaicml-streaming\nVersion: 0.13.0\n")
    (about / "top_level.txt").write_text("streaming\n")


def ours(site: Path) -> None:
    for package in ("streaming", "coordinator_model"):
        shutil.copytree(ROOT / package, site / package, dirs_exist_ok=True)


def started(*path: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "deploy" / "rebalance_monitor.py"), "--version"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, path))}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


@pytest.mark.parametrize("in_one_environment", [True, False], ids=["overwritten", "before it on the path"])
def test_where_the_other_one_counts_the_monitor_says_which_and_what_to_do(tmp_path: Path, *, in_one_environment: bool) -> None:
    mine, foreign = tmp_path / "ours", tmp_path / "ours" if in_one_environment else tmp_path / "theirs"
    ours(mine)
    theirs(foreign)
    told = started(foreign, mine)
    assert (told.returncode, told.stderr) == (2, f"{ERROR}{foreign / 'streaming' / '__init__.py'}{REMEDY}")


@pytest.mark.parametrize("in_one_environment", [True, False], ids=["overwrites it", "before it on the path"])
def test_where_the_monitors_own_counts_it_runs(tmp_path: Path, *, in_one_environment: bool) -> None:
    mine, foreign = tmp_path / "ours", tmp_path / "ours" if in_one_environment else tmp_path / "theirs"
    theirs(foreign)
    ours(mine)
    told = started(mine, foreign)
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout.startswith("rebalance-monitor ")

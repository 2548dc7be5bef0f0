"""Environments for what this one must not have: another release of Spark, or a server of S3."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import Final

OTHERWISE: Final = {"3.5": ("pyarrow==25.0.1",)}
"""What a line of Spark needs beside itself."""
ROOT: Final = Path(__file__).parents[2]


def with_spark(folder: Path, release: str) -> Path:
    """Make an environment that shares every library with this one but pyspark, and what that needs otherwise; gives its Python."""
    packages = installed(release, f"pyspark=={release}", *OTHERWISE.get(release.rpartition(".")[0], ()), options=("--no-deps",))
    place = folder / f"spark-{release}"
    venv.create(place, with_pip=False)
    site = place / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"
    (site / "others.pth").write_text("\n".join(map(str, (packages, ROOT, sysconfig.get_path("purelib")))))
    return place / "bin" / "python"


def installed(name: str, *wanted: str, options: tuple[str, ...] = ()) -> Path:
    """The folder of some packages, kept in the user's cache folder: pyspark alone is 450 MB."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "rebalance-monitor" / "sparks"
    kept = cache / f"python{sysconfig.get_python_version()}" / name
    if not kept.exists():
        fresh = kept.with_suffix(f".{os.getpid()}")
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            *options,
            "--target",
            str(fresh),
        ]
        subprocess.run([*command, *wanted], check=True)
        fresh.rename(kept)
    return kept

"""The end-to-end story under other releases of Spark, each in an environment of its own.

    python -m tests.real.sparks [3.5.9 4.0.5 …]

An environment shares every library with this one but pyspark, and what pyspark needs otherwise. In it run the tests of the job that tell a
whole story: findings held against the model alone, events, what is set aside, the quality checks, and an end in good order.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tempfile
import venv
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

RELEASES: Final = ("3.5.9", "4.0.5", "4.1.4", "4.2.1")
OTHERWISE: Final = {"3.5": ("pyarrow==25.0.1",)}
"""What a line of Spark needs beside itself."""
STORY: Final = "finds_what_the_model or events_come or garbage_is or great_exp or new_findings or sigterm"
ROOT: Final = Path(__file__).parents[2]


def environment(folder: Path, release: str) -> Path:
    """Make one; gives its Python."""
    venv.create(folder, with_pip=False)
    packages = folder / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"
    wanted = (f"pyspark=={release}", *OTHERWISE.get(release.rpartition(".")[0], ()))
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--target",
        str(packages),
    ]
    subprocess.run([*command, *wanted], check=True)
    (packages / "others.pth").write_text(f"{ROOT}\n{sysconfig.get_path('purelib')}\n")  # behind its own
    return folder / "bin" / "python"


def main() -> int:
    shown = Table("Spark", "the story", title="releases of Spark", title_justify="left", box=None)
    failed = 0
    for release in sys.argv[1:] or RELEASES:
        with tempfile.TemporaryDirectory(prefix=f"spark-{release}-") as folder:
            python = environment(Path(folder), release)
            told = subprocess.run(
                [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/real/test_job.py", "-k", STORY],
                cwd=ROOT,
                check=False,
            )
        failed += told.returncode != 0
        shown.add_row(release, "failed" if told.returncode else "passed")
    Console().print(shown)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

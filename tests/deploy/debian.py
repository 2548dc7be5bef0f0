"""Both commands of the README on a bare Debian: ``python -m tests.deploy.debian``, as root, 25 minutes on two cores.

Needs mmdebstrap, git and unshare (util-linux). It makes a root of trixie with what the README asks for and nothing else, clones the commit
that is checked out, and runs ``make demo`` and ``make test`` there as an ordinary user, with /proc, /dev and /dev/pts mounted. Process 1
there is ``su``, which collects no orphans, as in a container without an init. Arguments are other targets of make: ``setup`` only builds the
environment.

Machines without a way out have mirrors and certificates of their own: what this one's apt and pip use is used inside, too.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

RELEASE: Final = "trixie"
PACKAGES: Final = ("python3", "python3-venv", "default-jre-headless", "make", "git", "ca-certificates")
TARGETS: Final = ("demo", "test")
ROOT: Final = Path(__file__).parents[2]
USER: Final = "ordinary"
CLONE: Final = f"home/{USER}/rebalance-monitor"

_APT_SOURCES: Final = Path("/etc/apt/sources.list.d/debian.sources")
_CERTIFICATES: Final = Path("/usr/local/share/ca-certificates")
_PIP: Final = Path("/etc/pip.conf")

ENTER: Final = """
mount -t proc proc "$1/proc"
mount --bind /dev "$1/dev" && mount --bind /dev/pts "$1/dev/pts"
mount -t tmpfs -o mode=1777 tmpfs "$1/dev/shm" && mount -t tmpfs -o mode=1777 tmpfs "$1/tmp"
for file in hosts resolv.conf; do touch "$1/etc/$file" && mount --bind "/etc/$file" "$1/etc/$file"; done
exec /usr/sbin/chroot "$1" su --login "$2" --command "$3"
"""
"""In a mount namespace of its own, so that nothing stays mounted: root, user, command."""


def main(targets: list[str]) -> int:
    missing = [program for program in ("mmdebstrap", "git", "unshare") if shutil.which(program) is None]
    if missing or os.geteuid() != 0:
        print(f"Needs root, mmdebstrap, git and unshare; missing: {', '.join(missing) or 'root'}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory(prefix="debian-", ignore_cleanup_errors=True) as folder:
        root = Path(folder) / "root"
        _make(root)
        for target in targets:
            print(f"== make {target}, on {RELEASE} as {USER}", flush=True)
            status = _enter(root, USER, f"cd /{CLONE} && make {target}")
            if status:
                print(f"make {target} failed with status {status}", file=sys.stderr)
                return 1
    return 0


def _make(root: Path) -> None:
    sources = []
    if _APT_SOURCES.exists():
        own = platform.freedesktop_os_release()["VERSION_CODENAME"]
        sources = [root.parent / "debian.sources"]
        sources[0].write_text(re.sub(rf"\b{own}\b", RELEASE, _APT_SOURCES.read_text()))
    included = f"--include={','.join(PACKAGES)}"
    _run("mmdebstrap", "--quiet", "--mode=root", "--variant=minbase", included, RELEASE, root, *sources)
    if _CERTIFICATES.is_dir():
        shutil.copytree(_CERTIFICATES, root / _CERTIFICATES.relative_to("/"), dirs_exist_ok=True)
        _enter(root, "root", "update-ca-certificates --fresh >/dev/null")  # Java takes part, and needs /proc
    if _PIP.exists():
        shutil.copy(_PIP, root / "etc")
    _run("chroot", root, "useradd", "--create-home", "--shell", "/bin/bash", USER)
    _run("git", "clone", "--quiet", "--no-hardlinks", ROOT, root / CLONE)
    _run("chroot", root, "chown", "--recursive", f"{USER}:", f"/{CLONE}")


def _enter(root: Path, user: str, command: str) -> int:
    inside = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "/bin/sh", "-euc", ENTER, "enter", str(root), user, command)
    environment = {"PATH": os.environ["PATH"], "TERM": os.environ.get("TERM", "dumb")}
    return subprocess.run(inside, env=environment, stdin=subprocess.DEVNULL, check=False).returncode


def _run(*command: str | Path) -> None:
    subprocess.run([str(word) for word in command], check=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or list(TARGETS)))

"""``make deploy-check``: the image, built of its Containerfile without a registry and run as an engine would, by another user, read-only.

It takes a quarter of an hour, so no other run of the tests collects it.

A root file system of Debian's packages stands in for the base image, so neither Docker nor a registry is needed, but root is.
"""

from __future__ import annotations

import json
import lzma
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.needs import path_of
from tests.processes import below, command_of

ROOT = Path(__file__).parents[2]
CONTAINERFILE = ROOT / "deploy" / "container" / "Containerfile"
CAPTURE = "violation-stale-generation-accepted-4.3.1"
BOUND_S = 240.0  # for what never comes: on a busy machine a command takes a minute to start
USER, STATE = 10001, "var/lib/rebalance-monitor"

ENTER = f"""
mount --bind "$1" "$1" && mount -t proc proc "$1/proc" && mount --bind /dev "$1/dev" && mount -t tmpfs -o mode=1777 tmpfs "$1/tmp"
for file in hosts resolv.conf; do touch "$1/etc/$file" && mount --bind "/etc/$file" "$1/etc/$file"; done
mount --bind "$2" "$1/{STATE}" && mount -o remount,bind,ro "$1"
root=$1; shift 2
exec /usr/sbin/chroot --userspec={USER}:{USER} "$root" /bin/sh -c 'cd /{STATE} && exec "$@"' sh "$@"
"""
"""What a container's engine does: root, state, command."""


def said(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, f"{command}: {done.stdout[-3000:]}\n{done.stderr[-6000:]}"
    return done.stdout


class Image:
    """The built image: its file system, and what it says of itself."""

    def __init__(self, root, config, state):
        self.root, self.config, self.state = root, config, state

    def command(self, *arguments):
        environment = [*self.config["Env"], f"HOME=/{STATE}"]
        return [
            *("env", "-i", *environment, "/usr/bin/unshare", "--mount", "--pid", "--fork", "--kill-child", "/bin/sh", "-euc", ENTER, "enter"),
            *(str(self.root), str(self.state), *arguments),
        ]  # fmt: skip

    def runs(self, *arguments):
        return said(*self.command(*self.config["Entrypoint"], *arguments), timeout=600)


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    if os.geteuid() != 0:
        pytest.skip("building an image without an engine needs root")
    folder = tmp_path_factory.mktemp("image")
    buildah = [path_of("buildah"), "--root", folder / "images", "--runroot", folder / "run", "--storage-driver", "vfs"]
    base = [path_of("mmdebstrap"), "--variant=minbase", "--include=python3,python3-venv,ca-certificates"]
    # Machines without a way out have mirrors and certificates of their own: what this one's apt and pip use is used inside, too.
    sources = Path("/etc/apt/sources.list.d/debian.sources")
    said(
        *base,
        '--aptopt=Acquire::Check-Valid-Until "false"',
        *("bookworm", folder / "base.tar"),
        *([sources] if sources.exists() else []),
    )  # fmt: skip
    stand_in = said(*buildah, "from", "scratch").strip()
    said(*buildah, "add", stand_in, folder / "base.tar", "/")
    said(*buildah, "copy", stand_in, "/usr/local/share/ca-certificates", "/usr/local/share/ca-certificates")
    said(*buildah, "run", "--isolation", "chroot", stand_in, "--", "update-ca-certificates")
    said(*buildah, "commit", "--rm", stand_in, "stand-in")
    mounts = ["--volume", "/etc/pip.conf:/etc/pip.conf:ro"] if Path("/etc/pip.conf").exists() else []
    said(
        *(*buildah, "bud", "--isolation", "chroot", "--layers=false", "--pull-never", "--build-arg", "BASE=localhost/stand-in"),
        *("--build-arg", "VERSION=1.2.3", *mounts, "--file", CONTAINERFILE, "--tag", "rebalance-monitor", ROOT),
    )  # fmt: skip
    config = json.loads(said(*buildah, "inspect", "--type", "image", "rebalance-monitor"))["OCIv1"]["config"]
    container = said(*buildah, "from", "rebalance-monitor").strip()
    state = folder / "state"
    state.mkdir()
    os.chown(state, USER, USER)
    yield Image(Path(said(*buildah, "mount", container).strip()), config, state)
    said(*buildah, "rm", "--all")
    said(*buildah, "rmi", "--all", "--force")


@pytest.mark.timeout(3_600)
class TestImage:
    def test_it_says_how_it_is_to_be_run(self, image):
        config = image.config
        assert (config["User"], config["StopSignal"], config["Entrypoint"], config["WorkingDir"], list(config["Volumes"])) == (
            f"{USER}:{USER}",
            "SIGTERM",
            ["tini", "--", "rebalance-monitor"],
            f"/{STATE}",
            [f"/{STATE}"],
        )
        assert config["Labels"]["org.opencontainers.image.version"] == "1.2.3"
        assert {"title", "description", "licenses", "revision"} <= {label.rpartition(".")[2] for label in config["Labels"]}

    def test_it_has_no_compiler_and_no_package_of_the_tests(self, image):
        programs = {
            file.name
            for folder in ("usr/bin", "usr/local/bin", "opt/rebalance-monitor/bin")
            for file in (image.root / folder).iterdir()
        }
        assert {"java", "tini", "rebalance-monitor"} <= programs
        assert not programs & {"cc", "gcc", "g++", "clang", "make", "javac", "pytest", "ruff", "mypy", "pip"}

    def test_another_user_replays_a_capture_and_writes_only_where_it_may(self, image):
        (image.state / "capture.records").write_bytes(
            lzma.decompress((ROOT / "tests" / "golden" / f"{CAPTURE}.records.xz").read_bytes())
        )
        assert "critical G-02 stale generation accepted" in said(
            *image.command("sh", "-c", "rebalance-monitor replay capture.records || test $? = 1")
        )
        where = said(
            *image.command(
                "sh",
                "-c",
                "id -u; for f in /etc /opt/rebalance-monitor /usr /tmp .; do touch $f/x 2>/dev/null && echo $f; done; true",
            )
        )
        assert where.split() == [str(USER), "/tmp", "."]

    def test_the_demo_runs_in_it_and_finds_every_fault(self, image):
        """A broker, the tap, the job on Spark, consumers, the page."""
        done = subprocess.run(
            image.command(*image.config["Entrypoint"], "demo", "--plain", "--duration", "60"),
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]

    def test_it_ends_in_order_when_it_is_told_to(self, image):
        with subprocess.Popen(
            image.command(*image.config["Entrypoint"], "web", "--file", "/dev/stdin"),
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            process.stdin.close()
            assert process.wait(BOUND_S) == 2, "there is no record in an empty file"
        (image.state / "capture.jsonl").write_text(
            said(*image.command("sh", "-c", "rebalance-monitor replay --format json --events capture.records || test $? = 1"))
        )
        with subprocess.Popen(
            image.command(*image.config["Entrypoint"], "web", "--file", "capture.jsonl", "--listen", "127.0.0.1:0"),
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert "the page is at http://127.0.0.1:" in process.stderr.readline()
            (tini,) = [child for child in below(process.pid) if command_of(child).startswith("tini ")]
            tini.send_signal(signal.SIGTERM)
            assert process.wait(BOUND_S) == 0

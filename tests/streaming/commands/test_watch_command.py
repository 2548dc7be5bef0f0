"""``rebalance-monitor watch`` on a pipe: what it serves, and how it ends."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import started
from tests.streaming.mirror.wires import Connection, pcap

WATCH = [sys.executable, "-m", "streaming.cli", "watch"]
BROKEN_PAGE = (
    "import sys; from streaming.published.taking import Taker; Taker.take = lambda *_: {}['gone']; "
    "from streaming.cli import main; sys.argv[0] = 'rebalance-monitor'; main()"
)


def heartbeats() -> bytes:
    line = Connection([]).open()
    for number in range(20):
        line.heartbeat(number)
        line.wait(300)
    return pcap(line.packets)


def ended(command: list[str], given: bytes, folder: Path) -> tuple[int, str]:
    done = subprocess.run(
        [*command, "-", "--state", str(folder / "state")], input=given, capture_output=True, timeout=60, check=False
    )
    return done.returncode, done.stderr.decode()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (b"", "error: standard input is empty\n"),
        (b"no packets at all, but many words", "error: standard input is no packet capture: "),
    ],
)
def test_a_pipe_that_is_no_capture_is_said(given: bytes, said: str, tmp_path: Path) -> None:
    status, words = ended(WATCH, given, tmp_path)
    assert (status, words[: len(said)]) == (2, said)


@pytest.mark.parametrize("options", [["--web", "-"], ["-", "--web"], ["-", "--web", "--no-screen"]])
def test_the_page_needs_no_address(options: list[str], tmp_path: Path) -> None:
    with started([*WATCH, "--state", str(tmp_path / "state"), *options], stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        line = process.stderr.readline().decode()
        # another one may use the port, and then the error names it
        assert re.search(r"the page is at http://127\.0\.0\.1:8080/|--web: cannot listen on 127\.0\.0\.1:8080", line), line


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--interface", "eth0"], "--interface has no effect with -: it says which packets of this machine are read"),
        (["--command-config", "x"], "--command-config has no effect without --bootstrap-server or --mirror-to"),
        (["--listen", ":1=b:2"], "- and --listen are different inputs: give one of them"),
    ],
)
def test_an_option_without_effect_is_refused(options: list[str], said: str, tmp_path: Path) -> None:
    assert ended([*WATCH, *options], b"", tmp_path) == (2, f"error: {said}\n")


def test_the_page_is_not_opened_to_others(tmp_path: Path) -> None:
    status, words = ended([*WATCH, "--web", "0.0.0.0:0"], heartbeats(), tmp_path)
    assert (status, words.startswith("error: --web: 0.0.0.0:0 would open the page to others.")) == (2, True)


def test_a_part_that_fails_ends_the_watch_with_a_sentence(tmp_path: Path) -> None:
    command = [sys.executable, "-c", BROKEN_PAGE, "watch", "-", "--web", "127.0.0.1:0", "--state", str(tmp_path / "state")]
    with started(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(heartbeats())
        process.stdin.flush()  # and the pipe stays open
        assert process.wait(60) == 2
        assert process.stderr.read().decode().splitlines()[-1].startswith("internal error: KeyError: 'gone'")

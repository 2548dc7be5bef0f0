"""``make screenshots``: runs the demo, and takes the pictures of its page that the documents show.

The pictures show what the demo's real consumers do at that moment, so each run makes others. Look at them before they are committed, and
reduce their colours, as with ``pngquant``, which makes them a third as large.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

from tests.browser import Browser, browser

FOLDER: Final = Path(__file__).parents[1] / "docs" / "pictures"

_ROW: Final = "[...document.querySelectorAll('.row')].find(one => one.querySelector('.name').textContent.includes('billing'))"
_STUCK_FOR_S: Final = 7.0  #: long enough for the finding
_STEP_S: Final = 600.0


class Demo:
    """A demo that goes on until it is stopped."""

    def __init__(self, folder: str, duration: str) -> None:
        command = [sys.executable, "-m", "streaming.cli", "demo", "--plain", "--keep", "--duration", duration]
        self._process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, "TMPDIR": folder, "COLUMNS": "160"},
        )
        self._said: list[str] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            print(line, end="", flush=True)
            self._said.append(line)

    def says(self, words: str) -> str:
        """Wait for a line with these words; gives it."""
        return _until(lambda: next((line for line in list(self._said) if words in line), None), words, self._process)

    def stop(self) -> None:
        self._process.send_signal(signal.SIGINT)
        self._process.wait()


def _until(condition: Callable[[], str | None], what: str, process: subprocess.Popen[str]) -> str:
    deadline = time.monotonic() + _STEP_S
    while (found := condition()) is None:
        assert process.poll() is None, "the demo has ended"
        assert time.monotonic() < deadline, f"not within {_STEP_S:g} s: {what}"
        time.sleep(0.1)
    return found


def _take(tab: Browser, folder: Path, name: str, *, height: int = 720, dark: bool = False) -> None:
    tab.screen(1280, height, dark=dark)
    tab.js("document.activeElement && document.activeElement.blur(); scrollTo(0, 0)")
    time.sleep(0.5)  # what slides has its place after the next frame
    file = folder / f"{name}.png"
    tab.picture(file, whole=False)
    print(f"{file}: {file.stat().st_size:,} bytes", flush=True)


def take_all(tab: Browser, page: str, demo: Demo, folder: Path) -> None:
    """Take the pictures in the order of the demo's run."""
    tab.screen(1280, 720)
    tab.open(page)
    tab.wait_for(f"{_ROW}?.textContent.includes('Waits for billing-worker-1 to rejoin')")
    time.sleep(_STUCK_FOR_S)
    _take(tab, folder, "overview")
    billing = page.rstrip("/") + tab.js(f"{_ROW}.querySelector('.name a').getAttribute('href')")
    tab.screen(1280, 720)
    tab.open(f"{billing}?span=60")
    tab.wait_for("document.querySelectorAll('#wait-now .wait-head').length > 0")
    _take(tab, folder, "lanes", height=760)
    demo.says("everything still runs")
    tab.open(billing)
    tab.wait_for("document.querySelectorAll('#rebalances tbody a').length > 0")
    longest = tab.js(
        "[...document.querySelectorAll('#rebalances tbody tr')].map(one => [Number(/([\\d.]+) s/.exec(one.cells[3].textContent)?.[1] ?? 0),"
        "one.querySelector('a').href]).sort((a, b) => b[0] - a[0])[0][1]"
    )
    finding = tab.js("document.querySelector('#group-findings a').href")
    tab.open(longest)
    _take(tab, folder, "rebalance", height=560, dark=True)
    tab.open(finding)
    _take(tab, folder, "finding", height=900)
    tab.open("about:blank")


def take_recording(tab: Browser, recording: Path, folder: Path) -> None:
    """Take the picture of a recording's first page."""
    command = [sys.executable, "-m", "streaming.cli", "web", "--file", str(recording), "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as web:
        assert web.stderr is not None
        tab.screen(1280, 760)
        tab.open(next(line.rpartition("the page is at ")[2].strip() for line in web.stderr if "the page is at " in line))
        _take(tab, folder, "recording", height=760)
        web.terminate()


def take_report(tab: Browser, source: list[str], folder: Path, work: Path) -> None:
    """Take the pictures of a report: its beginning, and a group.

    :param source: arguments of the command that name what it reports on.
    """
    file = work / "report.html"
    subprocess.run([sys.executable, "-m", "streaming.cli", "report", *source, "--output", str(file)], check=True)
    tab.open(file.as_uri())
    _take(tab, folder, "report", height=620)
    tab.screen(1280, 1040)
    tab.open(file.as_uri())
    tab.js("[...document.querySelectorAll('section.told')].find(one => one.textContent.startsWith('search')).scrollIntoView()")
    shown = folder / "report-group.png"
    tab.picture(shown, whole=False)
    print(f"{shown}: {shown.stat().st_size:,} bytes", flush=True)


def take_lab_report(tab: Browser, source: list[str], folder: Path, work: Path) -> None:
    """Take the pictures of a report on a run of the laboratory: in a wide and in a narrow window, and as it is printed on A4."""
    file = work / "report.html"
    subprocess.run([sys.executable, "-m", "streaming.cli", "report", *source, "--output", str(file)], check=True)
    for name, width, height, media in (
        ("report-lab", 1280, 800, "screen"),
        ("report-lab-narrow", 390, 800, "screen"),
        ("report-lab-print", 794, 1123, "print"),
    ):
        tab.screen(width, height, media=media)
        tab.open(file.as_uri())
        shown = folder / f"{name}.png"
        tab.picture(shown, whole=False)
        print(f"{shown}: {shown.stat().st_size:,} bytes", flush=True)


def take_terminal(tab: Browser, screen: Path, folder: Path, work: Path) -> None:
    """Take the picture of a terminal, out of what ``tmux capture-pane -e -p`` printed of it."""
    text = Text.from_ansi(screen.read_text())
    with (work / "terminal").open("w") as unseen:
        console = Console(file=unseen, record=True, width=max(map(len, text.plain.split("\n"))))
        console.print(text, no_wrap=True)
    page = work / "terminal.html"
    page.write_text(console.export_html(theme=DIMMED_MONOKAI, inline_styles=True))
    tab.open(page.as_uri())
    tab.js("document.body.style.zoom = 0.96")
    _take(tab, folder, "watch", height=20 * (text.plain.rstrip().count("\n") + 2))


def main() -> None:
    parser = argparse.ArgumentParser(description="Take the pictures of the documents from a run of the demo.")
    parser.add_argument("--duration", default="90s", help="of the demo's faults")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--recording", type=Path, help="takes only the picture of a recording's page: that of this capture")
    parser.add_argument("--report", type=Path, help="takes only the pictures of the report: that on this recording")
    parser.add_argument(
        "--lab-report", type=Path, help="takes only the pictures of that report: on this recording of the laboratory"
    )
    parser.add_argument(
        "--terminal", type=Path, help="takes only the picture of watch: out of what 'tmux capture-pane -e -p' printed of it"
    )
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as work:  # a browser may still write as it ends
        if options.recording is not None:
            with browser(Path(work) / "profile") as tab:
                take_recording(tab, options.recording, options.folder)
            return
        if options.terminal is not None:
            with browser(Path(work) / "profile") as tab:
                take_terminal(tab, options.terminal, options.folder, Path(work))
            return
        if options.lab_report is not None:
            with browser(Path(work) / "profile") as tab:
                take_lab_report(tab, [str(options.lab_report)], options.folder, Path(work))
            return
        if options.report is not None:
            with browser(Path(work) / "profile") as tab:
                take_report(tab, [str(options.report)], options.folder, Path(work))
            return
        demo = Demo(work, options.duration)
        try:
            page = demo.says("the page: ").rpartition("the page: ")[2].strip()
            with browser(Path(work) / "profile") as tab:
                take_all(tab, page, demo, options.folder)
                config = next(Path(work).rglob("monitor.toml"))
                take_report(tab, ["--config", str(config), "--since", "5m"], options.folder, Path(work))
        finally:
            demo.stop()


if __name__ == "__main__":
    main()

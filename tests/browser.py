"""A headless Chromium, driven over its debugging pipe: no driver, no library, no download.

The trap: ``--no-sandbox`` is needed where tests run as root; the pages that tests open are the project's own.
"""

from __future__ import annotations

import base64
import json
import os
import select
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.needs import path_of

PATIENCE_S = 120.0  #: what a machine under load may take, no verdict on speed

_AS_DATA: Final = {"returnByValue": True, "awaitPromise": True}
_GIVES_WAY: Final = frozenset(
    {"Inspected target navigated or closed", "Execution context was destroyed.", "Cannot find default execution context"}
)


def _value_of(evaluated: dict[str, Any]) -> Any:
    assert "exceptionDetails" not in evaluated, evaluated["exceptionDetails"]
    return evaluated["result"].get("value")


class Browser:
    """One tab."""

    def __init__(self, profile: Path) -> None:
        commands, self._write = os.pipe()
        self._read, answers = os.pipe()
        self._log = profile.with_suffix(".log")
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [
                    "bash",  # the browser expects its pipe at 3 and 4
                    "-c",
                    f'exec 3<&{commands} 4>&{answers} "$@"',
                    "bash",
                    path_of("chromium"),
                    "--headless=new",
                    "--no-sandbox",
                    "--disable-gpu",
                    "--disable-dev-shm-usage",
                    "--hide-scrollbars",
                    "--no-first-run",
                    "--remote-debugging-pipe",
                    f"--user-data-dir={profile}",
                    "about:blank",
                ],
                pass_fds=(commands, answers),
                stdout=log,
                stderr=log,
            )
        os.close(commands)
        os.close(answers)
        self._buffer = b""
        self._number = 0
        self.complaints: list[str] = []  #: errors in the console, exceptions, resources that were not loaded
        self._loaded = ""  #: loader id of the newest document that has loaded
        self._session: str | None = None

    def start(self) -> None:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Page.setLifecycleEventsEnabled", enabled=True)

    def close(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._write)
        os.close(self._read)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        answer = self._answer(method, **params)
        assert "error" not in answer, f"{method}: {answer['error']}"
        return answer["result"]

    def _answer(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        number = self._number
        message = {"id": number, "method": method, "params": params} | ({"sessionId": self._session} if self._session else {})
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive(PATIENCE_S)
            assert answer is not None, f"no answer to {method} within {PATIENCE_S:g} s; the browser says: {self._said()}"
            if answer.get("id") == number:
                return answer

    def _receive(self, timeout_s: float) -> dict[str, Any] | None:
        """The next message; None when none comes in time."""
        deadline = time.monotonic() + timeout_s
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                return None
            chunk = os.read(self._read, 1 << 20)
            assert chunk, f"the browser has ended; it says: {self._said()}"
            self._buffer += chunk
        text, _, self._buffer = self._buffer.partition(b"\0")
        message = json.loads(text)
        self._note(message)
        return message

    def _said(self) -> str:
        return self._log.read_text(errors="replace")[-2000:]

    def _note(self, message: dict[str, Any]) -> None:
        params = message.get("params", {})
        match message.get("method"):
            case "Page.lifecycleEvent" if params["name"] == "load":
                self._loaded = params["loaderId"]
            case "Runtime.exceptionThrown":
                self.complaints.append(str(params["exceptionDetails"]))
            case "Runtime.consoleAPICalled" if params["type"] in {"error", "warning", "assert"}:
                self.complaints.append(str(params["args"]))
            case "Log.entryAdded" if params["entry"]["level"] in {"error", "warning"}:
                self.complaints.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")

    # --- what a person does ------------------------------------------------------------------------------------------------

    def screen(self, width: int, height: int = 900, *, dark: bool = False, media: str = "screen") -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=media, features=[scheme])

    def open(self, address: str) -> None:
        """Navigate, and wait until this document has loaded: the load event of the one before may come late."""
        loader = self.call("Page.navigate", url=address)["loaderId"]
        self.wait_until(lambda: self._loaded == loader, "the page has loaded")

    def js(self, expression: str) -> Any:
        """What an expression is, as plain data."""
        return _value_of(self.call("Runtime.evaluate", expression=expression, **_AS_DATA))

    def press(self, key: str, text: str = "") -> None:
        code = {"Enter": 13, "Tab": 9, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}.get(key, 0)
        text = text or ("\r" if key == "Enter" else key if len(key) == 1 else "")
        common = {"key": key, "windowsVirtualKeyCode": code, "code": key if code else ""}
        self.call("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **common)
        self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def type(self, text: str) -> None:
        for letter in text:
            self.press(letter)

    def wait_until(self, condition: Callable[[], Any], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, f"not within {PATIENCE_S:g} s: {what}"
            self._receive(0.05)

    def wait_for(self, expression: str) -> None:
        self.wait_until(lambda: self._holds(expression), expression)

    def _holds(self, expression: str) -> bool:
        """Return whether an expression is true; not while the page gives way to another."""
        answer = self._answer("Runtime.evaluate", expression=expression, **_AS_DATA)
        if answer.get("error", {}).get("message") in _GIVES_WAY:
            return False
        assert "error" not in answer, answer["error"]
        return bool(_value_of(answer["result"]))

    def picture(self, file: Path, *, whole: bool = True) -> None:
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        file.write_bytes(base64.b64decode(shot["data"]))


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    tab = Browser(profile)
    try:
        tab.start()
        yield tab
    finally:
        tab.close()

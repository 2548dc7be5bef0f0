"""A tap and a notifier that are killed are missed, by name, while another tap writes."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from streaming.demo.broker import HOST, Broker, free_port
from tests.processes import started
from tests.real.harness import wait_for
from tests.real.monitor_process import MonitorProcess

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]

PROGRAM = [sys.executable, "-m", "streaming.cli"]


def found(job: MonitorProcess, rule: str) -> list[dict[str, Any]]:
    return [finding for finding in job.topic("findings").values() if finding["rule"] == rule]


@pytest.mark.long
def test_a_tap_and_a_notifier_that_are_killed_are_found_within_20_s(tmp_path: Path) -> None:
    front, other = f"{HOST}:{free_port()}", f"{HOST}:{free_port()}"
    with ExitStack() as stack:
        broker = stack.enter_context(Broker(advertised={"PLAINTEXT": front}))

        def start(name: str, *words: str) -> subprocess.Popen[Any]:
            with (tmp_path / name).open("w") as log:
                return stack.enter_context(started([*PROGRAM, *words], stdout=log, stderr=log))

        def said(name: str, words: str) -> None:
            wait_for(lambda: words in (tmp_path / name).read_text(), f"{name} says: {words}")

        taps = [
            start(
                *(name, "tap", "--listen", f"{address}={broker.address()}", "--bootstrap-server", broker.internal),
                *("--topic", "missed", "--create-topic", "--partitions", "2", "--loss-file", str(tmp_path / f"{name}.loss")),
            )
            for name, address in (("first", front), ("second", other))
        ]
        said("first", "mirroring to topic missed")
        said("second", "mirroring to topic missed")
        job = MonitorProcess(tmp_path, broker.internal, "missing", mirror="missed", model={"silence_ms": 10_000})
        job.set(topics={"notifications": "missing-notifications"}, **{"notify.stdout": {}})
        notifier = start("notifier", "notify", "--config", str(job.config))
        said("notifier", "sending to stdout")
        stack.callback(job.stop_all)
        job.start().wait_until_said("watching")
        wait_for(job.status, "the job reads")
        time.sleep(20)
        assert (found(job, "V-11"), found(job, "V-12")) == ([], [])

        killed_s = time.time()
        taps[1].kill()
        notifier.kill()
        wait_for(lambda: found(job, "V-11") and found(job, "V-12"), "both are missed")
        took_s = time.time() - killed_s
        (tap,), (gone,) = found(job, "V-11"), found(job, "V-12")
        assert f"listens at {other} for {broker.address()}" in tap["summary"]
        assert f"The tap on host {socket.gethostname()}" in tap["summary"]
        assert gone["summary"].startswith(f"The notifier on host {socket.gethostname()} has given no sign of life since ")
        assert took_s < 20

        start("again", "notify", "--config", str(job.config))
        wait_for(lambda: found(job, "V-12")[0]["status"] == "resolved", "the notifier is back")
        assert found(job, "V-11")[0]["status"] != "resolved"

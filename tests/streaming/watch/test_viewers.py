"""Ten viewers of the page of a watch at once."""

from __future__ import annotations

import html
import re
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import requests

from streaming.not_shown import REQUESTS_LACK
from tests.processes import started
from tests.streaming.mirror.wires import Connection, pcap

VIEWERS = 10


def test_ten_viewers_get_what_happens_and_hold_up_nothing(tmp_path: Path) -> None:
    line = Connection([]).open()
    command = [sys.executable, "-m", "streaming.cli", "watch", "-", "--web", "127.0.0.1:0", "--state", str(tmp_path / "state")]
    with ExitStack() as stack:
        watch = stack.enter_context(started(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        assert watch.stdin is not None
        assert watch.stderr is not None
        said = re.search(r"http://\S+", watch.stderr.readline().decode())
        assert said is not None
        streams = [stack.enter_context(requests.get(f"{said[0]}stream?view=/", stream=True, timeout=60)) for _ in range(VIEWERS)]
        line.heartbeat(0, group="payments")
        line.wait(300)
        line.heartbeat(1, group="payments")
        watch.stdin.write(pcap(line.packets))
        watch.stdin.flush()
        for answer in streams[1:]:  # the first is a viewer that takes nothing
            assert any(b"payments" in one for one in answer.iter_lines(chunk_size=1))
        watch.stdin.close()
        assert watch.wait(60) == 0


def test_the_page_of_a_watch_on_a_request_log_says_what_such_a_log_cannot_show(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "streaming.cli", "watch", "--web", "127.0.0.1:0", "--state", str(tmp_path / "state")]
    with started([*command, "--request-log", str(tmp_path / "kafka-request.log")], stderr=subprocess.PIPE) as watch:
        assert watch.stderr is not None
        said = next(found for line in watch.stderr if (found := re.search(r"http://\S+", line.decode())))
        page = requests.get(f"{said[0]}sight", timeout=60).text
    assert REQUESTS_LACK in html.unescape(page)

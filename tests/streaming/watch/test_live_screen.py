"""The live screen of ``watch`` in a pseudo-terminal, on a request log that a broker writes meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from coordinator_model import wire
from tests.real.traffic import ROSTER, SUBSCRIPTION
from tests.streaming.mirror.request_log_lines import BASE_S, request_line
from tests.terminals import Terminal


def joined(group: str, number: int) -> bytes:
    """A line of now: a member is in a group, and so it is shown."""
    ask = wire.JoinGroupRequest(
        group_id=group,
        session_timeout_ms=45_000,
        rebalance_timeout_ms=60_000,
        member_id="m-1",
        protocol_type="consumer",
        protocols=(wire.JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION),),
    )
    answer = wire.JoinGroupResponse(
        generation_id=number + 1, protocol_type="consumer", protocol_name="range", leader="m-1", member_id="m-1", members=ROSTER
    )
    over_ms = int((time.time() - BASE_S) * 1000)
    return request_line(
        ask, answer, over_ms=over_ms, api_version=9, correlation_id=number, connection=f"10.0.0.1:9092-10.0.0.7:{group}-0-1"
    )


@contextmanager
def written(log: Path, group: str) -> Iterator[None]:
    """Let a broker append to its log as long as the context lasts."""
    ended = threading.Event()

    def write() -> None:
        number = 0
        while not ended.wait(0.2):
            with log.open("ab") as stream:
                stream.write(joined(group, number))
            number += 1

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def test_a_request_log_is_followed_live_across_rotation_and_the_screen_says_how_late_it_is(tmp_path: Path) -> None:
    log = tmp_path / "kafka-request.log"
    log.write_bytes(joined("before", 1))
    with Terminal("watch", "--request-log", str(log), "--hold-back", "2", "--state", str(tmp_path / "state")) as terminal:
        terminal.shows("followed from its end on; what happens is shown 2 s later", "no ends of connections")
        with written(log, "payments"):
            lines = terminal.shows("payments", " s late", "request log ")
        assert not any("before" in line for line in lines)
        log.rename(tmp_path / "kafka-request.log.1")
        with written(log, "orders"):
            terminal.shows("payments", "orders")
        terminal.press("q")
        assert terminal.exit_status() == 0


def test_a_terminal_that_is_resized_gets_a_picture_of_its_new_size(tmp_path: Path) -> None:
    log = tmp_path / "kafka-request.log"
    with (
        Terminal("watch", "--request-log", str(log), "--hold-back", "0", "--state", str(tmp_path / "state")) as terminal,
        written(log, "payments"),
    ):
        for width, height in ((80, 24), (200, 50), (40, 12), (80, 24)):
            terminal.resize(width, height)
            terminal.shows("payments", f"\n{'─' * width}\n")
        terminal.press("\x03")
        assert terminal.exit_status() == 0

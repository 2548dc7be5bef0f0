"""What happens around a watch: a full disk, an interface that vanishes, a clock that is set. It goes on and says what was missed."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import pytest

from coordinator_model.settings import Settings
from streaming.commands.watch import OUTPUTS
from streaming.mirror.pcap.packet_socket import InterfaceGoneError
from streaming.mirror.pcap.tls.key_log import KeyLog
from streaming.watch import packets, saved
from streaming.watch.packets import Interfaces
from streaming.watch.saved import SavedRecords
from streaming.watch.state import StateFile
from streaming.watch.watch import CAPTURE, Watch
from tests.real.full_disk import SmallDisk
from tests.real.traffic import tick
from tests.streaming.mirror.wires import BROKER, LINKS, Connection

START_US = 1_700_000_000_000_000


def test_a_full_disk_at_save_is_said_once_and_how_much_was_not_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(saved, "_AGAIN_S", 0.0)
    with SmallDisk(tmp_path / "disk", size_mb=1) as disk:
        if not disk.is_mounted:
            pytest.skip("no file system can be mounted here")
        filler = disk.folder / "filler"
        filler.write_bytes(bytes(2**20 - 2 * 4_096))
        records = SavedRecords(disk.folder / "kept", 2**30, said.append)
        for second in range(200):
            records.write(tick(START_US + second * 1_000_000))
        assert [one.partition(" cannot")[2] for one in said] == [" be written: no space left on device; tried again each minute"]
        filler.unlink()
        records.write(tick(START_US + 300_000_000))
        records.close()
    assert len(said) == 2
    assert said[1].startswith(f"--save: {disk.folder / 'kept'} can be written again; ")
    assert said[1].endswith(" records were not saved")


class Ring:
    """In the place of a packet socket: gives what it is to give, an error raises."""

    def __init__(self, steps: list[Any]) -> None:
        self._steps = steps
        self._ready, self._never = os.pipe()

    def __call__(self, interface: str, ports: Sequence[int]) -> Ring:
        if self._steps and isinstance(self._steps[0], Exception):
            raise self._steps.pop(0)
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def close(self) -> None:
        pass

    def fileno(self) -> int:
        return self._ready

    def filter(self, ports: Sequence[int]) -> None:
        pass

    def dropped(self) -> int:
        return 0

    def read(self) -> Any:
        if self._steps and isinstance(self._steps[0], Exception):
            raise self._steps.pop(0)
        return self._steps.pop(0) if self._steps else []


def beats(at_us: int, first: int, *, port: int = 9092) -> list[tuple[int, int, bytes, int]]:
    """Packets of a member's heartbeats."""
    line = Connection([], at_us=at_us, client=("10.0.0.7", 40_000 + first), broker=(BROKER[0], port)).open()
    for number in range(first, first + 5):
        line.heartbeat(number)
        line.wait(300)
    return [(one.at_us, LINKS["raw IP"][0], one.ip(), len(one.ip())) for one in line.packets]


def read(
    steps: list[Any], monkeypatch: pytest.MonkeyPatch, *, ports: Sequence[int] = (9092,)
) -> tuple[Watch, list[str], list[dict[str, Any]]]:
    """What a watch makes of what an interface gives: what it says, and the findings."""
    said: list[str] = []
    monkeypatch.setattr(packets, "_RETRY_S", 0.01)
    monkeypatch.setattr(packets, "PacketSocket", Ring(steps))
    source = Interfaces("eth7", ports=ports, cluster="", key_log=KeyLog(), tell=said.append)
    watch = Watch(topic=CAPTURE, settings=Settings(), outputs=OUTPUTS, state=StateFile(None, "x", said.append), tell=said.append)
    feed = watch.handover.feed(OUTPUTS.findings)
    stop = threading.Event()
    thread = threading.Thread(target=source.run, args=(watch, stop))
    thread.start()
    until = time.monotonic() + 20
    while steps and time.monotonic() < until:
        time.sleep(0.01)
    time.sleep(0.3)
    stop.set()
    thread.join()
    watch.end()
    return watch, said, [json.loads(record.value or b"{}") for record in feed.poll(0)]


def test_an_interface_that_vanishes_is_waited_for_and_the_time_without_it_is_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    now_us = time.time_ns() // 1000
    gone = InterfaceGoneError("interface eth7: network is down")
    watch, said, findings = read([beats(now_us - 9_000_000, 0), gone, gone, gone, beats(now_us, 5)], monkeypatch)
    assert said == [
        "interface eth7: network is down: nothing is captured until it is back, and groups are not seen",
        "interface eth7 is back",
    ]
    assert [one["summary"].partition(" for ")[0] for one in findings] == ["The capture lost sight of everything"]
    assert watch.engine.counters["frames"] == 20


def test_a_port_of_a_broker_that_is_found_late_is_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packets, "_SETTLED_S", 0.0)
    monkeypatch.setattr(packets, "_LOOK_AGAIN_EVERY_S", 0.0)
    now_us = time.time_ns() // 1000
    steps = [beats(now_us - 9_000_000, 0), [], [], beats(now_us, 5, port=9093)]
    watch, said, findings = read(steps, monkeypatch, ports=())
    assert (said, watch.engine.counters["frames"]) == ([], 20)
    assert [one["summary"].partition(" for ")[0] for one in findings] == ["The capture lost sight of a broker's port"]


@pytest.mark.parametrize(("jump_s", "rule"), [(-7_200, "V-09"), (-600, "V-09"), (600, "V-04"), (7_200, "V-04")])
def test_a_clock_that_is_set_stops_nothing_and_is_said(jump_s: int, rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    now_us = time.time_ns() // 1000 - 8_000_000
    watch, said, findings = read([beats(now_us, 0), beats(now_us + jump_s * 1_000_000, 5)], monkeypatch)
    assert (watch.engine.counters["frames"], said, [one["rule"] for one in findings]) == (20, [], [rule])

"""The page with many groups: how large it is, how soon it is painted, and what viewers cost while groups change.

python -m tests.bench.page --groups 1000 --viewers 20
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import threading
import time
from pathlib import Path

import requests

from streaming.published.page_state import PageState
from streaming.published.taking import take_line
from tests.browser import browser
from tests.streaming.web import history
from tests.streaming.web.conftest import served

_PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--groups", type=int, default=1_000)
    parser.add_argument("--viewers", type=int, default=20)
    parser.add_argument("--changes", type=float, default=10.0, help="records of groups a second")
    parser.add_argument("--seconds", type=float, default=20.0)
    wanted = parser.parse_args()
    began_s = time.monotonic()
    state = PageState(clock=lambda: history.NOW_S + time.monotonic() - began_s)
    for record in history.records(wanted.groups - 3):
        take_line(state, json.dumps(record))
    state.read_to_the_end()
    print(f"{len(state.groups):,} groups, {sum(len(past.events) for past in state.groups.values()):,} events")
    with served(state, streams=wanted.viewers + 2) as (address, _):
        past = state.groups["prod", "search-indexer"]
        views = {"all groups": "/", "200 members": f"/groups/{past.id}", "200 members, unfolded": f"/groups/{past.id}?all=1"}
        for name, path in views.items():
            _weigh(address + path, name)
        _paint(address, views)
        _watch(address, state, wanted)


def _weigh(address: str, name: str) -> None:
    times = []
    for _ in range(5):
        begin_s = time.perf_counter()
        answer = requests.get(address, headers={"Accept-Encoding": "identity"}, timeout=30)
        times.append(time.perf_counter() - begin_s)
    packed = requests.get(address, stream=True, timeout=30).raw.read(decode_content=False)
    print(
        f"{name}: {len(answer.content):,} bytes, {len(packed):,} compressed; first {times[0] * 1000:.0f} ms, then {min(times) * 1000:.0f} ms"
    )


def _paint(address: str, views: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory() as profile, browser(Path(profile)) as tab:
        tab.screen(1280)
        tab.open(f"{address}/sight")  # a browser that has just been started paints its first page late, whatever it is
        for name, path in views.items():
            found = []
            for _ in range(5):
                tab.open(address + path)
                tab.wait_for(_PAINT)
                found.append(tab.js(_PAINT))
            print(f"{name}: first paint after {sorted(found)[2]:.0f} ms (of five: {min(found):.0f} to {max(found):.0f})")


def _watch(address: str, state: PageState, wanted: argparse.Namespace) -> None:
    received, stop = [0] * wanted.viewers, threading.Event()

    def view(number: int) -> None:
        token = requests.get(address, timeout=30).text.partition('data-view="')[2].partition('"')[0]
        with requests.get(f"{address}/stream?view=/&have={token}", stream=True, timeout=30) as answer:
            for line in answer.iter_lines(chunk_size=None):
                received[number] += len(line)
                if stop.is_set():
                    return

    viewers = [threading.Thread(target=view, args=(number,), daemon=True) for number in range(wanted.viewers)]
    for viewer in viewers:
        viewer.start()
    time.sleep(3)
    records = [record for number in range(wanted.groups - 3) for record in history.quiet(number)[-1:]]
    before_s, begin_s, before = _cpu_s(), time.monotonic(), sum(received)
    for number in range(int(wanted.seconds * wanted.changes)):
        take_line(state, json.dumps(records[number % len(records)] | {"generation": 100 + number}))
        time.sleep(max(0.0, begin_s + (number + 1) / wanted.changes - time.monotonic()))
    took_s = time.monotonic() - begin_s
    stop.set()
    cpu, each = (_cpu_s() - before_s) / took_s, (sum(received) - before) / took_s / wanted.viewers
    print(
        f"{wanted.viewers} viewers, {wanted.changes:g} groups change a second: {cpu:.0%} of a core (viewers included), {each:,.0f} bytes a second each"
    )


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()

"""``python -m tests.real.lab.advised``: what advice predicts, held against the same lives with what is advised.

Each life is lived by several groups at the same time, before one broker: as it is, and with one setting changed. What the first one's
events predict and what the others cost less stand side by side in ``docs/laboratory.md``. Only what happens after all members are at work
counts, so that starts do not.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from coordinator_model.advice import Advice, Saving, proposals
from coordinator_model.advice.history import histories
from coordinator_model.coordinator import Coordinator
from coordinator_model.events import GroupEvent
from coordinator_model.settings import Settings
from coordinator_model.wire.recording import read_recording
from streaming.demo.broker import HOST, Broker, free_port
from streaming.demo.processes import Processes
from tests.real.harness import running_tap
from tests.real.lab.client import Protocol
from tests.real.lab.lives import Actor, Recording, Stage

PAGE: Final = Path(__file__).parents[3] / "docs" / "laboratory.md"
BEGIN, END = "<!-- predicted and measured -->", "<!-- end of predicted and measured -->"
PARTITIONS: Final = 12
START_APART_S: Final = 2.0
ALLOWED: Final = 0.25  #: of what was measured

Times = dict[str, Any]
QUICK: Final[Times] = {"session_timeout_ms": 10_000, "heartbeat_interval_ms": 3_000}
USUAL: Final[Times] = {"session_timeout_ms": 45_000, "heartbeat_interval_ms": 3_000}


@dataclass(frozen=True, slots=True)
class Way:
    """How a group lives a life."""

    name: str
    kind: str | None = None  #: of the advice that it takes; None for the life as it is
    protocol: Protocol = "classic"
    static: bool = False
    options: Times = field(default_factory=dict)
    steps: int = 4  #: of an autoscaler


@dataclass(frozen=True, slots=True)
class Life:
    """What happens to a group: members come to work, and then something befalls them."""

    title: str
    members: int
    happens: Callable[[Stage, list[Actor], Way], None]
    ways: tuple[Way, ...]  #: the first is as it is


def rolling_deploy(_stage: Stage, members: list[Actor], _way: Way) -> None:
    for member in [*members, *members]:
        member.restart(after_s=2.0)
        time.sleep(5)


def crash_loop(_stage: Stage, members: list[Actor], _way: Way) -> None:
    for _ in range(4):
        members[1].kill()
        time.sleep(2)
        members[1].start()
        members[1].wait_until_working()
        time.sleep(4)


def autoscaler(stage: Stage, members: list[Actor], way: Way) -> None:
    """Four members come and go, in as many steps as it is told."""
    each = 4 // way.steps
    more: list[Actor] = []
    for _ in range(way.steps):
        more += [stage.enter("confluent-kafka", way.protocol, **way.options) for _ in range(each)]
        for member in more[-each:]:
            member.wait_until_working()
        time.sleep(6)
    while more:
        for member in more[-each:]:
            member.signal(signal.SIGTERM)
        del more[-each:]
        time.sleep(6)


def pauses(_stage: Stage, members: list[Actor], _way: Way) -> None:
    for _ in range(2):
        members[1].signal(signal.SIGSTOP)
        time.sleep(14)
        members[1].signal(signal.SIGCONT)
        time.sleep(10)


LIVES: Final = (
    Life(
        "two rolling deploys of six",
        6,
        rolling_deploy,
        (
            Way("deploy", options=USUAL),
            Way("deploy-static", "static membership", static=True, options=USUAL),
            Way("deploy-cooperative", "cooperative protocol", options={**USUAL, "assignors": ("cooperative-sticky",)}),
            Way("deploy-consumer", "consumer protocol", "consumer"),
        ),
    ),
    Life(
        "crash loop",
        4,
        crash_loop,
        (Way("crash", options=QUICK), Way("crash-static", "static membership", static=True, options=QUICK)),
    ),
    Life(
        "autoscaler", 2, autoscaler, (Way("scale", options=USUAL), Way("scale-once", "fewer scale steps", options=USUAL, steps=1))
    ),
    Life(
        "pauses",
        4,
        pauses,
        (
            Way("pause", options=QUICK),
            Way("pause-longer", "longer session timeout", options={**QUICK, "session_timeout_ms": 20_000}),
        ),
    ),
)


@dataclass(slots=True)
class Row:
    """One piece of advice and what came of it."""

    life: str
    kind: str
    lost: Saving
    advice: Advice | None
    measured: Saving

    @property
    def off(self) -> float | None:
        """Return by how much of what was measured the prediction of member-seconds misses."""
        if self.advice is None or self.measured.member_seconds <= 0:
            return None
        return self.advice.saves.member_seconds / self.measured.member_seconds - 1

    @property
    def holds(self) -> bool:
        """True if the prediction is within a quarter, or gives a range in which it was, or if none was made."""
        if self.advice is None:
            return True
        least_s, most_s = self.advice.saves_least.member_seconds, self.advice.saves_most.member_seconds
        is_near = self.off is not None and abs(self.off) <= ALLOWED
        return is_near or least_s <= self.measured.member_seconds <= most_s

    def line(self) -> str:
        said = self.advice
        member_s = "none" if said is None else _with_range(said)
        partition_s = "none" if said is None else f"{said.saves.partition_seconds:.0f}"
        off = "" if self.off is None else f"{self.off:+.0%}"
        measured = f"{self.measured.member_seconds:.1f} | {off} | {partition_s} | {self.measured.partition_seconds:.0f}"
        return f"| {self.life} | {self.kind} | {self.lost.member_seconds:.1f} | {member_s} | {measured} |"


def _with_range(said: Advice) -> str:
    least_s, saves_s, most_s = (one.member_seconds for one in (said.saves_least, said.saves, said.saves_most))
    return f"{saves_s:.1f}" if most_s - least_s < 0.1 else f"{saves_s:.1f} ({least_s:.1f} to {most_s:.1f})"


def live(recording: Path, logs: Path, say: Callable[[str], None]) -> dict[str, tuple[int, int]]:
    """Live all lives before one broker.

    :returns: group → capture times between which it counts.
    """
    front = f"{HOST}:{free_port()}"
    spans: dict[str, tuple[int, int]] = {}
    with contextlib.ExitStack() as stack:
        sink = stack.enter_context(Recording(recording))
        broker = stack.enter_context(Broker(advertised={"PLAINTEXT": front}, initial_rebalance_delay_ms=3_000))
        broker.create_topic("orders", PARTITIONS)
        stack.enter_context(running_tap([f"{front}={broker.address()}"], sink, cluster="lab"))
        processes = stack.enter_context(Processes(logs, lambda _: None))
        for life in LIVES:
            say(f"{life.title}: {', '.join(way.name for way in life.ways)}")
            stages = [(way, Stage(way.name, broker, front, processes)) for way in life.ways]
            threads = [threading.Thread(target=_live, args=(life, way, stage, spans), name=way.name) for way, stage in stages]
            for thread in threads:
                thread.start()
                time.sleep(START_APART_S)
            for thread in threads:
                thread.join()
    return spans


def _live(life: Life, way: Way, stage: Stage, spans: dict[str, tuple[int, int]]) -> None:
    members = []
    for number in range(life.members):
        instance_id = f"{way.name}-instance-{number}" if way.static else None
        members.append(stage.enter("confluent-kafka", way.protocol, instance_id=instance_id, **way.options))
    for member in members:
        member.wait_until_working()
    time.sleep(12)
    began_us = time.time_ns() // 1_000
    life.happens(stage, members, way)
    time.sleep(6)
    spans[way.name] = began_us, time.time_ns() // 1_000
    for actor in stage.actors:
        actor.signal(signal.SIGTERM)


def rows(recording: Path, spans: dict[str, tuple[int, int]]) -> Iterator[Row]:
    """Compare what was predicted of each life as it is with what the others cost."""
    model = Coordinator(topic="lab", partition=0, settings=Settings())
    events: dict[str, list[GroupEvent]] = {}
    with recording.open("rb") as stream:
        for record in read_recording(stream):
            model.receive(record)
    for event in model.drain_events():
        began_us, ended_us = spans.get(event.group, (sys.maxsize, 0))
        if began_us <= event.at_us <= ended_us:
            events.setdefault(event.group, []).append(event)
    for life in LIVES:
        as_it_is = events.get(life.ways[0].name, [])
        lost = _lost(as_it_is)
        for way in life.ways[1:]:
            assert way.kind is not None
            said = [piece for history in histories(as_it_is) for piece in proposals(history) if piece.kind == way.kind]
            then = _lost(events.get(way.name, []))
            measured = Saving(lost.member_seconds - then.member_seconds, lost.partition_seconds - then.partition_seconds)
            yield Row(life.title, way.kind, lost, max(said, key=lambda piece: piece.saves, default=None), measured)


def _lost(events: Iterable[GroupEvent]) -> Saving:
    known = histories(events)
    return known[0].lost(range(len(known[0].rebalances))) if known else Saving()


def table(found: Iterable[Row]) -> str:
    """Return the table as Markdown."""
    head = (
        "| life | advice | cost as it is, member-seconds | predicted saving | measured | off | predicted partition-seconds | measured |\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- |\n"
    )
    return head + "\n".join(row.line() for row in found)


def save(text: str) -> None:
    """Put the table between the markers of the page."""
    page = PAGE.read_text()
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")


def main(
    *,
    folder: Annotated[Path | None, typer.Option(help="Where the recording and logs go; by default a temporary one.")] = None,
    keep_page: Annotated[bool, typer.Option("--print", help="Print the table, and leave docs/laboratory.md as it is.")] = False,
) -> None:
    """Live the same lives as they are and with what is advised, six minutes, and write what was predicted and what came of it.

    The exit status is 0 if each prediction holds: within a quarter of what was measured, or in the range that the advice gives.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that broker and clients are ended
    place = folder or Path(tempfile.mkdtemp(prefix="rebalance-monitor-lab-"))
    place.mkdir(parents=True, exist_ok=True)
    recording = place / "advised.records"
    found = list(rows(recording, live(recording, place, lambda text: print(text, file=sys.stderr))))
    text = table(found)
    print(text)
    if not keep_page:
        save(text)
    raise typer.Exit(0 if all(row.holds for row in found) else 1)


if __name__ == "__main__":
    typer.run(main)

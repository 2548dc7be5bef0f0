"""Golden transcripts: what crossed the wire in runs of the laboratory, one group each, and what is to be said of it.

A transcript is a recording (``coordinator_model.wire.recording``) of one group and the mirror's ticks, xz-compressed. ``expected.json``
says of each which findings the model opens, with their worst severity and what they are about. ``events/`` has for each a file with
what happened in the group. Both are written by ``python -m tests.golden.make`` and read by people when they change: a finding that comes
or goes there came or went for users too.
"""

from __future__ import annotations

import hashlib
import io
import json
import lzma
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from coordinator_model.coordinator import Coordinator
from coordinator_model.events import GroupEvent
from coordinator_model.finding import Finding
from coordinator_model.settings import Settings
from coordinator_model.wire.record import Kind, MirrorRecord
from coordinator_model.wire.recording import MAGIC, pack_record, read_recording

FOLDER = Path(__file__).parent
EXPECTED = FOLDER / "expected.json"
EVENTS = FOLDER / "events"
SUFFIX = ".records.xz"

#: The brokers of the laboratory wait so long for more members of a new group, and no transcript is ten minutes long.
SETTINGS = Settings(group_initial_rebalance_delay_ms=500, metadata_max_age_ms=20_000)

_AFTER_US = 15_000_000

Said = list[str]
"""Rule, worst severity, blame, and what the finding is about."""


def names() -> list[str]:
    """All transcripts."""
    return sorted(path.name.removesuffix(SUFFIX) for path in FOLDER.glob(f"*{SUFFIX}"))


def read(name: str) -> list[MirrorRecord]:
    with lzma.open(FOLDER / f"{name}{SUFFIX}") as stream:
        return list(read_recording(io.BytesIO(stream.read())))


def cut(recording: Path, group: str) -> list[MirrorRecord]:
    """What a recording holds of a group and of topics, and the ticks from its first record until a while after its last.

    Offsets count from 0.
    """
    with recording.open("rb") as stream:
        records = [record for record in read_recording(stream) if record.group in {None, group}]
    times = [record.at_us for record in records if record.group == group]
    span = range(min(times), max(times) + _AFTER_US)
    kept = (
        one for one in records if one.group == group or one.kind is Kind.TOPICS or (one.kind is Kind.TICK and one.at_us in span)
    )
    return [record._replace(partition=0, offset=offset) for offset, record in enumerate(kept)]


def groups(recording: Path) -> set[str | None]:
    """All groups that a recording has."""
    with recording.open("rb") as stream:
        return {record.group for record in read_recording(stream)}


def write(name: str, records: Iterable[MirrorRecord]) -> None:
    with lzma.open(FOLDER / f"{name}{SUFFIX}", "wb", preset=9 | lzma.PRESET_EXTREME) as stream:
        stream.write(MAGIC)
        for record in records:
            stream.write(pack_record(record))


class Replay(NamedTuple):
    """What the model made of a transcript."""

    findings: list[Finding]
    events: list[GroupEvent]


@cache
def replayed(name: str) -> Replay:
    """A transcript as it is, replayed once for all tests."""
    model = Coordinator(topic="golden", partition=0, settings=SETTINGS)
    findings = [finding for record in read(name) for finding in model.receive(record)]
    return Replay(findings, model.drain_events())


def said(name: str) -> list[Said]:
    """What the model says of a transcript, as :data:`EXPECTED` holds it."""
    states: dict[str, list[Finding]] = {}
    for finding in replayed(name).findings:
        states.setdefault(finding.id, []).append(finding)
    return sorted(_as_expected(events) for events in states.values())


def _as_expected(events: list[Finding]) -> Said:
    worst = max((event.severity for event in events), key=lambda severity: severity.rank)
    last = events[-1]
    about = "instance" if last.instance_id else "member" if last.member_id else "client" if last.client_id else "group"
    return [last.rule, worst.value, last.blame.value, about]


def expected() -> dict[str, list[Said]]:
    found: dict[str, list[Said]] = json.loads(EXPECTED.read_text())
    return found


def expect(all_said: dict[str, list[Said]]) -> None:
    """Write what is expected, a line for each finding."""
    lines = [
        f"{json.dumps(name)}: [\n" + ",\n".join(f"  {json.dumps(one)}" for one in found) + ("\n]" if found else "]")
        for name, found in sorted(all_said.items())
    ]
    EXPECTED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


# ---------------------------------------------------------------------------------------------------- events


def events_of(records: Iterable[MirrorRecord]) -> list[GroupEvent]:
    """All events of records that need not be a transcript's own."""
    model = Coordinator(topic="golden", partition=0, settings=SETTINGS)
    for record in records:
        model.receive(record)
    return model.drain_events()


def told(events: list[GroupEvent]) -> list[str]:
    """A line for each event, as :data:`EVENTS` holds them, and one for all ids: seconds, incarnation, generation, kind, member, the rest."""
    names: dict[str, str] = {}
    lines = [_line(event, events[0].at_us, names) for event in events]
    ids = hashlib.blake2s("\n".join(event.id for event in events).encode(), digest_size=8).hexdigest()
    return [*lines, f"ids {ids}"]


def _line(event: GroupEvent, first_us: int, names: dict[str, str]) -> str:
    known = event.as_json()
    member = _named(known, names) if "member_id" in known else "group"
    rest = {name: value for name, value in known.items() if name not in _SHOWN}
    if event.kind == "rebalance_finished":
        rest["members"] = " ".join(_named(one, names) for one in rest["members"])
        rest["last_member"] = names.get(rest["last_member"])
        rest["unheld"] = rest["unheld"] and {
            topic: round(sum(partitions.values()), 6) for topic, partitions in rest["unheld"].items()
        }
        del rest["began_at"]
        rest["waited_for"] = [
            f"{_named(one, names)} {one['why']} {one['waited_ms']}{'' if one['came'] else ', did not'}"
            for one in rest["waited_for"]
        ]
        lost = rest.pop("never_came_back", None)
        if lost:
            rest["never_came_back"] = " ".join(_named(one, names) for one in lost)
    rest.pop("silent_since", None)
    at_s = (event.at_us - first_us) / 1_000_000
    generation = "-" if event.generation is None else event.generation
    return f"{at_s:.6f} {event.incarnation} {generation} {event.kind} {member} {json.dumps(rest)}"


_SHOWN = {"member_id", "instance_id", "client_id", "client_address", *GroupEvent.__struct_encode_fields__, "kind"}


def _named(member: dict[str, Any], names: dict[str, str]) -> str:
    """Short names for member ids, in the order in which they come."""
    id_ = member["member_id"]
    if id_ is None:
        return member["instance_id"] or member["client_id"] or "nobody"
    return names.setdefault(id_, f"m{len(names) + 1}")


def expected_events(name: str) -> list[str]:
    return (EVENTS / f"{name}.txt").read_text().splitlines()


def expect_events(all_told: Iterable[tuple[str, list[str]]]) -> None:
    """Write what is expected to happen in each transcript."""
    EVENTS.mkdir(exist_ok=True)
    for old in EVENTS.iterdir():
        old.unlink()
    for name, lines in all_told:
        (EVENTS / f"{name}.txt").write_text("\n".join(lines) + "\n")

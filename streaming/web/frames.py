"""Single frames, field by field, for the view of a finding's evidence or of events.

A finding may be older than the mirror's retention. Then the frame is gone, and only its description in the finding is left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from coordinator_model.wire.record import MirrorRecord
from streaming.mirror.plain_frames import Counts, plain_frame
from streaming.published.records import name_of
from streaming.published.sentences import event_text
from streaming.web.drawing import clock

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from coordinator_model.events import GroupEvent
    from streaming.published.records import Json

FRAMES: Final = 20
"""Of one view."""

_FIELDS: Final = 400  #: of one frame

_NAMES: Final = ("member_id", "instance_id")


class Field(NamedTuple):
    """One field of a frame."""

    path: str
    value: str
    marked: bool  #: the finding is about it


class Frame(NamedTuple):
    """A frame, decoded."""

    title: str
    what: str  #: API, version, direction, and where it is in the mirror
    fields: list[Field]
    left_out: int
    problem: str | None  #: why there are no fields


class FrameSource(Protocol):
    """Where frames are kept."""

    def read(self, places: Iterable[tuple[int, int]]) -> list[MirrorRecord | str]:
        """Return the record at each place, a partition and an offset, or why it cannot be read."""


class Wanted(NamedTuple):
    """A frame that is to be shown."""

    title: str
    partition: int
    offset: int
    names: frozenset[str]  #: of the member that it is about
    generation: int | None  #: others are marked


def of_finding(finding: Json) -> list[Wanted]:
    """Return the frames of a finding's evidence."""
    names = frozenset(str(finding[name]) for name in _NAMES if finding.get(name))
    return [Wanted(one["frame"], one["partition"], one["offset"], names, finding["generation"]) for one in finding["evidence"]]


def of_events(events: Iterable[GroupEvent]) -> list[Wanted]:
    """Return the frames that showed some events, each once."""
    found: dict[tuple[int, int], Wanted] = {}
    for event in events:
        if event.frame is not None:
            title = f"{clock(event.at_s, tenths=True)} {name_of(event) or ''} {event_text(event, several=False)}"
            place = event.frame.partition, event.frame.offset
            names = (getattr(event, name, None) for name in _NAMES)
            found.setdefault(place, Wanted(title, *place, frozenset(filter(None, names)), None))
    return list(found.values())


def decoded(wanted: Sequence[Wanted], frames: FrameSource) -> list[Frame]:
    """Return frames, field by field."""
    shown = wanted[:FRAMES]
    records = frames.read((one.partition, one.offset) for one in shown)
    return [_frame(one, record) for one, record in zip(shown, records, strict=False)]


def _frame(wanted: Wanted, record: MirrorRecord | str) -> Frame:
    place = f"partition {wanted.partition}, offset {wanted.offset}"
    if isinstance(record, str):
        return Frame(wanted.title, place, [], 0, record)
    plain = plain_frame(record, {}, Counts())
    what = f"{plain['api']} v{plain['version']} {plain['kind']}, {place}"
    if "unreadable" in plain:
        return Frame(wanted.title, what, [], 0, plain["unreadable"])
    fields = [
        Field(path, str(value), _is_marked(path, value, wanted.names, wanted.generation))
        for path, value in _flat(plain["body"], "")
    ]
    return Frame(wanted.title, what, fields[:_FIELDS], max(0, len(fields) - _FIELDS), None)


def _is_marked(path: str, value: Any, names: frozenset[str], generation: int | None) -> bool:
    """Return True for what the finding names, and for errors."""
    if path.rpartition(".")[2] == "error":
        return bool(value != "NONE")
    if path == "generation_id":  # those within a subscription are of an earlier generation
        return bool(generation is not None and value != generation)
    return isinstance(value, str) and value in names


def _flat(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _flat(inner, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list):
        if not value:
            yield path, "(none)"
        for number, inner in enumerate(value):
            yield from _flat(inner, f"{path}[{number}]")
    else:
        yield path, "null" if value is None else value

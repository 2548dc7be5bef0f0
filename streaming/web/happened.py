"""What happened in a group as text: the same as the lanes, for those who read.

In a large group the same happens to two hundred members within a second. Who reads wants that as one line, and the three who do something
else as lines of their own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from coordinator_model.events import GroupEvent, MemberEvent, RebalanceBegan, RebalanceFinished
from streaming.published import sentences
from streaming.published.records import name_of

_LEAST_TOGETHER: Final = 4
_TOGETHER_S: Final = 30.0


class Line(NamedTuple):
    """One event, or several of one kind that follow each other."""

    row: str  #: id of the element
    from_s: float
    to_s: float
    who: str
    members: int
    text: str
    frames: int  #: how many of the events name the frame that showed them


def event_row(event_id: str) -> str:
    """Return the id of the element of a single event."""
    return f"e{hashlib.blake2s(event_id.encode(errors='surrogatepass'), digest_size=5).hexdigest()}"


def lines(events: Iterable[GroupEvent]) -> tuple[list[Line], dict[str, str]]:
    """Return events, in order, as lines, and for each event the id of its element."""
    found: list[Line] = []
    rows: dict[str, str] = {}
    known = list(events)
    shared = _shared_names(known)
    for part in _parts(known):
        row = event_row(part[0].id)
        rows |= dict.fromkeys((event.id for event in part), row)
        found.append(_line(row, part, shared))
    return found, rows


def events_of_line(events: Iterable[GroupEvent], row: str) -> list[GroupEvent]:
    """Return the events of a line; in another stretch of time a line may begin with another event, and then has that one alone."""
    known = list(events)
    bundle = next((part for part in _parts(known) if event_row(part[0].id) == row), [])
    return bundle or [event for event in known if event_row(event.id) == row]


def _parts(events: Iterable[GroupEvent]) -> Iterator[list[GroupEvent]]:
    """Yield the events of each line."""
    bundles: list[list[GroupEvent]] = []
    for event in events:
        last = bundles[-1] if bundles else None
        if last is not None and _alike(last[0], event):
            last.append(event)
        else:
            bundles.append([event])
    for bundle in bundles:
        yield from [bundle] if len(bundle) >= _LEAST_TOGETHER else ([event] for event in bundle)


def _alike(first: GroupEvent, event: GroupEvent) -> bool:
    return (
        type(first) is type(event)
        and not isinstance(event, RebalanceFinished)
        and not (sentences.repeated(first) or sentences.repeated(event))
        and abs(event.at_s - first.at_s) <= _TOGETHER_S
        and all(getattr(first, name, None) == getattr(event, name, None) for name in ("api", "error", "reason", "phase"))
    )


def _line(row: str, events: list[GroupEvent], shared: frozenset[str]) -> Line:
    names = [name for event in events if not isinstance(event, RebalanceFinished) and (name := name_of(event))]
    if len(events) > 1:
        names = list(dict.fromkeys(names))  # the line says how many members they are
    text = sentences.event_text(events[0], several=len(events) > 1)
    times = [event.at_s for event in events]
    frames = sum(event.frame is not None for event in events)
    who = sentences.listed(names) if names else ""
    if len(events) == 1 and names and names[0] in shared and (member_id := getattr(events[0], "member_id", None)):
        who += f"…{member_id[-4:]}"
    return Line(row, min(times), max(times), who, len(events), text, frames)


def _shared_names(events: Iterable[GroupEvent]) -> frozenset[str]:
    """Return the client ids under which several members are known."""
    ids: dict[str, set[str]] = {}
    named = (event for event in events if isinstance(event, MemberEvent | RebalanceBegan | RebalanceFinished))
    for event in named:
        if not event.instance_id and event.client_id and event.member_id:
            ids.setdefault(event.client_id, set()).add(event.member_id)
    return frozenset(name for name, members in ids.items() if len(members) > 1)

"""Recordings that are shown as a whole: captured traffic, which is replayed, brokers' logs, or published records as JSON lines.

A published record begins with a time like a line of a log. So a file is held against published records first.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from streaming.commands.capture_files import FIRST_BYTES, source_of
from streaming.commands.options import STDIN
from streaming.commands.output import stderr
from streaming.commands.replay import ReplaySession
from streaming.gc_tuning import collected_seldom
from streaming.mirror.broker_log.scan import is_broker_log
from streaming.mirror.captures import is_capture
from streaming.mirror.record_file import is_record_file
from streaming.published.records import Json, event_of, finding_of, group_of
from streaming.published.taking import IntoState, read_file
from streaming.sinks.clients import ClientsSeen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from coordinator_model.settings import Settings
    from streaming.published.page_state import PageState

_LONGEST_LINE: Final = 2**24


class ReadRecording(NamedTuple):
    """What is known of files beside their groups."""

    clients: list[Json]  #: of captured traffic, as members of published groups
    summary: list[str]  #: what was read, and what could not be: a sentence each
    is_damaged: bool  #: True if a file is truncated or cannot be read to its end


NOTHING_READ: Final = ReadRecording([], [], is_damaged=False)


def read_recordings(
    state: PageState,
    files: Sequence[str],
    settings: Settings,
    *,
    ports: Sequence[int] = (),
    cluster: str = "",
    key_log: Path | None = None,
) -> ReadRecording:
    """Read files; captured traffic of several is merged by time.

    :raises SetupError: when a file cannot be read, or holds nothing that can be shown.
    :raises ReplayError: likewise, of captured traffic.
    :raises KeyLogError: when the key log cannot be read.
    """
    traffic = [file for file in files if _is_traffic(file)]
    clients_seen = ClientsSeen()
    session = ReplaySession(IntoState(state), settings, stderr(), clients_seen.take)
    if traffic:
        session.read(traffic, ports, cluster, key_log)
        session.finish()
    with collected_seldom():
        for file in files:
            if file not in traffic:
                read_file(state, Path(file))
    return ReadRecording(clients_seen.groups(), session.summary, session.is_damaged)


def _is_traffic(file: str) -> bool:
    if file == STDIN or Path(file).is_dir():
        return True
    with source_of(file) as source:
        if is_capture(source) or is_record_file(source.peek(FIRST_BYTES)):
            return True
        return is_broker_log(source) and not _is_published(file)


def _is_published(file: str) -> bool:
    with Path(file).open("rb") as lines:
        first = lines.readline(_LONGEST_LINE)
    return any(parse(first) is not None for parse in (event_of, group_of, finding_of))

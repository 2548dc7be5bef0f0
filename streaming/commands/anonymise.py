"""``rebalance-monitor anonymise``: writes a capture or recording anew, with pseudonyms in place of names, for a report to somebody else."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator_model.wire.record import pack_envelope
from coordinator_model.wording import counted, plural
from streaming.commands.capture_files import FIRST_BYTES, NOT_READ, ReplayError, called, captured_in, progress_of, source_of
from streaming.commands.options import BrokerPorts, KeyLogFile, key_log_of
from streaming.commands.output import fail, stderr
from streaming.errors import why_not
from streaming.mirror.anonymised import Anonymiser
from streaming.mirror.broker_log.reader import RequestLogReader
from streaming.mirror.broker_log.scan import is_broker_log
from streaming.mirror.captures import is_capture
from streaming.mirror.pcap.capture_reader import CaptureReader, in_order
from streaming.mirror.pcap.files import CaptureError
from streaming.mirror.pcap.tls.key_log import KeyLogError
from streaming.mirror.record_file import RecordFile, Unreadable, is_record_file, records
from streaming.published.wire_text import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from coordinator_model.wire.record import MirrorRecord
    from streaming.mirror.pcap.files import Source
    from streaming.mirror.pcap.tls.key_log import KeyLog


def anonymise(
    file: Annotated[
        str,
        typer.Argument(
            metavar="IN",
            help="Packet capture (pcap, pcapng), broker's request log, trace of Envoy, or file of mirror records, compressed or not. "
            "- is stdin.",
        ),
    ],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="File of mirror records to write. It must not exist yet.")],
    *,
    port: BrokerPorts = None,
    names: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write pseudonym and name of everything replaced to this file. Keep it.")
    ] = None,
    key_log: KeyLogFile = None,
) -> None:
    """Replace the names in a capture or recording, so that it can be given away.

    Groups, topics, clients, members, hosts and clusters get pseudonyms, the same name always the same one. Produce, Fetch and other APIs
    that do not coordinate groups are left out. `replay` finds the same in OUT as in IN, under the pseudonyms.

        rebalance-monitor anonymise incident.pcapng incident.records --names ours.json

        rebalance-monitor replay incident.records
    """
    console = stderr()
    notes: list[str] = []
    written = Anonymiser()
    for path in filter(None, (out, names)):
        if path.exists():
            fail(f"{path} exists already: choose another name, or delete it")
    try:
        secrets = key_log_of(key_log, notes.append)
        with out.open("xb") as stream, ExitStack() as stack:
            advance = stack.enter_context(progress_of([file], console))
            source = stack.enter_context(source_of(file, advance))
            target = RecordFile(stream)

            def write(record: MirrorRecord) -> None:
                _write(target, written, record)

            notes += _copy(source, file, write, port or (), secrets)
        if names is not None:
            names.write_text(json.dumps(written.names(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    except (ReplayError, CaptureError, KeyLogError) as error:
        out.unlink(missing_ok=True)
        fail(error)
    except OSError as error:
        out.unlink(missing_ok=True)
        fail(f"{error.filename or out} cannot be written: {why_not(error)}")
    for note in notes:
        console.print(visible(note), style="dim")
    console.print(f"{counted(target.records, 'record')} written to {out}, {counted(len(written.names()), 'name')} replaced")


def _copy(source: Source, file: str, write: Callable[[MirrorRecord], None], ports: Sequence[int], secrets: KeyLog) -> list[str]:
    """Write what ``file`` holds; the result is what there is to say of it."""
    notes: list[str] = []

    def damage(why: str) -> None:
        notes.append(f"{called(file)} {why}: everything before it was written")

    if is_record_file(source.peek(FIRST_BYTES)):
        _copy_records(source, damage, notes, write)
        return notes
    reader: CaptureReader | RequestLogReader
    if is_broker_log(source):
        reader = log = RequestLogReader(write)
        log.read([log.entries_in(source, damage)])
    elif is_capture(source):
        reader = capture = CaptureReader(write, ports=ports, key_log=secrets)
        capture.read(in_order([captured_in(file, source, damage, secrets.add_all)]))
    else:
        raise ReplayError(f"{called(file)} is {NOT_READ}")
    reader.finish()
    why = reader.why_nothing()
    if why is not None:
        raise ReplayError(f"{called(file)} {why}")
    return [*notes, *reader.notes()]


def _copy_records(source: Source, damage: Callable[[str], None], notes: list[str], write: Callable[[MirrorRecord], None]) -> None:
    unreadable = 0
    for record in records(source, damage):
        if isinstance(record, Unreadable):
            unreadable += 1
        else:
            write(record)
    if unreadable:
        notes.append(f"{counted(unreadable, 'record')} that cannot be read {plural(unreadable, 'was', 'were')} left out")


def _write(target: RecordFile, anonymiser: Anonymiser, record: MirrorRecord) -> None:
    changed = anonymiser.record(record)
    key = None if changed.group is None else changed.group.encode()
    target.write(partition=changed.partition, offset=changed.offset, key=key, value=changed.frame, envelope=pack_envelope(changed))

"""What keeps groups from consuming in an ordinary week, caused on a running broker, and what ``watch`` says of each, after how many seconds.

    python -m tests.real.everyday                   # make everyday
    python -m tests.real.everyday --only killed frozen --library kafka-python --folder runs/everyday

One broker, ``watch`` as its tap, and another ``watch`` on the packets of an address that nobody reaches, which needs root. For each trouble
and library there is a group of its own with the trouble's name. The troubles of one library run side by side, one library after the other.
The table says which finding is of each, after how long, and in which words; below it stands what else was said at warning or above of these
groups.

The exit status is 0 if each trouble was found with its cause, its client and that client's address.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from kafka import KafkaAdminClient
from kafka.admin import UpdateFeatureType

from streaming.demo.broker import HOST, Broker, free_port
from tests.conformance.builds import BuildError
from tests.conformance.libraries import LIBRARIES, Library
from tests.real.everyday_place import BESIDE, BROKER, LOST, UNSHARED, Place
from tests.real.everyday_troubles import TROUBLES, Cast, Trouble
from tests.real.harness import wait_for
from tests.real.watching import Watching, watching

LONG_S: Final = 300.0  #: what lasts longer runs beside all libraries


class Row(NamedTuple):
    """What was said of one trouble of one library."""

    trouble: Trouble
    library: str
    seconds: float | None  #: from the trouble until it was found; None if it was not
    text: str
    names_client: bool
    beside: tuple[str, ...]  #: what else was said of the group at warning or above


def row_of(trouble: Trouble, cast: Cast, words: str) -> Row:
    """Hold what was said of a group against its trouble."""
    said = cast.place.of(cast.group)
    found = [one for one in said if one.what in trouble.rules and one.at_s >= cast.began_s and words in one.text]
    others = {one.record["id"]: one for one in said if one.is_finding and one.what not in trouble.rules}
    beside = tuple(one.text for one in others.values() if one.record["severity"] != "info")
    if not found:
        return Row(trouble, cast.library.name, None, "", names_client=False, beside=beside)
    first = found[0]
    newest = next(one for one in reversed(found) if one.record["id"] == first.record["id"])
    names_client = trouble.of_group or (f"{cast.group}-" in newest.named and HOST in newest.named)
    return Row(trouble, cast.library.name, first.at_s - cast.began_s, newest.text, names_client, beside)


def played(place: Place, trouble: Trouble, library: Library) -> Row:
    """Cause a trouble, and wait until it is found."""
    cast = Cast(place, trouble, library)
    words = trouble.says.format(group=cast.group, lost=place.lost)
    try:
        trouble.make(cast)
        deadline_s = cast.began_s + trouble.lasts_s
        while time.monotonic() < deadline_s and row_of(trouble, cast, words).seconds is None:
            cast.wait(0.5)
        cast.wait(5)  # what is said at once beside it
        return row_of(trouble, cast, words)
    finally:
        cast.end()


class SideBySide:
    """Troubles, each on a thread of its own."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._threads: list[threading.Thread] = []
        self._rows: list[Row] = []

    def begin(self, trouble: Trouble, library: Library) -> None:
        thread = threading.Thread(target=lambda: self._rows.append(played(self._place, trouble, library)))
        thread.start()
        self._threads.append(thread)
        time.sleep(1)

    def end(self) -> list[Row]:
        """Wait for all of them."""
        for thread in self._threads:
            thread.join()
        return self._rows


def shortened(text: str) -> str:
    """Return what was said without member ids, versions of software and costs."""
    named = re.sub(r"[Mm]ember \S+(?:, instance \S+)? \((client \S+ at [\d.]+)[^)]*\)", r"\1", text)
    return re.sub(r",? \(?(confluent-)?kafka-python [\w.-]+| Cost so far: .*", "", named)


def table(rows: Sequence[Row]) -> str:
    """The table in Markdown."""
    lines = ["| trouble | library | seconds | said |", "| --- | --- | --- | --- |"]
    for row in sorted(rows, key=lambda one: (TROUBLES.index(one.trouble), one.library)):
        seconds = "not found" if row.seconds is None else f"{row.seconds:.0f}"
        lines.append(f"| {row.trouble.what} | {row.library} | {seconds} | {shortened(row.text).replace('|', chr(92) + '|')} |")
    return "\n".join(lines)


def _another(stack: contextlib.ExitStack, folder: Path, name: str) -> tuple[str, Watching]:
    """Start a broker beside the first one, and ``watch`` as its tap; return the tap's address, and what it prints."""
    front = f"{HOST}:{free_port()}"
    broker = stack.enter_context(Broker(advertised={"PLAINTEXT": front}, properties=BESIDE[name]))
    if name == UNSHARED:
        admin = KafkaAdminClient(bootstrap_servers=broker.internal)
        admin.update_features({"share.version": (UpdateFeatureType.SAFE_DOWNGRADE, 0)})
        admin.close()
    tap = stack.enter_context(watching(folder, name, "--listen", f"{front}={broker.address()}"))
    wait_for(lambda: tap.says("listening on"), f"the tap of the broker {name} listens")
    return front, tap


@contextlib.contextmanager
def placed(folder: Path, beside: Iterable[str] = ()) -> Iterator[Place]:
    """A broker, and ``watch`` as its tap; another one reads the packets of the listener that advertises an address nobody has.

    :param beside: names of other brokers, each with a ``watch`` of its own.
    """
    front, lost = (f"{HOST}:{free_port()}" for _ in range(2))
    with contextlib.ExitStack() as stack:
        advertised = {"PLAINTEXT": front, LOST: lost}
        broker = stack.enter_context(Broker(listeners={LOST: "PLAINTEXT"}, advertised=advertised, properties=BROKER))
        ports = [option for address in (broker.address(LOST), lost) for option in ("--port", address.rpartition(":")[2])]
        tap = stack.enter_context(watching(folder, "tap", "--listen", f"{front}={broker.address()}"))
        packets = stack.enter_context(watching(folder, "packets", "-i", "lo", *ports))
        wait_for(lambda: tap.says("listening on"), "the tap listens")
        place = Place(folder, broker, front, lost)
        others = {name: _another(stack, folder, name) for name in beside}
        place.beside = {name: address for name, (address, _) in others.items()}
        watches = (tap, packets, *(one for _, one in others.values()))
        threads = [threading.Thread(target=place.listen, args=(one.out,)) for one in watches]
        threads.append(threading.Thread(target=place.produce))
        for thread in threads:
            thread.start()
            stack.callback(thread.join)
        stack.callback(place.over.set)
        yield place


def _can_be_built(library: Library) -> bool:
    try:
        library.command()
    except BuildError as error:
        print(f"no {library.name} clients: {error}", file=sys.stderr)
        return False
    return True


def live(folder: Path, libraries: Sequence[str], only: Sequence[str]) -> list[Row]:
    """Cause the troubles of each library, and return what was said of them."""
    chosen = [one for one in LIBRARIES if one.name in libraries and _can_be_built(one)]
    wanted = [one for one in TROUBLES if not only or one.name in only]
    rows: list[Row] = []
    beside = sorted({one.beside for one in wanted if one.beside and not one.by.isdisjoint(libraries)})
    with placed(folder, beside) as place:
        long = SideBySide(place)
        for trouble in (one for one in wanted if one.lasts_s > LONG_S):
            for library in (one for one in chosen if one.name in trouble.by):
                long.begin(trouble, library)
        for library in chosen:
            short = SideBySide(place)
            for trouble in (one for one in wanted if one.lasts_s <= LONG_S and library.name in one.by):
                short.begin(trouble, library)
            rows += short.end()
        rows += long.end()
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="where logs and findings go; by default a temporary one")
    parser.add_argument("--only", nargs="*", default=[], choices=[one.name for one in TROUBLES])
    names = sorted(set().union(*(one.by for one in TROUBLES)))
    parser.add_argument("--library", nargs="*", default=names, choices=names)
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="rebalance-monitor-everyday-"))
    folder.mkdir(parents=True, exist_ok=True)
    rows = live(folder, options.library, options.only)
    print(table(rows))
    for row in rows:
        if row.seconds is not None and not row.names_client:
            print(f"not named with its address: {row.trouble.name} of {row.library}")
        for text in row.beside:
            print(f"beside {row.trouble.name} of {row.library}: {text}")
    print(f"logs and findings: {folder}", file=sys.stderr)
    return int(any(row.seconds is None or not row.names_client for row in rows))


if __name__ == "__main__":
    sys.exit(main())

"""The quality checks in a process of their own: the child's side, ``python -m streaming.quality.worker DESCRIPTOR``.

Through a socket it gets the configuration, then one batch after the other, each a number and an Arrow stream. It answers each of them,
with None when it is done, else with the exception that the driver is to raise; that is its last word.

*Threads have the priority that the process had when they were started*, and a library starts some while it is imported: so the priority is
lowered before anything else, and all imports are late. *The driver may be killed*: this process ends as soon as the other end of the socket
is closed, in the midst of a batch if need be. *Ctrl-C and a service manager's SIGTERM may reach it, too*: it listens to neither, for the
driver finishes the batch in hand.
"""

# ruff: noqa: PLC0415 - see above

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from multiprocessing.connection import Connection
from queue import Queue
from typing import TYPE_CHECKING, Any, Final

from streaming.quality.lazy_imports import install_lazy_imports

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from streaming.config.settings import MonitorConfig
    from streaming.quality.checker import Checker

    Batches = Queue[tuple[int, bytes]]

NICENESS: Final = 10
"""A tenth of a contended core's time: findings hardly feel it, and a machine that is always busy leaves something for the checks."""

PIECE: Final = 5_000
"""Rows that are judged at once: as Python objects and as a frame they take ten times what they take in the batch."""

_log: Final = logging.getLogger(__name__)


def main() -> None:
    """Check batches until the driver is gone."""
    os.nice(NICENESS)
    install_lazy_imports()
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    driver = Connection(int(sys.argv[1]))
    try:
        config: MonitorConfig = driver.recv()
    except EOFError:
        return
    batches: Batches = Queue()
    threading.Thread(target=_take_in, args=(driver, batches), daemon=True).start()
    driver.send(_why_it_ends(driver, config, batches))


def _take_in(driver: Connection, batches: Batches) -> None:
    """A thread, so that the end of the driver is seen whatever else goes on."""
    try:
        while True:
            batches.put((driver.recv(), driver.recv_bytes()))
    except (EOFError, OSError):
        os._exit(0)


def _why_it_ends(driver: Connection, config: MonitorConfig, batches: Batches) -> Exception:
    """Check one batch after the other and report each as done, until something fails."""
    from streaming.config.settings import ConfigError
    from streaming.errors import SetupError

    try:
        checker = _checker(config)
        while True:
            driver.send(None)
            batch, rows = batches.get()
            for piece in _pieces(rows):
                checker.check(piece, batch)
    except Exception as error:
        if type(error) in {ConfigError, SetupError, RuntimeError}:
            return error  # a sentence of ours
        _log.exception("the quality checks failed")
        what = " ".join(str(error).split())
        return RuntimeError(f"{what} ({type(error).__name__}), see {config.job.quality_log}")


def _checker(config: MonitorConfig) -> Checker:
    from streaming.logs import log_to
    from streaming.quality.checker import Checker
    from streaming.sinks.findings import FindingsReader, FindingsWriter

    log_to(config.job.quality_log)
    with FindingsReader(config.kafka, config.topics.findings) as reader:
        reader.catch_up()
        published = list(reader.open.values())
    return Checker(config, published=published, publisher=FindingsWriter(config.kafka, config.topics.findings))


def _pieces(rows: bytes) -> Iterator[Iterable[tuple[Any, ...]]]:
    import pyarrow as pa

    for piece in pa.ipc.open_stream(rows).read_all().to_batches(max_chunksize=PIECE):
        yield zip(*piece.to_pydict().values(), strict=True)


if __name__ == "__main__":
    main()

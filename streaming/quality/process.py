"""The quality checks in a process of their own, which yields the CPU to all others: the driver's side.

A batch is ten seconds of records, a core's work for a second or two, and a finding must not wait for it. Spark's fair pools share tasks,
not the time in Python; and in a thread of the driver, however low its priority, the checks hold the interpreter that everything else in
the driver needs, while the libraries' own threads run as if they were urgent.

*The driver has threads, and a JVM at its other end*: so the child (``streaming.quality.worker``) is a new interpreter, not a fork. *A child
may die*: that is one sentence, not silence. *A batch that failed is repeated*, and it is unknown how much of it had been taken in or
published: so whatever fails ends the child, and the next one begins with the findings that are open in the topic by then.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from multiprocessing import Pipe
from typing import TYPE_CHECKING

from streaming.config.settings import ConfigError
from streaming.errors import SetupError
from streaming.quality.suite import load

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streaming.config.settings import MonitorConfig


class QualityProcess:
    """As :class:`streaming.quality.checker.Checker`, with another process doing the work.

    It is started with the first batch, and again with the first after a failure. Only a suite of the operator's own is tried beforehand:
    that takes Great Expectations, and with it seconds.

    :raises ConfigError: when the suite cannot be used.
    :raises SetupError: when the process that is to try it does not start.
    """

    def __init__(self, config: MonitorConfig) -> None:
        load(config.quality.suite)
        self._config = config
        self._lock = threading.Lock()  # the last batch of a JVM that has ended may still be in hand
        self._child = None if config.quality.suite is None else _tried(config)

    def check(self, rows: bytes | memoryview, batch: int) -> None:
        """Have a batch checked, and what became of it published.

        :param rows: an Arrow stream with the columns ``streaming.spark.worker.INPUT_COLUMNS``, in that order.
        :raises RuntimeError: when that failed; the message is a sentence, and the batch is to be repeated.
        :raises ConfigError: when the suite cannot be used any more.
        """
        with self._lock:
            if self._child is None:
                self._child = _Child(self._config)
            try:
                self._child.check(rows, batch)
            except BaseException:
                self._child.end()
                self._child = None
                raise

    @contextmanager
    def closing(self, wait_s: float) -> Iterator[None]:
        """What is done within is to stop the query; at its end the process is no more.

        The JVM does not let go of a batch in hand, however long it takes. So that is broken off after ``wait_s``, and at once if the
        process is not ready for it yet.
        """
        patience = threading.Timer(wait_s if self._child is not None and self._child.is_ready else 0.0, self.close)
        patience.start()
        try:
            yield
        finally:
            patience.cancel()
            self.close()

    def close(self) -> None:
        """End the process; a batch in hand fails."""
        child = self._child
        if child is not None:
            child.end()


def _tried(config: MonitorConfig) -> _Child:
    try:
        child = _Child(config)
        child.get_ready()
    except (ConfigError, SetupError):
        raise
    except (RuntimeError, OSError) as error:
        raise SetupError(f"the quality checks do not start: {error}") from None
    return child


class _Child:
    """The process; it can be ended at any time, also while it starts or gets ready."""

    def __init__(self, config: MonitorConfig) -> None:
        self._config = config
        self.is_ready = False
        self._was_asked_to_end = False
        self._log = config.job.quality_log
        self._process: subprocess.Popen[bytes] | None = None

    def _start(self) -> None:
        """Start it.

        :raises OSError: when it cannot be had.
        """
        self._log.parent.mkdir(parents=True, exist_ok=True)
        self._pipe, theirs = Pipe()
        with theirs, self._log.open("ab") as printed:
            self._process = subprocess.Popen(
                # -P and the same path: it finds the modules that the driver has, and none that merely lie in the current folder.
                [sys.executable, "-P", "-m", "streaming.quality.worker", str(theirs.fileno())],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=subprocess.STDOUT,
                pass_fds=(theirs.fileno(),),
            )
        if self._was_asked_to_end:  # meanwhile
            self._process.kill()

    def get_ready(self) -> None:
        """Start it, and wait until it is.

        :raises OSError: when it cannot be had.
        :raises RuntimeError: and the others, as :meth:`QualityProcess.check`.
        """
        if self.is_ready:
            return
        if self._process is None:
            self._start()
        try:
            self._pipe.send(self._config)  # there are passwords in it, and others may read command lines
            self._wait_until_done()
        except OSError:
            raise RuntimeError(self._how_it_ended()) from None
        self.is_ready = True

    def check(self, rows: bytes | memoryview, batch: int) -> None:
        self.get_ready()
        try:
            self._pipe.send(batch)
            self._pipe.send_bytes(rows)
            self._wait_until_done()
        except OSError:
            raise RuntimeError(self._how_it_ended()) from None

    def _wait_until_done(self) -> None:
        try:
            trouble: Exception | None = self._pipe.recv()
        except EOFError:
            raise ConnectionResetError from None
        if trouble is not None:
            raise trouble

    def _how_it_ended(self) -> str:
        assert self._process is not None
        status = self._process.wait()
        if self._was_asked_to_end:
            return "the process of the quality checks was ended by the monitor, which stops; the batch in hand is checked at the next start"
        how = f"ended with status {status}" if status >= 0 else f"was ended by signal {-status} ({signal.strsignal(-status)})"
        memory = ", as the system does when memory runs out" if status == -signal.SIGKILL else ""
        return f"the process of the quality checks {how}{memory}; see {self._log}"

    def end(self) -> None:
        """End at once: what it has not finished is repeated. A caller that waits for it gets the reason."""
        self._was_asked_to_end = True
        if self._process is not None:
            self._process.kill()
            self._process.wait()

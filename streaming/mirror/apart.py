"""Reads captures in a process of its own, so that reading and replaying have a core each.

The child inherits the opened captures and turns packets into records; the parent takes these in, batch by batch, in their order and with
their numbers, exactly as if it had read the captures itself. What repeats crosses over in columns, other records as what they are made
of.

The traps: whatever else the child has to tell (how far it is, that a file is damaged) must come in its place among the records. Ctrl-C
goes to both processes: the child does not listen to it, and is asked to stop where a file is read on, so that neither stops half-way
through a frame. And a child may die: that is one sentence, not silence.
"""

from __future__ import annotations

import fcntl
import marshal
import os
import pickle
import signal
import threading
from array import array
from contextlib import contextmanager, suppress
from dataclasses import fields
from multiprocessing import Pipe
from queue import Queue
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from coordinator_model.pulse import Constants, Pulse
from coordinator_model.wire.record import Kind, MirrorRecord
from streaming.mirror.pcap import CaptureReader, CaptureStats
from streaming.mirror.stretch import Stretch

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from multiprocessing.connection import Connection

    from streaming.mirror.captures import Portion

ENTRIES: Final = 2_000
"""To a batch."""

PIPE_SIZE: Final = 2**20

BATCHES_AHEAD: Final = 8
"""That the child may be, some megabytes."""

PULSES_KEPT: Final = 10_000
"""Known to both sides, half a kilobyte each. Beyond it they are told anew, as they come."""

_KINDS: Final = {kind.value: kind for kind in Kind}
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_new: Final = tuple.__new__

# What an entry of a batch is, is told by its length; a record's is longer than any.
_CALL, _STRETCH, _PULSE = 3, len(fields(Stretch)), 1 + len(Constants._fields)


class ReaderEndedError(Exception):
    """The other process has ended before its time; the message says so without the captures' names."""


def is_possible() -> bool:
    """Whether there is a second core, and a way to a process that has inherited everything."""
    return hasattr(os, "fork") and (os.cpu_count() or 1) > 1


class ReaderApart:
    """As :class:`streaming.mirror.pcap.CaptureReader`, with another process doing the work."""

    def __init__(self, *, ports: Collection[int] = (), cluster: str = "") -> None:
        self.stats = CaptureStats()
        self.echoes = 0  #: connections that repeat what another one says, and were left out
        self._is_interrupted = False
        self._ports = ports
        self._cluster = cluster
        self._calls: list[Callable[[Any], None]] = []
        self._batches: _Batches | None = None  # in the child
        self._child = 0  # in the parent: its process
        self._pipe: Connection  # from it

    def relay(self, function: Callable[[Any], None]) -> Callable[[Any], None]:
        """A function to be handed to whoever reads: wherever it is called, ``function`` is called here.

        Its argument is a number or a string. In the child it is where reading stops, if it is to stop.
        """
        self._calls.append(function)
        number = len(self._calls) - 1

        def called(argument: Any) -> None:
            if self._batches is None:
                function(argument)
            else:
                self._batches.call(number, argument)

        return called

    @contextmanager
    def reading(self, portions: Iterable[Portion]) -> Iterator[None]:
        """Have packets read from now on, while the caller gets ready to :meth:`take_in` what they hold."""
        self._pipe, theirs = Pipe(duplex=False)
        _widen(self._pipe)
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)  # until each side is ready for them
        self._child = os.fork()
        if not self._child:
            self._pipe.close()
            self._be_child(portions, theirs)
        theirs.close()
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
            self._pipe.close()
            with suppress(ProcessLookupError):
                os.kill(self._child, signal.SIGKILL)
            os.waitpid(self._child, 0)

    def take_in(self, write: Callable[[MirrorRecord], None], pass_on: Callable[[Stretch], None]) -> None:
        """Take in all that is read: ``write`` takes the records, ``pass_on`` the stretches.

        :raises ReaderEndedError: when the other process has ended before its time.
        :raises KeyboardInterrupt: when it was told to; what had been read until then is taken in.
        """
        try:
            with self._stopping():
                signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
                self._take_in(write, pass_on)
        except EOFError:
            raise ReaderEndedError("cannot be read to the end: the process that reads was ended from outside; try again") from None
        if self._is_interrupted:
            raise KeyboardInterrupt

    def finish(self) -> None:
        """As that of the reader, which was done where it reads."""

    @contextmanager
    def _stopping(self) -> Iterator[None]:
        """Let the first Ctrl-C be passed on to the child, which then comes to an end; the second is as ever."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.getsignal(signal.SIGINT)

        def stop(_signal: int, _frame: Any) -> None:
            self._is_interrupted = True
            os.kill(self._child, signal.SIGTERM)
            signal.signal(signal.SIGINT, before)

        signal.signal(signal.SIGINT, stop)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _take_in(self, write: Callable[[MirrorRecord], None], pass_on: Callable[[Stretch], None]) -> None:
        pulses: dict[int, Pulse] = {}
        while batch := self._pipe.recv_bytes():
            for entry in marshal.loads(batch):  # noqa: S302 - the child is ourselves
                size = len(entry)
                if size == _STRETCH:
                    pass_on(_stretch(entry, pulses))
                    for number in list(pulses)[:-PULSES_KEPT]:
                        del pulses[number]
                elif size == _PULSE:
                    pulses[entry[0]] = Pulse(Constants(*entry[1:]))
                elif size == _CALL:
                    self._calls[entry[1]](entry[2])
                else:
                    write(_record(entry))
        error, self.stats, self.echoes = pickle.loads(self._pipe.recv_bytes())  # noqa: S301 - likewise
        if error is not None:
            raise error

    def _be_child(self, portions: Iterable[Portion], theirs: Connection) -> None:
        """Read, and end: nothing of what the parent does at its end may be done twice."""
        status = 1
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            batches = self._batches = _Batches(theirs)
            signal.signal(signal.SIGTERM, batches.stop)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
            reader = CaptureReader(batches.record, pass_on=batches.stretch, ports=self._ports, cluster=self._cluster)
            error: Exception | None = None
            try:
                with suppress(KeyboardInterrupt):
                    reader.read(portions)
                reader.finish()
            except Exception as raised:  # it is the parent's to say
                error = raised
            batches.finish(pickle.dumps((error, reader.stats, reader.echoes)))
            status = 0
        finally:
            os._exit(status)


class _Batches:
    """The child's end: takes what the reader writes."""

    def __init__(self, theirs: Connection) -> None:
        self._to_send: Queue[bytes | None] = Queue(BATCHES_AHEAD)
        self._sender = threading.Thread(target=_send, args=(theirs, self._to_send))
        self._sender.start()
        self._entries: list[tuple[Any, ...]] = []
        self._pulses = 0  # told so far
        self._known_from = 0  # the first that the other side is sure to know
        self._is_stopped = False

    def stop(self, _signal: int, _frame: Any) -> None:
        """Have reading end at the next call."""
        self._is_stopped = True

    def record(self, record: MirrorRecord) -> None:
        """Take any record."""
        self._add(_entry(record))

    def stretch(self, stretch: Stretch) -> None:
        """Take a stretch of what repeats, and of what lies between."""
        for pulse in stretch.pulses:
            if pulse.number < self._known_from:
                self._tell(pulse)
        numbers = [pulse.number for pulse in stretch.pulses]
        columns = (stretch.times_us, stretch.exchanges, stretch.asked, stretch.answered)
        written = [np.asarray(column, np.int64).tobytes() for column in columns]
        records = [_entry(record) for record in stretch.records]
        self._add((stretch.offset, records, numbers, stretch.sizes, stretch.offsets, stretch.correlation_ids, *written))
        self.flush()

    def call(self, number: int, argument: Any) -> None:
        """Have a function called at the other end.

        :raises KeyboardInterrupt: when reading is to stop.
        """
        self._add((_CALL, number, argument))
        if self._is_stopped:
            raise KeyboardInterrupt

    def flush(self) -> None:
        """Send what there is."""
        if self._entries:
            self._to_send.put(marshal.dumps(self._entries))
            self._entries.clear()

    def finish(self, last_words: bytes) -> None:
        """Send all that there is, and what is told in the end."""
        self.flush()
        for message in (b"", last_words, None):
            self._to_send.put(message)
        self._sender.join()

    def _add(self, entry: tuple[Any, ...]) -> None:
        self._entries.append(entry)
        if len(self._entries) >= ENTRIES:
            self.flush()

    def _tell(self, pulse: Pulse) -> None:
        pulse.number = self._pulses
        self._pulses += 1
        if self._pulses - self._known_from > PULSES_KEPT // 2:
            self._known_from = pulse.number
        self._add((pulse.number, *pulse.constants))


def _send(pipe: Connection, messages: Queue[bytes | None]) -> None:
    """A thread, so that the child reads on while the parent is busy with what came before."""
    try:
        while (message := messages.get()) is not None:
            pipe.send_bytes(message)
    except OSError:
        os._exit(1)  # nobody is there to take it


def _widen(pipe: Connection) -> None:
    """Spare the two sides some turns: a stretch is about a megabyte."""
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with suppress(OSError):  # more than this user may have; it is then as it was
            fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, PIPE_SIZE)


def _entry(record: MirrorRecord) -> tuple[Any, ...]:
    return *record[:3], record[3].value, *record[4:]


def _stretch(entry: tuple[Any, ...], pulses: Mapping[int, Pulse]) -> Stretch:
    offset, records, numbers, sizes, offsets, correlation_ids, times_us, *columns = entry
    exchanges, asked, answered = (np.frombuffer(column, np.int64) for column in columns)
    return Stretch(
        offset=offset,
        times_us=array("q", times_us),
        records=[_record(record) for record in records],
        pulses=[pulses[number] for number in numbers],
        sizes=sizes,
        offsets=offsets,
        exchanges=exchanges,
        asked=asked,
        answered=answered,
        correlation_ids=correlation_ids,
    )


def _record(entry: tuple[Any, ...]) -> MirrorRecord:
    return _new(MirrorRecord, (*entry[:3], _KINDS[entry[3]], *entry[4:]))

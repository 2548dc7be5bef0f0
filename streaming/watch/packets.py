"""Inputs of packets: interfaces of this machine, or a pipe that a capturing program writes.

Ticks follow once everything that was captured has been read. An interface that is away ticks not, so the model knows that it is blind.
"""

from __future__ import annotations

import os
import select
import time
from typing import TYPE_CHECKING, Final

from coordinator_model.wire.record import Cause, Loss
from streaming.mirror.captures import captured
from streaming.mirror.pcap.capture_reader import CaptureReader, in_order
from streaming.mirror.pcap.files import CaptureError
from streaming.mirror.pcap.packet_socket import ANY, InterfaceGoneError, PacketSocket
from streaming.watch.watch import CAPTURE, Tally

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator, Sequence
    from typing import BinaryIO

    from streaming.mirror.pcap.capture_reader import Captured
    from streaming.mirror.pcap.files import Source
    from streaming.mirror.pcap.tls.key_log import KeyLog
    from streaming.watch.watch import Watch

_WAIT_MS: Final = 50
_LATE_US: Final = 200_000
"""How long a packet may wait in the kernel's block."""

_BLOCKS_BETWEEN_LOOKS: Final = 16
_RETRY_S: Final = 1.0
_NAMES: Final = 1_000

_SETTLED_S: Final = 30.0
_LOOK_AGAIN_EVERY_S: Final = 60.0
_LOOK_AGAIN_FOR_S: Final = 5.0


class Packets:
    """What both have: a reader of captures, and what it says.

    :param where: what decides which packets are read, for people.
    :param ports: the brokers', if they are named.
    """

    def __init__(self, title: str, where: str, *, ports: Sequence[int], cluster: str, key_log: KeyLog) -> None:
        self.title = ", port ".join([title, *map(str, ports)])
        self.where = where
        self.topic = CAPTURE
        self._ports = ports
        self._cluster = cluster
        self._key_log = key_log
        self._reader: CaptureReader | None = None
        self._dropped = 0

    def _begin(self, watch: Watch) -> CaptureReader:
        reader = CaptureReader(
            watch.write, ports=self._ports, cluster=self._cluster, name=f"watch-{os.getpid()}", key_log=self._key_log
        )
        self._reader = reader
        return reader

    def tally(self) -> Tally:
        """Return what was read."""
        reader = self._reader
        return Tally(reader.stats.packets if reader else 0, self._dropped, self._behind_s())

    def _behind_s(self) -> float:
        return 0.0

    def why_nothing(self) -> str | None:
        """Why no frame of a group was read, and the next step."""
        reader = self._reader
        if reader is None or reader.stats.frames:
            return None
        return reader.stats.why_no_groups(self.title, reader.why_nothing(), self.where)


class Interfaces(Packets):
    """Packets of this machine's interfaces.

    :param interface: one of them, or :data:`ANY`.
    :param tell: called with a sentence when it is gone, and when it is back.
    """

    def __init__(self, interface: str, *, ports: Sequence[int], cluster: str, key_log: KeyLog, tell: Callable[[str], None]) -> None:
        on = "every interface" if interface == ANY else interface
        super().__init__(f"packets of {on}", "--port and --interface", ports=ports, cluster=cluster, key_log=key_log)
        self._interface = interface
        self._tell = tell
        PacketSocket(interface, ports).close()  # whether that can be done is said before anything else begins
        self._is_away = False
        self._read_to_us = 0
        self._narrowed = False
        self._filtered: frozenset[int] = frozenset()  # the ports that were read alone, the last time and since when
        self._filtered_us = 0
        self._turn_at_s = 0.0
        self._drained = True

    def run(self, watch: Watch, stop: threading.Event) -> None:
        """Read packets; an interface that vanishes is waited for."""
        reader = self._begin(watch)
        self._narrowed = bool(self._ports)
        while not stop.is_set():
            try:
                with PacketSocket(self._interface, self._ports or (_ports_of(reader) if self._narrowed else ())) as ring:
                    self._returned(reader)
                    self._read(ring, reader, watch, stop)
            except InterfaceGoneError as error:
                self._gone(error)
                watch.tend()
                stop.wait(_RETRY_S)

    def _read(self, ring: PacketSocket, reader: CaptureReader, watch: Watch, stop: threading.Event) -> None:
        poll = select.poll()
        poll.register(ring, select.POLLIN)
        blocks = 0
        while not stop.is_set():
            packets = ring.read()
            self._drained = not packets
            if packets:
                reader.read((packets,))
                blocks += 1
            if not packets or blocks == _BLOCKS_BETWEEN_LOOKS:
                blocks = 0
                self._look_for_drops(ring, reader)
                self._turn_filter(ring, reader)
            if not packets:
                reader.tick(_now_us() - _LATE_US)
                _forget_unknown(reader, watch)
                poll.poll(_WAIT_MS)
            watch.tend()

    def _look_for_drops(self, ring: PacketSocket, reader: CaptureReader) -> None:
        dropped = ring.dropped()
        if dropped:
            self._dropped += dropped
            reader.interrupted(Loss(dropped, 0, self._read_to_us or reader.now_us, reader.now_us, Cause.DROPPED))
        self._read_to_us = reader.now_us

    def _turn_filter(self, ring: PacketSocket, reader: CaptureReader) -> None:
        """Read the ports of brokers alone once they are known, and look at all others for some seconds in each minute."""
        ports = _ports_of(reader)
        if self._ports or not ports:
            return
        if self._filtered and not ports <= self._filtered:
            reader.interrupted(Loss(0, 0, self._filtered_us, reader.now_us, Cause.PORT_UNREAD))
            self._filtered = ports
        now_s = time.monotonic()
        self._turn_at_s = self._turn_at_s or now_s + _SETTLED_S
        if now_s < self._turn_at_s:
            return
        self._narrowed = not self._narrowed
        if self._narrowed:
            reader.tcp.keep({port.to_bytes(2, "big") for port in ports})
            self._filtered, self._filtered_us = ports, reader.now_us
        ring.filter(ports if self._narrowed else ())
        self._turn_at_s = now_s + (_LOOK_AGAIN_EVERY_S if self._narrowed else _LOOK_AGAIN_FOR_S)

    def _gone(self, error: InterfaceGoneError) -> None:
        if not self._is_away:
            self._is_away = True
            self._tell(f"{error}: nothing is captured until it is back, and groups are not seen")

    def _returned(self, reader: CaptureReader) -> None:
        if self._is_away:
            self._is_away = False
            self._tell(f"interface {self._interface} is back")
            _not_running(reader, reader.now_us)

    def _behind_s(self) -> float:
        reader = self._reader
        return 0.0 if self._drained or reader is None else max(0.0, time.time() - reader.now_us / 1e6)


class Pipe(Packets):
    """Packets that a capturing program writes to standard input, as ``tcpdump -U -w -`` does.

    :param opened: makes of the stream what is read; it may be compressed.
    """

    def __init__(
        self,
        stream: BinaryIO,
        opened: Callable[[BinaryIO], Source],
        *,
        ports: Sequence[int],
        cluster: str,
        key_log: KeyLog,
        tell: Callable[[str], None],
    ) -> None:
        super().__init__(
            "packets of standard input", "what the capturing program captures", ports=ports, cluster=cluster, key_log=key_log
        )
        self._stream = stream
        self._opened = opened
        self._tell = tell
        self._watch: Watch | None = None
        self._stop: threading.Event | None = None

    def run(self, watch: Watch, stop: threading.Event) -> None:
        """Read packets to the end of the stream."""
        self._watch, self._stop = watch, stop
        reader = self._begin(watch)
        try:
            source = self._opened(self)  # type: ignore[arg-type]
            reader.read(self._tending(in_order([captured(source, self._damaged, self._key_log.add_all)])))
        except CaptureError as error:
            raise CaptureError(f"standard input {error}") from None
        if not stop.is_set():
            reader.finish()
            watch.engine.finish()

    def read1(self, count: int) -> bytes:
        """Return what there is, as a file does; meanwhile time passes."""
        watch, stop = self._watch, self._stop
        assert watch is not None
        assert stop is not None
        while not select.select([self._stream], [], [], _WAIT_MS / 1000)[0]:
            if stop.is_set():
                return b""
            reader = self._reader
            if reader is not None and reader.now_us and _now_us() - reader.now_us < _LIVE_US:
                reader.tick(_now_us() - _PIPE_LATE_US)
            watch.tend()
        return os.read(self._stream.fileno(), count)

    read = read1

    def _tending(self, captures: Iterator[Sequence[Captured]]) -> Iterator[Sequence[Captured]]:
        assert self._watch is not None
        for some in captures:
            yield some
            self._watch.tend()

    def _damaged(self, why: str) -> None:
        if self._stop is None or not self._stop.is_set():
            self._tell(f"standard input {why}")


_LIVE_US: Final = 12_000_000  # a capture whose newest packet is older than this is not live
_PIPE_LATE_US: Final = 2_000_000  # how long a packet may stay in the capturing program's buffers


def _not_running(reader: CaptureReader, since_us: int) -> None:
    """Nothing was captured since a time; 0 if nothing was before."""
    if since_us:
        reader.interrupted(Loss(0, 0, since_us, max(_now_us(), since_us), Cause.NOT_RUNNING))


def _forget_unknown(reader: CaptureReader, watch: Watch) -> None:
    """Forget names of groups that are used once: those that no model knows any more."""
    names, known = reader.stats.groups, watch.engine.groups
    if len(names) > 2 * len(known) + _NAMES:
        names.intersection_update(group for _, group in known)


def _ports_of(reader: CaptureReader) -> frozenset[int]:
    """The ports that have proved to be brokers'."""
    return frozenset(int(address.rpartition(":")[2]) for address in reader.stats.brokers)


def _now_us() -> int:
    return time.time_ns() // 1000

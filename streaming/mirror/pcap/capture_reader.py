"""Mirror records out of captured packets: what the tap would have written, had it stood where the capture was made.

Packets become TCP segments, segments the byte streams of connections, and those conversations; ticks are added for each second in which
the capture lived, since the model's clock is in the data. The broker's side follows from ``ports``, else from who opened the connection,
else from who sends requests.

A capture is not made for us. It holds other traffic, begins and ends in the middle of things, and lacks packets. None of that is
blamed on a client or a broker: it is counted here, or written as a gap.
"""

from __future__ import annotations

from collections import defaultdict
from heapq import merge
from operator import itemgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from coordinator_model.continuity import BLIND_US
from coordinator_model.wire.record import Cause, Kind, Loss, MirrorRecord, gap, tick
from streaming.mirror.client_software import ClientSoftware
from streaming.mirror.conversation import LARGEST_REQUEST
from streaming.mirror.failed_connections import FailedConnections
from streaming.mirror.listener import written
from streaming.mirror.pcap.attempts import Attempts
from streaming.mirror.pcap.capture_stats import CaptureStats
from streaming.mirror.pcap.connection import CapturedConnection, Endpoint, UnidentifiedConnection
from streaming.mirror.pcap.dedup import Legs
from streaming.mirror.pcap.files import Ended, Seam
from streaming.mirror.pcap.first_look import FirstLook
from streaming.mirror.pcap.links import inside
from streaming.mirror.pcap.reassembly import Reassembler, Stream, StreamListener
from streaming.mirror.pcap.segments import (
    ACK,
    LINK_TYPES,
    RST,
    SYN,
    Segment,
    ends,
    is_later_fragment,
    networks,
    segment_of,
)
from streaming.mirror.pcap.sockets import SocketEvent, Sockets
from streaming.mirror.pcap.tls.first_bytes import FirstBytes
from streaming.mirror.pcap.tunnels import DEEPEST, unwrap
from streaming.mirror.topics import KnownTopics

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from streaming.mirror.pcap.files import Packet
    from streaming.mirror.pcap.tls.key_log import KeyLog

    Captured = Packet | SocketEvent | Seam | Ended

TICK_US: Final = 1_000_000

# As the tap does: a clock set back by less than this stands still until it has caught up; a bigger step is believed.
_STEP_BACK_US: Final = 5_000_000
_LONGEST_PAUSE_US: Final = 120_000_000
"""Without a packet of any kind for longer the capture is not known to have lived. Sessions of clients mostly end sooner."""


class CaptureReader:
    """Takes packets, or a proxy's events of its sockets, in the order of the capture, and writes mirror records.

    :param write: takes the records, numbered as if they stood in one partition; one without a group is for every partition.
    :param ports: the brokers' ports, if they are known; other connections are then left out.
    :param cluster: name of the cluster in the records.
    :param clusters: cluster of brokers' addresses that belong to another one (``first_pass.py``).
    :param key_log: secrets of TLS connections.
    :param frame_cap: how many bytes of a frame are kept; all, unless the records go to a topic.
    """

    def __init__(
        self,
        write: Callable[[MirrorRecord], None],
        *,
        ports: Collection[int] = (),
        cluster: str = "",
        clusters: Mapping[str, str] = MappingProxyType({}),
        name: str = "pcap",
        key_log: KeyLog | None = None,
        frame_cap: int = LARGEST_REQUEST,
    ) -> None:
        self.stats = CaptureStats()
        self.now_us = 0  #: newest capture time, microseconds since the epoch
        self.next_offset = 0  #: number of the next record
        self._write = write
        self._ports = frozenset(ports)
        self._wire_ports = frozenset(port.to_bytes(2, "big") for port in ports)
        self._cluster = cluster
        self._clusters = clusters
        self._name = name
        self._frame_cap = frame_cap
        self._key_log = key_log
        self._brokers: set[Endpoint] = set()
        self.legs = Legs(self._mirrored)  #: which of them repeat what another one says
        self._topics = defaultdict[str, KnownTopics](KnownTopics)  # by cluster
        self._software = ClientSoftware()
        self._first_look = FirstLook(ports)
        self.tcp = Reassembler(self._accept)  #: the connections
        self._sockets = Sockets(self._accept_socket)
        self._next_tick_us = 0
        failed = FailedConnections(
            lambda record: self._number(record._replace(cluster=clusters.get(record.broker, cluster))), cluster=cluster
        )
        self._attempts = Attempts(failed, self._ports)

    def why_nothing(self) -> str | None:
        """Why there is nothing to replay, as a half sentence behind the capture's name; None if there is something."""
        return self.stats.why_nothing(self._ports, self._first_look.causes(self.stats.snap_length))

    def notes(self) -> Iterator[str]:
        """What is to be known of what was read, a sentence each."""
        return self.stats.notes(self.legs.echoes)

    def read(self, captured: Iterable[Sequence[Captured]]) -> None:
        """Take what was captured, in lists of any size."""
        for some in captured:
            for one in some:
                at_us = one[0]
                if isinstance(one, Seam):
                    self._pass_over(at_us)
                    continue
                if isinstance(one, Ended):
                    self._number(gap(self.now_us, Loss(0, 0, at_us, at_us, Cause.ENDED), cluster=self._cluster))
                    continue
                if not self._next_tick_us - TICK_US <= at_us < self._next_tick_us or at_us < self.now_us:
                    at_us = self._turn_clock(at_us)
                self.now_us = at_us
                if isinstance(one, SocketEvent):
                    self.stats.socket_events += 1
                    self._sockets.event(one, at_us)
                else:
                    self._look_at(one, at_us)

    def _look_at(self, packet: Packet, at_us: int) -> None:
        _, link, data, original = packet
        stats = self.stats
        stats.packets += 1
        if len(data) < original:
            stats.snap_length = max(stats.snap_length, len(data))
            stats.longest_packet = max(stats.longest_packet, original)
        if link not in LINK_TYPES:
            found = inside(link, data)
            if found is None:
                stats.links[link] += 1
                return
            link, data, original = found.link, data[found.at :], original - found.at
        segment = segment_of(link, data, original)
        if segment is None:
            segment = self._wrapped(link, data, original)
        if segment is not None:
            stats.segments += 1
            if not stats.brokers:
                self._first_look.segment(segment)
            if segment[3] & (SYN | RST):
                self._attempts.segment(segment, at_us)
            self.tcp.segment(segment, at_us)

    def _wrapped(self, link: int, data: bytes, original: int) -> Segment | None:
        """The TCP segment in a packet that a tunnel wraps, if there is one; what holds a part of one is counted."""
        networks = b""
        for _ in range(DEEPEST):
            inner = unwrap(link, data, original)
            if inner is None:
                break
            _, network, link, data, original = inner
            networks += network
            segment = segment_of(link, data, original)
            if segment is not None:
                self.stats.tunnels[inner.tunnel] += 1
                return (networks + segment[0], *segment[1:])
        self.stats.fragments += is_later_fragment(link, data)
        return None

    def tick(self, at_us: int) -> None:
        """Say that the capture has reached a time, without a packet."""
        if at_us > self.now_us:
            self.now_us = self._turn_clock(at_us)

    def interrupted(self, loss: Loss) -> None:
        """Nothing, or not everything, was captured for a time that ends now: all groups get a gap."""
        self._pass_over(loss.to_us)
        self.now_us = max(self.now_us, loss.to_us)
        self._number(gap(self.now_us, loss, cluster=self._cluster))

    def finish(self) -> None:
        """The capture has ended: pass on what waited for packets that never came."""
        self.tcp.finish()
        for topics in self._topics.values():
            self.stats.mixed |= topics.clusters if len(topics.clusters) > 1 else set()

    # --- time --------------------------------------------------------------------------------------------------------

    def _turn_clock(self, at_us: int) -> int:
        """Write ticks for the seconds that have passed; return the time that counts for the packet."""
        if self.now_us - _STEP_BACK_US < at_us < self.now_us:
            return self.now_us
        if not self.now_us or at_us < self.now_us or at_us - self.now_us > _LONGEST_PAUSE_US:
            self._pass_over(at_us)
            return at_us
        while self._next_tick_us <= at_us:
            self.tcp.tick(self._next_tick_us)
            self._number(tick(self._next_tick_us, cluster=self._cluster, connection=self._name))
            self._next_tick_us += TICK_US
        return at_us

    def _pass_over(self, at_us: int) -> None:
        """Write no ticks for the time up to ``at_us``: without them the model knows that nothing was captured."""
        if self.now_us and at_us - self.now_us > BLIND_US:
            self.stats.unseen_us += at_us - self.now_us
        self.tcp.give_up_waiting(at_us)
        self._next_tick_us = at_us - at_us % TICK_US + TICK_US

    # --- connections -------------------------------------------------------------------------------------------------

    def _accept(self, stream: Stream, segment: Segment, at_us: int) -> StreamListener | None:
        key, flags = segment[0], segment[3]
        if self._wire_ports and key[-4:-2] not in self._wire_ports and key[-2:] not in self._wire_ports:
            return None
        opened_by = {SYN: 0, SYN | ACK: 1}.get(flags & (SYN | ACK))
        return self._begun(stream, _Place(ends(key), networks(key)), opened_by, at_us)

    def _accept_socket(self, stream: Stream, event: SocketEvent, at_us: int) -> StreamListener | None:
        """The side that sends first on a new connection is the client."""
        if self._ports and not self._ports.intersection(port for _, port in event.sides):
            return None
        place = _Place(event.sides, trace=f"-{event.trace}")
        return self._begun(stream, place, event.side if event.is_whole else None, at_us)

    def _begun(self, stream: Stream, place: _Place, opened_by: int | None, at_us: int) -> StreamListener:
        self.stats.connections += 1
        if not self._key_log:
            return self._plain(stream, place, opened_by, at_us)
        return FirstBytes(
            stream,
            plain=lambda: self._plain(stream, place, opened_by, at_us),
            talk=lambda client, found_us: self._talk(stream, place, client, found_us, midway=False),
            tls=lambda client, found_us: self._tls(stream, place, client, found_us),
            stats=self.stats,
        )

    def _tls(self, stream: Stream, place: _Place, client: int, at_us: int) -> StreamListener | None:
        assert self._key_log is not None
        try:
            from streaming.mirror.pcap.tls.connection import TlsConnection  # noqa: PLC0415 - needs cryptography, see FirstBytes
        except ModuleNotFoundError:
            return None
        return TlsConnection(stream, client, self._talk(stream, place, client, at_us, midway=False), self._key_log, self.stats)

    def _plain(self, stream: Stream, place: _Place, opened_by: int | None, at_us: int) -> StreamListener:
        client = self._client_by_port(place.sides)
        if client is None:
            client = opened_by
        midway = opened_by is None
        if client is None:
            return UnidentifiedConnection(lambda side, found_us: self._recognised(stream, place, side, found_us))
        return self._talk(stream, place, client, at_us, midway=midway)

    def _client_by_port(self, sides: Sequence[Endpoint]) -> int | None:
        is_broker = [port in self._ports or (host, port) in self._brokers for host, port in sides]
        return None if is_broker[0] == is_broker[1] else int(is_broker[0])

    def _recognised(self, stream: Stream, place: _Place, client: int, at_us: int) -> CapturedConnection:
        talk = self._talk(stream, place, client, at_us, midway=True)
        stream.listener = talk
        return talk

    def _talk(self, stream: Stream, place: _Place, client: int, at_us: int, *, midway: bool) -> CapturedConnection:
        (client_host, client_port), endpoint = place.sides[client], place.sides[1 - client]
        cluster = self._clusters.get(written(*endpoint), self._cluster)
        name = f"{client_host}:{client_port}-{endpoint[0]}:{endpoint[1]}-{at_us:x}"
        return CapturedConnection(
            self.legs.leg(endpoint, place.network),
            capture=self,
            stream=stream,
            client_side=client,
            endpoint=endpoint,
            cluster=cluster,
            connection=f"{name}{place.suffix}",
            client_address=client_host,
            at_us=at_us,
            midway=midway,
            frame_cap=self._frame_cap,
            topics=self._topics[cluster],
            software=self._software,
        )

    # --- what connections report --------------------------------------------------------------------------------------

    def is_broker(self, endpoint: Endpoint) -> bool:
        """Whether the operator named this port, or it has proved to be Kafka's."""
        return endpoint in self._brokers or endpoint[1] in self._ports

    def proven(self, talk: CapturedConnection) -> None:
        """The connection is one between a client and a broker."""
        self._brokers.add(talk.endpoint)
        self.stats.brokers[f"{talk.endpoint[0]}:{talk.endpoint[1]}"] += 1

    def _mirrored(self, record: MirrorRecord) -> None:
        kind, group, stats = record.kind, record.group, self.stats
        if kind is Kind.REQUEST or kind is Kind.RESPONSE:
            stats.frames += 1
            stats.cut_frames += record.cut_bytes > record.capped_bytes
            if group:
                stats.groups.add(group)
        elif kind is Kind.GAP and group is not None and group not in stats.groups:
            return  # nothing is known of the group that could be wrong now
        self._number(record)

    def _number(self, record: MirrorRecord) -> None:
        numbered = record._replace(partition=0, offset=self.next_offset)
        numbered.body = record.body
        self.next_offset += 1
        self._write(numbered)


class _Place(NamedTuple):
    """Between whom a connection is."""

    sides: tuple[Endpoint, Endpoint]
    network: bytes = b""
    trace: str = ""

    @property
    def suffix(self) -> str:
        """What distinguishes its name from that of a connection with the same addresses."""
        return f"-network-{self.network.hex()}" if self.network else self.trace


def in_order(captures: Sequence[Iterator[Sequence[Captured]]]) -> Iterator[Sequence[Captured]]:
    """The content of several captures by their time: parts of one, one after the other, or made at several places at once."""
    return captures[0] if len(captures) == 1 else _merged(captures)


def _merged(captures: Sequence[Iterator[Sequence[Captured]]]) -> Iterator[Sequence[Captured]]:
    """As they come: before a capture is read on, what was merged until then is given."""
    merged: list[Captured] = []
    files_before = files_open = 0
    ended: list[Ended] = []  # that no other file has followed
    for one in merge(*map(_with_marks, captures), key=itemgetter(0)):
        if ended and one[0] > ended[0].at_us + _FOLLOWS_US:
            merged.append(ended.pop(0))
        if isinstance(one, Seam):
            if files_before and not files_open:
                merged.append(one)
            files_before += 1
            files_open += 1
            ended = ended[:-1]
        elif isinstance(one, Ended):
            files_open -= 1
            ended = [*ended, one] if files_open else []
        elif one is not _PAUSE:
            merged.append(one)
        elif merged:
            yield merged
            merged = []


def _with_marks(captured: Iterator[Sequence[Captured]]) -> Iterator[Captured]:
    """With a seam where packets begin, and the end of them. A file of sockets may hold one among many, so its end says nothing."""
    holds_packets = False
    newest_us = 0
    for some in captured:
        if some and not isinstance(some[0], SocketEvent):
            if not holds_packets:
                holds_packets = True
                yield Seam(some[0][0])
            newest_us = some[-1][0]
        yield from some
        yield _PAUSE
    if holds_packets:
        yield Ended(newest_us)


_PAUSE: Final[Packet] = (-1, -1, b"", 0)  # before all times, so that merging goes on with it at once
_FOLLOWS_US: Final = 3_500_000
"""How soon the next part of a capture begins after the one before it: heartbeats come every 3 s, and sessions are longer."""

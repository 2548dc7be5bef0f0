"""What was met in a capture, and why there is nothing in it to replay."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from coordinator_model.wording import counted, plural
from streaming.mirror.pcap.links import in_words

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

_TLS_RECORDS: Final = (b"\x16\x03", b"\x17\x03")  # a handshake, and data of a connection that was open before
_REASONS: Final = 50
_HEADERS: Final = 14 + 8 + 40 + 20
"""Bytes of Ethernet with two VLAN tags, IPv6 and TCP."""


@dataclass
class CaptureStats:
    """What was met in a capture."""

    packets: int = 0
    unseen_us: int = 0  #: how long nothing was captured, in pauses that the model notices: between two files, or without any packet
    segments: int = 0  #: packets that hold TCP
    socket_events: int = 0  #: events that proxies recorded of their sockets
    fragments: int = 0  #: packets that hold a part of a TCP segment without its header
    connections: int = 0  #: TCP connections, those of other ports than asked for left out
    brokers: Counter[str] = field(default_factory=Counter)  #: broker address → its connections that proved to be Kafka's
    foreign: int = 0  #: connections that are not Kafka's
    encrypted: int = 0  #: … of which begin as TLS does
    decrypted: int = 0  #: TLS connections whose secrets are in the key log
    refused_tls: Counter[str] = field(default_factory=Counter)  #: why other TLS connections could not be read, with a key log
    opaque: Counter[str] = field(default_factory=Counter)  #: why connections with a broker could not be followed any further
    lost_bytes: int = 0  #: bytes with whole frames among them that were not captured, of connections with requests of groups
    losses: int = 0  #: holes that they make
    lost_elsewhere: int = 0  #: such bytes of connections with brokers that had named no group until then
    tunnels: Counter[str] = field(default_factory=Counter)  #: what TCP packets were wrapped in → how many
    links: Counter[int] = field(default_factory=Counter)  #: packets of link types that cannot be read
    groups: set[str] = field(default_factory=set)
    mixed: set[str] = field(default_factory=set)  #: ids of clusters whose brokers' addresses were not distinguished
    frames: int = 0  #: mirrored requests and responses, once for each group that they name
    cut_frames: int = 0  #: those of them of which bytes were not captured
    snap_length: int = 0  #: bytes that were captured of a packet that was cut
    longest_packet: int = 0  #: bytes of the longest packet that was cut, before it was

    def count_opaque(self, reason: str) -> None:
        """Count a connection with a broker that cannot be followed; reasons may hold numbers, so not all are kept apart."""
        self.opaque[reason if reason in self.opaque or len(self.opaque) < _REASONS else "other reasons"] += 1

    def count_foreign(self, first: bytes) -> None:
        """Count a connection that is not Kafka's, as far as it can be read; with its first bytes."""
        self.foreign += 1
        self.connection_began(first)

    def count_lost(self, count: int, *, among_groups: bool) -> None:
        """Count bytes of a connection with a broker that were not captured, and frames with them.

        :param among_groups: whether the connection has named a group before.
        """
        if among_groups:
            self.losses += 1
            self.lost_bytes += count
        else:
            self.lost_elsewhere += count

    def connection_began(self, first: bytes) -> None:
        """Note the first bytes of a connection that is not Kafka's, or whose broker the operator named by its port."""
        self.encrypted += first.startswith(_TLS_RECORDS)

    def why_nothing(self, ports: Collection[int] = (), causes: Mapping[str, int] = MappingProxyType({})) -> str | None:
        """Why there is nothing to replay, as a half sentence behind the capture's name; None if there is something.

        :param ports: those asked for.
        :param causes: what keeps Kafka from being recognised, each with the number of connections that it concerns.
        """
        if self.brokers:
            return None
        if not self.packets and not self.socket_events:
            return "holds no packets"
        if self.packets and self.links.total() == self.packets:
            kinds = ", ".join(in_words(link) for link in sorted(self.links))
            return f"holds packets of link type {kinds} only, which cannot be read (see https://www.tcpdump.org/linktypes.html)"
        if not self.segments and 0 < self.snap_length < _HEADERS:
            cut = f"cut at {self.snap_length} bytes, which leaves no TCP header"
            return f"holds {counted(self.packets, 'packet')}, {cut}: capture with a longer snap length (tcpdump -s 0)"
        if not self.segments and not self.socket_events:
            return f"holds {counted(self.packets, 'packet')}, and none of them is TCP"
        if not self.connections:
            named = " or ".join(str(port) for port in sorted(ports))
            return (
                f"holds no TCP connection with port {named} that carries data: check --port, or leave it out"
                if ports
                else (
                    f"holds {counted(self.segments + self.socket_events, 'TCP packet')}, and none that begins a connection or carries data"
                )
            )
        if max(causes.values(), default=0) >= self.connections:
            reasons = "; ".join([*causes, *self.refused_tls])
            return f"holds {counted(self.connections, 'TCP connection')}, and it cannot be told whether they speak Kafka: {reasons}"
        encrypted = f"; {self.encrypted} of them use TLS, which only a key log opens (--key-log)" if self.encrypted else ""
        refused = "".join(f"; of {count:,}: {reason}" for reason, count in (*self.refused_tls.most_common(), *causes.items()))
        return f"holds {counted(self.connections, 'TCP connection')}, and none of them speaks Kafka{encrypted}{refused}"

    def why_no_groups(self, what: str, why_nothing: str | None, where: str) -> str | None:
        """Why no frame of a group was captured so far, and the next step, as a sentence; None if there was one.

        :param what: is captured.
        :param why_nothing: why no Kafka was recognised, if so.
        :param where: what decides which packets are read.
        """
        if self.frames:
            return None
        if why_nothing is None:
            brokers = ", ".join(address for address, _ in self.brokers.most_common(3))
            return (
                f"Kafka is seen at {brokers}, and no request of a group: the coordinator of these groups is another broker, or nothing "
                "consumes. Watch where that broker's connections pass."
            )
        if self.encrypted:
            step = "Read the broker's own log (--request-log), or put a tap before it that ends TLS (docs/tap.md)"
        elif self.segments:
            step = f"Check on the broker which port and interface its clients use, and {where}"
        else:
            step = f"Check that this machine is a broker or a client, and {where}"
        return f"{what}: so far this {why_nothing}. {step}."

    def notes(self, echoes: int) -> Iterator[str]:
        """What is to be known of what was read, a sentence each.

        :param echoes: connections that repeat others.
        """
        brokers = ", ".join(f"{address} ({count})" for address, count in self.brokers.most_common(8))
        more = f" and {len(self.brokers) - 8} more" if len(self.brokers) > 8 else ""
        sizes = [counted(self.packets, "packet")] * (self.packets > 0) + [counted(self.socket_events, "event")] * (
            self.socket_events > 0
        )
        yield f"{' and '.join(sizes)}; connections to brokers: {brokers}{more}"
        if self.unseen_us:
            unseen = f"{self.unseen_us / 1_000_000:,.0f} s"
            yield f"nothing was captured for {unseen} of that time: no packet of any kind, or the time between two files"
        if self.mixed:
            yield (
                f"brokers of {counted(len(self.mixed), 'cluster')} ({', '.join(sorted(self.mixed))}) are in it and were not distinguished: "
                "groups of one name count as one group. replay distinguishes them in a file, by brokers' addresses, not in a pipe"
            )
        if not self.frames:
            yield "none of these connections coordinates a group"
        if self.foreign:
            tls = f", {self.encrypted} of them TLS" if self.encrypted else ""
            yield f"{counted(self.foreign, 'other connection')} without Kafka{tls}"
        if self.decrypted:
            yield f"decrypted: {counted(self.decrypted, 'TLS connection')}"
        for reason, count in self.refused_tls.most_common():
            yield f"{counted(count, 'connection')} could not be decrypted: {reason}"
        for reason, count in self.opaque.most_common():
            yield f"{counted(count, 'connection')} to a broker could not be decoded: {reason}"
        if echoes:
            yield f"{counted(echoes, 'connection')} ignored: repeats of others, as behind a proxy"
        if self.cut_frames:
            short = (
                f": the capture keeps {self.snap_length:,} bytes of a packet, and packets have up to {self.longest_packet:,} (tcpdump -s 0 "
                "keeps all)"
            )
            yield (
                f"{counted(self.cut_frames, 'group frame')} {plural(self.cut_frames, 'was', 'were')} not captured to "
                f"{plural(self.cut_frames, 'its', 'their')} end{short if self.snap_length else ''}"
            )
        if self.losses:
            yield (
                f"{counted(self.lost_bytes, 'byte')} of connections with group requests "
                f"{plural(self.lost_bytes, 'was', 'were')} not captured ({counted(self.losses, 'gap')}); their groups get a gap"
            )
        if self.lost_elsewhere:
            yield (
                f"{counted(self.lost_elsewhere, 'byte')} of other broker connections "
                f"{plural(self.lost_elsewhere, 'was', 'were')} not captured; these had named no group"
            )
        if self.fragments:
            yield (
                f"{counted(self.fragments, 'IP fragment')} of TCP packets cannot be reassembled, and "
                f"{plural(self.fragments, 'counts', 'count')} as not captured"
            )
        for tunnel, count in self.tunnels.most_common():
            yield f"{counted(count, 'TCP packet')} {plural(count, 'was', 'were')} wrapped in {tunnel}"
        for link, count in self.links.most_common():
            yield f"{counted(count, 'packet')} of link type {in_words(link)} cannot be read"

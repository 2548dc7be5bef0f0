"""What commands say at the end of the input that they have read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator_model.wording import counted, plural
from streaming.mirror.broker_log.reader import RequestLogReader
from streaming.mirror.pcap.links import in_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streaming.mirror.pcap.capture_reader import CaptureReader
    from streaming.mirror.pcap.capture_stats import CaptureStats


def notes_of(reader: CaptureReader | RequestLogReader) -> Iterator[str]:
    """What a reader has found in its input beside the records, a sentence each."""
    return reader.notes() if isinstance(reader, RequestLogReader) else notes_of_capture(reader.stats, reader.legs.echoes)


def notes_of_capture(stats: CaptureStats, echoes: int) -> Iterator[str]:
    brokers = ", ".join(f"{address} ({count})" for address, count in stats.brokers.most_common(8))
    more = f" and {len(stats.brokers) - 8} more" if len(stats.brokers) > 8 else ""
    sizes = [counted(stats.packets, "packet")] * (stats.packets > 0) + [counted(stats.socket_events, "event")] * (
        stats.socket_events > 0
    )
    yield f"{' and '.join(sizes)}; connections to brokers: {brokers}{more}"
    if stats.unseen_us:
        unseen = f"{stats.unseen_us / 1_000_000:,.0f} s"
        yield f"nothing was captured for {unseen} of that time: no packet of any kind, or the time between two files"
    if stats.mixed:
        yield (
            f"brokers of {counted(len(stats.mixed), 'cluster')} ({', '.join(sorted(stats.mixed))}) are in it and were not distinguished: "
            "groups of one name count as one group. replay distinguishes them in a file, by brokers' addresses, not in a pipe"
        )
    if not stats.frames:
        yield "none of these connections coordinates a group"
    if stats.foreign:
        tls = f", {stats.encrypted} of them TLS" if stats.encrypted else ""
        yield f"{counted(stats.foreign, 'other connection')} without Kafka{tls}"
    if stats.decrypted:
        yield f"decrypted: {counted(stats.decrypted, 'TLS connection')}"
    for reason, count in stats.refused_tls.most_common():
        yield f"{counted(count, 'connection')} could not be decrypted: {reason}"
    for reason, count in stats.opaque.most_common():
        yield f"{counted(count, 'connection')} to a broker could not be decoded: {reason}"
    if echoes:
        yield f"{counted(echoes, 'connection')} ignored: repeats of others, as behind a proxy"
    if stats.cut_frames:
        short = (
            f": the capture keeps {stats.snap_length:,} bytes of a packet, and packets have up to {stats.longest_packet:,} (tcpdump -s 0 "
            "keeps all)"
        )
        yield (
            f"{counted(stats.cut_frames, 'group frame')} {plural(stats.cut_frames, 'was', 'were')} not captured to "
            f"{plural(stats.cut_frames, 'its', 'their')} end{short if stats.snap_length else ''}"
        )
    if stats.losses:
        yield (
            f"{counted(stats.lost_bytes, 'byte')} of connections with group requests "
            f"{plural(stats.lost_bytes, 'was', 'were')} not captured ({counted(stats.losses, 'gap')}); their groups get a gap"
        )
    if stats.lost_elsewhere:
        yield (
            f"{counted(stats.lost_elsewhere, 'byte')} of other broker connections "
            f"{plural(stats.lost_elsewhere, 'was', 'were')} not captured; these had named no group"
        )
    if stats.fragments:
        yield (
            f"{counted(stats.fragments, 'IP fragment')} of TCP packets cannot be reassembled, and "
            f"{plural(stats.fragments, 'counts', 'count')} as not captured"
        )
    for tunnel, count in stats.tunnels.most_common():
        yield f"{counted(count, 'TCP packet')} {plural(count, 'was', 'were')} wrapped in {tunnel}"
    for link, count in stats.links.most_common():
        yield f"{counted(count, 'packet')} of link type {in_words(link)} cannot be read"

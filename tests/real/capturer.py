"""Writes the packets of an interface to standard output, as ``tcpdump -U -w -`` does: ``python -m tests.real.capturer lo 9092``."""

from __future__ import annotations

import select
import struct
import sys

from streaming.mirror.pcap.packet_socket import PacketSocket

_RAW = 101


def main() -> None:
    out = sys.stdout.buffer
    out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 0x40000, _RAW))
    with PacketSocket(sys.argv[1], [int(sys.argv[2])]) as reading:
        while True:
            select.select([reading], [], [], 0.1)
            for at_us, _, data, length in reading.read():
                out.write(struct.pack("<IIII", *divmod(at_us, 1_000_000), len(data), length) + data)
            out.flush()


if __name__ == "__main__":
    main()

"""Packets of an interface, on the loopback device: each once, of the ports that are asked for alone."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import time

import pytest

from streaming.errors import SetupError
from streaming.mirror.pcap import packet_socket
from streaming.mirror.pcap.packet_socket import ANY, InterfaceGoneError, PacketSocket
from streaming.mirror.pcap.segments import segment_of

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="a packet socket needs root or cap_net_raw")

NOBODYS = 1
"""A port that nobody uses: until a test asks for its own port, it must not read the packets of other tests."""


def said_through(reading: PacketSocket, address: str) -> list[bytes]:
    """What is captured of a connection on which both sides say one word."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, 0), family=family) as server:
        port = server.getsockname()[1]
        reading.filter([port])
        with socket.create_connection((address, port)) as client, server.accept()[0] as other:
            client.sendall(b"asked")
            other.recv(9)
            other.sendall(b"answered")
            client.recv(9)
    payloads: list[bytes] = []
    until = time.monotonic() + 10
    while b"answered" not in payloads and time.monotonic() < until:
        select.select([reading], [], [], 0.1)
        for _, link, data, length in reading.read():
            segment = segment_of(link, data, length)
            assert segment is not None
            assert port in {int.from_bytes(segment[0][-4:-2], "big"), int.from_bytes(segment[0][-2:], "big")}
            payloads += [segment[4]] if segment[4] else []
    return payloads


@needs_root
@pytest.mark.parametrize("interface", [ANY, "lo"])
@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_each_packet_of_the_loopback_device_is_read_once(interface: str, address: str) -> None:
    with PacketSocket(interface, [NOBODYS]) as reading:
        assert said_through(reading, address) == [b"asked", b"answered"]
        assert reading.dropped() == 0


@needs_root
def test_an_interface_that_goes_down_is_said() -> None:
    name = f"rm{os.getpid() % 100_000}"
    if subprocess.run(["ip", "link", "add", name, "type", "dummy"], check=False, capture_output=True).returncode:
        pytest.skip("no interface can be made here")
    try:
        subprocess.run(["ip", "link", "set", name, "up"], check=True)
        with PacketSocket(name) as reading:
            assert reading.read() == []
            subprocess.run(["ip", "link", "set", name, "down"], check=True)
            with pytest.raises(InterfaceGoneError, match=f"^interface {name}: network is down$"):
                reading.read()
    finally:
        subprocess.run(["ip", "link", "del", name], check=True)


@needs_root
def test_an_interface_that_does_not_exist_is_said() -> None:
    with pytest.raises(InterfaceGoneError, match=r"^interface nothing0: no such device$"):
        PacketSocket("nothing0")


def test_without_the_right_the_command_that_grants_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> socket.socket:
        raise PermissionError

    monkeypatch.setattr(packet_socket.socket, "socket", refused)
    with pytest.raises(SetupError, match=r"sudo setcap cap_net_raw\+ep /\S+python"):
        PacketSocket()

"""The proxy itself, without Kafka: every byte goes through, whatever it is, and neither side is held up or overrun."""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_model.wire.record import Kind, unpack_tick
from streaming.mirror import bridge
from streaming.mirror import tap as proxy
from streaming.mirror.listener import Listener, TapError
from streaming.mirror.tap import Tap
from tests.streaming.mirror.tap_ends import HOST, Sink, echo, run, until


@contextlib.asynccontextmanager
async def tapped(broker, **options):
    """A tap before a server that handles each connection with ``broker(reader, writer)``."""
    server = await asyncio.start_server(broker, HOST, 0, limit=2**16)
    port = server.sockets[0].getsockname()[1]
    sink = Sink()
    async with Tap([Listener(HOST, 0, HOST, port)], sink, **options) as tap:
        tap.sink = sink
        yield tap
    server.close()


async def connect(tap: Tap):
    host, _, port = tap.addresses[0].rpartition(":")
    return await asyncio.open_connection(host, int(port))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.binary(min_size=1, max_size=3000), max_size=8))
def test_whatever_the_bytes_they_go_through_both_ways(portions):
    async def scenario():
        async with tapped(echo) as tap:
            reader, writer = await connect(tap)
            for portion in portions:
                writer.write(portion)
                await writer.drain()
            writer.write_eof()
            assert await reader.read() == b"".join(portions)
            writer.close()
            await until(lambda: tap.stats.open_connections == 0)

    run(scenario())


def test_twenty_megabytes_go_through_while_frames_are_followed():
    payload = bytes(range(256)) * 80_000
    frame = (len(payload) + 8).to_bytes(4, "big") + b"\0\x07\0\1\0\0\0\1" + payload

    async def scenario():
        async with tapped(echo) as tap:
            reader, writer = await connect(tap)
            writer.write(frame)
            writer.write_eof()
            assert await reader.read() == frame
            writer.close()

    run(scenario())


def test_a_half_closed_connection_still_gets_its_answer():
    async def answer_at_the_end(reader, writer):
        everything = await reader.read()
        writer.write(everything[::-1])
        writer.close()

    async def scenario():
        async with tapped(answer_at_the_end) as tap:
            reader, writer = await connect(tap)
            writer.write(b"abc")
            writer.write_eof()
            assert await reader.read() == b"cba"
            await until(lambda: tap.stats.open_connections == 0)
            writer.close()

    run(scenario())


def test_a_broker_that_closes_first_closes_the_client():
    async def hang_up(reader, writer):
        await reader.readexactly(1)
        writer.write(b"bye")
        writer.close()

    async def scenario():
        async with tapped(hang_up) as tap:
            reader, writer = await connect(tap)
            writer.write(b"x")
            assert await reader.read() == b"bye"
            writer.close()
            await until(lambda: tap.stats.open_connections == 0)

    run(scenario())


@pytest.mark.parametrize("slow", ["broker", "client"])
def test_a_slow_reader_slows_its_peer_down_instead_of_filling_memory(slow):
    total = 64 * 2**20
    go_on = asyncio.Event()
    received = 0

    async def pour(writer) -> int:
        sent = 0
        with contextlib.suppress(ConnectionError):
            while sent < total:
                writer.write(bytes(2**16))
                await writer.drain()
                sent += 2**16
                pour.sent = sent
        writer.close()
        return sent

    async def drink(reader) -> None:
        nonlocal received
        await go_on.wait()
        while data := await reader.read(2**18):
            received += len(data)

    async def broker(reader, writer):
        if slow == "broker":
            await drink(reader)
        else:
            await pour(writer)
        writer.close()

    async def scenario():
        pour.sent = 0
        async with tapped(broker) as tap:
            reader, writer = await connect(tap)
            work = asyncio.create_task(pour(writer) if slow == "broker" else drink(reader))
            before = -1
            while before != pour.sent or pour.sent == 0:  # until nothing moves any more
                before = pour.sent
                await asyncio.sleep(0.2)
            assert pour.sent < total / 2, "kernel buffers and the tap's own, no more"
            for bridge in tap._bridges:
                assert bridge.client.get_write_buffer_size() + bridge.broker.get_write_buffer_size() < 2**20
            go_on.set()
            await work
            await until(lambda: received == total)

    run(scenario())


def test_a_broker_that_is_away_ends_the_connection_and_is_counted(caplog):
    async def scenario():
        with socket.socket() as taken:
            taken.bind((HOST, 0))  # bound, but nobody listens
            async with Tap([Listener(HOST, 0, HOST, taken.getsockname()[1])], Sink()) as tap:
                reader, _ = await connect(tap)
                with contextlib.suppress(ConnectionError):
                    assert await reader.read() == b""
                await until(lambda: tap.stats.open_connections == 0)
                assert tap.stats.unreachable.total() == 1

    run(scenario())
    assert "cannot be reached" in caplog.text


def test_an_outage_of_a_broker_is_said_once_then_with_a_count_and_when_it_is_over(caplog, monkeypatch):
    """Two outages made 1,162 lines."""
    monkeypatch.setattr(proxy, "SAY_EVERY_S", 0.5)
    where = []

    async def turned_away(tap, count):
        for _ in range(count):
            reader, writer = await connect(tap)
            with contextlib.suppress(ConnectionError):
                await reader.read()
            writer.close()
        await until(lambda: tap.stats.open_connections == 0)

    async def scenario():
        with socket.socket() as taken:
            taken.bind((HOST, 0))
            port = taken.getsockname()[1]
        sink = Sink()
        async with Tap([Listener(HOST, 0, HOST, port)], sink) as tap:
            await turned_away(tap, 50)
            assert len(caplog.records) == 1
            await asyncio.sleep(0.5)
            await turned_away(tap, 50)
            server = await asyncio.start_server(lambda _reader, writer: writer.close(), HOST, port)
            await turned_away(tap, 1)
            server.close()
            assert tap.stats.unreachable == {f"{HOST}:{port}": 100}
            failed = [record for record in sink if record.kind is Kind.UNREACHED]
            assert [(record.broker, record.client_address, record.group) for record in failed] == [(f"{HOST}:{port}", HOST, None)]
            where.append(f"broker {HOST}:{port}")

    run(scenario())
    (broker,) = where
    first, again, over = [record.getMessage() for record in caplog.records]
    assert first.startswith(f"{broker} cannot be reached: ")
    assert first.endswith("its clients are turned away until it can")
    assert re.fullmatch(rf"{broker} has not been reached for \d+ s: .*; 51 connections were turned away", again)
    assert re.fullmatch(rf"{broker} is reached again after \d+ s; 100 connections were turned away meanwhile", over)


def test_stopping_ends_the_connections():
    async def scenario():
        async with tapped(echo) as tap:
            reader, writer = await connect(tap)
            writer.write(b"x")
            await reader.readexactly(1)
            await tap.stop()
            assert tap.stats.open_connections == 0
            with contextlib.suppress(ConnectionError):
                assert await reader.read() == b""

    run(scenario())


def test_a_client_that_leaves_while_the_broker_is_dialled_leaves_nothing_behind(monkeypatch):
    async def scenario():
        monkeypatch.setattr(bridge, "DIAL_TIMEOUT_S", 1.0)
        async with tapped(echo) as tap:
            loop = asyncio.get_running_loop()
            dial, arrived, hold = loop.create_connection, asyncio.Event(), asyncio.Event()

            given_up = False

            async def slowly(*args, **options):
                nonlocal given_up
                arrived.set()
                try:
                    await hold.wait()
                except asyncio.CancelledError:
                    given_up = True
                    raise
                return await dial(*args, **options)

            host, _, port = tap.addresses[0].rpartition(":")
            _, writer = await asyncio.open_connection(host, int(port))
            await until(lambda: all(bridge.broker for bridge in tap._bridges) and tap.stats.open_connections == 1)
            monkeypatch.setattr(loop, "create_connection", slowly)
            with socket.create_connection((host, int(port))) as leaving:
                await arrived.wait()
                leaving.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            await until(lambda: tap.stats.open_connections == 1)
            assert given_up
            hold.set()
            writer.close()
            await until(lambda: tap.stats.open_connections == 0)

    run(scenario())


def test_a_connection_ends_once():
    """The broker's side may come up just when the client has left, and then goes away too."""

    async def scenario():
        async with tapped(echo) as tap:
            _, writer = await connect(tap)
            await until(lambda: tap._bridges)
            (bridge,) = tap._bridges
            tap.ended(bridge)
            tap.ended(bridge)
            assert tap.stats.open_connections == 0
            writer.close()

    run(scenario())


def test_a_sink_that_fails_does_not_disturb_the_client(caplog):
    class Failing:
        def write(self, record) -> None:
            raise ZeroDivisionError

    async def scenario():
        server = await asyncio.start_server(echo, HOST, 0)
        async with server, Tap([Listener(HOST, 0, HOST, server.sockets[0].getsockname()[1])], Failing()) as tap:
            reader, writer = await connect(tap)
            frame = bytes.fromhex("0000000d 000c0063 00000001 000163 0000".replace(" ", ""))  # a Heartbeat of no known version
            for _ in range(3):
                writer.write(frame)
                assert await reader.readexactly(len(frame)) == frame
            writer.close()

    run(scenario())
    assert "the mirror's sink failed" in caplog.text


def test_ticks_come_at_their_pace_and_in_order():
    async def scenario():
        async with tapped(echo, tick_s=0.01, cluster="c1") as tap:
            await until(lambda: len(tap.sink) >= 5)
            [address] = tap.addresses
        ticks = tap.sink
        assert {(tick.kind, tick.group, tick.cluster) for tick in ticks} == {(Kind.TICK, None, "c1")}
        [place] = {unpack_tick(tick.frame).place for tick in ticks}
        assert place is not None
        assert (place.host, place.listeners.partition("=")[0]) == (socket.gethostname(), address)
        times = [tick.at_us for tick in ticks]
        assert times == sorted(set(times))

    run(scenario())


def test_a_clock_that_is_set_back_a_little_stands_still(monkeypatch):
    tap = Tap([], Sink())
    for now_ns, expected_us in [(10_000_000_000, 10_000_000), (9_000_000_000, 10_000_000), (1_000_000_000, 1_000_000)]:
        monkeypatch.setattr("streaming.mirror.tap.time.time_ns", lambda now_ns=now_ns: now_ns)
        assert tap.now_us() == expected_us


class TestErrors:
    @pytest.mark.parametrize(
        "text", ["", "9092", "a:1", "a:1=b", "a:1=b:0", "a:1=b:65536", "a:x=b:1", ":1=b:1", "a:1=b:1=c:1", "::1:1=b:1", "a:1=:1"]
    )
    def test_a_listener_that_cannot_be_read(self, text):
        with pytest.raises(TapError, match=r"is not a listener: write HOST:PORT=BROKER_HOST:PORT"):
            Listener.parse(text)

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("0.0.0.0:9092=broker-1.example:9093", Listener("0.0.0.0", 9092, "broker-1.example", 9093)),
            ("[::1]:0=[fe80::1%eth0]:9093", Listener("::1", 0, "fe80::1%eth0", 9093)),
        ],
    )
    def test_a_listener_that_can(self, text, expected):
        assert Listener.parse(text) == expected

    def test_an_address_in_use_is_named(self):
        async def scenario():
            with socket.socket() as taken:
                taken.bind((HOST, 0))
                taken.listen()
                port = taken.getsockname()[1]
                with pytest.raises(TapError, match=f"cannot listen on {HOST}:{port}: address already in use"):
                    await Tap([Listener(HOST, port, HOST, 1)], Sink()).start()

        run(scenario())

    def test_an_address_of_another_machine_is_named(self):
        with pytest.raises(TapError, match=r"cannot listen on 192\.0\.2\.1:9092: (cannot|can.t) assign requested address; "):
            run(Tap([Listener("192.0.2.1", 9092, HOST, 1)], Sink()).start())

    def test_a_name_to_listen_on_that_cannot_be_resolved_is_named(self):
        with pytest.raises(TapError, match=r"cannot listen on nowhere\.invalid:9092: (?!unknown error)\S+"):
            run(Tap([Listener("nowhere.invalid", 9092, HOST, 1)], Sink()).start())

    def test_a_broker_that_cannot_be_resolved_is_named(self):
        with pytest.raises(TapError, match=r"cannot resolve broker broker\.invalid:9093"):
            run(Tap([Listener(HOST, 0, "broker.invalid", 9093)], Sink()).start())


def test_what_a_client_says_at_once_arrives_although_asyncio_reads_too_early(monkeypatch):
    """Up to Python 3.11.3 a transport that was paused when its connection was made reads nevertheless."""
    transport = asyncio.selector_events._SelectorSocketTransport
    monkeypatch.setattr(transport, "_add_reader", lambda self, number, read, *more: self._loop._add_reader(number, read, *more))
    dialled = asyncio.BaseEventLoop.create_connection

    async def late(loop, *arguments, **options):
        await asyncio.sleep(0.1)
        return await dialled(loop, *arguments, **options)

    monkeypatch.setattr(asyncio.BaseEventLoop, "create_connection", late)

    async def scenario():
        loop = asyncio.get_running_loop()
        async with tapped(echo) as tap:
            client = socket.create_connection((HOST, int(tap.addresses[0].rpartition(":")[2])))
            client.sendall(b"at once")
            client.setblocking(False)
            assert await loop.sock_recv(client, 100) == b"at once"
            client.close()

    run(scenario())


def test_both_sides_are_kept_alive_while_nothing_is_said():
    """Load balancers forget a silent connection after some minutes; the system's own first probe comes after two hours."""

    async def scenario():
        async with tapped(echo) as tap:
            reader, writer = await connect(tap)
            writer.write(b"x")
            assert await reader.readexactly(1) == b"x"
            (between,) = tap._bridges
            for side in (between.client, between.broker):
                own = side.get_extra_info("socket")
                assert own.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
                assert own.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 60
                assert own.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL) == 15
            writer.close()

    run(scenario())


def test_a_name_that_does_not_resolve_here_is_reached_at_the_address_that_is_given():
    async def scenario():
        server = await asyncio.start_server(echo, HOST, 0)
        listener = Listener(HOST, 0, "broker-1.invalid", server.sockets[0].getsockname()[1])
        with pytest.raises(TapError, match=r"cannot resolve broker broker-1\.invalid:\d+.*--resolve"):
            await Tap([listener], Sink()).start()
        async with Tap([listener], Sink(), resolved={"broker-1.invalid": HOST}) as tap:
            reader, writer = await connect(tap)
            writer.write(b"x")
            assert await reader.readexactly(1) == b"x"
            writer.close()
        server.close()

    run(scenario())

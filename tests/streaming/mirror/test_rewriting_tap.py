"""A tap that rewrites, before brokers made by hand: where clients are sent, and what ends a connection."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
import statistics
import time
from collections import defaultdict, deque

import pytest

from coordinator_model.wire.constants import FIND_COORDINATOR
from coordinator_model.wire.record import Kind, MirrorRecord, unpack_tick
from streaming.mirror.listener import Listener, TapError
from streaming.mirror.rewriting.known_brokers import KnownBrokers
from streaming.mirror.rewriting.stand_in import StandIn
from streaming.mirror.rewriting.walk import KNOWN
from streaming.mirror.tap import Tap
from streaming.mirror.tap_tls import CertificateFiles, TapTls
from tests.certificates import Authority
from tests.golden import transcript
from tests.streaming.mirror.tap_ends import HOST, Sink, run


def sized(frame: bytes) -> bytes:
    return len(frame).to_bytes(4, "big") + frame


def ask(key: int, version: int, correlation_id: int = 1, body: bytes = b"") -> bytes:
    head = b"".join(number.to_bytes(2, "big") for number in (key, version)) + correlation_id.to_bytes(4, "big")
    return sized(head + b"\xff\xff" + body)


def metadata(*brokers: tuple[int, str, int], rest: bytes = b"") -> bytes:
    """Body of a Metadata answer, version 0."""
    listed = b"".join(
        node_id.to_bytes(4, "big") + len(host).to_bytes(2, "big") + host.encode() + port.to_bytes(4, "big")
        for node_id, host, port in brokers
    )
    return len(brokers).to_bytes(4, "big") + listed + (rest or bytes(4))


def brokers_in(frame: bytes) -> list[tuple[int, str, int]]:
    """What the answer of :func:`metadata` tells a client."""
    at, found = 8, []
    for _ in range(int.from_bytes(frame[4:8], "big")):
        node_id, length = int.from_bytes(frame[at : at + 4], "big"), int.from_bytes(frame[at + 4 : at + 6], "big")
        host = frame[at + 6 : at + 6 + length].decode()
        at += 6 + length
        found.append((node_id, host, int.from_bytes(frame[at : at + 4], "big")))
        at += 4
    return found


async def read(reader: asyncio.StreamReader) -> bytes:
    return await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))


class Brokers:
    """Servers that answer Metadata (version 0) with each other's addresses, and anything else with their own number."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.addresses: dict[int, tuple[str, int]] = {}
        self.answer: bytes | None = None  # in place of their own
        self.asked: list[bytes] = []

    @contextlib.asynccontextmanager
    async def running(self):
        servers = [await self.start(node_id) for node_id in range(1, self.count + 1)]
        yield self
        for server in servers:
            server.close()

    async def start(self, node_id: int):
        async def serve(reader, writer) -> None:
            with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
                while True:
                    request = await read(reader)
                    self.asked.append(request)
                    own = metadata(*((known, *where) for known, where in self.addresses.items()))
                    body = own if request[:2] == b"\0\3" else bytes([node_id])
                    writer.write(sized(request[4:8] + body) if self.answer is None else self.answer)

        server = await asyncio.start_server(serve, HOST, 0)
        self.addresses[node_id] = HOST, server.sockets[0].getsockname()[1]
        return server


def free_ports(count: int) -> range:
    import random

    while True:
        first = random.randrange(20_000, 30_000)
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            for port in range(first, first + count):
                stack.enter_context(socket.create_server((HOST, port)))
            return range(first, first + count)


@contextlib.asynccontextmanager
async def tapped(brokers: Brokers, stand_in: StandIn | None, tls: TapTls | None = None, **options):
    sink = Sink()
    async with Tap([Listener(HOST, 0, *brokers.addresses[1])], sink, stand_in=stand_in, tls=tls, **options) as tap:
        tap.sink = sink
        yield tap


async def connect(tap: Tap, port: int | None = None, **options):
    host, _, bound = tap.addresses[0].rpartition(":")
    return await asyncio.open_connection(host, port or int(bound), **options)


async def told(tap: Tap, port: int | None = None, **options) -> list[tuple[int, str, int]]:
    """The brokers that a client is told of."""
    reader, writer = await connect(tap, port, **options)
    writer.write(ask(3, 0))
    found = brokers_in(await read(reader))
    writer.close()
    return found


async def reached(tap: Tap, port: int) -> int:
    """The number of the broker behind a port."""
    reader, writer = await connect(tap, port)
    writer.write(ask(12, 4))
    number = (await read(reader))[4]
    writer.close()
    return number


def test_a_client_is_told_the_taps_ports_and_reaches_each_broker_there() -> None:
    async def scenario() -> None:
        ports = free_ports(5)
        async with Brokers(3).running() as brokers, tapped(brokers, StandIn(KnownBrokers(ports))) as tap:
            found = await told(tap)
            assert found == [(node_id, HOST, ports[node_id % 5]) for node_id in (1, 2, 3)]
            assert [await reached(tap, port) for _, _, port in found] == [1, 2, 3]
            assert await told(tap, found[2][2]) == found
            mirrored = {record.broker for record in tap.sink if record.kind is Kind.REQUEST}
            assert mirrored == {f"{HOST}:{port}" for _, port in brokers.addresses.values()}

    run(scenario())


def test_brokers_whose_advertised_names_do_not_resolve_here_are_reached_at_the_addresses_that_are_given() -> None:
    async def scenario() -> None:
        ports = free_ports(5)
        async with Brokers(3).running() as brokers:
            named = {f"broker-{node_id}.invalid": HOST for node_id in (1, 2)}
            for node_id in (1, 2, 3):
                brokers.addresses[node_id] = f"broker-{node_id}.invalid", brokers.addresses[node_id][1]
            async with tapped(brokers, StandIn(KnownBrokers(ports)), resolved=named) as tap:
                found = await told(tap)
                assert found == [(node_id, HOST, ports[node_id % 5]) for node_id in (1, 2, 3)]
                assert [await reached(tap, port) for _, _, port in found[:2]] == [1, 2]
                with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                    await reached(tap, found[2][2])
                mirrored = {record.broker for record in tap.sink if record.kind is Kind.REQUEST}
                assert mirrored == {f"{host}:{port}" for host, port in map(brokers.addresses.get, (1, 2))}

    run(scenario())


def test_small_frames_are_sent_at_once_on_the_ports_of_brokers_too() -> None:
    """The event loop asks for it, but not on sockets that name no protocol, as those opened for a broker."""

    async def scenario() -> None:
        ports = free_ports(5)
        async with Brokers(1).running() as brokers, tapped(brokers, StandIn(KnownBrokers(ports))) as tap:
            reader, writer = await connect(tap)
            writer.write(ask(3, 0))
            _, _, port = brokers_in(await read(reader))[0]
            own_reader, own_writer = await connect(tap, port)
            own_writer.write(ask(12, 4))
            await read(own_reader)
            sides = [side for bridge in tap._bridges for side in (bridge.client, bridge.broker)]
            at_once = [side.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) for side in sides]
            assert at_once == [1, 1, 1, 1]
            writer.close()
            own_writer.close()

    run(scenario())


Exchanges = list[tuple[bytes, bytes]]


def conversations(name: str) -> list[Exchanges]:
    """Requests and answers of each connection of a golden transcript, as frames."""
    asked: dict[tuple[str, int], bytes] = {}
    found: dict[str, Exchanges] = defaultdict(list)
    for record in transcript.read(name):
        place = record.connection, record.exchange
        if record.kind is Kind.REQUEST:
            asked[place] = record.frame
        elif record.kind is Kind.RESPONSE and place in asked:
            found[record.connection].append((asked.pop(place), record.frame))
    return list(found.values())


async def mirrored(talks: list[Exchanges], stand_in: StandIn | None) -> tuple[list[MirrorRecord], list[Exchanges]]:
    """What a tap mirrors of the conversations, one after the other, and what clients are answered."""
    answers: dict[bytes, deque[bytes]] = defaultdict(deque)
    for request, answer in (exchange for talk in talks for exchange in talk):
        answers[request].append(answer)

    async def serve(reader, writer) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                writer.write(sized(answers[await read(reader)].popleft()))

    server = await asyncio.start_server(serve, HOST, 0)
    brokers = Brokers(1)
    brokers.addresses[1] = HOST, server.sockets[0].getsockname()[1]
    received = []
    async with tapped(brokers, stand_in) as tap:
        for talk in talks:
            reader, writer = await connect(tap)
            got = []
            for request, _ in talk:
                writer.write(sized(request))
                got.append((request, await read(reader)))
            received.append(got)
            writer.close()
            await writer.wait_closed()
    server.close()
    frames = [record for record in tap.sink if record.kind in (Kind.REQUEST, Kind.RESPONSE)]
    return [
        record._replace(at_us=0, broker="", client_address="", connection=record.connection.rpartition("-")[2]) for record in frames
    ], received


@pytest.mark.parametrize("name", ["violation-crash-loop-4.3.1", "lawful-new-protocol-4.3.1", "lawful-transactions-3.9.2"])
def test_the_same_is_mirrored_as_by_a_tap_that_rewrites_nothing(name) -> None:
    """So findings are the same: FindCoordinator is answered otherwise, and mirrored as the broker answered it."""

    async def scenario() -> None:
        talks = conversations(name)
        plain, passed = await mirrored(talks, None)
        rewritten, changed = await mirrored(talks, StandIn(KnownBrokers(free_ports(5))))
        assert passed == talks
        assert rewritten == plain
        assert len(plain) > len(_flat(talks))
        differ = {request[:2] for request, _ in set(_flat(changed)) - set(_flat(talks))}
        assert differ == {FIND_COORDINATOR.to_bytes(2, "big")}

    run(scenario())


def _flat(talks: list[Exchanges]) -> Exchanges:
    return [exchange for talk in talks for exchange in talk]


def test_ports_are_kept_when_the_tap_is_restarted_and_open_before_anybody_asks(tmp_path) -> None:
    async def scenario() -> None:
        ports, file = free_ports(5), tmp_path / "kept" / "brokers"
        async with Brokers(3).running() as brokers:
            async with tapped(brokers, StandIn(KnownBrokers(ports, file))) as tap:
                found = await told(tap)
            async with tapped(brokers, StandIn(KnownBrokers(ports, file))) as tap:
                assert [await reached(tap, port) for _, _, port in found] == [1, 2, 3]

    run(scenario())


def test_a_broker_that_moves_keeps_its_port(tmp_path) -> None:
    async def scenario() -> None:
        ports, file = free_ports(5), tmp_path / "brokers"
        async with Brokers(2).running() as brokers, tapped(brokers, StandIn(KnownBrokers(ports, file))) as tap:
            before = await told(tap)
            moved = await brokers.start(2)
            assert await told(tap) == before
            assert await reached(tap, before[1][2]) == 2
            assert json.loads(file.read_text())["brokers"]["2"]["port"] == brokers.addresses[2][1]
            moved.close()

    run(scenario())


def test_a_port_in_use_is_passed_over_and_none_left_ends_the_connection(caplog) -> None:
    async def scenario() -> None:
        ports = free_ports(2)
        async with Brokers(2).running() as brokers, tapped(brokers, StandIn(KnownBrokers(ports))) as tap:
            used = await asyncio.start_server(lambda *_: None, HOST, ports[1])
            assert await asyncio.wait_for(ended(tap, ask(3, 0)), 5)
            used.close()
            assert tap.stand_in.stats.ended == 1
            assert "none of the 2 ports is left for broker 2: give more with --ports" in caplog.text
            assert tap.stand_in.brokers[1].tap_port == ports[0]

    run(scenario())


async def ended(tap: Tap, request: bytes) -> bool:
    """Whether the tap ends the connection instead of passing the answer on."""
    reader, writer = await connect(tap)
    writer.write(request)
    with contextlib.suppress(ConnectionError):
        assert await reader.read() == b""
    writer.close()
    return True


@pytest.mark.parametrize(
    ("key", "answer", "why"),
    [
        (3, sized(bytes((0, 0, 0, 1)) + b"\x7f\xff\xff\xff" + bytes(40)), "counts 2147483647 elements at byte 8"),
        (3, sized(bytes((0, 0, 0, 1, 0, 0, 0, 1)) + bytes(4) + b"\x00\xff" + bytes(9)), "runs past its end at byte 14"),
        (3, sized(bytes((0, 0, 0, 9)) + metadata()), "response 9 came where request 1 was to be answered"),
        (3, b"\xff\xff\xff\xff" + bytes(100), "not Kafka: a response of 4294967295 bytes"),
        (3, sized(bytes((0, 0, 0, 1)) + metadata((1, "b1", 70_000))), "broker 1 is said to be at b1:70000"),
    ],
)
def test_a_hostile_answer_ends_its_connection_with_a_sentence_and_a_count(key, answer, why, caplog) -> None:
    async def scenario() -> None:
        async with Brokers(1).running() as brokers, tapped(brokers, StandIn(KnownBrokers(free_ports(3)))) as tap:
            reader, writer = await connect(tap)
            writer.write(ask(12, 4))
            await read(reader)
            brokers.answer = answer
            assert await ended(tap, ask(key, 0))
            assert tap.stand_in.stats.ended == 1
            assert why in caplog.text
            brokers.answer = None
            writer.write(ask(12, 4))
            assert (await read(reader))[4] == 1
            writer.close()

    run(scenario())


def test_a_version_that_is_not_known_never_reaches_the_client(caplog) -> None:
    async def scenario() -> None:
        async with Brokers(1).running() as brokers, tapped(brokers, StandIn(KnownBrokers(free_ports(3)))) as tap:
            assert await ended(tap, ask(3, KNOWN[3].last + 1))
            assert f"MetadataResponse version {KNOWN[3].last + 1} is not known to this release" in caplog.text

    run(scenario())


def test_an_unknown_version_of_api_versions_is_asked_so_that_the_broker_refuses_it() -> None:
    async def scenario() -> None:
        async with Brokers(1).running() as brokers, tapped(brokers, StandIn(KnownBrokers(free_ports(3)))) as tap:
            brokers.answer = sized(bytes((0, 0, 0, 1, 0, 35, 0, 0, 0, 1, 0, 18, 0, 0, 0, 99)))
            reader, writer = await connect(tap)
            request = ask(18, KNOWN[18].last + 1, body=b"\0\1\1\0")
            for at in range(len(request)):
                writer.write(request[at : at + 1])
                await asyncio.sleep(0)
            assert await read(reader) == bytes((0, 0, 0, 1, 0, 35, 0, 0, 0, 1, 0, 18, 0, 0, 0, KNOWN[18].last))
            assert brokers.asked == [b"\0\x12\x7f\xff" + request[8:]]
            assert tap.stand_in.lowered == [f"ApiVersions 99 → {KNOWN[18].last}"]
            writer.close()

    run(scenario())


def test_ticks_say_what_clients_are_not_offered() -> None:
    async def scenario() -> None:
        stand_in = StandIn(KnownBrokers(free_ports(3)))
        async with Brokers(1).running() as brokers, tapped(brokers, stand_in, tick_s=0.01) as tap:
            sink = tap.sink
            brokers.answer = sized(bytes((0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 3, 0, 0, 0, 99)))
            reader, writer = await connect(tap)
            writer.write(ask(18, 0))
            await read(reader)
            seen = len(sink)
            while not any(record.kind is Kind.TICK for record in sink[seen:]):  # noqa: ASYNC110 - a sink only takes records
                await asyncio.sleep(0.01)
            ticks = [record for record in sink if record.kind is Kind.TICK]
            assert unpack_tick(ticks[0].frame).not_offered == ()
            assert unpack_tick(ticks[-1].frame).not_offered == (f"Metadata 99 → {KNOWN[3].last}",)
            writer.close()

    run(scenario())


def test_mechanisms_that_sign_the_host_name_are_said_once(caplog) -> None:
    async def scenario() -> None:
        async with Brokers(1).running() as brokers, tapped(brokers, StandIn(KnownBrokers(free_ports(3)))) as tap:
            brokers.answer = sized(bytes((0, 0, 0, 1, 0, 0, 0, 0, 0, 0)))
            for mechanism in (b"SCRAM-SHA-512", b"PLAIN", b"OAUTHBEARER", b"GSSAPI", b"GSSAPI"):
                reader, writer = await connect(tap)
                writer.write(ask(17, 1, body=len(mechanism).to_bytes(2, "big") + mechanism))
                await read(reader)
                writer.close()
            warned = [line for line in caplog.messages if "log in with" in line]
            assert len(warned) == 1
            assert warned[0].startswith(
                "clients that log in with GSSAPI are refused by brokers behind a tap with --rewrite: its tickets"
            )
            assert tap.stand_in.stats.mechanisms == {"GSSAPI": 2}

    run(scenario())


def test_a_large_metadata_answer_holds_the_loop_no_longer_than_without_rewriting() -> None:
    """10,000 topics of 10 partitions, as Metadata version 1 has them; by the CPU time of the loop's longest turn."""
    partition = bytes(2 + 4 + 4) + (3).to_bytes(4, "big") + bytes(12) + (3).to_bytes(4, "big") + bytes(12)
    topic = bytes(2) + (40).to_bytes(2, "big") + b"t" * 40 + (10).to_bytes(4, "big") + partition * 10
    rest = (10_000).to_bytes(4, "big") + topic * 10_000

    async def scenario() -> None:
        async with (
            Brokers(1).running() as brokers,
            tapped(brokers, StandIn(KnownBrokers(free_ports(3)))) as tap,
            tapped(brokers, None) as plain,
        ):
            brokers.answer = sized(bytes((0, 0, 0, 1)) + metadata((1, "b" * 200, 9092), rest=rest))
            rounds = [(await longest_turn(plain), await longest_turn(tap)) for _ in range(8)][1:]
            (_, unchanged), (_, answer) = rounds[0]
            assert (sized(unchanged), brokers_in(answer)) == (brokers.answer, [(1, HOST, tap.stand_in.brokers[1].tap_port)])
            assert answer.endswith(rest)
            without, rewriting = (statistics.median(way[0] for way in ways) for ways in zip(*rounds, strict=True))
            assert rewriting < 3 * without

    run(scenario())


async def longest_turn(tap: Tap) -> tuple[float, bytes]:
    """The CPU time of the longest turn of the loop while a client asks for metadata, and the answer."""
    longest = 0.0

    async def watch() -> None:
        nonlocal longest
        while True:
            begin = time.thread_time()
            await asyncio.sleep(0)
            longest = max(longest, time.thread_time() - begin)

    reader, writer = await connect(tap)
    watching = asyncio.create_task(watch())
    writer.write(ask(3, 0))
    answer = await read(reader)
    watching.cancel()
    writer.close()
    return longest, answer


class TestByName:
    NAME = "broker-{id}.tap.example"

    def tls(self, folder) -> tuple[TapTls, ssl.SSLContext]:
        authority = Authority(folder)
        certificate, key, _ = authority.identity("tap", hosts=["tap.example", "*.tap.example"])
        context = ssl.create_default_context(cafile=str(authority.certificate))
        return TapTls(own=CertificateFiles(certificate, key)), context

    def test_all_brokers_are_reached_at_one_port(self, tmp_path) -> None:
        async def scenario() -> None:
            tls, context = self.tls(tmp_path)
            stand_in = StandIn(KnownBrokers(None), self.NAME, by_name=True)
            async with Brokers(3).running() as brokers, tapped(brokers, stand_in, tls) as tap:
                port = int(tap.addresses[0].rpartition(":")[2])
                found = await told(tap, ssl=context, server_hostname="tap.example")
                assert found == [(node_id, f"broker-{node_id}.tap.example", port) for node_id in (1, 2, 3)]
                for node_id, host, _ in found:
                    reader, writer = await connect(tap, ssl=context, server_hostname=host)
                    writer.write(ask(12, 4))
                    assert (await read(reader))[4] == node_id
                    writer.close()

        run(scenario())

    def test_without_tls_or_names_it_is_refused(self) -> None:
        with pytest.raises(TapError, match=r"one port for all brokers needs --advertise with \{id\}"):
            StandIn(KnownBrokers(None), "tap.example", by_name=True)
        with pytest.raises(TapError, match="one port for all brokers needs TLS"):
            Tap([], Sink(), stand_in=StandIn(KnownBrokers(None), self.NAME, by_name=True))

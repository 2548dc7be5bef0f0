"""TLS connections in captures are read with the secrets of a key log. Python's ``ssl`` (OpenSSL) makes both."""

from __future__ import annotations

import io
import os
import re
import select
import socket
import ssl
import struct
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from coordinator_model import wire
from coordinator_model.wire.record import Kind, MirrorRecord
from streaming.mirror.pcap.capture_reader import CaptureReader
from streaming.mirror.pcap.files import opened, packets
from streaming.mirror.pcap.tls.connection import (
    CUT,
    HELD_AT_MOST,
    NO_SECRETS,
    NOT_CAPTURED,
    OLD_CIPHER,
    OTHER_SECRETS,
)
from streaming.mirror.pcap.tls.first_bytes import BEGAN_BEFORE, NO_CRYPTOGRAPHY
from streaming.mirror.pcap.tls.key_log import KeyLog, KeyLogError
from tests.certificates import Authority
from tests.golden import transcript
from tests.needs import needs
from tests.streaming.mirror.wires import (
    CLIENT,
    Connection,
    Segment,
    block,
    captured,
    enhanced,
    interface,
    pcap,
    request,
    response,
    section,
    sized,
)

HOST = "127.0.0.1"
ROOT = Path(__file__).parents[4]
SUITES_1_2 = [
    "ECDHE-ECDSA-AES128-GCM-SHA256",
    "ECDHE-ECDSA-AES256-GCM-SHA384",
    "ECDHE-ECDSA-CHACHA20-POLY1305",
]


class Party:
    """One end of a TLS connection: what it wants to send is taken as bytes."""

    def __init__(self, context: ssl.SSLContext, *, server: bool) -> None:
        self.received, self.sends = ssl.MemoryBIO(), ssl.MemoryBIO()
        name = None if server else "127.0.0.1"
        self.tls = context.wrap_bio(self.received, self.sends, server_side=server, server_hostname=name)

    def shake(self) -> bool:
        try:
            self.tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        return True


class TlsLine(Connection):
    """A connection whose ends encrypt what they send."""

    def shake_hands(self, parties: tuple[Party, Party]) -> TlsLine:
        self.parties = parties
        for _ in range(4):
            for side, party in enumerate(parties):
                party.shake()
                self._flush(side)
        return self

    def client(self, data: bytes, *, mss: int | None = None) -> None:
        self._encrypted(0, data, mss)

    def broker(self, data: bytes, *, mss: int | None = None) -> None:
        self._encrypted(1, data, mss)

    def _encrypted(self, side: int, data: bytes, mss: int | None) -> None:
        self.parties[side].tls.write(data)
        self._flush(side, mss)

    def _flush(self, side: int, mss: int | None = None) -> None:
        sent = self.parties[side].sends.read()
        self.parties[1 - side].received.write(sent)
        self._data(side, sent, mss)


HELLOS = {
    "short hello": lambda client: client.set_ecdh_curve("prime256v1"),  # one group, which no release makes post-quantum
    "long hello": lambda client: client.set_alpn_protocols(
        ["x" * 250] * 8
    ),  # as long as a post-quantum key share makes it, and more
}
"""What makes a ClientHello fit into a snap length of 1,000 bytes, or not, whatever release of OpenSSL is below."""


class Scene:
    """A broker's and a client's TLS, and where the secrets are logged.

    :param hello: one of :data:`HELLOS`; else the ClientHello is what OpenSSL makes of it.
    """

    def __init__(self, folder: Path, hello: str | None = None) -> None:
        self.log = folder / "keys.log"
        authority = Authority(folder / "authority")
        identity = authority.identity("broker", address="127.0.0.1")
        self.server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.server.load_cert_chain(identity.certificate, identity.key)
        self.client = ssl.create_default_context(cafile=str(authority.certificate))
        self.client.keylog_filename = str(self.log)
        if hello is not None:
            HELLOS[hello](self.client)
        self.segments: list[Segment] = []

    def parties(self) -> tuple[Party, Party]:
        return Party(self.client, server=False), Party(self.server, server=True)

    def line(self, **ends) -> TlsLine:
        line = TlsLine(self.segments, **ends)
        line.open()
        return line.shake_hands(self.parties())


class Read:
    """What a reader makes of a capture with a key log."""

    def __init__(self, capture: bytes, key_log: KeyLog | None, ports: tuple[int, ...] = ()) -> None:
        found: list[MirrorRecord] = []
        self.reader = CaptureReader(found.append, ports=ports, key_log=key_log)
        secrets = key_log.add_all if key_log is not None else (lambda _: None)
        self.reader.read(packets(opened(io.BytesIO(capture)), lambda _: None, secrets))
        self.reader.finish()
        self.stats = self.reader.stats
        self.records = [record for record in found if record.kind is not Kind.TICK]

    def told(self) -> list[tuple]:
        return [(record.kind.value, record.group, record.exchange, record.cut_bytes, record.frame) for record in self.records]


@pytest.fixture(params=HELLOS)
def scene(tmp_path, request) -> Scene:
    return Scene(tmp_path, request.param)


def beats(line: Connection, *numbers: int) -> Connection:
    for number in numbers:
        line.heartbeat(number)
    return line


def plainly(*numbers: int) -> list[tuple]:
    segments: list[Segment] = []
    beats(Connection(segments).open(), *numbers).close()
    return Read(pcap(segments), None).told()


def test_tls_1_3_says_what_the_same_says_plainly(scene):
    beats(scene.line(), 0, 1, 2).close()
    found = Read(pcap(scene.segments), KeyLog(scene.log))
    assert found.told() == plainly(0, 1, 2)
    assert found.stats.decrypted == 1
    assert found.reader.why_nothing() is None


@pytest.mark.parametrize("suite", ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"])
def test_each_cipher_of_tls_1_3_is_read(tmp_path, suite):
    """Python cannot choose among them, OpenSSL's configuration can: for a whole process."""
    configured = tmp_path / "openssl.cnf"
    configured.write_text(f"openssl_conf=a\n[a]\nssl_conf=b\n[b]\nsystem_default=c\n[c]\nCiphersuites={suite}\n")
    environment = {**os.environ, "OPENSSL_CONF": str(configured)}
    made = subprocess.run(
        [sys.executable, "-m", "tests.streaming.mirror.pcap.test_tls", str(tmp_path)],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    assert made.stdout.decode().split() == [suite]
    found = Read((tmp_path / "tls.pcap").read_bytes(), KeyLog(tmp_path / "keys.log"))
    assert found.told() == plainly(0, 1)


@pytest.mark.parametrize("suite", SUITES_1_2)
def test_each_cipher_of_tls_1_2_is_read(scene, suite):
    scene.client.maximum_version = ssl.TLSVersion.TLSv1_2
    scene.client.set_ciphers(suite)
    beats(scene.line(), 0, 1).close()
    assert Read(pcap(scene.segments), KeyLog(scene.log)).told() == plainly(0, 1)


def test_a_client_that_shows_a_certificate_is_read(scene, tmp_path):
    authority = Authority(tmp_path / "clients")
    identity = authority.identity("client")
    scene.client.load_cert_chain(identity.certificate, identity.key)
    scene.server.load_verify_locations(authority.certificate)
    scene.server.verify_mode = ssl.CERT_REQUIRED
    beats(scene.line(), 0, 1).close()
    assert Read(pcap(scene.segments), KeyLog(scene.log)).told() == plainly(0, 1)


@pytest.mark.parametrize("hello", [None, "long hello"])
def test_a_broker_that_asks_for_another_hello_is_read(tmp_path, hello):
    """A HelloRetryRequest: the client offers a key of a curve that the broker does not take."""
    scene = Scene(tmp_path, hello)
    scene.server.set_ecdh_curve("secp384r1")
    beats(scene.line(), 0, 1).close()
    assert Read(pcap(scene.segments), KeyLog(scene.log)).told() == plainly(0, 1)


@needs("openssl")
def test_a_client_that_changes_its_keys_is_read_on(scene, tmp_path):
    """OpenSSL's own client does so at a line that begins with K."""
    identity = Authority(tmp_path / "other").identity("broker", address=HOST)
    with socket.create_server((HOST, 0)) as server, socket.create_server((HOST, 0)) as proxy:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(identity.certificate, identity.key)
        said = [
            "openssl", "s_client", "-connect", f"{HOST}:{proxy.getsockname()[1]}", "-keylogfile", str(scene.log), "-tls1_3",
        ]  # fmt: skip
        with subprocess.Popen(said, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as client:
            line = Connection(scene.segments).open()
            wires = proxy.accept()[0], socket.create_connection(server.getsockname())
            accepted = server.accept()[0]
            recorder = threading.Thread(target=record, args=(line, wires))
            recorder.start()
            with context.wrap_socket(accepted, server_side=True) as broker:
                assert client.stdin is not None
                assert client.stderr is not None
                for told in (request(HEARTBEAT, 4, 0), b"K\n", request(HEARTBEAT, 4, 1)):
                    client.stdin.write(told)
                    client.stdin.flush()
                    if told == b"K\n":
                        assert any(b"KEYUPDATE" in line for line in client.stderr)
                    else:
                        assert broker.recv(1_000) == told
                client.kill()
            recorder.join()
    found = Read(pcap(scene.segments), KeyLog(scene.log))
    assert [record.frame for record in found.records if record.kind is Kind.REQUEST] == [
        request(HEARTBEAT, 4, number)[4:] for number in (0, 1)
    ]


def record(line: Connection, wires: tuple[socket.socket, socket.socket]) -> None:
    """Pass on what either end sends, and note it, until one of them closes."""
    with wires[0], wires[1]:
        while True:
            for wire_ in select.select(wires, [], [])[0]:
                side = wires.index(wire_)
                try:
                    data = wire_.recv(65_536)
                    wires[1 - side].sendall(data)
                except OSError:
                    return
                if not data:
                    return
                (line.broker if side else line.client)(data)


def test_records_are_read_however_they_are_cut_into_segments(scene):
    line = scene.line(mss=7)
    beats(line, 0, 1).close()
    assert Read(pcap(scene.segments), KeyLog(scene.log)).told() == plainly(0, 1)


def test_secrets_inside_the_capture_are_used(scene):
    beats(scene.line(), 0).close()
    lines = scene.log.read_bytes()
    secrets = block(10, struct.pack("<II", 0x544C534B, len(lines)) + lines)
    others = block(10, struct.pack("<II", 0x57474B4C, 4) + b"what")  # WireGuard's
    link = interface(101)
    capture = section() + link + others + secrets + b"".join(enhanced(0, one.at_us, one.ip()) for one in scene.segments)
    assert Read(capture, KeyLog()).told() == plainly(0)


@pytest.fixture
def without_cryptography(monkeypatch):
    for module in ("connection", "protection"):
        monkeypatch.delitem(sys.modules, f"streaming.mirror.pcap.tls.{module}")
    monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)


@pytest.mark.usefixtures("without_cryptography")
def test_without_the_library_that_opens_tls_what_is_plain_is_read_and_the_rest_named(scene):
    """A capture with secrets inside was refused whole, although what speaks for groups is not encrypted."""
    encrypted = beats(scene.line(client=("10.0.0.8", 41_000)), 0)
    encrypted.close()
    beats(Connection(scene.segments, at_us=encrypted.now_us).open(), 0, 1).close()
    lines = scene.log.read_bytes()
    secrets = block(10, struct.pack("<II", 0x544C534B, len(lines)) + lines)
    capture = section() + interface(101) + secrets + b"".join(enhanced(0, one.at_us, one.ip()) for one in scene.segments)
    found = Read(capture, KeyLog())
    assert found.told() == plainly(0, 1)
    assert found.stats.refused_tls == {NO_CRYPTOGRAPHY: 1}
    assert f"1 connection could not be decrypted: {NO_CRYPTOGRAPHY}" in found.stats.notes(0)


@pytest.mark.usefixtures("without_cryptography")
def test_without_the_library_that_opens_tls_a_capture_of_nothing_else_names_it(scene):
    beats(scene.line(), 0).close()
    assert NO_CRYPTOGRAPHY in (Read(pcap(scene.segments), KeyLog(scene.log)).reader.why_nothing() or "")


def test_secrets_that_are_logged_late_are_waited_for(scene, tmp_path):
    line = scene.line()
    handshake = len(scene.segments)
    beats(line, 0)
    first = len(scene.segments)
    beats(line, 1).close()
    late = tmp_path / "late.log"
    late.touch()
    found: list[MirrorRecord] = []
    reader = CaptureReader(found.append, key_log=KeyLog(late))
    lines = scene.log.read_bytes()
    parts = (0, handshake, lines[:-10]), (handshake, first, lines[-10:]), (first, len(scene.segments), b"")
    for begin, end, logged in parts:
        reader.read(packets(opened(io.BytesIO(pcap(scene.segments[begin:end]))), lambda _: None))
        assert (found == []) is (end <= first)
        with late.open("ab") as file:
            file.write(logged)
    reader.finish()
    told = [(record.kind.value, record.group, record.exchange, record.cut_bytes, record.frame) for record in found]
    assert told == plainly(0, 1)
    assert [record.at_us for record in found] == sorted(record.at_us for record in found)


def test_connections_with_and_without_tls_stand_beside_each_other(scene):
    scene.line().heartbeat(0, group="encrypted")
    Connection(scene.segments, client=("10.0.0.8", 41_000)).open().heartbeat(0, group="plain", member_id="m-2")
    found = Read(pcap(scene.segments), KeyLog(scene.log))
    assert {record.group for record in found.records} == {"encrypted", "plain"}


# ---------------------------------------------------------------------------------------------------- what cannot be read


def test_without_its_secrets_a_connection_is_said_to_be_unreadable(scene, tmp_path):
    beats(scene.line(), 0).close()
    empty = tmp_path / "empty.log"
    empty.touch()
    found = Read(pcap(scene.segments), KeyLog(empty))
    assert found.records == []
    assert found.stats.refused_tls == {NO_SECRETS: 1}
    assert NO_SECRETS in (found.reader.why_nothing() or "")


def test_what_waits_for_secrets_is_bounded(scene, tmp_path):
    line = scene.line()
    for _ in range(HELD_AT_MOST // 16_000 + 2):
        line.client(bytes(16_000))
    empty = tmp_path / "empty.log"
    empty.touch()
    found: list[MirrorRecord] = []
    reader = CaptureReader(found.append, key_log=KeyLog(empty))
    reader.read(packets(opened(io.BytesIO(pcap(scene.segments))), lambda _: None))
    assert reader.stats.refused_tls == {NO_SECRETS: 1}


def test_at_a_port_of_a_broker_an_unreadable_connection_is_a_gap(scene, tmp_path):
    beats(scene.line(), 0).close()
    empty = tmp_path / "empty.log"
    empty.touch()
    found = Read(pcap(scene.segments), KeyLog(empty), ports=(9092,))
    assert [record.kind for record in found.records] == [Kind.GAP, Kind.GAP]  # it began, and how long it lasted
    assert found.stats.opaque == {NO_SECRETS: 1}


def test_a_connection_that_began_before_the_capture_is_said_to_be_unreadable(scene):
    line = scene.line()
    handshake = len(scene.segments)
    beats(line, 0, 1).close()
    found = Read(pcap(scene.segments[handshake:]), KeyLog(scene.log))
    assert (found.records, found.stats.refused_tls) == ([], {BEGAN_BEFORE: 1})


def test_a_handshake_that_was_not_captured_whole_is_said(scene):
    line = TlsLine(scene.segments)
    line.open()
    line.shake_hands(scene.parties())
    beats(line, 0).close()
    hello = next(segment for segment in scene.segments if segment.source[1] == 9092 and segment.payload)
    found = Read(pcap([segment for segment in scene.segments if segment is not hello]), KeyLog(scene.log))
    assert (found.records, found.stats.refused_tls) == ([], {NOT_CAPTURED: 1})


def test_secrets_of_another_connection_are_said_not_to_open_it(scene):
    beats(scene.line(), *range(70)).close()
    lines = [line.split() for line in scene.log.read_text().splitlines() if not line.startswith("#")]
    wrong = "".join(f"{label} {random} {secret[2:]}00\n" for label, random, secret in lines)
    key_log = KeyLog()
    key_log.add_all(wrong.encode())
    found = Read(pcap(scene.segments), key_log)
    assert (found.records, found.stats.refused_tls) == ([], {OTHER_SECRETS: 1})


def test_an_old_cipher_is_said(scene):
    scene.client.maximum_version = ssl.TLSVersion.TLSv1_2
    scene.client.set_ciphers("ECDHE-ECDSA-AES128-SHA256")
    scene.server.set_ciphers("ECDHE-ECDSA-AES128-SHA256")
    beats(scene.line(), 0).close()
    assert Read(pcap(scene.segments), KeyLog(scene.log)).stats.refused_tls == {OLD_CIPHER: 1}


# ---------------------------------------------------------------------------------------------------- missing bytes


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("side", [0, 1])
def test_after_missing_records_the_next_one_is_found(scene, version, side):
    scene.client.maximum_version = version
    line = scene.line()
    beats(line, 0)
    ask, answer = request(HEARTBEAT, 4, 1), response(wire.HeartbeatResponse(), 4, 1)
    if side:
        line.client(ask)
        line.lose(lambda: line.broker(answer))
    else:
        line.lose(lambda: line.client(ask))
        line.broker(answer)
    line.acknowledge(1 - side)
    beats(line, 2, 3).close()
    found = Read(pcap(scene.segments), KeyLog(scene.log))
    kinds = [(record.kind.value, record.exchange) for record in found.records if record.kind is not Kind.GAP]
    assert ("req", 0) in kinds
    requests = [record.frame for record in found.records if record.kind is Kind.REQUEST]
    assert request(HEARTBEAT, 4, 3)[4:] in requests
    assert [record.kind for record in found.records].count(Kind.GAP) == 1
    assert found.stats.losses == 1


HEARTBEAT = wire.HeartbeatRequest(group_id="g", generation_id=3, member_id="m-1")


def test_a_record_that_was_cut_is_missing_and_the_next_one_is_read(scene):
    line = scene.line()
    beats(line, 0)
    line.heartbeat(1, member_id="m" * 3_000)
    beats(line, 2, 3).close()
    found = Read(pcap(scene.segments, snap=SNAP), KeyLog(scene.log))
    requests = [record.frame for record in found.records if record.kind is Kind.REQUEST]
    assert request(HEARTBEAT, 4, 0)[4:] in requests
    assert request(HEARTBEAT, 4, 3)[4:] in requests
    assert Kind.GAP in {record.kind for record in found.records}


SNAP = 14 + 1_000


def first_of(scene: Scene, port: int) -> Segment:
    return next(segment for segment in scene.segments if segment.source[1] == port and segment.payload)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("hello", HELLOS)
@pytest.mark.parametrize("mss", [1_460, 65_000])  # the hello in one segment, or its end in another that is captured whole
def test_a_client_hello_that_was_cut_behind_its_random_is_read(tmp_path, version, hello, mss):
    scene = Scene(tmp_path, hello)
    scene.client.maximum_version = version
    beats(scene.line(mss=mss), 0, 1).close()
    assert (len(first_of(scene, CLIENT[1]).ip()) > 1_000) is (hello == "long hello")
    found = Read(pcap(scene.segments, snap=SNAP), KeyLog(scene.log))
    assert (found.told(), found.stats.losses) == (plainly(0, 1), 0)


def test_what_the_broker_says_before_the_client_asks_can_be_cut_without_a_gap(tmp_path):
    """Certificates are long. Nothing of them is needed, and nothing of a group is lost with them."""
    scene = Scene(tmp_path, "short hello")
    beats(scene.line(mss=65_000), 0).close()
    again = scene.line(mss=65_000, client=("10.0.0.8", 40_001), at_us=scene.segments[-1].at_us)
    beats(again, 1).close()
    cut_at = len(first_of(scene, 9092).ip()) + 14 - 100
    assert len(first_of(scene, CLIENT[1]).ip()) + 14 < cut_at
    found = Read(pcap(scene.segments, snap=cut_at), KeyLog(scene.log))
    assert [record.kind.value for record in found.records] == ["open", "req", "res", "close"] * 2
    assert (found.stats.losses, found.stats.decrypted) == (0, 2)


def test_a_server_hello_that_was_cut_behind_its_cipher_is_read(scene):
    """With a post-quantum key share it is as long as the client's. What else is in the broker's first segment is cut with it."""
    beats(scene.line(mss=65_000), 0, 1).close()
    found = Read(pcap(scene.segments, snap=54 + 90), KeyLog(scene.log))
    assert (found.told(), found.stats.losses) == (plainly(0, 1), 0)


@pytest.mark.parametrize("payload", [3, 20, 42])
def test_a_client_hello_that_was_cut_before_its_random_ends_is_said(scene, payload):
    beats(scene.line(), 0).close()
    found = Read(pcap(scene.segments, snap=54 + payload), KeyLog(scene.log))
    assert (found.records, found.stats.refused_tls) == ([], {CUT.format(54 + payload): 1})
    assert found.reader.why_nothing().endswith(
        f"the beginning of the TLS handshake was cut at {54 + payload} bytes: capture with a longer snap length"
    )


def test_a_server_hello_that_was_cut_before_its_cipher_is_said(scene):
    beats(scene.line(), 0).close()
    found = Read(pcap(scene.segments, snap=54 + 60), KeyLog(scene.log))
    assert (found.records, found.stats.refused_tls) == ([], {CUT.format(114): 1})


# ---------------------------------------------------------------------------------------------------- all of it


def test_an_encrypted_transcript_has_the_records_of_the_plain_one(scene):
    """Each connection of a transcript, carried by TLS: times aside, the same records."""
    plain = captured(transcript.read("violation-stale-generation-accepted-4.3.1"))
    lines: dict[frozenset, TlsLine] = {}
    for segment in plain:
        key = frozenset({segment.source, segment.destination})
        if key not in lines:
            lines[key] = scene.line(client=segment.source, broker=segment.destination, at_us=segment.at_us, step_us=1)
        line = lines[key]
        line.now_us = max(line.now_us, segment.at_us)
        if segment.payload:
            (line.client if segment.source == line.ends[0] else line.broker)(segment.payload)
        elif segment.flags & 1 and segment.source == line.ends[0]:
            line.close()
    encrypted = pcap(sorted(scene.segments, key=lambda segment: segment.at_us))
    found, expected = Read(encrypted, KeyLog(scene.log)), Read(pcap(plain), None)
    assert sorted(found.told(), key=repr) == sorted(expected.told(), key=repr)
    assert found.stats.decrypted == len(lines)


def followed(capture: Path, key_log: Path) -> tuple[bytes, bytes]:
    """What tshark reads of the first connection: the client's bytes and the broker's."""
    told = subprocess.run(
        ["tshark", "-r", capture, "-o", f"tls.keylog_file:{key_log}", "-d", "tcp.port==9092,tls", "-q", "-z", "follow,tls,raw,0"],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line for line in told.stdout.splitlines() if re.fullmatch(r"\t?[0-9a-f]+", line)]
    sides = [[line for line in lines if line.startswith("\t") is of_the_second] for of_the_second in (False, True)]
    first, second = (bytes.fromhex("".join(side)) for side in sides)
    return (first, second) if f"Node 0: {CLIENT[0]}:{CLIENT[1]}" in told.stdout else (second, first)


@needs("tshark")
@pytest.mark.parametrize("suite", [None, *SUITES_1_2], ids=lambda suite: suite or "TLS 1.3")
def test_tshark_reads_the_same_of_the_same_file(scene, tmp_path, suite):
    if suite is not None:
        scene.client.maximum_version = ssl.TLSVersion.TLSv1_2
        scene.client.set_ciphers(suite)
    beats(scene.line(), *range(20)).close()
    capture = tmp_path / "tls.pcap"
    capture.write_bytes(pcap(scene.segments))
    records = Read(capture.read_bytes(), KeyLog(scene.log)).records
    ours = [b"".join(sized(record.frame) for record in records if record.kind is kind) for kind in (Kind.REQUEST, Kind.RESPONSE)]
    assert len(records) >= 40
    assert followed(capture, scene.log) == tuple(ours)


class TestKeyLog:
    def test_lines_that_are_not_understood_are_passed_over(self):
        log = KeyLog()
        log.add(
            b"# a comment\nEXPORTER_SECRET 00 00\nCLIENT_RANDOM zz 00\nCLIENT_RANDOM 01\nCLIENT_RANDOM 0a 0b\nCLIENT_RANDOM 0c 0"
        )
        assert log.secret(b"CLIENT_RANDOM", b"\x0a") == b"\x0b"
        assert log.secret(b"CLIENT_RANDOM", b"\x0c") is None
        log.add(b"d\n")
        assert log.secret(b"CLIENT_RANDOM", b"\x0c") == b"\x0d"

    def test_a_file_that_is_missing_is_a_sentence(self, tmp_path):
        with pytest.raises(KeyLogError, match=r"the key log .*keys\.log cannot be read: No such file"):
            KeyLog(tmp_path / "keys.log")

    @pytest.mark.parametrize(("mode", "open_to_others"), [(0o600, False), (0o640, True), (0o604, True)])
    def test_it_is_noticed_that_others_may_read_it(self, tmp_path, mode, open_to_others):
        file = tmp_path / "keys.log"
        file.touch()
        file.chmod(mode)
        assert KeyLog(file).open_to_others is open_to_others


if __name__ == "__main__":
    configured_scene = Scene(Path(sys.argv[1]))
    made = configured_scene.line()
    beats(made, 0, 1).close()
    (Path(sys.argv[1]) / "tls.pcap").write_bytes(pcap(configured_scene.segments))
    print(made.parties[0].tls.cipher()[0])

"""The tap that ends TLS: what goes through, who is refused, and certificates that are renewed."""

from __future__ import annotations

import asyncio
import logging
import ssl

import pytest

from streaming.mirror.listener import Listener
from streaming.mirror.tap import Tap
from streaming.mirror.tap_tls import CertificateFiles, TapTls, TlsError
from tests.certificates import Authority
from tests.streaming.mirror.tap_ends import HOST, Sink, echo, run, until


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path / "authority")


def files(identity) -> CertificateFiles:
    return CertificateFiles(identity.certificate, identity.key)


def of_server(identity) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(identity.certificate, identity.key)
    return context


def of_client(authority, identity=None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(authority.certificate)
    if identity is not None:
        context.load_cert_chain(identity.certificate, identity.key)
    return context


async def through(tap_tls, *, front, behind, scenario) -> Tap:
    """A tap before an echo; ``scenario`` gets what opens a connection to it."""
    server = await asyncio.start_server(echo, HOST, 0, ssl=behind)
    async with Tap([Listener(HOST, 0, HOST, server.sockets[0].getsockname()[1])], Sink(), tick_s=0.02, tls=tap_tls) as tap:
        host, _, port = tap.addresses[0].rpartition(":")

        async def connect(context=front):
            return await asyncio.open_connection(host, int(port), ssl=context, server_hostname=HOST if context else None)

        await scenario(connect, tap)
        await until(lambda: tap.stats.open_connections == 0)
    server.close()
    return tap


async def exchange(connect, tap) -> None:
    reader, writer = await connect()
    for portion in (b"first", b"x" * 300_000):
        writer.write(portion)
        assert await reader.readexactly(len(portion)) == portion
    writer.close()


@pytest.mark.parametrize("in_front", [False, True], ids=["plain clients", "TLS clients"])
@pytest.mark.parametrize("is_broker_tls", [False, True], ids=["plain brokers", "TLS brokers"])
def test_bytes_go_through_whichever_side_speaks_tls(authority, in_front, is_broker_tls):
    tap, broker = authority.identity("tap", address=HOST), authority.identity("broker", address=HOST)
    tls = TapTls(
        own=files(tap) if in_front else None,
        is_broker_tls=is_broker_tls,
        broker_authority=authority.certificate if is_broker_tls else None,
    )
    front = of_client(authority) if in_front else None
    behind = of_server(broker) if is_broker_tls else None
    run(through(tls, front=front, behind=behind, scenario=exchange))


def test_certificates_are_shown_and_asked_for_on_both_sides(authority):
    tap, broker, client = (authority.identity(name, address=HOST) for name in ("tap", "broker", "client"))
    tls = TapTls(
        own=files(tap),
        client_authority=authority.certificate,
        is_broker_tls=True,
        broker_authority=authority.certificate,
        client=files(tap),
    )
    behind = of_server(broker)
    behind.load_verify_locations(authority.certificate)
    behind.verify_mode = ssl.CERT_REQUIRED
    run(through(tls, front=of_client(authority, client), behind=behind, scenario=exchange))


def test_a_client_whose_handshake_fails_is_counted_and_said_and_others_pass(authority, caplog):
    own = authority.identity("tap", address=HOST)

    async def scenario(connect, tap):
        reader, writer = await connect(None)
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        assert await reader.read() == b""
        writer.close()
        await exchange(connect, tap)
        assert tap.stats.refused == 1

    run(through(TapTls(own=files(own)), front=of_client(authority), behind=None, scenario=scenario))
    assert caplog.records[0].getMessage().startswith("the TLS connection of 127.0.0.1 to broker 127.0.0.1:")


def test_a_broker_with_a_foreign_certificate_is_not_reached(authority, tmp_path, caplog):
    foreign = Authority(tmp_path / "foreign").identity("broker", address=HOST)

    async def scenario(connect, tap):
        reader, writer = await connect()
        assert await reader.read() == b""
        writer.close()
        assert tap.stats.unreachable.total() == 1

    tls = TapTls(is_broker_tls=True, broker_authority=authority.certificate)
    run(through(tls, front=None, behind=of_server(foreign), scenario=scenario))
    assert any("certificate verify failed" in record.getMessage() for record in caplog.records)


def test_a_certificate_that_was_renewed_is_used_and_one_that_is_broken_is_not(authority, tmp_path, caplog):
    caplog.set_level(logging.WARNING)
    own = authority.identity("tap", address=HOST)
    renewed = authority.identity("renewed", address=HOST)
    contents = renewed.certificate.read_bytes(), renewed.key.read_bytes()

    async def shown(connect) -> bytes:
        _, writer = await connect()
        certificate = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        return certificate

    async def scenario(connect, tap):
        first = await shown(connect)
        own.key.write_bytes(b"nothing")
        await until(lambda: any("the certificate before stays in use" in record.getMessage() for record in caplog.records))
        assert await shown(connect) == first
        own.certificate.write_bytes(contents[0])
        own.key.write_bytes(contents[1])
        await until(lambda: any("is used as it is now" in record.getMessage() for record in caplog.records))
        assert await shown(connect) == ssl.PEM_cert_to_DER_cert(
            contents[0].decode().partition("-----END")[0] + "-----END CERTIFICATE-----\n"
        )

    run(through(TapTls(own=files(own)), front=of_client(authority), behind=None, scenario=scenario))


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ("missing", r"cannot be read: No such file"),
        ("unreadable", r"the certificate .* with the key .* cannot be used"),
        ("encrypted", r"the key .* is encrypted"),
    ],
)
def test_a_certificate_that_cannot_be_used_is_a_sentence(authority, broken, said):
    own = authority.identity("tap", address=HOST, password="secret" if broken == "encrypted" else None)
    if broken == "missing":
        own.key.unlink()
    elif broken == "unreadable":
        own.certificate.write_text("nothing")
    with pytest.raises(TlsError, match=said):
        TapTls(own=files(own))


def test_an_authority_that_holds_no_certificate_is_a_sentence(tmp_path):
    file = tmp_path / "ca.pem"
    file.write_text("nothing")
    with pytest.raises(TlsError, match=r"ca\.pem holds no certificates in PEM"):
        TapTls(is_broker_tls=True, broker_authority=file)

"""Why a TLS connection is not trusted: each reason has its own sentence, which names the certificate."""

from __future__ import annotations

import datetime as dt
import socket
import ssl
import threading
from contextlib import contextmanager

import pytest

from streaming.kafka.trust import why_not_trusted
from tests.certificates import Authority

HOST = "127.0.0.1"


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path)


@contextmanager
def server(identity):
    """Shakes hands with whoever comes; gives its address."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(identity.certificate, identity.key)
    listening = socket.create_server((HOST, 0))

    def serve() -> None:
        while True:
            try:
                client, _ = listening.accept()
            except OSError:
                return
            with client:
                client.settimeout(5)
                try:
                    context.wrap_socket(client, server_side=True).close()
                except OSError:
                    continue

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"{HOST}:{listening.getsockname()[1]}"
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join()


def properties(authority, address, **more):
    named = {name.replace("_", "."): str(value) for name, value in more.items()}
    return {"bootstrap.servers": address, "security.protocol": "SSL", "ssl.ca.location": str(authority.certificate), **named}


def test_nothing_is_said_of_certificates_that_are_in_order(authority):
    with server(authority.identity("broker", address=HOST)) as address:
        client = authority.identity("client")
        assert why_not_trusted(properties(authority, address, ssl_certificate_location=client.certificate)) is None


def test_an_expired_certificate_of_the_broker_is_told(authority):
    until = dt.datetime.now(dt.UTC) - dt.timedelta(minutes=1)
    with server(authority.identity("broker", address=HOST, until=until)) as address:
        said = why_not_trusted(properties(authority, address))
    assert said == f"the certificate of {address}, or of its authority, has expired (its own runs until {until:%Y-%m-%d %H:%M} UTC)"


def test_a_foreign_authority_is_told(authority, tmp_path):
    stranger = Authority(tmp_path / "stranger", "stranger")
    with server(stranger.identity("broker", address=HOST)) as address:
        said = why_not_trusted(properties(authority, address))
    assert said == f"the certificate of {address} is signed by an authority (stranger) that is not in {authority.certificate}"


def test_a_wrong_host_name_is_told(authority):
    with server(authority.identity("broker", address="127.0.0.2")) as address:
        said = why_not_trusted(properties(authority, address))
        assert said == f"the certificate of {address} is made out to another host name (127.0.0.2)"
        assert why_not_trusted(properties(authority, address, ssl_endpoint_identification_algorithm="none")) is None


def test_an_expired_certificate_of_the_client_is_told(authority):
    until = dt.datetime.now(dt.UTC) - dt.timedelta(minutes=1)
    client = authority.identity("client", until=until)
    with server(authority.identity("broker", address=HOST)) as address:
        said = why_not_trusted(properties(authority, address, ssl_certificate_location=client.certificate))
    assert said == f"the client certificate {client.certificate} expired on {until:%Y-%m-%d %H:%M} UTC"


@pytest.mark.parametrize("server_of", ["127.0.0.1:1", "no-such-host.invalid:9093", "", "nonsense"])
def test_a_broker_that_is_away_tells_nothing(authority, server_of):
    assert why_not_trusted(properties(authority, server_of)) is None


def test_without_tls_there_is_nothing_to_look_at():
    assert why_not_trusted({"bootstrap.servers": "127.0.0.1:1"}) is None

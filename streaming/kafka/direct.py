"""Single requests for which librdkafka has no call, on a connection of their own with the same properties.

TLS and SASL follow librdkafka's properties. Of SASL there are PLAIN and SCRAM (RFC 5802); SaslHandshake and SaslAuthenticate are in their
versions 1 (KIP-152), the first without tagged fields.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import socket
import struct
from typing import TYPE_CHECKING, Any, Final, TypeVar

from coordinator_model import wire
from streaming.background import Closing
from streaming.kafka.trust import tls_context

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping

_CLIENT_ID: Final = "rebalance-monitor"
_SASL_HANDSHAKE, _SASL_AUTHENTICATE = 17, 36
_SCRAM: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_MAX_FRAME: Final = 64 * 2**20

Body = TypeVar("Body", bound=wire.Response)


class DirectError(Exception):
    """The broker cannot be asked, or does not answer as expected; the message says why."""


class DirectConnection(Closing):
    """One connection to one broker, logged in; a context manager.

    :param properties: of librdkafka.
    :param address: ``host:port``.
    :raises DirectError: when the broker cannot be reached, or refuses the login; and for another mechanism than PLAIN and SCRAM.
    """

    def __init__(self, properties: Mapping[str, Any], address: str, timeout_s: float) -> None:
        self._address = address
        self._number = 0
        protocol = str(properties.get("security.protocol", "PLAINTEXT")).upper()
        host, _, port = address.rpartition(":")
        host = host.strip("[]")
        try:
            self._socket: socket.socket | ssl.SSLSocket = socket.create_connection((host, int(port)), timeout_s)
        except (OSError, ValueError) as error:
            raise DirectError(f"{address} cannot be reached: {error}") from None
        try:
            if "SSL" in protocol:
                self._socket = tls_context(properties).wrap_socket(self._socket, server_hostname=host)
            if "SASL" in protocol:
                self._log_in(properties)
        except OSError as error:
            self.close()
            raise DirectError(f"{address} refuses the connection: {error}") from None
        except DirectError:
            self.close()
            raise

    def ask(self, request: wire.Request, api_version: int, expected: type[Body]) -> Body:
        """Send a request and return its answer.

        :raises DirectError: when the answer does not come, or is another.
        """
        self._number += 1
        frame = wire.encode_request(request, api_version=api_version, correlation_id=self._number, client_id=_CLIENT_ID)
        answer = self._exchange(frame)
        try:
            body = wire.decode(answer, request=False, api_key=request.API_KEY, api_version=api_version).body
        except wire.DecodeError as error:
            raise DirectError(f"{self._address} gives an unreadable answer: {error}") from None
        if not isinstance(body, expected):
            raise DirectError(f"{self._address} gives a {type(body).__name__} instead of a {expected.__name__}")
        return body

    def close(self) -> None:
        self._socket.close()

    def _exchange(self, frame: bytes) -> bytes:
        try:
            self._socket.sendall(struct.pack(">i", len(frame)) + frame)
            size = int.from_bytes(self._read(4), "big", signed=True)
            if not 4 <= size <= _MAX_FRAME:
                raise DirectError(f"{self._address} announces a frame of {size} bytes: this is not Kafka's protocol")
            return self._read(size)
        except OSError as error:
            raise DirectError(f"{self._address} does not answer: {error}") from None

    def _read(self, count: int) -> bytes:
        received = bytearray()
        while len(received) < count:
            part = self._socket.recv(min(65_536, count - len(received)))
            if not part:
                raise DirectError(f"{self._address} closes the connection")
            received += part
        return bytes(received)

    # --- SASL ---------------------------------------------------------------------------------------------------------

    def _log_in(self, properties: Mapping[str, Any]) -> None:
        mechanism = str(properties.get("sasl.mechanism", properties.get("sasl.mechanisms", ""))).upper()
        user, password = str(properties.get("sasl.username", "")), str(properties.get("sasl.password", ""))
        if mechanism != "PLAIN" and mechanism not in _SCRAM:
            raise DirectError(f"a login by {mechanism or 'no mechanism'} is not possible here, only PLAIN and SCRAM")
        answer = self._sasl(_SASL_HANDSHAKE, _text(mechanism))
        if error := int.from_bytes(answer[:2], "big", signed=True):
            raise DirectError(f"{self._address} does not take {mechanism}: {wire.error_name(error)}")
        if mechanism == "PLAIN":
            self._authenticate(f"\0{user}\0{password}".encode())
        else:
            self._scram(_SCRAM[mechanism], user, password)

    def _scram(self, digest: str, user: str, password: str) -> None:
        bare = f"n={user.replace('=', '=3D').replace(',', '=2C')},r={base64.b64encode(os.urandom(24)).decode()}"
        first = self._authenticate(f"n,,{bare}".encode()).decode()
        given = dict(part.split("=", 1) for part in first.split(","))
        without_proof = f"c=biws,r={given['r']}"
        salted = hashlib.pbkdf2_hmac(digest, password.encode(), base64.b64decode(given["s"]), int(given["i"]))
        signed = f"{bare},{first},{without_proof}".encode()
        client_key = hmac.digest(salted, b"Client Key", digest)
        signature = hmac.digest(hashlib.new(digest, client_key).digest(), signed, digest)
        proof = base64.b64encode(bytes(a ^ b for a, b in zip(client_key, signature, strict=True))).decode()
        final = self._authenticate(f"{without_proof},p={proof}".encode()).decode()
        expected = hmac.digest(hmac.digest(salted, b"Server Key", digest), signed, digest)
        if final.removeprefix("v=") != base64.b64encode(expected).decode():
            raise DirectError(f"{self._address} does not prove that it knows the password")

    def _authenticate(self, message: bytes) -> bytes:
        answer = self._sasl(_SASL_AUTHENTICATE, struct.pack(">i", len(message)) + message)
        error, length = struct.unpack_from(">hh", answer)
        at = 4 + max(0, length)
        if error:
            raise DirectError(
                f"{self._address} refuses the login: {answer[4:at].decode(errors='replace') or wire.error_name(error)}"
            )
        (size,) = struct.unpack_from(">i", answer, at)
        return answer[at + 4 : at + 4 + max(0, size)]

    def _sasl(self, api_key: int, body: bytes) -> bytes:
        """Send a request of version 1, and return the answer without its correlation id."""
        self._number += 1
        return self._exchange(struct.pack(">hhi", api_key, 1, self._number) + _text(_CLIENT_ID) + body)[4:]


def _text(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack(">h", len(encoded)) + encoded

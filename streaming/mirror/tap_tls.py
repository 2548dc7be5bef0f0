"""TLS of the tap: it ends the clients' TLS with a certificate of its own, and uses TLS to the brokers.

So it sees what is inside. The price: the brokers see the tap's certificate, not the clients'. SASL inside passes unread.

Certificates are renewed while the tap runs. The files are looked at now and then, and new connections use what is new.
"""

from __future__ import annotations

import logging
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Sequence
    from pathlib import Path

log = logging.getLogger(__name__)

_ENCRYPTED: Final = "is encrypted, and the tap has no password for it: write it unencrypted, readable by the tap alone"


class TlsError(Exception):
    """A certificate or key cannot be used; the message is one sentence that names the file."""


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """A certificate with its chain, and its key, in PEM."""

    certificate: Path
    key: Path


class TapTls:
    """What the tap needs for TLS in front of it and behind it.

    :param own: what it shows to clients; None if they do not use TLS.
    :param client_authority: certificates that sign the clients'; a client without one is refused. None if they need none.
    :param is_broker_tls: connections to the brokers use TLS.
    :param broker_authority: certificates that sign the brokers'; None for those that the system trusts.
    :param client: what it shows to brokers; None if they ask for nothing.
    :raises TlsError: when a file cannot be used.
    """

    def __init__(
        self,
        *,
        own: CertificateFiles | None = None,
        client_authority: Path | None = None,
        is_broker_tls: bool = False,
        broker_authority: Path | None = None,
        client: CertificateFiles | None = None,
    ) -> None:
        if client_authority is not None and own is None:
            raise TlsError("--tls-client-ca needs --tls-certificate and --tls-key: without them, TLS passes through the tap")
        self.front = _front(own, client_authority) if own else None  #: for connections of clients
        self.behind = _behind(broker_authority, client) if is_broker_tls else None  #: for connections to brokers
        pairs = ((self.front, own), (self.behind, client))
        self._used: Sequence[tuple[ssl.SSLContext, CertificateFiles]] = [
            (context, files) for context, files in pairs if context is not None and files is not None
        ]
        self._seen = self._written()
        self._names: WeakKeyDictionary[ssl.SSLObject, str] = WeakKeyDictionary()

    def note_names(self) -> None:
        """Keep the names that clients ask for (SNI), of connections that are open."""

        def note(connection: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
            self._names[connection] = name or ""

        assert self.front is not None
        self.front.sni_callback = note

    def name_asked(self, transport: asyncio.BaseTransport) -> str:
        """Return the name that the client of a connection has asked for, "" for none."""
        return self._names.get(transport.get_extra_info("ssl_object"), "")

    def renew(self) -> None:
        """Take certificates that were written anew; one that cannot be used is said, and the one before stays."""
        written = self._written()
        if written == self._seen:
            return
        self._seen = written
        for context, files in self._used:
            try:
                _load(context, files)
            except TlsError as error:
                log.warning("%s; the certificate before stays in use", error)
            else:
                log.warning("the certificate %s is used as it is now, for new connections", files.certificate)

    def _written(self) -> list[int]:
        """When the files were written, 0 for one that is missing."""
        paths = [path for _, files in self._used for path in (files.certificate, files.key)]
        return [path.stat().st_mtime_ns if path.exists() else 0 for path in paths]


def _front(own: CertificateFiles, client_authority: Path | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _load(context, own)
    if client_authority is not None:
        _trust(context, client_authority)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _behind(authority: Path | None, client: CertificateFiles | None) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if authority is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        _trust(context, authority)
    if client is not None:
        _load(context, client)
    return context


def _load(context: ssl.SSLContext, files: CertificateFiles) -> None:
    for path in (files.certificate, files.key):
        _check_readable(path)
    asked: list[bool] = []

    def password() -> str:
        asked.append(True)
        return ""

    try:
        context.load_cert_chain(files.certificate, files.key, password)
    except ssl.SSLError as error:
        if asked:
            raise TlsError(f"the key {files.key} {_ENCRYPTED}") from None
        raise TlsError(
            f"the certificate {files.certificate} with the key {files.key} cannot be used: {error.reason or error}"
        ) from None


def _trust(context: ssl.SSLContext, authority: Path) -> None:
    _check_readable(authority)
    try:
        context.load_verify_locations(authority)
    except ssl.SSLError as error:
        raise TlsError(f"{authority} holds no certificates in PEM: {error.reason or error}") from None


def _check_readable(path: Path) -> None:
    try:
        path.open("rb").close()
    except OSError as error:
        raise TlsError(f"{path} cannot be read: {error.strerror}") from None

"""The secrets of TLS connections, as clients and brokers log them: NSS key log lines (draft-ietf-tls-keylogfile).

They come as a file, which may still be growing while it is read, or inside a pcapng capture. They are secrets: nothing here prints or
stores them.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_LABELS: Final = frozenset(
    {
        b"CLIENT_RANDOM",  # TLS 1.2: the master secret
        b"CLIENT_HANDSHAKE_TRAFFIC_SECRET",
        b"SERVER_HANDSHAKE_TRAFFIC_SECRET",
        b"CLIENT_TRAFFIC_SECRET_0",
        b"SERVER_TRAFFIC_SECRET_0",
    }
)


class KeyLogError(Exception):
    """The file cannot be read; the message is a sentence."""


class KeyLog:
    """Secrets by the random number of the ClientHello that they belong to.

    :param path: a file to read, and to read on whenever a secret is missing.
    :raises KeyLogError: when the file cannot be opened.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._secrets: dict[tuple[bytes, bytes], bytes] = {}
        self._partial = b""
        self.open_to_others = False  #: others than its owner may read the file
        self._file = None
        if path is not None:
            try:
                self._file = path.open("rb")
            except OSError as error:
                raise KeyLogError(f"the key log {path} cannot be read: {error.strerror}") from None
            self.open_to_others = bool(os.fstat(self._file.fileno()).st_mode & (stat.S_IRGRP | stat.S_IROTH))
            self._read_on()

    def __bool__(self) -> bool:
        """Return True if there may be secrets, now or later."""
        return bool(self._secrets) or self._file is not None

    def add(self, lines: bytes) -> None:
        """Take lines; one that is not whole waits for its rest. Other lines than those with secrets that are needed are passed over."""
        *whole, self._partial = (self._partial + lines).split(b"\n")
        for line in whole:
            self._take(line)

    def add_all(self, lines: bytes) -> None:
        """Take lines that are complete."""
        for line in lines.split(b"\n"):
            self._take(line)

    def secret(self, label: bytes, client_random: bytes) -> bytes | None:
        """Return a secret, None if it is not known (yet)."""
        found = self._secrets.get((label, client_random))
        if found is None and self._read_on():
            found = self._secrets.get((label, client_random))
        return found

    def _read_on(self) -> bool:
        """Return True if there was more."""
        more = self._file.read() if self._file else b""
        if more:
            self.add(more)
        return bool(more)

    def _take(self, line: bytes) -> None:
        words = line.split()
        if len(words) != 3 or words[0] not in _LABELS:
            return
        try:
            label, client_random, secret = words[0], bytes.fromhex(words[1].decode()), bytes.fromhex(words[2].decode())
        except ValueError:
            return
        self._secrets[label, client_random] = secret

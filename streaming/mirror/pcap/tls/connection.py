"""A captured TLS connection, read with the secrets of a key log: its records are opened and their content passed on.

Of the handshake only both hellos are read. Which of the encrypted records carry application data is known by trying: what the key does not
open belongs to the handshake still. So a key log needs no secrets of the handshake.

A program may log a secret after its connection has sent data, so bytes wait for it. Missing bytes hide where records begin; the next record
is found where the key opens one. And a record of TLS 1.3 may hold padding, so it is never known how much content is missing. A post-quantum
key share makes hellos longer than many a snap length, so only their first bytes are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from streaming.mirror.pcap.tls.first_bytes import APPLICATION_DATA, CLIENT_HELLO, CONTENT_BEGINS, HANDSHAKE, HEADER, TLS_1_2
from streaming.mirror.pcap.tls.protection import SUITES_1_2, SUITES_1_3, TAG, Opened, Protection, Protection13, protections_1_2

if TYPE_CHECKING:
    from streaming.mirror.pcap.capture_stats import CaptureStats
    from streaming.mirror.pcap.connection import CapturedConnection
    from streaming.mirror.pcap.reassembly import Stream
    from streaming.mirror.pcap.tls.key_log import KeyLog

HELD_AT_MOST: Final = 2**20
"""Bytes of a connection that wait for its secrets."""

NO_SECRETS: Final = "it uses TLS, and the key log has no secrets of it"
OTHER_SECRETS: Final = "it uses TLS, and the secrets in the key log do not open it"
NOT_CAPTURED: Final = "it uses TLS, and its handshake was not captured whole"
CUT: Final = "it uses TLS, and the beginning of the TLS handshake was cut at {:,} bytes: capture with a longer snap length"
OLD_CIPHER: Final = "it uses TLS without authenticated encryption, or a version before 1.2"

_CHANGE_CIPHER_SPEC: Final = 20
_SERVER_HELLO, _KEY_UPDATE = b"\2", 24
_LARGEST: Final = 2**14 + 256
_SMALLEST: Final = HEADER + TAG + 1
_HANDSHAKE_RECORDS: Final = 64  # at most, of one direction
_RANDOM: Final = slice(6, 38)  # of either hello
_SESSION_ID: Final = 38  # where its length stands; a ServerHello's cipher suite comes behind it
_RETRY: Final = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")  # RFC 8446, 4.1.3


class _Hello(NamedTuple):
    suite: int
    random: bytes

    @property
    def is_1_3(self) -> bool:
        """The cipher suites of TLS 1.3 are of no other version."""
        return self.suite in SUITES_1_3


class _Direction:
    """What one side sends."""

    def __init__(self) -> None:
        self.data = b""
        self.protection: Protection | None = None
        self.is_protected = False  #: TLS 1.2: its ChangeCipherSpec has been seen; TLS 1.3: the hello was
        self.has_opened = False  #: a record was opened, so the handshake's are over
        self.unopened = 0
        self.missing = 0  #: bytes, while the next record is searched for; 0 while its place is known
        self.cut_at: int | None = None  #: of the record that is being read so many first bytes were captured; None while all are

    @property
    def lacking(self) -> int:
        """How many bytes the record that has begun needs yet; 0 if its length is not known."""
        return _size(self.data) - len(self.data) if len(self.data) >= HEADER else 0

    def fill(self, count: int) -> None:
        """Stand in for bytes of the record that has begun."""
        if self.cut_at is None:
            self.cut_at = len(self.data)
        self.data += bytes(count)

    def next_record(self) -> tuple[bytes, bytes] | None:
        """Header and captured body of the next record; None while it is not complete."""
        size = _size(self.data)
        if len(self.data) < size:
            return None
        header, body = self.data[:HEADER], self.data[HEADER : size if self.cut_at is None else self.cut_at]
        self.data, self.cut_at = self.data[size:], None
        return header, body


def _size(record: bytes) -> int:
    return HEADER + int.from_bytes(record[3:HEADER], "big")


class TlsConnection:
    """A listener to a TCP stream that passes on what the TLS records hold.

    :param client_side: the side that sent the ClientHello.
    :param talk: takes the content.
    """

    def __init__(self, stream: Stream, client_side: int, talk: CapturedConnection, key_log: KeyLog, stats: CaptureStats) -> None:
        self._stream = stream
        self._client_side = client_side
        self._talk = talk
        self._key_log = key_log
        self._stats = stats
        self._sides = (_Direction(), _Direction())
        self._client_random = b""
        self._hello: _Hello | None = None
        self._waits_for_secrets = False
        self._has_asked = False  # the client has sent content, or that may have been missed: the broker may have answered
        self._held: list[tuple[int, bytes | int, int]] = []  # side, bytes or how many are missing, time
        self._held_bytes = 0

    # --- what the TCP stream reports -----------------------------------------------------------------------------------

    def received(self, side: int, data: bytes, at_us: int) -> None:
        """The next bytes from a side of the stream."""
        if self._waits_for_secrets:
            self._hold(side, data, at_us)
        else:
            self._take(side, data, at_us)

    def missed(self, side: int, count: int, at_us: int) -> None:
        """The next bytes from a side were not captured."""
        if self._waits_for_secrets:
            self._hold(side, count, at_us)
        else:
            self._lose(side, count, at_us)

    def finished(self, side: int, at_us: int) -> None:
        """A side has closed its end of the connection."""
        if not self._waits_for_secrets:
            self._talk.finished(side, at_us)

    def closed(self, at_us: int) -> None:
        """It has ended."""
        if self._waits_for_secrets and not self._go_on():
            self._refuse(NO_SECRETS, at_us)
        self._talk.closed(at_us)

    # --- waiting for secrets -------------------------------------------------------------------------------------------

    def _hold(self, side: int, data: bytes | int, at_us: int) -> None:
        self._held.append((side, data, at_us))
        self._held_bytes += len(data) if isinstance(data, bytes) else 0
        if not self._go_on() and self._held_bytes > HELD_AT_MOST:
            self._refuse(NO_SECRETS, at_us)

    def _go_on(self) -> bool:
        """Take what waited if the secrets are there now."""
        if not self._find_secrets():
            return False
        self._waits_for_secrets = False
        held, self._held = self._held, []
        for side, data, at_us in held:
            if isinstance(data, bytes):
                self._take(side, data, at_us)
            else:
                self._lose(side, data, at_us)
        return True

    def _find_secrets(self) -> bool:
        hello = self._hello
        assert hello is not None
        client, server = self._sides[self._client_side], self._sides[1 - self._client_side]
        if hello.is_1_3:
            secrets = [
                self._key_log.secret(label, self._client_random)
                for label in (b"CLIENT_TRAFFIC_SECRET_0", b"SERVER_TRAFFIC_SECRET_0")
            ]
            if None in secrets:
                return False
            for direction, secret in zip((client, server), secrets, strict=True):
                direction.protection = Protection13(SUITES_1_3[hello.suite], secret or b"")
                direction.is_protected = True
        else:
            master = self._key_log.secret(b"CLIENT_RANDOM", self._client_random)
            if master is None:
                return False
            suite = SUITES_1_2[hello.suite]
            client.protection, server.protection = protections_1_2(suite, master, self._client_random, hello.random)
        self._stats.decrypted += 1
        return True

    # --- records -------------------------------------------------------------------------------------------------------

    def _take(self, side: int, data: bytes, at_us: int) -> None:
        direction = self._sides[side]
        direction.data += data
        while self._stream.listener is self and not self._stream.over and not self._waits_for_secrets:
            if direction.missing and not self._find_record(direction):
                return
            record = direction.next_record()
            if record is None:
                return
            self._record(side, direction, *record, at_us)

    def _record(self, side: int, direction: _Direction, header: bytes, body: bytes, at_us: int) -> None:
        kind = header[0]
        if header[1] != TLS_1_2[0] or len(body) > _LARGEST:
            self._refuse(OTHER_SECRETS, at_us)
        elif direction.protection is not None and direction.is_protected and kind != _CHANGE_CIPHER_SPEC:
            self._open(side, direction, header, body, at_us)
        elif kind == _CHANGE_CIPHER_SPEC:
            direction.is_protected = True
        elif kind == HANDSHAKE:
            self._read_hello(side, body, at_us)
        elif kind == APPLICATION_DATA:
            self._refuse(NOT_CAPTURED, at_us)

    def _open(self, side: int, direction: _Direction, header: bytes, body: bytes, at_us: int) -> None:
        assert direction.protection is not None
        opened = direction.protection.open(header, body)
        if opened is not None:
            direction.has_opened = True
            self._pass_on(side, direction, opened, at_us)
            return
        direction.unopened += 1
        assert self._hello is not None
        if direction.has_opened or not self._hello.is_1_3 or direction.unopened > _HANDSHAKE_RECORDS:
            self._refuse(OTHER_SECRETS, at_us)

    def _pass_on(self, side: int, direction: _Direction, opened: Opened, at_us: int) -> None:
        if opened.kind == APPLICATION_DATA:
            self._has_asked = True
            self._talk.received(side, opened.content, at_us)
        elif opened.kind == HANDSHAKE and opened.content[0] == _KEY_UPDATE and isinstance(direction.protection, Protection13):
            direction.protection = direction.protection.updated()

    def _refuse(self, reason: str, at_us: int) -> None:
        self._waits_for_secrets = False
        self._held.clear()
        self._stats.refused_tls[reason] += 1
        self._stream.listener = self._talk
        self._talk.unreadable(reason, at_us)

    # --- the handshake -------------------------------------------------------------------------------------------------

    def _read_hello(self, side: int, body: bytes, at_us: int) -> None:
        """Take what is needed of the first ClientHello and of the ServerHello; other messages of the handshake are passed over."""
        if side == self._client_side:
            if not self._client_random and body[:1] in (b"", CLIENT_HELLO):
                self._client_random = body[_RANDOM]
                if len(body) < _RANDOM.stop:
                    self._refuse(self._not_captured(cut=True), at_us)
        elif self._hello is None and body[:1] in (b"", _SERVER_HELLO) and body[_RANDOM] != _RETRY:
            self._read_server_hello(body, at_us)

    def _read_server_hello(self, body: bytes, at_us: int) -> None:
        """See RFC 8446, 4.1.3."""
        at = _SESSION_ID + 1 + body[_SESSION_ID] if len(body) > _SESSION_ID else len(body)
        if len(body) < at + 2:
            self._refuse(self._not_captured(cut=True), at_us)
            return
        hello = _Hello(int.from_bytes(body[at : at + 2], "big"), body[_RANDOM])
        if body[4:6] != TLS_1_2 or hello.suite not in SUITES_1_3.keys() | SUITES_1_2.keys():
            self._refuse(OLD_CIPHER, at_us)
            return
        self._hello = hello
        self._waits_for_secrets = not self._find_secrets()

    # --- missing bytes -------------------------------------------------------------------------------------------------

    def _lose(self, side: int, count: int, at_us: int) -> None:
        direction = self._sides[side]
        if not direction.is_protected and direction.lacking:
            filled = min(count, direction.lacking)
            direction.fill(filled)
            self._take(side, b"", at_us)
            if count > filled and self._stream.listener is self:
                self.missed(side, count - filled, at_us)
        elif direction.protection is None:
            self._refuse(self._not_captured(cut=bool(direction.data)), at_us)
        else:
            self._search_behind(side, direction, count, at_us)

    def _search_behind(self, side: int, direction: _Direction, count: int, at_us: int) -> None:
        direction.missing += count + len(direction.data)
        direction.data, direction.cut_at = b"", None
        direction.is_protected = True
        self._has_asked |= side == self._client_side
        if self._has_asked:
            self._talk.lost(side, count, at_us)

    def _not_captured(self, *, cut: bool) -> str:
        """Why the handshake cannot be read.

        :param cut: whether a part of what is missing was captured.
        """
        snap_length = self._stats.snap_length
        return CUT.format(snap_length) if cut and snap_length else NOT_CAPTURED

    def _find_record(self, direction: _Direction) -> bool:
        """Search for the next record that the key opens; drop what stands before it."""
        protection, data, at = direction.protection, direction.data, -1
        assert protection is not None
        while (at := data.find(CONTENT_BEGINS, at + 1)) >= 0 and len(data) >= at + HEADER:
            end = at + HEADER + int.from_bytes(data[at + 3 : at + HEADER], "big")
            if end > at + HEADER + _LARGEST:
                continue
            if end > len(data):
                break
            first = protection.number
            for number in range(first, first + (direction.missing + at) // _SMALLEST + 2):
                if protection.open(data[at : at + HEADER], data[at + HEADER : end], number) is not None:
                    protection.number = number
                    direction.data, direction.missing, direction.has_opened = data[at:], 0, True
                    return True
        return False

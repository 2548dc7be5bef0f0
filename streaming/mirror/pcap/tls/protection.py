"""Opens the records of one direction of a TLS connection: keys out of secrets, sequence numbers, AEAD (RFC 5246, 5288, 7905, 8446).

The ciphers are those with authenticated encryption, which is all of TLS 1.3 and what clients and brokers agree on in TLS 1.2 unless they
are old. Since a record that does not belong to the key is refused, the key is also the proof of where a record begins.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes, hmac
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

TAG: Final = 16  #: bytes behind each record that authenticate it

_GCM_SALT, _GCM_EXPLICIT, _NONCE = 4, 8, 12


class Suite(NamedTuple):
    """What a cipher suite means for records."""

    is_chacha: bool
    key_size: int
    hash: hashes.HashAlgorithm


_SHA256, _SHA384 = hashes.SHA256(), hashes.SHA384()
_AES_128, _AES_256, _CHACHA = Suite(False, 16, _SHA256), Suite(False, 32, _SHA384), Suite(True, 32, _SHA256)

SUITES_1_3: Final = {0x1301: _AES_128, 0x1302: _AES_256, 0x1303: _CHACHA}
SUITES_1_2: Final = {
    **dict.fromkeys((0x009C, 0x009E, 0xC02B, 0xC02F), _AES_128),  # RSA, DHE, ECDHE with an ECDSA or RSA certificate
    **dict.fromkeys((0x009D, 0x009F, 0xC02C, 0xC030), _AES_256),
    **dict.fromkeys((0xCCA8, 0xCCA9, 0xCCAA), _CHACHA),
}


class Opened(NamedTuple):
    """The content of a record."""

    kind: int
    content: bytes


class Protection:
    """How records of one direction are protected, and the number of the next one."""

    def __init__(self, suite: Suite, key: bytes, iv: bytes) -> None:
        self.number = 0
        self._suite = suite
        self._iv = iv
        self._cipher = ChaCha20Poly1305(key) if suite.is_chacha else AESGCM(key)

    def open(self, header: bytes, body: bytes, number: int | None = None) -> Opened | None:
        """Return what a record holds, None if it is none of this key. The next one is expected to have the number behind its.

        :param header: type, version and length, 5 bytes.
        :param number: the record's number if it is not the next one.
        """
        number = self.number if number is None else number
        try:
            found = self._open(header, body, number.to_bytes(8, "big"))
        except (InvalidTag, ValueError):
            return None
        self.number = number + 1
        return found

    def _open(self, header: bytes, body: bytes, number: bytes) -> Opened | None:
        raise NotImplementedError

    def _mixed(self, number: bytes) -> bytes:
        """The nonce of a record: its number mixed into the secret part."""
        mixed = int.from_bytes(self._iv, "big") ^ int.from_bytes(number, "big")
        return mixed.to_bytes(_NONCE, "big")


class Protection12(Protection):
    """TLS 1.2: the record's header and number are authenticated, AES's nonce stands in the record."""

    def _open(self, header: bytes, body: bytes, number: bytes) -> Opened:
        explicit = 0 if self._suite.is_chacha else _GCM_EXPLICIT
        nonce = self._mixed(number) if self._suite.is_chacha else self._iv + body[:explicit]
        length = len(body) - explicit - TAG
        content = self._cipher.decrypt(nonce, body[explicit:], number + header[:3] + max(length, 0).to_bytes(2, "big"))
        return Opened(header[0], content)


class Protection13(Protection):
    """TLS 1.3: the content's type stands behind it, before any padding."""

    def __init__(self, suite: Suite, secret: bytes) -> None:
        super().__init__(suite, expanded(secret, b"key", suite.key_size, suite.hash), expanded(secret, b"iv", _NONCE, suite.hash))
        self._secret = secret

    def _open(self, header: bytes, body: bytes, number: bytes) -> Opened | None:
        padded = self._cipher.decrypt(self._mixed(number), body, header).rstrip(b"\0")
        return Opened(padded[-1], padded[:-1]) if padded else None

    def updated(self) -> Protection13:
        """Return the protection after a KeyUpdate (RFC 8446, 7.2)."""
        digest = self._suite.hash
        return Protection13(self._suite, expanded(self._secret, b"traffic upd", digest.digest_size, digest))


def expanded(secret: bytes, label: bytes, size: int, digest: hashes.HashAlgorithm) -> bytes:
    """HKDF-Expand-Label without a context (RFC 8446, 7.1)."""
    name = b"tls13 " + label
    info = size.to_bytes(2, "big") + bytes([len(name)]) + name + b"\0"
    return HKDFExpand(digest, size, info).derive(secret)


def protections_1_2(suite: Suite, master: bytes, client_random: bytes, server_random: bytes) -> tuple[Protection12, Protection12]:
    """Return the protections of the client's and of the broker's direction (RFC 5246, 6.3)."""
    salt = _NONCE if suite.is_chacha else _GCM_SALT
    key = suite.key_size
    block = _prf(suite.hash, master, b"key expansion" + server_random + client_random, 2 * (key + salt))
    return (
        Protection12(suite, block[:key], block[2 * key : 2 * key + salt]),
        Protection12(suite, block[key : 2 * key], block[2 * key + salt :]),
    )


def _prf(digest: hashes.HashAlgorithm, secret: bytes, seed: bytes, size: int) -> bytes:
    """The pseudorandom function of TLS 1.2 (RFC 5246, 5)."""
    found, step = b"", seed
    while len(found) < size:
        step = _hmac(digest, secret, step)
        found += _hmac(digest, secret, step + seed)
    return found[:size]


def _hmac(digest: hashes.HashAlgorithm, secret: bytes, data: bytes) -> bytes:
    code = hmac.HMAC(secret, digest)
    code.update(data)
    return code.finalize()

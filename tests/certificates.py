"""A certificate authority for the tests: PEM files that both of Kafka's clients and the broker itself read."""

from __future__ import annotations

import datetime as dt
import ipaddress
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID


class Identity(NamedTuple):
    """A key, and the chain that proves whose it is."""

    certificate: Path
    key: Path
    both: Path  #: in one file, as a Java keystore of type PEM


class Authority:
    """Signs certificates; ``certificate`` is what its friends trust."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)
        self._certificate = (
            _begun(self._name, self._name, self._key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_SIGNS, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        self.certificate = folder / f"{name}.pem"
        self.certificate.write_bytes(self._certificate.public_bytes(Encoding.PEM))

    def identity(
        self,
        name: str,
        *,
        address: str | None = None,
        hosts: Sequence[str] = (),
        password: str | None = None,
        until: dt.datetime | None = None,
    ) -> Identity:
        """A key and its certificate, for a server at an IP address or with host names, or for a client.

        :param password: encrypts the key.
        :param until: when the certificate expires; tomorrow if not given.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        begun = _begun(_named(name), self._name, key, until).add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),  # Python 3.13 asks for it
            critical=False,
        )
        places: list[x509.GeneralName] = [x509.DNSName(host) for host in hosts]
        if address is not None:
            places.append(x509.IPAddress(ipaddress.ip_address(address)))
        if places:
            begun = begun.add_extension(x509.SubjectAlternativeName(places), critical=False)
        chain = begun.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM)
        lock = BestAvailableEncryption(password.encode()) if password else NoEncryption()
        secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, lock)
        files = Identity(*(self._folder / f"{name}.{kind}" for kind in ("pem", "key", "both")))
        for file, text in zip(files, (chain, secret, secret + chain), strict=True):
            file.write_bytes(text)
        return files


_SIGNS = x509.KeyUsage(
    digital_signature=True,
    key_cert_sign=True,
    crl_sign=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    encipher_only=False,
    decipher_only=False,
)


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _begun(
    whose: x509.Name, signer: x509.Name, key: ec.EllipticCurvePrivateKey, until: dt.datetime | None = None
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(whose)
        .issuer_name(signer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(until or now + dt.timedelta(days=1))
    )

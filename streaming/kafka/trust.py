"""Why a TLS connection is not trusted: an expired certificate, a foreign authority or a wrong host name.

librdkafka has one text for all three, and none for a client certificate that has expired. So the certificates are looked at here.
"""

from __future__ import annotations

import datetime as dt
import socket
import ssl
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cryptography import x509
from cryptography.x509.oid import NameOID

if TYPE_CHECKING:
    from collections.abc import Mapping

_DIAL_S: Final = 2.0
_SERVERS: Final = 3

# OpenSSL's X509_V_ERR_…
_NOT_YET, _EXPIRED = 9, 10
_NAME: Final = frozenset({62, 63, 64})
_FOREIGN: Final = frozenset({2, 7, 18, 19, 20, 21, 24})


def why_not_trusted(properties: Mapping[str, Any]) -> str | None:
    """Which certificate is not accepted and why; None where no reason is found.

    :param properties: of librdkafka.
    """
    if "SSL" not in str(properties.get("security.protocol", "")).upper():
        return None
    own = properties.get("ssl.certificate.location")
    if own is not None and (why := _own(Path(own))) is not None:
        return why
    for server in str(properties.get("bootstrap.servers", "")).split(",")[:_SERVERS]:
        host, _, port = server.strip().rpartition(":")
        try:
            why = _of_broker(properties, host.strip("[]"), int(port))
        except (OSError, ValueError):
            continue
        if why is not None:
            return why
    return None


def tls_context(properties: Mapping[str, Any]) -> ssl.SSLContext:
    """Return what makes TLS connections as librdkafka does with these properties.

    :raises OSError: when a file of them cannot be read, or is no certificate or key.
    """
    context = _verifying(properties)
    if str(properties.get("enable.ssl.certificate.verification", "true")).lower() == "false":
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if (own := properties.get("ssl.certificate.location")) is not None:
        context.load_cert_chain(own, properties.get("ssl.key.location"), properties.get("ssl.key.password"))
    return context


def _verifying(properties: Mapping[str, Any]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = str(properties.get("ssl.endpoint.identification.algorithm", "https")) != "none"
    authority = properties.get("ssl.ca.location")
    if authority is None:
        context.load_default_certs()
    else:
        context.load_verify_locations(str(authority))
    return context


def _own(file: Path) -> str | None:
    try:
        certificate = x509.load_pem_x509_certificate(file.read_bytes())
    except (OSError, ValueError):
        return None
    now = dt.datetime.now(dt.UTC)
    if certificate.not_valid_after_utc < now:
        return f"the client certificate {file} expired on {_day(certificate.not_valid_after_utc)}"
    if certificate.not_valid_before_utc > now:
        return f"the client certificate {file} is valid only from {_day(certificate.not_valid_before_utc)} on"
    return None


def _of_broker(properties: Mapping[str, Any], host: str, port: int) -> str | None:
    authority, context = properties.get("ssl.ca.location"), _verifying(properties)
    try:
        with socket.create_connection((host, port), _DIAL_S) as dialled, context.wrap_socket(dialled, server_hostname=host):
            return None
    except ssl.SSLCertVerificationError as error:
        return _explained(error.verify_code, f"{host}:{port}", authority, _shown(host, port))


def _shown(host: str, port: int) -> x509.Certificate | None:
    """Return the certificate that a broker presents, trusted or not."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection((host, port), _DIAL_S) as dialled, context.wrap_socket(dialled, server_hostname=host) as secured:
        shown = secured.getpeercert(binary_form=True)
    return None if shown is None else x509.load_der_x509_certificate(shown)


def _explained(code: int, server: str, authority: Any, shown: x509.Certificate | None) -> str | None:
    whose = f"the certificate of {server}"
    if shown is None:
        return None
    if code == _EXPIRED:
        return f"{whose}, or of its authority, has expired (its own runs until {_day(shown.not_valid_after_utc)})"
    if code == _NOT_YET:
        return f"{whose} is valid only from {_day(shown.not_valid_before_utc)} on"
    if code in _NAME:
        return f"{whose} is made out to another host name ({', '.join(_names(shown)) or 'none'})"
    if code in _FOREIGN:
        where = "the system's authorities" if authority is None else str(authority)
        return f"{whose} is signed by an authority ({_common_name(shown.issuer)}) that is not in {where}"
    return None


def _names(certificate: x509.Certificate) -> list[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return [_common_name(certificate.subject)]
    return [*names.get_values_for_type(x509.DNSName), *(str(address) for address in names.get_values_for_type(x509.IPAddress))]


def _common_name(name: x509.Name) -> str:
    found = name.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(found[0].value) if found else name.rfc4514_string()


def _day(moment: dt.datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"

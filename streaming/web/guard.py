"""Who may look: requests for another host are refused, and without the token everything but the question for it.

A page on 127.0.0.1 is open to every site that the operator's browser visits. A site can make its own name resolve to this address,
and then read the page as its own. So the Host header has to name this machine.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs

from coordinator_model.wording import counted

if TYPE_CHECKING:
    from collections.abc import Mapping

COOKIE: Final = "rebalance-monitor-token"
LEAST_TOKEN: Final = 16
"""Characters that a token must have."""

HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""Of every answer."""

_LOCAL_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})


class NotSafeError(ValueError):
    """The page would be open to whom it should not be; the message names the remedy."""


def is_loopback(address: str) -> bool:
    """Return True if only this machine reaches an address to listen on."""
    try:
        return address == "localhost" or ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class Guard:
    """Decides on requests.

    :param address: where the page listens.
    :param names: further names under which it is called.
    :param token: what a viewer has to know; None on this machine alone, or behind a proxy.
    :param proxy: address of the only one whose connections are taken.
    """

    address: str = "127.0.0.1"
    names: frozenset[str] = frozenset()
    token: str | None = None
    proxy: str | None = None

    def check(self) -> None:
        """Refuse to open the page to others without a token or a proxy.

        :raises NotSafeError: when it would be.
        """
        if not is_loopback(self.address) and self.token is None and self.proxy is None:
            raise NotSafeError(
                f"--listen {self.address} opens the page to others: give a token with --token-file, or name the proxy in front of it "
                "with --proxy"
            )
        if self.token is not None and len(self.token) < LEAST_TOKEN:
            raise NotSafeError(f"the token has {counted(len(self.token), 'character')}; it needs at least {LEAST_TOKEN}")

    def knows_host(self, host: str) -> bool:
        """Return True if a Host header names this page."""
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() and not host.endswith("]") else host
        name = name.removeprefix("[").removesuffix("]").rstrip(".").lower()
        return name in _LOCAL_NAMES or name in self.names or (name == self.address and not _is_any(name))

    def takes_connection(self, peer: str | None) -> bool:
        """Return True unless a proxy is named and somebody else connects."""
        return self.proxy is None or peer == self.proxy

    def knows_token(self, authorization: str, cookie: str) -> bool:
        """Return True if no token is needed or the right one is given."""
        if self.token is None:
            return True
        given = authorization.removeprefix("Bearer ") if authorization.startswith("Bearer ") else ""
        return _same(given, self.token) or _same(cookie, self.cookie())

    def token_is(self, given: str) -> bool:
        """Return True for the right token."""
        return self.token is not None and _same(given, self.token)

    def cookie(self) -> str:
        """Return what a browser keeps: not the token itself."""
        return hashlib.sha256(f"cookie\x00{self.token}".encode()).hexdigest()


def form_of(body: bytes) -> Mapping[str, str]:
    """Return the fields of a form that was posted."""
    fields = parse_qs(body.decode("utf-8", errors="replace"), max_num_fields=8)
    return {name: values[0] for name, values in fields.items()}


def local_path(address: str) -> str:
    """Return an address of this page, "/" for any other: no address leads elsewhere."""
    return address if address.startswith("/") and not address.startswith(("//", "/\\")) and address.isprintable() else "/"


def _same(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode(errors="replace"), expected.encode(errors="replace"))


def _is_any(name: str) -> bool:
    return name in {"0.0.0.0", "::", ""}  # noqa: S104 - recognised, not bound to

"""Sends HTTP requests to receivers, and maps the result to one of three outcomes: accepted, rejected, unreachable.

A rejection is permanent: most 4xx codes, and redirects. All other failures are retried: no connection, no response in time, 5xx, and
the three 4xx codes that ask for a retry (408, 425, 429).

The URL of a webhook is a secret, and libraries put it into their exceptions. So an exception's text is never shown. Messages name the kind
of failure, the host and the port.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

import requests
import requests.auth
import urllib3.exceptions

from streaming.notify.notification import on_one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from streaming.config.notify import Web

_COME_BACK: Final = frozenset({408, 425, 429})
_CONTENT: Final = frozenset({400, 413, 422})
_READ_BYTES: Final = 4096
_LONGEST_PAUSE_S: Final = 3600.0


class Accepted(NamedTuple):
    """The receiver accepted the request."""

    body: bytes = b""  #: the beginning of its answer


class Rejected(NamedTuple):
    """The receiver rejected the request; a retry would be rejected too."""

    reason: str
    for_its_content: bool = False  #: the receiver might accept a part of it


class Unreachable(NamedTuple):
    """The request failed; a retry may succeed."""

    reason: str
    pause_s: float | None = None  #: the pause that the receiver asks for


Outcome = Accepted | Rejected | Unreachable


def post(url: str, body: bytes, headers: Mapping[str, str], web: Web) -> Outcome:
    """Send one POST request."""
    where = host_of(url)
    try:
        with requests.post(
            url,
            data=body,
            headers={"User-Agent": "rebalance-monitor", **headers},
            auth=_credentials(web),
            timeout=web.timeout_s,
            verify=str(web.ca_file) if web.ca_file else True,
            cert=_certificate(web),
            allow_redirects=False,
            stream=True,
        ) as answer:
            return _outcome(answer, where)
    except requests.RequestException as error:
        return Unreachable(f"{where}: {_in_words(error, web.timeout_s)}")
    except OSError as error:  # a certificate file is missing
        return Unreachable(f"{where}: {error.strerror or type(error).__name__}")


def host_of(url: str) -> str:
    """Return the host and port of a URL, the part that is not secret."""
    parts = urlsplit(url)
    return parts.netloc.rpartition("@")[2]


class _Bearer(requests.auth.AuthBase):
    """Bearer authentication. A plain header would not do: requests overwrites it if ~/.netrc has an entry for the host."""

    def __init__(self, token: str) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["Authorization"] = f"Bearer {self._token}"
        return request


def _credentials(web: Web) -> requests.auth.AuthBase | None:
    token, password = web.bearer_token(), web.basic_password()
    if web.username is not None and password is not None:
        return requests.auth.HTTPBasicAuth(web.username, password)
    return _Bearer(token) if token else None


def _certificate(web: Web) -> str | tuple[str, str] | None:
    if web.certificate_file is None:
        return None
    return str(web.certificate_file) if web.key_file is None else (str(web.certificate_file), str(web.key_file))


def _outcome(answer: requests.Response, where: str) -> Outcome:
    status = answer.status_code
    if 200 <= status < 300:
        return Accepted(_beginning(answer))
    reason = f"{where} answered {status}{_first_line(answer)}"
    if status >= 500 or status in _COME_BACK:
        return Unreachable(reason, _pause_s(answer.headers.get("Retry-After")))
    if 300 <= status < 400:
        return Rejected(f"{where} answered {status}, a redirection; configure the address that it leads to")
    return Rejected(reason, for_its_content=status in _CONTENT)


def _first_line(answer: requests.Response) -> str:
    text = _beginning(answer).decode(errors="replace")
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return f": {on_one_line(line, 200)}" if line else ""


def _beginning(answer: requests.Response) -> bytes:
    try:
        return next(answer.iter_content(_READ_BYTES), b"")
    except requests.RequestException:
        return b""


def _pause_s(retry_after: str | None) -> float | None:
    """Return the Retry-After header in seconds; None for a date, which would depend on two clocks."""
    return min(float(retry_after), _LONGEST_PAUSE_S) if retry_after is not None and retry_after.isdecimal() else None


def _in_words(error: requests.RequestException, timeout_s: float) -> str:
    if isinstance(error, requests.exceptions.SSLError):
        return "the TLS connection failed: check ca_file, and the certificates of both sides"
    if isinstance(error, requests.exceptions.ProxyError):
        return "the proxy set in the environment (HTTPS_PROXY, HTTP_PROXY) cannot be reached or refuses the connection"
    if isinstance(error, requests.exceptions.InvalidURL | requests.exceptions.MissingSchema | requests.exceptions.InvalidSchema):
        return "the address is not a valid URL"
    if isinstance(error, requests.exceptions.Timeout):
        return f"no answer within {timeout_s:g} s"
    for cause in _causes(error):
        if isinstance(cause, socket.gaierror | urllib3.exceptions.NameResolutionError):
            return "the host's name cannot be resolved"
        if isinstance(cause, ConnectionError) and cause.strerror:
            return cause.strerror.lower()
    return "the connection failed"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception and its causes; libraries also keep causes in ``reason`` and ``args``."""
    seen: set[int] = set()
    below = [error]
    while below:
        cause = below.pop()
        if isinstance(cause, BaseException) and id(cause) not in seen:
            seen.add(id(cause))
            yield cause
            below += [cause.__cause__, cause.__context__, getattr(cause, "reason", None), *cause.args]

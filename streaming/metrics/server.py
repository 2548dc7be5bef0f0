"""The HTTP server of a Prometheus endpoint."""

from __future__ import annotations

import contextlib
import errno
from typing import TYPE_CHECKING

from prometheus_client import ProcessCollector, start_http_server

from streaming.kafka.topics import SetupError
from streaming.metrics.settings import parse_address

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client import CollectorRegistry


@contextlib.contextmanager
def opened(listen: str, registry: CollectorRegistry, *, option: str, remedy: str) -> Iterator[str]:
    """Serve a registry and the process's own metrics as long as the context lasts; yield the URL.

    :param option: the option that holds the address, for the error message.
    :param remedy: what to do when the address is in use.
    :raises SetupError: when the server cannot listen on the address.
    """
    address = parse_address(listen)
    ProcessCollector(registry=registry)
    try:
        server, _thread = start_http_server(address.port, address.host, registry)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise SetupError(f"{option}: {listen} is already in use; {remedy}") from None
        raise SetupError(f"{option}: cannot listen on {listen}: {error.strerror or error}") from None
    host, port = server.server_address[:2]
    shown = f"[{host!s}]" if ":" in str(host) else str(host)
    try:
        yield f"http://{shown}:{port}/metrics"
    finally:
        server.shutdown()
        server.server_close()

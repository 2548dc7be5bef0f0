"""The HTTP server of a process that serves no page: Prometheus metrics, ``/healthz`` and ``/readyz``."""

from __future__ import annotations

import contextlib
import errno
import socket
import threading
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, NamedTuple
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry, ProcessCollector, make_wsgi_app

from streaming.config.address import parse_address
from streaming.errors import SetupError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

    from prometheus_client.registry import Collector

    from streaming.config.address import Address


class Probes(NamedTuple):
    """What a process answers to its supervisor: None when all is well, else why not, in one sentence.

    Both are called in the thread of a request.
    """

    unhealthy: Callable[[], str | None]  #: ``/healthz``: a restart would help
    unready: Callable[[], str | None]  #: ``/readyz``: it does not do its work at the moment


@contextlib.contextmanager
def opened(listen: str, collector: Collector, probes: Probes, *, option: str, remedy: str) -> Iterator[str]:
    """Serve what is collected, the process's own metrics and its probes as long as the context lasts; yield the URL of the metrics.

    :param option: the option that holds the address, for the error message.
    :param remedy: what to do when the address is in use.
    :raises SetupError: when it is no address, or the server cannot listen on it.
    """
    registry = CollectorRegistry()
    registry.register(collector)
    ProcessCollector(registry=registry)
    try:
        server = _Server(parse_address(listen))
    except ValueError as error:
        raise SetupError(f"{option}: {error}") from None
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise SetupError(f"{option}: {listen} is already in use; {remedy}") from None
        raise SetupError(f"{option}: cannot listen on {listen}: {error.strerror or error}") from None
    server.set_app(_application(registry, probes))
    threading.Thread(target=server.serve_forever, name="http", daemon=True).start()
    host, port = server.server_address[:2]
    shown = f"[{host!s}]" if ":" in str(host) else str(host)
    try:
        yield f"http://{shown}:{port}/metrics"
    finally:
        server.shutdown()
        server.server_close()


def _application(registry: CollectorRegistry, probes: Probes) -> WSGIApplication:
    metrics: WSGIApplication = make_wsgi_app(registry)
    asked = {"/healthz": probes.unhealthy, "/readyz": probes.unready}

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        ask = asked.get(environ["PATH_INFO"])
        if ask is None:
            return metrics(environ, start_response)
        trouble = ask()
        start_response(
            "200 OK" if trouble is None else "503 Service Unavailable",
            [("Content-Type", "text/plain; charset=utf-8"), ("Cache-Control", "no-store")],
        )
        return [f"{trouble or 'ok'}\n".encode()]

    return answer


class _Server(ThreadingMixIn, WSGIServer):
    """Gives each request a thread: a scrape of many groups does not keep a probe waiting."""

    daemon_threads = True

    def __init__(self, address: Address) -> None:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        self.address_family, where = found[0][0], found[0][4]
        super().__init__((str(where[0]), int(where[1])), _Silent)


class _Silent(WSGIRequestHandler):
    """Writes no line for each request."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's signature
        pass

"""Serves the page in a thread of its own."""

from __future__ import annotations

import errno
import logging
import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from streaming.config.address import Address, parse_address
from streaming.errors import SetupError
from streaming.web.server import Page, Server

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def serving(page: Page, address: Address, option: str) -> Iterator[tuple[str, threading.Thread]]:
    """Serve a page as long as the context lasts; yield its URL, and the thread that serves it.

    :param option: that holds the address, for the error message.
    :raises SetupError: when the address cannot be listened on.
    """
    logging.getLogger("uvicorn").setLevel(logging.ERROR)
    with _listening(address, option) as listener:
        server = Server(page)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="server")
        thread.start()
        host, port = listener.getsockname()[:2]
        try:
            yield f"http://{f'[{host}]' if ':' in host else host}:{port}/", thread
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def _listening(address: Address, option: str) -> Iterator[socket.socket]:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        listener = socket.create_server((address.host, address.port), family=family, backlog=128)
    except OSError as error:
        why = "it is in use: name another port" if error.errno == errno.EADDRINUSE else (error.strerror or str(error))
        raise SetupError(f"{option}: cannot listen on {address.host}:{address.port}: {why}") from None
    with listener:
        yield listener


def page_address(listen: str, option: str, default: str) -> Address:
    """Read the address of a page.

    :raises SetupError: when it is none.
    """
    try:
        return parse_address(listen)
    except ValueError:
        raise SetupError(f"{option}: {listen} is not HOST:PORT, as in {default} or [::1]:8080") from None

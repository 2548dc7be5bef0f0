"""``rebalance-monitor tap``, in a process that resolves the brokers' names: nobody else on this machine does."""

from __future__ import annotations

import socket
from typing import Any

SUFFIX = ".brokers.invalid"

_resolve = socket.getaddrinfo


def resolve(host: Any, *arguments: Any, **options: Any) -> Any:
    known = isinstance(host, str) and host.endswith(SUFFIX)
    return _resolve("127.0.0.1" if known else host, *arguments, **options)


if __name__ == "__main__":
    socket.getaddrinfo = resolve
    from streaming.cli import app

    app()

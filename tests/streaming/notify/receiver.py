"""A receiver of alerts."""

from __future__ import annotations

import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Server:
    """Answers as it is told, and keeps what it was sent."""

    def __init__(self, port: int = 0) -> None:
        self.answer: tuple[int, dict[str, str], bytes] = (200, {}, b"")
        self.seen: list[tuple[dict[str, str], bytes]] = []
        self.times: list[float] = []  #: when each of them came, on the clock of ``time.monotonic``
        self.hangs = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                server.times.append(time.monotonic())
                server.seen.append((dict(self.headers), self.rfile.read(int(self.headers["Content-Length"]))))
                status, headers, body = server.answer
                if status == 0:
                    server.hangs.wait(30)
                    return
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.where = f"127.0.0.1:{self._server.server_port}"
        self.url = f"http://{self.where}/hunter2"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.hangs.set()
        self._server.shutdown()
        self._server.server_close()

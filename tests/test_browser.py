"""The browser that tests of pages use, while a page gives way to another."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.browser import browser
from tests.needs import needs

#: path → seconds until it is answered, and with what
PAGES = {
    "/leaves": (0.0, "<script>setTimeout(() => location.assign('/plain'), 50)</script>"),
    "/plain": (0.0, "<p>plain</p>"),
    "/loads-for-a-while": (0.0, "<img src='/image/0.2'>"),
    "/comes-late": (0.6, "<img src='/image/0.5'>"),
    "/image/0.2": (0.2, ""),
    "/image/0.5": (0.5, ""),
}


class Pages(BaseHTTPRequestHandler):
    def do_GET(self):
        delay_s, text = PAGES.get(self.path, (0.0, ""))
        time.sleep(delay_s)
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *about): ...


@contextmanager
def pages() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@needs("chromium")
def test_a_condition_is_waited_for_across_a_navigation_that_interrupts_it(tmp_path):
    with pages() as address, browser(tmp_path / "profile") as tab:
        tab.open(f"{address}/leaves")
        tab.wait_for("new Promise(done => setTimeout(() => done(location.pathname === '/plain'), 500))")
        assert tab.js("document.body.textContent") == "plain"


@needs("chromium")
def test_a_load_event_of_the_page_before_does_not_end_the_wait_for_the_next(tmp_path):
    with pages() as address, browser(tmp_path / "profile") as tab:
        tab.call("Page.navigate", url=f"{address}/loads-for-a-while")
        tab.open(f"{address}/comes-late")
        assert tab.js("[location.pathname, document.readyState]") == ["/comes-late", "complete"]

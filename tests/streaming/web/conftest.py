from __future__ import annotations

import json
import socket
import threading
import time
from contextlib import contextmanager

import pytest

from streaming.published.page_state import PageState
from streaming.published.taking import take_line
from streaming.web.guard import Guard
from streaming.web.server import Page, Server
from tests.streaming.web import history


def filled(lines, *, clock=lambda: history.NOW_S, **settings):
    """The state of a page that has read some records; it is live, and its clock stands still."""
    state = PageState(clock=clock, **settings)
    for line in lines:
        assert take_line(state, json.dumps(line))
    state.read_to_the_end()
    return state


@contextmanager
def served(state, guard=None, **settings):
    """Give the page's address and the page."""
    page = Page(state, guard or Guard(), **settings)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Server(page)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            while not server.started:
                time.sleep(0.01)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}", page
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture(scope="module")
def recorded():
    return filled(history.records())

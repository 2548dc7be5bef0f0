"""How a receiver is brought what it is to be told: one that is away, one that refuses, one that asks for a pause; and what is kept of it.

The receiver is a web server on loopback, the clock is the test's.
"""

from __future__ import annotations

import json
import socket
import threading
from typing import Any

import pytest

from streaming.config.notify import FindingFilter, Heartbeat, Patience, Webhook
from streaming.notify.delivery_log import Memory
from streaming.notify.dispatcher import Dispatcher, in_words
from streaming.notify.http import Accepted, Rejected, Unreachable, host_of, post
from streaming.notify.notification import Delivered, Event, Links, Notification
from streaming.notify.outbox import Outbox, Policy
from streaming.notify.webhook import WebhookChannel
from tests.streaming.notify.receiver import Server
from tests.streaming.notify.said import observed, of_rule

CRITICAL = of_rule("violation-stale-generation-accepted-4.3.1", "G-02")
ERROR = of_rule("violation-zombie-generation-4.1.2", "G-01")
ID = CRITICAL[0]["id"]
OPENED_S = observed(CRITICAL[0]).written_s


@pytest.fixture
def server():
    running = Server()
    yield running
    running.close()


class RememberedDeliveries:
    def __init__(self) -> None:
        self.delivered: dict[str, Delivered] = {}
        self.positions: dict[int, int] = {}

    def remember(self, receiver, delivered):
        assert receiver == "webhook/hook"
        self.delivered |= delivered

    def advance(self, receiver, positions, forget):
        self.positions |= positions
        for name in forget:
            del self.delivered[name]


class Scene:
    """A dispatcher for a webhook, with a clock of ours."""

    def __init__(self, server: Server) -> None:
        self.now_s = OPENED_S
        self.said: list[str] = []
        self.delivery_log = RememberedDeliveries()
        outbox = Outbox(Policy(FindingFilter(), Patience()), {}, {})
        outbox.begin({0: 0})
        settings = Webhook(url=server.url, group_by="finding", group_wait_s=0)
        self.dispatcher = Dispatcher(
            WebhookChannel("hook", settings, links=Links()),
            outbox,
            self.delivery_log,
            tell=self.said.append,
            retry_s=(1.0, 60.0),
            clock=lambda: self.now_s,
            jitter=lambda: 0.5,
        )


@pytest.fixture
def scene(server):
    return Scene(server)


def test_a_receiver_that_is_away_is_tried_again_after_waits_that_double(scene, server):
    server.answer = (503, {}, b"later")
    scene.dispatcher.observe(observed(CRITICAL[0]))
    waits = []
    for _ in range(9):
        waits.append(scene.dispatcher.step() - scene.now_s)
        scene.now_s += waits[-1] - 0.01
        assert scene.dispatcher.step() > scene.now_s
        scene.now_s += 0.01
    assert [round(wait) for wait in waits] == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    assert len(server.seen) == 9
    assert len(scene.said) == 1
    assert f"{server.where} answered 503: later" in scene.said[0]

    server.answer = (200, {}, b"")
    scene.dispatcher.step()
    assert "reachable again" in scene.said[1]
    assert "sent open critical G-02" in scene.said[2]
    assert scene.delivery_log.delivered[ID].finding["id"] == ID
    assert scene.dispatcher.accepted == 1


def test_what_a_receiver_is_told_after_a_while_is_how_things_stand_then(scene, server):
    server.answer = (503, {}, b"")
    scene.dispatcher.observe(observed(CRITICAL[0], offset=0))
    scene.dispatcher.step()
    scene.dispatcher.observe(observed(CRITICAL[-1], offset=1))
    server.answer = (200, {}, b"")
    scene.now_s = observed(CRITICAL[-1]).written_s
    scene.dispatcher.step()
    assert [json.loads(body)["notices"][0]["event"] for _, body in server.seen] == ["open", "over"]


def test_a_receiver_that_asks_for_a_pause_gets_it(scene, server):
    server.answer = (429, {"Retry-After": "120"}, b"")
    scene.dispatcher.observe(observed(CRITICAL[0]))
    assert scene.dispatcher.step() == scene.now_s + 120


def test_a_refusal_is_said_once_for_each_reason(scene, server):
    server.answer = (404, {}, b"no such hook\nsecond line")
    scene.dispatcher.observe(observed(CRITICAL[0]))
    scene.dispatcher.step()
    scene.dispatcher.observe(observed({**CRITICAL[0], "id": "another"}, offset=1))
    scene.dispatcher.step()
    assert len(server.seen) == 2
    assert scene.said == [f"webhook/hook: rejected 1 notification (no retry): {server.where} answered 404: no such hook"]
    server.answer = (403, {}, b"")
    scene.dispatcher.observe(observed({**CRITICAL[0], "id": "a third"}, offset=2))
    scene.dispatcher.step()
    assert scene.said[1].endswith("answered 403")
    assert scene.dispatcher.refused == 3


def test_what_was_told_is_remembered_until_it_is_over_and_repeats_are_past(scene):
    scene.dispatcher.observe(observed(CRITICAL[0], offset=4))
    scene.dispatcher.step()
    assert (scene.delivery_log.delivered[ID].is_over, scene.delivery_log.positions) == (False, {0: 5})
    scene.dispatcher.observe(observed(CRITICAL[-1], offset=5))
    scene.now_s = observed(CRITICAL[-1]).written_s
    scene.dispatcher.step()
    assert scene.delivery_log.delivered[ID].is_over
    scene.now_s += 3600
    scene.dispatcher.step()
    scene.dispatcher.step()
    scene.dispatcher.tidy()
    assert (scene.delivery_log.delivered, scene.delivery_log.positions) == ({}, {0: 6})


def test_a_dispatcher_survives_what_nobody_foresaw(scene, tmp_path):
    stop = threading.Event()
    scene.dispatcher._channel.plan = lambda *_: (_ for _ in ()).throw(OSError("the file is gone"))
    scene.dispatcher._tell = lambda sentence: (scene.said.append(sentence), stop.set())
    scene.dispatcher.run(stop)
    assert scene.said == ["webhook/hook: delivery failed: OSError: the file is gone; retrying"]


def test_the_same_news_carry_the_same_key(scene, server):
    server.answer = (503, {}, b"")
    scene.dispatcher.observe(observed(CRITICAL[0]))
    scene.dispatcher.step()
    scene.now_s += 10
    scene.dispatcher.step()
    first, second = (headers["Idempotency-Key"] for headers, _ in server.seen)
    assert first == second


# --- what comes back ----------------------------------------------------------------------------------------------------


def web(**settings: Any) -> Heartbeat:
    return Heartbeat(**{"url": "http://127.0.0.1:1/hunter2", "timeout_s": 0.5, **settings})


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (200, Accepted),
        (202, Accepted),
        (204, Accepted),
        (302, Rejected),
        (400, Rejected),
        (401, Rejected),
        (404, Rejected),
        (413, Rejected),
        (408, Unreachable),
        (425, Unreachable),
        (429, Unreachable),
        (500, Unreachable),
        (503, Unreachable),
    ],
)
def test_an_answer_is_taken_refused_or_to_be_tried_again(server, status, kind):
    server.answer = (status, {"Location": "http://127.0.0.1:1/elsewhere"} if status == 302 else {}, b"")
    assert isinstance(post(server.url, b"{}", {}, web()), kind)
    assert len(server.seen) == 1


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://127.0.0.1:1/hunter2", "connection refused"),
        ("http://name.invalid/hunter2", "the host's name cannot be resolved"),
        ("nonsense/hunter2", "the address is not a valid URL"),
    ],
)
def test_what_fails_is_said_without_the_secret(url, words, monkeypatch):
    if "invalid" in url:  # no question leaves this machine

        def fails(*_: Any, **__: Any) -> Any:
            raise socket.gaierror(-2, "Name or service not known")

        monkeypatch.setattr(socket, "getaddrinfo", fails)
    outcome = post(url, b"{}", {}, web())
    assert words in outcome.reason
    assert "hunter2" not in outcome.reason


def test_a_receiver_that_does_not_answer_is_not_waited_for_without_end(server):
    server.answer = (0, {}, b"")
    assert post(server.url, b"{}", {}, web()).reason == f"{server.where}: no answer within 0.5 s"


def test_a_broken_tls_connection_is_named(server):
    outcome = post(server.url.replace("http://", "https://"), b"{}", {}, web())
    assert "TLS" in outcome.reason
    assert "hunter2" not in outcome.reason


def test_who_we_are_is_proven_by_token_or_password(server, tmp_path, monkeypatch):
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login other password other\n")
    monkeypatch.setenv("NETRC", str(netrc))
    (tmp_path / "token").write_text("abc\n")
    post(server.url, b"{}", {}, web(token_file=tmp_path / "token"))
    post(server.url, b"{}", {}, web(username="me", password="you"))
    assert [headers["Authorization"] for headers, _ in server.seen] == ["Bearer abc", "Basic bWU6eW91"]


def test_terminals_are_safe_from_what_a_receiver_answers(server):
    server.answer = (400, {}, b"\n\x1b[2Jgone" + b"x" * 10_000)
    reason = post(server.url, b"{}", {}, web()).reason
    assert "\x1b" not in reason
    assert len(reason) < 300


def test_an_address_is_shown_by_its_host_alone():
    assert host_of("https://user:pass@hooks.example.org:8443/T0/hunter2?x=hunter2") == "hooks.example.org:8443"


# --- the delivery log -------------------------------------------------------------------------------------------------------


def test_the_delivery_log_knows_only_its_own_findings_topic_and_counts_what_it_cannot_read():
    memory = Memory("findings")
    entry = json.dumps(Delivered({**CRITICAL[0]}, 1.0, 2.0, is_over=False, partition=0, offset=3).as_json()).encode()
    memory.take(b"findings/webhook/chat/" + ID.encode(), entry)
    memory.take(b"findings/webhook/chat/@0", b'{"position": 17}')
    memory.take(b"others/webhook/chat/" + ID.encode(), entry)
    memory.take(b"findings/webhook/chat/broken", b"{")
    memory.take(b"findings/webhook/chat/empty", b'{"finding": {}}')
    assert set(memory.delivered("webhook/chat")) == {ID}
    assert memory.positions("webhook/chat") == {0: 17}
    assert memory.delivered("webhook/other") == {}
    assert memory.unreadable == 2
    memory.take(b"findings/webhook/chat/" + ID.encode(), None)
    assert memory.delivered("webhook/chat") == {}


def test_the_operator_reads_what_was_told_on_one_line():
    name = CRITICAL[0]["group"]
    told_open = in_words(Notification(Event.OPEN, CRITICAL[0]))
    assert told_open.startswith(f"open critical G-02 stale generation accepted: {name}: ")
    assert in_words(Notification(Event.OPEN, CRITICAL[-1])).startswith("open, over already, critical G-02")
    assert "\x1b" not in in_words(Notification(Event.OPEN, {**CRITICAL[0], "summary": "\x1b[2J\n"}))

"""Who may look, under which headers, and how many at a time."""

from __future__ import annotations

import contextlib
import json
import time
from urllib.parse import urlencode

import pytest
import requests

from streaming.published.page_state import PageState
from streaming.published.taking import take_line
from streaming.web.guard import COOKIE, Guard, NotSafeError
from tests.streaming.web import history
from tests.streaming.web.conftest import filled, served

TOKEN = "a token of more than sixteen letters"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)


@pytest.fixture(scope="module")
def page(recorded):
    with served(recorded) as (address, _):
        yield address


@pytest.fixture(scope="module")
def locked(recorded):
    with served(recorded, Guard(token=TOKEN)) as (address, _):
        yield address


def status(address, *, host=None, path="/", **more):
    return requests.get(address + path, headers={} if host is None else {"Host": host}, timeout=10, **more).status_code


@pytest.mark.parametrize("path", ["/", "/sight", "/nothing", "/stream?view=/", "/group?name=orders", "/token"])
def test_every_answer_forbids_scripts_and_styles_from_elsewhere(page, path):
    with requests.get(page + path, stream=True, timeout=10, allow_redirects=False) as answer:
        headers = answer.headers
    assert headers["content-security-policy"] == POLICY
    assert (headers["x-content-type-options"], headers["referrer-policy"]) == ("nosniff", "no-referrer")


def test_a_refusal_forbids_them_too(page):
    answer = requests.get(page, headers={"Host": "evil.example"}, timeout=10)
    assert (answer.status_code, answer.headers["content-security-policy"]) == (421, POLICY)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:80", "LOCALHOST", "localhost.", "[::1]", "[::1]:8080"])
def test_this_machine_is_called_by_its_names(page, host):
    assert status(page, host=host) == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "localhost@evil", "", "0.0.0.0", "10.0.0.1", "[::2]"]
)
def test_another_host_is_refused_everywhere(page, host):
    assert [status(page, host=host, path=path) for path in ("/", "/stream?view=/", "/static/x", "/token")] == [421] * 4


def test_a_name_that_the_operator_gives_is_taken(recorded):
    with served(recorded, Guard(names=frozenset({"monitor.example"}))) as (address, _):
        assert status(address, host="Monitor.Example:443") == 200


def test_without_the_token_nothing_is_shown_but_the_question_for_it(locked):
    answers = [
        requests.get(locked + path, timeout=10) for path in ("/", "/sight", "/stream?view=/", "/findings/x", "/group?name=orders")
    ]
    assert {answer.status_code for answer in answers} == {401}
    assert not [answer for answer in answers if "orders" in answer.text.replace("name=orders", "")]


@pytest.mark.parametrize("header", ["Bearer wrong", "Bearer ", "", TOKEN, f"Basic {TOKEN}"])
def test_a_wrong_token_is_none(locked, header):
    assert requests.get(locked, headers={"Authorization": header}, timeout=10).status_code == 401


def test_a_program_gives_the_token_in_a_header(locked):
    assert requests.get(locked, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=10).status_code == 200


def test_a_person_gives_the_token_once_and_is_led_to_where_they_wanted_to_go(locked):
    browser = requests.Session()
    answer = browser.post(f"{locked}/token", data={"token": TOKEN, "next": "/sight"}, allow_redirects=False, timeout=10)
    assert (answer.status_code, answer.headers["location"]) == (303, "/sight")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    assert TOKEN not in cookie
    assert browser.get(f"{locked}/sight", timeout=10).status_code == 200
    assert requests.get(locked, cookies={COOKIE: "0" * 64}, timeout=10).status_code == 401


@pytest.mark.parametrize(
    "elsewhere", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)", "/a\nb"]
)
def test_nobody_is_led_elsewhere(locked, elsewhere):
    answer = requests.post(f"{locked}/token", data={"token": TOKEN, "next": elsewhere}, allow_redirects=False, timeout=10)
    assert answer.headers["location"] == "/"


def test_a_form_without_end_is_refused(locked):
    assert requests.post(f"{locked}/token", data=b"token=" + b"x" * 10_000, timeout=10).status_code == 413


def test_behind_a_proxy_only_the_proxy_connects(recorded):
    for proxy, expected in (("127.0.0.1", 200), ("10.0.0.1", 403)):
        with served(recorded, Guard(proxy=proxy)) as (address, _):
            assert status(address) == expected


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "192.0.2.7", "monitor.example"])
def test_another_address_needs_a_token_or_a_proxy(address):
    with pytest.raises(NotSafeError, match="--token-file"):
        Guard(address).check()
    Guard(address, token=TOKEN).check()
    Guard(address, proxy="10.0.0.1").check()


def test_a_short_token_is_refused():
    with pytest.raises(NotSafeError, match="at least 16"):
        Guard(token="secret").check()


def test_nothing_is_changed_by_a_request(page):
    assert {requests.request(method, page, timeout=10).status_code for method in ("POST", "PUT", "DELETE")} == {404}


# --- streams ------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def stream(address, path="/", **query):
    with requests.get(f"{address}/stream?{urlencode({'view': path, **query})}", stream=True, timeout=10) as answer:
        yield answer


def messages(answer):
    for line in answer.iter_lines(chunk_size=1):
        if line.startswith(b"data: "):
            yield json.loads(line[6:])


def wait_until(condition):
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_the_number_of_viewers_is_bounded_and_who_goes_makes_room(recorded):
    with served(recorded, streams=2) as (address, page):
        with stream(address), stream(address):
            wait_until(lambda: page.open_streams == 2)
            with stream(address) as third:
                assert (third.status_code, third.headers["retry-after"]) == (503, "20")
            assert requests.get(address, timeout=10).status_code == 200
        wait_until(lambda: page.open_streams == 0)
        with stream(address) as again:
            assert again.status_code == 200


def test_a_viewer_is_sent_what_has_changed_and_nothing_else():
    state = filled(history.records())
    with served(state) as (address, _):
        shown = requests.get(address, timeout=10).text
        with stream(address, have=shown.partition('data-view="')[2].partition('"')[0]) as answer:
            told = messages(answer)
            take_line(state, json.dumps(history.quiet(1)[-1] | {"generation": 77, "members": []}))
            message = next(told)
    assert list(message) == ["now", "lists"]
    assert list(message["lists"]["groups"]["items"]) == [state.groups["prod", "mail-0001"].id]
    assert len(json.dumps(message)) < 4_000


def test_a_viewer_whose_page_is_not_known_is_sent_all_of_it(recorded):
    with served(recorded) as (address, _), stream(address, have="17") as answer:
        assert len(next(messages(answer))["lists"]["groups"]["items"]) == 15


def test_a_viewer_of_a_group_that_is_forgotten_is_told():
    state = filled(history.records())
    past = state.groups["prod", "orders"]
    with served(state) as (address, _), stream(address, f"/groups/{past.id}") as answer:
        told = answer.iter_lines(chunk_size=1)
        next(told)
        state.group(past.key, None)
        assert b"event: gone" in told


def test_the_server_ends_although_somebody_looks(recorded):
    with served(recorded) as (address, _):
        answer = requests.get(f"{address}/stream?view=/", stream=True, timeout=10)
        began_s = time.monotonic()
    assert time.monotonic() - began_s < 5
    answer.close()


@pytest.mark.parametrize("guard", [Guard(), Guard(token=TOKEN), Guard(proxy="192.0.2.1")])
def test_probes_come_by_address_and_without_a_token(recorded, guard):
    with served(recorded, guard) as (address, _):
        answers = [
            requests.get(f"{address}/{probe}", headers={"Host": "10.0.0.7:8080"}, timeout=10) for probe in ("healthz", "readyz")
        ]
    assert [(answer.status_code, answer.text, answer.headers["content-security-policy"]) for answer in answers] == [
        (200, "ok\n", POLICY)
    ] * 2


def test_a_page_is_ready_once_the_topics_were_read_and_stays_so_without_kafka():
    state = PageState()
    with served(state) as (address, _):
        assert (status(address, path="/healthz"), status(address, path="/readyz")) == (200, 503)
        state.read_to_the_end()
        assert (status(address, path="/healthz"), status(address, path="/readyz")) == (200, 200)
        state.say("Kafka does not answer")
        assert (status(address, path="/healthz"), status(address, path="/readyz")) == (200, 200)

"""The address that is listened on, and what is said when that cannot be."""

from __future__ import annotations

import socket
import urllib.error
import urllib.request

import pytest
from pydantic import ValidationError

from streaming.config.address import Address, parse_address
from streaming.config.metrics import Metrics
from streaming.errors import SetupError
from streaming.metrics.collector import Collector
from streaming.metrics.metrics_state import MetricsState
from streaming.metrics.server import Probes, opened

WRITTEN = {"option": "metrics.listen", "remedy": "set another port"}
WELL = Probes(lambda: None, lambda: None)


def asked(url):
    """Status and text of an answer."""
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:19930", Address("127.0.0.1", 19930)),
        ("0.0.0.0:0", Address("0.0.0.0", 0)),
        ("[::1]:9", Address("::1", 9)),
        ("metrics.example.org:80", Address("metrics.example.org", 80)),
    ],
)
def test_an_address_is_host_and_port(text, address):
    assert parse_address(text) == address
    assert Metrics(listen=text).listen == text


@pytest.mark.parametrize(
    "text", ["", "19930", ":19930", "localhost", "localhost:", "localhost:65536", "::1:80", "a b:1", "h:1/metrics"]
)
def test_what_is_no_address_is_refused_with_an_example(text):
    with pytest.raises(ValidationError, match=r"the address must be host:port, such as 127\.0\.0\.1:19930"):
        Metrics(listen=text)


def test_it_is_off_unless_asked_for_and_then_heard_on_this_machine_alone():
    assert not Metrics().enabled
    assert parse_address(Metrics().listen).host == "127.0.0.1"


@pytest.fixture
def collector():
    return Collector(MetricsState("mirror"), Metrics())


def test_any_free_port_may_be_asked_for(collector):
    with opened("127.0.0.1:0", collector, WELL, **WRITTEN) as url:
        with urllib.request.urlopen(url, timeout=10) as answer:
            said = answer.read().decode()
        assert "rebalance_monitor_up 0.0" in said
        with urllib.request.urlopen(f"{url}?name[]=rebalance_monitor_up", timeout=10) as answer:
            only = answer.read().decode()
        assert [line for line in only.splitlines() if not line.startswith("#")] == ["rebalance_monitor_up 0.0"]


def test_a_port_that_is_taken_is_said_with_the_remedy(collector):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(SetupError) as refused, opened(listen, collector, WELL, **WRITTEN):
            pass
    assert str(refused.value) == f"metrics.listen: {listen} is already in use; set another port"


def test_an_address_that_is_not_this_machines_is_said(collector):
    refused = pytest.raises(SetupError, match=r"metrics\.listen: cannot listen on 192\.0\.2\.1:19930: ")
    with refused, opened("192.0.2.1:19930", collector, WELL, **WRITTEN):
        pass


def test_what_is_no_address_is_said_under_the_name_of_its_option(collector):
    with (
        pytest.raises(SetupError, match=r"^--metrics: the address must be host:port"),
        opened("x", collector, WELL, option="--metrics", remedy=""),
    ):
        pass


@pytest.mark.parametrize("listen", ["127.0.0.1:0", "[::1]:0", "localhost:0"])
def test_probes_are_answered_beside_the_metrics_and_say_why_not(collector, listen):
    troubles = {"healthz": None, "readyz": "no batch has ended yet"}
    with opened(listen, collector, Probes(lambda: troubles["healthz"], lambda: troubles["readyz"]), **WRITTEN) as url:
        at = url.removesuffix("metrics")
        assert (asked(f"{at}healthz"), asked(f"{at}readyz")) == ((200, "ok\n"), (503, "no batch has ended yet\n"))
        troubles.update(healthz="it hangs", readyz=None)
        assert (asked(f"{at}healthz"), asked(f"{at}readyz")) == ((503, "it hangs\n"), (200, "ok\n"))
        assert "rebalance_monitor_up 0.0" in asked(url)[1]

"""``--resolve`` of the tap: addresses of brokers whose names do not resolve here."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from typer.testing import CliRunner

from streaming.cli import app

HOST, NAME = "127.0.0.1", "broker-1.invalid"


def tap(*options: str, port: int = 0) -> Any:
    words = ["tap", "--listen", f"{HOST}:{port}={NAME}:9093", "--bootstrap-server", f"{HOST}:1", *options]
    return CliRunner().invoke(app, words, catch_exceptions=False)


@pytest.mark.parametrize("text", ["broker-1.invalid", "=10.0.0.5", "broker-1.invalid=", ""])
def test_what_is_not_of_the_form_is_refused_with_the_form(text):
    result = tap("--resolve", text)
    assert result.exit_code == 2
    assert f"--resolve {text!r} is not NAME=ADDRESS, such as broker-1.internal=10.0.0.5" in " ".join(result.stderr.split())


def test_two_addresses_of_one_name_are_refused():
    result = tap("--resolve", f"{NAME}=10.0.0.5", "--resolve", f"{NAME}=10.0.0.6")
    assert result.exit_code == 2
    assert f"--resolve gives {NAME} two addresses, 10.0.0.5 and 10.0.0.6: leave one" in " ".join(result.stderr.split())


@pytest.mark.parametrize("rewrite", [[], ["--rewrite", "--ports", "29100-29109"]], ids=["as it is", "rewritten"])
def test_a_name_that_is_given_an_address_is_not_looked_up(rewrite, tmp_path):
    """The port is taken, so the tap ends with its next complaint."""
    options = [*rewrite, "--loss-file", str(tmp_path / "loss")]
    options += ["--brokers-file", str(tmp_path / "brokers")] if rewrite else []
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        assert f"cannot resolve broker {NAME}:9093" in tap(*options, port=port).stderr
        given = tap(*options, "--resolve", "other.invalid=10.0.0.5", "--resolve", f"{NAME}={HOST}", port=port)
    assert given.exit_code == 2
    assert f"cannot listen on {HOST}:{port}: address already in use" in given.stderr

"""How the demo ends when it is interrupted while it is set up."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from streaming.demo import show

INTERRUPTED = "interrupted; stopping everything"


def interrupted_by(error, monkeypatch, tmp_path, expected):
    def set_up(*_):
        raise error

    monkeypatch.setattr(show, "_set_up", set_up)
    console = Console(file=io.StringIO(), width=160)
    with pytest.raises(expected):
        show.run(show.Spectacle(120.0, tmp_path, keep=False, plain=True), console)
    return console.file.getvalue()


def test_a_ctrl_c_that_librdkafka_lets_in_while_a_client_is_taken_down_is_a_ctrl_c(monkeypatch, tmp_path):
    error = SystemError("<built-in function all> returned a result with an exception set")
    error.__cause__ = KeyboardInterrupt()
    assert INTERRUPTED in interrupted_by(error, monkeypatch, tmp_path, KeyboardInterrupt)
    assert INTERRUPTED in interrupted_by(KeyboardInterrupt(), monkeypatch, tmp_path, KeyboardInterrupt)


def test_any_other_system_error_is_what_it_is(monkeypatch, tmp_path):
    assert INTERRUPTED not in interrupted_by(SystemError("bad call"), monkeypatch, tmp_path, SystemError)

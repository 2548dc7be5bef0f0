"""Keys out of a pseudo-terminal, and that the terminal is as it was afterwards."""

from __future__ import annotations

import os
import pty
import termios

import pytest

from streaming.terminal.keyboard import Keyboard, keys_of


@pytest.fixture
def terminal():
    outer, inner = pty.openpty()
    yield outer, inner
    for descriptor in (outer, inner):
        os.close(descriptor)


@pytest.mark.parametrize(
    ("text", "keys", "begun"),
    [
        ("qé/", ["q", "é", "/"], ""),
        ("\x1b[A\x1bOB\x1b[5~\x1b[H\r\n\x7f", ["up", "down", "page up", "home", "enter", "enter", "backspace"], ""),
        ("\x1b", [], "\x1b"),
        ("a\x1b[1;5", ["a"], "\x1b[1;5"),
        ("\x1b[1;5Cx", ["x"], ""),
        ("\x1bq", ["escape", "q"], ""),
        ("\x00\x01\u202e", [], ""),
    ],
)
def test_text_of_a_terminal_becomes_keys(text, keys, begun):
    assert keys_of(text) == (keys, begun)


def test_keys_are_read_as_they_are_pressed_and_a_lone_escape_after_a_moment(terminal):
    outer, inner = terminal
    with Keyboard(inner) as keyboard:
        os.write(outer, "ä".encode()[:1])
        assert keyboard.read(1) == []
        os.write(outer, "ä".encode()[1:] + b"\x1b")
        assert keyboard.read(1) == ["ä"]
        assert keyboard.read(1) == ["escape"]
        os.write(outer, b"\x1b[")
        assert keyboard.read(1) == []
        os.write(outer, b"B")
        assert keyboard.read(1) == ["down"]
        assert keyboard.read(0) == []


@pytest.mark.parametrize("error", [None, ValueError, KeyboardInterrupt, SystemExit])
def test_the_terminal_is_as_it_was_whatever_ends_the_reading(terminal, error):
    _, inner = terminal
    before = termios.tcgetattr(inner)

    def look():
        with Keyboard(inner):
            assert termios.tcgetattr(inner)[3] & (termios.ECHO | termios.ICANON) == 0
            assert termios.tcgetattr(inner)[3] & termios.ISIG
            if error is not None:
                raise error

    if error is None:
        look()
    else:
        with pytest.raises(error):
            look()
    assert termios.tcgetattr(inner) == before


def test_a_terminal_that_is_gone_ends_the_reading():
    outer, inner = pty.openpty()
    with Keyboard(inner) as keyboard:
        os.close(outer)
        with pytest.raises(EOFError):
            keyboard.read(1)
    os.close(inner)

"""The options of the demo, before anything is started."""

from __future__ import annotations

import pytest
import typer
from typer.testing import CliRunner

from streaming.commands.demo import demo, seconds

app = typer.Typer()
app.command()(demo)


@pytest.mark.parametrize(("text", "expected"), [("90s", 90), ("2m", 120), ("75", 75), ("1.5m", 90), (" 60 s ", 60)])
def test_durations_are_read(text, expected):
    assert seconds(text) == expected


@pytest.mark.parametrize("text", ["", "soon", "-5s", "1h", "90ss"])
def test_what_is_no_duration_is_refused_with_an_example(text):
    with pytest.raises(typer.BadParameter, match="write 90s or 2m"):
        seconds(text)


def test_too_short_a_demo_is_refused_before_anything_starts():
    result = CliRunner().invoke(app, ["--duration", "10s"])
    assert result.exit_code == 2
    assert "at least 45s" in " ".join(result.output.replace("│", " ").split())

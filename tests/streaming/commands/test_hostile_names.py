"""Names come from the wire: no command gives the terminal a character of theirs that it obeys, or that turns or breaks a line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from coordinator_model.wire.recording import MAGIC, pack_record
from streaming.cli import app
from streaming.commands import decode, output, run, tap, verify, view
from streaming.kafka.record import Record
from streaming.published.wire_text import visible
from streaming.replay.verify import Answers
from streaming.sinks.findings import News
from tests.coordinator_model.classic import settled, zombie
from tests.coordinator_model.conversation import Conversation

HOSTILE = "x\x1b]0;t\x07\x1b[2J\x9b2J\r\nerror: y\u2028\x85\u202e\u2066[red]"
"""Escape sequences of both widths, what ends a line, and what turns its direction."""

OWN = re.compile(r"\x1b\[[0-9;]*m|\u2007")
"""What commands themselves write: colours, and the space of a digit in Markdown."""


def assert_harmless(text: str, *, names: bool = True) -> None:
    plain = OWN.sub("", text)
    assert [each for each in plain if not each.isprintable() and each != "\n"] == []
    assert not any(line.startswith("error: y") for line in plain.splitlines())
    assert not names or "u001b" in plain


@pytest.fixture(scope="module")
def talk():
    """A zombie in a group, both with a hostile name."""
    talk = Conversation(HOSTILE)
    a, b = settled(talk, (HOSTILE, f"b{HOSTILE}"))
    talk.wait(2_000)
    talk.round([a, b], 4)
    b.generation = 3
    zombie(talk, b, 22, times=8)
    talk.settle()
    assert talk.findings
    return talk


@pytest.fixture(scope="module")
def recording(talk, tmp_path_factory):
    file = tmp_path_factory.mktemp("hostile") / "traffic.records"
    file.write_bytes(MAGIC + b"".join(map(pack_record, talk.records)))
    return str(file)


@pytest.fixture(scope="module")
def published(recording, tmp_path_factory):
    """What the monitor publishes about the recording: a file of events, findings and groups."""
    file = tmp_path_factory.mktemp("hostile") / "published.jsonl"
    file.write_text(invoke("replay", "--format", "json", "--events", recording).stdout)
    return file


@pytest.fixture(scope="module")
def groups(talk):
    """The groups as published, with a rebalance that is over."""
    return [group.content for group in talk.model.changed_groups()]


def invoke(*words):
    return CliRunner().invoke(app, list(words), env={"COLUMNS": "200"})


def test_the_names_are_as_hostile_as_they_can_be(talk):
    assert HOSTILE in talk.findings[-1].summary


@pytest.mark.parametrize(
    "words",
    [
        ("replay",),
        ("replay", "--group", HOSTILE),
        ("replay", "--format", "json", "--events"),
        ("decode",),
        ("decode", "--verbose", "--errors-only"),
        ("report", "--format", "markdown"),
        ("report", "--format", "json"),
        ("report", "--format", "html"),
        ("clients", "--file"),
        ("clients", "--json", "--file"),
    ],
    ids=" ".join,
)
def test_what_reads_files(words, recording):
    result = invoke(*words, recording)
    assert result.exit_code in {0, 1}, result.output
    assert_harmless(result.stdout)
    assert_harmless(result.stderr, names=False)


def test_a_live_replay(recording):
    result = CliRunner().invoke(app, ["replay", "-"], input=Path(recording).read_bytes())
    assert_harmless(result.stdout)


def test_frames_on_a_terminal(talk, recording, capsys):
    show = decode._show_on(output.stdout())
    for line in decode.lines_of(Path(recording), decode.Wanted(), decode.Counts()):
        show(line)
    assert_harmless(capsys.readouterr().out)


def test_json_reads_as_before(recording):
    lines = [json.loads(line) for line in invoke("replay", "--format", "json", recording).stdout.split("\n") if line]
    assert {line["group"] for line in lines} == {HOSTILE}


def test_what_writes_files_does_not_print_names(recording, tmp_path):
    result = invoke("anonymise", recording, str(tmp_path / "out"), "--names", str(tmp_path / "names"))
    assert result.exit_code == 0
    assert_harmless(result.output, names=False)


def test_a_trace(published):
    assert_harmless(invoke("trace", HOSTILE, "--file", str(published)).stdout)


def test_a_name_that_was_nearly_hit(recording):
    assert_harmless(invoke("report", recording, "--format", "json", "--group", HOSTILE[:-1]).stderr)


@pytest.mark.parametrize(
    "words",
    [
        *((name, *form) for name in ("groups", "findings", "rebalances", "clients") for form in ((), ("--json",))),
        ("findings", "--full", "--resolved"),
        ("group", HOSTILE),
        ("group", HOSTILE, "--json"),
        ("group", HOSTILE[:-1]),
    ],
    ids=" ".join,
)
def test_what_reads_topics(words, groups, published, monkeypatch):
    monkeypatch.setattr(view, "CompactedReader", lambda _, topics, *__: Topics(topics, groups, published))
    result = invoke(*words, "--bootstrap-server", "nowhere:1")
    if words[0] == "group" and words[1] != HOSTILE:
        assert_harmless(result.stderr)
    else:
        assert result.exit_code == 0, result.output
        assert_harmless(result.stdout)


class Topics:
    """The results of the monitor, as read from Kafka."""

    def __init__(self, topics, groups, published):
        self._topics, self._groups, self._published = topics, groups, published

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def start(self, *, patience_s):
        pass

    def history(self):
        of = {name.rpartition("-")[2].rpartition(".")[2]: name for name in self._topics}
        contents = [json.loads(line) for line in self._published.read_text().split("\n") if line]
        for content in contents + self._groups:
            kind = "findings" if "rule" in content else "events" if "kind" in content else "groups"
            if kind in of:
                yield Record(of[kind], 0, 0, content.get("id", "g").encode(), json.dumps(content).encode(), 1.0)


def test_verify(groups, capsys):
    (group,) = groups
    outcome = verify.compare({HOSTILE: group}, Answers({}, {}))
    outcome.refused[HOSTILE] = HOSTILE
    outcome.different[HOSTILE].append(f"{HOSTILE} is a member only to the monitor")
    outcome.unknown[HOSTILE] = HOSTILE
    verify._show(outcome, output.stdout())
    assert_harmless(capsys.readouterr().out)
    with pytest.raises(verify.VerifyError) as clusters:
        verify._of_one_cluster([{"cluster": HOSTILE, "group": "g"}, {"cluster": "c", "group": "g"}], None)
    assert_harmless(str(clusters.value))


def test_run(talk, capsys):
    screen = run.Screen(output.stdout())
    screen.news(News(talk.findings[-1].as_json(), opened=True))
    screen.say(HOSTILE)
    assert_harmless(capsys.readouterr().out)


def test_errors_warnings_and_what_the_tap_says(capsys):
    output.print_error(visible(HOSTILE))
    output.print_warning(visible(HOSTILE))
    output.print_internal_error(HOSTILE)
    tap._say(HOSTILE)
    assert_harmless(capsys.readouterr().err)


def test_progress_and_whatever_else_a_console_shows(capsys):
    console = output.stdout()
    console.print(HOSTILE.replace("\n", ""))
    with console.status(HOSTILE.replace("\n", "")):
        pass
    assert_harmless(capsys.readouterr().out)

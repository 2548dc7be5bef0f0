"""Names come from the wire: no command gives the terminal a character of theirs that it obeys, or that turns or breaks a line."""

from __future__ import annotations

import ast
import io
import json
import logging
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import requests
from typer.testing import CliRunner

import streaming
from coordinator_model.groups.records import host_of
from coordinator_model.wire.recording import MAGIC, pack_record
from streaming import logs
from streaming.cli import _COMMANDS, app
from streaming.commands import decode, notify, output, run, tap, verify, view
from streaming.commands.top import TopicsShown
from streaming.config.notify import Stdout
from streaming.demo import view as demo_view
from streaming.demo.scenarios import HEALTHY_GROUP, TROUBLES
from streaming.demo.screen_state import ScreenState
from streaming.demo.verdicts import Truth
from streaming.kafka import mirror_topic as kafka_mirror_topic
from streaming.kafka.connection import ConnectionProblem, UnreachableError
from streaming.kafka.record import Record
from streaming.notify.dispatcher import in_words
from streaming.notify.http import Accepted
from streaming.notify.notification import Event, Links, Notification
from streaming.notify.webhook import StdoutChannel
from streaming.published.page_state import PageState
from streaming.published.taking import take_line
from streaming.published.wire_text import shown_name, visible
from streaming.replay.verify import Answers
from streaming.sinks.findings import News
from streaming.terminal.live_view import LiveView
from streaming.terminal.screen import Screen
from streaming.watch.said import Said
from streaming.watch.self_check import Rates
from streaming.watch.shown import WatchShown
from streaming.watch.watch import Tally
from tests.coordinator_model.classic import settled, zombie
from tests.coordinator_model.conversation import Conversation
from tests.streaming.mirror.wires import captured, pcap
from tests.streaming.web.conftest import served

UNSEEN = "\u00ad\u034f\u180e\u200b\u200c\u200d\u2060\u2800\u3164\ufe0f\ufeff\U000e0041"
"""Characters without a width, and letters without a form."""

HOSTILE = f"x\x1b]0;t\x07\x1b[2J\x9b2J\r\nerror: y\u2028\x85\u202e\u2066{UNSEEN}[red]" + "w" * 10_000
"""Escape sequences of both widths, what ends a line, what turns its direction, what cannot be seen; and 10 kB of it."""

OWN = re.compile(r"\x1b\[[0-9;]*m|\u2007")
"""What commands themselves write: colours, and the space of a digit in Markdown."""


def assert_harmless(text: str, *, names: bool = True, unseen: str = UNSEEN) -> None:
    plain = OWN.sub("", text)
    assert [each for each in plain if each in unseen or (not each.isprintable() and each != "\n")] == []
    assert [line for line in plain.splitlines() if line.startswith("error: y")] == []
    assert not names or "u001b" in plain


def with_a_zombie(*clients):
    """A zombie in a group with a hostile name."""
    talk = Conversation(HOSTILE)
    a, b = settled(talk, clients)
    talk.wait(2_000)
    talk.round([a, b], 4)
    b.generation = 3
    zombie(talk, b, 22, times=8)
    talk.settle()
    assert talk.findings
    return talk


@pytest.fixture(scope="module")
def talk():
    return with_a_zombie(HOSTILE, f"b{HOSTILE}")


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


READ_FILES = [
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
]


def called(words):
    """What a case is called."""
    return " ".join(words).replace(HOSTILE, "NAME").replace(HOSTILE[:-1], "NAM")


@pytest.mark.parametrize("words", READ_FILES, ids=called)
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


READ_TOPICS = [
    *((name, *form) for name in ("groups", "findings", "rebalances", "clients") for form in ((), ("--json",))),
    ("findings", "--full", "--resolved"),
    ("group", HOSTILE),
    ("group", HOSTILE, "--json"),
    ("group", HOSTILE[:-1]),
]


@pytest.mark.parametrize("words", READ_TOPICS, ids=called)
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


def test_watch(tmp_path):
    talk = with_a_zombie("a", "b")  # a capture takes no connection for Kafka's whose client id cannot be printed
    broker = "10.0.0.9:9092"
    sent = [record._replace(client_address=host_of(record.client_address), broker=broker) for record in talk.records]
    command = [sys.executable, "-m", "streaming.cli", "watch", "-", "--state", str(tmp_path / "state"), "--cluster", HOSTILE]
    done = subprocess.run(command, input=pcap(captured(sent)), capture_output=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert_harmless(done.stdout.decode())
    assert_harmless(done.stderr.decode(), names=False)
    assert HOSTILE in {json.loads(line)["group"] for line in done.stdout.splitlines()}


def test_what_watch_says(capsys):
    said = Said(lambda sentence: output.say(output.stderr(), sentence))
    said.say(HOSTILE)
    assert_harmless(capsys.readouterr().err)


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


def watch_shown():
    """What the screen of a watch has above the groups."""
    said, check = Said(lambda _: None), SimpleNamespace(look=lambda: None, rates=Rates(1.0, 1.0, 0.1), nothing=HOSTILE)
    said.say(f"of {HOSTILE}")
    return WatchShown(SimpleNamespace(title=HOSTILE, tally=Tally), check, said, web=None)


@pytest.mark.parametrize("source", [lambda: TopicsShown(HOSTILE), watch_shown], ids=["top", "watch"])
def test_the_live_screen(source, talk, groups, capsys):
    state = PageState(clock=lambda: talk.now_us / 1e6)
    for content in groups:
        state.group((content["cluster"], content["group"]), content)
    for each in talk.findings:
        state.finding(each.id, each.as_json())
    state.read_to_the_end()
    live, console = LiveView(state, source()), output.stdout(soft_wrap=False)
    for key in ("", "enter", "escape", "f"):
        live.press(key)
        console.print(Screen(live, talk.now_us / 1e6), height=24, end="")
    assert_harmless(capsys.readouterr().out)


def test_the_demo(talk, groups, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")  # words as long as these names are cut anywhere
    screen_state = ScreenState()
    screen_state.note(HOSTILE)
    screen_state.group_read({**groups[0], "group": HEALTHY_GROUP})
    screen_state.finding_read(talk.findings[-1].as_json(), talk.now_us)
    console, log = output.stdout(soft_wrap=False), demo_view.Log(output.stdout())
    line = demo_view.standing(TROUBLES[0], Truth(fact_us=1), screen_state.observations(), began=True, ended=True)
    screen = demo_view.DemoScreen(console, screen_state, lambda: [line], page="http://localhost/", began_us=1, duration_s=60)
    console.print(screen)
    console.print(demo_view.summary(demo_view.outcome([line], screen_state, 1.0), 160))
    log.note(screen_state.notes()[0])
    log.observation(screen_state.observations()[0], None)
    assert_harmless(capsys.readouterr().out)


WRONG = [
    ("mirror", "--pcap", f"{HOSTILE}.pcap", "--bootstrap-server", HOSTILE),
    ("mirror", "--request-log", HOSTILE, "--bootstrap-server", "nowhere:1", "--topic", HOSTILE),
    ("record", HOSTILE, "--bootstrap-server", HOSTILE),
    ("tap", "--listen", HOSTILE, "--bootstrap-server", HOSTILE),
    ("run", "--config", HOSTILE),
    ("topics", "--config", HOSTILE),
    ("config", "check", HOSTILE),
    ("notify", "--config", HOSTILE),
    ("web", "--file", HOSTILE),
    ("web", "--file", HOSTILE, "--listen", HOSTILE),
    ("verify", "--bootstrap-server", "nowhere:1", "--config", HOSTILE),
    ("checkpoint", HOSTILE),
    ("rules", HOSTILE),
    ("protocol", HOSTILE),
    (HOSTILE,),
]


@pytest.mark.parametrize("words", WRONG, ids=called)
def test_an_argument_that_is_wrong(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(kafka_mirror_topic, "reach", unreachable)
    result = invoke(*words)
    assert result.exit_code != 0
    # Of a command that there is not Python's repr is shown: it escapes what a terminal obeys, of what the operator typed.
    assert_harmless(result.output, names=False, unseen="" if "No such command" in result.output else UNSEEN)


def unreachable(*_):
    raise UnreachableError(ConnectionProblem.ABSENT, HOSTILE)


def test_what_is_sent_to_a_terminal(talk, capfdbinary):
    notice = Notification(Event.OPEN, talk.findings[-1].as_json())
    output.say(output.stderr(), in_words(notice))
    sent = io.BytesIO()
    channel = StdoutChannel(Stdout(), links=Links(), stream=sent)
    assert notify._DryChannel(channel).send(channel.only(notice, 1.0)) == Accepted()
    assert channel.send(channel.only(notice, 1.0)) == Accepted()
    captured = capfdbinary.readouterr()
    for written in (captured.out, captured.err, sent.getvalue()):
        assert_harmless(written.decode(), names=False)


def test_what_libraries_log(capsys, tmp_path):
    file = tmp_path / "log"
    logs.log_to_terminal("%(message)s")
    record = logging.LogRecord("x", logging.WARNING, "x", 1, "of %s", (HOSTILE,), None)
    logging.lastResort.handle(record)
    with pytest.raises(KeyError) as raised:
        {}[HOSTILE]
    failed = logging.LogRecord("x", logging.ERROR, "x", 1, HOSTILE, None, raised._excinfo)
    logging.lastResort.handle(failed)
    said = capsys.readouterr().err
    assert "Traceback" in said
    assert_harmless(said)
    root = logging.getLogger()
    before = root.handlers[:]
    logs.log_to(file)
    (handler,) = set(root.handlers) - set(before)
    try:
        handler.handle(record)
        handler.handle(failed)
    finally:
        handler.close()
        root.removeHandler(handler)
    assert_harmless(file.read_text())


def test_the_page(talk, groups, published):
    state = PageState(clock=lambda: talk.now_us / 1e6)
    for content in groups:
        state.group((content["cluster"], content["group"]), content)
    for line in published.read_text().splitlines():
        take_line(state, line)
    for each in talk.findings:
        state.finding(each.id, each.as_json())
    state.read_to_the_end()
    with served(state) as (address, _):
        for path in (
            "/",
            "/sight",
            *(f"/groups/{past.id}" for past in state.groups.values()),
            *(f"/findings/{id_}" for id_ in state.findings),
        ):
            assert_harmless(requests.get(f"{address}{path}", timeout=10).text)


WALKED_BY = {
    "anonymise": test_what_writes_files_does_not_print_names,
    "demo": test_the_demo,
    "notify": test_what_is_sent_to_a_terminal,
    "run": test_run,
    "tap": test_errors_warnings_and_what_the_tap_says,
    "top": test_the_live_screen,
    "trace": test_a_trace,
    "verify": test_verify,
    "watch": test_watch,
    "web": test_the_page,
}
"""Commands that need more than words."""

NO_NAMES = {
    "checkpoint": "sizes, times, and the operator's own folder",
    "config": "the operator's own configuration",
    "mirror": "counts of packets and records, and the operator's own files",
    "protocol": "the table, which is code",
    "record": "counts of records",
    "rules": "the catalogue, which is code",
    "topics": "the operator's own configuration",
}
"""What commands print that print no name of the wire; what they say of a wrong argument is walked."""


def test_each_command_there_is_is_walked():
    walked = {words[0] for words in READ_FILES + READ_TOPICS} | WALKED_BY.keys()
    assert _COMMANDS.keys() - walked - NO_NAMES.keys() == set()
    assert (walked | NO_NAMES.keys()) - _COMMANDS.keys() == set()
    assert walked & NO_NAMES.keys() == set()
    assert NO_NAMES.keys() <= {words[0] for words in WRONG}


@pytest.mark.parametrize("words", [("replay",), ("report", "--format", "markdown")], ids=called)
def test_a_name_that_ends_in_a_blank_is_quoted(words, tmp_path):
    assert [shown_name(name) for name in ("orders", "orders ", " a b")] == ["orders", '"orders "', '" a b"']
    talk = Conversation("orders ")
    a, b = settled(talk, ("a", "b"))
    talk.round([a, b], 4)
    file = tmp_path / "traffic.records"
    file.write_bytes(MAGIC + b"".join(map(pack_record, talk.records)))
    assert '"orders "' in invoke(*words, str(file)).stdout


PRINTS = {"print", "Console", "logging.StreamHandler", "logging.basicConfig", "typer.echo", "click.echo"}
"""Calls that write to a terminal."""

STREAMS = {f"sys.{stream}.{way}" for stream in ("stdout", "stderr") for way in ("write", "writelines", "buffer")}

ONE_PLACE = {
    "streaming.commands.output": "where consoles are made",
    "streaming.logs": "where logs are",
    "streaming.commands.docs": "a developer's",
    "streaming.metrics.table": "a developer's",
    "streaming.spark.jvm": "of the set-up, before any name came from anywhere",
    "streaming.cli": "the version alone",
    "streaming.demo.consumer": "JSON in ASCII, for the demo",
    "streaming.commands.report": "a report, whose form is made harmless",
    "streaming.notify.webhook": "JSON in ASCII",
    "streaming.watch.lines": "JSON, each line made harmless",
}


def test_nothing_is_printed_past_the_one_place():
    found = {}
    root = Path(streaming.__file__).parent
    for file in root.rglob("*.py"):
        calls = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call | ast.Attribute)]
        names = {ast.unparse(node.func) for node in calls if isinstance(node, ast.Call)}
        streams = {ast.unparse(node) for node in calls if isinstance(node, ast.Attribute)} & STREAMS
        if names & PRINTS or streams:
            found[".".join(["streaming", *file.relative_to(root).with_suffix("").parts])] = sorted((names & PRINTS) | streams)
    assert {module: how for module, how in found.items() if module not in ONE_PLACE} == {}
    assert ONE_PLACE.keys() - found.keys() == set()

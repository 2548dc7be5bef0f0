"""``config check``: what is in force and whence, what is refused, and that no secret is ever shown."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from streaming.commands.config import MASK, config, lines
from streaming.config.settings import read
from streaming.quality.suite import DEFAULT_SUITE
from streaming.spark import checkpoint
from tests.certificates import Authority

TEXT = '[kafka]\nbootstrap_servers = "k:9092"\n'


@pytest.fixture
def check(tmp_path, monkeypatch):
    """Check a text; gives exit status, standard output and standard error."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "monitor.toml"

    def run(text: str) -> tuple[int, str, str]:
        file.write_text(text)
        done = CliRunner().invoke(config, ["check", str(file)], catch_exceptions=False)
        return done.exit_code, done.stdout, done.stderr

    return run


def test_each_value_is_shown_with_where_it_came_from(check, monkeypatch):
    monkeypatch.setenv("REBALANCE_MONITOR_JOB__CORES", "1")
    monkeypatch.setenv("REBALANCE_MONITOR_QUALITY", '{"docs_every_s": 5}')
    status, out, errors = check(TEXT + '[kafka.librdkafka_options]\n"socket.timeout.ms" = 1000\n[quality]\ntrigger_s = 20\n')
    assert (status, errors) == (0, "")
    told = [" ".join(line.split()) for line in out.splitlines()]
    assert 'bootstrap_servers = "k:9092" file' in told
    assert 'librdkafka_options.socket.timeout.ms = "1000" file' in told
    assert "cores = 1 REBALANCE_MONITOR_JOB__CORES" in told
    assert "docs_every_s = 5.0 REBALANCE_MONITOR_QUALITY" in told
    assert "trigger_s = 20.0 file" in told
    assert 'mirror = "rebalance-mirror" default' in told
    assert [line for line in told if line.startswith("[")] == [
        "[kafka]",
        "[topics]",
        "[job]",
        "[spark]",
        "[quality]",
        "[model]",
        "[notify]",
        "[metrics]",
        "[lag]",
        "[traces]",
    ]
    assert told[-1].endswith("monitor.toml can be used")


def test_what_is_refused_says_so_with_exit_status_2(check):
    status, out, errors = check(TEXT + "[job]\ncores = 0\ntriger_ms = 5\n")
    assert (status, out) == (2, "")
    assert [line.split(": ", 2)[2] for line in errors.splitlines()] == [
        "job.cores: input should be greater than or equal to 1 (it is 0)",
        "unknown key job.triger_ms; did you mean trigger_ms?",
    ]


def test_secrets_are_masked_wherever_they_come_from(check, monkeypatch, tmp_path):
    authority = Authority(tmp_path)
    client = authority.identity("client", password="hunter2")
    (tmp_path / "password").write_text("hunter2")
    monkeypatch.setenv("REBALANCE_MONITOR_KAFKA__SSL_KEY_PASSWORD", "hunter2")
    monkeypatch.setenv("REBALANCE_MONITOR_KAFKA__LIBRDKAFKA_OPTIONS", '{"sasl.oauthbearer.client.secret": "hunter2"}')
    monkeypatch.setenv("REBALANCE_MONITOR_KAFKA__SPARK_OPTIONS", '{"sasl.jaas.config": "x required password=\\"hunter2\\";"}')
    monkeypatch.setenv("REBALANCE_MONITOR_NOTIFY__WEBHOOK__CHAT__URL", "https://example.org/hunter2")
    status, out, errors = check(
        f"{TEXT}security_protocol = 'SASL_SSL'\nsasl_mechanism = 'PLAIN'\nsasl_username = 'u'\nsasl_password_file = 'password'\n"
        f"ssl_certificate_file = '{client.certificate}'\nssl_key_file = '{client.key}'\n"
    )
    assert status == 0, errors
    assert "hunter2" not in out + errors
    assert [line.split(" ")[0] for line in out.splitlines() if MASK in line] == [
        "ssl_key_password",
        "spark_options.sasl.jaas.config",
        "librdkafka_options.sasl.oauthbearer.client.secret",
        "webhook.chat.url",
    ]


def test_every_key_that_is_set_is_shown(tmp_path):
    file = tmp_path / "monitor.toml"
    file.write_text(TEXT + 'spark_options = {"a.b" = "c"}\n')
    shown = {".".join(line.path) for line in lines(read(file).config)}
    assert {"cluster", "kafka.spark_options.a.b", "model.broadcast_assignors", "notify.wait_s.critical", "job.log_file"} <= shown
    assert "kafka.sasl_password" not in shown


def test_a_secret_that_everybody_may_read_is_warned_of(check, tmp_path):
    password = tmp_path / "password"
    password.write_text("hunter2")
    text = (
        f"{TEXT}security_protocol = 'SASL_SSL'\nsasl_mechanism = 'PLAIN'\nsasl_username = 'u'\nsasl_password_file = '{password}'\n"
    )
    password.chmod(0o644)
    status, _, errors = check(text)
    assert status == 0
    assert errors == (
        f"warning: kafka.sasl_password_file: {password} may be read by every user of this machine; chmod o-r {password}\n"
    )
    password.chmod(0o640)
    assert check(text)[2] == ""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            '[kafka.librdkafka_options]\n"socket.timeout" = 5\n',
            'the settings under [kafka] are not accepted: No such configuration property: "socket.timeout"',
        ),
        ('[job]\ncheckpoint = "monitor.toml/checkpoint"\n', "job.checkpoint: "),
        ('[quality]\nsuite = "own.json"\n', "quality.suite: own.json: expectation 1 asks for column 'colour'"),
    ],
)
def test_what_would_fail_later_is_found_before(check, tmp_path, text, words):
    (tmp_path / "own.json").write_text('{"name": "x", "expectations": [{"type": "t", "kwargs": {"column": "colour"}}]}')
    status, _, errors = check(TEXT + text)
    assert status == 2
    assert errors.startswith("error: ")
    assert words in errors
    assert len(errors.splitlines()) == 1


def test_a_key_of_somebody_else_is_found_before(check, tmp_path):
    authority = Authority(tmp_path)
    client, other = authority.identity("client"), authority.identity("other")
    status, _, errors = check(
        f"{TEXT}security_protocol = 'SSL'\nssl_certificate_file = '{client.certificate}'\nssl_key_file = '{other.key}'\n"
    )
    assert status == 2
    assert "the settings under [kafka] are not accepted: " in errors


@pytest.mark.parametrize(
    ("expectation", "words"),
    [
        ({"type": "expect_miracles", "kwargs": {"column": "key"}}, "Great Expectations does not take expect_miracles"),
        ({"type": "expect_column_values_to_be_in_set", "kwargs": {"column": "key", "value": [1]}}, "value_set"),
        (
            {"type": "expect_column_values_to_match_regex", "kwargs": {"column": "key", "regex": "("}},
            "expect_column_values_to_match_regex column=key regex=(: Great Expectations cannot check it: ",
        ),
        ({"type": "expect_column_values_to_be_between", "kwargs": {"column": "client_id", "min_value": 1}}, "cannot check it: "),
    ],
)
def test_an_expectation_that_cannot_be_checked_is_found_before(check, tmp_path, expectation, words):
    suite = json.loads(DEFAULT_SUITE.read_text())
    suite["expectations"].append(expectation)
    (tmp_path / "own.json").write_text(json.dumps(suite))
    status, _, errors = check(TEXT + '[quality]\nsuite = "own.json"\n')
    assert status == 2
    assert errors.startswith("error: quality.suite: ")
    assert words in errors
    assert len(errors.splitlines()) == 1


def test_a_suite_of_ones_own_passes(check, tmp_path):
    suite = json.loads(DEFAULT_SUITE.read_text())
    suite["expectations"].append({"type": "expect_column_values_to_match_regex", "kwargs": {"column": "key", "regex": "^[a-z]+$"}})
    (tmp_path / "own.json").write_text(json.dumps(suite))
    status, out, errors = check(TEXT + '[quality]\nsuite = "own.json"\n')
    assert (status, errors) == (0, "")
    assert 'suite = "own.json" file' in " ".join(out.split())


def test_a_jvm_option_that_java_does_not_know_is_refused_in_its_words(check):
    status, _, errors = check(TEXT + '[job]\njvm_options = "-XX:+UseSerialGC -XX:+NoSuchThing"\n')
    assert (status, errors) == (2, "error: job.jvm_options: Java does not start with them: Unrecognized VM option 'NoSuchThing'\n")


def test_a_disk_that_is_too_small_for_the_checkpoint_is_refused(check, monkeypatch):
    monkeypatch.setattr(checkpoint, "SPACE_NEEDED_MB", 10**9)
    status, _, errors = check(TEXT)
    assert status == 2
    assert errors.startswith("error: job.checkpoint: the disk under ")
    assert "make room, or set job.checkpoint to a folder on another disk" in errors
    assert len(errors.splitlines()) == 1

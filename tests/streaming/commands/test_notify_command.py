"""What ``rebalance-monitor notify`` says when it cannot begin: a sentence, and exit status 2."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from streaming.cli import app
from streaming.demo.broker import HOST, free_port

KAFKA = '[kafka]\nbootstrap_servers = "{address}"\nreach_timeout_s = 1\n'


@pytest.fixture
def notify(tmp_path):
    def run(sections: str, *options: str) -> str:
        file = tmp_path / "monitor.toml"
        file.write_text(KAFKA.format(address=f"{HOST}:{free_port()}") + sections)
        result = CliRunner().invoke(app, ["notify", *options, "--config", str(file)])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        assert result.exit_code == 2, result.output
        return result.output

    return run


def test_there_must_be_somebody_to_tell(notify):
    assert "no receiver is configured: add a section [notify.alertmanager.NAME]" in notify("")


def test_a_template_is_tried_before_kafka_is_asked_for_anything(notify, tmp_path, monkeypatch):
    monkeypatch.setenv("REBALANCE_MONITOR_NOTIFY__WEBHOOK__CHAT__URL", "http://127.0.0.1:1/x")
    (tmp_path / "mine.j2").write_text("{\n{{ oops }}")
    said = notify(f'[notify.webhook.chat]\ntemplate_file = "{tmp_path / "mine.j2"}"\n')
    assert "mine.j2, line 2: 'oops' is undefined" in said


def test_a_kafka_that_does_not_answer_is_named(notify):
    assert "no Kafka broker answers at 127.0.0.1:" in notify("[notify.stdout]\n")


def test_an_address_that_is_a_secret_has_no_place_in_the_file(notify):
    said = notify('[notify.webhook.chat]\nurl = "https://hooks.example.org/hunter2"\n')
    assert "notify.webhook.chat.url" in said
    assert "REBALANCE_MONITOR_NOTIFY__WEBHOOK__CHAT__URL" in said
    assert "hunter2" not in said


def test_a_test_of_a_receiver_that_is_none_names_those_that_are(notify):
    assert "there is no receiver webhook/chat; the receivers are stdout" in notify(
        "[notify.stdout]\n", "test", "--receiver", "webhook/chat"
    )


def test_without_a_configuration_it_says_how_to_get_one():
    result = CliRunner().invoke(app, ["notify"])
    assert result.exit_code == 2
    assert "--config FILE" in result.output

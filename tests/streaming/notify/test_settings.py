"""What may be set about alerts, what is refused and in which words, and the reference file against the defaults."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from streaming.config.maintenance import Maintenance
from streaming.config.notify import Alertmanager, Digest, Heartbeat, Notify, Patience, Stdout, Traces, Webhook
from streaming.config.settings import ConfigError, load

RECEIVERS = ("alertmanager", "webhook", "heartbeat", "digest", "stdout")
REFERENCE = Path(__file__).parents[3] / "deploy" / "rebalance-monitor.toml"
KAFKA = '[kafka]\nbootstrap_servers = "k:9092"\n'


@pytest.fixture
def file(tmp_path):
    def write(text: str) -> Path:
        path = tmp_path / "monitor.toml"
        path.write_text(KAFKA + text)
        return path

    return write


def refusal(path: Path) -> str:
    with pytest.raises(ConfigError) as refused:
        load(path)
    return str(refused.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[notify]\nstalled = 5\n", "unknown key notify.stalled"),
        ('[notify.alertmanager.main]\nurl = "localhost:9093"\n', "notify.alertmanager.main.url: an address begins with http://"),
        ('[notify.alertmanager."Main One"]\nurl = "http://a"\n', "notify.alertmanager.Main One"),
        ('[notify.alertmanager.main]\nurl = "http://a"\nlabels = { rule = "x" }\n', "'rule' is not allowed"),
        ('[notify.alertmanager.main]\nurl = "http://a"\nlabels = { a-b = "x" }\n', "'a-b' is not allowed"),
        ('[notify.alertmanager.main]\nurl = "http://a"\nminimum_severity = "fatal"\n', "notify.alertmanager.main.minimum_severity"),
        ('[notify.alertmanager.main]\nurl = "http://a"\nusername = "x"\n', "username goes with password"),
        ("[notify.webhook.chat]\n", "notify.webhook.chat: it needs url_file"),
        ('[notify.webhook.chat]\nurl_file = "nowhere"\n', "notify.webhook.chat.url_file: there is no file nowhere"),
        ('[notify.webhook.chat]\ntemplate = "irc"\n', "notify.webhook.chat.template"),
        ('[notify.stdout]\ndeny_groups = ["/(/"]\n', "/(/ is not a valid regular expression"),
        ('[notify.stdout]\nallow_groups = [""]\n', "an empty pattern matches nothing"),
        ('[notify.digest.d]\nday = "Mon"\n', "notify.digest.d.day"),
        ('[notify.digest.d]\nzone = "Europe/Nowhere"\n', "there is no time zone 'Europe/Nowhere'"),
        ("[notify.wait_s]\ncritical = -1\n", "notify.wait_s.critical"),
        ('[notify.maintenance.w]\nzone = "Europe/Nowhere"\nat = 02:00:00\nminutes = 5\n', "there is no time zone 'Europe/Nowhere'"),
        ("[notify.maintenance.w]\nat = 02:00:00\n", "at and minutes go together"),
        ('[notify.maintenance.w]\ngroups = ["*"]\n', "a window needs starts and ends, or at and minutes"),
        ("[notify.maintenance.w]\nstarts = 2027-01-02\nends = 2027-01-01\n", "starts must be before ends"),
        ("[notify.maintenance.w]\nat = 02:00:00\nminutes = 5\ndays = []\n", "days is empty"),
        ('[notify.maintenance.w]\nat = 02:00:00\nminutes = 5\ndays = ["Sat"]\n', "notify.maintenance.w.days.0"),
    ],
)
def test_what_cannot_be_used_is_named(file, text, words):
    path = file(text)
    message = refusal(path)
    assert words in message
    assert str(path) in message


def test_a_webhook_may_be_addressed_by_environment_alone(file, monkeypatch):
    monkeypatch.setenv("REBALANCE_MONITOR_NOTIFY__WEBHOOK__CHAT__URL", "https://hooks.example.org/T0/hunter2")
    webhook = load(file('[notify.webhook.chat]\ntemplate = "slack"\n')).notify.webhook["chat"]
    assert webhook.address() == "https://hooks.example.org/T0/hunter2"
    assert "hunter2" not in repr(webhook)


def test_an_address_in_a_file_is_read_anew_each_time(tmp_path):
    path = tmp_path / "url"
    path.write_text("https://hooks.example.org/one\n")
    webhook = Webhook(url_file=path)
    path.write_text("https://hooks.example.org/two\n")
    assert webhook.address() == "https://hooks.example.org/two"


def test_an_address_in_a_file_is_refused_without_being_repeated(file, tmp_path):
    (tmp_path / "url").write_text("hunter2")
    message = refusal(file(f'[notify.webhook.chat]\nurl_file = "{tmp_path / "url"}"\n'))
    assert "an address begins with http://" in message
    assert "hunter2" not in message


def test_pagerduty_needs_a_routing_key_and_one_message_for_each_finding(file, tmp_path):
    (tmp_path / "url").write_text("https://events.example.org/v2/enqueue")
    receiver = f'[notify.webhook.pager]\nurl_file = "{tmp_path / "url"}"\ntemplate = "pagerduty"\n'
    assert 'needs group_by = "finding"' in refusal(file(receiver))
    assert "needs secret_file" in refusal(file(f'{receiver}group_by = "finding"\n'))
    load(file(f'{receiver}group_by = "finding"\nsecret_file = "{tmp_path / "url"}"\n'))


def test_the_reference_file_shows_every_key_with_its_default():
    file = tomllib.loads(re.sub(r"^#(?=\w+ = |\[)", "", REFERENCE.read_text(), flags=re.MULTILINE))
    shown = file["notify"]
    address = {"url": "https://somewhere.example.org"}
    # Names of files and addresses are examples, and so is the window; secrets themselves have no place in the file.
    sections = [
        (Notify(), shown, {*RECEIVERS, "maintenance", "wait_s", "page_url"}, set()),
        (Patience(), shown["wait_s"], set(), set()),
        (Alertmanager(**address), shown["alertmanager"]["main"], {"url", "generator_url", "username"}, {"password", "token"}),
        (Webhook(**address), shown["webhook"]["chat"], {"username"}, {"url", "secret", "password", "token"}),
        (Heartbeat(**address), shown["heartbeat"]["deadman"], {"username"}, {"url", "password", "token"}),
        (Digest(**address), shown["digest"]["weekly"], {"username"}, {"url", "password", "token"}),
        (Stdout(), shown["stdout"], set(), set()),
        (Traces(), file["traces"], {"endpoint", "username"}, {"password", "token"}),
    ]
    for defaults, values, examples, secrets in sections:
        assert set(values) == set(type(defaults).model_fields) - secrets, type(defaults).__name__
        for key, value in values.items():
            if key not in examples and not key.endswith("_file"):
                held = getattr(defaults, key)
                assert value == (list(held) if isinstance(held, tuple) else held), f"{type(defaults).__name__}.{key}"
    assert set(shown["maintenance"]["saturday_night"]) == set(Maintenance.model_fields)
    Maintenance(**shown["maintenance"]["saturday_night"])

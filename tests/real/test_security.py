"""Over TLS, with a client certificate and a password, under no more rights than documented: the mirror is written and read, findings come
out, and no secret is left anywhere. And what is said of a wrong password, authority, name or right.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from confluent_kafka.admin import ResourceType
from typer.testing import CliRunner

from streaming.commands.config import config
from streaming.commands.run import run
from streaming.config.settings import SHORT_LIVED_JVM, Topics
from streaming.demo.broker import HOST, Broker
from streaming.errors import SetupError
from streaming.kafka.required_rights import MONITOR, TAP, topic_needs
from streaming.mirror.producer import KafkaSink
from streaming.quality.suite import DEFAULT_SUITE
from tests.certificates import Authority
from tests.processes import started
from tests.real.harness import raw_topic, wait_for
from tests.real.secured import Administrator
from tests.real.traffic import Group, breach, tick

pytestmark = pytest.mark.real

START_UP_S = 600  # two clients over TLS and a Spark start, on a machine that may be loaded tenfold
PASSWORD, KEY_PASSWORD = "correct-horse-battery-staple", "on-top-of-the-key"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
PLAIN = f'org.apache.kafka.common.security.plain.PlainLoginModule required user_monitor="{PASSWORD}";'
RIGHTS = {
    **{process: list(topic_needs(process, Topics())) for process in (MONITOR, TAP)},
    "reader": [("rebalance-mirror", "describe")],
}


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    """A broker with passwords, certificates and access control, and its mirror topic."""
    folder = tmp_path_factory.mktemp("certificates")
    authority, stranger = Authority(folder), Authority(folder / "stranger", "stranger")
    server, elsewhere = authority.identity("broker", address=HOST), authority.identity("elsewhere", address="127.0.0.2")
    listeners = {"BOTH": server, "ELSEWHERE": elsewhere, "PLAIN": server}
    properties = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "listener.name.both.ssl.client.auth": "required",
        "listener.name.plain.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.plain.plain.sasl.jaas.config": PLAIN,
    }
    for name, identity in listeners.items():
        prefix = f"listener.name.{name.lower()}"
        for store, file in (("keystore", identity.both), ("truststore", authority.certificate)):
            properties |= {f"{prefix}.ssl.{store}.type": "PEM", f"{prefix}.ssl.{store}.location": str(file)}
        if name != "PLAIN":
            properties |= {
                f"{prefix}.sasl.enabled.mechanisms": "SCRAM-SHA-512",
                f"{prefix}.scram-sha-512.sasl.jaas.config": SCRAM,
            }
    with Broker(listeners=dict.fromkeys(listeners, "SASL_SSL"), properties=properties) as broker:
        broker.create_topic("rebalance-mirror", 2)
        administrator = Administrator(broker.internal)
        for user, granted in RIGHTS.items():
            administrator.set_password(user, PASSWORD)
            for topic, operation in granted:
                administrator.grant(user, operation, ResourceType.TOPIC, topic)
        yield SimpleNamespace(
            broker=broker,
            authority=authority,
            stranger=stranger,
            client=authority.identity("monitor", password=KEY_PASSWORD),
        )


@pytest.fixture
def written(secured, tmp_path, monkeypatch):
    """Write a configuration: by default the right one for the listener BOTH, with every secret in a file or variable."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "password").write_text(f"{PASSWORD}\n")
    (tmp_path / "password").chmod(0o600)
    monkeypatch.setenv("REBALANCE_MONITOR_KAFKA__SSL_KEY_PASSWORD", KEY_PASSWORD)
    secured.client.key.chmod(0o600)

    def write(*, listener: str = "BOTH", more: str = "", **changes: object):
        kafka = {
            "bootstrap_servers": secured.broker.address(listener),
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_username": "monitor",
            "sasl_password_file": "password",
            "ssl_ca_file": str(secured.authority.certificate),
            "ssl_certificate_file": str(secured.client.certificate),
            "ssl_key_file": str(secured.client.key),
            "reach_timeout_s": 30,
            **changes,
        }
        keys = "".join(f"{key} = {json.dumps(value)}\n" for key, value in kafka.items() if value is not None)
        file = tmp_path / "monitor.toml"
        file.write_text(f"[kafka]\n{keys}[job]\njvm_options = '{SHORT_LIVED_JVM}'\n{more}")
        return file

    return write


def _said(capsys, file) -> str:
    assert run(file) == 2
    out, errors = capsys.readouterr()
    assert out == ""
    assert len(errors.splitlines()) == 1, errors
    assert errors.startswith("error: ")
    assert PASSWORD not in errors
    return errors


def test_a_wrong_password_is_said(written, capsys, monkeypatch):
    monkeypatch.setenv("REBALANCE_MONITOR_KAFKA__SASL_PASSWORD", "wrong")
    said = _said(capsys, written())
    assert "refuses the login" in said
    assert "invalid credentials" in said
    assert "kafka.sasl_password_file" in said
    said = _said(capsys, written(listener="PLAIN", sasl_mechanism="PLAIN"))
    assert "Invalid username or password" in said


def test_a_mechanism_that_the_broker_does_not_have_is_said(written, capsys):
    assert "broker's supported mechanisms: SCRAM-SHA-512" in _said(capsys, written(sasl_mechanism="PLAIN"))


def test_an_authority_that_did_not_sign_is_said(secured, written, capsys):
    said = _said(capsys, written(ssl_ca_file=str(secured.stranger.certificate)))
    assert "no trusted connection" in said
    assert "certificate verify failed" in said
    assert "kafka.ssl_ca_file" in said


def test_a_broker_under_another_name_is_said(written, capsys):
    said = _said(capsys, written(listener="ELSEWHERE"))
    assert "no trusted connection" in said
    assert "kafka.bootstrap_servers" in said


def test_a_missing_client_certificate_is_said(written, capsys, monkeypatch):
    monkeypatch.delenv("REBALANCE_MONITOR_KAFKA__SSL_KEY_PASSWORD")
    said = _said(capsys, written(ssl_certificate_file=None, ssl_key_file=None))
    assert "no trusted connection" in said
    assert "kafka.ssl_certificate_file" in said


def test_no_encryption_where_the_broker_wants_it_is_said(secured, written, capsys, monkeypatch):
    monkeypatch.delenv("REBALANCE_MONITOR_KAFKA__SSL_KEY_PASSWORD")
    file = written()
    file.write_text(f"[kafka]\nbootstrap_servers = '{secured.broker.address('BOTH')}'\nreach_timeout_s = 3\n")
    said = _said(capsys, file)
    assert "no Kafka broker answers" in said
    assert "kafka.security_protocol is PLAINTEXT" in said


def test_the_tap_says_that_its_login_is_refused(secured):
    properties = _tap(secured) | {"sasl.password": "wrong"}
    with pytest.raises(SetupError, match="invalid credentials"):
        KafkaSink(properties, topic="rebalance-mirror", timeout_s=60)


def _tap(secured) -> dict[str, str]:
    """What an operator gives to the tap in a file."""
    return {
        "bootstrap.servers": secured.broker.address("BOTH"),
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "tap",
        "sasl.password": PASSWORD,
        "ssl.ca.location": str(secured.authority.certificate),
        "ssl.certificate.location": str(secured.client.certificate),
        "ssl.key.location": str(secured.client.key),
        "ssl.key.password": KEY_PASSWORD,
    }


def _check(file) -> tuple[int, str, str]:
    done = CliRunner().invoke(config, ["check", "--connect", str(file)], catch_exceptions=False)
    assert PASSWORD not in done.output
    assert KEY_PASSWORD not in done.output
    return done.exit_code, " ".join(done.stdout.split()), done.stderr


def test_what_is_missing_on_kafka_is_said_before_the_start(written):
    status, out, errors = _check(written())
    assert (status, errors) == (0, "")
    assert "rebalance-mirror 2 partitions" in out
    assert "rebalance-findings missing; is created at the start" in out

    status, out, errors = _check(written(sasl_username="reader", more="[topics]\ncreate = false\n"))
    assert status == 2
    assert (
        "topic rebalance-mirror: user reader lacks the right to Read, which is needed by monitor; grant it: `kafka-acls.sh"
        in errors
    )
    assert "topic rebalance-findings: user reader lacks the right to Read, which is needed by monitor" in errors


@pytest.mark.timeout(900)
def test_it_works_over_tls_with_both_proofs_and_leaves_no_secret(secured, written, tmp_path):
    """One Spark start: certificate, encrypted key, SCRAM, access control, and a suite of one's own."""
    suite = json.loads(DEFAULT_SUITE.read_text())
    suite["expectations"].append(
        {
            "type": "expect_column_values_to_match_regex",
            "description": "Q-50: Groups are named after their team.",
            "severity": "info",
            "kwargs": {"column": "key", "regex": r"^(billing|shipping)\."},
            "meta": {
                "rule": "Q-50",
                "name": "group outside the naming scheme",
                "expected": "team.purpose",
                "explain": ["client_id"],
            },
        }
    )
    (tmp_path / "suite.json").write_text(json.dumps(suite))
    file = written(more='[quality]\nsuite = "suite.json"\ntrigger_s = 1\ndocs = "docs"\n')
    command = [sys.executable, "-m", "streaming.cli", "run", "--config", str(file)]
    said_to = tmp_path / "said"
    with said_to.open("w") as said, started(command, stdout=said, stderr=subprocess.STDOUT) as process:
        try:
            sink = KafkaSink(_tap(secured), topic="rebalance-mirror", timeout_s=60)
            now_us = time.time_ns() // 1000
            lawful = Group("billing.orders")
            for record in (*lawful.join(now_us), *lawful.sync(now_us), *breach(7, now_us), tick(now_us + 2_000_000)):
                sink.write(record)
            assert sink.close(60) == 0

            def found() -> set[str]:
                assert process.poll() is None, said_to.read_text()
                try:
                    messages = raw_topic(secured.broker.internal, "rebalance-findings")
                except KeyError:  # the topic is yet to be created
                    return set()
                return {json.loads(message.value())["rule"] for message in messages}

            wait_for(lambda: found() >= {"M-08", "Q-50"}, "a finding of the model and one of the suite", START_UP_S)
        finally:
            process.terminate()
        assert process.wait(60) == 0, said_to.read_text()
    told = [json.loads(message.value()) for message in raw_topic(secured.broker.internal, "rebalance-quality")]
    (own,) = {(result["name"], result["expectation"]) for result in told if result["rule"] == "Q-50"}
    assert own[0] == "group outside the naming scheme"
    _no_secret_in(tmp_path, secured.client.key.read_text())


def _no_secret_in(folder, key: str) -> None:
    body = max(key.splitlines(), key=len)
    looked_at = 0
    for file in folder.rglob("*"):
        if file.is_file() and file.name != "password":
            looked_at += 1
            content = file.read_bytes()
            for secret in (PASSWORD, KEY_PASSWORD, body):
                assert secret.encode() not in content, file
    assert looked_at > 20, "the checkpoint, the logs, the pages and what it said"

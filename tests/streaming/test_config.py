"""The configuration: what is refused and in which words, and the reference file against the defaults."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from streaming.config import ConfigError, Kafka, MonitorConfig, load

REFERENCE = Path(__file__).parents[2] / "deploy" / "rebalance-monitor.toml"


@pytest.fixture
def file(tmp_path):
    def write(text: str) -> Path:
        path = tmp_path / "monitor.toml"
        path.write_text(text)
        return path

    return write


def refusal(path: Path) -> str:
    with pytest.raises(ConfigError) as refused:
        load(path)
    return str(refused.value)


def test_a_broker_address_is_all_it_needs(file):
    config = load(file('[kafka]\nbootstrap_servers = "k:9092"\n'))
    assert config.kafka.bootstrap_servers == "k:9092"
    assert config.topics.mirror == "rebalance-mirror"


def test_the_environment_goes_before_the_file(file, monkeypatch):
    monkeypatch.setenv("REBALANCE_MONITOR_KAFKA__BOOTSTRAP_SERVERS", "other:1")
    monkeypatch.setenv("REBALANCE_MONITOR_MODEL__QUIET_MS", "5000")
    monkeypatch.setenv("REBALANCE_MONITOR_JOB__TRIGGER_MS", "100")
    config = load(file('[kafka]\nbootstrap_servers = "k:9092"\nreach_timeout_s = 3\n[job]\ncores = 3\n'))
    assert config.kafka.bootstrap_servers == "other:1"
    assert config.kafka.reach_timeout_s == 3
    assert config.model.quiet_ms == 5000
    assert (config.job.trigger_ms, config.job.cores) == (100, 3)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "kafka is missing; set it there or in REBALANCE_MONITOR_KAFKA"),
        ("[kafka]\n", "kafka.bootstrap_servers is missing; set it there or in REBALANCE_MONITOR_KAFKA__BOOTSTRAP_SERVERS"),
        ('[kafka]\nbootstrap_server = "k"\n', "unknown key kafka.bootstrap_server; did you mean bootstrap_servers?"),
        (
            '[kafka]\nbootstrap_servers = "k"\n[job]\ntrigger_ms = -1\n',
            "job.trigger_ms: input should be greater than or equal to 0 (it is -1)",
        ),
        ('[kafka]\nbootstrap_servers = "k"\n[job]\ndriver_memory = "lots"\n', "job.driver_memory: string should match"),
        ('[kafka]\nbootstrap_servers = "k"\n[topics]\nfindings = "a b"\n', "topics.findings: string should match"),
        ('[kafka]\nbootstrap_servers = "k"\n[topics]\nfindings = "x"\ngroups = "x"\n', "two topics have the name 'x'"),
        ('[kafka]\nbootstrap_servers = "k"\n[model]\nquiet = 1\n', "unknown key model.quiet"),
        ('[kafka]\nbootstrap_servers = "k"\n[model]\nquiet_ms = "soon"\n', "model.quiet_ms: input should be a valid integer"),
        ('[kafka]\nbootstrap_servers = "k"\nssl_ca_file = "nowhere.pem"\n', "kafka.ssl_ca_file: there is no file nowhere.pem"),
        ('[kafka]\nbootstrap_servers = "k"\nsecurity_protocol = "SASL_SSL"\n', "SASL_SSL needs sasl_mechanism"),
        ("kafka = [\n", "is not TOML"),
    ],
)
def test_what_cannot_be_used_is_named(file, text, words):
    path = file(text)
    message = refusal(path)
    assert words in message
    assert str(path) in message
    assert "Traceback" not in message


def test_a_bad_variable_is_named_as_such(file, monkeypatch):
    monkeypatch.setenv("REBALANCE_MONITOR_JOB__CORES", "none")
    message = refusal(file('[kafka]\nbootstrap_servers = "k"\n'))
    assert "environment variable REBALANCE_MONITOR_JOB__CORES: job.cores:" in message


def test_every_problem_is_told_at_once(file):
    message = refusal(file('[kafka]\nbootstrap_servers = "k"\n[job]\ntrigger_ms = -1\ncores = 0\n'))
    assert len(message.splitlines()) == 2


def test_a_password_is_never_repeated(file):
    message = refusal(file('[kafka]\nbootstrap_servers = "k"\nsasl_password = 12345\n'))
    assert "sasl_password" in message
    assert "12345" not in message


def test_a_missing_file_is_named(tmp_path):
    assert str(tmp_path / "none.toml") in refusal(tmp_path / "none.toml")
    assert "cannot read" in refusal(tmp_path)


def test_both_clients_get_the_same_security(tmp_path):
    for name, text in {"ca": "CA", "cert": "CERT", "key": "KEY", "password": 'p"w\\\n'}.items():
        (tmp_path / name).write_text(text)
    kafka = Kafka(
        bootstrap_servers="k:1",
        security_protocol="SASL_SSL",
        sasl_mechanism="SCRAM-SHA-512",
        sasl_username="monitor",
        sasl_password_file=tmp_path / "password",
        ssl_ca_file=tmp_path / "ca",
        ssl_certificate_file=tmp_path / "cert",
        ssl_key_file=tmp_path / "key",
        spark_options={"client.dns.lookup": "use_all_dns_ips"},
        librdkafka_options={"socket.keepalive.enable": "true"},
    )
    assert kafka.for_librdkafka() == {
        "bootstrap.servers": "k:1",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "monitor",
        "sasl.password": 'p"w\\',
        "ssl.ca.location": str(tmp_path / "ca"),
        "ssl.certificate.location": str(tmp_path / "cert"),
        "ssl.key.location": str(tmp_path / "key"),
        "socket.keepalive.enable": "true",
    }
    assert kafka.for_spark() == {
        "kafka.bootstrap.servers": "k:1",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "kafka.sasl.jaas.config": (
            'org.apache.kafka.common.security.scram.ScramLoginModule required username="monitor" password="p\\"w\\\\";'
        ),
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.location": str(tmp_path / "ca"),
        "kafka.ssl.keystore.type": "PEM",
        "kafka.ssl.keystore.certificate.chain": "CERT",
        "kafka.ssl.keystore.key": "KEY",
        "kafka.client.dns.lookup": "use_all_dns_ips",
    }


def test_a_mechanism_we_have_no_words_for_is_passed_through_to_both():
    options = {"sasl.mechanism": "GSSAPI"}
    kafka = Kafka(bootstrap_servers="k:1", security_protocol="SASL_SSL", spark_options=options, librdkafka_options=options)
    assert kafka.for_spark()["kafka.sasl.mechanism"] == kafka.for_librdkafka()["sasl.mechanism"] == "GSSAPI"


def test_the_reference_file_is_valid_and_shows_every_key_with_its_default(file):
    text = REFERENCE.read_text()
    load(REFERENCE)
    # A commented-out key stands as `#key = value`, without a space: uncommented, the file says what holds without it.
    full = re.sub(r"^#(?=\w+ = |\[)", "", text, flags=re.MULTILINE)
    shown = tomllib.loads(full)
    optional = {"sasl_mechanism", "sasl_username", "sasl_password", "sasl_password_file", "ssl_ca_file", "ssl_certificate_file"}
    optional |= {"ssl_key_file", "ssl_key_password", "ssl_key_password_file", "suite", "cores"}
    defaults = MonitorConfig(kafka=Kafka(bootstrap_servers=shown["kafka"]["bootstrap_servers"]))
    assert shown.pop("cluster") == defaults.cluster
    assert shown.pop("notify")["wait_s"]  # tests/streaming/notify/test_settings.py
    for section, values in shown.items():
        held = getattr(defaults, section)
        names = set(type(held).model_fields) if hasattr(type(held), "model_fields") else set(held.__dataclass_fields__)
        assert set(values) == names, section
        for key in names - optional:
            default = getattr(held, key)
            default = list(default) if isinstance(default, tuple) else str(default) if isinstance(default, Path) else default
            assert values[key] == default, f"{section}.{key}"
    assert set(shown) == set(MonitorConfig.model_fields) - {"cluster", "notify"}

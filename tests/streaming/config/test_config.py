"""The configuration: what is refused and in which words, and the reference file against the defaults."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat, load_pem_private_key

from streaming.config.keys import NOT_CONFIGURATION, annotation_at, is_list, known_paths, origin, section, table, variable_for
from streaming.config.notify import Web
from streaming.config.settings import ConfigError, Kafka, MonitorConfig, load
from tests.certificates import Authority
from tests.needs import needs_proc

REFERENCE = Path(__file__).parents[3] / "deploy" / "rebalance-monitor.toml"


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
            '[kafka]\nbootstrap_servers = "k:9092"\n[job]\ntrigger_ms = -1\n',
            "job.trigger_ms: input should be greater than or equal to 0 (it is -1)",
        ),
        ('[kafka]\nbootstrap_servers = "k:9092"\n[job]\ndriver_memory = "lots"\n', "job.driver_memory: string should match"),
        ('[kafka]\nbootstrap_servers = "k:9092"\n[topics]\nfindings = "a b"\n', "topics.findings: string should match"),
        ('[kafka]\nbootstrap_servers = "k:9092"\n[topics]\nfindings = "x"\ngroups = "x"\n', "two topics have the name 'x'"),
        ('[kafka]\nbootstrap_servers = "k:9092"\n[model]\nquiet = 1\n', "unknown key model.quiet"),
        ('[kafka]\nbootstrap_servers = "k:9092"\n[model]\nquiet_ms = "soon"\n', "model.quiet_ms: input should be a valid integer"),
        ('[kafka]\nbootstrap_servers = "k:9092"\nssl_ca_file = "nowhere.pem"\n', "kafka.ssl_ca_file: there is no file nowhere.pem"),
        (
            '[kafka]\nbootstrap_servers = "k:9092"\nsecurity_protocol = "SASL_SSL"\n',
            "security_protocol = SASL_SSL needs sasl_mechanism",
        ),
        (
            '[kafka]\nbootstrap_servers = "k:9092"\nsasl_mechanism = "PLAIN"\n',
            "sasl_mechanism has no effect with security_protocol = PLAINTEXT; set that to SASL_SSL",
        ),
        ('[kafka]\nbootstrap_servers = "k"\n', "kafka.bootstrap_servers: k is not HOST:PORT, as in kafka-1:9092"),
        ('[kafka]\nbootstrap_servers = "k:9092,l"\n', "kafka.bootstrap_servers: l is not HOST:PORT"),
        ('[kafka]\nbootstrap_servers = "k:0"\n', "kafka.bootstrap_servers: k:0 is not HOST:PORT"),
        ('[kafka]\nbootstrap_servers = "::1:9092"\n', "kafka.bootstrap_servers: ::1:9092 is not HOST:PORT"),
        (
            '[kafka]\nbootstrap_servers = "k:9092"\n[kafka.spark_options]\n"auto.offset.reset" = "earliest"\n',
            "kafka.spark_options: Spark sets auto.offset.reset itself and refuses to start with it: remove it; job.starting_offsets",
        ),
        ('[kafka]\nbootstrap_servers = "k:9092"\n[job]\ncores = true\n', "job.cores: input should be a number (it is true)"),
        ('[kafka]\nbootstrap_servers = "k:9092"\n[job]\ncheckpoint = ""\n', "job.checkpoint: it is empty"),
        ('[kafka]\nbootstrap_servers = "k:9092"\n[job]\ncheckpoint = "~no-such-user/x"\n', "job.checkpoint: ~no-such-user/x:"),
        (
            '[kafka]\nbootstrap_servers = "k:9092"\n[job]\ndriver_memory = "64m"\n',
            "job.driver_memory: Spark does not start with less than",
        ),
        (
            '[kafka]\nbootstrap_servers = "k:9092"\n[topics]\nhistory_days = inf\n',
            "topics.history_days: input should be a finite number",
        ),
        (
            '[kafka]\nbootstrap_servers = "k:9092"\n[model]\nquiet_ms = 0\n',
            "model.quiet_ms: input should be greater than or equal to 1 (it is 0)",
        ),
        (
            '[kafka]\nbootstrap_servers = "k:9092"\n[model.cluster_session_timeouts_ms]\n"west/clasic" = 60000\n',
            "where TYPE is one of consumer, share, streams (it is 60000 for west/clasic)",
        ),
        ("kafka = [\n", "is not TOML"),
    ],
)
def test_what_cannot_be_used_is_named(file, text, words):
    path = file(text)
    message = refusal(path)
    assert words in message
    assert str(path) in message
    assert "Traceback" not in message


@pytest.mark.parametrize("servers", ["k:9092", "a.example:1, b:2", "[::1]:9092,10.0.0.1:65535", "SASL_SSL://k:9092"])
def test_addresses_as_clients_take_them_are_taken(file, servers):
    assert load(file(f'[kafka]\nbootstrap_servers = "{servers}"\n')).kafka.bootstrap_servers == servers


def test_every_problem_is_told_at_once(file):
    message = refusal(file('[kafka]\nbootstrap_servers = "k:9092"\n[job]\ntrigger_ms = -1\ncores = 0\n'))
    assert len(message.splitlines()) == 2


# ---------------------------------------------------------------------------------------------------- the environment


VALUES = {
    "master": "yarn",
    "state": "hdfs://name/folder",
    "security_protocol": "SSL",
    "starting_offsets": "latest",
    "compression": "lz4",
    "driver_memory": "2g",
    "jvm_options": "-Xss2m",
    "listen": "[::]:0",
    "page_url": "https://page.example.org",
    "endpoint": "https://traces.example.org",
    "bootstrap_servers": "other:9092",
}
NEED_OTHERS = ("sasl_", "ssl_")  # keys that are refused alone; tried below, together
STDOUT = ("notify", "stdout")  # not there unless asked for
OF_A_RECEIVER = {("traces", name) for name in Web.model_fields} - {("traces", "timeout_s")}  # tried in tests/streaming/notify


def _settable():
    """Each key that holds one value or a list, and can stand alone, with something that is not its default."""
    for path in known_paths(MonitorConfig):
        annotation = annotation_at(MonitorConfig, path)
        if (
            table(annotation) is None
            and section(annotation) is None
            and not path[-1].startswith(NEED_OTHERS)
            and path[:2] != STDOUT
            and path not in OF_A_RECEIVER
        ):
            yield pytest.param(path, id=".".join(path))


@pytest.mark.parametrize("path", list(_settable()))
def test_every_key_can_be_set_by_environment(file, monkeypatch, tmp_path, path):
    plain = load(file('[kafka]\nbootstrap_servers = "k:9092"\n'))
    before, annotation = _at(plain, path), annotation_at(MonitorConfig, path)
    (tmp_path / "some.json").write_text("{}")
    if is_list(annotation):
        text, wanted = "a, b", ("a", "b")
    elif path[-1] in VALUES:
        text = wanted = VALUES[path[-1]]
    elif isinstance(before, bool):
        text, wanted = str(not before).lower(), not before
    elif isinstance(before, int | float):
        text, wanted = str(before + 1), before + 1
    elif isinstance(before, Path) or path[-1] == "suite":
        text, wanted = str(tmp_path / "some.json"), tmp_path / "some.json"
    else:
        text = wanted = "other"
    monkeypatch.setenv(variable_for(path), text)
    set_by_variable = load(file('[kafka]\nbootstrap_servers = "k:9092"\n'))
    found = _at(set_by_variable, path)
    assert (tuple(found) if is_list(annotation) else found) == wanted
    assert found != before
    assert origin(path, {}) == variable_for(path)


def _at(config, path):
    for part in path:
        config = getattr(config, part)
    return config


def test_lists_tables_and_whole_sections_can_be_json(file, monkeypatch):
    monkeypatch.setenv("REBALANCE_MONITOR_MODEL__BROADCAST_ASSIGNORS", '["a,b", "c"]')
    monkeypatch.setenv("REBALANCE_MONITOR_KAFKA__SPARK_OPTIONS", '{"max.partition.fetch.bytes": 9}')
    monkeypatch.setenv("REBALANCE_MONITOR_JOB", '{"cores": 3, "trigger_ms": 9}')
    monkeypatch.setenv("rebalance_monitor_job__trigger_ms", "10")
    text = '[kafka]\nbootstrap_servers = "k:9092"\n[kafka.spark_options]\n"client.id" = "x"\n[job]\nlanes = 3\n'
    config = load(file(text))
    assert config.model.broadcast_assignors == ("a,b", "c")
    assert config.kafka.spark_options == {"max.partition.fetch.bytes": "9", "client.id": "x"}
    assert (config.job.cores, config.job.trigger_ms, config.job.lanes) == (3, 10, 3)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("JOBS__CORES", "1", "the configuration has no key jobs.cores; did you mean REBALANCE_MONITOR_JOB__CORES?"),
        ("JOB_CORES", "1", "did you mean REBALANCE_MONITOR_JOB__CORES?"),
        ("JOB__TRIGER_MS", "1", "did you mean REBALANCE_MONITOR_JOB__TRIGGER_MS?"),
        ("CLUSTER__NAME", "x", "the configuration has no key cluster.name"),
        ("TRACE", "1", "the configuration has no key trace"),
        ("JOB", "fast", 'it must hold a JSON object, as {"key": "value"}'),
        ("JOB", "[1]", "it must hold a JSON object"),
        ("KAFKA__SPARK_OPTIONS", "a=b", "it must hold a JSON object"),
        ("MODEL__BROADCAST_ASSIGNORS", '["a"', "it must hold a list"),
        ("JOB__CORES", "none", "job.cores: input should be a valid integer"),
        ("JOB__CORES", "", "job.cores: input should be a valid integer"),
        ("MODEL__ZOMBIE_REFUSALS", "-1", "model.zombie_refusals: input should be greater than or equal to 1"),
        ("QUALITY__ENABLED", "perhaps", "quality.enabled: input should be a valid boolean"),
    ],
)
def test_a_bad_variable_is_named_as_such(file, monkeypatch, name, value, words):
    monkeypatch.setenv(f"REBALANCE_MONITOR_{name}", value)
    message = refusal(file('[kafka]\nbootstrap_servers = "k:9092"\n'))
    assert message.startswith(f"environment variable REBALANCE_MONITOR_{name}: ")
    assert words in message
    assert len(message.splitlines()) == 1


def test_variables_of_ours_that_are_no_configuration_are_known():
    sources = (REFERENCE.parents[1] / "streaming").rglob("*.py")
    named = {name for source in sources for name in re.findall(r"\bREBALANCE_MONITOR_[A-Z_]+[A-Z]\b", source.read_text())}
    assert named - {variable_for(path) for path in known_paths(MonitorConfig)} - {
        "REBALANCE_MONITOR_NOTIFY__WEBHOOK__CHAT__URL"
    } == (NOT_CONFIGURATION)


# ---------------------------------------------------------------------------------------------------- secrets


SASL = '[kafka]\nbootstrap_servers = "k:9092"\nsecurity_protocol = "SASL_SSL"\nsasl_mechanism = "PLAIN"\nsasl_username = "u"\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            SASL + 'sasl_password = "hunter2"\n',
            (
                "kafka.sasl_password: a secret does not belong into the configuration file; set the environment variable "
                "REBALANCE_MONITOR_KAFKA__SASL_PASSWORD, or write it to a file of its own and name that as kafka.sasl_password_file"
            ),
        ),
        (SASL + "sasl_password = 12345\n", "kafka.sasl_password: a secret does not belong into the configuration file"),
        (
            SASL + '[kafka.librdkafka_options]\n"ssl.keystore.password" = "hunter2"\n',
            (
                "kafka.librdkafka_options.ssl.keystore.password: a secret does not belong into the configuration file; "
                "set REBALANCE_MONITOR_KAFKA__LIBRDKAFKA_OPTIONS to a JSON object that holds it"
            ),
        ),
        (
            SASL + '[kafka.spark_options]\n"sasl.jaas.config" = "x required username=a password=hunter2;"\n',
            "kafka.spark_options.sasl.jaas.config: a secret",
        ),
        (
            SASL + '[notify.webhook.chat]\nurl = "https://hooks.example.org/hunter2"\n',
            (
                "notify.webhook.chat.url: a secret does not belong into the configuration file; set the environment variable "
                "REBALANCE_MONITOR_NOTIFY__WEBHOOK__CHAT__URL, or write it to a file of its own and name that as notify.webhook.chat.url_file"
            ),
        ),
        (
            SASL + '[notify.webhook.chat]\n[notify.webhook.chat.headers]\nAuthorization = "Bearer hunter2"\n',
            "notify.webhook.chat.headers.Authorization: a secret",
        ),
    ],
)
def test_a_secret_in_the_file_is_refused_and_never_repeated(file, text, words):
    message = refusal(file(text))
    assert words in message
    assert "hunter2" not in message
    assert "12345" not in message


def test_a_jaas_configuration_without_a_password_may_stand_in_the_file(file):
    text = (
        '[kafka]\nbootstrap_servers = "k:9092"\n[kafka.spark_options]\n"sasl.jaas.config" = "Krb5LoginModule required keyTab=x;"\n'
    )
    assert load(file(text)).kafka.spark_options["sasl.jaas.config"] == "Krb5LoginModule required keyTab=x;"


def test_a_secret_comes_by_environment_or_file_and_the_environment_goes_first(file, monkeypatch, tmp_path):
    (tmp_path / "password").write_text(" from file \r\n")
    text = f"{SASL}sasl_password_file = '{tmp_path / 'password'}'\n"
    assert load(file(text)).kafka.password() == " from file "
    monkeypatch.setenv("REBALANCE_MONITOR_KAFKA__SASL_PASSWORD", "from environment")
    config = load(file(text))
    assert config.kafka.password() == "from environment"
    assert "from environment" not in f"{config!r} {config}"


def test_a_broken_variable_does_not_show_the_secret_in_it(file, monkeypatch):
    monkeypatch.setenv("REBALANCE_MONITOR_KAFKA", '{"sasl_password": "hunter2"')
    monkeypatch.setenv("REBALANCE_MONITOR_KAFKA__SASL_PASSWORD__X", "hunter2")
    monkeypatch.setenv("REBALANCE_MONITOR_KAFKA__SPARK_OPTIONS", '{"sasl.password": ["hunter2"], "ssl.key.password": null}')
    message = refusal(file('[kafka]\nbootstrap_servers = "k:9092"\n'))
    assert "hunter2" not in message


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: None, "there is no file"),
        (lambda path: path.mkdir(), "there is no file"),
        (lambda path: path.write_text("\n"), "is empty"),
        (lambda path: path.write_bytes(b"\xff\xfe"), "is not a text file"),
        pytest.param(lambda path: path.symlink_to("/proc/self/mem"), "cannot be read: ", marks=needs_proc),
    ],
)
def test_a_secret_file_that_cannot_be_used_is_named(file, tmp_path, make, words):
    path = tmp_path / "password"
    make(path)
    message = refusal(file(f"{SASL}sasl_password_file = '{path}'\n"))
    assert f"kafka.sasl_password_file: there is no file {path}" in message or f"kafka.sasl_password_file: {path} {words}" in message
    assert words in message


def test_keys_and_certificates_are_looked_into(file, tmp_path):
    authority = Authority(tmp_path)
    plain, locked = authority.identity("plain"), authority.identity("locked", password="geheim")
    (tmp_path / "password").write_text("falsch")
    base = '[kafka]\nbootstrap_servers = "k:9092"\nsecurity_protocol = "SSL"\n'

    def said(certificate, key, more=""):
        return refusal(file(f"{base}ssl_certificate_file = '{certificate}'\nssl_key_file = '{key}'\n{more}"))

    assert f"{locked.key} is encrypted: give its password" in said(locked.certificate, locked.key)
    wrong = said(locked.certificate, locked.key, f"ssl_key_password_file = '{tmp_path / 'password'}'\n")
    assert f"the private key in {locked.key} cannot be opened with the password given" in wrong
    assert "falsch" not in wrong
    assert "holds no private key in PEM" in said(plain.certificate, plain.certificate)
    assert "holds no certificate in PEM" in said(plain.key, plain.key)
    assert "go together" in refusal(file(f"{base}ssl_key_file = '{plain.key}'\n"))
    assert "ssl_ca_file has no effect" in refusal(
        file(f"[kafka]\nbootstrap_servers = 'k:9092'\nssl_ca_file = '{authority.certificate}'\n")
    )


# ---------------------------------------------------------------------------------------------------- files and clients


@pytest.mark.parametrize("form", [PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL])
def test_java_is_given_an_encrypted_key_opened_and_in_the_form_that_it_reads(tmp_path, form):
    authority = Authority(tmp_path)
    plain = authority.identity("plain")
    opened = load_pem_private_key(plain.key.read_bytes(), None)
    locked = tmp_path / "locked.key"
    locked.write_bytes(opened.private_bytes(Encoding.PEM, form, BestAvailableEncryption(b"geheim")))
    kafka = Kafka(
        bootstrap_servers="k:1",
        security_protocol="SSL",
        ssl_certificate_file=plain.certificate,
        ssl_key_file=locked,
        ssl_key_password="geheim",
    )
    options = kafka.for_spark()
    assert options["kafka.ssl.keystore.key"] == plain.key.read_text()
    assert "kafka.ssl.key.password" not in options
    assert kafka.for_librdkafka()["ssl.key.location"] == str(locked)
    assert kafka.for_librdkafka()["ssl.key.password"] == "geheim"


def test_a_missing_file_is_named(tmp_path):
    assert str(tmp_path / "none.toml") in refusal(tmp_path / "none.toml")
    assert "cannot read" in refusal(tmp_path)


def test_both_clients_get_the_same_security(tmp_path):
    (tmp_path / "password").write_text('p"w\\ \n')
    authority = Authority(tmp_path)
    client = authority.identity("client")
    kafka = Kafka(
        bootstrap_servers="k:1",
        security_protocol="SASL_SSL",
        sasl_mechanism="SCRAM-SHA-512",
        sasl_username="monitor",
        sasl_password_file=tmp_path / "password",
        ssl_ca_file=authority.certificate,
        ssl_certificate_file=client.certificate,
        ssl_key_file=client.key,
        spark_options={"client.dns.lookup": "use_all_dns_ips"},
        librdkafka_options={"socket.keepalive.enable": True, "socket.timeout.ms": 1000},
    )
    assert kafka.for_librdkafka() == {
        "bootstrap.servers": "k:1",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "monitor",
        "sasl.password": 'p"w\\ ',
        "ssl.ca.location": str(authority.certificate),
        "ssl.certificate.location": str(client.certificate),
        "ssl.key.location": str(client.key),
        "socket.keepalive.enable": "true",
        "socket.timeout.ms": "1000",
        "allow.auto.create.topics": "false",
    }
    assert kafka.for_spark() == {
        "kafka.bootstrap.servers": "k:1",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "kafka.sasl.jaas.config": (
            'org.apache.kafka.common.security.scram.ScramLoginModule required username="monitor" password="p\\"w\\\\ ";'
        ),
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.location": str(authority.certificate),
        "kafka.ssl.keystore.type": "PEM",
        "kafka.ssl.keystore.certificate.chain": client.certificate.read_text(),
        "kafka.ssl.keystore.key": client.key.read_text(),
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
    secrets = {"sasl_password", "ssl_key_password"}  # never stand in a file
    optional = {"sasl_mechanism", "sasl_username", "sasl_password_file", "ssl_ca_file", "ssl_certificate_file", "ssl_key_file"}
    optional |= {"ssl_key_password_file", "suite", "cores", "master", "state"}
    defaults = MonitorConfig(kafka=Kafka(bootstrap_servers=shown["kafka"]["bootstrap_servers"]))
    assert shown.pop("cluster") == defaults.cluster
    assert shown.pop("notify")["wait_s"]  # this and [traces]: tests/streaming/notify/test_settings.py
    assert shown.pop("traces")["endpoint"]
    for name_of_section, values in shown.items():
        held = getattr(defaults, name_of_section)
        names = set(type(held).model_fields) if hasattr(type(held), "model_fields") else set(held.__dataclass_fields__)
        assert set(values) == names - secrets, name_of_section
        for key in names - optional - secrets:
            default = getattr(held, key)
            default = list(default) if isinstance(default, tuple) else str(default) if isinstance(default, Path) else default
            assert values[key] == default, f"{name_of_section}.{key}"
    assert set(shown) == set(MonitorConfig.model_fields) - {"cluster", "notify", "traces"}

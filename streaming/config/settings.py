"""The configuration: one TOML file, with each key overridable by environment, and everything checked before the start.

``deploy/rebalance-monitor.toml`` is the commented reference; a test compares it with the defaults here. Precedence: environment, file,
default. The monitor uses two Kafka clients, Spark's (Java) and librdkafka, which have different names for the same setting. So security has
one set of keys, which this module translates for each client. Settings without such a key go to one of the two pass-through tables.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, Self

from pydantic import AfterValidator, Field, SecretStr, ValidationError, model_validator
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from coordinator_model.groups.epochs.kinds import KINDS
from coordinator_model.settings import Settings
from streaming.config import keys
from streaming.config.base import CertificateFile, ClientProperty, ExistingFile, LocalPath, SecretFile, Section, plain_key, secret
from streaming.config.metrics import Lag, Metrics
from streaming.config.notify import Notify, Traces
from streaming.config.spark import Spark

MAX_PARTITIONS: Final = 1024
"""Maximum number of mirror partitions of a job."""


MIN_DRIVER_MIB: Final = 512


class ConfigError(ValueError):
    """The configuration is invalid; the message has a line for each problem, with file or variable, key and remedy."""


TopicName = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,249}$")]


_SET_BY_SPARK: Final = frozenset(
    {"auto.offset.reset", "enable.auto.commit", "interceptor.classes"}
    | {f"{part}.{kind}" for part in ("key", "value") for kind in ("deserializer", "serializer")}
)
"""Kafka client properties that Spark's source or sink rejects."""


def _taken_by_spark(options: dict[str, str]) -> dict[str, str]:
    refused = sorted(_SET_BY_SPARK & options.keys())
    if refused:
        instead = "; job.starting_offsets says where to begin" if "auto.offset.reset" in refused else ""
        raise ValueError(f"Spark sets {', '.join(refused)} itself and refuses to start with it: remove it{instead}")
    return options


_HOST_AND_PORT: Final = re.compile(r"(?:\w+://)?(?:\[[^\]]+\]|[^:\[\]\s]+):(\d{1,5})")


def _with_ports(servers: str) -> str:
    for server in servers.split(","):
        found = _HOST_AND_PORT.fullmatch(server.strip())
        if found is None or not 0 < int(found[1]) < 65_536:
            raise ValueError(f"{server.strip() or 'an empty address'} is not HOST:PORT, as in kafka-1:9092")
    return servers


class Kafka(Section):
    """The Kafka cluster of the mirror topic and the result topics. It may differ from the watched cluster."""

    bootstrap_servers: Annotated[str, AfterValidator(_with_ports)] = Field(min_length=1)
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None = None
    sasl_username: str | None = None
    sasl_password: SecretStr | None = None
    sasl_password_file: SecretFile | None = None
    ssl_ca_file: CertificateFile | None = None
    ssl_certificate_file: CertificateFile | None = None
    ssl_key_file: ExistingFile | None = None
    ssl_key_password: SecretStr | None = None
    ssl_key_password_file: SecretFile | None = None
    reach_timeout_s: float = Field(default=10.0, gt=0, le=600)
    spark_options: Annotated[dict[str, ClientProperty], AfterValidator(_taken_by_spark)] = Field(default_factory=dict)
    librdkafka_options: dict[str, ClientProperty] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.security_protocol.startswith("SASL") and not self._handed_over("sasl.mechanism"):
            for key in ("sasl_mechanism", "sasl_username"):
                if getattr(self, key) is None:
                    raise ValueError(f"security_protocol = {self.security_protocol} needs {key}")
            if self.password() is None:
                variable = keys.variable_for(("kafka", "sasl_password"))
                raise ValueError(
                    f"security_protocol = {self.security_protocol} needs sasl_password_file, or {variable} in the environment"
                )
        return self

    @model_validator(mode="after")
    def _key_fits(self) -> Self:
        if (self.ssl_certificate_file is None) != (self.ssl_key_file is None):
            raise ValueError("ssl_certificate_file and ssl_key_file go together")
        if self.ssl_key_file is not None:
            try:
                plain_key(self.ssl_key_file, self.key_password())
            except ValueError as error:
                variable = keys.variable_for(("kafka", "ssl_key_password"))
                raise ValueError(f"ssl_key_file: {error} (ssl_key_password_file, or {variable} in the environment)") from None
        return self

    @model_validator(mode="after")
    def _in_force(self) -> Self:
        """Reject keys without effect under the chosen protocol: a forgotten ``security_protocol`` must not disable encryption."""
        for prefix, part, remedy in (("sasl_", "SASL", "SASL_SSL"), ("ssl_", "SSL", "SSL or SASL_SSL")):
            set_keys = [name for name in type(self).model_fields if name.startswith(prefix) and getattr(self, name) is not None]
            if set_keys and part not in self.security_protocol.split("_"):
                raise ValueError(
                    f"{set_keys[0]} has no effect with security_protocol = {self.security_protocol}; set that to {remedy}, "
                    f"or remove {set_keys[0]}"
                )
        return self

    def _handed_over(self, option: str) -> bool:
        """Return True if both pass-through tables set the option, as for a mechanism without keys (Kerberos, OAuth)."""
        return option in self.spark_options and option in self.librdkafka_options

    def password(self) -> str | None:
        return secret(self.sasl_password, self.sasl_password_file)

    def key_password(self) -> str | None:
        return secret(self.ssl_key_password, self.ssl_key_password_file)

    def for_librdkafka(self) -> dict[str, str]:
        """Return the client properties for confluent-kafka."""
        known = {
            "bootstrap.servers": self.bootstrap_servers,
            "security.protocol": self.security_protocol,
            "sasl.mechanism": self.sasl_mechanism,
            "sasl.username": self.sasl_username,
            "sasl.password": self.password() if self.sasl_mechanism else None,
            "ssl.ca.location": self.ssl_ca_file,
            "ssl.certificate.location": self.ssl_certificate_file,
            "ssl.key.location": self.ssl_key_file,
            "ssl.key.password": self.key_password(),
            "allow.auto.create.topics": "false",  # a deleted topic must not be created again by a client
        }
        return {name: str(value) for name, value in known.items() if value is not None} | self.librdkafka_options

    def for_spark(self) -> dict[str, str]:
        """Return the options for Spark's Kafka source and sink, with the prefix ``kafka.``."""
        known = {
            "bootstrap.servers": self.bootstrap_servers,
            "security.protocol": self.security_protocol,
            "sasl.mechanism": self.sasl_mechanism,
            "sasl.jaas.config": self._jaas(),
            **self._pem(),
        }
        options = {name: value for name, value in known.items() if value is not None} | self.spark_options
        return {f"kafka.{name}": value for name, value in options.items()}

    def _jaas(self) -> str | None:
        if self.sasl_mechanism is None:
            return None
        module = "plain.PlainLoginModule" if self.sasl_mechanism == "PLAIN" else "scram.ScramLoginModule"
        user, password = _quoted(self.sasl_username or ""), _quoted(self.password() or "")
        return f"org.apache.kafka.common.security.{module} required username={user} password={password};"

    def _pem(self) -> dict[str, str | None]:
        """Return the TLS options; Java also reads PEM (KIP-651), so both clients use the same files."""
        options: dict[str, str | None] = {}
        if self.ssl_ca_file:
            options |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self.ssl_ca_file)}
        if self.ssl_certificate_file and self.ssl_key_file:
            options |= {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.certificate.chain": self.ssl_certificate_file.read_text(),
                "ssl.keystore.key": plain_key(self.ssl_key_file, self.key_password()),
            }
        return options


class Topics(Section):
    """Names and settings of the topics, all on the same Kafka cluster."""

    mirror: TopicName = "rebalance-mirror"
    findings: TopicName = "rebalance-findings"
    groups: TopicName = "rebalance-groups"
    events: TopicName = "rebalance-events"
    status: TopicName = "rebalance-status"
    dead_letters: TopicName = "rebalance-dead-letters"
    quality: TopicName = "rebalance-quality"
    notifications: TopicName = "rebalance-notifications"
    lag: TopicName = "rebalance-lag"
    create: bool = True
    partitions: int = Field(default=1, ge=1, le=MAX_PARTITIONS)
    replication_factor: int = Field(default=-1, ge=-1, le=100)
    compression: Literal["producer", "uncompressed", "zstd", "lz4", "snappy", "gzip"] = "zstd"
    history_days: float = Field(default=7.0, gt=0, le=36_500)
    findings_days: float = Field(default=30.0, gt=0, le=36_500)

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        names = [getattr(self, key) for key, field in type(self).model_fields.items() if field.annotation is str and field.metadata]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two topics have the name {name!r}")
        return self


JVM_OPTIONS: Final = "-XX:+UseSerialGC -XX:MetaspaceSize=192m"
"""One collector thread, and no collections of the whole heap while Spark's classes are loaded."""


def _enough_for_spark(heap: str) -> str:
    if int(heap[:-1]) * (1024 if heap[-1] == "g" else 1) < MIN_DRIVER_MIB:
        raise ValueError(f"Spark does not start with less than {MIN_DRIVER_MIB}m")
    return heap


class Job(Section):
    """Settings of the Spark application."""

    checkpoint: LocalPath = Path("checkpoints/monitor")
    state: str | None = Field(default=None, pattern=r"^[a-z][a-z0-9+.-]*://.*[^/]$")
    log_file: LocalPath = Path("checkpoints/monitor.log")
    starting_offsets: Literal["earliest", "latest"] = "earliest"
    trigger_ms: int = Field(default=250, ge=0, le=60_000)
    wait_for_records: int = Field(default=800, ge=0)
    wait_ms: int = Field(default=5_000, ge=0, le=60_000)
    max_records_per_batch: int = Field(default=100_000, ge=100)
    lanes: int = Field(default=2, ge=1, le=64)
    cores: int = Field(default_factory=lambda: min(4, os.cpu_count() or 1), ge=1)
    driver_memory: Annotated[str, AfterValidator(_enough_for_spark)] = Field(default="1g", pattern=r"^\d+[mg]$")
    jvm_options: str = JVM_OPTIONS
    restart_wait_s: float = Field(default=1.0, gt=0)
    restart_wait_max_s: float = Field(default=60.0, gt=0)
    stop_wait_s: float = Field(default=20.0, gt=0)

    @property
    def place(self) -> str:
        """Address of the folder in which the queries keep what they know."""
        return self.state or self.checkpoint.resolve().as_uri()

    @property
    def jvm_log(self) -> Path:
        """File for the JVM's own output, beside Spark's log."""
        return Path(f"{self.log_file}.jvm")

    @property
    def python_log(self) -> Path:
        """File for the log of Python's libraries, beside Spark's log."""
        return Path(f"{self.log_file}.python")

    @property
    def quality_log(self) -> Path:
        """File for the log and output of the quality process, beside Spark's log."""
        return Path(f"{self.log_file}.quality")


class Quality(Section):
    """Settings of the quality checks with Great Expectations."""

    enabled: bool = True
    suite: ExistingFile | None = None
    trigger_s: float = Field(default=10.0, ge=0.1)
    max_records_per_batch: int = Field(default=100_000, ge=100)
    docs: LocalPath = Path("checkpoints/data-docs")
    docs_every_s: float = Field(default=60.0, ge=0)
    docs_history: int = Field(default=20, ge=1, le=1000)


SHORT_LIVED_JVM: Final = "-XX:TieredStopAtLevel=1"
"""``job.jvm_options`` for short runs: the start uses less CPU time, all later work uses more."""

_AT_LEAST_ONE: Final = frozenset(
    {
        "zombie_refusals",
        "standstill_ms",
        "usual_ms",
        "missing_ms",
        "left_ms",
        "crash_loop_returns",
        "crash_loop_ms",
        "quiet_ms",
        "unbounded_join_ms",
        "metadata_max_age_ms",
        "silence_ms",
        "forget_group_ms",
    }
)


def _lawful(model: Settings) -> Settings:
    """Check the lower bounds of the model's settings, which the model itself does not check."""
    for name in keys.keys(Settings):
        value, least = getattr(model, name), int(name in _AT_LEAST_ONE)
        if isinstance(value, int) and value < least:
            raise PydanticCustomError(
                "setting",
                "input should be greater than or equal to {least} (it is {value})",
                {"key": name, "least": least, "value": value},
            )
    for place, value in model.cluster_session_timeouts_ms.items():
        if place.rpartition("/")[2] not in KINDS or value < 1:
            raise PydanticCustomError(
                "setting",
                "input should be a time in ms for CLUSTER/TYPE, where TYPE is one of {kinds} (it is {value} for {place})",
                {"key": "cluster_session_timeouts_ms", "kinds": ", ".join(KINDS), "value": value, "place": place},
            )
    return model


class _Environment(EnvSettingsSource):
    """Accepts lists written as ``a,b``, also in dataclasses, which pydantic-settings does not inspect."""

    def decode_complex_value(self, field_name: str, field: Any, value: Any) -> Any:
        return super().decode_complex_value(field_name, field, value) if value.lstrip().startswith(("[", "{")) else value

    def __call__(self) -> dict[str, Any]:
        values: dict[str, Any] = keys.with_lists(self.settings_cls, super().__call__())
        return values


class MonitorConfig(BaseSettings):
    """The configuration of ``rebalance-monitor run`` and ``rebalance-monitor notify``."""

    model_config = SettingsConfigDict(env_prefix=keys.PREFIX, env_nested_delimiter=keys.NESTING, extra="forbid", frozen=True)

    cluster: str = ""
    kafka: Kafka
    topics: Topics = Topics()
    job: Job = Field(default_factory=Job)
    spark: Spark = Spark()
    quality: Quality = Quality()
    model: Annotated[Settings, AfterValidator(_lawful)] = Settings()
    notify: Notify = Notify()
    metrics: Metrics = Metrics()
    lag: Lag = Lag()
    traces: Traces = Traces()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the signature is pydantic's
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return _Environment(settings_cls), init_settings


class Loaded(NamedTuple):
    """A configuration, and the content of its file."""

    config: MonitorConfig
    file: dict[str, Any]


def load(file: Path, **defaults: Any) -> MonitorConfig:
    """Read and check a configuration file; environment variables override its values.

    :param defaults: sections for a file that has them not.
    :raises ConfigError: when the file cannot be read, or a key or a variable is unknown, missing, out of range or a secret in the file.
    """
    return read(file, **defaults).config


def read(file: Path, **defaults: Any) -> Loaded:
    """Read a configuration as :func:`load` does; return it with the file's content.

    :raises ConfigError: as :func:`load`.
    """
    try:
        values = tomllib.loads(file.read_text())
    except FileNotFoundError:
        raise ConfigError(f"there is no configuration file {file}; deploy/rebalance-monitor.toml is a template") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {file}: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file} is not TOML: {error}") from None
    problems = keys.environment_problems(MonitorConfig)
    problems += [f"{file}: {problem}" for problem in keys.file_problems(MonitorConfig, values)]
    if problems:
        raise ConfigError("\n".join(problems))
    try:
        return Loaded(MonitorConfig(**(defaults | values)), values)
    except ValidationError as error:
        raise ConfigError("\n".join(_sentence(file, problem) for problem in error.errors())) from None


def _sentence(file: Path, problem: Any) -> str:
    path = tuple(str(part) for part in problem["loc"])
    if problem["type"] == "setting":
        path = (*path, problem["ctx"]["key"])
    key = ".".join(path)
    variable = next((found.name for found in keys.variables() if found.path == path), None)
    where = f"environment variable {variable}" if variable else str(file)
    if problem["type"] in {"extra_forbidden", "unexpected_keyword_argument"}:
        return f"{where}: unknown key {key}{keys.suggestion(MonitorConfig, path)}"
    if problem["type"] == "missing":
        return f"{where}: {key} is missing; set it there or in {keys.variable_for(path)}"
    reason = str(problem["msg"])
    reason = reason.removeprefix("Value error, ") if problem["type"] == "value_error" else f"{reason[:1].lower()}{reason[1:]}"
    given = problem.get("input")
    show = isinstance(given, str | int | float) and not keys.may_be_secret(MonitorConfig, path)
    return f"{where}: {key}: {reason}{f' (it is {json.dumps(given, ensure_ascii=False)})' if show else ''}"


def _quoted(text: str) -> str:
    """Return a quoted string for a JAAS configuration."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

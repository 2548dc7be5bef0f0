"""The settings of the notifier: the sections ``[notify]``, ``[notify.alertmanager.NAME]`` and so on, and ``[traces]``.

Receivers are named tables and not a list, so each key has a path in messages and in the environment:
``REBALANCE_MONITOR_NOTIFY__WEBHOOK__CHAT__URL``. The URL of a webhook is a secret, because anyone who knows it can post there. It is set by
environment or file, and never printed.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, Field, SecretStr, model_validator

from coordinator_model.finding import Severity
from streaming.config.base import CertificateFile, ExistingFile, SecretFile, Section, secret
from streaming.config.maintenance import Day, Maintenance, Zone
from streaming.config.patterns import Pattern

GroupBy = Literal["finding", "group", "cluster"]

_URL: Final = re.compile(r"https?://[^/?#\s]+(?:[/?#]\S*)?")
_LABEL: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_OWN_LABELS: Final = frozenset({"alertname", "cluster", "group", "rule", "severity", "finding"})

# Lower case, because environment variables do not distinguish case; no double underscore, because that is their separator.
ReceiverName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9]*(?:_[a-z0-9]+)*$", max_length=40)]


def _web_address(url: str) -> str:
    if not _URL.fullmatch(url):
        raise ValueError("an address begins with http:// or https:// and names a host")
    return url


def _secret_web_address(url: SecretStr) -> SecretStr:
    _web_address(url.get_secret_value())
    return url


WebAddress = Annotated[str, AfterValidator(_web_address)]
SecretWebAddress = Annotated[SecretStr, AfterValidator(_secret_web_address)]


class Patience(Section):
    """How long a finding must have been open before it is sent, by severity."""

    info: float = Field(default=5.0, ge=0, le=86_400)
    warning: float = Field(default=5.0, ge=0, le=86_400)
    error: float = Field(default=5.0, ge=0, le=86_400)
    critical: float = Field(default=0.0, ge=0, le=86_400)

    def of(self, severity: Severity) -> float:
        """Return the wait of a severity in seconds."""
        wait: float = getattr(self, severity.value)
        return wait


class FindingFilter(Section):
    """Which findings are sent to a receiver."""

    minimum_severity: Severity = Severity.WARNING
    allow_groups: tuple[Pattern, ...] = ("*",)
    deny_groups: tuple[Pattern, ...] = ()
    deny_rules: tuple[Pattern, ...] = ()


class Web(Section):
    """HTTP client settings of a receiver."""

    timeout_s: float = Field(default=10.0, gt=0, le=600)
    ca_file: CertificateFile | None = None
    certificate_file: CertificateFile | None = None
    key_file: ExistingFile | None = None
    username: str | None = None
    password: SecretStr | None = None
    password_file: SecretFile | None = None
    token: SecretStr | None = None
    token_file: SecretFile | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.key_file is not None and self.certificate_file is None:
            raise ValueError("key_file goes with certificate_file")
        if (self.username is None) != (self.password is None and self.password_file is None):
            raise ValueError("username goes with password or password_file")
        if self.username is not None and (self.token is not None or self.token_file is not None):
            raise ValueError("set either username and password, or a token")
        return self

    def bearer_token(self) -> str | None:
        return secret(self.token, self.token_file)

    def basic_password(self) -> str | None:
        return secret(self.password, self.password_file)


class SecretlyAddressed(Web):
    """Settings of a receiver whose URL is a secret."""

    url: SecretWebAddress | None = None
    url_file: SecretFile | None = None

    @model_validator(mode="after")
    def _addressed(self) -> Self:
        if self.url is None and self.url_file is None:
            raise ValueError("it needs url_file, the name of a file that holds the address, or url by environment")
        try:
            _web_address(self.address())
        except ValueError as error:
            raise ValueError(f"{self.url_file}: {error}") from None
        return self

    def address(self) -> str:
        """Return the URL; the file is read on each call, so a changed secret needs no restart."""
        return secret(self.url, self.url_file) or ""


class Alertmanager(FindingFilter, Web):
    """Settings of a Prometheus Alertmanager (API v2)."""

    url: WebAddress
    resend_s: float = Field(default=60.0, ge=1, le=3600)
    keep_firing_s: float = Field(default=60.0, ge=0, le=3600)
    per_finding: bool = False
    heartbeat: bool = True
    labels: dict[str, str] = Field(default_factory=dict)
    generator_url: WebAddress | None = None

    @model_validator(mode="after")
    def _lawful_labels(self) -> Self:
        for name in self.labels:
            if not _LABEL.fullmatch(name) or name in _OWN_LABELS:
                raise ValueError(
                    f"labels: {name!r} is not allowed: use letters, digits and _, and none of the monitor's own labels"
                )
        return self


class Webhook(FindingFilter, SecretlyAddressed):
    """Settings of a receiver of JSON by POST."""

    template: Literal["generic", "slack", "teams", "pagerduty"] = "generic"
    template_file: ExistingFile | None = None
    secret: SecretStr | None = None
    secret_file: SecretFile | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    group_by: GroupBy = "group"
    group_wait_s: float = Field(default=2.0, ge=0, le=3600)
    tell_resolved: bool = True

    @model_validator(mode="after")
    def _suits_the_template(self) -> Self:
        if self.template == "pagerduty" and self.template_file is None:
            if self.group_by != "finding":
                raise ValueError('template "pagerduty" needs group_by = "finding": an event of PagerDuty is about one incident')
            if self.template_secret() is None:
                raise ValueError('template "pagerduty" needs secret_file, the name of a file that holds the routing key')
        return self

    def template_secret(self) -> str | None:
        """Return the secret that the template may put into the body, such as a routing key."""
        return secret(self.secret, self.secret_file)


class Stdout(FindingFilter):
    """Settings of standard output: one JSON object per line."""

    minimum_severity: Severity = Severity.INFO
    group_by: GroupBy = "finding"
    group_wait_s: float = Field(default=0.0, ge=0, le=3600)
    tell_resolved: bool = True


class Heartbeat(SecretlyAddressed):
    """Settings of a service that raises an alarm when the pings stop."""

    every_s: float = Field(default=60.0, ge=1, le=86_400)


class Digest(SecretlyAddressed):
    """Settings of a receiver of the weekly digest."""

    template: Literal["generic", "slack", "teams"] = "generic"
    day: Day = "monday"
    at: dt.time = dt.time(8)
    zone: Zone = "UTC"
    allow_groups: tuple[Pattern, ...] = ("*",)
    deny_groups: tuple[Pattern, ...] = ()

    @model_validator(mode="after")
    def _at_a_local_time(self) -> Self:
        if self.at.tzinfo is not None:
            raise ValueError("at is the local time in zone; it must not have an offset")
        return self


class Notify(Section):
    """Settings of ``rebalance-monitor notify``."""

    wait_s: Patience = Patience()
    stalled_s: float = Field(default=60.0, ge=20, le=86_400)  # an idle monitor writes a status every 10 s
    retry_wait_s: float = Field(default=1.0, gt=0, le=3600)
    retry_wait_max_s: float = Field(default=60.0, gt=0, le=3600)
    rule_url: str = ""
    page_url: WebAddress | None = None
    alertmanager: dict[ReceiverName, Alertmanager] = Field(default_factory=dict)
    webhook: dict[ReceiverName, Webhook] = Field(default_factory=dict)
    heartbeat: dict[ReceiverName, Heartbeat] = Field(default_factory=dict)
    digest: dict[ReceiverName, Digest] = Field(default_factory=dict)
    stdout: Stdout | None = None
    maintenance: dict[str, Maintenance] = Field(default_factory=dict)


class Traces(Web):
    """Where rebalances are sent as traces: a receiver of OTLP over HTTP."""

    endpoint: WebAddress | None = None
    headers: dict[str, str] = Field(default_factory=dict)

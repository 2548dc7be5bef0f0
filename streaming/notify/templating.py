"""Renders messages from Jinja2 templates, which are sandboxed and checked before anything is sent.

At the start each template is rendered with sample findings: complete ones, minimal ones, and ones with hostile names. The result must
be JSON. So an error in a template is reported with file and line when the notifier starts, not when the first finding is sent.

Names in findings come from clients. The filter ``tojson`` escapes them for JSON, but the receiver may interpret the text:
``<!channel>`` as a client id would notify a whole Slack channel. The filter ``mrkdwn`` escapes such text.
"""

from __future__ import annotations

import hashlib
import json
import traceback
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

from coordinator_model.finding import Blame, Certainty, Evidence, Finding, Severity
from coordinator_model.rules.base import Rule
from coordinator_model.wording import counted
from streaming.errors import SetupError
from streaming.notify.notification import Event, Links, Notification, on_one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

SHIPPED: Final = Path(__file__).parent / "templates"

_SAMPLE_LINKS: Final = Links("https://example.org/{rule}", "https://example.org/")


class MessageError(ValueError):
    """A message cannot be rendered; the text names the template, and the line if it is known."""


class Template:
    """One template file."""

    def __init__(self, file: Path, *, makes_json: bool = True) -> None:
        """Read and check the file.

        :param makes_json: True if the rendered text must be JSON.
        :raises SetupError: when the template is invalid or cannot be read.
        """
        self._file = file
        self._makes_json = makes_json
        try:
            self._template = _environment(file).get_template(str(file))
            for sample in samples():
                self.render(context(sample, receiver="webhook/sample", links=_SAMPLE_LINKS, secret="sample"))  # noqa: S106
        except jinja2.TemplateSyntaxError as error:
            raise SetupError(f"{file}, line {error.lineno}: {error.message}") from None
        except (OSError, UnicodeDecodeError) as error:
            raise SetupError(f"cannot read the template {file}: {error}") from None
        except MessageError as error:
            raise SetupError(str(error)) from None

    def render(self, values: dict[str, Any]) -> bytes:
        """Render the message for a :func:`context`.

        :raises MessageError: when the template fails, or its result is not JSON.
        """
        try:
            text = self._template.render(values)
        except Exception as error:  # an expression can raise anything
            raise MessageError(f"{self._file}, line {self._line(error)}: {error}") from None
        if self._makes_json:
            try:
                json.loads(text)
            except json.JSONDecodeError as error:
                near = on_one_line(text[max(0, error.pos - 30) : error.pos + 30])
                raise MessageError(
                    f"{self._file} does not produce JSON: {error.msg} at line {error.lineno} of its output, near {near!r}"
                ) from None
        return text.encode(errors="replace")

    def _line(self, error: Exception) -> int:
        frames = traceback.extract_tb(error.__traceback__)
        return next((frame.lineno or 0 for frame in reversed(frames) if frame.filename == str(self._file)), 0)


def shipped(name: str) -> Path:
    """Return the file of a built-in template."""
    return SHIPPED / f"{name}.json.j2"


def context(notices: Sequence[Notification], *, receiver: str, links: Links, secret: str | None) -> dict[str, Any]:
    """Return the variables of a template (docs/alerting.md)."""
    clusters = {str(notice.finding["cluster"]) for notice in notices}
    groups = {str(notice.finding["group"]) for notice in notices}
    still_open = [notice for notice in notices if notice.event is not Event.RESOLVED] or notices
    return {
        "receiver": receiver,
        "key": message_key(receiver, notices),
        "status": "open" if any(notice.is_open for notice in notices) else "resolved",
        "severity": max((notice.severity for notice in still_open), key=lambda severity: severity.rank).value,
        "title": _title(notices),
        "cluster": clusters.pop() if len(clusters) == 1 else "",
        "group": groups.pop() if len(groups) == 1 else "",
        "notices": [
            {**notice.as_json(links), "headline": headline(notice), "finding": {**_NOTHING, **notice.finding}} for notice in notices
        ],
        "secret": secret,
    }


def message_key(receiver: str, notices: Sequence[Notification]) -> str:
    """Return the idempotency key of a message: the same receiver and notifications give the same key."""
    facts = "\x00".join([receiver, *sorted(notice.key for notice in notices)])
    return hashlib.blake2s(facts.encode(), digest_size=16).hexdigest()


def headline(notice: Notification) -> str:
    """Return a short text on what happened, and where."""
    severity, group = notice.severity.value, notice.finding["group"]
    words = {
        Event.OPEN: severity,
        Event.SEVERITY: f"now {severity}, was {notice.last_sent['severity'] if notice.last_sent else 'less'}",
        Event.RESOLVED: "resolved",
        Event.OVER: f"{severity}, over already",
    }
    cluster = notice.finding["cluster"]
    where = f" in group {group}" if group else ""
    return f"{words[notice.event]}{where}{f' of {cluster}' if cluster else ''}"


def _title(notices: Sequence[Notification]) -> str:
    if len(notices) == 1:
        return f"{headline(notices[0])}: {notices[0].finding['name']}"
    counts = Counter("resolved" if notice.event is Event.RESOLVED else notice.severity.value for notice in notices)
    order = [*reversed([severity.value for severity in Severity]), "resolved"]
    groups = {str(notice.finding["group"]) for notice in notices}
    where = f"in group {groups.pop()}" if len(groups) == 1 and "" not in groups else f"in {counted(len(groups), 'group')}"
    return f"{len(notices)} findings {where}: " + ", ".join(f"{counts[word]} {word}" for word in order if counts[word])


def _environment(file: Path) -> jinja2.Environment:
    environment = ImmutableSandboxedEnvironment(
        loader=jinja2.FunctionLoader(lambda _name: (file.read_text(encoding="utf-8"), str(file), None)),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # the output is JSON and not HTML: templates use tojson
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["tojson"] = _to_json
    environment.filters["line"] = lambda text: on_one_line(str(text), 10_000)
    environment.filters["cut"] = lambda text, longest: text if len(text) <= longest else f"{text[: longest - 1]}…"
    environment.filters["mrkdwn"] = mrkdwn
    return environment


def _to_json(value: Any) -> str:
    """Return JSON. Jinja's own filter sorts keys, escapes for HTML, and does not name an undefined variable."""
    if isinstance(value, jinja2.Undefined):
        return str(value)  # raises an error that names it
    return json.dumps(value)


def mrkdwn(text: Any) -> str:
    """Escape the three characters that start links, mentions and entities in Slack."""
    return on_one_line(str(text), 10_000).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def samples() -> list[list[Notification]]:
    """Return messages with notifications of every kind, to check templates with."""
    full, bare = _sample(hostile=False).as_json(), _sample(hostile=True).as_json()
    milder = {**full, "severity": Severity.WARNING.value}
    every = [
        Notification(Event.OPEN, full),
        Notification(Event.SEVERITY, full, milder),
        Notification(Event.RESOLVED, {**bare, "status": "resolved", "resolved_at": bare["updated_at"]}, bare, "gone"),
        Notification(Event.OVER, bare),
    ]
    return [*([notice] for notice in every), every, every * 5]


def _sample(*, hostile: bool) -> Finding:
    name = 'it\'s "quoted" \\ <!channel> {{ 7 }}\n\x1b[31m&\u2028é' if hostile else "sample"
    rule = Rule(
        id="X-00",
        name="sample",
        severity=Severity.ERROR,
        certainty=Certainty.CERTAIN,
        blame=Blame.CLIENT,
        meaning="",
        condition="",
        expected="",
        action="",
        false_alarms="",
    )
    cluster = "" if hostile else "sample"
    without_client = rule.finding(subject="", cluster=cluster, group=name, opened_at_us=0, at_us=0, summary=name, observed=name)
    somebody = replace(
        without_client,
        generation=1,
        member_id=name,
        client_address="127.0.0.1",
        evidence=(Evidence(0, 0, "c", 0, 0, "Heartbeat v4 request"),),
    )
    return replace(without_client if hostile else somebody, group_type="classic", incarnation=1, client_id=name)


_NOTHING: Final[dict[str, Any]] = dict.fromkeys(_sample(hostile=True).as_json())
"""Defaults for fields that a record of another release may lack."""

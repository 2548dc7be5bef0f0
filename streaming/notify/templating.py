"""Messages out of templates: Jinja2, sandboxed, and checked before anything is sent.

A template is rendered once at the start, with findings that have everything, nothing, and names of the kind that break things; what
comes out must be JSON. So a mistake in it is said with file and line when the notifier starts, not when a group stands still.

The trap: names in findings come from clients. In JSON ``tojson`` makes them harmless, but the reader of the JSON has a language of its
own: ``<!channel>`` as a client id would ring everybody at Slack. The filter ``mrkdwn`` is for that.
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
from streaming.kafka.topics import SetupError
from streaming.notify.notification import Event, Notification, on_one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

SHIPPED: Final = Path(__file__).parent / "templates"


class MessageError(ValueError):
    """A message cannot be made; the sentence names the template, and the line where that is known."""


class Template:
    """One file."""

    def __init__(self, file: Path, *, makes_json: bool = True) -> None:
        """Read and check it.

        :param makes_json: whether what comes out must be JSON.
        :raises SetupError: when it cannot be used.
        """
        self._file = file
        self._makes_json = makes_json
        try:
            self._template = _environment(file).get_template(str(file))
            for sample in samples():
                self.render(context(sample, receiver="webhook/sample", rule_url="https://example.org/{rule}", secret="sample"))  # noqa: S106
        except jinja2.TemplateSyntaxError as error:
            raise SetupError(f"{file}, line {error.lineno}: {error.message}") from None
        except (OSError, UnicodeDecodeError) as error:
            raise SetupError(f"cannot read the template {file}: {error}") from None
        except MessageError as error:
            raise SetupError(str(error)) from None

    def render(self, values: dict[str, Any]) -> bytes:
        """The message for a :func:`context`.

        :raises MessageError: when the template fails, or what comes out is no JSON.
        """
        try:
            text = self._template.render(values)
        except Exception as error:  # whatever an expression may raise
            raise MessageError(f"{self._file}, line {self._line(error)}: {error}") from None
        if self._makes_json:
            try:
                json.loads(text)
            except json.JSONDecodeError as error:
                near = on_one_line(text[max(0, error.pos - 30) : error.pos + 30])
                raise MessageError(
                    f"{self._file} does not make JSON: {error.msg} at line {error.lineno} of what it makes, near {near!r}"
                ) from None
        return text.encode(errors="replace")

    def _line(self, error: Exception) -> int:
        frames = traceback.extract_tb(error.__traceback__)
        return next((frame.lineno or 0 for frame in reversed(frames) if frame.filename == str(self._file)), 0)


def shipped(name: str) -> Path:
    """The file of a template that comes with the monitor."""
    return SHIPPED / f"{name}.json.j2"


def context(notices: Sequence[Notification], *, receiver: str, rule_url: str, secret: str | None) -> dict[str, Any]:
    """What a template knows (docs/alerting.md)."""
    clusters = {str(notice.finding["cluster"]) for notice in notices}
    groups = {str(notice.finding["group"]) for notice in notices}
    told = [notice for notice in notices if notice.event is not Event.RESOLVED] or notices
    return {
        "receiver": receiver,
        "key": message_key(receiver, notices),
        "status": "open" if any(notice.is_open for notice in notices) else "resolved",
        "severity": max((notice.severity for notice in told), key=lambda severity: severity.rank).value,
        "title": _title(notices),
        "cluster": clusters.pop() if len(clusters) == 1 else "",
        "group": groups.pop() if len(groups) == 1 else "",
        "notices": [
            {**notice.as_json(rule_url), "headline": headline(notice), "finding": {**_NOTHING, **notice.finding}}
            for notice in notices
        ],
        "secret": secret,
    }


def message_key(receiver: str, notices: Sequence[Notification]) -> str:
    """Names a message: the same receiver, findings and news give the same key."""
    facts = "\x00".join([receiver, *sorted(notice.key for notice in notices)])
    return hashlib.blake2s(facts.encode(), digest_size=16).hexdigest()


def headline(notice: Notification) -> str:
    """A few words on what happened, and where."""
    severity, group = notice.severity.value, notice.finding["group"]
    words = {
        Event.OPEN: severity,
        Event.SEVERITY: f"now {severity}, was {notice.told['severity'] if notice.told else 'less'}",
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
    where = f"in group {groups.pop()}" if len(groups) == 1 and "" not in groups else f"in {len(groups)} groups"
    return f"{len(notices)} findings {where}: " + ", ".join(f"{counts[word]} {word}" for word in order if counts[word])


def _environment(file: Path) -> jinja2.Environment:
    environment = ImmutableSandboxedEnvironment(
        loader=jinja2.FunctionLoader(lambda _name: (file.read_text(encoding="utf-8"), str(file), None)),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # what is made is JSON: tojson
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["tojson"] = _to_json
    environment.filters["line"] = lambda text: on_one_line(str(text), 10_000)
    environment.filters["cut"] = lambda text, longest: text if len(text) <= longest else f"{text[: longest - 1]}…"
    environment.filters["mrkdwn"] = _mrkdwn
    return environment


def _to_json(value: Any) -> str:
    """Jinja's own sorts keys, escapes for HTML, and does not say which name is undefined."""
    if isinstance(value, jinja2.Undefined):
        return str(value)  # raises, and names it
    return json.dumps(value)


def _mrkdwn(text: Any) -> str:
    """Slack reads these three as the beginning of links, mentions and entities."""
    return on_one_line(str(text), 10_000).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def samples() -> list[list[Notification]]:
    """Notices of every kind, to try templates with."""
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
    nobody = rule.finding(subject="", cluster=cluster, group=name, opened_at_us=0, at_us=0, summary=name, observed=name)
    somebody = replace(
        nobody,
        generation=1,
        member_id=name,
        client_address="127.0.0.1",
        evidence=(Evidence(0, 0, "c", 0, 0, "Heartbeat v4 request"),),
    )
    return replace(nobody if hostile else somebody, group_type="classic", incarnation=1, client_id=name)


_NOTHING: Final[dict[str, Any]] = dict.fromkeys(_sample(hostile=True).as_json())
"""A record of another release may lack a field that a template names."""

"""A weekly digest of what rebalances cost, to one receiver: the report of the last seven days in a few lines.

It is sent at a fixed time of the week. Reading a week of the topics takes seconds to minutes, and may fail. Nothing waits for this channel,
since it gets no findings, so it reads while it plans; a digest that was made is kept until the receiver has answered.
"""

from __future__ import annotations

import datetime as dt
import json
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

from coordinator_model.wording import counted
from streaming.config.maintenance import DAYS
from streaming.config.patterns import selects
from streaming.notify.delivery import Channel, Delivery, DeliveryPlan
from streaming.notify.http import Outcome, Unreachable, post
from streaming.notify.notification import iso, on_one_line
from streaming.notify.templating import mrkdwn
from streaming.published import sentences
from streaming.published.page_state import ALL, PageState
from streaming.published.records import is_open
from streaming.published.taking import TopicNames
from streaming.report.contents import report_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from streaming.config.notify import Digest
    from streaming.config.settings import MonitorConfig
    from streaming.notify.notification import Notification
    from streaming.notify.outbox import Outbox
    from streaming.report.contents import Report

WEEK_S: Final = 7 * 86_400.0
_GROUPS, _ADVICE = 5, 3
_LONGEST: Final = 1_000


def next_s(settings: Digest, now_s: float) -> float:
    """Return when the next digest is due, in seconds since the epoch."""
    zone = ZoneInfo(settings.zone)
    today = dt.datetime.fromtimestamp(now_s, zone).date()
    for ahead in range(9):
        day = today + dt.timedelta(days=ahead)
        due_s = dt.datetime.combine(day, settings.at, zone).timestamp()
        if DAYS[day.weekday()] == settings.day and due_s > now_s:
            return due_s
    raise AssertionError  # each day of the week comes within eight


def weekly(config: MonitorConfig, settings: Digest) -> Callable[[float], Report]:
    """Return what reads the report of the week before a moment.

    :raises SetupError: when the topics cannot be read.
    """
    topics = config.topics
    names = TopicNames(topics.groups, topics.findings, topics.status, topics.events, topics.lag)

    def read(to_s: float) -> Report:
        from streaming.published.source import read_topics  # noqa: PLC0415 - the one thing here that needs a Kafka client

        state = PageState(clock=time.time, hide_addresses=True, kept=ALL)
        read_topics(state, config.kafka.for_librdkafka, names, since_s=to_s - WEEK_S)
        wanted = partial(selects, allowed=settings.allow_groups, denied=settings.deny_groups)
        return report_of(state, wanted=wanted, since_s=to_s - WEEK_S)

    return read


class DigestChannel(Channel):
    """Sends the digest, and no findings.

    :param read: returns the report of the week before a moment.
    """

    def __init__(
        self,
        name: str,
        settings: Digest,
        *,
        cluster: str,
        page_url: str | None,
        read: Callable[[float], Report],
        now_s: float | None = None,
    ) -> None:
        self.name = f"digest/{name}"
        self._settings = settings
        self._cluster = cluster
        self._page_url = page_url
        self._read = read
        self._now_s = time.time() if now_s is None else now_s  #: of the newest plan
        self._due_s = next_s(settings, self._now_s)
        self._made: Delivery | None = None  #: until the receiver has answered

    def plan(self, _outbox: Outbox, now_s: float) -> DeliveryPlan:
        """Return the digest if it is due. Blocks while it reads."""
        self._now_s = now_s
        if self._due_s - now_s > WEEK_S + 86_400:  # the clock was set back
            self._due_s = next_s(self._settings, now_s)
        if now_s < self._due_s:
            return DeliveryPlan([], self._due_s)
        if self._made is None:
            self._made = self._delivery(title_of(self._due_s, self._cluster), lines_of(self._read(self._due_s)))
        return DeliveryPlan([self._made], now_s + 1.0)

    def send(self, delivery: Delivery) -> Outcome:
        outcome = post(self._settings.address(), delivery.body, {"Content-Type": "application/json"}, self._settings)
        if delivery is self._made and not isinstance(outcome, Unreachable):
            self._due_s, self._made = next_s(self._settings, max(self._due_s, self._now_s)), None
        return outcome

    def only(self, _notice: Notification, now_s: float) -> Delivery:
        return self._delivery(f"Test of the digest. {title_of(now_s, self._cluster)}", ["The digest itself is sent in its time."])

    def _delivery(self, title: str, lines: list[str]) -> Delivery:
        page = [f"More on the page: {self._page_url}"] if self._page_url else []
        shown = [on_one_line(line, _LONGEST) for line in lines]
        return Delivery((), json.dumps(_FORMS[self._settings.template](title, [*shown, *page], self)).encode())

    def as_generic(self, title: str, lines: list[str]) -> dict[str, Any]:
        to_s = self._due_s
        known = {"version": 1, "digest": "weekly", "receiver": self.name, "cluster": self._cluster}
        return {**known, "from": iso(to_s - WEEK_S), "to": iso(to_s), "title": title, "lines": lines}


def _slack(title: str, lines: list[str], _channel: DigestChannel) -> dict[str, Any]:
    text = "\n".join(f"• {mrkdwn(line)}" for line in lines)
    return {"text": mrkdwn(title), "attachments": [{"color": "#439fe0", "mrkdwn_in": ["text"], "text": text}]}


def _teams(title: str, lines: list[str], _channel: DigestChannel) -> dict[str, Any]:
    def block(text: str, **run: Any) -> dict[str, Any]:
        return {"type": "RichTextBlock", "inlines": [{"type": "TextRun", "text": text, **run}]}  # runs are not parsed as Markdown

    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "fallbackText": title,
        "body": [block(title, weight="bolder"), *map(block, lines)],
    }
    return {"type": "message", "attachments": [{"contentType": "application/vnd.microsoft.card.adaptive", "content": card}]}


_FORMS: Final[dict[str, Callable[[str, list[str], DigestChannel], dict[str, Any]]]] = {
    "generic": lambda title, lines, channel: channel.as_generic(title, lines),
    "slack": _slack,
    "teams": _teams,
}


# --- what it says ------------------------------------------------------------------------------------------------------------


def title_of(to_s: float, cluster: str) -> str:
    """Return ``Rebalances of prod, 2026-11-16 to 2026-11-23``."""
    days = " to ".join(iso(at_s)[:10] for at_s in (to_s - WEEK_S, to_s))
    return f"Rebalances{f' of {cluster}' if cluster else ''}, {days}"


def lines_of(report: Report) -> list[str]:
    """Return the week in lines: what it cost, the dearest groups, what would have saved most, findings, and what was not seen."""
    lines = [report.summary]
    for group in report.groups[:_GROUPS]:
        if group.lost.rebalances:
            lost = (
                f"{counted(group.lost.rebalances, 'rebalance')}, {sentences.seconds_of(group.lost.member_seconds)} member-seconds"
            )
            lines.append(f"{sentences.short(group.name)}: {lost}, most of it by “{next(iter(group.causes))}”.")
    pieces = sorted(
        ((piece, group) for group in report.groups for piece in group.advice[:1]), key=lambda one: one[0].saves, reverse=True
    )
    lines += [
        f"{sentences.short(group.name)} would have saved {sentences.saved(piece)}, by {piece.setting}."
        for piece, group in pieces[:_ADVICE]
    ]
    still = [one for one in (*report.findings, *(one for group in report.groups for one in group.findings)) if is_open(one)]
    if still:
        lines.append(f"{counted(len(still), 'finding')} still open: {sentences.by_severity(still)}.")
    return lines + [f"Not seen: {line}" for line in report.not_seen]

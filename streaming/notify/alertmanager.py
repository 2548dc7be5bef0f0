"""Findings as alerts of Alertmanager's API v2.

Labels are the identity of an alert: alertname, cluster, group, rule, severity. Values that change are annotations. Several findings of
one rule in one group, for instance two zombies, are therefore one alert, and its annotations name them all. The alert starts with the
first finding and ends with the last. With ``per_finding`` the finding's id is also a label.

Alertmanager resolves an alert that is not sent again. So all open alerts are sent periodically with an end time in the future, as
Prometheus does. If the notifier dies, its alerts expire. Its rules:

* A later message cannot shorten an end time in the future, unless its own end time has passed. So a resolved finding is sent as open
  until its alert may end, and then with an end time in the past.
* The clocks may differ: a time that has passed here may be in the future there. So the end time is the capture time of the resolution
  if that is earlier. It is sent again for as long as an open alert would have lasted.
* Alertmanager does not notify of an alert that was active for less than its ``group_wait``: see ``keep_firing_s``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from streaming.notify.delivery import Channel, Delivery, DeliveryPlan
from streaming.notify.http import Outcome, post
from streaming.notify.notification import Event, Notification, ObservedFinding, alert_name, iso, on_one_line, who

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from streaming.config.notify import Alertmanager
    from streaming.notify.notification import Links
    from streaming.notify.outbox import Outbox
    from streaming.notify.watchdog import Watchdog

PATH: Final = "/api/v2/alerts"
HEARTBEAT: Final = "RebalanceMonitorHeartbeat"

_LASTS: Final = 4  # end time of an alert, in multiples of resend_s; Prometheus uses the same factor
_BATCH: Final = 100
_NAMED: Final = 10
_ANNOTATION: Final = 2000

Labels = tuple[tuple[str, str], ...]
"""Label names and values, sorted."""


class _Member(NamedTuple):
    """A finding that is or was part of an alert."""

    finding: Mapping[str, Any]
    began_s: float
    ended_s: float | None


@dataclass(slots=True)
class _Ended:
    alert: dict[str, Any]
    until_s: float


class AlertmanagerChannel(Channel):
    """Delivers findings to one Alertmanager."""

    def __init__(self, name: str, settings: Alertmanager, *, links: Links, cluster: str, watchdog: Watchdog) -> None:
        self.name = f"alertmanager/{name}"
        self._settings = settings
        self._links = links
        self._cluster = cluster
        self._watchdog = watchdog
        self._ended: dict[Labels, _Ended] = {}
        self._all_sent_s: float | None = None

    def plan(self, outbox: Outbox, now_s: float) -> DeliveryPlan:
        """Return the due notifications, and all open alerts when ``resend_s`` has passed."""
        waiting = outbox.due(now_s)
        ripe = [due.notice for due in waiting if due.due_s <= now_s]
        again_s = now_s if self._all_sent_s is None else self._all_sent_s + self._settings.resend_s
        everything = again_s <= now_s or again_s > now_s + self._settings.resend_s  # second condition: the clock was set back
        wake_s = min([now_s + self._settings.resend_s, *(due.due_s for due in waiting if due.due_s > now_s)])
        if everything:
            self._all_sent_s = now_s
        elif not ripe:
            return DeliveryPlan([], min(wake_s, again_s))
        return DeliveryPlan(self._deliveries(ripe, outbox.open(), now_s, everything=everything), wake_s)

    def missed(self) -> None:
        """Make all open alerts due again after a failed delivery."""
        self._all_sent_s = None

    def send(self, delivery: Delivery) -> Outcome:
        headers = {"Content-Type": "application/json"}
        return post(self._settings.url.rstrip("/") + PATH, delivery.body, headers, self._settings)

    def split(self, delivery: Delivery) -> list[Delivery]:
        """Return one delivery per alert, so that one invalid alert does not reject the others; empty if there is only one alert."""
        alerts = {tuple(sorted(alert["labels"].items())): alert for alert in json.loads(delivery.body)}
        if len(alerts) == 1:
            return []
        notices: dict[Labels, list[Notification]] = {}
        for notice in delivery.notices:
            labels = self._labels(notice.finding)
            notices.setdefault(labels if labels in alerts else self._labels(notice.last_sent or notice.finding), []).append(notice)
        return [_delivery([alert], notices.get(labels, ())) for labels, alert in alerts.items()]

    def only(self, notice: Notification, now_s: float) -> Delivery:
        """Return a delivery with one alert that is not sent again and therefore expires."""
        return _delivery([self._alert(self._labels(notice.finding), [_Member(notice.finding, now_s, None)], now_s)], [notice])

    # --- findings into alerts ------------------------------------------------------------------------------------

    def _deliveries(
        self, ripe: Sequence[Notification], sent: Iterable[Mapping[str, Any]], now_s: float, *, everything: bool
    ) -> list[Delivery]:
        members, touched = self._members(ripe, sent)
        for labels in [labels for labels, ended in self._ended.items() if ended.until_s < now_s]:
            del self._ended[labels]
        alerts: dict[Labels, dict[str, Any]] = {}
        for labels, here in members.items():
            if everything or labels in touched:
                alerts[labels] = self._alert(labels, here, now_s)
        for labels, alert in alerts.items():
            if any(member.ended_s is None for member in members[labels]):
                self._ended.pop(labels, None)
            else:
                self._ended[labels] = _Ended(alert, now_s + _LASTS * self._settings.resend_s)
        if everything:
            alerts = {labels: ended.alert for labels, ended in self._ended.items()} | alerts
            if self._settings.heartbeat and self._watchdog.beats(now_s):
                alerts[()] = self._heartbeat(now_s)
        return self._batches(alerts, ripe)

    def _members(
        self, ripe: Iterable[Notification], sent: Iterable[Mapping[str, Any]]
    ) -> tuple[dict[Labels, list[_Member]], set[Labels]]:
        """Return the findings of each alert after delivery of the due notifications, and the alerts that these change."""
        members: dict[Labels, dict[str, _Member]] = {}
        touched: set[Labels] = set()
        for finding in sent:
            members.setdefault(self._labels(finding), {})[finding["id"]] = _Member(finding, _opened_s(finding), None)
        for notice in ripe:
            name = notice.finding["id"]
            if notice.last_sent is not None:
                before = self._labels(notice.last_sent)
                touched.add(before)
                ended_s = _ended_s(notice.finding)
                members.setdefault(before, {})[name] = _Member(notice.last_sent, _opened_s(notice.last_sent), ended_s)
            if notice.event in {Event.OPEN, Event.SEVERITY}:
                labels = self._labels(notice.finding)
                touched.add(labels)
                members.setdefault(labels, {})[name] = _Member(notice.finding, _opened_s(notice.finding), None)
        return {labels: list(here.values()) for labels, here in members.items()}, touched

    def _labels(self, finding: Mapping[str, Any]) -> Labels:
        labels = {
            **self._settings.labels,
            "alertname": alert_name(finding),
            "cluster": str(finding["cluster"]),
            "group": str(finding["group"]),
            "rule": str(finding["rule"]),
            "severity": str(finding["severity"]),
        }
        if self._settings.per_finding:
            labels["finding"] = str(finding["id"])
        return tuple(sorted((name, value) for name, value in labels.items() if value))  # Alertmanager drops empty labels

    def _alert(self, labels: Labels, members: Sequence[_Member], now_s: float) -> dict[str, Any]:
        still_open = [member for member in members if member.ended_s is None]
        ended_s = max((member.ended_s for member in members if member.ended_s is not None), default=now_s)
        shown = sorted(still_open or members, key=lambda member: (member.began_s, member.finding["id"]))
        began_s = min(shown[0].began_s, now_s)
        return {
            "labels": dict(labels),
            "annotations": self._annotations([member.finding for member in shown]),
            "startsAt": iso(began_s),
            "endsAt": iso(now_s + _LASTS * self._settings.resend_s if still_open else max(began_s, min(ended_s, now_s))),
            **self._generator(self._links.to_page(shown[0].finding)),
        }

    def _annotations(self, findings: Sequence[Mapping[str, Any]]) -> dict[str, str]:
        first, more = findings[0], len(findings) - 1
        people = [name for name in dict.fromkeys(who(finding) for finding in findings) if name]
        runbook = self._links.to_rule(first)
        annotations = {
            "summary": f"{first['summary']} ({more} more like it)" if more else first["summary"],
            "expected": first["expected"],
            "observed": first["observed"],
            "action": first["action"],
            "who": "; ".join(people[:_NAMED]) + (f"; and {len(people) - _NAMED} more" if len(people) > _NAMED else ""),
            "blame": first.get("blame"),
            "certainty": first.get("certainty"),
            "findings": ", ".join(finding["id"] for finding in findings[:_NAMED]),
            "count": str(len(findings)),
            "resolved_at": first.get("resolved_at") if first.get("status") == "resolved" else None,
            "runbook_url": runbook,
        }
        return {name: on_one_line(str(text), _ANNOTATION) for name, text in annotations.items() if text}

    def _heartbeat(self, now_s: float) -> dict[str, Any]:
        labels = {**self._settings.labels, "alertname": HEARTBEAT, "severity": "none", "cluster": self._cluster}
        return {
            "labels": {name: value for name, value in labels.items() if value},
            "annotations": {"summary": "The rebalance monitor and its notifier are running. Raise an alarm when this alert ends."},
            "startsAt": iso(now_s),
            "endsAt": iso(now_s + _LASTS * self._settings.resend_s),
            **self._generator(self._links.page_url),
        }

    def _generator(self, on_page: str | None) -> dict[str, str]:
        address = self._settings.generator_url or on_page
        return {} if address is None else {"generatorURL": address}

    def _batches(self, alerts: Mapping[Labels, dict[str, Any]], ripe: Sequence[Notification]) -> list[Delivery]:
        """Split the alerts into deliveries.

        A notification belongs to the last delivery that has one of its alerts: it counts as delivered only when all of them are.
        """
        place = {labels: number // _BATCH for number, labels in enumerate(alerts)}
        notices: dict[int, list[Notification]] = {}
        for notice in ripe:
            concerned = [self._labels(finding) for finding in (notice.last_sent, notice.finding) if finding is not None]
            notices.setdefault(max(place.get(labels, 0) for labels in concerned), []).append(notice)
        listed = list(alerts.values())
        return [
            _delivery(listed[begin : begin + _BATCH], notices.get(begin // _BATCH, ())) for begin in range(0, len(listed), _BATCH)
        ]


def _delivery(alerts: Sequence[dict[str, Any]], notices: Iterable[Notification]) -> Delivery:
    return Delivery(tuple(notices), json.dumps(alerts).encode())


def _opened_s(finding: Mapping[str, Any]) -> float:
    return ObservedFinding.of(finding, written_s=0.0).opened_s


def _ended_s(finding: Mapping[str, Any]) -> float:
    observed = ObservedFinding.of(finding, written_s=0.0)
    return observed.resolved_s if observed.resolved_s is not None else observed.updated_s

"""What receivers are handed: alerts by their labels, messages by their groups, heartbeats while there is life."""

from __future__ import annotations

import datetime as dt
import io
import json
from typing import Any

import pytest

from streaming.config.notify import Alertmanager, FindingFilter, Heartbeat, Patience, Stdout, Webhook
from streaming.notify.alertmanager import HEARTBEAT, AlertmanagerChannel
from streaming.notify.http import Accepted, Rejected
from streaming.notify.notification import Event, Links, Notification, who
from streaming.notify.outbox import DueNotification, Outbox, Policy
from streaming.notify.watchdog import Watchdog
from streaming.notify.webhook import HeartbeatChannel, StdoutChannel, WebhookChannel, grouped
from tests.streaming.notify.said import observed, of_rule, worsening

CRITICAL = of_rule("violation-stale-generation-accepted-4.3.1", "G-02")
ERROR = of_rule("violation-zombie-generation-4.1.2", "G-01")
TWINS = of_rule("violation-same-instance-3.9.2", "P-11")
WORSENING = worsening()
NO_PATIENCE = Patience(warning=0, error=0)


def watchdog(started_s: float = 0.0, stalled_s: float = 60.0) -> Watchdog:
    return Watchdog(cluster="prod", topic="mirror", stalled_s=stalled_s, started_s=started_s)


def status(written_s: float, topic: str = "mirror") -> bytes:
    return json.dumps({"topic": topic, "partition": 0, "written_ms": int(written_s * 1000)}).encode()


class Managed:
    """An Alertmanager's channel with its outbox, and a clock."""

    def __init__(self, page_url: str | None = None, **settings: Any) -> None:
        chosen = Alertmanager(**{"url": "http://alertmanager:9093", "heartbeat": False, "keep_firing_s": 0, **settings})
        policy = Policy(FindingFilter(minimum_severity="info"), NO_PATIENCE, keep_s=chosen.keep_firing_s)
        self.outbox = Outbox(policy, {}, {})
        self.outbox.begin({0: 0})
        self.watchdog = watchdog()
        self.channel = AlertmanagerChannel("main", chosen, links=Links("", page_url), cluster="prod", watchdog=self.watchdog)
        self.offset = 0

    def observe(self, *states: dict[str, Any]) -> float:
        """Gives the time of the last."""
        for state in states:
            self.outbox.observe(observed(state, offset=self.offset))
            self.offset += 1
        return observed(states[-1]).written_s

    def sent(self, now_s: float) -> list[dict[str, Any]]:
        """What is sent now, and taken."""
        alerts: list[dict[str, Any]] = []
        for delivery in self.channel.plan(self.outbox, now_s).deliveries:
            alerts += json.loads(delivery.body)
            self.outbox.accept(delivery.notices, now_s)
        return alerts


def seconds(alert: dict[str, Any], field: str) -> float:
    return dt.datetime.fromisoformat(alert[field]).timestamp()


def test_an_open_alert_is_sent_again_in_time_and_only_then():
    managed = Managed(resend_s=60)
    now_s = managed.observe(CRITICAL[0])
    (alert,) = managed.sent(now_s)
    assert seconds(alert, "endsAt") == pytest.approx(now_s + 240, abs=0.01)
    assert managed.sent(now_s + 59) == []
    (again,) = managed.sent(now_s + 60)
    assert again["labels"] == alert["labels"]
    assert seconds(again, "endsAt") == pytest.approx(now_s + 300, abs=0.01)


def test_an_end_lies_in_the_past_and_is_repeated_for_as_long_as_an_alert_would_have_lasted():
    managed = Managed(resend_s=60)
    managed.sent(managed.observe(CRITICAL[0]))
    now_s = managed.observe(CRITICAL[-1])
    (ended,) = managed.sent(now_s + 1)
    assert ended["endsAt"] == CRITICAL[-1]["resolved_at"][:23] + "Z"
    sent = [bool(managed.sent(now_s + 1 + 60 * minutes)) for minutes in range(1, 8)]
    assert sent == [True] * 4 + [False] * 3


def test_an_alert_stays_for_a_while_even_if_its_finding_was_over_before_it_was_told():
    managed = Managed(keep_firing_s=60, resend_s=30)
    now_s = managed.observe(*CRITICAL)
    (alert,) = managed.sent(now_s)
    assert seconds(alert, "endsAt") > now_s
    assert alert["annotations"]["resolved_at"] == CRITICAL[-1]["resolved_at"]
    (still,) = managed.sent(now_s + 59)
    assert seconds(still, "endsAt") > now_s + 59
    assert seconds(managed.sent(now_s + 60)[0], "endsAt") <= now_s


def test_findings_of_one_rule_in_one_group_are_one_alert():
    managed = Managed()
    now_s = managed.observe(TWINS[0], TWINS[1])
    (alert,) = managed.sent(now_s)
    assert alert["annotations"]["count"] == "2"
    assert alert["annotations"]["summary"] == f"{TWINS[0]['summary']} (1 more like it)"
    assert alert["annotations"]["who"] == f"{who(TWINS[0])}; {who(TWINS[1])}"
    now_s = managed.observe(TWINS[2])
    (alert,) = managed.sent(now_s)
    assert seconds(alert, "endsAt") > now_s
    assert alert["annotations"]["findings"] == TWINS[1]["id"]
    now_s = managed.observe(TWINS[3])
    (alert,) = managed.sent(now_s)
    assert seconds(alert, "endsAt") <= now_s


def test_an_alert_leads_to_its_first_finding_on_the_page_unless_another_address_is_set():
    def source(page_url, **settings):
        managed = Managed(page_url, heartbeat=False, **settings)
        (alert,) = managed.sent(managed.observe(TWINS[0], TWINS[1]))
        return alert.get("generatorURL")

    page, other = "https://page.example.org", "https://grafana.example.org/d/x"
    assert source(page) == f"{page}/findings/{TWINS[0]['id']}"
    assert source(page, generator_url=other) == other
    assert source(None) is None


def test_on_request_each_finding_is_an_alert_of_its_own():
    managed = Managed(per_finding=True, labels={"team": "data"})
    alerts = managed.sent(managed.observe(TWINS[0], TWINS[1]))
    assert {alert["labels"]["finding"] for alert in alerts} == {TWINS[0]["id"], TWINS[1]["id"]}
    assert {alert["labels"]["team"] for alert in alerts} == {"data"}


def test_another_severity_is_the_end_of_one_alert_and_the_beginning_of_another():
    managed = Managed()
    managed.sent(managed.observe(WORSENING[0]))
    now_s = managed.observe(WORSENING[1])
    ends = {alert["labels"]["severity"]: seconds(alert, "endsAt") - now_s for alert in managed.sent(now_s)}
    assert ends["warning"] <= 0 < ends["error"]


def test_what_is_known_now_is_what_is_sent_again():
    managed = Managed()
    now_s = managed.observe(ERROR[0])
    managed.sent(now_s)
    managed.observe(ERROR[1])
    (again,) = managed.sent(now_s + 60)
    assert again["annotations"]["summary"] == ERROR[1]["summary"] != ERROR[0]["summary"]


def test_many_alerts_go_in_parts_and_a_refused_part_alert_by_alert():
    managed = Managed(per_finding=True)
    states = [{**ERROR[0], "id": f"G-01-{number:016x}"} for number in range(250)]
    now_s = managed.observe(*states)
    deliveries = managed.channel.plan(managed.outbox, now_s).deliveries
    assert [len(json.loads(delivery.body)) for delivery in deliveries] == [100, 100, 50]
    assert [len(delivery.notices) for delivery in deliveries] == [100, 100, 50]
    parts = managed.channel.split(deliveries[2])
    assert [len(json.loads(part.body)) for part in parts] == [1] * 50
    assert [part.notices[0].finding["id"] for part in parts] == [json.loads(part.body)[0]["labels"]["finding"] for part in parts]
    assert managed.channel.split(parts[0]) == []


def test_the_heartbeat_fires_only_while_the_monitor_lives():
    managed = Managed(heartbeat=True, resend_s=60)
    managed.watchdog.status(status(1000.0), 1000.0, live=True)
    (alert,) = managed.sent(1000.0)
    assert alert["labels"] == {"alertname": HEARTBEAT, "cluster": "prod", "severity": "none"}
    assert managed.sent(1060.0) == []


def test_a_clock_that_is_set_back_does_not_let_alerts_expire():
    managed = Managed(resend_s=60)
    now_s = managed.observe(CRITICAL[0])
    managed.sent(now_s)
    assert managed.sent(now_s - 3600)


def test_labels_of_clients_are_only_text():
    managed = Managed()
    nasty = {**CRITICAL[0], "group": 'a"}\n{x', "cluster": ""}
    (alert,) = managed.sent(managed.observe(nasty))
    assert alert["labels"]["group"] == 'a"}\n{x'
    assert "cluster" not in alert["labels"]


# --- messages -----------------------------------------------------------------------------------------------------------


def due(state: dict[str, Any], due_s: float, event: Event = Event.OPEN) -> DueNotification:
    return DueNotification(Notification(event, state), due_s)


def test_what_happens_in_one_group_within_a_short_time_is_one_message():
    waiting = [due(ERROR[0], 10.0), due(TWINS[0], 10.0), due({**ERROR[0], "id": "other"}, 11.0)]
    assert grouped(waiting, "group", 2.0, 11.5) == ([], 12.0)
    messages, _ = grouped(waiting, "group", 2.0, 12.0)
    assert [[notice.finding["id"] for notice in message] for message in messages] == [[ERROR[0]["id"], "other"], [TWINS[0]["id"]]]


def test_what_is_critical_does_not_wait_and_takes_the_rest_along():
    milder = {**ERROR[0], "group": CRITICAL[0]["group"]}
    messages, _ = grouped([due(CRITICAL[0], 10.0), due(milder, 10.0)], "group", 2.0, 10.0)
    assert [len(message) for message in messages] == [2]


def test_a_message_may_be_about_a_cluster_or_a_single_finding():
    waiting = [due(ERROR[0], 10.0), due(TWINS[0], 10.0)]
    assert len(grouped(waiting, "cluster", 0.0, 10.0)[0]) == 1
    assert len(grouped(waiting, "finding", 0.0, 10.0)[0]) == 2


def test_what_is_not_ripe_is_left_for_its_time():
    assert grouped([due(ERROR[0], 15.0)], "group", 2.0, 10.0) == ([], 15.0)


def test_a_flood_is_cut_into_messages_of_a_bearable_size():
    waiting = [due({**ERROR[0], "id": str(number)}, 10.0) for number in range(120)]
    assert [len(message) for message in grouped(waiting, "group", 0.0, 10.0)[0]] == [50, 50, 20]


def test_a_line_of_standard_output_is_one_json_object():
    stream = io.BytesIO()
    channel = StdoutChannel(Stdout(), links=Links("https://docs/{rule}"), stream=stream)
    assert channel.send(channel.only(Notification(Event.OPEN, CRITICAL[0]), 0.0)) == Accepted()
    (line,) = stream.getvalue().splitlines()
    told = json.loads(line)
    assert (told["status"], told["severity"], told["group"]) == ("open", "critical", CRITICAL[0]["group"])
    assert told["notices"][0]["finding"] == CRITICAL[0]
    assert told["notices"][0]["rule_url"] == "https://docs/G-02"


def test_a_message_that_cannot_be_made_is_refused_with_file_and_line(tmp_path):
    template = tmp_path / "mine.j2"
    template.write_text('{\n"a": {{ (1 / (7 - notices[0].finding.count)) | tojson }}}')
    channel = WebhookChannel("hook", Webhook(url="http://127.0.0.1:1/x", template_file=template), links=Links())
    outcome = channel.send(channel.only(Notification(Event.OPEN, {**CRITICAL[0], "count": 7}), 0.0))
    assert outcome == Rejected(f"{template}, line 2: division by zero")


def test_a_heartbeat_is_sent_each_so_often_and_not_for_a_dead_monitor():
    life = watchdog()
    channel = HeartbeatChannel("deadman", Heartbeat(url="http://127.0.0.1:1/x", every_s=30), cluster="prod", watchdog=life)
    nothing = Outbox(Policy(FindingFilter(), Patience()), {}, {})
    life.status(status(1000.0), 1000.0, live=True)
    beats = [now_s for now_s in range(1000, 1200, 10) if channel.plan(nothing, float(now_s)).deliveries]
    assert beats == [1000, 1030]


# --- the monitor as the watchdog sees it ------------------------------------------------------------------------------------


def test_a_monitor_that_stops_is_a_finding_until_it_goes_on():
    life = watchdog()
    life.status(status(1000.0), 1000.0, live=True)
    assert life.look(1059.0) is None
    stalled = life.look(1060.0)
    assert (stalled.finding["rule"], stalled.severity.value, stalled.is_over) == ("V-05", "critical", False)
    assert life.look(1061.0) is None
    life.status(status(1062.0), 1062.0, live=True)
    over = life.look(1062.0)
    assert (over.id, over.is_over) == (stalled.id, True)


def test_a_monitor_that_starts_slowly_is_no_finding():
    """It writes that it starts, each 10 s; the first batch came after 29 s and more."""
    life = watchdog(1000.0)
    for now_s in range(1002, 1400, 10):
        starting = {"topic": "mirror", "starting_since_ms": 1_002_000, "written_ms": now_s * 1000}
        life.status(json.dumps(starting).encode(), float(now_s), live=True)
        assert life.look(now_s + 9.0) is None
        assert life.beats(now_s + 9.0)


def test_a_monitor_that_never_ran_has_no_heartbeat_and_is_told_of_after_a_while():
    life = watchdog(1000.0)
    assert not life.beats(1000.0)
    assert life.look(1059.0) is None
    assert "no status at all" in life.look(1060.0).finding["summary"]


def test_a_restarted_notifier_knows_a_stalled_monitor_again():
    ids = set()
    for started_s in (5000.0, 6000.0):
        life = watchdog(started_s)
        life.status(status(1000.0), started_s, live=False)
        ids.add(life.look(started_s).id)
    assert len(ids) == 1


def test_a_monitor_whose_clock_is_behind_is_alive_as_long_as_it_writes():
    life = watchdog(5000.0)
    life.status(status(1000.0), 5000.0, live=True)
    assert life.beats(5000.0)


@pytest.mark.parametrize("value", [None, b"{", b"[]", b'{"topic": "mirror"}', status(5000.0, topic="another")])
def test_what_is_no_status_of_this_mirror_is_no_sign_of_life(value):
    life = watchdog(1000.0)
    life.status(value, 1050.0, live=True)
    assert not life.beats(1050.0)
    assert life.look(1060.0) is not None


def test_a_silent_mirror_is_told_by_the_monitor_and_not_again_as_a_stalled_monitor():
    from coordinator_model.rules.observation import V_03
    from streaming.engine.mirror_silence import subjects, whole_topic
    from streaming.engine.own_findings import Standing

    standing = Standing("prod", [], subjects("mirror", 1))
    silent = standing.report(V_03, whole_topic("mirror"), at_us=1_700_000_000_123_457, summary="silent", observed="nothing")
    life = watchdog()
    life.status(status(1000.0), 1000.0, live=True)
    life.observe(observed(silent.as_json()))
    assert life.look(1100.0) is None
    assert not life.beats(1100.0), "nobody is watched, whatever the reason"
    (resolved,) = standing.settle(V_03.id, whole_topic("mirror"), at_us=1_700_000_100_000_000)
    life.observe(observed(resolved.as_json()))
    assert life.look(1100.0) is not None

"""The weekly digest: when it is sent, to whom again, and what stands in it."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from streaming.config.notify import Digest, FindingFilter, Patience
from streaming.config.settings import load
from streaming.kafka.required_rights import topic_needs
from streaming.notify.delivery_log import NoDeliveryLog
from streaming.notify.digest import WEEK_S, DigestChannel, lines_of, next_s
from streaming.notify.dispatcher import Dispatcher
from streaming.notify.outbox import Outbox, Policy
from streaming.report.contents import Report, report_of
from tests.streaming.notify.receiver import Server
from tests.streaming.web import history
from tests.streaming.web.conftest import filled
from tests.streaming.web.history import NOW_S


@pytest.fixture
def server():
    running = Server()
    yield running
    running.close()


def moment(text: str, zone: str = "UTC") -> float:
    return dt.datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()


@pytest.mark.parametrize(
    ("now", "due"),
    [
        ("2026-11-23T07:59:59", "2026-11-23T08:00:00"),  # a Monday
        ("2026-11-23T08:00:00", "2026-11-30T08:00:00"),
        ("2026-11-29T23:00:00", "2026-11-30T08:00:00"),
    ],
)
def test_it_is_due_at_one_time_of_the_week(now: str, due: str) -> None:
    assert next_s(Digest(url="http://x"), moment(now)) == moment(due)


def test_its_time_is_the_clocks_also_when_the_clock_changes() -> None:
    settings = Digest(url="http://x", day="sunday", at=dt.time(8), zone="Europe/Berlin")
    first = next_s(settings, moment("2026-10-18T09:00:00", "Europe/Berlin"))
    assert first == moment("2026-10-25T08:00:00", "Europe/Berlin")  # the night before, an hour came twice
    assert first - moment("2026-10-18T08:00:00", "Europe/Berlin") == WEEK_S + 3_600


def week() -> Report:
    """Two groups, one of which has a finding and advice."""
    made = history.Group("deploys", [f"deploys-{number}" for number in range(3)])
    made.restarts()
    made.finding("R-01", "member never rejoins", "error", NOW_S - 30, 2)
    cheap = history.Group("cheap", ["cheap-1", "cheap-2"])
    cheap.rebalance(NOW_S - 300, cause="new member")
    return report_of(filled([*made.records, *cheap.records], clock=None), wanted=lambda _: True, since_s=None)


class Scene:
    """A dispatcher of a digest, with a clock of ours."""

    def __init__(self, server: Server, read: Callable[[float], Report], **settings: Any) -> None:
        self.now_s = moment("2026-11-20T12:00:00")
        self.said: list[str] = []
        chosen = Digest(url=server.url, **settings)
        page = "https://rebalances.example.org"
        channel = DigestChannel("weekly", chosen, cluster="prod", page_url=page, read=read, now_s=self.now_s)
        self.dispatcher = Dispatcher(
            channel,
            Outbox(Policy(FindingFilter(), Patience()), {}, {}),
            NoDeliveryLog(),
            tell=self.said.append,
            retry_s=(1.0, 60.0),
            clock=lambda: self.now_s,
            jitter=lambda: 0.5,
        )

    def at(self, text: str) -> None:
        self.now_s = moment(text)
        self.dispatcher.step()


def test_it_is_sent_once_a_week_with_what_the_week_cost(server: Server) -> None:
    asked: list[float] = []

    def read(to_s: float) -> Report:
        asked.append(to_s)
        return week()

    scene = Scene(server, read)
    for text in ("2026-11-20T12:00:00", "2026-11-23T07:59:59", "2026-11-23T08:00:01", "2026-11-23T08:00:02", "2026-11-29T23:59:59"):
        scene.at(text)
    assert asked == [moment("2026-11-23T08:00:00")]
    [(headers, body)] = server.seen
    assert headers["Content-Type"] == "application/json"
    said = json.loads(body)
    assert (said["version"], said["digest"], said["receiver"], said["cluster"]) == (1, "weekly", "digest/weekly", "prod")
    assert (said["from"], said["to"]) == ("2026-11-16T08:00:00.000Z", "2026-11-23T08:00:00.000Z")
    assert said["title"] == "Rebalances of prod, 2026-11-16 to 2026-11-23"
    assert said["lines"] == [*lines_of(week()), "More on the page: https://rebalances.example.org"]
    scene.at("2026-11-30T08:00:01")
    assert len(server.seen) == 2


def test_it_names_the_dearest_groups_what_would_have_saved_most_and_what_is_open() -> None:
    report = week()
    lines = lines_of(report)
    assert lines[0] == report.summary
    assert [line.partition(":")[0] for line in lines[1:3]] == ["deploys", "cheap"]
    assert "deploys: 8 rebalances" in lines[1]
    assert lines[3].startswith("deploys would have saved ")
    assert report.groups[0].advice[0].setting in lines[3]
    assert "1 finding still open: 1 error." in lines


def test_a_receiver_that_is_away_gets_it_later_as_it_was_made(server: Server) -> None:
    asked: list[float] = []
    scene = Scene(server, lambda to_s: asked.append(to_s) or week())
    server.answer = (503, {}, b"")
    scene.at("2026-11-23T08:00:01")
    server.answer = (200, {}, b"")
    scene.at("2026-11-23T08:10:00")
    scene.at("2026-11-23T08:20:00")
    assert len(asked) == 1
    assert [body for _, body in server.seen] == [server.seen[0][1]] * 2


def test_a_receiver_that_refuses_it_is_not_asked_again_before_the_next(server: Server) -> None:
    scene = Scene(server, lambda _: week())
    server.answer = (400, {}, b"no")
    scene.at("2026-11-23T08:00:01")
    scene.at("2026-11-23T09:00:00")
    assert len(server.seen) == 1
    assert any("400" in line for line in scene.said)


def test_what_cannot_be_read_is_read_again(server: Server) -> None:
    outcomes: list[Any] = [RuntimeError("away"), week()]

    def read(_: float) -> Report:
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    scene = Scene(server, read)
    with pytest.raises(RuntimeError):  # the dispatcher's thread says so and goes on
        scene.at("2026-11-23T08:00:01")
    scene.at("2026-11-23T08:00:30")
    assert len(server.seen) == 1


def hostile() -> Report:
    made = history.Group("<!channel> *x*", ["a-1", "a-2"])
    made.rebalance(NOW_S - 300, cause="new member")
    return report_of(filled(made.records, clock=None), wanted=lambda _: True, since_s=None)


def test_for_slack_names_are_text(server: Server) -> None:
    Scene(server, lambda _: hostile(), template="slack").at("2026-11-23T08:00:01")
    said = json.loads(server.seen[0][1])
    assert said["text"] == "Rebalances of prod, 2026-11-16 to 2026-11-23"
    [attachment] = said["attachments"]
    assert attachment["text"].startswith("• In ")
    assert "<!channel>" not in attachment["text"]
    assert "&lt;!channel&gt;" in attachment["text"]


def test_for_teams_it_is_a_card_of_text_runs(server: Server) -> None:
    Scene(server, lambda _: week(), template="teams").at("2026-11-23T08:00:01")
    card = json.loads(server.seen[0][1])["attachments"][0]["content"]
    runs = [block["inlines"][0]["text"] for block in card["body"]]
    assert runs[0] == card["fallbackText"] == "Rebalances of prod, 2026-11-16 to 2026-11-23"
    assert runs[1:-1] == lines_of(week())


def test_a_digest_makes_the_notifier_read_groups_and_events(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "monitor.toml"
    file.write_text('[kafka]\nbootstrap_servers = "k:9092"\n')
    monkeypatch.setenv("REBALANCE_MONITOR_NOTIFY__DIGEST__WEEKLY__URL", "https://hooks.example.org/hunter2")
    config = load(file)
    assert config.notify.digest["weekly"].address() == "https://hooks.example.org/hunter2"
    without, with_it = (set(topic_needs("notify", config.topics, traces=False, digest=digest)) for digest in (False, True))
    assert with_it - without == {(config.topics.groups, "Read"), (config.topics.events, "Read")}

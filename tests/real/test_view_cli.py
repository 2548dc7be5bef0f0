"""``groups``, ``group``, ``findings`` and ``rebalances`` against topics that hold what the model says of two transcripts."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from confluent_kafka import Producer
from typer.testing import CliRunner

from coordinator_model.coordinator import Coordinator
from coordinator_model.finding import Status
from coordinator_model.wording import iso_utc
from streaming.cli import app
from streaming.published.finding_json import microseconds
from streaming.published.records import duration
from tests.golden import transcript
from tests.streaming.terminal.records import rebalance

PROGRESS = ["records/s", "usually", "last", "commit", "its", "last", "hour"]
STUCK = "crime-leader-never-syncs"  #: as the transcript names it
TOPICS = {name: f"view-{name}" for name in ("findings", "groups", "events", "status", "lag")}

REBALANCES = [
    rebalance("orders", at_s=time.time() - 7_000, cost=100.5).as_json(),
    rebalance("billing", at_s=time.time() - 60, cost=7.25, cause="member left").as_json(),
]
ORDERS_BEGAN_US = microseconds(REBALANCES[0]["began_at"])
LAGS = [
    {
        "cluster": "lab",
        "group": "orders",
        "lag": 30,
        "partitions": {"t": {"0": 30}},
        "rebalances": [
            {
                "generation": 7,
                "began_at": iso_utc(ORDERS_BEGAN_US + 4_000_000),
                "before": 30,
                "highest": 1_530,
                "gone_at": iso_utc(ORDERS_BEGAN_US + 49_000_000),
            }
        ],
    },
    {"cluster": "lab", "group": "static", "lag": 12_345, "partitions": {"t": {"0": 12_000, "1": 345, "2": 0}}, "rebalances": []},
]


def stuck():
    """The groups and findings at the moment at which a leader was found that never syncs."""
    model, findings = Coordinator(topic="mirror", partition=0, settings=transcript.SETTINGS), {}
    for record in transcript.read("violation-leader-never-syncs-4.1.2"):
        for finding in model.receive(record):
            findings[finding.id] = finding
        if any((finding.rule, finding.status) == ("R-02", Status.OPEN) for finding in findings.values()):
            break
    return model.changed_groups(), list(findings.values())


def healthy():
    model = Coordinator(topic="mirror", partition=0, settings=transcript.SETTINGS)
    findings = {finding.id: finding for record in transcript.read("lawful-static-4.3.1") for finding in model.receive(record)}
    return model.changed_groups(), list(findings.values())


@pytest.fixture(scope="module")
def config(broker, tmp_path_factory):
    for topic in TOPICS.values():
        broker.create_topic(topic, 1, config={"cleanup.policy": "compact"})
    producer = Producer({"bootstrap.servers": broker.internal})
    for groups, findings in (stuck(), healthy()):
        for group in groups:
            producer.produce(TOPICS["groups"], json.dumps(group.as_json()), key=group.key)
        for finding in findings:
            producer.produce(TOPICS["findings"], json.dumps(finding.as_json()), key=finding.id)
    for event in (*REBALANCES, REBALANCES[0], {**REBALANCES[0], "id": "began", "kind": "rebalance_began", "reason": None}):
        producer.produce(TOPICS["events"], json.dumps(event), key=f"{event['cluster']}/{event['group']}")
    for lag in LAGS:
        producer.produce(TOPICS["lag"], json.dumps(lag), key=f"{lag['cluster']}/{lag['group']}")
    producer.produce(TOPICS["status"], b"{}", key="mirror/0")
    assert producer.flush(10) == 0
    file = tmp_path_factory.mktemp("view") / "monitor.toml"
    names = "\n".join(f'{key} = "{topic}"' for key, topic in TOPICS.items())
    file.write_text(f'[kafka]\nbootstrap_servers = "{broker.internal}"\n[topics]\n{names}\n')
    return str(file)


def run(*words):
    result = CliRunner().invoke(app, list(words), env={"COLUMNS": "200"})
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def test_groups_lists_the_group_in_trouble_first_with_whom_it_waits_for(config):
    result = run("groups", "--config", config)
    assert (result.exit_code, result.stderr) == (0, "")
    heading, _, first, *others = result.stdout.splitlines()
    assert heading.split() == ["group", "state", "for", "generation", "members", "lag", *PROGRESS, "waits", "for", "findings"]
    assert first.startswith(STUCK)
    assert "CompletingRebalance" in first
    assert f"{STUCK}-culprit" in first
    assert first.endswith("1 warning")
    other = others[0].split()
    assert other[:2] == ["static", "Unknown"]  # its members closed their connections when the recording ended
    assert "12,345" in other


def test_groups_prints_the_published_records_as_json(config):
    result = run("groups", "--config", config, "--json")
    printed = [json.loads(line) for line in result.stdout.splitlines()]
    assert [known["group"] for known in printed] == [STUCK, "static"]
    assert printed[1] == next(group.as_json() for group in healthy()[0]) | {"lag": 12_345}
    assert printed[0]["lag"] is None


def test_where_no_lag_is_asked_for_nothing_is_said_of_it(config, tmp_path):
    file = tmp_path / "monitor.toml"
    file.write_text(Path(config).read_text().replace(TOPICS["lag"], "view-no-lag"))
    result = run("groups", "--config", str(file))
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines()[0].split() == [
        *("group", "state", "for", "generation", "members"),
        *PROGRESS,
        *("waits", "for", "findings"),
    ]
    assert "lag" not in run("rebalances", "--config", str(file)).stdout
    assert "lag" not in run("group", "static", "--config", str(file)).stdout


def test_group_shows_members_and_open_findings_with_evidence(config):
    said = run("group", STUCK, "--config", config).stdout
    assert said.startswith(f"{STUCK} has been CompletingRebalance for ")
    assert f"  waits for     {STUCK}-culprit" in said
    assert "waits for its assignment" in said
    assert "warning R-02 " in said
    assert "  to do     " in said
    assert "  evidence  " in said


def test_group_shows_its_lag_and_the_partitions_that_are_furthest_behind(config):
    assert "  lag           12,345 records; most: 12,000 of t-0, 345 of t-1\n" in run("group", "static", "--config", config).stdout
    (printed,) = (json.loads(line) for line in run("group", "static", "--config", config, "--json").stdout.splitlines())
    assert printed["lag"] == LAGS[1]


def test_a_group_that_is_not_known_is_refused_with_the_nearest_name(config):
    result = run("group", "statik", "--config", config)
    assert (result.exit_code, result.stderr) == (2, "error: the monitor has not seen a group statik; did you mean static?\n")


def test_findings_lists_open_ones_and_with_resolved_all(config):
    known = [finding for _, findings in (stuck(), healthy()) for finding in findings]
    listed = [json.loads(line)["id"] for line in run("findings", "--config", config, "--json").stdout.splitlines()]
    assert sorted(listed) == sorted(finding.id for finding in known if finding.status is not Status.RESOLVED)
    every = [json.loads(line)["id"] for line in run("findings", "--config", config, "--json", "--resolved").stdout.splitlines()]
    assert sorted(every) == sorted(finding.id for finding in known)


def test_findings_are_chosen_by_severity_group_and_rule(config):
    def rules(*options):
        return {json.loads(line)["rule"] for line in run("findings", "--config", config, "--json", *options).stdout.splitlines()}

    assert rules("--severity", "warning") == {"R-02"}
    assert rules("--rule", "R-02", "--group", STUCK) == {"R-02"}
    assert rules("--rule", "R-02", "--group", "static") == set()
    table = run("findings", "--config", config, "--severity", "warning").stdout
    assert table.splitlines()[0].split() == ["severity", "rule", "group", "for", "times", "finding"]
    assert table.splitlines()[2].split()[:2] == ["warning", "R-02"]
    assert "  to do     " in run("findings", "--config", config, "--severity", "warning", "--full").stdout


def test_rebalances_are_listed_once_each_with_cause_and_cost(config):
    result = run("rebalances", "--config", config)
    assert (result.exit_code, result.stderr) == (0, "")
    heading, _, first, second, _, total = result.stdout.splitlines()
    assert heading.split()[:5] == ["began", "group", "generation", "cause", "by"]
    assert first.split()[2:6] == ["orders", "7", "new", "member"]
    assert second.split()[2:6] == ["billing", "7", "member", "left"]
    assert heading.split()[-3:] == ["lag", "gone", "after"]
    assert first.split()[-3:] == ["+1,500", "49", "s"]
    assert second.split()[-1] == "served"
    assert total == "2 rebalances, 108 member-s without consuming"


def test_rebalances_are_chosen_by_group_and_time_and_printed_as_published(config):
    def printed(*options):
        return [json.loads(line) for line in run("rebalances", "--config", config, "--json", *options).stdout.splitlines()]

    orders, billing = REBALANCES[0] | {"lag": {"built_up": 1_500, "gone_after_s": 49.0}}, REBALANCES[1] | {"lag": None}
    assert printed() == [orders, billing]
    assert printed("--last-minutes", "60") == [billing]
    assert printed("--group", "orders") == [orders]
    assert run("rebalances", "--config", config, "--group", "nobody").stdout == "No rebalance.\n"


def test_a_monitor_that_stopped_writing_is_a_warning(config, monkeypatch):
    now_s = time.time()
    monkeypatch.setattr("streaming.commands.view.time.time", lambda: now_s + 7_500)
    result = run("groups", "--config", config)
    assert result.exit_code == 0
    assert "warning: the monitor wrote its last status 2 h 5 min ago: it is not running" in result.stderr


def test_topics_that_are_missing_and_a_missing_option_are_errors(broker, tmp_path):
    file = tmp_path / "monitor.toml"
    file.write_text(f'[kafka]\nbootstrap_servers = "{broker.internal}"\n[topics]\ngroups = "nowhere"\n')
    result = run("groups", "--config", str(file))
    assert result.exit_code == 2
    assert "error: cannot read the topic nowhere" in result.stderr
    assert "it does not exist" in result.stderr
    assert run("findings").stderr == "error: set the monitor's configuration with --config, or its Kafka with --bootstrap-server\n"


def test_what_other_programs_wrote_is_left_out_and_counted(broker, tmp_path):
    names = {name: f"foreign-{name}" for name in TOPICS}
    for topic in names.values():
        broker.create_topic(topic, 1, config={"cleanup.policy": "compact"})
    producer = Producer({"bootstrap.servers": broker.internal})
    good = healthy()[0][0]
    for key, value in (("a", b"\xff"), ("b", b"[]"), ("c", b'{"group": "c"}'), (good.key, json.dumps(good.as_json()))):
        producer.produce(names["groups"], value, key=key)
    producer.produce(names["findings"], b'{"id": "f"}', key="f")
    assert producer.flush(10) == 0
    file = tmp_path / "monitor.toml"
    topics = "\n".join(f'{key} = "{topic}"' for key, topic in names.items())
    file.write_text(f'[kafka]\nbootstrap_servers = "{broker.internal}"\n[topics]\n{topics}\n')
    result = run("groups", "--config", str(file), "--json")
    assert (result.exit_code, [json.loads(line)["group"] for line in result.stdout.splitlines()]) == (0, [good.group])
    assert "warning: 3 records of topic foreign-groups do not have this release's format, and are ignored" in result.stderr
    assert "warning: 1 record of topic foreign-findings" in result.stderr


@pytest.mark.parametrize(
    ("seconds", "words"), [(-3, "0 s"), (59.9, "59 s"), (60, "1 min"), (3_599, "59 min"), (7_500, "2 h 5 min"), (86_400, "1 d")]
)
def test_a_duration_is_said_as_a_person_says_it(seconds, words):
    assert duration(seconds) == words

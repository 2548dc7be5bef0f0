"""Each expectation of the suite: a batch of sound traffic passes all of them, and one fault fails just the one that it belongs to."""

from __future__ import annotations

import json
import re
from itertools import count
from urllib.parse import unquote

import pytest

from coordinator_model import wire
from coordinator_model.finding import Status
from coordinator_model.wire.record import MIRRORED_API_KEYS, Kind, MirrorRecord, pack_envelope, topics
from streaming.config.settings import ConfigError, Kafka, MonitorConfig, Quality
from streaming.quality.checker import Checker
from streaming.quality.frame_rows import COLUMNS, Describer, to_frame
from streaming.quality.record_sequences import GRACE_US, RecordSequences, Remembered
from streaming.quality.suite import DEFAULT_SUITE, load
from tests.real.traffic import partition_of, story, tick

START_US = 1_700_000_000_000_000
SECOND = 1_000_000
PARTITIONS = 2


class Topic:
    """A mirror topic in memory: give records, get rows."""

    def __init__(self):
        self.ends = dict.fromkeys(range(PARTITIONS), 0)

    def append(self, partition, record, *, envelope=None, timestamp_ms=None):
        offset = self.ends[partition]
        self.ends[partition] = offset + 1
        key = None if record.group is None else record.group.encode()
        timestamp_ms = record.at_us // 1000 if timestamp_ms is None else timestamp_ms
        return (partition, offset, timestamp_ms, key, record.frame, envelope or pack_envelope(record))


class Published:
    """Takes what the checker publishes."""

    def __init__(self):
        self.findings = []
        self.results = []

    def publish(self, findings):
        self.findings += findings

    def publish_json(self, topic, key, value):
        self.results.append((topic, key, json.loads(json.dumps(value))))

    def flush(self, timeout_s):
        return True


@pytest.fixture
def config(tmp_path):
    quality = Quality(docs=tmp_path / "docs", docs_every_s=3600)
    return MonitorConfig(cluster="c", kafka=Kafka(bootstrap_servers="unused:1"), quality=quality)


@pytest.fixture
def checked(config):
    """A checker, its publisher, and a function that gives the rules that failed on a batch."""
    published = Published()
    checker = Checker(config, published=(), publisher=published)
    batches = count()

    def failed(rows):
        return {outcome.expected.rule.id for outcome in checker.check(rows, next(batches)) if not outcome.success}

    failed.published = published
    return failed


def sound(topic, *, start_us=START_US, seconds=4, change=None):
    """Rows of steady traffic; ``change`` may replace, drop (None) or double (a list) single records."""
    rows = []
    for number, (partition, record) in enumerate(
        story(start_us=start_us, seconds=seconds, groups=6, partitions=PARTITIONS, frames_per_s=100, breach_every=10**9)
    ):
        changed = (change or (lambda _number, record: record))(number, record)
        for each in changed if isinstance(changed, list) else [changed]:
            if isinstance(each, tuple) and not isinstance(each, MirrorRecord):
                rows.append(topic.append(partition, each[0], **each[1]))
            elif each is not None:
                rows.append(topic.append(partition, each))
    return rows


def at(wanted, change):
    """Change the record of that number only; it must be a frame of the heartbeats."""

    def apply(number, record):
        if number != wanted:
            return record
        assert record.kind in {Kind.REQUEST, Kind.RESPONSE}
        return change(record)

    return apply


REQUEST, RESPONSE = 60, 61  # numbers of a heartbeat and its answer in the story


PRODUCE = b"\x00\x00\x00\x09\x00\x00\x00\x00\xff\xff\x00"
HEARTBEAT_V99 = b"\x00\x0c\x00\x63\x00\x00\x00\x00\xff\xff\x00"

FAULTS = {
    "Q-01": (REQUEST, lambda r: [r, (tick(r.at_us), {"envelope": b"\xc1"})]),
    "Q-03": (
        REQUEST,
        lambda r: [r, r._replace(api_key=0, api_version=9, correlation_id=0, exchange=0, connection="p", frame=PRODUCE)],
    ),
    "Q-04": (REQUEST, lambda r: [r, r._replace(api_version=99, correlation_id=0, exchange=0, connection="p", frame=HEARTBEAT_V99)]),
    "Q-05": (RESPONSE, lambda r: r._replace(frame=r.frame + b"\x00")),
    "Q-06": (RESPONSE, lambda r: r._replace(correlation_id=r.correlation_id + 1)),
    "Q-07": (RESPONSE, lambda r: r._replace(cut_bytes=3, frame=r.frame[:-3])),
    "Q-09": (RESPONSE, lambda r: [r, r]),
    "Q-10": (REQUEST, lambda r: (r, {"timestamp_ms": r.at_us // 1000 + 60_000})),
}


def test_the_suite_has_every_rule_once_and_every_rule_has_a_test_here():
    rules = [each.rule.id for each in load().expectations]
    assert len(rules) == len(set(rules)) == 12
    assert {*FAULTS, "Q-02", "Q-08", "Q-11", "Q-12"} == set(rules)


def test_sound_traffic_passes_all_of_it(checked):
    assert checked(sound(Topic(), seconds=20)) == set()
    told = checked.published.results
    assert len(told) == 12
    assert all(result["success"] and result["rows"] > 2000 for _, _, result in told)
    # None of them passed because there was nothing to look at.
    assert all(result["checked"] > 900 for _, _, result in told if result["rule"] != "Q-08")
    assert checked.published.findings == []


def test_batches_cut_anywhere_pass_too(checked):
    rows = sound(Topic(), seconds=4)
    by_partition = [[row for row in rows if row[0] == partition] for partition in range(PARTITIONS)]
    # Partitions are not read in step: the second one lags behind the first.
    assert checked(by_partition[0][:150]) == set()
    assert checked(by_partition[0][150:] + by_partition[1][:7]) == set()
    assert checked(by_partition[1][7:]) == set()


@pytest.mark.parametrize("rule", sorted(FAULTS))
def test_one_fault_fails_its_expectation_and_no_other(checked, rule):
    number, change = FAULTS[rule]
    assert checked(sound(Topic(), change=at(number, change))) == {rule}
    (finding,) = checked.published.findings
    assert (finding.rule, finding.status, finding.blame, finding.count) == (rule, Status.OPEN, "capture", 1)
    assert finding.evidence
    (result,) = [told for _, _, told in checked.published.results if not told["success"]]
    assert (result["rule"], result["unexpected"], len(result["records"])) == (rule, 1, 1)


def test_a_key_that_the_frame_does_not_name_fails_q_02(checked):
    stranger = next(f"stranger-{n}" for n in count() if partition_of(f"stranger-{n}", PARTITIONS) == 0)
    rows = sound(Topic(), change=lambda _, r: r._replace(group=stranger) if r.group == "group-0" else r)
    assert checked(rows) == {"Q-02"}


def test_an_exchange_that_never_came_fails_q_08_once_its_time_is_past(checked):
    def lose(_, record):
        return None if record.group == "group-1" and record.exchange == 9 else record

    rows = sound(Topic(), seconds=20, change=lose)
    early = [row for row in rows if row[2] * 1000 < START_US + 4 * SECOND]
    assert checked(early) == set()
    assert checked(rows[len(early) :]) == {"Q-08"}
    (finding,) = checked.published.findings
    assert "9 to 9 of group-1#1" in finding.summary


def test_a_group_in_two_partitions_fails_q_11(checked):
    rows = sound(topic := Topic())
    partition, *_ = next(row for row in rows if row[3] == b"group-1")
    stray = tick(START_US + 2 * SECOND)._replace(kind=Kind.CLOSE, group="group-1", connection="c")
    assert checked([*rows, topic.append(1 - partition, stray)]) == {"Q-11"}


def test_a_group_that_moves_once_because_the_topic_gained_a_partition_is_no_finding(checked):
    moves_us = START_US + 5 * SECOND

    def later(_, record):
        return record if record.group != "group-1" or record.at_us < moves_us else None

    topic = Topic()
    rows = sound(topic, change=later)
    partition, *_ = next(row for row in rows if row[3] == b"group-1")
    moved = [
        topic.append(1 - partition, tick(at_us)._replace(kind=Kind.CLOSE, group="group-1", connection="c"))
        for at_us in range(moves_us, moves_us + 4 * SECOND, SECOND)
    ]
    assert checked([*rows, *moved]) == set()


def test_a_group_that_goes_to_and_fro_between_partitions_is_seen_each_time():
    continuity = RecordSequences()
    seen = []
    for second, partition in enumerate((0, 0, 1, 0, 0, 1, 0)):
        record = tick(START_US + second * SECOND)._replace(kind=Kind.CLOSE, group="g", partition=partition, offset=second)
        seen.append(continuity.see(record).group_in_one_partition)
    assert seen == [True, True, True, False, True, True, False]


def test_deleted_records_fail_q_12(checked):
    rows = sound(Topic(), change=lambda number, r: None if number == 80 and r.kind is Kind.TICK else r)
    last_tick = max(index for index, row in enumerate(rows) if row[3] is None and row[2] * 1000 < START_US + 3 * SECOND)
    assert checked(rows[:last_tick] + rows[last_tick + 1 :]) == {"Q-12"}


def test_a_batch_that_is_repeated_is_not_checked_twice(checked):
    rows = sound(Topic())
    checked(rows)
    told = len(checked.published.results)
    assert checked(rows) == set()
    assert len(checked.published.results) == told


def test_a_finding_is_counted_while_it_lasts_and_resolved_when_it_has_passed_for_a_while(checked, config):
    topic = Topic()
    fault = at(REQUEST, lambda r: r._replace(frame=r.frame + b"\x00"))
    checked(sound(topic, change=fault))
    (opened,) = checked.published.findings
    later = sound(topic, start_us=START_US + 30 * SECOND, change=lambda _, r: _fresh(r, "b"))
    checked(later)
    assert checked.published.findings == [opened]
    quiet = START_US + 30 * SECOND + config.model.quiet_ms * 1000
    checked(sound(topic, start_us=quiet, change=lambda _, r: _fresh(r, "c")))
    *_, resolved = checked.published.findings
    assert (resolved.id, resolved.status) == (opened.id, Status.RESOLVED)


def _fresh(record, suffix):
    """The same on another connection: its exchange numbers begin again."""
    return record._replace(connection=f"{record.connection}{suffix}") if record.connection else record


def test_a_restart_takes_an_open_finding_up(config):
    fault = at(REQUEST, lambda r: r._replace(frame=r.frame + b"\x00"))
    first, second = Published(), Published()
    Checker(config, published=(), publisher=first).check(sound(Topic(), change=fault), 0)
    again = Checker(config, published=[first.findings[0].as_json()], publisher=second)
    again.check(sound(Topic(), start_us=START_US + 10 * SECOND, change=fault), 1)
    assert [(finding.id, finding.status, finding.count) for finding in second.findings] == [
        (first.findings[0].id, Status.UPDATE, 2)
    ]


def test_a_finding_whose_expectation_was_removed_is_resolved(config, tmp_path):
    first, second = Published(), Published()
    fault = at(REQUEST, lambda r: r._replace(frame=r.frame + b"\x00"))
    Checker(config, published=(), publisher=first).check(sound(Topic(), change=fault), 0)
    suite = json.loads(DEFAULT_SUITE.read_text())
    suite["expectations"] = [each for each in suite["expectations"] if each["meta"]["rule"] != "Q-05"]
    (tmp_path / "suite.json").write_text(json.dumps(suite))
    shorter = config.model_copy(update={"quality": config.quality.model_copy(update={"suite": tmp_path / "suite.json"})})
    Checker(shorter, published=[first.findings[0].as_json()], publisher=second).check(sound(Topic()), 0)
    (resolved,) = second.findings
    assert (resolved.status, resolved.observed) == (Status.RESOLVED, "no longer checked")


# ---------------------------------------------------------------------------------------------------- the suite as a file


def own_suite(tmp_path, *expectations, name="own"):
    file = tmp_path / "own.json"
    file.write_text(json.dumps({"name": name, "expectations": list(expectations)}))
    return file


def test_an_operator_adds_an_expectation_without_more_than_great_expectations_asks_for(config, tmp_path):
    file = own_suite(
        tmp_path, {"type": "expect_column_values_to_match_regex", "kwargs": {"column": "key", "regex": "^group-[0-4]$"}}
    )
    published = Published()
    own = config.model_copy(update={"quality": config.quality.model_copy(update={"suite": file})})
    Checker(own, published=(), publisher=published).check(sound(Topic()), 0)
    (finding,) = published.findings
    assert (finding.rule, finding.severity) == ("Q-99", "error")
    assert "column=key regex=^group-[0-4]$" in finding.expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is not JSON"),
        ("[]", "is not a suite"),
        ('{"name": "x", "expectations": []}', "has no expectations; to switch the checks off, set quality.enabled = false"),
        ('{"name": "x", "expectations": [{"kwargs": {}}]}', "expectation 1 has no type"),
        (
            '{"name": "x", "expectations": [{"type": "t", "kwargs": {"column": "colour"}}]}',
            "expectation 1 asks for column 'colour'",
        ),
        ('{"name": "x", "expectations": [{"type": "t", "severity": "awful"}]}', "expectation 1 has severity 'awful'"),
    ],
)
def test_a_suite_that_cannot_be_used_is_refused_in_a_sentence(tmp_path, text, words):
    file = tmp_path / "own.json"
    file.write_text(text)
    with pytest.raises(ConfigError) as refused:
        load(file)
    assert words in str(refused.value)
    assert str(file) in str(refused.value)


def test_an_expectation_that_great_expectations_does_not_know_is_refused(config, tmp_path):
    file = own_suite(tmp_path, {"type": "expect_miracles", "kwargs": {}})
    own = config.model_copy(update={"quality": config.quality.model_copy(update={"suite": file})})
    with pytest.raises(ConfigError, match="Great Expectations does not take expect_miracles"):
        Checker(own, published=(), publisher=Published())


def test_an_expectation_that_cannot_be_checked_fails_and_says_why(config, tmp_path):
    file = own_suite(tmp_path, {"type": "expect_column_values_to_be_between", "kwargs": {"column": "key", "min_value": 1}})
    published = Published()
    own = config.model_copy(update={"quality": config.quality.model_copy(update={"suite": file})})
    Checker(own, published=(), publisher=published).check(sound(Topic()), 0)
    (finding,) = published.findings
    assert "could not be checked" in finding.summary
    assert finding.observed


# ---------------------------------------------------------------------------------------------------- pages and memory


def test_pages_are_written_and_their_number_is_bounded(config, tmp_path):
    quality = config.quality.model_copy(update={"docs_every_s": 0, "docs_history": 3})
    checker = Checker(config.model_copy(update={"quality": quality}), published=(), publisher=Published())
    topic = Topic()
    for batch in range(6):
        start_us = START_US + batch * 10 * SECOND
        checker.check(sound(topic, start_us=start_us, seconds=1, change=lambda _, r, batch=batch: _fresh(r, str(batch))), batch)
    pages = [str(page.relative_to(tmp_path / "docs")) for page in (tmp_path / "docs").rglob("*.html")]
    assert "index.html" in pages
    assert "expectations/mirror.html" in pages
    assert sorted(page.split("/")[2] for page in pages if page.startswith("validations")) == ["batch 3", "batch 4", "batch 5"]


def test_a_restart_keeps_the_history_and_the_first_page_needs_no_internet(config, tmp_path):
    quality = config.quality.model_copy(update={"docs_every_s": 0, "docs_history": 2})
    again = config.model_copy(update={"quality": quality})
    for batch, change in enumerate((None, at(REQUEST, lambda r: r._replace(frame=r.frame + b"\x00")))):
        Checker(again, published=(), publisher=Published()).check(sound(Topic(), seconds=1, change=change), batch)
    first_page = (tmp_path / "docs" / "index.html").read_text()
    assert "http" not in first_page
    assert "<script" not in first_page
    _, _, table = first_page.partition("<table>")
    assert table.index("batch 1") < table.index("failed") < table.index("batch 0") < table.index("passed")
    for page in re.findall(r'href="(validations/[^"]+)"', first_page):
        assert (tmp_path / "docs" / unquote(page)).is_file()


def test_what_is_remembered_is_bounded_and_the_youngest_stay():
    remembered = Remembered(list, most=3)
    for name in ("a", "b", "c", "a", "d"):
        remembered.touch(name)
    assert list(remembered) == ["c", "a", "d"]


def test_a_connection_first_seen_in_mid_life_is_not_blamed_for_what_came_before():
    topic = Topic()
    rows = sound(topic, seconds=20)
    frame = to_frame(Describer().describe(rows[500:]))
    assert not (frame["request_seen"] == False).any()  # noqa: E712 - None is not False
    assert frame["missing_exchanges"].dropna().sum() == 0
    assert tuple(frame.columns) == COLUMNS


def test_a_connection_seen_from_its_opening_must_begin_at_zero():
    topic = Topic()
    opened = tick(START_US)._replace(kind=Kind.OPEN, group="group-0", connection="group-0#1")
    rows = sound(topic, seconds=20, change=lambda _, r: None if r.group == "group-0" and r.exchange == 0 else r)
    first = [(partition_of("group-0", PARTITIONS), -1, START_US // 1000, b"group-0", b"", pack_envelope(opened))]
    frame = to_frame(Describer().describe(first + rows))
    assert frame["missing_exchanges"].dropna().sum() == 1
    assert GRACE_US < 20 * SECOND


NEWER = (
    (wire.ConsumerGroupHeartbeatRequest(group_id="orders", member_id="m"), wire.ConsumerGroupHeartbeatResponse(), 1),
    (wire.ConsumerGroupDescribeRequest(group_ids=("orders",)), wire.ConsumerGroupDescribeResponse(), 1),
    (wire.ShareGroupHeartbeatRequest(group_id="orders", member_id="m"), wire.ShareGroupHeartbeatResponse(), 1),
    (wire.ShareGroupDescribeRequest(group_ids=("orders",)), wire.ShareGroupDescribeResponse(), 1),
    (wire.StreamsGroupHeartbeatRequest(group_id="orders", member_id="m"), wire.StreamsGroupHeartbeatResponse(), 0),
    (wire.StreamsGroupDescribeRequest(group_ids=("orders",)), wire.StreamsGroupDescribeResponse(), 0),
)


@pytest.mark.parametrize(("request_", "response", "version"), NEWER, ids=lambda one: type(one).__name__)
def test_frames_of_groups_with_epochs_are_found_sound_and_those_of_another_group_are_not(request_, response, version):
    about = {"cluster": "c", "broker": "b", "connection": "1", "exchange": 0, "api_version": version, "correlation_id": 7}
    asked = wire.encode_request(request_, api_version=version, correlation_id=7, client_id="app")
    answered = wire.encode_response(response, api_version=version, correlation_id=7)
    topic = Topic()
    records = [
        MirrorRecord(-1, -1, group, kind, START_US + number, api_key=request_.API_KEY, frame=frame, **about)
        for group in ("orders", "payments")
        for number, (kind, frame) in enumerate(((Kind.REQUEST, asked), (Kind.RESPONSE, answered)))
    ]
    rows = Describer().describe([topic.append(number // 2, record) for number, record in enumerate(records)])
    assert {row.api_key for row in rows} <= set(MIRRORED_API_KEYS)
    assert {(row.version_known, row.decode_error, row.header_agrees, row.cut_bytes) for row in rows} == {(True, None, True, 0)}
    named = {(row.key, row.kind): row.key_in_frame for row in rows}
    assert (named["orders", "req"], named["payments", "req"]) == (True, False)


def test_names_of_topics_and_records_of_a_newer_kind_are_no_frames():
    topic = Topic()
    facts = topics(START_US, {"AAAAAAAAAAAAAAAAAAAAAA": "orders"}, cluster="c")
    rows = Describer().describe([topic.append(0, facts), topic.append(0, facts._replace(kind=Kind.OTHER))])
    assert [(row.kind, row.envelope_error, row.api_key, row.missing_offsets) for row in rows] == [
        ("topics", None, None, 0),
        ("other", None, None, 0),
    ]

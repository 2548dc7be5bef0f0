"""What is to be told to a receiver and when, with findings as the model publishes them."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from coordinator_model.finding import Severity
from streaming.config.maintenance import Maintenance
from streaming.config.notify import FindingFilter, Patience
from streaming.notify.notification import OWN, Delivered, Event, ObservedFinding
from streaming.notify.outbox import Outbox, Policy
from tests.streaming.notify.said import observed, of_rule, worsening

CRITICAL = of_rule("violation-stale-generation-accepted-4.3.1", "G-02")
ERROR = of_rule("violation-zombie-generation-4.1.2", "G-01")
WORSENING = worsening()
HOUR_S = 3600.0


def policy(**other: Any) -> Policy:
    chosen = FindingFilter(**{key: other.pop(key) for key in list(other) if key in FindingFilter.model_fields})
    return Policy(**{"filter": chosen, "patience": Patience(), **other})


def outbox(delivered=(), positions=(), ends=(), **other) -> Outbox:
    box = Outbox(policy(**other), dict(delivered), dict(positions))
    box.begin(dict(ends) or {0: 0})
    return box


def ripe(box: Outbox, now_s: float):
    return [due.notice for due in box.due(now_s) if due.due_s <= now_s]


def events(box: Outbox, now_s: float) -> list[str]:
    return [notice.event.value for notice in ripe(box, now_s)]


def tell_all(box: Outbox, now_s: float) -> dict[str, Delivered]:
    return box.accept(ripe(box, now_s), now_s)


def test_a_finding_is_told_once_and_so_is_its_end():
    box = outbox()
    opened, update, resolved = (observed(state, offset=number) for number, state in enumerate(CRITICAL))
    box.observe(opened)
    assert events(box, opened.written_s) == ["open"]
    tell_all(box, opened.written_s)
    box.observe(update)
    assert events(box, update.written_s) == []
    box.observe(resolved)
    assert events(box, resolved.written_s) == ["resolved"]
    tell_all(box, resolved.written_s)
    assert events(box, resolved.written_s + HOUR_S) == []


def test_what_is_not_critical_waits_for_whether_it_lasts():
    box = outbox()
    opened = observed(ERROR[0])
    box.observe(opened)
    assert events(box, opened.written_s + 4.9) == []
    assert box.due(opened.written_s)[0].due_s == opened.written_s + 5
    assert events(box, opened.written_s + 5) == ["open"]


def test_an_update_does_not_begin_the_wait_anew():
    box = outbox()
    opened, update = observed(ERROR[0]), observed(ERROR[1])
    box.observe(opened)
    box.observe(update)
    assert events(box, opened.written_s + 5) == ["open"]


def blink(state: dict[str, Any], lasted_s: float) -> dict[str, Any]:
    """The end of a finding, moved to ``lasted_s`` after its beginning."""
    opened = dt.datetime.fromisoformat(state["opened_at"])
    ended = (opened + dt.timedelta(seconds=lasted_s)).isoformat()
    return {**state, "status": "resolved", "updated_at": state["opened_at"], "resolved_at": ended}


@pytest.mark.parametrize("lasted_s", [0.0, 4.9])
def test_a_blink_is_never_told(lasted_s):
    box = outbox()
    box.observe(observed(ERROR[0]))
    over = observed(blink(ERROR[-1], lasted_s))
    box.observe(over)
    assert events(box, over.written_s + HOUR_S) == []


def test_a_critical_one_is_told_even_if_it_was_over_at_once():
    box = outbox()
    box.observe(observed(CRITICAL[0]))
    over = observed(blink(CRITICAL[-1], 0.0), offset=1)
    box.observe(over)
    assert events(box, over.written_s) == ["over"]


def test_what_lasted_while_it_could_not_be_told_is_told_as_over():
    box = outbox()
    for number, state in enumerate(ERROR):
        box.observe(observed(state, offset=number))
    assert events(box, observed(ERROR[-1]).written_s + HOUR_S) == ["over"]


def test_a_receiver_that_keeps_alerts_is_told_of_what_is_over_as_open_first():
    box = outbox(keep_s=60.0)
    over = observed(ERROR[-1], offset=1)
    box.observe(over)
    assert events(box, over.written_s) == ["open"]
    tell_all(box, over.written_s)
    assert events(box, over.written_s + 59) == []
    assert events(box, over.written_s + 60) == ["resolved"]


def test_a_change_of_severity_is_news():
    box = outbox()
    opened, worse, resolved = (observed(state, offset=number) for number, state in enumerate(WORSENING))
    box.observe(opened)
    tell_all(box, opened.written_s + 5)
    box.observe(worse)
    (notice,) = ripe(box, worse.written_s)
    assert (notice.event, notice.last_sent["severity"], notice.severity) == (Event.SEVERITY, "warning", Severity.ERROR)
    tell_all(box, worse.written_s)
    box.observe(resolved)
    assert events(box, resolved.written_s) == ["resolved"]


def test_what_was_too_mild_is_told_when_it_got_worse():
    box = outbox(minimum_severity="error")
    opened, worse, _ = map(observed, WORSENING)
    box.observe(opened)
    assert events(box, opened.written_s + HOUR_S) == []
    box.observe(worse)
    assert events(box, worse.written_s + 5) == ["open"]


@pytest.mark.parametrize(
    ("wants", "is_told"),
    [
        ({}, True),
        ({"minimum_severity": "critical"}, False),
        ({"allow_groups": ["crime-*"]}, True),
        ({"allow_groups": ["other"]}, False),
        ({"deny_groups": ["/zombie/"]}, False),
        ({"deny_rules": ["G-01"]}, False),
        ({"deny_rules": ["G-02"]}, True),
    ],
)
def test_a_receiver_is_told_what_it_wants(wants, is_told):
    box = outbox(**wants)
    box.observe(observed(ERROR[0]))
    assert bool(events(box, observed(ERROR[0]).written_s + 5)) is is_told


def test_choosing_groups_does_not_blind_to_the_mirror_as_a_whole():
    box = outbox(allow_groups=["orders"], deny_groups=["*"])
    box.observe(observed({**ERROR[0], "group": ""}))
    assert events(box, observed(ERROR[0]).written_s + 5) == ["open"]


def test_what_a_receiver_wants_no_more_is_over_for_it():
    box = outbox(delivered={ERROR[0]["id"]: delivered(ERROR[0])}, deny_groups=["*"])
    box.observe(observed(ERROR[1]))
    (notice,) = ripe(box, observed(ERROR[1]).written_s)
    assert notice.event is Event.RESOLVED
    assert "no longer" in notice.reason


def delivered(state: dict[str, Any], **other: Any) -> Delivered:
    at_s = observed(state).written_s
    return structs.replace(Delivered(state, at_s, at_s, is_over=False, partition=0, offset=0), **other)


def test_a_receiver_may_want_no_ends():
    box = outbox(sends_resolved=False)
    box.observe(observed(CRITICAL[0]))
    tell_all(box, observed(CRITICAL[0]).written_s)
    box.observe(observed(CRITICAL[-1], offset=1))
    later_s = observed(CRITICAL[-1]).written_s + HOUR_S
    assert events(box, later_s) == events(box, later_s) == []
    box.positions()
    assert box.settled(later_s + HOUR_S) == [CRITICAL[0]["id"]]


# --- maintenance ------------------------------------------------------------------------------------------------------


def window(state: dict[str, Any], minutes: int = 10, **other: Any) -> Maintenance:
    """One that begins just before a finding."""
    opened = dt.datetime.fromisoformat(state["opened_at"])
    return Maintenance(starts=opened - dt.timedelta(seconds=1), ends=opened + dt.timedelta(minutes=minutes), **other)


def test_what_opens_in_maintenance_is_told_at_its_end():
    box = outbox(windows=[window(CRITICAL[0])])
    opened = observed(CRITICAL[0])
    box.observe(opened)
    assert events(box, opened.written_s + 599) == []
    assert events(box, opened.written_s + 600) == ["open"]


def test_what_opens_and_resolves_in_maintenance_is_never_told():
    box = outbox(windows=[window(CRITICAL[0])])
    for number, state in enumerate(CRITICAL):
        box.observe(observed(state, offset=number))
    assert events(box, observed(CRITICAL[0]).written_s + HOUR_S) == []


def test_what_opens_in_maintenance_and_lasts_beyond_it_is_told_even_if_late():
    box = outbox(windows=[window(CRITICAL[0], minutes=1)])
    for number, state in enumerate(CRITICAL):
        box.observe(observed(state, offset=number))
    assert events(box, observed(CRITICAL[0]).written_s + HOUR_S) == ["over"]


def test_what_was_open_before_maintenance_is_followed_through_it():
    box = outbox(delivered={CRITICAL[0]["id"]: delivered(CRITICAL[0])}, windows=[window(CRITICAL[0])])
    box.observe(observed(CRITICAL[-1], offset=1))
    assert events(box, observed(CRITICAL[-1]).written_s) == ["resolved"]


def test_what_gets_worse_in_maintenance_is_told_so_at_its_end():
    box = outbox(windows=[window({**WORSENING[1], "opened_at": WORSENING[1]["updated_at"]})])
    opened, worse, _ = map(observed, WORSENING)
    box.observe(opened)
    tell_all(box, opened.written_s + 5)
    box.observe(worse)
    assert events(box, worse.written_s + 599) == []
    assert events(box, worse.written_s + 600) == ["severity"]


def test_maintenance_of_groups_does_not_hide_that_the_mirror_is_silent():
    silent = {**CRITICAL[0], "group": ""}
    for mirror, is_held in ((False, False), (True, True)):
        box = outbox(windows=[window(silent, mirror=mirror)])
        box.observe(observed(silent))
        assert (events(box, observed(silent).written_s) == []) is is_held


# --- restarts ---------------------------------------------------------------------------------------------------------


def test_on_the_first_start_what_is_open_is_told_and_what_is_over_is_old_news():
    box = outbox(ends={0: 10})
    box.observe(observed(ERROR[-1], offset=3))
    box.observe(observed(CRITICAL[0], offset=4))
    assert [notice.finding["rule"] for notice in ripe(box, observed(ERROR[-1]).written_s + HOUR_S)] == ["G-02"]


def test_what_came_and_went_while_nobody_was_there_is_told():
    box = outbox(positions={0: 3}, ends={0: 10})
    box.observe(observed(ERROR[-1], offset=3))
    assert events(box, observed(ERROR[-1]).written_s) == ["over"]


def test_what_was_told_as_open_is_resolved_however_old_the_record_is():
    box = outbox(delivered={ERROR[0]["id"]: delivered(ERROR[0])}, positions={0: 9}, ends={0: 10})
    box.observe(observed(ERROR[-1], offset=3))
    assert events(box, observed(ERROR[-1]).written_s) == ["resolved"]


def test_what_was_told_and_is_in_the_topic_no_more_is_over():
    box = outbox(delivered={ERROR[0]["id"]: delivered(ERROR[0])})
    assert events(box, observed(ERROR[0]).written_s) == ["resolved"]


def test_the_position_does_not_pass_an_end_that_is_yet_to_be_told():
    box = outbox()
    box.observe(observed(ERROR[-1], offset=3))
    box.observe(observed(CRITICAL[0], offset=7))
    assert box.positions() == {0: 3}
    tell_all(box, observed(ERROR[-1]).written_s)
    box.due(0.0)
    assert box.positions() == {0: 8}


def test_a_position_behind_the_end_is_of_another_topic():
    box = outbox(positions={0: 500}, ends={0: 4})
    box.observe(observed(CRITICAL[-1], offset=4))
    assert events(box, observed(CRITICAL[-1]).written_s) == ["over"]


def test_an_end_that_was_told_is_remembered_until_repeats_are_past():
    box = outbox()
    box.observe(observed(CRITICAL[0], offset=0))
    tell_all(box, observed(CRITICAL[0]).written_s)
    box.observe(observed(CRITICAL[-1], offset=1))
    end_s = observed(CRITICAL[-1]).written_s
    remembered = tell_all(box, end_s)[CRITICAL[0]["id"]]
    assert remembered.finding == {"id": CRITICAL[0]["id"]}
    box.positions()
    assert box.settled(end_s + 60) == []
    for number, state in enumerate(CRITICAL, start=2):  # the job was killed, and writes again
        box.observe(observed(state, offset=number))
    assert events(box, end_s + 60) == []
    box.positions()
    assert box.settled(end_s + HOUR_S) == [CRITICAL[0]["id"]]


def test_an_older_state_does_not_replace_a_newer_one():
    box = outbox()
    box.observe(observed(ERROR[-1], offset=2))
    box.observe(observed(ERROR[0], offset=3))
    assert events(box, observed(ERROR[-1]).written_s + HOUR_S) == ["over"]


def test_a_finding_that_was_deleted_from_the_topic_is_over():
    box = outbox()
    box.observe(observed(CRITICAL[0]))
    tell_all(box, observed(CRITICAL[0]).written_s)
    box.gone(CRITICAL[0]["id"])
    assert events(box, observed(CRITICAL[0]).written_s) == ["resolved"]


def test_what_was_refused_is_not_offered_again_until_there_is_news_of_it():
    box = outbox()
    opened, worse, _ = (observed(state, offset=number) for number, state in enumerate(WORSENING))
    box.observe(opened)
    box.refuse(ripe(box, opened.written_s + 5), opened.written_s + 5)
    assert events(box, opened.written_s + 6) == []
    box.observe(worse)
    assert events(box, worse.written_s + 5) == ["open"]


def test_an_end_that_was_refused_counts_as_told():
    box = outbox(delivered={ERROR[0]["id"]: delivered(ERROR[0])})
    box.observe(observed(ERROR[-1], offset=1))
    end_s = observed(ERROR[-1]).written_s
    assert box.refuse(ripe(box, end_s), end_s)[ERROR[0]["id"]].is_over
    assert events(box, end_s) == []
    assert box.open() == []


# --- whatever happens ---------------------------------------------------------------------------------------------------

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("open"), st.integers(0, 3)),
        st.tuples(st.just("worse"), st.integers(0, 3)),
        st.tuples(st.just("over"), st.integers(0, 3)),
        st.tuples(st.just("again"), st.integers(0, 3)),
        st.tuples(st.just("wait"), st.sampled_from([1, 3, 20, 400])),
        st.tuples(st.just("tell"), st.just(0)),
        st.tuples(st.just("tidy"), st.just(0)),
        st.tuples(st.just("restart"), st.just(0)),
    ),
    max_size=60,
)


class World:
    """A findings topic, a delivery log that survives, a receiver that believes what it is told, and a notifier that may be killed."""

    def __init__(self) -> None:
        self.now_s = 1_700_000_000.0
        self.topic: list[ObservedFinding] = []
        self.delivery_log: dict[str, Delivered] = {}
        self.positions: dict[int, int] = {}
        self.believed: dict[str, str] = {}  #: id → severity
        self.told: list[tuple[str, str]] = []  #: id and event
        self.living: dict[int, dict[str, Any]] = {}
        self.lives = 0
        self.box = outbox()
        self.tidy()

    def publish(self, state: dict[str, Any]) -> None:
        self.topic.append(observed(state, at_s=self.now_s, offset=len(self.topic)))
        self.box.observe(self.topic[-1])

    def open(self, number: int) -> None:
        if number not in self.living:
            self.lives += 1
            moment = dt.datetime.fromtimestamp(self.now_s, dt.UTC).isoformat()
            severity = ("warning", "error", "critical", "warning")[number]
            common = {"id": f"G-01-{self.lives:016x}", "severity": severity, "opened_at": moment, "updated_at": moment}
            self.living[number] = {**ERROR[0], **common}
            self.publish(self.living[number])

    def worse(self, number: int) -> None:
        if number in self.living:
            moment = dt.datetime.fromtimestamp(self.now_s, dt.UTC).isoformat()
            self.living[number] = {**self.living[number], "status": "update", "severity": "critical", "updated_at": moment}
            self.publish(self.living[number])

    def over(self, number: int) -> None:
        if number in self.living:
            moment = dt.datetime.fromtimestamp(self.now_s, dt.UTC).isoformat()
            self.publish({**self.living.pop(number), "status": "resolved", "resolved_at": moment})

    def again(self, number: int) -> None:
        """The job was killed and writes its last records once more."""
        for record in self.topic[-1 - number :]:
            self.publish(record.finding)

    def wait(self, seconds: float) -> None:
        self.now_s += seconds

    def tell(self, _: int = 0) -> None:
        notices = ripe(self.box, self.now_s)
        for notice in notices:
            name = notice.finding["id"]
            self.told.append((name, notice.event.value))
            if notice.event is Event.OPEN:
                assert name not in self.believed
            elif notice.event is Event.SEVERITY:
                assert self.believed[name] != notice.finding["severity"]
            elif notice.event is Event.RESOLVED:
                del self.believed[name]
            if notice.is_open:
                self.believed[name] = notice.finding["severity"]
        self.delivery_log |= self.box.accept(notices, self.now_s)

    def tidy(self, _: int = 0) -> None:
        self.positions = self.box.positions()
        for name in self.box.settled(self.now_s):
            self.delivery_log.pop(name, None)

    def restart(self, _: int = 0) -> None:
        """Killed, without a chance to tidy up, and started again."""
        self.box = outbox(delivered=self.delivery_log, positions=self.positions, ends={0: len(self.topic)})
        newest = {record.id: record for record in self.topic}  # compacted
        for record in sorted(newest.values(), key=lambda record: record.offset):
            self.box.observe(record)


@given(steps=STEPS)
def test_whatever_happens_the_receiver_comes_to_know_how_things_stand_and_is_told_nothing_twice(steps):
    world = World()
    for step, number in steps:
        getattr(world, step)(number)
    world.wait(10)
    world.tell()
    assert world.believed == {state["id"]: state["severity"] for state in world.living.values()}
    for name in {name for name, _ in world.told}:
        happened = [event for told_of, event in world.told if told_of == name and event != "severity"]
        assert happened in (["open"], ["open", "resolved"], ["over"]), happened
    ends = {record.id: record for record in world.topic if record.is_over}
    for name, record in ends.items():
        patience_s = Patience().of(record.severity)
        if record.lasted_s >= patience_s:
            assert name in {told_of for told_of, _ in world.told}, "it lasted, and nobody was told"


def test_what_the_notifier_found_itself_has_no_position():
    box = outbox()
    box.observe(observed(CRITICAL[0], partition=OWN))
    tell_all(box, observed(CRITICAL[0]).written_s)
    assert box.positions() == {0: 0}


def of_partition(rule: str, number: int, at_s: float, status: str = "open") -> ObservedFinding:
    """What the model of a partition finds."""
    at = dt.datetime.fromtimestamp(at_s, dt.UTC).isoformat()
    state = {**CRITICAL[0], "id": f"{rule}-{number}", "rule": rule, "severity": "warning", "group": "", "status": status}
    over = {"resolved_at": at} if status == "resolved" else {"opened_at": at}
    return replace(observed({**state, **over, "updated_at": at}, offset=number), written_s=at_s)


def test_a_gap_that_every_partition_sees_is_sent_once_and_is_over_when_it_is_over_in_all():
    box, at_s = outbox(), observed(CRITICAL[0]).written_s
    for number in range(4):
        box.observe(of_partition("V-04", number, at_s + number / 10))
    assert [notice.finding["id"] for notice in ripe(box, at_s + 6)] == ["V-04-0"]
    tell_all(box, at_s + 6)
    for number in range(11):
        box.observe(of_partition("V-09", number, at_s + 8))
    assert events(box, at_s + 60) == []

    box.observe(of_partition("V-04", 0, at_s + 70, "resolved"))
    for number in range(11):
        box.observe(of_partition("V-09", number, at_s + 71, "resolved"))
    for number in range(1, 3):
        box.observe(of_partition("V-04", number, at_s + 72, "resolved"))
    assert events(box, at_s + 80) == []
    box.observe(of_partition("V-04", 3, at_s + 90, "resolved"))
    assert [(notice.event.value, notice.finding["id"]) for notice in ripe(box, at_s + 100)] == [("resolved", "V-04-0")]
    tell_all(box, at_s + 100)

    box.observe(of_partition("V-04", 17, at_s + 200))
    assert events(box, at_s + 206) == ["open"]


@pytest.mark.parametrize("together", [True, False])
def test_an_event_that_is_over_in_every_partition_when_it_is_read_is_sent_once(together):
    box, at_s, sent = outbox(), observed(CRITICAL[0]).written_s, []
    for number in range(2):
        over = of_partition("V-09", number, at_s + 70 + number, "resolved")
        box.observe(replace(over, opened_s=at_s + number))
        if number or not together:
            sent += events(box, at_s + 100)
            tell_all(box, at_s + 100)
    assert (sent, events(box, at_s + 110)) == (["over"], [])
    box.observe(replace(of_partition("V-09", 2, at_s + 150, "resolved"), opened_s=at_s + 90))
    assert events(box, at_s + 150) == ["over"]


def test_a_loss_is_sent_although_late_frames_were():
    box, at_s = outbox(), observed(CRITICAL[0]).written_s
    box.observe(of_partition("V-09", 0, at_s))
    tell_all(box, at_s + 6)
    box.observe(of_partition("V-04", 0, at_s + 10))
    assert [notice.finding["rule"] for notice in ripe(box, at_s + 20)] == ["V-04"]


def of_broker(rule: str, group: str, at_s: float, status: str = "open", broker: str = "10.0.0.1:9092") -> ObservedFinding:
    """What a group finds of its broker."""
    found = of_partition(rule, 0, at_s, status)
    return replace(found, finding={**found.finding, "id": f"{rule}-{group}", "group": group, "broker": broker})


def test_a_broker_that_is_away_is_sent_once_for_all_its_groups_and_is_back_when_it_is_in_all():
    box, at_s = outbox(), observed(CRITICAL[0]).written_s
    for number in range(30):
        box.observe(of_broker("C-14", f"g{number}", at_s + number / 10))
    box.observe(of_broker("T-06", "late", at_s + 2))
    box.observe(of_broker("C-14", "elsewhere", at_s + 3, broker="10.0.0.2:9092"))
    assert [notice.finding["id"] for notice in ripe(box, at_s + 10)] == ["C-14-g0", "C-14-elsewhere"]
    tell_all(box, at_s + 10)
    for number in range(29):
        box.observe(of_broker("C-14", f"g{number}", at_s + 20, "resolved"))
    box.observe(of_broker("T-06", "late", at_s + 20, "resolved"))
    assert events(box, at_s + 30) == []
    box.observe(of_broker("C-14", "g29", at_s + 40, "resolved"))
    assert [(notice.event.value, notice.finding["id"]) for notice in ripe(box, at_s + 50)] == [("resolved", "C-14-g0")]
    tell_all(box, at_s + 50)
    box.observe(of_broker("C-14", "g7", at_s + 60))
    assert events(box, at_s + 70) == ["open"]


def test_what_is_found_in_groups_is_sent_each():
    box = outbox()
    states = [{**CRITICAL[0], "id": f"V-08-{name}", "rule": "V-08", "group": name} for name in ("orders", "payments")]
    for state in states:
        box.observe(observed(state))
    assert len(ripe(box, observed(CRITICAL[0]).written_s + 10)) == 2

"""What the workers do with the rows of a lane, on Spark's own state object."""

from __future__ import annotations

import base64
import json
import random
from dataclasses import replace

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.streaming.state import GroupState
from pyspark.sql.types import Row, StructType

from coordinator_model.coordinator import Coordinator
from coordinator_model.settings import Settings
from coordinator_model.snapshots import SnapshotError
from coordinator_model.wire.record import Kind, Loss, pack_envelope, pack_loss
from streaming.engine.results import Outputs
from streaming.spark import worker as module
from streaming.spark.worker import INPUT_COLUMNS, Replay
from tests.golden import transcript
from tests.real.kills import alone, without_moments
from tests.real.traffic import Group, breach, tick

START_US = 1_700_000_000_000_000
OUTPUTS = Outputs("findings", "groups", "events", "status", "dead")


def row(offset, record, partition=0):
    key = None if record.group is None else record.group.encode()
    return (partition, offset, record.at_us // 1000, key, record.frame, pack_envelope(record))


def rows(count=40):
    group = Group("g")
    records = [*group.join(START_US), *group.sync(START_US + 5000)]
    for number in range(count):
        records += group.heartbeat(START_US + 10_000 + number * 10_000)
        if number % 10 == 3:
            records += breach(number, START_US + 12_000 + number * 10_000)
    records.append(tick(START_US + 1_000_000))
    return [row(offset, record) for offset, record in enumerate(records)]


def frames(batch, chunk=7):
    return (pd.DataFrame(batch[at : at + chunk], columns=INPUT_COLUMNS) for at in range(0, len(batch), chunk))


def state_of(value=None):
    return GroupState(
        optionalValue=None if value is None else Row(*value),
        batchProcessingTimeMs=0,
        eventTimeWatermarkMs=0,
        timeoutConf="NoTimeout",
        hasTimedOut=False,
        watermarkPresent=False,
        defined=value is not None,
        updated=False,
        removed=False,
        timeoutTimestamp=-1,
        keyAsUnsafe=b"",
        valueSchema=StructType(),
    )


def replay_of(topic="mirror", settings=None, **given):
    module._kept.clear()
    return Replay(topic=topic, outputs=OUTPUTS, model=Coordinator, settings=settings or Settings(), run_id="run", **given)


@pytest.fixture
def replay():
    return replay_of()


def run(replay, batch, committed=None):
    """One batch: what comes out by topic, and the state to commit."""
    state = state_of(committed)
    (out,) = replay((0,), frames(batch), state)
    by_topic = {}
    for topic, key, value in out.itertuples(index=False):
        by_topic.setdefault(topic, {})[key] = None if value is None else json.loads(value)
    return by_topic, state.get


def runs(replay, batches, is_lost=lambda: False):
    """One batch after the other: what comes out of each, and the state to commit; behind any of them the worker may be lost."""
    module._kept.clear()
    committed = None
    for batch in batches:
        out, committed = run(replay, batch, committed)
        yield out, committed
        if is_lost():
            module._kept.clear()


def counted(out, rule):
    return sum(finding["rule"] == rule for finding in out["findings"].values())


def ids(batches):
    return {key for out in batches for key in out.get("findings", {})}


def test_findings_groups_and_status_come_out(replay):
    out, _ = run(replay, rows())
    assert (counted(out, "M-08"), counted(out, "V-02")) == (4, 0)
    assert out["groups"]["c1/g"]["group"] == "g"
    status = out["status"]["mirror/0"]
    assert (status["records"], status["next_offset"]) == (len(rows()), len(rows()))


def test_order_within_a_batch_does_not_matter(replay):
    expected, _ = run(replay, rows())
    shuffled = rows()
    random.Random(7).shuffle(shuffled)
    module._kept.clear()
    assert ids([run(replay, shuffled)[0]]) == ids([expected])


@pytest.mark.parametrize("cuts", [(10, 20), (1, 2, 3), (50,), ()])
def test_batches_do_not_matter_nor_does_where_the_model_comes_from(replay, cuts):
    whole, _ = run(replay, rows())
    batches = [rows()[begin:end] for begin, end in zip((0, *cuts), (*cuts, None), strict=True)]
    for forget in (False, True):
        told = [out for out, _ in runs(replay, batches, lambda forget=forget: forget)]
        assert ids(told) == ids([whole])


def lives(chance):
    """Quiet groups, some that join anew, breaches, ticks and a gap, as rows; some cannot be read, one may be missing."""
    groups = [Group(f"g{number}") for number in range(8)]
    records = []
    for group in groups:
        records += [*group.join(START_US), *group.sync(START_US + 5_000)]
    for second in range(1, 40):
        at_us = START_US + second * 1_000_000
        for group in groups:
            beat_us = at_us + chance.randrange(1_000_000)
            records += group.heartbeat(beat_us)
            if chance.random() < 0.01:
                records += [*group.join(beat_us + 10_000), *group.sync(beat_us + 20_000)]
        if chance.random() < 0.1:
            records += breach(second, at_us)
        records.append(tick(at_us))
    records.sort(key=lambda record: record.at_us)
    if chance.random() < 0.5:
        lost = pack_loss(Loss(3, 300, START_US, START_US))
        at = chance.randrange(len(records))
        records.insert(at, tick(records[at].at_us)._replace(kind=Kind.GAP, frame=lost))
    told = [row(offset, record) for offset, record in enumerate(records)]
    for place in chance.sample(range(len(told)), 3):
        told[place] = (*told[place][:5], chance.choice([None, b"", told[place][5][:-4], told[place][5] + b"\x80"]))
    if chance.random() < 0.5:
        del told[chance.randrange(len(told))]
    return told


def cut_up(told, chance):
    """Batches of any size, some of which repeat the end of the one before."""
    end = 0
    while end < len(told):
        begin = max(0, end - chance.choice([0, 0, 0, 2]))
        end = begin + chance.choice([5, 20, 60, 200])
        yield told[begin:end]


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=2 * settings().max_examples // 5)
def test_a_model_that_is_lost_at_any_time_is_had_again_from_its_snapshot(seed):
    chance = random.Random(seed)
    batches = list(cut_up(lives(chance), chance))
    outcomes = []
    for share in (0.0, 0.3):
        findings, groups = {}, {}
        outs = list(runs(replay_of(partitions=4), batches, lambda share=share: chance.random() < share))
        for out, _ in outs:
            findings |= out.get("findings", {})
            groups |= out.get("groups", {})
        outcomes.append((findings, without_moments(groups), alone(restored(outs[-1][1]))))
    assert outcomes[0] == outcomes[1]


def restored(committed):
    (snapshot,) = module.unpacked(committed[0]).values()
    return Coordinator.restore(snapshot, settings=Settings())


class Clock:
    def __init__(self, monkeypatch):
        self.now_s = 100.0
        monkeypatch.setattr(module.time, "monotonic", lambda: self.now_s)


def test_events_come_once_and_in_order_wherever_the_worker_is_lost():
    """The same as in replay, however the records are cut into batches."""
    records = transcript.read("violation-subscription-ping-pong-3.9.2")
    batch = [row(record.offset, record) for record in records]
    replay = replay_of("golden", transcript.SETTINGS)
    told, committed = [], None
    for begin in range(0, len(batch), 7):
        module._kept.clear()  # the worker is lost behind each batch
        state = state_of(committed)
        (out,) = replay((0,), frames(batch[begin : begin + 7]), state)
        committed = state.get
        told += [(key, json.loads(value)) for topic, key, value in out.itertuples(index=False) if topic == "events"]
    expected = [event.as_json() for event in transcript.events_of(records)]
    assert told == [(f"{event['cluster']}/{event['group']}", event) for event in expected]


def test_a_status_is_written_once_a_second_and_only_a_sign_of_life_where_nothing_changes(replay, monkeypatch):
    clock, told = Clock(monkeypatch), []
    module._kept.clear()
    committed, offset = None, 0
    for quarter in range(4 * 30):
        clock.now_s += 0.25
        at_us = START_US + quarter * 250_000
        records = [*Group("g").heartbeat(at_us)] if quarter < 40 else [tick(at_us)]
        batch = [row(offset + number, record) for number, record in enumerate(records)]
        offset += len(batch)
        out, committed = run(replay, batch, committed)
        told += [(clock.now_s - 100, status["next_offset"]) for status in out.get("status", {}).values()]
    times = [at_s for at_s, _ in told]
    assert times == [*(0.25 + second for second in range(11)), 20.25]
    assert [next_offset for _, next_offset in told][:2] == [2, 10]


def test_a_batch_that_was_repeated_changes_nothing(replay):
    """The worker had finished; the batch was not committed; the retry finds a model that is ahead of the state."""
    _, committed = run(replay, rows()[:50])
    second, _ = run(replay, rows()[50:], committed)
    again, kept = run(replay, rows()[50:], committed)
    assert again["findings"] == second["findings"]
    assert restored(kept).record_counts["repeated records"] == 0


def test_a_kept_model_is_used_only_if_the_committed_state_is_its_snapshot(replay, monkeypatch):
    restores = []
    real = Coordinator.restore
    monkeypatch.setattr(Coordinator, "restore", classmethod(lambda cls, blob, **kw: restores.append(1) or real(blob, **kw)))
    _, committed = run(replay, rows()[:20])
    _, committed = run(replay, rows()[20:40], committed)
    assert restores == []
    out, _ = run(replay, rows()[40:60], (bytearray(module.packed({0: another_model().snapshot()})),))
    assert restores == [1]
    assert out["status"]["mirror/0"]["counters"]["missing records"] == 39


def test_each_partition_of_a_lane_has_its_model_also_one_without_rows_in_a_batch(replay):
    first, second = ([(partition, *rest) for _, *rest in rows()] for partition in (1, 3))
    mixed = [each for pair in zip(first[:30], second[:30], strict=True) for each in pair]
    out, committed = run(replay, mixed)
    assert {key: status["next_offset"] for key, status in out["status"].items()} == {"mirror/1": 30, "mirror/3": 30}
    out, committed = run(replay_of(), first[30:], committed)
    assert {key: status["next_offset"] for key, status in out["status"].items()} == {"mirror/1": len(first)}
    out, committed = run(replay_of(), second[30:], committed)
    assert {key: status["next_offset"] for key, status in out["status"].items()} == {"mirror/3": len(second)}
    snapshots = module.unpacked(committed[0])
    models = {partition: Coordinator.restore(blob, settings=Settings()) for partition, blob in snapshots.items()}
    assert {partition: (model.partition, model.next_offset) for partition, model in models.items()} == {
        1: (1, len(first)),
        3: (3, len(second)),
    }


def test_the_state_is_ascii_which_spark_hands_over_fast(replay):
    _, (state,) = run(replay, rows())
    assert state.isascii()


@pytest.mark.parametrize("state", [b"", b"A", b"neither", b"bmVpdGhlcg==", b"\x80", module.packed({0: b"whole"})[:-8]])
def test_a_state_that_holds_no_snapshots_is_called_so(replay, state):
    with pytest.raises(SnapshotError, match="no state of a lane"):
        run(replay, rows()[:20], (bytearray(state),))


def another_model():
    """One that has read a single record."""
    model = Coordinator(topic="mirror", partition=0)
    model.receive(tick(START_US)._replace(partition=0, offset=0))
    return model


def test_a_failure_half_way_leaves_no_model_behind(replay, monkeypatch):
    _, committed = run(replay, rows()[:20])
    monkeypatch.setattr(Coordinator, "snapshot", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run(replay, rows()[20:40], committed)
    assert module._kept == {}


def test_models_of_an_earlier_run_are_forgotten(replay):
    run(replay, rows()[:20])
    run(replace(replay, run_id="next run"), rows()[:20])
    assert [run_id for run_id, _ in module._kept] == ["next run"]


@pytest.mark.parametrize(
    ("key", "value", "envelope"),
    [(b"g", b"junk", None), (b"g", None, b"\xc1"), (b"\xff", b"junk", b"\x80"), (None, None, None)],
)
def test_what_cannot_be_read_is_set_aside_with_its_bytes_and_the_rest_goes_on(replay, key, value, envelope):
    batch = rows()
    poisoned = [*batch[:30], (0, 30, batch[29][2], key, value, envelope), *((0, at + 1, *rest) for _, at, *rest in batch[30:])]
    out, _ = run(replay, poisoned)
    letter = out["dead"]["mirror/0/30"]
    assert letter["offset"] == 30
    assert letter["reason"]
    for name, held in (("key", key), ("value", value), ("mirror", envelope)):
        assert letter[name] == (None if held is None else base64.b64encode(held).decode())
    assert (counted(out, "M-08"), counted(out, "V-02")) == (4, 1)
    assert out["status"]["mirror/0"]["counters"]["unreadable records"] == 1


def test_a_frame_that_does_not_decode_is_set_aside_once_with_its_bytes(replay):
    batch = rows()
    batch[30] = (*batch[30][:4], b"\xff\xff", batch[30][5])
    out, committed = run(replay, batch)
    letter = out["dead"]["mirror/0/30"]
    assert letter["value"] == base64.b64encode(b"\xff\xff").decode()
    assert letter["mirror"] == base64.b64encode(batch[30][5]).decode()
    assert letter["reason"] in next(finding["summary"] for finding in out["findings"].values() if finding["rule"] == "V-02")
    assert out["status"]["mirror/0"]["counters"]["undecodable frames"] == 1
    assert out["groups"]["c1/g"]["learning"] == "a frame could not be read"
    again, _ = run(replay, batch, committed)
    assert "dead" not in again, "a record that is read again is not set aside again"


class Stumbling(Coordinator):
    """A model with a bug that one record brings out."""

    def _frame(self, record, found):
        if record.offset == 30:
            raise IndexError("a bug")
        super()._frame(record, found)


def test_a_record_that_makes_the_model_raise_is_set_aside_too(replay):
    out, _ = run(replace(replay, model=Stumbling), rows())
    assert out["dead"]["mirror/0/30"]["reason"].startswith("the model raised IndexError: a bug in line ")
    assert counted(out, "V-02") == 1
    assert out["status"]["mirror/0"]["next_offset"] == len(rows())

"""How fast a group commits, as its view has it."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator_model.groups.committed_offsets import POSITIONS_KEPT
from coordinator_model.groups.pace import STEP_S, STEPS_KEPT
from tests.coordinator_model.classic import settled
from tests.coordinator_model.conversation import Client, Conversation
from tests.coordinator_model.epoch_groups import alone
from tests.coordinator_model.epochs import Epochs, foo
from tests.coordinator_model.restored import difference
from tests.coordinator_model.rules.offsets import transactional

PER_S = 10


def works(talk: Conversation, clients: list[Client], seconds: int, offset: int, per_s: int = PER_S) -> int:
    """Members heartbeat, and the first one commits every 5 s; return how far it got."""
    for _ in range(seconds // 5):
        talk.wait(5_000)
        offset += 5 * per_s
        talk.commit_offsets(clients[0], {0: offset})
        for client in clients:
            talk.heartbeat(client)
    return offset


def stands(talk: Conversation, clients: list[Client], seconds: int) -> None:
    """Members heartbeat, and commit nothing."""
    for _ in range(seconds // 5):
        talk.wait(5_000)
        for client in clients:
            talk.heartbeat(client)


def progress(talk: Conversation) -> Any:
    return talk.group_json()["progress"]


def published(talk: Conversation) -> list[Any]:
    """The views since the last call."""
    return [view.content for view in talk.model.changed_groups()]


def test_rates_are_null_until_a_whole_step_shows_them(talk: Conversation) -> None:
    clients = settled(talk)
    assert progress(talk) is None
    offset = works(talk, clients, 60, 0)
    assert (progress(talk)["records_per_s"], progress(talk)["usual_records_per_s"], progress(talk)["records"]) == (None, None, [])
    works(talk, clients, 2 * STEP_S, offset)
    assert (progress(talk)["records_per_s"], progress(talk)["usual_records_per_s"]) == (PER_S, None)


def test_pace_now_and_usual_and_the_line_of_the_last_hour(talk: Conversation) -> None:
    clients = settled(talk)
    offset = works(talk, clients, 3_900, 1_000)
    offset = works(talk, clients, 2 * STEP_S, offset, per_s=2)
    shown = progress(talk)
    assert (shown["records_per_s"], shown["usual_records_per_s"], shown["step_s"]) == (2, PER_S, STEP_S)
    assert len(shown["records"]) == STEPS_KEPT - 2 == 3_600 / STEP_S
    assert shown["records"][0] == PER_S * STEP_S
    assert shown["records"][-1] == 2 * STEP_S
    assert difference(talk.records[-200:]) is None


def test_a_group_that_stops_is_published_with_a_pace_of_zero_and_its_last_commit(talk: Conversation) -> None:
    clients = settled(talk)
    works(talk, clients, 8 * STEP_S, 0)
    last = progress(talk)["last_commit_at"]
    published(talk)
    stands(talk, clients, 3 * STEP_S)
    shown = [view["progress"] for view in published(talk)]
    assert len(shown) == 1
    assert (shown[0]["records_per_s"], shown[0]["usual_records_per_s"]) == (0, PER_S)
    assert shown[0]["last_commit_at"] == last


def test_each_step_publishes_the_group_once_and_an_hour_without_commits_none(talk: Conversation) -> None:
    clients = settled(talk)
    offset = works(talk, clients, 2 * STEP_S, 0)
    published(talk)
    views = 0
    for _ in range(10):
        offset = works(talk, clients, STEP_S, offset)
        views += len(published(talk))
    assert views == 10
    stands(talk, clients, 3_600 + 4 * STEP_S)
    published(talk)
    stands(talk, clients, 2 * STEP_S)
    assert not published(talk)


def test_an_empty_group_is_published_with_a_pace_of_zero(talk: Conversation) -> None:
    clients = settled(talk)
    works(talk, clients, 3 * STEP_S, 0)
    for client in clients:
        talk.leave(client)
    talk.wait(2 * STEP_S * 1_000)
    talk.tick()
    assert [view["progress"]["records_per_s"] for view in published(talk)] == [0]


def test_what_a_tool_sets_and_jumps_are_no_progress(talk: Conversation) -> None:
    clients = settled(talk)
    offset = works(talk, clients, 2 * STEP_S, 0)
    talk.commit_offsets(clients[0], {0: offset + 5_000_000_000})
    for client in clients:
        talk.leave(client)
    tool = talk.client("tool")
    talk.commit_offsets(tool, {0: offset + 5_000_090_000}, member_id="")
    talk.wait(2 * STEP_S * 1_000)
    assert 0 < max(progress(talk)["records"]) <= PER_S * STEP_S


def test_the_pace_begins_anew_where_frames_are_missing(talk: Conversation) -> None:
    clients = settled(talk)
    offset = works(talk, clients, 4 * STEP_S, 0)
    assert len(progress(talk)["records"]) == 3
    talk.gap()
    assert progress(talk) is None
    works(talk, clients, STEP_S, offset)
    assert progress(talk)["records"] == []


def test_transactions_and_more_partitions_than_are_kept_show_no_pace(talk: Conversation) -> None:
    clients = settled(talk)
    transactional(talk, clients[0])
    assert progress(talk) is None
    talk.commit_offsets(clients[0], dict.fromkeys(range(POSITIONS_KEPT - 1), 5))
    assert progress(talk) is not None
    talk.commit_offsets(clients[0], {POSITIONS_KEPT: 5})
    assert progress(talk) is None


def test_what_a_group_keeps_of_an_hour_is_bounded(talk: Conversation) -> None:
    clients = settled(talk)
    offset = works(talk, clients, 3_600, 0)
    before = len(talk.model.snapshot())
    works(talk, clients, 3_600, offset)
    assert len(talk.model.snapshot()) - before < 200


def test_a_group_with_epochs_has_a_pace_too(talk: Epochs) -> None:
    a = alone(talk, 1, held=foo(0))
    for turn in range(3 * STEP_S // 5):
        talk.wait(4_980)
        talk.beats(a)
        talk.commit_offsets(a, {0: 5 * PER_S * turn}, generation_id_or_member_epoch=1)
    talk.tick()
    assert progress(talk)["records_per_s"] == pytest.approx(PER_S, rel=0.05)

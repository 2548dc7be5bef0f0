"""The timeline of a replay: made of events, at their own times, and what it says of members that joined, left, or were only seen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from coordinator_model.finding import Status
from coordinator_model.rules.observation import V_01
from coordinator_model.wire.record import Kind
from coordinator_model.wording import iso_utc
from streaming.replay.timeline import HistoryLine, Timeline
from tests.coordinator_model.classic import settled
from tests.coordinator_model.conversation import Conversation
from tests.coordinator_model.epochs import Epochs, foo


class Told:
    """A conversation whose timeline is read whenever the test wants."""

    def __init__(self, talk: Conversation) -> None:
        self.talk = talk
        self._lines: list[HistoryLine] = []
        self.timeline = Timeline(self._lines.append)

    def lines(self) -> list[HistoryLine]:
        """What is new since the last look."""
        for event in self.talk.model.drain_events():
            self.timeline.event(event)
        lines = list(self._lines)
        self._lines.clear()
        return lines

    def look(self) -> list[str]:
        return [line.text.plain for line in self.lines()]


@pytest.fixture
def told() -> Told:
    return Told(Conversation())


def test_each_line_has_the_time_of_its_event_however_close_events_are(told: Told) -> None:
    settled(told.talk)
    lines = told.lines()
    records = told.talk.records
    asked = [record.at_us for record in records if record.api_key == 11 and record.kind is Kind.REQUEST]
    served = [record.at_us for record in records if record.api_key == 14 and record.kind is Kind.RESPONSE]
    assert [line.at for line in lines if "asks to join" in line.text.plain] == [iso_utc(at_us) for at_us in asked[-2:]]
    assert lines[-1].text.plain.startswith("Generation 3, 2 members")
    assert lines[-1].at == iso_utc(served[-1])


def test_a_finding_that_was_over_before_it_was_published_has_its_beginning(told: Told) -> None:
    finding = V_01.finding(subject="", cluster="c1", group="g", opened_at_us=1, at_us=1_000_000, summary="", observed="")
    over = replace(finding, status=Status.RESOLVED, updated_at_us=2_000_000, resolved_at_us=2_000_000)
    told.timeline.finding(over)
    lines = [(line.at, line.text.plain) for line in told.lines()]
    words = f"{V_01.severity.value} V-01 {V_01.name}"
    assert lines == [(iso_utc(1_000_000), words), (iso_utc(2_000_000), f"{words} is over")]


def test_a_finding_is_told_once_when_it_opens_and_once_when_it_is_over(told: Told) -> None:
    finding = V_01.finding(subject="", cluster="c1", group="g", opened_at_us=1, at_us=1_000_000, summary="", observed="")
    again = replace(finding, status=Status.UPDATE, updated_at_us=2_000_000, count=2)
    over = replace(again, status=Status.RESOLVED, updated_at_us=3_000_000, resolved_at_us=3_000_000)
    for state in (finding, again, over):
        told.timeline.finding(state)
    words = f"{V_01.severity.value} V-01 {V_01.name}"
    assert told.look() == [words, f"{words} (2 times by now)", f"{words} is over"]


def test_a_member_that_left_is_said_to_have_left(told: Told) -> None:
    a, _ = settled(told.talk)
    told.look()
    told.talk.leave(a)
    assert told.look() == [f"{a.member_id} left", f"Rebalance began: member left, {a.member_id}"]


def test_a_rebalance_that_ended_with_the_last_member_names_no_generation_and_no_members(told: Told) -> None:
    (a,) = settled(told.talk, ("a",))
    rejoining = told.talk.ask_join(a)
    told.talk.joined(rejoining, generation=4, leader=a, roster=[a])
    told.talk.wait(2_000)
    told.talk.leave(a)
    told.talk.wait(1_000)
    assert told.look()[-1].startswith("No member is left after 2.0 s; cost 2.0 member-seconds")


def test_members_that_were_only_seen_are_not_said_to_have_joined(told: Told) -> None:
    a, b = told.talk.client("a"), told.talk.client("b")
    for client in (a, b):
        client.member_id, client.generation = f"{client.name}-id", 7
        told.talk.heartbeat(client)
    assert told.look() == []
    c = told.talk.client("c")
    told.talk.hand_out_id(c, "c-id")
    told.talk.round([a, b, c], 8)
    *_, asks, over = told.look()
    assert asks == "c-id asks to join"
    assert "; joined c-id" in over


def test_members_that_a_gap_made_unknown_are_neither_gone_nor_join_when_they_rejoin(told: Told) -> None:
    a, b = settled(told.talk)
    told.look()
    told.talk.gap()
    (line,) = told.look()
    assert line.startswith("The members are not known from here on")
    told.talk.round([a, b], 4)
    text = "\n".join(told.look())
    assert "joined" not in text
    assert "asks to join" not in text
    assert "left" not in text


def test_members_of_a_group_that_migrates_are_not_said_to_be_gone(told: Told) -> None:
    a, b = settled(told.talk)
    told.look()
    told.talk.consumer_heartbeat(told.talk.client("new"))
    text = "\n".join(told.look())
    assert "was converted to the consumer type" in text
    assert a.member_id not in text
    assert b.member_id not in text


def test_a_rebalance_of_members_with_epochs_is_two_lines_beside_who_joined() -> None:
    talk = Epochs()
    told = Told(talk)
    a, b = talk.member("a"), talk.member("b")
    talk.joins(a, 2, foo(0, 1))
    talk.joins(b, 3)
    talk.beats(a, 2, foo(0))
    talk.beats(a, 3, owned=foo(0))
    talk.beats(b, 3, foo(1))
    assert [line.partition(",")[0] for line in told.look()][-3:] == ["b-id joined", "Rebalance began: joined", "Epoch 3"]


def test_an_answer_that_cannot_be_read_makes_nobody_gone(told: Told) -> None:
    a, _ = settled(told.talk)
    told.look()
    told.talk.raw(a, b"\x00")
    assert "left" not in "\n".join(told.look())

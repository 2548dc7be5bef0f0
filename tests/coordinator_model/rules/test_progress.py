"""Family O: groups that never commit, partitions that stand still, and records that cannot be processed."""

from __future__ import annotations

import pytest

from coordinator_model.finding import Blame, Certainty, Finding, Severity, Status
from tests.coordinator_model.classic import complete, live
from tests.coordinator_model.conversation import Client, Conversation
from tests.coordinator_model.epochs import Epochs, foo
from tests.coordinator_model.rules.loops import told_to_rejoin
from tests.coordinator_model.rules.offsets import assign, give, sharing


def findings_of(talk: Conversation, rule: str) -> list[Finding]:
    return [finding for finding in talk.findings if finding.rule == rule]


def two(talk: Conversation) -> tuple[Client, Client]:
    """Member a has partitions 0 and 1, b has 2 and 3."""
    a, b = sharing(talk, (0, 1), (2, 3))
    return a, b


def works(talk: Conversation, offsets: dict[Client, dict[int, int]], seconds: int, by: dict[int, int]) -> None:
    """Each second members heartbeat, and commit the partitions of ``by`` that much further."""
    for _ in range(seconds):
        for client, own in offsets.items():
            talk.heartbeat(client)
            further = {partition: own[partition] + by[partition] for partition in own if by.get(partition)}
            own.update(further)
            if further:
                talk.commit_offsets(client, further)
        talk.wait(1_000)


def test_O_14_notes_once_that_a_group_has_never_committed_and_is_over_when_it_does(talk: Conversation) -> None:
    a, b = two(talk)
    talk.fetch_offsets(a, {0: -1, 1: -1})
    talk.fetch_offsets(b, {2: -1, 3: -1})
    live(talk, [a, b], 595)
    assert findings_of(talk, "O-14") == []
    live(talk, [a, b], 30)
    [finding] = findings_of(talk, "O-14")
    assert (finding.severity, finding.certainty, finding.blame) == (Severity.INFO, Certainty.HEURISTIC, Blame.CLIENT)
    assert "has had partitions since " in finding.summary
    assert "600.0 s, and has committed no offset; 2 members heartbeat" in finding.summary
    talk.commit_offsets(a, {0: 1})
    live(talk, [a, b], 30)
    assert talk.the("O-14").status is Status.RESOLVED


def test_O_14_is_quiet_about_a_group_that_commits_or_has_offsets(talk: Conversation) -> None:
    a, b = two(talk)
    talk.fetch_offsets(a, {0: -1, 1: -1})
    talk.commit_offsets(a, {0: 1})
    live(talk, [a, b], 630)
    other = Conversation("other")
    c, d = two(other)
    other.fetch_offsets(c, {0: 5, 1: 5})
    live(other, [c, d], 630)
    assert (findings_of(talk, "O-14"), findings_of(other, "O-14")) == ([], [])


def test_O_15_warns_of_a_member_that_moves_nothing_beside_others_and_is_over_when_it_does(talk: Conversation) -> None:
    a, b = two(talk)
    offsets = {a: dict.fromkeys((0, 1), 100), b: dict.fromkeys((2, 3), 100)}
    works(talk, offsets, 15, {0: 1, 1: 2, 2: 1, 3: 1})
    works(talk, offsets, 55, {2: 1, 3: 1})
    assert findings_of(talk, "O-15") == []
    works(talk, offsets, 30, {2: 1, 3: 1})
    [finding] = findings_of(talk, "O-15")
    assert (finding.severity, finding.certainty, finding.member_id) == (Severity.WARNING, Certainty.HEURISTIC, a.member_id)
    assert "heartbeats and has moved no offset of 2 partitions of group g since " in finding.summary
    assert "t-0 at 115, t-1 at 130. 2 others of the same topic go on." in finding.summary
    works(talk, offsets, 30, {0: 1, 1: 1, 2: 1, 3: 1})
    assert talk.the("O-15").status is Status.RESOLVED


@pytest.mark.parametrize(("version", "topic"), [(9, "foo"), (10, "fooAAAAAAAAAAAAAAAAAAA")], ids=["by name", "by id"])
def test_O_15_warns_of_a_member_with_an_epoch_that_moves_nothing_beside_others(talk: Epochs, version: int, topic: str) -> None:
    a, b = talk.member("a"), talk.member("b")
    talk.joins(a, 1, foo(0, 1))
    talk.joins(b, 2)
    talk.beats(a, 1, foo(0))
    talk.beats(a, 2, owned=foo(0))
    talk.beats(b, 2, foo(1))
    for second in range(120):
        for client, number in ((a, 0), (b, 1))[second >= 15 :]:
            talk.commits(client, version=version, number=number, offset=100 + second)
        if second % 5 == 0:
            talk.beats(a)
            talk.beats(b)
        talk.wait(1_000)
    [finding] = findings_of(talk, "O-15")
    assert (finding.severity, finding.certainty, finding.member_id) == (Severity.WARNING, Certainty.HEURISTIC, a.member_id)
    assert f"60.0 s: {topic}-0 at 114. 1 other of the same topic goes on." in finding.summary
    assert {one.rule for one in talk.findings} == {"O-15"}


def test_O_15_is_a_note_if_the_member_moves_others_of_its_partitions(talk: Conversation) -> None:
    a, b = two(talk)
    offsets = {a: dict.fromkeys((0, 1), 100), b: dict.fromkeys((2, 3), 100)}
    works(talk, offsets, 15, dict.fromkeys(range(4), 1))
    works(talk, offsets, 90, dict.fromkeys((0, 2, 3), 1))
    [finding] = findings_of(talk, "O-15")
    assert finding.severity is Severity.INFO
    assert "t-1 at 115. 3 others" in finding.summary


def test_O_15_is_quiet_in_a_night_without_records(talk: Conversation) -> None:
    a, b = two(talk)
    offsets = {a: dict.fromkeys((0, 1), 100), b: dict.fromkeys((2, 3), 100)}
    works(talk, offsets, 15, dict.fromkeys(range(4), 1))
    works(talk, offsets, 200, {})
    works(talk, offsets, 3, {0: 1, 2: 1, 3: 1})
    works(talk, offsets, 15, dict.fromkeys(range(4), 1))
    assert findings_of(talk, "O-15") == []


def test_O_15_is_quiet_about_partitions_that_a_member_has_just_been_given(talk: Conversation) -> None:
    a, b = two(talk)
    offsets = {a: dict.fromkeys((0, 1), 100), b: dict.fromkeys((2, 3), 100)}
    works(talk, offsets, 15, dict.fromkeys(range(4), 1))
    works(talk, offsets, 40, dict.fromkeys((2, 3), 1))
    told_to_rejoin(talk, [a, b])
    give(talk, [a, b], 4, {a: (2, 3), b: (0, 1)})
    offsets = {a: offsets[b], b: offsets[a]}
    works(talk, offsets, 50, dict.fromkeys((2, 3), 1))
    assert findings_of(talk, "O-15") == []


def test_M_13_names_the_record_at_which_a_client_dies_each_time(talk: Conversation) -> None:
    a, b = sharing(talk, (0,), (1,))
    talk.commit_offsets(b, {1: 667})
    live(talk, [a, b], 5)
    for generation in range(4, 8):
        talk.close(b)
        b = talk.client("b")
        talk.hand_out_id(b)
        new = talk.ask_join(b)
        told_to_rejoin(talk, [a])
        rejoins = talk.ask_join(a)
        talk.wait(14_000)
        complete(talk, (rejoins, new), generation, a, [a, b])
        assign(talk, [a, b], {a: (0,), b: (1,)})
        talk.heartbeat(a)
        talk.commit_offsets(a, {0: generation})
    finding = findings_of(talk, "M-13")[-1]
    assert "times it held t-1, whose offset stays at 667: most likely it cannot process the record there." in finding.summary
    assert "R-18" not in talk.rules()

"""Answers judged by the protocol's table, at the moments that frames leave possible."""

from __future__ import annotations

import pytest

from coordinator_model.finding import Certainty
from coordinator_model.groups.protocol.classic import TABLE, Condition, Generation, Sender
from coordinator_model.groups.protocol.table import Moment, Way, deciding, shown, unseen
from tests.coordinator_model.classic import live, replace, settled, static_group
from tests.coordinator_model.conversation import Conversation
from tests.coordinator_model.shadow import verdicts

OLDEST, NEWEST = (0, 9), (4, 1)


def ways(api_key: int, version: int, error: int, oldest: tuple[int, int]) -> tuple[Way, ...]:
    return shown(TABLE, api_key, version, error, oldest)


def names(api_key: int, version: int, error: int, oldest: tuple[int, int]) -> set[str]:
    return {way.row.name for way in ways(api_key, version, error, oldest)}


# ---------------------------------------------------------------------------------------------------- the table turned round


def test_each_row_is_a_way_to_its_answer_unless_it_holds_the_request_or_frames_do_not_show_it() -> None:
    found = {
        way.row.name
        for api_key in (8, 11, 12, 13, 14, 28, 42)
        for version in range(11)
        for error in {code for row in TABLE.of(api_key) for code in row.answers}
        for way in ways(api_key, version, error, OLDEST)
    }
    wanted = {row.name for row in TABLE.rows if row.answers and not row.is_unseen and row.name[0] != "F"}
    assert found == wanted


def test_from_3_0_to_3_2_a_commit_without_a_generation_that_carries_ids_is_refused_in_an_empty_group() -> None:
    """KAFKA-14201."""
    for api_key, version, row in ((8, 8, "C20"), (28, 3, "T16")):
        found = [way for way in ways(api_key, version, 25, (3, 0)) if way.row.name == row]
        assert {(way.phase, way.generation) for way in found} == {("-", Generation.NONE), ("E", Generation.NONE)}
        assert {way.sender for way in found} == {Sender.STRANGER, Sender.PENDING, Sender.PENDING_STATIC, Sender.NEW_STATIC}
        assert row not in names(api_key, version, 25, (3, 3))


def test_a_way_is_a_moment_at_which_its_row_decides() -> None:
    for way in ways(12, 4, 27, NEWEST):
        moment = Moment(way.sender, way.generation, frozenset(), 4, NEWEST, way.phase)
        assert deciding(TABLE.of(12), moment) is way.row
    assert {(way.phase, way.generation) for way in ways(12, 4, 27, NEWEST)} == {("P", Generation.SAME)}
    assert {way.sender for way in ways(12, 4, 27, NEWEST)} == {Sender.MEMBER}  # since 3.0 one under another instance id is refused


def test_a_row_that_an_earlier_row_comes_before_is_no_way() -> None:
    """Loading answers first: no Heartbeat of a stranger is refused then."""
    assert "L" not in {way.phase for way in ways(12, 4, 25, NEWEST)}


def test_releases_before_the_oldest_do_not_count() -> None:
    assert names(12, 4, 27, (2, 4)) == {"H11", "H12"}
    assert names(12, 4, 27, (2, 7)) == {"H11"}
    assert "Y3" in names(14, 5, 27, (3, 9))
    assert "Y3" not in names(14, 5, 27, (4, 0))


def test_releases_between_the_end_of_one_row_and_the_begin_of_another_count() -> None:
    """From 2.6.1 to 2.8 a Heartbeat succeeds in CompletingRebalance, and an instance id that nobody holds is ignored."""
    assert {way.sender for way in ways(12, 4, 0, (2, 7)) if way.row.name == "H13"} == {Sender.MEMBER, Sender.RENAMED}
    assert {way.sender for way in ways(12, 4, 0, (3, 0)) if way.row.name == "H13"} == {Sender.MEMBER}


def test_versions_of_the_request_count() -> None:
    assert names(8, 8, 69, NEWEST) == set()
    assert names(8, 9, 69, NEWEST) == {"C12"}


def test_answers_whose_reasons_frames_do_not_show_are_apart() -> None:
    assert [row.name for row in unseen(TABLE, 11, 9, 27, NEWEST)] == ["J8", "J31"]
    assert all(row.is_unseen for row in unseen(TABLE, 11, 9, 27, NEWEST))
    assert Condition.UPGRADED in unseen(TABLE, 11, 9, 27, NEWEST)[1].conditions


# ---------------------------------------------------------------------------------------------------- accepted requests


def test_the_verdict_says_what_the_answer_needs_by_which_rows_and_which_frame_excludes_it(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.round([a, b], 4)
    talk.wait(27_800)
    with verdicts() as found:
        talk.heartbeat(a, generation=3)
    [verdict] = found
    assert verdict.about == {"generation"}
    assert verdict.certainty is Certainty.CONFIRMED
    assert verdict.text == (
        "it needs a broker that loads the group (H1): it did not say so; or the group's generation (H13, H14): generation 4 was handed "
        "out 27.8 s before, and the coordinator has not changed since"
    )
    [frame] = verdict.proof
    assert frame.frame.startswith("JoinGroup v9 answer: success, generation 4")


def test_the_verdict_on_a_stranger_names_the_member_list(talk: Conversation) -> None:
    settled(talk)
    stranger = talk.client("s", member_id="stranger", generation=3)
    talk.wait(1)
    with verdicts() as found:
        talk.heartbeat(stranger)
    [verdict] = found
    assert verdict.about == {"member"}
    assert "or a member (H14): stranger is not in the list of 2 that the leader of generation 3 was given" in verdict.text


def test_the_verdict_on_a_replaced_member_names_its_successor(talk: Conversation) -> None:
    leader, first = static_group(talk)
    second = replace(talk, leader, "two")
    talk.wait(1_000)
    with verdicts() as found:
        talk.heartbeat(first)
    [verdict] = found
    assert "replaced" in verdict.about
    assert f"member {second.member_id} had taken over instance id i" in verdict.text


def test_a_broker_that_loads_accepts_every_heartbeat(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.round([a, b], 4)
    talk.wait(1_000)
    with verdicts() as found:
        talk.heartbeat(a, generation=3)
        talk.settle()
        talk.refuse_join(talk.ask_join(b), 14)
        talk.heartbeat(a, generation=3)
    assert len(found) == 1  # only the first, before which nothing said that it loads


# ---------------------------------------------------------------------------------------------------- refused requests


@pytest.mark.parametrize(("synced", "unlawful"), [(False, []), (True, ["C16"])])
def test_a_commit_is_told_to_wait_for_the_assignment_only_before_it(
    talk: Conversation, *, synced: bool, unlawful: list[str]
) -> None:
    a, b = settled(talk)
    talk.join_all([a, b], 4)
    if synced:
        talk.sync_all([a, b])
    talk.wait(1)
    with verdicts() as found:
        talk.commit(a, 27)
    assert [row.name for verdict in found for row, _, _ in verdict.excluded] == unlawful
    assert talk.settled_rules() == (["P-07"] if unlawful else [])


def test_nobody_is_fenced_who_names_no_instance_id(talk: Conversation) -> None:
    a, _ = settled(talk)
    with verdicts() as found:
        talk.heartbeat(a, 82)
    [verdict] = found
    assert verdict.certainty is Certainty.CERTAIN
    assert verdict.text == "it needs a request of a sender that is fenced or returning (H6): this was none"


def test_an_error_that_no_row_gives_needs_nothing_else(talk: Conversation) -> None:
    a, _ = settled(talk)
    with verdicts() as found:
        talk.heartbeat(a, 79)
    assert [(verdict.text, verdict.certainty) for verdict in found] == [
        ("no row of the protocol gives that answer", Certainty.CERTAIN)
    ]


def test_a_sync_of_a_generation_that_is_over_is_refused_as_such_and_not_asked_to_wait(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.round([a, b], 4)
    talk.wait(1_000)
    a.generation = 3
    with verdicts() as found:
        talk.call(a, talk.sync_request(a, []), talk.synced(27))
    assert [sorted(verdict.about) for verdict in found] == [["generation"]]
    assert {row.name for row, _, _ in found[0].excluded} == {"Y11", "Y15", "Y3"}


# ---------------------------------------------------------------------------------------------------- lawful


def test_a_deleted_group_bounds_nothing(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.round([a, b], 4)
    talk.wait(1_000)
    talk.delete()
    with verdicts() as found:
        talk.heartbeat(a, generation=3)
    assert found == []


def test_lawful_traffic_has_no_verdict(talk: Conversation) -> None:
    with verdicts() as found:
        a, b = settled(talk)
        live(talk, [a, b], 5)
        talk.heartbeat(a, 27)
        talk.commit(b)
        talk.round([b, a], 4)
        talk.heartbeat(a, 22, generation=3)
        talk.heartbeat(b, 25)
        talk.leave(a)
    assert found == []

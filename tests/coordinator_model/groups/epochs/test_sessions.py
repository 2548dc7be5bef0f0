"""When the session of a member with epochs is over: by the broker's setting, where it is told, else by what frames show."""

from __future__ import annotations

import pytest

from coordinator_model.coordinator import Coordinator
from coordinator_model.finding import Status
from coordinator_model.groups.epochs.model import EpochGroup
from coordinator_model.groups.epochs.records import SessionBounds
from tests.coordinator_model.conversation import Client, Conversation
from tests.coordinator_model.epoch_groups import joined_pair
from tests.coordinator_model.epochs import Epochs, foo
from tests.coordinator_model.streams import Shares, Streams


def group_of(talk: Conversation) -> EpochGroup:
    group = talk.model.groups.opened(("c1", talk.group))[0]
    assert isinstance(group, EpochGroup)
    return group


def two(talk: Epochs) -> tuple[Client, Client]:
    """Each has two partitions."""
    a, b = joined_pair(talk, held=foo(0, 1, 2, 3))
    talk.beats(a, 2, foo(0, 1))
    talk.beats(a, 3, owned=foo(0, 1))
    talk.beats(b, 3, foo(2, 3))
    return a, b


def silent_for_s(talk: Epochs, lives: Client) -> float:
    """How long it takes after the last frame of the others until T-04 is said."""
    since_us = talk.now_us
    while "T-04" not in talk.rules():
        talk.beats(lives)
        talk.wait(1_000)
        assert talk.now_us < since_us + 300_000_000
    return (talk.the("T-04").opened_at_us - since_us) / 1_000_000


def test_a_session_is_over_after_the_longest_that_brokers_allow_by_default(talk: Epochs) -> None:
    a, _ = two(talk)
    assert 68 <= silent_for_s(talk, a) <= 69
    assert (
        "nobody was seen to be given its partitions before its session ended, which takes 45.0 to 60.0 s"
        in talk.the("T-04").summary
    )


@pytest.mark.parametrize(
    "settings",
    [
        {"group_consumer_session_timeout_ms": 10_000},
        {
            "group_consumer_session_timeout_ms": 90_000,
            "cluster_session_timeouts_ms": {"c1/consumer": 10_000, "c2/consumer": 80_000},
        },
    ],
)
def test_a_session_is_over_after_the_brokers_setting_where_it_is_told(settings: dict[str, object]) -> None:
    talk = Epochs(**settings)
    a, _ = two(talk)
    assert 13 <= silent_for_s(talk, a) <= 14
    assert "before its session ended, which takes 10.0 s" in talk.the("T-04").summary


def test_the_setting_of_another_type_of_group_does_not_count() -> None:
    talk = Epochs(group_share_session_timeout_ms=10_000, cluster_session_timeouts_ms={"c1/streams": 10_000, "c2/consumer": 10_000})
    a, _ = two(talk)
    assert silent_for_s(talk, a) >= 68


def test_T_04_tells_for_how_long_partitions_were_idle_until_others_were_given_them(talk: Epochs) -> None:
    a, b = two(talk)
    talk.wait(2_000)
    talk.close(b)
    talk.live([a], 40)
    talk.wait(4_000)
    talk.beats(a, 4, foo(0, 1, 2, 3))
    talk.settle()
    finding = talk.the("T-04")
    assert finding.member_id == "b-id"
    assert "nothing for 46.2 s; its partitions were idle for 44.2 s, until others were given them." in finding.summary
    assert talk.rules() == ["T-04"]


def test_what_others_were_given_shows_how_long_a_session_lasts_and_the_next_is_over_sooner(talk: Epochs) -> None:
    a, b = two(talk)
    talk.close(b)
    talk.live([a], 45)
    talk.beats(a, 4, foo(0, 1, 2, 3))
    talk.settle()
    bounds = group_of(talk).session_bounds
    assert (bounds.least_ms, 45_000 < bounds.most_ms <= 46_000) == (0, True)
    restored = Coordinator.restore(talk.model.snapshot(), settings=talk.settings).groups.opened(("c1", "g"))[0]
    assert isinstance(restored, EpochGroup)
    assert restored.session_bounds == bounds
    c = talk.member("c")
    talk.joins(c, 5, {})
    since_us = talk.now_us
    talk.live([a], 60)
    [finding] = [one for one in talk.findings if one.member_id == "c-id" and one.status is Status.OPEN]
    assert finding.rule == "T-04"
    assert finding.opened_at_us - since_us < 53_000_000  # its 46 s, a tenth and 2 s
    assert "which takes 45.0 to 45.2 s" in finding.summary


def test_a_pause_that_a_session_outlasted_shows_that_it_is_longer(talk: Epochs) -> None:
    a, b = two(talk)
    talk.beats(a)
    talk.wait(64_000)
    talk.beats(a)  # accepted
    talk.beats(b)
    talk.settle()
    assert group_of(talk).session_bounds.least_ms >= 64_000
    assert silent_for_s(talk, a) >= 64 * 1.1 + 1


@pytest.mark.parametrize("how", ["reconnected", "moved"])
def test_a_pause_across_a_restart_of_the_coordinator_shows_nothing(talk: Epochs, how: str) -> None:
    a, _ = two(talk)
    if how == "reconnected":
        talk.close(a)
        a = a.reconnected()
    else:
        talk.refused(a, 16)
    talk.wait(60_000)
    talk.beats(a)
    assert group_of(talk).session_bounds == SessionBounds()


def test_a_member_that_is_told_after_a_session_that_it_is_none_shows_how_long_that_is(talk: Epochs) -> None:
    a, b = two(talk)
    talk.live([a], 50)
    talk.refused(b, 25)
    assert 50_000 <= group_of(talk).session_bounds.most_ms <= 51_000


def test_a_member_that_is_told_early_that_it_is_none_shows_nothing_of_sessions(talk: Epochs) -> None:
    """An operator removed it, or the coordinator lost it."""
    a, b = two(talk)
    talk.live([a], 5)
    talk.refused(b, 25)
    assert group_of(talk).session_bounds == SessionBounds()


def test_a_member_whose_joins_are_refused_until_its_session_ends_did_not_go_silent(talk: Epochs) -> None:
    a, b = two(talk)
    for _ in range(23):
        talk.beats(a)
        talk.refused_join(b, 110)
        talk.wait(2_000)
    talk.beats(a, 4, foo(0, 1, 2, 3))
    talk.joins(b, 5, {})
    talk.settle()
    causes = talk.group_json()["rebalances"]
    assert (causes["removed, its joins were refused"], causes["joined"]) == (1, 2)
    assert "went silent" not in causes
    assert "T-04" not in talk.rules()


def test_T_04_names_the_silent_member_of_a_share_group_among_others_of_its_client_id(talk: Shares) -> None:
    a, b = talk.member("same"), talk.member("same")
    b.member_id = "other-id"
    talk.shares(a, 0, 2, (0,))
    talk.shares(b, 0, 3, (0,))
    talk.goes_on([b], 75)
    finding = talk.the("T-04")
    assert (finding.member_id, finding.client_id) == ("same-id", "same")
    assert "locked until their time ran out" in finding.summary


def test_T_04_names_the_silent_member_of_a_streams_group_and_speaks_of_tasks(talk: Streams) -> None:
    a, b = talk.member("a"), talk.member("b")
    talk.enters(a, 2, (0,))
    talk.enters(b, 3)
    talk.told_for([b], 75)
    assert talk.the("T-04").member_id == "a-id"
    assert "nobody was seen to be given its tasks" in talk.the("T-04").summary


def test_bounds_that_contradict_each_other_are_dropped() -> None:
    assert SessionBounds(0, 46_000).outlasted(50_000_000) == SessionBounds(50_000, 0)
    assert SessionBounds(50_000, 0).ended(46_000_000) == SessionBounds(50_000, 0)
    assert SessionBounds(0, 47_000).ended(46_000_000) == SessionBounds(0, 46_000)


@pytest.mark.parametrize("how", ["left", "crashed", "crashed, and frames were lost"])
def test_a_group_that_expired_unseen_begins_again_at_a_lower_epoch(talk: Epochs, how: str) -> None:
    a, b = two(talk)
    for number in range(3):
        talk.beats(a, 4 + number)
        talk.beats(b, 4 + number)
    if how == "left":
        talk.leaves(a)
        talk.leaves(b)
    elif how != "crashed":
        talk.gap()
    for _ in range(60):
        talk.tick()
        talk.wait(1_000)
    c, d = talk.member("c"), talk.member("d")
    talk.joins(c, 1, foo(0, 1, 2, 3))
    assert group_of(talk).learning is False
    talk.joins(d, 2, {})
    talk.beats(c, 1, foo(0, 1))
    talk.beats(c, 2, owned=foo(0, 1))
    talk.beats(d, 2, foo(2, 3))
    group = group_of(talk)
    assert (group.epoch, group.state, group.learning) == (2, "Stable", False)
    assert {member.id: member.removed for member in group.members.values()} == {
        "a-id": "left" if how == "left" else "silent",
        "b-id": "left" if how == "left" else "silent",
        "c-id": None,
        "d-id": None,
    }
    assert [rule for rule in talk.rules() if rule not in {"T-04", "V-01", "V-04"}] == []


def test_E_15_a_stranger_is_known_in_a_group_that_began_again(talk: Epochs) -> None:
    a, b = two(talk)
    talk.leaves(a)
    talk.leaves(b)
    talk.wait(600_000)
    c = talk.member("c")
    talk.joins(c, 1, foo(0, 1, 2, 3))
    talk.live([c], 90)
    stranger = talk.member("stranger")
    talk.beats(stranger, 1, epoch=1)
    talk.wait(2_000)
    talk.tick()
    assert talk.rules() == ["E-15"]


def test_a_join_that_was_asked_before_the_epoch_rose_begins_no_new_life(talk: Epochs) -> None:
    a, b = two(talk)
    late = talk.ask_beat(talk.member("c"), 0, **talk.join_fields())
    talk.beats(a, 5)
    talk.beats(b, 5)
    talk.leaves(a)
    talk.leaves(b)
    talk.answer(late, talk.given(talk.member("c"), 4, {}))
    assert group_of(talk).epoch == 5

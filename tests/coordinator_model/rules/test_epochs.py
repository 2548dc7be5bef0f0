"""Family E, first part: what fires each rule, what must keep it quiet, what resolves it."""

from __future__ import annotations

import pytest

from coordinator_model import wire
from coordinator_model.finding import Blame, Certainty, Severity, Status
from tests.coordinator_model.conversation import Client
from tests.coordinator_model.epoch_groups import alone, lives_on, moved, over, pair
from tests.coordinator_model.epochs import Epochs, foo, shows_release

# ---------------------------------------------------------------------------------------------------- E-01


@pytest.mark.parametrize(("asked", "returned"), [(5, 4), (5, 1)])
def test_E_01_fires_when_an_answer_has_a_lower_epoch_than_its_request(talk: Epochs, asked: int, returned: int) -> None:
    a = alone(talk, 5)
    talk.beats(a, returned, epoch=asked)
    finding = talk.the("E-01")
    assert (finding.severity, finding.certainty, finding.blame) == (Severity.CRITICAL, Certainty.CERTAIN, Blame.BROKER)
    assert f"epoch {returned}" in finding.summary
    over(talk)
    assert talk.the("E-01").status is Status.RESOLVED
    assert talk.rules() == ["E-01"]


def test_E_01_fires_when_an_answer_has_a_lower_epoch_than_one_before(talk: Epochs) -> None:
    a = alone(talk, 2)
    talk.beats(a, 5)
    talk.beats(a, 4, epoch=4, owned=foo(0, 1))
    assert "E-01" in talk.rules()


def test_E_01_allows_a_lower_epoch_after_a_join(talk: Epochs) -> None:
    a = alone(talk, 7)
    talk.leaves(a)
    talk.joins(a, 3, foo(0, 1))
    talk.beats(a)
    assert talk.settled_rules() == []


def test_E_01_leaves_a_coordinator_that_moved_alone(talk: Epochs) -> None:
    a = moved(talk, alone(talk, 7))
    talk.beats(a, 6, epoch=6)
    assert talk.settled_rules() == []


def test_E_01_allows_the_epochs_of_the_two_leaves(talk: Epochs) -> None:
    a = alone(talk, 4, held=foo(0), instance_id="i")
    talk.leaves(a, -2)
    assert talk.settled_rules() == []


@pytest.mark.parametrize("goes_on", [[(5, 5)], [(3, 3), (5, 5)], [(3, 5), (3, 5)]])
def test_E_04_does_not_follow_E_01_whichever_epoch_the_client_goes_on_with(talk: Epochs, goes_on: list[tuple[int, int]]) -> None:
    a = alone(talk, 5)
    talk.beats(a, 3)
    for asked, answered in goes_on:
        talk.wait(5_000)
        talk.beats(a, answered, epoch=asked)
    assert talk.settled_rules() == ["E-01"]


# ---------------------------------------------------------------------------------------------------- E-02


@pytest.mark.parametrize("error", [25, 110])
def test_E_02_fires_when_a_member_goes_on_at_a_fenced_epoch(talk: Epochs, error: int) -> None:
    a = alone(talk)
    for _ in range(3):
        talk.refused(a, error, epoch=9)
        talk.wait(3_000)
    finding = talk.the("E-02")
    assert (finding.severity, finding.blame, finding.member_id) == (Severity.ERROR, Blame.CLIENT, "a-id")
    talk.joins(a, 5, foo(0))
    talk.wait(1_500)
    assert talk.the("E-02").status is Status.RESOLVED


def test_E_02_ignores_heartbeats_that_were_under_way(talk: Epochs) -> None:
    a = alone(talk)
    connections = [a, a.reconnected(), a.reconnected(), a.reconnected()]
    asked = [talk.ask_beat(one, 9) for one in connections]
    for one in asked:
        talk.answer(one, wire.ConsumerGroupHeartbeatResponse(error_code=110))
    assert talk.settled_rules() == []


def test_E_02_allows_one_more_heartbeat_and_a_join(talk: Epochs) -> None:
    a = alone(talk)
    for _ in range(3):
        talk.refused(a, 110)
        talk.refused(a, 110)
        talk.joins(a, 5, foo(0))
    assert "E-02" not in talk.settled_rules()


# ---------------------------------------------------------------------------------------------------- E-03


def test_E_03_fires_when_the_epoch_that_was_given_last_is_fenced(talk: Epochs) -> None:
    a = alone(talk)
    talk.beats(a)
    talk.refused(a, 110)
    talk.settle()
    finding = talk.the("E-03")
    assert (finding.severity, finding.certainty, finding.blame) == (Severity.ERROR, Certainty.CONFIRMED, Blame.BROKER)
    assert finding.summary.endswith(" in group g at epoch 2, the one that it was given last.")
    assert len(finding.evidence) == 3
    over(talk)
    assert talk.the("E-03").status is Status.RESOLVED
    assert talk.rules() == ["E-03"]


def test_E_03_fires_with_less_certainty_after_the_coordinator_moved(talk: Epochs) -> None:
    """A newer broker may have written a state that this one does not know."""
    a, b = pair(talk)
    talk.beats(moved(talk, b))
    talk.refused(a.reconnected("2"), 110)
    assert talk.settled_rules() == ["E-03"]
    assert talk.the("E-03").certainty is Certainty.HEURISTIC


def test_E_03_needs_to_have_seen_the_answers_of_the_member(talk: Epochs) -> None:
    a = alone(talk)
    talk.ask_beat(a)
    talk.close(a)
    again = a.reconnected()
    talk.refused(again, 110)
    assert talk.settled_rules() == []


def test_E_03_leaves_an_answer_alone_that_another_heartbeat_overlaps(talk: Epochs) -> None:
    a = alone(talk)
    other = talk.ask_beat(a.reconnected())
    talk.refused(a, 110)
    talk.answer(other, talk.given(a, 3))
    assert talk.settled_rules() == []


def test_E_03_is_no_matter_of_a_static_member_that_is_away(talk: Epochs) -> None:
    a = alone(talk, held=foo(0), instance_id="i")
    talk.leaves(a, -2)
    talk.refused(a, 110, epoch=2)
    assert talk.settled_rules() == []


def test_E_03_needs_frames_without_a_gap(talk: Epochs) -> None:
    a = alone(talk)
    talk.gap()
    talk.refused(a, 110)
    assert [rule for rule in talk.settled_rules() if rule != "V-04"] == []


# ---------------------------------------------------------------------------------------------------- E-04


@pytest.mark.parametrize(("epoch", "owned"), [(200, None), (50, None), (50, foo(0)), (99, None), (99, foo(0, 7))])
def test_E_04_fires_when_a_stale_epoch_is_accepted(talk: Epochs, epoch: int, owned: dict[str, tuple[int, ...]] | None) -> None:
    a = alone(talk, 99)
    talk.beats(a, 100)
    talk.beats(a, 200, epoch=epoch, owned=owned)
    talk.settle()
    finding = talk.the("E-04")
    assert (finding.severity, finding.certainty, finding.blame) == (Severity.CRITICAL, Certainty.CONFIRMED, Blame.BROKER)
    over(talk)
    assert talk.the("E-04").status is Status.RESOLVED


def test_E_04_allows_the_epoch_before_with_partitions_that_were_assigned(talk: Epochs) -> None:
    a = alone(talk, 99)
    talk.beats(a, 100)
    talk.beats(a, 100, epoch=99, owned=foo(0))
    assert talk.settled_rules() == []


def test_E_04_needs_to_know_the_epoch(talk: Epochs) -> None:
    a = talk.member("a")
    talk.beats(a, 7, epoch=7)
    talk.gap()
    talk.beats(a, 30, epoch=30)
    assert [rule for rule in talk.settled_rules() if rule != "V-04"] == []


# ---------------------------------------------------------------------------------------------------- E-05, E-17

DIRTY = {
    "no timeout": {"rebalance_timeout_ms": -1},
    "no list": {"owned": None},
    "partitions": {"owned": foo(0)},
    "no subscription": {"subscribed_topic_names": None},
    "blank rack": {"rack_id": " "},
    "blank instance id": {"instance_id": ""},
}


@pytest.mark.parametrize("change", DIRTY)
def test_E_05_fires_on_a_join_that_must_be_refused(talk: Epochs, change: str) -> None:
    a = talk.member("a")
    talk.joins(talk.member("z"), 2, foo(0))
    talk.refused(a, 42, epoch=0, **{**talk.join_fields(), **DIRTY[change]})
    assert talk.rules() == ["E-05"]


def test_E_05_and_E_17_fires_when_a_dirty_join_is_accepted(talk: Epochs) -> None:
    talk.joins(talk.member("z"), 2, foo(0))
    a = talk.member("a")
    talk.joins(a, 3, {}, owned=foo(0))
    assert talk.rules() == ["E-05", "E-17"]
    assert (talk.the("E-05").severity, talk.the("E-05").blame) == (Severity.WARNING, Blame.CLIENT)
    assert (talk.the("E-17").severity, talk.the("E-17").blame) == (Severity.ERROR, Blame.BROKER)
    assert "partitions of its own" in talk.the("E-17").summary
    over(talk)
    assert talk.the("E-05").status is Status.RESOLVED
    assert talk.the("E-17").status is Status.RESOLVED


@pytest.mark.parametrize(
    ("names", "pattern"), [(("foo",), None), (None, "foo.*"), (None, ""), ((), None), ((), ""), (("foo",), ""), ((), "foo.*")]
)
def test_E_05_allows_a_clean_join_by_names_by_pattern_and_to_nothing(
    talk: Epochs, names: tuple[str, ...] | None, pattern: str | None
) -> None:
    """A member may subscribe to nothing, as long as it says so: only names and pattern both null are refused."""
    alone(talk)
    b = talk.member("b")
    talk.joins(b, 2, {}, subscribed_topic_names=names, subscribed_topic_regex=pattern)
    talk.beats(b)
    assert talk.settled_rules() == []


def test_E_05_and_E_17_fire_on_a_join_that_says_nothing_of_a_subscription(talk: Epochs) -> None:
    alone(talk)
    talk.joins(talk.member("b"), 3, {}, subscribed_topic_names=None)
    assert talk.settled_rules() == ["E-05", "E-17"]
    assert "without a subscription" in talk.the("E-05").summary


def test_E_17_fires_on_a_static_leave_without_an_instance_id(talk: Epochs) -> None:
    a = alone(talk, held=foo(0), instance_id="i")
    a.instance_id = None
    talk.leaves(a, -2)
    assert talk.rules() == ["E-17"]


def test_E_17_fires_on_a_heartbeat_that_says_nothing_but_a_blank_rack(talk: Epochs) -> None:
    a = alone(talk)
    talk.beats(a, rack_id="")
    assert talk.rules() == ["E-17"]
    assert talk.the("E-17").summary.endswith("which it must refuse: its rack is blank.")


def test_E_17_allows_a_rack_that_has_a_name(talk: Epochs) -> None:
    a = alone(talk)
    talk.beats(a, rack_id="r1")
    assert talk.settled_rules() == []


def test_E_17_allows_the_first_version_to_leave_the_id_to_the_broker(talk: Epochs) -> None:
    alone(talk)
    b = talk.member("b")
    b.member_id = ""
    request = talk.beat_request(b, 0, **talk.join_fields())
    b.member_id = "0123456789012345678901"
    talk.call(b, request, talk.given(b, 3, {}), version=0)
    assert talk.settled_rules() == []


def test_E_17_is_not_about_requests_that_were_refused(talk: Epochs) -> None:
    alone(talk)
    b = talk.member("b")
    b.member_id = ""
    talk.refused(b, 42, epoch=0, **talk.join_fields())
    assert "E-17" not in talk.settled_rules()


# ---------------------------------------------------------------------------------------------------- E-07


def test_E_07_fires_at_the_third_join_within_a_minute(talk: Epochs) -> None:
    a = alone(talk)
    for _ in range(2):
        talk.joins(a, 2, foo(0, 1))
        talk.beats(a)
    assert talk.rules() == []
    talk.joins(a, 2, foo(0, 1))
    talk.settle()
    finding = talk.the("E-07")
    assert (finding.severity, finding.blame) == (Severity.WARNING, Blame.CLIENT)
    over(talk)
    assert talk.the("E-07").status is Status.RESOLVED


@pytest.mark.parametrize("between", ["fenced", "left", "slow"])
def test_E_07_ignores_joins_after_a_refusal_or_a_leave_and_those_far_apart(talk: Epochs, between: str) -> None:
    a = alone(talk)
    for _ in range(5):
        if between == "fenced":
            talk.refused(a, 25, epoch=a.generation)
        elif between == "left":
            talk.leaves(a)
        else:
            talk.live([a], 35)
        talk.joins(a, a.generation + 1 if between != "slow" else 2, foo(0, 1))
    assert "E-07" not in talk.settled_rules()


# ---------------------------------------------------------------------------------------------------- E-08


def test_E_08_fires_when_a_member_lists_what_it_never_got(talk: Epochs) -> None:
    a = alone(talk)
    talk.beats(a, owned=foo(0, 1, 5))
    talk.settle()
    finding = talk.the("E-08")
    assert (finding.severity, finding.blame) == (Severity.ERROR, Blame.CLIENT)
    assert "foo-5" in finding.summary
    over(talk)
    assert talk.the("E-08").status is Status.RESOLVED


def test_E_08_allows_what_the_member_got_before(talk: Epochs) -> None:
    a, _ = pair(talk)
    talk.beats(a, owned=foo(0, 1))
    talk.beats(a, owned=foo(0, 1, 2))
    assert talk.settled_rules() == []


@pytest.mark.parametrize("joins", [False, True])
def test_E_08_allows_what_an_answer_grants_that_is_captured_late(talk: Epochs, *, joins: bool) -> None:
    """The member goes on over another connection, which is captured sooner than the one before."""
    a = alone(talk)
    fields = talk.join_fields() if joins else {}
    asked = talk.ask_beat(a, 0 if joins else None, **fields)
    talk.beats(a.reconnected(), 3, epoch=3, owned=foo(0, 1, 2))
    talk.answer(asked, talk.given(a, 3, foo(0, 1, 2)))
    assert talk.settled_rules() == []


def test_E_08_fires_although_the_member_leaves_at_once(talk: Epochs) -> None:
    a = alone(talk)
    talk.beats(a, owned=foo(0, 1, 5))
    talk.leaves(a)
    assert talk.settled_rules() == ["E-08"]


def test_E_08_needs_to_have_seen_the_join(talk: Epochs) -> None:
    a = talk.member("a")
    talk.beats(a, 4, foo(0), epoch=4)
    talk.beats(a, owned=foo(0, 1))
    assert talk.settled_rules() == []


# ---------------------------------------------------------------------------------------------------- E-14, E-15


@pytest.mark.parametrize("by", ["left", "fenced"])
def test_E_14_fires_when_a_member_is_served_after_its_end(talk: Epochs, by: str) -> None:
    a, _ = pair(talk)
    if by == "left":
        talk.leaves(a)
    else:
        talk.refused(a, 25)
    talk.beats(a, 3, epoch=3)
    talk.settle()
    finding = talk.the("E-14")
    assert (finding.severity, finding.certainty, finding.blame) == (Severity.CRITICAL, Certainty.CONFIRMED, Blame.BROKER)
    over(talk)
    assert talk.the("E-14").status is Status.RESOLVED
    assert talk.rules() == (["E-14"] if by == "left" else ["E-18", "E-14"])


def test_E_14_allows_a_join_in_between(talk: Epochs) -> None:
    a, _ = pair(talk)
    talk.leaves(a)
    talk.joins(a, 5, foo(0))
    talk.beats(a)
    assert talk.settled_rules() == []


def test_E_14_leaves_a_coordinator_that_moved_alone(talk: Epochs) -> None:
    a, b = pair(talk)
    talk.leaves(a)
    moved(talk, b)
    a = a.reconnected("2")
    talk.beats(a, 3, epoch=3)
    assert talk.settled_rules() == []


def test_E_14_needs_a_refusal_of_this_pair_of_ids(talk: Epochs) -> None:
    a = alone(talk)
    a.instance_id = "of nobody"
    talk.refused(a, 25)
    a.instance_id = None
    talk.beats(a)
    assert talk.settled_rules() == ["S-07"]


def test_E_15_fires_when_an_id_is_served_that_never_joined(talk: Epochs) -> None:
    lives_on(talk, alone(talk), 2)
    stranger = talk.member("s")
    talk.beats(stranger, 2, epoch=2)
    talk.settle()
    finding = talk.the("E-15")
    assert (finding.severity, finding.certainty, finding.blame) == (Severity.ERROR, Certainty.CONFIRMED, Blame.BROKER)
    over(talk)
    assert talk.the("E-15").status is Status.RESOLVED
    assert talk.rules() == ["E-15"]


def test_E_15_needs_to_have_seen_the_group_from_its_beginning(talk: Epochs) -> None:
    a = alone(talk, 9, held=foo(0))
    lives_on(talk, a, 9)
    talk.beats(talk.member("s"), 9, epoch=9)
    assert talk.settled_rules() == []


def test_E_15_allows_a_stranger_after_an_epoch_that_nothing_explains(talk: Epochs) -> None:
    """It may have joined on a path that is not captured."""
    a = alone(talk)
    lives_on(talk, a, 2)
    talk.beats(a, 3)
    talk.beats(talk.member("s"), 3, epoch=3)
    assert talk.settled_rules() == []


def test_E_15_allows_a_member_that_was_there_before_the_first_join_that_was_seen(talk: Epochs) -> None:
    """That join may have been a return, with the epoch that the group had."""
    alone(talk)
    talk.beats(talk.member("s"), 2, epoch=2)
    assert talk.settled_rules() == []


# ---------------------------------------------------------------------------------------------------- E-18


def test_E_18_fires_when_a_member_is_told_that_the_group_is_full(talk: Epochs) -> None:
    a = alone(talk)
    talk.beats(a)
    talk.refused(a, 81)
    talk.settle()
    finding = talk.the("E-18")
    assert (finding.severity, finding.certainty, finding.blame) == (Severity.ERROR, Certainty.CONFIRMED, Blame.BROKER)
    over(talk)
    assert talk.the("E-18").status is Status.RESOLVED
    assert talk.rules() == ["E-18"]


def test_E_18_fires_when_a_healthy_member_is_told_that_it_is_none(talk: Epochs) -> None:
    a = alone(talk)
    talk.beats(a)
    talk.refused(a, 25)
    talk.settle()
    finding = talk.the("E-18")
    assert (finding.severity, finding.blame, finding.member_id) == (Severity.ERROR, Blame.BROKER, "a-id")
    assert "with UNKNOWN_MEMBER_ID, for which there is no reason" in finding.summary


@pytest.mark.parametrize("why", ["session", "gives nothing up", "mid-life", "left by another", "moved"])
def test_E_18_allows_to_tell_a_member_that_it_is_none_where_it_may_have_been_removed(talk: Epochs, why: str) -> None:
    a, b = pair(talk)
    if why == "session":
        talk.live([b], 50)
    elif why == "gives nothing up":
        talk.beats(a, 3, foo(0))
    elif why == "mid-life":
        talk.gap()
        talk.beats(a)
    elif why == "left by another":
        talk.remove(a)
    else:
        a = moved(talk, a)
    talk.refused(a, 25)
    assert "E-18" not in talk.settled_rules()


def test_E_18_fires_when_a_released_instance_id_is_refused(talk: Epochs) -> None:
    a = alone(talk, held=foo(0), instance_id="i")
    lives_on(talk, a, 2)
    talk.leaves(a, -2)
    talk.refused_join(talk.member("b", "i"), 111)
    assert talk.settled_rules() == ["E-18"]


def test_E_18_fires_when_a_free_instance_id_is_said_to_be_held(talk: Epochs) -> None:
    a, b = talk.member("a", "i"), talk.member("b")
    talk.joins(a, 2, foo(0))
    talk.joins(b, 3)
    talk.leaves(a)
    talk.wait(1_000)
    talk.refused_join(talk.member("next", "i"), 111)
    assert talk.settled_rules() == ["E-18"]


@pytest.mark.parametrize("why", ["leaves now", "was taken", "may be taken", "a frame is missing", "moved", "its holder was fenced"])
def test_E_18_allows_an_instance_id_that_may_be_held_to_be_refused(talk: Epochs, why: str) -> None:
    a, b = talk.member("a", "i"), talk.member("b")
    talk.joins(a, 2, foo(0))
    talk.joins(b, 3)
    if why == "its holder was fenced":
        talk.wait(62_000)
        talk.refused(a, 25)
    elif why == "leaves now":
        talk.ask_beat(a, -1)
    else:
        talk.leaves(a)
        talk.wait(1_000)
    if why == "was taken":
        talk.joins(talk.member("c", "i"), 4)
    if why == "may be taken":
        c = talk.member("c", "i")
        talk.ask_beat(c, 0, **talk.join_fields())
        talk.close(c)
    if why == "a frame is missing":
        talk.gap()
    if why == "moved":
        talk.beats(moved(talk, b))
    talk.refused_join(talk.member("next", "i"), 111)
    assert "E-18" not in talk.settled_rules()


def test_E_18_allows_an_instance_id_to_be_refused_that_became_free_meanwhile(talk: Epochs) -> None:
    a, following = talk.member("a", "i"), talk.member("next", "i")
    talk.joins(a, 2, foo(0))
    talk.joins(talk.member("b"), 3)
    asked = talk.ask_beat(following, 0, **talk.join_fields())
    talk.leaves(a)
    talk.answer(asked, wire.ConsumerGroupHeartbeatResponse(error_code=111))
    assert "E-18" not in talk.settled_rules()


def test_E_18_allows_a_full_group_to_refuse_newcomers(talk: Epochs) -> None:
    alone(talk)
    talk.refused_join(talk.member("b"), 81)
    assert talk.settled_rules() == []


def test_E_18_allows_the_holder_of_an_instance_id_to_keep_it(talk: Epochs) -> None:
    alone(talk, held=foo(0), instance_id="i")
    talk.refused_join(talk.member("b", "i"), 111)
    assert talk.settled_rules() == []


def test_E_18_leaves_a_member_alone_whose_session_may_have_ended(talk: Epochs) -> None:
    a = alone(talk)
    talk.wait(46_000)
    talk.refused(a, 81)
    assert talk.settled_rules() == []


def held(talk: Epochs) -> Client:
    a = alone(talk, held=foo(0), instance_id="i")
    talk.beats(a)
    return a


def test_E_18_fires_when_the_holder_of_an_instance_id_is_fenced(talk: Epochs) -> None:
    a = held(talk)
    talk.refused(a, 82)
    talk.settle()
    finding = talk.the("E-18")
    assert (finding.severity, finding.blame, finding.instance_id) == (Severity.ERROR, Blame.BROKER, "i")
    assert talk.rules() == ["E-18"]


def test_E_18_allows_a_broker_4_1_to_fence_a_static_member_that_joins_again_without_its_instance_id(talk: Epochs) -> None:
    """The coordinator treats it as any other member that joins again, and before 4.2 fences those (KAFKA-19233)."""
    a = talk.member("a", "i")
    shows_release(talk, a, (4, 1))
    talk.joins(a, 2, foo(0))
    talk.live([a], 10)
    a.instance_id = None
    talk.refused_join(a, 110)
    assert talk.settled_rules() == []


def fenced_while_it_gives_nothing_up(after_ms: int) -> Epochs:
    """Its rebalance timeout is 10 s; a tenth of that and 2 s before its end nothing is certain any more."""
    talk = Epochs()
    a = talk.member("a", "i")
    talk.joins(a, 2, foo(0, 1), rt_ms=10_000)
    talk.joins(talk.member("b"), 3, {})
    talk.beats(a, 2, foo(0))
    talk.wait(after_ms)
    talk.refused(a, 82)
    talk.settle()
    return talk


def test_E_18_fires_although_the_holder_gives_nothing_up_yet() -> None:
    assert "E-18" in fenced_while_it_gives_nothing_up(5_000).rules()


def test_E_18_allows_to_fence_a_holder_that_may_have_been_removed_for_giving_nothing_up() -> None:
    assert "E-18" not in fenced_while_it_gives_nothing_up(8_000).rules()


def test_E_18_allows_to_fence_a_holder_whose_place_another_may_have_taken(talk: Epochs) -> None:
    a = held(talk)
    b = talk.member("b", "i")
    asked = talk.ask_beat(b, 0, **talk.join_fields())
    talk.refused(a, 82)
    talk.answer(asked, talk.given(b, 2, foo(0)))
    assert talk.settled_rules() == ["E-23"]


@pytest.mark.parametrize("why", ["session", "moved", "away"])
def test_E_18_leaves_a_fence_alone_if_the_instance_id_may_be_free(why: str) -> None:
    talk = Epochs(silence_ms=120_000)
    a = held(talk)
    if why == "session":
        talk.close(a)
        talk.wait(46_000)
        a = a.reconnected()
    elif why == "moved":
        a = moved(talk, a)
    else:
        talk.leaves(a, -2)
    talk.refused(a, 82, epoch=2)
    assert "E-18" not in talk.settled_rules()
    assert talk.rules() == []


# ---------------------------------------------------------------------------------------------------- E-24


def test_E_24_fires_when_a_group_is_deleted_whose_member_lives(talk: Epochs) -> None:
    a = alone(talk)
    talk.beats(a)
    talk.wait(1_000)
    talk.answer(talk.ask_delete(), talk.deleted())
    talk.settle()
    finding = talk.the("E-24")
    assert (finding.severity, finding.certainty, finding.blame, finding.member_id) == ("critical", "confirmed", "broker", "a-id")
    assert "although member a-id" in finding.summary
    over(talk)
    assert talk.the("E-24").status is Status.RESOLVED


@pytest.mark.parametrize("why", ["refused", "left", "leaves", "may have expired", "moved", "a frame is missing"])
def test_E_24_allows_the_deletion_of_a_group_that_may_be_empty(talk: Epochs, why: str) -> None:
    a = alone(talk)
    talk.wait(40_000 if why == "may have expired" else 1_000)
    if why == "left":
        talk.leaves(a)
    if why == "moved":
        talk.refused(a, 16)
    leaves = talk.ask_beat(a, -1) if why == "leaves" else None
    asked = talk.ask_delete()
    if why == "a frame is missing":
        talk.gap()
    talk.answer(asked, talk.deleted(68 if why == "refused" else 0))
    if leaves is not None:
        talk.answer(leaves, talk.given(a, -1))
    assert "E-24" not in talk.settled_rules()


# ---------------------------------------------------------------------------------------------------- E-25


@pytest.mark.parametrize(("asked", "epoch", "what"), [(0, 0, "join"), (0, -1, "join"), (-1, 5, "leave"), (-2, -1, "leave")])
def test_E_25_fires_when_a_join_or_a_leave_is_answered_with_an_epoch_that_it_cannot_have(
    talk: Epochs, asked: int, epoch: int, what: str
) -> None:
    talk.joins(talk.member("z"), 2)
    a = talk.member("a", "i")
    if asked:
        talk.joins(a, 4, foo(0))
    talk.wait(20)
    fields = {} if asked else talk.join_fields()
    talk.call(a, talk.beat_request(a, asked, **fields), talk.given(a, epoch, None if asked else {}))
    finding = talk.the("E-25")
    assert (finding.severity, finding.certainty, finding.blame) == (Severity.ERROR, Certainty.CERTAIN, Blame.BROKER)
    assert finding.summary.startswith(f"The coordinator 1 answered the {what} of ")
    assert finding.summary.endswith(f" in group g with epoch {epoch}, which no coordinator gives there.")
    over(talk)
    assert talk.the("E-25").status is Status.RESOLVED
    assert talk.rules() == ["E-25"]


def test_E_25_leaves_preview_brokers_alone_in_a_new_group_without_topics(talk: Epochs) -> None:
    a = talk.member("a")
    fields = {**talk.join_fields(), "subscribed_topic_names": ()}
    talk.call(a, talk.beat_request(a, 0, **fields), talk.given(a, 0, {}), version=0)
    assert talk.settled_rules() == []

"""Commits and identities in groups with epochs: what a coordinator must refuse, and what a client must not send."""

from __future__ import annotations

import pytest

from coordinator_model.finding import Blame, Severity, Status
from tests.coordinator_model.conversation import Client
from tests.coordinator_model.epoch_groups import alone, commits_in_transaction, lives_on, over, pair
from tests.coordinator_model.epochs import Epochs, foo

COMMITS = {
    "plain": lambda talk, client, epoch: talk.commits(client, epoch=epoch),
    "in a transaction": lambda talk, client, epoch: commits_in_transaction(talk, client, epoch=epoch),
}


# ---------------------------------------------------------------------------------------------------- O-02 and E-20


@pytest.mark.parametrize("how", COMMITS)
def test_O_02_fires_when_a_commit_of_an_id_that_never_joined_is_accepted(talk: Epochs, how: str) -> None:
    a = alone(talk, 1)
    lives_on(talk, a, 1)
    COMMITS[how](talk, talk.member("x"), 1)
    talk.settle()
    finding = talk.the("O-02")
    assert (finding.severity, finding.blame, finding.member_id) == (Severity.CRITICAL, Blame.BROKER, "x-id")
    assert finding.summary.endswith("although that member never joined it.")
    assert talk.rules() == ["O-02"]


@pytest.mark.parametrize("how", COMMITS)
def test_O_02_allows_the_commit_of_an_id_that_may_have_joined_before(talk: Epochs, how: str) -> None:
    a = alone(talk, 5)
    talk.live([a], 70)
    COMMITS[how](talk, talk.member("x"), 5)
    assert talk.settled_rules() == []


@pytest.mark.parametrize("end", ["left", "removed", "fenced"])
def test_O_02_fires_when_a_commit_after_the_end_is_accepted_in_a_transaction(talk: Epochs, end: str) -> None:
    a, _ = pair(talk)
    if end == "left":
        talk.leaves(a)
    elif end == "removed":
        talk.remove(a)
    else:
        talk.beats(a, 3, foo(0))
        talk.wait(10)
        talk.refused(a, 25)
    commits_in_transaction(talk, a, epoch=3)
    talk.settle()
    said = {"left": "left", "removed": "was removed by a LeaveGroup", "fenced": "was told that it is no member"}[end]
    assert f"although that member {said} and has not joined since" in talk.the("O-02").summary
    assert talk.rules() == ["O-02"]


def test_E_20_fires_when_the_commit_of_a_healthy_member_is_refused_as_a_strangers(talk: Epochs) -> None:
    a, _ = pair(talk)
    talk.commits(a, 25)
    talk.settle()
    assert (talk.the("E-20").severity, talk.rules()) == (Severity.ERROR, ["E-20"])
    assert "although it accepted that member" in talk.the("E-20").summary


@pytest.mark.parametrize("why", ["removal under way", "heartbeat under way", "asked to give up", "session over", "moved"])
def test_E_20_allows_a_commit_to_be_refused_as_a_strangers_whose_member_may_be_none(why: str) -> None:
    talk = Epochs(silence_ms=120_000)
    a, b = pair(talk)
    if why == "removal under way":
        talk.ask(talk.client("admin"), talk.leave_request(a))
    elif why == "heartbeat under way":
        talk.ask_beat(a.reconnected(), -1)
    elif why == "asked to give up":
        talk.beats(a, 3, foo(0), owned=foo(0, 1))
    elif why == "session over":
        talk.wait(46_000)
    else:
        talk.refused(b, 16)
    talk.commits(a, 25)
    assert "E-20" not in talk.settled_rules()


@pytest.mark.parametrize("how", COMMITS)
@pytest.mark.parametrize(("asked", "joined"), [(9, 3), (2, 3)])
def test_E_20_fires_on_an_epoch_that_the_member_never_had(talk: Epochs, how: str, asked: int, joined: int) -> None:
    talk.joins(talk.member("z"), 2, {})
    a = alone(talk, joined, held=foo(0))
    talk.beats(a)
    COMMITS[how](talk, a, asked)
    talk.settle()
    assert (talk.the("E-20").severity, talk.rules()) == (Severity.CRITICAL, ["E-20"])


def test_E_20_fires_when_a_commit_without_a_member_is_accepted_while_one_lives(talk: Epochs) -> None:
    a = alone(talk)
    talk.beats(a)
    tool = talk.client("tool")
    talk.commits(tool, epoch=-1)
    talk.settle()
    finding = talk.the("E-20")
    assert (finding.severity, finding.blame, finding.client_id) == (Severity.CRITICAL, Blame.BROKER, "tool")
    assert "a commit of a client that names no member (client tool" in finding.summary
    assert finding.summary.endswith("although the group has members.")
    over(talk)
    assert talk.the("E-20").status is Status.RESOLVED


@pytest.mark.parametrize("why", ["empty", "perhaps empty", "transaction", "refused"])
def test_E_20_allows_a_commit_without_a_member_where_it_is_lawful(talk: Epochs, why: str) -> None:
    a = alone(talk)
    if why == "empty":
        talk.leaves(a)
    elif why == "perhaps empty":
        talk.gap()
    tool = talk.client("tool")
    if why == "transaction":
        commits_in_transaction(talk, tool, epoch=-1)
    else:
        talk.commits(tool, 25 if why == "refused" else 0, epoch=-1)
    assert talk.settled_rules() == (["V-04"] if why == "perhaps empty" else [])


def test_E_20_allows_a_commit_of_a_member_that_took_an_instance_id_while_frames_were_lost(talk: Epochs) -> None:
    """The instance id was left for whoever comes before the gap, so that its new holder looked like a client that has yet to join."""
    a, c = talk.member("a", "i"), talk.member("c")
    talk.joins(a, 2, foo(0))
    talk.joins(c, 3, foo(1))
    talk.leaves(a, -2)
    talk.gap()
    talk.beats(c)
    talk.full(c, 3, foo(1), owned=foo(1))
    successor = talk.member("b", "i")
    talk.commits(successor, epoch=3)
    assert "E-20" not in talk.settled_rules()


def test_E_20_allows_a_commit_of_the_unseen_successor_of_a_classic_member_whose_session_ended(talk: Epochs) -> None:
    """The end of a session is the model's own reckoning: it shows nothing of who took the instance id in the gap before."""
    dies, c, successor = talk.client("a", instance_id="i"), talk.member("c"), talk.member("b", "i")
    talk.joins(c, 2, foo(0))
    talk.classic_join(dies, 3)
    talk.classic_sync(dies)
    talk.close(dies)
    talk.gap()
    talk.full(c, 3, foo(0), owned=foo(0))
    talk.live([c], 80)
    talk.commits(successor, epoch=3)
    assert "E-20" not in talk.settled_rules()


@pytest.mark.parametrize("how", COMMITS)
def test_E_20_allows_every_commit_of_a_member_at_its_epoch(talk: Epochs, how: str) -> None:
    a, b = pair(talk)
    for _ in range(3):
        COMMITS[how](talk, a, 3)
        talk.live([a, b], 5)
    assert talk.settled_rules() == []


# ---------------------------------------------------------------------------------------------------- O-05


def handed_over(talk: Epochs) -> tuple[Client, Client]:
    """Partition 2 was a's, and is b's."""
    a, b = pair(talk)
    talk.commits(b, number=2, version=10)
    return a, b


def test_O_05_fires_when_a_member_goes_on_committing_what_it_gave_up_and_another_owns(talk: Epochs) -> None:
    a, b = handed_over(talk)
    for _ in range(2):
        talk.commits(a, number=2, version=10)
    talk.settle()
    finding = talk.the("O-05")
    assert (finding.severity, finding.blame, finding.member_id) == (Severity.WARNING, Blame.CLIENT, "a-id")
    assert "goes on committing foo-2" in finding.summary
    assert "b-id" in finding.summary
    talk.live([a, b], 70)
    assert talk.the("O-05").status is Status.RESOLVED
    assert talk.rules() == ["O-05"]


def test_O_05_allows_one_commit_that_may_have_been_under_way_and_the_owners(talk: Epochs) -> None:
    a, b = handed_over(talk)
    talk.commits(a, number=2, version=10)
    talk.commits(a, number=0, version=10)
    talk.commits(a, number=2, version=10)
    talk.commits(b, number=2, version=10)
    assert talk.settled_rules() == []


def test_O_05_fires_alike_from_a_restored_model(talk: Epochs) -> None:
    a, _ = handed_over(talk)
    talk.commits(a, number=2, version=10)
    talk.restore()
    talk.commits(a, number=2, version=10)
    assert talk.settled_rules() == ["O-05"]


# ---------------------------------------------------------------------------------------------------- O-01


def test_O_01_fires_in_a_consumer_group_and_stays_open_while_the_commits_are_refused(talk: Epochs) -> None:
    a, b = pair(talk)
    talk.remove(a)
    for _ in range(5):
        talk.commits(a, 25)
        talk.live([b], 5)
    talk.settle()
    assert talk.the("O-01").status is not Status.RESOLVED
    talk.joins(a, 5, foo(0))
    talk.settle()
    assert talk.the("O-01").status is Status.RESOLVED


# ---------------------------------------------------------------------------------------------------- E-14


def test_E_14_fires_when_a_member_is_served_after_a_leave_group_that_was_granted(talk: Epochs) -> None:
    a, _ = pair(talk)
    talk.remove(a)
    talk.beats(a, 3, epoch=3)
    talk.settle()
    assert "although that member was removed by a LeaveGroup" in talk.the("E-14").summary
    assert talk.rules() == ["E-14"]


def test_E_14_leaves_a_heartbeat_alone_that_was_under_way_when_the_leave_group_was_granted(talk: Epochs) -> None:
    a, _ = pair(talk)
    asked = talk.ask_beat(a)
    talk.remove(a)
    talk.answer(asked, talk.given(a, 3))
    talk.beats(a.reconnected(), 3, epoch=3)
    assert "E-14" not in talk.settled_rules()


# ---------------------------------------------------------------------------------------------------- E-23


def test_E_23_fires_when_a_second_process_is_let_in_under_a_held_instance_id(talk: Epochs) -> None:
    a, b = talk.member("a", "i"), talk.member("b", "i")
    talk.joins(a, 2, foo(0, 1))
    talk.beats(a)
    talk.joins(b, 2, foo(0, 1))
    talk.settle()
    finding = talk.the("E-23")
    assert (finding.severity, finding.blame, finding.instance_id, finding.member_id) == (
        Severity.CRITICAL,
        Blame.BROKER,
        "i",
        "b-id",
    )
    assert "although member a-id" in finding.summary
    over(talk)
    assert talk.the("E-23").status is Status.RESOLVED
    assert talk.rules() == ["E-23"]


@pytest.mark.parametrize("why", ["left for a while", "leaves", "session", "moved", "taken unseen", "mid-life"])
def test_E_23_allows_a_successor_where_the_instance_id_may_be_free(talk: Epochs, why: str) -> None:
    a, b = talk.member("a", "i"), talk.member("b", "i")
    talk.joins(a, 2, foo(0, 1))
    leave = None
    if why == "left for a while":
        talk.leaves(a, -2)
    elif why == "leaves":
        leave = talk.ask_beat(a, -2)
    elif why == "session":
        talk.wait(50_000)
    elif why == "moved":
        talk.refused(a, 16)
    elif why == "taken unseen":
        classic = talk.client("c", instance_id="i")
        talk.ask_join(classic)
        talk.close(classic)
    else:
        talk.gap()
        talk.beats(a)
    talk.joins(b, 2, foo(0, 1))
    if leave is not None:
        talk.answer(leave, talk.given(a, -2))
    assert "E-23" not in talk.settled_rules()


# ---------------------------------------------------------------------------------------------------- S-07


def test_S_07_fires_when_one_member_id_names_two_instance_ids(talk: Epochs) -> None:
    a = alone(talk, instance_id="i")
    a.instance_id = "j"
    talk.refused(a, 25)
    talk.settle()
    finding = talk.the("S-07")
    assert (finding.severity, finding.blame, finding.member_id) == (Severity.WARNING, Blame.CLIENT, "a-id")
    assert "as instance i, and names the instance id j in its ConsumerGroupHeartbeat" in finding.summary


def test_S_07_allows_a_static_member_that_names_its_instance_id_only_where_it_says_everything(talk: Epochs) -> None:
    a = alone(talk, instance_id="i")
    a.instance_id = None
    talk.live([a], 20)
    a.instance_id = "i"
    talk.full(a, 2, foo(0, 1), owned=foo(0, 1))
    assert talk.settled_rules() == []


# ---------------------------------------------------------------------------------------------------- E-18 in mid-life


def test_E_18_fires_when_an_instance_id_that_was_released_in_mid_life_is_refused(talk: Epochs) -> None:
    a, c = talk.member("a", "i"), talk.member("c")
    talk.beats(c, 7, epoch=7)
    talk.leaves(a, -2)
    talk.refused_join(talk.member("b", "i"), 111)
    talk.settle()
    assert "with UNRELEASED_INSTANCE_ID, for which there is no reason" in talk.the("E-18").summary


def test_a_static_member_that_left_unseen_before_is_away_for_a_session_and_no_longer(talk: Epochs) -> None:
    c = talk.member("c")
    talk.beats(c, 7, epoch=7)
    talk.leaves(talk.member("a", "i"), -2)
    assert talk.group_json()["state"] == "Reconciling"
    talk.live([c], 70)
    assert talk.group_json()["state"] == "Stable"

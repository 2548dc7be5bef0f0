"""Each kind of advice: what it computes from a history, and when there is none."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator_model.advice import KINDS, MOST, Advice, Saving, advise, proposals
from coordinator_model.advice.history import histories
from coordinator_model.advice.timeouts import LONGER_POLL, LONGER_SESSION
from tests.coordinator_model.advice.told import Event, at, happened, member, read, rebalance, restart, who

OTHERS = ["b.1", "c.1"]


def of_kind(kind: str, events: list[Event]) -> Advice:
    """The best piece of a kind, worth telling or not."""
    [history] = histories(read(events))
    return max(KINDS[kind](history), key=lambda piece: piece.saves)


def rolling(away_s: float = 10.0, **said: Any) -> list[Event]:
    """Three members restart, a minute apart."""
    events = []
    for number, name in enumerate("abc"):
        others = [f"{other}.{2 if other < name else 1}" for other in "abc" if other != name]
        events += restart(name, 1, 60.0 * number, away_s, others, **said)
    return events


def test_static_membership_saves_both_rebalances_of_each_restart_but_not_the_partitions_that_wait() -> None:
    piece = of_kind("static membership", rolling())
    assert len(piece.rebalances) == 6
    assert piece.saves.member_seconds == piece.lost.member_seconds == pytest.approx(3 * (2 * 2 + 3 * 2))
    held = (6 / 2 + 6 / 3) / 2  # partitions of a member, on average
    assert piece.saves.partition_seconds == pytest.approx(max(0.0, 6 * 6 * 2 - 3 * 10 * held))
    assert piece.setting == "group.instance.id = a name for each process that outlives its restart"


def test_static_membership_names_a_session_that_outlasts_the_restarts() -> None:
    piece = of_kind("static membership", rolling(session_timeout_ms=6_000))
    assert piece.setting.endswith("session.timeout.ms=20000")
    assert "20 s instead of 6 s" in piece.costs


def test_static_membership_leaves_the_restarts_some_time_to_spare() -> None:
    piece = of_kind("static membership", rolling(9.7, session_timeout_ms=6_000))
    assert piece.setting.endswith("session.timeout.ms=20000")


def test_members_that_are_static_already_are_not_told_to_become_it() -> None:
    events = [{**event, "instance_id": "i"} if event["kind"] == "member_left" else event for event in rolling(instance_id="i")]
    assert of_kind("static membership", events).rebalances == ()
    assert len(of_kind("no LeaveGroup at a restart", events).rebalances) == 6


def test_who_never_comes_back_and_who_is_new_are_no_restart() -> None:
    gone = [happened("member_left", "x.1", 0, reason=None), rebalance("member left", "x.1", 0, 2, [member("a.1", 0, 2)])]
    assert of_kind("static membership", gone).rebalances == ()
    came = [rebalance("new member", "x.1", 0, 2, [member("a.1", 0, 2), member("x.1", 0, 2, new=True)])]
    assert of_kind("static membership", came).rebalances == ()


def test_a_rebalance_in_which_somebody_else_came_too_would_have_been_all_the_same() -> None:
    events = restart("a", 1, 0.0, 10.0, OTHERS)
    events[-1]["members"].append(member("new.1", 10, 12, new=True))
    assert of_kind("static membership", events).rebalances == (events[1]["id"],)


def test_a_restart_counts_whose_return_alone_is_a_rebalance_of_its_own() -> None:
    """It said “0 restarts took up to 0.0 s”: somebody else went, too, in the rebalance in which it left."""
    events = [*restart("b", 1, 0.0, 10.0, ["a.1", "c.1"]), happened("member_left", "d.1", 0.0, reason=None)]
    piece = of_kind("static membership", events)
    assert len(piece.rebalances) == 1
    assert piece.assumes.startswith("1 restart took up to 10.0 s, ")


def test_a_pause_counts_whose_return_alone_is_a_rebalance_of_its_own() -> None:
    """They said “0 members”: somebody else went, too, in the rebalance in which it left."""
    late, *later = [*restart("b", 1, 0.0, 10.0, ["a.1", "c.1"]), happened("member_left", "d.1", 0.0, reason=None)]
    polled = of_kind(LONGER_POLL, [{**late, "reason": "consumer poll timeout has expired."}, *later])
    assert len(polled.rebalances) == 1
    assert polled.assumes == "1 member left by themselves after 300000 ms without a poll, and came back within 10.0 s."
    paused = of_kind(LONGER_SESSION, [happened("session_over", "b.1", 0.0, silent_since=at(-45)), *later])
    assert len(paused.rebalances) == 1
    assert paused.assumes == "1 member paused for up to 55.0 s and went on."


def test_a_longer_session_is_for_who_pauses_and_goes_on_and_not_for_who_dies() -> None:
    crash = [
        happened("session_over", "a.1", 45, silent_since=at(0)),
        rebalance("session expired", "a.1", 45, 47, [member(one, 45, 47) for one in OTHERS]),
        rebalance("new member", "a.2", 60, 62, [*(member(one, 60, 62) for one in OTHERS), member("a.2", 60, 62, new=True)]),
    ]
    died = [*crash, happened("connection_closed", "a.1", 0)]
    assert of_kind(LONGER_SESSION, died).rebalances == ()
    assert len(of_kind("static membership", died).rebalances) == 2
    assert of_kind("static membership", crash).rebalances == ()
    assert len(of_kind(LONGER_SESSION, crash).rebalances) == 2  # its connection stayed open
    paused = [*died, happened("member_fenced", "a.1", 55, error="UNKNOWN_MEMBER_ID", api="Heartbeat")]
    piece = of_kind(LONGER_SESSION, paused)
    assert (len(piece.rebalances), piece.saves.member_seconds) == (2, 10.0)
    assert piece.setting == "session.timeout.ms=90000"  # 55 s, and a fifth more


def test_a_shorter_session_saves_what_others_waited_for_a_dead_member() -> None:
    vain = {**who("a.1"), "why": "not rejoined", "waited_ms": 40_000, "came": False}
    lost = {**member("a.1", 0, 0), "stopped_at": at(0)}
    members = [member("b.1", 5, 45), member("x.1", 5, 45, new=True)]
    events = [rebalance("new member", "x.1", 5, 45, members, never_came_back=[lost], waited_for=[vain])]
    piece = of_kind("shorter session timeout", events)
    assert piece.setting == "session.timeout.ms=6000"
    assert piece.saves.member_seconds == 2 * 39.0


def test_a_longer_poll_interval_is_for_java_members_that_say_why_they_leave() -> None:
    assert of_kind(LONGER_POLL, rolling()).rebalances == ()
    late = [{**one, "reason": "consumer poll timeout has expired."} if one["kind"] == "member_left" else one for one in rolling()]
    piece = of_kind(LONGER_POLL, late)
    assert len(piece.rebalances) == 6
    assert piece.setting.startswith("max.poll.interval.ms=372000")  # 300 s and 10 s, and a fifth more


def test_a_shorter_rebalance_timeout_saves_what_all_waited_for_one_that_never_came() -> None:
    vain = {**who("a.1"), "why": "not rejoined", "waited_ms": 300_000, "came": False}
    events = [rebalance("new member", "b.1", 0, 300, [member("b.1", 0, 300), member("c.1", 0, 300)], waited_for=[vain])]
    piece = of_kind("shorter rebalance timeout", events)
    assert piece.setting == "max.poll.interval.ms=45000"
    assert piece.saves.member_seconds == 2 * 255.0


def test_an_initial_delay_gathers_members_that_come_one_after_the_other() -> None:
    first = rebalance("new member", "a.1", 0, 3, [member("a.1", 0, 3, new=True)])
    crowd = [member(f"n{number}.1", 3.1, 13.1, new=True) for number in range(10)]
    second = rebalance("new member", "n0.1", 3.1, 13.1, [member("a.1", 3.1, 13.1), *crowd])
    piece = of_kind("initial rebalance delay", [first, second])
    assert len(piece.rebalances) == 2
    assert piece.setting == "group.initial.rebalance.delay.ms=5000 of the brokers"  # which is prolonged once, to 10 s
    assert piece.saves.member_seconds == pytest.approx(3 + 11 * 10 - (10 + 10 * 6.9))


def test_the_cooperative_protocol_saves_what_stayed_and_a_new_member_waits_twice() -> None:
    new = [rebalance("new member", "c.1", 0, 2, [member("a.1", 0, 2), member("b.1", 0, 2), member("c.1", 0, 2, new=True)])]
    piece = of_kind("cooperative protocol", new)
    assert piece.saves.member_seconds == 2 * 2 - 2
    assert piece.saves_least.member_seconds == 0
    assert piece.saves_most.member_seconds == 2 * 2  # the new member finds a place that is free
    cooperative = [{**new[0], "assignor": "cooperative-sticky"}]
    assert list(KINDS["cooperative protocol"](histories(read(cooperative))[0])) == []


def test_the_consumer_protocol_saves_all_but_a_heartbeat_of_each_new_member() -> None:
    members = [*(member(f"{n}.1", 0, 4) for n in range(5)), member("c.1", 0, 4, new=True)]
    piece = of_kind("consumer protocol", [rebalance("new member", "c.1", 0, 4, members)])
    assert piece.saves.member_seconds == 6 * 4 - 5
    back = of_kind("consumer protocol", restart("a", 1, 0.0, 2.5, OTHERS))  # two others had taken one partition each, or not yet
    assert back.saves.member_seconds == pytest.approx(4 + 6 - 5 * 0.5**2)
    assert back.saves_least.member_seconds == 10 - 5
    assert back.saves_most.member_seconds == 10
    python = [{**one, "client_software": "kafka-python 3.0.0"} for one in members]
    history = histories(read([rebalance("new member", "c.1", 0, 4, python)]))[0]
    assert list(KINDS["consumer protocol"](history)) == []


def test_a_restart_together_is_worth_it_only_if_partitions_wait_no_longer() -> None:
    piece = of_kind("restart together", rolling(3.0))
    assert piece.saves.member_seconds == pytest.approx(30 - 3 * 3.5)
    assert piece.saves.partition_seconds == pytest.approx(72 - 6 * 6.5)
    assert of_kind("restart together", rolling()).rebalances == ()  # of 10 s: 81 partition-seconds instead of 72


def test_steps_of_an_autoscaler_become_one() -> None:
    events = [
        rebalance(
            "new member",
            f"n{n}.1",
            60.0 * n,
            60.0 * n + 2,
            [member("a.1", 60 * n, 60 * n + 2), member(f"n{n}.1", 60 * n, 60 * n + 2, new=True)],
        )
        for n in range(4)
    ]
    piece = of_kind("fewer scale steps", events)
    assert piece.saves.member_seconds == 3 * 2 * 2
    assert piece.saves_most == piece.saves
    assert piece.saves_least.member_seconds == 3 * 2  # the new members wait all the same
    assert of_kind("fewer scale steps", events[:2]).rebalances == ()


def test_there_are_three_pieces_at_most_the_one_that_saves_most_first() -> None:
    events = rolling(3.0)
    assert len(proposals(histories(read(events))[0])) > MOST
    pieces = advise(read(events))
    assert len(pieces) == MOST
    assert pieces[0].kind == "static membership"
    assert sorted((one.saves for one in pieces), reverse=True) == [one.saves for one in pieces]


def test_a_saving_is_bounded_by_nothing_and_by_what_was_lost() -> None:
    assert Saving(-1.0, 5.0).within(Saving(3.0, 4.0)) == Saving(0.0, 4.0)


def test_a_group_that_lost_next_to_nothing_gets_no_advice() -> None:
    quick = [rebalance("new member", "a.1", 0, 0.1, [member("a.1", 0, 0.1), member("b.1", 0, 0.1, new=True)])]
    assert advise(read(quick)) == ()


def test_what_may_save_nothing_is_no_advice() -> None:
    """Each of four new members may wait for a heartbeat of 5 s, which is all that the group lost."""
    members = [member("a.1", 0, 4), *(member(f"n{number}.1", 0, 4, new=True) for number in range(4))]
    events = [rebalance("new member", "n0.1", 0, 4, members)]
    assert of_kind("consumer protocol", events).saves_most.member_seconds == 20
    assert "consumer protocol" not in {piece.kind for piece in proposals(histories(read(events))[0])}
    fewer = [rebalance("new member", "n0.1", 0, 4, members[:2])]
    assert "consumer protocol" in {piece.kind for piece in proposals(histories(read(fewer))[0])}


def test_rebalances_of_a_brokers_log_have_no_cost_and_so_no_advice() -> None:
    assert advise(read({**one, "cost_member_seconds": None} for one in rolling() if one["kind"] == "rebalance_finished")) == ()


def found(rule: str, from_s: float, to_s: float | None, first_frame_s: float, group: str = "g", **said: str) -> Event:
    """A published finding, with a frame as evidence."""
    over = None if to_s is None else at(to_s)
    known = {"rule": rule, "cluster": "c", "group": group, "opened_at": at(from_s), "resolved_at": over}
    return {**known, "blame": "client", "severity": "warning", "evidence": [{"at": at(first_frame_s)}], **said}


def test_rebalances_in_the_time_of_a_finding_that_explains_them_do_not_count() -> None:
    events = rolling()  # three restarts, a minute apart
    assert len(advise(read(events))[0].rebalances) == 6
    [piece, *_] = advise(read(events), [found("T-10", 70, 80, 55)])  # its first frame is older than it
    over = [one for one in events if one["kind"] == "rebalance_finished"]
    assert piece.rebalances == tuple(one["id"] for one in over if one["at"] < at(55) or one["began_at"] > at(80))
    assert len(piece.rebalances) == 4
    assert advise(read(events), [found("R-26", 5, None, -5)]) == ()  # it is open: nothing is left
    assert advise(read(events), [found("C-03", 5, None, -5, blame="broker", severity="error")]) == ()
    for rule in ("C-04", "C-14"):
        assert advise(read(events), [found(rule, 5, None, -5, blame="broker")]) == ()


@pytest.mark.parametrize(
    "other",
    [
        found("T-04", -5, None, -5),
        found("R-26", -5, None, -5, group="other"),
        found("R-24", -5, None, -5),
        found("T-06", -5, None, -5, blame="broker"),
        found("C-14", -5, None, -5, blame="broker", severity="info"),
        found("M-01", -5, None, -5, severity="error"),
    ],
)
def test_rebalances_count_while_a_finding_is_open_that_explains_them_not(other: Event) -> None:
    events = rolling()
    assert advise(read(events), [other]) == advise(read(events))

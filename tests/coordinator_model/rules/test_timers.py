"""Timer rules: which groups they are spared, for they hold nothing of what a rule speaks of, and how their findings are counted."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from coordinator_model.coordinator import Coordinator
from coordinator_model.finding import Status
from coordinator_model.groups.group import STEADY_US
from coordinator_model.rule_engine import timers_for
from coordinator_model.rules import TIMER_RULES
from tests.coordinator_model.classic import complete, live, settled
from tests.coordinator_model.conversation import Conversation
from tests.coordinator_model.reference.history import Plan, plans
from tests.coordinator_model.reference.unlawful import ACTS, Unlawful, lived
from tests.coordinator_model.rules.generations import join, parts, share_out


@given(plan=plans(), act=st.sampled_from([None, *ACTS]), seed=st.integers(0, 2**32 - 1))
def test_a_rule_that_is_spared_has_nothing_to_say(plan: Plan, act: type[Unlawful] | None, seed: int) -> None:
    random = Random(seed)
    history = lived(plan, act, random)
    model = Coordinator(topic="mirror", partition=0)
    for record in history.records:
        model.receive(record)
        for key in model.groups:
            group, _ = model.groups.opened(key)
            spared = [rule for rule in TIMER_RULES if isinstance(group, rule.groups) and rule not in timers_for(group)]
            assert [rule.id for rule in spared if any(rule.due(group))] == []


@given(plan=plans(), act=st.sampled_from([None, *ACTS]), seed=st.integers(0, 2**32 - 1))
def test_a_group_is_looked_at_within_15_s_of_what_falls_due(plan: Plan, act: type[Unlawful] | None, seed: int) -> None:
    model = Coordinator(topic="mirror", partition=0)
    for record in lived(plan, act, Random(seed)).records:
        model.receive(record)
        for key in model.groups:
            group, _ = model.groups.opened(key)
            before_us = (model._scheduler.due_us(key) or 0) - STEADY_US
            dues = [(rule.id, due) for rule in timers_for(group) for due in rule.due(group)]
            assert [due for due in dues if max(due[1].at_us, model.now_us) < before_us] == []


def test_a_quiet_group_is_looked_at_by_less_than_half_of_them():
    model = Coordinator(topic="mirror", partition=0)
    group, _ = model.groups.opened(("c", "g"))
    assert 2 * len(timers_for(group)) < len(TIMER_RULES)


def test_a_group_that_all_members_have_left_is_looked_at_each_ten_minutes(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.wait(30_000)
    assert _looked_at_in_s(talk) <= 15
    talk.leave(a)
    talk.leave(b)
    talk.wait(120_000)
    assert 400 < _looked_at_in_s(talk) <= 600


def _looked_at_in_s(talk: Conversation) -> float:
    due_us = talk.model._scheduler.due_us(("c1", talk.group))
    assert due_us is not None
    return (due_us - talk.now_us) / 1_000_000


# ---------------------------------------------------------------------------------------------------- counting


def test_a_finding_of_a_timer_is_counted_and_brought_up_to_date_with_each_occurrence(talk: Conversation) -> None:
    """It stayed at count 1 with the generation that it was first seen at."""
    a, b = settled(talk)
    share_out(talk, [a, b], {a: parts(0), b: parts(0)})
    talk.settle()
    opened = talk.the("A-03")
    for generation in (4, 5):
        talk.wait(3_000)
        join(talk, [a, b], generation)
        share_out(talk, [a, b], {a: parts(0), b: parts(0)})
    talk.settle()
    last = next(known for known in talk.model.groups.opened(("c1", "g"))[1].open.values() if known.rule == "A-03")
    assert (opened.count, opened.generation) == (1, 3)
    assert (last.count, last.generation, last.updated_us > opened.updated_at_us + 6_000_000) == (3, 5, True)
    told = [(event.status, event.count, event.generation) for event in talk.findings if event.rule == "A-03"]
    assert told == [(Status.OPEN, 1, 3), (Status.UPDATE, 2, 4)]


def test_two_join_phases_that_drag_on_are_two_occurrences_of_one_finding(talk: Conversation) -> None:
    a, b = settled(talk)
    asked = talk.ask_join(a)
    live(talk, [b], 15)
    complete(talk, (asked, talk.ask_join(b)), 4, a, [a, b])
    talk.ask_join(a)
    live(talk, [b], 15)
    finding = talk.the("R-01")
    assert (finding.status, finding.count, finding.generation) == (Status.UPDATE, 2, 4)


def test_what_stands_is_one_occurrence_however_often_it_is_looked_at(talk: Conversation) -> None:
    a, b = settled(talk)
    share_out(talk, [a, b], {a: parts(0), b: parts(0)})
    live(talk, [a, b], 30)
    assert (talk.the("A-03").status, talk.the("A-03").count) == (Status.OPEN, 1)


def test_each_request_of_a_member_from_the_future_and_of_a_simple_committer_is_counted(talk: Conversation) -> None:
    a, b = settled(talk)
    tool = talk.client("tool")
    for _ in range(4):
        talk.heartbeat(a, 22, generation=9)
        talk.commit(tool, generation_id_or_member_epoch=-1)
        live(talk, [a, b], 2)
    assert {rule: talk.the(rule).count for rule in talk.rules()} == {"G-07": 4, "O-04": 4}

"""How findings are counted, updated and folded, whatever the rule."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator_model.finding import Finding, Severity, Status
from coordinator_model.groups.records import ClientInfo
from coordinator_model.open_findings import OpenFindings
from coordinator_model.rules import CATALOGUE
from coordinator_model.rules.base import Breach
from tests.coordinator_model.classic import complete, live, settled, static_group
from tests.coordinator_model.conversation import Client, Conversation


def told(talk: Conversation, rule: str) -> list[tuple[Status, int]]:
    """Each event of a rule, with the count that it gives."""
    return [(finding.status, finding.count) for finding in talk.findings if finding.rule == rule]


def reported(findings: OpenFindings, rule: str, at_us: int, summary: str, **fields: Any) -> list[Finding]:
    """What is said of a breach of a rule, with its fields."""
    breach = Breach("", summary, "none", (), **fields)
    return list(findings.report(CATALOGUE[rule], breach, at_us=at_us, hold_us=0, incarnation=1, group_type="classic"))


def test_a_finding_that_recurs_is_updated_in_ever_longer_steps(talk: Conversation) -> None:
    """Neither each time, which floods who reads it, nor never, which hides that it goes on."""
    a, _ = settled(talk)
    for _ in range(20):
        talk.heartbeat(a, 35)  # P-09, which is certain, and so told at once
    updates = [(Status.UPDATE, count) for count in (2, 4, 8, 16)]
    assert told(talk, "P-09") == [(Status.OPEN, 1), *updates]
    talk.wait(61_000)
    assert told(talk, "P-09") == [(Status.OPEN, 1), *updates, (Status.RESOLVED, 20)]


def test_a_finding_that_is_held_back_says_how_often_it_happened_meanwhile(talk: Conversation) -> None:
    """The doublings before it is told are not told one by one."""
    a, b = settled(talk)
    talk.round([a, b], 4)
    a.generation = 3
    for _ in range(5):
        talk.heartbeat(a)  # G-02, which waits for a late frame that may explain it
    assert talk.findings == []
    talk.settle()
    assert told(talk, "G-02") == [(Status.OPEN, 5)]


def test_a_finding_names_whom_its_newest_occurrence_names() -> None:
    """One that began with one member, and is about several by now, blames none of them; its words name them all."""
    findings = OpenFindings("c1", "g")
    actor = ClientInfo("a", "10.0.0.1:40000", "", "a#1")

    [opened] = reported(findings, "R-01", 1, "Members are missing.", actor=actor, member_id="a-1", instance_id="i")
    [updated] = reported(findings, "R-01", 2, "Members are missing.")
    assert (opened.client_id, opened.member_id, opened.instance_id) == ("a", "a-1", "i")
    assert (updated.status, updated.client_id, updated.client_address) == (Status.UPDATE, None, None)
    assert (updated.member_id, updated.instance_id) == (None, None)


def test_a_finding_that_goes_on_more_mildly_keeps_the_words_that_bear_out_its_severity() -> None:
    """An error that by now tells of what deserves a warning would be believed no more."""
    findings = OpenFindings("c1", "g")
    mild = {"summary": "More than restarts explain.", "severity": Severity.WARNING}
    actor = ClientInfo("a", "10.0.0.1:40000", "", "a#1")

    [opened] = reported(findings, "R-06", 1, **mild)
    [worse] = reported(findings, "R-06", 2, "One client starts them all.", severity=Severity.ERROR, actor=actor, generation=7)
    assert reported(findings, "R-06", 3, **mild, generation=8) == []
    [again] = reported(findings, "R-06", 4, **mild, generation=9)
    assert (opened.severity, opened.summary, opened.client_id) == (Severity.WARNING, "More than restarts explain.", None)
    for one in (worse, again):
        assert (one.severity, one.summary) == (Severity.ERROR, "One client starts them all.")
        assert (one.client_id, one.generation) == ("a", 7)
    assert (worse.count, again.count, again.updated_at_us) == (2, 4, 4)


def takes(talk: Conversation, leader: Client, name: str, instance_id: str) -> Client:
    """A process takes over an instance within generation 3."""
    client = talk.client(name, instance_id=instance_id)
    talk.joined(talk.ask_join(client), generation=3, leader=leader, roster=[], member_id=f"{instance_id}-{client.connection}")
    talk.call(client, talk.sync_request(client, []), talk.synced())
    return client


def two_fence_each_other(talk: Conversation, leader: Client, first: Client) -> tuple[Client, Client]:
    """S-01 of instance i. Who holds it, and who was fenced last."""
    second = takes(talk, leader, "two", "i")
    talk.heartbeat(first, 82)
    again = takes(talk, leader, "one", "i")
    talk.heartbeat(second, 82)
    return again, second


def ignores_fence(talk: Conversation, fenced: Client, living: list[Client]) -> None:
    """What S-02 speaks of."""
    live(talk, living, 4)
    for _ in range(3):
        talk.heartbeat(fenced, 82)
        live(talk, living, 2)


def test_what_goes_on_after_it_was_fenced_folds_under_two_processes_of_its_instance(talk: Conversation) -> None:
    """S-01 speaks of the instance id, S-02 of a member: they meet in the instance id that the latter names."""
    leader, first = static_group(talk)
    holder, fenced = two_fence_each_other(talk, leader, first)
    ignores_fence(talk, fenced, [leader, holder])
    assert talk.rules() == ["S-01"]


def test_what_goes_on_after_it_was_fenced_does_not_fold_under_another_instance(talk: Conversation) -> None:
    """The twin of the above."""
    leader, first, other = talk.client("lead"), talk.client("one", instance_id="i"), talk.client("other", instance_id="j")
    talk.round([leader, first, other], 3)
    holder, _ = two_fence_each_other(talk, leader, first)
    successor = takes(talk, leader, "successor", "j")
    talk.heartbeat(other, 82)
    ignores_fence(talk, other, [leader, holder, successor])
    assert talk.rules() == ["S-01", "S-02"]


def test_a_breach_says_what_to_do_about_the_cause_that_was_found() -> None:
    known = OpenFindings("c1", "g")
    rule = CATALOGUE["P-09"]
    for action in (None, "Upgrade the broker.", None):
        breach = Breach("a", "", "", (), action=action)
        told = known.report(rule, breach, at_us=1, hold_us=0, incarnation=1, group_type="classic")
        assert [finding.action for finding in told] in ([action or rule.action], [])
        assert known.open["P-09", "a"].action == action


def test_an_effect_folds_under_its_cause_whatever_member_id_the_client_has_by_now() -> None:
    findings = OpenFindings("c1", "g")
    looping, other = ClientInfo("a", "10.0.0.1:40000", "", "a#1"), ClientInfo("b", "10.0.0.1:40001", "", "b#1")
    again = looping._replace(address="10.0.0.1:40002", connection="a#2")

    def said(rule: str, subject: str, actor: ClientInfo) -> list[str]:
        breach = Breach(subject, "It loops.", "none", (), actor=actor, member_id=subject)
        reported_now = findings.report(CATALOGUE[rule], breach, at_us=1, hold_us=0, incarnation=1, group_type="classic")
        return [finding.rule for finding in reported_now]

    assert said("T-05", "a-1", looping) == ["T-05"]
    assert said("R-03", "a-2", again) == []
    assert said("R-07", "a-3", again) == []
    assert said("R-03", "b-1", other) == ["R-03"]


def joins_and_does_not_sync(talk: Conversation, leader: Client, client: Client, generation: int) -> None:
    """One client takes part under a new id, and never asks for its assignment."""
    client.member_id = ""
    talk.hand_out_id(client, f"{client.name}-{generation}")
    new = talk.ask_join(client)
    talk.heartbeat(leader, 27)
    complete(talk, (talk.ask_join(leader), new), generation, leader, [leader, client])
    talk.call(leader, talk.sync_request(leader, [leader, client]), talk.synced())
    live(talk, [leader, client], 12)


@pytest.mark.parametrize("leaves", [False, True])
def test_R_03_of_one_client_that_comes_with_another_id_each_time_is_one_finding(talk: Conversation, *, leaves: bool) -> None:
    """Without a cause that is open, under which it would fold."""
    leader, client = settled(talk)
    for generation in range(4, 7):
        joins_and_does_not_sync(talk, leader, client, generation)
        if leaves:
            talk.leave(client)
            talk.wait(2_000)
    assert len({finding.id for finding in talk.findings}) == 1
    over = [(Status.RESOLVED, 1)] if leaves else []
    assert told(talk, "R-03") == [(Status.OPEN, 1), *over, (Status.UPDATE, 2)]
    assert talk.rules() == ["R-03"]

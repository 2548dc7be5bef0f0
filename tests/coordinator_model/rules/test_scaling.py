"""Family R, fourth part: groups that are made larger and smaller again and again."""

from __future__ import annotations

from coordinator_model.finding import Blame, Severity, Status
from tests.coordinator_model.classic import live, settled
from tests.coordinator_model.conversation import Client, Conversation
from tests.coordinator_model.epochs import Epochs, foo
from tests.coordinator_model.rules.loops import arrives, departs, flaps, restarts


def steps(
    talk: Conversation,
    base: list[Client],
    generation: int,
    times: int,
    *,
    pods: int = 2,
    name: str = "pod-{}",
    high_s: int = 20,
    low_s: int = 20,
    stretch: int = 1,
) -> int:
    """New clients join one after the other, and leave again after a while; the base stays.

    :param stretch: by what the times are multiplied from each cycle to the next.
    """
    for cycle in range(times):
        added: list[Client] = []
        for _ in range(pods):
            generation += 1
            pod = talk.client(name.format(generation))
            arrives(talk, pod, [*base, *added], generation)
            added.append(pod)
        live(talk, [*base, *added], high_s * stretch**cycle)
        while added:
            generation += 1
            pod = added.pop()
            departs(talk, pod, [*base, *added], generation)
            talk.close(pod)
        live(talk, base, low_s * stretch**cycle)
    return generation


def test_R_24_warns_of_clients_that_come_and_go_in_a_rhythm(talk: Conversation) -> None:
    base = settled(talk, generation=3)
    generation = steps(talk, base, 3, 2)
    assert "R-24" not in talk.rules()
    steps(talk, base, generation, 1)
    finding = talk.the("R-24")
    assert (finding.severity, finding.blame, finding.member_id) == (Severity.WARNING, Blame.CONFIG, None)
    assert "between 2 and 4 members: 3 times since" in finding.summary
    assert "every 40." in finding.summary
    assert "member-seconds" in finding.summary
    assert "as pod-12 at 10.0.0.1, pod-13 at 10.0.0.1 went" in finding.observed
    assert "several times 40." in finding.action
    assert "they stayed for 20." in finding.action
    assert len(finding.evidence) == 6
    assert talk.rules() == ["R-24"]


def test_R_24_covers_the_storm_that_the_steps_make(talk: Conversation) -> None:
    """Twenty generations in five minutes, each begun by another client, which R-06 took for as many restarts."""
    base = settled(talk, generation=3)
    steps(talk, base, 3, 9, high_s=10, low_s=10)
    assert talk.rules() == ["R-24"]


def test_R_06_does_not_count_each_client_that_came_and_went_as_one_more_that_may_restart(talk: Conversation) -> None:
    """Without R-24, which covers it, the storm would be told."""
    base = settled(talk, generation=3)
    generation = steps(talk, base, 3, 9, high_s=10, low_s=10)
    _group, open_findings = talk.model.groups.opened(("c1", "g"))
    open_findings.open.clear()
    steps(talk, base, generation, 1, high_s=10, low_s=10)
    assert talk.rules() == ["R-24", "R-06"]


def test_R_24_is_resolved_when_the_number_of_members_stays(talk: Conversation) -> None:
    base = settled(talk, generation=3)
    steps(talk, base, 3, 3)
    live(talk, base, 130)
    finding = talk.the("R-24")
    assert finding.status is Status.RESOLVED


def test_R_24_needs_a_rhythm_unless_it_happens_five_times(talk: Conversation) -> None:
    base = settled(talk, generation=3)
    generation = steps(talk, base, 3, 4, high_s=2, low_s=2, stretch=3)
    assert "R-24" not in talk.rules()
    steps(talk, base, generation, 1, name="late-{}", high_s=400, low_s=400)
    assert "5 times" in talk.the("R-24").summary


def test_R_24_does_not_take_a_client_that_comes_back_for_a_new_one(talk: Conversation) -> None:
    a, b = settled(talk)
    flaps(talk, talk.client("c"), [a, b], 3, 6)
    assert talk.settled_rules() == ["R-07"]


def test_R_24_does_not_count_clients_that_cannot_be_told_from_others(talk: Conversation) -> None:
    base = settled(talk, generation=3)
    steps(talk, base, 3, 5, name="a")
    assert "R-24" not in talk.rules()


def test_R_24_is_quiet_in_a_rolling_restart_under_new_names(talk: Conversation) -> None:
    clients = settled(talk, ("a", "b", "c"))
    generation = restarts(talk, clients, 3, ["d", "e", "f"])
    restarts(talk, clients, generation, ["g", "h", "i"])
    assert talk.rules() == []


def test_R_24_is_quiet_in_deployments_with_a_spare_member(talk: Conversation) -> None:
    """Each new client comes before an old one goes, three deployments in a row."""
    clients, generation = settled(talk, ("a", "b", "c")), 3
    for number in range(9):
        new = talk.client(f"new-{number}")
        generation += 1
        arrives(talk, new, clients, generation)
        live(talk, [*clients, new], 5)
        generation += 1
        departs(talk, clients[0], [*clients[1:], new], generation)
        talk.close(clients[0])
        clients = [*clients[1:], new]
        live(talk, clients, 5)
    assert talk.rules() == []


def test_R_24_does_not_count_clients_that_die(talk: Conversation) -> None:
    base, generation = settled(talk, generation=3), 3
    for number in range(4):
        pod = talk.client(f"pod-{number}")
        generation += 1
        arrives(talk, pod, base, generation)
        live(talk, [*base, pod], 10)
        talk.close(pod)
        live(talk, base, 14)
        generation += 1
        talk.round(base, generation)
        live(talk, base, 10)
    assert "R-24" not in talk.rules()


def test_R_24_is_quiet_about_a_job_that_runs_at_times_and_leaves_its_group_empty(talk: Conversation) -> None:
    for number in range(5):
        (job,) = settled(talk, (f"job-{number}",), generation=2 * number + 1)
        live(talk, [job], 10)
        talk.leave(job)
        talk.close(job)
        talk.wait(20_000)
    assert talk.rules() == []


def test_R_24_begins_anew_after_a_gap(talk: Conversation) -> None:
    base = settled(talk, generation=3)
    generation = steps(talk, base, 3, 2)
    talk.gap()
    talk.round(base, generation + 1)
    steps(talk, base, generation + 1, 2)
    assert "R-24" not in talk.rules()


def test_R_24_warns_of_a_group_of_the_consumer_protocol_too(talk: Epochs) -> None:
    base = talk.member("base")
    talk.joins(base, 1, foo(0, 1, 2, 3))
    epoch = 1
    for number in range(4):
        first, second = talk.member(f"pod-{number}-1"), talk.member(f"pod-{number}-2")
        talk.joins(first, epoch + 1)
        talk.joins(second, epoch + 2)
        epoch += 2
        talk.beats(base, epoch - 2, foo(0, 1))
        talk.beats(base, epoch, owned=foo(0, 1))
        talk.beats(first, epoch, foo(2))
        talk.beats(second, epoch, foo(3))
        for _ in range(3):
            talk.wait(5_000)
            for client in (base, first, second):
                talk.beats(client)
        talk.leaves(first)
        talk.leaves(second)
        epoch += 2
        talk.wait(5_000)
        talk.beats(base, epoch, foo(0, 1, 2, 3))
        for _ in range(3):
            talk.wait(5_000)
            talk.beats(base)
    finding = talk.the("R-24")
    assert "between 1 and 3 members: 4 times" in finding.summary
    assert "as pod-3-1 at 10.0.0.1, pod-3-2 at 10.0.0.1 went" in finding.observed


def test_R_24_does_not_count_clients_that_an_operator_removes(talk: Conversation) -> None:
    base, generation = settled(talk), 3
    for number in range(4):
        pod = talk.client(f"pod-{number}")
        generation += 1
        arrives(talk, pod, base, generation)
        talk.remove(pod)
        generation += 1
        talk.round(base, generation)
    assert talk.settled_rules() == []

"""Family R, seventh part: workers of one Connect group that read other configurations, or have one address."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator_model import wire
from coordinator_model.finding import Blame, Severity, Status
from tests.coordinator_model.classic import complete, live
from tests.coordinator_model.conversation import Client, Conversation

NOTHING = -1
UNKNOWN_MEMBER_ID = 25
SESSION_MS = 10_000


class Worker:
    """A Connect worker: each round it joins with what it has read of its config topic, and is assigned by its leader."""

    def __init__(self, talk: Conversation, name: str, offset: int) -> None:
        talk.protocol_type, talk.protocol = "connect", "sessioned"
        self.talk = talk
        self.client = talk.client(name)
        self.url = f"http://{name}:8083/"
        self.offset = offset

    def offers(self) -> dict[str, Any]:
        state = wire.encode_connect_worker_state(wire.ConnectWorkerState(url=self.url, config_offset=self.offset))
        return {"protocols": (wire.JoinGroupRequestProtocol(name="sessioned", metadata=state),), "session_timeout_ms": SESSION_MS}

    def joins(self, generation: int, leader: Client, roster: list[Client]) -> None:
        self.talk.joined(self.talk.ask_join(self.client, **self.offers()), generation=generation, leader=leader, roster=roster)

    def is_assigned(self, offset: int, error: int = 0) -> None:
        """Sync, and get an assignment for this offset."""
        found = wire.ConnectAssignment(error=error, leader="leader", leader_url="http://a:8083/", config_offset=offset)
        answer = self.talk.synced()
        answer.assignment = wire.encode_connect_assignment(found)
        self.talk.call(self.client, self.talk.sync_request(self.client, []), answer)


def pair(talk: Conversation, ahead: int = 7, late: int = 2) -> tuple[Worker, Worker]:
    """Two workers of one generation, the first of which leads."""
    a, b = Worker(talk, "a", ahead), Worker(talk, "b", late)
    for worker in (a, b):
        worker.client.member_id = f"{worker.client.name}-id"
    rebalance(a, b)
    return a, b


def rebalance(*workers: Worker, asked: int | None = None, error: int = 0) -> None:
    """All join another generation, and are assigned for the largest of their offsets."""
    talk, clients = workers[0].talk, [worker.client for worker in workers]
    asked = max(worker.offset for worker in workers) if asked is None else asked
    generation = max(1, clients[0].generation + 1)
    waiting = [talk.ask_join(worker.client, **worker.offers()) for worker in workers]
    complete(talk, waiting, generation, clients[0], clients)
    for worker in workers:
        worker.is_assigned(asked, error)


def go_round(a: Worker, b: Worker, times: int, every_ms: int = 1_000, asked: int = 7) -> None:
    """The second joins the generation that it has, again and again, while the first heartbeats."""
    for _ in range(times):
        b.joins(b.client.generation, a.client, [a.client, b.client])
        b.is_assigned(asked)
        a.talk.heartbeat(a.client)
        a.talk.heartbeat(b.client)
        a.talk.wait(every_ms)


def test_R_27_fires_on_a_worker_that_never_reads_what_it_is_assigned_for(talk: Conversation) -> None:
    a, b = pair(talk)
    go_round(a, b, 20)
    talk.settle()
    finding = talk.the("R-27")
    assert (finding.severity, finding.blame, finding.member_id, finding.status) == (
        Severity.ERROR,
        Blame.CONFIG,
        None,
        Status.UPDATE,
    )
    assert finding.summary.startswith(
        "Worker http://b:8083/ (b at 10.0.0.1) of the Connect group g stays behind the others: each of its JoinGroups says that it has read "
        "its config topic up to offset 2, while assignments are made for offset 7. It starts nothing of what it is assigned, and joins again "
        "without end."
    )
    assert finding.observed.startswith("17 JoinGroups since ")
    assert finding.observed.endswith("; others read further: http://a:8083/ (a at 10.0.0.1)")
    assert {frame.frame.partition(" member")[0] for frame in finding.evidence} == {"JoinGroup v9 request"}


def test_R_27_fires_on_a_worker_that_read_nothing_and_comes_back_as_a_new_member(talk: Conversation) -> None:
    """Its session ends, as it does nothing but join: the JoinGroups after that still count."""
    a, b = pair(talk, late=NOTHING)
    for generation in range(3):
        go_round(a, b, 4)
        talk.refuse_join(talk.ask_join(b.client, **b.offers()), UNKNOWN_MEMBER_ID)
        b.client.member_id = f"b-id-{generation}"
        rebalance(a, b)
    go_round(a, b, 4)
    talk.settle()
    assert "has read nothing of its config topic, while assignments are made for offset 7" in talk.the("R-27").summary


def test_R_27_says_that_nobody_is_assigned_anything_when_the_leader_is_behind(talk: Conversation) -> None:
    a, b = pair(talk, ahead=1, late=8)
    for _ in range(8):
        rebalance(a, b, asked=8, error=1)
        talk.wait(3_000)
    talk.settle()
    finding = talk.the("R-27")
    assert "Worker http://a:8083/ (a at 10.0.0.1) of" in finding.summary
    assert "The leader has read too little itself, and assigns nothing to anybody." in finding.summary
    assert "which had the error CONFIG_MISMATCH; others read further: http://b:8083/" in finding.observed


def test_R_27_names_all_that_stay_behind(talk: Conversation) -> None:
    workers = [Worker(talk, name, offset) for name, offset in (("a", 7), ("b", 2), ("c", 4))]
    for worker in workers:
        worker.client.member_id = f"{worker.client.name}-id"
    for _ in range(8):
        rebalance(*workers)
        talk.wait(3_000)
    talk.settle()
    summary = talk.the("R-27").summary
    assert "Workers http://b:8083/ (b at 10.0.0.1), http://c:8083/ (c at 10.0.0.1) of the Connect group g stay behind" in summary
    assert "have read their config topics up to offset 2, 4, while" in summary
    assert "They start nothing of what they are assigned, and join again without end." in summary


def test_R_27_covers_the_hot_loop_that_it_explains(talk: Conversation) -> None:
    a, b = pair(talk)
    go_round(a, b, 20)
    go_round(a, b, 100, every_ms=100)
    assert talk.settled_rules() == ["R-27"]


def test_R_27_is_resolved_when_the_worker_has_caught_up(talk: Conversation) -> None:
    a, b = pair(talk)
    go_round(a, b, 20)
    b.offset = 7
    go_round(a, b, 1)
    talk.settle()
    assert talk.the("R-27").status is Status.RESOLVED


def test_R_27_is_resolved_when_the_worker_joins_no_more(talk: Conversation) -> None:
    a, b = pair(talk)
    go_round(a, b, 20)
    live(talk, [a.client], 180)
    assert talk.the("R-27").status is Status.RESOLVED


def test_R_27_goes_on_after_a_restart_of_the_monitor(talk: Conversation) -> None:
    a, b = pair(talk)
    go_round(a, b, 8)
    talk.restore()
    go_round(a, b, 10)
    talk.settle()
    assert talk.the("R-27").observed.startswith("17 JoinGroups since ")


def test_R_27_is_quiet_about_a_worker_that_catches_up_each_time(talk: Conversation) -> None:
    """Connectors are configured all the time: each assignment is ahead of it, and it reads to the end before it joins again."""
    a, b = pair(talk)
    for offset in range(8, 30):
        b.offset = a.offset = offset - 1
        a.offset = offset
        rebalance(a, b)
        talk.wait(3_000)
    assert "R-27" not in talk.settled_rules()


def test_R_27_is_quiet_about_a_worker_that_makes_progress(talk: Conversation) -> None:
    """It does not get there, but reads on: that is slow, and not another topic."""
    a, b = pair(talk)
    for offset in range(3, 30):
        b.offset, a.offset = offset, offset + 5
        rebalance(a, b)
        talk.wait(3_000)
    assert "R-27" not in talk.settled_rules()


def test_R_27_is_quiet_until_a_member_that_is_gone_cannot_count_any_more(talk: Conversation) -> None:
    """The config topic was made anew, and a killed worker is a member until its session ends."""
    a, b = pair(talk)
    go_round(a, b, 9)
    b.offset = a.offset = 0
    rebalance(a, b)
    go_round(a, b, 20, asked=0)
    assert "R-27" not in talk.settled_rules()


def test_R_27_does_not_count_JoinGroups_without_an_assignment_before(talk: Conversation) -> None:
    a, b = pair(talk)
    for _ in range(30):
        talk.refuse_join(talk.ask_join(b.client, **b.offers()), UNKNOWN_MEMBER_ID)
        talk.heartbeat(a.client)
        talk.wait(1_000)
    assert "R-27" not in talk.settled_rules()


def test_R_27_is_quiet_about_two_workers_of_one_address_one_of_which_is_ahead(talk: Conversation) -> None:
    """Behind one address and client id nobody can tell them apart: what the one says counts for the other."""
    a, b = pair(talk)
    b.url, b.client.name = a.url, a.client.name
    for _ in range(8):
        rebalance(b, a)
        talk.wait(3_000)
    assert "R-27" not in talk.settled_rules()


# ----------------------------------------------------------------------------------------------------


def neighbours(talk: Conversation, *names: str) -> list[Worker]:
    """Workers that say the same address."""
    workers = [Worker(talk, name, 7) for name in names]
    for worker in workers:
        worker.url, worker.client.member_id = "http://localhost:8083/", f"{worker.client.name}-id"
    return workers


def test_R_28_fires_on_two_workers_that_say_one_address(talk: Conversation) -> None:
    a, b = neighbours(talk, "a", "b")
    rebalance(a, b)
    talk.settle()
    finding = talk.the("R-28")
    assert (finding.severity, finding.blame, finding.status) == (Severity.WARNING, Blame.CONFIG, Status.OPEN)
    assert (finding.member_id, finding.client_id) == (None, None)
    assert "say that they are reached at http://localhost:8083/: " in finding.summary
    assert all(one in finding.summary for one in ("a at 10.0.0.1", "b at 10.0.0.1"))
    rebalance(a, b)
    talk.settle()
    assert [one.status for one in talk.findings if one.rule == "R-28"] == [Status.OPEN]


def test_R_28_names_all_that_say_it(talk: Conversation) -> None:
    rebalance(*neighbours(talk, "a", "b", "c"))
    talk.settle()
    assert talk.the("R-28").summary.startswith(
        "3 workers of the Connect group g say that they are reached at http://localhost:8083/: "
    )
    assert all(f"{name} at 10.0.0.1" in talk.the("R-28").summary for name in "abc")


def test_R_28_is_resolved_when_one_has_another_address(talk: Conversation) -> None:
    a, b = neighbours(talk, "a", "b")
    rebalance(a, b)
    talk.settle()
    talk.close(b.client)
    b = Worker(talk, "b", 7)
    b.client.member_id = "b-id-2"
    rebalance(a, b)
    rebalance(a, b)
    talk.settle()
    assert talk.the("R-28").status is Status.RESOLVED


def test_R_28_allows_a_worker_that_comes_back_on_another_host(talk: Conversation) -> None:
    """A pod keeps its name: until the session of the one that was killed ends, both are members, but only one joins."""
    a, b = neighbours(talk, "a", "b")
    a.url = "http://a:8083/"
    rebalance(a, b)
    (again,) = neighbours(talk, "b")
    again.client.host = "10.0.0.9"
    for _ in range(2):
        rebalance(a, again)
        talk.settle()
    assert "R-28" not in talk.rules()


def test_R_28_does_not_compare_with_a_generation_of_an_earlier_group(talk: Conversation) -> None:
    a, b = neighbours(talk, "a", "b")
    for _ in range(3):
        rebalance(a)
    talk.leave(a.client)
    a.client.generation = -1
    b.client.generation = -1
    rebalance(b)
    rebalance(b)
    rebalance(b)
    assert "R-28" not in talk.settled_rules()


@pytest.mark.parametrize("how", ["closed", "left out"])
def test_R_28_is_resolved_when_one_is_gone(talk: Conversation, how: str) -> None:
    a, b = neighbours(talk, "a", "b")
    rebalance(a, b)
    talk.settle()
    if how == "closed":
        talk.close(b.client)
    else:
        rebalance(a)
        rebalance(a)
    talk.settle()
    assert talk.the("R-28").status is Status.RESOLVED


def test_R_28_allows_workers_of_one_generation_that_have_addresses_of_their_own(talk: Conversation) -> None:
    pair(talk)
    assert talk.settled_rules() == []

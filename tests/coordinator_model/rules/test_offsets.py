"""Family O: what fires each rule, what must keep it quiet, what resolves it."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator_model import wire
from coordinator_model.finding import Blame, Certainty, Severity, Status
from coordinator_model.groups.classic.trackers.offsets import HOLDINGS_KEPT, KEPT
from coordinator_model.groups.committed_offsets import POSITIONS_KEPT
from coordinator_model.wording import clock
from tests.coordinator_model.classic import complete, completing_rebalance, live, static_group
from tests.coordinator_model.conversation import ASSIGNED, Client, Conversation, assignment
from tests.coordinator_model.epoch_groups import alone
from tests.coordinator_model.epochs import TOPICS, Epochs, foo
from tests.coordinator_model.rules.offsets import SIMPLE, give, sharing, transactional


def settled(talk: Conversation, names: tuple[str, ...] = ("a", "b"), generation: int = 3) -> list[Client]:
    """A stable group whose membership is known, and whose assignments nobody but itself can read."""
    clients = [talk.client(name) for name in names]
    again(talk, clients, generation)
    return clients


def again(talk: Conversation, clients: list[Client], generation: int) -> None:
    talk.join_all(clients, generation)
    for one in clients:
        request = talk.sync_request(one, clients if one is clients[0] else [], protocol_type="own")
        talk.call(one, request, wire.SyncGroupResponse(protocol_type="own", protocol_name="range", assignment=ASSIGNED))


def refused(talk: Conversation, client: Client, error: int, times: int = 5, every_ms: int = 3_000, **fields: Any) -> None:
    for _ in range(times):
        talk.commit(client, error, **fields)
        talk.wait(every_ms)


def quiet(talk: Conversation) -> bool:
    """No finding of this family."""
    return [rule for rule in talk.settled_rules() if rule.startswith("O")] == []


def test_lawful_commits_are_silent(talk: Conversation) -> None:
    a, b = sharing(talk)
    for offset in range(5):
        talk.commit_offsets(a, {0: offset, 1: 10 * offset})
        talk.commit_offsets(b, {2: offset})
        live(talk, [a, b], 2)
    talk.join_all([a, b], 4)
    talk.commit(a, 27)
    talk.commit(b, 22, generation_id_or_member_epoch=3)
    give(talk, [a, b], 4, {a: (0,), b: (1, 2)})
    talk.commit_offsets(b, {1: 5, 2: 5})
    talk.commit_offsets(a, {0: 9})
    live(talk, [a, b], 30)
    assert talk.findings == []


# ---------------------------------------------------------------------------------------------------- O-01


def unproven(talk: Conversation) -> Client:
    """A member of whose group nothing else is known."""
    return talk.client("a", member_id="a-1", generation=3)


@pytest.mark.parametrize("error", [22, 113])
def test_O_01_fires_when_commits_are_refused_again_and_again(talk: Conversation, error: int) -> None:
    client = unproven(talk)
    refused(talk, client, error)
    talk.settle()
    finding = talk.the("O-01")
    assert finding.severity is Severity.WARNING
    assert finding.blame is Blame.CLIENT
    assert finding.certainty is Certainty.HEURISTIC
    assert finding.member_id == "a-1"
    assert "5 commits in 12." in finding.summary
    assert wire.error_name(error) in finding.summary
    refused(talk, client, error, times=25, every_ms=25_000)
    assert talk.the("O-01").severity is Severity.ERROR  # no rebalance timeout lasts so long


@pytest.mark.parametrize("error", [22, 25, 82, 113])
def test_O_01_judges_transactional_commits_too(talk: Conversation, error: int) -> None:
    client = unproven(talk)
    for _ in range(5):
        transactional(talk, client, error=error, generation_id_or_member_epoch=3, member_id="a-1")
        talk.wait(3_000)
    assert "O-01" in talk.settled_rules()


def test_O_01_waits_for_three_refusals_over_ten_seconds(talk: Conversation) -> None:
    refused(talk, unproven(talk), 22, times=12, every_ms=500)
    assert quiet(talk)
    other = Conversation()
    refused(other, unproven(other), 22, times=2, every_ms=20_000)
    assert quiet(other)


def test_O_01_allows_one_refusal_per_rebalance(talk: Conversation) -> None:
    a, b = settled(talk)
    for generation in range(4, 10):
        talk.commit(a, 22)
        talk.wait(5_000)
        again(talk, [a, b], generation)
    assert quiet(talk)


def test_O_01_is_reset_by_a_join_by_a_success_and_by_another_error(talk: Conversation) -> None:
    client = unproven(talk)
    refused(talk, client, 22, times=3)
    talk.ask_join(client)
    refused(talk, client, 22, times=3)
    talk.commit(client)
    refused(talk, client, 22, times=3)
    refused(talk, client, 25, times=3)
    assert quiet(talk)


def test_O_01_gives_an_absent_static_member_its_rebalance_timeout(talk: Conversation) -> None:
    _, b = static_group(talk, ("a", "b"))
    refused(talk, b, 22, times=6)
    assert "O-01" not in talk.settled_rules()
    refused(talk, b, 22, times=3)
    assert "O-01" in talk.settled_rules()


def test_O_01_gives_a_static_member_whose_timeout_is_unknown_the_longest(talk: Conversation) -> None:
    client = unproven(talk)
    client.instance_id = "i"
    refused(talk, client, 22, times=20)
    assert quiet(talk)


def test_O_01_ignores_commits_around_the_members_own_leave(talk: Conversation) -> None:
    a, _ = settled(talk)
    talk.leave(a)
    refused(talk, a, 25, times=8, every_ms=700)
    assert quiet(talk)


@pytest.mark.parametrize(("error", "cause"), [(22, "G-01"), (25, "M-01"), (82, "S-02")])
def test_O_01_folds_under_the_zombie_behind_it(talk: Conversation, error: int, cause: str) -> None:
    a, b = settled(talk)
    again(talk, [a, b], 4)
    old = b.reconnected()
    old.generation = 3
    refused(talk, old, error)
    assert cause in talk.settled_rules()
    assert "O-01" not in talk.rules()


def test_O_01_resolves_when_the_member_joins(talk: Conversation) -> None:
    client = unproven(talk)
    refused(talk, client, 22)
    talk.ask_join(client)
    talk.wait(2_000)
    assert talk.the("O-01").status is Status.RESOLVED


# ---------------------------------------------------------------------------------------------------- O-02


def left_behind(talk: Conversation) -> tuple[Client, Client]:
    """A client that is still at generation 3 while its own member id is at 4, and the rightful one."""
    a, b = settled(talk)
    again(talk, [a, b], 4)
    old = b.reconnected()
    old.generation = 3
    return old, b


def test_O_02_fires_on_a_stale_commit_and_names_what_it_overwrote(talk: Conversation) -> None:
    old, b = left_behind(talk)
    talk.commit_offsets(b, {1: 70})
    talk.commit_offsets(old, {1: 50, 2: 60})
    assert {"G-02", "O-02"} <= set(talk.settled_rules())
    finding = talk.the("O-02")
    assert finding.severity is Severity.CRITICAL
    assert finding.blame is Blame.BROKER
    assert finding.client_id == "b"
    assert "G-02" in finding.summary
    assert "t-1, t-2" in finding.summary
    assert "t-1 70 → 50" in finding.observed


def test_O_02_fires_on_the_commit_of_a_stranger(talk: Conversation) -> None:
    settled(talk)
    stranger = talk.client("x", member_id="x-1", generation=3)
    talk.commit_offsets(stranger, {0: 1})
    talk.settle()
    assert "M-02" in talk.the("O-02").summary


def test_O_02_is_silent_on_a_stale_heartbeat(talk: Conversation) -> None:
    old, _ = left_behind(talk)
    talk.heartbeat(old)
    assert "G-02" in talk.settled_rules()
    assert talk.rules() == ["P-01", "G-02"]


def test_O_02_needs_a_partition_that_was_accepted(talk: Conversation) -> None:
    old, _ = left_behind(talk)
    talk.commit_offsets(old, {0: 1, 1: 2}, {0: 3, 1: 29})
    assert "O-02" not in talk.settled_rules()
    talk.commit_offsets(old, {0: 1, 1: 2}, {0: 3})
    talk.settle()
    assert ": t-1." in talk.the("O-02").summary


def test_O_02_is_silent_on_the_members_own_commit(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.commit_offsets(a, {0: 1})
    talk.commit_offsets(b, {1: 1})
    assert quiet(talk)


def test_O_02_resolves_when_it_does_not_recur(talk: Conversation) -> None:
    old, _ = left_behind(talk)
    talk.commit_offsets(old, {0: 1})
    talk.wait(90_000)
    assert talk.the("O-02").status is Status.RESOLVED


# ---------------------------------------------------------------------------------------------------- O-03


def test_O_03_fires_on_a_commit_before_the_assignment(talk: Conversation) -> None:
    _, b = completing_rebalance(talk)
    talk.wait(100)
    talk.commit(b)
    talk.settle()
    finding = talk.the("O-03")
    assert finding.severity is Severity.ERROR
    assert finding.blame is Blame.BROKER
    assert finding.member_id == b.member_id
    assert "generation 3" in finding.summary


def test_O_03_allows_a_refusal(talk: Conversation) -> None:
    _, b = completing_rebalance(talk)
    talk.commit(b, 27)
    assert quiet(talk)


def test_O_03_allows_a_commit_once_the_leader_has_asked_to_sync(talk: Conversation) -> None:
    a, b = completing_rebalance(talk)
    talk.ask(a, talk.sync_request(a, [a, b]))
    talk.commit(b)
    assert quiet(talk)


def test_O_03_allows_a_commit_after_an_assignment_that_was_captured_late(talk: Conversation) -> None:
    """Connections reach the mirror by ways of their own: the leader's SyncGroup came 0.3 s after the commit that followed it."""
    a, b = completing_rebalance(talk)
    talk.wait(500)
    talk.commit(b)
    talk.now_us -= 300_000
    asked = talk.ask(a, talk.sync_request(a, [a, b]))
    talk.answer(asked, talk.synced())
    talk.now_us += 299_000
    assert quiet(talk)


def test_O_03_allows_a_commit_after_a_leave_that_was_captured_late(talk: Conversation) -> None:
    _, b = completing_rebalance(talk)
    talk.wait(500)
    talk.commit(b)
    talk.now_us -= 300_000
    talk.leave(talk.client("x"), 25)
    talk.now_us += 299_000
    talk.settle()
    assert "O-03" not in talk.settled_rules()


def test_O_03_allows_a_commit_after_anybody_else_sent_an_assignment(talk: Conversation) -> None:
    a, b = completing_rebalance(talk)
    talk.call(b, talk.sync_request(b, [a, b]), talk.synced(27))
    talk.commit(b)
    assert "O-03" not in talk.settled_rules()


def test_O_03_allows_a_commit_once_a_follower_was_answered(talk: Conversation) -> None:
    _, b = completing_rebalance(talk)
    talk.call(b, talk.sync_request(b, []), talk.synced())
    talk.commit(b)
    assert "O-03" not in talk.settled_rules()


def test_O_03_allows_a_transactional_commit(talk: Conversation) -> None:
    _, b = completing_rebalance(talk)
    transactional(talk, b, generation_id_or_member_epoch=3, member_id=b.member_id)
    assert quiet(talk)


def test_O_03_allows_a_commit_asked_before_the_round_was_complete(talk: Conversation) -> None:
    a, b = settled(talk, generation=2)
    commit = talk.ask(b, talk.commit_request(b, {0: 1}, generation_id_or_member_epoch=3))
    other = b.reconnected()
    talk.join_all([a, other], 3)
    talk.answer(commit, talk.committed({0: 0}))
    assert quiet(talk)


def test_O_03_allows_a_commit_while_a_join_or_a_leave_may_have_ended_the_wait(talk: Conversation) -> None:
    _, b = completing_rebalance(talk)
    talk.leave(talk.client("x"), 25)
    talk.commit(b)
    assert "O-03" not in talk.settled_rules()
    other = Conversation()
    _, b = completing_rebalance(other)
    other.ask_join(other.client("c"))
    other.commit(b)
    assert "O-03" not in other.settled_rules()


def test_O_03_allows_a_commit_while_a_join_of_before_is_unanswered(talk: Conversation) -> None:
    late = talk.client("late")
    talk.hand_out_id(late)
    pending = talk.ask_join(late)
    _, b = completing_rebalance(talk)
    talk.commit(b)
    talk.close(pending.client)
    talk.commit(b)
    assert "O-03" not in talk.settled_rules()


def test_O_03_allows_a_commit_after_half_of_the_shortest_session(talk: Conversation) -> None:
    _, b = completing_rebalance(talk)
    talk.wait(5_500)
    talk.commit(b)
    assert "O-03" not in talk.settled_rules()


def test_O_03_needs_every_members_timeouts(talk: Conversation) -> None:
    a, b = talk.client("a"), talk.client("b")
    for one in (a, b):
        talk.hand_out_id(one)
    ghost = talk.client("ghost", member_id="ghost-1")
    asked = [talk.ask_join(one) for one in (a, b)]
    complete(talk, asked, 3, a, [a, b, ghost])
    talk.commit(b)
    assert quiet(talk)


def test_O_03_needs_a_known_roster(talk: Conversation) -> None:
    a, b = talk.client("a"), talk.client("b")
    for one in (a, b):
        talk.hand_out_id(one)
    talk.joined(talk.ask_join(b), generation=3, leader=a, roster=[a, b])
    talk.commit(b)
    assert quiet(talk)


def test_O_03_resolves_when_it_does_not_recur(talk: Conversation) -> None:
    a, b = completing_rebalance(talk)
    talk.commit(b)
    talk.sync_all([a, b])
    live(talk, [a, b], 80)
    assert talk.the("O-03").status is Status.RESOLVED


# ---------------------------------------------------------------------------------------------------- O-04


def test_O_04_fires_on_a_simple_commit_accepted_while_somebody_is_a_member(talk: Conversation) -> None:
    a, b = settled(talk)
    live(talk, [a, b], 3)
    talk.commit(talk.client("tool"), **SIMPLE)
    live(talk, [a, b], 20)
    finding = talk.the("O-04")
    assert finding.severity is Severity.ERROR
    assert finding.blame is Blame.BROKER
    assert finding.client_id == "tool"
    assert finding.member_id is None


def test_O_04_warns_when_it_is_refused(talk: Conversation) -> None:
    a, b = settled(talk)
    for _ in range(3):
        talk.commit(talk.client("tool"), 25, **SIMPLE)
        live(talk, [a, b], 1)
    finding = talk.the("O-04")
    assert finding.severity is Severity.WARNING
    assert finding.blame is Blame.CONFIG
    assert finding.client_id == "tool"


def test_O_04_names_the_member_that_left_on_the_connection_of_the_commit(talk: Conversation) -> None:
    """Its application was still at work when its client left, and commits what it has processed: that is no stranger."""
    a, b = settled(talk)
    left = b.member_id
    talk.leave(b, reason="consumer poll timeout has expired.")
    live(talk, [a], 3)
    talk.commit(b, 25, **SIMPLE)
    live(talk, [a], 3)
    finding = talk.the("O-04")
    assert (finding.severity, finding.blame, finding.member_id) == (Severity.WARNING, Blame.CLIENT, left)
    assert f"Member {left} (client b at" in finding.summary
    assert "commits offsets 3.0 s after it left group g, and is refused" in finding.summary
    assert "T-05" in finding.action


@pytest.mark.parametrize(
    ("end", "said"), [("expired", "after its session ended in group g"), ("refused", "after it was refused as unknown in group g")]
)
def test_O_04_names_the_groups_own_expired_member(talk: Conversation, end: str, said: str) -> None:
    """A client whose session had ended was called a stranger that needs a group id of its own."""
    a, b = settled(talk)
    expired = b.member_id
    if end == "expired":
        live(talk, [a], 16)
    else:
        talk.heartbeat(b, 25)
    talk.commit(b, 25, **SIMPLE)
    live(talk, [a], 3)
    finding = talk.the("O-04")
    assert (finding.severity, finding.blame, finding.member_id) == (Severity.WARNING, Blame.CLIENT, expired)
    assert said in finding.summary
    assert "group id of its own" not in finding.action


def test_O_04_does_not_take_another_connection_for_that_of_who_left(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.leave(b)
    talk.commit(b.reconnected(), 25, **SIMPLE)
    live(talk, [a], 3)
    assert talk.the("O-04").blame is Blame.CONFIG


def test_O_04_allows_simple_commits_into_an_empty_group(talk: Conversation) -> None:
    tool = talk.client("tool")
    for _ in range(5):
        talk.commit(tool, **SIMPLE)
        talk.wait(5_000)
    a, b = settled(talk, generation=1)
    live(talk, [a, b], 30)
    assert quiet(talk)


def test_O_04_does_not_take_a_commit_before_the_members_for_one_among_them(talk: Conversation) -> None:
    """The first of a series may be lawful; a later one that is not is found all the same."""
    tool = talk.client("tool")
    talk.commit(tool, **SIMPLE)
    a, b = settled(talk, generation=1)
    live(talk, [a, b], 10)
    assert quiet(talk)
    for _ in range(4):
        talk.commit(tool, **SIMPLE)
        live(talk, [a, b], 5)
    assert "O-04" in talk.settled_rules()


def test_O_04_needs_a_member_that_was_there_before_and_after(talk: Conversation) -> None:
    a, b = settled(talk)
    live(talk, [a, b], 3)
    talk.leave(a)
    talk.leave(b)
    talk.commit(talk.client("tool"), **SIMPLE)
    c = talk.client("c")
    talk.round([c], 5)
    live(talk, [c], 30)
    assert quiet(talk)


def test_O_04_does_not_take_a_heartbeat_that_is_not_answered_for_a_proof(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.commit(talk.client("tool"), **SIMPLE)
    for one in (a, b):
        talk.heartbeat(one)
        talk.ask(one, wire.HeartbeatRequest(group_id="g", generation_id=3, member_id=one.member_id))
    talk.wait(500)
    assert quiet(talk)


@pytest.mark.parametrize(("version", "fields"), [(0, {}), (8, {"member_id": "m"}), (8, {"group_instance_id": "i"})])
def test_O_04_judges_only_commits_that_could_name_a_member_and_do_not(
    talk: Conversation, version: int, fields: dict[str, Any]
) -> None:
    a, b = settled(talk)
    tool = talk.client("tool")
    body = talk.commit_request(tool, {9: 1}, **{**SIMPLE, **fields})
    talk.call(tool, body, talk.committed({9: 0}), version=version)
    talk.call(tool, body, talk.committed({9: 25}), version=version)
    live(talk, [a, b], 30)
    assert quiet(talk)


def test_O_04_leaves_groups_of_the_newer_types_alone(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.commit(talk.client("tool"), **SIMPLE)
    talk.consumer_heartbeat(talk.client("new"))
    live(talk, [a, b], 30)
    assert quiet(talk)


def test_O_04_resolves_when_it_stops(talk: Conversation) -> None:
    a, b = settled(talk)
    tool = talk.client("tool")
    talk.commit(tool, **SIMPLE)
    talk.commit(talk.client("other"), 25, **SIMPLE)
    live(talk, [a, b], 90)
    events = [finding.status for finding in talk.findings if finding.rule == "O-04"]
    assert events.count(Status.OPEN) == events.count(Status.RESOLVED) == 2


def test_O_04_stays_open_while_it_is_refused_again_and_again(talk: Conversation) -> None:
    a, b = settled(talk)
    for _ in range(3):
        talk.commit(talk.client("tool"), 25, **SIMPLE)
        live(talk, [a, b], 40)
    assert [finding.status for finding in talk.findings if finding.rule == "O-04"] == [Status.OPEN, Status.UPDATE]
    live(talk, [a, b], 40)
    assert talk.the("O-04").status is Status.RESOLVED


def test_O_04_takes_a_series_after_a_pause_for_a_new_one(talk: Conversation) -> None:
    a, b = settled(talk)
    for _ in range(2):
        talk.commit(talk.client("tool"), 25, **SIMPLE)
        live(talk, [a, b], 100)
    events = [finding.status for finding in talk.findings if finding.rule == "O-04"]
    assert events == [Status.OPEN, Status.RESOLVED] * 2


# ---------------------------------------------------------------------------------------------------- O-05


def test_O_05_fires_on_a_partition_that_is_somebody_elses(talk: Conversation) -> None:
    _, b = sharing(talk, (0, 1, 9))
    talk.commit_offsets(b, {2: 1, 9: 1})
    talk.settle()
    finding = talk.the("O-05")
    assert finding.severity is Severity.WARNING
    assert finding.member_id == b.member_id
    assert ": t-9." in finding.summary


def test_O_05_allows_what_was_its_own_in_the_generation_before(talk: Conversation) -> None:
    a, b = sharing(talk)
    give(talk, [a, b], 4, {a: (0,), b: (1, 2)})
    talk.commit_offsets(a, {0: 1, 1: 1})
    assert quiet(talk)
    give(talk, [a, b], 5, {a: (0,), b: (1, 2)})
    talk.commit_offsets(a, {1: 1})
    assert "O-05" in talk.settled_rules()


def test_O_05_keeps_what_was_before_when_the_assignment_is_fetched_twice(talk: Conversation) -> None:
    a, b = sharing(talk)
    give(talk, [a, b], 4, {a: (0,), b: (1, 2)})
    reply = wire.SyncGroupResponse(protocol_type="consumer", protocol_name="range", assignment=assignment(t=(0,)))
    talk.call(a, talk.sync_request(a, []), reply)
    talk.commit_offsets(a, {1: 1})
    assert quiet(talk)


def test_O_05_needs_to_know_what_the_member_had_before(talk: Conversation) -> None:
    a = talk.client("a", member_id="a-1", generation=3)
    give_blob(talk, a, assignment(t=(0,)))
    talk.commit_offsets(a, {9: 1})
    assert quiet(talk)


def test_O_05_needs_the_assignment_of_this_generation(talk: Conversation) -> None:
    a, _ = sharing(talk, (0,))
    talk.commit_offsets(a, {9: 1}, generation_id_or_member_epoch=4)
    assert quiet(talk)


def give_blob(talk: Conversation, client: Client, blob: bytes) -> None:
    entry = wire.SyncGroupRequestAssignment(member_id=client.member_id, assignment=blob)
    reply = wire.SyncGroupResponse(protocol_type="consumer", protocol_name="range", assignment=blob)
    talk.call(client, talk.sync_request(client, [], assignments=(entry,)), reply)


@pytest.mark.parametrize("blob", [b"\x00", assignment(t=(70_000,))])
def test_O_05_needs_an_assignment_that_can_be_read(talk: Conversation, blob: bytes) -> None:
    (a,) = completing_rebalance(talk, ("a",))
    give_blob(talk, a, blob)
    talk.commit_offsets(a, {9: 1})
    assert "O-05" not in talk.settled_rules()


def test_O_05_takes_an_assignment_of_no_bytes_for_none(talk: Conversation) -> None:
    (a,) = completing_rebalance(talk, ("a",))
    give_blob(talk, a, b"")
    talk.commit_offsets(a, {9: 1})
    assert "O-05" in talk.settled_rules()


def test_O_05_reads_only_assignments_of_consumers(talk: Conversation) -> None:
    (a,) = completing_rebalance(talk, ("a",))
    talk.call(a, talk.sync_request(a, [a]), wire.SyncGroupResponse(protocol_type="connect", assignment=assignment(t=(0,))))
    talk.commit_offsets(a, {9: 1})
    assert "O-05" not in talk.settled_rules()


def test_O_05_cannot_compare_topics_named_by_id(talk: Conversation) -> None:
    a = talk.client("a")
    give(talk, [a], 3, {a: (0,)})
    id_ = "AAAAAAAAAAAAAAAAAAAABQ"
    part = wire.OffsetCommitRequestPartition(partition_index=9, committed_offset=1)
    body = talk.commit_request(a, {}, topics=(wire.OffsetCommitRequestTopic(topic_id=id_, partitions=(part,)),))
    done = (wire.OffsetCommitResponsePartition(partition_index=9),)
    reply = wire.OffsetCommitResponse(topics=(wire.OffsetCommitResponseTopic(topic_id=id_, partitions=done),))
    talk.call(a, body, reply, version=10)
    assert quiet(talk)


def test_O_05_resolves_when_it_does_not_recur(talk: Conversation) -> None:
    a = talk.client("a")
    give(talk, [a], 3, {a: (0,)})
    talk.commit_offsets(a, {9: 1})
    live(talk, [a], 70)
    assert talk.the("O-05").status is Status.RESOLVED


# ---------------------------------------------------------------------------------------------------- O-06


def test_O_06_fires_when_two_members_commit_one_partition(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.commit_offsets(a, {0: 5, 1: 5, 2: 5, 3: 5, 4: 5})
    talk.commit_offsets(b, {0: 6, 1: 6, 2: 6, 3: 6, 4: 6})
    talk.commit_offsets(a, {0: 7})
    talk.settle()
    finding = talk.the("O-06")
    assert finding.severity is Severity.ERROR
    assert finding.certainty is Certainty.CONFIRMED
    assert a.member_id in finding.summary
    assert b.member_id in finding.summary
    assert (finding.member_id, finding.client_id) == (None, None)  # nothing tells whose the partitions are
    assert finding.count == 2


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_O_06_names_who_does_not_own_the_partition_whoever_committed_last(talk: Conversation, order: tuple[int, int]) -> None:
    """It named whoever committed last, in half of the cases the rightful owner."""
    members = [talk.client("owner"), talk.client("stranger")]
    owner, stranger = members
    give(talk, members, 3, {owner: (0, 1), stranger: (2,)})
    for index in order:
        talk.commit_offsets(members[index], {0: 5, 1: 5})
    assert talk.settled_rules() == ["O-05", "O-06"]
    finding = talk.the("O-06")
    assert (finding.member_id, finding.client_id) == (stranger.member_id, "stranger")
    assert finding.summary.startswith(f"Member {stranger.member_id} (client stranger at ")
    assert f"and {owner.member_id} commits them, too: t-0, t-1." in finding.summary


def test_O_06_names_the_instance_that_does_not_own_the_partition(talk: Conversation) -> None:
    owner, stranger = talk.client("owner", instance_id="i-owner"), talk.client("stranger", instance_id="i-stranger")
    for generation in (3, 4):
        give(talk, [owner, stranger], generation, {owner: (0,), stranger: (1,)})
    talk.commit_offsets(stranger, {0: 5})
    talk.commit_offsets(owner, {0: 6})
    talk.settle()
    finding = talk.the("O-06")
    assert (finding.member_id, finding.instance_id) == (stranger.member_id, "i-stranger")


def test_O_06_names_both_where_both_or_neither_own_the_partition(talk: Conversation) -> None:
    a, b = sharing(talk, (0,), (0,))
    talk.commit_offsets(a, {0: 5, 7: 5})
    talk.commit_offsets(b, {0: 6})
    talk.commit_offsets(b, {7: 6})
    talk.settle()
    both = [one.summary for one in talk.findings if one.rule == "O-06"]
    assert both
    assert all("commit the same partitions" in summary for summary in both)


def test_O_06_names_a_few_of_many_partitions(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.commit_offsets(a, dict.fromkeys(range(5), 5))
    talk.commit_offsets(b, dict.fromkeys(range(5), 6))
    talk.settle()
    assert "t-0, t-1, t-2 and 2 more" in talk.the("O-06").summary


def test_O_06_allows_a_hand_over_between_generations(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.commit_offsets(a, {0: 5})
    again(talk, [a, b], 4)
    talk.commit_offsets(b, {0: 6})
    assert quiet(talk)


def test_O_06_allows_a_replaced_static_member_to_go_on(talk: Conversation) -> None:
    a, b = static_group(talk, ("a", "b"))
    talk.commit_offsets(b, {0: 5})
    again = talk.client("b", instance_id="i")
    asked = talk.ask_join(again)
    talk.joined(asked, generation=3, leader=a, roster=[a, again], member_id="i-2")
    talk.call(again, talk.sync_request(again, []), talk.synced())
    talk.commit_offsets(again, {0: 6}, group_instance_id=None)
    assert "O-06" not in talk.settled_rules()


def test_O_06_ignores_a_reset_by_somebody_else(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.commit_offsets(a, {0: 5})
    talk.commit_offsets(talk.client("tool"), {0: 1, 7: 1}, generation_id_or_member_epoch=-1, member_id="tool")
    talk.commit_offsets(b, {0: 2})
    assert quiet(talk)


def test_O_06_does_not_compare_across_a_loss(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.commit_offsets(a, {0: 5})
    talk.gap()
    talk.commit_offsets(b, {0: 6})
    assert quiet(talk)


def test_O_06_leaves_a_stale_commit_to_others(talk: Conversation) -> None:
    old, b = left_behind(talk)
    talk.commit_offsets(b, {0: 5})
    talk.commit_offsets(old, {0: 6})
    assert "O-06" not in talk.settled_rules()


def test_O_06_leaves_groups_of_the_newer_types_alone(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.consumer_heartbeat(talk.client("new"))
    talk.commit_offsets(a, {0: 5})
    talk.commit_offsets(b, {0: 6})
    assert quiet(talk)


def test_O_06_resolves_when_it_does_not_recur(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.commit_offsets(a, {0: 5})
    talk.commit_offsets(b, {0: 6})
    live(talk, [a, b], 70)
    assert talk.the("O-06").status is Status.RESOLVED


# ---------------------------------------------------------------------------------------------------- O-07


def test_O_07_fires_when_a_member_puts_its_offset_back(talk: Conversation) -> None:
    a, _ = settled(talk)
    talk.commit_offsets(a, {0: 50, 1: 7})
    talk.commit_offsets(a, {0: 40, 1: 7})
    talk.settle()
    finding = talk.the("O-07")
    assert finding.severity is Severity.WARNING
    assert "t-0 50 → 40." in finding.summary


def test_O_07_allows_a_new_generation(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.commit_offsets(a, {0: 50})
    again(talk, [a, b], 4)
    talk.commit_offsets(a, {0: 40})
    assert quiet(talk)


def test_O_07_allows_a_reset_by_somebody_else(talk: Conversation) -> None:
    a, _ = settled(talk)
    talk.commit_offsets(a, {0: 50})
    talk.commit_offsets(talk.client("tool"), {0: 1}, generation_id_or_member_epoch=-1, member_id="tool")
    talk.commit_offsets(a, {0: 2})
    assert quiet(talk)


def test_O_07_does_not_compare_commits_under_way_at_once(talk: Conversation) -> None:
    a, _ = settled(talk)
    talk.commit_offsets(a, {0: 10})
    other = a.reconnected()
    first = talk.ask(a, talk.commit_request(a, {0: 20}))
    second = talk.ask(other, talk.commit_request(a, {0: 30}))
    talk.answer(second, talk.committed({0: 0}))
    talk.answer(first, talk.committed({0: 0}))
    assert quiet(talk)
    talk.commit_offsets(a, {0: 29})
    assert "O-07" in talk.settled_rules()


def test_O_07_compares_commits_queued_on_one_connection(talk: Conversation) -> None:
    a, _ = settled(talk)
    asked = [talk.ask(a, talk.commit_request(a, {0: offset})) for offset in (30, 20)]
    for one in asked:
        talk.answer(one, talk.committed({0: 0}))
    assert "O-07" in talk.settled_rules()


def test_O_07_does_not_compare_transactional_commits(talk: Conversation) -> None:
    a, _ = settled(talk)
    for offset in (50, 40):
        transactional(talk, a, offset=offset, generation_id_or_member_epoch=3, member_id=a.member_id)
    talk.commit_offsets(a, {0: 30})
    assert quiet(talk)


def test_O_07_does_not_hold_a_transaction_against_a_commit(talk: Conversation) -> None:
    """It may still be aborted: then the position is what it was."""
    a, b = sharing(talk, (0,), (1,))
    talk.commit_offsets(a, {0: 50})
    transactional(talk, a, offset=40, generation_id_or_member_epoch=3, member_id=a.member_id)
    talk.commit_offsets(a, {0: 45})
    live(talk, [a, b], 2)
    assert talk.rules() == []


def test_O_07_does_not_know_refused_commits(talk: Conversation) -> None:
    a, _ = settled(talk)
    talk.commit_offsets(a, {0: 50, 1: 1}, {0: 29})
    talk.commit_offsets(a, {0: 40, 1: 2})
    assert "O-07" not in talk.settled_rules()


def test_O_07_resolves_when_it_does_not_recur(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.commit_offsets(a, {0: 50})
    talk.commit_offsets(a, {0: 40})
    live(talk, [a, b], 70)
    assert talk.the("O-07").status is Status.RESOLVED


def test_of_very_many_positions_only_the_first_are_kept(talk: Conversation) -> None:
    a, b = settled(talk)
    many = dict.fromkeys(range(3 * POSITIONS_KEPT), 5)
    commit = talk.ask(a, talk.commit_request(a, many))
    assert len(talk.model.snapshot()) < 8_000
    talk.answer(commit, talk.committed(dict.fromkeys(many, 0)))
    talk.commit_offsets(a, {1_000: 7})
    talk.commit_offsets(a, {1_000: 6})
    talk.commit_offsets(b, {1_000: 7})
    assert quiet(talk)
    group, _ = talk.model.groups.opened(("c1", "g"))
    assert sum(map(len, group.offsets.committed.values())) == POSITIONS_KEPT


# ---------------------------------------------------------------------------------------------------- O-08


def test_O_08_notes_a_transaction_without_a_member(talk: Conversation) -> None:
    transactional(talk, talk.client("p"))
    finding = talk.the("O-08")
    assert finding.severity is Severity.INFO
    assert finding.certainty is Certainty.CERTAIN
    assert "transactional id tx" in finding.summary


def test_O_08_ignores_versions_that_cannot_name_one(talk: Conversation) -> None:
    transactional(talk, talk.client("p"), version=2)
    assert quiet(talk)


def test_O_08_ignores_transactions_that_commit_nothing(talk: Conversation) -> None:
    """A producer that runs before its consumer is assigned anything."""
    transactional(talk, talk.client("p"), topics=())
    assert quiet(talk)


def test_O_08_ignores_transactions_with_a_member(talk: Conversation) -> None:
    a, _ = settled(talk)
    transactional(talk, talk.client("p"), generation_id_or_member_epoch=3, member_id=a.member_id)
    assert quiet(talk)


def test_O_08_resolves_when_it_does_not_recur(talk: Conversation) -> None:
    transactional(talk, talk.client("p"))
    talk.wait(70_000)
    assert talk.the("O-08").status is Status.RESOLVED


# ---------------------------------------------------------------------------------------------------- O-09


@pytest.mark.parametrize("error", [12, 28, 29, 30])
def test_O_09_warns_of_the_first_commit_that_is_rejected(talk: Conversation, error: int) -> None:
    a, _ = settled(talk)
    talk.commit(a, error)
    talk.settle()
    finding = talk.the("O-09")
    assert (finding.severity, finding.blame, finding.status, finding.count) == (Severity.WARNING, Blame.CONFIG, Status.OPEN, 1)
    assert wire.error_name(error) in finding.summary


@pytest.mark.parametrize("error", [3, 100])
def test_O_09_notes_one_refusal_of_an_unknown_topic_and_warns_when_it_persists(talk: Conversation, error: int) -> None:
    a, _ = settled(talk)
    talk.commit(a, error)
    talk.settle()
    assert talk.the("O-09").severity is Severity.INFO
    talk.commit(a, error)
    talk.settle()
    assert talk.the("O-09").severity is Severity.WARNING


def test_O_09_names_the_partitions_that_were_not_saved_and_counts_the_others(talk: Conversation) -> None:
    a, _ = settled(talk)
    offsets = dict.fromkeys(range(6), 7)
    talk.commit_offsets(a, offsets, {1: 29, 4: 29})
    talk.settle()
    assert talk.the("O-09").summary.partition(") ")[2] == (
        "cannot save its progress in t-1, t-4 of group g: its commits of them are refused with TOPIC_AUTHORIZATION_FAILED; of the same "
        "commit it saved 4 other partitions."
    )


def test_O_09_is_one_finding_of_all_clients_without_a_right_until_one_of_them_saves_again(talk: Conversation) -> None:
    a, b = settled(talk)
    for number in range(10):
        talk.commit_offsets(a, {0: number}, {0: 29})
        talk.commit_offsets(b, {1: number}, {1: 29})
        live(talk, [a, b], 1)
    live(talk, [a, b], 120)
    findings = [finding for finding in talk.findings if finding.rule == "O-09"]
    assert len({finding.id for finding in findings}) == 1
    assert findings[-1].status is not Status.RESOLVED
    assert "so are those of 1 other client" in findings[-1].summary
    talk.commit_offsets(a, {0: 20})
    talk.commit_offsets(b, {1: 20})
    live(talk, [a, b], 3)
    assert [finding for finding in talk.findings if finding.rule == "O-09"][-1].status is Status.RESOLVED


def test_O_09_goes_on_until_what_was_refused_is_saved(talk: Conversation) -> None:
    a, _ = settled(talk)
    talk.commit_offsets(a, {0: 7, 1: 7}, {1: 29})
    talk.commit_offsets(a, {0: 8})
    talk.settle()
    assert talk.the("O-09").status is Status.OPEN
    talk.commit_offsets(a, {1: 8})
    talk.settle()
    assert talk.the("O-09").status is Status.RESOLVED


@pytest.mark.parametrize("error", [22, 25, 27])
def test_O_09_ignores_commits_that_are_refused_for_their_sender(talk: Conversation, error: int) -> None:
    a, _ = settled(talk)
    talk.commit(a, error)
    assert "O-09" not in talk.settled_rules()


def test_O_09_names_a_committer_that_is_no_member(talk: Conversation) -> None:
    tool = talk.client("tool")
    talk.commit(tool, 30, **SIMPLE)
    assert "O-09" in talk.settled_rules()
    assert "A non-member (client tool" in talk.the("O-09").summary


# ---------------------------------------------------------------------------------------------------- what is kept


def test_an_answer_may_hold_nothing_that_is_known(talk: Conversation) -> None:
    """Codes that no rule is about, an answer without partitions, topics that are no longer held."""
    a, b = talk.client("a"), talk.client("b")
    talk.commit(a, 3, **SIMPLE)
    talk.call(a, talk.commit_request(a, {}, topics=(), **SIMPLE), wire.OffsetCommitResponse(topics=()))
    give(talk, [a, b], 3, {a: (0,), b: (1,)})
    topics = (
        wire.OffsetCommitRequestTopic(
            name="t", partitions=(wire.OffsetCommitRequestPartition(partition_index=0, committed_offset=1),)
        ),
        wire.OffsetCommitRequestTopic(
            name="u", partitions=(wire.OffsetCommitRequestPartition(partition_index=0, committed_offset=1),)
        ),
        wire.OffsetCommitRequestTopic(name="v", partitions=()),
    )
    done = tuple(
        wire.OffsetCommitResponseTopic(
            name=name, partitions=(wire.OffsetCommitResponsePartition(partition_index=0, error_code=code),)
        )
        for name, code in (("t", 0), ("u", 3))
    )
    talk.call(a, talk.commit_request(a, {}, topics=topics), wire.OffsetCommitResponse(topics=done))
    give(talk, [a, b], 4, {a: (0,), b: (1,)})
    assert not [finding for finding in talk.opened() if finding.severity is not Severity.INFO]
    group, _ = talk.model.groups.opened(("c1", "g"))
    assert group.offsets.committed == {"t": {0: (0, 1)}}


def test_what_was_held_two_rounds_ago_is_forgotten(talk: Conversation) -> None:
    a, b = talk.client("a"), talk.client("b")
    never = talk.client("never")
    talk.hand_out_id(never)
    talk.refuse_join(talk.ask_join(never), 25)
    give(talk, [a, b], 3, {a: (0,), b: (1,)})
    give(talk, [a], 4, {a: (0, 1)})
    give(talk, [a], 5, {a: (0, 1)})
    group, _ = talk.model.groups.opened(("c1", "g"))
    assert a.member_id in group.offsets.holdings
    assert b.member_id not in group.offsets.holdings


def test_a_group_of_ten_that_commits_is_small_to_store(talk: Conversation) -> None:
    clients = [talk.client(f"worker-{index}") for index in range(10)]
    give(talk, clients, 5, {one: (3 * index, 3 * index + 1, 3 * index + 2) for index, one in enumerate(clients)})
    for offset in range(3):
        for index, one in enumerate(clients):
            talk.commit_offsets(one, {3 * index + part: 1_000_000 + 917 * index + offset for part in range(3)})
        live(talk, clients, 2)
    tracked = talk.model.snapshot()
    assert quiet(talk)
    assert len(tracked) < 3_072


def test_what_is_kept_is_bounded(talk: Conversation) -> None:
    for index in range(HOLDINGS_KEPT + 20):
        client = talk.client(f"c{index}")
        talk.hand_out_id(client)
        talk.ask_join(client)
    for index in range(KEPT + 5):
        client = talk.client(f"z{index}", member_id=f"z-{index}", generation=3)
        talk.commit(client, 25)
    group, _ = talk.model.groups.opened(("c1", "g"))
    assert len(group.offsets.holdings) == HOLDINGS_KEPT
    assert len(group.offsets.refused) == KEPT
    assert "z-4" not in group.offsets.refused


def test_snapshots_at_any_point_give_identical_findings(talk: Conversation) -> None:
    a, b = sharing(talk)
    tool = talk.client("tool")
    talk.commit(tool, **SIMPLE)
    talk.commit(tool, 25, **SIMPLE)
    live(talk, [a, b], 5)
    talk.commit_offsets(a, {0: 9, 1: 9})
    talk.commit_offsets(b, {1: 9, 2: 9})
    talk.commit_offsets(b, {1: 8, 2: 8}, {1: 29})
    talk.commit_offsets(b, {1: 8, 2: 8}, {1: 29})
    transactional(talk, a, generation_id_or_member_epoch=3, member_id=a.member_id)
    transactional(talk, talk.client("p"))
    talk.join_all([a, b], 4)
    talk.commit(b)
    for _ in range(5):
        transactional(talk, b, error=25, generation_id_or_member_epoch=4, member_id=b.member_id)
        talk.wait(3_000)
    assert {"O-01", "O-03", "O-04", "O-05", "O-06", "O-07", "O-08", "O-09"} <= set(talk.rules())
    assert talk.found_when_restored() == talk.findings


# ---------------------------------------------------------------------------------------------------- TxnOffsetCommit


def named(client: Client) -> dict[str, Any]:
    """What a transactional producer says of the member that read the records (KIP-447)."""
    identity = {"member_id": client.member_id, "group_instance_id": client.instance_id}
    return {"generation_id_or_member_epoch": client.generation, **identity}


def behind(talk: Conversation) -> tuple[Client, Client]:
    """A process that is still at generation 3, and the rightful one."""
    a, b = talk.client("a"), talk.client("b")
    for generation in (3, 4):
        give(talk, [a, b], generation, {b: (0,)})
    old = b.reconnected()
    old.generation = 3
    return old, b


def test_G_02_and_O_02_fire_on_a_transactional_commit_accepted_at_a_stale_generation(talk: Conversation) -> None:
    """A zombie of an exactly-once application was let through, and nothing was said: API 28 was not looked at."""
    old, _ = behind(talk)
    transactional(talk, old, **named(old))
    assert talk.settled_rules() == ["G-02", "O-02"]
    assert "accepted a TxnOffsetCommit at generation 3" in talk.the("G-02").summary


def test_M_02_and_O_02_fire_on_a_transactional_commit_accepted_from_a_stranger(talk: Conversation) -> None:
    give(talk, [talk.client("a"), talk.client("b")], 3, {})
    stranger = talk.client("x", member_id="x-1", generation=3)
    transactional(talk, stranger, **named(stranger))
    assert talk.settled_rules() == ["M-02", "O-02"]


def test_S_03_and_O_02_fire_on_a_transactional_commit_accepted_from_a_replaced_instance(talk: Conversation) -> None:
    a, old = static_group(talk, ("a", "b"))
    new = talk.client("b", instance_id="i")
    asked = talk.ask_join(new)
    talk.joined(asked, generation=3, leader=a, roster=[a, new], member_id="i-2")
    talk.call(new, talk.sync_request(new, []), talk.synced())
    talk.wait(1_000)
    transactional(talk, old, **named(old))
    assert talk.settled_rules() == ["S-03", "O-02"]


def test_O_02_allows_transactional_commits_that_are_refused_of_members_or_older_than_the_field(talk: Conversation) -> None:
    old, b = behind(talk)
    transactional(talk, b, **named(b))
    transactional(talk, old, error=22, **named(old))
    transactional(talk, old, version=2)
    transactional(talk, old)
    assert talk.settled_rules() == ["O-08"]


# ---------------------------------------------------------------------------------------------------- O-10, O-11


def refused_read(talk: Conversation, error: int = 88) -> tuple[Client, Client]:
    """Partition 0 stands at 40; b gets it, and its read is refused."""
    a, b = sharing(talk)
    talk.commit_offsets(a, {0: 40, 1: 7})
    give(talk, [a, b], 4, {a: (1,), b: (0, 2)})
    talk.fetch_offsets(b, {0: -1}, {0: error})
    talk.wait(1_000)
    return a, b


@pytest.mark.parametrize("error", [22, 25, 29, 88, 113])
def test_O_10_fires_when_a_refused_read_is_not_repeated_before_the_commit(talk: Conversation, error: int) -> None:
    _, b = refused_read(talk, error)
    talk.commit_offsets(b, {0: 91_000})
    talk.settle()
    finding = talk.the("O-10")
    assert (finding.severity, finding.certainty, finding.blame) == (Severity.WARNING, Certainty.CONFIRMED, Blame.CLIENT)
    assert (finding.member_id, finding.generation, finding.client_id) == (b.member_id, 4, "b")
    assert finding.summary.startswith("Member b-")
    assert finding.summary.endswith(" before the commit, and was not repeated. It moves t-0 from 40 to 91000.")
    assert [frame.frame.split(" ")[0] for frame in finding.evidence] == [
        "OffsetFetch",
        "OffsetFetch",
        "OffsetCommit",
        "OffsetCommit",
    ]


def test_O_10_fires_when_the_whole_read_is_refused(talk: Conversation) -> None:
    _, b = refused_read(talk)
    talk.fetch_offsets(b, {0: -1, 2: -1}, error=113)
    talk.wait(500)
    talk.commit_offsets(b, {0: 40, 2: 5})
    assert "O-10" in talk.settled_rules()
    assert "answered STALE_MEMBER_EPOCH 2 times" in talk.the("O-10").summary
    assert "t-0 from 40 to 40, t-2 to 5" in talk.the("O-10").summary


def test_O_10_tells_of_offsets_that_are_gone_as_soon_as_they_are_missed(talk: Conversation) -> None:
    a, b = sharing(talk)
    talk.commit_offsets(a, {0: 40, 2: 2})
    talk.wait(2_000)
    talk.fetch_offsets(b, {0: -1, 1: -1})
    talk.fetch_offsets(a, {2: -1})
    talk.fetch_offsets(a, {2: -1})
    finding = talk.the("O-10")
    assert (finding.severity, finding.certainty, finding.blame) == (Severity.WARNING, Certainty.CERTAIN, Blame.CONFIG)
    assert finding.count == 2
    assert "The offsets of 2 partitions that group g had committed until " in finding.summary
    assert "are gone: t-0 at 40, t-2 at 2. auto.offset.reset decides" in finding.summary
    assert "with earliest they read up to 42 records again unless the topic was made anew, with latest they skip" in finding.summary
    assert "offsets.retention.minutes" in finding.action


def test_O_10_says_that_offsets_went_with_a_topic_that_was_made_anew_whose_records_nobody_has_read(talk: Conversation) -> None:
    a, b = talk.client("a"), talk.client("b")
    talk.topics(t=3)
    give(talk, [a, b], 3, {a: (0, 1), b: (2,)})
    talk.commit_offsets(a, {0: 40})
    talk.wait(2_000)
    talk.topics(t=0)
    talk.wait(5_000)
    talk.topics(t=3)
    made_us = talk.now_us
    talk.fetch_offsets(b, {0: -1})
    finding = talk.the("O-10")
    assert finding.summary.endswith(
        f"are gone: t-0 at 40. Its topic was deleted, and made anew at {clock(made_us)}. auto.offset.reset decides where its "
        "members begin: with earliest they read the new topic from its beginning, with latest they skip what came meanwhile."
    )
    assert finding.action.startswith("Ask who made the topic anew.")


def test_O_10_names_retention_if_the_group_was_empty_and_began_anew(talk: Conversation) -> None:
    a = talk.client("a")
    talk.round([a], 1)
    talk.commit_offsets(a, {0: 40})
    live(talk, [a], 3)
    talk.leave(a)
    talk.wait(75_000)
    talk.now_us += 1_000
    b = talk.client("b")
    talk.round([b], 1)
    talk.fetch_offsets(b, {0: -1})
    talk.settle()
    assert "The group was empty for 75.0 s since " in talk.the("O-10").summary
    assert "retention" in talk.the("O-10").summary


def test_O_10_misses_no_offset_of_a_commit_that_should_have_been_refused(talk: Conversation) -> None:
    """A proxy may have turned a refusal into success: nobody knows what was stored."""
    old, b = behind(talk)
    talk.commit_offsets(old, {0: 40})
    talk.wait(2_000)
    talk.fetch_offsets(b, {0: -1})
    assert talk.settled_rules() == ["G-02", "O-02"]


def test_O_10_ignores_an_offset_that_was_committed_while_it_was_read(talk: Conversation) -> None:
    a, b = sharing(talk)
    asked = talk.ask(b, talk.fetch_request(b, (0,)))
    talk.commit_offsets(a, {0: 40})
    talk.answer(asked, talk.fetched({0: -1}))
    assert quiet(talk)


def emptied(talk: Conversation) -> None:
    """A group that stands at 213 and 7, and whose member has left."""
    a = talk.client("a")
    talk.round([a], 1)
    talk.commit_offsets(a, {0: 213, 1: 7})
    talk.leave(a)
    talk.wait(20_000)


def test_O_13_tells_who_set_the_group_back_and_how_many_records_are_read_again(talk: Conversation) -> None:
    emptied(talk)
    tool = talk.client("adminclient-1")
    talk.commit_offsets(tool, {0: 0, 1: 7}, **SIMPLE)
    finding = talk.the("O-13")
    assert (finding.severity, finding.certainty, finding.blame) == (Severity.INFO, Certainty.CERTAIN, Blame.OPERATOR)
    assert finding.client_id == "adminclient-1"
    assert (
        "set group g back on 1 partition while the group was empty: t-0 from 213 to 0. 213 records are read again."
        in finding.summary
    )


@pytest.mark.parametrize("known", [{}, {TOPICS["foo"]: "foo"}])
def test_O_13_compares_offsets_committed_by_topic_id_with_those_set_by_name(talk: Epochs, known: dict[str, Any]) -> None:
    """Kafka Streams 4.3 commits by id, kafka-consumer-groups.sh and librdkafka set offsets by name."""
    talk.topics(**known)
    a = alone(talk, held=foo(0))
    talk.commits(a, version=10)
    talk.topics(**{TOPICS["foo"]: "foo"})  # type: ignore[arg-type]
    talk.commits(a, version=10)
    talk.beats(a, -1, epoch=-1)
    partition = wire.OffsetCommitRequestPartition(partition_index=0, committed_offset=2)
    request = wire.OffsetCommitRequest(
        group_id=talk.group, topics=(wire.OffsetCommitRequestTopic(name="foo", partitions=(partition,)),)
    )
    done = wire.OffsetCommitResponseTopic(name="foo", partitions=(wire.OffsetCommitResponsePartition(partition_index=0),))
    talk.call(talk.client("tool"), request, wire.OffsetCommitResponse(topics=(done,)), version=9)
    assert "set group g back on 1 partition while the group was empty: foo-0 from 5 to 2." in talk.the("O-13").summary


def test_O_13_warns_if_it_recurs_and_is_over_when_it_does_not(talk: Conversation) -> None:
    emptied(talk)
    tool = talk.client("mirror")
    talk.commit_offsets(tool, {0: 100}, **SIMPLE)
    talk.commit_offsets(tool, {1: 3}, **SIMPLE)
    assert talk.the("O-13").severity is Severity.INFO
    talk.wait(20_000)
    talk.commit_offsets(tool, {0: 50}, **SIMPLE)
    assert (talk.the("O-13").severity, talk.the("O-13").status) == (Severity.WARNING, Status.UPDATE)
    talk.wait(61_000)
    assert talk.the("O-13").status is Status.RESOLVED


def test_O_13_tells_of_a_tool_that_sets_the_same_offsets_once_more(talk: Conversation) -> None:
    """MirrorMaker, which does so every few seconds while the group is empty."""
    emptied(talk)
    mirror = talk.client("mirror")
    first = clock(talk.now_us)
    talk.commit_offsets(mirror, {0: 3, 1: 7}, **SIMPLE)
    talk.wait(4_000)
    again = clock(talk.now_us)
    talk.commit_offsets(mirror, {0: 3, 1: 7}, **SIMPLE)
    finding = talk.the("O-13")
    assert (finding.severity, finding.count) == (Severity.INFO, 2)
    assert (
        f"while the group was empty, at {first} and to the same offsets once more at {again}: t-0 from 213 to 3. 210 records"
        in (finding.summary)
    )


def test_O_13_does_not_count_another_that_sets_the_same_offsets_or_other_offsets_of_the_same(talk: Conversation) -> None:
    emptied(talk)
    mirror = talk.client("mirror")
    talk.commit_offsets(mirror, {0: 3}, **SIMPLE)
    talk.commit_offsets(talk.client("other"), {0: 3}, **SIMPLE)
    talk.commit_offsets(mirror, {1: 7}, **SIMPLE)
    talk.commit_offsets(mirror, {0: 5}, **SIMPLE)
    talk.settle()
    assert talk.the("O-13").count == 1


def test_O_13_is_quiet_about_offsets_that_go_forward_and_those_of_a_group_without_members(talk: Conversation) -> None:
    emptied(talk)
    tool = talk.client("adminclient-1")
    talk.commit_offsets(tool, {0: 213, 1: 900}, **SIMPLE)
    alone = Conversation("alone")
    single = alone.client("s")
    alone.commit_offsets(single, {0: 10}, **SIMPLE)
    alone.commit_offsets(single, {0: 5}, **SIMPLE)
    assert ("O-13" in talk.settled_rules(), alone.rules()) == (False, [])


def test_O_10_ignores_a_read_that_was_repeated(talk: Conversation) -> None:
    _, b = refused_read(talk)
    talk.fetch_offsets(b, {0: 40})
    talk.commit_offsets(b, {0: 41})
    assert quiet(talk)


def test_O_10_ignores_a_read_that_was_repeated_on_another_connection(talk: Conversation) -> None:
    _, b = refused_read(talk)
    talk.fetch_offsets(b.reconnected(), {0: 40})
    talk.commit_offsets(b, {0: 41})
    assert quiet(talk)


def test_O_10_waits_for_a_read_that_is_under_way(talk: Conversation) -> None:
    _, b = refused_read(talk)
    asked = talk.ask(b.reconnected(), talk.fetch_request(b, (0,)))
    talk.commit_offsets(b, {0: 41})
    talk.answer(asked, talk.fetched({0: 40}))
    assert quiet(talk)


def test_O_10_ignores_other_partitions_other_clients_and_commits_that_were_under_way(talk: Conversation) -> None:
    a, b = refused_read(talk)
    talk.commit_offsets(b, {2: 3})
    talk.commit_offsets(a, {1: 9})
    under_way = talk.ask(a, talk.commit_request(a, {1: 10}))
    talk.fetch_offsets(a.reconnected(), {1: -1}, {1: 88})
    talk.answer(under_way, talk.committed({1: 0}))
    talk.commit_offsets(b, {0: 50}, {0: 29})  # this one is refused
    assert "O-10" not in talk.rules()


def test_O_10_ignores_partitions_that_have_no_offset_yet(talk: Conversation) -> None:
    _, b = sharing(talk)
    talk.fetch_offsets(b, {2: -1})
    talk.commit_offsets(b, {2: 8})
    assert quiet(talk)


@pytest.mark.parametrize("what", ["group", "offsets"])
def test_O_10_ignores_offsets_that_were_deleted(talk: Conversation, what: str) -> None:
    a, b = sharing(talk)
    talk.commit_offsets(a, {0: 40})
    result = wire.DeleteGroupsResponseDeletableGroupResult(group_id="g")
    request = wire.DeleteGroupsRequest(groups_names=("g",)) if what == "group" else wire.OffsetDeleteRequest(group_id="g")
    reply = wire.DeleteGroupsResponse(results=(result,)) if what == "group" else wire.OffsetDeleteResponse()
    talk.call(talk.client("admin"), request, reply)
    talk.fetch_offsets(b, {0: -1})
    talk.commit_offsets(b, {0: 8})
    assert "O-10" not in talk.rules()


def test_O_10_leaves_what_lies_before_a_gap(talk: Conversation) -> None:
    _, b = refused_read(talk)
    talk.gap()
    talk.commit_offsets(b, {0: 91_000})
    assert quiet(talk)


def test_O_10_is_over_when_it_has_not_recurred_for_a_while(talk: Conversation) -> None:
    a, b = refused_read(talk)
    talk.commit_offsets(b, {0: 91_000})
    live(talk, [a, b], 2 + talk.settings.quiet_ms // 1_000)
    assert talk.the("O-10").status is Status.RESOLVED


def test_O_10_fires_alike_from_a_restored_model(talk: Conversation) -> None:
    a, b = refused_read(talk)
    under_way = talk.ask(a, talk.fetch_request(a, (1,)))
    talk.restore()
    talk.answer(under_way, talk.fetched({1: -1}, {1: 88}))
    talk.commit_offsets(b, {0: 91_000})
    talk.commit_offsets(a, {1: 5})
    talk.settle()
    assert sorted(one.client_id or "" for one in talk.opened() if one.rule == "O-10") == ["a", "b"]


def test_tools_that_read_the_offsets_of_a_group_do_not_make_it_known(talk: Conversation) -> None:
    talk.fetch_offsets(talk.client("exporter"), {0: -1}, {0: 88})
    assert list(talk.model.groups) == []


def test_O_11_fires_when_a_commit_is_further_ahead_than_anybody_reads(talk: Conversation) -> None:
    a, _ = sharing(talk)
    talk.commit_offsets(a, {0: 40, 1: 7})
    talk.wait(3_000)
    talk.commit_offsets(a, {0: 40_000_040, 1: 8})
    talk.settle()
    finding = talk.the("O-11")
    assert (finding.severity, finding.certainty, finding.member_id) == (Severity.WARNING, Certainty.HEURISTIC, a.member_id)
    assert finding.summary.endswith("in the 3 s since the commit before: t-0 from 40 to 40000040.")


def test_O_11_ignores_what_can_have_been_read(talk: Conversation) -> None:
    a, _ = sharing(talk)
    talk.commit_offsets(a, {0: 40})
    talk.wait(3_000)
    talk.commit_offsets(a, {0: 7_900_000})
    assert quiet(talk)


def test_O_11_is_over_when_it_has_not_recurred_for_a_while(talk: Conversation) -> None:
    a, b = sharing(talk, (0,))
    talk.commit_offsets(a, {0: 40})
    talk.commit_offsets(a, {0: 90_000_000})
    live(talk, [a, b], 2 + talk.settings.quiet_ms // 1_000)
    assert talk.the("O-11").status is Status.RESOLVED

"""Family R, first part: what drags on and who is left behind. Each rule: what fires it, what must keep it quiet, what resolves it."""

from __future__ import annotations

import pytest

from coordinator_model.finding import Blame, Certainty, Severity, Status
from coordinator_model.rules.base import who
from coordinator_model.rules.join_phase import processed_since
from tests.coordinator_model.classic import complete, live, settled, told_to_rejoin
from tests.coordinator_model.conversation import Asked, Client, Conversation
from tests.coordinator_model.rules.coordinators import fail_over
from tests.coordinator_model.rules.loops import ghost


def group_of(talk: Conversation):
    return talk.model.groups.opened(("c1", talk.group))[0]


# ----------------------------------------------------------------------------------------------------


def test_R_01_warns_at_half_time_and_names_the_missing(talk: Conversation) -> None:
    a, b = settled(talk, session_timeout_ms=60_000)
    talk.ask_join(a)
    talk.wait(15_000)
    finding = talk.the("R-01")
    assert finding.severity is Severity.WARNING
    assert finding.member_id == b.member_id
    assert finding.summary.startswith(
        "Group g is in a join phase that may last 20.0 s, the largest rebalance timeout of the members: 1 JoinGroup request waits, since "
    )
    assert finding.summary.endswith(f", for {who(group_of(talk).members[b.member_id])}.")
    assert finding.action.startswith("Look at the processes of the members named.")


def test_R_01_becomes_an_error_past_the_rebalance_timeout(talk: Conversation) -> None:
    a, _ = settled(talk)
    talk.ask_join(a)
    talk.wait(26_000)
    assert talk.the("R-01").severity is Severity.ERROR
    assert talk.the("R-01").certainty is Certainty.CONFIRMED


def test_R_01_guesses_twice_the_timeout_while_learning(talk: Conversation) -> None:
    a = talk.client("a", member_id="m-a")
    talk.ask_join(a)
    talk.wait(24_000)
    assert talk.rules() == []
    talk.wait(4_000)
    assert talk.the("R-01").certainty is Certainty.HEURISTIC


def test_R_01_does_not_wait_for_a_superseded_join(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.ask_join(a)
    again = a.reconnected()
    asked = [talk.ask_join(again), talk.ask_join(b)]
    complete(talk, asked, 4, a, [a, b])
    talk.sync_all([again, b])
    live(talk, [again, b], 60)
    assert talk.rules() == []


def test_R_01_does_not_wait_for_a_join_on_a_closed_connection(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.ask_join(a)
    talk.close(a)
    live(talk, [b], 40)
    assert talk.rules() == []


def test_R_01_takes_an_unbounded_timeout_as_ten_minutes_and_only_warns(talk: Conversation) -> None:
    a, _ = settled(talk, rebalance_timeout_ms=2**31 - 1)
    talk.ask_join(a, rebalance_timeout_ms=2**31 - 1)
    talk.wait(590_000)
    assert "R-01" not in talk.rules()
    talk.wait(310_000)
    assert talk.the("R-01").severity is Severity.WARNING
    assert "600.0 s, assumed since the members' own timeouts are longer" in talk.the("R-01").summary


def test_R_01_resolves_when_the_phase_ends(talk: Conversation) -> None:
    a, b = settled(talk)
    asked = talk.ask_join(a)
    talk.wait(15_000)
    talk.joined(asked, generation=4, leader=a, roster=[a])
    talk.sync_all([a])
    talk.wait(1_000)
    assert talk.the("R-01").status is Status.RESOLVED
    assert b.member_id not in talk.group_json()["waits_for"]


def test_R_08_warns_at_half_the_rebalance_timeout_and_names_the_member(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.ask_join(a)
    told_to_rejoin(talk, b, 12)
    finding = talk.the("R-08")
    assert finding.severity is Severity.WARNING
    assert finding.client_id == "b"
    assert "1 other has waited for it since " in finding.summary
    assert talk.rules() == ["R-08"]


def test_R_08_becomes_an_error_past_the_rebalance_timeout(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.ask_join(a)
    told_to_rejoin(talk, b, 23)
    assert talk.the("R-08").severity is Severity.WARNING, "a timer may be late by 2 s and a tenth"
    told_to_rejoin(talk, b, 4)
    assert talk.the("R-08").severity is Severity.ERROR


def test_R_08_names_the_largest_timeout_of_the_group_and_what_becomes_of_a_static_member(talk: Conversation) -> None:
    """The coordinator dropped it after 6 s, it said: the others' 60 s counted, and a static member stays."""
    a, b = talk.client("a"), talk.client("b", instance_id="i-b")
    talk.hand_out_id(a)
    asked = [talk.ask_join(a, rebalance_timeout_ms=60_000), talk.ask_join(b, rebalance_timeout_ms=6_000)]
    b.member_id = "i-b-1"
    complete(talk, asked, 3, a, [a, b])
    talk.sync_all([a, b])
    live(talk, [a, b], 3)
    talk.ask_join(a, rebalance_timeout_ms=60_000)
    told_to_rejoin(talk, b, 20)
    assert talk.rules() == ["P-10", "R-18"]
    told_to_rejoin(talk, b, 15)
    finding = talk.the("R-08")
    assert finding.severity is Severity.WARNING
    assert "waits for up to 60.0 s, the largest rebalance timeout of the members, and then goes on without it" in finding.summary
    assert "keeps the place of instance i-b" in finding.summary


def test_R_08_is_quiet_while_the_join_is_under_way(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.ask_join(a)
    other = b.reconnected()
    talk.ask_join(other)
    told_to_rejoin(talk, b, 12)
    assert talk.rules() == []


def test_R_08_resolves_when_the_member_rejoins(talk: Conversation) -> None:
    a, b = settled(talk)
    parked = talk.ask_join(a)
    told_to_rejoin(talk, b, 12)
    again = talk.ask_join(b)
    complete(talk, (parked, again), 4, a, [a, b])
    talk.sync_all([a, b])
    talk.wait(1_000)
    assert talk.the("R-08").status is Status.RESOLVED


# ----------------------------------------------------------------------------------------------------


def test_R_01_blames_the_broker_once_the_phase_is_overdue(talk: Conversation) -> None:
    a, b = settled(talk, session_timeout_ms=60_000)
    talk.ask_join(a)
    talk.wait(15_000)
    assert talk.the("R-01").blame is Blame.CLIENT
    talk.wait(11_000)
    finding = talk.the("R-01")
    assert finding.severity is Severity.ERROR
    assert finding.blame is Blame.BROKER
    assert "join phase that should have ended after 20.0 s, the largest rebalance timeout of the members" in finding.summary
    assert finding.action.startswith("Keep the coordinator's log")
    assert finding.member_id == b.member_id


def test_R_01_is_bounded_by_a_member_that_left_since_the_phase_began(talk: Conversation) -> None:
    a, b, c = talk.client("a"), talk.client("b"), talk.client("c")
    for client in (a, b, c):
        talk.hand_out_id(client)
    asked = [talk.ask_join(one, rebalance_timeout_ms=20_000, session_timeout_ms=60_000) for one in (a, b)]
    asked.append(talk.ask_join(c, rebalance_timeout_ms=60_000, session_timeout_ms=60_000))
    complete(talk, asked, 3, a, [a, b, c])
    talk.sync_all([a, b, c])
    talk.ask_join(a)
    talk.leave(c)
    talk.wait(40_000)
    assert talk.the("R-01").severity is Severity.WARNING
    talk.wait(30_000)
    assert talk.the("R-01").severity is Severity.ERROR


def test_R_01_stays_a_warning_while_not_every_timeout_is_known(talk: Conversation) -> None:
    a = talk.client("a", member_id="m-a")
    talk.ask_join(a)
    talk.wait(120_000)
    finding = talk.the("R-01")
    assert finding.severity is Severity.WARNING
    assert finding.certainty is Certainty.HEURISTIC


def test_R_01_counts_a_queued_join_from_the_answer_before_it(talk: Conversation) -> None:
    a, b = settled(talk)
    first = talk.ask_join(a)
    other = talk.client("other")
    other.connection, other.exchange, other.outstanding = a.connection, a.exchange, a.outstanding
    other.member_id = b.member_id
    queued = talk.ask_join(other)
    talk.wait(11_000)
    assert talk.rules() == []
    assert processed_since(group_of(talk), next(one for one in group_of(talk).open.values() if one.queued_behind)) is None
    talk.joined(first, generation=4, leader=a, roster=[a, b])
    talk.wait(11_000)
    assert talk.rules() == ["C-02", "R-18", "R-02"]
    talk.wait(5_000)
    assert talk.the("R-01").severity is Severity.WARNING
    talk.joined(queued, generation=5, leader=b, roster=[b])


def test_R_01_does_not_know_when_a_join_behind_requests_of_other_groups_is_in_hand(talk: Conversation) -> None:
    a, _ = settled(talk)
    a.outstanding = 2
    talk.ask_join(a)
    talk.wait(40_000)
    assert talk.rules() == ["T-04"]


def test_R_01_leaves_a_member_that_heartbeats_to_R_08_until_the_phase_is_overdue(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.ask_join(a)
    told_to_rejoin(talk, b, 19)
    assert talk.rules() == ["R-08"]
    told_to_rejoin(talk, b, 9)
    assert talk.the("R-01").blame is Blame.BROKER


def test_R_01_does_not_wait_for_a_member_whose_join_is_parked_on_a_dead_connection(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.ask_join(b)
    talk.close(b)
    talk.ask_join(a)
    talk.wait(15_000)
    assert "every known member has asked" in talk.the("R-01").summary
    assert talk.the("R-01").blame is Blame.BROKER


def test_R_01_names_ids_that_nobody_used_when_they_are_not_what_blocks(talk: Conversation) -> None:
    """A phase that begins in an empty group ends with its delay, whoever is awaited: so the broker is late."""
    a, c = talk.client("a"), talk.client("c")
    talk.hand_out_id(c)
    talk.hand_out_id(a)
    talk.ask_join(a)
    talk.wait(30_000)
    assert c.member_id in talk.the("R-01").summary
    assert talk.the("R-01").action.startswith("Find the clients named")
    assert talk.rules() == ["R-01"]


def test_R_01_lists_five_missing_members_and_counts_the_rest(talk: Conversation) -> None:
    clients = settled(talk, "abcdefgh", session_timeout_ms=60_000)
    talk.ask_join(clients[0])
    talk.wait(15_000)
    assert "and 2 more" in talk.the("R-01").summary
    assert (talk.the("R-01").member_id, talk.the("R-01").client_id) == (None, None)  # one of seven is not to blame


# ----------------------------------------------------------------------------------------------------


def test_R_05_names_a_member_whose_client_hung_up_while_parked(talk: Conversation) -> None:
    a, b = settled(talk)
    ghost(talk, a, b)
    live(talk, [a], 3)
    finding = talk.the("R-05")
    assert finding.severity is Severity.WARNING
    assert finding.member_id == b.member_id
    assert finding.client_id == "b"
    assert "10.0 s" in finding.summary


def give_up_and_come_again(talk: Conversation, a: Client, times: int) -> tuple[list[Asked], Client]:
    """A client hangs up after 3 s of waiting, and asks again on a new connection soon after. ``a`` rejoins at the end."""
    given_up = []
    for _ in range(times):
        b = talk.client("b")
        given_up.append(talk.ask(b, talk.join_request(b), version=3))
        talk.wait(3_000)
        talk.close(b)
        talk.wait(500)
    b = talk.client("b")
    waits = talk.ask(b, talk.join_request(b), version=3)
    talk.wait(100)
    asked = talk.ask_join(a)
    b.member_id = "b-now"
    ghosts = [talk.client("b") for _ in range(times)]
    for number, one in enumerate(ghosts):
        one.member_id = f"b-{number}"
    talk.joined(waits, generation=4, leader=a, roster=[])
    talk.joined(asked, generation=4, leader=a, roster=[a, b, *ghosts])
    talk.sync_all([a, b])
    return given_up, b


@pytest.mark.parametrize("answers_seen", [True, False])
def test_R_05_names_each_JoinGroup_before_v4_that_its_client_gave_up(talk: Conversation, *, answers_seen: bool) -> None:
    """A capture has the answers that reach nobody. A tap has not: the member list names the ids."""
    (a,) = settled(talk, ("a",))
    given_up, b = give_up_and_come_again(talk, a, 2)
    for number, asked in enumerate(given_up if answers_seen else []):
        asked.client.member_id = f"b-{number}"
        talk.joined(asked, generation=4, leader=a, roster=[])
    live(talk, [a, b], 3)
    findings = {finding.member_id: finding for finding in talk.opened()}
    assert [finding.rule for finding in findings.values()] == ["R-05"] * 2
    assert sorted(findings) == ["b-0", "b-1"]
    assert "its client disconnected after it had waited 3.0 s to join, and came again under a new id" in findings["b-1"].summary
    assert findings["b-1"].action.startswith("Raise that client's request timeout above its rebalance timeout, 20.0 s")
    live(talk, [a, b], 12)
    talk.round([a, b], 5)
    live(talk, [a, b], 3)
    assert talk.rules() == ["R-05"]  # nobody died, and no process was started anew


def test_M_13_counts_a_process_that_dies_while_it_waits_and_looks_for_its_coordinator_anew(talk: Conversation) -> None:
    (a,) = settled(talk, ("a",))
    for generation in range(4, 8):
        bootstrap = talk.client("b")
        talk.find_coordinator(bootstrap)
        b = talk.client("b")
        talk.hand_out_id(b)
        talk.ask_join(b)
        talk.wait(500)
        talk.close(bootstrap)
        talk.close(b)
        talk.joined(talk.ask_join(a), generation=generation, leader=a, roster=[a, b])
        talk.call(a, talk.sync_request(a, [a, b]), talk.synced())
        live(talk, [a], 12)
    assert "M-13" in talk.rules()


def test_M_13_spares_a_process_that_goes_on_with_another_connection(talk: Conversation) -> None:
    (a,) = settled(talk, ("a",))
    talk.find_coordinator(talk.client("b"))
    for generation in range(4, 8):
        b = talk.client("b")
        talk.hand_out_id(b)
        talk.round([a, b], generation)
        live(talk, [a, b], 2)
        talk.close(b)
        live(talk, [a], 13)
    assert "M-13" not in talk.rules()


@pytest.mark.parametrize("answers_seen", [True, False])
def test_what_was_given_up_survives_a_restart(talk: Conversation, *, answers_seen: bool) -> None:
    (a,) = settled(talk, ("a",))
    talk.find_coordinator(talk.client("b"))
    given_up, b = give_up_and_come_again(talk, a, 2)
    for number, asked in enumerate(given_up if answers_seen else []):
        asked.client.member_id = f"b-{number}"
        talk.joined(asked, generation=4, leader=a, roster=[])
    live(talk, [a, b], 20)
    assert talk.found_when_restored() == talk.findings


def test_R_05_names_a_static_member_that_never_learned_its_id(talk: Conversation) -> None:
    (a,) = settled(talk, ("a",))
    b = talk.client("b", instance_id="i")
    talk.ask_join(b)
    talk.close(b)
    b.member_id = "i-1"
    asked = talk.ask_join(a)
    talk.joined(asked, generation=4, leader=a, roster=[a, b])
    talk.call(a, talk.sync_request(a, [a, b]), talk.synced())
    live(talk, [a], 3)
    finding = talk.the("R-05")
    assert (finding.member_id, finding.instance_id, finding.client_id) == ("i-1", "i", "b")
    live(talk, [a], 12)
    assert talk.the("R-05").status is Status.RESOLVED


def test_R_05_allows_a_retry_on_a_new_connection(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.ask_join(b)
    talk.close(b)
    b = b.reconnected()
    asked = [talk.ask_join(a), talk.ask_join(b)]
    complete(talk, asked, 4, a, [a, b])
    talk.sync_all([a, b])
    live(talk, [a, b], 5)
    assert talk.rules() == []


def test_R_05_allows_a_retry_of_a_static_member_without_an_id(talk: Conversation) -> None:
    (a,) = settled(talk, ("a",))
    b = talk.client("b", instance_id="i")
    talk.ask_join(b)
    talk.close(b)
    b = b.reconnected()
    asked = [talk.ask_join(a), talk.ask_join(b)]
    b.member_id = "i-2"
    complete(talk, asked, 4, a, [a, b])
    talk.sync_all([a, b])
    live(talk, [a, b], 5)
    assert talk.rules() == []


def test_R_05_allows_a_retry_just_after_the_completion(talk: Conversation) -> None:
    a, b = settled(talk)
    ghost(talk, a, b)
    b = b.reconnected()
    talk.wait(1_000)
    talk.joined(talk.ask_join(b), generation=4, leader=a, roster=[])
    talk.call(b, talk.sync_request(b, []), talk.synced())
    live(talk, [a, b], 5)
    assert talk.rules() == []


def test_R_05_allows_a_client_that_is_not_in_the_roster(talk: Conversation) -> None:
    """Nothing but its JoinGroup was seen of it, so nothing else shows that it is no member."""
    (a,) = settled(talk, ("a",))
    b = talk.client("b", member_id="of-before-the-capture")
    talk.ask_join(b)
    talk.close(b)
    talk.joined(talk.ask_join(a), generation=4, leader=a, roster=[a])
    talk.call(a, talk.sync_request(a, [a]), talk.synced())
    live(talk, [a], 5)
    assert talk.rules() == []


def test_R_05_is_no_matter_of_a_client_that_had_no_id_yet(talk: Conversation) -> None:
    a, b = settled(talk)
    lost = talk.client("lost")
    talk.ask_join(lost)  # to be answered MEMBER_ID_REQUIRED, and no member by that
    talk.close(lost)
    talk.round([a, b], 4)
    live(talk, [a, b], 5)
    assert talk.rules() == []


def test_R_05_resolves_when_the_group_goes_on_without_it(talk: Conversation) -> None:
    a, b = settled(talk)
    ghost(talk, a, b)
    live(talk, [a], 5)
    talk.round([a], 5)
    talk.wait(1_000)
    assert talk.the("R-05").status is Status.RESOLVED


# ----------------------------------------------------------------------------------------------------


def pending(talk: Conversation) -> tuple[list[Client], Client, list[Asked]]:
    clients = settled(talk)
    lost = talk.client("lost")
    talk.hand_out_id(lost)
    return clients, lost, [talk.ask_join(one) for one in clients]


def test_R_09_names_the_id_that_all_wait_for(talk: Conversation) -> None:
    _, lost, _ = pending(talk)
    talk.wait(4_000)
    finding = talk.the("R-09")
    assert finding.severity is Severity.WARNING
    assert finding.member_id == lost.member_id
    assert finding.client_id == "lost"
    assert talk.rules() == ["R-09"]


def test_R_09_says_that_the_client_uses_another_id(talk: Conversation) -> None:
    clients = settled(talk)
    twice = talk.client("twice")
    talk.hand_out_id(twice, "twice-1")
    talk.hand_out_id(twice, "twice-2")
    for one in (*clients, twice):
        talk.ask_join(one)
    talk.wait(4_000)
    finding = talk.the("R-09")
    assert ", test 1.0, which uses twice-2 instead: the join phase" in finding.summary
    assert finding.member_id == "twice-1"
    assert finding.action.startswith("That client runs: it asked for an id twice")


def test_R_09_allows_a_join_in_flight(talk: Conversation) -> None:
    _, lost, _ = pending(talk)
    talk.ask_join(lost)
    talk.wait(4_000)
    assert talk.rules() == []


def test_R_09_is_quiet_while_a_member_is_missing(talk: Conversation) -> None:
    a, _ = settled(talk)
    lost = talk.client("lost")
    talk.hand_out_id(lost)
    talk.ask_join(a)
    talk.wait(4_000)
    assert talk.rules() == []


def test_R_09_is_quiet_when_nobody_joins(talk: Conversation) -> None:
    clients = settled(talk)
    talk.hand_out_id(talk.client("lost"))
    live(talk, clients, 20)
    assert talk.rules() == []


def test_R_09_is_quiet_in_a_phase_that_begins_in_an_empty_group(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.leave(a)
    talk.leave(b)
    talk.hand_out_id(talk.client("lost"))
    c = talk.client("c")
    talk.hand_out_id(c)
    talk.ask_join(c)
    talk.wait(5_000)
    assert talk.rules() == []


def test_R_09_waits_for_no_id_that_has_expired(talk: Conversation) -> None:
    clients = settled(talk)
    talk.hand_out_id(talk.client("lost"))
    live(talk, clients, 8)
    for one in clients:
        talk.ask_join(one)
    talk.wait(5_000)
    assert talk.rules() == []


def test_R_09_resolves_when_the_phase_ends(talk: Conversation) -> None:
    clients, _, asked = pending(talk)
    talk.wait(4_000)
    complete(talk, asked, 4, clients[0], clients)
    talk.sync_all(clients)
    live(talk, clients, 2)
    assert talk.the("R-09").status is Status.RESOLVED


# ----------------------------------------------------------------------------------------------------


# ----------------------------------------------------------------------------------------------------


def test_R_13_fires_when_members_look_in_vain(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.heartbeat(a, 16)
    for _ in range(28):
        talk.find_coordinator(a, error=15, version=3)
        talk.refuse_join(talk.ask_join(b), 15)
        talk.wait(1_000)
    finding = talk.the("R-13")
    assert finding.severity is Severity.WARNING
    assert finding.blame is Blame.BROKER


def test_R_13_is_quiet_when_the_members_are_gone(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.heartbeat(a, 16)
    talk.close(a)
    talk.close(b)
    admin = talk.client("admin")
    for _ in range(60):
        talk.find_coordinator(admin, error=15, version=3)
        talk.wait(1_000)
    assert talk.rules() == ["C-13"]


def test_R_13_is_quiet_when_they_had_left_before(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.leave(a)
    talk.leave(b)
    talk.refuse_join(talk.ask_join(a, member_id=""), 16)
    for _ in range(60):
        talk.find_coordinator(a, error=15, version=3)
        talk.wait(1_000)
    assert talk.rules() == ["C-13"]


def test_R_13_allows_a_client_that_comes_back_late(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.heartbeat(a, 16)
    talk.close(a)
    talk.close(b)
    talk.wait(40_000)
    a, b = a.reconnected(), b.reconnected()
    talk.heartbeat(a, 16)
    talk.find_coordinator(a, error=15, version=3)
    a = a.reconnected("2")
    parked = talk.ask_join(a)
    for _ in range(15):
        talk.find_coordinator(b, error=15, version=3)
        talk.wait(1_000)
    talk.joined(parked, generation=4, leader=a, roster=[a])
    assert talk.settled_rules() == []


def test_R_13_gives_them_their_largest_timeout(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.heartbeat(a, 16)
    for _ in range(22):
        talk.find_coordinator(a, error=15, version=3)
        talk.wait(1_000)
    talk.round([a, b], 4)
    live(talk, [a, b], 30)
    assert talk.rules() == []


def test_R_13_is_no_matter_of_a_group_that_carries_on_elsewhere(talk: Conversation) -> None:
    a, b = settled(talk)
    a, b = fail_over(talk, [a, b])
    talk.heartbeat(b)
    for _ in range(40):
        talk.find_coordinator(a, error=15, version=3)
        talk.heartbeat(b)
        talk.wait(1_000)
    assert talk.rules() == ["C-13"]


def test_R_13_resolves_when_somebody_is_let_in(talk: Conversation) -> None:
    a, b = settled(talk)
    talk.heartbeat(a, 16)
    for _ in range(28):
        talk.find_coordinator(a, error=15, version=3)
        talk.wait(1_000)
    talk.round([a, b], 4)
    talk.wait(2_000)
    assert talk.the("R-13").status is Status.RESOLVED

"""Family T, second part: timeouts that cannot work together."""

from __future__ import annotations

from itertools import count

from coordinator_model.finding import Blame, Severity, Status
from tests.coordinator_model.classic import complete, live, settled
from tests.coordinator_model.conversation import Client, Conversation
from tests.coordinator_model.epochs import Epochs, foo
from tests.coordinator_model.rules.loops import arrives, told_to_rejoin

POLL = "consumer poll timeout has expired."


# ---------------------------------------------------------------------------------------------------- T-10


def gives_up(talk: Conversation, client: Client, after_ms: int, others: list[Client] | None = None) -> Client:
    """A JoinGroup of an early version, which the coordinator holds until the others rejoin; the client hangs up, and comes again."""
    talk.ask(client, talk.join_request(client), version=3)
    for _ in range(after_ms // 1_000):
        for other in others or []:
            talk.heartbeat(other, 27)
        talk.wait(1_000)
    talk.close(client)
    again = client.reconnected()
    again.member_id = ""
    return again


def test_T_10_warns_of_clients_that_give_up_after_the_same_time(talk: Conversation) -> None:
    a, _ = settled(talk)
    c = talk.client("c")
    for _ in range(3):
        c = gives_up(talk, c, 5_000, [a])
    assert "T-10" not in talk.rules()
    talk.ask(c, talk.join_request(c), version=3)
    talk.settle()
    finding = talk.the("T-10")
    assert (finding.severity, finding.blame, finding.member_id) == (Severity.WARNING, Blame.CONFIG, None)
    assert "give up their JoinGroups after 5.0 s, while a join phase may last 20.0 s: 3 times since" in finding.summary
    assert "(c at 10.0.0.1), and came again" in finding.summary
    assert "their session ends, 10.0 s" in finding.summary
    assert "above their rebalance timeout, 20.0 s" in finding.action
    assert len(finding.evidence) == 3


def test_T_10_does_not_count_a_process_that_is_killed_and_M_13_does(talk: Conversation) -> None:
    """It was said 49 times to need a longer request timeout, and M-13 stood still at six returns."""
    a, _ = settled(talk)
    for _ in range(12):
        started = talk.client("c")
        talk.find_coordinator(started)
        talk.hand_out_id(started)
        talk.ask_join(started)
        for _ in range(4):
            talk.heartbeat(a, 27)
            talk.wait(1_000)
        talk.close(started)
        talk.wait(300)
    assert "T-10" not in talk.rules()
    assert "came back 10 times since" in talk.the("M-13").summary


def test_T_10_warns_of_a_member_that_hangs_up_looks_for_its_coordinator_and_goes_on_under_its_id(talk: Conversation) -> None:
    """Java closes a connection that was idle for connections.max.idle.ms, also one on which its JoinGroup waits."""
    a, b = settled(talk)
    talk.heartbeat(b, 27)
    for _ in range(4):
        talk.ask_join(b)
        for _ in range(4):
            talk.heartbeat(a, 27)
            talk.wait(1_000)
        talk.close(b)
        b = b.reconnected()
        talk.find_coordinator(b)
        talk.wait(300)
    finding = talk.the("T-10")
    assert "3 times since " in finding.summary
    assert "connections.max.idle.ms" in finding.summary
    assert "M-13" not in talk.rules()


def test_T_10_covers_the_ghosts_that_come_of_it(talk: Conversation) -> None:
    a, b = settled(talk)
    c = talk.client("c")
    for _ in range(3):
        c = gives_up(talk, c, 3_000, [a, b])
    waiting = [talk.ask(c, talk.join_request(c), version=3), talk.ask_join(a), talk.ask_join(b)]
    ghosts = [talk.client("c"), talk.client("c")]
    for number, ghost in enumerate(ghosts):
        ghost.member_id = f"c-{number}"
    c.member_id = "c-2"
    complete(talk, waiting, 4, a, [a, b, c, *ghosts])
    talk.sync_all([a, b, c])
    live(talk, [a, b, c], 14)
    assert talk.rules() == ["T-10"]


def test_T_10_is_resolved_when_no_client_gives_up_any_more(talk: Conversation) -> None:
    a, _ = settled(talk)
    c = talk.client("c")
    for _ in range(4):
        c = gives_up(talk, c, 5_000, [a])
    talk.wait(240_000)
    assert talk.the("T-10").status is Status.OPEN
    talk.wait(160_000)
    assert talk.the("T-10").status is Status.RESOLVED


def test_T_10_needs_the_same_time_twice(talk: Conversation) -> None:
    a, _ = settled(talk)
    c = talk.client("c")
    for after_ms in (2_000, 5_000, 9_000):
        c = gives_up(talk, c, after_ms, [a])
    talk.ask(c, talk.join_request(c), version=3)
    assert "T-10" not in talk.settled_rules()


def test_T_10_does_not_count_clients_that_waited_for_their_rebalance_timeout(talk: Conversation) -> None:
    a, _ = settled(talk)
    c = talk.client("c")
    for _ in range(3):
        c = gives_up(talk, c, 21_000, [a])
    assert "T-10" not in talk.rules()


def test_T_10_needs_a_client_that_gives_up_twice(talk: Conversation) -> None:
    """Processes that die have waited for any time."""
    a, _ = settled(talk)
    waiting = [gives_up(talk, talk.client(name), 5_000, [a]) for name in ("c", "d", "e")]
    for client in waiting:
        talk.ask(client, talk.join_request(client), version=3)
    assert "T-10" not in talk.settled_rules()


def test_T_10_needs_clients_that_come_again(talk: Conversation) -> None:
    a, _ = settled(talk)
    for name in ("c", "d", "e"):
        gives_up(talk, talk.client(name), 5_000, [a])
    assert "T-10" not in talk.settled_rules()


def test_T_10_ignores_connections_that_end_together(talk: Conversation) -> None:
    settled(talk)
    clients = [talk.client(name) for name in ("c", "d", "e")]
    for client in clients:
        talk.ask(client, talk.join_request(client), version=3)
    talk.wait(5_000)
    for client in clients:
        talk.close(client)
        again = client.reconnected()
        again.member_id = ""
        talk.ask(again, talk.join_request(again), version=3)
    assert "T-10" not in talk.settled_rules()


# ---------------------------------------------------------------------------------------------------- T-11


def drops(talk: Conversation, clients: list[Client], times: int, *, timeout_ms: int = 2_000, told: bool = False) -> list[Client]:
    """Members take turns: one joins, the one after it is not told, is dropped, and joins anew.

    :param told: it is told, and does not rejoin in time.
    """
    for generation in range(4, 4 + times):
        *staying, newest = clients
        victim = staying.pop()
        newest.member_id = ""
        talk.hand_out_id(newest, f"{newest.name}-{generation}")
        asked = [talk.ask_join(newest, rebalance_timeout_ms=timeout_ms)]
        for one in staying:
            talk.heartbeat(one, 27)
            asked.append(talk.ask_join(one, rebalance_timeout_ms=timeout_ms))
        if told:
            talk.heartbeat(victim, 27)
        talk.wait(timeout_ms)
        complete(talk, asked, generation, staying[0], [*staying, newest])
        talk.sync_all([*staying, newest], leader=staying[0])
        talk.wait(500)
        talk.heartbeat(victim, 25)
        clients = [*staying, newest, victim]
    last = clients[-1]
    last.member_id = ""
    talk.hand_out_id(last, f"{last.name}-again")
    talk.ask_join(last, rebalance_timeout_ms=timeout_ms)
    return clients


def three(talk: Conversation, timeout_ms: int = 2_000) -> list[Client]:
    clients = settled(talk, "abc", rebalance_timeout_ms=timeout_ms)
    for client in clients:
        talk.heartbeat(client)
    return clients


def test_T_11_fires_on_members_that_are_dropped_before_they_are_told(talk: Conversation) -> None:
    a, b, c = three(talk)
    talk.leave(c)
    drops(talk, [a, b, c], 2)
    talk.settle()
    finding = talk.the("T-11")
    assert (finding.severity, finding.blame, finding.member_id) == (Severity.ERROR, Blame.CONFIG, None)
    assert "2 times since" in finding.summary
    assert "(b at 10.0.0.1, c at 10.0.0.1)" in finding.summary
    assert "A join phase lasts at most the rebalance timeout, 2.0 s" in finding.summary
    assert "sessions last 10.0 s" in finding.observed
    assert [frame.frame for frame in finding.evidence] == ["b-5 asks to join", "c-again asks to join"]


def test_T_11_is_resolved_when_nobody_is_dropped_any_more(talk: Conversation) -> None:
    a, b, c = three(talk)
    talk.leave(c)
    drops(talk, [a, b, c], 2)
    talk.wait(400_000)
    assert talk.the("T-11").status is Status.RESOLVED


def test_T_11_does_not_count_members_that_were_told(talk: Conversation) -> None:
    a, b, c = three(talk)
    talk.leave(c)
    drops(talk, [a, b, c], 4, told=True)
    assert "T-11" not in talk.settled_rules()


def test_T_11_does_not_count_processes_that_ended_and_were_started_again(talk: Conversation) -> None:
    """A container that is killed soon after each start: the process before is dropped at the end of the join phase, untold and dead."""
    process = talk.client("a")
    talk.hand_out_id(process)
    joined = talk.ask_join(process, rebalance_timeout_ms=2_000)
    for generation in range(3, 8):
        talk.joined(joined, generation=generation, leader=process, roster=[process])
        talk.sync_all([process])
        talk.close(process)
        process = process.reconnected()
        process.member_id = ""
        talk.hand_out_id(process, f"a-{generation}")
        joined = talk.ask_join(process, rebalance_timeout_ms=2_000)
        talk.wait(2_000)
    assert "T-11" not in talk.settled_rules()


def test_T_11_needs_a_rebalance_timeout_below_the_session_timeout(talk: Conversation) -> None:
    a, b, c = three(talk, 11_000)
    talk.leave(c)
    drops(talk, [a, b, c], 4, timeout_ms=11_000)
    assert "T-11" not in talk.settled_rules()


# ---------------------------------------------------------------------------------------------------- T-12


def overruns(
    talk: Conversation, slow: Client, others: list[Client], times: int, *, reason: str = POLL, held_s: int = 25, steps_s: int = 0
) -> None:
    """It joins, leaves when its poll interval is over, and comes back when it is done.

    :param steps_s: by how much more it takes each time.
    """
    generations = count(4)
    for number in range(times):
        arrives(talk, slow, others, next(generations))
        live(talk, [*others, slow], held_s)
        talk.leave(slow, reason=reason or None)
        told_to_rejoin(talk, others)
        talk.round(others, next(generations))
        live(talk, others, 8 + steps_s * number)
    arrives(talk, slow, others, next(generations))


def test_T_12_warns_of_a_poll_interval_that_is_exceeded_by_the_same_each_time(talk: Conversation) -> None:
    others = settled(talk)
    overruns(talk, talk.client("slow"), others, 4)
    talk.settle()
    finding = talk.the("T-12")
    assert (finding.severity, finding.blame, finding.member_id) == (Severity.WARNING, Blame.CLIENT, None)
    assert (
        "Client slow at 10.0.0.1:40003 in group g exceeds the poll interval of 20.0 s each time by nearly the same, 8.0 s to"
        in finding.summary
    )
    assert "4 times since" in finding.summary
    assert "takes up to 28." in finding.action
    assert talk.rules() == ["T-05", "T-12"]


def test_T_12_infers_it_where_clients_give_no_reasons(talk: Conversation) -> None:
    others = settled(talk)
    overruns(talk, talk.client("slow"), others, 4, reason="")
    assert "T-12" in talk.settled_rules()


def test_T_12_names_all_clients_that_do_the_same(talk: Conversation) -> None:
    others, slow = settled(talk), [talk.client("slow"), talk.client("slower")]
    generations = count(4)
    for _ in range(4):
        arrives(talk, slow[0], others, next(generations))
        arrives(talk, slow[1], [*others, slow[0]], next(generations))
        live(talk, [*others, *slow], 25)
        for one in slow:
            talk.leave(one, reason=POLL)
        told_to_rejoin(talk, others)
        talk.round(others, next(generations))
        live(talk, others, 8)
    talk.settle()
    assert (
        "Clients slow at 10.0.0.1:40003, slower at 10.0.0.1:40004 in group g exceed the poll interval" in talk.the("T-12").summary
    )
    assert "R-07" not in talk.rules()


def test_T_12_is_resolved_when_the_client_stays(talk: Conversation) -> None:
    others, slow = settled(talk), talk.client("slow")
    overruns(talk, slow, others, 4)
    live(talk, [*others, slow], 150)
    assert talk.the("T-12").status is not Status.RESOLVED
    live(talk, [*others, slow], 170)
    assert talk.the("T-12").status is Status.RESOLVED


def test_T_12_needs_about_the_same_time_each_time(talk: Conversation) -> None:
    others = settled(talk)
    overruns(talk, talk.client("slow"), others, 4, steps_s=6)
    assert "T-12" not in talk.settled_rules()


def test_T_12_does_not_count_a_client_that_unsubscribes(talk: Conversation) -> None:
    others = settled(talk)
    overruns(talk, talk.client("slow"), others, 4, reason="the consumer unsubscribed from all topics")
    assert "T-12" not in talk.settled_rules()


def test_T_12_does_not_infer_it_of_a_client_that_leaves_sooner_than_its_poll_interval(talk: Conversation) -> None:
    others = settled(talk)
    overruns(talk, talk.client("slow"), others, 4, reason="", held_s=15)
    assert "T-12" not in talk.settled_rules()


def test_T_12_infers_it_in_a_group_of_the_consumer_protocol(talk: Epochs) -> None:
    base, slow = talk.member("base"), talk.member("slow")
    talk.joins(base, 1, foo(0, 1))
    epoch = 1
    for _ in range(4):
        epoch += 1
        talk.joins(slow, epoch)
        talk.beats(base, epoch - 1, foo(0))
        talk.beats(base, epoch, owned=foo(0))
        talk.beats(slow, epoch, foo(1))
        for _ in range(13):
            talk.wait(5_000)
            talk.beats(base)
            talk.beats(slow)
        talk.leaves(slow)
        epoch += 1
        for _ in range(2):
            talk.wait(5_000)
            talk.beats(base, epoch, foo(0, 1))
    talk.joins(slow, epoch + 1)
    talk.settle()
    finding = talk.the("T-12")
    assert "exceeds the poll interval of 60.0 s" in finding.summary

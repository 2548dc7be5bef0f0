"""Family T: members that went and whose place nobody took."""

from __future__ import annotations

import pytest

from coordinator_model.finding import Blame, Certainty, Finding, Severity, Status
from coordinator_model.wording import clock
from tests.coordinator_model.classic import live
from tests.coordinator_model.conversation import Client, Conversation
from tests.coordinator_model.epochs import Epochs, foo
from tests.coordinator_model.rules.loops import arrives, departs
from tests.coordinator_model.streams import Streams


def three(talk: Conversation, seconds: int = 70, *, static: str = "") -> list[Client]:
    """A group that has had three members for a while, on connections whose ends are captured; some of them may be static."""
    clients = [talk.client(name) for name in "abc"]
    for client in clients:
        client.instance_id = f"i-{client.name}" if client.name in static else None
        talk.open(client)
    talk.round(clients, 3)
    live(talk, clients, seconds)
    return clients


def two(talk: Epochs) -> tuple[Client, Client]:
    """A group with epochs, of two members with a partition each, on connections whose ends are captured."""
    a, b = talk.member("a"), talk.member("b")
    for client in (a, b):
        talk.open(client)
    talk.joins(a, 1, foo(0, 1))
    talk.joins(b, 2)
    talk.beats(a, 1, foo(0))
    talk.beats(a, 2, owned=foo(0))
    talk.beats(b, 2, foo(1))
    return a, b


def dies(talk: Conversation, others: list[Client], generation: int = 4) -> None:
    """A member was killed: its session of 10 s ends, and the others go on without it."""
    live(talk, others, 14)
    if others:
        talk.round(others, generation)


def missing(talk: Conversation) -> list[Finding]:
    return [finding for finding in talk.findings if finding.rule == "T-13"]


def test_T_13_warns_of_a_member_that_was_killed_and_not_replaced(talk: Conversation) -> None:
    a, b, c = three(talk)
    talk.close(c)
    dies(talk, [a, b])
    live(talk, [a, b], 15)
    assert missing(talk) == []
    live(talk, [a, b], 3)
    [finding] = missing(talk)
    assert (finding.severity, finding.certainty, finding.blame) == (Severity.WARNING, Certainty.CONFIRMED, Blame.CLIENT)
    assert (finding.member_id, finding.client_id, finding.client_address) == (c.member_id, "c", f"10.0.0.1:{c.port}")
    assert finding.summary.startswith("Group g has 2 members instead of 3 since ")
    assert "died at " in finding.summary
    assert finding.summary.endswith("Nobody took its place for 30.0 s. Cost so far: 30.0 member-seconds.")
    assert "exit code" in finding.action


@pytest.mark.parametrize("namesake", [False, True], ids=["alone", "beside a namesake"])
def test_T_13_says_of_one_whose_other_connection_is_open_that_its_process_lives(talk: Conversation, *, namesake: bool) -> None:
    a, b, c = three(talk)
    first = Client(talk, "b" if namesake else "c")
    talk.open(first)
    talk.find_coordinator(first)
    lost, others = (b, [a, c]) if namesake else (c, [a, b])
    if namesake:
        c.name = "b"
    talk.close(lost)
    dies(talk, others)
    live(talk, others, 20)
    [finding] = missing(talk)
    assert (finding.severity, finding.member_id) == (Severity.WARNING, lost.member_id)
    assert ("died at " in finding.summary) == namesake
    assert ("has not joined again: another connection of its process is open" in finding.summary) == (not namesake)
    assert ("Read in the log of that process why it does not join again" in finding.action) == (not namesake)


def test_T_13_does_not_say_that_a_static_member_died_which_may_have_been_stopped(talk: Conversation) -> None:
    a, b, c = three(talk, static="c")
    talk.close(c)
    dies(talk, [a, b])
    live(talk, [a, b], 60)
    [finding] = missing(talk)
    assert "was stopped or died at " in finding.summary
    assert "died at" not in finding.summary.replace("was stopped or died at", "")
    assert finding.action.startswith("If it was stopped for good, nothing; ")


def test_T_13_is_a_note_of_a_static_member_that_left_for_a_while_and_does_not_come_back(talk: Epochs) -> None:
    a, b = talk.member("a", "i"), talk.member("b", "j")
    talk.joins(a, 1, foo(0, 1))
    talk.joins(b, 2, {})
    talk.beats(a, 2, foo(0))
    talk.beats(a)
    talk.beats(b, 2, foo(1))
    for _ in range(30):
        talk.wait(3_000)
        talk.beats(a)
        talk.beats(b)
    talk.leaves(a, -2)
    talk.close(a)
    for _ in range(40):
        talk.wait(3_000)
        talk.beats(b)
    [finding] = missing(talk)
    assert finding.severity is Severity.INFO
    assert "left for a while at " in finding.summary
    assert "as a static member does that is closed, and has not come back." in finding.summary


def test_T_13_counts_from_the_last_that_went_where_nobody_is_left(talk: Epochs) -> None:
    """One died, and is one until its session ends; before that the other left by itself, and read until then."""
    a, b = two(talk)
    talk.live([a, b], 90)
    talk.close(b)
    talk.live([a], 26)
    talk.leaves(a)
    talk.close(a)
    talk.wait(50_000)
    assert missing(talk) == []
    talk.wait(15_000)
    [finding] = missing(talk)
    left = clock(talk.now_us - 65_000_000)
    assert finding.severity is Severity.INFO
    assert finding.summary.startswith(f"Nobody reads for group g since {left}: its 2 members are gone: ")
    assert f"left by itself at {left}" in finding.summary
    assert "Nobody took their place for 60.0 s." in finding.summary


def test_T_13_names_a_member_that_froze_and_keeps_its_connection(talk: Conversation) -> None:
    a, b, _ = three(talk)
    dies(talk, [a, b])
    live(talk, [a, b], 48)
    [finding] = missing(talk)
    assert "froze or was cut off" in finding.summary
    assert "suspended process" in finding.action


def test_T_13_does_not_take_the_end_of_a_broker_for_that_of_a_member_where_only_that_is_seen(talk: Conversation) -> None:
    """A request log shows no ends of connections, but that its broker was started anew."""
    a, b, c = three(talk)
    for client in (a, b, c):
        talk.open(client, shows_end=False)
    dies(talk, [a, b])
    talk.close(c)
    live(talk, [a, b], 48)
    [finding] = missing(talk)
    assert "fell silent at " in finding.summary


def test_T_13_is_an_error_if_no_member_is_left(talk: Conversation) -> None:
    clients = three(talk)
    for client in clients:
        talk.close(client)
    dies(talk, [])
    talk.wait(20_000)
    assert missing(talk)[-1].severity is Severity.WARNING
    talk.wait(40_000)
    finding = missing(talk)[-1]
    assert (finding.severity, finding.status, finding.member_id) == (Severity.ERROR, Status.UPDATE, None)
    assert "Nobody took their place for " in finding.summary
    assert finding.summary.startswith("Nobody reads for group g since ")
    assert all(f"client {client.name}" in finding.summary for client in clients)


def test_T_13_is_no_error_if_the_last_members_left_by_themselves(talk: Conversation) -> None:
    """One died, and a minute later the others were stopped: it was said that nobody had read since the first died."""
    a, b, c = three(talk)
    talk.close(c)
    dies(talk, [a, b])
    live(talk, [a, b], 60)
    for one in (a, b):
        talk.leave(one)
        talk.close(one)
    talk.wait(120_000)
    assert {(finding.severity, finding.summary.split(" since ")[0]) for finding in missing(talk)} == {
        (Severity.WARNING, "Group g has 2 members instead of 3")
    }


def test_T_13_names_a_member_that_left_as_it_was_not_polled_and_has_not_come_back(talk: Conversation) -> None:
    a, b, c = three(talk)
    departs(talk, c, [a, b], 4)
    live(talk, [a, b], 8)
    assert missing(talk) == []
    live(talk, [a, b], 3)
    [finding] = missing(talk)
    assert (finding.severity, finding.certainty) == (Severity.WARNING, Certainty.HEURISTIC)
    assert "left at " in finding.summary
    assert "has most likely not polled for max.poll.interval.ms, 20.0 s" in finding.summary
    assert "thread dump" in finding.action
    talk.close(c)  # by the broker, as it is idle
    live(talk, [a, b], 60)
    assert missing(talk) == [finding]


def test_T_13_names_the_topic_that_is_gone_and_no_poll_loop(talk: Epochs) -> None:
    a, b = two(talk)
    talk.live([a, b], 70)
    talk.topics(foo=0)
    talk.leaves(b)
    talk.live([a], 40)
    [finding] = missing(talk)
    assert (finding.severity, finding.blame) == (Severity.WARNING, Blame.CONFIG)
    assert " and kept its connection: foo does not exist any more. Nobody took its place" in finding.summary
    assert "See who deleted the topic." in finding.action


def test_T_13_names_the_source_topic_that_a_streams_member_was_told_is_missing(talk: Streams) -> None:
    """Seen on 4.3.1: the topic was deleted, and the application was said not to have polled."""
    a = talk.member("a")
    talk.open(a)
    talk.enters(a, 1, (0, 1))
    talk.told_for([a], 90)
    talk.works(a, 2, (), (1, "Source topics foo are missing."))
    talk.wait(5_000)
    talk.turned_away(a, 0, epoch=-1)
    talk.wait(30_000)
    [finding] = missing(talk)
    assert "and kept its connection: a source topic does not exist any more." in finding.summary


@pytest.mark.parametrize("shows_end", [True, False])
def test_T_13_is_info_if_members_left_by_themselves(talk: Conversation, *, shows_end: bool) -> None:
    """A request log does not show whether the connection of one that left is open."""
    a, b, c = three(talk)
    talk.open(a, shows_end=shows_end)
    departs(talk, c, [a, b], 4)
    if shows_end:
        talk.close(c)
    live(talk, [a, b], 59)
    assert missing(talk) == []
    live(talk, [a, b], 3)
    [finding] = missing(talk)
    assert (finding.severity, finding.blame) == (Severity.INFO, Blame.OPERATOR)
    assert "left by itself at " in finding.summary


def is_removed(talk: Conversation, client: Client) -> str:
    """An admin client takes a member out; return who does so when."""
    operator = talk.remove(client)
    return f"by client admin at 10.0.0.1:{operator.port}, test 1.0 at {clock(talk.now_us)}"


def test_T_13_is_info_of_a_member_that_somebody_else_removed(talk: Conversation) -> None:
    a, b, c = three(talk)
    by = is_removed(talk, c)
    talk.round([a, b], 4)
    live(talk, [a, b], 62)
    [finding] = missing(talk)
    assert (finding.severity, finding.blame, finding.member_id) == (Severity.INFO, Blame.OPERATOR, c.member_id)
    assert f"was removed {by}" in finding.summary
    assert finding.action == "Ask why it was removed. Its process goes on only if it joins again."


def test_T_13_names_who_removed_a_member_with_an_epoch(talk: Epochs) -> None:
    a, b = two(talk)
    talk.live([a, b], 70)
    by = is_removed(talk, b)
    talk.live([a], 65)
    [finding] = missing(talk)
    assert (finding.severity, f"was removed {by}" in finding.summary) == (Severity.INFO, True)


def test_T_13_is_info_of_kafka_streams_that_closed_without_leaving(talk: Conversation) -> None:
    talk.protocol = "stream"
    a, b, c = three(talk)
    talk.close(c)
    closed_us = talk.now_us
    dies(talk, [a, b])
    live(talk, [a, b], 62)
    [finding] = missing(talk)
    assert (finding.severity, finding.blame, finding.member_id) == (Severity.INFO, Blame.OPERATOR, c.member_id)
    assert f"closed at {clock(closed_us)} without leaving, as Kafka Streams does" in finding.summary


def test_T_13_warns_of_a_member_that_was_refused_and_has_not_joined_again(talk: Conversation) -> None:
    a, b, c = three(talk)
    talk.leave(c, 25)
    talk.heartbeat(c, 25)
    refused_us = talk.now_us
    talk.round([a, b], 4)
    live(talk, [a, b], 62)
    [finding] = missing(talk)
    assert (finding.severity, finding.blame, finding.member_id) == (Severity.WARNING, Blame.CLIENT, c.member_id)
    assert f"was refused at {clock(refused_us)} and has not joined again" in finding.summary
    assert finding.action == "Read in the log of that process why it does not join again, and restart it."


def test_T_13_is_resolved_when_another_takes_the_place(talk: Conversation) -> None:
    a, b, c = three(talk)
    talk.close(c)
    dies(talk, [a, b])
    live(talk, [a, b], 50)
    d = talk.client("d")
    arrives(talk, d, [a, b], 5)
    live(talk, [a, b, d], 2)
    assert [finding.status for finding in missing(talk)] == [Status.OPEN, Status.RESOLVED]


def test_T_13_is_quiet_in_a_deployment_with_a_spare_member(talk: Conversation) -> None:
    clients, generation = three(talk), 3
    for number in range(3):
        new = talk.client(f"new-{number}")
        generation += 1
        arrives(talk, new, clients, generation)
        live(talk, [*clients, new], 20)
        old = clients.pop(0)
        clients.append(new)
        talk.close(old)
        dies(talk, clients, generation := generation + 1)
        live(talk, clients, 5)
    live(talk, clients, 100)
    assert missing(talk) == []


def test_T_13_does_not_wait_for_the_session_of_a_member_whose_connection_ended(talk: Conversation) -> None:
    """Nor does it wait for a restart beyond that: until the session ends, the group counts the member that died."""
    a, b = clients = [talk.client(name) for name in "ab"]
    for client in clients:
        talk.open(client)
    talk.round(clients, 3, session_timeout_ms=45_000)
    live(talk, clients, 70)
    talk.close(b)
    live(talk, [a], 28)
    assert missing(talk) == []
    live(talk, [a], 4)
    [finding] = missing(talk)
    assert (finding.severity, finding.member_id) == (Severity.WARNING, b.member_id)
    assert "Group g has 1 member instead of 2 since " in finding.summary
    live(talk, [a], 14)
    talk.round([a], 4)
    live(talk, [a], 20)
    assert [one.status for one in missing(talk)] == [Status.OPEN]


def test_T_13_waits_for_as_long_as_members_of_the_group_are_usually_away(talk: Conversation) -> None:
    """Each of its restarts takes 50 s, and none leaves the group: 75 s are usual."""
    a, b, c = three(talk)
    generation = 3
    for _ in range(2):
        talk.close(c)
        dies(talk, [a, b], generation := generation + 1)
        live(talk, [a, b], 36)
        c = talk.client("c")
        talk.open(c)
        arrives(talk, c, [a, b], generation := generation + 1)
        live(talk, [a, b, c], 70)
    before = len(missing(talk))
    assert before == 4
    talk.close(c)
    dies(talk, [a, b], generation + 1)
    live(talk, [a, b], 58)
    assert len(missing(talk)) == before
    live(talk, [a, b], 6)
    assert missing(talk)[-1].status is Status.OPEN
    assert "Nobody took its place for 7" in missing(talk)[-1].summary


def test_T_13_is_quiet_at_a_number_of_members_that_is_usual(talk: Conversation) -> None:
    clients, generation = three(talk), 3
    for _ in range(3):
        c = clients.pop()
        departs(talk, c, clients, generation := generation + 1)
        talk.close(c)
        live(talk, clients, 110)
        c = talk.client("c")
        arrives(talk, c, clients, generation := generation + 1)
        clients.append(c)
        live(talk, clients, 70)
    before = [finding.status for finding in missing(talk)]
    assert before == 2 * [Status.OPEN, Status.RESOLVED]  # by then it is usual that one is away for 110 s
    c = clients.pop()
    talk.close(c)
    dies(talk, clients, generation + 1)
    live(talk, clients, 100)
    assert [finding.status for finding in missing(talk)] == before


def test_T_13_is_quiet_about_a_member_that_was_there_for_seconds(talk: Conversation) -> None:
    a, b, c = three(talk, 50)
    talk.close(c)
    dies(talk, [a, b])
    live(talk, [a, b], 100)
    assert missing(talk) == []


def test_T_13_leaves_members_that_gave_up_without_a_right_to_O_09(talk: Conversation) -> None:
    a, b, c = three(talk)
    talk.commit(c, 30)
    talk.close(c)
    dies(talk, [a, b])
    live(talk, [a, b], 30)
    assert missing(talk) == []
    talk.commit(a)
    live(talk, [a, b], 3)
    assert len(missing(talk)) == 1


def test_T_13_misses_members_without_a_right_once_O_09_is_over(talk: Conversation) -> None:
    a, b, c = three(talk)
    talk.commit(c, 30)
    talk.close(c)
    dies(talk, [a, b])
    live(talk, [a, b], 28 * 60)
    assert missing(talk) == []
    live(talk, [a, b], 3 * 60)
    assert [finding.status for finding in missing(talk)] == [Status.OPEN]


def test_T_13_misses_a_killed_member_beside_one_that_lacks_a_right(talk: Conversation) -> None:
    a, b, c = three(talk)
    talk.commit(a, 30)
    talk.close(c)
    dies(talk, [a, b])
    live(talk, [a, b], 30)
    assert len(missing(talk)) == 1


def test_T_13_names_the_right_that_members_lost(talk: Conversation) -> None:
    """Their libraries take the first refusal for final, and close the connection."""
    clients = three(talk)
    for client in clients:
        talk.heartbeat(client, error=30)
        talk.close(client)
    talk.wait(31_000)
    [finding] = missing(talk)
    assert finding.blame is Blame.CONFIG
    assert "its connection closed without a LeaveGroup, after its Heartbeat was refused at " in finding.summary
    assert "with GROUP_AUTHORIZATION_FAILED" in finding.summary
    assert finding.action.startswith("Grant READ on this group")


def test_T_13_names_the_topic_that_was_deleted_before_a_member_fell_silent(talk: Conversation) -> None:
    a, b, c = three(talk)
    for _ in range(3):
        talk.commit(c, 3)
        live(talk, [a, b, c], 3)
    dies(talk, [a, b])
    live(talk, [a, b], 48)
    [finding] = missing(talk)
    assert finding.blame is Blame.CONFIG
    assert "froze or was cut off at " in finding.summary
    assert "after its commits of t-0 were refused at " in finding.summary
    assert "with UNKNOWN_TOPIC_OR_PARTITION" in finding.summary
    assert finding.action.startswith("See who deleted the topic.")


def test_T_13_names_the_deleted_topic_although_a_right_was_missing_minutes_before(talk: Conversation) -> None:
    a, b, c = three(talk)
    talk.heartbeat(c, error=30)
    live(talk, [a, b, c], 90)
    talk.commit(c, 3)
    talk.close(c)
    dies(talk, [a, b])
    live(talk, [a, b], 30)
    [finding] = missing(talk)
    assert "after its commits of t-0 were refused at " in finding.summary
    assert finding.action.startswith("See who deleted the topic.")


def test_T_13_does_not_name_a_refusal_of_minutes_before(talk: Conversation) -> None:
    a, b, c = three(talk)
    talk.heartbeat(c, error=30)
    live(talk, [a, b, c], 90)
    talk.close(c)
    dies(talk, [a, b])
    live(talk, [a, b], 30)
    [finding] = missing(talk)
    assert (finding.blame, "refused" in finding.summary) == (Blame.CLIENT, False)


def test_T_13_is_quiet_after_frames_were_lost(talk: Conversation) -> None:
    a, b, c = three(talk)
    talk.close(c)
    live(talk, [a, b], 5)
    talk.gap()
    dies(talk, [a, b])
    live(talk, [a, b], 100)
    assert missing(talk) == []


def test_T_13_names_the_number_of_a_group_that_is_first_seen_in_mid_life(talk: Conversation) -> None:
    """Its members heartbeat, and no rebalance was captured."""
    clients = [talk.client(name) for name in "abc"]
    for client in clients:
        talk.open(client)
        client.member_id, client.generation = f"{client.name}-id", 7
    live(talk, clients, 70)
    a, b, c = clients
    talk.leave(c)
    talk.close(c)
    talk.round([a, b], 8)
    live(talk, [a, b], 62)
    [finding] = missing(talk)
    assert "has 2 members instead of 3" in finding.summary


def test_T_13_warns_of_a_member_with_an_epoch_that_died_before_its_session_ends(talk: Epochs) -> None:
    a, b = two(talk)
    talk.live([a, b], 70)
    talk.close(b)
    talk.live([a], 35)
    [finding] = missing(talk)
    assert finding.member_id == "b-id"
    assert "died at " in finding.summary
    assert "It held 1 partition (foo-1), read by nobody. Cost so far: 30.0 member-seconds." in finding.summary
    for second in range(20):
        talk.beats(a, *((3, foo(0, 1)) if second == 3 else ()))
        talk.wait(5_000)
    assert missing(talk) == [finding]


def test_T_13_says_who_has_the_partitions_of_a_member_with_an_epoch_that_fell_silent(talk: Epochs) -> None:
    a, b = two(talk)
    talk.live([a, b], 70)
    for second in range(22):
        talk.beats(a, *((3, foo(0, 1)) if second == 10 else ()))
        talk.wait(5_000)
    [finding] = missing(talk)
    assert finding.member_id == "b-id"
    assert "its application has not polled for max.poll.interval.ms, " in finding.summary
    assert "its connection is open, and nothing comes from it" in finding.summary
    assert "It held 1 partition (foo-1), now read by a-id." in finding.summary
    assert "librdkafka" in finding.action


def test_T_13_counts_once_what_one_member_took_over_from_another_before_it_went(talk: Epochs) -> None:
    """It was the sum of what each had held when it went: 3 partitions of a topic that has 2."""
    a, b = two(talk)
    talk.live([a, b], 70)
    talk.leaves(b)
    talk.beats(a, 3, foo(0, 1))
    talk.live([a], 10)
    talk.leaves(a)
    talk.wait(65_000)
    assert "They held 2 partitions (foo-0, foo-1), read by nobody." in missing(talk)[-1].summary
